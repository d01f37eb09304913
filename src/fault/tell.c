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
 * Messages are followed by their dates, which rise. On a store that processes share a message of an
 * owner before this one may land after later ones were read; it is found, and dated again. */
#include "base/grow.h"
#include "base/hash_set.h"
#include "base/log.h"
#include "base/stats.h"
#include "fault/groups.h"
#include "fault/message.h"
#include "fault/rise.h"
#include "fault/said.h"
#include "fault/seal_run.h"
#include "store/wait.h"

enum {
	TELL_CAUSES_MAX = 500, /* of a turn; and so many groups are judged */
	TELL_HOURS_MAX = 100,  /* of which it is told in a turn what was held back */
	TELL_LATE_MAX = 500,   /* that get new dates in a turn */
	TELL_MADE_MAX = TELL_LATE_MAX + 3 * TELL_CAUSES_MAX + TELL_HOURS_MAX,
	TELL_READ_BYTES = 8 << 20,
	TELL_WRITE_BYTES = 16 << 20,
	TELL_ARENA_BYTES = 16 << 20,
	TELL_BUSY_US = 500000, /* of causes, and of groups; the rest waits for the next turn */
	TELL_VALUE_BYTES = 16 << 10,
	TELL_NOTE_VERSION = 1,
};
/* A group that was resolved or muted is looked at so often, whether it has more reports or not:
 * they may be of a day that is not in memory. */
#define TELL_LOOK_US INT64_C(600000000)
/* Writes of an owner before this one may land when it has made messages already: such a process was
 * frozen, or the store held them back. They are looked for first after the least time, then after
 * twice as long, and so on, until it is the greatest. */
#define TELL_LATE_MIN_US INT64_C(10000000)
#define TELL_LATE_MAX_US INT64_C(3600000000)
#define TELL_FACTS       (1u << FAULT_TALLY_ENVIRONMENT | 1u << FAULT_TALLY_LEVEL | FAULT_SAID_FACTS)

/* A group that is resolved or muted. A slot of a hash table. */
struct tell_said {
	struct hash128 hash; /* of its name */
	uint64_t version;    /* of what was said */
	uint64_t count;      /* reports on the days in memory, when it was looked at */
	int64_t look_us;     /* monotonic: when it is to be looked at all the same; 0: now */
};

/* A group of which it was told that it is open again. A slot of a hash table. */
struct tell_told {
	struct hash128 hash; /* of its name */
	int64_t said_us;     /* when that was said which its reports have undone */
};

/* A group that had so many reports today that they may be more than usual. A slot of a hash table.
 */
struct tell_rise {
	struct hash128 hash; /* of its name */
	uint64_t next;       /* when it has so many it is looked at again */
};

struct fault_teller {
	uint64_t tenure; /* in which this was read */
	int64_t last_us; /* when the last message was made */
	int64_t hour;    /* that it is by the clock */
	uint64_t told;   /* so many of that hour are not held back */
	int64_t *hours;  /* in which some were held back, and FAULT_HELD_BACK was not made */
	size_t hour_count, hour_room;
	size_t judged;     /* groups, since the begin */
	int64_t rises_day; /* of which: */
	/* On a store that processes share: the ids of all messages that were there at the begin,
	 * and of those that were made since. */
	struct hash_set seen;
	int64_t look_us, wait_us;       /* monotonic: when they are looked for again, and so on */
	struct hash_table rises;        /* of tell_rise */
	struct hash_table said, opened; /* of tell_said, of tell_told */
};

/* A cell of `fault_causes`. */
struct tell_cause {
	struct slice day_text, group; /* group len 0: the day is over */
	int64_t day;
	bool stays; /* it is looked at again */
};

struct tell_made {
	struct fault_message message;
	char id[FAULT_MESSAGE_ID_BYTES + 1];
	bool there;             /* somebody made it already */
	bool late;              /* likewise, but it came when later ones were there */
	struct hash128 of_said; /* the group, if it is one that is open again */
};

static bool tell_opens(const struct fault_message *message)
{
	return message->kind == FAULT_REGRESSED || message->kind == FAULT_UNMUTED;
}

/* A turn. */
struct tell {
	struct fault_book *book;
	struct fault_teller *teller;
	struct task_queue *queue;
	struct errbuf *e;
	int64_t until_ms, busy_us;
	size_t done; /* pieces of this part */
	struct arena arena;
	struct fault_merges merges; /* in the arena */
	struct tell_cause *causes;
	size_t cause_count;
	struct tell_made *made;
	size_t made_count;
	bool more; /* something is left for the next turn */
};

void book_free_teller(struct fault_book *book)
{
	if (!book->teller)
		return;
	mem_free(book->teller->hours);
	hash_table_release(&book->teller->said);
	hash_table_release(&book->teller->opened);
	hash_table_release(&book->teller->rises);
	hash_set_release(&book->teller->seen);
	mem_free(book->teller);
	book->teller = NULL;
}

/* Whether the time of this part of a turn is over. Of each part at least one piece is done. */
static bool tell_is_late(const struct tell *t)
{
	struct clock *clock = t->book->site->clock;
	return t->done && clock->mono_us(clock) >= t->busy_us;
}

static void tell_begin_part(struct tell *t)
{
	struct clock *clock = t->book->site->clock;
	t->busy_us = clock->mono_us(clock) + TELL_BUSY_US;
	t->done = 0;
}

/* ---- What was told --------------------------------------------------------------------------- */

static void tell_add_hour(struct fault_teller *teller, int64_t hour)
{
	for (size_t i = 0; i < teller->hour_count; i++)
		if (teller->hours[i] == hour)
			return;
	GROW(teller->hours, teller->hour_room, teller->hour_count + 1);
	teller->hours[teller->hour_count++] = hour;
}

static void tell_forget_hour(struct fault_teller *teller, int64_t hour)
{
	for (size_t i = 0; i < teller->hour_count; i++) {
		if (teller->hours[i] != hour)
			continue;
		teller->hours[i] = teller->hours[--teller->hour_count];
		return;
	}
}

static int64_t tell_hour_now(const struct tell *t)
{
	struct clock *clock = t->book->site->clock;
	return floor_div(clock->wall_us(clock), FAULT_HOUR_US);
}

/* Whether the message counts for fault.messages_max. The other kinds are few: one a day, and one an
 * hour. */
static bool tell_is_capped(const struct fault_message *message)
{
	return message->kind != FAULT_DAY_OVER && message->kind != FAULT_HELD_BACK;
}

static void tell_note(struct fault_teller *teller, const struct fault_message *message)
{
	int64_t hour = floor_div(message->made_us, FAULT_HOUR_US);
	teller->last_us = larger_of(teller->last_us, message->date_us);
	if (message->held_back)
		tell_add_hour(teller, hour);
	else if (hour == teller->hour && tell_is_capped(message))
		teller->told++;
}

/* Hours of which that message is there: by when each begins. */
struct tell_beginning {
	struct fault_teller *teller;
	bool shared;
	int64_t *over;
	size_t count, room;
};

static struct hash128 tell_hash(const struct fault_message *message)
{
	return hash128(message->id.data, message->id.len, 0);
}

static int tell_see_message(void *owner, const struct fault_message *message)
{
	struct tell_beginning *begin = owner;
	tell_note(begin->teller, message);
	if (begin->shared)
		hash_set_add(&begin->teller->seen, tell_hash(message), SIZE_MAX);
	if (message->kind != FAULT_HELD_BACK)
		return 0;
	GROW(begin->over, begin->room, begin->count + 1);
	begin->over[begin->count++] = floor_div(message->of_us, FAULT_HOUR_US);
	return 0;
}

static void tell_note_opened(struct fault_teller *teller, struct hash128 group, int64_t said_us)
{
	bool added;
	struct tell_told *told = hash_table_add(&teller->opened, group, sizeof(*told), &added);
	told->said_us = said_us;
}

/* A cell of `fault_notes` of a group, or of a webhook. */
static int tell_see_note(const struct store_cell *cell, void *owner)
{
	static const struct slice of_group = SLICE(FAULT_NOTE_OF_GROUP);
	struct slice column = cell->column.part[0];
	struct cursor c = cursor_of(cell->value.data, cell->value.len);
	bool known = cursor_u8(&c) == TELL_NOTE_VERSION;
	int64_t said_us = (int64_t)cursor_u64(&c);
	if (column.len > of_group.len && !c.bad && known &&
	    memcmp(column.data, of_group.data, of_group.len) == 0)
		tell_note_opened(owner,
				 hash128(column.data + of_group.len, column.len - of_group.len, 0),
				 said_us);
	return 0;
}

static void tell_look_again(struct tell *t, int64_t wait_us)
{
	struct clock *clock = t->book->site->clock;
	t->teller->wait_us = smaller_of(wait_us, TELL_LATE_MAX_US);
	t->teller->look_us = clock->mono_us(clock) + t->teller->wait_us;
}

/* Once in a tenure. */
static int tell_begin(struct tell *t, uint64_t tenure)
{
	struct fault_book *book = t->book;
	if (book->teller && book->teller->tenure == tenure) {
		t->teller = book->teller;
		return 0;
	}
	book_free_teller(book);
	t->teller = book->teller = mem_zalloc(sizeof(*book->teller));
	t->teller->hour = tell_hour_now(t);
	book->causes = true;
	struct tell_beginning begin = {.teller = t->teller,
				       .shared = store_is_shared(book->site->store)};
	tell_look_again(t, TELL_LATE_MIN_US);
	int err = fault_messages_read(book->site, t->queue, book->tenant, tell_see_message, &begin,
				      t->e);
	for (size_t i = 0; i < begin.count; i++)
		tell_forget_hour(t->teller, begin.over[i]);
	mem_free(begin.over);
	const struct store_parts key = {{book->tenant}};
	if (!err)
		err = store_row_wait(book->site->store, t->queue, clock_wall_ms(book->site->clock),
				     TABLE_FAULT_NOTES, &key, tell_see_note, t->teller, t->e);
	if (!err)
		t->teller->tenure = tenure;
	return err;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static struct tell_made *tell_make(struct tell *t, enum fault_message_kind kind, struct slice group,
				   int64_t of_us)
{
	struct tell_made *made = &t->made[t->made_count++];
	*made = (struct tell_made){.message = {.kind = kind, .of_us = of_us, .group = group}};
	fault_message_id(kind, group, of_us, made->id);
	made->message.id = slice_of(made->id);
	return made;
}

static struct slice tell_keep(struct tell *t, struct slice text)
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
static void tell_describe(struct tell *t, struct fault_message *message,
			  const struct fault_tally *tally)
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
static uint64_t tell_count_of_day(const struct tell *t, const struct fault_day *day,
				  struct slice group)
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

static int tell_read_group(struct tell *t, struct slice group, struct fault_group_history *history)
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
		if (tell_is_late(t)) {
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

/* ---- What was said of groups ----------------------------------------------------------------- */

struct tell_saying {
	struct tell *t;
	struct slice *groups; /* that are to be looked at */
	size_t count;
};

/* How many reports a group has in memory, with those of the groups that it stands for. With the
 * lock. */
static uint64_t tell_count_in_memory(const struct tell *t, struct slice group)
{
	uint64_t count = 0;
	for (size_t i = 0; i < t->book->day_count; i++)
		count += tell_count_of_day(t, t->book->days[i], group);
	return count;
}

/* Notes it if it is resolved or muted, and there is a reason to look at it. What was said of a
 * group that is merged into another one does not count meanwhile. */
static int tell_see_said(const struct store_cell *cell, void *owner)
{
	struct tell_saying *saying = owner;
	struct tell *t = saying->t;
	struct clock *clock = t->book->site->clock;
	struct slice group = cell->column.part[0];
	struct fault_said said;
	bool added;
	if (fault_said_decode(cell->value, &said) || said.status == FAULT_OPEN ||
	    (said.status == FAULT_MUTED && !said.until) || fault_merges_find(&t->merges, group))
		return 0;
	struct tell_said *known = hash_table_add(
		&t->teller->said, hash128(group.data, group.len, 0), sizeof(*known), &added);
	if (added || known->version != cell->version)
		*known = (struct tell_said){.hash = known->hash, .version = cell->version};
	const struct tell_told *told = hash_table_find(&t->teller->opened, known->hash);
	if (told && told->said_us == said.said_us)
		return 0;
	pthread_mutex_lock(&t->book->lock);
	uint64_t count = tell_count_in_memory(t, group);
	pthread_mutex_unlock(&t->book->lock);
	if (count == known->count && clock->mono_us(clock) < known->look_us)
		return 0;
	if (saying->count == TELL_CAUSES_MAX) {
		t->more = true;
		return 0;
	}
	known->count = count;
	saying->groups[saying->count++] = tell_keep(t, group);
	return 0;
}

static int tell_judge(struct tell *t, struct slice group)
{
	struct clock *clock = t->book->site->clock;
	struct fault_said said;
	struct fault_group_history history = {0};
	bool again = false;
	struct tell_said *known =
		hash_table_find(&t->teller->said, hash128(group.data, group.len, 0));
	int err = fault_said_read(t->book->site, t->queue, t->book->tenant, group, &t->arena, &said,
				  t->e);
	err = err ? err : tell_read_group(t, group, &history);
	if (!err)
		(void)fault_said_status(&said, &history, &again);
	if (again) {
		bool resolved = said.status == FAULT_RESOLVED;
		struct tell_made *made = tell_make(t, resolved ? FAULT_REGRESSED : FAULT_UNMUTED,
						   group, said.said_us);
		tell_describe(t, &made->message, &history.tally);
		made->of_said = known->hash;
	}
	if (!err)
		known->look_us = clock->mono_us(clock) + TELL_LOOK_US;
	fault_group_history_release(&history);
	return err;
}

static int tell_said(struct tell *t)
{
	const struct store_parts key = {{t->book->tenant}};
	struct tell_saying saying = {
		.t = t, .groups = mem_alloc_array(TELL_CAUSES_MAX, sizeof(*saying.groups))};
	int err =
		store_row_wait(t->book->site->store, t->queue, clock_wall_ms(t->book->site->clock),
			       TABLE_FAULT_SAID, &key, tell_see_said, &saying, t->e);
	tell_begin_part(t);
	/* Each turn begins with another group: those that always have more reports keep no other
	 * from its turn. */
	size_t first = t->teller->judged;
	for (size_t i = 0; i < saying.count && !err; i++) {
		struct slice group = saying.groups[(first + i) % saying.count];
		if (!tell_is_late(t)) {
			err = tell_judge(t, group);
			t->done++;
			t->teller->judged++;
			continue;
		}
		struct tell_said *known =
			hash_table_find(&t->teller->said, hash128(group.data, group.len, 0));
		known->look_us = 0;
		t->more = true;
	}
	mem_free(saying.groups);
	return err;
}

/* ---- Groups that have more than usual -------------------------------------------------------- */

static void tell_note_rise(struct tell *t, struct slice group, uint64_t next)
{
	bool added;
	struct tell_rise *rise = hash_table_add(
		&t->teller->rises, hash128(group.data, group.len, 0), sizeof(*rise), &added);
	rise->next = next;
}

/* Whether so many reports of a group may be more than usual, and were not looked at. */
static bool tell_may_rise(const struct tell *t, struct slice group, uint64_t count)
{
	if (count < FAULT_RISE_REPORTS)
		return false;
	const struct tell_rise *rise =
		hash_table_find(&t->teller->rises, hash128(group.data, group.len, 0));
	return !rise || count >= rise->next;
}

/* The same of the group that stands for one of a day, with the reports of all that it stands for.
 * `seen` has those groups of which the count was looked up. */
static bool tell_may_rise_of(const struct tell *t, const struct fault_day *day,
			     const struct fault_name *name, struct hash_set *seen,
			     struct slice *group)
{
	*group = fault_merges_root(&t->merges, name->name);
	if (!fault_merges_hash(&t->merges, *group))
		return tell_may_rise(t, *group, name->count);
	return hash_set_add(seen, hash128(group->data, group->len, 0), FAULT_MERGES_MAX) &&
	       tell_may_rise(t, *group, tell_count_of_day(t, day, *group));
}

/* Groups of today that are to be looked at. A day that is not in memory has no new reports. */
static size_t tell_list_rises(struct tell *t, int64_t today, struct slice *groups)
{
	struct fault_book *book = t->book;
	struct hash_set seen = {0};
	size_t count = 0;
	pthread_mutex_lock(&book->lock);
	const struct fault_day *day = book_find_day(book, today);
	for (size_t at = 0; day && at < day->groups.table.slot_count; at++) {
		const struct fault_name *name = fault_names_at(&day->groups, at);
		struct slice group;
		if (!name || !tell_may_rise_of(t, day, name, &seen, &group))
			continue;
		if (count == TELL_CAUSES_MAX) {
			t->more = true;
			break;
		}
		groups[count++] = tell_keep(t, group);
	}
	pthread_mutex_unlock(&book->lock);
	hash_set_release(&seen);
	return count;
}

/* It is looked at again when it has a quarter more. A group that is resolved or muted is told of
 * when it is open again. */
static int tell_judge_rise(struct tell *t, struct slice group, int64_t now_us)
{
	int64_t today = fault_day_of(now_us);
	struct fault_said said;
	struct fault_group_history history = {0};
	bool again;
	int err = fault_said_read(t->book->site, t->queue, t->book->tenant, group, &t->arena, &said,
				  t->e);
	err = err ? err : tell_read_group(t, group, &history);
	uint64_t count = err ? 0 : fault_reports_of_day(&history, today);
	bool rises = !err && fault_said_status(&said, &history, &again) == FAULT_OPEN &&
		     fault_rises(&history, now_us);
	if (rises) {
		struct fault_message *message =
			&tell_make(t, FAULT_RISEN, group, today * FAULT_DAY_US)->message;
		tell_describe(t, message, &history.tally);
		message->count = count;
	}
	if (!err)
		tell_note_rise(t, group, rises ? UINT64_MAX : count + count / 4 + 1);
	fault_group_history_release(&history);
	return err;
}

static int tell_rises(struct tell *t)
{
	struct clock *clock = t->book->site->clock;
	int64_t now_us = clock->wall_us(clock), today = fault_day_of(now_us);
	struct slice *groups = mem_alloc_array(TELL_CAUSES_MAX, sizeof(*groups));
	int err = 0;
	if (t->teller->rises_day != today)
		hash_table_release(&t->teller->rises);
	t->teller->rises_day = today;
	size_t count = tell_list_rises(t, today, groups);
	tell_begin_part(t);
	for (size_t i = 0; i < count && !err && !tell_is_late(t); i++, t->done++)
		err = tell_judge_rise(t, groups[i], now_us);
	t->more |= t->done < count;
	mem_free(groups);
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
		if (sum->kind == FAULT_HELD_BACK && sum->of_us == hour * FAULT_HOUR_US)
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

/* ---- Late ones ------------------------------------------------------------------------------- */

/* One that this owner neither found at its begin nor made. */
static int tell_see_late(void *owner, const struct fault_message *message)
{
	struct tell *t = owner;
	if (hash_set_has(&t->teller->seen, tell_hash(message)))
		return 0;
	if (t->made_count == TELL_LATE_MAX) {
		t->more = true;
		return 0;
	}
	struct tell_made *made = &t->made[t->made_count++];
	*made = (struct tell_made){.message = *message,
				   .late = true,
				   .of_said = hash128(message->group.data, message->group.len, 0)};
	made->message.id = tell_keep(t, message->id);
	made->message.group = tell_keep(t, message->group);
	made->message.title = tell_keep(t, message->title);
	made->message.report = tell_keep(t, message->report);
	made->message.environment = tell_keep(t, message->environment);
	made->message.level = tell_keep(t, message->level);
	made->message.release = tell_keep(t, message->release);
	return 0;
}

/* Who follows messages by their dates may be past those that came late: they get new ones. */
static int tell_late(struct tell *t)
{
	const struct fault_site *site = t->book->site;
	struct clock *clock = site->clock;
	if (!store_is_shared(site->store) || clock->mono_us(clock) < t->teller->look_us)
		return 0;
	int err = fault_messages_read(site, t->queue, t->book->tenant, tell_see_late, t, t->e);
	if (!err && !t->more)
		tell_look_again(t, 2 * t->teller->wait_us);
	return err;
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
	if (store_is_shared(t->book->site->store) && (made->late || !made->there))
		hash_set_add(&t->teller->seen, tell_hash(&made->message), SIZE_MAX);
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
