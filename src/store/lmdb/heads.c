#include "store/lmdb/heads.h"

#include "base/grow.h"
#include "base/hash.h"
#include "base/stats.h"

enum {
	BUCKETS_MIN = 1 << 12,
	DATA_STEP_BYTES = 16, /* malloc rounds up to them, after 8 of its own */
	PART_HEADER_BYTES = 8 + 3 * 2,
	PART_TRAILER_BYTES = 2,
};

_Static_assert(sizeof(struct head) == 120 && RETENTION_CLASSES <= 16 && TABLE_DATA_LATE < 16,
	       "a head and what malloc adds are two cache lines, and its fields are wide enough");

/* ---- Their memory ---------------------------------------------------------------------------- */

static void *heads_acquire_spare(struct heads *heads, size_t cap)
{
	size_t at = cap / DATA_STEP_BYTES;
	struct spare *spare = at < SPARE_SIZES ? heads->spare[at] : NULL;
	if (!spare)
		return mem_alloc(cap);
	heads->spare[at] = spare->next;
	heads->spare_bytes -= cap;
	return spare;
}

/* What heads have outgrown, and leave behind when they are sealed, is what others grow into: kept
 * by size, it costs malloc no walk over memory that nobody has touched for long. */
static void heads_release_spare(struct heads *heads, void *data, size_t cap)
{
	size_t at = cap / DATA_STEP_BYTES;
	struct spare *spare = data;
	if (!data || at >= SPARE_SIZES || heads->spare_bytes + cap > SPARE_MAX_BYTES) {
		mem_free(data);
		return;
	}
	spare->next = heads->spare[at];
	heads->spare[at] = spare;
	heads->spare_bytes += cap;
}

static void free_spare(struct heads *heads)
{
	for (size_t i = 0; i < SPARE_SIZES; i++) {
		while (heads->spare[i]) {
			struct spare *spare = heads->spare[i];
			heads->spare[i] = spare->next;
			mem_free(spare);
		}
	}
}

/* ---- All of them ----------------------------------------------------------------------------- */

void heads_init(struct heads *heads)
{
	*heads = (struct heads){.bucket_count = BUCKETS_MIN, .least_end_ms = INT64_MAX};
	pthread_rwlock_init(&heads->lock, NULL);
	heads->buckets = mem_zalloc(heads->bucket_count * sizeof(*heads->buckets));
	stat_add(STAT_store_head_bytes, (int64_t)(BUCKETS_MIN * sizeof(*heads->buckets)));
}

void heads_release(struct heads *heads)
{
	while (heads->oldest)
		heads_remove(heads, heads->oldest);
	stat_add(STAT_store_head_bytes, -(int64_t)(heads->bucket_count * sizeof(*heads->buckets)));
	mem_free(heads->buckets);
	mem_free(heads->directory);
	free_spare(heads);
	pthread_rwlock_destroy(&heads->lock);
}

size_t segment_hash(const struct segment_id *segment, uint32_t shape, uint32_t number)
{
	uint64_t h = (uint64_t)shape << 32 | number;
	h ^= (uint64_t)segment->segment * UINT64_C(0x9e3779b97f4a7c15);
	h ^= (uint64_t)segment->sheet.period_ms << 8 | (uint64_t)segment->sheet.retention << 5 |
	     (uint64_t)segment->sheet.table;
	h *= UINT64_C(0xff51afd7ed558ccd);
	return (size_t)(h ^ h >> 32);
}

int64_t segment_end_ms(const struct segment_id *segment)
{
	int64_t width_ms = schema_segment_ms(segment->sheet.table, segment->sheet.period_ms),
		end_ms;
	if (__builtin_mul_overflow(segment->segment + 1, width_ms, &end_ms))
		return INT64_MAX;
	return end_ms;
}

static bool is_head(const struct head *head, const struct segment_id *id, uint32_t shape,
		    uint32_t ordinal)
{
	return head->ordinal == ordinal && head->shape == shape && head->segment == id->segment &&
	       head->table == id->sheet.table && head->retention == id->sheet.retention &&
	       head->period_ms == id->sheet.period_ms;
}

static struct head *heads_find_hashed(struct heads *heads, const struct segment_id *segment,
				      uint32_t shape, uint32_t ordinal, size_t hash)
{
	struct head *head = heads->buckets[hash & (heads->bucket_count - 1)];
	while (head && !is_head(head, segment, shape, ordinal))
		head = head->next_in_bucket;
	return head;
}

struct head *heads_find(struct heads *heads, const struct segment_id *segment, uint32_t shape,
			uint32_t ordinal)
{
	return heads_find_hashed(heads, segment, shape, ordinal,
				 segment_hash(segment, shape, ordinal));
}

static void grow_buckets(struct heads *heads)
{
	size_t count = heads->bucket_count * 2;
	struct head **buckets = mem_zalloc(count * sizeof(*buckets));
	for (struct head *head = heads->oldest; head; head = head->newer) {
		struct segment_id id = head_segment(head);
		size_t at = segment_hash(&id, head->shape, head->ordinal) & (count - 1);
		head->next_in_bucket = buckets[at];
		buckets[at] = head;
	}
	stat_add(STAT_store_head_bytes,
		 (int64_t)((count - heads->bucket_count) * sizeof(*buckets)));
	mem_free(heads->buckets);
	heads->buckets = buckets;
	heads->bucket_count = count;
}

static void heads_account(struct heads *heads, int64_t bytes, int64_t count)
{
	heads->bytes = (uint64_t)((int64_t)heads->bytes + bytes);
	heads->count = (size_t)((int64_t)heads->count + count);
	ASSERT((int64_t)heads->bytes >= 0 && !heads->count == !heads->oldest);
	stat_add(STAT_store_head_bytes, bytes);
	stat_add(STAT_store_heads, count);
}

static struct head *heads_add(struct heads *heads, struct registry *registry,
			      const struct segment_id *id, const struct record *record,
			      uint64_t sequence)
{
	unsigned columns = registry_columns(registry, record->shape) *
			   (unsigned)schema[id->sheet.table].field_count;
	if (heads->count >= heads->bucket_count)
		grow_buckets(heads);
	struct head *head = mem_alloc(sizeof(*head));
	*head = (struct head){
		.period_ms = id->sheet.period_ms,
		.table = (unsigned)id->sheet.table & 0xf,
		.retention = (unsigned)id->sheet.retention & 0xf,
		.segment = id->segment,
		.shape = record->shape,
		.ordinal = record->ordinal,
		.columns = columns & 0x7fff,
		.first_sequence = sequence,
		.older = heads->newest,
		.max_ts_ms = INT64_MIN,
		.blocks_end_ms = INT64_MAX,
	};
	size_t at = segment_hash(id, head->shape, head->ordinal) & (heads->bucket_count - 1);
	head->next_in_bucket = heads->buckets[at];
	heads->buckets[at] = head;
	if (heads->newest)
		heads->newest->newer = head;
	else
		heads->oldest = head;
	heads->newest = head;
	heads_account(heads, (int64_t)head_bytes(head), 1);
	int64_t end_ms = segment_end_ms(id);
	if (end_ms < heads->least_end_ms)
		heads->least_end_ms = end_ms;
	heads_add_segment(heads, id);
	return head;
}

void heads_remove(struct heads *heads, struct head *head)
{
	struct segment_id id = head_segment(head);
	struct head **at = &heads->buckets[segment_hash(&id, head->shape, head->ordinal) &
					   (heads->bucket_count - 1)];
	while (*at != head)
		at = &(*at)->next_in_bucket;
	*at = head->next_in_bucket;
	if (head->older)
		head->older->newer = head->newer;
	else
		heads->oldest = head->newer;
	if (head->newer)
		head->newer->older = head->older;
	else
		heads->newest = head->older;
	heads_account(heads, -(int64_t)head_bytes(head), -1);
	heads->epoch++;
	heads_release_spare(heads, head->data, head->cap);
	mem_free(head);
}

/* ---- Parts ------------------------------------------------------------------------------------
 * ts i64 | bytes of values u16 | first column u16 | columns u16 | values, as row_codec.h has them |
 * bytes of values u16: so that the newest are found from the end */

struct part {
	int64_t ts_ms;
	unsigned first, columns, bytes;
	const uint8_t *values;
};

/* Gives where the next one begins. */
static inline const uint8_t *part_view(const uint8_t *at, struct part *part)
{
	uint16_t numbers[3];
	memcpy(&part->ts_ms, at, 8);
	memcpy(numbers, at + 8, sizeof(numbers));
	part->bytes = numbers[0];
	part->first = numbers[1];
	part->columns = numbers[2];
	part->values = at + PART_HEADER_BYTES;
	return part->values + part->bytes + PART_TRAILER_BYTES;
}

/* The part that ends at `end`. */
static inline const uint8_t *part_before(const uint8_t *end)
{
	uint16_t bytes;
	memcpy(&bytes, end - PART_TRAILER_BYTES, sizeof(bytes));
	return end - PART_TRAILER_BYTES - bytes - PART_HEADER_BYTES;
}

static inline int64_t part_ts_ms(const uint8_t *at)
{
	int64_t ts_ms;
	memcpy(&ts_ms, at, sizeof(ts_ms));
	return ts_ms;
}

int64_t head_min_ts_ms(const struct head *head)
{
	const uint8_t *at = head->data;
	int64_t min_ts_ms = INT64_MAX;
	struct part part;
	for (uint32_t i = 0; i < head->parts; i++) {
		at = part_view(at, &part);
		if (part.ts_ms < min_ts_ms)
			min_ts_ms = part.ts_ms;
		if (!head->unordered)
			break;
	}
	return min_ts_ms;
}

/* By half: with very many heads, most of them small, what lies idle in them is most of what could
 * be saved. */
static void grow_data(struct heads *heads, struct head *head, size_t need)
{
	size_t cap = head->cap + head->cap / 2;
	if (cap < head->used + need)
		cap = head->used + need;
	cap = (cap + 7 + DATA_STEP_BYTES) / DATA_STEP_BYTES * DATA_STEP_BYTES - 8;
	uint8_t *data = heads_acquire_spare(heads, cap);
	if (head->used)
		memcpy(data, head->data, head->used);
	heads_release_spare(heads, head->data, head->cap);
	head->data = data;
	head->cap = (uint32_t)cap;
}

static void add_part(struct heads *heads, struct head *head, const struct part *part)
{
	size_t bytes = PART_HEADER_BYTES + part->bytes + PART_TRAILER_BYTES;
	if (UNLIKELY(head->cap - head->used < bytes))
		grow_data(heads, head, bytes);
	uint16_t numbers[3] = {(uint16_t)part->bytes, (uint16_t)part->first,
			       (uint16_t)part->columns};
	uint8_t *to = head->data + head->used;
	memcpy(to, &part->ts_ms, 8);
	memcpy(to + 8, numbers, sizeof(numbers));
	memcpy(to + PART_HEADER_BYTES, part->values, part->bytes);
	memcpy(to + PART_HEADER_BYTES + part->bytes, &numbers[0], PART_TRAILER_BYTES);
	head->used += (uint32_t)bytes;
	head->unordered |= head->parts && part->ts_ms < head->last_ts_ms;
	/* The parts of one line, and a repeated time, are one row. */
	head->rows += !head->parts || part->ts_ms != head->last_ts_ms;
	head->parts++;
	head->last_ts_ms = part->ts_ms;
	if (part->ts_ms > head->max_ts_ms)
		head->max_ts_ms = part->ts_ms;
}

uint64_t head_samples(const struct head *head)
{
	bool seen[SHAPE_COLUMNS_MAX * TABLE_FIELDS_MAX];
	uint64_t bits[ROW_VALUES_MAX], samples = 0;
	uint8_t types[ROW_VALUES_MAX];
	const uint8_t *at = head->data;
	int64_t ts_ms = 0;
	struct part part;
	for (uint32_t i = 0; i < head->parts; i++) {
		at = part_view(at, &part);
		if (i == 0 || part.ts_ms != ts_ms)
			memset(seen, 0, sizeof(seen));
		ts_ms = part.ts_ms;
		int err = row_get(part.values, part.bytes, part.columns, bits, types);
		ASSERT(!err);
		for (unsigned c = 0; c < part.columns; c++) {
			bool is = types[c] != VALUE_NONE;
			samples += is && !seen[part.first + c];
			seen[part.first + c] |= is;
		}
	}
	return samples;
}

/* ---- Taking in ------------------------------------------------------------------------------- */

static const struct segment_id *segment_at(struct heads *heads, const struct store_target *sheet,
					   int64_t ts_ms)
{
	struct segment_id *last = &heads->last;
	if (LIKELY(ts_ms >= heads->last_begin_ms && ts_ms < heads->last_end_ms &&
		   sheet->table == last->sheet.table && sheet->retention == last->sheet.retention &&
		   sheet->period_ms == last->sheet.period_ms))
		return last;
	int64_t width_ms = schema_segment_ms(sheet->table, sheet->period_ms);
	*last = (struct segment_id){*sheet, floor_div(ts_ms, width_ms)};
	if (__builtin_mul_overflow(last->segment, width_ms, &heads->last_begin_ms) ||
	    __builtin_add_overflow(heads->last_begin_ms, width_ms, &heads->last_end_ms))
		heads->last_begin_ms = heads->last_end_ms = 0; /* at the ends of time: none */
	return last;
}

void heads_foresee(struct heads *heads, struct incoming *rows, size_t count)
{
	size_t mask = heads->bucket_count - 1;
	for (size_t i = 0; i < count; i++) {
		const struct record *record = &rows[i].record;
		const struct segment_id *id = segment_at(heads, &record->sheet, record->ts_ms);
		rows[i].hash = segment_hash(id, record->shape, record->ordinal);
		__builtin_prefetch(&heads->buckets[rows[i].hash & mask]);
	}
	for (size_t i = 0; i < count; i++) {
		const char *head = (const char *)heads->buckets[rows[i].hash & mask];
		__builtin_prefetch(head, 1);
		__builtin_prefetch(head + 64, 1);
	}
	for (size_t i = 0; i < count; i++) {
		const struct head *head = heads->buckets[rows[i].hash & mask];
		if (head)
			__builtin_prefetch(head->data + head->used, 1);
	}
}

struct head *heads_apply_row(struct heads *heads, struct registry *registry,
			     const struct incoming *row, int64_t now_us)
{
	const struct record *record = &row->record;
	const struct segment_id *id = segment_at(heads, &record->sheet, record->ts_ms);
	struct head *head = heads_find_hashed(heads, id, record->shape, record->ordinal, row->hash);
	if (UNLIKELY(!head))
		head = heads_add(heads, registry, id, record, row->sequence);
	struct part part = {record->ts_ms, record->first_column, record->columns,
			    record->values_bytes, record->values};
	uint32_t cap = head->cap;
	add_part(heads, head, &part);
	if (UNLIKELY(head->cap != cap))
		heads_account(heads, (int64_t)(head->cap - cap), 0);
	head->last_sequence = row->sequence;
	head->touched = (uint32_t)(now_us >> HEAD_TOUCHED_SHIFT);
	return head;
}

/* A part whose columns within the deletion are blank. */
static void add_blanked(struct heads *heads, struct head *head, struct part part,
			const struct record *record)
{
	uint64_t bits[ROW_VALUES_MAX];
	uint8_t types[ROW_VALUES_MAX], bytes[ROW_MAX_BYTES];
	struct value values[ROW_VALUES_MAX];
	int err = row_get(part.values, part.bytes, part.columns, bits, types);
	ASSERT(!err);
	for (unsigned c = 0; c < part.columns; c++) {
		unsigned column = part.first + c;
		bool gone = column >= record->first_column &&
			    column < record->first_column + record->columns;
		values[c] = (struct value){bits[c], gone ? VALUE_NONE : (enum value_type)types[c]};
	}
	unsigned fields = (unsigned)schema[head->table].field_count;
	part.bytes = (unsigned)(row_put(bytes, values, part.columns, fields) - bytes);
	part.values = bytes;
	add_part(heads, head, &part);
}

/* Blanks the columns of rows within the deletion. Empty rows stay until the head is sealed. */
static void delete_in_head(struct heads *heads, struct head *head, const struct record *record)
{
	if (head->max_ts_ms < record->ts_ms || head_min_ts_ms(head) >= record->end_ms)
		return;
	struct head blanked = *head;
	blanked.data = NULL;
	blanked.used = blanked.cap = blanked.rows = blanked.parts = 0;
	const uint8_t *at = head->data;
	struct part part;
	for (uint32_t i = 0; i < head->parts; i++) {
		at = part_view(at, &part);
		if (part.ts_ms >= record->ts_ms && part.ts_ms < record->end_ms)
			add_blanked(heads, &blanked, part, record);
		else
			add_part(heads, &blanked, &part);
	}
	heads_account(heads, (int64_t)blanked.cap - (int64_t)head->cap, 0);
	heads_release_spare(heads, head->data, head->cap);
	*head = blanked;
}

/* A reader whose snapshot is older than the deletion must not lay what is left of the head over
 * extents that still hold what a deleted sample had overwritten. */
void heads_apply_delete(struct heads *heads, const struct record *record)
{
	heads->epoch++;
	for (size_t i = 0; i < heads->directory_count; i++) {
		const struct segment_id *id = &heads->directory[i];
		if (id->sheet.table != record->sheet.table ||
		    id->sheet.period_ms != record->sheet.period_ms)
			continue;
		if (record->kind == RECORD_CLEAR && id->sheet.retention == record->sheet.retention)
			continue;
		struct head *head = heads_find(heads, id, record->shape, record->ordinal);
		if (head)
			delete_in_head(heads, head, record);
	}
}

/* ---- The directory --------------------------------------------------------------------------- */

#define ORDER(x, y)                                                                                \
	if ((x) != (y))                                                                            \
	return (x) < (y) ? -1 : 1

int segment_order(const struct segment_id *a, const struct segment_id *b)
{
	ORDER(a->sheet.table, b->sheet.table);
	ORDER(a->sheet.period_ms, b->sheet.period_ms);
	ORDER(a->sheet.retention, b->sheet.retention);
	ORDER(a->segment, b->segment);
	return 0;
}

/* The first entry >= id. */
static size_t directory_find(const struct heads *heads, const struct segment_id *id)
{
	size_t low = 0, high = heads->directory_count;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (segment_order(&heads->directory[middle], id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool directory_has(const struct heads *heads, size_t at, const struct segment_id *id)
{
	return at < heads->directory_count && segment_order(&heads->directory[at], id) == 0;
}

void heads_add_segment(struct heads *heads, const struct segment_id *segment)
{
	size_t at = directory_find(heads, segment);
	if (directory_has(heads, at, segment))
		return;
	GROW(heads->directory, heads->directory_cap, heads->directory_count + 1);
	memmove(&heads->directory[at + 1], &heads->directory[at],
		(heads->directory_count - at) * sizeof(*heads->directory));
	heads->directory[at] = *segment;
	heads->directory_count++;
}

bool heads_has_segment(const struct heads *heads, const struct segment_id *segment)
{
	return directory_has(heads, directory_find(heads, segment), segment);
}

void heads_remove_segment(struct heads *heads, const struct segment_id *segment)
{
	size_t at = directory_find(heads, segment);
	if (!directory_has(heads, at, segment))
		return;
	heads->directory_count--;
	memmove(&heads->directory[at], &heads->directory[at + 1],
		(heads->directory_count - at) * sizeof(*heads->directory));
}

size_t heads_segments(struct heads *heads, enum table table, int64_t period_ms, int64_t start_ms,
		      int64_t end_ms, struct segment_id *out, size_t max)
{
	if (start_ms >= end_ms)
		return 0;
	int64_t first = segment_of(table, period_ms, start_ms);
	int64_t last = segment_of(table, period_ms, end_ms - 1);
	size_t count = 0;
	pthread_rwlock_rdlock(&heads->lock);
	for (int class = 0; class < RETENTION_CLASSES; class ++) {
		struct segment_id from = {{table, (enum retention_class) class, period_ms}, first};
		for (size_t i = directory_find(heads, &from); i < heads->directory_count; i++) {
			const struct segment_id *id = &heads->directory[i];
			if (id->sheet.table != table || id->sheet.period_ms != period_ms ||
			    (int)id->sheet.retention != class || id->segment > last)
				break;
			if (count < max)
				out[count] = *id;
			count++;
		}
	}
	pthread_rwlock_unlock(&heads->lock);
	return count;
}

/* ---- Runs -------------------------------------------------------------------------------------
 */

void samples_init(struct samples *samples, unsigned fields)
{
	ASSERT(fields >= 1 && fields <= BLOCK_COLUMNS_MAX);
	*samples = (struct samples){.fields = fields};
}

void samples_release(struct samples *samples)
{
	mem_free(samples->ts_ms);
	for (unsigned f = 0; f < samples->arrays; f++) {
		mem_free(samples->bits[f]);
		mem_free(samples->types[f]);
	}
	*samples = (struct samples){.fields = samples->fields};
}

void samples_reuse(struct samples *samples, unsigned fields)
{
	ASSERT(fields >= 1 && fields <= BLOCK_COLUMNS_MAX);
	samples->fields = fields;
	samples->count = 0;
	samples->sequence = 0;
}

void samples_reserve(struct samples *samples, size_t rows)
{
	bool grows = samples->cap - samples->count < rows;
	unsigned arrays = samples->fields > samples->arrays ? samples->fields : samples->arrays;
	if (!grows && arrays == samples->arrays)
		return;
	size_t cap = !grows ? samples->cap : samples->cap ? samples->cap * 2 : 64;
	if (cap < samples->count + rows)
		cap = samples->count + rows;
	if (grows)
		samples->ts_ms = mem_resize_array(samples->ts_ms, cap, sizeof(*samples->ts_ms));
	for (unsigned f = grows ? 0 : samples->arrays; f < arrays; f++) {
		samples->bits[f] = mem_resize_array(samples->bits[f], cap, sizeof(uint64_t));
		samples->types[f] = mem_resize_array(samples->types[f], cap, 1);
	}
	samples->arrays = arrays;
	samples->cap = cap;
}

static void samples_copy_row(struct samples *to, size_t at, const struct samples *from, size_t row)
{
	to->ts_ms[at] = from->ts_ms[row];
	for (unsigned f = 0; f < to->fields; f++) {
		to->bits[f][at] = from->bits[f][row];
		to->types[f][at] = from->types[f][row];
	}
}

/* Lays a row over one of the same time: what it has, it wins. */
static void samples_overlay_row(struct samples *to, size_t at, const struct samples *from,
				size_t row)
{
	for (unsigned f = 0; f < to->fields; f++) {
		if (from->types[f][row] == VALUE_NONE)
			continue;
		to->bits[f][at] = from->bits[f][row];
		to->types[f][at] = from->types[f][row];
	}
}

static bool row_empty(const struct samples *samples, size_t row)
{
	for (unsigned f = 0; f < samples->fields; f++) {
		if (samples->types[f][row] != VALUE_NONE)
			return false;
	}
	return true;
}

struct heads_place {
	int64_t ts_ms;
	size_t row;
};

static int heads_place_order(const void *a, const void *b)
{
	const struct heads_place *x = a, *y = b;
	ORDER(x->ts_ms, y->ts_ms);
	return (x->row > y->row) - (x->row < y->row);
}

bool samples_is_full(const struct samples *samples, size_t from, size_t count)
{
	for (unsigned f = 0; f < samples->fields && count; f++) {
		if (!memchr(samples->types[f] + from, VALUE_NONE, count))
			return true;
	}
	return !count;
}

static bool ascends(const struct samples *samples)
{
	bool wrong = false;
	/* To the end, whatever comes: such a loop is done several rows at a time. */
	for (size_t i = 1; i < samples->count; i++)
		wrong |= samples->ts_ms[i] <= samples->ts_ms[i - 1];
	bool full = samples_is_full(samples, 0, samples->count);
	for (size_t i = 0; !wrong && !full && i < samples->count; i++)
		wrong = row_empty(samples, i);
	return !wrong;
}

/* What arrives over several connections is nearly in order: each row has few to pass. Gives up
 * after a number of moves that sorting would cost, too; the order so far is no harm. */
static bool insert_places(struct heads_place *places, size_t count)
{
	size_t moves = 0, moves_max = 16 * count;
	for (size_t i = 1; i < count && moves < moves_max; i++) {
		struct heads_place place = places[i];
		size_t at = i;
		for (; at > 0 && places[at - 1].ts_ms > place.ts_ms; at--)
			places[at] = places[at - 1];
		places[at] = place;
		moves += i - at;
	}
	return moves < moves_max;
}

void samples_sort(struct samples *samples)
{
	if (ascends(samples))
		return;
	struct heads_place *places = mem_alloc_array(samples->count, sizeof(*places));
	for (size_t i = 0; i < samples->count; i++)
		places[i] = (struct heads_place){samples->ts_ms[i], i};
	if (!insert_places(places, samples->count))
		qsort(places, samples->count, sizeof(*places), heads_place_order);
	struct samples sorted;
	samples_init(&sorted, samples->fields);
	samples_reserve(&sorted, samples->count);
	for (size_t i = 0; i < samples->count; i++) {
		size_t row = places[i].row;
		if (row_empty(samples, row))
			continue;
		if (sorted.count && sorted.ts_ms[sorted.count - 1] == samples->ts_ms[row])
			samples_overlay_row(&sorted, sorted.count - 1, samples, row);
		else
			samples_copy_row(&sorted, sorted.count++, samples, row);
	}
	mem_free(places);
	sorted.sequence = samples->sequence;
	samples_release(samples);
	*samples = sorted;
}

void samples_merge(const struct samples *older, const struct samples *newer, struct samples *out)
{
	samples_reserve(out, older->count + newer->count);
	size_t i = 0, j = 0;
	while (i < older->count || j < newer->count) {
		bool take_old = j == newer->count ||
				(i < older->count && older->ts_ms[i] <= newer->ts_ms[j]);
		bool same = take_old && j < newer->count && older->ts_ms[i] == newer->ts_ms[j];
		if (take_old)
			samples_copy_row(out, out->count, older, i++);
		else
			samples_copy_row(out, out->count, newer, j++);
		if (same)
			samples_overlay_row(out, out->count, newer, j++);
		out->count++;
	}
	out->sequence = older->sequence > newer->sequence ? older->sequence : newer->sequence;
}

static void part_decode(const struct part *part, struct row_pieces *pieces)
{
	int err = row_decode(part->values, part->bytes, part->columns, pieces);
	ASSERT(!err);
}

/* The values of a part that are among the columns of `samples`, whose row `at` is blank; whether
 * there are any. */
static bool put_present(const struct part *part, const struct row_pieces *pieces,
			unsigned first_column, struct samples *samples, size_t at)
{
	const uint64_t *bits = pieces->bits;
	bool any = false;
	for (const struct row_piece *p = pieces->list; p < pieces->list + pieces->count; p++) {
		unsigned c = part->first + p->first - first_column; /* before them: very large */
		for (unsigned i = 0; i < p->count; i++, c += p->step, bits++) {
			if (c >= samples->fields)
				continue;
			samples->bits[c][at] = *bits;
			samples->types[c][at] = p->type;
			any = true;
		}
	}
	return any;
}

static inline bool part_touches(const struct part *part, unsigned first_column, unsigned columns)
{
	return first_column < part->first + part->columns && first_column + columns > part->first;
}

/* Whether any value of the part is among the columns of `samples`; then they are its row `at`. */
static bool copy_part(const struct part *part, unsigned first_column, struct samples *samples,
		      size_t at)
{
	struct row_pieces pieces;
	if (!part_touches(part, first_column, samples->fields))
		return false;
	if (samples->fields == 1) { /* a read of one column looks at nothing else */
		struct value value = row_value(part->values, part->bytes, part->columns,
					       first_column - part->first);
		samples->bits[0][at] = value.bits;
		samples->types[0][at] = (uint8_t)value.type;
		return value.type != VALUE_NONE;
	}
	for (unsigned f = 0; f < samples->fields; f++) {
		samples->bits[f][at] = 0;
		samples->types[f][at] = VALUE_NONE;
	}
	part_decode(part, &pieces);
	return put_present(part, &pieces, first_column, samples, at);
}

/* Where to begin with the parts from start_ms on; most often the newest are wanted. */
static const uint8_t *find_first(const struct head *head, int64_t start_ms)
{
	const uint8_t *at = head->data + head->used;
	if (head->unordered || start_ms <= head_min_ts_ms(head))
		return head->data;
	for (const uint8_t *before; at > head->data; at = before) {
		before = part_before(at);
		if (part_ts_ms(before) < start_ms)
			break;
	}
	return at;
}

enum { RESERVE_PARTS = 16 };

void head_copy(const struct head *head, unsigned first_column, int64_t start_ms, int64_t end_ms,
	       struct samples *samples)
{
	if (head->max_ts_ms < start_ms || head_min_ts_ms(head) >= end_ms)
		return;
	const uint8_t *at = find_first(head, start_ms), *end = head->data + head->used;
	struct part part;
	samples_reserve(samples, at == head->data ? head->parts : RESERVE_PARTS);
	while (at < end) {
		at = part_view(at, &part);
		if (part.ts_ms >= end_ms && !head->unordered)
			break;
		if (samples->count == samples->cap)
			samples_reserve(samples, RESERVE_PARTS);
		if (part.ts_ms < start_ms || part.ts_ms >= end_ms ||
		    !copy_part(&part, first_column, samples, samples->count))
			continue;
		samples->ts_ms[samples->count++] = part.ts_ms;
	}
	if (head->last_sequence > samples->sequence)
		samples->sequence = head->last_sequence;
}

/* Makes room for so many rows, all without a value. */
static void reserve_blank(struct samples *samples, size_t rows)
{
	samples_reserve(samples, rows);
	for (unsigned f = 0; f < samples->fields; f++)
		memset(samples->types[f] + samples->count, VALUE_NONE, rows);
}

static void begin_strips(struct samples *const *each, unsigned count, size_t rows,
			 uint64_t sequence)
{
	for (unsigned s = 0; s < count; s++) {
		reserve_blank(each[s], rows);
		if (sequence > each[s]->sequence)
			each[s]->sequence = sequence;
	}
}

/* A part as rows of the strips that it touches. */
static void put_in_strips(const struct part *part, unsigned width, struct samples *const *each,
			  unsigned count)
{
	struct row_pieces pieces;
	part_decode(part, &pieces);
	for (unsigned s = 0; s < count; s++) {
		struct samples *samples = each[s];
		if (put_present(part, &pieces, s * width, samples, samples->count))
			samples->ts_ms[samples->count++] = part->ts_ms;
	}
}

void head_copy_strips(const struct head *head, unsigned width, struct samples *const *each,
		      unsigned count)
{
	const uint8_t *at = head->data, *end = head->data + head->used;
	struct part part;
	begin_strips(each, count, head->parts, head->last_sequence);
	while (at < end) {
		at = part_view(at, &part);
		put_in_strips(&part, width, each, count);
	}
}

/* Adds to the strip that begins with the column `first` those of the record's columns that lie in
 * it, as rows after the strip's own. */
static void heads_put_columns(const struct record *record, const struct record_columns *columns,
			      unsigned first, struct samples *samples)
{
	unsigned all = (unsigned)schema[record->sheet.table].field_count;
	unsigned from = record->first_column - first; /* before the strip: very large */
	const uint8_t *bits = columns->bits;
	size_t bytes = columns->count * sizeof(uint64_t);
	bool any = false;
	for (unsigned c = 0; c < record->columns; c += all) {
		for (unsigned left = columns->fields; left; left &= left - 1, bits += bytes) {
			unsigned at = from + c + (unsigned)__builtin_ctz(left);
			if (at >= samples->fields)
				continue;
			memcpy(samples->bits[at] + samples->count, bits, bytes);
			memset(samples->types[at] + samples->count, columns->type, columns->count);
			any = true;
		}
	}
	if (!any)
		return;
	memcpy(samples->ts_ms + samples->count, columns->ts_ms, bytes);
	samples->count += columns->count;
}

static void put_columns_in_strips(const struct record *record, unsigned width,
				  struct samples *const *each, unsigned count)
{
	struct record_columns columns = record_columns(record);
	for (unsigned s = 0; s < count; s++)
		heads_put_columns(record, &columns, s * width, each[s]);
}

void rows_copy_strips(const struct record_rows *rows, unsigned width, struct samples *const *each,
		      unsigned count)
{
	const uint8_t *at = rows->at, *bytes;
	size_t left = rows->bytes, len;
	begin_strips(each, count, rows->count, rows->sequence);
	while ((bytes = record_next(&at, &left, &len)) != NULL) {
		struct record record;
		int err = record_view(bytes, len, &record);
		ASSERT(!err);
		if (record.kind == RECORD_COLUMNS) {
			put_columns_in_strips(&record, width, each, count);
			continue;
		}
		struct part part = {record.ts_ms, record.first_column, record.columns,
				    record.values_bytes, record.values};
		put_in_strips(&part, width, each, count);
	}
}
