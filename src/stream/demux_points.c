/* Points of samples, and which labels have series of their own. */
#include "stream/demux_private.h"

enum {
	PASS_POINTS = 1000, /* that are written at once */
	PASS_VALUES = 4000,
	PASS_POINTS_MAX_BYTES = 16 << 20,
	PASS_HEADS_MAX_BYTES = 1 << 20,
};

/* ---- Points ---------------------------------------------------------------------------------- */

void demux_work_init(struct demux_work *work)
{
	line_clock_init(&work->clock);
	arena_init(&work->arena, PASS_POINTS_MAX_BYTES);
	arena_init(&work->heads, PASS_HEADS_MAX_BYTES);
	work->points = mem_alloc_array(PASS_POINTS, sizeof(*work->points));
	work->point_count = work->value_count = 0;
	demux_texts_init(work);
}

void demux_work_release(struct demux_work *work)
{
	demux_texts_release(work);
	mem_free(work->points);
	arena_release(&work->heads);
	arena_release(&work->arena);
	line_clock_release(&work->clock);
}

bool pass_may_write(const struct demux_work *work)
{
	return clock_wall_ms(work->site->clock) + work->write_max_ms < work->until_ms;
}

int pass_flush_points(struct pass *p)
{
	struct demux_work *work = p->work;
	int err = 0;
	if (work->point_count && (!pass_may_write(work) || task_queue_is_stopped(work->queue)))
		err = ERR_CANCELLED;
	else if (work->point_count)
		err = work->sink->write(work->sink, work->job, p->stream->tenant, p->stream->rule,
					work->points, work->point_count, p->stamp_us + p->written,
					p->e);
	p->written += (int64_t)work->value_count;
	work->point_count = work->value_count = 0;
	arena_reset(&work->arena);
	return err;
}

static bool pass_keep_texts(struct arena *arena, const struct slice **list, size_t count)
{
	struct slice *copies = arena_alloc(arena, (count + 1) * sizeof(*copies));
	for (size_t i = 0; copies && i < count; i++) {
		copies[i] = arena_copy(arena, (*list)[i]);
		if (!copies[i].data)
			return false;
	}
	*list = copies;
	return copies != NULL;
}

/* Copies the parts that lie in the line. */
static int pass_keep_point(struct pass *p, struct demux_point *point)
{
	struct arena *arena = &p->work->arena;
	struct value *values = arena_alloc(arena, (point->count + 1) * sizeof(*values));
	if (!values || !pass_keep_texts(arena, &point->metrics, point->count) ||
	    !pass_keep_texts(arena, &point->units, point->count))
		return ERR_LIMIT;
	memcpy(values, point->values, point->count * sizeof(*values));
	point->values = values;
	for (size_t i = p->fixed_count; i < point->tag_count; i++) {
		point->tags[i].value = arena_copy(arena, point->tags[i].value);
		if (!point->tags[i].value.data)
			return ERR_LIMIT;
	}
	return 0;
}

/* Without room in the arena the points that wait are written first. */
static int pass_add_point(struct pass *p, const struct demux_point *point)
{
	struct demux_work *work = p->work;
	struct demux_point copy = *point;
	int err = pass_keep_point(p, &copy);
	if (err) {
		err = pass_flush_points(p);
		copy = *point;
		err = err ? err : pass_keep_point(p, &copy);
	}
	if (err)
		return err == ERR_LIMIT ? errbuf_set(p->e, err, "a sample is too large") : err;
	work->points[work->point_count++] = copy;
	work->value_count += copy.count;
	return work->point_count == PASS_POINTS || work->value_count >= PASS_VALUES
		       ? pass_flush_points(p)
		       : 0;
}

int pass_add_numbers(struct pass *p, struct demux_point *point)
{
	point->metrics = p->metrics;
	point->units = p->units;
	point->values = p->values;
	int err = point->count ? pass_add_point(p, point) : 0;
	point->count = 0;
	return err;
}

void pass_set_tags(const struct pass *p, struct demux_point *point, const struct slice *labels)
{
	const struct datatype *rule = p->stream->rule;
	memcpy(point->tags, p->fixed, p->fixed_count * sizeof(*p->fixed));
	point->tag_count = p->fixed_count;
	for (size_t i = 0; labels && i < rule->tag_count; i++)
		if (labels[i].len)
			point->tags[point->tag_count++] =
				(struct tag){rule->tags[i].key, labels[i]};
	if (!labels)
		point->tags[point->tag_count++] = (struct tag){SLICE("rest"), SLICE("true")};
}

/* ---- Series ---------------------------------------------------------------------------------- */

/* Stands for all labels of which there are too many. */
static const struct hash128 pass_rest = {UINT64_MAX, UINT64_MAX};

bool pass_has_series(struct pass *p, struct hash128 hash)
{
	struct hash_set *known = &p->stream->state.series;
	if (hash_set_has(known, hash))
		return true;
	if (known->table.count >= p->stream->rule->series_max)
		return false;
	return hash_set_add(known, hash, DEMUX_SERIES_MAX);
}

size_t pass_series(struct pass *p, struct bins *bins, bool *is_rest)
{
	const struct slice *labels = p->record.tags;
	struct hash128 hash = bins_hash(labels, p->stream->rule->tag_count);
	size_t series = bins_find(bins, hash);
	*is_rest = series == SIZE_MAX && !pass_has_series(p, hash);
	if (*is_rest) {
		hash = pass_rest;
		labels = NULL;
		series = bins_find(bins, hash);
	}
	return series == SIZE_MAX ? bins_add_series(bins, hash, labels) : series;
}
