#include "api/opentsdb/uri.h"

#include "api/opentsdb/filter.h"
#include "wire/json.h"
#include "wire/number.h"

static const char no_tsuids[] =
	"%s is not supported: series have no such ids, a metric and its tags "
	"name them";

bool opentsdb_uri_asked(const struct http_request *request)
{
	return http_param(request, "m").data || http_param(request, "tsuids").data ||
	       http_param(request, "tsuid").data;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* What stands before the next `at` that is in no brackets, which is passed; false: nothing is left.
 */
static bool uri_next(struct slice *rest, char at, struct slice *part)
{
	unsigned depth = 0;
	size_t len = 0;
	if (!rest->data)
		return false;
	for (; len < rest->len && (depth || rest->data[len] != at); len++) {
		char c = rest->data[len];
		depth += c == '{' || c == '(';
		depth -= depth && (c == '}' || c == ')');
	}
	*part = (struct slice){rest->data, len};
	bool more = len < rest->len;
	*rest = more ? (struct slice){rest->data + len + 1, rest->len - len - 1}
		     : (struct slice){NULL, 0};
	return true;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* `host=a,os=*` of one pair of braces: members of `tags`, or filters. */
static int write_pairs(struct json_writer *writer, struct slice pairs, bool as_tags, bool group_by,
		       struct errbuf *e)
{
	struct slice pair;
	while (pairs.len && uri_next(&pairs, ',', &pair)) {
		const char *is = memchr(pair.data, '=', pair.len);
		if (!is)
			return errbuf_set(e, ERR_INVALID,
					  "\"" SHOWN "\" is not of the form tag=value",
					  SHOWN_OF(pair));
		struct slice key = {pair.data, (size_t)(is - pair.data)};
		struct slice value = {is + 1, pair.len - key.len - 1};
		if (as_tags) {
			json_write_key_slice(writer, key);
			json_write_string(writer, value);
			continue;
		}
		struct slice type = opentsdb_filter_type(&value);
		json_write_object_begin(writer);
		json_put_string(writer, "type", type);
		json_put_string(writer, "tagk", key);
		json_put_string(writer, "filter", value);
		json_put_bool(writer, "groupBy", group_by);
		json_write_object_end(writer);
	}
	return 0;
}

/* `{...}` at the front of what stands behind a metric is taken off. */
static int next_braces(struct slice *rest, struct slice *inner, struct errbuf *e)
{
	struct slice braces;
	*inner = (struct slice){rest->data, 0};
	if (!rest->len)
		return 0;
	const char *end = rest->data + rest->len;
	const char *close = memchr(rest->data, '}', rest->len);
	/* An expression may have braces, too; those of tags are followed by others, or by nothing.
	 */
	while (close && close + 1 < end && close[1] != '{')
		close = memchr(close + 1, '}', (size_t)(end - close - 1));
	if (rest->data[0] != '{' || !close)
		return errbuf_set(e, ERR_INVALID, "\"" SHOWN "\" does not end with }",
				  SHOWN_OF(*rest));
	braces = (struct slice){rest->data, (size_t)(close + 1 - rest->data)};
	*inner = (struct slice){braces.data + 1, braces.len - 2};
	*rest = (struct slice){braces.data + braces.len, rest->len - braces.len};
	return 0;
}

/* `metric`, `metric{tags}` or, of filters, `metric{tags}{tags that nothing is grouped by}`. */
static int write_metric(struct json_writer *writer, struct slice text, bool as_tags,
			struct errbuf *e)
{
	const char *brace = memchr(text.data, '{', text.len);
	size_t len = brace ? (size_t)(brace - text.data) : text.len;
	struct slice rest = {text.data + len, text.len - len}, tags, others;
	json_put_string(writer, "metric", (struct slice){text.data, len});
	int err = next_braces(&rest, &tags, e);
	if (!err && as_tags && rest.len)
		err = errbuf_set(e, ERR_INVALID, "\"" SHOWN "\" has a second pair of braces",
				 SHOWN_OF(text));
	if (!err)
		err = next_braces(&rest, &others, e);
	if (!err && rest.len)
		err = errbuf_set(e, ERR_INVALID, "\"" SHOWN "\" has a third pair of braces",
				 SHOWN_OF(text));
	if (err)
		return err;
	json_write_key(writer, as_tags ? "tags" : "filters");
	if (as_tags)
		json_write_object_begin(writer);
	else
		json_write_array_begin(writer);
	err = write_pairs(writer, tags, as_tags, true, e);
	if (!err)
		err = write_pairs(writer, others, as_tags, false, e);
	if (as_tags)
		json_write_object_end(writer);
	else
		json_write_array_end(writer);
	return err;
}

/* ---- One query ------------------------------------------------------------------------------- */

static int uri_write_number(struct json_writer *writer, const char *key, struct slice text,
			    struct errbuf *e)
{
	uint64_t number;
	if (!text.len)
		return 0;
	if (number_parse_u64(text.data, text.data + text.len, &number))
		return errbuf_set(e, ERR_INVALID, "%s \"" SHOWN "\" is not a whole number", key,
				  SHOWN_OF(text));
	json_put_u64(writer, key, number);
	return 0;
}

/* `counter,MAX,RESET`, `dropcounter`; some clients write true and false. */
static int write_rate_options(struct json_writer *writer, struct slice text, struct errbuf *e)
{
	struct slice rest = text, kind = {text.data, 0}, max = kind, reset = kind, more;
	bool any = uri_next(&rest, ',', &kind) && uri_next(&rest, ',', &max) &&
		   uri_next(&rest, ',', &reset);
	if (any && uri_next(&rest, ',', &more))
		return errbuf_set(e, ERR_INVALID, "rate{" SHOWN "} has more than three options",
				  SHOWN_OF(text));
	bool drops = slice_equal(kind, SLICE("dropcounter"));
	bool counts =
		drops || slice_equal(kind, SLICE("counter")) || slice_equal(kind, SLICE("true"));
	if (!counts && kind.len && !slice_equal(kind, SLICE("false")))
		return errbuf_set(e, ERR_INVALID,
				  "rate{" SHOWN "} begins with neither counter nor dropcounter",
				  SHOWN_OF(text));
	json_write_key(writer, "rateOptions");
	json_write_object_begin(writer);
	json_put_bool(writer, "counter", counts);
	json_put_bool(writer, "dropResets", drops);
	int err = uri_write_number(writer, "counterMax", max, e);
	if (!err)
		err = uri_write_number(writer, "resetValue", reset, e);
	json_write_object_end(writer);
	return err;
}

/* What stands between the aggregator and the metric. */
static int write_part(struct json_writer *writer, struct slice part, struct errbuf *e)
{
	bool rate = slice_starts_with(part, SLICE("rate"));
	if (part.len && part.data[0] >= '0' && part.data[0] <= '9') {
		json_put_string(writer, "downsample", part);
	} else if (rate && part.len == 4) {
		json_put_bool(writer, "rate", true);
	} else if (rate && part.data[4] == '{' && part.data[part.len - 1] == '}') {
		json_put_bool(writer, "rate", true);
		return write_rate_options(writer, (struct slice){part.data + 5, part.len - 6}, e);
	} else if (slice_equal(part, SLICE("explicit_tags"))) {
		json_put_bool(writer, "explicitTags", true);
	} else if (!slice_starts_with(part, SLICE("rollup_"))) { /* what answers is chosen here */
		return errbuf_set(e, ERR_INVALID,
				  "\"" SHOWN "\" is none of an interval (1m-avg), rate, "
				  "rate{counter}, explicit_tags",
				  SHOWN_OF(part));
	}
	return 0;
}

/* `sum:1m-avg:rate:cpu{host=*}` */
static int write_query(struct json_writer *writer, struct slice text, struct errbuf *e)
{
	struct slice rest = text, part, next;
	if (!uri_next(&rest, ':', &part) || !uri_next(&rest, ':', &next))
		return errbuf_set(e, ERR_INVALID,
				  "\"" SHOWN "\" is not of the form aggregator:metric{tag=value}",
				  SHOWN_OF(text));
	json_write_object_begin(writer);
	json_put_string(writer, "aggregator", part);
	int err = 0;
	for (part = next; !err && uri_next(&rest, ':', &next); part = next)
		err = write_part(writer, part, e);
	if (!err)
		err = write_metric(writer, part, false, e);
	json_write_object_end(writer);
	return err;
}

/* ---- The address ----------------------------------------------------------------------------- */

/* Its parameters, and the members that say the same. */
static const struct {
	const char *param, *member;
} flags[] = {
	{"ms", "msResolution"},
	{"msResolution", "msResolution"},
	{"show_query", "showQuery"},
	{"show_summary", "showSummary"},
	{"show_stats", "showStats"},
	{"show_tsuids", "showTSUIDs"},
	{"no_annotations", "noAnnotations"},
	{"global_annotations", "globalAnnotations"},
	{"delete", "delete"},
	{"use_calendar", "useCalendar"},
};

/* A flag by itself is yes, as there. */
static void write_flags(struct json_writer *writer, const struct http_request *request)
{
	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		struct slice text = http_param(request, flags[i].param);
		if (!text.data)
			continue;
		if (!text.len || slice_equal(text, SLICE("true")))
			json_put_bool(writer, flags[i].member, true);
		else if (slice_equal(text, SLICE("false")))
			json_put_bool(writer, flags[i].member, false);
		else
			json_put_string(writer, flags[i].member, text);
	}
}

static void uri_write_text(struct json_writer *writer, const struct http_request *request,
			   const char *param, const char *member)
{
	struct slice text = http_param(request, param);
	if (text.data)
		json_put_string(writer, member, text);
}

int opentsdb_uri_check(const struct http_request *request, struct errbuf *e)
{
	static const char *const refused[] = {"tsuids", "tsuid"};
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		if (http_param(request, refused[i]).data)
			return errbuf_set(e, ERR_INVALID, no_tsuids, refused[i]);
	}
	return 0;
}

static int uri_end_body(struct json_writer *writer, struct buf *body, int err, struct errbuf *e)
{
	json_write_object_end(writer);
	if (!err && body->failed)
		err = errbuf_set(e, ERR_LIMIT, "the address is too long");
	return err;
}

int opentsdb_uri_query(const struct http_request *request, struct buf *body, struct errbuf *e)
{
	struct json_writer writer;
	size_t at = 0;
	int err = 0;
	json_writer_init(&writer, body);
	json_write_object_begin(&writer);
	uri_write_text(&writer, request, "start", "start");
	uri_write_text(&writer, request, "end", "end");
	uri_write_text(&writer, request, "timezone", "timezone");
	uri_write_text(&writer, request, "tz", "timezone");
	write_flags(&writer, request);
	json_write_key(&writer, "queries");
	json_write_array_begin(&writer);
	for (struct slice m; !err && (m = http_param_next(request, "m", &at)).data;)
		err = write_query(&writer, m, e);
	json_write_array_end(&writer);
	return uri_end_body(&writer, body, err ? errbuf_prefix(e, err, "m") : 0, e);
}

int opentsdb_uri_last(const struct http_request *request, struct buf *body, struct errbuf *e)
{
	struct json_writer writer;
	size_t at = 0;
	int err = 0;
	json_writer_init(&writer, body);
	json_write_object_begin(&writer);
	struct slice hours = http_param(request, "back_scan");
	if (hours.data)
		err = uri_write_number(&writer, "backScan", hours, e);
	json_write_key(&writer, "queries");
	json_write_array_begin(&writer);
	for (struct slice text;
	     !err && (text = http_param_next(request, "timeseries", &at)).data;) {
		json_write_object_begin(&writer);
		err = write_metric(&writer, text, true, e);
		json_write_object_end(&writer);
		if (err)
			errbuf_prefix(e, err, "timeseries");
	}
	json_write_array_end(&writer);
	return uri_end_body(&writer, body, err, e);
}
