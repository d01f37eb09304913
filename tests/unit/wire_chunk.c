/* Chunks of version 1 and 2. The bytes of version 1 are Chukwa's, worked out in the format's page;
 * frames of version 2 are taken apart here by hand, and their content is unpacked by zstd itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <zstd.h>

#include "base/hash.h"
#include "wire/chunk.h"

enum { ROOM_BYTES = 4 << 20 };

struct rig {
	struct arena arena;
	struct buf out, unpacked;
	struct chunk_fields fields;
	struct chunk_data data;
	struct errbuf e;
};

static int rig_open(void **state)
{
	static struct rig rig;
	rig = (struct rig){.e = {""}};
	arena_init(&rig.arena, ROOM_BYTES);
	buf_init(&rig.out, ROOM_BYTES);
	buf_init(&rig.unpacked, ROOM_BYTES);
	*state = &rig;
	return 0;
}

static int rig_close(void **state)
{
	struct rig *rig = *state;
	buf_release(&rig->unpacked);
	buf_release(&rig->out);
	arena_release(&rig->arena);
	return 0;
}

static void assert_text(struct slice text, const char *expected)
{
	assert_int_equal(text.len, strlen(expected));
	assert_memory_equal(text.data, expected, text.len);
}

/* ---- Version 1 ------------------------------------------------------------------------------- */

/* `/foo/bar` of BarData at host1, sequence id 6, "a\nbc\nd" with records that end at 1 and 4: the
 * final d is not sent. */
static const char worked_chunk[] =
	"\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x06\x00\x05host1\x00\x0f cluster=\"demo\""
	"\x00\x08/foo/bar\x00\x07"
	"BarData\x00\x00\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x04"
	"a\nbc\n";

static int read_v1(struct rig *rig, const char *bytes, size_t len)
{
	struct cursor c = cursor_of(bytes, len);
	arena_reset(&rig->arena);
	int err = chunk_v1_read(&c, &rig->arena, &rig->fields, &rig->data, &rig->e);
	if (!err)
		assert_int_equal(cursor_left(&c), 0);
	return err;
}

static void the_worked_chunk_is_read(void **state)
{
	struct rig *rig = *state;
	assert_int_equal(sizeof(worked_chunk) - 1, 74);
	assert_int_equal(read_v1(rig, worked_chunk, 74), 0);
	assert_int_equal(rig->fields.sequence_id, 6);
	assert_int_equal(rig->fields.data_bytes, 5);
	assert_int_equal(chunk_begin(&rig->fields), 1);
	assert_text(rig->fields.names.source, "host1");
	assert_text(rig->fields.names.cluster, "demo");
	assert_text(rig->fields.names.datatype, "BarData");
	assert_text(rig->fields.names.name, "/foo/bar");
	assert_text(rig->fields.tags, "");
	assert_text(rig->data.data, "a\nbc\n");
	assert_true(rig->fields.lines);
	assert_int_equal(rig->fields.incarnation, 0);
	/* Each of its bytes is needed. */
	for (size_t len = 0; len < 74; len++) {
		char *cut = mem_alloc(len ? len : 1);
		memcpy(cut, worked_chunk, len);
		assert_int_equal(read_v1(rig, cut, len), ERR_INVALID);
		assert_true(strlen(rig->e.text) > 5);
		mem_free(cut);
	}
}

/* With texts of one letter, tags as given, and ends of records. */
static size_t build_v1(char *to, const char *tags, uint64_t sequence_id, const int32_t *ends,
		       size_t end_count, const char *data, size_t data_len)
{
	char *at = to;
	memcpy(at, "\0\0\0\1", 4);
	be64_put((uint8_t *)at + 4, sequence_id);
	at += 12;
	memcpy(at, "\0\1s", 3);
	at[3] = (char)(strlen(tags) >> 8);
	at[4] = (char)strlen(tags);
	memcpy(at + 5, tags, strlen(tags));
	at += 5 + strlen(tags);
	memcpy(at, "\0\1n\0\1d\0\1g", 9);
	at += 9;
	be32_put((uint8_t *)at, (uint32_t)end_count);
	at += 4;
	for (size_t i = 0; i < end_count; i++, at += 4)
		be32_put((uint8_t *)at, (uint32_t)ends[i]);
	memcpy(at, data, data_len);
	return (size_t)(at + data_len - to);
}

static int read_built(struct rig *rig, const char *tags, uint64_t sequence_id, const int32_t *ends,
		      size_t end_count, const char *data)
{
	char bytes[1000];
	size_t len = build_v1(bytes, tags, sequence_id, ends, end_count, data, strlen(data));
	return read_v1(rig, bytes, len);
}

static void ends_of_records_that_are_no_lines_are_kept(void **state)
{
	struct rig *rig = *state;
	/* foo, bar, baz of the original's own test: 2, 5, 8, sequence id 9 */
	assert_int_equal(read_built(rig, "", 9, (int32_t[]){2, 5, 8}, 3, "foobarbaz"), 0);
	assert_false(rig->fields.lines);
	assert_int_equal(rig->data.end_count, 3);
	assert_int_equal(rig->data.ends[0], 3);
	assert_int_equal(rig->data.ends[2], 9);
	assert_text(rig->fields.names.cluster, "unknown_cluster");
	assert_text(rig->fields.debug, "g");
	/* A newline within a record, and a record of lines that does not end with one. */
	assert_int_equal(read_built(rig, "", 4, (int32_t[]){3}, 1, "a\nb\n"), 0);
	assert_false(rig->fields.lines);
	assert_int_equal(read_built(rig, "", 3, (int32_t[]){1, 2}, 2, "a\nb"), 0);
	assert_false(rig->fields.lines);
	/* Empty records say nothing, also in front: there the last byte is at -1. */
	assert_int_equal(read_built(rig, "", 9, (int32_t[]){-1, 2, 2, 3}, 4, "ab\nc"), 0);
	assert_int_equal(rig->data.end_count, 2);
	assert_int_equal(read_built(rig, "", 0, NULL, 0, ""), 0);
	assert_int_equal(rig->fields.data_bytes, 0);
	assert_int_equal(read_built(rig, "", 0, (int32_t[]){-1}, 1, ""), 0);
	assert_int_equal(rig->fields.data_bytes, 0);
}

static void false_numbers_are_refused(void **state)
{
	struct rig *rig = *state;
	assert_int_equal(read_built(rig, "", 9, (int32_t[]){5, 2}, 2, "foobar"), ERR_INVALID);
	assert_non_null(strstr(rig->e.text, "record 1 ends before"));
	assert_int_equal(read_built(rig, "", 9, (int32_t[]){-2}, 1, "foo"), ERR_INVALID);
	assert_int_equal(read_built(rig, "", 9, (int32_t[]){INT32_MAX}, 1, "foo"), ERR_INVALID);
	assert_int_equal(read_built(rig, "", 2, (int32_t[]){2}, 1, "foo"), ERR_INVALID);
	assert_string_equal(rig->e.text, "its sequence id 2 is below its length 3");
	assert_int_equal(read_built(rig, "", INT64_MAX, (int32_t[]){2}, 1, "foo"), 0);
	assert_int_equal(read_built(rig, "", UINT64_C(1) << 63, (int32_t[]){2}, 1, "foo"),
			 ERR_INVALID);
	char bytes[1000];
	size_t len = build_v1(bytes, "", 3, (int32_t[]){2}, 1, "foo", 3);
	bytes[3] = 2;
	assert_int_equal(read_v1(rig, bytes, len), ERR_INVALID);
	assert_string_equal(rig->e.text, "it is of version 2, not 1");
}

static void tags_of_ours_become_fields(void **state)
{
	struct rig *rig = *state;
	const int32_t ends[] = {0};
	assert_int_equal(
		read_built(rig,
			   " cluster=\"c 1\" a=\"1\" incarnation=\"00ff00ff00ff00ff\" "
			   "tenant=\"t\" clock=\"1700000000123\" zone=\"Europe/Oslo\" b=\"2\"",
			   1, ends, 1, "\n"),
		0);
	assert_text(rig->fields.names.cluster, "c 1");
	assert_text(rig->fields.tenant, "t");
	assert_text(rig->fields.zone, "Europe/Oslo");
	assert_true(rig->fields.incarnation == UINT64_C(0x00ff00ff00ff00ff));
	assert_int_equal(rig->fields.clock_ms, 1700000000123);
	assert_text(rig->fields.tags, " a=\"1\" b=\"2\"");
	/* A tag whose name ends so is another one; one without its quote is none. */
	assert_int_equal(read_built(rig, "subcluster=\"x\" cluster=\"y", 1, ends, 1, "\n"), 0);
	assert_text(rig->fields.names.cluster, "unknown_cluster");
	assert_int_equal(read_built(rig, "incarnation=\"ffffffffffffffff\"", 1, ends, 1, "\n"), 0);
	assert_true(rig->fields.incarnation == UINT64_MAX);
	assert_int_equal(read_built(rig, "incarnation=\"10000000000000000\"", 1, ends, 1, "\n"),
			 ERR_INVALID);
	assert_int_equal(read_built(rig, "incarnation=\"x\"", 1, ends, 1, "\n"), ERR_INVALID);
	assert_int_equal(read_built(rig, "clock=\"99999999999999999999\"", 1, ends, 1, "\n"),
			 ERR_INVALID);
	assert_int_equal(read_built(rig, "clock=\"\"", 1, ends, 1, "\n"), ERR_INVALID);
}

/* Modified UTF-8: NUL is C0 80, a character beyond the first 65,536 two surrogates. */
/* What `\bNAME="([^"]*)"` finds, worked by hand. */
static void a_tag_is_found_by_its_name(void **state)
{
	(void)state;
	static const struct {
		const char *tags, *value;
	} cases[] = {
		{"k=\"v\"", "v"},
		{" a=\"1\"\tk=\"a b\"", "a b"},
		{"k=\"\"", ""},
		{"k=\"1\" k=\"2\"", "1"},
		{"a-k=\"1\"", "1"},
		{"a=\"k=\"b\"", "b"}, /* a value is not looked into by the quotes around it */
		{"ak=\"1\" _k=\"2\" 0k=\"3\" k=\"4\"", "4"},
		{"k =\"1\"", NULL},
		{"k=1", NULL},
		{"k='1'", NULL},
		{"K=\"1\"", NULL},
		{"k=\"1", NULL},
		{"k=\"", NULL},
		{"k=", NULL},
		{"k", NULL},
		{"", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice value = chunk_tag(slice_of(cases[i].tags), "k");
		assert_int_equal(value.data != NULL, cases[i].value != NULL);
		if (cases[i].value)
			assert_text(value, cases[i].value);
	}
	assert_null(chunk_tag((struct slice){NULL, 0}, "k").data);
	assert_text(chunk_tags_cluster(SLICE("a=\"1\" cluster=\"demo\"")), "demo");
	assert_text(chunk_tags_cluster(SLICE("cluster=\"\"")), "unknown_cluster");
	assert_text(chunk_tags_cluster(SLICE("cluster=demo")), "unknown_cluster");
}

static void modified_utf8_becomes_utf8(void **state)
{
	struct rig *rig = *state;
	static const struct {
		const char *java, *utf8; /* NULL: refused */
	} cases[] = {
		{"caf\xc3\xa9", "caf\xc3\xa9"},
		{"\xe2\x82\xac", "\xe2\x82\xac"},
		{"\xed\xa0\xbd\xed\xb8\x80", "\xf0\x9f\x98\x80"},
		{"\xed\xa0\xbd", "\xef\xbf\xbd"},
		{"\xed\xb8\x80\xed\xa0\xbd", "\xef\xbf\xbd\xef\xbf\xbd"},
		{"\xed\xa0\xbdz", "\xef\xbf\xbdz"},
		{"\xc3", NULL},
		{"\xe2\x82", NULL},
		{"\xf0\x9f\x98\x80", NULL},
		{"\xff", NULL},
		{"\x80", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char tags[100];
		snprintf(tags, sizeof(tags), "k=\"%s\"", cases[i].java);
		int err = read_built(rig, tags, 1, (int32_t[]){0}, 1, "\n");
		assert_int_equal(err, cases[i].utf8 ? 0 : ERR_INVALID);
		snprintf(tags, sizeof(tags), "k=\"%s\"", cases[i].utf8 ? cases[i].utf8 : "");
		if (!err)
			assert_text(rig->fields.tags, tags);
	}
	char bytes[1000];
	size_t len = build_v1(bytes, "k=\"\xc0\x80\"", 1, (int32_t[]){0}, 1, "\n", 1);
	assert_int_equal(read_v1(rig, bytes, len), 0);
	assert_int_equal(rig->fields.tags.len, 5);
	assert_memory_equal(rig->fields.tags.data, "k=\"\0\"", 5);
}

/* ---- Version 2 ------------------------------------------------------------------------------- */

static const struct chunk_fields some_fields = {
	.tenant = SLICE("t"),
	.names = {SLICE("host1"), SLICE("web"), SLICE("syslog"), SLICE("/var/log/messages")},
	.incarnation = UINT64_C(0x0102030405060708),
	.sequence_id = 300,
	.clock_ms = -1,
	.zone = SLICE("UTC"),
	.tags = SLICE("a=\"1\""),
	.lines = true,
};

static void put_frame(struct rig *rig, const struct chunk_fields *fields, struct slice data)
{
	const struct chunk_data what = {.data = data};
	assert_int_equal(chunk_frame_put(fields, &what, 1, &rig->out), 0);
}

static void a_frame_is_as_its_format_says(void **state)
{
	struct rig *rig = *state;
	static const char head[] = "\x01"                             /* lines */
				   "\x08\x07\x06\x05\x04\x03\x02\x01" /* incarnation */
				   "\xac\x02"                         /* 300 */
				   "\x06\x00\x01"                     /* 6 bytes, no ends, -1 */
				   "\x01t\x05host1\x03web\x06syslog\x11/var/log/messages"
				   "\x03UTC\x05"
				   "a=\"1\"\x00";
	enum { HEAD = sizeof(head) - 1 };
	put_frame(rig, &some_fields, SLICE("ab\ncd\n"));
	const char *bytes = rig->out.data;
	uint32_t len, crc;
	char content[6];
	assert_memory_equal(bytes, "Gch2", 4);
	memcpy(&len, bytes + 4, 4);
	memcpy(&crc, bytes + 8, 4);
	assert_int_equal(len, rig->out.len - 12);
	assert_int_equal(crc, crc32c(crc32c(0, bytes + 4, 4), bytes + 12, len));
	assert_memory_equal(bytes + 12, head, HEAD);
	assert_int_equal(ZSTD_decompress(content, sizeof(content), bytes + 12 + HEAD, len - HEAD),
			 6);
	assert_memory_equal(content, "ab\ncd\n", 6);
}

static void a_frame_goes_there_and_back(void **state)
{
	struct rig *rig = *state;
	struct chunk_fields fields = some_fields;
	struct chunk_frame frame;
	const char *why;
	fields.lines = false;
	fields.continues = true;
	fields.goes_on = true;
	const uint32_t ends[] = {1, 130, 200};
	char data[256];
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	const struct chunk_data given = {{data, 256}, ends, 3};
	assert_int_equal(chunk_frame_put(&fields, &given, 3, &rig->out), 0);
	put_frame(rig, &some_fields, SLICE("x\n"));
	struct slice rest = buf_slice(&rig->out);
	assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_FOUND);
	assert_int_equal(frame.fields.data_bytes, 256);
	assert_int_equal(frame.ends_bytes, 4); /* 1, 129 in two bytes, 70 */
	assert_true(frame.fields.continues && frame.fields.goes_on && !frame.fields.lines);
	assert_text(frame.fields.names.name, "/var/log/messages");
	assert_int_equal(frame.fields.clock_ms, -1);
	assert_int_equal(chunk_frame_unpack(&frame, &rig->unpacked, &rig->arena, &rig->data), 0);
	assert_memory_equal(rig->data.data.data, data, 256);
	assert_int_equal(rig->data.end_count, 3);
	assert_memory_equal(rig->data.ends, ends, sizeof(ends));
	assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_FOUND);
	assert_int_equal(frame.fields.data_bytes, 2);
	assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_NONE);
}

/* Whichever byte is damaged, the frame behind it is found. */
static void a_damaged_frame_is_passed_over(void **state)
{
	struct rig *rig = *state;
	put_frame(rig, &some_fields, SLICE("ab\ncd\n"));
	size_t first = rig->out.len;
	put_frame(rig, &some_fields, SLICE("second\n"));
	for (size_t at = 0; at < first; at++) {
		struct slice rest = buf_slice(&rig->out);
		struct chunk_frame frame;
		const char *why = NULL;
		rig->out.data[at] ^= 0x10;
		assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_DAMAGED);
		assert_non_null(why);
		assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_FOUND);
		assert_int_equal(frame.fields.data_bytes, 7);
		assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_NONE);
		rig->out.data[at] ^= 0x10;
	}
	for (size_t len = 1; len < first; len++) {
		struct slice rest = {rig->out.data, len};
		struct chunk_frame frame;
		const char *why;
		assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_DAMAGED);
		assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_NONE);
	}
}

/* Puts the checksum right after a change. */
static void seal_frame(struct rig *rig)
{
	char *bytes = rig->out.data;
	uint32_t len = (uint32_t)rig->out.len - 12;
	memcpy(bytes + 4, &len, 4);
	uint32_t crc = crc32c(crc32c(0, bytes + 4, 4), bytes + 12, len);
	memcpy(bytes + 8, &crc, 4);
}

static void expect_damage(struct rig *rig, const char *why)
{
	struct slice rest = buf_slice(&rig->out);
	struct chunk_frame frame;
	const char *said = NULL;
	assert_int_equal(chunk_frame_next(&rest, &frame, &said), CHUNK_DAMAGED);
	assert_non_null(strstr(said, why));
	assert_int_equal(rest.len, 0);
}

static void what_a_frame_says_of_itself_is_not_believed(void **state)
{
	struct rig *rig = *state;
	enum { LENGTH_AT = 12 + 1 + 8 + 2 };
	put_frame(rig, &some_fields, SLICE("ab\ncd\n"));
	rig->out.data[LENGTH_AT] = 7;
	seal_frame(rig);
	expect_damage(rig, "another length");
	rig->out.data[LENGTH_AT] = 0;
	seal_frame(rig);
	expect_damage(rig, "it has no bytes");
	rig->out.data[LENGTH_AT] = 6;
	rig->out.data[12] = 8;
	seal_frame(rig);
	expect_damage(rig, "its fields");
	rig->out.data[12] = 1;
	rig->out.data[LENGTH_AT - 2] =
		5; /* the sequence id, and then its second byte is a length */
	rig->out.data[LENGTH_AT - 1] = 6;
	seal_frame(rig);
	expect_damage(rig, "");
	/* Bytes behind the zstd frame. */
	buf_clear(&rig->out);
	put_frame(rig, &some_fields, SLICE("ab\ncd\n"));
	buf_append(&rig->out, "x", 1);
	seal_frame(rig);
	expect_damage(rig, "another length");
}

/* What is packed may be damaged though its checksum, made by whoever damaged it, is right. */
static void what_does_not_unpack_is_damaged(void **state)
{
	struct rig *rig = *state;
	struct chunk_frame frame;
	const char *why;
	const uint32_t ends[] = {2};
	const struct chunk_data data = {SLICE("abc"), ends, 1};
	struct chunk_fields fields = some_fields;
	fields.lines = false;
	assert_int_equal(chunk_frame_put(&fields, &data, 1, &rig->out), 0);
	rig->out.data[rig->out.len - 1] = 9; /* the record ends behind the data */
	seal_frame(rig);
	struct slice rest = buf_slice(&rig->out);
	assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_FOUND);
	assert_int_equal(chunk_frame_unpack(&frame, &rig->unpacked, &rig->arena, &rig->data),
			 ERR_DAMAGED);
}

/* The largest chunk fits into a value also where its bytes cannot be packed. */
static void noise_of_the_largest_length_fits(void **state)
{
	struct rig *rig = *state;
	static char noise[CHUNK_DATA_MAX_BYTES];
	uint64_t x = 88172645463325252;
	for (size_t i = 0; i < sizeof(noise); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		noise[i] = (char)x;
	}
	struct chunk_fields fields = some_fields;
	fields.sequence_id = sizeof(noise);
	put_frame(rig, &fields, (struct slice){noise, sizeof(noise)});
	assert_in_range(rig->out.len, sizeof(noise), CHUNK_FRAME_MAX_BYTES);
	struct slice rest = buf_slice(&rig->out);
	struct chunk_frame frame;
	const char *why;
	assert_int_equal(chunk_frame_next(&rest, &frame, &why), CHUNK_FOUND);
	assert_int_equal(chunk_frame_unpack(&frame, &rig->unpacked, &rig->arena, &rig->data), 0);
	assert_memory_equal(rig->data.data.data, noise, sizeof(noise));
}

static void ends_that_are_too_many_are_a_limit(void **state)
{
	struct rig *rig = *state;
	static uint32_t ends[CHUNK_ENDS_MAX_BYTES + 1];
	static char data[CHUNK_ENDS_MAX_BYTES + 1];
	for (uint32_t i = 0; i < ARRAY_LEN(ends); i++)
		ends[i] = i + 1;
	struct chunk_fields fields = some_fields;
	fields.lines = false;
	fields.sequence_id = sizeof(data);
	struct chunk_data all = {{data, sizeof(data)}, ends, CHUNK_ENDS_MAX_BYTES};
	assert_int_equal(chunk_frame_put(&fields, &all, 1, &rig->out), 0);
	size_t len = rig->out.len;
	all.end_count++;
	assert_int_equal(chunk_frame_put(&fields, &all, 1, &rig->out), ERR_LIMIT);
	assert_int_equal(rig->out.len, len);
}

/* ---- Version 2, before its place is known -----------------------------------------------------
 */

/* Placed, it is byte for byte what is put at that place at once, wherever that is. */
static void a_chunk_is_placed_later(void **state)
{
	static const uint64_t places[] = {7, 127, 128, 1ull << 20, 1ull << 40, STREAM_OFFSET_MAX,
					  7};
	static const uint32_t ends[] = {3, 7};
	struct rig *rig = *state;
	struct chunk_fields fields = {.names = {SLICE("h"), SLICE("c"), SLICE("d"), SLICE("/n")},
				      .clock_ms = -5,
				      .tags = SLICE("a=\"b\"")};
	const struct chunk_data data = {SLICE("ab\ncde\n"), ends, 2};
	struct chunk_unplaced unplaced;
	struct chunk_frame placed, found;
	const char *why;
	assert_int_equal(chunk_unplaced_make(&fields, &data, 1, &rig->arena, &unplaced), 0);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		fields.sequence_id = places[i];
		buf_clear(&rig->out);
		assert_int_equal(chunk_frame_put(&fields, &data, 1, &rig->out), 0);
		chunk_unplaced_place(&unplaced, places[i], &placed);
		assert_int_equal(placed.bytes.len, rig->out.len);
		assert_memory_equal(placed.bytes.data, rig->out.data, rig->out.len);
		struct slice rest = placed.bytes;
		assert_int_equal(chunk_frame_next(&rest, &found, &why), CHUNK_FOUND);
		assert_int_equal(found.checksum, placed.checksum);
		assert_int_equal(found.fields.sequence_id, places[i]);
	}
	placed = chunk_unplaced_frame(&unplaced);
	assert_int_equal(chunk_frame_unpack(&placed, &rig->unpacked, &rig->arena, &rig->data), 0);
	assert_text(rig->data.data, "ab\ncde\n");
	assert_int_equal(rig->data.end_count, 2);
	fields.tags.len = CHUNK_TAGS_MAX_BYTES + 1;
	assert_int_equal(chunk_unplaced_make(&fields, &data, 1, &rig->arena, &unplaced), ERR_LIMIT);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_worked_chunk_is_read),
		TEST(ends_of_records_that_are_no_lines_are_kept),
		TEST(false_numbers_are_refused),
		TEST(tags_of_ours_become_fields),
		TEST(a_tag_is_found_by_its_name),
		TEST(modified_utf8_becomes_utf8),
		TEST(a_frame_is_as_its_format_says),
		TEST(a_frame_goes_there_and_back),
		TEST(a_damaged_frame_is_passed_over),
		TEST(what_a_frame_says_of_itself_is_not_believed),
		TEST(what_does_not_unpack_is_damaged),
		TEST(noise_of_the_largest_length_fits),
		TEST(ends_that_are_too_many_are_a_limit),
		TEST(a_chunk_is_placed_later),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
