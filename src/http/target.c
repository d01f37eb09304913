#include "http/target.h"

#include "http/head.h"
#include "wire/percent.h"

/* Takes off the part before `separator`, or all; says whether the separator was there. */
static bool http_target_split_off(struct slice *text, char separator, struct slice *part)
{
	const char *end = text->len ? memchr(text->data, separator, text->len) : NULL;
	part->data = text->data;
	part->len = end ? (size_t)(end - text->data) : text->len;
	size_t skip = part->len + (end != NULL);
	*text = (struct slice){text->data + skip, text->len - skip};
	return end;
}

static int parse_segments(struct http_request *request, struct slice path, const char **reason)
{
	bool more = true;
	path = (struct slice){path.data + 1, path.len - 1};
	while (more) {
		struct slice part;
		if (request->segment_count == HTTP_SEGMENTS_MAX) {
			*reason = "the path has too many parts";
			return ERR_INVALID;
		}
		more = http_target_split_off(&path, '/', &part);
		if (percent_decode(part, false, &request->arena,
				   &request->segments[request->segment_count++])) {
			*reason = "the path is not properly percent-encoded";
			return ERR_INVALID;
		}
	}
	return 0;
}

static int set_route_path(struct http_request *request, const char **reason)
{
	char *copy = arena_alloc(&request->arena, request->path.len + 1);
	if (!copy) {
		*reason = "the path is too long";
		return ERR_INVALID;
	}
	memcpy(copy, request->path.data, request->path.len);
	for (size_t i = 0, at = 1; i < request->segment_count; i++, at++)
		for (size_t end = at + request->segments[i].len; at < end; at++)
			if (copy[at] == '/')
				copy[at] = (char)0xff;
	request->route_path = (struct slice){copy, request->path.len};
	return 0;
}

static size_t count_params(struct slice query)
{
	size_t count = 0;
	for (size_t i = 0; i < query.len; i++)
		count += query.data[i] == '&';
	return count + (query.len > 0);
}

static int parse_params(struct http_request *request, struct slice query, unsigned params_max,
			const char **reason)
{
	size_t count = count_params(query);
	*reason = "there are too many parameters";
	if (count > params_max)
		return ERR_INVALID;
	struct http_param *params = arena_alloc(&request->arena, count * sizeof(*params));
	if (!params)
		return ERR_INVALID;
	request->params = params;
	*reason = "a parameter is not properly percent-encoded, or has a NUL";
	while (query.len) {
		struct slice name, value;
		http_target_split_off(&query, '&', &value);
		if (!value.len)
			continue;
		http_target_split_off(&value, '=', &name);
		struct http_param *param = &params[request->param_count++];
		if (percent_decode(name, true, &request->arena, &param->name) ||
		    percent_decode(value, true, &request->arena, &param->value))
			return ERR_INVALID;
	}
	return 0;
}

/* `http://host/path` is what clients send to a proxy; servers must understand it (RFC 9112 3.2.2).
 * Its host counts as Host does: http/site.h. */
static int strip_authority(struct slice *target, struct slice *authority, const char **reason)
{
	static const char scheme[] = "http://";
	size_t len = sizeof(scheme) - 1;
	*reason = "the request target is no path";
	if (target->len <= len || !head_name_is((struct slice){target->data, len}, scheme))
		return ERR_INVALID;
	const char *slash = memchr(target->data + len, '/', target->len - len);
	if (!slash)
		return ERR_INVALID;
	*authority = (struct slice){target->data + len, (size_t)(slash - target->data) - len};
	*target = (struct slice){slash, target->len - (size_t)(slash - target->data)};
	return 0;
}

int target_parse(struct http_request *request, unsigned params_max, const char **reason)
{
	struct slice rest = request->target, path;
	if (memchr(rest.data, '#', rest.len)) {
		*reason = "the request target has a fragment";
		return ERR_INVALID;
	}
	if (rest.data[0] != '/') {
		int err = strip_authority(&rest, &request->authority, reason);
		if (err)
			return err;
	}
	http_target_split_off(&rest, '?', &path);
	if (percent_decode(path, false, &request->arena, &request->path)) {
		*reason = "the path is not properly percent-encoded";
		return ERR_INVALID;
	}
	int err = parse_segments(request, path, reason);
	err = err ? err : set_route_path(request, reason);
	return err ? err : parse_params(request, rest, params_max, reason);
}

/* ---- Forms ----------------------------------------------------------------------------------- */

static bool is_form(const struct http_request *request)
{
	struct slice type = http_header(request, "Content-Type"), media;
	http_target_split_off(&type, ';', &media);
	while (media.len && (media.data[media.len - 1] == ' ' || media.data[media.len - 1] == '\t'))
		media.len--;
	return head_name_is(media, "application/x-www-form-urlencoded");
}

/* The encoding is that of a query's parameters (HTML 4.01, 17.13.4). */
int http_form_field(struct http_request *request, const char *name, struct slice *value)
{
	struct slice rest = buf_slice(&request->body);
	*value = (struct slice){NULL, 0};
	if (!is_form(request))
		return 0;
	while (rest.len) {
		struct slice field, key;
		http_target_split_off(&rest, '&', &field);
		http_target_split_off(&field, '=', &key);
		int err = percent_decode(key, true, &request->arena, &key);
		if (err)
			return err;
		if (slice_equal(key, slice_of(name)))
			return percent_decode(field, true, &request->arena, value);
	}
	return 0;
}
