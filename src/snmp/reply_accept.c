/* Accepts a reply of a walk: the cells that lie after the place where their columns stood, each
 * column up to its end; and notes where the columns stand then. */
#include "snmp/private.h"

/* Whether this name belongs to the walk of its column, after `before`, or is the end of it. */
static enum snmp_column_end reply_check_cell(const struct snmp_operation *op,
					     struct snmp_cell *cell, struct slice before)
{
	struct slice root = op->columns[cell->column].root;
	if (cell->value.type >= SNMP_NO_SUCH_OBJECT && cell->value.type <= SNMP_END_OF_MIB_VIEW)
		return SNMP_COLUMN_ENDED;
	if (oid_compare(cell->oid, before) <= 0)
		return SNMP_COLUMN_LOOPED;
	if (!oid_has_prefix(cell->oid, root))
		return SNMP_COLUMN_ENDED;
	cell->index = op_index_after(root, cell->oid);
	return SNMP_COLUMN_OPEN;
}

/* Where a walk of a column stood, and stands. */
struct step {
	struct slice from, to;
};

/* A reply on its way to the walk's owner. */
struct reply_accepting {
	struct snmp_operation *op;
	const struct attempt *asked;
	struct snmp_cell *cells;
	size_t kept, repeated_end; /* after the last one that was kept and is no scalar */
	bool closing;              /* one of those kept is */
	struct step step;          /* of the last cell whose name was looked at */
	/* All columns of tables stand at the same index, `row`; its cells begin at `row_at`,
	 * SIZE_MAX: where they stand is in `last`. */
	bool even;
	struct slice row;
	size_t row_at;
	/* Where each column stands, as in `picked`; and the index there, if it came with this
	 * reply. */
	struct slice last[SNMP_COLUMNS_MAX];
	const char *index[SNMP_COLUMNS_MAX];
};

/* Whether the column stood where that of its neighbour with the same index did: then its name has
 * increased as that one's has. */
static bool goes_beside(const struct reply_accepting *t, const struct snmp_cell *cell, size_t at)
{
	const struct step *step = &t->step;
	if (!cell->index.data || cell->index.data != step->to.data)
		return false;
	return t->index[at] == step->from.data ||
	       slice_equal(op_index_after(t->op->columns[cell->column].root, t->last[at]),
			   step->from);
}

/* The cell at `i`, of the column at `at`: kept, or the end of its column. False: what follows is
 * not to be looked at. */
static bool reply_accept_cell(struct reply_accepting *t, size_t i, size_t at)
{
	struct snmp_cell *cell = &t->cells[i];
	const struct op_column *column = &t->op->columns[cell->column];
	bool after_scalars = t->asked->scalars && i >= t->asked->columns;
	if (!goes_beside(t, cell, at)) {
		enum snmp_column_end end = reply_check_cell(t->op, cell, t->last[at]);
		/* An agent that does not know of non-repeaters gives other columns from the second
		 * row on. An end is believed where it does, or is seen without them. */
		if (end != SNMP_COLUMN_OPEN && after_scalars && !t->op->repeats_right) {
			t->op->repeats_doubtful = true;
			return false;
		}
		if (end != SNMP_COLUMN_OPEN) {
			stat_add(STAT_snmp_loops, end == SNMP_COLUMN_LOOPED);
			op_close_column(t->op, cell->column, end);
			return true;
		}
		t->step = (struct step){op_index_after(column->root, t->last[at]), cell->index};
	}
	t->even &= column->scalar;
	t->op->repeats_right |= after_scalars;
	t->closing |= column->closing;
	t->last[at] = cell->oid;
	t->index[at] = cell->index.data;
	if (&t->cells[t->kept] != cell)
		t->cells[t->kept] = *cell;
	t->kept++;
	if (column->scalar)
		op_close_column(t->op, cell->column, SNMP_COLUMN_ENDED);
	else
		t->repeated_end = i + 1;
	return true;
}

/* How many rows these varbinds of a reply are, the last one whole or not. */
static unsigned rows_until(const struct attempt *asked, size_t varbinds)
{
	unsigned repeated = asked->columns - asked->scalars;
	if (!repeated || varbinds <= asked->scalars)
		return 0;
	return ((unsigned)varbinds - asked->scalars + repeated - 1) / repeated;
}

static bool all_but_closing_ended(const struct snmp_operation *op)
{
	for (size_t i = 0; i < op->column_count; i++)
		if (op_is_open(op, i) && !op->columns[i].closing)
			return false;
	return true;
}

/* Others go on: what closing ones say now is not what they will say then. */
static void drop_closing(struct reply_accepting *t)
{
	size_t kept = 0;
	for (size_t i = 0; i < t->kept; i++) {
		size_t column = t->cells[i].column;
		if (!t->op->columns[column].closing) {
			t->cells[kept++] = t->cells[i];
			continue;
		}
		t->op->ends[column] = SNMP_COLUMN_OPEN;
		t->op->open_count++;
	}
	t->kept = kept;
}

/* The cells of a span, one by one. False: what follows is not to be looked at. */
static bool reply_accept_span(struct reply_accepting *t, const struct reply_span *span)
{
	size_t at = span->place, end = span->begin + span->count;
	for (size_t i = span->begin; i < end; i++, at = op_place_after(t->asked, at))
		if (op_is_open(t->op, t->cells[i].column) && !reply_accept_cell(t, i, at))
			return false;
	return true;
}

/* A whole row, as nearly all are. All columns stand at one index, so a row that comes after it in
 * the first column does so in the others. False: it is no whole row, and nothing was done. */
static bool reply_accept_row(struct reply_accepting *t, const struct reply_span *span)
{
	const struct attempt *asked = t->asked;
	struct snmp_cell *first = &t->cells[span->begin];
	if (!t->even || span->place != asked->scalars || t->kept != span->begin ||
	    span->count != (size_t)asked->columns - asked->scalars)
		return false;
	struct slice before =
		t->row_at == SIZE_MAX ? t->last[span->place] : t->cells[t->row_at].oid;
	if ((!span->from || span->from != t->row.data) &&
	    reply_check_cell(t->op, first, before) != SNMP_COLUMN_OPEN)
		return false;
	t->row = first->index;
	t->row_at = span->begin;
	t->kept = t->repeated_end = span->begin + span->count;
	t->op->repeats_right |= asked->scalars && span->begin >= asked->columns;
	return true;
}

static void settle_rows(struct reply_accepting *t)
{
	size_t scalars = t->asked->scalars;
	if (t->row_at == SIZE_MAX)
		return;
	for (size_t at = scalars; at < t->asked->columns; at++) {
		t->last[at] = t->cells[t->row_at + at - scalars].oid;
		t->index[at] = t->row.data;
	}
	t->row_at = SIZE_MAX;
}

static bool stands_even(const struct reply_accepting *t)
{
	const struct snmp_operation *op = t->op;
	for (size_t at = t->asked->scalars; at < t->asked->columns; at++) {
		const struct op_column *column = &op->columns[op->picked[at]];
		if (column->scalar || !op_is_open(op, op->picked[at]) ||
		    !slice_equal(op_index_after(column->root, t->last[at]), t->row))
			return false;
	}
	return true;
}

static void reply_accept_begin(struct reply_accepting *t, struct snmp_operation *op,
			       const struct attempt *asked)
{
	t->op = op;
	t->asked = asked;
	t->cells = op->device->client->cells;
	t->kept = t->repeated_end = 0;
	t->closing = false;
	t->step = (struct step){{NULL, 0}, {NULL, 0}};
	for (size_t i = 0; i < asked->columns; i++) {
		const struct op_column *column = &op->columns[op->picked[i]];
		t->last[i] = (struct slice){(char *)column->last, column->len};
		t->index[i] = NULL;
	}
	t->row_at = SIZE_MAX;
	t->row = op_index_before(op, asked);
	t->even = stands_even(t);
}

size_t op_accept_rows(struct snmp_operation *op, size_t span_count, const struct attempt *asked)
{
	const struct reply_span *spans = op->device->client->spans;
	struct reply_accepting t;
	reply_accept_begin(&t, op, asked);
	for (size_t i = 0; i < span_count; i++) {
		if (reply_accept_row(&t, &spans[i]))
			continue;
		settle_rows(&t);
		if (!reply_accept_span(&t, &spans[i]))
			break;
	}
	settle_rows(&t);
	for (size_t i = 0; i < asked->columns; i++) {
		struct op_column *column = &op->columns[op->picked[i]];
		if (t.last[i].data != (char *)column->last && !column->scalar)
			op_column_set(column, t.last[i]);
	}
	if (t.closing && !all_but_closing_ended(op))
		drop_closing(&t);
	op->rows += rows_until(asked, t.repeated_end);
	return t.kept;
}
