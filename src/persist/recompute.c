/* Order of events: for each OID of the OIDSet, and for what is polled beside them, the catalog says
 * which series there are; of these series rows are made; the newest samples are read, which say up
 * to when there is raw data; then the worker has the table. */
#include "persist/recompute.h"

#include <stdlib.h>

#include "model/counter_key.h"
#include "persist/derive_request.h"
#include "persist/private.h"
#include "queue/queue.h"
#include "rate/oidset.h"

enum {
	ARENA_MAX_BYTES = 512 << 20,
	READ_MAX_BYTES = 64 << 20,
	SERIES_MAX = 100000, /* of one OID of a device */
};

/* A series that was found. */
struct found {
	struct slice tags_text;
	uint64_t handle;
	size_t metric; /* place in `metrics` */
};

/* A row of the table, with its name. */
struct named_row {
	struct slice tags_text;
	uint64_t handles[]; /* by column */
};

struct recompute {
	struct recompute *next;
	struct persist *persist;
	struct recompute_options options;
	struct arena arena;
	const struct oidset *oidset;
	bool cancelled, abandoned;
	struct post *post; /* whose worker has it; NULL: none has it yet */
	struct errbuf error;

	/* The OIDs that rates are made of, then these. */
	struct slice metrics[RATE_COLUMNS_MAX + 3];
	size_t metric_count, discontinuity, speed, uptime;
	struct slice device_text; /* the tags of what belongs to the device itself */
	struct slice pieces[2];
	struct catalog_pattern patterns[2];
	struct catalog_selector selectors[2];
	struct catalog_find find;
	size_t finding; /* the metric at hand */
	struct found *found;
	size_t found_count, found_room;

	struct rate_table table;
	struct rate_row *rows;
	uint64_t *counters; /* the handles of all rows */
	size_t counter_count;
	struct store_read *read;
	struct store_request *newest, *oldest;
	int64_t newest_ms, oldest_ms;

	struct derive_request derive;
};

/* ---- Ending ---------------------------------------------------------------------------------- */

static void unlist(struct recompute *r)
{
	struct recompute **at = &r->persist->recomputes;
	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
}

static void finish(struct recompute *r, int err)
{
	if (err && !r->error.text[0])
		errbuf_set(&r->error, err, "%s", err_text(err));
	unlist(r);
	r->options.done(r, err);
}

void recompute_free(struct recompute *r)
{
	if (r->abandoned)
		return;
	if (r->read)
		store_read_free(r->read);
	mem_free(r->found);
	arena_release(&r->arena);
	mem_free(r);
}

void recompute_cancel(struct recompute *r)
{
	r->cancelled = true;
	atomic_store(&r->derive.cancelled, true);
}

static int nothing_stored(struct recompute *r)
{
	return errbuf_set(&r->error, ERR_NOT_FOUND,
			  "nothing is stored of device " SHOWN ", OIDSet " SHOWN,
			  SHOWN_OF(r->options.device), SHOWN_OF(r->oidset->name));
}

/* ---- The worker ------------------------------------------------------------------------------ */

static void run_derived(struct task *task)
{
	struct recompute *r = CONTAINER_OF(task, struct recompute, derive.done);
	if (r->abandoned) {
		r->abandoned = false;
		recompute_free(r);
		return;
	}
	r->error = r->derive.error;
	finish(r, r->derive.err);
}

/* The worker may still look at it when it moves again: then it is freed, or never. */
void recompute_abandon(struct post *post)
{
	struct recompute *next;
	for (struct recompute *r = post->persist->recomputes; r; r = next) {
		next = r->next;
		if (r->post != post)
			continue;
		r->abandoned = true;
		atomic_store(&r->derive.cancelled, true);
		errbuf_set(&r->error, ERR_TIMEOUT, "the worker that has the device hangs");
		finish(r, ERR_TIMEOUT);
	}
}

/* Older than raw data there is nothing to compute, nor later than it. */
static void narrow(struct recompute *r)
{
	struct derive_request *derive = &r->derive;
	int64_t widest_ms = counter_widest_ms(&r->table.config);
	if (derive->from_ms < r->oldest_ms - widest_ms)
		derive->from_ms = r->oldest_ms - widest_ms;
	if (derive->to_ms > r->newest_ms)
		derive->to_ms = r->newest_ms;
}

static void give_to_worker(struct recompute *r)
{
	r->post = persist_post(r->persist, r->oidset->queue, r->options.device);
	r->derive.table = &r->table;
	r->derive.newest_ms = r->newest_ms;
	if (!r->options.only_derive) {
		r->derive.from_ms = r->options.from_ms;
		r->derive.to_ms = r->options.to_ms;
		narrow(r);
	}
	r->derive.only_report = r->options.only_report;
	r->derive.executor = loop_executor(r->persist->options.loop);
	r->derive.done.run = run_derived;
	worker_derive(r->post->worker, &r->derive);
}

/* ---- The newest samples, and the oldest ------------------------------------------------------ */

static void take_samples(struct recompute *r)
{
	const struct store_points *newest = r->newest->last_before.points;
	const struct store_points *oldest = r->oldest->range.points;
	for (size_t i = 0; i < r->counter_count; i++) {
		if (newest[i].count && newest[i].ts_ms[0] > r->newest_ms)
			r->newest_ms = newest[i].ts_ms[0];
		if (oldest[i].count && oldest[i].ts_ms[0] < r->oldest_ms)
			r->oldest_ms = oldest[i].ts_ms[0];
	}
}

static void samples_read(struct store_read *read, int err)
{
	struct recompute *r = read->owner;
	if (err) {
		errbuf_set(&r->error, err, "%s", store_read_sentence(read, err));
		finish(r, err);
		return;
	}
	take_samples(r);
	if (r->cancelled)
		err = ERR_CANCELLED;
	else if (r->newest->more || r->oldest->more)
		err = store_read_submit(read);
	else if (r->newest_ms == INT64_MIN)
		err = nothing_stored(r);
	else
		give_to_worker(r);
	if (err)
		finish(r, err);
}

static int read_samples(struct recompute *r)
{
	r->read = store_read_new(r->persist->options.store, READ_MAX_BYTES);
	r->read->executor = loop_executor(r->persist->options.loop);
	r->read->done = samples_read;
	r->read->owner = r;
	r->read->now_ms = clock_age_ms(r->persist->options.clock);
	r->newest = store_read_add(r->read, STORE_LAST_BEFORE);
	r->oldest = store_read_add(r->read, STORE_RANGE);
	ASSERT(r->newest && r->oldest); /* the first of an empty read */
	r->newest_ms = INT64_MIN;
	r->oldest_ms = INT64_MAX;
	r->newest->last_before = (struct store_last_before){
		.table = TABLE_RAW_DATA,
		.period_ms = r->table.config.base_ms,
		.handles = r->counters,
		.handle_count = r->counter_count,
		.before_ms = STORE_TS_MAX,
	};
	r->oldest->range = (struct store_range){
		.table = TABLE_RAW_DATA,
		.period_ms = r->table.config.base_ms,
		.handles = r->counters,
		.handle_count = r->counter_count,
		.start_ms = STORE_TS_MIN,
		.end_ms = STORE_TS_MAX,
		.limit = 1,
	};
	return store_read_submit(r->read);
}

/* ---- The table ------------------------------------------------------------------------------- */

static int by_tags_text(const void *a, const void *b)
{
	return slice_compare(((const struct found *)a)->tags_text,
			     ((const struct found *)b)->tags_text);
}

static struct rate_row *begin_row(struct recompute *r, struct slice tags_text)
{
	struct rate_row *row = &r->rows[r->table.row_count];
	struct named_row *named = arena_zalloc(
		&r->arena, sizeof(*named) + r->table.column_count * sizeof(named->handles[0]));
	if (!named)
		return NULL;
	named->tags_text = tags_text;
	*row = (struct rate_row){.id = rate_row_id(tags_text), .handles = named->handles};
	return row;
}

static struct named_row *named(const struct rate_row *row)
{
	return (struct named_row *)((char *)row->handles - offsetof(struct named_row, handles));
}

static void put_into_row(struct recompute *r, struct rate_row *row, const struct found *found)
{
	if (found->metric < r->table.column_count)
		named(row)->handles[found->metric] = found->handle;
	else if (found->metric == r->discontinuity)
		row->discontinuity = found->handle;
	else if (found->metric == r->speed)
		row->speed = found->handle;
}

static bool has_counters(const struct recompute *r, const struct rate_row *row)
{
	for (size_t c = 0; c < r->table.column_count; c++) {
		if (row->handles[c])
			return true;
	}
	return false;
}

/* Rows of what was found, one for each text. */
static int make_rows(struct recompute *r)
{
	if (r->found_count)
		qsort(r->found, r->found_count, sizeof(*r->found), by_tags_text);
	for (size_t i = 0; i < r->found_count;) {
		struct slice text = r->found[i].tags_text;
		struct rate_row *row = begin_row(r, text);
		if (!row)
			return ERR_LIMIT;
		for (; i < r->found_count && slice_equal(r->found[i].tags_text, text); i++) {
			if (r->found[i].metric == r->uptime)
				r->table.uptime = r->found[i].handle;
			put_into_row(r, row, &r->found[i]);
		}
		r->table.row_count += has_counters(r, row);
	}
	rate_rows_sort(r->rows, r->table.row_count);
	return 0;
}

static void list_counters(struct recompute *r)
{
	for (size_t i = 0; i < r->table.row_count; i++) {
		for (size_t c = 0; c < r->table.column_count; c++) {
			if (r->rows[i].handles[c])
				r->counters[r->counter_count++] = r->rows[i].handles[c];
		}
	}
}

static int make_table(struct recompute *r)
{
	struct errbuf *e = &r->error;
	r->rows = arena_alloc(&r->arena, (r->found_count + 1) * sizeof(*r->rows));
	r->counters = arena_alloc(&r->arena, (r->found_count + 1) * sizeof(*r->counters));
	int err = r->rows && r->counters ? make_rows(r) : ERR_LIMIT;
	if (err)
		return errbuf_set(e, err, "the device has too many counters");
	if (!r->table.row_count)
		return nothing_stored(r);
	r->table.rows = r->rows;
	list_counters(r);
	return 0;
}

/* ---- Finding --------------------------------------------------------------------------------- */

static void find_next(struct recompute *r);

static void keep_found(struct recompute *r, const struct catalog_series *series)
{
	if (r->finding == r->uptime && !slice_equal(series->tags_text, r->device_text))
		return;
	if (r->found_count == r->found_room) {
		r->found_room = 2 * r->found_room + 64;
		r->found = mem_resize_array(r->found, r->found_room, sizeof(*r->found));
	}
	r->found[r->found_count++] = (struct found){series->tags_text, series->handle, r->finding};
}

static void was_found(struct catalog_find *find, int err)
{
	struct recompute *r = find->owner;
	if (r->cancelled && !err)
		err = ERR_CANCELLED;
	else if (err)
		errbuf_set(&r->error, err, "%s", find->error.text);
	for (size_t i = 0; i < find->count && !err; i++)
		keep_found(r, &find->series[i]);
	if (!err && ++r->finding < r->metric_count) {
		find_next(r);
		return;
	}
	err = err ? err : make_table(r);
	err = err ? err : read_samples(r);
	if (err)
		finish(r, err);
}

static void find_next(struct recompute *r)
{
	r->find = (struct catalog_find){
		.catalog = r->persist->options.catalog,
		.tenant = COUNTER_TENANT,
		.metric = r->metrics[r->finding],
		.selectors = r->selectors,
		.selector_count = ARRAY_LEN(r->selectors),
		.series_max = SERIES_MAX,
		.done = was_found,
		.owner = r,
		.arena = &r->arena,
	};
	catalog_find_start(&r->find);
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static void select_tag(struct recompute *r, size_t i, struct slice key, struct slice value)
{
	r->pieces[i] = value;
	r->patterns[i] = (struct catalog_pattern){&r->pieces[i], 1};
	r->selectors[i] = (struct catalog_selector){key, &r->patterns[i], 1};
}

static int name_device(struct recompute *r, struct errbuf *e)
{
	struct tag tags[] = {{SLICE("device"), r->options.device},
			     {SLICE("oidset"), r->oidset->name}};
	struct buf text;
	int err = tags_sort_and_check(tags, ARRAY_LEN(tags), e);
	if (err)
		return err;
	buf_init(&text, TAGS_TEXT_MAX_BYTES);
	err = tags_encode((struct tags){tags, ARRAY_LEN(tags)}, &text);
	r->device_text = arena_copy(&r->arena, buf_slice(&text));
	buf_release(&text);
	return err;
}

/* What is looked for: the columns, which are the first metrics, and what is polled beside them. */
static void name_metrics(struct recompute *r)
{
	struct rate_column *columns =
		arena_zalloc(&r->arena, (r->oidset->oid_count + 1) * sizeof(*columns));
	ASSERT(columns); /* the first of the arena */
	for (size_t i = 0; i < r->oidset->oid_count; i++) {
		size_t at = r->table.column_count;
		if (!rate_column_of(r->oidset->oids[i], &columns[at]))
			continue;
		r->metrics[at] = columns[at].name;
		r->table.column_count++;
	}
	r->table.columns = columns;
	r->metric_count = r->table.column_count;
	r->metrics[r->discontinuity = r->metric_count++] = SLICE("ifCounterDiscontinuityTime");
	r->metrics[r->speed = r->metric_count++] = SLICE("ifHighSpeed");
	r->metrics[r->uptime = r->metric_count++] = SLICE("sysUpTime");
}

int recompute_start(struct persist *persist, const struct recompute_options *options,
		    struct recompute **started, struct errbuf *e)
{
	struct recompute *r = mem_zalloc(sizeof(*r));
	arena_init(&r->arena, ARENA_MAX_BYTES);
	r->persist = persist;
	r->options = *options;
	r->oidset = options->oidset->stored_as;
	name_metrics(r);
	r->options.device = arena_copy(&r->arena, options->device);
	r->table.device = r->options.device;
	r->table.oidset = r->oidset->name;
	r->table.config = rate_config_of(r->oidset);
	select_tag(r, 0, SLICE("device"), r->options.device);
	select_tag(r, 1, SLICE("oidset"), r->oidset->name);
	int err = name_device(r, e);
	if (err) {
		recompute_free(r);
		return err;
	}
	r->next = persist->recomputes;
	persist->recomputes = r;
	*started = r;
	find_next(r);
	return 0;
}

/* ---- Looking --------------------------------------------------------------------------------- */

void *recompute_owner(const struct recompute *r)
{
	return r->options.owner;
}

const struct oidset *recompute_oidset(const struct recompute *r)
{
	return r->oidset;
}

const char *recompute_error(const struct recompute *r)
{
	return r->error.text;
}

const struct rate_recompute_result *recompute_result(const struct recompute *r)
{
	return &r->derive.result;
}

struct slice recompute_tags_text(const struct recompute *r,
				 const struct rate_difference *difference)
{
	return named(&r->rows[difference->row])->tags_text;
}

struct slice recompute_metric(const struct recompute *r, const struct rate_difference *difference)
{
	return r->table.columns[difference->column].name;
}
