/* A batch's life, and what comes after what. */
#include "rollup/batch/private.h"

#include "base/fault.h"
#include "base/stats.h"
#include "store/wait.h"

enum {
	ROWS_MAX = 32 << 10, /* of all granularities, that one batch makes */
	READ_MAX_BYTES = 96 << 20,
	WRITE_MAX_BYTES = 32 << 20,
	NAMES_MAX_BYTES = 8 << 20,
	DAMAGED_LINES_A_MINUTE = 3,
};

/* ---- Life ------------------------------------------------------------------------------------ */

static size_t batch_rows_of(const struct granularities *granularities)
{
	size_t rows = 0;
	for (size_t g = 0; g < granularities->count; g++)
		rows += batch_windows(granularities, g);
	return rows;
}

size_t rollup_batch_max(const struct granularities *granularities)
{
	size_t max = ROWS_MAX / batch_rows_of(granularities);
	if (max > STORE_GROUP_MAX)
		return STORE_GROUP_MAX;
	return max ? max : 1;
}

struct rollup_batch *rollup_batch_new(const struct rollup_site *site)
{
	struct rollup_batch *b = mem_zalloc(sizeof(*b));
	size_t max = rollup_batch_max(&site->granularities);
	b->site = site;
	b->windows = batch_windows(&site->granularities, 0);
	b->rows = batch_rows_of(&site->granularities);
	b->growths = mem_alloc_array(max * b->windows, sizeof(*b->growths));
	b->coarse = mem_alloc_array(b->windows, sizeof(*b->coarse));
	b->values = mem_alloc_array(b->rows * max * ROLLUP_FIELDS, sizeof(*b->values));
	b->read = store_read_new(site->store, READ_MAX_BYTES);
	b->read->points_max = site->slice_points;
	b->write = store_write_new(site->store, WRITE_MAX_BYTES);
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

bool rollup_batch_has_late(const struct rollup_site *site, int64_t slot_s)
{
	int64_t age_ms = clock_age_ms(site->clock) - slot_s * 1000;
	const struct late_samples *late = &rollup_site_rules(site)->late;
	return late->after_ms && age_ms + site->skew_max_ms > late->after_ms &&
	       (!late->kept_ms || age_ms <= late->kept_ms);
}

bool batch_has_raw(const struct rollup_batch *b, const struct member *m)
{
	int64_t whole_ms = rollup_site_whole_ms(b->site, b->rules, m->fit);
	return !whole_ms || b->slot_s * 1000 >= clock_age_ms(b->site->clock) - whole_ms;
}

/* ---- Reading --------------------------------------------------------------------------------- */

int batch_read(struct rollup_batch *b)
{
	b->read->now_ms = clock_age_ms(b->site->clock);
	int err = store_read_wait(b->read, b->queue);
	return err ? err : fault("rollup_read");
}

bool batch_reads(const struct rollup_batch *b, const struct member *m)
{
	return m->handle && !m->mark->finished && !m->damaged &&
	       (m->has_raw || b->phase != BATCH_RAW);
}

void batch_give_up_series(struct rollup_batch *b, struct member *m)
{
	static const char *const what[] = {[BATCH_RAW] = "raw data",
					   [BATCH_LATE] = "late data",
					   [BATCH_ROWS] = "stored roll-up",
					   [BATCH_REMOVALS] = "stored roll-up"};
	m->damaged = true;
	stat_add(STAT_rollup_failed, 1);
	log_rated(&b->damaged_lines, clock_mono_ms(b->site->clock), LOG_WARN,
		  "roll-ups: the %s of " SHOWN SHOWN " of tenant " SHOWN " is damaged: %s",
		  what[b->phase], SHOWN_OF(m->mark->series_set.metric),
		  SHOWN_OF(m->mark->series_set.tags), SHOWN_OF(m->mark->tenant),
		  store_read_sentence(b->read, ERR_DAMAGED));
}

/* All members in one phase: together, or one by one where something is damaged, so that it holds up
 * nobody else. */
static int batch_read_phase(struct rollup_batch *b, enum batch_phase phase,
			    int (*read)(struct rollup_batch *b))
{
	bool one_by_one = false;
	b->phase = phase;
	b->from = 0;
	while (b->from < b->count) {
		b->to = one_by_one ? b->from + 1 : b->count;
		int err = read(b);
		if (err && err != ERR_DAMAGED)
			return err;
		if (err && b->to - b->from > 1) {
			one_by_one = true;
			continue;
		}
		if (err)
			batch_give_up_series(b, &b->members[b->from]);
		b->from = b->to;
	}
	return 0;
}

/* ---- A batch --------------------------------------------------------------------------------- */

/* The rules may have changed so that there are late points now. */
static void batch_need_late(struct rollup_batch *b)
{
	size_t max = rollup_batch_max(&b->site->granularities);
	if (b->late)
		return;
	b->late = mem_alloc_array(b->rows * max * ROLLUP_FIELDS, sizeof(*b->late));
	b->there = mem_alloc_array(b->rows * max, sizeof(*b->there));
}

static void batch_begin(struct rollup_batch *b, int64_t slot_s, int64_t stamp_us,
			const struct rollup_batch_mark *marks, size_t count)
{
	ASSERT(count && count <= rollup_batch_max(&b->site->granularities));
	size_t rows = b->rows * count;
	b->slot_s = slot_s;
	b->begun_ms = clock_wall_ms(b->site->clock);
	b->count = count;
	b->rules = rollup_site_rules(b->site);
	b->has_late = rollup_batch_has_late(b->site, slot_s);
	b->result = (struct rollup_batch_result){0};
	b->removals = 0;
	for (size_t i = 0; i < count; i++)
		b->members[i] = (struct member){
			.mark = marks[i].mark, .stays = marks[i].stays, .lost = marks[i].lost};
	memset(b->values, 0, rows * ROLLUP_FIELDS * sizeof(*b->values));
	if (b->has_late) {
		batch_need_late(b);
		memset(b->late, 0, rows * ROLLUP_FIELDS * sizeof(*b->late));
		memset(b->there, 0, rows * sizeof(*b->there));
	}
	store_write_reset(b->write);
	/* Before its samples are read: rows that somebody makes of more of them win. */
	b->write->stamp_us = stamp_us;
}

int rollup_batch_run(struct rollup_batch *b, struct task_queue *queue, int64_t slot_s,
		     int64_t stamp_us, const struct rollup_batch_mark *marks, size_t count,
		     struct rollup_batch_result *result)
{
	b->queue = queue;
	batch_begin(b, slot_s, stamp_us, marks, count);
	int err = batch_open_series(b);
	if (!err)
		err = batch_read_phase(b, BATCH_RAW, batch_read_data);
	if (!err && b->has_late)
		err = batch_read_phase(b, BATCH_LATE, batch_read_data);
	if (!err && b->has_late)
		err = batch_read_phase(b, BATCH_ROWS, batch_read_rows);
	b->phase = BATCH_REMOVALS;
	if (!err)
		err = batch_remove_rows(b);
	if (!err)
		err = batch_write_rows(b);
	*result = b->result;
	return err;
}
