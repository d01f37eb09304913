/* Version 3: who the device's engine is, what time it has, and which of its messages count.
 *
 * Discovery (RFC 3414 section 4): a request without engine id is answered by a report that bears
 * it, with boots and time. These are not signed, so they are good for sending only; the first
 * signed message tells them for sure. Where they are wrong the device says so in a signed report,
 * and the request is made again with what that says.
 *
 * A message is believed when it answers a request in flight by its id, comes from the device's
 * address, names its engine and our user, has the level that was asked for, the right digest, and a
 * time within the window. A report may have less: without it nobody could learn that the password
 * is wrong. It can end an operation, never give it a value. */
#include <errno.h>

#include "snmp/private.h"

/* 1.3.6.1.6.3.15.1.1: usmStats; then which, and 0. */
static const char usm_stats[] = "\x2b\x06\x01\x06\x03\x0f\x01\x01";

enum report {
	REPORT_OTHER = 0,
	REPORT_LEVEL = 1,
	REPORT_TIME = 2,
	REPORT_USER = 3,
	REPORT_ENGINE = 4,
	REPORT_DIGEST = 5,
	REPORT_DECRYPTION = 6,
	REPORT_COUNT,
};

static const char *const refusals[REPORT_COUNT] = {
	[REPORT_OTHER] = "the device refuses the request: its context is not known there",
	[REPORT_LEVEL] = "the device refuses this security level for the user",
	[REPORT_TIME] = "the device does not agree about its own time",
	[REPORT_USER] = "the device does not know the user",
	[REPORT_ENGINE] = "the device has another engine id",
	[REPORT_DIGEST] = "wrong authentication password or protocol",
	[REPORT_DECRYPTION] = "wrong privacy password or protocol",
};

/* ---- Engine ---------------------------------------------------------------------------------- */

static void set_engine(struct snmp_device *device, struct slice engine_id)
{
	struct session *session = &device->session;
	const struct snmp_login *login = device->login;
	struct usm_crypto *crypto = device->client->crypto;
	bool same = slice_equal(session->engine_id, engine_id);
	session->known = true;
	session->authentic = false;
	session->latest = 0;
	if (same)
		return; /* and the keys, too */
	memcpy(session->engine_memory, engine_id.data, engine_id.len);
	session->engine_id = (struct slice){session->engine_memory, engine_id.len};
	if (login->auth)
		usm_localize(crypto, login->auth, &login->auth_key, engine_id, &session->auth_key);
	if (login->priv)
		usm_localize_priv(crypto, login->auth, login->priv, &login->priv_key, engine_id,
				  &session->priv_key);
}

void session_init(struct snmp_device *device)
{
	if (device->login->engine_id.len)
		set_engine(device, device->login->engine_id);
}

static void set_time(struct snmp_device *device, const struct usm_message *message, bool authentic)
{
	struct session *session = &device->session;
	session->boots = message->boots;
	session->time = session->latest = message->time;
	session->at_ms = device->client->now_ms;
	session->authentic = authentic;
}

static uint32_t time_now(const struct snmp_device *device)
{
	const struct session *session = &device->session;
	return session->time + (uint32_t)((device->client->now_ms - session->at_ms) / 1000);
}

/* RFC 3414 section 3.2 (7b). */
static bool in_window(struct snmp_device *device, const struct usm_message *message)
{
	struct session *session = &device->session;
	if (!session->authentic || message->boots > session->boots ||
	    (message->boots == session->boots && message->time > session->latest))
		set_time(device, message, true);
	return session->boots != USM_BOOTS_MAX && message->boots == session->boots &&
	       (uint64_t)message->time + USM_TIME_WINDOW_S >= time_now(device);
}

/* ---- Discovery ------------------------------------------------------------------------------- */

/* Everything that waited for it ends with it. */
static void on_discovered(void *owner, const struct snmp_result *result)
{
	struct snmp_device *device = owner;
	struct link ending;
	device->session.discovery = NULL;
	link_init(&ending);
	while (result->err && !link_alone(&device->waiting))
		link_append(&ending, device->waiting.next);
	device_check(device);
	/* From here on the device may be freed by any `done`; then they leave this list. */
	while (!link_alone(&ending))
		op_end(CONTAINER_OF(ending.next, struct snmp_operation, waiting), result->err,
		       result->sentence);
}

bool session_ready(struct snmp_device *device)
{
	struct session *session = &device->session;
	if (device->login->version != SNMP_V3 || session->known)
		return true;
	if (session->discovery)
		return false;
	struct snmp_operation *op = op_new(device, OP_DISCOVER, NULL, 0);
	op->events = (struct snmp_events){.done = on_discovered};
	op->owner = device;
	session->discovery = op;
	stat_add(STAT_snmp_discoveries, 1);
	op_start(op);
	return false;
}

static void session_accept_discovery(struct snmp_operation *op, const struct usm_message *message)
{
	struct snmp_device *device = op->device;
	if (message->engine_id.len < USM_ENGINE_ID_MIN_BYTES) {
		stat_add(STAT_snmp_ignored_engine, 1);
		return;
	}
	stat_add(STAT_snmp_replies, 1);
	set_engine(device, message->engine_id);
	set_time(device, message, false);
	op_end(op, 0, "");
}

/* ---- Sending --------------------------------------------------------------------------------- */

int session_seal(struct snmp_operation *op, uint8_t memory[MESSAGE_MAX_BYTES],
		 struct slice *message)
{
	struct snmp_device *device = op->device;
	const struct session *session = &device->session;
	const struct snmp_login *login = device->login;
	struct usm_seal seal = {
		.id = (int32_t)op_id(op, op->attempt),
		.max_size = REPLY_MAX_BYTES,
		.flags = USM_REPORTABLE,
	};
	if (op->kind != OP_DISCOVER) {
		seal.flags |= login_flags(login);
		seal.engine_id = seal.context_engine_id = session->engine_id;
		seal.user = login->user;
		seal.context = login->context;
		seal.auth = login->auth;
		seal.priv = login->priv;
		seal.auth_key = &session->auth_key;
		seal.priv_key = &session->priv_key;
		seal.salt = device->client->salt++;
	}
	if (seal.flags & USM_AUTH) {
		seal.boots = session->boots;
		seal.time = session->boots || session->time ? time_now(device) : 0;
	}
	return usm_encode(device->client->crypto, &seal, op->message, memory, MESSAGE_MAX_BYTES,
			  message);
}

/* ---- Reports --------------------------------------------------------------------------------- */

static enum report session_report_of(struct snmp_pdu *pdu)
{
	struct snmp_varbind varbind;
	size_t len = sizeof(usm_stats) - 1;
	if (!snmp_next(&pdu->varbinds, &varbind) || varbind.oid.len != len + 2 ||
	    memcmp(varbind.oid.data, usm_stats, len) != 0)
		return REPORT_OTHER;
	uint8_t which = (uint8_t)varbind.oid.data[len];
	return which < REPORT_COUNT ? (enum report)which : REPORT_OTHER;
}

static void again(struct snmp_operation *op)
{
	op->resyncs++;
	stat_add(STAT_snmp_resyncs, 1);
	op_unsend(op);
	op_wait(op);
}

/* Signed, so this is the device's time. One that goes back is not taken as it is: the engine is
 * asked again who and when it is. */
static void session_accept_time_report(struct snmp_operation *op, const struct usm_message *message)
{
	struct snmp_device *device = op->device;
	struct session *session = &device->session;
	if (!in_window(device, message))
		session->known = session->authentic = false;
	again(op);
}

static void session_accept_report(struct snmp_operation *op, const struct usm_message *message,
				  struct snmp_pdu *pdu, bool verified)
{
	struct snmp_device *device = op->device;
	enum report report = session_report_of(pdu);
	bool more = op->resyncs < TIME_UNKNOWN_RETRIES;
	if (report == REPORT_TIME && login_flags(device->login) && !verified) {
		stat_add(STAT_snmp_ignored_level, 1);
		return;
	}
	stat_add(STAT_snmp_replies, 1);
	if (report == REPORT_TIME && more && verified) {
		session_accept_time_report(op, message);
	} else if (report == REPORT_ENGINE && more && !device->login->engine_id.len) {
		device->session.known = false;
		again(op);
	} else {
		stat_add(STAT_snmp_refused, 1);
		op_end(op, -EACCES, refusals[report]);
	}
}

/* ---- Receiving ------------------------------------------------------------------------------- */

static void ignore(enum stat_id reason)
{
	stat_add(reason, 1);
}

/* Whether it is of our engine and user, and its digest is right if it has one. */
static bool is_genuine(const struct snmp_device *device, const struct usm_message *message)
{
	const struct session *session = &device->session;
	const struct snmp_login *login = device->login;
	if (!slice_equal(message->engine_id, session->engine_id) ||
	    !slice_equal(message->user, login->user)) {
		ignore(STAT_snmp_ignored_engine);
		return false;
	}
	if ((message->flags & USM_AUTH) &&
	    !usm_verify(device->client->crypto, login->auth, &session->auth_key, message)) {
		ignore(STAT_snmp_ignored_digest);
		return false;
	}
	return true;
}

static void session_accept_response(struct snmp_operation *op, const struct usm_message *message,
				    unsigned attempt, struct snmp_pdu *pdu)
{
	struct snmp_device *device = op->device;
	uint8_t level = message->flags & (USM_AUTH | USM_PRIV);
	if (level != login_flags(device->login))
		ignore(STAT_snmp_ignored_level);
	else if (pdu->type != SNMP_RESPONSE || (uint32_t)pdu->request_id != op_id(op, attempt))
		ignore(STAT_snmp_ignored_content);
	else if ((level & USM_AUTH) && !in_window(device, message))
		ignore(STAT_snmp_ignored_window);
	else
		op_reply(op, attempt, pdu, message->whole.len);
}

static void session_accept_message(struct snmp_operation *op, unsigned attempt,
				   const struct usm_message *message)
{
	struct snmp_device *device = op->device;
	struct snmp_client *client = device->client;
	struct usm_scoped scoped;
	const char *why;
	bool is_signed = message->flags & USM_AUTH;
	/* A report about an engine that is not known has another id, and no user. */
	if (is_signed && (op->kind == OP_DISCOVER || !is_genuine(device, message))) {
		if (op->kind == OP_DISCOVER)
			ignore(STAT_snmp_ignored_level);
		return;
	}
	if (usm_open(client->crypto, is_signed ? device->login->priv : USM_PRIV_NONE,
		     &device->session.priv_key, message, client->open_memory, &scoped, &why))
		ignore(STAT_snmp_ignored_malformed);
	else if (op->kind == OP_DISCOVER && scoped.pdu.type == SNMP_REPORT)
		session_accept_discovery(op, message);
	else if (op->kind == OP_DISCOVER)
		ignore(STAT_snmp_ignored_content);
	else if (scoped.pdu.type == SNMP_REPORT)
		session_accept_report(op, message, &scoped.pdu, is_signed);
	else if (is_signed || is_genuine(device, message))
		session_accept_response(op, message, attempt, &scoped.pdu);
}

void session_receive(struct snmp_client *client, const struct loop_datagram *datagram)
{
	struct usm_message message;
	const char *why;
	unsigned attempt;
	int err = usm_decode(datagram->bytes, &message, &why);
	if (err) {
		ignore(err == ERR_VERSION ? STAT_snmp_ignored_version
					  : STAT_snmp_ignored_malformed);
		return;
	}
	struct snmp_operation *op = client_find(client, (uint32_t)message.id, &attempt);
	if (!op)
		return;
	if (!loop_address_equal(&op->device->address, &datagram->from))
		ignore(STAT_snmp_ignored_source);
	else if (op->device->login->version != SNMP_V3)
		ignore(STAT_snmp_ignored_version);
	else
		session_accept_message(op, attempt, &message);
}
