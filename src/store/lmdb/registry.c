#include "store/lmdb/registry.h"

#include "base/cursor.h"
#include "base/hash.h"
#include "base/stats.h"

enum { METRICS_TEXT_MAX_BYTES = 3900, INDEX_KEY_MAX_BYTES = 16 };

/* ---- Values ---------------------------------------------------------------------------------
 * shape: crc u32 | tenant length u8, tenant | count u16 | count x (length u16, metric)
 * band:  crc u32 | first seen i64 | dead count u8, dead columns u8 each | tags text
 * Index keys: hash u64, shape u32[, ordinal u32], big endian; their values are empty. */

int shape_parse(struct slice key, struct slice value, struct shape_view *shape)
{
	struct slice payload;
	int err = key.len == 4 ? record_open(key, value, &payload) : ERR_DAMAGED;
	if (err)
		return err;
	struct cursor c = cursor_of(payload.data, payload.len);
	shape->id = be32_get((const uint8_t *)key.data);
	shape->tenant.len = cursor_u8(&c);
	shape->tenant.data = (const char *)cursor_take(&c, shape->tenant.len);
	shape->count = cursor_u16(&c);
	if (c.bad || shape->count == 0 || shape->count > SHAPE_COLUMNS_MAX)
		return ERR_DAMAGED;
	for (unsigned i = 0; i < shape->count; i++) {
		shape->metric[i].len = cursor_u16(&c);
		shape->metric[i].data = (const char *)cursor_take(&c, shape->metric[i].len);
	}
	return c.bad || cursor_left(&c) ? ERR_DAMAGED : 0;
}

int band_parse(struct slice key, struct slice value, struct band_view *band)
{
	struct slice payload;
	int err = key.len == 8 ? record_open(key, value, &payload) : ERR_DAMAGED;
	if (err)
		return err;
	struct cursor c = cursor_of(payload.data, payload.len);
	band->shape = be32_get((const uint8_t *)key.data);
	band->ordinal = be32_get((const uint8_t *)key.data + 4);
	band->first_seen_ms = (int64_t)cursor_u64(&c);
	band->dead_count = cursor_u8(&c);
	band->dead_columns = cursor_take(&c, band->dead_count);
	band->tags_text.len = cursor_left(&c);
	band->tags_text.data = (const char *)cursor_take(&c, band->tags_text.len);
	return c.bad ? ERR_DAMAGED : 0;
}

static bool band_column_dead(const struct band_view *band, unsigned column)
{
	return band->dead_count && memchr(band->dead_columns, (int)column, band->dead_count);
}

static size_t shape_payload(struct slice tenant, const struct slice *metrics, size_t count,
			    uint8_t to[PAGE_VALUE_MAX_BYTES])
{
	size_t n = 0;
	to[n++] = (uint8_t)tenant.len;
	memcpy(to + n, tenant.data, tenant.len);
	n += tenant.len;
	uint16_t count16 = (uint16_t)count;
	memcpy(to + n, &count16, 2);
	n += 2;
	for (size_t i = 0; i < count; i++) {
		uint16_t len = (uint16_t)metrics[i].len;
		memcpy(to + n, &len, 2);
		memcpy(to + n + 2, metrics[i].data, len);
		n += 2u + len;
	}
	return n;
}

static uint64_t tenant_seed(struct slice tenant)
{
	return hash64(tenant.data, tenant.len, 0);
}

static uint64_t tags_hash(struct slice tenant, struct slice tags_text)
{
	return hash64(tags_text.data, tags_text.len, tenant_seed(tenant));
}

static uint64_t single_hash(uint64_t hash_of_tags, struct slice metric)
{
	return hash64(metric.data, metric.len, hash_of_tags);
}

static struct slice band_key(uint8_t to[8], uint32_t shape, uint32_t ordinal)
{
	be32_put(to, shape);
	be32_put(to + 4, ordinal);
	return (struct slice){(const char *)to, 8};
}

/* ---- Columns and ordinals of shapes -----------------------------------------------------------
 */

/* Under the lock, or before anybody else is there. */
static void set_columns(struct registry *registry, uint32_t shape, unsigned columns)
{
	size_t at = shape / SHAPE_CHUNK;
	_Atomic uint16_t *chunk = registry->columns[at];
	if (!chunk) {
		registry->next_ordinal[at] = mem_zalloc(SHAPE_CHUNK * sizeof(uint32_t));
		chunk = mem_zalloc(SHAPE_CHUNK * sizeof(uint16_t));
		registry->columns[at] = chunk;
	}
	chunk[shape % SHAPE_CHUNK] = (uint16_t)columns;
}

bool registry_issued(struct registry *registry, uint64_t handle)
{
	uint32_t shape = handle_shape(handle);
	if (handle_column(handle) >= registry_columns(registry, shape))
		return false;
	return handle_ordinal(handle) <
	       registry->next_ordinal[shape / SHAPE_CHUNK][shape % SHAPE_CHUNK];
}

/* Under the lock, or before anybody else is there. */
static void set_next_ordinal(struct registry *registry, uint32_t shape, uint32_t ordinal)
{
	registry->next_ordinal[shape / SHAPE_CHUNK][shape % SHAPE_CHUNK] = ordinal;
}

static int registry_assign_ordinal(struct registry *registry, uint32_t shape, uint32_t *ordinal)
{
	*ordinal = registry->next_ordinal[shape / SHAPE_CHUNK][shape % SHAPE_CHUNK];
	if (*ordinal == UINT32_MAX)
		return ERR_LIMIT;
	set_next_ordinal(registry, shape, *ordinal + 1);
	return 0;
}

/* Once, at the start: from then on the gauge is moved by what is registered and forgotten. Bands
 * are in the order of their shapes and ordinals: the last one of a shape says where ordinals go on.
 */
static int count_bands(struct registry *registry, MDB_txn *txn)
{
	MDB_cursor *cursor;
	struct slice key = SLICE("\0"), value;
	int64_t series = 0;
	int err = env_error(mdb_cursor_open(txn, registry->env->dbi[DB_BANDS], &cursor));
	if (err)
		return err;
	err = env_seek(cursor, &key, &value);
	while (!err) {
		struct band_view band;
		/* A damaged band is not what stops a start: it is reported when it is read. */
		if (!band_parse(key, value, &band))
			series += registry_columns(registry, band.shape) - band.dead_count;
		uint32_t shape = key.len == 8 ? be32_get((const uint8_t *)key.data) : 0;
		if (registry_columns(registry, shape))
			set_next_ordinal(registry, shape,
					 be32_get((const uint8_t *)key.data + 4) + 1);
		err = env_next(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	stat_set(STAT_store_series, series);
	return err == ERR_NOT_FOUND ? 0 : err;
}

int registry_open(struct registry *registry, struct env *env)
{
	registry->env = env;
	registry->last_band = &registry->first_band;
	registry->last_shape = &registry->first_shape;
	pthread_mutex_init(&registry->lock, NULL);
	pthread_cond_init(&registry->committed, NULL);
	MDB_txn *txn;
	MDB_cursor *cursor;
	int err = env_error(mdb_txn_begin(env->mdb, NULL, MDB_RDONLY, &txn));
	if (err)
		return err;
	uint32_t last = 0;
	err = env_error(mdb_cursor_open(txn, env->dbi[DB_SHAPES], &cursor));
	if (!err) {
		struct slice key = {"\0\0\0\0", 4}, value;
		struct shape_view *shape = mem_alloc(sizeof(*shape));
		err = env_seek(cursor, &key, &value);
		while (!err) {
			err = shape_parse(key, value, shape);
			if (!err) {
				set_columns(registry, shape->id, shape->count);
				tenant_shapes_add(&registry->tenants, shape->tenant, shape->id);
				last = shape->id;
				err = env_next(cursor, &key, &value);
			}
		}
		mem_free(shape);
		mdb_cursor_close(cursor);
	}
	if (err == ERR_NOT_FOUND)
		err = count_bands(registry, txn);
	mdb_txn_abort(txn);
	registry->next_shape = last + 1;
	return err;
}

void registry_release(struct registry *registry)
{
	for (size_t i = 0; i < ARRAY_LEN(registry->columns); i++) {
		mem_free(registry->columns[i]);
		mem_free(registry->next_ordinal[i]);
	}
	while (registry->first_band) {
		struct pending_band *band = registry->first_band;
		registry->first_band = band->next;
		mem_free(band);
	}
	while (registry->first_shape) {
		struct pending_shape *shape = registry->first_shape;
		registry->first_shape = shape->next;
		mem_free(shape);
	}
	ranges_release(&registry->dead);
	tenant_shapes_release(&registry->tenants);
	pthread_mutex_destroy(&registry->lock);
	pthread_cond_destroy(&registry->committed);
}

size_t registry_memory_bytes(struct registry *registry)
{
	size_t bytes = sizeof(*registry);
	pthread_mutex_lock(&registry->lock);
	for (size_t i = 0; i < ARRAY_LEN(registry->columns); i++) {
		if (registry->columns[i])
			bytes += SHAPE_CHUNK * (sizeof(uint16_t) + sizeof(uint32_t));
	}
	bytes += registry->pending_bytes + ranges_bytes(&registry->dead);
	bytes += tenant_shapes_bytes(&registry->tenants);
	pthread_mutex_unlock(&registry->lock);
	return bytes;
}

/* ---- Finding --------------------------------------------------------------------------------- */

/* One series_open while it is worked on. */
struct finding {
	struct registry *registry;
	MDB_txn *txn;
	MDB_cursor *index; /* on DB_BAND_INDEX */
	struct store_series_open *open;
	struct slice tags_text;
	uint64_t hash; /* tags_hash */
	uint8_t payload[PAGE_VALUE_MAX_BYTES];
	size_t payload_len; /* of all metrics as one shape, 0 if they do not fit one */
	size_t missing;
	unsigned bands_seen; /* with several columns */
};

/* The payload of a shape, pending or stored. */
static int find_shape_payload(struct registry *registry, MDB_txn *txn, uint32_t id,
			      struct slice *payload)
{
	for (struct pending_shape *s = registry->first_shape; s; s = s->next) {
		if (s->id == id) {
			*payload = (struct slice){(const char *)s->payload, s->len};
			return 0;
		}
	}
	uint8_t bytes[4];
	be32_put(bytes, id);
	struct slice key = {(const char *)bytes, 4}, value;
	int err = env_get(txn, registry->env->dbi[DB_SHAPES], key, &value);
	if (err)
		return err == ERR_NOT_FOUND ? ERR_DAMAGED : err;
	return record_open(key, value, payload);
}

/* Marks those metrics that are columns of this band. A dead column stays dead: its series, when it
 * comes back, gets a new band. */
static int match_band(struct finding *f, uint32_t shape, uint32_t ordinal,
		      const struct band_view *stored)
{
	struct slice payload;
	int err = find_shape_payload(f->registry, f->txn, shape, &payload);
	if (err)
		return err;
	struct store_series_open *open = f->open;
	bool all_live = !stored || stored->dead_count == 0;
	if (all_live && f->payload_len == payload.len &&
	    memcmp(payload.data, f->payload, payload.len) == 0) {
		for (size_t i = 0; i < open->count; i++)
			open->handles[i] = handle_of(shape, ordinal, (unsigned)i);
		f->missing = 0;
		f->bands_seen += open->count > 1;
		return 0;
	}
	struct cursor c = cursor_of(payload.data, payload.len);
	struct slice tenant;
	tenant.len = cursor_u8(&c);
	tenant.data = (const char *)cursor_take(&c, tenant.len);
	unsigned count = cursor_u16(&c);
	if (c.bad)
		return ERR_DAMAGED;
	if (!slice_equal(tenant, open->tenant))
		return 0;
	f->bands_seen += count > 1;
	size_t hint = 0; /* metrics mostly come in the order of the columns */
	for (unsigned column = 0; column < count; column++) {
		struct slice metric;
		metric.len = cursor_u16(&c);
		metric.data = (const char *)cursor_take(&c, metric.len);
		if (c.bad)
			return ERR_DAMAGED;
		if (stored && band_column_dead(stored, column))
			continue;
		for (size_t tried = 0; tried < open->count; tried++) {
			size_t i = (hint + tried) % open->count;
			if (open->handles[i] || !slice_equal(open->metrics[i], metric))
				continue;
			open->handles[i] = handle_of(shape, ordinal, column);
			f->missing--;
			hint = i + 1;
			break;
		}
	}
	return 0;
}

/* All bands, pending and stored, whose index entry has this hash and whose tags are ours. */
static int match_hash(struct finding *f, uint64_t hash)
{
	struct pending_band *p = f->registry->buckets[hash % PENDING_BUCKETS];
	for (; p && f->missing; p = p->next_in_bucket) {
		if (p->hash != hash ||
		    !slice_equal((struct slice){p->tags, p->tags_len}, f->tags_text))
			continue;
		int err = match_band(f, p->shape, p->ordinal, NULL);
		if (err)
			return err;
	}
	uint8_t bytes[INDEX_KEY_MAX_BYTES] = {0}, band_bytes[8];
	be64_put(bytes, hash);
	struct slice key = {(const char *)bytes, 8}, value;
	int err = f->missing ? env_seek(f->index, &key, &value) : ERR_NOT_FOUND;
	while (!err && f->missing && key.len == 16 && be64_get((const uint8_t *)key.data) == hash) {
		uint32_t shape = be32_get((const uint8_t *)key.data + 8);
		uint32_t ordinal = be32_get((const uint8_t *)key.data + 12);
		struct slice bk = band_key(band_bytes, shape, ordinal), bv;
		struct band_view band;
		err = env_get(f->txn, f->registry->env->dbi[DB_BANDS], bk, &bv);
		if (!err)
			err = band_parse(bk, bv, &band);
		if (!err && slice_equal(band.tags_text, f->tags_text))
			err = match_band(f, shape, ordinal, &band);
		if (!err)
			err = env_next(f->index, &key, &value);
	}
	return err == ERR_NOT_FOUND ? 0 : err;
}

static int find_all(struct finding *f)
{
	int err = match_hash(f, f->hash);
	for (size_t i = 0; i < f->open->count && f->missing && !err; i++) {
		if (!f->open->handles[i])
			err = match_hash(f, single_hash(f->hash, f->open->metrics[i]));
	}
	return err;
}

/* ---- Registering ------------------------------------------------------------------------------
 */

static void add_pending_band(struct registry *registry, struct pending_band *band)
{
	struct pending_band **bucket = &registry->buckets[band->hash % PENDING_BUCKETS];
	band->next_in_bucket = *bucket;
	*bucket = band;
	band->next = NULL;
	*registry->last_band = band;
	registry->last_band = &band->next;
	registry->pending_count++;
	registry->pending_bytes += sizeof(*band) + band->tags_len;
}

static struct pending_band *new_pending_band(uint64_t hash, uint32_t shape, uint32_t ordinal,
					     struct slice tags_text, int64_t first_seen_ms)
{
	struct pending_band *band = mem_alloc(sizeof(*band) + tags_text.len);
	*band = (struct pending_band){.hash = hash,
				      .shape = shape,
				      .ordinal = ordinal,
				      .tags_len = (uint16_t)tags_text.len,
				      .first_seen_ms = first_seen_ms};
	if (tags_text.len)
		memcpy(band->tags, tags_text.data, tags_text.len);
	return band;
}

/* The id of a shape with exactly this payload, made if there is none. */
static int open_shape(struct finding *f, const uint8_t *payload, size_t len, unsigned count,
		      uint32_t *id)
{
	struct registry *registry = f->registry;
	uint64_t hash = hash64(payload, len, 0);
	for (struct pending_shape *s = registry->first_shape; s; s = s->next) {
		if (s->hash == hash && s->len == len && memcmp(s->payload, payload, len) == 0) {
			*id = s->id;
			return 0;
		}
	}
	MDB_cursor *cursor;
	int err = env_error(mdb_cursor_open(f->txn, registry->env->dbi[DB_SHAPE_INDEX], &cursor));
	if (err)
		return err;
	uint8_t bytes[8];
	be64_put(bytes, hash);
	struct slice key = {(const char *)bytes, 8}, value, stored;
	err = env_seek(cursor, &key, &value);
	bool found = false;
	while (!err && !found && key.len == 12 && be64_get((const uint8_t *)key.data) == hash) {
		*id = be32_get((const uint8_t *)key.data + 8);
		err = find_shape_payload(registry, f->txn, *id, &stored);
		found = !err && stored.len == len && memcmp(stored.data, payload, len) == 0;
		if (!err && !found)
			err = env_next(cursor, &key, &value);
	}
	mdb_cursor_close(cursor);
	if (found || (err && err != ERR_NOT_FOUND))
		return found ? 0 : err;
	if (registry->next_shape > SHAPES_MAX)
		return ERR_LIMIT;
	struct pending_shape *shape = mem_alloc(sizeof(*shape) + len);
	*shape = (struct pending_shape){
		.hash = hash, .id = registry->next_shape++, .len = (uint16_t)len};
	memcpy(shape->payload, payload, len);
	*registry->last_shape = shape;
	registry->last_shape = &shape->next;
	set_columns(registry, shape->id, count);
	tenant_shapes_add(&registry->tenants, f->open->tenant, shape->id);
	*id = shape->id;
	return 0;
}

/* One new band with the given metrics of the request (by index) as its columns. */
static int create_band(struct finding *f, const size_t *which, size_t count, int64_t now_ms)
{
	struct slice metrics[SHAPE_COLUMNS_MAX];
	uint8_t payload[PAGE_VALUE_MAX_BYTES];
	for (size_t i = 0; i < count; i++)
		metrics[i] = f->open->metrics[which[i]];
	size_t len = shape_payload(f->open->tenant, metrics, count, payload);
	uint32_t shape, ordinal;
	int err = open_shape(f, payload, len, (unsigned)count, &shape);
	if (!err)
		err = registry_assign_ordinal(f->registry, shape, &ordinal);
	if (err)
		return err;
	uint64_t hash = count > 1 ? f->hash : single_hash(f->hash, metrics[0]);
	add_pending_band(f->registry, new_pending_band(hash, shape, ordinal, f->tags_text, now_ms));
	for (size_t i = 0; i < count; i++)
		f->open->handles[which[i]] = handle_of(shape, ordinal, (unsigned)i);
	f->missing -= count;
	f->open->created += count;
	f->bands_seen += count > 1;
	return 0;
}

static bool stands_before(const struct store_series_open *open, size_t i)
{
	for (size_t j = 0; j < i; j++) {
		if (slice_equal(open->metrics[i], open->metrics[j]))
			return true;
	}
	return false;
}

/* Packs what is missing into bands: as many metrics each as one shape holds. */
static int create_missing(struct finding *f, int64_t now_ms)
{
	size_t which[SHAPE_COLUMNS_MAX], count = 0, text_bytes = 0;
	bool doubled = false;
	int err = 0;
	for (size_t i = 0; i < f->open->count && !err; i++) {
		if (f->open->handles[i])
			continue;
		if (stands_before(f->open, i)) {
			doubled = true;
			continue;
		}
		size_t bytes = f->open->metrics[i].len + 2;
		bool full = count == SHAPE_COLUMNS_MAX ||
			    text_bytes + bytes > METRICS_TEXT_MAX_BYTES ||
			    f->bands_seen >= MULTI_CHAIN_MAX;
		if (full && count) {
			err = create_band(f, which, count, now_ms);
			count = text_bytes = 0;
		}
		which[count++] = i;
		text_bytes += bytes;
	}
	if (count && !err)
		err = create_band(f, which, count, now_ms);
	for (size_t i = 0; doubled && i < f->open->count; i++) {
		for (size_t j = 0; j < i && !f->open->handles[i]; j++) {
			if (slice_equal(f->open->metrics[i], f->open->metrics[j]))
				f->open->handles[i] = f->open->handles[j];
		}
	}
	return err;
}

int registry_series_open(struct registry *registry, MDB_txn *txn, struct store_series_open *open,
			 struct arena *arena, int64_t now_ms)
{
	open->created = 0;
	open->handles = arena_zalloc(arena, (open->count ? open->count : 1) * sizeof(uint64_t));
	if (!open->handles)
		return ERR_LIMIT;
	size_t bytes = 0;
	for (size_t i = 0; i < open->count; i++)
		bytes += open->metrics[i].len + 2;
	struct buf text;
	buf_init(&text, TAGS_TEXT_MAX_BYTES);
	struct finding f = {.registry = registry, .txn = txn, .open = open};
	int err = tags_encode(open->tags, &text);
	if (err || open->count == 0) {
		buf_release(&text);
		return err;
	}
	f.tags_text = buf_slice(&text);
	f.hash = tags_hash(open->tenant, f.tags_text);
	f.missing = open->count;
	if (open->count <= SHAPE_COLUMNS_MAX && bytes <= METRICS_TEXT_MAX_BYTES)
		f.payload_len = shape_payload(open->tenant, open->metrics, open->count, f.payload);

	/* Renewed under the lock: whatever is no longer pending is in this snapshot. */
	pthread_mutex_lock(&registry->lock);
	mdb_txn_reset(txn);
	err = env_error(mdb_txn_renew(txn));
	if (!err)
		err = env_error(mdb_cursor_open(txn, registry->env->dbi[DB_BAND_INDEX], &f.index));
	if (!err) {
		err = find_all(&f);
		if (!err && f.missing && !open->find_only)
			err = registry->full ? ERR_FULL : create_missing(&f, now_ms);
		mdb_cursor_close(f.index);
	}
	pthread_mutex_unlock(&registry->lock);
	buf_release(&text);
	return err;
}

/* ---- The writer's ------------------------------------------------------------------------------
 */

static int put_band(struct registry *registry, MDB_txn *txn, const struct pending_band *band)
{
	uint8_t key_bytes[8], value[PAGE_VALUE_MAX_BYTES];
	struct slice key = band_key(key_bytes, band->shape, band->ordinal);
	size_t n = RECORD_HEADER_BYTES;
	memcpy(value + n, &band->first_seen_ms, 8);
	n += 8;
	value[n++] = 0;
	if (band->tags_len)
		memcpy(value + n, band->tags, band->tags_len);
	n += band->tags_len;
	record_seal(key, value, n);
	int err = env_put(txn, registry->env->dbi[DB_BANDS], key,
			  (struct slice){(const char *)value, n});
	if (err)
		return err;
	uint8_t index[16];
	be64_put(index, band->hash);
	memcpy(index + 8, key_bytes, 8);
	return env_put(txn, registry->env->dbi[DB_BAND_INDEX],
		       (struct slice){(const char *)index, 16}, SLICE(""));
}

void registry_band_index_key(const struct shape_view *shape, const struct band_view *band,
			     uint8_t to[16])
{
	uint64_t hash = tags_hash(shape->tenant, band->tags_text);
	if (shape->count == 1)
		hash = single_hash(hash, shape->metric[0]);
	be64_put(to, hash);
	(void)band_key(to + 8, band->shape, band->ordinal);
}

int registry_index_band(struct env *env, MDB_txn *txn, const struct shape_view *shape,
			const struct band_view *band)
{
	uint8_t index[16];
	registry_band_index_key(shape, band, index);
	return env_put(txn, env->dbi[DB_BAND_INDEX],
		       (struct slice){(const char *)index, sizeof(index)}, SLICE(""));
}

/* `payload`: of a stored shape, whose hash is that of the index. */
int registry_index_shape(struct env *env, MDB_txn *txn, const struct shape_view *shape,
			 struct slice payload)
{
	uint8_t index[12];
	be64_put(index, hash64(payload.data, payload.len, 0));
	be32_put(index + 8, shape->id);
	int err = env_put(txn, env->dbi[DB_SHAPE_INDEX], (struct slice){(const char *)index, 12},
			  SLICE(""));
	for (unsigned i = 0; !err && i < shape->count; i++) {
		be64_put(index, single_hash(tenant_seed(shape->tenant), shape->metric[i]));
		err = env_put(txn, env->dbi[DB_METRIC_INDEX],
			      (struct slice){(const char *)index, 12}, SLICE(""));
	}
	return err;
}

static int put_shape(struct registry *registry, MDB_txn *txn, const struct pending_shape *shape)
{
	uint8_t key_bytes[4], value[PAGE_VALUE_MAX_BYTES];
	be32_put(key_bytes, shape->id);
	struct slice key = {(const char *)key_bytes, 4};
	memcpy(value + RECORD_HEADER_BYTES, shape->payload, shape->len);
	record_seal(key, value, RECORD_HEADER_BYTES + shape->len);
	struct slice stored = {(const char *)value, RECORD_HEADER_BYTES + shape->len};
	int err = env_put(txn, registry->env->dbi[DB_SHAPES], key, stored);
	if (err)
		return err;
	struct shape_view *view = mem_alloc(sizeof(*view));
	err = shape_parse(key, stored, view);
	if (!err)
		err = registry_index_shape(
			registry->env, txn, view,
			(struct slice){(const char *)shape->payload, shape->len});
	mem_free(view);
	return err;
}

static int band_order(const void *a, const void *b)
{
	const struct pending_band *x = *(struct pending_band *const *)a;
	const struct pending_band *y = *(struct pending_band *const *)b;
	return (x->hash > y->hash) - (x->hash < y->hash);
}

int registry_write(struct registry *registry, MDB_txn *txn, struct registry_written *written)
{
	*written = (struct registry_written){0};
	pthread_mutex_lock(&registry->lock);
	struct pending_shape *shapes = registry->first_shape;
	size_t count = registry->pending_count;
	/* The nodes stay where they are until registry_committed(), on this thread. */
	struct pending_band **sorted = count ? mem_alloc_array(count, sizeof(*sorted)) : NULL;
	struct pending_band *band = registry->first_band;
	for (size_t i = 0; i < count; i++, band = band->next)
		sorted[i] = band;
	for (struct pending_shape *s = shapes; s; s = s->next)
		written->shapes++;
	pthread_mutex_unlock(&registry->lock);
	written->bands = count;
	int err = 0;
	/* What follows the last is being set by whoever registers the next. */
	for (size_t i = 0; i < written->shapes && !err; i++) {
		shapes = i ? shapes->next : shapes;
		err = put_shape(registry, txn, shapes);
	}
	/* In the order of the index, whose pages are many: each is then touched once. */
	if (count)
		qsort(sorted, count, sizeof(*sorted), band_order);
	for (size_t i = 0; i < count && !err; i++)
		err = put_band(registry, txn, sorted[i]);
	mem_free(sorted);
	return err;
}

static void unlink_band(struct registry *registry, struct pending_band *band)
{
	struct pending_band **at = &registry->buckets[band->hash % PENDING_BUCKETS];
	while (*at != band)
		at = &(*at)->next_in_bucket;
	*at = band->next_in_bucket;
}

void registry_committed(struct registry *registry, const struct registry_written *written)
{
	if (!written->bands && !written->shapes)
		return;
	pthread_mutex_lock(&registry->lock);
	ASSERT(registry->pending_count >= written->bands);
	for (size_t i = 0; i < written->bands; i++) {
		struct pending_band *band = registry->first_band;
		registry->first_band = band->next;
		registry->pending_bytes -= sizeof(*band) + band->tags_len;
		unlink_band(registry, band);
		stat_add(STAT_store_series, registry_columns(registry, band->shape));
		mem_free(band);
	}
	registry->pending_count -= written->bands;
	registry->committed_count += written->bands;
	pthread_cond_broadcast(&registry->committed);
	if (!registry->first_band)
		registry->last_band = &registry->first_band;
	for (size_t i = 0; i < written->shapes; i++) {
		struct pending_shape *shape = registry->first_shape;
		registry->first_shape = shape->next;
		mem_free(shape);
	}
	if (!registry->first_shape)
		registry->last_shape = &registry->first_shape;
	pthread_mutex_unlock(&registry->lock);
}

void registry_flush(struct registry *registry)
{
	pthread_mutex_lock(&registry->lock);
	uint64_t target = registry->committed_count + registry->pending_count;
	for (int tries = 0; registry->committed_count < target && tries < 10 && !registry->full;
	     tries++)
		cond_wait_ms(&registry->committed, &registry->lock, 100);
	pthread_mutex_unlock(&registry->lock);
}

/* ---- Forgetting -------------------------------------------------------------------------------
 */

static int delete_band(struct registry *registry, MDB_txn *txn, struct slice key,
		       const struct shape_view *shape, const struct band_view *band)
{
	uint8_t index[16];
	registry_band_index_key(shape, band, index);
	int err = env_delete(txn, registry->env->dbi[DB_BAND_INDEX],
			     (struct slice){(const char *)index, 16});
	return err ? err : env_delete(txn, registry->env->dbi[DB_BANDS], key);
}

static int mark_column_dead(struct registry *registry, MDB_txn *txn, struct slice key,
			    const struct band_view *band, unsigned column)
{
	uint8_t value[PAGE_VALUE_MAX_BYTES + SHAPE_COLUMNS_MAX];
	size_t n = RECORD_HEADER_BYTES;
	memcpy(value + n, &band->first_seen_ms, 8);
	n += 8;
	value[n++] = (uint8_t)(band->dead_count + 1);
	memcpy(value + n, band->dead_columns, band->dead_count);
	n += band->dead_count;
	value[n++] = (uint8_t)column;
	memcpy(value + n, band->tags_text.data, band->tags_text.len);
	n += band->tags_text.len;
	record_seal(key, value, n);
	return env_put(txn, registry->env->dbi[DB_BANDS], key,
		       (struct slice){(const char *)value, n});
}

int registry_forget(struct registry *registry, MDB_txn *txn, uint64_t handle)
{
	uint8_t key_bytes[8], shape_bytes[4];
	unsigned column = handle_column(handle);
	struct slice key = band_key(key_bytes, handle_shape(handle), handle_ordinal(handle)), value;
	struct slice shape_key = {(const char *)shape_bytes, 4}, shape_value;
	be32_put(shape_bytes, handle_shape(handle));
	struct band_view band;
	int err = env_get(txn, registry->env->dbi[DB_BANDS], key, &value);
	if (err)
		return err == ERR_NOT_FOUND ? 0 : err;
	/* A copy: the value moves when its page is written. */
	uint8_t copy[PAGE_VALUE_MAX_BYTES];
	memcpy(copy, value.data, value.len);
	err = band_parse(key, (struct slice){(const char *)copy, value.len}, &band);
	if (err || band_column_dead(&band, column))
		return err;
	struct shape_view *shape = mem_alloc(sizeof(*shape));
	err = env_get(txn, registry->env->dbi[DB_SHAPES], shape_key, &shape_value);
	if (!err)
		err = shape_parse(shape_key, shape_value, shape);
	if (!err && band.dead_count + 1 >= shape->count)
		err = delete_band(registry, txn, key, shape, &band);
	else if (!err)
		err = mark_column_dead(registry, txn, key, &band, column);
	mem_free(shape);
	return err;
}

/* Handles of neighbours have numbers without a gap, so that what was forgotten is few ranges. A
 * shape without columns has no handles. */
static uint64_t dead_number(struct registry *registry, uint64_t handle)
{
	uint64_t columns = registry_columns(registry, handle_shape(handle));
	return (uint64_t)handle_shape(handle) << 40 |
	       (handle_ordinal(handle) * columns + handle_column(handle));
}

void registry_forgotten(struct registry *registry, uint64_t handle)
{
	pthread_mutex_lock(&registry->lock);
	if (ranges_add(&registry->dead, dead_number(registry, handle)))
		stat_add(STAT_store_series, -1);
	registry->any_dead = true;
	registry->generation++;
	pthread_mutex_unlock(&registry->lock);
}

bool registry_find_dead(struct registry *registry, uint64_t handle)
{
	pthread_mutex_lock(&registry->lock);
	bool dead = ranges_has(&registry->dead, dead_number(registry, handle));
	pthread_mutex_unlock(&registry->lock);
	return dead;
}
