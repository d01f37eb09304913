/* Chunks, cut at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/buf.h"
#include "http/body.h"

/* Feeds `bytes` in pieces; what was decoded is appended to `out`. `*used` of them were taken. */
static enum body_result read_chunks(struct slice bytes, size_t piece_bytes, struct buf *out,
				    size_t *used)
{
	struct chunked chunked = {0};
	enum body_result result = BODY_MORE;
	const char *reason = NULL;
	*used = 0;
	while (result == BODY_MORE && *used < bytes.len) {
		size_t len = bytes.len - *used < piece_bytes ? bytes.len - *used : piece_bytes;
		struct slice in = {bytes.data + *used, len}, piece;
		while ((result = chunked_next(&chunked, &in, &piece, &reason)) == BODY_PIECE)
			buf_append(out, piece.data, piece.len);
		*used += len - in.len;
	}
	if (result == BODY_BAD)
		assert_non_null(reason);
	return result;
}

static void test_chunks(void **state)
{
	static const struct {
		const char *bytes, *decoded; /* NULL: bad */
		size_t used;
	} cases[] = {
		{"0\r\n\r\n", "", 5},
		{"5\r\nhello\r\n0\r\n\r\nGET", "hello", 15},
		{"1\r\na\r\n0002;x=y\r\nbc\r\n0;z\r\nT: u\r\n\r\n", "abc", 33},
		{"a\r\n0123456789\r\n00\r\n\r\n", "0123456789", 21},
		{"00000000000000\r\n\r\n", "", 18},
		{"000000000000000\r\n\r\n", "", 19},
		{"0000000000000000\r\n\r\n", NULL, 0},
		{"\r\n", NULL, 0},
		{"5\nhello\r\n", NULL, 0},
		{"5\r\nhelloX\r\n", NULL, 0},
		{"5\r\nhello\rX", NULL, 0},
		{"5\r\nhello\n0\r\n\r\n", NULL, 0},
		{"5 \r\n", NULL, 0},
		{";x\r\n", NULL, 0},
		{"5;\x01\r\n", NULL, 0},
		{"0\r\n T: u\r\n\r\n", NULL, 0},
		{"0\r\n\n", NULL, 0},
		{"0\r\n\rX", NULL, 0},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice bytes = slice_of(cases[i].bytes);
		for (size_t piece = 1; piece <= bytes.len; piece++) {
			struct buf out;
			size_t used;
			buf_init(&out, 1000);
			enum body_result result = read_chunks(bytes, piece, &out, &used);
			assert_int_equal(result, cases[i].decoded ? BODY_END : BODY_BAD);
			if (cases[i].decoded) {
				assert_true(
					slice_equal(buf_slice(&out), slice_of(cases[i].decoded)));
				assert_int_equal(used, cases[i].used);
			}
			buf_release(&out);
		}
	}
}

static void test_a_chunk_is_not_finished(void **state)
{
	static const char whole[] = "5;e\r\nhello\r\n0\r\nT: u\r\n\r\n";
	(void)state;
	for (size_t len = 0; len + 1 < sizeof(whole); len++) {
		struct buf out;
		size_t used;
		buf_init(&out, 1000);
		assert_int_equal(read_chunks((struct slice){whole, len}, 100, &out, &used),
				 BODY_MORE);
		buf_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_a_chunk_is_not_finished),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
