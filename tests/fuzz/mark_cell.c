/* Any bytes as a cell of marks: nothing is read outside, what is taken for one is read to its end,
 * and written again it says the same. */
#include "marks/cell.h"

enum { SERIES_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct marked {
	struct slice tenant;
	struct series_set set;
};

static bool is_same(const struct marked *a, const struct marked *b)
{
	return slice_equal(a->tenant, b->tenant) && slice_equal(a->set.metric, b->set.metric) &&
	       slice_equal(a->set.tags, b->set.tags);
}

static void is_within(struct slice text, struct slice cell)
{
	ASSERT(!text.len ||
	       (text.data >= cell.data && text.data + text.len <= cell.data + cell.len));
}

static size_t read_all(struct mark_cell_reader *reader, struct slice cell, struct marked *list)
{
	struct marked series;
	size_t count = 0;
	while (mark_cell_next(reader, &series.tenant, &series.set)) {
		is_within(series.tenant, cell);
		is_within(series.set.metric, cell);
		is_within(series.set.tags, cell);
		if (count < SERIES_MAX)
			list[count++] = series;
	}
	ASSERT(!mark_cell_next(reader, &series.tenant, &series.set));
	return count;
}

/* What was read, once more; its first series again behind it, in a group of its own or not. */
static void write_again(const struct mark_cell_reader *read, const struct marked *list,
			size_t count)
{
	static struct marked again[SERIES_MAX];
	struct mark_cell_writer writer;
	struct mark_cell_reader reader;
	struct buf value;
	size_t bytes = 16;
	for (size_t i = 0; i < count; i++)
		bytes += mark_cell_bytes(list[i].tenant, list[i].set);
	buf_init(&value, bytes);
	mark_cell_begin(&writer, &value, read->deleted, read->touched_ms);
	for (size_t i = 0; i < count; i++)
		mark_cell_put(&writer, list[i].tenant, list[i].set);
	ASSERT(!value.failed && mark_cell_open(&reader, buf_slice(&value)));
	ASSERT(reader.deleted == read->deleted && reader.touched_ms == read->touched_ms);
	ASSERT(read_all(&reader, buf_slice(&value), again) == count);
	for (size_t i = 0; i < count; i++)
		ASSERT(is_same(&list[i], &again[i]));
	buf_release(&value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct marked list[SERIES_MAX];
	struct slice cell = {(const char *)data, size};
	struct mark_cell_reader reader;
	if (mark_cell_open(&reader, cell)) {
		struct mark_cell_reader begun = reader;
		write_again(&begun, list, read_all(&reader, cell, list));
	}
	return 0;
}
