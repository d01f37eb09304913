#include "stream/line_counts.h"

#include <stdlib.h>

#include "base/grow.h"

struct line_counting {
	const struct line_counts_rules *rules;
	struct line_counts *counts;
	struct errbuf *e;
};

static struct line_counts_series counts_series_of(const struct line_counts_rules *rules,
						  const struct line_seen *seen)
{
	struct line_counts_series series = {.severity = LINE_UNKNOWN};
	if (rules->by_source)
		series.source = seen->stream->id.names.source;
	if (rules->by_datatype)
		series.datatype = seen->stream->id.names.datatype;
	if (rules->by_severity)
		series.severity = line_severity_of(seen->text);
	return series;
}

static int counts_compare(const void *a, const void *b)
{
	const struct line_counts_series *x = a, *y = b;
	int order = slice_compare(x->source, y->source);
	order = order ? order : slice_compare(x->datatype, y->datatype);
	return order ? order : (int)x->severity - (int)y->severity;
}

/* The lines that come one after the other are mostly of one series. */
static struct line_counts_series *counts_find(struct line_counting *c,
					      const struct line_counts_series *wanted)
{
	struct line_counts *counts = c->counts;
	for (size_t i = 0; i < counts->count; i++) {
		size_t at = (counts->last + i) % counts->count;
		if (counts_compare(&counts->list[at], wanted) == 0) {
			counts->last = at;
			return &counts->list[at];
		}
	}
	if (counts->count == LINE_COUNTS_SERIES_MAX)
		return NULL;
	GROW(counts->list, counts->room, counts->count + 1);
	struct line_counts_series *series = &counts->list[counts->count++];
	*series = *wanted;
	series->counts = mem_zalloc(counts->steps * sizeof(*series->counts));
	return series;
}

static int counts_see(const struct line_seen *seen, void *owner)
{
	struct line_counting *c = owner;
	const struct line_counts_rules *rules = c->rules;
	if (!line_query_fits(rules->scan.query, seen->text))
		return 0;
	const struct line_counts_series wanted = counts_series_of(rules, seen);
	struct line_counts_series *series = counts_find(c, &wanted);
	if (!series)
		return errbuf_set(c->e, ERR_LIMIT,
				  "the lines are of more than %d sources, datatypes and severities",
				  LINE_COUNTS_SERIES_MAX);
	series->counts[(seen->ms - rules->scan.from_ms) / rules->step_ms]++;
	return 0;
}

int line_counts_read(struct line_counts *counts, const struct stream_site *site,
		     struct task_queue *queue, const struct line_counts_rules *rules,
		     struct errbuf *e)
{
	struct line_counting c = {rules, counts, e};
	ASSERT(rules->step_ms > 0);
	*counts = (struct line_counts){
		.steps = (size_t)((rules->scan.to_ms - rules->scan.from_ms) / rules->step_ms)};
	ASSERT(counts->steps <= LINE_COUNTS_STEPS_MAX);
	int err = line_scan_open(&counts->scan, site, queue, &rules->scan, e);
	for (size_t i = 0; i < counts->scan.part_count && !err; i++)
		err = line_scan_look(&counts->scan, &counts->scan.parts[i], counts_see, &c);
	if (counts->count)
		qsort(counts->list, counts->count, sizeof(*counts->list), counts_compare);
	counts->work = counts->scan.work;
	return err;
}

void line_counts_release(struct line_counts *counts)
{
	for (size_t i = 0; i < counts->count; i++)
		mem_free(counts->list[i].counts);
	mem_free(counts->list);
	line_scan_close(&counts->scan);
}
