/* Private to stored settings (stored_settings.h): their cells as they are read, what is to be
 * written to them under the condition that they are as they were read, and the texts in them. One
 * thread; waits for the store. */
#ifndef ROLLUP_SETTINGS_CELLS_H
#define ROLLUP_SETTINGS_CELLS_H

#include "base/buf.h"
#include "base/exec.h"
#include "retention/granularity.h"
#include "store/store.h"

enum {
	SETTINGS_SUFFIXES_MAX_BYTES = 64 << 10,
	/* How often what was settled is looked at again because another process was first, or
	 * because it is not known what became of it. */
	SETTINGS_TRIES = 20,
};

enum settings_row { ROW_RETENTION_RAW, ROW_ROLLUP_SINCE, ROW_SHARED, SETTINGS_ROWS };
extern const struct store_parts settings_rows[SETTINGS_ROWS];
/* What follows the time of which all marks have been made; and a column's name. */
extern const struct slice settings_rebuilt_note, settings_recount_name;

/* The settings as they are read, and what becomes of them. */
struct settings_cells {
	struct task_queue *queue;
	struct store_read *read;
	struct store_write *write;
	struct settings_row_cells {
		struct store_request *request;
		struct store_cell *list; /* what they point to lies in the read's memory */
		size_t count;
	} rows[SETTINGS_ROWS];
	bool empty; /* there is no series: nothing was ever written */
	/* Of what is to be written. Another process may have been first. */
	struct store_write_cond **outcomes;
	size_t outcome_count;
};

void settings_begin(struct settings_cells *c, struct store *store, struct task_queue *queue);
void settings_end(struct settings_cells *c);
/* All cells, anew. */
int settings_read(struct settings_cells *c, int64_t now_ms) MUST_CHECK;
const struct store_cell *settings_find(const struct settings_cells *c, enum settings_row row,
				       struct slice name);

/* Each adds to what is to be written. In the place of `before`, NULL: there is none. */
int settings_replace(struct settings_cells *c, enum settings_row row, struct slice name,
		     const struct store_cell *before, struct slice value) MUST_CHECK;
/* The same, unless it is there. */
int settings_put(struct settings_cells *c, enum settings_row row, struct slice name,
		 const struct store_cell *before, struct slice value) MUST_CHECK;
int settings_put_ms(struct settings_cells *c, struct slice name, const struct store_cell *before,
		    int64_t ms) MUST_CHECK;
/* Of ROW_ROLLUP_SINCE. */
int settings_remove(struct settings_cells *c, const struct store_cell *cell) MUST_CHECK;

/* Writes what there is to be written. ERR_RETRY: another process was first with some of it, and has
 * to be heard. ERR_UNKNOWN, in a store that is shared: it is to be looked at, too. */
int settings_write(struct settings_cells *c) MUST_CHECK;
bool settings_are_to_be_read_again(const struct settings_cells *c, int err);

/* ---- Texts ----------------------------------------------------------------------------------- */

/* INT64_MAX: it is none. */
int64_t settings_ms(struct slice text);
/* The time in the cell of a granularity, or in the first line of `recount`. */
int64_t settings_since_ms(struct slice text);
struct slice settings_width_name(const struct granularity *granularity,
				 char to[GRANULARITY_WIDTH_MAX_BYTES]);
void settings_lines_add(struct buf *to, struct slice line);
/* Adds the lines of `from` that neither `other` nor `to` has. */
void settings_lines_add_missing(struct buf *to, struct slice from, struct slice other);

#endif
