/* What the table `chukwa` holds (document K; doc/format-rows.md): texts, which are values that are
 * no numbers, and notes, both of a metric and a source (row_name.h) at a time. Numbers are samples,
 * and no cells.
 *
 * A cell leaves when samples of its metric and time do: a text as raw samples, a note as the
 * longest of their roll-ups. The name of a row says of several metrics that they may be its own
 * (row_name_split): the longest retention of these holds. A text or a note that is written again is
 * there once.
 *
 * For threads that may wait. */
#ifndef BOARD_ROWS_H
#define BOARD_ROWS_H

#include "base/clock.h"
#include "base/exec.h"
#include "retention/retention.h"
#include "store/store.h"

enum {
	ROW_TEXT_MAX_BYTES = 4096,
	ROW_SOURCE_MAX_BYTES = 1024,
	ROW_METRIC_MAX_BYTES = 4096,
	ROW_NOTES_MAX = 1000,                    /* of a metric and a source on one day */
	ROW_NOTES_OF_CHUNKS = ROW_NOTES_MAX / 2, /* tags of chunks leave room for those of users */
	ROW_NOTE_ID_MAX_BYTES = 40,
};

/* Filled in by whoever starts it. The rules may be others later, all of which stay as they are for
 * as long as there is a site. */
struct row_site {
	struct store *store;
	struct clock *clock;
	const struct retention_rules *_Atomic retention;
	const struct granularities *granularities;
};

struct row {
	struct slice tenant, metric, source;
};

/* Adds a text to a write, with the write's stamp. ERR_INVALID with a sentence: the time is none of
 * 1970 to 2149, or so old that such a text has expired. ERR_LIMIT: the text is too long, or the
 * write full; then the sentence says so. */
int row_text_put(const struct row_site *site, struct store_write *write, const struct row *row,
		 int64_t ts_ms, struct slice text, int64_t stamp_us, struct errbuf *e) MUST_CHECK;

/* A note's id is its time and the first bytes of the MD5 of its text:
 * 1700000000000-900150983cd24fb0. */
struct row_note_id {
	char text[ROW_NOTE_ID_MAX_BYTES];
};

/* Durable when it returns. Errors as those of row_text_put; ERR_LIMIT, too, where the row has
 * `most` notes on that day already; or the store's, with a sentence. */
int row_note_add(const struct row_site *site, struct task_queue *queue, const struct row *row,
		 int64_t ts_ms, struct slice text, size_t most, struct row_note_id *id,
		 struct errbuf *e) MUST_CHECK;
/* ERR_NOT_FOUND with a sentence: there is none. */
int row_note_delete(const struct row_site *site, struct task_queue *queue, const struct row *row,
		    struct slice id, struct errbuf *e) MUST_CHECK;

enum row_family { ROW_TEXTS, ROW_NOTES };

struct row_cell {
	int64_t ts_ms;
	struct slice text;
	struct row_note_id id; /* of a note */
};

struct row_span {
	int64_t start_ms, end_ms; /* start <= time < end */
	/* Asked before each day is read: 0, or the error with which it ends. May be NULL. */
	int (*may_go_on)(void *owner, struct errbuf *e);
};

/* Gives the texts or the notes of a time to `each`, in the order of their times; stops at the first
 * error of `each`. A cell of another form is passed over, and counted. The store's error has a
 * sentence. */
int row_each(const struct row_site *site, struct task_queue *queue, const struct row *row,
	     enum row_family family, const struct row_span *span,
	     int (*each)(const struct row_cell *cell, void *owner), void *owner,
	     struct errbuf *e) MUST_CHECK;

#endif
