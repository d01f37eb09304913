/* Version 3: which replies count. The agent says what a case tells it to, with keys of its own;
 * what is to be believed is read off RFC 3414 section 3.2. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#include "snmp/private.h"

#define ENGINE  SLICE("\x80\x00\x1f\x88\x04gnry")
#define OTHER   SLICE("\x80\x00\x1f\x88\x04othr")
#define UPTIME  SLICE("\x2b\x06\x01\x02\x01\x01\x03\x00")
#define SIGNED  (USM_AUTH | USM_PRIV)
#define BOOTS   7
#define BEGIN_S 1000

enum { MESSAGE_BYTES = 2048, VALUE = 4711 };

struct rig {
	struct snmp_port port;
	struct clock_virtual clock;
	struct snmp_client *client;
	struct snmp_device *device;
	struct loop_address address;
	struct usm_crypto *crypto;
	struct usm_key auth_key, priv_key; /* of ENGINE */
	uint8_t bytes[MESSAGE_BYTES];
	struct slice sent; /* the last one */
	size_t sent_count, cells, done;
	int err;
	uint64_t value;
};

static struct rig rig;

/* What the agent says. */
struct saying {
	uint8_t flags;
	enum snmp_pdu_type type;
	struct slice engine_id, user, oid;
	uint32_t boots, time;
	int id_off, request_id_off; /* from what was asked */
	bool wrong_key;
};

static const struct saying good = {.flags = SIGNED,
				   .type = SNMP_RESPONSE,
				   .engine_id = {"\x80\x00\x1f\x88\x04gnry", 9},
				   .user = {"monitor", 7},
				   .oid = {"\x2b\x06\x01\x02\x01\x01\x03\x00", 8},
				   .boots = BOOTS,
				   .time = BEGIN_S};

static size_t on_send(struct snmp_port *port, const struct loop_outgoing *outgoing, size_t count)
{
	(void)port;
	assert_int_equal(count, 1);
	memcpy(rig.bytes, outgoing[0].bytes.data, outgoing[0].bytes.len);
	rig.sent = (struct slice){(char *)rig.bytes, outgoing[0].bytes.len};
	rig.sent_count++;
	return count;
}

static void on_wake(struct snmp_port *port)
{
	(void)port;
}

static void on_reply(void *owner, const struct snmp_reply *reply)
{
	(void)owner;
	rig.cells += reply->count;
	rig.value = reply->cells[0].value.u64;
}

static void on_done(void *owner, const struct snmp_result *result)
{
	(void)owner;
	rig.done++;
	rig.err = result->err;
	assert_true(!result->err || result->sentence[0]);
}

static void make_keys(struct slice engine_id)
{
	struct usm_key key;
	usm_password_key(rig.crypto, USM_AUTH_SHA1, SLICE("maplesyrup"), &key);
	usm_localize(rig.crypto, USM_AUTH_SHA1, &key, engine_id, &rig.auth_key);
	usm_password_key(rig.crypto, USM_AUTH_SHA1, SLICE("applesyrup"), &key);
	usm_localize_priv(rig.crypto, USM_AUTH_SHA1, USM_PRIV_AES128, &key, engine_id,
			  &rig.priv_key);
}

static void get(void)
{
	static const struct snmp_events events = {on_reply, on_done};
	struct slice oid = UPTIME;
	assert_int_equal(snmp_get(rig.device, &oid, 1, &events, NULL, NULL), 0);
	snmp_client_tick(rig.client);
}

static int set_up(void **state)
{
	const struct snmp_credentials credentials = {.version = SNMP_V3,
						     .user = SLICE("monitor"),
						     .level = SNMP_AUTH_PRIV,
						     .auth = USM_AUTH_SHA1,
						     .priv = USM_PRIV_AES128,
						     .auth_password = SLICE("maplesyrup"),
						     .priv_password = SLICE("applesyrup")};
	const struct snmp_device_options options = {.retries = 1};
	struct snmp_login *login;
	(void)state;
	memset(&rig, 0, sizeof(rig));
	rig.port = (struct snmp_port){on_send, on_wake};
	rig.address = (struct loop_address){.bytes = {127, 0, 0, 1}, .port = 161};
	rig.crypto = usm_crypto_new();
	clock_virtual_init(&rig.clock, 1700000000000000);
	rig.client = snmp_client_new(&rig.clock.clock, &rig.port, 0);
	assert_int_equal(snmp_login_new(&credentials, &login, NULL), 0);
	rig.device = snmp_device_new(rig.client, &rig.address, login, &options);
	snmp_login_release(login);
	make_keys(ENGINE);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	snmp_device_free(rig.device);
	snmp_client_free(rig.client);
	usm_crypto_free(rig.crypto);
	return 0;
}

/* The request id is that of the message: the client makes them so. */
static void say(const struct saying *saying)
{
	static const struct usm_key wrong = {.bytes = "something else altogether", .len = 20};
	uint8_t pdu_memory[256], memory[MESSAGE_BYTES];
	struct usm_message request;
	struct slice message;
	const char *why;
	assert_int_equal(usm_decode(rig.sent, &request, &why), 0);
	struct ber_writer w = ber_writer_of(pdu_memory, sizeof(pdu_memory));
	const uint8_t *end = w.at;
	struct snmp_varbind varbind = {saying->oid, {SNMP_TIMETICKS, {.u64 = VALUE}}};
	struct snmp_pdu pdu = {.type = saying->type,
			       .request_id = request.id + saying->request_id_off};
	snmp_put_varbind(&w, &varbind);
	snmp_put_pdu(&w, &pdu, end);
	const struct usm_seal seal = {.id = request.id + saying->id_off,
				      .max_size = 1500,
				      .flags = saying->flags,
				      .engine_id = saying->engine_id,
				      .context_engine_id = saying->engine_id,
				      .boots = saying->boots,
				      .time = saying->time,
				      .user = saying->user,
				      .auth = USM_AUTH_SHA1,
				      .priv = USM_PRIV_AES128,
				      .auth_key = saying->wrong_key ? &wrong : &rig.auth_key,
				      .priv_key = &rig.priv_key,
				      .salt = 1};
	struct slice bytes = {(char *)w.at, (size_t)(end - w.at)};
	assert_int_equal(usm_encode(rig.crypto, &seal, bytes, memory, sizeof(memory), &message), 0);
	struct loop_datagram datagram = {message, false, rig.address};
	snmp_client_receive(rig.client, &datagram, 1);
}

static void report(const char *which, struct slice engine_id, uint8_t flags, uint32_t boots,
		   uint32_t time)
{
	char oid[10] = "\x2b\x06\x01\x06\x03\x0f\x01\x01";
	struct saying saying = good;
	oid[8] = which[0];
	saying.type = SNMP_REPORT;
	saying.flags = flags;
	saying.engine_id = engine_id;
	saying.oid = (struct slice){oid, sizeof(oid)};
	saying.boots = boots;
	saying.time = time;
	if (!flags)
		saying.user = SLICE("");
	say(&saying);
}

#define LEVELS  "\x01"
#define TIMES   "\x02"
#define USERS   "\x03"
#define ENGINES "\x04"
#define DIGESTS "\x05"

/* Up to the first request that bears a question. */
static void discover(void)
{
	get();
	report(ENGINES, ENGINE, 0, BOOTS, BEGIN_S);
}

static void assert_asked(struct slice engine_id, uint32_t boots, uint32_t time)
{
	struct usm_message message;
	const char *why;
	assert_int_equal(usm_decode(rig.sent, &message, &why), 0);
	assert_true(slice_equal(message.engine_id, engine_id));
	assert_int_equal(message.boots, boots);
	assert_int_equal(message.time, time);
}

static void assert_ignored(const struct saying *saying, enum stat_id reason)
{
	int64_t was = stat_get(reason);
	size_t sent = rig.sent_count, done = rig.done, cells = rig.cells;
	say(saying);
	assert_int_equal(stat_get(reason), was + 1);
	assert_int_equal(rig.sent_count, sent);
	assert_int_equal(rig.done, done);
	assert_int_equal(rig.cells, cells);
}

static void assert_taken(const struct saying *saying)
{
	size_t done = rig.done, cells = rig.cells;
	say(saying);
	assert_int_equal(rig.done, done + 1);
	assert_int_equal(rig.cells, cells + 1);
	assert_int_equal(rig.err, 0);
	assert_int_equal(rig.value, VALUE);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void the_engine_is_asked_first(void **state)
{
	struct usm_message message;
	const char *why;
	(void)state;
	get();
	assert_int_equal(rig.sent_count, 1);
	assert_asked(SLICE(""), 0, 0);
	report(ENGINES, ENGINE, 0, BOOTS, BEGIN_S);
	assert_int_equal(rig.sent_count, 2);
	assert_asked(ENGINE, BOOTS, BEGIN_S);
	assert_int_equal(usm_decode(rig.sent, &message, &why), 0);
	assert_int_equal(message.flags, SIGNED | USM_REPORTABLE);
	assert_true(usm_verify(rig.crypto, USM_AUTH_SHA1, &rig.auth_key, &message));
	assert_taken(&good);
	/* Once for all; and the time goes on. */
	clock_virtual_advance(&rig.clock, 42 * 1000000);
	get();
	assert_int_equal(rig.sent_count, 3);
	assert_asked(ENGINE, BOOTS, BEGIN_S + 42);
}

static void an_engine_id_that_is_none(void **state)
{
	int64_t was = stat_get(STAT_snmp_ignored_engine);
	(void)state;
	get();
	report(ENGINES, SLICE(""), 0, BOOTS, BEGIN_S);
	report(ENGINES, SLICE("1234"), 0, BOOTS, BEGIN_S);
	assert_int_equal(stat_get(STAT_snmp_ignored_engine), was + 2);
	assert_int_equal(rig.sent_count, 1);
}

static void what_is_not_genuine(void **state)
{
	struct saying saying = good;
	(void)state;
	discover();
	saying.flags = 0;
	assert_ignored(&saying, STAT_snmp_ignored_level);
	saying.flags = USM_AUTH; /* signed, but in the clear */
	assert_ignored(&saying, STAT_snmp_ignored_level);
	saying = good;
	saying.wrong_key = true;
	assert_ignored(&saying, STAT_snmp_ignored_digest);
	saying = good;
	saying.engine_id = OTHER;
	assert_ignored(&saying, STAT_snmp_ignored_engine);
	saying = good;
	saying.user = SLICE("monitos");
	assert_ignored(&saying, STAT_snmp_ignored_engine);
	saying = good;
	saying.id_off = 1; /* another slot */
	assert_ignored(&saying, STAT_snmp_ignored_late);
	saying = good;
	saying.request_id_off = 1;
	assert_ignored(&saying, STAT_snmp_ignored_content);
	saying = good;
	saying.type = SNMP_GET;
	assert_ignored(&saying, STAT_snmp_ignored_content);
	assert_taken(&good);
	assert_ignored(&good, STAT_snmp_ignored_late); /* once more */
}

/* RFC 3414 section 3.2 (7b): boots less, or more than 150 s behind what was heard last. */
static void what_is_outside_of_the_window(void **state)
{
	struct saying saying = good;
	(void)state;
	discover();
	assert_taken(&good);
	clock_virtual_advance(&rig.clock, 500 * 1000000);
	get();
	saying.time = BEGIN_S + 500;
	assert_taken(&saying);
	get();
	saying.boots = BOOTS - 1;
	saying.time = BEGIN_S + 500;
	assert_ignored(&saying, STAT_snmp_ignored_window);
	saying = good;
	saying.time = BEGIN_S + 500 - 151;
	assert_ignored(&saying, STAT_snmp_ignored_window);
	saying.time = BEGIN_S + 500 - 150;
	assert_taken(&saying);
	get();
	saying.boots = BOOTS + 1; /* it has started again */
	saying.time = 3;
	assert_taken(&saying);
	get();
	assert_asked(ENGINE, BOOTS + 1, 3);
	assert_ignored(&good, STAT_snmp_ignored_window);
	saying.boots = USM_BOOTS_MAX;
	assert_ignored(&saying, STAT_snmp_ignored_window);
}

static void a_signed_report_of_the_time_is_believed(void **state)
{
	int64_t was = stat_get(STAT_snmp_ignored_level);
	(void)state;
	discover();
	report(TIMES, ENGINE, 0, 99, 99); /* anybody can say that */
	assert_int_equal(stat_get(STAT_snmp_ignored_level), was + 1);
	assert_int_equal(rig.sent_count, 2);
	report(TIMES, ENGINE, USM_AUTH, BOOTS + 2, 5);
	assert_int_equal(rig.sent_count, 3);
	assert_asked(ENGINE, BOOTS + 2, 5);
	report(TIMES, ENGINE, USM_AUTH, BOOTS + 3, 6);
	assert_asked(ENGINE, BOOTS + 3, 6);
	assert_int_equal(rig.done, 0);
	report(TIMES, ENGINE, USM_AUTH, BOOTS + 4, 7); /* it does so always */
	assert_int_equal(rig.done, 1);
	assert_int_equal(rig.err, -EACCES);
	assert_int_equal(rig.sent_count, 4);
}

/* An agent that has forgotten how often it booted: its engine is asked again, and then believed. */
static void boots_that_go_back(void **state)
{
	struct saying saying = good;
	(void)state;
	discover();
	assert_taken(&good);
	get();
	report(TIMES, ENGINE, USM_AUTH, 1, 20);
	assert_asked(SLICE(""), 0, 0);
	report(ENGINES, ENGINE, 0, 1, 21);
	assert_asked(ENGINE, 1, 21);
	saying.boots = 1;
	saying.time = 21;
	assert_taken(&saying);
}

/* A device was replaced: another engine, other keys. */
static void another_engine_behind_the_address(void **state)
{
	struct saying saying = good;
	(void)state;
	discover();
	assert_taken(&good);
	get();
	report(ENGINES, OTHER, 0, 1, 1);
	assert_asked(SLICE(""), 0, 0);
	report(ENGINES, OTHER, 0, 1, 1);
	assert_asked(OTHER, 1, 1);
	assert_ignored(&good, STAT_snmp_ignored_engine);
	make_keys(OTHER);
	saying.engine_id = OTHER;
	saying.boots = saying.time = 1;
	assert_taken(&saying);
}

static void refusals_end_the_operation(void **state)
{
	static const char *const which[] = {LEVELS, USERS, DIGESTS, "\x06"};
	(void)state;
	discover();
	for (size_t i = 0; i < ARRAY_LEN(which); i++) {
		if (i)
			get();
		report(which[i], ENGINE, 0, BOOTS, BEGIN_S);
		assert_int_equal(rig.done, i + 1);
		assert_int_equal(rig.err, -EACCES);
		assert_int_equal(rig.cells, 0);
	}
}

/* Version 2c with the id of a request of version 3. */
static void another_version(void **state)
{
	uint8_t memory[256];
	struct usm_message request;
	const char *why;
	int64_t was = stat_get(STAT_snmp_ignored_version);
	(void)state;
	discover();
	assert_int_equal(usm_decode(rig.sent, &request, &why), 0);
	struct ber_writer w = ber_writer_of(memory, sizeof(memory));
	const uint8_t *end = w.at;
	struct snmp_varbind varbind = {UPTIME, {SNMP_TIMETICKS, {.u64 = VALUE}}};
	struct snmp_pdu pdu = {.type = SNMP_RESPONSE, .request_id = request.id};
	snmp_put_varbind(&w, &varbind);
	snmp_put_pdu(&w, &pdu, end);
	snmp_put_message(&w, SNMP_V2C, SLICE("public"), end);
	struct loop_datagram datagram = {{(char *)w.at, (size_t)(end - w.at)}, false, rig.address};
	snmp_client_receive(rig.client, &datagram, 1);
	assert_int_equal(stat_get(STAT_snmp_ignored_version), was + 1);
	assert_int_equal(rig.done, 0);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_engine_is_asked_first),
		CASE(an_engine_id_that_is_none),
		CASE(what_is_not_genuine),
		CASE(what_is_outside_of_the_window),
		CASE(a_signed_report_of_the_time_is_believed),
		CASE(boots_that_go_back),
		CASE(another_engine_behind_the_address),
		CASE(refusals_end_the_operation),
		CASE(another_version),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
