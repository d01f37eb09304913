/* What Sentry's old clients send to /store/. Packed bytes are those of Python 3.11: zlib.compress()
 * and base64.b64encode() of the JSON that stands beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/mem.h"
#include "wire/sentry_store.h"

#define EVENT      "{\"a\":1}"
#define ZLIB_EVENT "\x78\x9c\xab\x56\x4a\x54\xb2\x32\xac\x05\x00\x08\x2a\x02\x09"

static void expect(struct slice body, size_t max_bytes, int err, const char *text)
{
	struct sentry_store store;
	struct errbuf e = {""};
	char *copy = mem_alloc(body.len); /* of just that size, so that a byte too far is seen */
	if (body.len)
		memcpy(copy, body.data, body.len);
	sentry_store_init(&store, max_bytes);
	assert_int_equal(sentry_store_unpack(&store, (struct slice){copy, body.len}, &e), err);
	if (err)
		assert_string_equal(e.text, text);
	else if (!slice_equal(store.event, slice_of(text)))
		fail_msg("%.*s and not %s", (int)store.event.len, store.event.data, text);
	sentry_store_release(&store);
	mem_free(copy);
}

static void what_is_not_packed_stays(void **state)
{
	static const char *const bodies[] = {EVENT, " {\"a\":1}", "",         "5",
					     "[]",  "null",       "\x1f\x8b", "EyJ"};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		expect(slice_of(bodies[i]), 0, 0, bodies[i]);
}

static void zlib_of_json(void **state)
{
	(void)state;
	expect(SLICE(ZLIB_EVENT), 100, 0, EVENT);
	/* Of levels 0, 1 and 9, which the second byte tells; and of nothing. */
	expect(SLICE("\x78\x01\x01\x02\x00\xfd\xff{}\x01\x75\x00\xf9"), 100, 0, "{}");
	expect(SLICE("\x78\x01\xab\xae\x05\x00\x01\x75\x00\xf9"), 100, 0, "{}");
	expect(SLICE("\x78\xda\xab\xae\x05\x00\x01\x75\x00\xf9"), 100, 0, "{}");
	expect(SLICE("\x78\x9c\x03\x00\x00\x00\x00\x01"), 0, 0, "");
}

static void base64_of_json(void **state)
{
	(void)state;
	expect(SLICE("eyJhIjoxfQ=="), 100, 0, EVENT);
	expect(SLICE("eyJhIjoxMn0="), 100, 0, "{\"a\":12}");
	expect(SLICE("eyJhIjoxMjN9"), 100, 0, "{\"a\":123}");
	expect(SLICE("eyJhIjoxfQ"), 100, 0, EVENT);
	expect(SLICE("eyJhIjoxMn0"), 100, 0, "{\"a\":12}");
	/* As MIME breaks lines. */
	expect(SLICE("eyJh\r\nIjox\n fQ=\t=\n"), 100, 0, EVENT);
}

static void base64_of_zlib_of_json(void **state)
{
	(void)state;
	expect(SLICE("eJyrVkpUsjKsBQAIKgIJ"), 100, 0, EVENT);
	expect(SLICE("eJyrrgUAAXUA+Q=="), 100, 0, "{}");
}

static void what_is_damaged(void **state)
{
	static const char cut[] = "zlib: it is cut off before its end";
	static const char damaged[] = "zlib: it is damaged";
	static const char base64_cut[] = "base64: it is cut off before its end";
	(void)state;
	for (size_t len = 1; len < sizeof(ZLIB_EVENT) - 1; len++)
		expect((struct slice){ZLIB_EVENT, len}, 100, ERR_INVALID, cut);
	expect(SLICE("\x78\x9c\xab\x56\x4a\x54\xb2\x32\xac\x05\x00\x08\x2a\x02\x0a"), 100,
	       ERR_INVALID, damaged); /* its checksum */
	expect(SLICE("x{}"), 100, ERR_INVALID, damaged);
	expect(SLICE("\x78\xbb\x00\x00\x00\x00"), 100, ERR_INVALID, damaged); /* a dictionary */
	expect(SLICE(ZLIB_EVENT "\n"), 100, ERR_INVALID, "zlib: something follows behind its end");
	expect(SLICE("e"), 100, ERR_INVALID, base64_cut);
	expect(SLICE("eyJhI"), 100, ERR_INVALID, base64_cut);
	expect(SLICE("eyJhIjoxfQ="), 100, ERR_INVALID, base64_cut);
	expect(SLICE("eyJh="), 100, ERR_INVALID, base64_cut);
	expect(SLICE("eyJh===="), 100, ERR_INVALID, "base64: byte 6 does not belong there");
	expect(SLICE("eyJhIjoxfQ==e"), 100, ERR_INVALID, "base64: byte 12 does not belong there");
	expect(SLICE("eyJ-"), 100, ERR_INVALID, "base64: byte 3 does not belong there");
	expect(SLICE("ey\0="), 100, ERR_INVALID, "base64: byte 2 does not belong there");
	expect(SLICE("eJyrVkpUsjKsBQAI"), 100, ERR_INVALID, cut);
}

static void what_comes_out_has_a_limit(void **state)
{
	static const char too_much[] = "zlib: unpacked it has more bytes than are taken";
	static const char too_much_of_base64[] =
		"base64: unpacked it has more bytes than are taken";
	(void)state;
	expect(SLICE(ZLIB_EVENT), 7, 0, EVENT);
	expect(SLICE(ZLIB_EVENT), 6, ERR_LIMIT, too_much);
	expect(SLICE(ZLIB_EVENT), 0, ERR_LIMIT, too_much);
	expect(SLICE("eyJhIjoxfQ=="), 6, ERR_LIMIT, too_much_of_base64);
	expect(SLICE("eJyrVkpUsjKsBQAIKgIJ"), 20, 0, EVENT);
}

/* More than a piece, of which the limit is no multiple. */
static void a_bomb(void **state)
{
	enum { EVENT_BYTES = 300000 };
	char *event = mem_alloc(EVENT_BYTES + 1);
	unsigned char packed[4096];
	uLongf len = sizeof(packed);
	(void)state;
	memset(event, ' ', EVENT_BYTES);
	event[EVENT_BYTES] = 0;
	assert_int_equal(compress(packed, &len, (const Bytef *)event, EVENT_BYTES), Z_OK);
	struct slice body = {(const char *)packed, len};
	expect(body, EVENT_BYTES, 0, event);
	expect(body, EVENT_BYTES - 1, ERR_LIMIT, "zlib: unpacked it has more bytes than are taken");
	mem_free(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_packed_stays),
		cmocka_unit_test(zlib_of_json),
		cmocka_unit_test(base64_of_json),
		cmocka_unit_test(base64_of_zlib_of_json),
		cmocka_unit_test(what_is_damaged),
		cmocka_unit_test(what_comes_out_has_a_limit),
		cmocka_unit_test(a_bomb),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
