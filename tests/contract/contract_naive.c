/* The suite against the naive engine. */
#include "contract.h"

#include "naive.h"

static struct store *open_naive(UNUSED void *context, struct clock *clock)
{
	return naive_open(clock);
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

int main(int argc, char **argv)
{
	const struct contract_engine engine = {
		.name = "naive",
		.can = {.batch_atomic = true, .snapshot = true},
		.open = open_naive,
		.reopen = reopen_naive,
		.settle = settle_naive,
		.close = close_naive,
	};
	return contract_run(&engine, argc, argv);
}
