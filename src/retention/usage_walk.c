#include "retention/usage_walk.h"

struct shares {
	struct shares_options options;
	struct series_walk *walk;
	struct store_read *read;
	struct retention_memo memo;
};

/* ---- Life ------------------------------------------------------------------------------------ */

struct shares *shares_new(const struct shares_options *options)
{
	struct shares *shares = mem_zalloc(sizeof(*shares));
	const struct retention_scope *scope = &options->scope;
	shares->options = *options;
	shares->walk = series_walk_new(
		&(struct series_walk_options){.store = scope->store,
					      .clock = scope->clock,
					      .queue = scope->queue,
					      .tenant = scope->tenant,
					      .metric = scope->metric,
					      .group_max = options->group_max,
					      .list_max_bytes = options->read_max_bytes});
	shares->read = store_read_new(scope->store, options->read_max_bytes);
	return shares;
}

void shares_free(struct shares *shares)
{
	store_read_free(shares->read);
	series_walk_free(shares->walk);
	retention_memo_release(&shares->memo);
	mem_free(shares);
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

/* Each slice gives the shares of some more series, of each place its own number of them. */
static void shares_take_slice(struct shares *shares, const struct store_series *series,
			      const struct store_shares *slice, size_t place, size_t *taken)
{
	const struct shares_options *o = &shares->options;
	for (size_t *i = taken; *i < slice->next_handle; ++*i)
		o->take(o->owner, *i, &series[*i], place, &slice->list[*i * RETENTION_CLASSES]);
}

static void shares_ask(struct shares *shares, const struct series_group *group,
		       struct store_request *asked[SHARES_PLACES_MAX])
{
	store_read_reset(shares->read);
	for (size_t place = 0; place < shares_places(shares); place++) {
		asked[place] = store_read_add(shares->read, STORE_SHARES);
		ASSERT(asked[place]); /* some of an empty arena */
		asked[place]->shares =
			(struct store_shares){.table = shares_table(shares, place),
					      .period_ms = shares_period_ms(shares, place),
					      .handles = group->handles,
					      .handle_count = group->count};
	}
}

int shares_next(struct shares *shares, struct series_group *group)
{
	struct store_request *asked[SHARES_PLACES_MAX];
	size_t taken[SHARES_PLACES_MAX] = {0};
	int err = series_walk_next(shares->walk, group);
	if (err || !group->count)
		return err;
	shares_ask(shares, group, asked);
	for (bool more = true; more;) {
		err = series_walk_read(shares->walk, shares->read);
		if (err)
			return err;
		more = false;
		for (size_t place = 0; place < shares_places(shares); place++) {
			shares_take_slice(shares, group->series, &asked[place]->shares, place,
					  &taken[place]);
			more |= asked[place]->more;
		}
	}
	return 0;
}
