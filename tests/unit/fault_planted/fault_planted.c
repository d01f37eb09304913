/* The test of the model of faults (tools/planted.h): fault_plants.py has the mistakes. Some of them
 * take hundreds of seeds, so that without --long only those are looked for that are found soon. */
#include "fault_model.h"
#include "base/log.h"
#include "plants.h"
#include "tools/long_run.h"
#include "tools/planted.h"

enum { SEEDS_MAX = 4000, STEPS = 5000 };

static bool run_model(uint64_t seed, bool trace, char *how, size_t how_bytes)
{
	struct run run = {.steps = STEPS, .trace = trace};
	return run_seed(&run, seed, how, how_bytes);
}

static char *const found_soon[] = {"stamp_late", "book_early"};

int main(int argc, char **argv)
{
	log_set_level(LOG_ERROR);
	if (argc == 1 && !long_run()) {
		int status = 0;
		for (size_t i = 0; i < ARRAY_LEN(found_soon); i++) {
			char *of_one[] = {argv[0], found_soon[i]};
			status |= planted_main(2, of_one, run_model, SEEDS_MAX);
		}
		return status;
	}
	return planted_main(argc, argv, run_model, SEEDS_MAX);
}
