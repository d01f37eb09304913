/* Of the model of faults: processes that take reports, own tenants, count and answer. */
#include "fault_model.h"

const struct slice tenant_names[TENANTS] = {SLICE("t"), SLICE("u")};

enum { SET_BACK_MAX_MS = 2 * DAY_MS }; /* where no other process is there */

/* ---- Clocks ---------------------------------------------------------------------------------- */

static struct process_clock *process_clock_of(struct clock *clock)
{
	return CONTAINER_OF(clock, struct process_clock, clock);
}

static int64_t process_wall_us(struct clock *clock)
{
	struct process_clock *own = process_clock_of(clock);
	return own->of->clock.wall_us(&own->of->clock) + own->off_us;
}

static int64_t process_mono_us(struct clock *clock)
{
	struct process_clock *own = process_clock_of(clock);
	return own->of->clock.mono_us(&own->of->clock);
}

int64_t clock_off_us(struct model *m)
{
	if (m->far)
		return ((int64_t)pick(m, SKEW_MS + 1) - SKEW_MS / 2) * 1000;
	if (m->rests || chance(m, 70))
		return 0;
	return -(int64_t)pick(m, chance(m, 50) ? SKEW_MS : SET_BACK_MAX_MS) * 1000;
}

/* ---- The owner ------------------------------------------------------------------------------- */

static bool is_dead(void *owner, struct slice holder)
{
	const struct process *p = owner;
	const struct session_seen *seen = sessions_find(&p->sessions, holder);
	return !seen || !seen->alive;
}

static int take_leases(struct process *p, struct task_queue *queue)
{
	struct partitions all = {0};
	for (uint32_t t = 0; t < TENANTS; t++)
		partitions_add(&all, t);
	if (!p->model->far) {
		p->held = all;
		p->until_ms = INT64_MAX;
		return 0;
	}
	int err = leases_take(p->leases, queue, &all, &p->held, &p->until_ms);
	return err ? err : sessions_look(&p->sessions, p->session, queue);
}

static void collect(struct process *p, struct task_queue *queue, unsigned tenant)
{
	struct model *m = p->model;
	const struct fault_collect_rules rules = {
		.keep_us = m->collects ? KEEP_MS * INT64_C(1000) : 0, .newest = m->newest};
	struct fault_plan *plan;
	struct errbuf e = {""};
	int err = fault_plan_new(p->books[tenant], queue, &rules, 0, &plan, &e);
	uint64_t reports = err ? 0 : fault_plan_view(plan).reports;
	bool taken = reports && !fault_book_collect(p->books[tenant], plan, &e);
	trace(m, "%s: plans for %s, error %d, %llu reports, %s", p->name, tenant_names[tenant].data,
	      err, (unsigned long long)reports, taken ? "taken" : e.text);
	if (!err && !taken)
		fault_plan_free(plan);
}

static void count_minutes(struct process *p, struct task_queue *queue, unsigned tenant)
{
	struct model *m = p->model;
	struct minute_owner owner = {m, tenant};
	const struct fault_minute_taker taker = {take_minute, &owner};
	struct errbuf e = {""};
	bool more = true;
	int err = 0;
	while (more && !err && !p->dead) {
		int64_t late_ms = WRITE_MAX_MS + SKEW_MS;
		int64_t until_us = p->clock.clock.wall_us(&p->clock.clock) - late_ms * 1000;
		err = fault_book_count_minutes(p->books[tenant], queue, until_us, &taker, &more,
					       &e);
	}
	trace(m, "%s: counts minutes of %s, error %d %s", p->name, tenant_names[tenant].data, err,
	      err ? e.text : "");
}

static void do_pass(struct process *p, struct task_queue *queue, unsigned tenant)
{
	struct model *m = p->model;
	const struct fault_owner_view view = {
		.until_ms = p->until_ms, .is_dead = is_dead, .owner = p};
	struct errbuf e = {""};
	size_t number = ++m->passes;
	int err = fault_book_pass(p->books[tenant], queue, &view, &e);
	trace(m, "%s: pass of %s, error %d %s", p->name, tenant_names[tenant].data, err,
	      err ? e.text : "");
	if (!err && m->pass_of[tenant] < number)
		m->pass_of[tenant] = number;
	if (!err && m->seals) {
		err = fault_book_seal(p->books[tenant], queue, p->until_ms, &e);
		trace(m, "%s: seals of %s, error %d %s", p->name, tenant_names[tenant].data, err,
		      err ? e.text : "");
	}
	if (!err) {
		size_t made;
		err = fault_book_tell(p->books[tenant], queue, p->until_ms, &made, &e);
		trace(m, "%s: tells %zu of %s, error %d %s", p->name, made,
		      tenant_names[tenant].data, err, err ? e.text : "");
	}
	if (!err && (m->rests || chance(m, m->counts)))
		count_minutes(p, queue, tenant);
	if (!err && (m->collects || m->any_erased) && chance(m, m->rests ? 20 : 4))
		collect(p, queue, tenant);
	if (err && !p->dead &&
	    (m->rests || err == ERR_DAMAGED || err == ERR_INVALID || err == ERR_VERSION) &&
	    err != ERR_RETRY && err != ERR_TIMEOUT)
		differ(m, "a pass of %s ends with error %d: %s", p->name, err, e.text);
}

/* What is written by who owns a tenant is asked for by others, too. */
static void ask_owner(struct process *p, struct task_queue *queue)
{
	struct model *m = p->model;
	struct answer answer;
	if (p->dead || m->erases || !chance(m, 30))
		return;
	answer_choose(m, &answer);
	answer.watch = &p->watches[answer.tenant];
	answer_run(&answer, p->books[answer.tenant], queue);
	answer_check(m, &answer, p->name);
}

static void run_turn(struct task_queue *queue, void *owner)
{
	struct process *p = owner;
	struct model *m = p->model;
	int err = take_leases(p, queue);
	p->next_ms = now_ms(m) + EVERY_MS;
	trace(m, "%s: holds %zu, error %d", p->name, p->held.count, err);
	for (unsigned t = 0; t < TENANTS; t++) {
		bool held = partitions_has(&p->held, t);
		if (p->owns[t] && !held)
			fault_book_disown(p->books[t]);
		p->owns[t] = held;
	}
	for (unsigned t = 0; t < TENANTS && !err; t++)
		if (p->owns[t])
			do_pass(p, queue, t);
	ask_owner(p, queue);
}

void process_tick(struct process *p)
{
	if (p->works || now_ms(p->model) < p->next_ms)
		return;
	stepped_start(&p->work, run_turn, p);
	p->works = true;
}

static void run_erasure(struct task_queue *queue, void *owner)
{
	struct process *p = owner;
	struct fault_book *book = p->books[p->erases_of];
	struct fault_erasure *erasure = NULL;
	struct errbuf e = {""};
	int err = fault_erasure_new(book, queue, p->erases, &erasure, &e);
	uint64_t reports = err ? 0 : fault_erasure_view(erasure).reports;
	if (!err && fault_book_erase(book, erasure, &p->erasure, &e)) {
		p->erasure = 0;
		fault_erasure_free(erasure);
	}
	trace(p->model, "%s: erases %llu reports of %s, error %d %s", p->name,
	      (unsigned long long)reports, tenant_names[p->erases_of].data, err, e.text);
}

void process_erase(struct process *p, unsigned tenant, struct slice user)
{
	p->erasure = 0;
	if (p->works || !p->owns[tenant])
		return;
	p->erases_of = tenant;
	p->erases = user;
	stepped_start(&p->work, run_erasure, p);
	p->works = true;
}

/* ---- The reader ------------------------------------------------------------------------------ */

static void run_reader(struct task_queue *queue, void *owner)
{
	struct reader *r = owner;
	answer_run(&r->answer, r->books[r->answer.tenant], queue);
}

void process_ask(struct process *p)
{
	struct reader *r = &p->reader;
	struct model *m = p->model;
	if (r->works || p->frozen)
		return;
	answer_choose(m, &r->answer);
	struct fault_book **book = &r->books[r->answer.tenant];
	if (chance(m, 25)) {
		fault_book_free(*book);
		watch_end(&r->watches[r->answer.tenant]);
		*book = fault_book_new(&p->site, tenant_names[r->answer.tenant]);
	}
	r->answer.watch = &r->watches[r->answer.tenant];
	stepped_start(&r->work, run_reader, r);
	r->works = true;
}

/* The machine does not run a thread for a while. */
static bool stands(struct process *p, size_t *until)
{
	struct model *m = p->model;
	if (p->dead || m->rests || !m->faulty)
		return false;
	if (m->step >= *until && chance(m, m->pauses))
		*until = m->step + pick(m, 400);
	return m->step < *until;
}

static bool step_reader(struct process *p)
{
	struct reader *r = &p->reader;
	if (!r->works || !stepped_ready(&r->work) || stands(p, &r->stands))
		return false;
	(void)stepped_step(&r->work);
	if (!stepped_over(&r->work))
		return true;
	stepped_release(&r->work);
	r->works = false;
	answer_check(p->model, &r->answer, p->name);
	return true;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static bool step_work(struct process *p)
{
	if (!p->works || !stepped_ready(&p->work) || stands(p, &p->stands))
		return false;
	(void)stepped_step(&p->work);
	if (stepped_over(&p->work)) {
		stepped_release(&p->work);
		p->works = false;
	}
	return true;
}

/* Its three threads, from any of them on. */
bool process_step(struct process *p)
{
	size_t first = pick(p->model, 3);
	for (size_t i = 0; i < 3; i++) {
		size_t which = (first + i) % 3;
		if (which == 0 ? task_step(&p->queue) : which == 1 ? step_work(p) : step_reader(p))
			return true;
	}
	return false;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void open_store(struct model *m, struct process *p)
{
	p->clock = (struct process_clock){
		{.wall_us = process_wall_us, .mono_us = process_mono_us}, &m->clock, 0};
	p->clock.off_us = clock_off_us(m);
	if (m->far) {
		p->store = far_open(m->far, &p->clock.clock, m->last_stamp_us);
		return;
	}
	slow_open(&p->slow, &m->slow, chance(m, 50));
	p->store = &p->slow.store;
}

void process_open(struct model *m, struct process *p, size_t place)
{
	*p = (struct process){.model = m, .place = place, .next_ms = now_ms(m)};
	open_store(m, p);
	snprintf(p->name, sizeof(p->name), "p%zu-%u", place, ++m->incarnations);
	task_queue_init(&p->queue);
	p->site = m->site;
	p->site.store = p->store;
	p->site.clock = &p->clock.clock;
	p->site.holder = slice_of(p->name);
	p->site.started_us = store_stamp(p->store);
	p->intake = fault_intake_new(&(struct fault_intake_options){
		.site = &p->site,
		.executor = &p->queue.executor,
		.seed = random_next(&m->random),
	});
	p->session = lease_session_new(&(struct lease_session_options){
		.store = p->store,
		.clock = &p->clock.clock,
		.holder = slice_of(p->name),
		.name = SLICE("p"),
		.roles = SESSION_SHARES,
		.lease_ms = LEASE_MS,
		.skew_max_ms = SKEW_MS,
	});
	p->leases = leases_new(
		&(struct leases_options){.session = p->session, .kind = "fault", .share = true});
	p->reader.process = p;
	for (size_t t = 0; t < TENANTS; t++) {
		p->books[t] = fault_book_new(&p->site, tenant_names[t]);
		p->reader.books[t] = fault_book_new(&p->site, tenant_names[t]);
	}
}

static void kill_store(struct process *p)
{
	struct model *m = p->model;
	p->dead = true;
	if (!m->far) {
		slow_kill(&p->slow);
		return;
	}
	far_kill(p->store);
	if (far_last_stamp_us(p->store) > m->last_stamp_us)
		m->last_stamp_us = far_last_stamp_us(p->store);
}

void process_kill(struct process *p)
{
	kill_store(p);
	while (process_step(p))
		;
	ASSERT(!p->works && !p->reader.works);
	while (!fault_intake_is_idle(p->intake)) {
		fault_intake_tick(p->intake);
		while (task_step(&p->queue))
			;
	}
	for (size_t t = 0; t < TENANTS; t++) {
		fault_book_free(p->books[t]);
		fault_book_free(p->reader.books[t]);
		watch_end(&p->watches[t]);
		watch_end(&p->reader.watches[t]);
	}
	fault_intake_free(p->intake);
	leases_free(p->leases);
	lease_session_free(p->session);
	sessions_release(&p->sessions);
	store_close(p->store);
	task_queue_release(&p->queue);
}

void process_freeze(struct process *p, bool frozen)
{
	p->frozen = frozen;
	far_freeze(p->store, frozen);
}
