/* The arrivals of a book in the order of receipt: those of each writer are in that order already,
 * so they are merged. */
#include "base/grow.h"
#include "fault/book_private.h"
#include "store/wait.h"

enum {
	WINDOW = 64, /* arrivals of a writer that are read at a time */
	WINDOW_MAX_BYTES = 8 << 20,
	READ_MAX_BYTES = 2 * STORE_VALUE_MAX_BYTES,
};

struct cursor_writer {
	uint64_t writer, next; /* next: the number to go on with; backward the one after it */
	uint64_t end;          /* forward: the number after the last */
	struct book_arrived window[WINDOW];
	size_t count, at;
	struct arena arena; /* of the window */
	bool over;
	bool looked;
	struct fault_order seen; /* the last one that was looked at, if any was */
};

struct fault_cursor {
	const struct fault_book *book;
	const struct book_positions *positions;
	struct task_queue *queue;
	bool backward;
	struct fault_cursor_filter filter;
	struct store_read *read;
	struct cursor_writer **writers;
	size_t count;
	struct book_arrived given;
};

/* ---- Reading --------------------------------------------------------------------------------- */

/* A slice of a row: from a number on, or backward from before it. */
static int cursor_scan(struct fault_cursor *cursor, uint64_t writer, uint64_t run, uint64_t bound,
		       size_t limit, struct store_request **request, struct errbuf *e)
{
	struct fault_parts key, column;
	struct fault_place place = {writer, run << FAULT_RUN_BITS};
	fault_arrivals_key(&key, cursor->book->tenant, place);
	fault_arrivals_column(&column, bound);
	store_read_reset(cursor->read);
	cursor->read->now_ms = clock_wall_ms(cursor->book->site->clock);
	*request = store_read_add(cursor->read, STORE_CELL_SCAN);
	ASSERT(*request); /* the first of an empty arena */
	struct store_cell_scan *scan = &(*request)->cell_scan;
	*scan = (struct store_cell_scan){.table = TABLE_REPORT_ARRIVALS,
					 .key = key.parts,
					 .limit = limit,
					 .backward = cursor->backward};
	if (cursor->backward)
		scan->to = column.parts;
	else
		scan->from = column.parts;
	int err = store_read_wait(cursor->read, cursor->queue);
	return err ? errbuf_set(e, err, "%s", store_read_sentence(cursor->read, err)) : 0;
}

/* Without its body. */
static int cursor_keep(struct cursor_writer *w, struct fault_arrival *arrival, uint64_t sequence)
{
	arrival->packed = SLICE("");
	arrival->id = arena_copy(&w->arena, arrival->id);
	if (!arrival->id.data)
		return ERR_LIMIT;
	for (size_t i = 0; i < FAULT_TEXTS; i++) {
		struct slice *text = &arrival->facts.texts[i];
		*text = arena_copy(&w->arena, *text);
		if (!text->data)
			return ERR_LIMIT;
	}
	w->window[w->count++] =
		(struct book_arrived){.arrival = *arrival, .place = {w->writer, sequence}};
	return 0;
}

static int cursor_look(struct fault_cursor *cursor, struct cursor_writer *w,
		       struct fault_arrival *arrival, uint64_t sequence)
{
	const struct fault_cursor_filter *filter = &cursor->filter;
	const struct book_arrived arrived = {.arrival = *arrival, .place = {w->writer, sequence}};
	w->over = cursor->backward && arrival->date_us < filter->oldest_us;
	w->looked = true;
	w->seen = book_order_of(&arrived);
	if (w->over || (filter->fits && !filter->fits(filter->owner, &arrived)))
		return 0;
	return cursor_keep(w, arrival, sequence);
}

static int cursor_take_cells(struct fault_cursor *cursor, struct cursor_writer *w,
			     const struct store_cell_scan *scan)
{
	struct clock *clock = cursor->book->site->clock;
	int64_t deadline_us = cursor->filter.deadline_us;
	int err = 0;
	for (size_t i = 0; i < scan->count && !err && !w->over; i++) {
		uint64_t sequence = fault_part_number(scan->cells[i].column.part[0]);
		struct fault_place place = {w->writer, sequence};
		struct fault_arrival arrival;
		if (deadline_us && clock->mono_us(clock) >= deadline_us)
			return ERR_TIMEOUT;
		w->next = cursor->backward ? sequence : sequence + 1;
		if (book_has(cursor->positions, place) &&
		    !fault_arrival_decode(scan->cells[i].value, &arrival) && !arrival.is_void)
			err = cursor_look(cursor, w, &arrival, sequence);
	}
	return err;
}

/* On to the next row, when this one has no more. */
static void cursor_leave_run(const struct fault_cursor *cursor, struct cursor_writer *w,
			     uint64_t run)
{
	if (cursor->backward) {
		w->next = run << FAULT_RUN_BITS;
		w->over = run == 0;
	} else {
		w->next = (run + 1) << FAULT_RUN_BITS;
		w->over = w->next >= w->end;
	}
}

/* Looks at the next slice of a writer, whose window is empty. */
static int cursor_fill(struct fault_cursor *cursor, struct cursor_writer *w, struct errbuf *e)
{
	struct store_request *request;
	uint64_t at = cursor->backward ? w->next - 1 : w->next;
	uint64_t run = at >> FAULT_RUN_BITS;
	arena_reset(&w->arena);
	w->count = w->at = 0;
	int err = cursor_scan(cursor, w->writer, run, w->next, WINDOW, &request, e);
	err = err ? err : cursor_take_cells(cursor, w, &request->cell_scan);
	if (err == ERR_LIMIT)
		errbuf_set(e, err, "reports of one writer take too much memory");
	if (err == ERR_TIMEOUT)
		errbuf_set(e, err, "the reports could not be looked through in time");
	if (!err && !w->over && !request->more && request->cell_scan.count < WINDOW)
		cursor_leave_run(cursor, w, run);
	w->over = w->over || (cursor->backward && w->next == 0);
	return err;
}

/* ---- Where it begins ------------------------------------------------------------------------- */

/* The date of the first arrival from a number on, before `end`. False: there is none. */
static int cursor_date_from(struct fault_cursor *cursor, const struct book_writer *writer,
			    uint64_t from, uint64_t *sequence, int64_t *date_us, bool *there,
			    struct errbuf *e)
{
	bool backward = cursor->backward;
	int err = 0;
	*there = false;
	cursor->backward = false;
	while (!err && !*there && from < writer->next) {
		struct store_request *request;
		struct fault_arrival arrival;
		uint64_t run = from >> FAULT_RUN_BITS;
		err = cursor_scan(cursor, writer->writer, run, from, 1, &request, e);
		if (err || !request->cell_scan.count) {
			/* Cut before its first: the same again. */
			from = !err && request->more ? from : (run + 1) << FAULT_RUN_BITS;
			continue;
		}
		*sequence = fault_part_number(request->cell_scan.cells[0].column.part[0]);
		*there = *sequence < writer->next &&
			 !fault_arrival_decode(request->cell_scan.cells[0].value, &arrival);
		*date_us = *there ? arrival.date_us : 0;
		from = *sequence + 1;
	}
	cursor->backward = backward;
	return err;
}

/* The least number whose arrival, and all after it, are of this time or later. */
static int cursor_find(struct fault_cursor *cursor, const struct book_writer *writer,
		       int64_t date_us, uint64_t *at, struct errbuf *e)
{
	uint64_t low = 0, high = writer->next;
	int err = 0;
	while (low < high && !err) {
		uint64_t middle = low + (high - low) / 2, sequence = middle;
		int64_t seen_us = 0;
		bool there;
		err = cursor_date_from(cursor, writer, middle, &sequence, &seen_us, &there, e);
		if (there && seen_us < date_us)
			low = sequence + 1;
		else
			high = middle;
	}
	*at = low;
	return err;
}

/* Those from `from` on, or those before it: of one date the order decides, so these are looked at
 * one by one when they are given. */
static int cursor_begin_writer(struct fault_cursor *cursor, const struct book_writer *writer,
			       int64_t date_us, struct errbuf *e)
{
	struct cursor_writer *w = mem_zalloc(sizeof(*w));
	int err = 0;
	cursor->writers[cursor->count++] = w;
	arena_init(&w->arena, WINDOW_MAX_BYTES);
	w->writer = writer->writer;
	w->end = writer->next;
	if (cursor->backward && date_us == INT64_MAX)
		w->next = writer->next;
	else
		err = cursor_find(cursor, writer, date_us + cursor->backward, &w->next, e);
	w->over = cursor->backward ? w->next == 0 : w->next >= w->end;
	return err;
}

int fault_cursor_new(const struct fault_book *book, const struct book_positions *positions,
		     struct task_queue *queue, int64_t from_us, bool backward,
		     const struct fault_cursor_filter *filter, struct fault_cursor **to,
		     struct errbuf *e)
{
	struct fault_cursor *cursor = mem_zalloc(sizeof(*cursor));
	int err = 0;
	cursor->book = book;
	cursor->positions = positions;
	cursor->queue = queue;
	cursor->backward = backward;
	cursor->filter = *filter;
	cursor->read = store_read_new(book->site->store, READ_MAX_BYTES);
	cursor->writers = mem_alloc_array(positions->writer_count, sizeof(*cursor->writers));
	for (size_t i = 0; i < positions->writer_count && !err; i++)
		err = cursor_begin_writer(cursor, &positions->writers[i], from_us, e);
	*to = cursor;
	return err;
}

bool fault_cursor_reached(const struct fault_cursor *cursor, struct fault_order *reached)
{
	*reached = (struct fault_order){.date_us = INT64_MIN};
	for (size_t i = 0; i < cursor->count; i++) {
		const struct cursor_writer *w = cursor->writers[i];
		struct fault_order order = w->seen;
		if (w->at < w->count) { /* this arrival was not given */
			order = book_order_of(&w->window[w->at]);
			order.place.sequence++;
		} else if (w->over)
			continue;
		else if (!w->looked)
			return false;
		if (fault_order_compare(&order, reached) > 0)
			*reached = order;
	}
	return true;
}

void fault_cursor_free(struct fault_cursor *cursor)
{
	if (!cursor)
		return;
	for (size_t i = 0; i < cursor->count; i++) {
		arena_release(&cursor->writers[i]->arena);
		mem_free(cursor->writers[i]);
	}
	mem_free(cursor->writers);
	store_read_free(cursor->read);
	mem_free(cursor);
}

static bool cursor_comes_first(const struct fault_cursor *cursor, const struct fault_order *a,
			       const struct fault_order *b)
{
	int order = fault_order_compare(a, b);
	return cursor->backward ? order > 0 : order < 0;
}

/* The writer whose window has the next arrival. NULL: all windows are empty. */
static struct cursor_writer *cursor_best(const struct fault_cursor *cursor,
					 struct fault_order *order)
{
	struct cursor_writer *best = NULL;
	for (size_t i = 0; i < cursor->count; i++) {
		struct cursor_writer *w = cursor->writers[i];
		if (w->at == w->count)
			continue;
		struct fault_order head = book_order_of(&w->window[w->at]);
		if (best && !cursor_comes_first(cursor, &head, order))
			continue;
		best = w;
		*order = head;
	}
	return best;
}

/* The writer that the cursor has looked through least of, among those with an empty window. So no
 * writer without a fitting arrival uses up the time of the others. NULL: no window is empty. */
static struct cursor_writer *cursor_last(const struct fault_cursor *cursor)
{
	struct cursor_writer *last = NULL;
	for (size_t i = 0; i < cursor->count; i++) {
		struct cursor_writer *w = cursor->writers[i];
		if (w->at < w->count || w->over)
			continue;
		if (!w->looked)
			return w;
		if (!last || cursor_comes_first(cursor, &w->seen, &last->seen))
			last = w;
	}
	return last;
}

int fault_cursor_next(struct fault_cursor *cursor, const struct book_arrived **arrived,
		      struct errbuf *e)
{
	struct fault_order order = {0};
	*arrived = NULL;
	for (;;) {
		struct cursor_writer *best = cursor_best(cursor, &order);
		struct cursor_writer *last = cursor_last(cursor);
		bool passed = last && best && last->looked &&
			      cursor_comes_first(cursor, &order, &last->seen);
		if (last && !passed) {
			int err = cursor_fill(cursor, last, e);
			if (err)
				return err;
			continue;
		}
		if (!best)
			return 0;
		cursor->given = best->window[best->at++];
		*arrived = &cursor->given;
		return 0;
	}
}
