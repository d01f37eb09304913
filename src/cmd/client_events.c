#include "cmd/client_events.h"

#include <stdio.h>

#include "base/exec.h"

enum {
	EVENTS_MAX_BYTES = 1 << 20,         /* of one */
	EVENTS_ANSWER_MAX_BYTES = 64 << 10, /* an error */
	EVENTS_SENTENCE_BYTES = 1024,
	EVENTS_RETRY_MS = 2000,
	EVENTS_TOKEN_MAX_BYTES = 100,
	EVENTS_SILENT_MAX_S = 60, /* the server says something every 15 */
};

struct events_reading {
	const struct client_events *events;
	struct buf line, data, answer;
	char event[16], id[EVENTS_TOKEN_MAX_BYTES + 1]; /* of the event that comes */
	char token[EVENTS_TOKEN_MAX_BYTES + 1];         /* behind which it goes on */
	bool any;                                       /* it was connected once */
	bool gone;                                      /* nobody reads what is printed */
};

static void events_end_one(struct events_reading *reading)
{
	const struct client_events *events = reading->events;
	if (reading->event[0])
		events->take(events->owner, reading->event, buf_slice(&reading->data));
	if (reading->id[0])
		memcpy(reading->token, reading->id, sizeof(reading->token));
	reading->event[0] = reading->id[0] = 0;
	buf_clear(&reading->data);
}

static bool events_field(struct slice line, const char *name, struct slice *value)
{
	size_t len = strlen(name);
	if (line.len < len || memcmp(line.data, name, len) != 0)
		return false;
	*value = (struct slice){line.data + len, line.len - len};
	return true;
}

static void events_take_line(struct events_reading *reading, struct slice line)
{
	struct slice value;
	if (!line.len)
		events_end_one(reading);
	else if (events_field(line, "data: ", &value))
		buf_append(&reading->data, value.data, value.len);
	else if (events_field(line, "event: ", &value))
		snprintf(reading->event, sizeof(reading->event), "%.*s", (int)value.len,
			 value.data);
	else if (events_field(line, "id: ", &value))
		snprintf(reading->id, sizeof(reading->id), "%.*s", (int)value.len, value.data);
}

static bool events_take(void *owner, long status, struct slice piece)
{
	struct events_reading *reading = owner;
	if (status != 200)
		return buf_append(&reading->answer, piece.data, piece.len) == 0;
	reading->any = true;
	for (size_t i = 0; i < piece.len; i++) {
		if (piece.data[i] != '\n') {
			buf_append_char(&reading->line, piece.data[i]);
			continue;
		}
		events_take_line(reading, buf_slice(&reading->line));
		buf_clear(&reading->line);
	}
	reading->gone = fflush(stdout) != 0;
	return !reading->gone && !reading->line.failed && !reading->data.failed;
}

static void events_start(struct events_reading *reading)
{
	buf_clear(&reading->line);
	buf_clear(&reading->data);
	buf_clear(&reading->answer);
	reading->event[0] = reading->id[0] = 0;
}

/* Whether a connection that has ended is opened again; says why it has. */
static bool events_explain_end(const struct events_reading *reading, int err, long status,
			       const struct errbuf *e)
{
	const struct client_events *events = reading->events;
	char sentence[EVENTS_SENTENCE_BYTES + 1];
	if (!err && status != 200) {
		http_client_sentence(buf_slice(&reading->answer), sentence, sizeof(sentence));
		command_complain(events->args, "%s", sentence);
		return reading->any && status >= 502 && status <= 504;
	}
	if (err && !reading->any)
		command_complain(events->args, "%s", e->text);
	else
		terminal_complain("the connection has ended%s%s; it is opened again%s%s",
				  err ? ": " : "", err ? e->text : "", events->left_out ? "; " : "",
				  events->left_out ? events->left_out : "");
	return reading->any;
}

/* Until it ends. False: it is not opened again. */
static bool events_read(struct events_reading *reading, struct http_client *http)
{
	char last[EVENTS_TOKEN_MAX_BYTES + 20];
	struct errbuf e;
	struct http_call call = {
		.path = reading->events->path,
		.headers = {"Accept: text/event-stream"},
		.take = events_take,
		.owner = reading,
	};
	if (reading->token[0]) {
		snprintf(last, sizeof(last), "Last-Event-ID: %s", reading->token);
		call.headers[1] = last;
	}
	events_start(reading);
	int err = http_client_call(http, &call, &e);
	return !reading->gone && events_explain_end(reading, err, call.status, &e);
}

int client_events_follow(const struct client_events *events)
{
	struct http_client_options how = {.silent_max_s = EVENTS_SILENT_MAX_S};
	struct events_reading reading = {.events = events};
	struct http_client *http = client_connect(events->args, &how);
	struct task_queue queue;
	if (!http)
		return EXIT_FAILED;
	task_queue_init(&queue);
	buf_init(&reading.line, EVENTS_MAX_BYTES);
	buf_init(&reading.data, EVENTS_MAX_BYTES);
	buf_init(&reading.answer, EVENTS_ANSWER_MAX_BYTES);
	while (events_read(&reading, http))
		if (task_queue_sleep(&queue, EVENTS_RETRY_MS))
			break;
	buf_release(&reading.line);
	buf_release(&reading.data);
	buf_release(&reading.answer);
	task_queue_release(&queue);
	http_client_free(http);
	return EXIT_FAILED;
}
