#include "agent/pull.h"

#include "base/mem.h"
#include "http/client.h"

struct pull {
	struct http_client *http;
	char *server;     /* http://HOST:PORT */
	const char *path; /* behind that, at least `/` */
	char *path_text;
	struct buf body;
};

struct pull *pull_new(struct slice url, int64_t timeout_ms, const atomic_bool *cancelled)
{
	struct pull *pull = mem_zalloc(sizeof(*pull));
	const char *host = memmem(url.data, url.len, "//", 2);
	ASSERT(host); /* adaptors_take_url() */
	host += 2;
	size_t server_len = (size_t)(host - url.data) +
			    strcspn(host, "/? "); /* one of these or a zero ends it */
	struct slice path = {url.data + server_len, url.len - server_len};
	pull->server = mem_copy_text((struct slice){url.data, server_len});
	pull->path_text = mem_copy_text(path);
	pull->path = path.len ? pull->path_text : "/";
	pull->http = http_client_new(&(struct http_client_options){
		.server = pull->server,
		.timeout_ms = timeout_ms,
		.cancelled = cancelled,
		.compressed = true,
	});
	buf_init(&pull->body, PULL_BODY_MAX_BYTES);
	return pull;
}

void pull_free(struct pull *pull)
{
	http_client_free(pull->http);
	buf_release(&pull->body);
	mem_free(pull->path_text);
	mem_free(pull->server);
	mem_free(pull);
}

static bool pull_is_good(long status)
{
	return status >= 200 && status < 300;
}

/* The body of another status is of no use, however long it is. */
static bool pull_take(void *owner, long status, struct slice piece)
{
	struct pull *pull = owner;
	return pull_is_good(status) && buf_append(&pull->body, piece.data, piece.len) == 0;
}

int pull_get(struct pull *pull, struct slice *body, struct errbuf *e)
{
	struct http_call call = {.path = pull->path, .take = pull_take, .owner = pull};
	buf_clear(&pull->body);
	int err = http_client_call(pull->http, &call, e);
	if (pull->body.failed)
		return errbuf_set(e, ERR_LIMIT, "%s%s: the answer has more than %d KiB",
				  pull->server, pull->path, PULL_BODY_MAX_BYTES >> 10);
	if (call.status && !pull_is_good(call.status))
		return errbuf_set(e, ERR_INVALID, "%s%s: the answer has the status %ld",
				  pull->server, pull->path, call.status);
	*body = buf_slice(&pull->body);
	return err;
}
