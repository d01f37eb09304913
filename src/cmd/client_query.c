#include "cmd/client.h"
#include "cmd/client_private.h"
#include "model/series.h"

enum { EXPLAIN_MAX_BYTES = 64 << 10 };

struct client_query_args {
	struct command_args line;
	const char *metric;
	struct command_words tags;
	const char *start, *end, *fn, *window, *points, *fill, *agg, *by, *aggregator, *granularity;
	bool explain;
};

/* `--by a,b` as `by=a&by=b`. */
static void client_query_put_by(const char *by, struct buf *path)
{
	char key[TAG_KEY_MAX_BYTES + 2];

	for (const char *at = by; at;) {
		const char *comma = strchr(at, ',');
		size_t len = comma ? (size_t)(comma - at) : strlen(at);
		snprintf(key, sizeof(key), "%.*s", (int)len, at);
		client_param(path, "by", key);
		at = comma ? comma + 1 : NULL;
	}
}

/* ---- The table: time, one column for each tag key that occurs, value ------------------------ */

struct client_query_keys {
	const char *titles[TAGS_MAX + 2];
	size_t count;
};

static bool client_query_has_key(const struct client_query_keys *keys, struct slice key)
{
	for (size_t i = 1; i < keys->count; i++) {
		if (slice_equal(slice_of(keys->titles[i]), key))
			return true;
	}
	return false;
}

static void client_query_collect_keys(struct client_query_keys *keys, const struct json *list,
				      struct arena *arena)
{
	keys->titles[keys->count++] = "time";
	for (const struct json *series = list->first; series; series = series->next) {
		const struct json *tags = json_member(series, "tags");
		const struct json *tag = tags ? tags->first : NULL;
		for (; tag && keys->count <= TAGS_MAX; tag = tag->next) {
			if (client_query_has_key(keys, tag->key))
				continue;
			const char *title = arena_copy(arena, tag->key).data;
			if (title)
				keys->titles[keys->count++] = title;
		}
	}
	keys->titles[keys->count++] = "value";
}

static void client_query_add_series(struct text_table *table, const struct client_query_keys *keys,
				    const struct json *series)
{
	const struct json *tags = json_member(series, "tags");
	const struct json *values = json_member(series, "values");

	for (const struct json *value = values ? values->first : NULL; value; value = value->next) {
		text_table_add(table, value->key);
		for (size_t i = 1; i + 1 < keys->count; i++) {
			const struct json *tag = json_member(tags, keys->titles[i]);
			text_table_add(table, tag ? tag->text : SLICE(""));
		}
		text_table_add(table, value->type == JSON_T_NUMBER ? value->text : SLICE("-"));
	}
}

/* `name value` pairs on standard error, behind the table. The granularities stand in a line of
 * their own.
 */
static void client_query_print_explain(const struct json *explain)
{
	struct buf line;
	buf_init(&line, EXPLAIN_MAX_BYTES);
	for (const struct json *one = explain->first; one; one = one->next) {
		if (one->type != JSON_T_ARRAY)
			buf_printf(&line, " %.*s %.*s", (int)one->key.len, one->key.data,
				   (int)one->text.len, one->text.data);
	}
	terminal_complain("read:%.*s", (int)line.len, line.len ? line.data : "");
	buf_release(&line);
}

static void client_query_print_table(const struct command_args *args, const struct json *root,
				     struct arena *arena)
{
	struct client_query_keys keys = {.count = 0};
	struct text_table table;

	const struct client_query_args *query =
		CONTAINER_OF(args, const struct client_query_args, line);
	const struct json *explain = query->explain ? json_member(root, "explain") : NULL;
	const struct json *list = explain ? json_member(root, "result") : root;

	if (!list)
		return;
	client_query_collect_keys(&keys, list, arena);
	text_table_init(&table, keys.count, keys.titles);
	for (const struct json *series = list->first; series; series = series->next)
		client_query_add_series(&table, &keys, series);
	text_table_print(&table, args->output);
	text_table_release(&table);
	if (explain)
		client_query_print_explain(explain);
}

static int client_query_run(const struct command_args *args)
{
	const struct client_query_args *query =
		CONTAINER_OF(args, const struct client_query_args, line);
	struct buf path;

	client_route(&path, args, "/api/query");
	client_query_put_by(query->by, &path);
	if (query->explain)
		client_param(&path, "explain", "1");
	if (args->output == OUTPUT_CSV)
		client_param(&path, "format", "csv");
	int status = client_show(args, NULL, path.data, args->output != OUTPUT_TABLE,
				 client_query_print_table);
	buf_release(&path);
	return status;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_query_args, field, __VA_ARGS__)

#define PARAM(type, field, ...) ROW(type, field, __VA_ARGS__, .param = #field)

static const struct command_option client_query_options[] = {
	ROW(text, metric, NULL, "METRIC", .required = true, .param = "metricName"),
	ROW(tag, tags, NULL, "TAG=VALUE",
	    "must match, each; VALUE may hold stars for any run of characters and alternatives "
	    "between bars",
	    .words_max = CLIENT_TAGS_MAX, .param = "tag"),
	PARAM(time, start, "--start", "TIME", "first time that counts", .preset = "1h-ago"),
	PARAM(time, end, "--end", "TIME", "first time that no longer counts", .otherwise = "now"),
	PARAM(text, fn, "--fn", "NAME",
	      "compute over time: min, max, sum, avg, count, first, last, increase, rate"),
	PARAM(text, window, "--window", "DURATION",
	      "how much time one computed value covers, as 5m or 1h; --fn last without it gives "
	      "the "
	      "newest sample of each series"),
	PARAM(text, points, "--points", "N",
	      "instead of --window: at most so many points of each series"),
	PARAM(text, fill, "--fill", "NAME", "what windows without samples get: none, null, zero"),
	PARAM(text, agg, "--agg", "NAME",
	      "several series in one, at equal times: min, max, sum, avg, count"),
	ROW(text, by, "--by", "KEY,...",
	    "with --agg: one series for each combination of these tags"),
	PARAM(text, aggregator, "--aggregator", "NAME",
	      "roll-ups as they are stored: min, max, sum, avg, count, increase"),
	PARAM(text, granularity, "--granularity", "DURATION", "which of them, as 5m",
	      .otherwise = "the finest that goes back to start"),
	ROW(flag, explain, "--explain", NULL, "also say what was read for the answer"),
	CLIENT_TENANT("whose data; this machine's own metrics: host"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

const struct command client_query = {
	.name = "query",
	.summary = "print samples",
	.about = "Prints the samples of a metric. After a table a line on standard error says "
		 "whether raw data or roll-ups answered.\n"
		 "Exit status: 0 answered, 1 there is no such metric, or the server refused it, "
		 "as it does wrong values, or cannot be reached, 2 wrong use: the command line "
		 "cannot be read.\n",
	.examples = "granary query SystemMetrics.LoadAverage.1 --tenant host --start 5m-ago\n"
		    "granary query cpu_idle os=linux 'host=web-*' --start 1d-ago -o json\n"
		    "granary query cpu_idle --fn avg --window 1h --start 7d-ago\n"
		    "granary query cpu_idle --fn avg --window 1h --agg avg --by host --start "
		    "7d-ago\n",
	COMMAND_TAKES(client_query_options, client_query_args),
	.run = client_query_run,
};
