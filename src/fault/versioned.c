#include "fault/versioned.h"

#include "base/cursor.h"
#include "base/grow.h"
#include "fault/pack.h"
#include "base/put.h"

enum {
	VERSIONED_PLAIN = 1,
	VERSIONED_PACKED = 2,
	/* A longer cell needs a second place in the embedded store. It is compressed, since the
	 * value before is nearly the same. */
	VERSIONED_PLAIN_MAX_BYTES = 1800,
	VERSIONED_HEADS_MAX_BYTES = 64, /* of both */
};

static void versioned_put(struct buf *out, struct fault_version version, struct slice value)
{
	buf_append(out, &version.tenure, 8);
	buf_put_varint(out, version.checkpoint);
	buf_put_text(out, value);
}

static void versioned_put_both(const struct fault_versioned *cell, struct buf *out)
{
	versioned_put(out, cell->version, cell->value);
	if (cell->has_before)
		versioned_put(out, cell->before_version, cell->before);
}

void fault_versioned_encode(const struct fault_versioned *cell, struct buf *out)
{
	struct buf plain, packed;
	size_t bytes = cell->value.len + (cell->has_before ? cell->before.len : 0);
	if (bytes <= VERSIONED_PLAIN_MAX_BYTES) {
		buf_append_char(out, VERSIONED_PLAIN);
		versioned_put_both(cell, out);
		return;
	}
	buf_init(&plain, bytes + VERSIONED_HEADS_MAX_BYTES);
	buf_init(&packed, 2 * bytes + (1 << 10));
	versioned_put_both(cell, &plain);
	buf_append_char(out, VERSIONED_PACKED);
	buf_put_varint(out, fault_pack(buf_slice(&plain), &packed));
	buf_put_varint(out, plain.len);
	buf_append(out, packed.data, packed.len);
	ASSERT(!plain.failed && !packed.failed);
	buf_release(&plain);
	buf_release(&packed);
}

static void versioned_take(struct cursor *c, struct fault_version *version, struct slice *value)
{
	version->tenure = cursor_u64(c);
	version->checkpoint = cursor_varint(c);
	*value = cursor_text(c, SIZE_MAX);
}

static int versioned_unpack(struct cursor *c, struct buf *unpacked)
{
	uint64_t dictionary = cursor_varint(c), bytes = cursor_varint(c);
	buf_clear(unpacked);
	if (c->bad)
		return ERR_DAMAGED;
	int err = fault_unpack(dictionary, (struct slice){(const char *)c->at, cursor_left(c)},
			       bytes, unpacked);
	*c = cursor_of(unpacked->data, unpacked->len);
	return err == ERR_LIMIT ? ERR_DAMAGED : err;
}

int fault_versioned_decode(struct slice bytes, struct buf *unpacked, struct fault_versioned *cell)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint8_t version = cursor_u8(&c);
	*cell = (struct fault_versioned){.before = SLICE("")};
	if (!c.bad && version != VERSIONED_PLAIN && version != VERSIONED_PACKED)
		return ERR_VERSION;
	int err = version == VERSIONED_PACKED ? versioned_unpack(&c, unpacked) : 0;
	if (err)
		return err;
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
