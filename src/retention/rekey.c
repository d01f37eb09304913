#include "retention/rekey.h"

#include "base/fault.h"
#include "retention/usage_walk.h"
#include "store/wait.h"

enum {
	GROUP_MAX = 64, /* series of one slice: about those that lie in one group of the store */
	READ_MAX_BYTES = 8 << 20,
	WRITE_MAX_BYTES = 1 << 20,
};

/* Notes which classes other than `to` hold samples of a series. */
struct rekey_elsewhere {
	bool any;
	enum retention_class to;
	int64_t oldest_ms;
};

struct rekey_applying {
	const struct retention_rekey_options *options;
	enum store_rekey_step step;
	struct usage_walk *shares;
	struct store_write *write;
	struct rekey_elsewhere elsewhere[USAGE_WALK_PLACES_MAX][GROUP_MAX];
	uint64_t failed;
};

static void rekey_apply_take_shares(void *owner, size_t i, const struct store_series *series,
				    size_t place, const struct store_share *shares)
{
	struct rekey_applying *a = owner;
	struct rekey_elsewhere *e = &a->elsewhere[place][i];
	struct usage_walk_kept kept =
		usage_walk_kept(a->shares, series->tenant, series->metric, place);
	*e = (struct rekey_elsewhere){.to = kept.retention};
	for (size_t c = 0; c < RETENTION_CLASSES; c++) {
		if (c == (size_t)e->to || !shares[c].samples)
			continue;
		if (!e->any || shares[c].oldest_ms < e->oldest_ms)
			e->oldest_ms = shares[c].oldest_ms;
		e->any = true;
	}
}

/* Moves what these series have at a place from start_ms to before end_ms. */
static int rekey_apply_slice(struct rekey_applying *a, size_t place, enum retention_class to,
			     const uint64_t *handles, size_t count, int64_t start_ms,
			     int64_t end_ms)
{
	struct store_rekeying rekeying = {
		.target = {usage_walk_table(a->shares, place), to,
			   usage_walk_period_ms(a->shares, place)},
		.step = a->step,
		.handles = handles,
		.n = count,
		.start_ms = start_ms,
		.end_ms = end_ms,
		.now_ms = a->options->asof_ms,
	};
	store_write_reset(a->write);
	int err = fault("retention_rekey");
	if (!err)
		err = store_rekey(a->write, &rekeying);
	if (!err)
		err = store_write_wait(a->write, a->options->scope.queue);
	a->failed += err == ERR_DAMAGED;
	return err == ERR_DAMAGED ? 0 : err;
}

/* Moves what of a place belongs to a class: up to now by segments of time, then what lies after. */
static int rekey_apply_class(struct rekey_applying *a, const struct series_group *group,
			     size_t place, enum retention_class to)
{
	uint64_t handles[GROUP_MAX];
	size_t count = 0;
	int64_t oldest_ms = INT64_MAX, asof_ms = a->options->asof_ms;
	for (size_t i = 0; i < group->count; i++) {
		const struct rekey_elsewhere *e = &a->elsewhere[place][i];
		if (!e->any || e->to != to)
			continue;
		handles[count++] = group->handles[i];
		oldest_ms = e->oldest_ms < oldest_ms ? e->oldest_ms : oldest_ms;
	}
	if (!count)
		return 0;
	int64_t segment_ms = schema_segment_ms(usage_walk_table(a->shares, place),
					       usage_walk_period_ms(a->shares, place));
	int64_t at_ms = floor_to(oldest_ms, segment_ms);
	int err = 0;
	for (; at_ms <= asof_ms && !err; at_ms += segment_ms)
		err = rekey_apply_slice(a, place, to, handles, count, at_ms, at_ms + segment_ms);
	return err ? err : rekey_apply_slice(a, place, to, handles, count, at_ms, STORE_TS_MAX);
}

static int rekey_apply_group(struct rekey_applying *a, const struct series_group *group)
{
	int err = 0;
	for (size_t place = 0; place < usage_walk_places(a->shares); place++) {
		for (int to = 0; to < RETENTION_CLASSES && !err; to++)
			err = rekey_apply_class(a, group, place, (enum retention_class)to);
	}
	return err;
}

int retention_rekey_step(const struct retention_rekey_options *options, enum store_rekey_step step,
			 uint64_t *failed)
{
	struct rekey_applying *a = mem_zalloc(sizeof(*a));
	struct series_group group;
	a->options = options;
	a->step = step;
	a->shares = usage_walk_new(&(struct usage_walk_options){.scope = options->scope,
								.group_max = GROUP_MAX,
								.read_max_bytes = READ_MAX_BYTES,
								.take = rekey_apply_take_shares,
								.owner = a});
	a->write = store_write_new(options->scope.store, WRITE_MAX_BYTES);
	int err = usage_walk_next(a->shares, &group);
	while (!err && group.count) {
		err = rekey_apply_group(a, &group);
		err = err ? err : usage_walk_next(a->shares, &group);
	}
	*failed += a->failed;
	store_write_free(a->write);
	usage_walk_free(a->shares);
	mem_free(a);
	return err;
}

int retention_rekey(const struct retention_rekey_options *options,
		    const struct retention_usage *survey, uint64_t *failed)
{
	if (!retention_usage_moves(survey))
		return 0;
	int err = retention_rekey_step(options, STORE_REKEY_COPY, failed);
	err = err ? err : task_queue_sleep(options->scope.queue, options->reads_ms);
	return err ? err : retention_rekey_step(options, STORE_REKEY_CLEAR, failed);
}
