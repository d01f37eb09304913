#include "wire/sentry_envelope.h"

#include "base/mem.h"
#include "wire/number.h"

enum { UUID_DASHED_BYTES = 36 };

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Up to the next newline, which is taken off too, or to the end. */
static struct slice envelope_take_line(struct slice *rest)
{
	const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
	struct slice line = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
	size_t taken = line.len + (end != NULL);
	if (taken)
		*rest = (struct slice){rest->data + taken, rest->len - taken};
	return line;
}

static void envelope_skip_blank_lines(struct slice *rest)
{
	size_t blank = 0;
	while (blank < rest->len && (rest->data[blank] == '\n' || rest->data[blank] == '\r'))
		blank++;
	if (blank)
		*rest = (struct slice){rest->data + blank, rest->len - blank};
}

static int envelope_parse_headers(struct slice line, struct arena *arena,
				  const struct json **headers, struct errbuf *e)
{
	struct json *root;
	if (line.len > SENTRY_HEADER_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "the line has more than %d bytes",
				  SENTRY_HEADER_MAX_BYTES);
	int err = json_parse_lax(line, arena, &root, e);
	if (err)
		return err;
	if (root->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "it is no object of JSON");
	if (root->mended == JSON_CUT)
		return errbuf_set(e, ERR_INVALID, "it is cut off before its end");
	*headers = root;
	return 0;
}

/* ---- Envelopes ------------------------------------------------------------------------------- */

int sentry_envelope_begin(struct sentry_envelope *envelope, struct slice bytes, struct arena *arena,
			  struct errbuf *e)
{
	*envelope = (struct sentry_envelope){.rest = bytes};
	if (!bytes.len)
		return errbuf_set(e, ERR_INVALID, "the envelope is empty");
	struct slice line = envelope_take_line(&envelope->rest);
	int err = envelope_parse_headers(line, arena, &envelope->headers, e);
	return err ? errbuf_prefix(e, err, "headers of the envelope") : 0;
}

/* -1: it has none. */
static int envelope_length_of(const struct json *headers, int64_t *length, struct errbuf *e)
{
	const struct json *member = json_member(headers, "length");
	*length = -1;
	if (!member || member->type == JSON_T_NULL)
		return 0;
	int err = json_get_i64(headers, "length", length, e);
	if (!err && *length < 0)
		err = errbuf_set(e, ERR_INVALID, "length is below 0");
	return err;
}

static int envelope_take_payload(struct slice *rest, int64_t length, struct sentry_item *item,
				 struct errbuf *e)
{
	struct slice *payload = &item->payload;
	if (length < 0) {
		*payload = envelope_take_line(rest);
		return 0;
	}
	item->cut = (uint64_t)length > rest->len;
	*payload = (struct slice){rest->data, item->cut ? rest->len : (size_t)length};
	if (item->cut)
		return errbuf_set(e, ERR_INVALID,
				  "its payload has %zu bytes, and its length says %lld", rest->len,
				  (long long)length);
	if (payload->len == rest->len) {
		*rest = (struct slice){NULL, 0};
		return 0;
	}
	if (rest->data[payload->len] != '\n')
		return errbuf_set(e, ERR_INVALID, "after its payload of %lld bytes is no newline",
				  (long long)length);
	*rest = (struct slice){rest->data + payload->len + 1, rest->len - payload->len - 1};
	return 0;
}

static int envelope_read_item(struct sentry_envelope *envelope, struct arena *arena,
			      struct sentry_item *item, struct errbuf *e)
{
	int64_t length;
	struct slice line = envelope_take_line(&envelope->rest);
	int err = envelope_parse_headers(line, arena, &item->headers, e);
	if (err)
		return err;
	err = envelope_length_of(item->headers, &length, e);
	if (err)
		return err;
	const struct json *type = json_member(item->headers, "type");
	if (type && type->type == JSON_T_STRING)
		item->type = type->text;
	return envelope_take_payload(&envelope->rest, length, item, e);
}

int sentry_envelope_next(struct sentry_envelope *envelope, struct arena *arena,
			 struct sentry_item *item, struct errbuf *e)
{
	*item = (struct sentry_item){.headers = NULL};
	envelope_skip_blank_lines(&envelope->rest);
	if (!envelope->rest.len)
		return ERR_NOT_FOUND;
	if (envelope->item_count == SENTRY_ITEMS_MAX)
		return errbuf_set(e, ERR_LIMIT, "the envelope has more than %d items",
				  SENTRY_ITEMS_MAX);
	int err = envelope_read_item(envelope, arena, item, e);
	if (err)
		return errbuf_prefix(e, err, "item %zu of the envelope", envelope->item_count);
	envelope->item_count++;
	return 0;
}

/* ---- Ids ------------------------------------------------------------------------------------- */

static bool envelope_is_dash(struct slice text, size_t at)
{
	return text.len == UUID_DASHED_BYTES && (at == 8 || at == 13 || at == 18 || at == 23);
}

bool sentry_id_parse(struct slice text, char id[SENTRY_ID_BYTES])
{
	size_t count = 0;
	if (text.len != SENTRY_ID_BYTES && text.len != UUID_DASHED_BYTES)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		int digit = number_hex_digit(text.data[i]);
		if (envelope_is_dash(text, i)) {
			if (text.data[i] != '-')
				return false;
			continue;
		}
		if (digit < 0)
			return false;
		id[count++] = "0123456789abcdef"[digit];
	}
	ASSERT(count == SENTRY_ID_BYTES);
	return true;
}
