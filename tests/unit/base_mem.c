/* Arenas and buffers, and that neither passes its maximum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"

/* What it takes at all is the same as of any other. */
static void small_arena_grows_like_any(UNUSED void **state)
{
	struct arena arena;
	char *pieces[64];
	arena_init_small(&arena, 10000);
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		pieces[i] = arena_alloc(&arena, 100);
		assert_non_null(pieces[i]);
		memset(pieces[i], (int)i, 100);
	}
	/* 64 pieces of 112, as they are aligned. */
	assert_int_equal(arena.used_bytes, 64 * 112);
	assert_null(arena_alloc(&arena, 10000 - 64 * 112 + 1));
	assert_non_null(arena_alloc(&arena, 10000 - 64 * 112));
	for (size_t i = 0; i < ARRAY_LEN(pieces); i++)
		for (size_t at = 0; at < 100; at++)
			assert_int_equal(pieces[i][at], (char)i);
	arena_release(&arena);
}

static void arena_gives_up_to_its_maximum(UNUSED void **state)
{
	struct arena arena;
	arena_init(&arena, 1000);
	assert_null(arena_alloc(&arena, 1001));
	assert_null(arena_alloc(&arena, SIZE_MAX));
	assert_non_null(arena_alloc(&arena, 1000));
	assert_null(arena_alloc(&arena, 1));
	arena_reset(&arena);
	assert_int_equal(arena.used_bytes, 0);
	assert_non_null(arena_alloc(&arena, 1000));
	arena_release(&arena);
}

/* Each piece takes 16 bytes at least, and that counts: 64 of them fill 1,024. */
static void small_pieces_count_what_they_take(UNUSED void **state)
{
	struct arena arena;
	size_t pieces = 0;
	arena_init(&arena, 1024);
	while (arena_alloc(&arena, 1))
		pieces++;
	assert_int_equal(pieces, 64);
	arena_release(&arena);
}

static void pieces_are_aligned_and_apart(UNUSED void **state)
{
	struct arena arena;
	uint8_t *pieces[300];
	arena_init(&arena, 1 << 20);
	for (size_t i = 0; i < 300; i++) {
		pieces[i] = arena_alloc(&arena, i + 1);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 16, 0);
		memset(pieces[i], (int)(i & 0xff), i + 1);
	}
	for (size_t i = 0; i < 300; i++) {
		assert_int_equal(pieces[i][0], i & 0xff);
		assert_int_equal(pieces[i][i], i & 0xff);
	}
	arena_release(&arena);
}

static void copies_end_in_zero(UNUSED void **state)
{
	struct arena arena;
	arena_init(&arena, 64);
	struct slice copy = arena_copy(&arena, SLICE("a\0b"));
	assert_int_equal(copy.len, 3);
	assert_memory_equal(copy.data, "a\0b", 4);
	copy = arena_copy(&arena, (struct slice){NULL, 0});
	assert_non_null(copy.data);
	assert_int_equal(copy.len, 0);
	assert_string_equal(arena_printf(&arena, "%d-%s", 7, "x"), "7-x");
	assert_null(arena_printf(&arena, "%100d", 7));
	assert_null(arena_copy(&arena, SLICE("0123456789012345678901234567890123456789")).data);
	arena_release(&arena);
}

static void zeroed_after_a_reset(UNUSED void **state)
{
	struct arena arena;
	arena_init(&arena, 4096);
	memset(arena_alloc(&arena, 256), 0xff, 256);
	arena_reset(&arena);
	const uint8_t *bytes = arena_zalloc(&arena, 256);
	for (size_t i = 0; i < 256; i++)
		assert_int_equal(bytes[i], 0);
	arena_release(&arena);
}

static void buf_grows_to_its_maximum(UNUSED void **state)
{
	struct buf buf;
	buf_init(&buf, 10);
	assert_int_equal(buf_append_text(&buf, "0123456789"), 0);
	assert_int_equal(buf_append_char(&buf, 'x'), ERR_LIMIT);
	assert_true(buf.failed);
	assert_int_equal(buf.len, 10);
	assert_memory_equal(buf.data, "0123456789", 10);
	assert_int_equal(buf_append(&buf, "", 0), 0);
	assert_true(buf.failed); /* sticky */
	buf_clear(&buf);
	assert_false(buf.failed);
	assert_null(buf_reserve(&buf, 11));
	assert_null(buf_reserve(&buf, SIZE_MAX));
	buf_release(&buf);
}

static void buf_prints_and_consumes(UNUSED void **state)
{
	struct buf buf;
	buf_init(&buf, 1000);
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_printf(&buf, "%02d,", i), 0);
	assert_int_equal(buf.len, 300);
	buf_consume(&buf, 297);
	assert_true(slice_equal(buf_slice(&buf), SLICE("99,")));
	buf_consume(&buf, 3);
	assert_int_equal(buf.len, 0);
	buf_release(&buf);
}

static void empty_buf_can_be_released(UNUSED void **state)
{
	struct buf buf;
	buf_init(&buf, 0);
	assert_int_equal(buf_append_char(&buf, 'x'), ERR_LIMIT);
	buf_release(&buf);
	buf_release(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena_gives_up_to_its_maximum),
		cmocka_unit_test(small_arena_grows_like_any),
		cmocka_unit_test(small_pieces_count_what_they_take),
		cmocka_unit_test(pieces_are_aligned_and_apart),
		cmocka_unit_test(copies_end_in_zero),
		cmocka_unit_test(zeroed_after_a_reset),
		cmocka_unit_test(buf_grows_to_its_maximum),
		cmocka_unit_test(buf_prints_and_consumes),
		cmocka_unit_test(empty_buf_can_be_released),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
