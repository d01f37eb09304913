/* Rates in a store, of random devices: whatever the jobs are cut into, broken off by, and repeated,
 * what is read is what one pass over all samples gives, and what is stored is what one job over all
 * of them stores. On the naive engine and on LMDB. GRANARY_LONG=1 takes more histories. */
#include "rate_store_harness.h"

#include "rate/rows.h"
#include "stored_bin.h"

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

/* ---- Random devices, jobs at any moment ------------------------------------------------------ */

enum { ROWS = 3, POLLS = 60 };

/* What a counter counted while nobody sent it: it comes later, beside what is polled of the others,
 * in its order. */
struct history {
	bool holds;
	size_t count, sent;
	struct counter_sample list[POLLS];
};

struct device {
	int64_t now_ms, booted_ms;
	uint64_t values[ROWS][RIG_COLUMNS];
	uint32_t jumped[ROWS], speeds[ROWS];
	struct history histories[ROWS][RIG_COLUMNS];
};

static void hold_back(struct device *d, struct random *r, uint64_t one_of)
{
	for (size_t i = 0; i < ROWS * RIG_COLUMNS; i++)
		if (random_below(r, one_of) == 0)
			d->histories[i / RIG_COLUMNS][i % RIG_COLUMNS].holds = true;
}

static void take_sample(struct rig *rig, size_t row, size_t c, struct store_write *write,
			const struct counter_sample *sample, struct pass (*passes)[RIG_COLUMNS])
{
	struct counter_def def = {&rig->table.config, rig_columns[c].width_bits, true};
	struct pass *p = &passes[row][c];

	rig_put(rig, write, rig->rows[row].handles[c], sample->ts_ms, sample->value);
	counter_feed(&def, &p->state, sample, &p->out);
}

/* So many of each counter's at most. */
static void carry_over(struct rig *rig, struct device *d, size_t most, struct store_write *write,
		       struct pass (*passes)[RIG_COLUMNS])
{
	for (size_t row = 0; row < ROWS; row++) {
		for (size_t c = 0; c < RIG_COLUMNS; c++) {
			struct history *h = &d->histories[row][c];
			for (size_t n = 0; n < most && h->sent < h->count; n++)
				take_sample(rig, row, c, write, &h->list[h->sent++], passes);
			if (h->holds && h->sent == h->count)
				*h = (struct history){.holds = false};
		}
	}
}

static void carry_some(struct rig *rig, struct device *d, size_t most,
		       struct pass (*passes)[RIG_COLUMNS])
{
	struct store_write *write = rig_new_write(rig);

	carry_over(rig, d, most, write, passes);
	rig_submit(rig, write);
}

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
		struct history *h = &d->histories[row][c];
		*value += random_below(r, 1500000000);
		if (c == 1)
			*value &= UINT32_MAX;
		if (random_below(r, 30) == 0)
			*value -= *value < 7 ? *value : 7;
		base.value = *value;
		if (random_below(r, 25) == 0)
			continue; /* not in this poll's reply */
		if (h->holds)
			h->list[h->count++] = base;
		else
			take_sample(rig, row, c, write, &base, passes);
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

static void on_carried(struct store_write *write, int err)
{
	bool *carried = write->owner;

	assert_int_equal(err, 0);
	*carried = true;
}

/* A job over all there is, while more of the past comes between its steps. */
static void job_beside_history(struct rig *rig, struct random *r, struct device *d,
			       struct pass (*passes)[RIG_COLUMNS])
{
	struct rate_job_options options = rig_job_options(rig, rig->newest_ms);
	bool carried = true;
	struct store_write *write = rig_new_write(rig);

	write->done = on_carried;
	write->owner = &carried;
	rig->done = false;
	assert_int_equal(rate_job_start(rig->job, &options), 0);
	while (!rig->done || !carried) {
		if (carried && random_below(r, 2)) {
			carried = false;
			store_write_reset(write);
			carry_over(rig, d, 1 + random_below(r, POLLS / 2), write, passes);
			assert_int_equal(store_write_submit(write), 0);
		}
		task_queue_wait(&rig->queue);
	}
	rig->done = false;
	assert_int_equal(rig->err, 0);
	store_write_free(write);
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
		store_append(write, &(struct store_target){TABLE_BASE_RATES, RETENTION_EVER, 30000},
			     bin_ms, handle, 1, v),
		0);
	assert_int_equal(
		store_append(write, &(struct store_target){TABLE_BASE_RATES, RETENTION_EVER, 30000},
			     bin_ms + 1, handle, 1, v),
		0);
	assert_int_equal(store_delete_range(write,
					    &(struct store_target){.table = TABLE_BASE_RATES,
								   .period_ms = 30000},
					    handle, 1, gone_ms, gone_ms + 1),
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
	hold_back(&d, &r, 3);
	d.booted_ms = d.now_ms - INT64_C(3000000000);
	for (size_t i = 0; i < ROWS * RIG_COLUMNS; i++)
		pass_init(&passes[i / RIG_COLUMNS][i % RIG_COLUMNS]);
	for (size_t i = 0; i < POLLS; i++) {
		hold_back(&d, &r, 60);
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
		case 4:
			job_beside_history(rig, &r, &d, passes);
			break;
		case 5:
			carry_some(rig, &d, 1 + random_below(&r, 20), passes);
			break;
		default:
			break;
		}
	}
	carry_some(rig, &d, POLLS, passes);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_cut_by_jobs_restarts_and_failures_gives_the_same),
	};
	return cmocka_run_group_tests_name("rate_store_random", tests, NULL, NULL);
}
