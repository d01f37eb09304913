/* Taking reports in: each becomes an arrival and an entry by its id, or is found to be there
 * already.
 *
 * Order of events, of one submission: its ids and hashes are looked up; what is not there gets
 * its group, a date and a sequence number; the attachments are written, and when they are durable
 * the arrivals, and after these the entries by id; then the submission is done. While a report is
 * on this way no other submission with its id begins, so that a process never takes one report
 * twice.
 *
 * A write whose outcome is not known is sent again, as it was, until it is known: its submission is
 * not done before. What was refused leaves a void under its sequence number, so that nobody waits
 * for it.
 *
 * Threads: all of it belongs to the thread of the executor. */
#ifndef FAULT_INTAKE_H
#define FAULT_INTAKE_H

#include "base/exec.h"
#include "fault/attachment.h"
#include "fault/hashes.h"
#include "fault/site.h"

enum fault_outcome {
	FAULT_TAKEN,    /* it is durable */
	FAULT_REPEATED, /* it was there, with the same content */
	FAULT_CONFLICT, /* a report with this id was there, with another content, and stays */
	FAULT_ERASED,   /* a report with this id was removed for its user (erase.h) */
	FAULT_FAILED,   /* `err` says why */
};

struct fault_item {
	/* What is submitted; stays until the submission is done. */
	struct slice id;
	struct hash128 digest;
	struct fault_facts facts;        /* the intake changes their group (hashes.h) */
	uint64_t dictionary, body_bytes; /* arrival.h */
	struct slice packed;
	const struct fault_attachment *attachments; /* facts.attachments of them */

	/* Result. */
	enum fault_outcome outcome;
	int err;
	int64_t date_us; /* of the report that is there */

	/* The intake's. */
	struct store_request *request;
	size_t same; /* the first item of the submission with this id */
	uint64_t sequence;
	struct fault_lookup lookup;
};

enum { FAULT_ITEMS_MAX = 1000 }; /* of one submission */

struct fault_submission {
	struct slice tenant; /* stays until it is done */
	struct fault_item *items;
	size_t count;
	void (*done)(struct fault_submission *submission);
	void *owner; /* the caller's */

	/* The intake's. */
	struct fault_intake *intake;
	struct intake_writer *writer;
	struct store_read *read;
	struct store_write *write;
	size_t arrivals_stage; /* which stage of the write has the arrivals: 0 or 1 */
	bool again;            /* the write is to be sent again */
	bool unknown;          /* arrivals of it may be there, or are */
	int64_t numbered_us;   /* when its reports were received */
	struct fault_submission *next;
};

struct fault_intake;

struct fault_intake_options {
	const struct fault_site *site; /* the caller's */
	struct executor *executor;
	uint64_t seed; /* of the writers' numbers */
	/* Reports of this tenant have been written. May be NULL. */
	void (*written)(void *owner, struct slice tenant);
	void *owner;
};
struct fault_intake *fault_intake_new(const struct fault_intake_options *options);
/* When it is idle. */
void fault_intake_free(struct fault_intake *intake);
bool fault_intake_is_idle(const struct fault_intake *intake);

/* `done` comes in any case, maybe from within this call. ERR_BUSY: too much waits already, and
 * nothing was begun; ERR_LIMIT: more than FAULT_ITEMS_MAX items. */
int fault_intake_submit(struct fault_intake *intake,
			struct fault_submission *submission) MUST_CHECK;

/* To be called several times a second: sends again what is to be sent again. */
void fault_intake_tick(struct fault_intake *intake);

#endif
