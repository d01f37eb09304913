#include "snmp/correlate_set.h"

#include "base/grow.h"
#include "base/hash.h"
#include "base/mem.h"
#include "wire/snmp_index.h"

enum { ROWS_MIN = 64, INDEX_MAX_BYTES = OID_MAX_BYTES };

void correlate_set_init(struct correlate_set *set)
{
	*set = (struct correlate_set){0};
	arena_init(&set->arena, CORRELATE_ARENA_MAX_BYTES);
}

void correlate_set_release(struct correlate_set *set)
{
	arena_release(&set->arena);
	mem_free(set->indices);
	mem_free(set->cells);
	mem_free(set->reply_ms);
	mem_free(set->slots);
	*set = (struct correlate_set){0};
}

void correlate_set_begin(struct correlate_set *set, const struct correlate_plan *plan,
			 int64_t now_ms)
{
	set->plan = plan;
	set->begun_ms = now_ms;
	arena_reset(&set->arena);
	set->row_count = 0;
	set->reply_count = 0;
	set->sorted = true;
	set->last_row = SIZE_MAX;
	set->name_near = 0;
	set->may_share = false;
	memset(set->next_row, 0, plan->count * sizeof(set->next_row[0]));
	mem_free(set->slots);
	set->slots = NULL;
	set->slot_count = 0;
	memset(&set->notes, 0, sizeof(set->notes));
	correlate_set_reply(set, now_ms);
}

/* A walk may have more replies than can be told apart: the rest have the last one's time. */
void correlate_set_reply(struct correlate_set *set, int64_t ts_ms)
{
	if (set->reply_count == CORRELATE_REPLIES_MAX)
		return;
	GROW(set->reply_ms, set->reply_cap, set->reply_count + 1);
	set->reply_ms[set->reply_count++] = ts_ms;
}

/* ---- Notes ----------------------------------------------------------------------------------- */

void correlate_note(struct correlate_notes *notes, enum correlate_trouble trouble, const char *fmt,
		    ...)
{
	if (notes->counts[trouble] < UINT32_MAX)
		notes->counts[trouble]++;
	if (notes->first.text[0])
		return;
	va_list args;
	va_start(args, fmt);
	vsnprintf(notes->first.text, sizeof(notes->first.text), fmt, args);
	va_end(args);
}

const char *correlate_index_shown(struct slice index, char text[64])
{
	size_t len = 0;
	uint32_t arc;
	text[0] = 0;
	while (len + 16 < 64 && oid_next_arc(&index, &arc))
		len += (size_t)snprintf(text + len, 64 - len, len ? ".%u" : "%u", arc);
	if (index.len)
		snprintf(text + len, 64 - len, "...");
	return text;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static uint64_t index_hash(struct slice index)
{
	return hash64(index.data, index.len, 0);
}

static void slot_put(struct correlate_set *set, size_t row)
{
	size_t at = index_hash(set->indices[row]) & (set->slot_count - 1);
	while (set->slots[at])
		at = (at + 1) & (set->slot_count - 1);
	set->slots[at] = (uint32_t)row + 1;
}

/* At most half of the slots are taken. */
static void make_slots(struct correlate_set *set)
{
	size_t count = ROWS_MIN * 2;
	while (count < (set->row_count + 1) * 4)
		count *= 2;
	mem_free(set->slots);
	set->slots = mem_zalloc(count * sizeof(*set->slots));
	set->slot_count = count;
	for (size_t row = 0; row < set->row_count; row++)
		slot_put(set, row);
}

size_t correlate_set_find(struct correlate_set *set, struct slice index)
{
	if (!set->slots)
		make_slots(set);
	size_t at = index_hash(index) & (set->slot_count - 1);
	for (; set->slots[at]; at = (at + 1) & (set->slot_count - 1))
		if (slice_equal(set->indices[set->slots[at] - 1], index))
			return set->slots[at] - 1;
	return SIZE_MAX;
}

/* SIZE_MAX: a limit. */
static size_t correlate_set_add_row(struct correlate_set *set, struct slice index)
{
	size_t row = set->row_count, columns = set->plan->count;
	if (row == POLL_ROWS_MAX || (row + 1) * columns > POLL_CELLS_MAX)
		return SIZE_MAX;
	struct slice copy = arena_copy(&set->arena, index);
	if (!copy.data)
		return SIZE_MAX;
	GROW(set->indices, set->row_cap, row + 1);
	GROW(set->cells, set->cell_cap, (row + 1) * columns);
	set->indices[row] = copy;
	memset(&set->cells[row * columns], 0, columns * sizeof(*set->cells));
	set->row_count++;
	if (set->slots && set->row_count * 2 > set->slot_count)
		make_slots(set);
	else if (set->slots)
		slot_put(set, row);
	return row;
}

static size_t find_or_add_row(struct correlate_set *set, size_t column, struct slice index)
{
	size_t row = set->next_row[column], count = set->row_count;
	if (row < count && slice_equal(set->indices[row], index))
		return row;
	/* Behind all others, while they are in order: it is new. */
	if (set->sorted && (count == 0 || oid_compare(set->indices[count - 1], index) < 0))
		return correlate_set_add_row(set, index);
	row = correlate_set_find(set, index);
	if (row != SIZE_MAX)
		return row;
	set->sorted = false;
	return correlate_set_add_row(set, index);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static bool is_unsigned(uint8_t type)
{
	switch (type) {
	case SNMP_COUNTER32:
	case SNMP_GAUGE32:
	case SNMP_TIMETICKS:
	case SNMP_COUNTER64:
	case SNMP_UINTEGER32:
		return true;
	default:
		return false;
	}
}

/* A number of 32 bits beyond 2^32 would be taken for growth that never was. */
static bool to_unsigned(const struct snmp_value *value, uint64_t max, struct correlate_cell *cell)
{
	if (value->type == SNMP_INTEGER && value->i64 >= 0)
		cell->bits = (uint64_t)value->i64;
	else if (is_unsigned(value->type))
		cell->bits = value->u64;
	else
		return false;
	cell->type = CELL_U64;
	return cell->bits <= max;
}

static bool to_integer(const struct snmp_value *value, struct correlate_cell *cell)
{
	cell->type = CELL_I64;
	if (value->type == SNMP_INTEGER)
		cell->bits = (uint64_t)value->i64;
	else if (is_unsigned(value->type) && value->u64 <= INT64_MAX)
		cell->bits = value->u64;
	else
		return false;
	return true;
}

/* Gauges and states that an agent sends as floating point (an Opaque). */
static bool to_float(const struct snmp_value *value, struct correlate_cell *cell)
{
	if (value->type != SNMP_FLOAT && value->type != SNMP_DOUBLE)
		return false;
	memcpy(&cell->bits, &value->f64, sizeof(cell->bits));
	cell->type = CELL_F64;
	return true;
}

static struct slice correlate_set_print_oid(struct slice oid, struct arena *arena)
{
	struct buf text;
	buf_init(&text, (size_t)OID_ARCS_MAX * 11 + 16);
	oid_print(oid, &text);
	struct slice copy = {text.data + 1, text.len ? text.len - 1 : 0}; /* without the dot */
	copy = arena_copy(arena, copy);
	buf_release(&text);
	return copy;
}

/* Any bytes: as text where they are one, else in hexadecimal digits. */
static struct slice print_octets(struct slice bytes, struct arena *arena)
{
	struct slice text = octets_text(bytes, arena);
	if (text.data && text.len > bytes.len)
		text = octets_colons(bytes, arena);
	return text;
}

static struct slice print_address(struct slice bytes, struct arena *arena)
{
	const uint8_t *b = (const uint8_t *)bytes.data;
	char *text =
		bytes.len == 4 ? arena_printf(arena, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]) : NULL;
	return (struct slice){text, text ? strlen(text) : 0};
}

/* data is NULL: not of that type, or no room. */
static struct slice print_value(const struct snmp_value *value, enum oid_type type,
				struct arena *arena)
{
	static const struct slice none = {NULL, 0};
	switch (type) {
	case OID_TEXT:
		return value->type == SNMP_OCTETS ? octets_text(value->bytes, arena) : none;
	case OID_OCTETS:
		return value->type == SNMP_OCTETS ? print_octets(value->bytes, arena) : none;
	case OID_PHYS_ADDRESS:
		return value->type == SNMP_OCTETS ? octets_colons(value->bytes, arena) : none;
	case OID_IP_ADDRESS:
		return value->type == SNMP_IPADDRESS ? print_address(value->bytes, arena) : none;
	case OID_OBJECT_ID:
		return value->type == SNMP_OID ? correlate_set_print_oid(value->bytes, arena)
					       : none;
	default:
		return none;
	}
}

static bool to_text(const struct snmp_value *value, enum oid_type type, struct arena *arena,
		    struct correlate_cell *cell)
{
	struct slice text = print_value(value, type, arena);
	if (!text.data || text.len > POLL_TEXT_MAX_BYTES)
		return false;
	cell->bits = (uintptr_t)text.data;
	cell->len = (uint16_t)text.len;
	cell->type = CELL_TEXT;
	return true;
}

static bool convert(const struct snmp_value *value, enum oid_type type, struct arena *arena,
		    struct correlate_cell *cell)
{
	switch (type) {
	case OID_COUNTER32:
	case OID_TIMETICKS:
		return to_unsigned(value, UINT32_MAX, cell);
	case OID_COUNTER64:
		return to_unsigned(value, UINT64_MAX, cell);
	case OID_GAUGE32:
		return to_unsigned(value, UINT64_MAX, cell) || to_float(value, cell);
	case OID_INTEGER:
		return to_integer(value, cell) || to_float(value, cell);
	default:
		return to_text(value, type, arena, cell);
	}
}

static bool is_absent(uint8_t type)
{
	return type == SNMP_NULL || type == SNMP_NO_SUCH_OBJECT || type == SNMP_NO_SUCH_INSTANCE ||
	       type == SNMP_END_OF_MIB_VIEW;
}

static void note_cell(struct correlate_set *set, size_t column, struct slice index,
		      enum correlate_trouble trouble, const char *what)
{
	char shown[64];
	correlate_note(&set->notes, trouble, SHOWN ".%s%s",
		       SHOWN_OF(set->plan->columns[column].def->name),
		       correlate_index_shown(index, shown), what);
}

static void note_type(struct correlate_set *set, size_t column, struct slice index, uint8_t tag)
{
	const struct oid_def *def = set->plan->columns[column].def;
	char shown[64];
	correlate_note(&set->notes, TROUBLE_TYPE,
		       SHOWN ".%s: a value of tag 0x%02x where a %s belongs", SHOWN_OF(def->name),
		       correlate_index_shown(index, shown), tag, oid_type_text(def->type));
}

static void correlate_set_put_cell(struct correlate_set *set, size_t row, size_t column,
				   struct slice index, const struct snmp_value *value)
{
	struct correlate_cell *cell = &set->cells[row * set->plan->count + column];
	struct correlate_cell made = {.reply = (uint16_t)(set->reply_count - 1)};
	set->next_row[column] = (uint32_t)row + 1;
	if (cell->type != CELL_NONE)
		note_cell(set, column, index, TROUBLE_DOUBLED, " came twice");
	else if (convert(value, set->plan->columns[column].def->type, &set->arena, &made))
		*cell = made;
	else
		note_type(set, column, index, value->type);
}

/* Nearly all values. False: this one has to be looked at. */
static inline bool correlate_set_put_plain(struct correlate_set *set, size_t row, size_t column,
					   const struct snmp_value *value)
{
	const struct correlate_column *made_of = &set->plan->columns[column];
	struct correlate_cell *cell = &set->cells[row * set->plan->count + column];
	if (value->type != made_of->plain_tag || value->u64 > made_of->plain_max ||
	    cell->type != CELL_NONE)
		return false;
	cell->bits = value->u64;
	cell->reply = (uint16_t)(set->reply_count - 1);
	cell->type = CELL_U64;
	set->next_row[column] = (uint32_t)row + 1;
	return true;
}

void correlate_set_add(struct correlate_set *set, size_t column, struct slice index,
		       const struct snmp_value *value)
{
	set->last_row = SIZE_MAX;
	if (is_absent(value->type))
		return;
	if (!index.len) {
		correlate_note(&set->notes, TROUBLE_INDEX, SHOWN ": a value without an index",
			       SHOWN_OF(set->plan->columns[column].def->name));
		return;
	}
	set->last_row = find_or_add_row(set, column, index);
	if (set->last_row == SIZE_MAX)
		note_cell(set, column, index, TROUBLE_LIMIT,
			  ": more rows, or bytes of them, than a poll may have");
	else if (!correlate_set_put_plain(set, set->last_row, column, value))
		correlate_set_put_cell(set, set->last_row, column, index, value);
}

void correlate_set_add_beside(struct correlate_set *set, size_t column, struct slice index,
			      const struct snmp_value *value)
{
	if (set->last_row == SIZE_MAX || is_absent(value->type))
		correlate_set_add(set, column, index, value);
	else
		correlate_set_put_cell(set, set->last_row, column, index, value);
}

void correlate_set_add_cells(struct correlate_set *set, const struct snmp_reply *reply)
{
	const char *index = NULL; /* of the cell before */
	correlate_set_reply(set, reply->wall_ms);
	for (size_t i = 0; i < reply->count; i++) {
		const struct snmp_cell *cell = &reply->cells[i];
		bool beside = i && cell->index.data == index;
		index = cell->index.data;
		if (!beside)
			correlate_set_add(set, cell->column, cell->index, &cell->value);
		else if (set->last_row == SIZE_MAX ||
			 !correlate_set_put_plain(set, set->last_row, cell->column, &cell->value))
			correlate_set_add_beside(set, cell->column, cell->index, &cell->value);
	}
}

/* ---- Looking at it --------------------------------------------------------------------------- */

const struct correlate_cell *correlate_set_scalar(const struct correlate_set *set, size_t column)
{
	for (size_t row = 0; column < set->plan->count && row < set->row_count; row++)
		if (correlate_cell(set, row, column)->type != CELL_NONE)
			return correlate_cell(set, row, column);
	return NULL;
}

static int compare_rows(const void *a, const void *b, void *context)
{
	const struct correlate_set *set = context;
	return oid_compare(set->indices[*(const uint32_t *)a], set->indices[*(const uint32_t *)b]);
}

const uint32_t *correlate_set_order(const struct correlate_set *set, struct arena *arena)
{
	uint32_t *order = arena_alloc(arena, set->row_count * sizeof(*order));
	if (!order)
		return NULL;
	for (size_t row = 0; row < set->row_count; row++)
		order[row] = (uint32_t)row;
	if (!set->sorted)
		qsort_r(order, set->row_count, sizeof(*order), compare_rows,
			(void *)(uintptr_t)set);
	return order;
}
