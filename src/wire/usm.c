/* The layout, each line one item; `{` encloses what is inside one (RFC 3412 section 6, RFC 3414
 * section 2.4):
 *
 *     30 SEQUENCE {
 *       02 INTEGER                  version: 3
 *       30 SEQUENCE {
 *         02 INTEGER                id of the message
 *         02 INTEGER                the longest answer that is taken
 *         04 OCTET STRING           one byte of flags: 1 authentic, 2 encrypted, 4 report wanted
 *         02 INTEGER                security model: 3
 *       }
 *       04 OCTET STRING {
 *         30 SEQUENCE {
 *           04 OCTET STRING         id of the authoritative engine
 *           02 INTEGER              its boots
 *           02 INTEGER              its time, in seconds since it booted
 *           04 OCTET STRING         user
 *           04 OCTET STRING         the MAC of the whole message, made with zeros in this place
 *           04 OCTET STRING         salt
 *         }
 *       }
 *       30 SEQUENCE {               the scoped PDU; or 04 OCTET STRING with it encrypted
 *         04 OCTET STRING           id of the context's engine
 *         04 OCTET STRING           context
 *         a0..a8 { ... }            the PDU (snmp.c)
 *       }
 *     } */
#include "wire/usm.h"

#include "base/cursor.h"

/* ---- Reading --------------------------------------------------------------------------------- */

static struct slice usm_text_of(struct ber *b, size_t max_bytes)
{
	struct slice text = ber_expect(b, BER_OCTETS);
	if (text.len > max_bytes)
		ber_fail(b, "a name is too long");
	return text;
}

static void decode_header(struct ber *b, struct usm_message *message)
{
	struct ber header = ber_enter(b, BER_SEQUENCE);
	message->id = (int32_t)ber_integer(&header, 0, INT32_MAX);
	message->max_size = (int32_t)ber_integer(&header, 0, INT32_MAX);
	struct slice flags = ber_expect(&header, BER_OCTETS);
	if (flags.len != 1)
		ber_fail(&header, "the flags are not one byte");
	message->flags = flags.len ? (uint8_t)flags.data[0] & 7 : 0;
	/* RFC 3412 section 7.2 (5) */
	if ((message->flags & USM_PRIV) && !(message->flags & USM_AUTH))
		ber_fail(&header, "encrypted, but not authentic");
	if (ber_integer(&header, 0, INT32_MAX) != USM_SECURITY_MODEL)
		ber_fail(&header, "another security model");
	if (header.bad)
		ber_fail(b, header.bad);
}

static void decode_security(struct ber *b, struct usm_message *message)
{
	struct ber text = ber_enter(b, BER_OCTETS), security = ber_enter(&text, BER_SEQUENCE);
	message->engine_id = usm_text_of(&security, USM_ENGINE_ID_MAX_BYTES);
	message->boots = (uint32_t)ber_integer(&security, 0, INT32_MAX);
	message->time = (uint32_t)ber_integer(&security, 0, INT32_MAX);
	message->user = usm_text_of(&security, USM_USER_MAX_BYTES);
	message->mac = usm_text_of(&security, USM_MAC_MAX_BYTES);
	message->salt = usm_text_of(&security, USM_SALT_BYTES);
	if (security.bad)
		ber_fail(b, security.bad);
}

/* All of it, with its header: the scoped PDU is a sequence. */
static void decode_data(struct ber *b, struct usm_message *message)
{
	const uint8_t *begin = b->at;
	if (message->flags & USM_PRIV) {
		message->data = ber_expect(b, BER_OCTETS);
		return;
	}
	struct ber_item item = ber_item(b);
	if (item.tag != BER_SEQUENCE)
		ber_fail(b, "a scoped PDU is missing");
	message->data = (struct slice){(const char *)begin, (size_t)(b->at - begin)};
}

int usm_decode(struct slice bytes, struct usm_message *message, const char **why)
{
	struct ber whole = ber_of(bytes), b = ber_enter(&whole, BER_SEQUENCE);
	int64_t version = ber_integer(&b, 0, INT32_MAX);
	*message = (struct usm_message){.whole = bytes};
	if (!b.bad && version != SNMP_V3) {
		*why = "the version is not 3";
		return ERR_VERSION;
	}
	decode_header(&b, message);
	decode_security(&b, message);
	decode_data(&b, message);
	*why = b.bad;
	return b.bad ? ERR_INVALID : 0;
}

bool usm_verify(struct usm_crypto *crypto, enum usm_auth auth, const struct usm_key *key,
		const struct usm_message *message)
{
	static const char zeros[USM_MAC_MAX_BYTES];
	uint8_t mac[USM_MAC_MAX_BYTES];
	size_t len = usm_mac_bytes(auth);
	if (!(message->flags & USM_AUTH) || len == 0 || message->mac.len != len)
		return false;
	const char *end = message->whole.data + message->whole.len;
	const char *behind = message->mac.data + len;
	const struct slice pieces[] = {
		{message->whole.data, (size_t)(message->mac.data - message->whole.data)},
		{zeros, len},
		{behind, (size_t)(end - behind)},
	};
	usm_mac(crypto, auth, key, pieces, ARRAY_LEN(pieces), mac);
	return usm_same(mac, (const uint8_t *)message->mac.data, len);
}

/* The phrase if it cannot be. */
static const char *decrypt(struct usm_crypto *crypto, enum usm_priv priv, const struct usm_key *key,
			   const struct usm_message *message, uint8_t *memory)
{
	if (priv == USM_PRIV_NONE)
		return "encrypted, and there is no key";
	if (message->salt.len != USM_SALT_BYTES)
		return "the salt does not have 8 bytes";
	if (priv == USM_PRIV_DES && message->data.len % USM_DES_BLOCK_BYTES)
		return "what is encrypted is not a multiple of 8 bytes";
	struct usm_cipher cipher = {priv, key, message->boots, message->time, {0}};
	memcpy(cipher.salt, message->salt.data, USM_SALT_BYTES);
	usm_decrypt(crypto, &cipher, (const uint8_t *)message->data.data, message->data.len,
		    memory);
	return NULL;
}

int usm_open(struct usm_crypto *crypto, enum usm_priv priv, const struct usm_key *key,
	     const struct usm_message *message, uint8_t *memory, struct usm_scoped *scoped,
	     const char **why)
{
	struct slice data = message->data;
	if (message->flags & USM_PRIV) {
		*why = decrypt(crypto, priv, key, message, memory);
		if (*why)
			return ERR_INVALID;
		data.data = (const char *)memory;
	}
	/* Behind the sequence there may be what DES has filled up. */
	struct ber whole = ber_of(data), b = ber_enter(&whole, BER_SEQUENCE);
	scoped->engine_id = usm_text_of(&b, USM_ENGINE_ID_MAX_BYTES);
	scoped->context = usm_text_of(&b, SNMP_COMMUNITY_MAX_BYTES);
	snmp_decode_pdu(&b, &scoped->pdu);
	*why = b.bad;
	return b.bad ? ERR_INVALID : 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* The scoped PDU, encrypted if it is to be. The message ends at the result. */
static const uint8_t *put_data(struct usm_crypto *crypto, const struct usm_seal *seal,
			       struct slice pdu, const uint8_t salt[USM_SALT_BYTES],
			       struct ber_writer *w)
{
	/* What DES fills up comes after, so there is room for it. */
	static const uint8_t fill[USM_DES_BLOCK_BYTES];
	ber_put_bytes(w, fill, sizeof(fill));
	const uint8_t *end = w->at;
	ber_put_bytes(w, pdu.data, pdu.len);
	ber_put_octets(w, BER_OCTETS, seal->context);
	ber_put_octets(w, BER_OCTETS, seal->context_engine_id);
	ber_put_header(w, BER_SEQUENCE, end);
	if (!(seal->flags & USM_PRIV) || w->full)
		return end;
	if (seal->priv == USM_PRIV_DES)
		end += -(size_t)(end - w->at) % USM_DES_BLOCK_BYTES;
	struct usm_cipher cipher = {seal->priv, seal->priv_key, seal->boots, seal->time, {0}};
	memcpy(cipher.salt, salt, USM_SALT_BYTES);
	usm_encrypt(crypto, &cipher, w->at, (size_t)(end - w->at), w->at);
	ber_put_header(w, BER_OCTETS, end);
	return end;
}

/* Where the MAC goes. */
static uint8_t *put_security(const struct usm_seal *seal, const uint8_t salt[USM_SALT_BYTES],
			     struct ber_writer *w)
{
	static const char zeros[USM_MAC_MAX_BYTES];
	const uint8_t *end = w->at;
	ber_put_octets(
		w, BER_OCTETS,
		(struct slice){(const char *)salt, seal->flags & USM_PRIV ? USM_SALT_BYTES : 0});
	size_t mac_len = seal->flags & USM_AUTH ? usm_mac_bytes(seal->auth) : 0;
	ber_put_bytes(w, zeros, mac_len);
	uint8_t *mac = w->at;
	ber_put_header(w, BER_OCTETS, mac + mac_len);
	ber_put_octets(w, BER_OCTETS, seal->user);
	ber_put_integer(w, BER_INTEGER, seal->time);
	ber_put_integer(w, BER_INTEGER, seal->boots);
	ber_put_octets(w, BER_OCTETS, seal->engine_id);
	ber_put_header(w, BER_SEQUENCE, end);
	ber_put_header(w, BER_OCTETS, end);
	return mac;
}

static void usm_put_header(const struct usm_seal *seal, struct ber_writer *w)
{
	const uint8_t *end = w->at;
	char flags = (char)seal->flags;
	ber_put_integer(w, BER_INTEGER, USM_SECURITY_MODEL);
	ber_put_octets(w, BER_OCTETS, (struct slice){&flags, 1});
	ber_put_integer(w, BER_INTEGER, seal->max_size);
	ber_put_integer(w, BER_INTEGER, seal->id);
	ber_put_header(w, BER_SEQUENCE, end);
	ber_put_integer(w, BER_INTEGER, SNMP_V3);
}

/* RFC 3414 section 8.1.1.1: boots and a number that goes on; RFC 3826 section 3.1.2.1: 64 bits that
 * go on. */
static void make_salt(const struct usm_seal *seal, uint8_t salt[USM_SALT_BYTES])
{
	be64_put(salt, seal->salt);
	if (seal->priv == USM_PRIV_DES)
		be32_put(salt, seal->boots);
}

int usm_encode(struct usm_crypto *crypto, const struct usm_seal *seal, struct slice pdu,
	       void *memory, size_t memory_bytes, struct slice *message)
{
	struct ber_writer w = ber_writer_of(memory, memory_bytes);
	uint8_t salt[USM_SALT_BYTES], mac[USM_MAC_MAX_BYTES];
	make_salt(seal, salt);
	const uint8_t *end = put_data(crypto, seal, pdu, salt, &w);
	uint8_t *mac_at = put_security(seal, salt, &w);
	usm_put_header(seal, &w);
	ber_put_header(&w, BER_SEQUENCE, end);
	if (w.full)
		return ERR_LIMIT;
	*message = (struct slice){(const char *)w.at, (size_t)(end - w.at)};
	if (seal->flags & USM_AUTH) {
		usm_mac(crypto, seal->auth, seal->auth_key, message, 1, mac);
		memcpy(mac_at, mac, usm_mac_bytes(seal->auth));
	}
	return 0;
}
