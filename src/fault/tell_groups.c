/* Telling: which groups are open again, and which have more reports than usual. */
#include "fault/tell_private.h"

#include "fault/rise.h"
#include "store/wait.h"

/* A group that was resolved or muted is looked at so often, whether it has more reports or not:
 * they may be of a day that is not in memory. */
#define TELL_LOOK_US INT64_C(600000000)

/* A group that is resolved or muted. A slot of a hash table. */
struct tell_said {
	struct hash128 hash; /* of its name */
	uint64_t version;    /* of what was said */
	uint64_t count;      /* reports on the days in memory, when it was looked at */
	int64_t look_us;     /* monotonic: when it is to be looked at all the same; 0: now */
};

/* A group that had so many reports today that they may be more than usual. A slot of a hash table.
 */
struct tell_rise {
	struct hash128 hash; /* of its name */
	uint64_t next;       /* when it has so many it is looked at again */
};

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

int tell_said(struct tell *t)
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
		if (!tell_part_is_over(t)) {
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

int tell_rises(struct tell *t)
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
	for (size_t i = 0; i < count && !err && !tell_part_is_over(t); i++, t->done++)
		err = tell_judge_rise(t, groups[i], now_us);
	t->more |= t->done < count;
	mem_free(groups);
	return err;
}
