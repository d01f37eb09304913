/* Two tables: the paths, and the directories by the descriptor of their watch, each with the list
 * of the paths by which it was added. Both follow what the system says: it ends a watch with its
 * directory (IN_IGNORED), and gives another descriptor for another directory. Descriptors are not
 * used again (but after 2^31 of them), so what is still queued of an ended watch finds no directory
 * and is not told.
 *
 * A renamed directory keeps its watch in the system; its path is another directory's by then, or
 * nobody's. So such a watch is ended here, as if the directory had been removed.
 *
 * Where the queue was full, what would have kept the tables right may be among the lost: each path
 * is then added again. */
#include "base/watch.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash_table.h"
#include "base/mem.h"

enum {
	READ_BYTES = 64 * 1024,
	BYTES_PER_WAIT_MAX = 1024 * 1024,
	WAIT_MAX_MS = 24 * 3600 * 1000,
	EVENTS_OF_DIRECTORY = IN_CREATE | IN_MODIFY | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
			      IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR,
};

struct watch_path {
	struct watch_path *next; /* to the same directory */
	struct hash128 hash;
	int descriptor;
	char text[];
};

/* An entry of both tables. Paths with one hash would take each other's watch, and nothing worse. */
struct watch_slot {
	struct hash128 hash;
	struct watch_path *path; /* of a directory: the first */
};

struct watch {
	int events_fd, wake_fd;
	struct hash_table paths, directories;
	bool telling;
	_Alignas(struct inotify_event) char buffer[READ_BYTES];
};

/* ---- What is watched ------------------------------------------------------------------------- */

static struct hash128 watch_key(int descriptor)
{
	return (struct hash128){(uint64_t)descriptor, 1};
}

static struct watch_path *watch_paths_of(const struct watch *watch, int descriptor)
{
	struct watch_slot *slot = hash_table_find(&watch->directories, watch_key(descriptor));
	return slot ? slot->path : NULL;
}

static void watch_keep(struct watch *watch, struct slice directory, struct hash128 hash,
		       int descriptor)
{
	bool added;
	struct watch_path *path = mem_alloc(sizeof(*path) + directory.len + 1);
	struct watch_slot *slot =
		hash_table_add(&watch->directories, watch_key(descriptor), sizeof(*slot), &added);
	*path = (struct watch_path){.next = slot->path, .hash = hash, .descriptor = descriptor};
	memcpy(path->text, directory.data, directory.len + 1);
	slot->path = path;
	slot = hash_table_add(&watch->paths, hash, sizeof(*slot), &added);
	ASSERT(added);
	slot->path = path;
}

/* With the last path of a directory its watch ends; the system may have ended it already. */
static void watch_forget(struct watch *watch, struct watch_path *path)
{
	struct hash128 key = watch_key(path->descriptor);
	struct watch_slot *slot = hash_table_find(&watch->directories, key);
	struct watch_path **link = &slot->path;
	while (*link != path)
		link = &(*link)->next;
	*link = path->next;
	if (!slot->path) {
		hash_table_remove(&watch->directories, key);
		(void)inotify_rm_watch(watch->events_fd, path->descriptor);
	}
	hash_table_remove(&watch->paths, path->hash);
	mem_free(path);
}

int watch_add(struct watch *watch, const char *directory)
{
	struct slice text = slice_of(directory);
	struct hash128 hash = hash128(text.data, text.len, 0);
	struct watch_slot *slot = hash_table_find(&watch->paths, hash);
	ASSERT(!watch->telling);
	if (!slot && watch->paths.count >= WATCH_PATHS_MAX)
		return ERR_LIMIT;
	int descriptor = inotify_add_watch(watch->events_fd, directory, EVENTS_OF_DIRECTORY);
	int err = descriptor < 0 ? -errno : 0;
	if (!err && slot && slot->path->descriptor == descriptor)
		return 0;
	if (slot)
		watch_forget(watch, slot->path);
	if (err == -ENOENT || err == -ENOTDIR)
		return ERR_NOT_FOUND;
	if (err)
		return err == -ENOSPC ? ERR_LIMIT : err;
	watch_keep(watch, text, hash, descriptor);
	return 0;
}

void watch_remove(struct watch *watch, const char *directory)
{
	ASSERT(!watch->telling);
	struct watch_slot *slot =
		hash_table_find(&watch->paths, hash128(directory, strlen(directory), 0));
	if (slot)
		watch_forget(watch, slot->path);
}

size_t watch_count(const struct watch *watch)
{
	return watch->paths.count;
}

/* What is not there any more is forgotten by that. */
static void watch_add_all_again(struct watch *watch)
{
	size_t count = 0;
	char **paths = mem_alloc_array(watch->paths.count, sizeof(*paths));
	for (size_t at = 0; at < watch->paths.slot_count; at++) {
		const struct watch_slot *slot = hash_table_at(&watch->paths, at);
		if (slot)
			paths[count++] = mem_copy_text(slice_of(slot->path->text));
	}
	for (size_t i = 0; i < count; i++) {
		(void)!watch_add(watch, paths[i]);
		mem_free(paths[i]);
	}
	mem_free(paths);
}

/* ---- Telling --------------------------------------------------------------------------------- */

static void watch_tell_of(struct watch *watch, const struct inotify_event *event, const char *name,
			  watch_fn *tell, void *owner)
{
	watch->telling = true;
	for (struct watch_path *path = watch_paths_of(watch, event->wd); path; path = path->next)
		tell(owner, path->text, name);
	watch->telling = false;
}

static void watch_end_watch_of(struct watch *watch, int descriptor)
{
	struct watch_path *path;
	while ((path = watch_paths_of(watch, descriptor)))
		watch_forget(watch, path);
}

static bool watch_is_same(const struct inotify_event *a, const struct inotify_event *b)
{
	return a->wd == b->wd && !a->len == !b->len && (!a->len || !strcmp(a->name, b->name));
}

/* A name that follows itself is told once, but only within what was read at one go: what was read
 * later may have happened after the first was told, and would be missed. True: some are lost. */
static bool watch_tell_all(struct watch *watch, size_t bytes, watch_fn *tell, void *owner)
{
	const struct inotify_event *event, *last = NULL;
	bool lost = false;
	for (size_t at = 0; at < bytes; at += sizeof(*event) + event->len, last = event) {
		event = (const void *)(watch->buffer + at);
		lost |= event->mask & IN_Q_OVERFLOW;
		if (!last || !watch_is_same(event, last))
			watch_tell_of(watch, event, event->len ? event->name : NULL, tell, owner);
		if (event->mask & (IN_MOVE_SELF | IN_IGNORED))
			watch_end_watch_of(watch, event->wd);
	}
	return lost;
}

/* How many bytes of events; 0: there are none. */
static size_t watch_read(struct watch *watch)
{
	ssize_t got;
	do
		got = read(watch->events_fd, watch->buffer, sizeof(watch->buffer));
	while (got < 0 && errno == EINTR);
	return got > 0 ? (size_t)got : 0;
}

/* ---- Waiting --------------------------------------------------------------------------------- */

/* Until somebody wakes it, something is there to be told (unless it rests), or the time is over. */
static void watch_poll(struct watch *watch, bool resting, int64_t timeout_ms)
{
	struct clock *clock = clock_real();
	struct pollfd fds[] = {{.fd = watch->wake_fd, .events = POLLIN},
			       {.fd = watch->events_fd, .events = POLLIN}};
	int64_t left_us =
		(timeout_ms < 0 ? WAIT_MAX_MS : smaller_of(timeout_ms, WAIT_MAX_MS)) * 1000;
	int64_t until_us = clock->mono_us(clock) + left_us;
	do {
		if (poll(fds, resting ? 1 : 2, (int)((left_us + 999) / 1000)) > 0)
			return;
		left_us = timeout_ms < 0 ? (int64_t)WAIT_MAX_MS * 1000
					 : until_us - clock->mono_us(clock);
	} while (left_us > 0);
}

void watch_wait(struct watch *watch, int64_t timeout_ms, watch_fn *tell, void *owner)
{
	uint64_t wakes;
	size_t bytes;
	bool lost = false;
	ASSERT(!watch->telling);
	watch_poll(watch, false, timeout_ms);
	while (read(watch->wake_fd, &wakes, sizeof(wakes)) < 0 && errno == EINTR)
		;
	for (size_t left = BYTES_PER_WAIT_MAX; left && (bytes = watch_read(watch));
	     left -= bytes < left ? bytes : left)
		lost |= watch_tell_all(watch, bytes, tell, owner);
	if (!lost)
		return;
	watch_add_all_again(watch);
	watch->telling = true;
	tell(owner, NULL, NULL);
	watch->telling = false;
}

void watch_rest(struct watch *watch, int64_t ms)
{
	ASSERT(ms >= 0 && !watch->telling);
	watch_poll(watch, true, ms);
}

void watch_wake(struct watch *watch)
{
	static const uint64_t one = 1;
	/* It fails only where it is awake 2^64 times. */
	while (write(watch->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* ---- Life ------------------------------------------------------------------------------------ */

int watch_open(struct watch **watch, struct errbuf *e)
{
	int events_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	int wake_fd = events_fd < 0 ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (wake_fd < 0) {
		int err = -errno;
		if (events_fd >= 0)
			close(events_fd);
		return errbuf_set(e, err, "cannot watch directories: %s%s", err_text(err),
				  err == -EMFILE ? " (the limit is fs.inotify.max_user_instances, "
						   "or that of open files of the process)"
						 : "");
	}
	*watch = mem_zalloc(sizeof(**watch));
	(*watch)->events_fd = events_fd;
	(*watch)->wake_fd = wake_fd;
	return 0;
}

void watch_close(struct watch *watch)
{
	if (!watch)
		return;
	ASSERT(!watch->telling);
	for (size_t at = 0; at < watch->paths.slot_count; at++) {
		const struct watch_slot *slot = hash_table_at(&watch->paths, at);
		if (slot)
			mem_free(slot->path);
	}
	hash_table_release(&watch->paths);
	hash_table_release(&watch->directories);
	close(watch->events_fd);
	close(watch->wake_fd);
	mem_free(watch);
}
