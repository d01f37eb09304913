/* Whether what the tables say fits together. The engine looks at pages, checksums and keys (struct
 * store_verify); what values say is known by the module whose table it is (stream/verify.h,
 * board/verify.h), which tells here what is wrong.
 *
 * For threads that may wait; one at a time. */
#ifndef STORE_TABLES_VERIFY_H
#define STORE_TABLES_VERIFY_H

#include "base/clock.h"
#include "base/exec.h"
#include "store/store.h"

struct tables_verify {
	struct store *store;
	struct clock *clock;
	struct task_queue *queue;
	bool all_words; /* each filter is compared with all words of its block; else one of 16 is */
	/* A sentence of what is wrong, with table, key and column. */
	void (*tell)(void *owner, const char *sentence);
	void (*goes_on)(void *owner); /* often; may be NULL */
	void *owner;

	uint64_t checked, problems; /* cells; sentences */
	/* Cells that nobody needs: what was written twice, or removed and has come back. They harm
	 * nobody. */
	uint64_t orphans;
};

/* A cell is looked at. */
void tables_verify_count(struct tables_verify *v);
/* Tells that it goes on, where nothing is counted for long. */
void tables_verify_goes_on(struct tables_verify *v);
/* `column`: NULL: it is the row. */
void tables_verify_tell(struct tables_verify *v, enum table table, const struct store_parts *key,
			const struct store_parts *column, const char *fmt, ...) PRINTF_LIKE(5, 6);

/* Gives each cell of a row, or each row of a table, to `each`. What the store cannot read is told,
 * and is no error: the others are looked at all the same. */
int tables_verify_row(struct tables_verify *v, enum table table, const struct store_parts *key,
		      int (*each)(const struct store_cell *cell, void *owner),
		      void *owner) MUST_CHECK;
int tables_verify_rows(struct tables_verify *v, enum table table,
		       int (*each)(const struct store_row *row, void *owner),
		       void *owner) MUST_CHECK;

#endif
