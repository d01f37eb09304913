/* The connection logic of the HTTP server, without sockets.
 *
 * The same bytes come twice: at once, and cut into pieces with pauses, answers that come late, a
 * client that reads late, time that passes. Where one stream of bytes is read, the requests found
 * in it must not depend on how it was cut; and whatever happens, each request ends once, and memory
 * is given back. */
#include "../tools/http_fake.h"

#include "base/hash.h"
#include "base/random.h"

enum { REQUESTS_MAX = 4096, LATE_MAX = 64 };

static struct {
	struct random random;
	struct clock_virtual clock;
	struct http_core core;
	bool calm; /* handlers answer at once and take all */
	unsigned begun, ended;
	uint64_t found[REQUESTS_MAX]; /* a hash of each request that ended well */
	size_t found_count;
	struct http_request *late[LATE_MAX];
	size_t late_count;
	uint64_t body_hash;
} fuzz;

static bool now_and_then(unsigned one_in)
{
	return !fuzz.calm && random_below(&fuzz.random, one_in) == 0;
}

static void note(const struct http_request *request, uint64_t body)
{
	uint64_t hash = hash64(request->path.data, request->path.len, request->verb);
	hash = hash * 31 + request->param_count;
	for (size_t i = 0; i < request->param_count; i++)
		hash = hash64(request->params[i].value.data, request->params[i].value.len, hash);
	hash = hash * 31 + request->header_count;
	if (fuzz.found_count < REQUESTS_MAX)
		fuzz.found[fuzz.found_count++] = hash * 31 + body;
}

static void on_begin(struct http_request *request)
{
	fuzz.begun++;
	fuzz.body_hash = 0;
	if (now_and_then(16)) {
		fuzz.ended++;
		http_reply_error(request, 409, "early");
	}
}

static void forget_late(const struct http_request *request)
{
	for (size_t i = 0; i < fuzz.late_count; i++) {
		if (fuzz.late[i] == request)
			fuzz.late[i--] = fuzz.late[--fuzz.late_count];
	}
}

static void on_abort(struct http_request *request, int err)
{
	ASSERT(err < 0);
	fuzz.ended++;
	forget_late(request);
}

static void answer(struct http_request *request)
{
	fuzz.ended++;
	http_reply_header(request, "X-Fuzz", "1");
	http_reply(request, 200, "application/json", buf_slice(&request->body));
}

static void gather_end(struct http_request *request)
{
	note(request, hash64(request->body.data, request->body.len, 1));
	if (now_and_then(2) && fuzz.late_count < LATE_MAX)
		fuzz.late[fuzz.late_count++] = request;
	else
		answer(request);
}

static void mirror_begin(struct http_request *request)
{
	fuzz.begun++;
	fuzz.body_hash = 0;
	http_stream_begin(request, 200, "text/plain");
}

/* FNV-1a, which does not see the cuts. */
static void mirror_body(struct http_request *request, struct slice piece)
{
	for (size_t i = 0; i < piece.len; i++)
		fuzz.body_hash = (fuzz.body_hash ^ (uint8_t)piece.data[i]) * 0x100000001b3;
	int err = http_stream_write(request, piece);
	ASSERT(err == 0 || err == ERR_BUSY);
	if (err == ERR_BUSY || now_and_then(4)) {
		http_request_pause(request);
		if (fuzz.late_count < LATE_MAX)
			fuzz.late[fuzz.late_count++] = request;
		else
			http_request_resume(request);
	} else if (now_and_then(64)) {
		fuzz.ended++;
		http_stream_break(request);
	}
}

static void mirror_drained(struct http_request *request)
{
	forget_late(request);
	http_request_resume(request);
}

static void mirror_end(struct http_request *request)
{
	forget_late(request);
	note(request, fuzz.body_hash);
	fuzz.ended++;
	http_stream_end(request);
}

/* A stream without end; now and then its handler ends it all the same. */
static void events_go_on(struct http_request *request)
{
	if (now_and_then(4)) {
		fuzz.ended++;
		http_stream_end(request);
		return;
	}
	int err = http_stream_write(request, SLICE("data: x\n\n"));
	if (fuzz.late_count < LATE_MAX)
		fuzz.late[fuzz.late_count++] = request;
	ASSERT(!err || err == ERR_BUSY || err == ERR_LIMIT);
}

static void events_end(struct http_request *request)
{
	note(request, 2);
	if (http_stream_begin_endless(request, "text/event-stream"))
		fuzz.ended++;
	else
		events_go_on(request);
}

static void events_drained(struct http_request *request)
{
	ASSERT(request);
}

static const struct http_handler events_handler = {
	.begin = on_begin, .end = events_end, .abort = on_abort, .drained = events_drained};
static const struct http_handler gather_handler = {
	.begin = on_begin, .end = gather_end, .abort = on_abort};
static const struct http_handler mirror_handler = {.begin = mirror_begin,
						   .body = mirror_body,
						   .end = mirror_end,
						   .abort = on_abort,
						   .drained = mirror_drained};

static const struct http_route routes[] = {
	{VERB_GET, "/g", false, ROLE_READ, REACH_ALL, 0, 0, &gather_handler, "", NULL},
	{VERB_POST, "/p", false, ROLE_WRITE, REACH_ALL, 10000, 20000, &gather_handler, "", NULL},
	{VERB_POST, "/m", false, ROLE_WRITE, REACH_ALL, 20000, 100000, &mirror_handler, "", NULL},
	{VERB_GET, "/v/", true, ROLE_READ, REACH_ALL, 0, 0, &gather_handler, "", NULL},
	{VERB_POST, "/o", false, ROLE_WRITE, REACH_ALL, 10000, 20000, &gather_handler, "", NULL,
	 .any_origin = true},
	{VERB_GET, "/e", false, ROLE_READ, REACH_ALL, 0, 0, &events_handler, "", NULL},
};

static void go_on_late(void)
{
	struct http_request *request = fuzz.late[random_below(&fuzz.random, fuzz.late_count)];
	forget_late(request);
	if (request->route->handler == &gather_handler)
		answer(request);
	else if (request->route->handler == &events_handler)
		events_go_on(request);
	else
		http_request_resume(request);
}

static void something_happens(struct fake *fake)
{
	switch (random_below(&fuzz.random, 8)) {
	case 0:
		fake->blocked = true;
		break;
	case 1:
		fake->blocked = false;
		fake_take(fake);
		break;
	case 2:
		clock_virtual_advance(&fuzz.clock, (int64_t)random_below(&fuzz.random, 3000000));
		http_conn_tick(&fake->conn);
		break;
	case 3:
		if (!fuzz.core.stopping && now_and_then(8)) {
			fuzz.core.stopping = true;
			http_conn_stop(&fake->conn);
			break;
		}
		/* fall through */
	default:
		if (fuzz.late_count)
			go_on_late();
		break;
	}
}

static void start(struct fake **fake, bool calm)
{
	fuzz.calm = calm;
	fuzz.begun = fuzz.ended = 0;
	fuzz.found_count = fuzz.late_count = 0;
	static const char *const hosts[] = {"h"};
	struct http_limits limits = http_limits_default;
	limits.hosts = hosts;
	limits.host_count = ARRAY_LEN(hosts);
	limits.unsent_max_bytes = 300000;
	limits.drain_max_bytes = 50000;
	limits.memory_max_bytes = 15000;
	http_core_init(&fuzz.core, &fuzz.clock.clock, &limits, routes, ARRAY_LEN(routes), NULL);
	*fake = fake_new(&fuzz.core);
}

static void finish(struct fake *fake)
{
	struct slice out = buf_slice(&fake->out);
	ASSERT(!out.len || (out.len > 9 && memcmp(out.data, "HTTP/1.1 ", 9) == 0));
	fake_free(fake);
	ASSERT(fuzz.begun == fuzz.ended);
	http_core_release(&fuzz.core);
}

static void run_calm(struct slice bytes, size_t piece_bytes)
{
	struct fake *fake;
	start(&fake, true);
	fake_input(fake, bytes, piece_bytes);
	finish(fake);
}

static void run_wild(struct slice bytes)
{
	struct fake *fake;
	start(&fake, false);
	for (unsigned idle = 0; bytes.len && !fake->closed && idle < 100; idle++) {
		size_t len =
			1 + (size_t)random_below(&fuzz.random, bytes.len < 300 ? bytes.len : 300);
		if (len > fake->read_max)
			len = fake->read_max;
		if (len) {
			http_conn_input(&fake->conn, (struct slice){bytes.data, len});
			bytes = (struct slice){bytes.data + len, bytes.len - len};
			idle = 0;
		}
		if (!fake->closed)
			something_happens(fake);
		if (!fake->closed && fake->deferred)
			fake_step(fake);
	}
	if (!fake->closed && fake->read_max)
		http_conn_eof(&fake->conn);
	finish(fake);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t found[REQUESTS_MAX];
	if (size < 1)
		return 0;
	struct slice bytes = {(const char *)data + 1, size - 1};
	random_init(&fuzz.random, hash64(data, size, 0));
	clock_virtual_init(&fuzz.clock, 0);
	run_calm(bytes, SIZE_MAX);
	size_t count = fuzz.found_count;
	memcpy(found, fuzz.found, sizeof(found));
	run_calm(bytes, 1 + data[0]);
	ASSERT(fuzz.found_count == count);
	ASSERT(memcmp(found, fuzz.found, count * sizeof(found[0])) == 0);
	run_wild(bytes);
	return 0;
}
