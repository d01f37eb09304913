#include "retention/usage.h"

#include "base/hash.h"
#include "retention/late.h"

enum {
	GROUP_MAX = 512, /* series at once */
	READ_MAX_BYTES = 16 << 20,
	NAMES_MAX_BYTES = 16 << 20,
	TABLE_SLOTS = 4 * RETENTION_USAGE_LINES_MAX,
};

struct usage_surveying {
	size_t lines_max;
	struct usage_walk *shares;
	uint32_t *table; /* by hash of tenant, metric and place: one more than the line's place */
	struct retention_usage *survey;
};

static int usage_survey_line_compare(const void *a, const void *b)
{
	const struct retention_line *x = a, *y = b;
	int order = slice_compare(x->tenant, y->tenant);
	order = order ? order : slice_compare(x->metric, y->metric);
	return order ? order
		     : (x->granularity > y->granularity) - (x->granularity < y->granularity);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static int usage_survey_granularity(size_t place)
{
	return (int)place - 1;
}

static void usage_survey_set_rule(struct usage_surveying *s, struct retention_line *line)
{
	struct usage_walk_kept kept = usage_walk_kept(s->shares, line->tenant, line->metric,
						      (size_t)(line->granularity + 1));
	line->rule = kept.rule;
	line->keep_ms = kept.keep_ms;
	line->retention = kept.retention;
}

/* NULL: there are too many. */
static struct retention_line *
usage_survey_new_line(struct usage_surveying *s, const struct store_series *series, int granularity)
{
	if (s->survey->line_count == s->lines_max)
		return NULL;
	struct retention_line *line = &s->survey->lines[s->survey->line_count];
	*line = (struct retention_line){.tenant = arena_copy(&s->survey->names, series->tenant),
					.metric = arena_copy(&s->survey->names, series->metric),
					.granularity = granularity};
	if (!line->tenant.data || !line->metric.data)
		return NULL;
	usage_survey_set_rule(s, line);
	s->survey->line_count++;
	return line;
}

/* The line of a metric; *other, where there is no room for it, is set up for the sums. */
static struct retention_line *usage_survey_line(struct usage_surveying *s,
						const struct store_series *series, int granularity,
						struct retention_line *other)
{
	uint64_t seed = hash64(series->tenant.data, series->tenant.len, (uint64_t)granularity + 2);
	uint64_t hash = hash64(series->metric.data, series->metric.len, seed);
	for (size_t at = hash % TABLE_SLOTS;; at = (at + 1) % TABLE_SLOTS) {
		uint32_t known = s->table[at];
		struct retention_line *line = known ? &s->survey->lines[known - 1] : NULL;
		if (line && line->granularity == granularity &&
		    slice_equal(line->tenant, series->tenant) &&
		    slice_equal(line->metric, series->metric))
			return line;
		if (line)
			continue;
		line = usage_survey_new_line(s, series, granularity);
		if (line) {
			s->table[at] = (uint32_t)s->survey->line_count;
			return line;
		}
		break;
	}
	s->survey->cut = true;
	*other = (struct retention_line){
		.tenant = series->tenant, .metric = series->metric, .granularity = granularity};
	usage_survey_set_rule(s, other);
	return other;
}

static void usage_survey_add(struct retention_amount *amount, const struct store_share *share,
			     int granularity)
{
	int64_t oldest_ms = share->oldest_ms;
	if (granularity != RETENTION_RAW)
		oldest_ms = late_bucket_ms(oldest_ms);
	if (!amount->series || oldest_ms < amount->oldest_ms)
		amount->oldest_ms = oldest_ms;
	amount->series++;
	amount->samples += share->samples;
	amount->bytes += share->bytes;
}

/* ---- Counting -------------------------------------------------------------------------------- */

static void usage_survey_add_series(void *owner, UNUSED size_t i, const struct store_series *series,
				    size_t place, const struct store_share *shares)
{
	struct usage_surveying *s = owner;
	struct retention_line other, *line = NULL;
	for (size_t c = 0; c < RETENTION_CLASSES; c++) {
		if (!shares[c].samples)
			continue;
		line = line ? line
			    : usage_survey_line(s, series, usage_survey_granularity(place), &other);
		usage_survey_add(&line->amounts[c], &shares[c], usage_survey_granularity(place));
		if (c != (size_t)line->retention)
			usage_survey_add(&s->survey->moves[place][c][line->retention], &shares[c],
					 usage_survey_granularity(place));
	}
}

int retention_usage(const struct retention_usage_options *options, struct retention_usage *survey)
{
	struct usage_surveying s = {.lines_max = options->lines_max, .survey = survey};
	struct series_group group;
	ASSERT(options->lines_max <= RETENTION_USAGE_LINES_MAX);
	*survey = (struct retention_usage){
		.lines = mem_alloc_array(options->lines_max + 1, sizeof(*survey->lines))};
	arena_init(&survey->names, NAMES_MAX_BYTES);
	s.table = mem_zalloc(TABLE_SLOTS * sizeof(*s.table));
	s.shares = usage_walk_new(&(struct usage_walk_options){.scope = options->scope,
							       .group_max = GROUP_MAX,
							       .read_max_bytes = READ_MAX_BYTES,
							       .take = usage_survey_add_series,
							       .owner = &s});
	int err = usage_walk_next(s.shares, &group);
	while (!err && group.count) {
		survey->series += group.count;
		err = usage_walk_next(s.shares, &group);
	}
	if (survey->line_count)
		qsort(survey->lines, survey->line_count, sizeof(*survey->lines),
		      usage_survey_line_compare);
	usage_walk_free(s.shares);
	mem_free(s.table);
	return err;
}

void retention_usage_release(struct retention_usage *survey)
{
	arena_release(&survey->names);
	mem_free(survey->lines);
}

bool retention_usage_moves(const struct retention_usage *survey)
{
	for (size_t place = 0; place < ARRAY_LEN(survey->moves); place++) {
		for (size_t from = 0; from < RETENTION_CLASSES; from++) {
			for (size_t to = 0; to < RETENTION_CLASSES; to++) {
				if (survey->moves[place][from][to].series)
					return true;
			}
		}
	}
	return false;
}
