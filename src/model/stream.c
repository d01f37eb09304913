#include "model/stream.h"

#include "base/utf8.h"

/* ---- Names ----------------------------------------------------------------------------------- */

static bool stream_has_control(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((uint8_t)text.data[i] < 0x20 || text.data[i] == 0x7f)
			return true;
	return false;
}

static int stream_name_check(const char *what, struct slice text, size_t max_bytes,
			     struct errbuf *e)
{
	if (text.len > max_bytes)
		return errbuf_set(e, ERR_INVALID, "the %s " SHOWN " has %zu bytes, more than %zu",
				  what, SHOWN_OF(text), text.len, max_bytes);
	if (!utf8_is_valid(text))
		return errbuf_set(e, ERR_INVALID, "the %s is not UTF-8", what);
	if (stream_has_control(text))
		return errbuf_set(e, ERR_INVALID, "the %s has a control character", what);
	return 0;
}

static int stream_filled_check(const char *what, struct slice text, size_t max_bytes,
			       struct errbuf *e)
{
	if (!text.len)
		return errbuf_set(e, ERR_INVALID, "the %s is empty", what);
	return stream_name_check(what, text, max_bytes, e);
}

/* Rows of chukwa_metadata that are no groups of metrics. */
static bool stream_is_special_row(struct slice datatype)
{
	return slice_equal(datatype, SLICE("chart_meta")) ||
	       slice_equal(datatype, SLICE("dashboard_meta")) ||
	       slice_equal(datatype, SLICE("widget_meta"));
}

int stream_names_check(const struct stream_names *names, struct errbuf *e)
{
	int err = stream_filled_check("source", names->source, STREAM_SOURCE_MAX_BYTES, e);
	if (!err)
		err = stream_filled_check("cluster", names->cluster, STREAM_CLUSTER_MAX_BYTES, e);
	if (!err)
		err = stream_filled_check("datatype", names->datatype, STREAM_DATATYPE_MAX_BYTES,
					  e);
	if (!err)
		err = stream_name_check("name", names->name, STREAM_NAME_MAX_BYTES, e);
	if (!err && stream_is_special_row(names->datatype))
		return errbuf_set(e, ERR_INVALID,
				  "the datatype cannot be called " SHOWN
				  ": that row of chukwa_metadata has boards",
				  SHOWN_OF(names->datatype));
	return err;
}

bool stream_names_equal(const struct stream_names *a, const struct stream_names *b)
{
	return slice_equal(a->source, b->source) && slice_equal(a->cluster, b->cluster) &&
	       slice_equal(a->datatype, b->datatype) && slice_equal(a->name, b->name);
}

static bool stream_name_fits(struct slice asked, struct slice name)
{
	return !asked.data || slice_equal(asked, name);
}

bool stream_names_fit(const struct stream_names *asked, const struct stream_names *names)
{
	return stream_name_fits(asked->source, names->source) &&
	       stream_name_fits(asked->cluster, names->cluster) &&
	       stream_name_fits(asked->datatype, names->datatype) &&
	       stream_name_fits(asked->name, names->name);
}

/* ---- Addresses ------------------------------------------------------------------------------- */

static void stream_put_escaped(struct slice text, struct buf *out)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '/')
			buf_append_text(out, "%2F");
		else if (text.data[i] == '%')
			buf_append_text(out, "%25");
		else
			buf_append_char(out, text.data[i]);
	}
	buf_append_char(out, '/');
}

void stream_address_put(const struct stream_names *names, uint64_t incarnation, struct buf *out)
{
	stream_put_escaped(names->source, out);
	stream_put_escaped(names->cluster, out);
	stream_put_escaped(names->datatype, out);
	buf_append(out, names->name.data, names->name.len);
	buf_printf(out, "@%016llx", (unsigned long long)incarnation);
}

static bool stream_unescape(struct slice text, char *to, size_t *len)
{
	*len = 0;
	for (size_t i = 0; i < text.len; i++) {
		struct slice rest = {text.data + i, text.len - i};
		char c = text.data[i];
		if (slice_starts_with(rest, SLICE("%2F")))
			c = '/';
		else if (slice_starts_with(rest, SLICE("%25")))
			c = '%';
		else if (c == '%')
			return false;
		i += text.data[i] == '%' ? 2 : 0;
		to[(*len)++] = c;
	}
	return true;
}

/* Takes a name up to the next slash off the text. */
static int stream_take_name(struct slice *text, struct arena *arena, struct slice *name)
{
	const char *slash = memchr(text->data, '/', text->len);
	if (!slash)
		return ERR_INVALID;
	*name = (struct slice){text->data, (size_t)(slash - text->data)};
	*text = (struct slice){slash + 1, text->len - name->len - 1};
	if (!name->len || !memchr(name->data, '%', name->len))
		return 0;
	char *to = arena_alloc(arena, name->len);
	if (!to)
		return ERR_LIMIT;
	bool good = stream_unescape(*name, to, &name->len);
	name->data = to;
	return good ? 0 : ERR_INVALID;
}

static bool stream_take_incarnation(struct slice *text, uint64_t *incarnation)
{
	size_t at = text->len - STREAM_INCARNATION_DIGITS - 1;
	*incarnation = 0;
	if (text->len < STREAM_INCARNATION_DIGITS + 1 || text->data[at] != '@')
		return false;
	for (size_t i = at + 1; i < text->len; i++) {
		char c = text->data[i];
		bool digit = c >= '0' && c <= '9';
		if (!digit && (c < 'a' || c > 'f'))
			return false;
		*incarnation = *incarnation << 4 | (uint64_t)(digit ? c - '0' : c - 'a' + 10);
	}
	text->len = at;
	return true;
}

int stream_address_parse(struct slice text, struct arena *arena, struct stream_names *names,
			 uint64_t *incarnation, struct errbuf *e)
{
	struct slice rest = text;
	int err = text.len ? 0 : ERR_INVALID;
	if (!err)
		err = stream_take_name(&rest, arena, &names->source);
	if (!err)
		err = stream_take_name(&rest, arena, &names->cluster);
	if (!err)
		err = stream_take_name(&rest, arena, &names->datatype);
	if (!err && !stream_take_incarnation(&rest, incarnation))
		err = ERR_INVALID;
	if (err)
		return errbuf_set(e, err,
				  "`" SHOWN "` is no address of a stream: those look like "
				  "`source/cluster/datatype/name@incarnation`",
				  SHOWN_OF(text));
	names->name = rest;
	return stream_names_check(names, e);
}
