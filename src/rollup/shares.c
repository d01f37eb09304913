#include "rollup/shares.h"

struct shares {
	struct shares_options options;
	struct store_read *read;
	struct store_request *counted[SHARES_PLACES_MAX];
	size_t taken[SHARES_PLACES_MAX]; /* series */
};

static void on_counted(struct store_read *read, int err);

struct shares *shares_new(const struct shares_options *options)
{
	struct shares *shares = mem_zalloc(sizeof(*shares));
	shares->options = *options;
	shares->read = series_walk_read_new(options->walk, on_counted, shares);
	return shares;
}

void shares_free(struct shares *shares)
{
	store_read_free(shares->read);
	mem_free(shares);
}

void shares_count(struct shares *shares)
{
	const struct shares_options *o = &shares->options;
	struct series_group group = series_walk_group(o->walk);
	store_read_reset(shares->read);
	for (size_t place = 0; place < shares_places(o->grains); place++) {
		struct store_request *request = store_read_add(shares->read, STORE_SHARES);
		ASSERT(request);
		request->shares =
			(struct store_shares){.table = shares_table(place),
					      .period_ms = shares_period_ms(o->grains, place),
					      .handles = group.handles,
					      .handle_count = group.count};
		shares->counted[place] = request;
		shares->taken[place] = 0;
	}
	series_walk_submit(o->walk, shares->read);
}

/* Each slice gives the shares of some more series, at each place of its own number of them. */
static void take_slice(struct shares *shares, size_t place)
{
	const struct shares_options *o = &shares->options;
	const struct store_shares *slice = &shares->counted[place]->shares;
	for (size_t *i = &shares->taken[place]; *i < slice->next_handle; ++*i)
		o->take(o->owner, *i, place, &slice->list[*i * RETENTION_CLASSES]);
}

static void on_counted(struct store_read *read, int err)
{
	struct shares *shares = read->owner;
	const struct shares_options *o = &shares->options;
	bool more = false;
	for (size_t place = 0; place < shares_places(o->grains) && !err; place++) {
		take_slice(shares, place);
		more |= shares->counted[place]->more;
	}
	if (more)
		series_walk_submit(o->walk, read);
	else
		o->done(o->owner, err);
}
