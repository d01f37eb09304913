#include "catalog/private.h"

enum {
	LOAD_SLICE_SERIES = 8192,
	COUNT_HOLDS_US = 60000000, /* before a tenant is refused; where the store is shared */
};

/* ---- The tenants --------------------------------------------------------------------------- */

static struct tenant **bucket_of(struct catalog *catalog, struct slice name)
{
	return &catalog->tenants[hash64(name.data, name.len, 0) % TENANT_BUCKETS];
}

static struct tenant *tenant_find(struct catalog *catalog, struct slice name)
{
	struct tenant *tenant = *bucket_of(catalog, name);
	while (tenant && !slice_equal(tenant->name, name))
		tenant = tenant->chain;
	return tenant;
}

struct tenant *tenant_get(struct catalog *catalog, struct slice name)
{
	struct tenant *tenant = tenant_find(catalog, name);
	if (tenant || catalog->tenant_count == TENANTS_MAX)
		return tenant;
	tenant = mem_zalloc(sizeof(*tenant));
	tenant->name = (struct slice){mem_copy_text(name), name.len};
	tenant->budget = (double)catalog->options.new_series_per_minute_max;
	tenant->budget_us = catalog->clock->mono_us(catalog->clock);
	struct tenant **bucket = bucket_of(catalog, name);
	tenant->chain = *bucket;
	*bucket = tenant;
	catalog->tenant_count++;
	return tenant;
}

void tenants_free(struct catalog *catalog)
{
	for (size_t i = 0; i < TENANT_BUCKETS; i++) {
		while (catalog->tenants[i]) {
			struct tenant *tenant = catalog->tenants[i];
			catalog->tenants[i] = tenant->chain;
			mem_free((void *)tenant->name.data);
			mem_free(tenant);
		}
	}
}

/* ---- Permits ------------------------------------------------------------------------------- */

/* The budget fills evenly, a minute's worth in a minute, and holds no more than that. */
static void fill_budget(struct catalog *catalog, struct tenant *tenant)
{
	double full = (double)catalog->options.new_series_per_minute_max;
	int64_t now_us = catalog->clock->mono_us(catalog->clock);
	tenant->budget += (double)(now_us - tenant->budget_us) * full / 60e6;
	tenant->budget_us = now_us;
	if (tenant->budget > full)
		tenant->budget = full;
}

/* It is out of date, and to be taken again. */
static void count_drop(struct tenant *tenant)
{
	tenant->state = COUNT_UNKNOWN;
	tenant->epoch++;
}

/* Others may have forgotten series, so that there is room again. Counting takes a while, so it is
 * done only where a tenant would be refused, and then once a minute at most. */
static bool count_doubtful(struct catalog *catalog, const struct tenant *tenant)
{
	int64_t now_us = catalog->clock->mono_us(catalog->clock);
	return store_is_shared(catalog->store) && now_us - tenant->counted_us >= COUNT_HOLDS_US;
}

enum permit tenant_reserve(struct catalog *catalog, struct tenant *tenant, size_t series)
{
	const struct catalog_options *options = &catalog->options;
	if (options->series_per_tenant_max) {
		if (tenant->state != COUNT_KNOWN)
			return PERMIT_WAIT;
		if (tenant->series + series > options->series_per_tenant_max) {
			if (!count_doubtful(catalog, tenant))
				return PERMIT_SERIES;
			count_drop(tenant);
			return PERMIT_WAIT;
		}
	}
	if (options->new_series_per_minute_max) {
		if (tenant->budget < (double)series)
			fill_budget(catalog, tenant);
		if (tenant->budget < (double)series)
			return PERMIT_RATE;
		tenant->budget -= (double)series;
	}
	tenant->series += series;
	return PERMIT_YES;
}

void tenant_unreserve(struct tenant *tenant, size_t series, uint64_t epoch)
{
	tenant->budget += (double)series; /* cut to what it may hold when it is next filled */
	if (tenant->epoch == epoch)
		tenant->series -= series;
}

void tenant_forget_count(struct catalog *catalog, struct slice name)
{
	struct tenant *tenant = tenant_find(catalog, name);
	if (!tenant || tenant->state != COUNT_KNOWN)
		return;
	count_drop(tenant);
}

/* ---- Counting ------------------------------------------------------------------------------ */

struct limits_load {
	uint32_t magic;
	struct catalog *catalog;
	struct tenant *tenant;
	struct catalog_ask *ask;
	struct store_request *list;
	uint64_t series;
};

static void load_end(struct limits_load *load, int err)
{
	struct catalog *catalog = load->catalog;
	struct tenant *tenant = load->tenant;
	pthread_mutex_lock(&catalog->lock);
	tenant->state = err ? COUNT_UNKNOWN : COUNT_KNOWN;
	tenant->series = load->series;
	if (store_is_shared(catalog->store))
		tenant->counted_us = catalog->clock->mono_us(catalog->clock);
	tenant->epoch++;
	struct catalog_open *waiting = tenant->waiting;
	tenant->waiting = NULL;
	pthread_mutex_unlock(&catalog->lock);
	ask_release(load->ask);
	load->magic = 0;
	mem_free(load);
	while (waiting) {
		struct catalog_open *open = waiting;
		waiting = open->next;
		open_resume(open, err);
	}
}

static int load_slice(struct limits_load *load, const struct store_token *token)
{
	load->list = catalog_ask_again(load->ask, STORE_SERIES_LIST, token);
	load->list->series_list.tenant = load->tenant->name;
	load->list->series_list.limit = LOAD_SLICE_SERIES;
	return ask_submit(load->ask);
}

static void load_done(void *owner, int err)
{
	struct limits_load *load = FROM_OWNER(limits_load, owner);
	load->series += load->list->series_list.count;
	bool more = !err && load->list->more;
	if (more)
		err = load_slice(load, &load->list->token);
	if (!more || err)
		load_end(load, err);
}

void tenant_load(struct catalog *catalog, struct tenant *tenant)
{
	struct limits_load *load = mem_zalloc(sizeof(*load));
	load->magic = MAGIC_OF(limits_load);
	load->catalog = catalog;
	load->tenant = tenant;
	load->ask = ask_new(catalog, load_done, load);
	int err = load_slice(load, NULL);
	if (err)
		load_end(load, err);
}
