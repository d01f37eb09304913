#include "fault/day.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/put.h"
#include "wire/calendar.h"

enum {
	STATE_CLOSED = 1,
	VALUE_MAX_BYTES = 1 << 20,
	HASH_TEXT_BYTES = 32,
	NAME_MAX_BYTES = FAULT_COLUMN_MAX_BYTES - 7, /* behind `volume.` */
};

static const struct slice day_column_names[FAULT_COLUMNS] = {
	[FAULT_COLUMN_DURATION] = SLICE("duration"),
	[FAULT_COLUMN_STATEMENTS] = SLICE("statement count"),
	[FAULT_COLUMN_TOTAL] = SLICE("total"),
	[FAULT_COLUMN_HOURS] = SLICE("hours"),
	[FAULT_COLUMN_STATE] = SLICE("state"),
	[FAULT_COLUMN_VOLUME] = SLICE("volume"),
	[FAULT_COLUMN_REST] = SLICE("rest"),
	[FAULT_COLUMN_GROUPS_REST] = SLICE("groups rest"),
};

/* ---- Lists ----------------------------------------------------------------------------------- */

/* Whether `a` stands before `b`. */
static int day_top_compare(const struct fault_top *a, const struct fault_top *b)
{
	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	return slice_compare(a->id, b->id);
}

static int day_top_compare_sort(const void *a, const void *b)
{
	return day_top_compare(a, b);
}

static void day_list_release(struct fault_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		mem_free_slice(list->list[i].id);
	mem_free(list->list);
	*list = (struct fault_list){NULL, 0, 0};
}

/* False: it is not among the first. */
static bool day_list_add(struct fault_list *list, size_t max, struct fault_top top)
{
	size_t at = list->count;
	while (at > 0 && day_top_compare(&top, &list->list[at - 1]) < 0)
		at--;
	if (at >= max)
		return false;
	top.id = mem_copy_slice(top.id);
	if (list->count == max)
		mem_free_slice(list->list[--list->count].id);
	GROW(list->list, list->room, list->count + 1);
	memmove(list->list + at + 1, list->list + at, (list->count - at) * sizeof(*list->list));
	list->list[at] = top;
	list->count++;
	return true;
}

static void day_list_put(const struct fault_list *list, struct buf *out)
{
	buf_put_varint(out, list->count);
	for (size_t i = 0; i < list->count; i++) {
		buf_put_varint(out, list->list[i].value);
		buf_put_text(out, list->list[i].id);
	}
}

static int day_list_take(struct fault_list *list, struct cursor *c)
{
	uint64_t count = cursor_varint(c);
	if (count > FAULT_LIST_MAX)
		return ERR_DAMAGED;
	for (uint64_t i = 0; i < count && !c->bad; i++) {
		struct fault_top top = {.value = cursor_varint(c)};
		top.id = cursor_text(c, FAULT_COLUMN_MAX_BYTES);
		if (!c->bad)
			day_list_add(list, FAULT_LIST_MAX, top);
	}
	return c->bad ? ERR_DAMAGED : 0;
}

/* ---- Names ----------------------------------------------------------------------------------- */

void fault_day_text(int64_t day, char to[FAULT_DAY_TEXT_BYTES + 1])
{
	struct date date = date_of_days(day);
	snprintf(to, FAULT_DAY_TEXT_BYTES + 1, "%04u%02u%02u", (unsigned)date.year % 10000,
		 (unsigned)date.month, (unsigned)date.day);
}

void fault_day_row_text(int64_t day, enum fault_row row, char to[FAULT_ROW_TEXT_BYTES + 1])
{
	static const char *const behind[] = {[FAULT_ROW_DAY] = "",
					     [FAULT_ROW_VOLUMES] = "/volumes",
					     [FAULT_ROW_GROUPS] = "/groups"};
	fault_day_text(day, to);
	snprintf(to + FAULT_DAY_TEXT_BYTES, FAULT_ROW_TEXT_BYTES + 1 - FAULT_DAY_TEXT_BYTES, "%s",
		 behind[row]);
}

int fault_day_parse(struct slice text, int64_t *day)
{
	unsigned numbers[3] = {0, 0, 0};
	if (text.len != FAULT_DAY_TEXT_BYTES)
		return ERR_INVALID;
	for (size_t i = 0; i < FAULT_DAY_TEXT_BYTES; i++) {
		unsigned digit = (unsigned)(uint8_t)text.data[i] - '0';
		unsigned *number = &numbers[i < 4 ? 0 : i / 2 - 1];
		if (digit > 9)
			return ERR_INVALID;
		*number = *number * 10 + digit;
	}
	if (numbers[1] < 1 || numbers[1] > 12 || numbers[2] < 1)
		return ERR_INVALID;
	*day = days_of_date((struct date){numbers[0], (int)numbers[1], (int)numbers[2]});
	char same[FAULT_DAY_TEXT_BYTES + 1];
	fault_day_text(*day, same);
	return memcmp(same, text.data, FAULT_DAY_TEXT_BYTES) ? ERR_INVALID : 0;
}

static void day_put_escaped(struct buf *name, struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = (uint8_t)text.data[i];
		if (c == '\\' || c == ':')
			buf_append_char(name, '\\');
		if (c < 0x20 || c == 0x7f)
			buf_printf(name, "\\x%02x", c);
		else
			buf_append_char(name, (char)c);
	}
}

void fault_volume_name(const struct fault_facts *facts, struct buf *name)
{
	size_t begin = name->len;
	day_put_escaped(name, facts->texts[FAULT_CONTEXT]);
	buf_append_char(name, ':');
	day_put_escaped(name, facts->texts[FAULT_EXCEPTION]);
	if (name->len - begin <= NAME_MAX_BYTES)
		return;
	struct hash128 hash = hash128(name->data + begin, name->len - begin, 0);
	size_t cut = begin + NAME_MAX_BYTES - HASH_TEXT_BYTES - 1;
	while ((name->data[cut] & 0xc0) == 0x80)
		cut--;
	name->len = cut;
	buf_printf(name, "~%016llx%016llx", (unsigned long long)hash.high,
		   (unsigned long long)hash.low);
}

/* ---- Counting -------------------------------------------------------------------------------- */

struct fault_day *fault_day_new(int64_t day, const struct fault_day_limits *limits)
{
	struct fault_day *d = mem_zalloc(sizeof(*d));
	ASSERT(limits->list_max <= FAULT_LIST_MAX);
	d->day = day;
	d->limits = *limits;
	fault_names_init(&d->volumes, day * FAULT_DAY_US, limits->names_max, false);
	fault_names_init(&d->groups, day * FAULT_DAY_US, limits->groups_max, true);
	d->has_groups = true;
	for (size_t i = 0; i < FAULT_COLUMNS; i++)
		buf_init(&d->columns[i].written, VALUE_MAX_BYTES);
	return d;
}

void fault_day_free(struct fault_day *day)
{
	if (!day)
		return;
	fault_names_release(&day->volumes);
	fault_names_release(&day->groups);
	day_list_release(&day->longest);
	day_list_release(&day->most);
	day_list_release(&day->largest);
	for (size_t i = 0; i < FAULT_COLUMNS; i++)
		buf_release(&day->columns[i].written);
	mem_free(day);
}

static void day_touch(struct fault_day *day, enum fault_column column)
{
	day->columns[column].dirty = true;
}

static void day_add_to_groups(struct fault_day *day, const struct fault_arrival *arrival)
{
	struct slice group = arrival->facts.texts[FAULT_GROUP];
	if (!group.len) /* it came before there were groups */
		return;
	if (!day->has_groups)
		day->late = true;
	else if (!fault_names_add(&day->groups, group, arrival))
		day_touch(day, FAULT_COLUMN_GROUPS_REST);
}

static void day_add_to_volumes(struct fault_day *day, const struct fault_arrival *arrival)
{
	struct buf name;
	buf_init(&name, 4 * (FAULT_CONTEXT_MAX_BYTES + FAULT_EXCEPTION_MAX_BYTES) + 64);
	fault_volume_name(&arrival->facts, &name);
	if (!fault_names_add(&day->volumes, buf_slice(&name), arrival))
		day_touch(day, FAULT_COLUMN_REST);
	buf_release(&name);
}

bool fault_day_lacks_groups(const struct fault_day *day)
{
	return day->total && !day->columns[FAULT_COLUMN_GROUPS_REST].version.tenure;
}

bool fault_day_is_disordered(const struct fault_day *day)
{
	return day->late || day->volumes.disordered || day->groups.disordered;
}

void fault_day_add(struct fault_day *day, const struct fault_arrival *arrival)
{
	const struct fault_facts *facts = &arrival->facts;
	ASSERT(fault_day_of(arrival->date_us) == day->day);
	if (facts->duration_us >= 0 &&
	    day_list_add(&day->longest, day->limits.list_max,
			 (struct fault_top){(uint64_t)facts->duration_us, arrival->id}))
		day_touch(day, FAULT_COLUMN_DURATION);
	if (facts->statements >= 0 &&
	    day_list_add(&day->most, day->limits.list_max,
			 (struct fault_top){(uint64_t)facts->statements, arrival->id}))
		day_touch(day, FAULT_COLUMN_STATEMENTS);
	day->total++;
	day->hours[(arrival->date_us - day->day * FAULT_DAY_US) / FAULT_HOUR_US]++;
	day_touch(day, FAULT_COLUMN_TOTAL);
	day_touch(day, FAULT_COLUMN_HOURS);
	if (day->closed)
		day->late = true;
	else
		day_add_to_volumes(day, arrival);
	day_add_to_groups(day, arrival);
	/* This cell tells days whose groups are counted from days of before there were groups. */
	if (!day->columns[FAULT_COLUMN_GROUPS_REST].version.tenure)
		day_touch(day, FAULT_COLUMN_GROUPS_REST);
}

void fault_day_settle(struct fault_day *day)
{
	ASSERT(day->has_groups);
	if (day->late) {
		day->volumes.rest++;
		day_touch(day, FAULT_COLUMN_REST);
	}
	day->late = day->volumes.disordered = day->groups.disordered = false;
}

/* All volumes that there are, largest first, of equal ones by name; of a closed day those that were
 * kept. At most `max`. */
static size_t day_largest(const struct fault_day *day, struct fault_top *to, size_t max)
{
	size_t count = 0;
	if (day->closed) {
		for (; count < max && count < day->largest.count; count++)
			to[count] = day->largest.list[count];
		return count;
	}
	struct fault_top *all = mem_alloc_array(day->volumes.count, sizeof(*all));
	for (size_t at = 0; at < day->volumes.table.slot_count; at++) {
		const struct fault_name *volume = fault_names_at(&day->volumes, at);
		if (volume)
			all[count++] = (struct fault_top){volume->count, volume->name};
	}
	qsort(all, count, sizeof(*all), day_top_compare_sort);
	count = count < max ? count : max;
	for (size_t i = 0; i < count; i++)
		to[i] = all[i];
	mem_free(all);
	return count;
}

/* The rest stays. */
static void day_drop_volumes(struct fault_day *day)
{
	uint64_t rest = day->volumes.rest;
	fault_names_release(&day->volumes);
	day->volumes.rest = rest;
}

void fault_day_close(struct fault_day *day)
{
	if (day->closed)
		return;
	size_t max = day->limits.list_max;
	struct fault_top *list = mem_alloc_array(max, sizeof(*list));
	size_t count = day_largest(day, list, max);
	for (size_t i = 0; i < count; i++)
		day_list_add(&day->largest, max, list[i]);
	mem_free(list);
	day_drop_volumes(day);
	day->closed = true;
	day_touch(day, FAULT_COLUMN_STATE);
	day_touch(day, FAULT_COLUMN_VOLUME);
}

static void day_copy_list(struct fault_list *to, const struct fault_list *from)
{
	for (size_t i = 0; i < from->count; i++)
		day_list_add(to, FAULT_LIST_MAX, from->list[i]);
}

struct fault_day_view *fault_day_view_new(const struct fault_day *day)
{
	struct fault_day_view *view = mem_zalloc(sizeof(*view));
	struct fault_top *largest = mem_alloc_array(FAULT_LIST_MAX, sizeof(*largest));
	size_t count = day_largest(day, largest, FAULT_LIST_MAX);
	view->day = day->day;
	view->names = day->closed ? day->largest.count : day->volumes.count;
	view->total = day->total;
	memcpy(view->hours, day->hours, sizeof(view->hours));
	view->rest = day->volumes.rest;
	view->groups_rest = day->groups.rest;
	view->closed = day->closed;
	day_copy_list(&view->longest, &day->longest);
	day_copy_list(&view->most, &day->most);
	for (size_t i = 0; i < count; i++)
		day_list_add(&view->largest, FAULT_LIST_MAX, largest[i]);
	mem_free(largest);
	return view;
}

void fault_day_view_free(struct fault_day_view *view)
{
	if (!view)
		return;
	day_list_release(&view->longest);
	day_list_release(&view->most);
	day_list_release(&view->largest);
	mem_free(view);
}

static void day_move_list(struct fault_list *to, struct fault_list *from)
{
	day_list_release(to);
	*to = *from;
	*from = (struct fault_list){NULL, 0, 0};
}

void fault_day_replace(struct fault_day *day, struct fault_day **fresh_place)
{
	struct fault_day *fresh = *fresh_place;
	ASSERT(fresh->day == day->day && day->has_groups);
	*fresh_place = NULL;
	if (day->closed)
		fault_day_close(fresh);
	day_move_list(&day->longest, &fresh->longest);
	day_move_list(&day->most, &fresh->most);
	day_move_list(&day->largest, &fresh->largest);
	fault_names_replace(&day->volumes, &fresh->volumes);
	fault_names_replace(&day->groups, &fresh->groups);
	day->total = fresh->total;
	memcpy(day->hours, fresh->hours, sizeof(day->hours));
	day->late = false;
	for (size_t i = 0; i < FAULT_COLUMNS; i++)
		day->columns[i].dirty = i != FAULT_COLUMN_VOLUME || day->closed;
	fault_day_free(fresh);
}

static bool day_list_erase(struct fault_list *list, const struct hash_table *ids)
{
	size_t left = 0, count = list->count;
	for (size_t i = 0; i < count; i++) {
		if (hash_table_find(ids, fault_id_hash(list->list[i].id)))
			mem_free_slice(list->list[i].id);
		else
			list->list[left++] = list->list[i];
	}
	list->count = left;
	return left < count;
}

bool fault_day_erase(struct fault_day *day, struct slice user, const struct hash_table *ids)
{
	bool longest = day_list_erase(&day->longest, ids), most = day_list_erase(&day->most, ids);
	ASSERT(day->has_groups);
	bool groups = fault_names_erase(&day->groups, user, ids);
	/* A day whose groups alone have changed is to be written, too. */
	if (longest || groups)
		day_touch(day, FAULT_COLUMN_DURATION);
	if (most)
		day_touch(day, FAULT_COLUMN_STATEMENTS);
	return longest || most || groups;
}

void fault_day_write_again(struct fault_day *day)
{
	day_touch(day, FAULT_COLUMN_DURATION);
	day_touch(day, FAULT_COLUMN_STATEMENTS);
	fault_names_write_again(&day->groups);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

/* What the cell of a column is to hold; nothing: there is none. */
static void day_put_column(const struct fault_day *day, enum fault_column column, struct buf *out)
{
	switch (column) {
	case FAULT_COLUMN_DURATION:
		day_list_put(&day->longest, out);
		return;
	case FAULT_COLUMN_STATEMENTS:
		day_list_put(&day->most, out);
		return;
	case FAULT_COLUMN_TOTAL:
		buf_put_varint(out, day->total);
		return;
	case FAULT_COLUMN_HOURS:
		for (size_t h = 0; h < FAULT_HOURS; h++)
			buf_put_varint(out, day->hours[h]);
		return;
	case FAULT_COLUMN_STATE:
		buf_append_char(out, day->closed ? STATE_CLOSED : 0);
		return;
	case FAULT_COLUMN_VOLUME:
		if (day->closed)
			day_list_put(&day->largest, out);
		return;
	case FAULT_COLUMN_REST:
		buf_put_varint(out, day->volumes.rest);
		return;
	case FAULT_COLUMN_GROUPS_REST:
		buf_put_varint(out, day->groups.rest);
		return;
	case FAULT_COLUMNS:
		break;
	}
	ASSERT(false);
}

static int day_take_column(struct fault_day *day, enum fault_column column, struct cursor *c)
{
	switch (column) {
	case FAULT_COLUMN_DURATION:
		return day_list_take(&day->longest, c);
	case FAULT_COLUMN_STATEMENTS:
		return day_list_take(&day->most, c);
	case FAULT_COLUMN_TOTAL:
		day->total = cursor_varint(c);
		break;
	case FAULT_COLUMN_HOURS:
		for (size_t h = 0; h < FAULT_HOURS; h++)
			day->hours[h] = cursor_varint(c);
		break;
	case FAULT_COLUMN_STATE:
		day->closed = cursor_u8(c) == STATE_CLOSED;
		break;
	case FAULT_COLUMN_VOLUME:
		return day_list_take(&day->largest, c);
	case FAULT_COLUMN_REST:
		day->volumes.rest = cursor_varint(c);
		break;
	case FAULT_COLUMN_GROUPS_REST:
		day->groups.rest = cursor_varint(c);
		break;
	case FAULT_COLUMNS:
		break;
	}
	return c->bad ? ERR_DAMAGED : 0;
}

int fault_day_load(struct fault_day *day, enum fault_row row, struct slice column,
		   struct slice value, struct fault_version version)
{
	if (row != FAULT_ROW_DAY)
		return fault_names_load(row == FAULT_ROW_GROUPS ? &day->groups : &day->volumes,
					column, value, version);
	for (size_t i = 0; i < FAULT_COLUMNS; i++) {
		if (!slice_equal(column, day_column_names[i]))
			continue;
		struct cursor c = cursor_of(value.data, value.len);
		buf_clear(&day->columns[i].written);
		buf_append(&day->columns[i].written, value.data, value.len);
		day->columns[i].version = version;
		return value.len ? day_take_column(day, (enum fault_column)i, &c) : 0;
	}
	return 0;
}

static int day_write_column(struct fault_day *day, enum fault_column column,
			    struct fault_version version, fault_day_put *put, void *owner)
{
	struct buf value, cell;
	buf_init(&value, VALUE_MAX_BYTES);
	buf_init(&cell, 2 * VALUE_MAX_BYTES);
	day_put_column(day, column, &value);
	const struct fault_versioned versioned = {
		.version = version,
		.value = buf_slice(&value),
		.has_before = day->columns[column].version.tenure != 0,
		.before_version = day->columns[column].version,
		.before = buf_slice(&day->columns[column].written),
	};
	fault_versioned_encode(&versioned, &cell);
	const struct fault_name_cell given = {.column = day_column_names[column],
					      .value = buf_slice(&cell)};
	int err = value.failed || cell.failed ? ERR_LIMIT : put(owner, FAULT_ROW_DAY, &given);
	buf_release(&value);
	buf_release(&cell);
	return err;
}

/* Takes cells of names, which do not know their row, and gives them on with it. */
struct day_putting {
	enum fault_row row;
	fault_day_put *put;
	void *owner;
};

static int day_put_name(void *owner, const struct fault_name_cell *cell)
{
	const struct day_putting *putting = owner;
	return putting->put(putting->owner, putting->row, cell);
}

int fault_day_write(struct fault_day *day, struct fault_version version, fault_day_put *put,
		    void *owner)
{
	struct day_putting volumes = {FAULT_ROW_VOLUMES, put, owner};
	struct day_putting groups = {FAULT_ROW_GROUPS, put, owner};
	int err = 0;
	for (size_t i = 0; i < FAULT_COLUMNS && !err; i++)
		if (day->columns[i].dirty)
			err = day_write_column(day, (enum fault_column)i, version, put, owner);
	err = err ? err : fault_names_write(&day->volumes, version, day_put_name, &volumes);
	return err ? err : fault_names_write(&day->groups, version, day_put_name, &groups);
}

void fault_day_written(struct fault_day *day, struct fault_version version)
{
	for (size_t i = 0; i < FAULT_COLUMNS; i++) {
		if (!day->columns[i].dirty)
			continue;
		buf_clear(&day->columns[i].written);
		day_put_column(day, (enum fault_column)i, &day->columns[i].written);
		day->columns[i].version = version;
		day->columns[i].dirty = false;
	}
	fault_names_written(&day->volumes, version);
	fault_names_written(&day->groups, version);
}

/* Each report that is added changes the total. */
bool fault_day_is_dirty(const struct fault_day *day)
{
	for (size_t i = 0; i < FAULT_COLUMNS; i++)
		if (day->columns[i].dirty)
			return true;
	return false;
}
