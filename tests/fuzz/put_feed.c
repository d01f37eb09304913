/* Bodies of /api/put: no point is read otherwise because of the points before it. A body's points
 * are read again, each alone in a body of its own, and the same must come of them. What ingest/
 * does with them is left out: this file stands in its place. */
#include "base/mem.h"
#include "ingest/private.h"
#include "ingest/put_feed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What came of the points, a line each, and the index of the first of the body being read. */
static struct buf *lines;
static uint64_t first;

static void append_slice(struct slice text)
{
	buf_append_char(lines, ' ');
	buf_append(lines, text.data, text.len);
}

void ingest_points(UNUSED struct ingest_request *r, const struct ingest_points *points)
{
	for (size_t i = 0; i < points->count; i++) {
		struct value value = points->values[i];
		buf_printf(lines, "%llu: %lld %d %llu",
			   (unsigned long long)(first + points->place.index + i),
			   (long long)points->ts_ms, (int)value.type,
			   (unsigned long long)value.bits);
		append_slice(points->metrics[i]);
		for (size_t k = 0; k < points->tag_count; k++) {
			append_slice(points->tags[k].key);
			append_slice(points->tags[k].value);
		}
		buf_append_char(lines, '\n');
	}
}

void ingest_refuse(UNUSED struct ingest_request *r, struct ingest_place place,
		   enum ingest_reason reason, UNUSED struct slice source, const char *fmt, ...)
{
	char text[INGEST_SENTENCE_MAX_BYTES];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	buf_printf(lines, "%llu: %d %s\n", (unsigned long long)(first + place.index), (int)reason,
		   text);
}

int ingest_tenant(UNUSED const struct ingest *ingest, UNUSED struct slice header,
		  UNUSED struct tag *tags, UNUSED size_t *tag_count, struct slice *tenant,
		  UNUSED struct errbuf *e)
{
	*tenant = SLICE("default");
	return 0;
}

bool request_time(UNUSED struct request *q, UNUSED int64_t ts_ms, UNUSED struct ingest_place place,
		  UNUSED struct slice source)
{
	return true;
}

void ingest_piece_begin(UNUSED struct ingest_request *r)
{
}

void ingest_piece_end(UNUSED struct ingest_request *r)
{
}

static void feed_body(struct slice body, struct buf *out, uint64_t index)
{
	static struct request q = {.newest_ms = INT64_MAX};
	struct put_feed *feed = mem_alloc(sizeof(*feed));
	lines = out;
	first = index;
	put_feed_init(feed, &q.r, (struct slice){NULL, 0}, body);
	while (put_feed_slice(feed))
		;
	put_feed_release(feed);
	mem_free(feed);
}

/* The elements of an array, up to the first that is no JSON. */
static void feed_each(struct slice body, struct buf *out)
{
	struct arena arena;
	struct json_reader reader;
	struct buf one;
	enum json_event event;
	arena_init(&arena, PUT_TEXT_MAX_BYTES);
	buf_init(&one, body.len + 2);
	json_reader_init(&reader, body, &arena);
	reader.allow_nan = true;
	bool array = json_next(&reader) == JSON_ARRAY_BEGIN;
	for (uint64_t i = 0; array && (event = json_next(&reader)) != JSON_ARRAY_END; i++) {
		size_t offset = reader.offset;
		if (event == JSON_BAD || !json_skip(&reader, event))
			break;
		struct slice text = json_text_from(&reader, offset);
		buf_clear(&one);
		buf_append_char(&one, '[');
		buf_append(&one, text.data, text.len);
		buf_append_char(&one, ']');
		feed_body(buf_slice(&one), out, i);
	}
	buf_release(&one);
	arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole, each;
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	if (size)
		memcpy(bytes, data, size);
	buf_init(&whole, 64 << 20);
	buf_init(&each, 64 << 20);
	feed_body((struct slice){bytes, size}, &whole, 0);
	feed_each((struct slice){bytes, size}, &each);
	ASSERT(!whole.failed && !each.failed);
	ASSERT(whole.len >= each.len);
	ASSERT(!each.len || memcmp(whole.data, each.data, each.len) == 0);
	buf_release(&whole);
	buf_release(&each);
	mem_free(bytes);
	return 0;
}
