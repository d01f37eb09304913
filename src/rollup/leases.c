#include "rollup/leases.h"

#include "wire/number.h"

enum {
	WRITE_MAX_BYTES = 4 << 20,
	NAME_MAX_BYTES = 24,
	NOT_HELD = 0,
};

struct rollup_leases {
	struct rollup_leases_options options;
	struct store_write *write;
	struct rollup_partitions wanted, held;
	uint64_t versions[ROLLUP_PARTITIONS_MAX]; /* NOT_HELD, or what the cell was given */
	struct store_write_cond *outcomes[ROLLUP_PARTITIONS_MAX]; /* NULL: not asked */
	int64_t until_ms;
	bool again; /* those that turned out to be ours are taken with their version */
};

static void on_written(struct store_write *write, int err);

struct rollup_leases *rollup_leases_new(const struct rollup_leases_options *options)
{
	struct rollup_leases *l = mem_zalloc(sizeof(*l));
	l->options = *options;
	l->write = store_write_new(options->store, WRITE_MAX_BYTES);
	l->write->executor = options->executor;
	l->write->done = on_written;
	l->write->owner = l;
	return l;
}

void rollup_leases_free(struct rollup_leases *l)
{
	store_write_free(l->write);
	mem_free(l);
}

static struct store_parts name_of(uint32_t partition, char to[NAME_MAX_BYTES])
{
	size_t len = number_print_u64(to, partition);
	return (struct store_parts){{{to, len}}};
}

static int put_one(struct rollup_leases *l, uint32_t partition)
{
	char name[NAME_MAX_BYTES];
	const struct store_parts key = {{SLICE("rollup")}};
	struct store_parts column = name_of(partition, name);
	return store_cell_put_if(l->write, TABLE_LEASES, &key, &column, l->versions[partition],
				 l->options.holder, l->until_ms, &l->outcomes[partition]);
}

static int submit(struct rollup_leases *l)
{
	int err = 0;
	store_write_reset(l->write);
	memset(l->outcomes, 0, sizeof(l->outcomes));
	for (uint32_t p = 0; p < ROLLUP_PARTITIONS_MAX && !err; p++) {
		if (rollup_partitions_has(&l->wanted, p))
			err = put_one(l, p);
	}
	return err ? err : store_write_submit(l->write);
}

/* Another one's, or our own from before a restart or of a renewal whose outcome was lost. */
static bool is_ours(const struct rollup_leases *l, const struct store_write_cond *outcome)
{
	return outcome->version && slice_equal(outcome->value, l->options.holder);
}

static bool take_outcome(struct rollup_leases *l, uint32_t partition)
{
	const struct store_write_cond *outcome = l->outcomes[partition];
	uint64_t bit = UINT64_C(1) << (partition % 64);
	l->held.bits[partition / 64] &= ~bit;
	l->versions[partition] = NOT_HELD;
	if (!outcome)
		return false;
	if (outcome->applied) {
		l->versions[partition] = outcome->version;
		l->held.bits[partition / 64] |= bit;
	} else if (is_ours(l, outcome)) {
		l->versions[partition] = outcome->version;
		return true;
	}
	return false;
}

static void count_held(struct rollup_leases *l)
{
	l->held.count = 0;
	for (size_t i = 0; i < ARRAY_LEN(l->held.bits); i++)
		l->held.count += (size_t)__builtin_popcountll(l->held.bits[i]);
}

static void on_written(struct store_write *write, int err)
{
	struct rollup_leases *l = write->owner;
	bool ours = false;
	for (uint32_t p = 0; p < ROLLUP_PARTITIONS_MAX && !err; p++)
		ours |= take_outcome(l, p);
	if (!err && ours && !l->again) {
		l->again = true;
		err = submit(l);
		if (!err)
			return;
	}
	count_held(l);
	l->options.done(l->options.owner, err, &l->held, l->until_ms);
}

int rollup_leases_take(struct rollup_leases *l, const struct rollup_partitions *wanted)
{
	l->wanted = *wanted;
	l->again = false;
	l->until_ms = clock_wall_ms(l->options.clock) + l->options.lease_ms;
	return submit(l);
}

int rollup_leases_give(struct rollup_leases *l)
{
	const struct store_parts key = {{SLICE("rollup")}};
	char name[NAME_MAX_BYTES];
	int err = 0;
	store_write_reset(l->write);
	memset(l->outcomes, 0, sizeof(l->outcomes));
	memset(&l->wanted, 0, sizeof(l->wanted));
	l->again = true;
	for (uint32_t p = 0; p < ROLLUP_PARTITIONS_MAX && !err; p++) {
		struct store_parts column = name_of(p, name);
		struct store_write_cond *outcome;
		if (l->versions[p] != NOT_HELD)
			err = store_cell_delete_if(l->write, TABLE_LEASES, &key, &column,
						   l->versions[p], &outcome);
	}
	if (err || !l->write->cells)
		return err ? err : ERR_NOT_FOUND;
	return store_write_submit(l->write);
}
