#include "rollup/survey.h"

#include "base/hash.h"
#include "rollup/late.h"

enum {
	GROUP_MAX = 512, /* series at once */
	READ_MAX_BYTES = 16 << 20,
	NAMES_MAX_BYTES = 16 << 20,
	TABLE_SLOTS = 4 * RETENTION_SURVEY_LINES_MAX,
};

struct retention_survey {
	struct retention_survey_options options; /* but for tenant and metric, which the walk has */
	struct shares *shares;
	struct arena names;
	uint32_t *table; /* by hash of tenant, metric and place: one more than the line's place */
	struct retention_line *lines;
	struct retention_survey_result result;
};

static void add_series(void *owner, size_t i, const struct store_series *series, size_t place,
		       const struct store_share *shares);
static void on_counted(void *owner);
static void end(void *owner, int err);

/* ---- Life ------------------------------------------------------------------------------------ */

struct retention_survey *retention_survey_start(const struct retention_survey_options *options)
{
	struct retention_survey *s = mem_zalloc(sizeof(*s));
	ASSERT(options->lines_max <= RETENTION_SURVEY_LINES_MAX);
	s->options = *options;
	s->shares = shares_start(&(struct shares_options){.scope = options->scope,
							  .group_max = GROUP_MAX,
							  .read_max_bytes = READ_MAX_BYTES,
							  .take = add_series,
							  .counted = on_counted,
							  .done = end,
							  .owner = s});
	arena_init(&s->names, NAMES_MAX_BYTES);
	s->table = mem_zalloc(TABLE_SLOTS * sizeof(*s->table));
	s->lines = mem_alloc_array(options->lines_max + 1, sizeof(*s->lines));
	s->result.lines = s->lines;
	return s;
}

void retention_survey_free(struct retention_survey *s)
{
	shares_free(s->shares);
	arena_release(&s->names);
	mem_free(s->table);
	mem_free(s->lines);
	mem_free(s);
}

void retention_survey_cancel(struct retention_survey *s)
{
	series_walk_cancel(shares_walk(s->shares));
}

const struct retention_survey_result *retention_survey_result(const struct retention_survey *s)
{
	return &s->result;
}

static int by_name(const void *a, const void *b)
{
	const struct retention_line *x = a, *y = b;
	int order = slice_compare(x->tenant, y->tenant);
	order = order ? order : slice_compare(x->metric, y->metric);
	return order ? order : (x->grain > y->grain) - (x->grain < y->grain);
}

static void end(void *owner, int err)
{
	struct retention_survey *s = owner;
	if (s->result.line_count)
		qsort(s->lines, s->result.line_count, sizeof(*s->lines), by_name);
	s->options.done(s->options.owner, err);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static int grain_of(size_t place)
{
	return (int)place - 1;
}

static bool is_of(const struct retention_line *line, const struct store_series *series, int grain)
{
	return line->grain == grain && slice_equal(line->tenant, series->tenant) &&
	       slice_equal(line->metric, series->metric);
}

static void set_rule(struct retention_survey *s, struct retention_line *line)
{
	struct shares_kept kept =
		shares_kept(s->shares, line->tenant, line->metric, (size_t)(line->grain + 1));
	line->rule = kept.rule;
	line->keep_ms = kept.keep_ms;
	line->retention = kept.retention;
}

/* NULL: there are too many. */
static struct retention_line *new_line(struct retention_survey *s,
				       const struct store_series *series, int grain)
{
	if (s->result.line_count == s->options.lines_max)
		return NULL;
	struct retention_line *line = &s->lines[s->result.line_count];
	*line = (struct retention_line){.tenant = arena_copy(&s->names, series->tenant),
					.metric = arena_copy(&s->names, series->metric),
					.grain = grain};
	if (!line->tenant.data || !line->metric.data)
		return NULL;
	set_rule(s, line);
	s->result.line_count++;
	return line;
}

/* The line of a metric; *other, where there is no room for it, is set up for the sums. */
static struct retention_line *line_of(struct retention_survey *s, const struct store_series *series,
				      int grain, struct retention_line *other)
{
	uint64_t seed = hash64(series->tenant.data, series->tenant.len, (uint64_t)grain + 2);
	uint64_t hash = hash64(series->metric.data, series->metric.len, seed);
	for (size_t at = hash % TABLE_SLOTS;; at = (at + 1) % TABLE_SLOTS) {
		uint32_t known = s->table[at];
		if (known && is_of(&s->lines[known - 1], series, grain))
			return &s->lines[known - 1];
		if (known)
			continue;
		struct retention_line *line = new_line(s, series, grain);
		if (line) {
			s->table[at] = (uint32_t)s->result.line_count;
			return line;
		}
		break;
	}
	s->result.cut = true;
	*other = (struct retention_line){
		.tenant = series->tenant, .metric = series->metric, .grain = grain};
	set_rule(s, other);
	return other;
}

static void add(struct retention_amount *amount, const struct store_share *share, int grain)
{
	int64_t oldest_ms = share->oldest_ms;
	if (grain != RETENTION_RAW)
		oldest_ms = rollup_bucket_ms(oldest_ms);
	if (!amount->series || oldest_ms < amount->oldest_ms)
		amount->oldest_ms = oldest_ms;
	amount->series++;
	amount->samples += share->samples;
	amount->bytes += share->bytes;
}

/* ---- Counting -------------------------------------------------------------------------------- */

static void add_series(void *owner, UNUSED size_t i, const struct store_series *series,
		       size_t place, const struct store_share *shares)
{
	struct retention_survey *s = owner;
	struct retention_line other, *line = NULL;
	for (size_t c = 0; c < RETENTION_CLASSES; c++) {
		if (!shares[c].samples)
			continue;
		line = line ? line : line_of(s, series, grain_of(place), &other);
		add(&line->amounts[c], &shares[c], grain_of(place));
		if (c != (size_t)line->retention)
			add(&s->result.moves[place][c][line->retention], &shares[c],
			    grain_of(place));
	}
}

static void on_counted(void *owner)
{
	struct retention_survey *s = owner;
	struct series_walk *walk = shares_walk(s->shares);
	s->result.series += series_walk_group(walk).count;
	series_walk_next(walk);
}
