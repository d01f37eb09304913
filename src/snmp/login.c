#include "snmp/private.h"

uint8_t login_flags(const struct snmp_login *login)
{
	static const uint8_t flags[] = {0, USM_AUTH, USM_AUTH | USM_PRIV};
	return flags[login->level];
}

static int check_password(struct slice password, const char *what, struct errbuf *e)
{
	if (password.len >= USM_PASSWORD_MIN_BYTES && password.len <= USM_PASSWORD_MAX_BYTES)
		return 0;
	return errbuf_set(e, ERR_INVALID, "the %s password has %zu characters; it needs %d to %d",
			  what, password.len, USM_PASSWORD_MIN_BYTES, USM_PASSWORD_MAX_BYTES);
}

static int check_usm(const struct snmp_credentials *c, struct errbuf *e)
{
	if (c->user.len > USM_USER_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "the user's name is longer than %d characters",
				  USM_USER_MAX_BYTES);
	if (c->context.len > USM_CONTEXT_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "the context is longer than %d characters",
				  USM_CONTEXT_MAX_BYTES);
	if (c->engine_id.len && (c->engine_id.len < USM_ENGINE_ID_MIN_BYTES ||
				 c->engine_id.len > USM_ENGINE_ID_MAX_BYTES))
		return errbuf_set(e, ERR_INVALID, "an engine id has %d to %d bytes, not %zu",
				  USM_ENGINE_ID_MIN_BYTES, USM_ENGINE_ID_MAX_BYTES,
				  c->engine_id.len);
	if (c->level >= SNMP_AUTH_NO_PRIV && c->auth == USM_AUTH_NONE)
		return errbuf_set(e, ERR_INVALID, "the level needs an authentication protocol");
	if (c->level >= SNMP_AUTH_PRIV && c->priv == USM_PRIV_NONE)
		return errbuf_set(e, ERR_INVALID, "the level needs a privacy protocol");
	int err = c->level >= SNMP_AUTH_NO_PRIV
			  ? check_password(c->auth_password, "authentication", e)
			  : 0;
	if (!err && c->level >= SNMP_AUTH_PRIV)
		err = check_password(c->priv_password, "privacy", e);
	return err;
}

static int login_check(const struct snmp_credentials *c, struct errbuf *e)
{
	if (c->version == SNMP_V3)
		return check_usm(c, e);
	if (c->community.len > SNMP_COMMUNITY_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "the community is longer than %d characters",
				  SNMP_COMMUNITY_MAX_BYTES);
	return 0;
}

static struct slice login_copy(char **to, struct slice from)
{
	struct slice copied = {*to, from.len};
	if (from.len)
		memcpy(*to, from.data, from.len);
	*to += from.len;
	return copied;
}

static void make_keys(const struct snmp_credentials *c, struct snmp_login *login)
{
	struct usm_crypto *crypto = usm_crypto_new();
	if (c->level >= SNMP_AUTH_NO_PRIV)
		usm_password_key(crypto, c->auth, c->auth_password, &login->auth_key);
	if (c->level >= SNMP_AUTH_PRIV)
		usm_password_key(crypto, c->auth, c->priv_password, &login->priv_key);
	usm_crypto_free(crypto);
}

int snmp_login_new(const struct snmp_credentials *c, struct snmp_login **out, struct errbuf *e)
{
	int err = login_check(c, e);
	if (err)
		return err;
	size_t bytes = c->community.len + c->user.len + c->context.len + c->engine_id.len;
	struct snmp_login *login = mem_zalloc(sizeof(*login) + bytes);
	char *at = login->memory;
	atomic_init(&login->holders, 1);
	login->version = c->version;
	login->community = login_copy(&at, c->community);
	login->user = login_copy(&at, c->user);
	login->context = login_copy(&at, c->context);
	login->engine_id = login_copy(&at, c->engine_id);
	if (c->version == SNMP_V3) {
		login->level = c->level;
		login->auth = c->level >= SNMP_AUTH_NO_PRIV ? c->auth : USM_AUTH_NONE;
		login->priv = c->level >= SNMP_AUTH_PRIV ? c->priv : USM_PRIV_NONE;
		make_keys(c, login);
	}
	*out = login;
	return 0;
}

struct snmp_login *snmp_login_hold(struct snmp_login *login)
{
	atomic_fetch_add_explicit(&login->holders, 1, memory_order_relaxed);
	return login;
}

void snmp_login_release(struct snmp_login *login)
{
	if (login && atomic_fetch_sub_explicit(&login->holders, 1, memory_order_acq_rel) == 1)
		mem_free(login);
}
