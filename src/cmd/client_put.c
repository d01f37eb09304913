#include <unistd.h>

#include "base/clock.h"
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "model/series.h"
#include "wire/number.h"
#include "wire/timetext.h"

enum { STDIN_MAX_BYTES = 512 << 20, READ_BYTES = 1 << 20 };

const char client_put_help[] =
	"usage: granary put METRIC VALUE [TAG=VALUE...] [options]\n"
	"       granary put - [options] < LINES\n"
	"\n"
	"Stores one sample; or, with a dash, the Influx line protocol that standard input holds.\n"
	"When it returns with status 0 the data is on disk.\n"
	"\n"
	"  --time TIME     when it was measured (default now); forms as in `granary query`\n"
	"  --tenant NAME   whose data it is (default `default`)\n"
	"  --server URL    where the server is (default http://127.0.0.1:8470)\n"
	"\n"
	"Examples:\n"
	"  granary put room.temperature 21.5 room=kitchen\n"
	"  granary put room.temperature 19 room=cellar --time 2020-08-24T16:34:05Z\n"
	"  granary put - < lines.txt\n";

static const struct client_command command = {
	.name = "put",
	.help = client_put_help,
	.options = OPTION_SERVER | OPTION_TENANT | OPTION_TIME,
	.words_min = 1,
	.words_max = 2 + TAGS_MAX,
};

static int read_number(const struct client_args *args, struct value *number)
{
	const char *text = args->words[1];
	int err = number_parse_json(slice_of(text), number);

	if (err)
		client_complain(args, "%s is not a number%s", text,
				err == ERR_LIMIT ? " that can be stored" : "");
	return err;
}

static int read_time(const struct client_args *args, int64_t *ts_ms)
{
	int64_t now_ms = clock_wall_ms(clock_real());
	struct errbuf e;

	*ts_ms = now_ms;
	if (!args->time)
		return 0;
	int err = time_parse(slice_of(args->time), now_ms, ts_ms, &e);
	if (err)
		client_complain(args, "%s", e.text);
	return err;
}

/* The time as text: a number would be taken for seconds before September 2001. */
static void write_point(const struct client_args *args, struct value number, int64_t ts_ms,
			struct buf *out)
{
	char time[TIME_PRINT_MAX_BYTES];
	struct json_writer writer;

	json_writer_init(&writer, out);
	json_write_object_begin(&writer);
	json_put_text(&writer, "metric", args->words[0]);
	json_put_string(&writer, "timestamp", (struct slice){time, time_print(time, ts_ms)});
	json_put_number(&writer, "value", number);
	json_write_key(&writer, "tags");
	json_write_object_begin(&writer);
	for (size_t i = 2; i < args->word_count; i++) {
		const char *word = args->words[i], *equals = strchr(word, '=');
		json_write_key_slice(&writer, (struct slice){word, (size_t)(equals - word)});
		json_write_text(&writer, equals + 1);
	}
	json_write_object_end(&writer);
	json_write_object_end(&writer);
}

static int post(const struct client_args *args, const char *path, const char *type,
		struct slice body)
{
	struct client_answer answer;

	client_answer_init(&answer);
	int err = client_request(args, path, type, body, &answer);
	client_answer_release(&answer);
	return err;
}

static int put_one(const struct client_args *args)
{
	struct value number;
	struct buf body;
	int64_t ts_ms;
	int err = read_number(args, &number);

	if (!err)
		err = read_time(args, &ts_ms);
	if (err)
		return err;
	buf_init(&body, 1 << 20);
	write_point(args, number, ts_ms, &body);
	err = post(args, "/api/put?details", "application/json", buf_slice(&body));
	buf_release(&body);
	return err;
}

static int read_input(const struct client_args *args, struct buf *body)
{
	for (;;) {
		char *room = buf_reserve(body, READ_BYTES);
		if (!room) {
			client_complain(args, "standard input holds more than %d bytes",
					STDIN_MAX_BYTES);
			return ERR_LIMIT;
		}
		size_t n = fread(room, 1, READ_BYTES, stdin);
		body->len += n;
		if (n < READ_BYTES)
			return ferror(stdin) ? ERR_INVALID : 0;
	}
}

static int put_lines(const struct client_args *args)
{
	struct buf body;

	buf_init(&body, STDIN_MAX_BYTES);
	int err = read_input(args, &body);
	if (!err)
		err = post(args, "/write", "text/plain", buf_slice(&body));
	buf_release(&body);
	return err;
}

int client_put(int argc, char *const *argv)
{
	struct client_args args;
	int err = client_parse(&command, argc, argv, &args);
	bool lines = !err && strcmp(args.words[0], "-") == 0;

	if (!err && lines && (args.word_count > 1 || args.time))
		err = client_usage(&args, "lines have their own names and times");
	else if (!err && !lines && args.word_count < 2)
		err = client_usage(&args, "a value is missing");
	else if (!err)
		err = client_check_tags(&args, 2);
	if (err)
		return client_parse_exit(err);
	return (lines ? put_lines(&args) : put_one(&args)) ? CLIENT_FAILED : CLIENT_OK;
}
