#include <unistd.h>

#include "base/clock.h"
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "model/series.h"
#include "wire/number.h"
#include "wire/timetext.h"

enum { STDIN_MAX_BYTES = 512 << 20, READ_BYTES = 1 << 20 };

struct client_put_args {
	struct command_args line;
	const char *metric, *value, *time;
	struct command_words tags;
};

static int client_put_read_number(const struct client_put_args *args, struct value *number)
{
	const char *text = args->value;
	int err = number_parse_json(slice_of(text), number);

	if (err)
		command_complain(&args->line, "%s is not a number%s", text,
				 err == ERR_LIMIT ? " that can be stored" : "");
	return err;
}

static int client_put_read_time(const struct client_put_args *args, int64_t *ts_ms)
{
	int64_t now_ms = clock_wall_ms(clock_real());
	struct errbuf e;

	*ts_ms = now_ms;
	if (!args->time)
		return 0;
	int err = time_parse(slice_of(args->time), now_ms, ts_ms, &e);
	if (err)
		command_complain(&args->line, "%s", e.text);
	return err;
}

/* The time as text: a number would be taken for seconds before September 2001. */
static void client_put_write_point(const struct client_put_args *args, struct value number,
				   int64_t ts_ms, struct buf *out)
{
	char time[TIME_PRINT_MAX_BYTES];
	struct json_writer writer;

	json_writer_init(&writer, out);
	json_write_object_begin(&writer);
	json_put_text(&writer, "metric", args->metric);
	json_put_string(&writer, "timestamp", (struct slice){time, time_print(time, ts_ms)});
	json_put_number(&writer, "value", number);
	json_write_key(&writer, "tags");
	json_write_object_begin(&writer);
	for (size_t i = 0; i < args->tags.count; i++) {
		const char *word = args->tags.items[i], *equals = strchr(word, '=');
		json_write_key_slice(&writer, (struct slice){word, (size_t)(equals - word)});
		json_write_text(&writer, equals + 1);
	}
	json_write_object_end(&writer);
	json_write_object_end(&writer);
}

static int client_put_post(const struct command_args *args, const char *path, const char *type,
			   struct slice body)
{
	struct client_answer answer;

	client_answer_init(&answer);
	int err = client_request(args, NULL, path, type, body, &answer);
	client_answer_release(&answer);
	return err;
}

static int client_put_one(const struct client_put_args *args)
{
	struct value number;
	struct buf body;
	int64_t ts_ms;
	int err = client_put_read_number(args, &number);

	if (!err)
		err = client_put_read_time(args, &ts_ms);
	if (err)
		return err;
	buf_init(&body, 1 << 20);
	client_put_write_point(args, number, ts_ms, &body);
	err = client_put_post(&args->line, "/api/put?details", "application/json",
			      buf_slice(&body));
	buf_release(&body);
	return err;
}

static int client_put_read_input(const struct command_args *args, struct buf *body)
{
	for (;;) {
		char *room = buf_reserve(body, READ_BYTES);
		if (!room) {
			command_complain(args, "standard input holds more than %d bytes",
					 STDIN_MAX_BYTES);
			return ERR_LIMIT;
		}
		size_t n = fread(room, 1, READ_BYTES, stdin);
		body->len += n;
		if (n < READ_BYTES)
			return ferror(stdin) ? ERR_INVALID : 0;
	}
}

static int client_put_lines(const struct command_args *args)
{
	struct buf body;

	buf_init(&body, STDIN_MAX_BYTES);
	int err = client_put_read_input(args, &body);
	if (!err)
		err = client_put_post(args, "/write", "text/plain", buf_slice(&body));
	buf_release(&body);
	return err;
}

static int client_put_run(const struct command_args *args)
{
	const struct client_put_args *put = CONTAINER_OF(args, const struct client_put_args, line);
	bool lines = strcmp(put->metric, "-") == 0;
	int err = 0;

	if (lines && (put->value || put->time))
		err = command_usage(args, "lines have their own names and times");
	else if (!lines && !put->value)
		err = command_usage(args, "VALUE is missing");
	if (err)
		return EXIT_WRONG_USE;
	return (lines ? client_put_lines(args) : client_put_one(put)) ? EXIT_FAILED : EXIT_OK;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_put_args, field, __VA_ARGS__)
static const struct command_option client_put_options[] = {
	ROW(text, metric, NULL, "METRIC", "its metric; a dash: lines from standard input",
	    .required = true),
	ROW(text, value, NULL, "VALUE", "a number"),
	ROW(tag, tags, NULL, "TAG=VALUE", "what tells its series from others",
	    .words_max = TAGS_MAX),
	ROW(time, time, "--time", "TIME", "when it was measured", .otherwise = "now"),
	CLIENT_TENANT("whose data it is"),
	CLIENT_SERVER,
};

const struct command client_put = {
	.name = "put",
	.summary = "store samples",
	.about = "Stores one sample; or, with a dash, the Influx line protocol that standard "
		 "input holds. When it returns with status 0 the data is on disk.\n",
	.examples = "granary put room.temperature 21.5 room=kitchen\n"
		    "granary put room.temperature 19 room=cellar --time 2020-08-24T16:34:05Z\n"
		    "granary put - < lines.txt\n",
	COMMAND_TAKES(client_put_options, client_put_args),
	.run = client_put_run,
};
