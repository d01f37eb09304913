/* One write of all rows that were computed, and of what tells that there are such rows. */
#include "rollup/batch/private.h"

#include "base/fault.h"
#include "marks/recent.h"
#include "retention/late.h"
#include "store/wait.h"

enum { NAMES_MAX = 100000 }; /* of metrics whose aggregators are known to be stored */

/* ---- Writing --------------------------------------------------------------------------------- */

#define GAUGE_FIELDS                                                                               \
	(1u << ROLLUP_MIN | 1u << ROLLUP_MAX | 1u << ROLLUP_SUM | 1u << ROLLUP_COUNT |             \
	 1u << ROLLUP_FIRST | 1u << ROLLUP_LAST)
#define COUNTER_FIELDS                                                                             \
	(1u << ROLLUP_SUM | 1u << ROLLUP_INCREASE | 1u << ROLLUP_FIRST | 1u << ROLLUP_LAST)

/* Adds the `fields` of one row of all members of its class that have the first of them. */
static int batch_append_fields(struct rollup_batch *b, const struct row_place *place, bool counter,
			       unsigned fields)
{
	uint64_t handles[STORE_GROUP_MAX];
	struct value values[STORE_GROUP_MAX * ROLLUP_FIELDS];
	unsigned first = (unsigned)__builtin_ctz(fields);
	size_t n = 0, at = 0;
	for (size_t i = 0; i < b->count; i++) {
		const struct member *m = &b->members[i];
		const struct value *from = batch_row_in(b, place->values, place->row, i);
		if (m->counter != counter || from[first].type == VALUE_NONE ||
		    m->retention[place->granularity] != place->retention)
			continue;
		handles[n++] = m->handle;
		for (unsigned f = first; f < ROLLUP_FIELDS; f++) {
			if (fields >> f & 1)
				values[at++] = from[f];
		}
	}
	b->result.rows += fields == 1u << ROLLUP_AVG ? 0 : n;
	struct store_target target = {TABLE_DATA_DOWNSAMPLED, place->retention,
				      b->site->granularities.list[place->granularity].width_ms};
	return n ? store_append_fields(b->write, &target, place->ts_ms, fields, handles, n, values)
		 : 0;
}

static int batch_append_row(struct rollup_batch *b, struct row_place *place)
{
	int err = 0;
	for (unsigned c = 0; c < RETENTION_CLASSES && !err; c++) {
		place->retention = (enum retention_class)c;
		if (!(b->classes[place->granularity] >> c & 1))
			continue;
		err = batch_append_fields(b, place, false, GAUGE_FIELDS);
		if (!err)
			err = batch_append_fields(b, place, false, 1u << ROLLUP_AVG);
		if (!err)
			err = batch_append_fields(b, place, true, COUNTER_FIELDS);
	}
	return err;
}

static int batch_append_late(struct rollup_batch *b, const struct row_place *bucket)
{
	struct row_place place = *bucket;
	int err = 0;
	place.values = b->late;
	place.ts_ms += LATE_ROW_BEHIND_MS;
	for (size_t i = 0; i < b->count && !err; i++)
		err = batch_settle_member(b, &place, i);
	return err ? err : batch_append_row(b, &place);
}

static int batch_append_rows(struct rollup_batch *b)
{
	const struct granularities *granularities = &b->site->granularities;
	struct row_place place = {.values = b->values};
	for (; place.granularity < granularities->count; place.granularity++) {
		place.ts_ms = b->slot_s * 1000;
		for (size_t w = 0; w < batch_windows(granularities, place.granularity);
		     w++, place.row++) {
			int err = batch_append_row(b, &place);
			if (!err && b->has_late)
				err = batch_append_late(b, &place);
			if (err)
				return err;
			place.ts_ms += granularities->list[place.granularity].width_ms;
		}
	}
	return 0;
}

static struct hash128 batch_name_hash(const struct member *m)
{
	struct hash128 tenant = hash128(m->mark->tenant.data, m->mark->tenant.len, m->counter);
	return hash128(m->metric.data, m->metric.len, tenant.low);
}

static int batch_add_aggregators(struct rollup_batch *b, const struct member *m)
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

/* Adds the aggregators of metrics that are not known to have them. */
static int batch_append_names(struct rollup_batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct member *m = &b->members[i];
		if (!m->handle || m->damaged)
			continue;
		if (hash_set_has(&b->names, batch_name_hash(m)))
			continue;
		int err = batch_add_aggregators(b, m);
		if (err)
			return err;
		(void)hash_set_add(&b->names, batch_name_hash(m), NAMES_MAX);
	}
	return 0;
}

static void batch_finish(struct rollup_batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct member *m = &b->members[i];
		b->result.failed += m->damaged;
		bool gone = m->handle && !m->damaged && !m->mark->deleted && !m->has_raw;
		b->result.expired += gone && !m->late;
		b->result.halved += gone && m->late && m->lost;
		m->mark->finished = !m->damaged && !m->stays;
	}
}

/* Whoever has the lease by now may have read newer data, and its rows may be there. A sample that
 * came after ours were read is read by others only when it has been quiet, so ours are written
 * sooner than that, or not at all. */
static bool batch_read_too_long_ago(const struct rollup_batch *b)
{
	const struct rollup_site *site = b->site;
	int64_t ago_ms = clock_wall_ms(site->clock) - b->begun_ms;
	return ago_ms < 0 ||
	       ago_ms >= recent_touches_write_max_ms(site->quiet_ms, site->skew_max_ms);
}

/* Raw data may have gone before it was read. */
static bool batch_raw_went(const struct rollup_batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct member *m = &b->members[i];
		if (m->has_raw && !batch_has_raw(b, m))
			return true;
	}
	return false;
}

int batch_write_rows(struct rollup_batch *b)
{
	int err = batch_append_rows(b);
	if (!err)
		err = batch_append_names(b);
	bool any = b->write->samples || b->write->cells || b->removals;
	if (!err && any && (batch_read_too_long_ago(b) || batch_raw_went(b)))
		err = ERR_TIMEOUT;
	if (!err && any)
		err = fault("rollup_write");
	bool submitted = !err && any;
	if (submitted)
		err = store_write_wait(b->write, b->queue);
	/* ERR_LIMIT of what was submitted: a set of aggregators is full; the rows are there all the
	 * same. */
	if (!err || (submitted && err == ERR_LIMIT)) {
		batch_finish(b);
		return 0;
	}
	/* Nothing is written; what was to be is not known to be stored. */
	hash_set_release(&b->names);
	b->names = (struct hash_set){0};
	return err;
}
