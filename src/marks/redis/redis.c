#include "marks/redis/redis.h"

#include <hiredis/hiredis.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"
#include "marks/redis/private.h"
#include "wire/number.h"

enum { TIMEOUT_MAX_MS = 2000, TIMEOUT_PART = 4 };

struct slice redis_key(const struct redis_marks *marks, const char *kind, struct mark_slot slot,
		       char to[KEY_MAX_BYTES])
{
	char separator = marks->options.separator;
	int len = snprintf(to, KEY_MAX_BYTES, "%s%c%u%c%lld", kind, separator, slot.partition,
			   separator, (long long)slot.slot_s);
	return (struct slice){to, (size_t)len};
}

bool redis_reply_is_scan(const redisReply *reply, uint64_t *cursor)
{
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    reply->element[0]->type != REDIS_REPLY_STRING ||
	    reply->element[1]->type != REDIS_REPLY_ARRAY)
		return false;
	const redisReply *place = reply->element[0], *texts = reply->element[1];
	const char *end = place->str + place->len;
	for (size_t i = 0; i < texts->elements; i++) {
		if (texts->element[i]->type != REDIS_REPLY_STRING)
			return false;
	}
	return place->len && number_scan_digits(place->str, end, cursor) == end;
}

/* ---- Losses ---------------------------------------------------------------------------------- */

static void redis_marks_lost(void *owner, const char *why)
{
	struct redis_marks *t = owner;
	log_warn("roll-ups: marks in Redis are lost: %s; the server marks all raw samples again",
		 why);
	marks_lose(&t->base, clock_wall_ms(t->options.clock));
}

static void redis_marks_restored(void *owner)
{
	struct redis_marks *t = owner;
	if (marks_regain(&t->base, atomic_load(&t->restored_losses)))
		log_info("roll-ups: all that was lost in Redis has been marked again");
}

static void redis_marks_track_restored(struct marks *marks, uint64_t losses)
{
	struct redis_marks *t = redis_marks_of(marks);
	atomic_store(&t->restored_losses, losses);
	redis_client_wake(t->client);
}

/* ---- The connection -------------------------------------------------------------------------- */

static void redis_marks_greet(void *owner)
{
	redis_epoch_greet(&((struct redis_marks *)owner)->epoch);
}

static void redis_marks_look(void *owner)
{
	redis_epoch_look(&((struct redis_marks *)owner)->epoch);
}

static void redis_marks_keep_restored(void *owner)
{
	struct redis_marks *t = owner;
	if (marks_losses(&t->base) == atomic_load(&t->restored_losses))
		redis_epoch_restored(&t->epoch);
}

static void redis_marks_track_state(const struct marks *marks, struct marks_state *state)
{
	const struct redis_marks *t = redis_marks_of(marks);
	state->degraded = !redis_client_is_up(t->client);
	redis_client_why(t->client, state->why);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void redis_marks_track_close(struct marks *marks)
{
	struct redis_marks *t = redis_marks_of(marks);
	redis_client_free(t->client);
	redis_epoch_release(&t->epoch);
}

static const struct marks_driver ops = {
	.mark = redis_mark,
	.list = redis_list,
	.read = redis_read,
	.finish = redis_finish,
	.reading_release = redis_reading_release,
	.close = redis_marks_track_close,
	.state = redis_marks_track_state,
	.restored = redis_marks_track_restored,
};

/* A mark that has waited for Redis in vain must still be in time for the store (marks/recent.h). */
static int64_t redis_marks_timeout_ms(const struct redis_marks *t)
{
	int64_t part_ms = t->options.quiet_ms / TIMEOUT_PART;
	return part_ms < TIMEOUT_MAX_MS ? part_ms : TIMEOUT_MAX_MS;
}

static int redis_marks_connect(struct redis_marks *t)
{
	snprintf(t->epoch_key, sizeof(t->epoch_key), "granary%cepoch", t->options.separator);
	t->client = redis_client_new(
		&(struct redis_client_options){.url = t->options.url,
					       .timeout_ms = redis_marks_timeout_ms(t),
					       .greet = redis_marks_greet,
					       .look = redis_marks_look,
					       .woken = redis_marks_keep_restored,
					       .owner = t});
	redis_epoch_init(&t->epoch, &(struct redis_epoch_options){.client = t->client,
								  .store = t->options.store,
								  .key = t->epoch_key,
								  .slot_ms = t->options.slot_ms,
								  .lost = redis_marks_lost,
								  .restored = redis_marks_restored,
								  .owner = t});
	int err = redis_client_start(t->client);
	if (!err)
		redis_client_wait_first(t->client);
	return err;
}

void marks_redis_set_late_after(struct marks *marks, int64_t late_after_ms)
{
	atomic_store(&redis_marks_of(marks)->late_after_ms, late_after_ms);
}

int marks_redis_open(const struct marks_redis_options *options, struct marks **marks,
		     struct errbuf *e)
{
	struct redis_marks *t = mem_zalloc(sizeof(*t));
	int err = redis_epoch_read(&t->epoch, options->store);
	if (err) {
		mem_free(t);
		return errbuf_set(e, err, "what was marked in Redis before cannot be told: %s",
				  err_text(err));
	}
	t->options = *options;
	marks_init(&t->base, &ops,
		   &(struct marks_store_options){.store = options->store,
						 .writer = options->writer,
						 .clock = options->clock,
						 .late_ms = options->late_ms});
	atomic_init(&t->stamps, random_system_seed());
	atomic_init(&t->late_after_ms, options->late_after_ms);
	err = redis_marks_connect(t);
	if (err) {
		marks_close(&t->base);
		return errbuf_set(e, err, "the thread that talks to Redis cannot be started: %s",
				  err_text(err));
	}
	*marks = &t->base;
	return 0;
}
