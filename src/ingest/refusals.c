/* Checks and refusals of single points: times, values, tenants. */
#include "ingest/raw_retention.h"

#include <math.h>

#include "base/stats.h"
#include "wire/timetext.h"

/* ---- Refusals ------------------------------------------------------------------------------- */

static const enum stat_id reason_stats[INGEST_REASONS] = {
	[INGEST_SYNTAX] = STAT_ingest_refused_syntax,
	[INGEST_TOO_LONG] = STAT_ingest_refused_too_long,
	[INGEST_NAME] = STAT_ingest_refused_name,
	[INGEST_TIME] = STAT_ingest_refused_time,
	[INGEST_TOO_OLD] = STAT_ingest_refused_too_old,
	[INGEST_TOO_NEW] = STAT_ingest_refused_too_new,
	[INGEST_NOT_FINITE] = STAT_ingest_refused_not_finite,
	[INGEST_NOT_NUMBER] = STAT_ingest_refused_not_number,
	[INGEST_OUT_OF_RANGE] = STAT_ingest_refused_out_of_range,
	[INGEST_LIMIT] = STAT_ingest_refused_limit,
	[INGEST_STORE] = STAT_ingest_refused_store,
};

const char *ingest_reason_text(enum ingest_reason reason)
{
	static const char *const texts[INGEST_REASONS] = {
		[INGEST_SYNTAX] = "syntax",
		[INGEST_TOO_LONG] = "too_long",
		[INGEST_NAME] = "name",
		[INGEST_TIME] = "time",
		[INGEST_TOO_OLD] = "too_old",
		[INGEST_TOO_NEW] = "too_new",
		[INGEST_NOT_FINITE] = "not_finite",
		[INGEST_NOT_NUMBER] = "not_number",
		[INGEST_OUT_OF_RANGE] = "out_of_range",
		[INGEST_LIMIT] = "limit",
		[INGEST_STORE] = "store",
	};
	return texts[reason];
}

static struct slice ingest_kept_source(struct ingest_request *r, struct slice source)
{
	if (!r->door.keep_source || !source.len)
		return (struct slice){NULL, 0};
	if (source.len > INGEST_SOURCE_MAX_BYTES)
		source.len = INGEST_SOURCE_MAX_BYTES;
	return arena_copy(&r->arena, source);
}

void ingest_refuse(struct ingest_request *r, struct ingest_place place, enum ingest_reason reason,
		   struct slice source, const char *fmt, ...)
{
	stat_add(reason_stats[reason], 1);
	r->refused++;
	if (r->error_count == INGEST_ERRORS_MAX)
		return;
	char text[INGEST_SENTENCE_MAX_BYTES];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	struct slice sentence = arena_copy(&r->arena, slice_of(text));
	r->errors[r->error_count++] = (struct ingest_error){
		.place = place,
		.reason = reason,
		.sentence = sentence.data ? sentence.data : "refused",
		.source = ingest_kept_source(r, source),
	};
}

/* A time as people read it, for a sentence. */
struct ingest_date {
	char text[TIME_PRINT_MAX_BYTES + 1];
};

static struct ingest_date ingest_date_of(int64_t ms)
{
	struct ingest_date date;
	date.text[time_print(date.text, ms)] = 0;
	return date;
}

/* It is to be kept for longer now, but what is of before leaves as it would have. */
static void ingest_refuse_raised(struct request *q, int64_t kept_ms, int64_t ts_ms,
				 struct ingest_place place, struct slice source)
{
	const struct retention_lengthened *raise = &q->r.ingest->options.retention.rules->raise;
	char now[32] = "ever";
	if (kept_ms)
		snprintf(now, sizeof(now), "%lld s", (long long)kept_ms / 1000);
	ingest_refuse(&q->r, place, INGEST_TOO_OLD, source,
		      "the time %s is older than the retention of %lld s that held before; "
		      "samples from %s on are kept for %s",
		      ingest_date_of(ts_ms).text, (long long)raise->kept_ms / 1000,
		      ingest_date_of(raise->until_ms).text, now);
}

static void ingest_refuse_old(struct request *q, uint8_t level, int64_t ts_ms,
			      struct ingest_place place, struct slice source)
{
	const struct ingest_options *options = &q->r.ingest->options;
	int64_t oldest_ms = q->level_oldest_ms[level];
	int64_t retention_ms = raw_retention_whole_ms(q->r.ingest, level, q->age_ms);
	int64_t kept_ms = options->retention.rules->levels_ms[level];
	struct ingest_date date = ingest_date_of(ts_ms);
	if (oldest_ms == 0)
		ingest_refuse(&q->r, place, INGEST_TOO_OLD, source, "the time %s is before 1970",
			      date.text);
	else if (options->retention.late_keep && oldest_ms < q->level_open_ms[level])
		ingest_refuse(&q->r, place, INGEST_TOO_OLD, source,
			      "the time %s is too old to be kept: what is late goes after "
			      "%lld s, samples before %s are refused",
			      date.text, (long long)options->retention.late_ms / 1000,
			      ingest_date_of(oldest_ms).text);
	else if (ts_ms < q->age_ms - retention_ms && retention_ms != kept_ms)
		ingest_refuse_raised(q, kept_ms, ts_ms, place, source);
	else if (ts_ms < q->age_ms - retention_ms)
		ingest_refuse(&q->r, place, INGEST_TOO_OLD, source,
			      "the time %s is older than the retention of %lld s", date.text,
			      (long long)retention_ms / 1000);
	else
		ingest_refuse(&q->r, place, INGEST_TOO_OLD, source,
			      "the time %s is too old to be rolled up: samples of its slot go "
			      "after the retention of %lld s, those before %s are refused",
			      date.text, (long long)retention_ms / 1000,
			      ingest_date_of(oldest_ms).text);
}

static void ingest_refuse_unseen(struct request *q, int64_t ts_ms, struct ingest_place place,
				 struct slice source)
{
	ingest_refuse(&q->r, place, INGEST_TOO_OLD, source,
		      "the time %s is too old to be kept: what is late of its series goes "
		      "after %lld s, as all of its roll-ups do",
		      ingest_date_of(ts_ms).text, (long long)q->unseen_ms / 1000);
}

void request_refuse_time(struct request *q, uint8_t level, int64_t ts_ms, struct ingest_place place,
			 struct slice source)
{
	if (level == LEVEL_UNSEEN)
		ingest_refuse_unseen(q, ts_ms, place, source);
	else if (ts_ms > q->newest_ms)
		ingest_refuse(&q->r, place, INGEST_TOO_NEW, source,
			      "the time %s is more than %lld s ahead of now",
			      ingest_date_of(ts_ms).text,
			      (long long)q->r.ingest->options.ahead_ms / 1000);
	else
		ingest_refuse_old(q, level, ts_ms, place, source);
}

bool request_time(struct request *q, int64_t ts_ms, struct ingest_place place, struct slice source)
{
	if (LIKELY(ts_ms >= q->oldest_ms && ts_ms <= q->newest_ms))
		return true;
	request_refuse_time(q, q->r.ingest->longest, ts_ms, place, source);
	return false;
}

/* ---- Tenants -------------------------------------------------------------------------------- */

static bool ingest_has_key(const struct tag *tags, size_t count, struct slice key)
{
	for (size_t i = 0; i < count; i++) {
		if (slice_equal(tags[i].key, key))
			return true;
	}
	return false;
}

int ingest_tenant(const struct ingest *ingest, struct slice header, struct tag *tags,
		  size_t *tag_count, struct slice *tenant, struct errbuf *e)
{
	struct slice key = ingest->options.tenant_tag;
	*tenant = header;
	for (size_t i = 0; !header.data && i < *tag_count; i++) {
		if (!slice_equal(tags[i].key, key))
			continue;
		*tenant = tags[i].value;
		--*tag_count;
		memmove(&tags[i], &tags[i + 1], (*tag_count - i) * sizeof(*tags));
		break;
	}
	if (!tenant->data)
		*tenant = SLICE("default");
	if (!tenant_valid(*tenant))
		return errbuf_set(e, ERR_INVALID,
				  "tenant \"" SHOWN "\" is not 1 to %d of A-Z a-z 0-9 _ . and -",
				  SHOWN_OF(*tenant), TENANT_MAX_BYTES);
	if (!header.data && ingest_has_key(tags, *tag_count, key))
		return errbuf_set(e, ERR_INVALID, "tag \"" SHOWN "\" stands twice", SHOWN_OF(key));
	return 0;
}

/* ---- Points --------------------------------------------------------------------------------- */

/* Independent of the order of tags, which are not sorted yet; of metrics the order counts. */
static struct hash128 ingest_points_key(const struct ingest *ingest,
					const struct ingest_points *points,
					const struct slice *metrics, size_t count)
{
	struct hash128 key = hash128(points->tenant.data, points->tenant.len, ingest->seed);
	for (size_t i = 0; i < points->tag_count; i++) {
		const struct tag *tag = &points->tags[i];
		uint64_t seed = hash64(tag->key.data, tag->key.len, ingest->seed);
		struct hash128 each = hash128(tag->value.data, tag->value.len, seed);
		key.low += each.low;
		key.high += each.high;
	}
	for (size_t i = 0; i < count; i++)
		key = hash128(metrics[i].data, metrics[i].len, key.low ^ key.high);
	return key;
}

/* Leaves out what is not finite, with a refusal, and NONE, without. */
static size_t ingest_accept_values(struct request *q, const struct ingest_points *points,
				   struct slice *metrics, struct value *values)
{
	size_t n = 0;
	for (size_t i = 0; i < points->count; i++) {
		struct value value = points->values[i];
		if (value.type == VALUE_NONE)
			continue;
		if (value.type == VALUE_F64 && !isfinite(value_as_f64(value))) {
			ingest_refuse(&q->r, points->place, INGEST_NOT_FINITE, points->source,
				      "the value is not a finite number");
			continue;
		}
		metrics[n] = points->metrics[i];
		values[n++] = value;
	}
	return n;
}

/* Where `name` is, if the points lie in a line and it does. */
static struct ingest_place ingest_name_place(const struct ingest_points *points, struct slice name)
{
	struct ingest_place place = points->place;
	if (points->line)
		place.column = (uint32_t)(name.data - points->line) + 1;
	return place;
}

static int ingest_check_names(const struct ingest_points *points, const struct slice *metrics,
			      size_t count, struct ingest_place *place, struct errbuf *e)
{
	size_t fault;
	for (size_t i = 0; i < count; i++) {
		*place = ingest_name_place(points, metrics[i]);
		int err = metric_check(metrics[i], e);
		if (err)
			return err;
	}
	*place = points->place;
	int err = tags_sort_and_find_fault(points->tags, points->tag_count, &fault, e);
	if (err && fault < points->tag_count)
		*place = ingest_name_place(points, points->tags[fault].key);
	return err;
}

static bool ingest_points_time(struct request *q, const struct ingest_points *points)
{
	struct ingest_place place = points->place;
	size_t refusals = points->one_by_one ? points->count : 1;
	if (LIKELY(request_time(q, points->ts_ms, place, points->source)))
		return true;
	while (--refusals) {
		place.index++;
		request_refuse_time(q, q->r.ingest->longest, points->ts_ms, place, points->source);
	}
	return false;
}

/* Some of their series may be kept for less time than others. */
static void ingest_add_closely(struct request *q, const struct ingest_points *points,
			       const struct cache_entry *entry, const uint64_t *handles,
			       const struct value *values)
{
	uint8_t levels[INGEST_POINTS_MAX];
	bool several = entry->level == CACHE_LEVELS;
	for (size_t i = 0; several && i < entry->count; i++)
		levels[i] = cache_level(entry, i);
	raw_retention_add(q, &(struct known){.level = entry->level,
					     .levels = several ? levels : NULL,
					     .ts_ms = points->ts_ms,
					     .handles = handles,
					     .values = values,
					     .count = entry->count,
					     .place = points->place,
					     .one_by_one = points->one_by_one,
					     .source = points->source});
}

void ingest_points(struct ingest_request *r, const struct ingest_points *points)
{
	struct request *q = request_of(r);
	struct slice metrics[INGEST_POINTS_MAX];
	struct value values[INGEST_POINTS_MAX];
	uint64_t handles[INGEST_POINTS_MAX];
	struct errbuf e;
	ASSERT(points->count >= 1 && points->count <= INGEST_POINTS_MAX);
	if (r->err || !ingest_points_time(q, points))
		return;
	size_t count = ingest_accept_values(q, points, metrics, values);
	if (!count)
		return;
	struct hash128 key = ingest_points_key(r->ingest, points, metrics, count);
	const struct cache_entry *entry = cache_find(r->ingest->cache, key);
	if (entry && entry->count == count && !entry->fields &&
	    request_touched(q, entry, points->ts_ms)) {
		cache_handles(entry, handles);
		if (LIKELY(points->ts_ms >= q->sure_ms && entry->level != CACHE_LEVELS))
			request_add(q, entry->level, points->ts_ms, handles, values, count);
		else
			ingest_add_closely(q, points, entry, handles, values);
		return;
	}
	struct ingest_place place;
	if (ingest_check_names(points, metrics, count, &place, &e)) {
		ingest_refuse(r, place, INGEST_NAME, points->source, "%s", e.text);
		return;
	}
	resolving_add_unknown(q, &(struct unknown){.key = key,
						   .tenant = points->tenant,
						   .tags = {points->tags, points->tag_count},
						   .metrics = metrics,
						   .metric_count = count,
						   .values = values,
						   .count = count,
						   .ts_ms = points->ts_ms,
						   .place = points->place,
						   .one_by_one = points->one_by_one,
						   .source = points->source});
}
