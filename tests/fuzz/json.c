/* Any bytes as JSON: events and tree agree, and what was taken reads back the same after writing.
 */
#include "base/buf.h"
#include "base/mem.h"
#include "wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX_BYTES = 16 << 20 };

static void write_again(const struct json *root, struct buf *out)
{
	struct json_writer writer;
	buf_init(out, MEMORY_MAX_BYTES);
	json_writer_init(&writer, out);
	json_write_tree(&writer, root);
	ASSERT(!out->failed);
}

/* Infinities are written as null, so it is the second writing that has to equal the third. */
static void check_round_trip(const struct json *root, struct arena *arena)
{
	struct buf once, twice, thrice;
	struct errbuf e;
	struct json *again;
	write_again(root, &once);
	ASSERT(json_parse(buf_slice(&once), arena, &again, &e) == 0);
	write_again(again, &twice);
	ASSERT(json_parse(buf_slice(&twice), arena, &again, &e) == 0);
	write_again(again, &thrice);
	ASSERT(slice_equal(buf_slice(&twice), buf_slice(&thrice)));
	buf_release(&once);
	buf_release(&twice);
	buf_release(&thrice);
}

static enum json_event last_event(struct slice text, struct arena *arena)
{
	struct json_reader reader;
	enum json_event event;
	size_t count = 0, before = 0;
	json_reader_init(&reader, text, arena);
	do {
		event = json_next(&reader);
		ASSERT(reader.offset <= text.len && (event == JSON_BAD || reader.offset >= before));
		before = reader.offset;
		count++;
	} while (event != JSON_BAD && event != JSON_END);
	ASSERT(count <= text.len + 1);
	ASSERT((event == JSON_BAD) == (reader.reason != NULL));
	return event;
}

/* What the strict reader takes the lax one takes; of what it takes, all can be written. */
static void check_lax(struct slice text, bool strict, struct arena *arena)
{
	struct errbuf e;
	struct json *root;
	int err = json_parse_lax(text, arena, &root, &e);
	ASSERT(!strict || err == 0 || err == ERR_LIMIT);
	if (err == 0)
		check_round_trip(root, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {(const char *)data, size};
	struct arena arena;
	struct errbuf e;
	struct json *root;
	arena_init(&arena, MEMORY_MAX_BYTES);
	bool good = last_event(text, &arena) == JSON_END;
	int err = json_parse(text, &arena, &root, &e);
	ASSERT(good == (err == 0) || err == ERR_LIMIT);
	if (err == 0)
		check_round_trip(root, &arena);
	else
		ASSERT(e.text[0]);
	check_lax(text, err == 0, &arena);
	arena_release(&arena);
	return 0;
}
