#include "http/client.h"

#include <curl/curl.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "wire/json.h"

enum {
	CONNECT_TIMEOUT_S = 10,
	READ_BYTES = 512 << 10, /* at once */
	SENTENCE_MAX_BYTES = 1024,
	URL_MAX_BYTES = 1 << 20,
	TOKEN_HEADER_BYTES = 256,
	JSON_ARENA_MAX_BYTES = 64 << 20,
};

struct http_client {
	struct http_client_options options;
	CURL *curl;
	struct http_call *call;                 /* under way */
	bool has_begun;                         /* its answer's body has */
	char authorization[TOKEN_HEADER_BYTES]; /* a header; empty: none */
	int fd;                                 /* of the connection, which libcurl owns */
	bool is_of_other;                       /* another user listens there */
	char error_text[CURL_ERROR_SIZE];
};

struct http_client *http_client_new(const struct http_client_options *options)
{
	struct http_client *http = mem_zalloc(sizeof(*http));
	http->options = *options;
	http->curl = curl_easy_init();
	ASSERT(http->curl);
	if (options->token) {
		int len = snprintf(http->authorization, sizeof(http->authorization),
				   "Authorization: Bearer %s", options->token);
		ASSERT(len < TOKEN_HEADER_BYTES); /* whoever has read it has looked at it */
		http->options.token = NULL;       /* the caller's, who may forget it now */
	}
	return http;
}

void http_client_free(struct http_client *http)
{
	if (!http)
		return;
	curl_easy_cleanup(http->curl);
	explicit_bzero(http->authorization, sizeof(http->authorization));
	mem_free(http);
}

/* NULL: the server is one of the network. */
static const char *http_client_path(const struct http_client *http)
{
	static const char unix_scheme[] = HTTP_CLIENT_UNIX;
	const char *server = http->options.server;
	size_t len = sizeof(unix_scheme) - 1;
	return strncmp(server, unix_scheme, len) == 0 ? server + len : NULL;
}

/* Whether the text begins so, in letters of either case. */
static bool http_client_begins(const char *text, const char *scheme)
{
	return strncasecmp(text, scheme, strlen(scheme)) == 0;
}

/* Without a scheme it is HOST:PORT, of http. */
static int http_client_check_server(const struct http_client *http, struct errbuf *e)
{
	const char *server = http->options.server, *path = http_client_path(http);
	const char *scheme_end = strstr(server, "://");
	const char *host = scheme_end ? scheme_end + strlen("://") : server;
	if (path && !*path)
		return errbuf_set(e, ERR_INVALID, "%s: unix: names no path of a socket", server);
	if (path && strlen(path) >= LOOP_PATH_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "the path of a socket has at most %d bytes: %s",
				  LOOP_PATH_MAX_BYTES - 1, path);
	if (path)
		return 0;
	if (scheme_end && !http_client_begins(server, "http://") &&
	    !http_client_begins(server, "https://"))
		return errbuf_set(
			e, ERR_INVALID,
			"%s: a server is http://HOST:PORT, https://HOST:PORT or unix:PATH", server);
	if (!*host || strchr("/:?#", *host))
		return errbuf_set(e, ERR_INVALID, "%s: the URL of the server names no host",
				  server);
	if (strpbrk(host, "?#"))
		return errbuf_set(e, ERR_INVALID, "%s: the URL of a server has no `?` and no `#`",
				  server);
	return 0;
}

/* ---- What libcurl asks back --------------------------------------------------------------------
 */

static void http_client_take_headers(CURL *curl, struct http_call *call);

static size_t http_client_take_body(char *data, size_t size, size_t count, void *user)
{
	struct http_client *http = user;
	struct http_call *call = http->call;
	struct slice piece = {data, size * count};

	if (!http->has_begun)
		http_client_take_headers(http->curl, call);
	http->has_begun = true;
	return !call->take || call->take(call->owner, call->status, piece) ? piece.len
									   : piece.len + 1;
}

static int http_client_look_at_time(void *user, UNUSED curl_off_t download,
				    UNUSED curl_off_t downloaded, UNUSED curl_off_t upload,
				    UNUSED curl_off_t uploaded)
{
	const struct http_client *http = user;
	return atomic_load(http->options.cancelled);
}

static int http_client_note_socket(void *user, curl_socket_t fd, UNUSED curlsocktype purpose)
{
	struct http_client *http = user;
	http->fd = fd;
	return CURL_SOCKOPT_OK;
}

/* There is a connection, and nothing was sent on it yet. Whose socket the path led to before does
 * not count: another one may have got that name since. */
static int http_client_look_at_peer(void *user, UNUSED char *peer, UNUSED char *own,
				    UNUSED int peer_port, UNUSED int own_port)
{
	struct http_client *http = user;
	struct ucred listens;
	socklen_t len = sizeof(listens);
	bool known = getsockopt(http->fd, SOL_SOCKET, SO_PEERCRED, &listens, &len) == 0;
	http->is_of_other = !known || (listens.uid != 0 && listens.uid != geteuid());
	return http->is_of_other ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

/* ---- A call ------------------------------------------------------------------------------------
 */

static void http_client_set_up(struct http_client *http, const char *url)
{
	const struct http_client_options *o = &http->options;
	CURL *curl = http->curl;

	curl_easy_reset(curl); /* keeps the connection */
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, http_client_path(http));
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (o->ca) {
		curl_easy_setopt(curl, CURLOPT_CAINFO, o->ca);
		curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
	}
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_TIMEOUT_S);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)o->timeout_ms);
	if (o->silent_max_s) {
		curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)o->silent_max_s);
	}
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	if (o->compressed)
		curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "granary/" GRANARY_VERSION);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, http->error_text);
	curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, (long)READ_BYTES);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, http_client_take_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, http);
	if (o->own_socket && http_client_path(http)) {
		curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, http_client_note_socket);
		curl_easy_setopt(curl, CURLOPT_SOCKOPTDATA, http);
		curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, http_client_look_at_peer);
		curl_easy_setopt(curl, CURLOPT_PREREQDATA, http);
	}
	if (o->cancelled) {
		curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
		curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, http_client_look_at_time);
		curl_easy_setopt(curl, CURLOPT_XFERINFODATA, http);
	}
}

static struct curl_slist *http_client_set_headers(struct http_client *http,
						  const struct http_call *call)
{
	struct curl_slist *headers = NULL;
	CURL *curl = http->curl;

	for (size_t i = 0; i < CLIENT_HEADERS_MAX && call->headers[i]; i++)
		headers = curl_slist_append(headers, call->headers[i]);
	if (call->body.data) {
		headers = curl_slist_append(headers, "Expect:");
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, call->body.data);
	}
	if (http->authorization[0])
		headers = curl_slist_append(headers, http->authorization);
	if (call->method)
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, call->method);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	return headers;
}

/* The numbers are those of verify(1ssl) and X509_STORE_CTX_get_error(3ssl). */
enum {
	VERIFY_NOT_DONE = 1, /* libcurl's, until OpenSSL has looked at the certificate */
	VERIFY_NOT_YET_VALID = 9,
	VERIFY_HAS_EXPIRED = 10,
};

/* The certificate is not to be trusted. libcurl looks for the name by itself, and before it asks
 * OpenSSL what it has found. */
static void http_client_explain_certificate(const struct http_client *http, struct errbuf *e)
{
	const char *ca = http->options.ca;
	long verified = 0;
	curl_easy_getinfo(http->curl, CURLINFO_SSL_VERIFYRESULT, &verified);
	if (verified == 0 || verified == VERIFY_NOT_DONE)
		errbuf_set(e, ERR_INVALID,
			   "%s: the server's certificate is for another name than this address",
			   http->options.server);
	else if (verified == VERIFY_HAS_EXPIRED || verified == VERIFY_NOT_YET_VALID)
		errbuf_set(e, ERR_INVALID, "%s: the server's certificate %s", http->options.server,
			   verified == VERIFY_HAS_EXPIRED ? "has expired" : "is not valid yet");
	else
		errbuf_set(
			e, ERR_INVALID,
			"%s: the server's certificate is signed by no authority that %s trusts%s",
			http->options.server, ca ? ca : "this system",
			ca ? "" : "; --ca, or GRANARY_CA_FILE, names a file of others");
}

/* What a server of TLS answers to somebody who does not speak it, libcurl finds out by chance: an
 * alert, or nothing where the end of the connection came first (http_client_explain_nothing). */
static bool http_client_speaks_other(const struct http_client *http, CURLcode code)
{
	bool secure = http_client_begins(http->options.server, "https:");
	return code == (secure ? CURLE_SSL_CONNECT_ERROR : CURLE_UNSUPPORTED_PROTOCOL);
}

/* A socket speaks no TLS. */
static void http_client_explain_nothing(const struct http_client *http, struct errbuf *e)
{
	bool may_be_tls =
		!http_client_path(http) && !http_client_begins(http->options.server, "https:");
	errbuf_set(e, ERR_INVALID,
		   "%s: the connection ended before an answer came: the server was stopped, or the "
		   "connection was cut%s",
		   http->options.server,
		   may_be_tls ? ", or what answers there does not speak plain HTTP, perhaps "
				"https://"
			      : "");
}

static int http_client_fail(const struct http_client *http, CURLcode code, struct errbuf *e)
{
	const char *server = http->options.server, *path = http_client_path(http);
	const char *text = http->error_text[0] ? http->error_text : curl_easy_strerror(code);
	int err = code == CURLE_ABORTED_BY_CALLBACK  ? ERR_CANCELLED
		  : code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT
		  : code == CURLE_COULDNT_CONNECT    ? ERR_NOT_FOUND
						     : ERR_INVALID;
	long number = 0;
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		http_client_explain_certificate(http, e);
	else if (code == CURLE_SSL_CACERT_BADFILE)
		errbuf_set(e, err,
			   "%s: it holds no certificate that can be read, so that of %s cannot be "
			   "checked",
			   http->options.ca ? http->options.ca : "this system", server);
	else if (code == CURLE_GOT_NOTHING)
		http_client_explain_nothing(http, e);
	else if (http_client_speaks_other(http, code))
		errbuf_set(e, err, "%s: what answers there does not speak %s: %s", server,
			   http_client_begins(server, "https:") ? "TLS, perhaps http://"
			   : path                               ? "HTTP"
								: "plain HTTP, perhaps https://",
			   text);
	else if (path && err == ERR_NOT_FOUND) {
		curl_easy_getinfo(http->curl, CURLINFO_OS_ERRNO, &number);
		errbuf_set(e, err, "%s: %s. Is the server running?", server,
			   err_text((int)-number));
	} else
		errbuf_set(e, err, "%s: %s%s", server, text,
			   err == ERR_NOT_FOUND ? ". Is the server running?" : "");
	return err;
}

static void http_client_take_headers(CURL *curl, struct http_call *call)
{
	struct curl_header *header;
	curl_off_t retry_after_s = 0;

	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &call->status);
	curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry_after_s);
	call->retry_after_ms = (int64_t)retry_after_s * 1000;
	call->cut[0] = 0;
	if (curl_easy_header(curl, "X-Granary-Cut", 0, CURLH_HEADER | CURLH_TRAILER, -1, &header) ==
	    CURLHE_OK)
		snprintf(call->cut, sizeof(call->cut), "%s", header->value);
	call->etag[0] = 0;
	if (curl_easy_header(curl, "ETag", 0, CURLH_HEADER, -1, &header) == CURLHE_OK &&
	    strlen(header->value) <= CLIENT_ETAG_MAX_BYTES)
		snprintf(call->etag, sizeof(call->etag), "%s", header->value);
	call->granularities[0] = 0;
	if (curl_easy_header(curl, "X-Granary-Grain", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
		snprintf(call->granularities, sizeof(call->granularities), "%s", header->value);
	call->note[0] = 0;
	if (curl_easy_header(curl, "X-Granary-Note", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
		snprintf(call->note, sizeof(call->note), "%s", header->value);
	call->offset = call->lost = call->left_out = 0;
	if (curl_easy_header(curl, "X-Granary-Offset", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
		call->offset = strtoll(header->value, NULL, 10);
	if (curl_easy_header(curl, "X-Granary-Lost", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
		call->lost = strtoll(header->value, NULL, 10);
	if (curl_easy_header(curl, "X-Granary-Left-Out", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
		call->left_out = strtoll(header->value, NULL, 10);
	if (call->next)
		buf_clear(call->next);
	if (call->next &&
	    curl_easy_header(curl, "X-Granary-Next", 0, CURLH_HEADER, -1, &header) == CURLHE_OK)
		buf_append_text(call->next, header->value);
}

static CURLcode http_client_perform(struct http_client *http, const struct http_call *call,
				    const char *url)
{
	http->has_begun = false;
	http->error_text[0] = 0;
	http_client_set_up(http, url);
	struct curl_slist *headers = http_client_set_headers(http, call);
	CURLcode code = curl_easy_perform(http->curl);
	curl_slist_free_all(headers);
	return code;
}

int http_client_call(struct http_client *http, struct http_call *call, struct errbuf *e)
{
	const char *server = http->options.server, *path = http_client_path(http);
	struct buf url;

	int err = http_client_check_server(http, e);
	if (err)
		return err;
	if (path)
		server = "http://localhost";
	size_t server_len = strlen(server);
	while (server_len && server[server_len - 1] == '/')
		server_len--;
	buf_init(&url, URL_MAX_BYTES);
	buf_printf(&url, "%.*s%s", (int)server_len, server, call->path);
	buf_append_char(&url, '\0');
	http->call = call;
	http->is_of_other = false;
	CURLcode code = http_client_perform(http, call, url.data);
	http_client_take_headers(http->curl, call);
	http->call = NULL;
	buf_release(&url);
	if (http->is_of_other)
		return errbuf_set(e, ERR_DENIED,
				  "%s is another user's, and was not named: nothing is sent there; "
				  "--server names a server",
				  http->options.server);
	return code == CURLE_OK ? 0 : http_client_fail(http, code, e);
}

/* ---- Errors ------------------------------------------------------------------------------------
 */

static struct slice http_client_find_sentence(struct slice body, struct arena *arena)
{
	static const struct slice nothing = SLICE("no reason given");
	const struct json *error, *list;
	struct slice text;
	struct json *root;

	if (json_parse(body, arena, &root, NULL))
		return body.len ? body : nothing;
	if (json_get_text(json_member(root, "error"), "message", &text, NULL) == 0)
		return text;
	list = json_member(root, "errors");
	error = list && list->type == JSON_T_ARRAY ? list->first : NULL;
	if (json_get_text(error, "error", &text, NULL) == 0 ||
	    json_get_text(root, "error", &text, NULL) == 0)
		return text;
	return body;
}

void http_client_sentence(struct slice body, char *sentence, size_t sentence_bytes)
{
	struct arena arena;

	arena_init(&arena, JSON_ARENA_MAX_BYTES);
	struct slice text = http_client_find_sentence(body, &arena);
	size_t len = text.len < sentence_bytes ? text.len : sentence_bytes - 1;
	memcpy(sentence, text.data, len);
	sentence[len] = 0;
	arena_release(&arena);
}
