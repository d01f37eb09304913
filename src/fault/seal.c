/* Sealing: runs that a checkpoint has as a whole are packed close, and then their arrivals go.
 *
 *     arrivals -> segment durable -> cell of the run durable -> a query deadline -> cleared
 *
 * A run is sealed when the last whole checkpoint has all of it, so nobody who begins with that
 * checkpoint looks for its arrivals; who began before has at most a query deadline to come to an
 * end (book_read.c). What is made is a function of the arrivals, which never change; its stamp was
 * taken before they were read. So a run that two owners seal is sealed, by the one or the other,
 * and a segment whose cells were not all written is there for nobody.
 *
 * Bodies are read block by block, so a run of any size takes the memory of one block. */
#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "fault/book_private.h"
#include "fault/pack.h"
#include "fault/put.h"
#include "fault/sealed.h"
#include "store/wait.h"

enum {
	SEND_BYTES = 256 << 10, /* a write is sent then */
	WRITE_MAX_BYTES = SEND_BYTES + STORE_VALUE_MAX_BYTES + (64 << 10),
	FILTER_MAX_BYTES = 512 << 10,
	FILTERS_BYTES = FAULT_RUN_REPORTS * 64, /* of a cell, and one filter more */
	CHUNK_BYTES = FAULT_RUN_REPORTS * 128,  /* of a directory */
	CELL_MAX_BYTES = 1 << 10,
	WORDS_MAX_BYTES = 2 * FAULT_BODY_MAX_BYTES,
	FACTS_MAX_BYTES = FAULT_DIRECTORY_MAX_BYTES,
	READ_MAX_BYTES = 2 * STORE_VALUE_MAX_BYTES,
	DIRECTORY_PACKED_MAX_BYTES = FAULT_DIRECTORY_MAX_BYTES + (1 << 20),
	BODIES_MAX_BYTES = 512 << 20,     /* of a run: some seconds */
	FILTERS_ALL_MAX_BYTES = 16 << 20, /* of a run; further blocks have none */
	BUSY_MS = 1000,                   /* then the owner does another pass first */
};

/* Up to which run a writer is sealed. */
struct seal_writer {
	uint64_t writer, next_run;
};

/* A run whose arrivals are to go. */
struct seal_due {
	struct fault_place place;
	struct fault_run_cell cell;
	int64_t due_ms; /* monotonic */
};

struct fault_seals {
	uint64_t tenure;             /* in which this was read */
	struct seal_writer *writers; /* by number, ascending */
	size_t count, room;
	struct seal_due *due; /* in the order of time */
	size_t due_count, due_room;
};

void book_free_seals(struct fault_book *book)
{
	if (!book->seals)
		return;
	mem_free(book->seals->writers);
	mem_free(book->seals->due);
	mem_free(book->seals);
	book->seals = NULL;
}

/* ---- What is sealed -------------------------------------------------------------------------- */

static struct seal_writer *seals_writer(struct fault_seals *seals, uint64_t writer)
{
	size_t low = 0, high = seals->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (seals->writers[middle].writer < writer)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < seals->count && seals->writers[low].writer == writer)
		return &seals->writers[low];
	GROW(seals->writers, seals->room, seals->count + 1);
	memmove(&seals->writers[low + 1], &seals->writers[low],
		(seals->count - low) * sizeof(*seals->writers));
	seals->count++;
	seals->writers[low] = (struct seal_writer){writer, 0};
	return &seals->writers[low];
}

static void seals_note(struct fault_book *book, struct fault_place place,
		       const struct fault_run_cell *cell)
{
	struct fault_seals *seals = book->seals;
	struct seal_writer *writer = seals_writer(seals, place.writer);
	uint64_t next_run = (place.sequence >> FAULT_RUN_BITS) + 1;
	writer->next_run = writer->next_run > next_run ? writer->next_run : next_run;
	if (cell->cleared)
		return;
	GROW(seals->due, seals->due_room, seals->due_count + 1);
	seals->due[seals->due_count++] = (struct seal_due){
		place, *cell, clock_mono_ms(book->site->clock) + STORE_QUERY_DEADLINE_MAX_MS};
}

/* In this tenure. */
static void seals_pass_over(struct fault_book *book, struct fault_place place, const char *why)
{
	struct seal_writer *writer = seals_writer(book->seals, place.writer);
	uint64_t next_run = (place.sequence >> FAULT_RUN_BITS) + 1;
	writer->next_run = writer->next_run > next_run ? writer->next_run : next_run;
	log_warn("faults: reports %llu and later of writer %016llx of tenant " SHOWN
		 " stay as they are: %s",
		 (unsigned long long)place.sequence, (unsigned long long)place.writer,
		 SHOWN_OF(book->tenant), why);
}

static int seals_take_run(const struct store_cell *cell, void *owner)
{
	struct fault_book *book = owner;
	struct fault_run_cell run;
	struct fault_place place = {fault_part_number(cell->column.part[0]),
				    fault_part_number(cell->column.part[1]) << FAULT_RUN_BITS};
	int err = fault_run_cell_decode(cell->value, &run);
	/* The arrivals of one that cannot be read may be gone: it is not sealed once more. */
	if (err) {
		seals_pass_over(book, place, "its cell of table report_runs cannot be read");
		return 0;
	}
	seals_note(book, place, &run);
	return 0;
}

/* Once in a tenure. */
static int seals_read(struct fault_book *book, struct task_queue *queue, uint64_t tenure,
		      struct errbuf *e)
{
	struct fault_parts key;
	if (book->seals && book->seals->tenure == tenure)
		return 0;
	book_free_seals(book);
	book->seals = mem_zalloc(sizeof(*book->seals));
	fault_runs_key(&key, book->tenant);
	int err = store_row_wait(book->site->store, queue, clock_wall_ms(book->site->clock),
				 TABLE_REPORT_RUNS, &key.parts, seals_take_run, book, e);
	if (!err)
		book->seals->tenure = tenure;
	return err;
}

/* ---- One run --------------------------------------------------------------------------------- */

struct seal_run {
	struct fault_place place; /* its first */
	bool ended;               /* its writer has: it need not be full */
};

struct seal_work {
	struct fault_book *book;
	struct task_queue *queue;
	struct errbuf *e;
	int64_t stamp_us, until_ms;
	struct fault_place place;
	bool ended;
	struct fault_run_cell cell; /* to be */
	struct arena arena;         /* of the facts */
	struct fault_sealed *reports;
	size_t count, cells;
	struct fault_segment segment;
	struct store_read *read;
	struct store_write *write;
	size_t written;      /* bytes of the values in the write */
	size_t filter_bytes; /* of all so far */
	struct buf bodies, packed, filters;
	struct words_set words;
	struct arena words_arena;
};

static int seal_send(struct seal_work *s)
{
	if (clock_wall_ms(s->book->site->clock) >= s->until_ms)
		return errbuf_set(s->e, ERR_TIMEOUT, "the time of this owner is over");
	int err = store_write_wait(s->write, s->queue);
	const char *why = s->write->error.text[0] ? s->write->error.text : err_text(err);
	if (err)
		return errbuf_set(s->e, err, "%s", why);
	store_write_reset(s->write);
	s->written = 0;
	return 0;
}

/* Cells of a segment may come one write after the other: nobody looks at them yet. */
static int seal_put_value(struct seal_work *s, enum table table, const struct store_parts *key,
			  const struct store_parts *column, struct slice value)
{
	int err = store_cell_put(s->write, table, key, column, value, s->stamp_us, 0);
	if (err)
		return errbuf_set(s->e, err, "%s",
				  s->write->error.text[0] ? s->write->error.text : err_text(err));
	s->written += value.len;
	return s->written >= SEND_BYTES ? seal_send(s) : 0;
}

static int seal_put_part(struct seal_work *s, enum fault_segment_part part, uint64_t number,
			 struct slice value)
{
	struct fault_parts key, column;
	fault_arrivals_key(&key, s->book->tenant, s->place);
	fault_segments_column(&column, s->cell.name, part, number);
	s->cell.bytes += value.len;
	return seal_put_value(s, TABLE_REPORT_SEGMENTS, &key.parts, &column.parts, value);
}

static int seal_take_arrival(const struct store_cell *cell, void *owner)
{
	struct seal_work *s = owner;
	struct fault_sealed *report = &s->reports[s->count];
	struct fault_arrival *arrival = &report->arrival;
	if (s->cells++ == FAULT_RUN_REPORTS || fault_arrival_decode(cell->value, arrival))
		return ERR_DAMAGED;
	if (arrival->is_void)
		return 0;
	report->sequence = fault_part_number(cell->column.part[0]);
	arrival->packed = SLICE("");
	arrival->id = arena_copy(&s->arena, arrival->id);
	bool kept = arrival->id.data;
	for (size_t i = 0; i < FAULT_TEXTS; i++) {
		arrival->facts.texts[i] = arena_copy(&s->arena, arrival->facts.texts[i]);
		kept = kept && arrival->facts.texts[i].data;
	}
	s->count += kept;
	return kept ? 0 : ERR_LIMIT;
}

/* Whether they can be sealed, and read after that. */
static int seal_check(const struct seal_work *s)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct fault_arrival *arrival = &s->reports[i].arrival;
		if (i && arrival->date_us < s->reports[i - 1].arrival.date_us)
			return errbuf_set(s->e, ERR_DAMAGED, "their times fall");
		if (arrival->body_bytes > FAULT_BODY_MAX_BYTES)
			return errbuf_set(s->e, ERR_DAMAGED, "a body is too long");
		bytes += arrival->body_bytes;
	}
	if (bytes > BODIES_MAX_BYTES)
		return errbuf_set(s->e, ERR_LIMIT, "they have more than %d MiB",
				  BODIES_MAX_BYTES >> 20);
	return 0;
}

/* The facts of all reports, and in which order they go. ERR_DAMAGED: an arrival cannot be read. */
static int seal_plan(struct seal_work *s)
{
	struct fault_parts key;
	fault_arrivals_key(&key, s->book->tenant, s->place);
	int err =
		store_row_wait(s->book->site->store, s->queue, clock_wall_ms(s->book->site->clock),
			       TABLE_REPORT_ARRIVALS, &key.parts, seal_take_arrival, s, s->e);
	if (err)
		return err;
	if (s->cells < FAULT_RUN_REPORTS && !s->ended)
		return errbuf_set(s->e, ERR_DAMAGED, "some of them are not there");
	err = seal_check(s);
	if (err)
		return err;
	fault_segment_plan(&s->segment, s->reports, s->count);
	s->cell.reports = s->count;
	s->cell.blocks = s->segment.block_count;
	if (s->count) {
		s->cell.first_us = s->reports[0].arrival.date_us;
		s->cell.last_us = s->reports[s->count - 1].arrival.date_us;
	}
	return 0;
}

static int seal_take_body(struct seal_work *s, const struct fault_sealed *report,
			  const struct store_request *request)
{
	struct fault_arrival arrival;
	if (!request->cell_get.found ||
	    fault_arrival_decode(request->cell_get.cell.value, &arrival) || arrival.is_void ||
	    arrival.body_bytes != report->arrival.body_bytes)
		return ERR_DAMAGED;
	int err = fault_body_unpack(&arrival, &s->bodies);
	if (!err)
		fault_search_add_words(&s->words, &s->words_arena, &report->arrival,
				       fault_sealed_body(report, &s->bodies));
	return err;
}

/* Some of the reports of a block, as many as their arrivals fit into a read. */
static int seal_read_bodies(struct seal_work *s, const struct fault_block *block, uint32_t *at)
{
	struct store_request *asked[FAULT_BLOCK_REPORTS];
	struct fault_parts keys[FAULT_BLOCK_REPORTS], columns[FAULT_BLOCK_REPORTS];
	uint32_t count = block->count - *at;
	store_read_reset(s->read);
	s->read->now_ms = clock_wall_ms(s->book->site->clock);
	for (uint32_t i = 0; i < count; i++) {
		const struct fault_sealed *report =
			&s->segment.reports[s->segment.order[block->first + *at + i]];
		const struct fault_place place = {s->place.writer, report->sequence};
		fault_arrivals_key(&keys[i], s->book->tenant, place);
		fault_arrivals_column(&columns[i], place.sequence);
		asked[i] = store_read_add(s->read, STORE_CELL_GET);
		ASSERT(asked[i]); /* some few in an empty arena */
		asked[i]->cell_get = (struct store_cell_get){.table = TABLE_REPORT_ARRIVALS,
							     .key = keys[i].parts,
							     .column = columns[i].parts};
	}
	int err = store_read_wait(s->read, s->queue);
	if (err)
		return errbuf_set(s->e, err, "%s", store_read_sentence(s->read, err));
	for (uint32_t i = 0; i < count && !err && !asked[i]->more; i++, ++*at)
		err = seal_take_body(s, &s->segment.reports[s->segment.order[block->first + *at]],
				     asked[i]);
	return err;
}

static int seal_flush_filters(struct seal_work *s, uint64_t first, uint64_t count)
{
	struct buf value;
	buf_init(&value, STORE_VALUE_MAX_BYTES);
	fault_filters_begin(first, count, &value);
	buf_append(&value, s->filters.data, s->filters.len);
	int err = value.failed ? ERR_LIMIT : 0;
	if (!err && count)
		err = seal_put_part(s, FAULT_SEGMENT_FILTERS, first, buf_slice(&value));
	buf_release(&value);
	buf_clear(&s->filters);
	return err;
}

static int seal_block(struct seal_work *s, size_t number)
{
	const struct fault_block *block = &s->segment.blocks[number];
	struct buf filter;
	int err = 0;
	buf_clear(&s->bodies);
	buf_clear(&s->packed);
	words_set_clear(&s->words);
	for (uint32_t at = 0; at < block->count && !err;)
		err = seal_read_bodies(s, block, &at);
	if (err)
		return err;
	fault_pack(buf_slice(&s->bodies), &s->packed);
	buf_init(&filter, FILTER_MAX_BYTES);
	if (s->filter_bytes < FILTERS_ALL_MAX_BYTES)
		words_filter_put(&s->words, &filter);
	s->filter_bytes += filter.len;
	err = s->packed.failed
		      ? ERR_LIMIT
		      : seal_put_part(s, FAULT_SEGMENT_BLOCK, number, buf_slice(&s->packed));
	fault_filters_put(buf_slice(&filter), &s->filters);
	buf_release(&filter);
	return err;
}

static int seal_blocks(struct seal_work *s)
{
	uint64_t first = 0;
	int err = 0;
	for (size_t i = 0; i < s->segment.block_count && !err; i++) {
		err = seal_block(s, i);
		if (!err && s->filters.len >= FILTERS_BYTES) {
			err = seal_flush_filters(s, first, i + 1 - first);
			first = i + 1;
		}
	}
	return err ? err : seal_flush_filters(s, first, s->segment.block_count - first);
}

static int seal_put_directory(struct seal_work *s)
{
	struct buf bytes;
	int err = 0;
	buf_init(&bytes, DIRECTORY_PACKED_MAX_BYTES);
	fault_segment_encode(&s->segment, &bytes);
	ASSERT(!bytes.failed); /* zstd adds less than that */
	for (size_t at = 0; at < bytes.len && !err; at += CHUNK_BYTES) {
		size_t len = smaller_of((int64_t)(bytes.len - at), CHUNK_BYTES);
		err = seal_put_part(s, FAULT_SEGMENT_DIRECTORY, s->cell.chunks++,
				    (struct slice){bytes.data + at, len});
	}
	buf_release(&bytes);
	return err;
}

/* All before is durable. */
static int seal_put_cell(struct seal_work *s)
{
	struct fault_parts key, column;
	struct buf value;
	buf_init(&value, CELL_MAX_BYTES);
	fault_run_cell_encode(&s->cell, &value);
	fault_runs_key(&key, s->book->tenant);
	fault_runs_column(&column, s->place);
	int err =
		seal_put_value(s, TABLE_REPORT_RUNS, &key.parts, &column.parts, buf_slice(&value));
	buf_release(&value);
	return err ? err : seal_send(s);
}

static int seal_do(struct seal_work *s)
{
	int err = seal_plan(s);
	err = err ? err : seal_blocks(s);
	err = err ? err : seal_put_directory(s);
	err = err ? err : seal_send(s);
	return err ? err : seal_put_cell(s);
}

static void sealing_init(struct seal_work *s, struct fault_book *book, struct task_queue *queue,
			 const struct seal_run *run, int64_t until_ms, struct errbuf *e)
{
	struct slice holder = book->site->holder;
	*s = (struct seal_work){
		.book = book,
		.queue = queue,
		.e = e,
		.stamp_us = store_stamp(book->site->store),
		.until_ms = until_ms,
		.place = run->place,
		.ended = run->ended,
	};
	/* A process that seals a run again writes the same cells again. */
	s->cell.name = hash64(holder.data, holder.len, run->place.writer ^ run->place.sequence);
	arena_init(&s->arena, FACTS_MAX_BYTES);
	s->reports = mem_alloc_array(FAULT_RUN_REPORTS + 1, sizeof(*s->reports));
	s->read = store_read_new(book->site->store, READ_MAX_BYTES);
	s->write = store_write_new(book->site->store, WRITE_MAX_BYTES);
	buf_init(&s->bodies, FAULT_BODY_MAX_BYTES);
	buf_init(&s->packed, 2 * FAULT_BODY_MAX_BYTES);
	buf_init(&s->filters, 2 * STORE_VALUE_MAX_BYTES);
	words_set_init(&s->words);
	arena_init(&s->words_arena, WORDS_MAX_BYTES);
}

static void sealing_release(struct seal_work *s)
{
	fault_segment_release(&s->segment);
	arena_release(&s->arena);
	mem_free(s->reports);
	store_read_free(s->read);
	store_write_free(s->write);
	buf_release(&s->bodies);
	buf_release(&s->packed);
	buf_release(&s->filters);
	words_set_release(&s->words);
	arena_release(&s->words_arena);
}

/* What cannot be read stays where it is: its run is not sealed. */
static int seal_run(struct fault_book *book, struct task_queue *queue, const struct seal_run *run,
		    int64_t until_ms, struct errbuf *e)
{
	struct seal_work *s = mem_alloc(sizeof(*s));
	sealing_init(s, book, queue, run, until_ms, e);
	int err = s->stamp_us / 1000 < until_ms
			  ? seal_do(s)
			  : errbuf_set(e, ERR_TIMEOUT, "the time of this owner is over");
	if (!err) {
		seals_note(book, s->place, &s->cell);
		stat_add(STAT_fault_runs_sealed, 1);
		stat_add(STAT_fault_reports_sealed, s->cell.reports);
		stat_add(STAT_fault_sealed_bytes, s->cell.bytes);
	} else if (clock_wall_ms(book->site->clock) >= until_ms) {
		err = ERR_TIMEOUT; /* another owner may have been at it */
	} else if (err == ERR_DAMAGED || err == ERR_VERSION || err == ERR_LIMIT) {
		seals_pass_over(book, s->place, e->text[0] ? e->text : err_text(err));
		err = 0;
	}
	sealing_release(s);
	mem_free(s);
	return err;
}

/* ---- All of a tenant ------------------------------------------------------------------------- */

/* Of each writer the next run that is to be sealed. With the lock. */
static size_t seals_list(struct fault_book *book, struct seal_run **to)
{
	const struct book_positions *positions = &book->positions;
	struct seal_run *list = mem_alloc_array(positions->writer_count, sizeof(*list));
	size_t count = 0;
	for (size_t i = 0; i < positions->writer_count; i++) {
		const struct book_writer *writer = &positions->writers[i];
		uint64_t run = seals_writer(book->seals, writer->writer)->next_run;
		if (run < writer->whole_runs)
			list[count++] = (struct seal_run){{writer->writer, run << FAULT_RUN_BITS},
							  writer->ended};
	}
	*to = list;
	return count;
}

/* *more: there may be another run of some writer. */
static int seals_seal(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
		      int64_t busy_ms, bool *more, struct errbuf *e)
{
	struct seal_run *list = NULL;
	size_t count = 0;
	pthread_mutex_lock(&book->lock);
	if (book->owned && book->version.tenure == book->seals->tenure)
		count = seals_list(book, &list);
	pthread_mutex_unlock(&book->lock);
	int err = 0;
	for (size_t i = 0; i < count && !err; i++) {
		err = seal_run(book, queue, &list[i], until_ms, e);
		if (clock_mono_ms(book->site->clock) >= busy_ms)
			break;
	}
	mem_free(list);
	*more = count > 0;
	return err;
}

static int seals_clear_one(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			   struct seal_due *due, struct errbuf *e)
{
	struct fault_parts key, runs_key, column;
	struct buf value;
	int64_t stamp_us = store_stamp(book->site->store);
	struct store_write *write = store_write_new(book->site->store, WRITE_MAX_BYTES);
	due->cell.cleared = true;
	buf_init(&value, CELL_MAX_BYTES);
	fault_run_cell_encode(&due->cell, &value);
	fault_arrivals_key(&key, book->tenant, due->place);
	fault_runs_key(&runs_key, book->tenant);
	fault_runs_column(&column, due->place);
	int err = store_row_delete(write, TABLE_REPORT_ARRIVALS, &key.parts, stamp_us);
	store_write_next_stage(write);
	err = err ? err
		  : store_cell_put(write, TABLE_REPORT_RUNS, &runs_key.parts, &column.parts,
				   buf_slice(&value), stamp_us, 0);
	if (!err && (stamp_us / 1000 >= until_ms || clock_wall_ms(book->site->clock) >= until_ms))
		err = errbuf_set(e, ERR_TIMEOUT, "the time of this owner is over");
	err = err ? err : store_write_wait(write, queue);
	if (err && !e->text[0])
		errbuf_set(e, err, "%s", write->error.text[0] ? write->error.text : err_text(err));
	buf_release(&value);
	store_write_free(write);
	return err;
}

/* The first cell of the run's row from a column on. ERR_NOT_FOUND: there is none. */
static int seals_next_part(struct fault_book *book, struct task_queue *queue,
			   const struct seal_due *due, struct store_read *read,
			   struct fault_parts *at, struct errbuf *e)
{
	struct fault_parts key;
	store_read_reset(read);
	read->now_ms = clock_wall_ms(book->site->clock);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	ASSERT(request); /* the first of an empty arena */
	fault_arrivals_key(&key, book->tenant, due->place);
	request->cell_scan = (struct store_cell_scan){
		.table = TABLE_REPORT_SEGMENTS, .key = key.parts, .from = at->parts, .limit = 1};
	int err = store_read_wait(read, queue);
	if (err)
		return errbuf_set(e, err, "%s", store_read_sentence(read, err));
	if (!request->cell_scan.count)
		return ERR_NOT_FOUND;
	const struct store_parts *column = &request->cell_scan.cells[0].column;
	fault_segments_column(at, fault_part_number(column->part[0]),
			      (enum fault_segment_part)fault_part_number(column->part[1]),
			      fault_part_number(column->part[2]));
	return 0;
}

static int seals_delete_part(struct fault_book *book, struct task_queue *queue,
			     const struct seal_due *due, const struct fault_parts *column,
			     int64_t stamp_us, struct errbuf *e)
{
	struct fault_parts key;
	struct store_write *write = store_write_new(book->site->store, WRITE_MAX_BYTES);
	fault_arrivals_key(&key, book->tenant, due->place);
	int err = store_cell_delete(write, TABLE_REPORT_SEGMENTS, &key.parts, &column->parts,
				    stamp_us);
	err = err ? err : store_write_wait(write, queue);
	if (err)
		errbuf_set(e, err, "%s", write->error.text[0] ? write->error.text : err_text(err));
	store_write_free(write);
	return err;
}

/* Segments of the same run that were not finished, or whose owner lost: nobody reads them. */
static int seals_delete_others(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			       int64_t stamp_us, const struct seal_due *due, struct errbuf *e)
{
	struct store_read *read = store_read_new(book->site->store, READ_MAX_BYTES);
	struct fault_parts at;
	int err = 0;
	fault_segments_column(&at, 0, FAULT_SEGMENT_DIRECTORY, 0);
	while (!err) {
		err = seals_next_part(book, queue, due, read, &at, e);
		if (err)
			break;
		uint64_t name = fault_part_number(at.parts.part[0]);
		if (name == due->cell.name) {
			if (name == UINT64_MAX)
				break;
			fault_segments_column(&at, name + 1, FAULT_SEGMENT_DIRECTORY, 0);
		} else if (clock_wall_ms(book->site->clock) >= until_ms) {
			err = errbuf_set(e, ERR_TIMEOUT, "the time of this owner is over");
		} else {
			err = seals_delete_part(book, queue, due, &at, stamp_us, e);
			fault_segments_column(
				&at, name,
				(enum fault_segment_part)fault_part_number(at.parts.part[1]),
				fault_part_number(at.parts.part[2]) + 1);
		}
	}
	store_read_free(read);
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* Reads all that is to be in the place of the arrivals. */
static int seals_read_back(struct fault_book *book, struct task_queue *queue,
			   const struct seal_due *due, struct errbuf *e)
{
	const struct fault_sealed_site from = {book->site, book->tenant, queue};
	struct fault_run *run = fault_run_new(due->place, &due->cell);
	struct buf bodies;
	buf_init(&bodies, FAULT_BODY_MAX_BYTES);
	int err = fault_run_read_directory(&from, run, e);
	for (size_t b = 0; b < run->segment.block_count && !err; b++)
		err = fault_run_read_block(&from, run, b, &bodies, e);
	buf_release(&bodies);
	fault_run_free(run);
	return err;
}

/* The arrivals are what counts again. stamp_us: from before the segment was read. */
static int seals_unseal(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			int64_t stamp_us, const struct seal_due *due, struct errbuf *e)
{
	if (clock_wall_ms(book->site->clock) >= until_ms)
		return errbuf_set(e, ERR_TIMEOUT, "the time of this owner is over");
	struct fault_parts key, column;
	struct store_write *write = store_write_new(book->site->store, WRITE_MAX_BYTES);
	fault_runs_key(&key, book->tenant);
	fault_runs_column(&column, due->place);
	int err = store_cell_delete(write, TABLE_REPORT_RUNS, &key.parts, &column.parts, stamp_us);
	err = err ? err : store_write_wait(write, queue);
	if (err)
		errbuf_set(e, err, "%s", write->error.text[0] ? write->error.text : err_text(err));
	store_write_free(write);
	return err;
}

static int seals_clear_whole(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			     struct seal_due *due, struct errbuf *e)
{
	int64_t stamp_us = store_stamp(book->site->store);
	int err = seals_read_back(book, queue, due, e);
	if (!err) {
		err = seals_clear_one(book, queue, until_ms, due, e);
		err = err ? err : seals_delete_others(book, queue, until_ms, stamp_us, due, e);
	} else if (err == ERR_DAMAGED || err == ERR_VERSION || err == ERR_LIMIT) {
		seals_pass_over(book, due->place, e->text);
		return seals_unseal(book, queue, until_ms, stamp_us, due, e);
	}
	stat_add(STAT_fault_runs_cleared, !err);
	return err;
}

/* Arrivals that nobody reads any more. *more: there are more of them. */
static int seals_clear(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
		       int64_t busy_ms, bool *more, struct errbuf *e)
{
	struct fault_seals *seals = book->seals;
	int64_t now_ms = clock_mono_ms(book->site->clock);
	size_t done = 0;
	int err = 0;
	*more = false;
	while (done < seals->due_count && seals->due[done].due_ms <= now_ms && !err && !*more) {
		err = seals_clear_whole(book, queue, until_ms, &seals->due[done], e);
		done += !err;
		*more = clock_mono_ms(book->site->clock) >= busy_ms;
	}
	if (done)
		memmove(seals->due, seals->due + done,
			(seals->due_count - done) * sizeof(*seals->due));
	seals->due_count -= done;
	return err;
}

int fault_book_seal(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
		    struct errbuf *e)
{
	int64_t busy_ms = clock_mono_ms(book->site->clock) + BUSY_MS;
	bool more = false;
	pthread_mutex_lock(&book->lock);
	uint64_t tenure = book->owned ? book->version.tenure : 0;
	pthread_mutex_unlock(&book->lock);
	if (!tenure)
		return 0;
	int err = seals_read(book, queue, tenure, e);
	err = err ? err : seals_clear(book, queue, until_ms, busy_ms, &more, e);
	while (!err && clock_mono_ms(book->site->clock) < busy_ms) {
		err = seals_seal(book, queue, until_ms, busy_ms, &more, e);
		if (!more)
			break;
	}
	if (more && !err)
		fault_book_touch(book); /* the rest after the next pass */
	return err;
}
