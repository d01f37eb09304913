/* Small integer helpers, slices and error sentences. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/owner.h"

static void floor_div_rounds_down(UNUSED void **state)
{
	assert_int_equal(floor_div(7, 2), 3);
	assert_int_equal(floor_div(-7, 2), -4);
	assert_int_equal(floor_div(-8, 2), -4);
	assert_int_equal(floor_div(-1, 1000), -1);
	assert_int_equal(floor_div(0, 1000), 0);
	assert_int_equal(floor_div(999, 1000), 0);
	assert_int_equal(floor_div(-1000, 1000), -1);
	assert_int_equal(floor_div(-1001, 1000), -2);
	assert_true(floor_div(INT64_MIN, 1) == INT64_MIN);
	assert_int_equal(floor_div(INT64_MIN, INT64_MAX), -2);
	assert_int_equal(floor_div(INT64_MAX, INT64_MAX), 1);
}

static void floor_to_finds_the_interval(UNUSED void **state)
{
	assert_int_equal(floor_to(86399999, 86400000), 0);
	assert_int_equal(floor_to(86400000, 86400000), 86400000);
	assert_int_equal(floor_to(-1, 86400000), -86400000);
	assert_int_equal(floor_to(-86400000, 86400000), -86400000);
}

static void slices_compare_as_bytes(UNUSED void **state)
{
	assert_true(slice_compare(SLICE("a"), SLICE("b")) < 0);
	assert_true(slice_compare(SLICE("a"), SLICE("ab")) < 0);
	assert_true(slice_compare(SLICE("b"), SLICE("ab")) > 0);
	assert_true(slice_compare(SLICE("\x7f"), SLICE("\x80")) < 0);
	assert_true(slice_compare(SLICE("a\0b"), SLICE("a\0c")) < 0);
	assert_int_equal(slice_compare(SLICE(""), (struct slice){NULL, 0}), 0);
	assert_true(slice_equal((struct slice){NULL, 0}, SLICE("")));
	assert_false(slice_equal(SLICE("a"), SLICE("a\0")));
}

static void errors_have_sentences(UNUSED void **state)
{
	struct errbuf e = {""};
	assert_string_equal(err_text(0), "success");
	assert_string_equal(err_text(ERR_NOT_FOUND), "not found");
	assert_string_equal(err_text(-ENOENT), strerror(ENOENT));
	assert_int_equal(errbuf_set(&e, ERR_INVALID, "no %s", "tag"), ERR_INVALID);
	assert_int_equal(errbuf_prefix(&e, ERR_INVALID, "line %d", 7), ERR_INVALID);
	assert_string_equal(e.text, "line 7: no tag");
	assert_int_equal(errbuf_set(NULL, ERR_BUSY, "x"), ERR_BUSY);
	assert_int_equal(errbuf_prefix(NULL, ERR_BUSY, "x"), ERR_BUSY);
}

static void long_sentences_are_cut(UNUSED void **state)
{
	struct errbuf e;
	char text[2000];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	errbuf_set(&e, ERR_INVALID, "%s", text);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	errbuf_prefix(&e, ERR_INVALID, "here");
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
	assert_memory_equal(e.text, "here: xxx", 9);
	errbuf_prefix(&e, ERR_INVALID, "%s", text);
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

/* 64 bytes are shown whole; of 65 the last is not, nor half of the letter of two bytes there. */
static void what_came_in_is_cut_with_a_mark(UNUSED void **state)
{
	char text[80], expected[80];
	struct slice s = {text, 64};
	struct errbuf e;
	memset(text, 'a', sizeof(text));
	memset(expected, 'a', sizeof(expected));
	errbuf_set(&e, 0, "<" SHOWN ">", SHOWN_OF(s));
	assert_int_equal(strlen(e.text), 66);
	s.len = 65;
	memcpy(expected + 64, "...", 4);
	errbuf_set(&e, 0, SHOWN, SHOWN_OF(s));
	assert_string_equal(e.text, expected);
	memcpy(text + 63, "\xc3\xbc", 2);
	memcpy(expected + 63, "...", 4);
	errbuf_set(&e, 0, SHOWN, SHOWN_OF(s));
	assert_string_equal(e.text, expected);
	errbuf_set(&e, 0, "<" SHOWN ">", SHOWN_OF(((struct slice){NULL, 0})));
	assert_string_equal(e.text, "<>");
}

struct some_job {
	uint32_t magic;
	int number;
};

struct another_job {
	uint32_t magic;
	int number;
};

/* A process of its own takes it back, and says how that ended. */
static int took_back(void *owner)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(STDERR_FILENO);
		_exit(FROM_OWNER(some_job, owner)->number);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void an_owner_is_what_it_says(UNUSED void **state)
{
	struct some_job job = {MAGIC_OF(some_job), 7};
	struct another_job other = {MAGIC_OF(another_job), 8};
	assert_int_equal(took_back(&job), 7);
	assert_int_equal(took_back(&other), -SIGABRT);
	job.magic = 0;
	assert_int_equal(took_back(&job), -SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(floor_div_rounds_down),
		cmocka_unit_test(floor_to_finds_the_interval),
		cmocka_unit_test(slices_compare_as_bytes),
		cmocka_unit_test(errors_have_sentences),
		cmocka_unit_test(long_sentences_are_cut),
		cmocka_unit_test(what_came_in_is_cut_with_a_mark),
		cmocka_unit_test(an_owner_is_what_it_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
