#include "snmp/poller_core.h"

#include "base/stats.h"

enum {
	LOG_LINES_PER_MINUTE = 60,
	WALL_JUMP_MS = 1000, /* what clocks may drift apart between two steps */
};

/* ---- Plans ----------------------------------------------------------------------------------- */

static struct core_plan *core_acquire_plan(struct core *core, const struct oidset *oidset)
{
	struct core_plan *plan = core->plans;
	while (plan && plan->plan.oidset != oidset)
		plan = plan->next;
	if (!plan) {
		plan = mem_zalloc(sizeof(*plan));
		correlate_plan_init(&plan->plan, oidset);
		plan->next = core->plans;
		core->plans = plan;
	}
	plan->references++;
	return plan;
}

static void core_release_plan(struct core *core, struct core_plan *plan)
{
	struct core_plan **at = &core->plans;
	if (--plan->references)
		return;
	if (core->built == &plan->plan)
		core->built = NULL;
	while (*at != plan)
		at = &(*at)->next;
	*at = plan->next;
	mem_free(plan);
}

struct correlate_set *core_acquire_set(struct core *core)
{
	if (core->free_set_count)
		return core->free_sets[--core->free_set_count];
	struct correlate_set *set = mem_alloc(sizeof(*set));
	correlate_set_init(set);
	return set;
}

void core_release_set(struct core *core, struct correlate_set *set)
{
	if (set && core->free_set_count < POLLER_SETS_KEPT) {
		core->free_sets[core->free_set_count++] = set;
	} else if (set) {
		correlate_set_release(set);
		mem_free(set);
	}
}

/* ---- OIDSets of a device --------------------------------------------------------------------- */

static struct polled_set *set_new(struct core *core, struct polled_device *device,
				  const struct oidset *oidset)
{
	struct polled_set *set = mem_zalloc(sizeof(*set));
	set->device = device;
	set->plan = core_acquire_plan(core, oidset);
	set->entry.interval_ms = oidset->frequency_ms;
	set->entry.phase_ms = schedule_phase(device_stored_as(device->device), oidset->name,
					     oidset->frequency_ms);
	schedule_add(&core->schedule, &set->entry, core_wall_ms(core));
	return set;
}

static void set_free(struct core *core, struct polled_set *set)
{
	if (set->run)
		run_cancel(core, set->run);
	schedule_remove(&core->schedule, &set->entry);
	core_release_plan(core, set->plan);
	mem_free(set);
}

/* Those that stay go on as they are: their slots, and what is under way. */
static void update_sets(struct core *core, struct polled_device *d)
{
	const struct device *device = d->device;
	struct polled_set **kept = d->sets;
	size_t kept_count = d->set_count;
	d->sets = mem_alloc_array(device->oidset_count, sizeof(struct polled_set *));
	d->set_count = device->oidset_count;
	for (size_t i = 0; i < device->oidset_count; i++) {
		d->sets[i] = NULL;
		for (size_t k = 0; k < kept_count; k++)
			if (kept[k] && kept[k]->plan->plan.oidset == device->oidsets[i]) {
				d->sets[i] = kept[k];
				kept[k] = NULL;
			}
		if (!d->sets[i])
			d->sets[i] = set_new(core, d, device->oidsets[i]);
	}
	for (size_t k = 0; k < kept_count; k++)
		if (kept[k])
			set_free(core, kept[k]);
	mem_free(kept);
}

/* ---- Addresses ------------------------------------------------------------------------------- */

static void drop_session(struct core *core, struct polled_device *d)
{
	for (size_t i = 0; i < d->set_count; i++) {
		if (d->sets[i]->run)
			run_cancel(core, d->sets[i]->run);
		d->sets[i]->hung = 0;
		d->sets[i]->rest_slots = 0;
	}
	if (d->session)
		core->io->session_free(core->io, d->session);
	d->session = NULL;
	if_names_release(d->names);
	d->names = NULL;
	d->guard_distrusted = d->wants_descr = false;
}

static void use_address(struct core *core, struct polled_device *d,
			const struct loop_address *address)
{
	if (d->session && loop_address_equal(&d->address, address))
		return;
	drop_session(core, d);
	d->address = *address;
	d->why_unusable.text[0] = 0;
	if (!d->device->credentials)
		errbuf_set(&d->why_unusable, 0, "its credentials are not in the secrets file");
	else if (core->io->session_new(core->io, address, d->device->credentials, &d->session,
				       &d->why_unusable))
		d->session = NULL;
}

static void device_free(struct polled_device *d);

/* A poll that was asked for waits for nothing but the device's address. */
static void hurry(struct polled_device *d)
{
	struct core *core = d->core;
	for (size_t i = 0; i < d->set_count; i++)
		if (d->sets[i]->wanted && d->session)
			schedule_hurry(&core->schedule, &d->sets[i]->entry, core_wall_ms(core));
}

static void poll_now(struct polled_device *d)
{
	for (size_t i = 0; i < d->set_count; i++)
		d->sets[i]->wanted = true;
	hurry(d);
}

static void resolved(void *owner, const struct loop_address *address, const char *why)
{
	struct polled_device *d = owner;
	d->resolving = false;
	if (d->gone) {
		device_free(d);
		return;
	}
	if (address) {
		d->resolved_ms = core_mono_ms(d->core);
		d->why_unresolved.text[0] = 0;
		use_address(d->core, d, address);
		hurry(d);
		return;
	}
	stat_add(STAT_poll_unresolved, 1);
	errbuf_set(&d->why_unresolved, 0, "%s", why);
	/* An address that was found once is used on. */
	if (!d->session)
		core_failed(d->core, d, false, d->why_unresolved.text);
}

static void ask_address(struct core *core, struct polled_device *d)
{
	const struct device *device = d->device;
	int64_t now_ms = core_mono_ms(core);
	if (d->resolving || (d->asked_ms && now_ms - d->asked_ms < POLLER_RESOLVE_RETRY_MS))
		return;
	if (core->io->resolve(core->io, device->address, device->port, resolved, d))
		return; /* the resolver is busy: in the next slot */
	d->asked_ms = now_ms ? now_ms : 1;
	d->resolving = true;
}

/* `192.0.2.1` and `2001:db8::1` need nobody to look them up. */
static bool core_parse_address(const struct device *device, struct loop_address *address)
{
	char text[INVENTORY_ADDRESS_MAX_BYTES + 16];
	bool v6 = memchr(device->address.data, ':', device->address.len) != NULL;
	int len = snprintf(text, sizeof(text), v6 ? "[%.*s]:%u" : "%.*s:%u",
			   (int)device->address.len, device->address.data, device->port);
	return loop_address_parse((struct slice){text, (size_t)len}, address, NULL) == 0;
}

static void find_address(struct core *core, struct polled_device *d)
{
	struct loop_address address;
	d->is_name = !core_parse_address(d->device, &address);
	d->asked_ms = d->resolved_ms = 0;
	if (d->is_name)
		ask_address(core, d);
	else
		use_address(core, d, &address);
}

/* ---- Devices --------------------------------------------------------------------------------- */

static struct polled_device *core_device_new(struct core *core)
{
	struct polled_device *d = mem_zalloc(sizeof(*d));
	d->core = core;
	stat_add(STAT_poll_devices, 1);
	return d;
}

static void device_free(struct polled_device *d)
{
	inventory_release(d->snapshot);
	if_names_release(d->names);
	mem_free(d->sets);
	mem_free(d);
}

static void core_device_end(struct core *core, struct polled_device *d)
{
	drop_session(core, d);
	for (size_t i = 0; i < d->set_count; i++)
		set_free(core, d->sets[i]);
	d->set_count = 0;
	d->gone = true;
	stat_add(STAT_poll_devices, -1);
	if (!d->resolving)
		device_free(d);
}

static bool same_place(const struct device *a, const struct device *b)
{
	return a->port == b->port && a->credentials == b->credentials &&
	       slice_equal(a->address, b->address);
}

static void device_update(struct core *core, struct polled_device *d,
			  const struct inventory *snapshot, const struct device *device)
{
	const struct inventory *old_snapshot = d->snapshot;
	bool moved = !d->device || !same_place(d->device, device);
	inventory_take(snapshot);
	d->snapshot = snapshot;
	d->device = device;
	update_sets(core, d);
	/* Another OIDSet may want to know of the names what was not asked. */
	d->names_stale = true;
	if (moved) {
		drop_session(core, d);
		d->failures = 0;
		find_address(core, d);
	}
	inventory_release(old_snapshot);
}

/* Both lists are ascending by name. */
void core_set_inventory(struct core *core, const struct inventory *inventory)
{
	struct polled_device **list =
		mem_alloc_array(inventory->device_count, sizeof(struct polled_device *));
	size_t k = 0, count = 0, new_count = 0;
	for (size_t i = 0; i < inventory->device_count; i++) {
		const struct device *device = inventory->devices[i];
		if (!slice_equal(device->poller, core->options.name))
			continue;
		while (k < core->device_count &&
		       slice_compare(core->devices[k]->device->name, device->name) < 0)
			core_device_end(core, core->devices[k++]);
		bool known = k < core->device_count &&
			     slice_equal(core->devices[k]->device->name, device->name);
		list[count] = known ? core->devices[k++] : core_device_new(core);
		device_update(core, list[count], inventory, device);
		/* At a start all are new, and none is. */
		if (!known && core->inventory && new_count++ < POLLER_NEW_AT_ONCE)
			poll_now(list[count]);
		count++;
	}
	while (k < core->device_count)
		core_device_end(core, core->devices[k++]);
	mem_free(core->devices);
	core->devices = list;
	core->device_count = count;
	inventory_take(inventory);
	inventory_release(core->inventory);
	core->inventory = inventory;
}

void core_poll_now(struct core *core, struct slice device)
{
	for (size_t i = 0; i < core->device_count; i++)
		if (slice_equal(core->devices[i]->device->name, device))
			poll_now(core->devices[i]);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

void core_failed(struct core *core, struct polled_device *d, bool is_resolved, const char *why)
{
	stat_add(STAT_poll_failed, 1);
	if (d->failures < UINT32_MAX)
		d->failures++;
	if (core->over) {
		core->over(core->over_owner, why);
		return;
	}
	device_state_failed(d->device->state, core_wall_ms(core), is_resolved, why);
	if (d->failures == 1)
		log_rated(&core->log_rate, core_mono_ms(core), LOG_WARN, "polling " SHOWN ": %s",
			  SHOWN_OF(d->device->name), why);
}

static void poll_unready(struct core *core, struct polled_device *d)
{
	if (d->why_unusable.text[0]) {
		core_failed(core, d, true, d->why_unusable.text);
		return;
	}
	/* The first answer is on its way. */
	bool waiting = d->resolving && !d->why_unresolved.text[0];
	ask_address(core, d);
	if (!waiting)
		core_failed(core, d, false,
			    d->why_unresolved.text[0] ? d->why_unresolved.text
						      : "its name has no address");
}

static void poll_due(struct core *core, struct polled_set *set, int64_t now_ms, int64_t missed)
{
	struct polled_device *d = set->device;
	if (!device_is_active(d->device, now_ms))
		return;
	if (missed) {
		stat_add(STAT_poll_missed, missed);
		return;
	}
	if (set->run) {
		stat_add(STAT_poll_skipped, 1);
		return;
	}
	if (set->rest_slots && !set->wanted) {
		set->rest_slots--;
		stat_add(STAT_poll_hanging, 1);
		return;
	}
	if (d->is_name && d->session &&
	    core_mono_ms(core) - d->resolved_ms >= core->options.resolve_ms)
		ask_address(core, d);
	if (d->session)
		run_start(core, set);
	else
		poll_unready(core, d);
}

/* A wall clock that was set back would leave everything waiting for times that have been. */
static void watch_wall_clock(struct core *core, int64_t now_ms)
{
	int64_t now_mono_ms = core_mono_ms(core);
	int64_t expected_ms = core->last_wall_ms + (now_mono_ms - core->last_mono_ms);
	if (core->last_wall_ms && now_ms < expected_ms - WALL_JUMP_MS)
		schedule_restart(&core->schedule, now_ms);
	core->last_wall_ms = now_ms;
	core->last_mono_ms = now_mono_ms;
}

static int64_t wait_ms(const struct core *core, int64_t now_ms)
{
	int64_t next_ms = schedule_next_ms(&core->schedule), ms = POLLER_STEP_MAX_MS;
	int64_t drain_ms = core->drain_at_ms - core_mono_ms(core);
	if (next_ms - now_ms < ms)
		ms = next_ms - now_ms;
	/* What ends before the next step waits for that one. */
	if (core->runs && ms > POLLER_GATHER_MS)
		ms = POLLER_GATHER_MS;
	if (core->ring.first && ms > drain_ms)
		ms = drain_ms;
	return ms > 0 ? ms : 0;
}

int64_t core_step(struct core *core)
{
	struct schedule_entry *entry;
	int64_t now_ms = core_wall_ms(core), missed;
	watch_wall_clock(core, now_ms);
	run_check_deadlines(core);
	while ((entry = schedule_next_due(&core->schedule, now_ms, &missed)))
		poll_due(core, CONTAINER_OF(entry, struct polled_set, entry), now_ms, missed);
	core_offer(core);
	return wait_ms(core, now_ms);
}

/* ---- Hand-off -------------------------------------------------------------------------------- */

/* A ring that is small is not filled by waiting. */
static bool is_much(const struct ring *ring)
{
	return ring->bytes >= POLLER_GATHER_BYTES || ring->bytes * 2 >= ring->bytes_max ||
	       ring->messages * 2 >= ring->messages_max;
}

void core_offer(struct core *core)
{
	if (core->ring.first && (core_mono_ms(core) >= core->drain_at_ms || is_much(&core->ring)))
		core_drain(core);
}

void core_drain(struct core *core)
{
	const struct poller_sink *sink = &core->options.sink;
	int64_t rest_ms = POLLER_GATHER_MS;
	bool any = core->ring.first;
	while (core->ring.first) {
		const struct ring_message *m = core->ring.first;
		int err = sink->put(sink->owner, m->oidset, m->device, m->bytes);
		if (err == ERR_BUSY || err == ERR_FULL || err == ERR_RETRY) {
			rest_ms = POLLER_SINK_RETRY_MS;
			break;
		}
		if (err)
			stat_add(STAT_poll_dropped_refused, 1);
		ring_pop(&core->ring);
	}
	if (any && sink->end)
		sink->end(sink->owner);
	core->drain_at_ms = core_mono_ms(core) + rest_ms;
	stat_set(STAT_poll_waiting, (int64_t)core->ring.messages);
	stat_set(STAT_poll_waiting_bytes, (int64_t)core->ring.bytes);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void set_defaults(struct poller_options *o)
{
	o->ring_messages_max = o->ring_messages_max ? o->ring_messages_max : POLLER_RING_MESSAGES;
	o->ring_bytes_max = o->ring_bytes_max ? o->ring_bytes_max : POLLER_RING_BYTES;
	o->names_ms = o->names_ms ? o->names_ms : POLLER_NAMES_MS;
	o->resolve_ms = o->resolve_ms ? o->resolve_ms : POLLER_RESOLVE_MS;
}

struct core *core_new(const struct poller_options *options, struct poller_io *io)
{
	struct core *core = mem_zalloc(sizeof(*core));
	core->options = *options;
	set_defaults(&core->options);
	core->io = io;
	schedule_init(&core->schedule);
	ring_init(&core->ring, core->options.ring_messages_max, core->options.ring_bytes_max);
	for (int descr = 0; descr < 2; descr++)
		for (int alias = 0; alias < 2; alias++)
			correlate_plan_init_names(&core->names_plans[descr][alias], descr, alias);
	correlate_plan_init_probe(&core->probe_plan);
	poll_builder_init(&core->builder);
	buf_init(&core->message, POLL_BYTES_MAX);
	arena_init(&core->scratch, CORRELATE_ARENA_MAX_BYTES);
	core->log_rate.lines_max = LOG_LINES_PER_MINUTE;
	return core;
}

void core_free(struct core *core)
{
	for (size_t i = 0; i < core->device_count; i++)
		core_device_end(core, core->devices[i]);
	ASSERT(!core->runs && !core->plans && core->schedule.count == 0);
	core_drain(core);
	stat_add(STAT_poll_dropped_full, (int64_t)core->ring.messages);
	ring_release(&core->ring);
	inventory_release(core->inventory);
	mem_free(core->devices);
	schedule_release(&core->schedule);
	poll_builder_release(&core->builder);
	buf_release(&core->message);
	arena_release(&core->scratch);
	while (core->free_set_count) {
		struct correlate_set *set = core->free_sets[--core->free_set_count];
		correlate_set_release(set);
		mem_free(set);
	}
	mem_free(core);
}
