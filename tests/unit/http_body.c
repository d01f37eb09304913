/* Chunks and gzip, cut at every place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"
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

/* `printf hello | gzip -n` of gzip 1.12, as bytes. */
static const uint8_t hello_gz[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
				   0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x86,
				   0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00};

static enum body_result inflate_all(struct slice bytes, size_t piece_bytes, struct buf *out)
{
	struct gunzip *gunzip = gunzip_new();
	enum body_result result = BODY_MORE;
	const char *reason = NULL;
	struct slice piece;
	while (result != BODY_BAD && result != BODY_END) {
		size_t len = bytes.len < piece_bytes ? bytes.len : piece_bytes;
		struct slice in = {bytes.data, len};
		result = gunzip_next(gunzip, &in, bytes.len == 0, &piece, &reason);
		size_t used = len - in.len;
		bytes = (struct slice){bytes.data + used, bytes.len - used};
		if (result == BODY_PIECE)
			buf_append(out, piece.data, piece.len);
	}
	gunzip_free(gunzip);
	return result;
}

static void test_gzip_of_another_program(void **state)
{
	(void)state;
	for (size_t piece = 1; piece <= sizeof(hello_gz); piece++) {
		struct buf out;
		buf_init(&out, 1000);
		struct slice bytes = {(const char *)hello_gz, sizeof(hello_gz)};
		assert_int_equal(inflate_all(bytes, piece, &out), BODY_END);
		assert_true(slice_equal(buf_slice(&out), SLICE("hello")));
		buf_release(&out);
	}
}

static void test_members_follow_each_other(void **state)
{
	char two[2 * sizeof(hello_gz) + 1];
	struct buf out;
	(void)state;
	buf_init(&out, 1000);
	memcpy(two, hello_gz, sizeof(hello_gz));
	memcpy(two + sizeof(hello_gz), hello_gz, sizeof(hello_gz));
	two[sizeof(two) - 1] = 'x';
	assert_int_equal(inflate_all((struct slice){two, sizeof(two) - 1}, 7, &out), BODY_END);
	assert_true(slice_equal(buf_slice(&out), SLICE("hellohello")));
	assert_int_equal(inflate_all((struct slice){two, sizeof(two)}, 7, &out), BODY_BAD);
	buf_release(&out);
}

static void test_every_cut_and_every_flip_is_noticed(void **state)
{
	struct buf out;
	(void)state;
	buf_init(&out, 100000);
	for (size_t len = 0; len < sizeof(hello_gz); len++) {
		struct slice bytes = {(const char *)hello_gz, len};
		assert_int_equal(inflate_all(bytes, 100, &out), BODY_BAD);
	}
	/* Bytes 4 to 9 (time, level, system) mean nothing to us, nor do the last bits behind the
	 * deflated data, in byte 16 (RFC 1952 2.3, RFC 1951 3.1.1). */
	for (size_t at = 0; at < sizeof(hello_gz); at++) {
		uint8_t flipped[sizeof(hello_gz)];
		memcpy(flipped, hello_gz, sizeof(flipped));
		flipped[at] ^= 0x80;
		struct slice bytes = {(const char *)flipped, sizeof(flipped)};
		bool harmless = (at >= 4 && at <= 9) || at == 16;
		assert_int_equal(inflate_all(bytes, 100, &out), harmless ? BODY_END : BODY_BAD);
	}
	buf_release(&out);
}

/* What cannot be compressed is what gzip_bound is for. */
static void test_there_and_back(void **state)
{
	static const size_t lengths[] = {0, 1, 1000, 100000, 3000000};
	struct gzip *gzip = gzip_new();
	struct random random;
	(void)state;
	random_init(&random, 3);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct buf packed, out;
		size_t len = lengths[i];
		char *bytes = mem_alloc(len);
		buf_init(&packed, 1 << 24);
		buf_init(&out, 1 << 24);
		for (size_t b = 0; b < len; b++)
			bytes[b] = (char)random_next(&random);
		for (size_t at = 0; at < len;) {
			size_t piece = 1 + (size_t)random_below(&random, 70000);
			piece = piece < len - at ? piece : len - at;
			assert_int_equal(
				gzip_write(gzip, (struct slice){bytes + at, piece}, false, &packed),
				0);
			at += piece;
		}
		assert_int_equal(gzip_write(gzip, (struct slice){NULL, 0}, true, &packed), 0);
		gzip_reset(gzip);
		assert_int_equal(inflate_all(buf_slice(&packed), 5000, &out), BODY_END);
		assert_true(slice_equal(buf_slice(&out), (struct slice){bytes, len}));
		mem_free(bytes);
		buf_release(&packed);
		buf_release(&out);
	}
	struct buf small;
	buf_init(&small, 10);
	assert_int_equal(gzip_write(gzip, SLICE("x"), true, &small), ERR_LIMIT);
	buf_release(&small);
	gzip_free(gzip);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chunks),
		cmocka_unit_test(test_a_chunk_is_not_finished),
		cmocka_unit_test(test_gzip_of_another_program),
		cmocka_unit_test(test_members_follow_each_other),
		cmocka_unit_test(test_every_cut_and_every_flip_is_noticed),
		cmocka_unit_test(test_there_and_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
