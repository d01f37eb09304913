/* The parts of telling (tell.c): one turn of one owner, on its thread. */
#ifndef FAULT_TELL_PRIVATE_H
#define FAULT_TELL_PRIVATE_H

#include "base/hash_set.h"
#include "fault/book_private.h"
#include "fault/groups.h"
#include "fault/message.h"
#include "fault/said.h"

enum {
	TELL_CAUSES_MAX = 500, /* of a turn; and so many groups are judged */
	TELL_LATE_MAX = 500,   /* messages that get new dates in a turn */
	TELL_NOTE_VERSION = 1, /* in `fault_notes` */
};

/* What an owner has in memory for its tenure. */
struct fault_teller {
	uint64_t tenure; /* in which this was read */
	int64_t last_us; /* when the last message was made */
	int64_t hour;    /* that it is by the clock */
	uint64_t told;   /* so many of that hour are not held back */
	int64_t *hours;  /* in which some were held back, and FAULT_HELD_BACK was not made */
	size_t hour_count, hour_room;
	size_t judged;                  /* groups, since the begin */
	struct hash_table said, opened; /* of tell_said (tell_groups.c), of tell_told */
	int64_t rises_day;              /* of which: */
	struct hash_table rises;        /* of tell_rise (tell_groups.c) */
	/* On a store that processes share: the ids of the messages that were there at the begin and
	 * of those that were made since; and when, by the monotonic clock, it looks for others. */
	struct hash_set seen, there; /* there: while it looks, those that it meets again */
	int64_t look_us, wait_us;
};

/* A group of which it was told that it is open again. A slot of a hash table. */
struct tell_told {
	struct hash128 hash; /* of its name */
	int64_t said_us;     /* when that was said which its reports have undone */
};

/* A cell of `fault_causes`. */
struct tell_cause {
	struct slice day_text, group; /* group len 0: the day is over */
	int64_t day;
	bool stays; /* it is looked at again */
};

struct tell_made {
	struct fault_message message;
	char id[FAULT_MESSAGE_ID_BYTES + 1];
	bool there;             /* somebody made it already */
	bool late;              /* likewise, and it landed when later ones were there */
	struct hash128 of_said; /* the group, if it is one that is open again */
};

struct tell {
	struct fault_book *book;
	struct fault_teller *teller;
	struct task_queue *queue;
	struct errbuf *e;
	int64_t until_ms, busy_us;
	size_t done; /* pieces of this part */
	struct arena arena;
	struct fault_merges merges; /* in the arena */
	struct tell_cause *causes;
	size_t cause_count;
	struct tell_made *made;
	size_t made_count;
	bool more; /* something is left for the next turn */
};

/* ---- tell.c ---------------------------------------------------------------------------------- */

/* Whether the time of this part of a turn is over. Of each part at least one piece is done. */
bool tell_part_is_over(const struct tell *t);
void tell_begin_part(struct tell *t);

/* One more message of the turn, without its date. There is room for what a turn may find. */
struct tell_made *tell_make(struct tell *t, enum fault_message_kind kind, struct slice group,
			    int64_t of_us);
/* A copy in the arena. */
struct slice tell_keep(struct tell *t, struct slice text);
/* What a message says of a group. */
void tell_describe(struct tell *t, struct fault_message *message, const struct fault_tally *tally);
/* Reports of a day that is in memory, of a group and those that it stands for. With the lock of the
 * book. */
uint64_t tell_count_of_day(const struct tell *t, const struct fault_day *day, struct slice group);
int tell_read_group(struct tell *t, struct slice group,
		    struct fault_group_history *history) MUST_CHECK;

/* ---- tell_past.c ----------------------------------------------------------------------------- */

/* Once in a tenure: reads what was told before it. */
int tell_begin(struct tell *t, uint64_t tenure) MUST_CHECK;
/* Messages of an owner before this one that have landed since. The first part of a turn. */
int tell_late(struct tell *t) MUST_CHECK;

/* Counts a message for its hour. */
void tell_note(struct fault_teller *teller, const struct fault_message *message);
/* One that is there, which is not late any more. */
void tell_note_seen(struct tell *t, const struct fault_message *message);
/* It was told that reports have undone what was said of a group at this time. */
void tell_note_opened(struct fault_teller *teller, struct hash128 group, int64_t said_us);
/* Hours, since the epoch, of which it is to be told what was held back. */
void tell_add_hour(struct fault_teller *teller, int64_t hour);
void tell_forget_hour(struct fault_teller *teller, int64_t hour);
int64_t tell_hour_now(const struct tell *t);
/* Whether the message counts for fault.messages_max. The other kinds are few: one a day, and one an
 * hour. */
bool tell_is_capped(const struct fault_message *message);

/* ---- tell_groups.c --------------------------------------------------------------------------- */

/* Groups that were resolved or muted, and are open again. */
int tell_said(struct tell *t) MUST_CHECK;
/* Groups with more reports today than they usually have by this time. */
int tell_rises(struct tell *t) MUST_CHECK;

#endif
