/* Cells as they lie on disk, byte by byte: what the header of each kind has, what earlier programs
 * wrote, and what is damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hex.h"
#include "store/lmdb/cell.h"

#define KEY                                                                                        \
	SLICE("\x0c"                                                                               \
	      "0123456789abcdef"                                                                   \
	      "column")

/* doc/format-store.md, Stamps. Numbers are little endian; the checksum in front is left out. */
static const struct {
	struct cell cell;
	const char *hex;
} cells[] = {
	/* Of a log, and a set. */
	{{.inlined = {"abc", 3}}, "04 616263"},
	{{.inlined = {"", 0}}, "04"},
	/* Stamped: one that stays, one that expires, one that was deleted. */
	{{.stamp_us = 0x0102, .inlined = {"v", 1}}, "0c 0201000000000000 76"},
	{{.stamp_us = -1, .expires_ms = 3, .inlined = {"v", 1}},
	 "1c ffffffffffffffff 0300000000000000 76"},
	{{.flags = CELL_DELETED, .stamp_us = 5, .expires_ms = 4, .inlined = {"", 0}},
	 "1d 0500000000000000 0400000000000000"},
	/* A stamp of 0 is as good as none. */
	{{.expires_ms = 3, .inlined = {"v", 1}}, "14 0300000000000000 76"},
	/* Conditional: for good, and for a time. */
	{{.version = 7, .inlined = {"v", 1}}, "24 0700000000000000 76"},
	{{.version = 7, .expires_ms = 3, .inlined = {"v", 1}},
	 "34 0300000000000000 0700000000000000 76"},
	/* A long one of each kind lies in a blob. */
	{{.flags = CELL_IN_BLOB, .stamp_us = 5, .blob = 9, .blob_len = 8192},
	 "0e 0500000000000000 0900000000000000 0020000000000000"},
};

static size_t from_hex(const char *hex, uint8_t to[PAGE_VALUE_MAX_BYTES])
{
	size_t len = RECORD_HEADER_BYTES + hex_to(hex, to + RECORD_HEADER_BYTES).len;
	record_seal(KEY, to, len);
	return len;
}

static void expect_same(const struct cell *a, const struct cell *b)
{
	assert_int_equal(a->flags, b->flags);
	assert_int_equal(a->stamp_us, b->stamp_us);
	assert_int_equal(a->expires_ms, b->expires_ms);
	assert_int_equal(a->version, b->version);
	assert_int_equal(a->blob, b->blob);
	assert_int_equal(a->blob_len, b->blob_len);
	assert_true(slice_equal(a->inlined, b->inlined));
}

static void a_header_has_what_is_there(UNUSED void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		uint8_t expected[PAGE_VALUE_MAX_BYTES], made[PAGE_VALUE_MAX_BYTES];
		struct cell cell;
		size_t len = from_hex(cells[i].hex, expected);
		assert_int_equal(cell_encode(KEY, &cells[i].cell, made), len);
		assert_memory_equal(made, expected, len);
		assert_int_equal(cell_parse(KEY, (struct slice){(char *)made, len}, &cell), 0);
		expect_same(&cell, &cells[i].cell);
	}
}

/* Every field, whatever the kind. */
static void a_cell_of_before_is_read(UNUSED void **state)
{
	static const struct {
		const char *hex;
		struct cell cell;
	} old[] = {
		{"00 0500000000000000 0000000000000000 0000000000000000 7676",
		 {.stamp_us = 5, .inlined = {"vv", 2}}},
		{"01 0500000000000000 0600000000000000 0000000000000000",
		 {.flags = CELL_DELETED, .stamp_us = 5, .expires_ms = 6, .inlined = {"", 0}}},
		{"02 0500000000000000 0600000000000000 0700000000000000 0900000000000000 "
		 "0020000000000000",
		 {.flags = CELL_IN_BLOB,
		  .stamp_us = 5,
		  .expires_ms = 6,
		  .version = 7,
		  .blob = 9,
		  .blob_len = 8192}},
	};
	for (size_t i = 0; i < ARRAY_LEN(old); i++) {
		uint8_t bytes[PAGE_VALUE_MAX_BYTES];
		struct cell cell;
		size_t len = from_hex(old[i].hex, bytes);
		assert_int_equal(cell_parse(KEY, (struct slice){(char *)bytes, len}, &cell), 0);
		expect_same(&cell, &old[i].cell);
	}
}

/* Whole by its checksum, and too short for what its flags say. */
static void a_header_that_is_cut_is_damage(UNUSED void **state)
{
	static const char *const cut[] = {
		"",
		"00",
		"00 0500000000000000 0000000000000000 00000000000000",
		"0c 05000000000000",
		"1c 0500000000000000 03000000000000",
		"34 0300000000000000",
		"06 0900000000000000 00200000000000",
		/* Longer than any value. */
		"06 0900000000000000 0100000100000000",
	};
	for (size_t i = 0; i < ARRAY_LEN(cut); i++) {
		uint8_t bytes[PAGE_VALUE_MAX_BYTES];
		struct cell cell;
		size_t len = from_hex(cut[i], bytes);
		assert_int_equal(cell_parse(KEY, (struct slice){(char *)bytes, len}, &cell),
				 ERR_DAMAGED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_has_what_is_there),
		cmocka_unit_test(a_cell_of_before_is_read),
		cmocka_unit_test(a_header_that_is_cut_is_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
