/* Fault points: which passes fail, from code and from the environment. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"

/* The passes from 1 to 5 that fail, as bits. */
static unsigned failing(const char *name)
{
	unsigned bits = 0;
	for (unsigned pass = 1; pass <= 5; pass++) {
		int err = fault(name);
		assert_true(err == 0 || err == ERR_FAULT);
		bits |= (err != 0) << pass;
	}
	return bits;
}

static int disarm(UNUSED void **state)
{
	fault_disarm_all();
	unsetenv("GRANARY_FAULTS");
	return 0;
}

static void unarmed_points_pass(UNUSED void **state)
{
	assert_int_equal(failing("test.point"), 0);
	fault_arm("test.other", FAULT_ERROR, 1, 0);
	assert_int_equal(failing("test.point"), 0);
}

static void armed_for_some_passes(UNUSED void **state)
{
	fault_arm("test.point", FAULT_ERROR, 2, 2);
	assert_int_equal(failing("test.point"), 1 << 2 | 1 << 3);
	fault_disarm_all();
	assert_int_equal(failing("test.point"), 0);
	fault_arm("test.point", FAULT_ERROR, 4, 0);
	assert_int_equal(failing("test.point"), 1 << 4 | 1 << 5);
	assert_int_equal(failing("test.point"), 0x3e); /* for ever */
}

static void armed_from_the_environment(UNUSED void **state)
{
	struct errbuf e;
	setenv("GRANARY_FAULTS", "test.a=error@3,test.b=error*,test.c=error", 1);
	assert_int_equal(fault_arm_from_env(&e), 0);
	assert_int_equal(failing("test.a"), 1 << 3);
	assert_int_equal(failing("test.b"), 0x3e);
	assert_int_equal(failing("test.c"), 1 << 1);
}

static void nonsense_is_refused_with_a_sentence(UNUSED void **state)
{
	static const char *const wrong[] = {"x", "x=", "=error", "x=melt", "x=error;y=error"};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct errbuf e = {""};
		setenv("GRANARY_FAULTS", wrong[i], 1);
		assert_int_equal(fault_arm_from_env(&e), ERR_INVALID);
		assert_non_null(strstr(e.text, "GRANARY_FAULTS"));
		fault_disarm_all();
	}
	unsetenv("GRANARY_FAULTS");
	assert_int_equal(fault_arm_from_env(NULL), 0);
}

static void kill_ends_the_process(UNUSED void **state)
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		fault_arm("test.kill", FAULT_KILL, 2, 1);
		if (fault("test.kill"))
			_exit(1);
		(void)fault("test.kill");
		_exit(2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGKILL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(unarmed_points_pass, disarm),
		cmocka_unit_test_teardown(armed_for_some_passes, disarm),
		cmocka_unit_test_teardown(armed_from_the_environment, disarm),
		cmocka_unit_test_teardown(nonsense_is_refused_with_a_sentence, disarm),
		cmocka_unit_test_teardown(kill_ends_the_process, disarm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
