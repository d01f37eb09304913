/* Control of a running agent, by lines of commands and lines of replies as Chukwa's agent has them
 * (doc/agent.md; Chukwa, AgentControlSocketListener).
 *
 *     the configuration ---+
 *                          +--> adaptors --> the agent
 *     `add`, `stop` ... ---+
 *            |
 *            +--> the file, which is read at the next start
 *
 * A reply is given when what it says is in the file, so that what was added is followed and what
 * was stopped is not, also after a kill at once. The agent does it at its next turn; while it waits
 * for a collector, that may be a minute later.
 *
 * What the configuration has can be stopped, too, but comes back with the next start or reload, as
 * Chukwa's initial_adaptors do.
 *
 * `shutdown` names the offset up to which the stream goes on: all that the file was known to have.
 * The adaptor goes when that is delivered, also if a restart is in between.
 *
 * One thread. The agent runs on another one, and is reached by struct control_agent. */
#ifndef AGENT_CONTROL_H
#define AGENT_CONTROL_H

#include "agent/agent.h"
#include "wire/chukwa_agent.h"

enum {
	CONTROL_ADDED_MAX = 1000, /* adaptors that were added */
	CONTROL_SAMPLE_MS = 10000,
	CONTROL_SAMPLES = 61, /* for the rate over ten minutes */
	CONTROL_REPLY_MAX_BYTES = 32 << 20,
};

struct control_agent {
	/* From now on this is followed. */
	void (*configure)(struct control_agent *agent, struct adaptors **adaptors);
	/* Appends what agent_put_progress() gives: of now, or, while the agent waits for a
	 * collector, of the last time that it was given. */
	void (*look)(struct control_agent *agent, struct buf *out);
	/* agent_try_again() */
	void (*try_again)(struct control_agent *agent);
	/* The process is to end. NULL: it does more than to follow files. */
	void (*stop)(struct control_agent *agent);
};

struct control_options {
	struct files *files;
	struct control_agent *agent;
	const char *path; /* of the file; outlives it, as the host does */
	struct slice host;
	bool rates; /* are wanted */
};

/* An adaptor as Chukwa names it. */
struct control_item {
	struct chukwa_add add; /* its texts are the item's own */
	bool configured;
	bool runs; /* false: it was stopped, or another one has its name or its files */
	bool stopped;
	bool ends; /* when it is delivered up to */
	uint64_t until;

	size_t at; /* its place in the configuration */
	uint64_t name_hash;
	struct agent_progress progress;
	uint64_t *samples; /* of its offset, number n at n % CONTROL_SAMPLES; NULL: none is taken */
	size_t sample_count;
};

struct control {
	struct control_options options;
	/* Who speaks came by a port, which every user of the machine reaches: no command is run for
	 * him. Set before each line. */
	bool by_port;
	struct adaptors *base;      /* what is configured */
	struct control_item **list; /* what is configured, then what was added */
	size_t count, capacity;
	struct buf seen; /* of control_agent.look() */
};

void control_init(struct control *control, const struct control_options *options);
void control_release(struct control *control);

/* Reads the file; it need not be there. With a sentence. */
int control_load(struct control *control, struct errbuf *e) MUST_CHECK;
/* This is configured from now on; what was added stays. Hands it to the agent. */
void control_set_base(struct control *control, struct adaptors **base);
/* How many adaptors run. */
size_t control_count(const struct control *control);

/* Answers a line, without its end. False: the connection is to be closed then. */
bool control_answer(struct control *control, struct slice line, struct buf *out) MUST_CHECK;
/* What is known of all adaptors is of now; those that are at their end go. */
void control_look(struct control *control);
/* Once in CONTROL_SAMPLE_MS: the same, and takes a sample for the rates. */
void control_tick(struct control *control);

/* A line `add ...`. With a sentence: ERR_INVALID, ERR_EXISTS, ERR_LIMIT, or why the file cannot be
 * written; nothing is changed then. One that is there already is found. */
int control_add(struct control *control, struct slice line, struct control_item **item,
		struct errbuf *e) MUST_CHECK;
/* The one of this id that was not stopped; NULL: there is none. */
struct control_item *control_find(const struct control *control, struct slice id);
/* It is gone then. With a sentence, why the file cannot be written. */
int control_stop(struct control *control, struct control_item **item, struct errbuf *e) MUST_CHECK;
/* Bytes a second over the last 60, 300 or 600 seconds; -1: it is not known for so long. */
double control_rate(const struct control_item *item, unsigned seconds);
/* The class by its whole name. */
void control_put_class(const struct control_item *item, struct buf *out);

#endif
