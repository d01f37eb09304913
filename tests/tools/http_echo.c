/* A server of nothing but HTTP, for tests/e2e/test_http_*.py: routes that answer at once,
 * late, piece by piece, never, or half. Prints `listening ADDR:PORT`, ends cleanly on SIGTERM.
 *
 *   http_echo [NAME=NUMBER]...     limits by their names, as header_timeout_ms=200, and grace_ms;
 *       certificate=FILE key=FILE  by TLS */
#include <ctype.h>
#include <signal.h>

#include "base/stats.h"
#include "http/http.h"
#include "wire/json.h"

enum { BODY_MAX_BYTES = 4 << 20, DECODED_MAX_BYTES = 16 << 20, PIECE_BYTES = 16 << 10 };

static struct {
	struct loop *loop;
	struct http_server *server;
	unsigned begun, ended, drained, events;
	int64_t grace_ms;
	const char *pair[2]; /* certificate, key; NULL: no TLS */ /* of a stop */
	int last_abort;
	unsigned aborted;
} tool;

static uint64_t number_param(struct http_request *request, const char *name, uint64_t otherwise)
{
	struct slice text = http_param(request, name);
	uint64_t value = 0;
	if (!text.data)
		return otherwise;
	for (size_t i = 0; i < text.len && isdigit((uint8_t)text.data[i]); i++)
		value = value * 10 + (uint64_t)(text.data[i] - '0');
	return value;
}

static void count_begin(struct http_request *request)
{
	(void)request;
	tool.begun++;
}

static void count_abort(struct http_request *request, int err)
{
	(void)request;
	tool.aborted++;
	tool.last_abort = err;
}

/* ---- /hello, /gather, /counts ---------------------------------------------------------------- */

static void hello_end(struct http_request *request)
{
	http_reply(request, 200, "text/plain", SLICE("hello\n"));
}

static const struct http_handler hello = {.end = hello_end};

static void gather_end(struct http_request *request)
{
	struct slice type = http_header(request, "Content-Type");
	char text[64];
	snprintf(text, sizeof(text), "%.*s", (int)(type.len < 60 ? type.len : 0), type.data);
	http_reply(request, 200, type.len ? text : "application/octet-stream",
		   buf_slice(&request->body));
}

static const struct http_handler gatherer = {
	.begin = count_begin, .end = gather_end, .abort = count_abort};

static void counts_end(struct http_request *request)
{
	struct buf out;
	buf_init(&out, 1000);
	buf_printf(&out,
		   "{\"begun\":%u,\"aborted\":%u,\"last_abort\":%d,\"drained\":%u,"
		   "\"events\":%u,\"write_timeouts\":%lld,\"memory_bytes\":%lld}",
		   tool.begun, tool.aborted, tool.last_abort, tool.drained, tool.events,
		   (long long)stat_get(STAT_http_timeouts_write),
		   (long long)stat_get(STAT_http_memory_bytes));
	http_reply(request, 200, "application/json", buf_slice(&out));
	buf_release(&out);
}

static const struct http_handler counts = {.end = counts_end};

/* ---- /length: the body piece by piece, only counted; pauses after each piece with ?pause=MS -- */

struct counting {
	struct http_request *request;
	struct loop_timer *timer;
	uint64_t bytes, sum, pieces, pause_ms;
};

static void counting_resume(void *owner)
{
	struct counting *counting = owner;
	http_request_resume(counting->request);
}

static void length_begin(struct http_request *request)
{
	struct counting *counting = mem_zalloc(sizeof(*counting));
	tool.begun++;
	counting->request = request;
	counting->pause_ms = number_param(request, "pause", 0);
	counting->timer = loop_timer_new(tool.loop, counting_resume, counting);
	request->owner = counting;
}

static void counting_free(struct counting *counting)
{
	loop_timer_close(counting->timer);
	mem_free(counting);
}

static void length_body(struct http_request *request, struct slice piece)
{
	struct counting *counting = request->owner;
	counting->bytes += piece.len;
	counting->pieces++;
	for (size_t i = 0; i < piece.len; i += 4096)
		counting->sum += (uint8_t)piece.data[i];
	if (counting->pause_ms) {
		http_request_pause(request);
		loop_timer_start(counting->timer, counting->pause_ms, 0);
	}
}

static void length_end(struct http_request *request)
{
	struct counting *counting = request->owner;
	char text[64];
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)counting->bytes);
	counting_free(counting);
	http_reply(request, 200, "text/plain", slice_of(text));
}

static void length_abort(struct http_request *request, int err)
{
	counting_free(request->owner);
	count_abort(request, err);
}

static const struct http_handler length = {
	.begin = length_begin, .body = length_body, .end = length_end, .abort = length_abort};

/* ---- /mirror: the body as it comes, streamed back, pausing while the client does not read ---- */

static void mirror_begin(struct http_request *request)
{
	tool.begun++;
	http_stream_begin(request, 200, "application/octet-stream");
}

static void mirror_body(struct http_request *request, struct slice piece)
{
	int err = http_stream_write(request, piece);
	ASSERT(err == 0 || err == ERR_BUSY);
	if (err == ERR_BUSY)
		http_request_pause(request);
}

static void mirror_drained(struct http_request *request)
{
	tool.drained++;
	http_request_resume(request);
}

static const struct http_handler mirror = {.begin = mirror_begin,
					   .body = mirror_body,
					   .end = http_stream_end,
					   .abort = count_abort,
					   .drained = mirror_drained};

/* ---- /stream?bytes=N: a pattern, as fast as the client reads; ?break=N breaks off after N ---- */

struct streaming {
	uint64_t sent, bytes, break_at;
	size_t piece_bytes;
	char piece[PIECE_BYTES];
};

/* Byte number i of every stream. */
static char pattern(uint64_t i)
{
	return (char)('a' + i % 23);
}

static void stream_on(struct http_request *request)
{
	struct streaming *streaming = request->owner;
	while (streaming->sent < streaming->bytes) {
		uint64_t left = streaming->bytes - streaming->sent;
		size_t len = left < streaming->piece_bytes ? (size_t)left : streaming->piece_bytes;
		if (streaming->sent >= streaming->break_at) {
			mem_free(streaming);
			http_stream_break(request);
			return;
		}
		for (size_t i = 0; i < len; i++)
			streaming->piece[i] = pattern(streaming->sent + i);
		streaming->sent += len;
		int err = http_stream_write(request, (struct slice){streaming->piece, len});
		if (err == ERR_BUSY)
			return;
		ASSERT(!err);
	}
	mem_free(streaming);
	http_stream_end(request);
}

static void stream_end(struct http_request *request)
{
	struct streaming *streaming = mem_zalloc(sizeof(*streaming));
	tool.begun++;
	streaming->bytes = number_param(request, "bytes", 100000);
	streaming->break_at = number_param(request, "break", UINT64_MAX);
	streaming->piece_bytes = (size_t)number_param(request, "piece", PIECE_BYTES);
	ASSERT(streaming->piece_bytes >= 1 && streaming->piece_bytes <= PIECE_BYTES);
	request->owner = streaming;
	http_stream_begin(request, 200, "text/plain");
	stream_on(request);
}

static void stream_abort(struct http_request *request, int err)
{
	mem_free(request->owner);
	count_abort(request, err);
}

static void stream_drained(struct http_request *request)
{
	tool.drained++;
	stream_on(request);
}

static const struct http_handler stream = {
	.end = stream_end, .abort = stream_abort, .drained = stream_drained};

/* ---- /later?ms=N: answers from a timer; ?never=1 does not ------------------------------------ */

struct waiting {
	struct http_request *request;
	struct loop_timer *timer;
};

static void later_reply(void *owner)
{
	struct waiting *waiting = owner;
	struct http_request *request = waiting->request;
	loop_timer_close(waiting->timer);
	mem_free(waiting);
	struct slice say = http_param(request, "say");
	http_reply(request, 200, "text/plain", say.data ? say : SLICE("later\n"));
}

static void later_end(struct http_request *request)
{
	struct waiting *waiting = mem_zalloc(sizeof(*waiting));
	tool.begun++;
	waiting->request = request;
	waiting->timer = loop_timer_new(tool.loop, later_reply, waiting);
	if (!http_param(request, "never").data)
		loop_timer_start(waiting->timer, number_param(request, "ms", 10), 0);
	request->owner = waiting;
}

static void later_abort(struct http_request *request, int err)
{
	struct waiting *waiting = request->owner;
	loop_timer_close(waiting->timer);
	mem_free(waiting);
	count_abort(request, err);
}

static const struct http_handler later = {.end = later_end, .abort = later_abort};

/* ---- /events: one event at once, then one each ?every=MS, for ever --------------------------- */

struct events {
	struct http_request *request;
	struct loop_timer *timer;
	unsigned number;
};

static void events_send(void *owner)
{
	struct events *events = owner;
	char text[64];
	snprintf(text, sizeof(text), "id: %u\ndata: number %u\n\n", events->number, events->number);
	events->number++;
	int err = http_stream_write(events->request, slice_of(text));
	ASSERT(!err);
}

static void events_end(struct http_request *request)
{
	tool.begun++;
	if (http_reply_head(request, "text/event-stream") ||
	    http_stream_begin_endless(request, "text/event-stream"))
		return;
	struct events *events = mem_zalloc(sizeof(*events));
	uint64_t every_ms = number_param(request, "every", 0);
	events->request = request;
	events->timer = loop_timer_new(tool.loop, events_send, events);
	request->owner = events;
	tool.events++;
	events_send(events);
	if (every_ms)
		loop_timer_start(events->timer, every_ms, every_ms);
}

static void events_abort(struct http_request *request, int err)
{
	struct events *events = request->owner;
	tool.events--;
	loop_timer_close(events->timer);
	mem_free(events);
	count_abort(request, err);
}

static void events_drained(struct http_request *request)
{
	(void)request;
}

static const struct http_handler event_stream = {
	.end = events_end, .abort = events_abort, .drained = events_drained};

/* ---- /early: refuses at the head, whatever the body ------------------------------------------ */

static void early_begin(struct http_request *request)
{
	http_reply_error(request, 409, "not now");
}

static void early_end(struct http_request *request)
{
	(void)request;
	ASSERT(false);
}

static const struct http_handler early = {.begin = early_begin, .end = early_end};

/* ---- /nothing, /whole?bytes=N ---------------------------------------------------------------- */

static void nothing_end(struct http_request *request)
{
	http_reply_header(request, "X-Nothing", "indeed");
	http_reply(request, 204, NULL, (struct slice){NULL, 0});
}

static const struct http_handler nothing = {.end = nothing_end};

static void whole_end(struct http_request *request)
{
	size_t bytes = (size_t)number_param(request, "bytes", 0);
	char *text = mem_alloc(bytes);
	for (size_t i = 0; i < bytes; i++)
		text[i] = pattern(i);
	http_reply(request, 200, "text/plain", (struct slice){text, bytes});
	mem_free(text);
}

static const struct http_handler whole = {.end = whole_end};

/* ---- /show: what was understood, as JSON ----------------------------------------------------- */

static void write_pair(struct json_writer *json, struct slice name, struct slice value)
{
	json_write_array_begin(json);
	json_write_string(json, name);
	json_write_string(json, value);
	json_write_array_end(json);
}

static void show_end(struct http_request *request)
{
	struct buf out;
	struct json_writer json;
	buf_init(&out, 8 << 20);
	json_writer_init(&json, &out);
	json_write_object_begin(&json);
	json_write_key(&json, "verb");
	json_write_text(&json, http_verb_text(request->verb));
	json_write_key(&json, "path");
	json_write_string(&json, request->path);
	json_write_key(&json, "segments");
	json_write_array_begin(&json);
	for (size_t i = 0; i < request->segment_count; i++)
		json_write_string(&json, request->segments[i]);
	json_write_array_end(&json);
	json_write_key(&json, "params");
	json_write_array_begin(&json);
	for (size_t i = 0; i < request->param_count; i++)
		write_pair(&json, request->params[i].name, request->params[i].value);
	json_write_array_end(&json);
	json_write_key(&json, "headers");
	json_write_array_begin(&json);
	for (size_t i = 0; i < request->header_count; i++)
		write_pair(&json, request->headers[i].name, request->headers[i].value);
	json_write_array_end(&json);
	json_write_object_end(&json);
	http_reply(request, 200, "application/json", buf_slice(&out));
	buf_release(&out);
}

static const struct http_handler show = {.end = show_end};

/* ---- The server ------------------------------------------------------------------------------ */

#define BODY BODY_MAX_BYTES, DECODED_MAX_BYTES
static const struct http_route routes[] = {
	{VERB_GET, "/hello", false, ROLE_READ, REACH_ALL, 0, 0, &hello, "Says hello.", NULL},
	{VERB_POST, "/gather", false, ROLE_WRITE, REACH_ALL, BODY, &gatherer,
	 "Gives the body back.", NULL},
	{VERB_PUT, "/gather", false, ROLE_WRITE, REACH_ALL, BODY, &gatherer, "Gives the body back.",
	 NULL},
	{VERB_GET, "/counts", false, ROLE_READ, REACH_ALL, 0, 0, &counts, "Counts.", NULL,
	 .always = true},
	{VERB_POST, "/length", false, ROLE_WRITE, REACH_ALL, BODY, &length, "Counts the body.",
	 NULL},
	{VERB_POST, "/flood", false, ROLE_WRITE, REACH_ALL, SIZE_MAX / 2, SIZE_MAX / 2, &length,
	 "Counts a body without limit.", NULL},
	{VERB_POST, "/mirror", false, ROLE_WRITE, REACH_ALL, 1 << 30, 0, &mirror,
	 "Streams the body.", NULL},
	{VERB_GET, "/stream", false, ROLE_READ, REACH_ALL, 0, 0, &stream, "Streams a pattern.",
	 NULL},
	{VERB_GET, "/later", false, ROLE_READ, REACH_ALL, 0, 0, &later, "Answers later.", NULL},
	{VERB_POST, "/early", false, ROLE_WRITE, REACH_ALL, 1 << 30, 0, &early, "Refuses.", NULL},
	{VERB_DELETE, "/nothing", false, ROLE_ADMIN, REACH_ALL, 0, 0, &nothing, "Has no content.",
	 NULL},
	{VERB_GET, "/whole", false, ROLE_READ, REACH_ALL, 0, 0, &whole, "A pattern at once.", NULL},
	{VERB_GET, "/events", false, ROLE_READ, REACH_ALL, 0, 0, &event_stream, "Sends events.",
	 NULL},
	{VERB_GET, "/open/events", false, ROLE_READ, REACH_ALL, 0, 0, &event_stream,
	 "Sends events to all.", NULL, .any_origin = true},
	{VERB_POST, "/open", false, ROLE_WRITE, REACH_ALL, BODY, &gatherer,
	 "Gives any page its body back.", NULL, .any_origin = true},
	{VERB_GET, "/show/", true, ROLE_READ, REACH_ALL, 0, 0, &show, "Shows the request.", NULL},
};
#undef BODY

struct limit {
	const char *name;
	size_t offset;
	size_t bytes;
};

#define LIMIT(member)                                                                              \
	{                                                                                          \
#member, offsetof(struct http_limits, member),                                     \
			sizeof(((struct http_limits *)NULL)->member)                               \
	}
static const struct limit limits_by_name[] = {
	LIMIT(connections_max),    LIMIT(per_address_max), LIMIT(headers_max),
	LIMIT(params_max),         LIMIT(head_max_bytes),  LIMIT(memory_max_bytes),
	LIMIT(unsent_max_bytes),   LIMIT(drain_max_bytes), LIMIT(header_timeout_ms),
	LIMIT(idle_timeout_ms),    LIMIT(body_timeout_ms), LIMIT(write_timeout_ms),
	LIMIT(progress_min_bytes), LIMIT(endless_max),
};
#undef LIMIT

static bool set_limit(struct http_limits *limits, const char *text)
{
	const char *equals = strchr(text, '=');
	if (strncmp(text, "grace_ms=", strlen("grace_ms=")) == 0) {
		tool.grace_ms = strtoll(equals + 1, NULL, 10);
		return true;
	}
	for (size_t i = 0; equals && i < ARRAY_LEN(limits_by_name); i++) {
		const struct limit *limit = &limits_by_name[i];
		if (!slice_equal((struct slice){text, (size_t)(equals - text)},
				 slice_of(limit->name)))
			continue;
		uint64_t value = strtoull(equals + 1, NULL, 10);
		memcpy((char *)limits + limit->offset, &value, limit->bytes); /* little endian */
		return true;
	}
	fprintf(stderr, "http_echo: no limit is called %s\n", text);
	return false;
}

static void on_stopped(void *owner)
{
	(void)owner;
	loop_stop(tool.loop);
}

static void on_term(void *owner, int signum)
{
	(void)owner;
	(void)signum;
	http_server_stop(tool.server, tool.grace_ms, on_stopped, NULL);
}

/* `certificate=FILE` and `key=FILE`: TLS is spoken. */
static bool set_pair(const char *text)
{
	static const char *const names[] = {"certificate=", "key="};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strncmp(text, names[i], strlen(names[i])) == 0) {
			tool.pair[i] = text + strlen(names[i]);
			return true;
		}
	}
	return false;
}

static int listen_at(const struct loop_address *address, const struct http_limits *limits,
		     struct errbuf *e)
{
	struct loop_tls tls = {.handshake_ms = limits->header_timeout_ms};
	struct errbuf warning;
	bool key_is_wrong;
	if (!tool.pair[0])
		return http_server_listen(tool.server, address, e);
	int err = tls_context_for_server(files_real(), clock_real(), tool.pair[0], tool.pair[1],
					 &(struct tls_protocols){{"http/1.1"}, 1}, &tls.context,
					 &key_is_wrong, &warning, e);
	err = err ? err : http_server_listen_tls(tool.server, address, &tls, e);
	tls_context_release(tls.context);
	return err;
}

int main(int argc, char **argv)
{
	static const char *const hosts[] = {"h"};
	struct http_limits limits = http_limits_default;
	tool.grace_ms = 500;
	limits.hosts = hosts;
	limits.host_count = ARRAY_LEN(hosts);
	struct loop_address address;
	struct loop_signal *term;
	struct errbuf e;
	char text[LOOP_ADDRESS_TEXT_BYTES];
	for (int i = 1; i < argc; i++) {
		if (!set_pair(argv[i]) && !set_limit(&limits, argv[i]))
			return 2;
	}
	tool.loop = loop_new();
	tool.server =
		http_server_new(tool.loop, clock_real(), &limits, routes, ARRAY_LEN(routes), NULL);
	if (loop_address_parse(SLICE("127.0.0.1:0"), &address, &e) ||
	    listen_at(&address, &limits, &e) ||
	    loop_signal_open(tool.loop, SIGTERM, on_term, NULL, &term)) {
		fprintf(stderr, "http_echo: %s\n", e.text);
		return 1;
	}
	address = http_server_address(tool.server);
	printf("listening %s\n", loop_address_text(&address, text));
	fflush(stdout);
	loop_run(tool.loop);
	loop_signal_close(term);
	http_server_free(tool.server);
	loop_free(tool.loop);
	return 0;
}
