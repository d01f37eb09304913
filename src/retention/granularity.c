#include "retention/granularity.h"

#include "conf/conf.h"
#include "wire/number.h"
#include "wire/timetext.h"

#define SECOND_MS INT64_C(1000)

static const struct unit {
	struct slice name;
	int64_t ms;
} units[] = {
	{SLICE("w"), 7 * 86400 * SECOND_MS},
	{SLICE("d"), 86400 * SECOND_MS},
	{SLICE("h"), 3600 * SECOND_MS},
	{SLICE("m"), 60 * SECOND_MS},
	{SLICE("s"), SECOND_MS},
	{SLICE("ms"), 1},
};

/* The quantity that `rest` begins with, in ms, cut off from it. */
static int granularity_take_quantity(struct slice *rest, int64_t *ms, struct errbuf *e)
{
	int64_t quantity = 0;
	size_t digits = 0, letters;
	while (digits < rest->len && number_is_digit(rest->data[digits])) {
		if (__builtin_mul_overflow(quantity, 10, &quantity) ||
		    __builtin_add_overflow(quantity, rest->data[digits] - '0', &quantity))
			return errbuf_set(e, ERR_INVALID, "it is too long");
		digits++;
	}
	for (letters = digits; letters < rest->len && !number_is_digit(rest->data[letters]);)
		letters++;
	struct slice name = {rest->data + digits, letters - digits};
	for (size_t i = 0; digits && i < ARRAY_LEN(units); i++) {
		if (!slice_equal(name, units[i].name))
			continue;
		*rest = (struct slice){rest->data + letters, rest->len - letters};
		if (__builtin_mul_overflow(quantity, units[i].ms, ms))
			return errbuf_set(e, ERR_INVALID, "it is too long");
		return 0;
	}
	if (digits && (slice_equal(name, SLICE("y")) || slice_equal(name, SLICE("mo"))))
		return errbuf_set(e, ERR_INVALID, "months and years have no one length");
	return errbuf_set(e, ERR_INVALID, "it is no number and unit (w, d, h, m, s)");
}

static int granularity_parse_quantities(struct slice text, int64_t *width_ms, struct errbuf *e)
{
	int64_t sum = 0, part = 0;
	while (text.len) {
		int err = granularity_take_quantity(&text, &part, e);
		if (err)
			return err;
		if (__builtin_add_overflow(sum, part, &sum))
			return errbuf_set(e, ERR_INVALID, "it is too long");
	}
	*width_ms = sum;
	return 0;
}

int granularity_width_parse(struct slice text, int64_t *width_ms, struct errbuf *e)
{
	struct errbuf why = {""};
	bool iso = text.len && text.data[0] == 'P';
	int err = iso ? duration_parse(text, width_ms, e)
		      : granularity_parse_quantities(text, width_ms, &why);
	if (err && iso)
		return err;
	if (!err && (*width_ms <= 0 || *width_ms % SECOND_MS))
		err = errbuf_set(&why, ERR_INVALID, "a width is whole seconds, one at least");
	return err ? errbuf_set(e, err, "\"" SHOWN "\": %s", SHOWN_OF(text), why.text) : 0;
}

size_t granularity_width_print(char to[GRANULARITY_WIDTH_MAX_BYTES], int64_t width_ms)
{
	char *p = to;
	/* Days are the largest: what people say. */
	for (size_t i = 1; i < ARRAY_LEN(units); i++) {
		int64_t quantity = width_ms / units[i].ms;
		width_ms %= units[i].ms;
		if (!quantity)
			continue;
		p += number_print_u64(p, (uint64_t)quantity);
		memcpy(p, units[i].name.data, units[i].name.len);
		p += units[i].name.len;
	}
	return (size_t)(p - to);
}

static int granularity_parse_item(struct slice item, struct granularity *granularity,
				  struct errbuf *e)
{
	const char *colon = item.len ? memchr(item.data, ':', item.len) : NULL;
	struct slice width = {item.data, colon ? (size_t)(colon - item.data) : item.len};
	int err = granularity_width_parse(width, &granularity->width_ms, e);
	granularity->retention_ms = 0;
	if (err || !colon)
		return err;
	struct slice retention = {colon + 1, item.len - width.len - 1};
	if (slice_equal(retention, SLICE("0")))
		return 0;
	err = duration_parse(retention, &granularity->retention_ms, e);
	if (!err && granularity->retention_ms > GRANULARITY_KEPT_MAX_MS)
		err = errbuf_set(e, ERR_INVALID,
				 "\"" SHOWN "\" is above the maximum of 36500d; for ever is 0",
				 SHOWN_OF(retention));
	return err;
}

static int granularity_check(const struct granularity *granularity, const struct granularity *finer,
			     int64_t slot_ms, struct errbuf *e)
{
	char width[GRANULARITY_WIDTH_MAX_BYTES], slot[GRANULARITY_WIDTH_MAX_BYTES];
	char other[GRANULARITY_WIDTH_MAX_BYTES];
	int width_len = (int)granularity_width_print(width, granularity->width_ms);
	int slot_len = (int)granularity_width_print(slot, slot_ms);
	if (slot_ms / granularity->width_ms > GRANULARITY_BUCKETS_MAX)
		return errbuf_set(e, ERR_INVALID, "a slot of %.*s has more than %d buckets of %.*s",
				  slot_len, slot, GRANULARITY_BUCKETS_MAX, width_len, width);
	if (slot_ms % granularity->width_ms)
		return errbuf_set(e, ERR_INVALID,
				  "a slot of %.*s is no multiple of the granularity %.*s", slot_len,
				  slot, width_len, width);
	if (granularity->retention_ms && granularity->retention_ms < slot_ms)
		return errbuf_set(e, ERR_INVALID,
				  "the granularity %.*s is kept for less than a slot of %.*s",
				  width_len, width, slot_len, slot);
	if (!finer)
		return 0;
	int other_len = (int)granularity_width_print(other, finer->width_ms);
	if (granularity->width_ms <= finer->width_ms)
		return errbuf_set(
			e, ERR_INVALID,
			"the granularity %.*s stands behind %.*s: the finer ones go first",
			width_len, width, other_len, other);
	if (granularity->width_ms % finer->width_ms)
		return errbuf_set(e, ERR_INVALID,
				  "the granularity %.*s is no multiple of the one before it, %.*s",
				  width_len, width, other_len, other);
	return 0;
}

static int granularity_check_slot(int64_t slot_ms, struct errbuf *e)
{
	if (slot_ms < SECOND_MS || slot_ms % SECOND_MS)
		return errbuf_set(e, ERR_INVALID, "a slot is whole seconds wide, one at least");
	return 0;
}

int granularities_parse(const char *const *items, size_t count, int64_t slot_ms,
			struct granularities *granularities, struct errbuf *e)
{
	*granularities = (struct granularities){.slot_ms = slot_ms};
	if (count > GRANULARITIES_MAX)
		return errbuf_set(e, ERR_INVALID, "%zu granularities are more than %d", count,
				  GRANULARITIES_MAX);
	int err = granularity_check_slot(slot_ms, e);
	while (granularities->count < count && !err) {
		struct granularity *granularity = &granularities->list[granularities->count];
		err = granularity_parse_item(slice_of(items[granularities->count]), granularity, e);
		if (!err)
			err = granularity_check(granularity,
						granularities->count ? granularity - 1 : NULL,
						slot_ms, e);
		granularities->count += !err;
	}
	return err;
}

/* Granularities that nobody has set fit together: if they do not, it is the slot. */
int granularities_read(const struct conf *conf, struct granularities *granularities,
		       struct errbuf *e)
{
	const struct conf_list *items = &conf->rollup_granularities;
	int64_t slot_ms = conf->rollup_slot_ms;
	if (granularity_check_slot(slot_ms, e))
		return conf_refuse(conf, CONF_ID_rollup_slot_ms, e);
	if (!granularities_parse(items->items, items->count, slot_ms, granularities, e))
		return 0;
	return conf->origins[CONF_ID_rollup_granularities].file
		       ? conf_refuse_item(conf, CONF_ID_rollup_granularities, granularities->count,
					  e)
		       : conf_refuse(conf, CONF_ID_rollup_slot_ms, e);
}

const struct granularity *granularity_find(const struct granularities *granularities,
					   int64_t width_ms)
{
	for (size_t i = 0; i < granularities->count; i++) {
		if (granularities->list[i].width_ms == width_ms)
			return &granularities->list[i];
	}
	return NULL;
}
