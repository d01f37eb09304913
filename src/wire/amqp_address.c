#include "wire/amqp_address.h"

#include "wire/number.h"
#include "wire/percent.h"

/* Cuts the text before `at`; what stands behind it. `at` NULL: nothing does. */
static struct slice amqp_address_cut(struct slice *text, const char *at)
{
	if (!at)
		return (struct slice){NULL, 0};
	const char *end = text->data + text->len;
	text->len = (size_t)(at - text->data);
	return (struct slice){at + 1, (size_t)(end - at - 1)};
}

static const char *amqp_address_find(struct slice text, char c)
{
	return text.len ? memchr(text.data, c, text.len) : NULL;
}

/* Whether one of these characters, which have a meaning, stands where it has none. */
static bool amqp_address_has(struct slice text, const char *characters)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] && strchr(characters, text.data[i]))
			return true;
	return false;
}

/* A text that stays as preset where there is none. */
static int amqp_address_set(struct slice text, struct arena *arena, const char **to,
			    const char **reason)
{
	if (!text.data)
		return 0;
	int err = percent_decode(text, false, arena, &text);
	if (!err && amqp_address_find(text, 0))
		err = ERR_INVALID;
	if (err == ERR_INVALID)
		*reason = "it has a NUL, or a % that is not followed by two hexadecimal digits";
	if (err)
		return err;
	if (text.len > AMQP_TEXT_MAX_BYTES) {
		*reason = "its name, virtual host, user or password has more than 255 bytes";
		return ERR_INVALID;
	}
	*to = arena_copy(arena, text).data;
	return *to ? 0 : ERR_LIMIT;
}

static int amqp_address_set_port(struct slice text, int *port)
{
	uint64_t number;
	if (!text.data)
		return 0;
	if (!text.len || *text.data < '0' || *text.data > '9' ||
	    number_parse_u64(text.data, text.data + text.len, &number) || !number ||
	    number > UINT16_MAX)
		return ERR_INVALID;
	*port = (int)number;
	return 0;
}

/* HOST, HOST:PORT or [HOST]:PORT */
static int amqp_address_set_place(struct slice text, struct arena *arena,
				  struct amqp_address *address, const char **reason)
{
	struct slice host = text, port;
	if (text.len && *text.data == '[') {
		host = (struct slice){text.data + 1, text.len - 1};
		port = amqp_address_cut(&host, amqp_address_find(host, ']'));
		*reason = "behind the ] of its name stands something else than a port";
		if (!port.data || (port.len && *port.data != ':'))
			return ERR_INVALID;
		port = port.len ? (struct slice){port.data + 1, port.len - 1}
				: (struct slice){NULL, 0};
	} else {
		port = amqp_address_cut(&host, amqp_address_find(host, ':'));
	}
	*reason = "it has no name";
	if (!host.len)
		return ERR_INVALID;
	*reason = "its port is not a number from 1 to 65535";
	int err = amqp_address_set_port(port, &address->port);
	return err ? err : amqp_address_set(host, arena, &address->host, reason);
}

/* An @, a : or a / may stand in a password that is not encoded. Whatever would then be taken for
 * something else, and perhaps be shown, is refused. */
int amqp_address_parse(struct slice text, struct arena *arena, struct amqp_address *address,
		       const char **reason)
{
	static const struct slice scheme = {"amqp://", 7};
	*reason = "it does not begin with amqp://";
	if (!slice_starts_with(text, scheme))
		return ERR_INVALID;
	*address = (struct amqp_address){
		.port = AMQP_PORT, .vhost = "/", .user = "guest", .password = "guest"};
	struct slice place = {text.data + scheme.len, text.len - scheme.len}, password;
	struct slice vhost = amqp_address_cut(&place, amqp_address_find(place, '/'));
	struct slice user = place;
	place = amqp_address_cut(&user, amqp_address_find(user, '@'));
	if (!place.data) {
		place = user;
		user = (struct slice){NULL, 0};
	}
	password = amqp_address_cut(&user, amqp_address_find(user, ':'));
	*reason = "it has an @, /, : ? or # in its user, password or virtual host; these are "
		  "written %40, %2F, %3A, %3F and %23";
	if (amqp_address_has(user, "?#") || amqp_address_has(password, ":?#") ||
	    amqp_address_has(place, "@?#") || amqp_address_has(vhost, "@/?#"))
		return ERR_INVALID;
	*reason = "its virtual host is empty; without the last / it is /";
	if (vhost.data && !vhost.len)
		return ERR_INVALID;
	int err = amqp_address_set_place(place, arena, address, reason);
	err = err ? err : amqp_address_set(vhost, arena, &address->vhost, reason);
	err = err ? err : amqp_address_set(user, arena, &address->user, reason);
	return err ? err : amqp_address_set(password, arena, &address->password, reason);
}
