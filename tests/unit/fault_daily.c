/* The daily report: its classes and sections, its text and its page, by reports of which it is
 * known by hand what they add up to; which groups are new, for any process; and statements. */
#include "fault_harness.h"

#include "base/utf8.h"
#include "base/visible.h"
#include "fault/daily.h"

#define DAY    INT64_C(19675) /* 2023-11-14 */
#define DAY_US (DAY * FAULT_DAY_US)
#define SEC_US INT64_C(1000000)

enum { TEXT_MAX_BYTES = 1 << 20 };

/* ---- A report of a day ----------------------------------------------------------------------- */

/* A report of a group, so many seconds after midnight. */
struct made {
	const char *group, *exception, *title, *context, *level, *id;
	int64_t seconds;
};

static void add(struct fault_daily *daily, const struct made *made)
{
	struct fault_arrival arrival = {.date_us = DAY_US + made->seconds * SEC_US,
					.id = slice_of(made->id),
					.facts = {.duration_us = -1, .statements = -1}};
	struct slice name = slice_of(made->group);
	struct fault_group_sum *sum;
	bool added;
	for (size_t t = 0; t < FAULT_TEXTS; t++)
		arrival.facts.texts[t] = TEXT("");
	arrival.facts.texts[FAULT_EXCEPTION] = slice_of(made->exception);
	arrival.facts.texts[FAULT_TITLE] = slice_of(made->title);
	arrival.facts.texts[FAULT_CONTEXT] = slice_of(made->context);
	arrival.facts.texts[FAULT_LEVEL] = slice_of(made->level);
	sum = hash_table_add(&daily->sums.table, hash128(name.data, name.len, 0), sizeof(*sum),
			     &added);
	if (added) {
		sum->name = mem_copy_slice(name);
		sum->tally = mem_zalloc(sizeof(*sum->tally));
	}
	fault_tally_add(sum->tally, &arrival);
	daily->total++;
}

static void begin(struct fault_daily *daily, const struct made *made, size_t count)
{
	*daily = (struct fault_daily){.tenant = TEXT("shop"), .day = DAY};
	arena_init(&daily->arena, 1 << 20);
	for (size_t i = 0; i < count; i++)
		add(daily, &made[i]);
	fault_daily_list(daily);
}

static struct fault_daily_group *group_of(struct fault_daily *daily, const char *name)
{
	for (size_t i = 0; i < daily->group_count; i++)
		if (slice_equal(daily->list[i].name, slice_of(name)))
			return &daily->list[i];
	fail_msg("no group %s", name);
	return NULL;
}

static void check_text(const struct fault_daily *daily, const char *expected)
{
	struct buf out;
	buf_init(&out, TEXT_MAX_BYTES);
	fault_daily_put_text(daily, &out);
	assert_false(out.failed);
	buf_append_char(&out, 0);
	assert_string_equal(out.data, expected);
	buf_release(&out);
}

static const struct made some_reports[] = {
	{"1-a", "KeyError", "KeyError: 'anna'", "/login", "", "OOPS-1", 10},
	{"1-a", "KeyError", "KeyError: 'bob'", "/pay", "", "OOPS-2", 20},
	{"1-a", "KeyError", "KeyError: 'eve'", "/login", "", "OOPS-3", 30},
	{"1-b", "RequestExpired", "RequestExpired: too slow", "/slow", "", "OOPS-4", 40},
	{"1-b", "RequestExpired", "RequestExpired: too slow", "/slow", "", "OOPS-5", 50},
	{"1-c", "SoftRequestTimeout", "SoftRequestTimeout", "/slow", "", "OOPS-6", 60},
	{"1-d", "NotFound", "NotFound: x", "", "", "OOPS-7", 70},
};

static void the_text_is_as_worked_out_by_hand(UNUSED void **state)
{
	struct fault_daily daily;
	const struct fault_said said = {.release = TEXT(""),
					.assignee = TEXT("anna"),
					.bugs = {{TEXT("lp"), TEXT("4711")}},
					.bug_count = 1};
	begin(&daily, some_reports, ARRAY_LEN(some_reports));
	daily.before = 5;
	daily.total += 2;
	daily.rest = 2;
	group_of(&daily, "1-a")->is_new = true;
	group_of(&daily, "1-b")->before = 5;
	group_of(&daily, "1-b")->said = &said;
	group_of(&daily, "1-b")->again = true;
	group_of(&daily, "1-b")->statement =
		(struct fault_statement){TEXT("select a from b"), 3, 2500000};
	group_of(&daily, "1-c")->status = FAULT_MUTED;
	fault_daily_arrange(&daily);
	daily.longest = (struct fault_daily_tops){
		.list = {{12345678, TEXT("OOPS-5"), TEXT("/slow"), {TEXT(""), 0, 0}}},
		.count = 1,
		.listed = 100,
		.looked_at = 30,
		.unread = 1};
	daily.most = (struct fault_daily_tops){
		.list = {{412, TEXT("OOPS-4"), TEXT(""), {TEXT("select 1"), 400, 1500000}}},
		.count = 1,
		.listed = 1,
		.looked_at = 1};
	check_text(&daily, "Fault reports of shop on 2023-11-14, so far\n"
			   "\n"
			   "=== Statistics ===\n"
			   "\n"
			   " * 9 reports; the day before 5\n"
			   " * received from 2023-11-14T00:00:10Z to 2023-11-14T00:01:10Z\n"
			   " * 4 groups, 1 of them new\n"
			   " * 3 Exceptions\n"
			   " * 2 Time Outs\n"
			   " * 1 Soft Time Outs\n"
			   " * 1 Pages Not Found\n"
			   " * 2 reports that are in no group which is counted\n"
			   "\n"
			   "=== All New Groups ===\n"
			   "\n"
			   "       3  KeyError: 'anna'\n"
			   "          1-a, open, new\n"
			   "          2: /login\n"
			   "          1: /pay\n"
			   "          OOPS-1\n"
			   "          OOPS-3\n"
			   "\n"
			   "=== Top 1 Durations by Page ===\n"
			   "\n"
			   "   12.35  OOPS-5\n"
			   "          /slow\n"
			   "[of the 100 reports of this list 30 were looked at]\n"
			   "[1 reports can be read no more]\n"
			   "\n"
			   "=== Top 1 Statement Counts by Page ===\n"
			   "\n"
			   "     412  OOPS-4\n"
			   "          (no context)\n"
			   "          repeated 400 times, 1.50 s: select 1\n"
			   "\n"
			   "=== All Time Out Counts by Page ===\n"
			   "\n"
			   "    Hard /     Soft  Page\n"
			   "       2 /        1  /slow\n"
			   "\n"
			   "=== All Exceptions ===\n"
			   "\n"
			   "       3  KeyError: 'anna'\n"
			   "          1-a, open, new\n"
			   "          2: /login\n"
			   "          1: /pay\n"
			   "          OOPS-1\n"
			   "          OOPS-3\n"
			   "\n"
			   "=== All Time Outs ===\n"
			   "\n"
			   "       2  RequestExpired: too slow\n"
			   "          1-b, open again, of anna, the day before 5\n"
			   "          bug lp: 4711\n"
			   "          statement 3 times, 2.50 s: select a from b\n"
			   "          2: /slow\n"
			   "          OOPS-4\n"
			   "          OOPS-5\n"
			   "\n"
			   "=== All Soft Time Outs ===\n"
			   "\n"
			   "       1  SoftRequestTimeout\n"
			   "          1-c, muted, the day before 0\n"
			   "          1: /slow\n"
			   "          OOPS-6\n"
			   "\n"
			   "=== All Pages Not Found ===\n"
			   "\n"
			   "       1  NotFound: x\n"
			   "          1-d, open, the day before 0\n"
			   "          1: (no context)\n"
			   "          OOPS-7\n");
	fault_daily_release(&daily);
}

static void an_empty_day_says_so(UNUSED void **state)
{
	struct fault_daily daily;
	begin(&daily, NULL, 0);
	daily.closed = true;
	fault_daily_arrange(&daily);
	check_text(&daily, "Fault reports of shop on 2023-11-14\n\nNo fault reports were "
			   "received.\n");
	daily.before = 3;
	check_text(&daily, "Fault reports of shop on 2023-11-14\n\n=== Statistics ===\n\n"
			   " * 0 reports; the day before 3\nNo fault reports were received.\n");
	fault_daily_release(&daily);
}

/* ---- Classes, order, bounds ------------------------------------------------------------------ */

static void each_exception_has_its_class(UNUSED void **state)
{
	static const struct {
		const char *exception, *title, *level;
		enum fault_daily_section section;
	} cases[] = {
		{"KeyError", "KeyError", "", FAULT_DAILY_EXCEPTIONS},
		{"KeyError", "KeyError", "error", FAULT_DAILY_EXCEPTIONS},
		{"", "something", "warning", FAULT_DAILY_EXCEPTIONS},
		{"RequestExpired", "", "", FAULT_DAILY_TIMEOUTS},
		{"RequestStatementTimedOut", "", "", FAULT_DAILY_TIMEOUTS},
		{"TimeoutError", "", "info", FAULT_DAILY_TIMEOUTS},
		{"LaunchpadTimeoutError", "", "", FAULT_DAILY_TIMEOUTS},
		{"OperationalError",
		 "OperationalError: canceling statement due to statement timeout", "",
		 FAULT_DAILY_TIMEOUTS},
		{"SoftRequestTimeout", "SoftRequestTimeout", "info", FAULT_DAILY_SOFT_TIMEOUTS},
		{"NotFound", "", "info", FAULT_DAILY_INFORMATIONAL},
		{"", "hello", "debug", FAULT_DAILY_INFORMATIONAL},
		{"UnexpectedFormData", "", "", FAULT_DAILY_USER_GENERATED},
		{"UserRequestOops", "", "", FAULT_DAILY_USER_GENERATED},
		{"Unauthorized", "", "", FAULT_DAILY_UNAUTHORIZED},
		{"unauthorized", "", "", FAULT_DAILY_EXCEPTIONS},
		{"NotFound", "", "", FAULT_DAILY_NOT_FOUND},
		{"GoneError", "", "", FAULT_DAILY_NOT_FOUND},
		{"NotFoundError", "", "", FAULT_DAILY_EXCEPTIONS},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct made made = {"1-x", cases[i].exception, cases[i].title,
					  "/",   cases[i].level,     "OOPS-1",
					  1};
		struct fault_daily daily;
		begin(&daily, &made, 1);
		if (daily.list[0].section != cases[i].section)
			fail_msg("%s %s", cases[i].exception, cases[i].title);
		fault_daily_release(&daily);
	}
}

/* 60 groups of one, two, three ... reports in as many contexts as there are reports: 50 of them are
 * shown, and of pages ten. */
static void a_section_has_a_bound_and_says_what_is_beyond_it(UNUSED void **state)
{
	enum { GROUPS = 60 };
	struct fault_daily daily;
	char names[GROUPS][8], contexts[GROUPS][8];
	begin(&daily, NULL, 0);
	for (int i = 0; i < GROUPS; i++) {
		snprintf(names[i], sizeof(names[i]), "1-%02d", i);
		snprintf(contexts[i], sizeof(contexts[i]), "/%02d", i);
		for (int n = 0; n <= i; n++) {
			const struct made made = {names[i], "TimeoutError", "t",        contexts[n],
						  "",       contexts[n],    i * 100 + n};
			add(&daily, &made);
		}
	}
	mem_free(daily.list);
	fault_daily_list(&daily);
	fault_daily_arrange(&daily);
	const struct fault_daily_groups *groups = &daily.groups[FAULT_DAILY_TIMEOUTS];
	assert_int_equal(groups->unique, GROUPS);
	assert_int_equal(groups->count, FAULT_DAILY_GROUPS_MAX);
	assert_int_equal(groups->reports, GROUPS * (GROUPS + 1) / 2);
	assert_int_equal(groups->reports - groups->shown, 10 * 11 / 2);
	for (size_t i = 0; i < groups->count; i++)
		assert_int_equal(groups->list[i]->tally->count, GROUPS - i);
	/* The context /n is that of a report of each group from n on. */
	const struct fault_daily_timeout_pages *pages = &daily.timeouts;
	assert_int_equal(pages->unique, GROUPS);
	assert_int_equal(pages->count, FAULT_DAILY_PAGES_MAX);
	for (size_t i = 0; i < pages->count; i++)
		assert_int_equal(pages->list[i].hard, GROUPS - i);
	assert_int_equal(pages->hard_rest, 50 * 51 / 2);
	assert_int_equal(pages->soft_rest, 0);
	struct fault_daily_contexts of_one;
	fault_daily_contexts(groups->list[0], 3, &of_one);
	assert_int_equal(of_one.count, 3);
	assert_int_equal(of_one.rest, GROUPS - 3);
	fault_daily_release(&daily);
}

/* By count, then type, then title, then name; those without a context stand by their count. */
static void groups_and_contexts_are_in_order(UNUSED void **state)
{
	static const struct made made[] = {
		{"1-a", "B", "B: 1", "/x", "", "a", 1}, {"1-b", "A", "A: 2", "/x", "", "b", 2},
		{"1-c", "A", "A: 1", "/x", "", "c", 3}, {"1-d", "Z", "Z: 1", "/x", "", "d", 4},
		{"1-d", "Z", "Z: 1", "", "", "e", 5},   {"1-d", "Z", "Z: 1", "", "", "f", 6},
		{"1-d", "Z", "Z: 1", "/w", "", "g", 7}, {"1-0", "A", "A: 1", "/x", "", "h", 8},
	};
	static const char *const order[] = {"1-d", "1-0", "1-c", "1-b", "1-a"};
	struct fault_daily_contexts contexts;
	struct fault_daily daily;
	begin(&daily, made, ARRAY_LEN(made));
	fault_daily_arrange(&daily);
	const struct fault_daily_groups *groups = &daily.groups[FAULT_DAILY_EXCEPTIONS];
	assert_int_equal(groups->count, ARRAY_LEN(order));
	for (size_t i = 0; i < groups->count; i++)
		assert_true(slice_equal(groups->list[i]->name, slice_of(order[i])));
	fault_daily_contexts(groups->list[0], 2, &contexts);
	assert_int_equal(contexts.list[0].count, 2);
	assert_int_equal(contexts.list[0].context.len, 0);
	assert_true(slice_equal(contexts.list[1].context, TEXT("/w")));
	assert_int_equal(contexts.rest, 1);
	fault_daily_release(&daily);
}

/* ---- Hostile text ---------------------------------------------------------------------------- */

static void check_lines(struct slice text)
{
	size_t columns = 0;
	assert_true(utf8_is_valid(text));
	for (size_t at = 0; at < text.len;) {
		const uint8_t *p = (const uint8_t *)text.data + at;
		size_t len = utf8_length(p, text.len - at);
		columns = *p == '\n' ? 0 : columns + 1;
		assert_true(columns <= FAULT_DAILY_COLUMNS);
		assert_true(*p == '\n' || (*p >= 0x20 && *p != 0x7f));
		assert_true(len < 2 || !visible_is_command(utf8_code(p, len)));
		at += len;
	}
}

static size_t occurrences(const struct buf *text, const char *what)
{
	size_t count = 0, len = strlen(what);
	for (const char *at = text->data;
	     (at = memmem(at, text->len - (size_t)(at - text->data), what, len)); at += len)
		count++;
	return count;
}

static void hostile_text_is_text(UNUSED void **state)
{
	static const char evil[] =
		"<script>alert(1)</script>\"'&amp;\n\r\x1b[31m\x7f\xe2\x80\xae\xff "
		"a-long-word-without-a-blank-in-it-that-is-longer-than-a-line-of-eighty-columns-is"
		" \xc3\xa4\xc3\xb6\xc3\xbc";
	const struct made made = {evil, evil, evil, evil, "", evil, 1};
	const struct made second = {evil, evil, evil, evil, "", evil, 2};
	const struct fault_said said = {.release = TEXT(""),
					.assignee = TEXT(evil),
					.bugs = {{TEXT(evil), TEXT(evil)},
						 {TEXT("x"), TEXT("javascript:alert(1)")},
						 {TEXT("y"), TEXT("https://b.example/?a=1&b=\"2")}},
					.bug_count = 3};
	const struct fault_statement statement = {TEXT(evil), 2, 1};
	struct fault_daily daily;
	struct buf out;
	buf_init(&out, TEXT_MAX_BYTES);
	begin(&daily, &made, 1);
	add(&daily, &second);
	daily.list[0].is_new = true;
	daily.list[0].said = &said;
	daily.list[0].statement = statement;
	fault_daily_arrange(&daily);
	daily.most = (struct fault_daily_tops){.list = {{1, TEXT(evil), TEXT(evil), statement}},
					       .count = 1,
					       .listed = 1,
					       .looked_at = 1};
	daily.longest = daily.most;
	fault_daily_put_text(&daily, &out);
	assert_false(out.failed);
	check_lines(buf_slice(&out));
	assert_true(occurrences(&out, "<script>") > 10);
	buf_clear(&out);
	fault_daily_put_html(&daily, &out);
	assert_false(out.failed);
	assert_true(utf8_is_valid(buf_slice(&out)));
	assert_int_equal(occurrences(&out, "<script"), 0);
	assert_int_equal(occurrences(&out, "\x1b"), 0);
	assert_int_equal(occurrences(&out, "\xe2\x80\xae"), 0);
	assert_int_equal(occurrences(&out, "href=\"javascript"), 0);
	assert_int_equal(occurrences(&out, "href=\"https://b.example/?a=1&amp;b=&quot;2\""), 2);
	assert_int_equal(occurrences(&out, "href=\"/oops/%3Cscript%3Ealert%281%29"), 6);
	buf_release(&out);
	fault_daily_release(&daily);
}

/* A line ends at a blank if one stands in its second half, else where it is full. */
static void long_lines_are_broken(UNUSED void **state)
{
	static const char title[] =
		"Error: 23456789 123456789 123456789 123456789 123456789 123456789 123456789 "
		"0123456789012345678901234567890123456789012345678901234567890123456789ABCD";
	const struct made made = {"1-a", "Error", title, "/x", "", "OOPS-1", 1};
	struct fault_daily daily;
	begin(&daily, &made, 1);
	fault_daily_arrange(&daily);
	check_text(&daily,
		   "Fault reports of shop on 2023-11-14, so far\n"
		   "\n"
		   "=== Statistics ===\n"
		   "\n"
		   " * 1 reports; the day before 0\n"
		   " * received from 2023-11-14T00:00:01Z to 2023-11-14T00:00:01Z\n"
		   " * 1 groups, 0 of them new\n"
		   " * 1 Exceptions\n"
		   "\n"
		   "=== All Exceptions ===\n"
		   "\n"
		   "       1  Error: 23456789 123456789 123456789 123456789 123456789 123456789\n"
		   "          123456789 "
		   "012345678901234567890123456789012345678901234567890123456789\n"
		   "          0123456789ABCD\n"
		   "          1-a, open, the day before 0\n"
		   "          1: /x\n"
		   "          OOPS-1\n");
	fault_daily_release(&daily);
}

/* ---- Which groups are new -------------------------------------------------------------------- */

static int64_t harness_group_report(struct harness *h, const char *id, const char *group)
{
	struct fault_item item = harness_item(id, id);
	item.facts.texts[FAULT_GROUP] = slice_of(group);
	harness_submit(h, &item, 1);
	return fault_day_of(item.date_us);
}

static void check_older(struct harness *h, int64_t day, bool a, bool b)
{
	/* As the process has it that may be the owner, and as one that only reads. */
	struct fault_book *books[] = {h->book, fault_book_new(&h->site, TEXT("t"))};
	struct errbuf e = {""};
	for (size_t i = 0; i < ARRAY_LEN(books); i++) {
		struct fault_group_age ages[] = {{TEXT("1-a"), false}, {TEXT("1-b"), false}};
		assert_int_equal(
			fault_book_read_older(books[i], &h->queue, day, NULL, ages, 2, 0, &e), 0);
		assert_int_equal(ages[0].older, a);
		assert_int_equal(ages[1].older, b);
	}
	fault_book_free(books[1]);
}

/* Whether the first day is in a checkpoint or not. */
static void a_group_is_new_on_its_first_day(UNUSED void **state)
{
	for (int passes = 0; passes < 2; passes++) {
		struct harness h;
		harness_open(&h);
		int64_t day = harness_group_report(&h, "OOPS-1", "1-a");
		check_older(&h, day, false, false);
		check_older(&h, day + 1, true, false);
		if (passes)
			harness_pass(&h);
		clock_virtual_advance(&h.clock, 3 * FAULT_DAY_US);
		assert_int_equal(harness_group_report(&h, "OOPS-2", "1-b"), day + 3);
		harness_group_report(&h, "OOPS-3", "1-a");
		if (passes)
			harness_pass(&h);
		check_older(&h, day, false, false);
		check_older(&h, day + 3, true, false);
		check_older(&h, day + 4, true, true);
		harness_close(&h);
	}
}

static void a_deadline_ends_the_look(UNUSED void **state)
{
	struct harness h;
	struct errbuf e = {""};
	struct fault_group_age age = {TEXT("1-a"), false};
	harness_open(&h);
	int64_t day = harness_group_report(&h, "OOPS-1", "1-a");
	clock_virtual_advance(&h.clock, SEC_US);
	int64_t now_us = h.clock.clock.mono_us(&h.clock.clock);
	assert_int_equal(fault_book_read_older(h.book, &h.queue, day, NULL, &age, 1, now_us, &e),
			 ERR_TIMEOUT);
	assert_int_equal(
		fault_book_read_older(h.book, &h.queue, day, NULL, &age, 1, now_us + 1, &e), 0);
	harness_close(&h);
}

/* ---- Statements ------------------------------------------------------------------------------ */

static void check_statements(const char *body, const char *repeated, uint64_t count,
			     uint64_t repeated_us, const char *expensive, uint64_t expensive_us)
{
	struct fault_statements statements;
	struct arena arena;
	arena_init(&arena, 1 << 20);
	assert_int_equal(fault_statements_of(slice_of(body), &arena, &statements), 0);
	assert_true(slice_equal(statements.repeated.text, slice_of(repeated)));
	assert_int_equal(statements.repeated.count, count);
	assert_int_equal(statements.repeated.total_us, repeated_us);
	assert_true(slice_equal(statements.expensive.text, slice_of(expensive)));
	assert_int_equal(statements.expensive.total_us, expensive_us);
	arena_release(&arena);
}

static void statements_are_counted_without_their_values(UNUSED void **state)
{
	check_statements("{\"a\": [1], \"timeline\": ["
			 "[0, 1.5, \"SQL-main\", \"SELECT name FROM person WHERE id = 1\"],"
			 "[2, 3, \"SQL-main\", \"SELECT name FROM person WHERE id = 22\"],"
			 "[4, 104, \"SQL-main\", \"UPDATE person SET name = 'x'\"],"
			 "[200, 900, \"memcache-get\", \"SELECT\"],"
			 "{\"start\": \"901\", \"length\": \"7\", \"database\": \"main\","
			 "\"statement\": \"SELECT name FROM person WHERE id = 3\"}]}",
			 "select name from person where id = ?", 3, 9500,
			 "update person set name = ?", 100000);
	/* If two are equal the first is taken. A statement without a length costs nothing. */
	check_statements("{\"timeline\": [[0, 2, \"SQL-a\", \"SELECT a\"],"
			 "[2, 4, \"SQL-a\", \"SELECT b\"], [4, 4, \"SQL-a\", \"SELECT a\"],"
			 "[4, 4, \"SQL-a\", \"SELECT b\"]]}",
			 "select a", 2, 2000, "select a", 2000);
	check_statements("{\"timeline\": [[0, null, \"SQL-a\", \"SELECT a\"],"
			 "[9, 2, \"SQL-a\", \"SELECT b\"], [0, 1e300, \"SQL-a\", \"SELECT c\"]]}",
			 "", 0, 0, "", 0);
	static const char *const none[] = {
		"{}",
		"{\"timeline\": []}",
		"{\"timeline\": 7}",
		"{\"timeline\": \"SELECT 1\"}",
		"{\"other\": [[0, 2, \"SQL-a\", \"SELECT a\"], [0, 2, \"SQL-a\", \"SELECT a\"]]}",
		"[]",
		"",
		"{\"timeline\": [[0, 1"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		check_statements(none[i], "", 0, 0, "", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_text_is_as_worked_out_by_hand),
		cmocka_unit_test(an_empty_day_says_so),
		cmocka_unit_test(each_exception_has_its_class),
		cmocka_unit_test(a_section_has_a_bound_and_says_what_is_beyond_it),
		cmocka_unit_test(groups_and_contexts_are_in_order),
		cmocka_unit_test(hostile_text_is_text),
		cmocka_unit_test(long_lines_are_broken),
		cmocka_unit_test(a_group_is_new_on_its_first_day),
		cmocka_unit_test(a_deadline_ends_the_look),
		cmocka_unit_test(statements_are_counted_without_their_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
