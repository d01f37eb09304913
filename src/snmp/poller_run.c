/* One poll of one OIDSet at one device.
 *
 *   PROBE ----> NAMES_BEFORE ----> VALUES ----> (end)
 *   (device     (rows are named     |
 *    failing)    by interfaces,     +-----> NAMES_AFTER ----> (end)
 *                none known yet)
 *
 * The way after VALUES follows correlate_names.h: whether the names known before still
 * held when the last value was read. A walk that fails ends the run. The values it gave
 * are not stored: those it did not give look as if the device did not have them. */
#include "base/hash.h"
#include "base/stats.h"
#include "snmp/poller_core.h"
#include "wire/snmp_index.h"

static struct core *core_of(const struct poll_run *run)
{
	return run->set->device->core;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void poller_run_free(struct core *core, struct poll_run *run)
{
	if (run->previous)
		run->previous->next = run->next;
	else
		core->runs = run->next;
	if (run->next)
		run->next->previous = run->previous;
	run->set->run = NULL;
	core_release_set(core, run->values);
	core_release_set(core, run->aside);
	if_names_release(run->before);
	if_names_release(run->after);
	stat_add(STAT_poll_running, -1);
	mem_free(run);
}

void run_cancel(struct core *core, struct poll_run *run)
{
	if (run->walk)
		core->io->cancel(core->io, run->walk);
	run->walk = NULL;
	poller_run_free(core, run);
}

static void poller_run_rest(struct polled_set *set)
{
	int64_t most = POLLER_REST_MAX_MS / set->entry.interval_ms;
	set->hung += set->hung < 30;
	set->rest_slots = (INT64_C(1) << (set->hung - 1)) - 1;
	if (set->rest_slots > most)
		set->rest_slots = most;
}

/* One that does not answer at all costs a packet a slot; it does not hang. */
static void run_fail(struct core *core, struct poll_run *run, const char *why)
{
	struct polled_device *device = run->set->device;
	if (run->answered)
		poller_run_rest(run->set);
	poller_run_free(core, run);
	core_failed(core, device, true, why);
}

void run_check_deadlines(struct core *core)
{
	int64_t now_ms = core_mono_ms(core);
	for (struct poll_run *run = core->runs, *next; run; run = next) {
		next = run->next;
		if (now_ms < run->deadline_ms)
			continue;
		if (run->walk)
			core->io->cancel(core->io, run->walk);
		run->walk = NULL;
		run->answered = true;
		run_fail(core, run, "the poll was not over when its interval was");
	}
}

/* ---- The result ------------------------------------------------------------------------------ */

static int poller_run_push(void *owner, struct slice message)
{
	struct poll_run *run = owner;
	struct core *core = core_of(run);
	size_t dropped = ring_push(&core->ring, run->set->plan->plan.oidset,
				   device_stored_as(run->set->device->device), message);
	stat_add(STAT_poll_dropped_full, (int64_t)dropped);
	return 0;
}

static void count_notes(struct core *core, const struct poll_run *run)
{
	static const enum stat_id stats[TROUBLES] = {
		[TROUBLE_TYPE] = STAT_poll_refused_type,
		[TROUBLE_DOUBLED] = STAT_poll_refused_doubled,
		[TROUBLE_INDEX] = STAT_poll_refused_index,
		[TROUBLE_LIMIT] = STAT_poll_refused_limit,
		[TROUBLE_UNNAMED] = STAT_poll_refused_unnamed,
		[TROUBLE_RENAMED] = STAT_poll_refused_renamed,
		[TROUBLE_SHARED] = STAT_poll_names_shared,
	};
	const struct correlate_notes *notes = &run->values->notes;
	const struct polled_device *device = run->set->device;
	for (size_t i = 0; i < TROUBLES; i++)
		if (notes->counts[i])
			stat_add(stats[i], notes->counts[i]);
	if (notes->first.text[0])
		log_rated(&core->log_rate, core_mono_ms(core), LOG_INFO,
			  "polling " SHOWN ", " SHOWN ": %s", SHOWN_OF(device->device->name),
			  SHOWN_OF(run->set->plan->plan.oidset->name), notes->first.text);
}

static void poller_run_succeed(struct core *core, struct polled_set *set)
{
	struct polled_device *device = set->device;
	set->hung = 0;
	set->rest_slots = 0;
	if (device->failures)
		log_rated(&core->log_rate, core_mono_ms(core), LOG_INFO,
			  "polling " SHOWN ": it answers again", SHOWN_OF(device->device->name));
	device->failures = 0;
	if (core->over)
		core->over(core->over_owner, NULL);
	else
		device_state_succeeded(device->device->state, core_wall_ms(core));
}

/* `steady`: the device vouches that `after` held while the values were read. */
static void run_finish(struct core *core, struct poll_run *run, struct if_names *after, bool steady)
{
	struct polled_device *device = run->set->device;
	struct correlate_naming naming = {run->before, after, steady};
	struct correlate_output output = {
		.builder = &core->builder,
		.built = core->built,
		.message = &core->message,
		.scratch = &core->scratch,
		.emit = poller_run_push,
		.owner = run,
	};
	struct errbuf e = {""};
	if (run->values->row_count == 0) {
		/* It is there, and has none of it: nothing to store, nothing to complain of. */
		stat_add(STAT_poll_empty, 1);
		poller_run_succeed(core, run->set);
		poller_run_free(core, run);
		return;
	}
	arena_reset(&core->scratch);
	int err = correlate(run->values, device_stored_as(device->device), &naming, &output, &e);
	core->built = output.built;
	count_notes(core, run);
	if (err) {
		run_fail(core, run, e.text);
		return;
	}
	stat_add(STAT_poll_ok, 1);
	stat_add(STAT_poll_values, (int64_t)output.values);
	core_offer(core);
	poller_run_succeed(core, run->set);
	poller_run_free(core, run);
}

/* ---- Names ----------------------------------------------------------------------------------- */

static void poller_run_set_names(struct core *core, struct polled_device *device,
				 struct if_names *names)
{
	if_names_acquire(names);
	if_names_release(device->names);
	device->names = names;
	device->names_ms = core_mono_ms(core);
	device->names_stale = false;
	stat_add(STAT_poll_names_walked, 1);
}

/* The sum of all indices that have values, in any order. Only rows of interfaces: scalars and what
 * is walked beside stay the same anyway. */
static uint64_t sum_indices(const struct correlate_set *set)
{
	uint64_t sum = set->row_count;
	for (size_t i = 0; i < set->row_count; i++)
		sum += hash64(set->indices[i].data, set->indices[i].len, 1);
	return sum;
}

static uint32_t interface_of(const struct correlate_plan *plan, const struct index_arcs *arcs)
{
	return arcs->list[plan->kind == CORRELATOR_JNX_COS ? 0 : arcs->count - 1];
}

static bool names_cover(const struct if_names *names, const struct correlate_set *set)
{
	static const struct slice scalar = {"", 1}; /* the index 0 */
	struct index_arcs arcs;
	size_t near = 0;
	for (size_t i = 0; i < set->row_count; i++)
		if (!slice_equal(set->indices[i], scalar) &&
		    (index_read(set->indices[i], &arcs) ||
		     !if_names_find_near(names, interface_of(set->plan, &arcs), &near)))
			return false;
	return true;
}

/* Whether the names known before may be relied on as far as the values themselves tell. */
static bool names_hold(struct core *core, struct poll_run *run)
{
	const struct polled_device *device = run->set->device;
	uint64_t sum = sum_indices(run->values);
	bool same_rows = run->set->index_sum == 0 || run->set->index_sum == sum;
	run->set->index_sum = sum;
	return same_rows && !device->guard_distrusted && !device->names_stale &&
	       core_mono_ms(core) - device->names_ms < core->options.names_ms &&
	       correlate_guard_unchanged(&run->before->guard, &run->guard) &&
	       names_cover(run->before, run->values);
}

/* Names that moved although the device said that nothing did: from now on it is asked every time.
 */
static void check_trust(struct core *core, struct polled_device *device,
			const struct if_names *before, const struct if_names *after)
{
	if (device->guard_distrusted || !correlate_guard_unchanged(&before->guard, &after->guard) ||
	    !if_names_moved(before, after))
		return;
	device->guard_distrusted = true;
	stat_add(STAT_poll_guards_distrusted, 1);
	log_rated(&core->log_rate, core_mono_ms(core), LOG_WARN,
		  "polling " SHOWN ": interfaces have other names although its "
		  "ifTableLastChange stands still; what was stored under them since %lld ms "
		  "ago may be another's. From now on their names are read with every poll",
		  SHOWN_OF(device->device->name),
		  (long long)(core_mono_ms(core) - device->names_ms));
}

/* ---- States ---------------------------------------------------------------------------------- */

static void run_enter(struct core *core, struct poll_run *run, enum run_state state);

/* Whether the device vouches, and is believed, that nothing changed since the values were read. */
static bool is_steady(const struct poll_run *run, const struct correlate_guard *now)
{
	return !run->set->device->guard_distrusted && correlate_guard_unchanged(&run->guard, now);
}

static bool wants_alias(const struct polled_device *device)
{
	for (size_t i = 0; i < device->set_count; i++)
		if (device->sets[i] && device->sets[i]->plan->plan.skip_undescribed)
			return true;
	return false;
}

static void after_values(struct core *core, struct poll_run *run)
{
	if (!correlate_needs_names(run->set->plan->plan.kind)) {
		run_finish(core, run, NULL, false);
		return;
	}
	run->guard = correlate_guard_before(run->values);
	struct correlate_guard now = correlate_guard_behind(run->values);
	if (names_hold(core, run) && is_steady(run, &now))
		run_finish(core, run, run->before, false);
	else
		run_enter(core, run, RUN_NAMES_AFTER);
}

static void after_names(struct core *core, struct poll_run *run)
{
	struct polled_device *device = run->set->device;
	struct errbuf e = {""};
	bool first = run->state == RUN_NAMES_BEFORE;
	struct if_names **names = first ? &run->before : &run->after;
	if (if_names_new(run->aside, names, &e)) {
		run_fail(core, run, e.text);
		return;
	}
	if (!device->wants_descr &&
	    (if_names_lack(*names) || (!first && !names_cover(*names, run->values)))) {
		/* An interface without an ifName may have an ifDescr. */
		device->wants_descr = true;
		if_names_release(*names);
		*names = NULL;
		run_enter(core, run, run->state);
		return;
	}
	if (!first)
		check_trust(core, device, run->before, run->after);
	poller_run_set_names(core, device, *names);
	struct correlate_guard now = correlate_guard_behind(run->aside);
	if (first)
		run_enter(core, run, RUN_VALUES);
	else
		run_finish(core, run, run->after, is_steady(run, &now));
}

static void begin_values(struct core *core, struct poll_run *run)
{
	struct polled_device *device = run->set->device;
	bool needs = correlate_needs_names(run->set->plan->plan.kind);
	if (needs && !run->before && device->names) {
		run->before = device->names;
		if_names_acquire(run->before);
	}
	run_enter(core, run, needs && !run->before ? RUN_NAMES_BEFORE : RUN_VALUES);
}

static void poller_run_step(struct core *core, struct poll_run *run)
{
	switch (run->state) {
	case RUN_PROBE:
		run->answered = true;
		begin_values(core, run);
		break;
	case RUN_NAMES_BEFORE:
	case RUN_NAMES_AFTER:
		after_names(core, run);
		break;
	case RUN_VALUES:
		after_values(core, run);
		break;
	}
}

static void poller_run_on_foresee(const void *owner)
{
	const struct poll_run *run = owner;
	correlate_set_foresee(run->state == RUN_VALUES ? run->values : run->aside);
}

static void poller_run_on_reply(void *owner, const struct snmp_reply *reply)
{
	struct poll_run *run = owner;
	struct correlate_set *set = run->state == RUN_VALUES ? run->values : run->aside;
	correlate_set_add_cells(set, reply);
}

/* What cannot do without a column that the device did not give whole: names would be others, and
 * versioned rows would end. Counters are stored as far as they go. */
static bool needs_whole(const struct poll_run *run)
{
	switch (run->state) {
	case RUN_NAMES_BEFORE:
	case RUN_NAMES_AFTER:
		return true;
	case RUN_VALUES:
		return run->set->plan->plan.oidset->kind != OIDSET_COUNTERS;
	default:
		return false;
	}
}

static void poller_run_on_done(void *owner, int err, const char *why, const struct oid_def *cut)
{
	struct poll_run *run = owner;
	struct core *core = core_of(run);
	char sentence[128];
	run->walk = NULL;
	if (cut)
		stat_add(STAT_poll_columns_cut, 1);
	if (err) {
		run_fail(core, run, why);
	} else if (cut && needs_whole(run)) {
		snprintf(sentence, sizeof(sentence), "the device does not give all of " SHOWN,
			 SHOWN_OF(cut->name));
		run_fail(core, run, sentence);
	} else {
		poller_run_step(core, run);
	}
}

static const struct correlate_plan *plan_of(const struct core *core, const struct poll_run *run)
{
	switch (run->state) {
	case RUN_VALUES:
		return &run->set->plan->plan;
	case RUN_NAMES_BEFORE:
	case RUN_NAMES_AFTER:
		return &core->names_plans[run->set->device->wants_descr]
					 [wants_alias(run->set->device)];
	default:
		return &core->probe_plan;
	}
}

static void run_enter(struct core *core, struct poll_run *run, enum run_state state)
{
	static const struct poller_walk_events events = {poller_run_on_reply, poller_run_on_done,
							 poller_run_on_foresee};
	run->state = state;
	struct correlate_set **set = state == RUN_VALUES ? &run->values : &run->aside;
	const struct correlate_plan *plan = plan_of(core, run);
	if (!*set)
		*set = core_acquire_set(core);
	correlate_set_begin(*set, plan, core_wall_ms(core));
	int err = core->io->walk(core->io, run->set->device->session, plan, state == RUN_PROBE,
				 &events, run, &run->walk);
	if (err)
		run_fail(core, run, err_text(err));
}

/* Until its next slot; a poll that does not begin in one has as long. */
static int64_t poller_run_time_of(const struct core *core, const struct polled_set *set)
{
	int64_t left_ms = set->entry.due_ms - core_wall_ms(core), all_ms = set->entry.interval_ms;
	return set->wanted || left_ms <= 0 || left_ms > all_ms ? all_ms : left_ms;
}

void run_start(struct core *core, struct polled_set *set)
{
	struct poll_run *run = mem_zalloc(sizeof(*run));
	run->set = set;
	run->deadline_ms = core_mono_ms(core) + poller_run_time_of(core, set);
	set->wanted = false;
	run->next = core->runs;
	if (core->runs)
		core->runs->previous = run;
	core->runs = run;
	set->run = run;
	stat_add(STAT_poll_running, 1);
	if (set->device->failures >= POLLER_FAILURES_PROBE)
		run_enter(core, run, RUN_PROBE);
	else
		begin_values(core, run);
}
