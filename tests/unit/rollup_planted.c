/* The test of the model of roll-ups (tools/planted.h): rollup_plants.py has the mistakes. */
#include "plants.h"
#include "rollup_model.h"
#include "tools/planted.h"

enum { SEEDS_MAX = 6000, STEPS = 9000 };

static bool run_model(uint64_t seed, bool trace, char *how, size_t how_bytes)
{
	struct run run = {.steps = STEPS, .far = true, .deletes = true, .trace = trace};
	return run_seed(&run, seed, how, how_bytes);
}

int main(int argc, char **argv)
{
	return planted_main(argc, argv, run_model, SEEDS_MAX);
}
