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

static struct redis_marks *track_of(const struct redis_listing *l)
{
	return redis_marks_of(l->base.track);
}

/* ---- Keys ------------------------------------------------------------------------------------ */

static bool take_number(struct slice *rest, uint64_t max, uint64_t *number)
{
	const char *end = number_scan_digits(rest->data, rest->data + rest->len, number);
	if (end == rest->data || *number > max)
		return false;
	rest->len -= (size_t)(end - rest->data);
	rest->data = end;
	return true;
}

/* Of slots of another width the marks are of no use: they are made anew. */
static bool parse_key(const struct redis_listing *l, struct slice key, struct mark_slot *slot)
{
	const struct marks_redis_options *options = &track_of(l)->options;
	size_t kind = sizeof("pending") - 1 + 1;
	uint64_t partition, slot_s;
	if (key.len <= kind)
		return false;
	key = (struct slice){key.data + kind, key.len - kind};
	if (!take_number(&key, UINT32_MAX, &partition) || !key.len ||
	    key.data[0] != options->separator)
		return false;
	key = (struct slice){key.data + 1, key.len - 1};
	if (!take_number(&key, INT64_MAX / 1000, &slot_s) || key.len)
		return false;
	*slot = (struct mark_slot){(int64_t)slot_s, (uint32_t)partition};
	return (int64_t)slot_s * 1000 % options->slot_ms == 0;
}

static void add_slot(struct redis_listing *l, struct mark_slot slot)
{
	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : SCAN_KEYS;
		l->slots = mem_resize_array(l->slots, l->room, sizeof(*l->slots));
	}
	l->slots[l->count++] = slot;
}

/* ---- Pages ----------------------------------------------------------------------------------- */

/* One that was emptied has no marks, which does not say that all is rolled up. */
static void on_answer(struct redis_request *request, size_t command, const redisReply *reply)
{
	struct redis_listing *l = request->owner;
	if (command == 0) {
		if (!redis_epoch_seen(&track_of(l)->epoch, reply))
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
		if (parse_key(l, key, &slot))
			add_slot(l, slot);
	}
}

static int scan(struct redis_listing *l, struct task_queue *queue)
{
	char pattern[KEY_MAX_BYTES];
	int len = snprintf(pattern, sizeof(pattern), "pending%c*", track_of(l)->options.separator);
	redis_request_clear(&l->request);
	redis_command(&l->request, 2);
	redis_word(&l->request, SLICE("GET"));
	redis_word(&l->request, slice_of(track_of(l)->epoch_key));
	redis_command(&l->request, 6);
	redis_word(&l->request, SLICE("SCAN"));
	redis_word(&l->request, slice_of(l->cursor));
	redis_word(&l->request, SLICE("MATCH"));
	redis_word(&l->request, (struct slice){pattern, (size_t)len});
	redis_word(&l->request, SLICE("COUNT"));
	redis_number(&l->request, SCAN_KEYS);
	return redis_ask_wait(&l->request, queue);
}

static int by_slot(const void *a, const void *b)
{
	return mark_slot_compare(a, b);
}

/* SCAN may give a key more than once. */
static void drop_doubles(struct redis_listing *l)
{
	size_t n = 0;
	if (l->count)
		qsort(l->slots, l->count, sizeof(*l->slots), by_slot);
	for (size_t i = 0; i < l->count; i++) {
		if (!n || by_slot(&l->slots[n - 1], &l->slots[i]) != 0)
			l->slots[n++] = l->slots[i];
	}
	l->count = n;
}

static bool has_more(const struct redis_listing *l)
{
	return strcmp(l->cursor, "0") != 0;
}

static int scan_page(struct redis_listing *l, struct task_queue *queue)
{
	l->count = 0;
	int err = scan(l, queue);
	while (!err && has_more(l) && l->count < PAGE_SLOTS)
		err = scan(l, queue);
	drop_doubles(l);
	l->base.slots = l->slots;
	l->base.count = err ? 0 : l->count;
	l->base.more = has_more(l);
	return err;
}

/* Of the store, which has been asked; a page without any is none. */
static int take_store_page(struct redis_listing *l, struct task_queue *queue, int err)
{
	bool more;
	l->base.slots = (struct mark_slot *)marks_listing_page(l->of_store, &l->base.count, &more);
	l->base.more = true;
	if (err || l->base.count || more)
		return err;
	l->in_redis = true;
	snprintf(l->cursor, sizeof(l->cursor), "0");
	return scan_page(l, queue);
}

int redis_listing_begin(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms)
{
	struct redis_listing *l = CONTAINER_OF(listing, struct redis_listing, base);
	l->in_redis = false;
	return take_store_page(l, queue, marks_listing_begin(l->of_store, queue, now_ms));
}

int redis_listing_next(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms)
{
	struct redis_listing *l = CONTAINER_OF(listing, struct redis_listing, base);
	size_t count;
	bool more;
	(void)marks_listing_page(l->of_store, &count, &more);
	if (!l->in_redis && more)
		return take_store_page(l, queue, marks_listing_next(l->of_store, queue, now_ms));
	if (!l->in_redis)
		snprintf(l->cursor, sizeof(l->cursor), "0");
	l->in_redis = true;
	return scan_page(l, queue);
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct marks_listing *redis_listing_new(struct marks *track)
{
	struct redis_listing *l = mem_zalloc(sizeof(*l));
	l->base.track = track;
	l->of_store = marks_listing_new(track_of(l)->of_store);
	l->request = (struct redis_request){.answer = on_answer, .owner = l};
	redis_request_init(&l->request, track_of(l)->client);
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
