#include "api/params.h"

#include <stdio.h>

#include "base/utf8.h"
#include "wire/number.h"
#include "wire/timetext.h"

enum { PARAM_RANGE_BYTES = 64 };

/* ---- Names --------------------------------------------------------------------------------- */

const struct param *params_find(const struct param *params, struct slice name)
{
	for (; params && params->name; params++) {
		if (slice_equal(name, slice_of(params->name)))
			return params;
	}
	return NULL;
}

static int params_check(const struct http_request *request, const struct param *params,
			struct errbuf *e)
{
	for (size_t i = 0; i < request->param_count; i++) {
		struct slice name = request->params[i].name;
		const struct param *param = params_find(params, name);
		if (!param)
			return errbuf_set(e, ERR_INVALID, "unknown parameter \"" SHOWN "\"",
					  SHOWN_OF(name));
		for (size_t j = 0; j < i && !param->repeated; j++) {
			if (slice_equal(name, request->params[j].name))
				return errbuf_set(e, ERR_INVALID, SHOWN " is given twice",
						  SHOWN_OF(name));
		}
	}
	return 0;
}

/* ---- Values -------------------------------------------------------------------------------- */

static int params_check_tenant(struct slice tenant, struct errbuf *e)
{
	if (tenant_valid(tenant))
		return 0;
	return errbuf_set(e, ERR_INVALID, "tenant \"" SHOWN "\" is not 1 to %d of A-Za-z0-9_.-",
			  SHOWN_OF(tenant), TENANT_MAX_BYTES);
}

static int params_read_tenant(const struct http_request *request, struct slice param,
			      struct slice *tenant, struct errbuf *e)
{
	struct slice header = http_header(request, "x-tenant"), only = request->tenant;
	if (param.data && header.data && !slice_equal(param, header))
		return errbuf_set(e, ERR_INVALID,
				  "tenant is \"" SHOWN "\" but the header X-Tenant is \"" SHOWN
				  "\"",
				  SHOWN_OF(param), SHOWN_OF(header));
	if (param.data && only.data && !slice_equal(param, only))
		return errbuf_set(e, ERR_INVALID,
				  "tenant is \"" SHOWN "\" but the request's is \"" SHOWN "\"",
				  SHOWN_OF(param), SHOWN_OF(only));
	*tenant = param.data ? param : only.data ? only : header.data ? header : SLICE("default");
	return params_check_tenant(*tenant, e);
}

static int params_read_flag(const struct param *param, struct slice text, bool *flag,
			    struct errbuf *e)
{
	*flag = slice_equal(text, SLICE("true"));
	if (*flag || slice_equal(text, SLICE("false")))
		return 0;
	return errbuf_set(e, ERR_INVALID, "%s is true or false, not \"" SHOWN "\"", param->name,
			  SHOWN_OF(text));
}

static const char *params_print_range(const struct param *param, char to[PARAM_RANGE_BYTES])
{
	unsigned long long least = param->least, most = param->most;
	if (param->most == UINT64_MAX)
		snprintf(to, PARAM_RANGE_BYTES, "a number from %llu on", least);
	else
		snprintf(to, PARAM_RANGE_BYTES, "a number from %llu to %llu", least, most);
	return to;
}

static int params_read_number(const struct param *param, struct slice text, uint64_t *number,
			      struct errbuf *e)
{
	ASSERT(param->least <= param->most);
	if (number_parse_u64(text.data, text.data + text.len, number) == 0 &&
	    *number >= param->least && *number <= param->most)
		return 0;
	char range[PARAM_RANGE_BYTES];
	return errbuf_set(e, ERR_INVALID, "%s \"" SHOWN "\" is not %s", param->name, SHOWN_OF(text),
			  params_print_range(param, range));
}

static void params_put_words(const struct param *param, const char *between, struct buf *out)
{
	for (const char *const *word = param->words; *word; word++)
		buf_printf(out, "%s%s", word == param->words ? "" : between, *word);
}

static int params_read_word(const struct param *param, struct slice text, int *place,
			    struct errbuf *e)
{
	struct buf words;
	ASSERT(param->words && param->words[0]);
	for (*place = 0; param->words[*place]; ++*place) {
		if (slice_equal(text, slice_of(param->words[*place])))
			return 0;
	}
	bool two = *place == 2;
	buf_init(&words, sizeof(e->text));
	params_put_words(param, two ? " nor " : ", ", &words);
	int err =
		errbuf_set(e, ERR_INVALID, "%s \"" SHOWN "\" is %s %.*s", param->name,
			   SHOWN_OF(text), two ? "neither" : "none of", (int)words.len, words.data);
	buf_release(&words);
	return err;
}

static int params_read_one(const struct http_request *request, const struct param *param,
			   int64_t now_ms, void *to, struct errbuf *e)
{
	struct slice text = http_param(request, param->name);
	if (param->type == PARAM_TENANT)
		return params_read_tenant(request, text, to, e);
	if (!text.data && param->missing)
		return errbuf_set(e, ERR_INVALID, "%s is missing%s%s", param->name,
				  param->missing[0] ? ": " : "", param->missing);
	if (!text.data || param->type == PARAM_OTHER)
		return 0;
	switch (param->type) {
	case PARAM_FLAG:
		return params_read_flag(param, text, to, e);
	case PARAM_NUMBER:
		return params_read_number(param, text, to, e);
	case PARAM_WORD:
		return params_read_word(param, text, to, e);
	case PARAM_TIME:
		return time_parse(text, now_ms, to, e)
			       ? errbuf_prefix(e, ERR_INVALID, "%s", param->name)
			       : 0;
	default:
		ASSERT(param->type == PARAM_TEXT || param->type == PARAM_METRIC ||
		       param->type == PARAM_TENANT_OR_ALL);
		*(struct slice *)to = text;
	}
	if (param->type == PARAM_METRIC)
		return metric_check(text, e);
	return param->type == PARAM_TENANT_OR_ALL ? params_check_tenant(text, e) : 0;
}

int params_read_values(const struct http_request *request, const struct param *params,
		       int64_t now_ms, void *question, struct errbuf *e)
{
	int err = 0;
	for (; !err && params && params->name; params++)
		err = params_read_one(request, params, now_ms, (char *)question + params->offset,
				      e);
	return err;
}

int params_read(const struct http_request *request, const struct param *params, int64_t now_ms,
		void *question, struct errbuf *e)
{
	int err = params_check(request, params, e);
	return err ? err : params_read_values(request, params, now_ms, question, e);
}

int params_read_route(const struct http_request *request, int64_t now_ms, void *question,
		      struct errbuf *e)
{
	return params_read(request, request->route->params, now_ms, question, e);
}

bool params_none(struct http_request *request)
{
	struct errbuf e;
	if (params_check(request, NULL, &e) == 0)
		return true;
	http_reply_error(request, 400, "%s", e.text);
	return false;
}

int params_selectors(const struct http_request *request, struct arena *arena,
		     struct catalog_selector **list, size_t *count, struct errbuf *e)
{
	struct catalog_selector *selectors =
		arena_alloc(arena, CATALOG_SELECTORS_MAX * sizeof(*selectors));
	size_t at = 0;
	if (!selectors)
		return errbuf_set(e, ERR_LIMIT, "the tags take too much room");
	*list = selectors;
	*count = 0;
	for (;;) {
		struct slice text = http_param_next(request, "tag", &at);
		if (!text.data)
			return 0;
		int err = catalog_selectors_parse(text, arena, selectors, count, e);
		ASSERT(*count <= CATALOG_SELECTORS_MAX);
		if (err)
			return errbuf_prefix(e, err, "tag");
	}
}

/* ---- Description --------------------------------------------------------------------------- */

void param_describe(const struct param *param, struct buf *out)
{
	char range[PARAM_RANGE_BYTES];
	if (param->type == PARAM_FLAG)
		buf_append_text(out, "true or false");
	else if (param->type == PARAM_NUMBER)
		buf_append_text(out, params_print_range(param, range));
	else if (param->type == PARAM_TIME)
		buf_append_text(out, "a time, as 2020-08-24T16:34:05Z or 1h-ago");
	else if (param->type == PARAM_WORD)
		params_put_words(param, " or ", out);
	if (param->missing)
		buf_append_text(out, out->len ? ", must be given" : "must be given");
}

int params_keep(struct arena *arena, struct slice *text, const char *name, size_t max_bytes,
		struct errbuf *e)
{
	if (!text->data)
		return 0;
	if (text->len > max_bytes)
		return errbuf_set(e, ERR_INVALID, "%s has %zu bytes; at most %zu are taken", name,
				  text->len, max_bytes);
	if (!utf8_is_valid(*text))
		return errbuf_set(e, ERR_INVALID, "%s is not UTF-8", name);
	*text = arena_copy(arena, *text);
	return text->data ? 0 : errbuf_set(e, ERR_INVALID, "the parameters are too long");
}
