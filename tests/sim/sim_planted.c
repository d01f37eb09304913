/* The test of the simulation: every mistake that plants.py plants is found by some seed.
 *
 *   sim_planted                       all of them; a line each says after how many seeds, and how
 *   sim_planted NAME                  one
 *   sim_planted NAME --seed N         one seed of it, told step by step
 *
 * Each is looked for in a process of its own, since some mistakes end in a crash. */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "plants.h"
#include "world.h"

enum { SEEDS_MAX = 2000, STEPS = 180 };

static const struct plant_row {
	const char *name, *what;
	bool applied;
} plants[] = {PLANT_LIST};

int planted;

/* What the process that looks tells the one that waits. */
struct search {
	uint64_t seed;
	bool found, stuck;
	char how[1024];
};

static struct search *search;
static struct world world;

NORETURN static void on_stuck(void)
{
	search->stuck = true;
	_exit(3);
}

static void look(uint64_t first, uint64_t last, bool trace)
{
	for (uint64_t seed = first; seed <= last && !search->found; seed++) {
		search->seed = seed;
		if (world_run(&world, seed, STEPS, trace))
			continue;
		search->found = true;
		snprintf(search->how, sizeof(search->how), "%s", world.failure);
	}
}

static bool find(int number, uint64_t first, uint64_t last, bool trace)
{
	*search = (struct search){0};
	fflush(stdout);
	pid_t child = fork();
	ASSERT(child >= 0);
	if (child == 0) {
		planted = number;
		if (!trace && !freopen("/dev/null", "w", stderr))
			_exit(2);
		look(first, last, trace);
		fflush(stdout);
		_exit(0);
	}
	int status;
	ASSERT(waitpid(child, &status, 0) == child);
	if (search->found)
		return true;
	if (search->stuck)
		snprintf(search->how, sizeof(search->how), "everybody waits for somebody");
	else if (WIFSIGNALED(status))
		snprintf(search->how, sizeof(search->how), "the program dies (%s)",
			 strsignal(WTERMSIG(status)));
	else
		return false;
	return true;
}

static bool report(size_t i, uint64_t first, uint64_t last, bool trace)
{
	const struct plant_row *plant = &plants[i];
	bool found = plant->applied && find((int)i + 1, first, last, trace);
	if (found)
		printf("%-17s found after %" PRIu64 " seeds: %.150s\n", plant->name, search->seed,
		       search->how);
	else
		printf("%-17s NOT %s (%s)\n", plant->name, plant->applied ? "FOUND" : "PLANTED",
		       plant->what);
	return found;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	bool one = argc > 3 && strcmp(argv[2], "--seed") == 0;
	uint64_t seed = one ? strtoull(argv[3], NULL, 10) : 0;
	size_t missed = 0, looked = 0;
	search = mmap(NULL, sizeof(*search), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	ASSERT(search != MAP_FAILED);
	machine_stuck = on_stuck;
	log_set_level(LOG_INFO);
	for (size_t i = 0; i < ARRAY_LEN(plants); i++) {
		if (name && strcmp(name, plants[i].name) != 0)
			continue;
		looked++;
		missed += !report(i, one ? seed : 1, one ? seed : SEEDS_MAX, one);
	}
	if (!looked)
		printf("no mistake is called %s\n", name);
	return missed || !looked ? 1 : 0;
}
