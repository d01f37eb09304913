/* The arrivals of a book in the order of receipt: those of each writer are in that order already,
 * so they are merged. Runs that are sealed are read as segments. */
#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "fault/cursor_run.h"
#include "store/wait.h"

enum {
	WINDOW = FAULT_RUN_PART, /* arrivals of a writer that are read at a time */
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
	/* The last one that was looked at, if any was. Before the first of a sealed run it is a
	 * time that comes before all of the run, so the run is not opened before its time has come.
	 */
	struct fault_order seen;
	bool in_sealed;      /* it is within this run, which is sealed, and this is its cell */
	uint64_t sealed_run; /* until it is left; `next` may be beyond its last report */
	struct fault_run_cell cell;
	struct cursor_run *run; /* NULL: it was not opened yet */
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
	bool warned; /* that it lacks something */
};

static bool cursor_comes_first(const struct fault_cursor *cursor, const struct fault_order *a,
			       const struct fault_order *b)
{
	int order = fault_order_compare(a, b);
	return cursor->backward ? order > 0 : order < 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static struct fault_sealed_site cursor_site(const struct fault_cursor *cursor)
{
	return (struct fault_sealed_site){cursor->book->site, cursor->book->tenant, cursor->queue};
}

/* What is asked of a run: whether it is sealed, and a slice of its arrivals. */
struct cursor_question {
	struct fault_run_question run;
	struct store_request *arrivals;
};

/* From a number on, or backward from before it. */
static int cursor_scan(struct fault_cursor *cursor, uint64_t writer, uint64_t run, uint64_t bound,
		       size_t limit, struct cursor_question *question, struct errbuf *e)
{
	struct fault_parts key, column;
	struct fault_place place = {writer, run << FAULT_RUN_BITS};
	fault_arrivals_key(&key, cursor->book->tenant, place);
	fault_arrivals_column(&column, bound);
	store_read_reset(cursor->read);
	cursor->read->now_ms = clock_wall_ms(cursor->book->site->clock);
	fault_run_ask(&question->run, cursor->read, cursor->book->tenant, place);
	question->arrivals = store_read_add(cursor->read, STORE_CELL_SCAN);
	ASSERT(question->arrivals); /* among the first of an empty arena */
	struct store_cell_scan *scan = &question->arrivals->cell_scan;
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

/* Lists go on without what is damaged. */
static void cursor_warn_damaged(struct fault_cursor *cursor, const char *why)
{
	stat_add(STAT_fault_arrivals_damaged, 1);
	if (cursor->warned)
		return;
	cursor->warned = true;
	log_warn("faults: a list of reports of tenant " SHOWN " lacks some: %s",
		 SHOWN_OF(cursor->book->tenant), why);
}

static bool cursor_is_damage(int err)
{
	return err == ERR_DAMAGED || err == ERR_VERSION || err == ERR_LIMIT;
}

/* Without its body. */
static int cursor_keep(struct cursor_writer *w, struct fault_arrival *arrival, uint64_t sequence)
{
	if (fault_arrival_keep(arrival, &w->arena))
		return ERR_LIMIT;
	w->window[w->count++] =
		(struct book_arrived){.arrival = *arrival, .place = {w->writer, sequence}};
	return 0;
}

/* place: of the report in the segment, where the run is sealed. */
static int cursor_search(struct fault_cursor *cursor, struct cursor_writer *w,
			 const struct fault_arrival *arrival, size_t place, bool *fits,
			 struct errbuf *e)
{
	struct fault_sealed_site from = cursor_site(cursor);
	*fits = true;
	if (!cursor->filter.search)
		return 0;
	int err = w->run ? cursor_run_fits(&from, w->run, &cursor->filter, place, fits, e)
			 : fault_search_fits(cursor->filter.search, arrival, fits);
	if (!cursor_is_damage(err))
		return err;
	/* No report fits of a sealed block that cannot be read: all of them lie in it together. */
	cursor_warn_damaged(cursor, w->run ? e->text : "a body cannot be unpacked");
	*fits = false;
	return 0;
}

static int cursor_look(struct fault_cursor *cursor, struct cursor_writer *w,
		       struct fault_arrival *arrival, uint64_t sequence, size_t place,
		       struct errbuf *e)
{
	const struct fault_cursor_filter *filter = &cursor->filter;
	const struct book_arrived arrived = {.arrival = *arrival, .place = {w->writer, sequence}};
	bool fits;
	w->over = cursor->backward && arrival->date_us < filter->oldest_us;
	w->looked = true;
	w->seen = book_order_of(&arrived);
	if (w->over || (filter->fits && !filter->fits(filter->owner, &arrived)))
		return 0;
	int err = cursor_search(cursor, w, arrival, place, &fits, e);
	return err || !fits ? err : cursor_keep(w, arrival, sequence);
}

static bool cursor_is_late(const struct fault_cursor *cursor)
{
	struct clock *clock = cursor->book->site->clock;
	return cursor->filter.deadline_us && clock->mono_us(clock) >= cursor->filter.deadline_us;
}

static int cursor_take_cells(struct fault_cursor *cursor, struct cursor_writer *w,
			     const struct store_cell_scan *scan, struct errbuf *e)
{
	int err = 0;
	for (size_t i = 0; i < scan->count && !err && !w->over; i++) {
		uint64_t sequence = fault_part_number(scan->cells[i].column.part[0]);
		struct fault_place place = {w->writer, sequence};
		struct fault_arrival arrival;
		if (cursor_is_late(cursor))
			return ERR_TIMEOUT;
		w->next = cursor->backward ? sequence : sequence + 1;
		if (book_has(cursor->positions, place) &&
		    !fault_arrival_decode(scan->cells[i].value, &arrival) && !arrival.is_void)
			err = cursor_look(cursor, w, &arrival, sequence, 0, e);
	}
	return err;
}

/* On to the next row, when this one has no more. */
static void cursor_leave_run(const struct fault_cursor *cursor, struct cursor_writer *w,
			     uint64_t run)
{
	cursor_run_free(w->run);
	w->run = NULL;
	w->in_sealed = false;
	if (cursor->backward) {
		w->next = run << FAULT_RUN_BITS;
		w->over = run == 0;
	} else {
		w->next = (run + 1) << FAULT_RUN_BITS;
		w->over = w->next >= w->end;
	}
}

/* A sealed run begins: what of time it has is known. */
static void cursor_enter_sealed(const struct fault_cursor *cursor, struct cursor_writer *w,
				uint64_t run, const struct fault_run_cell *cell)
{
	struct fault_order before = {.date_us = cell->last_us + 1};
	if (!cursor->backward)
		before = (struct fault_order){.date_us = cell->first_us - 1,
					      .place = {UINT64_MAX, UINT64_MAX}};
	w->in_sealed = true;
	w->sealed_run = run;
	w->cell = *cell;
	if (!cell->reports) {
		cursor_leave_run(cursor, w, run);
		return;
	}
	w->over = cursor->backward && cell->last_us < cursor->filter.oldest_us;
	/* Some of it may have been given as arrivals. */
	if (!w->looked || cursor_comes_first(cursor, &w->seen, &before))
		w->seen = before;
	w->looked = true;
}

static int cursor_take_sealed(struct fault_cursor *cursor, struct cursor_writer *w, uint64_t run,
			      struct errbuf *e)
{
	const struct fault_segment *segment = cursor_run_segment(w->run);
	size_t at = fault_segment_find(segment, w->next);
	int err = 0;
	while (!err && !w->over && w->count < WINDOW) {
		if (cursor_is_late(cursor))
			return ERR_TIMEOUT;
		if (at == (cursor->backward ? 0 : segment->count)) {
			cursor_leave_run(cursor, w, run);
			break;
		}
		size_t place = cursor->backward ? --at : at++;
		struct fault_arrival arrival = segment->reports[place].arrival;
		uint64_t sequence = segment->reports[place].sequence;
		w->next = cursor->backward ? sequence : sequence + 1;
		if (book_has(cursor->positions, (struct fault_place){w->writer, sequence}))
			err = cursor_look(cursor, w, &arrival, sequence, place, e);
	}
	return err;
}

static int cursor_fill_sealed(struct fault_cursor *cursor, struct cursor_writer *w, uint64_t run,
			      struct errbuf *e)
{
	const struct fault_sealed_site from = cursor_site(cursor);
	const struct fault_place place = {w->writer, run << FAULT_RUN_BITS};
	bool none = false;
	int err = 0;
	if (!w->run)
		err = cursor_run_open(&from, place, &w->cell, cursor->filter.search, &w->run, &none,
				      e);
	if (!err && !none)
		err = cursor_take_sealed(cursor, w, run, e);
	if (cursor_is_damage(err))
		cursor_warn_damaged(cursor, e->text);
	if (cursor_is_damage(err) || none)
		cursor_leave_run(cursor, w, run);
	return cursor_is_damage(err) ? 0 : err;
}

static int cursor_fill_arrivals(struct fault_cursor *cursor, struct cursor_writer *w, uint64_t run,
				struct errbuf *e)
{
	struct cursor_question question;
	struct fault_run_cell cell;
	int err = cursor_scan(cursor, w->writer, run, w->next, WINDOW, &question, e);
	if (err)
		return err;
	err = fault_run_answer(&question.run, &cell);
	if (!err) {
		cursor_enter_sealed(cursor, w, run, &cell);
		return 0;
	}
	const struct store_request *arrivals = question.arrivals;
	if (err != ERR_NOT_FOUND && !arrivals->cell_scan.count && !arrivals->more) {
		cursor_warn_damaged(cursor, "a cell of table report_runs cannot be read");
		cursor_leave_run(cursor, w, run);
		return 0;
	}
	err = cursor_take_cells(cursor, w, &arrivals->cell_scan, e);
	if (err == ERR_LIMIT)
		errbuf_set(e, err, "reports of one writer take too much memory");
	if (!err && !w->over && !arrivals->more && arrivals->cell_scan.count < WINDOW)
		cursor_leave_run(cursor, w, run);
	return err;
}

/* Looks at the next slice of a writer, whose window is empty. */
static int cursor_fill(struct fault_cursor *cursor, struct cursor_writer *w, struct errbuf *e)
{
	uint64_t at = cursor->backward ? w->next - 1 : w->next;
	uint64_t run = w->in_sealed ? w->sealed_run : at >> FAULT_RUN_BITS;
	arena_reset(&w->arena);
	w->count = w->at = 0;
	int err = w->in_sealed ? cursor_fill_sealed(cursor, w, run, e)
			       : cursor_fill_arrivals(cursor, w, run, e);
	if (err == ERR_TIMEOUT)
		errbuf_set(e, err, "the reports could not be looked through in time");
	w->over = w->over || (cursor->backward && w->next == 0);
	return err;
}

/* ---- Where it begins ------------------------------------------------------------------------- */

/* What a run says of a time. */
struct cursor_found {
	bool there;        /* an arrival, and its date */
	uint64_t sequence; /* of it */
	int64_t date_us;
	bool sealed; /* the run is, and this is its cell */
	struct fault_run_cell cell;
};

/* The first arrival of a run from a number on. */
static int cursor_look_from(struct fault_cursor *cursor, const struct book_writer *writer,
			    uint64_t *from, struct cursor_found *found, struct errbuf *e)
{
	struct cursor_question question;
	struct fault_arrival arrival;
	uint64_t run = *from >> FAULT_RUN_BITS;
	int err = cursor_scan(cursor, writer->writer, run, *from, 1, &question, e);
	if (err)
		return err;
	const struct store_request *arrivals = question.arrivals;
	err = fault_run_answer(&question.run, &found->cell);
	found->sealed = !err && found->cell.reports;
	if (found->sealed)
		return 0;
	if (err && err != ERR_NOT_FOUND && !arrivals->cell_scan.count && !arrivals->more)
		cursor_warn_damaged(cursor, "a cell of table report_runs cannot be read");
	if (err != ERR_NOT_FOUND || !arrivals->cell_scan.count) {
		/* Cut before its first: the same again. */
		bool cut = err == ERR_NOT_FOUND && arrivals->more;
		*from = cut ? *from : (run + 1) << FAULT_RUN_BITS;
		return 0;
	}
	found->sequence = fault_part_number(arrivals->cell_scan.cells[0].column.part[0]);
	found->there = found->sequence < writer->next &&
		       !fault_arrival_decode(arrivals->cell_scan.cells[0].value, &arrival);
	found->date_us = found->there ? arrival.date_us : 0;
	*from = found->sequence + 1;
	return 0;
}

/* The first from a number on that says anything, before the writer's end. */
static int cursor_date_from(struct fault_cursor *cursor, const struct book_writer *writer,
			    uint64_t from, struct cursor_found *found, struct errbuf *e)
{
	bool backward = cursor->backward;
	int err = 0;
	*found = (struct cursor_found){.there = false};
	cursor->backward = false;
	while (!err && !found->there && !found->sealed && from < writer->next) {
		found->sequence = from;
		err = cursor_look_from(cursor, writer, &from, found, e);
	}
	cursor->backward = backward;
	return err;
}

/* The least number in a sealed run whose report is of this time or later; there is one. */
static int cursor_find_sealed(struct fault_cursor *cursor, const struct book_writer *writer,
			      const struct cursor_found *found, int64_t date_us, uint64_t *at,
			      struct errbuf *e)
{
	const struct fault_sealed_site from = cursor_site(cursor);
	const struct fault_place place = {writer->writer, found->sequence};
	struct fault_run *run = fault_run_new(place, &found->cell);
	int err = fault_run_read_directory(&from, run, e);
	size_t first = fault_segment_find_date(&run->segment, date_us);
	if (first < run->segment.count)
		*at = run->segment.reports[first].sequence;
	fault_run_free(run);
	if (!cursor_is_damage(err))
		return err;
	cursor_warn_damaged(cursor, e->text); /* the run is passed over when it is read */
	return 0;
}

/* The least number whose arrival, and all after it, are of this time or later. */
static int cursor_find(struct fault_cursor *cursor, const struct book_writer *writer,
		       int64_t date_us, uint64_t *at, struct errbuf *e)
{
	uint64_t low = 0, high = writer->next;
	int err = 0;
	while (low < high && !err) {
		struct cursor_found found;
		uint64_t middle = low + (high - low) / 2;
		err = cursor_date_from(cursor, writer, middle, &found, e);
		uint64_t run = found.sequence & ~(uint64_t)(FAULT_RUN_REPORTS - 1);
		if (found.sealed && found.cell.last_us < date_us)
			low = run + FAULT_RUN_REPORTS;
		else if (found.sealed && found.cell.first_us < date_us) {
			low = high = run;
			err = cursor_find_sealed(cursor, writer, &found, date_us, &low, e);
		} else if (found.there && found.date_us < date_us)
			low = found.sequence + 1;
		else if (found.sealed && run <= middle)
			high = run > low ? run : low;
		else
			high = middle;
	}
	*at = low < writer->next ? low : writer->next;
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

bool fault_cursor_lacks(const struct fault_cursor *cursor)
{
	return cursor->warned;
}

void fault_cursor_free(struct fault_cursor *cursor)
{
	if (!cursor)
		return;
	for (size_t i = 0; i < cursor->count; i++) {
		cursor_run_free(cursor->writers[i]->run);
		arena_release(&cursor->writers[i]->arena);
		mem_free(cursor->writers[i]);
	}
	mem_free(cursor->writers);
	store_read_free(cursor->read);
	mem_free(cursor);
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
