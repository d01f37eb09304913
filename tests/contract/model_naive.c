/* The model test of the model test: the naive engine agrees with itself, and each mistake that is
 * planted in it is found. */
#include "engines.h"
#include "model.h"
#include "naive.h"

enum { STEPS = 600, SEEDS_MAX = 20 };

/* How many seeds it took; 0 if it was not found. */
static uint64_t seeds_to_find(enum naive_bug bug)
{
	struct contract_engine engine = engine_naive_with(bug);
	for (uint64_t seed = 1; seed <= SEEDS_MAX; seed++) {
		if (!model_run(&engine, seed, STEPS, NULL, true, false, NULL))
			return seed;
	}
	return 0;
}

static int find_planted(void)
{
	int missed = 0;
	for (int bug = NAIVE_BUG_NONE + 1; bug < NAIVE_BUG_COUNT; bug++) {
		uint64_t seeds = seeds_to_find((enum naive_bug)bug);
		printf("%-20s %s after %llu seeds\n", naive_bug_name((enum naive_bug)bug),
		       seeds ? "found" : "NOT FOUND",
		       (unsigned long long)(seeds ? seeds : SEEDS_MAX));
		missed += seeds == 0;
	}
	return missed;
}

int main(int argc, char **argv)
{
	struct contract_engine engine = engine_naive();
	if (argc > 2 && strcmp(argv[1], "--bug") == 0) {
		engine = engine_naive_with((int)strtol(argv[2], NULL, 10));
		return model_main(&engine, argc - 2, argv + 2);
	}
	int failed = model_main(&engine, argc, argv);
	return failed || find_planted() ? 1 : 0;
}
