#include "auth/auth_private.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <stdlib.h>

#include "base/grow.h"
#include "store/wait.h"

enum { AUTH_READ_BYTES = 1 << 20, AUTH_TRIES = 20, AUTH_KEY_VERSION = 1, AUTH_LINES_A_MINUTE = 10 };

static const struct store_parts auth_row = {{SLICE("credential")}};
static const struct store_parts auth_key_row = {{SLICE("session")}},
				auth_key_column = {{SLICE("key")}};

struct auth *auth_new(const struct auth_options *options)
{
	struct auth *auth = mem_zalloc(sizeof(*auth));
	auth->options = *options;
	auth->unknown.lines_max = auth->refusals.lines_max = AUTH_LINES_A_MINUTE;
	auth_guard_init(&auth->guard);
	pthread_mutex_init(&auth->changing, NULL);
	pthread_mutex_init(&auth->lock, NULL);
	int ok = RAND_bytes(auth->session_key, sizeof(auth->session_key));
	ASSERT(ok == 1); /* the system has random bytes; nobody has this key, if no other comes */
	if (options->executor)
		auth->logins = logins_new(auth, options->executor);
	return auth;
}

void auth_free(struct auth *auth)
{
	if (!auth)
		return;
	logins_free(auth->logins);
	OPENSSL_cleanse(auth->session_key, sizeof(auth->session_key));
	auth_list_free(auth->list, auth->count);
	mem_free(auth->names);
	credential_unref(auth->own);
	pthread_mutex_destroy(&auth->lock);
	pthread_mutex_destroy(&auth->changing);
	mem_free(auth);
}

/* ---- In memory ------------------------------------------------------------------------------- */

typedef bool auth_below_fn(const struct credential *credential, const void *key);

static bool auth_has_id_below(const struct credential *credential, const void *key)
{
	return credential->id < *(const uint64_t *)key;
}

static bool auth_has_name_below(const struct credential *credential, const void *key)
{
	return strcmp(credential->caller.name, key) < 0;
}

/* With the lock: the place of the first that is not below. */
static size_t auth_place(struct credential *const *list, size_t count, auth_below_fn *below,
			 const void *key)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (below(list[middle], key))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static size_t auth_place_of_id(const struct auth *auth, uint64_t id)
{
	return auth_place(auth->list, auth->count, auth_has_id_below, &id);
}

static size_t auth_place_of_name(const struct auth *auth, const char *name)
{
	return auth_place(auth->names, auth->count, auth_has_name_below, name);
}

struct credential *auth_find_id(struct auth *auth, uint64_t id)
{
	struct credential *found = auth->own && auth->own->id == id ? auth->own : NULL;
	pthread_mutex_lock(&auth->lock);
	size_t at = auth_place_of_id(auth, id);
	if (!found && at < auth->count && auth->list[at]->id == id)
		found = auth->list[at];
	if (found)
		credential_ref(found);
	pthread_mutex_unlock(&auth->lock);
	return found;
}

struct credential *auth_find_generation(struct auth *auth, uint64_t id, uint64_t generation)
{
	struct credential *found = auth_find_id(auth, id);
	if (!found || found->generation == generation)
		return found;
	credential_unref(found);
	return NULL;
}

/* With the lock. NULL: there is none. */
static struct credential *auth_find_name(const struct auth *auth, const char *name)
{
	size_t at = auth_place_of_name(auth, name);
	bool is_there = at < auth->count && strcmp(auth->names[at]->caller.name, name) == 0;
	return is_there ? auth->names[at] : NULL;
}

struct credential *auth_find_user(struct auth *auth, struct slice name)
{
	char text[CREDENTIAL_NAME_MAX_BYTES + 1];
	if (!credential_name_valid(name))
		return NULL;
	snprintf(text, sizeof(text), "%.*s", (int)name.len, name.data);
	pthread_mutex_lock(&auth->lock);
	struct credential *found = auth_find_name(auth, text);
	if (found && found->kind != CREDENTIAL_USER)
		found = NULL;
	if (found)
		credential_ref(found);
	pthread_mutex_unlock(&auth->lock);
	return found;
}

static void auth_cut_out(struct credential **list, size_t count, size_t at)
{
	memmove(list + at, list + at + 1, (count - at - 1) * sizeof(struct credential *));
}

static void auth_put_in(struct credential **list, size_t count, size_t at,
			struct credential *credential)
{
	memmove(list + at + 1, list + at, (count - at) * sizeof(struct credential *));
	list[at] = credential;
}

/* With the lock. */
static void auth_remove(struct auth *auth, struct credential *credential)
{
	auth_cut_out(auth->list, auth->count, auth_place_of_id(auth, credential->id));
	auth_cut_out(auth->names, auth->count, auth_place_of_name(auth, credential->caller.name));
	auth->count--;
	credential_unref(credential);
}

/* With the lock. */
static bool auth_has_room(const struct auth *auth, const char *name)
{
	return auth->count < AUTH_CREDENTIALS_MAX || auth_find_name(auth, name);
}

static bool auth_knows_name(struct auth *auth, const char *name)
{
	pthread_mutex_lock(&auth->lock);
	bool known = auth_find_name(auth, name) != NULL;
	pthread_mutex_unlock(&auth->lock);
	return known;
}

/* Takes the reference; what has the name is replaced. False: there is no room. */
static bool auth_keep(struct auth *auth, struct credential *credential)
{
	const char *name = credential->caller.name;
	pthread_mutex_lock(&auth->lock);
	bool room = auth_has_room(auth, name);
	struct credential *before = auth_find_name(auth, name);
	if (before)
		auth_remove(auth, before);
	if (room) {
		GROW(auth->list, auth->room, auth->count + 1);
		GROW(auth->names, auth->names_room, auth->count + 1);
		auth_put_in(auth->list, auth->count, auth_place_of_id(auth, credential->id),
			    credential);
		auth_put_in(auth->names, auth->count, auth_place_of_name(auth, name), credential);
		auth->count++;
	}
	pthread_mutex_unlock(&auth->lock);
	return room;
}

static void auth_forget(struct auth *auth, const char *name)
{
	pthread_mutex_lock(&auth->lock);
	struct credential *there = auth_find_name(auth, name);
	if (there)
		auth_remove(auth, there);
	pthread_mutex_unlock(&auth->lock);
}

bool auth_is_open(struct auth *auth)
{
	pthread_mutex_lock(&auth->lock);
	bool open = !auth->count && !auth->some_unread;
	pthread_mutex_unlock(&auth->lock);
	return open;
}

struct credential **auth_list(struct auth *auth, size_t *count)
{
	pthread_mutex_lock(&auth->lock);
	struct credential **list = mem_alloc_array(auth->count + 1, sizeof(struct credential *));
	*count = auth->count;
	for (size_t i = 0; i < auth->count; i++) {
		list[i] = auth->names[i];
		credential_ref(list[i]);
	}
	pthread_mutex_unlock(&auth->lock);
	return list;
}

void auth_list_free(struct credential **list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		credential_unref(list[i]);
	mem_free(list);
}

void auth_make_own_token(struct auth *auth, unsigned roles, char text[TOKEN_TEXT_BYTES + 1])
{
	const struct credential_wish wish = {.roles = SLICE("write"), .tenants = SLICE("*")};
	struct errbuf e;
	ASSERT(!auth->own);
	int err = credential_make(SLICE("granary"), &wish, 0, &auth->own, &e);
	ASSERT(!err);
	auth->own->caller.roles = roles;
	token_make(&auth->own->id, text);
	token_hash(slice_of(text), auth->own->hash);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int auth_see_cell(const struct store_cell *cell, void *owner)
{
	struct auth *auth = owner;
	struct slice name = cell->column.part[0];
	struct credential *credential;
	int err = credential_decode(name, cell->value, &credential);
	if (err) {
		log_error("the credential " SHOWN " (table credentials) cannot be read: %s; "
			  "whoever shows it is refused",
			  SHOWN_OF(name), err_text(err));
	} else {
		credential->version = cell->version;
		if (auth_keep(auth, credential))
			return 0;
		log_error("there are more than %d credentials; whoever shows " SHOWN " is refused",
			  AUTH_CREDENTIALS_MAX, SHOWN_OF(name));
		credential_unref(credential);
	}
	pthread_mutex_lock(&auth->lock);
	auth->some_unread = true;
	pthread_mutex_unlock(&auth->lock);
	return 0;
}

/* ---- The key of sessions --------------------------------------------------------------------- */

void auth_session_key(struct auth *auth, uint8_t key[SESSION_KEY_BYTES])
{
	pthread_mutex_lock(&auth->lock);
	memcpy(key, auth->session_key, SESSION_KEY_BYTES);
	pthread_mutex_unlock(&auth->lock);
}

static void auth_keep_key(struct auth *auth, const void *key, uint64_t version)
{
	pthread_mutex_lock(&auth->lock);
	memcpy(auth->session_key, key, SESSION_KEY_BYTES);
	auth->session_key_version = version;
	pthread_mutex_unlock(&auth->lock);
}

static int auth_see_key(const struct store_cell *cell, void *owner)
{
	struct auth *auth = owner;
	auth->session_key_version = cell->version;
	if (cell->value.len == 1 + SESSION_KEY_BYTES && cell->value.data[0] == AUTH_KEY_VERSION)
		auth_keep_key(auth, cell->value.data + 1, cell->version);
	else
		log_error("the key of sessions (table credentials) cannot be read: they end with "
			  "this process, until `session reset` makes another key");
	return 0;
}

static int auth_load_key(struct auth *auth, struct task_queue *queue, struct errbuf *e)
{
	return store_row_wait(auth->options.store, queue, clock_wall_ms(auth->options.clock),
			      TABLE_CREDENTIALS, &auth_key_row, auth_see_key, auth, e);
}

/* Under the version that is known; its new one is read back. */
static int auth_make_key(struct auth *auth, struct task_queue *queue, struct errbuf *e)
{
	char cell[1 + SESSION_KEY_BYTES] = {AUTH_KEY_VERSION};
	int ok = RAND_bytes((unsigned char *)cell + 1, SESSION_KEY_BYTES);
	ASSERT(ok == 1); /* the system has random bytes */
	int err = store_put_if_wait(auth->options.store, queue, TABLE_CREDENTIALS, &auth_key_row,
				    &auth_key_column, auth->session_key_version,
				    (struct slice){cell, sizeof(cell)});
	OPENSSL_cleanse(cell, sizeof(cell));
	err = err == ERR_UNKNOWN ? 0 : err; /* what is there is read back */
	if (!err)
		err = auth_load_key(auth, queue, e);
	if (err && !e->text[0])
		errbuf_set(e, err, "a key of sessions cannot be made: %s", err_text(err));
	return err;
}

int auth_reset_sessions(struct auth *auth, struct task_queue *queue, struct errbuf *e)
{
	pthread_mutex_lock(&auth->changing);
	int err = auth_make_key(auth, queue, e);
	pthread_mutex_unlock(&auth->changing);
	return err;
}

/* Where there are credentials, there may be sessions. Without room for a key they end with this
 * process, which is no reason to do nothing. */
static void auth_need_key(struct auth *auth, struct task_queue *queue)
{
	struct errbuf why = {""};
	if (!auth->session_key_version && !auth_is_open(auth) && auth_make_key(auth, queue, &why))
		log_warn("%s; sessions that begin now end with this process", why.text);
}

int auth_load(struct auth *auth, struct task_queue *queue, struct errbuf *e)
{
	int err = store_row_wait(auth->options.store, queue, clock_wall_ms(auth->options.clock),
				 TABLE_CREDENTIALS, &auth_row, auth_see_cell, auth, e);
	err = err ? err : auth_load_key(auth, queue, e);
	if (!err)
		auth_need_key(auth, queue);
	return err;
}

/* ---- Changing -------------------------------------------------------------------------------- */

/* The cell of a name as it is now, *version 0 if there is none. *now: NULL if there is none, or its
 * cell cannot be read, which is *unread. */
static int auth_read(struct auth *auth, struct task_queue *queue, struct slice name,
		     struct credential **now, uint64_t *version, int *unread)
{
	struct store_read *read = store_read_new(auth->options.store, AUTH_READ_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request); /* the first of an empty arena */
	request->cell_get = (struct store_cell_get){
		.table = TABLE_CREDENTIALS, .key = auth_row, .column = {{name}}};
	read->now_ms = clock_wall_ms(auth->options.clock);
	*now = NULL;
	*unread = 0;
	*version = 0;
	int err = store_read_wait(read, queue);
	const struct store_cell_get *got = &request->cell_get;
	if (!err && got->found) {
		*version = got->cell.version;
		*unread = credential_decode(name, got->cell.value, now);
	}
	if (*now)
		(*now)->version = got->cell.version;
	store_read_free(read);
	return err;
}

/* Value NULL: the cell goes. ERR_RETRY: it has changed. ERR_UNKNOWN: it may have. */
static int auth_write(struct auth *auth, struct task_queue *queue, struct slice name,
		      uint64_t version, struct slice value)
{
	const struct store_parts column = {{name}};
	int err = store_put_if_wait(auth->options.store, queue, TABLE_CREDENTIALS, &auth_row,
				    &column, version, value);
	return err == ERR_EXISTS ? ERR_RETRY : err;
}

static bool auth_is_to_be_tried_again(int err)
{
	return err == ERR_RETRY || err == ERR_UNKNOWN;
}

/* What is stored holds. The reference stays the caller's. */
static void auth_hold(struct auth *auth, struct credential *credential)
{
	credential_ref(credential);
	bool kept = auth_keep(auth, credential);
	ASSERT(kept); /* there was room before it was stored, and who changes them is alone */
}

/* Writes it, and has it hold. ERR_LIMIT: nothing is written. */
static int auth_put(struct auth *auth, struct task_queue *queue, struct credential *credential)
{
	struct buf value;
	pthread_mutex_lock(&auth->lock);
	bool room = auth_has_room(auth, credential->caller.name);
	pthread_mutex_unlock(&auth->lock);
	if (!room)
		return ERR_LIMIT;
	buf_init(&value, CREDENTIAL_VALUE_MAX_BYTES);
	credential_encode(credential, &value);
	ASSERT(!value.failed);
	int err = auth_write(auth, queue, slice_of(credential->caller.name), credential->version,
			     buf_slice(&value));
	buf_release(&value);
	if (!err)
		auth_hold(auth, credential);
	return err;
}

/* Whether someone could make credentials if this name had none, or this one. */
static bool auth_can_go_on(struct auth *auth, const char *name, const struct credential *other)
{
	int64_t now_ms = clock_wall_ms(auth->options.clock);
	bool can = other && credential_makes_others(other, now_ms);
	pthread_mutex_lock(&auth->lock);
	for (size_t i = 0; i < auth->count && !can; i++)
		can = strcmp(auth->list[i]->caller.name, name) != 0 &&
		      credential_makes_others(auth->list[i], now_ms);
	pthread_mutex_unlock(&auth->lock);
	return can;
}

static int auth_check_goes_on(struct auth *auth, struct slice name, const struct credential *other,
			      struct errbuf *e)
{
	char text[CREDENTIAL_NAME_MAX_BYTES + 1];
	memcpy(text, name.data, name.len);
	text[name.len] = 0;
	if (auth_can_go_on(auth, text, other))
		return 0;
	if (auth_is_open(auth))
		return errbuf_set(e, ERR_INVALID,
				  "the first credential needs the role admin and all tenants: "
				  "without it nobody could make another one");
	if (!auth_can_go_on(auth, "", NULL))
		return 0; /* nobody can as it is, but the owner of the machine */
	return errbuf_set(e, ERR_INVALID,
			  "no other credential has the role admin and all tenants: nobody could "
			  "make or change credentials any more");
}

/* `unknown`: it was written, and the store did not say what became of it. */
static int auth_create_once(struct auth *auth, struct task_queue *queue, bool unknown,
			    struct credential *credential, char text[TOKEN_TEXT_BYTES + 1],
			    struct errbuf *e)
{
	struct credential *now;
	uint64_t version;
	int unread;
	struct slice name = slice_of(credential->caller.name);
	int err = auth_read(auth, queue, name, &now, &version, &unread);
	bool is_stored = !err && unknown && now && now->id == credential->id;
	if (is_stored) {
		credential->version = version;
		auth_hold(auth, credential);
	} else if (!err && version) {
		err = errbuf_set(e, ERR_EXISTS, "there is a credential " SHOWN " already",
				 SHOWN_OF(name));
	}
	credential_unref(now);
	if (err || is_stored)
		return err;
	token_make(&credential->id, text);
	if (credential->kind == CREDENTIAL_TOKEN)
		token_hash(slice_of(text), credential->hash);
	else
		OPENSSL_cleanse(text, TOKEN_TEXT_BYTES + 1);
	return auth_put(auth, queue, credential);
}

static int auth_end(int err, const char *what, struct slice name, struct errbuf *e)
{
	if (err && !e->text[0])
		errbuf_set(e, err, "the credential " SHOWN " is not %s: %s", SHOWN_OF(name), what,
			   err == ERR_LIMIT ? "there are as many as there may be" : err_text(err));
	return err;
}

int auth_create(struct auth *auth, struct task_queue *queue, struct slice name,
		const struct credential_wish *wish, char text[TOKEN_TEXT_BYTES + 1],
		struct credential **made, struct errbuf *e)
{
	int err = credential_make(name, wish, clock_wall_ms(auth->options.clock), made, e);
	if (err)
		return err;
	pthread_mutex_lock(&auth->changing);
	if (!auth_knows_name(auth, (*made)->caller.name)) /* else the store says so */
		err = auth_check_goes_on(auth, name, *made, e);
	err = err ? err : ERR_RETRY;
	for (int i = 0; i < AUTH_TRIES && auth_is_to_be_tried_again(err); i++)
		err = auth_create_once(auth, queue, err == ERR_UNKNOWN, *made, text, e);
	if (!err)
		auth_need_key(auth, queue);
	pthread_mutex_unlock(&auth->changing);
	if (err) {
		credential_unref(*made);
		*made = NULL;
	}
	return auth_end(err, "made", name, e);
}

/* As auth_read(); ERR_NOT_FOUND with a sentence. */
static int auth_find_now(struct auth *auth, struct task_queue *queue, struct slice name,
			 struct credential **now, uint64_t *version, int *unread, struct errbuf *e)
{
	int err = 0;
	*now = NULL;
	*version = 0;
	if (credential_name_valid(name))
		err = auth_read(auth, queue, name, now, version, unread);
	if (!err && !*version)
		err = errbuf_set(e, ERR_NOT_FOUND, "there is no credential " SHOWN, SHOWN_OF(name));
	return err;
}

static int auth_change_once(struct auth *auth, struct task_queue *queue, struct slice name,
			    const struct credential_wish *wish, struct credential **made,
			    struct errbuf *e)
{
	struct credential *now;
	uint64_t version;
	int unread = 0;
	int err = auth_find_now(auth, queue, name, &now, &version, &unread, e);
	if (!err && unread)
		err = errbuf_set(e, unread,
				 "the credential " SHOWN " cannot be read: %s; revoke it and "
				 "create it again",
				 SHOWN_OF(name), err_text(unread));
	err = err ? err : credential_change(now, wish, made, e);
	err = err ? err : auth_check_goes_on(auth, name, *made, e);
	err = err ? err : auth_put(auth, queue, *made);
	credential_unref(now);
	if (err) {
		credential_unref(*made);
		*made = NULL;
	}
	return err;
}

int auth_change(struct auth *auth, struct task_queue *queue, struct slice name,
		const struct credential_wish *wish, struct credential **made, struct errbuf *e)
{
	int err = ERR_RETRY;
	*made = NULL;
	pthread_mutex_lock(&auth->changing);
	for (int i = 0; i < AUTH_TRIES && auth_is_to_be_tried_again(err); i++)
		err = auth_change_once(auth, queue, name, wish, made, e);
	pthread_mutex_unlock(&auth->changing);
	return auth_end(err, "changed", name, e);
}

/* `unknown`: the store did not say what became of the cell's removal. One that cannot be read goes
 * by its version. */
static int auth_revoke_once(struct auth *auth, struct task_queue *queue, bool unknown,
			    struct slice name, struct errbuf *e)
{
	char text[CREDENTIAL_NAME_MAX_BYTES + 1];
	struct credential *now;
	uint64_t version;
	int unread = 0;
	int err = auth_find_now(auth, queue, name, &now, &version, &unread, e);
	if (err == ERR_NOT_FOUND && unknown)
		err = 0;
	if (!err && now)
		err = auth_check_goes_on(auth, name, NULL, e);
	if (!err && version)
		err = auth_write(auth, queue, name, version, (struct slice){NULL, 0});
	credential_unref(now);
	if (err)
		return err;
	snprintf(text, sizeof(text), "%.*s", (int)name.len, name.data);
	auth_forget(auth, text);
	return 0;
}

int auth_revoke(struct auth *auth, struct task_queue *queue, struct slice name, struct errbuf *e)
{
	int err = ERR_RETRY;
	pthread_mutex_lock(&auth->changing);
	for (int i = 0; i < AUTH_TRIES && auth_is_to_be_tried_again(err); i++)
		err = auth_revoke_once(auth, queue, err == ERR_UNKNOWN, name, e);
	pthread_mutex_unlock(&auth->changing);
	return auth_end(err, "revoked", name, e);
}
