/* metric: what is known of one metric, and what people say of it. */
#include "cmd/client.h"
#include "cmd/client_private.h"

enum { SAID_MAX_BYTES = 1 << 20 };

struct client_metric_args {
	struct command_args line;
	const char *metric, *kind, *unit, *description;
};

static void client_metric_print(const struct command_args *args, const struct json *root,
				UNUSED struct arena *arena)
{
	static const char *const titles[] = {"metricName", "kind", "unit", "aggregators",
					     "description"};
	text_table_print_list(root, titles, ARRAY_LEN(titles), args->output);
}

static int client_metric_show(const struct command_args *args)
{
	return client_show_route(args, NULL, "/api/metadata/metric", client_metric_print);
}

static void client_metric_body(const struct client_metric_args *args, struct buf *body)
{
	struct json_writer json;
	buf_init(body, SAID_MAX_BYTES);
	json_writer_init(&json, body);
	json_write_object_begin(&json);
	client_put_text(&json, "kind", args->kind);
	client_put_text(&json, "unit", args->unit);
	client_put_text(&json, "description", args->description);
	json_write_object_end(&json);
}

static int client_metric_set(const struct command_args *args)
{
	const struct client_metric_args *said =
		CONTAINER_OF(args, const struct client_metric_args, line);
	struct client_answer answer;
	struct buf path, body;
	if (!said->kind && !said->unit && !said->description) {
		command_usage(args, "--kind, --unit or --description is missing");
		return EXIT_WRONG_USE;
	}
	client_answer_init(&answer);
	client_route(&path, args, "/api/metadata/metric");
	client_metric_body(said, &body);
	int err = client_request(args, "PUT", path.data, "application/json", buf_slice(&body),
				 &answer);
	buf_release(&body);
	buf_release(&path);
	client_answer_release(&answer);
	return err ? EXIT_FAILED : EXIT_OK;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_metric_args, field, __VA_ARGS__)
static const struct command_option client_metric_show_options[] = {
	ROW(text, metric, NULL, "METRIC", .required = true, .param = "metricName"),
	CLIENT_TENANT("whose metric"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_metric_set_options[] = {
	ROW(text, metric, NULL, "METRIC", .required = true, .param = "metricName"),
	ROW(text, kind, "--kind", "KIND", "gauge, counter or rate"),
	ROW(text, unit, "--unit", "UNIT",
	    "as people write it, such as bytes, % or 1/s; at most 64 bytes"),
	ROW(text, description, "--description", "TEXT", "one line, at most 1,024 bytes"),
	CLIENT_TENANT("whose metric"),
	CLIENT_SERVER,
};

static const struct command client_metric_verbs[] = {
	{.name = "metric show",
	 .summary = "kind, unit, description and aggregators of a metric",
	 COMMAND_TAKES(client_metric_show_options, client_metric_args),
	 .run = client_metric_show},
	{.name = "metric set",
	 .summary = "says what its kind and unit are and what it is; goes before what the server "
		    "takes them for, and an empty text takes back what was said before",
	 COMMAND_TAKES(client_metric_set_options, client_metric_args),
	 .run = client_metric_set},
};

const struct command client_metric = {
	.name = "metric",
	.summary = "print what is known of a metric; say its kind, unit and description",
	.examples = "granary metric show SystemMetrics.LoadAverage.1 --tenant host\n"
		    "granary metric set cpu_idle --unit % --description 'time without work'\n",
	COMMAND_VERBS(client_metric_verbs),
};
