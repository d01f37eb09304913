#include "fault/versioned.h"

#include "base/cursor.h"
#include "base/grow.h"
#include "fault/put.h"

enum { VERSIONED_VERSION = 1 };

static void versioned_put(struct buf *out, struct fault_version version, struct slice value)
{
	buf_append(out, &version.tenure, 8);
	fault_put_varint(out, version.checkpoint);
	fault_put_text(out, value);
}

void fault_versioned_encode(const struct fault_versioned *cell, struct buf *out)
{
	buf_append_char(out, VERSIONED_VERSION);
	versioned_put(out, cell->version, cell->value);
	if (cell->has_before)
		versioned_put(out, cell->before_version, cell->before);
}

static void versioned_take(struct cursor *c, struct fault_version *version, struct slice *value)
{
	version->tenure = cursor_u64(c);
	version->checkpoint = cursor_varint(c);
	*value = fault_take_text(c, SIZE_MAX);
}

int fault_versioned_decode(struct slice bytes, struct fault_versioned *cell)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint8_t version = cursor_u8(&c);
	*cell = (struct fault_versioned){.before = SLICE("")};
	if (!c.bad && version != VERSIONED_VERSION)
		return ERR_VERSION;
	versioned_take(&c, &cell->version, &cell->value);
	cell->has_before = !c.bad && cursor_left(&c) > 0;
	if (cell->has_before)
		versioned_take(&c, &cell->before_version, &cell->before);
	return c.bad || cursor_left(&c) ? ERR_DAMAGED : 0;
}

/* ---- Tenures --------------------------------------------------------------------------------- */

void fault_tenures_release(struct fault_tenures *tenures)
{
	mem_free(tenures->list);
	*tenures = (struct fault_tenures){NULL, 0, 0};
}

/* The place of a tenure, or where it would be. */
static size_t tenures_place(const struct fault_tenures *tenures, uint64_t tenure)
{
	size_t low = 0, high = tenures->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (tenures->list[middle].tenure < tenure)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void fault_tenures_put(struct fault_tenures *tenures, struct fault_version last)
{
	size_t at = tenures_place(tenures, last.tenure);
	if (at == tenures->count || tenures->list[at].tenure != last.tenure) {
		GROW(tenures->list, tenures->room, tenures->count + 1);
		memmove(tenures->list + at + 1, tenures->list + at,
			(tenures->count - at) * sizeof(*tenures->list));
		tenures->count++;
	}
	tenures->list[at] = last;
}

bool fault_tenures_have(const struct fault_tenures *tenures, struct fault_version version)
{
	size_t at = tenures_place(tenures, version.tenure);
	return at < tenures->count && tenures->list[at].tenure == version.tenure &&
	       version.checkpoint <= tenures->list[at].checkpoint;
}

int fault_versioned_choose(const struct fault_versioned *cell, const struct fault_tenures *tenures,
			   struct slice *value, struct fault_version *version)
{
	uint64_t newest = tenures->count ? tenures->list[tenures->count - 1].tenure : 0;
	*value = SLICE("");
	*version = (struct fault_version){0, 0};
	/* Its tenure may have begun with an earlier checkpoint than the newest that is known, so
	 * what was before it says nothing. */
	if (cell->version.tenure > newest)
		return ERR_RETRY;
	if (fault_tenures_have(tenures, cell->version)) {
		*value = cell->value;
		*version = cell->version;
	} else if (cell->has_before && fault_tenures_have(tenures, cell->before_version)) {
		*value = cell->before;
		*version = cell->before_version;
	} else if (cell->has_before) {
		return ERR_RETRY; /* two checkpoints have passed since the tenures were read */
	}
	return 0;
}
