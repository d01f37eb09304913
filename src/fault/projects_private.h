/* Projects in memory (projects.c), and what is taken of their quotas (projects_quota.c). */
#ifndef FAULT_PROJECTS_PRIVATE_H
#define FAULT_PROJECTS_PRIVATE_H

#include <pthread.h>

#include "fault/projects.h"

enum { QUOTA_COLUMN_BYTES = 16 + 1 };

/* What this process took of a quota, and all others, by the last exchange. */
struct projects_quota {
	struct fault_quota own, others;
	bool asked;   /* since the last exchange */
	bool changed; /* `own`, likewise */
};

struct projects_slot {
	struct fault_project project;
	struct projects_quota quota;
	bool is_told; /* that a cell of its quota cannot be read */
};

struct fault_projects {
	struct store *store;
	struct clock *clock;
	struct fault_quota_limits limits;
	/* The cells of this process, and of no other one, nor of an earlier one of its name. */
	char quota_column[QUOTA_COLUMN_BYTES];
	pthread_mutex_t lock; /* guards the list */
	struct projects_slot *list;
	size_t count, room; /* by number ascending */
	uint64_t largest;   /* number that is taken, also of one that cannot be read */
};

/* With the lock: the first one with this number or a larger one. */
size_t projects_place(const struct fault_projects *projects, uint64_t number);
/* With the lock; NULL: there is none with this number. */
struct projects_slot *projects_slot_of(const struct fault_projects *projects, uint64_t number);

#endif
