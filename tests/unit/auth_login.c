/* Names with passwords: what may be a password, who has one, what is remembered, who waits with
 * whom, and who is told nothing any more. */
#include "auth_world.h"

#include "auth/auth_private.h"
#include "auth/password.h"

#define MINUTE_MS (60 * 1000)

/* ---- Passwords ------------------------------------------------------------------------------- */

static void what_may_be_a_password(UNUSED void **state)
{
	static const struct {
		struct slice text;
		const char *says; /* NULL: it may */
	} rows[] = {
		{TEXT("12345678"), NULL},
		{TEXT("with blanks, and more: \xe2\x9c\x93"), NULL},
		{TEXT(""), "empty"},
		{TEXT("1234567"), "fewer than 8"},
		{TEXT("12345678\n"), "byte 10 at place 9"},
		{TEXT("\00012345678"), "byte 0 at place 1"},
		{TEXT("123\x7f"
		      "45678"),
		 "byte 127"},
		{TEXT("1234567\x80"), "not UTF-8"},
		{TEXT("gr_97528c608bc465c6_34ad674ef8a4531292410879e25d6bea9688e049d5cf1f966a55c180"
		      "59a98559"),
		 "looks like a token"},
		{TEXT("changeme"), "stands where a password belongs"},
		{TEXT("Password"), "stands where a password belongs"},
		{TEXT("<password>"), "stands where a password belongs"},
		{TEXT("********"), "stands where a password belongs"},
		{TEXT("password of ann"), NULL},
	};
	char long_one[514];
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct errbuf e = {""};
		assert_int_equal(password_check(rows[i].text, &e), rows[i].says ? ERR_INVALID : 0);
		if (rows[i].says && !strstr(e.text, rows[i].says))
			fail_msg("row %zu: %s", i, e.text);
	}
	for (size_t i = 0; i < sizeof(long_one); i++)
		long_one[i] = (char)('a' + i % 2);
	assert_int_equal(password_check((struct slice){long_one, 512}, &world.e), 0);
	assert_int_equal(password_check((struct slice){long_one, 513}, &world.e), ERR_INVALID);
	assert_int_equal(try_user("ann", "read", "*", TEXT("1234567")), ERR_INVALID);
	assert_int_equal(try_user("ann", "read", "*", NONE), ERR_INVALID);
}

/* Made by Python's crypt.crypt(). */
static void hashes_are_those_of_crypt(UNUSED void **state)
{
	static const char first[] =
		"$y$j9T$abcdefgh0123456789ABC.$T1uKtFUXmJs5rC0gc4zIZ5yfajp6PFQa.Js463Rte.D";
	static const char second[] =
		"$y$j75$mKlT0mLRx8ZRbZY1hTnMx/$neOCqyp/Cfb9ojEn7yRPJg7GdyYWKJASD/ZXc8T1zKA";
	char hash[PASSWORD_HASH_BYTES], other[PASSWORD_HASH_BYTES];
	bool is;
	assert_int_equal(password_compare(TEXT("correct horse"), first, &is), 0);
	assert_true(is);
	assert_int_equal(password_compare(TEXT("correct hors"), first, &is), 0);
	assert_false(is);
	assert_int_equal(password_compare(TEXT("p\xc3\xa4ssword \xe2\x9c\x93"), second, &is), 0);
	assert_true(is);
	assert_true(password_is_hash(slice_of(first)));
	assert_false(password_is_hash(TEXT("$6$abcdefgh$1")));
	assert_false(password_is_hash(TEXT("$y$j9T$ab cd")));
	/* Each has a salt of its own. */
	assert_int_equal(password_hash(TEXT("correct horse"), hash), 0);
	assert_int_equal(password_hash(TEXT("correct horse"), other), 0);
	assert_string_not_equal(hash, other);
	assert_true(password_is_hash(slice_of(hash)));
	/* Nobody has the one that others' names are compared with, but it takes the same work. */
	password_hash_of_nobody(other);
	assert_memory_equal(hash, other, strlen("$y$j9T$"));
	assert_int_equal(password_compare(TEXT("correct horse"), other, &is), 0);
	assert_false(is);
}

/* ---- Logging in ------------------------------------------------------------------------------ */

static unsigned told;

static void count_done(UNUSED struct login *login)
{
	told++;
}

static enum login_outcome begin_from(struct login *login, const char *name, struct slice password,
				     uint8_t from)
{
	const struct loop_address address = {.bytes = {10, 0, 0, from}};
	*login = (struct login){.done = count_done};
	auth_log_in(world.auth, slice_of(name), password, &address, login);
	return login->outcome;
}

static enum login_outcome begin(struct login *login, const char *name, const char *password)
{
	return begin_from(login, name, slice_of(password), 1);
}

static void wait_for(struct login *login)
{
	while (login->outcome == LOGIN_WAITS)
		task_queue_wait(&world.thread);
}

/* To the end. */
static enum login_outcome log_in(const char *name, const char *password)
{
	struct login login;
	begin(&login, name, password);
	wait_for(&login);
	assert_true((login.outcome == LOGIN_GOOD) == (login.credential != NULL));
	if (login.credential)
		assert_string_equal(login.credential->caller.name, name);
	login_end(&login);
	return login.outcome;
}

static int64_t compared(void)
{
	return stat_get(STAT_auth_passwords_compared);
}

static void a_user_has_a_password(UNUSED void **state)
{
	char token[TOKEN_TEXT_BYTES + 1];
	create("root", "admin", "*", token);
	create_user("ann", "read", "b", "correct horse");
	assert_int_equal(log_in("ann", "correct horse"), LOGIN_GOOD);
	assert_int_equal(log_in("ann", "Correct horse"), LOGIN_WRONG);
	assert_int_equal(log_in("ann", ""), LOGIN_WRONG);
	assert_int_equal(log_in("root", "correct horse"), LOGIN_WRONG); /* that has a token */
	assert_int_equal(log_in("root", token), LOGIN_GOOD);
	/* As after a start of the server. */
	restart(false);
	assert_int_equal(log_in("ann", "correct horse"), LOGIN_GOOD);
}

/* crypt(3) reads up to a zero. */
static void what_stands_behind_a_zero_counts(UNUSED void **state)
{
	struct login login;
	create_user("root", "admin", "*", "correct horse");
	assert_int_equal(begin_from(&login, "root", TEXT("correct horse\0x"), 1), LOGIN_WRONG);
	assert_int_equal(begin_from(&login, "root", TEXT("correct horse\0"), 1), LOGIN_WRONG);
}

static void a_name_that_nobody_has_is_compared_too(UNUSED void **state)
{
	struct login login;
	char long_one[513];
	create_user("root", "admin", "*", "correct horse");
	int64_t before = compared();
	assert_int_equal(log_in("nobody", "correct horse"), LOGIN_WRONG);
	assert_int_equal(log_in("root", "wrong horse"), LOGIN_WRONG);
	assert_int_equal(compared() - before, 2);
	memset(long_one, 'x', sizeof(long_one));
	assert_int_equal(begin_from(&login, "root", (struct slice){long_one, 513}, 1), LOGIN_WRONG);
	assert_int_equal(begin(&login, "no name", "correct horse"), LOGIN_WRONG);
	assert_int_equal(begin(&login, "", "correct horse"), LOGIN_WRONG);
	assert_int_equal(compared() - before, 2);
}

static void a_good_one_is_remembered_for_ten_minutes(UNUSED void **state)
{
	struct login login;
	create_user("root", "admin", "*", "correct horse");
	assert_int_equal(log_in("root", "correct horse"), LOGIN_GOOD);
	int64_t before = compared();
	assert_int_equal(begin(&login, "root", "correct horse"), LOGIN_GOOD);
	login_end(&login);
	advance_ms(10 * MINUTE_MS - 1);
	assert_int_equal(begin(&login, "root", "correct horse"), LOGIN_GOOD);
	login_end(&login);
	assert_int_equal(compared(), before);
	advance_ms(1);
	assert_int_equal(begin(&login, "root", "correct horse"), LOGIN_WAITS);
	wait_for(&login);
	login_end(&login);
	/* A wrong one is not. */
	assert_int_equal(log_in("root", "wrong horse"), LOGIN_WRONG);
	assert_int_equal(begin(&login, "root", "wrong horse"), LOGIN_WAITS);
	wait_for(&login);
	login_end(&login);
}

static void a_change_ends_what_is_remembered(UNUSED void **state)
{
	create_user("root", "admin", "*", "correct horse");
	create_user("ann", "read", "b", "battery staple");
	assert_int_equal(log_in("ann", "battery staple"), LOGIN_GOOD);
	assert_int_equal(change_password("ann", "another one"), 0);
	assert_int_equal(log_in("ann", "battery staple"), LOGIN_WRONG);
	assert_int_equal(log_in("ann", "another one"), LOGIN_GOOD);
	assert_int_equal(change("ann", "write", NULL), 0); /* the password stays */
	assert_int_equal(log_in("ann", "another one"), LOGIN_GOOD);
	assert_int_equal(revoke_credential("ann"), 0);
	assert_int_equal(log_in("ann", "another one"), LOGIN_WRONG);
	/* Another one of that name has another password. */
	create_user("ann", "read", "b", "a third one");
	assert_int_equal(log_in("ann", "another one"), LOGIN_WRONG);
	assert_int_equal(change_password("root", "short"), ERR_INVALID);
	create("web", "write", "b", (char[TOKEN_TEXT_BYTES + 1]){""});
	assert_int_equal(change_password("web", "long enough"), ERR_INVALID);
	assert_non_null(strstr(world.e.text, "web has a token, and no password"));
}

/* The credential changes while its password is compared. */
static void what_changes_meanwhile_counts(UNUSED void **state)
{
	struct login login;
	create_user("root", "admin", "*", "correct horse");
	create_user("ann", "read", "b", "battery staple");
	begin(&login, "ann", "battery staple");
	assert_int_equal(change_password("ann", "another one"), 0);
	wait_for(&login);
	assert_int_equal(login.outcome, LOGIN_WRONG);
	assert_int_equal(log_in("ann", "battery staple"), LOGIN_WRONG);
}

static void who_shows_the_same_waits_for_the_same(UNUSED void **state)
{
	struct login logins[40];
	create_user("root", "admin", "*", "correct horse");
	int64_t before = compared();
	told = 0;
	for (size_t i = 0; i < ARRAY_LEN(logins); i++)
		assert_int_equal(begin(&logins[i], "root", "correct horse"), LOGIN_WAITS);
	/* Some go, the first and the last among them. */
	login_end(&logins[0]);
	login_end(&logins[20]);
	login_end(&logins[39]);
	wait_for(&logins[1]);
	assert_int_equal(compared() - before, 1);
	assert_int_equal(told, 37);
	for (size_t i = 1; i < 39; i++) {
		if (i == 20)
			continue;
		assert_int_equal(logins[i].outcome, LOGIN_GOOD);
		login_end(&logins[i]);
	}
}

/* Sixteen wait, and one is compared; more are told to come later, and are not counted as wrong. */
static void no_more_wait_than_may(UNUSED void **state)
{
	struct login logins[40];
	unsigned busy = 0;
	char name[8];
	create_user("root", "admin", "*", "correct horse");
	for (unsigned i = 0; i < ARRAY_LEN(logins); i++) {
		snprintf(name, sizeof(name), "u%u", i);
		begin_from(&logins[i], name, TEXT("some password"), (uint8_t)i);
		if (logins[i].outcome == LOGIN_BUSY) {
			assert_int_equal(logins[i].again_ms, 1000);
			busy++;
		} else {
			assert_int_equal(logins[i].outcome, LOGIN_WAITS);
		}
	}
	assert_int_equal(busy, 40 - 17);
	for (unsigned i = 0; i < ARRAY_LEN(logins); i++) {
		wait_for(&logins[i]);
		login_end(&logins[i]);
	}
}

/* Of a proxy, or after a start: a password that waits is no wrong one. */
static void many_with_right_passwords_come_at_once(UNUSED void **state)
{
	struct login logins[14];
	char name[8];
	create_user("root", "admin", "*", "correct horse");
	for (unsigned i = 0; i < ARRAY_LEN(logins); i++) {
		snprintf(name, sizeof(name), "u%u", i);
		create_user(name, "read", "b", "battery staple");
	}
	for (unsigned i = 0; i < ARRAY_LEN(logins); i++) {
		snprintf(name, sizeof(name), "u%u", i);
		assert_int_equal(begin(&logins[i], name, "battery staple"), LOGIN_WAITS);
	}
	for (unsigned i = 0; i < ARRAY_LEN(logins); i++) {
		wait_for(&logins[i]);
		assert_int_equal(logins[i].outcome, LOGIN_GOOD);
		login_end(&logins[i]);
	}
}

/* Five are compared, whether they come at once or not. */
static void many_guesses_come_at_once(UNUSED void **state)
{
	struct login logins[12];
	char password[32];
	create_user("root", "admin", "*", "correct horse");
	int64_t before = compared();
	for (unsigned i = 0; i < ARRAY_LEN(logins); i++) {
		snprintf(password, sizeof(password), "wrong horse %u", i);
		assert_int_equal(begin(&logins[i], "root", password), LOGIN_WAITS);
	}
	login_end(&logins[2]); /* a client that leaves is no guess */
	for (unsigned i = 0; i < ARRAY_LEN(logins); i++) {
		if (i == 2)
			continue;
		wait_for(&logins[i]);
		assert_int_equal(logins[i].outcome, i < 6 ? LOGIN_WRONG : LOGIN_HELD_UP);
		assert_int_equal(logins[i].again_ms, i < 6 ? 0 : 10000);
	}
	assert_int_equal(compared() - before, 5);
}

static void five_wrong_ones_and_nobody_may_guess(UNUSED void **state)
{
	struct login login;
	char password[32];
	create_user("root", "admin", "*", "correct horse");
	create_user("ann", "read", "b", "battery staple");
	assert_int_equal(log_in("ann", "battery staple"), LOGIN_GOOD);
	for (int i = 0; i < 5; i++) {
		snprintf(password, sizeof(password), "wrong horse %d", i);
		assert_int_equal(log_in("root", password), LOGIN_WRONG);
	}
	int64_t before = compared();
	assert_int_equal(begin(&login, "root", "correct horse"), LOGIN_HELD_UP);
	assert_int_equal(login.again_ms, 10000);
	assert_int_equal(begin(&login, "ben", "correct horse"), LOGIN_HELD_UP);
	/* What is remembered is, for the same address too. */
	assert_int_equal(begin(&login, "ann", "battery staple"), LOGIN_GOOD);
	login_end(&login);
	assert_int_equal(compared(), before);
	assert_int_equal(begin_from(&login, "root", TEXT("correct horse"), 2), LOGIN_HELD_UP);
	advance_ms(10000);
	assert_int_equal(log_in("root", "correct horse"), LOGIN_GOOD);
	assert_int_equal(log_in("root", "wrong horse"), LOGIN_WRONG); /* the first again */
}

/* What runs is let run; nobody is told, and nothing is leaked or used after it is gone. */
static void a_server_stops_while_passwords_are_compared(UNUSED void **state)
{
	struct login logins[8];
	create_user("root", "admin", "*", "correct horse");
	told = 0;
	for (unsigned i = 0; i < ARRAY_LEN(logins); i++)
		begin_from(&logins[i], "root", i % 2 ? TEXT("correct horse") : TEXT("wrong one"),
			   (uint8_t)i);
	for (unsigned i = 0; i < ARRAY_LEN(logins); i++)
		login_end(&logins[i]);
	restart(false);
	assert_int_equal(told, 0);
	assert_int_equal(log_in("root", "correct horse"), LOGIN_GOOD);
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, start, end)
	const struct CMUnitTest tests[] = {
		IN_WORLD(what_may_be_a_password),
		IN_WORLD(hashes_are_those_of_crypt),
		IN_WORLD(a_user_has_a_password),
		IN_WORLD(what_stands_behind_a_zero_counts),
		IN_WORLD(a_name_that_nobody_has_is_compared_too),
		IN_WORLD(a_good_one_is_remembered_for_ten_minutes),
		IN_WORLD(a_change_ends_what_is_remembered),
		IN_WORLD(what_changes_meanwhile_counts),
		IN_WORLD(who_shows_the_same_waits_for_the_same),
		IN_WORLD(no_more_wait_than_may),
		IN_WORLD(many_with_right_passwords_come_at_once),
		IN_WORLD(many_guesses_come_at_once),
		IN_WORLD(five_wrong_ones_and_nobody_may_guess),
		IN_WORLD(a_server_stops_while_passwords_are_compared),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
