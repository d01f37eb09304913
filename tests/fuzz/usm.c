/* Messages of version 3: whatever is in them, taking apart, verifying and decrypting stay within
 * the bytes; nothing made up has the right signature. */
#include "base/mem.h"
#include "wire/usm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct slice part, struct slice whole)
{
	ASSERT(part.len == 0 ||
	       (part.data >= whole.data && part.data + part.len <= whole.data + whole.len));
}

static void look_into(struct usm_crypto *crypto, const struct usm_message *message, uint8_t *memory)
{
	static const struct usm_key key = {.bytes = "nobody knows it, not even the fuzzer",
					   .len = 36};
	struct usm_scoped scoped;
	struct snmp_varbind varbind;
	const char *why;
	for (int priv = USM_PRIV_NONE; priv < USM_PRIV_COUNT; priv++) {
		if (usm_open(crypto, (enum usm_priv)priv, &key, message, memory, &scoped, &why))
			continue;
		while (snmp_next(&scoped.pdu.varbinds, &varbind))
			ASSERT(oid_valid(varbind.oid));
	}
	for (int auth = USM_AUTH_NONE; auth < USM_AUTH_COUNT; auth++)
		ASSERT(!usm_verify(crypto, (enum usm_auth)auth, &key, message));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct usm_crypto *crypto;
	if (!crypto)
		crypto = usm_crypto_new();
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	struct slice whole = {bytes, size};
	struct usm_message message;
	const char *why;
	if (usm_decode(whole, &message, &why) == 0) {
		uint8_t *memory = mem_alloc(message.data.len);
		check_within(message.engine_id, whole);
		check_within(message.user, whole);
		check_within(message.mac, whole);
		check_within(message.salt, whole);
		check_within(message.data, whole);
		look_into(crypto, &message, memory);
		mem_free(memory);
	}
	mem_free(bytes);
	return 0;
}
