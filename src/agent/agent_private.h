/* Private to agent/. */
#ifndef AGENT_AGENT_PRIVATE_H
#define AGENT_AGENT_PRIVATE_H

#include <limits.h>

#include "agent/agent.h"
#include "base/hash_table.h"

enum {
	AGENT_POST_RAW_MAX_BYTES = 4 << 20, /* of what is sent at once, before it is packed */
	AGENT_POST_CHUNKS_MAX = 4000,
	AGENT_NAMES_IN_DIRECTORY_MAX = 256, /* that are compared with the name of a rotated file */
	AGENT_CHECKPOINT_MAX_BYTES = 512 << 20,
	/* What was read and is not acknowledged. */
	AGENT_PENDING_RAW_MAX_BYTES = 8 << 20,
	/* Acknowledged and in no checkpoint: after a kill it would be sent again. */
	AGENT_UNSAVED_MAX_BYTES = 8 << 20,
	AGENT_UNSAVED_STOP_BYTES = 64 << 20, /* nothing is sent until a checkpoint is written */
	AGENT_CHUNK_TURNS = 4,               /* chunks of one file in a post */
	AGENT_FORGET_MS = 604800000,         /* what nobody has needed for so long */
	AGENT_PATH_MAX_BYTES = 64 << 10,     /* of a request */
};

/* A chunk that was read and is not acknowledged. */
struct agent_chunk {
	struct followed *f;
	struct followed_place after;
	uint64_t begin; /* the offset of its first byte */
	struct buf frame;
	bool delivered; /* but one in front of it is not */
	struct agent_chunk *next;
};

struct agent_directory {
	char *path;
	struct followed **list;
	size_t count, capacity;
	bool seen; /* by the present scan of directories */
	/* The adaptor that has listed the directory whole, and when that had changed before; it has
	 * only files. NULL: it is to be listed. */
	const struct adaptor *listed_by;
	int64_t listed_ns;
};

/* What the agent knows of the directory of an adaptor. */
struct agent_walked {
	struct hash128 hash; /* directory_hash() */
	int64_t since_ms;    /* when it was looked at first: what is younger has come later; 0: it
			      * was not yet */
	bool all;            /* all directories in it could be read once */
	const char *problem; /* of the last look; NULL: none */
};

struct agent {
	struct agent_options options;
	struct followed_site site;
	struct adaptors *adaptors;

	struct followed **list;
	size_t count, capacity;
	struct hash_table by_names; /* struct agent_slot: of datatype and name */
	struct agent_directory **directories;
	size_t directory_count, directory_capacity;
	struct hash_table by_directory; /* struct agent_directory_slot */
	struct hash_table walked;       /* struct agent_walked */
	struct followed **active;       /* those with a time at which to look at them */
	size_t active_count, active_capacity;
	size_t scan_at;
	int64_t scan_ms, directories_ms; /* the next scans */
	int64_t directories_done_ms;     /* the last one */

	struct agent_chunk *pending, **pending_end;
	uint64_t pending_bytes; /* raw */
	struct buf body, answer;
	int64_t asks_again_ms; /* the collector could not say what it holds */
	size_t collector;
	int64_t rest_ms, rest_until_ms; /* rest_ms 0: all is well */
	struct log_rate troubles;
	char *problem; /* why nothing can be delivered at present; NULL: none */

	uint64_t generation; /* of the checkpoint */
	bool had_checkpoint;
	int64_t checkpoint_ms; /* when it is due; 0: nothing has changed */
	int64_t checkpoint_rest_ms;
	uint64_t unsaved_bytes;
	struct buf checkpoint;

	uint64_t report_boot; /* another one after each start */
	int64_t report_ms;    /* when the next one is due */
	bool report_all, report_left;
	struct buf report_gone; /* names, as JSON, with commas between */
	size_t report_gone_count;
};

int64_t agent_now_ms(const struct agent *agent);
/* It is looked at when the time comes; an earlier time counts. */
void agent_activate(struct agent *agent, struct followed *f, int64_t due_ms);
/* The one of these names; NULL: there is none. */
struct followed *agent_find(const struct agent *agent, struct slice datatype, struct slice name);
/* One more; the rule may be given later. The name is the path of its file, or else that of a stream
 * of the spool. ERR_LIMIT: there are AGENT_FOLLOWED_MAX; ERR_INVALID: no stream has such names,
 * which is said in the log; ERR_EXISTS. */
int agent_add(struct agent *agent, const struct followed_rule *rule, struct slice datatype,
	      struct slice name, struct followed **f) MUST_CHECK;
bool agent_is_file(struct slice name);
/* The tenant of a log's stream. An empty one: no tenant is sent, and the server takes its preset.
 */
struct slice agent_tenant(const struct agent *agent, const struct followed *f);
/* What happens in it matters. */
void agent_spool_directory(const struct agent *agent, char path[PATH_MAX]);
struct agent_directory *agent_watch_directory(struct agent *agent, const char *path);
void agent_set_problem(struct agent *agent, const char *text);

/* ---- checkpoint.c ---------------------------------------------------------------------------- */

int checkpoint_load(struct agent *agent, struct errbuf *e) MUST_CHECK;
int checkpoint_save(struct agent *agent, struct errbuf *e) MUST_CHECK;

/* ---- delivery.c ------------------------------------------------------------------------------ */

/* Takes the chunk that was read last. */
void delivery_add(struct agent *agent, struct followed *f, const struct followed_chunk *chunk);
/* Sends what is due and takes the answer. True: something was delivered. */
bool delivery_post(struct agent *agent);
void delivery_drop(struct agent *agent, struct followed *f);
/* Whether collectors are left alone for now. */
bool delivery_rests(const struct agent *agent);
/* A request to the present collector; no answer makes it rest. The body of an answer of 200 is in
 * agent->answer; another status is ERR_BUSY, 404 ERR_NOT_FOUND. */
int delivery_get(struct agent *agent, const char *path, struct http_call *call) MUST_CHECK;
void delivery_trouble(struct agent *agent, int64_t retry_after_ms, const char *why);

/* ---- ask.c ----------------------------------------------------------------------------------- */

/* Asks what is held of the logs that no checkpoint knows. */
void ask_collector(struct agent *agent);

/* ---- report.c -------------------------------------------------------------------------------- */

/* Tells the collector how the files are followed. */
void report_if_due(struct agent *agent);
/* What was told is as good as not told. */
void report_begin_anew(struct agent *agent);
/* One that is followed no more is to be told as gone. */
void report_forget(struct agent *agent, const struct followed *f);

/* ---- spooled.c ------------------------------------------------------------------------------- */

/* Follows what is in the spool. */
void spooled_scan(struct agent *agent);
/* A checkpoint has just been written, or nothing has changed since: removes what it says to be
 * delivered. */
void spooled_remove(struct agent *agent);

/* ---- directory.c ----------------------------------------------------------------------------- */

/* Follows what is there of the adaptors that are directories. */
void directory_scan(struct agent *agent);
/* A hash of where an adaptor looks, and for what. */
struct hash128 directory_hash(const struct adaptor *adaptor);
/* NULL: it was not looked at yet, or is no directory. */
const struct agent_walked *directory_walked(const struct agent *agent,
					    const struct adaptor *adaptor);
/* Why not all of it is followed; NULL: it is. */
const char *directory_problem(const struct agent *agent, const struct adaptor *adaptor);
/* Whether one of them would follow a log if its file were there; then it is wanted. */
bool directory_wants(struct agent *agent, struct followed *f);

#endif
