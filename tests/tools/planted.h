/* The test of a test that runs seeds: every mistake that tests/sim/plants.py plants is found by
 * some seed.
 *
 *   PROGRAM                       all of them, or without --long those that are found soon; a line
 *                                 each says by which seed, and how
 *   PROGRAM NAME                  one
 *   PROGRAM NAME --seed N         one seed of it, told step by step
 *
 * Each is looked for in a process of its own, since some mistakes end in a crash. Included once in
 * a program, after the list that plants.py made. */
#ifndef TESTS_TOOLS_PLANTED_H
#define TESTS_TOOLS_PLANTED_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tools/long_run.h"

static const struct plant_row {
	const char *name, *what;
	bool applied, soon;
	uint64_t first; /* a seed that has found it before, and is tried first; 0: none */
} plants[] = {PLANT_LIST};

int planted;

/* What the process that looks tells the one that waits. */
static struct planted_search {
	uint64_t seed;
	bool found, stuck;
	char how[1024];
} * planted_search;

/* Whether the seed goes well; if not, `how` says what is wrong. */
typedef bool planted_run(uint64_t seed, bool trace, char *how, size_t how_bytes);

static void planted_look(planted_run *run, uint64_t first, uint64_t last, bool trace)
{
	struct planted_search *search = planted_search;
	for (uint64_t seed = first; seed <= last && !search->found; seed++) {
		search->seed = seed;
		search->found = !run(seed, trace, search->how, sizeof(search->how));
	}
}

static bool planted_find(planted_run *run, int number, uint64_t first, uint64_t last, bool trace)
{
	struct planted_search *search = planted_search;
	*search = (struct planted_search){0};
	fflush(stdout);
	pid_t child = fork();
	ASSERT(child >= 0);
	if (child == 0) {
		planted = number;
		if (!trace && !freopen("/dev/null", "w", stderr))
			_exit(2);
		planted_look(run, first, last, trace);
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

static bool planted_report(planted_run *run, size_t i, uint64_t first, uint64_t last, bool trace)
{
	const struct plant_row *plant = &plants[i];
	int number = (int)i + 1;
	bool hint = plant->applied && plant->first && !trace;
	bool found = hint && planted_find(run, number, plant->first, plant->first, trace);
	found = found || (plant->applied && planted_find(run, number, first, last, trace));
	if (found)
		printf("%-17s found by seed %" PRIu64 ": %.150s\n", plant->name,
		       planted_search->seed, planted_search->how);
	else
		printf("%-17s NOT %s (%s)\n", plant->name, plant->applied ? "FOUND" : "PLANTED",
		       plant->what);
	return found;
}

/* What main returns. */
static int planted_main(int argc, char **argv, planted_run *run, uint64_t seeds_max)
{
	const char *name = argc > 1 ? argv[1] : NULL;
	bool one = argc > 3 && strcmp(argv[2], "--seed") == 0;
	uint64_t seed = one ? strtoull(argv[3], NULL, 10) : 0;
	size_t missed = 0, looked = 0;
	planted_search = mmap(NULL, sizeof(*planted_search), PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT(planted_search != MAP_FAILED);
	for (size_t i = 0; i < ARRAY_LEN(plants); i++) {
		if (name ? strcmp(name, plants[i].name) != 0 : !plants[i].soon && !long_run())
			continue;
		looked++;
		missed += !planted_report(run, i, one ? seed : 1, one ? seed : seeds_max, one);
	}
	if (!looked)
		printf("no mistake is called %s\n", name);
	return missed || !looked ? 1 : 0;
}

#endif
