/* Telling: what an owner finds when it begins, and what an owner before it wrote late. */
#include "fault/tell_private.h"

#include "base/grow.h"
#include "store/wait.h"

/* Messages that landed late are looked for first after the least time, then after twice as long,
 * and so on, until it is the greatest. */
#define TELL_LATE_MIN_US INT64_C(10000000)
#define TELL_LATE_MAX_US INT64_C(3600000000)

/* ---- What was told --------------------------------------------------------------------------- */

void tell_add_hour(struct fault_teller *teller, int64_t hour)
{
	for (size_t i = 0; i < teller->hour_count; i++)
		if (teller->hours[i] == hour)
			return;
	GROW(teller->hours, teller->hour_room, teller->hour_count + 1);
	teller->hours[teller->hour_count++] = hour;
}

void tell_forget_hour(struct fault_teller *teller, int64_t hour)
{
	for (size_t i = 0; i < teller->hour_count; i++) {
		if (teller->hours[i] != hour)
			continue;
		teller->hours[i] = teller->hours[--teller->hour_count];
		return;
	}
}

int64_t tell_hour_now(const struct tell *t)
{
	struct clock *clock = t->book->site->clock;
	return floor_div(clock->wall_us(clock), FAULT_HOUR_US);
}

bool tell_is_capped(const struct fault_message *message)
{
	return message->kind != FAULT_DAY_OVER && message->kind != FAULT_HELD_BACK;
}

void tell_note(struct fault_teller *teller, const struct fault_message *message)
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
	struct tell *t;
	int64_t *over;
	size_t count, room;
};

static struct hash128 tell_hash(const struct fault_message *message)
{
	return hash128(message->id.data, message->id.len, 0);
}

void tell_note_seen(struct tell *t, const struct fault_message *message)
{
	if (store_is_shared(t->book->site->store))
		hash_set_add(&t->teller->seen, tell_hash(message), SIZE_MAX);
}

static int tell_see_message(void *owner, const struct fault_message *message)
{
	struct tell_beginning *begin = owner;
	tell_note(begin->t->teller, message);
	tell_note_seen(begin->t, message);
	if (message->kind != FAULT_HELD_BACK)
		return 0;
	GROW(begin->over, begin->room, begin->count + 1);
	begin->over[begin->count++] = floor_div(message->of_us, FAULT_HOUR_US);
	return 0;
}

void tell_note_opened(struct fault_teller *teller, struct hash128 group, int64_t said_us)
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
	if (slice_starts_with(column, of_group) && !c.bad && known)
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

int tell_begin(struct tell *t, uint64_t tenure)
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
	struct tell_beginning begin = {.t = t};
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

/* ---- Late ones ------------------------------------------------------------------------------- */

/* One that this owner neither found at its begin nor made. */
static int tell_see_late(void *owner, const struct fault_message *message)
{
	struct tell *t = owner;
	if (hash_set_has(&t->teller->seen, tell_hash(message))) {
		hash_set_add(&t->teller->there, tell_hash(message), SIZE_MAX);
		return 0;
	}
	if (t->made_count == TELL_LATE_MAX) {
		t->more = true;
		return 0;
	}
	struct tell_made *made = &t->made[t->made_count++];
	*made = (struct tell_made){.message = *message,
				   .late = true,
				   .of_said = hash128(message->group.data, message->group.len, 0)};
	int err = fault_message_keep(&made->message, &t->arena);
	if (err)
		t->made_count--;
	return err ? errbuf_set(t->e, err, "messages that landed late take too much memory") : 0;
}

/* Who follows messages by their dates may be past those that came late: they get new ones. */
int tell_late(struct tell *t)
{
	const struct fault_site *site = t->book->site;
	struct clock *clock = site->clock;
	if (!store_is_shared(site->store) || clock->mono_us(clock) < t->teller->look_us)
		return 0;
	int err = fault_messages_read(site, t->queue, t->book->tenant, tell_see_late, t, t->e);
	if (!err) { /* those that have expired are forgotten */
		struct hash_set seen = t->teller->seen;
		t->teller->seen = t->teller->there;
		t->teller->there = seen;
	}
	hash_set_release(&t->teller->there);
	if (!err && !t->more)
		tell_look_again(t, 2 * t->teller->wait_us);
	return err;
}
