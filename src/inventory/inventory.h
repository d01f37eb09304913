/* The inventory: what is polled. OIDSets, queues and credentials come from the configuration and
 * stay as they are until the next start; devices and the versioned rows of their interfaces (SAPs,
 * LSPs, outlets) live in the store and are managed by API and commands.
 *
 * Who polls, persists or answers takes a struct inventory: a picture of one moment, immutable and
 * reference-counted, to be used on any thread. A change of a device makes a new picture and calls
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

struct buf;
struct conf;
struct conf_node;

enum {
	OIDSET_OIDS_MAX = 256,
	OIDSET_AGGREGATES_MAX = 8,
	OIDSET_PATH_MAX = 4, /* parts of a row's path, each a tag */
	OIDSET_NAME_OIDS_MAX = 2,
	INVENTORY_NAME_MAX_BYTES = 255, /* of devices, OIDSets, OIDs, queues, credentials */
	INVENTORY_ADDRESS_MAX_BYTES = 255,
	INVENTORY_DEVICES_MAX = 100000,
	DEVICE_OIDSETS_MAX = 64,
	DEVICE_ERROR_MAX_BYTES = 200,
	SNMP_PORT = 161,
};

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
	enum oidset_kind persister;
	unsigned workers;
	enum queue_driver driver;
	struct slice server; /* of memcached: HOST:PORT */
	const struct oidset *const *oidsets;
	size_t oidset_count;
};

/* ---- Credentials ---------------------------------------------------------------------------- */

enum credentials_version { CREDENTIALS_V1, CREDENTIALS_V2C, CREDENTIALS_V3 };
enum snmp_level { SNMP_NO_AUTH_NO_PRIV, SNMP_AUTH_NO_PRIV, SNMP_AUTH_PRIV };
enum snmp_auth {
	SNMP_AUTH_NONE,
	SNMP_AUTH_MD5,
	SNMP_AUTH_SHA1,
	SNMP_AUTH_SHA224,
	SNMP_AUTH_SHA256,
	SNMP_AUTH_SHA384,
	SNMP_AUTH_SHA512,
};
enum snmp_priv {
	SNMP_PRIV_NONE,
	SNMP_PRIV_DES,
	SNMP_PRIV_AES128,
	SNMP_PRIV_AES192, /* key extension of draft-blumenthal-aes-usm */
	SNMP_PRIV_AES256,
	SNMP_PRIV_AES192C, /* key extension of draft-reeder, as Cisco's */
	SNMP_PRIV_AES256C,
};

struct snmp_credentials {
	struct slice name;
	enum credentials_version version;
	struct slice community; /* v1, v2c */
	struct slice user, context;
	enum snmp_level level;
	enum snmp_auth auth;
	struct slice auth_password;
	enum snmp_priv priv;
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
	const struct snmp_credentials *const *credentials;
	size_t credentials_count;

	/* private */
	_Atomic size_t references;
	struct arena arena;
};

/* Reads the shipped OIDSets, then the files and sections that `conf` names. ERR_INVALID with file
 * and line. *made has one reference, the caller's. */
int inventory_conf_read(const struct conf *conf, struct files *files, struct inventory_conf **made,
			struct errbuf *e) MUST_CHECK;
void inventory_conf_take(struct inventory_conf *conf);
void inventory_conf_release(struct inventory_conf *conf); /* NULL is allowed */

/* By name; NULL: there is none. */
const struct oid_def *inventory_conf_oid(const struct inventory_conf *conf, struct slice name);
const struct oidset *inventory_conf_oidset(const struct inventory_conf *conf, struct slice name);
const struct queue_def *inventory_conf_queue(const struct inventory_conf *conf, struct slice name);
const struct snmp_credentials *inventory_conf_credentials(const struct inventory_conf *conf,
							  struct slice name);

/* ---- Devices -------------------------------------------------------------------------------- */

/* How polling it goes: in memory only, shared by all pictures that have the device. */
struct device_state;

struct device_status {
	bool resolved;                          /* its name has an address */
	int64_t last_success_ms;                /* wall clock; 0: none since the start */
	int64_t failing_since_ms;               /* 0: it is not */
	char error[DEVICE_ERROR_MAX_BYTES + 1]; /* why, the latest reason */
};

struct device {
	struct slice name;
	struct slice address; /* host name, IPv4, or IPv6 without brackets */
	uint16_t port;
	struct slice credentials_name;
	const struct snmp_credentials *credentials; /* NULL: of that name there are none */
	bool active;
	int64_t begin_ms, end_ms;            /* it is polled while begin <= now < end */
	const struct oidset *const *oidsets; /* ascending by name */
	size_t oidset_count;
	/* What it names that the configuration does not have, as a sentence; empty: nothing. */
	struct slice problem;
	struct device_state *state;

	/* private */
	_Atomic size_t references;
	const struct slice *oidset_names; /* all it was given */
	size_t oidset_name_count;
	struct inventory_conf *conf; /* what `oidsets` and `credentials` point into */
	struct arena arena;
};

static inline bool device_is_active(const struct device *device, int64_t now_ms)
{
	return device->active && device->begin_ms <= now_ms && now_ms < device->end_ms;
}

/* What the poller says, on any thread: a poll gave an answer; or it did not, and why. */
void device_state_succeeded(struct device_state *state, int64_t now_ms);
void device_state_failed(struct device_state *state, int64_t now_ms, bool resolved,
			 const char *why);
struct device_status device_state_read(struct device_state *state);

/* ---- A picture ------------------------------------------------------------------------------ */

struct inventory {
	struct inventory_conf *conf;
	const struct device *const *devices; /* ascending by name */
	size_t device_count;
	uint64_t number; /* rises from picture to picture */

	/* private */
	_Atomic size_t references;
};

void inventory_take(const struct inventory *inventory);
void inventory_release(const struct inventory *inventory); /* NULL is allowed */
const struct device *inventory_device(const struct inventory *inventory, struct slice name);

#endif
