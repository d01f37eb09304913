#include "board/verify.h"

#include "base/cursor.h"
#include "board/document.h"
#include "board/keys.h"
#include "board/rows.h"
#include "wire/chukwa_key.h"
#include "wire/md5.h"
#include "wire/number.h"

enum { VERIFY_ARENA_MAX_BYTES = 8 << 20, VERIFY_NOTE_BYTES = 16 };

struct board_verify {
	struct tables_verify *v;
	enum table table;
	const struct store_row *row;
	struct arena arena; /* of the cell that is looked at */
};

/* Functions that look at a cell say what is wrong with it, or NULL. */

/* ---- chukwa ---------------------------------------------------------------------------------- */

static bool board_verify_is_hash_of(struct slice text, const char hash[VERIFY_NOTE_BYTES / 2])
{
	char digits[MD5_HEX_BYTES];
	bool same = !md5_hex(&text, 1, digits);
	for (size_t i = 0; i < VERIFY_NOTE_BYTES / 2 && same; i++)
		same = (number_hex_digit(digits[2 * i]) << 4 |
			number_hex_digit(digits[2 * i + 1])) == (uint8_t)hash[i];
	return same;
}

static const char *board_verify_row_cell(struct board_verify *b, const struct store_cell *cell)
{
	struct slice family = cell->column.part[0], qualifier = cell->column.part[1];
	bool note = slice_equal(family, SLICE("a"));
	uint16_t days[CHUKWA_DAYS_MAX];
	if (b->row->key.part[1].len != CHUKWA_KEY_BYTES)
		return "the key has not 14 bytes";
	if (!note && !slice_equal(family, SLICE("t")))
		return "there is no such family";
	if (qualifier.len != (note ? VERIFY_NOTE_BYTES : sizeof(uint64_t)))
		return "the qualifier has another length than one of its family";
	size_t count = chukwa_key_days(CHUKWA_DAYS_EPOCH, b->row->key.part[1].data, days);
	uint64_t ms = be64_get((const uint8_t *)qualifier.data);
	if (count != 1 || ms / 86400000 != days[0])
		return "the time is of another day than the key";
	if (cell->value.len > ROW_TEXT_MAX_BYTES)
		return "the text is longer than one may be";
	if (note && !board_verify_is_hash_of(cell->value, qualifier.data + sizeof(uint64_t)))
		return "the qualifier has the hash of another note";
	return NULL;
}

/* ---- chukwa_metadata ------------------------------------------------------------------------- */

static bool board_verify_is_sig_of(struct slice name, struct slice sig)
{
	char digits[CHUKWA_SIG_DIGITS + 1];
	return !chukwa_sig(name, digits) && slice_equal(sig, slice_of(digits));
}

static const char *board_verify_key_cell(struct board_verify *b, const struct store_cell *cell)
{
	struct slice family = cell->column.part[0], type, sig;
	bool metric = slice_equal(family, SLICE("k"));
	struct json *value;
	struct errbuf e;
	if (!metric && !slice_equal(family, SLICE("ks")))
		return "there is no such family";
	if (json_parse(cell->value, &b->arena, &value, &e) ||
	    json_get_text(value, "type", &type, &e) || json_get_text(value, "sig", &sig, &e))
		return "it cannot be read";
	if (!slice_equal(type, metric ? SLICE("metric") : SLICE("source")))
		return "the type is not that of the family";
	return board_verify_is_sig_of(cell->column.part[1], sig)
		       ? NULL
		       : "the sig is that of another name";
}

/* The row without a name. */
static const char *board_verify_holder_cell(UNUSED struct board_verify *b,
					    const struct store_cell *cell)
{
	struct slice family = cell->column.part[0];
	if (slice_equal(family, SLICE("group")))
		return NULL;
	if (!slice_equal(family, SLICE("metric")) && !slice_equal(family, SLICE("source")))
		return "there is no such family";
	return board_verify_is_sig_of(cell->value, cell->column.part[1])
		       ? NULL
		       : "the sig is that of another name";
}

static const char *board_verify_board_cell(struct board_verify *b, enum board_kind kind,
					   const struct store_cell *cell)
{
	struct board_document made;
	struct errbuf e = {""};
	struct slice id = cell->column.part[1];
	if (!slice_equal(cell->column.part[0], SLICE("c")))
		return "there is no such family";
	if (board_document_parse(kind, cell->value, id, &b->arena, &made, &e)) {
		const char *why = arena_printf(&b->arena, "it is no board: %s", e.text);
		return why ? why : "it is no board";
	}
	return slice_equal(made.id, id) ? NULL : "its id is another one";
}

static const char *board_verify_metadata_cell(struct board_verify *b, const struct store_cell *cell)
{
	struct slice group = b->row->key.part[1];
	if (!group.len)
		return board_verify_holder_cell(b, cell);
	for (int kind = 0; kind < BOARD_KINDS; kind++)
		if (slice_equal(group, slice_of(board_kinds[kind].row)))
			return board_verify_board_cell(b, (enum board_kind)kind, cell);
	return board_verify_key_cell(b, cell);
}

/* ---- Both ------------------------------------------------------------------------------------ */

static int board_verify_see_cell(const struct store_cell *cell, void *owner)
{
	struct board_verify *b = owner;
	arena_reset(&b->arena);
	const char *fault = b->table == TABLE_CHUKWA ? board_verify_row_cell(b, cell)
						     : board_verify_metadata_cell(b, cell);
	tables_verify_count(b->v);
	if (fault)
		tables_verify_tell(b->v, b->table, &b->row->key, &cell->column, "%s", fault);
	return 0;
}

static int board_verify_see_row(const struct store_row *row, void *owner)
{
	struct board_verify *b = owner;
	b->row = row;
	return tables_verify_row(b->v, b->table, &row->key, board_verify_see_cell, b);
}

int board_verify(struct tables_verify *v)
{
	static const enum table tables[] = {TABLE_CHUKWA, TABLE_CHUKWA_METADATA};
	struct board_verify b = {.v = v};
	int err = 0;
	arena_init(&b.arena, VERIFY_ARENA_MAX_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(tables) && !err; i++) {
		b.table = tables[i];
		err = tables_verify_rows(v, tables[i], board_verify_see_row, &b);
	}
	arena_release(&b.arena);
	return err;
}
