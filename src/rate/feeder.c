/* Windows grow while they bring little, and are halved when they do not fit. */
#include "rate/feeder.h"

#include "base/grow.h"
#include "base/mem.h"

enum {
	READ_MAX_BYTES = 16 << 20,
	WINDOW_FIRST = 64, /* base intervals */
	BEHIND_MAX = 4,    /* likewise: counters that missed so many polls are looked at apart */
	POINTS_FEW = 20000,
	ROWS_FIRST = 1024,
};

static const uint32_t no_slot = UINT32_MAX;

static void read_done(struct store_read *read, int err);

void feeder_init(struct feeder *f, struct store *store, struct executor *executor,
		 feeder_done *done, void *owner)
{
	*f = (struct feeder){.done = done, .owner = owner};
	f->read = store_read_new(store, READ_MAX_BYTES);
	f->read->executor = executor;
	f->read->done = read_done;
	f->read->owner = f;
}

void feeder_release(struct feeder *f)
{
	store_read_free(f->read);
	mem_free(f->states);
	mem_free(f->from_ms);
	mem_free(f->until_ms);
	mem_free(f->places);
	mem_free(f->handles);
	mem_free(f->slot);
	mem_free(f->companion_slot);
	mem_free(f->rows.list);
	mem_free(f->samples);
	mem_free(f->steps);
}

static void make_room(struct feeder *f, size_t counters)
{
	if (counters <= f->cap)
		return;
	f->cap = counters;
	f->states = mem_resize_array(f->states, counters, sizeof(*f->states));
	f->from_ms = mem_resize_array(f->from_ms, counters, sizeof(*f->from_ms));
	f->until_ms = mem_resize_array(f->until_ms, counters, sizeof(*f->until_ms));
	/* Of each row its companions, and of the device. */
	f->handles = mem_resize_array(f->handles, (1 + FEEDER_COMPANIONS) * counters + 1,
				      sizeof(*f->handles));
	f->slot = mem_resize_array(f->slot, counters, sizeof(*f->slot));
	f->companion_slot =
		mem_resize_array(f->companion_slot, counters, sizeof(*f->companion_slot));
}

static int place_order(const void *a, const void *b)
{
	const struct feeder_place *x = a, *y = b;

	if (x->handle != y->handle)
		return x->handle < y->handle ? -1 : 1;
	return (x->row > y->row) - (x->row < y->row);
}

static uint64_t some_handle(const struct rate_table *table, size_t row)
{
	for (size_t c = 0; c < table->column_count; c++)
		if (table->rows[row].handles[c])
			return table->rows[row].handles[c];
	return 0;
}

static void sort_places(struct feeder *f)
{
	GROW(f->places, f->place_cap, f->count);
	for (size_t i = 0; i < f->count; i++)
		f->places[i] =
			(struct feeder_place){some_handle(f->table, f->first + i), f->first + i};
	if (f->count)
		qsort(f->places, f->count, sizeof(*f->places), place_order);
}

static bool has_octets(const struct rate_table *table)
{
	for (size_t c = 0; c < table->column_count; c++)
		if (table->columns[c].octets)
			return true;
	return false;
}

void feeder_begin(struct feeder *f, const struct rate_table *table, size_t first, size_t count,
		  int64_t end_ms, int64_t now_ms)
{
	size_t counters = count * table->column_count;

	make_room(f, counters);
	f->table = table;
	f->first = first;
	f->count = count;
	f->end_ms = end_ms < COUNTER_TS_MAX ? end_ms : COUNTER_TS_MAX;
	f->read->now_ms = now_ms;
	f->step = FEEDER_BEGINS;
	f->knows_newest = false;
	f->wants_speeds = has_octets(table);
	f->window_ms = WINDOW_FIRST * table->config.base_ms;
	f->hi_ms = FEEDER_BEGINNING;
	f->gaps = 0;
	memset(f->outcomes, 0, sizeof(f->outcomes));
	sort_places(f);
	for (size_t i = 0; i < counters; i++) {
		f->states[i].known = false;
		f->until_ms[i] = FEEDER_NOTHING;
		f->from_ms[i] = table->rows[first + i / table->column_count]
						.handles[i % table->column_count]
					? FEEDER_BEGINNING
					: FEEDER_NOTHING;
	}
}

/* ---- Reading -------------------------------------------------------------------------------- */

static struct store_request *add_range(struct feeder *f, const uint64_t *handles, size_t count,
				       int64_t start_ms, int64_t end_ms)
{
	struct store_request *request = store_read_add(f->read, STORE_RANGE);

	if (request)
		request->range = (struct store_range){.table = TABLE_RAW_DATA,
						      .period_ms = f->table->config.base_ms,
						      .handles = handles,
						      .handle_count = count,
						      .start_ms = start_ms,
						      .end_ms = end_ms};
	return request;
}

/* Those whose beginning is looked for. */
static size_t gather_unknown(struct feeder *f)
{
	size_t counters = f->count * f->table->column_count, n = 0;

	for (size_t i = 0; i < counters; i++) {
		bool wanted = f->from_ms[i] == FEEDER_BEGINNING;
		f->slot[i] = wanted ? (uint32_t)n : no_slot;
		if (wanted)
			f->handles[n++] = feeder_handle(f, i);
	}
	return n;
}

/* To be read as the series `n` of the window; how many there are with it. */
static size_t gather(struct feeder *f, size_t n, uint64_t handle, uint32_t *slot)
{
	*slot = (uint32_t)n;
	f->handles[n] = handle;
	return n + 1;
}

struct companion {
	uint64_t handle;
	uint32_t *slot;
};

/* Those that a row has, by their handles. */
static size_t list_companions(struct feeder *f, size_t row, struct companion *list)
{
	const struct rate_row *r = &f->table->rows[f->first + row];
	uint32_t *slots = f->companion_slot[row];
	size_t n = 0;

	slots[FEEDER_DISCONTINUITY] = slots[FEEDER_SPEED] = no_slot;
	if (r->discontinuity)
		list[n++] = (struct companion){r->discontinuity, &slots[FEEDER_DISCONTINUITY]};
	if (r->speed && f->wants_speeds)
		list[n++] = (struct companion){r->speed, &slots[FEEDER_SPEED]};
	if (n == 2 && list[0].handle > list[1].handle) {
		struct companion first = list[0];
		list[0] = list[1];
		list[1] = first;
	}
	return n;
}

/* A row's counters that have something in the window, and its companions where they stand among
 * them: what is opened together lies together, and is read at once in that order. */
static size_t gather_row(struct feeder *f, size_t row, size_t n)
{
	const uint64_t *handles = f->table->rows[f->first + row].handles;
	size_t columns = f->table->column_count, before = n, next = 0, count;
	struct companion list[FEEDER_COMPANIONS];

	count = list_companions(f, row, list);
	for (size_t c = 0; c < columns; c++) {
		uint32_t *slot = &f->slot[row * columns + c];
		*slot = no_slot;
		if (f->from_ms[row * columns + c] >= f->hi_ms)
			continue;
		for (; next < count && list[next].handle < handles[c]; next++)
			n = gather(f, n, list[next].handle, list[next].slot);
		n = gather(f, n, handles[c], slot);
	}
	for (; n > before && next < count; next++)
		n = gather(f, n, list[next].handle, list[next].slot);
	return n;
}

static size_t gather_window(struct feeder *f)
{
	size_t n = 0;

	if (f->table->uptime)
		f->handles[n++] = f->table->uptime;
	for (size_t i = 0; i < f->count; i++)
		n = gather_row(f, f->places[i].row - f->first, n);
	return n;
}

static int read_firsts(struct feeder *f)
{
	size_t count = gather_unknown(f);

	f->step = FEEDER_FIRSTS;
	store_read_reset(f->read);
	f->values = add_range(f, f->handles, count, -COUNTER_TS_MAX, f->end_ms);
	if (!f->values)
		return ERR_LIMIT;
	f->values->range.limit = 1;
	return store_read_submit(f->read);
}

static bool has_unknown(const struct feeder *f)
{
	for (size_t i = 0; i < f->count * f->table->column_count; i++)
		if (f->from_ms[i] == FEEDER_BEGINNING)
			return true;
	return false;
}

static void take_firsts(struct feeder *f)
{
	const struct store_range *range = &f->values->range;

	for (size_t i = 0; i < f->count * f->table->column_count; i++)
		if (f->slot[i] != no_slot && range->points[f->slot[i]].count)
			f->from_ms[i] = range->points[f->slot[i]].ts_ms[0];
}

/* Counters without raw data. */
static void leave_out_empty(struct feeder *f)
{
	for (size_t i = 0; i < f->count * f->table->column_count; i++)
		if (f->from_ms[i] == FEEDER_BEGINNING)
			f->from_ms[i] = FEEDER_NOTHING;
}

/* Companions are wanted a little beyond the window; with them come samples that are not. */
static int read_window(struct feeder *f)
{
	int64_t reach = feeder_reach_ms(f->table);
	size_t count;

	f->step = FEEDER_WINDOWS;
	f->hi_ms = f->end_ms - f->lo_ms > f->window_ms ? f->lo_ms + f->window_ms : f->end_ms;
	if (f->lo_ms < f->ahead_ms && f->knows_newest && f->hi_ms > f->ahead_ms)
		f->hi_ms = f->ahead_ms;
	count = gather_window(f);
	store_read_reset(f->read);
	f->values = add_range(f, f->handles, count, f->lo_ms - reach, f->hi_ms + reach + 1);
	return f->values ? store_read_submit(f->read) : ERR_LIMIT;
}

/* The next window begins where the last one ended, or with the oldest sample that is wanted. */
static bool choose_window(struct feeder *f)
{
	f->lo_ms = f->hi_ms;
	if (f->lo_ms == FEEDER_BEGINNING) {
		f->lo_ms = FEEDER_NOTHING;
		f->ahead_ms = FEEDER_BEGINNING;
		for (size_t i = 0; i < f->count * f->table->column_count; i++) {
			if (f->from_ms[i] == FEEDER_NOTHING)
				continue;
			if (f->from_ms[i] < f->lo_ms)
				f->lo_ms = f->from_ms[i];
			if (f->from_ms[i] > f->ahead_ms)
				f->ahead_ms = f->from_ms[i];
		}
		if (f->lo_ms < -COUNTER_TS_MAX)
			f->lo_ms = -COUNTER_TS_MAX;
	}
	return f->lo_ms < f->end_ms;
}

/* What all counters have as their newest, unless one window holds all that there is. Also where
 * some are far behind: most of these have just fallen silent, and need nothing to be read. */
static bool wants_newest(const struct feeder *f)
{
	return !f->knows_newest && (f->end_ms - f->lo_ms > f->window_ms ||
				    f->ahead_ms - f->lo_ms > BEHIND_MAX * f->table->config.base_ms);
}

static int read_newest(struct feeder *f)
{
	size_t counters = f->count * f->table->column_count, n = 0;
	struct store_request *request;

	for (size_t i = 0; i < counters; i++) {
		bool wanted = f->from_ms[i] < f->end_ms;
		f->slot[i] = wanted ? (uint32_t)n : no_slot;
		f->until_ms[i] = f->from_ms[i];
		if (wanted)
			f->handles[n++] = feeder_handle(f, i);
	}
	f->step = FEEDER_NEWEST;
	store_read_reset(f->read);
	request = store_read_add(f->read, STORE_LAST_BEFORE);
	if (!request)
		return ERR_LIMIT;
	request->last_before = (struct store_last_before){.table = TABLE_RAW_DATA,
							  .period_ms = f->table->config.base_ms,
							  .handles = f->handles,
							  .handle_count = n,
							  .before_ms = f->end_ms};
	f->values = request;
	return store_read_submit(f->read);
}

static void take_newest(struct feeder *f)
{
	const struct store_points *points = f->values->last_before.points;

	for (size_t i = 0; i < f->count * f->table->column_count; i++)
		if (f->slot[i] != no_slot && points[f->slot[i]].count)
			f->until_ms[i] = points[f->slot[i]].ts_ms[0] + 1;
}

static void leave_out_silent(struct feeder *f)
{
	for (size_t i = 0; i < f->count * f->table->column_count; i++)
		if (f->until_ms[i] <= f->from_ms[i])
			f->from_ms[i] = FEEDER_NOTHING;
	f->knows_newest = true;
	f->hi_ms = FEEDER_BEGINNING;
}

/* ERR_NOT_FOUND: there is nothing more. */
static int go_on(struct feeder *f)
{
	if (!choose_window(f))
		return ERR_NOT_FOUND;
	return wants_newest(f) ? read_newest(f) : read_window(f);
}

int feeder_next(struct feeder *f)
{
	int err;

	if (f->step == FEEDER_BEGINS && has_unknown(f))
		return read_firsts(f);
	err = go_on(f);
	if (err != ERR_NOT_FOUND)
		return err;
	f->done(f, err);
	return 0;
}

/* Leaves those inside the window. */
static void trim(const struct feeder *f, struct store_points *p)
{
	size_t first = 0;

	while (p->count && p->ts_ms[p->count - 1] >= f->hi_ms)
		p->count--;
	while (first < p->count && p->ts_ms[first] < f->lo_ms)
		first++;
	if (!first)
		return;
	p->ts_ms += first;
	p->bits[0] += first;
	p->types[0] += first;
	p->count -= first;
}

static size_t trim_samples(struct feeder *f)
{
	size_t points = 0;

	for (size_t i = 0; i < f->count * f->table->column_count; i++) {
		if (f->slot[i] == no_slot)
			continue;
		trim(f, &f->values->range.points[f->slot[i]]);
		points += f->values->range.points[f->slot[i]].count;
	}
	return points;
}

static void window_read(struct feeder *f, int err)
{
	if (!err && !f->values->more) {
		f->points = trim_samples(f);
		if (f->points < POINTS_FEW && f->window_ms < COUNTER_TS_MAX / 2)
			f->window_ms *= 2;
		f->done(f, 0);
		return;
	}
	if ((err && err != ERR_LIMIT) || f->hi_ms - f->lo_ms <= 1) {
		f->done(f, err ? err : ERR_LIMIT);
		return;
	}
	f->window_ms = (f->hi_ms - f->lo_ms) / 2;
	err = wants_newest(f) ? read_newest(f) : read_window(f);
	if (err)
		f->done(f, err);
}

/* Firsts and newest come in slices. */
static void read_done(struct store_read *read, int err)
{
	struct feeder *f = read->owner;

	if (f->step == FEEDER_WINDOWS) {
		window_read(f, err);
		return;
	}
	if (!err && f->step == FEEDER_FIRSTS)
		take_firsts(f);
	else if (!err)
		take_newest(f);
	if (!err && f->values->more) {
		err = store_read_submit(read);
	} else if (!err) {
		if (f->step == FEEDER_FIRSTS)
			leave_out_empty(f);
		else
			leave_out_silent(f);
		err = go_on(f);
	}
	if (err)
		f->done(f, err);
}

/* ---- Feeding -------------------------------------------------------------------------------- */

bool feeder_value(uint8_t type, uint64_t bits, uint64_t *value)
{
	double d;

	*value = bits;
	if (LIKELY(type == VALUE_U64))
		return true;
	if (type == VALUE_I64)
		return bits <= INT64_MAX;
	if (type != VALUE_F64)
		return false;
	memcpy(&d, &bits, sizeof(d));
	if (!(d >= 0 && d < 0x1p64))
		return false;
	*value = (uint64_t)d;
	return (double)*value == d;
}

/* A series that goes along with the samples; `at` is the newest of it not after a sample's reach.
 */
struct along {
	const struct store_points *points;
	size_t at;
};

static struct along along_of(const struct feeder *f, uint32_t slot)
{
	if (slot == no_slot)
		return (struct along){NULL, 0};
	return (struct along){&f->values->range.points[slot], 0};
}

static inline bool along_at(struct along *a, int64_t ts_ms, int64_t reach, uint32_t *number,
			    int64_t *read_ms)
{
	const struct store_points *p = a->points;
	uint64_t value;

	if (!p || !p->count)
		return false;
	while (a->at + 1 < p->count && p->ts_ms[a->at + 1] <= ts_ms + reach)
		a->at++;
	if (p->ts_ms[a->at] > ts_ms + reach || p->ts_ms[a->at] < ts_ms - reach)
		return false;
	if (!feeder_value(p->types[0][a->at], p->bits[0][a->at], &value) || value > UINT32_MAX)
		return false;
	*number = (uint32_t)value;
	*read_ms = p->ts_ms[a->at];
	return true;
}

/* The samples of a row without their values, which are the same for all columns that were polled at
 * the same times: the store gives those the same array. */
static void take_samples(struct feeder *f, size_t row, const struct store_points *points)
{
	struct along uptime = along_of(f, f->table->uptime ? 0 : no_slot);
	const uint32_t *companions = f->companion_slot[row - f->first];
	struct along jumps = along_of(f, companions[FEEDER_DISCONTINUITY]);
	struct along speed = along_of(f, companions[FEEDER_SPEED]);
	int64_t reach = feeder_reach_ms(f->table), unused;

	if (f->samples_ts_ms == points->ts_ms && f->sample_count == points->count)
		return;
	if (points->count > f->sample_cap) {
		f->sample_cap = points->count;
		f->samples = mem_resize_array(f->samples, f->sample_cap, sizeof(*f->samples));
		f->steps = mem_resize_array(f->steps, f->sample_cap, sizeof(*f->steps));
	}
	f->samples_ts_ms = points->ts_ms;
	f->sample_count = points->count;
	for (size_t i = 0; i < points->count; i++) {
		struct counter_sample *s = &f->samples[i];
		f->steps[i].span_ms = 0;
		f->steps[i].follows = false;
		s->ts_ms = points->ts_ms[i];
		s->has_uptime =
			along_at(&uptime, s->ts_ms, reach, &s->uptime_ticks, &s->uptime_ts_ms);
		s->has_discontinuity =
			along_at(&jumps, s->ts_ms, reach, &s->discontinuity_ticks, &unused);
		if (!along_at(&speed, s->ts_ms, reach, &s->speed_mbit, &unused))
			s->speed_mbit = 0;
	}
}

/* Room for the rows that one more feed may emit. */
static void make_room_for_rows(struct feeder *f, struct counter_out *out, size_t rows)
{
	GROW(f->rows.list, f->rows.cap,
	     out->count + rows > ROWS_FIRST ? out->count + rows : ROWS_FIRST);
	out->rows = f->rows.list;
	out->max = f->rows.cap;
}

static struct counter_out begin_out(const struct feeder *f)
{
	return (struct counter_out){
		.rows = f->rows.list, .count = f->rows.count, .max = f->rows.cap};
}

static void end_out(struct feeder *f, const struct counter_out *out)
{
	f->rows.count = out->count;
	f->rows.levels |= out->levels;
}

static struct counter_def def_of(const struct feeder *f, size_t column)
{
	const struct rate_column *c = &f->table->columns[column];

	return (struct counter_def){&f->table->config, c->width_bits, c->octets};
}

/* The sample `i` of a column, whatever it is. */
static void feed_sample(struct feeder *f, const struct counter_def *def, struct counter *state,
			const struct store_points *points, size_t i, struct counter_out *out)
{
	struct counter_sample *s = &f->samples[i];
	const struct counter_step *before = i ? &f->steps[i - 1] : NULL;

	if (!feeder_value(points->types[0][i], points->bits[0][i], &s->value))
		return;
	f->outcomes[counter_feed_together(def, state, s, before, &f->steps[i], out)]++;
	f->gaps += out->gap;
}

/* Until the first that is none, as counters are nearly always all. */
static size_t count_u64(const uint8_t *types, size_t count)
{
	size_t n = 0;

	while (n < count && types[n] == VALUE_U64)
		n++;
	return n;
}

static void feed_column(struct feeder *f, size_t row, size_t column,
			const struct store_points *points)
{
	size_t counter = feeder_counter(f, row, column), i = 0, count = points->count, steady;
	struct counter_def def = def_of(f, column);
	struct counter *state = &f->states[counter];
	size_t rows_max = counter_rows_max(&f->table->config);
	size_t numbers = count_u64(points->types[0], points->count);
	struct counter_out out = begin_out(f);

	take_samples(f, row, points);
	while (count && points->ts_ms[count - 1] >= f->until_ms[counter])
		count--;
	numbers = numbers < count ? numbers : count;
	while (i < count && points->ts_ms[i] < f->from_ms[counter])
		i++;
	while (i < count) {
		if (UNLIKELY(out.max - out.count < rows_max))
			make_room_for_rows(f, &out, rows_max);
		steady = i < numbers ? counter_feed_steady(&def, state, points->bits[0] + i,
							   &f->steps[i], numbers - i, &out)
				     : 0;
		f->outcomes[COUNTER_COUNTED] += steady;
		i += steady;
		if (!steady)
			feed_sample(f, &def, state, points, i++, &out);
	}
	end_out(f, &out);
}

void feeder_row(struct feeder *f, size_t row)
{
	f->rows.count = 0;
	f->rows.levels = 0;
	f->samples_ts_ms = NULL;
	for (size_t column = 0; column < f->table->column_count; column++) {
		uint32_t slot = f->slot[feeder_counter(f, row, column)];
		f->rows.start[column] = f->rows.count;
		if (slot != no_slot)
			feed_column(f, row, column, &f->values->range.points[slot]);
	}
	f->rows.start[f->table->column_count] = f->rows.count;
}

void feeder_row_open(struct feeder *f, size_t row)
{
	size_t rows_max = counter_rows_max(&f->table->config);

	f->rows.count = 0;
	for (size_t column = 0; column < f->table->column_count; column++) {
		struct counter_out out = begin_out(f);
		f->rows.start[column] = f->rows.count;
		if (out.max - out.count < rows_max)
			make_room_for_rows(f, &out, rows_max);
		counter_emit_open(&f->table->config, &f->states[feeder_counter(f, row, column)],
				  &out);
		end_out(f, &out);
	}
	f->rows.start[f->table->column_count] = f->rows.count;
}
