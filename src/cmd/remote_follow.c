#include "cmd/remote_follow.h"

#include "base/buf.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "http/client.h"
#include "cmd/client_private.h"
#include "cmd/remote_handover.h"
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
struct remote_follow_told {
	int64_t last_success_ms, failing_since_ms;
	uint64_t reason; /* its hash */
};

struct remote_follow {
	struct remote_follow_options options;
	struct loop_thread *thread;
	struct loop *loop;
	struct loop_timer *timer;
	struct http_client *http;
	struct inventory_copy *copy;
	char etag[CLIENT_ETAG_MAX_BYTES + 1]; /* of what was read last; empty: nothing */
	struct hash128 text;                  /* of what is used */
	struct errbuf problem;                /* of the inventory */
	struct buf answer;
	bool too_long;  /* the answer under way, or the last one, was */
	bool left_long; /* `problem` is that it was: the inventory is not the server's */
	struct remote_follow_told *told; /* of the picture's devices */
	size_t told_count;
	bool away; /* the server was, the last time */
	struct log_rate lines;
	struct task begin, refresh, stop, stopped_task;
	_Atomic bool refreshing;
	void (*stopped)(void *owner);
	void *owner;
};

/* ---- The inventory --------------------------------------------------------------------------- */

static void remote_follow_forget_told(struct remote_follow *f)
{
	const struct inventory *picture = inventory_copy_snapshot(f->copy);
	mem_free(f->told);
	f->told_count = picture ? picture->device_count : 0;
	f->told = mem_zalloc((f->told_count + 1) * sizeof(*f->told));
}

/* 0: it is polled from now on. ERR_EXISTS: it was already. */
static int remote_follow_use(struct remote_follow *f, const char *file, struct slice text)
{
	struct hash128 hash = hash128(text.data, text.len, 0);
	remote_follow_forget_told(f);
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
	remote_follow_forget_told(f);
	log_info("%zu devices are polled here", picture->device_count);
	poller_set_inventory(f->options.poller, picture);
	return 0;
}

static void remote_follow_read_file(struct remote_follow *f)
{
	struct files *files = f->options.files;
	struct buf text;
	buf_init(&text, INVENTORY_DOCUMENT_MAX_BYTES);
	int err = files->read(files, f->options.file, INVENTORY_DOCUMENT_MAX_BYTES, &text);
	if (!err)
		err = remote_follow_use(f, f->options.file, buf_slice(&text));
	else if (err != ERR_NOT_FOUND)
		log_warn("the saved inventory %s cannot be read: %s; nothing is polled until the "
			 "server answers",
			 f->options.file, err_text(err));
	buf_release(&text);
}

/* So that what is polled now is polled after a restart, too. */
static void remote_follow_save_file(struct remote_follow *f)
{
	struct files *files = f->options.files;
	int err = files->replace(files, f->options.file, buf_slice(&f->answer), FILE_MODE);
	if (err)
		log_error("%s: %s; after a restart the inventory before this one counts until the "
			  "server is there",
			  f->options.file, err_text(err));
}

/* ---- Requests -------------------------------------------------------------------------------- */

static bool remote_follow_take_answer(void *owner, UNUSED long status, struct slice piece)
{
	struct remote_follow *f = owner;
	f->too_long = buf_append(&f->answer, piece.data, piece.len) != 0;
	return !f->too_long;
}

/* Of what was long nothing is kept. */
static void remote_follow_forget_answer(struct remote_follow *f)
{
	buf_release(&f->answer);
	buf_init(&f->answer, INVENTORY_DOCUMENT_MAX_BYTES);
}

/* 0 with an answer of a good status. */
static int remote_follow_ask(struct remote_follow *f, const char *what, struct http_call *call,
			     struct errbuf *e)
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
	call->take = remote_follow_take_answer;
	call->owner = f;
	int err = http_client_call(f->http, call, e);
	buf_release(&path);
	if (f->too_long)
		err = errbuf_set(e, ERR_LIMIT,
				 "%s: its answer is longer than %d MB; is that a granary server?",
				 f->options.server, INVENTORY_DOCUMENT_MAX_BYTES >> 20);
	if (err || call->status == 200 || call->status == 204 || call->status == 304)
		return err;
	http_client_sentence(buf_slice(&f->answer), sentence, sizeof(sentence));
	return errbuf_set(e, ERR_INVALID, "%s: status %ld: %s", f->options.server, call->status,
			  sentence);
}

/* The server is there, but not its inventory; the one that is used goes on being used. */
static void remote_follow_leave_long(struct remote_follow *f, const struct errbuf *e)
{
	f->problem = *e;
	f->left_long = true;
	stat_add(STAT_poll_inventory_too_long, 1);
	log_rated(&f->lines, clock_mono_ms(f->options.clock), LOG_ERROR,
		  "the inventory is left as it is: %s", e->text);
}

/* What is the same cannot be read any better the second time. */
static int remote_follow_fetch(struct remote_follow *f, struct errbuf *e)
{
	char known[CLIENT_ETAG_MAX_BYTES + 32];
	struct http_call call = {.headers = {f->etag[0] ? known : NULL}};
	snprintf(known, sizeof(known), "If-None-Match: %s", f->etag);
	int err = remote_follow_ask(f, "inventory", &call, e);
	if (err == ERR_LIMIT) {
		remote_follow_forget_answer(f);
		remote_follow_leave_long(f, e);
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
	if (remote_follow_use(f, f->options.server, buf_slice(&f->answer)) == 0)
		remote_follow_save_file(f);
	remote_follow_forget_answer(f);
	memcpy(f->etag, call.etag, sizeof(f->etag));
	return 0;
}

/* ---- The report ------------------------------------------------------------------------------ */

static void remote_follow_write_device(const struct device *device,
				       const struct device_status *status, struct json_writer *w)
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
static void remote_follow_write_devices(struct remote_follow *f, struct json_writer *w)
{
	const struct inventory *picture = inventory_copy_snapshot(f->copy);
	json_write_key(w, "devices");
	json_write_array_begin(w);
	for (size_t i = 0; i < f->told_count; i++) {
		const struct device *device = picture->devices[i];
		const struct device_status status = device_state_read(device->state);
		const struct remote_follow_told now = {
			status.last_success_ms, status.failing_since_ms,
			hash64(status.error, strlen(status.error), 0)};
		if (memcmp(&now, &f->told[i], sizeof(now)) == 0 ||
		    (!now.last_success_ms && !now.failing_since_ms))
			continue;
		f->told[i] = now;
		remote_follow_write_device(device, &status, w);
	}
	json_write_array_end(w);
}

static void remote_follow_write_number(struct json_writer *w, const char *key, uint64_t number)
{
	json_put_u64(w, key, number);
}

static void remote_follow_write_report(struct remote_follow *f, struct buf *out)
{
	struct queue_stats spool;
	struct errbuf problem = f->problem;
	struct json_writer w;
	queue_stats(f->options.spool, &spool);
	if (!problem.text[0])
		remote_handover_problem(f->options.handover, &problem);
	json_writer_init(&w, out);
	json_write_object_begin(&w);
	json_put_text(&w, "problem", problem.text);
	remote_follow_write_number(&w, "pending", spool.pending);
	remote_follow_write_number(&w, "pendingBytes", spool.pending_bytes);
	remote_follow_write_number(&w, "aside", spool.aside);
	remote_follow_write_number(&w, "dropped",
				   (uint64_t)(stat_get(STAT_poll_dropped_full) +
					      stat_get(STAT_poll_dropped_refused) +
					      stat_get(STAT_polling_lost)));
	remote_follow_write_devices(f, &w);
	json_write_object_end(&w);
}

static int remote_follow_report(struct remote_follow *f, struct errbuf *e)
{
	struct http_call call = {.headers = {"Content-Type: application/json"}};
	struct buf body;
	buf_init(&body, REPORT_MAX_BYTES);
	remote_follow_write_report(f, &body);
	call.body = buf_slice(&body);
	int err = body.failed ? errbuf_set(e, ERR_LIMIT, "the report is too long")
			      : remote_follow_ask(f, "report", &call, e);
	buf_release(&body);
	if (err)
		remote_follow_forget_told(f);
	return err;
}

/* ---- Turns ----------------------------------------------------------------------------------- */

static void remote_follow_say_away(struct remote_follow *f, const char *why)
{
	f->away = true;
	/* It may come back as another one, which knows nothing. */
	remote_follow_forget_told(f);
	log_rated(&f->lines, clock_mono_ms(f->options.clock), LOG_WARN,
		  "no inventory from the server: %s; the devices known last are polled", why);
}

static void remote_follow_turn(void *owner)
{
	struct remote_follow *f = owner;
	struct errbuf e = {""};
	if (!f->timer)
		return; /* it is stopping */
	int err = remote_follow_fetch(f, &e);
	err = err ? err : remote_follow_report(f, &e);
	if (atomic_load(f->options.cancelled))
		return;
	if (err) {
		remote_follow_say_away(f, e.text);
	} else if (f->away) {
		f->away = false;
		log_info("%s is there again", f->options.server);
		remote_handover_hurry(f->options.handover);
	}
	loop_timer_start(f->timer, FOLLOW_EVERY_MS, 0);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void remote_follow_run_begin(struct task *task)
{
	struct remote_follow *f = CONTAINER_OF(task, struct remote_follow, begin);
	f->timer = loop_timer_new(f->loop, remote_follow_turn, f);
	remote_follow_turn(f);
}

static void remote_follow_run_refresh(struct task *task)
{
	struct remote_follow *f = CONTAINER_OF(task, struct remote_follow, refresh);
	atomic_store(&f->refreshing, false);
	inventory_copy_forget(f->copy);
	f->etag[0] = 0;
	f->text = (struct hash128){0, 0};
	remote_follow_turn(f);
}

/* Back on the owner's thread. */
static void remote_follow_run_stopped(struct task *task)
{
	struct remote_follow *f = CONTAINER_OF(task, struct remote_follow, stopped_task);
	void (*stopped)(void *owner) = f->stopped;
	void *owner = f->owner;
	loop_thread_free(f->thread);
	http_client_free(f->http);
	inventory_copy_free(f->copy);
	buf_release(&f->answer);
	mem_free(f->told);
	mem_free(f);
	stopped(owner);
}

static void remote_follow_run_stop(struct task *task)
{
	struct remote_follow *f = CONTAINER_OF(task, struct remote_follow, stop);
	loop_timer_close(f->timer);
	f->timer = NULL;
	f->options.executor->post(f->options.executor, &f->stopped_task);
}

struct remote_follow *remote_follow_new(const struct remote_follow_options *options)
{
	struct remote_follow *f = mem_zalloc(sizeof(*f));
	const struct http_client_options http = {
		.server = options->server,
		.token = options->token,
		.ca = options->ca,
		.timeout_ms = FOLLOW_TIMEOUT_MS,
		.cancelled = options->cancelled,
	};
	f->options = *options;
	f->lines.lines_max = LINES_A_MINUTE;
	f->begin.run = remote_follow_run_begin;
	f->refresh.run = remote_follow_run_refresh;
	f->stop.run = remote_follow_run_stop;
	f->stopped_task.run = remote_follow_run_stopped;
	f->http = http_client_new(&http);
	f->copy = inventory_copy_new(slice_of(options->name), options->conf, options->files);
	buf_init(&f->answer, INVENTORY_DOCUMENT_MAX_BYTES);
	remote_follow_read_file(f);
	f->thread = loop_thread_new("inventory");
	f->loop = loop_thread_loop(f->thread);
	struct executor *executor = loop_executor(f->loop);
	executor->post(executor, &f->begin);
	return f;
}

void remote_follow_refresh(struct remote_follow *f)
{
	struct executor *executor = loop_executor(f->loop);
	if (!atomic_exchange(&f->refreshing, true))
		executor->post(executor, &f->refresh);
}

void remote_follow_stop(struct remote_follow *f, void (*stopped)(void *owner), void *owner)
{
	struct executor *executor = loop_executor(f->loop);
	f->stopped = stopped;
	f->owner = owner;
	executor->post(executor, &f->stop);
}
