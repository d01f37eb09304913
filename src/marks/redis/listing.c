/* Which slots have marks: first those in the store, then those in Redis, by SCAN. */
#include <hiredis/hiredis.h>

#include "base/mem.h"
#include "marks/redis/private.h"
#include "wire/number.h"

enum { SCAN_KEYS = 1000, PAGE_SLOTS = 20000, CURSOR_BYTES = 24 };

struct redis_listing {
	struct marks_listing base;
	struct marks_listing *of_store;
	struct redis_request request;
	bool in_redis;
	char cursor[CURSOR_BYTES];
	struct mark_slot *slots;
	size_t count, room;
};

static struct redis_marks *redis_listing_track_of(const struct redis_listing *l)
{
	return redis_marks_of(l->base.marks);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static bool redis_listing_take_number(struct slice *rest, uint64_t max, uint64_t *number)
{
	const char *end = number_scan_digits(rest->data, rest->data + rest->len, number);
	if (end == rest->data || *number > max)
		return false;
	rest->len -= (size_t)(end - rest->data);
	rest->data = end;
	return true;
}

/* Marks of slots of another width are of no use: they are made again. */
static bool redis_listing_parse_key(const struct redis_listing *l, struct slice key,
				    struct mark_slot *slot)
{
	const struct marks_redis_options *options = &redis_listing_track_of(l)->options;
	size_t kind = sizeof("pending") - 1 + 1;
	uint64_t partition, slot_s;
	if (key.len <= kind)
		return false;
	key = (struct slice){key.data + kind, key.len - kind};
	if (!redis_listing_take_number(&key, UINT32_MAX, &partition) || !key.len ||
	    key.data[0] != options->separator)
		return false;
	key = (struct slice){key.data + 1, key.len - 1};
	if (!redis_listing_take_number(&key, INT64_MAX / 1000, &slot_s) || key.len)
		return false;
	*slot = (struct mark_slot){(int64_t)slot_s, (uint32_t)partition};
	return (int64_t)slot_s * 1000 % options->slot_ms == 0;
}

static void redis_listing_add_slot(struct redis_listing *l, struct mark_slot slot)
{
	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : SCAN_KEYS;
		l->slots = mem_resize_array(l->slots, l->room, sizeof(*l->slots));
	}
	l->slots[l->count++] = slot;
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* One that was emptied has no marks, which does not say that all is rolled up. */
static void redis_listing_on_answer(struct redis_request *request, size_t command,
				    const redisReply *reply)
{
	struct redis_listing *l = request->owner;
	if (command == 0) {
		if (!redis_epoch_seen(&redis_listing_track_of(l)->epoch, reply))
			request->err = ERR_RETRY;
		return;
	}
	if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
	    reply->element[0]->type != REDIS_REPLY_STRING) {
		request->err = ERR_RETRY;
		return;
	}
	snprintf(l->cursor, sizeof(l->cursor), "%s", reply->element[0]->str);
	const redisReply *keys = reply->element[1];
	for (size_t i = 0; i < keys->elements; i++) {
		struct slice key = {keys->element[i]->str, keys->element[i]->len};
		struct mark_slot slot;
		if (redis_listing_parse_key(l, key, &slot))
			redis_listing_add_slot(l, slot);
	}
}

static int redis_listing_scan(struct redis_listing *l, struct task_queue *queue)
{
	char pattern[KEY_MAX_BYTES];
	int len = snprintf(pattern, sizeof(pattern), "pending%c*",
			   redis_listing_track_of(l)->options.separator);
	redis_request_clear(&l->request);
	redis_command(&l->request, 2);
	redis_word(&l->request, SLICE("GET"));
	redis_word(&l->request, slice_of(redis_listing_track_of(l)->epoch_key));
	redis_command(&l->request, 6);
	redis_word(&l->request, SLICE("SCAN"));
	redis_word(&l->request, slice_of(l->cursor));
	redis_word(&l->request, SLICE("MATCH"));
	redis_word(&l->request, (struct slice){pattern, (size_t)len});
	redis_word(&l->request, SLICE("COUNT"));
	redis_number(&l->request, SCAN_KEYS);
	return redis_ask_wait(&l->request, queue);
}

static int redis_listing_by_slot(const void *a, const void *b)
{
	return mark_slot_compare(a, b);
}

/* SCAN may give a key more than once. */
static void redis_listing_drop_doubles(struct redis_listing *l)
{
	size_t n = 0;
	if (l->count)
		qsort(l->slots, l->count, sizeof(*l->slots), redis_listing_by_slot);
	for (size_t i = 0; i < l->count; i++) {
		if (!n || redis_listing_by_slot(&l->slots[n - 1], &l->slots[i]) != 0)
			l->slots[n++] = l->slots[i];
	}
	l->count = n;
}

static bool redis_listing_has_more(const struct redis_listing *l)
{
	return strcmp(l->cursor, "0") != 0;
}

static int redis_listing_scan_page(struct redis_listing *l, struct task_queue *queue)
{
	l->count = 0;
	int err = redis_listing_scan(l, queue);
	while (!err && redis_listing_has_more(l) && l->count < PAGE_SLOTS)
		err = redis_listing_scan(l, queue);
	redis_listing_drop_doubles(l);
	l->base.slots = l->slots;
	l->base.count = err ? 0 : l->count;
	l->base.more = redis_listing_has_more(l);
	return err;
}

/* Of the store, which has been asked; a page without any is none. */
static int redis_listing_take_store_page(struct redis_listing *l, struct task_queue *queue, int err)
{
	bool more;
	l->base.slots = (struct mark_slot *)marks_listing_page(l->of_store, &l->base.count, &more);
	l->base.more = true;
	if (err || l->base.count || more)
		return err;
	l->in_redis = true;
	snprintf(l->cursor, sizeof(l->cursor), "0");
	return redis_listing_scan_page(l, queue);
}

int redis_listing_begin(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms)
{
	struct redis_listing *l = CONTAINER_OF(listing, struct redis_listing, base);
	l->in_redis = false;
	return redis_listing_take_store_page(l, queue,
					     marks_listing_begin(l->of_store, queue, now_ms));
}

int redis_listing_next(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms)
{
	struct redis_listing *l = CONTAINER_OF(listing, struct redis_listing, base);
	size_t count;
	bool more;
	(void)marks_listing_page(l->of_store, &count, &more);
	if (!l->in_redis && more)
		return redis_listing_take_store_page(
			l, queue, marks_listing_next(l->of_store, queue, now_ms));
	if (!l->in_redis)
		snprintf(l->cursor, sizeof(l->cursor), "0");
	l->in_redis = true;
	return redis_listing_scan_page(l, queue);
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct marks_listing *redis_listing_new(struct marks *marks)
{
	struct redis_listing *l = mem_zalloc(sizeof(*l));
	l->base.marks = marks;
	l->of_store = marks_listing_new(redis_listing_track_of(l)->of_store);
	l->request = (struct redis_request){.answer = redis_listing_on_answer, .owner = l};
	redis_request_init(&l->request, redis_listing_track_of(l)->client);
	return &l->base;
}

void redis_listing_free(struct marks_listing *listing)
{
	struct redis_listing *l = CONTAINER_OF(listing, struct redis_listing, base);
	marks_listing_free(l->of_store);
	redis_request_release(&l->request);
	mem_free(l->slots);
	mem_free(l);
}
