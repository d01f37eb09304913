/* What an operation asks next, and what it makes of the answer.
 *
 * A walk asks GETBULK for as many open columns as fit into a reply, and as many rows of these as
 * then fit; with more columns than that they take turns. Each column goes on behind its own last
 * name, so that an answer cut anywhere is no special case. Version 1 has GETNEXT, one row. Columns
 * that are scalars stand first, asked for once (non-repeaters); where no others are left, by
 * GETNEXT. Closing ones wait until the others have ended, or go with the request that should end
 * them; where it does not, they are asked for again.
 *
 * How many varbinds a device is asked for is learnt: a little more after each reply while the bytes
 * allow it, half after tooBig (and never more than that again) and after a time-out. */
#include <errno.h>

#include "base/hash.h"
#include "snmp/private.h"

enum {
	VARBIND_OVERHEAD_BYTES = 8,
	COLUMN_SPARE_BYTES = 16,
	FEW_VARBINDS = 4,
	CACHE_LINE_BYTES = 64,
	COLUMNS_FETCHED_BYTES = 1024, /* a dozen columns, and where they stand */
	FORESEEN_INDEX_MAX_BYTES = 16,
};

/* ---- Life ------------------------------------------------------------------------------------ */

static void column_set(struct column *column, struct slice oid)
{
	if (UNLIKELY(oid.len > column->cap)) {
		column->cap = (uint16_t)(oid.len + COLUMN_SPARE_BYTES);
		column->last = mem_resize(column->own ? column->last : NULL, column->cap);
		column->own = true;
	}
	memcpy(column->last, oid.data, oid.len);
	column->len = (uint16_t)oid.len;
}

/* A walk has room for most of the names that it will see. */
static size_t room_of(enum op_kind kind, struct slice oid)
{
	return kind == OP_WALK ? 2 * oid.len + COLUMN_SPARE_BYTES : oid.len;
}

static uint8_t *set_up_column(struct snmp_operation *op, size_t i, struct slice oid,
			      uint8_t *memory)
{
	struct column *column = &op->columns[i];
	uint8_t *end = memory + room_of(op->kind, oid);
	memcpy(memory, oid.data, oid.len);
	*column = (struct column){.root = {(char *)memory, oid.len},
				  .last = memory,
				  .len = (uint16_t)oid.len,
				  .cap = 0};
	if (op->kind == OP_WALK) {
		column->last = memory + oid.len;
		column->cap = (uint16_t)(end - column->last);
		column_set(column, oid);
	}
	op->ends[i] = SNMP_COLUMN_OPEN;
	op->errors[i] = 0;
	return end;
}

/* Most operations have the same size, which is too large for what malloc is quick with. */
static struct snmp_operation *take_memory(struct snmp_client *client, size_t bytes)
{
	struct snmp_operation *op = client->spare;
	bool common = bytes <= COMMON_OPERATION_BYTES;
	if (!op || !common)
		return mem_alloc(common ? COMMON_OPERATION_BYTES : bytes);
	client->spare = op->next_spare;
	client->spare_count--;
	return op;
}

static void give_memory(struct snmp_client *client, struct snmp_operation *op)
{
	if (!op->common || client->spare_count == SPARE_OPERATIONS_MAX) {
		mem_free(op);
		return;
	}
	op->next_spare = client->spare;
	client->spare = op;
	client->spare_count++;
}

struct snmp_operation *op_new(struct snmp_device *device, enum op_kind kind,
			      const struct slice *oids, size_t count)
{
	size_t bytes = sizeof(struct snmp_operation) + sizeof(struct column);
	for (size_t i = 0; i < count; i++)
		bytes += sizeof(struct column) + sizeof(enum snmp_column_end) + sizeof(int) +
			 sizeof(uint16_t) + room_of(kind, oids[i]);
	struct snmp_operation *op = take_memory(device->client, bytes);
	memset(op, 0, offsetof(struct snmp_operation, memory));
	op->common = bytes <= COMMON_OPERATION_BYTES;
	op->device = device;
	op->client = device->client;
	op->kind = kind;
	op->columns = (struct column *)(op + 1);
	op->ends = (enum snmp_column_end *)(op->columns + count);
	op->errors = (int *)(op->ends + count);
	op->picked = (uint16_t *)(op->errors + count);
	op->column_count = op->open_count = count;
	uint8_t *memory = (uint8_t *)(op->picked + count);
	for (size_t i = 0; i < count; i++)
		memory = set_up_column(op, i, oids[i], memory);
	link_init(&op->of_device);
	link_init(&op->waiting);
	link_init(&op->wheel);
	link_append(&device->operations, &op->of_device);
	device->operation_count++;
	return op;
}

static void fetch(const void *memory, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += CACHE_LINE_BYTES)
		__builtin_prefetch((const char *)memory + at, 1);
}

void op_foresee(const struct snmp_operation *op)
{
	fetch(op, offsetof(struct snmp_operation, memory));
}

void op_foresee_more(const struct snmp_operation *op)
{
	fetch(op->columns, COLUMNS_FETCHED_BYTES);
	fetch(op->device, CACHE_LINE_BYTES);
	fetch(op->owner, CACHE_LINE_BYTES);
}

void op_free_spare(struct snmp_client *client)
{
	for (struct snmp_operation *next; client->spare; client->spare = next) {
		next = client->spare->next_spare;
		mem_free(client->spare);
	}
}

static void detach(struct snmp_operation *op)
{
	if (!op->device)
		return;
	link_remove(&op->waiting);
	op_unsend(op);
	link_remove(&op->of_device);
	op->device->operation_count--;
	op->device = NULL;
}

void op_free(struct snmp_operation *op)
{
	detach(op);
	if (op->current)
		return; /* whoever calls its event frees it */
	for (size_t i = 0; i < op->column_count; i++)
		if (op->columns[i].own)
			mem_free(op->columns[i].last);
	give_memory(op->client, op);
}

void op_end(struct snmp_operation *op, int err, const char *sentence)
{
	const struct snmp_result result = {
		.err = err,
		.sentence = sentence,
		.ends = op->ends,
		.errors = op->errors,
		.count = op->column_count,
		.requests = op->requests,
		.retries = op->retries,
	};
	link_remove(&op->waiting);
	op_unsend(op);
	op->current = true;
	op->events.done(op->owner, &result);
	op->current = false;
	op_free(op);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

static bool is_bulk(const struct snmp_operation *op)
{
	return op->kind == OP_WALK && op->device->login->version != SNMP_V1;
}

static void put_scalars_first(struct snmp_operation *op)
{
	op->picked_scalars = 0;
	for (size_t i = 0; is_bulk(op) && i < op->picked_count; i++) {
		uint16_t column = op->picked[i], *to = &op->picked[op->picked_scalars];
		if (!op->columns[column].scalar)
			continue;
		memmove(to + 1, to, (i - op->picked_scalars) * sizeof(*to));
		*to = column;
		op->picked_scalars++;
	}
}

/* How many rows are left, one more than there were last time; 0: nobody knows. */
static unsigned rows_left(const struct snmp_operation *op)
{
	return op->rows_known && op->rows <= op->rows_known ? op->rows_known - op->rows + 1 : 0;
}

static bool is_open(const struct snmp_operation *op, size_t column)
{
	return op->ends[column] == SNMP_COLUMN_OPEN;
}

/* Whether all that is left should come with the next reply. */
static bool should_end(const struct snmp_operation *op)
{
	size_t closing = 0, scalars = 0, tables = 0, left = rows_left(op);
	for (size_t i = 0; i < op->column_count; i++) {
		const struct column *column = &op->columns[i];
		size_t *kind = column->closing ? &closing : column->scalar ? &scalars : &tables;
		*kind += is_open(op, i);
	}
	if (!scalars && !tables)
		return true;
	if (op->single || op->repeats_doubtful || (tables && !left))
		return false;
	return closing + scalars + tables * left <= op->device->varbinds_max;
}

void op_pick(struct snmp_operation *op)
{
	bool last = should_end(op);
	size_t columns_max = op->single ? 1 : op->device->varbinds_max, bytes = 0, at = op->next;
	op->picked_count = 0;
	for (size_t i = 0; i < op->column_count; i++, at++) {
		at = at < op->column_count ? at : 0;
		if (!is_open(op, at) || (op->columns[at].closing && !last))
			continue;
		bytes += op->columns[at].len + VARBIND_OVERHEAD_BYTES;
		if (op->picked_count &&
		    (op->picked_count == columns_max || bytes > REQUEST_VARBINDS_MAX_BYTES))
			break;
		op->picked[op->picked_count++] = (uint16_t)at;
	}
	op->next = at < op->column_count ? at : 0;
	put_scalars_first(op);
}

static unsigned smaller(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

static unsigned rows_of(const struct snmp_operation *op, unsigned scalars, unsigned repeated)
{
	const struct snmp_device *device = op->device;
	if (!is_bulk(op) || !repeated || device->varbinds_max < scalars + repeated)
		return 1;
	unsigned rows = (device->varbinds_max - scalars) / repeated;
	if (device->options.repetitions_max)
		rows = smaller(rows, device->options.repetitions_max);
	if (rows_left(op))
		rows = smaller(rows, rows_left(op));
	return rows;
}

/* How much is asked for by this attempt. */
static struct attempt make_attempt(const struct snmp_operation *op)
{
	unsigned columns = smaller((unsigned)op->picked_count, op->device->varbinds_max);
	unsigned scalars = smaller((unsigned)op->picked_scalars, columns);
	return (struct attempt){
		.columns = (uint16_t)columns,
		.scalars = (uint16_t)scalars,
		.rows = (uint16_t)rows_of(op, scalars, columns - scalars),
		.at_ms = op->attempts[op->attempt].at_ms,
	};
}

void op_build(struct snmp_operation *op)
{
	const struct snmp_device *device = op->device;
	const struct snmp_login *login = device->login;
	struct ber_writer w = ber_writer_of(op->memory, sizeof(op->memory));
	const uint8_t *end = w.at;
	struct attempt *attempt = &op->attempts[op->attempt];
	*attempt = make_attempt(op);
	bool bulk = is_bulk(op) && attempt->columns > attempt->scalars;
	struct snmp_pdu pdu = {
		.type = op->kind != OP_WALK ? SNMP_GET
			: bulk              ? SNMP_GETBULK
					    : SNMP_GETNEXT,
		.request_id = (int32_t)op_id(op, op->attempt),
		.error_status = bulk ? attempt->scalars : 0,
		.error_index = bulk ? attempt->rows : 0,
	};
	for (size_t i = attempt->columns; i-- > 0;) {
		const struct column *column = &op->columns[op->picked[i]];
		snmp_put_name(&w, (struct slice){(char *)column->last, column->len});
	}
	snmp_put_pdu(&w, &pdu, end);
	if (login->version != SNMP_V3)
		snmp_put_message(&w, login->version, login->community, end);
	ASSERT(!w.full);
	op->message = (struct slice){(char *)w.at, (size_t)(end - w.at)};
}

/* ---- How much to ask for --------------------------------------------------------------------- */

void device_shrink(struct snmp_device *device, bool for_good)
{
	if (device->varbinds_max > 1)
		device->varbinds_max /= 2;
	if (for_good)
		device->varbinds_limit = device->varbinds_max;
}

void device_forget_size(struct snmp_device *device, size_t varbinds)
{
	if (varbinds > FEW_VARBINDS)
		return;
	device->varbinds_max = VARBINDS_START;
	if (device->varbinds_max > device->varbinds_limit)
		device->varbinds_max = device->varbinds_limit;
}

static void learn_size(struct snmp_device *device, size_t varbinds, size_t bytes)
{
	size_t fit = device->options.reply_max_bytes * varbinds / bytes;
	size_t wanted = device->varbinds_max;
	if (varbinds * 2 > wanted)
		wanted += wanted / 8 + 1;
	if (varbinds * 4 > device->varbinds_max && wanted > fit)
		wanted = fit; /* few varbinds say little about many */
	if (wanted > device->varbinds_limit)
		wanted = device->varbinds_limit;
	device->varbinds_max = wanted ? (unsigned)wanted : 1;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void close_column(struct snmp_operation *op, size_t column, enum snmp_column_end end)
{
	if (op->ends[column] != SNMP_COLUMN_OPEN)
		return;
	op->ends[column] = end;
	op->open_count--;
}

/* Hands over what came. False: the operation is gone. */
static bool deliver(struct snmp_operation *op, size_t count)
{
	const struct snmp_client *client = op->device->client;
	const struct snmp_reply reply = {client->wall_ms, client->cells, count};
	if (!count)
		return true;
	stat_add(STAT_snmp_varbinds, (int64_t)count);
	op->current = true;
	op->events.reply(op->owner, &reply);
	op->current = false;
	if (op->device)
		return true;
	op_free(op);
	return false;
}

static struct known_walk *known_walk(const struct snmp_operation *op)
{
	return &op->device->known[op->known_key % KNOWN_WALKS];
}

static void recall_walk(struct snmp_operation *op)
{
	uint64_t key = op->column_count;
	for (size_t i = 0; i < op->column_count; i++)
		key = hash64(op->columns[i].root.data, op->columns[i].root.len, key);
	op->known_key = (uint32_t)key;
	if (known_walk(op)->key == op->known_key)
		op->rows_known = known_walk(op)->rows;
}

static void go_on(struct snmp_operation *op, bool moved)
{
	op->idle = moved ? 0 : op->idle + 1;
	if (op->open_count == 0) {
		if (op->kind == OP_WALK)
			*known_walk(op) = (struct known_walk){op->known_key, op->rows};
		op_end(op, 0, "");
	} else if (op->idle >= IDLE_REPLIES_MAX) {
		op_end(op, ERR_INVALID, "the device answers without giving anything");
	} else {
		op_wait(op);
	}
}

static const struct slice none = {NULL, 0};

static struct slice index_behind(struct slice root, struct slice oid)
{
	return (struct slice){oid.data + root.len, oid.len - root.len};
}

/* Which column of the request the next varbind is of. */
static size_t place_after(const struct attempt *asked, size_t at)
{
	if (at + 1 < asked->columns)
		return at + 1;
	return asked->scalars < asked->columns ? asked->scalars : 0;
}

/* Reading a reply's varbinds into the client's cells and runs.
 *
 * Devices send a row's values side by side, so that a name is expected to be its column's root and
 * the index of the value before it; and most tables count their rows, so that the next row is
 * expected to have the next index. A name that is so, byte for byte, need not be looked at
 * otherwise. */
struct reading {
	const struct snmp_operation *op;
	const struct attempt *asked;
	struct ber *varbinds;
	struct slice index; /* of the last cell whose name was looked at; at first of its column */
	size_t count, at, count_max, run_count, unreadable;
};

static struct slice root_at(const struct reading *r)
{
	return r->op->columns[r->op->picked[r->at]].root;
}

static struct snmp_cell *next_cell(struct reading *r)
{
	struct snmp_cell *cell = &r->op->device->client->cells[r->count++];
	cell->column = r->op->picked[r->at];
	r->at = place_after(r->asked, r->at);
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

static bool read_next_row(struct reading *r, struct run *run)
{
	uint8_t memory[FORESEEN_INDEX_MAX_BYTES];
	struct snmp_cell *cell = &r->op->device->client->cells[r->count];
	struct slice root = root_at(r), index;
	if (r->at != r->asked->scalars || !count_on(r->index, memory, &index) ||
	    !snmp_next_number(r->varbinds, root, index, &cell->oid, &cell->value))
		return false;
	run->from = r->index.data;
	r->index = cell->index = index_behind(root, cell->oid);
	(void)next_cell(r);
	return true;
}

/* A name that has to be looked at: its cell has no index yet. */
static bool read_any(struct reading *r)
{
	struct snmp_varbind varbind;
	struct slice root = root_at(r);
	if (!snmp_next(r->varbinds, &varbind))
		return false;
	struct snmp_cell *cell = next_cell(r);
	cell->oid = varbind.oid;
	cell->value = varbind.value;
	cell->index = none;
	r->unreadable += varbind.value.type == SNMP_UNREADABLE;
	if (r->op->kind == OP_WALK && oid_has_prefix(varbind.oid, root))
		r->index = index_behind(root, varbind.oid);
	return true;
}

static void read_beside(struct reading *r)
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

static bool read_run(struct reading *r)
{
	struct run *run = &r->op->device->client->runs[r->run_count];
	*run = (struct run){.begin = (uint32_t)r->count, .place = (uint16_t)r->at};
	if (r->count > r->count_max || (!read_next_row(r, run) && !read_any(r)))
		return false;
	read_beside(r);
	run->count = (uint32_t)r->count - run->begin;
	r->run_count++;
	return true;
}

/* Where the first column of the rows stands that were asked for. */
static struct slice index_before(const struct snmp_operation *op, const struct attempt *asked)
{
	if (op->kind != OP_WALK || asked->scalars == asked->columns)
		return none;
	const struct column *column = &op->columns[op->picked[asked->scalars]];
	return index_behind(column->root, (struct slice){(char *)column->last, column->len});
}

/* How many runs; *count: of cells. SIZE_MAX: bad, or more than was asked for. */
static size_t read_cells(const struct snmp_operation *op, struct snmp_pdu *pdu,
			 const struct attempt *asked, size_t *count)
{
	struct reading r = {
		.op = op,
		.asked = asked,
		.varbinds = &pdu->varbinds,
		.index = index_before(op, asked),
		/* Of agents that do not know of non-repeaters. */
		.count_max = (size_t)asked->columns * asked->rows,
	};
	if (r.count_max > SNMP_REPLY_VARBINDS_MAX)
		r.count_max = SNMP_REPLY_VARBINDS_MAX;
	while (read_run(&r))
		;
	if (r.unreadable)
		stat_add(STAT_snmp_unreadable, (int64_t)r.unreadable);
	*count = r.count;
	return pdu->varbinds.bad || r.count > r.count_max ? SIZE_MAX : r.run_count;
}

/* Whether this name belongs to the walk of its column, behind `before`, or is the end of it. */
static enum snmp_column_end look_at(const struct snmp_operation *op, struct snmp_cell *cell,
				    struct slice before)
{
	struct slice root = op->columns[cell->column].root;
	if (cell->value.type >= SNMP_NO_SUCH_OBJECT && cell->value.type <= SNMP_END_OF_MIB_VIEW)
		return SNMP_COLUMN_ENDED;
	if (oid_compare(cell->oid, before) <= 0)
		return SNMP_COLUMN_LOOPED;
	if (!oid_has_prefix(cell->oid, root))
		return SNMP_COLUMN_ENDED;
	cell->index = index_behind(root, cell->oid);
	return SNMP_COLUMN_OPEN;
}

/* Where a walk of a column stood, and stands. */
struct step {
	struct slice from, to;
};

/* A reply on its way to the walk's owner. */
struct taking {
	struct snmp_operation *op;
	const struct attempt *asked;
	struct snmp_cell *cells;
	size_t kept, repeated_end; /* behind the last one that was kept and is no scalar */
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
static bool goes_beside(const struct taking *t, const struct snmp_cell *cell, size_t at)
{
	const struct step *step = &t->step;
	if (!cell->index.data || cell->index.data != step->to.data)
		return false;
	return t->index[at] == step->from.data ||
	       slice_equal(index_behind(t->op->columns[cell->column].root, t->last[at]),
			   step->from);
}

/* The cell at `i`, of the column at `at`: kept, or the end of its column. False: what follows is
 * not to be looked at. */
static bool take_cell(struct taking *t, size_t i, size_t at)
{
	struct snmp_cell *cell = &t->cells[i];
	const struct column *column = &t->op->columns[cell->column];
	bool behind_scalars = t->asked->scalars && i >= t->asked->columns;
	if (!goes_beside(t, cell, at)) {
		enum snmp_column_end end = look_at(t->op, cell, t->last[at]);
		/* An agent that does not know of non-repeaters gives other columns from the second
		 * row on. An end is believed where it does, or is seen without them. */
		if (end != SNMP_COLUMN_OPEN && behind_scalars && !t->op->repeats_right) {
			t->op->repeats_doubtful = true;
			return false;
		}
		if (end != SNMP_COLUMN_OPEN) {
			stat_add(STAT_snmp_loops, end == SNMP_COLUMN_LOOPED);
			close_column(t->op, cell->column, end);
			return true;
		}
		t->step = (struct step){index_behind(column->root, t->last[at]), cell->index};
	}
	t->even &= column->scalar;
	t->op->repeats_right |= behind_scalars;
	t->closing |= column->closing;
	t->last[at] = cell->oid;
	t->index[at] = cell->index.data;
	if (&t->cells[t->kept] != cell)
		t->cells[t->kept] = *cell;
	t->kept++;
	if (column->scalar)
		close_column(t->op, cell->column, SNMP_COLUMN_ENDED);
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
		if (is_open(op, i) && !op->columns[i].closing)
			return false;
	return true;
}

/* Others go on: what closing ones say now is not what they will say then. */
static void drop_closing(struct taking *t)
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

/* The cells of a run, one by one. False: what follows is not to be looked at. */
static bool take_run(struct taking *t, const struct run *run)
{
	size_t at = run->place, end = run->begin + run->count;
	for (size_t i = run->begin; i < end; i++, at = place_after(t->asked, at))
		if (is_open(t->op, t->cells[i].column) && !take_cell(t, i, at))
			return false;
	return true;
}

/* A whole row, as nearly all are: since all columns stand at one index, what is behind it for the
 * first of them is so for the others. False: it is none, and nothing was done. */
static bool take_row(struct taking *t, const struct run *run)
{
	const struct attempt *asked = t->asked;
	struct snmp_cell *first = &t->cells[run->begin];
	if (!t->even || run->place != asked->scalars || t->kept != run->begin ||
	    run->count != (size_t)asked->columns - asked->scalars)
		return false;
	struct slice before = t->row_at == SIZE_MAX ? t->last[run->place] : t->cells[t->row_at].oid;
	if ((!run->from || run->from != t->row.data) &&
	    look_at(t->op, first, before) != SNMP_COLUMN_OPEN)
		return false;
	t->row = first->index;
	t->row_at = run->begin;
	t->kept = t->repeated_end = run->begin + run->count;
	t->op->repeats_right |= asked->scalars && run->begin >= asked->columns;
	return true;
}

static void settle_rows(struct taking *t)
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

static bool stands_even(const struct taking *t)
{
	const struct snmp_operation *op = t->op;
	for (size_t at = t->asked->scalars; at < t->asked->columns; at++) {
		const struct column *column = &op->columns[op->picked[at]];
		if (column->scalar || !is_open(op, op->picked[at]) ||
		    !slice_equal(index_behind(column->root, t->last[at]), t->row))
			return false;
	}
	return true;
}

static void take_begin(struct taking *t, struct snmp_operation *op, const struct attempt *asked)
{
	t->op = op;
	t->asked = asked;
	t->cells = op->device->client->cells;
	t->kept = t->repeated_end = 0;
	t->closing = false;
	t->step = (struct step){none, none};
	for (size_t i = 0; i < asked->columns; i++) {
		const struct column *column = &op->columns[op->picked[i]];
		t->last[i] = (struct slice){(char *)column->last, column->len};
		t->index[i] = NULL;
	}
	t->row_at = SIZE_MAX;
	t->row = index_before(op, asked);
	t->even = stands_even(t);
}

/* Keeps the cells that the walk is of, and where each column stands now. */
static size_t take_rows(struct snmp_operation *op, size_t run_count, const struct attempt *asked)
{
	const struct run *runs = op->device->client->runs;
	struct taking t;
	take_begin(&t, op, asked);
	for (size_t i = 0; i < run_count; i++) {
		if (take_row(&t, &runs[i]))
			continue;
		settle_rows(&t);
		if (!take_run(&t, &runs[i]))
			break;
	}
	settle_rows(&t);
	for (size_t i = 0; i < asked->columns; i++) {
		struct column *column = &op->columns[op->picked[i]];
		if (t.last[i].data != (char *)column->last && !column->scalar)
			column_set(column, t.last[i]);
	}
	if (t.closing && !all_but_closing_ended(op))
		drop_closing(&t);
	op->rows += rows_until(asked, t.repeated_end);
	return t.kept;
}

/* Of a get, each name has to be the one that was asked for. */
static bool names_are_those(const struct snmp_operation *op, const struct snmp_cell *cells,
			    size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!slice_equal(cells[i].oid, op->columns[cells[i].column].root))
			return false;
	return true;
}

static void take_values(struct snmp_operation *op, struct snmp_pdu *pdu,
			const struct attempt *asked, size_t reply_bytes)
{
	struct snmp_device *device = op->device;
	struct snmp_cell *cells = device->client->cells;
	size_t open = op->open_count, count;
	size_t run_count = read_cells(op, pdu, asked, &count);
	if (run_count == SIZE_MAX) {
		stat_add(pdu->varbinds.bad ? STAT_snmp_ignored_malformed
					   : STAT_snmp_ignored_content,
			 1);
		return;
	}
	if (op->kind == OP_GET && !names_are_those(op, cells, count)) {
		stat_add(STAT_snmp_ignored_content, 1);
		return;
	}
	stat_add(STAT_snmp_replies, 1);
	op_unsend(op);
	if (count)
		learn_size(device, count, reply_bytes);
	if (op->kind == OP_WALK)
		count = take_rows(op, run_count, asked);
	for (size_t i = 0; op->kind == OP_GET && i < count; i++)
		close_column(op, cells[i].column, SNMP_COLUMN_ENDED);
	bool moved = count || op->open_count < open;
	if (deliver(op, count))
		go_on(op, moved);
}

/* What was asked for is halved; a column alone that is too big ends the operation. */
static void take_too_big(struct snmp_operation *op, size_t asked)
{
	struct snmp_device *device = op->device;
	stat_add(STAT_snmp_too_big, 1);
	if (asked <= 1) {
		op_end(op, ERR_INVALID, "one value alone is too big for the device's reply");
		return;
	}
	if (device->varbinds_max > asked)
		device->varbinds_max = (unsigned)asked;
	device_shrink(device, true);
	op_wait(op);
}

/* One column is in error: the others are asked for again without it. */
static void take_error(struct snmp_operation *op, size_t column, int status)
{
	struct snmp_cell *cell = op->device->client->cells;
	bool missing = status == SNMP_NO_SUCH_NAME;
	op->errors[column] = missing ? 0 : status;
	close_column(op, column, missing ? SNMP_COLUMN_ENDED : SNMP_COLUMN_REFUSED);
	*cell = (struct snmp_cell){.column = column,
				   .oid = op->columns[column].root,
				   .value = {.type = SNMP_NO_SUCH_OBJECT}};
	if (deliver(op, missing && op->kind == OP_GET ? 1 : 0))
		go_on(op, true);
}

void op_reply(struct snmp_operation *op, unsigned attempt, struct snmp_pdu *pdu, size_t reply_bytes)
{
	const struct attempt asked = op->attempts[attempt];
	size_t index = (size_t)pdu->error_index;
	device_measure(op->device, op, attempt);
	if (pdu->error_status == SNMP_NO_ERROR) {
		take_values(op, pdu, &asked, reply_bytes);
		return;
	}
	stat_add(STAT_snmp_replies, 1);
	op_unsend(op);
	if (pdu->error_status == SNMP_TOO_BIG) {
		take_too_big(op, attempt_varbinds(&asked));
	} else if (index >= 1 && index <= asked.columns) {
		take_error(op, op->picked[index - 1], pdu->error_status);
	} else if (asked.columns == 1) {
		take_error(op, op->picked[0], pdu->error_status);
	} else {
		op->single = true;
		op_wait(op);
	}
}

/* ---- What callers call ----------------------------------------------------------------------- */

static int begin(struct snmp_device *device, enum op_kind kind, const struct slice *oids,
		 const enum snmp_column_kind *kinds, size_t count, const struct snmp_events *events,
		 void *owner, struct snmp_operation **out)
{
	if (count == 0 || count > SNMP_COLUMNS_MAX)
		return ERR_LIMIT;
	if (device->operation_count >= SNMP_OPERATIONS_MAX)
		return ERR_BUSY;
	for (size_t i = 0; i < count; i++)
		ASSERT(oid_valid(oids[i]));
	struct snmp_operation *op = op_new(device, kind, oids, count);
	for (size_t i = 0; kinds && i < count; i++) {
		op->columns[i].scalar = kinds[i] != SNMP_COLUMN_TABLE;
		op->columns[i].closing = kinds[i] == SNMP_COLUMN_CLOSING;
	}
	if (kind == OP_WALK)
		recall_walk(op);
	op->events = *events;
	op->owner = owner;
	op_wait(op);
	device->client->port->wake(device->client->port);
	if (out)
		*out = op;
	return 0;
}

int snmp_get(struct snmp_device *device, const struct slice *oids, size_t count,
	     const struct snmp_events *events, void *owner, struct snmp_operation **operation)
{
	return begin(device, OP_GET, oids, NULL, count, events, owner, operation);
}

int snmp_walk(struct snmp_device *device, const struct slice *columns,
	      const enum snmp_column_kind *kinds, size_t count, const struct snmp_events *events,
	      void *owner, struct snmp_operation **operation)
{
	return begin(device, OP_WALK, columns, kinds, count, events, owner, operation);
}

void snmp_cancel(struct snmp_operation *operation)
{
	op_free(operation);
}
