/* Cells of faults as doc/format-faults.md has them, and the summary of a day. */
#include "fault_harness.h"

#include "fault/pack.h"
#include "fault/tables.h"
#include "fault/versioned.h"

/* ---- Bytes of the format, put together by hand ----------------------------------------------- */

static const uint8_t arrival_bytes[] = {
	1,    1,                                                      /* version, report */
	0x40, 0x42, 0x0f, 0,    0,   0, 0, 0,                         /* 1,000,000 us */
	1,    0,    0,    0,    0,   0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, /* digest */
	3,    'O',  '-',  '1',                                        /* id */
	5,                                                            /* facts */
	0,    1,    'c',                                              /* context */
	6,    2,    'm',  'e',                                        /* user */
	10,   3,    'k',  0xff, 'v',                                  /* a tag */
	32,   2,    0xac, 0x02,                                       /* 300 us */
	33,   1,    7,                                                /* statements */
	0,    5, /* no dictionary, five bytes of body */
	'p',  'a',  'c',  'k',
};

static void an_arrival_is_as_the_page_has_it(UNUSED void **state)
{
	struct fault_arrival arrival;
	struct slice bytes = {(const char *)arrival_bytes, sizeof(arrival_bytes)};
	struct buf out;
	assert_int_equal(fault_arrival_decode(bytes, &arrival), 0);
	assert_false(arrival.is_void);
	assert_int_equal(arrival.date_us, 1000000);
	assert_int_equal(arrival.digest.low, 1);
	assert_int_equal(arrival.digest.high, 2);
	assert_true(slice_equal(arrival.id, TEXT("O-1")));
	assert_true(slice_equal(arrival.facts.texts[FAULT_CONTEXT], TEXT("c")));
	assert_true(slice_equal(arrival.facts.texts[FAULT_USER], TEXT("me")));
	assert_true(slice_equal(arrival.facts.texts[FAULT_TAGS], TEXT("k\xffv")));
	assert_int_equal(arrival.facts.texts[FAULT_EXCEPTION].len, 0);
	assert_int_equal(arrival.facts.duration_us, 300);
	assert_int_equal(arrival.facts.statements, 7);
	assert_int_equal(arrival.body_bytes, 5);
	assert_true(slice_equal(arrival.packed, TEXT("pack")));
	buf_init(&out, 1000);
	fault_arrival_encode(&arrival, &out);
	assert_int_equal(out.len, sizeof(arrival_bytes));
	assert_memory_equal(out.data, arrival_bytes, sizeof(arrival_bytes));
	buf_release(&out);
}

static void an_attachment_is_as_the_page_has_it(UNUSED void **state)
{
	static const uint8_t head[] = {1, 1, 0xac, 0x02, 1, 'n', 2, 't', '/'};
	struct fault_attachment attachment;
	struct slice bytes = {(const char *)head, sizeof(head)};
	struct buf out;
	assert_int_equal(fault_attachment_decode(bytes, &attachment), 0);
	assert_true(attachment.kept);
	assert_int_equal(attachment.bytes, 300);
	assert_true(slice_equal(attachment.name, TEXT("n")));
	assert_true(slice_equal(attachment.type, TEXT("t/")));
	buf_init(&out, 1000);
	fault_attachment_encode(&attachment, &out);
	assert_int_equal(out.len, sizeof(head));
	assert_memory_equal(out.data, head, sizeof(head));
	for (size_t len = 0; len < sizeof(head); len++)
		assert_int_equal(fault_attachment_decode((struct slice){(const char *)head, len},
							 &attachment),
				 ERR_DAMAGED);
	assert_int_equal(fault_attachment_decode(TEXT("\2\1"), &attachment), ERR_VERSION);
	assert_int_equal(fault_attachment_decode(TEXT("\1\2\0\0\0"), &attachment), ERR_DAMAGED);
	/* Plain: what follows is the content. */
	buf_clear(&out);
	assert_int_equal(fault_attachment_unpack(TEXT("\0ab"), 2, &out), 0);
	assert_true(slice_equal(buf_slice(&out), TEXT("ab")));
	assert_int_equal(fault_attachment_unpack(TEXT("\0ab"), 3, &out), ERR_DAMAGED);
	assert_int_equal(fault_attachment_unpack(TEXT(""), 0, &out), ERR_DAMAGED);
	assert_int_equal(fault_attachment_unpack(TEXT("\2a"), 1, &out), ERR_DAMAGED);
	assert_int_equal(fault_attachment_unpack(TEXT("\1ab"), 2, &out), ERR_DAMAGED);
	buf_release(&out);
}

/* Cut anywhere before the body, of another version or kind. */
static void other_bytes_are_no_arrival(UNUSED void **state)
{
	uint8_t bytes[sizeof(arrival_bytes)];
	struct fault_arrival arrival;
	for (size_t len = 0; len < sizeof(bytes) - 4; len++)
		assert_int_equal(
			fault_arrival_decode((struct slice){(const char *)arrival_bytes, len},
					     &arrival),
			ERR_DAMAGED);
	memcpy(bytes, arrival_bytes, sizeof(bytes));
	bytes[0] = 2;
	assert_int_equal(
		fault_arrival_decode((struct slice){(char *)bytes, sizeof(bytes)}, &arrival),
		ERR_VERSION);
	bytes[0] = 1;
	bytes[1] = 9;
	assert_int_equal(
		fault_arrival_decode((struct slice){(char *)bytes, sizeof(bytes)}, &arrival),
		ERR_DAMAGED);
	bytes[1] = 0; /* a void: all but the date is nothing */
	assert_int_equal(fault_arrival_decode((struct slice){(char *)bytes, 10}, &arrival), 0);
	assert_true(arrival.is_void);
	assert_int_equal(arrival.date_us, 1000000);
}

static void bodies_are_packed(UNUSED void **state)
{
	static const char body[] =
		"{\"a\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}";
	struct fault_arrival arrival = {.body_bytes = sizeof(body) - 1};
	struct buf packed, out;
	buf_init(&packed, 1000);
	buf_init(&out, 1000);
	arrival.dictionary = fault_pack(SLICE(body), &packed);
	assert_int_equal(arrival.dictionary, 1);
	assert_true(packed.len < sizeof(body) - 1);
	arrival.packed = buf_slice(&packed);
	assert_int_equal(fault_body_unpack(&arrival, &out), 0);
	assert_true(slice_equal(buf_slice(&out), SLICE(body)));
	arrival.body_bytes--;
	assert_int_equal(fault_body_unpack(&arrival, &out), ERR_DAMAGED);
	arrival.body_bytes++;
	arrival.packed.len--;
	assert_int_equal(fault_body_unpack(&arrival, &out), ERR_DAMAGED);
	arrival.dictionary = 2;
	assert_int_equal(fault_body_unpack(&arrival, &out), ERR_VERSION);
	buf_release(&packed);
	buf_release(&out);
}

/* Reports that were stored before there was a dictionary: a frame of zstd's (RFC 8878) with one
 * raw block of five bytes. */
static void bodies_without_a_dictionary_are_read(UNUSED void **state)
{
	static const uint8_t frame[] = {0x28, 0xb5, 0x2f, 0xfd, 0x20, 5,   0x29,
					0,    0,    '{',  '"',  'a',  '"', '}'};
	struct fault_arrival arrival = {.body_bytes = 5,
					.packed = {(const char *)frame, sizeof(frame)}};
	struct buf out;
	buf_init(&out, 1000);
	assert_int_equal(fault_body_unpack(&arrival, &out), 0);
	assert_true(slice_equal(buf_slice(&out), TEXT("{\"a\"}")));
	arrival.dictionary = 1; /* the frame does not say that it needs none */
	buf_clear(&out);
	assert_int_equal(fault_body_unpack(&arrival, &out), 0);
	buf_release(&out);
}

/* What a client of Sentry says of each report: most of it is in the dictionary. */
static void a_small_report_is_packed_by_the_dictionary(UNUSED void **state)
{
	static const char body[] =
		"{\"contexts\":{\"runtime\":{\"build\":\"3.11.2 (main, Apr 28 2025, 14:11:48) "
		"[GCC 12.2.0]\",\"name\":\"CPython\",\"version\":\"3.11.2\"}},"
		"\"environment\":\"production\",\"exception\":\"KeyError\",\"level\":\"error\","
		"\"platform\":\"python\",\"sdk\":{\"integrations\":[\"argv\",\"atexit\","
		"\"dedupe\",\"excepthook\",\"logging\",\"modules\",\"stdlib\",\"threading\"],"
		"\"name\":\"sentry.python\",\"packages\":[{\"name\":\"pypi:sentry-sdk\","
		"\"version\":\"2.75.0\"}],\"version\":\"2.75.0\"}}";
	struct buf packed;
	buf_init(&packed, 2000);
	fault_pack(SLICE(body), &packed);
	/* 413 bytes, of which `zstd -3` makes 281 without a dictionary, and 70 with this one. */
	assert_true(packed.len < 140);
	buf_release(&packed);
}

/* ---- Which value holds ----------------------------------------------------------------------- */

static void assert_holds(const struct fault_tenures *tenures, struct fault_version now,
			 struct fault_version before, int err, const char *value)
{
	const struct fault_versioned cell = {.version = now,
					     .value = TEXT("now"),
					     .has_before = before.tenure != 0,
					     .before_version = before,
					     .before = TEXT("before")};
	struct fault_version version;
	struct slice chosen;
	assert_int_equal(fault_versioned_choose(&cell, tenures, &chosen, &version), err);
	if (!err)
		assert_true(slice_equal(chosen, slice_of(value)));
}

#define V(tenure, checkpoint) ((struct fault_version){(tenure), (checkpoint)})

static void what_was_not_whole_is_as_if_it_had_not_been(UNUSED void **state)
{
	struct fault_tenures tenures = {NULL, 0, 0};
	fault_tenures_put(&tenures, V(20, 3));
	fault_tenures_put(&tenures, V(10, 5));
	assert_holds(&tenures, V(10, 5), V(10, 4), 0, "now");
	assert_holds(&tenures, V(10, 6), V(10, 5), 0, "before");
	assert_holds(&tenures, V(10, 6), V(0, 0), 0, "");
	assert_holds(&tenures, V(20, 3), V(10, 5), 0, "now");
	assert_holds(&tenures, V(20, 4), V(10, 5), 0, "before");
	assert_holds(&tenures, V(20, 5), V(20, 4), ERR_RETRY, NULL);
	assert_holds(&tenures, V(30, 0), V(20, 4), ERR_RETRY, NULL);
	/* Tenure 30 began with 20.2, since 20.3 came too late for it. */
	assert_holds(&tenures, V(30, 1), V(20, 2), ERR_RETRY, NULL);
	assert_holds(&tenures, V(30, 1), V(0, 0), ERR_RETRY, NULL);
	fault_tenures_put(&tenures, V(20, 4));
	assert_holds(&tenures, V(20, 5), V(20, 4), 0, "before");
	assert_int_equal(tenures.count, 2);
	fault_tenures_release(&tenures);
}

/* ---- Days and names -------------------------------------------------------------------------- */

static void days_have_eight_digits(UNUSED void **state)
{
	static const struct {
		const char *text;
		int64_t day;
	} good[] = {{"19700101", 0}, {"20110227", 15032}, {"20240229", 19782}, {"19691231", -1}};
	static const char *const bad[] = {"",         "2011022",  "201102277", "20110230",
					  "20111301", "20110001", "2011022a",  "20230229"};
	char text[FAULT_DAY_TEXT_BYTES + 1];
	int64_t day;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(fault_day_parse(slice_of(good[i].text), &day), 0);
		assert_int_equal(day, good[i].day);
		fault_day_text(day, text);
		assert_string_equal(text, good[i].text);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(fault_day_parse(slice_of(bad[i]), &day), ERR_INVALID);
}

static void assert_name(const char *context, const char *exception, const char *expected)
{
	struct fault_facts facts = {.texts = {[FAULT_CONTEXT] = slice_of(context),
					      [FAULT_EXCEPTION] = slice_of(exception)}};
	struct buf name;
	buf_init(&name, 10000);
	fault_volume_name(&facts, &name);
	assert_int_equal(name.len, strlen(expected));
	assert_memory_equal(name.data, expected, name.len);
	buf_release(&name);
}

static void names_are_escaped(UNUSED void **state)
{
	assert_name("view", "Oops", "view:Oops");
	assert_name("", "", ":");
	assert_name("a:b", "c\\", "a\\:b:c\\\\");
	assert_name("a", "b\n", "a:b\\x0a");
}

/* 393 bytes of a name have room behind `volume.`; longer ones that differ at the end stay two. */
static void long_names_are_cut_and_differ(UNUSED void **state)
{
	char context[401], exception[] = "x";
	struct buf names[2];
	memset(context, 'a', 400);
	context[400] = '\0';
	for (size_t i = 0; i < 2; i++) {
		struct fault_facts facts = {.texts = {[FAULT_CONTEXT] = slice_of(context),
						      [FAULT_EXCEPTION] = slice_of(exception)}};
		buf_init(&names[i], 10000);
		fault_volume_name(&facts, &names[i]);
		assert_true(names[i].len <= 393);
		exception[0] = 'y';
	}
	assert_memory_equal(names[0].data, names[1].data, 300);
	assert_false(slice_equal(buf_slice(&names[0]), buf_slice(&names[1])));
	context[391] = '\0'; /* 391 + 1 + 1 */
	struct fault_facts facts = {
		.texts = {[FAULT_CONTEXT] = slice_of(context), [FAULT_EXCEPTION] = TEXT("x")}};
	buf_clear(&names[0]);
	fault_volume_name(&facts, &names[0]);
	assert_int_equal(names[0].len, 393);
	assert_int_equal(names[0].data[392], 'x');
	buf_release(&names[0]);
	buf_release(&names[1]);
}

/* 1,800 bytes of values are as they are, behind 8 bytes tenure, 1 of the checkpoint and 2 of the
 * length; more are compressed, with what was before them. Ten digits in turns take few bytes. */
static void long_values_are_compressed(UNUSED void **state)
{
	char digits[2000];
	for (size_t i = 0; i < sizeof(digits); i++)
		digits[i] = (char)('0' + i % 10);
	for (size_t before = 0; before <= 1000; before += 1000) {
		for (size_t len = 1800 - before; len <= 1801 - before; len++) {
			const struct fault_versioned cell = {.version = {7, 3},
							     .value = {digits, len},
							     .has_before = before > 0,
							     .before_version = {7, 2},
							     .before = {digits + 5, before}};
			struct fault_versioned read;
			struct buf bytes, unpacked;
			buf_init(&bytes, 1 << 12);
			buf_init(&unpacked, FAULT_VERSIONED_MAX_BYTES);
			fault_versioned_encode(&cell, &bytes);
			size_t plain = 1 + 11 + len + (before ? 11 + before : 0);
			bool packed = len + before > 1800;
			assert_int_equal(bytes.data[0], packed ? 2 : 1);
			assert_true(packed ? bytes.len < 200 : bytes.len == plain);
			assert_int_equal(
				fault_versioned_decode(buf_slice(&bytes), &unpacked, &read), 0);
			assert_true(fault_version_equal(read.version, cell.version));
			assert_true(slice_equal(read.value, cell.value));
			assert_int_equal(read.has_before, before > 0);
			assert_true(slice_equal(read.before, cell.before));
			/* Cut anywhere; but what is cut behind its value is a cell without one
			 * before. Then a dictionary, or a version, that nobody knows. */
			for (size_t cut = 0; cut < bytes.len; cut++)
				assert_int_equal(
					fault_versioned_decode((struct slice){bytes.data, cut},
							       &unpacked, &read) != 0,
					cut != plain - 11 - before || !before);
			bytes.data[1] = packed ? 9 : bytes.data[1];
			bytes.data[0] = packed ? 2 : 3;
			assert_int_equal(
				fault_versioned_decode(buf_slice(&bytes), &unpacked, &read),
				ERR_VERSION);
			buf_release(&unpacked);
			buf_release(&bytes);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_arrival_is_as_the_page_has_it),
		cmocka_unit_test(an_attachment_is_as_the_page_has_it),
		cmocka_unit_test(other_bytes_are_no_arrival),
		cmocka_unit_test(bodies_are_packed),
		cmocka_unit_test(bodies_without_a_dictionary_are_read),
		cmocka_unit_test(a_small_report_is_packed_by_the_dictionary),
		cmocka_unit_test(what_was_not_whole_is_as_if_it_had_not_been),
		cmocka_unit_test(days_have_eight_digits),
		cmocka_unit_test(names_are_escaped),
		cmocka_unit_test(long_names_are_cut_and_differ),
		cmocka_unit_test(long_values_are_compressed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
