#include "rollup/deletions.h"

#include "base/log.h"
#include "base/stats.h"
#include "lease/job_claim.h"
#include "loop/job.h"
#include "rollup/deletion_note.h"
#include "store/wait.h"
#include "wire/timetext.h"

enum {
	READ_MAX_BYTES = 4 << 20,
	WRITE_MAX_BYTES = 1 << 20,
	NOTE_MAX_BYTES = 256 << 10,
	SPEC_MAX_BYTES = 1 << 20,
	LINE_MAX_BYTES = 64 << 10,
	NAME_MAX_BYTES = 32,
	LEFT_WAIT_MS = 5000,
};

static const struct store_parts row = {{SLICE("deletion")}};

struct rollup_deletions {
	const struct rollup_site *site;
	struct executor *executor;
	struct catalog *catalog; /* NULL: none */
	bool stopping;
	struct job *job;            /* NULL: none is at work */
	struct store_read *left;    /* the notes that are there */
	rollup_deletion_done *done; /* NULL: nobody waits */
	void *owner;

	/* The one at work: the job's while there is one. */
	struct rollup_deletion_spec spec;
	struct catalog_selector selectors[CATALOG_SELECTORS_MAX];
	size_t selector_count;
	struct arena arena; /* what the spec points to */
	char name[NAME_MAX_BYTES];
	uint64_t version; /* of its note; 0: there is none */
	struct rollup_delete_result result;
	struct errbuf error;
	int err;
};

/* ---- The log --------------------------------------------------------------------------------- */

static void deletion_put_span(const struct rollup_deletion_spec *spec, struct buf *out)
{
	char from[TIME_PRINT_MAX_BYTES], to[TIME_PRINT_MAX_BYTES];
	if (spec->whole) {
		buf_append_text(out, "all there is");
		return;
	}
	buf_printf(out, "%.*s to %.*s", (int)time_print(from, spec->from_ms), from,
		   (int)time_print(to, spec->to_ms), to);
}

/* Says whose deletion it is, and of what. */
static void deletion_put_spec(const struct rollup_deletion_spec *spec, struct buf *out)
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
	deletion_put_span(spec, out);
}

static uint64_t deletion_row_count(const struct rollup_delete_result *result)
{
	uint64_t rows = result->other_rows;
	for (size_t g = 0; g < GRANULARITIES_MAX; g++)
		rows += result->rows[g];
	return rows;
}

static void deletion_put_result(const struct rollup_delete_result *result, struct buf *out)
{
	buf_printf(out,
		   "%llu series, %llu samples, %llu late ones, %llu rows of roll-ups deleted; "
		   "%llu series left the catalog, %llu are damaged",
		   (unsigned long long)result->series, (unsigned long long)result->samples,
		   (unsigned long long)result->late, (unsigned long long)deletion_row_count(result),
		   (unsigned long long)result->forgotten, (unsigned long long)result->failed);
}

/* Says which deletion it is and what becomes of it. A count is not logged. */
static void deletion_say(const struct rollup_deletions *d, const char *what)
{
	struct buf line;
	if (d->spec.only_count)
		return;
	buf_init(&line, LINE_MAX_BYTES);
	deletion_put_spec(&d->spec, &line);
	log_info("%.*s: %s", (int)line.len, line.data, what);
	buf_release(&line);
}

static void deletion_say_end(const struct rollup_deletions *d)
{
	struct buf what;
	buf_init(&what, LINE_MAX_BYTES);
	if (d->err)
		buf_printf(&what, "%s; until then ", d->error.text);
	deletion_put_result(&d->result, &what);
	buf_append_char(&what, 0);
	deletion_say(d, what.data);
	buf_release(&what);
}

static void deletion_count_end(const struct rollup_deletions *d)
{
	const struct rollup_delete_result *result = &d->result;
	if (d->spec.only_count)
		return;
	stat_add(d->err ? STAT_delete_failed : STAT_delete_done, 1);
	stat_add(STAT_delete_series, (int64_t)result->forgotten);
	stat_add(STAT_delete_samples, (int64_t)result->samples);
	stat_add(STAT_delete_late, (int64_t)result->late);
	stat_add(STAT_delete_rows, (int64_t)deletion_row_count(result));
}

/* ---- The job --------------------------------------------------------------------------------- */

/* Carried out also when the job is to end: what is noted of a deletion is what becomes of it. */
static int deletion_write(struct store_write *write)
{
	struct task_queue queue;
	task_queue_init(&queue);
	int err = store_write_wait_known(write, &queue);
	task_queue_release(&queue);
	return err;
}

/* ERR_EXISTS: there is another one of that name. */
static int deletion_put_note(struct rollup_deletions *d, struct store_write *write)
{
	struct store_write_cond *outcome;
	struct buf note;
	snprintf(d->name, sizeof(d->name), "%020lld", (long long)store_stamp(d->site->store));
	struct store_parts column = {{slice_of(d->name)}};
	buf_init(&note, NOTE_MAX_BYTES);
	deletion_note_put(&d->spec, &note);
	int err = note.failed ? ERR_LIMIT
			      : store_cell_put_if(write, TABLE_LEASES, &row, &column, 0,
						  buf_slice(&note), 0, &outcome);
	err = err ? err : deletion_write(write);
	/* Where it is not applied it may have been by the first of several tries. */
	if (!err && !outcome->applied && !slice_equal(outcome->value, buf_slice(&note)))
		err = ERR_EXISTS;
	d->version = err ? 0 : outcome->version;
	buf_release(&note);
	return err;
}

/* A store without room takes no note, but the deletion makes room. */
static int deletion_note(struct rollup_deletions *d)
{
	struct store_write *write = store_write_new(d->site->store, WRITE_MAX_BYTES);
	int err = deletion_put_note(d, write);
	store_write_free(write);
	if (err != ERR_FULL)
		return err;
	log_warn("the store has no room for the note of a deletion: if the server ends before the "
		 "deletion does, ask for it again");
	return 0;
}

/* If the note stayed, the next start would delete what is written from now on. It is no fault if
 * another process has removed the note. */
static void deletion_cross_out(struct rollup_deletions *d)
{
	struct store_write_cond *outcome;
	const struct store_parts column = {{slice_of(d->name)}};
	struct store_write *write = store_write_new(d->site->store, WRITE_MAX_BYTES);
	int err = store_cell_delete_if(write, TABLE_LEASES, &row, &column, d->version, &outcome);
	err = err ? err : deletion_write(write);
	if (!err && !outcome->applied && outcome->version)
		err = ERR_EXISTS; /* not what was noted: the note of somebody else */
	store_write_free(write);
	if (err)
		d->err = errbuf_set(&d->error, err,
				    "all of it is deleted, but the note of it stays: the next "
				    "start will delete once more what is there then");
}

struct deletion_telling {
	struct rollup_deletions *deletions;
	const struct slice *metrics;
	size_t count;
};

static void deletion_tell_catalog(void *argument)
{
	const struct deletion_telling *telling = argument;
	const struct rollup_deletions *d = telling->deletions;
	for (size_t i = 0; i < telling->count; i++)
		catalog_forgotten(d->catalog, d->spec.tenant, telling->metrics[i]);
}

static void deletion_forgotten(void *owner, const struct slice *metrics, size_t count)
{
	struct rollup_deletions *d = owner;
	struct deletion_telling telling = {d, metrics, count};
	job_call(d->job, d->executor, deletion_tell_catalog, &telling);
}

/* One that was broken off stays noted, and goes on at the next start. The name of its note is the
 * stamp of the wish. */
static void deletion_work(struct rollup_deletions *d, bool again)
{
	const struct rollup_delete_options options = {
		.site = d->site,
		.queue = job_queue(d->job),
		.tenant = d->spec.tenant,
		.metric = d->spec.metric,
		.selectors = d->selectors,
		.selector_count = d->selector_count,
		.from_ms = d->spec.from_ms,
		.to_ms = d->spec.to_ms,
		.whole = d->spec.whole,
		.only_count = d->spec.only_count,
		.stamp_us = strtoll(d->name, NULL, 10),
		.again = again,
		.forgotten = d->catalog ? deletion_forgotten : NULL,
		.owner = d,
	};
	d->err = rollup_delete(&options, &d->result, &d->error);
	if (d->version && d->err != ERR_CANCELLED)
		deletion_cross_out(d);
}

static void deletion_end(struct rollup_deletions *d)
{
	deletion_count_end(d);
	stat_add(STAT_delete_running, -1);
	deletion_say_end(d);
}

static void deletion_note_and_work(struct rollup_deletions *d)
{
	d->err = deletion_note(d);
	if (d->err)
		errbuf_set(&d->error, d->err, "%s", err_text(d->err));
	else
		deletion_work(d, false);
}

static void deletion_run(struct job *job, void *owner)
{
	struct rollup_deletions *d = owner;
	if (d->spec.only_count) {
		deletion_work(d, false);
	} else {
		d->err = job_claims_take(d->site->claims, job_queue(job), JOB_CLAIM_DELETION,
					 &d->error);
		if (!d->err) {
			deletion_note_and_work(d);
			job_claims_give(d->site->claims, JOB_CLAIM_DELETION);
		}
	}
	deletion_end(d);
}

/* ---- What was left --------------------------------------------------------------------------- */

static int deletion_read_selectors(struct rollup_deletions *d, struct errbuf *e)
{
	int err = 0;
	d->selector_count = 0;
	for (size_t i = 0; i < d->spec.tag_count && !err; i++)
		err = catalog_selectors_parse(d->spec.tags[i], &d->arena, d->selectors,
					      &d->selector_count, e);
	return err;
}

static void deletion_forget_last(struct rollup_deletions *d)
{
	d->result = (struct rollup_delete_result){0};
	d->error.text[0] = 0;
	d->err = 0;
	d->version = 0;
	d->name[0] = 0;
	arena_reset(&d->arena);
}

/* One of the notes is now the one at work. */
static int deletion_take_left(struct rollup_deletions *d, const struct store_cell *cell,
			      struct errbuf *e)
{
	deletion_forget_last(d);
	int err = deletion_note_read(cell->value, &d->arena, &d->spec, e);
	err = err ? err : deletion_read_selectors(d, e);
	if (err)
		return err;
	d->version = cell->version;
	snprintf(d->name, sizeof(d->name), SHOWN, SHOWN_OF(cell->column.part[0]));
	return 0;
}

static int deletion_read_left(struct rollup_deletions *d, struct task_queue *queue)
{
	store_read_reset(d->left);
	struct store_request *request = store_read_add(d->left, STORE_CELL_SCAN);
	ASSERT(request); /* the first of an empty arena */
	request->cell_scan.table = TABLE_LEASES;
	request->cell_scan.key = row;
	d->left->now_ms = clock_wall_ms(d->site->clock);
	return store_read_wait(d->left, queue);
}

/* Others that share the store may be at work on what is noted: only what nobody alive has is left.
 */
static int deletion_claim_left(struct rollup_deletions *d, struct job *job)
{
	struct errbuf e = {""};
	bool told = false;
	int err = job_claims_take(d->site->claims, job_queue(job), JOB_CLAIM_DELETION, &e);
	for (; err;
	     err = job_claims_take(d->site->claims, job_queue(job), JOB_CLAIM_DELETION, &e)) {
		if (!told)
			log_info("deletions that are noted wait until it is known whose they are: "
				 "%s",
				 e.text);
		told = true;
		if (job_sleep(job, LEFT_WAIT_MS))
			return ERR_CANCELLED;
	}
	return 0;
}

static void deletion_work_on_left(struct rollup_deletions *d, struct job *job)
{
	const struct store_cell_scan *scan = &d->left->requests->cell_scan;
	for (size_t i = 0; i < scan->count && !job_is_stopping(job); i++) {
		struct errbuf e = {""};
		if (deletion_take_left(d, &scan->cells[i], &e)) {
			log_error("cannot continue a deletion that the last run left: %s", e.text);
			continue;
		}
		stat_add(STAT_delete_resumed, 1);
		stat_add(STAT_delete_running, 1);
		deletion_say(d, "continues: the last run was ended before it was done");
		deletion_work(d, true);
		deletion_end(d);
	}
}

static void deletion_run_left(struct job *job, void *owner)
{
	struct rollup_deletions *d = owner;
	if (deletion_claim_left(d, job))
		return;
	int err = deletion_read_left(d, job_queue(job));
	if (!err)
		deletion_work_on_left(d, job);
	else if (err != ERR_CANCELLED)
		log_error("cannot look for deletions that were left: %s; the next start does",
			  store_read_sentence(d->left, err));
	job_claims_give(d->site->claims, JOB_CLAIM_DELETION);
}

/* The next one may be asked for from within. */
static void deletion_done(void *owner)
{
	struct rollup_deletions *d = owner;
	rollup_deletion_done *done = d->done;
	struct rollup_delete_result result = d->result;
	struct errbuf error = d->error;
	int err = d->err;
	job_free(d->job);
	d->job = NULL;
	d->done = NULL;
	if (done)
		done(d->owner, err, err ? error.text : NULL, &result);
}

static int deletion_start(struct rollup_deletions *d, void (*run)(struct job *job, void *owner))
{
	return job_start("deletion", run, deletion_done, d, d->executor, &d->job);
}

/* Waits for the answer, so that nobody who asks at once is told that another one is at work. */
static void deletion_look(struct rollup_deletions *d)
{
	struct task_queue queue;
	task_queue_init(&queue);
	int err = deletion_read_left(d, &queue);
	task_queue_release(&queue);
	if (!err && d->left->requests->cell_scan.count)
		err = deletion_start(d, deletion_run_left);
	if (err)
		log_error("cannot look for deletions that the last run left: %s",
			  store_read_sentence(d->left, err));
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct rollup_deletions *rollup_deletions_new(const struct rollup_site *site,
					      struct executor *executor, struct catalog *catalog)
{
	struct rollup_deletions *d = mem_zalloc(sizeof(*d));
	d->site = site;
	d->executor = executor;
	d->catalog = catalog;
	arena_init(&d->arena, SPEC_MAX_BYTES);
	d->left = store_read_new(site->store, READ_MAX_BYTES);
	deletion_look(d);
	return d;
}

void rollup_deletions_stop(struct rollup_deletions *d)
{
	d->stopping = true;
	if (d->job)
		job_stop(d->job);
}

bool rollup_deletions_idle(const struct rollup_deletions *d)
{
	return !d->job;
}

void rollup_deletions_free(struct rollup_deletions *d)
{
	ASSERT(!d->job);
	store_read_free(d->left);
	arena_release(&d->arena);
	mem_free(d);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static int deletion_copy_spec(struct rollup_deletions *d, const struct rollup_deletion_spec *spec)
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
	if (d->job || d->stopping)
		return errbuf_set(e, ERR_BUSY, "another deletion is at work");
	deletion_forget_last(d);
	if (deletion_copy_spec(d, spec))
		return errbuf_set(e, ERR_INVALID, "the tags take too much room");
	int err = deletion_read_selectors(d, e);
	if (err)
		return errbuf_prefix(e, ERR_INVALID, "tag");
	d->done = done;
	d->owner = owner;
	stat_add(STAT_delete_running, 1);
	deletion_say(d, "begins");
	if (deletion_start(d, deletion_run)) {
		stat_add(STAT_delete_running, -1);
		return errbuf_set(e, ERR_BUSY, "too many jobs are at work");
	}
	return 0;
}

void rollup_deletions_leave(struct rollup_deletions *d)
{
	d->done = NULL;
	if (d->job && d->spec.only_count)
		job_stop(d->job);
}
