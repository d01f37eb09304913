/* Fault reports (document O, OOPS Repository): taken, counted, read.
 *
 *     door  --submission-->  intake  --arrival, then id-->  store
 *                                                            |
 *     page, CLI  <--day, list, report--  book of the tenant  <--  owner: a pass each second
 *
 * This is the whole of it for one process: its intake, a book of each tenant that anybody asked for
 * or wrote to, and the job that owns tenants: it takes the leases of their partitions, and does
 * their passes (book.h). Where tenants have quotas a job tells other processes what was taken of
 * them (projects.h).
 *
 * Threads: fault_open, fault_stop, fault_is_over, fault_close, fault_tick and the intake belong to
 * the thread of the executor. What waits (fault_read_report, and what book.h has) runs on any
 * thread that may wait. */
#ifndef FAULT_FAULT_H
#define FAULT_FAULT_H

#include "fault/attachment.h"
#include "fault/book.h"
#include "fault/collect.h"
#include "fault/intake.h"
#include "fault/live.h"
#include "fault/projects.h"
#include "fault/report.h"
#include "fault/tables.h"
#include "lease/session.h"

enum {
	FAULT_TENANTS_MAX = 10000,
	FAULT_BUGS_MAX = 16, /* trackers of which something was said of one report */
};

struct fault_options {
	struct store *store;
	struct clock *clock;
	struct executor *executor;
	struct lease_session *session;
	struct fault_day_limits limits;
	struct fault_masks masks;
	int64_t skew_max_ms, write_max_ms;
	int64_t every_ms; /* between passes, and between exchanges of quotas */
	struct fault_collect_rules collect;
	int64_t collect_every_ms;
	uint64_t messages_max; /* of a tenant, in an hour; 0: any number */
	int64_t messages_keep_ms;
	struct fault_quota_limits quotas; /* of each tenant that Sentry's clients send for */
	uint64_t seed;                    /* of writers' numbers */
};

struct fault;
struct fault_bug; /* said.h */

/* Blocks for a moment. The store's error, with a sentence. The texts are the caller's. */
int fault_open(const struct fault_options *options, struct fault **fault,
	       struct errbuf *e) MUST_CHECK;
/* Begins to own tenants, and to tell news. */
void fault_start(struct fault *fault);
/* The owner ends after the pass that is at work. What was taken of quotas is told once more. */
void fault_stop(struct fault *fault);
bool fault_is_over(const struct fault *fault); /* and no submission is at work */
void fault_close(struct fault *fault);
void fault_tick(struct fault *fault); /* several times a second */

struct fault_intake *fault_intake_of(struct fault *fault);
const struct fault_site *fault_site_of(const struct fault *fault);
struct fault_projects *fault_projects_of(struct fault *fault);
struct fault_live *fault_live_of(struct fault *fault);
struct executor *fault_executor_of(const struct fault *fault);

/* The book of a tenant that reports were taken of, here or by other processes; of any other tenant
 * one that is made for the moment, so that whoever only asks fills no memory. It is to be given
 * back. Any thread. */
struct fault_book *fault_book_borrow(struct fault *fault, struct slice tenant);
void fault_book_return(struct fault *fault, struct fault_book *book);
/* All that there are now, of tenants that reports were taken of; the caller frees the list. None
 * goes before the end. Any thread. */
struct fault_book **fault_copy_books(struct fault *fault, size_t *count);
/* Waits some seconds until this process counts the reports of a tenant: it begins some time after
 * the first, or never, where another one does. ERR_RETRY, with a sentence; ERR_CANCELLED. */
int fault_wait_for_owner(struct fault_book *book, struct job *job, struct errbuf *e) MUST_CHECK;
/* It rises when messages were made by this process. Any thread. */
uint64_t fault_messages_made(const struct fault *fault);
const struct fault_collect_rules *fault_collect_rules_of(const struct fault *fault);

/* ---- One report ------------------------------------------------------------------------------ */

struct fault_found {
	struct slice id; /* as it is stored */
	struct fault_order order;
	struct fault_facts facts;
	struct buf body;       /* JSON; the caller's to release */
	size_t conflict_count; /* other contents that came under this id at the same time */
	/* Its files, without their contents, by number; those that can be read. */
	struct fault_attachment *attachments;
	size_t attachment_count;
	/* What was said of it later: each wins over the attribute of that name in the body. */
	struct fault_oops_bug *bugs;
	size_t bug_count;
};

/* Finds a report as people write ids: as given, in large or small letters, each with and without
 * `OOPS-`. Texts go to the arena. ERR_NOT_FOUND; ERR_DAMAGED; or the store's error, with a
 * sentence.
 */
int fault_read_report(struct fault *fault, struct task_queue *queue, struct slice tenant,
		      struct slice id, struct arena *arena, struct fault_found *found,
		      struct errbuf *e) MUST_CHECK;

/* Says which bug of a tracker a report is; with an empty text none, whatever its body says. What
 * was said last counts. *found is the report after that. The texts are at most
 * FAULT_BUG_TRACKER_MAX_BYTES and FAULT_SAID_TEXT_MAX_BYTES long. ERR_NOT_FOUND; ERR_INVALID: bugs
 * of FAULT_BUGS_MAX other trackers were said of it; ERR_UNKNOWN: nobody knows whether it is stored;
 * or what reading has; with a sentence. */
int fault_say_bug(struct fault *fault, struct task_queue *queue, struct slice tenant,
		  struct slice id, const struct fault_bug *said, struct arena *arena,
		  struct fault_found *found, struct errbuf *e) MUST_CHECK;

/* Finds several reports of a tenant, one after the other: of a report that lies in a sealed
 * run the directory is kept for the next one, which often lies in the same. To be released. */
struct fault_finder {
	struct fault *fault;
	struct task_queue *queue;
	struct slice tenant;
	struct fault_run *run; /* private; NULL at first */
};
int fault_finder_read(struct fault_finder *finder, struct slice id, struct arena *arena,
		      struct fault_found *found, struct errbuf *e) MUST_CHECK;
void fault_finder_release(struct fault_finder *finder);

/* The content of a file that came with a report, appended to `content`. ERR_NOT_FOUND: there is
 * none of this number, or it was not kept; ERR_DAMAGED; or the store's error, with a sentence. */
int fault_read_attachment(struct fault *fault, struct task_queue *queue, struct slice tenant,
			  const struct fault_found *found, uint64_t number, struct buf *content,
			  struct errbuf *e) MUST_CHECK;

/* The TimeUUID of a report (RFC 9562, version 1), as `day_oops` of document O has it: made of the
 * time of receipt and the writer. Ends with a zero. */
enum { FAULT_UUID_TEXT_BYTES = 36 };
void fault_time_uuid(const struct fault_order *order, char to[FAULT_UUID_TEXT_BYTES + 1]);

#endif
