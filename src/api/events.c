#include "api/events.h"

enum {
	EVENTS_RETRY_MS = 2000,
	EVENTS_QUIET_US = 15000000,
};

static int64_t events_now_us(const struct events *events)
{
	struct clock *clock = events->call->api->clock;
	return clock->mono_us(clock);
}

void events_init(struct events *events, struct api_call *call)
{
	*events = (struct events){.call = call};
	call->content_type = "text/event-stream";
}

bool events_begin(struct events *events)
{
	if (api_call_answers_head(events->call) || !api_call_begin_endless(events->call))
		return false;
	buf_printf(&events->call->out, "retry: %d\n\n", EVENTS_RETRY_MS);
	events_send(events);
	return true;
}

void events_send(struct events *events)
{
	struct buf *out = &events->call->out;
	ASSERT(!out->failed && !events->full); /* there is room for the longest event */
	if (!api_call_may_go_on(events->call)) {
		buf_clear(out); /* the stream is about to be ended */
		return;
	}
	int err = http_stream_write(events->call->request, buf_slice(out));
	ASSERT(err != ERR_LIMIT); /* one event, and it was heeded that others waited */
	buf_clear(out);
	events->full = err == ERR_BUSY;
	events->said_us = events_now_us(events);
}

bool events_are_quiet(const struct events *events)
{
	return events_now_us(events) - events->said_us >= EVENTS_QUIET_US;
}
