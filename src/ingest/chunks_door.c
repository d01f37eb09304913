#include "ingest/chunks_door.h"

#include "base/stats.h"

static struct chunks_post *chunks_post_of(struct backpressure_sender *sender)
{
	return CONTAINER_OF(sender, struct chunks_post, sender);
}

/* One post may be larger than all that may be at work: then it is alone. */
static bool chunks_door_has_room(const struct backpressure *line, const struct chunks_post *post)
{
	return !line->bytes || line->bytes + post->bytes <= line->bytes_max;
}

static bool chunks_door_may_run(const struct backpressure_sender *sender)
{
	const struct chunks_post *post = CONTAINER_OF(sender, struct chunks_post, sender);
	return post->is_gone(post) || chunks_door_has_room(post->line, post);
}

static void chunks_door_resume(struct backpressure_sender *sender)
{
	struct chunks_post *post = chunks_post_of(sender);
	bool gone = post->is_gone(post);
	if (!gone)
		backpressure_account(post->line, sender, post->bytes);
	post->go(post, gone ? ERR_CANCELLED : 0);
}

void chunks_door_init(struct chunks_door *door, struct clock *clock, size_t bytes_max,
		      int64_t wait_max_ms)
{
	door->line = (struct backpressure){.bytes_max = bytes_max,
					   .wait_max_ms = wait_max_ms,
					   .clock = clock,
					   .may_run = chunks_door_may_run,
					   .resume = chunks_door_resume};
	backpressure_init(&door->line);
}

int chunks_door_enter(struct chunks_door *door, struct chunks_post *post, size_t bytes)
{
	post->line = &door->line;
	post->bytes = bytes;
	if (backpressure_turns_away(&door->line)) {
		stat_add(STAT_ingest_overload_at_once, 1);
		return ERR_BUSY;
	}
	if (door->line.paused || !chunks_door_has_room(&door->line, post)) {
		backpressure_pause(&door->line, &post->sender);
		return ERR_RETRY;
	}
	backpressure_account(&door->line, &post->sender, bytes);
	return 0;
}

void chunks_door_leave(struct chunks_door *door, struct chunks_post *post)
{
	backpressure_account(&door->line, &post->sender, 0);
	backpressure_resume(&door->line);
}

void chunks_door_tick(struct chunks_door *door)
{
	struct backpressure *line = &door->line;
	while (line->paused && backpressure_waited_ms(line, line->paused) >= line->wait_max_ms) {
		struct chunks_post *post = chunks_post_of(line->paused);
		backpressure_unpause(line, line->paused);
		stat_add(STAT_ingest_overload_waited, 1);
		post->go(post, ERR_BUSY);
	}
	backpressure_resume(line);
}
