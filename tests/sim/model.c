#include "model.h"

#include "base/hash.h"

void register_init(struct reg *reg, enum reg_kind kind, int64_t ts_ms)
{
	*reg = (struct reg){.kind = kind, .ts_ms = ts_ms};
	register_add(reg, (struct version){.seen_at = UINT64_MAX, .stamp_us = INT64_MIN});
}

void register_release(struct reg *reg)
{
	mem_free(reg->versions);
}

void register_add(struct reg *reg, struct version version)
{
	if (reg->count == reg->cap) {
		reg->cap = reg->cap ? reg->cap * 2 : 2;
		reg->versions = mem_resize_array(reg->versions, reg->cap, sizeof(*reg->versions));
	}
	reg->versions[reg->count++] = version;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

void model_row_release(struct row *row)
{
	for (size_t i = 0; i < row->count; i++)
		register_release(&row->regs[i]);
	mem_free(row->regs);
}

size_t model_row_find(const struct row *row, int64_t ts_ms)
{
	size_t low = 0, high = row->count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (row->regs[middle].ts_ms < ts_ms)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct reg *model_row_reg(struct row *row, int64_t ts_ms)
{
	size_t at = model_row_find(row, ts_ms);
	if (at < row->count && row->regs[at].ts_ms == ts_ms)
		return &row->regs[at];
	if (row->count == row->cap) {
		row->cap = row->cap ? row->cap * 2 : 32;
		row->regs = mem_resize_array(row->regs, row->cap, sizeof(*row->regs));
	}
	memmove(&row->regs[at + 1], &row->regs[at], (row->count - at) * sizeof(*row->regs));
	row->count++;
	register_init(&row->regs[at], REG_SAMPLE, ts_ms);
	return &row->regs[at];
}

void model_row_put(struct row *row, int64_t ts_ms, const struct batch *batch, uint32_t id)
{
	register_add(model_row_reg(row, ts_ms),
		     (struct version){.batch = batch, .id = id, .seen_at = UINT64_MAX});
}

void model_row_delete(struct row *row, int64_t start_ms, int64_t end_ms, const struct batch *batch)
{
	for (size_t i = model_row_find(row, start_ms); i < row->count; i++) {
		if (row->regs[i].ts_ms >= end_ms)
			return;
		register_add(&row->regs[i],
			     (struct version){.batch = batch, .seen_at = UINT64_MAX});
	}
}

/* ---- Versions -------------------------------------------------------------------------------- */

static bool known(const struct version *v, uint64_t tick)
{
	return !v->batch || (v->batch->outcome == ANSWERED && v->batch->answered_at <= tick) ||
	       v->seen_at <= tick;
}

static bool refused(const struct version *v)
{
	return v->batch && v->batch->outcome == REFUSED;
}

uint32_t register_known(const struct reg *reg, uint64_t tick)
{
	uint32_t i = reg->count - 1;
	while (i > 0 && (refused(&reg->versions[i]) || !known(&reg->versions[i], tick)))
		i--;
	return i;
}

static uint32_t stamped_state(const struct reg *reg, uint32_t i)
{
	const struct version *wins = &reg->versions[0];
	for (uint32_t k = 1; k <= i; k++) {
		const struct version *v = &reg->versions[k];
		if (!refused(v) && v->stamp_us > wins->stamp_us)
			wins = v;
	}
	return wins->deletes ? 0 : wins->id;
}

static uint32_t conditional_state(const struct reg *reg, uint32_t i)
{
	uint32_t state = reg->versions[0].id;
	for (uint32_t k = 1; k <= i; k++) {
		const struct version *v = &reg->versions[k];
		if (!refused(v) && state == v->expects)
			state = v->deletes ? 0 : v->id;
	}
	return state;
}

uint32_t register_state(const struct reg *reg, uint32_t i)
{
	switch (reg->kind) {
	case REG_STAMPED:
		return stamped_state(reg, i);
	case REG_CONDITIONAL:
		return conditional_state(reg, i);
	default:
		return reg->versions[i].id;
	}
}

/* The first version from `from` on with which the register holds `id`; count if there is none. */
static uint32_t find_state(const struct reg *reg, uint32_t from, uint32_t id)
{
	uint32_t i = from;
	while (i < reg->count && (refused(&reg->versions[i]) || register_state(reg, i) != id))
		i++;
	return i;
}

bool register_may_be(const struct reg *reg, uint32_t id, uint64_t tick)
{
	return reg->vague || find_state(reg, register_known(reg, tick), id) < reg->count;
}

bool register_see(struct reg *reg, uint32_t id, uint64_t tick, uint64_t now)
{
	if (reg->vague)
		return true;
	uint32_t i = find_state(reg, register_known(reg, tick), id);
	if (i == reg->count)
		return false;
	if (reg->versions[i].seen_at > now)
		reg->versions[i].seen_at = now;
	return true;
}

bool register_settled(const struct reg *reg, uint64_t tick)
{
	if (reg->vague)
		return false;
	for (uint32_t i = register_known(reg, tick) + 1; i < reg->count; i++) {
		if (!refused(&reg->versions[i]))
			return false;
	}
	return true;
}

/* ---- After a crash --------------------------------------------------------------------------- */

static void narrow(const struct reg *reg, uint32_t first, uint32_t id, struct cut *cut)
{
	uint32_t last = first;
	for (uint32_t i = first; i < reg->count; i++) {
		if (!refused(&reg->versions[i]) && register_state(reg, i) == id)
			last = i;
	}
	const struct batch *batch = reg->versions[first].batch;
	if (batch && batch->number > cut->least)
		cut->least = batch->number;
	for (uint32_t i = last + 1; i < reg->count; i++) {
		batch = reg->versions[i].batch;
		if (refused(&reg->versions[i]) || !batch->number)
			continue;
		if (batch->number - 1 < cut->most)
			cut->most = batch->number - 1;
		return;
	}
}

/* Whether a conditional register may hold `id` though any version behind the known one may have
 * been left out: what one that was left out would have changed, the next one finds as it was. */
static bool may_hold_with_holes(const struct reg *reg, uint32_t id)
{
	uint32_t known = register_known(reg, UINT64_MAX - 1), count = 1;
	uint32_t *states = mem_alloc_array(reg->count, sizeof(*states));
	states[0] = register_state(reg, known);
	bool found = states[0] == id;
	for (uint32_t i = known + 1; i < reg->count; i++) {
		const struct version *v = &reg->versions[i];
		uint32_t k = 0;
		while (k < count && states[k] != v->expects)
			k++;
		if (k == count || refused(v))
			continue;
		states[count] = v->deletes ? 0 : v->id;
		found = found || states[count++] == id;
	}
	mem_free(states);
	return found;
}

bool register_resolve(struct reg *reg, uint32_t id, bool holes, struct cut *cut)
{
	uint32_t first = reg->vague ? 0 : find_state(reg, register_known(reg, UINT64_MAX - 1), id);
	bool left_out = first == reg->count && holes && reg->kind == REG_CONDITIONAL &&
			may_hold_with_holes(reg, id);
	if (first == reg->count && !left_out)
		return false;
	if (!reg->vague && !left_out)
		narrow(reg, first, id, cut);
	int64_t stamp_us = INT64_MIN;
	for (uint32_t i = 0; i < reg->count; i++) {
		if (reg->versions[i].id == id && reg->versions[i].stamp_us > stamp_us)
			stamp_us = reg->versions[i].stamp_us;
	}
	reg->count = 0;
	register_add(reg, (struct version){.id = id, .seen_at = UINT64_MAX, .stamp_us = stamp_us});
	return true;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Of four kinds, so that every codec has its share; two versions never have the same. */
struct value version_value(uint64_t seed, unsigned series, int64_t ts_ms, unsigned field,
			   bool integer, uint32_t id)
{
	uint64_t name[] = {series, (uint64_t)ts_ms, field, id};
	uint64_t bits = hash64(name, sizeof(name), seed);
	switch ((series + field) % (integer ? 2 : 4)) {
	case 0:
		return value_i64((int64_t)(bits % 1000 * 100000 + id));
	case 1:
		return value_u64((uint64_t)ts_ms / 1000 * 125 + ((uint64_t)id << 40));
	case 2:
		return value_f64((double)(id * 1000 + bits % 1000) / 100);
	default:
		return (struct value){(bits & ~UINT64_C(0x7fff00000000ffff)) |
					      UINT64_C(0x3fe0000000000000) | (id & 0xffff),
				      VALUE_F64};
	}
}
