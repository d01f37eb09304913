/* The user-based security model. Keys: RFC 3414 A.3, the draft of Reeder for MD5 (its appendix B);
 * the others by hashlib of Python. Messages: 36 pairs recorded from net-snmp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hex.h"
#include "snmp_recorded.h"
#include "wire/usm.h"

#define ENGINE_ID     "80001f8804676e7279"
#define AUTH_PASSWORD SLICE("maplesyrup-auth")
#define PRIV_PASSWORD SLICE("maplesyrup-priv")

static struct usm_crypto *crypto;

static int set_up(void **state)
{
	(void)state;
	crypto = usm_crypto_new();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	usm_crypto_free(crypto);
	return 0;
}

static void assert_key(const struct usm_key *key, const char *hex)
{
	uint8_t memory[USM_KEY_MAX_BYTES];
	struct slice expected = hex_to(hex, memory);
	assert_int_equal(key->len, expected.len);
	assert_memory_equal(key->bytes, expected.data, key->len);
}

static void keys_of_a_password(void **state)
{
	static const struct {
		enum usm_auth auth;
		const char *key, *localized;
	} cases[] = {
		{USM_AUTH_MD5, "9faf3283884e92834ebc9847d8edd963",
		 "526f5eed9fcce26f8964c2930787d82b"}, /* RFC 3414 A.3.1 */
		{USM_AUTH_SHA1, "9fb5cc0381497b3793528939ff788d5d79145211",
		 "6695febc9288e36282235fc7151f128497b38f3f"}, /* RFC 3414 A.3.2 */
		{USM_AUTH_SHA224, "282a5867ee9aac639ad59df9572c7d3ac0fbc13a905b6df07dbbf00b",
		 "0bd8827c6e29f8065e08e09237f177e410f69b90e1782be682075674"},
		{USM_AUTH_SHA256,
		 "ab51014d1e077f6017df2b12bee5f5aa72993177e9bb569c4dff5a4ca0b4afac",
		 "8982e0e549e866db361a6b625d84cccc11162d453ee8ce3a6445c2d6776f0f8b"},
		{USM_AUTH_SHA384,
		 "e06eccdf2c68a06ed034723c9c26e0db3b669e1e2efed49150b55377a2e98f38"
		 "3c86fb836857444654b287c93f51ff64",
		 "3b298f16164a11184279d5432bf169e2d2a48307de02b3d3f7e2b4f36eb6f045"
		 "5a53689a3937eea07319a633d2ccba78"},
		{USM_AUTH_SHA512,
		 "7e4396de5aadc77be853819b98c9406265b3a9c37cc3176569847a4e4f6fba63"
		 "dd3a73d04924d31a63f95a601f9385af6be4ed1b37f87d040f7c6ed6f8d38a91",
		 "22a5a36cedfcc085807a128d7bc6c2382167ad6c0dbc5fdff856740f3d84c099"
		 "ad1ea87a8db096714d9788bd544047c9021e4229ce27e4c0a69250adfcffbb0b"},
	};
	uint8_t memory[12];
	struct slice engine_id = hex_to("000000000000000000000002", memory);
	struct usm_key key, localized;
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		usm_password_key(crypto, cases[i].auth, SLICE("maplesyrup"), &key);
		assert_key(&key, cases[i].key);
		usm_localize(crypto, cases[i].auth, &key, engine_id, &localized);
		assert_key(&localized, cases[i].localized);
		assert_int_equal(usm_digest_bytes(cases[i].auth), localized.len);
	}
}

static void keys_made_longer(void **state)
{
	static const struct {
		enum usm_auth auth;
		enum usm_priv priv;
		const char *localized;
	} cases[] = {
		{USM_AUTH_MD5, USM_PRIV_DES, "526f5eed9fcce26f8964c2930787d82b"},
		{USM_AUTH_MD5, USM_PRIV_AES128, "526f5eed9fcce26f8964c2930787d82b"},
		{USM_AUTH_SHA1, USM_PRIV_AES128, "6695febc9288e36282235fc7151f1284"},
		{USM_AUTH_MD5, USM_PRIV_AES192, "526f5eed9fcce26f8964c2930787d82bfa24a92467426c2f"},
		{USM_AUTH_MD5, USM_PRIV_AES256,
		 "526f5eed9fcce26f8964c2930787d82bfa24a92467426c2f4b09192be10dfaec"},
		{USM_AUTH_MD5, USM_PRIV_AES256_C,
		 "526f5eed9fcce26f8964c2930787d82b79eff44a90650ee0a3a40abfac5acc12"},
		{USM_AUTH_SHA1, USM_PRIV_AES192_C,
		 "6695febc9288e36282235fc7151f128497b38f3f9b8b6d78"},
		{USM_AUTH_SHA1, USM_PRIV_AES256,
		 "6695febc9288e36282235fc7151f128497b38f3f505e07eb9af25568fa1f5dbe"},
		{USM_AUTH_SHA224, USM_PRIV_AES256_C,
		 "0bd8827c6e29f8065e08e09237f177e410f69b90e1782be68207567422c34be4"},
		/* Long enough as it is: both ways are one. */
		{USM_AUTH_SHA256, USM_PRIV_AES256_C,
		 "8982e0e549e866db361a6b625d84cccc11162d453ee8ce3a6445c2d6776f0f8b"},
	};
	uint8_t memory[12];
	struct slice engine_id = hex_to("000000000000000000000002", memory);
	struct usm_key key, localized;
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		usm_password_key(crypto, cases[i].auth, SLICE("maplesyrup"), &key);
		usm_localize_priv(crypto, cases[i].auth, cases[i].priv, &key, engine_id,
				  &localized);
		assert_key(&localized, cases[i].localized);
	}
}

/* A password longer than a block, and of lengths that do not divide 2^20, hashed the plain way. */
static void passwords_of_any_length(void **state)
{
	static char expanded[1 << 20];
	static char password[USM_PASSWORD_MAX_BYTES];
	static const size_t lengths[] = {1, 7, 8, 63, 64, 65, 1000, USM_PASSWORD_MAX_BYTES};
	(void)state;
	for (size_t i = 0; i < sizeof(password); i++)
		password[i] = (char)(i * 7 + 1);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		struct usm_key key, plain, empty = {.len = 0};
		for (size_t at = 0; at < sizeof(expanded); at++)
			expanded[at] = password[at % lengths[i]];
		usm_password_key(crypto, USM_AUTH_MD5, (struct slice){password, lengths[i]}, &key);
		/* The digest of nothing, the text, nothing. */
		usm_localize(crypto, USM_AUTH_MD5, &empty,
			     (struct slice){expanded, sizeof(expanded)}, &plain);
		assert_int_equal(key.len, plain.len);
		assert_memory_equal(key.bytes, plain.bytes, key.len);
	}
}

static void names_as_net_snmp_has_them(void **state)
{
	enum usm_auth auth;
	enum usm_priv priv;
	(void)state;
	assert_true(usm_auth_parse(SLICE("SHA"), &auth));
	assert_int_equal(auth, USM_AUTH_SHA1);
	assert_true(usm_auth_parse(SLICE("sha512"), &auth));
	assert_int_equal(auth, USM_AUTH_SHA512);
	assert_true(usm_priv_parse(SLICE("AES"), &priv));
	assert_int_equal(priv, USM_PRIV_AES128);
	assert_true(usm_priv_parse(SLICE("aes256c"), &priv));
	assert_int_equal(priv, USM_PRIV_AES256_C);
	for (int i = USM_AUTH_NONE + 1; i < USM_AUTH_COUNT; i++) {
		assert_true(usm_auth_parse(slice_of(usm_auth_name((enum usm_auth)i)), &auth));
		assert_int_equal(auth, i);
	}
	for (int i = USM_PRIV_NONE + 1; i < USM_PRIV_COUNT; i++) {
		assert_true(usm_priv_parse(slice_of(usm_priv_name((enum usm_priv)i)), &priv));
		assert_int_equal(priv, i);
	}
	static const char *const none[] = {"", "SH", "SHAA", "SHA-25", "SHA-2566", "AES", "-"};
	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		assert_false(usm_auth_parse(slice_of(none[i]), &auth));
	assert_false(usm_priv_parse(SLICE("AES-512"), &priv));
	assert_false(usm_priv_parse(SLICE("3DES"), &priv));
}

/* The example of FIPS 81, "Now is t" under 0123456789abcdef, is one block of CBC with an IV of
 * zeros; SP 800-38A F.3.13, CFB128 with AES-128. */
static void ciphers_by_published_examples(void **state)
{
	uint8_t expected[64], out[64], in_memory[64];
	struct usm_key key = {.len = 16};
	struct usm_cipher cipher = {USM_PRIV_DES, &key, 0, 0, {0}};
	(void)state;
	hex_to("0123456789abcdef 0000000000000000", key.bytes);
	usm_encrypt(crypto, &cipher, (const uint8_t *)"Now is t", 8, out);
	hex_to("3fa40e8a984d4815", expected);
	assert_memory_equal(out, expected, 8);
	usm_decrypt(crypto, &cipher, out, 8, out); /* in place */
	assert_memory_equal(out, "Now is t", 8);

	hex_to("2b7e151628aed2a6abf7158809cf4f3c", key.bytes);
	cipher = (struct usm_cipher){USM_PRIV_AES128, &key, 0x00010203, 0x04050607, {0}};
	hex_to("08090a0b0c0d0e0f", cipher.salt);
	struct slice in = hex_to("6bc1bee22e409f96e93d7e117393172a"
				 "ae2d8a571e03ac9c9eb76fac45af8e51",
				 in_memory);
	usm_encrypt(crypto, &cipher, (const uint8_t *)in.data, in.len, out);
	hex_to("3b3fd92eb72dad20333449f8e83cfb4ac8a64537a0b3a93fcde3cdad9f1ce58b", expected);
	assert_memory_equal(out, expected, 32);
}

/* RFC 2202, test case 2 of both; RFC 4231, test case 2. */
static void digests_by_published_examples(void **state)
{
	static const struct {
		enum usm_auth auth;
		const char *mac;
	} cases[] = {
		{USM_AUTH_MD5, "750c783e6ab0b503eaa86e31"},
		{USM_AUTH_SHA1, "effcdf6ae5eb2fa2d27416d5"},
		{USM_AUTH_SHA224, "a30e01098bc6dbbf45690f3a7e9e6d0f"},
		{USM_AUTH_SHA256, "5bdcc146bf60754e6a042426089575c75a003f089d273983"},
		{USM_AUTH_SHA384,
		 "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e"},
		{USM_AUTH_SHA512, "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
				  "9758bf75c05a994a6d034f65f8f0e6fd"},
	};
	const struct slice pieces[] = {SLICE("what do ya want "), SLICE(""), SLICE("for nothing?")};
	struct usm_key key = {.bytes = "Jefe", .len = 4};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t mac[USM_MAC_MAX_BYTES], expected[USM_MAC_MAX_BYTES];
		struct slice wanted = hex_to(cases[i].mac, expected);
		usm_mac(crypto, cases[i].auth, &key, pieces, ARRAY_LEN(pieces), mac);
		assert_int_equal(usm_mac_bytes(cases[i].auth), wanted.len);
		assert_memory_equal(mac, expected, wanted.len);
	}
}

/* ---- Messages -------------------------------------------------------------------------------- */

struct keys {
	struct usm_key auth, priv;
};

static void make_keys(enum usm_auth auth, enum usm_priv priv, struct keys *keys)
{
	uint8_t memory[16];
	struct slice engine_id = hex_to(ENGINE_ID, memory);
	struct usm_key key;
	usm_password_key(crypto, auth, AUTH_PASSWORD, &key);
	usm_localize(crypto, auth, &key, engine_id, &keys->auth);
	usm_password_key(crypto, auth, PRIV_PASSWORD, &key);
	usm_localize_priv(crypto, auth, priv, &key, engine_id, &keys->priv);
}

static void every_combination_of_net_snmp(void **state)
{
	(void)state;
	assert_int_equal(ARRAY_LEN(v3_recorded), 36);
	for (size_t i = 0; i < ARRAY_LEN(v3_recorded); i++) {
		enum usm_auth auth = v3_recorded[i].auth;
		enum usm_priv priv = v3_recorded[i].priv;
		struct slice bytes = hex_new(v3_recorded[i].reply);
		uint8_t *memory = mem_alloc(bytes.len);
		struct usm_message message;
		struct usm_scoped scoped;
		struct snmp_varbind varbind;
		struct keys keys;
		const char *why;
		make_keys(auth, priv, &keys);
		assert_int_equal(usm_decode(bytes, &message, &why), 0);
		assert_int_equal(message.flags, USM_AUTH | USM_PRIV);
		assert_int_equal(message.boots, 1);
		assert_true(usm_verify(crypto, auth, &keys.auth, &message));
		assert_int_equal(
			usm_open(crypto, priv, &keys.priv, &message, memory, &scoped, &why), 0);
		assert_true(slice_equal(scoped.engine_id, message.engine_id));
		assert_int_equal(scoped.pdu.type, SNMP_RESPONSE);
		assert_true(snmp_next(&scoped.pdu.varbinds, &varbind));
		assert_true(slice_equal(varbind.value.bytes, SLICE("granary-test")));
		assert_false(snmp_next(&scoped.pdu.varbinds, &varbind));
		assert_null(scoped.pdu.varbinds.bad);
		/* Every bit of it is signed. */
		uint8_t *bits = (uint8_t *)(uintptr_t)bytes.data;
		for (size_t at = 0; at < bytes.len; at++) {
			bits[at] ^= 0x10;
			if (usm_decode(bytes, &message, &why) == 0)
				assert_false(usm_verify(crypto, auth, &keys.auth, &message));
			bits[at] ^= 0x10;
		}
		mem_free(memory);
		hex_free(bytes);
	}
}

/* With the same id, time and salt the same bytes come out as net-snmp has sent. */
static void requests_are_those_of_net_snmp(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(v3_recorded); i++) {
		struct slice bytes = hex_new(v3_recorded[i].request), made;
		uint8_t opened[512], pdu_memory[256], memory[1024];
		struct usm_message theirs;
		struct usm_scoped scoped;
		struct keys keys;
		const char *why;
		make_keys(v3_recorded[i].auth, v3_recorded[i].priv, &keys);
		assert_int_equal(usm_decode(bytes, &theirs, &why), 0);
		assert_true(usm_verify(crypto, v3_recorded[i].auth, &keys.auth, &theirs));
		assert_int_equal(usm_open(crypto, v3_recorded[i].priv, &keys.priv, &theirs, opened,
					  &scoped, &why),
				 0);
		struct ber_writer w = ber_writer_of(pdu_memory, sizeof(pdu_memory));
		const uint8_t *end = w.at;
		snmp_put_name(&w, SLICE("\x2b\x06\x01\x02\x01\x01\x05\x00"));
		snmp_put_pdu(&w, &scoped.pdu, end);
		uint64_t salt = 0;
		for (size_t j = 0; j < theirs.salt.len; j++)
			salt = salt << 8 | (uint8_t)theirs.salt.data[j];
		const struct usm_seal seal = {
			.id = theirs.id,
			.max_size = theirs.max_size,
			.flags = theirs.flags,
			.engine_id = theirs.engine_id,
			.boots = theirs.boots,
			.time = theirs.time,
			.user = theirs.user,
			.context_engine_id = scoped.engine_id,
			.context = scoped.context,
			.auth = v3_recorded[i].auth,
			.priv = v3_recorded[i].priv,
			.auth_key = &keys.auth,
			.priv_key = &keys.priv,
			.salt = salt,
		};
		struct slice pdu = {(char *)w.at, (size_t)(end - w.at)};
		assert_int_equal(usm_encode(crypto, &seal, pdu, memory, sizeof(memory), &made), 0);
		/* What fills up the last block of DES is anything. */
		if (v3_recorded[i].priv != USM_PRIV_DES)
			assert_true(slice_equal(made, bytes));
		assert_int_equal(made.len, bytes.len);
		assert_int_equal(usm_decode(made, &theirs, &why), 0);
		assert_true(usm_verify(crypto, v3_recorded[i].auth, &keys.auth, &theirs));
		hex_free(bytes);
	}
}

static void wrong_keys_and_none(void **state)
{
	struct slice bytes = hex_new(v3_recorded[7].reply); /* SHA, AES */
	uint8_t memory[512];
	struct usm_message message;
	struct usm_scoped scoped;
	struct usm_key wrong;
	struct keys keys;
	const char *why;
	(void)state;
	assert_int_equal(v3_recorded[7].auth, USM_AUTH_SHA1);
	make_keys(USM_AUTH_SHA1, USM_PRIV_AES128, &keys);
	assert_int_equal(usm_decode(bytes, &message, &why), 0);
	usm_password_key(crypto, USM_AUTH_SHA1, SLICE("not-the-password"), &wrong);
	assert_false(usm_verify(crypto, USM_AUTH_SHA1, &wrong, &message));
	assert_false(usm_verify(crypto, USM_AUTH_MD5, &keys.auth, &message)); /* also 12 bytes */
	assert_false(usm_verify(crypto, USM_AUTH_SHA256, &keys.auth, &message));
	assert_false(usm_verify(crypto, USM_AUTH_NONE, &keys.auth, &message));
	/* What is decrypted with a wrong key is no scoped PDU. */
	assert_int_equal(usm_open(crypto, USM_PRIV_AES128, &wrong, &message, memory, &scoped, &why),
			 ERR_INVALID);
	assert_int_equal(usm_open(crypto, USM_PRIV_NONE, &wrong, &message, memory, &scoped, &why),
			 ERR_INVALID);
	assert_int_equal(
		usm_open(crypto, USM_PRIV_DES, &keys.priv, &message, memory, &scoped, &why),
		ERR_INVALID);
	/* Without its flag the signature is none, whatever stands in its place. */
	message.flags = 0;
	assert_false(usm_verify(crypto, USM_AUTH_SHA1, &keys.auth, &message));
	hex_free(bytes);
}

static void reports_of_snmpd(void **state)
{
	static const struct {
		const char *hex, *oid;
		uint8_t flags;
	} cases[] = {
		/* usmStatsUnknownEngineIDs, WrongDigests, NotInTimeWindows */
		{v3_discovery_reply, "\x2b\x06\x01\x06\x03\x0f\x01\x01\x04\x00", 0},
		{v3_wrong_password_reply, "\x2b\x06\x01\x06\x03\x0f\x01\x01\x05\x00", 0},
		{v3_wrong_time_reply, "\x2b\x06\x01\x06\x03\x0f\x01\x01\x02\x00", USM_AUTH},
	};
	uint8_t engine_memory[16];
	struct slice engine_id = hex_to(ENGINE_ID, engine_memory);
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct slice bytes = hex_new(cases[i].hex);
		struct usm_message message;
		struct usm_scoped scoped;
		struct snmp_varbind varbind;
		const char *why;
		assert_int_equal(usm_decode(bytes, &message, &why), 0);
		assert_int_equal(message.flags, cases[i].flags);
		assert_true(slice_equal(message.engine_id, engine_id));
		assert_int_equal(
			usm_open(crypto, USM_PRIV_NONE, NULL, &message, NULL, &scoped, &why), 0);
		assert_int_equal(scoped.pdu.type, SNMP_REPORT);
		assert_true(snmp_next(&scoped.pdu.varbinds, &varbind));
		assert_true(slice_equal(varbind.oid, (struct slice){cases[i].oid, 10}));
		assert_int_equal(varbind.value.type, SNMP_COUNTER32);
		hex_free(bytes);
	}
}

static void what_is_refused(void **state)
{
	/* version, id, max size, flags, model */
	static const struct {
		const char *header;
		int err;
	} cases[] = {
		{"020103 300d 020101 020205dc 040107 020103", 0},
		{"020101 300d 020101 020205dc 040107 020103", ERR_VERSION},
		{"020103 300d 020101 020205dc 040102 020103", ERR_INVALID}, /* only encrypted */
		{"020103 300d 020101 020205dc 040103 020102", ERR_INVALID}, /* model 2 */
		{"020103 300c 020101 020205dc 0400 020103", ERR_INVALID},
		{"020103 300e 020101 020205dc 04020000 020103", ERR_INVALID},
		{"020103 300d 0201ff 020205dc 040107 020103", ERR_INVALID}, /* id -1 */
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		uint8_t parts[128], memory[256];
		struct slice header = hex_to(cases[i].header, parts);
		struct ber_writer w = ber_writer_of(memory, sizeof(memory));
		const uint8_t *end = w.at;
		struct usm_message message;
		const char *why;
		ber_put_octets(&w, BER_OCTETS, SLICE("encrypted"));
		uint8_t security[64];
		ber_put_octets(&w, BER_OCTETS,
			       hex_to("300e 0400 020100 020100 0400 0400 0400", security));
		ber_put_bytes(&w, header.data, header.len);
		ber_put_header(&w, BER_SEQUENCE, end);
		assert_int_equal(usm_decode((struct slice){(char *)w.at, (size_t)(end - w.at)},
					    &message, &why),
				 cases[i].err);
	}
}

static void memory_that_is_too_small(void **state)
{
	struct usm_key key = {.len = 16};
	const struct usm_seal seal = {.id = 1,
				      .max_size = 1500,
				      .flags = USM_AUTH | USM_PRIV,
				      .engine_id = SLICE("12345"),
				      .user = SLICE("user"),
				      .auth = USM_AUTH_SHA512,
				      .priv = USM_PRIV_DES,
				      .auth_key = &key,
				      .priv_key = &key};
	struct slice made, pdu = SLICE("\xa0\x0b\x02\x01\x01\x02\x01\x00\x02\x01\x00\x30\x00");
	size_t least = 0;
	(void)state;
	for (size_t size = 0; size < 400 && !least; size++) {
		uint8_t *memory = mem_alloc(size);
		if (usm_encode(crypto, &seal, pdu, memory, size, &made) == 0)
			least = size;
		mem_free(memory);
	}
	assert_in_range(least, pdu.len + 100, pdu.len + USM_OVERHEAD_MAX_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_of_a_password),
		cmocka_unit_test(keys_made_longer),
		cmocka_unit_test(passwords_of_any_length),
		cmocka_unit_test(names_as_net_snmp_has_them),
		cmocka_unit_test(ciphers_by_published_examples),
		cmocka_unit_test(digests_by_published_examples),
		cmocka_unit_test(every_combination_of_net_snmp),
		cmocka_unit_test(requests_are_those_of_net_snmp),
		cmocka_unit_test(wrong_keys_and_none),
		cmocka_unit_test(reports_of_snmpd),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(memory_that_is_too_small),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
