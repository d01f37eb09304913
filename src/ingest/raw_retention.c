#include "ingest/raw_retention.h"

#include <limits.h>

#include "marks/marks.h"

/* ---- Levels ---------------------------------------------------------------------------------- */

void raw_retention_init(struct ingest *ingest)
{
	const struct retention_rules *rules = ingest->options.retention.rules;
	ingest->late_retention = retention_class_for(ingest->options.retention.late_ms);
	ingest->level_count = rules->last_level + 1u;
	ingest->longest = 0;
	for (uint8_t i = 0; i < ingest->level_count; i++) {
		ingest->level_classes[i] = retention_class_for(rules->levels_ms[i]);
		if (retention_is_longer(rules->levels_ms[i], rules->levels_ms[ingest->longest]))
			ingest->longest = i;
	}
}

void raw_retention_release(struct ingest *ingest)
{
	retention_memo_release(&ingest->memo);
}

static int64_t raw_retention_open_from_ms(const struct ingest *ingest, int64_t now_ms,
					  int64_t retention_ms)
{
	const struct ingest_options *options = &ingest->options;
	if (options->partitions)
		return slot_open_from_ms(now_ms, retention_ms, options->rollup_slot_ms,
					 options->rollup_quiet_ms);
	return retention_ms && now_ms > retention_ms ? now_ms - retention_ms : 0;
}

/* If nothing is rolled up, no rows are made of what is left. */
int64_t raw_retention_whole_ms(const struct ingest *ingest, uint8_t level, int64_t now_ms)
{
	const struct ingest_options *options = &ingest->options;
	return options->partitions ? retention_whole_ms(options->retention.rules, level, now_ms)
				   : options->retention.rules->levels_ms[level];
}

/* Late samples of slots that would close when those go are not taken either. */
static int64_t raw_retention_late_from_ms(const struct ingest *ingest, int64_t now_ms)
{
	const struct ingest_options *options = &ingest->options;
	return options->retention.late_keep
		       ? raw_retention_open_from_ms(ingest, now_ms, options->retention.late_ms)
		       : INT64_MAX;
}

/* If rules say how long roll-ups of some series are kept, each series has to be looked up. */
static bool raw_retention_is_asked(const struct ingest *ingest)
{
	const struct ingest_options *options = &ingest->options;
	return options->retention.late_keep && options->granularities &&
	       options->retention.rules->count;
}

void raw_retention_begin(struct request *q)
{
	const struct ingest *ingest = q->r.ingest;
	int64_t late_ms = raw_retention_late_from_ms(ingest, q->age_ms);
	int64_t oldest_ms = INT64_MAX, open_ms = 0;
	q->sure_ms = 0;
	for (uint8_t i = 0; i < ingest->level_count; i++) {
		int64_t whole_ms = raw_retention_whole_ms(ingest, i, q->age_ms);
		int64_t from_ms = raw_retention_open_from_ms(ingest, q->age_ms, whole_ms);
		q->level_open_ms[i] = ingest->options.retention.late_keep ? from_ms : INT64_MIN;
		if (from_ms > open_ms)
			open_ms = from_ms;
		if (late_ms < from_ms)
			from_ms = late_ms;
		q->level_oldest_ms[i] = from_ms;
		if (from_ms > q->sure_ms)
			q->sure_ms = from_ms;
		if (from_ms < oldest_ms)
			oldest_ms = from_ms;
	}
	q->oldest_ms = oldest_ms;
	q->level_oldest_ms[LEVEL_UNSEEN] = INT64_MAX;
	q->closely_ms = raw_retention_is_asked(ingest) ? open_ms : INT64_MIN;
	if (q->closely_ms > q->sure_ms)
		q->sure_ms = q->closely_ms;
}

bool raw_retention_levels(struct ingest *ingest, struct slice tenant, const struct slice *metrics,
			  size_t count, uint8_t *levels)
{
	const struct retention_rules *rules = ingest->options.retention.rules;
	bool any = false;
	if (ingest->level_count == 1)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct retention_fit fit = retention_find(rules, &ingest->memo, tenant, metrics[i]);
		levels[i] = retention_level(rules, fit.raw);
		any |= levels[i] != 0;
	}
	return any;
}

/* ---- Known series ---------------------------------------------------------------------------- */

static bool raw_retention_accepts(const struct request *q, uint8_t level, int64_t ts_ms)
{
	return ts_ms >= q->level_oldest_ms[level];
}

/* Whether a point of one level is taken; refuses it if not. */
static bool raw_retention_check(struct request *q, uint8_t level, int64_t ts_ms,
				struct ingest_place place, struct slice source)
{
	if (raw_retention_accepts(q, level, ts_ms))
		return true;
	request_refuse_time(q, level, ts_ms, place, source);
	return false;
}

/* Each point by itself, or one of each level for all of it. */
static void raw_retention_refuse_some(struct request *q, const struct known *known)
{
	bool told[LEVEL_UNSEEN + 1] = {false};
	for (size_t i = 0; i < known->count; i++) {
		uint8_t level = known->levels[i];
		struct ingest_place place = known->place;
		if (raw_retention_accepts(q, level, known->ts_ms) ||
		    (told[level] && !known->one_by_one))
			continue;
		told[level] = true;
		place.index += known->one_by_one ? i : 0;
		request_refuse_time(q, level, known->ts_ms, place, known->source);
	}
}

static void raw_retention_refuse_all(struct request *q, const struct known *known)
{
	struct ingest_place place = known->place;
	for (size_t i = 0; i < (known->one_by_one ? known->count : 1); i++, place.index++)
		request_refuse_time(q, known->level, known->ts_ms, place, known->source);
}

/* Those of one level. */
static size_t raw_retention_select_level(const struct known *known, uint8_t level,
					 uint64_t *handles, struct value *values)
{
	size_t n = 0;
	for (size_t i = 0; i < known->count; i++) {
		if (known->levels[i] != level)
			continue;
		handles[n] = known->handles[i];
		values[n++] = known->values[i];
	}
	return n;
}

typedef void raw_retention_adder(struct request *q, uint8_t level, int64_t ts_ms,
				 const uint64_t *handles, const struct value *values, size_t count);

static void raw_retention_add_some(struct request *q, uint8_t level, int64_t ts_ms,
				   const uint64_t *handles, const struct value *values,
				   size_t count)
{
	request_add(q, level, ts_ms, handles, values, count);
}

/* `levels`: bit by level. */
static void raw_retention_add_by_level(struct request *q, const struct known *known,
				       unsigned levels, raw_retention_adder *to)
{
	uint64_t handles[INGEST_POINTS_MAX];
	struct value values[INGEST_POINTS_MAX];
	for (uint8_t level = 0; level < q->r.ingest->level_count; level++) {
		size_t n = levels >> level & 1
				   ? raw_retention_select_level(known, level, handles, values)
				   : 0;
		if (n)
			to(q, level, known->ts_ms, handles, values, n);
	}
}

static unsigned raw_retention_levels_at(const struct request *q, int64_t ts_ms)
{
	unsigned levels = 0;
	for (uint8_t level = 0; level < q->r.ingest->level_count; level++)
		levels |= (unsigned)raw_retention_accepts(q, level, ts_ms) << level;
	return levels;
}

void raw_retention_add(struct request *q, const struct known *known)
{
	if (known->levels) {
		raw_retention_refuse_some(q, known);
		raw_retention_add_by_level(q, known, raw_retention_levels_at(q, known->ts_ms),
					   raw_retention_add_some);
	} else if (raw_retention_accepts(q, known->level, known->ts_ms)) {
		request_add(q, known->level, known->ts_ms, known->handles, known->values,
			    known->count);
	} else {
		raw_retention_refuse_all(q, known);
	}
}

void raw_retention_append(struct request *q, const struct known *known)
{
	if (known->levels)
		raw_retention_add_by_level(q, known, UINT_MAX, request_append);
	else
		request_append(q, known->level, known->ts_ms, known->handles, known->values,
			       known->count);
}

/* ---- Unknown series -------------------------------------------------------------------------- */

/* The rest of them: of a shape by positions, else other metrics, whose entry in the cache would
 * be another's. */
struct raw_retention_left {
	struct unknown u;
	uint16_t positions[INGEST_POINTS_MAX];
	struct slice metrics[INGEST_POINTS_MAX];
	struct value values[INGEST_POINTS_MAX];
};

static size_t raw_retention_position(const struct unknown *u, size_t i)
{
	return u->positions ? u->positions[i] : i;
}

static void raw_retention_begin_left(struct raw_retention_left *left, const struct unknown *u)
{
	left->u = *u;
	left->u.values = left->values;
	left->u.count = 0;
	if (u->fields) {
		left->u.positions = left->positions;
		return;
	}
	left->u.metrics = left->metrics;
	left->u.positions = NULL;
	left->u.metric_count = 0;
	left->u.no_cache = true;
}

static void raw_retention_copy_left(struct raw_retention_left *left, const struct unknown *from,
				    size_t i)
{
	struct unknown *u = &left->u;
	struct slice metric = from->metrics[raw_retention_position(from, i)];
	left->positions[u->count] = (uint16_t)raw_retention_position(from, i);
	left->metrics[u->count] = metric;
	left->values[u->count++] = from->values[i];
	if (u->fields)
		return;
	u->metric_count = u->count;
	struct hash128 hash = hash128(metric.data, metric.len, u->key.high);
	u->key.low ^= hash.low;
	u->key.high ^= hash.high;
}

static void raw_retention_add_left(struct request *q, struct raw_retention_left *left)
{
	if (left->u.count)
		resolving_put(q, &left->u);
}

/* Points by themselves have places by themselves. */
static void raw_retention_add_one_by_one(struct request *q, const struct unknown *u,
					 const uint8_t *levels)
{
	struct raw_retention_left left;
	for (size_t i = 0; i < u->count; i++) {
		raw_retention_begin_left(&left, u);
		left.u.place.index += i;
		if (raw_retention_check(q, levels[i], u->ts_ms, left.u.place, u->source)) {
			raw_retention_copy_left(&left, u, i);
			raw_retention_add_left(q, &left);
		}
	}
}

static void raw_retention_add_together(struct request *q, const struct unknown *u,
				       const uint8_t *levels)
{
	bool told[LEVEL_UNSEEN + 1] = {false};
	struct ingest_place place = u->place;
	struct raw_retention_left left;
	raw_retention_begin_left(&left, u);
	if (u->time_column)
		place.column = u->time_column;
	for (size_t i = 0; i < u->count; i++) {
		if (raw_retention_accepts(q, levels[i], u->ts_ms))
			raw_retention_copy_left(&left, u, i);
		else if (!told[levels[i]])
			told[levels[i]] =
				!raw_retention_check(q, levels[i], u->ts_ms, place, u->source);
	}
	raw_retention_add_left(q, &left);
}

/* Late samples are seen only through roll-ups. */
static void raw_retention_find_unseen(struct request *q, const struct unknown *u,
				      const struct slice *metrics, uint8_t *levels)
{
	struct ingest *ingest = q->r.ingest;
	const struct retention_rules *rules = ingest->options.retention.rules;
	q->unseen_ms = 0;
	for (size_t i = 0; i < u->count; i++) {
		struct retention_fit fit =
			retention_find(rules, &ingest->memo, u->tenant, metrics[i]);
		int64_t kept_ms =
			retention_longest_of_ms(rules, &fit, ingest->options.granularities);
		if (u->ts_ms >= q->level_open_ms[levels[i]] ||
		    u->ts_ms >= raw_retention_open_from_ms(ingest, q->age_ms, kept_ms))
			continue;
		levels[i] = LEVEL_UNSEEN;
		if (kept_ms > q->unseen_ms)
			q->unseen_ms = kept_ms;
	}
}

void raw_retention_add_unknown(struct request *q, const struct unknown *u)
{
	struct slice metrics[INGEST_POINTS_MAX];
	uint8_t levels[INGEST_POINTS_MAX] = {0};
	unsigned accepting = raw_retention_levels_at(q, u->ts_ms);
	bool all = true;
	for (size_t i = 0; i < u->count; i++)
		metrics[i] = u->metrics[raw_retention_position(u, i)];
	(void)raw_retention_levels(q->r.ingest, u->tenant, metrics, u->count, levels);
	if (u->ts_ms < q->closely_ms)
		raw_retention_find_unseen(q, u, metrics, levels);
	for (size_t i = 0; i < u->count; i++)
		all &= accepting >> levels[i] & 1;
	if (all)
		resolving_put(q, u);
	else if (u->one_by_one)
		raw_retention_add_one_by_one(q, u, levels);
	else
		raw_retention_add_together(q, u, levels);
}
