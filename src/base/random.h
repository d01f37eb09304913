/* Randomness from one 64-bit seed: the same seed gives the same run. Not for secrets. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include "base/base.h"

struct random {
	uint64_t state[4]; /* xoshiro256** (Blackman and Vigna) */
};

void random_init(struct random *random, uint64_t seed);
uint64_t random_next(struct random *random);
/* Uniform in [0, bound); bound > 0. */
uint64_t random_below(struct random *random, uint64_t bound);
/* Uniform in [0, 1). */
double random_unit(struct random *random);
/* A seed from the system. */
uint64_t random_system_seed(void);

#endif
