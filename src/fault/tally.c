#include "fault/tally.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "base/put.h"
#include "fault/release.h"
#include "fault/tags.h"

enum { TALLY_VERSION = 2, HASH_TEXT_BYTES = 17 /* `~` and 16 digits */ };

/* What is known of a fact. */
static const struct tally_fact {
	enum fault_text text;
	size_t max_bytes; /* of a value */
	size_t max;       /* values that are kept */
} tally_facts[FAULT_TALLY_FACTS] = {
	[FAULT_TALLY_RELEASE] = {FAULT_RELEASE, FAULT_LABEL_MAX_BYTES, 200},
	[FAULT_TALLY_ENVIRONMENT] = {FAULT_ENVIRONMENT, 80, 100},
	[FAULT_TALLY_HOST] = {FAULT_HOST, 80, FAULT_VALUES_MAX},
	[FAULT_TALLY_USER] = {FAULT_USER, 80, FAULT_VALUES_MAX},
	[FAULT_TALLY_LEVEL] = {FAULT_LEVEL, 80, 100},
	[FAULT_TALLY_CONTEXT] = {FAULT_CONTEXT, 80, 200},
	[FAULT_TALLY_EXCEPTION] = {FAULT_EXCEPTION, 80, 100},
	[FAULT_TALLY_TAG] = {FAULT_TAGS, FAULT_TAG_MAX_BYTES, 100},
};
/* What people say of a release is not cut, nor is a tag, which would be none then. */
_Static_assert((int)FAULT_VALUE_MAX_BYTES >= (int)FAULT_LABEL_MAX_BYTES, "a release is kept whole");

enum fault_text fault_tally_fact_text(enum fault_tally_fact fact)
{
	return tally_facts[fact].text;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* The value of a text; a text that is cut is made in `room`. */
static struct fault_value tally_value(enum fault_tally_fact fact, struct slice text,
				      char room[FAULT_VALUE_MAX_BYTES + 1])
{
	uint64_t hash = hash64(text.data, text.len, 0);
	if (text.len <= tally_facts[fact].max_bytes)
		return (struct fault_value){.hash = hash, .text = text};
	size_t cut = utf8_cut(text, tally_facts[fact].max_bytes - HASH_TEXT_BYTES);
	memcpy(room, text.data, cut);
	int len = snprintf(room + cut, HASH_TEXT_BYTES + 1, "~%016llx", (unsigned long long)hash);
	text = (struct slice){room, cut + (size_t)len};
	return (struct fault_value){.hash = hash64(text.data, text.len, 0), .text = text};
}

static struct slice tally_tag_name(struct slice tag)
{
	struct slice name, value;
	return fault_tag_split(tag, &name, &value) ? name : SLICE("");
}

/* Below 0 where `a` comes before `b`. */
static int tally_compare(enum fault_tally_fact fact, const struct fault_value *a,
			 const struct fault_value *b)
{
	int order = 0;
	if (fact == FAULT_TALLY_RELEASE)
		return fault_release_order(b->text, a->text);
	if (fact == FAULT_TALLY_TAG)
		order = slice_compare(tally_tag_name(a->text), tally_tag_name(b->text));
	return order ? order : (a->hash > b->hash) - (a->hash < b->hash);
}

/* The place of a value, or where it would be. */
static size_t tally_place(const struct fault_values *values, enum fault_tally_fact fact,
			  const struct fault_value *value, bool *there)
{
	size_t low = 0, high = values->count;
	/* Cells have them in their order. */
	if (high && tally_compare(fact, &values->list[high - 1], value) < 0)
		low = high;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (tally_compare(fact, &values->list[middle], value) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*there = low < values->count && !tally_compare(fact, &values->list[low], value);
	return low;
}

/* Adds the reports of one to those of another. */
static void tally_note(struct fault_value *value, const struct fault_value *more)
{
	if (!more->count)
		return;
	value->first_us =
		value->count ? smaller_of(value->first_us, more->first_us) : more->first_us;
	value->last_us = value->count ? larger_of(value->last_us, more->last_us) : more->last_us;
	value->count += more->count;
}

/* From room for one value on: groups are many, and most of their facts have one value. */
static void tally_make_room(struct fault_values *values)
{
	if (values->count < values->room)
		return;
	values->room = values->room ? values->room * 2 : 1;
	values->list = mem_resize_array(values->list, values->room, sizeof(*values->list));
}

/* Cells have many values: their texts stay together, and are not freed one by one. */
static bool tally_took(const struct fault_tally *tally, struct slice text)
{
	uintptr_t from = (uintptr_t)tally->taken.data, at = (uintptr_t)text.data;
	return at >= from && at - from < tally->taken.len;
}

static void tally_free_text(const struct fault_tally *tally, struct slice text)
{
	if (!tally_took(tally, text))
		mem_free_slice(text);
}

/* Where the values of the tag end whose first value is here. */
static size_t tally_name_end(const struct fault_values *values, size_t first)
{
	struct slice name = tally_tag_name(values->list[first].text);
	size_t end = first + 1;
	while (end < values->count && slice_equal(tally_tag_name(values->list[end].text), name))
		end++;
	return end;
}

/* The value that goes first where there are too many. Of tags it is one of the name that has most
 * values, so that a name with a value for each report leaves room for the others. */
static size_t tally_last(const struct fault_values *values, enum fault_tally_fact fact)
{
	size_t last = values->count - 1, most = 0;
	if (fact != FAULT_TALLY_TAG)
		return last;
	for (size_t first = 0, end; first < values->count; first = end) {
		end = tally_name_end(values, first);
		if (end - first > most ||
		    (end - first == most && values->list[end - 1].hash > values->list[last].hash))
			last = end - 1;
		most = larger_of(most, end - first);
	}
	return last;
}

/* Its reports go to the rest. */
static void tally_drop(struct fault_tally *tally, struct fault_values *values, size_t at)
{
	struct fault_value *dropped = &values->list[at];
	tally_note(&values->rest, dropped);
	tally_free_text(tally, dropped->text);
	memmove(dropped, dropped + 1, (--values->count - at) * sizeof(*dropped));
}

/* Adds some reports of a value. If it is not among those that are kept they go to the rest. */
static void tally_add_value(struct fault_tally *tally, enum fault_tally_fact fact,
			    const struct fault_value *more)
{
	struct fault_values *values = &tally->values[fact];
	size_t max = tally_facts[fact].max;
	bool there;
	size_t at = tally_place(values, fact, more, &there);
	if (there || (at == max && fact != FAULT_TALLY_TAG)) {
		tally_note(there ? &values->list[at] : &values->rest, more);
		return;
	}
	tally_make_room(values);
	struct fault_value *added = &values->list[at];
	memmove(added + 1, added, (values->count - at) * sizeof(*added));
	values->count++;
	*added = *more;
	if (!tally_took(tally, more->text))
		added->text = mem_copy_slice(more->text);
	if (values->count > max)
		tally_drop(tally, values, tally_last(values, fact));
}

static void tally_release_values(const struct fault_tally *tally, struct fault_values *values)
{
	for (size_t i = 0; i < values->count; i++)
		tally_free_text(tally, values->list[i].text);
	mem_free(values->list);
}

/* By the least hashes: of n values that are spread evenly the k-th has the hash k/n of all. Senders
 * may have chosen values whose hashes are not. */
static double tally_estimate(const struct fault_value *list, size_t count)
{
	double part = (double)list[count - 1].hash / 0x1p64;
	return count > 1 && part > 0 ? (double)(count - 1) / part : (double)count;
}

/* What is dropped is of a name with the most values. So a name that has two fewer than the largest
 * has lost none, and its values need no estimate. */
static double tally_estimate_tags(const struct fault_values *values)
{
	double distinct = 0;
	size_t most = 0;
	for (size_t first = 0, end; first < values->count; first = end) {
		end = tally_name_end(values, first);
		most = larger_of(most, end - first);
	}
	for (size_t first = 0, end; first < values->count; first = end) {
		end = tally_name_end(values, first);
		distinct += end - first + 2 <= most
				    ? (double)(end - first)
				    : tally_estimate(&values->list[first], end - first);
	}
	return distinct;
}

uint64_t fault_tally_distinct(const struct fault_tally *tally, enum fault_tally_fact fact,
			      bool *about)
{
	const struct fault_values *values = &tally->values[fact];
	*about = values->rest.count > 0;
	if (!*about || fact == FAULT_TALLY_RELEASE || values->count < 2)
		return values->count;
	double most = (double)(values->count + values->rest.count);
	double distinct = fact == FAULT_TALLY_TAG ? tally_estimate_tags(values)
						  : tally_estimate(values->list, values->count);
	return (uint64_t)(distinct < most ? distinct : most);
}

const struct fault_value *fault_tally_find(const struct fault_tally *tally,
					   enum fault_tally_fact fact, struct slice text)
{
	char room[FAULT_VALUE_MAX_BYTES + 1];
	const struct fault_values *values = &tally->values[fact];
	struct fault_value value = tally_value(fact, text, room);
	bool there;
	if (!text.len)
		return values->none.count ? &values->none : NULL;
	size_t at = tally_place(values, fact, &value, &there);
	return there ? &values->list[at] : NULL;
}

static int tally_compare_counts(const void *one, const void *other)
{
	const struct fault_value *a = *(const struct fault_value *const *)one;
	const struct fault_value *b = *(const struct fault_value *const *)other;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return slice_compare(a->text, b->text);
}

size_t fault_tally_largest(const struct fault_tally *tally, enum fault_tally_fact fact,
			   const struct fault_value **to)
{
	const struct fault_values *values = &tally->values[fact];
	for (size_t i = 0; i < values->count; i++)
		to[i] = &values->list[i];
	if (values->count)
		qsort(to, values->count, sizeof(*to), tally_compare_counts);
	return values->count;
}

const struct fault_value *fault_tally_latest_release(const struct fault_tally *tally)
{
	const struct fault_values *releases = &tally->values[FAULT_TALLY_RELEASE];
	const struct fault_value *latest = NULL;
	for (size_t i = 0; i < releases->count; i++) {
		const struct fault_value *release = &releases->list[i];
		if (fault_release_is_version(release->text)) /* the highest */
			return release;
		if (!latest || release->first_us > latest->first_us)
			latest = release;
	}
	return latest;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

void fault_tally_release(struct fault_tally *tally)
{
	mem_free_slice(tally->first.id);
	mem_free_slice(tally->last.id);
	mem_free_slice(tally->title);
	for (size_t i = 0; i < FAULT_TALLY_FACTS; i++)
		tally_release_values(tally, &tally->values[i]);
	mem_free_slice(tally->taken);
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

/* A report with this value; empty: without the fact. */
static void tally_add_text(struct fault_tally *tally, enum fault_tally_fact fact, struct slice text,
			   int64_t date_us)
{
	char room[FAULT_VALUE_MAX_BYTES + 1];
	struct fault_value value = tally_value(fact, text, room);
	value.count = 1;
	value.first_us = value.last_us = date_us;
	if (value.text.len)
		tally_add_value(tally, fact, &value);
	else
		tally_note(&tally->values[fact].none, &value);
}

static void tally_add_tags(struct fault_tally *tally, struct slice tags, int64_t date_us)
{
	struct slice tag;
	if (!fault_tags_next(&tags, &tag)) {
		tally_add_text(tally, FAULT_TALLY_TAG, SLICE(""), date_us);
		return;
	}
	do
		tally_add_text(tally, FAULT_TALLY_TAG, tag, date_us);
	while (fault_tags_next(&tags, &tag));
}

void fault_tally_add(struct fault_tally *tally, const struct fault_arrival *arrival)
{
	int64_t date_us = arrival->date_us;
	const struct slice *texts = arrival->facts.texts;
	tally_note_ends(tally, date_us, arrival->id, texts[FAULT_TITLE], date_us, arrival->id);
	tally->count++;
	tally->hours[(date_us - floor_div(date_us, FAULT_DAY_US) * FAULT_DAY_US) / FAULT_HOUR_US]++;
	for (enum fault_tally_fact i = 0; i < FAULT_TALLY_TAG; i++)
		tally_add_text(tally, i, texts[tally_facts[i].text], date_us);
	tally_add_tags(tally, texts[FAULT_TAGS], date_us);
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
	for (enum fault_tally_fact i = 0; i < FAULT_TALLY_FACTS; i++) {
		const struct fault_values *from = &other->values[i];
		if (!(facts >> i & 1))
			continue;
		tally_note(&tally->values[i].none, &from->none);
		tally_note(&tally->values[i].rest, &from->rest);
		for (size_t v = 0; v < from->count; v++)
			tally_add_value(tally, i, &from->list[v]);
	}
}

static bool tally_erase_user(struct fault_tally *tally, struct slice user)
{
	char room[FAULT_VALUE_MAX_BYTES + 1];
	struct fault_values *values = &tally->values[FAULT_TALLY_USER];
	struct fault_value value = tally_value(FAULT_TALLY_USER, user, room);
	bool there;
	size_t at = tally_place(values, FAULT_TALLY_USER, &value, &there);
	if (!there)
		return false;
	struct fault_value *erased = &values->list[at];
	tally_note(&values->none, erased);
	tally_free_text(tally, erased->text);
	memmove(erased, erased + 1, (--values->count - at) * sizeof(*erased));
	return true;
}

/* Under any name: senders call a user's tag as they like. */
static bool tally_erase_tags(struct fault_tally *tally, struct slice user)
{
	struct fault_values *values = &tally->values[FAULT_TALLY_TAG];
	size_t kept = 0;
	for (size_t i = 0; i < values->count; i++) {
		struct slice name, value;
		if (!fault_tag_split(values->list[i].text, &name, &value) ||
		    !slice_equal(value, user)) {
			values->list[kept++] = values->list[i];
			continue;
		}
		tally_note(&values->rest, &values->list[i]);
		tally_free_text(tally, values->list[i].text);
	}
	bool any = kept < values->count;
	values->count = kept;
	return any;
}

bool fault_tally_erase(struct fault_tally *tally, struct slice user, const struct hash_table *ids)
{
	bool first = hash_table_find(ids, fault_id_hash(tally->first.id));
	bool last = hash_table_find(ids, fault_id_hash(tally->last.id));
	if (first) {
		tally_set_end(&tally->first, tally->first.date_us, SLICE(""));
		mem_free_slice(tally->title);
		tally->title = mem_copy_slice(SLICE(""));
	}
	if (last)
		tally_set_end(&tally->last, tally->last.date_us, SLICE(""));
	bool tags = tally_erase_tags(tally, user);
	return tally_erase_user(tally, user) || tags || first || last;
}

/* ---- Cells ----------------------------------------------------------------------------------- */

static void tally_put_times(struct buf *out, int64_t day_us, int64_t first_us, int64_t last_us)
{
	buf_put_varint(out, (uint64_t)(first_us - day_us));
	buf_put_varint(out, (uint64_t)(last_us - first_us));
}

/* Reports, and when the first and the last of them came, if there are any. */
static void tally_put_reports(const struct fault_value *value, int64_t day_us, struct buf *out)
{
	buf_put_varint(out, value->count);
	if (value->count)
		tally_put_times(out, day_us, value->first_us, value->last_us);
}

static void tally_put_values(const struct fault_values *values, int64_t day_us, struct buf *out)
{
	tally_put_reports(&values->none, day_us, out);
	tally_put_reports(&values->rest, day_us, out);
	buf_put_varint(out, values->count);
	for (size_t i = 0; i < values->count; i++) {
		buf_put_text(out, values->list[i].text);
		tally_put_reports(&values->list[i], day_us, out);
	}
}

void fault_tally_put(const struct fault_tally *tally, int64_t day_us, struct buf *out)
{
	uint64_t hours = 0;
	if (!tally->count)
		return;
	buf_append_char(out, TALLY_VERSION);
	buf_put_varint(out, tally->count);
	tally_put_times(out, day_us, tally->first.date_us, tally->last.date_us);
	buf_put_text(out, tally->first.id);
	buf_put_text(out, tally->count == 1 ? SLICE("") : tally->last.id);
	buf_put_text(out, tally->title);
	for (size_t h = 0; h < FAULT_HOURS; h++)
		hours |= (uint64_t)(tally->hours[h] > 0) << h;
	buf_put_varint(out, hours);
	for (size_t h = 0; h < FAULT_HOURS; h++)
		if (tally->hours[h])
			buf_put_varint(out, tally->hours[h]);
	buf_put_varint(out, FAULT_TALLY_FACTS);
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

static void tally_take_reports(struct fault_value *value, int64_t day_us, struct cursor *c)
{
	value->count = cursor_varint(c);
	if (value->count)
		tally_take_times(c, day_us, &value->first_us, &value->last_us);
}

static bool tally_is_text(enum fault_tally_fact fact, struct slice text)
{
	struct slice name, value;
	return fact != FAULT_TALLY_TAG || fault_tag_split(text, &name, &value);
}

/* wanted false: what is read goes nowhere. */
static void tally_take_values(struct fault_tally *tally, enum fault_tally_fact fact, bool wanted,
			      int64_t day_us, struct cursor *c)
{
	struct fault_value none = {0}, rest = {0};
	char room[FAULT_VALUE_MAX_BYTES + 1];
	tally_take_reports(&none, day_us, c);
	tally_take_reports(&rest, day_us, c);
	uint64_t count = cursor_varint(c);
	if (count > tally_facts[fact].max)
		c->bad = true;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		struct slice text = cursor_text(c, tally_facts[fact].max_bytes);
		struct fault_value value = {.text = text};
		if (wanted)
			value = tally_value(fact, text, room);
		tally_take_reports(&value, day_us, c);
		if (!value.text.len || !value.count || !tally_is_text(fact, text))
			c->bad = true;
		if (wanted && !c->bad)
			tally_add_value(tally, fact, &value);
	}
	if (!wanted || c->bad)
		return;
	tally_note(&tally->values[fact].none, &none);
	tally_note(&tally->values[fact].rest, &rest);
}

/* Facts that a later program has added are passed over. */
static void tally_take_facts(struct fault_tally *tally, int64_t day_us, unsigned facts,
			     struct cursor *c)
{
	uint64_t count = cursor_varint(c);
	for (enum fault_tally_fact i = 0; i < count && i < FAULT_TALLY_FACTS && !c->bad; i++)
		if (!facts || facts >> i)
			tally_take_values(tally, i, facts >> i & 1, day_us, c);
}

int fault_tally_take(struct fault_tally *tally, int64_t day_us, unsigned facts, struct slice value)
{
	*tally = (struct fault_tally){0};
	if (!value.len)
		return 0;
	if (value.data[0] != TALLY_VERSION)
		return ERR_VERSION;
	tally->taken = mem_copy_slice(value);
	struct cursor c = cursor_of(tally->taken.data + 1, value.len - 1);
	uint64_t count = cursor_varint(&c);
	int64_t first_us, last_us;
	tally_take_times(&c, day_us, &first_us, &last_us);
	struct slice first = cursor_text(&c, FAULT_ID_MAX_BYTES);
	struct slice last = cursor_text(&c, FAULT_ID_MAX_BYTES);
	struct slice title = cursor_text(&c, FAULT_LABEL_MAX_BYTES);
	uint64_t hours = cursor_varint(&c);
	for (size_t h = 0; h < FAULT_HOURS; h++)
		tally->hours[h] = hours >> h & 1 ? cursor_varint(&c) : 0;
	if (c.bad || !count)
		return ERR_DAMAGED;
	tally_note_ends(tally, first_us, first, title, last_us, last.len ? last : first);
	tally->count = count;
	tally_take_facts(tally, day_us, facts, &c);
	return c.bad ? ERR_DAMAGED : 0;
}
