/* Reading a reply's varbinds into the client's cells and spans.
 *
 * Devices send a row's values side by side, so that a name is expected to be its column's root and
 * the index of the value before it; and most tables count their rows, so that the next row is
 * expected to have the next index. A name that is so, byte for byte, need not be looked at
 * otherwise. */
#include "snmp/private.h"

enum { FORESEEN_INDEX_MAX_BYTES = 16 };

struct reply_reading {
	const struct snmp_operation *op;
	const struct attempt *asked;
	struct ber *varbinds;
	struct slice index; /* of the last cell whose name was looked at; at first of its column */
	size_t count, at, count_max, span_count, unreadable;
};

static struct slice root_at(const struct reply_reading *r)
{
	return r->op->columns[r->op->picked[r->at]].root;
}

static struct snmp_cell *next_cell(struct reply_reading *r)
{
	struct snmp_cell *cell = &r->op->device->client->cells[r->count++];
	cell->column = r->op->picked[r->at];
	r->at = op_place_after(r->asked, r->at);
	return cell;
}

/* With the last arc one higher. False: that would need other bytes than the last one. */
static bool count_on(struct slice index, uint8_t memory[FORESEEN_INDEX_MAX_BYTES],
		     struct slice *next)
{
	if (!index.len || index.len > FORESEEN_INDEX_MAX_BYTES ||
	    (index.data[index.len - 1] & 0x7f) == 0x7f)
		return false;
	memcpy(memory, index.data, index.len);
	memory[index.len - 1]++;
	*next = (struct slice){(char *)memory, index.len};
	return true;
}

static bool read_next_row(struct reply_reading *r, struct reply_span *span)
{
	uint8_t memory[FORESEEN_INDEX_MAX_BYTES];
	struct snmp_cell *cell = &r->op->device->client->cells[r->count];
	struct slice root = root_at(r), index;
	if (r->at != r->asked->scalars || !count_on(r->index, memory, &index) ||
	    !snmp_next_number(r->varbinds, root, index, &cell->oid, &cell->value))
		return false;
	span->from = r->index.data;
	r->index = cell->index = op_index_after(root, cell->oid);
	(void)next_cell(r);
	return true;
}

/* A name that has to be looked at: its cell has no index yet. */
static bool read_any(struct reply_reading *r)
{
	struct snmp_varbind varbind;
	struct slice root = root_at(r);
	if (!snmp_next(r->varbinds, &varbind))
		return false;
	struct snmp_cell *cell = next_cell(r);
	cell->oid = varbind.oid;
	cell->value = varbind.value;
	cell->index = (struct slice){NULL, 0};
	r->unreadable += varbind.value.type == SNMP_UNREADABLE;
	if (r->op->kind == OP_WALK && oid_has_prefix(varbind.oid, root))
		r->index = op_index_after(root, varbind.oid);
	return true;
}

static void read_beside(struct reply_reading *r)
{
	struct snmp_cell *cells = r->op->device->client->cells;
	while (r->index.data && r->at != r->asked->scalars && r->count <= r->count_max) {
		struct snmp_cell *cell = &cells[r->count];
		if (!snmp_next_number(r->varbinds, root_at(r), r->index, &cell->oid, &cell->value))
			return;
		cell->index = r->index;
		(void)next_cell(r);
	}
}

static bool read_span(struct reply_reading *r)
{
	struct reply_span *span = &r->op->device->client->spans[r->span_count];
	*span = (struct reply_span){.begin = (uint32_t)r->count, .place = (uint16_t)r->at};
	if (r->count > r->count_max || (!read_next_row(r, span) && !read_any(r)))
		return false;
	read_beside(r);
	span->count = (uint32_t)r->count - span->begin;
	r->span_count++;
	return true;
}

size_t op_read_cells(const struct snmp_operation *op, struct snmp_pdu *pdu,
		     const struct attempt *asked, size_t *count)
{
	struct reply_reading r = {
		.op = op,
		.asked = asked,
		.varbinds = &pdu->varbinds,
		.index = op_index_before(op, asked),
		/* An agent that does not know of non-repeaters repeats all columns. */
		.count_max = (size_t)asked->columns * asked->rows,
	};
	if (r.count_max > SNMP_REPLY_VARBINDS_MAX)
		r.count_max = SNMP_REPLY_VARBINDS_MAX;
	while (read_span(&r))
		;
	if (r.unreadable)
		stat_add(STAT_snmp_unreadable, (int64_t)r.unreadable);
	*count = r.count;
	return pdu->varbinds.bad || r.count > r.count_max ? SIZE_MAX : r.span_count;
}
