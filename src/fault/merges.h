/* Groups that people have merged: each of them is shown, counted and judged as a part of another
 * one, its root. Nothing that is stored of reports changes, so a group that is split off is what it
 * would be if it had never been merged. Whoever shows groups, or what is said of them, asks here
 * which group stands for which.
 *
 *     1-a  --into-->  1-b  --into-->  1-c      the root of 1-a and of 1-b is 1-c
 *
 * All of a tenant are one small cell (`fault_merges`, doc/format-faults.md), which is changed under
 * the condition that nobody has changed it meanwhile. So no two processes can merge groups in a
 * circle, and who reads it sees one moment. */
#ifndef FAULT_MERGES_H
#define FAULT_MERGES_H

#include "base/buf.h"
#include "base/exec.h"
#include "fault/facts.h"
#include "fault/site.h"

enum {
	FAULT_MERGES_MAX = 1000,             /* groups of a tenant that are merged into others */
	FAULT_MERGES_MEMORY_BYTES = 1 << 20, /* an arena with so much has room for them */
};

struct fault_merge {
	struct slice group, into; /* as people said it; `into` may itself be merged into another */
	struct slice root;        /* follows from all of them */
};

/* Zeroed: no group is merged. Lists and texts are in an arena. */
struct fault_merges {
	struct fault_merge *list;    /* by `group`, ascending */
	struct fault_merge *by_root; /* the same by `root`, and then by `group` */
	size_t count;
	int unreadable; /* 0; or why the cell cannot be read: then no group counts as merged */
};

/* ---- What follows from them; of NULL: no group is merged. Pure ------------------------------- */

/* The group that stands for this one: itself, where it is not merged. */
struct slice fault_merges_root(const struct fault_merges *merges, struct slice group);
/* A report's group becomes that which stands for it. */
void fault_merges_apply(const struct fault_merges *merges, struct fault_facts *facts);
/* Whether texts of a report are those that are wanted (FAULT_TEXTS of each), where a wanted one has
 * data; of groups whether the same one stands for both. */
bool fault_merges_fit(const struct fault_merges *merges, const struct slice *wanted,
		      const struct slice *texts);
/* NULL: the group is not merged into another one. */
const struct fault_merge *fault_merges_find(const struct fault_merges *merges, struct slice group);
/* The group and, behind it, all groups that it stands for, by name: how many. `to` has room for
 * fault_merges_room. */
size_t fault_merges_tree(const struct fault_merges *merges, struct slice group, struct slice *to);
static inline size_t fault_merges_room(const struct fault_merges *merges)
{
	return merges ? merges->count + 1 : 1;
}
/* A number for the set of groups that it stands for; 0: none. Is on disk. */
uint64_t fault_merges_hash(const struct fault_merges *merges, struct slice group);

/* ---- Changes --------------------------------------------------------------------------------- */

/* A group is merged into another one; `into` len 0: it is split off. */
struct fault_merge_change {
	struct slice group, into;
};
/* What is merged into a group that is merged itself, is merged into its root. What is so already
 * stays as it is. ERR_INVALID: into itself; ERR_EXISTS: what is merged otherwise forbids it;
 * ERR_LIMIT: there are too many, or the arena is full; with a sentence. `merges` is as it was after
 * an error; else its list is a new one in the arena. Pure. */
int fault_merges_change(struct fault_merges *merges, const struct fault_merge_change *change,
			struct arena *arena, struct errbuf *e) MUST_CHECK;

void fault_merges_encode(const struct fault_merges *merges, struct buf *out);
/* Texts point into the bytes. ERR_DAMAGED, ERR_VERSION; ERR_LIMIT: the arena is full. */
int fault_merges_decode(struct slice bytes, struct arena *arena,
			struct fault_merges *merges) MUST_CHECK;

/* ---- In the store ---------------------------------------------------------------------------- */

/* The store's error, with a sentence. A cell that cannot be read is logged, at most one
 * a minute. */
int fault_merges_read(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		      struct arena *arena, struct fault_merges *merges,
		      struct errbuf *e) MUST_CHECK;
/* Makes the change, and gives what is merged then. Errors as of fault_merges_change;
 * ERR_UNKNOWN: the change may be stored, or not. A damaged cell is replaced. */
int fault_merges_write(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		       const struct fault_merge_change *change, struct arena *arena,
		       struct fault_merges *merges, struct errbuf *e) MUST_CHECK;

#endif
