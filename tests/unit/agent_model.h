/* Private to agent_model: the world around an agent, and what its parts share.
 *
 * agent_model.c says what it is, has the agent, and runs seeds; agent_model_files.c has the log and
 * the programs that write and rotate it, agent_model_collectors.c the two collectors and the net,
 * agent_model_right.c what must be so when all is at rest. */
#ifndef TESTS_UNIT_AGENT_MODEL_H
#define TESTS_UNIT_AGENT_MODEL_H

#include <stdarg.h>
#include <stdio.h>

#include "agent/agent.h"
#include "agent_files.h"
#include "base/random.h"

enum {
	LINES_MAX = 60000, /* in a world; later ones are not written */
	LINE_DIGITS = 7,
	LINE_MAX_BYTES = 4000, /* with its newline */
	COLLECTORS = 2,
	INCARNATIONS_MAX = 64, /* a log is seldom begun anew: more are a failure */
	ROTATED_MAX = 24,
	ROTATIONS_MAX = 500, /* in a world: each leaves a file, and there are SIM_FILES_MAX */
};

#define DIRECTORY "/log"
#define LOG       DIRECTORY "/app.log"
#define STATE     "/state"

/* A collector keeps the bytes of an incarnation, and which are there: chunks come again and with
 * holes between them, and are compared with those that it has. */
struct incarnation {
	uint64_t id;
	size_t order;           /* when it came first */
	struct buf bytes, have; /* one byte of `have` for each: it is there */
};

/* Each of the two has a list of its own, since the agent may change from one to the other in the
 * middle of an incarnation, and they tell each other nothing. */
struct collector_of_sim {
	struct incarnation list[INCARNATIONS_MAX];
	size_t count;
};

/* A world has some of these kinds of trouble. They are chosen once, since some of them excuse lines
 * or order: a world without them is judged more strictly. */
struct kinds {
	bool copies;  /* logs are copied and emptied, not renamed */
	bool empties; /* emptied without a copy, removed */
	bool packs;   /* rotated ones are packed */
	bool dates;   /* rotated ones have a date in their names */
	bool heads;   /* files begin alike */
	bool late;    /* two write, and one of them goes on in a renamed file for a while */
	bool kills, cuts, forgets, damages, fulls;
	bool clock_jumps;
	unsigned keep; /* so many rotated files; older ones are removed */
};

/* One struct has all, with the random numbers that decide: a seed gives the same world again. The
 * simulated files and the net lead back to it, since others act while the agent is in a call. */
struct world {
	struct random random;
	struct clock_virtual clock;
	struct sim_files files;
	struct kinds kinds;
	struct agent *agent; /* NULL: it was killed */
	struct agent_net net;
	struct collector_of_sim collectors[COLLECTORS];
	struct sim_file *out[2];  /* open for writing, by two writers */
	struct sim_file *copy;    /* a copy that is being made; the log is emptied after it */
	char packing[64];         /* the file that is being packed; empty: none */
	size_t lines, half_bytes; /* half: so much of the last line is written; 0: all of it */
	struct sim_file *half_in;
	uint8_t excused[LINES_MAX], seen[LINES_MAX]; /* may be missing; a collector has it */
	size_t destroyed;                            /* how often contents were */
	size_t begun_anew; /* how often the log was, behind files that are none of its stream */
	bool busy;         /* somebody acts already, or nobody may: nothing happens meanwhile */
	bool calm;         /* nobody acts, and the agent is not killed */
	bool killed;       /* in a call: the agent is gone when the turn ends */
	bool trace;
	bool forgotten; /* a checkpoint was lost, and no chunk came since */
	bool ambiguous; /* a checkpoint was lost: lines may come again */
	unsigned cut_percent, odd_percent, later_percent;
	size_t incarnations;
	size_t step, turns, rotations, kills, repeated, others, posts;
	unsigned dates;
	char failure[300]; /* the first; empty: none */
};

static inline uint64_t pick(struct world *w, uint64_t below)
{
	return random_below(&w->random, below);
}

static inline bool chance(struct world *w, unsigned percent)
{
	return pick(w, 100) < percent;
}

/* The first failure is kept: those after it follow from it. */
static inline void fail(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline void fail(struct world *w, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (!w->failure[0])
		vsnprintf(w->failure, sizeof(w->failure), fmt, args);
	va_end(args);
}

/* Each line says one thing that happens in a seed that is repeated. */
static inline void tell(const struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline void tell(const struct world *w, const char *fmt, ...)
{
	va_list args;
	if (!w->trace)
		return;
	va_start(args, fmt);
	printf("%6zu ", w->step);
	vprintf(fmt, args);
	printf("\n");
	va_end(args);
}

/* ---- agent_model_files.c --------------------------------------------------------------------- */

/* `3f10000.....`: the number of the line, its lowest digit first, and dots, as many as the number
 * decides. So files do not begin alike, but for their headings: a file that is gone cannot be told
 * from another one by bytes that both have. `to` has LINE_MAX_BYTES; the length is returned. */
size_t model_line_of(size_t line, char *to);
/* The dots alone: whether a line is whole is seen by their count. */
size_t model_line_dots(size_t line);
/* False: these are no digits. */
bool model_line_read(const char *digits, size_t *number);
/* Lines of a content that goes may be missing; those of one that the agent has found may not. */
void model_set_excused(struct world *w, const struct sim_file *file, bool excused);

/* NULL: no file has the name of the log now. */
struct sim_file *model_log_file(struct world *w);
/* Opens the log by its name; it is made where it is not there. */
void model_writer_open(struct world *w, unsigned which);
/* The file is closed: if it has no name either, it is gone. */
void model_writer_let_go(struct world *w, unsigned which);
/* Writes the rest of a line that was written in part, as a program does before it does anything
 * else with its file. */
void model_writer_finish_half(struct world *w);
/* Writes some lines, the last one perhaps in part. */
void model_writer_write(struct world *w, unsigned which);
/* Who has the log open notices that it was renamed: the first writer now, the second one, in a
 * world where there is one, only later. */
void model_writer_reopen(struct world *w);

/* Renames the log, and the rotated ones before it; nothing while a file is copied or packed, which
 * is found by its name. */
void model_rotate(struct world *w);
/* A copy is made in two steps, and the log is emptied with the second. Lines that are written
 * between are lost to all. */
void model_copy_step(struct world *w);
/* Begins: half of the packed file is there. Ends: all of it is, and the other one is gone. */
void model_pack_step(struct world *w);

/* Somebody does something with the files. */
void model_act(struct world *w);
/* Perhaps somebody acts, or the agent is killed: between any two operations on files, and in the
 * middle of requests. `owner` is the world. */
void model_meanwhile(void *owner);

/* ---- agent_model_collectors.c ---------------------------------------------------------------- */

/* The incarnation is added where the collector does not have it. */
struct incarnation *model_incarnation_of(struct world *w, struct collector_of_sim *c, uint64_t id);
/* False: other bytes are there already. Then none is taken. */
bool model_incarnation_take(struct world *w, struct incarnation *in, uint64_t begin,
			    struct slice data);
/* Tells which files the agent reads next, and how far it is. */
void model_tell_plan(const struct world *w);
/* A request of the agent, which may be cut off before it arrives or before its answer does. */
int model_net_call(struct agent_net *net, const char *collector, struct http_call *call,
		   struct errbuf *e);

/* ---- agent_model_right.c --------------------------------------------------------------------- */

/* When all is at rest: each line is with the collectors once, in order, unless it is excused. */
void model_check_all(struct world *w);

#endif
