#include "http/client.h"

#include <curl/curl.h>

#include "base/buf.h"
#include "base/mem.h"
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
	}
	return http;
}

void http_client_free(struct http_client *http)
{
	if (!http)
		return;
	curl_easy_cleanup(http->curl);
	mem_free(http);
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

/* ---- A call ------------------------------------------------------------------------------------
 */

static void http_client_set_up(struct http_client *http, const char *url)
{
	const struct http_client_options *o = &http->options;
	CURL *curl = http->curl;

	curl_easy_reset(curl); /* keeps the connection */
	curl_easy_setopt(curl, CURLOPT_URL, url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
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

static int http_client_fail(const struct http_client *http, CURLcode code, struct errbuf *e)
{
	int err = code == CURLE_ABORTED_BY_CALLBACK  ? ERR_CANCELLED
		  : code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT
		  : code == CURLE_COULDNT_CONNECT    ? ERR_NOT_FOUND
						     : ERR_INVALID;
	return errbuf_set(e, err, "%s: %s%s", http->options.server,
			  http->error_text[0] ? http->error_text : curl_easy_strerror(code),
			  err == ERR_NOT_FOUND ? ". Is the server running?" : "");
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

int http_client_call(struct http_client *http, struct http_call *call, struct errbuf *e)
{
	size_t server_len = strlen(http->options.server);
	struct buf url;

	while (server_len && http->options.server[server_len - 1] == '/')
		server_len--;
	buf_init(&url, URL_MAX_BYTES);
	buf_printf(&url, "%.*s%s", (int)server_len, http->options.server, call->path);
	buf_append_char(&url, '\0');
	http->call = call;
	http->has_begun = false;
	http->error_text[0] = 0;
	http_client_set_up(http, url.data);
	struct curl_slist *headers = http_client_set_headers(http, call);
	CURLcode code = curl_easy_perform(http->curl);
	http_client_take_headers(http->curl, call);
	http->call = NULL;
	curl_slist_free_all(headers);
	buf_release(&url);
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
