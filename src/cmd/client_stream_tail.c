/* stream tail: lines as they come, from a server's stream of events (api/stream/streams.h). */
#include <inttypes.h>

#include "cmd/client_events.h"

enum { TAIL_ARENA_MAX_BYTES = 8 << 20 };

struct client_stream_tail {
	const struct command_args *args;
	struct client_lines lines;
};

static void client_stream_tail_print(struct client_stream_tail *tail, struct slice data,
				     const struct json *line)
{
	struct terminal_lines *printed = &tail->lines.printed;
	if (tail->args->output != OUTPUT_JSON) {
		client_lines_print(&tail->lines, line);
		return;
	}
	(void)terminal_print(printed, data, false);
	(void)terminal_print(printed, SLICE("\n"), false);
}

static void client_stream_tail_take(void *owner, const char *event, struct slice data)
{
	struct client_stream_tail *tail = owner;
	struct arena arena;
	struct json *root;
	struct errbuf sentence;
	arena_init(&arena, TAIL_ARENA_MAX_BYTES);
	if (json_parse(data, &arena, &root, NULL))
		terminal_complain("an event came that cannot be read");
	else if (strcmp(event, "line") == 0)
		client_stream_tail_print(tail, data, root);
	else if (strcmp(event, "missed") == 0)
		terminal_complain("%" PRId64 " bytes of streams are left out, more than can be "
				  "shown as they come; `granary stream search` has their lines",
				  client_i64(root, "bytes"));
	else if (strcmp(event, "without_rule") == 0) {
		client_lines_unknown(client_i64(root, "streams"), root, &sentence);
		terminal_complain("%s", sentence.text);
	}
	arena_release(&arena);
}

int client_stream_tail(const struct command_args *args, const char *path)
{
	struct client_stream_tail tail = {.args = args, .lines = {.output = args->output}};
	const struct client_events events = {
		.args = args,
		.path = path,
		.take = client_stream_tail_take,
		.owner = &tail,
		.left_out = "lines that come meanwhile are left out; `granary stream search` has "
			    "them"};
	int status = client_events_follow(&events);
	client_lines_end(&tail.lines);
	return status;
}
