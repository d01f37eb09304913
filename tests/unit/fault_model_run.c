/* Of the model of faults: its steps, and a seed from beginning to end. */
#include "fault_model.h"

#include "naive.h"

enum { WATCH_STEPS = 60 };

/* ---- Time ------------------------------------------------------------------------------------ */

static void advance(struct model *m, int64_t by_ms)
{
	clock_virtual_advance(&m->clock, by_ms * 1000);
	m->unsettled_ms += by_ms;
}

/* To where something is decided, or just beside it. */
static void advance_to_edge(struct model *m)
{
	static const int64_t after_ms[] = {0, SKEW_MS, WRITE_MAX_MS, WRITE_MAX_MS + SKEW_MS,
					   WRITE_MAX_MS + SKEW_MS + SKEW_MS / 2};
	int64_t of_day_ms = now_ms(m) % DAY_MS;
	int64_t to_ms = after_ms[pick(m, ARRAY_LEN(after_ms))] + (int64_t)pick(m, 3) - 1;
	if (chance(m, 20))
		advance(m, chance(m, 50) ? LEASE_MS : CLEAR_MS);
	else if (of_day_ms < to_ms)
		advance(m, to_ms - of_day_ms);
	else if (of_day_ms > DAY_MS / 2)
		advance(m, DAY_MS - of_day_ms + to_ms);
}

/* All that was handed over has landed, or never will. Whoever is frozen may stay so. */
static void settle(struct model *m)
{
	bool stay = chance(m, 50);
	for (size_t i = 0; m->far && i < m->process_count; i++)
		far_freeze(m->processes[i].store, false);
	advance(m, LATE_MS);
	while (m->far && far_step(m->far))
		;
	for (size_t i = 0; m->far && i < m->process_count; i++)
		process_freeze(&m->processes[i], stay && m->processes[i].frozen);
	m->unsettled_ms = 0;
}

/* To shortly before midnight. */
static void pass_night(struct model *m)
{
	int64_t left_ms = DAY_MS - now_ms(m) % DAY_MS - 1 - (int64_t)pick(m, 60000);
	if (left_ms < DAY_MS / 2)
		return;
	if (chance(m, 50) || m->unsettled_ms + left_ms > UNSETTLED_MAX_MS)
		settle(m);
	if (m->unsettled_ms + left_ms > UNSETTLED_MAX_MS)
		left_ms = UNSETTLED_MAX_MS;
	advance(m, left_ms);
	trace(m, "a night has passed");
	settle(m);
}

/* So many that what writes nothing is closed, and far from midnight. */
static void pass_hours(struct model *m)
{
	int64_t by_ms = QUIET_MS + (int64_t)pick(m, 60000);
	if (chance(m, 50) || m->unsettled_ms + by_ms > UNSETTLED_MAX_MS)
		settle(m);
	if (now_ms(m) % DAY_MS + by_ms > DAY_MS - 600000)
		return;
	advance(m, by_ms);
	trace(m, "hours have passed");
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static struct process *some_process(struct model *m)
{
	size_t i = pick(m, m->process_count);
	if (i == m->which && !chance(m, m->sluggish))
		i = pick(m, m->process_count);
	return &m->processes[i];
}

static void restart(struct model *m, struct process *p)
{
	size_t place = p->place;
	trace(m, "%s dies", p->name);
	process_kill(p);
	process_open(m, p, place);
}

/* A process freezes, or goes on, or its clock is set. */
static void disturb(struct model *m)
{
	struct process *p = &m->processes[pick(m, m->process_count)];
	if (!m->far || chance(m, 50)) {
		p->clock.off_us = clock_off_us(m);
		trace(m, "the clock of %s is off by %lld us", p->name, (long long)p->clock.off_us);
		return;
	}
	trace(m, "%s %s", p->name, p->frozen ? "goes on" : "freezes");
	process_freeze(p, !p->frozen);
	m->watch = p->frozen ? 0 : WATCH_STEPS;
}

static bool step_store(struct model *m)
{
	if (m->far)
		return far_step(m->far);
	bool any = m->slow.write_count || m->slow.read_count;
	if (m->faulty && pick(m, 1000) < m->full)
		naive_fail_writes(m->landed, ERR_FULL, 1);
	if (m->slow.write_count && (!m->slow.read_count || chance(m, 50)))
		slow_write(&m->slow);
	else
		slow_read(&m->slow, pick(m, m->slow.read_count + 1));
	return any;
}

static void step_some_process(struct model *m)
{
	struct process *p = some_process(m);
	if (!p->frozen)
		(void)process_step(p);
}

static void tick_some_process(struct model *m)
{
	struct process *p = some_process(m);
	if (p->frozen)
		return;
	if (chance(m, 50))
		fault_intake_tick(p->intake);
	else
		process_tick(p);
}

static void run_step(struct model *m)
{
	unsigned kind = (unsigned)pick(m, 1000);
	if (pick(m, 1000) < m->disturbs)
		disturb(m);
	if (pick(m, 10000) < m->nights) {
		if (chance(m, 50))
			pass_hours(m);
		else
			pass_night(m);
	}
	if (kind < 380)
		step_some_process(m);
	else if (kind < 700)
		for (unsigned i = 0; i < m->far_steps; i++)
			(void)step_store(m);
	else if (kind < 760)
		client_begin(&m->clients[pick(m, CLIENTS)]);
	else if (kind < 850)
		tick_some_process(m);
	else if (kind < 880)
		process_ask(some_process(m));
	else if (kind < 970)
		advance(m, (int64_t)pick(m, m->pace_ms));
	else if (kind < 972)
		advance(m, (int64_t)pick(m, 2 * LEASE_MS));
	else if (kind < 975)
		restart(m, some_process(m));
	else if (pick(m, 25) < m->edges)
		advance_to_edge(m);
}

/* ---- Rest ------------------------------------------------------------------------------------ */

static bool work_off(struct model *m)
{
	bool any = false;
	for (size_t i = 0; i < m->process_count; i++)
		any |= process_step(&m->processes[i]);
	return step_store(m) || any;
}

static bool all_sent(struct model *m)
{
	bool sent = true;
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &m->clients[i];
		if (c->waits && !c->process)
			client_begin(c);
		sent &= !c->waits && !c->process;
	}
	return sent;
}

static bool all_counted(const struct model *m, size_t after)
{
	for (size_t t = 0; t < TENANTS; t++)
		if (m->pass_of[t] <= after)
			return false;
	return true;
}

static void set_faults(struct model *m, bool on)
{
	m->faulty = on;
	m->slow.fails = on ? m->fails : 0;
	m->slow.refuses = on ? m->refuses : 0;
	if (!m->far)
		naive_fail_writes(m->landed, 0, 0);
	else if (on)
		far_set_faults(m->far, &(struct far_faults){.unknown = m->fails,
							    .failed = m->fails,
							    .refused = m->refuses,
							    .cut = m->cut,
							    .full = m->full});
	else
		far_set_faults(m->far, &(struct far_faults){0});
}

/* Nothing fails any more, and time passes until what was sent is taken, and counted. */
static bool come_to_rest(struct model *m)
{
	size_t after = SIZE_MAX, rounds = 0;
	for (size_t i = 0; i < m->process_count; i++) {
		if (m->far)
			process_freeze(&m->processes[i], false);
		else
			m->processes[i].clock.off_us = 0;
	}
	for (; rounds < RESTS_MAX; rounds++) {
		if (work_off(m))
			continue;
		if (!all_sent(m))
			after = SIZE_MAX;
		else if (after == SIZE_MAX)
			after = m->passes;
		else if (all_counted(m, after))
			break;
		advance(m, TICK_MS);
		for (size_t i = 0; i < m->process_count; i++) {
			fault_intake_tick(m->processes[i].intake);
			process_tick(&m->processes[i]);
		}
	}
	return rounds < RESTS_MAX || differ(m, "it does not come to rest");
}

/* Until owners have had their tenants for so long that rows of volumes go, one in a pass. */
static bool stay_at_rest(struct model *m)
{
	bool right = true;
	for (int64_t ms = 0; ms < CLEAR_MS + LEASE_MS && right; ms += LEASE_MS / 3) {
		advance(m, LEASE_MS / 3);
		right = come_to_rest(m);
	}
	for (int64_t day = m->first_day; day <= now_ms(m) / DAY_MS && right; day++)
		right = come_to_rest(m) && come_to_rest(m);
	return right;
}

/* Writers may be closed or end meanwhile, and then runs are sealed, whose arrivals are to go. */
static bool stay_until_cleared(struct model *m)
{
	bool right = true;
	size_t sealed = SIZE_MAX;
	m->twice = SIZE_MAX;
	for (int i = 0; i < 3 && m->twice && right; i++) {
		right = stay_at_rest(m) && check_rest(m) && look(m);
		i = m->sealed == sealed ? i : 0;
		sealed = m->sealed;
	}
	return right;
}

/* Each process is asked some. */
static bool ask_all(struct model *m)
{
	for (size_t i = 0; i < m->process_count; i++) {
		struct process *p = &m->processes[i];
		for (size_t n = 0; n < 3; n++) {
			process_ask(p);
			while (p->reader.works && work_off(m))
				;
		}
	}
	return !m->failure[0];
}

/* Passes until an erasure is done, or its owner is another one. */
static bool erase_once(struct model *m, unsigned tenant, struct slice user)
{
	struct process *p = &m->processes[pick(m, m->process_count)];
	process_erase(p, tenant, user);
	bool dies = chance(m, 20), right = true;
	for (uint64_t steps = dies ? pick(m, 400) : 0; steps > 0; steps--) {
		if (!work_off(m))
			advance(m, TICK_MS);
		process_tick(p);
	}
	if (dies)
		restart(m, p);
	for (int passes = 0; passes < 6 && right; passes++)
		right = come_to_rest(m);
	return p->erasure &&
	       fault_book_erasure_state(p->books[tenant], p->erasure) == FAULT_ERASURE_DONE;
}

/* Of each id the first arrival is the report. */
static bool has_none_of(struct model *m, unsigned tenant, struct slice user)
{
	bool seen[IDS_MAX] = {false};
	for (size_t i = 0; i < m->arrival_count; i++) {
		const struct arrival *a = &m->arrivals[i];
		if (a->tenant != tenant || seen[a->id])
			continue;
		seen[a->id] = true;
		if (slice_equal(content_of(a->content).user, user))
			return differ(m, "id%u of an erased user is there", a->id);
	}
	return true;
}

/* Whoever asks again, until it is done, finds that no report of the user is left. */
static bool erase(struct model *m)
{
	unsigned tenant = (unsigned)pick(m, TENANTS), content = (unsigned)pick(m, m->contents);
	struct slice user = content_of(content).user;
	bool done = !user.len;
	m->erases = true;
	m->erased_users[tenant][content / GROUPS % USERS] = true;
	for (int tries = 0; tries < 100 && !done && !m->failure[0]; tries++)
		done = erase_once(m, tenant, user);
	bool right = (done || differ(m, "an erasure is not done")) && look(m);
	m->erases = false;
	return right && (!user.len || has_none_of(m, tenant, user));
}

static bool check_all(struct model *m)
{
	set_faults(m, false);
	bool right = come_to_rest(m);
	m->rests = true;
	advance(m, LATE_MS);
	right = right && come_to_rest(m) && come_to_rest(m);
	if (right && m->seals && !m->collects && chance(m, 8))
		right = erase(m);
	right = right && check_rest(m) && ask_all(m);
	trace(m, "all is at rest");
	if (right && chance(m, 10))
		right = stay_until_cleared(m) && check_cleared(m);
	m->unsettled_ms = 0;
	set_faults(m, true);
	m->rests = false;
	return right;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static void begin_store(struct model *m)
{
	m->process_count = 1 + pick(m, PROCESSES_MAX);
	m->slow = (struct slow){.random = &m->random};
	if (m->process_count > 1 || chance(m, 40)) {
		m->far = far_new(&m->clock.clock, m->seed, &(struct far_faults){0});
		m->landed = far_landed(m->far);
	} else {
		m->landed = m->slow.store = naive_open(&m->clock.clock);
	}
}

static void choose_paces(struct model *m)
{
	static const uint64_t paces_ms[] = {20, 150, 1000};
	m->pace_ms = paces_ms[pick(m, ARRAY_LEN(paces_ms))];
	m->edges = 1 + pick(m, 25);
	m->nights = chance(m, 70) ? 1 + (unsigned)pick(m, chance(m, 30) ? 200 : 20) : 0;
	m->disturbs = (unsigned)pick(m, 8);
	m->far_steps = 1 + (unsigned)pick(m, 4);
	m->pauses = chance(m, 50) ? (unsigned)pick(m, 10) : 0;
	m->sluggish = chance(m, 50) ? 2 : 100;
	m->which = pick(m, m->process_count);
	m->check_steps = 200 + pick(m, 2000);
	m->slice_arrivals = chance(m, 50) ? 1 + pick(m, 6) : 0;
	m->write_bytes = chance(m, 50) ? WRITE_LEAST_BYTES : 0;
	if (chance(m, 70)) {
		m->fails = (unsigned)pick(m, 60);
		m->refuses = (unsigned)pick(m, 60);
		m->full = chance(m, 50) ? (unsigned)pick(m, 60) : 0;
		m->cut = chance(m, 50) ? (unsigned)pick(m, 300) : 0;
	}
}

static void choose_clients(struct model *m)
{
	m->contents = 2 + (unsigned)pick(m, CONTENTS - 1);
	m->ids = 1 + (unsigned)pick(m, 6);
	m->reuse = (unsigned)pick(m, 90);
	m->many = (unsigned)pick(m, 60);
	m->takers = 1 + (unsigned)pick(m, m->process_count);
	for (size_t i = 0; i < CLIENTS; i++)
		m->clients[i].model = m;
	m->seals = chance(m, 70);
	m->collects = m->seals && chance(m, 40);
	m->newest = 1 + pick(m, 2);
	m->counts = chance(m, 50) ? 20 : 100;
	if (!m->collects)
		return;
	/* An id that is gone may come again: then it is another report. */
	m->reuse = 0;
	m->nights = 1 + (unsigned)pick(m, 40);
	if (!m->far)
		m->disturbs = 0;
}

static void begin(struct model *m, uint64_t seed, const struct run *run)
{
	*m = (struct model){.seed = seed, .trace = run->trace, .first_day = BEGIN_DAY - 3};
	random_init(&m->random, seed);
	clock_virtual_init(&m->clock,
			   (BEGIN_DAY * DAY_MS + DAY_MS - 1 - (int64_t)pick(m, 120000)) * 1000);
	task_queue_init(&m->own);
	begin_store(m);
	choose_paces(m);
	choose_clients(m);
	m->site = (struct fault_site){
		.store = m->landed,
		.clock = &m->clock.clock,
		.holder = SLICE("onlooker"),
		.limits = {.list_max = LIST_MAX, .names_max = NAMES_MAX, .groups_max = GROUPS_MAX},
		.skew_max_ms = SKEW_MS,
		.write_max_ms = WRITE_MAX_MS,
		.slice_arrivals = m->slice_arrivals,
		.write_bytes = m->write_bytes,
		.messages_max = chance(m, 50) ? pick(m, 3) : 0,
	};
	m->acks = mem_alloc_array(ACKS_MAX, sizeof(*m->acks));
	set_faults(m, true);
	for (size_t t = 0; t < TENANTS; t++)
		m->onlookers[t] = fault_book_new(&m->site, tenant_names[t]);
	for (size_t i = 0; i < m->process_count; i++)
		process_open(m, &m->processes[i], i);
	trace(m, "%zu processes, %s", m->process_count, m->far ? "far" : "slow");
}

static void end(struct model *m)
{
	for (size_t i = 0; i < m->process_count; i++)
		process_kill(&m->processes[i]);
	for (size_t t = 0; t < TENANTS; t++)
		fault_book_free(m->onlookers[t]);
	if (m->far)
		far_free(m->far);
	else
		store_close(m->slow.store);
	task_queue_release(&m->own);
	mem_free(m->arrivals);
	mem_free(m->given);
	for (size_t t = 0; t < TENANTS; t++)
		hash_table_release(&m->followed[t]);
	mem_free(m->acks);
}

bool run_seed(struct run *run, uint64_t seed, char *how, size_t how_bytes)
{
	struct model *m = mem_alloc(sizeof(*m));
	bool right = true;
	begin(m, seed, run);
	for (m->step = 1; m->step <= run->steps && right; m->step++) {
		run_step(m);
		if (chance(m, m->watch ? 15 : 1))
			right = check_landed(m);
		if (chance(m, 10))
			follow_messages(m, (unsigned)pick(m, TENANTS));
		m->watch -= m->watch > 0;
		if (right && (m->step % m->check_steps == 0 || m->step == run->steps))
			right = check_all(m);
		right &= !m->failure[0];
	}
	snprintf(how, how_bytes, "step %zu: %s", m->step - 1, m->failure);
	run->answers += m->answers;
	run->exact += m->exact;
	run->arrivals += m->arrival_count;
	run->sealed += m->sealed;
	run->gone += m->gone;
	run->wrong += !right;
	end(m);
	mem_free(m);
	return right;
}
