/* The machine on which a simulated run happens: threads, locks and time, all decided by one seed.
 *
 * The program's own definitions of pthread_create, pthread_mutex_lock, clock_gettime and so on
 * stand in front of libc's, for Granary and for LMDB alike. While a machine runs, what the product
 * believes to be a thread is a fiber: exactly one goes on at a time, and at each of these calls the
 * seed decides whether another goes on instead. So nothing of the product is changed for the
 * simulation, and the same seed gives the same run.
 *
 * Time stands still but for what machine_pass() adds, for a little at each look at the clock and
 * each lock, and for a jump to the next time limit when everybody waits.
 *
 * One machine at a time, in one thread. */
#ifndef TESTS_SIM_MACHINE_H
#define TESTS_SIM_MACHINE_H

#include "base/base.h"
#include "base/random.h"

/* `switch_percent`: at how many of a hundred calls another fiber goes on. */
void machine_begin(uint64_t seed, int64_t wall_us, unsigned switch_percent);
/* All fibers have ended. */
void machine_end(void);

/* Perhaps another fiber goes on. */
void machine_yield(void);
/* Others go on until they wait, or for `turns` turns. */
void machine_idle(unsigned turns);

/* The caller waits; others go on meanwhile. */
void machine_sleep(int64_t us);
void machine_pass(int64_t us);
/* The wall clock alone is set; may go back. */
void machine_jump(int64_t us);
int64_t machine_wall_us(void);
int64_t machine_mono_us(void);

/* What the machine decides, apart from what the run does. */
uint64_t machine_pick(uint64_t bound);

/* Called when nobody can go on; does not return. */
extern void (*machine_stuck)(void);

#endif
