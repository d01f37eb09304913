/* fault tail: reports as they come, from a server's stream of events (api/fault/faults.h). */
#include "cmd/client_events.h"

enum { TAIL_ARENA_MAX_BYTES = 8 << 20 };

struct client_tail {
	const struct command_args *args;
	bool titled;
	struct terminal_lines printed;
};

/* ---- What is printed ------------------------------------------------------------------------- */

static void client_tail_print_row(struct client_tail *tail, const struct json *report)
{
	static const char *const titles[] = {"date",     "id",         "context", "title",
					     "duration", "statements", "release", "host"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	table.untitled = tail->titled;
	tail->titled = true;
	client_fault_add_time(&table, report, "date");
	for (size_t i = 1; i < ARRAY_LEN(titles); i++)
		text_table_add_member(&table, report, titles[i]);
	text_table_print(&table, tail->args->output);
	text_table_release(&table);
}

static void client_tail_print(struct client_tail *tail, struct slice data)
{
	struct arena arena;
	struct json *root;
	if (tail->args->output == OUTPUT_JSON) {
		(void)terminal_print(&tail->printed, data, false);
		(void)terminal_print(&tail->printed, SLICE("\n"), false);
	} else {
		arena_init(&arena, TAIL_ARENA_MAX_BYTES);
		if (json_parse(data, &arena, &root, NULL) == 0)
			client_tail_print_row(tail, root);
		else
			terminal_complain("a report came that cannot be read");
		arena_release(&arena);
	}
}

static void client_tail_complain_missed(struct slice data)
{
	struct arena arena;
	struct json *root;
	int64_t count = 0;
	arena_init(&arena, TAIL_ARENA_MAX_BYTES);
	if (json_parse(data, &arena, &root, NULL) == 0)
		count = client_i64(root, "reports");
	if (count > 0)
		terminal_complain("%lld reports are left out, more than can be shown as they come; "
				  "`granary fault list` has them",
				  (long long)count);
	else
		terminal_complain("some reports are left out, more than can be shown as they come; "
				  "`granary fault list` has them");
	arena_release(&arena);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void client_tail_take(void *owner, const char *event, struct slice data)
{
	struct client_tail *tail = owner;
	if (strcmp(event, "report") == 0)
		client_tail_print(tail, data);
	else if (strcmp(event, "missed") == 0)
		client_tail_complain_missed(data);
}

int client_fault_tail(const struct command_args *args)
{
	struct client_tail tail = {.args = args};
	struct buf path;
	client_route(&path, args, "/oops/live");
	const struct client_events events = {
		.args = args, .path = path.data, .take = client_tail_take, .owner = &tail};
	int status = client_events_follow(&events);
	buf_release(&path);
	return status;
}
