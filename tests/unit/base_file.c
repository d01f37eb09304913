/* Files: replacing as a whole, limits, faults, and the lock between processes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
	static const char *const points[] = {"file.write", "file.fsync"};
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

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(replaced_as_a_whole),
		IN_DIR(failed_replacement_leaves_the_old),
		IN_DIR(an_old_errno_is_no_reason),
		IN_DIR(read_stops_at_its_limit),
		IN_DIR(directories_with_their_parents),
		IN_DIR(lock_is_for_one_process),
		IN_DIR(a_shared_lock_is_for_many),
		IN_DIR(lock_in_no_directory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
