#include "rollup/batch.h"

#include "base/fault.h"
#include "base/hash_set.h"
#include "base/log.h"
#include "base/stats.h"
#include "model/series.h"
#include "rollup/row.h"
#include "rollup/touches.h"

enum {
	ROWS_MAX = 32 << 10, /* of all granularities, that one batch makes */
	READ_MAX_BYTES = 96 << 20,
	WRITE_MAX_BYTES = 32 << 20,
	NAMES_MAX_BYTES = 8 << 20,
	NAMES_MAX = 100000, /* of metrics whose aggregators are known to be stored */
	DAMAGED_LINES_A_MINUTE = 3,
};

enum phase { OPENS, RAW, LATE, ROWS, LOOKS };

/* Of a bucket of a series, what rows there are. */
enum {
	ROW_THERE = 1 << 0,
	LATE_ROW_THERE = 1 << 1,
	LATE_ROW_WHOLE = 1 << 2, /* it says what came first and last */
};

/* A series of the batch. */
struct member {
	struct rollup_mark *mark;
	struct slice metric;
	uint64_t handle;
	bool counter, damaged;
	bool has_raw;                         /* all its raw data of the slot is there */
	bool late;                            /* it has late points in the slot */
	uint8_t raw_fit;                      /* a place of a retention_fit */
	int64_t keep_ms[ROLLUP_GRAINS_MAX];   /* of its rows, by granularity; 0: for ever */
	uint8_t retention[ROLLUP_GRAINS_MAX]; /* class of these rows */
};

struct rollup_batch {
	struct rollup_job_options options;
	rollup_batch_done *done;
	void *owner;
	size_t windows; /* of the finest granularity in a slot */
	size_t rows;    /* of all granularities in a slot */

	int64_t slot_s;
	int64_t begun_ms;   /* wall clock */
	struct arena arena; /* names of the members */
	struct member members[STORE_GROUP_MAX];
	size_t count;
	size_t from, to; /* of members: what is being read */
	bool one_by_one;
	enum phase phase;
	bool has_late;
	struct store_read *read;
	struct store_request *gauges, *counters; /* NULL: there are none */
	size_t gauge_at;                         /* of the gauges, those that have their rows */
	size_t look_grain, look_at;              /* look_at: of the handles, those looked at */
	struct store_request *looked;
	size_t rows_grain; /* of ROWS, as look_grain of LOOKS */
	struct store_request *rows_read;
	size_t removals;
	uint64_t handles[2][STORE_GROUP_MAX]; /* of gauges, of counters */
	uint16_t places[2][STORE_GROUP_MAX];  /* in members, of these */
	size_t place_count[2];
	struct rollup_growth *growths; /* of counters, by windows */
	struct store_summary *coarse;  /* a series' summaries, of one granularity */
	struct value *values, *late;   /* [row][member][field]; of raw data, of late points */
	uint8_t *there;                /* [row][member]; NULL, like `late`: there are none */
	struct store_write *write;
	struct hash_set names;
	struct retention_memo memo;
	unsigned classes[ROLLUP_GRAINS_MAX]; /* bit by class that members have */
	struct log_rate damaged_lines;
	struct rollup_batch_result result;
};

/* ---- Life ------------------------------------------------------------------------------------ */

static size_t windows_of(const struct rollup_grains *grains, size_t grain)
{
	return (size_t)(grains->slot_ms / grains->list[grain].width_ms);
}

static size_t rows_of(const struct rollup_grains *grains)
{
	size_t rows = 0;
	for (size_t g = 0; g < grains->count; g++)
		rows += windows_of(grains, g);
	return rows;
}

size_t rollup_batch_max(const struct rollup_grains *grains)
{
	size_t max = ROWS_MAX / rows_of(grains);
	if (max > STORE_GROUP_MAX)
		return STORE_GROUP_MAX;
	return max ? max : 1;
}

static void on_read(struct store_read *read, int err);
static void on_written(struct store_write *write, int err);

struct rollup_batch *rollup_batch_new(const struct rollup_job_options *options,
				      rollup_batch_done *done, void *owner)
{
	struct rollup_batch *b = mem_zalloc(sizeof(*b));
	size_t max = rollup_batch_max(options->grains);
	b->options = *options;
	b->done = done;
	b->owner = owner;
	b->windows = windows_of(options->grains, 0);
	b->rows = rows_of(options->grains);
	b->growths = mem_alloc_array(max * b->windows, sizeof(*b->growths));
	b->coarse = mem_alloc_array(b->windows, sizeof(*b->coarse));
	b->values = mem_alloc_array(b->rows * max * ROLLUP_FIELDS, sizeof(*b->values));
	if (options->late.after_ms) {
		b->late = mem_alloc_array(b->rows * max * ROLLUP_FIELDS, sizeof(*b->late));
		b->there = mem_alloc_array(b->rows * max, sizeof(*b->there));
	}
	b->read = store_read_new(options->store, READ_MAX_BYTES);
	b->read->executor = options->executor;
	b->read->done = on_read;
	b->read->owner = b;
	b->read->points_max = options->slice_points;
	b->write = store_write_new(options->store, WRITE_MAX_BYTES);
	b->write->executor = options->executor;
	b->write->done = on_written;
	b->write->owner = b;
	b->damaged_lines = (struct log_rate){.lines_max = DAMAGED_LINES_A_MINUTE};
	arena_init(&b->arena, NAMES_MAX_BYTES);
	return b;
}

void rollup_batch_free(struct rollup_batch *b)
{
	store_read_free(b->read);
	store_write_free(b->write);
	hash_set_release(&b->names);
	retention_memo_release(&b->memo);
	arena_release(&b->arena);
	mem_free(b->growths);
	mem_free(b->coarse);
	mem_free(b->values);
	mem_free(b->late);
	mem_free(b->there);
	mem_free(b);
}

/* Its first row in `values`, of member 0. */
static size_t first_row_of(const struct rollup_batch *b, size_t grain)
{
	size_t row = 0;
	for (size_t g = 0; g < grain; g++)
		row += windows_of(b->options.grains, g);
	return row;
}

struct rollup_batch_result rollup_batch_result(const struct rollup_batch *b)
{
	return b->result;
}

bool rollup_batch_has_late(const struct rollup_job_options *options, int64_t slot_s)
{
	int64_t age_ms = clock_wall_ms(options->clock) - slot_s * 1000;
	const struct rollup_late *late = &options->late;
	return late->after_ms && age_ms + options->skew_max_ms > late->after_ms &&
	       (!late->kept_ms || age_ms <= late->kept_ms);
}

static bool has_raw(const struct rollup_batch *b, const struct member *m)
{
	int64_t now_ms = clock_wall_ms(b->options.clock);
	int64_t whole_ms = retention_whole_ms(b->options.retention_rules, m->raw_fit,
					      b->options.raw_retention_ms, now_ms);
	return !whole_ms || b->slot_s * 1000 >= now_ms - whole_ms;
}

static size_t place_of(const struct rollup_batch *b, size_t row, size_t member)
{
	return row * b->count + member;
}

static struct value *row_in(const struct rollup_batch *b, struct value *values, size_t row,
			    size_t member)
{
	return &values[place_of(b, row, member) * ROLLUP_FIELDS];
}

static struct value *row_of(struct rollup_batch *b, size_t row, size_t member)
{
	return row_in(b, b->values, row, member);
}

/* ---- Opening --------------------------------------------------------------------------------- */

/* One that is none would have the store refuse all of the batch. */
static bool is_series(struct slice tenant, struct slice metric, struct tags tags)
{
	bool is = tenant_valid(tenant) && metric.len && metric.len <= METRIC_MAX_BYTES;
	for (size_t i = 0; i < tags.count && is; i++) {
		const struct tag *tag = &tags.list[i];
		is = tag->key.len && tag->key.len <= TAG_KEY_MAX_BYTES && tag->value.len &&
		     tag->value.len <= TAG_VALUE_MAX_BYTES;
	}
	return is;
}

static void set_retention(struct rollup_batch *b, struct member *m)
{
	const struct retention_rules *rules = b->options.retention_rules;
	struct retention_fit fit = retention_find(rules, &b->memo, m->mark->tenant, m->metric);
	for (size_t g = 0; g < b->options.grains->count; g++) {
		int64_t preset_ms = b->options.grains->list[g].retention_ms;
		m->keep_ms[g] = retention_keep_ms(rules, fit.grains[g], preset_ms);
		m->retention[g] = (uint8_t)retention_class_for(m->keep_ms[g]);
		b->classes[g] |= 1u << m->retention[g];
	}
	m->raw_fit = fit.raw;
	m->has_raw = has_raw(b, m);
}

/* A mark whose text is no series' is of nothing: it is over. */
static int add_open(struct rollup_batch *b, struct member *m)
{
	struct tags tags;
	int err = series_set_decode(m->mark->series_set, &b->arena, &m->metric, &tags);
	if (!err && !is_series(m->mark->tenant, m->metric, tags))
		err = ERR_INVALID;
	if (err) {
		m->mark->finished = err == ERR_INVALID;
		return err == ERR_INVALID ? 0 : err;
	}
	struct store_request *request = store_read_add(b->read, STORE_SERIES_OPEN);
	if (!request)
		return ERR_LIMIT;
	request->series_open = (struct store_series_open){.tenant = m->mark->tenant,
							  .tags = tags,
							  .metrics = &m->metric,
							  .count = 1,
							  .find_only = true};
	m->counter = rollup_is_counter(b->options.counter_suffixes, b->options.counter_suffix_count,
				       m->metric);
	set_retention(b, m);
	return 0;
}

static void start_read(struct rollup_batch *b)
{
	b->read->now_ms = clock_wall_ms(b->options.clock);
	int err = store_read_submit(b->read);
	if (err)
		b->done(b->owner, err);
}

static void open_series(struct rollup_batch *b)
{
	int err = 0;
	store_read_reset(b->read);
	arena_reset(&b->arena);
	memset(b->classes, 0, sizeof(b->classes));
	for (size_t i = 0; i < b->count && !err; i++)
		err = add_open(b, &b->members[i]);
	if (err)
		b->done(b->owner, err);
	else if (b->read->requests)
		start_read(b);
	else
		on_read(b->read, 0);
}

/* The requests stand in the order of the members that have one. */
static void take_handles(struct rollup_batch *b)
{
	const struct store_request *request = b->read->requests;
	for (size_t i = 0; i < b->count; i++) {
		if (b->members[i].mark->finished)
			continue;
		b->members[i].handle = request->series_open.handles[0];
		request = request->next;
	}
}

/* ---- Reading --------------------------------------------------------------------------------- */

static enum table table_of(const struct rollup_batch *b)
{
	return b->phase == RAW ? TABLE_DATA_RAW : TABLE_DATA_LATE;
}

/* From `token` on, the beginning or where the last slice ended. */
static int add_gauges(struct rollup_batch *b, const struct store_token *token)
{
	int64_t start_ms = b->slot_s * 1000;
	struct store_request *request = store_read_add(b->read, STORE_AGGREGATE);
	if (!request)
		return ERR_LIMIT;
	request->token = *token;
	request->aggregate =
		(struct store_aggregate){.table = table_of(b),
					 .handles = b->handles[0],
					 .handle_count = b->place_count[0],
					 .start_ms = start_ms,
					 .end_ms = start_ms + b->options.grains->slot_ms,
					 .window_ms = b->options.grains->list[0].width_ms};
	b->gauges = request;
	return 0;
}

static int add_counters(struct rollup_batch *b, const struct store_token *token)
{
	int64_t start_ms = b->slot_s * 1000;
	struct store_request *request = store_read_add(b->read, STORE_RANGE);
	if (!request)
		return ERR_LIMIT;
	request->token = *token;
	request->range = (struct store_range){.table = table_of(b),
					      .handles = b->handles[1],
					      .handle_count = b->place_count[1],
					      .start_ms = start_ms,
					      .end_ms = start_ms + b->options.grains->slot_ms};
	b->counters = request;
	return 0;
}

/* A slice of the gauges and of the counters; NULL: of these nothing is left. */
static void read_slice(struct rollup_batch *b, const struct store_token *gauges,
		       const struct store_token *counters)
{
	int err = 0;
	store_read_reset(b->read);
	b->gauges = b->counters = NULL;
	if (gauges)
		err = add_gauges(b, gauges);
	if (counters && !err)
		err = add_counters(b, counters);
	if (err)
		b->done(b->owner, err);
	else if (b->gauges || b->counters)
		start_read(b);
	else
		on_read(b->read, 0);
}

static bool is_read(const struct rollup_batch *b, const struct member *m)
{
	return m->handle && !m->mark->finished && !m->damaged && (m->has_raw || b->phase != RAW);
}

/* What there is of members from..to. */
static void read_data(struct rollup_batch *b)
{
	static const struct store_token begin = {0};
	b->place_count[0] = b->place_count[1] = 0;
	for (size_t i = b->from; i < b->to; i++) {
		const struct member *m = &b->members[i];
		if (!is_read(b, m))
			continue;
		size_t at = b->place_count[m->counter]++;
		b->handles[m->counter][at] = m->handle;
		b->places[m->counter][at] = (uint16_t)i;
	}
	b->gauge_at = 0;
	memset(b->growths, 0, b->place_count[1] * b->windows * sizeof(*b->growths));
	read_slice(b, b->place_count[0] ? &begin : NULL, b->place_count[1] ? &begin : NULL);
}

/* ---- Computing ------------------------------------------------------------------------------- */

/* Where the row of what is being read belongs. */
static struct value *row_to_make(struct rollup_batch *b, size_t row, size_t member)
{
	b->members[member].late |= b->phase == LATE;
	return row_in(b, b->phase == RAW ? b->values : b->late, row, member);
}

/* All rows of one gauge from its summaries of the finest granularity. */
static void make_gauge(struct rollup_batch *b, size_t member, const struct store_summary *fine)
{
	const struct rollup_grains *grains = b->options.grains;
	size_t row = 0;
	memcpy(b->coarse, fine, b->windows * sizeof(*fine));
	for (size_t g = 0; g < grains->count; g++) {
		size_t count = windows_of(grains, g);
		size_t ratio = (g ? windows_of(grains, g - 1) : count) / count;
		for (size_t w = 0; w < count; w++) {
			struct store_summary sum = b->coarse[w * ratio];
			for (size_t i = 1; i < ratio; i++)
				rollup_summary_add(&sum, &b->coarse[w * ratio + i]);
			b->coarse[w] = sum;
			if (sum.count)
				rollup_gauge_row(&sum, row_to_make(b, row + w, member));
		}
		row += count;
	}
}

static void take_gauges(struct rollup_batch *b)
{
	const struct store_aggregate *answer = &b->gauges->aggregate;
	for (; b->gauge_at < answer->next_handle; b->gauge_at++)
		make_gauge(b, b->places[0][b->gauge_at],
			   answer->summaries + b->gauge_at * answer->window_count);
}

static void take_counters(struct rollup_batch *b)
{
	const struct store_range *answer = &b->counters->range;
	for (size_t i = 0; i < answer->handle_count; i++) {
		const struct store_points *points = &answer->points[i];
		for (size_t p = 0; p < points->count; p++) {
			size_t window = (size_t)((points->ts_ms[p] - answer->start_ms) /
						 b->options.grains->list[0].width_ms);
			struct value value = {points->bits[0][p],
					      (enum value_type)points->types[0][p]};
			if (value.type != VALUE_NONE)
				rollup_growth_sample(&b->growths[i * b->windows + window], value);
		}
	}
}

static void make_counter(struct rollup_batch *b, size_t member, struct rollup_growth *growths)
{
	const struct rollup_grains *grains = b->options.grains;
	size_t row = 0;
	for (size_t g = 0; g < grains->count; g++) {
		size_t count = windows_of(grains, g);
		size_t ratio = (g ? windows_of(grains, g - 1) : count) / count;
		for (size_t w = 0; w < count; w++) {
			struct rollup_growth sum = growths[w * ratio];
			for (size_t i = 1; i < ratio; i++)
				rollup_growth_add(&sum, &growths[w * ratio + i]);
			growths[w] = sum;
			if (sum.count)
				rollup_counter_row(&sum, row_to_make(b, row + w, member));
		}
		row += count;
	}
}

static void make_counters(struct rollup_batch *b)
{
	for (size_t i = 0; i < b->place_count[1]; i++)
		make_counter(b, b->places[1][i], &b->growths[i * b->windows]);
}

/* ---- Rows beside late ones ------------------------------------------------------------------- */

/* Which rows there are of members from..to in the granularity at hand. */
static void read_rows(struct rollup_batch *b, const struct store_token *token)
{
	int64_t start_ms = b->slot_s * 1000;
	size_t n = 0;
	for (size_t i = b->from; i < b->to; i++) {
		if (!is_read(b, &b->members[i]))
			continue;
		b->handles[0][n] = b->members[i].handle;
		b->places[0][n++] = (uint16_t)i;
	}
	store_read_reset(b->read);
	b->rows_read = n ? store_read_add(b->read, STORE_RANGE) : NULL;
	if (!b->rows_read) {
		on_read(b->read, 0);
		return;
	}
	b->rows_read->token = *token;
	b->rows_read->range =
		(struct store_range){.table = TABLE_DATA_DOWNSAMPLED,
				     .period_ms = b->options.grains->list[b->rows_grain].width_ms,
				     .handles = b->handles[0],
				     .handle_count = n,
				     .fields = 1u << ROLLUP_SUM | 1u << ROLLUP_FIRST,
				     .start_ms = start_ms,
				     .end_ms = start_ms + b->options.grains->slot_ms};
	start_read(b);
}

static uint8_t row_says(const struct store_points *rows, size_t i)
{
	if (!rollup_row_is_late(rows->ts_ms[i]))
		return ROW_THERE;
	return rows->types[ROLLUP_FIRST][i] == VALUE_NONE ? LATE_ROW_THERE
							  : LATE_ROW_THERE | LATE_ROW_WHOLE;
}

static void take_rows(struct rollup_batch *b)
{
	const struct store_range *answer = &b->rows_read->range;
	size_t first = first_row_of(b, b->rows_grain);
	for (size_t h = 0; h < answer->handle_count; h++) {
		const struct store_points *rows = &answer->points[h];
		for (size_t i = 0; i < rows->count; i++) {
			int64_t since_ms = rows->ts_ms[i] - answer->start_ms;
			size_t row = first + (size_t)(since_ms / answer->period_ms);
			b->there[place_of(b, row, b->places[0][h])] |= row_says(rows, i);
		}
	}
}

/* ---- Rows that are to go --------------------------------------------------------------------- */

static bool has_row(struct rollup_batch *b, size_t row, size_t member)
{
	/* Every row has this one. */
	return row_of(b, row, member)[ROLLUP_FIRST].type != VALUE_NONE;
}

static bool lacks_rows(struct rollup_batch *b, size_t grain, size_t member)
{
	size_t first = first_row_of(b, grain);
	for (size_t w = 0; w < windows_of(b->options.grains, grain); w++) {
		if (!has_row(b, first + w, member))
			return true;
	}
	return false;
}

/* Those of which rows of the grain may have to go. */
static size_t list_lacking(struct rollup_batch *b)
{
	size_t n = 0;
	for (size_t i = 0; i < b->count; i++) {
		const struct member *m = &b->members[i];
		/* Where raw data has begun to expire since, rows may be of more than was read. */
		if (!m->mark->deleted || !m->handle || m->damaged || !m->has_raw ||
		    !has_raw(b, m) || !lacks_rows(b, b->look_grain, i))
			continue;
		b->handles[0][n] = m->handle;
		b->places[0][n++] = (uint16_t)i;
	}
	return n;
}

static int add_look(struct rollup_batch *b, const struct store_token *token)
{
	const struct rollup_grain *grain = &b->options.grains->list[b->look_grain];
	int64_t start_ms = b->slot_s * 1000;
	struct store_request *request = store_read_add(b->read, STORE_AGGREGATE);
	if (!request)
		return ERR_LIMIT;
	request->token = *token;
	request->aggregate =
		(struct store_aggregate){.table = TABLE_DATA_DOWNSAMPLED,
					 .period_ms = grain->width_ms,
					 .handles = b->handles[0],
					 .handle_count = b->place_count[0],
					 .field = ROLLUP_FIRST,
					 .start_ms = start_ms,
					 .end_ms = start_ms + b->options.grains->slot_ms,
					 .window_ms = grain->width_ms};
	b->looked = request;
	return 0;
}

static void look(struct rollup_batch *b, const struct store_token *token)
{
	store_read_reset(b->read);
	int err = add_look(b, token);
	if (err)
		b->done(b->owner, err);
	else
		start_read(b);
}

/* From the first row that is to go to the last; those between that are to stay are put behind it.
 */
static int remove_rows(struct rollup_batch *b, size_t member, const struct store_summary *stored)
{
	const struct rollup_grain *grain = &b->options.grains->list[b->look_grain];
	size_t row = first_row_of(b, b->look_grain);
	size_t count = windows_of(b->options.grains, b->look_grain);
	size_t from = count, to = 0;
	for (size_t w = 0; w < count; w++) {
		if (!stored[w].count || has_row(b, row + w, member))
			continue;
		from = from == count ? w : from;
		to = w + 1;
	}
	if (!to)
		return 0;
	b->removals++;
	return store_delete_range(b->write, TABLE_DATA_DOWNSAMPLED, grain->width_ms,
				  &b->members[member].handle, 1,
				  b->slot_s * 1000 + (int64_t)from * grain->width_ms,
				  b->slot_s * 1000 + (int64_t)to * grain->width_ms);
}

static int take_looked(struct rollup_batch *b)
{
	const struct store_aggregate *answer = &b->looked->aggregate;
	int err = 0;
	for (; b->look_at < answer->next_handle && !err; b->look_at++)
		err = remove_rows(b, b->places[0][b->look_at],
				  answer->summaries + b->look_at * answer->window_count);
	return err;
}

static void write_rows(struct rollup_batch *b);

/* In the next granularity of which some may be there. */
static void look_for_rows(struct rollup_batch *b)
{
	static const struct store_token begin = {0};
	b->look_at = 0;
	for (; b->look_grain < b->options.grains->count; b->look_grain++) {
		b->place_count[0] = list_lacking(b);
		if (b->place_count[0]) {
			look(b, &begin);
			return;
		}
	}
	write_rows(b);
}

static void begin_write(struct rollup_batch *b)
{
	store_write_reset(b->write);
	b->removals = 0;
	b->look_grain = 0;
	look_for_rows(b);
}

static void on_looked(struct rollup_batch *b)
{
	struct store_token token = b->looked->token;
	bool more = b->looked->more;
	int err = take_looked(b);
	if (err) {
		b->done(b->owner, err);
	} else if (more) {
		look(b, &token);
	} else {
		b->look_grain++;
		look_for_rows(b);
	}
}

/* ---- Writing --------------------------------------------------------------------------------- */

#define GAUGE_FIELDS                                                                               \
	(1u << ROLLUP_MIN | 1u << ROLLUP_MAX | 1u << ROLLUP_SUM | 1u << ROLLUP_COUNT |             \
	 1u << ROLLUP_FIRST | 1u << ROLLUP_LAST)
#define COUNTER_FIELDS                                                                             \
	(1u << ROLLUP_SUM | 1u << ROLLUP_INCREASE | 1u << ROLLUP_FIRST | 1u << ROLLUP_LAST)

/* A row that is written: of this granularity and class. */
struct row_place {
	struct value *values; /* those of the batch that it is of */
	size_t grain, row;
	int64_t ts_ms;
	enum retention_class retention;
};

/* Adds the `fields` of one row of all members of its class that have the first of them. */
static int append_fields(struct rollup_batch *b, const struct row_place *place, bool counter,
			 unsigned fields)
{
	uint64_t handles[STORE_GROUP_MAX];
	struct value values[STORE_GROUP_MAX * ROLLUP_FIELDS];
	unsigned first = (unsigned)__builtin_ctz(fields);
	size_t n = 0, at = 0;
	for (size_t i = 0; i < b->count; i++) {
		const struct member *m = &b->members[i];
		const struct value *from = row_in(b, place->values, place->row, i);
		if (m->counter != counter || from[first].type == VALUE_NONE ||
		    m->retention[place->grain] != place->retention)
			continue;
		handles[n++] = m->handle;
		for (unsigned f = first; f < ROLLUP_FIELDS; f++) {
			if (fields >> f & 1)
				values[at++] = from[f];
		}
	}
	b->result.rows += fields == 1u << ROLLUP_AVG ? 0 : n;
	return n ? store_append_fields(b->write, TABLE_DATA_DOWNSAMPLED,
				       b->options.grains->list[place->grain].width_ms,
				       place->retention, place->ts_ms, fields, handles, n, values)
		 : 0;
}

static int append_row(struct rollup_batch *b, struct row_place *place)
{
	int err = 0;
	for (unsigned c = 0; c < RETENTION_CLASSES && !err; c++) {
		place->retention = (enum retention_class)c;
		if (!(b->classes[place->grain] >> c & 1))
			continue;
		err = append_fields(b, place, false, GAUGE_FIELDS);
		if (!err)
			err = append_fields(b, place, false, 1u << ROLLUP_AVG);
		if (!err)
			err = append_fields(b, place, true, COUNTER_FIELDS);
	}
	return err;
}

/* Whether a row of the bucket that is not of late points is there when all this is written. */
static bool has_other_row(struct rollup_batch *b, const struct row_place *place, size_t member)
{
	const struct member *m = &b->members[member];
	bool goes = m->mark->deleted && m->has_raw;
	return has_row(b, place->row, member) ||
	       (!goes && b->there[place_of(b, place->row, member)] & ROW_THERE);
}

/* What came first and last is known only where no other row tells of the bucket. */
static void settle_late(struct rollup_batch *b, const struct row_place *place, size_t member)
{
	struct value *late = row_in(b, b->late, place->row, member);
	if (has_other_row(b, place, member))
		late[ROLLUP_FIRST] = late[ROLLUP_LAST] = late[ROLLUP_INCREASE] = (struct value){0};
}

/* One that said more than what takes its place, or that nothing speaks for any more. */
static int drop_late(struct rollup_batch *b, const struct row_place *place, size_t member)
{
	const struct value *late = row_in(b, b->late, place->row, member);
	uint8_t there = b->there[place_of(b, place->row, member)];
	bool made = late[ROLLUP_SUM].type != VALUE_NONE;
	bool less = there & LATE_ROW_WHOLE && late[ROLLUP_FIRST].type == VALUE_NONE;
	if (!(there & LATE_ROW_THERE) || (made && !less))
		return 0;
	b->removals++;
	return store_delete_range(b->write, TABLE_DATA_DOWNSAMPLED,
				  b->options.grains->list[place->grain].width_ms,
				  &b->members[member].handle, 1, place->ts_ms, place->ts_ms + 1);
}

/* Of a damaged series nothing is known, and what has expired is not made once more. */
static int settle_member(struct rollup_batch *b, const struct row_place *place, size_t member)
{
	const struct member *m = &b->members[member];
	int64_t end_ms = place->ts_ms + b->options.grains->list[place->grain].width_ms;
	int64_t keep_ms = m->keep_ms[place->grain];
	if (m->damaged || (keep_ms && end_ms <= clock_wall_ms(b->options.clock) - keep_ms)) {
		memset(row_in(b, b->late, place->row, member), 0, ROLLUP_FIELDS * sizeof(*b->late));
		return 0;
	}
	settle_late(b, place, member);
	return drop_late(b, place, member);
}

static int append_late(struct rollup_batch *b, const struct row_place *bucket)
{
	struct row_place place = *bucket;
	int err = 0;
	place.values = b->late;
	place.ts_ms += LATE_ROW_BEHIND_MS;
	for (size_t i = 0; i < b->count && !err; i++)
		err = settle_member(b, &place, i);
	return err ? err : append_row(b, &place);
}

static int append_rows(struct rollup_batch *b)
{
	const struct rollup_grains *grains = b->options.grains;
	struct row_place place = {.values = b->values};
	for (; place.grain < grains->count; place.grain++) {
		place.ts_ms = b->slot_s * 1000;
		for (size_t w = 0; w < windows_of(grains, place.grain); w++, place.row++) {
			int err = append_row(b, &place);
			if (!err && b->has_late)
				err = append_late(b, &place);
			if (err)
				return err;
			place.ts_ms += grains->list[place.grain].width_ms;
		}
	}
	return 0;
}

static struct hash128 name_hash(const struct member *m)
{
	struct hash128 tenant = hash128(m->mark->tenant.data, m->mark->tenant.len, m->counter);
	return hash128(m->metric.data, m->metric.len, tenant.low);
}

static int add_aggregators(struct rollup_batch *b, const struct member *m)
{
	static const char *const of_gauges[] = {"min", "max", "sum", "avg", "count", NULL};
	static const char *const of_counters[] = {"sum", "increase", NULL};
	const struct store_parts key = {{m->mark->tenant}}, column = {{m->metric}};
	for (const char *const *at = m->counter ? of_counters : of_gauges; *at; at++) {
		int err = store_set_add(b->write, TABLE_METRIC_NAMES, &key, &column, slice_of(*at));
		if (err)
			return err;
	}
	return 0;
}

/* Of metrics that are not known to have them. */
static int append_names(struct rollup_batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct member *m = &b->members[i];
		if (!m->handle || m->damaged)
			continue;
		if (hash_set_has(&b->names, name_hash(m)))
			continue;
		int err = add_aggregators(b, m);
		if (err)
			return err;
		(void)hash_set_add(&b->names, name_hash(m), NAMES_MAX);
	}
	return 0;
}

static void finish(struct rollup_batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct member *m = &b->members[i];
		b->result.failed += m->damaged;
		b->result.expired +=
			m->handle && !m->damaged && !m->mark->deleted && !m->has_raw && !m->late;
		m->mark->finished = !m->damaged;
	}
	b->done(b->owner, 0);
}

/* Nothing is written; what was to be is not known to be stored. */
static void give_up_write(struct rollup_batch *b, int err)
{
	hash_set_release(&b->names);
	b->names = (struct hash_set){0};
	b->done(b->owner, err);
}

/* Whoever has the lease by now may have read newer data, and its rows may be there. A sample that
 * came after ours were read is read by others only when it has been quiet, so ours are written
 * sooner than that, or not at all. */
static bool read_too_long_ago(const struct rollup_batch *b)
{
	const struct rollup_job_options *options = &b->options;
	int64_t ago_ms = clock_wall_ms(options->clock) - b->begun_ms;
	return ago_ms < 0 || ago_ms >= rollup_write_max_ms(options->quiet_ms, options->skew_max_ms);
}

/* Raw data may have gone before it was read. */
static bool raw_went(const struct rollup_batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct member *m = &b->members[i];
		if (m->has_raw && !has_raw(b, m))
			return true;
	}
	return false;
}

static void write_rows(struct rollup_batch *b)
{
	int err = append_rows(b);
	if (!err)
		err = append_names(b);
	if (!err && !b->write->samples && !b->write->cells && !b->removals) {
		finish(b);
		return;
	}
	if (!err && (read_too_long_ago(b) || raw_went(b)))
		err = ERR_TIMEOUT;
	if (!err)
		err = store_write_submit(b->write);
	if (err)
		give_up_write(b, err);
}

/* ERR_LIMIT: a set of aggregators is full; the rows are there all the same. */
static void on_written(struct store_write *write, int err)
{
	struct rollup_batch *b = write->owner;
	if (err && err != ERR_LIMIT)
		give_up_write(b, err);
	else
		finish(b);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void begin_phase(struct rollup_batch *b, enum phase phase)
{
	size_t rows = b->rows * b->count;
	b->phase = phase;
	b->from = b->to = b->rows_grain = 0;
	b->one_by_one = false;
	if (phase == RAW)
		memset(b->values, 0, rows * ROLLUP_FIELDS * sizeof(*b->values));
	if (phase == LATE)
		memset(b->late, 0, rows * ROLLUP_FIELDS * sizeof(*b->late));
	if (phase == ROWS)
		memset(b->there, 0, rows * sizeof(*b->there));
}

static enum phase next_phase(const struct rollup_batch *b)
{
	return b->phase == RAW && !b->has_late ? LOOKS : b->phase + 1;
}

static void step(struct rollup_batch *b)
{
	if (b->from == b->count)
		begin_phase(b, next_phase(b));
	b->to = b->one_by_one ? b->from + 1 : b->count;
	if (b->phase == LOOKS)
		begin_write(b);
	else if (b->phase == ROWS)
		read_rows(b, &(struct store_token){0});
	else
		read_data(b);
}

static void give_up_series(struct rollup_batch *b, struct member *m)
{
	static const char *const what[] = {[RAW] = "raw data",
					   [LATE] = "late data",
					   [ROWS] = "stored roll-up",
					   [LOOKS] = "stored roll-up"};
	uint64_t left_out;
	m->damaged = true;
	stat_add(STAT_rollup_failed, 1);
	if (log_rate_take(&b->damaged_lines, clock_mono_ms(b->options.clock), &left_out))
		log_warn("roll-ups: the %s of " SHOWN " of tenant " SHOWN
			 " is damaged: %s (%llu such lines left out)",
			 what[b->phase], SHOWN_OF(m->mark->series_set), SHOWN_OF(m->mark->tenant),
			 store_read_sentence(b->read, ERR_DAMAGED), (unsigned long long)left_out);
}

/* Which of them it is, is not looked for: all stay marked, and have the rows that were made. */
static void on_damaged_rows(struct rollup_batch *b)
{
	for (size_t i = b->look_at; i < b->place_count[0]; i++)
		give_up_series(b, &b->members[b->places[0][i]]);
	b->look_grain++;
	look_for_rows(b);
}

/* One damaged block must not hold up the others. */
static void on_damaged(struct rollup_batch *b)
{
	if (b->to - b->from > 1) {
		b->one_by_one = true;
	} else {
		give_up_series(b, &b->members[b->from]);
		b->from++;
	}
	b->rows_grain = 0;
	step(b);
}

static void on_rows(struct rollup_batch *b)
{
	struct store_token token = {0};
	bool more = b->rows_read && b->rows_read->more;
	if (b->rows_read)
		take_rows(b);
	if (more)
		token = b->rows_read->token;
	else
		b->rows_grain++;
	if (b->rows_grain < b->options.grains->count) {
		read_rows(b, &token);
		return;
	}
	b->rows_grain = 0;
	b->from = b->to;
	step(b);
}

static void on_data(struct rollup_batch *b)
{
	bool more_gauges = b->gauges && b->gauges->more;
	bool more_counters = b->counters && b->counters->more;
	struct store_token tokens[2];
	if (b->gauges)
		take_gauges(b);
	if (b->counters)
		take_counters(b);
	/* The next slice takes the memory of this one. */
	if (more_gauges)
		tokens[0] = b->gauges->token;
	if (more_counters)
		tokens[1] = b->counters->token;
	if (more_gauges || more_counters) {
		read_slice(b, more_gauges ? &tokens[0] : NULL, more_counters ? &tokens[1] : NULL);
		return;
	}
	make_counters(b);
	b->from = b->to;
	step(b);
}

static void on_read(struct store_read *read, int err)
{
	struct rollup_batch *b = read->owner;
	if (!err)
		err = fault("rollup_read");
	if (err == ERR_DAMAGED && b->phase == LOOKS) {
		on_damaged_rows(b);
	} else if (err == ERR_DAMAGED && b->phase != OPENS) {
		on_damaged(b);
	} else if (err) {
		b->done(b->owner, err);
	} else if (b->phase == LOOKS) {
		on_looked(b);
	} else if (b->phase == ROWS) {
		on_rows(b);
	} else if (b->phase == OPENS) {
		take_handles(b);
		b->from = b->count;
		step(b);
	} else {
		on_data(b);
	}
}

void rollup_batch_start(struct rollup_batch *b, int64_t slot_s, struct rollup_mark *const *marks,
			size_t count)
{
	ASSERT(count && count <= rollup_batch_max(b->options.grains));
	b->slot_s = slot_s;
	b->begun_ms = clock_wall_ms(b->options.clock);
	b->count = count;
	b->has_late = rollup_batch_has_late(&b->options, slot_s);
	begin_phase(b, OPENS);
	b->result = (struct rollup_batch_result){0};
	for (size_t i = 0; i < count; i++)
		b->members[i] = (struct member){.mark = marks[i]};
	open_series(b);
}
