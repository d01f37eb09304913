#include "rollup/shares.h"

struct shares {
	struct shares_options options; /* but for tenant and metric, which the walk has */
	struct series_walk *walk;
	struct store_read *read;
	struct store_request *counted[SHARES_PLACES_MAX];
	size_t taken[SHARES_PLACES_MAX]; /* series */
	struct retention_memo memo;
};

static void count_group(void *owner);
static void on_counted(struct store_read *read, int err);
static void end(void *owner, int err);

/* ---- Life ------------------------------------------------------------------------------------ */

struct shares *shares_start(const struct shares_options *options)
{
	struct shares *shares = mem_zalloc(sizeof(*shares));
	const struct retention_scope *scope = &options->scope;
	shares->options = *options;
	shares->walk = series_walk_start(
		&(struct series_walk_options){.store = scope->store,
					      .clock = scope->clock,
					      .executor = scope->executor,
					      .tenant = scope->tenant,
					      .metric = scope->metric,
					      .group_max = options->group_max,
					      .read_max_bytes = options->read_max_bytes,
					      .group = count_group,
					      .done = end,
					      .owner = shares});
	shares->read = series_walk_read_new(shares->walk, on_counted, shares);
	return shares;
}

void shares_free(struct shares *shares)
{
	store_read_free(shares->read);
	series_walk_free(shares->walk);
	retention_memo_release(&shares->memo);
	mem_free(shares);
}

struct series_walk *shares_walk(const struct shares *shares)
{
	return shares->walk;
}

static void end(void *owner, int err)
{
	struct shares *shares = owner;
	shares->options.done(shares->options.owner, err);
}

/* ---- Places ---------------------------------------------------------------------------------- */

size_t shares_places(const struct shares *shares)
{
	return 2 + shares->options.scope.grains->count;
}

enum table shares_table(const struct shares *shares, size_t place)
{
	if (place == 0)
		return TABLE_DATA_RAW;
	return place == shares_places(shares) - 1 ? TABLE_DATA_LATE : TABLE_DATA_DOWNSAMPLED;
}

int64_t shares_period_ms(const struct shares *shares, size_t place)
{
	return shares_table(shares, place) == TABLE_DATA_DOWNSAMPLED
		       ? shares->options.scope.grains->list[place - 1].width_ms
		       : 0;
}

struct shares_kept shares_kept(struct shares *shares, struct slice tenant, struct slice metric,
			       size_t place)
{
	const struct retention_scope *scope = &shares->options.scope;
	struct retention_fit fit = retention_find(scope->rules, &shares->memo, tenant, metric);
	bool late = shares_table(shares, place) == TABLE_DATA_LATE;
	int64_t preset_ms = late    ? scope->late_retention_ms
			    : place ? scope->grains->list[place - 1].retention_ms
				    : scope->raw_retention_ms;
	struct shares_kept kept = {.rule = late ? 0 : place ? fit.grains[place - 1] : fit.raw};
	kept.keep_ms = retention_keep_ms(scope->rules, kept.rule, preset_ms);
	kept.retention = retention_class_for(kept.keep_ms);
	return kept;
}

/* ---- Counting -------------------------------------------------------------------------------- */

static void count_group(void *owner)
{
	struct shares *shares = owner;
	struct series_group group = series_walk_group(shares->walk);
	store_read_reset(shares->read);
	for (size_t place = 0; place < shares_places(shares); place++) {
		struct store_request *request = store_read_add(shares->read, STORE_SHARES);
		ASSERT(request);
		request->shares =
			(struct store_shares){.table = shares_table(shares, place),
					      .period_ms = shares_period_ms(shares, place),
					      .handles = group.handles,
					      .handle_count = group.count};
		shares->counted[place] = request;
		shares->taken[place] = 0;
	}
	series_walk_submit(shares->walk, shares->read);
}

/* Each slice gives the shares of some more series, of each place its own number of them. */
static void take_slice(struct shares *shares, size_t place)
{
	const struct shares_options *o = &shares->options;
	const struct store_series *series = series_walk_group(shares->walk).series;
	const struct store_shares *slice = &shares->counted[place]->shares;
	for (size_t *i = &shares->taken[place]; *i < slice->next_handle; ++*i)
		o->take(o->owner, *i, &series[*i], place, &slice->list[*i * RETENTION_CLASSES]);
}

static void on_counted(struct store_read *read, int err)
{
	struct shares *shares = read->owner;
	bool more = false;
	if (err) {
		end(shares, err);
		return;
	}
	for (size_t place = 0; place < shares_places(shares); place++) {
		take_slice(shares, place);
		more |= shares->counted[place]->more;
	}
	if (more)
		series_walk_submit(shares->walk, read);
	else
		shares->options.counted(shares->options.owner);
}
