#include "marks/redis/redis.h"

#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"
#include "marks/redis/private.h"
#include "marks/store.h"

enum { TIMEOUT_MAX_MS = 2000, TIMEOUT_PART = 4 };

struct slice redis_key(const struct redis_marks *marks, const char *kind, struct mark_slot slot,
		       char to[KEY_MAX_BYTES])
{
	char separator = marks->options.separator;
	int len = snprintf(to, KEY_MAX_BYTES, "%s%c%u%c%lld", kind, separator, slot.partition,
			   separator, (long long)slot.slot_s);
	return (struct slice){to, (size_t)len};
}

/* ---- Losses ---------------------------------------------------------------------------------- */

static void redis_marks_on_lost(void *owner, const char *why)
{
	struct redis_marks *t = owner;
	log_warn("roll-ups: marks in Redis are lost: %s; the server marks all raw samples again",
		 why);
	marks_lose(&t->base, clock_wall_ms(t->options.clock));
}

static void redis_marks_on_restored(void *owner)
{
	struct redis_marks *t = owner;
	if (marks_regain(&t->base, atomic_load(&t->restored_losses)))
		log_info("roll-ups: all that was lost in Redis has been marked again");
}

static void redis_marks_run_restored(struct task *task)
{
	struct redis_marks *t = CONTAINER_OF(task, struct redis_marks, restored);
	atomic_store(&t->restored_posted, false);
	if (marks_losses(&t->base) == atomic_load(&t->restored_losses))
		redis_epoch_restored(&t->epoch);
}

static void redis_marks_track_restored(struct marks *marks, uint64_t losses)
{
	struct redis_marks *t = redis_marks_of(marks);
	struct executor *executor = redis_client_executor(t->client);
	atomic_store(&t->restored_losses, losses);
	if (!atomic_exchange(&t->restored_posted, true))
		executor->post(executor, &t->restored);
}

/* ---- The connection -------------------------------------------------------------------------- */

static void redis_marks_on_connected(void *owner)
{
	struct redis_marks *t = owner;
	redis_epoch_greet(&t->epoch);
}

static void redis_marks_on_look(void *owner)
{
	struct redis_marks *t = owner;
	redis_epoch_look(&t->epoch);
}

static void redis_marks_track_state(const struct marks *marks, struct marks_state *state)
{
	const struct redis_marks *t = redis_marks_of(marks);
	state->degraded = !redis_client_is_up(t->client);
	redis_client_why(t->client, state->why);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static int redis_marks_add_to_store(struct marks *marks, struct store_write *write, int64_t now_ms,
				    const struct mark_touch *touches, size_t count, size_t *added)
{
	return marks_touches_add(redis_marks_of(marks)->of_store, write, now_ms, touches, count,
				 added);
}

static void redis_marks_track_close(struct marks *marks)
{
	struct redis_marks *t = redis_marks_of(marks);
	redis_epoch_close(&t->epoch);
	redis_client_free(t->client);
	redis_epoch_release(&t->epoch);
	marks_close(t->of_store);
	marks_release(&t->base);
	mem_free(t);
}

static const struct marks_driver ops = {
	.close = redis_marks_track_close,
	.state = redis_marks_track_state,
	.restored = redis_marks_track_restored,
	.touches_add = redis_marks_add_to_store,
	.marking_new = redis_marking_new,
	.marking_free = redis_marking_free,
	.marking_begin = redis_marking_begin,
	.listing_new = redis_listing_new,
	.listing_free = redis_listing_free,
	.listing_begin = redis_listing_begin,
	.listing_next = redis_listing_next,
	.reading_new = redis_reading_new,
	.reading_free = redis_reading_free,
	.reading_begin = redis_reading_begin,
	.reading_next = redis_reading_next,
	.reading_finish = redis_reading_finish,
};

/* A mark that has waited for Redis in vain must still be in time for the store (marks/recent.h). */
static int64_t redis_marks_timeout_ms(const struct redis_marks *t)
{
	int64_t part_ms = t->options.quiet_ms / TIMEOUT_PART;
	return part_ms < TIMEOUT_MAX_MS ? part_ms : TIMEOUT_MAX_MS;
}

static void redis_marks_connect_track(struct redis_marks *t)
{
	snprintf(t->epoch_key, sizeof(t->epoch_key), "granary%cepoch", t->options.separator);
	t->client = redis_client_new(
		&(struct redis_client_options){.url = t->options.url,
					       .timeout_ms = redis_marks_timeout_ms(t),
					       .connected = redis_marks_on_connected,
					       .look = redis_marks_on_look,
					       .owner = t});
	redis_epoch_init(&t->epoch,
			 &(struct redis_epoch_options){.client = t->client,
						       .store = t->options.store,
						       .key = t->epoch_key,
						       .slot_ms = t->options.slot_ms,
						       .lost = redis_marks_on_lost,
						       .restored = redis_marks_on_restored,
						       .owner = t});
	redis_client_start(t->client);
	redis_client_wait_first(t->client);
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
	marks_init(&t->base, &ops);
	t->restored.run = redis_marks_run_restored;
	atomic_init(&t->stamps, random_system_seed());
	t->of_store = marks_store_open(
		&(struct marks_store_options){.store = options->store, .writer = options->writer});
	redis_marks_connect_track(t);
	*marks = &t->base;
	return 0;
}
