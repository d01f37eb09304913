/* What people have said of a group: that it is resolved, or muted; whose it is; which bugs it is.
 * It is kept by group in the table `fault_said` (doc/format-faults.md), each cell changed under the
 * condition that nobody has changed it meanwhile. Whether a group is open follows from that and
 * from its reports. */
#ifndef FAULT_SAID_H
#define FAULT_SAID_H

#include "fault/groups.h"

enum {
	FAULT_SAID_BUGS_MAX = 16,
	FAULT_SAID_TEXT_MAX_BYTES = 200, /* of a release, an assignee, a tracker, a bug */
	FAULT_SAID_HOURS_MAX = 24 * 31,
};

/* The numbers are on disk: never renumber, only append. */
enum fault_status { FAULT_OPEN = 0, FAULT_RESOLVED = 1, FAULT_MUTED = 2 };

/* Which reports open a resolved group again, of those that came after it was said. */
enum fault_resolved {
	FAULT_RESOLVED_NOW = 0,   /* all */
	FAULT_RESOLVED_IN = 1,    /* of this release, or a later one */
	FAULT_RESOLVED_AFTER = 2, /* of a release that is later than this one */
};

struct fault_bug {
	struct slice tracker, bug;
};

/* Zeroed: nothing was said. Texts are in an arena. */
struct fault_said {
	enum fault_status status;
	int64_t said_us; /* when the status was said */
	enum fault_resolved resolved;
	/* len 0: none. Of RESOLVED_AFTER: no report had a release when it was said. */
	struct slice release;
	/* Of a muted group: after so many further reports it is open again. 0: it stays muted. */
	uint64_t until;
	/* Only reports within so many successive hours count together; 0: all do. */
	uint64_t hours;
	/* How many reports there were when the status was said: of a resolved group those that
	 * would have opened it, of a muted one all; and all of that hour. Of the groups that it
	 * stood for then: `merged` is that of the history. */
	uint64_t before, before_of_hour, merged;
#define FAULT_SAID_UNCOUNTED UINT64_MAX /* merged: some of these reports are erased (erase.h) */
	struct slice assignee;
	struct fault_bug bugs[FAULT_SAID_BUGS_MAX];
	size_t bug_count;
};

/* What the status is. *again: it was resolved or muted, and reports have opened it again. If groups
 * were merged into it or split off since, nobody has counted their reports when it was said: then
 * the times of receipt decide, of a muted group by the hour. A report
 * without a release opens what is resolved by releases: nobody can say that it has the mend. Where
 * releases are no versions (release.h), one is later than another whose first report came later.
 * Of the history's facts it needs the releases only (FAULT_SAID_FACTS). */
#define FAULT_SAID_FACTS (1u << FAULT_TALLY_RELEASE)
enum fault_status fault_said_status(const struct fault_said *said,
				    const struct fault_group_history *history, bool *again);
/* What each status is called; ends with NULL. */
extern const char *const fault_statuses[];

/* Sets `before` and `before_of_hour`, by the reports that the group has now. */
void fault_said_count_before(struct fault_said *said, const struct fault_group_history *history,
			     int64_t now_us);

void fault_said_encode(const struct fault_said *said, struct buf *out);
/* Texts point into the bytes. ERR_DAMAGED, ERR_VERSION. */
int fault_said_decode(struct slice bytes, struct fault_said *said) MUST_CHECK;

/* ---- In the store ---------------------------------------------------------------------------- */

/* What was said of a group. Texts go to the arena. The store's error, with a sentence. */
int fault_said_read(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		    struct slice group, struct arena *arena, struct fault_said *said,
		    struct errbuf *e) MUST_CHECK;

/* Changes what was said of a group. `change` is given what is stored, and turns it into what is to
 * be stored, or refuses with a sentence. It is called again if another writer came first.
 * ERR_UNKNOWN: nobody knows whether the change is stored. */
typedef int fault_said_change(void *owner, struct fault_said *said, struct errbuf *e);
int fault_said_write(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		     struct slice group, fault_said_change *change, void *owner,
		     struct arena *arena, struct fault_said *said, struct errbuf *e) MUST_CHECK;

/* All groups of which something was said, as they are stored, in the arena. */
struct fault_said_group {
	struct slice group, cell;
};
struct fault_said_list {
	struct fault_said_group *list; /* by name, ascending */
	size_t count, room;
};
int fault_said_read_all(const struct fault_site *site, struct task_queue *queue,
			struct slice tenant, struct arena *arena, struct fault_said_list *list,
			struct errbuf *e) MUST_CHECK;
/* What was said of a group of the list, which may be nothing, and its status, which follows from
 * that and from all its reports; the question has FAULT_SAID_FACTS. */
int fault_said_judge(const struct fault_said_list *list, struct fault_book *book,
		     struct task_queue *queue, const struct fault_group_question *question,
		     struct fault_said *said, enum fault_status *status, bool *again,
		     struct errbuf *e) MUST_CHECK;

#endif
