#include "engines.h"
#include "naive.h"

static int planted;

static struct store *open_naive(UNUSED void *context, struct clock *clock)
{
	struct store *store = naive_open(clock);
	naive_plant(store, (enum naive_bug)planted);
	return store;
}

static struct store *reopen_naive(UNUSED void *context, struct store *store,
				  UNUSED struct clock *clock)
{
	naive_reopen(store);
	return store;
}

static void settle_naive(UNUSED void *context, struct store *store)
{
	naive_settle(store);
}

static void close_naive(UNUSED void *context, struct store *store)
{
	store_close(store);
}

struct contract_engine engine_naive_with(int bug)
{
	planted = bug;
	return (struct contract_engine){
		.name = bug ? naive_bug_name((enum naive_bug)bug) : "naive",
		.open = open_naive,
		.reopen = reopen_naive,
		.settle = settle_naive,
		.close = close_naive,
	};
}

struct contract_engine engine_naive(void)
{
	return engine_naive_with(NAIVE_BUG_NONE);
}
