/* bzip2: what was packed by Python's bz2 module (`bz2.compress(b"hello\n").hex()`), and by libbz2
 * here where it has to be large. */
#include <bzlib.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "wire/bunzip2.h"

#define HELLO                                                                                      \
	"BZh91AY&SY\xc1\xc0\x80\xe2\x00\x00\x01\x41\x00\x00\x10\x02\x44\xa0\x00\x30\xcd\x00\xc3"   \
	"\x46\x29\x97\x17\x72\x45\x38\x50\x90\xc1\xc0\x80\xe2"
#define EMPTY "BZh9\x17\x72\x45\x38\x50\x90\x00\x00\x00\x00"

static void expect(struct slice packed, size_t max_bytes, int err, const char *text)
{
	struct buf out;
	struct errbuf e = {""};
	char *copy = mem_alloc(packed.len); /* of just that size, so that a byte too far is seen */
	if (packed.len)
		memcpy(copy, packed.data, packed.len);
	buf_init(&out, 1 << 20);
	assert_int_equal(bunzip2_whole((struct slice){copy, packed.len}, max_bytes, &out, &e), err);
	if (err) {
		assert_string_equal(e.text, text);
	} else {
		assert_int_equal(out.len, strlen(text));
		assert_memory_equal(out.data, text, out.len);
	}
	buf_release(&out);
	mem_free(copy);
}

static void what_another_program_packed(void **state)
{
	(void)state;
	expect(SLICE(HELLO), 100, 0, "hello\n");
	expect(SLICE(EMPTY), 100, 0, "");
	expect(SLICE(EMPTY), 0, 0, "");
}

static void streams_one_after_the_other(void **state)
{
	(void)state;
	expect(SLICE(HELLO HELLO), 100, 0, "hello\nhello\n");
	expect(SLICE(EMPTY HELLO EMPTY EMPTY), 100, 0, "hello\n");
	/* bzip2 says "trailing garbage after EOF ignored". */
	expect(SLICE(HELLO "\0\0\0"), 100, 0, "hello\n");
	expect(SLICE(HELLO "BZ"), 100, 0, "hello\n");
}

static void streams_have_a_maximum(void **state)
{
	struct buf packed;
	(void)state;
	buf_init(&packed, 1 << 20);
	for (int i = 0; i < BUNZIP2_STREAMS_MAX; i++)
		buf_append(&packed, EMPTY, sizeof(EMPTY) - 1);
	expect(buf_slice(&packed), 100, 0, "");
	buf_append(&packed, EMPTY, sizeof(EMPTY) - 1);
	expect(buf_slice(&packed), 100, ERR_LIMIT, "bzip2: more than 1000 streams");
	buf_release(&packed);
}

static void output_ends_at_the_limit(void **state)
{
	static const char too_much[] = "bzip2: unpacked it has more bytes than are taken";
	(void)state;
	expect(SLICE(HELLO), 6, 0, "hello\n");
	expect(SLICE(HELLO), 5, ERR_LIMIT, too_much);
	expect(SLICE(HELLO), 0, ERR_LIMIT, too_much);
	expect(SLICE(HELLO HELLO), 12, 0, "hello\nhello\n");
	expect(SLICE(HELLO HELLO), 11, ERR_LIMIT, too_much);
	expect(SLICE(HELLO EMPTY), 6, 0, "hello\n");
}

/* 100 MB of zeros are some 100 bytes. */
static void a_bomb_does_not_go_off(void **state)
{
	enum { ZEROS_BYTES = 100 << 20 };
	char *zeros = mem_zalloc(ZEROS_BYTES), packed[4096];
	unsigned len = sizeof(packed);
	struct buf out;
	(void)state;
	assert_int_equal(BZ2_bzBuffToBuffCompress(packed, &len, zeros, ZEROS_BYTES, 9, 0, 0),
			 BZ_OK);
	buf_init(&out, 200 << 20);
	assert_int_equal(bunzip2_whole((struct slice){packed, len}, 1 << 20, &out, NULL),
			 ERR_LIMIT);
	assert_true(out.len <= 1 << 20 && out.cap <= 4 << 20);
	buf_clear(&out);
	assert_int_equal(bunzip2_whole((struct slice){packed, len}, ZEROS_BYTES, &out, NULL), 0);
	assert_int_equal(out.len, ZEROS_BYTES);
	assert_memory_equal(out.data, zeros, ZEROS_BYTES);
	buf_release(&out);
	mem_free(zeros);
}

static void the_buffers_own_maximum_counts(void **state)
{
	struct buf out;
	(void)state;
	buf_init(&out, 9);
	buf_append_text(&out, "abc");
	assert_int_equal(bunzip2_whole(SLICE(HELLO), 1 << 20, &out, NULL), 0);
	assert_true(slice_equal(buf_slice(&out), SLICE("abchello\n")));
	assert_int_equal(bunzip2_whole(SLICE(HELLO), 1 << 20, &out, NULL), ERR_LIMIT);
	assert_int_equal(bunzip2_whole(SLICE(EMPTY), 1 << 20, &out, NULL), 0);
	buf_release(&out);
}

static void what_was_cut_is_refused(void **state)
{
	static const char whole[] = HELLO HELLO;
	(void)state;
	expect((struct slice){NULL, 0}, 100, ERR_INVALID, "not bzip2: it does not begin with BZh");
	expect(SLICE("BZ"), 100, ERR_INVALID, "not bzip2: it does not begin with BZh");
	expect(SLICE("hello"), 100, ERR_INVALID, "not bzip2: it does not begin with BZh");
	for (size_t cut = 3; cut < sizeof(whole) - 1; cut++) {
		size_t one = (sizeof(whole) - 1) / 2;
		if (cut < one || cut >= one + 3)
			expect((struct slice){whole, cut}, 100, ERR_INVALID,
			       "bzip2: it is cut off before its end");
	}
}

static void damage_is_found(void **state)
{
	static const char whole[] = HELLO;
	(void)state;
	for (size_t at = 3; at < sizeof(whole) - 1; at++) {
		char bytes[sizeof(whole)];
		struct buf out;
		memcpy(bytes, whole, sizeof(whole));
		bytes[at] = (char)(bytes[at] ^ 0x10);
		buf_init(&out, 100);
		/* Damage may also make it longer. */
		int err = bunzip2_whole((struct slice){bytes, sizeof(whole) - 1}, 100, &out, NULL);
		assert_true(err == ERR_INVALID || err == ERR_LIMIT);
		buf_release(&out);
	}
	expect(SLICE("BZh0"), 100, ERR_INVALID, "bzip2: it is damaged (libbz2: -5)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_another_program_packed),
		cmocka_unit_test(streams_one_after_the_other),
		cmocka_unit_test(streams_have_a_maximum),
		cmocka_unit_test(output_ends_at_the_limit),
		cmocka_unit_test(a_bomb_does_not_go_off),
		cmocka_unit_test(the_buffers_own_maximum_counts),
		cmocka_unit_test(what_was_cut_is_refused),
		cmocka_unit_test(damage_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
