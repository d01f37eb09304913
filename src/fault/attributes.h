/* The known attributes of a report, a row each: what O calls it, where each dialect has it, what
 * lists and summaries do with it. */
#ifndef FAULT_ATTRIBUTES_H
#define FAULT_ATTRIBUTES_H

#include "fault/report.h"

enum fault_shape {
	FAULT_SHAPE_TEXT,     /* a text; numbers and true, false are written as one */
	FAULT_SHAPE_DURATION, /* a number, or a text that is one */
	FAULT_SHAPE_TIMELINE, /* timeline.h */
	FAULT_SHAPE_ANY,
};

struct fault_attribute {
	const char *name;   /* as O has it; ends with `.`: all that begin so */
	const char *python; /* as python-oops has it; NULL: the same, or it has none */
	enum fault_shape shape;
	int fact;           /* enum fault_text; -1: none of them */
	const char *help;   /* a sentence */
};

extern const struct fault_attribute fault_attributes[];
extern const size_t fault_attribute_count;

#endif
