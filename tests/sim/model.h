/* What the store of a simulated run may hold.
 *
 * A register is the smallest thing that has a state of its own: one time of one series in one
 * table, or one cell. Its versions stand in the order in which they were sent; each is part of a
 * batch, which is answered, refused, or still open. What a reader finds must be a version that is
 * not older than the newest one known to hold when the read began (answered, or seen by a reader),
 * and not refused. What it finds is known to hold from then on: so nothing that was once seen goes
 * away again, not even by a crash.
 *
 * After a crash the whole store is read. Batches sent to the store itself are taken in their order,
 * so those that are there must be a beginning of those that were sent, and each whole.
 *
 * No values are kept: a value follows from the seed, the series, the time and the version. */
#ifndef TESTS_SIM_MODEL_H
#define TESTS_SIM_MODEL_H

#include "base/mem.h"
#include "model/value.h"
#include "store/store.h"

enum outcome { OPEN, ANSWERED, REFUSED };

struct batch {
	uint32_t number; /* from 1, in the order of acceptance; 0: no order among batches */
	enum outcome outcome;
	uint64_t answered_at; /* tick */
};

struct version {
	const struct batch *batch; /* NULL: known to hold from the beginning */
	uint32_t id;               /* 0: nothing is there */
	bool deletes;              /* cells: then nothing is there, though it has an id */
	uint64_t seen_at;          /* tick; UINT64_MAX: by nobody */
	int64_t stamp_us;          /* stamped cells */
	uint32_t expects;          /* conditional cells: applied if this was there */
};

enum reg_kind { REG_SAMPLE, REG_STAMPED, REG_CONDITIONAL };

struct reg {
	int64_t ts_ms;
	enum reg_kind kind;
	bool vague; /* has been out of sight: nothing is expected of it any more */
	struct version *versions;
	uint32_t count, cap;
};

/* One series in one table. */
struct row {
	enum table table;
	int64_t period_ms;
	enum retention_class retention;
	unsigned series;  /* of the world */
	bool decimals;    /* only values that JSON brings as they are */
	struct reg *regs; /* ascending by time */
	size_t count, cap;
};

void model_row_release(struct row *row);
struct reg *model_row_reg(struct row *row, int64_t ts_ms);
/* The first register at or after a time. */
size_t model_row_find(const struct row *row, int64_t ts_ms);
void model_row_put(struct row *row, int64_t ts_ms, const struct batch *batch, uint32_t id);
void model_row_delete(struct row *row, int64_t start_ms, int64_t end_ms, const struct batch *batch);

void register_init(struct reg *reg, enum reg_kind kind, int64_t ts_ms);
void register_release(struct reg *reg);
void register_add(struct reg *reg, struct version version);

/* The newest version known to hold at a tick. */
uint32_t register_known(const struct reg *reg, uint64_t tick);
/* What is there once version `i` has been applied: an id, or 0. */
uint32_t register_state(const struct reg *reg, uint32_t i);
/* Whether the store may hold `id` for a read that began at `tick`; remembers that it was seen. */
bool register_see(struct reg *reg, uint32_t id, uint64_t tick, uint64_t now);
/* The same without remembering. */
bool register_may_be(const struct reg *reg, uint32_t id, uint64_t tick);
/* No batch of it is open, none was decided since `tick`: only one state is possible. */
bool register_settled(const struct reg *reg, uint64_t tick);

/* After a crash: `id` is what was found. False if it may not be. Narrows down the number of the
 * last batch that is there; the register then has this one version. `holes`: the disk was full, so
 * that any batch nobody was answered about may have been refused. */
struct cut {
	uint32_t least, most;
};
bool register_resolve(struct reg *reg, uint32_t id, bool holes, struct cut *cut);

/* The value of a version; an integer where the table takes nothing else. */
struct value version_value(uint64_t seed, unsigned series, int64_t ts_ms, unsigned field,
			   bool integer, uint32_t id);

#endif
