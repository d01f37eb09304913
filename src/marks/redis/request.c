#include "base/mem.h"
#include "marks/redis/client.h"
#include "wire/number.h"

enum { TEXT_MAX_BYTES = 256 << 20, NUMBER_BYTES = 24, COMMANDS_FIRST = 16 };

void redis_request_init(struct redis_request *request, struct redis_client *client)
{
	request->client = client;
	buf_init(&request->text, TEXT_MAX_BYTES);
}

void redis_request_release(struct redis_request *request)
{
	buf_release(&request->text);
	mem_free(request->starts);
}

void redis_request_clear(struct redis_request *request)
{
	buf_clear(&request->text);
	request->count = request->answered = 0;
	request->err = 0;
}

/* RESP, redis.io/docs/reference/protocol-spec: a command is an array of bulk strings. */
static void redis_request_put_length(struct redis_request *request, char kind, uint64_t length)
{
	char text[NUMBER_BYTES];
	buf_append_char(&request->text, kind);
	buf_append(&request->text, text, number_print_u64(text, length));
	buf_append(&request->text, "\r\n", 2);
}

void redis_command(struct redis_request *request, size_t words)
{
	if (request->count == request->room) {
		request->room = request->room ? request->room * 2 : COMMANDS_FIRST;
		request->starts =
			mem_resize_array(request->starts, request->room, sizeof(*request->starts));
	}
	request->starts[request->count++] = request->text.len;
	redis_request_put_length(request, '*', words);
}

void redis_word(struct redis_request *request, struct slice word)
{
	redis_request_put_length(request, '$', word.len);
	buf_append(&request->text, word.data, word.len);
	buf_append(&request->text, "\r\n", 2);
}

void redis_number(struct redis_request *request, int64_t number)
{
	char text[NUMBER_BYTES];
	int len = snprintf(text, sizeof(text), "%lld", (long long)number);
	redis_word(request, (struct slice){text, (size_t)len});
}

static void redis_request_wake(struct redis_request *request, int err)
{
	request->waited = (struct task_answer){true, err};
}

int redis_ask_wait(struct redis_request *request, struct task_queue *queue)
{
	if (task_queue_is_stopped(queue))
		return ERR_CANCELLED;
	request->executor = &queue->executor;
	request->done = redis_request_wake;
	request->waited.there = false;
	redis_ask(request);
	return task_queue_wait_for(queue, &request->waited);
}
