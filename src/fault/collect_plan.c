#include "fault/collect_plan.h"

#include <stdlib.h>

#include "fault/said.h"
#include "fault/segment.h"
#include "store/wait.h"

enum {
	REPORT_BYTES = 512,   /* of a report beside its body, where all are compared */
	GROUPS_MAX = 1 << 20, /* of further ones nothing goes */
};

/* A group's reports. Weights are bytes of bodies, and what there is beside them. */
struct plan_group {
	struct hash128 hash;
	struct fault_order first;
	uint64_t weight; /* of those that do not go for their age */
	/* In the second walk: how many have been seen, and their weight. */
	uint64_t seen, seen_weight;
	bool has_bug;
};

struct plan_making {
	struct fault_plan *plan;
	struct fault_book *book;
	struct task_queue *queue;
	struct errbuf *e;
	const struct fault_collect_rules *rules;
	int64_t cut_us; /* what is older goes */
	int64_t deadline_us;
	struct book_positions positions;
	struct hash_table groups, bugs;
	uint64_t sealed_weight; /* of reports in the plan's runs */
	uint64_t level;         /* a group may weigh so much */
	int64_t day;            /* whose lists these are; INT64_MIN: none were read */
	bool any_old;           /* a sealed run has reports that are older than that */
	bool day_is_whole;
	struct hash_table listed;
	struct hash_table struck; /* arrivals */
	struct hash_table kept;   /* ids that have several arrivals, or a bug that was said later */
};

/* ---- Groups that have bugs ------------------------------------------------------------------- */

/* A cell that cannot be read may say that the group has one. */
static int collect_plan_take_said(const struct store_cell *cell, void *owner)
{
	struct fault_said said;
	bool added;
	if (fault_said_decode(cell->value, &said) || said.bug_count)
		hash_table_add(owner, collect_group_hash(cell->column.part[0]),
			       sizeof(struct hash128), &added);
	return 0;
}

/* A bug of a group is one of all that it stands for. */
static int collect_plan_add_merged(const struct fault_site *site, struct task_queue *queue,
				   struct slice tenant, struct hash_table *groups, struct errbuf *e)
{
	struct arena arena;
	struct fault_merges merges;
	bool added;
	arena_init(&arena, FAULT_MERGES_MEMORY_BYTES);
	int err = fault_merges_read(site, queue, tenant, &arena, &merges, e);
	if (!err && merges.unreadable)
		err = errbuf_set(e, merges.unreadable,
				 "which groups are merged (table fault_merges) cannot be read");
	for (size_t i = 0; i < merges.count && !err; i++)
		if (hash_table_find(groups, collect_group_hash(merges.list[i].root)))
			hash_table_add(groups, collect_group_hash(merges.list[i].group),
				       sizeof(struct hash128), &added);
	arena_release(&arena);
	return err;
}

int collect_read_bugs(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		      struct hash_table *groups, struct errbuf *e)
{
	const struct store_parts key = {{tenant}};
	int err = store_row_wait(site->store, queue, clock_wall_ms(site->clock), TABLE_FAULT_SAID,
				 &key, collect_plan_take_said, groups, e);
	return err ? err : collect_plan_add_merged(site, queue, tenant, groups, e);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static int collect_plan_compare_place(struct fault_place a, struct fault_place b)
{
	if (a.writer != b.writer)
		return a.writer < b.writer ? -1 : 1;
	return (a.sequence > b.sequence) - (a.sequence < b.sequence);
}

struct collect_plan_run *collect_plan_find_run(const struct fault_plan *plan,
					       struct fault_place place)
{
	size_t low = 0, high = plan->run_count;
	place.sequence &= ~(uint64_t)(FAULT_RUN_REPORTS - 1);
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (collect_plan_compare_place(plan->runs[middle].place, place) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	bool there = low < plan->run_count && fault_place_equal(plan->runs[low].place, place);
	return there ? &plan->runs[low] : NULL;
}

/* All that are sealed. Of one that was sealed again the earlier segment is to go first. */
static int collect_plan_take_run(const struct store_cell *cell, void *owner)
{
	struct plan_making *making = owner;
	struct fault_plan *plan = making->plan;
	struct fault_run_cell run;
	const struct fault_place place = {fault_part_number(cell->column.part[0]),
					  fault_part_number(cell->column.part[1])
						  << FAULT_RUN_BITS};
	if (fault_run_cell_decode(cell->value, &run) || collect_plan_find_run(plan, place))
		return 0;
	GROW(plan->runs, plan->run_room, plan->run_count + 1);
	plan->runs[plan->run_count++] =
		(struct collect_plan_run){.place = place,
					  .name = run.name,
					  .reports = run.reports,
					  .may_go = run.cleared && !run.rewritten};
	plan->view.sealed_bytes += run.bytes;
	making->any_old = making->any_old || (run.reports && run.first_us < making->cut_us);
	return 0;
}

static int collect_plan_read_runs(struct plan_making *making)
{
	struct fault_parts key;
	const struct fault_site *site = making->book->site;
	fault_runs_key(&key, making->book->tenant);
	return store_row_wait(site->store, making->queue, clock_wall_ms(site->clock),
			      TABLE_REPORT_RUNS, &key.parts, collect_plan_take_run, making,
			      making->e);
}

static void collect_plan_set(uint8_t **bits, uint64_t sequence)
{
	size_t bit = sequence & (FAULT_RUN_REPORTS - 1);
	if (!*bits)
		*bits = mem_zalloc((FAULT_RUN_REPORTS + 7) / 8);
	(*bits)[bit / 8] |= (uint8_t)(1u << bit % 8);
}

/* Those of runs that are not sealed yet wait. */
static int collect_plan_take_erased(const struct store_cell *cell, void *owner)
{
	struct plan_making *making = owner;
	const struct fault_place place = {fault_part_number(cell->column.part[0]),
					  fault_part_number(cell->column.part[1])};
	struct collect_plan_run *run = collect_plan_find_run(making->plan, place);
	if (!run || !run->may_go || !fault_erased_is_done(cell))
		return 0;
	collect_plan_set(&run->erased, place.sequence);
	run->erased_count++;
	return 0;
}

static int collect_plan_read_erased(struct plan_making *making)
{
	const struct fault_site *site = making->book->site;
	const struct store_parts key = {{making->book->tenant}};
	return store_row_wait(site->store, making->queue, clock_wall_ms(site->clock),
			      TABLE_FAULT_ERASED, &key, collect_plan_take_erased, making,
			      making->e);
}

/* ---- Ids that have several arrivals, or a bug ------------------------------------------------ */

struct plan_id {
	struct plan_making *making;
	struct buf id;
	struct fault_order first;
	struct fault_place places[FAULT_LISTINGS_MAX];
	size_t count;
};

static void collect_plan_end_id(struct plan_id *of)
{
	struct plan_making *making = of->making;
	bool added;
	if (of->count > 1)
		hash_table_add(&making->kept, fault_id_hash(buf_slice(&of->id)),
			       sizeof(struct hash128), &added);
	for (size_t i = 0; i < of->count && of->count > 1; i++)
		if (!fault_place_equal(of->places[i], of->first.place))
			hash_table_add(&making->struck, fault_place_hash(of->places[i]),
				       sizeof(struct hash128), &added);
	of->count = 0;
}

/* The first of an id that the book has is the report. */
static int collect_plan_take_entry(const struct store_cell *cell, void *owner)
{
	struct plan_id *of = owner;
	struct slice id = cell->column.part[0];
	struct fault_listing listing;
	struct fault_oops_bug bug;
	bool added;
	if (!slice_equal(id, buf_slice(&of->id))) {
		collect_plan_end_id(of);
		buf_clear(&of->id);
		buf_append(&of->id, id.data, id.len);
	}
	if (fault_oops_bug_decode(cell, &bug) && bug.bug.len)
		hash_table_add(&of->making->kept, fault_id_hash(id), sizeof(struct hash128),
			       &added);
	if (!fault_listing_decode(cell, &listing) || of->count == FAULT_LISTINGS_MAX ||
	    !book_has(&of->making->positions, listing.order.place))
		return 0;
	if (!of->count || fault_order_compare(&listing.order, &of->first) < 0)
		of->first = listing.order;
	of->places[of->count++] = listing.order.place;
	return 0;
}

static int collect_plan_read_ids(struct plan_making *making)
{
	const struct fault_site *site = making->book->site;
	struct plan_id *of = mem_zalloc(sizeof(*of));
	int err = 0;
	of->making = making;
	buf_init(&of->id, FAULT_ID_MAX_BYTES);
	for (uint64_t shard = 0; shard < FAULT_OOPS_SHARDS && !err; shard++) {
		struct fault_parts key;
		fault_oops_shard_key(&key, making->book->tenant, shard);
		err = store_row_wait(site->store, making->queue, clock_wall_ms(site->clock),
				     TABLE_OOPS, &key.parts, collect_plan_take_entry, of,
				     making->e);
		collect_plan_end_id(of);
		buf_clear(&of->id);
	}
	buf_release(&of->id);
	mem_free(of);
	return err;
}

/* ---- Walks ----------------------------------------------------------------------------------- */

static uint64_t collect_plan_weight(const struct book_arrived *arrived)
{
	return arrived->arrival.body_bytes + REPORT_BYTES;
}

/* From the newest report on. */
static int collect_plan_walk(struct plan_making *making,
			     int (*see)(struct plan_making *making,
					const struct book_arrived *arrived))
{
	const struct fault_cursor_filter filter = {.oldest_us = INT64_MIN,
						   .deadline_us = making->deadline_us};
	const struct book_arrived *arrived = NULL;
	struct fault_cursor *cursor = NULL;
	int err = fault_cursor_new(making->book, &making->positions, making->queue, INT64_MAX, true,
				   &filter, &cursor, making->e);
	while (!err) {
		err = fault_cursor_next(cursor, &arrived, making->e);
		if (err || !arrived)
			break;
		err = see(making, arrived);
	}
	fault_cursor_free(cursor);
	return err;
}

static struct hash128 collect_plan_group_of(const struct book_arrived *arrived)
{
	return collect_group_hash(arrived->arrival.facts.texts[FAULT_GROUP]);
}

/* An arrival that is not the report of its id counts nowhere. */
static bool collect_plan_is_struck(const struct plan_making *making,
				   const struct book_arrived *arrived)
{
	return hash_table_find(&making->struck, fault_place_hash(arrived->place)) != NULL;
}

static int collect_plan_see_groups(struct plan_making *making, const struct book_arrived *arrived)
{
	bool added;
	if (collect_plan_is_struck(making, arrived))
		return 0;
	making->plan->view.all_reports++;
	if (making->groups.count >= GROUPS_MAX &&
	    !hash_table_find(&making->groups, collect_plan_group_of(arrived)))
		return 0;
	struct plan_group *group = hash_table_add(&making->groups, collect_plan_group_of(arrived),
						  sizeof(*group), &added);
	if (added)
		group->has_bug = hash_table_find(&making->bugs, group->hash) != NULL;
	group->first = book_order_of(arrived); /* the last that comes is the first */
	if (!collect_plan_find_run(making->plan, arrived->place))
		return 0;
	uint64_t weight = collect_plan_weight(arrived);
	making->sealed_weight += weight;
	if (arrived->arrival.date_us >= making->cut_us)
		group->weight += weight;
	return 0;
}

static void collect_plan_add_listed(struct plan_making *making, const struct fault_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct slice id = list->list[i].id;
		bool added;
		hash_table_add(&making->listed, fault_id_hash(id), sizeof(struct hash128), &added);
	}
}

/* Ids of the lists of a day. Nothing goes of a day that is not over, or that waits for a recount:
 * some of it cannot be read, or it was counted before there were groups. */
static int collect_plan_read_lists(struct plan_making *making, int64_t number)
{
	struct fault_book *book = making->book;
	struct fault_day *day = NULL;
	pthread_mutex_lock(&book->lock);
	int err = book_catch_up(book, making->queue, making->e);
	bool was_there = book_find_day(book, number);
	err = err ? err : book_load_day(book, making->queue, number, &day, making->e);
	err = err ? err : book_load_groups(book, making->queue, day, making->e);
	if (!err) {
		hash_table_release(&making->listed);
		making->day = number;
		making->day_is_whole = day->closed && !day->unreadable &&
				       !fault_day_lacks_groups(day) &&
				       !book_days_have(&book->recount, number);
		collect_plan_add_listed(making, &day->longest);
		collect_plan_add_listed(making, &day->most);
		if (!was_there && day->closed && !fault_day_is_dirty(day))
			book_forget_day(book, number);
	}
	pthread_mutex_unlock(&book->lock);
	return err;
}

static void collect_plan_add_gone(struct plan_making *making, struct collect_plan_run *run,
				  const struct book_arrived *arrived)
{
	struct fault_plan_view *view = &making->plan->view;
	collect_plan_set(&run->gone, arrived->place.sequence);
	run->count++;
	run->weight += collect_plan_weight(arrived);
	view->reports++;
	run->newest_day = larger_of(run->newest_day, fault_day_of(arrived->arrival.date_us));
}

/* Whether it has to go, by age or by the weight of its group. */
static bool collect_plan_is_over(const struct plan_making *making, const struct plan_group *group,
				 const struct book_arrived *arrived)
{
	return arrived->arrival.date_us < making->cut_us || group->seen_weight > making->level;
}

static int collect_plan_see_gone(struct plan_making *making, const struct book_arrived *arrived)
{
	const struct fault_arrival *arrival = &arrived->arrival;
	struct plan_group *group = hash_table_find(&making->groups, collect_plan_group_of(arrived));
	struct collect_plan_run *run = collect_plan_find_run(making->plan, arrived->place);
	struct fault_order order = book_order_of(arrived);
	int64_t day = fault_day_of(arrival->date_us);
	int err = 0;
	if (!group || collect_plan_is_struck(making, arrived))
		return 0;
	group->seen++;
	group->seen_weight += run ? collect_plan_weight(arrived) : 0;
	if (!run || !run->may_go || !collect_plan_is_over(making, group, arrived) ||
	    day >= making->plan->day_end || group->seen <= making->rules->newest ||
	    group->has_bug || fault_order_compare(&order, &group->first) == 0)
		return 0;
	if (day != making->day)
		err = collect_plan_read_lists(making, day);
	struct hash128 id = fault_id_hash(arrival->id);
	if (!err && making->day_is_whole && !hash_table_find(&making->listed, id) &&
	    !hash_table_find(&making->kept, id))
		collect_plan_add_gone(making, run, arrived);
	return err;
}

/* A run is sealed again only if enough of it goes, or something that has to. */
static void collect_plan_leave_small(struct plan_making *making)
{
	struct fault_plan_view *view = &making->plan->view;
	double bytes = making->sealed_weight
			       ? (double)view->sealed_bytes / (double)making->sealed_weight
			       : 0;
	for (size_t i = 0; i < making->plan->run_count; i++) {
		struct collect_plan_run *run = &making->plan->runs[i];
		bool enough = collect_plan_is_enough(run->count, run->reports);
		if (!enough && !run->erased_count) {
			view->reports -= run->count;
			mem_free(run->gone);
			run->gone = NULL;
			run->count = 0;
			continue;
		}
		view->runs++;
		view->newest_day = larger_of(view->newest_day, run->newest_day);
		view->bytes += (uint64_t)((double)run->weight * bytes);
	}
}

/* ---- By bytes -------------------------------------------------------------------------------- */

static int collect_plan_compare_weights(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* The level to which the heaviest groups go down, so that all of them together weigh no more than
 * `room`. */
static uint64_t collect_plan_level(const struct hash_table *groups, uint64_t room)
{
	uint64_t *weights = mem_alloc_array(groups->count, sizeof(*weights)), level = UINT64_MAX;
	size_t count = 0;
	for (size_t at = 0; at < groups->slot_count; at++) {
		const struct plan_group *group = hash_table_at(groups, at);
		if (group)
			weights[count++] = group->weight;
	}
	qsort(weights, count, sizeof(*weights), collect_plan_compare_weights);
	for (size_t i = 0; i < count && level == UINT64_MAX; i++) {
		uint64_t share = room / (count - i);
		if (weights[i] > share)
			level = share;
		else
			room -= weights[i];
	}
	mem_free(weights);
	return level;
}

static void collect_plan_set_level(struct plan_making *making)
{
	uint64_t max = making->rules->bytes_max, sealed = making->plan->view.sealed_bytes;
	making->level = UINT64_MAX;
	if (!max || sealed <= max)
		return;
	double room = (double)max / (double)sealed * (double)making->sealed_weight;
	making->level = collect_plan_level(&making->groups, (uint64_t)room);
}

/* ---- A plan ---------------------------------------------------------------------------------- */

static int collect_plan_begin(struct plan_making *making)
{
	struct fault_book *book = making->book;
	struct clock *clock = book->site->clock;
	pthread_mutex_lock(&book->lock);
	if (!book->owned)
		book->restored = false; /* days may have been closed since */
	int err = book_catch_up(book, making->queue, making->e);
	if (!err)
		book_positions_copy(&making->positions, &book->positions);
	making->plan->tenure = book->version.tenure;
	making->plan->recounts = book->recounts;
	making->plan->day_end = fault_day_of(clock->wall_us(clock));
	for (size_t i = 0; i < book->open.count; i++)
		making->plan->day_end = smaller_of(making->plan->day_end, book->open.list[i].day);
	pthread_mutex_unlock(&book->lock);
	return err;
}

/* What goes by the rules. */
static int collect_plan_choose(struct plan_making *making)
{
	int err = collect_read_bugs(making->book->site, making->queue, making->book->tenant,
				    &making->bugs, making->e);
	err = err ? err : collect_plan_read_ids(making);
	err = err ? err : collect_plan_walk(making, collect_plan_see_groups);
	if (err)
		return err;
	collect_plan_set_level(making);
	return collect_plan_walk(making, collect_plan_see_gone);
}

static int collect_plan_make(struct plan_making *making)
{
	int err = collect_plan_begin(making);
	err = err ? err : collect_plan_read_runs(making);
	err = err ? err : collect_plan_read_erased(making);
	bool full = making->rules->bytes_max &&
		    making->plan->view.sealed_bytes > making->rules->bytes_max;
	if (!err && (making->rules->counts || making->any_old || full))
		err = collect_plan_choose(making);
	collect_plan_leave_small(making);
	return err;
}

int fault_plan_new(struct fault_book *book, struct task_queue *queue,
		   const struct fault_collect_rules *rules, int64_t deadline_us,
		   struct fault_plan **to, struct errbuf *e)
{
	struct clock *clock = book->site->clock;
	struct plan_making making = {.plan = mem_zalloc(sizeof(*making.plan)),
				     .book = book,
				     .queue = queue,
				     .e = e,
				     .rules = rules,
				     .cut_us = INT64_MIN,
				     .deadline_us = deadline_us,
				     .day = INT64_MIN};
	making.plan->due_ms = BOOK_NOT_DUE;
	if (rules->keep_us)
		making.cut_us = clock_age_ms(clock) * 1000 - rules->keep_us;
	int err = clock_is_doubted(clock)
			  ? errbuf_set(e, ERR_RETRY,
				       "nothing goes while the clock is doubted; `granary clock "
				       "accept` says that it is right")
			  : collect_plan_make(&making);
	book_positions_release(&making.positions);
	hash_table_release(&making.groups);
	hash_table_release(&making.bugs);
	hash_table_release(&making.listed);
	hash_table_release(&making.struck);
	hash_table_release(&making.kept);
	*to = making.plan;
	if (err) {
		fault_plan_free(making.plan);
		*to = NULL;
	}
	return err;
}

struct fault_plan_view fault_plan_view(const struct fault_plan *plan)
{
	return plan->view;
}

void fault_plan_free(struct fault_plan *plan)
{
	if (!plan)
		return;
	for (size_t i = 0; i < plan->run_count; i++) {
		mem_free(plan->runs[i].gone);
		mem_free(plan->runs[i].erased);
	}
	mem_free(plan->runs);
	mem_free(plan);
}
