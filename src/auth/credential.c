#include "auth/credential.h"

#include <stdlib.h>

#include "auth/password.h"
#include "base/put.h"
#include "model/series.h"
#include "wire/json.h"
#include "wire/timetext.h"

enum {
	CREDENTIAL_VERSION = 1,
	CREDENTIAL_USER_VERSION = 2,
	CREDENTIAL_ALL_TENANTS = 1,
	CREDENTIAL_MEMORY_MAX_BYTES = 64 << 10,
};

static const struct {
	const char *name;
	enum http_role role;
} credential_roles[] = {
	{"read", ROLE_READ}, {"write", ROLE_WRITE}, {"poll", ROLE_POLL}, {"admin", ROLE_ADMIN}};

const char *const credential_kinds[] = {"token", "user", NULL};

/* ---- Life ------------------------------------------------------------------------------------ */

/* With a zero behind it. */
static const char *credential_keep_text(struct arena *arena, struct slice text)
{
	char *copy = arena_alloc(arena, text.len + 1);
	ASSERT(copy); /* names are short, and the arena has room for all */
	memcpy(copy, text.data, text.len);
	copy[text.len] = 0;
	return copy;
}

static struct credential *credential_new(struct slice name, enum credential_kind kind)
{
	struct credential *credential = mem_zalloc(sizeof(*credential));
	arena_init(&credential->memory, CREDENTIAL_MEMORY_MAX_BYTES);
	credential->caller.name = credential_keep_text(&credential->memory, name);
	credential->kind = kind;
	atomic_init(&credential->refs, 1);
	return credential;
}

void credential_ref(struct credential *credential)
{
	atomic_fetch_add_explicit(&credential->refs, 1, memory_order_relaxed);
}

void credential_unref(struct credential *credential)
{
	if (!credential ||
	    atomic_fetch_sub_explicit(&credential->refs, 1, memory_order_acq_rel) > 1)
		return;
	arena_release(&credential->memory);
	mem_free(credential);
}

/* ---- What it is to be ------------------------------------------------------------------------ */

bool credential_name_valid(struct slice name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!letter && !(c >= '0' && c <= '9') && !memchr("_.@-", c, 4))
			return false;
	}
	return name.len > 0 && name.len <= CREDENTIAL_NAME_MAX_BYTES;
}

/* The next of a list with commas between; false: there is none. */
static bool credential_next(struct slice *list, struct slice *item)
{
	if (!list->data)
		return false;
	const char *comma = list->len ? memchr(list->data, ',', list->len) : NULL;
	*item = *list;
	if (comma) {
		item->len = (size_t)(comma - list->data);
		*list = (struct slice){comma + 1, list->len - item->len - 1};
	} else {
		*list = (struct slice){NULL, 0};
	}
	return true;
}

static int credential_read_poller(struct credential *credential, struct slice name,
				  struct errbuf *e)
{
	if (credential->caller.poller)
		return errbuf_set(e, ERR_INVALID, "the role poll is given twice");
	if (!credential_name_valid(name) && !slice_equal(name, SLICE("*")))
		return errbuf_set(e, ERR_INVALID,
				  "\"" SHOWN "\" cannot be the name of a poller, which is 1 to %d "
				  "of A-Za-z0-9_.@-",
				  SHOWN_OF(name), CREDENTIAL_POLLER_MAX_BYTES);
	credential->caller.poller = credential_keep_text(&credential->memory, name);
	return 0;
}

static int credential_read_role(struct credential *credential, struct slice word, struct errbuf *e)
{
	for (size_t i = 0; i < ARRAY_LEN(credential_roles); i++) {
		enum http_role role = credential_roles[i].role;
		struct slice name = slice_of(credential_roles[i].name);
		bool as = role == ROLE_POLL && word.len > name.len &&
			  slice_starts_with(word, SLICE("poll:"));
		if (!as && !slice_equal(word, name))
			continue;
		credential->caller.roles |= 1u << role;
		if (role != ROLE_POLL)
			return 0;
		struct slice poller = {word.data + name.len + 1, word.len - name.len - 1};
		return credential_read_poller(credential, as ? poller : SLICE("*"), e);
	}
	return errbuf_set(e, ERR_INVALID,
			  "role \"" SHOWN "\" is none of read, write, poll, poll:NAME and admin",
			  SHOWN_OF(word));
}

static int credential_read_roles(struct credential *credential, struct slice text, struct errbuf *e)
{
	struct slice word;
	int err = 0;
	credential->caller.roles = 0;
	credential->caller.poller = NULL;
	while (!err && credential_next(&text, &word))
		err = credential_read_role(credential, word, e);
	return err;
}

static int credential_compare_tenants(const void *a, const void *b)
{
	return slice_compare(*(const struct slice *)a, *(const struct slice *)b);
}

/* Adds one to the list, which has room for it. */
static int credential_add_tenant(struct credential *credential, struct slice *list,
				 struct slice tenant)
{
	list[credential->caller.tenant_count] = arena_copy(&credential->memory, tenant);
	return list[credential->caller.tenant_count++].data ? 0 : ERR_LIMIT;
}

static struct slice *credential_begin_tenants(struct credential *credential)
{
	struct slice *list =
		arena_alloc(&credential->memory, CREDENTIAL_TENANTS_MAX * sizeof(*list));
	ASSERT(list);
	credential->caller.tenants = list;
	credential->caller.tenant_count = 0;
	credential->caller.all_tenants = false;
	return list;
}

static int credential_read_tenants(struct credential *credential, struct slice text,
				   struct errbuf *e)
{
	struct slice tenant, *list = credential_begin_tenants(credential);
	credential->caller.all_tenants = slice_equal(text, SLICE("*"));
	if (credential->caller.all_tenants)
		return 0;
	while (credential_next(&text, &tenant)) {
		if (!tenant_valid(tenant))
			return errbuf_set(e, ERR_INVALID,
					  "tenant \"" SHOWN "\" is not 1 to %d of A-Za-z0-9_.-, "
					  "and * stands alone, for all tenants",
					  SHOWN_OF(tenant), TENANT_MAX_BYTES);
		if (credential->caller.tenant_count == CREDENTIAL_TENANTS_MAX)
			return errbuf_set(e, ERR_LIMIT, "there are more than %d tenants",
					  CREDENTIAL_TENANTS_MAX);
		int err = credential_add_tenant(credential, list, tenant);
		ASSERT(!err); /* the arena has room for as many */
	}
	qsort(list, credential->caller.tenant_count, sizeof(*list), credential_compare_tenants);
	return 0;
}

static int credential_read_password(struct credential *credential, struct slice password,
				    struct errbuf *e)
{
	char hash[PASSWORD_HASH_BYTES];
	if (credential->kind != CREDENTIAL_USER)
		return errbuf_set(e, ERR_INVALID, "%s has a token, and no password",
				  credential->caller.name);
	int err = password_check(password, e);
	if (err)
		return err;
	err = password_hash(password, hash);
	if (err)
		return errbuf_set(e, err, "a password cannot be hashed: %s", err_text(err));
	credential->password = credential_keep_text(&credential->memory, slice_of(hash));
	return 0;
}

static int credential_take_wish(struct credential *credential, const struct credential_wish *wish,
				struct errbuf *e)
{
	int err = wish->roles.data ? credential_read_roles(credential, wish->roles, e) : 0;
	if (!err && wish->tenants.data)
		err = credential_read_tenants(credential, wish->tenants, e);
	if (!err && wish->password.data)
		err = credential_read_password(credential, wish->password, e);
	if (wish->expires)
		credential->expires_ms = wish->expires_ms;
	return err;
}

int credential_make(struct slice name, const struct credential_wish *wish, int64_t now_ms,
		    struct credential **made, struct errbuf *e)
{
	*made = NULL;
	if (!credential_name_valid(name))
		return errbuf_set(e, ERR_INVALID,
				  "\"" SHOWN "\" cannot be the name of a credential, which is 1 to "
				  "%d of A-Za-z0-9_.@-",
				  SHOWN_OF(name), CREDENTIAL_NAME_MAX_BYTES);
	if (!wish->roles.data || !wish->tenants.data)
		return errbuf_set(e, ERR_INVALID, "a credential needs roles and tenants");
	if (wish->kind == CREDENTIAL_USER && !wish->password.data)
		return errbuf_set(e, ERR_INVALID, "a user needs a password");
	struct credential *credential =
		credential_new(name, wish->kind ? wish->kind : CREDENTIAL_TOKEN);
	credential->made_ms = now_ms;
	int err = credential_take_wish(credential, wish, e);
	if (err)
		credential_unref(credential);
	else
		*made = credential;
	return err;
}

int credential_change(const struct credential *credential, const struct credential_wish *wish,
		      struct credential **made, struct errbuf *e)
{
	struct buf value;
	struct credential *copy;
	*made = NULL;
	buf_init(&value, CREDENTIAL_VALUE_MAX_BYTES);
	credential_encode(credential, &value);
	int err = credential_decode(slice_of(credential->caller.name), buf_slice(&value), &copy);
	ASSERT(!err); /* what was encoded is decoded */
	buf_release(&value);
	copy->version = credential->version;
	copy->generation++;
	err = credential_take_wish(copy, wish, e);
	if (err)
		credential_unref(copy);
	else
		*made = copy;
	return err;
}

int credential_read_expiry(struct slice text, int64_t now_ms, struct credential_wish *wish,
			   struct errbuf *e)
{
	struct errbuf other;
	int64_t span_ms;
	wish->expires = text.data;
	if (!text.data || slice_equal(text, SLICE("never")))
		return 0;
	if (!duration_parse(text, &span_ms, &other) && span_ms > 0 &&
	    !__builtin_add_overflow(span_ms, now_ms, &wish->expires_ms))
		return 0;
	int err = time_parse_absolute(text, &wish->expires_ms, &other);
	if (!err && wish->expires_ms > now_ms)
		return 0;
	return errbuf_set(e, ERR_INVALID, "expires \"" SHOWN "\" is %s", SHOWN_OF(text),
			  err ? "neither a time, such as 2027-01-01, nor a duration, such as 90d, "
				"nor never"
			      : "over already");
}

/* ---- What it is ------------------------------------------------------------------------------ */

bool credential_has_expired(const struct credential *credential, int64_t now_ms)
{
	return credential->expires_ms && now_ms >= credential->expires_ms;
}

bool credential_makes_others(const struct credential *credential, int64_t now_ms)
{
	return credential->caller.all_tenants && credential->caller.roles & 1u << ROLE_ADMIN &&
	       !credential_has_expired(credential, now_ms);
}

static void credential_put_roles(const struct caller *caller, struct buf *out)
{
	const char *poller = caller->poller;
	const char *between = "";
	for (size_t i = 0; i < ARRAY_LEN(credential_roles); i++) {
		if (!(caller->roles & 1u << credential_roles[i].role))
			continue;
		bool named = credential_roles[i].role == ROLE_POLL && strcmp(poller, "*") != 0;
		buf_printf(out, "%s%s%s%s", between, credential_roles[i].name, named ? ":" : "",
			   named ? poller : "");
		between = ",";
	}
}

static void credential_write_words(struct json_writer *json, const char *key, struct slice words)
{
	json_write_key(json, key);
	json_write_array_begin(json);
	while (words.len) {
		const char *comma = memchr(words.data, ',', words.len);
		size_t len = comma ? (size_t)(comma - words.data) : words.len;
		json_write_string(json, (struct slice){words.data, len});
		words = (struct slice){words.data + len, words.len - len};
		if (words.len)
			words = (struct slice){words.data + 1, words.len - 1};
	}
	json_write_array_end(json);
}

void credential_write_caller(struct json_writer *json, const struct caller *caller)
{
	struct buf roles;
	buf_init(&roles, CREDENTIAL_ROLES_TEXT_BYTES);
	credential_put_roles(caller, &roles);
	credential_write_words(json, "roles", buf_slice(&roles));
	json_write_key(json, "tenants");
	json_write_array_begin(json);
	if (caller->all_tenants)
		json_write_text(json, "*");
	for (size_t i = 0; i < caller->tenant_count; i++)
		json_write_string(json, caller->tenants[i]);
	json_write_array_end(json);
	buf_release(&roles);
}

void credential_write(struct json_writer *json, const struct credential *credential, int64_t now_ms,
		      const char *token)
{
	json_write_object_begin(json);
	json_put_text(json, "name", credential->caller.name);
	json_put_text(json, "kind", credential_kinds[credential->kind - CREDENTIAL_TOKEN]);
	credential_write_caller(json, &credential->caller);
	json_put_i64(json, "made", credential->made_ms);
	json_write_key(json, "expires");
	if (credential->expires_ms)
		json_write_i64(json, credential->expires_ms);
	else
		json_write_null(json);
	json_put_bool(json, "expired", credential_has_expired(credential, now_ms));
	json_put_u64(json, "changes", credential->generation);
	if (token)
		json_put_text(json, "token", token);
	json_write_object_end(json);
}

/* ---- The cell -------------------------------------------------------------------------------- */

void credential_encode(const struct credential *credential, struct buf *out)
{
	const struct caller *caller = &credential->caller;
	bool user = credential->kind == CREDENTIAL_USER;
	buf_append_char(out, user ? CREDENTIAL_USER_VERSION : CREDENTIAL_VERSION);
	buf_put_varint(out, credential->kind);
	buf_append(out, &credential->id, sizeof(credential->id));
	if (user)
		buf_put_text(out, slice_of(credential->password));
	else
		buf_append(out, credential->hash, sizeof(credential->hash));
	buf_put_varint(out, zigzag_encode(credential->made_ms));
	buf_put_varint(out, zigzag_encode(credential->expires_ms));
	buf_put_varint(out, credential->generation);
	buf_append_char(out, (char)(caller->all_tenants ? CREDENTIAL_ALL_TENANTS : 0));
	struct buf roles;
	buf_init(&roles, CREDENTIAL_ROLES_TEXT_BYTES);
	credential_put_roles(caller, &roles);
	buf_put_text(out, buf_slice(&roles));
	buf_release(&roles);
	buf_put_varint(out, caller->tenant_count);
	for (size_t i = 0; i < caller->tenant_count; i++)
		buf_put_text(out, caller->tenants[i]);
}

static void credential_take_tenants(struct cursor *c, struct credential *credential)
{
	struct slice *list = credential_begin_tenants(credential);
	uint64_t count = cursor_varint(c);
	c->bad |= count > CREDENTIAL_TENANTS_MAX;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		struct slice tenant = cursor_text(c, TENANT_MAX_BYTES);
		c->bad |= !tenant_valid(tenant) ||
			  credential_add_tenant(credential, list, tenant) != 0;
	}
}

/* What its secret is known by. */
static void credential_take_secret(struct cursor *c, struct credential *credential)
{
	if (credential->kind == CREDENTIAL_USER) {
		struct slice hash = cursor_text(c, PASSWORD_HASH_BYTES - 1);
		c->bad |= !password_is_hash(hash);
		if (!c->bad)
			credential->password = credential_keep_text(&credential->memory, hash);
		return;
	}
	const uint8_t *hash = cursor_take(c, sizeof(credential->hash));
	if (hash)
		memcpy(credential->hash, hash, sizeof(credential->hash));
}

static void credential_take(struct cursor *c, struct credential *credential)
{
	struct errbuf e;
	c->bad |= cursor_varint(c) != credential->kind;
	credential->id = cursor_u64(c);
	credential_take_secret(c, credential);
	credential->made_ms = zigzag_decode(cursor_varint(c));
	credential->expires_ms = zigzag_decode(cursor_varint(c));
	credential->generation = cursor_varint(c);
	unsigned flags = cursor_u8(c);
	struct slice roles = cursor_text(c, CREDENTIAL_ROLES_TEXT_BYTES);
	if (c->bad)
		return;
	c->bad |= flags > CREDENTIAL_ALL_TENANTS || !roles.len ||
		  credential_read_roles(credential, roles, &e) != 0;
	credential_take_tenants(c, credential);
	credential->caller.all_tenants = flags & CREDENTIAL_ALL_TENANTS;
	c->bad |= !credential->caller.all_tenants == !credential->caller.tenant_count;
}

int credential_decode(struct slice name, struct slice value, struct credential **made)
{
	struct cursor c = cursor_of(value.data, value.len);
	unsigned version = cursor_u8(&c);
	*made = NULL;
	if (!c.bad && version != CREDENTIAL_VERSION && version != CREDENTIAL_USER_VERSION)
		return ERR_VERSION;
	if (c.bad || !credential_name_valid(name))
		return ERR_DAMAGED;
	struct credential *credential = credential_new(
		name, version == CREDENTIAL_USER_VERSION ? CREDENTIAL_USER : CREDENTIAL_TOKEN);
	credential_take(&c, credential);
	if (c.bad || cursor_left(&c)) {
		credential_unref(credential);
		return ERR_DAMAGED;
	}
	*made = credential;
	return 0;
}
