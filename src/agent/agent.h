/* The agent: follows files, and delivers what is written to them to a collector (document K,
 * Chukwa; doc/agent.md).
 *
 *   files --followed--> chunks --POST /chukwa--> collector
 *              ^                                    |
 *              +------- up to where it is whole ----+--> checkpoint
 *
 * What is delivered is what a collector has said to be durable, and in the checkpoint is nothing
 * else. After a kill the agent goes on where its checkpoint stands, and sends again what was on its
 * way; the collector knows these bytes by their stream and offset.
 *
 * It is one function, agent_turn(), which does what is to be done now: looks at files that have
 * changed, writes the checkpoint, reads, sends, and takes the answer. A thread calls it again and
 * again; so does a test, with files, a clock and a network of its own. Only sending blocks.
 *
 * What cannot be delivered stays in its file: nothing is read while too much is on its way. A
 * stream that is refused for good stops, and no other.
 *
 * One thread. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/adaptor.h"
#include "agent/inlet.h"
#include "http/client.h"

enum {
	AGENT_FOLLOWED_MAX = 50000,
	AGENT_SCAN_MS = 10000, /* every file and directory is looked at so often */
	AGENT_CHECKPOINT_MS = 1000,
	AGENT_REST_MIN_MS = 500, /* when a collector cannot be reached; doubled up to */
	AGENT_REST_MAX_MS = 30000,
};

struct agent;

/* How collectors are reached: as http_client_call(). */
struct agent_net {
	int (*call)(struct agent_net *net, const char *collector, struct http_call *call,
		    struct errbuf *e);
};

/* Who is to be told which directories matter. */
struct agent_watch {
	/* Changes in it are to be told by agent_notice(). */
	void (*add)(struct agent_watch *watch, const char *directory);
	/* They need not be told any more. */
	void (*remove)(struct agent_watch *watch, const char *directory);
};

struct agent_options {
	struct files *files;
	struct clock *clock;
	struct agent_net *net;
	struct agent_watch *watch; /* NULL: nobody watches, so files are seen by scans alone */
	struct spool *spool;       /* in `spool` of the directory; NULL: there is none */
	struct inlets *inlets;     /* of which it reports; NULL: there are none */
	const char *directory;     /* of the checkpoint; it is there */
	struct slice source, cluster, tenant, zone;
	struct slice name; /* under which it reports; len 0: it does not */
	const char *const *collectors;
	size_t collector_count; /* at least one */
	size_t open_max;        /* files that stay open */
	int level;              /* of zstd */
	uint64_t seed;          /* of incarnations */
};

/* The options' texts outlive it. */
struct agent *agent_new(const struct agent_options *options);
void agent_free(struct agent *agent);

/* Reads the checkpoint. ERR_VERSION: another version of this program wrote it; or why it cannot be
 * read. With a sentence. One that is damaged is as good as none, and said in the log. */
int agent_start(struct agent *agent, struct errbuf *e) MUST_CHECK;
/* From now on this is followed, and nothing else; what was followed and is not named any more is
 * remembered for a while. The adaptors are the agent's. */
void agent_configure(struct agent *agent, struct adaptors **adaptors);

/* Something has happened to a name in a directory; name NULL: to any; directory NULL: somewhere. */
void agent_notice(struct agent *agent, const char *directory, const char *name);

/* Gives how long there is nothing to do, in ms. */
int64_t agent_turn(struct agent *agent);

/* How far an adaptor is. Of a directory: all its files together. */
struct agent_progress {
	uint64_t name_hash; /* hash64() of the adaptor's name */
	uint64_t offset;    /* of the stream: up to here it is delivered */
	uint64_t end;       /* up to here it is known to be there */
	bool known;         /* a file of it has been looked at */
};
/* Appends one for each adaptor, in their order. */
void agent_put_progress(const struct agent *agent, struct buf *out);
/* Collectors are tried again from the first one on, at once. */
void agent_try_again(struct agent *agent);

/* Writes the checkpoint for the last time. */
int agent_save(struct agent *agent, struct errbuf *e) MUST_CHECK;

#endif
