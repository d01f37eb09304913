/* The timeline of a report: what was done, when and for how long. Two shapes are read:
 *
 *     O            [{"start": "0", "length": "34", "database": "main", "statement": "SELECT ..."}]
 *                  numbers or texts; `statment`, as the document spells it, too
 *     python-oops  [[start, stop, category, detail, callstack], ...], 4 items or more, or fewer
 *
 * Times are ms since the request began.
 *
 * An item of O with a database or a statement is a statement of a database; one of python-oops if
 * its category says so (SQL-main, db.query), or its detail begins as SQL does. Pure. */
#ifndef FAULT_TIMELINE_H
#define FAULT_TIMELINE_H

#include "wire/json.h"

struct fault_step {
	double start_ms, length_ms; /* NaN: not said, or no number */
	struct slice category;      /* or the database's name */
	struct slice detail;        /* the statement; may be empty */
	bool database;              /* it is a statement of a database */
};

/* Reads one item. False: it has neither shape. */
bool fault_step_read(const struct json *item, struct fault_step *step) MUST_CHECK;

/* How many statements of a database an array has; -1: it is no array, or no item could be read, as
 * of an empty one. *bad: items that have neither shape. */
int64_t fault_timeline_statements(const struct json *timeline, size_t *bad);

#endif
