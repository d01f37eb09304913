/* RANGE: series after series, in the order asked for; those that lie side by side, or in one group,
 * at once. */
#include <stdalign.h>
#include <stddef.h>

#include "store/lmdb/read/read.h"

/* Token of a range: the handle that comes next u32 | points of it given so far u64 | where it goes
 * on i64. */
struct range_place {
	uint32_t handle;
	uint64_t given;
	int64_t from_ms;
};

enum { RANGE_PLACE_BYTES = 4 + 8 + 8 };

/* The memory that a lookup keeps for the next read, at most. */
enum { LOOKUP_KEPT_BYTES = 64 << 10 };

static int place_get(const struct store_token *token, const struct store_range *range,
		     struct range_place *place)
{
	*place = (struct range_place){.from_ms = range->backward ? range->end_ms : range->start_ms};
	if (token->len == 0)
		return 0;
	if (token->len != RANGE_PLACE_BYTES)
		return ERR_INVALID;
	memcpy(&place->handle, token->bytes, 4);
	memcpy(&place->given, token->bytes + 4, 8);
	memcpy(&place->from_ms, token->bytes + 12, 8);
	return 0;
}

static void place_put(struct store_token *token, const struct range_place *place)
{
	token->len = RANGE_PLACE_BYTES;
	memcpy(token->bytes, &place->handle, 4);
	memcpy(token->bytes + 4, &place->given, 8);
	memcpy(token->bytes + 12, &place->from_ms, 8);
}

static int range_answer_values(struct arena *arena, const struct samples *samples, size_t count,
			       unsigned first, struct store_points *points)
{
	for (unsigned f = 0; f < samples->fields; f++) {
		uint64_t *bits = arena_alloc(arena, count * sizeof(*bits));
		uint8_t *types = arena_alloc(arena, count);
		if (!bits || !types)
			return ERR_LIMIT;
		memcpy(bits, samples->bits[f], count * sizeof(*bits));
		memcpy(types, samples->types[f], count);
		points->bits[first + f] = bits;
		points->types[first + f] = types;
	}
	return 0;
}

int reading_answer_points(struct arena *arena, const struct samples *samples, size_t count,
			  unsigned first, struct store_points *points)
{
	if (count == 0)
		return 0;
	int64_t *ts = arena_alloc(arena, count * sizeof(*ts));
	if (!ts)
		return ERR_LIMIT;
	memcpy(ts, samples->ts_ms, count * sizeof(*ts));
	points->ts_ms = ts;
	points->count = count;
	return range_answer_values(arena, samples, count, first, points);
}

static size_t arena_room(const struct arena *arena)
{
	return arena->max_bytes - arena->used_bytes;
}

/* Rows of so many fields for which a part of the arena has room. */
static size_t rows_that_fit(size_t room, unsigned fields)
{
	/* Each array takes whole units of alignment. */
	size_t edges = (1 + 2 * (size_t)fields) * alignof(max_align_t);
	return room < edges ? 0 : (room - edges) / (8 + 9 * (size_t)fields);
}

/* Fields that nobody asked for are not shown, and times with none of those asked for left out. */
static void range_filter_fields(struct samples *samples, unsigned wanted)
{
	size_t kept = 0;
	for (size_t i = 0; i < samples->count; i++) {
		bool any = false;
		for (unsigned f = 0; f < samples->fields; f++)
			any = any || ((wanted >> f & 1) && samples->types[f][i] != VALUE_NONE);
		if (!any)
			continue;
		samples->ts_ms[kept] = samples->ts_ms[i];
		for (unsigned f = 0; f < samples->fields; f++) {
			samples->bits[f][kept] = samples->bits[f][i];
			samples->types[f][kept] = samples->types[f][i];
		}
		kept++;
	}
	samples->count = kept;
}

/* How many rows of `samples` this slice may give of this series. */
static size_t allowed(const struct reading *r, const struct store_range *range,
		      const struct range_place *place, size_t count)
{
	if (range->limit && count > range->limit - place->given)
		count = range->limit - (size_t)place->given;
	return count < r->budget ? count : r->budget;
}

/* One series of a range. *stopped: a bound was reached; *place says where it goes on. */
static int range_series(struct reading *r, const struct store_range *range, size_t segment_count,
			struct range_place *place, struct store_points *points, bool *stopped)
{
	unsigned fields = (unsigned)schema[range->table].field_count;
	unsigned all = (1u << fields) - 1, wanted = range->fields ? range->fields : all;
	/* Fields before the first and after the last that is wanted are not looked at. */
	unsigned low = (unsigned)__builtin_ctz(wanted);
	unsigned span = 32 - (unsigned)__builtin_clz(wanted) - low;
	struct target t = {
		.handle = range->handles[place->handle],
		.first_column = handle_column(range->handles[place->handle]) * fields + low,
		.fields = span,
		.start_ms = range->backward ? range->start_ms : place->from_ms,
		.end_ms = range->backward ? place->from_ms : range->end_ms,
	};
	size_t enough = r->budget + 1; /* one more says that there is more */
	if (range->limit && range->limit - place->given < enough)
		enough = range->limit - (size_t)place->given;
	if (wanted != all)
		enough = SIZE_MAX;
	struct samples *samples = &r->scratch->range;
	samples_reuse(samples, span);
	int err = reading_series(r, &t, segment_count, range->backward, enough, samples);
	if (!err && wanted != all)
		range_filter_fields(samples, wanted >> low);
	size_t count = err ? 0 : allowed(r, range, place, samples->count);
	if (count > rows_that_fit(arena_room(&r->read->arena), span))
		count = rows_that_fit(arena_room(&r->read->arena), span);
	if (!err && samples->count && count == 0 && r->budget)
		err = ERR_LIMIT;
	if (!err)
		err = reading_answer_points(&r->read->arena, samples, count, low, points);
	if (!err) {
		for (unsigned f = 0; f < fields; f++) {
			if (!(wanted >> f & 1))
				points->bits[f] = NULL, points->types[f] = NULL;
		}
		r->budget -= count;
		place->given += count;
		bool limit_reached = range->limit && place->given >= range->limit;
		*stopped = count < samples->count && !limit_reached;
		if (count)
			place->from_ms = range->backward ? samples->ts_ms[count - 1]
							 : samples->ts_ms[count - 1] + 1;
		r->read->work.points += count;
	}
	return err;
}

/* ---- Series side by side ----------------------------------------------------------------------
 */

/* How many of the handles from `at` on are columns of one strip of a band, in its order: what is
 * there of them lies together, and is read at once. */
static size_t side_by_side(struct reading *r, const struct store_range *range, size_t at)
{
	unsigned fields = (unsigned)schema[range->table].field_count;
	unsigned strip = strip_columns(range->table) / fields;
	uint64_t first = range->handles[at], last = first;
	unsigned strip_number = handle_column(first) / strip;
	unsigned columns = registry_columns(&r->engine->registry, handle_shape(first));
	size_t n = 1;
	for (; at + n < range->handle_count; n++) {
		uint64_t handle = range->handles[at + n];
		if (handle <= last || handle_shape(handle) != handle_shape(first) ||
		    handle_ordinal(handle) != handle_ordinal(first) ||
		    handle_column(handle) / strip != strip_number ||
		    handle_column(handle) >= columns)
			break;
		last = handle;
	}
	return n;
}

static bool range_has_value(const struct store_points *points, unsigned fields, size_t row)
{
	for (unsigned f = 0; f < fields; f++) {
		if (points->types[f][row] != VALUE_NONE)
			return true;
	}
	return false;
}

/* Leaves only rows that have a value; all lie in the arena, and nobody else has seen them. */
static void leave_present(struct store_points *points, unsigned fields)
{
	int64_t *ts_ms = (int64_t *)points->ts_ms;
	size_t kept = 0;
	for (size_t i = 0; i < points->count; i++) {
		if (!range_has_value(points, fields, i))
			continue;
		ts_ms[kept] = ts_ms[i];
		for (unsigned f = 0; f < fields; f++) {
			((uint64_t *)points->bits[f])[kept] = points->bits[f][i];
			((uint8_t *)points->types[f])[kept] = points->types[f][i];
		}
		kept++;
	}
	points->count = kept;
	if (!kept)
		*points = (struct store_points){0};
}

/* One series out of the samples of several: columns first .. first + fields. Where it has a value
 * in every row, its times are those of the others, which lie in the arena once. */
static int range_answer_series(struct arena *arena, const struct samples *samples, unsigned first,
			       unsigned fields, struct store_points *points, const int64_t **times)
{
	struct samples part = {.count = samples->count, .fields = fields, .ts_ms = samples->ts_ms};
	memcpy(part.bits, samples->bits + first, fields * sizeof(*part.bits));
	memcpy(part.types, samples->types + first, fields * sizeof(*part.types));
	bool full = samples_is_full(&part, 0, part.count);
	if (full && *times) {
		points->ts_ms = *times;
		points->count = part.count;
		return range_answer_values(arena, &part, part.count, 0, points);
	}
	int err = reading_answer_points(arena, &part, part.count, 0, points);
	if (full)
		*times = points->ts_ms;
	else if (!err)
		leave_present(points, fields);
	return err;
}

static int range_answer_band(struct reading *r, const struct store_range *range, size_t at,
			     size_t n)
{
	unsigned fields = (unsigned)schema[range->table].field_count;
	unsigned first = handle_column(range->handles[at]);
	const struct samples *samples = &r->scratch->range;
	const int64_t *times = NULL;
	int err = 0;
	for (size_t i = 0; i < n && samples->count && !err; i++) {
		unsigned column = handle_column(range->handles[at + i]) - first;
		struct store_points *points = &range->points[at + i];
		err = range_answer_series(&r->read->arena, samples, column * fields, fields, points,
					  &times);
		r->budget -= points->count;
		r->read->work.points += points->count;
	}
	return err;
}

/* Answers the next `n` series from the samples, if there is surely room for them. */
static int range_answer_if_it_fits(struct reading *r, const struct store_range *range, size_t at,
				   size_t n, bool *given)
{
	unsigned fields = (unsigned)schema[range->table].field_count;
	size_t count = r->scratch->range.count;
	*given = count <= r->budget / n &&
		 count <= rows_that_fit(arena_room(&r->read->arena) / n, fields);
	return *given ? range_answer_band(r, range, at, n) : 0;
}

static struct target target_of(const struct store_range *range, size_t at, size_t n)
{
	unsigned fields = (unsigned)schema[range->table].field_count;
	unsigned first = handle_column(range->handles[at]);
	unsigned last = handle_column(range->handles[at + n - 1]);
	return (struct target){
		.handle = range->handles[at],
		.first_column = first * fields,
		.fields = (last - first + 1) * fields,
		.start_ms = range->start_ms,
		.end_ms = range->end_ms,
	};
}

/* The next `n` series, which lie side by side, if there is surely room for all they have; else
 * *read is false, and they are for range_series. */
static int range_band(struct reading *r, const struct store_range *range, size_t segment_count,
		      size_t at, size_t n, bool *read)
{
	struct target t = target_of(range, at, n);
	struct samples *samples = &r->scratch->range;
	samples_reuse(samples, t.fields);
	*read = false;
	int err = reading_series(r, &t, segment_count, false, r->budget / n + 1, samples);
	return err ? err : range_answer_if_it_fits(r, range, at, n, read);
}

/* ---- Bands of one group ----------------------------------------------------------------------
 */

/* The bands of the handles from `at` on that lie in the group of the first become lookups, whose
 * `index` is the first handle after each. */
static size_t range_begin_lookups(struct reading *r, const struct store_range *range, size_t at)
{
	uint64_t first = range->handles[at];
	size_t lookups = 0;
	while (lookups < LOOKUPS_MAX && at < range->handle_count &&
	       reading_same_group(r, first, range->handles[at])) {
		size_t n = side_by_side(r, range, at);
		struct target t = target_of(range, at, n);
		struct lookup *lookup = &r->scratch->lookups[lookups];
		if (!lookup_begin(r, lookup, &t))
			break;
		at += n;
		lookup->index = at;
		lookups++;
	}
	return lookups;
}

static int range_read_lookup(struct reading *r, const struct store_range *range,
			     struct lookup *lookup, int64_t start_ms, size_t at, bool *given)
{
	struct samples *samples = &r->scratch->range;
	r->handle = lookup->target.handle;
	samples_reuse(samples, lookup->target.fields);
	int err = start_ms < range->end_ms ? lookup_read(r, lookup, start_ms, 0, samples) : 0;
	if (!err)
		err = range_answer_if_it_fits(r, range, at, lookup->index - at, given);
	/* The reads swap these samples, so the memory of a whole month may have come here. */
	if (samples_bytes(&lookup->head) > LOOKUP_KEPT_BYTES)
		samples_release(&lookup->head);
	return err;
}

/* The next bands in the one segment that there is, all of one group, as far as there is surely room
 * for what they have: `*at` is the first handle after these. */
static int range_group(struct reading *r, const struct store_range *range, size_t *at)
{
	struct lookup *lookups = r->scratch->lookups;
	size_t count = range_begin_lookups(r, range, *at);
	int64_t start_ms = reading_visible_from(r, r->segments->sheet.retention, range->start_ms);
	bool given = true;
	int err = 0;
	if (count && start_ms < range->end_ms)
		err = reading_lookup(r, r->segments, lookups, count, start_ms);
	for (size_t i = 0; i < count && given && !err; i++) {
		err = range_read_lookup(r, range, &lookups[i], start_ms, *at, &given);
		if (!err && given)
			*at = lookups[i].index;
		/* Who asks for the next ones finds out what is the matter. */
		if (reading_is_old(r) || reading_check_time(r))
			break;
	}
	return err;
}

/* All there is of the next series is wanted, all its fields, from the beginning. */
static bool is_fresh(const struct store_range *range, const struct range_place *place)
{
	unsigned all = (1u << schema[range->table].field_count) - 1;
	return !range->backward && !range->limit && !place->given &&
	       place->from_ms == range->start_ms && (!range->fields || range->fields == all);
}

/* As many of the next series as can be read together: `*at` is the first handle after them. */
static int range_fresh(struct reading *r, const struct store_range *range, size_t segment_count,
		       size_t *at)
{
	if (segment_count == 1)
		return range_group(r, range, at);
	size_t n = side_by_side(r, range, *at);
	bool read = false;
	int err = n > 1 ? range_band(r, range, segment_count, *at, n, &read) : 0;
	*at += read ? n : 0;
	return err;
}

int reading_range(struct reading *r, struct store_request *request)
{
	struct store_range *range = &request->range;
	struct range_place place;
	size_t segment_count;
	int err = place_get(&request->token, range, &place);
	request->more = false;
	range->points =
		arena_zalloc(&r->read->arena, (range->handle_count + 1) * sizeof(*range->points));
	if (!err && !range->points)
		err = ERR_LIMIT;
	if (!err)
		err = reading_list_segments(r, range->table, range->period_ms, range->start_ms,
					    range->end_ms, &segment_count);
	bool stopped = false, any = false;
	while (!err && !stopped && place.handle < range->handle_count) {
		err = reading_check_time(r);
		if (!err && r->budget == 0) {
			stopped = true;
			break;
		}
		struct store_points *points = &range->points[place.handle];
		size_t at = place.handle;
		if (!err && is_fresh(range, &place))
			err = range_fresh(r, range, segment_count, &at);
		if (at > place.handle && !err) {
			place.handle = (uint32_t)at;
			any = true;
			continue;
		}
		if (!err)
			err = range_series(r, range, segment_count, &place, points, &stopped);
		any = any || points->count;
		if ((err == ERR_LIMIT || err == ERR_TIMEOUT) && any) {
			*points = (struct store_points){0};
			stopped = true;
			err = 0;
		}
		if (!err && !stopped) {
			place.handle++;
			place.given = 0;
			place.from_ms = range->backward ? range->end_ms : range->start_ms;
		}
	}
	request->more = stopped;
	if (stopped)
		place_put(&request->token, &place);
	return err;
}
