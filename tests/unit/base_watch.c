/* Watched directories: what is told of real ones, by which path and how often; what ends a watch;
 * waking, resting, and a queue that was full. What the system watches is read from its own list. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/watch.h"
#include "tools/missing.h"

enum {
	TOLD_MAX = 64,
	LONG_MS = 100000, /* the wait is over before, or the test has failed */
};

static char dir[64], inner[128], outer[128];
static struct watch *watch;

/* As "directory|name", without the directory of the test; "-" stands for NULL. */
static struct {
	char text[TOLD_MAX][512];
	size_t count;
} told;

static void note(UNUSED void *owner, const char *directory, const char *name)
{
	size_t at = told.count++ % TOLD_MAX;
	if (directory) {
		assert_memory_equal(directory, dir, strlen(dir));
		directory += strlen(dir) + 1;
	}
	snprintf(told.text[at], sizeof(told.text[at]), "%s|%s", directory ? directory : "-",
		 name ? name : "-");
}

/* The system notes an event before the call that caused it returns: nothing is waited for. */
static void look(void)
{
	told.count = 0;
	watch_wait(watch, 0, note, NULL);
}

/* Exactly these, in this order. */
static void expect(const char *const *texts, size_t count)
{
	look();
	for (size_t i = 0; i < count && i < told.count; i++)
		assert_string_equal(told.text[i], texts[i]);
	assert_int_equal(told.count, count);
}

#define EXPECT(...)                                                                                \
	expect((const char *const[]){__VA_ARGS__}, ARRAY_LEN(((const char *const[]){__VA_ARGS__})))

static const char *in(const char *directory, const char *name)
{
	static char paths[4][600];
	static size_t next;
	char *path = paths[next++ % ARRAY_LEN(paths)];
	snprintf(path, sizeof(paths[0]), "%s/%s", directory, name);
	return path;
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void write_to(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* How many directories the system watches for this process. */
static size_t watches_of_the_system(void)
{
	size_t count = 0;
	DIR *fds = opendir("/proc/self/fdinfo");
	assert_non_null(fds);
	for (struct dirent *entry; (entry = readdir(fds));) {
		char line[512];
		FILE *info = fopen(in("/proc/self/fdinfo", entry->d_name), "r");
		while (info && fgets(line, sizeof(line), info))
			count += !strncmp(line, "inotify wd:", 11);
		if (info)
			fclose(info);
	}
	closedir(fds);
	return count;
}

/* As many in the system, and as many paths of ours: here each directory has one. */
static void expect_watched(size_t count)
{
	assert_int_equal(watches_of_the_system(), count);
	assert_int_equal(watch_count(watch), count);
}

static int set_up(UNUSED void **state)
{
	struct errbuf e = {""};
	memcpy(dir, "/tmp/granary-watch-XXXXXX", 26);
	assert_non_null(mkdtemp(dir));
	snprintf(inner, sizeof(inner), "%s/inner", dir);
	snprintf(outer, sizeof(outer), "%s/outer", dir);
	assert_int_equal(mkdir(inner, 0700), 0);
	assert_int_equal(mkdir(outer, 0700), 0);
	assert_int_equal(watch_open(&watch, &e), 0);
	return 0;
}

static void remove_all_in(const char *directory)
{
	DIR *names = opendir(directory);
	for (struct dirent *entry; names && (entry = readdir(names));) {
		char path[600];
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
		if (unlink(path)) {
			remove_all_in(path);
			rmdir(path);
		}
	}
	if (names)
		closedir(names);
}

static int tear_down(UNUSED void **state)
{
	watch_close(watch);
	assert_int_equal(watches_of_the_system(), 0);
	remove_all_in(dir);
	return rmdir(dir);
}

/* ---- What is told ---------------------------------------------------------------------------- */

static void made_written_renamed_removed(UNUSED void **state)
{
	assert_int_equal(watch_add(watch, inner), 0);
	expect(NULL, 0);
	make_file(in(inner, "a"));
	EXPECT("inner|a");
	write_to(in(inner, "a"), "text");
	EXPECT("inner|a");
	assert_int_equal(chmod(in(inner, "a"), 0644), 0);
	EXPECT("inner|a");
	assert_int_equal(rename(in(inner, "a"), in(inner, "b")), 0);
	EXPECT("inner|a", "inner|b");
	assert_int_equal(rename(in(inner, "b"), in(outer, "b")), 0);
	EXPECT("inner|b");
	write_to(in(outer, "b"), "text"); /* nobody watches that one */
	expect(NULL, 0);
	assert_int_equal(rename(in(outer, "b"), in(inner, "c")), 0);
	EXPECT("inner|c");
	assert_int_equal(mkdir(in(inner, "d"), 0700), 0);
	EXPECT("inner|d");
	make_file(in(inner, "d/deeper"));
	expect(NULL, 0);
	assert_int_equal(unlink(in(inner, "c")), 0);
	EXPECT("inner|c");
	assert_int_equal(chmod(inner, 0755), 0);
	EXPECT("inner|-");
	/* What was open while it was renamed is told by its name of now. */
	int fd = open(in(inner, "e"), O_CREAT | O_WRONLY, 0600);
	assert_int_equal(rename(in(inner, "e"), in(inner, "f")), 0);
	look();
	assert_int_equal(write(fd, "text", 4), 4);
	EXPECT("inner|f");
	close(fd);
}

static void a_name_that_follows_itself_is_told_once(UNUSED void **state)
{
	assert_int_equal(watch_add(watch, inner), 0);
	assert_int_equal(watch_add(watch, outer), 0);
	make_file(in(inner, "a"));
	write_to(in(inner, "a"), "text");
	assert_int_equal(chmod(in(inner, "a"), 0644), 0);
	make_file(in(outer, "a")); /* the same name elsewhere is another */
	make_file(in(outer, "ab"));
	assert_int_equal(chmod(outer, 0755), 0);
	make_file(in(inner, "ab"));
	write_to(in(outer, "a"), "text");
	EXPECT("inner|a", "outer|a", "outer|ab", "outer|-", "inner|ab", "outer|a");
}

static void note_and_change(void *owner, const char *directory, const char *name)
{
	note(NULL, directory, name);
	if (told.count == 1)
		write_to(owner, "more");
}

static void a_directory_that_is_not_wanted_any_more(UNUSED void **state)
{
	assert_int_equal(watch_add(watch, inner), 0);
	assert_int_equal(watch_add(watch, outer), 0);
	make_file(in(inner, "a"));
	make_file(in(outer, "a"));
	watch_remove(watch, inner); /* what happened before is not told either */
	watch_remove(watch, inner);
	EXPECT("outer|a");
	expect_watched(1);
	make_file(in(inner, "b"));
	expect(NULL, 0);
	assert_int_equal(watch_add(watch, inner), 0);
	make_file(in(inner, "c"));
	EXPECT("inner|c");
}

/* Whoever reads a file when it is told of it would not read what came after. */
static void what_changes_while_it_is_told_is_told_again(UNUSED void **state)
{
	char path[600];
	assert_int_equal(watch_add(watch, inner), 0);
	snprintf(path, sizeof(path), "%s", in(inner, "a"));
	make_file(path);
	told.count = 0;
	watch_wait(watch, 0, note_and_change, path);
	assert_int_equal(told.count, 2);
	assert_string_equal(told.text[1], "inner|a");
}

static void names_as_long_as_they_may_be(UNUSED void **state)
{
	char name[256], expected[300];
	memset(name, 'n', 255);
	name[255] = 0;
	snprintf(expected, sizeof(expected), "inner|%s", name);
	assert_int_equal(watch_add(watch, inner), 0);
	make_file(in(inner, name));
	EXPECT(expected);
	/* A name with one byte less is another. */
	write_to(in(inner, name), "text");
	make_file(in(inner, name + 1));
	look();
	assert_int_equal(told.count, 2);
	assert_string_equal(told.text[0], expected);
	assert_string_not_equal(told.text[1], expected);
}

static void what_is_no_directory_is_not_watched(UNUSED void **state)
{
	char path[5000];
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	make_file(in(dir, "file"));
	assert_int_equal(watch_add(watch, in(dir, "file")), ERR_NOT_FOUND);
	assert_int_equal(watch_add(watch, in(dir, "file/below")), ERR_NOT_FOUND);
	assert_int_equal(watch_add(watch, in(dir, "nothing")), ERR_NOT_FOUND);
	assert_int_equal(watch_add(watch, ""), ERR_NOT_FOUND);
	assert_int_equal(watch_add(watch, path), -ENAMETOOLONG);
	expect_watched(0);
}

static void no_instance_is_said(UNUSED void **state)
{
	struct errbuf e = {""};
	struct watch *second = NULL;
	struct rlimit old, none;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	for (rlim_t more = 0; more < 2; more++) {
		int free_fd = dup(0);
		close(free_fd);
		none = (struct rlimit){(rlim_t)free_fd + more, old.rlim_max};
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		int err = watch_open(&second, &e);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
		assert_int_equal(err, -EMFILE);
		assert_non_null(strstr(e.text, "fs.inotify.max_user_instances"));
		int same_fd = dup(0); /* what was open was closed */
		close(same_fd);
		assert_int_equal(same_fd, free_fd);
	}
	watch_close(NULL);
}

/* ---- What ends a watch ----------------------------------------------------------------------- */

static void adding_again_changes_nothing(UNUSED void **state)
{
	for (int i = 0; i < 1000; i++)
		assert_int_equal(watch_add(watch, inner), 0);
	expect_watched(1);
	make_file(in(inner, "a"));
	EXPECT("inner|a");
}

static void a_removed_directory_leaves_nothing(UNUSED void **state)
{
	assert_int_equal(watch_add(watch, inner), 0);
	assert_int_equal(watch_add(watch, outer), 0);
	assert_int_equal(rmdir(inner), 0);
	EXPECT("inner|-");
	expect_watched(1);
	assert_int_equal(mkdir(inner, 0700), 0);
	make_file(in(inner, "a"));
	expect(NULL, 0);
	assert_int_equal(watch_add(watch, inner), 0);
	make_file(in(inner, "b"));
	EXPECT("inner|b");
	expect_watched(2);
}

/* Another directory is at the path before anybody is told that the old one is gone. */
static void a_directory_in_the_place_of_another(UNUSED void **state)
{
	assert_int_equal(watch_add(watch, inner), 0);
	make_file(in(inner, "old"));
	assert_int_equal(unlink(in(inner, "old")), 0);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(mkdir(inner, 0700), 0);
	assert_int_equal(watch_add(watch, inner), 0);
	make_file(in(inner, "new"));
	EXPECT("inner|new");
	expect_watched(1);
	make_file(in(inner, "newer")); /* nothing of the old one has ended the new watch */
	EXPECT("inner|newer");
}

/* A directory that somebody holds lives on without a name; its watch ends when the path is added
 * again. */
static void a_held_directory_in_the_place_of_another(UNUSED void **state)
{
	int held = open(inner, O_RDONLY | O_DIRECTORY);
	assert_int_equal(watch_add(watch, inner), 0);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(watch_add(watch, inner), ERR_NOT_FOUND);
	expect_watched(0);
	assert_int_equal(mkdir(inner, 0700), 0);
	assert_int_equal(watch_add(watch, inner), 0);
	look();
	make_file(in(inner, "a"));
	EXPECT("inner|a");
	close(held);
	expect(NULL, 0);
	expect_watched(1);
}

static void a_renamed_directory_is_not_watched_by_its_old_path(UNUSED void **state)
{
	assert_int_equal(watch_add(watch, inner), 0);
	assert_int_equal(rename(inner, in(dir, "elsewhere")), 0);
	EXPECT("inner|-");
	expect_watched(0);
	make_file(in(dir, "elsewhere/a"));
	expect(NULL, 0);
	/* The same before anybody is told, with another one in its place. */
	assert_int_equal(watch_add(watch, outer), 0);
	assert_int_equal(rename(outer, in(dir, "else")), 0);
	assert_int_equal(mkdir(outer, 0700), 0);
	assert_int_equal(watch_add(watch, outer), 0);
	make_file(in(dir, "else/a"));
	make_file(in(outer, "b"));
	EXPECT("outer|b");
	expect_watched(1);
}

static void each_path_of_a_directory_is_told(UNUSED void **state)
{
	assert_int_equal(symlink("inner", in(dir, "link")), 0);
	assert_int_equal(watch_add(watch, inner), 0);
	assert_int_equal(watch_add(watch, in(dir, "link")), 0);
	assert_int_equal(watch_add(watch, inner), 0);
	assert_int_equal(watches_of_the_system(), 1);
	assert_int_equal(watch_count(watch), 2);
	make_file(in(inner, "a"));
	look();
	assert_int_equal(told.count, 2);
	bool link_first = !strcmp(told.text[0], "link|a");
	assert_string_equal(told.text[link_first], "inner|a");
	assert_string_equal(told.text[!link_first], "link|a");
	/* The link leads elsewhere: the directory keeps its own path. */
	assert_int_equal(unlink(in(dir, "link")), 0);
	assert_int_equal(symlink("outer", in(dir, "link")), 0);
	assert_int_equal(watch_add(watch, in(dir, "link")), 0);
	expect_watched(2);
	make_file(in(inner, "b"));
	make_file(in(outer, "c"));
	EXPECT("inner|b", "link|c");
	/* The link leads nowhere. */
	assert_int_equal(unlink(in(dir, "link")), 0);
	assert_int_equal(watch_add(watch, in(dir, "link")), ERR_NOT_FOUND);
	expect_watched(1);
	/* A directory that ends is told with each of its paths. */
	assert_int_equal(symlink("inner", in(dir, "link")), 0);
	assert_int_equal(watch_add(watch, in(dir, "link")), 0);
	remove_all_in(inner);
	look();
	assert_int_equal(rmdir(inner), 0);
	look();
	assert_int_equal(told.count, 2);
	expect_watched(0);
}

/* More directories than a table has room for at first, and all of them gone. */
static void many_directories(UNUSED void **state)
{
	char name[32];
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(mkdir(in(inner, name), 0700), 0);
		assert_int_equal(watch_add(watch, in(inner, name)), 0);
	}
	expect_watched(500);
	make_file(in(inner, "77/file"));
	EXPECT("inner/77|file");
	remove_all_in(inner);
	look();
	assert_int_equal(told.count, 501);
	expect_watched(0);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static int64_t now_us(void)
{
	return clock_real()->mono_us(clock_real());
}

static void a_wait_ends_with_its_time(UNUSED void **state)
{
	assert_int_equal(watch_add(watch, inner), 0);
	told.count = 0;
	int64_t began_us = now_us();
	watch_wait(watch, 20, note, NULL);
	assert_true(now_us() - began_us >= 20000);
	assert_int_equal(told.count, 0);
}

static void a_wait_ends_with_an_event(UNUSED void **state)
{
	assert_int_equal(watch_add(watch, inner), 0);
	make_file(in(inner, "a"));
	told.count = 0;
	watch_wait(watch, -1, note, NULL);
	assert_int_equal(told.count, 1);
}

static void woken_before_it_waits(UNUSED void **state)
{
	watch_wake(watch);
	watch_wake(watch);
	told.count = 0;
	watch_wait(watch, -1, note, NULL);
	assert_int_equal(told.count, 0);
	/* All of these are of one wait. */
	int64_t began_us = now_us();
	watch_wait(watch, 10, note, NULL);
	assert_true(now_us() - began_us >= 10000);
}

/* What a thread sleeps in, as the system says. */
struct sleeper {
	_Atomic long id; /* 0: it does not wait yet */
	bool rests;
};

static bool sleeps(long id)
{
	char path[64], text[64] = "";
	snprintf(path, sizeof(path), "/proc/self/task/%ld/stat", id);
	FILE *stat = fopen(path, "r");
	bool asleep = stat && fgets(text, sizeof(text), stat) && strstr(text, ") S ");
	if (stat)
		fclose(stat);
	return asleep;
}

static void await_sleep(struct sleeper *sleeper)
{
	while (!atomic_load(&sleeper->id) || !sleeps(atomic_load(&sleeper->id)))
		sched_yield();
}

static void *run_sleeper(void *arg)
{
	struct sleeper *sleeper = arg;
	atomic_store(&sleeper->id, syscall(SYS_gettid));
	if (sleeper->rests)
		watch_rest(watch, LONG_MS);
	watch_wait(watch, -1, note, NULL);
	return NULL;
}

static void woken_while_it_waits(UNUSED void **state)
{
	struct sleeper sleeper = {0};
	pthread_t thread;
	told.count = 0;
	assert_int_equal(pthread_create(&thread, NULL, run_sleeper, &sleeper), 0);
	await_sleep(&sleeper);
	watch_wake(watch);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(told.count, 0);
}

static void an_event_while_it_waits(UNUSED void **state)
{
	struct sleeper sleeper = {0};
	pthread_t thread;
	told.count = 0;
	assert_int_equal(watch_add(watch, inner), 0);
	assert_int_equal(pthread_create(&thread, NULL, run_sleeper, &sleeper), 0);
	await_sleep(&sleeper);
	make_file(in(inner, "a"));
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(told.count, 1);
}

static void a_rest_leaves_events_where_they_are(UNUSED void **state)
{
	assert_int_equal(watch_add(watch, inner), 0);
	make_file(in(inner, "a"));
	told.count = 0;
	int64_t began_us = now_us();
	watch_rest(watch, 20);
	assert_true(now_us() - began_us >= 20000);
	assert_int_equal(told.count, 0);
	make_file(in(inner, "b"));
	EXPECT("inner|a", "inner|b");
}

/* The wait after the rest has no end of its own. */
static void woken_while_it_rests(UNUSED void **state)
{
	struct sleeper sleeper = {.rests = true};
	pthread_t thread;
	int64_t began_us = now_us();
	assert_int_equal(pthread_create(&thread, NULL, run_sleeper, &sleeper), 0);
	await_sleep(&sleeper);
	watch_wake(watch);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(now_us() - began_us < LONG_MS * 1000LL);
}

/* ---- More than fits -------------------------------------------------------------------------- */

static long queue_max(void)
{
	char text[32] = "";
	FILE *file = fopen("/proc/sys/fs/inotify/max_queued_events", "r");
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	return strtol(text, NULL, 10);
}

static void fill_queue(long events)
{
	const char *there = in(inner, "there"), *back = in(inner, "back");
	make_file(there);
	for (long i = 0; i < events; i += 4) {
		assert_int_equal(rename(there, back), 0);
		assert_int_equal(rename(back, there), 0);
	}
}

/* Until nothing is there. How often it was told that events were lost. */
static int look_at_all(void)
{
	int lost = 0;
	do {
		look();
		/* It is said at the end of a wait, of all that is before. */
		lost += told.count && !strcmp(told.text[(told.count - 1) % TOLD_MAX], "-|-");
	} while (told.count);
	return lost;
}

/* What a queue lost may have been that a directory was renamed, or removed. */
static void a_full_queue_is_told(UNUSED void **state)
{
	long max = queue_max();
	char last[128];
	if (max > 1000000)
		missing("fs.inotify.max_queued_events is so large that this would take long");
	snprintf(last, sizeof(last), "%s", in(dir, "last"));
	assert_int_equal(mkdir(last, 0700), 0);
	assert_int_equal(watch_add(watch, inner), 0);
	assert_int_equal(watch_add(watch, outer), 0);
	assert_int_equal(watch_add(watch, last), 0);
	fill_queue(max + 100);
	assert_int_equal(rename(outer, in(dir, "elsewhere")), 0);
	assert_int_equal(mkdir(outer, 0700), 0);
	assert_int_equal(rmdir(last), 0);
	assert_int_equal(look_at_all(), 1);
	expect_watched(2);
	make_file(in(dir, "elsewhere/a"));
	make_file(in(outer, "b"));
	make_file(in(inner, "c"));
	EXPECT("outer|b", "inner|c");
}

static void a_full_queue_and_no_directory(UNUSED void **state)
{
	if (queue_max() > 1000000)
		missing("fs.inotify.max_queued_events is so large that this would take long");
	assert_int_equal(watch_add(watch, inner), 0);
	fill_queue(queue_max() + 100);
	remove_all_in(inner);
	assert_int_equal(rmdir(inner), 0);
	assert_int_equal(look_at_all(), 1);
	expect_watched(0);
}

/* Names so long that the queue is longer than what one wait tells. Each rename has two events, the
 * second of which is of the same name as the first of the next: told once, unless one reading ends
 * between them. */
static void one_wait_tells_a_megabyte_at_most(UNUSED void **state)
{
	enum {
		EVENTS = 6000,
		EVENT_BYTES = 16 + 256,
		READ_EVENTS = 64 * 1024 / EVENT_BYTES,
		WAIT_EVENTS = 1024 * 1024 / EVENT_BYTES,
		READINGS = EVENTS / READ_EVENTS + 2,
	};
	char names[2][256];
	if (queue_max() < EVENTS)
		missing("fs.inotify.max_queued_events is less than a wait tells");
	for (int i = 0; i < 2; i++) {
		memset(names[i], 'a' + i, 255);
		names[i][255] = 0;
	}
	assert_int_equal(watch_add(watch, inner), 0);
	make_file(in(inner, names[0]));
	look();
	for (int i = 0; i < EVENTS / 4; i++) {
		assert_int_equal(rename(in(inner, names[0]), in(inner, names[1])), 0);
		assert_int_equal(rename(in(inner, names[1]), in(inner, names[0])), 0);
	}
	look();
	/* What was read last may go beyond the number asked for. */
	assert_in_range(told.count, WAIT_EVENTS / 2, (WAIT_EVENTS + READ_EVENTS) / 2 + READINGS);
	size_t total = told.count;
	look();
	total += told.count;
	assert_in_range(total, EVENTS / 2, EVENTS / 2 + READINGS);
	expect(NULL, 0);
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(made_written_renamed_removed),
		IN_DIR(a_name_that_follows_itself_is_told_once),
		IN_DIR(a_directory_that_is_not_wanted_any_more),
		IN_DIR(what_changes_while_it_is_told_is_told_again),
		IN_DIR(names_as_long_as_they_may_be),
		IN_DIR(what_is_no_directory_is_not_watched),
		IN_DIR(no_instance_is_said),
		IN_DIR(adding_again_changes_nothing),
		IN_DIR(a_removed_directory_leaves_nothing),
		IN_DIR(a_directory_in_the_place_of_another),
		IN_DIR(a_held_directory_in_the_place_of_another),
		IN_DIR(a_renamed_directory_is_not_watched_by_its_old_path),
		IN_DIR(each_path_of_a_directory_is_told),
		IN_DIR(many_directories),
		IN_DIR(a_wait_ends_with_its_time),
		IN_DIR(a_wait_ends_with_an_event),
		IN_DIR(woken_before_it_waits),
		IN_DIR(woken_while_it_waits),
		IN_DIR(an_event_while_it_waits),
		IN_DIR(a_rest_leaves_events_where_they_are),
		IN_DIR(woken_while_it_rests),
		IN_DIR(a_full_queue_is_told),
		IN_DIR(a_full_queue_and_no_directory),
		IN_DIR(one_wait_tells_a_megabyte_at_most),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
