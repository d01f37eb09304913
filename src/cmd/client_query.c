#include "cmd/client.h"
#include "cmd/client_private.h"
#include "model/series.h"

enum { EXPLAIN_MAX_BYTES = 64 << 10 };

const char client_query_help[] =
	"usage: granary query METRIC [TAG=VALUE...] [options]\n"
	"\n"
	"Prints the samples of a metric. Every TAG=VALUE must match; VALUE may hold stars for any\n"
	"run of characters and alternatives between bars.\n"
	"Behind a table a line on standard error says whether raw data or roll-ups answered.\n"
	"\n"
	"  --start TIME    first time that counts (default 1h-ago)\n"
	"  --end TIME      first time that no longer counts (default now)\n"
	"  --fn NAME       compute over time: min, max, sum, avg, count, first, last, increase, "
	"rate\n"
	"  --window TIME   how much time one computed value covers, as 5m or 1h; --fn last "
	"without\n"
	"                  it gives the newest sample of each series\n"
	"  --points N      instead of --window: at most so many points of each series\n"
	"  --fill NAME     what windows without samples get: none, null, zero\n"
	"  --agg NAME      several series in one, at equal times: min, max, sum, avg, count\n"
	"  --by KEY,...    with --agg: one series for each combination of these tags\n"
	"  --aggregator NAME   roll-ups as they are stored: min, max, sum, avg, count, increase\n"
	"  --granularity TIME  which of them, as 5m; default the finest that goes back to start\n"
	"  --explain       also say what was read for the answer\n"
	"  --tenant NAME   whose data (default `default`; this machine's own metrics: `host`)\n"
	"  --server URL    where the server is (default http://127.0.0.1:8470)\n"
	"  -o FORMAT       table, csv or json; default: a table on a terminal, else csv\n"
	"\n"
	"TIME is ISO 8601 (2020-08-24T16:34:05Z), seconds or milliseconds since 1970, now, or a\n"
	"time ago: 90s-ago, 5m-ago, 1h-ago, 7d-ago.\n"
	"\n"
	"Exit status: 0 answered, 1 there is no such metric, or the server refused it, as it does\n"
	"wrong values, or cannot be reached, 2 wrong use: the command line cannot be read.\n"
	"\n"
	"Examples:\n"
	"  granary query SystemMetrics.LoadAverage.1 --tenant host --start 5m-ago\n"
	"  granary query cpu_idle os=linux 'host=web-*' --start 1d-ago -o json\n"
	"  granary query cpu_idle --fn avg --window 1h --start 7d-ago\n"
	"  granary query cpu_idle --fn avg --window 1h --agg avg --by host --start 7d-ago\n";

static const struct client_command command = {
	.name = "query",
	.help = client_query_help,
	.options = OPTION_SERVER | OPTION_TENANT | OPTION_OUTPUT | OPTION_START | OPTION_END |
		   OPTION_FN | OPTION_WINDOW | OPTION_AGG | OPTION_BY | OPTION_EXPLAIN |
		   OPTION_GRANULARITIES,
	.words_min = 1,
	.words_max = CLIENT_WORDS_MAX,
};

/* `--by a,b` as `by=a&by=b`. */
static void put_by(const char *by, struct buf *path)
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

static void put_path(const struct client_args *args, struct buf *path)
{
	buf_append_text(path, "/api/query");
	client_series_params(path, args);
	client_param(path, "start", args->start ? args->start : "1h-ago");
	if (args->end)
		client_param(path, "end", args->end);
	const struct client_value values[] = {{"fn", args->fn},
					      {"window", args->window},
					      {"points", args->points},
					      {"fill", args->fill},
					      {"agg", args->agg},
					      {"aggregator", args->aggregator},
					      {"granularity", args->granularity}};
	client_params(path, values, ARRAY_LEN(values));
	put_by(args->by, path);
	if (args->explain)
		client_param(path, "explain", "1");
	if (args->output == OUTPUT_CSV)
		client_param(path, "format", "csv");
	buf_append_char(path, '\0');
}

/* ---- The table: time, one column for each tag key that occurs, value ------------------------ */

struct keys {
	const char *titles[TAGS_MAX + 2];
	size_t count;
};

static bool keys_has(const struct keys *keys, struct slice key)
{
	for (size_t i = 1; i < keys->count; i++) {
		if (slice_equal(slice_of(keys->titles[i]), key))
			return true;
	}
	return false;
}

static void keys_collect(struct keys *keys, const struct json *list, struct arena *arena)
{
	keys->titles[keys->count++] = "time";
	for (const struct json *series = list->first; series; series = series->next) {
		const struct json *tags = json_member(series, "tags");
		const struct json *tag = tags ? tags->first : NULL;
		for (; tag && keys->count <= TAGS_MAX; tag = tag->next) {
			if (keys_has(keys, tag->key))
				continue;
			const char *title = arena_copy(arena, tag->key).data;
			if (title)
				keys->titles[keys->count++] = title;
		}
	}
	keys->titles[keys->count++] = "value";
}

static void add_series(struct text_table *table, const struct keys *keys, const struct json *series)
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
static void print_explain(const struct json *explain)
{
	struct buf line;
	buf_init(&line, EXPLAIN_MAX_BYTES);
	for (const struct json *one = explain->first; one; one = one->next) {
		if (one->type != JSON_T_ARRAY)
			buf_printf(&line, " %.*s %.*s", (int)one->key.len, one->key.data,
				   (int)one->text.len, one->text.data);
	}
	visible_complain("read:%.*s", (int)line.len, line.len ? line.data : "");
	buf_release(&line);
}

static void print_table(const struct client_args *args, const struct json *root,
			struct arena *arena)
{
	struct keys keys = {.count = 0};
	struct text_table table;

	const struct json *explain = args->explain ? json_member(root, "explain") : NULL;
	const struct json *list = explain ? json_member(root, "result") : root;

	if (!list)
		return;
	keys_collect(&keys, list, arena);
	text_table_init(&table, keys.count, keys.titles);
	for (const struct json *series = list->first; series; series = series->next)
		add_series(&table, &keys, series);
	text_table_print(&table, args->output);
	text_table_release(&table);
	if (explain)
		print_explain(explain);
}

int client_query(int argc, char *const *argv)
{
	struct client_args args;
	struct buf path;
	int err = client_parse_series(&command, argc, argv, &args);

	if (err)
		return client_parse_exit(err);
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	put_path(&args, &path);
	int status = client_show(&args, path.data, args.output != OUTPUT_TABLE, print_table);
	buf_release(&path);
	return status;
}
