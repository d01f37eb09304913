/* How an operation chooses what to ask next, and what it does with the answer.
 *
 * A walk asks GETBULK for as many open columns as fit into a reply, and as many rows of these as
 * then fit; with more columns than that they take turns. Each column goes on after its own last
 * name, so that an answer cut anywhere is no special case. Version 1 has GETNEXT, one row. Columns
 * that are scalars stand first, asked for once (non-repeaters); where no others are left, by
 * GETNEXT. Closing ones wait until the others have ended, or go with the request that should end
 * them; where it does not, they are asked for again.
 *
 * How many varbinds a device is asked for is learnt: a little more after each reply while the bytes
 * allow it, half after tooBig (and never more than that again) and after a time-out. */
#include "base/hash.h"
#include "snmp/private.h"

enum {
	VARBIND_OVERHEAD_BYTES = 8,
	FEW_VARBINDS = 4,
	CACHE_LINE_BYTES = 64,
	COLUMNS_FETCHED_BYTES = 1024, /* a dozen columns, and where they stand */
};

/* ---- Life ------------------------------------------------------------------------------------ */

/* A walk has room for most of the names that it will see. */
static size_t room_of(enum op_kind kind, struct slice oid)
{
	return kind == OP_WALK ? 2 * oid.len + COLUMN_SPARE_BYTES : oid.len;
}

static uint8_t *set_up_column(struct snmp_operation *op, size_t i, struct slice oid,
			      uint8_t *memory)
{
	struct op_column *column = &op->columns[i];
	uint8_t *end = memory + room_of(op->kind, oid);
	memcpy(memory, oid.data, oid.len);
	*column = (struct op_column){.root = {(char *)memory, oid.len},
				     .last = memory,
				     .len = (uint16_t)oid.len,
				     .cap = 0};
	if (op->kind == OP_WALK) {
		column->last = memory + oid.len;
		column->cap = (uint16_t)(end - column->last);
		op_column_set(column, oid);
	}
	op->ends[i] = SNMP_COLUMN_OPEN;
	op->errors[i] = 0;
	return end;
}

/* Most operations have the same size, which is too large for what malloc is quick with. */
static struct snmp_operation *op_acquire_memory(struct snmp_client *client, size_t bytes)
{
	struct snmp_operation *op = client->spare;
	bool common = bytes <= COMMON_OPERATION_BYTES;
	if (!op || !common)
		return mem_alloc(common ? COMMON_OPERATION_BYTES : bytes);
	client->spare = op->next_spare;
	client->spare_count--;
	return op;
}

static void op_release_memory(struct snmp_client *client, struct snmp_operation *op)
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
	size_t bytes = sizeof(struct snmp_operation) + sizeof(struct op_column);
	for (size_t i = 0; i < count; i++)
		bytes += sizeof(struct op_column) + sizeof(enum snmp_column_end) + sizeof(int) +
			 sizeof(uint16_t) + room_of(kind, oids[i]);
	struct snmp_operation *op = op_acquire_memory(device->client, bytes);
	memset(op, 0, offsetof(struct snmp_operation, memory));
	op->common = bytes <= COMMON_OPERATION_BYTES;
	op->device = device;
	op->client = device->client;
	op->kind = kind;
	op->columns = (struct op_column *)(op + 1);
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

static void op_fetch(const void *memory, size_t bytes)
{
	for (size_t at = 0; at < bytes; at += CACHE_LINE_BYTES)
		__builtin_prefetch((const char *)memory + at, 1);
}

void op_foresee(const struct snmp_operation *op)
{
	op_fetch(op, offsetof(struct snmp_operation, memory));
}

void op_foresee_more(const struct snmp_operation *op)
{
	op_fetch(op->columns, COLUMNS_FETCHED_BYTES);
	op_fetch(op->device, CACHE_LINE_BYTES);
	op_fetch(op->owner, CACHE_LINE_BYTES);
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
	op_release_memory(op->client, op);
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

/* Whether all that is left should come with the next reply. */
static bool should_end(const struct snmp_operation *op)
{
	size_t closing = 0, scalars = 0, tables = 0, left = rows_left(op);
	for (size_t i = 0; i < op->column_count; i++) {
		const struct op_column *column = &op->columns[i];
		size_t *kind = column->closing ? &closing : column->scalar ? &scalars : &tables;
		*kind += op_is_open(op, i);
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
		if (!op_is_open(op, at) || (op->columns[at].closing && !last))
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

static unsigned op_rows_of(const struct snmp_operation *op, unsigned scalars, unsigned repeated)
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
		.rows = (uint16_t)op_rows_of(op, scalars, columns - scalars),
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
		const struct op_column *column = &op->columns[op->picked[i]];
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

/* Hands over what came. False: the operation is gone. */
static bool op_deliver(struct snmp_operation *op, size_t count)
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

static void op_go_on(struct snmp_operation *op, bool moved)
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

/* In a get, each name has to be the one that was asked for. */
static bool names_are_those(const struct snmp_operation *op, const struct snmp_cell *cells,
			    size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!slice_equal(cells[i].oid, op->columns[cells[i].column].root))
			return false;
	return true;
}

static void op_accept_values(struct snmp_operation *op, struct snmp_pdu *pdu,
			     const struct attempt *asked, size_t reply_bytes)
{
	struct snmp_device *device = op->device;
	struct snmp_cell *cells = device->client->cells;
	size_t open = op->open_count, count;
	size_t span_count = op_read_cells(op, pdu, asked, &count);
	if (span_count == SIZE_MAX) {
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
		count = op_accept_rows(op, span_count, asked);
	for (size_t i = 0; op->kind == OP_GET && i < count; i++)
		op_close_column(op, cells[i].column, SNMP_COLUMN_ENDED);
	bool moved = count || op->open_count < open;
	if (op_deliver(op, count))
		op_go_on(op, moved);
}

/* The next request is half as long; a column alone that is too big ends the operation. */
static void op_accept_too_big(struct snmp_operation *op, size_t asked)
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
static void op_accept_error(struct snmp_operation *op, size_t column, int status)
{
	struct snmp_cell *cell = op->device->client->cells;
	bool missing = status == SNMP_NO_SUCH_NAME;
	op->errors[column] = missing ? 0 : status;
	op_close_column(op, column, missing ? SNMP_COLUMN_ENDED : SNMP_COLUMN_REFUSED);
	*cell = (struct snmp_cell){.column = column,
				   .oid = op->columns[column].root,
				   .value = {.type = SNMP_NO_SUCH_OBJECT}};
	if (op_deliver(op, missing && op->kind == OP_GET ? 1 : 0))
		op_go_on(op, true);
}

void op_reply(struct snmp_operation *op, unsigned attempt, struct snmp_pdu *pdu, size_t reply_bytes)
{
	const struct attempt asked = op->attempts[attempt];
	size_t index = (size_t)pdu->error_index;
	device_measure(op->device, op, attempt);
	if (pdu->error_status == SNMP_NO_ERROR) {
		op_accept_values(op, pdu, &asked, reply_bytes);
		return;
	}
	stat_add(STAT_snmp_replies, 1);
	op_unsend(op);
	if (pdu->error_status == SNMP_TOO_BIG) {
		op_accept_too_big(op, attempt_varbinds(&asked));
	} else if (index >= 1 && index <= asked.columns) {
		op_accept_error(op, op->picked[index - 1], pdu->error_status);
	} else if (asked.columns == 1) {
		op_accept_error(op, op->picked[0], pdu->error_status);
	} else {
		op->single = true;
		op_wait(op);
	}
}

/* ---- What callers call ----------------------------------------------------------------------- */

static int op_begin(struct snmp_device *device, enum op_kind kind, const struct slice *oids,
		    const enum snmp_column_kind *kinds, size_t count,
		    const struct snmp_events *events, void *owner, struct snmp_operation **out)
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
	return op_begin(device, OP_GET, oids, NULL, count, events, owner, operation);
}

int snmp_walk(struct snmp_device *device, const struct slice *columns,
	      const enum snmp_column_kind *kinds, size_t count, const struct snmp_events *events,
	      void *owner, struct snmp_operation **operation)
{
	return op_begin(device, OP_WALK, columns, kinds, count, events, owner, operation);
}

void snmp_cancel(struct snmp_operation *operation)
{
	op_free(operation);
}
