/* Property test of faults. Up to five processes take reports, own tenants, count and answer on a
 * store that is far away (contract/far.h), or one on a slow store of its own (slow_store.h); a seed
 * decides who does what next, what fails, who freezes, dies and is started again, whose clock is
 * set, and how days pass. Clients send reports until they are acknowledged.
 *
 * At any moment, whoever reads what has landed gives the summary of a recount of the arrivals that
 * have landed: total, hours, lists, volumes and the rest; also who begins with the last checkpoint.
 * Whoever reads while others write gives what some set of arrivals explains that has all which had
 * landed when he was asked. What was acknowledged has landed. When all is at rest every process
 * gives the recount, days that are past are closed, and their rows of volumes are gone.
 *
 * GRANARY_SEED repeats a seed, and tells what happens. */
#include "fault_model.h"

#include <stdlib.h>

#include "base/log.h"
#include "tools/long_run.h"

enum {
	WRONG_MAX = 5, /* seeds, then it ends */
	HOW_BYTES = 600,
	STEPS = 5000,
#ifdef __SANITIZE_ADDRESS__
	SEEDS = 15,
#else
	SEEDS = 150,
#endif
	SEEDS_LONG = 100000,
};

static bool run_seeds(struct run *run, uint64_t first, uint64_t last)
{
	char how[HOW_BYTES];
	for (uint64_t seed = first; seed <= last && run->wrong < WRONG_MAX; seed++) {
		if (!run_seed(run, seed, how, sizeof(how)))
			printf("GRANARY_SEED=%llu, %s\n", (unsigned long long)seed, how);
		fflush(stdout);
	}
	printf("faults: seeds %llu..%llu, %zu steps each, %llu reports, %llu of them sealed, %llu "
	       "collected, %llu answers, %llu of them exact: %llu are wrong\n",
	       (unsigned long long)first, (unsigned long long)last, run->steps,
	       (unsigned long long)run->arrivals, (unsigned long long)run->sealed,
	       (unsigned long long)run->gone, (unsigned long long)run->answers,
	       (unsigned long long)run->exact, (unsigned long long)run->wrong);
	return !run->wrong;
}

int main(int argc, char **argv)
{
	unsigned long long first = 1, last = long_run() ? SEEDS_LONG : SEEDS;
	struct run run = {.steps = STEPS};
	const char *seed = getenv("GRANARY_SEED");
	log_set_level(LOG_ERROR);
	if (seed) {
		first = last = strtoull(seed, NULL, 10);
		run.trace = true;
	}
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--steps") == 0)
			run.steps = strtoul(argv[i + 1], NULL, 10);
		else if (strcmp(argv[i], "--seeds") == 0 &&
			 sscanf(argv[i + 1], "%llu..%llu", &first, &last) == 1)
			last = first;
	}
	return !run_seeds(&run, first, last);
}
