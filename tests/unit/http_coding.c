/* Compressed bodies, cut at every place, damaged at every byte. The bytes are those of other
 * programs: gzip 1.12, Python's zlib, Google's brotli 1.0.9, zstd 1.5.4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/random.h"
#include "http/coding.h"

/* `printf hello | gzip -n` */
static const uint8_t hello_gz[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
				   0x03, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00, 0x86,
				   0xa6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00};
/* zlib.compress(b"hello"), and the same without head and checksum */
static const uint8_t hello_zlib[] = {0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9,
				     0x07, 0x00, 0x06, 0x2c, 0x02, 0x15};
static const uint8_t hello_raw[] = {0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00};
/* `printf hello | brotli` */
static const uint8_t hello_br[] = {0x0b, 0x02, 0x80, 'h', 'e', 'l', 'l', 'o', 0x03};
/* `printf hello | zstd` */
static const uint8_t hello_zst[] = {0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x29, 0x00, 0x00,
				    0x68, 0x65, 0x6c, 0x6c, 0x6f, 0xa3, 0x6d, 0x9f, 0x88};
/* `head -c 16M /dev/zero | brotli -w 24` */
static const uint8_t zeros_br[] = {0x9f, 0xff, 0xff, 0xff, 0xf8, 0x27, 0x00,
				   0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x1f};

#define BYTES(array)                                                                               \
	(struct slice)                                                                             \
	{                                                                                          \
		(const char *)(array), sizeof(array)                                               \
	}

static const struct {
	const char *name, *coding;
	struct slice bytes;
	bool checked;    /* has a checksum */
	bool in_members; /* several behind each other are one body */
	/* Bytes that may have their highest bit flipped: of gzip time, level and system (4 to 9)
	 * and the last bits behind the deflated data, in its byte 6 (RFC 1952 2.3, RFC 1951 3.1.1),
	 * which are also in zlib's. */
	uint64_t harmless;
} samples[] = {
	{"gzip", "gzip", {(const char *)hello_gz, sizeof(hello_gz)}, true, true, 0x3f0 | 1 << 16},
	{"zlib", "deflate", {(const char *)hello_zlib, sizeof(hello_zlib)}, true, false, 1 << 8},
	{"raw", "deflate", {(const char *)hello_raw, sizeof(hello_raw)}, false, false, 0},
	{"brotli", "br", {(const char *)hello_br, sizeof(hello_br)}, false, false, 0},
	{"zstd", "zstd", {(const char *)hello_zst, sizeof(hello_zst)}, true, true, 0},
};

/* Of a decoder that has decoded others before; END has all of the input used. */
static enum body_result decode_by(struct body_decoder *decoder, const char *coding,
				  struct slice bytes, size_t piece_bytes, struct buf *out,
				  const char **reason)
{
	enum body_result result = BODY_MORE;
	struct slice piece;
	body_decoder_begin(decoder, coding_find(slice_of(coding)));
	buf_clear(out);
	*reason = NULL;
	while (result != BODY_BAD && result != BODY_END) {
		size_t len = bytes.len < piece_bytes ? bytes.len : piece_bytes;
		struct slice in = {bytes.data, len};
		result = body_decoder_next(decoder, &in, bytes.len == 0, &piece, reason);
		size_t used = len - in.len;
		bytes = (struct slice){bytes.data + used, bytes.len - used};
		if (result == BODY_PIECE)
			buf_append(out, piece.data, piece.len);
	}
	assert_true(result == BODY_BAD || !bytes.len);
	return result;
}

static enum body_result decode(const char *coding, struct slice bytes, size_t piece_bytes,
			       struct buf *out)
{
	const char *reason;
	struct body_decoder *decoder = body_decoder_new();
	enum body_result result = decode_by(decoder, coding, bytes, piece_bytes, out, &reason);
	body_decoder_free(decoder);
	return result;
}

static void test_the_table(void **state)
{
	static const char *const names[] = {"gzip",    "GZIP", "x-gzip", "X-GZip",
					    "deflate", "br",   "zstd"};
	static const char *const others[] = {"",    "identity", "gzip,br", "gz",    "brotli",
					     "zst", "compress", "x-br",    "gzip ", "b"};
	char text[CODING_NAMES_BYTES];
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_non_null(coding_find(slice_of(names[i])));
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_null(coding_find(slice_of(others[i])));
	assert_string_equal(coding_names(text), "gzip, deflate, br, zstd");
}

static void test_bodies_of_other_programs(void **state)
{
	struct buf out;
	(void)state;
	buf_init(&out, 1000);
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		struct slice bytes = samples[i].bytes;
		for (size_t piece = 1; piece <= bytes.len; piece++) {
			assert_int_equal(decode(samples[i].coding, bytes, piece, &out), BODY_END);
			assert_true(slice_equal(buf_slice(&out), SLICE("hello")));
		}
	}
	buf_release(&out);
}

static void test_bodies_of_nothing(void **state)
{
	static const uint8_t zlib[] = {0x78, 0x9c, 0x03, 0x00, 0x00, 0x00, 0x00, 0x01};
	struct buf out;
	(void)state;
	buf_init(&out, 1000);
	assert_int_equal(decode("deflate", BYTES(zlib), 1, &out), BODY_END);
	assert_int_equal(decode("deflate", SLICE("\x03\x00"), 1, &out), BODY_END);
	assert_int_equal(decode("br", SLICE("\x06"), 1, &out), BODY_END);
	assert_int_equal(out.len, 0);
	buf_release(&out);
}

/* Of gzip the bytes behind a member may be the next one. */
static void test_what_stands_behind_the_end(void **state)
{
	struct buf out, two;
	(void)state;
	buf_init(&out, 1000);
	buf_init(&two, 1000);
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		const char *coding = samples[i].coding;
		struct slice bytes = samples[i].bytes;
		for (size_t piece = 1; piece <= 2 * bytes.len; piece++) {
			enum body_result twice = samples[i].in_members ? BODY_END : BODY_BAD;
			buf_clear(&two);
			buf_append(&two, bytes.data, bytes.len);
			buf_append(&two, bytes.data, bytes.len);
			assert_int_equal(decode(coding, buf_slice(&two), piece, &out), twice);
			if (samples[i].in_members)
				assert_true(slice_equal(buf_slice(&out), SLICE("hellohello")));
			for (unsigned byte = 0; byte <= 0xff; byte += 0x0f) {
				buf_clear(&two);
				buf_append(&two, bytes.data, bytes.len);
				buf_append_char(&two, (char)byte);
				assert_int_equal(decode(coding, buf_slice(&two), piece, &out),
						 BODY_BAD);
			}
		}
	}
	buf_release(&two);
	buf_release(&out);
}

static void test_every_cut_is_noticed(void **state)
{
	struct body_decoder *decoder = body_decoder_new();
	struct buf out;
	const char *reason;
	(void)state;
	buf_init(&out, 1000);
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		for (size_t len = 0; len < samples[i].bytes.len; len++) {
			struct slice bytes = {samples[i].bytes.data, len};
			assert_int_equal(
				decode_by(decoder, samples[i].coding, bytes, 100, &out, &reason),
				BODY_BAD);
			assert_non_null(strstr(reason, "is cut off"));
		}
	}
	/* And the decoder is as good as new. */
	assert_int_equal(decode_by(decoder, "br", BYTES(hello_br), 100, &out, &reason), BODY_END);
	assert_int_equal(decode_by(decoder, "gzip", BYTES(hello_gz), 1, &out, &reason), BODY_END);
	body_decoder_free(decoder);
	buf_release(&out);
}

static void test_every_flip_is_noticed_where_there_is_a_checksum(void **state)
{
	struct buf out;
	(void)state;
	buf_init(&out, 100000);
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		struct slice bytes = samples[i].bytes;
		for (size_t at = 0; samples[i].checked && at < bytes.len; at++) {
			char flipped[sizeof(hello_gz)];
			memcpy(flipped, bytes.data, bytes.len);
			flipped[at] ^= (char)0x80;
			bool harmless = samples[i].harmless >> at & 1;
			assert_int_equal(decode(samples[i].coding,
						(struct slice){flipped, bytes.len}, 100, &out),
					 harmless ? BODY_END : BODY_BAD);
		}
	}
	buf_release(&out);
}

/* What is sent under the name of another coding. */
static void test_another_coding_than_it_says(void **state)
{
	static const struct {
		const char *coding;
		struct slice bytes;
	} cases[] = {
		{"gzip", {(const char *)hello_zlib, sizeof(hello_zlib)}},
		{"gzip", {(const char *)hello_raw, sizeof(hello_raw)}},
		{"gzip", {(const char *)hello_br, sizeof(hello_br)}},
		{"deflate", {(const char *)hello_gz, sizeof(hello_gz)}},
		{"br", {(const char *)hello_gz, sizeof(hello_gz)}},
		{"br", {(const char *)hello_zlib, sizeof(hello_zlib)}},
		{"br", {(const char *)hello_raw, sizeof(hello_raw)}},
		{"gzip", {"hello", 5}},
		{"deflate", {"hello", 5}},
		{"br", {"hello", 5}},
		{"gzip", {"{\"a\":1}", 7}},
		{"deflate", {"{\"a\":1}", 7}},
		{"br", {"{\"a\":1}", 7}},
		{"zstd", {"{\"a\":1}", 7}},
		{"zstd", {(const char *)hello_gz, sizeof(hello_gz)}},
		/* A window of 16 MB. */
		{"zstd", {"\x28\xb5\x2f\xfd\x00\x70\x01\x00\x00", 9}},
		/* zlib with a dictionary that nobody has (FDICT), and of a window of 64 KB. */
		{"deflate", {"\x78\xbb\x00\x00\x00\x01\x03\x00", 8}},
		{"deflate", {"\x88\x1c\x03\x00\x00\x00\x00\x01", 8}},
		/* The large windows that brotli has beyond its RFC. */
		{"br", {"\x11\x1e\x03", 3}},
	};
	struct buf out;
	(void)state;
	buf_init(&out, 1000);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(decode(cases[i].coding, cases[i].bytes, 100, &out), BODY_BAD);
	buf_release(&out);
}

/* The window is taken when the body says that it needs it, before its end has come; what is charged
 * for it does not depend on how the body came. */
static void test_memory_of_brotli(void **state)
{
	struct body_decoder *decoder = body_decoder_new();
	struct slice in = {(const char *)zeros_br, sizeof(zeros_br) - 1}, piece;
	struct buf out;
	const char *reason;
	(void)state;
	buf_init(&out, 32 << 20);
	body_decoder_begin(decoder, coding_find(SLICE("gzip")));
	assert_in_range(body_decoder_peak_bytes(decoder), 1000, 63 << 10);
	decode_by(decoder, "br", BYTES(hello_br), 100, &out, &reason);
	assert_in_range(body_decoder_peak_bytes(decoder), 1000, 63 << 10);
	body_decoder_begin(decoder, coding_find(SLICE("br")));
	body_decoder_next(decoder, &in, false, &piece, &reason);
	assert_in_range(body_decoder_peak_bytes(decoder), 16 << 20, 17 << 20);
	for (size_t piece_bytes = 1; piece_bytes < sizeof(zeros_br); piece_bytes++) {
		static size_t peak_bytes;
		assert_int_equal(
			decode_by(decoder, "br", BYTES(zeros_br), piece_bytes, &out, &reason),
			BODY_END);
		assert_int_equal(out.len, 16 << 20);
		assert_in_range(body_decoder_peak_bytes(decoder), 16 << 20, 17 << 20);
		if (piece_bytes > 1)
			assert_int_equal(body_decoder_peak_bytes(decoder), peak_bytes);
		peak_bytes = body_decoder_peak_bytes(decoder);
	}
	/* It is given back. */
	body_decoder_begin(decoder, coding_find(SLICE("deflate")));
	assert_in_range(body_decoder_peak_bytes(decoder), 1000, 63 << 10);
	body_decoder_free(decoder);
	buf_release(&out);
}

/* A bomb comes in pieces, so that whoever counts them can stop. */
static void test_pieces_are_small(void **state)
{
	struct body_decoder *decoder = body_decoder_new();
	struct slice in = BYTES(zeros_br), piece;
	const char *reason;
	size_t bytes = 0;
	(void)state;
	body_decoder_begin(decoder, coding_find(SLICE("br")));
	while (body_decoder_next(decoder, &in, true, &piece, &reason) == BODY_PIECE) {
		assert_in_range(piece.len, 1, 128 << 10);
		bytes += piece.len;
	}
	assert_int_equal(bytes, 16 << 20);
	body_decoder_free(decoder);
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
		assert_int_equal(decode("gzip", buf_slice(&packed), 5000, &out), BODY_END);
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
		cmocka_unit_test(test_the_table),
		cmocka_unit_test(test_bodies_of_other_programs),
		cmocka_unit_test(test_bodies_of_nothing),
		cmocka_unit_test(test_what_stands_behind_the_end),
		cmocka_unit_test(test_every_cut_is_noticed),
		cmocka_unit_test(test_every_flip_is_noticed_where_there_is_a_checksum),
		cmocka_unit_test(test_another_coding_than_it_says),
		cmocka_unit_test(test_memory_of_brotli),
		cmocka_unit_test(test_pieces_are_small),
		cmocka_unit_test(test_there_and_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
