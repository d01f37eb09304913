#include "ingest/shape.h"

#include "base/mem.h"
#include "model/series.h"

struct shapes {
	uint64_t seed;
	size_t count, bucket_count; /* a power of two */
	struct shape **buckets;
};

struct shapes *shapes_new(uint64_t seed)
{
	struct shapes *shapes = mem_zalloc(sizeof(*shapes));
	shapes->seed = seed;
	shapes->bucket_count = 16;
	shapes->buckets = mem_zalloc(shapes->bucket_count * sizeof(*shapes->buckets));
	return shapes;
}

void shapes_free(struct shapes *shapes)
{
	ASSERT(shapes->count == 0);
	mem_free(shapes->buckets);
	mem_free(shapes);
}

size_t shapes_count(const struct shapes *shapes)
{
	return shapes->count;
}

static struct shape **bucket(struct shapes *shapes, uint64_t low)
{
	return &shapes->buckets[low & (shapes->bucket_count - 1)];
}

static void widen(struct shapes *shapes)
{
	struct shape **old = shapes->buckets;
	size_t count = shapes->bucket_count;
	shapes->bucket_count *= 4;
	shapes->buckets = mem_zalloc(shapes->bucket_count * sizeof(*shapes->buckets));
	for (size_t i = 0; i < count; i++) {
		while (old[i]) {
			struct shape *shape = old[i];
			old[i] = shape->next;
			struct shape **to = bucket(shapes, shape->key.low);
			shape->next = *to;
			*to = shape;
		}
	}
	mem_free(old);
}

static struct hash128 shape_key(const struct shapes *shapes, struct slice measurement,
				const struct slice *names, size_t count)
{
	struct hash128 key = hash128(measurement.data, measurement.len, shapes->seed);
	for (size_t i = 0; i < count; i++) {
		struct hash128 name = hash128(names[i].data, names[i].len, key.low);
		key.low = name.low;
		key.high = (key.high << 1 | key.high >> 63) ^ name.high;
	}
	return key;
}

/* ---- Making one ----------------------------------------------------------------------------- */

/* One allocation: the struct, lengths, words, metrics, then text. */
struct shape_parts {
	size_t lengths, words, metrics, text, total;
	size_t word_count;
};

static struct shape_parts measure(struct slice measurement, const struct slice *names, size_t count)
{
	struct shape_parts parts = {.words = (sizeof(struct shape) + 7) / 8 * 8};
	size_t text_bytes = measurement.len;
	for (size_t i = 0; i < count; i++) {
		parts.word_count += (names[i].len + 1 + 7) / 8;
		text_bytes += measurement.len + 1 + names[i].len;
	}
	parts.metrics = parts.words + parts.word_count * 8;
	parts.lengths = parts.metrics + count * sizeof(struct slice);
	parts.text = parts.lengths + count * sizeof(uint16_t);
	parts.total = parts.text + text_bytes;
	return parts;
}

static void put_names(uint64_t *words, uint16_t *lengths, const struct slice *names, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *to = (char *)words;
		memcpy(to, names[i].data, names[i].len);
		to[names[i].len] = '=';
		lengths[i] = (uint16_t)(names[i].len + 1);
		words += (lengths[i] + 7) / 8;
	}
}

/* measurement_field, or the measurement alone where the field is called `value`. */
static size_t put_metric(char *to, struct slice measurement, struct slice name)
{
	size_t n = line_unescape(measurement, to);
	size_t with = n + 1 + line_unescape(name, to + n + 1);
	if (slice_equal((struct slice){to + n + 1, with - n - 1}, SLICE("value")))
		return n;
	to[n] = '_';
	return with;
}

static bool has_repeats(const struct slice *metrics, size_t count)
{
	enum { PLACES = 2 * LINE_FIELDS_MAX };
	uint16_t places[PLACES] = {0}; /* index + 1 */
	for (size_t i = 0; i < count; i++) {
		size_t at = hash64(metrics[i].data, metrics[i].len, 0) % PLACES;
		for (; places[at]; at = (at + 1) % PLACES) {
			if (slice_equal(metrics[i], metrics[places[at] - 1]))
				return true;
		}
		places[at] = (uint16_t)(i + 1);
	}
	return false;
}

static struct shape *make(struct slice measurement, const struct slice *names, size_t count)
{
	struct shape_parts parts = measure(measurement, names, count);
	char *memory = mem_zalloc(parts.total);
	struct shape *shape = (struct shape *)(void *)memory;
	uint64_t *words = (uint64_t *)(void *)(memory + parts.words);
	uint16_t *lengths = (uint16_t *)(void *)(memory + parts.lengths);
	struct slice *metrics = (struct slice *)(void *)(memory + parts.metrics);
	char *text = memory + parts.text;
	put_names(words, lengths, names, count);
	for (size_t i = 0; i < count; i++) {
		metrics[i] = (struct slice){text, put_metric(text, measurement, names[i])};
		text += measurement.len + 1 + names[i].len;
	}
	memcpy(text, measurement.data, measurement.len);
	shape->measurement = (struct slice){text, measurement.len};
	shape->names = (struct line_names){count, words, lengths};
	shape->metrics = metrics;
	shape->repeats = has_repeats(metrics, count);
	shape->bytes = parts.total + 16;
	return shape;
}

/* ---- Finding and keeping -------------------------------------------------------------------- */

/* Before anything is allocated: a byte of a metric is at most two raw ones. */
static int check_lengths(struct slice measurement, const struct slice *names, size_t count,
			 size_t *field, struct errbuf *e)
{
	for (size_t i = 0; i < count; i++) {
		if (measurement.len + 1 + names[i].len <= 2 * METRIC_MAX_BYTES + 1)
			continue;
		*field = i;
		return errbuf_set(e, ERR_INVALID,
				  "metric \"" SHOWN "\" is too long (1 to %d bytes)",
				  SHOWN_OF(measurement), METRIC_MAX_BYTES);
	}
	return 0;
}

static int check_metrics(const struct shape *shape, size_t *field, struct errbuf *e)
{
	for (size_t i = 0; i < shape->names.count; i++) {
		int err = metric_check(shape->metrics[i], e);
		if (err) {
			*field = i;
			return err;
		}
	}
	return 0;
}

struct shape *shapes_get(struct shapes *shapes, struct slice measurement, const struct slice *names,
			 size_t count, size_t *field, struct errbuf *e)
{
	struct hash128 key = shape_key(shapes, measurement, names, count);
	for (struct shape *s = *bucket(shapes, key.low); s; s = s->next) {
		if (s->key.low == key.low && s->key.high == key.high) {
			s->refs++;
			return s;
		}
	}
	if (check_lengths(measurement, names, count, field, e))
		return NULL;
	struct shape *shape = make(measurement, names, count);
	if (check_metrics(shape, field, e)) {
		mem_free(shape);
		return NULL;
	}
	if (shapes->count >= shapes->bucket_count)
		widen(shapes);
	struct shape **at = bucket(shapes, key.low);
	shape->key = key;
	shape->refs = 1;
	shape->shapes = shapes;
	shape->next = *at;
	*at = shape;
	shapes->count++;
	return shape;
}

void shape_hold(struct shape *shape)
{
	shape->refs++;
}

void shape_release(struct shape *shape)
{
	ASSERT(shape->refs > 0);
	if (--shape->refs)
		return;
	struct shape **at = bucket(shape->shapes, shape->key.low);
	while (*at != shape)
		at = &(*at)->next;
	*at = shape->next;
	shape->shapes->count--;
	mem_free(shape);
}

size_t shape_ref(struct shape *shape)
{
	shape->refs++;
	return shape->cached++ ? 0 : shape->bytes;
}

size_t shape_unref(struct shape *shape)
{
	size_t bytes = --shape->cached ? 0 : shape->bytes;
	shape_release(shape);
	return bytes;
}
