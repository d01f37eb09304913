/* Private: makes rates of what fell silent before the server was started. The loop's thread. */
#ifndef PERSIST_SILENT_H
#define PERSIST_SILENT_H

struct persist;
struct post;
struct silent;

struct silent *silent_new(struct persist *persist);
/* The worker of that place hangs: what it was asked is not waited for. */
void silent_abandon(struct silent *silent, const struct post *post);
/* Begins nothing more; `stopped` comes when nothing is under way, perhaps from within. */
void silent_stop(struct silent *silent, void (*stopped)(void *owner), void *owner);
void silent_free(struct silent *silent); /* stopped */

#endif
