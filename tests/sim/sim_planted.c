/* The test of the simulation (tools/planted.h): sim_plants.py has the mistakes. */
#include "base/log.h"
#include "plants.h"
#include "tools/planted.h"
#include "world.h"

enum { SEEDS_MAX = 8000, STEPS = 180 };

static struct world world;

NORETURN static void on_stuck(void)
{
	planted_search->stuck = true;
	_exit(3);
}

static bool run_world(uint64_t seed, bool trace, char *how, size_t how_bytes)
{
	bool right = world_run(&world, seed, STEPS, trace);
	snprintf(how, how_bytes, "%s", right ? "" : world.failure);
	return right;
}

int main(int argc, char **argv)
{
	machine_stuck = on_stuck;
	log_set_level(LOG_INFO);
	return planted_main(argc, argv, run_world, SEEDS_MAX);
}
