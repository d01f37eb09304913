/* What the reports of a group add up to, and the names of a day that are counted. */
#include "fault_harness.h"

#include "fault/names.h"

enum { REPORTS = 3000, PARTS = 5 };

#define HOUR_US INT64_C(3600000000)
#define DAY_US  (19000 * 24 * HOUR_US)

/* Its texts live as long as the next call for the same slot. */
struct made {
	struct fault_arrival arrival;
	char id[24], user[24], host[120], tags[60];
};

static void make(struct made *made, unsigned number, unsigned users)
{
	int id = snprintf(made->id, sizeof(made->id), "id%u", number);
	int user = snprintf(made->user, sizeof(made->user), "user%u", number % users);
	int host = snprintf(made->host, sizeof(made->host), "%s%u",
			    number % 2 ? ""
				       : "a host with a name of more than eighty bytes, as one "
					 "of a cloud may have it, ",
			    number % 3);
	made->arrival = (struct fault_arrival){.date_us = DAY_US + number * INT64_C(28000000),
					       .id = {made->id, (size_t)id},
					       .facts = {.duration_us = -1, .statements = -1}};
	for (size_t t = 0; t < FAULT_TEXTS; t++)
		made->arrival.facts.texts[t] = TEXT("");
	made->arrival.facts.texts[FAULT_USER] = (struct slice){made->user, (size_t)user};
	made->arrival.facts.texts[FAULT_HOST] = (struct slice){made->host, (size_t)host};
	made->arrival.facts.texts[FAULT_TITLE] = TEXT("E: t");
	if (number % 5) { /* two tags, but for each fifth; the first is the user */
		int tags = snprintf(made->tags, sizeof(made->tags),
				    "who\xff%s\xfe"
				    "n\xff%u",
				    made->user, number % 3);
		made->arrival.facts.texts[FAULT_TAGS] = (struct slice){made->tags, (size_t)tags};
	}
	if (number % 7)
		made->arrival.facts.texts[FAULT_RELEASE] = TEXT("1.2");
	if (users > REPORTS / 3)
		made->arrival.facts.texts[FAULT_RELEASE] = made->arrival.facts.texts[FAULT_USER];
}

static void a_cell_is_as_the_page_has_it(UNUSED void **state)
{
	/* clang-format off */
	static const uint8_t bytes[] = {
		2,                                  /* version */
		2,                                  /* reports */
		0x80, 0xcd, 0xad, 0x9d, 0x01,       /* the first: 330 s after midnight */
		0x80, 0xc8, 0xce, 0xb4, 0x0d,       /* the last: an hour later */
		3, 'i', 'd', '1', 3, 'i', 'd', '2', /* their ids */
		4, 'E', ':', ' ', 't',              /* the title */
		3, 1, 1,                            /* hours 0 and 1 have one each */
		1,                                  /* one fact: */
		1, 0x80, 0xcd, 0xad, 0x9d, 0x01, 0, /* one without a release: when, and 0 later */
		0,                                  /* none of releases that are not here */
		1,                                  /* one release */
		3, '1', '.', '2', 1, 0x80, 0xcd, 0xad, 0x9d, 0x01, 0,
	};
	/* clang-format on */
	struct slice value = {(const char *)bytes, sizeof(bytes)};
	struct fault_tally tally;
	bool about;
	assert_int_equal(fault_tally_take(&tally, DAY_US, FAULT_TALLY_ALL, value), 0);
	assert_int_equal(tally.count, 2);
	assert_int_equal(tally.first.date_us, DAY_US + 330000000);
	assert_int_equal(tally.last.date_us, DAY_US + 3930000000);
	assert_true(slice_equal(tally.first.id, TEXT("id1")));
	assert_true(slice_equal(tally.last.id, TEXT("id2")));
	assert_true(slice_equal(tally.title, TEXT("E: t")));
	assert_int_equal(tally.hours[0], 1);
	assert_int_equal(tally.hours[1], 1);
	assert_int_equal(fault_tally_distinct(&tally, FAULT_TALLY_RELEASE, &about), 1);
	assert_false(about);
	const struct fault_value *none = fault_tally_find(&tally, FAULT_TALLY_RELEASE, TEXT(""));
	assert_non_null(none);
	assert_int_equal(none->count, 1);
	fault_tally_release(&tally);
	for (size_t len = 1; len < sizeof(bytes); len++) {
		assert_int_equal(fault_tally_take(&tally, DAY_US, FAULT_TALLY_ALL,
						  (struct slice){(const char *)bytes, len}),
				 ERR_DAMAGED);
		fault_tally_release(&tally);
	}
	assert_int_equal(fault_tally_take(&tally, DAY_US, 0, TEXT("\1")), ERR_VERSION);
	assert_int_equal(fault_tally_take(&tally, DAY_US, 0, TEXT("\3")), ERR_VERSION);
	fault_tally_release(&tally);
}

/* The bytes of the reports `from` a number on, each `step`th. */
static void add_some(struct fault_tally *tally, unsigned from, unsigned step, unsigned users)
{
	struct made made;
	for (unsigned i = from; i < REPORTS; i += step) {
		make(&made, i, users);
		fault_tally_add(tally, &made.arrival);
	}
}

/* Whatever the order, and however they are divided; also beyond what is kept. */
static void it_does_not_depend_on_the_order(UNUSED void **state)
{
	for (unsigned users = 10; users <= 2000; users += 1990) {
		struct fault_tally forward = {0}, parts = {0};
		struct buf one, other;
		struct made made;
		add_some(&forward, 0, 1, users);
		for (unsigned p = PARTS; p-- > 0;) {
			struct fault_tally part = {0}, again;
			add_some(&part, p, PARTS, users);
			buf_init(&one, 1 << 20);
			fault_tally_put(&part, DAY_US, &one);
			assert_int_equal(
				fault_tally_take(&again, DAY_US, FAULT_TALLY_ALL, buf_slice(&one)),
				0);
			fault_tally_merge(&parts, &again, FAULT_TALLY_ALL);
			fault_tally_release(&part);
			fault_tally_release(&again);
			buf_release(&one);
		}
		buf_init(&one, 1 << 20);
		buf_init(&other, 1 << 20);
		fault_tally_put(&forward, DAY_US, &one);
		fault_tally_put(&parts, DAY_US, &other);
		assert_int_equal(one.len, other.len);
		assert_memory_equal(one.data, other.data, one.len);
		buf_release(&one);
		buf_release(&other);
		make(&made, 0, users);
		assert_true(slice_equal(forward.first.id, made.arrival.id));
		make(&made, REPORTS - 1, users);
		assert_true(slice_equal(forward.last.id, made.arrival.id));
		fault_tally_release(&forward);
		fault_tally_release(&parts);
	}
}

/* REPORTS reports of so many users: each has as many, or one more. */
static void users_are_exact_to_a_thousand(UNUSED void **state)
{
	static const unsigned counts[] = {1, 999, 1000, 1001, 3000};
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		struct fault_tally tally = {0};
		const struct fault_values *users = &tally.values[FAULT_TALLY_USER];
		bool about;
		add_some(&tally, 0, 1, counts[i]);
		uint64_t distinct = fault_tally_distinct(&tally, FAULT_TALLY_USER, &about);
		assert_int_equal(about, counts[i] > 1000);
		/* A thousand hashes give it within some 3.2 %; five times that is 16. */
		if (about)
			assert_in_range(distinct, counts[i] * 84 / 100, counts[i] * 116 / 100);
		else
			assert_int_equal(distinct, counts[i]);
		assert_true(users->count <= FAULT_VALUES_MAX);
		for (size_t v = 0; v < users->count; v++)
			assert_in_range(users->list[v].count, REPORTS / counts[i],
					REPORTS / counts[i] + 1);
		fault_tally_release(&tally);
	}
}

/* Six hosts: two texts of three numbers; long ones are cut and stay apart. */
static void values_are_counted(UNUSED void **state)
{
	struct fault_tally tally = {0};
	const struct fault_value *largest[FAULT_VALUES_MAX];
	struct made made;
	bool about;
	add_some(&tally, 0, 1, 10);
	assert_int_equal(fault_tally_distinct(&tally, FAULT_TALLY_HOST, &about), 6);
	assert_int_equal(fault_tally_largest(&tally, FAULT_TALLY_HOST, largest), 6);
	for (size_t i = 0; i < 6; i++) {
		assert_int_equal(largest[i]->count, REPORTS / 6);
		assert_true(largest[i]->text.len <= 80);
	}
	make(&made, 2, 10); /* the first with an even number and the host 2 */
	const struct fault_value *host =
		fault_tally_find(&tally, FAULT_TALLY_HOST, made.arrival.facts.texts[FAULT_HOST]);
	assert_non_null(host);
	assert_int_equal(host->first_us, made.arrival.date_us);
	make(&made, REPORTS - 4, 10); /* 2996: even, and 2 over multiples of three */
	assert_int_equal(host->last_us, made.arrival.date_us);
	const struct fault_value *none = fault_tally_find(&tally, FAULT_TALLY_RELEASE, TEXT(""));
	assert_int_equal(none->count, REPORTS / 7 + 1); /* 0, 7, ... 2996 */
	fault_tally_release(&tally);
}

static void add_release(struct fault_tally *tally, unsigned number, const char *format,
			unsigned release)
{
	struct made made;
	char text[FAULT_LABEL_MAX_BYTES + 1];
	make(&made, number, 1);
	int len = snprintf(text, sizeof(text), format, release);
	made.arrival.facts.texts[FAULT_RELEASE] = (struct slice){text, (size_t)len};
	fault_tally_add(tally, &made.arrival);
}

/* Of 1,000 releases, one report each but three of the latest, the 190 highest versions are kept
 * beside ten names that are none; in whatever order they come. */
static void the_latest_releases_are_kept(UNUSED void **state)
{
	for (unsigned step = 1; step < 1000; step += 996) { /* 997 is a prime */
		struct fault_tally tally = {0};
		const struct fault_values *releases = &tally.values[FAULT_TALLY_RELEASE];
		bool about;
		for (unsigned i = 0; i < 1000; i++) {
			add_release(&tally, i, "1.%u.0", i * step % 1000);
			if (i % 100 == 0)
				add_release(&tally, i, "commit-%u", i);
		}
		add_release(&tally, 5, "1.%u.0", 999);
		add_release(&tally, 6, "1.%u.0", 999);
		assert_int_equal(fault_tally_distinct(&tally, FAULT_TALLY_RELEASE, &about), 200);
		assert_true(about);
		assert_true(slice_equal(fault_tally_latest_release(&tally)->text, TEXT("1.999.0")));
		assert_int_equal(fault_tally_latest_release(&tally)->count, 3);
		assert_true(slice_equal(releases->list[199].text, TEXT("1.810.0")));
		assert_null(fault_tally_find(&tally, FAULT_TALLY_RELEASE, TEXT("1.809.0")));
		assert_int_equal(releases->rest.count, 810);
		fault_tally_release(&tally);
	}
}

/* Where there are no versions that is the latest whose first report came last. */
static void the_latest_of_names_came_last(UNUSED void **state)
{
	struct fault_tally tally = {0};
	add_release(&tally, 10, "b%u", 1);
	assert_null(fault_tally_find(&tally, FAULT_TALLY_RELEASE, TEXT("")));
	add_release(&tally, 20, "a%u", 1);
	add_release(&tally, 30, "b%u", 1);
	add_release(&tally, 15, "c%u", 1);
	assert_true(slice_equal(fault_tally_latest_release(&tally)->text, TEXT("a1")));
	fault_tally_release(&tally);
	add_release(&tally, 1, "%.0u", 0);
	assert_null(fault_tally_latest_release(&tally));
	assert_int_equal(fault_tally_find(&tally, FAULT_TALLY_RELEASE, TEXT(""))->count, 1);
	fault_tally_release(&tally);
}

/* A release of 200 bytes is kept whole: two that differ in the last one are two. */
static void releases_are_not_cut(UNUSED void **state)
{
	struct fault_tally tally = {0};
	bool about;
	char text[FAULT_LABEL_MAX_BYTES + 1];
	memset(text, 'p', sizeof(text));
	memcpy(text + sizeof(text) - 6, "@1.%u", 6);
	add_release(&tally, 1, text, 10);
	add_release(&tally, 2, text, 9);
	assert_int_equal(fault_tally_distinct(&tally, FAULT_TALLY_RELEASE, &about), 2);
	assert_true(slice_ends_with(fault_tally_latest_release(&tally)->text, TEXT("pp@1.10")));
	fault_tally_release(&tally);
}

/* ---- Tags ------------------------------------------------------------------------------------ */

static uint64_t count_of(const struct fault_tally *tally, enum fault_tally_fact fact,
			 struct slice text)
{
	const struct fault_value *value = fault_tally_find(tally, fact, text);
	return value ? value->count : 0;
}

/* Ten users, none of whom has the number of a fifth report but two: 5 divides 10. */
static void each_tag_of_a_report_counts(UNUSED void **state)
{
	struct fault_tally tally = {0};
	bool about;
	add_some(&tally, 0, 1, 10);
	for (unsigned user = 0; user < 10; user++) {
		char text[] = "who\xffuser0";
		text[8] = (char)('0' + user);
		assert_int_equal(count_of(&tally, FAULT_TALLY_TAG, slice_of(text)),
				 user % 5 ? REPORTS / 10 : 0);
	}
	for (unsigned n = 0; n < 3; n++) {
		char text[] = {'n', '\xff', (char)('0' + n), 0};
		const struct fault_value *value =
			fault_tally_find(&tally, FAULT_TALLY_TAG, slice_of(text));
		assert_int_equal(value->count, REPORTS / 3 - REPORTS / 15);
		/* The first of n: 3, for 0 is a fifth; 1; 2. */
		assert_int_equal(value->first_us, DAY_US + (n ? n : 3) * INT64_C(28000000));
	}
	assert_int_equal(count_of(&tally, FAULT_TALLY_TAG, TEXT("")), REPORTS / 5);
	assert_int_equal(fault_tally_distinct(&tally, FAULT_TALLY_TAG, &about), 8 + 3);
	assert_false(about);
	fault_tally_release(&tally);
}

/* With what is no tag between them, and none behind the last. */
static void what_is_no_tag_counts_as_none(UNUSED void **state)
{
	struct fault_tally tally = {0};
	struct made made;
	make(&made, 0, 1);
	made.arrival.facts.texts[FAULT_TAGS] = TEXT("\xfe"
						    "a\xfe\xff"
						    "b\xfe"
						    "c\xff\xfe");
	fault_tally_add(&tally, &made.arrival);
	assert_int_equal(tally.values[FAULT_TALLY_TAG].count, 0);
	assert_int_equal(count_of(&tally, FAULT_TALLY_TAG, TEXT("")), 1);
	made.arrival.facts.texts[FAULT_TAGS] = TEXT("a\xfe"
						    "b\xff"
						    "c\xfe"
						    "d\xff");
	fault_tally_add(&tally, &made.arrival);
	assert_int_equal(tally.values[FAULT_TALLY_TAG].count, 1);
	assert_int_equal(count_of(&tally, FAULT_TALLY_TAG,
				  TEXT("b\xff"
				       "c")),
			 1);
	fault_tally_release(&tally);
}

/* Of 2,000 tags that have one report each a hundred are kept; all reports are told. */
static void a_hundred_tags_are_kept(UNUSED void **state)
{
	struct fault_tally tally = {0};
	const struct fault_values *tags = &tally.values[FAULT_TALLY_TAG];
	bool about;
	for (unsigned i = 0; i < 2000; i++) {
		struct made made;
		make(&made, i, 1);
		int len = snprintf(made.tags, sizeof(made.tags), "request\xff%u", i);
		made.arrival.facts.texts[FAULT_TAGS] = (struct slice){made.tags, (size_t)len};
		fault_tally_add(&tally, &made.arrival);
	}
	assert_int_equal(tags->count, 100);
	assert_int_equal(tags->rest.count, 1900);
	uint64_t distinct = fault_tally_distinct(&tally, FAULT_TALLY_TAG, &about);
	assert_true(about);
	/* A hundred hashes give it within some 10 %; four times that is 40. */
	assert_in_range(distinct, 1200, 2800);
	fault_tally_release(&tally);
}

/* ---- Which tags are kept --------------------------------------------------------------------- */

enum { NAMES = 30, TAGS_KEPT = 100 };

struct ranked {
	char text[24];
	uint64_t hash;
	unsigned name, rank;
};

/* How many values a name has: 1 to 29 for 29 of them, and one has 600. */
static unsigned values_of(unsigned name)
{
	return name ? name : 600;
}

static int by_name(const void *one, const void *other)
{
	const struct ranked *a = one, *b = other;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return a->hash < b->hash ? -1 : 1;
}

static int by_rank(const void *one, const void *other)
{
	const struct ranked *a = one, *b = other;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return a->hash < b->hash ? -1 : 1;
}

/* All tags in the order of doc/format-faults.md: those that are kept first. */
static size_t rank_tags(struct ranked *list)
{
	size_t count = 0;
	for (unsigned name = 0; name < NAMES; name++)
		for (unsigned value = 0; value < values_of(name); value++) {
			struct ranked *tag = &list[count++];
			int len =
				snprintf(tag->text, sizeof(tag->text), "name%u\xff%u", name, value);
			tag->name = name;
			tag->hash = hash64(tag->text, (size_t)len, 0);
		}
	qsort(list, count, sizeof(*list), by_name);
	for (size_t i = 1; i < count; i++)
		list[i].rank = list[i].name == list[i - 1].name ? list[i - 1].rank + 1 : 0;
	qsort(list, count, sizeof(*list), by_rank);
	return count;
}

static void add_tag(struct fault_tally *tally, unsigned number, const char *text)
{
	struct made made;
	make(&made, number, 1);
	made.arrival.facts.texts[FAULT_TAGS] = slice_of(text);
	fault_tally_add(tally, &made.arrival);
}

/* Whatever the order of reports, and in how many cells they are: each tag has three. */
static void a_name_of_many_tags_leaves_room(UNUSED void **state)
{
	static struct ranked list[2000];
	static const unsigned steps[] = {1, 101, 707, 1034}; /* no divisor of 1,035 */
	size_t count = rank_tags(list);
	assert_int_equal(count, 1035);
	for (size_t s = 0; s < ARRAY_LEN(steps); s++) {
		unsigned step = steps[s];
		struct fault_tally parts[PARTS] = {{0}}, all = {0};
		struct buf bytes;
		bool about;
		for (unsigned i = 0; i < 3 * count; i++)
			add_tag(&parts[i / 7 % PARTS], i % REPORTS, list[i * step % count].text);
		for (size_t p = 0; p < PARTS; p++) {
			struct fault_tally read;
			buf_init(&bytes, 1 << 20);
			fault_tally_put(&parts[p], DAY_US, &bytes);
			assert_int_equal(
				fault_tally_take(&read, DAY_US, FAULT_TALLY_ALL, buf_slice(&bytes)),
				0);
			fault_tally_merge(&all, &read, FAULT_TALLY_ALL);
			fault_tally_release(&read);
			fault_tally_release(&parts[p]);
			buf_release(&bytes);
		}
		assert_int_equal(all.values[FAULT_TALLY_TAG].count, TAGS_KEPT);
		assert_int_equal(all.values[FAULT_TALLY_TAG].rest.count, 3 * (count - TAGS_KEPT));
		for (size_t i = 0; i < count; i++)
			assert_int_equal(count_of(&all, FAULT_TALLY_TAG, slice_of(list[i].text)),
					 i < TAGS_KEPT ? 3 : 0);
		/* Three or four of each name are kept, so it is but roughly known. */
		uint64_t distinct = fault_tally_distinct(&all, FAULT_TALLY_TAG, &about);
		assert_true(about && distinct > 100 && distinct < 3 * count);
		fault_tally_release(&all);
	}
}

/* A tag of the user's name goes whatever it is called; one that only begins so stays. */
static void an_erased_user_is_in_no_tag(UNUSED void **state)
{
	struct fault_tally tally = {0};
	struct hash_table ids = {0};
	struct made made;
	make(&made, 0, 1);
	made.arrival.facts.texts[FAULT_USER] = TEXT("");
	made.arrival.facts.texts[FAULT_TAGS] = TEXT("by\xff"
						    "anna\xfe"
						    "user\xff"
						    "anna\xfe"
						    "anna\xff"
						    "1\xfe"
						    "by\xff"
						    "anna2");
	fault_tally_add(&tally, &made.arrival);
	assert_false(fault_tally_erase(&tally, TEXT("ann"), &ids));
	assert_true(fault_tally_erase(&tally, TEXT("anna"), &ids));
	assert_int_equal(tally.values[FAULT_TALLY_TAG].count, 2);
	assert_int_equal(tally.values[FAULT_TALLY_TAG].rest.count, 2);
	assert_int_equal(count_of(&tally, FAULT_TALLY_TAG,
				  TEXT("anna\xff"
				       "1")),
			 1);
	assert_int_equal(count_of(&tally, FAULT_TALLY_TAG,
				  TEXT("by\xff"
				       "anna2")),
			 1);
	assert_false(fault_tally_erase(&tally, TEXT("anna"), &ids));
	fault_tally_release(&tally);
}

/* One report, seven facts that it does not have, and tags if `tags` has any: as the page has it. */
static size_t cell_of(const char *tags, size_t len, uint8_t facts, char to[400])
{
	static const char head[] = {2, 1, 0, 0, 1, 'i', 0, 0, 1, 1};
	memcpy(to, head, sizeof(head));
	size_t at = sizeof(head);
	to[at++] = (char)facts;
	for (int i = 0; i < 7; i++, at += 5)
		memcpy(to + at, "\1\0\0\0\0", 5); /* one without it, at midnight; no others */
	memcpy(to + at, tags, len);
	return at + len;
}

static int take_cell(const char *tags, size_t len, uint8_t facts, unsigned wanted,
		     struct fault_tally *tally)
{
	char bytes[400];
	size_t all = cell_of(tags, len, facts, bytes);
	return fault_tally_take(tally, DAY_US, wanted, (struct slice){bytes, all});
}

static void cells_from_before_there_were_tags(UNUSED void **state)
{
	static const char tags[] = {0, 0, 1, 3, 'a', '\xff', 'b', 1, 0, 0};
	struct fault_tally tally, both;
	struct buf out;
	buf_init(&out, 1000);
	assert_int_equal(take_cell("", 0, 7, FAULT_TALLY_ALL, &tally), 0);
	assert_int_equal(tally.values[FAULT_TALLY_EXCEPTION].none.count, 1);
	assert_null(fault_tally_find(&tally, FAULT_TALLY_TAG, TEXT("")));
	assert_int_equal(take_cell(tags, sizeof(tags), 8, FAULT_TALLY_ALL, &both), 0);
	assert_int_equal(count_of(&both, FAULT_TALLY_TAG,
				  TEXT("a\xff"
				       "b")),
			 1);
	fault_tally_merge(&both, &tally, FAULT_TALLY_ALL);
	assert_int_equal(both.count, 2);
	assert_int_equal(count_of(&both, FAULT_TALLY_TAG,
				  TEXT("a\xff"
				       "b")),
			 1);
	fault_tally_put(&both, DAY_US, &out);
	assert_memory_equal(out.data + out.len - sizeof(tags), tags, sizeof(tags));
	buf_release(&out);
	fault_tally_release(&tally);
	fault_tally_release(&both);
}

/* Whether they are wanted or not. Where other facts are, what is behind these is not looked at. */
static void damaged_tags(UNUSED void **state)
{
	static const char *const bad[] = {
		"\0\0\1\2ab\1\0\0", /* no value */
		"\0\0\1\3\xff"
		"ab\1\0\0", /* no name */
		"\0\0\1\3"
		"ab\xff\1\0\0", /* an empty value */
		"\0\0\1\3"
		"a\xff"
		"b\0\0\0" /* no reports */,
		"\0\0\x65\3"
		"a\xff"
		"b\1\0\0", /* 101 */
	};
	static const char longest[] = {0, 0, 1, (char)0xea, 1}; /* 234 bytes */
	struct fault_tally tally;
	char tag[245] = "";
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(take_cell(bad[i], 10, 8, 0, &tally), ERR_DAMAGED);
		fault_tally_release(&tally);
		assert_int_equal(take_cell(bad[i], 10, 8, FAULT_TALLY_ALL, &tally), ERR_DAMAGED);
		fault_tally_release(&tally);
		assert_int_equal(take_cell(bad[i], 10, 8, 1 << FAULT_TALLY_USER, &tally), 0);
		fault_tally_release(&tally);
	}
	for (uint8_t len = 233; len < 235; len++) {
		memcpy(tag, longest, sizeof(longest));
		memset(tag + sizeof(longest), 'a', len);
		tag[3] = (char)(len & 0x7f) | (char)0x80;
		tag[sizeof(longest) + 1] = '\xff';
		memcpy(tag + sizeof(longest) + len, "\1\0", 3);
		assert_int_equal(take_cell(tag, sizeof(longest) + len + 3, 8, 0, &tally),
				 len > 233 ? ERR_DAMAGED : 0);
		fault_tally_release(&tally);
	}
}

static int note_entered(void *owner, const struct fault_name_cell *cell)
{
	*(size_t *)owner += cell->enters.len > 0;
	return 0;
}

/* A group whose first cell is written when it has no report any more is not entered by that, but
 * by the next that has one; and once only. */
static void a_group_is_entered_with_its_first_reports(UNUSED void **state)
{
	struct fault_names names, none;
	struct made made;
	size_t entered = 0;
	make(&made, 1, 1);
	fault_names_init(&names, DAY_US, 10, true);
	fault_names_init(&none, DAY_US, 10, true);
	assert_true(fault_names_add(&names, TEXT("g"), &made.arrival));
	fault_names_replace(&names, &none);
	assert_int_equal(
		fault_names_write(&names, (struct fault_version){1, 1}, note_entered, &entered), 0);
	fault_names_written(&names, (struct fault_version){1, 1});
	assert_int_equal(entered, 0);
	for (unsigned checkpoint = 2; checkpoint < 4; checkpoint++) {
		const struct fault_version version = {1, checkpoint};
		assert_true(fault_names_add(&names, TEXT("g"), &made.arrival));
		assert_int_equal(fault_names_write(&names, version, note_entered, &entered), 0);
		fault_names_written(&names, version);
		assert_int_equal(entered, 1);
	}
	fault_names_release(&names);
}

/* Those whose first report came first are counted; whether that is so is known. */
static void further_names_are_the_rest(UNUSED void **state)
{
	static const char *const texts[] = {"a", "b", "c", "a"};
	struct fault_names names;
	struct made made;
	fault_names_init(&names, DAY_US, 2, true);
	for (unsigned i = 0; i < 4; i++) {
		make(&made, i + 1, 1);
		assert_int_equal(fault_names_add(&names, slice_of(texts[i]), &made.arrival),
				 i != 2);
	}
	assert_int_equal(names.count, 2);
	assert_int_equal(names.rest, 1);
	assert_false(names.disordered);
	assert_int_equal(fault_names_find(&names, TEXT("a"))->count, 2);
	assert_null(fault_names_find(&names, TEXT("c")));
	make(&made, 0, 1);
	assert_false(fault_names_add(&names, TEXT("d"), &made.arrival));
	assert_true(names.disordered);
	fault_names_release(&names);
}

/* ---- Checkpoints ----------------------------------------------------------------------------- */

enum { GROUPS = 3, CHECKPOINTS = 60, USERS = 1100 };

/* What a group's cell is to have: all its reports in one tally, which is never written or read. */
struct expected {
	struct fault_tally tally;
	struct buf before; /* as the last checkpoint that was whole has it */
	bool met;
};

struct checkpoint {
	struct expected groups[GROUPS];
	struct fault_version last, version; /* last: tenure 0: none */
};

static int compare_cell(void *owner, const struct fault_name_cell *cell)
{
	struct checkpoint *c = owner;
	struct expected *group = &c->groups[cell->column.data[cell->column.len - 1] - '0'];
	struct fault_versioned read;
	struct buf value, unpacked;
	buf_init(&value, 1 << 20);
	buf_init(&unpacked, FAULT_VERSIONED_MAX_BYTES);
	fault_tally_put(&group->tally, DAY_US, &value);
	assert_int_equal(fault_versioned_decode(cell->value, &unpacked, &read), 0);
	assert_true(fault_version_equal(read.version, c->version));
	assert_true(slice_equal(read.value, buf_slice(&value)));
	if (read.has_before)
		assert_true(fault_version_equal(read.before_version, c->last));
	assert_true(slice_equal(read.before, buf_slice(&group->before)));
	buf_release(&unpacked);
	buf_release(&value);
	group->met = true;
	return 0;
}

static void add_to_group(struct fault_names *names, struct checkpoint *c, unsigned group,
			 unsigned report)
{
	char name[2] = {(char)('0' + group), 0};
	struct made made;
	make(&made, report, USERS);
	assert_true(fault_names_add(names, slice_of(name), &made.arrival));
	fault_tally_add(&c->groups[group].tally, &made.arrival);
}

static void erase_user(struct fault_names *names, struct checkpoint *c, unsigned report)
{
	struct hash_table ids = {0};
	struct made made;
	bool added, any = false;
	make(&made, report, USERS);
	struct slice user = made.arrival.facts.texts[FAULT_USER];
	hash_table_add(&ids, fault_id_hash(made.arrival.id), sizeof(struct hash128), &added);
	for (size_t g = 0; g < GROUPS; g++)
		any = (c->groups[g].tally.count &&
		       fault_tally_erase(&c->groups[g].tally, user, &ids)) ||
		      any;
	assert_int_equal(fault_names_erase(names, user, &ids), any);
	fault_names_write_again(names);
	hash_table_release(&ids);
}

/* The reports of the first group are counted anew: only one of them is there. */
static void recount(struct fault_names *names, struct checkpoint *c, unsigned report)
{
	struct fault_names fresh;
	fault_names_init(&fresh, DAY_US, 10, true);
	for (unsigned g = 0; g < GROUPS; g++)
		fault_tally_release(&c->groups[g].tally);
	add_to_group(&fresh, c, 0, report);
	fault_names_replace(names, &fresh);
	add_to_group(names, c, 1, report + 1);
}

/* Each third does not become whole: the next one has the same value before it. */
static void write_checkpoint(struct fault_names *names, struct checkpoint *c, unsigned number)
{
	c->version = (struct fault_version){7, number};
	assert_int_equal(fault_names_write(names, c->version, compare_cell, c), 0);
	if (number % 3 == 0)
		return;
	fault_names_written(names, c->version);
	for (size_t g = 0; g < GROUPS; g++) {
		buf_clear(&c->groups[g].before);
		fault_tally_put(&c->groups[g].tally, DAY_US, &c->groups[g].before);
	}
	c->last = c->version;
}

static void compare_answers(const struct fault_names *names, const struct checkpoint *c)
{
	for (unsigned g = 0; g < GROUPS; g++) {
		char text[2] = {(char)('0' + g), 0};
		const struct fault_name *name = fault_names_find(names, slice_of(text));
		struct fault_tally tally = {0};
		struct buf is, expected;
		buf_init(&is, 1 << 20);
		buf_init(&expected, 1 << 20);
		if (name)
			assert_int_equal(fault_names_tally(names, name, FAULT_TALLY_ALL, &tally),
					 0);
		fault_tally_put(&tally, DAY_US, &is);
		fault_tally_put(&c->groups[g].tally, DAY_US, &expected);
		assert_true(slice_equal(buf_slice(&is), buf_slice(&expected)));
		buf_release(&is);
		buf_release(&expected);
		fault_tally_release(&tally);
	}
}

/* Whatever is written, erased and counted anew between them: a cell has all reports, and the value
 * of the last checkpoint that was whole. Each has all groups, so that is the last one of each. */
static void cells_have_all_reports(UNUSED void **state)
{
	struct fault_names names;
	struct checkpoint c = {0};
	unsigned report = 0;
	fault_names_init(&names, DAY_US, 10, true);
	for (size_t g = 0; g < GROUPS; g++)
		buf_init(&c.groups[g].before, 1 << 20);
	for (unsigned number = 1; number <= CHECKPOINTS; number++) {
		for (unsigned i = 0; i < 40 + GROUPS; i++, report++)
			add_to_group(&names, &c, i < GROUPS ? i : report % GROUPS, report);
		compare_answers(&names, &c);
		if (number % 7 == 0)
			erase_user(&names, &c, report - 30);
		if (number == CHECKPOINTS / 2)
			recount(&names, &c, report);
		compare_answers(&names, &c);
		write_checkpoint(&names, &c, number);
		compare_answers(&names, &c);
	}
	for (size_t g = 0; g < GROUPS; g++) {
		assert_true(c.groups[g].met);
		fault_tally_release(&c.groups[g].tally);
		buf_release(&c.groups[g].before);
	}
	fault_names_release(&names);
}

/* A group with many users has its bytes once; what came since a checkpoint is as small as that. */
static void a_group_is_in_memory_once(UNUSED void **state)
{
	const struct fault_version version = {1, 1};
	struct fault_names names;
	struct made made;
	size_t entered = 0;
	fault_names_init(&names, DAY_US, 10, true);
	for (unsigned i = 0; i < REPORTS; i++) {
		make(&made, i, 1000);
		assert_true(fault_names_add(&names, TEXT("g"), &made.arrival));
	}
	assert_int_equal(fault_names_write(&names, version, note_entered, &entered), 0);
	fault_names_written(&names, version);
	assert_true(fault_names_add(&names, TEXT("g"), &made.arrival));
	assert_true(fault_names_add(&names, TEXT("packs the one before"), &made.arrival));
	const struct fault_name *name = fault_names_find(&names, TEXT("g"));
	/* Of each user the text, how many, the first, the last: 4 + 1 + 4 + 4 at least. */
	assert_true(name->written.len > 1000 * 13);
	assert_null(name->tally);
	/* Seven facts with one value or none, two tags, three ids and titles. */
	assert_in_range(name->packed.len, 1, 250);
	fault_names_release(&names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_is_as_the_page_has_it),
		cmocka_unit_test(it_does_not_depend_on_the_order),
		cmocka_unit_test(users_are_exact_to_a_thousand),
		cmocka_unit_test(values_are_counted),
		cmocka_unit_test(the_latest_releases_are_kept),
		cmocka_unit_test(the_latest_of_names_came_last),
		cmocka_unit_test(releases_are_not_cut),
		cmocka_unit_test(each_tag_of_a_report_counts),
		cmocka_unit_test(what_is_no_tag_counts_as_none),
		cmocka_unit_test(a_hundred_tags_are_kept),
		cmocka_unit_test(a_name_of_many_tags_leaves_room),
		cmocka_unit_test(an_erased_user_is_in_no_tag),
		cmocka_unit_test(cells_from_before_there_were_tags),
		cmocka_unit_test(damaged_tags),
		cmocka_unit_test(a_group_is_entered_with_its_first_reports),
		cmocka_unit_test(further_names_are_the_rest),
		cmocka_unit_test(cells_have_all_reports),
		cmocka_unit_test(a_group_is_in_memory_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
