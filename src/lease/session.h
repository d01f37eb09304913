/* The session: the one lease of a process in the store. All that the process has a right to, its
 * claims (lease.h, job_claim.h), names its session and lives with it, so that a process renews one
 * cell, whatever it has claimed.
 *
 * A session is a conditional cell (`leases`, kind "session", name its holder; session_cell.h). Who
 * has it, has it until the time that the cell says, by his own clock. Others take it for dead when
 * that time has passed by their clocks, and the difference of clocks in addition; or when the cell
 * is not there. So they begin after the end, and with higher stamps.
 *
 * A session breaks when its cell is gone, or when it is renewed too late: others may have taken
 * over what it had by then. Whoever has claims compares `breaks`, and claims anew what he had
 * before.
 *
 * Order matters to those who judge others: first they read the claim, then the session that it
 * names, and they judge by what their clock said before they read it. Then a session that is found
 * dead was dead while the claim was there, and whoever has the claim still finds out that his
 * session broke before he relies on it again. He writes his claims anew, so that a taking over that
 * is under way fails.
 *
 * On a store that is one process' own (not STORE_SHARED) the holder is the process' name, and what
 * names that holder is its own at once, also after a restart.
 *
 * Threads: any; what waits for the store does so on the thread of the queue that it is given. */
#ifndef LEASE_SESSION_H
#define LEASE_SESSION_H

#include "base/clock.h"
#include "base/log.h"
#include "lease/session_cell.h"
#include "store/store.h"

enum { SESSION_HOLDER_MAX_BYTES = 255 };

/* Whether a claim can be one of this holder. */
bool lease_session_is_holder(struct slice text);

struct lease_session;

/* Texts are the caller's. */
struct lease_session_options {
	struct store *store;
	struct clock *clock;
	struct slice holder;  /* the name and, where a store is shared, a number by lot */
	struct slice name;    /* as it was configured */
	struct slice address; /* where it is reached; may be empty */
	unsigned roles;       /* enum session_role */
	int64_t lease_ms;     /* of a renewal */
	int64_t skew_max_ms;  /* by how much clocks may differ; a quarter of the lease at most */
};

/* Nothing is written yet. */
struct lease_session *lease_session_new(const struct lease_session_options *options);
void lease_session_free(struct lease_session *session);
const struct lease_session_options *lease_session_options_of(const struct lease_session *session);

struct session_hold {
	int64_t until_ms; /* it lasts so long by the wall clock, at least */
	uint64_t breaks;  /* how often it began, or broke */
};

/* Begins or renews it. A cell that cannot be read, or names another holder, is told of and written
 * anew, which is a break. ERR_RETRY: somebody else writes the cell; or the store's error. */
int lease_session_renew(struct lease_session *session, struct task_queue *queue,
			struct session_hold *hold) MUST_CHECK;
/* Takes its cell away, if there is one. ERR_RETRY: somebody else writes it; or the store's error.
 */
int lease_session_end(struct lease_session *session, struct task_queue *queue) MUST_CHECK;

/* Takes the cells of all away, and with them all claims: of a store that was copied from another,
 * whose processes have nothing to do with it. With a sentence. */
int lease_sessions_void(struct store *store, struct clock *clock, struct task_queue *queue,
			struct errbuf *e) MUST_CHECK;

/* Begins it where others use the store, and names in the log those whose clocks are ahead by more
 * than is permitted. The store's error with a sentence. */
int lease_session_open(struct lease_session *session, struct task_queue *queue,
		       struct errbuf *e) MUST_CHECK;

/* All sessions. */
struct sessions {
	struct arena arena; /* has their texts */
	int64_t now_ms;     /* by our clock, before they were read */
	struct session_seen *list;
	size_t count, room;
	struct log_rate lines; /* of those that cannot be read */
};
struct session_seen {
	struct session_cell cell; /* of one that cannot be read, its holder alone */
	bool alive;               /* one that cannot be read counts as alive */
};

/* To be called after the claims were read that are to be judged. Reuses what is in *sessions; zeros
 * at first. */
int sessions_look(struct sessions *sessions, const struct lease_session *session,
		  struct task_queue *queue) MUST_CHECK;
void sessions_release(struct sessions *sessions);
/* NULL: there is none of that holder. */
const struct session_seen *sessions_find(const struct sessions *sessions, struct slice holder);

#endif
