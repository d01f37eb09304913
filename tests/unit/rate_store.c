/* Rates in a store: whatever the jobs are cut into, broken off by, and repeated, what is read is
 * what one pass over all samples gives, and what is stored is what one job over all of them stores.
 * On the naive engine and on LMDB. GRANARY_LONG=1 takes more histories. */
#include "rate_harness.h"

#include "base/cursor.h"
#include "base/stats.h"
#include "rate/rows.h"
#include "rate_alu.h"
#include "stored_bin.h"

#define NEW_YEAR INT64_C(1356998400000) /* 2013-01-01T00:00:00Z */

/* ---- What one pass gives --------------------------------------------------------------------- */

enum { PASS_ROWS_MAX = 20000 };

struct pass {
	struct counter state;
	struct counter_out out;
};

static void pass_init(struct pass *pass)
{
	*pass = (struct pass){.out = {.max = PASS_ROWS_MAX}};
	pass->out.rows = mem_alloc_array(PASS_ROWS_MAX, sizeof(*pass->out.rows));
}

static void assert_series(struct rate_series got, const struct counter_out *expected, size_t level)
{
	size_t at = 0;

	for (size_t i = 0; i < expected->count; i++) {
		const struct counter_row *row = &expected->rows[i];
		if (row->level != level)
			continue;
		if (at == got.count || !rows_equal(row, &got.rows[at]))
			fail_msg("level %zu, start %lld: %zu of %zu rows", level,
				 (long long)row->start_ms, at, got.count);
		at++;
	}
	assert_int_equal(at, got.count);
}

/* Every counter, every level, as it is now. */
static void assert_all(struct rig *rig, struct pass (*passes)[RIG_COLUMNS])
{
	for (size_t level = 0; level < 3; level++) {
		assert_int_equal(rig_read_table(rig, &rig->table, level, 0, NEW_YEAR * 2), 0);
		for (size_t i = 0; i < rig->row_count; i++) {
			for (size_t c = 0; c < RIG_COLUMNS; c++) {
				struct pass *p = &passes[i][c];
				size_t closed = p->out.count;
				counter_emit_open(&rig->table.config, &p->state, &p->out);
				assert_series(rate_read_series(rig->read, i, c), &p->out, level);
				p->out.count = closed;
			}
		}
	}
}

/* ---- Worked examples ------------------------------------------------------------------------- */

static void feed_alu(struct rig *rig)
{
	struct store_write *write = rig_new_write(rig);

	for (size_t i = 0; i < ARRAY_LEN(alu_polls); i++)
		rig_put(rig, write, rig->handles[0][0], alu_polls[i].s * 1000, alu_polls[i].value);
	rig_submit(rig, write);
}

static void assert_alu(struct rig *rig)
{
	uint64_t sum = 0, count = 0;
	double max = 0;
	struct rate_series s;

	assert_int_equal(rig_read_table(rig, &rig->table, 0, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	for (size_t i = 0; i < s.count; i++)
		sum += s.rows[i].val;
	assert_int_equal(sum, 8656);
	assert_int_equal(rate_read_series(rig->read, 0, 1).count, 0);
	sum = 0;
	assert_int_equal(rig_read_table(rig, &rig->table, 1, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	for (size_t i = 0; i < s.count; i++) {
		sum += s.rows[i].val;
		count += s.rows[i].count;
		if (s.rows[i].max > max)
			max = s.rows[i].max;
		assert_true(s.rows[i].min == 0);
	}
	assert_int_equal(sum, 8656);
	assert_int_equal(count, 117);
	assert_true(max == 736 * 1000.0 / 31000);
}

static void check_alu(bool on_lmdb)
{
	struct rig *rig = rig_new(on_lmdb, 1);

	feed_alu(rig);
	assert_alu(rig); /* before any job: all of it is open */
	assert_int_equal(rig_job_until(rig, alu_polls[50].s * 1000), 0);
	assert_alu(rig);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	assert_alu(rig);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0); /* nothing to do */
	assert_int_equal(rate_job_result(rig->job).rows, 0);
	rig_reopen(rig);
	assert_alu(rig);
	rig_free(rig);
}

static void a_routers_hours_are_read_before_between_and_after_jobs(void **state)
{
	(void)state;
	check_alu(false);
	check_alu(true);
}

/* 30 s before and 30 s after midnight: 300 and 600. The document's row ends there; a range does not
 * name it. */
static void check_new_year(bool on_lmdb)
{
	struct rig *rig = rig_new(on_lmdb, 1);
	struct store_write *write = rig_new_write(rig);
	struct rate_series s;

	rig_put(rig, write, rig->handles[0][0], NEW_YEAR - 30000, 0);
	rig_put(rig, write, rig->handles[0][0], NEW_YEAR, 300);
	rig_put(rig, write, rig->handles[0][0], NEW_YEAR + 30000, 900);
	rig_put(rig, write, rig->handles[0][0], NEW_YEAR + 60000, 900);
	rig_submit(rig, write);
	for (int job = 0; job < 2; job++) {
		assert_int_equal(
			rig_read_table(rig, &rig->table, 0, NEW_YEAR - 30000, NEW_YEAR + 30000), 0);
		s = rate_read_series(rig->read, 0, 0);
		assert_int_equal(s.count, 2);
		assert_int_equal(s.rows[0].val, 300);
		assert_int_equal(s.rows[1].val, 600);
		assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	}
	rig_free(rig);
}

static void ranges_go_over_new_year(void **state)
{
	(void)state;
	check_new_year(false);
	check_new_year(true);
}

/* ---- Random devices, jobs at any moment ------------------------------------------------------ */

enum { ROWS = 3, POLLS = 60 };

struct device {
	int64_t now_ms, booted_ms;
	uint64_t values[ROWS][RIG_COLUMNS];
	uint32_t jumped[ROWS], speeds[ROWS];
};

/* Their wraps are possible for the fastest only: up to 50 octets a us are 400 Mbit/s. */
static void poll_speed(struct rig *rig, struct random *r, struct device *d, size_t row,
		       struct store_write *write, struct counter_sample *sample)
{
	static const uint32_t speeds[] = {0, 10, 100, 1000};

	if (random_below(r, 8) == 0)
		d->speeds[row] = speeds[random_below(r, ARRAY_LEN(speeds))];
	if (random_below(r, 10) == 0)
		return;
	sample->speed_mbit = d->speeds[row];
	rig_put(rig, write, rig->rows[row].speed, sample->ts_ms, sample->speed_mbit);
}

static void poll_row(struct rig *rig, struct random *r, struct device *d, size_t row,
		     struct store_write *write, struct counter_sample base,
		     struct pass (*passes)[RIG_COLUMNS])
{
	base.ts_ms = d->now_ms + (int64_t)random_below(r, 2000); /* its own reply */
	if (random_below(r, 40) == 0)
		d->jumped[row] = (uint32_t)((d->now_ms - d->booted_ms) / 10);
	base.has_discontinuity = random_below(r, 10) != 0;
	base.discontinuity_ticks = d->jumped[row];
	if (base.has_discontinuity)
		rig_put(rig, write, rig->rows[row].discontinuity, base.ts_ms, d->jumped[row]);
	poll_speed(rig, r, d, row, write, &base);
	for (size_t c = 0; c < RIG_COLUMNS; c++) {
		uint64_t *value = &d->values[row][c];
		struct pass *p = &passes[row][c];
		struct counter_def def = {&rig->table.config, rig_columns[c].width_bits, true};
		*value += random_below(r, 1500000000);
		if (c == 1)
			*value &= UINT32_MAX;
		if (random_below(r, 30) == 0)
			*value -= *value < 7 ? *value : 7;
		base.value = *value;
		if (random_below(r, 25) == 0)
			continue; /* not in this poll's reply */
		rig_put(rig, write, rig->rows[row].handles[c], base.ts_ms, *value);
		counter_feed(&def, &p->state, &base, &p->out);
	}
}

static void poll(struct rig *rig, struct random *r, struct device *d,
		 struct pass (*passes)[RIG_COLUMNS])
{
	struct store_write *write = rig_new_write(rig);
	struct counter_sample base = {.has_uptime = random_below(r, 12) != 0};

	d->now_ms += 26000 + (int64_t)random_below(r, 8000);
	if (random_below(r, 12) == 0)
		d->now_ms += (int64_t)random_below(r, 2000000);
	if (random_below(r, 15) == 0) {
		d->booted_ms = d->now_ms - (int64_t)random_below(r, 20000);
		memset(d->values, 0, sizeof(d->values));
	}
	/* Before some of the rows, and after others. */
	base.uptime_ts_ms = d->now_ms + (int64_t)random_below(r, 2000);
	base.uptime_ticks = (uint32_t)((base.uptime_ts_ms - d->booted_ms) / 10);
	for (size_t row = 0; row < ROWS; row++)
		poll_row(rig, r, d, row, write, base, passes);
	/* It may come in a message of its own, after a job has looked. */
	if (random_below(r, 4) == 0) {
		rig_submit(rig, write);
		assert_int_equal(rig_job_until(rig, rig->newest_ms + 1), 0);
		write = rig_new_write(rig);
	}
	if (base.has_uptime)
		rig_put(rig, write, rig->table.uptime, base.uptime_ts_ms, base.uptime_ticks);
	rig_submit(rig, write);
}

/* Any moment, and sometimes a store that fails or refuses. */
static void some_job(struct rig *rig, struct random *r)
{
	int err;

	if (!rig->on_lmdb && random_below(r, 3) == 0)
		naive_fail_writes(rig->store, ERR_UNKNOWN, 1);
	else if (!rig->on_lmdb && random_below(r, 4) == 0)
		naive_refuse_writes(rig->store, ERR_BUSY, 1);
	err = rig_job_until(
		rig, rig->newest_ms - (int64_t)random_below(r, random_below(r, 2) ? 2000 : 100000));
	assert_true(err == 0 || err == ERR_UNKNOWN || err == ERR_BUSY);
	if (!rig->on_lmdb) {
		naive_fail_writes(rig->store, 0, 0);
		naive_refuse_writes(rig->store, 0, 0);
	}
}

static struct slice read_cell(struct rig *rig, struct buf *copy)
{
	struct store_read *read = rig_new_read(rig);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	static const uint8_t zero[8];

	request->cell_get.table = TABLE_RATE_CHECKPOINTS;
	request->cell_get.key = (struct store_parts){{rig->table.device, rig->table.oidset}};
	request->cell_get.column = (struct store_parts){{{(const char *)zero, 8}}};
	assert_int_equal(store_read_submit(read), 0);
	rig_wait(rig);
	buf_clear(copy);
	if (request->cell_get.found)
		buf_append(copy, request->cell_get.cell.value.data,
			   request->cell_get.cell.value.len);
	store_read_free(read);
	return buf_slice(copy);
}

static void write_cell(struct rig *rig, struct slice bytes)
{
	struct store_write *write = rig_new_write(rig);
	static const uint8_t zero[8];
	struct store_parts key = {{rig->table.device, rig->table.oidset}};
	struct store_parts column = {{{(const char *)zero, 8}}};

	assert_int_equal(store_cell_put(write, TABLE_RATE_CHECKPOINTS, &key, &column, bytes,
					store_stamp(rig->store), 0),
			 0);
	rig_submit(rig, write);
}

/* As if it ended after the rows were durable and before the checkpoint was. */
static void job_without_checkpoint(struct rig *rig)
{
	struct buf old;
	struct slice bytes;

	buf_init(&old, 1 << 20);
	bytes = read_cell(rig, &old);
	if (bytes.len) {
		assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
		write_cell(rig, bytes);
	}
	buf_release(&old);
}

static void dump_number(struct buf *out, enum table table, int64_t period_ms, unsigned field,
			struct value value)
{
	value = stored_bin_number(table, period_ms, field, value);
	buf_printf(out, " %u:%llx", value.type, (unsigned long long)value.bits);
}

/* All that the tables of rates hold, as text. */
static void dump(struct rig *rig, struct buf *out)
{
	static const enum table tables[] = {TABLE_BASE_RATES, TABLE_RATE_AGGREGATIONS,
					    TABLE_STAT_AGGREGATIONS};
	static const int64_t periods[] = {30000, 3600000, 86400000};

	for (size_t t = 0; t < 9; t++) {
		struct store_read *read = rig_new_read(rig);
		struct store_request *request = store_read_add(read, STORE_RANGE);
		uint64_t handles[ROWS * RIG_COLUMNS];
		for (size_t i = 0; i < ARRAY_LEN(handles); i++)
			handles[i] = rig->rows[i / RIG_COLUMNS].handles[i % RIG_COLUMNS];
		request->range = (struct store_range){.table = tables[t / 3],
						      .period_ms = periods[t % 3],
						      .handles = handles,
						      .handle_count = ARRAY_LEN(handles),
						      .start_ms = 0,
						      .end_ms = NEW_YEAR * 2};
		assert_int_equal(store_read_submit(read), 0);
		rig_wait(rig);
		assert_false(request->more);
		for (size_t h = 0; h < ARRAY_LEN(handles); h++) {
			const struct store_points *p = &request->range.points[h];
			for (size_t i = 0; i < p->count; i++) {
				buf_printf(out, "%zu %zu %lld", t, h, (long long)p->ts_ms[i]);
				for (unsigned f = 0; f < schema[tables[t / 3]].field_count; f++)
					dump_number(
						out, tables[t / 3], periods[t % 3], f,
						(struct value){p->bits[f][i],
							       (enum value_type)p->types[f][i]});
				buf_append_char(out, '\n');
			}
		}
		store_read_free(read);
	}
	assert_false(out->failed);
}

static void list_series(const struct rate_row *row, uint64_t handles[4])
{
	handles[0] = row->handles[0];
	handles[1] = row->handles[1];
	handles[2] = row->discontinuity;
	handles[3] = row->speed;
}

static void copy_raw(struct rig *from, struct rig *to)
{
	struct store_read *read = rig_new_read(from);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	struct store_write *write = rig_new_write(to);
	uint64_t handles[ROWS * 4 + 1], others[ROWS * 4 + 1];

	for (size_t i = 0; i < ROWS; i++) {
		list_series(&from->rows[i], &handles[4 * i]);
		list_series(&to->rows[i], &others[4 * i]);
	}
	handles[ROWS * 4] = from->table.uptime;
	others[ROWS * 4] = to->table.uptime;
	request->range = (struct store_range){.table = TABLE_RAW_DATA,
					      .period_ms = 30000,
					      .handles = handles,
					      .handle_count = ARRAY_LEN(handles),
					      .end_ms = NEW_YEAR * 2};
	assert_int_equal(store_read_submit(read), 0);
	rig_wait(from);
	for (size_t h = 0; h < ARRAY_LEN(handles); h++)
		for (size_t i = 0; i < request->range.points[h].count; i++)
			rig_put(to, write, others[h], request->range.points[h].ts_ms[i],
				request->range.points[h].bits[0][i]);
	rig_submit(to, write);
	store_read_free(read);
}

#define DAY INT64_C(86400000)

/* One closed bin is another, one is gone, and one is where there was no counter. */
static void spoil(struct rig *rig, int64_t bin_ms, int64_t gone_ms)
{
	struct store_write *write = rig_new_write(rig);
	const uint64_t *handle = &rig->rows[1].handles[0];
	struct value v[5] = {value_u64(77), value_u64(1), value_u64(30000), value_u64(0),
			     value_u64(0)};

	assert_int_equal(
		store_append(write, TABLE_BASE_RATES, 30000, RETENTION_EVER, bin_ms, handle, 1, v),
		0);
	assert_int_equal(store_append(write, TABLE_BASE_RATES, 30000, RETENTION_EVER, bin_ms + 1,
				      handle, 1, v),
			 0);
	assert_int_equal(
		store_delete_range(write, TABLE_BASE_RATES, 30000, handle, 1, gone_ms, gone_ms + 1),
		0);
	rig_submit(rig, write);
}

/* Nothing differs; and what is spoilt is found and mended. */
static void assert_recomputed(struct rig *rig, const struct buf *expected)
{
	int64_t from = NEW_YEAR - DAY, to = NEW_YEAR + 30 * DAY, bin, gone;
	struct rate_recompute_result r = rig_recompute(rig, from, to, false);
	struct rate_series s;
	struct buf got;

	assert_int_equal(r.differed + r.missing + r.extra, 0);
	assert_true(r.compared > 100);
	assert_int_equal(rig_read_table(rig, &rig->table, 0, from, to), 0);
	s = rate_read_series(rig->read, 1, 0);
	bin = s.rows[s.count / 3].start_ms;
	gone = s.rows[s.count / 2].start_ms;
	spoil(rig, bin, gone);
	for (int report = 1; report >= 0; report--) {
		r = rig_recompute(rig, from, to, report);
		assert_int_equal(r.differed, 1);
		assert_int_equal(r.missing, 1);
		assert_int_equal(r.extra, 1);
		assert_int_equal(r.list_count, 3);
		assert_true(r.list[0].row == 1 && r.list[0].column == 0);
		assert_int_equal(r.list[0].stored.val, 77);
		assert_int_equal(r.list[0].computed.start_ms, bin);
		assert_true(r.list[1].was && !r.list[1].is);
		assert_int_equal(r.list[1].stored.start_ms, bin + 1);
		assert_true(!r.list[2].was && r.list[2].is);
		assert_int_equal(r.list[2].computed.start_ms, gone);
	}
	buf_init(&got, 16 << 20);
	dump(rig, &got);
	assert_int_equal(expected->len, got.len);
	assert_memory_equal(expected->data, got.data, got.len);
	buf_release(&got);
}

/* The same raw data in a store of its own, and one job. */
static void assert_stored_as_by_one_job(struct rig *rig)
{
	struct rig *other = rig_new(false, ROWS);
	struct buf expected, got;

	buf_init(&expected, 16 << 20);
	buf_init(&got, 16 << 20);
	copy_raw(rig, other);
	assert_int_equal(rig_job_until(other, rig->newest_ms), 0);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	dump(other, &expected);
	dump(rig, &got);
	assert_int_equal(expected.len, got.len);
	assert_true(expected.len > 0);
	assert_memory_equal(expected.data, got.data, got.len);
	assert_recomputed(rig, &expected);
	buf_release(&expected);
	buf_release(&got);
	rig_free(other);
}

static void check_random(bool on_lmdb, uint64_t seed)
{
	struct rig *rig = rig_new(on_lmdb, ROWS);
	struct device d = {.now_ms = NEW_YEAR - 3600000};
	struct pass passes[ROWS][RIG_COLUMNS];
	struct random r;

	random_init(&r, seed);
	d.booted_ms = d.now_ms - INT64_C(3000000000);
	for (size_t i = 0; i < ROWS * RIG_COLUMNS; i++)
		pass_init(&passes[i / RIG_COLUMNS][i % RIG_COLUMNS]);
	for (size_t i = 0; i < POLLS; i++) {
		poll(rig, &r, &d, passes);
		switch (random_below(&r, on_lmdb ? 24 : 12)) {
		case 0:
			some_job(rig, &r);
			break;
		case 1:
			job_without_checkpoint(rig);
			break;
		case 2:
			rig_reopen(rig);
			break;
		case 3:
			assert_all(rig, passes);
			break;
		default:
			break;
		}
	}
	assert_all(rig, passes);
	assert_stored_as_by_one_job(rig);
	assert_all(rig, passes);
	for (size_t i = 0; i < ROWS * RIG_COLUMNS; i++)
		mem_free(passes[i / RIG_COLUMNS][i % RIG_COLUMNS].out.rows);
	rig_free(rig);
}

static void any_cut_by_jobs_restarts_and_failures_gives_the_same(void **state)
{
	const char *is_long = getenv("GRANARY_LONG"), *from = getenv("GRANARY_SEED");
	size_t count = from ? 1 : is_long && is_long[0] == '1' ? 1000 : 40;
	uint64_t seed = from ? strtoull(from, NULL, 10) : 1;

	(void)state;
	for (size_t i = 0; i < count; i++, seed++) {
		print_message("GRANARY_SEED=%llu\n", (unsigned long long)seed);
		check_random(false, seed);
		if (i % 8 == 0)
			check_random(true, seed);
	}
}

/* ---- Speeds that change ---------------------------------------------------------------------- */

/* 3e9 octets in 30 s, three times: the counter of 32 bits passes its largest value twice. Then the
 * agent begins anew, and from then on says that the line has 10 Mbit/s: more than 46,875,000 in 30
 * s no such line carries. */
static const struct line_poll {
	uint64_t hc, octets;
	uint32_t ticks, speed_mbit;
} line_polls[] = {
	{10000000000, 0, 100000, 10000},          {13000000000, 3000000000, 103000, 10000},
	{16000000000, 1705032704, 106000, 10000}, /* 6e9 - 2^32 */
	{19000000000, 410065408, 109000, 10000},  /* 9e9 - 2 * 2^32 */
	{2000000000, 1000000000, 2000, 10},       {2000001000, 1000001000, 5000, 10},
	{2000002000, 1000002000, 8000, 10},       {2000003000, 1000003000, 11000, 10},
};

/* A delta that ends on an edge touches the bin that begins there, too. */
static const struct {
	uint64_t val;
	uint8_t flags;
} line_bins[RIG_COLUMNS][ARRAY_LEN(line_polls) - 1] = {
	{{3000000000, 0},
	 {3000000000, 0},
	 {3000000000, 0},
	 {2000000000, COUNTER_RESET},
	 {1000, COUNTER_RESET},
	 {1000, 0},
	 {1000, 0}},
	/* What is higher than before counts as what it rose by. */
	{{3000000000, 0},
	 {3000000000, COUNTER_WRAP},
	 {3000000000, COUNTER_WRAP},
	 {589934592, COUNTER_WRAP | COUNTER_RESET},
	 {1000, COUNTER_RESET},
	 {1000, 0},
	 {1000, 0}},
};

static void put_line_polls(struct rig *rig, size_t from, size_t to)
{
	struct store_write *write = rig_new_write(rig);
	const struct rate_row *row = &rig->rows[0];

	for (size_t i = from; i < to; i++) {
		int64_t ts_ms = NEW_YEAR + (int64_t)i * 30000;
		rig_put(rig, write, rig->table.uptime, ts_ms, line_polls[i].ticks);
		rig_put(rig, write, row->handles[0], ts_ms, line_polls[i].hc);
		rig_put(rig, write, row->handles[1], ts_ms, line_polls[i].octets);
		rig_put(rig, write, row->speed, ts_ms, line_polls[i].speed_mbit);
	}
	rig_submit(rig, write);
}

/* Of so many polls: those on an edge open a bin with nothing in it. */
static void assert_line(struct rig *rig, size_t polls)
{
	assert_int_equal(rig_read_table(rig, &rig->table, 0, NEW_YEAR, NEW_YEAR + 3600000), 0);
	for (size_t c = 0; c < RIG_COLUMNS; c++) {
		struct rate_series s = rate_read_series(rig->read, 0, c);
		assert_int_equal(s.count, polls);
		for (size_t i = 0; i + 1 < polls; i++) {
			assert_int_equal(s.rows[i].val, line_bins[c][i].val);
			assert_int_equal(s.rows[i].flags, line_bins[c][i].flags);
		}
	}
}

/* Wherever the jobs are cut, and however much of it was read before: what the line's speed became
 * later says nothing of what was counted before. */
static void a_speed_that_changes_judges_nothing_before_it(void **state)
{
	size_t all = ARRAY_LEN(line_polls);

	(void)state;
	for (size_t cut = 2; cut < all; cut++) {
		struct rig *rig = rig_new(true, 1);
		struct rate_recompute_result r;
		put_line_polls(rig, 0, cut);
		assert_line(rig, cut); /* before any job: all of it is open */
		assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
		rig_reopen(rig);
		assert_line(rig, cut);
		put_line_polls(rig, cut, all);
		assert_line(rig, all);
		assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
		assert_line(rig, all);
		for (int64_t from = 0; from < 5; from++) {
			r = rig_recompute(rig, NEW_YEAR + from * 30000, NEW_YEAR + 150000, true);
			assert_int_equal(r.compared, 2 * (5 - from));
			assert_int_equal(r.differed + r.missing + r.extra, 0);
		}
		rig_free(rig);
	}
}

/* ---- Size ------------------------------------------------------------------------------------ */

static void put_all(struct rig *rig, size_t rows, int64_t ts_ms, uint64_t value)
{
	struct store_write *write = rig_new_write(rig);

	for (size_t i = 0; i < rows; i++)
		for (size_t c = 0; c < RIG_COLUMNS; c++)
			rig_put(rig, write, rig->handles[i][c], ts_ms, value * (i + 1));
	rig_submit(rig, write);
}

static size_t count_cells(struct rig *rig)
{
	struct store_read *read = rig_new_read(rig);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	size_t count;

	request->cell_scan = (struct store_cell_scan){
		.table = TABLE_RATE_CHECKPOINTS, .key = {{rig->table.device, rig->table.oidset}}};
	assert_int_equal(store_read_submit(read), 0);
	rig_wait(rig);
	count = request->cell_scan.count;
	for (size_t i = 0; i < count; i++)
		assert_true(request->cell_scan.cells[i].value.len < 200000);
	store_read_free(read);
	return count;
}

static size_t index_of(const struct rig *rig, const uint64_t *handles)
{
	size_t i = 0;

	while (rig->rows[i].handles != handles)
		i++;
	return i;
}

/* Bins of interface i have i + 1 times what those of the first have. */
static void assert_rows_grow(struct rig *rig, size_t rows, size_t bins)
{
	assert_int_equal(rig_read_table(rig, &rig->table, 0, NEW_YEAR, NEW_YEAR + 3600000), 0);
	for (size_t i = 0; i < rows; i += 7) {
		size_t at = index_of(rig, rig->handles[i]);
		for (size_t c = 0; c < RIG_COLUMNS; c++) {
			struct rate_series s = rate_read_series(rig->read, at, c);
			assert_int_equal(s.count, bins + 1);
			for (size_t b = 0; b < bins; b++)
				assert_int_equal(s.rows[b].val, 100 * (i + 1));
			assert_int_equal(s.rows[bins].val, 0); /* begun at its edge */
		}
	}
}

/* 600 interfaces, then 1500: runs are divided, and nobody's state is lost. */
static void check_many(bool on_lmdb)
{
	struct rig *rig = rig_new(on_lmdb, 600);
	size_t cells;

	for (uint64_t i = 0; i < 4; i++)
		put_all(rig, 600, NEW_YEAR + (int64_t)i * 30000, i * 100);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	cells = count_cells(rig);
	assert_int_equal(cells, 2); /* 257 rows of two columns, and the rest */
	assert_rows_grow(rig, 600, 3);
	rig_open_table(rig, 1500);
	for (uint64_t i = 4; i < 6; i++)
		put_all(rig, 1500, NEW_YEAR + (int64_t)i * 30000, i * 100);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	put_all(rig, 600, NEW_YEAR + 6 * 30000, 600);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	assert_true(count_cells(rig) > cells);
	assert_rows_grow(rig, 600, 6);
	rig_free(rig);
}

static void devices_of_many_interfaces_have_several_checkpoints(void **state)
{
	(void)state;
	check_many(false);
	check_many(true);
}

/* After a restart a job may run before every interface and OID has been polled again: what it does
 * not have waits with its raw data, and nothing of it is passed over. */
static void what_a_table_lacks_for_a_while_loses_nothing(void **state)
{
	struct rig *rig = rig_new(true, 3);
	uint64_t lacking[RIG_COLUMNS] = {0, 0};
	struct rate_row all[3], rows[2];

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		put_all(rig, 3, NEW_YEAR + (int64_t)i * 30000, i * i * 100);
	assert_int_equal(rig_job_until(rig, NEW_YEAR + 60000), 0);
	memcpy(all, rig->rows, sizeof(all));
	memcpy(rows, all, sizeof(rows));
	lacking[1] = all[0].handles[1];
	rows[0].handles = lacking; /* the first OID of the first, and all of the third */
	rig->table.rows = rows;
	rig->table.row_count = 2;
	assert_int_equal(rig_job_until(rig, NEW_YEAR + 110000), 0);
	rig->table.rows = rig->rows;
	rig->table.row_count = 3;
	for (uint64_t i = 4; i < 6; i++)
		put_all(rig, 3, NEW_YEAR + (int64_t)i * 30000, i * i * 100);
	for (int job = 0; job < 2; job++) {
		assert_int_equal(rig_read_table(rig, &rig->table, 0, NEW_YEAR, NEW_YEAR + 3600000),
				 0);
		for (size_t i = 0; i < 3; i++) {
			size_t at = index_of(rig, rig->handles[i]);
			for (size_t c = 0; c < RIG_COLUMNS; c++) {
				struct rate_series s = rate_read_series(rig->read, at, c);
				assert_int_equal(s.count, 6);
				for (size_t b = 0; b < 5; b++)
					assert_int_equal(s.rows[b].val,
							 (2 * b + 1) * 100 * (i + 1));
			}
		}
		assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	}
	rig_free(rig);
}

/* A reader asks for one interface and one OID of it; its cell has all of them. */
static void part_of_a_table_is_read_by_itself(void **state)
{
	struct rig *rig = rig_new(true, 600);
	struct rate_row row;
	struct rate_table table;
	struct rate_series s;

	(void)state;
	for (uint64_t i = 0; i < 4; i++)
		put_all(rig, 600, NEW_YEAR + (int64_t)i * 30000, i * 100);
	assert_int_equal(rig_job_until(rig, NEW_YEAR + 80000), 0);
	row = rig->rows[index_of(rig, rig->handles[400])];
	row.handles++;
	table = rig->table;
	table.rows = &row;
	table.row_count = 1;
	table.columns++;
	table.column_count = 1;
	assert_int_equal(rig_read_table(rig, &table, 0, 0, NEW_YEAR * 2), 0);
	s = rate_read_series(rig->read, 0, 0);
	assert_int_equal(s.count, 4);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(s.rows[i].val, 40100);
	rig_free(rig);
}

/* ---- Bad and changed ------------------------------------------------------------------------- */

static void a_damaged_checkpoint_makes_its_run_begin_anew(void **state)
{
	struct rig *rig = rig_new(true, 1);
	int64_t damaged = stat_get(STAT_rate_checkpoints_damaged);
	struct buf old;
	struct slice bytes;
	size_t cut = 0;

	(void)state;
	buf_init(&old, 1 << 20);
	feed_alu(rig);
	do {
		assert_int_equal(rig_job_until(rig, alu_polls[50].s * 1000), 0);
		bytes = read_cell(rig, &old);
		write_cell(rig, (struct slice){bytes.data, cut});
		/* Readers do not wait for the job. */
		assert_alu(rig);
		assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
		assert_alu(rig);
		assert_int_equal(stat_get(STAT_rate_checkpoints_damaged), ++damaged);
	} while ((cut += 7) < bytes.len);
	/* A later program's is not ours to throw away. */
	bytes = read_cell(rig, &old);
	old.data[0]++;
	write_cell(rig, bytes);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), ERR_VERSION);
	buf_release(&old);
	rig_free(rig);
}

static void assert_bins_and_first_hour(struct rig *rig)
{
	struct rate_series s;
	uint64_t sum = 0;

	assert_int_equal(rig_read_table(rig, &rig->table, 0, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	for (size_t i = 0; i < s.count; i++)
		sum += s.rows[i].val;
	assert_int_equal(sum, 8656);
	assert_int_equal(rig_read_table(rig, &rig->table, 1, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	assert_int_equal(s.rows[0].val, 8656);
	assert_int_equal(s.rows[0].count, 117);
	assert_true(s.rows[0].max == 736 * 1000.0 / 31000);
}

/* Raw data is gone up to a point in an hour that is closed: the bins and the hour that were made of
 * it stay as they were. (The day is still open, and was in the checkpoint only.) */
static void beginning_anew_keeps_what_came_from_expired_raw_data(void **state)
{
	int64_t last_ms = alu_polls[ARRAY_LEN(alu_polls) - 1].s * 1000;
	struct rig *rig = rig_new(true, 1);
	struct store_write *write;

	(void)state;
	feed_alu(rig);
	write = rig_new_write(rig);
	for (int64_t i = 1; i <= 3; i++)
		rig_put(rig, write, rig->handles[0][0], last_ms + i * 30000, 11739801);
	rig_submit(rig, write);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	assert_bins_and_first_hour(rig);
	write = rig_new_write(rig);
	assert_int_equal(store_delete_range(write, TABLE_RAW_DATA, 30000, rig->handles[0], 1, 0,
					    alu_polls[30].s * 1000),
			 0);
	rig_submit(rig, write);
	write_cell(rig, SLICE("\2 nothing that a checkpoint could be"));
	assert_bins_and_first_hour(rig);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	assert_bins_and_first_hour(rig);
	rig_free(rig);
}

/* Raw data is gone up to a point: what was computed from it stays, also the hour in which it ends.
 */
static void what_came_from_expired_raw_data_is_not_touched(void **state)
{
	struct rig *rig = rig_new(true, 1);
	struct store_write *write;
	struct rate_recompute_result r;

	(void)state;
	feed_alu(rig);
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	write = rig_new_write(rig);
	assert_int_equal(store_delete_range(write, TABLE_RAW_DATA, 30000, rig->handles[0], 1, 0,
					    alu_polls[30].s * 1000),
			 0);
	rig_submit(rig, write);
	r = rig_recompute(rig, 0, NEW_YEAR, false);
	assert_int_equal(r.differed + r.missing + r.extra, 0);
	assert_true(r.compared > 50 && r.compared < 100);
	assert_alu(rig);
	rig_free(rig);
}

/* A new aggregate begins when it is asked for; those that stay go on. */
static void aggregates_may_change(void **state)
{
	struct rig *rig = rig_new(true, 1);
	struct rate_series s;
	uint64_t sum = 0;

	(void)state;
	feed_alu(rig);
	assert_int_equal(rig_job_until(rig, alu_polls[50].s * 1000), 0);
	rig->table.config = (struct counter_config){30000, 2, {86400000, 300000}};
	assert_int_equal(rig_job_until(rig, rig->newest_ms), 0);
	assert_int_equal(rig_read_table(rig, &rig->table, 1, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	assert_int_equal(s.count, 1);
	assert_int_equal(s.rows[0].val, 8656);
	assert_int_equal(s.rows[0].count, 117);
	assert_int_equal(rig_read_table(rig, &rig->table, 2, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	for (size_t i = 0; i < s.count; i++) {
		assert_int_equal(s.rows[i].start_ms % 300000, 0);
		sum += s.rows[i].val;
	}
	assert_true(s.count >= 6 && sum > 0 && sum < 8656);
	rig_free(rig);
}

static void tables_have_bounds(void **state)
{
	struct rig *rig = rig_new(false, 2);
	struct rate_row swapped[2];

	(void)state;
	rig->table.row_count = 0;
	assert_int_equal(rig_job_until(rig, 0), ERR_INVALID);
	rig->table.row_count = 2;
	rig->table.column_count = RATE_COLUMNS_MAX + 1;
	assert_int_equal(rig_job_until(rig, 0), ERR_LIMIT);
	rig->table.column_count = RIG_COLUMNS;
	swapped[0] = rig->rows[1];
	swapped[1] = rig->rows[0];
	rig->table.rows = swapped;
	assert_int_equal(rig_job_until(rig, 0), ERR_INVALID);
	swapped[0] = swapped[1];
	assert_int_equal(rig_job_until(rig, 0), ERR_INVALID);
	rig->table.rows = rig->rows;
	assert_int_equal(rig_read_table(rig, &rig->table, 3, 0, 1), ERR_INVALID);
	assert_int_equal(rig_read_table(rig, &rig->table, 0, 1, 0), ERR_INVALID);
	rig_free(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_routers_hours_are_read_before_between_and_after_jobs),
		cmocka_unit_test(ranges_go_over_new_year),
		cmocka_unit_test(any_cut_by_jobs_restarts_and_failures_gives_the_same),
		cmocka_unit_test(a_speed_that_changes_judges_nothing_before_it),
		cmocka_unit_test(devices_of_many_interfaces_have_several_checkpoints),
		cmocka_unit_test(what_a_table_lacks_for_a_while_loses_nothing),
		cmocka_unit_test(part_of_a_table_is_read_by_itself),
		cmocka_unit_test(a_damaged_checkpoint_makes_its_run_begin_anew),
		cmocka_unit_test(beginning_anew_keeps_what_came_from_expired_raw_data),
		cmocka_unit_test(what_came_from_expired_raw_data_is_not_touched),
		cmocka_unit_test(aggregates_may_change),
		cmocka_unit_test(tables_have_bounds),
	};
	return cmocka_run_group_tests_name("rate_store", tests, NULL, NULL);
}
