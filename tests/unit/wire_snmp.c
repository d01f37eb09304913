/* Messages of versions 1 and 2c: what net-snmp and snmpd said, and what nobody should say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hex.h"
#include "snmp_recorded.h"
#include "wire/snmp.h"

enum { VARBINDS_MAX = 64 };

#define COMMUNITY SLICE("public")

struct taken {
	struct snmp_message message;
	struct snmp_varbind varbinds[VARBINDS_MAX];
	size_t count;
	int err;
	const char *why;
};

static void take(struct slice bytes, struct taken *taken)
{
	*taken = (struct taken){0};
	taken->err = snmp_decode(bytes, &taken->message, &taken->why);
	if (taken->err)
		return;
	struct ber *varbinds = &taken->message.pdu.varbinds;
	while (snmp_next(varbinds, &taken->varbinds[taken->count]))
		assert_true(++taken->count < VARBINDS_MAX);
	if (varbinds->bad) {
		taken->err = ERR_INVALID;
		taken->why = varbinds->bad;
	}
}

static void assert_oid(struct slice oid, const char *text)
{
	struct buf out;
	buf_init(&out, 4096);
	oid_print(oid, &out);
	assert_true(slice_equal(buf_slice(&out), slice_of(text)));
	buf_release(&out);
}

static void assert_octets(const struct snmp_value *value, const char *text)
{
	assert_int_equal(value->type, SNMP_OCTETS);
	assert_true(slice_equal(value->bytes, slice_of(text)));
}

static void a_get_of_version_1(void **state)
{
	struct slice bytes = hex_new(v1_get_reply);
	struct taken taken;
	(void)state;
	take(bytes, &taken);
	assert_int_equal(taken.err, 0);
	assert_int_equal(taken.message.version, SNMP_V1);
	assert_true(slice_equal(taken.message.community, COMMUNITY));
	assert_int_equal(taken.message.pdu.type, SNMP_RESPONSE);
	assert_int_equal(taken.message.pdu.request_id, 0x6dbacafe);
	assert_int_equal(taken.message.pdu.error_status, 0);
	assert_int_equal(taken.count, 2);
	assert_oid(taken.varbinds[0].oid, ".1.3.6.1.2.1.1.5.0");
	assert_octets(&taken.varbinds[0].value, "granary-test");
	assert_oid(taken.varbinds[1].oid, ".1.3.6.1.2.1.1.3.0");
	assert_int_equal(taken.varbinds[1].value.type, SNMP_TIMETICKS);
	assert_int_equal(taken.varbinds[1].value.u64, 0x16e);
	hex_free(bytes);
}

static void version_1_names_what_is_missing(void **state)
{
	struct slice bytes = hex_new(v1_no_such_name_reply);
	struct taken taken;
	(void)state;
	take(bytes, &taken);
	assert_int_equal(taken.err, 0);
	assert_int_equal(taken.message.pdu.error_status, SNMP_NO_SUCH_NAME);
	assert_int_equal(taken.message.pdu.error_index, 2);
	assert_int_equal(taken.count, 2);
	assert_int_equal(taken.varbinds[1].value.type, SNMP_NULL);
	hex_free(bytes);
}

static void three_columns_of_two_rows(void **state)
{
	static const char *const oids[] = {
		".1.3.6.1.2.1.2.2.1.2.1", ".1.3.6.1.2.1.2.2.1.3.1", ".1.3.6.1.2.1.31.1.1.1.6.1",
		".1.3.6.1.2.1.2.2.1.2.2", ".1.3.6.1.2.1.2.2.1.3.2", ".1.3.6.1.2.1.31.1.1.1.6.2",
	};
	struct slice bytes = hex_new(v2c_getbulk_reply);
	struct taken taken;
	(void)state;
	take(bytes, &taken);
	assert_int_equal(taken.err, 0);
	assert_int_equal(taken.message.version, SNMP_V2C);
	assert_int_equal(taken.count, ARRAY_LEN(oids));
	for (size_t i = 0; i < ARRAY_LEN(oids); i++)
		assert_oid(taken.varbinds[i].oid, oids[i]);
	assert_octets(&taken.varbinds[0].value, "lo");
	assert_int_equal(taken.varbinds[1].value.type, SNMP_INTEGER);
	assert_int_equal(taken.varbinds[1].value.i64, 24); /* softwareLoopback */
	assert_int_equal(taken.varbinds[2].value.type, SNMP_COUNTER64);
	assert_true(taken.varbinds[2].value.u64 == UINT64_C(0x3d9d305c16));
	hex_free(bytes);
}

static void what_is_not_there(void **state)
{
	struct slice bytes = hex_new(v2c_get_reply);
	struct taken taken;
	(void)state;
	take(bytes, &taken);
	assert_int_equal(taken.count, 2);
	assert_int_equal(taken.varbinds[1].value.type, SNMP_NO_SUCH_OBJECT);
	hex_free(bytes);
	bytes = hex_new(v2c_end_reply);
	take(bytes, &taken);
	assert_int_equal(taken.count, 1);
	assert_oid(taken.varbinds[0].oid, ".2.99");
	assert_int_equal(taken.varbinds[0].value.type, SNMP_END_OF_MIB_VIEW);
	hex_free(bytes);
}

/* One varbind 1.3.6.1.1 with this value, as a reply. */
static struct slice reply_with(const char *value_hex, uint8_t *memory, size_t size)
{
	uint8_t value[256];
	struct slice item = hex_to(value_hex, value);
	struct ber_writer w = ber_writer_of(memory, size);
	struct snmp_pdu pdu = {.type = SNMP_RESPONSE, .request_id = 0x40000000};
	const uint8_t *end = w.at;
	ber_put_bytes(&w, item.data, item.len);
	ber_put_octets(&w, BER_OID, (struct slice){"\x2b\x06\x01\x01", 4});
	ber_put_header(&w, BER_SEQUENCE, end);
	snmp_put_pdu(&w, &pdu, end);
	snmp_put_message(&w, SNMP_V2C, COMMUNITY, end);
	assert_false(w.full);
	return (struct slice){(char *)w.at, (size_t)(end - w.at)};
}

static void values_of_every_type(void **state)
{
	static const struct {
		const char *hex;
		int type;
		enum { NONE, UNSIGNED, SIGNED, REAL, BYTES } kind;
		uint64_t u64;
		double f64;
	} cases[] = {
		{"0201ff", SNMP_INTEGER, SIGNED, UINT64_MAX, 0},
		{"020500ffffffff", SNMP_INTEGER, SIGNED, UINT32_MAX, 0}, /* beyond 32 bits */
		{"0200", SNMP_UNREADABLE, BYTES, 0, 0},
		{"0400", SNMP_OCTETS, BYTES, 0, 0},
		{"0500", SNMP_NULL, NONE, 0, 0},
		{"06022b06", SNMP_OID, BYTES, 2, 0},
		{"0600", SNMP_OID, BYTES, 1, 0}, /* 0.0, one byte */
		{"06022b86", SNMP_UNREADABLE, BYTES, 2, 0},
		{"40047f000001", SNMP_IPADDRESS, BYTES, 4, 0},
		{"410500ffffffff", SNMP_COUNTER32, UNSIGNED, UINT32_MAX, 0},
		{"41050100000000", SNMP_UNREADABLE, BYTES, 5, 0},
		{"4100", SNMP_UNREADABLE, BYTES, 0, 0}, /* not zero: that would be a reset */
		{"420101", SNMP_GAUGE32, UNSIGNED, 1, 0},
		{"430201f4", SNMP_TIMETICKS, UNSIGNED, 500, 0},
		{"4403616263", SNMP_OPAQUE, BYTES, 3, 0},
		{"44079f780442f60000", SNMP_FLOAT, REAL, 0, 123},
		{"440b9f7908405edd2f1a9fbe77", SNMP_DOUBLE, REAL, 0, 123.456},
		{"44069f780442f600", SNMP_OPAQUE, BYTES, 6, 0}, /* cut */
		{"44079f780342f60000", SNMP_OPAQUE, BYTES, 7, 0},
		{"460900ffffffffffffffff", SNMP_COUNTER64, UNSIGNED, UINT64_MAX, 0},
		{"4609010000000000000000", SNMP_UNREADABLE, BYTES, 9, 0},
		{"470101", SNMP_UINTEGER32, UNSIGNED, 1, 0},
		{"8000", SNMP_NO_SUCH_OBJECT, NONE, 0, 0},
		{"8100", SNMP_NO_SUCH_INSTANCE, NONE, 0, 0},
		{"8200", SNMP_END_OF_MIB_VIEW, NONE, 0, 0},
		{"4502abcd", 0x45, BYTES, 2, 0}, /* NsapAddress: a tag of the past */
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t memory[512];
		struct taken taken;
		take(reply_with(cases[i].hex, memory, sizeof(memory)), &taken);
		const struct snmp_value *value = &taken.varbinds[0].value;
		assert_int_equal(taken.err, 0);
		assert_int_equal(taken.count, 1);
		assert_int_equal(value->type, cases[i].type);
		if (cases[i].kind == UNSIGNED || cases[i].kind == SIGNED)
			assert_true(value->u64 == cases[i].u64);
		if (cases[i].kind == REAL)
			assert_true(value->f64 == cases[i].f64);
		if (cases[i].kind == BYTES)
			assert_int_equal(value->bytes.len, cases[i].u64);
	}
}

static void values_come_back_as_they_were_written(void **state)
{
	const struct snmp_value values[] = {
		{SNMP_INTEGER, {.i64 = -70000}},
		{SNMP_COUNTER32, {.u64 = 4000000000}},
		{SNMP_COUNTER64, {.u64 = UINT64_MAX}},
		{SNMP_DOUBLE, {.f64 = 0.1}},
		{SNMP_FLOAT, {.f64 = 0.5}},
		{SNMP_OCTETS, {.bytes = {"xe-0/2/0", 8}}},
		{SNMP_OPAQUE, {.bytes = {"abc", 3}}},
		{SNMP_OID, {.bytes = {"\x2b\x06", 2}}},
		{SNMP_END_OF_MIB_VIEW, {0}},
	};
	uint8_t memory[512];
	struct ber_writer w = ber_writer_of(memory, sizeof(memory));
	const uint8_t *end = w.at;
	struct snmp_pdu pdu = {.type = SNMP_RESPONSE, .request_id = 0x7ffffffe, .error_status = 5};
	struct taken taken;
	(void)state;
	for (size_t i = ARRAY_LEN(values); i-- > 0;) {
		struct snmp_varbind varbind = {SLICE("\x2b\x06\x01"), values[i]};
		snmp_put_varbind(&w, &varbind);
	}
	snmp_put_pdu(&w, &pdu, end);
	snmp_put_message(&w, SNMP_V1, SLICE(""), end);
	assert_false(w.full);
	take((struct slice){(char *)w.at, (size_t)(end - w.at)}, &taken);
	assert_int_equal(taken.err, 0);
	assert_int_equal(taken.message.pdu.request_id, 0x7ffffffe);
	assert_int_equal(taken.message.pdu.error_status, 5);
	assert_int_equal(taken.count, ARRAY_LEN(values));
	for (size_t i = 0; i < ARRAY_LEN(values); i++) {
		const struct snmp_value *a = &taken.varbinds[i].value, *b = &values[i];
		assert_int_equal(a->type, b->type);
		if (b->type == SNMP_OCTETS || b->type == SNMP_OPAQUE || b->type == SNMP_OID)
			assert_true(slice_equal(a->bytes, b->bytes));
		else if (b->type != SNMP_END_OF_MIB_VIEW)
			assert_true(a->u64 == b->u64);
	}
}

/* The same bytes as net-snmp's tools send. */
static void requests_are_those_of_net_snmp(void **state)
{
	static const struct {
		const char *hex;
		enum snmp_version version;
		struct snmp_pdu pdu;
		const char *oids[3];
	} cases[] = {
		{v1_get_request,
		 SNMP_V1,
		 {.type = SNMP_GET, .request_id = 0x6dbacafe},
		 {"1.3.6.1.2.1.1.5.0", "1.3.6.1.2.1.1.3.0"}},
		{v2c_getbulk_request,
		 SNMP_V2C,
		 {.type = SNMP_GETBULK, .request_id = 0x755d6bb5, .error_index = 2},
		 {"1.3.6.1.2.1.2.2.1.2", "1.3.6.1.2.1.2.2.1.3", "1.3.6.1.2.1.31.1.1.1.6"}},
		{v2c_end_request,
		 SNMP_V2C,
		 {.type = SNMP_GETNEXT, .request_id = 0x4ac1fc61},
		 {"2.99"}},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t memory[512], expected_memory[512];
		struct slice expected = hex_to(cases[i].hex, expected_memory);
		struct ber_writer w = ber_writer_of(memory, sizeof(memory));
		const uint8_t *end = w.at;
		for (size_t j = ARRAY_LEN(cases[i].oids); j-- > 0;) {
			uint8_t oid_memory[OID_MAX_BYTES];
			struct slice oid;
			if (!cases[i].oids[j])
				continue;
			assert_int_equal(
				oid_parse(slice_of(cases[i].oids[j]), oid_memory, &oid, NULL), 0);
			snmp_put_name(&w, oid);
		}
		snmp_put_pdu(&w, &cases[i].pdu, end);
		snmp_put_message(&w, cases[i].version, COMMUNITY, end);
		assert_false(w.full);
		assert_int_equal(end - w.at, expected.len);
		assert_memory_equal(w.at, expected.data, expected.len);
	}
}

/* `30 len 06 len name 05 00`; a length from 128 on takes two bytes, and has 81 before it. */
static void names_of_any_length(void **state)
{
	uint8_t name[200], memory[256];
	(void)state;
	memset(name, 1, sizeof(name));
	for (size_t len = 1; len < sizeof(name); len++) {
		size_t bytes = 2 + (len < 128 ? 2 : 3) + len + (len + 4 < 128 ? 2 : 3);
		for (size_t room = bytes - 1; room <= bytes; room++) {
			struct ber_writer w = ber_writer_of(memory, room);
			snmp_put_name(&w, (struct slice){(char *)name, len});
			assert_int_equal(w.full, room < bytes);
		}
		uint8_t *at = memory;
		assert_int_equal(*at++, 0x30);
		if (len + 4 >= 128)
			assert_int_equal(*at++, 0x81);
		assert_int_equal(*at++, len + 4 + (len >= 128));
		assert_int_equal(*at++, 6);
		if (len >= 128)
			assert_int_equal(*at++, 0x81);
		assert_int_equal(*at++, len);
		assert_memory_equal(at, name, len);
		assert_memory_equal(at + len, "\x05\0", 2);
	}
}

/* Each reply, cut at each byte, and with each byte changed: an error or not, but no byte beyond is
 * read (the sanitizers look), and a cut one is never taken for whole. */
static void cut_and_damaged(void **state)
{
	static const char *const replies[] = {v1_get_reply, v2c_getbulk_reply, v2c_end_reply};
	struct taken taken;
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
		struct slice whole = hex_new(replies[i]);
		for (size_t len = 0; len < whole.len; len++) {
			char *copy = mem_alloc(len ? len : 1);
			memcpy(copy, whole.data, len);
			take((struct slice){copy, len}, &taken);
			assert_int_equal(taken.err, ERR_INVALID);
			assert_non_null(taken.why);
			mem_free(copy);
		}
		for (size_t at = 0; at < whole.len; at++) {
			char *copy = mem_alloc(whole.len);
			for (int value = 0; value < 256; value++) {
				memcpy(copy, whole.data, whole.len);
				copy[at] = (char)value;
				take((struct slice){copy, whole.len}, &taken);
				assert_true(!taken.err || taken.why);
			}
			mem_free(copy);
		}
		hex_free(whole);
	}
}

static void what_is_refused(void **state)
{
	static const struct {
		const char *hex;
		int err;
	} cases[] = {
		{"3003020103", ERR_VERSION},                                      /* version 3 */
		{"3003020102", ERR_VERSION},                                      /* never was */
		{"30030201ff", ERR_INVALID},                                      /* -1 */
		{"3005 020101 0400", ERR_INVALID},                                /* no PDU */
		{"3012 020101 0400 a30b 020101 020100 020100 3000", ERR_INVALID}, /* SET */
		{"3012 020101 0400 a40b 020101 020100 020100 3000", ERR_INVALID}, /* a trap */
		{"3015 020101 0400 a20e 020600000000ffff 020100 020100", ERR_INVALID},
		{"3012 020101 0400 a20b 020101 0201ff 020100 3000", ERR_INVALID},
		{"3012 020101 0400 a20b 020101 020100 0201ff 3000", ERR_INVALID},
		{"3017 020101 0400 a210 020101 020100 020100 3005 3003 020101", ERR_INVALID},
		{"3016 020101 0400 a20f 020101 020100 020100 3004 3002 0600", ERR_INVALID},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice bytes = hex_new(cases[i].hex);
		struct taken taken;
		take(bytes, &taken);
		assert_int_equal(taken.err, cases[i].err);
		hex_free(bytes);
	}
}

static void an_empty_list_and_bytes_behind(void **state)
{
	struct slice bytes = hex_new("3012 020101 0400 a20b 020101 020100 020100 3000 dead");
	struct taken taken;
	(void)state;
	take(bytes, &taken);
	assert_int_equal(taken.err, 0);
	assert_int_equal(taken.count, 0);
	hex_free(bytes);
}

/* Varbinds of `1.3.6.1.2.1.2.2.1.10.3`: what is taken when root and index are expected, and what is
 * left to be looked at. */
static void a_number_under_the_name_that_is_expected(void **state)
{
	static const struct {
		const char *hex;
		bool taken;
		int64_t value;
	} cases[] = {
		{"300f 060a 2b06010201020201 0a03 4101 05", true, 5},
		{"3010 060a 2b06010201020201 0a03 4602 ff00", true, -256}, /* modulo 2^64 */
		{"3010 060a 2b06010201020201 0a03 0202 ff00", true, -256},
		{"3010 060a 2b06010201020201 0a03 4102 ff00", true, 0xffffff00},
		{"3013 060a 2b06010201020201 0a03 4105 00ffffffff", true, 0xffffffff},
		{"3016 060a 2b06010201020201 0a03 4608 0102030405060708", true, 0x0102030405060708},
		/* Beyond 32 bits; nine bytes; none. */
		{"3013 060a 2b06010201020201 0a03 4105 0100000000", false, 0},
		{"3017 060a 2b06010201020201 0a03 4609 00ffffffffffffffff", false, 0},
		{"300e 060a 2b06010201020201 0a03 4100", false, 0},
		/* No number. */
		{"300f 060a 2b06010201020201 0a03 0401 05", false, 0},
		{"300e 060a 2b06010201020201 0a03 8200", false, 0},
		/* Another index, another root, a longer name, a shorter one. */
		{"300f 060a 2b06010201020201 0a04 4101 05", false, 0},
		{"300f 060a 2b06010201020201 0b03 4101 05", false, 0},
		{"300f 060a 2b07010201020201 0a03 4101 05", false, 0},
		{"3010 060b 2b06010201020201 0a0301 4101 05", false, 0},
		{"300e 0609 2b06010201020201 0a 4101 05", false, 0},
		/* Lengths in long form, or that do not fit together; other tags; cut off. */
		{"30810f 060a 2b06010201020201 0a03 4101 05", false, 0},
		{"3010 06810a 2b06010201020201 0a03 4101 05", false, 0},
		{"3010 060a 2b06010201020201 0a03 4101 0500", false, 0},
		{"300e 060a 2b06010201020201 0a03 4101 05", false, 0},
		{"310f 060a 2b06010201020201 0a03 4101 05", false, 0},
		{"300f 040a 2b06010201020201 0a03 4101 05", false, 0},
		{"300f 060a 2b06010201020201 0a03 4101", false, 0},
		{"300f 060a 2b06010201020201 0a03", false, 0},
		{"30", false, 0},
		{"", false, 0},
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice bytes = hex_new(cases[i].hex);
		struct ber b = ber_of(bytes);
		struct snmp_varbind varbind;
		bool taken = snmp_next_number(&b, SLICE("\x2b\x06\1\2\1\2\2\1\x0a"), SLICE("\3"),
					      &varbind.oid, &varbind.value);
		assert_int_equal(taken, cases[i].taken);
		assert_null(b.bad);
		assert_ptr_equal(b.at, bytes.data + (taken ? bytes.len : 0));
		if (taken) {
			assert_int_equal(varbind.value.i64, cases[i].value);
			assert_oid(varbind.oid, ".1.3.6.1.2.1.2.2.1.10.3");
		}
		hex_free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_under_the_name_that_is_expected),
		cmocka_unit_test(a_get_of_version_1),
		cmocka_unit_test(version_1_names_what_is_missing),
		cmocka_unit_test(three_columns_of_two_rows),
		cmocka_unit_test(what_is_not_there),
		cmocka_unit_test(values_of_every_type),
		cmocka_unit_test(values_come_back_as_they_were_written),
		cmocka_unit_test(requests_are_those_of_net_snmp),
		cmocka_unit_test(names_of_any_length),
		cmocka_unit_test(cut_and_damaged),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(an_empty_list_and_bytes_behind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
