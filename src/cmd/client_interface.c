/* interface: what interfaces there are, and what they carry: the answers of /v2 as tables.
 *
 * Octets per second are shown as bit/s, which is what lines are sold in; everything else in its own
 * unit. A table for people has three digits and SI prefixes (1.25G), CSV whole numbers; JSON is the
 * server's answer as it comes. */
#include <math.h>

#include "cmd/client.h"
#include "cmd/client_private.h"
#include "wire/number.h"
#include "wire/timetext.h"

struct client_interface_args {
	struct command_args line;
	const char *device, *interface;
	const char *begin, *end, *endpoint, *agg, *cf, *by, *limit;
	const char *month, *span, *zone, *percentile, *missing;
};

enum { BODY_MAX_BYTES = 64 << 10, ENDPOINTS_MAX = 16, TITLE_BYTES = 80, FIGURE_BYTES = 32 };

/* ---- list ------------------------------------------------------------------------------------ */

static void client_interface_print_list(const struct command_args *args, const struct json *root,
					UNUSED struct arena *arena)
{
	static const char *const titles[] = {
		"device",      "name",         "ifIndex",       "ifAlias", "ipAddr",
		"ifHighSpeed", "ifOperStatus", "ifAdminStatus", "begin",   "end"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *row = root->first; row; row = row->next) {
		const struct json *attributes = json_member(row, "attributes");
		for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
			bool own = json_member(row, titles[i]) != NULL;
			text_table_add_member(&table, own ? row : attributes, titles[i]);
		}
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static const struct client_interface_args *client_interface_asked(const struct command_args *args)
{
	return CONTAINER_OF(args, const struct client_interface_args, line);
}

static int client_interface_list(const struct command_args *args)
{
	return client_show_route(args, NULL, "/api/interfaces", client_interface_print_list);
}

/* ---- Figures --------------------------------------------------------------------------------- */

/* Three digits and a prefix: 1.25G, 80.0k, 999. */
static void client_interface_print_si(char to[FIGURE_BYTES], double figure)
{
	static const char prefixes[] = " kMGTPE";
	size_t at = 0;
	while (fabs(figure) >= 999.5 && at + 2 < sizeof(prefixes)) {
		figure /= 1000;
		at++;
	}
	double size = fabs(figure);
	int digits = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
	if (!at && figure == floor(figure))
		digits = 0;
	snprintf(to, FIGURE_BYTES, "%.*f%.1s", digits, figure, at ? &prefixes[at] : "");
}

/* Nothing where there is no number. */
static void client_interface_add_figure(const struct command_args *args, struct text_table *table,
					const struct json *number, double factor)
{
	char text[FIGURE_BYTES];
	if (!number || number->type != JSON_T_NUMBER) {
		text_table_add(table, SLICE(""));
	} else if (args->output == OUTPUT_TABLE) {
		client_interface_print_si(text, value_as_f64(number->number) * factor);
		text_table_add(table, slice_of(text));
	} else if (factor == 1) {
		text_table_add(table, number->text);
	} else {
		size_t len = number_print_f64(text, value_as_f64(number->number) * factor);
		text_table_add(table, (struct slice){text, len});
	}
}

static void client_interface_add_time(struct text_table *table, const struct json *seconds)
{
	char text[TIME_PRINT_MAX_BYTES];
	if (seconds && seconds->type == JSON_T_NUMBER)
		text_table_add(
			table,
			(struct slice){text, time_print(text, 1000 * (int64_t)value_as_f64(
									     seconds->number))});
	else
		text_table_add(table, SLICE(""));
}

static bool client_interface_counts_octets(struct slice endpoint)
{
	return slice_equal(endpoint, SLICE("in")) || slice_equal(endpoint, SLICE("out"));
}

/* Seconds, as /v2 wants them, of a duration; as it is where it is none. */
static const char *client_interface_seconds_of(const char *duration, char to[FIGURE_BYTES])
{
	int64_t ms;
	struct errbuf e;
	if (!duration || duration_parse(slice_of(duration), &ms, &e) || ms % 1000)
		return duration;
	snprintf(to, FIGURE_BYTES, "%lld", (long long)ms / 1000);
	return to;
}

/* ---- rates ----------------------------------------------------------------------------------- */

/* One column for each endpoint that the answer has; all have the same times. */
struct client_interface_rates {
	const struct json *columns[ENDPOINTS_MAX]; /* items of `data` */
	char titles[ENDPOINTS_MAX][TITLE_BYTES];
	double factors[ENDPOINTS_MAX];
	size_t count;
};

static struct slice client_interface_endpoint_of(const struct json *item)
{
	const struct json *path = json_member(item, "path");
	const struct json *endpoint = path ? json_member(path, "endpoint") : NULL;
	return endpoint ? endpoint->text : SLICE("");
}

/* `is_count`: the points are octets or packets, and not so many a second. */
static void client_interface_add_column(struct client_interface_rates *rates,
					const struct json *item, bool is_count)
{
	struct slice endpoint = client_interface_endpoint_of(item);
	bool octets = client_interface_counts_octets(endpoint);
	rates->factors[rates->count] = octets && !is_count ? 8 : 1;
	snprintf(rates->titles[rates->count], TITLE_BYTES, "%.*s%s", (int)endpoint.len,
		 endpoint.data,
		 is_count ? (octets ? " octets" : "")
		 : octets ? " bit/s"
			  : " /s");
	const struct json *data = json_member(item, "data");
	rates->columns[rates->count++] = data ? data->first : NULL;
}

static void client_interface_print_rates(const struct command_args *args,
					 const struct client_interface_rates *rates)
{
	const char *titles[ENDPOINTS_MAX + 1] = {"time"};
	const struct json *points[ENDPOINTS_MAX];
	struct text_table table;
	for (size_t i = 0; i < rates->count; i++) {
		titles[i + 1] = rates->titles[i];
		points[i] = rates->columns[i];
	}
	text_table_init(&table, rates->count + 1, titles);
	while (rates->count && points[0]) {
		client_interface_add_time(&table, json_member(points[0], "ts"));
		for (size_t i = 0; i < rates->count; i++) {
			const struct json *val = points[i] ? json_member(points[i], "val") : NULL;
			client_interface_add_figure(args, &table, val, rates->factors[i]);
			points[i] = points[i] ? points[i]->next : NULL;
		}
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

/* Whether all of it could be shown. */
static bool client_interface_print_answer(const struct command_args *args, const struct json *root)
{
	const struct client_interface_args *asked = client_interface_asked(args);
	const struct json *data = json_member(root, "data");
	bool is_count =
		asked->cf && (strcmp(asked->cf, "delta") == 0 || strcmp(asked->cf, "raw") == 0);
	struct client_interface_rates rates = {.count = 0};
	bool whole = true;
	for (const struct json *item = data ? data->first : NULL; item; item = item->next) {
		const struct json *error = json_member(item, "error");
		if (!error && rates.count < ENDPOINTS_MAX)
			client_interface_add_column(&rates, item, is_count);
		whole &= !error;
		if (error)
			command_complain(args, "%s %s %.*s: %.*s", asked->device, asked->interface,
					 (int)client_interface_endpoint_of(item).len,
					 client_interface_endpoint_of(item).data,
					 (int)error->text.len, error->text.data);
	}
	if (rates.count)
		client_interface_print_rates(args, &rates);
	return whole;
}

static void client_interface_write_endpoints(struct json_writer *w, const char *list)
{
	json_write_key(w, "endpoint");
	json_write_array_begin(w);
	for (const char *at = list; at;) {
		size_t len = strcspn(at, ",");
		json_write_string(w, (struct slice){at, len});
		at = at[len] ? at + len + 1 : NULL;
	}
	json_write_array_end(w);
}

static void client_interface_write_question(const struct client_interface_args *args,
					    struct buf *body)
{
	char seconds[FIGURE_BYTES];
	struct json_writer w;
	json_writer_init(&w, body);
	json_write_object_begin(&w);
	json_write_key(&w, "interfaces");
	json_write_array_begin(&w);
	json_write_object_begin(&w);
	json_put_text(&w, "device", args->device);
	json_put_text(&w, "iface", args->interface);
	json_write_object_end(&w);
	json_write_array_end(&w);
	client_interface_write_endpoints(&w, args->endpoint);
	client_put_text(&w, "begin", args->begin);
	client_put_text(&w, "end", args->end);
	client_put_text(&w, "agg", client_interface_seconds_of(args->agg, seconds));
	client_put_text(&w, "cf", args->cf);
	json_write_object_end(&w);
}

static int client_interface_show_answer(const struct command_args *args,
					const struct client_answer *answer)
{
	struct arena arena;
	struct json *root;
	struct errbuf e;
	if (args->output == OUTPUT_JSON) {
		client_print_body(answer);
		return EXIT_OK;
	}
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = json_parse(buf_slice(&answer->body), &arena, &root, &e);
	if (err)
		command_complain(args, "the answer cannot be read: %s", e.text);
	bool shown = !err && client_interface_print_answer(args, root);
	arena_release(&arena);
	return shown ? EXIT_OK : EXIT_FAILED;
}

static int client_interface_show_rates(const struct command_args *args)
{
	struct client_answer answer;
	struct buf body;
	buf_init(&body, BODY_MAX_BYTES);
	client_answer_init(&answer);
	client_interface_write_question(client_interface_asked(args), &body);
	int err = client_request(args, NULL, "/v2/bulk/interface/", "application/json",
				 buf_slice(&body), &answer);
	int status = err ? EXIT_FAILED : client_interface_show_answer(args, &answer);
	client_answer_release(&answer);
	buf_release(&body);
	return status;
}

/* ---- top ------------------------------------------------------------------------------------- */

static void client_interface_print_top(const struct command_args *args, const struct json *root,
				       UNUSED struct arena *arena)
{
	const struct json *endpoint = json_member(root, "endpoint"), *by = json_member(root, "by");
	const struct json *list = json_member(root, "children");
	bool octets = endpoint && client_interface_counts_octets(endpoint->text);
	bool volume = by && slice_equal(by->text, SLICE("volume"));
	char title[TITLE_BYTES];
	snprintf(title, sizeof(title), "%s%s", client_interface_asked(args)->endpoint,
		 volume   ? (octets ? " octets" : "")
		 : octets ? " bit/s"
			  : " /s");
	const char *const titles[] = {"device", "interface", "ifAlias", title, "time"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *item = list ? list->first : NULL; item; item = item->next) {
		for (size_t i = 0; i < 3; i++)
			text_table_add_member(&table, item, titles[i]);
		client_interface_add_figure(args, &table, json_member(item, "val"),
					    octets && !volume ? 8 : 1);
		client_interface_add_time(&table, json_member(item, "ts"));
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static int client_interface_top(const struct command_args *args)
{
	const char *agg = client_interface_asked(args)->agg;
	char seconds[FIGURE_BYTES];
	struct buf path;
	client_route(&path, args, "/v2/report/top");
	if (agg)
		client_param(&path, "agg", client_interface_seconds_of(agg, seconds));
	int status = client_show(args, NULL, path.data, args->output == OUTPUT_JSON,
				 client_interface_print_top);
	buf_release(&path);
	return status;
}

/* ---- percentile, volume ---------------------------------------------------------------------- */

/* A column of a report: a figure of each span, or of one of its objects. */
struct client_interface_figure {
	const char *title, *object, *member;
};

static void client_interface_print_spans(const struct command_args *args, const struct json *root,
					 const struct client_interface_figure *figures,
					 size_t count)
{
	const char *titles[16] = {"device", "interface", "span"};
	const struct json *list = json_member(root, "children");
	struct text_table table;
	for (size_t i = 0; i < count; i++)
		titles[i + 3] = figures[i].title;
	titles[count + 3] = "complete";
	text_table_init(&table, count + 4, titles);
	for (const struct json *item = list ? list->first : NULL; item; item = item->next) {
		const struct json *spans = json_member(item, "spans");
		for (const struct json *span = spans ? spans->first : NULL; span;
		     span = span->next) {
			text_table_add_member(&table, item, "device");
			text_table_add_member(&table, item, "interface");
			text_table_add_member(&table, span,
					      json_member(span, "day") ? "day" : "month");
			for (size_t i = 0; i < count; i++) {
				const struct json *of =
					figures[i].object ? json_member(span, figures[i].object)
							  : span;
				client_interface_add_figure(
					args, &table,
					of ? json_member(of, figures[i].member) : NULL, 1);
			}
			text_table_add_member(&table, span, "complete");
		}
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static void client_interface_print_percentiles(const struct command_args *args,
					       const struct json *root, UNUSED struct arena *arena)
{
	static const struct client_interface_figure figures[] = {
		{"in bit/s", NULL, "in"},         {"out bit/s", NULL, "out"},
		{"larger bit/s", NULL, "larger"}, {"bins", NULL, "bins"},
		{"bins in", NULL, "bins_in"},     {"bins out", NULL, "bins_out"},
	};
	client_interface_print_spans(args, root, figures, ARRAY_LEN(figures));
}

static void client_interface_print_volumes(const struct command_args *args, const struct json *root,
					   UNUSED struct arena *arena)
{
	static const struct client_interface_figure figures[] = {
		{"in octets", "in", "total"},
		{"out octets", "out", "total"},
		{"in covered s", "in", "covered_s"},
		{"out covered s", "out", "covered_s"},
	};
	client_interface_print_spans(args, root, figures, ARRAY_LEN(figures));
}

static int client_interface_percentile(const struct command_args *args)
{
	return client_show_route(args, NULL, "/v2/report/percentile",
				 client_interface_print_percentiles);
}

static int client_interface_volume(const struct command_args *args)
{
	return client_show_route(args, NULL, "/v2/report/volume", client_interface_print_volumes);
}

/* ---- The command ----------------------------------------------------------------------------- */

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_interface_args, field, __VA_ARGS__)

#define PARAM(type, field, ...) ROW(type, field, __VA_ARGS__, .param = #field)

#define INTERFACE_COMMON                                                                           \
	PARAM(time, begin, "--begin", "TIME",                                                      \
	      "rows that ended, or values, at that time or later"),                                \
		PARAM(time, end, "--end", "TIME", "rows that had begun, or values, by that time"), \
		CLIENT_SERVER, CLIENT_OUTPUT
#define INTERFACE_RATES                                                                            \
	ROW(text, agg, "--agg", "DURATION", "1h, 1d", .otherwise = "as it is polled"),             \
		PARAM(text, cf, "--cf", "NAME", "average, exact, min, max, delta, raw",            \
		      .otherwise = "average")
#define INTERFACE_SPANS                                                                            \
	PARAM(text, month, "--month", "MONTH", "such as 2026-10", .otherwise = "this month"),      \
		PARAM(text, span, "--span", "NAME", "day, month"),                                 \
		PARAM(text, zone, "--zone", "ZONE", "whose days, as Europe/Berlin",                \
		      .otherwise = "UTC"),                                                         \
		PARAM(text, percentile, "--percentile", "P", "which one", .otherwise = "95"),      \
		PARAM(text, missing, "--missing", "NAME", "skip, zero", .otherwise = "skip")

static const struct command_option client_interface_list_options[] = {
	PARAM(text, device, NULL, "DEVICE"),
	INTERFACE_COMMON,
};

static const struct command_option client_interface_rates_options[] = {
	PARAM(text, device, NULL, "DEVICE", .required = true),
	PARAM(text, interface, NULL, "INTERFACE", .required = true),
	PARAM(text, endpoint, "--endpoint", "NAME,...", "in, out, error/in and so on",
	      .preset = "in,out"),
	INTERFACE_RATES,
	INTERFACE_COMMON,
};

static const struct command_option client_interface_top_options[] = {
	PARAM(text, device, NULL, "DEVICE"),
	PARAM(text, endpoint, "--endpoint", "NAME", "in, out, error/in and so on", .preset = "in"),
	PARAM(text, by, "--by", "NAME", "average, max, volume", .otherwise = "average"),
	ROW(text, limit, "--limit", "N", "so many", .otherwise = "10", .param = "n"),
	INTERFACE_RATES,
	INTERFACE_COMMON,
};

static const struct command_option client_interface_span_options[] = {
	PARAM(text, device, NULL, "DEVICE", .required = true),
	PARAM(text, interface, NULL, "INTERFACE"),
	INTERFACE_SPANS,
	INTERFACE_COMMON,
};

static const struct command client_interface_verbs[] = {
	{.name = "interface list",
	 .summary = "the interfaces of a device or of all, as they are now; with --begin and --end "
		    "all their versions of that time",
	 COMMAND_TAKES(client_interface_list_options, client_interface_args),
	 .run = client_interface_list},
	{.name = "interface rates",
	 .summary = "what an interface carried, bin by bin; the last hour unless told otherwise",
	 COMMAND_TAKES(client_interface_rates_options, client_interface_args),
	 .run = client_interface_show_rates},
	{.name = "interface top",
	 .summary = "the interfaces with the highest rates, of a device or of all",
	 COMMAND_TAKES(client_interface_top_options, client_interface_args),
	 .run = client_interface_top},
	{.name = "interface percentile",
	 .summary = "the 95th percentile of five minutes, by month",
	 COMMAND_TAKES(client_interface_span_options, client_interface_args),
	 .run = client_interface_percentile},
	{.name = "interface volume",
	 .summary = "octets by day",
	 COMMAND_TAKES(client_interface_span_options, client_interface_args),
	 .run = client_interface_volume},
};

const struct command client_interface = {
	.name = "interface",
	.summary = "print interfaces, their rates, percentiles and volumes",
	.about = "A table has SI prefixes (1.25G is 1,250,000,000), csv whole numbers. An empty "
		 "place: nobody measured that.\n",
	.examples = "granary interface rates rtr_a xe-0/0/0 --begin 15m-ago\n"
		    "granary interface rates rtr_a xe-0/0/0 --agg 1h --cf max --begin 1d-ago\n"
		    "granary interface top --endpoint out --limit 5\n"
		    "granary interface percentile rtr_a xe-0/0/0 --month 2026-10 --zone "
		    "Europe/Berlin\n"
		    "granary interface volume rtr_a --begin 2026-10-01 --end 2026-10-07\n",
	COMMAND_VERBS(client_interface_verbs),
};
