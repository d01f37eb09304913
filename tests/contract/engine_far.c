#include "engines.h"
#include "far.h"

struct far_context {
	uint64_t seed;
	struct far *far;
	pthread_t thread;
};

static struct store *open_far(void *context, struct clock *clock)
{
	static const struct far_faults none;
	struct far_context *c = context;
	c->far = far_new(clock, c->seed, &none);
	assert_int_equal(pthread_create(&c->thread, NULL, far_run, c->far), 0);
	return far_open(c->far, clock, 0);
}

/* Another process of the same name. */
static struct store *reopen_far(void *context, struct store *store, struct clock *clock)
{
	struct far_context *c = context;
	int64_t after_us = far_last_stamp_us(store);
	store_close(store);
	return far_open(c->far, clock, after_us);
}

static void settle_far(void *context, UNUSED struct store *store)
{
	far_settle(((struct far_context *)context)->far);
}

static void close_far(void *context, struct store *store)
{
	struct far_context *c = context;
	store_close(store);
	far_stop(c->far);
	pthread_join(c->thread, NULL);
	far_free(c->far);
}

struct contract_engine engine_far(uint64_t seed)
{
	static struct far_context context;
	context.seed = seed;
	return (struct contract_engine){
		.name = "far",
		.context = &context,
		.open = open_far,
		.reopen = reopen_far,
		.settle = settle_far,
		.close = close_far,
	};
}
