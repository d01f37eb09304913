#include "stream/bins.h"

#include <math.h>

#include "base/grow.h"

void bins_init(struct bins *bins, size_t label_count, size_t number_count)
{
	*bins = (struct bins){.label_count = label_count, .number_count = number_count};
}

static size_t bins_bin_bytes(const struct bins *bins)
{
	return sizeof(struct bin) + bins->number_count * sizeof(struct bin_number);
}

static void bins_release_slot(struct bins *bins, struct bins_slot *slot)
{
	for (size_t i = 0; i < slot->room; i++) {
		if (slot->list[i])
			bins->used_bytes -= bins_bin_bytes(bins);
		mem_free(slot->list[i]);
	}
	bins->used_bytes -= slot->room * sizeof(*slot->list);
	mem_free(slot->list);
}

void bins_release(struct bins *bins)
{
	for (size_t i = 0; i < bins->slot_count; i++)
		bins_release_slot(bins, &bins->slots[i]);
	for (size_t i = 0; i < bins->series_count; i++)
		mem_free(bins->series[i].labels);
	mem_free(bins->slots);
	mem_free(bins->series);
	hash_table_release(&bins->by_labels);
	bins_init(bins, bins->label_count, bins->number_count);
}

/* ---- Series ---------------------------------------------------------------------------------- */

struct bins_series_slot {
	struct hash128 hash;
	size_t at;
};

struct hash128 bins_hash(const struct slice *labels, size_t count)
{
	struct hash128 hash = {count + 1, 0};
	for (size_t i = 0; i < count; i++)
		hash = hash128(labels[i].data, labels[i].len, hash.low ^ (hash.high << 1));
	return hash;
}

size_t bins_find(const struct bins *bins, struct hash128 hash)
{
	const struct bins_series_slot *slot = hash_table_find(&bins->by_labels, hash);
	return slot ? slot->at : SIZE_MAX;
}

static struct slice *bins_copy_labels(struct bins *bins, const struct slice *labels)
{
	size_t bytes = bins->label_count * sizeof(*labels);
	for (size_t i = 0; i < bins->label_count; i++)
		bytes += labels[i].len;
	struct slice *copies = mem_alloc(bytes);
	char *text = (char *)(copies + bins->label_count);
	for (size_t i = 0; i < bins->label_count; i++) {
		copies[i] = (struct slice){text, labels[i].len};
		if (labels[i].len)
			memcpy(text, labels[i].data, labels[i].len);
		text += labels[i].len;
	}
	bins->used_bytes += bytes;
	return copies;
}

size_t bins_add_series(struct bins *bins, struct hash128 hash, const struct slice *labels)
{
	bool added;
	struct bins_series_slot *slot =
		hash_table_add(&bins->by_labels, hash, sizeof(*slot), &added);
	ASSERT(added);
	slot->at = bins->series_count;
	GROW(bins->series, bins->series_room, bins->series_count + 1);
	bins->series[bins->series_count++] =
		(struct bin_series){hash, labels ? bins_copy_labels(bins, labels) : NULL};
	bins->used_bytes += sizeof(struct bin_series) + 2 * sizeof(*slot);
	return bins->series_count - 1;
}

/* ---- Adding ---------------------------------------------------------------------------------- */

/* The slots before the one that has a time, or would have it. Most events come in the order of
 * their times. */
static size_t bins_place(struct bins *bins, int64_t ms)
{
	if (bins->last < bins->slot_count && bins->slots[bins->last].ms == ms)
		return bins->last;
	size_t at = bins->slot_count;
	while (at && bins->slots[at - 1].ms >= ms)
		at--;
	return at;
}

static struct bins_slot *bins_slot_of(struct bins *bins, int64_t ms)
{
	size_t at = bins_place(bins, ms);
	bins->last = at;
	if (at < bins->slot_count && bins->slots[at].ms == ms)
		return &bins->slots[at];
	GROW(bins->slots, bins->slot_room, bins->slot_count + 1);
	memmove(&bins->slots[at + 1], &bins->slots[at],
		(bins->slot_count - at) * sizeof(*bins->slots));
	bins->slot_count++;
	bins->slots[at] = (struct bins_slot){.ms = ms};
	return &bins->slots[at];
}

static struct bin *bins_bin_of(struct bins *bins, struct bins_slot *slot, size_t series)
{
	if (series >= slot->room) {
		size_t before = slot->room;
		GROW(slot->list, slot->room, series + 1);
		memset(slot->list + before, 0, (slot->room - before) * sizeof(*slot->list));
		bins->used_bytes += (slot->room - before) * sizeof(*slot->list);
	}
	if (!slot->list[series]) {
		slot->list[series] = mem_zalloc(bins_bin_bytes(bins));
		bins->used_bytes += bins_bin_bytes(bins);
	}
	return slot->list[series];
}

/* Whole numbers are added exactly for as long as their sum is one of 64 bits. */
static struct value bins_sum(struct value a, struct value b)
{
	int64_t sum;
	if (a.type == VALUE_I64 && b.type == VALUE_I64 &&
	    !__builtin_add_overflow((int64_t)a.bits, (int64_t)b.bits, &sum))
		return value_i64(sum);
	return value_f64(value_as_f64(a) + value_as_f64(b));
}

static void bins_add_number(struct bin_number *number, struct value value)
{
	if (value.type == VALUE_NONE || !isfinite(value_as_f64(value)))
		return;
	if (number->sum.type == VALUE_NONE) {
		*number = (struct bin_number){value, value, value};
		return;
	}
	number->sum = bins_sum(number->sum, value);
	if (value_compare(value, number->least) < 0)
		number->least = value;
	if (value_compare(value, number->greatest) > 0)
		number->greatest = value;
}

void bins_add(struct bins *bins, int64_t ms, size_t series, const struct value *numbers)
{
	struct bin *bin = bins_bin_of(bins, bins_slot_of(bins, ms), series);
	bin->count++;
	bin->changed = true;
	for (size_t i = 0; i < bins->number_count; i++)
		bins_add_number(&bin->numbers[i], numbers[i]);
}

/* ---- Taking ---------------------------------------------------------------------------------- */

static int bins_each_of_slot(struct bins *bins, const struct bins_slot *slot,
			     int (*each)(int64_t ms, const struct bin_series *series,
					 const struct bin *bin, void *owner),
			     void *owner)
{
	for (size_t i = 0; i < slot->room; i++) {
		struct bin *bin = slot->list[i];
		if (!bin || !bin->changed)
			continue;
		int err = each(slot->ms, &bins->series[i], bin, owner);
		if (err)
			return err;
		bin->changed = false;
	}
	return 0;
}

int bins_each_changed(struct bins *bins,
		      int (*each)(int64_t ms, const struct bin_series *series,
				  const struct bin *bin, void *owner),
		      void *owner)
{
	int err = 0;
	for (size_t i = 0; i < bins->slot_count && !err; i++)
		err = bins_each_of_slot(bins, &bins->slots[i], each, owner);
	return err;
}

void bins_drop_before(struct bins *bins, int64_t ms)
{
	size_t count = 0;
	while (count < bins->slot_count && bins->slots[count].ms < ms)
		bins_release_slot(bins, &bins->slots[count++]);
	bins->slot_count -= count;
	memmove(bins->slots, bins->slots + count, bins->slot_count * sizeof(*bins->slots));
	bins->last = 0;
}

int64_t bins_first_ms(const struct bins *bins)
{
	return bins->slot_count ? bins->slots[0].ms : INT64_MAX;
}
