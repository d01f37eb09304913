#include "cmd/poll_follow.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "cmd/client_http.h"
#include "cmd/client_private.h"
#include "cmd/poll_handover.h"
#include "inventory/inventory.h"
#include "loop/thread.h"
#include "queue/queue.h"
#include "snmp/poller.h"
#include "wire/json.h"

enum {
	REPORT_MAX_BYTES = 24 << 20,
	FILE_MODE = 0600,
	LINES_A_MINUTE = 3,
};

/* Of a device what the server was told. */
struct told {
	int64_t last_success_ms, failing_since_ms;
	uint64_t reason; /* its hash */
};

struct poll_follow {
	struct poll_follow_options options;
	struct loop_thread *thread;
	struct loop *loop;
	struct loop_timer *timer;
	struct client_http *http;
	struct inventory_copy *copy;
	char etag[CLIENT_ETAG_MAX_BYTES + 1]; /* of what was read last; empty: nothing */
	struct hash128 text;                  /* of what is used */
	struct errbuf problem;                /* of the inventory */
	struct buf answer;
	bool too_long;     /* the answer under way, or the last one, was */
	bool left_long;    /* `problem` is that it was: the inventory is not the server's */
	struct told *told; /* of the picture's devices */
	size_t told_count;
	bool away; /* the server was, the last time */
	struct log_rate lines;
	struct task begin, refresh, stop, stopped_task;
	_Atomic bool refreshing;
	void (*stopped)(void *owner);
	void *owner;
};

/* ---- The inventory --------------------------------------------------------------------------- */

static void forget_told(struct poll_follow *f)
{
	const struct inventory *picture = inventory_copy_snapshot(f->copy);
	mem_free(f->told);
	f->told_count = picture ? picture->device_count : 0;
	f->told = mem_zalloc((f->told_count + 1) * sizeof(*f->told));
}

/* 0: it is polled from now on. ERR_EXISTS: it was already. */
static int use(struct poll_follow *f, const char *file, struct slice text)
{
	struct hash128 hash = hash128(text.data, text.len, 0);
	forget_told(f);
	if (hash.low == f->text.low && hash.high == f->text.high) {
		f->problem.text[0] = 0;
		return ERR_EXISTS;
	}
	int err = inventory_copy_read(f->copy, file, text, &f->problem);
	if (err) {
		log_error("the inventory is left as it is: %s", f->problem.text);
		stat_add(STAT_poll_inventory_unreadable, 1);
		return err;
	}
	const struct inventory *picture = inventory_copy_snapshot(f->copy);
	f->problem.text[0] = 0;
	f->text = hash;
	forget_told(f);
	log_info("%zu devices are polled here", picture->device_count);
	poller_set_inventory(f->options.poller, picture);
	return 0;
}

static void read_file(struct poll_follow *f)
{
	struct files *files = f->options.files;
	struct buf text;
	buf_init(&text, INVENTORY_DOCUMENT_MAX_BYTES);
	int err = files->read(files, f->options.file, INVENTORY_DOCUMENT_MAX_BYTES, &text);
	if (!err)
		err = use(f, f->options.file, buf_slice(&text));
	else if (err != ERR_NOT_FOUND)
		log_warn("%s: %s", f->options.file, err_text(err));
	buf_release(&text);
}

/* So that what is polled now is polled after a restart, too. */
static void save(struct poll_follow *f)
{
	struct files *files = f->options.files;
	int err = files->replace(files, f->options.file, buf_slice(&f->answer), FILE_MODE);
	if (err)
		log_error("%s: %s; after a restart the inventory before this one counts until the "
			  "server is there",
			  f->options.file, err_text(err));
}

/* ---- Requests -------------------------------------------------------------------------------- */

static bool take_answer(void *owner, UNUSED long status, struct slice piece)
{
	struct poll_follow *f = owner;
	f->too_long = buf_append(&f->answer, piece.data, piece.len) != 0;
	return !f->too_long;
}

/* Of what was long nothing is kept. */
static void forget_answer(struct poll_follow *f)
{
	buf_release(&f->answer);
	buf_init(&f->answer, INVENTORY_DOCUMENT_MAX_BYTES);
}

/* 0 with an answer of a good status. */
static int ask(struct poll_follow *f, const char *what, struct client_call *call, struct errbuf *e)
{
	char sentence[256];
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, "/api/pollers/", f->options.name);
	buf_printf(&path, "/%s", what);
	buf_append_char(&path, 0);
	buf_clear(&f->answer);
	f->too_long = false;
	call->path = path.data;
	call->take = take_answer;
	call->owner = f;
	int err = client_http_call(f->http, call, e);
	buf_release(&path);
	if (f->too_long)
		err = errbuf_set(e, ERR_LIMIT,
				 "%s: its answer is longer than %d MB; is that a granary server?",
				 f->options.server, INVENTORY_DOCUMENT_MAX_BYTES >> 20);
	if (err || call->status == 200 || call->status == 204 || call->status == 304)
		return err;
	client_http_sentence(buf_slice(&f->answer), sentence, sizeof(sentence));
	return errbuf_set(e, ERR_INVALID, "%s: status %ld: %s", f->options.server, call->status,
			  sentence);
}

/* The server is there, but not its inventory; the one that is used goes on being used. */
static void leave_long(struct poll_follow *f, const struct errbuf *e)
{
	f->problem = *e;
	f->left_long = true;
	stat_add(STAT_poll_inventory_too_long, 1);
	log_rated(&f->lines, clock_mono_ms(f->options.clock), LOG_ERROR,
		  "the inventory is left as it is: %s", e->text);
}

/* What is the same cannot be read any better the second time. */
static int fetch(struct poll_follow *f, struct errbuf *e)
{
	char known[CLIENT_ETAG_MAX_BYTES + 32];
	struct client_call call = {.headers = {f->etag[0] ? known : NULL}};
	snprintf(known, sizeof(known), "If-None-Match: %s", f->etag);
	int err = ask(f, "inventory", &call, e);
	if (err == ERR_LIMIT) {
		forget_answer(f);
		leave_long(f, e);
		return 0;
	}
	if (!err && f->left_long)
		f->problem.text[0] = 0;
	f->left_long = f->left_long && err;
	if (err || call.status == 304)
		return err;
	if (call.status != 200 || !call.etag[0])
		return errbuf_set(e, ERR_INVALID, "%s: that is no granary server",
				  f->options.server);
	if (use(f, f->options.server, buf_slice(&f->answer)) == 0)
		save(f);
	forget_answer(f);
	memcpy(f->etag, call.etag, sizeof(f->etag));
	return 0;
}

/* ---- The report ------------------------------------------------------------------------------ */

static void write_device(const struct device *device, const struct device_status *status,
			 struct json_writer *w)
{
	json_write_object_begin(w);
	json_put_string(w, "name", device->name);
	json_put_i64(w, "lastSuccess", status->last_success_ms);
	json_put_i64(w, "failingSince", status->failing_since_ms);
	json_put_bool(w, "resolved", status->resolved);
	json_put_text(w, "reason", status->error);
	json_write_object_end(w);
}

/* Those of which there is something new; what they say now is told with this report. */
static void write_devices(struct poll_follow *f, struct json_writer *w)
{
	const struct inventory *picture = inventory_copy_snapshot(f->copy);
	json_write_key(w, "devices");
	json_write_array_begin(w);
	for (size_t i = 0; i < f->told_count; i++) {
		const struct device *device = picture->devices[i];
		const struct device_status status = device_state_read(device->state);
		const struct told now = {status.last_success_ms, status.failing_since_ms,
					 hash64(status.error, strlen(status.error), 0)};
		if (memcmp(&now, &f->told[i], sizeof(now)) == 0 ||
		    (!now.last_success_ms && !now.failing_since_ms))
			continue;
		f->told[i] = now;
		write_device(device, &status, w);
	}
	json_write_array_end(w);
}

static void write_number(struct json_writer *w, const char *key, uint64_t number)
{
	json_put_u64(w, key, number);
}

static void write_report(struct poll_follow *f, struct buf *out)
{
	struct queue_stats spool;
	struct errbuf problem = f->problem;
	struct json_writer w;
	queue_stats(f->options.spool, &spool);
	if (!problem.text[0])
		poll_handover_problem(f->options.handover, &problem);
	json_writer_init(&w, out);
	json_write_object_begin(&w);
	json_put_text(&w, "problem", problem.text);
	write_number(&w, "pending", spool.pending);
	write_number(&w, "pendingBytes", spool.pending_bytes);
	write_number(&w, "aside", spool.aside);
	write_number(&w, "dropped",
		     (uint64_t)(stat_get(STAT_poll_dropped_full) +
				stat_get(STAT_poll_dropped_refused) + stat_get(STAT_polling_lost)));
	write_devices(f, &w);
	json_write_object_end(&w);
}

static int report(struct poll_follow *f, struct errbuf *e)
{
	struct client_call call = {.headers = {"Content-Type: application/json"}};
	struct buf body;
	buf_init(&body, REPORT_MAX_BYTES);
	write_report(f, &body);
	call.body = buf_slice(&body);
	int err = body.failed ? errbuf_set(e, ERR_LIMIT, "the report is too long")
			      : ask(f, "report", &call, e);
	buf_release(&body);
	if (err)
		forget_told(f);
	return err;
}

/* ---- Turns ----------------------------------------------------------------------------------- */

static void say_away(struct poll_follow *f, const char *why)
{
	f->away = true;
	/* It may come back as another one, which knows nothing. */
	forget_told(f);
	log_rated(&f->lines, clock_mono_ms(f->options.clock), LOG_WARN,
		  "the inventory stays as it is: %s", why);
}

static void say_back(struct poll_follow *f)
{
	f->away = false;
	log_info("%s is there again", f->options.server);
	poll_handover_hurry(f->options.handover);
}

static void turn(void *owner)
{
	struct poll_follow *f = owner;
	struct errbuf e = {""};
	if (!f->timer)
		return; /* it is stopping */
	int err = fetch(f, &e);
	err = err ? err : report(f, &e);
	if (atomic_load(f->options.cancelled))
		return;
	if (err)
		say_away(f, e.text);
	else if (f->away)
		say_back(f);
	loop_timer_start(f->timer, FOLLOW_EVERY_MS, 0);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void run_begin(struct task *task)
{
	struct poll_follow *f = CONTAINER_OF(task, struct poll_follow, begin);
	f->timer = loop_timer_new(f->loop, turn, f);
	turn(f);
}

static void run_refresh(struct task *task)
{
	struct poll_follow *f = CONTAINER_OF(task, struct poll_follow, refresh);
	atomic_store(&f->refreshing, false);
	inventory_copy_forget(f->copy);
	f->etag[0] = 0;
	f->text = (struct hash128){0, 0};
	turn(f);
}

/* Back on the owner's thread. */
static void run_stopped(struct task *task)
{
	struct poll_follow *f = CONTAINER_OF(task, struct poll_follow, stopped_task);
	void (*stopped)(void *owner) = f->stopped;
	void *owner = f->owner;
	loop_thread_free(f->thread);
	client_http_free(f->http);
	inventory_copy_free(f->copy);
	buf_release(&f->answer);
	mem_free(f->told);
	mem_free(f);
	stopped(owner);
}

static void run_stop(struct task *task)
{
	struct poll_follow *f = CONTAINER_OF(task, struct poll_follow, stop);
	loop_timer_close(f->timer);
	f->timer = NULL;
	f->options.executor->post(f->options.executor, &f->stopped_task);
}

struct poll_follow *poll_follow_new(const struct poll_follow_options *options)
{
	struct poll_follow *f = mem_zalloc(sizeof(*f));
	const struct client_http_options http = {
		.server = options->server,
		.timeout_ms = FOLLOW_TIMEOUT_MS,
		.cancelled = options->cancelled,
	};
	f->options = *options;
	f->lines.lines_max = LINES_A_MINUTE;
	f->begin.run = run_begin;
	f->refresh.run = run_refresh;
	f->stop.run = run_stop;
	f->stopped_task.run = run_stopped;
	f->http = client_http_new(&http);
	f->copy = inventory_copy_new(slice_of(options->name), options->conf, options->files);
	buf_init(&f->answer, INVENTORY_DOCUMENT_MAX_BYTES);
	read_file(f);
	f->thread = loop_thread_new("inventory");
	f->loop = loop_thread_loop(f->thread);
	struct executor *executor = loop_executor(f->loop);
	executor->post(executor, &f->begin);
	return f;
}

void poll_follow_refresh(struct poll_follow *f)
{
	struct executor *executor = loop_executor(f->loop);
	if (!atomic_exchange(&f->refreshing, true))
		executor->post(executor, &f->refresh);
}

void poll_follow_stop(struct poll_follow *f, void (*stopped)(void *owner), void *owner)
{
	struct executor *executor = loop_executor(f->loop);
	f->stopped = stopped;
	f->owner = owner;
	executor->post(executor, &f->stop);
}
