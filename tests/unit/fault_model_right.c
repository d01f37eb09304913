/* Of the model of faults: what is right, by plain loops over the reports that have landed. */
#include "fault_model.h"

#include <stdlib.h>

#include "fault/sealed.h"
#include "store/wait.h"

enum { NAME_BYTES = 64, LISTED_MAX = 2000, NAMES_ALL = CONTEXTS * EXCEPTIONS };

/* ---- What has landed ------------------------------------------------------------------------- */

static int compare_arrivals(const void *one, const void *other)
{
	const struct arrival *a = one, *b = other;
	if (a->tenant != b->tenant)
		return a->tenant < b->tenant ? -1 : 1;
	if (a->order.date_us != b->order.date_us)
		return a->order.date_us < b->order.date_us ? -1 : 1;
	if (a->order.place.writer != b->order.place.writer)
		return a->order.place.writer < b->order.place.writer ? -1 : 1;
	return a->order.place.sequence < b->order.place.sequence   ? -1
	       : a->order.place.sequence > b->order.place.sequence ? 1
								   : 0;
}

static bool is_in_list(const struct model *m, const struct arrival *arrival);

/* Whether reports of the day may be collected. */
static bool may_be_collected(struct model *m, int64_t day)
{
	return m->collects && day * DAY_MS + KEEP_MS <= now_ms(m) + SKEW_MS;
}

bool is_late(struct model *m, unsigned tenant, int64_t day)
{
	return m->late[tenant] && may_be_collected(m, day);
}

struct looking {
	struct model *m;
	const struct store_row *row;
	struct arrival *list;
	size_t count, room;
};

static struct arrival *add_arrival(struct looking *l)
{
	if (l->count == l->room) {
		l->room = l->room ? 2 * l->room : 256;
		l->list = mem_resize_array(l->list, l->room, sizeof(*l->list));
	}
	return &l->list[l->count++];
}

static void add_gone(struct looking *l, const struct arrival *arrival)
{
	struct arrival *gone = add_arrival(l);
	l->m->gone += !arrival->gone;
	*gone = *arrival;
	gone->gone = true;
}

static void see(struct looking *l, const struct fault_arrival *read, uint64_t writer,
		uint64_t sequence)
{
	unsigned tenant = slice_equal(l->row->key.part[0], tenant_names[1]), id = id_of(read->id);
	if (id < IDS_MAX && l->m->erased[tenant][id]) {
		l->m->had_group[tenant][(unsigned)read->digest.low % GROUPS] = true;
		return;
	}
	*add_arrival(l) = (struct arrival){
		.tenant = tenant,
		.id = id,
		.content = (unsigned)read->digest.low,
		.order = {read->date_us, {writer, sequence}},
		.look = l->m->looks,
		.attached = read->facts.attachments > 0,
	};
}

static int see_arrival(const struct store_cell *cell, void *owner)
{
	struct looking *l = owner;
	struct fault_arrival read;
	int err = fault_arrival_decode(cell->value, &read);
	if (!err && !read.is_void)
		see(l, &read, fault_part_number(l->row->key.part[1]),
		    fault_part_number(cell->column.part[0]));
	return err;
}

/* A run that is sealed: its reports are there, with bodies, whatever became of the arrivals. */
static int see_run(const struct store_cell *cell, void *owner)
{
	struct looking *l = owner;
	const struct fault_sealed_site from = {&l->m->site, l->row->key.part[0], &l->m->own};
	struct fault_place place = {fault_part_number(cell->column.part[0]),
				    fault_part_number(cell->column.part[1]) << FAULT_RUN_BITS};
	struct fault_run_cell run_cell;
	struct fault_run *run;
	struct errbuf e = {""};
	struct buf bodies;
	bool look_at_bodies = chance(l->m, 10);
	if (fault_run_cell_decode(cell->value, &run_cell))
		return ERR_DAMAGED;
	run = fault_run_new(place, &run_cell);
	int err = fault_run_read_directory(&from, run, &e);
	buf_init(&bodies, FAULT_BODY_MAX_BYTES);
	for (size_t i = 0; i < run->segment.count && !err; i++) {
		const struct fault_sealed *report = &run->segment.reports[i];
		see(l, &report->arrival, place.writer, report->sequence);
		if (!look_at_bodies)
			continue;
		err = fault_run_read_block(&from, run, report->block, &bodies, &e);
		char body[BODY_BYTES];
		if (!err && !slice_equal(fault_sealed_body(report, &bodies),
					 body_of(id_of(report->arrival.id), body)))
			differ(l->m, "a sealed report has the body of another");
	}
	l->m->sealed += run->segment.count;
	if (err)
		differ(l->m, "a sealed run cannot be read: error %d, %s", err, e.text);
	buf_release(&bodies);
	fault_run_free(run);
	return err;
}

static int see_row(const struct store_row *row, void *owner)
{
	struct looking *l = owner;
	struct errbuf e;
	l->row = row;
	return store_row_wait(l->m->landed, &l->m->own, now_ms(l->m), TABLE_REPORT_ARRIVALS,
			      &row->key, see_arrival, l, &e);
}

static int see_runs(const struct store_row *row, void *owner)
{
	struct looking *l = owner;
	struct errbuf e;
	l->row = row;
	return store_row_wait(l->m->landed, &l->m->own, now_ms(l->m), TABLE_REPORT_RUNS, &row->key,
			      see_run, l, &e);
}

/* Those of a run that is sealed are there twice for a while. */
static void leave_one_of_each(struct looking *l)
{
	size_t kept = 0;
	for (size_t i = 0; i < l->count; i++)
		if (!kept || compare_arrivals(&l->list[kept - 1], &l->list[i]) != 0)
			l->list[kept++] = l->list[i];
	l->m->twice = l->count - kept;
	l->count = kept;
}

/* Whether a report is old, none of the first and the newest of its group, and in no list. */
static bool may_go(struct model *m, const struct arrival *gone)
{
	size_t before = 0, after = 0;
	for (size_t i = 0; i < m->arrival_count; i++) {
		const struct arrival *a = &m->arrivals[i];
		if (a->tenant != gone->tenant || a->content % GROUPS != gone->content % GROUPS)
			continue;
		before += fault_order_compare(&a->order, &gone->order) < 0;
		after += fault_order_compare(&a->order, &gone->order) > 0;
	}
	return m->collects && before && after >= m->newest &&
	       gone->order.date_us / 1000 + KEEP_MS <= now_ms(m) + SKEW_MS && !is_in_list(m, gone);
}

/* Another one of its id was first, and it is of a user whose reports were erased. */
static bool may_go_struck(const struct model *m, const struct arrival *struck)
{
	for (size_t i = 0; i < m->arrival_count; i++) {
		const struct arrival *a = &m->arrivals[i];
		if (a->tenant == struck->tenant && a->id == struck->id)
			return a != struck &&
			       m->erased_users[a->tenant][struck->content / GROUPS % USERS];
	}
	return false;
}

/* What was there is there still, unless it may have gone. */
static bool take_looks(struct model *m, struct looking *l)
{
	size_t at = 0, count = l->count;
	for (size_t i = 0; i < m->arrival_count; i++) {
		if (m->erased[m->arrivals[i].tenant][m->arrivals[i].id])
			continue;
		while (at < count && compare_arrivals(&l->list[at], &m->arrivals[i]) < 0)
			at++;
		bool there = at < count && compare_arrivals(&l->list[at], &m->arrivals[i]) == 0;
		if (there && m->arrivals[i].gone)
			return differ(m, "report id%u had gone, and is back", m->arrivals[i].id);
		if (there)
			l->list[at].look = m->arrivals[i].look;
		else if (may_go_struck(m, &m->arrivals[i]))
			continue;
		else if (m->arrivals[i].gone || may_go(m, &m->arrivals[i]))
			add_gone(l, &m->arrivals[i]);
		else
			return differ(m, "report id%u, which had landed, has gone",
				      m->arrivals[i].id);
	}
	if (l->count > count)
		qsort(l->list, l->count, sizeof(*l->list), compare_arrivals);
	return true;
}

static bool check_ack(struct model *m, const struct ack *ack)
{
	if (m->erased[ack->tenant][ack->id])
		return true;
	for (size_t i = 0; i < m->arrival_count; i++) {
		const struct arrival *a = &m->arrivals[i];
		if (a->tenant == ack->tenant && a->id == ack->id &&
		    a->order.date_us == ack->date_us &&
		    (a->content == ack->content) == (ack->outcome != FAULT_CONFLICT))
			return true;
	}
	return differ(m, "id%u.%u of %s was answered as %d of %lld, which has not landed", ack->id,
		      ack->content, tenant_names[ack->tenant].data, (int)ack->outcome,
		      (long long)ack->date_us);
}

/* The file of a report has landed before the report. */
static bool check_file(struct model *m, const struct arrival *a)
{
	struct store_read *read = store_read_new(m->landed, 1 << 16);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	struct fault_parts key, column;
	fault_arrivals_key(&key, tenant_names[a->tenant], a->order.place);
	fault_attachments_column(&column, a->order.place.sequence, FAULT_ATTACHMENT_CONTENT, 0);
	request->cell_get = (struct store_cell_get){
		.table = TABLE_REPORT_ATTACHMENTS, .key = key.parts, .column = column.parts};
	read->now_ms = now_ms(m);
	int err = store_read_wait(read, &m->own);
	bool found = !err && request->cell_get.found;
	store_read_free(read);
	return found || differ(m, "report id%u has landed without its file", a->id);
}

static int see_entry(const struct store_cell *cell, void *owner)
{
	struct looking *l = owner;
	struct fault_listing listing;
	unsigned tenant = slice_equal(l->row->key.part[0], tenant_names[1]);
	unsigned id = id_of(cell->column.part[0]);
	if (id < IDS_MAX && fault_listing_decode(cell, &listing) &&
	    fault_listing_is_erased(&listing))
		l->m->erased[tenant][id] = l->m->any_erased = true;
	return 0;
}

static int see_entries(const struct store_row *row, void *owner)
{
	struct looking *l = owner;
	struct errbuf e;
	l->row = row;
	return store_row_wait(l->m->landed, &l->m->own, now_ms(l->m), TABLE_OOPS, &row->key,
			      see_entry, l, &e);
}

bool look(struct model *m)
{
	struct looking l = {.m = m};
	struct errbuf e = {""};
	m->looks++;
	m->sealed = 0;
	int err = m->any_erased || m->erases ? store_rows_wait(m->landed, &m->own, now_ms(m),
							       TABLE_OOPS, see_entries, &l, &e)
					     : 0;
	err = err ? err
		  : store_rows_wait(m->landed, &m->own, now_ms(m), TABLE_REPORT_ARRIVALS, see_row,
				    &l, &e);
	err = err ? err
		  : store_rows_wait(m->landed, &m->own, now_ms(m), TABLE_REPORT_RUNS, see_runs, &l,
				    &e);
	ASSERT(!err || m->failure[0]);
	if (l.count)
		qsort(l.list, l.count, sizeof(*l.list), compare_arrivals);
	leave_one_of_each(&l);
	bool right = !err && take_looks(m, &l);
	mem_free(m->arrivals);
	m->arrivals = l.list;
	m->arrival_count = l.count;
	for (size_t i = 0; i < m->arrival_count && right; i++) {
		const struct arrival *a = &m->arrivals[i];
		if (a->id >= IDS_MAX || a->content >= CONTENTS || !m->sent[a->tenant][a->id])
			right = differ(m, "a report has landed that nobody sent");
		else if (a->attached && a->look == m->looks)
			right = check_file(m, a);
		if (a->look == m->looks && may_be_collected(m, day_of(a->order.date_us)))
			m->late[a->tenant] = true;
	}
	for (unsigned t = 0; t < TENANTS; t++)
		follow_messages(m, t);
	for (; m->acks_seen < m->ack_count && right; m->acks_seen++)
		right = check_ack(m, &m->acks[m->acks_seen]);
	return right;
}

/* ---- A recount ------------------------------------------------------------------------------- */

struct top {
	uint64_t value;
	char text[NAME_BYTES];
};

struct tops {
	struct top list[LISTED_MAX];
	size_t count;
};

struct summary {
	uint64_t total, hours[HOURS], rest;
	struct tops longest, most, largest;
};

static int compare_tops(const void *one, const void *other)
{
	const struct top *a = one, *b = other;
	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	return strcmp(a->text, b->text);
}

static void add_top(struct tops *tops, int64_t value, const char *text)
{
	ASSERT(tops->count < LISTED_MAX);
	struct top *top = &tops->list[tops->count++];
	top->value = (uint64_t)value;
	snprintf(top->text, sizeof(top->text), "%s", text);
}

static void close_tops(struct tops *tops, size_t max)
{
	qsort(tops->list, tops->count, sizeof(*tops->list), compare_tops);
	if (tops->count > max)
		tops->count = max;
}

/* The first NAMES_MAX names, by when the first of each was received, are counted. */
static void count_name(struct summary *s, const char *name)
{
	for (size_t i = 0; i < s->largest.count; i++) {
		if (strcmp(s->largest.list[i].text, name) == 0) {
			s->largest.list[i].value++;
			return;
		}
	}
	if (s->largest.count < NAMES_MAX)
		add_top(&s->largest, 1, name);
	else
		s->rest++;
}

int64_t day_of(int64_t date_us)
{
	return date_us / 1000 / DAY_MS;
}

size_t hour_of(int64_t date_us)
{
	return (size_t)(date_us / 1000 % DAY_MS / 3600000);
}

static void count_report(struct summary *s, const struct arrival *a)
{
	const struct content content = content_of(a->content);
	char id[24];
	snprintf(id, sizeof(id), "id%u", a->id);
	s->total++;
	s->hours[hour_of(a->order.date_us)]++;
	if (content.duration_us >= 0)
		add_top(&s->longest, content.duration_us, id);
	if (content.statements >= 0)
		add_top(&s->most, content.statements, id);
	count_name(s, content.name);
}

/* Of each id the first that was received. A closed day keeps the largest volumes alone. */
static void recount(const struct model *m, unsigned tenant, int64_t day, bool closed,
		    struct summary *s)
{
	bool *seen = mem_zalloc(IDS_MAX * sizeof(*seen));
	s->total = s->rest = s->longest.count = s->most.count = s->largest.count = 0;
	memset(s->hours, 0, sizeof(s->hours));
	for (size_t i = 0; i < m->arrival_count; i++) {
		const struct arrival *a = &m->arrivals[i];
		if (a->tenant != tenant || seen[a->id])
			continue;
		seen[a->id] = true;
		if (day_of(a->order.date_us) == day)
			count_report(s, a);
	}
	close_tops(&s->longest, LIST_MAX);
	close_tops(&s->most, LIST_MAX);
	close_tops(&s->largest, closed ? LIST_MAX : NAMES_MAX);
	mem_free(seen);
}

/* Whether a list of its day, which is over, has it. */
static bool is_in_list(const struct model *m, const struct arrival *arrival)
{
	struct summary *s = mem_alloc(sizeof(*s));
	char id[24];
	bool found = false;
	snprintf(id, sizeof(id), "id%u", arrival->id);
	recount(m, arrival->tenant, day_of(arrival->order.date_us), true, s);
	for (size_t i = 0; i < s->longest.count; i++)
		found = found || strcmp(s->longest.list[i].text, id) == 0;
	for (size_t i = 0; i < s->most.count; i++)
		found = found || strcmp(s->most.list[i].text, id) == 0;
	mem_free(s);
	return found;
}

/* ---- Summaries ------------------------------------------------------------------------------- */

static void print_tops(char to[200], const struct top *list, size_t count)
{
	size_t len = 0;
	to[0] = 0;
	for (size_t i = 0; i < count && len < 150; i++)
		len += (size_t)snprintf(to + len, 200 - len, " %llu %s,",
					(unsigned long long)list[i].value, list[i].text);
}

static void take_view_list(const struct fault_list *from, struct tops *to)
{
	to->count = 0;
	for (size_t i = 0; i < from->count; i++) {
		char text[NAME_BYTES];
		snprintf(text, sizeof(text), SHOWN, SHOWN_OF(from->list[i].id));
		add_top(to, (int64_t)from->list[i].value, text);
	}
}

static bool same_tops(struct model *m, const char *whose, const char *what,
		      const struct fault_list *given, const struct tops *wanted)
{
	char want[200], got[200];
	struct tops *is = mem_alloc(sizeof(*is));
	take_view_list(given, is);
	bool same = is->count == wanted->count;
	for (size_t i = 0; i < is->count && same; i++)
		same = compare_tops(&is->list[i], &wanted->list[i]) == 0;
	print_tops(want, wanted->list, wanted->count);
	print_tops(got, is->list, is->count);
	mem_free(is);
	return same || differ(m, "%s: %s are%s, not%s", whose, what, got, want);
}

static bool same_summary(struct model *m, const char *whose, unsigned tenant,
			 const struct fault_day_view *view, const struct summary *s)
{
	bool volumes = !is_late(m, tenant, view->day);
	if (view->total != s->total || (volumes && view->rest != s->rest))
		return differ(m, "%s: total %llu and rest %llu, not %llu and %llu", whose,
			      (unsigned long long)view->total, (unsigned long long)view->rest,
			      (unsigned long long)s->total, (unsigned long long)s->rest);
	if (volumes && view->names != s->largest.count)
		return differ(m, "%s: %zu names, not %zu", whose, view->names, s->largest.count);
	for (size_t h = 0; h < HOURS; h++) {
		if (view->hours[h] != s->hours[h])
			return differ(m, "%s: %llu in hour %zu, not %llu", whose,
				      (unsigned long long)view->hours[h], h,
				      (unsigned long long)s->hours[h]);
	}
	return same_tops(m, whose, "the longest", &view->longest, &s->longest) &&
	       same_tops(m, whose, "those with most statements", &view->most, &s->most) &&
	       (!volumes || same_tops(m, whose, "the volumes", &view->largest, &s->largest));
}

/* A day is closed when nothing more can come of it by the clock of who closes it. */
static bool may_be_closed(struct model *m, int64_t day)
{
	return now_ms(m) + SKEW_MS / 2 >= (day + 1) * DAY_MS + WRITE_MAX_MS + SKEW_MS;
}

/* ---- While others write ---------------------------------------------------------------------- */

/* What an answer may say of an id. It counts one report of it, which was received no later than
 * those that had landed when it was asked. */
struct known {
	bool settled;   /* one had landed then, so one is there */
	uint32_t hours; /* of the day: those that it may have been received in */
	bool elsewhere; /* it may have been received on another day */
};

static struct known *known_of(const struct model *m, const struct answer *a)
{
	struct known *known = mem_zalloc(IDS_MAX * sizeof(*known));
	for (size_t i = 0; i < m->arrival_count; i++) {
		const struct arrival *arrival = &m->arrivals[i];
		struct known *k = &known[arrival->id];
		if (arrival->tenant != a->tenant || k->settled)
			continue;
		if (day_of(arrival->order.date_us) == a->day)
			k->hours |= 1u << hour_of(arrival->order.date_us);
		else
			k->elsewhere = true;
		k->settled = arrival->look <= a->look;
	}
	return known;
}

/* Whether the id may be in a list of the day with this value. */
static bool may_have(const struct model *m, const struct answer *a, unsigned id, int64_t value,
		     bool of_statements)
{
	for (size_t i = 0; i < m->arrival_count; i++) {
		const struct arrival *arrival = &m->arrivals[i];
		const struct content content = content_of(arrival->content);
		if (arrival->tenant != a->tenant || arrival->id != id)
			continue;
		if (day_of(arrival->order.date_us) == a->day &&
		    (of_statements ? content.statements : content.duration_us) == value)
			return true;
		if (arrival->look <= a->look)
			return false;
	}
	return false;
}

static bool check_top_list(struct model *m, const struct answer *a, const char *whose,
			   const struct fault_list *list, bool of_statements)
{
	if (list->count > LIST_MAX)
		return differ(m, "%s: a list of %zu", whose, list->count);
	for (size_t i = 0; i < list->count; i++) {
		unsigned id = id_of(list->list[i].id);
		if (id == IDS_MAX ||
		    !may_have(m, a, id, (int64_t)list->list[i].value, of_statements))
			return differ(m, "%s: " SHOWN " with %llu is in a list", whose,
				      SHOWN_OF(list->list[i].id),
				      (unsigned long long)list->list[i].value);
		for (size_t j = 0; j < i; j++)
			if (slice_equal(list->list[j].id, list->list[i].id))
				return differ(m, "%s: id%u is in a list twice", whose, id);
	}
	return true;
}

static bool check_bounds(struct model *m, const struct answer *a, const char *whose)
{
	struct known *known = known_of(m, a);
	uint64_t least = 0, most = 0, hours_least[HOURS] = {0}, hours_most[HOURS] = {0};
	bool right = true;
	for (unsigned id = 0; id < IDS_MAX; id++) {
		const struct known *k = &known[id];
		least += k->settled && !k->elsewhere;
		most += k->hours != 0;
		for (size_t h = 0; h < HOURS; h++) {
			hours_least[h] += k->settled && !k->elsewhere && k->hours == 1u << h;
			hours_most[h] += k->hours >> h & 1;
		}
	}
	mem_free(known);
	if (a->view->total < least || a->view->total > most)
		right = differ(m, "%s: total %llu, not %llu to %llu", whose,
			       (unsigned long long)a->view->total, (unsigned long long)least,
			       (unsigned long long)most);
	for (size_t h = 0; h < HOURS && right; h++)
		if (a->view->hours[h] < hours_least[h] || a->view->hours[h] > hours_most[h])
			right = differ(m, "%s: %llu in hour %zu, not %llu to %llu", whose,
				       (unsigned long long)a->view->hours[h], h,
				       (unsigned long long)hours_least[h],
				       (unsigned long long)hours_most[h]);
	return right && check_top_list(m, a, whose, &a->view->longest, false) &&
	       check_top_list(m, a, whose, &a->view->most, true);
}

/* Nothing has landed since it was asked. */
bool answer_is_exact(const struct model *m, const struct answer *a)
{
	for (size_t i = 0; i < m->arrival_count; i++)
		if (m->arrivals[i].tenant == a->tenant && m->arrivals[i].look > a->look)
			return false;
	return true;
}

static bool check_view(struct model *m, struct answer *a, const char *whose)
{
	struct summary *s = mem_alloc(sizeof(*s));
	bool exact = answer_is_exact(m, a);
	char of[80];
	snprintf(of, sizeof(of), "%s of %s, day %lld%s", whose, tenant_names[a->tenant].data,
		 (long long)(a->day - BEGIN_DAY), exact ? "" : " among writes");
	recount(m, a->tenant, a->day, a->view->closed, s);
	bool right = exact ? same_summary(m, of, a->tenant, a->view, s) : check_bounds(m, a, of);
	m->answers++;
	m->exact += exact;
	mem_free(s);
	if (a->view->closed && !may_be_closed(m, a->day))
		right = differ(m, "%s: it is closed too early", of);
	return right;
}

/* ---- Lists ----------------------------------------------------------------------------------- */

static bool listed_is_right(const struct listed *listed, const struct arrival *arrival)
{
	const struct content content = content_of(arrival->content);
	return listed->id == arrival->id && listed->duration_us == content.duration_us &&
	       listed->statements == content.statements &&
	       listed->context == arrival->content % CONTEXTS &&
	       listed->exception == arrival->content / CONTEXTS % EXCEPTIONS;
}

static bool fits(const struct answer *a, const struct arrival *arrival)
{
	return arrival->order.date_us >= a->filter.from_us &&
	       arrival->order.date_us < a->filter.to_us &&
	       fault_order_compare(&arrival->order, &a->filter.after) < 0 &&
	       (a->context < 0 || (int)(arrival->content % CONTEXTS) == a->context) &&
	       (a->word < 0 || (int)(arrival->id % WORDS) == a->word);
}

/* What was listed of an id. NULL: nothing. */
static const struct listed *find_listed(const struct answer *a, unsigned id)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->list[i].id == id)
			return &a->list[i];
	return NULL;
}

/* One of the candidates for an id is listed, or none if one of them does not fit. */
static bool check_listed(struct model *m, const struct answer *a, const char *whose, unsigned id)
{
	const struct listed *listed = find_listed(a, id);
	bool found = false, settled = false, may_miss = false;
	for (size_t i = 0; i < m->arrival_count && !settled; i++) {
		const struct arrival *arrival = &m->arrivals[i];
		if (arrival->tenant != a->tenant || arrival->id != id)
			continue;
		may_miss = may_miss || !fits(a, arrival) || arrival->gone;
		found = found || (listed && fits(a, arrival) && listed_is_right(listed, arrival) &&
				  fault_order_compare(&listed->order, &arrival->order) == 0);
		settled = arrival->look <= a->look;
	}
	may_miss = may_miss || !settled || a->count == a->stop;
	if (listed && !found)
		return differ(m, "%s: id%u is listed as something else", whose, id);
	return listed || may_miss || differ(m, "%s: id%u is not listed", whose, id);
}

/* Of a list that ends early, what comes before its end is there. */
static bool check_before_end(struct model *m, const struct answer *a, const char *whose)
{
	bool *seen = mem_zalloc(IDS_MAX * sizeof(*seen));
	bool right = true;
	for (size_t i = 0; i < m->arrival_count && right; i++) {
		const struct arrival *arrival = &m->arrivals[i];
		if (arrival->tenant != a->tenant || seen[arrival->id])
			continue;
		seen[arrival->id] = true;
		if (fits(a, arrival) && a->count && !arrival->gone &&
		    fault_order_compare(&arrival->order, &a->list[a->count - 1].order) > 0 &&
		    !find_listed(a, arrival->id))
			right = differ(m, "%s: id%u is passed over", whose, arrival->id);
	}
	mem_free(seen);
	return right;
}

static bool check_list(struct model *m, const struct answer *a, const char *whose)
{
	bool right = true;
	for (size_t i = 0; i < a->count && right; i++) {
		if (a->list[i].id >= IDS_MAX)
			right = differ(m, "%s: a list has an id that nobody sent", whose);
		else if (find_listed(a, a->list[i].id) != &a->list[i])
			right = differ(m, "%s: id%u is listed twice", whose, a->list[i].id);
		else if (i && fault_order_compare(&a->list[i].order, &a->list[i - 1].order) >= 0)
			right = differ(m, "%s: id%u is listed out of order", whose, a->list[i].id);
	}
	for (unsigned id = 0; id <= m->next_id && right; id++)
		right = check_listed(m, a, whose, id);
	m->answers++;
	if (!right || !answer_is_exact(m, a))
		return right;
	m->exact++;
	return check_before_end(m, a, whose);
}

/* ---- News ------------------------------------------------------------------------------------ */

static struct listed *keep_watched(struct watch *watch, const struct fault_listed *report)
{
	ASSERT(watch->count < LISTED_MAX);
	struct listed *kept = &watch->list[watch->count++];
	*kept = (struct listed){
		.order = report->order,
		.id = id_of(report->id),
		.duration_us = report->facts.duration_us,
		.statements = report->facts.statements,
		.context = context_of(report->facts.texts[FAULT_CONTEXT]),
		.exception = exception_of(report->facts.texts[FAULT_EXCEPTION]),
	};
	return kept;
}

static bool take_watched(void *owner, const struct fault_listed *report)
{
	(void)keep_watched(owner, report);
	return true;
}

static void take_told(void *owner, UNUSED uint64_t number, const struct fault_listed *report)
{
	(void)keep_watched(owner, report);
}

static void watch_ask(struct answer *a, struct fault_book *book, struct task_queue *queue)
{
	struct watch *watch = a->watch;
	uint64_t missed;
	if (watch->on) {
		a->err = fault_book_news(book, queue, &watch->from, take_told, watch, &missed,
					 &a->e);
		watch->missed += missed;
		return;
	}
	if (!watch->list) {
		watch->list = mem_alloc_array(LISTED_MAX, sizeof(*watch->list));
		fault_book_watch(book, true);
	}
	watch->count = 0;
	a->filter = (struct fault_list_filter){
		.to_us = INT64_MAX, .after.date_us = INT64_MAX, .news = &watch->from};
	a->err = fault_book_list(book, queue, &a->filter, take_watched, watch, &a->reached, &a->e);
	watch->on = !a->err;
}

void watch_end(struct watch *watch)
{
	mem_free(watch->list);
	*watch = (struct watch){.on = false};
}

static const struct arrival *find_arrival(const struct model *m, const struct answer *a,
					  const struct listed *listed)
{
	for (size_t i = 0; i < m->arrival_count; i++)
		if (m->arrivals[i].tenant == a->tenant &&
		    fault_order_compare(&m->arrivals[i].order, &listed->order) == 0)
			return &m->arrivals[i];
	return NULL;
}

static bool is_watched(const struct watch *watch, unsigned id)
{
	for (size_t i = 0; i < watch->count; i++)
		if (watch->list[i].id == id)
			return true;
	return false;
}

/* Each report was told once, as it is; and one of each id that was there when it was asked. */
static bool check_news(struct model *m, const struct answer *a, const char *whose)
{
	const struct watch *watch = a->watch;
	m->answers++;
	for (size_t i = 0; i < watch->count; i++) {
		const struct listed *told = &watch->list[i];
		const struct arrival *arrival = find_arrival(m, a, told);
		if (told->id < IDS_MAX && m->erased[a->tenant][told->id])
			continue;
		if (!arrival || !listed_is_right(told, arrival))
			return differ(m, "%s: id%u is told as something else", whose, told->id);
		for (size_t k = 0; k < i; k++)
			if (fault_order_compare(&watch->list[k].order, &told->order) == 0)
				return differ(m, "%s: id%u is told twice", whose, told->id);
	}
	for (size_t i = 0; i < m->arrival_count && !watch->missed; i++) {
		const struct arrival *arrival = &m->arrivals[i];
		if (arrival->tenant == a->tenant && arrival->look <= a->look && !arrival->gone &&
		    !is_watched(watch, arrival->id))
			return differ(m, "%s: id%u is not told", whose, arrival->id);
	}
	return true;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static int64_t some_day(struct model *m)
{
	int64_t today = now_ms(m) / DAY_MS;
	int64_t day =
		chance(m, 60)
			? today - (int64_t)pick(m, 2)
			: m->first_day + (int64_t)pick(m, (uint64_t)(today + 2 - m->first_day));
	return day;
}

static void choose_word(struct model *m, struct answer *a)
{
	a->word = (int)pick(m, WORDS);
	snprintf(a->word_text, sizeof(a->word_text), "w%d", a->word);
	a->term = (struct words_term){.words = {slice_of(a->word_text)}, .word_count = 1};
	a->query = (struct words_query){&a->term, 1};
	a->filter.search = &a->query;
}

void answer_choose(struct model *m, struct answer *a)
{
	*a = (struct answer){.tenant = (unsigned)pick(m, TENANTS), .context = -1, .word = -1};
	(void)look(m);
	a->day = some_day(m);
	a->what = chance(m, 30) ? ASKED_LIST : ASKED_DAY;
	a->group = (unsigned)pick(m, GROUPS - 1);
	a->look = m->looks;
	a->stop = chance(m, 20) ? 1 + pick(m, 5) : SIZE_MAX;
	a->filter = (struct fault_list_filter){.to_us = INT64_MAX, .after.date_us = INT64_MAX};
	if (chance(m, 5))
		a->what = chance(m, 50) ? ASKED_GROUPS : ASKED_GROUP;
	if (chance(m, 10))
		a->what = ASKED_NEWS;
	if (chance(m, 50)) {
		a->filter.from_us = a->day * DAY_MS * 1000;
		a->filter.to_us = (a->day + 1) * DAY_MS * 1000;
	}
	if (m->arrival_count && chance(m, 30))
		a->filter.after = m->arrivals[pick(m, m->arrival_count)].order;
	if (chance(m, 20)) {
		a->context = 1 + (int)pick(m, CONTEXTS - 1);
		a->filter.texts[FAULT_CONTEXT] = content_of((unsigned)a->context).context;
	}
	if (a->what == ASKED_LIST && chance(m, 40))
		choose_word(m, a);
}

static bool take_listed(void *owner, const struct fault_listed *report)
{
	struct answer *a = owner;
	ASSERT(a->count < LISTED_MAX);
	a->list[a->count++] = (struct listed){
		.order = report->order,
		.id = id_of(report->id),
		.duration_us = report->facts.duration_us,
		.statements = report->facts.statements,
		.context = context_of(report->facts.texts[FAULT_CONTEXT]),
		.exception = exception_of(report->facts.texts[FAULT_EXCEPTION]),
	};
	return a->count < a->stop;
}

void answer_run(struct answer *a, struct fault_book *book, struct task_queue *queue)
{
	if (a->what == ASKED_NEWS && !a->watch)
		a->what = ASKED_LIST;
	switch (a->what) {
	case ASKED_NEWS:
		watch_ask(a, book, queue);
		return;
	case ASKED_DAY:
		a->err = fault_book_read_day(book, queue, a->day, &a->view, &a->e);
		return;
	case ASKED_LIST:
		a->list = mem_alloc_array(LISTED_MAX, sizeof(*a->list));
		a->err = fault_book_list(book, queue, &a->filter, take_listed, a, &a->reached,
					 &a->e);
		return;
	case ASKED_GROUPS:
		a->err = fault_book_read_groups(
			book, queue,
			&(struct fault_groups_question){a->day, a->day, FAULT_TALLY_ALL, 0},
			&a->sums, &a->e);
		return;
	case ASKED_GROUP:
		a->err = fault_book_read_group(
			book, queue,
			&(struct fault_group_question){group_name(a->group), FAULT_TALLY_ALL, 0},
			&a->history, &a->e);
		return;
	}
}

/* What may become of a question where the store may fail. */
static bool may_fail(const struct model *m, const struct answer *a)
{
	return a->err == ERR_CANCELLED ||
	       (!m->rests && !a->of_landed &&
		(a->err == ERR_UNKNOWN || a->err == ERR_BUSY || a->err == ERR_RETRY));
}

bool answer_check(struct model *m, struct answer *a, const char *whose)
{
	static const char *const asked[] = {"summary", "list", "groups", "group", "news"};
	bool right = look(m);
	trace(m, "%s: %s %s day %lld, error %d, total %llu, closed %d, listed %zu", whose,
	      asked[a->what], tenant_names[a->tenant].data, (long long)(a->day - BEGIN_DAY), a->err,
	      a->view ? (unsigned long long)a->view->total : 0, a->view ? a->view->closed : 0,
	      a->count);
	if (right && a->err && !may_fail(m, a))
		right = differ(m, "%s: what was asked ends with error %d: %s", whose, a->err,
			       a->e.text);
	else if (right && !a->err)
		right = a->what == ASKED_LIST   ? check_list(m, a, whose)
			: a->what == ASKED_DAY  ? check_view(m, a, whose)
			: a->what == ASKED_NEWS ? check_news(m, a, whose)
						: check_groups(m, a, whose);
	fault_groups_release(&a->sums);
	fault_group_history_release(&a->history);
	fault_day_view_free(a->view);
	mem_free(a->list);
	a->view = NULL;
	a->list = NULL;
	return right;
}

/* ---- At any moment --------------------------------------------------------------------------- */

static bool ask_landed(struct model *m, struct fault_book *book, unsigned tenant, int64_t day,
		       enum asked what, const char *whose)
{
	struct answer a;
	answer_choose(m, &a);
	a.tenant = tenant;
	a.day = day;
	a.what = what;
	a.of_landed = true;
	answer_run(&a, book, &m->own);
	return answer_check(m, &a, whose);
}

/* All days, and some list. */
static bool check_book(struct model *m, struct fault_book *book, unsigned tenant, const char *whose)
{
	bool right = true;
	for (int64_t day = m->first_day; day <= now_ms(m) / DAY_MS + 1 && right; day++)
		right = ask_landed(m, book, tenant, day, ASKED_DAY, whose);
	right = right && ask_landed(m, book, tenant, m->first_day, ASKED_LIST, whose);
	if (!right || !chance(m, 30))
		return right;
	return ask_landed(m, book, tenant, some_day(m), ASKED_GROUPS, whose) &&
	       ask_landed(m, book, tenant, m->first_day, ASKED_GROUP, whose);
}

static bool check_begins(struct model *m, unsigned tenant)
{
	struct fault_book *book = fault_book_new(&m->site, tenant_names[tenant]);
	bool right = check_book(m, book, tenant, "who begins");
	fault_book_free(book);
	return right;
}

bool check_landed(struct model *m)
{
	unsigned t = (unsigned)pick(m, TENANTS);
	if (chance(m, 50))
		return check_begins(m, t);
	if (chance(m, 5)) {
		fault_book_free(m->onlookers[t]);
		m->onlookers[t] = fault_book_new(&m->site, tenant_names[t]);
	}
	return check_book(m, m->onlookers[t], t, "who looks on");
}

/* ---- At rest --------------------------------------------------------------------------------- */

/* A day of which a report is there, and that is past by all clocks. */
static bool check_closed(struct model *m, unsigned tenant, int64_t day)
{
	struct fault_book *book = fault_book_new(&m->site, tenant_names[tenant]);
	struct fault_day_view *view = NULL;
	struct errbuf e = {""};
	int err = fault_book_read_day(book, &m->own, day, &view, &e);
	bool right = err || !view->total || view->closed ||
		     differ(m, "day %lld of %s is not closed", (long long)(day - BEGIN_DAY),
			    tenant_names[tenant].data);
	fault_day_view_free(view);
	fault_book_free(book);
	return right;
}

bool check_rest(struct model *m)
{
	int64_t past_ms = now_ms(m) - WRITE_MAX_MS - 2 * SKEW_MS;
	bool right = true;
	for (unsigned t = 0; t < TENANTS && right; t++) {
		right = check_begins(m, t) && check_book(m, m->onlookers[t], t, "who looks on") &&
			check_messages(m, t) && check_minutes(m, t);
		for (int64_t day = m->first_day; day <= now_ms(m) / DAY_MS && right; day++)
			right = ask_landed(m, m->onlookers[t], t, day, ASKED_GROUPS,
					   "at rest, who looks on");
		for (int64_t day = m->first_day; (day + 1) * DAY_MS < past_ms && right; day++)
			right = check_closed(m, t, day);
	}
	return right;
}

static int see_volume(UNUSED const struct store_cell *cell, void *owner)
{
	(*(size_t *)owner)++;
	return 0;
}

bool check_cleared(struct model *m)
{
	int64_t past_ms = now_ms(m) - WRITE_MAX_MS - 2 * SKEW_MS - CLEAR_MS - LEASE_MS;
	size_t count = 0;
	for (unsigned t = 0; t < TENANTS; t++) {
		for (int64_t day = m->first_day; (day + 1) * DAY_MS < past_ms; day++) {
			struct fault_parts key;
			struct errbuf e;
			fault_summaries_key(&key, tenant_names[t], day, FAULT_ROW_VOLUMES);
			int err = store_row_wait(m->landed, &m->own, now_ms(m), TABLE_SUMMARIES,
						 &key.parts, see_volume, &count, &e);
			ASSERT(!err);
			if (count)
				return differ(
					m, "%zu volumes of day %lld of %s, which is closed, stay",
					count, (long long)(day - BEGIN_DAY), tenant_names[t].data);
		}
	}
	return look(m) && (!m->twice || differ(m, "%zu arrivals of sealed runs stay", m->twice));
}
