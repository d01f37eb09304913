#include "stream/line_context.h"

#include <stdlib.h>

enum { CONTEXT_ENOUGH = 1 }; /* stops a look, without an error */

struct context_look {
	const struct line_context_rules *rules;
	struct line_context *context;
	/* Lines before: those of a part, of which the last are kept, in a ring. */
	struct line_found *ring;
	size_t ring_count, ring_room;
};

static int context_compare_parts(const void *a, const void *b)
{
	const struct line_part *x = a, *y = b;
	return (x->from > y->from) - (x->from < y->from);
}

static bool context_is_before(const struct context_look *c, const struct line_seen *seen)
{
	return seen->offset + seen->bytes <= c->rules->offset;
}

static int context_see_behind(const struct line_seen *seen, void *owner)
{
	struct context_look *c = owner;
	struct line_context *context = c->context;
	if (context_is_before(c, seen))
		return 0;
	context->list[c->rules->before + context->count++] = line_found_copy(seen);
	return context->count > c->rules->behind ? CONTEXT_ENOUGH : 0;
}

static int context_see_before(const struct line_seen *seen, void *owner)
{
	struct context_look *c = owner;
	if (!context_is_before(c, seen))
		return CONTEXT_ENOUGH;
	struct line_found *place = &c->ring[c->ring_count++ % c->ring_room];
	line_found_release(place);
	*place = line_found_copy(seen);
	return 0;
}

/* The last lines of a part before the offset go in front of the *first that there is. */
static int context_look_before(struct context_look *c, const struct line_part *part, size_t *first)
{
	c->ring_room = *first;
	c->ring_count = 0;
	int err = line_scan_look(&c->context->scan, part, context_see_before, c);
	size_t kept = smaller_of(c->ring_count, c->ring_room);
	for (size_t i = 0; i < kept; i++) {
		struct line_found *from = &c->ring[(c->ring_count - 1 - i) % c->ring_room];
		c->context->list[--*first] = *from;
		from->text.data = NULL;
	}
	return err == CONTEXT_ENOUGH ? 0 : err;
}

/* The first part that has lines that do not end before the offset. */
static size_t context_find_part(const struct context_look *c)
{
	const struct line_scan *scan = &c->context->scan;
	size_t at = 0;
	while (at < scan->part_count && scan->parts[at].to <= c->rules->offset)
		at++;
	return at;
}

static int context_look_all(struct context_look *c)
{
	struct line_context *context = c->context;
	const struct line_scan *scan = &context->scan;
	size_t at = context_find_part(c), first = c->rules->before;
	int err = 0;
	for (size_t i = at; i < scan->part_count && !err; i++)
		err = line_scan_look(&context->scan, &scan->parts[i], context_see_behind, c);
	err = err == CONTEXT_ENOUGH ? 0 : err;
	for (size_t i = at < scan->part_count ? at + 1 : at; i > 0 && first && !err; i--)
		err = context_look_before(c, &scan->parts[i - 1], &first);
	context->count += c->rules->before - first;
	memmove(context->list, context->list + first, context->count * sizeof(*context->list));
	return err;
}

int line_context_read(struct line_context *context, const struct stream_site *site,
		      struct task_queue *queue, const struct line_context_rules *rules,
		      struct errbuf *e)
{
	struct context_look c = {.rules = rules, .context = context};
	size_t room = rules->before + rules->behind + 1;
	ASSERT(rules->before <= LINE_CONTEXT_MAX && rules->behind <= LINE_CONTEXT_MAX);
	*context = (struct line_context){.list = mem_zalloc(room * sizeof(*context->list))};
	int err = line_scan_open(&context->scan, site, queue, &rules->scan, e);
	struct line_scan *scan = &context->scan;
	if (!err && !scan->stream_count)
		return errbuf_set(e, ERR_NOT_FOUND, "there is no such stream");
	if (err || !scan->part_count)
		return err;
	struct offset_range held = offsets_at(&scan->streams[0].known.held, rules->offset);
	context->held = held.begin < held.end;
	qsort(scan->parts, scan->part_count, sizeof(*scan->parts), context_compare_parts);
	c.ring = mem_zalloc((rules->before + 1) * sizeof(*c.ring));
	err = context_look_all(&c);
	line_found_release_all(c.ring, rules->before);
	return err;
}

void line_context_release(struct line_context *context)
{
	line_found_release_all(context->list, context->count);
	line_scan_close(&context->scan);
}
