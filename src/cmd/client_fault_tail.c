/* fault tail: reports as they come, from a server's stream of events (api/fault/faults.h). */
#include <stdio.h>

#include "base/exec.h"
#include "cmd/client_private.h"
#include "wire/timetext.h"

enum {
	TAIL_EVENT_MAX_BYTES = 1 << 20,
	TAIL_ARENA_MAX_BYTES = 8 << 20,
	TAIL_ANSWER_MAX_BYTES = 64 << 10, /* an error */
	TAIL_SENTENCE_BYTES = 1024,
	TAIL_RETRY_MS = 2000,
	TAIL_TOKEN_MAX_BYTES = 100,
	TAIL_SILENT_MAX_S = 60, /* the server says something every 15 */
};

struct client_tail {
	const struct command_args *args;
	struct buf line, data, answer;
	char event[16], id[TAIL_TOKEN_MAX_BYTES + 1]; /* of the event that comes */
	char token[TAIL_TOKEN_MAX_BYTES + 1];         /* behind which it goes on */
	bool titled, any;                             /* any: it was connected once */
	bool gone;                                    /* nobody reads what is printed */
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

static void client_tail_print(struct client_tail *tail)
{
	struct arena arena;
	struct json *root;
	struct slice data = buf_slice(&tail->data);
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
	tail->gone = fflush(stdout) != 0;
}

static void client_tail_complain_missed(const struct client_tail *tail)
{
	struct arena arena;
	struct json *root;
	int64_t count = 0;
	arena_init(&arena, TAIL_ARENA_MAX_BYTES);
	if (json_parse(buf_slice(&tail->data), &arena, &root, NULL) == 0)
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

/* ---- Events (HTML, 9.2) ---------------------------------------------------------------------- */

static void client_tail_end_event(struct client_tail *tail)
{
	if (strcmp(tail->event, "report") == 0)
		client_tail_print(tail);
	else if (strcmp(tail->event, "missed") == 0)
		client_tail_complain_missed(tail);
	if (!tail->gone && tail->id[0])
		memcpy(tail->token, tail->id, sizeof(tail->token));
	tail->event[0] = tail->id[0] = 0;
	buf_clear(&tail->data);
}

static bool client_tail_field(struct slice line, const char *name, struct slice *value)
{
	size_t len = strlen(name);
	if (line.len < len || memcmp(line.data, name, len) != 0)
		return false;
	*value = (struct slice){line.data + len, line.len - len};
	return true;
}

static void client_tail_take_line(struct client_tail *tail, struct slice line)
{
	struct slice value;
	if (!line.len)
		client_tail_end_event(tail);
	else if (client_tail_field(line, "data: ", &value))
		buf_append(&tail->data, value.data, value.len);
	else if (client_tail_field(line, "event: ", &value))
		snprintf(tail->event, sizeof(tail->event), "%.*s", (int)value.len, value.data);
	else if (client_tail_field(line, "id: ", &value))
		snprintf(tail->id, sizeof(tail->id), "%.*s", (int)value.len, value.data);
}

static bool client_tail_take(void *owner, long status, struct slice piece)
{
	struct client_tail *tail = owner;
	if (status != 200)
		return buf_append(&tail->answer, piece.data, piece.len) == 0;
	tail->any = true;
	for (size_t i = 0; i < piece.len && !tail->gone; i++) {
		if (piece.data[i] != '\n') {
			buf_append_char(&tail->line, piece.data[i]);
			continue;
		}
		client_tail_take_line(tail, buf_slice(&tail->line));
		buf_clear(&tail->line);
	}
	return !tail->gone && !tail->line.failed && !tail->data.failed;
}

/* ---- The stream ------------------------------------------------------------------------------ */

/* Until it ends. False: it is not opened again. */
static bool client_tail_follow(struct client_tail *tail, struct http_client *http, const char *path)
{
	char last[TAIL_TOKEN_MAX_BYTES + 20], sentence[TAIL_SENTENCE_BYTES + 1];
	struct errbuf e;
	struct http_call call = {
		.path = path,
		.headers = {"Accept: text/event-stream"},
		.take = client_tail_take,
		.owner = tail,
	};
	if (tail->token[0]) {
		snprintf(last, sizeof(last), "Last-Event-ID: %s", tail->token);
		call.headers[1] = last;
	}
	buf_clear(&tail->line);
	buf_clear(&tail->data);
	buf_clear(&tail->answer);
	tail->event[0] = tail->id[0] = 0;
	int err = http_client_call(http, &call, &e);
	if (tail->gone)
		return false;
	if (!err && call.status != 200) {
		bool passes = tail->any && call.status >= 502 && call.status <= 504;
		http_client_sentence(buf_slice(&tail->answer), sentence, sizeof(sentence));
		command_complain(tail->args, "%s", sentence);
		return passes;
	}
	if (err && !tail->any)
		command_complain(tail->args, "%s", e.text);
	else
		terminal_complain("the connection has ended%s%s; it is opened again",
				  err ? ": " : "", err ? e.text : "");
	return tail->any;
}

int client_fault_tail(const struct command_args *args)
{
	const struct http_client_options how = {.server = args->server,
						.silent_max_s = TAIL_SILENT_MAX_S};
	struct client_tail tail = {.args = args};
	struct http_client *http = http_client_new(&how);
	struct task_queue queue;
	struct buf path;
	task_queue_init(&queue);
	buf_init(&tail.line, TAIL_EVENT_MAX_BYTES);
	buf_init(&tail.data, TAIL_EVENT_MAX_BYTES);
	buf_init(&tail.answer, TAIL_ANSWER_MAX_BYTES);
	client_route(&path, args, "/oops/live");
	while (client_tail_follow(&tail, http, path.data))
		if (task_queue_sleep(&queue, TAIL_RETRY_MS))
			break;
	buf_release(&path);
	buf_release(&tail.line);
	buf_release(&tail.data);
	buf_release(&tail.answer);
	task_queue_release(&queue);
	http_client_free(http);
	return EXIT_FAILED;
}
