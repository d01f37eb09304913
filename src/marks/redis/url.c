#include "marks/redis/url.h"

#include "wire/number.h"

enum { PORT_PRESET = 6379, PORT_MAX = 65535, DATABASE_MAX = 1 << 20 };

static const struct slice scheme = SLICE("redis://");

bool redis_url_is(struct slice text)
{
	return text.len >= scheme.len && memcmp(text.data, scheme.data, scheme.len) == 0;
}

/* Moves the text before the last `at` to *before; the rest stays. False: there is no `at`. */
static bool redis_url_split_last(struct slice *rest, char at, struct slice *before)
{
	const char *found = memrchr(rest->data, at, rest->len);
	if (!found)
		return false;
	*before = (struct slice){rest->data, (size_t)(found - rest->data)};
	*rest = (struct slice){found + 1, rest->len - before->len - 1};
	return true;
}

static bool redis_url_split_first(struct slice *rest, char at, struct slice *before)
{
	const char *found = memchr(rest->data, at, rest->len);
	if (!found)
		return false;
	*before = (struct slice){rest->data, (size_t)(found - rest->data)};
	*rest = (struct slice){found + 1, rest->len - before->len - 1};
	return true;
}

/* RFC 3986 2.1: "%" and two hexadecimal digits stand for a byte. */
static bool redis_url_decode(struct slice text, char to[REDIS_URL_PART_MAX_BYTES + 1])
{
	size_t len = 0;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];
		if (c == '%') {
			int high = text.len - i > 2 ? number_hex_digit(text.data[i + 1]) : -1;
			int low = high >= 0 ? number_hex_digit(text.data[i + 2]) : -1;
			if (low < 0)
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (!c || len == REDIS_URL_PART_MAX_BYTES)
			return false;
		to[len++] = c;
	}
	to[len] = 0;
	return true;
}

static bool redis_url_parse_number(struct slice text, int max, int *number)
{
	uint64_t value = 0;
	const char *end = number_scan_digits(text.data, text.data + text.len, &value);
	*number = (int)value;
	return text.len && end == text.data + text.len && value <= (uint64_t)max;
}

/* The sentence has nothing of it. */
static int redis_url_parse_user(struct slice user, struct redis_url *url, struct errbuf *e)
{
	if (user.len && memchr(user.data, ':', user.len))
		return errbuf_set(e, ERR_INVALID,
				  "a password does not belong here, where others see it: "
				  "rollup.redis_password_file names the file that has it");
	if (!user.len || !redis_url_decode(user, url->user))
		return errbuf_set(e, ERR_INVALID, "before @ stands a user, of at most %d bytes",
				  REDIS_URL_PART_MAX_BYTES);
	return 0;
}

/* `host`, `host:port`, `[address]:port`. */
static int redis_url_parse_place(struct slice place, struct redis_url *url, struct errbuf *e)
{
	struct slice host = place, port = {0};
	bool has_port;
	if (place.len && place.data[0] == '[') {
		struct slice behind = {place.data + 1, place.len - 1};
		if (!redis_url_split_first(&behind, ']', &host))
			return errbuf_set(e, ERR_INVALID, "an address in [ has no ]");
		has_port = behind.len && behind.data[0] == ':';
		if (behind.len && !has_port)
			return errbuf_set(e, ERR_INVALID, "behind ] stands :port");
		if (has_port)
			port = (struct slice){behind.data + 1, behind.len - 1};
	} else {
		port = place;
		has_port = redis_url_split_last(&port, ':', &host);
		if (!has_port)
			host = place;
	}
	if (!host.len || !redis_url_decode(host, url->host))
		return errbuf_set(e, ERR_INVALID, "it has no host of at most %d bytes",
				  REDIS_URL_PART_MAX_BYTES);
	if (has_port && (!redis_url_parse_number(port, PORT_MAX, &url->port) || !url->port))
		return errbuf_set(e, ERR_INVALID, "a port is 1 to %d", PORT_MAX);
	return 0;
}

int redis_url_parse(struct slice text, struct redis_url *url, struct errbuf *e)
{
	struct slice rest = text, user, place;
	*url = (struct redis_url){.port = PORT_PRESET};
	if (!redis_url_is(text))
		return errbuf_set(e, ERR_INVALID, "it does not begin with redis://");
	rest = (struct slice){text.data + scheme.len, text.len - scheme.len};
	int err = redis_url_split_last(&rest, '@', &user) ? redis_url_parse_user(user, url, e) : 0;
	if (err)
		return err;
	if (!redis_url_split_first(&rest, '/', &place)) {
		place = rest;
		rest = (struct slice){0};
	}
	if (rest.len && !redis_url_parse_number(rest, DATABASE_MAX, &url->database))
		return errbuf_set(e, ERR_INVALID, "behind / stands the number of a database");
	return redis_url_parse_place(place, url, e);
}
