/* The message of a poll: bytes worked by hand (doc/format-poll.md), what no encoder wrote, limits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/mem.h"
#include "model/poll.h"

/* The example of doc/format-poll.md; its checksum from another program. */
static const uint8_t example[] = {
	0x47, 0x50, 0x01, 0x01, 0x98, 0xd6, 0x8c, 0x78, 0x0d, 0x00, 0x00, 0x00, /* header */
	0x02, 0x01, 0x01, 0x72, 0x01, 0x53, 0x02, 0x69, 0x6e,                   /* names */
	0x01, 0x01, 0x61, 0x00,                                                 /* rows */
	0xe8, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* time, part, texts */
	0x04, 0x01,                                                 /* times of rows */
	0xff, 0x03, 0xac, 0x02, 0x00,                               /* the column */
};
enum { VALUES_AT = 25, COLUMN_AT = 37 };

struct rig {
	struct poll_builder builder;
	struct arena arena;
	struct buf out;
	struct errbuf e;
	struct poll poll;
	struct poll_names names;
	struct poll_values values;
};

static int setup(void **state)
{
	struct rig *rig = mem_zalloc(sizeof(*rig));
	poll_builder_init(&rig->builder);
	arena_init(&rig->arena, POLL_ARENA_MAX_BYTES);
	buf_init(&rig->out, POLL_BYTES_MAX + 1000);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;
	poll_builder_release(&rig->builder);
	arena_release(&rig->arena);
	buf_release(&rig->out);
	mem_free(rig);
	return 0;
}

static void begin(struct rig *rig, const char *device, const char *oidset, int64_t ts_ms)
{
	assert_int_equal(
		poll_begin(&rig->builder, slice_of(device), slice_of(oidset), ts_ms, &rig->e), 0);
}

static void column(struct rig *rig, const char *name)
{
	assert_int_equal(poll_add_column(&rig->builder, slice_of(name), &rig->e), 0);
}

static void row(struct rig *rig, const char *part, int64_t ts_ms)
{
	struct slice parts[1] = {slice_of(part ? part : "")};
	assert_int_equal(poll_add_row(&rig->builder, parts, part != NULL, ts_ms, &rig->e), 0);
}

/* All three steps; the first error. */
static int decode(struct rig *rig, struct slice message)
{
	rig->e.text[0] = 0;
	int err = poll_open(message, &rig->poll, &rig->e);
	if (!err)
		err = poll_decode_names(&rig->poll, &rig->arena, &rig->names, &rig->e);
	if (!err)
		err = poll_decode_values(&rig->poll, &rig->arena, &rig->values, &rig->e);
	return err;
}

static void encode(struct rig *rig)
{
	buf_clear(&rig->out);
	assert_int_equal(poll_encode(&rig->builder, 0, true, &rig->out, &rig->e), 0);
}

static void assert_slice(struct slice s, const char *text)
{
	assert_int_equal(s.len, strlen(text));
	assert_memory_equal(s.data, text, s.len);
}

/* The bytes with a right checksum, in a piece of memory of just their size. */
static int decode_changed(struct rig *rig, const uint8_t *bytes, size_t len)
{
	char *copy = mem_alloc(len);
	memcpy(copy, bytes, len);
	uint32_t crc = len < 8 ? 0 : crc32c(crc32c(0, copy, 4), copy + 8, len - 8);
	if (len >= 8)
		memcpy(copy + 4, &crc, 4);
	arena_reset(&rig->arena);
	int err = decode(rig, (struct slice){copy, len});
	mem_free(copy);
	return err;
}

static void the_example_is_written_as_the_document_has_it(void **state)
{
	struct rig *rig = *state;
	begin(rig, "r", "S", 1000);
	column(rig, "in");
	row(rig, "a", 1002);
	row(rig, NULL, 999);
	poll_set(&rig->builder, 0, 0, value_u64(300));
	encode(rig);
	assert_int_equal(rig->out.len, sizeof(example));
	assert_memory_equal(rig->out.data, example, sizeof(example));
}

static void the_example_is_read(void **state)
{
	struct rig *rig = *state;
	assert_int_equal(decode(rig, (struct slice){(const char *)example, sizeof(example)}), 0);
	assert_slice(rig->poll.device, "r");
	assert_slice(rig->poll.oidset, "S");
	assert_int_equal(rig->poll.ts_ms, 1000);
	assert_int_equal(rig->poll.part, 0);
	assert_true(rig->poll.last);
	assert_int_equal(rig->poll.names.len, 13);
	assert_ptr_equal(rig->poll.names.data, example + 12);
	assert_slice(rig->names.columns[0], "in");
	assert_int_equal(rig->names.rows[0].part_count, 1);
	assert_slice(rig->names.rows[0].parts[0], "a");
	assert_int_equal(rig->names.rows[1].part_count, 0);
	assert_int_equal(rig->values.row_ts_ms[0], 1002);
	assert_int_equal(rig->values.row_ts_ms[1], 999);
	assert_true(value_identical(rig->values.values[0], value_u64(300)));
	assert_int_equal(rig->values.values[1].type, VALUE_NONE);
	assert_int_equal(rig->values.text_count, 0);
}

static void every_type_comes_back_to_the_bit(void **state)
{
	struct rig *rig = *state;
	static const uint64_t payload = UINT64_C(0x7ff8deadbeefcafe);
	const struct value list[] = {
		value_u64(0),
		value_u64(127),
		value_u64(128),
		value_u64(1ull << 49),
		value_u64((1ull << 56) - 1),
		value_u64(1ull << 56),
		value_u64(UINT64_MAX),
		value_i64(INT64_MIN),
		value_i64(-1),
		value_i64(INT64_MAX),
		value_f64(-0.0),
		{payload, VALUE_F64},
		{0, VALUE_NONE},
	};
	/* Column 0 mixed; 1 all unsigned; 2 all signed; 3 all doubles; 4 nothing; 5
	 * integers, and here and there nothing. */
	static const enum value_type integers[] = {VALUE_NONE, VALUE_I64, VALUE_U64};
	begin(rig, "r", "S", -5);
	for (size_t c = 0; c < 6; c++)
		column(rig, "c");
	for (size_t r = 0; r < ARRAY_LEN(list); r++) {
		row(rig, "a", r & 1 ? INT64_MAX : INT64_MIN);
		poll_set(&rig->builder, r, 0, list[r]);
		for (unsigned c = 1; c < 4; c++) {
			static const enum value_type types[] = {0, VALUE_U64, VALUE_I64, VALUE_F64};
			poll_set(&rig->builder, r, c, (struct value){list[r].bits, types[c]});
		}
		if (r % 3)
			poll_set(&rig->builder, r, 5,
				 (struct value){list[r].bits, integers[r % 3]});
	}
	encode(rig);
	assert_int_equal(decode(rig, buf_slice(&rig->out)), 0);
	for (size_t r = 0; r < ARRAY_LEN(list); r++) {
		assert_int_equal(rig->values.row_ts_ms[r], r & 1 ? INT64_MAX : INT64_MIN);
		const struct value *got = &rig->values.values[r * 6];
		assert_true(value_identical(got[0], list[r]));
		for (size_t c = 1; c < 4; c++)
			assert_true(got[c].bits == list[r].bits);
		assert_true(got[1].type == VALUE_U64 && got[2].type == VALUE_I64 &&
			    got[3].type == VALUE_F64 && got[4].type == VALUE_NONE);
		assert_int_equal(got[5].type, integers[r % 3]);
		assert_true(got[5].bits == (r % 3 ? list[r].bits : 0));
	}
}

static void texts_stand_aside(void **state)
{
	struct rig *rig = *state;
	begin(rig, "r", "S", 0);
	column(rig, "n");
	column(rig, "state");
	row(rig, "a", 0);
	row(rig, "b", 0);
	poll_set(&rig->builder, 0, 0, value_f64(1.5));
	assert_int_equal(poll_set_text(&rig->builder, 1, 0, SLICE("null"), true, &rig->e), 0);
	assert_int_equal(poll_set_text(&rig->builder, 0, 1, SLICE("up"), false, &rig->e), 0);
	assert_int_equal(poll_set_text(&rig->builder, 1, 1, SLICE(""), false, &rig->e), 0);
	encode(rig);
	assert_int_equal(decode(rig, buf_slice(&rig->out)), 0);
	const struct poll_text *texts = rig->values.texts;
	assert_int_equal(rig->values.text_count, 3);
	assert_true(texts[0].row == 1 && texts[0].column == 0 && texts[0].json);
	assert_slice(texts[0].text, "null");
	assert_true(texts[1].row == 0 && texts[1].column == 1 && !texts[1].json);
	assert_slice(texts[1].text, "up");
	assert_true(texts[2].row == 1 && texts[2].text.len == 0);
	assert_int_equal(rig->values.values[0].type, VALUE_F64);
	for (size_t i = 1; i < 4; i++)
		assert_int_equal(rig->values.values[i].type, VALUE_NONE);
}

static void names_are_equal_while_the_rows_are(void **state)
{
	struct rig *rig = *state;
	struct poll first;
	struct buf other;
	buf_init(&other, 10000);
	for (int poll = 0; poll < 3; poll++) {
		begin(rig, "r", "S", poll * 30000);
		column(rig, "in");
		row(rig, "a", poll * 30000 + poll);
		row(rig, poll == 2 ? "c" : "b", poll * 30000);
		poll_set(&rig->builder, 0, 0, value_u64((uint64_t)poll * 1000000));
		encode(rig);
		if (poll == 0) {
			buf_append(&other, rig->out.data, rig->out.len);
			assert_int_equal(poll_open(buf_slice(&other), &first, &rig->e), 0);
			continue;
		}
		assert_int_equal(poll_open(buf_slice(&rig->out), &rig->poll, &rig->e), 0);
		assert_int_equal(slice_equal(first.names, rig->poll.names), poll == 1);
	}
	buf_release(&other);
}

static void a_message_cut_anywhere_is_refused(void **state)
{
	struct rig *rig = *state;
	for (size_t len = 0; len < sizeof(example); len++) {
		assert_int_equal(decode_changed(rig, example, len), ERR_INVALID);
		assert_true(rig->e.text[0]);
	}
	uint8_t longer[sizeof(example) + 1] = {0};
	memcpy(longer, example, sizeof(example));
	assert_int_equal(decode_changed(rig, longer, sizeof(longer)), ERR_INVALID);
}

static void a_bit_that_turned_is_noticed(void **state)
{
	struct rig *rig = *state;
	for (size_t bit = 0; bit < 8 * sizeof(example); bit++) {
		uint8_t bytes[sizeof(example)];
		memcpy(bytes, example, sizeof(example));
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		arena_reset(&rig->arena);
		int err = decode(rig, (struct slice){(char *)bytes, sizeof(bytes)});
		assert_int_equal(err, bit / 8 == 2 ? ERR_VERSION : ERR_INVALID);
	}
}

static void what_no_encoder_writes_is_refused(void **state)
{
	struct rig *rig = *state;
	const struct {
		size_t at;
		uint8_t byte;
	} list[] = {
		{8, 0xff},
		{11, 0x80}, /* names longer than the message */
		{12, 3},
		{12, 1}, /* rows: one more, one less */
		{13, 2},
		{13, 0}, /* columns likewise */
		{14, 0}, /* no device */
		{16, 0}, /* no OIDSet */
		{18, 0}, /* no name of a column */
		{21, 5},
		{21, 0},               /* parts of a path */
		{22, 2},               /* a part longer than what is there */
		{24, 1},               /* a part that is not there */
		{VALUES_AT + 9, 1},    /* one text, where there is none */
		{VALUES_AT + 9, 0x7f}, /* more texts than bytes */
		{COLUMN_AT, 6},
		{COLUMN_AT, 254},
		{COLUMN_AT + 1, 4},
		{COLUMN_AT + 1, 6},
		{COLUMN_AT + 4, 3},
		{COLUMN_AT + 4, 255},
	};
	assert_int_equal(decode_changed(rig, example, sizeof(example)), 0);
	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		uint8_t bytes[sizeof(example)];
		memcpy(bytes, example, sizeof(example));
		bytes[list[i].at] = list[i].byte;
		assert_int_equal(decode_changed(rig, bytes, sizeof(bytes)), ERR_INVALID);
		assert_true(rig->e.text[0]);
	}
}

/* 65,536 rows of 256 columns, said in few bytes, would be 256 MB of values. */
static void a_small_message_takes_no_great_memory(void **state)
{
	struct rig *rig = *state;
	static const uint8_t head[] = {
		0x47, 0x50, 1,    1, 0,    0, 0, 0,   0x0a, 0,   0,
		0,    0x80, 0x80, 4, 0x80, 2, 1, 'r', 1,    'S', 0,
	};
	uint8_t bytes[100] = {0};
	memcpy(bytes, head, sizeof(head));
	assert_int_equal(decode_changed(rig, bytes, sizeof(bytes)), ERR_INVALID);
	bytes[15] = 16; /* 65,536 x 16 is allowed, but has no bytes */
	bytes[16] = 1;
	bytes[17] = 'r';
	assert_int_equal(decode_changed(rig, bytes, sizeof(bytes)), ERR_INVALID);
	assert_true(rig->arena.used_bytes < 1000);
}

static void limits_hold_at_their_edge(void **state)
{
	struct rig *rig = *state;
	struct poll_builder *b = &rig->builder;
	static char text[POLL_TEXT_MAX_BYTES + 1];
	struct slice parts[POLL_PARTS_MAX + 1] = {{"", 0}, {"", 0}, {"", 0}, {"", 0}, {"", 0}};
	memset(text, 'x', sizeof(text));
	assert_int_equal(poll_begin(b, SLICE(""), SLICE("S"), 0, &rig->e), ERR_INVALID);
	assert_int_equal(poll_begin(b, SLICE("r"), (struct slice){text, 256}, 0, &rig->e),
			 ERR_INVALID);
	assert_int_equal(poll_begin(b, (struct slice){text, 255}, SLICE("S"), 0, &rig->e), 0);
	assert_int_equal(poll_add_column(b, SLICE(""), &rig->e), ERR_INVALID);
	assert_int_equal(poll_add_column(b, (struct slice){text, 257}, &rig->e), ERR_INVALID);
	assert_int_equal(poll_add_column(b, (struct slice){text, 256}, &rig->e), 0);
	assert_int_equal(poll_add_row(b, parts, 5, 0, &rig->e), ERR_INVALID);
	parts[3] = (struct slice){text, 1025};
	assert_int_equal(poll_add_row(b, parts, 4, 0, &rig->e), ERR_INVALID);
	parts[3] = (struct slice){text, 1024};
	assert_int_equal(poll_add_row(b, parts, 4, 0, &rig->e), 0);
	assert_int_equal(poll_set_text(b, 0, 0, (struct slice){text, sizeof(text)}, false, &rig->e),
			 ERR_INVALID);
	assert_int_equal(
		poll_set_text(b, 0, 0, (struct slice){text, sizeof(text) - 1}, false, &rig->e), 0);
	encode(rig);
	assert_int_equal(decode(rig, buf_slice(&rig->out)), 0);
	assert_int_equal(rig->names.rows[0].parts[3].len, 1024);
	assert_int_equal(rig->values.texts[0].text.len, POLL_TEXT_MAX_BYTES);
}

static void the_largest_poll_fits_and_no_larger(void **state)
{
	struct rig *rig = *state;
	struct poll_builder *b = &rig->builder;
	struct slice part = SLICE("ge-0/0/0");
	begin(rig, "r", "S", 0);
	for (size_t c = 0; c < 16; c++)
		column(rig, "c");
	for (size_t r = 0; r < POLL_ROWS_MAX; r++)
		assert_int_equal(poll_add_row(b, &part, 1, 0, &rig->e), 0);
	assert_int_equal(poll_add_row(b, &part, 1, 0, &rig->e), ERR_LIMIT);
	encode(rig);
	assert_int_equal(decode(rig, buf_slice(&rig->out)), 0);
	/* 65,536 x 16 doubles are 8 MB, and fit; as text of 15 bytes each they do not. */
	for (size_t i = 0; i < POLL_CELLS_MAX; i++)
		poll_set(b, i / 16, i % 16, value_f64((double)i));
	encode(rig);
	arena_reset(&rig->arena);
	assert_int_equal(decode(rig, buf_slice(&rig->out)), 0);
	assert_true(value_identical(rig->values.values[777777], value_f64(777777)));
	for (size_t i = 0; i < POLL_CELLS_MAX; i++)
		assert_int_equal(
			poll_set_text(b, i / 16, i % 16, SLICE("123456789012345"), false, &rig->e),
			0);
	buf_clear(&rig->out);
	buf_append_text(&rig->out, "before");
	assert_int_equal(poll_encode(b, 0, true, &rig->out, &rig->e), ERR_LIMIT);
	assert_slice(buf_slice(&rig->out), "before");
	begin(rig, "r", "S", 0);
	for (size_t c = 0; c < POLL_COLUMNS_MAX; c++)
		column(rig, "c");
	assert_int_equal(poll_add_column(b, SLICE("c"), &rig->e), ERR_LIMIT);
	for (size_t r = 0; r < POLL_CELLS_MAX / POLL_COLUMNS_MAX; r++)
		assert_int_equal(poll_add_row(b, &part, 1, 0, &rig->e), 0);
	assert_int_equal(poll_add_row(b, &part, 1, 0, &rig->e), ERR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_example_is_written_as_the_document_has_it,
						setup, teardown),
		cmocka_unit_test_setup_teardown(the_example_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(every_type_comes_back_to_the_bit, setup, teardown),
		cmocka_unit_test_setup_teardown(texts_stand_aside, setup, teardown),
		cmocka_unit_test_setup_teardown(names_are_equal_while_the_rows_are, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_message_cut_anywhere_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_bit_that_turned_is_noticed, setup, teardown),
		cmocka_unit_test_setup_teardown(what_no_encoder_writes_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(a_small_message_takes_no_great_memory, setup,
						teardown),
		cmocka_unit_test_setup_teardown(limits_hold_at_their_edge, setup, teardown),
		cmocka_unit_test_setup_teardown(the_largest_poll_fits_and_no_larger, setup,
						teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
