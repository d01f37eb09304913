/* metric: what is known of one metric, and what people say of it. */
#include "cmd/client.h"
#include "cmd/client_private.h"

enum { SAID_MAX_BYTES = 1 << 20 };

const char client_metric_help[] =
	"usage: granary metric show METRIC [options]\n"
	"       granary metric set METRIC [--kind KIND] [--unit UNIT] [--description TEXT]\n"
	"\n"
	"show     kind, unit, description and aggregators of a metric\n"
	"set      says what its kind and unit are and what it is; goes before what the server\n"
	"         takes them for, and an empty text takes back what was said before\n"
	"\n"
	"  --kind KIND         gauge, counter or rate\n"
	"  --unit UNIT         as people write it, such as bytes, % or 1/s; at most 64 bytes\n"
	"  --description TEXT  one line, at most 1,024 bytes\n"
	"  --tenant NAME       whose metric (default `default`)\n"
	"  --server URL        where the server is (default http://127.0.0.1:8470)\n"
	"  -o FORMAT           show: table, csv or json; default: a table on a terminal, else csv\n"
	"\n"
	"Examples:\n"
	"  granary metric show SystemMetrics.LoadAverage.1 --tenant host\n"
	"  granary metric set cpu_idle --unit % --description 'time without work'\n";

static void metric_path(const struct client_args *args, struct buf *path)
{
	buf_init(path, CLIENT_PATH_MAX_BYTES);
	buf_append_text(path, "/api/metadata/metric");
	client_series_params(path, args);
	buf_append_char(path, 0);
}

static void metric_print(const struct client_args *args, const struct json *root,
			 UNUSED struct arena *arena)
{
	static const char *const titles[] = {"metricName", "kind", "unit", "aggregators",
					     "description"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
		if (strcmp(titles[i], "aggregators") == 0)
			text_table_add_names(&table, root, titles[i]);
		else
			text_table_add_member(&table, root, titles[i]);
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static int metric_show(const struct client_args *args)
{
	struct buf path;
	metric_path(args, &path);
	int status = client_show(args, path.data, args->output == OUTPUT_JSON, metric_print);
	buf_release(&path);
	return status;
}

static void metric_body(const struct client_args *args, struct buf *body)
{
	const struct client_value said[] = {
		{"kind", args->kind}, {"unit", args->unit}, {"description", args->description}};
	struct json_writer json;
	buf_init(body, SAID_MAX_BYTES);
	json_writer_init(&json, body);
	json_write_object_begin(&json);
	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		if (said[i].value)
			json_put_text(&json, said[i].name, said[i].value);
	}
	json_write_object_end(&json);
}

static int metric_set(const struct client_args *args)
{
	struct client_args sent = *args;
	struct client_answer answer;
	struct buf path, body;
	if (!args->kind && !args->unit && !args->description) {
		client_usage(args, "--kind, --unit or --description is missing");
		return CLIENT_USAGE;
	}
	sent.method = "PUT";
	client_answer_init(&answer);
	metric_path(args, &path);
	metric_body(args, &body);
	int err = client_request(&sent, path.data, "application/json", buf_slice(&body), &answer);
	buf_release(&body);
	buf_release(&path);
	client_answer_release(&answer);
	return err ? CLIENT_FAILED : CLIENT_OK;
}

static const struct client_verb verbs[] = {
	{"show",
	 metric_show,
	 {.name = "metric show",
	  .help = client_metric_help,
	  .options = OPTION_SERVER | OPTION_TENANT | OPTION_OUTPUT,
	  .words_min = 1,
	  .words_max = 1}},
	{"set",
	 metric_set,
	 {.name = "metric set",
	  .help = client_metric_help,
	  .options = OPTION_SERVER | OPTION_TENANT | OPTION_SAYINGS,
	  .words_min = 1,
	  .words_max = 1}},
};

int client_metric(int argc, char *const *argv)
{
	return client_run_verb("metric", client_metric_help, verbs, ARRAY_LEN(verbs), argc, argv);
}
