/* Private to rollup/redis/: the text of an epoch, as Redis and the store have it:
 *
 *     STORE SLOT RUN LOT
 *
 * with a blank between two: of which store the marks are (16 hexadecimal digits), how wide slots
 * are (s), which run of Redis it is, a number drawn by lot (16 hexadecimal digits). */
#ifndef MARKS_REDIS_EPOCH_TEXT_H
#define MARKS_REDIS_EPOCH_TEXT_H

#include "base/base.h"

enum { EPOCH_MAX_BYTES = 200, RUN_MAX_BYTES = 64 };

struct epoch_text {
	uint64_t store, lot;
	int64_t slot_s;
	struct slice run; /* less than RUN_MAX_BYTES, no blanks, not empty */
};

/* False: it is none. The run lies in the text. */
bool epoch_text_read(struct slice text, struct epoch_text *epoch) MUST_CHECK;
void epoch_text_write(const struct epoch_text *epoch, char text[EPOCH_MAX_BYTES]);

#endif
