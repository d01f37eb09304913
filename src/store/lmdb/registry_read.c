/* Lists and descriptions of series, from a snapshot and what is pending beside it. */
#include "store/lmdb/registry.h"

#include "base/cursor.h"
#include "base/grow.h"
#include "base/hash.h"
#include "base/stats.h"

/* A shape as a list request sees it: which of its columns are wanted. */
struct wanted {
	struct shape_view shape;
	bool column[SHAPE_COLUMNS_MAX];
	bool any;
};

static void want(struct wanted *w, const struct store_series_list *list)
{
	w->any = false;
	bool ours = !list->tenant.len || slice_equal(w->shape.tenant, list->tenant);
	for (unsigned i = 0; i < w->shape.count; i++) {
		w->column[i] = ours &&
			       (!list->metric.len || slice_equal(w->shape.metric[i], list->metric));
		w->any = w->any || w->column[i];
	}
}

static int find_shape(struct registry *registry, MDB_txn *txn, uint32_t id,
		      struct shape_view *shape)
{
	uint8_t bytes[4];
	be32_put(bytes, id);
	struct slice key = {(const char *)bytes, 4}, value;
	int err = env_get(txn, registry->env->dbi[DB_SHAPES], key, &value);
	return err ? err : shape_parse(key, value, shape);
}

/* One that something else names: it has to be there. */
static int load_shape(struct registry *registry, MDB_txn *txn, uint32_t id,
		      struct shape_view *shape)
{
	int err = find_shape(registry, txn, id, shape);
	return err == ERR_NOT_FOUND ? ERR_DAMAGED : err;
}

/* A pending shape, copied into the arena so that it outlives the lock. */
static int copy_pending_shape(struct registry *registry, uint32_t id, struct arena *arena,
			      struct shape_view *shape)
{
	for (struct pending_shape *s = registry->first_shape; s; s = s->next) {
		if (s->id != id)
			continue;
		struct slice copy =
			arena_copy(arena, (struct slice){(const char *)s->payload, s->len});
		if (!copy.data)
			return ERR_LIMIT;
		struct cursor c = cursor_of(copy.data, copy.len);
		shape->id = id;
		shape->tenant.len = cursor_u8(&c);
		shape->tenant.data = (const char *)cursor_take(&c, shape->tenant.len);
		shape->count = cursor_u16(&c);
		for (unsigned i = 0; i < shape->count && i < SHAPE_COLUMNS_MAX; i++) {
			shape->metric[i].len = cursor_u16(&c);
			shape->metric[i].data = (const char *)cursor_take(&c, shape->metric[i].len);
		}
		return c.bad ? ERR_DAMAGED : 0;
	}
	return ERR_NOT_FOUND;
}

/* Result arrays grow by doubling inside the arena; the old copy stays there until the reset. */
struct series_out {
	struct arena *arena;
	struct store_series_list *list;
	size_t cap;
};

static bool out_full(const struct series_out *out)
{
	return out->list->limit && out->list->count >= out->list->limit;
}

static int out_add(struct series_out *out, const struct shape_view *shape,
		   const struct band_view *band, unsigned column)
{
	struct store_series_list *list = out->list;
	if (!GROW_IN_ARENA(out->arena, list->series, out->cap, list->count + 1))
		return ERR_LIMIT;
	struct store_series series = {
		.handle = handle_of(band->shape, band->ordinal, column),
		.tenant = arena_copy(out->arena, shape->tenant),
		.metric = arena_copy(out->arena, shape->metric[column]),
		.tags_text = arena_copy(out->arena, band->tags_text),
		.first_seen_ms = band->first_seen_ms,
	};
	if (!series.tenant.data || !series.metric.data || !series.tags_text.data)
		return ERR_LIMIT;
	list->series[list->count++] = series;
	return 0;
}

/* The wanted columns of a band from *column on. ERR_LIMIT: *column did not fit. */
static int out_band(struct series_out *out, const struct wanted *w, const struct band_view *band,
		    unsigned *column)
{
	for (; *column < w->shape.count; ++*column) {
		bool dead = band->dead_count &&
			    memchr(band->dead_columns, (int)*column, band->dead_count);
		if (!w->column[*column] || dead)
			continue;
		int err = out_full(out) ? ERR_LIMIT : out_add(out, &w->shape, band, *column);
		if (err)
			return err;
	}
	return 0;
}

/* What is registered but in no snapshot yet. */
static int out_pending(struct registry *registry, MDB_txn *txn, struct series_out *out,
		       struct wanted *w)
{
	int err = 0;
	uint32_t loaded = 0;
	for (struct pending_band *p = registry->first_band; p && !err; p = p->next) {
		if (p->shape != loaded) {
			err = copy_pending_shape(registry, p->shape, out->arena, &w->shape);
			if (err == ERR_NOT_FOUND)
				err = load_shape(registry, txn, p->shape, &w->shape);
			if (err)
				break;
			loaded = p->shape;
			want(w, out->list);
		}
		struct band_view band = {.shape = p->shape,
					 .ordinal = p->ordinal,
					 .tags_text = {p->tags, p->tags_len},
					 .first_seen_ms = p->first_seen_ms};
		unsigned column = 0;
		if (w->any)
			err = out_band(out, w, &band, &column);
	}
	return err;
}

/* Where a list goes on. */
struct list_place {
	uint32_t shape, ordinal;
	unsigned column;
};

/* The bands of one shape from `place` on. *stopped: a bound was reached at `place`. */
static int out_shape(struct registry *registry, MDB_txn *txn, struct series_out *out,
		     const struct wanted *w, struct list_place *place, bool *stopped)
{
	MDB_cursor *cursor;
	int err = env_error(mdb_cursor_open(txn, registry->env->dbi[DB_BANDS], &cursor));
	if (err)
		return err;
	uint8_t bytes[8];
	be32_put(bytes, w->shape.id);
	be32_put(bytes + 4, place->ordinal);
	struct slice key = {(const char *)bytes, 8}, value;
	err = env_seek(cursor, &key, &value);
	while (!err) {
		struct band_view band;
		err = band_parse(key, value, &band);
		if (err || band.shape != w->shape.id)
			break;
		if (band.ordinal != place->ordinal)
			place->column = 0;
		place->ordinal = band.ordinal;
		if (out_band(out, w, &band, &place->column)) {
			*stopped = true;
			err = out->list->count ? 0 : ERR_LIMIT;
			break;
		}
		place->column = 0;
		err = env_next(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	return err == ERR_NOT_FOUND ? 0 : err;
}

bool registry_has_tenant(struct registry *registry, struct slice tenant)
{
	pthread_mutex_lock(&registry->lock);
	bool has = tenant_shapes_next(&registry->tenants, tenant, 0) != 0;
	pthread_mutex_unlock(&registry->lock);
	return has;
}

static int next_of_tenant(struct registry *registry, struct slice tenant, uint32_t *id)
{
	pthread_mutex_lock(&registry->lock);
	*id = tenant_shapes_next(&registry->tenants, tenant, *id);
	pthread_mutex_unlock(&registry->lock);
	return *id ? 0 : ERR_NOT_FOUND;
}

/* The shapes of the tenant that hold the metric, ascending; or all of what is not named. */
static int next_shape(struct registry *registry, MDB_txn *txn, const struct store_series_list *list,
		      uint32_t *id)
{
	MDB_cursor *cursor;
	uint8_t bytes[12];
	bool by_metric = list->metric.len && list->tenant.len;
	if (list->tenant.len && !by_metric)
		return next_of_tenant(registry, list->tenant, id);
	int err = env_error(mdb_cursor_open(
		txn, registry->env->dbi[by_metric ? DB_METRIC_INDEX : DB_SHAPES], &cursor));
	if (err)
		return err;
	struct slice key, value;
	uint64_t hash = 0;
	if (by_metric) {
		hash = hash64(list->metric.data, list->metric.len,
			      hash64(list->tenant.data, list->tenant.len, 0));
		be64_put(bytes, hash);
		be32_put(bytes + 8, *id);
		key = (struct slice){(const char *)bytes, 12};
	} else {
		be32_put(bytes, *id);
		key = (struct slice){(const char *)bytes, 4};
	}
	err = env_seek(cursor, &key, &value);
	mdb_cursor_close(cursor);
	if (err)
		return err;
	if (by_metric && (key.len != 12 || be64_get((const uint8_t *)key.data) != hash))
		return ERR_NOT_FOUND;
	*id = be32_get((const uint8_t *)key.data + (by_metric ? 8 : 0));
	return 0;
}

/* A tenant's shape may be younger than the snapshot: then none of it is wanted. */
static int list_shape(struct registry *registry, MDB_txn *txn, const struct store_series_list *list,
		      uint32_t id, struct wanted *w)
{
	stat_add(STAT_store_listed_shapes, 1);
	if (!list->tenant.len || list->metric.len)
		return load_shape(registry, txn, id, &w->shape);
	w->shape.count = 0;
	int err = find_shape(registry, txn, id, &w->shape);
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* Token: shape u32, ordinal u32, column u32 of what comes next. */
enum { LIST_TOKEN_BYTES = 12 };

static void put_place(struct store_token *token, const struct list_place *place)
{
	token->len = LIST_TOKEN_BYTES;
	be32_put(token->bytes, place->shape);
	be32_put(token->bytes + 4, place->ordinal);
	be32_put(token->bytes + 8, place->column);
}

void registry_list_token(uint64_t handle, struct store_token *token)
{
	struct list_place place = {handle_shape(handle), handle_ordinal(handle),
				   handle_column(handle)};
	put_place(token, &place);
}

int registry_series_list(struct registry *registry, MDB_txn *txn, struct store_request *request,
			 struct arena *arena)
{
	struct store_series_list *list = &request->series_list;
	struct series_out out = {arena, list, 0};
	struct wanted *w = mem_alloc(sizeof(*w));
	struct list_place place = {.shape = 1};
	if (request->token.len == LIST_TOKEN_BYTES) {
		place.shape = be32_get(request->token.bytes);
		place.ordinal = be32_get(request->token.bytes + 4);
		place.column = be32_get(request->token.bytes + 8);
	}
	bool first = request->token.len == 0, stopped = false;
	list->count = 0;
	list->series = NULL;
	request->more = false;

	/* What is still pending (only if the writer is stuck: see registry_flush) is given with the
	 * first slice, under the lock that makes "pending or in this snapshot" true. */
	pthread_mutex_lock(&registry->lock);
	mdb_txn_reset(txn);
	int err = env_error(mdb_txn_renew(txn));
	if (!err && first) {
		size_t limit = list->limit;
		list->limit = 0; /* they come now or never */
		err = out_pending(registry, txn, &out, w);
		list->limit = limit;
	}
	pthread_mutex_unlock(&registry->lock);

	while (!err && !stopped) {
		uint32_t shape = place.shape;
		err = next_shape(registry, txn, list, &place.shape);
		if (place.shape != shape)
			place.ordinal = place.column = 0;
		if (!err)
			err = list_shape(registry, txn, list, place.shape, w);
		if (err)
			break;
		want(w, list);
		if (w->any)
			err = out_shape(registry, txn, &out, w, &place, &stopped);
		if (!err && !stopped)
			place = (struct list_place){.shape = place.shape + 1};
	}
	mem_free(w);
	if (stopped && !err) {
		request->more = true;
		put_place(&request->token, &place);
	}
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* Whether any band of the shape has tags: a series without has no cells. */
static int shape_has_tags(struct registry *registry, MDB_txn *txn, uint32_t shape, bool *has)
{
	MDB_cursor *cursor;
	uint8_t bytes[8];
	int err = env_error(mdb_cursor_open(txn, registry->env->dbi[DB_BANDS], &cursor));
	if (err)
		return err;
	be32_put(bytes, shape);
	be32_put(bytes + 4, 0);
	struct slice key = {(const char *)bytes, 8}, value;
	*has = false;
	err = env_seek(cursor, &key, &value);
	while (!err && !*has) {
		struct band_view band;
		err = band_parse(key, value, &band);
		if (err || band.shape != shape)
			break;
		*has = band.tags_text.len > 0;
		err = env_next(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	return err == ERR_NOT_FOUND ? 0 : err;
}

/* Rows of series_sets: tenant and metric of each column of each shape; a metric that is part of
 * several shapes comes several times. Token: shape u32, column u32 of what comes next. */
int registry_series_set_rows(struct registry *registry, MDB_txn *txn, struct store_request *request,
			     struct arena *arena, size_t *budget)
{
	struct store_enumerate *out = &request->enumerate;
	struct store_series_list all = {0};
	struct shape_view *shape = mem_alloc(sizeof(*shape));
	size_t max = out->limit && out->limit < *budget ? out->limit : *budget;
	if (max > 65536)
		max = 65536;
	uint32_t id = 1, column = 0;
	if (request->token.len == 8) {
		id = be32_get(request->token.bytes);
		column = be32_get(request->token.bytes + 4);
	}
	out->count = 0;
	request->more = false;
	out->rows = arena_alloc(arena, (max + 1) * sizeof(*out->rows));
	int err = out->rows ? 0 : ERR_LIMIT;
	while (!err && !request->more) {
		bool has = false;
		err = next_shape(registry, txn, &all, &id);
		if (!err)
			err = load_shape(registry, txn, id, shape);
		if (!err)
			err = shape_has_tags(registry, txn, id, &has);
		for (; !err && has && column < shape->count && !request->more; column++) {
			if (out->count == max) {
				request->more = true;
				break;
			}
			struct slice tenant = arena_copy(arena, shape->tenant);
			struct slice metric = arena_copy(arena, shape->metric[column]);
			if (!tenant.data || !metric.data)
				err = ERR_LIMIT;
			out->rows[out->count++] = (struct store_row){.key = {{tenant, metric}}};
		}
		if (!err && !request->more) {
			id++;
			column = 0;
		}
	}
	mem_free(shape);
	*budget -= out->count;
	request->token.len = 8;
	be32_put(request->token.bytes, id);
	be32_put(request->token.bytes + 4, column);
	return err == ERR_NOT_FOUND ? 0 : err;
}

static int describe_pending(struct registry *registry, MDB_txn *txn, uint64_t handle,
			    struct series_out *out)
{
	struct wanted *w = mem_zalloc(sizeof(*w));
	int err = ERR_NOT_FOUND;
	for (struct pending_band *p = registry->first_band; p; p = p->next) {
		if (p->shape != handle_shape(handle) || p->ordinal != handle_ordinal(handle))
			continue;
		err = copy_pending_shape(registry, p->shape, out->arena, &w->shape);
		if (err == ERR_NOT_FOUND)
			err = load_shape(registry, txn, p->shape, &w->shape);
		struct band_view band = {.shape = p->shape,
					 .ordinal = p->ordinal,
					 .tags_text = {p->tags, p->tags_len},
					 .first_seen_ms = p->first_seen_ms};
		if (!err && handle_column(handle) < w->shape.count)
			err = out_add(out, &w->shape, &band, handle_column(handle));
		break;
	}
	mem_free(w);
	return err;
}

static int describe_stored(struct registry *registry, MDB_txn *txn, uint64_t handle,
			   struct shape_view *shape, struct series_out *out)
{
	uint8_t bytes[8];
	be32_put(bytes, handle_shape(handle));
	be32_put(bytes + 4, handle_ordinal(handle));
	struct slice key = {(const char *)bytes, 8}, value;
	struct band_view band;
	unsigned column = handle_column(handle);
	int err = env_get(txn, registry->env->dbi[DB_BANDS], key, &value);
	if (!err)
		err = band_parse(key, value, &band);
	if (!err && shape->id != band.shape)
		err = load_shape(registry, txn, band.shape, shape);
	if (err)
		return err;
	bool dead = band.dead_count && memchr(band.dead_columns, (int)column, band.dead_count);
	return dead || column >= shape->count ? ERR_NOT_FOUND : out_add(out, shape, &band, column);
}

int registry_series_describe(struct registry *registry, MDB_txn *txn,
			     struct store_series_describe *describe, struct arena *arena)
{
	describe->series = arena_zalloc(arena, (describe->count + 1) * sizeof(*describe->series));
	if (!describe->series)
		return ERR_LIMIT;
	struct shape_view *shape = mem_zalloc(sizeof(*shape));
	pthread_mutex_lock(&registry->lock);
	mdb_txn_reset(txn);
	int err = env_error(mdb_txn_renew(txn));
	bool pending = registry->pending_count > 0;
	for (size_t i = 0; i < describe->count && !err && pending; i++) {
		struct store_series_list one = {.series = &describe->series[i]};
		struct series_out out = {arena, &one, 1};
		err = describe_pending(registry, txn, describe->handles[i], &out);
		err = err == ERR_NOT_FOUND ? 0 : err;
	}
	pthread_mutex_unlock(&registry->lock);
	for (size_t i = 0; i < describe->count && !err; i++) {
		if (describe->series[i].handle || registry_is_dead(registry, describe->handles[i]))
			continue;
		struct store_series_list one = {.series = &describe->series[i]};
		struct series_out out = {arena, &one, 1};
		err = describe_stored(registry, txn, describe->handles[i], shape, &out);
		err = err == ERR_NOT_FOUND ? 0 : err;
	}
	mem_free(shape);
	return err;
}

static int column_order(const void *a, const void *b)
{
	const struct series_set_cell *x = a, *y = b;
	return slice_compare(x->column, y->column);
}

/* One cell per tag of a series. */
static int add_series_set(const struct store_series *series, struct arena *arena,
			  struct series_set_cell *cells, size_t *count)
{
	struct tags tags;
	struct buf text, column;
	buf_init(&text, TAGS_TEXT_MAX_BYTES + METRIC_MAX_BYTES * 2 + 1);
	buf_init(&column, 2 * TAGS_TEXT_MAX_BYTES + TAGS_TEXT_MAX_BYTES + METRIC_MAX_BYTES * 2 + 8);
	int err = tags_decode(series->tags_text, arena, &tags);
	if (!err)
		err = series_set_encode(series->metric, tags, &text);
	for (size_t i = 0; !err && i < tags.count; i++) {
		struct store_parts parts = {
			{tags.list[i].key, tags.list[i].value, buf_slice(&text)}};
		buf_clear(&column);
		err = store_parts_encode(&parts, 3, &column);
		struct slice copy = {NULL, 0};
		if (!err)
			copy = arena_copy(arena, buf_slice(&column));
		if (!err && !copy.data)
			err = ERR_LIMIT;
		if (!err)
			cells[(*count)++].column = copy;
	}
	buf_release(&text);
	buf_release(&column);
	return err;
}

int registry_series_sets(struct registry *registry, MDB_txn *txn, struct slice tenant,
			 struct slice metric, struct arena *arena, struct series_set_cell **cells,
			 size_t *count)
{
	struct store_request request = {.op = STORE_SERIES_LIST};
	request.series_list.tenant = tenant;
	request.series_list.metric = metric;
	*count = 0;
	int err = registry_series_list(registry, txn, &request, arena);
	if (err || request.more)
		return err ? err : ERR_LIMIT;
	size_t series_count = request.series_list.count;
	*cells = arena_alloc(arena, (series_count * TAGS_MAX + 1) * sizeof(**cells));
	if (!*cells)
		return ERR_LIMIT;
	for (size_t i = 0; i < series_count && !err; i++)
		err = add_series_set(&request.series_list.series[i], arena, *cells, count);
	if (err || *count == 0)
		return err;
	qsort(*cells, *count, sizeof(**cells), column_order);
	size_t kept = 1; /* a series may have been listed twice */
	for (size_t i = 1; i < *count; i++) {
		if (!slice_equal((*cells)[i].column, (*cells)[kept - 1].column))
			(*cells)[kept++] = (*cells)[i];
	}
	*count = kept;
	return 0;
}
