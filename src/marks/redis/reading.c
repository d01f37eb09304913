/* Marks of a slot: first those in the store, part by part, then those in Redis.
 *
 * A part of Redis: EXISTS and SSCAN of some partitions in one round trip, the touches of what they
 * gave in a second one. A touch that comes between the two is read with the member; one that comes
 * later makes the removal leave the mark. */
#include <hiredis/hiredis.h>

#include "base/mem.h"
#include "marks/set.h"
#include "marks/redis/private.h"
#include "wire/number.h"

enum {
	ROWS_AT_ONCE = 64,
	PART_MARKS = 16384,
	SCAN_LEAST = 64,
	SCAN_MOST = 4096,
	REMOVED_AT_ONCE = 500,
	CURSOR_BYTES = 24,
	PART_MAX_BYTES = 256 << 20,
};

struct redis_reading_redis_row {
	struct mark_slot slot;
	char cursor[CURSOR_BYTES];
	bool more, ingesting;
};

/* An entry of a row: a member, its touch as it was read, and the mark that it is. */
struct redis_reading_entry {
	struct slice member, stamp;
	uint32_t row, mark;
};

struct redis_reading {
	struct marks_reading base;
	struct marks_reading *of_store;
	bool in_redis;
	int64_t now_ms;
	struct redis_reading_redis_row rows[MARKS_READING_MAX];
	size_t row_count;
	uint32_t asked[ROWS_AT_ONCE]; /* rows, of the scan at hand */
	struct redis_request scan, touches, removal;
	struct arena arena; /* members and touches of the part */
	struct redis_reading_entry *entries;
	size_t count, room;
	size_t stamped; /* of the entries */
	struct mark_set set;
};

static struct redis_marks *redis_reading_track_of(const struct redis_reading *r)
{
	return redis_marks_of(r->base.marks);
}

static struct redis_reading *redis_reading_of_reading(struct marks_reading *reading)
{
	return CONTAINER_OF(reading, struct redis_reading, base);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static int redis_reading_end_part(struct redis_reading *r, int err)
{
	if (err)
		mark_set_clear(&r->set);
	r->base.list = r->set.marks;
	r->base.count = r->set.count;
	r->base.more = false;
	for (size_t i = 0; i < r->row_count; i++)
		r->base.more |= r->rows[i].more;
	return err;
}

/* A member without a touch was put there by another program. */
static int64_t redis_reading_touched_ms(const struct redis_reading *r,
					const struct redis_reading_entry *entry)
{
	uint64_t ms = 0;
	if (!entry->stamp.len)
		return r->rows[entry->row].ingesting ? r->now_ms : 0;
	(void)number_scan_digits(entry->stamp.data, entry->stamp.data + entry->stamp.len, &ms);
	return ms <= INT64_MAX ? (int64_t)ms : INT64_MAX;
}

/* A tenant has no separator in it (tenant_valid). */
static bool redis_reading_split_member(const struct redis_reading *r, struct slice member,
				       struct slice *tenant, struct series_set *series_set)
{
	const char *at =
		memchr(member.data, redis_reading_track_of(r)->options.separator, member.len);
	if (!at || at == member.data || at + 1 == member.data + member.len)
		return false;
	*tenant = (struct slice){member.data, (size_t)(at - member.data)};
	*series_set = series_set_split((struct slice){at + 1, member.len - tenant->len - 1});
	return true;
}

static void redis_reading_skip_member(struct redis_reading *r,
				      const struct redis_reading_entry *entry)
{
	char key[KEY_MAX_BYTES];
	struct slice name =
		redis_key(redis_reading_track_of(r), "pending", r->rows[entry->row].slot, key);
	marks_reading_skip(&r->base, "the member \"" SHOWN "\" of " SHOWN " in Redis",
			   SHOWN_OF(entry->member), SHOWN_OF(name));
}

static void redis_reading_enter_marks(struct redis_reading *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->count; i++) {
		struct redis_reading_entry entry = r->entries[i];
		struct slice tenant;
		struct series_set series_set;
		if (!redis_reading_split_member(r, entry.member, &tenant, &series_set)) {
			redis_reading_skip_member(r, &entry);
			continue;
		}
		entry.mark = mark_set_enter(&r->set, tenant, series_set);
		struct mark *mark = &r->set.marks[entry.mark];
		if (mark->touched_ms < redis_reading_touched_ms(r, &entry))
			mark->touched_ms = redis_reading_touched_ms(r, &entry);
		mark->first_ms = mark->touched_ms;
		r->entries[n++] = entry;
	}
	r->count = n;
}

/* ---- Touches --------------------------------------------------------------------------------- */

static void redis_reading_on_touches_answer(struct redis_request *request, UNUSED size_t command,
					    const redisReply *reply)
{
	struct redis_reading *r = request->owner;
	for (size_t i = 0; i < reply->elements && r->stamped < r->count; i++) {
		const redisReply *stamp = reply->element[i];
		struct redis_reading_entry *entry = &r->entries[r->stamped++];
		if (stamp->type != REDIS_REPLY_STRING)
			continue;
		entry->stamp =
			arena_copy(&r->arena, (struct slice){stamp->str, (size_t)stamp->len});
		if (!entry->stamp.data)
			request->err = ERR_LIMIT;
	}
}

/* Of entries from `from` on that are of one row, as many as one command takes. */
static size_t redis_reading_count_of_row(const struct redis_reading *r, size_t from, size_t max)
{
	size_t n = 1;
	while (n < max && from + n < r->count && r->entries[from + n].row == r->entries[from].row)
		n++;
	return n;
}

static int redis_reading_read_touches(struct redis_reading *r, struct task_queue *queue)
{
	char key[KEY_MAX_BYTES];
	redis_request_clear(&r->touches);
	r->stamped = 0;
	for (size_t at = 0; at < r->count;) {
		size_t n = redis_reading_count_of_row(r, at, MEMBERS_OF_COMMAND);
		struct mark_slot slot = r->rows[r->entries[at].row].slot;
		redis_command(&r->touches, 2 + n);
		redis_word(&r->touches, SLICE("HMGET"));
		redis_word(&r->touches, redis_key(redis_reading_track_of(r), "touches", slot, key));
		for (size_t end = at + n; at < end; at++)
			redis_word(&r->touches, r->entries[at].member);
	}
	int err = redis_ask_wait(&r->touches, queue);
	if (!err)
		redis_reading_enter_marks(r);
	return err;
}

/* ---- Members --------------------------------------------------------------------------------- */

static int redis_reading_add_entry(struct redis_reading *r, uint32_t row, const redisReply *member)
{
	struct slice text = arena_copy(&r->arena, (struct slice){member->str, (size_t)member->len});
	if (!text.data)
		return ERR_LIMIT;
	if (r->count == r->room) {
		r->room = r->room ? r->room * 2 : SCAN_LEAST;
		r->entries = mem_resize_array(r->entries, r->room, sizeof(*r->entries));
	}
	r->entries[r->count++] = (struct redis_reading_entry){.member = text, .row = row};
	return 0;
}

static int redis_reading_take_members(struct redis_reading *r, uint32_t row,
				      const redisReply *reply)
{
	int err = reply->elements == 2 ? 0 : ERR_RETRY;
	if (err)
		return err;
	const redisReply *members = reply->element[1];
	snprintf(r->rows[row].cursor, CURSOR_BYTES, "%s", reply->element[0]->str);
	r->rows[row].more = strcmp(r->rows[row].cursor, "0") != 0;
	for (size_t i = 0; i < members->elements && !err; i++)
		err = redis_reading_add_entry(r, row, members->element[i]);
	return err;
}

/* A value of that name that is not a set holds up nobody else. */
static void redis_reading_on_scan_answer(struct redis_request *request, size_t command,
					 const redisReply *reply)
{
	static const char wrong_type[] = "WRONGTYPE";
	struct redis_reading *r = request->owner;
	uint32_t row = r->asked[command / 2];
	if (reply->type == REDIS_REPLY_ERROR &&
	    strncmp(reply->str, wrong_type, sizeof(wrong_type) - 1) == 0) {
		char key[KEY_MAX_BYTES];
		struct slice name =
			redis_key(redis_reading_track_of(r), "pending", r->rows[row].slot, key);
		r->rows[row].more = false;
		marks_reading_skip(&r->base, SHOWN " in Redis, which is no set", SHOWN_OF(name));
	} else if (reply->type == REDIS_REPLY_INTEGER) {
		r->rows[row].ingesting = reply->integer;
	} else {
		int err = reply->type == REDIS_REPLY_ARRAY
				  ? redis_reading_take_members(r, row, reply)
				  : ERR_RETRY;
		if (err)
			request->err = err;
	}
}

static size_t redis_reading_choose_rows(struct redis_reading *r)
{
	size_t n = 0;
	for (uint32_t i = 0; i < r->row_count && n < ROWS_AT_ONCE; i++) {
		if (r->rows[i].more)
			r->asked[n++] = i;
	}
	return n;
}

static int64_t redis_reading_members_of(size_t rows)
{
	size_t n = PART_MARKS / rows;
	return (int64_t)(n < SCAN_LEAST ? SCAN_LEAST : n > SCAN_MOST ? SCAN_MOST : n);
}

static void redis_reading_put_scan(struct redis_reading *r,
				   const struct redis_reading_redis_row *row, int64_t members)
{
	char key[KEY_MAX_BYTES];
	redis_command(&r->scan, 2);
	redis_word(&r->scan, SLICE("EXISTS"));
	redis_word(&r->scan, redis_key(redis_reading_track_of(r), "ingesting", row->slot, key));
	redis_command(&r->scan, 5);
	redis_word(&r->scan, SLICE("SSCAN"));
	redis_word(&r->scan, redis_key(redis_reading_track_of(r), "pending", row->slot, key));
	redis_word(&r->scan, slice_of(row->cursor));
	redis_word(&r->scan, SLICE("COUNT"));
	redis_number(&r->scan, members);
}

/* Rows that are done are asked no more: without any, *asked is 0. */
static int redis_reading_scan_rows(struct redis_reading *r, struct task_queue *queue, size_t *asked)
{
	*asked = redis_reading_choose_rows(r);
	redis_request_clear(&r->scan);
	for (size_t i = 0; i < *asked; i++)
		redis_reading_put_scan(r, &r->rows[r->asked[i]], redis_reading_members_of(*asked));
	return redis_ask_wait(&r->scan, queue);
}

static int redis_reading_read_part(struct redis_reading *r, struct task_queue *queue)
{
	size_t asked = 1;
	int err = 0;
	r->in_redis = true;
	r->count = r->base.unread = 0;
	arena_reset(&r->arena);
	mark_set_clear(&r->set);
	while (!err && asked && !r->count)
		err = redis_reading_scan_rows(r, queue, &asked);
	if (!err && r->count)
		err = redis_reading_read_touches(r, queue);
	return redis_reading_end_part(r, err);
}

/* ---- The store's ----------------------------------------------------------------------------- */

/* Takes the part that the store has given. */
static int redis_reading_take_store_part(struct redis_reading *r, struct task_queue *queue, int err)
{
	bool more;
	r->base.list = marks_reading_marks(r->of_store, &r->base.count, &more);
	r->base.unread = marks_reading_unread(r->of_store);
	memcpy(r->base.unread_name, r->of_store->unread_name, sizeof(r->base.unread_name));
	r->base.more = true;
	if (!err && !more && !r->base.count && !r->base.unread)
		return redis_reading_read_part(r, queue);
	return err;
}

int redis_reading_begin(struct marks_reading *reading, struct task_queue *queue,
			const struct mark_slot *slots, size_t count, int64_t now_ms)
{
	struct redis_reading *r = redis_reading_of_reading(reading);
	r->in_redis = false;
	r->now_ms = now_ms;
	r->row_count = count;
	for (size_t i = 0; i < count; i++)
		r->rows[i] = (struct redis_reading_redis_row){
			.slot = slots[i], .cursor = "0", .more = true};
	int err = marks_reading_begin(r->of_store, queue, slots, count, now_ms);
	return redis_reading_take_store_part(r, queue, err);
}

int redis_reading_next(struct marks_reading *reading, struct task_queue *queue, int64_t now_ms)
{
	struct redis_reading *r = redis_reading_of_reading(reading);
	size_t count;
	bool more;
	r->now_ms = now_ms;
	(void)marks_reading_marks(r->of_store, &count, &more);
	if (r->in_redis || !more)
		return redis_reading_read_part(r, queue);
	return redis_reading_take_store_part(r, queue,
					     marks_reading_next(r->of_store, queue, now_ms));
}

/* ---- Finishing ------------------------------------------------------------------------------- */

/* In one script, so that no touch comes between comparing and removing. A member without a touch
 * has the empty text for one. */
static const char script[] =
	"for i = 1, #ARGV, 2 do\n"
	"  if (redis.call('HGET', KEYS[2], ARGV[i]) or '') == ARGV[i + 1] then\n"
	"    redis.call('HDEL', KEYS[2], ARGV[i])\n"
	"    redis.call('SREM', KEYS[1], ARGV[i])\n"
	"  end\n"
	"end\n"
	"return 1\n";

static void redis_reading_put_removal(struct redis_reading *r,
				      const struct redis_reading_entry *entries, size_t count)
{
	char key[KEY_MAX_BYTES];
	struct mark_slot slot = r->rows[entries->row].slot;
	redis_command(&r->removal, 5 + 2 * count);
	redis_word(&r->removal, SLICE("EVAL"));
	redis_word(&r->removal, SLICE(script));
	redis_number(&r->removal, 2);
	redis_word(&r->removal, redis_key(redis_reading_track_of(r), "pending", slot, key));
	redis_word(&r->removal, redis_key(redis_reading_track_of(r), "touches", slot, key));
	for (size_t i = 0; i < count; i++) {
		redis_word(&r->removal, entries[i].member);
		redis_word(&r->removal, entries[i].stamp.len ? entries[i].stamp : SLICE(""));
	}
}

static void redis_reading_keep_finished(struct redis_reading *r)
{
	size_t n = 0;
	for (size_t i = 0; i < r->count; i++) {
		if (r->set.marks[r->entries[i].mark].finished)
			r->entries[n++] = r->entries[i];
	}
	r->count = n;
}

int redis_reading_finish(struct marks_reading *reading, struct task_queue *queue)
{
	struct redis_reading *r = redis_reading_of_reading(reading);
	if (!r->in_redis)
		return marks_reading_finish(r->of_store, queue);
	redis_reading_keep_finished(r);
	redis_request_clear(&r->removal);
	for (size_t at = 0; at < r->count;) {
		size_t n = redis_reading_count_of_row(r, at, REMOVED_AT_ONCE);
		redis_reading_put_removal(r, &r->entries[at], n);
		at += n;
	}
	return redis_ask_wait(&r->removal, queue);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void redis_reading_begin_request(struct redis_reading *r, struct redis_request *request,
					void (*answer)(struct redis_request *request,
						       size_t command, const redisReply *reply))
{
	*request = (struct redis_request){.answer = answer, .owner = r};
	redis_request_init(request, redis_reading_track_of(r)->client);
}

struct marks_reading *redis_reading_new(struct marks *marks)
{
	struct redis_reading *r = mem_zalloc(sizeof(*r));
	r->base.marks = marks;
	r->of_store = marks_reading_new(redis_reading_track_of(r)->of_store);
	redis_reading_begin_request(r, &r->scan, redis_reading_on_scan_answer);
	r->scan.takes_errors = true;
	redis_reading_begin_request(r, &r->touches, redis_reading_on_touches_answer);
	redis_reading_begin_request(r, &r->removal, NULL);
	arena_init(&r->arena, PART_MAX_BYTES);
	return &r->base;
}

void redis_reading_free(struct marks_reading *reading)
{
	struct redis_reading *r = redis_reading_of_reading(reading);
	marks_reading_free(r->of_store);
	redis_request_release(&r->scan);
	redis_request_release(&r->touches);
	redis_request_release(&r->removal);
	arena_release(&r->arena);
	mark_set_release(&r->set);
	mem_free(r->entries);
	mem_free(r);
}
