/* Property test of finding. Some processes, each with a catalog of its own, share a store that is
 * far away (contract/far.h); a seed decides who registers, finds, lists, cancels and forgets what,
 * who freezes, who dies and is started again, what fails, and when the store gets on. A find gives
 * every series that matches whose opening ended well before the find began, in whichever process;
 * nothing that nobody ever wanted to register or that does not match; and each once. What was
 * forgotten may be given for a while. News go before everybody has asked for them. */
#include <limits.h>
#include <stdio.h>

#include "base/random.h"
#include "catalog/catalog.h"
#include "contract/far.h"
#include "task_step.h"
#include "tools/long_run.h"

enum {
	TENANTS = 2,
	METRICS = 3,
	HOSTS = 6,
	SYSTEMS = 2, /* without the tag, and with it */
	SERIES = TENANTS * METRICS * HOSTS * SYSTEMS,
	PROCESSES = 4,
	OPENINGS = 3, /* of a process at a time, as the following */
	GROUPS = 3,   /* of an opening */
	SEARCHES = 4,
	FORGOTTEN = 3, /* series of one write */
	STEPS = 1500,
	RESTS_MAX = 100000,
	WRONG_MAX = 5, /* seeds, then it ends */
	PLANTED_SEEDS = 100,
#ifdef __SANITIZE_ADDRESS__
	SEEDS = 300,
#else
	SEEDS = 2000,
#endif
};

static const char *const tenant_names[TENANTS] = {"t", "u"};
static const char *const metric_names[METRICS] = {"cpu", "cpu2", "mem"};
static const char *const host_names[HOSTS] = {"a0", "a1", "a2", "b0", "b1", "b2"};

struct process;

struct opening {
	struct catalog_open open;
	struct process *p;
	struct catalog_group groups[GROUPS];
	struct tag tags[GROUPS][2];
	struct slice metrics[GROUPS][METRICS];
	uint64_t handles[GROUPS][METRICS];
	unsigned series[GROUPS][METRICS];
	unsigned forgettings[GROUPS]
			    [METRICS]; /* of these when it began; UINT_MAX: one was pending */
	bool busy, done;
};

/* What is searched for: hosts of `hosts` by bit. */
struct wish {
	unsigned tenant, metric, hosts;
	bool with_system;
	char text[64]; /* selectors */
};

/* A find, or a list of the values of `host`. */
struct search {
	struct catalog_find find;
	struct catalog_list list;
	struct process *p;
	struct catalog_selector selectors[CATALOG_SELECTORS_MAX];
	struct arena arena;
	struct wish wish;
	bool busy, lists;
	/* When it began. */
	bool there[SERIES];
	unsigned forgettings[SERIES];
};

struct forgetting {
	struct store_write *write;
	struct process *p;
	unsigned series[FORGOTTEN];
	size_t count;
};

/* Two queues stand for two threads: that of its catalog and that of its openings. */
struct process {
	struct model *model;
	struct store *store;
	struct catalog *catalog;
	struct task_queue loop, door;
	struct opening openings[OPENINGS];
	struct search searches[SEARCHES];
	struct forgetting forgetting; /* write NULL: none */
	bool frozen, dead, closed;
};

/* What is true of a series, as far as it can be known. */
struct truth {
	bool wanted; /* somebody asked to register it */
	/* An opening has ended well, and nothing that was asked since, or had an unknown end, may
	 * have forgotten it. */
	bool there;
	unsigned forgettings, /* that were asked for */
		pending;      /* of these, such as may still come */
	uint64_t handle;      /* 0: not known */
};

struct model {
	uint64_t seed;
	struct random random;
	struct clock_virtual clock;
	struct far *far;
	struct far_faults faults;
	struct catalog_options options;
	bool small; /* an index may be too large */
	bool trace;
	size_t step, process_count;
	unsigned forgets; /* how readily, per mille */
	int64_t last_stamp_us;
	struct process processes[PROCESSES];
	struct truth truths[SERIES];
	uint64_t found; /* series that had to be in an answer, and were */
	char failure[512];
};

static uint64_t pick(struct model *m, uint64_t bound)
{
	return random_below(&m->random, bound);
}

static bool chance(struct model *m, unsigned percent)
{
	return pick(m, 100) < percent;
}

static void trace(struct model *m, const struct process *p, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void trace(struct model *m, const struct process *p, const char *fmt, ...)
{
	va_list args;
	if (!m->trace)
		return;
	printf("%6zu  process %zu: ", m->step, (size_t)(p - m->processes));
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

static void differ(struct model *m, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void differ(struct model *m, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (!m->failure[0])
		vsnprintf(m->failure, sizeof(m->failure), fmt, args);
	va_end(args);
}

/* ---- Series ---------------------------------------------------------------------------------- */

static unsigned series_of(unsigned tenant, unsigned metric, unsigned host, unsigned system)
{
	return ((tenant * METRICS + metric) * HOSTS + host) * SYSTEMS + system;
}

static unsigned host_of(unsigned series)
{
	return series / SYSTEMS % HOSTS;
}

static unsigned metric_of(unsigned series)
{
	return series / SYSTEMS / HOSTS % METRICS;
}

static unsigned tenant_of(unsigned series)
{
	return series / SYSTEMS / HOSTS / METRICS;
}

static void tags_of(unsigned series, char to[32])
{
	snprintf(to, 32, "host=%s%s", host_names[host_of(series)], series % SYSTEMS ? ",os=x" : "");
}

static bool is_of_metric(const struct wish *wish, unsigned series)
{
	return tenant_of(series) == wish->tenant && metric_of(series) == wish->metric;
}

static bool is_wished(const struct wish *wish, unsigned series)
{
	return is_of_metric(wish, series) && wish->hosts >> host_of(series) & 1 &&
	       (series % SYSTEMS || !wish->with_system);
}

/* Where nothing fails on purpose, nothing fails. */
static bool may_fail(const struct process *p, int err)
{
	const struct far_faults *faults = &p->model->faults;
	if (p->dead)
		return true;
	return (err == ERR_UNKNOWN && faults->failed) || (err == ERR_BUSY && faults->refused) ||
	       (err == ERR_LIMIT && p->model->small);
}

/* ---- Openings -------------------------------------------------------------------------------- */

static void opening_take_group(struct opening *o, size_t g)
{
	struct model *m = o->p->model;
	const struct catalog_group *group = &o->groups[g];
	if (group->err && !may_fail(o->p, group->err) &&
	    !(o->open.find_only && group->err == ERR_NOT_FOUND))
		differ(m, "an opening failed: %s", group->sentence);
	for (size_t i = 0; i < group->count; i++) {
		unsigned s = o->series[g][i];
		struct truth *truth = &m->truths[s];
		if (truth->handle && group->handles[i] && truth->handle != group->handles[i])
			differ(m, "series %u has two handles", s);
		if (group->err)
			continue;
		truth->handle = group->handles[i];
		if (truth->forgettings == o->forgettings[g][i])
			truth->there = true;
		trace(m, o->p, "series %u is opened%s", s, truth->there ? "" : ", maybe");
	}
}

static void opening_done(struct catalog_open *open)
{
	struct opening *o = open->owner;
	for (size_t g = 0; g < open->count; g++)
		opening_take_group(o, g);
	o->done = true;
}

static void opening_fill_group(struct opening *o, size_t g)
{
	struct model *m = o->p->model;
	struct catalog_group *group = &o->groups[g];
	unsigned tenant = (unsigned)pick(m, TENANTS), host = (unsigned)pick(m, HOSTS);
	unsigned system = (unsigned)pick(m, SYSTEMS), first = (unsigned)pick(m, METRICS);
	o->tags[g][0] = (struct tag){SLICE("host"), slice_of(host_names[host])};
	o->tags[g][1] = (struct tag){SLICE("os"), SLICE("x")};
	*group = (struct catalog_group){
		.tenant = slice_of(tenant_names[tenant]),
		.tags = {o->tags[g], 1 + system},
		.metrics = o->metrics[g],
		.count = 1 + pick(m, METRICS),
		.handles = o->handles[g],
	};
	for (unsigned i = 0; i < group->count; i++) {
		unsigned metric = (first + i) % METRICS;
		unsigned s = series_of(tenant, metric, host, system);
		o->metrics[g][i] = slice_of(metric_names[metric]);
		o->series[g][i] = s;
		o->forgettings[g][i] = m->truths[s].pending ? UINT_MAX : m->truths[s].forgettings;
		m->truths[s].wanted |= !o->open.find_only;
		trace(m, o->p, "series %u is to be opened", s);
	}
}

static void opening_begin(struct process *p)
{
	struct model *m = p->model;
	struct opening *o = &p->openings[pick(m, OPENINGS)];
	if (o->busy)
		return;
	*o = (struct opening){.p = p, .busy = true};
	o->open = (struct catalog_open){
		.catalog = p->catalog,
		.executor = &p->door.executor,
		.done = opening_done,
		.owner = o,
		.groups = o->groups,
		.count = 1 + pick(m, GROUPS),
		.find_only = chance(m, 15),
	};
	for (size_t g = 0; g < o->open.count; g++)
		opening_fill_group(o, g);
	int err = catalog_open_start(&o->open);
	o->busy = !err;
	if (err && !may_fail(p, err))
		differ(m, "an opening was refused: %s", err_text(err));
}

/* Those that are done are finished, at some later time. */
static void openings_finish(struct process *p)
{
	for (size_t i = 0; i < OPENINGS; i++) {
		struct opening *o = &p->openings[i];
		if (o->busy && o->done)
			catalog_open_finish(&o->open, ERR_CANCELLED);
		o->busy &= !o->done;
	}
}

/* ---- Forgetting ------------------------------------------------------------------------------ */

static void forgetting_done(struct store_write *write, int err)
{
	struct forgetting *f = write->owner;
	struct model *m = f->p->model;
	if (err && !f->p->dead && !(err == ERR_UNKNOWN && m->faults.unknown))
		differ(m, "forgetting failed: %s", err_text(err));
	for (size_t i = 0; i < f->count; i++) {
		unsigned s = f->series[i];
		trace(m, f->p, "series %u is forgotten: %s", s, err_text(err));
		m->truths[s].pending -= !err;
		catalog_forgotten(f->p->catalog, slice_of(tenant_names[tenant_of(s)]),
				  slice_of(metric_names[metric_of(s)]));
	}
	store_write_free(write);
	f->write = NULL;
}

static void forgetting_begin(struct process *p)
{
	struct model *m = p->model;
	struct forgetting *f = &p->forgetting;
	uint64_t handles[FORGOTTEN];
	if (f->write)
		return;
	*f = (struct forgetting){.p = p};
	for (size_t tries = pick(m, FORGOTTEN) + 1; tries; tries--) {
		unsigned s = (unsigned)pick(m, SERIES);
		if (!m->truths[s].handle)
			continue;
		handles[f->count] = m->truths[s].handle;
		f->series[f->count++] = s;
	}
	if (!f->count)
		return;
	f->write = store_write_new(p->store, 1 << 16);
	f->write->executor = &p->loop.executor;
	f->write->done = forgetting_done;
	f->write->owner = f;
	int err = store_series_forget(f->write, handles, f->count);
	ASSERT(!err);
	for (size_t i = 0; i < f->count; i++) {
		struct truth *truth = &m->truths[f->series[i]];
		trace(m, p, "series %u is to be forgotten", f->series[i]);
		truth->there = false;
		truth->forgettings++;
		truth->pending++;
	}
	err = store_write_submit(f->write);
	if (!err)
		return;
	for (size_t i = 0; i < f->count; i++)
		m->truths[f->series[i]].pending--;
	store_write_free(f->write);
	f->write = NULL;
}

/* ---- What is right --------------------------------------------------------------------------- */

/* It was there when the search began, and nothing was to forget it since. */
static bool must_be_found(const struct search *search, unsigned s)
{
	return search->there[s] &&
	       search->p->model->truths[s].forgettings == search->forgettings[s];
}

/* The number of the series with these tags; SERIES: there is no such. */
static unsigned series_by_tags(const struct wish *wish, struct slice tags_text)
{
	for (unsigned s = 0; s < SERIES; s++) {
		char tags[32];
		tags_of(s, tags);
		if (is_of_metric(wish, s) && slice_equal(slice_of(tags), tags_text))
			return s;
	}
	return SERIES;
}

static void judge_series(struct search *search, size_t i, bool seen[SERIES])
{
	struct model *m = search->p->model;
	const struct catalog_series *is = &search->find.series[i];
	unsigned s = series_by_tags(&search->wish, is->tags_text);
	if (s == SERIES || !m->truths[s].wanted) {
		differ(m, "a find gives %.*s, which nobody registered", (int)is->tags_text.len,
		       is->tags_text.data);
		return;
	}
	if (!is_wished(&search->wish, s))
		differ(m, "a find of %s gives series %u", search->wish.text, s);
	if (seen[s])
		differ(m, "a find gives series %u twice", s);
	if (m->truths[s].handle && m->truths[s].handle != is->handle)
		differ(m, "a find gives another handle of series %u", s);
	if (i && slice_compare(is[-1].tags_text, is->tags_text) >= 0)
		differ(m, "series %u is not in its place", s);
	seen[s] = true;
}

static void judge_find(struct search *search)
{
	struct model *m = search->p->model;
	bool seen[SERIES] = {false};
	size_t of_metric = 0;
	for (size_t i = 0; i < search->find.count; i++)
		judge_series(search, i, seen);
	for (unsigned s = 0; s < SERIES; s++) {
		bool must = must_be_found(search, s);
		of_metric += must && is_of_metric(&search->wish, s);
		if (!must || !is_wished(&search->wish, s))
			continue;
		m->found += seen[s];
		if (!seen[s])
			differ(m, "process %zu does not find series %u",
			       (size_t)(search->p - m->processes), s);
	}
	if (search->find.metric_series < of_metric)
		differ(m, "a find says %zu series, there are %zu", search->find.metric_series,
		       of_metric);
}

static void judge_list(struct search *search)
{
	struct model *m = search->p->model;
	unsigned given = 0, must = 0, may = 0;
	for (size_t i = 0; i < search->list.count; i++) {
		for (unsigned h = 0; h < HOSTS; h++) {
			if (slice_equal(search->list.names[i], slice_of(host_names[h])))
				given |= 1u << h;
		}
	}
	for (unsigned s = 0; s < SERIES; s++) {
		if (!is_of_metric(&search->wish, s))
			continue;
		must |= (unsigned)must_be_found(search, s) << host_of(s);
		may |= (unsigned)m->truths[s].wanted << host_of(s);
	}
	if (must & ~given || given & ~may)
		differ(m, "process %zu lists the hosts %#x; there must be %#x, there may be %#x",
		       (size_t)(search->p - m->processes), given, must, may);
}

/* ---- Searches -------------------------------------------------------------------------------- */

static void search_end(struct search *search)
{
	arena_release(&search->arena);
	search->busy = false;
}

static void search_judge(struct search *search, int err, const char *why)
{
	struct model *m = search->p->model;
	trace(m, search->p, "search %zu ends: %s", (size_t)(search - search->p->searches),
	      err_text(err));
	if (err && !may_fail(search->p, err))
		differ(m, "a search failed: %s", why);
	if (!err && search->lists)
		judge_list(search);
	if (!err && !search->lists)
		judge_find(search);
	search_end(search);
}

static void search_found(struct catalog_find *find, int err)
{
	search_judge(find->owner, err, find->error.text);
}

static void search_listed(struct catalog_list *list, int err)
{
	search_judge(list->owner, err, list->error.text);
}

/* Hosts: any, one, two, or those of a letter. */
static void wish_something(struct model *m, struct wish *wish)
{
	size_t a = pick(m, HOSTS), b = pick(m, HOSTS);
	*wish = (struct wish){.tenant = (unsigned)pick(m, TENANTS),
			      .metric = (unsigned)pick(m, METRICS),
			      .hosts = (1u << HOSTS) - 1,
			      .with_system = chance(m, 25)};
	const char *any = wish->with_system ? "os=x" : "", *and = wish->with_system ? ",os=x" : "";
	size_t size = sizeof(wish->text);
	switch (pick(m, 4)) {
	case 0:
		snprintf(wish->text, size, "%s", any);
		break;
	case 1:
		wish->hosts = 1u << a;
		snprintf(wish->text, size, "host=%s%s", host_names[a], and);
		break;
	case 2:
		wish->hosts = 1u << a | 1u << b;
		snprintf(wish->text, size, "host=%s|%s%s", host_names[a], host_names[b], and);
		break;
	default:
		wish->hosts = 7u << a / 3 * 3;
		snprintf(wish->text, size, "host=%c*%s", host_names[a][0], and);
	}
}

static void find_begin(struct search *search)
{
	struct process *p = search->p;
	struct errbuf e;
	search->find = (struct catalog_find){
		.catalog = p->catalog,
		.tenant = slice_of(tenant_names[search->wish.tenant]),
		.metric = slice_of(metric_names[search->wish.metric]),
		.selectors = search->selectors,
		.series_max = SERIES,
		.done = search_found,
		.owner = search,
		.arena = &search->arena,
	};
	if (search->wish.text[0]) {
		int err = catalog_selectors_parse(slice_of(search->wish.text), &search->arena,
						  search->selectors, &search->find.selector_count,
						  &e);
		ASSERT(!err);
	}
	catalog_find_start(&search->find);
}

static void list_begin(struct search *search)
{
	search->list = (struct catalog_list){
		.catalog = search->p->catalog,
		.what = CATALOG_TAG_VALUES,
		.tenant = slice_of(tenant_names[search->wish.tenant]),
		.metric = slice_of(metric_names[search->wish.metric]),
		.tag_key = SLICE("host"),
		.limit = HOSTS,
		.done = search_listed,
		.owner = search,
		.arena = &search->arena,
	};
	catalog_list_start(&search->list);
}

static void search_start(struct search *search, struct process *p)
{
	struct model *m = p->model;
	search->p = p;
	search->busy = true;
	arena_init(&search->arena, 1 << 20);
	for (unsigned s = 0; s < SERIES; s++) {
		search->there[s] = m->truths[s].there;
		search->forgettings[s] = m->truths[s].forgettings;
	}
	trace(m, p, "search %zu of %s %s, %s", (size_t)(search - p->searches),
	      tenant_names[search->wish.tenant], metric_names[search->wish.metric],
	      search->lists ? "hosts" : search->wish.text);
	if (search->lists)
		list_begin(search);
	else
		find_begin(search);
}

static void search_begin(struct process *p)
{
	struct search *search = &p->searches[pick(p->model, SEARCHES)];
	if (search->busy)
		return;
	*search = (struct search){.lists = chance(p->model, 15)};
	wish_something(p->model, &search->wish);
	search_start(search, p);
}

static void search_cancel(struct process *p)
{
	struct search *search = &p->searches[pick(p->model, SEARCHES)];
	if (!search->busy)
		return;
	trace(p->model, p, "search %zu is cancelled", (size_t)(search - p->searches));
	if (search->lists)
		catalog_list_cancel(&search->list);
	else
		catalog_find_cancel(&search->find);
	search_end(search);
}

/* ---- Processes ------------------------------------------------------------------------------- */

static void process_open(struct model *m, struct process *p)
{
	*p = (struct process){.model = m};
	task_queue_init(&p->loop);
	task_queue_init(&p->door);
	p->store = far_open(m->far, &m->clock.clock, m->last_stamp_us);
	p->catalog = catalog_new(p->store, &m->clock.clock, &p->loop.executor, &m->options);
}

static bool process_step(struct process *p, bool door)
{
	struct task_queue *queues[] = {&p->loop, &p->door};
	bool any = task_step(queues[door]);
	openings_finish(p);
	return any;
}

static void process_closed(void *owner)
{
	((struct process *)owner)->closed = true;
}

static bool process_step_both(struct process *p)
{
	bool any = process_step(p, false);
	return process_step(p, true) || any;
}

static void process_run(struct process *p)
{
	while (process_step_both(p))
		;
}

static bool process_opens(const struct process *p)
{
	bool any = false;
	for (size_t i = 0; i < OPENINGS; i++)
		any |= p->openings[i].busy;
	return any;
}

static bool process_searches(const struct process *p)
{
	bool any = false;
	for (size_t i = 0; i < SEARCHES; i++)
		any |= p->searches[i].busy;
	return any;
}

/* It dies, or first it closes its catalog, which ends all finds though the store stands still. */
static void process_kill(struct process *p)
{
	struct model *m = p->model;
	bool closes = !process_opens(p) && !p->forgetting.write && chance(m, 50);
	p->dead = true;
	if (closes) {
		catalog_close(p->catalog, process_closed, p);
		process_run(p);
		ASSERT(!process_searches(p));
	}
	far_kill(p->store);
	process_run(p);
	if (!closes)
		catalog_close(p->catalog, process_closed, p);
	process_run(p);
	ASSERT(p->closed && !p->forgetting.write);
	ASSERT(!process_opens(p) && !process_searches(p));
	if (far_last_stamp_us(p->store) > m->last_stamp_us)
		m->last_stamp_us = far_last_stamp_us(p->store);
	store_close(p->store);
	task_queue_release(&p->loop);
	task_queue_release(&p->door);
}

static void process_freeze(struct process *p, bool frozen)
{
	trace(p->model, p, "%s", frozen ? "freezes" : "goes on");
	p->frozen = frozen;
	far_freeze(p->store, frozen);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void run_step(struct model *m)
{
	struct process *p = &m->processes[pick(m, m->process_count)];
	unsigned kind = (unsigned)pick(m, 1000);
	if (kind < 300)
		(void)far_step(m->far);
	else if (kind < 310)
		process_freeze(p, !p->frozen);
	else if (p->frozen)
		return;
	else if (kind < 700)
		(void)process_step(p, chance(m, 30));
	else if (kind < 780)
		opening_begin(p);
	else if (kind < 900)
		search_begin(p);
	else if (kind < 910)
		search_cancel(p);
	else if (kind < 910 + m->forgets)
		forgetting_begin(p);
	else if (kind < 960)
		clock_virtual_advance(&m->clock, (int64_t)pick(m, 1000000));
	else if (kind < 963) {
		trace(m, p, "dies");
		process_kill(p);
		process_open(m, p);
	} else if (kind < 966) {
		trace(m, p, "news have gone");
		far_forget_news(m->far);
	}
}

static bool work_off(struct model *m)
{
	bool any = far_step(m->far);
	for (size_t i = 0; i < m->process_count; i++)
		any |= process_step_both(&m->processes[i]);
	return any;
}

static void come_to_rest(struct model *m)
{
	size_t rounds = 0;
	while (work_off(m) && ++rounds < RESTS_MAX)
		;
	if (rounds == RESTS_MAX)
		differ(m, "it does not come to rest");
}

/* Nothing fails any more, and each process finds all. */
static void check_all(struct model *m)
{
	struct far_faults faults = m->faults;
	far_set_faults(m->far, &(struct far_faults){.cut = faults.cut});
	for (size_t i = 0; i < m->process_count; i++)
		process_freeze(&m->processes[i], false);
	come_to_rest(m); /* what failed before may be told only now */
	m->faults = (struct far_faults){0};
	for (unsigned i = 0; i < m->process_count * TENANTS * METRICS; i++) {
		struct process *p = &m->processes[i / TENANTS / METRICS];
		struct search *search = &p->searches[0];
		*search = (struct search){.wish = {.tenant = i / METRICS % TENANTS,
						   .metric = i % METRICS,
						   .hosts = (1u << HOSTS) - 1}};
		search_start(search, p);
		come_to_rest(m);
		if (search->busy)
			differ(m, "a find does not end");
	}
	m->faults = faults;
	far_set_faults(m->far, &faults);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

struct run {
	bool trace;
	size_t steps;
	enum far_bug bug;      /* that is planted in the store */
	uint64_t found, wrong; /* series, and seeds */
};

static void begin(struct model *m, uint64_t seed, const struct run *run)
{
	*m = (struct model){.seed = seed, .trace = run->trace};
	random_init(&m->random, seed);
	clock_virtual_init(&m->clock, INT64_C(1600000000000000));
	if (chance(m, 60))
		m->faults = (struct far_faults){(unsigned)pick(m, 30), (unsigned)pick(m, 30),
						(unsigned)pick(m, 30)};
	m->faults.cut = chance(m, 50) ? (unsigned)pick(m, 1000) : 0;
	m->far = far_new(&m->clock.clock, seed, &m->faults);
	far_plant(m->far, run->bug);
	m->options = catalog_options_default();
	if (chance(m, 50))
		m->options.series_per_tenant_max = 0; /* nobody waits for a count */
	m->small = chance(m, 20);
	if (m->small)
		m->options.index_max_bytes = 2000 + pick(m, 8000);
	m->forgets = chance(m, 50) ? 1 + (unsigned)pick(m, 30) : 0;
	m->process_count = 2 + pick(m, PROCESSES - 1);
	for (size_t i = 0; i < m->process_count; i++)
		process_open(m, &m->processes[i]);
}

static bool run_seed(struct run *run, uint64_t seed)
{
	struct model *m = mem_alloc(sizeof(*m));
	begin(m, seed, run);
	for (m->step = 1; m->step <= run->steps && !m->failure[0]; m->step++) {
		run_step(m);
		if (m->step == run->steps || (m->step % 64 == 0 && chance(m, 10)))
			check_all(m);
	}
	for (size_t i = 0; i < m->process_count; i++)
		process_kill(&m->processes[i]);
	bool right = !m->failure[0];
	if (!right)
		printf("%sseed %llu, step %zu: %s\n", run->bug ? "planted: " : "",
		       (unsigned long long)seed, m->step - 1, m->failure);
	run->found += m->found;
	run->wrong += !right;
	far_free(m->far);
	mem_free(m);
	return right;
}

static bool run_seeds(struct run *run, uint64_t first, uint64_t last)
{
	for (uint64_t seed = first; seed <= last && run->wrong < WRONG_MAX; seed++)
		(void)run_seed(run, seed);
	printf("finds of %d processes at most: seeds %llu..%llu, %zu steps each, %llu series "
	       "found: "
	       "%llu are wrong\n",
	       PROCESSES, (unsigned long long)first, (unsigned long long)last, run->steps,
	       (unsigned long long)run->found, (unsigned long long)run->wrong);
	return !run->wrong;
}

/* Some seed finds news that are not whole, or that are too late. */
static bool find_planted(size_t steps)
{
	bool all = true;
	for (enum far_bug bug = FAR_BUG_NEWS; bug <= FAR_BUG_NEWS_GONE; bug++) {
		struct run run = {.steps = steps, .bug = bug};
		bool found = false;
		for (uint64_t seed = 1; seed <= PLANTED_SEEDS && !found; seed++)
			found = !run_seed(&run, seed);
		if (!found)
			printf("planted bug %d of the far store: no seed finds it\n", (int)bug);
		all &= found;
	}
	return all;
}

int main(int argc, char **argv)
{
	unsigned long long first = 0, last = 0;
	struct run run = {.steps = STEPS};
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--trace") == 0)
			run.trace = true;
		else if (i + 1 < argc && strcmp(argv[i], "--steps") == 0)
			run.steps = strtoul(argv[++i], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0 &&
			 sscanf(argv[++i], "%llu..%llu", &first, &last) == 1)
			last = first;
	}
	if (first)
		return !run_seeds(&run, first, last);
	bool right = run_seeds(&run, 1, long_run() ? 100000 : SEEDS);
	return !(find_planted(run.steps) && right);
}
