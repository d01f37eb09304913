/* What the programs here measure by: the CPU time of the whole process, its writer's threads too,
 * since the clock on the wall says more about what else the machine is doing. */
#ifndef BENCH_CPU_TIME_H
#define BENCH_CPU_TIME_H

#include <sys/resource.h>

static inline double cpu_s(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

#endif
