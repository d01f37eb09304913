#include "api/hicc/asked.h"

#include "conf/conf.h"
#include "wire/timetext.h"

enum { HICC_PATH_BEFORE = 4, /* hicc, v1, metrics and a word */ HICC_TIME_DIGITS = 14 };
#define HICC_HOUR_MS INT64_C(3600000)
#define HICC_DAY_MS  INT64_C(86400000)

/* ---- Times ----------------------------------------------------------------------------------- */

static bool hicc_is_all_digits(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] < '0' || text.data[i] > '9')
			return false;
	return text.len == HICC_TIME_DIGITS;
}

int hicc_time_parse(struct slice text, int64_t now_ms, int64_t *ms, struct errbuf *e)
{
	const char *d = text.data;
	char iso[TIME_TEXT_MAX_BYTES];
	if (!hicc_is_all_digits(text))
		return time_parse(text, now_ms, ms, e);
	snprintf(iso, sizeof(iso), "%.4s-%.2s-%.2sT%.2s:%.2s:%.2sZ", d, d + 4, d + 6, d + 8, d + 10,
		 d + 12);
	if (time_parse_iso(slice_of(iso), ms, e) == 0)
		return 0;
	return errbuf_set(e, ERR_INVALID, "\"" SHOWN "\" is no time yyyyMMddHHmmss",
			  SHOWN_OF(text));
}

static int hicc_read_times(struct hicc_asked *asked, int64_t now_ms, struct errbuf *e)
{
	int err = 0;
	/* Until now means with the millisecond that it is. */
	asked->end_ms = now_ms + 1;
	if (asked->end.data)
		err = hicc_time_parse(asked->end, now_ms, &asked->end_ms, e);
	if (err)
		return errbuf_prefix(e, err, "end");
	asked->start_ms = asked->end_ms - HICC_HOUR_MS;
	if (asked->start.data)
		err = hicc_time_parse(asked->start, now_ms, &asked->start_ms, e);
	if (err)
		return errbuf_prefix(e, err, "start");
	if (asked->start_ms > asked->end_ms)
		return errbuf_set(e, ERR_INVALID, "start \"" SHOWN "\" lies after end%s" SHOWN "%s",
				  SHOWN_OF(asked->start),
				  asked->end.data ? " \"" : ", which is now", SHOWN_OF(asked->end),
				  asked->end.data ? "\"" : "");
	if (asked->start_ms < asked->end_ms - HICC_RANGE_DAYS_MAX * HICC_DAY_MS)
		return errbuf_set(e, ERR_INVALID, "start lies more than %d days before end",
				  HICC_RANGE_DAYS_MAX);
	return 0;
}

void hicc_presume_tenant(const struct http_request *request, struct slice *tenant)
{
	bool said = http_param(request, "tenant").data || http_header(request, "x-tenant").data;
	if (!said && !request->tenant.data)
		*tenant = slice_of(api_of(request)->conf->hicc_tenant);
}

int hicc_read(const struct http_request *request, struct api_call *call, struct hicc_asked *asked,
	      struct errbuf *e)
{
	int64_t now_ms = clock_wall_ms(call->api->clock);
	int err = params_read_route(request, now_ms, asked, e);
	err = err ? err : hicc_read_times(asked, now_ms, e);
	if (err)
		return err;
	hicc_presume_tenant(request, &asked->tenant);
	asked->tenant = arena_copy(&call->arena, asked->tenant);
	ASSERT(asked->tenant.data); /* at most TENANT_MAX_BYTES */
	return 0;
}

/* ---- Paths ----------------------------------------------------------------------------------- */

size_t hicc_path_parts(const struct http_request *request)
{
	size_t count = request->segment_count;
	if (count && !request->segments[count - 1].len)
		count--;
	return count < HICC_PATH_BEFORE ? 0 : count - HICC_PATH_BEFORE;
}

struct slice hicc_path_part(const struct http_request *request, struct api_call *call, size_t at)
{
	if (at >= hicc_path_parts(request))
		return (struct slice){NULL, 0};
	struct slice part = request->segments[HICC_PATH_BEFORE + at];
	if (part.len > HICC_PART_MAX_BYTES) /* nothing has such a name */
		return (struct slice){NULL, 0};
	part = arena_copy(&call->arena, part);
	ASSERT(part.data); /* some of them in an empty arena */
	return part;
}

int hicc_nothing_there(const struct http_request *request, struct errbuf *e)
{
	return errbuf_set(e, ERR_NOT_FOUND, "there is nothing at " SHOWN, SHOWN_OF(request->path));
}

int hicc_read_row(const struct http_request *request, struct api_call *call,
		  const struct hicc_asked *asked, size_t parts, struct row *row, struct errbuf *e)
{
	*row = (struct row){.tenant = asked->tenant,
			    .metric = hicc_path_part(request, call, 0),
			    .source = hicc_path_part(request, call, 1)};
	if (hicc_path_parts(request) != parts || !row->metric.len || !row->source.len)
		return hicc_nothing_there(request, e);
	return 0;
}

int hicc_may_go_on(void *owner, struct errbuf *e)
{
	return api_call_check_time(api_call_from(owner), e);
}

void hicc_put_note(struct json_writer *json, struct slice metric, const struct row_cell *note)
{
	json_write_object_begin(json);
	json_put_text(json, "id", note->id.text);
	json_put_i64(json, "time", note->ts_ms);
	json_put_string(json, "metric", metric);
	json_put_string(json, "text", note->text);
	json_write_object_end(json);
}
