#include "fault/sealed.h"

#include "base/put.h"
#include "store/wait.h"

enum {
	READ_MAX_BYTES = 2 * STORE_VALUE_MAX_BYTES,
};

/* ---- Which runs are sealed ------------------------------------------------------------------- */

void fault_run_ask(struct fault_run_question *question, struct store_read *read,
		   struct slice tenant, struct fault_place place)
{
	fault_runs_key(&question->key, tenant);
	fault_runs_column(&question->column, place);
	question->request = store_read_add(read, STORE_CELL_GET);
	ASSERT(question->request); /* among the first of an empty arena */
	question->request->cell_get = (struct store_cell_get){.table = TABLE_REPORT_RUNS,
							      .key = question->key.parts,
							      .column = question->column.parts};
}

int fault_run_answer(const struct fault_run_question *question, struct fault_run_cell *cell)
{
	const struct store_cell_get *get = &question->request->cell_get;
	return get->found ? fault_run_cell_decode(get->cell.value, cell) : ERR_NOT_FOUND;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Gives the cells of a part before a number, in their order. */
static int sealed_read_part(const struct fault_sealed_site *from, const struct fault_run *run,
			    enum fault_segment_part part, uint64_t before,
			    int (*each)(void *owner, const struct store_cell *cell), void *owner,
			    struct errbuf *e)
{
	struct fault_parts key, first, after;
	if (!before)
		return 0;
	struct store_read *read = store_read_new(from->site->store, READ_MAX_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	int err;
	ASSERT(request); /* the first of an empty arena */
	fault_arrivals_key(&key, from->tenant, run->place);
	fault_segments_column(&first, run->cell.name, part, 0);
	fault_segments_column(&after, run->cell.name, part, before);
	request->cell_scan = (struct store_cell_scan){.table = TABLE_REPORT_SEGMENTS,
						      .key = key.parts,
						      .from = first.parts,
						      .to = after.parts};
	read->now_ms = clock_wall_ms(from->site->clock);
	do {
		err = store_read_wait(read, from->queue);
		if (err)
			errbuf_set(e, err, "%s", store_read_sentence(read, err));
		for (size_t i = 0; i < request->cell_scan.count && !err; i++)
			err = each(owner, &request->cell_scan.cells[i]);
	} while (!err && request->more);
	store_read_free(read);
	return err;
}

static int sealed_say(const struct fault_sealed_site *from, const struct fault_run *run, int err,
		      struct errbuf *e)
{
	return errbuf_set(e, err,
			  "reports %llu to %llu of writer %016llx of tenant " SHOWN
			  " (table report_segments) cannot be read: %s",
			  (unsigned long long)run->place.sequence,
			  (unsigned long long)run->place.sequence + FAULT_RUN_REPORTS - 1,
			  (unsigned long long)run->place.writer, SHOWN_OF(from->tenant),
			  err_text(err));
}

struct sealed_chunks {
	struct buf bytes;
	uint64_t count;
};

static int sealed_take_chunk(void *owner, const struct store_cell *cell)
{
	struct sealed_chunks *chunks = owner;
	if (fault_part_number(cell->column.part[2]) != chunks->count)
		return ERR_DAMAGED;
	chunks->count++;
	return buf_append(&chunks->bytes, cell->value.data, cell->value.len);
}

struct fault_run *fault_run_new(struct fault_place place, const struct fault_run_cell *cell)
{
	struct fault_run *run = mem_zalloc(sizeof(*run));
	place.sequence &= ~(uint64_t)(FAULT_RUN_REPORTS - 1);
	run->place = place;
	run->cell = *cell;
	run->filters = mem_alloc_array(cell->blocks + 1, sizeof(*run->filters));
	memset(run->filters, 0, (cell->blocks + 1) * sizeof(*run->filters));
	arena_init(&run->filters_arena, FAULT_FILTERS_MAX_BYTES);
	return run;
}

void fault_run_free(struct fault_run *run)
{
	if (!run)
		return;
	fault_segment_release(&run->segment);
	mem_free(run->filters);
	arena_release(&run->filters_arena);
	mem_free(run);
}

static bool sealed_is_of_run(const struct fault_run *run)
{
	const struct fault_segment *segment = &run->segment;
	if (segment->count != run->cell.reports || segment->block_count != run->cell.blocks)
		return false;
	if (!segment->count)
		return true;
	uint64_t first = segment->reports[0].sequence;
	uint64_t last = segment->reports[segment->count - 1].sequence;
	return first >= run->place.sequence && last < run->place.sequence + FAULT_RUN_REPORTS;
}

int fault_run_read_directory(const struct fault_sealed_site *from, struct fault_run *run,
			     struct errbuf *e)
{
	struct sealed_chunks chunks = {.count = 0};
	buf_init(&chunks.bytes, FAULT_DIRECTORY_MAX_BYTES);
	/* An attempt that did not come to its end may have written more of them. */
	int err = sealed_read_part(from, run, FAULT_SEGMENT_DIRECTORY, run->cell.chunks,
				   sealed_take_chunk, &chunks, e);
	if (!err && chunks.count != run->cell.chunks)
		err = ERR_DAMAGED;
	err = err ? err : fault_segment_decode(buf_slice(&chunks.bytes), &run->segment);
	if (!err && !sealed_is_of_run(run))
		err = ERR_DAMAGED;
	buf_release(&chunks.bytes);
	return err == ERR_DAMAGED || err == ERR_VERSION || err == ERR_LIMIT
		       ? sealed_say(from, run, err, e)
		       : err;
}

/* ---- Filters --------------------------------------------------------------------------------- */

static int sealed_take_filters(void *owner, const struct store_cell *cell)
{
	struct fault_run *run = owner;
	return fault_filters_take(cell->value, run->cell.blocks, &run->filters_next, run->filters,
				  &run->filters_arena);
}

int fault_run_read_filters(const struct fault_sealed_site *from, struct fault_run *run,
			   struct errbuf *e)
{
	int err = sealed_read_part(from, run, FAULT_SEGMENT_FILTERS, run->cell.blocks,
				   sealed_take_filters, run, e);
	if (err != ERR_DAMAGED && err != ERR_LIMIT)
		return err;
	memset(run->filters, 0, run->cell.blocks * sizeof(*run->filters));
	return 0;
}

/* ---- Bodies ---------------------------------------------------------------------------------- */

int fault_run_read_block(const struct fault_sealed_site *from, const struct fault_run *run,
			 size_t block, struct buf *bodies, struct errbuf *e)
{
	struct fault_parts key, column;
	struct store_read *read = store_read_new(from->site->store, READ_MAX_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request && block < run->segment.block_count);
	fault_arrivals_key(&key, from->tenant, run->place);
	fault_segments_column(&column, run->cell.name, FAULT_SEGMENT_BLOCK, block);
	request->cell_get = (struct store_cell_get){
		.table = TABLE_REPORT_SEGMENTS, .key = key.parts, .column = column.parts};
	read->now_ms = clock_wall_ms(from->site->clock);
	buf_clear(bodies);
	int err = store_read_wait(read, from->queue);
	if (err) {
		errbuf_set(e, err, "%s", store_read_sentence(read, err));
		store_read_free(read);
		return err;
	}
	const struct fault_arrival packed = {
		.dictionary = run->segment.dictionary,
		.body_bytes = run->segment.blocks[block].body_bytes,
		.packed = request->cell_get.cell.value,
	};
	err = request->cell_get.found ? fault_body_unpack(&packed, bodies) : ERR_DAMAGED;
	store_read_free(read);
	return err ? sealed_say(from, run, err, e) : 0;
}

struct slice fault_sealed_body(const struct fault_sealed *report, const struct buf *bodies)
{
	ASSERT(report->at + report->arrival.body_bytes <= bodies->len);
	return (struct slice){bodies->data + report->at, (size_t)report->arrival.body_bytes};
}
