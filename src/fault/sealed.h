/* Reading of sealed runs (segment.h). All of it waits for the store, without the lock of a book.
 *
 * Whether a run is sealed its cell in `report_runs` says; it is durable after all that it names,
 * and before the arrivals go. So one read asks for it together with the arrivals, and who finds it
 * needs these no more. */
#ifndef FAULT_SEALED_H
#define FAULT_SEALED_H

#include "base/exec.h"
#include "fault/segment.h"
#include "fault/site.h"
#include "fault/tables.h"
#include "words/filter.h"

struct fault_sealed_site {
	const struct fault_site *site;
	struct slice tenant;
	struct task_queue *queue;
};

/* The question for the cell of a run, in somebody's read. */
struct fault_run_question {
	struct store_request *request;
	struct fault_parts key, column;
};
void fault_run_ask(struct fault_run_question *question, struct store_read *read,
		   struct slice tenant, struct fault_place place);
/* ERR_NOT_FOUND: the run is not sealed. ERR_DAMAGED, ERR_VERSION. */
int fault_run_answer(const struct fault_run_question *question,
		     struct fault_run_cell *cell) MUST_CHECK;

/* A run that is read. */
struct fault_run {
	struct fault_place place; /* of its first number */
	struct fault_run_cell cell;
	struct fault_segment segment;
	struct slice *filters; /* of each block; of one whose len is 0 nothing is known */
	struct arena filters_arena;
	uint64_t filters_next; /* the block with whose filter the next cell begins */
};

/* The run of a place, of which nothing is read yet. */
struct fault_run *fault_run_new(struct fault_place place, const struct fault_run_cell *cell);
void fault_run_free(struct fault_run *run);
/* Fills in `segment`. */
int fault_run_read_directory(const struct fault_sealed_site *from, struct fault_run *run,
			     struct errbuf *e) MUST_CHECK;
/* Fills in `filters`. Where some cannot be read nothing is known of any. */
int fault_run_read_filters(const struct fault_sealed_site *from, struct fault_run *run,
			   struct errbuf *e) MUST_CHECK;
/* The bodies of a block, one behind the other, in `bodies`, which has room for
 * FAULT_BODY_MAX_BYTES.
 */
int fault_run_read_block(const struct fault_sealed_site *from, const struct fault_run *run,
			 size_t block, struct buf *bodies, struct errbuf *e) MUST_CHECK;
/* A report's among them. */
struct slice fault_sealed_body(const struct fault_sealed *report, const struct buf *bodies);

#endif
