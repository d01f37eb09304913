#include "http/forwarded.h"

#include "http/head.h"

/* ---- The external URL ------------------------------------------------------------------------ */

static bool forwarded_strip(struct slice *text, const char *prefix)
{
	size_t len = strlen(prefix);
	if (text->len < len || strncasecmp(text->data, prefix, len) != 0)
		return false;
	*text = (struct slice){text->data + len, text->len - len};
	return true;
}

/* Only what nobody writes in two ways (RFC 3986, unreserved). */
static bool forwarded_is_prefix(struct slice path)
{
	for (size_t i = 0; i < path.len; i++) {
		char c = path.data[i];
		bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			     (c >= '0' && c <= '9') || (c && strchr("-._~", c));
		bool slash = c == '/' && i + 1 < path.len && path.data[i + 1] != '/';
		if (!plain && !slash)
			return false;
	}
	return !path.len || *path.data == '/';
}

int http_external_parse(const char *text, struct http_outside *outside, struct errbuf *e)
{
	struct slice rest = slice_of(text);
	outside->https = forwarded_strip(&rest, "https://");
	bool known = outside->https || forwarded_strip(&rest, "http://");
	const char *slash = rest.len ? memchr(rest.data, '/', rest.len) : NULL;
	size_t host_len = slash ? (size_t)(slash - rest.data) : rest.len;
	outside->host = (struct slice){rest.data, host_len};
	outside->prefix = (struct slice){rest.data + host_len, rest.len - host_len};
	if (outside->prefix.len && outside->prefix.data[outside->prefix.len - 1] == '/')
		outside->prefix.len--;
	if (known && http_host_valid(outside->host) && forwarded_is_prefix(outside->prefix))
		return 0;
	return errbuf_set(e, ERR_INVALID,
			  "'%s' is no URL such as https://granary.example/path, whose path has "
			  "only letters, digits, - . _ ~ and /",
			  text);
}

bool forwarded_strip_prefix(const struct http_outside *outside, struct slice *target)
{
	struct slice prefix = outside->prefix, rest = *target;
	if (!prefix.len || rest.len < prefix.len || memcmp(rest.data, prefix.data, prefix.len) != 0)
		return false;
	rest = (struct slice){rest.data + prefix.len, rest.len - prefix.len};
	if (!rest.len)
		rest = SLICE("/");
	if (*rest.data != '/')
		return false;
	*target = rest;
	return true;
}

/* ---- What proxies say ------------------------------------------------------------------------ */

/* Takes the last item off a list with commas. */
static struct slice forwarded_last(struct slice *list)
{
	const char *comma = list->len ? memrchr(list->data, ',', list->len) : NULL;
	size_t from = comma ? (size_t)(comma + 1 - list->data) : 0;
	struct slice item = {list->data + from, list->len - from};
	list->len = comma ? from - 1 : 0;
	while (item.len && (*item.data == ' ' || *item.data == '\t'))
		item = (struct slice){item.data + 1, item.len - 1};
	while (item.len && (item.data[item.len - 1] == ' ' || item.data[item.len - 1] == '\t'))
		item.len--;
	return item;
}

/* With or without a port; IPv4 within IPv6 (`::ffff:192.0.2.1`) is IPv4. */
static int forwarded_parse_address(struct slice text, struct loop_address *address)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	int err = loop_host_parse(text, address);
	err = err ? loop_address_parse(text, address, NULL) : 0;
	if (!err && address->v6 && memcmp(address->bytes, mapped, sizeof(mapped)) == 0) {
		memmove(address->bytes, address->bytes + sizeof(mapped), 4);
		address->v6 = false;
	}
	return err;
}

/* Each proxy adds behind the others whom it was asked by; so the last that is no proxy of ours is
 * the client, and what stands before it anybody may have written. False: that one is found. */
static bool forwarded_go_on(const struct http_outside *outside, struct slice list,
			    struct loop_address *client)
{
	struct loop_address said;
	while (list.len) {
		if (forwarded_parse_address(forwarded_last(&list), &said))
			return false;
		*client = said;
		if (!loop_networks_have(&outside->proxies, &said))
			return false;
	}
	return true;
}

void forwarded_read(const struct http_outside *outside, struct http_request *request,
		    struct loop_address *client)
{
	bool go_on = true;
	struct slice list, proto = {NULL, 0};
	for (size_t i = request->header_count; i-- > 0;) {
		const struct http_header *header = &request->headers[i];
		list = header->value;
		if (go_on && head_name_is(header->name, "x-forwarded-for"))
			go_on = forwarded_go_on(outside, list, client);
		else if (!proto.data && head_name_is(header->name, "x-forwarded-proto"))
			proto = forwarded_last(&list);
		else if (!request->forwarded_host.data &&
			 head_name_is(header->name, "x-forwarded-host"))
			request->forwarded_host = forwarded_last(&list);
	}
	request->secure = proto.data ? head_name_is(proto, "https")
				     : request->secure || (outside->host.data && outside->https);
}
