/* Shared by the files of the client only, and by its tests: the client without a loop, on any clock
 * and above anything that takes datagrams. */
#ifndef SNMP_PRIVATE_H
#define SNMP_PRIVATE_H

#include <stdatomic.h>

#include "base/mem.h"
#include "base/stats.h"
#include "snmp/client.h"

enum {
	SLOT_BITS = 16,
	ATTEMPT_BITS = 3,
	GENERATION_BITS = 11,
	GENERATIONS = 1 << GENERATION_BITS,
	SLOTS = 1 << SLOT_BITS,
	ID_MARK = 1 << 30, /* our ids have it: 4 bytes in the shortest form */
	WHEEL_SLOTS = 1024,
	WHEEL_MS = 10, /* of one of these */
	BATCH_MAX = 32,
	REQUEST_MAX_BYTES = 1400, /* of the varbinds and headers: one datagram without fragments */
	REQUEST_VARBINDS_MAX_BYTES = REQUEST_MAX_BYTES - SNMP_COMMUNITY_MAX_BYTES - 64,
	MESSAGE_MAX_BYTES = 2048, /* with what version 3 adds */
	REPLY_MAX_BYTES = 8192,   /* a longer one is cut, and not taken */
	VARBINDS_START = 32,
	TIME_UNKNOWN_RETRIES = 2, /* resyncs, discoveries of one operation */
	IDLE_REPLIES_MAX = 3,     /* that bring nothing */
	KNOWN_WALKS = 4,          /* of a device */
	SPARE_OPERATIONS_MAX = 256,
	COLUMN_SPARE_BYTES = 16,
	COMMON_OPERATION_BYTES = 4096, /* of operations that are kept as spare ones */
};

/* ---- Lists ----------------------------------------------------------------------------------- */

struct link {
	struct link *prev, *next; /* to itself: in no list */
};

static inline void link_init(struct link *link)
{
	link->prev = link->next = link;
}

static inline bool link_alone(const struct link *link)
{
	return link->next == link;
}

static inline void link_remove(struct link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	link_init(link);
}

static inline void link_append(struct link *list, struct link *link)
{
	link_remove(link);
	link->prev = list->prev;
	link->next = list;
	list->prev->next = link;
	list->prev = link;
}

/* ---- Structures ------------------------------------------------------------------------------ */

struct snmp_login {
	_Atomic unsigned holders;
	enum snmp_version version;
	enum snmp_level level;
	enum usm_auth auth;
	enum usm_priv priv;
	struct usm_key auth_key, priv_key; /* of the passwords */
	struct slice community, user, context, engine_id;
	char memory[]; /* of these */
};

/* Takes datagrams. */
struct snmp_port {
	size_t (*send)(struct snmp_port *port, const struct loop_outgoing *outgoing, size_t count);
	/* Something is to be sent: call snmp_client_tick soon. */
	void (*wake)(struct snmp_port *port);
};

/* The engine of a device, as far as it is known. */
struct session {
	bool known;     /* its id, and so the keys */
	bool authentic; /* boots and time come from a signed message */
	struct slice engine_id;
	char engine_memory[USM_ENGINE_ID_MAX_BYTES];
	uint32_t boots, time;
	uint32_t latest; /* the greatest time that a signed message had */
	int64_t at_ms;   /* when `time` was */
	struct usm_key auth_key, priv_key;
	struct snmp_operation *discovery; /* NULL: none under way */
};

/* How long a table was when it was walked last: one row more is asked for, to see its end, and no
 * others after it. */
struct known_walk {
	uint32_t key; /* of its columns */
	uint32_t rows;
};

struct snmp_device {
	struct snmp_client *client;
	struct loop_address address;
	struct snmp_login *login;
	struct snmp_device_options options;
	struct session session;
	unsigned srtt_ms, rttvar_ms; /* RFC 6298, times 8 and 4 */
	unsigned varbinds_max;
	unsigned varbinds_limit; /* what tooBig has taught */
	unsigned in_flight, operation_count;
	struct link operations;               /* all */
	struct link waiting;                  /* those that want to send */
	struct link ready;                    /* in client->ready while there is one that may */
	struct known_walk known[KNOWN_WALKS]; /* a hint, by key */
};

enum op_kind { OP_GET, OP_WALK, OP_DISCOVER };

/* A column of a walk, or an object of a get. */
struct op_column {
	struct slice root;
	uint8_t *last; /* where a walk stands; of a get the root */
	uint16_t len, cap;
	bool own;     /* `last` has outgrown the operation's memory */
	bool scalar;  /* of a walk: ends with its first value */
	bool closing; /* a scalar whose value counts when the others have ended */
};

/* The id of an attempt leads here, so that a reply to any of them can be read. */
struct attempt {
	uint16_t columns; /* it asked for the first of `picked` */
	uint16_t scalars; /* of these the first are asked for once (GETBULK's non-repeaters) */
	uint16_t rows;    /* of the others */
	int64_t at_ms;
};

static inline size_t attempt_varbinds(const struct attempt *attempt)
{
	return attempt->scalars + (size_t)(attempt->columns - attempt->scalars) * attempt->rows;
}

/* One piece of memory: the arrays and the roots stand after it. */
struct snmp_operation {
	struct snmp_client *client;
	struct snmp_operation *next_spare; /* of those that are none */
	struct snmp_device *device;        /* NULL: cancelled while one of its events is called */
	enum op_kind kind;
	struct snmp_events events;
	void *owner;
	struct link of_device, waiting, wheel;
	struct op_column *columns;
	enum snmp_column_end *ends;
	int *errors;
	uint16_t *picked; /* the columns of the request */
	size_t picked_count, picked_scalars;
	size_t column_count, open_count;
	size_t next; /* where the next request begins to pick */
	uint32_t known_key;
	unsigned rows,
		rows_known; /* of a walk: that came, that there were last time (0: unknown) */
	/* The device has shown that it knows of non-repeaters; perhaps it does not. */
	bool repeats_right, repeats_doubtful;
	bool single;  /* one column a request: the device does not say which one it refuses */
	bool counted; /* in client->in_flight */
	bool sent;    /* has a slot */
	bool unsent;  /* the kernel had no room */
	bool batched; /* its bytes are in the client's batch */
	bool current; /* an event of it is being called */
	bool common;  /* its memory has COMMON_OPERATION_BYTES */
	/* The request. */
	uint32_t slot, generation;
	unsigned attempt;
	struct attempt attempts[SNMP_RETRIES_MAX + 1];
	int64_t deadline_ms;
	unsigned resyncs, idle, requests, retries;
	struct slice message;              /* of version 3: its PDU; in `memory` */
	uint8_t memory[REQUEST_MAX_BYTES]; /* not cleared: the last member */
};

/* Cells of a reply side by side that have the index of the first of them: a row, as a rule. */
struct reply_span {
	uint32_t begin, count;
	uint16_t place; /* of the first one, among the columns that were asked for */
	/* The index that the agent was expected to go on after, and did; NULL: its name has to be
	 * compared. */
	const char *from;
};

struct slot {
	struct snmp_operation *op; /* NULL: free */
	uint32_t generation;
};

struct snmp_client {
	struct snmp_port *port;
	struct clock *clock;
	unsigned in_flight_max, in_flight;
	unsigned device_count;
	int64_t now_ms, wall_ms;
	struct usm_crypto *crypto;
	uint64_t salt;
	struct slot *slots;
	uint32_t slot_last, slots_taken; /* slot_last: the one that was taken last */
	struct link ready;
	struct link wheel[WHEEL_SLOTS];
	int64_t wheel_at; /* the time of the last turn, in WHEEL_MS */
	unsigned wheel_count;
	struct loop_outgoing batch[BATCH_MAX];
	struct snmp_operation *batch_ops[BATCH_MAX];
	size_t batch_count;
	uint8_t (*batch_memory)[MESSAGE_MAX_BYTES];
	uint8_t *open_memory; /* what is decrypted */
	/* The present reply. */
	struct snmp_cell *cells;
	struct reply_span *spans;
	struct snmp_operation *spare;
	unsigned spare_count;
};

/* ---- Client ---------------------------------------------------------------------------------- */

struct snmp_client *snmp_client_new(struct clock *clock, struct snmp_port *port,
				    unsigned in_flight_max);
void snmp_client_free(struct snmp_client *client);
void snmp_client_receive(struct snmp_client *client, const struct loop_datagram *datagrams,
			 size_t count);
/* Time has passed: sends what waits, ends what took too long. Wanted every WHEEL_MS while
 * snmp_client_busy, and soon after an operation was begun. */
void snmp_client_tick(struct snmp_client *client);
bool snmp_client_busy(const struct snmp_client *client);

/* ---- Requests (request.c) -------------------------------------------------------------------- */

/* Takes the times, once an event. */
void client_now(struct snmp_client *client);
/* Starts what may start, and gives the kernel what is to be sent. */
void client_pump(struct snmp_client *client);
void client_flush(struct snmp_client *client);
/* Puts it among those that have something to send, if it has and may. */
void device_check(struct snmp_device *device);
/* Takes a slot and sends. */
void op_start(struct snmp_operation *op);
/* Wants to send its next request. */
void op_wait(struct snmp_operation *op);
/* Gives its slot and its place back. */
void op_unsend(struct snmp_operation *op);
/* The deadline has passed. */
void op_expire(struct snmp_operation *op);
/* The id of this attempt. */
uint32_t op_id(const struct snmp_operation *op, unsigned attempt);
/* The operation that an id names, or NULL and counted. */
struct snmp_operation *client_find(struct snmp_client *client, uint32_t id, unsigned *attempt);
/* A reply to this attempt has come. */
void device_measure(struct snmp_device *device, const struct snmp_operation *op, unsigned attempt);
unsigned device_timeout_ms(const struct snmp_device *device);

/* ---- Operations (operation.c) ---------------------------------------------------------------- */

/* Builds the PDU, or the whole message of versions 1 and 2c, out of the first `picked` columns. */
void op_build(struct snmp_operation *op);
/* Chooses the columns of the next request. */
void op_pick(struct snmp_operation *op);
/* The reply to an attempt. */
void op_reply(struct snmp_operation *op, unsigned attempt, struct snmp_pdu *pdu,
	      size_t reply_bytes);
/* Calls `done` and frees it. */
void op_end(struct snmp_operation *op, int err, const char *sentence);
void op_free(struct snmp_operation *op);
/* The memory of those that were. */
void op_free_spare(struct snmp_client *client);
/* A reply will come to it: its memory is fetched (any address will do, NULL too), and then what it
 * leads to. */
void op_foresee(const struct snmp_operation *op);
void op_foresee_more(const struct snmp_operation *op);
struct snmp_operation *op_new(struct snmp_device *device, enum op_kind kind,
			      const struct slice *oids, size_t count);
void device_shrink(struct snmp_device *device, bool for_good);
/* A device that does not answer so few varbinds either is dead: that was not the size. */
void device_forget_size(struct snmp_device *device, size_t varbinds);

/* Shared by asking, by reading a reply and by accepting it (inline, for each varbind). */
static inline bool op_is_open(const struct snmp_operation *op, size_t column)
{
	return op->ends[column] == SNMP_COLUMN_OPEN;
}

static inline void op_close_column(struct snmp_operation *op, size_t column,
				   enum snmp_column_end end)
{
	if (op->ends[column] != SNMP_COLUMN_OPEN)
		return;
	op->ends[column] = end;
	op->open_count--;
}

static inline void op_column_set(struct op_column *column, struct slice oid)
{
	if (UNLIKELY(oid.len > column->cap)) {
		column->cap = (uint16_t)(oid.len + COLUMN_SPARE_BYTES);
		column->last = mem_resize(column->own ? column->last : NULL, column->cap);
		column->own = true;
	}
	memcpy(column->last, oid.data, oid.len);
	column->len = (uint16_t)oid.len;
}

static inline struct slice op_index_after(struct slice root, struct slice oid)
{
	return (struct slice){oid.data + root.len, oid.len - root.len};
}

/* Which column of the request the next varbind is of. */
static inline size_t op_place_after(const struct attempt *asked, size_t at)
{
	if (at + 1 < asked->columns)
		return at + 1;
	return asked->scalars < asked->columns ? asked->scalars : 0;
}

/* Where the first column of the rows stands that were asked for. */
static inline struct slice op_index_before(const struct snmp_operation *op,
					   const struct attempt *asked)
{
	if (op->kind != OP_WALK || asked->scalars == asked->columns)
		return (struct slice){NULL, 0};
	const struct op_column *column = &op->columns[op->picked[asked->scalars]];
	return op_index_after(column->root, (struct slice){(char *)column->last, column->len});
}

/* Reads the varbinds of a reply into the client's cells and spans (reply_read.c); returns how many
 * spans. *count: of cells. SIZE_MAX: bad, or more than was asked for. */
size_t op_read_cells(const struct snmp_operation *op, struct snmp_pdu *pdu,
		     const struct attempt *asked, size_t *count);
/* Accepts the cells that belong to the walk, and notes where each column stands now
 * (reply_accept.c); returns how many cells. */
size_t op_accept_rows(struct snmp_operation *op, size_t span_count, const struct attempt *asked);

/* ---- Version 3 (session.c) ------------------------------------------------------------------- */

/* The next message of the operation; ERR_LIMIT when it is too long. */
int session_seal(struct snmp_operation *op, uint8_t memory[MESSAGE_MAX_BYTES],
		 struct slice *message) MUST_CHECK;
void session_receive(struct snmp_client *client, const struct loop_datagram *datagram);
/* Whether operations may be sent; begins a discovery if not. */
bool session_ready(struct snmp_device *device) MUST_CHECK;
void session_init(struct snmp_device *device);
/* Signed and encrypted, by level. */
uint8_t login_flags(const struct snmp_login *login);

#endif
