/* GET /api/backup. A job reads the store's backup, and hands it block by block to the loop, which
 * sends it as fast as the client reads. While the client does not read, the job looks every second
 * at what the backup has come to cost. A client that reads nothing for long is gone: the server of
 * HTTP sees to that (http.write_timeout). */
#include <inttypes.h>

#include "api/admin/admin.h"
#include "api/call.h"
#include "auth/caller.h"
#include "base/log.h"
#include "base/stats.h"
#include "conf/conf.h"
#include "store/backup_file.h"

enum {
	BLOCK_BYTES = 1 << 20,
	BACKUP_LOOK_US = 1000000,
	BACKUP_WAIT_MS = 200,        /* between two looks whether the job is to end */
	BACKUP_RATE_MS = 100,        /* for which pages that are freed are counted beforehand */
	BACKUP_LAST_WORDS_MS = 3000, /* in which a client may read why it was ended */
	BACKUP_LAST_SENT_MS = 300,
	BACKUP_NOTE_BYTES = 250,
	BACKUP_WHO_BYTES = 200,
};

struct backup_call {
	struct api_call call;
	uint64_t growth_max_bytes;
	struct store_backup *backup;
	struct backup_sums sums; /* of what was given to the loop */
	struct buf next;         /* what comes then */
	int64_t begun_ms, begun_us, looked_us;
	char note[BACKUP_NOTE_BYTES];
	char who[BACKUP_WHO_BYTES]; /* has asked, for the log */
	bool has_begun;             /* bytes have been handed to the loop */

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t taken;
	bool is_full; /* `out` is the loop's; else the job's */
	bool is_gone; /* the request has ended */
};

static const struct api_call_kind backup_kind;

static struct backup_call *backup_call_of(struct api_call *call)
{
	ASSERT(call->kind == &backup_kind);
	return CONTAINER_OF(call, struct backup_call, call);
}

static int64_t backup_now_us(const struct backup_call *b)
{
	struct clock *clock = b->call.api->clock;
	return clock->mono_us(clock);
}

/* ---- On the loop ----------------------------------------------------------------------------- */

static void backup_tell_job(struct backup_call *b, bool is_gone)
{
	pthread_mutex_lock(&b->lock);
	b->is_full = false;
	b->is_gone = b->is_gone || is_gone;
	pthread_cond_signal(&b->taken);
	pthread_mutex_unlock(&b->lock);
}

static void backup_advance(struct api_call *call)
{
	if (api_call_room(call))
		backup_tell_job(backup_call_of(call), false);
}

static void backup_send(void *owner)
{
	struct backup_call *b = owner;
	struct api_call *call = &b->call;
	if (call->request && !call->streaming)
		http_reply_header(call->request, "X-Granary-Note", b->note);
	call->advance = backup_advance;
	api_call_go_on(call);
}

static void backup_request_ended(struct api_call *call)
{
	backup_tell_job(backup_call_of(call), true);
}

static void backup_over(struct api_call *call)
{
	if (!call->request)
		return;
	if (call->err)
		api_call_fail_with(call, call->err, call->error.text);
	else
		api_call_end(call);
}

static void backup_release(struct api_call *call)
{
	struct backup_call *b = backup_call_of(call);
	backup_sums_release(&b->sums);
	buf_release(&b->next);
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->taken);
}

/* ---- The job --------------------------------------------------------------------------------- */

/* What it costs, at most once in a second. */
static int backup_watch(struct backup_call *b, struct errbuf *e)
{
	struct store_backup_cost cost;
	int64_t now_us = backup_now_us(b);
	if (now_us < b->looked_us + BACKUP_LOOK_US)
		return 0;
	b->looked_us = now_us;
	int err = store_backup_look(b->backup, &cost, e);
	stat_set(STAT_backup_held_bytes, (int64_t)cost.held_bytes);
	return err;
}

/* Until the loop has sent what is in `out`. */
static int backup_wait_sent(struct backup_call *b, struct errbuf *e)
{
	int err = 0;
	pthread_mutex_lock(&b->lock);
	while (b->is_full && !b->is_gone && !err) {
		cond_wait_ms(&b->taken, &b->lock, BACKUP_WAIT_MS);
		if (!b->is_full)
			break;
		pthread_mutex_unlock(&b->lock);
		err = job_is_stopping(b->call.job) ? ERR_CANCELLED : backup_watch(b, e);
		pthread_mutex_lock(&b->lock);
	}
	if (b->is_gone)
		err = ERR_CANCELLED;
	pthread_mutex_unlock(&b->lock);
	return err;
}

static bool backup_is_gone(struct backup_call *b)
{
	pthread_mutex_lock(&b->lock);
	bool is_gone = b->is_gone;
	pthread_mutex_unlock(&b->lock);
	return is_gone;
}

/* Gives `out` to the loop. */
static void backup_give(struct backup_call *b)
{
	pthread_mutex_lock(&b->lock);
	b->is_full = true;
	pthread_mutex_unlock(&b->lock);
	b->has_begun = true;
	job_call(b->call.job, loop_executor(b->call.api->loop), backup_send, b);
}

/* To `next`, while the loop sends what came before. */
static int backup_next_block(struct backup_call *b, bool *is_last, struct errbuf *e)
{
	size_t bytes = 0;
	buf_clear(&b->next);
	char *to = buf_reserve(&b->next, BLOCK_BYTES);
	ASSERT(to); /* it is empty */
	int err = store_backup_read(b->backup, to, BLOCK_BYTES, &bytes, e);
	*is_last = bytes < BLOCK_BYTES;
	b->next.len = bytes;
	return err;
}

/* `out` is empty, and the job's. */
static void backup_give_block(struct backup_call *b, bool is_last)
{
	struct buf empty = b->call.out;
	b->call.out = b->next;
	b->next = empty;
	backup_sums_add(&b->sums, buf_slice(&b->call.out));
	stat_add(STAT_backup_bytes, b->call.out.len);
	if (is_last)
		backup_manifest_put(&b->sums, b->begun_ms, NULL, &b->call.out);
	backup_give(b);
}

/* The client is told the cost first, so that it can give up before the copy has taken long. */
static int backup_say_cost(struct backup_call *b, struct errbuf *e)
{
	struct store_backup_cost cost;
	int err = job_sleep(b->call.job, BACKUP_RATE_MS);
	if (!err)
		err = store_backup_look(b->backup, &cost, e);
	if (err)
		return err;
	double mb_a_minute = (double)cost.held_bytes / 1e6 * 60000 / BACKUP_RATE_MS;
	snprintf(b->note, sizeof(b->note),
		 "%.1f MB; until its end the data file does not use again what is freed in it, at "
		 "present %.0f MB a minute; it is ended at %.0f MB (backup.growth_max)",
		 (double)cost.bytes / 1e6, mb_a_minute, (double)b->growth_max_bytes / 1e6);
	log_info("backup: begun for %s: %s", b->who, b->note);
	return 0;
}

static int backup_copy(struct backup_call *b, struct errbuf *e)
{
	bool is_last = false;
	int err = backup_say_cost(b, e);
	while (!err && !is_last) {
		err = job_is_stopping(b->call.job) ? ERR_CANCELLED : backup_watch(b, e);
		if (!err)
			err = backup_next_block(b, &is_last, e);
		if (!err)
			err = backup_wait_sent(b, e);
		if (!err)
			backup_give_block(b, is_last);
	}
	return err ? err : backup_wait_sent(b, e);
}

/* On the loop: behind whatever of `out` has not left. */
static void backup_send_failed(void *owner)
{
	struct backup_call *b = owner;
	struct api_call *call = &b->call;
	if (!call->request)
		return;
	backup_manifest_put(&b->sums, b->begun_ms, call->error.text, &call->out);
	api_call_go_on(call);
}

/* Why the answer is broken off, for whoever reads it to its end, and some time for that. */
static void backup_say_failed(struct backup_call *b)
{
	pthread_mutex_lock(&b->lock);
	b->is_full = true;
	pthread_mutex_unlock(&b->lock);
	job_call(b->call.job, loop_executor(b->call.api->loop), backup_send_failed, b);
	pthread_mutex_lock(&b->lock);
	if (b->is_full && !b->is_gone)
		cond_wait_ms(&b->taken, &b->lock, BACKUP_LAST_WORDS_MS);
	pthread_mutex_unlock(&b->lock);
	/* It has left for the connection, which may have to wait for its client. */
	(void)!job_sleep(b->call.job, BACKUP_LAST_SENT_MS);
}

static void backup_tell_outcome(const struct backup_call *b, int err, const char *why)
{
	double seconds = (double)(backup_now_us(b) - b->begun_us) / 1e6;
	stat_add(err ? STAT_backups_failed : STAT_backups_whole, 1);
	if (err)
		log_warn("backup: ended after %" PRIu64 " bytes and %.1f s, not whole: %s",
			 b->sums.bytes, seconds, why);
	else
		log_info("backup: %" PRIu64 " bytes given in %.1f s", b->sums.bytes, seconds);
	if (!err)
		stat_set(STAT_backup_last_s, b->begun_ms / 1000);
}

static void backup_run(struct api_call *call)
{
	struct backup_call *b = backup_call_of(call);
	struct errbuf *e = &call->error;
	b->begun_ms = clock_wall_ms(call->api->clock);
	b->begun_us = b->looked_us = backup_now_us(b);
	call->err = store_backup_begin(call->api->store, b->growth_max_bytes, &b->backup, e);
	if (call->err) {
		stat_add(STAT_backups_refused, 1);
		return;
	}
	call->err = backup_copy(b, e);
	store_backup_end(b->backup);
	stat_set(STAT_backup_held_bytes, 0);
	if (call->err == ERR_CANCELLED)
		errbuf_set(e, ERR_CANCELLED, "%s",
			   backup_is_gone(b) ? "the client has gone, or did not read"
					     : "the server is stopping");
	backup_tell_outcome(b, call->err, e->text);
	if (call->err && b->has_begun)
		backup_say_failed(b);
}

static const struct api_call_kind backup_kind = {.arena_max_bytes = 1 << 10,
						 .out_max_bytes =
							 BLOCK_BYTES + BACKUP_MANIFEST_MAX_BYTES,
						 .flush_bytes = 1,
						 .ended = backup_request_ended,
						 .release = backup_release,
						 .job_name = "backup",
						 .run = backup_run,
						 .over = backup_over};

static void backup_asked(struct http_request *request)
{
	char from[LOOP_ADDRESS_TEXT_BYTES];
	const struct conf *conf = api_of(request)->conf;
	if (!params_none(request) || http_reply_head(request, "application/octet-stream"))
		return;
	if (api_calls_have(api_of(request), &backup_kind)) {
		stat_add(STAT_backups_refused, 1);
		http_reply_error(request, 409, "another backup is at work; there is one at a time");
		return;
	}
	struct backup_call *b = mem_zalloc(sizeof(*b));
	snprintf(b->who, sizeof(b->who), "%s at %s",
		 request->caller ? request->caller->name : "somebody",
		 loop_address_text(request->peer, from));
	api_call_init(&b->call, request, &backup_kind);
	b->call.content_type = "application/octet-stream";
	b->growth_max_bytes = conf ? (uint64_t)conf->backup_growth_max_bytes : UINT64_MAX;
	backup_sums_init(&b->sums);
	buf_init(&b->next, b->call.out.max);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->taken, NULL);
	api_call_start_job(&b->call);
}

const struct http_handler backup_handler = API_CALL_HANDLER(backup_asked);
