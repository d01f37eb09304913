/* The test of the model of faults (tools/planted.h): fault_plants.py has the mistakes. */
#include "fault_model.h"
#include "base/log.h"
#include "plants.h"
#include "tools/planted.h"

enum { SEEDS_MAX = 4000, STEPS = 5000 };

static bool run_model(uint64_t seed, bool trace, char *how, size_t how_bytes)
{
	struct run run = {.steps = STEPS, .trace = trace};
	return run_seed(&run, seed, how, how_bytes);
}

int main(int argc, char **argv)
{
	log_set_level(LOG_ERROR);
	return planted_main(argc, argv, run_model, SEEDS_MAX);
}
