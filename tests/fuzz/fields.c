/* Any bytes as lines: what is read of a pattern lies in its line, in order, with the literals
 * between; and a reader that is given another one's state reads the next line as that one does. The
 * first byte chooses the kind, the first line is the pattern or the first word of lines of names.
 */
#include "wire/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_equal(const struct fields_reader *a, const struct fields_reader *b)
{
	ASSERT(a->count == b->count && a->cut == b->cut && a->count <= FIELDS_MAX);
	for (size_t i = 0; i < a->count; i++) {
		ASSERT(slice_equal(a->list[i].name, b->list[i].name));
		ASSERT(slice_equal(a->list[i].text, b->list[i].text));
		ASSERT(a->list[i].name.len <= FIELDS_NAME_MAX_BYTES);
	}
}

static void check_numbers(const struct fields_reader *reader)
{
	for (size_t i = 0; i < reader->count; i++) {
		struct value plain = {0}, scaled = {0};
		int err = fields_number(reader->list[i].text, 0, &plain);
		if (!err && !fields_number(reader->list[i].text, 1, &scaled))
			ASSERT(value_equal(plain, scaled));
		ASSERT(err || value_compare(plain, value_f64(__builtin_inf())) < 0);
	}
}

static void check_within(const struct fields_reader *reader, struct slice line)
{
	for (size_t i = 0; i < reader->count; i++) {
		struct slice text = reader->list[i].text;
		ASSERT(!text.data ||
		       (text.data >= line.data && text.data + text.len <= line.data + line.len));
	}
}

static void check_line(struct fields_reader *reader, struct slice line)
{
	struct fields_reader other;
	struct buf state;
	char *bytes = mem_alloc(line.len); /* of just that size, so that a byte too far is seen */
	if (line.len)
		memcpy(bytes, line.data, line.len);
	struct slice copy = {bytes, line.len};
	buf_init(&state, FIELDS_STATE_MAX_BYTES);
	fields_reader_init(&other, reader->format);
	fields_state_put(reader, &state);
	ASSERT(!state.failed && !fields_state_take(&other, buf_slice(&state)));
	enum fields_result result = fields_read(reader, copy);
	ASSERT(fields_read(&other, copy) == result);
	ASSERT(result == FIELDS_READ || !reader->count);
	check_equal(reader, &other);
	check_numbers(reader);
	if (reader->format->kind == FIELDS_PATTERN)
		check_within(reader, copy);
	fields_reader_release(&other);
	buf_release(&state);
	mem_free(bytes);
}

static struct slice take_line(struct slice *rest)
{
	const char *newline = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
	struct slice line = {rest->data, newline ? (size_t)(newline - rest->data) : rest->len};
	size_t passed = line.len + (newline != NULL);
	*rest = (struct slice){rest->data + passed, rest->len - passed};
	return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct slice rest = {(const char *)data + 1, size - 1}, first = take_line(&rest);
	struct fields_format format = {.kind = data[0] % 5};
	struct errbuf e = {""};
	struct arena arena;
	struct fields_reader reader;
	int err = 0;
	arena_init(&arena, 1 << 20);
	if (format.kind == FIELDS_COLUMNS && first.len)
		format.columns.headers = (struct fields_words){&first, 1};
	if (format.kind == FIELDS_PATTERN)
		err = fields_format_add(&format, first, &arena, &e);
	ASSERT(!err || (err == ERR_INVALID && e.text[0]));
	if (!err) {
		fields_reader_init(&reader, &format);
		/* Any bytes as a state, too. */
		ASSERT(!fields_state_take(&reader, rest) || !reader.column_count);
		while (rest.len)
			check_line(&reader, take_line(&rest));
		fields_reader_release(&reader);
	}
	arena_release(&arena);
	return 0;
}
