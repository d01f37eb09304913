/* Everything known of a metric (table metric_info, a cell for each property) and of its series. */
#include "catalog/private.h"

#include "wire/number.h"

enum { UNIT_MAX_BYTES = 64, DESCRIPTION_MAX_BYTES = 1024, BATCH_SERIES = 1024 };

static const char *const kind_texts[] = {"unknown", "gauge", "counter", "rate"};

const char *catalog_kind_text(enum catalog_kind kind)
{
	ASSERT((size_t)kind < ARRAY_LEN(kind_texts));
	return kind_texts[kind];
}

/* ---- Writing ------------------------------------------------------------------------------- */

struct info_write {
	struct store_write *write;
	struct store_parts key;
	struct slice metric;
	int64_t stamp_us;
};

static int put_property(const struct info_write *to, const char *property, struct slice value)
{
	struct store_parts column = {.part = {to->metric, slice_of(property)}};
	return store_cell_put(to->write, TABLE_METRIC_INFO, &to->key, &column, value, to->stamp_us,
			      0);
}

static bool is_one_line(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		if ((uint8_t)text.data[i] < 0x20 || text.data[i] == 0x7f)
			return false;
	}
	return true;
}

int catalog_info_put(struct store *store, struct store_write *write, struct slice tenant,
		     struct slice metric, const struct catalog_info *info)
{
	char number[NUMBER_PRINT_MAX_BYTES];
	struct slice unit = info->unit.data ? info->unit : SLICE("");
	struct info_write to = {write, {.part = {tenant}}, metric, store_stamp(store)};
	if (!is_one_line(unit) || unit.len > UNIT_MAX_BYTES || (size_t)info->home >= TABLE_COUNT)
		return ERR_INVALID;
	int err = put_property(&to, "kind", slice_of(catalog_kind_text(info->kind)));
	if (!err)
		err = put_property(&to, "unit", unit);
	if (!err)
		err = put_property(&to, "home", slice_of(schema[info->home].name));
	if (err)
		return err;
	size_t len = number_print_i64(number, info->base_frequency_ms);
	return put_property(&to, "base_frequency_ms", (struct slice){number, len});
}

/* ---- What people say ----------------------------------------------------------------------- */

static const struct {
	const char *name, *property;
	size_t max_bytes;
} sayings[] = {
	[SAYING_KIND] = {"kind", "kind_said", UNIT_MAX_BYTES},
	[SAYING_UNIT] = {"unit", "unit_said", UNIT_MAX_BYTES},
	[SAYING_DESCRIPTION] = {"description", "description", DESCRIPTION_MAX_BYTES},
};

const char *catalog_saying_name(enum catalog_saying saying)
{
	ASSERT((size_t)saying < ARRAY_LEN(sayings));
	return sayings[saying].name;
}

static bool kind_parse(struct slice text, enum catalog_kind *kind)
{
	for (size_t i = 0; i < ARRAY_LEN(kind_texts); i++) {
		if (slice_equal(text, slice_of(kind_texts[i]))) {
			*kind = (enum catalog_kind)i;
			return true;
		}
	}
	return false;
}

static int saying_check(enum catalog_saying saying, struct slice text, struct errbuf *e)
{
	const char *name = sayings[saying].name;
	enum catalog_kind kind = KIND_UNKNOWN;
	if (text.len > sayings[saying].max_bytes)
		return errbuf_set(e, ERR_INVALID, "%s has %zu bytes; it may have %zu", name,
				  text.len, sayings[saying].max_bytes);
	if (!is_one_line(text))
		return errbuf_set(e, ERR_INVALID, "%s has control characters: it is one line",
				  name);
	if (saying == SAYING_KIND && text.len && (!kind_parse(text, &kind) || !kind))
		return errbuf_set(e, ERR_INVALID,
				  "kind \"" SHOWN "\" is none: it is gauge, counter or rate",
				  SHOWN_OF(text));
	return 0;
}

int catalog_say(struct store *store, struct store_write *write, struct slice tenant,
		struct slice metric, enum catalog_saying saying, struct slice text,
		struct errbuf *e)
{
	const struct store_parts key = {.part = {tenant}};
	const struct store_parts column = {.part = {metric, slice_of(sayings[saying].property)}};
	int64_t stamp_us = store_stamp(store);
	int err = saying_check(saying, text, e);
	if (err)
		return err;
	err = text.len ? store_cell_put(write, TABLE_METRIC_INFO, &key, &column, text, stamp_us, 0)
		       : store_cell_delete(write, TABLE_METRIC_INFO, &key, &column, stamp_us);
	return err ? errbuf_set(e, err, "%s", err_text(err)) : 0;
}

/* ---- Reading the info ---------------------------------------------------------------------- */

/* Properties and words that a later version may have added are passed over. They come in byte
 * order, so what people say comes after what writers say, and takes its place. */
static void describe_accept_property(struct catalog_describe *describe,
				     const struct store_cell *cell)
{
	struct catalog_info *info = &describe->info;
	struct slice property = cell->column.part[1];
	struct slice value = cell->value;
	if (slice_equal(property, SLICE("kind")) ||
	    slice_equal(property, slice_of(sayings[SAYING_KIND].property))) {
		(void)kind_parse(value, &info->kind);
	} else if (slice_equal(property, SLICE("unit")) ||
		   slice_equal(property, slice_of(sayings[SAYING_UNIT].property))) {
		info->unit = arena_copy(describe->arena, value);
	} else if (slice_equal(property, slice_of(sayings[SAYING_DESCRIPTION].property))) {
		describe->description = arena_copy(describe->arena, value);
	} else if (slice_equal(property, SLICE("home"))) {
		int table = schema_find(value);
		if (table >= 0 && schema[table].kind == TABLE_SAMPLES)
			info->home = (enum table)table;
	} else if (slice_equal(property, SLICE("base_frequency_ms"))) {
		int64_t ms = 0;
		if (!number_parse_i64(value.data, value.data + value.len, &ms) && ms >= 0)
			info->base_frequency_ms = ms;
	}
}

static int read_info(struct catalog_describe *describe)
{
	/* The next text after the metric's: itself and a zero byte. */
	struct slice next = arena_copy(describe->arena, describe->metric);
	struct store_request *request = catalog_ask_again(describe->ask, STORE_CELL_SCAN, NULL);
	struct store_cell_scan *scan = &request->cell_scan;
	if (!next.data)
		return ERR_LIMIT;
	scan->table = TABLE_METRIC_INFO;
	scan->key.part[0] = describe->tenant;
	scan->from.part[0] = describe->metric;
	scan->to.part[0] = (struct slice){next.data, next.len + 1};
	const struct store_cell_scan of_metric = *scan;
	request = store_read_add(describe->ask->read, STORE_CELL_SCAN);
	request->cell_scan = of_metric;
	request->cell_scan.table = TABLE_METRIC_NAMES;
	request = store_read_add(describe->ask->read, STORE_SERIES_LIST);
	request->series_list = (struct store_series_list){
		.tenant = describe->tenant, .metric = describe->metric, .limit = 1};
	return ask_submit(describe->ask);
}

/* The elements of a set, each after its length. */
static void describe_accept_aggregators(struct catalog_describe *describe, struct slice set)
{
	struct slice left = arena_copy(describe->arena, set);
	/* No element is empty, so there are fewer than bytes. */
	struct slice *list = arena_alloc(describe->arena, (set.len / 3 + 1) * sizeof(*list));
	size_t count = 0;
	while (list && left.data && left.len > 2) {
		size_t len = (uint8_t)left.data[0] | (size_t)(uint8_t)left.data[1] << 8;
		ASSERT(len && len <= left.len - 2);
		list[count++] = (struct slice){left.data + 2, len};
		left = (struct slice){left.data + 2 + len, left.len - 2 - len};
	}
	describe->aggregators = list;
	describe->aggregator_count = count;
}

static void describe_accept_info(struct catalog_describe *describe)
{
	for (struct store_request *r = describe->ask->read->requests; r; r = r->next) {
		const struct store_cell_scan *scan = &r->cell_scan;
		if (r->op == STORE_SERIES_LIST) {
			describe->exists = r->series_list.count || r->more;
			continue;
		}
		for (size_t i = 0; i < scan->count; i++) {
			if (scan->table == TABLE_METRIC_INFO)
				describe_accept_property(describe, &scan->cells[i]);
			else
				describe_accept_aggregators(describe, scan->cells[i].value);
		}
	}
}

/* ---- Reading the series -------------------------------------------------------------------- */

/* The oldest and the newest sample of each. */
static void add_ends(struct catalog_describe *describe, const uint64_t *handles, enum table table)
{
	int64_t period_ms = schema[table].has_period ? describe->info.base_frequency_ms : 0;
	struct store_request *request = store_read_add(describe->ask->read, STORE_RANGE);
	request->range = (struct store_range){
		.table = table,
		.period_ms = period_ms,
		.handles = handles,
		.handle_count = describe->batch,
		.start_ms = STORE_TS_MIN,
		.end_ms = STORE_TS_MAX,
		.limit = 1,
	};
	request = store_read_add(describe->ask->read, STORE_LAST_BEFORE);
	request->last_before = (struct store_last_before){
		.table = table,
		.period_ms = period_ms,
		.handles = handles,
		.handle_count = describe->batch,
		.before_ms = STORE_TS_MAX,
	};
}

/* The next batch: when each was registered, and its ends at home and in data_raw. */
static int read_batch(struct catalog_describe *describe)
{
	const struct catalog_series *series = describe->series + describe->described;
	size_t left = describe->count - describe->described;
	enum table home = describe->info.home;
	struct store_request *first = catalog_ask_again(describe->ask, STORE_SERIES_DESCRIBE, NULL);
	describe->batch = left < BATCH_SERIES ? left : BATCH_SERIES;
	uint64_t *handles =
		arena_alloc(&describe->ask->read->arena, describe->batch * sizeof(*handles));
	for (size_t i = 0; i < describe->batch; i++)
		handles[i] = series[i].handle;
	first->series_describe = (struct store_series_describe){handles, describe->batch};
	/* A table with a period needs the metric's own; without one only data_raw can be asked. */
	if (home != TABLE_DATA_RAW &&
	    (!schema[home].has_period || describe->info.base_frequency_ms))
		add_ends(describe, handles, home);
	add_ends(describe, handles, TABLE_DATA_RAW);
	return ask_submit(describe->ask);
}

static void describe_accept_last(struct catalog_describe *describe,
				 const struct store_last_before *last)
{
	struct catalog_entry *entries = describe->entries + describe->described;
	for (size_t i = 0; last->points && i < describe->batch; i++) {
		const struct store_points *points = &last->points[i];
		if (points->count && points->ts_ms[0] > entries[i].last_seen_ms)
			entries[i].last_seen_ms = points->ts_ms[0];
	}
}

static void seen(struct catalog_entry *entry, int64_t ts_ms)
{
	if (ts_ms < entry->first_seen_ms)
		entry->first_seen_ms = ts_ms;
}

static void describe_accept_registered(struct catalog_describe *describe,
				       const struct store_series_describe *first)
{
	struct catalog_entry *entries = describe->entries + describe->described;
	for (size_t i = 0; first->series && i < describe->batch; i++) {
		if (first->series[i].handle)
			seen(&entries[i], first->series[i].first_seen_ms);
	}
}

/* Samples may be older than their series, which is as old as its first arrival. */
static void describe_accept_oldest(struct catalog_describe *describe,
				   const struct store_range *range)
{
	struct catalog_entry *entries = describe->entries + describe->described;
	for (size_t i = 0; range->points && i < describe->batch; i++) {
		if (range->points[i].count)
			seen(&entries[i], range->points[i].ts_ms[0]);
	}
}

/* True: some of it was cut short and is to be submitted again. */
static bool describe_accept_batch(struct catalog_describe *describe)
{
	bool more = false;
	for (struct store_request *r = describe->ask->read->requests; r; r = r->next) {
		more = more || r->more;
		if (r->op == STORE_SERIES_DESCRIBE)
			describe_accept_registered(describe, &r->series_describe);
		else if (r->op == STORE_RANGE)
			describe_accept_oldest(describe, &r->range);
		else
			describe_accept_last(describe, &r->last_before);
	}
	return more;
}

/* Nothing is known of a series that is gone. A sample that was written or deleted between two reads
 * must not make the first time later than the last. */
static void settle_batch(struct catalog_describe *describe)
{
	struct catalog_entry *entries = describe->entries + describe->described;
	for (size_t i = 0; i < describe->batch; i++) {
		struct catalog_entry *entry = &entries[i];
		if (entry->last_seen_ms != STORE_TS_MIN)
			seen(entry, entry->last_seen_ms);
		if (entry->first_seen_ms == STORE_TS_MAX)
			entry->first_seen_ms = STORE_TS_MIN;
	}
}

/* ---- The machine --------------------------------------------------------------------------- */

static void describe_end(struct catalog_describe *describe, int err)
{
	if (err)
		errbuf_set(&describe->error, err, "describing %.*s: %s", (int)describe->metric.len,
			   describe->metric.data, store_read_sentence(describe->ask->read, err));
	ask_release(describe->ask);
	describe->ask = NULL;
	describe->done(describe, err);
}

/* The info comes first, then batch by batch. */
static void describe_answered(void *owner, int err)
{
	struct catalog_describe *describe = FROM_OWNER(catalog_describe, owner);
	bool again = false;
	if (!err && describe->ask->read->requests->op == STORE_CELL_SCAN)
		describe_accept_info(describe);
	else if (!err)
		again = describe_accept_batch(describe);
	if (!err && again) {
		err = ask_submit(describe->ask);
	} else if (!err) {
		settle_batch(describe);
		describe->described += describe->batch;
		if (describe->described == describe->count) {
			describe_end(describe, 0);
			return;
		}
		err = read_batch(describe);
	}
	if (err)
		describe_end(describe, err);
}

static int describe_prepare(struct catalog_describe *describe)
{
	size_t bytes = describe->count * sizeof(*describe->entries);
	describe->entries = arena_zalloc(describe->arena, bytes);
	if (!describe->entries)
		return ERR_LIMIT;
	for (size_t i = 0; i < describe->count; i++) {
		describe->entries[i].series = describe->series[i];
		describe->entries[i].first_seen_ms = STORE_TS_MAX;
		describe->entries[i].last_seen_ms = STORE_TS_MIN;
	}
	return describe->catalog->closing ? ERR_CANCELLED : 0;
}

static void describe_start(struct catalog_later *later)
{
	struct catalog_describe *describe = CONTAINER_OF(later, struct catalog_describe, later);
	describe->ask = ask_new(describe->catalog, describe_answered, describe);
	int err = describe_prepare(describe);
	if (!err)
		err = read_info(describe);
	if (err)
		describe_end(describe, err);
}

void catalog_describe_start(struct catalog_describe *describe)
{
	ASSERT(describe->catalog && describe->done && describe->arena);
	describe->magic = MAGIC_OF(catalog_describe);
	describe->info = (struct catalog_info){.home = TABLE_DATA_RAW};
	describe->description = (struct slice){"", 0};
	describe->aggregators = NULL;
	describe->aggregator_count = 0;
	describe->exists = false;
	describe->described = describe->batch = 0;
	describe->error.text[0] = 0;
	describe->ask = NULL;
	later_do(describe->catalog, &describe->later, describe_start);
}

void catalog_describe_cancel(struct catalog_describe *describe)
{
	later_remove(&describe->later);
	ask_release(describe->ask);
}
