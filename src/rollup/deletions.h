/* Deletions that are asked for: one at a time, each carried through.
 *
 * What is to be deleted is written down first (`leases`, kind "deletion", a conditional cell whose
 * value is JSON) and crossed out when it is over: so one that a crash or a stop broke off is done
 * when the store is opened again, before another one begins. A store without room takes no such
 * note; there the deletion is made without it, since it is what makes room, and whoever saw no
 * answer asks once more.
 *
 * Where several processes share the store, one of them deletes at a time (lease/job_claim.h). What
 * is noted there belongs to it: another goes on with it when it starts, and the first one's session
 * is over.
 *
 * Counts only are not written down, and need no claim.
 *
 * The work is done by a job (loop/job.h); everything here belongs to the thread of the executor,
 * which is that of the catalog. */
#ifndef ROLLUP_DELETIONS_H
#define ROLLUP_DELETIONS_H

#include "catalog/catalog.h"
#include "rollup/delete.h"

enum { ROLLUP_DELETION_TAGS_MAX = CATALOG_SELECTORS_MAX, ROLLUP_DELETION_BY_MAX_BYTES = 256 };

struct rollup_deletions;

/* Goes on with what was left; blocks for a moment. The site is the caller's. The catalog is told of
 * series that leave; NULL: none is. */
struct rollup_deletions *rollup_deletions_new(const struct rollup_site *site,
					      struct executor *executor, struct catalog *catalog);
/* Ends what runs; what is left of it is done at the next start. */
void rollup_deletions_stop(struct rollup_deletions *deletions);
bool rollup_deletions_idle(const struct rollup_deletions *deletions);
/* While idle, after stop. */
void rollup_deletions_free(struct rollup_deletions *deletions);

/* What is to be deleted: of a tenant the series of a metric (empty: of all metrics) that all `tags`
 * match, each as catalog_selectors_parse reads it. */
struct rollup_deletion_spec {
	struct slice tenant, metric;
	struct slice tags[ROLLUP_DELETION_TAGS_MAX];
	size_t tag_count;
	int64_t from_ms, to_ms;
	bool whole;
	bool only_count;
	struct slice by; /* whose wish it is, for the log */
};

/* `sentence`: of the error, NULL for 0; what was deleted by then, if anything, is in the result. */
typedef void rollup_deletion_done(void *owner, int err, const char *sentence,
				  const struct rollup_delete_result *result);

/* `done` follows, never from within. ERR_BUSY: another one is at work. ERR_INVALID: a tag. Each
 * with a sentence; then `done` does not come. The spec is copied. */
int rollup_deletions_start(struct rollup_deletions *deletions,
			   const struct rollup_deletion_spec *spec, rollup_deletion_done *done,
			   void *owner, struct errbuf *e) MUST_CHECK;
/* Nobody waits for the one at work any more: `done` does not come. A count ends. */
void rollup_deletions_leave(struct rollup_deletions *deletions);

#endif
