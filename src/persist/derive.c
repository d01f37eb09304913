#include "persist/derive.h"

#include "base/log.h"
#include "base/stats.h"
#include "persist/claims.h"
#include "rate/job.h"
#include "rate/oidset.h"

enum {
	ARENA_MAX_BYTES = 256 << 20, /* of one table at work */
	JOBS = 32, /* under way at once: their writes share commits; each has half a megabyte */
};

/* A job and its table. The source may be gone by the time the job is done. */
struct derivation {
	struct deriver *deriver;
	struct rate_job *job;
	struct arena arena; /* of the table */
	struct rate_table table;
	struct claim claim;
	bool running;
};

struct deriver {
	const struct persist_base *base;
	struct layouts *layouts;
	struct derivation jobs[JOBS]; /* of what is due */
	bool stopped;
	bool is_late; /* the pass over all sources took longer than until the next was due */
};

/* ---- The table of a source ------------------------------------------------------------------- */

/* All OIDs of the OIDSet that rates are made of, in its order. */
static int derive_make_columns(struct derivation *d, const struct oidset *set, struct errbuf *e)
{
	struct rate_column *columns = arena_zalloc(&d->arena, set->oid_count * sizeof(*columns));
	if (!columns)
		return ERR_LIMIT;
	for (size_t i = 0; i < set->oid_count; i++) {
		size_t at = d->table.column_count;
		d->table.column_count += rate_column_of(set->oids[i], &columns[at]);
	}
	d->table.columns = columns;
	if (d->table.column_count > RATE_COLUMNS_MAX)
		return errbuf_set(e, ERR_LIMIT, "an OIDSet has at most %d OIDs to be aggregated",
				  RATE_COLUMNS_MAX);
	return 0;
}

/* column_count: it has none of that OID. */
static size_t derive_find_column(const struct layout *layout, struct slice oid)
{
	size_t c = 0;
	while (c < layout->column_count &&
	       !(layout->oids[c] && slice_equal(layout->oids[c]->name, oid)))
		c++;
	return c;
}

/* Where a layout has what a table is made of. */
struct derive_columns_at {
	size_t counters[RATE_COLUMNS_MAX];
	size_t uptime, discontinuity, speed;
};

static struct derive_columns_at derive_find_columns(const struct rate_table *table,
						    const struct layout *layout)
{
	struct derive_columns_at at = {
		.uptime = derive_find_column(layout, SLICE("sysUpTime")),
		.discontinuity = derive_find_column(layout, SLICE("ifCounterDiscontinuityTime")),
		.speed = derive_find_column(layout, SLICE("ifHighSpeed")),
	};
	for (size_t c = 0; c < table->column_count; c++)
		at.counters[c] = derive_find_column(layout, table->columns[c].name);
	return at;
}

static uint64_t derive_handle_at(const struct layout *layout, size_t row, size_t column)
{
	return column < layout->column_count ? layout_handle(layout, row, column) : 0;
}

/* ERR_NOT_FOUND: it has no counters, nor what tells about those of another row. */
static int derive_make_row(struct derivation *d, const struct layout *layout,
			   const struct derive_columns_at *at, size_t r, struct rate_row *row)
{
	uint64_t *handles = arena_zalloc(&d->arena, d->table.column_count * sizeof(*handles));
	bool any = false;
	if (!handles)
		return ERR_LIMIT;
	for (size_t c = 0; c < d->table.column_count; c++) {
		handles[c] = derive_handle_at(layout, r, at->counters[c]);
		any = any || handles[c];
	}
	*row = (struct rate_row){
		.id = layout->rows[r].id,
		.handles = handles,
		.discontinuity = derive_handle_at(layout, r, at->discontinuity),
		.speed = derive_handle_at(layout, r, at->speed),
	};
	return any || row->discontinuity || row->speed ? 0 : ERR_NOT_FOUND;
}

static int derive_make_rows(struct derivation *d, const struct layout *layout,
			    struct rate_row *rows)
{
	struct derive_columns_at at = derive_find_columns(&d->table, layout);
	for (size_t r = 0; r < layout->row_count; r++) {
		if (!layout->rows[r].id)
			continue;
		uint64_t uptime = derive_handle_at(layout, r, at.uptime);
		if (uptime)
			d->table.uptime = uptime;
		int err = derive_make_row(d, layout, &at, r, &rows[d->table.row_count]);
		if (err == ERR_LIMIT)
			return err;
		d->table.row_count += !err;
	}
	return 0;
}

static void derive_join_rows(const struct rate_table *table, struct rate_row *to,
			     const struct rate_row *from)
{
	uint64_t *handles = (uint64_t *)to->handles; /* made by make_row */
	for (size_t c = 0; c < table->column_count; c++) {
		if (!handles[c])
			handles[c] = from->handles[c];
	}
	if (!to->discontinuity)
		to->discontinuity = from->discontinuity;
	if (!to->speed)
		to->speed = from->speed;
}

/* A path has several rows in a poll when its values came at different times, and in the polls of
 * two OIDSets of one name. */
static void derive_sort_rows(struct rate_table *table, struct rate_row *rows)
{
	size_t kept = 0;
	rate_rows_sort(rows, table->row_count);
	for (size_t i = 0; i < table->row_count; i++) {
		if (kept && rows[kept - 1].id == rows[i].id)
			derive_join_rows(table, &rows[kept - 1], &rows[i]);
		else
			rows[kept++] = rows[i];
	}
	table->row_count = kept;
	table->rows = rows;
}

static int derive_make_table(struct derivation *d, const struct source *source, struct errbuf *e)
{
	size_t most = 0;
	arena_reset(&d->arena);
	d->table = (struct rate_table){
		.device = arena_copy(&d->arena, source->device),
		.oidset = source->oidset->name,
		.config = rate_config_of(source->oidset),
	};
	for (const struct layout *layout = source->layouts; layout; layout = layout->sibling)
		most += layout->row_count;
	struct rate_row *rows = arena_alloc(&d->arena, most * sizeof(*rows));
	int err = counter_config_check(&d->table.config, e);
	err = err ? err : derive_make_columns(d, source->oidset, e);
	if (!err && (!rows || !d->table.device.data))
		err = ERR_LIMIT;
	for (const struct layout *layout = source->layouts; layout && !err;
	     layout = layout->sibling)
		err = derive_make_rows(d, layout, rows);
	if (!err)
		derive_sort_rows(&d->table, rows);
	return err;
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

static void derive_begin_due(struct deriver *d);

static void derive_job_done(struct rate_job *job, int err)
{
	struct derivation *d = rate_job_owner(job);
	d->running = false;
	claims_give_back(d->deriver->base->claims, &d->claim);
	if (err) {
		log_warn("rates of " SHOWN ", OIDSet " SHOWN
			 ", could not be made: %s; they are tried again",
			 SHOWN_OF(d->table.device), SHOWN_OF(d->table.oidset), rate_job_error(job));
		stat_add(STAT_persist_rates_failed, 1);
	} else {
		stat_add(STAT_persist_rates_made, 1);
	}
	derive_begin_due(d->deriver);
}

/* Where none is, what is due waits for one of these to end. */
static bool derive_another_is_idle(const struct derivation *d)
{
	for (size_t i = 0; i < JOBS; i++) {
		const struct derivation *other = &d->deriver->jobs[i];
		if (other != d && !other->running)
			return true;
	}
	return false;
}

static int derive_start_job(struct derivation *d, struct source *source, struct errbuf *e)
{
	int err = derive_make_table(d, source, e);
	if (err || !d->table.row_count || !d->table.column_count)
		return err;
	struct rate_job_options options = {
		.table = &d->table,
		.until_ms = source->newest_ms,
		.now_ms = clock_age_ms(d->deriver->base->clock),
		.retention = {[0 ... COUNTER_LEVELS_MAX - 1] = RETENTION_EVER},
		.awaited = d->deriver->is_late && !derive_another_is_idle(d),
		.done = derive_job_done,
		.owner = d,
	};
	err = rate_job_start(d->job, &options);
	if (err)
		return errbuf_set(e, err, "%s", rate_job_error(d->job));
	d->running = true;
	return 0;
}

/* A source that has just come gets its place in the interval by its name, so that all are spread
 * over it. */
static bool derive_is_due(struct deriver *d, struct source *source, int64_t now_ms)
{
	int64_t every_ms = d->base->derive_every_ms;
	if (!source->due_ms) {
		source->due_ms = now_ms + (int64_t)(source->hash % (uint64_t)every_ms);
		claims_see(d->base->claims, claims_source(source->device, source->oidset->name));
	}
	return source->due_ms <= now_ms && source->newest_ms != INT64_MIN;
}

/* What another has a claim on stays due. */
static void derive_begin(struct derivation *d, struct source *source, int64_t now_ms)
{
	const struct persist_base *base = d->deriver->base;
	struct errbuf e = {""};
	d->claim = (struct claim){claims_source(source->device, source->oidset->name), base->worker,
				  NULL};
	if (!claims_take(base->claims, &d->claim))
		return;
	int err = derive_start_job(d, source, &e);
	if (!d->running)
		claims_give_back(base->claims, &d->claim);
	source->due_ms = now_ms + base->derive_every_ms;
	source->newest_ms = INT64_MIN;
	if (!err)
		return;
	log_warn("rates of " SHOWN ", OIDSet " SHOWN
		 ", could not be made: %s; they are tried again",
		 SHOWN_OF(source->device), SHOWN_OF(source->oidset->set_name),
		 e.text[0] ? e.text : err_text(err));
	stat_add(STAT_persist_rates_failed, 1);
}

static struct derivation *derive_find_idle(struct deriver *d)
{
	for (size_t i = 0; i < JOBS; i++) {
		if (!d->jobs[i].running)
			return &d->jobs[i];
	}
	return NULL;
}

/* Goes on with the pass over all sources: with very many, one that began again after each job would
 * be most of the work. */
static void derive_begin_due(struct deriver *d)
{
	struct layouts *layouts = d->layouts;
	int64_t now_ms = clock_mono_ms(d->base->clock);
	struct derivation *idle = derive_find_idle(d);
	while (layouts->pass != &layouts->sources && idle && !d->stopped) {
		struct source *source = layouts->pass;
		layouts->pass = source->after;
		if (!derive_is_due(d, source, now_ms))
			continue;
		derive_begin(idle, source, now_ms);
		idle = derive_find_idle(d);
	}
}

void deriver_tick(struct deriver *deriver)
{
	struct layouts *layouts = deriver->layouts;
	deriver->is_late = layouts->pass != &layouts->sources;
	if (!deriver->is_late)
		layouts->pass = layouts->sources.after;
	derive_begin_due(deriver);
}

void deriver_stop(struct deriver *deriver)
{
	deriver->stopped = true;
}

bool deriver_idle(const struct deriver *deriver)
{
	for (size_t i = 0; i < JOBS; i++) {
		if (deriver->jobs[i].running)
			return false;
	}
	return true;
}

struct deriver *deriver_new(const struct persist_base *base, struct layouts *layouts)
{
	struct deriver *d = mem_zalloc(sizeof(*d));
	d->base = base;
	d->layouts = layouts;
	for (size_t i = 0; i < JOBS; i++) {
		d->jobs[i].deriver = d;
		d->jobs[i].job = rate_job_new(base->store, base->executor);
		arena_init(&d->jobs[i].arena, ARENA_MAX_BYTES);
	}
	return d;
}

void deriver_free(struct deriver *deriver)
{
	for (size_t i = 0; i < JOBS; i++) {
		rate_job_free(deriver->jobs[i].job);
		arena_release(&deriver->jobs[i].arena);
	}
	mem_free(deriver);
}
