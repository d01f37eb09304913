/* The sweep: series whose longest retention has passed leave.
 *
 * A slice of the registry, then those of it that are old enough and have no sample within the
 * retention are offered to the store, which forgets them if no table has data of theirs. Who holds
 * the handle of a forgotten series gets ERR_NOT_FOUND with his next sample and opens it again, so a
 * series that wakes up at that moment loses nothing. */
#include "catalog/private.h"

enum { SLICE_SERIES = 1024, FORGET_MAX_BYTES = 1 << 20 };

struct sweep {
	struct catalog *catalog;
	struct catalog_ask *list, *last;
	struct store_request *slice;
	struct store_write *write;
	int64_t before_ms; /* first seen and last seen earlier than this: to be forgotten */
	uint64_t *handles; /* of this slice that are old, SLICE_SERIES */
	const struct store_series **series;
	size_t count;
};

static void sweep_free(struct sweep *sweep)
{
	sweep->catalog->sweep = NULL;
	ask_release(sweep->list);
	ask_release(sweep->last);
	store_write_free(sweep->write);
	mem_free(sweep->handles);
	mem_free((void *)sweep->series);
	mem_free(sweep);
}

static int list_slice(struct sweep *sweep, const struct store_token *token)
{
	sweep->slice = catalog_ask_again(sweep->list, STORE_SERIES_LIST, token);
	sweep->slice->series_list.limit = SLICE_SERIES;
	return ask_submit(sweep->list);
}

/* The next slice, or the end. */
static void go_on(struct sweep *sweep, int err)
{
	if (!err && sweep->slice->more && !sweep->catalog->closing)
		err = list_slice(sweep, &sweep->slice->token);
	else
		err = err ? err : ERR_CANCELLED;
	if (err)
		sweep_free(sweep);
}

/* ---- Forgetting ---------------------------------------------------------------------------- */

void catalog_forgotten(struct catalog *catalog, struct slice tenant, struct slice metric)
{
	indexes_drop(catalog, tenant, metric);
	pthread_mutex_lock(&catalog->lock);
	tenant_forget_count(catalog, tenant);
	pthread_mutex_unlock(&catalog->lock);
	stat_add(STAT_catalog_forget_tried, 1);
}

static void forget_known(struct sweep *sweep)
{
	for (size_t i = 0; i < sweep->count; i++)
		catalog_forgotten(sweep->catalog, sweep->series[i]->tenant,
				  sweep->series[i]->metric);
}

static void forgotten(struct store_write *write, int err)
{
	struct sweep *sweep = write->owner;
	struct catalog *catalog = sweep->catalog;
	forget_known(sweep);
	go_on(sweep, err);
	catalog_leave(catalog);
}

static int forget(struct sweep *sweep)
{
	store_write_reset(sweep->write);
	for (size_t at = 0; at < sweep->count; at += STORE_GROUP_MAX) {
		size_t n = sweep->count - at;
		n = n < STORE_GROUP_MAX ? n : STORE_GROUP_MAX;
		int err = store_series_forget(sweep->write, sweep->handles + at, n);
		if (err)
			return err;
	}
	catalog_enter(sweep->catalog);
	int err = store_write_submit(sweep->write);
	if (err)
		sweep->catalog->busy--; /* the caller is inside */
	return err;
}

/* ---- Choosing ------------------------------------------------------------------------------ */

static void keep_silent(struct sweep *sweep)
{
	const struct store_last_before *last = &sweep->last->read->requests->last_before;
	size_t kept = 0;
	for (size_t i = 0; i < sweep->count; i++) {
		if (last->points[i].count)
			continue;
		sweep->handles[kept] = sweep->handles[i];
		sweep->series[kept++] = sweep->series[i];
	}
	sweep->count = kept;
}

static void last_known(void *owner, int err)
{
	struct sweep *sweep = owner;
	/* Cut short: a later sweep comes back to this slice. */
	if (err || sweep->last->read->requests->more || sweep->catalog->closing) {
		go_on(sweep, err);
		return;
	}
	keep_silent(sweep);
	if (!sweep->count) {
		go_on(sweep, 0);
		return;
	}
	err = forget(sweep);
	if (err)
		go_on(sweep, err);
}

static int ask_last(struct sweep *sweep)
{
	struct store_request *request = catalog_ask_again(sweep->last, STORE_LAST_BEFORE, NULL);
	request->last_before = (struct store_last_before){
		.table = TABLE_DATA_RAW,
		.handles = sweep->handles,
		.handle_count = sweep->count,
		.before_ms = STORE_TS_MAX,
		.look_back_ms = STORE_TS_MAX - sweep->before_ms,
	};
	return ask_submit(sweep->last);
}

static void listed(void *owner, int err)
{
	struct sweep *sweep = owner;
	const struct store_series_list *list = &sweep->slice->series_list;
	sweep->count = 0;
	for (size_t i = 0; !err && i < list->count && sweep->count < SLICE_SERIES; i++) {
		if (list->series[i].first_seen_ms >= sweep->before_ms)
			continue;
		sweep->handles[sweep->count] = list->series[i].handle;
		sweep->series[sweep->count++] = &list->series[i];
	}
	if (err || !sweep->count) {
		go_on(sweep, err);
		return;
	}
	err = ask_last(sweep);
	if (err)
		go_on(sweep, err);
}

/* ---- Start --------------------------------------------------------------------------------- */

void catalog_sweep(struct catalog *catalog)
{
	int64_t retention_ms = catalog->options.longest_retention_ms;
	if (retention_ms <= 0 || catalog->sweep || catalog->closing)
		return;
	struct sweep *sweep = mem_zalloc(sizeof(*sweep));
	sweep->catalog = catalog;
	sweep->before_ms = clock_age_ms(catalog->clock) - retention_ms;
	sweep->list = ask_new(catalog, listed, sweep);
	sweep->last = ask_new(catalog, last_known, sweep);
	sweep->write = store_write_new(catalog->store, FORGET_MAX_BYTES);
	sweep->write->executor = catalog->executor;
	sweep->write->done = forgotten;
	sweep->write->owner = sweep;
	sweep->handles = mem_alloc_array(SLICE_SERIES, sizeof(*sweep->handles));
	sweep->series = mem_alloc_array(SLICE_SERIES, sizeof(*sweep->series));
	catalog->sweep = sweep;
	stat_add(STAT_catalog_sweeps, 1);
	if (list_slice(sweep, NULL))
		sweep_free(sweep);
}

void sweep_cancel(struct catalog *catalog)
{
	if (!catalog->sweep)
		return;
	store_read_cancel(catalog->sweep->list->read);
	store_read_cancel(catalog->sweep->last->read);
}
