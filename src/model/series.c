#include "model/series.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

/* Four for a byte that is escaped, and dots; a character that begins within the bound is whole. */
enum { SHOW_MAX_BYTES = 4 * SLICE_SHOWN_MAX_BYTES + 8 };

bool tenant_valid(struct slice tenant)
{
	if (tenant.len == 0 || tenant.len > TENANT_MAX_BYTES)
		return false;
	for (size_t i = 0; i < tenant.len; i++) {
		char c = tenant.data[i];
		bool word =
			(c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
		if (!word && c != '_' && c != '.' && c != '-')
			return false;
	}
	return true;
}

/* What a name holds that may not be stored, or NULL. */
static const char *content_fault(struct slice name)
{
	const uint8_t *p = (const uint8_t *)name.data;
	for (size_t i = 0; i < name.len;) {
		if (p[i] < 0x20 || p[i] == 0x7f)
			return "holds a control character";
		size_t n = utf8_length(p + i, name.len - i);
		if (n == 0)
			return "is not UTF-8";
		i += n;
	}
	return NULL;
}

/* As SHOWN, of a name that may hold anything: what would end or break the sentence is escaped. */
static const char *series_show(struct slice name, char to[SHOW_MAX_BYTES])
{
	const uint8_t *p = (const uint8_t *)name.data;
	size_t shown = (size_t)slice_shown_len(name);
	char *at = to;
	for (size_t i = 0; i < shown;) {
		size_t n = utf8_length(p + i, name.len - i);
		if (p[i] == '\n')
			at = (char *)memcpy(at, "\\n", 2) + 2;
		else if (n == 0 || p[i] < 0x20 || p[i] == 0x7f)
			at += snprintf(at, sizeof("\\x00"), "\\x%02x", p[i]);
		else
			at = (char *)memcpy(at, p + i, n) + n;
		i += n ? n : 1;
	}
	memcpy(at, name.len > shown ? "..." : "", name.len > shown ? 4 : 1);
	return to;
}

/* `what` and `called` name the text in the sentence; `called` is mostly the text itself. */
static int name_check(const char *what, struct slice called, struct slice name, size_t max_bytes,
		      struct errbuf *e)
{
	char shown[SHOW_MAX_BYTES];
	if (name.len == 0 || name.len > max_bytes)
		return errbuf_set(e, ERR_INVALID, "%s \"%s\" %s (1 to %zu bytes)", what,
				  series_show(called, shown), name.len ? "is too long" : "is empty",
				  max_bytes);
	const char *fault = content_fault(name);
	if (!fault)
		return 0;
	return errbuf_set(e, ERR_INVALID, "%s \"%s\" %s", what, series_show(called, shown), fault);
}

int metric_check(struct slice metric, struct errbuf *e)
{
	return name_check("metric", metric, metric, METRIC_MAX_BYTES, e);
}

static int tag_check(const struct tag *tag, struct errbuf *e)
{
	int err = name_check("tag key", tag->key, tag->key, TAG_KEY_MAX_BYTES, e);
	return err ? err : name_check("value of tag", tag->key, tag->value, TAG_VALUE_MAX_BYTES, e);
}

static size_t series_escaped_bytes(struct slice name)
{
	size_t n = name.len;
	for (size_t i = 0; i < name.len; i++)
		n += name.data[i] == ',' || name.data[i] == '=' || name.data[i] == '\\';
	return n;
}

/* Insertion sort: few tags, mostly in order already. */
static void sort_tags(struct tag *list, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct tag moved = list[i];
		size_t j = i;
		for (; j > 0 && slice_compare(moved.key, list[j - 1].key) < 0; j--)
			list[j] = list[j - 1];
		list[j] = moved;
	}
}

int tags_sort_and_find_fault(struct tag *list, size_t count, size_t *fault, struct errbuf *e)
{
	*fault = count;
	if (count > TAGS_MAX)
		return errbuf_set(e, ERR_INVALID, "there are more than %d tags", TAGS_MAX);
	sort_tags(list, count);
	size_t text_bytes = 0;
	for (size_t i = 0; i < count; i++) {
		*fault = i;
		int err = tag_check(&list[i], e);
		if (err)
			return err;
		if (i && slice_equal(list[i].key, list[i - 1].key))
			return errbuf_set(e, ERR_INVALID, "tag \"" SHOWN "\" stands twice",
					  SHOWN_OF(list[i].key));
		text_bytes +=
			series_escaped_bytes(list[i].key) + series_escaped_bytes(list[i].value) + 2;
	}
	*fault = count;
	if (text_bytes > TAGS_TEXT_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID,
				  "the tags take %zu bytes as text, more than the %d allowed",
				  text_bytes, TAGS_TEXT_MAX_BYTES);
	return 0;
}

int tags_sort_and_check(struct tag *list, size_t count, struct errbuf *e)
{
	size_t fault;
	return tags_sort_and_find_fault(list, count, &fault, e);
}

static void series_append_escaped(struct buf *out, struct slice name)
{
	size_t plain = 0;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];
		if (c != ',' && c != '=' && c != '\\')
			continue;
		buf_append(out, name.data + plain, i - plain);
		buf_append_char(out, '\\');
		plain = i;
	}
	buf_append(out, name.data + plain, name.len - plain);
}

int tags_encode(struct tags tags, struct buf *out)
{
	for (size_t i = 0; i < tags.count; i++) {
		if (i)
			buf_append_char(out, ',');
		series_append_escaped(out, tags.list[i].key);
		buf_append_char(out, '=');
		series_append_escaped(out, tags.list[i].value);
	}
	return out->failed ? ERR_LIMIT : 0;
}

int series_set_encode(struct slice metric, struct tags tags, struct buf *out)
{
	series_append_escaped(out, metric);
	if (tags.count)
		buf_append_char(out, ',');
	return tags_encode(tags, out);
}

/* One escaped name up to an unescaped `stop` or `,` or the end; *at is left on the stop. The name
 * is put into *room, which is never longer than the text, and *room stands after it then. */
static int decode_name(struct slice text, size_t *at, char stop, char **room, struct slice *name)
{
	char *copy = *room;
	size_t n = 0;
	for (; *at < text.len; (*at)++) {
		char c = text.data[*at];
		if (c == stop || c == ',')
			break;
		if (c == '=')
			return ERR_INVALID;
		if (c == '\\') {
			if (++*at == text.len)
				return ERR_INVALID;
			c = text.data[*at];
			if (c != ',' && c != '=' && c != '\\')
				return ERR_INVALID;
		}
		copy[n++] = c;
	}
	*name = (struct slice){copy, n};
	*room += n;
	return n ? 0 : ERR_INVALID;
}

/* At least as many as there are, but for more than TAGS_MAX. */
static size_t tags_most(struct slice text)
{
	size_t most = 1;
	for (size_t i = 0; i < text.len && most < TAGS_MAX; i++)
		most += text.data[i] == ',';
	return most;
}

static int decode_tags_at(struct slice text, size_t at, struct arena *arena, struct tags *tags)
{
	size_t most = tags_most(text), count = 0;
	struct tag *list = arena_alloc(arena, most * sizeof(*list));
	char *room = arena_alloc(arena, text.len + 1);
	if (!list || !room)
		return ERR_LIMIT;
	while (at < text.len) {
		if (count == most)
			return ERR_INVALID;
		struct tag *tag = &list[count];
		int err = decode_name(text, &at, '=', &room, &tag->key);
		if (err)
			return err;
		if (at == text.len || text.data[at] != '=')
			return ERR_INVALID;
		at++;
		err = decode_name(text, &at, ',', &room, &tag->value);
		if (err)
			return err;
		if (count && slice_compare(list[count - 1].key, tag->key) >= 0)
			return ERR_INVALID;
		count++;
		if (at < text.len && ++at == text.len)
			return ERR_INVALID;
	}
	*tags = (struct tags){list, count};
	return 0;
}

int tags_decode(struct slice text, struct arena *arena, struct tags *tags)
{
	return decode_tags_at(text, 0, arena, tags);
}

struct series_set series_set_split(struct slice text)
{
	size_t at = 0;
	while (at < text.len && text.data[at] != ',')
		at += text.data[at] == '\\' && at + 1 < text.len ? 2 : 1;
	return (struct series_set){{text.data, at}, {text.data + at, text.len - at}};
}

bool series_set_equal(struct series_set a, struct series_set b)
{
	return slice_equal(a.metric, b.metric) && slice_equal(a.tags, b.tags);
}

int series_set_append(struct series_set set, struct buf *out)
{
	int err = buf_append(out, set.metric.data, set.metric.len);
	return err ? err : buf_append(out, set.tags.data, set.tags.len);
}

int series_set_decode(struct series_set set, struct arena *arena, struct slice *metric,
		      struct tags *tags)
{
	size_t at = 0;
	char *room = arena_alloc(arena, set.metric.len + 1);
	int err = room ? decode_name(set.metric, &at, ',', &room, metric) : ERR_LIMIT;
	if (err)
		return err;
	bool lone_comma = set.tags.len == 1;
	if (at < set.metric.len || lone_comma)
		return ERR_INVALID;
	return decode_tags_at(set.tags, set.tags.len ? 1 : 0, arena, tags);
}

struct slice tags_find(struct tags tags, struct slice key)
{
	for (size_t i = 0; i < tags.count; i++) {
		if (slice_equal(tags.list[i].key, key))
			return tags.list[i].value;
	}
	return (struct slice){NULL, 0};
}
