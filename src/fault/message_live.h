/* Viewers of messages of tenants (message.h): each is told of those that were made since the last
 * that it saw, in the order of their dates, which rise; so none is left out, and one that begins
 * again behind the last that it saw is told of each at least once. Messages that are held back are
 * not told.
 *
 * The job of fault/live.h looks for all viewers, when messages were made or a second has passed.
 *
 * Threads: as fault/live.h. */
#ifndef FAULT_MESSAGE_LIVE_H
#define FAULT_MESSAGE_LIVE_H

#include "fault/message.h"
#include "loop/job.h"

enum { FAULT_MESSAGES_TOLD_MAX = 100 }; /* at once; the others follow */

struct message_live;

struct fault_messages_told {
	const struct fault_message *list; /* newest first; valid during the call */
	size_t count;
	bool begins; /* it has been told of what there was; from now on of what comes */
};

/* Whoever wants to be told. It begins with the first three filled in. */
struct fault_message_viewer {
	/* There may be nothing to tell. It notes in `seen_us` what it has seen. The viewer may
	 * leave within. */
	void (*show)(struct fault_message_viewer *viewer, const struct fault_messages_told *told);
	bool has_seen; /* else it begins behind the newest message that there is */
	int64_t seen_us;
	/* private */
	struct message_feed *feed; /* NULL: it does not watch */
	uint64_t number;           /* of its watch */
	bool begun;                /* it was told so */
	struct fault_message_viewer *following, **place;
};

/* The site is the caller's. */
struct message_live *message_live_new(const struct fault_site *site);
/* Nobody watches, and its batches have come. */
void message_live_free(struct message_live *live);
/* Looks once for all viewers; what it finds it posts to the executor. True: there is more to be
 * looked for. By the job. */
bool message_live_look(struct message_live *live, struct job *job, struct executor *executor);
/* Any thread. */
bool message_live_is_watched(struct message_live *live);

/* The tenant's name is copied. */
void message_live_watch(struct message_live *live, struct fault_message_viewer *viewer,
			struct slice tenant);
/* It is told nothing any more. Allowed for one that does not watch. */
void message_live_leave(struct fault_message_viewer *viewer);

#endif
