/* Finding: the indexes of metrics, built at first use, kept by use.
 *
 * An entry is in the table before its first listing is submitted. From then on every opening puts
 * its new series into entry->fresh, and each find takes those over before it looks. A series that
 * was registered earlier is in the listing. So a find sees what was registered before it began,
 * however the two interleave; what comes twice has one handle and is kept once.
 *
 * Where other processes share the store (STORE_SHARED) they register series too, so entry->fresh is
 * not used there: the store's news are. Their first token is taken before the listing, and each
 * find asks for what came since, before it looks; its own process' series are among that. A read of
 * news serves the finds that were there when it was submitted. Those that come meanwhile may know
 * of a series that it misses, so they wait for the next one, all together. An index that was not
 * asked for so long that its news have gone is built again for whoever asks.
 *
 * An index dies when series may have been forgotten (the store's generation has changed), when too
 * much was registered between two uses to keep, or when the memory is needed. What other processes
 * forget is not told: their forgotten series are given until the index dies. */
#include "catalog/private.h"

enum {
	SLICE_SERIES = 4096,
	/* New series kept for an index, and for all indexes. For more of them an index is built
	 * again; but new series must not outrun an index that is just being built. */
	FRESH_MAX_BYTES = 1 << 20,
	FRESH_BUILDING_MAX_BYTES = 64 << 20,
	FRESH_TOTAL_MAX_BYTES = 64 << 20,
	ENTRY_BYTES = 512, /* counted for each index, so that empty ones are bounded too */
};

struct index_entry {
	uint32_t magic;
	struct catalog *catalog;
	struct index_entry *chain;         /* in the table */
	struct index_entry *older, *newer; /* by last use */
	struct slice tenant, metric;
	uint64_t hash;
	bool built; /* changed under the lock */
	struct tag_index *index;
	uint64_t generation; /* of the store, before the listing began */
	size_t counted_bytes, counted_series;
	uint64_t since;               /* its news go on there */
	bool outdated;                /* to be built again, once it is not busy */
	struct catalog_later waiting; /* finds, while it is busy: for it to be built, or for news */
	struct catalog_later asking;  /* finds that the news under way are for */
	struct catalog_ask *ask;      /* while it is busy: being built, or asking for news */
	struct store_request *request;
	/* Shared: */
	struct buf fresh; /* new series: handle, length, tags text */
	bool fresh_lost;  /* they were too many */
};

/* ---- The table ----------------------------------------------------------------------------- */

static uint64_t entry_hash(struct slice tenant, struct slice metric)
{
	return hash64(metric.data, metric.len, name_seed(tenant));
}

static struct index_entry *entry_find(struct catalog *catalog, uint64_t hash, struct slice tenant,
				      struct slice metric)
{
	struct index_entry *entry = catalog->indexes[hash % INDEX_BUCKETS];
	while (entry && !(entry->hash == hash && slice_equal(entry->metric, metric) &&
			  slice_equal(entry->tenant, tenant)))
		entry = entry->chain;
	return entry;
}

static void use_remove(struct catalog *catalog, struct index_entry *entry)
{
	*(entry->newer ? &entry->newer->older : &catalog->newest) = entry->older;
	*(entry->older ? &entry->older->newer : &catalog->oldest) = entry->newer;
	entry->newer = entry->older = NULL;
}

static void use_first(struct catalog *catalog, struct index_entry *entry)
{
	entry->older = catalog->newest;
	*(catalog->newest ? &catalog->newest->newer : &catalog->oldest) = entry;
	catalog->newest = entry;
}

static void publish_usage(struct catalog *catalog)
{
	stat_set(STAT_catalog_indexes, (int64_t)catalog->index_count);
	stat_set(STAT_catalog_index_bytes, (int64_t)catalog->index_bytes);
	stat_set(STAT_catalog_indexed_series, (int64_t)catalog->indexed_series);
}

static void find_count_entry(struct index_entry *entry, size_t bytes, size_t series)
{
	struct catalog *catalog = entry->catalog;
	catalog->index_bytes += bytes - entry->counted_bytes;
	catalog->indexed_series += series - entry->counted_series;
	entry->counted_bytes = bytes;
	entry->counted_series = series;
	ASSERT(catalog->index_bytes >= bytes && catalog->indexed_series >= series);
}

static struct index_entry *entry_new(struct catalog *catalog, uint64_t hash, struct slice tenant,
				     struct slice metric)
{
	struct index_entry *entry = mem_zalloc(sizeof(*entry));
	entry->magic = MAGIC_OF(index_entry);
	entry->catalog = catalog;
	entry->hash = hash;
	entry->tenant = (struct slice){mem_copy_text(tenant), tenant.len};
	entry->metric = (struct slice){mem_copy_text(metric), metric.len};
	entry->index = tag_index_new();
	entry->generation = store_series_generation(catalog->store);
	later_list_init(&entry->waiting);
	later_list_init(&entry->asking);
	buf_init(&entry->fresh, FRESH_BUILDING_MAX_BYTES);
	pthread_mutex_lock(&catalog->lock);
	entry->chain = catalog->indexes[hash % INDEX_BUCKETS];
	catalog->indexes[hash % INDEX_BUCKETS] = entry;
	catalog->index_count++;
	pthread_mutex_unlock(&catalog->lock);
	use_first(catalog, entry);
	find_count_entry(entry, ENTRY_BYTES, 0);
	return entry;
}

static void entry_free(struct index_entry *entry)
{
	struct catalog *catalog = entry->catalog;
	pthread_mutex_lock(&catalog->lock);
	struct index_entry **link = &catalog->indexes[entry->hash % INDEX_BUCKETS];
	while (*link != entry)
		link = &(*link)->chain;
	*link = entry->chain;
	catalog->index_count--;
	catalog->fresh_bytes -= entry->fresh.len;
	pthread_mutex_unlock(&catalog->lock);
	use_remove(catalog, entry);
	find_count_entry(entry, 0, 0);
	tag_index_release(entry->index);
	buf_release(&entry->fresh);
	ask_release(entry->ask);
	mem_free((void *)entry->tenant.data);
	mem_free((void *)entry->metric.data);
	entry->magic = 0;
	mem_free(entry);
}

/* Finds wait for it. */
static bool entry_busy(const struct index_entry *entry)
{
	return entry->ask != NULL;
}

static bool entry_old(const struct index_entry *entry)
{
	return entry->outdated ||
	       entry->generation != store_series_generation(entry->catalog->store);
}

/* The least used go, but never `keep` nor what is busy. */
static void find_evict(struct catalog *catalog, const struct index_entry *keep)
{
	struct index_entry *entry = catalog->oldest;
	while (entry && catalog->index_bytes > catalog->options.index_max_bytes) {
		struct index_entry *newer = entry->newer;
		if (entry != keep && !entry_busy(entry)) {
			stat_add(STAT_catalog_index_evictions, 1);
			entry_free(entry);
		}
		entry = newer;
	}
}

/* ---- New series ---------------------------------------------------------------------------- */

static bool fresh_full(const struct index_entry *entry, size_t more)
{
	if (!entry->built)
		return entry->fresh.len + more > FRESH_BUILDING_MAX_BYTES;
	return entry->fresh.len + more > FRESH_MAX_BYTES ||
	       entry->catalog->fresh_bytes + more > FRESH_TOTAL_MAX_BYTES;
}

static void find_note_series(struct index_entry *entry, uint64_t handle, const struct buf *text)
{
	uint16_t len = (uint16_t)text->len;
	size_t more = sizeof(handle) + sizeof(len) + len;
	if (entry->fresh_lost)
		return;
	if (fresh_full(entry, more)) {
		entry->fresh_lost = true;
		entry->catalog->fresh_bytes -= entry->fresh.len;
		buf_release(&entry->fresh);
		return;
	}
	buf_append(&entry->fresh, &handle, sizeof(handle));
	buf_append(&entry->fresh, &len, sizeof(len));
	buf_append(&entry->fresh, text->data, len);
	entry->catalog->fresh_bytes += more;
}

void indexes_note(struct catalog *catalog, const struct catalog_group *group)
{
	if (!catalog->index_count || store_is_shared(catalog->store))
		return;
	struct buf *text = &catalog->note_text;
	buf_clear(text);
	if (tags_encode(group->tags, text))
		return; /* longer than any store takes */
	for (size_t i = 0; i < group->count; i++) {
		uint64_t hash = entry_hash(group->tenant, group->metrics[i]);
		struct index_entry *entry =
			entry_find(catalog, hash, group->tenant, group->metrics[i]);
		if (entry && group->handles[i])
			find_note_series(entry, group->handles[i], text);
	}
}

static int add_fresh(struct index_entry *entry, const struct buf *fresh)
{
	for (size_t at = 0; at < fresh->len;) {
		uint64_t handle;
		uint16_t len;
		memcpy(&handle, fresh->data + at, sizeof(handle));
		memcpy(&len, fresh->data + at + sizeof(handle), sizeof(len));
		at += sizeof(handle) + sizeof(len);
		int err =
			tag_index_add(entry->index, handle, (struct slice){fresh->data + at, len});
		if (err)
			return err;
		at += len;
	}
	return 0;
}

/* Takes over what was registered since; false: it cannot, and must be built again. */
static bool entry_refresh(struct index_entry *entry)
{
	struct catalog *catalog = entry->catalog;
	pthread_mutex_lock(&catalog->lock);
	struct buf fresh = entry->fresh;
	bool lost = entry->fresh_lost;
	catalog->fresh_bytes -= fresh.len;
	buf_init(&entry->fresh, FRESH_BUILDING_MAX_BYTES);
	pthread_mutex_unlock(&catalog->lock);
	bool whole = !lost && add_fresh(entry, &fresh) == 0;
	if (fresh.len)
		find_count_entry(entry, ENTRY_BYTES + tag_index_bytes(entry->index),
				 tag_index_series(entry->index));
	buf_release(&fresh);
	return whole && entry->counted_bytes <= catalog->options.index_max_bytes;
}

void indexes_drop(struct catalog *catalog, struct slice tenant, struct slice metric)
{
	uint64_t hash = entry_hash(tenant, metric);
	struct index_entry *entry = entry_find(catalog, hash, tenant, metric);
	if (entry && !entry_busy(entry))
		entry_free(entry);
	else if (entry && entry->built)
		entry->outdated = true;
}

/* ---- Looking ------------------------------------------------------------------------------- */

static void find_run(struct catalog_later *later);

static void find_finish(struct catalog_find *find, int err)
{
	tag_search_free(find->search);
	find->search = NULL;
	if (err && !find->error.text[0])
		errbuf_set(&find->error, err, "looking up %.*s: %s", (int)find->metric.len,
			   find->metric.data, err_text(err));
	find->done(find, err);
}

static void find_step(struct catalog_later *later)
{
	struct catalog_find *find = CONTAINER_OF(later, struct catalog_find, later);
	int err;
	if (find->catalog->closing) {
		find_finish(find, ERR_CANCELLED);
		return;
	}
	bool over = tag_search_step(find->search, &err);
	if (!over)
		later_do(find->catalog, later, find_step);
	if (find->list)
		list_from_index(find->list, over, err);
	else if (over)
		find_finish(find, err);
}

static void index_failed(struct catalog_find *find, int err, const char *why)
{
	if (err == ERR_LIMIT)
		errbuf_set(&find->error, err,
			   "%.*s has more series than the index may hold "
			   "(catalog.index_max)",
			   (int)find->metric.len, find->metric.data);
	else
		errbuf_set(&find->error, err, "looking up %.*s: %s", (int)find->metric.len,
			   find->metric.data, why);
	find_finish(find, err);
}

/* ---- News ---------------------------------------------------------------------------------- */

static int index_add_all(struct index_entry *entry, const struct store_series *series, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int err = tag_index_add(entry->index, series[i].handle, series[i].tags_text);
		if (err)
			return err;
	}
	size_t bytes = tag_index_bytes(entry->index);
	find_count_entry(entry, ENTRY_BYTES + bytes, tag_index_series(entry->index));
	return bytes <= entry->catalog->options.index_max_bytes ? 0 : ERR_LIMIT;
}

static int news_slice(struct index_entry *entry, const struct store_token *token)
{
	entry->request = catalog_ask_again(entry->ask, STORE_SERIES_NEWS, token);
	entry->request->series_news = (struct store_series_news){
		.tenant = entry->tenant,
		.metric = entry->metric,
		.since = entry->since,
		.limit = SLICE_SERIES,
	};
	return ask_submit(entry->ask);
}

static void news_done(void *owner, int err);
static void news_end(struct index_entry *entry, int err);

/* For all finds that wait. */
static void news_begin(struct index_entry *entry)
{
	later_move_all(&entry->waiting, &entry->asking);
	entry->ask = ask_new(entry->catalog, news_done, entry);
	int err = news_slice(entry, NULL);
	if (err)
		news_end(entry, err);
}

/* Who came too late for the news waits for the next ones, or for a new index. */
static void news_go_on(struct index_entry *entry)
{
	struct catalog *catalog = entry->catalog;
	struct catalog_later waiting, *later;
	if (!entry_old(entry)) {
		find_evict(catalog, entry);
		if (entry->waiting.next != &entry->waiting)
			news_begin(entry);
		return;
	}
	later_list_init(&waiting);
	later_move_all(&entry->waiting, &waiting);
	entry_free(entry);
	while ((later = later_pop(&waiting)))
		later_do(catalog, later, find_run);
}

/* Nobody knows what came since the last news: the index is built again for all who wait. */
static void news_have_gone(struct index_entry *entry)
{
	struct catalog *catalog = entry->catalog;
	entry->outdated = true;
	later_move_all(&entry->waiting, &entry->asking);
	later_move_all(&entry->asking, &entry->waiting);
	ask_release(entry->ask);
	entry->ask = NULL;
	news_go_on(entry);
	publish_usage(catalog);
}

/* Who is told may do anything with the catalog, so the entry is left in order first. */
static void news_end(struct index_entry *entry, int err)
{
	struct catalog *catalog = entry->catalog;
	struct tag_index *index = tag_index_acquire(entry->index);
	struct catalog_later asking, *later;
	struct errbuf why;
	errbuf_set(&why, err, "%s", store_read_sentence(entry->ask->read, err));
	later_list_init(&asking);
	later_move_all(&entry->asking, &asking);
	ask_release(entry->ask);
	entry->ask = NULL;
	news_go_on(entry);
	publish_usage(catalog);
	while ((later = later_pop(&asking))) {
		struct catalog_find *find = CONTAINER_OF(later, struct catalog_find, later);
		if (err) {
			index_failed(find, err, why.text);
			continue;
		}
		find->search = tag_search_new(index, find);
		later_do(catalog, later, find_step);
	}
	tag_index_release(index);
}

static void news_done(void *owner, int err)
{
	struct index_entry *entry = FROM_OWNER(index_entry, owner);
	const struct store_series_news *news = &entry->request->series_news;
	if (entry->catalog->closing)
		err = ERR_CANCELLED;
	if (!err) {
		err = index_add_all(entry, news->series, news->count);
		entry->outdated |= err != 0;
	}
	bool more = !err && entry->request->more;
	if (!err && !more)
		entry->since = news->next_since;
	if (more)
		err = news_slice(entry, &entry->request->token);
	if (err == ERR_NOT_FOUND)
		news_have_gone(entry);
	else if (!more || err)
		news_end(entry, err);
}

/* ---- Building ------------------------------------------------------------------------------ */

/* Built, or not to be built: the finds that wait go on, each from its beginning or by news, so that
 * one that came meanwhile sees what was registered before it. */
static void build_end(struct index_entry *entry, int err)
{
	struct catalog *catalog = entry->catalog;
	struct catalog_later waiting, *later;
	struct errbuf why;
	errbuf_set(&why, err, "%s", store_read_sentence(entry->ask->read, err));
	later_list_init(&waiting);
	if (err || !store_is_shared(catalog->store))
		later_move_all(&entry->waiting, &waiting);
	ask_release(entry->ask);
	entry->ask = NULL;
	pthread_mutex_lock(&catalog->lock);
	entry->built = true;
	pthread_mutex_unlock(&catalog->lock);
	if (err) {
		entry_free(entry);
	} else {
		tag_index_optimize(entry->index);
		find_count_entry(entry, ENTRY_BYTES + tag_index_bytes(entry->index),
				 tag_index_series(entry->index));
		find_evict(catalog, entry);
		if (store_is_shared(catalog->store) && entry->waiting.next != &entry->waiting)
			news_begin(entry);
	}
	publish_usage(catalog);
	while ((later = later_pop(&waiting))) {
		struct catalog_find *find = CONTAINER_OF(later, struct catalog_find, later);
		find->waited = true;
		if (err)
			index_failed(find, err, why.text);
		else
			later_do(catalog, later, find_run);
	}
}

static int build_slice(struct index_entry *entry, const struct store_token *token)
{
	entry->request = catalog_ask_again(entry->ask, STORE_SERIES_LIST, token);
	entry->request->series_list.tenant = entry->tenant;
	entry->request->series_list.metric = entry->metric;
	entry->request->series_list.limit = SLICE_SERIES;
	return ask_submit(entry->ask);
}

static void build_done(void *owner, int err)
{
	struct index_entry *entry = FROM_OWNER(index_entry, owner);
	const struct store_request *request = entry->request;
	bool begins = request->op == STORE_SERIES_NEWS; /* the listing comes now */
	if (entry->catalog->closing)
		err = ERR_CANCELLED;
	if (!err && begins)
		entry->since = request->series_news.next_since;
	else if (!err)
		err = index_add_all(entry, request->series_list.series, request->series_list.count);
	bool more = !err && (begins || request->more);
	if (more)
		err = build_slice(entry, begins ? NULL : &request->token);
	if (!more || err)
		build_end(entry, err);
}

static void build_begin(struct index_entry *entry)
{
	stat_add(STAT_catalog_index_builds, 1);
	entry->ask = ask_new(entry->catalog, build_done, entry);
	int err = store_is_shared(entry->catalog->store) ? news_slice(entry, NULL)
							 : build_slice(entry, NULL);
	if (err)
		build_end(entry, err);
}

/* ---- Finds --------------------------------------------------------------------------------- */

/* A find that has waited for the index takes it though series were forgotten since: what is
 * forgotten has no points, and asking for a newer one each time might never end. */
static struct index_entry *usable_entry(struct catalog *catalog, const struct catalog_find *find)
{
	uint64_t hash = entry_hash(find->tenant, find->metric);
	struct index_entry *entry = entry_find(catalog, hash, find->tenant, find->metric);
	if (!entry || entry_busy(entry))
		return entry;
	if ((entry_old(entry) && !find->waited) || !entry_refresh(entry)) {
		entry_free(entry);
		entry = NULL;
	}
	return entry;
}

static void find_run(struct catalog_later *later)
{
	struct catalog_find *find = CONTAINER_OF(later, struct catalog_find, later);
	struct catalog *catalog = find->catalog;
	if (catalog->closing) {
		find_finish(find, ERR_CANCELLED);
		return;
	}
	struct index_entry *entry = usable_entry(catalog, find);
	if (!entry) {
		entry = entry_new(catalog, entry_hash(find->tenant, find->metric), find->tenant,
				  find->metric);
		later_append(&entry->waiting, later);
		build_begin(entry);
		return;
	}
	use_remove(catalog, entry);
	use_first(catalog, entry);
	if (entry_busy(entry)) {
		later_append(&entry->waiting, later);
		return;
	}
	find_evict(catalog, entry);
	publish_usage(catalog);
	if (store_is_shared(catalog->store)) {
		later_append(&entry->waiting, later);
		news_begin(entry);
		return;
	}
	find->search = tag_search_new(entry->index, find);
	find_step(&find->later);
}

void catalog_find_start(struct catalog_find *find)
{
	ASSERT(find->catalog && find->done);
	find->series = NULL;
	find->count = 0;
	find->search = NULL;
	find->waited = false;
	find->error.text[0] = 0;
	later_do(find->catalog, &find->later, find_run);
}

void catalog_find_cancel(struct catalog_find *find)
{
	later_remove(&find->later);
	tag_search_free(find->search);
	find->search = NULL;
}

void indexes_cancel(struct catalog *catalog)
{
	for (struct index_entry *entry = catalog->newest; entry; entry = entry->older) {
		struct catalog_later *later;
		if (!entry_busy(entry))
			continue;
		store_read_cancel(entry->ask->read);
		later_move_all(&entry->asking, &entry->waiting);
		while ((later = later_pop(&entry->waiting)))
			find_finish(CONTAINER_OF(later, struct catalog_find, later), ERR_CANCELLED);
	}
}

void indexes_free(struct catalog *catalog)
{
	while (catalog->newest)
		entry_free(catalog->newest);
	publish_usage(catalog);
}
