/* Envelopes, who sends them, and ids. The first seven envelopes are those of Sentry's specification
 * (develop.sentry.dev/sdk/data-model/envelopes/, "Full Examples"), as they stand there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "wire/sentry_auth.h"
#include "wire/sentry_envelope.h"

enum { ITEMS_MAX = 4 };

struct expected {
	const char *type;
	struct slice payload;
};

#define ENVELOPE_HEADERS                                                                           \
	"{\"event_id\":\"9ec79c33ec9942ab8353589fcb2e04dc\",\"dsn\":"                              \
	"\"https://e12d836b15bb49d7bbf99e64295d995b:@sentry.io/42\"}\n"
#define ATTACHMENT                                                                                 \
	"{\"type\":\"attachment\",\"length\":10,\"content_type\":\"text/plain\","                  \
	"\"filename\":\"hello.txt\"}\n\xef\xbb\xbfHello\r\n\n"
#define EVENT_HEADERS                                                                              \
	"{\"type\":\"event\",\"length\":41,\"content_type\":\"application/json\","                 \
	"\"filename\":\"application.log\"}\n"
#define EVENT    "{\"message\":\"hello world\",\"level\":\"error\"}"
#define EMPTY(n) "{\"type\":\"attachment\",\"length\":0,\"filename\":\"empty" n "\"}\n"

static struct arena arena;

static int start(void **state)
{
	(void)state;
	arena_init(&arena, 4 << 20);
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* How an envelope ends: ERR_NOT_FOUND, or what is wrong with it. */
static int read_items(struct slice bytes, struct sentry_item items[ITEMS_MAX], size_t *count,
		      struct errbuf *e)
{
	struct sentry_envelope envelope;
	*count = 0;
	int err = sentry_envelope_begin(&envelope, bytes, &arena, e);
	while (!err) {
		assert_true(*count < ITEMS_MAX);
		err = sentry_envelope_next(&envelope, &arena, &items[*count], e);
		*count += !err;
	}
	return err;
}

static void check(struct slice bytes, const struct expected *expected, size_t count)
{
	struct sentry_item items[ITEMS_MAX];
	struct errbuf e = {""};
	size_t found;
	assert_int_equal(read_items(bytes, items, &found, &e), ERR_NOT_FOUND);
	assert_int_equal(found, count);
	for (size_t i = 0; i < count; i++) {
		assert_true(slice_equal(items[i].type, slice_of(expected[i].type)));
		assert_true(slice_equal(items[i].payload, expected[i].payload));
	}
}

static void envelopes_of_the_specification(void **state)
{
	(void)state;
	const struct expected two[] = {{"attachment", SLICE("\xef\xbb\xbfHello\r\n")},
				       {"event", SLICE(EVENT)}};
	const struct expected empty[] = {{"attachment", SLICE("")}, {"attachment", SLICE("")}};
	const struct expected hello[] = {{"attachment", SLICE("helloworld")}};
	const struct expected session[] = {
		{"session", SLICE("{\"started\": \"2020-02-07T14:16:00Z\","
				  "\"attrs\":{\"release\":\"sentry-test@1.0.0\"}}")}};
	check(SLICE(ENVELOPE_HEADERS ATTACHMENT EVENT_HEADERS EVENT "\n"), two, 2);
	check(SLICE(ENVELOPE_HEADERS ATTACHMENT EVENT_HEADERS EVENT), two, 2);
	check(SLICE("{\"event_id\":\"9ec79c33ec9942ab8353589fcb2e04dc\"}\n" EMPTY("a") "\n" EMPTY(
		      "b") "\n"),
	      empty, 2);
	check(SLICE("{\"event_id\":\"9ec79c33ec9942ab8353589fcb2e04dc\"}\n" EMPTY("a") "\n" EMPTY(
		      "b")),
	      empty, 2);
	check(SLICE("{\"event_id\":\"9ec79c33ec9942ab8353589fcb2e04dc\"}\n"
		    "{\"type\":\"attachment\"}\nhelloworld\n"),
	      hello, 1);
	check(SLICE("{\"event_id\":\"9ec79c33ec9942ab8353589fcb2e04dc\"}\n"
		    "{\"type\":\"attachment\"}\nhelloworld"),
	      hello, 1);
	check(SLICE("{}\n{\"type\":\"session\"}\n"
		    "{\"started\": \"2020-02-07T14:16:00Z\","
		    "\"attrs\":{\"release\":\"sentry-test@1.0.0\"}}"),
	      session, 1);
}

static void other_envelopes_that_are_good(void **state)
{
	(void)state;
	const struct expected unknown[] = {{"future", SLICE("{\n}")}, {"", SLICE("x")}};
	const struct expected crlf[] = {{"event", SLICE("{}\r")}};
	check(SLICE("{}"), NULL, 0);
	check(SLICE("{}\n"), NULL, 0);
	check(SLICE("{}\n\n\n"), NULL, 0);
	check(SLICE("{}\n{\"type\":\"future\",\"length\":3,\"more\":{}}\n{\n}\n\n"
		    "{\"length\":null}\nx\n"),
	      unknown, 2);
	/* A \r is a blank of headers, and a part of a payload. */
	check(SLICE("{}\r\n{\"type\":\"event\"}\r\n{}\r\n"), crlf, 1);
}

static void what_is_no_envelope(void **state)
{
	(void)state;
	static const struct {
		struct slice bytes;
		size_t good;
		const char *sentence;
	} cases[] = {
		{SLICE(""), 0, "the envelope is empty"},
		{SLICE("[]\n"), 0, "headers of the envelope: it is no object of JSON"},
		{SLICE("{}\n5\nx"), 0, "item 0 of the envelope: it is no object of JSON"},
		{SLICE("{}\n{\"length\":3}\nab"), 0,
		 "item 0 of the envelope: its payload has 2 bytes, and its length says 3"},
		{SLICE("{}\n{\"length\":1}"), 0,
		 "item 0 of the envelope: its payload has 0 bytes, and its length says 1"},
		{SLICE("{}\n{\"length\":2}\nab\n{\"length\":2}\nabc\n"), 1,
		 "item 1 of the envelope: after its payload of 2 bytes is no newline"},
		{SLICE("{}\n{\"length\":-1}\nab"), 0, "item 0 of the envelope: length is below 0"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sentry_item items[ITEMS_MAX];
		struct errbuf e = {""};
		size_t found;
		assert_int_equal(read_items(cases[i].bytes, items, &found, &e), ERR_INVALID);
		assert_int_equal(found, cases[i].good);
		assert_string_equal(e.text, cases[i].sentence);
	}
}

static void there_are_no_more_items_than_may_be(void **state)
{
	(void)state;
	struct sentry_envelope envelope;
	struct sentry_item item;
	struct errbuf e = {""};
	struct buf text;
	int err;
	buf_init(&text, 1 << 20);
	buf_append_text(&text, "{}\n");
	for (int i = 0; i < SENTRY_ITEMS_MAX + 1; i++)
		buf_append_text(&text, "{}\n\n");
	assert_int_equal(sentry_envelope_begin(&envelope, buf_slice(&text), &arena, &e), 0);
	while (!(err = sentry_envelope_next(&envelope, &arena, &item, &e)))
		;
	assert_int_equal(err, ERR_LIMIT);
	assert_int_equal(envelope.item_count, SENTRY_ITEMS_MAX);
	assert_string_equal(e.text, "the envelope has more than 1000 items");
	buf_release(&text);
}

static void keys_of_headers(void **state)
{
	(void)state;
	static const struct {
		const char *header, *key;
	} cases[] = {
		{"Sentry sentry_version=7, sentry_key=abc, sentry_client=x/1", "abc"},
		{"Sentry sentry_key=abc,sentry_version=7", "abc"},
		{"  sentry  sentry_client=x , sentry_key=abc ", "abc"},
		{"Sentry sentry_key=", ""},
		{"Sentry sentry_version=7", NULL},
		{"Bearer sentry_key=abc", NULL},
		{"Sentry", NULL},
		{"", NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice key = sentry_auth_key(slice_of(cases[i].header));
		assert_int_equal(!key.data, !cases[i].key);
		assert_true(!key.data || slice_equal(key, slice_of(cases[i].key)));
	}
	assert_null(sentry_auth_key((struct slice){NULL, 0}).data);
}

static void addresses(void **state)
{
	(void)state;
	static const struct {
		const char *text, *key;
		uint64_t project;
	} cases[] = {
		{"http://abc@127.0.0.1:8470/1", "abc", 1},
		{"https://abc:secret@sentry.io/42", "abc", 42},
		{"https://abc:@sentry.io/42", "abc", 42},
		{"http://abc@host:9000/a/path/7", "abc", 7},
		{"http://abc@[::1]:9000/7", "abc", 7},
		{"http://abc@host/", NULL, 0},
		{"http://abc@host/x", NULL, 0},
		{"http://abc@host", NULL, 0},
		{"http://host/1", NULL, 0},
		{"http://@host/1", NULL, 0},
		{"http://abc/1@host", NULL, 0},
		{"http://abc@host/99999999999999999999", NULL, 0},
		{"abc@host/1", NULL, 0},
		{"", NULL, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sentry_dsn dsn;
		bool good = sentry_dsn_parse(slice_of(cases[i].text), &dsn);
		assert_int_equal(good, cases[i].key != NULL);
		if (!good)
			continue;
		assert_true(slice_equal(dsn.key, slice_of(cases[i].key)));
		assert_int_equal(dsn.project, cases[i].project);
	}
}

static void ids(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool good;
	} cases[] = {
		{"fc6d8c0c43fc4630ad850ee518f1b9d0", true},
		{"FC6D8C0C43FC4630AD850EE518F1B9D0", true},
		{"fc6d8c0c-43fc-4630-ad85-0ee518f1b9d0", true},
		{"fc6d8c0c43fc4630ad850ee518f1b9d", false},
		{"fc6d8c0c43fc4630ad850ee518f1b9dg", false},
		{"fc6d8c0c-43fc-4630-ad850-ee518f1b9d0", false},
		{"fc6d8c0c43-fc-4630-ad85-0ee518f1b9d0", false},
		{"------------------------------------", false},
		{"", false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char id[SENTRY_ID_BYTES];
		bool good = sentry_id_parse(slice_of(cases[i].text), id);
		assert_int_equal(good, cases[i].good);
		if (good)
			assert_memory_equal(id, "fc6d8c0c43fc4630ad850ee518f1b9d0", sizeof(id));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(envelopes_of_the_specification),
		TEST(other_envelopes_that_are_good),
		TEST(what_is_no_envelope),
		TEST(there_are_no_more_items_than_may_be),
		TEST(keys_of_headers),
		TEST(addresses),
		TEST(ids),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
