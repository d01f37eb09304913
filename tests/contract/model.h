/* The model test: an engine and the naive one get the same random operations, and every answer is
 * compared. All that happens in a step follows from the seed and the number of the step, so that a
 * difference is found again by its seed, and steps can be left out while it is searched for. */
#ifndef TESTS_CONTRACT_MODEL_H
#define TESTS_CONTRACT_MODEL_H

#include "base/random.h"
#include "contract.h"

enum {
	MODEL_GROUPS = 6,
	MODEL_SERIES = 30,
	MODEL_PLACES = 9,
	MODEL_KEYS = 4,
	MODEL_COLUMNS = 8,
	MODEL_LEASES = 3,
	MODEL_IN_FLIGHT_MAX = 3,
};

/* Series of one group share tenant and tags and are opened together. */
struct model_group {
	const char *tenant, *tags;
	size_t first, count; /* of the series */
};

extern const struct model_group model_groups[MODEL_GROUPS];

/* A conditional cell as one engine numbers it: what its version is, and one that it was. */
struct model_lease {
	uint64_t version, stale;
};

struct side {
	const char *name;
	struct store *store;
	struct task_queue queue;
	uint64_t handles[MODEL_SERIES]; /* 0: not registered */
	struct model_lease leases[MODEL_LEASES];
};

struct model {
	const struct contract_engine *engine;
	uint64_t seed;
	size_t step;
	bool trace;
	struct clock_virtual clock;
	struct random random; /* of this step */
	struct side subject, reference;
	enum retention_class retention[2][MODEL_PLACES]; /* by parity of the group */
	/* What was ever written: a row whose data has gone may still be enumerated. */
	bool ever[MODEL_SERIES][MODEL_PLACES];
	bool ever_cells[TABLE_COUNT][MODEL_KEYS];
	bool ever_registered[MODEL_SERIES];
	struct arena arena; /* of the step */
	char failure[4096]; /* empty while all is equal */
};

/* Notes the first difference; returns false, so that `return model_differ(...)` reads well. */
bool model_differ(struct model *model, const char *fmt, ...) PRINTF_LIKE(2, 3);
void model_trace(struct model *model, const char *fmt, ...) PRINTF_LIKE(2, 3);

static inline uint64_t pick(struct model *model, uint64_t bound)
{
	return random_below(&model->random, bound);
}

static inline bool chance(struct model *model, unsigned percent)
{
	return pick(model, 100) < percent;
}

extern const struct store_target model_places[MODEL_PLACES];
size_t model_pick_place(struct model *model);
size_t model_group_of(size_t series);
const char *model_metric(size_t series);
/* These hold integers of one type and nothing else, so that their sums must be exact. */
static inline bool model_integers_only(size_t series)
{
	return series % 4 == 1;
}

/* A time worth trying: near now, on edges of segments and retention, late, at the ends. */
int64_t model_pick_ts(struct model *model, size_t place);
struct store_parts model_key(enum table table, size_t index);
struct store_parts model_column(enum table table, size_t index);
extern const enum table model_stamped[3];

/* model_write.c: one or several batches at once, on both sides. */
bool model_write_step(struct model *model);
/* model_read.c: one read of several requests, on both sides. */
bool model_read_step(struct model *model);
/* Registers (or finds) one group on both sides. */
bool model_open_group(struct model *model, size_t group, bool find_only);
/* What is found after reopening, then everything that should be there registered again. */
bool model_reopened(struct model *model);
/* The number of samples of a series on the reference: all, or those visible at `now_ms`. */
size_t model_count_samples(struct model *model, size_t series, int64_t now_ms);
/* The engine under test finds nothing wrong with itself. */
bool model_verify(struct model *model);

/* `steps` steps of one seed, without those that `skipped` names (may be NULL). False: differed, and
 * the failure is printed unless `quiet`. */
bool model_run(const struct contract_engine *engine, uint64_t seed, size_t steps,
	       const bool *skipped, bool quiet, bool trace, size_t *failed_step);

/* --seeds A..B, --steps N, --long, --trace, --shrink; the exit code. */
int model_main(const struct contract_engine *engine, int argc, char **argv);

#endif
