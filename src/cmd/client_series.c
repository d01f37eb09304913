#include "cmd/client.h"
#include "cmd/client_private.h"

const char client_series_help[] =
	"usage: granary series [METRIC [TAG=VALUE...]] [options]\n"
	"\n"
	"Without a metric: the names of all metrics of the tenant. With one: its series that "
	"match\n"
	"every TAG=VALUE (stars and bars as in `granary query`), with what is known of them;\n"
	"aggregators: raw, and what its roll-ups can be asked for (`granary query --aggregator`).\n"
	"\n"
	"  --tenant NAME   whose series (default `default`; this machine's own metrics: `host`)\n"
	"  --server URL    where the server is (default http://127.0.0.1:8470)\n"
	"  -o FORMAT       table, csv or json; default: a table on a terminal, else csv\n"
	"\n"
	"Examples:\n"
	"  granary series --tenant host\n"
	"  granary series SystemMetrics.cpu.user --tenant host\n"
	"  granary series cpu_idle 'host=web-*' -o json\n";

static const struct client_command command = {
	.name = "series",
	.help = client_series_help,
	.options = OPTION_SERVER | OPTION_TENANT | OPTION_OUTPUT,
	.words_max = CLIENT_WORDS_MAX,
};

static void put_path(const struct client_args *args, struct buf *path)
{
	buf_append_text(path,
			args->word_count ? "/api/metadata/series" : "/api/metadata/metricNames");
	client_series_params(path, args);
	buf_append_char(path, '\0');
}

static void print_names(const struct client_args *args, const struct json *list)
{
	static const char *const titles[] = {"metric"};
	struct text_table table;

	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *name = list->first; name; name = name->next)
		text_table_add(&table, name->text);
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static void print_series(const struct client_args *args, const struct json *list)
{
	static const char *const titles[] = {"series",    "kind",     "unit",
					     "firstSeen", "lastSeen", "aggregators"};
	struct text_table table;

	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *series = list->first; series; series = series->next) {
		text_table_add_member(&table, series, "seriesSet");
		for (size_t i = 1; i + 1 < ARRAY_LEN(titles); i++)
			text_table_add_member(&table, series, titles[i]);
		text_table_add_names(&table, series, "aggregators");
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static void print_list(const struct client_args *args, const struct json *root,
		       UNUSED struct arena *arena)
{
	if (args->word_count)
		print_series(args, root);
	else
		print_names(args, root);
}

int client_series(int argc, char *const *argv)
{
	struct client_args args;
	struct buf path;
	int err = client_parse_series(&command, argc, argv, &args);

	if (err)
		return client_parse_exit(err);
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	put_path(&args, &path);
	int status = client_show(&args, path.data, args.output == OUTPUT_JSON, print_list);
	buf_release(&path);
	return status;
}
