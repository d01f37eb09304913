#include "http/site.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "http/head.h"

enum { PORT_HTTP = 80, PORT_HTTPS = 443, PORT_MAX_DIGITS = 5 };

/* ---- Names ----------------------------------------------------------------------------------- */

/* Empty is none (RFC 3986 3.2.3). */
static bool site_parse_port(struct slice digits, int *port)
{
	*port = digits.len ? 0 : -1;
	if (digits.len > PORT_MAX_DIGITS)
		return false;
	for (size_t i = 0; i < digits.len; i++) {
		if (digits.data[i] < '0' || digits.data[i] > '9')
			return false;
		*port = *port * 10 + (digits.data[i] - '0');
	}
	return *port <= UINT16_MAX;
}

/* What may stand in a name, or in an IPv4 address (RFC 952; `_` is seen in the field). */
static bool site_is_name(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!letter && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != '_')
			return false;
	}
	return name.len > 0 && name.data[0] != '.';
}

static bool site_is_v6(struct slice name, struct in6_addr *address)
{
	char text[INET6_ADDRSTRLEN];
	if (name.len < 4 || name.len - 2 >= sizeof(text) || name.data[0] != '[' ||
	    name.data[name.len - 1] != ']')
		return false;
	memcpy(text, name.data + 1, name.len - 2);
	text[name.len - 2] = 0;
	return inet_pton(AF_INET6, text, address) == 1;
}

/* False for what is no name, such as one with a user in front of it. */
static bool site_parse(struct slice text, struct site_name *out)
{
	struct in6_addr v6;
	const char *bracket = text.len ? memrchr(text.data, ']', text.len) : NULL;
	size_t from = bracket ? (size_t)(bracket - text.data) : 0;
	const char *colon = text.len ? memchr(text.data + from, ':', text.len - from) : NULL;
	struct slice port = {NULL, 0};
	out->name = text;
	if (colon) {
		out->name.len = (size_t)(colon - text.data);
		port = (struct slice){colon + 1, text.len - out->name.len - 1};
	}
	if (bracket)
		return site_is_v6(out->name, &v6) && site_parse_port(port, &out->port);
	/* `localhost.` is the same name, said in full. */
	if (out->name.len > 1 && out->name.data[out->name.len - 1] == '.')
		out->name.len--;
	return site_is_name(out->name) && site_parse_port(port, &out->port);
}

static bool site_same_name(struct slice a, struct slice b)
{
	struct in6_addr a_v6, b_v6;
	if (site_is_v6(a, &a_v6) && site_is_v6(b, &b_v6))
		return memcmp(&a_v6, &b_v6, sizeof(a_v6)) == 0;
	return a.len == b.len && strncasecmp(a.data, b.data, a.len) == 0;
}

bool http_host_valid(struct slice text)
{
	struct site_name name;
	return site_parse(text, &name);
}

static void site_add(struct site *site, struct slice text)
{
	bool valid = site_parse(text, &site->names[site->name_count++]);
	ASSERT(valid);
}

void site_init(struct site *site, const char *const *names, size_t count, struct slice external)
{
	*site = (struct site){.configured = count + (external.data != NULL)};
	ASSERT(count <= SITE_NAMES_MAX);
	for (size_t i = 0; i < count; i++)
		site_add(site, slice_of(names[i]));
	if (external.data)
		site_add(site, external);
	site_add(site, SLICE("localhost"));
}

void site_listens(struct site *site, const struct loop_address *address)
{
	ASSERT(site->address_count < SITE_ADDRESSES_MAX);
	char *text = site->addresses[site->address_count++];
	site_add(site, slice_of(loop_address_text(address, text)));
}

/* ---- Host ------------------------------------------------------------------------------------ */

/* No page can give its own name to an address that is asked for by itself. The unspecified one is
 * no address of anybody, though some systems take it for this machine. */
static bool site_is_address(struct slice name)
{
	struct in6_addr v6;
	struct in_addr v4;
	char text[INET_ADDRSTRLEN] = "";
	if (site_is_v6(name, &v6))
		return !IN6_IS_ADDR_UNSPECIFIED(&v6);
	if (name.len < sizeof(text))
		memcpy(text, name.data, name.len);
	return inet_pton(AF_INET, text, &v4) == 1 && v4.s_addr;
}

static bool site_knows(const struct site *site, struct slice text)
{
	struct site_name given;
	if (!site_parse(text, &given))
		return false;
	if (site_is_address(given.name))
		return true;
	for (size_t i = 0; i < site->name_count; i++) {
		if (site_same_name(site->names[i].name, given.name))
			return true;
	}
	return false;
}

bool site_is_meant(const struct site *site, const struct http_request *request, bool http_1_0)
{
	struct slice host = http_host(request);
	if (request->authority.data && !site_knows(site, request->authority))
		return false;
	return host.data ? site_knows(site, host) : http_1_0;
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static bool site_strip(struct slice *text, const char *prefix)
{
	size_t len = strlen(prefix);
	if (text->len < len || !head_name_is((struct slice){text->data, len}, prefix))
		return false;
	*text = (struct slice){text->data + len, text->len - len};
	return true;
}

/* `http://name:port` (RFC 6454 7.1), else `null`. It is a name of ours, or the address in Host. Its
 * port is that of Host: another server of the same machine is another site. A page that came
 * unencrypted is none of ours where we speak TLS. A proxy in front may
 * write another Host; then the port is the one that the configured name has, or the usual one. */
static bool site_is_origin_ours(const struct site *site, const struct http_request *request,
				struct slice origin)
{
	struct site_name from;
	int usual = PORT_HTTP;
	if (!site_strip(&origin, "http://")) {
		usual = PORT_HTTPS;
		if (!site_strip(&origin, "https://"))
			return false;
	}
	if (!site_parse(origin, &from) || (request->secure && usual == PORT_HTTP))
		return false;
	int port = from.port < 0 ? usual : from.port;
	struct site_name host = {.port = -1};
	bool named = site_parse(http_host(request), &host);
	int asked = named ? host.port : -1;
	if (named && site_is_address(from.name) && site_same_name(host.name, from.name) &&
	    port == (asked < 0 ? usual : asked))
		return true;
	for (size_t i = 0; i < site->name_count; i++) {
		const struct site_name *name = &site->names[i];
		if (!site_same_name(name->name, from.name))
			continue;
		if (port == (asked < 0 ? usual : asked) ||
		    (i < site->configured && port == (name->port < 0 ? usual : name->port)))
			return true;
	}
	return false;
}

/* A link of another site that a visitor follows, in a window of its own. */
static bool site_is_visit(const struct http_request *request)
{
	return request->route && request->route->page &&
	       slice_equal(http_header(request, "Sec-Fetch-Mode"), SLICE("navigate")) &&
	       slice_equal(http_header(request, "Sec-Fetch-Dest"), SLICE("document"));
}

bool site_is_foreign(const struct site *site, const struct http_request *request)
{
	if (request->route && request->route->any_origin)
		return false;
	for (size_t i = 0; i < request->header_count; i++) {
		const struct http_header *header = &request->headers[i];
		if (head_name_is(header->name, "origin") &&
		    !site_is_origin_ours(site, request, header->value))
			return true;
		if (head_name_is(header->name, "sec-fetch-site") &&
		    !slice_equal(header->value, SLICE("same-origin")) &&
		    !slice_equal(header->value, SLICE("none")) && !site_is_visit(request))
			return true;
	}
	return false;
}

bool site_is_own_page(const struct site *site, const struct http_request *request)
{
	struct slice origin = http_header(request, "Origin");
	if (origin.data)
		return site_is_origin_ours(site, request, origin);
	return slice_equal(http_header(request, "Sec-Fetch-Site"), SLICE("same-origin"));
}

/* ---- Routes of any origin -------------------------------------------------------------------- */

/* Browsers let a page send no other headers than these and read none of ours but these, beside the
 * few that are always allowed: those of Sentry's protocol. */
#define SITE_SENT_HEADERS                                                                          \
	"Content-Type, Content-Encoding, Authorization, X-Sentry-Auth, sentry-trace, baggage"
#define SITE_READ_HEADERS "X-Sentry-Error, X-Sentry-Rate-Limits, Retry-After"
/* For which a browser need not ask again: a day. Each has a bound of its own. */
#define SITE_PREFLIGHT_MAX_AGE_S "86400"

const char site_any_origin_lines[] = "Access-Control-Allow-Origin: *\r\n"
				     "Access-Control-Expose-Headers: " SITE_READ_HEADERS "\r\n";

enum http_verb site_preflight_verb(const struct http_request *request)
{
	if (request->verb != VERB_OPTIONS)
		return VERB_OTHER;
	return head_verb(http_header(request, "Access-Control-Request-Method"));
}

void site_allow(struct http_request *request, enum http_verb verb)
{
	http_reply_header(request, "Access-Control-Allow-Methods", http_verb_text(verb));
	http_reply_header(request, "Access-Control-Allow-Headers", SITE_SENT_HEADERS);
	http_reply_header(request, "Access-Control-Max-Age", SITE_PREFLIGHT_MAX_AGE_S);
}
