/* Marks are made in Redis, in one round trip; where that fails, in the store. */
#include <hiredis/hiredis.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "base/stats.h"
#include "marks/redis/private.h"

enum { STAMP_BYTES = 48, MEMBER_MAX_BYTES = 128 << 10 };

struct redis_marking {
	struct redis_marks *marks;
	struct marks_marking of;
	struct redis_request request;
	struct buf member;
};

/* ---- Commands -------------------------------------------------------------------------------- */

/* Another one for each marking, whoever makes it: what is removed is just what was read. */
static struct slice redis_marking_make_stamp(const struct redis_marking *m, char to[STAMP_BYTES])
{
	uint64_t lot = atomic_fetch_add(&m->marks->stamps, 1);
	int len = snprintf(to, STAMP_BYTES, "%lld-%016llx", (long long)m->of.now_ms,
			   (unsigned long long)lot);
	return (struct slice){to, (size_t)len};
}

static void redis_marking_put_member(struct redis_marking *m, const struct mark_touch *touch)
{
	buf_clear(&m->member);
	buf_append(&m->member, touch->tenant.data, touch->tenant.len);
	buf_append_char(&m->member, m->marks->options.separator);
	(void)series_set_append(touch->series_set, &m->member); /* has room for any */
	redis_word(&m->request, buf_slice(&m->member));
}

static void redis_marking_put_touches(struct redis_marking *m, const struct mark_touch *touches,
				      size_t count, struct slice stamp)
{
	char key[KEY_MAX_BYTES];
	redis_command(&m->request, SLICE("HSET"));
	redis_word(&m->request, redis_key(m->marks, "touches", touches->slot, key));
	for (size_t i = 0; i < count; i++) {
		redis_marking_put_member(m, &touches[i]);
		redis_word(&m->request, stamp);
	}
	redis_command(&m->request, SLICE("SADD"));
	redis_word(&m->request, redis_key(m->marks, "pending", touches->slot, key));
	for (size_t i = 0; i < count; i++)
		redis_marking_put_member(m, &touches[i]);
}

/* The document's: it lives until nothing more is expected of the slot. A slot that has not ended is
 * touched once a series and process (marks/recent.h), so it lives past its end. */
static void redis_marking_put_ingesting(struct redis_marking *m, struct mark_slot slot)
{
	const struct marks_redis_options *options = &m->marks->options;
	int64_t quiet_ms = slot_ready_ms(slot.slot_s, m->of.now_ms, options->slot_ms,
					 options->quiet_ms, m->of.now_ms) -
			   m->of.now_ms;
	char key[KEY_MAX_BYTES];
	redis_command(&m->request, SLICE("SETEX"));
	redis_word(&m->request, redis_key(m->marks, "ingesting", slot, key));
	redis_number(&m->request, (uint64_t)(quiet_ms + 999) / 1000);
	redis_word(&m->request, SLICE(""));
}

static size_t redis_marking_count_of_one_slot(const struct mark_touch *touches, size_t count)
{
	size_t n = 1;
	while (n < count && mark_slot_compare(&touches[n].slot, &touches->slot) == 0)
		n++;
	return n;
}

static void redis_marking_put_slot(struct redis_marking *m, const struct mark_touch *touches,
				   size_t count, struct slice stamp)
{
	redis_marking_put_ingesting(m, touches->slot);
	for (size_t at = 0; at < count; at += MEMBERS_OF_COMMAND) {
		size_t left = count - at;
		redis_marking_put_touches(m, touches + at,
					  left < MEMBERS_OF_COMMAND ? left : MEMBERS_OF_COMMAND,
					  stamp);
	}
}

/* All or nothing, and with it whether what was there before is there still. */
static void redis_marking_put_all(struct redis_marking *m)
{
	char text[STAMP_BYTES];
	struct slice stamp = redis_marking_make_stamp(m, text);
	redis_request_clear(&m->request);
	redis_command(&m->request, SLICE("MULTI"));
	redis_command(&m->request, SLICE("GET"));
	redis_word(&m->request, slice_of(m->marks->epoch_key));
	for (size_t at = 0; at < m->of.count;) {
		size_t n = redis_marking_count_of_one_slot(m->of.touches + at, m->of.count - at);
		redis_marking_put_slot(m, m->of.touches + at, n, stamp);
		at += n;
	}
	redis_command(&m->request, SLICE("EXEC"));
}

/* ---- Answers --------------------------------------------------------------------------------- */

/* EXEC answers for all commands. A command that failed did so alone. */
static void redis_marking_on_answer(struct redis_request *request, size_t command,
				    const redisReply *reply)
{
	struct redis_marking *m = request->owner;
	if (command + 1 < request->count)
		return;
	if (reply->type != REDIS_REPLY_ARRAY || !reply->elements) {
		request->err = ERR_RETRY;
		return;
	}
	for (size_t i = 0; i < reply->elements; i++) {
		if (reply->element[i]->type == REDIS_REPLY_ERROR)
			request->err = ERR_RETRY;
	}
	(void)redis_epoch_seen(&m->marks->epoch, reply->element[0]);
}

static void redis_marking_on_asked(struct redis_request *request, int err)
{
	struct redis_marking *m = request->owner;
	struct marks *marks = &m->marks->base;
	struct marks_marking of = m->of;
	redis_request_release(&m->request);
	buf_release(&m->member);
	mem_free(m);
	if (err) {
		stat_add(STAT_rollup_redis_missed, 1);
		err = marks_store_mark(marks, &of);
		if (!err)
			return;
	}
	of.done(of.owner, err);
}

/* ---- Begin ----------------------------------------------------------------------------------- */

/* Redis has no place for what only a deletion says, and what is late must not be lost. */
static bool redis_marking_has_any_for_store(const struct redis_marks *marks,
					    const struct marks_marking *marking)
{
	int64_t after_ms = atomic_load(&marks->late_after_ms);
	for (size_t i = 0; i < marking->count; i++) {
		const struct mark_touch *touch = &marking->touches[i];
		if (touch->deleted ||
		    (after_ms && touch->slot.slot_s * 1000 < marking->now_ms - after_ms))
			return true;
	}
	return false;
}

int redis_mark(struct marks *of_all, const struct marks_marking *marking)
{
	struct redis_marks *marks = redis_marks_of(of_all);
	if (!redis_client_is_up(marks->client) || redis_marking_has_any_for_store(marks, marking))
		return marks_store_mark(of_all, marking);
	struct redis_marking *m = mem_zalloc(sizeof(*m));
	*m = (struct redis_marking){.marks = marks,
				    .of = *marking,
				    .request = {.executor = marking->executor,
						.answer = redis_marking_on_answer,
						.done = redis_marking_on_asked,
						.owner = m}};
	redis_request_init(&m->request, marks->client);
	buf_init(&m->member, MEMBER_MAX_BYTES);
	redis_marking_put_all(m);
	redis_ask(&m->request);
	return 0;
}
