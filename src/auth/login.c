#include "auth/login.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "auth/auth_private.h"
#include "auth/password.h"
#include "auth/throttle.h"
#include "base/stats.h"
#include "loop/pool.h"

enum {
	LOGIN_MAC_BYTES = 32,
	LOGIN_PLACES = 4, /* where one may be remembered */
	LOGIN_BUSY_MS = 1000,
};

struct login_memory {
	uint8_t mac[LOGIN_MAC_BYTES];
	uint64_t id, generation;
	int64_t until_ms; /* monotonic; 0: the place is free */
};

/* A comparison. It waits for those before it, then it is in the pool or posted until it has run;
 * then it frees itself. */
struct login_check {
	struct logins *logins; /* NULL: they are gone */
	struct executor *executor;
	struct task task;
	struct login *first; /* who waits for it */
	struct login_check *next;
	struct loop_address from;
	uint8_t mac[LOGIN_MAC_BYTES];
	uint64_t id, generation;
	char hash[PASSWORD_HASH_BYTES];
	size_t name_len, password_len;
	char name[CREDENTIAL_NAME_MAX_BYTES], password[PASSWORD_MAX_BYTES];
	int64_t held_up_ms; /* not compared: the throttle held it up when it was its turn */
	int err;
	bool is;
};

struct logins {
	struct auth *auth;
	struct executor *executor;
	struct pool *pool;
	struct throttle throttle;
	uint8_t key[LOGIN_MAC_BYTES];
	char nobody[PASSWORD_HASH_BYTES];
	struct login_check *checks, **last; /* in the order in which they came */
	size_t check_count;
	bool is_comparing; /* the first of them */
	struct login_memory remembered[LOGINS_REMEMBERED];
};

static void login_check_free(struct login_check *check)
{
	OPENSSL_cleanse(check, sizeof(*check));
	mem_free(check);
}

struct logins *logins_new(struct auth *auth, struct executor *executor)
{
	struct logins *logins = mem_zalloc(sizeof(*logins));
	logins->auth = auth;
	logins->executor = executor;
	logins->pool = pool_new(1, 1, "password");
	logins->last = &logins->checks;
	throttle_init(&logins->throttle);
	int ok = RAND_bytes(logins->key, sizeof(logins->key));
	ASSERT(ok == 1); /* the system has random bytes */
	password_hash_of_nobody(logins->nobody);
	return logins;
}

void logins_free(struct logins *logins)
{
	if (!logins)
		return;
	for (struct login_check *check = logins->checks, *next; check; check = next) {
		next = check->next;
		ASSERT(!check->first);
		check->logins = NULL;
		if (check != logins->checks || !logins->is_comparing)
			login_check_free(check);
	}
	pool_close(logins->pool);
	OPENSSL_cleanse(logins->key, sizeof(logins->key));
	mem_free(logins);
}

static int64_t login_now_ms(const struct logins *logins)
{
	return clock_mono_ms(logins->auth->options.clock);
}

/* Names have no zero. */
static void login_mac(const struct logins *logins, struct slice name, struct slice password,
		      uint8_t mac[LOGIN_MAC_BYTES])
{
	char text[CREDENTIAL_NAME_MAX_BYTES + 1 + PASSWORD_MAX_BYTES];
	memcpy(text, name.data, name.len);
	text[name.len] = 0;
	memcpy(text + name.len + 1, password.data, password.len);
	const unsigned char *made =
		HMAC(EVP_sha256(), logins->key, sizeof(logins->key), (const unsigned char *)text,
		     name.len + 1 + password.len, mac, NULL);
	ASSERT(made); /* libcrypto has SHA-256 */
	OPENSSL_cleanse(text, sizeof(text));
}

/* ---- What is remembered ---------------------------------------------------------------------- */

static struct login_memory *login_place(struct logins *logins, const uint8_t *mac, size_t i)
{
	size_t at = (size_t)mac[0] | (size_t)mac[1] << 8;
	return &logins->remembered[(at + i) % LOGINS_REMEMBERED];
}

/* A reference; NULL: it is not remembered, or its credential has changed. */
static struct credential *login_recall(struct logins *logins, const uint8_t *mac)
{
	for (size_t i = 0; i < LOGIN_PLACES; i++) {
		const struct login_memory *memory = login_place(logins, mac, i);
		if (memory->until_ms <= login_now_ms(logins) ||
		    CRYPTO_memcmp(memory->mac, mac, LOGIN_MAC_BYTES) != 0)
			continue;
		return auth_find_generation(logins->auth, memory->id, memory->generation);
	}
	return NULL;
}

static void login_remember(struct logins *logins, const struct login_check *check)
{
	struct login_memory *oldest = login_place(logins, check->mac, 0);
	for (size_t i = 0; i < LOGIN_PLACES; i++) {
		struct login_memory *memory = login_place(logins, check->mac, i);
		bool same = memcmp(memory->mac, check->mac, LOGIN_MAC_BYTES) == 0;
		if (same || memory->until_ms < oldest->until_ms)
			oldest = memory;
		if (same)
			break;
	}
	*oldest = (struct login_memory){.id = check->id,
					.generation = check->generation,
					.until_ms = login_now_ms(logins) + LOGIN_REMEMBER_MS};
	memcpy(oldest->mac, check->mac, LOGIN_MAC_BYTES);
}

/* ---- Comparisons ----------------------------------------------------------------------------- */

static void login_tell(struct login *login, const struct login_check *check)
{
	struct logins *logins = check->logins;
	login->check = NULL;
	login->outcome = check->err          ? LOGIN_FAILED
			 : check->held_up_ms ? LOGIN_HELD_UP
					     : LOGIN_WRONG;
	login->again_ms = check->held_up_ms;
	if (check->is)
		login->credential =
			auth_find_generation(logins->auth, check->id, check->generation);
	if (login->credential)
		login->outcome = LOGIN_GOOD;
	login->done(login);
}

/* The first one, whose outcome is known. */
static void login_take_out(struct logins *logins)
{
	struct login_check *check = logins->checks;
	logins->checks = check->next;
	if (!logins->checks)
		logins->last = &logins->checks;
	logins->check_count--;
	logins->is_comparing = false;
	while (check->first) {
		struct login *login = check->first;
		check->first = login->next;
		login_tell(login, check);
	}
	login_check_free(check);
}

static void login_check_run(struct task *task);

/* One at a time, since a good password makes up for wrong ones before it. */
static void login_compare_next(struct logins *logins)
{
	while (logins->checks && !logins->is_comparing) {
		struct login_check *check = logins->checks;
		if (check->first) /* else nobody waits any more */
			check->held_up_ms = throttle_try(
				&logins->throttle, (struct slice){check->name, check->name_len},
				&check->from, login_now_ms(logins));
		if (!check->first || check->held_up_ms) {
			login_take_out(logins);
			continue;
		}
		logins->is_comparing = true;
		stat_add(STAT_auth_passwords_compared, 1);
		check->task.run = login_check_run;
		int err = pool_submit(logins->pool, &check->task);
		ASSERT(!err); /* it is the only one */
	}
}

/* On the executor. */
static void login_check_over(struct task *task)
{
	struct login_check *check = CONTAINER_OF(task, struct login_check, task);
	struct logins *logins = check->logins;
	if (!logins) {
		login_check_free(check);
		return;
	}
	if (check->is) {
		throttle_good(&logins->throttle, (struct slice){check->name, check->name_len},
			      &check->from, login_now_ms(logins));
		login_remember(logins, check);
	}
	login_take_out(logins);
	login_compare_next(logins);
}

/* On the thread of the pool. */
static void login_check_run(struct task *task)
{
	struct login_check *check = CONTAINER_OF(task, struct login_check, task);
	check->err = password_compare((struct slice){check->password, check->password_len},
				      check->hash, &check->is);
	check->task = (struct task){.run = login_check_over};
	check->executor->post(check->executor, &check->task);
}

static struct login_check *login_check_new(struct logins *logins, struct slice name,
					   struct slice password, const struct loop_address *from,
					   const uint8_t *mac)
{
	struct login_check *check = mem_zalloc(sizeof(*check));
	struct credential *user = auth_find_user(logins->auth, name);
	check->logins = logins;
	check->executor = logins->executor;
	check->from = *from;
	check->name_len = name.len;
	check->password_len = password.len;
	memcpy(check->name, name.data, name.len);
	memcpy(check->password, password.data, password.len);
	memcpy(check->mac, mac, LOGIN_MAC_BYTES);
	snprintf(check->hash, sizeof(check->hash), "%s", user ? user->password : logins->nobody);
	check->id = user ? user->id : 0;
	check->generation = user ? user->generation : 0;
	credential_unref(user);
	return check;
}

static void login_wait(struct login_check *check, struct login *login)
{
	login->outcome = LOGIN_WAITS;
	login->check = check;
	login->next = check->first;
	check->first = login;
}

/* One that is under way. */
static struct login_check *login_find_check(struct logins *logins, const uint8_t *mac)
{
	struct login_check *check = logins->checks;
	while (check && CRYPTO_memcmp(check->mac, mac, LOGIN_MAC_BYTES) != 0)
		check = check->next;
	return check;
}

static void login_compare(struct logins *logins, struct slice name, struct slice password,
			  const struct loop_address *from, const uint8_t *mac, struct login *login)
{
	login->outcome = LOGIN_HELD_UP;
	login->again_ms = throttle_held_up_ms(&logins->throttle, name, from, login_now_ms(logins));
	if (login->again_ms)
		return;
	login->outcome = LOGIN_BUSY;
	login->again_ms = LOGIN_BUSY_MS;
	if (logins->check_count > LOGINS_WAITING_MAX)
		return;
	struct login_check *check = login_check_new(logins, name, password, from, mac);
	*logins->last = check;
	logins->last = &check->next;
	logins->check_count++;
	login_wait(check, login);
	login_compare_next(logins);
}

void login_begin(struct logins *logins, struct slice name, struct slice password,
		 const struct loop_address *from, struct login *login)
{
	uint8_t mac[LOGIN_MAC_BYTES];
	struct login_check *check;
	login->credential = NULL;
	login->check = NULL;
	login->again_ms = 0;
	login->outcome = LOGIN_WRONG;
	/* Nobody has these; crypt(3) reads a password up to a zero. */
	if (!credential_name_valid(name) || password.len > PASSWORD_MAX_BYTES ||
	    (password.len && memchr(password.data, 0, password.len)))
		return;
	login_mac(logins, name, password, mac);
	login->credential = login_recall(logins, mac);
	if (login->credential) {
		login->outcome = LOGIN_GOOD;
		stat_add(STAT_auth_passwords_remembered, 1);
		return;
	}
	check = login_find_check(logins, mac);
	if (check)
		login_wait(check, login);
	else
		login_compare(logins, name, password, from, mac, login);
}

/* The place of a login in the list of those that wait for its comparison. */
static struct login **login_link(const struct login *login)
{
	struct login **place = &login->check->first;
	while (*place != login)
		place = &(*place)->next;
	return place;
}

void login_move(struct login *from, struct login *to)
{
	*login_link(from) = to;
	*to = *from;
}

void login_end(struct login *login)
{
	if (login->check)
		*login_link(login) = login->next;
	login->check = NULL;
	credential_unref(login->credential);
	login->credential = NULL;
}
