/* esmond's queue message: its own data, both shapes, what is malformed, and back out again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/esmond_message.h"
#include "wire/json.h"

struct rig {
	struct poll_builder builder;
	struct arena arena;
	struct buf bytes, json;
	struct errbuf e;
	struct poll poll;
	struct poll_names names;
	struct poll_values values;
};

static int setup(void **state)
{
	struct rig *rig = mem_zalloc(sizeof(*rig));
	poll_builder_init(&rig->builder);
	arena_init(&rig->arena, 64 << 20);
	buf_init(&rig->bytes, POLL_BYTES_MAX);
	buf_init(&rig->json, POLL_BYTES_MAX);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;
	poll_builder_release(&rig->builder);
	arena_release(&rig->arena);
	buf_release(&rig->bytes);
	buf_release(&rig->json);
	mem_free(rig);
	return 0;
}

static int read_message(struct rig *rig, struct slice json)
{
	rig->e.text[0] = 0;
	int err = esmond_message_read(json, &rig->arena, &rig->builder, &rig->e);
	if (err)
		return err;
	buf_clear(&rig->bytes);
	assert_int_equal(poll_encode(&rig->builder, 0, true, &rig->bytes, &rig->e), 0);
	assert_int_equal(poll_open(buf_slice(&rig->bytes), &rig->poll, &rig->e), 0);
	assert_int_equal(poll_decode_names(&rig->poll, &rig->arena, &rig->names, &rig->e), 0);
	assert_int_equal(poll_decode_values(&rig->poll, &rig->arena, &rig->values, &rig->e), 0);
	return 0;
}

static void read_good(struct rig *rig, const char *json)
{
	if (read_message(rig, slice_of(json)))
		fail_msg("%s", rig->e.text);
}

static void assert_slice(struct slice s, const char *text)
{
	assert_int_equal(s.len, strlen(text));
	assert_memory_equal(s.data, text, s.len);
}

#define HEAD "{\"oidset_name\":\"S\",\"device_name\":\"r\",\"oid_name\":\"o\",\"timestamp\":9.75,"

static void check_alu(struct rig *rig, size_t number, int64_t *sum, uint64_t *last)
{
	assert_slice(rig->poll.device, "rtr_alu");
	assert_slice(rig->poll.oidset, "ALUFastPollHC");
	assert_slice(rig->names.columns[0], "ifHCInOctets");
	assert_int_equal(rig->poll.row_count, 1);
	assert_int_equal(rig->names.rows[0].part_count, 1);
	assert_slice(rig->names.rows[0].parts[0], "1/1/1");
	assert_int_equal(rig->values.values[0].type, VALUE_U64);
	uint64_t value = rig->values.values[0].bits;
	if (number == 0) {
		assert_int_equal(rig->poll.ts_ms, 1343955624000);
		assert_int_equal(value, 11731145);
	} else {
		*sum += (int64_t)(value - *last);
	}
	if (rig->poll.ts_ms == 1343957211000)
		assert_int_equal(value - *last, 736);
	*last = value;
}

static void load(const char *path, struct buf *out)
{
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	char *room = buf_reserve(out, out->max);
	assert_non_null(room);
	out->len = fread(room, 1, out->max, file);
	assert_true(feof(file));
	fclose(file);
}

/* 118 polls whose 117 deltas sum to 8656, the largest 736 at 1343957211: read, written, read. */
static void the_polls_of_rtr_alu_go_in_and_out(void **state)
{
	struct rig *rig = *state;
	struct buf file;
	struct arena arena;
	struct json_reader reader;
	size_t count = 0;
	int64_t sum = 0, sum_again = 0;
	uint64_t last = 0, last_again = 0;
	buf_init(&file, 1 << 20);
	arena_init(&arena, 1 << 20);
	load(TESTS_DATA "/rtr_alu_ifhcin_long.json", &file);
	json_reader_init(&reader, buf_slice(&file), &arena);
	assert_int_equal(json_next(&reader), JSON_ARRAY_BEGIN);
	enum json_event event;
	while ((event = json_next(&reader)) == JSON_OBJECT_BEGIN) {
		size_t from = reader.offset;
		assert_true(json_skip(&reader, event));
		arena_reset(&rig->arena);
		if (read_message(rig, json_text_from(&reader, from)))
			fail_msg("%s", rig->e.text);
		check_alu(rig, count, &sum, &last);
		buf_clear(&rig->json);
		assert_int_equal(
			esmond_message_write(&rig->poll, &rig->names, &rig->values, 0, &rig->json),
			0);
		assert_int_equal(read_message(rig, buf_slice(&rig->json)), 0);
		check_alu(rig, count, &sum_again, &last_again);
		count++;
	}
	assert_int_equal(event, JSON_ARRAY_END);
	assert_int_equal(count, 118);
	assert_int_equal(sum, 8656);
	assert_int_equal(sum_again, 8656);
	buf_release(&file);
	arena_release(&arena);
}

static void times_are_floored_to_seconds(void **state)
{
	struct rig *rig = *state;
	read_good(rig, HEAD "\"data\":[]}");
	assert_int_equal(rig->poll.ts_ms, 9000);
	assert_int_equal(rig->poll.row_count, 0);
	read_good(rig, "{\"data\":[],\"timestamp\":1343955624.999999,\"oid_name\":\"o\","
		       "\"device_name\":\"r\",\"oidset_name\":\"S\"}");
	assert_int_equal(rig->poll.ts_ms, 1343955624000);
}

static void an_OID_leaves_the_path_where_a_correlator_put_it(void **state)
{
	struct rig *rig = *state;
	read_good(rig, HEAD "\"data\":[[[\"o\"],1],[[\"o\",\"x\"],2],[[\"x\",\"o\",\"q\"],3],"
			    "[[\"f\",\"g\",\"h\"],4],[[\"o\",\"o\"],5],[[\"a\",\"b\",\"o\",\"c\"],"
			    "6],[[],7],[[\"o\",17],8]]}");
	static const char *paths[][5] = {
		{0}, {"x"}, {"x", "q"}, {"f", "g", "h"}, {"o"}, {"a", "b", "o", "c"}, {0}, {"17"},
	};
	assert_int_equal(rig->poll.row_count, ARRAY_LEN(paths));
	for (size_t r = 0; r < ARRAY_LEN(paths); r++) {
		size_t i = 0;
		for (; paths[r][i]; i++)
			assert_slice(rig->names.rows[r].parts[i], paths[r][i]);
		assert_int_equal(rig->names.rows[r].part_count, i);
		assert_true(value_identical(rig->values.values[r], value_u64(r + 1)));
	}
}

static void values_keep_what_they_are(void **state)
{
	struct rig *rig = *state;
	read_good(rig, HEAD "\"data\":[[[\"o\",\"a\"],18446744073709551615],[[\"o\",\"a\"],-1],"
			    "[[\"o\",\"a\"],1.5],[[\"o\",\"a\"],null],[[\"o\",\"a\"],\"up\"],"
			    "[[\"o\",\"a\"],true],[[\"o\",\"a\"],{\"a\": 1.50}],"
			    "[[\"o\",\"a\"],18446744073709551616],[[\"o\",\"a\"],1e3]]}");
	const struct value *v = rig->values.values;
	assert_int_equal(rig->poll.row_count, 9);
	assert_true(value_identical(v[0], value_u64(UINT64_MAX)));
	assert_true(value_identical(v[1], value_i64(-1)));
	assert_true(value_identical(v[2], value_f64(1.5)));
	assert_true(value_identical(v[8], value_f64(1000)));
	for (size_t i = 3; i < 8; i++)
		assert_int_equal(v[i].type, VALUE_NONE);
	const struct poll_text *t = rig->values.texts;
	assert_int_equal(rig->values.text_count, 4);
	assert_true(t[0].row == 4 && !t[0].json && t[1].json && t[2].json && t[3].json);
	assert_slice(t[0].text, "up");
	assert_slice(t[1].text, "true");
	assert_slice(t[2].text, "{\"a\": 1.50}");
	assert_slice(t[3].text, "18446744073709551616");
}

static const char walk[] =
	"{\"oidset_name\":\"IfRefPoll\",\"device_name\":\"r\",\"oid_name\":\"\",\"timestamp\":1.0,"
	"\"data\":{\"ifAlias\":[[\"ifAlias.17\",\"north\"],[\"ifAlias.2\",\"\"]],"
	"\"ipAdEntIfIndex\":[[\"ipAdEntIfIndex.10.0.0.1\",17]],\"none\":[],"
	"\"ifMtu\":[[\"ifMtu.2\",1500],[\"ifMtu.17\",9000]]},\"metadata\":{}}";

static void an_uncorrelated_message_is_a_table(void **state)
{
	struct rig *rig = *state;
	read_good(rig, walk);
	assert_int_equal(rig->poll.column_count, 4);
	assert_int_equal(rig->poll.row_count, 3);
	assert_slice(rig->names.columns[2], "none");
	assert_slice(rig->names.rows[0].parts[0], "17");
	assert_slice(rig->names.rows[1].parts[0], "2");
	assert_slice(rig->names.rows[2].parts[0], "10.0.0.1");
	const struct value *v = rig->values.values;
	assert_true(value_identical(v[0 * 4 + 3], value_u64(9000)));
	assert_true(value_identical(v[1 * 4 + 3], value_u64(1500)));
	assert_true(value_identical(v[2 * 4 + 1], value_u64(17)));
	assert_int_equal(v[2 * 4 + 3].type, VALUE_NONE);
	assert_int_equal(rig->values.text_count, 2);
	assert_slice(rig->values.texts[0].text, "north");
}

/* Rows have the order in which their index was met first, so here what is written is another text
 * with the same rows; written once more it does not change. */
static void an_uncorrelated_message_goes_out_again(void **state)
{
	struct rig *rig = *state;
	read_good(rig, walk);
	assert_int_equal(esmond_message_write_uncorrelated(&rig->poll, &rig->names, &rig->values,
							   &rig->json),
			 0);
	assert_slice(buf_slice(&rig->json),
		     "{\"oidset_name\":\"IfRefPoll\",\"device_name\":\"r\",\"oid_name\":\"\","
		     "\"timestamp\":1.0,\"data\":{\"ifAlias\":[[\"ifAlias.17\",\"north\"],"
		     "[\"ifAlias.2\",\"\"]],\"ipAdEntIfIndex\":[[\"ipAdEntIfIndex.10.0.0.1\",17]],"
		     "\"none\":[],\"ifMtu\":[[\"ifMtu.17\",9000],[\"ifMtu.2\",1500]]},"
		     "\"metadata\":{}}");
}

static void a_correlated_message_is_written_as_esmond_does(void **state)
{
	struct rig *rig = *state;
	static const char text[] =
		"{\"oidset_name\":\"S\",\"device_name\":\"r\",\"oid_name\":\"o\",\"timestamp\":9.0,"
		"\"data\":[[[\"o\"],1],[[\"o\",\"x\"],-2],[[\"x\",\"o\",\"q\"],2.5],"
		"[[\"f\",\"g\",\"h\"],\"up\"],[[\"a\",\"b\",\"c\",\"d\"],{\"a\":[]}]],"
		"\"metadata\":{}}";
	read_good(rig, text);
	struct buf small;
	buf_init(&small, 100);
	assert_int_equal(esmond_message_write(&rig->poll, &rig->names, &rig->values, 0, &small),
			 ERR_LIMIT);
	assert_int_equal(small.len, 0);
	buf_release(&small);
	assert_int_equal(esmond_message_write(&rig->poll, &rig->names, &rig->values, 0, &rig->json),
			 0);
	assert_slice(buf_slice(&rig->json), text);
}

static void what_is_malformed_is_said(void **state)
{
	struct rig *rig = *state;
	static const struct {
		const char *json, *says;
	} list[] = {
		{"", "line 1"},
		{"[]", "no object"},
		{"{}", "device_name"},
		{"{\"device_name\":1}", "device_name"},
		{"{\"device_name\":\"r\"}", "oidset_name"},
		{"{\"device_name\":\"r\",\"oidset_name\":\"S\"}", "timestamp"},
		{"{\"device_name\":\"r\",\"oidset_name\":\"S\",\"timestamp\":-1}", "timestamp"},
		{"{\"device_name\":\"r\",\"oidset_name\":\"S\",\"timestamp\":1343955624289}",
		 "timestamp"},
		{"{\"device_name\":\"\",\"oidset_name\":\"S\",\"timestamp\":1}", "device"},
		{"{\"device_name\":\"r\",\"oidset_name\":\"S\",\"timestamp\":1}",
		 "\"data\" is missing"},
		{"{\"device_name\":\"r\",\"oidset_name\":\"S\",\"timestamp\":1,\"data\":[]}",
		 "oid_name"},
		{HEAD "\"data\":3}", "\"data\" is neither"},
		{HEAD "\"data\":[[[\"o\"],1],7]}", "item 2"},
		{HEAD "\"data\":[[[\"o\"],1,2]]}", "item 1"},
		{HEAD "\"data\":[[\"o\",1]]}", "item 1"},
		{HEAD "\"data\":[[[null],1]]}", "item 1"},
		{HEAD "\"data\":[[[\"a\",\"b\",\"c\",\"d\",\"e\"],1]]}", "item 1"},
		{HEAD "\"data\":[[[\"o\"],1]", "line 1"},
		{HEAD "\"data\":{\"a\":3}}", "\"a\""},
		{HEAD "\"data\":{\"a\":[3]}}", "\"a\""},
		{HEAD "\"data\":{\"a\":[[\"a\",1]]}}", "[\"a.index\", value]"},
		{HEAD "\"data\":{\"a\":[[\"ab.1\",1]]}}", "[\"a.index\", value]"},
		{HEAD "\"data\":{\"a\":[[\"a.\",1]]}}", "[\"a.index\", value]"},
	};
	for (size_t i = 0; i < ARRAY_LEN(list); i++) {
		assert_int_equal(read_message(rig, slice_of(list[i].json)), ERR_INVALID);
		if (!strstr(rig->e.text, list[i].says))
			fail_msg("%s: %s", list[i].json, rig->e.text);
	}
}

static void memory_has_its_limit(void **state)
{
	struct rig *rig = *state;
	struct arena small;
	arena_init(&small, 600);
	assert_int_equal(esmond_message_read(slice_of(walk), &small, &rig->builder, &rig->e),
			 ERR_LIMIT);
	arena_release(&small);
	buf_append_text(&rig->json, HEAD "\"data\":[[[\"o\"],\"");
	for (size_t i = 0; i <= POLL_TEXT_MAX_BYTES; i++)
		buf_append_char(&rig->json, 'x');
	buf_append_text(&rig->json, "\"]]}");
	assert_int_equal(read_message(rig, buf_slice(&rig->json)), ERR_INVALID);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_polls_of_rtr_alu_go_in_and_out),
		TEST(times_are_floored_to_seconds),
		TEST(an_OID_leaves_the_path_where_a_correlator_put_it),
		TEST(values_keep_what_they_are),
		TEST(an_uncorrelated_message_is_a_table),
		TEST(an_uncorrelated_message_goes_out_again),
		TEST(a_correlated_message_is_written_as_esmond_does),
		TEST(what_is_malformed_is_said),
		TEST(memory_has_its_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
