#include "ingest/minute_sums.h"

#include "base/buf.h"
#include "base/hash_table.h"
#include "base/random.h"
#include "base/stats.h"

enum {
	MINUTE_MS = 60000,
	/* Samples lie in the first ten seconds of their minute: a query that ends now does not show
	 * a sample that lies after now. */
	MINUTE_PLACES = 10000,
	SUMS_MAX = 10000,
	SUMS_INTERVAL_MS = 1000,
	SUMS_ARENA_MAX_BYTES = 16 << 20,
	SUMS_KEY_MAX_BYTES = 16 << 10,
};

enum sum_state { SUM_WRITTEN, SUM_CHANGED, SUM_UNDER_WAY };

struct sum {
	struct slice tenant;
	struct minute_count total; /* `ms`: the begin of the minute */
	enum sum_state state;
	struct sum *next;
};

struct sum_slot {
	struct hash128 hash;
	struct sum *sum;
};

struct minute_sums {
	struct minute_sums_options options;
	struct arena arena; /* of the sums */
	struct hash_table table;
	struct sum *sums;
	size_t changed, under_way;
	int64_t offset_ms;  /* within the minute */
	int64_t written_ms; /* by the clock that does not jump: when a write began */
	bool writing, stopping;
	struct buf key;
};

/* ---- Counts of a request --------------------------------------------------------------------- */

static bool minute_copy(const struct minute_count *from, struct arena *arena,
			struct minute_count *to)
{
	ASSERT(from->tag_count <= MINUTE_TAGS_MAX);
	*to = *from;
	to->next = NULL;
	to->metric = arena_copy(arena, from->metric);
	bool good = to->metric.data != NULL;
	for (size_t i = 0; i < from->tag_count && good; i++) {
		to->tags[i] = (struct tag){arena_copy(arena, from->tags[i].key),
					   arena_copy(arena, from->tags[i].value)};
		good = to->tags[i].key.data && to->tags[i].value.data;
	}
	return good;
}

void minute_counts_add(struct minute_counts *counts, const struct minute_count *count,
		       struct arena *arena)
{
	if (!count->count)
		return;
	struct minute_count *copy = NULL;
	if (counts->count < MINUTE_COUNTS_MAX && count->count <= MINUTE_COUNT_MAX)
		copy = arena_alloc(arena, sizeof(*copy));
	if (!copy || !minute_copy(count, arena, copy)) {
		stat_add(STAT_minute_sums_lost, 1);
		return;
	}
	copy->next = counts->first;
	counts->first = copy;
	counts->count++;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

struct minute_sums *minute_sums_new(const struct minute_sums_options *options)
{
	struct minute_sums *sums = mem_zalloc(sizeof(*sums));
	struct random random;
	sums->options = *options;
	if (!sums->options.seed)
		sums->options.seed = random_system_seed();
	if (!sums->options.sums_max)
		sums->options.sums_max = SUMS_MAX;
	if (!sums->options.interval_ms)
		sums->options.interval_ms = SUMS_INTERVAL_MS;
	random_init(&random, sums->options.seed);
	sums->offset_ms = (int64_t)random_below(&random, MINUTE_PLACES);
	arena_init_small(&sums->arena, SUMS_ARENA_MAX_BYTES);
	buf_init(&sums->key, SUMS_KEY_MAX_BYTES);
	return sums;
}

void minute_sums_free(struct minute_sums *sums)
{
	ASSERT(minute_sums_idle(sums));
	hash_table_release(&sums->table);
	arena_release(&sums->arena);
	buf_release(&sums->key);
	mem_free(sums);
}

bool minute_sums_idle(const struct minute_sums *sums)
{
	return !sums->writing;
}

/* All sums are written. A later sum of the same minute and series is another sample. */
static void sums_begin_anew(struct minute_sums *sums)
{
	ASSERT(!sums->changed && !sums->under_way);
	hash_table_release(&sums->table);
	sums->table = (struct hash_table){.slots = NULL};
	arena_reset(&sums->arena);
	sums->sums = NULL;
	sums->offset_ms = (sums->offset_ms + 1) % MINUTE_PLACES;
}

static void sums_put_key(struct buf *key, struct slice part)
{
	uint32_t len = (uint32_t)part.len;
	buf_append(key, &len, sizeof(len));
	buf_append(key, part.data, part.len);
}

/* False: it is longer than any series may be. */
static bool sums_hash(struct minute_sums *sums, struct slice tenant,
		      const struct minute_count *count, struct hash128 *hash)
{
	struct buf *key = &sums->key;
	buf_clear(key);
	buf_append(key, &count->ms, sizeof(count->ms));
	sums_put_key(key, tenant);
	sums_put_key(key, count->metric);
	for (size_t i = 0; i < count->tag_count; i++) {
		sums_put_key(key, count->tags[i].key);
		sums_put_key(key, count->tags[i].value);
	}
	*hash = hash128(key->data, key->len, sums->options.seed);
	return !key->failed;
}

static struct sum *sums_make(struct minute_sums *sums, struct slice tenant,
			     const struct minute_count *count)
{
	if (sums->table.count >= sums->options.sums_max)
		return NULL;
	struct sum *sum = arena_zalloc(&sums->arena, sizeof(*sum));
	if (!sum || !minute_copy(count, &sums->arena, &sum->total))
		return NULL;
	sum->tenant = arena_copy(&sums->arena, tenant);
	if (!sum->tenant.data)
		return NULL;
	sum->total.count = 0;
	sum->next = sums->sums;
	sums->sums = sum;
	return sum;
}

/* NULL: there is no room for one more. */
static struct sum *sums_find(struct minute_sums *sums, struct slice tenant,
			     const struct minute_count *count)
{
	struct hash128 hash;
	bool added;
	if (!sums_hash(sums, tenant, count, &hash))
		return NULL;
	struct sum_slot *slot = hash_table_find(&sums->table, hash);
	if (slot)
		return slot->sum;
	struct sum *sum = sums_make(sums, tenant, count);
	if (!sum && !sums->changed && !sums->under_way) {
		sums_begin_anew(sums);
		sum = sums_make(sums, tenant, count);
	}
	if (!sum)
		return NULL;
	slot = hash_table_add(&sums->table, hash, sizeof(*slot), &added);
	slot->sum = sum;
	return sum;
}

static void sums_set_state(struct minute_sums *sums, struct sum *sum, enum sum_state state)
{
	sums->changed += state == SUM_CHANGED;
	sums->changed -= sum->state == SUM_CHANGED;
	sums->under_way += state == SUM_UNDER_WAY;
	sums->under_way -= sum->state == SUM_UNDER_WAY;
	sum->state = state;
}

static void sums_add_one(struct minute_sums *sums, struct slice tenant,
			 const struct minute_count *count)
{
	struct minute_count minute = *count;
	if (minute.ms < 0)
		minute.ms = clock_wall_ms(sums->options.clock);
	minute.ms -= minute.ms % MINUTE_MS;
	struct sum *sum = sums_find(sums, tenant, &minute);
	if (!sum) {
		stat_add(STAT_minute_sums_lost, 1);
		return;
	}
	sum->total.count += minute.count;
	sums_set_state(sums, sum, SUM_CHANGED);
}

void minute_sums_add(struct minute_sums *sums, struct slice tenant,
		     const struct minute_counts *counts)
{
	for (const struct minute_count *count = counts->first; count; count = count->next)
		sums_add_one(sums, tenant, count);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void sums_write(struct minute_sums *sums);

/* After an error the sums count as changed, and are written with the next ones. */
static void sums_on_written(struct ingest_request *r)
{
	struct minute_sums *sums = ingest_owner(r);
	bool failed = r->err != 0;
	for (struct sum *sum = sums->sums; sum; sum = sum->next)
		if (sum->state == SUM_UNDER_WAY)
			sums_set_state(sums, sum, failed ? SUM_CHANGED : SUM_WRITTEN);
	ingest_request_free(r);
	sums->writing = false;
	if (sums->stopping && !failed)
		sums_write(sums);
}

static void sums_put_points(struct minute_sums *sums, struct ingest_request *r, struct sum *sum)
{
	struct minute_count total = sum->total;
	struct value value = value_i64((int64_t)total.count);
	struct ingest_points points = {
		.tenant = sum->tenant,
		.tags = total.tags,
		.tag_count = total.tag_count,
		.metrics = &total.metric,
		.values = &value,
		.count = 1,
		.ts_ms = total.ms + sums->offset_ms,
	};
	ingest_points(r, &points);
}

static void sums_write(struct minute_sums *sums)
{
	const struct ingest_door door = {.done = sums_on_written, .owner = sums};
	if (sums->writing || !sums->changed)
		return;
	struct ingest_request *r = ingest_request_new(sums->options.ingest, &door);
	sums->writing = true;
	sums->written_ms = clock_mono_ms(sums->options.clock);
	ingest_piece_begin(r);
	for (struct sum *sum = sums->sums; sum; sum = sum->next) {
		if (sum->state != SUM_CHANGED)
			continue;
		sums_set_state(sums, sum, SUM_UNDER_WAY);
		sums_put_points(sums, r, sum);
	}
	ingest_piece_end(r);
	ingest_request_end(r);
}

void minute_sums_tick(struct minute_sums *sums)
{
	int64_t now_ms = clock_mono_ms(sums->options.clock);
	if (!sums->stopping && now_ms - sums->written_ms >= sums->options.interval_ms)
		sums_write(sums);
}

void minute_sums_stop(struct minute_sums *sums)
{
	sums->stopping = true;
	sums_write(sums);
}
