/* Property test of roll-ups. Some processes that take line protocol and some that roll up share a
 * store that is far away (slow_store.h); a seed decides who does what next, what fails, who dies
 * and is started again, and how the clock moves on. One more deletes samples, of some time or of
 * all, and goes on when it was broken off. Whenever all has come to rest, every row of every
 * granularity is what a plain loop makes of the raw data, those of late points what it makes of
 * late data, every sample of a request that was answered well is in one of the two unless a
 * deletion since was of its time, and no mark is left. */
#include "rollup_model.h"

#include "naive.h"
#include "tools/long_run.h"

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

static void step_some_process(struct model *m)
{
	size_t i = pick(m, TAKERS + WORKERS);
	if (i == m->which && !chance(m, m->sluggish))
		i = pick(m, TAKERS + WORKERS);
	if (i < TAKERS)
		task_step(&m->takers[i].p.queue);
	else
		worker_step(&m->workers[i - TAKERS]);
}

static void restart_something(struct model *m)
{
	size_t i = pick(m, TAKERS + WORKERS + (m->deletes != 0));
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

static void run_step(struct model *m)
{
	unsigned kind = (unsigned)pick(m, 1000);
	if (m->deletes && chance(m, 10)) {
		deleter_tick(&m->deleter);
		deleter_step(&m->deleter);
	}
	if (kind >= 350 && kind < 750 && !chance(m, m->store))
		return;
	if (kind < 350)
		step_some_process(m);
	else if (kind < 550)
		slow_write(&m->slow);
	else if (kind < 750)
		slow_read(&m->slow, pick(m, m->slow.read_count + 1));
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

/* Nothing fails any more, and time passes. */
static bool come_to_rest(struct model *m)
{
	unsigned fails = m->slow.fails, refuses = m->slow.refuses;
	m->slow.fails = m->slow.refuses = 0;
	size_t rounds = 0;
	for (; rounds < RESTS_MAX; rounds++) {
		if (work_off(m))
			continue;
		if (m->deleter.wanted && !m->deleter.works)
			deleter_begin(&m->deleter);
		if (all_sent(m) && !marked_rows(m) && !m->deleter.wanted)
			break;
		advance(m, TICK_MS);
		for (size_t i = 0; i < WORKERS; i++)
			worker_tick(&m->workers[i]);
	}
	m->slow.fails = fails;
	m->slow.refuses = refuses;
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

static void begin(struct model *m, uint64_t seed, bool with_trace)
{
	static const size_t cache_bytes[] = {1, 17000, 18000, 1 << 20};
	static const uint64_t paces_ms[] = {10, 100, 800};
	struct errbuf e = {""};
	*m = (struct model){.seed = seed, .trace = with_trace};
	random_init(&m->random, seed);
	clock_virtual_init(&m->clock, (BEGIN_MS + (int64_t)pick(m, SLOT_MS)) * 1000);
	task_queue_init(&m->own);
	int err = granularities_parse(granularity_items, ARRAY_LEN(granularity_items), SLOT_MS,
				      &m->granularities, &e);
	ASSERT(!err);
	m->slow = (struct slow){.store = naive_open(&m->clock.clock), .random = &m->random};
	m->loses = chance(m, 50);
	m->slice_points = chance(m, 50) ? 0 : 1 + pick(m, 40);
	if (!m->loses && chance(m, 60)) {
		m->slow.fails = (unsigned)pick(m, 30);
		m->slow.refuses = (unsigned)pick(m, 30);
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
	for (size_t i = 0; i < TAKERS; i++)
		taker_open(m, &m->takers[i], i);
	for (size_t i = 0; i < WORKERS; i++) {
		const char *own[] = {"0-3", "0-3", "1,3", "0", "2-3"};
		const char *text = own[i ? pick(m, ARRAY_LEN(own)) : 0];
		err = partitions_parse(slice_of(text), PARTITIONS, &m->workers[i].own, &e);
		ASSERT(!err);
		worker_open(m, &m->workers[i], i);
	}
	for (size_t i = 0; i < CLIENTS; i++)
		m->clients[i].model = m;
	m->deletes = chance(m, 50) ? 1 + (unsigned)pick(m, 100) : 0;
	deleter_open(m);
}

static void end(struct model *m)
{
	for (size_t i = 0; i < TAKERS; i++)
		taker_kill(m, &m->takers[i]);
	for (size_t i = 0; i < WORKERS; i++)
		worker_kill(&m->workers[i]);
	deleter_kill(&m->deleter);
	store_close(m->slow.store);
	task_queue_release(&m->own);
	mem_free(m->accepted);
}

static bool run_seed(uint64_t seed, size_t steps, bool with_trace, uint64_t *late)
{
	struct model *m = mem_alloc(sizeof(*m));
	bool right = true;
	begin(m, seed, with_trace);
	for (m->step = 1; m->step <= steps && right; m->step++) {
		run_step(m);
		if (m->step % m->check_steps == 0 || m->step == steps)
			right = check_all(m);
	}
	if (!right)
		printf("seed %llu, step %zu: %s\n", (unsigned long long)seed, m->step - 1,
		       m->failure);
	*late += m->late_seen;
	end(m);
	mem_free(m);
	return right;
}

int main(int argc, char **argv)
{
	unsigned long long first = 1, last = long_run() ? 6000 : 300;
	size_t steps = 9000, wrong = 0;
	uint64_t late = 0;
	bool with_trace = false;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--trace") == 0)
			with_trace = true;
		else if (i + 1 < argc && strcmp(argv[i], "--steps") == 0)
			steps = strtoul(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0 &&
			 sscanf(argv[++i], "%llu..%llu", &first, &last) == 1)
			last = first;
	}
	for (unsigned long long seed = first; seed <= last && wrong < 5; seed++)
		wrong += !run_seed(seed, steps, with_trace, &late);
	printf("roll-ups: seeds %llu..%llu, %zu steps each, %llu late samples: %zu are wrong\n",
	       first, last, steps, (unsigned long long)late, wrong);
	return wrong != 0;
}
