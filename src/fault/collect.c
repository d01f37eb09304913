/* A plan is carried out by the owner of the tenant, run by run. Before the first run the checkpoint
 * has from which days reports go; between it and the first run lies the longest query.
 *
 * Nothing of a run goes before the segment without its reports is durable and has been read back:
 * then their entries go, and at once the cell names that segment. Their files go with the segment
 * that was (seal.c). If a process dies between entries and cell the next plan may choose otherwise,
 * so it puts back entries of reports that stay. */
#include "base/log.h"
#include "base/stats.h"
#include "fault/collect_plan.h"
#include "fault/minutes.h"
#include "fault/seal_run.h"
#include "store/wait.h"

enum {
	LISTINGS_ARENA_MAX_BYTES = 64 << 20,
	ENTRIES_MAX = 500, /* that one write puts back */
	WRITE_MAX_BYTES = 4 << 20,
	READ_MAX_BYTES = 1 << 20,
};

/* ---- Handing over ---------------------------------------------------------------------------- */

int fault_book_collect(struct fault_book *book, struct fault_plan *plan, struct errbuf *e)
{
	int err = 0;
	ASSERT(plan->due_ms == BOOK_NOT_DUE);
	pthread_mutex_lock(&book->lock);
	if (!book->owned)
		err = errbuf_set(e, ERR_INVALID,
				 "this process does not count the reports of tenant " SHOWN,
				 SHOWN_OF(book->tenant));
	else if (book->plan)
		err = errbuf_set(e, ERR_EXISTS,
				 "a collection of tenant " SHOWN " is at work already",
				 SHOWN_OF(book->tenant));
	else if (plan->tenure != book->version.tenure || plan->recounts != book->recounts)
		err = errbuf_set(e, ERR_RETRY,
				 "reports of tenant " SHOWN
				 " were recounted while the server looked for what goes; try again",
				 SHOWN_OF(book->tenant));
	if (!err)
		book->plan = plan;
	pthread_mutex_unlock(&book->lock);
	if (!err)
		fault_book_touch(book);
	return err;
}

void book_begin_collection(struct fault_book *book)
{
	struct fault_plan *plan = book->plan;
	if (!plan || plan->tenure != book->version.tenure || plan->due_ms != BOOK_NOT_DUE ||
	    book->recount.count)
		return;
	/* Minutes of these days that were not counted yet need their reports. */
	if (book->minutes && book->minutes < (plan->view.newest_day + 1) * FAULT_MINUTES_A_DAY)
		return;
	book->collected_day = larger_of(book->collected_day, plan->view.newest_day + 1);
	book->changed = true;
}

bool fault_book_collects(struct fault_book *book)
{
	pthread_mutex_lock(&book->lock);
	bool collects = book->plan;
	pthread_mutex_unlock(&book->lock);
	return collects;
}

void book_note_recounted(struct fault_book *book, int64_t day)
{
	book->recounts++;
	if (book->plan && day <= book->plan->view.newest_day)
		book->plan->tenure = 0;
}

void book_note_collection(struct fault_book *book, int64_t due_ms)
{
	struct fault_plan *plan = book->plan;
	if (plan && plan->tenure == book->version.tenure && plan->due_ms == BOOK_NOT_DUE &&
	    book->collected_day > plan->view.newest_day)
		plan->due_ms = due_ms;
}

/* ---- A run ----------------------------------------------------------------------------------- */

struct collect_work {
	struct fault_book *book;
	struct task_queue *queue;
	struct errbuf *e;
	int64_t until_ms, stamp_us;
	struct fault_sealed_site site;
	const struct collect_plan_run *planned;
	struct fault_run *run;
	bool *gone;   /* of each report of the segment */
	bool *erased; /* likewise: it goes in any case */
};

/* The run as it is now. ERR_NOT_FOUND: it is not the one that was planned for. One that was sealed
 * again by a write of which nobody knew is noted. */
static int collect_find_run(struct collect_work *w, struct fault_run_cell *cell)
{
	struct fault_run_question question;
	struct store_read *read = store_read_new(w->book->site->store, READ_MAX_BYTES);
	read->now_ms = clock_wall_ms(w->book->site->clock);
	fault_run_ask(&question, read, w->book->tenant, w->planned->place);
	int err = store_read_wait(read, w->queue);
	if (err)
		errbuf_set(w->e, err, "%s", store_read_sentence(read, err));
	err = err ? err : fault_run_answer(&question, cell);
	bool due = book_is_due(w->book, w->planned->place);
	if (!err && cell->rewritten && !due)
		book_note_sealed(w->book, w->planned->place, cell);
	if (!err && (due || !cell->cleared || cell->rewritten || cell->name != w->planned->name))
		err = ERR_NOT_FOUND;
	store_read_free(read);
	return err;
}

/* Those of groups that have a bug by now stay, but for what is erased. */
static int collect_choose_again(struct collect_work *w)
{
	const struct fault_segment *segment = &w->run->segment;
	struct hash_table bugs = {NULL, 0, 0, 0};
	int err = collect_read_bugs(w->book->site, w->queue, w->book->tenant, &bugs, w->e);
	for (size_t i = 0; i < segment->count && !err; i++) {
		struct slice group = segment->reports[i].arrival.facts.texts[FAULT_GROUP];
		w->gone[i] = w->erased[i] ||
			     (w->gone[i] && !hash_table_find(&bugs, collect_group_hash(group)));
	}
	hash_table_release(&bugs);
	return err;
}

static int collect_choose(struct collect_work *w)
{
	const struct fault_segment *segment = &w->run->segment;
	for (size_t i = 0; i < segment->count; i++) {
		uint64_t sequence = segment->reports[i].sequence;
		w->gone[i] = collect_plan_has(w->planned->gone, sequence);
		w->erased[i] = collect_plan_has(w->planned->erased, sequence);
	}
	return collect_choose_again(w);
}

/* The name of an attribute begins so. It may also stand within a text: then the report stays, too.
 */
static bool collect_has_bug(struct slice body)
{
	static const char name[] = "\"bug.";
	return memmem(body.data, body.len, name, sizeof(name) - 1) != NULL;
}

static int collect_keep_bugs_of(struct collect_work *w, size_t number, struct buf *bodies)
{
	const struct fault_segment *segment = &w->run->segment;
	const struct fault_block *block = &segment->blocks[number];
	const uint32_t *places = &segment->order[block->first];
	bool any = false;
	for (uint32_t i = 0; i < block->count; i++)
		any = any || w->gone[places[i]];
	int err = any ? fault_run_read_block(&w->site, w->run, number, bodies, w->e) : 0;
	for (uint32_t i = 0; i < block->count && any && !err; i++) {
		const struct fault_sealed *report = &segment->reports[places[i]];
		if (w->gone[places[i]] && collect_has_bug(fault_sealed_body(report, bodies)))
			w->gone[places[i]] = w->erased[places[i]];
	}
	return err;
}

static int collect_keep_bugs(struct collect_work *w)
{
	struct buf bodies;
	int err = 0;
	buf_init(&bodies, FAULT_BODY_MAX_BYTES);
	for (size_t b = 0; b < w->run->segment.block_count && !err; b++)
		err = collect_keep_bugs_of(w, b, &bodies);
	buf_release(&bodies);
	return err;
}

/* Whether people have said which bug it is. */
static bool collect_is_said(const struct book_listings *listings)
{
	for (size_t i = 0; i < listings->bug_count; i++)
		if (listings->bugs[i].bug.len)
			return true;
	return false;
}

/* An arrival that is erased may have been struck for another one of its id, which stays. */
static bool collect_is_last(const struct book_listings *listings)
{
	bool is_erased = false;
	for (size_t i = 0; i < listings->count; i++)
		is_erased = is_erased || fault_listing_is_erased(&listings->list[i]);
	return is_erased || listings->count <= 1;
}

/* What was said of it later goes, too: just that, by its own stamps, and nothing that is said
 * meanwhile. */
static int collect_delete_entry(struct collect_work *w, const struct fault_sealed *report,
				const struct book_listings *listings, struct store_write *write)
{
	struct fault_parts key, column;
	struct slice id = report->arrival.id;
	const struct fault_place place = {w->run->place.writer, report->sequence};
	fault_oops_key(&key, w->book->tenant, id);
	fault_oops_column(&column, id, place);
	int err = store_cell_delete(write, TABLE_OOPS, &key.parts, &column.parts, w->stamp_us);
	for (size_t i = 0; i < listings->bug_count && collect_is_last(listings) && !err; i++) {
		fault_oops_bug_column(&column, id, listings->bugs[i].tracker);
		err = store_cell_delete(write, TABLE_OOPS, &key.parts, &column.parts,
					listings->bugs[i].stamp_us);
	}
	return err;
}

/* It is a function of the arrival, as whoever took it wrote it. */
static int collect_put_entry(struct collect_work *w, const struct fault_sealed *report,
			     struct store_write *write)
{
	struct fault_parts key, column;
	uint8_t value[FAULT_LISTING_BYTES];
	struct slice id = report->arrival.id;
	const struct fault_listing listing = {
		{report->arrival.date_us, {w->run->place.writer, report->sequence}},
		report->arrival.digest};
	fault_oops_key(&key, w->book->tenant, id);
	fault_oops_column(&column, id, listing.order.place);
	fault_listing_encode(&listing, value);
	return store_cell_put(write, TABLE_OOPS, &key.parts, &column.parts,
			      (struct slice){(char *)value, sizeof(value)}, w->stamp_us, 0);
}

/* Writes the entries of all marked reports, some hundred in one write. */
static int collect_put_entries(struct collect_work *w, const bool *marked)
{
	const struct fault_segment *segment = &w->run->segment;
	int err = 0;
	for (size_t at = 0; at < segment->count && !err;) {
		struct store_write *write = store_write_new(w->book->site->store, WRITE_MAX_BYTES);
		size_t count = 0;
		for (; at < segment->count && count < ENTRIES_MAX && !err; at++) {
			if (!marked[at])
				continue;
			err = collect_put_entry(w, &segment->reports[at], write);
			count++;
		}
		if (err || count)
			err = seal_send_write(w->book, w->queue, w->until_ms, w->stamp_us, write,
					      err, w->e);
		else
			store_write_free(write);
	}
	return err;
}

static bool collect_is_listed(const struct collect_work *w, const struct fault_sealed *report,
			      const struct book_listings *listings)
{
	const struct fault_place place = {w->run->place.writer, report->sequence};
	for (size_t i = 0; i < listings->count; i++)
		if (fault_place_equal(listings->list[i].order.place, place))
			return true;
	return false;
}

/* Where an id has several arrivals, which of them counts depends on all of them: they stay, as does
 * what a bug was said of. What stays, and has lost its entry, is listed again. */
static int collect_look_at_entries(struct collect_work *w)
{
	const struct fault_segment *segment = &w->run->segment;
	size_t count = segment->count;
	struct slice *ids = mem_alloc_array(count + 1, sizeof(*ids));
	struct book_listings *listings = mem_alloc_array(count + 1, sizeof(*listings));
	bool *lost = mem_zalloc((count + 1) * sizeof(*lost));
	struct arena arena;
	arena_init(&arena, LISTINGS_ARENA_MAX_BYTES);
	for (size_t i = 0; i < count; i++)
		ids[i] = segment->reports[i].arrival.id;
	int err = count ? book_read_listings(w->book, w->queue, ids, count, &arena, listings, w->e)
			: 0;
	for (size_t i = 0; i < count && !err; i++) {
		w->gone[i] = w->erased[i] || (w->gone[i] && listings[i].count <= 1 &&
					      !collect_is_said(&listings[i]));
		lost[i] = !w->gone[i] && !collect_is_listed(w, &segment->reports[i], &listings[i]);
	}
	err = err ? err : collect_put_entries(w, lost);
	arena_release(&arena);
	mem_free(lost);
	mem_free(listings);
	mem_free(ids);
	return err;
}

static size_t collect_count(const struct collect_work *w)
{
	size_t count = 0;
	for (size_t i = 0; i < w->run->segment.count; i++)
		count += w->gone[i];
	return count;
}

static size_t collect_count_erased(const struct collect_work *w)
{
	size_t count = 0;
	for (size_t i = 0; w->erased && i < w->run->segment.count; i++)
		count += w->erased[i];
	return count;
}

static bool collect_is_enough(const struct collect_work *w, size_t count)
{
	return collect_count_erased(w) || collect_plan_is_enough(count, w->run->segment.count);
}

static int collect_read_run(struct collect_work *w, const struct fault_run_cell *cell)
{
	w->run = fault_run_new(w->planned->place, cell);
	int err = fault_run_read_directory(&w->site, w->run, w->e);
	if (err)
		return err;
	w->gone = mem_zalloc(w->run->segment.count + 1);
	w->erased = mem_zalloc(w->run->segment.count + 1);
	err = collect_choose(w);
	err = err ? err : collect_keep_bugs(w);
	return err ? err : collect_look_at_entries(w);
}

static int collect_delete_entries(struct collect_work *w, struct store_write *write)
{
	const struct fault_segment *segment = &w->run->segment;
	const size_t gone = collect_count(w);
	struct slice *ids = mem_alloc_array(gone + 1, sizeof(*ids));
	struct book_listings *listings = mem_alloc_array(gone + 1, sizeof(*listings));
	struct arena arena;
	size_t count = 0;
	arena_init(&arena, LISTINGS_ARENA_MAX_BYTES);
	for (size_t i = 0; i < segment->count; i++)
		if (w->gone[i])
			ids[count++] = segment->reports[i].arrival.id;
	int err = count ? book_read_listings(w->book, w->queue, ids, count, &arena, listings, w->e)
			: 0;
	for (size_t i = 0, at = 0; i < segment->count && !err; i++) {
		if (!w->gone[i])
			continue;
		err = !w->erased[i] && collect_is_said(&listings[at]) ? ERR_NOT_FOUND : 0;
		if (!err)
			err = collect_delete_entry(w, &segment->reports[i], &listings[at], write);
		at++;
	}
	arena_release(&arena);
	mem_free(listings);
	mem_free(ids);
	return err;
}

/* A group, or a report, may have been given a bug meanwhile: then the run stays until the next
 * plan. Entries and cell are one write, and, where the store has atomic stages, one step. */
static int collect_before_cell(void *owner, struct store_write *write)
{
	struct collect_work *w = owner;
	size_t count = collect_count(w);
	int err = collect_choose_again(w);
	if (!err && collect_count(w) != count)
		err = ERR_NOT_FOUND;
	return err ? err : collect_delete_entries(w, write);
}

/* *cell: of the run without them; *count: how many went, 0: it stays as it is. */
static int collect_run(struct collect_work *w, struct fault_run_cell *cell, size_t *count)
{
	int err = collect_find_run(w, cell);
	err = err ? err : collect_read_run(w, cell);
	*count = err ? 0 : collect_count(w);
	if (err || !collect_is_enough(w, *count)) {
		*count = 0;
		return err;
	}
	const struct seal_run run = {.place = w->run->place,
				     .from = w->run,
				     .gone = w->gone,
				     .before_cell = collect_before_cell,
				     .owner = w};
	return seal_run(w->book, w->queue, &run, w->until_ms, cell, w->e);
}

/* What is erased is not in the run any more. */
static int collect_forget_erased(struct collect_work *w)
{
	const struct store_parts key = {{w->book->tenant}};
	struct store_write *write = store_write_new(w->book->site->store, WRITE_MAX_BYTES);
	int err = 0;
	for (uint64_t i = 0; i < FAULT_RUN_REPORTS && !err; i++) {
		struct fault_parts column;
		const struct fault_place place = {w->planned->place.writer,
						  w->planned->place.sequence + i};
		fault_erased_column(&column, place);
		if (collect_plan_has(w->planned->erased, i))
			err = store_cell_delete(write, TABLE_FAULT_ERASED, &key, &column.parts,
						w->stamp_us);
	}
	return seal_send_write(w->book, w->queue, w->until_ms, w->stamp_us, write, err, w->e);
}

/* ---- The plan -------------------------------------------------------------------------------- */

static void collect_drop(struct fault_book *book)
{
	pthread_mutex_lock(&book->lock);
	fault_plan_free(book->plan);
	book->plan = NULL;
	pthread_mutex_unlock(&book->lock);
}

static void collect_end(struct fault_book *book, const struct fault_plan *plan)
{
	if (plan->done)
		log_info("faults: %llu reports of tenant " SHOWN " were collected",
			 (unsigned long long)plan->done, SHOWN_OF(book->tenant));
	if (plan->erased)
		log_info("faults: %llu reports of tenant " SHOWN
			 " that were removed for their user are in no run any more",
			 (unsigned long long)plan->erased, SHOWN_OF(book->tenant));
	collect_drop(book);
}

/* One run of the plan. */
static int collect_step(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
			struct fault_plan *plan, struct errbuf *e)
{
	struct collect_plan_run *planned = &plan->runs[plan->at];
	struct fault_run_cell cell;
	size_t count = 0, erased = 0;
	if (!planned->gone && !planned->erased) {
		plan->at++;
		return 0;
	}
	struct collect_work w = {.book = book,
				 .queue = queue,
				 .e = e,
				 .until_ms = until_ms,
				 .stamp_us = store_stamp(book->site->store),
				 .site = {book->site, book->tenant, queue},
				 .planned = planned};
	int err = collect_run(&w, &cell, &count);
	if (count)
		erased = collect_count_erased(&w);
	fault_run_free(w.run);
	mem_free(w.gone);
	mem_free(w.erased);
	if (clock_wall_ms(book->site->clock) >= until_ms)
		return errbuf_set(e, ERR_TIMEOUT, "the time of this owner is over");
	bool whole = !err;
	if (err == ERR_DAMAGED || err == ERR_VERSION || err == ERR_LIMIT || err == ERR_NOT_FOUND) {
		if (err != ERR_NOT_FOUND)
			log_warn("faults: of a run of tenant " SHOWN
				 " no reports are collected: %s; the next collection tries again",
				 SHOWN_OF(book->tenant), e->text[0] ? e->text : err_text(err));
		e->text[0] = 0;
		err = 0;
		count = 0;
	}
	if (err)
		return err;
	if (count)
		book_note_sealed(book, planned->place, &cell);
	err = whole && planned->erased ? collect_forget_erased(&w) : 0;
	stat_add(STAT_fault_collected, (int64_t)(count - erased));
	plan->done += count - erased;
	plan->erased += erased;
	plan->at++;
	return err;
}

int book_collect(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
		 int64_t busy_ms, bool *more, struct errbuf *e)
{
	int64_t now_ms = clock_mono_ms(book->site->clock);
	pthread_mutex_lock(&book->lock);
	struct fault_plan *plan = book->plan;
	bool stale = plan && (!book->owned || plan->tenure != book->version.tenure);
	bool due = plan && plan->due_ms <= now_ms && !clock_is_doubted(book->site->clock);
	pthread_mutex_unlock(&book->lock);
	*more = false;
	if (stale) {
		log_warn("faults: a collection of tenant " SHOWN
			 " ends early: a day was recounted, or the owner has changed; the next "
			 "collection goes on, or `granary fault gc`",
			 SHOWN_OF(book->tenant));
		collect_drop(book);
	}
	if (stale || !due)
		return 0;
	int err = 0;
	while (!err && plan->at < plan->run_count && clock_mono_ms(book->site->clock) < busy_ms)
		err = collect_step(book, queue, until_ms, plan, e);
	*more = plan->at < plan->run_count;
	if (!*more && !err)
		collect_end(book, plan);
	return err;
}
