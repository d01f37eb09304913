/* Any bytes as a body of POST /chukwa: each of its items is refused with a sentence, or has chunks
 * that can be submitted, which lie one behind the other and have all of its bytes. */
#include "ingest/chunks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_item(const struct chunks_batch *batch, const struct chunks_item *item)
{
	struct errbuf e = {""};
	uint64_t bytes = 0;
	ASSERT(item->first + item->count <= batch->chunk_count);
	ASSERT(!item->sentence || (item->sentence[0] && !item->count));
	for (size_t i = 0; i < item->count; i++) {
		const struct stream_chunk *chunk = &batch->chunks[item->first + i];
		const struct chunk_fields *fields = &chunk->frame.fields;
		ASSERT(!stream_names_check(&chunk->id.names, &e));
		ASSERT(chunk->id.tenant.len && chunk->frame.bytes.len <= CHUNK_FRAME_MAX_BYTES);
		ASSERT(chunk_begin(fields) == item->sequence_id - item->data_bytes + bytes);
		bytes += fields->data_bytes;
	}
	ASSERT(item->sentence || bytes == item->data_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice body = {size ? (const char *)data : "", size};
	struct chunks_batch batch;
	struct errbuf e = {""};
	chunks_batch_init(&batch);
	int err = chunks_batch_read(&batch, body, SLICE("default"), &e);
	ASSERT(!err || (e.text[0] && (err == ERR_INVALID || err == ERR_LIMIT)));
	for (size_t i = 0; i < batch.item_count && !err; i++)
		check_item(&batch, &batch.items[i]);
	chunks_batch_release(&batch);
	return 0;
}
