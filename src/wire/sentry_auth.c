#include "wire/sentry_auth.h"

#include "wire/number.h"

/* ---- The header ------------------------------------------------------------------------------ */

static struct slice auth_trim(struct slice text)
{
	while (text.len && (*text.data == ' ' || *text.data == '\t'))
		text = (struct slice){text.data + 1, text.len - 1};
	while (text.len && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
		text.len--;
	return text;
}

static bool auth_strip(struct slice *text, struct slice prefix)
{
	if (text->len < prefix.len || memcmp(text->data, prefix.data, prefix.len) != 0)
		return false;
	*text = (struct slice){text->data + prefix.len, text->len - prefix.len};
	return true;
}

static struct slice auth_take_item(struct slice *rest)
{
	const char *comma = memchr(rest->data, ',', rest->len);
	struct slice item = {rest->data, comma ? (size_t)(comma - rest->data) : rest->len};
	size_t taken = item.len + (comma != NULL);
	*rest = (struct slice){rest->data + taken, rest->len - taken};
	return auth_trim(item);
}

struct slice sentry_auth_key(struct slice header)
{
	struct slice rest = auth_trim(header);
	if (!rest.len ||
	    (!auth_strip(&rest, SLICE("Sentry ")) && !auth_strip(&rest, SLICE("sentry "))))
		return (struct slice){NULL, 0};
	while (rest.len) {
		struct slice item = auth_take_item(&rest);
		if (auth_strip(&item, SLICE("sentry_key=")))
			return item;
	}
	return (struct slice){NULL, 0};
}

/* ---- DSN ------------------------------------------------------------------------------------- */

bool sentry_dsn_parse(struct slice text, struct sentry_dsn *dsn)
{
	const char *scheme = text.len ? memmem(text.data, text.len, "://", 3) : NULL;
	if (!scheme)
		return false;
	const char *end = text.data + text.len;
	const char *key = scheme + 3;
	const char *at = memchr(key, '@', (size_t)(end - key));
	const char *slash = at ? memrchr(at, '/', (size_t)(end - at)) : NULL;
	if (!slash || number_parse_u64(slash + 1, end, &dsn->project))
		return false;
	const char *colon = memchr(key, ':', (size_t)(at - key));
	dsn->key = (struct slice){key, (size_t)((colon ? colon : at) - key)};
	return dsn->key.len > 0;
}
