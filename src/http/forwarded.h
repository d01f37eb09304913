/* How the server looks from outside, where proxies stand in front of it: the URL by which people
 * know it, and what proxies say of those who ask (X-Forwarded-For, -Proto, -Host). Only proxies
 * that are trusted are listened to, since everybody can write these headers. Private to http/; see
 * http_outside. */
#ifndef HTTP_FORWARDED_H
#define HTTP_FORWARDED_H

#include "http/http.h"

/* Takes the path of the external URL off a target `/path?query`, where a proxy has left it on.
 * False: it is not there. */
bool forwarded_strip_prefix(const struct http_outside *outside, struct slice *target);
/* The request comes from a trusted proxy. Sets `secure`, and `forwarded_host` if it is said;
 * *client is the proxy's address, and becomes that of whoever is behind the last one of the
 * trusted. */
void forwarded_read(const struct http_outside *outside, struct http_request *request,
		    struct loop_address *client);

#endif
