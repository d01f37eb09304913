/* What the catalog found for a query, before any of it is read: whether it is what was meant, may
 * be read together, and fits into an answer. */
#include "query/private.h"
#include "retention/retention.h"

uint64_t run_points_allowed(const struct query_run *run)
{
	uint64_t max = run->engine->options.points_max, spent = run->query.spec.points_spent;
	return spent < max ? max - spent : 0;
}

/* How many points the answer has at most, if it is made of windows. */
static int check_windows(struct query_run *run)
{
	const struct query_spec *spec = &run->query.spec;
	/* Stored buckets are as many points as there are rows: they are counted as they come,
	 * unless each gap is to be filled. */
	if (spec->fn == FN_NONE || spec->window_ms == 0 || (spec->stored && !spec->fill))
		return 0;
	size_t rows = run->rows ? run->row_count : run->find.count;
	uint64_t each = (uint64_t)(floor_div(run->end_ms - 1, spec->window_ms) -
				   floor_div(run->start_ms, spec->window_ms) + 1);
	uint64_t max = run_points_allowed(run);
	if (rows == 0 || each <= max / rows)
		return 0;
	return errbuf_set(&run->query.error, ERR_LIMIT,
			  "%zu series in %llu windows are more than the %llu points of an answer "
			  "(query.points_max); take a wider window, less time or fewer series",
			  rows, (unsigned long long)each, (unsigned long long)max);
}

static struct query_home found_home_of(const struct query_run *run, size_t series)
{
	const struct query_options *options = &run->engine->options;
	struct query_home home = {.table = TABLE_DATA_RAW};
	if (options->home_of)
		options->home_of(options->home_owner, run->find.tenant,
				 run->find.series[series].tags_text, &home);
	return home;
}

static int find_home(struct query_run *run)
{
	run->home = found_home_of(run, 0);
	for (size_t i = 1; i < run->find.count && run->engine->options.home_of; i++) {
		struct query_home home = found_home_of(run, i);
		if (home.table != run->home.table)
			return errbuf_set(&run->query.error, ERR_INVALID,
					  "some of these series are in %s, some in %s: name the "
					  "tags of those that are meant",
					  schema[run->home.table].name, schema[home.table].name);
		if (home.period_ms != run->home.period_ms)
			return errbuf_set(&run->query.error, ERR_INVALID,
					  "some of these series are polled every %lld s, some "
					  "every %lld s: name the tags of those that are meant",
					  (long long)(run->home.period_ms / 1000),
					  (long long)(home.period_ms / 1000));
	}
	return 0;
}

void found_filter(struct query_run *run)
{
	const struct query_spec *spec = &run->query.spec;
	size_t count = 0;
	for (size_t i = 0; i < run->find.count && !atomic_load(&run->filter_dropped); i++) {
		if (spec->filter(spec->filter_owner, run->find.series[i].tags_text))
			run->find.series[count++] = run->find.series[i];
	}
	run->find.count = count;
}

/* The find had a larger bound where some of what it finds is not meant. */
static int found_check_filtered(struct query_run *run)
{
	size_t max = run->engine->options.series_max;
	run->query.series_read = run->find.count;
	if (run->find.count <= max)
		return 0;
	return errbuf_set(&run->query.error, ERR_LIMIT,
			  "%zu series match; at most %zu are read at once (query.series_max)",
			  run->find.count, max);
}

/* The present slot has not ended, and is not rolled up. */
static int64_t rolled_before_ms(const struct query_run *run)
{
	const struct query_options *options = &run->engine->options;
	const struct query_spec *spec = &run->query.spec;
	if (!options->rolled_before_ms)
		return floor_to(run->now_ms, options->granularities->slot_ms);
	return options->rolled_before_ms(options->rollup_owner, spec->tenant, spec->metric,
					 run->asked);
}

/* All series of a query are of one metric, so rules say the same of each. */
static void found_set_retention(const struct query_run *run, struct plan_terms *terms,
				struct granularities *granularities)
{
	const struct retention_rules *rules = run->engine->options.retention;
	const struct query_spec *spec = &run->query.spec;
	struct retention_fit fit = retention_match(rules, spec->tenant, spec->metric);
	uint8_t level = retention_level(rules, fit.raw);
	terms->raw_whole_ms = retention_whole_ms(rules, level, terms->now_ms);
	terms->raw_retention_ms = rules->levels_ms[level];
	for (size_t g = 0; g < granularities->count; g++) {
		struct granularity *granularity = &granularities->list[g];
		granularity->retention_ms =
			retention_keep_ms(rules, fit.granularities[g], granularity->retention_ms);
	}
}

static void set_granularities(const struct query_run *run, struct plan_terms *terms,
			      const struct granularities *granularities)
{
	const struct query_options *options = &run->engine->options;
	terms->granularities = granularities;
	terms->rolled_before_ms = rolled_before_ms(run);
	struct slice metric = run->query.spec.metric;
	for (size_t g = 0; options->rolled_since_ms && g < granularities->count; g++)
		terms->rolled_since_ms[g] =
			options->rolled_since_ms(options->rollup_owner, metric, g);
	terms->counter = options->is_counter && options->is_counter(options->rollup_owner, metric);
}

/* For roll-ups that are read as they are stored. */
static void found_note_stored(struct query_run *run, const struct plan_terms *terms)
{
	struct query *query = &run->query;
	enum query_fn fn = terms->fn;
	bool gauges = fn == FN_MIN || fn == FN_MAX || fn == FN_AVG || fn == FN_COUNT;
	if (terms->counter && gauges) {
		query->note = NOTE_COUNTER;
	} else if (!terms->counter && fn == FN_INCREASE) {
		query->note = NOTE_NO_COUNTER;
	} else if (terms->rolled_before_ms < run->end_ms) {
		query->note = NOTE_NOT_ROLLED_UP;
		query->note_ms = larger_of(terms->rolled_before_ms, run->start_ms);
	}
}

static void make_plan(struct query_run *run)
{
	const struct query_options *options = &run->engine->options;
	struct query_spec *spec = &run->query.spec;
	struct granularities granularities = {0};
	struct plan_terms terms = {
		.start_ms = run->start_ms,
		.end_ms = run->end_ms,
		.now_ms = run->now_ms,
		.raw_retention_ms = options->retention->levels_ms[0],
		.late_quiet_ms = options->late_quiet_ms,
		.fn = spec->fn,
		.window_ms = spec->window_ms,
		.stored = spec->stored,
		.points = spec->points_wanted,
	};
	bool is_raw = !run->find.count || run->home.table == TABLE_DATA_RAW;
	if (is_raw && options->granularities)
		granularities = *options->granularities;
	if (is_raw)
		found_set_retention(run, &terms, &granularities);
	if (granularities.count)
		set_granularities(run, &terms, &granularities);
	if (spec->stored && granularities.count)
		found_note_stored(run, &terms);
	if (!run->find.metric_series)
		run->query.note = NOTE_NO_METRIC;
	plan_make(&terms, &run->plan);
	spec->fn = run->plan.fn;
	spec->window_ms = run->plan.window_ms;
}

/* Buckets are given as they are stored: nothing puts them together. */
static int check_buckets(struct query_run *run)
{
	char width[GRANULARITY_WIDTH_MAX_BYTES];
	if (!run->plan.buckets_over)
		return 0;
	int len = (int)granularity_width_print(width, run->plan.window_ms);
	return errbuf_set(&run->query.error, ERR_INVALID,
			  "points: the coarsest granularity that goes back as far, %.*s, has %llu "
			  "buckets in this time; fn instead of aggregator puts them together",
			  len, width, (unsigned long long)run->plan.buckets_over);
}

bool run_is_raw(const struct query_run *run)
{
	for (size_t i = 0; i < run->plan.count; i++) {
		if (run->plan.parts[i].granularity >= 0)
			return false;
	}
	return true;
}

int found_check(struct query_run *run)
{
	int err = run->query.spec.filter ? found_check_filtered(run) : 0;
	err = err || !run->find.count ? err : find_home(run);
	if (!err) {
		make_plan(run);
		/* How far back data goes is no reason to refuse a query. */
		if (run->plan.count && run->plan.parts[0].granularity == QUERY_PART_NONE)
			run->start_ms = run->plan.parts[0].to_ms;
		err = check_buckets(run);
	}
	if (!err && run->query.spec.agg)
		err = groups_make(run);
	else if (!err && run->query.spec.by_order)
		err = groups_order(run);
	return err ? err : check_windows(run);
}
