/* Projects: what Sentry's clients call a tenant. Each has a number, which stands in the address
 * they send to, and keys, one of which they show. A key is public by design: it says whose reports
 * they are, and is taken back where somebody misuses it.
 *
 * They lie in the table `fault_projects` (doc/format-faults.md), a cell each, changed under the
 * condition that nobody has changed it meanwhile. All are in memory, too, as they were when this
 * process read them last: at its start, at its own changes, and, where processes share the store,
 * each minute.
 *
 * Quotas (quota.h) are a tenant's over all processes. Each process has what it took of one in
 * memory, and tells the others by a cell in the table `fault_quotas`, which expires with the
 * longest span that is limited; so what a process took that has ended counts, too. No request waits
 * for that: it is judged by what the last exchange has brought. While the store does not answer,
 * each process goes on with what it knows.
 *
 * Threads: what waits (load, add, keys, exchange) on any thread that may, exchange on one at a
 * time; the others on any. */
#ifndef FAULT_PROJECTS_H
#define FAULT_PROJECTS_H

#include "base/clock.h"
#include "fault/quota.h"
#include "model/series.h"
#include "store/store.h"

enum {
	FAULT_PROJECTS_MAX = 10000,
	FAULT_PROJECT_KEYS_MAX = 16,
	FAULT_PROJECT_KEY_BYTES = 32, /* small hexadecimal digits */
};

struct fault_project {
	uint64_t number; /* from 1 */
	char tenant[TENANT_MAX_BYTES + 1];
	size_t key_count;
	char keys[FAULT_PROJECT_KEYS_MAX][FAULT_PROJECT_KEY_BYTES + 1];
};

struct fault_projects;

/* `limits` are those of each tenant. */
struct fault_projects *fault_projects_new(struct store *store, struct clock *clock,
					  const struct fault_quota_limits *limits);
void fault_projects_free(struct fault_projects *projects);

/* Reads all projects again. A project that cannot be read is named in the log and left out. The
 * store's error with a sentence; then the projects in memory stay. */
int fault_projects_load(struct fault_projects *projects, struct task_queue *queue,
			struct errbuf *e) MUST_CHECK;
/* Reads them, and makes project 1, of the tenant `default`, where it is not there. A store that
 * takes no writes has none then, and the log says so. */
int fault_projects_open(struct fault_projects *projects, struct task_queue *queue,
			struct errbuf *e) MUST_CHECK;

/* False: no project has this number. */
bool fault_projects_find(struct fault_projects *projects, uint64_t number,
			 struct fault_project *found) MUST_CHECK;
/* Whether it is a key of the project. Compared in constant time. */
bool fault_project_has_key(const struct fault_project *project, struct slice key) MUST_CHECK;
/* As many as there were, by number, from the caller's memory to be freed: mem_free. */
struct fault_project *fault_projects_copy(struct fault_projects *projects, size_t *count);

/* As in quota.h, of the project's tenant. Neither waits. */
int64_t fault_projects_take_quota(struct fault_projects *projects, uint64_t number,
				  enum fault_span *full) MUST_CHECK;
int64_t fault_projects_take_bytes(struct fault_projects *projects, uint64_t number,
				  uint64_t bytes) MUST_CHECK;

/* Whether tenants have limits. If not, nothing is counted, written or read of quotas. */
bool fault_projects_have_quotas(const struct fault_projects *projects);
/* Writes what this process has taken since the last exchange, and reads what all others have, of
 * those tenants that it was asked for since then; at first of all. A cell that cannot be read is
 * named in the log once, counted, and passed over; of a row that cannot be read what was read last
 * counts. The store's error with a sentence: what could
 * not be written or read is in the next exchange; so are further tenants, if the store does not
 * answer. */
int fault_projects_exchange_quotas(struct fault_projects *projects, struct task_queue *queue,
				   struct errbuf *e) MUST_CHECK;

/* A project of this tenant, with a key. ERR_INVALID: no tenant can have this name; ERR_EXISTS: it
 * has one, which is in *project; ERR_LIMIT: there are as many as there may be; the store's error;
 * with a sentence. */
int fault_projects_add(struct fault_projects *projects, struct task_queue *queue,
		       struct slice tenant, struct fault_project *project,
		       struct errbuf *e) MUST_CHECK;
/* One more key, which is the last in *project. ERR_NOT_FOUND, ERR_LIMIT, the store's error; with a
 * sentence. */
int fault_projects_add_key(struct fault_projects *projects, struct task_queue *queue,
			   uint64_t number, struct fault_project *project,
			   struct errbuf *e) MUST_CHECK;
int fault_projects_remove_key(struct fault_projects *projects, struct task_queue *queue,
			      uint64_t number, struct slice key, struct fault_project *project,
			      struct errbuf *e) MUST_CHECK;

/* A cell's value. ERR_VERSION, ERR_DAMAGED. */
void fault_project_encode(const struct fault_project *project, struct buf *out);
int fault_project_decode(struct slice bytes, struct fault_project *project) MUST_CHECK;

#endif
