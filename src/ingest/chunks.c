#include "ingest/chunks.h"

#include "base/grow.h"
#include "base/stats.h"
#include "model/series.h"

enum {
	CHUNKS_ARENA_MAX_BYTES = 256 << 20,
	/* A damaged frame costs a checksum of what it says is its length. */
	CHUNKS_DAMAGED_MAX = 64,
	CHUNKS_V1_HEAD_BYTES = 4,
};

void chunks_batch_init(struct chunks_batch *batch)
{
	*batch = (struct chunks_batch){.item_count = 0};
	arena_init(&batch->arena, CHUNKS_ARENA_MAX_BYTES);
}

void chunks_batch_release(struct chunks_batch *batch)
{
	arena_release(&batch->arena);
	mem_free(batch->items);
	mem_free(batch->chunks);
}

bool chunks_are_frames(struct slice body)
{
	return body.len && body.data[0];
}

/* ---- Chunks and items ------------------------------------------------------------------------ */

struct chunks_item *chunks_batch_add_item(struct chunks_batch *batch)
{
	GROW(batch->items, batch->item_room, batch->item_count + 1);
	struct chunks_item *item = &batch->items[batch->item_count++];
	*item = (struct chunks_item){.first = batch->chunk_count};
	return item;
}

static const char *chunks_keep_sentence(struct chunks_batch *batch, const struct errbuf *why)
{
	struct slice kept = arena_copy(&batch->arena, slice_of(why->text));
	return kept.data ? kept.data : "it is wrong, and there is no memory left to say how";
}

static void chunks_refuse(struct chunks_batch *batch, struct chunks_item *item,
			  const struct errbuf *why)
{
	item->sentence = chunks_keep_sentence(batch, why);
	stat_add(STAT_chunks_refused, 1);
}

int chunks_batch_check(struct slice tenant, const struct stream_names *names, struct errbuf *why)
{
	if (!tenant_valid(tenant))
		return errbuf_set(why, ERR_INVALID, "\"" SHOWN "\" cannot be the name of a tenant",
				  SHOWN_OF(tenant));
	return stream_names_check(names, why);
}

void chunks_batch_add(struct chunks_batch *batch, const struct stream_chunk *chunk)
{
	GROW(batch->chunks, batch->chunk_room, batch->chunk_count + 1);
	batch->chunks[batch->chunk_count++] = *chunk;
	batch->items[batch->item_count - 1].count++;
}

static void chunks_add(struct chunks_batch *batch, struct slice tenant,
		       const struct chunk_frame *frame)
{
	const struct stream_chunk chunk = {
		.id = {tenant, frame->fields.names, frame->fields.incarnation}, .frame = *frame};
	chunks_batch_add(batch, &chunk);
}

static int chunks_too_many(struct errbuf *e)
{
	return errbuf_set(e, ERR_LIMIT,
			  "there are more than %d chunks; none of them was taken: send them in "
			  "several requests",
			  STREAM_CHUNKS_MAX);
}

/* ---- Frames ---------------------------------------------------------------------------------- */

static void chunks_add_frame(struct chunks_batch *batch, const struct chunk_frame *frame,
			     struct slice tenant)
{
	struct chunks_item *item = chunks_batch_add_item(batch);
	struct errbuf why = {""};
	item->sequence_id = frame->fields.sequence_id;
	item->data_bytes = frame->fields.data_bytes;
	if (frame->fields.tenant.len)
		tenant = frame->fields.tenant;
	if (chunks_batch_check(tenant, &frame->fields.names, &why))
		chunks_refuse(batch, item, &why);
	else
		chunks_add(batch, tenant, frame);
}

static void chunks_add_damaged(struct chunks_batch *batch, size_t bytes, const char *what)
{
	struct chunks_item *item = chunks_batch_add_item(batch);
	item->damaged = true;
	item->data_bytes = bytes;
	item->sentence = what;
	stat_add(STAT_chunks_damaged, 1);
}

static int chunks_read_frames(struct chunks_batch *batch, struct slice body, struct slice tenant,
			      struct errbuf *e)
{
	for (int damaged = 0; body.len;) {
		struct chunk_frame frame;
		const char *why;
		size_t before = body.len;
		if (damaged == CHUNKS_DAMAGED_MAX) {
			chunks_add_damaged(batch, body.len,
					   "there are too many damaged chunks in front of it");
			return 0;
		}
		if (batch->item_count == STREAM_CHUNKS_MAX)
			return chunks_too_many(e);
		if (chunk_frame_next(&body, &frame, &why) == CHUNK_FOUND) {
			chunks_add_frame(batch, &frame, tenant);
			continue;
		}
		chunks_add_damaged(batch, before - body.len, why);
		damaged++;
	}
	return 0;
}

/* ---- Version 1 ------------------------------------------------------------------------------- */

/* The part of a chunk from `from` on that one of version 2 may have: cut behind a record, where
 * there is one. */
static size_t chunks_cut(const struct chunk_fields *fields, const struct chunk_data *data,
			 size_t from, size_t *end_count)
{
	size_t len = data->data.len - from;
	size_t ends_max = CHUNK_ENDS_MAX_BYTES / 4;
	*end_count = 0;
	if (len > CHUNK_DATA_MAX_BYTES) {
		len = CHUNK_DATA_MAX_BYTES;
		const char *newline =
			fields->lines ? memrchr(data->data.data + from, '\n', len) : NULL;
		if (newline)
			len = (size_t)(newline + 1 - (data->data.data + from));
	}
	while (*end_count < data->end_count && *end_count < ends_max &&
	       data->ends[*end_count] <= from + len)
		++*end_count;
	bool more = *end_count < data->end_count;
	if (!more || !*end_count)
		return len;
	return data->ends[*end_count - 1] - from;
}

static int chunks_pack(struct chunks_batch *batch, const struct chunk_fields *fields,
		       const struct chunk_data *part, struct chunk_frame *frame)
{
	struct buf out;
	const char *why;
	buf_init(&out, 2 * CHUNK_DATA_MAX_BYTES);
	int err = chunk_frame_put(fields, part, CHUNK_LEVEL_PRESET, &out);
	struct slice bytes =
		err ? (struct slice){NULL, 0} : arena_copy(&batch->arena, buf_slice(&out));
	if (!err && !bytes.data)
		err = ERR_LIMIT;
	if (!err && chunk_frame_next(&bytes, frame, &why) != CHUNK_FOUND)
		err = ERR_LIMIT; /* texts that are longer than those of a frame */
	buf_release(&out);
	return err;
}

static int chunks_add_parts(struct chunks_batch *batch, const struct chunk_fields *whole,
			    struct chunk_data data, struct slice tenant)
{
	uint64_t begin = chunk_begin(whole);
	bool open = false; /* what is in front of the part ends within a record */
	int err = 0;
	for (size_t from = 0; from < data.data.len && !err;) {
		struct chunk_fields fields = *whole;
		struct chunk_frame frame;
		size_t count, len = chunks_cut(whole, &data, from, &count);
		uint32_t *ends = arena_alloc(&batch->arena, count * sizeof(*ends) + 1);
		if (!ends)
			return ERR_LIMIT;
		for (size_t i = 0; i < count; i++)
			ends[i] = data.ends[i] - (uint32_t)from;
		const struct chunk_data part = {{data.data.data + from, len}, ends, count};
		fields.sequence_id = begin + from + len;
		fields.continues = open;
		open = fields.lines ? data.data.data[from + len - 1] != '\n'
				    : !count || ends[count - 1] != len;
		fields.goes_on = open;
		err = chunks_pack(batch, &fields, &part, &frame);
		if (!err)
			chunks_add(batch, tenant, &frame);
		if (data.ends)
			data.ends += count;
		data.end_count -= count;
		from += len;
	}
	return err;
}

static void chunks_add_v1(struct chunks_batch *batch, const struct chunk_fields *fields,
			  const struct chunk_data *data, struct slice tenant)
{
	struct chunks_item *item = chunks_batch_add_item(batch);
	struct errbuf why = {""};
	item->sequence_id = fields->sequence_id;
	item->data_bytes = data->data.len;
	if (fields->tenant.len)
		tenant = fields->tenant;
	int err = chunks_batch_check(tenant, &fields->names, &why);
	if (!err && chunks_add_parts(batch, fields, *data, tenant))
		err = errbuf_set(&why, ERR_LIMIT,
				 "its tags, what it says for debugging, or its records take more "
				 "room than a chunk may have");
	if (!err)
		return;
	chunks_refuse(batch, item, &why);
	batch->chunk_count = item->first;
	item->count = 0;
}

static void chunks_add_refused(struct chunks_batch *batch, const struct chunk_fields *fields,
			       const struct chunk_data *data, const struct errbuf *why)
{
	struct chunks_item *item = chunks_batch_add_item(batch);
	item->sequence_id = fields->sequence_id;
	item->data_bytes = data->data.len;
	chunks_refuse(batch, item, why);
}

/* Chunk `at` cannot be read, and so nothing behind it. */
static int chunks_end_v1(struct chunks_batch *batch, struct slice body, uint32_t at, uint32_t count,
			 struct errbuf *why, struct errbuf *e)
{
	if (!at)
		return errbuf_set(e, ERR_INVALID, "chunk 0 of %u cannot be read: %s", count,
				  why->text);
	errbuf_prefix(why, ERR_INVALID, "nothing behind this can be read, for chunk %u of %u", at,
		      count);
	chunks_add_damaged(batch, body.len - batch->read_bytes, chunks_keep_sentence(batch, why));
	return 0;
}

static int chunks_read_v1(struct chunks_batch *batch, struct slice body, struct slice tenant,
			  struct errbuf *e)
{
	struct cursor c = cursor_of(body.data, body.len);
	const uint8_t *head = cursor_take(&c, CHUNKS_V1_HEAD_BYTES);
	uint32_t count = head ? be32_get(head) : 0;
	if (!head)
		return errbuf_set(e, ERR_INVALID,
				  "the body has %zu bytes; it is to be chunks of version 2, or a "
				  "post of version 1, which begins with their number",
				  body.len);
	for (uint32_t i = 0; i < count; i++) {
		struct chunk_fields fields;
		struct chunk_data data;
		struct errbuf why = {""};
		batch->read_bytes = body.len - cursor_left(&c);
		int err = chunk_v1_read(&c, &batch->arena, &fields, &data, &why);
		if (batch->item_count == STREAM_CHUNKS_MAX ||
		    batch->chunk_count > STREAM_CHUNKS_MAX)
			return chunks_too_many(e);
		if (err && c.bad) /* nobody knows where it ends */
			return chunks_end_v1(batch, body, i, count, &why, e);
		if (err)
			chunks_add_refused(batch, &fields, &data, &why);
		else
			chunks_add_v1(batch, &fields, &data, tenant);
	}
	if (cursor_left(&c))
		chunks_add_damaged(batch, cursor_left(&c), "it stands behind the last chunk");
	return 0;
}

int chunks_batch_read(struct chunks_batch *batch, struct slice body, struct slice tenant,
		      struct errbuf *e)
{
	ASSERT(!batch->item_count);
	return chunks_are_frames(body) ? chunks_read_frames(batch, body, tenant, e)
				       : chunks_read_v1(batch, body, tenant, e);
}
