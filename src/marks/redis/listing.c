/* Which slots have marks: first those in the store, then those in Redis, by SCAN. */
#include <hiredis/hiredis.h>

#include "base/mem.h"
#include "marks/redis/private.h"
#include "wire/number.h"

enum { SCAN_KEYS = 1000, PAGE_SLOTS = 20000 };

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
static bool redis_listing_parse_key(const struct marks_redis_options *options, struct slice key,
				    struct mark_slot *slot)
{
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

/* ---- Pages ----------------------------------------------------------------------------------- */

static bool redis_listing_take_keys(struct marks_listing *l, const redisReply *reply)
{
	const struct marks_redis_options *options = &redis_marks_of(l->marks)->options;
	if (!redis_reply_is_scan(reply, &l->cursor))
		return false;
	const redisReply *keys = reply->element[1];
	for (size_t i = 0; i < keys->elements; i++) {
		struct slice key = {keys->element[i]->str, keys->element[i]->len};
		struct mark_slot slot;
		if (redis_listing_parse_key(options, key, &slot))
			marks_listing_add(l, slot);
	}
	return true;
}

/* One that was emptied has no marks, which does not say that all is rolled up. */
static void redis_listing_on_answer(struct redis_request *request, size_t command,
				    const redisReply *reply)
{
	struct marks_listing *l = request->owner;
	bool taken = command == 1 ? redis_listing_take_keys(l, reply)
				  : redis_epoch_seen(&redis_marks_of(l->marks)->epoch, reply);
	if (!taken)
		request->err = ERR_RETRY;
}

static void redis_listing_put_scan(const struct redis_marks *marks, struct redis_request *request,
				   uint64_t cursor)
{
	char pattern[KEY_MAX_BYTES];
	int len = snprintf(pattern, sizeof(pattern), "pending%c*", marks->options.separator);
	redis_request_clear(request);
	redis_command(request, SLICE("GET"));
	redis_word(request, slice_of(marks->epoch_key));
	redis_command(request, SLICE("SCAN"));
	redis_number(request, cursor);
	redis_word(request, SLICE("MATCH"));
	redis_word(request, (struct slice){pattern, (size_t)len});
	redis_word(request, SLICE("COUNT"));
	redis_number(request, SCAN_KEYS);
}

static int redis_listing_by_slot(const void *a, const void *b)
{
	return mark_slot_compare(a, b);
}

/* SCAN may give a key more than once. */
static void redis_listing_drop_doubles(struct marks_listing *l)
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

static int redis_listing_scan(struct marks_listing *l, struct task_queue *queue)
{
	struct redis_marks *marks = redis_marks_of(l->marks);
	struct redis_request request = {.answer = redis_listing_on_answer, .owner = l};
	int err = 0;
	redis_request_init(&request, marks->client);
	do {
		redis_listing_put_scan(marks, &request, l->cursor);
		err = redis_ask_wait(&request, queue);
		l->over = !l->cursor;
	} while (!err && !l->over && l->count < PAGE_SLOTS);
	redis_request_release(&request);
	redis_listing_drop_doubles(l);
	return err;
}

/* A page of the store without any slots is none. */
int redis_list(struct marks_listing *listing, struct task_queue *queue, int64_t now_ms)
{
	if (!listing->store_over) {
		int err = marks_store_list(listing, queue, now_ms);
		listing->store_over = listing->over;
		listing->over = false;
		if (err || listing->count || !listing->store_over)
			return err;
	}
	return redis_listing_scan(listing, queue);
}
