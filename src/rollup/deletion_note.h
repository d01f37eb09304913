/* Private to deletions.c: what is noted of a deletion, as JSON.
 *
 *   {"version": 1, "tenant": "t", "metric": "m", "tags": ["h=a|b"], "from": 0, "to": 1,
 *    "whole": false, "by": "who"}
 *
 * `metric` empty: all; times in ms. */
#ifndef ROLLUP_DELETION_NOTE_H
#define ROLLUP_DELETION_NOTE_H

#include "base/buf.h"
#include "rollup/deletions.h"

void deletion_note_put(const struct rollup_deletion_spec *spec, struct buf *out);
/* The texts are in the note or in the arena. ERR_INVALID: it is none; ERR_VERSION: it is of a later
 * program and may say what this one does not know, so it is left to that; each with a sentence. */
int deletion_note_read(struct slice text, struct arena *arena, struct rollup_deletion_spec *spec,
		       struct errbuf *e) MUST_CHECK;

#endif
