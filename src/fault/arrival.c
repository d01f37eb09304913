#include "fault/arrival.h"

#include <pthread.h>
#include <zstd.h>

#include "fault/put.h"

enum {
	ARRIVAL_VERSION = 1,
	KIND_VOID = 0,
	KIND_REPORT = 1,
	TAG_DURATION = 32,
	TAG_STATEMENTS = 33,
	TAG_ATTACHMENTS = 34,
	PACK_LEVEL = 3,
};

/* ---- Writing --------------------------------------------------------------------------------- */

static void arrival_put_number(struct buf *out, unsigned tag, int64_t number)
{
	uint8_t bytes[10];
	if (number < 0)
		return;
	fault_put_varint(out, tag);
	fault_put_text(out, (struct slice){(char *)bytes, varint_put(bytes, (uint64_t)number)});
}

static void arrival_put_facts(struct buf *out, const struct fault_facts *facts)
{
	int64_t attachments = facts->attachments > 0 ? facts->attachments : -1;
	size_t count = (facts->duration_us >= 0) + (size_t)(facts->statements >= 0) +
		       (size_t)(attachments >= 0);
	for (size_t i = 0; i < FAULT_TEXTS; i++)
		count += facts->texts[i].len > 0;
	fault_put_varint(out, count);
	for (size_t i = 0; i < FAULT_TEXTS; i++) {
		if (!facts->texts[i].len)
			continue;
		fault_put_varint(out, i);
		fault_put_text(out, facts->texts[i]);
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
	fault_put_text(out, arrival->id);
	arrival_put_facts(out, &arrival->facts);
	fault_put_varint(out, arrival->dictionary);
	fault_put_varint(out, arrival->body_bytes);
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
	struct slice bytes = fault_take_text(c, FAULT_CONTEXT_MAX_BYTES);
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
	arrival->id = fault_take_text(c, FAULT_ID_MAX_BYTES);
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

/* ---- Bodies ---------------------------------------------------------------------------------- */

/* The dictionary that is part of the program (tools/dictionary/make.py). */
enum { DICTIONARY_SHIPPED = 1 };
extern const char fault_dictionary_1[];
extern const size_t fault_dictionary_1_bytes;

/* A thread packs again and again: what zstd needs for it is kept until the thread ends. */
static pthread_key_t arrival_packers;
static pthread_once_t arrival_once = PTHREAD_ONCE_INIT;
static ZSTD_CDict *arrival_packing; /* all threads read these two */
static ZSTD_DDict *arrival_unpacking;

static void arrival_free_packer(void *packer)
{
	ZSTD_freeCCtx(packer);
}

static void arrival_make_once(void)
{
	int err = pthread_key_create(&arrival_packers, arrival_free_packer);
	arrival_packing =
		ZSTD_createCDict(fault_dictionary_1, fault_dictionary_1_bytes, PACK_LEVEL);
	arrival_unpacking = ZSTD_createDDict(fault_dictionary_1, fault_dictionary_1_bytes);
	ASSERT(!err && arrival_packing && arrival_unpacking);
}

static ZSTD_CCtx *arrival_packer(void)
{
	pthread_once(&arrival_once, arrival_make_once);
	ZSTD_CCtx *packer = pthread_getspecific(arrival_packers);
	if (packer)
		return packer;
	packer = ZSTD_createCCtx();
	ASSERT(packer && !pthread_setspecific(arrival_packers, packer));
	return packer;
}

uint64_t fault_body_pack(struct slice body, struct buf *packed)
{
	size_t bound = ZSTD_compressBound(body.len);
	char *to = buf_reserve(packed, bound);
	if (!to)
		return DICTIONARY_SHIPPED;
	ZSTD_CCtx *packer = arrival_packer();
	size_t len =
		ZSTD_compress_usingCDict(packer, to, bound, body.data, body.len, arrival_packing);
	ASSERT(!ZSTD_isError(len)); /* there is room for the worst */
	packed->len += len;
	return DICTIONARY_SHIPPED;
}

/* The bytes that came out, or zstd's error. */
static size_t arrival_unpack(const struct fault_arrival *arrival, char *to, size_t want)
{
	struct slice packed = arrival->packed;
	ZSTD_DCtx *unpacker = ZSTD_createDCtx();
	ASSERT(unpacker);
	pthread_once(&arrival_once, arrival_make_once);
	size_t len = ZSTD_decompress_usingDDict(unpacker, to, want, packed.data, packed.len,
						arrival->dictionary ? arrival_unpacking : NULL);
	ZSTD_freeDCtx(unpacker);
	return len;
}

int fault_body_unpack(const struct fault_arrival *arrival, struct buf *out)
{
	if (arrival->dictionary > DICTIONARY_SHIPPED)
		return ERR_VERSION;
	size_t want = (size_t)arrival->body_bytes;
	char *to = buf_reserve(out, want);
	if (!to)
		return ERR_LIMIT;
	size_t len = arrival_unpack(arrival, to, want);
	if (ZSTD_isError(len) || len != want)
		return ERR_DAMAGED;
	out->len += len;
	return 0;
}
