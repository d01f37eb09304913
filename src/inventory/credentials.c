/* The secrets file: how to talk to devices, by name. No sentence repeats a secret. */
#include "inventory/private.h"

#include "base/file.h"

enum { SECRET_MAX_BYTES = 1024, PASSWORD_MIN_BYTES = 8, USER_MAX_BYTES = 32 };

static const char *const keys[] = {"version",       "community", "user",          "context", "auth",
				   "auth_password", "priv",      "priv_password", "level",   NULL};
static const char *const versions[] = {"1", "2c", "3", NULL};
static const enum snmp_version version_numbers[] = {SNMP_V1, SNMP_V2C, SNMP_V3};
static const char *const levels[] = {"noAuthNoPriv", "authNoPriv", "authPriv", NULL};

/* As net-snmp calls them, and the longer names of the two that have one. */
static const char *const auth_words[] = {"MD5",     "SHA",     "SHA-1",   "SHA-224",
					 "SHA-256", "SHA-384", "SHA-512", NULL};
static const enum usm_auth auths[] = {USM_AUTH_MD5,    USM_AUTH_SHA1,   USM_AUTH_SHA1,
				      USM_AUTH_SHA224, USM_AUTH_SHA256, USM_AUTH_SHA384,
				      USM_AUTH_SHA512};
static const char *const priv_words[] = {"DES",     "AES",       "AES-128",   "AES-192",
					 "AES-256", "AES-192-C", "AES-256-C", NULL};
static const enum usm_priv privs[] = {USM_PRIV_DES,     USM_PRIV_AES128, USM_PRIV_AES128,
				      USM_PRIV_AES192,  USM_PRIV_AES256, USM_PRIV_AES192_C,
				      USM_PRIV_AES256_C};

_Static_assert(ARRAY_LEN(versions) == ARRAY_LEN(version_numbers) + 1, "one for each word");
_Static_assert(ARRAY_LEN(levels) == LEVEL_AUTH_PRIV + 2, "in the order of enum credentials_level");
_Static_assert(ARRAY_LEN(auth_words) == ARRAY_LEN(auths) + 1, "one for each word");
_Static_assert(ARRAY_LEN(priv_words) == ARRAY_LEN(privs) + 1, "one for each word");

static int refuse_with(struct conf_reader *r, const struct conf_node *node, const char *key,
		       const char *why)
{
	const struct conf_node *member = conf_node_member(node, key);
	return member ? conf_node_refuse(member, r->e, "%s", why) : 0;
}

static int check_placeholder(const struct conf_node *node, struct slice secret, struct errbuf *e)
{
	return secret_is_placeholder(secret)
		       ? conf_node_refuse(node, e, "it stands where a secret belongs, and is none")
		       : 0;
}

static int read_community(struct conf_reader *r, const struct conf_node *node,
			  struct credentials *c)
{
	const struct conf_node *community = conf_node_member(node, "community");
	static const char *const of_v3[] = {"user", "context",       "auth", "auth_password",
					    "priv", "priv_password", "level"};
	for (size_t i = 0; i < ARRAY_LEN(of_v3); i++) {
		int err = refuse_with(r, node, of_v3[i], "belongs to version 3");
		if (err)
			return err;
	}
	if (!community)
		return conf_node_refuse(node, r->e, "versions 1 and 2c need a community");
	int err = conf_node_text(community, 1, SECRET_MAX_BYTES, &c->community, r->e);
	return err ? err : check_placeholder(community, c->community, r->e);
}

/* A password belongs to its protocol and the other way round. */
static int read_pair(struct conf_reader *r, const struct conf_node *node, const char *key,
		     const char *what, const char *const *words, size_t *index,
		     struct slice *password, bool *given)
{
	char password_key[32];
	snprintf(password_key, sizeof(password_key), "%s_password", key);
	const struct conf_node *protocol = conf_node_member(node, key);
	const struct conf_node *secret = conf_node_member(node, password_key);
	*given = protocol != NULL;
	if (!protocol && !secret)
		return 0;
	if (!protocol || !secret)
		return conf_node_refuse(node, r->e, "%s and %s go together", key, password_key);
	int err = conf_node_choice(protocol, what, words, index, r->e);
	err = err ? err : conf_node_text(secret, 0, SECRET_MAX_BYTES, password, r->e);
	if (!err && password->len < PASSWORD_MIN_BYTES)
		return conf_node_refuse(secret, r->e, "a password has at least %d characters",
					PASSWORD_MIN_BYTES);
	return err ? err : check_placeholder(secret, *password, r->e);
}

static int check_level(struct conf_reader *r, const struct conf_node *node, struct credentials *c)
{
	const struct conf_node *level = conf_node_member(node, "level");
	size_t index;
	c->level = c->priv ? LEVEL_AUTH_PRIV : c->auth ? LEVEL_AUTH_NO_PRIV : LEVEL_NO_AUTH_NO_PRIV;
	int err = level ? conf_node_choice(level, "a level", levels, &index, r->e) : 0;
	if (!level || err)
		return err;
	if (index > c->level)
		return conf_node_refuse(level, r->e, "%s needs %s", levels[index],
					c->auth ? "priv" : "auth");
	c->level = (enum credentials_level)index;
	return 0;
}

static int read_v3(struct conf_reader *r, const struct conf_node *node, struct credentials *c)
{
	const struct conf_node *user = conf_node_member(node, "user");
	const struct conf_node *context = conf_node_member(node, "context");
	size_t auth = 0, priv = 0;
	bool has_auth = false, has_priv = false;
	int err = refuse_with(r, node, "community", "version 3 has a user instead");
	if (!err && !user)
		return conf_node_refuse(node, r->e, "version 3 needs a user");
	err = err ? err : conf_node_text(user, 1, USER_MAX_BYTES, &c->user, r->e);
	if (!err && context)
		err = conf_node_text(context, 0, INVENTORY_NAME_MAX_BYTES, &c->context, r->e);
	err = err ? err
		  : read_pair(r, node, "auth", "an authentication protocol", auth_words, &auth,
			      &c->auth_password, &has_auth);
	err = err ? err
		  : read_pair(r, node, "priv", "a privacy protocol", priv_words, &priv,
			      &c->priv_password, &has_priv);
	if (!err && has_priv && !has_auth)
		return conf_node_refuse(node, r->e, "priv needs auth");
	c->auth = has_auth ? auths[auth] : USM_AUTH_NONE;
	c->priv = has_priv ? privs[priv] : USM_PRIV_NONE;
	return err ? err : check_level(r, node, c);
}

static int credentials_read_one(struct conf_reader *r, const struct conf_node *node, bool shipped)
{
	struct credentials *c;
	size_t index;
	int err = def_add(r, &r->credentials, node, shipped, sizeof(*c), (void **)&c);
	err = err ? err : conf_node_check_map(node, keys, r->e);
	if (err)
		return err;
	const struct conf_node *version = conf_node_member(node, "version");
	if (!version)
		return conf_node_refuse(node, r->e, "needs a version: 1, 2c or 3");
	c->user = c->context = c->community = SLICE("");
	c->auth_password = c->priv_password = SLICE("");
	err = conf_node_choice(version, "a version of SNMP", versions, &index, r->e);
	c->version = err ? SNMP_V1 : version_numbers[index];
	if (err)
		return err;
	return c->version == SNMP_V3 ? read_v3(r, node, c) : read_community(r, node, c);
}

int credentials_read(struct conf_reader *r, const struct conf_node *root, bool shipped)
{
	int err = 0;
	if (root->type != CONF_NODE_MAP)
		return conf_node_refuse(root, r->e, "takes a mapping: a name, and its credentials");
	for (const struct conf_node *n = root->first; n && !err; n = n->next)
		err = credentials_read_one(r, n, shipped);
	return err;
}
