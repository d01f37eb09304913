#include "rollup/deletions.h"

#include "base/log.h"
#include "base/stats.h"
#include "rollup/deletion_note.h"
#include "wire/timetext.h"

enum {
	READ_MAX_BYTES = 4 << 20,
	WRITE_MAX_BYTES = 1 << 20,
	NOTE_MAX_BYTES = 256 << 10,
	SPEC_MAX_BYTES = 1 << 20,
	LINE_MAX_BYTES = 64 << 10,
	NAME_MAX_BYTES = 32,
};

static const struct store_parts row = {{SLICE("deletion")}};

enum state { RESTS, NOTES, WORKS, CROSSES_OUT };

struct rollup_deletions {
	struct rollup_deletions_options options;
	enum state state;
	bool stopping, resuming; /* resuming: the one at work was left at the start */
	struct store_read *read; /* of the notes at the start */
	struct store_request *left;
	bool looked;
	struct store_write *write;
	struct store_write_cond *outcome;
	size_t left_at; /* of those left at the start */

	/* The one at work. */
	struct rollup_deletion_spec spec;
	struct catalog_selector selectors[CATALOG_SELECTORS_MAX];
	size_t selector_count;
	struct arena arena; /* what the spec points to */
	char name[NAME_MAX_BYTES];
	uint64_t version; /* of its note; 0: there is none */
	struct rollup_delete *work;
	rollup_deletion_done *done; /* NULL: nobody waits */
	void *owner;
	struct rollup_delete_result result;
	struct errbuf error;
	int err;
};

static void begin_work(struct rollup_deletions *d);
static void next_left(struct rollup_deletions *d);

/* ---- The log --------------------------------------------------------------------------------- */

static void put_span(const struct rollup_deletion_spec *spec, struct buf *out)
{
	char from[TIME_PRINT_MAX_BYTES], to[TIME_PRINT_MAX_BYTES];
	if (spec->whole) {
		buf_append_text(out, "all there is");
		return;
	}
	buf_printf(out, "%.*s to %.*s", (int)time_print(from, spec->from_ms), from,
		   (int)time_print(to, spec->to_ms), to);
}

/* Whose it is and what it is. */
static void put_spec(const struct rollup_deletion_spec *spec, struct buf *out)
{
	buf_printf(out, "deletion by %.*s of tenant %.*s, ", spec->by.len ? (int)spec->by.len : 7,
		   spec->by.len ? spec->by.data : "unknown", (int)spec->tenant.len,
		   spec->tenant.data);
	if (spec->metric.len)
		buf_printf(out, "metric %.*s, ", (int)spec->metric.len, spec->metric.data);
	else
		buf_append_text(out, "all metrics, ");
	for (size_t i = 0; i < spec->tag_count; i++)
		buf_printf(out, "tag %.*s, ", (int)spec->tags[i].len, spec->tags[i].data);
	put_span(spec, out);
}

static uint64_t row_count(const struct rollup_delete_result *result)
{
	uint64_t rows = result->other_rows;
	for (size_t g = 0; g < ROLLUP_GRAINS_MAX; g++)
		rows += result->rows[g];
	return rows;
}

static void put_result(const struct rollup_delete_result *result, struct buf *out)
{
	buf_printf(out,
		   "%llu series, %llu samples, %llu late ones, %llu rows of roll-ups deleted; "
		   "%llu series left the catalog, %llu are damaged",
		   (unsigned long long)result->series, (unsigned long long)result->samples,
		   (unsigned long long)result->late, (unsigned long long)row_count(result),
		   (unsigned long long)result->forgotten, (unsigned long long)result->failed);
}

/* What it is, and what becomes of it; counts are nobody's business. */
static void say(const struct rollup_deletions *d, const char *what)
{
	struct buf line;
	if (d->spec.only_count)
		return;
	buf_init(&line, LINE_MAX_BYTES);
	put_spec(&d->spec, &line);
	log_info("%.*s: %s", (int)line.len, line.data, what);
	buf_release(&line);
}

static void say_end(const struct rollup_deletions *d)
{
	struct buf what;
	buf_init(&what, LINE_MAX_BYTES);
	if (d->err)
		buf_printf(&what, "%s; until then ", d->error.text);
	put_result(&d->result, &what);
	buf_append_char(&what, 0);
	say(d, what.data);
	buf_release(&what);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void count_end(const struct rollup_deletions *d)
{
	const struct rollup_delete_result *result = &d->result;
	if (d->spec.only_count)
		return;
	stat_add(d->err ? STAT_delete_failed : STAT_delete_done, 1);
	stat_add(STAT_delete_series, (int64_t)result->forgotten);
	stat_add(STAT_delete_samples, (int64_t)result->samples);
	stat_add(STAT_delete_late, (int64_t)result->late);
	stat_add(STAT_delete_rows, (int64_t)row_count(result));
}

/* The next one may be asked for from within. */
static void finish(struct rollup_deletions *d)
{
	rollup_deletion_done *done = d->done;
	struct rollup_delete_result result = d->result;
	struct errbuf error = d->error;
	int err = d->err;
	count_end(d);
	stat_add(STAT_delete_running, -1);
	say_end(d);
	d->done = NULL;
	d->state = RESTS;
	if (d->resuming)
		next_left(d);
	if (done)
		done(d->owner, err, err ? error.text : NULL, &result);
}

static void keep_error(struct rollup_deletions *d, int err, const char *sentence)
{
	d->err = err;
	if (err)
		errbuf_set(&d->error, err, "%s", sentence);
}

/* What is written from now on would be deleted by the next start. Another one that has taken the
 * note away is no fault. */
static void on_crossed_out(struct rollup_deletions *d, int err)
{
	if (err)
		keep_error(d, err,
			   "all of it is deleted, but the note of it stays: the next start will "
			   "delete once more what is there then");
	finish(d);
}

/* One that was broken off is gone on with at the next start. */
static void cross_out(struct rollup_deletions *d)
{
	struct store_parts column = {{slice_of(d->name)}};
	if (!d->version || d->err == ERR_CANCELLED) {
		finish(d);
		return;
	}
	d->state = CROSSES_OUT;
	store_write_reset(d->write);
	int err = store_cell_delete_if(d->write, TABLE_LEASES, &row, &column, d->version,
				       &d->outcome);
	if (!err)
		err = store_write_submit(d->write);
	if (err)
		on_crossed_out(d, err);
}

/* ---- Work ------------------------------------------------------------------------------------ */

static void on_worked(void *owner, int err)
{
	struct rollup_deletions *d = owner;
	d->result = rollup_delete_result(d->work);
	keep_error(d, err, err ? rollup_delete_sentence(d->work, err) : "");
	rollup_delete_free(d->work);
	d->work = NULL;
	cross_out(d);
}

static void begin_work(struct rollup_deletions *d)
{
	const struct rollup_deletions_options *o = &d->options;
	d->state = WORKS;
	d->work = rollup_delete_start(&(struct rollup_delete_options){
		.store = o->store,
		.track = o->track,
		.clock = o->clock,
		.executor = o->executor,
		.catalog = o->catalog,
		.grains = o->grains,
		.partitions = o->partitions,
		.quiet_ms = o->quiet_ms,
		.raw_retention_ms = o->raw_retention_ms,
		.retention_rules = o->retention_rules,
		.tenant = d->spec.tenant,
		.metric = d->spec.metric,
		.selectors = d->selectors,
		.selector_count = d->selector_count,
		.from_ms = d->spec.from_ms,
		.to_ms = d->spec.to_ms,
		.whole = d->spec.whole,
		.only_count = d->spec.only_count,
		.done = on_worked,
		.owner = d,
	});
	if (d->stopping)
		rollup_delete_cancel(d->work);
}

static void work_without_note(struct rollup_deletions *d)
{
	log_warn("the store has no room to note a deletion: if it is broken off, it has to be "
		 "asked for once more");
	begin_work(d);
}

static void on_noted(struct rollup_deletions *d, int err)
{
	if (!err && !d->outcome->applied)
		err = ERR_EXISTS;
	d->version = err ? 0 : d->outcome->version;
	if (err == ERR_FULL) {
		work_without_note(d);
	} else if (err) {
		keep_error(d, err, err_text(err));
		finish(d);
	} else {
		begin_work(d);
	}
}

static int write_note(struct rollup_deletions *d)
{
	struct buf note;
	d->state = NOTES;
	snprintf(d->name, sizeof(d->name), "%020lld", (long long)store_stamp(d->options.store));
	struct store_parts column = {{slice_of(d->name)}};
	buf_init(&note, NOTE_MAX_BYTES);
	deletion_note_put(&d->spec, &note);
	store_write_reset(d->write);
	int err = note.failed ? ERR_LIMIT
			      : store_cell_put_if(d->write, TABLE_LEASES, &row, &column, 0,
						  buf_slice(&note), 0, &d->outcome);
	buf_release(&note);
	return err ? err : store_write_submit(d->write);
}

static void on_written(struct store_write *write, int err)
{
	struct rollup_deletions *d = write->owner;
	if (d->state == NOTES)
		on_noted(d, err);
	else
		on_crossed_out(d, err);
}

/* ---- What was left --------------------------------------------------------------------------- */

static int read_selectors(struct rollup_deletions *d, struct errbuf *e)
{
	int err = 0;
	d->selector_count = 0;
	for (size_t i = 0; i < d->spec.tag_count && !err; i++)
		err = catalog_selectors_parse(d->spec.tags[i], &d->arena, d->selectors,
					      &d->selector_count, e);
	return err;
}

static void forget_last(struct rollup_deletions *d)
{
	d->result = (struct rollup_delete_result){0};
	d->error.text[0] = 0;
	d->err = 0;
	d->version = 0;
	arena_reset(&d->arena);
}

/* Of the next note that can be read. */
static bool take_left(struct rollup_deletions *d)
{
	const struct store_cell_scan *scan = &d->left->cell_scan;
	while (d->left_at < scan->count && !d->stopping) {
		const struct store_cell *cell = &scan->cells[d->left_at++];
		struct errbuf e = {""};
		forget_last(d);
		int err = deletion_note_read(cell->value, &d->arena, &d->spec, &e);
		err = err ? err : read_selectors(d, &e);
		if (!err) {
			d->version = cell->version;
			snprintf(d->name, sizeof(d->name), SHOWN, SHOWN_OF(cell->column.part[0]));
			return true;
		}
		log_error("a deletion that was left by the last run is not gone on with: %s",
			  e.text);
	}
	return false;
}

static void next_left(struct rollup_deletions *d)
{
	d->resuming = take_left(d);
	if (!d->resuming) {
		d->state = RESTS;
		return;
	}
	stat_add(STAT_delete_resumed, 1);
	stat_add(STAT_delete_running, 1);
	say(d, "goes on, since it was broken off");
	begin_work(d);
}

static void on_looked(struct store_read *read, int err)
{
	struct rollup_deletions *d = read->owner;
	d->looked = true;
	d->err = err;
}

/* Waits for the answer, so that nobody who asks at once is told that another one is at work. */
static void look(struct rollup_deletions *d)
{
	struct task_queue queue;
	task_queue_init(&queue);
	d->read->executor = &queue.executor;
	d->left = store_read_add(d->read, STORE_CELL_SCAN);
	ASSERT(d->left); /* the first of an empty arena */
	d->left->cell_scan.table = TABLE_LEASES;
	d->left->cell_scan.key = row;
	d->read->now_ms = clock_wall_ms(d->options.clock);
	int err = store_read_submit(d->read);
	while (!err && !d->looked)
		task_queue_wait(&queue);
	task_queue_release(&queue);
	err = err ? err : d->err;
	if (err)
		log_error("deletions that were broken off cannot be looked for: %s",
			  store_read_sentence(d->read, err));
	else
		next_left(d);
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct rollup_deletions *rollup_deletions_new(const struct rollup_deletions_options *options)
{
	struct rollup_deletions *d = mem_zalloc(sizeof(*d));
	d->options = *options;
	arena_init(&d->arena, SPEC_MAX_BYTES);
	d->read = store_read_new(options->store, READ_MAX_BYTES);
	d->read->done = on_looked;
	d->read->owner = d;
	d->write = store_write_new(options->store, WRITE_MAX_BYTES);
	d->write->executor = options->executor;
	d->write->done = on_written;
	d->write->owner = d;
	look(d);
	return d;
}

void rollup_deletions_stop(struct rollup_deletions *d)
{
	d->stopping = true;
	if (d->work)
		rollup_delete_cancel(d->work);
}

bool rollup_deletions_idle(const struct rollup_deletions *d)
{
	return d->state == RESTS;
}

void rollup_deletions_free(struct rollup_deletions *d)
{
	store_read_free(d->read);
	store_write_free(d->write);
	arena_release(&d->arena);
	mem_free(d);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static int copy_spec(struct rollup_deletions *d, const struct rollup_deletion_spec *spec)
{
	struct slice *texts[3 + ROLLUP_DELETION_TAGS_MAX] = {&d->spec.tenant, &d->spec.metric,
							     &d->spec.by};
	d->spec = *spec;
	for (size_t i = 0; i < spec->tag_count; i++)
		texts[3 + i] = &d->spec.tags[i];
	for (size_t i = 0; i < 3 + spec->tag_count; i++) {
		if (!texts[i]->len)
			continue;
		*texts[i] = arena_copy(&d->arena, *texts[i]);
		if (!texts[i]->data)
			return ERR_LIMIT;
	}
	return 0;
}

int rollup_deletions_start(struct rollup_deletions *d, const struct rollup_deletion_spec *spec,
			   rollup_deletion_done *done, void *owner, struct errbuf *e)
{
	if (d->state != RESTS || d->stopping)
		return errbuf_set(e, ERR_BUSY, "another deletion is at work");
	forget_last(d);
	if (copy_spec(d, spec))
		return errbuf_set(e, ERR_INVALID, "the tags take too much room");
	int err = read_selectors(d, e);
	if (err)
		return errbuf_prefix(e, ERR_INVALID, "tag");
	d->done = done;
	d->owner = owner;
	d->resuming = false;
	err = spec->only_count ? 0 : write_note(d);
	if (err && err != ERR_FULL) {
		d->state = RESTS;
		return errbuf_set(e, err, "%s", err_text(err));
	}
	stat_add(STAT_delete_running, 1);
	say(d, "begins");
	if (err)
		work_without_note(d);
	else if (spec->only_count)
		begin_work(d);
	return 0;
}

void rollup_deletions_leave(struct rollup_deletions *d)
{
	d->done = NULL;
	if (d->work && d->spec.only_count)
		rollup_delete_cancel(d->work);
}
