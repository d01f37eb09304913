/* Of the model of roll-ups: its steps, and a seed from beginning to end. */
#include "rollup_model.h"

#include "base/fault.h"
#include "naive.h"

/* ---- Steps ----------------------------------------------------------------------------------- */

static void advance(struct model *m, int64_t by_ms)
{
	clock_virtual_advance(&m->clock, by_ms * 1000);
}

/* To where something is decided, or just beside it. */
static void advance_to_edge(struct model *m)
{
	static const int64_t after_ms[] = {QUIET_MS / 5, QUIET_MS - QUIET_MS / 5, QUIET_MS,
					   LEASE_MS};
	int64_t end_ms = SLOT_MS - now_ms(m) % SLOT_MS;
	int64_t by_ms = chance(m, 60) ? after_ms[pick(m, ARRAY_LEN(after_ms))]
				      : end_ms + (chance(m, 50) ? QUIET_MS : 0);
	advance(m, by_ms + (int64_t)pick(m, 3) - 1);
}

/* Those that take line protocol, then those that roll up, then the one that deletes, and of a far
 * store the one that makes marks again. */
enum { PROCESSES = TAKERS + WORKERS + 2 };

static struct process *process_at(struct model *m, size_t i)
{
	if (i == TAKERS + WORKERS + 1)
		return &m->rebuilder.p;
	if (i == TAKERS + WORKERS)
		return &m->deleter.p;
	return i < TAKERS ? &m->takers[i].p : &m->workers[i - TAKERS].p;
}

static void step_some_process(struct model *m)
{
	size_t i = pick(m, TAKERS + WORKERS);
	if (i == m->which && !chance(m, m->sluggish))
		i = pick(m, TAKERS + WORKERS);
	if (process_at(m, i)->frozen)
		return;
	if (i < TAKERS)
		task_step(&m->takers[i].p.queue);
	else
		worker_step(&m->workers[i - TAKERS]);
}

static void restart_something(struct model *m)
{
	size_t i = pick(m, TAKERS + WORKERS + (m->deletes != 0));
	if (m->rebuilds && chance(m, 20)) {
		trace(m, "rebuilder dies");
		rebuilder_kill(&m->rebuilder);
		rebuilder_open(m);
		return;
	}
	if (i == TAKERS + WORKERS) {
		trace(m, "deleter dies");
		deleter_kill(&m->deleter);
		deleter_open(m);
		return;
	}
	if (i < TAKERS) {
		trace(m, "taker%zu dies", i);
		taker_kill(m, &m->takers[i]);
		taker_open(m, &m->takers[i], i);
		return;
	}
	trace(m, "worker%zu dies", i - TAKERS);
	worker_kill(&m->workers[i - TAKERS]);
	worker_open(m, &m->workers[i - TAKERS], i - TAKERS);
}

static void client_any(struct model *m)
{
	struct client *c = &m->clients[pick(m, CLIENTS)];
	if (c->r)
		client_step(c, false);
	else
		client_begin(c);
}

/* Of a far store: a process freezes, or goes on, or its clock is set. */
static void disturb(struct model *m)
{
	struct process *p = process_at(m, pick(m, PROCESSES));
	if (chance(m, 50)) {
		p->clock.off_us = clock_off_us(m);
		trace(m, "the clock of %s is off by %lld us", p->name, (long long)p->clock.off_us);
		return;
	}
	trace(m, "%s %s", p->name, p->frozen ? "goes on" : "freezes");
	process_freeze(p, !p->frozen);
}

static void step_store(struct model *m, bool write)
{
	if (m->far)
		(void)far_step(m->far);
	else if (write)
		slow_write(&m->slow);
	else
		slow_read(&m->slow, pick(m, m->slow.read_count + 1));
}

static void run_step(struct model *m)
{
	unsigned kind = (unsigned)pick(m, 1000);
	if (m->far && pick(m, 1000) < m->disturbs)
		disturb(m);
	if (m->deletes && !m->deleter.p.frozen && chance(m, 10)) {
		deleter_tick(&m->deleter);
		deleter_step(&m->deleter);
	}
	if (m->rebuilds && chance(m, 10)) {
		rebuilder_tick(&m->rebuilder);
		if (!m->rebuilder.p.frozen)
			rebuilder_step(&m->rebuilder);
	}
	if (kind >= 350 && kind < 750 && !chance(m, m->store))
		return;
	if (kind < 350)
		step_some_process(m);
	else if (kind < 750)
		step_store(m, kind < 550);
	else if (kind < 850)
		client_any(m);
	else if (kind < 920)
		worker_tick(&m->workers[pick(m, WORKERS)]);
	else if (kind < 970)
		advance(m, (int64_t)pick(m, m->pace_ms));
	else if (kind < 971)
		advance(m, (int64_t)pick(m, 3 * SLOT_MS));
	else if (kind < 980)
		ingest_tick(m->takers[pick(m, TAKERS)].ingest);
	else if (kind < 983)
		restart_something(m);
	else if (pick(m, 17) < m->edges)
		advance_to_edge(m);
}

static bool work_off(struct model *m)
{
	bool any = false;
	for (size_t i = 0; i < TAKERS; i++)
		any |= task_step(&m->takers[i].p.queue);
	for (size_t i = 0; i < WORKERS; i++)
		any |= worker_step(&m->workers[i]);
	any |= deleter_step(&m->deleter);
	any |= rebuilder_step(&m->rebuilder);
	if (m->far)
		return far_step(m->far) || any;
	any |= m->slow.write_count || m->slow.read_count;
	slow_write(&m->slow);
	if (m->slow.read_count)
		slow_read(&m->slow, 0);
	return any;
}

static bool all_sent(struct model *m)
{
	bool sent = true;
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &m->clients[i];
		if (c->waits && !c->r)
			client_begin(c);
		client_step(c, true);
		sent &= !c->r && !c->waits;
	}
	return sent;
}

static void set_faults(struct model *m, unsigned fails, unsigned refuses)
{
	m->slow.fails = fails;
	m->slow.refuses = refuses;
	if (m->far)
		far_set_faults(m->far, &(struct far_faults){fails, fails, refuses});
}

/* Nothing fails any more, and time passes. */
static bool come_to_rest(struct model *m)
{
	unsigned fails = m->slow.fails, refuses = m->slow.refuses, pauses = m->pauses;
	set_faults(m, 0, 0);
	m->pauses = 0;
	for (size_t i = 0; m->far && i < PROCESSES; i++)
		process_freeze(process_at(m, i), false);
	size_t rounds = 0;
	for (; rounds < RESTS_MAX; rounds++) {
		if (work_off(m))
			continue;
		if (m->deleter.wanted && !m->deleter.works)
			deleter_begin(&m->deleter);
		if (m->rebuilder.wanted)
			rebuilder_tick(&m->rebuilder);
		if (all_sent(m) && !marked_rows(m) && !m->deleter.wanted && !m->rebuilder.wanted)
			break;
		advance(m, TICK_MS);
		for (size_t i = 0; i < WORKERS; i++)
			worker_tick(&m->workers[i]);
	}
	set_faults(m, fails, refuses);
	m->pauses = pauses;
	return rounds < RESTS_MAX || differ(m, "it does not come to rest");
}

static bool check_all(struct model *m)
{
	bool right = come_to_rest(m);
	trace(m, "all is at rest");
	for (unsigned s = 0; s < SERIES && right; s++)
		right = check_series(m, s);
	return right;
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static void begin_store(struct model *m, const struct run *run)
{
	m->slow = (struct slow){.random = &m->random};
	if (run->far) {
		m->far = far_new(&m->clock.clock, m->seed, &(struct far_faults){0});
		far_plant(m->far, run->bug);
		m->landed = far_landed(m->far);
		m->disturbs = (unsigned)pick(m, 8);
		m->pauses = chance(m, 50) ? (unsigned)pick(m, 20) : 0;
	} else {
		m->landed = m->slow.store = naive_open(&m->clock.clock);
	}
}

static void begin(struct model *m, uint64_t seed, const struct run *run)
{
	static const size_t cache_bytes[] = {1, 17000, 18000, 1 << 20};
	static const uint64_t paces_ms[] = {10, 100, 800};
	struct errbuf e = {""};
	*m = (struct model){.seed = seed, .trace = run->trace};
	random_init(&m->random, seed);
	clock_virtual_init(&m->clock, (BEGIN_MS + (int64_t)pick(m, SLOT_MS)) * 1000);
	task_queue_init(&m->own);
	int err = granularities_parse(granularity_items, ARRAY_LEN(granularity_items), SLOT_MS,
				      &m->granularities, &e);
	ASSERT(!err);
	begin_store(m, run);
	m->loses = chance(m, 50);
	m->slice_points = chance(m, 50) ? 0 : 1 + pick(m, 40);
	if (!m->loses && chance(m, 60)) {
		unsigned fails = (unsigned)pick(m, 30), refuses = (unsigned)pick(m, 30);
		set_faults(m, fails, refuses);
	}
	m->atomic = chance(m, 50);
	m->pace_ms = paces_ms[pick(m, ARRAY_LEN(paces_ms))];
	m->one_name = chance(m, 20);
	m->late = chance(m, 50);
	if (m->late) {
		m->open_ms = SLOT_MS + 2 * QUIET_MS + (int64_t)pick(m, 8 * SLOT_MS);
		m->raw_ms = chance(m, 50) ? m->open_ms + LAG_MS : 0;
	}
	m->edges = 1 + pick(m, 17);
	m->measurements = 1 + pick(m, MEASUREMENTS);
	m->hosts = 1 + pick(m, HOSTS);
	m->used_takers = 1 + pick(m, TAKERS);
	m->shapes = 1 + pick(m, SHAPES);
	for (size_t i = 0; i < SHAPES; i++) {
		m->shape[i].first = pick(m, FIELDS);
		m->shape[i].count = 1 + pick(m, FIELDS);
	}
	m->store = chance(m, 30) ? 10 : 100;
	m->sluggish = chance(m, 50) ? 2 : 100;
	m->which = pick(m, TAKERS + WORKERS);
	m->check_steps = 200 + pick(m, 2000);
	m->texts = chance(m, 50) ? 10 : 50;
	m->cache_max_bytes = cache_bytes[pick(m, ARRAY_LEN(cache_bytes))];
	m->accepted = mem_alloc_array(ACCEPTED_MAX, sizeof(*m->accepted));
	m->doubtful = mem_alloc_array(ACCEPTED_MAX, sizeof(*m->doubtful));
	m->lost = mem_alloc_array(ACCEPTED_MAX, sizeof(*m->lost));
	for (size_t i = 0; i < TAKERS; i++)
		taker_open(m, &m->takers[i], i);
	for (size_t i = 0; i < WORKERS; i++) {
		const char *own[] = {"0-3", "0-3", "1,3", "0", "2-3"};
		const char *text = own[i ? pick(m, ARRAY_LEN(own)) : 0];
		err = partitions_parse(slice_of(text), PARTITIONS, &m->workers[i].own, &e);
		ASSERT(!err);
		m->workers[i].share = m->workers[i].own.count == PARTITIONS && chance(m, 50);
		worker_open(m, &m->workers[i], i);
	}
	for (size_t i = 0; i < CLIENTS; i++)
		m->clients[i].model = m;
	if (run->deletes)
		m->deletes = 50 + (unsigned)pick(m, 50);
	else
		m->deletes = chance(m, 50) ? 1 + (unsigned)pick(m, 100) : 0;
	deleter_open(m);
	m->rebuilds = run->far && chance(m, 30) ? 20 + (unsigned)pick(m, 100) : 0;
	rebuilder_open(m);
}

static void end(struct model *m)
{
	for (size_t i = 0; i < TAKERS; i++)
		taker_kill(m, &m->takers[i]);
	for (size_t i = 0; i < WORKERS; i++)
		worker_kill(&m->workers[i]);
	deleter_kill(&m->deleter);
	rebuilder_kill(&m->rebuilder);
	if (m->far)
		far_free(m->far);
	else
		store_close(m->slow.store);
	task_queue_release(&m->own);
	mem_free(m->accepted);
	mem_free(m->doubtful);
	mem_free(m->lost);
	mem_free(m->deletions);
}

bool run_seed(struct run *run, uint64_t seed, char *how, size_t how_bytes)
{
	struct model *m = mem_alloc(sizeof(*m));
	bool right = true;
	fault_set_pause(worker_pause);
	begin(m, seed, run);
	for (m->step = 1; m->step <= run->steps && right; m->step++) {
		run_step(m);
		if (m->far && chance(m, 5))
			right = check_query(m);
		if (right && (m->step % m->check_steps == 0 || m->step == run->steps))
			right = check_all(m);
		right &= !m->failure[0];
	}
	snprintf(how, how_bytes, "step %zu: %s", m->step - 1, m->failure);
	run->late += m->late_seen;
	run->from_rows += m->from_rows;
	run->wrong += !right;
	end(m);
	mem_free(m);
	return right;
}
