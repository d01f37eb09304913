/* Telling: the owner makes messages of what its passes bring about.
 *
 *     checkpoint: causes  -->  looked at: messages durable, then the causes go
 *     what was said of groups, with their reports  -->  messages
 *     groups with many reports today               -->  messages
 *
 * The checkpoint that first counts reports of a group on a day, and the one that closes a day,
 * write a cause; so it is there however soon the process dies. Whether a group that was resolved or
 * muted is open again is looked at when it has more reports, and now and then. A message is a
 * function of its cause but for its date, and is kept by an id that is made of the cause: so one
 * that is found twice is there once.
 *
 * What was told before a tenure is read in tell_past.c; which groups are open again or have more
 * reports than usual is found in tell_groups.c.
 *
 * Messages are followed by their dates, which rise. On a store that processes share a message of an
 * owner before this one may land after later ones were read; it is found, and dated again. */
#include "fault/tell_private.h"

#include "base/stats.h"
#include "fault/seal_run.h"
#include "store/wait.h"

enum {
	TELL_HOURS_MAX = 100, /* of which it is told in a turn what was held back */
	TELL_MADE_MAX = TELL_LATE_MAX + 3 * TELL_CAUSES_MAX + TELL_HOURS_MAX,
	TELL_READ_BYTES = 8 << 20,
	TELL_WRITE_BYTES = 16 << 20,
	TELL_ARENA_BYTES = 16 << 20,
	TELL_BUSY_US = 500000, /* of causes, and of groups; the rest waits for the next turn */
	TELL_VALUE_BYTES = 16 << 10,
};
#define TELL_FACTS (1u << FAULT_TALLY_ENVIRONMENT | 1u << FAULT_TALLY_LEVEL | FAULT_SAID_FACTS)

static bool tell_opens(const struct fault_message *message)
{
	return message->kind == FAULT_REGRESSED || message->kind == FAULT_UNMUTED;
}

void book_free_teller(struct fault_book *book)
{
	if (!book->teller)
		return;
	mem_free(book->teller->hours);
	hash_table_release(&book->teller->said);
	hash_table_release(&book->teller->opened);
	hash_table_release(&book->teller->rises);
	hash_set_release(&book->teller->seen);
	hash_set_release(&book->teller->there);
	mem_free(book->teller);
	book->teller = NULL;
}

bool tell_part_is_over(const struct tell *t)
{
	struct clock *clock = t->book->site->clock;
	return t->done && clock->mono_us(clock) >= t->busy_us;
}

void tell_begin_part(struct tell *t)
{
	struct clock *clock = t->book->site->clock;
	t->busy_us = clock->mono_us(clock) + TELL_BUSY_US;
	t->done = 0;
}

/* ---- Making ---------------------------------------------------------------------------------- */

struct tell_made *tell_make(struct tell *t, enum fault_message_kind kind, struct slice group,
			    int64_t of_us)
{
	struct tell_made *made = &t->made[t->made_count++];
	*made = (struct tell_made){.message = {.kind = kind, .of_us = of_us, .group = group}};
	fault_message_id(kind, group, of_us, made->id);
	made->message.id = slice_of(made->id);
	return made;
}

struct slice tell_keep(struct tell *t, struct slice text)
{
	struct slice copy = arena_copy(&t->arena, text);
	ASSERT(copy.data); /* some short texts of each message */
	return copy;
}

/* The value of a fact that came first, or last. */
static struct slice tell_value(struct tell *t, const struct fault_tally *tally,
			       enum fault_tally_fact fact, bool first)
{
	const struct fault_values *values = &tally->values[fact];
	const struct fault_value *found = NULL;
	for (size_t i = 0; i < values->count; i++) {
		const struct fault_value *value = &values->list[i];
		if (!found ||
		    (first ? value->first_us < found->first_us : value->last_us > found->last_us))
			found = value;
	}
	return found ? tell_keep(t, found->text) : SLICE("");
}

/* A new group is described by its first report, another by its last. */
void tell_describe(struct tell *t, struct fault_message *message, const struct fault_tally *tally)
{
	bool first = message->kind == FAULT_NEW_GROUP || !tally->last.id.len;
	message->count = tally->count;
	message->title = tell_keep(t, tally->title);
	message->report = tell_keep(t, first ? tally->first.id : tally->last.id);
	message->environment = tell_value(t, tally, FAULT_TALLY_ENVIRONMENT, first);
	message->level = tell_value(t, tally, FAULT_TALLY_LEVEL, first);
	message->release = tell_value(t, tally, FAULT_TALLY_RELEASE, first);
}

/* Reports of a group and of all that it stands for. */
uint64_t tell_count_of_day(const struct tell *t, const struct fault_day *day, struct slice group)
{
	uint64_t count = 0;
	struct slice *names = mem_alloc_array(fault_merges_room(&t->merges), sizeof(*names));
	size_t name_count = fault_merges_tree(&t->merges, group, names);
	for (size_t i = 0; i < name_count; i++) {
		const struct fault_name *name = fault_names_find(&day->groups, names[i]);
		count += name ? name->count : 0;
	}
	mem_free(names);
	return count;
}

int tell_read_group(struct tell *t, struct slice group, struct fault_group_history *history)
{
	const struct fault_group_question question = {group, TELL_FACTS, 0, &t->merges};
	return fault_book_read_group(t->book, t->queue, &question, history, t->e);
}

/* ---- Causes ---------------------------------------------------------------------------------- */

static int tell_read_causes(struct tell *t)
{
	const struct fault_site *site = t->book->site;
	struct store_read *read = store_read_new(site->store, TELL_READ_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	ASSERT(request); /* the first of an empty arena */
	request->cell_scan = (struct store_cell_scan){
		.table = TABLE_FAULT_CAUSES, .key = {{t->book->tenant}}, .limit = TELL_CAUSES_MAX};
	read->now_ms = clock_wall_ms(site->clock);
	int err = store_read_wait(read, t->queue);
	if (err)
		errbuf_set(t->e, err, "%s", store_read_sentence(read, err));
	for (size_t i = 0; !err && i < request->cell_scan.count; i++) {
		const struct store_parts *column = &request->cell_scan.cells[i].column;
		struct tell_cause *cause = &t->causes[t->cause_count++];
		*cause = (struct tell_cause){.day_text = tell_keep(t, column->part[0]),
					     .group = tell_keep(t, column->part[1])};
		if (fault_day_parse(cause->day_text, &cause->day))
			cause->day = INT64_MIN; /* no program wrote it: it goes */
	}
	t->more |= !err && (request->more || t->cause_count == TELL_CAUSES_MAX);
	store_read_free(read);
	return err;
}

static int tell_day(struct tell *t, const struct tell_cause *cause)
{
	struct fault_day_view *view;
	int err = fault_book_read_day(t->book, t->queue, cause->day, &view, t->e);
	if (!err && view->total)
		tell_make(t, FAULT_DAY_OVER, SLICE(""), cause->day * FAULT_DAY_US)->message.count =
			view->total;
	fault_day_view_free(err ? NULL : view);
	return err;
}

/* If its only report has been struck meanwhile, since another of its id was first, it is told that
 * it has none. */
static int tell_new_group(struct tell *t, const struct tell_cause *cause)
{
	struct fault_group_history history;
	int err = tell_read_group(t, cause->group, &history);
	if (!err)
		tell_describe(t, &tell_make(t, FAULT_NEW_GROUP, cause->group, 0)->message,
			      &history.tally);
	fault_group_history_release(&history);
	return err;
}

/* Groups that enter one day: those that are on no earlier one. What is merged into another group is
 * not new. The causes are by day, and the days themselves come first. */
static int tell_groups_of_day(struct tell *t, struct tell_cause *causes, size_t count)
{
	struct fault_group_age *ages = mem_zalloc(count * sizeof(*ages));
	for (size_t i = 0; i < count; i++)
		ages[i] = (struct fault_group_age){
			causes[i].group, fault_merges_find(&t->merges, causes[i].group) != NULL};
	int err = fault_book_read_older(t->book, t->queue, causes->day, &t->merges, ages, count, 0,
					t->e);
	for (size_t i = 0; i < count && !err; i++) {
		if (tell_part_is_over(t)) {
			causes[i].stays = t->more = true;
			continue;
		}
		if (!ages[i].older)
			err = tell_new_group(t, &causes[i]);
		t->done++;
	}
	mem_free(ages);
	return err;
}

static int tell_causes(struct tell *t)
{
	tell_begin_part(t);
	int err = t->book->causes ? tell_read_causes(t) : 0;
	for (size_t at = 0, next; at < t->cause_count && !err; at = next) {
		struct tell_cause *cause = &t->causes[at];
		next = at + 1;
		if (cause->day == INT64_MIN)
			continue;
		if (!cause->group.len) {
			err = tell_day(t, cause);
			continue;
		}
		while (next < t->cause_count && t->causes[next].group.len &&
		       t->causes[next].day == cause->day)
			next++;
		err = tell_groups_of_day(t, cause, next - at);
	}
	return err;
}

/* ---- Hours ----------------------------------------------------------------------------------- */

/* It is over, or it was an hour by a clock that was ahead. */
static bool tell_is_over(const struct tell *t, int64_t hour)
{
	int64_t now = tell_hour_now(t);
	return hour < now || hour > now + 1;
}

static int tell_count_held_back(void *owner, const struct fault_message *message)
{
	struct tell *t = owner;
	int64_t hour = floor_div(message->made_us, FAULT_HOUR_US);
	for (size_t i = 0; i < t->made_count && message->held_back; i++) {
		struct fault_message *sum = &t->made[i].message;
		if (sum->kind == FAULT_HELD_BACK && !t->made[i].late &&
		    sum->of_us == hour * FAULT_HOUR_US)
			sum->count++;
	}
	return 0;
}

/* They are counted by what is stored: another owner may have made some. */
static int tell_hours(struct tell *t)
{
	size_t before = t->made_count;
	for (size_t i = 0; i < t->teller->hour_count && t->made_count < TELL_MADE_MAX; i++)
		if (tell_is_over(t, t->teller->hours[i]))
			tell_make(t, FAULT_HELD_BACK, SLICE(""),
				  t->teller->hours[i] * FAULT_HOUR_US);
	return t->made_count == before
		       ? 0
		       : fault_messages_read(t->book->site, t->queue, t->book->tenant,
					     tell_count_held_back, t, t->e);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* One that is there may have been held back by another owner. */
static void tell_note_there(struct tell *t, struct tell_made *made,
			    const struct store_cell_get *get)
{
	struct fault_message message;
	made->there = get->found;
	if (get->found && !fault_message_decode(get->cell.value, &message) && message.held_back)
		tell_add_hour(t->teller, floor_div(message.made_us, FAULT_HOUR_US));
}

/* Which of the messages are there already. */
static int tell_look_up(struct tell *t)
{
	struct store_read *read = store_read_new(t->book->site->store, TELL_READ_BYTES);
	struct store_request **asked = mem_alloc_array(t->made_count, sizeof(*asked));
	for (size_t i = 0; i < t->made_count; i++) {
		asked[i] = store_read_add(read, STORE_CELL_GET);
		ASSERT(asked[i]);
		asked[i]->cell_get = (struct store_cell_get){.table = TABLE_FAULT_MESSAGES,
							     .key = {{t->book->tenant}},
							     .column = {{t->made[i].message.id}}};
	}
	read->now_ms = clock_wall_ms(t->book->site->clock);
	int err = store_read_wait(read, t->queue);
	if (err)
		errbuf_set(t->e, err, "%s", store_read_sentence(read, err));
	for (size_t i = 0; i < t->made_count && !err; i++)
		tell_note_there(t, &t->made[i], &asked[i]->cell_get);
	mem_free(asked);
	store_read_free(read);
	return err;
}

static void tell_date(struct tell *t, struct fault_message *message)
{
	struct clock *clock = t->book->site->clock;
	message->date_us = larger_of(clock->wall_us(clock), t->teller->last_us + 1);
}

/* Beyond the largest number of an hour it is held back. */
static void tell_number(struct tell *t, struct fault_message *message)
{
	const struct fault_site *site = t->book->site;
	message->made_us = site->clock->wall_us(site->clock);
	int64_t hour = floor_div(message->made_us, FAULT_HOUR_US);
	if (hour != t->teller->hour) {
		t->teller->hour = hour;
		t->teller->told = 0;
	}
	message->held_back = site->messages_max && tell_is_capped(message) &&
			     t->teller->told >= site->messages_max;
}

static int tell_put_message(struct tell *t, struct store_write *write, int64_t stamp_us,
			    const struct fault_message *message)
{
	const struct fault_site *site = t->book->site;
	const struct store_parts key = {{t->book->tenant}}, column = {{message->id}};
	int64_t expires_ms =
		site->messages_keep_ms ? message->made_us / 1000 + site->messages_keep_ms : 0;
	struct buf value;
	buf_init(&value, TELL_VALUE_BYTES);
	fault_message_encode(message, &value);
	ASSERT(!value.failed);
	int err = store_cell_put(write, TABLE_FAULT_MESSAGES, &key, &column, buf_slice(&value),
				 stamp_us, expires_ms);
	buf_release(&value);
	return err;
}

/* It stays when the message has expired: the group may be open for longer than that. */
static int tell_put_opened(struct tell *t, struct store_write *write, int64_t stamp_us,
			   const struct fault_message *message)
{
	const struct store_parts key = {{t->book->tenant}};
	struct buf column, value;
	buf_init(&column, TELL_VALUE_BYTES);
	buf_init(&value, TELL_VALUE_BYTES);
	buf_append_text(&column, FAULT_NOTE_OF_GROUP);
	buf_append(&column, message->group.data, message->group.len);
	buf_append_char(&value, TELL_NOTE_VERSION);
	buf_append(&value, &message->of_us, 8);
	const struct store_parts columns = {{buf_slice(&column)}};
	int err = store_cell_put(write, TABLE_FAULT_NOTES, &key, &columns, buf_slice(&value),
				 stamp_us, 0);
	buf_release(&column);
	buf_release(&value);
	return err;
}

static int tell_delete_causes(struct tell *t, struct store_write *write, int64_t stamp_us)
{
	const struct store_parts key = {{t->book->tenant}};
	int err = 0;
	for (size_t i = 0; i < t->cause_count && !err; i++) {
		const struct tell_cause *cause = &t->causes[i];
		const struct store_parts column = {{cause->day_text, cause->group}};
		if (!cause->stays)
			err = store_cell_delete(write, TABLE_FAULT_CAUSES, &key, &column, stamp_us);
	}
	return err;
}

static void tell_note_made(struct tell *t, const struct tell_made *made)
{
	if (tell_opens(&made->message))
		tell_note_opened(t->teller, made->of_said, made->message.of_us);
	if (made->message.kind == FAULT_HELD_BACK)
		tell_forget_hour(t->teller, floor_div(made->message.of_us, FAULT_HOUR_US));
	if (made->late || !made->there)
		tell_note_seen(t, &made->message);
	if (made->there)
		return;
	stat_add(STAT_fault_messages, 1);
	stat_add(STAT_fault_messages_held_back, made->message.held_back);
}

/* If its outcome is not known the next turn finds the causes, and what of it is there. */
static int tell_write(struct tell *t, size_t *made)
{
	int64_t stamp_us = store_stamp(t->book->site->store);
	int err = t->made_count ? tell_look_up(t) : 0;
	if (err)
		return err;
	struct store_write *write = store_write_new(t->book->site->store, TELL_WRITE_BYTES);
	for (size_t i = 0; i < t->made_count && !err; i++) {
		struct fault_message *message = &t->made[i].message;
		if (tell_opens(message))
			err = tell_put_opened(t, write, stamp_us, message);
		if (err || (t->made[i].there && !t->made[i].late))
			continue;
		if (!t->made[i].late)
			tell_number(t, message);
		tell_date(t, message);
		tell_note(t->teller, message);
		err = tell_put_message(t, write, stamp_us, message);
		++*made;
	}
	store_write_next_stage(write);
	err = err ? err : tell_delete_causes(t, write, stamp_us);
	err = seal_send_write(t->book, t->queue, t->until_ms, stamp_us, write, err, t->e);
	for (size_t i = 0; i < t->made_count && !err; i++)
		tell_note_made(t, &t->made[i]);
	return err;
}

/* ---- A turn ---------------------------------------------------------------------------------- */

static int tell_turn(struct tell *t, uint64_t tenure, size_t *made)
{
	int err = tell_begin(t, tenure);
	err = err ? err : tell_late(t);
	if (!err)
		err = fault_merges_read(t->book->site, t->queue, t->book->tenant, &t->arena,
					&t->merges, t->e);
	err = err ? err : tell_causes(t);
	err = err ? err : tell_said(t);
	err = err ? err : tell_rises(t);
	err = err ? err : tell_hours(t);
	bool goes = t->made_count || t->cause_count;
	return err || !goes ? err : tell_write(t, made);
}

int fault_book_tell(struct fault_book *book, struct task_queue *queue, int64_t until_ms,
		    size_t *made, struct errbuf *e)
{
	*made = 0;
	pthread_mutex_lock(&book->lock);
	uint64_t tenure = book->owned ? book->version.tenure : 0;
	pthread_mutex_unlock(&book->lock);
	if (!tenure)
		return 0;
	struct tell t = {.book = book,
			 .queue = queue,
			 .e = e,
			 .until_ms = until_ms,
			 .causes = mem_alloc_array(TELL_CAUSES_MAX, sizeof(*t.causes)),
			 .made = mem_alloc_array(TELL_MADE_MAX, sizeof(*t.made))};
	arena_init(&t.arena, TELL_ARENA_BYTES);
	int err = tell_turn(&t, tenure, made);
	if (err) {
		*made = 0;
		book_free_teller(book); /* what it counted may not be stored */
	}
	if (t.more || err)
		fault_book_touch(book);
	else
		book->causes = false;
	arena_release(&t.arena);
	mem_free(t.causes);
	mem_free(t.made);
	return err;
}
