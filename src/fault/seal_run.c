/* One run is sealed. What is made is a function of its arrivals, which never change; its stamp was
 * taken before they were read. So a run that two owners seal is sealed, by the one or the other,
 * and a segment whose cells were not all written is there for nobody. A run of which some reports
 * go is sealed again from its segment.
 *
 * Bodies are read block by block, so a run of any size takes the memory of one block. */
#include "fault/seal_run.h"

#include "fault/pack.h"
#include "base/put.h"
#include "fault/sealed.h"
#include "store/wait.h"

enum {
	SEND_BYTES = 256 << 10, /* a write is sent then */
	WRITE_MAX_BYTES = SEND_BYTES + STORE_VALUE_MAX_BYTES + (64 << 10),
	FILTER_MAX_BYTES = 512 << 10,
	FILTERS_BYTES = FAULT_RUN_REPORTS * 64, /* of a cell, and one filter more */
	CHUNK_BYTES = FAULT_RUN_REPORTS * 128,  /* of a directory */
	CELL_MAX_BYTES = 1 << 10,
	CELL_WRITE_MAX_BYTES = 16 << 20, /* and entries of a whole run that go */
	WORDS_MAX_BYTES = 2 * FAULT_BODY_MAX_BYTES,
	FACTS_MAX_BYTES = FAULT_DIRECTORY_MAX_BYTES,
	READ_MAX_BYTES = 2 * STORE_VALUE_MAX_BYTES,
	DIRECTORY_PACKED_MAX_BYTES = FAULT_DIRECTORY_MAX_BYTES + (1 << 20),
	BODIES_MAX_BYTES = 512 << 20,     /* of a run: some seconds */
	FILTERS_ALL_MAX_BYTES = 16 << 20, /* of a run; further blocks have none */
};

struct seal_work {
	struct fault_book *book;
	struct task_queue *queue;
	struct errbuf *e;
	int64_t stamp_us, until_ms;
	const struct seal_run *run;
	struct fault_place place;
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
	struct buf from_bodies; /* of the block `from_block` of the segment that was */
	size_t from_block;
	struct words_set words;
	struct arena words_arena;
};

int seal_send_write(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
		    int64_t stamp_us, struct store_write *write, int err, struct errbuf *e)
{
	bool late = clock_wall_ms(book->site->clock) >= until_ms || stamp_us / 1000 >= until_ms;
	if (!err && !late)
		err = store_write_wait(write, queue);
	if (err)
		errbuf_set(e, err, "%s", write->error.text[0] ? write->error.text : err_text(err));
	else if (late)
		err = errbuf_set(e, ERR_TIMEOUT, "the time of this owner is over");
	store_write_free(write);
	return err;
}

int seal_read_back(struct fault_book *book, struct task_queue *queue, struct fault_place place,
		   const struct fault_run_cell *cell, struct errbuf *e)
{
	const struct fault_sealed_site from = {book->site, book->tenant, queue};
	struct fault_run *run = fault_run_new(place, cell);
	struct buf bodies;
	buf_init(&bodies, FAULT_BODY_MAX_BYTES);
	int err = fault_run_read_directory(&from, run, e);
	for (size_t b = 0; b < run->segment.block_count && !err; b++)
		err = fault_run_read_block(&from, run, b, &bodies, e);
	buf_release(&bodies);
	fault_run_free(run);
	return err;
}

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
	int err = fault_arrival_keep(arrival, &s->arena);
	s->count += !err;
	return err;
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

static int seal_take_arrivals(struct seal_work *s)
{
	struct fault_parts key;
	fault_arrivals_key(&key, s->book->tenant, s->place);
	int err =
		store_row_wait(s->book->site->store, s->queue, clock_wall_ms(s->book->site->clock),
			       TABLE_REPORT_ARRIVALS, &key.parts, seal_take_arrival, s, s->e);
	if (err)
		return err;
	if (s->cells < FAULT_RUN_REPORTS && !s->run->ended)
		return errbuf_set(s->e, ERR_DAMAGED, "some of them are not there");
	return 0;
}

static void seal_take_rest(struct seal_work *s)
{
	const struct fault_segment *from = &s->run->from->segment;
	for (size_t i = 0; i < from->count; i++)
		if (!s->run->gone[i])
			s->reports[s->count++] = from->reports[i];
}

/* The facts of all reports, and in which order they go. ERR_DAMAGED: an arrival cannot be read. */
static int seal_plan(struct seal_work *s)
{
	int err = 0;
	if (s->run->from)
		seal_take_rest(s);
	else
		err = seal_take_arrivals(s);
	err = err ? err : seal_check(s);
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

/* at: of the report in its block */
static int seal_take_body(struct seal_work *s, const struct fault_sealed *report, uint32_t at,
			  const struct store_request *request)
{
	struct fault_arrival arrival;
	if (!request->cell_get.found ||
	    fault_arrival_decode(request->cell_get.cell.value, &arrival) || arrival.is_void ||
	    arrival.body_bytes != report->arrival.body_bytes)
		return ERR_DAMAGED;
	int err = fault_body_unpack(&arrival, &s->bodies);
	if (!err)
		fault_search_add_words(&s->words, fault_block_part(at), &s->words_arena,
				       &report->arrival, fault_sealed_body(report, &s->bodies));
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
				     *at, asked[i]);
	return err;
}

/* One report of a block, of the segment that was. */
static int seal_copy_body(struct seal_work *s, const struct fault_block *block, uint32_t *at)
{
	const struct fault_sealed_site site = {s->book->site, s->book->tenant, s->queue};
	const struct fault_segment *from = &s->run->from->segment;
	const struct fault_sealed *report =
		&s->segment.reports[s->segment.order[block->first + *at]];
	const struct fault_sealed *was = &from->reports[fault_segment_find(from, report->sequence)];
	int err = 0;
	if (s->from_block != was->block)
		err = fault_run_read_block(&site, s->run->from, was->block, &s->from_bodies, s->e);
	if (err)
		return err;
	s->from_block = was->block;
	struct slice body = fault_sealed_body(was, &s->from_bodies);
	err = buf_append(&s->bodies, body.data, body.len);
	if (!err)
		fault_search_add_words(&s->words, fault_block_part(*at), &s->words_arena,
				       &report->arrival, fault_sealed_body(report, &s->bodies));
	++*at;
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
		err = s->run->from ? seal_copy_body(s, block, &at)
				   : seal_read_bodies(s, block, &at);
	if (err)
		return err;
	fault_pack_many(buf_slice(&s->bodies), &s->packed);
	buf_init(&filter, FILTER_MAX_BYTES);
	if (s->filter_bytes < FILTERS_ALL_MAX_BYTES)
		words_filter_put(&s->words, &filter);
	if (filter.failed)
		buf_clear(&filter);
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
	struct store_write *write = store_write_new(s->book->site->store, CELL_WRITE_MAX_BYTES);
	int err = s->run->before_cell ? s->run->before_cell(s->run->owner, write) : 0;
	store_write_next_stage(write);
	err = err ? err
		  : store_cell_put(write, TABLE_REPORT_RUNS, &key.parts, &column.parts,
				   buf_slice(&value), s->stamp_us, 0);
	buf_release(&value);
	return seal_send_write(s->book, s->queue, s->until_ms, s->stamp_us, write, err, s->e);
}

static int seal_do(struct seal_work *s)
{
	int err = seal_plan(s);
	err = err ? err : seal_blocks(s);
	err = err ? err : seal_put_directory(s);
	err = err ? err : seal_send(s);
	if (!err && s->run->from)
		err = seal_read_back(s->book, s->queue, s->place, &s->cell, s->e);
	return err ? err : seal_put_cell(s);
}

/* By what was, and what goes of it. */
static uint64_t seal_name_of_rest(const struct seal_run *run)
{
	if (!run->from)
		return 0;
	return hash64((const char *)run->gone, run->from->segment.count * sizeof(*run->gone),
		      run->from->cell.name);
}

static void seal_init(struct seal_work *s, struct fault_book *book, struct task_queue *queue,
		      const struct seal_run *run, int64_t until_ms, struct errbuf *e)
{
	struct slice holder = book->site->holder;
	*s = (struct seal_work){
		.book = book,
		.queue = queue,
		.e = e,
		.stamp_us = store_stamp(book->site->store),
		.until_ms = until_ms,
		.run = run,
		.place = run->place,
		.from_block = SIZE_MAX,
	};
	/* A process that tries again writes the same cells again. */
	s->cell.name = hash64(holder.data, holder.len,
			      run->place.writer ^ run->place.sequence ^ seal_name_of_rest(run));
	s->cell.cleared = s->cell.rewritten = run->from != NULL;
	arena_init(&s->arena, FACTS_MAX_BYTES);
	s->reports = mem_alloc_array(FAULT_RUN_REPORTS + 1, sizeof(*s->reports));
	s->read = store_read_new(book->site->store, READ_MAX_BYTES);
	s->write = store_write_new(book->site->store, WRITE_MAX_BYTES);
	buf_init(&s->bodies, FAULT_BODY_MAX_BYTES);
	buf_init(&s->packed, 2 * FAULT_BODY_MAX_BYTES);
	buf_init(&s->from_bodies, FAULT_BODY_MAX_BYTES);
	buf_init(&s->filters, 2 * STORE_VALUE_MAX_BYTES);
	words_set_init(&s->words, book->site->digest_key);
	arena_init(&s->words_arena, WORDS_MAX_BYTES);
}

static void seal_release(struct seal_work *s)
{
	fault_segment_release(&s->segment);
	arena_release(&s->arena);
	mem_free(s->reports);
	store_read_free(s->read);
	store_write_free(s->write);
	buf_release(&s->bodies);
	buf_release(&s->packed);
	buf_release(&s->from_bodies);
	buf_release(&s->filters);
	words_set_release(&s->words);
	arena_release(&s->words_arena);
}

int seal_run(struct fault_book *book, struct task_queue *queue, const struct seal_run *run,
	     int64_t until_ms, struct fault_run_cell *cell, struct errbuf *e)
{
	struct seal_work *s = mem_alloc(sizeof(*s));
	seal_init(s, book, queue, run, until_ms, e);
	int err = s->stamp_us / 1000 < until_ms
			  ? seal_do(s)
			  : errbuf_set(e, ERR_TIMEOUT, "the time of this owner is over");
	*cell = s->cell;
	seal_release(s);
	mem_free(s);
	return err;
}
