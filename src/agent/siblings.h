/* The files that a log may have become: the one at its path, and what rotation made of its
 * forerunners beside it. For `app.log` these are names such as `app.log.1`, `app.log.2.gz`,
 * `app.log-20261129`, `app.log.old`, `app-2026-11-29.log` and `app.1.log.zst`.
 *
 * One thread at a time. */
#ifndef AGENT_SIBLINGS_H
#define AGENT_SIBLINGS_H

#include "agent/content.h"
#include "base/clock.h"
#include "base/mem.h"

/* Some file systems note times in steps of two seconds: what changes in the same step as a look
 * would not be seen. */
#define SIBLINGS_STEP_NS INT64_C(3000000000)

enum { SIBLINGS_MAX = 20000, SIBLINGS_NAME_MAX_BYTES = 255 };

struct sibling {
	struct slice name; /* in its directory; zero-terminated */
	struct file_look look;
	enum content_packing packing;
	uint32_t number; /* one more than in its name: `app.log.0` has 1; 0: none */
	bool is_dated;   /* its name has digits that are no such number */
	bool is_log;     /* it is the one at the path */
	size_t unpacked; /* the length of the name without what says that it is packed */
	bool taken;      /* a note of who looks through them */
};

/* Oldest first: those that have neither date nor number, by when they were written to; by falling
 * numbers, or by dates; the one at the path is the youngest. */
struct siblings {
	struct sibling *list;
	size_t count, capacity;
	struct arena arena; /* of names */
	uint64_t which;     /* hash of names and files */

	/* private: all names of the directory that was listed last, sorted. They are looked through
	 * again for another log as long as the directory has not changed since: thousands of logs
	 * may be in one. */
	struct clock *clock;
	struct siblings_names {
		char *directory; /* NULL: they are not to be used again */
		struct file_look look;
		struct arena arena;
		struct slice *list;
		size_t count, capacity;
		bool full; /* not all are here */
	} names;
};

void siblings_init(struct siblings *siblings, struct clock *clock);
void siblings_release(struct siblings *siblings);

/* What is there of the log `base` in a directory. Files that are no regular ones are left out.
 * ERR_RETRY: names changed whenever they were read; ERR_NOT_FOUND: there is no such directory;
 * ERR_LIMIT: there are too many; or why it cannot be read. */
int siblings_find(struct siblings *siblings, struct files *files, const char *directory,
		  struct slice base) MUST_CHECK;

/* Whether the same names are still those of the same files; the list is made anew. ERR_RETRY: they
 * are not. */
int siblings_check(struct siblings *siblings, struct files *files, const char *directory,
		   struct slice base) MUST_CHECK;

/* Whether a name is that of a rotated file of `base`; *number as above. */
bool siblings_is_rotated(struct slice base, struct slice name, uint32_t *number);

/* The names of which a name may be a rotated form; those that had to be put together are in `room`.
 */
enum { SIBLINGS_BASES_MAX = 16 };
size_t siblings_bases_of(struct slice name, struct slice bases[SIBLINGS_BASES_MAX],
			 char room[SIBLINGS_BASES_MAX * (SIBLINGS_NAME_MAX_BYTES + 1)]);

#endif
