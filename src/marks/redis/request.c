#include "base/mem.h"
#include "marks/redis/client.h"
#include "wire/number.h"

enum { TEXT_MAX_BYTES = 256 << 20, NUMBER_BYTES = 24, WORDS_FIRST = 64, COMMANDS_FIRST = 16 };

void redis_request_init(struct redis_request *request, struct redis_client *client)
{
	request->client = client;
	buf_init(&request->text, TEXT_MAX_BYTES);
}

void redis_request_release(struct redis_request *request)
{
	buf_release(&request->text);
	mem_free(request->ends);
	mem_free(request->commands);
}

void redis_request_clear(struct redis_request *request)
{
	buf_clear(&request->text);
	request->word_count = request->count = 0;
}

void redis_command(struct redis_request *request, struct slice name)
{
	if (request->count == request->room) {
		request->room = request->room ? request->room * 2 : COMMANDS_FIRST;
		request->commands = mem_resize_array(request->commands, request->room,
						     sizeof(*request->commands));
	}
	request->commands[request->count++] = request->word_count;
	redis_word(request, name);
}

void redis_word(struct redis_request *request, struct slice word)
{
	if (request->word_count == request->word_room) {
		request->word_room = request->word_room ? request->word_room * 2 : WORDS_FIRST;
		request->ends =
			mem_resize_array(request->ends, request->word_room, sizeof(*request->ends));
	}
	buf_append(&request->text, word.data, word.len); /* a request that failed is not sent */
	request->ends[request->word_count++] = request->text.len;
}

void redis_number(struct redis_request *request, uint64_t number)
{
	char text[NUMBER_BYTES];
	redis_word(request, (struct slice){text, number_print_u64(text, number)});
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
