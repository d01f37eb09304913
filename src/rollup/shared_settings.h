/* Shared settings: the configuration that all processes have in common which share a store. A
 * process with another one would put series into other partitions, take marks for those of other
 * slots, or believe that what others write is kept for another time.
 *
 * The store has them as one conditional cell, table `leases`, row `settings`, column `rollup`: a
 * line for each option, its name, a blank, its value. A backslash and a newline within a value
 * follow a backslash, the newline as `n`. Who starts compares them with its configuration
 * (stored_settings.h), and each process looks now and then whether they are still its own.
 *
 * They are changed by starting a process that has others, when no process is at work on the store.
 * So a process has to be known to be at work before it reads them: two that start at once with
 * different ones then see each other.
 *
 * Any thread; no state. */
#ifndef ROLLUP_SHARED_SETTINGS_H
#define ROLLUP_SHARED_SETTINGS_H

#include "base/buf.h"
#include "base/exec.h"
#include "store/store.h"

struct rollup_site;

enum {
	SHARED_SETTINGS_MAX_BYTES = 256 << 10,
	SHARED_SETTINGS_NAME_MAX_BYTES = 300, /* of a process */
};

extern const struct store_parts shared_settings_row, shared_settings_column;

/* What the site is configured as, at most SHARED_SETTINGS_MAX_BYTES; else text->failed. */
void shared_settings_print(const struct rollup_site *site, struct buf *text);

/* An option that two texts do not have in common. */
struct shared_settings_difference {
	struct slice option, stored, own; /* into the texts; the values as they are written there */
	size_t others;                    /* options that differ, too */
};

/* False: there is none. */
bool shared_settings_differ(struct slice stored, struct slice own,
			    struct shared_settings_difference *difference);

/* Whether a granularity of that width is configured, as granularity_width_print has it. */
bool shared_settings_have_granularity(struct slice text, struct slice width);

/* Looks for a process other than the site's that is at work on the store, by its session: *name,
 * empty if there is none. Waits; the store's error. */
int shared_settings_find_other(const struct rollup_site *site, struct task_queue *queue,
			       char name[SHARED_SETTINGS_NAME_MAX_BYTES]) MUST_CHECK;

/* Returns ERR_INVALID with the sentence for somebody who starts a process while `other` is at work
 * with the stored settings. */
int shared_settings_refuse(const struct shared_settings_difference *difference, const char *other,
			   struct errbuf *e);
/* Says so of a process that is at work when the stored ones have become others. */
void shared_settings_complain(const struct shared_settings_difference *difference);

#endif
