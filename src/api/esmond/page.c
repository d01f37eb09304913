#include "api/esmond/page.h"

#include "api/esmond/params.h"
#include "wire/json.h"

enum { URL_MAX_BYTES = 64 << 10 };

int v2_page_read(const struct http_request *request, struct v2_page *page, struct errbuf *e)
{
	static const struct param params[] = {
		{"limit", PARAM_NUMBER, offsetof(struct v2_page, limit), 0, INT64_MAX},
		{"offset", PARAM_NUMBER, offsetof(struct v2_page, offset), 0, INT64_MAX},
		{NULL}};
	*page = (struct v2_page){.limit = V2_PAGE_LIMIT};
	return params_read_values(request, params, 0, page, e);
}

void v2_host_write(const struct http_request *request, struct buf *out)
{
	struct http_base base = http_base_of(request);
	if (base.host.len)
		buf_printf(out, "%s://%.*s%.*s", base.scheme, (int)base.host.len, base.host.data,
			   (int)base.prefix.len, base.prefix.len ? base.prefix.data : "");
}

struct slice v2_path_of(const struct http_request *request)
{
	struct slice path = request->target;
	const char *question = path.len ? memchr(path.data, '?', path.len) : NULL;
	if (question)
		path.len = (size_t)(question - path.data);
	/* A target may be a whole address; then its path is what is behind the host. */
	return path.len && path.data[0] == '/' ? path : request->path;
}

/* ---- Links ----------------------------------------------------------------------------------- */

/* What may stand in a query as it is (RFC 3986, unreserved). */
static void put_encoded(struct buf *out, struct slice text)
{
	static const char hex[] = "0123456789ABCDEF";
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.data[i];
		char coded[3] = {'%', hex[c >> 4], hex[c & 15]};
		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    (c && strchr("-._~", c)))
			buf_append_char(out, (char)c);
		else
			buf_append(out, coded, sizeof(coded));
	}
}

static void write_link(const struct http_request *request, uint64_t limit, uint64_t offset,
		       struct json_writer *json)
{
	struct slice path = v2_path_of(request);
	struct buf url;
	buf_init(&url, URL_MAX_BYTES);
	v2_host_write(request, &url);
	buf_append(&url, path.data, path.len);
	buf_printf(&url, "?limit=%llu&offset=%llu", (unsigned long long)limit,
		   (unsigned long long)offset);
	for (size_t i = 0; i < request->param_count; i++) {
		const struct http_param *param = &request->params[i];
		if (slice_equal(param->name, SLICE("limit")) ||
		    slice_equal(param->name, SLICE("offset")))
			continue;
		buf_append_char(&url, '&');
		put_encoded(&url, param->name);
		buf_append_char(&url, '=');
		put_encoded(&url, param->value);
	}
	if (url.failed)
		json_write_null(json);
	else
		json_write_string(json, buf_slice(&url));
	buf_release(&url);
}

/* ---- Lists ----------------------------------------------------------------------------------- */

void v2_page_begin(struct json_writer *json)
{
	json_write_object_begin(json);
	json_write_key(json, "children");
	json_write_array_begin(json);
}

static void write_meta(const struct http_request *request, const struct v2_page *page,
		       uint64_t total, struct json_writer *json)
{
	json_write_object_begin(json);
	json_put_u64(json, "limit", page->limit);
	json_put_u64(json, "offset", page->offset);
	json_put_u64(json, "total_count", total);
	json_write_key(json, "next");
	if (page->limit && page->offset < total && total - page->offset > page->limit)
		write_link(request, page->limit, page->offset + page->limit, json);
	else
		json_write_null(json);
	json_write_key(json, "previous");
	if (page->limit && page->offset)
		write_link(request, page->limit,
			   page->offset > page->limit ? page->offset - page->limit : 0, json);
	else
		json_write_null(json);
	json_write_object_end(json);
}

void v2_page_end(const struct http_request *request, const struct v2_page *page, uint64_t total,
		 struct json_writer *json)
{
	json_write_array_end(json);
	json_write_key(json, "meta");
	write_meta(request, page, total, json);
	json_write_object_end(json);
}
