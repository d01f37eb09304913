#include "api/admin/admin.h"

#include "api/call.h"
#include "api/params.h"
#include "base/stats.h"
#include "catalog/catalog.h"
#include "ingest/oops_amqp.h"
#include "marks/marks.h"
#include "rollup/site.h"
#include "wire/html.h"

enum {
	PAGE_MAX_BYTES = 1 << 20,
	PARAM_MAX_BYTES = 1024, /* what may be given for one */
	DEGRADED_MAX_BYTES = 2048,
	TENANTS_SHOWN_MAX = 20,
	METRICS_SHOWN_MAX = 50, /* of a tenant */
};

/* ---- Health ---------------------------------------------------------------------------------- */

static void healthy_end(struct http_request *request)
{
	http_reply(request, 200, "text/plain; charset=utf-8", SLICE("healthy\n"));
}

static void say_redis(const struct api *api, struct buf *text)
{
	struct marks_state state = {0};
	if (api->site && api->site->marks)
		state = marks_state(api->site->marks);
	if (state.degraded)
		buf_printf(text,
			   "degraded: Redis (rollup.tracking): %s; what waits for its roll-up is "
			   "kept in the store meanwhile\n",
			   state.why);
}

static void say_amqp(const struct api *api, struct buf *text)
{
	struct oops_amqp_state state;
	if (!api->amqp)
		return;
	oops_amqp_look(api->amqp, &state);
	if (state.trouble.text[0])
		buf_printf(
			text,
			"degraded: fault reports by AMQP (fault.amqp): %s; they stay in RabbitMQ "
			"meanwhile\n",
			state.trouble.text);
}

static void say_clock(const struct api *api, struct buf *text)
{
	struct clock_judgement judgement;
	char sentence[CLOCK_SENTENCE_MAX_BYTES];
	clock_judge(api->clock, &judgement);
	if (!judgement.doubted)
		return;
	clock_sentence(&judgement, sentence);
	buf_printf(text, "degraded: %s\n", sentence);
}

static void page_ready_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct buf text;
	if (!api->ready) {
		http_reply_error(request, 503, "the server is starting or stopping");
		return;
	}
	/* Degraded it takes and answers everything: whoever shares out requests need not leave it
	 * out. */
	buf_init(&text, DEGRADED_MAX_BYTES);
	say_redis(api, &text);
	say_clock(api, &text);
	say_amqp(api, &text);
	if (!text.len)
		buf_append_text(&text, "ready\n");
	http_reply(request, 200, "text/plain; charset=utf-8", buf_slice(&text));
	buf_release(&text);
}

const struct http_handler self_healthy = {.end = healthy_end};
const struct http_handler self_ready = {.end = page_ready_end};

/* ---- Style ----------------------------------------------------------------------------------- */

static const char style[] =
	":root { color-scheme: light dark; --line: #8884; --soft: #8882; --link: #1a5fb4;\n"
	"  --bad: #c01c28 }\n"
	"@media (prefers-color-scheme: dark) { :root { --link: #8ab4f8; --bad: #ff7b72 } }\n"
	"* { box-sizing: border-box }\n"
	"body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 64rem;\n"
	"  padding: 1.5rem 1rem 3rem }\n"
	"h1 { margin: 0; line-height: 1.2 } h1 + p { margin: .25rem 0 0 }\n"
	"h2 { margin: 2.5rem 0 .5rem; font-size: 1.35rem;\n"
	"  border-bottom: 1px solid var(--line) }\n"
	"h3 { margin: 1.25rem 0 .25rem; font-size: 1.05rem }\n"
	"h3 small { font-weight: normal; opacity: .75 }\n"
	"a { color: var(--link); overflow-wrap: anywhere }\n"
	"nav { display: flex; flex-wrap: wrap; gap: 0 1rem; margin-top: .5rem }\n"
	".bad { color: var(--bad); font-weight: bold }\n"
	"code { font: .875em ui-monospace, monospace; background: var(--soft);\n"
	"  padding: .1em .3em; border-radius: .3em; overflow-wrap: anywhere }\n"
	".tiles { display: grid; gap: .75rem; margin: 1.5rem 0;\n"
	"  grid-template-columns: repeat(auto-fill, minmax(min(13rem, 45%), 1fr)) }\n"
	".tiles div { border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem }\n"
	".tiles dt { opacity: .75; font-size: .85rem }\n"
	".tiles dd { margin: 0; font-size: 1.35rem; font-variant-numeric: tabular-nums }\n"
	"table { border-collapse: collapse; width: 100% }\n"
	"th, td { text-align: left; vertical-align: top; padding: .5rem 1rem .5rem 0;\n"
	"  border-bottom: 1px solid var(--line) }\n"
	"td:first-child { white-space: nowrap }\n"
	"ul.names { columns: 18rem; margin: 0; padding: 0; list-style: none }\n"
	"ul.names li { break-inside: avoid }\n"
	"@media (max-width: 45rem) {\n"
	"  thead { display: none }\n"
	"  tr { display: block; padding: .6rem 0; border-bottom: 1px solid var(--line) }\n"
	"  td { display: block; padding: 0; border: 0 }\n"
	"  td:first-child { white-space: normal }\n"
	"}\n";

static void style_end(struct http_request *request)
{
	http_reply_header(request, "Cache-Control", "no-cache");
	http_reply(request, 200, "text/css; charset=utf-8", SLICE(style));
}

const struct http_handler self_style = {.end = style_end};

/* ---- Text of the page ------------------------------------------------------------------------ */

/* A name of parts with dots between may be broken behind each. */
static void page_put_name(struct buf *out, struct slice name)
{
	while (name.len) {
		const char *dot = memchr(name.data, '.', name.len);
		size_t len = dot ? (size_t)(dot - name.data) + 1 : name.len;
		html_put_text(out, (struct slice){name.data, len});
		name = (struct slice){name.data + len, name.len - len};
		if (name.len)
			buf_append_text(out, "<wbr>");
	}
}

/* 21600000 as 21,600,000: a tile is read by people. */
static void put_count(struct buf *out, int64_t value)
{
	char digits[24];
	int len = snprintf(digits, sizeof(digits), "%lld", (long long)value);
	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0 && digits[i - 1] != '-')
			buf_append_char(out, ',');
		buf_append_char(out, digits[i]);
	}
}

static void page_put_bytes(struct buf *out, int64_t bytes)
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB", "EB"};
	double value = (double)bytes;
	size_t unit = 0;
	for (; value >= 1000 && unit + 1 < ARRAY_LEN(units); unit++)
		value /= 1000;
	buf_printf(out, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void put_duration(struct buf *out, int64_t ms)
{
	long long s = ms / 1000;
	if (s >= 86400)
		buf_printf(out, "%lld d %lld h", s / 86400, s % 86400 / 3600);
	else if (s >= 3600)
		buf_printf(out, "%lld h %lld min", s / 3600, s % 3600 / 60);
	else if (s >= 60)
		buf_printf(out, "%lld min %lld s", s / 60, s % 60);
	else
		buf_printf(out, "%lld s", s);
}

/* ---- Parts of the page ----------------------------------------------------------------------- */

enum unit { UNIT_COUNT, UNIT_BYTES, UNIT_DURATION };

static void put_tile(struct buf *out, const char *title, enum unit unit, int64_t value)
{
	buf_printf(out, "<div><dt>%s</dt><dd>", title);
	if (unit == UNIT_COUNT)
		put_count(out, value);
	else if (unit == UNIT_BYTES)
		page_put_bytes(out, value);
	else
		put_duration(out, value);
	buf_append_text(out, "</dd></div>\n");
}

static void put_tiles(struct buf *out, const struct api *api)
{
	buf_append_text(out, "<dl class=\"tiles\">\n");
	put_tile(out, "up for", UNIT_DURATION, clock_wall_ms(api->clock) - api->started_ms);
	put_tile(out, "series", UNIT_COUNT, stat_get(STAT_store_series));
	put_tile(out, "samples since start", UNIT_COUNT, stat_get(STAT_store_samples));
	put_tile(out, "commits", UNIT_COUNT, stat_get(STAT_store_commits));
	put_tile(out, "data file", UNIT_BYTES, stat_get(STAT_store_file_bytes));
	put_tile(out, "of it in use", UNIT_BYTES, stat_get(STAT_store_used_bytes));
	put_tile(out, "open heads", UNIT_COUNT, stat_get(STAT_store_heads));
	put_tile(out, "connections", UNIT_COUNT, stat_get(STAT_http_connections));
	buf_append_text(out, "</dl>\n");
	if (stat_get(STAT_store_read_only))
		buf_append_text(out, "<p class=\"bad\">The store takes no writes: there is no "
				     "room left.</p>\n");
}

/* A command line, with the address under which the reader has reached us, and the program where it
 * is. */
static void put_command(struct buf *out, const struct api *api, struct slice command,
			struct slice host)
{
	static const char preset[] = "127.0.0.1:8470";
	static const struct slice name = {"granary ", 8};
	buf_append_text(out, "<code>");
	if (command.len > name.len && memcmp(command.data, name.data, name.len) == 0) {
		html_put_text(out, slice_of(api->program ? api->program : "granary"));
		command.data += name.len - 1;
		command.len -= name.len - 1;
	}
	const char *at = memmem(command.data, command.len, preset, sizeof(preset) - 1);
	if (at && host.len) {
		size_t before = (size_t)(at - command.data);
		html_put_text(out, (struct slice){command.data, before});
		html_put_text(out, host);
		before += sizeof(preset) - 1;
		command = (struct slice){command.data + before, command.len - before};
	}
	html_put_text(out, command);
	buf_append_text(out, "</code>");
}

/* A path that can be followed, or a command line that cannot. */
static void put_example(struct buf *out, const struct api *api, const struct http_route *route,
			struct slice host)
{
	struct slice example = slice_of(route->example ? route->example : "");
	if (!example.len)
		return;
	if (example.data[0] == '/' && route->verb == VERB_GET) {
		buf_append_text(out, "<a href=\"");
		html_put_text(out, example);
		buf_append_text(out, "\">");
		html_put_text(out, example);
		buf_append_text(out, "</a>");
	} else {
		put_command(out, api, example, host);
	}
}

static void put_params(struct buf *out, const struct param *param)
{
	struct buf what;
	buf_init(&what, PARAM_MAX_BYTES);
	buf_append_text(out, "<ul>");
	for (; param->name; param++) {
		buf_clear(&what);
		param_describe(param, &what);
		if (!param->help)
			continue;
		buf_printf(out, "<li><code>%s</code>", param->name);
		if (what.len)
			buf_append_text(out, " (");
		html_put_text(out, buf_slice(&what));
		buf_append_text(out, what.len ? "): " : ": ");
		html_put_text(out, slice_of(param->help));
		buf_append_text(out, "</li>");
	}
	buf_append_text(out, "</ul>");
	buf_release(&what);
}

static void put_routes(struct buf *out, const struct api *api, struct slice host)
{
	buf_append_text(out, "<h2 id=\"routes\">Routes</h2>\n<table>\n<thead><tr><th>route</th>"
			     "<th>what it does, and an example</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < api_route_count; i++) {
		const struct http_route *route = &api_routes[i];
		buf_printf(out, "<tr><td><code>%s ", http_verb_text(route->verb));
		html_put_text(out, slice_of(route->path));
		buf_printf(out, "%s</code></td><td>", route->prefix ? "&hellip;" : "");
		html_put_text(out, slice_of(route->help));
		if (route->example)
			buf_append_text(out, "<br>");
		put_example(out, api, route, host);
		if (route->params)
			put_params(out, route->params);
		buf_append_text(out, "</td></tr>\n");
	}
	buf_append_text(out, "</tbody>\n</table>\n");
}

static void put_begin(struct buf *out, const struct api *api)
{
	buf_append_text(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"
			     "\n<meta name=\"viewport\" content=\"width=device-width, "
			     "initial-scale=1\">\n"
			     "<title>Granary</title>\n<link rel=\"stylesheet\" "
			     "href=\"/style.css\">\n</head>\n<body>\n<h1>Granary</h1>\n"
			     "<p>version " GRANARY_VERSION ", ");
	buf_append_text(out, api->ready ? "ready" : "<span class=\"bad\">not ready</span>");
	buf_append_text(out,
			"</p>\n<nav><a href=\"#collected\">What is collected</a>"
			"<a href=\"#routes\">Routes</a><a href=\"/api/stats\">What is stored</a>"
			"<a href=\"/metrics\">Counters</a></nav>\n");
}

/* ---- What is collected ----------------------------------------------------------------------- */

/* The tenants are listed, then the metrics of one after the other. */
struct page {
	struct api_call call;
	struct catalog_list list;
	struct slice *tenants;
	size_t tenant_count, next;
	bool tenants_cut;
	bool listing;
};

static const struct api_call_kind page_kind;

static struct page *page_of(struct api_call *call)
{
	ASSERT(call->kind == &page_kind);
	return CONTAINER_OF(call, struct page, call);
}

static void page_ended(struct api_call *call)
{
	struct page *page = page_of(call);
	if (page->listing)
		catalog_list_cancel(&page->list);
}

static const struct api_call_kind page_kind = {.arena_max_bytes = HTTP_ARENA_MAX_BYTES,
					       .out_max_bytes = PAGE_MAX_BYTES,
					       .ended = page_ended};

static void page_finish(struct page *page)
{
	struct api_call *call = &page->call;
	struct http_request *request = call->request;
	put_routes(&call->out, call->api, http_header(request, "host"));
	buf_append_text(&call->out, "</body>\n</html>\n");
	/* Nothing on the page runs, and nothing comes from elsewhere. */
	http_reply_header(request, "Content-Security-Policy",
			  "default-src 'self'; frame-ancestors 'none'; form-action 'none'; "
			  "base-uri 'none'");
	http_reply_header(request, "Referrer-Policy", "no-referrer");
	http_reply_header(request, "Cache-Control", "no-store");
	call->content_type = "text/html; charset=utf-8";
	if (call->out.failed)
		api_call_fail(call, 500, "the page became too long");
	else
		api_call_end(call);
}

static void list_next(struct page *page);

static void page_put_metric(struct buf *out, struct slice tenant, struct slice metric)
{
	buf_append_text(out, "<li><a href=\"/api/query?tenant=");
	html_put_in_url(out, tenant);
	buf_append_text(out, "&amp;metricName=");
	html_put_in_url(out, metric);
	buf_append_text(out, "&amp;start=10m-ago\">");
	page_put_name(out, metric);
	buf_append_text(out, "</a></li>\n");
}

static void put_tenant(struct page *page, int err)
{
	struct buf *out = &page->call.out;
	const struct catalog_list *list = &page->list;
	buf_append_text(out, "<h3>");
	html_put_text(out, list->tenant);
	if (!err)
		buf_printf(out, " <small>%s%zu metric%s, the last ten minutes of each</small>",
			   list->cut ? "the first " : "", list->count, plural_end(list->count));
	buf_append_text(out, "</h3>\n");
	if (err) {
		buf_append_text(out, "<p>could not be listed: ");
		html_put_text(out, slice_of(err_text(err)));
		buf_append_text(out, "</p>\n");
		return;
	}
	buf_append_text(out, "<ul class=\"names\">\n");
	for (size_t i = 0; i < list->count; i++)
		page_put_metric(out, list->tenant, list->names[i]);
	buf_append_text(out, "</ul>\n");
	if (!list->cut)
		return;
	buf_append_text(out, "<p><a href=\"/api/metadata/metricNames?tenant=");
	html_put_in_url(out, list->tenant);
	buf_append_text(out, "\">all metrics</a></p>\n");
}

static void metrics_listed(struct catalog_list *list, int err)
{
	struct page *page = page_of(api_call_from(list->owner));
	ASSERT(page->listing);
	page->listing = false;
	put_tenant(page, err);
	list_next(page);
}

static void start_list(struct page *page, enum catalog_listing what, struct slice tenant,
		       size_t limit, catalog_list_done *done)
{
	page->list = (struct catalog_list){.catalog = page->call.api->catalog,
					   .what = what,
					   .tenant = tenant,
					   .limit = limit,
					   .done = done,
					   .owner = page,
					   .arena = &page->call.arena};
	page->listing = true;
	catalog_list_start(&page->list);
}

static void list_next(struct page *page)
{
	if (page->next < page->tenant_count) {
		start_list(page, CATALOG_METRIC_NAMES, page->tenants[page->next++],
			   METRICS_SHOWN_MAX, metrics_listed);
		return;
	}
	if (page->tenants_cut)
		buf_append_text(&page->call.out,
				"<p><a href=\"/api/metadata/tenants\">all tenants</a>"
				"</p>\n");
	page_finish(page);
}

static void tenants_listed(struct catalog_list *list, int err)
{
	struct page *page = page_of(api_call_from(list->owner));
	ASSERT(page->listing);
	page->listing = false;
	page->tenants = list->names;
	page->tenant_count = err ? 0 : list->count;
	page->tenants_cut = !err && list->cut;
	buf_append_text(&page->call.out, "<h2 id=\"collected\">What is collected</h2>\n");
	if (err || !list->count)
		buf_printf(&page->call.out, "<p>%s</p>\n",
			   err ? "could not be listed"
			       : "Nothing yet. Routes that take data, and how to "
				 "send it, are below.");
	list_next(page);
}

static void page_end(struct http_request *request)
{
	struct page *page = mem_zalloc(sizeof(*page));
	struct api_call *call = &page->call;
	api_call_init(call, request, &page_kind);
	put_begin(&call->out, call->api);
	put_tiles(&call->out, call->api);
	if (call->api->catalog)
		start_list(page, CATALOG_TENANTS, (struct slice){"", 0}, TENANTS_SHOWN_MAX,
			   tenants_listed);
	else
		page_finish(page);
}

const struct http_handler self_page = API_CALL_HANDLER(page_end);
