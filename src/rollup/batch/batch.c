/* A batch's life, and what comes after what. */
#include "rollup/batch/private.h"

#include "base/fault.h"
#include "base/stats.h"

enum {
	ROWS_MAX = 32 << 10, /* of all granularities, that one batch makes */
	READ_MAX_BYTES = 96 << 20,
	WRITE_MAX_BYTES = 32 << 20,
	NAMES_MAX_BYTES = 8 << 20,
	DAMAGED_LINES_A_MINUTE = 3,
};

/* ---- Life ------------------------------------------------------------------------------------ */

static size_t rows_of(const struct rollup_grains *grains)
{
	size_t rows = 0;
	for (size_t g = 0; g < grains->count; g++)
		rows += batch_windows(grains, g);
	return rows;
}

size_t rollup_batch_max(const struct rollup_grains *grains)
{
	size_t max = ROWS_MAX / rows_of(grains);
	if (max > STORE_GROUP_MAX)
		return STORE_GROUP_MAX;
	return max ? max : 1;
}

struct rollup_batch *rollup_batch_new(const struct rollup_job_options *options,
				      rollup_batch_done *done, void *owner)
{
	struct rollup_batch *b = mem_zalloc(sizeof(*b));
	size_t max = rollup_batch_max(options->grains);
	b->options = *options;
	b->done = done;
	b->owner = owner;
	b->windows = batch_windows(options->grains, 0);
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
	b->read->done = batch_on_read;
	b->read->owner = b;
	b->read->points_max = options->slice_points;
	b->write = store_write_new(options->store, WRITE_MAX_BYTES);
	b->write->executor = options->executor;
	b->write->done = batch_on_written;
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

struct rollup_batch_result rollup_batch_result(const struct rollup_batch *b)
{
	return b->result;
}

bool rollup_batch_has_late(const struct rollup_job_options *options, int64_t slot_s)
{
	int64_t age_ms = clock_age_ms(options->clock) - slot_s * 1000;
	const struct rollup_late *late = &options->late;
	return late->after_ms && age_ms + options->skew_max_ms > late->after_ms &&
	       (!late->kept_ms || age_ms <= late->kept_ms);
}

bool batch_has_raw(const struct rollup_batch *b, const struct member *m)
{
	int64_t now_ms = clock_age_ms(b->options.clock);
	int64_t whole_ms = retention_whole_ms(b->options.retention_rules, m->raw_fit,
					      b->options.raw_retention_ms, now_ms);
	return !whole_ms || b->slot_s * 1000 >= now_ms - whole_ms;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

void batch_start_read(struct rollup_batch *b)
{
	b->read->now_ms = clock_age_ms(b->options.clock);
	int err = store_read_submit(b->read);
	if (err)
		b->done(b->owner, err);
}

bool batch_reads(const struct rollup_batch *b, const struct member *m)
{
	return m->handle && !m->mark->finished && !m->damaged && (m->has_raw || b->phase != RAW);
}

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

void batch_step(struct rollup_batch *b)
{
	if (b->from == b->count)
		begin_phase(b, next_phase(b));
	b->to = b->one_by_one ? b->from + 1 : b->count;
	if (b->phase == LOOKS)
		batch_begin_write(b);
	else if (b->phase == ROWS)
		batch_read_rows(b, &(struct store_token){0});
	else
		batch_read_data(b);
}

void batch_give_up_series(struct rollup_batch *b, struct member *m)
{
	static const char *const what[] = {[RAW] = "raw data",
					   [LATE] = "late data",
					   [ROWS] = "stored roll-up",
					   [LOOKS] = "stored roll-up"};
	m->damaged = true;
	stat_add(STAT_rollup_failed, 1);
	log_rated(&b->damaged_lines, clock_mono_ms(b->options.clock), LOG_WARN,
		  "roll-ups: the %s of " SHOWN SHOWN " of tenant " SHOWN " is damaged: %s",
		  what[b->phase], SHOWN_OF(m->mark->series_set.metric),
		  SHOWN_OF(m->mark->series_set.tags), SHOWN_OF(m->mark->tenant),
		  store_read_sentence(b->read, ERR_DAMAGED));
}

/* One damaged block must not hold up the others. */
static void on_damaged(struct rollup_batch *b)
{
	if (b->to - b->from > 1) {
		b->one_by_one = true;
	} else {
		batch_give_up_series(b, &b->members[b->from]);
		b->from++;
	}
	b->rows_grain = 0;
	batch_step(b);
}

void batch_on_read(struct store_read *read, int err)
{
	struct rollup_batch *b = read->owner;
	if (!err)
		err = fault("rollup_read");
	if (err == ERR_DAMAGED && b->phase == LOOKS) {
		batch_on_damaged_rows(b);
	} else if (err == ERR_DAMAGED && b->phase != OPENS) {
		on_damaged(b);
	} else if (err) {
		b->done(b->owner, err);
	} else if (b->phase == LOOKS) {
		batch_on_looked(b);
	} else if (b->phase == ROWS) {
		batch_on_rows(b);
	} else if (b->phase == OPENS) {
		batch_take_handles(b);
		b->from = b->count;
		batch_step(b);
	} else {
		batch_on_data(b);
	}
}

void rollup_batch_start(struct rollup_batch *b, int64_t slot_s,
			const struct rollup_batch_mark *marks, size_t count)
{
	ASSERT(count && count <= rollup_batch_max(b->options.grains));
	b->slot_s = slot_s;
	b->begun_ms = clock_wall_ms(b->options.clock);
	b->count = count;
	b->has_late = rollup_batch_has_late(&b->options, slot_s);
	begin_phase(b, OPENS);
	b->result = (struct rollup_batch_result){0};
	for (size_t i = 0; i < count; i++)
		b->members[i] = (struct member){
			.mark = marks[i].mark, .stays = marks[i].stays, .lost = marks[i].lost};
	batch_open_series(b);
}
