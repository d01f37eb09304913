/* Asks devices by SNMP: thousands of them over one socket, from one thread.
 *
 *  - A device has an address, a login, and what was learnt of it: how long it takes, how much fits
 *    into a reply, its engine of version 3.
 *  - An operation (get, walk) is a number of requests, one in flight at a time. Operations of a
 *    device run beside each other within its limit; devices have their turns.
 *  - A request has an id that names its place, its generation and its attempt: what comes late,
 *    twice, from elsewhere or in another version is counted and ignored, and the time that a reply
 *    took is known also when it was asked for twice.
 *  - Requests that wait longer than their first time-out no longer count against `in_flight_max`:
 *    devices that are dead delay nobody.
 *  - Version 3: the engine is discovered at first, its time followed, replayed, unsigned or less
 *    protected replies are ignored. What a device refuses ends the operation with its reason.
 *
 * All on the thread of the loop. `reply` and `done` are called from the loop only, never from
 * within a call into this module; from within them everything may be called but snmp_client_close.
 */
#ifndef SNMP_CLIENT_H
#define SNMP_CLIENT_H

#include "base/base.h"
#include "base/clock.h"
#include "loop/loop.h"
#include "wire/snmp.h"
#include "wire/usm.h"

enum {
	SNMP_COLUMNS_MAX = 320,   /* of one operation */
	SNMP_OPERATIONS_MAX = 64, /* of one device at one time */
	SNMP_RETRIES_MAX = 7,
	SNMP_REPLY_VARBINDS_MAX = 2048,
	SNMP_AGENT_PORT = 161,
};

/* ---- Client ---------------------------------------------------------------------------------- */

struct snmp_client;

struct snmp_client_options {
	unsigned in_flight_max; /* 0: 4096 */
	size_t buffer_bytes;    /* of the kernel, for replies; 0: 4 MB */
};

int snmp_client_open(struct loop *loop, struct clock *clock,
		     const struct snmp_client_options *options, struct snmp_client **client,
		     struct errbuf *e) MUST_CHECK;
/* After all devices were freed (asserted). NULL is allowed. */
void snmp_client_close(struct snmp_client *client);

/* ---- Logins ---------------------------------------------------------------------------------- */

enum snmp_level { SNMP_NO_AUTH_NO_PRIV, SNMP_AUTH_NO_PRIV, SNMP_AUTH_PRIV };

struct snmp_credentials {
	enum snmp_version version;
	struct slice community; /* versions 1 and 2c; the others: version 3 */
	struct slice user, context;
	struct slice engine_id; /* empty: discovered */
	enum snmp_level level;
	enum usm_auth auth;
	enum usm_priv priv;
	struct slice auth_password, priv_password;
};

/* Credentials made ready: copied, passwords turned into keys, which takes some milliseconds. For
 * any number of devices; immutable, counted, from any thread. ERR_INVALID with a sentence. */
struct snmp_login;
int snmp_login_new(const struct snmp_credentials *credentials, struct snmp_login **login,
		   struct errbuf *e) MUST_CHECK;
struct snmp_login *snmp_login_hold(struct snmp_login *login);
void snmp_login_release(struct snmp_login *login); /* NULL is allowed */

/* ---- Devices --------------------------------------------------------------------------------- */

struct snmp_device;

struct snmp_device_options {
	unsigned in_flight_max;    /* 0: 2 */
	unsigned retries;          /* at most SNMP_RETRIES_MAX */
	unsigned timeout_min_ms;   /* adaptive between these two; 0: 250 */
	unsigned timeout_max_ms;   /* 0: 5000 */
	unsigned timeout_start_ms; /* while nothing is known; 0: 1000 */
	unsigned repetitions_max;  /* rows of one GETBULK; 0: as many as fit */
	unsigned reply_max_bytes;  /* what a reply should fit into; 0: 1400 */
};

/* Holds the login. Version 3: nothing is sent yet. */
struct snmp_device *snmp_device_new(struct snmp_client *client, const struct loop_address *address,
				    struct snmp_login *login,
				    const struct snmp_device_options *options);
/* Operations under way end without a call, and pointers to them must not be used any more. NULL is
 * allowed. */
void snmp_device_free(struct snmp_device *device);

struct snmp_device_view {
	struct slice engine_id; /* of version 3; empty: not known yet */
	uint32_t engine_boots, engine_time;
	unsigned rtt_ms;       /* smoothed; 0: nothing came yet */
	unsigned timeout_ms;   /* of the next request */
	unsigned varbinds_max; /* of the next reply */
};
void snmp_device_view(const struct snmp_device *device, struct snmp_device_view *view);

/* ---- Operations ------------------------------------------------------------------------------ */

struct snmp_operation;

struct snmp_cell {
	size_t column; /* its place among what was asked for */
	struct slice oid;
	/* In a walk: the encoded arcs after the column's. Cells of one row mostly share the slice:
	 * where `data` is the same, so is the index. */
	struct slice index;
	struct snmp_value value;
};

struct snmp_reply {
	int64_t wall_ms; /* when it came */
	const struct snmp_cell *cells;
	size_t count;
};

enum snmp_column_kind {
	SNMP_COLUMN_TABLE,
	SNMP_COLUMN_SCALAR, /* has one value and ends with it: asked for once, in the beginning */
	/* A scalar as it is when all others have ended. Where it is known how long the tables were
	 * the last time, it is asked for with what should be their last rows. */
	SNMP_COLUMN_CLOSING,
};

enum snmp_column_end {
	SNMP_COLUMN_OPEN,    /* the operation ended before it */
	SNMP_COLUMN_ENDED,   /* as it should; of a get: answered */
	SNMP_COLUMN_REFUSED, /* the device gave an error */
	SNMP_COLUMN_LOOPED,  /* names did not increase */
};

struct snmp_result {
	/* 0; ERR_TIMEOUT; -EACCES: the device refuses these credentials; ERR_INVALID: it answers
	 * what cannot be used. */
	int err;
	const char *sentence; /* of an error */
	const enum snmp_column_end *ends;
	const int *errors; /* of refused columns: enum snmp_error */
	size_t count;
	unsigned requests, retries;
};

struct snmp_events {
	/* The values of one reply; everything is valid until the call returns. A get also has
	 * SNMP_NO_SUCH_OBJECT and so on; a walk has only what lies in the columns. */
	void (*reply)(void *owner, const struct snmp_reply *reply);
	/* The last call. The operation is gone when it returns. */
	void (*done)(void *owner, const struct snmp_result *result);
	/* A reply is about to be given: what `reply` touches may be fetched. May be NULL. */
	void (*foresee)(const void *owner);
};

/* Copies the oids (1 to SNMP_COLUMNS_MAX, valid ones). `operation` may be NULL. ERR_BUSY: too many
 * at one time; ERR_LIMIT: too many oids. */
int snmp_get(struct snmp_device *device, const struct slice *oids, size_t count,
	     const struct snmp_events *events, void *owner,
	     struct snmp_operation **operation) MUST_CHECK;
/* Everything below each of the columns, as many columns and rows with one request as fit. `kinds`,
 * by column, may be NULL: all are of tables. */
int snmp_walk(struct snmp_device *device, const struct slice *columns,
	      const enum snmp_column_kind *kinds, size_t count, const struct snmp_events *events,
	      void *owner, struct snmp_operation **operation) MUST_CHECK;
/* Ends it without a call. */
void snmp_cancel(struct snmp_operation *operation);

#endif
