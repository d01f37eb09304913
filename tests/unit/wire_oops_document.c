/* Which form a fault report has, by its bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "wire/oops_document.h"

/* {"id":"OOPS-1"} as BSON, and `bz2.compress()` of Python of {"id":"OOPS-1"}, of that BSON, of
 * "Oops-Id: OOPS-1\n\n", and of the first once more. */
#define BSON "\x14\0\0\0\x02id\0\x07\0\0\0OOPS-1\0\0"
#define PACKED_JSON                                                                                \
	"\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x84\xf3\x51\x94\x00\x00\x06\x9f"                 \
	"\x80\x10\x02\x20\x10\x00\x00\xc8\x00\x04\x20\x00\x0a\x20\x00\x21\xa0\x34"                 \
	"\xd0\x20\x1a\x69\xa3\x2b\x6d\x12\x30\x2d\x9e\x7f\x17\x72\x45\x38\x50\x90"                 \
	"\x84\xf3\x51\x94"
#define PACKED_BSON                                                                                \
	"\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\x3d\x0d\x70\xa3\x00\x00\x05\xff"                 \
	"\x00\x50\x80\x04\x00\x00\x02\x20\x00\x00\x00\xc8\x00\x04\x20\x20\x00\x31"                 \
	"\x00\xd3\x4d\x03\x40\x0c\x93\x31\x6e\x0b\xb0\x3b\x1c\x0a\x5e\x2e\xe4\x8a"                 \
	"\x70\xa1\x20\x7a\x1a\xe1\x46"
#define PACKED_RFC822                                                                              \
	"\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\xf4\x68\x78\xe6\x00\x00\x05\x5f"                 \
	"\x80\x00\x10\x40\x02\x20\x10\x00\x20\xc8\x00\x04\x00\xc8\x00\x20\x00\x22"                 \
	"\x1a\x46\x68\xd4\xd0\x80\x68\x03\x83\xb7\xb4\x81\xc2\x12\x8f\x6f\xc5\xdc"                 \
	"\x91\x4e\x14\x24\x3d\x1a\x1e\x39\x80"
#define PACKED_TWICE                                                                               \
	"\x42\x5a\x68\x39\x31\x41\x59\x26\x53\x59\xb9\xff\x6a\x1f\x00\x00\x0f\x7f"                 \
	"\xf6\xd5\x10\x50\x90\x61\x0a\x64\x60\x32\x00\x68\x30\x00\x62\x10\x00\xc4"                 \
	"\x00\x44\x01\xc8\x00\x00\x40\x40\x00\x08\x00\x20\x00\x50\xc0\x0c\x9a\x68"                 \
	"\x32\x18\x21\xa6\x23\x46\x08\xa6\x9a\x01\xa0\x03\x40\x31\x32\x69\x9a\x46"                 \
	"\x4c\xf2\x98\x08\x52\x45\x1a\xd4\xb2\xd2\x6a\x86\x84\x89\xef\xe0\x50\xce"                 \
	"\x73\x6a\x20\x1d\x2b\xd5\xb5\x3e\x28\x60\x78\x39\xe0\xef\x9c\x28\x18\x07"                 \
	"\xe2\xee\x48\xa7\x0a\x12\x17\x3f\xed\x43\xe0"

struct case_rig {
	struct arena arena;
	struct buf unpacked;
	struct json *root;
	enum oops_dialect dialect;
	struct errbuf e;
};

static int setup(void **state)
{
	struct case_rig *rig = mem_zalloc(sizeof(*rig));
	arena_init(&rig->arena, 1 << 20);
	buf_init(&rig->unpacked, 1 << 20);
	*state = rig;
	return 0;
}

static int teardown(void **state)
{
	struct case_rig *rig = *state;
	buf_release(&rig->unpacked);
	arena_release(&rig->arena);
	mem_free(rig);
	return 0;
}

static int parse(struct case_rig *rig, struct slice bytes)
{
	rig->e.text[0] = 0;
	return oops_document_parse(bytes, 1000, &rig->unpacked, &rig->arena, &rig->root,
				   &rig->dialect, &rig->e);
}

static void expect_id(struct case_rig *rig, struct slice bytes, enum oops_dialect dialect)
{
	struct slice id = {NULL, 0};
	if (parse(rig, bytes))
		fail_msg("%s", rig->e.text);
	assert_int_equal(rig->dialect, dialect);
	assert_int_equal(json_get_text(rig->root, "id", &id, NULL), 0);
	assert_true(slice_equal(id, SLICE("OOPS-1")));
}

static void expect_error(struct case_rig *rig, struct slice bytes, const char *sentence)
{
	assert_int_equal(parse(rig, bytes), ERR_INVALID);
	assert_string_equal(rig->e.text, sentence);
}

static void each_form_is_known_by_its_bytes(void **state)
{
	struct case_rig *rig = *state;
	expect_id(rig, SLICE("{\"id\":\"OOPS-1\"}"), OOPS_JSON);
	expect_id(rig, SLICE(" \t\r\n{\"id\":\"OOPS-1\"}\n"), OOPS_JSON);
	expect_id(rig, SLICE(BSON), OOPS_BSON);
	expect_id(rig, SLICE("Oops-Id: OOPS-1\n\n"), OOPS_RFC822);
	expect_id(rig, SLICE("Oops-Id: OOPS-1"), OOPS_RFC822);
	assert_string_equal(oops_dialect_name(OOPS_JSON), "JSON");
	assert_string_equal(oops_dialect_name(OOPS_BSON), "BSON");
	assert_string_equal(oops_dialect_name(OOPS_RFC822), "rfc822");
}

static void packed_ones_are_unpacked_first(void **state)
{
	struct case_rig *rig = *state;
	expect_id(rig, SLICE(PACKED_JSON), OOPS_JSON);
	expect_id(rig, SLICE(PACKED_BSON), OOPS_BSON);
	expect_id(rig, SLICE(PACKED_RFC822), OOPS_RFC822);
	expect_error(rig, (struct slice){PACKED_JSON, sizeof(PACKED_JSON) - 3},
		     "bzip2: it is cut off before its end");
	assert_int_equal(oops_document_parse(SLICE(PACKED_JSON), 14, &rig->unpacked, &rig->arena,
					     &rig->root, &rig->dialect, &rig->e),
			 ERR_LIMIT);
	assert_int_equal(oops_document_parse(SLICE(PACKED_JSON), 15, &rig->unpacked, &rig->arena,
					     &rig->root, &rig->dialect, &rig->e),
			 0);
	/* Once only. */
	assert_int_equal(parse(rig, SLICE(PACKED_TWICE)), ERR_INVALID);
	assert_non_null(strstr(rig->e.text, "it begins with \"BZh91AY&SY"));
}

static void nothing_is_an_empty_report(void **state)
{
	struct case_rig *rig = *state;
	expect_error(rig, (struct slice){NULL, 0}, "Empty OOPS report");
	expect_error(rig, SLICE(" \r\n"), "Empty OOPS report");
	expect_error(rig, SLICE("BZh9\x17\x72\x45\x38\x50\x90\x00\x00\x00\x00"),
		     "Empty OOPS report");
	assert_null(rig->root);
}

/* Lengths whose first byte is a blank or a bracket: 10, 32, 91 and 123 bytes. */
static void a_length_that_looks_like_text_is_a_length(void **state)
{
	struct case_rig *rig = *state;
	static const uint8_t lengths[] = {10, 32, '[', '{'};
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		char bytes[128] = {(char)lengths[i], 0, 0, 0, 0x0a};
		memset(bytes + 5, 'k', lengths[i] - 7u);
		assert_int_equal(parse(rig, (struct slice){bytes, lengths[i]}), 0);
		assert_int_equal(rig->dialect, OOPS_BSON);
		assert_int_equal(rig->root->first->key.len, lengths[i] - 7u);
	}
}

static void a_cut_bson_is_read(void **state)
{
	struct case_rig *rig = *state;
	assert_int_equal(parse(rig, (struct slice){BSON, sizeof(BSON) - 2}), 0);
	assert_int_equal(rig->dialect, OOPS_BSON);
	assert_int_equal(rig->root->mended, JSON_CUT);
	expect_error(rig, SLICE("\x05\0\0\0"),
		     "BSON, byte 0: a document whose length does not fit");
}

static void json_may_be_an_array_and_is_read_laxly(void **state)
{
	struct case_rig *rig = *state;
	assert_int_equal(parse(rig, SLICE("[{\"a\":NaN},{\"b\":\"\\ud800\"}]")), 0);
	assert_int_equal(rig->dialect, OOPS_JSON);
	assert_int_equal(rig->root->type, JSON_T_ARRAY);
	assert_true(slice_equal(json_member(rig->root->first, "a")->text, SLICE("NaN")));
	assert_true(
		slice_equal(json_member(rig->root->first->next, "b")->text, SLICE("\xef\xbf\xbd")));
	assert_int_equal(parse(rig, SLICE("{\"a\":1,")), 0);
	assert_int_equal(rig->root->mended, JSON_CUT);
	expect_error(rig, SLICE("{\"a\":1;"), "line 1, column 7: a comma or } should stand here");
}

static void what_has_no_header_is_no_report(void **state)
{
	struct case_rig *rig = *state;
	static const char *const texts[] = {"hello, world", "<html>\n<a: b>", "\"id\": 1",
					    "17",           "\nOops-Id: 1",   ": 1",
					    "\xc3\xa9: 1"};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_equal(parse(rig, slice_of(texts[i])), ERR_INVALID);
		assert_non_null(strstr(rig->e.text, "neither JSON nor BSON nor rfc822"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_form_is_known_by_its_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(packed_ones_are_unpacked_first, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_an_empty_report, setup, teardown),
		cmocka_unit_test_setup_teardown(a_length_that_looks_like_text_is_a_length, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_cut_bson_is_read, setup, teardown),
		cmocka_unit_test_setup_teardown(json_may_be_an_array_and_is_read_laxly, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_has_no_header_is_no_report, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
