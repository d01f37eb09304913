#include "cmd/client.h"
#include "cmd/client_private.h"

struct client_series_args {
	struct command_args line;
	const char *metric; /* NULL: the names of all */
	struct command_words tags;
};

static void client_series_print_names(const struct command_args *args, const struct json *list)
{
	static const char *const titles[] = {"metric"};
	struct text_table table;

	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *name = list->first; name; name = name->next)
		text_table_add(&table, name->text);
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static void client_series_print(const struct command_args *args, const struct json *list)
{
	static const char *const titles[] = {"series",    "kind",     "unit",
					     "firstSeen", "lastSeen", "aggregators"};
	struct text_table table;

	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *series = list->first; series; series = series->next) {
		text_table_add_member(&table, series, "seriesSet");
		for (size_t i = 1; i < ARRAY_LEN(titles); i++)
			text_table_add_member(&table, series, titles[i]);
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static void client_series_print_either(const struct command_args *args, const struct json *root,
				       UNUSED struct arena *arena)
{
	if (CONTAINER_OF(args, const struct client_series_args, line)->metric)
		client_series_print(args, root);
	else
		client_series_print_names(args, root);
}

static int client_series_run(const struct command_args *args)
{
	bool all = !CONTAINER_OF(args, const struct client_series_args, line)->metric;
	return client_show_route(args, NULL,
				 all ? "/api/metadata/metricNames" : "/api/metadata/series",
				 client_series_print_either);
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_series_args, field, __VA_ARGS__)
static const struct command_option client_series_options[] = {
	ROW(text, metric, NULL, "METRIC", "whose series; without it the names of all metrics",
	    .param = "metricName"),
	ROW(tag, tags, NULL, "TAG=VALUE", "must match, each (stars and bars as in `granary query`)",
	    .words_max = CLIENT_TAGS_MAX, .param = "tag"),
	CLIENT_TENANT("whose series; this machine's own metrics: host"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

const struct command client_series = {
	.name = "series",
	.summary = "print what there is: metrics and series",
	.about = "Without a metric: the names of all metrics of the tenant. With one: its series "
		 "that match, with what is known of them; aggregators: raw, and what its roll-ups "
		 "can be asked for (`granary query --aggregator`).\n",
	.examples = "granary series --tenant host\n"
		    "granary series SystemMetrics.cpu.user --tenant host\n"
		    "granary series cpu_idle 'host=web-*' -o json\n",
	COMMAND_TAKES(client_series_options, client_series_args),
	.run = client_series_run,
};
