#include "fault/said.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/put.h"
#include "fault/release.h"
#include "store/wait.h"

enum {
	SAID_VERSION = 1,
	SAID_VALUE_MAX_BYTES = 32 << 10,
	SAID_MEMORY_BYTES = 256 << 10,
	SAID_TRIES = 20,
};

/* ---- The status ------------------------------------------------------------------------------ */

const char *const fault_statuses[] = {
	[FAULT_OPEN] = "open", [FAULT_RESOLVED] = "resolved", [FAULT_MUTED] = "muted", NULL};

/* Whether reports of a release open a resolved group. They do if the release should have the mend:
 * if it is the one that was said, or a later one. A release with an empty text stands for reports
 * without a release. */
static bool said_opens(const struct fault_said *said, const struct fault_tally *tally,
		       const struct fault_value *release)
{
	int order;
	bool in = said->resolved == FAULT_RESOLVED_IN;
	if (said->resolved == FAULT_RESOLVED_NOW || !release->text.len || !said->release.len)
		return true;
	if (slice_equal(release->text, said->release))
		return in;
	if (fault_release_compare(release->text, said->release, &order))
		return in ? order >= 0 : order > 0;
	const struct fault_value *named =
		fault_tally_find(tally, FAULT_TALLY_RELEASE, said->release);
	return release->first_us > (in && named ? named->first_us : said->said_us);
}

/* Adds those reports of a release that would open the group. */
static void said_add_opening(const struct fault_said *said, const struct fault_tally *tally,
			     const struct fault_value *release, const struct fault_value *reports,
			     struct fault_value *sum)
{
	if (!reports->count || !said_opens(said, tally, release))
		return;
	sum->last_us = sum->count ? larger_of(sum->last_us, reports->last_us) : reports->last_us;
	sum->count += reports->count;
}

/* The reports that would open a resolved group, whenever they came, and the last of them. Where the
 * last release that is kept is a version, only lower versions are not kept. Else nothing is known
 * of those that are not. */
static struct fault_value said_opening(const struct fault_said *said,
				       const struct fault_tally *tally)
{
	const struct fault_values *releases = &tally->values[FAULT_TALLY_RELEASE];
	struct fault_value sum = {0};
	for (size_t i = 0; i < releases->count; i++)
		said_add_opening(said, tally, &releases->list[i], &releases->list[i], &sum);
	said_add_opening(said, tally, &releases->none, &releases->none, &sum);
	const struct fault_value *lowest =
		releases->count ? &releases->list[releases->count - 1] : &releases->rest;
	int order;
	bool known =
		fault_release_is_version(lowest->text) &&
		(!said->release.len || fault_release_compare(lowest->text, said->release, &order));
	said_add_opening(said, tally, known ? lowest : &releases->rest, &releases->rest, &sum);
	return sum;
}

/* Whether the reports that were counted when it was said are of the groups of this history. */
static bool said_counted(const struct fault_said *said, const struct fault_group_history *history)
{
	return said->merged == history->merged;
}

/* One that came later, by its time of receipt; or one more, whatever clock it was received by. */
static bool said_is_regressed(const struct fault_said *said,
			      const struct fault_group_history *history)
{
	struct fault_value opening = said_opening(said, &history->tally);
	return (said_counted(said, history) && opening.count > said->before) ||
	       (opening.count && opening.last_us > said->said_us);
}

/* The reports of an hour that came after the status was said. */
static uint64_t said_hour(const struct fault_said *said, const struct fault_group_history *history,
			  const struct fault_group_day *day, size_t hour)
{
	int64_t number = day->day * FAULT_HOURS + (int64_t)hour;
	int64_t from = floor_div(said->said_us, FAULT_HOUR_US);
	uint64_t count = day->hours[hour];
	if (number < from)
		return 0;
	if (number > from)
		return count;
	if (!said_counted(said, history))
		return 0;
	return count - smaller_of(count, said->before_of_hour);
}

/* Whether `until` reports came within `hours` successive hours. Looks at the hours that end with
 * each hour in turn. */
static bool said_is_over_within(const struct fault_said *said,
				const struct fault_group_history *history)
{
	size_t first_day = 0, first_hour = 0;
	uint64_t sum = 0;
	for (size_t d = 0; d < history->count; d++) {
		for (size_t h = 0; h < FAULT_HOURS; h++) {
			int64_t number = history->days[d].day * FAULT_HOURS + (int64_t)h;
			sum += said_hour(said, history, &history->days[d], h);
			while (number - (history->days[first_day].day * FAULT_HOURS +
					 (int64_t)first_hour) >=
			       (int64_t)said->hours) {
				sum -= said_hour(said, history, &history->days[first_day],
						 first_hour);
				first_day += first_hour == FAULT_HOURS - 1;
				first_hour = (first_hour + 1) % FAULT_HOURS;
			}
			if (sum >= said->until)
				return true;
		}
	}
	return false;
}

/* All that came after the status was said. */
static uint64_t said_since(const struct fault_said *said, const struct fault_group_history *history)
{
	uint64_t count = history->tally.count, sum = 0;
	if (said_counted(said, history))
		return count - smaller_of(count, said->before);
	for (size_t d = 0; d < history->count; d++)
		for (size_t h = 0; h < FAULT_HOURS; h++)
			sum += said_hour(said, history, &history->days[d], h);
	return sum;
}

static bool said_is_unmuted(const struct fault_said *said,
			    const struct fault_group_history *history)
{
	if (!said->until)
		return false;
	return said->hours ? said_is_over_within(said, history)
			   : said_since(said, history) >= said->until;
}

enum fault_status fault_said_status(const struct fault_said *said,
				    const struct fault_group_history *history, bool *again)
{
	*again = (said->status == FAULT_RESOLVED && said_is_regressed(said, history)) ||
		 (said->status == FAULT_MUTED && said_is_unmuted(said, history));
	return *again ? FAULT_OPEN : said->status;
}

void fault_said_count_before(struct fault_said *said, const struct fault_group_history *history,
			     int64_t now_us)
{
	int64_t hour = floor_div(now_us, FAULT_HOUR_US);
	said->before = said->status == FAULT_RESOLVED ? said_opening(said, &history->tally).count
						      : history->tally.count;
	said->merged = history->merged;
	said->before_of_hour = 0;
	for (size_t d = 0; d < history->count; d++)
		if (history->days[d].day == floor_div(hour, FAULT_HOURS))
			said->before_of_hour =
				history->days[d].hours[hour - history->days[d].day * FAULT_HOURS];
}

/* ---- Cells ----------------------------------------------------------------------------------- */

void fault_said_encode(const struct fault_said *said, struct buf *out)
{
	buf_append_char(out, SAID_VERSION);
	buf_append_char(out, (char)said->status);
	buf_append(out, &said->said_us, 8);
	buf_append_char(out, (char)said->resolved);
	buf_put_text(out, said->release);
	buf_put_varint(out, said->until);
	buf_put_varint(out, said->hours);
	buf_put_varint(out, said->before);
	buf_put_varint(out, said->before_of_hour);
	buf_put_text(out, said->assignee);
	buf_put_varint(out, said->bug_count);
	for (size_t i = 0; i < said->bug_count; i++) {
		buf_put_text(out, said->bugs[i].tracker);
		buf_put_text(out, said->bugs[i].bug);
	}
	if (said->merged)
		buf_append(out, &said->merged, 8);
}

int fault_said_decode(struct slice bytes, struct fault_said *said)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint8_t version = cursor_u8(&c);
	*said = (struct fault_said){.release = SLICE(""), .assignee = SLICE("")};
	if (!c.bad && version != SAID_VERSION)
		return ERR_VERSION;
	uint8_t status = cursor_u8(&c);
	said->said_us = (int64_t)cursor_u64(&c);
	uint8_t resolved = cursor_u8(&c);
	said->release = cursor_text(&c, FAULT_SAID_TEXT_MAX_BYTES);
	said->until = cursor_varint(&c);
	said->hours = cursor_varint(&c);
	said->before = cursor_varint(&c);
	said->before_of_hour = cursor_varint(&c);
	said->assignee = cursor_text(&c, FAULT_SAID_TEXT_MAX_BYTES);
	uint64_t bugs = cursor_varint(&c);
	if (status > FAULT_MUTED || resolved > FAULT_RESOLVED_AFTER ||
	    said->hours > FAULT_SAID_HOURS_MAX || bugs > FAULT_SAID_BUGS_MAX)
		c.bad = true;
	for (uint64_t i = 0; i < bugs && !c.bad; i++) {
		said->bugs[i].tracker = cursor_text(&c, FAULT_SAID_TEXT_MAX_BYTES);
		said->bugs[i].bug = cursor_text(&c, FAULT_SAID_TEXT_MAX_BYTES);
		said->bug_count++;
	}
	if (!c.bad && cursor_left(&c))
		said->merged = cursor_u64(&c);
	said->status = (enum fault_status)status;
	said->resolved = (enum fault_resolved)resolved;
	return c.bad ? ERR_DAMAGED : 0;
}

/* ---- In the store ---------------------------------------------------------------------------- */

/* Reads the cell of a group; texts go to the arena. *version 0: there is no cell. */
static int said_read(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		     struct slice group, struct arena *arena, struct fault_said *said,
		     uint64_t *version, struct errbuf *e)
{
	struct store_read *read = store_read_new(site->store, SAID_MEMORY_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request); /* the first of an empty arena */
	request->cell_get = (struct store_cell_get){
		.table = TABLE_FAULT_SAID, .key = {{tenant}}, .column = {{group}}};
	read->now_ms = clock_wall_ms(site->clock);
	int err = store_read_wait(read, queue);
	const struct store_cell *cell = &request->cell_get.cell;
	bool found = !err && request->cell_get.found;
	if (err)
		errbuf_set(e, err, "%s", store_read_sentence(read, err));
	*version = found ? cell->version : 0;
	*said = (struct fault_said){.release = SLICE(""), .assignee = SLICE("")};
	if (found) {
		struct slice copy = arena_copy(arena, cell->value);
		err = copy.data ? fault_said_decode(copy, said) : ERR_LIMIT;
		if (err)
			errbuf_set(e, err,
				   "what was said of the group " SHOWN
				   " (table fault_said) cannot be read: %s",
				   SHOWN_OF(group), err_text(err));
	}
	store_read_free(read);
	return err;
}

int fault_said_read(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		    struct slice group, struct arena *arena, struct fault_said *said,
		    struct errbuf *e)
{
	uint64_t version;
	return said_read(site, queue, tenant, group, arena, said, &version, e);
}

static int said_put(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		    struct slice group, const struct fault_said *said, uint64_t version)
{
	const struct store_parts key = {{tenant}}, column = {{group}};
	struct buf value;
	buf_init(&value, SAID_VALUE_MAX_BYTES);
	fault_said_encode(said, &value);
	ASSERT(!value.failed);
	int err = store_put_if_wait(site->store, queue, TABLE_FAULT_SAID, &key, &column, version,
				    buf_slice(&value));
	buf_release(&value);
	return err;
}

int fault_said_write(const struct fault_site *site, struct task_queue *queue, struct slice tenant,
		     struct slice group, fault_said_change *change, void *owner,
		     struct arena *arena, struct fault_said *said, struct errbuf *e)
{
	int err = ERR_EXISTS;
	for (int i = 0; i < SAID_TRIES && err == ERR_EXISTS; i++) {
		uint64_t version;
		err = said_read(site, queue, tenant, group, arena, said, &version, e);
		err = err ? err : change(owner, said, e);
		if (err)
			return err;
		err = said_put(site, queue, tenant, group, said, version);
	}
	if (err == ERR_EXISTS)
		err = ERR_BUSY;
	return err ? errbuf_set(e, err, "what was said of the group " SHOWN " is not stored: %s",
				SHOWN_OF(group), err_text(err))
		   : 0;
}

/* Reads what was said of all groups of a tenant. */
struct said_reading {
	struct arena *arena;
	struct fault_said_list *list;
	size_t damaged;
};

static int said_see_cell(const struct store_cell *cell, void *owner)
{
	struct said_reading *reading = owner;
	struct fault_said_list *list = reading->list;
	struct fault_said said;
	if (fault_said_decode(cell->value, &said)) {
		reading->damaged++;
		return 0;
	}
	const struct fault_said_group group = {
		.group = arena_copy(reading->arena, cell->column.part[0]),
		.cell = arena_copy(reading->arena, cell->value)};
	if (!group.group.data || !group.cell.data ||
	    !GROW_IN_ARENA(reading->arena, list->list, list->room, list->count + 1))
		return ERR_LIMIT;
	list->list[list->count++] = group;
	return 0;
}

static int said_compare(const void *one, const void *other)
{
	const struct fault_said_group *a = one, *b = other;
	return slice_compare(a->group, b->group);
}

int fault_said_read_all(const struct fault_site *site, struct task_queue *queue,
			struct slice tenant, struct arena *arena, struct fault_said_list *list,
			struct errbuf *e)
{
	const struct store_parts key = {{tenant}};
	struct said_reading reading = {.arena = arena, .list = list};
	*list = (struct fault_said_list){NULL, 0, 0};
	int err = store_row_wait(site->store, queue, clock_wall_ms(site->clock), TABLE_FAULT_SAID,
				 &key, said_see_cell, &reading, e);
	if (err == ERR_LIMIT)
		errbuf_set(e, err, "too much was said of groups of tenant " SHOWN,
			   SHOWN_OF(tenant));
	if (reading.damaged)
		log_warn("faults: what was said of %zu groups of tenant " SHOWN
			 " (table fault_said) cannot be read",
			 reading.damaged, SHOWN_OF(tenant));
	if (list->count)
		qsort(list->list, list->count, sizeof(*list->list), said_compare);
	return err;
}

/* False: nothing was said. */
static bool said_find(const struct fault_said_list *list, struct slice group,
		      struct fault_said *said)
{
	const struct fault_said_group key = {.group = group};
	const struct fault_said_group *found =
		list->count
			? bsearch(&key, list->list, list->count, sizeof(*list->list), said_compare)
			: NULL;
	return found && !fault_said_decode(found->cell, said);
}

int fault_said_judge(const struct fault_said_list *list, struct fault_book *book,
		     struct task_queue *queue, const struct fault_group_question *question,
		     struct fault_said *said, enum fault_status *status, bool *again,
		     struct errbuf *e)
{
	struct fault_group_history history;
	*status = FAULT_OPEN;
	*again = false;
	if (!said_find(list, question->group, said)) {
		*said = (struct fault_said){.release = SLICE(""), .assignee = SLICE("")};
		return 0;
	}
	if (said->status == FAULT_OPEN)
		return 0;
	int err = fault_book_read_group(book, queue, question, &history, e);
	if (!err)
		*status = fault_said_status(said, &history, again);
	fault_group_history_release(&history);
	return err;
}
