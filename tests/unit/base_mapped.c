/* A file that gets shorter under its map. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mapped.h"

static enum { TOUCHES, LEADS_ASTRAY, WRITES, PASSES_THE_END } does;

/* Touches a page that has gone, in a child whose standard error is a pipe; gives its status. */
static int touch_in_child(const char *watched, char *words, size_t cap)
{
	int ends[2], status;
	assert_int_equal(pipe(ends), 0);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		signal(SIGBUS, SIG_DFL); /* cmocka has handlers of its own */
		signal(SIGSEGV, SIG_DFL);
		char *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(tmpfile()), 0);
		mapped_watch("gone.mdb");
		if (!watched)
			mapped_forget("gone.mdb");
		if (does == LEADS_ASTRAY)
			raise(SIGSEGV);
		mapped_lies("gone.mdb", (uintptr_t)map, 4096);
		if (does == WRITES) /* as who takes a page for its own */
			*(volatile char *)map = 1;
		if (does == PASSES_THE_END) {
			munmap(map, 4096);
			mapped_lies("gone.mdb", (uintptr_t)map - 4096, 4096);
		}
		_exit(*(volatile char *)map);
	}
	close(ends[1]);
	ssize_t n = read(ends[0], words, cap - 1);
	words[n > 0 ? n : 0] = 0;
	close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void a_missing_page_ends_the_process_with_a_sentence(UNUSED void **state)
{
	char words[1000];
	int status = touch_in_child("gone.mdb", words, sizeof(words));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 74);
	assert_non_null(strstr(words, "error gone.mdb cannot be read"));
}

static void of_another_file_it_stays_a_bus_error(UNUSED void **state)
{
	char words[1000];
	int status = touch_in_child(NULL, words, sizeof(words));
	assert_null(strstr(words, "gone.mdb"));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGBUS);
}

static void a_wild_pointer_is_told_and_stays_one(UNUSED void **state)
{
	char words[1000];
	int status = touch_in_child(NULL, words, sizeof(words));
	assert_null(strstr(words, "a bug, or a damaged page"));
	does = LEADS_ASTRAY;
	status = touch_in_child("gone.mdb", words, sizeof(words));
	assert_non_null(strstr(words, "a damaged page in gone.mdb"));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

static void a_fault_within_the_map_is_damage(UNUSED void **state)
{
	for (does = WRITES; does <= PASSES_THE_END; does++) {
		char words[1000];
		int status = touch_in_child("gone.mdb", words, sizeof(words));
		assert_non_null(strstr(words, "a damaged page in gone.mdb"));
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 74);
	}
}

static void touch(void *context)
{
	(void)*(volatile char *)context;
}

static void a_missing_page_can_be_tried(UNUSED void **state)
{
	FILE *file = tmpfile();
	assert_int_equal(ftruncate(fileno(file), 4096), 0);
	char *map = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fileno(file), 0);
	for (int i = 0; i < 3; i++) {
		assert_true(mapped_try(touch, map));
		assert_false(mapped_try(touch, map + 4096));
	}
	munmap(map, 8192);
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_page_can_be_tried),
		cmocka_unit_test(a_missing_page_ends_the_process_with_a_sentence),
		cmocka_unit_test(of_another_file_it_stays_a_bus_error),
		cmocka_unit_test(a_wild_pointer_is_told_and_stays_one),
		cmocka_unit_test(a_fault_within_the_map_is_damage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
