/* What is said of a device is well-formed, and known. */
#include <arpa/inet.h>
#include <stdio.h>

#include "base/buf.h"
#include "inventory/private.h"
#include "model/series.h"

enum { SENTENCE_MAX_BYTES = 300 };

int device_refuse(const struct device_spec *spec, struct errbuf *e, int err, const char *fmt, ...)
{
	char sentence[SENTENCE_MAX_BYTES], place[200] = "";
	va_list arguments;
	va_start(arguments, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, arguments);
	va_end(arguments);
	if (spec->file)
		snprintf(place, sizeof(place), "%.150s:%zu: ", spec->file, spec->line);
	return errbuf_set(e, err, "%sdevice " SHOWN ": %s", place, SHOWN_OF(spec->name), sentence);
}

/* A tag's value, and something to type. */
static int device_check_name(const struct device_spec *spec, struct errbuf *e)
{
	struct slice name = spec->name;
	struct tag tag = {SLICE("device"), name};
	struct errbuf why;
	if (!name.len || name.len > INVENTORY_NAME_MAX_BYTES)
		return device_refuse(spec, e, ERR_INVALID, "a name has 1 to %d bytes",
				     INVENTORY_NAME_MAX_BYTES);
	if (memchr(name.data, ' ', name.len))
		return device_refuse(spec, e, ERR_INVALID, "a name has no blanks");
	if (tags_sort_and_check(&tag, 1, &why))
		return device_refuse(spec, e, ERR_INVALID, "%s", why.text);
	return 0;
}

/* A part of an URL's path that is one of these is taken away by whoever sends it (RFC 3986, 5.2.4):
 * such a device could be neither changed nor removed. */
int device_name_check_new(const struct device_spec *spec, struct errbuf *e)
{
	if (slice_equal(spec->name, SLICE(".")) || slice_equal(spec->name, SLICE("..")))
		return device_refuse(spec, e, ERR_INVALID,
				     "a name that is nothing but dots, one or two, cannot stand in "
				     "an URL");
	return 0;
}

/* ---- Addresses ------------------------------------------------------------------------------ */

static bool is_one_of(struct slice text, const char *chars)
{
	for (size_t i = 0; i < text.len; i++) {
		if (!strchr(chars, text.data[i]) || !text.data[i])
			return false;
	}
	return text.len > 0;
}

#define DIGITS  "0123456789"
#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

static bool read_port(struct slice text, uint16_t *port)
{
	unsigned number = 0;
	if (!is_one_of(text, DIGITS) || text.len > 5)
		return false;
	for (size_t i = 0; i < text.len; i++)
		number = number * 10 + (unsigned)(text.data[i] - '0');
	*port = (uint16_t)number;
	return number >= 1 && number <= 65535;
}

/* HOST, HOST:PORT, IPv6, [IPv6]:PORT. Whether there is such a host is for others to find out. */
static bool read_address(struct slice text, struct slice *host, uint16_t *port)
{
	static const char v6_chars[] = DIGITS LETTERS ":.%_-", host_chars[] = DIGITS LETTERS "._-";
	const char *first = memchr(text.data, ':', text.len);
	const char *last = memrchr(text.data, ':', text.len);
	const char *end = text.data + text.len;
	*port = SNMP_PORT;
	if (text.data[0] == '[') {
		const char *close = memchr(text.data, ']', text.len);
		if (!close)
			return false;
		*host = (struct slice){text.data + 1, (size_t)(close - text.data) - 1};
		struct slice rest = {close + 1, (size_t)(end - close) - 1};
		if (rest.len && (rest.data[0] != ':' ||
				 !read_port((struct slice){rest.data + 1, rest.len - 1}, port)))
			return false;
		return is_one_of(*host, v6_chars);
	}
	*host = text;
	if (first != last)
		return is_one_of(*host, v6_chars);
	if (first) {
		host->len = (size_t)(first - text.data);
		if (!read_port((struct slice){first + 1, (size_t)(end - first) - 1}, port))
			return false;
	}
	return is_one_of(*host, host_chars);
}

/* Digits and dots are meant as an IPv4 address: no resolver takes 300.1.2.3 for a name. */
static bool is_wrong_ipv4(struct slice host)
{
	char text[INET_ADDRSTRLEN];
	struct in_addr address;
	size_t last = host.len;
	if (memchr(host.data, ':', host.len))
		return false;
	while (last && host.data[last - 1] != '.')
		last--;
	if (!is_one_of((struct slice){host.data + last, host.len - last}, DIGITS))
		return false;
	if (host.len >= sizeof(text))
		return true;
	memcpy(text, host.data, host.len);
	text[host.len] = 0;
	return inet_pton(AF_INET, text, &address) != 1;
}

static int check_address(const struct device_spec *spec, struct slice *host, uint16_t *port,
			 struct errbuf *e)
{
	if (!spec->address.len)
		return device_refuse(spec, e, ERR_INVALID, "needs an address");
	if (spec->address.len > INVENTORY_ADDRESS_MAX_BYTES ||
	    !read_address(spec->address, host, port) || is_wrong_ipv4(*host))
		return device_refuse(spec, e, ERR_INVALID,
				     "'" SHOWN "' is not an address: HOST, HOST:PORT or "
				     "[IPV6]:PORT",
				     SHOWN_OF(spec->address));
	return 0;
}

/* ---- What must be known ---------------------------------------------------------------------- */

static void add_advice(struct buf *out, struct slice name, const void *const *defs, size_t count)
{
	const char **words = mem_alloc_array(count + 1, sizeof(*words));
	for (size_t i = 0; i < count; i++)
		words[i] = ((const struct slice *)defs[i])->data;
	words[count] = NULL;
	const char *nearest = conf_nearest_word(name, words);
	if (nearest)
		buf_printf(out, "; did you mean %s?", nearest);
	buf_append_char(out, 0);
	mem_free(words);
}

static int unknown(const struct device_spec *spec, struct slice name, const char *what,
		   const void *const *defs, size_t count, struct errbuf *e)
{
	struct buf advice;
	buf_init(&advice, SENTENCE_MAX_BYTES);
	add_advice(&advice, name, defs, count);
	int err = device_refuse(spec, e, ERR_INVALID, "'" SHOWN "' is not %s%s", SHOWN_OF(name),
				what, advice.data ? advice.data : "");
	buf_release(&advice);
	return err;
}

static int check_oidsets(const struct device_spec *spec, const struct inventory_conf *known,
			 struct errbuf *e)
{
	if (spec->oidset_count > DEVICE_OIDSETS_MAX)
		return device_refuse(spec, e, ERR_INVALID, "has more than %d OIDSets",
				     DEVICE_OIDSETS_MAX);
	for (size_t i = 0; i < spec->oidset_count; i++) {
		struct slice name = spec->oidsets[i];
		if (known && !inventory_conf_oidset(known, name))
			return unknown(spec, name, "an OIDSet", (const void *const *)known->oidsets,
				       known->oidset_count, e);
		for (size_t j = 0; j < i; j++) {
			if (slice_equal(name, spec->oidsets[j]))
				return device_refuse(spec, e, ERR_INVALID,
						     "the OIDSet " SHOWN " stands twice",
						     SHOWN_OF(name));
		}
	}
	return 0;
}

/* A name of something that only another process knows. */
static int check_word(const struct device_spec *spec, const char *what, struct slice word,
		      struct errbuf *e)
{
	struct tag tag = {SLICE("v"), word};
	struct errbuf why;
	if (word.len > INVENTORY_NAME_MAX_BYTES)
		return device_refuse(spec, e, ERR_INVALID, "the name of its %s has 1 to %d bytes",
				     what, INVENTORY_NAME_MAX_BYTES);
	if (memchr(word.data, ' ', word.len))
		return device_refuse(spec, e, ERR_INVALID, "the name of its %s has no blanks",
				     what);
	if (tags_sort_and_check(&tag, 1, &why))
		return device_refuse(spec, e, ERR_INVALID, "the name of its %s: %s", what,
				     why.text);
	return 0;
}

static int check_credentials(const struct device_spec *spec, const struct inventory_conf *known,
			     struct errbuf *e)
{
	if (!spec->credentials.len)
		return device_refuse(spec, e, ERR_INVALID,
				     "needs credentials: the name of an entry of the secrets file");
	if (spec->poller.len)
		return check_word(spec, "credentials", spec->credentials, e);
	if (known && !inventory_conf_credentials(known, spec->credentials))
		return unknown(spec, spec->credentials, "a name of credentials in the secrets file",
			       (const void *const *)known->credentials, known->credentials_count,
			       e);
	return 0;
}

static int check_life(const struct device_spec *spec, struct errbuf *e)
{
	bool from_now = spec->begin_ms == DEVICE_BEGIN_NOW;
	if ((!from_now && (spec->begin_ms < 0 || spec->begin_ms >= spec->end_ms)) ||
	    spec->end_ms <= 0 || spec->end_ms > INVENTORY_FOREVER_MS)
		return device_refuse(spec, e, ERR_INVALID, "its end must lie after its begin");
	return 0;
}

int device_spec_check(const struct device_spec *spec, const struct inventory_conf *known,
		      struct slice *host, uint16_t *port, struct errbuf *e)
{
	int err = device_check_name(spec, e);
	err = err ? err : check_address(spec, host, port, e);
	err = err || !spec->poller.len ? err : check_word(spec, "poller", spec->poller, e);
	err = err || !spec->stored_as.len ? err : check_word(spec, "series", spec->stored_as, e);
	err = err ? err : check_credentials(spec, known, e);
	err = err ? err : check_oidsets(spec, known, e);
	return err ? err : check_life(spec, e);
}
