#include "wire/snmp_index.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "wire/number.h"

int index_read(struct slice index, struct index_arcs *arcs)
{
	arcs->count = 0;
	if (index.len && ((uint8_t)index.data[index.len - 1] & 0x80))
		return ERR_INVALID;
	while (index.len) {
		if (arcs->count == OID_ARCS_MAX || !oid_next_arc(&index, &arcs->list[arcs->count]))
			return ERR_INVALID;
		arcs->count++;
	}
	return arcs->count ? 0 : ERR_INVALID;
}

static int parse_quoted(struct slice text, struct index_arcs *arcs)
{
	size_t len = text.len - 2;
	if (len >= OID_ARCS_MAX)
		return ERR_INVALID;
	arcs->list[arcs->count++] = (uint32_t)len;
	for (size_t i = 1; i <= len; i++)
		arcs->list[arcs->count++] = (uint8_t)text.data[i];
	return 0;
}

static bool is_quoted(struct slice text)
{
	return text.len > 2 && strchr("'\"", text.data[0]) &&
	       text.data[text.len - 1] == text.data[0];
}

int index_parse(struct slice text, struct index_arcs *arcs)
{
	const char *at = text.data, *end = at + text.len;
	arcs->count = 0;
	if (is_quoted(text))
		return parse_quoted(text, arcs);
	while (at < end) {
		const char *dot = memchr(at, '.', (size_t)(end - at));
		const char *stop = dot ? dot : end;
		uint64_t arc;
		if (arcs->count == OID_ARCS_MAX || number_parse_u64(at, stop, &arc) ||
		    arc > UINT32_MAX || stop + 1 == end)
			return ERR_INVALID;
		arcs->list[arcs->count++] = (uint32_t)arc;
		at = stop + 1;
	}
	return arcs->count ? 0 : ERR_INVALID;
}

enum { ARC_TEXT_BYTES = 11 }; /* ten digits and what stands between */

struct slice index_dotted(const struct index_arcs *arcs, struct arena *arena)
{
	size_t len = 0, cap = arcs->count * ARC_TEXT_BYTES + 1;
	char *text = arena_alloc(arena, cap);
	for (size_t i = 0; text && i < arcs->count; i++)
		len += (size_t)snprintf(text + len, cap - len, i ? ".%u" : "%u", arcs->list[i]);
	return (struct slice){text, text ? len : 0};
}

/* ---- Strings --------------------------------------------------------------------------------- */

static int snmp_index_decode_bytes(const struct index_arcs *arcs, size_t at, size_t len,
				   struct arena *arena, struct slice *text)
{
	char *bytes = arena_alloc(arena, len + 1);
	if (!bytes)
		return ERR_LIMIT;
	for (size_t i = 0; i < len; i++) {
		if (arcs->list[at + i] > UINT8_MAX)
			return ERR_INVALID;
		bytes[i] = (char)arcs->list[at + i];
	}
	*text = (struct slice){bytes, len};
	return 0;
}

int index_string(const struct index_arcs *arcs, size_t *at, struct arena *arena, struct slice *text)
{
	if (*at >= arcs->count || arcs->list[*at] > arcs->count - *at - 1)
		return ERR_INVALID;
	size_t len = arcs->list[*at];
	int err = snmp_index_decode_bytes(arcs, *at + 1, len, arena, text);
	if (!err)
		*at += 1 + len;
	return err;
}

int index_last_string(const struct index_arcs *arcs, size_t at, struct arena *arena,
		      struct slice *text)
{
	if (at >= arcs->count)
		return ERR_INVALID;
	/* "For a fixed-length or IMPLIED string there is no length": the length, where there is
	 * one, is exactly that of the rest. */
	if (arcs->list[at] == arcs->count - at - 1)
		return index_string(arcs, &at, arena, text);
	return snmp_index_decode_bytes(arcs, at, arcs->count - at, arena, text);
}

/* ---- TmnxPortID ------------------------------------------------------------------------------ */

/* From the highest bit on:
 *
 *     000 slot:4 mda:4 port:6 zero:15        physical port
 *     001 slot:4 mda:4 port:6 channel:15     channel of one
 *     0100 zeros:19 id:9                     virtual port
 *     0101 zeros:18 id:10                    link aggregation group
 *     0x1e000000                             no port at all */
enum {
	PORT_INVALID = 0x1e000000,
	PORT_VIRTUAL = 0x4,
	PORT_LAG = 0x5,
	VIRTUAL_ID_MAX = 0x1ff,
	LAG_ID_MAX = 0x3ff,
};

void index_port_text(uint32_t port, char text[PORT_TEXT_BYTES])
{
	unsigned slot = port >> 25 & 0xf, mda = port >> 21 & 0xf, number = port >> 15 & 0x3f;
	unsigned channel = port & 0x7fff, id = port & 0x0fffffff;
	if (port == PORT_INVALID)
		snprintf(text, PORT_TEXT_BYTES, "invalid-portid");
	else if (port >> 28 == PORT_VIRTUAL && id <= VIRTUAL_ID_MAX)
		snprintf(text, PORT_TEXT_BYTES, "virtual-%u", id);
	else if (port >> 28 == PORT_LAG && id <= LAG_ID_MAX)
		snprintf(text, PORT_TEXT_BYTES, "lag-%u", id);
	else if (port >> 29 == 0 && channel == 0)
		snprintf(text, PORT_TEXT_BYTES, "%u/%u/%u", slot, mda, number);
	else if (port >> 29 == 1)
		snprintf(text, PORT_TEXT_BYTES, "%u/%u/%u.%u", slot, mda, number, channel);
	else
		snprintf(text, PORT_TEXT_BYTES, "%u", port);
}

/* ---- Octets ---------------------------------------------------------------------------------- */

/* Length of the character at p if it may stand in a name; 0: it is to be written out. C1 controls
 * are two bytes, 0xc2 and 0x80 to 0x9f. */
static size_t plain_length(const uint8_t *p, size_t left)
{
	size_t n = utf8_length(p, left);
	if (n == 1 && (p[0] < 0x20 || p[0] == 0x7f))
		return 0;
	return n == 2 && p[0] == 0xc2 && p[1] < 0xa0 ? 0 : n;
}

static bool all_plain(const uint8_t *p, size_t len)
{
	size_t n;
	for (size_t at = 0; at < len; at += n)
		if (!(n = plain_length(p + at, len - at)))
			return false;
	return true;
}

static const char hex_digits[] = "0123456789abcdef";

static struct slice write_out(const uint8_t *p, size_t len, struct arena *arena)
{
	char *text = arena_alloc(arena, len * 4 + 1), *to = text;
	for (size_t at = 0; text && at < len;) {
		size_t n = plain_length(p + at, len - at);
		if (n) {
			memcpy(to, p + at, n);
			to += n;
			at += n;
			continue;
		}
		*to++ = '\\';
		*to++ = 'x';
		*to++ = hex_digits[p[at] >> 4];
		*to++ = hex_digits[p[at++] & 0xf];
	}
	return (struct slice){text, (size_t)(to - text)};
}

struct slice octets_text(struct slice bytes, struct arena *arena)
{
	while (bytes.len && bytes.data[bytes.len - 1] == 0)
		bytes.len--;
	if (all_plain((const uint8_t *)bytes.data, bytes.len))
		return arena_copy(arena, bytes);
	return write_out((const uint8_t *)bytes.data, bytes.len, arena);
}

struct slice octets_colons(struct slice bytes, struct arena *arena)
{
	char *text = arena_alloc(arena, bytes.len * 3 + 1), *to = text;
	for (size_t i = 0; text && i < bytes.len; i++) {
		if (i)
			*to++ = ':';
		*to++ = hex_digits[(uint8_t)bytes.data[i] >> 4];
		*to++ = hex_digits[(uint8_t)bytes.data[i] & 0xf];
	}
	return (struct slice){text, (size_t)(to - text)};
}

/* ---- Names ----------------------------------------------------------------------------------- */

int index_sap_name(const struct index_arcs *arcs, struct arena *arena, struct slice *name)
{
	char port[PORT_TEXT_BYTES];
	if (arcs->count != 3)
		return ERR_INVALID;
	index_port_text(arcs->list[1], port);
	const char *text = arena_printf(arena, "%u-%s-%u", arcs->list[0], port, arcs->list[2]);
	*name = (struct slice){text, text ? strlen(text) : 0};
	return text ? 0 : ERR_LIMIT;
}

int index_lsp_name(const struct index_arcs *arcs, struct arena *arena, struct slice *name)
{
	int err = index_last_string(arcs, 0, arena, name);
	if (!err)
		*name = octets_text(*name, arena);
	return !err && !name->data ? ERR_LIMIT : err;
}
