#include "fault/cursor_run.h"

struct cursor_run {
	struct fault_run *run;
	struct buf bodies; /* of the block that was read last */
	bool *looked;      /* by block */
	bool *fits;        /* by report, of blocks that were looked at */
};

/* Filters come before the directory: most runs lack a rare word. */
static int cursor_run_filter(const struct fault_sealed_site *from, struct fault_run *run,
			     const struct words_query *query, bool *none, struct errbuf *e)
{
	int err = fault_run_read_filters(from, run, e);
	*none = true;
	for (size_t b = 0; b < run->cell.blocks && *none; b++)
		*none = !words_filter_parts(run->filters[b], query);
	return err;
}

int cursor_run_open(const struct fault_sealed_site *from, struct fault_place place,
		    const struct fault_run_cell *cell, const struct fault_search *search,
		    struct cursor_run **to, bool *none, struct errbuf *e)
{
	struct cursor_run *run = mem_zalloc(sizeof(*run));
	int err = 0;
	*to = run;
	*none = false;
	buf_init(&run->bodies, FAULT_BODY_MAX_BYTES);
	run->run = fault_run_new(place, cell);
	if (search)
		err = cursor_run_filter(from, run->run, search->matcher.query, none, e);
	if (!err && !*none)
		err = fault_run_read_directory(from, run->run, e);
	if (!err) {
		run->looked = mem_zalloc(run->run->segment.block_count + 1);
		run->fits = mem_zalloc(run->run->segment.count + 1);
	}
	return err;
}

void cursor_run_free(struct cursor_run *run)
{
	if (!run)
		return;
	fault_run_free(run->run);
	buf_release(&run->bodies);
	mem_free(run->looked);
	mem_free(run->fits);
	mem_free(run);
}

const struct fault_segment *cursor_run_segment(const struct cursor_run *run)
{
	return &run->run->segment;
}

static void cursor_run_match(struct cursor_run *run, const struct fault_cursor_filter *filter,
			     size_t place)
{
	const struct fault_sealed *report = &run->run->segment.reports[place];
	const struct book_arrived arrived = {.arrival = report->arrival,
					     .place = {run->run->place.writer, report->sequence}};
	if (!filter->fits || filter->fits(filter->owner, &arrived))
		run->fits[place] = fault_search_fits_body(filter->search, &report->arrival,
							  fault_sealed_body(report, &run->bodies));
}

static int cursor_run_look(const struct fault_sealed_site *from, struct cursor_run *run,
			   const struct fault_cursor_filter *filter, size_t number,
			   struct errbuf *e)
{
	const struct fault_segment *segment = &run->run->segment;
	const struct fault_block *block = &segment->blocks[number];
	run->looked[number] = true;
	unsigned parts =
		words_filter_parts(run->run->filters[number], filter->search->matcher.query);
	if (!parts)
		return 0;
	int err = fault_run_read_block(from, run->run, number, &run->bodies, e);
	for (uint32_t i = 0; i < block->count && !err; i++)
		if (parts >> fault_block_part(i) & 1)
			cursor_run_match(run, filter, segment->order[block->first + i]);
	return err;
}

int cursor_run_fits(const struct fault_sealed_site *from, struct cursor_run *run,
		    const struct fault_cursor_filter *filter, size_t place, bool *fits,
		    struct errbuf *e)
{
	size_t block = run->run->segment.reports[place].block;
	int err = run->looked[block] ? 0 : cursor_run_look(from, run, filter, block, e);
	*fits = run->fits[place];
	return err;
}
