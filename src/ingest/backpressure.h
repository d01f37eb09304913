/* Back-pressure: senders whose data waits to be stored stop reading while there is too much of it,
 * and go on when there is less.
 *
 * A sender says how many bytes it holds (backpressure_account). Above bytes_max of all senders
 * together, or a quarter of that for one, it pauses. Paused senders are resumed in the order in
 * which they paused. One that has waited for too long is overdue: its owner tells it so.
 *
 * One thread. */
#ifndef INGEST_BACKPRESSURE_H
#define INGEST_BACKPRESSURE_H

#include "base/clock.h"

struct backpressure_sender;

struct backpressure {
	size_t bytes_max;
	int64_t wait_max_ms;
	struct clock *clock;
	/* Whether a sender may go on, as far as its owner knows. */
	bool (*may_run)(const struct backpressure_sender *sender);
	void (*resume)(struct backpressure_sender *sender); /* may free senders */

	size_t bytes; /* of all senders */
	struct backpressure_sender *paused, **paused_last;
};

/* Part of its owner; zeroed, it holds nothing. */
struct backpressure_sender {
	struct backpressure_sender *next;
	bool is_paused;
	int64_t paused_ms; /* monotonic: since when */
	size_t bytes;
};

/* The first five members are the caller's. */
void backpressure_init(struct backpressure *b);
/* Says how many bytes the sender holds now. */
void backpressure_account(struct backpressure *b, struct backpressure_sender *sender, size_t bytes);
/* There is room for what the sender holds, and for more. */
bool backpressure_has_room(const struct backpressure *b, const struct backpressure_sender *sender);
void backpressure_pause(struct backpressure *b, struct backpressure_sender *sender);
/* If it is paused. */
void backpressure_unpause(struct backpressure *b, struct backpressure_sender *sender);
/* Resumes some senders that may run. */
void backpressure_resume(struct backpressure *b);
int64_t backpressure_waited_ms(const struct backpressure *b,
			       const struct backpressure_sender *sender);
/* Senders wait for so long that new ones had better come later. */
bool backpressure_turns_away(const struct backpressure *b);

#endif
