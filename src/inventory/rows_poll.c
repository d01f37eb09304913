/* From a poll of an OIDSet of interfaces, SAPs, LSPs or outlets to the rows it says there are.
 *
 * A row of such a poll has its dotted index as path, of SAPs and LSPs also what it says in words;
 * esmond's messages have the index alone, which is then read here, in the same way.
 * Addresses are rows of their own: ipAdEntIfIndex has the address as index and the interface as
 * value. Attributes are written in one order, so that rows can be compared as bytes. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "inventory/private.h"
#include "model/poll.h"
#include "wire/json.h"
#include "wire/number.h"
#include "wire/snmp_index.h"

/* With the name behind them, where that is cut in the column, they are one value. */
enum {
	ATTRIBUTES_MAX_BYTES = TABLE_SHARED_VALUE_MAX_BYTES - 2 * (POLL_TEXT_MAX_BYTES + 1),
	NO_COLUMN = -1
};

struct polled {
	const struct poll *poll;
	const struct poll_names *names;
	const struct poll_values *values;
	struct arena *arena;
	/* Of interfaces: addresses by interface, ascending. */
	struct address {
		uint64_t if_index;
		struct slice text;
	} * addresses;
	size_t address_count;
	struct buf scratch;
};

/* A row while it is made: it is told from others of its name by its index. */
struct named {
	struct slice name, index, attributes;
};

static int find_column(const struct polled *t, const char *name)
{
	for (size_t c = 0; c < t->poll->column_count; c++) {
		if (slice_equal(t->names->columns[c], slice_of(name)))
			return (int)c;
	}
	return NO_COLUMN;
}

static struct value number_at(const struct polled *t, size_t row, int column)
{
	static const struct value none = {0, VALUE_NONE};
	if (column == NO_COLUMN)
		return none;
	return t->values->values[row * t->poll->column_count + (size_t)column];
}

/* Texts lie by column, in it by row. */
static const struct poll_text *text_at(const struct polled *t, size_t row, int column)
{
	size_t low = 0, high = t->values->text_count;
	while (column != NO_COLUMN && low < high) {
		size_t middle = low + (high - low) / 2;
		const struct poll_text *text = &t->values->texts[middle];
		if (text->column == (uint32_t)column && text->row == row)
			return text;
		bool before = text->column < (uint32_t)column ||
			      (text->column == (uint32_t)column && text->row < row);
		if (before)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static struct slice string_at(const struct polled *t, size_t row, int column)
{
	const struct poll_text *text = text_at(t, row, column);
	return text && !text->json ? text->text : (struct slice){NULL, 0};
}

static bool has_value(const struct polled *t, size_t row, int column)
{
	return number_at(t, row, column).type != VALUE_NONE || text_at(t, row, column);
}

static bool any_value(const struct polled *t, size_t row, int but)
{
	for (int c = 0; c < (int)t->poll->column_count; c++) {
		if (c != but && has_value(t, row, c))
			return true;
	}
	return false;
}

static void write_value(const struct polled *t, struct json_writer *w, size_t row, int column)
{
	const struct poll_text *text = text_at(t, row, column);
	struct value number = number_at(t, row, column);
	if (text && text->json)
		json_write_raw(w, text->text);
	else if (text)
		json_write_string(w, text->text);
	else if (number.type != VALUE_NONE)
		json_write_number(w, number);
	else
		json_write_null(w);
}

static struct slice index_of(const struct polled *t, size_t row)
{
	const struct poll_row *of = &t->names->rows[row];
	return of->part_count ? of->parts[0] : SLICE("");
}

/* ---- Interfaces ----------------------------------------------------------------------------- */

static bool address_before(const struct address *a, const struct address *b)
{
	if (a->if_index != b->if_index)
		return a->if_index < b->if_index;
	return slice_compare(a->text, b->text) < 0;
}

static int by_interface(const void *left, const void *right)
{
	const struct address *a = left, *b = right;
	return address_before(a, b) ? -1 : address_before(b, a);
}

static int gather_addresses(struct polled *t)
{
	int column = find_column(t, "ipAdEntIfIndex");
	t->addresses = arena_alloc(t->arena, (t->poll->row_count + 1) * sizeof(*t->addresses));
	if (!t->addresses)
		return ERR_LIMIT;
	for (size_t row = 0; row < t->poll->row_count && column != NO_COLUMN; row++) {
		struct value index = number_at(t, row, column);
		if (index.type == VALUE_U64 || index.type == VALUE_I64)
			t->addresses[t->address_count++] =
				(struct address){index.bits, index_of(t, row)};
	}
	qsort(t->addresses, t->address_count, sizeof(*t->addresses), by_interface);
	return 0;
}

/* Of several addresses the first in byte order, so that it stays the same. */
static struct slice address_of(const struct polled *t, uint64_t if_index)
{
	for (size_t low = 0, high = t->address_count; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (t->addresses[middle].if_index < if_index)
			low = middle + 1;
		else
			high = middle;
		if (low == high && low < t->address_count && t->addresses[low].if_index == if_index)
			return t->addresses[low].text;
	}
	return (struct slice){NULL, 0};
}

static void write_text(struct json_writer *w, struct slice text)
{
	if (text.data)
		json_write_string(w, text);
	else
		json_write_null(w);
}

static struct slice rows_poll_trim(struct slice text)
{
	while (text.len && strchr(" \"", text.data[0])) {
		text.data++;
		text.len--;
	}
	while (text.len && strchr(" \"", text.data[text.len - 1]))
		text.len--;
	return text;
}

/* `1/1/1, 10-Gig Ethernet, "to the lab"`: what ALU puts into ifDescr, having no ifAlias. */
static struct slice third_field(struct slice text)
{
	for (int i = 0; i < 2; i++) {
		const char *comma = text.len ? memchr(text.data, ',', text.len) : NULL;
		if (!comma)
			return (struct slice){NULL, 0};
		text.len -= (size_t)(comma - text.data) + 1;
		text.data = comma + 1;
	}
	return rows_poll_trim(text);
}

/* Where the device has it: in ifAlias, in Infinera's circuit id, in ALU's ifDescr. */
static struct slice alias_of(const struct polled *t, size_t row)
{
	int alias = find_column(t, "ifAlias"), circuit = find_column(t, "gigeClientCtpPmRealCktId");
	if (alias != NO_COLUMN)
		return string_at(t, row, alias);
	if (circuit != NO_COLUMN)
		return string_at(t, row, circuit);
	struct slice descr = string_at(t, row, find_column(t, "ifDescr"));
	return third_field(descr.data ? descr : SLICE(""));
}

/* ifName, or else ifDescr; of Infinera's what stands behind a `=`, as correlator InfIfName has it.
 */
static struct slice interface_name(const struct polled *t, size_t row)
{
	struct slice name = string_at(t, row, find_column(t, "ifName"));
	if (!name.len)
		name = string_at(t, row, find_column(t, "ifDescr"));
	const char *equals = name.len ? memchr(name.data, '=', name.len) : NULL;
	if (equals && find_column(t, "gigeClientCtpPmRealCktId") != NO_COLUMN) {
		name.len -= (size_t)(equals - name.data) + 1;
		name.data = equals + 1;
	}
	return name;
}

/* The columns of E's IfRef, in its order. */
static void write_interface(const struct polled *t, struct json_writer *w, size_t row)
{
	static const char *const before[] = {"ifDescr", "ifName"};
	static const char *const after[] = {"ifSpeed", "ifHighSpeed",  "ifMtu",
					    "ifType",  "ifOperStatus", "ifAdminStatus"};
	struct slice index = index_of(t, row);
	uint64_t if_index = 0;
	bool known = number_parse_u64(index.data, index.data + index.len, &if_index) == 0;
	json_write_key(w, "ifIndex");
	if (known)
		json_write_u64(w, if_index);
	else
		json_write_null(w);
	for (size_t i = 0; i < ARRAY_LEN(before); i++) {
		json_write_key(w, before[i]);
		write_value(t, w, row, find_column(t, before[i]));
	}
	json_write_key(w, "ifAlias");
	write_text(w, alias_of(t, row));
	json_write_key(w, "ipAddr");
	write_text(w, known ? address_of(t, if_index) : (struct slice){NULL, 0});
	for (size_t i = 0; i < ARRAY_LEN(after); i++) {
		json_write_key(w, after[i]);
		write_value(t, w, row, find_column(t, after[i]));
	}
	struct slice address = string_at(t, row, find_column(t, "ifPhysAddress"));
	json_write_key(w, "ifPhysAddress");
	write_text(w, address.len ? address : (struct slice){NULL, 0});
}

/* ---- Others --------------------------------------------------------------------------------- */

/* The index itself where it says nothing. */
static struct slice name_of_index(const struct polled *t, enum oidset_kind kind, struct slice index)
{
	struct index_arcs arcs;
	struct slice name = index;
	int err = index_parse(index, &arcs);
	if (!err)
		err = kind == OIDSET_SAPS ? index_sap_name(&arcs, t->arena, &name)
					  : index_lsp_name(&arcs, t->arena, &name);
	return err ? index : name;
}

static struct slice other_name(const struct polled *t, enum oidset_kind kind, size_t row)
{
	const struct poll_row *of = &t->names->rows[row];
	if (kind == OIDSET_OUTLETS)
		return string_at(t, row, find_column(t, "outletID"));
	return of->part_count > 1 ? of->parts[1] : name_of_index(t, kind, index_of(t, row));
}

static void write_other(const struct polled *t, struct json_writer *w, size_t row)
{
	json_put_string(w, "index", index_of(t, row));
	for (size_t c = 0; c < t->poll->column_count; c++) {
		json_write_key_slice(w, t->names->columns[c]);
		write_value(t, w, row, (int)c);
	}
}

/* ---- Rows ----------------------------------------------------------------------------------- */

static int make(struct polled *t, enum oidset_kind kind, size_t row, struct named *named)
{
	struct json_writer w;
	bool interface = kind == OIDSET_INTERFACES;
	buf_clear(&t->scratch);
	json_writer_init(&w, &t->scratch);
	json_write_object_begin(&w);
	if (interface)
		write_interface(t, &w, row);
	else
		write_other(t, &w, row);
	json_write_object_end(&w);
	*named = (struct named){.name = interface ? interface_name(t, row)
						  : other_name(t, kind, row),
				.index = index_of(t, row)};
	if (t->scratch.failed)
		return ERR_INVALID;
	named->attributes = arena_copy(t->arena, buf_slice(&t->scratch));
	int err = row_name_clean(&named->name, t->arena);
	err = err ? err : row_name_clean(&named->index, t->arena);
	return err || named->attributes.data ? err : ERR_LIMIT;
}

int row_name_clean(struct slice *name, struct arena *arena)
{
	if (!utf8_is_valid(*name))
		*name = octets_text(*name, arena);
	return name->data || !name->len ? 0 : ERR_LIMIT;
}

static int rows_poll_by_name(const void *left, const void *right)
{
	const struct named *a = left, *b = right;
	int order = slice_compare(a->name, b->name);
	return order ? order : slice_compare(a->index, b->index);
}

static int name_by_index(struct polled *t, struct named *named)
{
	const char *name = arena_printf(t->arena, "%.*s#%.*s", (int)named->name.len,
					named->name.len ? named->name.data : "",
					(int)named->index.len, named->index.data);
	if (!name)
		return ERR_LIMIT;
	named->name = slice_of(name);
	return 0;
}

/* Each of those that share a name, and what has none. */
static int tell_apart(struct polled *t, struct named *list, size_t count)
{
	for (size_t i = 0, end; i < count; i = end) {
		struct slice name = list[i].name;
		end = i + 1;
		while (end < count && slice_equal(list[end].name, name))
			end++;
		bool alone = end == i + 1 && name.len;
		for (size_t j = i; j < end && !alone; j++) {
			if (name_by_index(t, &list[j]))
				return ERR_LIMIT;
		}
	}
	qsort(list, count, sizeof(*list), rows_poll_by_name);
	return 0;
}

static int rows_poll_finish(struct polled *t, struct named *list, size_t count,
			    struct inventory_row **rows, size_t *row_count)
{
	*row_count = 0;
	*rows = arena_alloc(t->arena, (count + 1) * sizeof(**rows));
	if (!*rows)
		return ERR_LIMIT;
	if (count)
		qsort(list, count, sizeof(*list), rows_poll_by_name);
	int err = tell_apart(t, list, count);
	for (size_t i = 0; i < count && !err; i++) {
		/* What is still alike was there twice. */
		if (i && slice_equal(list[i].name, list[i - 1].name))
			continue;
		ASSERT(!*row_count ||
		       slice_compare((*rows)[*row_count - 1].name, list[i].name) < 0);
		(*rows)[(*row_count)++] = (struct inventory_row){.name = list[i].name,
								 .begin_ms = t->poll->ts_ms,
								 .end_ms = INVENTORY_FOREVER_MS,
								 .attributes = list[i].attributes};
	}
	return err;
}

int inventory_rows_from_poll(enum oidset_kind kind, const struct poll *poll,
			     const struct poll_names *names, const struct poll_values *values,
			     struct arena *arena, struct inventory_row **rows, size_t *count)
{
	ASSERT(kind != OIDSET_COUNTERS && (unsigned)kind < OIDSET_KINDS);
	struct polled t = {.poll = poll, .names = names, .values = values, .arena = arena};
	bool interfaces = kind == OIDSET_INTERFACES;
	int not_of_row = interfaces ? find_column(&t, "ipAdEntIfIndex") : NO_COLUMN;
	size_t named_count = 0;
	struct named *named = arena_alloc(arena, (poll->row_count + 1) * sizeof(*named));
	int err = named ? 0 : ERR_LIMIT;
	err = err || !interfaces ? err : gather_addresses(&t);
	buf_init(&t.scratch, ATTRIBUTES_MAX_BYTES);
	for (size_t row = 0; row < poll->row_count && !err; row++) {
		if (any_value(&t, row, not_of_row))
			err = make(&t, kind, row, &named[named_count++]);
	}
	buf_release(&t.scratch);
	return err ? err : rows_poll_finish(&t, named, named_count, rows, count);
}
