/* Sealed runs as bytes (doc/format-faults.md). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <zstd.h>

#include "fault/segment.h"

#define TEXT(t) ((struct slice){(t), sizeof(t) - 1})

/* Two reports, the second of which lies first in the only block; put together by hand, as it was
 * before there were tags. */
static const uint8_t directory[] = {
	0,   2, /* no dictionary, two reports */
	5,   2, /* numbers 5 and 7 */
	100, 1, /* received at 100 and 101 us */
	1,   0,   0,   0,   0,   0,   0, 0, 2, 0, 0, 0, 0, 0, 0,   0, /* digests */
	3,   0,   0,   0,   0,   0,   0, 0, 4, 0, 0, 0, 0, 0, 0,   0, 1,   'a', 2,
	'b', 'b',                           /* ids */
	10,  20,                            /* bytes of the bodies */
	0,   31,                            /* none; a duration of 30 us */
	1,   0,                             /* 0 statements; none */
	0,   2,                             /* no attachment; one */
	10,                                 /* texts */
	1,   4,   'v', 'i', 'e', 'w', 1, 1, /* context: both the same */
	1,   1,   'E', 0,   1,              /* exception: of the second alone */
	0,   0,   0,                        /* level to user: none */
	0,   0,   0,   0,   0,   0,   0, 0, 0, 0, 0, 0, 2, 1, 'g', 1, 'f', 1,   2, /* group: two */
	0,   0,   0,   0,   0,   0,   1, 0, /* the order within blocks */
	1,   2,                             /* one block of two */
};

/* As a cell: version, dictionary, bytes, packed. */
static size_t pack(const void *bytes, size_t len, char *to, size_t room)
{
	to[0] = 1;
	to[1] = 0;
	to[2] = (char)(len | 0x80);
	to[3] = (char)(len >> 7);
	size_t packed = ZSTD_compress(to + 4, room - 4, bytes, len, 1);
	assert_false(ZSTD_isError(packed));
	return packed + 4;
}

static void check_two(const struct fault_segment *segment)
{
	const struct fault_sealed *a = &segment->reports[0], *b = &segment->reports[1];
	assert_int_equal(segment->count, 2);
	assert_int_equal(a->sequence, 5);
	assert_int_equal(b->sequence, 7);
	assert_int_equal(a->arrival.date_us, 100);
	assert_int_equal(b->arrival.date_us, 101);
	assert_int_equal(a->arrival.digest.low, 1);
	assert_int_equal(b->arrival.digest.high, 4);
	assert_true(slice_equal(a->arrival.id, TEXT("a")));
	assert_true(slice_equal(b->arrival.id, TEXT("bb")));
	assert_int_equal(a->arrival.facts.duration_us, -1);
	assert_int_equal(b->arrival.facts.duration_us, 30);
	assert_int_equal(a->arrival.facts.statements, 0);
	assert_int_equal(b->arrival.facts.statements, -1);
	assert_int_equal(a->arrival.facts.attachments, 0);
	assert_int_equal(b->arrival.facts.attachments, 1);
	assert_true(slice_equal(b->arrival.facts.texts[FAULT_CONTEXT], TEXT("view")));
	assert_int_equal(a->arrival.facts.texts[FAULT_EXCEPTION].len, 0);
	assert_true(slice_equal(b->arrival.facts.texts[FAULT_EXCEPTION], TEXT("E")));
	assert_true(slice_equal(a->arrival.facts.texts[FAULT_GROUP], TEXT("g")));
	assert_true(slice_equal(b->arrival.facts.texts[FAULT_GROUP], TEXT("f")));
	assert_int_equal(segment->block_count, 1);
	assert_int_equal(segment->blocks[0].body_bytes, 30);
	assert_int_equal(b->at, 0);
	assert_int_equal(a->at, 20);
}

/* The same two with 11 texts: the second report has a tag. */
static void a_directory_with_tags(UNUSED void **state)
{
	static const uint8_t tags[] = {1, 3, 'k', 0xff, 'v', 0, 1};
	enum { TEXTS_AT = 51, TAIL = 4, ALL = sizeof(directory) + sizeof(tags) };
	uint8_t with[ALL];
	char bytes[1000];
	struct fault_segment segment, again;
	struct buf out;
	memcpy(with, directory, sizeof(directory) - TAIL);
	assert_int_equal(with[TEXTS_AT], 10);
	with[TEXTS_AT] = 11;
	memcpy(with + sizeof(directory) - TAIL, tags, sizeof(tags));
	memcpy(with + ALL - TAIL, directory + sizeof(directory) - TAIL, TAIL);
	size_t len = pack(with, sizeof(with), bytes, sizeof(bytes));
	assert_int_equal(fault_segment_decode((struct slice){bytes, len}, &segment), 0);
	buf_init(&out, 1000);
	fault_segment_encode(&segment, &out);
	assert_int_equal(fault_segment_decode(buf_slice(&out), &again), 0);
	check_two(&again);
	assert_int_equal(again.reports[0].arrival.facts.texts[FAULT_TAGS].len, 0);
	assert_true(slice_equal(again.reports[1].arrival.facts.texts[FAULT_TAGS], TEXT("k\xffv")));
	fault_segment_release(&again);
	fault_segment_release(&segment);
	buf_release(&out);
	with[TEXTS_AT] = 12;
	len = pack(with, sizeof(with), bytes, sizeof(bytes));
	assert_int_equal(fault_segment_decode((struct slice){bytes, len}, &segment), ERR_VERSION);
	fault_segment_release(&segment);
}

/* A full run whose reports have as much of all texts as they may have is written and read. */
static void the_longest_texts_fit(UNUSED void **state)
{
	enum { ROOM = 8 << 10 };
	struct fault_sealed *reports = mem_zalloc(FAULT_RUN_REPORTS * sizeof(*reports));
	char *all = mem_alloc((size_t)FAULT_RUN_REPORTS * ROOM);
	struct fault_segment segment, again;
	struct buf out;
	for (size_t i = 0; i < FAULT_RUN_REPORTS; i++) {
		char *text = all + i * ROOM;
		memset(text, 'x', ROOM);
		memcpy(text, &i, sizeof(i)); /* so they differ */
		reports[i].sequence = i;
		reports[i].arrival.id = (struct slice){text, FAULT_ID_MAX_BYTES};
		for (size_t t = 0; t < FAULT_TEXTS; t++)
			reports[i].arrival.facts.texts[t] =
				(struct slice){text, fault_text_max_bytes(t)};
		for (size_t t = FAULT_LEVEL; t < FAULT_TEXTS_LISTED; t++)
			reports[i].arrival.facts.texts[t].len = FAULT_LABEL_MAX_BYTES;
	}
	fault_segment_plan(&segment, reports, FAULT_RUN_REPORTS);
	buf_init(&out, FAULT_DIRECTORY_MAX_BYTES);
	fault_segment_encode(&segment, &out);
	assert_int_equal(fault_segment_decode(buf_slice(&out), &again), 0);
	assert_int_equal(again.count, FAULT_RUN_REPORTS);
	assert_true(slice_equal(again.reports[7].arrival.facts.texts[FAULT_TAGS],
				(struct slice){all + 7 * (size_t)ROOM, FAULT_TAGS_MAX_BYTES}));
	fault_segment_release(&again);
	fault_segment_release(&segment);
	buf_release(&out);
	mem_free(all);
	mem_free(reports);
}

static void a_directory_is_as_the_page_has_it(UNUSED void **state)
{
	char bytes[1000];
	struct fault_segment segment, again;
	struct buf out;
	size_t len = pack(directory, sizeof(directory), bytes, sizeof(bytes));
	assert_int_equal(fault_segment_decode((struct slice){bytes, len}, &segment), 0);
	check_two(&segment);
	assert_int_equal(fault_segment_find(&segment, 6), 1);
	assert_int_equal(fault_segment_find(&segment, 8), 2);
	assert_int_equal(fault_segment_find_date(&segment, 100), 0);
	assert_int_equal(fault_segment_find_date(&segment, 102), 2);
	buf_init(&out, 1000);
	fault_segment_encode(&segment, &out);
	assert_int_equal(fault_segment_decode(buf_slice(&out), &again), 0);
	check_two(&again);
	buf_release(&out);
	fault_segment_release(&again);
	fault_segment_release(&segment);
}

/* The bytes of the directory with one of them changed, or without the last. */
static int decode_changed(size_t at, uint8_t to)
{
	uint8_t changed[sizeof(directory)];
	char bytes[1000];
	struct fault_segment segment;
	memcpy(changed, directory, sizeof(directory));
	if (at < sizeof(directory))
		changed[at] = to;
	size_t len =
		pack(changed, sizeof(directory) - (at == sizeof(directory)), bytes, sizeof(bytes));
	int err = fault_segment_decode((struct slice){bytes, len}, &segment);
	fault_segment_release(&segment);
	return err;
}

static void a_directory_that_contradicts_itself_is_damaged(UNUSED void **state)
{
	char bytes[1000];
	struct fault_segment segment;
	size_t end = sizeof(directory);
	assert_int_equal(decode_changed(end, 0), ERR_DAMAGED);     /* cut */
	assert_int_equal(decode_changed(3, 0), ERR_DAMAGED);       /* a number twice */
	assert_int_equal(decode_changed(end - 3, 1), ERR_DAMAGED); /* a place twice */
	assert_int_equal(decode_changed(end - 4, 2), ERR_DAMAGED); /* a place that is not there */
	assert_int_equal(decode_changed(end - 1, 1), ERR_DAMAGED); /* a report in no block */
	assert_int_equal(decode_changed(end - 1, 3), ERR_DAMAGED); /* a block of too many */
	size_t len = pack(directory, sizeof(directory), bytes, sizeof(bytes));
	bytes[0] = 2;
	assert_int_equal(fault_segment_decode((struct slice){bytes, len}, &segment), ERR_VERSION);
	fault_segment_release(&segment);
	bytes[0] = 1;
	bytes[1] = 9; /* a dictionary that is not known */
	assert_int_equal(fault_segment_decode((struct slice){bytes, len}, &segment), ERR_VERSION);
	fault_segment_release(&segment);
	bytes[1] = 0;
	for (size_t cut = 0; cut < len; cut++) {
		assert_int_equal(fault_segment_decode((struct slice){bytes, cut}, &segment),
				 ERR_DAMAGED);
		fault_segment_release(&segment);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_directory_is_as_the_page_has_it),
		cmocka_unit_test(a_directory_with_tags),
		cmocka_unit_test(the_longest_texts_fit),
		cmocka_unit_test(a_directory_that_contradicts_itself_is_damaged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
