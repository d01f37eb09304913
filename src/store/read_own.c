#include "store/read_own.h"

/* A part that is NULL is not given, and stays so. */
static int read_own_bytes(struct arena *arena, struct slice *bytes)
{
	if (!bytes->data)
		return 0;
	*bytes = arena_copy(arena, *bytes);
	return bytes->data ? 0 : ERR_LIMIT;
}

static int read_own_parts(struct arena *arena, struct store_parts *parts)
{
	int err = 0;
	for (size_t i = 0; i < TABLE_PARTS_MAX && !err; i++)
		err = read_own_bytes(arena, &parts->part[i]);
	return err;
}

static int read_own_handles(struct arena *arena, const uint64_t **handles, size_t count)
{
	uint64_t *copy = arena_alloc(arena, count * sizeof(*copy));
	if (!copy)
		return ERR_LIMIT;
	if (count)
		memcpy(copy, *handles, count * sizeof(*copy));
	*handles = copy;
	return 0;
}

/* Returns where the next text goes. */
static size_t read_own_put(char *to, size_t at, struct slice *bytes)
{
	if (!bytes->data)
		return at;
	if (bytes->len)
		memcpy(to + at, bytes->data, bytes->len);
	*bytes = (struct slice){to + at, bytes->len};
	return at + bytes->len;
}
/* In one piece: new series come with a dozen names each. */
static int read_own_series_open(struct arena *arena, struct store_series_open *open)
{
	size_t list_bytes = open->count * sizeof(struct slice), at = 0;
	size_t tag_bytes = open->tags.count * sizeof(struct tag), text_bytes = open->tenant.len;
	for (size_t i = 0; i < open->tags.count; i++)
		text_bytes += open->tags.list[i].key.len + open->tags.list[i].value.len;
	for (size_t i = 0; i < open->count; i++)
		text_bytes += open->metrics[i].len;
	struct slice *metrics = arena_alloc(arena, list_bytes + tag_bytes + text_bytes);
	if (!metrics)
		return ERR_LIMIT;
	struct tag *tags = (struct tag *)(metrics + open->count);
	char *texts = (char *)(tags + open->tags.count);
	if (list_bytes)
		memcpy(metrics, open->metrics, list_bytes);
	if (tag_bytes)
		memcpy(tags, open->tags.list, tag_bytes);
	at = read_own_put(texts, at, &open->tenant);
	for (size_t i = 0; i < open->tags.count; i++) {
		at = read_own_put(texts, at, &tags[i].key);
		at = read_own_put(texts, at, &tags[i].value);
	}
	for (size_t i = 0; i < open->count; i++)
		at = read_own_put(texts, at, &metrics[i]);
	open->tags.list = tags;
	open->metrics = metrics;
	return 0;
}
static int read_own_cell_scan(struct arena *arena, struct store_cell_scan *scan)
{
	int err = read_own_parts(arena, &scan->key);
	err = err ? err : read_own_parts(arena, &scan->from);
	return err ? err : read_own_parts(arena, &scan->to);
}

static int read_own_metric(struct arena *arena, struct slice *tenant, struct slice *metric)
{
	int err = read_own_bytes(arena, tenant);
	return err ? err : read_own_bytes(arena, metric);
}

/* Everything that a request points to, as it is read by the engine. */
static int read_own_request(struct arena *arena, struct store_request *r)
{
	int err = 0;
	switch (r->op) {
	case STORE_RANGE:
		return read_own_handles(arena, &r->range.handles, r->range.handle_count);
	case STORE_LAST_BEFORE:
		return read_own_handles(arena, &r->last_before.handles,
					r->last_before.handle_count);
	case STORE_AGGREGATE:
		return read_own_handles(arena, &r->aggregate.handles, r->aggregate.handle_count);
	case STORE_SHARES:
		return read_own_handles(arena, &r->shares.handles, r->shares.handle_count);
	case STORE_SERIES_DESCRIBE:
		return read_own_handles(arena, &r->series_describe.handles,
					r->series_describe.count);
	case STORE_CELL_GET:
		err = read_own_parts(arena, &r->cell_get.key);
		return err ? err : read_own_parts(arena, &r->cell_get.column);
	case STORE_CELL_SCAN:
		return read_own_cell_scan(arena, &r->cell_scan);
	case STORE_SERIES_OPEN:
		return read_own_series_open(arena, &r->series_open);
	case STORE_SERIES_LIST:
		return read_own_metric(arena, &r->series_list.tenant, &r->series_list.metric);
	case STORE_SERIES_NEWS:
		return read_own_metric(arena, &r->series_news.tenant, &r->series_news.metric);
	case STORE_ENUMERATE:
	case STORE_PERIODS:
	case STORE_STATS:
	case STORE_VERIFY:
		return 0;
	}
	return ERR_INVALID;
}

int read_own(struct store_read *read)
{
	for (struct store_request *r = read->requests; r; r = r->next) {
		if (r->owned)
			continue;
		r->err = read_own_request(&read->arena, r);
		if (r->err)
			return errbuf_set(&read->error, r->err,
					  "the read has no room for what it asks for");
		r->owned = true;
	}
	return 0;
}
