#include "retention/usage_walk.h"

struct usage_walk {
	struct usage_walk_options options;
	struct series_walk *walk;
	struct store_read *read;
	struct retention_memo memo;
};

/* ---- Life ------------------------------------------------------------------------------------ */

struct usage_walk *usage_walk_new(const struct usage_walk_options *options)
{
	struct usage_walk *shares = mem_zalloc(sizeof(*shares));
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

void usage_walk_free(struct usage_walk *shares)
{
	store_read_free(shares->read);
	series_walk_free(shares->walk);
	retention_memo_release(&shares->memo);
	mem_free(shares);
}

/* ---- Places ---------------------------------------------------------------------------------- */

size_t usage_walk_places(const struct usage_walk *shares)
{
	return 2 + shares->options.scope.granularities->count;
}

enum table usage_walk_table(const struct usage_walk *shares, size_t place)
{
	if (place == 0)
		return TABLE_DATA_RAW;
	return place == usage_walk_places(shares) - 1 ? TABLE_DATA_LATE : TABLE_DATA_DOWNSAMPLED;
}

int64_t usage_walk_period_ms(const struct usage_walk *shares, size_t place)
{
	return usage_walk_table(shares, place) == TABLE_DATA_DOWNSAMPLED
		       ? shares->options.scope.granularities->list[place - 1].width_ms
		       : 0;
}

struct usage_walk_kept usage_walk_kept(struct usage_walk *shares, struct slice tenant,
				       struct slice metric, size_t place)
{
	const struct retention_scope *scope = &shares->options.scope;
	struct retention_fit fit = retention_find(scope->rules, &shares->memo, tenant, metric);
	bool late = usage_walk_table(shares, place) == TABLE_DATA_LATE;
	int64_t preset_ms = late    ? scope->late_retention_ms
			    : place ? scope->granularities->list[place - 1].retention_ms
				    : scope->rules->levels_ms[0];
	struct usage_walk_kept kept = {.rule = late    ? 0
					       : place ? fit.granularities[place - 1]
						       : fit.raw};
	kept.keep_ms = retention_keep_ms(scope->rules, kept.rule, preset_ms);
	kept.retention = retention_class_for(kept.keep_ms);
	return kept;
}

/* ---- Counting -------------------------------------------------------------------------------- */

static void usage_walk_ask(struct usage_walk *shares, const struct series_group *group,
			   struct store_request *asked[USAGE_WALK_PLACES_MAX])
{
	store_read_reset(shares->read);
	for (size_t place = 0; place < usage_walk_places(shares); place++) {
		asked[place] = store_read_add(shares->read, STORE_SHARES);
		ASSERT(asked[place]); /* some of an empty arena */
		asked[place]->shares =
			(struct store_shares){.table = usage_walk_table(shares, place),
					      .period_ms = usage_walk_period_ms(shares, place),
					      .handles = group->handles,
					      .handle_count = group->count};
	}
}

/* Each slice gives the shares of some more series, of each place its own number of them. */
int usage_walk_next(struct usage_walk *shares, struct series_group *group)
{
	const struct usage_walk_options *o = &shares->options;
	struct store_request *asked[USAGE_WALK_PLACES_MAX];
	size_t taken[USAGE_WALK_PLACES_MAX] = {0};
	int err = series_walk_next(shares->walk, group);
	if (err || !group->count)
		return err;
	usage_walk_ask(shares, group, asked);
	for (bool more = true; more;) {
		err = series_walk_read(shares->walk, shares->read);
		if (err)
			return err;
		more = false;
		for (size_t place = 0; place < usage_walk_places(shares); place++) {
			const struct store_shares *slice = &asked[place]->shares;
			for (size_t *i = &taken[place]; *i < slice->next_handle; ++*i)
				o->take(o->owner, *i, &group->series[*i], place,
					&slice->list[*i * RETENTION_CLASSES]);
			more |= asked[place]->more;
		}
	}
	return 0;
}
