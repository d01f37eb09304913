#include "query/plan.h"

#include "marks/marks.h"

#define SECOND_MS INT64_C(1000)
#define MINUTE_MS (60 * SECOND_MS)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)

struct planning {
	const struct plan_terms *terms;
	struct query_plan *plan;
	size_t granularity_count;
};

uint64_t plan_windows(int64_t start_ms, int64_t end_ms, int64_t window_ms)
{
	if (start_ms >= end_ms)
		return 0;
	return (uint64_t)(floor_div(end_ms - 1, window_ms) - floor_div(start_ms, window_ms) + 1);
}

/* ---- What there is --------------------------------------------------------------------------- */

/* The first time of which something is kept. */
static int64_t kept_from(const struct plan_terms *terms, int64_t retention_ms)
{
	return retention_ms ? larger_of(terms->now_ms - retention_ms, -PLAN_TIME_MAX_MS)
			    : -PLAN_TIME_MAX_MS;
}

static int64_t granularity_from(const struct plan_terms *terms, size_t granularity)
{
	return kept_from(terms, terms->granularities->list[granularity].retention_ms);
}

static int64_t granularity_width(const struct plan_terms *terms, size_t granularity)
{
	return terms->granularities->list[granularity].width_ms;
}

/* Whether rows of roll-ups say what `fn` is of a window of them. */
static bool tells(bool counter, enum query_fn fn)
{
	switch (fn) {
	case FN_NONE:
	case FN_SUM:
	case FN_FIRST:
	case FN_LAST:
		return true;
	case FN_MIN:
	case FN_MAX:
	case FN_AVG:
	case FN_COUNT:
		return !counter;
	case FN_INCREASE:
	case FN_RATE:
		return counter;
	}
	return false;
}

static bool serves(const struct planning *p, size_t granularity)
{
	return p->plan->window_ms % granularity_width(p->terms, granularity) == 0;
}

/* Slots that are closed for roll-ups, and time whose raw data was kept for less time once: buckets
 * know more of them than raw data, where they serve and were made. */
static int64_t raw_from(const struct planning *p)
{
	const struct plan_terms *terms = p->terms;
	int64_t whole_ms = terms->raw_whole_ms ? terms->raw_whole_ms : terms->raw_retention_ms;
	int64_t from_ms = kept_from(terms, terms->raw_retention_ms);
	int64_t open_ms = kept_from(terms, whole_ms);
	if (terms->late_quiet_ms && whole_ms && p->granularity_count)
		open_ms = slot_open_from_ms(terms->now_ms, whole_ms, terms->granularities->slot_ms,
					    terms->late_quiet_ms);
	for (size_t i = 0; i < p->granularity_count; i++) {
		if (serves(p, i) && terms->rolled_since_ms[i] <= open_ms &&
		    granularity_from(terms, i) < open_ms)
			return larger_of(from_ms, open_ms);
	}
	return from_ms;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static void plan_add(struct planning *p, int64_t from_ms, int64_t to_ms, int granularity)
{
	struct query_plan *plan = p->plan;
	struct query_part *last = plan->count ? &plan->parts[plan->count - 1] : NULL;
	if (from_ms >= to_ms)
		return;
	if (last && last->granularity == granularity) {
		last->to_ms = to_ms;
		return;
	}
	/* Each granularity adds a part before and one after the coarser ones, and both may begin or
	 * end with one that nothing serves. */
	ASSERT(plan->count < QUERY_PARTS_MAX);
	plan->parts[plan->count++] = (struct query_part){from_ms, to_ms, granularity};
}

/* No raw data is left of this time, and no granularity has whole buckets of it: of buckets that
 * begin in it the finest are taken, unless they reach into the next part. */
static void add_cut(struct planning *p, int64_t from_ms, int64_t to_ms)
{
	for (size_t i = 0; i < p->granularity_count; i++) {
		int64_t kept_ms = larger_of(from_ms, granularity_from(p->terms, i));
		bool ends =
			to_ms == p->terms->end_ms || to_ms % granularity_width(p->terms, i) == 0;
		if (!serves(p, i) || !ends || kept_ms >= to_ms)
			continue;
		plan_add(p, from_ms, kept_ms, QUERY_PART_NONE);
		plan_add(p, kept_ms, to_ms, (int)i);
		return;
	}
	plan_add(p, from_ms, to_ms, QUERY_PART_NONE);
}

/* Raw data answers from here on: from where it is kept or, if buckets stand before it, from the
 * edge of the one that is cut. */
static int64_t raw_begin(const struct planning *p, int64_t from_ms, int64_t to_ms)
{
	int64_t raw_ms = smaller_of(larger_of(from_ms, raw_from(p)), to_ms);
	for (size_t i = 0; i < p->granularity_count && raw_ms > from_ms; i++) {
		if (serves(p, i) && granularity_from(p->terms, i) < raw_ms)
			return smaller_of(ceil_to(raw_ms, granularity_width(p->terms, i)), to_ms);
	}
	return raw_ms;
}

/* Parts of from <= time < to, by the granularities below `granularity_end` and raw data. */
static void plan_divide(struct planning *p, int64_t from_ms, int64_t to_ms, size_t granularity_end)
{
	const struct plan_terms *terms = p->terms;
	if (from_ms >= to_ms)
		return;
	if (granularity_end == 0) {
		int64_t raw_ms = raw_begin(p, from_ms, to_ms);
		add_cut(p, from_ms, raw_ms);
		plan_add(p, raw_ms, to_ms, QUERY_PART_RAW);
		return;
	}
	size_t granularity = granularity_end - 1;
	int64_t width_ms = granularity_width(terms, granularity);
	/* Where raw data is gone, what is not rolled up yet is no reason to do without the rest. */
	int64_t rolled_ms = larger_of(terms->rolled_before_ms, ceil_to(raw_from(p), width_ms));
	int64_t since_ms = terms->rolled_since_ms[granularity];
	if (since_ms <= raw_from(p))
		since_ms = from_ms;
	int64_t first_ms = ceil_to(
		larger_of(larger_of(from_ms, since_ms), granularity_from(terms, granularity)),
		width_ms);
	int64_t last_ms = floor_to(smaller_of(to_ms, rolled_ms), width_ms);
	if (!serves(p, granularity) || first_ms >= last_ms) {
		plan_divide(p, from_ms, to_ms, granularity);
		return;
	}
	plan_divide(p, from_ms, first_ms, granularity);
	plan_add(p, first_ms, last_ms, (int)granularity);
	plan_divide(p, last_ms, to_ms, granularity);
}

/* ---- Points as they are stored -----------------------------------------------------------------
 */

/* The finest granularity from `granularity` on that goes back beyond `ms`, or granularity_count. */
static size_t older_granularity(const struct planning *p, size_t granularity, int64_t ms)
{
	while (granularity < p->granularity_count && granularity_from(p->terms, granularity) >= ms)
		granularity++;
	return granularity;
}

/* From the newest to the oldest; then they are turned round. */
static void add_backward(struct planning *p)
{
	const struct plan_terms *terms = p->terms;
	struct query_plan *plan = p->plan;
	int64_t to_ms = terms->end_ms, kept_ms = raw_from(p);
	int source = QUERY_PART_RAW;
	for (size_t next = 0;; next++) {
		int64_t from_ms = larger_of(terms->start_ms, kept_ms);
		next = older_granularity(p, next, from_ms);
		bool goes_on = from_ms > terms->start_ms && next < p->granularity_count;
		if (goes_on)
			from_ms = ceil_to(from_ms, granularity_width(terms, next));
		if (from_ms < to_ms)
			plan->parts[plan->count++] = (struct query_part){from_ms, to_ms, source};
		to_ms = smaller_of(to_ms, from_ms);
		if (!goes_on)
			break;
		kept_ms = granularity_from(terms, next);
		source = (int)next;
	}
	if (terms->start_ms < to_ms)
		plan->parts[plan->count++] =
			(struct query_part){terms->start_ms, to_ms, QUERY_PART_NONE};
	for (size_t i = 0, j = plan->count; i + 1 < j; i++) {
		struct query_part part = plan->parts[i];
		plan->parts[i] = plan->parts[--j];
		plan->parts[j] = part;
	}
}

/* ---- Roll-ups as they are stored ---------------------------------------------------------------
 */

/* Buckets that begin between start and end, of those that are kept. */
static uint64_t buckets_of(const struct planning *p, size_t granularity)
{
	const struct plan_terms *terms = p->terms;
	int64_t from_ms = larger_of(terms->start_ms, granularity_from(terms, granularity));
	int64_t width_ms = granularity_width(terms, granularity);
	return plan_windows(ceil_to(from_ms, width_ms), terms->end_ms, width_ms);
}

/* The candidates are the granularities that go back to start, or else those that go back furthest.
 * Chooses the finest that has not too many buckets; if all have, the coarsest. */
static size_t choose_granularity(const struct planning *p)
{
	const struct plan_terms *terms = p->terms;
	size_t best = 0;
	for (size_t i = 1; i < p->granularity_count; i++) {
		int64_t from_ms = larger_of(granularity_from(terms, i), terms->start_ms);
		int64_t best_ms = larger_of(granularity_from(terms, best), terms->start_ms);
		bool many = terms->points && buckets_of(p, best) > terms->points;
		if (from_ms < best_ms || (from_ms == best_ms && many))
			best = i;
	}
	return best;
}

static void add_stored(struct planning *p)
{
	const struct plan_terms *terms = p->terms;
	size_t granularity = 0;
	while (granularity < p->granularity_count &&
	       granularity_width(terms, granularity) != terms->window_ms)
		granularity++;
	if (!terms->window_ms && p->granularity_count)
		granularity = choose_granularity(p);
	if (granularity == p->granularity_count) {
		plan_add(p, terms->start_ms, terms->end_ms, QUERY_PART_NONE);
		return;
	}
	int64_t kept_ms = larger_of(terms->start_ms, granularity_from(terms, granularity));
	kept_ms = smaller_of(kept_ms, terms->end_ms);
	p->plan->window_ms = granularity_width(terms, granularity);
	if (terms->points && buckets_of(p, granularity) > terms->points)
		p->plan->buckets_over = buckets_of(p, granularity);
	plan_add(p, terms->start_ms, kept_ms, QUERY_PART_NONE);
	plan_add(p, kept_ms, terms->end_ms, (int)granularity);
}

/* ---- Windows --------------------------------------------------------------------------------- */

/* Windows of this width, or multiples, can be answered over all of the time: where raw data does
 * not go back to start, by the finest granularity that does, or goes back the furthest. Wider
 * windows than the finest granularity had better be made of it. 0: any width. */
static int64_t unit_of(const struct planning *p, int64_t least_ms)
{
	const struct plan_terms *terms = p->terms;
	size_t best = 0;
	if (!p->granularity_count)
		return 0;
	if (raw_from(p) <= terms->start_ms)
		return least_ms >= granularity_width(terms, 0) ? granularity_width(terms, 0) : 0;
	for (size_t i = 0; i < p->granularity_count; i++) {
		if (granularity_from(terms, i) < granularity_from(terms, best))
			best = i;
		if (granularity_from(terms, best) <= terms->start_ms)
			break;
	}
	return granularity_width(terms, best);
}

/* The narrowest window of a length that people use, of which there are not more than `points`. */
static int64_t plan_choose_window(const struct planning *p)
{
	static const int64_t usual[] = {
		1 * SECOND_MS,  2 * SECOND_MS,  5 * SECOND_MS, 10 * SECOND_MS, 15 * SECOND_MS,
		30 * SECOND_MS, 1 * MINUTE_MS,  2 * MINUTE_MS, 5 * MINUTE_MS,  10 * MINUTE_MS,
		15 * MINUTE_MS, 30 * MINUTE_MS, 1 * HOUR_MS,   2 * HOUR_MS,    3 * HOUR_MS,
		4 * HOUR_MS,    6 * HOUR_MS,    8 * HOUR_MS,   12 * HOUR_MS,   1 * DAY_MS,
		2 * DAY_MS,     7 * DAY_MS,     14 * DAY_MS,   28 * DAY_MS};
	const struct plan_terms *terms = p->terms;
	int64_t unit_ms = 1;
	for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
		unit_ms = unit_of(p, usual[i]) ? unit_of(p, usual[i]) : 1;
		if (usual[i] % unit_ms == 0 &&
		    plan_windows(terms->start_ms, terms->end_ms, usual[i]) <= terms->points)
			return usual[i];
	}
	int64_t window_ms = ceil_to(usual[ARRAY_LEN(usual) - 1], unit_ms);
	while (plan_windows(terms->start_ms, terms->end_ms, window_ms) > terms->points &&
	       window_ms < PLAN_TIME_MAX_MS)
		window_ms *= 2;
	return window_ms;
}

/* ---- All of it ------------------------------------------------------------------------------- */

void plan_make(const struct plan_terms *terms, struct query_plan *plan)
{
	struct planning p = {.terms = terms, .plan = plan};
	*plan = (struct query_plan){.fn = terms->fn, .window_ms = terms->window_ms};
	if (terms->points && plan->fn == FN_NONE)
		plan->fn = terms->counter ? FN_LAST : FN_AVG;
	if (terms->granularities && (terms->stored || tells(terms->counter, plan->fn)))
		p.granularity_count = terms->granularities->count;
	if (terms->stored) {
		add_stored(&p);
		return;
	}
	if (terms->points && !plan->window_ms)
		plan->window_ms = plan_choose_window(&p);
	if (plan->fn == FN_NONE) {
		add_backward(&p);
		return;
	}
	/* The newest sample of all is looked for in raw data only. */
	if (plan->window_ms == 0)
		p.granularity_count = 0;
	plan_divide(&p, terms->start_ms, terms->end_ms, p.granularity_count);
}
