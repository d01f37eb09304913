#include "stream/line_search.h"

#include <stdlib.h>

/* Texts and addresses together; fewer lines are given then. So an answer has some 50 MiB at most,
 * where JSON escapes each byte. */
enum { SEARCH_FOUND_MAX_BYTES = 8 << 20 };

struct search {
	const struct line_search_rules *rules;
	/* A heap: the first is the one that comes last of those that were found. */
	struct line_found *found;
	size_t found_count, limit;
	size_t found_bytes;
};

/* ---- Order ----------------------------------------------------------------------------------- */

/* In the order that is asked for. */
static int search_compare(const struct search *s, const struct line_place *a,
			  const struct line_place *b)
{
	int order = line_place_compare(a, b);
	return s->rules->oldest_first ? order : -order;
}

static int search_compare_found(const void *a, const void *b, void *owner)
{
	return search_compare(owner, &((const struct line_found *)a)->place,
			      &((const struct line_found *)b)->place);
}

/* By the first line that each can have. */
static int search_compare_parts(const void *a, const void *b, void *owner)
{
	const struct search *s = owner;
	const struct line_part *x = a, *y = b;
	if (s->rules->oldest_first)
		return (x->first_ms > y->first_ms) - (x->first_ms < y->first_ms);
	return (x->last_ms < y->last_ms) - (x->last_ms > y->last_ms);
}

/* ---- What was found -------------------------------------------------------------------------- */

static void found_swap(struct search *s, size_t a, size_t b)
{
	struct line_found kept = s->found[a];
	s->found[a] = s->found[b];
	s->found[b] = kept;
}

static bool found_is_behind(const struct search *s, size_t a, size_t b)
{
	return search_compare(s, &s->found[a].place, &s->found[b].place) > 0;
}

static void found_sift_up(struct search *s, size_t at)
{
	for (; at && found_is_behind(s, at, (at - 1) / 2); at = (at - 1) / 2)
		found_swap(s, at, (at - 1) / 2);
}

static void found_sift_down(struct search *s)
{
	size_t at = 0, child;
	while ((child = 2 * at + 1) < s->found_count) {
		child += child + 1 < s->found_count && found_is_behind(s, child + 1, child);
		if (!found_is_behind(s, child, at))
			return;
		found_swap(s, at, child);
		at = child;
	}
}

static size_t found_bytes(const struct line_found *found)
{
	return found->text.len + found->place.stream.len;
}

static void found_drop_last(struct search *s)
{
	found_swap(s, 0, --s->found_count);
	s->found_bytes -= found_bytes(&s->found[s->found_count]);
	line_found_release(&s->found[s->found_count]);
	found_sift_down(s);
}

static bool found_is_full(const struct search *s)
{
	return s->found_count == s->limit;
}

static void found_add(struct search *s, const struct line_seen *seen)
{
	if (found_is_full(s))
		found_drop_last(s);
	s->found[s->found_count++] = line_found_copy(seen);
	s->found_bytes += found_bytes(&s->found[s->found_count - 1]);
	found_sift_up(s, s->found_count - 1);
	while (s->found_bytes > SEARCH_FOUND_MAX_BYTES && s->found_count > 1) {
		found_drop_last(s);
		s->limit = s->found_count;
	}
}

static int search_see_found(const struct line_seen *seen, void *owner)
{
	struct search *s = owner;
	const struct line_search_rules *rules = s->rules;
	const struct line_place place = {seen->ms, seen->stream->address, seen->offset};
	if (rules->goes_on && search_compare(s, &place, &rules->after) <= 0)
		return 0;
	if (found_is_full(s) && search_compare(s, &place, &s->found[0].place) > 0)
		return 0;
	if (line_query_fits(rules->scan.query, seen->text))
		found_add(s, seen);
	return 0;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* Whether no line of a part, and of those behind it, comes before what was found. */
static bool search_is_over(const struct search *s, const struct line_part *part)
{
	if (!found_is_full(s))
		return false;
	int64_t last_ms = s->found[0].place.ms;
	return s->rules->oldest_first ? part->first_ms > last_ms : part->last_ms < last_ms;
}

/* Whether all lines of a part come before the place behind which the search goes on. */
static bool search_is_before(const struct search *s, const struct line_part *part)
{
	const struct line_search_rules *rules = s->rules;
	if (!rules->goes_on)
		return false;
	return rules->oldest_first ? part->last_ms < rules->after.ms
				   : part->first_ms > rules->after.ms;
}

static int search_look(struct search *s, struct line_scan *scan)
{
	int err = 0;
	if (scan->part_count)
		qsort_r(scan->parts, scan->part_count, sizeof(*scan->parts), search_compare_parts,
			s);
	for (size_t i = 0; i < scan->part_count && !err; i++) {
		const struct line_part *part = &scan->parts[i];
		if (search_is_over(s, part))
			break;
		if (!search_is_before(s, part))
			err = line_scan_look(scan, part, search_see_found, s);
	}
	return err;
}

int line_search(const struct stream_site *site, struct task_queue *queue,
		const struct line_search_rules *rules, struct line_search_result *result,
		struct errbuf *e)
{
	struct search s = {.rules = rules, .limit = rules->limit};
	ASSERT(rules->limit && rules->limit <= LINE_SEARCH_LIMIT_MAX);
	*result = (struct line_search_result){.found = NULL};
	s.found = mem_alloc(rules->limit * sizeof(*s.found));
	int err = line_scan_open(&result->scan, site, queue, &rules->scan, e);
	err = err ? err : search_look(&s, &result->scan);
	if (!err && s.found_count)
		qsort_r(s.found, s.found_count, sizeof(*s.found), search_compare_found, &s);
	result->found = s.found;
	result->count = s.found_count;
	result->more = found_is_full(&s);
	result->work = result->scan.work;
	return err;
}

void line_search_release(struct line_search_result *result)
{
	line_found_release_all(result->found, result->count);
	line_scan_close(&result->scan);
}
