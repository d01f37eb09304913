/* The poller without threads and sockets: what is polled when, and what becomes of it.
 *
 *   inventory -> devices -> (device, OIDSet) in the schedule -> run -> correlate -> ring -> sink
 *
 * A run is one poll of one OIDSet at one device, a table of states (poller_run.c). At most one of
 * each is under way: a slot that comes meanwhile is skipped and counted. Its deadline is the next
 * slot.
 *
 * A device that has not answered FAILURES_PROBE polls in a row is asked for its uptime first, once,
 * in the slot of each poll: a dead device costs one packet a slot, and one that is back is polled
 * whole in that very slot. A device that hangs - it answers, but not to the end - is left alone
 * for 0, 1, 3, 7, ... slots of the OIDSet, for POLLER_REST_MAX_MS at most: its polls hold requests
 * all the time that they last.
 *
 * A device that is added to those that are polled is polled at once, as one that somebody asks for.
 *
 * Everything on one thread, time by the clock. */
#ifndef SNMP_POLLER_CORE_H
#define SNMP_POLLER_CORE_H

#include "base/base.h"
#include "base/clock.h"
#include "base/log.h"
#include "inventory/inventory.h"
#include "snmp/correlate.h"
#include "snmp/poller.h"
#include "snmp/poller_io.h"
#include "snmp/poller_ring.h"
#include "snmp/poller_schedule.h"

enum {
	POLLER_FAILURES_PROBE = 3,
	POLLER_RESOLVE_RETRY_MS = 15000,
	POLLER_SETS_KEPT = 128, /* of correlate_set, warm for the next run */
	POLLER_STEP_MAX_MS = 1000,
	POLLER_REST_MAX_MS = 600000,
	POLLER_NEW_AT_ONCE = 64, /* of one inventory; the others wait for their slots */
};

struct core;
struct poll_run;
struct polled_device;

/* An OIDSet as all its devices share it. */
struct core_plan {
	struct correlate_plan plan;
	size_t references;
	struct core_plan *next;
};

/* One OIDSet of one device. */
struct polled_set {
	struct schedule_entry entry;
	struct polled_device *device;
	struct core_plan *plan;
	struct poll_run *run; /* NULL: none is under way */
	uint64_t index_sum;   /* of the rows of the last poll: another one, another table */
	bool wanted;          /* its next poll is asked for: it does not wait for a slot */
	unsigned hung;        /* polls in a row in which the device hung */
	int64_t rest_slots;   /* to be left out because of that */
};

struct polled_device {
	struct core *core;
	const struct inventory *snapshot; /* what `device` lies in */
	const struct device *device;
	struct polled_set **sets; /* by the address of their OIDSet, as in the device */
	size_t set_count;
	struct poller_session *session; /* NULL: no address yet */
	struct loop_address address;
	bool resolving, is_name;                    /* a host name, not an address */
	int64_t resolved_ms, asked_ms;              /* monotonic; 0: never */
	struct errbuf why_unresolved, why_unusable; /* sentences; empty: no reason */
	unsigned failures;                          /* polls in a row that gave nothing */
	/* The interfaces' names, see correlate_names.h. */
	struct if_names *names;
	int64_t names_ms;      /* monotonic: when they were walked */
	bool names_stale;      /* to be walked again before they are relied on */
	bool wants_descr;      /* some of its interfaces have no ifName */
	bool guard_distrusted; /* names changed without the guard */
	bool gone;             /* not in the inventory any more: freed when it was looked up */
};

enum run_state {
	RUN_PROBE,
	RUN_NAMES_BEFORE,
	RUN_VALUES,
	RUN_NAMES_AFTER,
};

struct poll_run {
	struct poll_run *next, *previous; /* of core->runs */
	struct polled_set *set;
	enum run_state state;
	struct poller_walk *walk;
	int64_t deadline_ms;                  /* monotonic */
	bool answered;                        /* the device did, to the probe */
	struct correlate_set *values, *aside; /* of the OIDSet; of names and probes */
	struct if_names *before, *after;
	struct correlate_guard guard; /* read with the first values */
};

struct core {
	struct poller_options options;
	struct poller_io *io;
	struct schedule schedule;
	const struct inventory *inventory; /* NULL: none yet */
	struct polled_device **devices;    /* ascending by name */
	size_t device_count;
	struct core_plan *plans;
	struct correlate_plan names_plans[2][2]; /* [with ifDescr][with ifAlias] */
	struct correlate_plan probe_plan;
	struct poll_run *runs;
	struct ring ring;
	int64_t drain_at_ms; /* monotonic: what waits is not offered before */
	int64_t last_wall_ms, last_mono_ms;
	struct correlate_set *free_sets[POLLER_SETS_KEPT];
	size_t free_set_count;
	struct poll_builder builder;        /* scratch of all runs */
	const struct correlate_plan *built; /* whose columns it has; NULL: nobody's */
	struct buf message;
	struct arena scratch; /* of correlate */
	struct log_rate log_rate;
	/* For poller_once: a poll is over; why it gave nothing, or NULL. */
	void (*over)(void *owner, const char *why);
	void *over_owner;
};

static inline int64_t core_wall_ms(const struct core *core)
{
	return clock_wall_ms(core->options.clock);
}

static inline int64_t core_mono_ms(const struct core *core)
{
	return clock_mono_ms(core->options.clock);
}

struct core *core_new(const struct poller_options *options, struct poller_io *io);
/* Cancels what is under way. No look-up of a name may be (io's owner sees to it). */
void core_free(struct core *core);

/* Sets what is polled from now on; acquires a reference. */
void core_set_inventory(struct core *core, const struct inventory *inventory);
/* Polls all of the device now, of whatever slots; nothing where there is none of that name. */
void core_poll_now(struct core *core, struct slice device);
/* Does what is due; returns after how many ms it wants to be called again, at most
 * POLLER_STEP_MAX_MS. */
int64_t core_step(struct core *core);
/* Offers what waits, if it has waited long enough or is much. */
void core_offer(struct core *core);
/* Offers it now: the sink may take something again. */
void core_drain(struct core *core);

/* ---- poller_run.c -------------------------------------------------------------------------- */

/* Begins a poll; the device has a session. */
void run_start(struct core *core, struct polled_set *set);
/* Ends it without a result. */
void run_cancel(struct core *core, struct poll_run *run);
/* Ends those that are over time. */
void run_check_deadlines(struct core *core);
/* A poll that gave nothing: the device's state says why. */
void core_failed(struct core *core, struct polled_device *device, bool resolved, const char *why);

struct correlate_set *core_acquire_set(struct core *core);
void core_release_set(struct core *core, struct correlate_set *set); /* NULL is allowed */

#endif
