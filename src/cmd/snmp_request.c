#include "cmd/snmp_request.h"

#include <ctype.h>
#include <stdlib.h>

enum { TIMEOUT_MAX_MS = 3600 * 1000 };

/* ---- Types ----------------------------------------------------------------------------------- */

static bool snmp_request_set_text(UNUSED const struct command_option *option, const char *text,
				  void *field)
{
	*(struct slice *)field = slice_of(text);
	return true;
}

static bool snmp_request_set_version(UNUSED const struct command_option *option, const char *text,
				     void *field)
{
	static const struct {
		const char *text;
		enum snmp_version version;
	} versions[] = {{"1", SNMP_V1}, {"2c", SNMP_V2C}, {"3", SNMP_V3}};
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		*(enum snmp_version *)field = versions[i].version;
		if (strcmp(text, versions[i].text) == 0)
			return true;
	}
	return false;
}

static bool snmp_request_set_level(UNUSED const struct command_option *option, const char *text,
				   void *field)
{
	static const char *const names[] = {"noAuthNoPriv", "authNoPriv", "authPriv"};
	static const enum snmp_level levels[] = {SNMP_NO_AUTH_NO_PRIV, SNMP_AUTH_NO_PRIV,
						 SNMP_AUTH_PRIV};
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		*(const enum snmp_level **)field = &levels[i];
		if (strcasecmp(text, names[i]) == 0)
			return true;
	}
	return false;
}

static bool snmp_request_set_auth(UNUSED const struct command_option *option, const char *text,
				  void *field)
{
	return usm_auth_parse(slice_of(text), field);
}

static bool snmp_request_set_priv(UNUSED const struct command_option *option, const char *text,
				  void *field)
{
	return usm_priv_parse(slice_of(text), field);
}

static bool snmp_request_set_hex(UNUSED const struct command_option *option, const char *text,
				 void *field)
{
	struct snmp_request_engine *id = field;
	size_t digits = 0;
	if (text[0] == '0' && (text[1] | 0x20) == 'x')
		text += 2;
	for (; isxdigit((unsigned char)text[digits]); digits++) {
		unsigned char c = (unsigned char)text[digits];
		uint8_t value = (uint8_t)(isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
		if (digits / 2 >= sizeof(id->bytes))
			return false;
		uint8_t *byte = &id->bytes[digits / 2];
		*byte = (uint8_t)(digits % 2 ? *byte << 4 | value : value);
	}
	id->len = digits / 2;
	return digits && digits % 2 == 0 && !text[digits];
}

static bool snmp_request_set_seconds(UNUSED const struct command_option *option, const char *text,
				     void *field)
{
	char *end;
	double ms = 1000 * strtod(text, &end);
	if (!isdigit((unsigned char)text[0]) || *end || !(ms >= 0.5 && ms <= TIMEOUT_MAX_MS))
		return false;
	*(unsigned *)field = (unsigned)(ms + 0.5);
	return true;
}

const struct command_type snmp_request_text = {.set = snmp_request_set_text};
const struct command_type snmp_request_version = {.is = "1, 2c or 3",
						  .set = snmp_request_set_version};
const struct command_type snmp_request_level = {.is = "noAuthNoPriv, authNoPriv or authPriv",
						.set = snmp_request_set_level};
const struct command_type snmp_request_auth = {
	.is = "MD5, SHA, SHA-224, SHA-256, SHA-384 or SHA-512", .set = snmp_request_set_auth};
const struct command_type snmp_request_priv = {
	.is = "DES, AES, AES-192, AES-256, AES-192-C or AES-256-C", .set = snmp_request_set_priv};
const struct command_type snmp_request_hex = {.is = "an engine id in hexadecimal",
					      .set = snmp_request_set_hex};
const struct command_type snmp_request_seconds = {.is = "a time from 0.001 to 3600 seconds",
						  .set = snmp_request_set_seconds};

void snmp_request_finish(struct snmp_request *r)
{
	struct snmp_credentials *c = &r->credentials;
	c->engine_id = (struct slice){(char *)r->engine_id.bytes, r->engine_id.len};
	c->level = r->level               ? *r->level
		   : c->priv_password.len ? SNMP_AUTH_PRIV
		   : c->auth_password.len ? SNMP_AUTH_NO_PRIV
					  : SNMP_NO_AUTH_NO_PRIV;
	r->options = (struct snmp_device_options){
		.retries = (unsigned)r->retries,
		.timeout_min_ms = r->timeout_ms,
		.timeout_start_ms = r->timeout_ms,
		.timeout_max_ms = r->timeout_ms,
		.repetitions_max = (unsigned)r->repetitions_max,
	};
}

/* ---- Where it is ----------------------------------------------------------------------------- */

void snmp_request_split(const char *text, char host[SNMP_HOST_MAX_BYTES],
			char port[SNMP_PORT_MAX_BYTES])
{
	if (strncmp(text, "udp:", 4) == 0)
		text += 4;
	const char *colon = strrchr(text, ':');
	const char *bracket = strchr(text, ']');
	bool one_colon = colon && strchr(text, ':') == colon;
	snprintf(port, SNMP_PORT_MAX_BYTES, "%d", SNMP_AGENT_PORT);
	if (text[0] == '[' && bracket) {
		snprintf(host, SNMP_HOST_MAX_BYTES, "%.*s", (int)(bracket - text - 1), text + 1);
		if (bracket[1] == ':')
			snprintf(port, SNMP_PORT_MAX_BYTES, "%s", bracket + 2);
	} else if (one_colon) {
		snprintf(host, SNMP_HOST_MAX_BYTES, "%.*s", (int)(colon - text), text);
		snprintf(port, SNMP_PORT_MAX_BYTES, "%s", colon + 1);
	} else {
		snprintf(host, SNMP_HOST_MAX_BYTES, "%s", text);
	}
}
