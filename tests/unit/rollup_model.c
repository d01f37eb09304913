/* Property test of roll-ups. Some processes that take line protocol and some that roll up share a
 * store that is far away (slow_store.h); a seed decides who does what next, what fails, who dies
 * and is started again, and how the clock moves on. One more deletes samples, of some time or of
 * all, and goes on when it was broken off; on a far store another one makes all marks again.
 * Whenever all has come to rest, every row of every granularity is what a plain loop makes of the
 * raw data, those of late points what it makes of late data, every sample of a request that was
 * answered well is in one of the two unless a deletion since was of its time, and no mark is left.
 * On a far store a query at any moment has each such sample, too: in a row of the time up to which
 * its metric is rolled up, else in raw data. */
#include "rollup_model.h"

#include "tools/long_run.h"

enum {
	WRONG_MAX = 5, /* seeds, then it ends */
	PLANTED_SEEDS = 300,
	HOW_BYTES = 600,
#ifdef __SANITIZE_ADDRESS__
	SLOW_SEEDS = 40,
	FAR_SEEDS = 20,
	LOOKS_FOR_PLANTED = false, /* a sanitizer has nothing to say of that */
#else
	SLOW_SEEDS = 150,
	FAR_SEEDS = 500,
	LOOKS_FOR_PLANTED = true,
#endif
};

static bool run_seeds(struct run *run, uint64_t first, uint64_t last)
{
	char how[HOW_BYTES];
	for (uint64_t seed = first; seed <= last && run->wrong < WRONG_MAX; seed++) {
		if (!run_seed(run, seed, how, sizeof(how)))
			printf("seed %llu, %s\n", (unsigned long long)seed, how);
	}
	printf("roll-ups, %s store: seeds %llu..%llu, %zu steps each, %llu late samples, %llu of "
	       "queries from rows: %llu are wrong\n",
	       run->far ? "far" : "slow", (unsigned long long)first, (unsigned long long)last,
	       run->steps, (unsigned long long)run->late, (unsigned long long)run->from_rows,
	       (unsigned long long)run->wrong);
	return !run->wrong;
}

/* Some seed finds each. */
static bool find_planted(size_t steps)
{
	bool all = true;
	for (enum far_bug bug = FAR_RIGHT + 1; bug <= FAR_BUG_KNOWN; bug++) {
		struct run run = {.steps = steps, .far = true, .bug = bug};
		char how[HOW_BYTES];
		bool found = false;
		for (uint64_t seed = 1; seed <= PLANTED_SEEDS && !found; seed++)
			found = !run_seed(&run, seed, how, sizeof(how));
		if (!found)
			printf("planted bug %d of the far store: no seed finds it\n", (int)bug);
		all &= found;
	}
	return all;
}

/* What is run where nothing is asked for. */
static bool run_preset(size_t steps)
{
	struct run slow = {.steps = steps}, far = {.steps = steps, .far = true};
	bool right = run_seeds(&slow, 1, long_run() ? 6000 : SLOW_SEEDS);
	right &= run_seeds(&far, 1, long_run() ? 100000 : FAR_SEEDS);
	if (LOOKS_FOR_PLANTED)
		right &= find_planted(steps);
	return right;
}

int main(int argc, char **argv)
{
	unsigned long long first = 0, last = 0;
	struct run run = {.steps = 9000};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--trace") == 0)
			run.trace = true;
		else if (strcmp(argv[i], "--far") == 0)
			run.far = true;
		else if (i + 1 < argc && strcmp(argv[i], "--steps") == 0)
			run.steps = strtoul(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--bug") == 0)
			run.bug = (enum far_bug)strtoul(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0 &&
			 sscanf(argv[++i], "%llu..%llu", &first, &last) == 1)
			last = first;
	}
	bool right = first ? run_seeds(&run, first, last) : run_preset(run.steps);
	return !right;
}
