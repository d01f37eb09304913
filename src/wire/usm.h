/* SNMP version 3 messages with the user-based security model (RFC 3412, 3414): a PDU is wrapped,
 * signed and encrypted; a message is taken apart, its signature checked, its PDU decrypted.
 *
 * What is decided by comparing with what the caller knows (is this the engine, the user, the level
 * that was asked for; is its time within the window) is decided there, in snmp/. Nothing of a
 * message may be believed before usm_verify has said yes, but what has to be looked at to know with
 * which key. */
#ifndef WIRE_USM_H
#define WIRE_USM_H

#include "base/base.h"
#include "wire/snmp.h"
#include "wire/usm_crypto.h"

enum {
	USM_ENGINE_ID_MAX_BYTES = 32,
	USM_ENGINE_ID_MIN_BYTES = 5,
	USM_USER_MAX_BYTES = 32,
	USM_CONTEXT_MAX_BYTES = 32,
	USM_SECURITY_MODEL = 3,
	USM_TIME_WINDOW_S = 150, /* RFC 3414 section 2.2.3 */
	USM_BOOTS_MAX = INT32_MAX,
	/* What wrapping adds to a PDU at most, with what DES fills up and all lengths at their
	 * longest: for memory of the caller. */
	USM_OVERHEAD_MAX_BYTES = 300,
};

enum usm_flag { USM_AUTH = 1, USM_PRIV = 2, USM_REPORTABLE = 4 };

struct usm_message {
	int32_t id;
	int32_t max_size;
	uint8_t flags; /* enum usm_flag; never USM_PRIV without USM_AUTH */
	struct slice engine_id;
	uint32_t boots, time;
	struct slice user;
	struct slice mac, salt; /* as they are in the message; empty below their levels */
	struct slice data;      /* a scoped PDU, or what was made of it by encrypting */
	struct slice whole;
};

/* The scoped PDU. */
struct usm_scoped {
	struct slice engine_id, context;
	struct snmp_pdu pdu;
};

/* ERR_VERSION: not of version 3; ERR_INVALID with a constant phrase. */
int usm_decode(struct slice bytes, struct usm_message *message, const char **why) MUST_CHECK;

/* Whether `mac` is that of this message under this key. */
bool usm_verify(struct usm_crypto *crypto, enum usm_auth auth, const struct usm_key *key,
		const struct usm_message *message) MUST_CHECK;

/* Decrypts `data` into `memory` (at least as long; the slices of *scoped lie there) if the message
 * is encrypted, and takes it apart. ERR_INVALID with a phrase. */
int usm_open(struct usm_crypto *crypto, enum usm_priv priv, const struct usm_key *key,
	     const struct usm_message *message, uint8_t *memory, struct usm_scoped *scoped,
	     const char **why) MUST_CHECK;

/* What a message is made with. */
struct usm_seal {
	int32_t id;
	int32_t max_size;
	uint8_t flags;
	struct slice engine_id;
	uint32_t boots, time;
	struct slice user, context_engine_id, context;
	enum usm_auth auth;
	enum usm_priv priv;
	const struct usm_key *auth_key, *priv_key; /* localized; as far as the flags need them */
	uint64_t salt;                             /* another one for each message of a key */
};

/* Wraps `pdu`. *message lies in `memory`, not at its front. ERR_LIMIT when that is too small. */
int usm_encode(struct usm_crypto *crypto, const struct usm_seal *seal, struct slice pdu,
	       void *memory, size_t memory_bytes, struct slice *message) MUST_CHECK;

#endif
