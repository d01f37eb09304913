/* The known attributes of a report, a row each: what O calls it, where each dialect has it, what
 * lists and summaries do with it. */
#ifndef FAULT_ATTRIBUTES_H
#define FAULT_ATTRIBUTES_H

#include "fault/report.h"

enum fault_shape {
	FAULT_SHAPE_TEXT,     /* a text; numbers and true, false are written as one */
	FAULT_SHAPE_DURATION, /* a number, or a text that is one */
	FAULT_SHAPE_TIMELINE, /* timeline.h */
	FAULT_SHAPE_TAGS,     /* tags.h; or any other */
	FAULT_SHAPE_ANY,
};

/* A document may have an attribute under any of its names. The first one that is there, in the
 * order of this struct, gives the attribute. A python name beside it stays an attribute of its own;
 * a sent one is left out, as it means something else in a report. */
struct fault_attribute {
	const char *name;   /* as O has it; ends with `.`: all that begin so */
	const char *sent;   /* in a document, if a report has another name for it; else NULL */
	const char *python; /* as python-oops has it; NULL: the same, or it has none */
	/* Where an event of Sentry's clients has it (sentry.h): member.member, other places behind
	 * a `|`; NULL: nowhere, or it is made of several members. */
	const char *sentry;
	enum fault_shape shape;
	int fact;         /* enum fault_text; -1: none of them. Of two rows the first one wins. */
	const char *help; /* a sentence */
};

enum { FAULT_ATTRIBUTES_MAX = 64 }; /* a set of rows is a word */

extern const struct fault_attribute fault_attributes[];
extern const size_t fault_attribute_count;

enum fault_named { FAULT_NAMED_SO, FAULT_NAMED_AS_SENT, FAULT_NAMED_IN_PYTHON };

/* The row of a name in a document, and which of the row's names it is; NULL: it is not known. */
const struct fault_attribute *fault_attribute_find(struct slice name, enum fault_named *how);

#endif
