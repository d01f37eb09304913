#include "cmd/serve_addresses.h"

#include "api/routes.h"
#include "base/buf.h"
#include "base/log.h"
#include "http/client.h"
#include "http/http.h"

static const struct tls_protocols serve_protocols = {.names = {"http/1.1"}, .count = 1};

/* ---- Reading --------------------------------------------------------------------------------- */

static bool serve_address_begins(const char **text, const char *prefix)
{
	size_t len = strlen(prefix);
	if (strncmp(*text, prefix, len) != 0)
		return false;
	*text += len;
	return true;
}

static int serve_address_parse_path(const char *path, struct serve_address *address,
				    struct errbuf *e)
{
	if (!*path)
		return errbuf_set(e, ERR_INVALID, "unix: names no path");
	if (strlen(path) >= LOOP_PATH_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID,
				  "the path of a socket has at most %d bytes, unlike %s",
				  LOOP_PATH_MAX_BYTES - 1, path);
	*address = (struct serve_address){.path = path};
	return 0;
}

static int serve_address_parse(const char *text, struct serve_address *address, struct errbuf *e)
{
	if (serve_address_begins(&text, "unix:"))
		return serve_address_parse_path(text, address, e);
	bool tls = serve_address_begins(&text, "tls:");
	bool plain = !tls && serve_address_begins(&text, "plain:");
	*address = (struct serve_address){.tls = tls, .plain = plain};
	int err = loop_address_parse(slice_of(text), &address->address, e);
	if (err || tls || plain || loop_address_is_loopback(&address->address))
		return err;
	return errbuf_set(e, ERR_INVALID,
			  "%s is reached from other machines, and who stands between could read "
			  "what is sent: tls:%s encrypts it; plain:%s does not, where the network "
			  "is safe by itself",
			  text, text, text);
}

/* Preset or configured. */
static int serve_addresses_take(const struct conf *conf, size_t item, const char *text,
				struct serve_addresses *addresses, struct errbuf *e)
{
	if (addresses->count == SERVE_ADDRESSES_MAX)
		errbuf_set(e, ERR_LIMIT, "there are more than %d addresses", SERVE_ADDRESSES_MAX);
	else if (!serve_address_parse(text, &addresses->list[addresses->count], e)) {
		addresses->count++;
		return 0;
	}
	return conf_refuse_item(conf, CONF_ID_listen, item, e);
}

/* The pair of this configuration. */
static int serve_addresses_read_pair(const struct conf *conf, struct tls_context **context,
				     struct errbuf *e)
{
	struct errbuf warning = {""};
	bool has_certificate = conf->tls_certificate_file[0], key_is_wrong;
	if (!has_certificate || !conf->tls_key_file[0]) {
		errbuf_set(e, ERR_INVALID, "%s is not given, which an address with tls: needs",
			   has_certificate ? "tls.key_file" : "tls.certificate_file");
		return conf_refuse(conf, CONF_ID_listen, e);
	}
	if (tls_context_for_server(files_real(), clock_real(), conf->tls_certificate_file,
				   conf->tls_key_file, &serve_protocols, context, &key_is_wrong,
				   &warning, e))
		return conf_refuse(
			conf, key_is_wrong ? CONF_ID_tls_key_file : CONF_ID_tls_certificate_file,
			e);
	if (warning.text[0])
		log_warn("%s", warning.text);
	return 0;
}

/* A path that begins an address of ours as well would be taken off that, too. */
static int serve_addresses_check_prefix(struct slice prefix, struct errbuf *e)
{
	for (size_t i = 0; i < api_route_count && prefix.len; i++) {
		struct slice path = slice_of(api_routes[i].path);
		bool begins =
			path.len >= prefix.len && memcmp(path.data, prefix.data, prefix.len) == 0;
		if (begins && (path.len == prefix.len || path.data[prefix.len] == '/'))
			return errbuf_set(e, ERR_INVALID,
					  "its path %.*s is one of the server's own",
					  (int)prefix.len, prefix.data);
	}
	return 0;
}

static int serve_addresses_read_outside(const struct conf *conf, struct http_outside *outside,
					struct errbuf *e)
{
	const struct conf_list *list = &conf->http_trusted_proxies;
	int err = 0;
	for (size_t i = 0; i < list->count; i++) {
		struct loop_network *next = &outside->proxies.list[outside->proxies.count];
		if (strcmp(list->items[i], "unix") == 0)
			outside->proxies_on_paths = true;
		else if (loop_network_parse(slice_of(list->items[i]), next, e))
			return conf_refuse_item(conf, CONF_ID_http_trusted_proxies, i, e);
		else
			outside->proxies.count++;
	}
	if (conf->http_external_url[0]) {
		err = http_external_parse(conf->http_external_url, outside, e);
		err = err ? err : serve_addresses_check_prefix(outside->prefix, e);
	}
	return err ? conf_refuse(conf, CONF_ID_http_external_url, e) : 0;
}

int serve_addresses_read(const struct conf *conf, const char *preset,
			 struct serve_addresses *addresses, struct errbuf *e)
{
	bool told = conf->origins[CONF_ID_listen].file != NULL;
	bool speaks_tls = false;
	*addresses = (struct serve_addresses){.tls.handshake_ms = conf->http_header_timeout_ms};
	if (told && !conf->listen.count) {
		errbuf_set(e, ERR_INVALID, "names no address");
		return conf_refuse(conf, CONF_ID_listen, e);
	}
	for (size_t i = 0; i < (told ? conf->listen.count : 1); i++) {
		const char *text = told || !preset ? conf->listen.items[i] : preset;
		int err = serve_addresses_take(conf, i, text, addresses, e);
		if (err)
			return err;
		speaks_tls = speaks_tls || addresses->list[i].tls;
	}
	int err = serve_addresses_read_outside(conf, &addresses->outside, e);
	if (!err && speaks_tls)
		err = serve_addresses_read_pair(conf, &addresses->tls.context, e);
	return err;
}

void serve_addresses_release(struct serve_addresses *addresses)
{
	tls_context_release(addresses->tls.context);
	addresses->tls.context = NULL;
}

/* ---- Listening ------------------------------------------------------------------------------- */

static int serve_address_listen(const struct serve_address *address, const struct loop_tls *tls,
				struct http_server *http, struct errbuf *e)
{
	if (address->path)
		return http_server_listen_path(http, address->path, HTTP_FOR_PROXIES, e);
	if (address->tls)
		return http_server_listen_tls(http, &address->address, tls, e);
	return http_server_listen(http, &address->address, e);
}

int serve_addresses_check_reach(const struct serve_addresses *addresses, const struct conf *conf,
				const char *why, struct errbuf *e)
{
	char text[LOOP_ADDRESS_TEXT_BYTES];
	for (size_t i = 0; i < addresses->count; i++) {
		const struct serve_address *address = &addresses->list[i];
		if (address->path || loop_address_is_loopback(&address->address))
			continue;
		errbuf_set(e, ERR_INVALID, "%s is reached from other machines, but %s",
			   loop_address_text(&address->address, text), why);
		return conf_refuse_item(conf, CONF_ID_listen, i, e);
	}
	return 0;
}

int serve_addresses_listen(struct serve_addresses *addresses, const struct conf *conf,
			   struct http_server *http, struct errbuf *e)
{
	for (size_t i = 0; i < addresses->count; i++) {
		struct serve_address *address = &addresses->list[i];
		if (serve_address_listen(address, &addresses->tls, http, e))
			return conf_refuse_item(conf, CONF_ID_listen, i, e);
		if (!address->path)
			address->address = http_server_address(http);
	}
	return 0;
}

void serve_addresses_renew(const struct serve_addresses *next, struct http_server *http)
{
	if (next->tls.context)
		http_server_renew_tls(http, &next->tls);
}

void serve_addresses_listen_for_commands(struct serve_addresses *addresses, const char *data,
					 struct http_server *http)
{
	struct errbuf e = {""};
	int len =
		snprintf(addresses->socket, sizeof(addresses->socket), SERVE_SOCKET_OF_DATA, data);
	int err = len < LOOP_PATH_MAX_BYTES
			  ? http_server_listen_path(http, addresses->socket, HTTP_FOR_COMMANDS, &e)
			  : errbuf_set(&e, ERR_LIMIT,
				       "the path of a socket has at most %d bytes, "
				       "and " SERVE_SOCKET_OF_DATA " has %d",
				       LOOP_PATH_MAX_BYTES - 1, data, len);
	if (!err)
		return;
	addresses->socket[0] = 0;
	log_warn("commands of this machine have no socket, and need --server and a token: %s",
		 e.text);
}

void serve_addresses_print(const struct serve_addresses *addresses, struct buf *out)
{
	char text[LOOP_ADDRESS_TEXT_BYTES];
	for (size_t i = 0; i < addresses->count; i++) {
		const struct serve_address *address = &addresses->list[i];
		buf_append_text(out, i ? ", " : "");
		if (address->path)
			buf_printf(out, "unix:%s", address->path);
		else
			buf_printf(out, "%s://%s/", address->tls ? "https" : "http",
				   loop_address_text(&address->address, text));
	}
}

/* By the network if that is not encrypted, since no certificate is in the way there. */
bool serve_addresses_own(const struct serve_addresses *addresses, char url[SERVE_URL_BYTES])
{
	char text[LOOP_ADDRESS_TEXT_BYTES];
	const char *path = addresses->socket;
	for (size_t i = 0; i < addresses->count; i++) {
		const struct serve_address *address = &addresses->list[i];
		if (!address->path && !address->tls) {
			snprintf(url, SERVE_URL_BYTES, "http://%s",
				 loop_address_text(&address->address, text));
			return true;
		}
		if (address->path && !*path)
			path = address->path;
	}
	snprintf(url, SERVE_URL_BYTES, HTTP_CLIENT_UNIX "%s", path);
	return *path;
}

/* ---- Networks -------------------------------------------------------------------------------- */

int serve_networks_read(const struct conf *conf, enum conf_id id, struct loop_networks *networks,
			struct errbuf *e)
{
	struct conf_list list;
	_Static_assert((int)CONF_LIST_MAX <= (int)LOOP_NETWORKS_MAX, "a list has room");
	ASSERT(conf_options[id].type == CONF_LIST);
	memcpy(&list, (const char *)conf + conf_options[id].offset, sizeof(list));
	networks->count = list.count;
	for (size_t i = 0; i < list.count; i++) {
		if (loop_network_parse(slice_of(list.items[i]), &networks->list[i], e))
			return conf_refuse_item(conf, id, i, e);
	}
	return 0;
}
