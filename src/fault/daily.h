/* The daily report of a tenant, in the order in which the reports of oops-tools are read: which
 * groups are new; which pages took longest, and had most statements; the time-outs of pages; then
 * the groups of the day by class, those with most reports first. A page is a context.
 *
 * It is made of the summary of the day, of what its groups add up to and what was said of them
 * (book.h, groups.h, said.h), and of some few whole reports: the first of the lists of the summary,
 * for their contexts and statements, and one of each group of time-outs that stands first.
 *
 * Each section has a maximum, and says what is beyond it. */
#ifndef FAULT_DAILY_H
#define FAULT_DAILY_H

#include "fault/fault.h"
#include "fault/said.h"
#include "fault/statements.h"

enum {
	FAULT_DAILY_GROUPS_MAX = 50,    /* of a section */
	FAULT_DAILY_PAGES_MAX = 10,     /* likewise */
	FAULT_DAILY_LOOKS_MAX = 30,     /* reports of a list that are read to find its pages */
	FAULT_DAILY_STATEMENTS_MAX = 5, /* groups of time-outs of a section, whose statement is
					    looked up */
	FAULT_DAILY_CONTEXTS_MAX = 5,   /* of a group */
};

enum fault_daily_section {
	FAULT_DAILY_NEW,           /* groups without a report of a day before */
	FAULT_DAILY_DURATIONS,     /* pages */
	FAULT_DAILY_STATEMENTS,    /* pages */
	FAULT_DAILY_TIMEOUT_PAGES, /* pages */
	/* Each group is of one of these classes, by the exception that most of its reports have. */
	FAULT_DAILY_EXCEPTIONS, /* all that are of no other class */
	FAULT_DAILY_TIMEOUTS,
	FAULT_DAILY_SOFT_TIMEOUTS,
	FAULT_DAILY_INFORMATIONAL, /* by level */
	FAULT_DAILY_USER_GENERATED,
	FAULT_DAILY_UNAUTHORIZED,
	FAULT_DAILY_NOT_FOUND,
	FAULT_DAILY_SECTIONS
};
/* What a section is called in JSON, and its title. */
const char *fault_daily_name(enum fault_daily_section section);
const char *fault_daily_title(enum fault_daily_section section);

struct fault_daily_group {
	struct slice name;
	const struct fault_tally *tally;
	struct slice exception; /* may be empty */
	enum fault_daily_section section;
	uint64_t before; /* reports of the day before */
	bool is_new;
	/* The rest is known of groups that are shown. */
	bool judged;
	const struct fault_said *said; /* NULL: nothing was said */
	enum fault_status status;
	bool again;                       /* reports have opened it again */
	struct fault_statement statement; /* of a time-out: the most expensive one; count 0: none */
};

/* A context with its number of reports. */
struct fault_daily_context {
	struct slice context; /* empty: those without one */
	uint64_t count;
};
struct fault_daily_contexts {
	struct fault_daily_context list[FAULT_DAILY_CONTEXTS_MAX]; /* the most first */
	size_t count;
	uint64_t rest; /* reports of others */
};
/* Those of a group; at most `max`. */
void fault_daily_contexts(const struct fault_daily_group *group, size_t max,
			  struct fault_daily_contexts *to);

struct fault_daily_groups {
	struct fault_daily_group *list[FAULT_DAILY_GROUPS_MAX];
	size_t count;
	size_t unique;           /* groups there are */
	uint64_t reports, shown; /* of all these groups, and of the list */
};

/* The highest of a page. */
struct fault_daily_top {
	uint64_t value; /* microseconds, or statements */
	struct slice id, context;
	struct fault_statement repeated; /* of a list of statements; count 0: none */
};
struct fault_daily_tops {
	struct fault_daily_top list[FAULT_DAILY_PAGES_MAX];
	size_t count;
	size_t listed, looked_at; /* reports of the summary's list */
	size_t unread;            /* of these, those that can be read no more */
};

struct fault_daily_timeout_page {
	struct hash128 hash; /* of the context */
	struct slice context;
	uint64_t hard, soft;
};
struct fault_daily_timeout_pages {
	struct fault_daily_timeout_page list[FAULT_DAILY_PAGES_MAX];
	size_t count, unique;
	uint64_t hard_rest, soft_rest; /* of other pages */
};

struct fault_daily {
	struct slice tenant; /* the caller's */
	int64_t day;
	bool closed;            /* else it is the report so far */
	uint64_t total, before; /* reports of the day, and of the day before */
	uint64_t rest;          /* reports of groups that are not counted */
	/* When the first and the last were received, of those in groups; of none both are 0. */
	int64_t first_us, last_us;
	size_t group_count;
	struct fault_daily_groups groups[FAULT_DAILY_SECTIONS]; /* of those that have groups */
	struct fault_daily_tops longest, most;
	struct fault_daily_timeout_pages timeouts;

	/* private */
	struct fault_groups sums;
	struct fault_daily_group *list;
	struct arena arena;
};

struct fault_daily_question {
	struct slice tenant;
	int64_t day;
	int64_t deadline_us; /* monotonic; 0: there is none */
};

/* Waits for the store. ERR_TIMEOUT: the deadline passed; ERR_LIMIT; or the store's error, with a
 * sentence. The report is to be released also after an error. */
int fault_daily_read(struct fault *fault, struct task_queue *queue,
		     const struct fault_daily_question *question, struct fault_daily *daily,
		     struct errbuf *e) MUST_CHECK;
void fault_daily_release(struct fault_daily *daily);

/* For fault_daily_read, and for tests. Makes `list` of the groups of `sums`; whether one is new,
 * and how many reports it had before, is found out then. Pure. */
void fault_daily_list(struct fault_daily *daily);
/* Puts those of `list` into their sections. Pure. */
void fault_daily_arrange(struct fault_daily *daily);

/* As plain text, whose lines have at most 80 characters, and as a page of HTML that needs nothing
 * else. Text of reports is text in both. Links of the page are those of this server. */
enum { FAULT_DAILY_COLUMNS = 80 };
void fault_daily_put_text(const struct fault_daily *daily, struct buf *out);
void fault_daily_put_html(const struct fault_daily *daily, struct buf *out);

#endif
