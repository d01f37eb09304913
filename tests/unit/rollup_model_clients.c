/* Of the model of roll-ups: who sends samples until they are taken, who deletes some, and who
 * makes marks again. */
#include "rollup_model.h"

#include "rollup/remark.h"

/* ---- Clients --------------------------------------------------------------------------------- */

static void put(struct client *c, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void put(struct client *c, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int len = vsnprintf(c->text + c->len, sizeof(c->text) - c->len, fmt, args);
	va_end(args);
	ASSERT(len >= 0 && (size_t)len < sizeof(c->text) - c->len);
	c->len += (size_t)len;
}

static void put_value(struct client *c)
{
	struct model *m = c->model;
	int number = (int)pick(m, 200) - 100;
	switch (pick(m, 4)) {
	case 0:
		put(c, "%di", number);
		break;
	case 1:
		put(c, "%du", number + 100);
		break;
	default:
		put(c, "%.1f", number / 2.0);
	}
}

static int64_t some_ts(struct model *m)
{
	int64_t now = now_ms(m), slot = now / SLOT_MS * SLOT_MS;
	switch (pick(m, 10)) {
	case 0:
		slot += SLOT_MS;
		break;
	case 1:
	case 2:
		slot -= (int64_t)pick(m, m->late ? LATE_SLOTS : 4) * SLOT_MS;
		break;
	case 3:
	case 4:
	case 5:
		slot -= SLOT_MS;
		break;
	case 6:
		return now;
	}
	return slot + (int64_t)pick(m, 12) * 5000 + (chance(m, 20) ? 4999 : 0);
}

static void put_line(struct client *c)
{
	struct model *m = c->model;
	size_t tenant = pick(m, 4) == 0, measurement = pick(m, m->measurements);
	size_t host = pick(m, m->hosts);
	size_t shape = pick(m, m->shapes), first = m->shape[shape].first;
	int64_t ts_ms = some_ts(m);
	put(c, "m%zu,h=%zu%s ", measurement, host, tenant ? ",tenant=u" : "");
	for (size_t i = 0; i < m->shape[shape].count; i++) {
		size_t field = (first + i) % FIELDS;
		put(c, "%s%s=", i ? "," : "", field_names[field]);
		if (chance(m, m->texts)) {
			put(c, "\"text\"");
			continue;
		}
		put_value(c);
		unsigned series =
			(unsigned)(((tenant * MEASUREMENTS + measurement) * HOSTS + host) * FIELDS +
				   field);
		c->points[c->point_count++] = (struct point){.series = series, .ts_ms = ts_ms};
	}
	put(c, " %lld\n", (long long)ts_ms);
}

static void put_text(struct client *c)
{
	size_t lines = 1 + pick(c->model, chance(c->model, 80) ? 3 : 12);
	c->len = c->point_count = 0;
	c->failed = false;
	while (lines--)
		put_line(c);
	c->waits = true;
}

/* ---- What a deletion takes ------------------------------------------------------------------- */

static bool is_of(const struct deleter *d, const struct point *point)
{
	unsigned series = point->series, of = d->series;
	bool same = series % FIELDS == of % FIELDS &&
		    series / FIELDS / HOSTS == of / FIELDS / HOSTS &&
		    (!d->has_selector || series / FIELDS % HOSTS == of / FIELDS % HOSTS);
	return same && (d->whole || (point->ts_ms >= d->from_ms && point->ts_ms < d->to_ms));
}

/* Of a far store: it was sent when the deletion had been asked for, by all clocks, and stays. */
static bool is_later(const struct model *m, const struct deleter *d, const struct point *point)
{
	return m->far && point->begun_ms > d->wish_ms + SKEW_MS;
}

/* One that was done may take it, though it was sent since. */
static bool may_be_taken(const struct model *m, const struct point *point)
{
	for (size_t i = 0; i < m->deletion_count; i++) {
		const struct deleter *d = &m->deletions[i];
		if (is_of(d, point) && !is_later(m, d, point))
			return true;
	}
	return false;
}

/* What is still on its way may have come before it. */
static void take_deleted(struct model *m)
{
	const struct deleter *d = &m->deleter;
	size_t kept = 0;
	for (size_t i = 0; i < m->accepted_count; i++) {
		if (!is_of(d, &m->accepted[i]) || is_later(m, d, &m->accepted[i]))
			m->accepted[kept++] = m->accepted[i];
	}
	m->accepted_count = kept;
	for (size_t c = 0; c < CLIENTS; c++) {
		for (size_t i = 0; i < m->clients[c].point_count; i++)
			m->clients[c].points[i].deleted |= is_of(d, &m->clients[c].points[i]);
	}
	if (!m->far)
		return;
	m->deletions = mem_resize_array(m->deletions, m->deletion_count + 1, sizeof(*m->deletions));
	m->deletions[m->deletion_count++] = *d;
}

/* ---- What became of it ----------------------------------------------------------------------- */

static void doubt(struct model *m, const struct point *point)
{
	ASSERT(m->doubtful_count < ACCEPTED_MAX);
	m->doubtful[m->doubtful_count++] = *point;
}

/* A far store may have some of it all the same, or get it later. */
static void lose(struct model *m, const struct client *c)
{
	int64_t last_us = far_last_stamp_us(c->taker->p.store);
	for (size_t i = 0; i < c->point_count; i++) {
		ASSERT(m->lost_count < ACCEPTED_MAX);
		m->lost[m->lost_count] = c->points[i];
		m->lost[m->lost_count++].stamp_us = last_us;
	}
}

/* A sending of the sample by another process failed, and its clock was ahead. If it lands after the
 * slot was rolled up, it wins, and no row has it: nobody but a sender who is told of the failure
 * knows of it, and he has sent another one. */
static bool may_be_outdone(const struct model *m, const struct point *point)
{
	for (size_t i = 0; i < m->lost_count; i++) {
		const struct point *lost = &m->lost[i];
		if (lost->series == point->series && lost->ts_ms == point->ts_ms &&
		    lost->stamp_us > point->stamp_us)
			return true;
	}
	return false;
}

void client_failed(struct client *c, bool again)
{
	struct model *m = c->model;
	if (m->far)
		lose(m, c);
	c->waits = again;
	c->failed = true;
	for (size_t i = 0; m->far && !again && i < c->point_count; i++)
		doubt(m, &c->points[i]);
}

/* Its slot is closed, or nearly, for whoever took it: an earlier sending may have left it in the
 * raw data, after that was rolled up. */
static bool may_be_twice(struct model *m, const struct client *c, const struct point *point)
{
	return m->far && m->late && c->failed &&
	       point->ts_ms < now_ms(m) - m->open_ms + 2 * SLOT_MS;
}

static void accept(struct client *c)
{
	struct model *m = c->model;
	for (size_t i = 0; i < c->point_count; i++) {
		ASSERT(m->accepted_count < ACCEPTED_MAX);
		if (may_be_twice(m, c, &c->points[i]) || may_be_outdone(m, &c->points[i]))
			doubt(m, &c->points[i]);
		bool taken = m->far ? may_be_taken(m, &c->points[i]) : c->points[i].deleted;
		if (!taken)
			m->accepted[m->accepted_count++] = c->points[i];
	}
}

static void on_done(struct ingest_request *r)
{
	struct client *c = ingest_owner(r);
	struct model *m = c->model;
	trace(m, "client %zu: done, error %d", (size_t)(c - m->clients), r->err);
	c->waits = false;
	if (r->err)
		client_failed(c, !m->loses || !c->taker->p.dead || chance(m, 50));
	else
		accept(c);
	line_feed_release(&c->feed);
	ingest_request_free(r);
	c->r = NULL;
}

void client_begin(struct client *c)
{
	struct model *m = c->model;
	struct taker *taker = &m->takers[pick(m, m->used_takers)];
	if (taker->p.frozen)
		return;
	if (!c->waits)
		put_text(c);
	c->waits = c->ended = false;
	c->at = 0;
	for (size_t i = 0; i < c->point_count; i++) {
		c->points[i].deleted = false;
		c->points[i].begun_ms = now_ms(m);
		c->points[i].stamp_us = m->far ? store_stamp(taker->p.store) : 0;
	}
	c->taker = taker;
	c->r = ingest_request_new(c->taker->ingest,
				  &(struct ingest_door){.done = on_done, .owner = c});
	line_feed_init(&c->feed, c->r, (struct slice){NULL, 0}, LINE_MS);
	trace(m, "client %zu to %s:\n%.*s", (size_t)(c - m->clients), c->taker->p.name, (int)c->len,
	      c->text);
}

void client_step(struct client *c, bool all)
{
	struct model *m = c->model;
	size_t left = c->len - c->at;
	if (!c->r || c->ended || c->taker->p.frozen)
		return;
	if (left && !c->r->err) {
		size_t n = all || chance(m, 60) ? left : 1 + pick(m, left);
		line_feed_piece(&c->feed, (struct slice){c->text + c->at, n});
		c->at += n;
		return;
	}
	line_feed_end(&c->feed);
	c->ended = true;
	ingest_request_end(c->r);
}

/* ---- Who deletes ----------------------------------------------------------------------------- */

static void choose_deletion(struct deleter *d)
{
	static const struct slice hosts[HOSTS] = {SLICE("0"), SLICE("1")};
	struct model *m = d->model;
	d->series = (unsigned)pick(m, SERIES);
	d->host = hosts[d->series / FIELDS % HOSTS];
	d->has_selector = chance(m, 50);
	d->whole = chance(m, 20);
	d->from_ms = now_ms(m) / SLOT_MS * SLOT_MS -
		     (int64_t)pick(m, m->late && chance(m, 50) ? LATE_SLOTS : 5) * SLOT_MS;
	d->to_ms = d->from_ms + (1 + (int64_t)pick(m, 4)) * SLOT_MS;
	/* Of a slot that is closed for good, rows of buckets that are cut would stay. */
	if (!m->raw_ms) {
		d->from_ms += (int64_t)pick(m, 13) * 5000;
		d->to_ms = d->from_ms + 1 + (int64_t)pick(m, 40) * 5000;
	}
	d->wanted = true;
	d->again = false;
	d->wish_ms = now_ms(m);
	d->stamp_us = store_stamp(d->p.store);
	metric_name(d->series, d->name);
}

static void run_deletion(struct task_queue *queue, void *owner)
{
	struct deleter *d = owner;
	struct model *m = d->model;
	const struct rollup_site site = {.store = d->p.store,
					 .marks = d->p.marks,
					 .clock = &d->p.clock.clock,
					 .granularities = m->granularities,
					 .partitions = PARTITIONS,
					 .quiet_ms = QUIET_MS,
					 .skew_max_ms = m->far ? SKEW_MS : 0,
					 .retention.levels_ms = {m->raw_ms}};
	struct rollup_delete_result result;
	struct errbuf e;
	d->err = rollup_delete(
		&(struct rollup_delete_options){
			.site = &site,
			.queue = queue,
			.tenant = d->series / FIELDS / HOSTS / MEASUREMENTS ? SLICE("u")
									    : SLICE("default"),
			.metric = slice_of(d->name),
			.selectors = &d->selector,
			.selector_count = d->has_selector,
			.from_ms = d->from_ms,
			.to_ms = d->to_ms,
			.whole = d->whole,
			.stamp_us = d->stamp_us,
			.again = d->again,
		},
		&result, &e);
}

void deleter_begin(struct deleter *d)
{
	struct model *m = d->model;
	trace(m, "deleter: %s of %lld to %lld", d->name, (long long)(d->from_ms - BEGIN_MS),
	      (long long)(d->to_ms - BEGIN_MS));
	d->host_pattern = (struct catalog_pattern){&d->host, 1};
	d->selector = (struct catalog_selector){SLICE("h"), &d->host_pattern, 1};
	stepped_start(&d->work, run_deletion, d);
	d->works = true;
}

bool deleter_step(struct deleter *d)
{
	struct model *m = d->model;
	if (!d->works || !stepped_ready(&d->work))
		return false;
	(void)stepped_step(&d->work);
	if (!stepped_over(&d->work))
		return true;
	stepped_release(&d->work);
	d->works = false;
	trace(m, "deleter: done, error %d", d->err);
	d->wanted = d->again = d->err != 0;
	if (!d->err)
		take_deleted(m);
	return true;
}

void deleter_open(struct model *m)
{
	struct deleter *d = &m->deleter;
	d->model = m;
	d->works = false;
	process_open(m, &d->p, "deleter", 0);
}

void deleter_tick(struct deleter *d)
{
	if (!d->works && !d->wanted && chance(d->model, d->model->deletes))
		choose_deletion(d);
	if (!d->works && d->wanted)
		deleter_begin(d);
}

void deleter_kill(struct deleter *d)
{
	process_kill(d->model, &d->p);
	while (deleter_step(d))
		;
	ASSERT(!d->works);
	process_release(&d->p);
}

/* ---- Who makes marks again ------------------------------------------------------------------- */

static void run_rebuild(struct task_queue *queue, void *owner)
{
	struct rebuilder *r = owner;
	struct model *m = r->model;
	const struct rollup_site site = {.store = r->p.store,
					 .marks = r->p.marks,
					 .clock = &r->p.clock.clock,
					 .granularities = m->granularities,
					 .partitions = PARTITIONS,
					 .quiet_ms = QUIET_MS,
					 .skew_max_ms = SKEW_MS,
					 .retention.levels_ms = {m->raw_ms}};
	struct remark_result result;
	r->err = remark(
		&(struct remark_options){
			.site = &site, .queue = queue, .to_ms = INT64_MAX, .with_late = m->late},
		&result);
	trace(m, "rebuild: %llu marks, error %d", (unsigned long long)result.marks, r->err);
}

bool rebuilder_step(struct rebuilder *r)
{
	if (!r->works || !stepped_ready(&r->work))
		return false;
	(void)stepped_step(&r->work);
	if (!stepped_over(&r->work))
		return true;
	stepped_release(&r->work);
	r->works = false;
	r->wanted = r->err != 0;
	return true;
}

void rebuilder_open(struct model *m)
{
	struct rebuilder *r = &m->rebuilder;
	r->model = m;
	r->works = false;
	process_open(m, &r->p, "rebuilder", 0);
}

void rebuilder_tick(struct rebuilder *r)
{
	if (r->works || r->p.frozen || (!r->wanted && pick(r->model, 1000) >= r->model->rebuilds))
		return;
	stepped_start(&r->work, run_rebuild, r);
	r->works = r->wanted = true;
}

void rebuilder_kill(struct rebuilder *r)
{
	process_kill(r->model, &r->p);
	while (rebuilder_step(r))
		;
	ASSERT(!r->works);
	process_release(&r->p);
}
