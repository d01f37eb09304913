/* Lines of webhooks: what they say, and which messages they want. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "notify/webhook.h"

static struct webhook parsed(const char *line)
{
	struct webhook webhook;
	struct errbuf e = {""};
	assert_int_equal(webhook_parse(slice_of(line), &webhook, &e), 0);
	return webhook;
}

static void check_shown(const char *line, const char *shown)
{
	struct webhook webhook = parsed(line);
	assert_string_equal(webhook.shown, shown);
	webhook_release(&webhook);
}

static void an_address_and_its_words(UNUSED void **state)
{
	struct webhook webhook =
		parsed("  https://u:p@a.example:8443/x?y=z#w  level=error tenant=shop "
		       "kind=held_back environment=live ");
	assert_string_equal(webhook.url, "https://u:p@a.example:8443/x?y=z#w");
	assert_string_equal(webhook.shown, "https://a.example:8443");
	assert_string_equal(webhook.tenant, "shop");
	assert_string_equal(webhook.environment, "live");
	assert_string_equal(webhook.level, "error");
	assert_int_equal(webhook.kind, FAULT_HELD_BACK);
	webhook_release(&webhook);
	webhook = parsed("http://a");
	assert_null(webhook.tenant);
	assert_int_equal(webhook.kind, -1);
	webhook_release(&webhook);
}

/* What stands behind the name may be a secret, and so may what stands before it. */
static void only_the_name_is_shown(UNUSED void **state)
{
	check_shown("http://a?secret", "http://a");
	check_shown("http://a#secret", "http://a");
	check_shown("https://secret@[2001:db8::1]:1/secret@b", "https://[2001:db8::1]:1");
	check_shown("https://one@two@a", "https://a");
}

static void another_line_is_another_webhook(UNUSED void **state)
{
	struct webhook a = parsed("http://a"), b = parsed("http://a kind=new"),
		       c = parsed("http://a");
	assert_string_not_equal(a.name, b.name);
	assert_string_equal(a.name, c.name);
	assert_int_equal(strlen(a.name), WEBHOOK_NAME_BYTES);
	webhook_release(&a);
	webhook_release(&b);
	webhook_release(&c);
}

static void what_makes_no_sense(UNUSED void **state)
{
	static const char *const lines[] = {"",
					    " ",
					    "a",
					    "http:/",
					    "http://",
					    "https://",
					    "HTTP://a",
					    "file:///secret",
					    "http://a\tb",
					    "http://a\x7f",
					    "http://a tenant=",
					    "http://a tenant=a tenant=b",
					    "http://a kind=New",
					    "http://a kind=",
					    "http://a level=a level=a",
					    "http://a x",
					    "http://a environment",
					    "http://a exchange=x",
					    "mailto:a@b key=x",
					    "amqp://a",
					    "amqp://a tenant=b",
					    "amqp://a:secret@b/c/d exchange=x",
					    "amqp://a:sec\tsecret@b exchange=x",
					    "amqp:// exchange=x",
					    "amqps://secret@a exchange=x",
					    "amqp://a exchange=",
					    "amqp://a exchange=x exchange=y",
					    "amqp://a key=x key=x"};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct webhook webhook;
		struct errbuf e = {""};
		assert_int_equal(webhook_parse(slice_of(lines[i]), &webhook, &e), ERR_INVALID);
		assert_true(e.text[0]);
		assert_null(strstr(e.text, "secret"));
	}
}

static void mail(UNUSED void **state)
{
	static const char *const bad[] = {
		"mailto:",       "mailto:a",     "mailto:@a",    "mailto:a@",
		"mailto:a@b@c",  "mailto:a,b@c", "mailto:<a@b>", "mailto:a@b\r\nBcc:x",
		"mailto:\"a\"@b"};
	struct webhook webhook = parsed("mailto:o'neil+x@shop.example kind=day"), none;
	struct errbuf e;
	assert_int_equal(webhook.way, WEBHOOK_MAILS);
	assert_string_equal(webhook.url, "o'neil+x@shop.example");
	assert_int_equal(webhook.kind, FAULT_DAY_OVER);
	webhook_release(&webhook);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(webhook_parse(slice_of(bad[i]), &none, &e), ERR_INVALID);
}

static void a_broker_and_its_words(UNUSED void **state)
{
	struct webhook webhook = parsed("amqp://u:p%40w@a.example:5673/a%2Fb exchange=faults "
					"key=k=1 tenant=shop kind=new");
	assert_int_equal(webhook.way, WEBHOOK_PUBLISHES);
	assert_null(webhook.url);
	assert_string_equal(webhook.shown, "amqp://a.example:5673");
	assert_string_equal(webhook.broker.host, "a.example");
	assert_int_equal(webhook.broker.port, 5673);
	assert_string_equal(webhook.broker.vhost, "a/b");
	assert_string_equal(webhook.broker.user, "u");
	assert_string_equal(webhook.broker.password, "p@w");
	assert_string_equal(webhook.exchange, "faults");
	assert_string_equal(webhook.key, "k=1");
	assert_string_equal(webhook.tenant, "shop");
	assert_int_equal(webhook.kind, FAULT_NEW_GROUP);
	webhook_release(&webhook);
	webhook = parsed("amqp://[::1] key=a.queue");
	assert_null(webhook.exchange);
	assert_string_equal(webhook.shown, "amqp://[::1]");
	assert_string_equal(webhook.broker.host, "::1");
	webhook_release(&webhook);
}

static void names_that_amqp_cannot_carry(UNUSED void **state)
{
	char line[300];
	for (int len = 255; len <= 256; len++) {
		struct webhook webhook;
		struct errbuf e = {""};
		snprintf(line, sizeof(line), "amqp://a key=%0*d", len, 1);
		assert_int_equal(webhook_parse(slice_of(line), &webhook, &e),
				 len > 255 ? ERR_INVALID : 0);
		webhook_release(&webhook);
	}
}

static bool wants(const char *line, struct fault_message message)
{
	struct webhook webhook = parsed(line);
	bool wanted = webhook_wants(&webhook, &message);
	webhook_release(&webhook);
	return wanted;
}

static void which_messages_it_wants(UNUSED void **state)
{
	const struct fault_message fresh = {.kind = FAULT_NEW_GROUP,
					    .group = SLICE("1-x"),
					    .environment = SLICE("live"),
					    .level = SLICE("error")},
				   bare = {.kind = FAULT_REGRESSED, .group = SLICE("1-x")},
				   held = {.kind = FAULT_NEW_GROUP, .held_back = true},
				   day = {.kind = FAULT_DAY_OVER};
	assert_true(wants("http://a", fresh) && wants("http://a", bare) && wants("http://a", day));
	assert_false(wants("http://a", held));
	assert_true(wants("http://a kind=new environment=live level=error", fresh));
	assert_false(wants("http://a kind=regressed", fresh));
	assert_false(wants("http://a environment=test", fresh));
	assert_false(wants("http://a level=warning", fresh));
	assert_false(wants("http://a environment=live", bare));
	assert_true(wants("http://a environment=live", day)); /* it is of no environment */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_and_its_words),
		cmocka_unit_test(only_the_name_is_shown),
		cmocka_unit_test(another_line_is_another_webhook),
		cmocka_unit_test(what_makes_no_sense),
		cmocka_unit_test(mail),
		cmocka_unit_test(a_broker_and_its_words),
		cmocka_unit_test(names_that_amqp_cannot_carry),
		cmocka_unit_test(which_messages_it_wants),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
