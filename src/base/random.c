#include "base/random.h"

#include <sys/random.h>

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void random_init(struct random *random, uint64_t seed)
{
	for (size_t i = 0; i < ARRAY_LEN(random->state); i++)
		random->state[i] = splitmix(&seed);
}

static uint64_t random_rotate(uint64_t x, int by)
{
	return (x << by) | (x >> (64 - by));
}

uint64_t random_next(struct random *random)
{
	uint64_t *s = random->state;
	uint64_t result = random_rotate(s[1] * 5, 7) * 9;
	uint64_t shifted = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= shifted;
	s[3] = random_rotate(s[3], 45);
	return result;
}

uint64_t random_below(struct random *random, uint64_t bound)
{
	ASSERT(bound > 0);
	/* The product's high half; the bias of at most bound/2^64 does not matter to a test. */
	return (uint64_t)(((__uint128_t)random_next(random) * bound) >> 64);
}

double random_unit(struct random *random)
{
	return (double)(random_next(random) >> 11) * 0x1p-53;
}

uint64_t random_system_seed(void)
{
	uint64_t seed = 0;
	ASSERT(getrandom(&seed, sizeof(seed), 0) == sizeof(seed));
	return seed;
}
