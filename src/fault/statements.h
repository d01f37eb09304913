/* Statements of databases in the timeline of a report (timeline.h), without what varies in them
 * (group.h): which was made most often, and which took most time altogether. Pure. */
#ifndef FAULT_STATEMENTS_H
#define FAULT_STATEMENTS_H

#include "base/mem.h"
#include "wire/json.h"

enum { FAULT_STATEMENT_MAX_BYTES = 200 }; /* of one that is shown; a longer one is cut */

struct fault_statement {
	struct slice text; /* in the arena */
	uint64_t count;    /* 0: there is none */
	uint64_t total_us; /* of those whose length is known */
};

struct fault_statements {
	struct fault_statement repeated;  /* made most often, twice or more */
	struct fault_statement expensive; /* that took most time */
};

/* If two statements are equal in that, the first in the timeline is taken. ERR_LIMIT: the arena is
 * full. */
int fault_statements_read(const struct json *timeline, struct arena *arena,
			  struct fault_statements *to) MUST_CHECK;
/* The same of a report's body. A timeline that is none has no statements. */
int fault_statements_of(struct slice body, struct arena *arena,
			struct fault_statements *to) MUST_CHECK;

#endif
