/* Descriptors that a library of others reads and writes itself. */
#include "base/mem.h"
#include "loop/private.h"

struct loop_watch {
	uv_poll_t uv;
	loop_watch_fn *fn;
	void *owner;
};

_Static_assert((int)LOOP_READABLE == (int)UV_READABLE && (int)LOOP_WRITABLE == (int)UV_WRITABLE,
	       "they are given on as they are");

/* An error of the socket is found out by who reads it. */
static void loop_watch_on_events(uv_poll_t *uv, int status, int events)
{
	struct loop_watch *watch = CONTAINER_OF(uv, struct loop_watch, uv);
	watch->fn(watch->owner, status ? LOOP_READABLE | LOOP_WRITABLE : (unsigned)events);
}

static void on_watch_closed(uv_handle_t *handle)
{
	mem_free(CONTAINER_OF((uv_poll_t *)handle, struct loop_watch, uv));
}

struct loop_watch *loop_watch_new(struct loop *loop, int fd, loop_watch_fn *fn, void *owner)
{
	struct loop_watch *watch = mem_zalloc(sizeof(*watch));
	watch->fn = fn;
	watch->owner = owner;
	/* Fails only for what is no socket. */
	ASSERT(uv_poll_init(&loop->uv, &watch->uv, fd) == 0);
	return watch;
}

void loop_watch_set(struct loop_watch *watch, unsigned events)
{
	if (events)
		ASSERT(uv_poll_start(&watch->uv, (int)events, loop_watch_on_events) == 0);
	else
		uv_poll_stop(&watch->uv);
}

void loop_watch_close(struct loop_watch *watch)
{
	if (watch)
		uv_close((uv_handle_t *)&watch->uv, on_watch_closed);
}
