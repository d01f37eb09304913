/* Groups: series with equal values of some tags become one row of the answer. A series without such
 * a tag has it missing, which is a value like others. */
#include "base/buf.h"
#include "query/private.h"

enum { ONE_SERIES_MAX_BYTES = 256 << 10 };

/* The tags of `by` that the series has, as text. */
static int group_text(const struct query_spec *spec, struct slice tags_text, struct arena *arena,
		      struct buf *text)
{
	struct tag list[QUERY_BY_MAX];
	struct tags tags = {NULL, 0}, kept = {list, 0};
	arena_reset(arena);
	buf_clear(text);
	if (spec->by_count && tags_decode(tags_text, arena, &tags))
		return ERR_DAMAGED;
	for (size_t i = 0; i < tags.count; i++) {
		bool wanted = false;
		for (size_t k = 0; k < spec->by_count && !wanted; k++)
			wanted = slice_equal(tags.list[i].key, spec->by[k]);
		if (wanted)
			list[kept.count++] = tags.list[i];
	}
	return tags_encode(kept, text);
}

static int by_text(const void *a, const void *b, void *texts)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int order =
		slice_compare(((const struct slice *)texts)[x], ((const struct slice *)texts)[y]);
	return order ? order : (x > y) - (x < y);
}

static int collect_texts(struct query_run *run, struct slice *texts)
{
	struct arena arena;
	struct buf text;
	int err = 0;
	arena_init(&arena, ONE_SERIES_MAX_BYTES);
	buf_init(&text, ONE_SERIES_MAX_BYTES);
	for (size_t i = 0; i < run->find.count && !err; i++) {
		err = group_text(&run->query.spec, run->find.series[i].tags_text, &arena, &text);
		if (!err && i && slice_equal(texts[i - 1], buf_slice(&text))) {
			texts[i] = texts[i - 1];
		} else if (!err) {
			texts[i] = arena_copy(&run->query.arena, buf_slice(&text));
			err = texts[i].data ? 0 : ERR_LIMIT;
		}
	}
	buf_release(&text);
	arena_release(&arena);
	return err;
}

int groups_make(struct query_run *run)
{
	size_t count = run->find.count;
	struct arena *arena = &run->query.arena;
	struct slice *texts = mem_alloc_array(count + 1, sizeof(*texts));
	run->rows = arena_alloc(arena, (count + 1) * sizeof(*run->rows));
	run->row_series = arena_alloc(arena, (count + 1) * sizeof(*run->row_series));
	run->row_first = arena_alloc(arena, (count + 1) * sizeof(*run->row_first));
	run->series_row = arena_alloc(arena, (count + 1) * sizeof(*run->series_row));
	run->series_found = arena_zalloc(arena, (count + 1) * sizeof(*run->series_found));
	bool room = run->rows && run->row_series && run->row_first && run->series_row &&
		    run->series_found;
	int err = room ? collect_texts(run, texts) : ERR_LIMIT;
	if (err) {
		mem_free(texts);
		return errbuf_set(&run->query.error, err, "%s",
				  err == ERR_LIMIT ? "the names of the series take too much room"
						   : "the names of a series could not be read");
	}
	for (size_t i = 0; i < count; i++)
		run->row_series[i] = (uint32_t)i;
	if (run->query.spec.by_count) /* else there is one group */
		qsort_r(run->row_series, count, sizeof(*run->row_series), by_text, texts);
	run->row_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct slice text = texts[run->row_series[i]];
		if (i == 0 || !slice_equal(run->rows[run->row_count - 1].tags_text, text)) {
			run->rows[run->row_count] = (struct catalog_series){.tags_text = text};
			run->row_first[run->row_count++] = (uint32_t)i;
		}
		run->series_row[run->row_series[i]] = (uint32_t)(run->row_count - 1);
	}
	run->row_first[run->row_count] = (uint32_t)count;
	mem_free(texts);
	return 0;
}

int groups_order(struct query_run *run)
{
	int err = groups_make(run);
	if (err)
		return err;
	size_t count = run->find.count;
	struct catalog_series *ordered = mem_alloc_array(count + 1, sizeof(*ordered));
	for (size_t i = 0; i < count; i++)
		ordered[i] = run->find.series[run->row_series[i]];
	if (count)
		memcpy(run->find.series, ordered, count * sizeof(*ordered));
	mem_free(ordered);
	for (size_t row = 0; row < run->row_count; row++) {
		for (uint32_t i = run->row_first[row]; i < run->row_first[row + 1]; i++) {
			run->row_series[i] = i;
			run->series_row[i] = (uint32_t)row;
		}
	}
	run->rows = NULL;
	run->ordered = true;
	return 0;
}
