/* The engines as the suite and the model test take them. */
#ifndef TESTS_CONTRACT_ENGINES_H
#define TESTS_CONTRACT_ENGINES_H

#include "contract.h"

struct contract_engine engine_naive(void);
/* `bug` of naive.h is planted into each store. */
struct contract_engine engine_naive_with(int bug);

/* One process on the far store, which goes on by itself on a thread. */
struct contract_engine engine_far(uint64_t seed);

/* Limits of 0 are the engine's own; small ones let it seal all the time. */
struct contract_engine engine_lmdb(const char *name, uint64_t journal_max_bytes,
				   uint64_t head_max_bytes);

#endif
