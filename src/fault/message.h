/* Messages: what a tenant's reports have brought about that somebody is to be told of, such as a
 * new group. There is one for each cause, and its id is made of the cause: whoever finds the cause
 * once more makes the same message (tell.c).
 *
 * They are kept in the table `fault_messages` (doc/format-faults.md) for a time. */
#ifndef FAULT_MESSAGE_H
#define FAULT_MESSAGE_H

#include "base/buf.h"
#include "base/exec.h"
#include "fault/site.h"
#include "wire/json.h"

enum {
	FAULT_MESSAGE_ID_BYTES = 32,
	FAULT_MESSAGE_TEXT_MAX_BYTES = 2000, /* of any */
};

/* In `fault_notes`, before the name of a group of which it was told that it is open again. */
#define FAULT_NOTE_OF_GROUP "group/"

/* The numbers are on disk: never renumber, only append. */
enum fault_message_kind {
	FAULT_NEW_GROUP = 0, /* the first report of a group */
	FAULT_REGRESSED = 1, /* a report of a group that was resolved */
	FAULT_UNMUTED = 2,   /* so many reports of a group that was muted until then */
	FAULT_DAY_OVER = 3,  /* the counts of a day that had reports are complete */
	FAULT_HELD_BACK = 4, /* of an hour: so many messages beyond the largest number */
	FAULT_RISEN = 5,     /* a group has more reports on a day than usual (rise.h) */
	FAULT_MESSAGE_KINDS
};
extern const char *const fault_message_kinds[]; /* what each is called; ends with NULL */

struct fault_message {
	struct slice id;
	enum fault_message_kind kind;
	int64_t made_us; /* when it was made, by the clock of who made it */
	/* The same, but that of a tenant's messages each is later than the one before. */
	int64_t date_us;
	bool held_back; /* it is in lists, and nobody is told of it but by FAULT_HELD_BACK */
	/* When the group was resolved or muted; or when the day or the hour begins, of FAULT_RISEN
	 * also the day. Else 0. */
	int64_t of_us;
	/* A group: how many reports it had then, of FAULT_RISEN on that day. A day: how many it
	 * has. An hour: how many messages were held back. */
	uint64_t count;
	/* The group, and one of its reports: the first of a new group, else the last. What a
	 * group has of the others is of that one or one near to it. Empty: nothing. */
	struct slice group, title, report, environment, level, release;
};

/* `to` is closed by a zero. `subject`: the group, else empty. */
void fault_message_id(enum fault_message_kind kind, struct slice subject, int64_t of_us,
		      char to[FAULT_MESSAGE_ID_BYTES + 1]);

/* Without the id. */
void fault_message_encode(const struct fault_message *message, struct buf *out);
/* Texts point into the bytes. ERR_DAMAGED, ERR_VERSION. */
int fault_message_decode(struct slice bytes, struct fault_message *message) MUST_CHECK;

/* Its texts become copies in the arena. ERR_LIMIT. */
int fault_message_keep(struct fault_message *message, struct arena *arena) MUST_CHECK;

/* Its members of an object, without what the message does not have (api/fault/faults.h). */
void fault_message_put_json(struct json_writer *json, const struct fault_message *message);

/* Gives each message of a tenant, in any order, to `each`; stops at its first error. What is given
 * is valid during the call. Those that cannot be read are left out, and the log says so. The
 * store's error, with a sentence. */
int fault_messages_read(const struct fault_site *site, struct task_queue *queue,
			struct slice tenant,
			int (*each)(void *owner, const struct fault_message *message), void *owner,
			struct errbuf *e) MUST_CHECK;

struct fault_message_filter {
	int64_t from_us, to_us; /* from <= made < to */
	int64_t after_us;       /* date > after */
	int kind;               /* -1: any */
	bool held_back;         /* those that were held back, too */
	size_t limit;           /* so many of them, at least 1: */
	bool oldest;            /* the oldest; else the newest */
};

struct fault_message_list {
	struct fault_message *list; /* newest first */
	char **memory;              /* of the texts of each */
	size_t count;
	bool cut;          /* there are more */
	int64_t newest_us; /* the date of the newest message, whether it fits or not; 0: none */
};

/* As fault_messages_read. It is to be released also after an error. */
int fault_messages_list(const struct fault_site *site, struct task_queue *queue,
			struct slice tenant, const struct fault_message_filter *filter,
			struct fault_message_list *list, struct errbuf *e) MUST_CHECK;
void fault_message_list_release(struct fault_message_list *list);

#endif
