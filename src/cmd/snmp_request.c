#include "cmd/snmp_request.h"

#include <ctype.h>

#include "cmd/client.h"
#include "cmd/client_private.h"

static const struct client_command command = {.name = "snmp", .help = client_snmp_help};
/* For sentences. */
static const struct client_args complaining = {.command = &command};

/* ---- Options --------------------------------------------------------------------------------- */

/* A decimal number up to `max`, of thousandths if it has a fraction; false: none. */
static bool parse_thousandths(const char *text, unsigned max, unsigned *value)
{
	char *end;
	if (!isdigit((unsigned char)*text))
		return false;
	double number = strtod(text, &end);
	if (*end || !(number * 1000 <= max))
		return false;
	*value = (unsigned)(number * 1000 + 0.5);
	return true;
}

static bool parse_count(const char *text, unsigned max, unsigned *value)
{
	return parse_thousandths(text, max * 1000, value) && *value % 1000 == 0 &&
	       ((*value /= 1000), true);
}

static bool parse_version(const char *text, enum snmp_version *version)
{
	static const struct {
		const char *text;
		enum snmp_version version;
	} versions[] = {{"1", SNMP_V1}, {"2c", SNMP_V2C}, {"3", SNMP_V3}};
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		*version = versions[i].version;
		if (strcmp(text, versions[i].text) == 0)
			return true;
	}
	return false;
}

static bool parse_level(const char *text, enum snmp_level *level)
{
	static const char *const levels[] = {"noAuthNoPriv", "authNoPriv", "authPriv"};
	for (size_t i = 0; i < ARRAY_LEN(levels); i++) {
		*level = (enum snmp_level)i;
		if (strcasecmp(text, levels[i]) == 0)
			return true;
	}
	return false;
}

static bool parse_hex(const char *text, struct snmp_request *r)
{
	size_t digits = 0;
	if (text[0] == '0' && (text[1] | 0x20) == 'x')
		text += 2;
	for (; isxdigit((unsigned char)text[digits]); digits++) {
		unsigned char c = (unsigned char)text[digits];
		uint8_t value = (uint8_t)(isdigit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
		if (digits / 2 >= sizeof(r->engine_id))
			return false;
		uint8_t *byte = &r->engine_id[digits / 2];
		*byte = (uint8_t)(digits % 2 ? *byte << 4 | value : value);
	}
	r->credentials.engine_id = (struct slice){(char *)r->engine_id, digits / 2};
	return digits && digits % 2 == 0 && !text[digits];
}

static bool set_timeout(struct snmp_device_options *options, const char *value)
{
	unsigned ms;
	if (!parse_thousandths(value, 3600 * 1000, &ms) || !ms)
		return false;
	options->timeout_min_ms = options->timeout_start_ms = options->timeout_max_ms = ms;
	return true;
}

/* False: the value is none for this letter. */
static bool set_option(struct snmp_request *r, char letter, const char *value)
{
	struct snmp_credentials *c = &r->credentials;
	switch (letter) {
	case 'v':
		return parse_version(value, &c->version);
	case 'c':
		c->community = slice_of(value);
		return true;
	case 'u':
		c->user = slice_of(value);
		return true;
	case 'l':
		r->level_given = true;
		return parse_level(value, &c->level);
	case 'a':
		return usm_auth_parse(slice_of(value), &c->auth);
	case 'A':
		c->auth_password = slice_of(value);
		return true;
	case 'x':
		return usm_priv_parse(slice_of(value), &c->priv);
	case 'X':
		c->priv_password = slice_of(value);
		return true;
	case 'n':
		c->context = slice_of(value);
		return true;
	case 'e':
		return parse_hex(value, r);
	case 't':
		return set_timeout(&r->options, value);
	case 'r':
		return parse_count(value, SNMP_RETRIES_MAX, &r->options.retries);
	case 'C':
		return value[0] == 'r' &&
		       parse_count(value + 1, SNMP_REPLY_VARBINDS_MAX, &r->options.repetitions_max);
	case 'O':
		r->numeric = true;
		return strcmp(value, "n") == 0;
	default:
		return false;
	}
}

/* One word of the command line, with the next one if it takes it: -v2c, -v 2c, -Cr10, -Cr 10. How
 * many were taken; 0 after a complaint. */
static int take_word(struct snmp_request *r, const char *word, const char *next)
{
	char joined[32];
	if (word[0] != '-' || !word[1]) {
		if (r->word_count == SNMP_REQUEST_WORDS_MAX) {
			client_usage(&complaining, "more than %d words", SNMP_REQUEST_WORDS_MAX);
			return 0;
		}
		r->words[r->word_count++] = word;
		return 1;
	}
	const char *value = word + 2;
	int taken = 1;
	if (!strchr("vculaAxXnetrCO", word[1])) {
		client_usage(&complaining, "there is no option %.20s", word);
		return 0;
	}
	if (strcmp(word, "-Cr") == 0 && next) {
		snprintf(joined, sizeof(joined), "r%s", next);
		value = joined;
		taken = 2;
	} else if (!*value && next) {
		value = next;
		taken = 2;
	}
	if (set_option(r, word[1], value))
		return taken;
	client_usage(&complaining, "option -%c does not take \"%.60s\"", word[1], value);
	return 0;
}

static void set_level(struct snmp_request *r)
{
	struct snmp_credentials *c = &r->credentials;
	if (!c->auth)
		c->auth = USM_AUTH_SHA1;
	if (!c->priv)
		c->priv = USM_PRIV_AES128;
	if (!r->level_given)
		c->level = c->priv_password.len   ? SNMP_AUTH_PRIV
			   : c->auth_password.len ? SNMP_AUTH_NO_PRIV
						  : SNMP_NO_AUTH_NO_PRIV;
}

int snmp_request_parse(int argc, char *const *argv, struct snmp_request *r)
{
	*r = (struct snmp_request){
		.credentials = {.version = SNMP_V2C, .community = SLICE("public")},
		.options = {.retries = 5},
	};
	(void)set_timeout(&r->options, "1");
	for (int i = 0; i < argc;) {
		int taken = take_word(r, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
		if (!taken)
			return ERR_INVALID;
		i += taken;
	}
	set_level(r);
	return 0;
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

int snmp_request_device(const char *device, char host[SNMP_HOST_MAX_BYTES], uint16_t *port)
{
	char text[SNMP_PORT_MAX_BYTES];
	unsigned number;
	snmp_request_split(device, host, text);
	if (parse_count(text, UINT16_MAX, &number) && number && host[0]) {
		*port = (uint16_t)number;
		return 0;
	}
	client_usage(&complaining, "%.100s is no HOST or HOST:PORT", device);
	return ERR_INVALID;
}
