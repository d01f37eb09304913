/* Any bytes as a body of POST /loki/api/v1/push: each of its streams and entries is refused with a
 * reason, or is a record that ends with a newline and says its time. */
#include "wire/loki_push.h"

#include "wire/line_time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX_BYTES = 16 << 20 };

static void check_entry(const struct loki_entry *entry)
{
	struct line_time_context context = {.near_ms = 0};
	struct buf record;
	int64_t ms;
	if (entry->wrong)
		return;
	buf_init(&record, MEMORY_MAX_BYTES);
	loki_record_put(entry, &record);
	ASSERT(!record.failed && record.len > LOKI_TIME_BYTES + 1);
	ASSERT(record.data[record.len - 1] == '\n');
	ASSERT(line_time_find(buf_slice(&record), &context, &ms));
	ASSERT(ms == entry->time_ns / 1000000);
	buf_release(&record);
}

static void check_stream(const struct loki_stream *stream, struct arena *arena)
{
	struct loki_entries entries;
	struct loki_entry entry;
	if (stream->wrong)
		return;
	ASSERT(stream->labels.count && stream->labels.count <= LOKI_LABELS_MAX);
	for (size_t i = 0; i < stream->labels.count; i++) {
		ASSERT(stream->labels.list[i].value.len);
		ASSERT(!i || slice_compare(stream->labels.list[i - 1].name,
					   stream->labels.list[i].name) < 0);
	}
	loki_entries_begin(&entries, stream, arena);
	int err;
	while (!(err = loki_entries_next(&entries, &entry)))
		check_entry(&entry);
	ASSERT(err == ERR_NOT_FOUND || err == ERR_LIMIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice body = {size ? (const char *)data : "", size};
	struct arena arena, scratch;
	struct loki_push push;
	struct errbuf e = {""};
	arena_init(&arena, MEMORY_MAX_BYTES);
	arena_init(&scratch, MEMORY_MAX_BYTES);
	int err = loki_push_read(body, &arena, &push, &e);
	ASSERT(!err || (e.text[0] && (err == ERR_INVALID || err == ERR_LIMIT)));
	for (size_t i = 0; !err && i < push.count; i++)
		check_stream(&push.streams[i], &scratch);
	arena_release(&scratch);
	arena_release(&arena);
	return 0;
}
