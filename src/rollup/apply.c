#include "rollup/apply.h"

#include "base/fault.h"
#include "rollup/shares.h"

enum {
	GROUP_MAX = 64, /* series of one slice: about those that lie in one group of the store */
	READ_MAX_BYTES = 8 << 20,
	WRITE_MAX_BYTES = 1 << 20,
};

/* Of one place and series. */
struct elsewhere {
	bool any;
	enum retention_class to;
	int64_t oldest_ms;
};

struct retention_apply {
	struct retention_apply_options options; /* but for tenant and metric, which the walk has */
	struct shares *shares;
	struct store_write *write;
	struct elsewhere elsewhere[SHARES_PLACES_MAX][GROUP_MAX];
	/* What is being moved: those of a place that belong to a class. */
	size_t place;
	int to;
	uint64_t moved[GROUP_MAX];
	size_t moved_count;
	int64_t at_ms;
	uint64_t failed;
};

static void take_shares(void *owner, size_t i, const struct store_series *series, size_t place,
			const struct store_share *shares);
static void on_counted(void *owner);
static void on_moved(struct store_write *write, int err);
static void end(void *owner, int err);

/* ---- Life ------------------------------------------------------------------------------------ */

struct retention_apply *retention_apply_start(const struct retention_apply_options *options)
{
	struct retention_apply *a = mem_zalloc(sizeof(*a));
	a->options = *options;
	a->shares = shares_start(&(struct shares_options){.scope = options->scope,
							  .group_max = GROUP_MAX,
							  .read_max_bytes = READ_MAX_BYTES,
							  .take = take_shares,
							  .counted = on_counted,
							  .done = end,
							  .owner = a});
	a->write = store_write_new(options->scope.store, WRITE_MAX_BYTES);
	a->write->executor = options->scope.executor;
	a->write->done = on_moved;
	a->write->owner = a;
	return a;
}

void retention_apply_free(struct retention_apply *a)
{
	shares_free(a->shares);
	store_write_free(a->write);
	mem_free(a);
}

void retention_apply_cancel(struct retention_apply *a)
{
	series_walk_cancel(shares_walk(a->shares));
}

uint64_t retention_apply_failed(const struct retention_apply *a)
{
	return a->failed;
}

static void end(void *owner, int err)
{
	struct retention_apply *a = owner;
	a->options.done(a->options.owner, err);
}

/* ---- What lies elsewhere --------------------------------------------------------------------- */

static void take_shares(void *owner, size_t i, const struct store_series *series, size_t place,
			const struct store_share *shares)
{
	struct retention_apply *a = owner;
	struct elsewhere *e = &a->elsewhere[place][i];
	struct shares_kept kept = shares_kept(a->shares, series->tenant, series->metric, place);
	*e = (struct elsewhere){.to = kept.retention};
	for (size_t c = 0; c < RETENTION_CLASSES; c++) {
		if (c == (size_t)e->to || !shares[c].samples)
			continue;
		if (!e->any || shares[c].oldest_ms < e->oldest_ms)
			e->oldest_ms = shares[c].oldest_ms;
		e->any = true;
	}
}

/* ---- Moving ---------------------------------------------------------------------------------- */

static int64_t segment_ms(const struct retention_apply *a)
{
	return schema_segment_ms(shares_table(a->shares, a->place),
				 shares_period_ms(a->shares, a->place));
}

/* The series of the present place and class. */
static void choose(struct retention_apply *a)
{
	struct series_group group = series_walk_group(shares_walk(a->shares));
	int64_t oldest_ms = INT64_MAX;
	a->moved_count = 0;
	for (size_t i = 0; i < group.count; i++) {
		const struct elsewhere *e = &a->elsewhere[a->place][i];
		if (!e->any || (int)e->to != a->to)
			continue;
		a->moved[a->moved_count++] = group.handles[i];
		oldest_ms = e->oldest_ms < oldest_ms ? e->oldest_ms : oldest_ms;
	}
	a->at_ms = a->moved_count ? floor_to(oldest_ms, segment_ms(a)) : INT64_MAX;
}

/* Up to now by segments, then what lies behind. */
static int add_slice(struct retention_apply *a)
{
	const struct retention_apply_options *o = &a->options;
	int64_t start_ms = a->at_ms, end_ms = start_ms + segment_ms(a);
	if (start_ms > o->asof_ms)
		end_ms = STORE_TS_MAX;
	a->at_ms = end_ms == STORE_TS_MAX ? INT64_MAX : end_ms;
	store_write_reset(a->write);
	return store_rekey(a->write, shares_table(a->shares, a->place),
			   shares_period_ms(a->shares, a->place), (enum retention_class)a->to,
			   o->step, a->moved, a->moved_count, start_ms, end_ms, o->asof_ms);
}

static void move_next(struct retention_apply *a)
{
	struct series_walk *walk = shares_walk(a->shares);
	size_t places = shares_places(a->shares);
	while (a->at_ms == INT64_MAX && a->place < places) {
		if (++a->to == RETENTION_CLASSES) {
			a->to = 0;
			a->place++;
		}
		if (a->place < places)
			choose(a);
	}
	if (a->place == places) {
		series_walk_next(walk);
		return;
	}
	int err = series_walk_cancelled(walk) ? ERR_CANCELLED : fault("retention_apply");
	err = err ? err : add_slice(a);
	err = err ? err : store_write_submit(a->write);
	if (err)
		end(a, err);
}

static void on_moved(struct store_write *write, int err)
{
	struct retention_apply *a = write->owner;
	a->failed += err == ERR_DAMAGED;
	if (err && err != ERR_DAMAGED)
		end(a, err);
	else
		move_next(a);
}

static void on_counted(void *owner)
{
	struct retention_apply *a = owner;
	a->place = 0;
	a->to = -1;
	a->at_ms = INT64_MAX;
	move_next(a);
}
