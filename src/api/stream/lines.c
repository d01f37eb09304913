#include "api/stream/lines.h"

#include "stream/streams.h"
#include "wire/line_severity.h"

void lines_put(struct json_writer *json, const struct line_found *found)
{
	enum line_severity severity = line_severity_of(found->text);
	json_write_object_begin(json);
	json_put_i64(json, "time", found->place.ms);
	json_put_string(json, "stream", found->place.stream);
	json_put_u64(json, "offset", found->place.offset);
	json_put_u64(json, "bytes", found->bytes);
	if (severity)
		json_put_text(json, "severity", line_severity_text(severity));
	json_put_string(json, "text", found->text);
	if (found->cut)
		json_put_bool(json, "cut", true);
	json_write_object_end(json);
}

void lines_put_unknown(struct json_writer *json, const struct line_without *without)
{
	json_write_key(json, "unknown_field");
	json_write_object_begin(json);
	json_put_string(json, "field", without->field);
	json_put_text(json, "datatype", without->datatype);
	json_write_object_end(json);
}

void lines_put_work(struct json_writer *json, const struct line_scan_work *work)
{
	json_write_key(json, "looked_at");
	json_write_object_begin(json);
	json_put_u64(json, "streams", work->streams);
	json_put_u64(json, "blocks", work->blocks);
	json_put_u64(json, "excluded_blocks", work->excluded_blocks);
	json_put_u64(json, "bytes", work->bytes);
	json_write_object_end(json);
	if (work->damaged)
		json_put_u64(json, "damaged", work->damaged);
	if (work->without_rule.streams) {
		json_put_u64(json, "without_rule", work->without_rule.streams);
		lines_put_unknown(json, &work->without_rule);
	}
}

static int lines_keep_texts(struct arena *arena, struct lines_question *q, struct errbuf *e)
{
	struct {
		struct slice *text;
		const char *name;
	} texts[] = {
		{&q->tenant, "tenant"},
		{&q->names.source, "source"},
		{&q->names.cluster, "cluster"},
		{&q->names.datatype, "datatype"},
		{&q->names.name, "name"},
		{&q->stream, "stream"},
		{&q->q, "q"},
	};
	int err = 0;
	for (size_t i = 0; i < ARRAY_LEN(texts) && !err; i++)
		err = params_keep(arena, texts[i].text, texts[i].name, LINES_TEXT_MAX_BYTES, e);
	return err;
}

static int lines_read_stream(struct arena *arena, struct lines_question *q, uint64_t *incarnation,
			     struct errbuf *e)
{
	const struct stream_names *names = &q->names;
	if (!q->stream.data)
		return 0;
	if (names->source.data || names->cluster.data || names->datatype.data || names->name.data)
		return errbuf_set(e, ERR_INVALID,
				  "stream: an address has all names, so that source, cluster, "
				  "datatype and name are not given beside it");
	int err = stream_address_parse(q->stream, arena, &q->names, incarnation, e);
	if (!err && !*incarnation) /* a scan takes 0 for any */
		err = errbuf_set(e, ERR_INVALID, "stream: no stream has the incarnation 0");
	return err;
}

int lines_keep(struct arena *arena, struct lines_question *q, uint64_t *incarnation,
	       struct errbuf *e)
{
	*incarnation = 0;
	int err = lines_keep_texts(arena, q, e);
	return err ? err : lines_read_stream(arena, q, incarnation, e);
}

static int lines_check_time(void *owner, struct errbuf *e)
{
	return api_call_check_time(owner, e);
}

int lines_read(struct api_call *call, struct lines_question *q, struct line_query *query,
	       struct line_scan_rules *rules, struct errbuf *e)
{
	uint64_t incarnation;
	int err = lines_keep(&call->arena, q, &incarnation, e);
	if (!err && q->since_ms > q->until_ms)
		err = errbuf_set(e, ERR_INVALID, "since lies after until");
	err = err ? err : line_query_parse(q->q, &call->arena, query, e);
	if (!err)
		query->datatypes = streams_datatypes(call->api->streams);
	*rules = (struct line_scan_rules){.tenant = q->tenant,
					  .names = q->names,
					  .incarnation = incarnation,
					  .from_ms = q->since_ms,
					  .to_ms = q->until_ms,
					  .query = query,
					  .may_go_on = lines_check_time,
					  .owner = call};
	return err;
}
