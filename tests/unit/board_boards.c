/* Boards on the naive store, on a virtual clock: what is stored, found, refused, exported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "board/private.h"
#include "contract/naive.h"
#include "host/host_metrics.h"
#include "store/wait.h"

#define TEXT(t) ((struct slice){(t), sizeof(t) - 1})
/* 2023-11-14 22:13:20 UTC. */
#define T0_US INT64_C(1700000000000000)

enum { SHIPPED_CHARTS = 6, EACH_MAX = 3 };

static struct clock_virtual clock_;
static struct store *store;
static struct task_queue queue;
static struct boards *boards;
static struct arena arena;
static struct errbuf error;
static struct buf out;

static int start(void **state)
{
	(void)state;
	clock_virtual_init(&clock_, T0_US);
	store = naive_open(&clock_.clock);
	task_queue_init(&queue);
	boards = boards_new(store, &clock_.clock, &(struct boards_limits){.each_max = EACH_MAX});
	arena_init(&arena, 64 << 20);
	buf_init(&out, 1 << 20);
	error.text[0] = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	buf_release(&out);
	arena_release(&arena);
	boards_free(boards);
	store_close(store);
	task_queue_release(&queue);
	return 0;
}

/* ---- What is asked --------------------------------------------------------------------------- */

static int make(enum board_kind kind, const char *json, struct board_document *made)
{
	return board_document_parse(kind, slice_of(json), (struct slice){NULL, 0}, &arena, made,
				    &error);
}

static struct slice made_text(enum board_kind kind, const char *json)
{
	struct board_document made;
	assert_int_equal(make(kind, json, &made), 0);
	return made.text;
}

static void refuses(enum board_kind kind, const char *json, const char *sentence)
{
	struct board_document made;
	int err = make(kind, json, &made);
	assert_true(err == ERR_INVALID || err == ERR_LIMIT);
	assert_string_equal(error.text, sentence);
}

/* `id` NULL: a new one. */
static int put_if(enum board_kind kind, const char *id, const char *json, const char *if_match,
		  const char *if_none_match, bool *stale)
{
	struct board_document made;
	struct board_change change = {.tenant = TEXT("t"), .kind = kind};
	if (id)
		change.id = slice_of(id);
	if (if_match)
		change.if_match = slice_of(if_match);
	if (if_none_match)
		change.if_none_match = slice_of(if_none_match);
	assert_int_equal(
		board_document_parse(kind, slice_of(json), change.id, &arena, &made, &error), 0);
	int err = boards_put(boards, &queue, &change, &made, &error);
	*stale = change.is_stale;
	return err;
}

static int put(enum board_kind kind, const char *id, const char *json)
{
	bool stale;
	return put_if(kind, id, json, NULL, NULL, &stale);
}

static int delete_if(enum board_kind kind, const char *id, const char *if_match, bool *is_back)
{
	struct board_change change = {.tenant = TEXT("t"), .kind = kind, .id = slice_of(id)};
	if (if_match)
		change.if_match = slice_of(if_match);
	int err = boards_delete(boards, &queue, &change, &error);
	*is_back = change.is_back;
	return err;
}

static struct board get_of(const char *tenant, enum board_kind kind, const char *id)
{
	struct board board;
	int err = boards_get(boards, &queue, slice_of(tenant), kind, slice_of(id), &arena, &board,
			     &error);
	if (err)
		assert_int_equal(err, ERR_NOT_FOUND);
	return err ? (struct board){.text = {NULL, 0}} : board;
}

static void has(enum board_kind kind, const char *id, const char *json)
{
	struct board board = get_of("t", kind, id);
	assert_non_null(board.text.data);
	assert_string_equal(board.text.data, json);
}

static int add_id(const struct board *board, void *owner)
{
	(void)owner;
	buf_printf(&out, "%.*s%s ", (int)board->id.len, board->id.data,
		   board->is_shipped ? "*" : "");
	return 0;
}

static void lists(enum board_kind kind, const char *prefix, size_t offset, size_t limit,
		  const char *ids)
{
	const struct boards_listing listing = {TEXT("t"), kind, slice_of(prefix), offset, limit};
	buf_clear(&out);
	assert_int_equal(boards_list(boards, &queue, &listing, add_id, NULL, &error), 0);
	buf_append_char(&out, 0);
	assert_string_equal(out.data, ids);
}

/* ---- Documents ------------------------------------------------------------------------------- */

/* Chukwa's constructor: TIME_SERIES, "Untitled Chart", 100 x 100, labels and legend shown. */
static void a_chart_gets_what_it_does_not_say(void **state)
{
	(void)state;
	assert_string_equal(made_text(BOARD_CHART, "{\"id\":\"a\"}").data,
			    "{\"id\":\"a\",\"type\":\"TIME_SERIES\",\"title\":\"Untitled Chart\","
			    "\"xLabelOn\":true,\"yLabelOn\":true,\"width\":100,\"height\":100,"
			    "\"legend\":true}");
	assert_string_equal(
		made_text(BOARD_CHART,
			  "{\"legend\":false,\"type\":\"PIE\",\"title\":\"\",\"id\":\"a\","
			  "\"width\":0,\"height\":7,\"xLabelOn\":false,\"yLabelOn\":false}")
			.data,
		"{\"id\":\"a\",\"legend\":false,\"type\":\"PIE\",\"title\":\"\",\"width\":0,"
		"\"height\":7,\"xLabelOn\":false,\"yLabelOn\":false}");
	assert_string_equal(made_text(BOARD_DASHBOARD, "{\"id\":\"d\"}").data,
			    "{\"id\":\"d\",\"grid\":[]}");
	assert_string_equal(made_text(BOARD_WIDGET, "{\"title\":\"w\"}").data, "{\"title\":\"w\"}");
}

static void unknown_members_stay_as_they_are(void **state)
{
	(void)state;
	static const char json[] =
		"{\"title\":\"w\",\"x\":[9007199254740993,18446744073709551615,1.10,1e400,"
		"123456789012345678901234567890,-0.0],\"\":{\"y\":null,\"y\":\"\\u202e\xc3\xa4\"},"
		"\"z\":\"\"}";
	assert_string_equal(made_text(BOARD_WIDGET, json).data, json);
}

static void an_id_is_own_given_or_by_lot(void **state)
{
	(void)state;
	struct board_document a, b;
	assert_int_equal(make(BOARD_CHART, "{}", &a), 0);
	assert_int_equal(make(BOARD_CHART, "{}", &b), 0);
	assert_int_equal(a.id.len, 16);
	assert_int_equal(strspn(a.id.data, "0123456789abcdef"), 16);
	assert_false(slice_equal(a.id, b.id));
	assert_int_equal(
		board_document_parse(BOARD_CHART, TEXT("{}"), TEXT("given"), &arena, &a, &error),
		0);
	assert_string_equal(a.id.data, "given");
	assert_int_equal(board_document_parse(BOARD_CHART, TEXT("{\"id\":\"own\"}"), TEXT("given"),
					      &arena, &a, &error),
			 0);
	assert_string_equal(a.id.data, "own");
	assert_int_equal(
		board_document_parse(BOARD_CHART, TEXT("{}"), TEXT("a\nb"), &arena, &a, &error),
		ERR_INVALID);
}

static void what_may_not_be_is_named(void **state)
{
	(void)state;
	refuses(BOARD_CHART, "[]", "a chart is a JSON object");
	refuses(BOARD_CHART, "{", "line 1, column 2: the text ends within an object");
	refuses(BOARD_CHART, "{\"id\":7}",
		"id is not a text of 1 to 200 bytes without control characters");
	refuses(BOARD_CHART, "{\"width\":100001}", "width is not a whole number from 0 to 100000");
	refuses(BOARD_CHART, "{\"width\":-1}", "width is not a whole number from 0 to 100000");
	refuses(BOARD_CHART, "{\"width\":1.5}", "width is not a whole number from 0 to 100000");
	refuses(BOARD_CHART, "{\"legend\":1}", "legend is not true or false");
	refuses(BOARD_CHART, "{\"title\":null}",
		"title is not a text of 0 to 1000 bytes without control characters");
	refuses(BOARD_CHART, "{\"threshold\":\"left\"}",
		"threshold is not one of \"up\", \"down\"");
	refuses(BOARD_CHART, "{\"min\":1e999}", "min is not a number from -1e+300 to 1e+300");
	refuses(BOARD_CHART, "{\"series\":{}}", "series is not a list of at most 200 objects");
	refuses(BOARD_CHART, "{\"series\":[{},1]}", "series is not a list of at most 200 objects");
	refuses(BOARD_CHART, "{\"series\":[{},{\"lines\":{\"show\":\"yes\"}}]}",
		"series[1]: lines: show is not true or false");
	refuses(BOARD_CHART, "{\"series\":[{\"query\":{}}]}",
		"series[0]: query: metricName is missing: a text of 1 to 4000 bytes without "
		"control characters");
	refuses(BOARD_CHART, "{\"series\":[{\"query\":{\"metricName\":\"m\",\"tag\":[1]}}]}",
		"series[0]: query is not an object of texts, numbers and lists of texts");
	refuses(BOARD_WIDGET, "{}",
		"title is missing: a text of 1 to 200 bytes without control characters");
	refuses(BOARD_WIDGET, "{\"title\":\"\"}",
		"title is not a text of 1 to 200 bytes without control characters");
	refuses(BOARD_DASHBOARD, "{\"grid\":[{}]}",
		"grid[0]: title is missing: a text of 1 to 200 bytes without control characters");
	refuses(BOARD_DASHBOARD, "{\"refresh\":\"10ms\"}",
		"refresh is not a duration from \"1s\" to \"1d\"");
	refuses(BOARD_DASHBOARD, "{\"range\":{\"start\":\"yesterday\"}}",
		"range: start is not a time such as \"2020-08-24T16:34:05Z\" or \"1h-ago\"");
	refuses(BOARD_DASHBOARD, "{\"variables\":[{\"name\":\"1st\"}]}",
		"variables[0]: name is not 1 to 64 letters, digits and _ without a digit in front");
	refuses(BOARD_DASHBOARD,
		"{\"variables\":[{\"name\":\"a\"},{\"name\":\"b\"},"
		"{\"name\":\"a\"}]}",
		"variables has the name a twice");
}

static void texts_and_lists_have_bounds(void **state)
{
	(void)state;
	struct buf json;
	struct board_document made;
	static const struct {
		const char *begin, *item, *end;
		size_t most;
	} cases[] = {{"{\"id\":\"", "x", "x\"}", 200},
		     {"{\"title\":\"", "x", "x\"}", 1000},
		     {"{\"series\":[", "{},", "{}]}", 200},
		     {"{\"xLabelRange\":[", "\"\",", "\"\"]}", 1000}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		for (size_t more = 0; more < 2; more++) {
			buf_init(&json, 1 << 20);
			buf_append_text(&json, cases[i].begin);
			for (size_t n = 1; n < cases[i].most + more; n++)
				buf_append_text(&json, cases[i].item);
			buf_append_text(&json, cases[i].end);
			assert_int_equal(board_document_parse(BOARD_CHART, buf_slice(&json),
							      (struct slice){NULL, 0}, &arena,
							      &made, &error),
					 more ? ERR_INVALID : 0);
			buf_release(&json);
		}
	}
}

static void a_board_of_the_largest_size(void **state)
{
	(void)state;
	struct buf json;
	struct board_document made;
	buf_init(&json, 1 << 20);
	/* {"title":"w","x":"..."} has 64 KiB. */
	for (size_t more = 0; more < 2; more++) {
		buf_clear(&json);
		buf_append_text(&json, "{\"title\":\"w\",\"x\":\"");
		while (json.len < 65536 - 2 + more)
			buf_append_char(&json, 'x');
		buf_append_text(&json, "\"}");
		int err = board_document_parse(BOARD_WIDGET, buf_slice(&json),
					       (struct slice){NULL, 0}, &arena, &made, &error);
		assert_int_equal(err, more ? ERR_LIMIT : 0);
	}
	assert_string_equal(error.text, "the widget has more than 64 KB");
	buf_release(&json);
}

static void a_widget_names_its_chart(void **state)
{
	(void)state;
	static const struct {
		const char *src, *id;
	} cases[] = {
		{"/hicc/v1/chart/draw/1", "1"},
		{"/hicc/v1/circles/draw/7?x=1", "7"},
		{"/hicc/v1/tile/draw/a%2Fb%20c/", "a/b c"},
		{"/hicc/v1/piechart/draw/p#x", "p"},
		{"/hicc/v1/chart/draw/", NULL},
		{"/hicc/v1/chart/draw/%zz", NULL},
		{"/hicc/v1/heatmap/render/a/b", NULL},
		{"http://elsewhere/hicc/v1/chart/draw/1", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct json *root;
		char *json = arena_printf(&arena, "{\"src\":\"%s\"}", cases[i].src);
		assert_int_equal(json_parse(slice_of(json), &arena, &root, &error), 0);
		struct slice id = board_widget_chart(root, &arena);
		assert_int_equal(!id.data, !cases[i].id);
		assert_true(!cases[i].id || slice_equal(id, slice_of(cases[i].id)));
	}
}

/* ---- In the store ---------------------------------------------------------------------------- */

/* Document K's rows: `chart_meta`, family `c`, with the tenant in front. */
static void a_chart_lies_where_document_k_says(void **state)
{
	(void)state;
	static const char *const rows[BOARD_KINDS] = {"chart_meta", "widget_meta",
						      "dashboard_meta"};
	assert_int_equal(put(BOARD_CHART, "x", "{}"), 0);
	assert_int_equal(put(BOARD_WIDGET, "x", "{\"title\":\"x\"}"), 0);
	assert_int_equal(put(BOARD_DASHBOARD, "x", "{}"), 0);
	for (enum board_kind kind = 0; kind < BOARD_KINDS; kind++) {
		struct store_read *read = store_read_new(store, 1 << 20);
		struct store_request *request = store_read_add(read, STORE_CELL_GET);
		request->cell_get =
			(struct store_cell_get){.table = TABLE_CHUKWA_METADATA,
						.key = {{TEXT("t"), slice_of(rows[kind])}},
						.column = {{TEXT("c"), TEXT("x")}}};
		read->now_ms = T0_US / 1000;
		assert_int_equal(store_read_wait(read, &queue), 0);
		assert_true(request->cell_get.found);
		assert_true(slice_equal(request->cell_get.cell.value, get_of("t", kind, "x").text));
		store_read_free(read);
	}
	assert_null(get_of("other", BOARD_CHART, "x").text.data);
}

static void what_is_there_is_not_created_again(void **state)
{
	(void)state;
	assert_int_equal(put(BOARD_CHART, NULL, "{\"id\":\"a\"}"), 0);
	assert_int_equal(put(BOARD_CHART, NULL, "{\"id\":\"a\"}"), ERR_EXISTS);
	assert_string_equal(error.text, "there is a chart \"a\" already");
	assert_int_equal(put(BOARD_CHART, NULL, "{\"id\":\"1\"}"), ERR_EXISTS);
}

static void one_is_saved_over_what_was_seen_only(void **state)
{
	(void)state;
	char tag[BOARD_TAG_BYTES], list[4 * BOARD_TAG_BYTES];
	bool stale, back;
	assert_int_equal(put(BOARD_WIDGET, "w", "{\"title\":\"w\",\"n\":1}"), 0);
	board_tag(get_of("t", BOARD_WIDGET, "w").text, tag);
	assert_int_equal(put_if(BOARD_WIDGET, "w", "{\"title\":\"w\",\"n\":2}", tag, NULL, &stale),
			 0);
	assert_false(stale);
	assert_int_equal(put_if(BOARD_WIDGET, "w", "{\"title\":\"w\",\"n\":3}", tag, NULL, &stale),
			 ERR_EXISTS);
	assert_true(stale);
	assert_string_equal(error.text, "the widget \"w\" is another one by now: somebody else has "
					"saved it meanwhile");
	assert_int_equal(delete_if(BOARD_WIDGET, "w", tag, &back), ERR_EXISTS);
	has(BOARD_WIDGET, "w", "{\"title\":\"w\",\"n\":2}");
	board_tag(get_of("t", BOARD_WIDGET, "w").text, tag);
	snprintf(list, sizeof(list), "\"x\", W/%s", tag);
	assert_int_equal(put_if(BOARD_WIDGET, "w", "{\"title\":\"w\",\"n\":4}", list, NULL, &stale),
			 0);
	assert_int_equal(put_if(BOARD_WIDGET, "w", "{\"title\":\"w\"}", NULL, "*", &stale),
			 ERR_EXISTS);
	assert_true(stale);
	assert_int_equal(put_if(BOARD_WIDGET, "v", "{\"title\":\"v\"}", "*", NULL, &stale),
			 ERR_EXISTS);
	assert_true(stale);
	assert_string_equal(error.text, "there is no widget \"v\" any more");
	assert_int_equal(put_if(BOARD_WIDGET, "v", "{\"title\":\"v\"}", NULL, "*", &stale), 0);
}

static void the_shipped_one_is_back(void **state)
{
	(void)state;
	bool back;
	struct board shipped = get_of("t", BOARD_CHART, "1");
	assert_true(shipped.is_shipped);
	assert_int_equal(delete_if(BOARD_CHART, "1", NULL, &back), ERR_EXISTS);
	assert_string_equal(error.text, "the chart \"1\" is part of the program and stays");
	assert_int_equal(put(BOARD_CHART, "1", "{\"id\":\"x\"}"), ERR_EXISTS);
	assert_string_equal(error.text, "the chart \"1\" is part of the program and keeps its id");
	assert_int_equal(put(BOARD_CHART, "1", "{\"title\":\"mine\"}"), 0);
	assert_false(get_of("t", BOARD_CHART, "1").is_shipped);
	assert_true(get_of("u", BOARD_CHART, "1").is_shipped);
	lists(BOARD_CHART, "", 0, 100, "1 2* 3* 4* 5* 6* ");
	assert_int_equal(delete_if(BOARD_CHART, "1", NULL, &back), 0);
	assert_true(back);
	assert_true(slice_equal(get_of("t", BOARD_CHART, "1").text, shipped.text));
	assert_int_equal(put(BOARD_CHART, "x", "{}"), 0);
	assert_int_equal(delete_if(BOARD_CHART, "x", NULL, &back), 0);
	assert_false(back);
	assert_int_equal(delete_if(BOARD_CHART, "x", NULL, &back), ERR_NOT_FOUND);
	assert_string_equal(error.text, "there is no chart \"x\"");
}

static void lists_are_in_order_and_in_pages(void **state)
{
	(void)state;
	assert_int_equal(put(BOARD_CHART, "0", "{}"), 0);
	assert_int_equal(put(BOARD_CHART, "3", "{}"), 0);
	assert_int_equal(put(BOARD_CHART, "3a", "{}"), 0);
	lists(BOARD_CHART, "", 0, 100, "0 1* 2* 3 3a 4* 5* 6* ");
	lists(BOARD_CHART, "", 0, 3, "0 1* 2* ");
	lists(BOARD_CHART, "", 3, 3, "3 3a 4* ");
	lists(BOARD_CHART, "", 6, 3, "5* 6* ");
	lists(BOARD_CHART, "", 8, 3, "");
	lists(BOARD_CHART, "3", 0, 100, "3 3a ");
	lists(BOARD_CHART, "", 4, 1, "3a ");
	lists(BOARD_CHART, "3", 1, 100, "3a ");
	lists(BOARD_CHART, "4", 0, 100, "4* ");
	lists(BOARD_CHART, "x", 0, 100, "");
	lists(BOARD_DASHBOARD, "", 0, 100, "host* ");
}

static void one_is_renamed(void **state)
{
	(void)state;
	assert_int_equal(put(BOARD_WIDGET, "a", "{\"title\":\"a\"}"), 0);
	assert_int_equal(put(BOARD_WIDGET, "b", "{\"title\":\"b\"}"), 0);
	assert_int_equal(put(BOARD_WIDGET, "a", "{\"title\":\"b\"}"), ERR_EXISTS);
	assert_string_equal(error.text, "there is a widget \"b\" already");
	assert_int_equal(put(BOARD_WIDGET, "a", "{\"title\":\"c\"}"), 0);
	assert_null(get_of("t", BOARD_WIDGET, "a").text.data);
	has(BOARD_WIDGET, "c", "{\"title\":\"c\"}");
	assert_int_equal(put(BOARD_WIDGET, "a", "{\"title\":\"d\"}"), ERR_NOT_FOUND);
}

static void there_are_as_many_as_there_may_be(void **state)
{
	(void)state;
	assert_int_equal(put(BOARD_CHART, "a", "{}"), 0);
	assert_int_equal(put(BOARD_CHART, "b", "{}"), 0);
	assert_int_equal(put(BOARD_CHART, "1", "{}"), 0);
	assert_int_equal(put(BOARD_CHART, "c", "{}"), ERR_LIMIT);
	assert_string_equal(error.text,
			    "the tenant has 3 charts already; boards.each_max allows for 3");
	assert_int_equal(put(BOARD_CHART, "2", "{}"), ERR_LIMIT);
	assert_int_equal(put(BOARD_CHART, "b", "{\"title\":\"again\"}"), 0);
	assert_int_equal(put(BOARD_CHART, "b", "{\"id\":\"c\"}"), 0);
	assert_int_equal(put(BOARD_DASHBOARD, "a", "{}"), 0);
}

static void a_store_that_takes_no_writes(void **state)
{
	(void)state;
	naive_refuse_writes(store, ERR_FULL, 1);
	assert_int_equal(put(BOARD_CHART, "a", "{}"), ERR_FULL);
	assert_true(error.text[0]);
	assert_null(get_of("t", BOARD_CHART, "a").text.data);
}

/* ---- Export and import ----------------------------------------------------------------------- */

static struct slice export(const char *tenant, const char *id)
{
	struct json_writer json;
	buf_clear(&out);
	json_writer_init(&json, &out);
	assert_int_equal(boards_export(boards, &queue, slice_of(tenant), slice_of(id), &arena,
				       &json, &error),
			 0);
	return arena_copy(&arena, buf_slice(&out));
}

static int import(const char *tenant, struct slice text, bool overwrite,
		  struct boards_import *result)
{
	struct json *root;
	*result = (struct boards_import){.tenant = slice_of(tenant), .overwrite = overwrite};
	assert_int_equal(json_parse(text, &arena, &root, &error), 0);
	return boards_import(boards, &queue, result, root, &arena, &error);
}

#define DASHBOARD                                                                                  \
	"{\"id\":\"d\",\"grid\":[{\"title\":\"w\"},"                                               \
	"{\"title\":\"v\",\"src\":\"/hicc/v1/chart/draw/a\"},"                                     \
	"{\"title\":\"w\",\"src\":\"/hicc/v1/chart/draw/none\"}],\"n\":1.50}"
#define WIDGET "{\"title\":\"w\",\"src\":\"/hicc/v1/chart/draw/b\"}"
#define PRESETS                                                                                    \
	"\"type\":\"TIME_SERIES\",\"title\":\"Untitled Chart\",\"xLabelOn\":true,"                 \
	"\"yLabelOn\":true,\"width\":100,\"height\":100,\"legend\":true}"

static void a_dashboard_leaves_with_what_it_names(void **state)
{
	(void)state;
	struct boards_import done;
	assert_int_equal(put(BOARD_DASHBOARD, NULL, DASHBOARD), 0);
	assert_int_equal(put(BOARD_WIDGET, NULL, WIDGET), 0);
	assert_int_equal(put(BOARD_CHART, "a", "{}"), 0);
	assert_int_equal(put(BOARD_CHART, "b", "{}"), 0);
	assert_int_equal(put(BOARD_CHART, "not_named", "{}"), 0);
	struct slice text = export("t", "d");
	assert_string_equal(text.data, "{\"dashboard\":" DASHBOARD ",\"widgets\":[" WIDGET
				       "],\"charts\":[{\"id\":\"b\"," PRESETS
				       ",{\"id\":\"a\"," PRESETS "],\"missing\":[\"none\"]}");
	assert_int_equal(import("u", text, false, &done), 0);
	assert_string_equal(done.id.data, "d");
	assert_int_equal(done.created, 4);
	assert_int_equal(done.replaced + done.unchanged, 0);
	assert_string_equal(export("u", "d").data, text.data);
	assert_null(get_of("u", BOARD_CHART, "not_named").text.data);
	assert_int_equal(import("u", text, false, &done), 0);
	assert_int_equal(done.unchanged, 4);
	assert_int_equal(done.created + done.replaced, 0);
}

static void an_import_is_whole_or_nothing(void **state)
{
	(void)state;
	struct boards_import done;
	static const char text[] = "{\"dashboard\":{\"id\":\"d\"},\"widgets\":[{\"title\":\"w\"}],"
				   "\"charts\":[{\"id\":\"a\"},{\"id\":\"b\"}]}";
	assert_int_equal(put(BOARD_CHART, "b", "{\"title\":\"mine\"}"), 0);
	struct slice mine = get_of("t", BOARD_CHART, "b").text;
	assert_int_equal(import("t", slice_of(text), false, &done), ERR_EXISTS);
	assert_string_equal(error.text, "there is another chart \"b\" already; with overwrite=true "
					"it is replaced");
	assert_null(get_of("t", BOARD_CHART, "a").text.data);
	assert_null(get_of("t", BOARD_DASHBOARD, "d").text.data);
	assert_true(slice_equal(get_of("t", BOARD_CHART, "b").text, mine));
	assert_int_equal(import("t", slice_of(text), true, &done), 0);
	assert_int_equal(done.created, 3);
	assert_int_equal(done.replaced, 1);
	has(BOARD_CHART, "b", "{\"id\":\"b\"," PRESETS);
	assert_int_equal(import("u",
				TEXT("{\"dashboard\":{\"id\":\"d\"},\"charts\":[{\"id\":\"a\"},"
				     "{\"id\":\"b\"},{\"id\":\"c\"},{\"id\":\"e\"}]}"),
				false, &done),
			 ERR_LIMIT);
	assert_string_equal(error.text,
			    "the tenant has 0 charts already; boards.each_max allows for 3");
	assert_null(get_of("u", BOARD_CHART, "a").text.data);
}

/* If-Match and If-None-Match of an import are about its dashboard. */
static void an_import_overwrites_what_was_seen_only(void **state)
{
	static const struct {
		const char *if_match, *if_none_match;
		int err;
	} cases[] = {{"*", NULL, ERR_EXISTS},     {NULL, "*", 0}, {NULL, "*", ERR_EXISTS},
		     {"\"x\"", NULL, ERR_EXISTS}, {"*", NULL, 0}, {NULL, NULL, 0}};
	struct json *root;
	char tag[BOARD_TAG_BYTES];
	(void)state;
	assert_int_equal(json_parse(SLICE("{\"dashboard\":{\"id\":\"d\"}}"), &arena, &root, &error),
			 0);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct boards_import import = {.tenant = TEXT("t")};
		if (cases[i].if_match)
			import.if_match = slice_of(cases[i].if_match);
		if (cases[i].if_none_match)
			import.if_none_match = slice_of(cases[i].if_none_match);
		assert_int_equal(boards_import(boards, &queue, &import, root, &arena, &error),
				 cases[i].err);
		assert_int_equal(import.is_stale, cases[i].err != 0);
	}
	board_tag(get_of("t", BOARD_DASHBOARD, "d").text, tag);
	struct boards_import import = {.tenant = TEXT("t"), .if_match = slice_of(tag)};
	assert_int_equal(boards_import(boards, &queue, &import, root, &arena, &error), 0);
}

/* What may be saved may be exported and imported. */
static void documents_nest_as_deep_as_an_export_may(void **state)
{
	struct board_document made;
	struct boards_import done;
	char json[200];
	(void)state;
	for (int depth = 62; depth >= 61; depth--) {
		int len = snprintf(json, sizeof(json), "{\"id\":\"a\",\"deep\":");
		memset(json + len, '[', (size_t)depth);
		memset(json + len + depth, ']', (size_t)depth);
		snprintf(json + len + 2 * depth, 2, "}");
		assert_int_equal(make(BOARD_CHART, json, &made), depth == 61 ? 0 : ERR_INVALID);
		assert_string_equal(error.text, "arrays and objects nest more than 62 deep");
	}
	assert_int_equal(put(BOARD_CHART, NULL, json), 0);
	assert_int_equal(put(BOARD_DASHBOARD, NULL, DASHBOARD), 0);
	assert_int_equal(import("u", export("t", "d"), false, &done), 0);
	assert_int_equal(done.created, 2);
}

/* Who changes boards of another tenant does not wait for that. */
static void tenants_change_by_themselves(void **state)
{
	struct board_document made;
	struct board_change change = {.tenant = TEXT("u"), .kind = BOARD_CHART};
	pthread_mutex_t *lock = boards_lock(boards, TEXT("t"));
	(void)state;
	assert_ptr_equal(lock, boards_lock(boards, TEXT("t")));
	assert_ptr_not_equal(lock, boards_lock(boards, TEXT("u")));
	assert_int_equal(make(BOARD_CHART, "{\"id\":\"a\"}", &made), 0);
	pthread_mutex_lock(lock);
	assert_int_equal(boards_put(boards, &queue, &change, &made, &error), 0);
	pthread_mutex_unlock(lock);
}

static void what_cannot_be_imported_is_named(void **state)
{
	(void)state;
	static const struct {
		const char *text, *sentence;
	} cases[] = {
		{"[]", "dashboard is missing: what dashboard/export gives is taken"},
		{"{\"dashboard\":{}}", "dashboard: id is missing"},
		{"{\"dashboard\":{\"id\":\"d\"},\"charts\":{}}",
		 "charts is not a list of at most 1000 objects"},
		{"{\"dashboard\":{\"id\":\"d\"},\"charts\":[{\"id\":\"a\"},{}]}",
		 "charts[1]: id is missing"},
		{"{\"dashboard\":{\"id\":\"d\"},\"charts\":[{\"id\":\"a\"},{\"id\":\"a\"}]}",
		 "charts[1]: id \"a\" stands there twice"},
		{"{\"dashboard\":{\"id\":\"d\"},\"widgets\":[{\"title\":7}]}",
		 "widgets[0]: title is not a text of 1 to 200 bytes without control characters"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct boards_import done;
		assert_int_equal(import("t", slice_of(cases[i].text), false, &done), ERR_INVALID);
		assert_string_equal(error.text, cases[i].sentence);
	}
}

static void what_is_stored_and_is_no_json(void **state)
{
	(void)state;
	const struct store_parts row = {{TEXT("t"), TEXT("dashboard_meta")}};
	const struct store_parts column = {{TEXT("c"), TEXT("d")}};
	struct json_writer json;
	struct store_write *write = store_write_new(store, 1 << 20);
	assert_int_equal(store_cell_put(write, TABLE_CHUKWA_METADATA, &row, &column, TEXT("{"),
					store_stamp(store), 0),
			 0);
	assert_int_equal(store_write_wait(write, &queue), 0);
	store_write_free(write);
	json_writer_init(&json, &out);
	assert_int_equal(boards_export(boards, &queue, TEXT("t"), TEXT("d"), &arena, &json, &error),
			 ERR_DAMAGED);
	assert_string_equal(error.text, "what is stored cannot be read: line 1, column 2: the text "
					"ends within an object");
}

/* Those that are not changed are not stored. */
static void shipped_ones_leave_but_are_not_stored(void **state)
{
	(void)state;
	struct boards_import done;
	struct slice text = export("t", "host");
	assert_int_equal(import("u", text, false, &done), 0);
	assert_int_equal(done.unchanged, 1 + 2 * SHIPPED_CHARTS);
	assert_true(get_of("u", BOARD_DASHBOARD, "host").is_shipped);
}

/* ---- Shipped ones ---------------------------------------------------------------------------- */

static bool is_host_metric(struct slice name)
{
	for (size_t i = 0; i < HOST_METRICS; i++) {
		if (slice_equal(slice_of(host_metrics[i].name), name))
			return true;
	}
	return false;
}

/* /hicc/v1/metrics/series/METRIC/$host */
static void check_series(const struct json *series)
{
	static const char start[] = "/hicc/v1/metrics/series/", end[] = "/$host";
	struct slice url = json_member(series, "url")->text;
	size_t around = sizeof(start) - 1 + sizeof(end) - 1;
	assert_true(slice_starts_with(url, slice_of(start)) && slice_ends_with(url, slice_of(end)));
	assert_true(is_host_metric((struct slice){url.data + sizeof(start) - 1, url.len - around}));
}

static void shipped_charts_show_metrics_of_hosts(void **state)
{
	(void)state;
	static const struct {
		const char *id;
		size_t series;
	} charts[SHIPPED_CHARTS] = {{"1", 1}, {"2", 3}, {"3", 2}, {"4", 2}, {"5", 2}, {"6", 3}};
	struct json *root;
	for (size_t i = 0; i < SHIPPED_CHARTS; i++) {
		struct board board = get_of("t", BOARD_CHART, charts[i].id);
		assert_true(board.is_shipped);
		assert_int_equal(json_parse(board.text, &arena, &root, &error), 0);
		const struct json *list = json_member(root, "series");
		assert_int_equal(list->count, charts[i].series);
		for (const struct json *one = list->first; one; one = one->next)
			check_series(one);
	}
}

/* All that the host's dashboard names is there. */
static void the_host_dashboard_is_whole(void **state)
{
	(void)state;
	struct json *root;
	struct slice text = export("t", "host");
	assert_int_equal(json_parse(text, &arena, &root, &error), 0);
	assert_int_equal(json_member(root, "charts")->count, SHIPPED_CHARTS);
	assert_int_equal(json_member(root, "widgets")->count, SHIPPED_CHARTS);
	assert_int_equal(json_member(root, "missing")->count, 0);
	lists(BOARD_WIDGET, "", 0, 100,
	      "CPU Utilization* Disk Utilization* Memory Utilization* Network Utilization* "
	      "Swap Utilization* System Load Average* ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_chart_gets_what_it_does_not_say, start, end),
		cmocka_unit_test_setup_teardown(unknown_members_stay_as_they_are, start, end),
		cmocka_unit_test_setup_teardown(an_id_is_own_given_or_by_lot, start, end),
		cmocka_unit_test_setup_teardown(what_may_not_be_is_named, start, end),
		cmocka_unit_test_setup_teardown(texts_and_lists_have_bounds, start, end),
		cmocka_unit_test_setup_teardown(a_board_of_the_largest_size, start, end),
		cmocka_unit_test_setup_teardown(a_widget_names_its_chart, start, end),
		cmocka_unit_test_setup_teardown(a_chart_lies_where_document_k_says, start, end),
		cmocka_unit_test_setup_teardown(what_is_there_is_not_created_again, start, end),
		cmocka_unit_test_setup_teardown(one_is_saved_over_what_was_seen_only, start, end),
		cmocka_unit_test_setup_teardown(the_shipped_one_is_back, start, end),
		cmocka_unit_test_setup_teardown(lists_are_in_order_and_in_pages, start, end),
		cmocka_unit_test_setup_teardown(one_is_renamed, start, end),
		cmocka_unit_test_setup_teardown(there_are_as_many_as_there_may_be, start, end),
		cmocka_unit_test_setup_teardown(a_store_that_takes_no_writes, start, end),
		cmocka_unit_test_setup_teardown(a_dashboard_leaves_with_what_it_names, start, end),
		cmocka_unit_test_setup_teardown(an_import_is_whole_or_nothing, start, end),
		cmocka_unit_test_setup_teardown(an_import_overwrites_what_was_seen_only, start,
						end),
		cmocka_unit_test_setup_teardown(documents_nest_as_deep_as_an_export_may, start,
						end),
		cmocka_unit_test_setup_teardown(tenants_change_by_themselves, start, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_imported_is_named, start, end),
		cmocka_unit_test_setup_teardown(what_is_stored_and_is_no_json, start, end),
		cmocka_unit_test_setup_teardown(shipped_ones_leave_but_are_not_stored, start, end),
		cmocka_unit_test_setup_teardown(shipped_charts_show_metrics_of_hosts, start, end),
		cmocka_unit_test_setup_teardown(the_host_dashboard_is_whole, start, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
