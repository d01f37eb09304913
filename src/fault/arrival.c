#include "fault/arrival.h"

#include "fault/pack.h"
#include "base/put.h"

enum {
	ARRIVAL_VERSION = 1,
	KIND_VOID = 0,
	KIND_REPORT = 1,
	TAG_DURATION = 32,
	TAG_STATEMENTS = 33,
	TAG_ATTACHMENTS = 34,
};

/* ---- Writing --------------------------------------------------------------------------------- */

static void arrival_put_number(struct buf *out, unsigned tag, int64_t number)
{
	uint8_t bytes[10];
	if (number < 0)
		return;
	buf_put_varint(out, tag);
	buf_put_text(out, (struct slice){(char *)bytes, varint_put(bytes, (uint64_t)number)});
}

static void arrival_put_facts(struct buf *out, const struct fault_facts *facts)
{
	int64_t attachments = facts->attachments > 0 ? facts->attachments : -1;
	size_t count = (facts->duration_us >= 0) + (size_t)(facts->statements >= 0) +
		       (size_t)(attachments >= 0);
	for (size_t i = 0; i < FAULT_TEXTS; i++)
		count += facts->texts[i].len > 0;
	buf_put_varint(out, count);
	for (size_t i = 0; i < FAULT_TEXTS; i++) {
		if (!facts->texts[i].len)
			continue;
		buf_put_varint(out, i);
		buf_put_text(out, facts->texts[i]);
	}
	arrival_put_number(out, TAG_DURATION, facts->duration_us);
	arrival_put_number(out, TAG_STATEMENTS, facts->statements);
	arrival_put_number(out, TAG_ATTACHMENTS, attachments);
}

void fault_arrival_encode(const struct fault_arrival *arrival, struct buf *out)
{
	buf_append_char(out, ARRIVAL_VERSION);
	buf_append_char(out, arrival->is_void ? KIND_VOID : KIND_REPORT);
	buf_append(out, &arrival->date_us, 8);
	if (arrival->is_void)
		return;
	buf_append(out, &arrival->digest, 16);
	buf_put_text(out, arrival->id);
	arrival_put_facts(out, &arrival->facts);
	buf_put_varint(out, arrival->dictionary);
	buf_put_varint(out, arrival->body_bytes);
	buf_append(out, arrival->packed.data, arrival->packed.len);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int64_t arrival_number_of(struct slice bytes)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint64_t number = cursor_varint(&c);
	return c.bad || number > INT64_MAX ? -1 : (int64_t)number;
}

static void arrival_take_fact(struct cursor *c, struct fault_facts *facts)
{
	uint64_t tag = cursor_varint(c);
	struct slice bytes = cursor_text(c, fault_text_max_bytes(tag));
	if (tag < FAULT_TEXTS)
		facts->texts[tag] = bytes;
	else if (tag == TAG_DURATION)
		facts->duration_us = arrival_number_of(bytes);
	else if (tag == TAG_STATEMENTS)
		facts->statements = arrival_number_of(bytes);
	else if (tag == TAG_ATTACHMENTS)
		facts->attachments = larger_of(arrival_number_of(bytes), 0);
}

static int arrival_take_report(struct cursor *c, struct fault_arrival *arrival)
{
	arrival->digest.low = cursor_u64(c);
	arrival->digest.high = cursor_u64(c);
	arrival->id = cursor_text(c, FAULT_ID_MAX_BYTES);
	uint64_t count = cursor_varint(c);
	if (count > FAULT_FACTS_MAX)
		return ERR_DAMAGED;
	for (uint64_t i = 0; i < count && !c->bad; i++)
		arrival_take_fact(c, &arrival->facts);
	arrival->dictionary = cursor_varint(c);
	arrival->body_bytes = cursor_varint(c);
	arrival->packed = (struct slice){(const char *)c->at, cursor_left(c)};
	if (c->bad || !arrival->id.len || arrival->body_bytes > FAULT_BODY_MAX_BYTES)
		return ERR_DAMAGED;
	return 0;
}

int fault_arrival_decode(struct slice bytes, struct fault_arrival *arrival)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint8_t version = cursor_u8(&c), kind = cursor_u8(&c);
	*arrival = (struct fault_arrival){.facts = {.duration_us = -1, .statements = -1}};
	for (size_t i = 0; i < FAULT_TEXTS; i++)
		arrival->facts.texts[i] = SLICE("");
	if (c.bad)
		return ERR_DAMAGED;
	if (version != ARRIVAL_VERSION)
		return ERR_VERSION;
	arrival->date_us = (int64_t)cursor_u64(&c);
	arrival->is_void = kind == KIND_VOID;
	if (arrival->is_void)
		return c.bad ? ERR_DAMAGED : 0;
	return kind == KIND_REPORT ? arrival_take_report(&c, arrival) : ERR_DAMAGED;
}

int fault_arrival_keep(struct fault_arrival *arrival, struct arena *arena)
{
	arrival->packed = SLICE("");
	arrival->id = arena_copy(arena, arrival->id);
	return arrival->id.data ? fault_facts_keep(&arrival->facts, arena) : ERR_LIMIT;
}

int fault_arrival_keep_listed(struct fault_arrival *arrival, struct arena *arena)
{
	for (size_t i = FAULT_TEXTS_LISTED; i < FAULT_TEXTS; i++)
		arrival->facts.texts[i] = SLICE("");
	return fault_arrival_keep(arrival, arena);
}

int fault_body_unpack(const struct fault_arrival *arrival, struct buf *out)
{
	return fault_unpack(arrival->dictionary, arrival->packed, arrival->body_bytes, out);
}
