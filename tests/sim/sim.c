/* Simulated runs, many seeds of them.
 *
 *   sim                      the seeds of ./test
 *   sim --seeds A..B         these
 *   sim --seed N --trace     one, told step by step
 *   sim --steps N            of each run
 *
 * A failure ends with the command that repeats it. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "tools/long_run.h"
#include "world.h"

#ifdef __SANITIZE_ADDRESS__
enum { SEEDS = 200, SEEDS_LONG = 20000 };
#else
enum { SEEDS = 2000, SEEDS_LONG = 200000 };
#endif

enum { STEPS = 180, AGAIN_EVERY = 100 };

static const char *program;
static struct world world;
static struct world_counts total;
static struct disk_counts disk_total;
static size_t steps = STEPS;

/* ---- Failures -------------------------------------------------------------------------------- */

static void say_where(const char *why)
{
	fprintf(stderr,
		"%s: seed %" PRIu64 ", step %zu\nagain: %s --seed %" PRIu64
		" --steps %zu --trace\n",
		why, world.seed, world.step, program, world.seed, steps);
}

static void on_signal(int number)
{
	signal(number, SIG_DFL);
	disk_end();
	say_where("died");
	raise(number);
}

NORETURN static void on_stuck(void)
{
	disk_end();
	say_where("everybody waits for somebody");
	_exit(3);
}

/* ---- Seeds ----------------------------------------------------------------------------------- */

static void add_up(uint64_t *sums, const uint64_t *numbers, size_t bytes)
{
	for (size_t i = 0; i < bytes / sizeof(*sums); i++)
		sums[i] += numbers[i];
}

static bool run_seed(uint64_t seed, bool trace)
{
	bool good = world_run(&world, seed, steps, trace);
	add_up((uint64_t *)&total, (const uint64_t *)&world.counts, sizeof(total));
	add_up((uint64_t *)&disk_total, (const uint64_t *)&disk_counts, sizeof(disk_total));
	return good;
}

/* The same seed gives the same run. */
static bool run_again(uint64_t seed)
{
	uint64_t hash = world.hash;
	if (!run_seed(seed, false) || world.hash == hash)
		return !world.failed;
	snprintf(world.failure, sizeof(world.failure), "the same seed gives another run");
	return false;
}

static bool run_seeds(uint64_t first, uint64_t last, bool trace)
{
	for (uint64_t seed = first; seed <= last; seed++) {
		bool good = run_seed(seed, trace);
		if (good && seed % AGAIN_EVERY == 0)
			good = run_again(seed);
		if (good)
			continue;
		fprintf(stderr, "%s\n", world.failure);
		say_where("wrong");
		return false;
	}
	return true;
}

/* What was tried must have been tried: a run in which nothing happens finds nothing. */
static bool worth_it(uint64_t seeds)
{
	printf("sim: %" PRIu64 " seeds; %" PRIu64 " batches, %" PRIu64 " requests (%" PRIu64
	       " sent again), %" PRIu64 " answered, %" PRIu64 " refused; %" PRIu64
	       " reads, %" PRIu64 " queries, %" PRIu64 " points, %" PRIu64 " checks\n",
	       seeds, total.writes, total.requests, total.resent, total.answered, total.refused,
	       total.reads, total.queries, total.points, total.checked);
	printf("sim: %" PRIu64 " crashes, %" PRIu64 " stops, %" PRIu64 " failed commits, %" PRIu64
	       " full disks, %" PRIu64 " settled; %" PRIu64 " disk writes, %" PRIu64
	       " syncs; at crashes %" PRIu64 " writes kept, %" PRIu64 " undone, %" PRIu64 " torn\n",
	       total.crashes, total.closes, total.deaths, total.full, total.settles,
	       disk_total.writes, disk_total.syncs, disk_total.kept, disk_total.undone,
	       disk_total.torn);
	return seeds < 100 || (total.answered > seeds && total.crashes > seeds / 2 &&
			       total.checked > 100 * seeds && disk_total.torn && total.deaths);
}

int main(int argc, char **argv)
{
	uint64_t first = 1, last = long_run() ? SEEDS_LONG : SEEDS;
	bool trace = false;
	program = argv[0];
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--trace") == 0) {
			trace = true;
		} else if (i + 1 < argc && strncmp(argv[i], "--seed", 6) == 0) {
			char *end;
			first = last = strtoull(argv[++i], &end, 10);
			if (strncmp(end, "..", 2) == 0)
				last = strtoull(end + 2, NULL, 10);
		} else if (i + 1 < argc && strcmp(argv[i], "--steps") == 0) {
			steps = strtoul(argv[++i], NULL, 10);
		} else {
			fprintf(stderr, "usage: %s [--seeds A..B] [--steps N] [--trace]\n",
				argv[0]);
			return 2;
		}
	}
	signal(SIGABRT, on_signal);
	signal(SIGSEGV, on_signal);
	signal(SIGBUS, on_signal);
	machine_stuck = on_stuck;
	/* Whether anybody reads it or not: a line of the log looks at the clock. */
	log_set_level(LOG_INFO);
	bool good = run_seeds(first, last, trace);
	return good && worth_it(last - first + 1) ? 0 : 1;
}
