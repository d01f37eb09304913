/* Marks of a slot: first those in the store, part by part, then those in Redis.
 *
 * A part of Redis: EXISTS and SSCAN of some partitions in one round trip, the touches of what they
 * gave in a second one. A touch that comes between the two is read with the member; one that comes
 * later makes the removal leave the mark. */
#include <hiredis/hiredis.h>

#include "base/mem.h"
#include "marks/redis/private.h"
#include "marks/set.h"
#include "wire/number.h"

enum {
	ROWS_AT_ONCE = 64,
	PART_MARKS = 16384,
	SCAN_LEAST = 64,
	SCAN_MOST = 4096,
	REMOVED_AT_ONCE = 500,
	PART_MAX_BYTES = 256 << 20,
};

struct redis_reading_row {
	uint64_t cursor;
	bool over, ingesting;
};

/* An entry of a row: a member, its touch as it was read, and the mark that it is. */
struct redis_reading_entry {
	struct slice member, stamp;
	uint32_t row, mark;
};

struct redis_reading {
	struct marks_reading *of;
	struct redis_marks *marks;
	int64_t now_ms;
	struct redis_reading_row rows[MARKS_READING_MAX]; /* as the reading's slots */
	uint32_t asked[ROWS_AT_ONCE];                     /* the rows that the scan asks for */
	struct redis_request request;
	struct arena arena; /* members and touches of the part */
	struct redis_reading_entry *entries;
	size_t count, room;
	size_t stamped; /* of the entries */
	struct mark_set set;
};

/* ---- Parts ----------------------------------------------------------------------------------- */

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
	const char *at = memchr(member.data, r->marks->options.separator, member.len);
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
	struct slice name = redis_key(r->marks, "pending", r->of->slots[entry->row], key);
	marks_reading_skip(r->of, "the member \"" SHOWN "\" of " SHOWN " in Redis",
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

static int redis_reading_ask(struct redis_reading *r, struct task_queue *queue,
			     void (*answer)(struct redis_request *request, size_t command,
					    const redisReply *reply))
{
	r->request.answer = answer;
	return redis_ask_wait(&r->request, queue);
}

/* How many entries from `from` on are of one row; one command takes `max` of them. */
static size_t redis_reading_count_of_row(const struct redis_reading *r, size_t from, size_t max)
{
	size_t n = 1;
	while (n < max && from + n < r->count && r->entries[from + n].row == r->entries[from].row)
		n++;
	return n;
}

/* Each command is answered with as many touches as it has members. */
static void redis_reading_on_touches_answer(struct redis_request *request, UNUSED size_t command,
					    const redisReply *reply)
{
	struct redis_reading *r = request->owner;
	size_t want = redis_reading_count_of_row(r, r->stamped, MEMBERS_OF_COMMAND);
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != want)
		request->err = ERR_RETRY;
	for (size_t i = 0; i < reply->elements && !request->err; i++) {
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

static int redis_reading_read_touches(struct redis_reading *r, struct task_queue *queue)
{
	char key[KEY_MAX_BYTES];
	redis_request_clear(&r->request);
	r->stamped = 0;
	for (size_t at = 0; at < r->count;) {
		size_t n = redis_reading_count_of_row(r, at, MEMBERS_OF_COMMAND);
		struct mark_slot slot = r->of->slots[r->entries[at].row];
		redis_command(&r->request, SLICE("HMGET"));
		redis_word(&r->request, redis_key(r->marks, "touches", slot, key));
		for (size_t end = at + n; at < end; at++)
			redis_word(&r->request, r->entries[at].member);
	}
	int err = redis_reading_ask(r, queue, redis_reading_on_touches_answer);
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
	if (!redis_reply_is_scan(reply, &r->rows[row].cursor))
		return ERR_RETRY;
	const redisReply *members = reply->element[1];
	int err = 0;
	r->rows[row].over = !r->rows[row].cursor;
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
		struct slice name = redis_key(r->marks, "pending", r->of->slots[row], key);
		r->rows[row].over = true;
		marks_reading_skip(r->of, SHOWN " in Redis, which is no set", SHOWN_OF(name));
	} else if (reply->type == REDIS_REPLY_INTEGER) {
		r->rows[row].ingesting = reply->integer;
	} else {
		int err = redis_reading_take_members(r, row, reply);
		if (err)
			request->err = err;
	}
}

static size_t redis_reading_choose_rows(struct redis_reading *r)
{
	size_t n = 0;
	for (uint32_t i = 0; i < r->of->slot_count && n < ROWS_AT_ONCE; i++) {
		if (!r->rows[i].over)
			r->asked[n++] = i;
	}
	return n;
}

static uint64_t redis_reading_members_of(size_t rows)
{
	size_t n = PART_MARKS / rows;
	return n < SCAN_LEAST ? SCAN_LEAST : n > SCAN_MOST ? SCAN_MOST : n;
}

static void redis_reading_put_scan(struct redis_reading *r, uint32_t row, uint64_t members)
{
	char key[KEY_MAX_BYTES];
	redis_command(&r->request, SLICE("EXISTS"));
	redis_word(&r->request, redis_key(r->marks, "ingesting", r->of->slots[row], key));
	redis_command(&r->request, SLICE("SSCAN"));
	redis_word(&r->request, redis_key(r->marks, "pending", r->of->slots[row], key));
	redis_number(&r->request, r->rows[row].cursor);
	redis_word(&r->request, SLICE("COUNT"));
	redis_number(&r->request, members);
}

static int redis_reading_scan_rows(struct redis_reading *r, struct task_queue *queue, size_t asked)
{
	redis_request_clear(&r->request);
	for (size_t i = 0; i < asked; i++)
		redis_reading_put_scan(r, r->asked[i], redis_reading_members_of(asked));
	r->request.takes_errors = true;
	int err = redis_reading_ask(r, queue, redis_reading_on_scan_answer);
	r->request.takes_errors = false;
	return err;
}

/* Rows that are over are asked no more. */
static int redis_reading_read_part(struct redis_reading *r, struct task_queue *queue)
{
	size_t asked;
	int err = 0;
	r->count = 0;
	arena_reset(&r->arena);
	mark_set_clear(&r->set);
	while (!err && !r->count && (asked = redis_reading_choose_rows(r)) > 0)
		err = redis_reading_scan_rows(r, queue, asked);
	if (!err && r->count)
		err = redis_reading_read_touches(r, queue);
	if (err)
		return err;
	r->of->part = r->set.marks;
	r->of->count = r->set.count;
	r->of->over = !redis_reading_choose_rows(r);
	return 0;
}

static struct redis_reading *redis_reading_begin(struct marks_reading *reading)
{
	struct redis_reading *r = mem_zalloc(sizeof(*r));
	r->of = reading;
	r->marks = redis_marks_of(reading->marks);
	r->request.owner = r;
	redis_request_init(&r->request, r->marks->client);
	arena_init(&r->arena, PART_MAX_BYTES);
	return r;
}

/* A part of the store without any marks is none. */
int redis_read(struct marks_reading *reading, struct task_queue *queue, int64_t now_ms)
{
	if (!reading->store_over) {
		int err = marks_store_read(reading, queue, now_ms);
		reading->store_over = reading->over;
		reading->over = false;
		if (err || reading->count || reading->unread || !reading->store_over)
			return err;
	}
	if (!reading->of_redis)
		reading->of_redis = redis_reading_begin(reading);
	reading->of_redis->now_ms = now_ms;
	return redis_reading_read_part(reading->of_redis, queue);
}

void redis_reading_release(struct marks_reading *reading)
{
	struct redis_reading *r = reading->of_redis;
	redis_request_release(&r->request);
	arena_release(&r->arena);
	mark_set_release(&r->set);
	mem_free(r->entries);
	mem_free(r);
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
	struct mark_slot slot = r->of->slots[entries->row];
	redis_command(&r->request, SLICE("EVAL"));
	redis_word(&r->request, SLICE(script));
	redis_number(&r->request, 2);
	redis_word(&r->request, redis_key(r->marks, "pending", slot, key));
	redis_word(&r->request, redis_key(r->marks, "touches", slot, key));
	for (size_t i = 0; i < count; i++) {
		redis_word(&r->request, entries[i].member);
		redis_word(&r->request, entries[i].stamp.len ? entries[i].stamp : SLICE(""));
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

int redis_finish(struct marks_reading *reading, struct task_queue *queue)
{
	struct redis_reading *r = reading->of_redis;
	if (!r)
		return marks_store_finish(reading, queue);
	redis_reading_keep_finished(r);
	redis_request_clear(&r->request);
	for (size_t at = 0; at < r->count;) {
		size_t n = redis_reading_count_of_row(r, at, REMOVED_AT_ONCE);
		redis_reading_put_removal(r, &r->entries[at], n);
		at += n;
	}
	return redis_reading_ask(r, queue, NULL);
}
