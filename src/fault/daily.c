#include "fault/daily.h"

#include <stdlib.h>

#include "fault/group.h"
#include "fault/sentry.h"

enum {
	ARENA_MAX_BYTES = 64 << 20,
	REPORT_ARENA_MAX_BYTES = 64 << 20, /* of a report that is read */
	TIMEOUT_PAGES_MAX = 100000,        /* of further ones the counts are the rest */
	KNOWN_MAX = 2 * (FAULT_DAILY_LOOKS_MAX + FAULT_DAILY_STATEMENTS_MAX),
};

static const struct {
	const char *name, *title;
} daily_sections[FAULT_DAILY_SECTIONS] = {
	[FAULT_DAILY_NEW] = {"new", "New Groups"},
	[FAULT_DAILY_DURATIONS] = {"durations", "Durations by Page"},
	[FAULT_DAILY_STATEMENTS] = {"statements", "Statement Counts by Page"},
	[FAULT_DAILY_TIMEOUT_PAGES] = {"timeout_pages", "Time Out Counts by Page"},
	[FAULT_DAILY_EXCEPTIONS] = {"exceptions", "Exceptions"},
	[FAULT_DAILY_TIMEOUTS] = {"timeouts", "Time Outs"},
	[FAULT_DAILY_SOFT_TIMEOUTS] = {"soft_timeouts", "Soft Time Outs"},
	[FAULT_DAILY_INFORMATIONAL] = {"informational", "Informational"},
	[FAULT_DAILY_USER_GENERATED] = {"user_generated", "User Generated"},
	[FAULT_DAILY_UNAUTHORIZED] = {"unauthorized", "Unauthorized"},
	[FAULT_DAILY_NOT_FOUND] = {"not_found", "Pages Not Found"},
};

const char *fault_daily_name(enum fault_daily_section section)
{
	return daily_sections[section].name;
}

const char *fault_daily_title(enum fault_daily_section section)
{
	return daily_sections[section].title;
}

/* ---- Classes --------------------------------------------------------------------------------- */

/* As oops-tools has them, where the exception alone decides. */
static const struct {
	const char *exception;
	enum fault_daily_section section;
} daily_classes[] = {
	{"UnexpectedFormData", FAULT_DAILY_USER_GENERATED},
	{"OffsiteFormPostError", FAULT_DAILY_USER_GENERATED},
	{"ProtocolErrorException", FAULT_DAILY_USER_GENERATED},
	{"InvalidBatchSizeError", FAULT_DAILY_USER_GENERATED},
	{"UnsupportedFeedFormat", FAULT_DAILY_USER_GENERATED},
	{"UntrustedReturnURL", FAULT_DAILY_USER_GENERATED},
	{"UserRequestOops", FAULT_DAILY_USER_GENERATED},
	{"Unauthorized", FAULT_DAILY_UNAUTHORIZED},
	{"NotFound", FAULT_DAILY_NOT_FOUND},
	{"DeletedProxiedLibraryFileAlias", FAULT_DAILY_NOT_FOUND},
	{"GoneError", FAULT_DAILY_NOT_FOUND},
};

/* The value that most reports have, of equal ones the lesser text; empty: none has any. */
static struct slice daily_largest(const struct fault_tally *tally, enum fault_tally_fact fact)
{
	const struct fault_values *values = &tally->values[fact];
	const struct fault_value *largest = NULL;
	for (size_t i = 0; i < values->count; i++) {
		const struct fault_value *value = &values->list[i];
		if (!largest || value->count > largest->count ||
		    (value->count == largest->count &&
		     slice_compare(value->text, largest->text) < 0))
			largest = value;
	}
	return largest ? largest->text : SLICE("");
}

static enum fault_daily_section daily_class(const struct fault_daily_group *group)
{
	struct slice level = daily_largest(group->tally, FAULT_TALLY_LEVEL);
	if (slice_equal(group->exception, SLICE(FAULT_SENTRY_SLOW)))
		return FAULT_DAILY_SOFT_TIMEOUTS;
	if (fault_group_is_timeout(group->exception, group->tally->title))
		return FAULT_DAILY_TIMEOUTS;
	if (slice_equal(level, SLICE("info")) || slice_equal(level, SLICE("debug")))
		return FAULT_DAILY_INFORMATIONAL;
	for (size_t i = 0; i < ARRAY_LEN(daily_classes); i++)
		if (slice_equal(group->exception, slice_of(daily_classes[i].exception)))
			return daily_classes[i].section;
	return FAULT_DAILY_EXCEPTIONS;
}

/* ---- Sections of groups ---------------------------------------------------------------------- */

void fault_daily_list(struct fault_daily *daily)
{
	daily->list = mem_alloc_array(daily->sums.table.count, sizeof(*daily->list));
	for (size_t at = 0; at < daily->sums.table.slot_count; at++) {
		const struct fault_group_sum *sum = fault_groups_at(&daily->sums, at);
		if (!sum)
			continue;
		struct fault_daily_group *group = &daily->list[daily->group_count++];
		*group = (struct fault_daily_group){
			.name = sum->name,
			.tally = sum->tally,
			.exception = daily_largest(sum->tally, FAULT_TALLY_EXCEPTION)};
		group->section = daily_class(group);
	}
}

/* By count, the most first, then type, then title. */
static int daily_compare(const void *one, const void *other)
{
	const struct fault_daily_group *a = *(struct fault_daily_group *const *)one;
	const struct fault_daily_group *b = *(struct fault_daily_group *const *)other;
	if (a->tally->count != b->tally->count)
		return a->tally->count > b->tally->count ? -1 : 1;
	int order = slice_compare(a->exception, b->exception);
	order = order ? order : slice_compare(a->tally->title, b->tally->title);
	return order ? order : slice_compare(a->name, b->name);
}

static void daily_add_group(struct fault_daily_groups *groups, struct fault_daily_group *group)
{
	groups->unique++;
	groups->reports += group->tally->count;
	if (groups->count == FAULT_DAILY_GROUPS_MAX)
		return;
	groups->list[groups->count++] = group;
	groups->shown += group->tally->count;
}

static void daily_note_ends(struct fault_daily *daily, const struct fault_tally *tally)
{
	bool any = daily->first_us != 0;
	if (!any || tally->first.date_us < daily->first_us)
		daily->first_us = tally->first.date_us;
	if (!any || tally->last.date_us > daily->last_us)
		daily->last_us = tally->last.date_us;
}

/* ---- Time-outs by page ----------------------------------------------------------------------- */

static void daily_add_timeouts(struct fault_daily *daily, struct hash_table *pages,
			       struct slice context, uint64_t count, bool is_soft)
{
	struct fault_daily_timeout_pages *timeouts = &daily->timeouts;
	struct hash128 hash = hash128(context.data, context.len, 0);
	struct fault_daily_timeout_page *page = hash_table_find(pages, hash);
	bool added = false;
	if (!page && pages->count < TIMEOUT_PAGES_MAX)
		page = hash_table_add(pages, hash, sizeof(*page), &added);
	if (added)
		page->context = context;
	if (is_soft)
		*(page ? &page->soft : &timeouts->soft_rest) += count;
	else
		*(page ? &page->hard : &timeouts->hard_rest) += count;
}

static void daily_add_group_timeouts(struct fault_daily *daily, struct hash_table *pages,
				     const struct fault_daily_group *group)
{
	const struct fault_values *contexts = &group->tally->values[FAULT_TALLY_CONTEXT];
	bool is_soft = group->section == FAULT_DAILY_SOFT_TIMEOUTS;
	if (!is_soft && group->section != FAULT_DAILY_TIMEOUTS)
		return;
	for (size_t i = 0; i < contexts->count; i++)
		daily_add_timeouts(daily, pages, contexts->list[i].text, contexts->list[i].count,
				   is_soft);
	if (contexts->none.count)
		daily_add_timeouts(daily, pages, SLICE(""), contexts->none.count, is_soft);
	*(is_soft ? &daily->timeouts.soft_rest : &daily->timeouts.hard_rest) +=
		contexts->rest.count;
}

static int daily_compare_pages(const void *one, const void *other)
{
	const struct fault_daily_timeout_page *a = one, *b = other;
	if (a->hard != b->hard)
		return a->hard > b->hard ? -1 : 1;
	if (a->soft != b->soft)
		return a->soft > b->soft ? -1 : 1;
	return slice_compare(a->context, b->context);
}

static void daily_choose_pages(struct fault_daily *daily, const struct hash_table *pages)
{
	struct fault_daily_timeout_pages *timeouts = &daily->timeouts;
	struct fault_daily_timeout_page *all = mem_alloc_array(pages->count, sizeof(*all));
	for (size_t at = 0; at < pages->slot_count; at++) {
		const struct fault_daily_timeout_page *page = hash_table_at(pages, at);
		if (page)
			all[timeouts->unique++] = *page;
	}
	qsort(all, timeouts->unique, sizeof(*all), daily_compare_pages);
	for (size_t i = 0; i < timeouts->unique; i++) {
		if (i < FAULT_DAILY_PAGES_MAX) {
			timeouts->list[timeouts->count++] = all[i];
			continue;
		}
		timeouts->hard_rest += all[i].hard;
		timeouts->soft_rest += all[i].soft;
	}
	mem_free(all);
}

void fault_daily_arrange(struct fault_daily *daily)
{
	struct fault_daily_group **sorted = mem_alloc_array(daily->group_count, sizeof(*sorted));
	struct hash_table pages = {0};
	for (size_t i = 0; i < daily->group_count; i++)
		sorted[i] = &daily->list[i];
	qsort(sorted, daily->group_count, sizeof(struct fault_daily_group *), daily_compare);
	for (size_t i = 0; i < daily->group_count; i++) {
		struct fault_daily_group *group = sorted[i];
		daily_note_ends(daily, group->tally);
		daily_add_group(&daily->groups[group->section], group);
		if (group->is_new)
			daily_add_group(&daily->groups[FAULT_DAILY_NEW], group);
		daily_add_group_timeouts(daily, &pages, group);
	}
	daily_choose_pages(daily, &pages);
	hash_table_release(&pages);
	mem_free(sorted);
}

/* ---- Contexts of a group --------------------------------------------------------------------- */

void fault_daily_contexts(const struct fault_daily_group *group, size_t max,
			  struct fault_daily_contexts *to)
{
	const struct fault_value *largest[FAULT_VALUES_MAX];
	const struct fault_values *contexts = &group->tally->values[FAULT_TALLY_CONTEXT];
	size_t count = fault_tally_largest(group->tally, FAULT_TALLY_CONTEXT, largest);
	ASSERT(max <= FAULT_DAILY_CONTEXTS_MAX);
	bool none = contexts->none.count > 0;
	*to = (struct fault_daily_contexts){.rest = group->tally->count};
	for (size_t i = 0; to->count < max && (none || i < count);) {
		bool is_none = none && (i == count || contexts->none.count > largest[i]->count);
		const struct fault_value *value = is_none ? &contexts->none : largest[i];
		to->list[to->count++] = (struct fault_daily_context){
			is_none ? SLICE("") : value->text, value->count};
		to->rest -= value->count;
		none = none && !is_none;
		i += !is_none;
	}
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* What is known of a report that was read. */
struct daily_known {
	struct slice id, context;
	struct fault_statements statements;
	bool read; /* else it can be read no more */
};

struct daily_reading {
	struct fault *fault;
	struct fault_book *book;
	struct task_queue *queue;
	const struct fault_daily_question *question;
	struct fault_daily *daily;
	struct fault_merges merges; /* in the arena of the daily report */
	struct daily_known known[KNOWN_MAX];
	size_t known_count;
	struct fault_finder finder;
	struct arena arena; /* of one report */
	struct errbuf *e;
};

/* The groups of a day. */
static int daily_read_sums(struct daily_reading *r, int64_t day, unsigned facts,
			   struct fault_groups *to)
{
	const struct fault_groups_question question = {.first_day = day,
						       .last_day = day,
						       .facts = facts,
						       .deadline_us = r->question->deadline_us,
						       .merges = &r->merges};
	return fault_book_read_groups(r->book, r->queue, &question, to, r->e);
}

static int daily_read_before(struct daily_reading *r)
{
	struct fault_groups before;
	int err = daily_read_sums(r, r->daily->day - 1, 0, &before);
	for (size_t i = 0; i < r->daily->group_count && !err; i++) {
		struct slice name = r->daily->list[i].name;
		const struct fault_group_sum *sum =
			hash_table_find(&before.table, hash128(name.data, name.len, 0));
		r->daily->list[i].before = sum ? sum->tally->count : 0;
	}
	fault_groups_release(&before);
	return err;
}

static int daily_find_new(struct daily_reading *r)
{
	struct fault_daily *daily = r->daily;
	struct fault_group_age *ages = mem_alloc_array(daily->group_count, sizeof(*ages));
	size_t count = 0;
	for (size_t i = 0; i < daily->group_count; i++)
		if (!daily->list[i].before)
			ages[count++] = (struct fault_group_age){daily->list[i].name, false};
	int err = fault_book_read_older(r->book, r->queue, daily->day, &r->merges, ages, count,
					r->question->deadline_us, r->e);
	count = 0;
	for (size_t i = 0; i < daily->group_count && !err; i++)
		if (!daily->list[i].before)
			daily->list[i].is_new = !ages[count++].older;
	mem_free(ages);
	return err;
}

static int daily_judge(struct daily_reading *r, const struct fault_said_list *list,
		       struct fault_daily_group *group)
{
	const struct fault_group_question question = {group->name, FAULT_SAID_FACTS,
						      r->question->deadline_us, &r->merges};
	struct fault_said said;
	if (group->judged)
		return 0;
	int err = fault_said_judge(list, r->book, r->queue, &question, &said, &group->status,
				   &group->again, r->e);
	group->judged = true;
	if (err || (!said.status && !said.assignee.len && !said.bug_count))
		return err;
	struct fault_said *kept = arena_alloc(&r->daily->arena, sizeof(*kept));
	if (!kept)
		return errbuf_set(r->e, ERR_LIMIT, "the report takes too much memory");
	*kept = said;
	group->said = kept;
	return 0;
}

static int daily_judge_all(struct daily_reading *r)
{
	struct fault_said_list list;
	int err = fault_said_read_all(fault_site_of(r->fault), r->queue, r->daily->tenant,
				      &r->daily->arena, &list, r->e);
	for (size_t s = 0; s < FAULT_DAILY_SECTIONS && !err; s++) {
		struct fault_daily_groups *groups = &r->daily->groups[s];
		for (size_t i = 0; i < groups->count && !err; i++)
			err = daily_judge(r, &list, groups->list[i]);
	}
	return err;
}

/* ---- Whole reports --------------------------------------------------------------------------- */

/* Texts go to the report's arena. */
static int daily_keep(struct daily_reading *r, struct daily_known *known)
{
	struct slice *const texts[] = {&known->id, &known->context,
				       &known->statements.repeated.text,
				       &known->statements.expensive.text};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		*texts[i] = arena_copy(&r->daily->arena, *texts[i]);
		if (!texts[i]->data)
			return errbuf_set(r->e, ERR_LIMIT, "the report takes too much memory");
	}
	return 0;
}

static int daily_read_report(struct daily_reading *r, struct slice id, struct daily_known *known)
{
	struct fault_found found;
	struct errbuf e = {""};
	arena_reset(&r->arena);
	*known = (struct daily_known){.id = id,
				      .context = SLICE(""),
				      .statements.repeated.text = SLICE(""),
				      .statements.expensive.text = SLICE("")};
	int err = fault_finder_read(&r->finder, id, &r->arena, &found, &e);
	known->read = !err;
	if (!err)
		known->context = found.facts.texts[FAULT_CONTEXT];
	/* A timeline that takes too much memory is passed over. */
	if (!err && fault_statements_of(buf_slice(&found.body), &r->arena, &known->statements))
		known->statements = (struct fault_statements){.repeated.text = SLICE(""),
							      .expensive.text = SLICE("")};
	buf_release(&found.body);
	/* It was collected meanwhile, or is damaged: the others can be read. */
	if (err == ERR_NOT_FOUND || err == ERR_DAMAGED || err == ERR_VERSION || err == ERR_LIMIT)
		err = 0;
	return err ? errbuf_set(r->e, err, "%s", e.text) : daily_keep(r, known);
}

static int daily_check_time(const struct daily_reading *r)
{
	struct clock *clock = fault_site_of(r->fault)->clock;
	int64_t deadline_us = r->question->deadline_us;
	if (!deadline_us || clock->mono_us(clock) < deadline_us)
		return 0;
	return errbuf_set(r->e, ERR_TIMEOUT, "the report of the day could not be made in time");
}

/* Each report is read once. */
static int daily_know(struct daily_reading *r, struct slice id, const struct daily_known **to)
{
	for (size_t i = 0; i < r->known_count; i++) {
		*to = &r->known[i];
		if (slice_equal(r->known[i].id, id))
			return 0;
	}
	ASSERT(r->known_count < KNOWN_MAX);
	int err = daily_check_time(r);
	err = err ? err : daily_read_report(r, id, &r->known[r->known_count]);
	if (!err)
		*to = &r->known[r->known_count++];
	return err;
}

static bool daily_tops_have(const struct fault_daily_tops *tops, struct slice context)
{
	for (size_t i = 0; i < tops->count; i++)
		if (slice_equal(tops->list[i].context, context))
			return true;
	return false;
}

/* The list is in order, so the first report of a page is its highest. */
static int daily_read_tops(struct daily_reading *r, const struct fault_list *list,
			   struct fault_daily_tops *tops)
{
	int err = 0;
	tops->listed = list->count;
	while (!err && tops->looked_at < list->count && tops->looked_at < FAULT_DAILY_LOOKS_MAX &&
	       tops->count < FAULT_DAILY_PAGES_MAX) {
		const struct fault_top *top = &list->list[tops->looked_at++];
		const struct daily_known *known;
		err = daily_know(r, top->id, &known);
		if (err)
			return err;
		tops->unread += !known->read;
		if (known->read && !daily_tops_have(tops, known->context))
			tops->list[tops->count++] = (struct fault_daily_top){
				top->value, known->id, known->context, known->statements.repeated};
	}
	return 0;
}

static int daily_read_statements(struct daily_reading *r, const struct fault_daily_groups *groups)
{
	int err = 0;
	for (size_t i = 0; i < groups->count && i < FAULT_DAILY_STATEMENTS_MAX && !err; i++) {
		const struct daily_known *known;
		err = daily_know(r, groups->list[i]->tally->last.id, &known);
		if (!err)
			groups->list[i]->statement = known->statements.expensive;
	}
	return err;
}

/* ---- All of it ------------------------------------------------------------------------------- */

/* Groups are read before the summary, so it has no report less than they have. */
static int daily_read_groups(struct daily_reading *r)
{
	const unsigned facts =
		1u << FAULT_TALLY_EXCEPTION | 1u << FAULT_TALLY_LEVEL | 1u << FAULT_TALLY_CONTEXT;
	int err = fault_merges_read(fault_site_of(r->fault), r->queue, r->daily->tenant,
				    &r->daily->arena, &r->merges, r->e);
	err = err ? err : daily_read_sums(r, r->daily->day, facts, &r->daily->sums);
	if (err)
		return err;
	fault_daily_list(r->daily);
	err = daily_read_before(r);
	err = err ? err : daily_find_new(r);
	if (err)
		return err;
	fault_daily_arrange(r->daily);
	return daily_judge_all(r);
}

static int64_t daily_today(const struct daily_reading *r)
{
	return fault_day_of(clock_wall_ms(fault_site_of(r->fault)->clock) * 1000);
}

static int daily_read_view(struct daily_reading *r)
{
	struct fault_daily *daily = r->daily;
	struct fault_day_view *view;
	uint64_t grouped = 0;
	int err = fault_book_read_day(r->book, r->queue, daily->day, &view, r->e);
	if (err)
		return err;
	for (size_t s = FAULT_DAILY_EXCEPTIONS; s < FAULT_DAILY_SECTIONS; s++)
		grouped += daily->groups[s].reports;
	/* A day without reports that is over is never closed. */
	daily->closed = view->closed || (!view->total && daily->day < daily_today(r));
	daily->total = view->total;
	daily->rest = view->total > grouped ? view->total - grouped : 0;
	err = daily_read_tops(r, &view->longest, &daily->longest);
	err = err ? err : daily_read_tops(r, &view->most, &daily->most);
	fault_day_view_free(view);
	return err;
}

static int daily_read_total_before(struct daily_reading *r)
{
	struct fault_day_view *view;
	int err = fault_book_read_day(r->book, r->queue, r->daily->day - 1, &view, r->e);
	if (err)
		return err;
	r->daily->before = view->total;
	fault_day_view_free(view);
	return 0;
}

static int daily_read(struct daily_reading *r)
{
	int err = daily_read_groups(r);
	err = err ? err : daily_read_view(r);
	err = err ? err : daily_check_time(r);
	err = err ? err : daily_read_total_before(r);
	err = err ? err : daily_check_time(r);
	err = err ? err : daily_read_statements(r, &r->daily->groups[FAULT_DAILY_TIMEOUTS]);
	return err ? err : daily_read_statements(r, &r->daily->groups[FAULT_DAILY_SOFT_TIMEOUTS]);
}

int fault_daily_read(struct fault *fault, struct task_queue *queue,
		     const struct fault_daily_question *question, struct fault_daily *daily,
		     struct errbuf *e)
{
	struct daily_reading *r = mem_zalloc(sizeof(*r));
	*daily = (struct fault_daily){.tenant = question->tenant, .day = question->day};
	arena_init(&daily->arena, ARENA_MAX_BYTES);
	arena_init(&r->arena, REPORT_ARENA_MAX_BYTES);
	r->fault = fault;
	r->finder =
		(struct fault_finder){.fault = fault, .queue = queue, .tenant = question->tenant};
	r->book = fault_book_borrow(fault, question->tenant);
	r->queue = queue;
	r->question = question;
	r->daily = daily;
	r->e = e;
	int err = daily_read(r);
	fault_finder_release(&r->finder);
	fault_book_return(fault, r->book);
	arena_release(&r->arena);
	mem_free(r);
	return err;
}

void fault_daily_release(struct fault_daily *daily)
{
	fault_groups_release(&daily->sums);
	mem_free(daily->list);
	arena_release(&daily->arena);
	*daily = (struct fault_daily){0};
}
