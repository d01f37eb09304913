/* Roll-ups' surroundings for tests: the doors of ingest_harness.h with marks, one job or several on
 * the same store, a virtual clock; and what is rolled up, as text. */
#ifndef TESTS_UNIT_ROLLUP_HARNESS_H
#define TESTS_UNIT_ROLLUP_HARNESS_H

#include "ingest_harness.h"

#include "ingest/line_feed.h"
#include "lease/job_claim.h"
#include "rollup/job.h"
#include "retention/late.h"
#include "rollup/aggregate_row.h"

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

/* 2020-08-24T10:00:00Z, and later that day. */
#define TEN_MS   INT64_C(1598263200000)
#define AT(m, s) (TEN_MS + (m)*MINUTE_MS + (s)*INT64_C(1000))

static const char *const quarter_and_hour[] = {"15m:14d", "1h:365d"};

struct rolled {
	struct harness h;
	struct rollup_site site; /* of a job; its clock is h.clock unless a test says otherwise */
	struct partitions own;
	struct rollup_job *job;
};

static inline struct rollup_job *rolled_job(struct rolled *r)
{
	return rollup_job_new(&r->site, NULL);
}

/* Late points are kept where raw ones are not kept for ever. `rules` may be NULL. */
static inline void rolled_begin(struct rolled *r, const char *const *granularities, size_t count,
				int64_t raw_retention_ms, const struct retention_rules *rules)
{
	static const char *const counters[] = {"_total"};
	struct errbuf e = {""};
	*r = (struct rolled){.site = {.quiet_ms = 5 * MINUTE_MS,
				      .retention = rules ? *rules : retention_for_ever,
				      .clock = &r->h.clock.clock,
				      .counter_suffixes = counters,
				      .counter_suffix_count = 1}};
	struct rollup_site *site = &r->site;
	site->retention.levels_ms[0] = raw_retention_ms;
	if (raw_retention_ms)
		site->retention.late.after_ms = late_samples_after_ms(
			retention_shortest_raw_ms(&site->retention), HOUR_MS, site->quiet_ms);
	assert_int_equal(
		granularities_parse(granularities, count, HOUR_MS, &site->granularities, &e), 0);
	site->retention.late.kept_ms = retention_longest_ms(&site->retention, &site->granularities);
	assert_int_equal(partitions_parse(SLICE("0-7"), 8, &r->own, &e), 0);
	harness_open(&r->h, &(struct ingest_options){
				    .partitions = 8,
				    .rollup_slot_ms = HOUR_MS,
				    .rollup_quiet_ms = site->quiet_ms,
				    .retention = {.rules = &site->retention,
						  .late_keep = raw_retention_ms != 0,
						  .late_ms = site->retention.late.kept_ms},
				    .granularities = &site->granularities});
	site->store = r->h.store;
	site->marks = r->h.marks;
	site->session =
		lease_session_new(&(struct lease_session_options){.store = site->store,
								  .clock = site->clock,
								  .holder = SLICE("h"),
								  .name = SLICE("h"),
								  .lease_ms = 2 * MINUTE_MS});
	site->claims = job_claims_new(site->session);
	r->job = rolled_job(r);
}

/* Granularities such as {"15m", "1h"}, slots of an hour, a quiet time of five minutes. */
static inline void rolled_open(struct rolled *r, const char *const *granularities, size_t count)
{
	rolled_begin(r, granularities, count, 0, NULL);
}

static inline void rolled_close(struct rolled *r)
{
	rollup_job_free(r->job);
	job_claims_free(r->site.claims);
	lease_session_free(r->site.session);
	harness_close(&r->h);
}

static inline int64_t rolled_now_ms(struct rolled *r)
{
	return clock_wall_ms(&r->h.clock.clock);
}

static inline void rolled_set_ms(struct rolled *r, int64_t wall_ms)
{
	clock_virtual_advance(&r->h.clock, (wall_ms - rolled_now_ms(r)) * 1000);
}

/* Lines with times in ms, of which some may be refused; the request is over, and to be freed. */
static inline struct ingest_request *rolled_send(struct rolled *r, const char *lines)
{
	struct ingest_request *request = harness_request(&r->h);
	struct line_feed feed;
	line_feed_init(&feed, request, (struct slice){NULL, 0}, LINE_MS);
	line_feed_piece(&feed, slice_of(lines));
	line_feed_end(&feed);
	line_feed_release(&feed);
	harness_finish(&r->h, request);
	return request;
}

static inline void rolled_write(struct rolled *r, const char *lines)
{
	struct ingest_request *request = rolled_send(r, lines);
	assert_int_equal(ingest_status(request), 204);
	ingest_request_free(request);
}

/* One sample, its value as a line has it. */
static inline void rolled_put(struct rolled *r, const char *series, const char *value,
			      int64_t ts_ms)
{
	char line[256];
	snprintf(line, sizeof(line), "%s value=%s %lld\n", series, value, (long long)ts_ms);
	rolled_write(r, line);
}

static inline struct rollup_pass rolled_pass_of(struct rolled *r, struct rollup_job *job)
{
	harness_pump(&r->h);
	return rollup_job_run(job, &r->h.queue, &r->own, rolled_now_ms(r), INT64_MAX);
}

static inline struct rollup_pass rolled_pass(struct rolled *r)
{
	return rolled_pass_of(r, r->job);
}

static inline struct rollup_pass rolled_pass_at(struct rolled *r, int64_t wall_ms)
{
	rolled_set_ms(r, wall_ms);
	return rolled_pass(r);
}

static inline uint64_t rolled_handle(struct rolled *r, const char *series_set)
{
	struct store_read *read = store_read_new(r->h.store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	struct slice metric;
	struct tags tags;
	assert_int_equal(series_set_decode(series_set_split(slice_of(series_set)), &read->arena,
					   &metric, &tags),
			 0);
	request->series_open = (struct store_series_open){.tenant = SLICE("default"),
							  .tags = tags,
							  .metrics = &metric,
							  .count = 1,
							  .find_only = true};
	harness_read(&r->h, read);
	uint64_t handle = request->series_open.handles[0];
	store_read_free(read);
	return handle;
}

/* How many there are of a series in the table of raw samples, or of late ones. */
static inline size_t rolled_samples(struct rolled *r, enum table table, const char *series_set)
{
	struct store_read *read = store_read_new(r->h.store, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	uint64_t handle = rolled_handle(r, series_set);
	request->range = (struct store_range){.table = table,
					      .handles = &handle,
					      .handle_count = 1,
					      .start_ms = STORE_TS_MIN,
					      .end_ms = STORE_TS_MAX};
	harness_read(&r->h, read);
	size_t count = request->range.points[0].count;
	store_read_free(read);
	return count;
}

/* `minute:field=value,...` of each row of one granularity, the minute since `since_ms`; behind the
 * minute of one of late points stands a plus. */
static inline void rolled_expect(struct rolled *r, const char *series_set, int64_t width_ms,
				 int64_t since_ms, const char *want)
{
	static const char *const names[ROLLUP_FIELDS] = {"min", "max",      "sum",   "count",
							 "avg", "increase", "first", "last"};
	struct store_read *read = store_read_new(r->h.store, 16 << 20);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	struct buf out;
	uint64_t handle = rolled_handle(r, series_set);
	request->range = (struct store_range){.table = TABLE_DATA_DOWNSAMPLED,
					      .period_ms = width_ms,
					      .handles = &handle,
					      .handle_count = 1,
					      .start_ms = STORE_TS_MIN,
					      .end_ms = STORE_TS_MAX};
	buf_init(&out, 1 << 20);
	harness_read(&r->h, read);
	const struct store_points *points = &request->range.points[0];
	for (size_t i = 0; i < points->count; i++) {
		char separator = ':';
		buf_printf(&out, "%s%lld%s", i ? " " : "",
			   (long long)(points->ts_ms[i] - since_ms) / MINUTE_MS,
			   late_row_is(points->ts_ms[i]) ? "+" : "");
		for (size_t f = 0; f < ROLLUP_FIELDS; f++) {
			char text[NUMBER_PRINT_MAX_BYTES + 1];
			struct value value = {points->bits[f][i],
					      (enum value_type)points->types[f][i]};
			if (value.type == VALUE_NONE)
				continue;
			text[number_print(text, value)] = 0;
			buf_printf(&out, "%c%s=%s", separator, names[f], text);
			separator = ',';
		}
	}
	buf_append_char(&out, 0);
	assert_string_equal(out.data, want);
	buf_release(&out);
	store_read_free(read);
}

#endif
