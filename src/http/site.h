/* Who may ask, since a browser sends whatever the pages of others have it send to servers that only
 * its visitor reaches. Private to http/.
 *
 * A name. A page may give its own name our address (DNS rebinding), and is then of one origin with
 * us: nothing but the name in Host tells. So where whoever shows no credential is answered, Host
 * has to be `localhost`, an address or a configured name; a page that gives its name our address
 * has no credential to show. The port is let be: it is another one behind a tunnel.
 *
 * A page. A browser says by Origin and by Sec-Fetch-Site (Fetch Metadata, W3C) for which page it
 * asks: it must be one of ours. Nobody but browsers sends either.
 *
 * A route of any origin (http_route) is for the pages of all sites, as the door for the reports of
 * their scripts is. It is told so by the rules of CORS (Fetch, WHATWG, 3.3): its answers say that
 * every page may read them, and a preflight, by which a browser asks beforehand, is answered with
 * what may be sent. What a page asks for with its visitor's cookies or passwords it cannot read
 * even so. The name is looked at as on every other route. */
#ifndef HTTP_SITE_H
#define HTTP_SITE_H

#include "http/http.h"

enum {
	SITE_ADDRESSES_MAX = 8,
	SITE_NAMES_MAX = 64,
};

/* `name`, `name:port`, `192.0.2.1`, `[2001:db8::1]:443`; without its dot at the end. */
struct site_name {
	struct slice name; /* with the brackets of an IPv6 address */
	int port;          /* -1: none is said */
};

struct site {
	struct site_name names[2 + SITE_ADDRESSES_MAX + SITE_NAMES_MAX];
	size_t name_count;
	size_t configured; /* of these, from the first on */
	char addresses[SITE_ADDRESSES_MAX][LOOP_ADDRESS_TEXT_BYTES];
	size_t address_count;
};

/* `names` are as http_limits has them: the caller's, and outlive the site; so is `external`, the
 * host of the external URL. NULL data: there is none. */
void site_init(struct site *site, const char *const *names, size_t count, struct slice external);
/* One more that is listened on. */
void site_listens(struct site *site, const struct loop_address *address);

/* Whether the request was meant for us, by its Host and by its target. `http_1_0`: it may be
 * without Host, as no browser's is. */
bool site_is_meant(const struct site *site, const struct http_request *request,
		   bool http_1_0) MUST_CHECK;
/* Whether a page of another site has its visitor's browser send this, which may not; a route that
 * is a page may be opened by a link of others, one of any origin may be used by all. After
 * site_is_meant(). */
bool site_is_foreign(const struct site *site, const struct http_request *request) MUST_CHECK;

/* Whether a browser says that a page of our own has it send this. */
bool site_is_own_page(const struct site *site, const struct http_request *request) MUST_CHECK;

/* The verb that a preflight asks for; VERB_OTHER: the request is none, or its verb has no name. */
enum http_verb site_preflight_verb(const struct http_request *request);
/* Adds to the answer of such a preflight what a page may send. */
void site_allow(struct http_request *request, enum http_verb verb);
/* What every answer of a route of any origin says, as ready lines. */
extern const char site_any_origin_lines[];

#endif
