/* The inventory: what is polled. OIDSets, queues and credentials come from the configuration and
 * stay as they are until the next start; devices and the versioned rows of their interfaces (SAPs,
 * LSPs, outlets) live in the store and are managed by API and commands.
 *
 * Who polls, persists or answers takes a struct inventory: a snapshot of one moment, immutable and
 * reference-counted, to be used on any thread. A change of a device makes a new snapshot and calls
 * the listeners; nothing is restarted.
 *
 * Invariants. In a configuration every name is resolved: a correlator, an OID, an OIDSet, a queue
 * that does not exist was refused with file and line when it was read. A device may name what an
 * earlier configuration had: then it has a `problem` and only the rest of it is polled.
 *
 * Threads. Reading a struct inventory_conf, a struct inventory and what they point to: any. The
 * state of a device: any, under its own lock. struct inventory_keeper: the thread of its executor,
 * but for inventory_keeper_take, which any thread may call. */
#ifndef INVENTORY_INVENTORY_H
#define INVENTORY_INVENTORY_H

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/file.h"
#include "base/mem.h"
#include "store/store.h"
#include "wire/snmp.h"
#include "wire/usm_crypto.h"

struct buf;
struct conf;
struct conf_node;

enum {
	OIDSET_OIDS_MAX = 256,
	OIDSET_RATED_MAX = 64, /* of them, those that rates are made of */
	OIDSET_AGGREGATES_MAX = 4,
	OIDSET_PATH_MAX = 4, /* parts of a row's path, each a tag */
	OIDSET_NAME_OIDS_MAX = 2,
	INVENTORY_NAME_MAX_BYTES = 255, /* of devices, OIDSets, OIDs, queues, credentials */
	INVENTORY_ADDRESS_MAX_BYTES = 255,
	INVENTORY_DEVICES_MAX = 100000,
	DEVICE_OIDSETS_MAX = 64,
	DEVICE_ERROR_MAX_BYTES = 200,
	SNMP_PORT = 161,
};

/* The longest aggregate: of what rates can be made, as rate/oidset.c asserts. */
#define OIDSET_AGGREGATE_MAX_MS (INT64_C(40) * 86400000)

/* "Forever", as E writes it: 9999-12-29T23:59:59Z. */
#define INVENTORY_FOREVER_MS INT64_C(253402127999000)

/* ---- OIDs and OIDSets ----------------------------------------------------------------------- */

enum oid_type {
	OID_COUNTER32,
	OID_COUNTER64,
	OID_GAUGE32,      /* Unsigned32 too */
	OID_INTEGER,      /* INTEGER, Integer32 and what is made of them */
	OID_TIMETICKS,    /* hundredths of a second */
	OID_TEXT,         /* DisplayString */
	OID_OCTETS,       /* OCTET STRING of any bytes */
	OID_PHYS_ADDRESS, /* written as aa:bb:cc:dd:ee:ff */
	OID_IP_ADDRESS,
	OID_OBJECT_ID,
	OID_TYPES
};

/* "Counter32" and so on. */
const char *oid_type_text(enum oid_type type);

struct oid_def {
	struct slice name; /* ifHCInOctets: the metric */
	struct slice oid;  /* 1.3.6.1.2.1.31.1.1.1.6, of the column; of a scalar without the .0 */
	struct slice ber;  /* the same as the contents of a BER OBJECT IDENTIFIER */
	enum oid_type type;
	bool scalar;                 /* one value of the device (sysUpTime.0): no path */
	bool aggregate;              /* rates are made of it; counters only */
	struct slice endpoint_alias; /* "in", "error/out": how /v2 calls it; empty: none */
};

/* What the poller adds to OIDSets that make rates and do not have it themselves, stored with them:
 * sysUpTime, and of interfaces ifCounterDiscontinuityTime. NULL: that is none of them. */
const struct oid_def *oid_companion(struct slice name);

/* What becomes of the results of an OIDSet, and the persister that does it. */
enum oidset_kind {
	OIDSET_COUNTERS,   /* series */
	OIDSET_INTERFACES, /* versioned rows, and so the others */
	OIDSET_SAPS,
	OIDSET_LSPS,
	OIDSET_OUTLETS,
	OIDSET_KINDS
};

/* "counters", "interfaces", ... */
const char *oidset_kind_text(enum oidset_kind kind);

enum correlator_kind {
	CORRELATOR_NONE,         /* of versioned rows: the path is the index, as dotted text */
	CORRELATOR_OID,          /* scalars: no path */
	CORRELATOR_INDEX,        /* the index as dotted text */
	CORRELATOR_IF_NAME,      /* ifName of the last part of the index */
	CORRELATOR_INF_IF_NAME,  /* of it what stands behind a `=` */
	CORRELATOR_JNX_FIREWALL, /* filter type, filter, counter: from the index */
	CORRELATOR_JNX_COS,      /* ifName of the first part of the index, queue from the rest */
	CORRELATOR_SENTRY,       /* outletID (index of 3) or tempHumidSensorID (of 2) */
	CORRELATOR_ALU_SAP,      /* service-port-vlan from the index */
	CORRELATOR_CISCO_CPU,    /* entPhysicalName of the processor, less `CPU_of_` */
	CORRELATOR_GENERIC, /* the value of the OID named in correlate_oid, at the same index */
};

struct correlator {
	const char *name; /* in configurations: IfName */
	enum correlator_kind kind;
	const char *help;
	/* The tags of the path's parts, where the OIDSet does not say otherwise. */
	const char *tags[OIDSET_PATH_MAX];
	/* What has to be polled to tell rows from each other, by name. */
	const char *name_oids[OIDSET_NAME_OIDS_MAX];
};

/* All of them, ended by a name of NULL; CORRELATOR_NONE has the name "none". */
extern const struct correlator correlators[];

struct queue_def;

struct oidset {
	struct slice name;
	struct slice
		set_name; /* its series are stored under this one; `name` where none is given */
	/* The one of that name: equal in all that rates depend on, in the same queue, and with
	 * every OID that this one makes rates of. Itself where no set_name is given. */
	const struct oidset *stored_as;
	bool shipped;
	int64_t frequency_ms;
	enum oidset_kind kind;
	const struct correlator *correlator; /* of kinds other than counters CORRELATOR_NONE */
	const struct oid_def *correlate_oid; /* CORRELATOR_GENERIC; else NULL */
	/* What the correlator needs besides `oids`: its table's name_oids, ifAlias where
	 * undescribed interfaces are skipped, correlate_oid. Not stored. */
	const struct oid_def *name_oids[OIDSET_NAME_OIDS_MAX + 1];
	size_t name_oid_count;
	struct slice path_tags[OIDSET_PATH_MAX];
	size_t path_tag_count;
	const struct oid_def *const *oids;
	size_t oid_count;
	int64_t aggregates_ms[OIDSET_AGGREGATES_MAX]; /* ascending, each longer than frequency_ms */
	size_t aggregate_count;
	int64_t ttl_ms;        /* of raw data; 0: the configured retention */
	bool skip_undescribed; /* interfaces with an empty ifAlias are not stored */
	const struct queue_def *queue;
};

enum queue_driver { QUEUE_LOCAL, QUEUE_MEMCACHED };

/* A row of persist_queue. */
struct queue_def {
	struct slice name;
	size_t place; /* in the configuration's queues: of whatever somebody has for each of them */
	enum oidset_kind persister;
	unsigned workers;
	enum queue_driver driver;
	struct slice server; /* of memcached: HOST:PORT */
	const struct oidset *const *oidsets;
	size_t oidset_count;
};

/* ---- Credentials ---------------------------------------------------------------------------- */

enum credentials_level { LEVEL_NO_AUTH_NO_PRIV, LEVEL_AUTH_NO_PRIV, LEVEL_AUTH_PRIV };

struct credentials {
	struct slice name;
	enum snmp_version version;
	struct slice community; /* v1, v2c */
	struct slice user, context;
	enum credentials_level level;
	enum usm_auth auth;
	struct slice auth_password;
	enum usm_priv priv;
	struct slice priv_password;
};

/* ---- The configuration's part --------------------------------------------------------------- */

struct inventory_conf {
	/* Each ascending by name. */
	const struct oid_def *const *oids;
	size_t oid_count;
	const struct oidset *const *oidsets;
	size_t oidset_count;
	const struct queue_def *const *queues;
	size_t queue_count;
	const struct credentials *const *credentials;
	size_t credentials_count;
	/* Hashes of what the files of snmp.oidset_files and snmp.secrets_file held; 0: no file. */
	uint64_t oidset_files_hash, secrets_hash;

	/* private */
	_Atomic size_t references;
	struct arena arena;
	struct inventory_conf *sets, *secrets; /* whose parts it has, with references; or NULL */
};

/* Reads the shipped OIDSets, then the files and sections that `conf` names. ERR_INVALID with file
 * and line. *made has one reference, the caller's. */
int inventory_conf_read(const struct conf *conf, struct files *files, struct inventory_conf **made,
			struct errbuf *e) MUST_CHECK;
/* The OIDs, OIDSets and queues of one, the credentials of the other; one reference, the caller's.
 */
struct inventory_conf *inventory_conf_join(struct inventory_conf *sets,
					   struct inventory_conf *secrets);
void inventory_conf_take(struct inventory_conf *conf);
void inventory_conf_release(struct inventory_conf *conf); /* NULL is allowed */

/* By name; NULL: there is none. */
const struct oid_def *inventory_conf_oid(const struct inventory_conf *conf, struct slice name);
const struct oidset *inventory_conf_oidset(const struct inventory_conf *conf, struct slice name);
/* The first one whose series are stored under that set_name. */
const struct oidset *inventory_conf_oidset_stored(const struct inventory_conf *conf,
						  struct slice set_name);
const struct oid_def *oidset_oid(const struct oidset *oidset, struct slice name);
const struct queue_def *inventory_conf_queue(const struct inventory_conf *conf, struct slice name);
const struct credentials *inventory_conf_credentials(const struct inventory_conf *conf,
						     struct slice name);

/* ---- Devices -------------------------------------------------------------------------------- */

/* How polling it goes: in memory only, shared by all snapshots that have the device. */
struct device_state;

struct device_status {
	bool resolved;                          /* its name has an address */
	int64_t last_success_ms;                /* wall clock; 0: none since the start */
	int64_t failing_since_ms;               /* 0: it is not */
	char error[DEVICE_ERROR_MAX_BYTES + 1]; /* why, the latest reason */
};

struct device {
	struct slice name;
	/* Under which name its series, rows and texts lie, where that is not `name`:
	 * device_stored_as.
	 */
	struct slice stored_as;
	struct slice address; /* host name, IPv4, or IPv6 without brackets */
	uint16_t port;
	struct slice credentials_name;
	const struct credentials *credentials; /* NULL: of that name there are none */
	bool active;
	int64_t begin_ms, end_ms;            /* it is polled while begin <= now < end */
	struct slice poller;                 /* who polls it; empty: the server itself */
	const struct oidset *const *oidsets; /* ascending by name */
	size_t oidset_count;
	/* What it names that the configuration does not have, as a sentence; empty: nothing. */
	struct slice problem;
	struct device_state *state;

	const struct slice *oidset_names; /* all it was given, ascending */
	size_t oidset_name_count;

	/* private */
	_Atomic size_t references;
	struct inventory_conf *conf; /* what `oidsets` and `credentials` point into */
	struct arena arena;
};

/* The name that what is stored of it has, and what is polled of it says: the one with which it was
 * added. It stays when the device gets another name, so that there is one history; and no two
 * devices have the same, so that one that is given a name which another had before begins again. */
static inline struct slice device_stored_as(const struct device *device)
{
	return device->stored_as.len ? device->stored_as : device->name;
}

static inline bool device_is_active(const struct device *device, int64_t now_ms)
{
	return device->active && device->begin_ms <= now_ms && now_ms < device->end_ms;
}

/* What the poller says, on any thread: a poll gave an answer; or it did not, and why. */
void device_state_succeeded(struct device_state *state, int64_t now_ms);
void device_state_failed(struct device_state *state, int64_t now_ms, bool resolved,
			 const char *why);
struct device_status device_state_read(const struct device_state *state);
/* What a poller elsewhere says. */
void device_state_set(struct device_state *state, const struct device_status *status);

/* ---- A snapshot ------------------------------------------------------------------------------ */

struct inventory {
	struct inventory_conf *conf;
	const struct device *const *devices; /* ascending by name */
	size_t device_count;
	/* Of them, those whose device_stored_as is another than their name; ascending by that.
	 */
	const struct device **renamed;
	size_t renamed_count;
	uint64_t number; /* rises from snapshot to snapshot */

	/* private */
	_Atomic size_t references;
};

void inventory_take(const struct inventory *inventory);
void inventory_release(const struct inventory *inventory); /* NULL is allowed */
const struct device *inventory_device(const struct inventory *inventory, struct slice name);
/* By device_stored_as. */
const struct device *inventory_device_stored(const struct inventory *inventory,
					     struct slice stored_as);
/* The name under which lies what is stored of the device of a name; the name itself where there is
 * none. */
struct slice inventory_stored_as(const struct inventory *inventory, struct slice name);

/* ---- Changing it ---------------------------------------------------------------------------- */

/* What somebody says of a device. */
struct device_spec {
	struct slice name;
	struct slice address; /* HOST, HOST:PORT, an IPv6 address, or [IPv6]:PORT */
	struct slice credentials;
	bool active;
	int64_t begin_ms, end_ms;
	const struct slice *oidsets;
	size_t oidset_count;
	struct slice poller;
	struct slice stored_as; /* of what is stored or came from a server; people do not say it */
	/* Where it stands, for sentences about it; file NULL: nowhere. */
	const char *file;
	size_t line;
};

/* In a spec's begin_ms: when it is added. */
#define DEVICE_BEGIN_NOW INT64_C(-1)

/* Active, from now for ever, polled by the server, without address, credentials and OIDSets. */
struct device_spec device_spec_preset(void);
/* As the device is; to be changed. Slices point into it; the address is made in `arena`. */
struct device_spec device_spec_of(const struct device *device, struct arena *arena);

enum inventory_op {
	INVENTORY_ADD,    /* devices that are not there; all of them or none */
	INVENTORY_CHANGE, /* devices that are there: all of them or none */
	/* specs[0].name becomes `to`, with all that is stored of it. */
	INVENTORY_RENAME,
	INVENTORY_REMOVE, /* specs[].name; what is stored of them stays, see device_wipe */
	INVENTORY_RENEW,  /* no specs: all devices have `conf` from now on; nothing is stored */
};

struct inventory_keeper;
struct inventory_change;
/* On the keeper's thread. 0: it is durable and in the snapshot. ERR_INVALID, ERR_EXISTS,
 * ERR_NOT_FOUND: as `error` says, nothing happened; or the store's error. */
typedef void inventory_change_done(struct inventory_change *change, int err);

/* Embedded in its owner. What it points to stays until `done`. */
struct inventory_change {
	enum inventory_op op;
	const struct device_spec *specs;
	size_t count;
	struct slice to;
	struct inventory_conf *conf; /* the keeper takes a reference */
	inventory_change_done *done;
	void *owner;

	size_t fault; /* result: which spec is refused; `count`: none of them */
	struct errbuf error;

	/* the keeper's */
	uint32_t magic; /* until `done` */
	struct inventory_keeper *keeper;
	struct inventory_change *next;
	struct store_write *write;
	const struct inventory *snapshot;
	struct task task;
	int err;
};

struct inventory_listener {
	/* On the keeper's thread, after each change; inventory_keeper_take gives the new snapshot.
	 */
	void (*changed)(struct inventory_listener *listener);
	struct inventory_listener *next; /* the keeper's */
};

struct inventory_options {
	struct store *store;
	struct clock *clock;
	struct executor *executor;
	struct inventory_conf *conf; /* takes a reference */
};

/* Reads the devices; blocks until they are there. */
int inventory_keeper_open(const struct inventory_options *options, struct inventory_keeper **keeper,
			  struct errbuf *e) MUST_CHECK;
/* Nothing is being changed (inventory_keeper_idle). NULL is allowed. */
void inventory_keeper_free(struct inventory_keeper *keeper);
bool inventory_keeper_idle(const struct inventory_keeper *keeper);

/* The newest snapshot, with a reference for the caller. Any thread. */
const struct inventory *inventory_keeper_take(struct inventory_keeper *keeper);
void inventory_keeper_listen(struct inventory_keeper *keeper, struct inventory_listener *listener);
void inventory_keeper_unlisten(struct inventory_keeper *keeper,
			       struct inventory_listener *listener);

/* `done` is never called from within. ERR_BUSY: too many changes wait; `done` is not called. */
int inventory_keeper_change(struct inventory_keeper *keeper,
			    struct inventory_change *change) MUST_CHECK;

/* ---- Lists of devices ----------------------------------------------------------------------- */

/* A list as people write it, for an import: CSV if the name ends in .csv (a head of columns name,
 * address, credentials, oidsets (blanks between), active, begin, end, poller), else YAML
 * (`devices`: a list of mappings with these keys). In the arena. ERR_INVALID with file and line. */
int device_list_parse(const char *file, struct slice text, struct arena *arena,
		      struct device_spec **specs, size_t *count, struct errbuf *e) MUST_CHECK;

/* ---- Pollers elsewhere ---------------------------------------------------------------------- */

/* 100,000 devices of some 300 bytes. */
enum { INVENTORY_DOCUMENT_MAX_BYTES = 32 << 20 };

/* What a poller of that name has to know, see document.c; `out` has failed where it is too long. */
void inventory_document_write(const struct inventory *inventory, struct slice poller,
			      struct buf *out);

/* The inventory of such a poller, made of documents. One thread. */
struct inventory_copy;

/* Credentials are those of the secrets file that `conf` names. All three outlive it. */
struct inventory_copy *inventory_copy_new(struct slice poller, const struct conf *conf,
					  struct files *files);
void inventory_copy_free(struct inventory_copy *copy); /* NULL is allowed */
/* Takes a document: devices of which it says nothing new stay the objects they are. An error, with
 * file and line, changes nothing. */
int inventory_copy_read(struct inventory_copy *copy, const char *file, struct slice text,
			struct errbuf *e) MUST_CHECK;
/* The next document is read as if it were the first, and the secrets file with it. */
void inventory_copy_forget(struct inventory_copy *copy);
/* Of the last document, the copy's own reference; NULL: there was none. */
const struct inventory *inventory_copy_snapshot(const struct inventory_copy *copy);

/* ---- Versioned rows ------------------------------------------------------------------------- */

/* One version of an interface, SAP, LSP or outlet. What it was changes: then the row is closed and
 * the next one of that name begins. */
struct inventory_row {
	struct slice name;        /* of an interface as its series have it: ifName */
	int64_t begin_ms, end_ms; /* end: INVENTORY_FOREVER_MS while it is open */
	/* A JSON object, equal byte by byte where nothing has changed: the columns of the poll
	 * under their OIDs' names; of interfaces those of E's IfRef, in its order, missing ones
	 * null. */
	struct slice attributes;
};

struct poll;
struct poll_names;
struct poll_values;

/* The rows that a poll of such an OIDSet says there are, in the arena, ascending by name; begin is
 * the poll's time. Rows of equal name are told apart as `name#index`, nameless ones are `#index`.
 * ERR_LIMIT: the arena is full. */
int inventory_rows_from_poll(enum oidset_kind kind, const struct poll *poll,
			     const struct poll_names *names, const struct poll_values *values,
			     struct arena *arena, struct inventory_row **rows,
			     size_t *count) MUST_CHECK;

/* What a poll changes. `closes` (its end is the moment) and `opens` may each be NULL. */
struct inventory_row_change {
	const struct inventory_row *closes, *opens;
};

/* Pure. Both lists ascend by name and hold each once. `complete`: the walk came to its end, so what
 * it did not see is gone; not so after a walk that saw nothing at all. Rows that begin after
 * `ts_ms` stay as they are: the poll is older than they. `changes` has room for open_count +
 * polled_count. */
size_t inventory_rows_diff(const struct inventory_row *open, size_t open_count,
			   const struct inventory_row *polled, size_t polled_count, bool complete,
			   int64_t ts_ms, struct inventory_row_change *changes);

struct inventory_rows_update;
typedef void inventory_rows_update_done(struct inventory_rows_update *update, int err);

/* Takes one poll's rows into the store: reads what is open, and adds what changes to `write`, which
 * the owner submits. Polls of one kind and device one after the other: the next one when the write
 * of the one before is durable. Embedded in its owner. */
struct inventory_rows_update {
	struct store *store;
	struct executor *executor;
	struct clock *clock;
	struct store_write *write;
	enum oidset_kind kind; /* not counters, which have no rows */
	struct slice device;
	const struct inventory_row *rows; /* polled: ascending by name */
	size_t count;
	bool complete;
	int64_t ts_ms;
	/* On the executor; 0, ERR_LIMIT (the write is full, and a part of this poll is in it: reset
	 * it), or the store's error. */
	inventory_rows_update_done *done;
	void *owner;

	size_t opened, closed; /* result */
	bool late;             /* result: a newer walk is in the rows, and nothing was done */

	/* private */
	uint32_t magic; /* while it is read */
	struct store_read *read;
};

/* ERR_BUSY: the store takes no more reads now; `done` is not called. */
int inventory_rows_update_start(struct inventory_rows_update *update) MUST_CHECK;

struct inventory_rows_read;
typedef void inventory_rows_read_done(struct inventory_rows_read *read, int err);

/* The versions of a device's rows that lived at some time of begin <= t <= end, the open ones
 * last. Embedded in its owner; results lie in `arena`. */
struct inventory_rows_read {
	struct store *store;
	struct executor *executor;
	struct clock *clock;
	struct arena *arena;
	enum oidset_kind kind; /* not counters, which have no rows */
	struct slice device;
	int64_t begin_ms, end_ms;
	size_t limit;        /* of rows; 0: as many as the arena takes */
	int64_t deadline_us; /* monotonic; 0: the store's own for each read */
	inventory_rows_read_done *done;
	void *owner;

	struct inventory_row *rows; /* result */
	size_t count;
	bool more; /* there are more than `limit` */
	struct errbuf error;

	/* private */
	uint32_t magic; /* while it is read */
	struct store_read *read;
	struct buf gathered;
};

int inventory_rows_read_start(struct inventory_rows_read *read) MUST_CHECK;
/* `done` will not be called; the read may be freed. */
void inventory_rows_read_cancel(struct inventory_rows_read *read);

/* ---- Forgetting a device's data ------------------------------------------------------------- */

/* Of a device's data; for a job. */
struct device_wipe_options {
	struct store *store;
	struct clock *clock;
	struct task_queue *queue; /* on which it waits (store/wait.h) */
	struct slice device;
};

/* Deletes what is stored of a device: its series in every table of counters and what rates know of
 * them, its values that are texts, its rows. To be done when it has been removed; polls of it that
 * still wait in a queue come back. Goes through the whole registry of tenant `snmp`: slow, in small
 * pieces. *series: how many it had. ERR_CANCELLED, or an error of the store, with a sentence. */
int device_wipe(const struct device_wipe_options *options, uint64_t *series,
		struct errbuf *e) MUST_CHECK;

#endif
