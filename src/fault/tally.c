#include "fault/tally.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "fault/put.h"

enum { TALLY_VERSION = 1, HASH_TEXT_BYTES = 17 }; /* `~` and 16 digits */

/* What is known of a fact. */
static const struct tally_fact {
	const char *name;
	enum fault_text text;
	size_t max;       /* values that are kept */
	bool counts_none; /* reports without it, too: whether one came after a release matters */
} tally_facts[FAULT_TALLY_FACTS] = {
	[FAULT_TALLY_RELEASE] = {"release", FAULT_RELEASE, 200, true},
	[FAULT_TALLY_ENVIRONMENT] = {"environment", FAULT_ENVIRONMENT, 100, false},
	[FAULT_TALLY_HOST] = {"host", FAULT_HOST, FAULT_VALUES_MAX, false},
	[FAULT_TALLY_USER] = {"user", FAULT_USER, FAULT_VALUES_MAX, false},
	[FAULT_TALLY_LEVEL] = {"level", FAULT_LEVEL, 100, false},
	[FAULT_TALLY_CONTEXT] = {"context", FAULT_CONTEXT, 200, false},
	[FAULT_TALLY_EXCEPTION] = {"exception", FAULT_EXCEPTION, 100, false},
};

const char *fault_tally_fact_name(enum fault_tally_fact fact)
{
	return tally_facts[fact].name;
}

enum fault_text fault_tally_fact_text(enum fault_tally_fact fact)
{
	return tally_facts[fact].text;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* The text that is kept of a value; a text that is cut is made in `room`. */
static struct slice tally_cut(struct slice text, char room[FAULT_VALUE_MAX_BYTES + 1])
{
	if (text.len <= FAULT_VALUE_MAX_BYTES)
		return text;
	size_t cut = FAULT_VALUE_MAX_BYTES - HASH_TEXT_BYTES;
	while (cut && ((uint8_t)text.data[cut] & 0xc0) == 0x80)
		cut--;
	memcpy(room, text.data, cut);
	int len = snprintf(room + cut, HASH_TEXT_BYTES + 1, "~%016llx",
			   (unsigned long long)hash64(text.data, text.len, 0));
	return (struct slice){room, cut + (size_t)len};
}

/* The place of a value, or where it would be. */
static size_t tally_place(const struct fault_values *values, uint64_t hash)
{
	size_t low = 0, high = values->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (values->list[middle].hash < hash)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void tally_note(struct fault_value *value, uint64_t count, int64_t first_us, int64_t last_us)
{
	value->first_us = value->count ? smaller_of(value->first_us, first_us) : first_us;
	value->last_us = value->count ? larger_of(value->last_us, last_us) : last_us;
	value->count += count;
}

/* From room for one value on: groups are many, and most of their facts have one value. */
static void tally_make_room(struct fault_values *values)
{
	if (values->count < values->room)
		return;
	values->room = values->room ? values->room * 2 : 1;
	values->list = mem_resize_array(values->list, values->room, sizeof(*values->list));
}

/* Adds some reports of a value. If its hash is not among the least ones they go to the rest. */
static void tally_add_value(struct fault_values *values, size_t max, struct slice text,
			    uint64_t count, int64_t first_us, int64_t last_us)
{
	uint64_t hash = hash64(text.data, text.len, 0);
	size_t at = tally_place(values, hash);
	if (at < values->count && values->list[at].hash == hash) {
		tally_note(&values->list[at], count, first_us, last_us);
		return;
	}
	if (at == max) {
		values->rest += count;
		return;
	}
	if (values->count == max) {
		values->rest += values->list[--values->count].count;
		mem_free_slice(values->list[values->count].text);
	}
	tally_make_room(values);
	struct fault_value *added = &values->list[at];
	memmove(added + 1, added, (values->count - at) * sizeof(*added));
	values->count++;
	*added = (struct fault_value){.hash = hash, .text = mem_copy_slice(text)};
	tally_note(added, count, first_us, last_us);
}

static void tally_release_values(struct fault_values *values)
{
	for (size_t i = 0; i < values->count; i++)
		mem_free_slice(values->list[i].text);
	mem_free(values->list);
}

/* By the least hashes: of n values that are spread evenly the k-th has the hash k/n of all. */
uint64_t fault_values_distinct(const struct fault_values *values, bool *about)
{
	size_t none = fault_values_find(values, SLICE("")) != NULL;
	*about = values->rest > 0 && values->count > 1;
	if (!*about)
		return values->count - none;
	double part = (double)values->list[values->count - 1].hash / 0x1p64;
	return (uint64_t)((double)(values->count - 1) / part) - none;
}

const struct fault_value *fault_values_find(const struct fault_values *values, struct slice text)
{
	char room[FAULT_VALUE_MAX_BYTES + 1];
	text = tally_cut(text, room);
	uint64_t hash = hash64(text.data, text.len, 0);
	size_t at = tally_place(values, hash);
	bool there = at < values->count && values->list[at].hash == hash;
	return there ? &values->list[at] : NULL;
}

const struct fault_value *fault_values_newest(const struct fault_values *values)
{
	const struct fault_value *newest = NULL;
	for (size_t i = 0; i < values->count; i++)
		if (values->list[i].text.len &&
		    (!newest || values->list[i].last_us > newest->last_us))
			newest = &values->list[i];
	return newest;
}

static int tally_compare_counts(const void *one, const void *other)
{
	const struct fault_value *a = *(const struct fault_value *const *)one;
	const struct fault_value *b = *(const struct fault_value *const *)other;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return slice_compare(a->text, b->text);
}

size_t fault_values_largest(const struct fault_values *values, const struct fault_value **to)
{
	size_t count = 0;
	for (size_t i = 0; i < values->count; i++)
		if (values->list[i].text.len)
			to[count++] = &values->list[i];
	qsort(to, count, sizeof(*to), tally_compare_counts);
	return count;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

void fault_tally_release(struct fault_tally *tally)
{
	mem_free_slice(tally->first.id);
	mem_free_slice(tally->last.id);
	mem_free_slice(tally->title);
	for (size_t i = 0; i < FAULT_TALLY_FACTS; i++)
		tally_release_values(&tally->values[i]);
	*tally = (struct fault_tally){0};
}

static bool tally_is_before(int64_t date_us, struct slice id, const struct fault_tally_end *end)
{
	if (date_us != end->date_us)
		return date_us < end->date_us;
	return slice_compare(id, end->id) < 0;
}

static void tally_set_end(struct fault_tally_end *end, int64_t date_us, struct slice id)
{
	mem_free_slice(end->id);
	*end = (struct fault_tally_end){date_us, mem_copy_slice(id)};
}

/* The first and the last of some reports become those of the tally, if they are. The title is that
 * of the first report. */
static void tally_note_ends(struct fault_tally *tally, int64_t first_us, struct slice first,
			    struct slice title, int64_t last_us, struct slice last)
{
	if (!tally->count || tally_is_before(first_us, first, &tally->first)) {
		tally_set_end(&tally->first, first_us, first);
		mem_free_slice(tally->title);
		tally->title = mem_copy_slice(title);
	}
	if (!tally->count || !tally_is_before(last_us, last, &tally->last))
		tally_set_end(&tally->last, last_us, last);
}

void fault_tally_add(struct fault_tally *tally, const struct fault_arrival *arrival)
{
	int64_t date_us = arrival->date_us;
	const struct slice *texts = arrival->facts.texts;
	tally_note_ends(tally, date_us, arrival->id, texts[FAULT_TITLE], date_us, arrival->id);
	tally->count++;
	tally->hours[(date_us - floor_div(date_us, FAULT_DAY_US) * FAULT_DAY_US) / FAULT_HOUR_US]++;
	for (size_t i = 0; i < FAULT_TALLY_FACTS; i++) {
		char room[FAULT_VALUE_MAX_BYTES + 1];
		struct slice text = tally_cut(texts[tally_facts[i].text], room);
		if (text.len || tally_facts[i].counts_none)
			tally_add_value(&tally->values[i], tally_facts[i].max, text, 1, date_us,
					date_us);
	}
}

void fault_tally_merge(struct fault_tally *tally, const struct fault_tally *other, unsigned facts)
{
	if (!other->count)
		return;
	tally_note_ends(tally, other->first.date_us, other->first.id, other->title,
			other->last.date_us, other->last.id);
	tally->count += other->count;
	for (size_t h = 0; h < FAULT_HOURS; h++)
		tally->hours[h] += other->hours[h];
	for (size_t i = 0; i < FAULT_TALLY_FACTS; i++) {
		const struct fault_values *from = &other->values[i];
		if (!(facts >> i & 1))
			continue;
		tally->values[i].rest += from->rest;
		for (size_t v = 0; v < from->count; v++)
			tally_add_value(&tally->values[i], tally_facts[i].max, from->list[v].text,
					from->list[v].count, from->list[v].first_us,
					from->list[v].last_us);
	}
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static void tally_put_times(struct buf *out, int64_t day_us, int64_t first_us, int64_t last_us)
{
	fault_put_varint(out, (uint64_t)(first_us - day_us));
	fault_put_varint(out, (uint64_t)(last_us - first_us));
}

static void tally_put_values(const struct fault_values *values, int64_t day_us, struct buf *out)
{
	fault_put_varint(out, values->count);
	for (size_t i = 0; i < values->count; i++) {
		const struct fault_value *value = &values->list[i];
		fault_put_text(out, value->text);
		fault_put_varint(out, value->count);
		tally_put_times(out, day_us, value->first_us, value->last_us);
	}
	fault_put_varint(out, values->rest);
}

void fault_tally_put(const struct fault_tally *tally, int64_t day_us, struct buf *out)
{
	uint64_t hours = 0;
	if (!tally->count)
		return;
	buf_append_char(out, TALLY_VERSION);
	fault_put_varint(out, tally->count);
	tally_put_times(out, day_us, tally->first.date_us, tally->last.date_us);
	fault_put_text(out, tally->first.id);
	fault_put_text(out, tally->count == 1 ? SLICE("") : tally->last.id);
	fault_put_text(out, tally->title);
	for (size_t h = 0; h < FAULT_HOURS; h++)
		hours |= (uint64_t)(tally->hours[h] > 0) << h;
	fault_put_varint(out, hours);
	for (size_t h = 0; h < FAULT_HOURS; h++)
		if (tally->hours[h])
			fault_put_varint(out, tally->hours[h]);
	fault_put_varint(out, FAULT_TALLY_FACTS);
	for (size_t i = 0; i < FAULT_TALLY_FACTS; i++)
		tally_put_values(&tally->values[i], day_us, out);
}

/* When the first and the last report came: since midnight, and since the first. */
static void tally_take_times(struct cursor *c, int64_t day_us, int64_t *first_us, int64_t *last_us)
{
	uint64_t first = cursor_varint(c), behind = cursor_varint(c);
	if (first > FAULT_DAY_US || behind > FAULT_DAY_US)
		c->bad = true;
	*first_us = day_us + (c->bad ? 0 : (int64_t)first);
	*last_us = *first_us + (c->bad ? 0 : (int64_t)behind);
}

static void tally_take_values(struct fault_values *values, size_t max, int64_t day_us,
			      struct cursor *c)
{
	uint64_t count = cursor_varint(c);
	if (count > FAULT_VALUES_MAX)
		c->bad = true;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		int64_t first_us, last_us;
		struct slice text = fault_take_text(c, FAULT_VALUE_MAX_BYTES);
		uint64_t reports = cursor_varint(c);
		tally_take_times(c, day_us, &first_us, &last_us);
		if (!c->bad)
			tally_add_value(values, max, text, reports, first_us, last_us);
	}
	values->rest += cursor_varint(c);
}

/* Facts that a later program has added are passed over. */
static void tally_take_facts(struct fault_tally *tally, int64_t day_us, struct cursor *c)
{
	uint64_t facts = cursor_varint(c);
	for (uint64_t i = 0; i < facts && i < FAULT_TALLY_FACTS && !c->bad; i++)
		tally_take_values(&tally->values[i], tally_facts[i].max, day_us, c);
}

int fault_tally_take(struct fault_tally *tally, int64_t day_us, struct slice value)
{
	struct cursor c = cursor_of(value.data, value.len);
	*tally = (struct fault_tally){0};
	if (!value.len)
		return 0;
	uint8_t version = cursor_u8(&c);
	if (!c.bad && version != TALLY_VERSION)
		return ERR_VERSION;
	uint64_t count = cursor_varint(&c);
	int64_t first_us, last_us;
	tally_take_times(&c, day_us, &first_us, &last_us);
	struct slice first = fault_take_text(&c, FAULT_ID_MAX_BYTES);
	struct slice last = fault_take_text(&c, FAULT_ID_MAX_BYTES);
	struct slice title = fault_take_text(&c, FAULT_LABEL_MAX_BYTES);
	uint64_t hours = cursor_varint(&c);
	for (size_t h = 0; h < FAULT_HOURS; h++)
		tally->hours[h] = hours >> h & 1 ? cursor_varint(&c) : 0;
	if (c.bad || !count)
		return ERR_DAMAGED;
	tally_note_ends(tally, first_us, first, title, last_us, last.len ? last : first);
	tally->count = count;
	tally_take_facts(tally, day_us, &c);
	return c.bad ? ERR_DAMAGED : 0;
}
