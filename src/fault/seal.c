/* Sealing: runs that a checkpoint has as a whole are packed close, and then their arrivals go.
 *
 *     arrivals -> segment durable -> cell of the run durable -> a query deadline -> cleared
 *
 * A run is sealed (seal_run.c) when the last whole checkpoint has all of it, so nobody who begins
 * with that checkpoint looks for its arrivals; who began before has at most a query deadline to
 * come to an end (book_read.c). */
#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "fault/seal_run.h"
#include "fault/sealed.h"
#include "store/wait.h"

enum {
	CELL_MAX_BYTES = 1 << 10,
	WRITE_MAX_BYTES = 64 << 10, /* one cell, and a row that goes */
	READ_MAX_BYTES = 2 * STORE_VALUE_MAX_BYTES,
	FILES_MAX = 500, /* whose cells go in one write */
	FILES_WRITE_BYTES = 1 << 20,
	BUSY_MS = 1000, /* then the owner does another pass first */
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

void book_note_sealed(struct fault_book *book, struct fault_place place,
		      const struct fault_run_cell *cell)
{
	struct fault_seals *seals = book->seals;
	struct seal_writer *writer = seals_writer(seals, place.writer);
	uint64_t next_run = (place.sequence >> FAULT_RUN_BITS) + 1;
	writer->next_run = writer->next_run > next_run ? writer->next_run : next_run;
	if (cell->cleared && !cell->rewritten)
		return;
	GROW(seals->due, seals->due_room, seals->due_count + 1);
	seals->due[seals->due_count++] = (struct seal_due){
		place, *cell, clock_mono_ms(book->site->clock) + STORE_QUERY_DEADLINE_MAX_MS};
}

bool book_is_due(const struct fault_book *book, struct fault_place place)
{
	for (size_t i = 0; i < book->seals->due_count; i++)
		if (fault_place_equal(book->seals->due[i].place, place))
			return true;
	return false;
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
	book_note_sealed(book, place, &run);
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

/* ---- All of a tenant ------------------------------------------------------------------------- */

/* The next run of each writer that is to be sealed. It is called with the lock held. */
static size_t seals_list(struct fault_book *book, struct seal_run **to)
{
	const struct book_positions *positions = &book->positions;
	struct seal_run *list = mem_alloc_array(positions->writer_count, sizeof(*list));
	size_t count = 0;
	for (size_t i = 0; i < positions->writer_count; i++) {
		const struct book_writer *writer = &positions->writers[i];
		uint64_t run = seals_writer(book->seals, writer->writer)->next_run;
		if (run < writer->whole_runs)
			list[count++] =
				(struct seal_run){.place = {writer->writer, run << FAULT_RUN_BITS},
						  .ended = writer->ended};
	}
	*to = list;
	return count;
}

/* What cannot be sealed stays as it is. */
static int seals_seal_run(struct fault_book *book, struct task_queue *queue,
			  const struct seal_run *run, int64_t until_ms, struct errbuf *e)
{
	struct fault_run_cell cell;
	e->text[0] = 0;
	int err = seal_run(book, queue, run, until_ms, &cell, e);
	if (!err) {
		book_note_sealed(book, run->place, &cell);
		stat_add(STAT_fault_runs_sealed, 1);
		stat_add(STAT_fault_reports_sealed, cell.reports);
		stat_add(STAT_fault_sealed_bytes, cell.bytes);
	} else if (clock_wall_ms(book->site->clock) >= until_ms) {
		err = ERR_TIMEOUT; /* another owner may have been at it */
	} else if (err == ERR_DAMAGED || err == ERR_VERSION || err == ERR_LIMIT) {
		seals_pass_over(book, run->place, e->text[0] ? e->text : err_text(err));
		err = 0;
	}
	return err;
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
		err = seals_seal_run(book, queue, &list[i], until_ms, e);
		if (clock_mono_ms(book->site->clock) >= busy_ms)
			break;
	}
	mem_free(list);
	*more = count > 0;
	return err;
}

/* The arrivals go, and then the cell of the run says so. Those of a run that was sealed again are
 * gone. */
static int seals_clear_one(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			   struct seal_due *due, struct errbuf *e)
{
	struct fault_parts key, runs_key, column;
	struct buf value;
	int64_t stamp_us = store_stamp(book->site->store);
	struct store_write *write = store_write_new(book->site->store, WRITE_MAX_BYTES);
	bool gone = due->cell.rewritten;
	due->cell.cleared = true;
	due->cell.rewritten = false;
	buf_init(&value, CELL_MAX_BYTES);
	fault_run_cell_encode(&due->cell, &value);
	fault_arrivals_key(&key, book->tenant, due->place);
	fault_runs_key(&runs_key, book->tenant);
	fault_runs_column(&column, due->place);
	int err = gone ? 0 : store_row_delete(write, TABLE_REPORT_ARRIVALS, &key.parts, stamp_us);
	store_write_next_stage(write);
	err = err ? err
		  : store_cell_put(write, TABLE_REPORT_RUNS, &runs_key.parts, &column.parts,
				   buf_slice(&value), stamp_us, 0);
	err = seal_send_write(book, queue, until_ms, stamp_us, write, err, e);
	due->cell.rewritten = gone && err;
	buf_release(&value);
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

static int seals_delete_part(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			     int64_t stamp_us, const struct seal_due *due,
			     const struct fault_parts *column, struct errbuf *e)
{
	struct fault_parts key;
	struct store_write *write = store_write_new(book->site->store, WRITE_MAX_BYTES);
	fault_arrivals_key(&key, book->tenant, due->place);
	int err = store_cell_delete(write, TABLE_REPORT_SEGMENTS, &key.parts, &column->parts,
				    stamp_us);
	return seal_send_write(book, queue, until_ms, stamp_us, write, err, e);
}

/* Segments of the same run that were before it, that were not finished, or whose owner lost: nobody
 * reads them. */
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
		} else {
			err = seals_delete_part(book, queue, until_ms, stamp_us, due, &at, e);
			fault_segments_column(
				&at, name,
				(enum fault_segment_part)fault_part_number(at.parts.part[1]),
				fault_part_number(at.parts.part[2]) + 1);
		}
	}
	store_read_free(read);
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* ---- Files of reports that are gone ---------------------------------------------------------- */

/* Cells of attachments. */
struct seal_files {
	const struct fault_segment *segment; /* what there is */
	struct seal_file {
		uint64_t sequence, part, number;
	} * list; /* of reports that are not in it */
	size_t count, room;
};

static int seals_see_file(const struct store_cell *cell, void *owner)
{
	struct seal_files *files = owner;
	const struct slice *part = cell->column.part;
	uint64_t sequence = fault_part_number(part[0]);
	size_t at = fault_segment_find(files->segment, sequence);
	if (at < files->segment->count && files->segment->reports[at].sequence == sequence)
		return 0;
	GROW(files->list, files->room, files->count + 1);
	files->list[files->count++] = (struct seal_file){
		fault_part_number(part[0]), fault_part_number(part[1]), fault_part_number(part[2])};
	return 0;
}

static int seals_delete_some_files(struct fault_book *book, struct task_queue *queue,
				   int64_t until_ms, int64_t stamp_us, const struct seal_due *due,
				   const struct seal_file *files, size_t count, struct errbuf *e)
{
	struct store_write *write = store_write_new(book->site->store, FILES_WRITE_BYTES);
	struct fault_parts key, column;
	int err = 0;
	fault_arrivals_key(&key, book->tenant, due->place);
	for (size_t i = 0; i < count && !err; i++) {
		fault_attachments_column(&column, files[i].sequence,
					 (enum fault_attachment_part)files[i].part,
					 files[i].number);
		err = store_cell_delete(write, TABLE_REPORT_ATTACHMENTS, &key.parts, &column.parts,
					stamp_us);
	}
	return seal_send_write(book, queue, until_ms, stamp_us, write, err, e);
}

/* Those of reports of the run that its segment does not have. */
static int seals_delete_files(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			      int64_t stamp_us, const struct seal_due *due, struct errbuf *e)
{
	const struct fault_sealed_site from = {book->site, book->tenant, queue};
	struct fault_run *run = fault_run_new(due->place, &due->cell);
	struct seal_files files = {.segment = &run->segment};
	struct fault_parts key;
	fault_arrivals_key(&key, book->tenant, due->place);
	int err = fault_run_read_directory(&from, run, e);
	err = err ? err
		  : store_row_wait(book->site->store, queue, clock_wall_ms(book->site->clock),
				   TABLE_REPORT_ATTACHMENTS, &key.parts, seals_see_file, &files, e);
	for (size_t at = 0; at < files.count && !err; at += FILES_MAX) {
		size_t count = smaller_of(files.count - at, FILES_MAX);
		err = seals_delete_some_files(book, queue, until_ms, stamp_us, due, &files.list[at],
					      count, e);
	}
	mem_free(files.list);
	fault_run_free(run);
	return err;
}

/* The arrivals are what counts again. stamp_us: from before the segment was read. */
static int seals_unseal(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			int64_t stamp_us, const struct seal_due *due, struct errbuf *e)
{
	struct fault_parts key, column;
	struct store_write *write = store_write_new(book->site->store, WRITE_MAX_BYTES);
	fault_runs_key(&key, book->tenant);
	fault_runs_column(&column, due->place);
	int err = store_cell_delete(write, TABLE_REPORT_RUNS, &key.parts, &column.parts, stamp_us);
	return seal_send_write(book, queue, until_ms, stamp_us, write, err, e);
}

static int seals_clear_whole(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			     struct seal_due *due, struct errbuf *e)
{
	int64_t stamp_us = store_stamp(book->site->store);
	int err = seal_read_back(book, queue, due->place, &due->cell, e);
	bool damaged = err == ERR_DAMAGED || err == ERR_VERSION || err == ERR_LIMIT;
	if (damaged && due->cell.rewritten) {
		seals_pass_over(book, due->place, e->text); /* nothing of it goes */
		return 0;
	}
	if (!err) {
		err = due->cell.rewritten
			      ? seals_delete_files(book, queue, until_ms, stamp_us, due, e)
			      : 0;
		err = err ? err : seals_delete_others(book, queue, until_ms, stamp_us, due, e);
		err = err ? err : seals_clear_one(book, queue, until_ms, due, e);
	} else if (damaged) {
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
	bool more = false, collects = false;
	pthread_mutex_lock(&book->lock);
	uint64_t tenure = book->owned ? book->version.tenure : 0;
	pthread_mutex_unlock(&book->lock);
	if (!tenure)
		return 0;
	int err = book_erase(book, queue, until_ms, e);
	err = err ? err : seals_read(book, queue, tenure, e);
	err = err ? err : seals_clear(book, queue, until_ms, busy_ms, &more, e);
	/* Half of the time, so that what comes is sealed all the same. */
	int collect_err = 0;
	if (!err && !more)
		collect_err =
			book_collect(book, queue, until_ms, busy_ms - BUSY_MS / 2, &collects, e);
	if (collect_err == ERR_TIMEOUT || collect_err == ERR_CANCELLED)
		err = collect_err;
	while (!err && clock_mono_ms(book->site->clock) < busy_ms) {
		err = seals_seal(book, queue, until_ms, busy_ms, &more, e);
		if (!more)
			break;
	}
	if ((more || collects) && !err)
		fault_book_touch(book); /* the rest after the next pass */
	return err ? err : collect_err;
}
