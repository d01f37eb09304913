#include "fault/mask_name.h"

#include <pthread.h>

#include "wire/number.h"

static const char *const mask_name_preset[] = {
	/* What opens a door by itself. */
	"password", "passwords", "passwd", "passphrase", "passcode", "pwd", "dbpass", "smtppass",
	"userpass", "secret", "secrets", "credential", "credentials", "creds", "token", "jwt",
	"bearer", "apikey", "appkey", "authkey", "accesskey", "secretkey", "privatekey",
	"signingkey", "encryptionkey", "masterkey", "sshkey", "otp", "=auth", "=pass",
	/* Of HTTP. */
	"authorization", "cookie", "cookies", "httpauth", "basicauth", "csrf", "xsrf", "sessionid",
	"sessionkey", "sessid", "connectsid", "=sid", "oauthsignature",
	/* Of people and their cards. */
	"cvv", "cvc", "cardnumber", "ssn", "socialsecuritynumber"};

const struct fault_masks fault_masks_preset = {mask_name_preset, ARRAY_LEN(mask_name_preset)};

/* Last parts of names whose value tells of a secret without being one. */
static const char *const mask_name_harmless[] = {
	"age",      "algorithm", "at",           "attempts",   "budget",     "changed",  "class",
	"count",    "counts",    "date",         "days",       "disabled",   "domain",   "enabled",
	"endpoint", "error",     "errors",       "expiration", "expired",    "expires",  "expiry",
	"field",    "fields",    "form",         "format",     "hours",      "httponly", "id",
	"ids",      "index",     "invalid",      "issuer",     "length",     "len",      "lifetime",
	"limit",    "limits",    "location",     "max",        "method",     "min",      "minutes",
	"missing",  "name",      "names",        "number",     "path",       "policy",   "prefix",
	"provider", "required",  "requirements", "rules",      "samesite",   "scheme",   "scope",
	"scopes",   "seconds",   "secure",       "size",       "state",      "status",   "strength",
	"time",     "timeout",   "total",        "ttl",        "type",       "types",    "uri",
	"url",      "usage",     "valid",        "validator",  "validators", "version",  "view"};

/* ---- Parts ---------------------------------------------------------------------------------- */

enum { MASK_NAME_PARTS_MAX = MASK_NAME_MAX_BYTES };

struct mask_name_parts {
	char text[MASK_NAME_MAX_BYTES]; /* letters and digits, small */
	uint8_t begin[MASK_NAME_PARTS_MAX], end[MASK_NAME_PARTS_MAX];
	size_t count;
};

static bool mask_name_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool mask_name_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* Bytes beyond ASCII are letters: they make a part another one. */
static bool mask_name_holds(char c)
{
	return mask_name_upper(c) || mask_name_lower(c) || number_is_digit(c) || (c & 0x80);
}

/* Whether a part begins at p, which is a letter or digit after another one: `aB`, and the `K` of
 * `APIKey`. */
static bool mask_name_humps(const char *begin, const char *p, const char *end)
{
	if (p == begin || !mask_name_upper(*p))
		return false;
	return !mask_name_upper(p[-1]) || (p + 1 < end && mask_name_lower(p[1]));
}

static bool mask_name_escape(const char *p, const char *end)
{
	return *p == '%' && end - p > 2 && number_hex_digit(p[1]) >= 0 &&
	       number_hex_digit(p[2]) >= 0;
}

static void mask_name_cut(struct slice name, struct mask_name_parts *parts)
{
	if (name.len > MASK_NAME_MAX_BYTES)
		name = (struct slice){name.data + name.len - MASK_NAME_MAX_BYTES,
				      MASK_NAME_MAX_BYTES};
	const char *end = name.data + name.len;
	bool open = false;
	size_t len = 0;
	parts->count = 0;
	for (const char *p = name.data; p < end; p++) {
		char c = *p;
		if (mask_name_escape(p, end)) { /* %70 is a p */
			c = (char)(number_hex_digit(p[1]) << 4 | number_hex_digit(p[2]));
			p += 2;
		}
		if (!mask_name_holds(c)) {
			open = false;
			continue;
		}
		if (!open || (c == *p && mask_name_humps(name.data, p, end)))
			parts->begin[parts->count++] = (uint8_t)len;
		open = true;
		parts->text[len++] = (char)(mask_name_upper(c) ? c | 0x20 : c);
		parts->end[parts->count - 1] = (uint8_t)len;
	}
}

/* The end of a part without its digits; one of digits alone keeps them. */
static size_t mask_name_part_end(const struct mask_name_parts *parts, size_t part)
{
	size_t end = parts->end[part];
	while (end > parts->begin[part] && number_is_digit(parts->text[end - 1]))
		end--;
	return end > parts->begin[part] ? end : parts->end[part];
}

/* ---- Words ---------------------------------------------------------------------------------- */

static void mask_table_init(struct mask_table *words, const struct fault_masks *masks)
{
	ASSERT(masks->word_count <= FAULT_MASK_WORDS_MAX);
	*words = (struct mask_table){.masks = masks};
	for (size_t i = 0; i < masks->word_count; i++) {
		size_t len = strlen(masks->words[i]);
		if (!len)
			continue;
		words->len[i] = len - (masks->words[i][0] == '=');
		uint8_t *first = &words->first[masks->words[i][len - 1] & 0x7f];
		words->next[i] = *first;
		*first = (uint8_t)(i + 1);
	}
}

void mask_words_init(struct mask_words *words, const struct fault_masks *masks)
{
	*words = (struct mask_words){.no_rows = {NULL, 0}};
	mask_table_init(&words->table, masks);
}

static bool mask_name_begins_part(const struct mask_name_parts *parts, size_t last, size_t at)
{
	for (size_t i = last + 1; i-- && parts->begin[i] >= at;) {
		if (parts->begin[i] == at)
			return true;
	}
	return false;
}

static bool mask_name_matches(const struct mask_name_parts *parts, size_t part, size_t end,
			      const char *word, size_t len)
{
	bool whole = *word == '=';
	word += whole;
	if (len > end || memcmp(parts->text + end - len, word, len) != 0)
		return false;
	if (whole)
		return len == end && part + 1 == parts->count;
	return len >= MASK_NAME_LONG_BYTES || mask_name_begins_part(parts, part, end - len);
}

/* Whether a word ends with this part. */
static bool mask_name_part_matches(const struct mask_table *words,
				   const struct mask_name_parts *parts, size_t part)
{
	size_t end = mask_name_part_end(parts, part);
	for (size_t i = words->first[parts->text[end - 1] & 0x7f]; i; i = words->next[i - 1]) {
		if (mask_name_matches(parts, part, end, words->masks->words[i - 1],
				      words->len[i - 1]))
			return true;
	}
	return false;
}

static bool mask_name_part_is_harmless(const struct mask_name_parts *parts, size_t part)
{
	const char *begin = parts->text + parts->begin[part];
	size_t len = mask_name_part_end(parts, part) - parts->begin[part];
	for (size_t i = 0; i < ARRAY_LEN(mask_name_harmless); i++) {
		if (strlen(mask_name_harmless[i]) == len &&
		    memcmp(begin, mask_name_harmless[i], len) == 0)
			return true;
	}
	return false;
}

static bool mask_name_judge(const struct mask_table *words, struct slice name)
{
	struct mask_name_parts parts;
	mask_name_cut(name, &parts);
	for (size_t i = parts.count; i--;) {
		if (mask_name_part_matches(words, &parts, i))
			return i + 1 == parts.count ||
			       !mask_name_part_is_harmless(&parts, parts.count - 1);
	}
	return false;
}

bool mask_name_is_secret(struct mask_words *words, struct slice name)
{
	if (!name.len)
		return false;
	size_t place = name.len * 7 + (uint8_t)name.data[0] * 3 +
		       (uint8_t)name.data[name.len / 2] * 5 + (uint8_t)name.data[name.len - 1];
	struct mask_name_known *known = &words->known[place % MASK_NAMES_KNOWN];
	if (!slice_equal(known->name, name))
		*known = (struct mask_name_known){name, mask_name_judge(&words->table, name)};
	return known->secret;
}

static struct mask_table mask_headers;
static pthread_once_t mask_headers_once = PTHREAD_ONCE_INIT;

static void mask_headers_init(void)
{
	static const char *const words[] = {"authorization", "cookie", "cookies"};
	static const struct fault_masks headers = {words, ARRAY_LEN(words)};
	mask_table_init(&mask_headers, &headers);
}

bool mask_name_is_header(struct slice name)
{
	pthread_once(&mask_headers_once, mask_headers_init);
	return name.len && mask_name_judge(&mask_headers, name);
}
