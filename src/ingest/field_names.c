#include "ingest/field_names.h"

#include "base/mem.h"
#include "model/series.h"

struct field_sets {
	uint64_t seed;
	size_t count, bucket_count; /* a power of two */
	struct field_names **buckets;
};

struct field_sets *field_sets_new(uint64_t seed)
{
	struct field_sets *field_sets = mem_zalloc(sizeof(*field_sets));
	field_sets->seed = seed;
	field_sets->bucket_count = 16;
	field_sets->buckets = mem_zalloc(field_sets->bucket_count * sizeof(*field_sets->buckets));
	return field_sets;
}

void field_sets_free(struct field_sets *field_sets)
{
	ASSERT(field_sets->count == 0);
	mem_free(field_sets->buckets);
	mem_free(field_sets);
}

size_t field_sets_count(const struct field_sets *field_sets)
{
	return field_sets->count;
}

static struct field_names **field_names_bucket(struct field_sets *field_sets, uint64_t low)
{
	return &field_sets->buckets[low & (field_sets->bucket_count - 1)];
}

static void field_names_widen(struct field_sets *field_sets)
{
	struct field_names **old = field_sets->buckets;
	size_t count = field_sets->bucket_count;
	field_sets->bucket_count *= 4;
	field_sets->buckets = mem_zalloc(field_sets->bucket_count * sizeof(*field_sets->buckets));
	for (size_t i = 0; i < count; i++) {
		while (old[i]) {
			struct field_names *fields = old[i];
			old[i] = fields->next;
			struct field_names **to = field_names_bucket(field_sets, fields->key.low);
			fields->next = *to;
			*to = fields;
		}
	}
	mem_free(old);
}

static struct hash128 field_names_key(const struct field_sets *field_sets, struct slice measurement,
				      const struct slice *names, size_t count)
{
	struct hash128 key = hash128(measurement.data, measurement.len, field_sets->seed);
	for (size_t i = 0; i < count; i++) {
		struct hash128 name = hash128(names[i].data, names[i].len, key.low);
		key.low = name.low;
		key.high = (key.high << 1 | key.high >> 63) ^ name.high;
	}
	return key;
}

/* ---- Making one ----------------------------------------------------------------------------- */

/* One allocation: the struct, lengths, words, metrics, then text. */
struct field_names_parts {
	size_t lengths, words, metrics, text, total;
	size_t word_count;
};

static struct field_names_parts field_names_measure(struct slice measurement,
						    const struct slice *names, size_t count)
{
	struct field_names_parts parts = {.words = (sizeof(struct field_names) + 7) / 8 * 8};
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

static void field_names_put_names(uint64_t *words, uint16_t *lengths, const struct slice *names,
				  size_t count)
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
static size_t field_names_put_metric(char *to, struct slice measurement, struct slice name)
{
	size_t n = line_unescape(measurement, to);
	size_t with = n + 1 + line_unescape(name, to + n + 1);
	if (slice_equal((struct slice){to + n + 1, with - n - 1}, SLICE("value")))
		return n;
	to[n] = '_';
	return with;
}

static bool field_names_has_repeats(const struct slice *metrics, size_t count)
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

static struct field_names *field_names_make(struct slice measurement, const struct slice *names,
					    size_t count)
{
	struct field_names_parts parts = field_names_measure(measurement, names, count);
	char *memory = mem_zalloc(parts.total);
	struct field_names *fields = (struct field_names *)(void *)memory;
	uint64_t *words = (uint64_t *)(void *)(memory + parts.words);
	uint16_t *lengths = (uint16_t *)(void *)(memory + parts.lengths);
	struct slice *metrics = (struct slice *)(void *)(memory + parts.metrics);
	char *text = memory + parts.text;
	field_names_put_names(words, lengths, names, count);
	for (size_t i = 0; i < count; i++) {
		metrics[i] =
			(struct slice){text, field_names_put_metric(text, measurement, names[i])};
		text += measurement.len + 1 + names[i].len;
	}
	memcpy(text, measurement.data, measurement.len);
	fields->measurement = (struct slice){text, measurement.len};
	fields->names = (struct line_names){count, words, lengths};
	fields->metrics = metrics;
	fields->repeats = field_names_has_repeats(metrics, count);
	fields->bytes = parts.total + 16;
	return fields;
}

/* ---- Finding and keeping -------------------------------------------------------------------- */

/* Before anything is allocated: a byte of a metric is at most two raw ones. */
static int field_names_check_lengths(struct slice measurement, const struct slice *names,
				     size_t count, size_t *field, struct errbuf *e)
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

static int field_names_check_metrics(const struct field_names *fields, size_t *field,
				     struct errbuf *e)
{
	for (size_t i = 0; i < fields->names.count; i++) {
		int err = metric_check(fields->metrics[i], e);
		if (err) {
			*field = i;
			return err;
		}
	}
	return 0;
}

struct field_names *field_names_get(struct field_sets *field_sets, struct slice measurement,
				    const struct slice *names, size_t count, size_t *field,
				    struct errbuf *e)
{
	struct hash128 key = field_names_key(field_sets, measurement, names, count);
	for (struct field_names *s = *field_names_bucket(field_sets, key.low); s; s = s->next) {
		if (s->key.low == key.low && s->key.high == key.high) {
			s->refs++;
			return s;
		}
	}
	if (field_names_check_lengths(measurement, names, count, field, e))
		return NULL;
	struct field_names *fields = field_names_make(measurement, names, count);
	if (field_names_check_metrics(fields, field, e)) {
		mem_free(fields);
		return NULL;
	}
	if (field_sets->count >= field_sets->bucket_count)
		field_names_widen(field_sets);
	struct field_names **at = field_names_bucket(field_sets, key.low);
	fields->key = key;
	fields->refs = 1;
	fields->field_sets = field_sets;
	fields->next = *at;
	*at = fields;
	field_sets->count++;
	return fields;
}

void field_names_hold(struct field_names *fields)
{
	fields->refs++;
}

void field_names_release(struct field_names *fields)
{
	ASSERT(fields->refs > 0);
	if (--fields->refs)
		return;
	struct field_names **at = field_names_bucket(fields->field_sets, fields->key.low);
	while (*at != fields)
		at = &(*at)->next;
	*at = fields->next;
	fields->field_sets->count--;
	mem_free(fields);
}

size_t field_names_ref(struct field_names *fields)
{
	fields->refs++;
	return fields->cached++ ? 0 : fields->bytes;
}

size_t field_names_unref(struct field_names *fields)
{
	size_t bytes = --fields->cached ? 0 : fields->bytes;
	field_names_release(fields);
	return bytes;
}
