/* Files: replacing as a whole, limits, faults, reading what is open, and the lock between
 * processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fault.h"
#include "base/file.h"

static char dir[64], path[128], temporary[128];

static int make_dir(UNUSED void **state)
{
	memcpy(dir, "/tmp/granary-file-XXXXXX", 25);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	snprintf(temporary, sizeof(temporary), "%s/file.tmp", dir);
	return 0;
}

static int remove_dir(UNUSED void **state)
{
	fault_disarm_all();
	unlink(path);
	rmdir(dir);
	return 0;
}

static void expect_content(const char *text)
{
	struct files *files = files_real();
	struct buf buf;
	buf_init(&buf, 1000);
	assert_int_equal(files->read(files, path, 1000, &buf), 0);
	assert_true(slice_equal(buf_slice(&buf), slice_of(text)));
	buf_release(&buf);
}

/* The end of a file is no error, whatever an earlier call has left in errno. */
static void an_old_errno_is_no_reason(UNUSED void **state)
{
	struct files *files = files_real();
	assert_int_equal(files->replace(files, path, SLICE("whole"), 0600), 0);
	errno = EINTR;
	expect_content("whole");
}

static void written_over(UNUSED void **state)
{
	struct files *files = files_real();
	size_t bytes;
	int handle;
	assert_int_equal(files->open_end(files, path, 0600, &handle), 0);
	assert_int_equal(files->append(files, handle, SLICE("abcdef"), &bytes), 0);
	assert_int_equal(files->write_over(files, handle, 2, SLICE("CD")), 0);
	expect_content("abCDef");
	assert_int_equal(files->append(files, handle, SLICE("g"), &bytes), 0);
	expect_content("abCDefg");
	assert_int_equal(files->sync(files, handle), 0);
	files->close(files, handle);
	assert_int_equal(files->open(files, path, &handle), 0);
	assert_int_equal(files->write_over(files, handle, 0, SLICE("x")), -EBADF);
	files->close(files, handle);
	assert_int_equal(files->remove(files, path), 0);
}

static void replaced_as_a_whole(UNUSED void **state)
{
	struct files *files = files_real();
	struct stat st;
	uint64_t length = 0;
	assert_int_equal(files->length(files, path, &length), ERR_NOT_FOUND);
	assert_int_equal(files->replace(files, path, SLICE("first"), 0600), 0);
	expect_content("first");
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(files->replace(files, path, SLICE("2nd"), 0600), 0);
	expect_content("2nd");
	assert_int_equal(files->length(files, path, &length), 0);
	assert_int_equal(length, 3);
	assert_int_not_equal(access(temporary, F_OK), 0);
	assert_int_equal(files->replace(files, path, SLICE(""), 0600), 0);
	expect_content("");
	assert_int_equal(files->remove(files, path), 0);
	assert_int_equal(files->remove(files, path), ERR_NOT_FOUND);
}

/* Whichever step fails, the old content stands and no temporary is left. */
static void failed_replacement_leaves_the_old(UNUSED void **state)
{
	static const char *const points[] = {"file.write", "file.fsync", "file.rename"};
	struct files *files = files_real();
	assert_int_equal(files->replace(files, path, SLICE("old"), 0600), 0);
	for (size_t i = 0; i < ARRAY_LEN(points); i++) {
		fault_arm(points[i], FAULT_ERROR, 1, 1);
		errno = EIO; /* what an earlier call left there is not the reason */
		assert_int_equal(files->replace(files, path, SLICE("new"), 0600), ERR_FAULT);
		fault_disarm_all();
		expect_content("old");
		assert_int_not_equal(access(temporary, F_OK), 0);
	}
}

static void read_stops_at_its_limit(UNUSED void **state)
{
	struct files *files = files_real();
	struct buf buf;
	buf_init(&buf, 1000);
	assert_int_equal(files->read(files, path, 10, &buf), ERR_NOT_FOUND);
	assert_int_equal(files->replace(files, path, SLICE("0123456789"), 0600), 0);
	assert_int_equal(files->read(files, path, 10, &buf), 0);
	assert_int_equal(buf.len, 10);
	assert_int_equal(files->read(files, path, 9, &buf), ERR_LIMIT);
	buf_release(&buf);
}

static void directories_with_their_parents(UNUSED void **state)
{
	struct files *files = files_real();
	char deep[160], middle[160];
	struct stat st;
	uint64_t free_bytes = 0;
	snprintf(middle, sizeof(middle), "%s/a", dir);
	snprintf(deep, sizeof(deep), "%s/a/b", dir);
	assert_int_equal(files->make_dir(files, deep, 0700), 0);
	assert_int_equal(files->make_dir(files, deep, 0700), 0);
	assert_int_equal(stat(deep, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(files->free_bytes(files, deep, &free_bytes), 0);
	assert_true(free_bytes > 0);
	assert_int_equal(files->sync_dir(files, deep), 0);
	rmdir(deep);
	rmdir(middle);
	assert_int_equal(files->replace(files, path, SLICE("x"), 0600), 0);
	snprintf(deep, sizeof(deep), "%s/below", path);
	assert_int_equal(files->make_dir(files, deep, 0700), -ENOTDIR);
	assert_int_equal(files->make_dir(files, "", 0700), -ENAMETOOLONG);
}

/* In a process of its own: 0 if it got the lock, 1 if refused with this text in the sentence. */
static int try_in_child(const char *text)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct errbuf e = {""};
		int fd = -1, err = file_lock(path, &fd, &e);
		if (err == 0)
			_exit(0);
		_exit(err == ERR_LOCKED && strstr(e.text, text) ? 1 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void lock_is_for_one_process(UNUSED void **state)
{
	struct errbuf e = {""};
	char holder[64];
	int fd = -1, second = -1;
	snprintf(holder, sizeof(holder), "process %ld", (long)getpid());
	assert_int_equal(try_in_child(holder), 0); /* and gone with that process */
	assert_int_equal(file_lock(path, &fd, &e), 0);
	assert_int_equal(try_in_child(holder), 1);
	/* Not twice in one process either. */
	assert_int_equal(file_lock(path, &second, &e), ERR_LOCKED);
	assert_non_null(strstr(e.text, holder));
	/* A refused attempt takes nothing away. */
	assert_int_equal(try_in_child(holder), 1);
	file_unlock(fd);
	assert_int_equal(try_in_child(holder), 0);
}

/* Those that look share it, and keep away who writes; the file is theirs only to read. */
static void a_shared_lock_is_for_many(UNUSED void **state)
{
	struct errbuf e = {""};
	struct stat st;
	char holder[64];
	int fd = -1, first = -1, second = -1;
	snprintf(holder, sizeof(holder), "process %ld", (long)getpid());
	assert_int_equal(file_lock_shared(path, &first, &e), ERR_NOT_FOUND);
	assert_int_equal(stat(path, &st), -1); /* it was not made */
	assert_int_equal(file_lock(path, &fd, &e), 0);
	assert_int_equal(file_lock_shared(path, &first, &e), ERR_LOCKED);
	assert_non_null(strstr(e.text, holder));
	file_unlock(fd);
	assert_int_equal(chmod(path, 0400), 0);
	assert_int_equal(file_lock_shared(path, &first, &e), 0);
	assert_int_equal(file_lock_shared(path, &second, &e), 0);
	assert_int_equal(chmod(path, 0600), 0);
	file_unlock(first);
	assert_int_equal(file_lock(path, &fd, &e), ERR_LOCKED);
	file_unlock(second);
	assert_int_equal(file_lock(path, &fd, &e), 0);
	file_unlock(fd);
}

static void lock_in_no_directory(UNUSED void **state)
{
	struct errbuf e = {""};
	int fd = -1;
	assert_int_equal(file_lock("/nonexistent/lock", &fd, &e), -ENOENT);
	assert_non_null(strstr(e.text, "/nonexistent/lock"));
}

/* ---- Files that are open --------------------------------------------------------------------- */

/* By other means than the code under test. */
static void write_file(const char *name, const char *mode, const char *text)
{
	FILE *file = fopen(name, mode);
	assert_non_null(file);
	assert_int_equal(fputs(text, file) < 0, 0);
	assert_int_equal(fclose(file), 0);
}

/* Times of files are of the kernel's clock, whose ticks are up to 10 ms long. */
static void wait_a_tick(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 25000000}, NULL);
}

static int opened(const char *name)
{
	int handle = -1;
	assert_int_equal(files_real()->open(files_real(), name, &handle), 0);
	assert_true(handle >= 0);
	return handle;
}

static void expect_read(int handle, uint64_t offset, size_t max_bytes, const char *text)
{
	char bytes[64];
	size_t got = 999;
	struct files *files = files_real();
	memset(bytes, '#', sizeof(bytes));
	assert_int_equal(files->read_at(files, handle, offset, bytes, max_bytes, &got), 0);
	assert_true(slice_equal((struct slice){bytes, got}, slice_of(text)));
	for (size_t i = got; i < sizeof(bytes); i++)
		assert_int_equal(bytes[i], '#');
}

static void look_at(const char *name, struct file_look *look)
{
	assert_int_equal(files_real()->look_at(files_real(), name, look), 0);
}

static void reading_ends_at_the_end(UNUSED void **state)
{
	write_file(path, "w", "0123456789");
	int handle = opened(path);
	expect_read(handle, 0, 10, "0123456789");
	expect_read(handle, 0, 64, "0123456789");
	expect_read(handle, 4, 3, "456");
	expect_read(handle, 2, 1, "2"); /* back */
	expect_read(handle, 9, 64, "9");
	expect_read(handle, 10, 64, "");
	expect_read(handle, 11, 64, "");
	expect_read(handle, 5, 0, "");
	expect_read(handle, 1000000, 64, "");
	/* Beyond what a file can have. */
	expect_read(handle, INT64_MAX - 63, 64, "");
	expect_read(handle, INT64_MAX, 64, "");
	expect_read(handle, (uint64_t)INT64_MAX + 1, 64, "");
	expect_read(handle, UINT64_MAX, 64, "");
	write_file(path, "a", "ab");
	expect_read(handle, 10, 64, "ab");
	assert_int_equal(truncate(path, 3), 0);
	expect_read(handle, 0, 64, "012");
	expect_read(handle, 10, 64, "");
	files_real()->close(files_real(), handle);
}

static void an_open_file_is_read_when_it_is_removed(UNUSED void **state)
{
	struct files *files = files_real();
	struct file_look before, after;
	write_file(path, "w", "gone");
	look_at(path, &before);
	int handle = opened(path);
	assert_int_equal(unlink(path), 0);
	expect_read(handle, 0, 64, "gone");
	assert_int_equal(files->look(files, handle, &after), 0);
	assert_true(file_id_equal(&before.id, &after.id));
	assert_int_equal(after.bytes, 4);
	assert_int_equal(files->look_at(files, path, &after), ERR_NOT_FOUND);
	write_file(path, "w", "another");
	expect_read(handle, 0, 64, "gone");
	files->close(files, handle);
}

static void what_is_not_there(UNUSED void **state)
{
	struct files *files = files_real();
	struct file_look look;
	char below[160], resolved[160];
	int handle = -1;
	const char *const names[] = {path, below, "", "/nonexistent/file"};
	snprintf(below, sizeof(below), "%s/file/below", dir);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			if (round && i == 0)
				continue;
			assert_int_equal(files->open(files, names[i], &handle), ERR_NOT_FOUND);
			assert_int_equal(files->look_at(files, names[i], &look), ERR_NOT_FOUND);
			assert_int_equal(files->list(files, names[i], NULL, NULL), ERR_NOT_FOUND);
			assert_int_equal(files->resolve(files, names[i], resolved, 160),
					 ERR_NOT_FOUND);
		}
		write_file(path, "w", ""); /* the second time a file stands where a directory may */
	}
	assert_int_equal(files->list(files, path, NULL, NULL), ERR_NOT_FOUND);
	assert_int_equal(handle, -1);
}

static void pipes_and_directories_are_no_regular_files(UNUSED void **state)
{
	struct files *files = files_real();
	struct file_look look;
	char byte;
	size_t got;
	assert_int_equal(mkfifo(path, 0600), 0);
	int handle = opened(path); /* which does not wait for somebody to write */
	assert_int_equal(files->look(files, handle, &look), 0);
	assert_int_equal(look.type, FILE_OTHER);
	assert_int_equal(files->read_at(files, handle, 0, &byte, 1, &got), -ESPIPE);
	files->close(files, handle);
	look_at(path, &look);
	assert_int_equal(look.type, FILE_OTHER);
	handle = opened(dir);
	assert_int_equal(files->look(files, handle, &look), 0);
	assert_int_equal(look.type, FILE_DIRECTORY);
	assert_int_equal(files->read_at(files, handle, 0, &byte, 1, &got), -EISDIR);
	files->close(files, handle);
	look_at(dir, &look);
	assert_int_equal(look.type, FILE_DIRECTORY);
}

static void a_look_is_what_stat_says(UNUSED void **state)
{
	struct file_look look, by_handle;
	struct stat st;
	write_file(path, "w", "12345");
	int handle = opened(path);
	look_at(path, &look);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(look.type, FILE_REGULAR);
	assert_int_equal(look.bytes, 5);
	assert_int_equal(look.id.inode, st.st_ino);
	assert_int_equal(look.changed_ns, st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
	assert_int_equal(files_real()->look(files_real(), handle, &by_handle), 0);
	assert_true(file_id_equal(&look.id, &by_handle.id));
	assert_int_equal(by_handle.changed_ns, look.changed_ns);
	wait_a_tick();
	write_file(path, "a", "6");
	assert_int_equal(files_real()->look(files_real(), handle, &by_handle), 0);
	assert_int_equal(by_handle.bytes, 6);
	assert_true(by_handle.changed_ns > look.changed_ns);
	assert_true(file_id_equal(&look.id, &by_handle.id));
	/* Before the epoch, and between two seconds there. */
	struct timespec times[2] = {{.tv_sec = -2, .tv_nsec = 500000000}, {-2, 500000000}};
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	look_at(path, &look);
	assert_int_equal(look.changed_ns, -1500000000);
	files_real()->close(files_real(), handle);
}

static void a_file_is_known_whatever_its_name(UNUSED void **state)
{
	struct file_look first, renamed, second;
	write_file(path, "w", "x");
	look_at(path, &first);
	assert_int_equal(rename(path, temporary), 0);
	look_at(temporary, &renamed);
	assert_true(file_id_equal(&first.id, &renamed.id));
	write_file(path, "w", "x");
	look_at(path, &second);
	assert_false(file_id_equal(&first.id, &second.id));
	unlink(temporary);
	/* Removed and made again, it may have the same inode, but not the same birth. */
	for (int i = 0; i < 5; i++) {
		look_at(path, &first);
		assert_int_equal(unlink(path), 0);
		wait_a_tick();
		write_file(path, "w", "x");
		look_at(path, &second);
		assert_true(!first.id.born_ns || !file_id_equal(&first.id, &second.id));
		assert_true(!first.id.born_ns || file_id_is_older(&first.id, &second.id));
		assert_false(file_id_is_older(&second.id, &first.id));
	}
}

static void ids_are_compared(UNUSED void **state)
{
	const struct file_id id = {.device = 1, .inode = 2, .born_ns = 3};
	static const struct {
		struct file_id id;
		bool equal, older, younger; /* than the one above */
	} rows[] = {
		{{1, 2, 3}, true, false, false},
		{{9, 2, 3}, true, false, false}, /* the machine was started again */
		{{1, 2, 2}, false, true, false},
		{{1, 2, 4}, false, false, true},
		{{1, 9, 3}, false, false, false},
		{{1, 9, 2}, false, true, false},
		{{1, 2, 0}, false, false, false},
		{{1, 2, -1}, false, true, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(file_id_equal(&rows[i].id, &id), rows[i].equal);
		assert_int_equal(file_id_equal(&id, &rows[i].id), rows[i].equal);
		assert_int_equal(file_id_is_older(&rows[i].id, &id), rows[i].older);
		assert_int_equal(file_id_is_older(&id, &rows[i].id), rows[i].younger);
	}
	const struct file_id bare = {.device = 1, .inode = 2}, other = {.device = 9, .inode = 2};
	assert_true(file_id_equal(&bare, &bare));
	assert_false(file_id_equal(&bare, &other));
	assert_false(file_id_is_older(&bare, &other));
}

static void links_are_followed(UNUSED void **state)
{
	struct files *files = files_real();
	struct file_look look, target;
	char in[128], out[128];
	write_file(path, "w", "target");
	look_at(path, &target);
	assert_int_equal(symlink("file", temporary), 0);
	look_at(temporary, &look);
	assert_int_equal(look.type, FILE_REGULAR);
	assert_true(file_id_equal(&look.id, &target.id));
	assert_int_equal(files->resolve(files, temporary, out, sizeof(out)), 0);
	assert_string_equal(out, path);
	/* Dots and slashes go, too. */
	snprintf(in, sizeof(in), "%s//./../%s/file.tmp", dir, strrchr(dir, '/') + 1);
	assert_int_equal(files->resolve(files, in, out, sizeof(out)), 0);
	assert_string_equal(out, path);
	assert_int_equal(files->resolve(files, "/", out, sizeof(out)), 0);
	assert_string_equal(out, "/");
	/* With its zero it just fits, or does not. */
	size_t len = strlen(path);
	memset(out, '#', sizeof(out));
	assert_int_equal(files->resolve(files, temporary, out, len), ERR_LIMIT);
	assert_int_equal(files->resolve(files, temporary, out, 0), ERR_LIMIT);
	assert_int_equal(files->resolve(files, temporary, out, len + 1), 0);
	assert_string_equal(out, path);
	assert_int_equal(out[len + 1], '#');
	/* Whose target is gone, and one that leads to itself. */
	assert_int_equal(unlink(path), 0);
	assert_int_equal(files->look_at(files, temporary, &look), ERR_NOT_FOUND);
	assert_int_equal(files->resolve(files, temporary, out, sizeof(out)), ERR_NOT_FOUND);
	assert_int_equal(symlink("file.tmp", path), 0);
	assert_int_equal(files->look_at(files, temporary, &look), -ELOOP);
	assert_int_equal(files->resolve(files, temporary, out, sizeof(out)), -ELOOP);
	unlink(temporary);
}

enum { LISTED = 300 };

static void listed_name(int i, char name[static 256])
{
	static const char *const odd[] = {" ",  "...", ".hidden", "-rf", "a\nb", "\xff\xfe",
					  "..", "*",   "\\",      "~",   "a b ", "\xc3\xa9"};
	if (i < (int)ARRAY_LEN(odd) && strcmp(odd[i], "..") != 0)
		snprintf(name, 256, "%s", odd[i]);
	else if (i == LISTED - 1) /* the longest that there is */
		snprintf(name, 256, "%0255d", i);
	else
		snprintf(name, 256, "%d", i);
}

static void note_listed(void *owner, const char *name)
{
	int *seen = owner, found = 0;
	for (int i = 0; i < LISTED; i++) {
		char listed[256];
		listed_name(i, listed);
		if (strcmp(listed, name) == 0) {
			seen[i]++;
			found++;
		}
	}
	assert_int_equal(found, 1);
}

static void each_name_is_listed_once(UNUSED void **state)
{
	struct files *files = files_real();
	char name[256], whole[400];
	int seen[LISTED] = {0};
	assert_int_equal(files->list(files, dir, note_listed, seen), 0);
	for (int i = 0; i < LISTED; i++) {
		assert_int_equal(seen[i], 0);
		listed_name(i, name);
		snprintf(whole, sizeof(whole), "%s/%s", dir, name);
		write_file(whole, "w", "");
	}
	errno = EIO; /* an earlier call's */
	assert_int_equal(files->list(files, dir, note_listed, seen), 0);
	for (int i = 0; i < LISTED; i++) {
		assert_int_equal(seen[i], 1);
		listed_name(i, name);
		snprintf(whole, sizeof(whole), "%s/%s", dir, name);
		assert_int_equal(unlink(whole), 0);
	}
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

/* ---- A file of this user's ------------------------------------------------------------------- */

static void (*before_flock)(void);

/* In the place of libc's: another process does something just before. */
int flock(int fd, int operation)
{
	void (*before)(void) = before_flock;
	before_flock = NULL;
	if (before)
		before();
	return (int)syscall(SYS_flock, fd, operation);
}

static unsigned mode_of(const char *file)
{
	struct stat st;
	assert_int_equal(lstat(file, &st), 0);
	return st.st_mode & ALLPERMS;
}

static void put(const char *file, const char *text, unsigned mode)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
		    fchmod(fd, mode) == 0 && close(fd) == 0);
}

static void expect_no_own(const char *why)
{
	int fd = -1;
	struct errbuf e = {""};
	struct buf buf;
	buf_init(&buf, 100);
	assert_int_equal(file_open_own(path, 0600, &fd, &e), ERR_INVALID);
	assert_non_null(strstr(e.text, why));
	assert_int_equal(strncmp(e.text, path, strlen(path)), 0);
	assert_int_equal(file_read_own(path, 100, &buf, &e), ERR_INVALID);
	assert_non_null(strstr(e.text, why));
	assert_int_equal(fd, -1);
	buf_release(&buf);
}

static void an_own_file_is_made_or_taken_with_no_more_mode(UNUSED void **state)
{
	static const unsigned modes[][3] = {
		{0644, 0600, 0600}, {0666, 0644, 0644}, {0400, 0644, 0400}, {0600, 0644, 0600}};
	struct errbuf e;
	int fd;
	umask(022);
	assert_int_equal(file_open_own(path, 0600, &fd, &e), 0);
	close(fd);
	assert_int_equal(mode_of(path), 0600);
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		unlink(path);
		put(path, "kept", modes[i][0]);
		assert_int_equal(file_open_own(path, modes[i][1], &fd, &e), 0);
		assert_int_equal(mode_of(path), modes[i][2]);
		close(fd);
		expect_content("kept");
	}
}

static void what_others_may_have_put_there_is_not_written_to(UNUSED void **state)
{
	put(temporary, "another's", 0644);
	assert_int_equal(symlink(temporary, path), 0);
	expect_no_own("is a link");
	unlink(path);
	assert_int_equal(symlink("nowhere", path), 0);
	expect_no_own("is a link");
	unlink(path);
	assert_int_equal(link(temporary, path), 0);
	expect_no_own("has a second name");
	unlink(path);
	assert_int_equal(mkfifo(path, 0666), 0);
	int reader = open(path, O_RDONLY | O_NONBLOCK);
	expect_no_own("is no regular file");
	close(reader);
	unlink(path);
	if (geteuid() == 0) {
		put(path, "another's", 0666);
		assert_int_equal(chown(path, 65534, 65534), 0);
		expect_no_own("belongs to another user");
		expect_content("another's");
	}
	assert_int_equal(mode_of(temporary), 0644);
	assert_int_equal(rename(temporary, path), 0);
	expect_content("another's");
}

static void rename_to_temporary(void)
{
	assert_int_equal(rename(path, temporary), 0);
}

static void remove_it(void)
{
	assert_int_equal(unlink(path), 0);
}

/* The other process had it when it was opened, and is done with it when it is locked. */
static void a_file_that_got_its_name_meanwhile_is_another(UNUSED void **state)
{
	struct errbuf e;
	int fd, second;
	put(path, "finished", 0600);
	before_flock = rename_to_temporary;
	assert_int_equal(file_open_own(path, 0600, &fd, &e), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	expect_content("");
	assert_int_equal(file_open_own(path, 0600, &second, &e), ERR_BUSY);
	assert_string_equal(strstr(e.text, path), path);
	close(fd);
	assert_int_equal(rename(temporary, path), 0);
	expect_content("finished");
	before_flock = remove_it;
	assert_int_equal(file_open_own(path, 0600, &fd, &e), 0);
	close(fd);
	expect_content("");
}

/* Replacing writes nothing through a link that somebody has put in the place of its temporary. */
static void replacing_follows_no_link(UNUSED void **state)
{
	struct files *files = files_real();
	char victim[128];
	snprintf(victim, sizeof(victim), "%s/victim", dir);
	put(victim, "victim's", 0644);
	assert_int_equal(symlink(victim, temporary), 0);
	assert_int_equal(files->replace(files, path, SLICE("new"), 0600), 0);
	expect_content("new");
	assert_int_equal(mode_of(path), 0600);
	/* Nor does it take over the mode of what is there. */
	put(temporary, "left", 0666);
	assert_int_equal(files->replace(files, path, SLICE("newer"), 0600), 0);
	expect_content("newer");
	assert_int_equal(mode_of(path), 0600);
	assert_int_equal(rename(victim, path), 0);
	expect_content("victim's");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(replaced_as_a_whole),
		IN_DIR(written_over),
		IN_DIR(failed_replacement_leaves_the_old),
		IN_DIR(an_old_errno_is_no_reason),
		IN_DIR(read_stops_at_its_limit),
		IN_DIR(directories_with_their_parents),
		IN_DIR(lock_is_for_one_process),
		IN_DIR(a_shared_lock_is_for_many),
		IN_DIR(lock_in_no_directory),
		IN_DIR(reading_ends_at_the_end),
		IN_DIR(an_open_file_is_read_when_it_is_removed),
		IN_DIR(what_is_not_there),
		IN_DIR(pipes_and_directories_are_no_regular_files),
		IN_DIR(a_look_is_what_stat_says),
		IN_DIR(a_file_is_known_whatever_its_name),
		IN_DIR(ids_are_compared),
		IN_DIR(links_are_followed),
		IN_DIR(each_name_is_listed_once),
		IN_DIR(an_own_file_is_made_or_taken_with_no_more_mode),
		IN_DIR(what_others_may_have_put_there_is_not_written_to),
		IN_DIR(a_file_that_got_its_name_meanwhile_is_another),
		IN_DIR(replacing_follows_no_link),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
