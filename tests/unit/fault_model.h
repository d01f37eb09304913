/* Private to fault_model: the processes, who sends, and what its parts share.
 *
 * fault_model.c says what it is and runs seeds, fault_model_run.c one of them,
 * fault_model_processes.c has what takes, counts and reads, fault_model_clients.c who sends,
 * fault_model_right.c what is right, fault_model_groups.c what is right of groups. */
#ifndef TESTS_UNIT_FAULT_MODEL_H
#define TESTS_UNIT_FAULT_MODEL_H

#include <stdio.h>

#include "contract/far.h"
#include "fault/collect.h"
#include "fault/erase.h"
#include "fault/groups.h"
#include "fault/intake.h"
#include "fault/minutes.h"
#include "lease/lease.h"
#include "slow_store.h"
#include "stepped.h"
#include "task_step.h"

enum {
	TENANTS = 2,
	WORDS = 5,
	BODY_BYTES = 40,
	PROCESSES_MAX = 5,
	CLIENTS = 4,
	ITEMS = 4, /* of a submission, at most */
	CONTENTS = 24,
	CONTEXTS = 4,
	EXCEPTIONS = 4,
	IDS_MAX = 1000,
	ACKS_MAX = 10000,
	LIST_MAX = 3,
	NAMES_MAX = 4,
	GROUPS = 5, /* the last is none */
	USERS = 3,
	GROUPS_MAX = 3,
	HOURS = 24,
	LEASE_MS = 30000,
	SKEW_MS = 3000,      /* of the clocks of any two processes of a far store, at most */
	WRITE_MAX_MS = 8000, /* what is acknowledged later has failed */
	TICK_MS = 500,
	EVERY_MS = 1000, /* between turns of an owner */
	DAY_MS = 86400000,
	LATE_MS = 180000, /* so long after a batch ended a row of it may land (far.h) */
	/* So long volumes are kept for who reads them. */
	CLEAR_MS = STORE_QUERY_DEADLINE_MAX_MS,
	/* Of the time in which nobody waits until all has landed: less than the day after which
	 * nothing of a dead process lands any more. */
	UNSETTLED_MAX_MS = 85000000,
	WRITE_LEAST_BYTES = 6000, /* of a write of a book: any of its cells fits */
	RESTS_MAX = 30000,        /* rounds until all is at rest */
	KEEP_MS = 2 * DAY_MS,     /* then a report may be collected */
	QUIET_MS = DAY_MS / 4,    /* then a writer is closed (intake.c) */
};
#define BEGIN_DAY INT64_C(19000)

/* A process' own clock, so far from the model's. */
struct process_clock {
	struct clock clock;
	struct clock_virtual *of;
	int64_t off_us;
};

/* A report that a list gave. */
struct listed {
	struct fault_order order;
	unsigned id;
	int64_t duration_us, statements;
	unsigned context, exception;
};

/* Who watches a book: all reports that it had then, and that it was told of since. */
struct watch {
	bool on;
	uint64_t from, missed;
	struct listed *list;
	size_t count;
};

/* What is asked: a day, reports, all groups of a day, one group, or the news. */
enum asked { ASKED_DAY, ASKED_LIST, ASKED_GROUPS, ASKED_GROUP, ASKED_NEWS };

/* Something that is asked of a book, and the answer. */
struct answer {
	enum asked what;
	unsigned tenant;
	int64_t day;
	bool of_landed;
	struct fault_list_filter filter; /* of a list */
	struct fault_order reached;
	int context; /* that the filter wants; -1: any */
	int word;    /* that it searches for; -1: none */
	char word_text[8];
	struct words_term term;
	struct words_query query;
	size_t stop; /* after so many */
	size_t look; /* what had landed when it was asked */
	int err;
	struct errbuf e;
	unsigned group;
	struct fault_groups sums;
	struct fault_group_history history;
	struct fault_day_view *view;
	struct listed *list;
	size_t count;
	struct watch *watch; /* of the book that is asked; NULL: nobody watches it */
};

struct model;
struct process;

/* Asks again and again, by a book of its own. */
struct reader {
	struct process *process;
	struct fault_book *books[TENANTS];
	struct watch watches[TENANTS];
	struct stepped work;
	struct answer answer;
	bool works;
	size_t stands; /* until this step of the model */
};

/* Takes reports, counts those of tenants that it owns, and answers; as fault.c does. */
struct process {
	struct model *model;
	size_t place;
	struct store *store; /* a far one, or: */
	struct slow_store slow;
	struct process_clock clock;
	char name[24];
	bool dead, frozen;

	struct task_queue queue;
	struct fault_site site;
	struct fault_intake *intake;

	struct lease_session *session;
	struct leases *leases;
	struct sessions sessions;
	struct partitions held;
	bool owns[TENANTS];
	int64_t until_ms, next_ms;
	unsigned erases_of; /* the tenant of an erasure */
	struct slice erases;
	uint64_t erasure; /* its ticket; 0: it was not taken */
	struct fault_book *books[TENANTS];
	struct watch watches[TENANTS];
	struct stepped work;
	bool works;
	size_t stands; /* until this step of the model */

	struct reader reader;
};

/* Who sends reports until they are taken. */
struct client {
	struct model *model;
	struct process *process; /* it waits for an answer; NULL: it does not */
	bool waits;              /* to send what was not taken again */
	unsigned tenant;
	size_t count;
	struct report {
		unsigned id, content;
		char text[24]; /* the id */
		char body[BODY_BYTES];
		char packed[64];
		size_t packed_len;
		uint64_t dictionary;
	} reports[ITEMS];
	struct fault_item items[ITEMS];
	struct fault_submission submission;
};

/* What a client was told, of a report that is not refused. */
struct ack {
	unsigned tenant, id, content;
	enum fault_outcome outcome;
	int64_t date_us;
};

/* A report that has landed. */
struct arrival {
	unsigned tenant, id, content;
	struct fault_order order;
	size_t look;   /* the first that saw it */
	bool attached; /* a file came with it */
	bool gone;     /* it was collected; it counts all the same */
};

/* What was given of a minute last: of a name, or of a group. */
struct given {
	unsigned tenant;
	int64_t minute;
	struct hash128 hash;
	uint64_t reports, wanted;
};

struct model {
	uint64_t seed;
	struct random random;
	struct clock_virtual clock;
	struct slow slow;
	struct far *far;       /* NULL: the slow store */
	struct store *landed;  /* what is stored */
	int64_t last_stamp_us; /* of processes that died */
	unsigned incarnations;
	struct task_queue own; /* of the test's own reads */
	bool trace;
	size_t step;

	uint64_t pace_ms;   /* the most that passes at a time, mostly */
	uint64_t edges;     /* how many steps of a thousand go to an edge of time */
	unsigned nights;    /* that pass at once, of ten thousand steps */
	unsigned disturbs;  /* how often clocks are set and processes freeze, per mille */
	unsigned far_steps; /* at a time */
	unsigned pauses;    /* how often threads stand for a while, in percent of their steps */
	unsigned sluggish;  /* how readily one of the processes moves, in percent */
	size_t which;       /* of them */
	unsigned contents, ids, reuse, many; /* of clients */
	unsigned takers;    /* the first of the processes, to which reports are sent */
	size_t check_steps; /* how often all comes to rest */
	unsigned fails, refuses, full, cut;
	size_t slice_arrivals, write_bytes;
	int64_t first_day, unsettled_ms;

	struct process processes[PROCESSES_MAX];
	size_t process_count;
	struct client clients[CLIENTS];
	unsigned next_id;
	bool sent[TENANTS][IDS_MAX]; /* somebody sent a report of this id */

	struct fault_site site; /* of who looks at what has landed */
	struct fault_book *onlookers[TENANTS];
	size_t looks;
	struct arrival *arrivals; /* by tenant, then in the order of receipt */
	size_t arrival_count, arrival_room;
	size_t sealed; /* of them */
	size_t twice;  /* of these, whose arrival is still there */
	struct ack *acks;
	size_t ack_count, acks_seen; /* seen: of them is known that they are right */
	size_t passes;               /* that were begun */
	size_t pass_of[TENANTS];     /* the number of the last that ended well */
	size_t watch;                /* for so many steps it is looked at more often */
	bool faulty, rests, seals;
	bool collects;
	unsigned counts;    /* how often minutes are counted after a pass, in percent */
	bool late[TENANTS]; /* a report turned up in a day of which some may be gone */
	size_t newest;      /* reports of a group that no collection takes */
	uint64_t gone;

	struct given *given;
	size_t given_count, given_room;

	/* Who follows messages by their dates, as readers do: ids, and how far it has come. */
	struct hash_table followed[TENANTS];
	int64_t follow_us[TENANTS];

	bool erases;                     /* an erasure is at work: nobody asks */
	bool erased[TENANTS][IDS_MAX];   /* its entry has landed: it counts as never sent */
	bool had_group[TENANTS][GROUPS]; /* such a report was of it */
	bool any_erased;
	bool erased_users[TENANTS][USERS];

	uint64_t answers, exact; /* that were compared, and those with nothing between */
	char failure[512];
};

static inline uint64_t pick(struct model *m, uint64_t bound)
{
	return random_below(&m->random, bound);
}

static inline bool chance(struct model *m, unsigned percent)
{
	return pick(m, 100) < percent;
}

static inline int64_t now_ms(struct model *m)
{
	return clock_wall_ms(&m->clock.clock);
}

/* Of a day, and the time of day, to be read in a trace. */
static inline void trace(struct model *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline void trace(struct model *m, const char *fmt, ...)
{
	va_list args;
	if (!m->trace)
		return;
	int64_t ms = now_ms(m), of_day_ms = ms % DAY_MS;
	printf("%6zu %lld.%02lld:%02lld:%06.3f  ", m->step, (long long)(ms / DAY_MS - BEGIN_DAY),
	       (long long)(of_day_ms / 3600000), (long long)(of_day_ms / 60000 % 60),
	       (double)(of_day_ms % 60000) / 1000);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

static inline bool differ(struct model *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
static inline bool differ(struct model *m, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (!m->failure[0])
		vsnprintf(m->failure, sizeof(m->failure), fmt, args);
	va_end(args);
	trace(m, "WRONG: %s", m->failure);
	return false;
}

extern const struct slice tenant_names[TENANTS];
/* The body of a report, of two words: its id, and which of the WORDS it has. */
struct slice body_of(unsigned id, char to[BODY_BYTES]);

/* ---- fault_model_run.c ----------------------------------------------------------------------- */

/* How the seeds are run. */
struct run {
	size_t steps;
	bool trace;
	uint64_t answers, exact, arrivals, sealed, gone, wrong; /* seen; and seeds */
};

/* Whether the seed goes well; if not, `how` says what is wrong. */
bool run_seed(struct run *run, uint64_t seed, char *how, size_t how_bytes);

/* ---- fault_model_processes.c ----------------------------------------------------------------- */

void process_open(struct model *m, struct process *p, size_t place);
/* As a crash does: whatever is at work comes to nothing. */
void process_kill(struct process *p);
/* Neither it nor what it has handed over gets on. Of a far store. */
void process_freeze(struct process *p, bool frozen);
/* How far a process' clock is off. */
int64_t clock_off_us(struct model *m);
/* A turn of its owner, when it is time. */
void process_tick(struct process *p);
/* Something is asked of its reader. */
void process_ask(struct process *p);
/* Begins to erase all reports of a user, if it owns the tenant. */
void process_erase(struct process *p, unsigned tenant, struct slice user);
/* Goes on by a step. False: there is nothing that it could do. */
bool process_step(struct process *p);

/* ---- fault_model_clients.c ------------------------------------------------------------------- */

/* What a report of this content has. */
struct content {
	struct slice context, exception;
	struct slice group, user; /* a group of none: it has none */
	struct slice tags;
	const char *name; /* of the volume, escaped */
	int64_t duration_us, statements;
};
struct content content_of(unsigned content);
struct slice group_name(unsigned group);
/* Which of the contexts this is, and of the exceptions; else one more than there are. */
unsigned context_of(struct slice text);
unsigned exception_of(struct slice text);
/* The number of a report's id. IDS_MAX: it is none. */
unsigned id_of(struct slice text);
/* Sends what is to be sent again, or something new. */
void client_begin(struct client *c);

/* ---- fault_model_right.c --------------------------------------------------------------------- */

/* Sees what has landed. What was acknowledged is there, and nothing that nobody sent. */
bool look(struct model *m);
/* Something is asked, of a book that may be anybody's. */
void answer_choose(struct model *m, struct answer *a);
void answer_run(struct answer *a, struct fault_book *book, struct task_queue *queue);
/* Its book is gone. */
void watch_end(struct watch *watch);
/* It has what had landed when it was asked, and nothing that has not landed. */
bool answer_check(struct model *m, struct answer *a, const char *whose);
/* Whether nothing has landed since it was asked. */
bool answer_is_exact(const struct model *m, const struct answer *a);
/* At any moment: who looks at what has landed sees what a recount gives, whether he has a book
 * already or begins with the checkpoint. */
bool check_landed(struct model *m);
/* When all is at rest, and what is to be counted has been: so do all, and days are closed. */
bool check_rest(struct model *m);
/* When that has lasted: rows of volumes are gone. */
bool check_cleared(struct model *m);
/* Whether the day may have one that could not be counted in its place: the day cannot be counted
 * anew. */
bool is_late(struct model *m, unsigned tenant, int64_t day);
int64_t day_of(int64_t date_us);
size_t hour_of(int64_t date_us);

/* ---- fault_model_groups.c -------------------------------------------------------------------- */

/* Whether groups are what a recount of what has landed gives. Where something has landed meanwhile,
 * no report is in them that nobody sent. */
bool check_groups(struct model *m, const struct answer *a, const char *whose);
/* Whether of each minute that is over what was given last is what has landed. */
bool check_minutes(struct model *m, unsigned tenant);
/* A minute is given. */
int take_minute(void *owner, const struct fault_minute *minute, struct errbuf *e);
struct minute_owner {
	struct model *m;
	unsigned tenant;
};
/* Reads messages behind those that it has read. */
void follow_messages(struct model *m, unsigned tenant);
/* Who follows them has all. Whether there is a message of each group, and of each day that is over,
 * and of those only. */
bool check_messages(struct model *m, unsigned tenant);

#endif
