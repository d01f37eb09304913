/* Any bytes as chunks of streams: as frames of version 2, and as a chunk of version 1. What can be
 * read says nothing that contradicts itself, and is the same when it is written and read again. */
#include "wire/chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ARENA_MAX_BYTES = 8 << 20, UNPACKED_MAX_BYTES = 2 << 20, DAMAGED_MAX = 16 };

static void check_data(const struct chunk_fields *fields, const struct chunk_data *data)
{
	ASSERT(data->data.len == fields->data_bytes);
	ASSERT(fields->data_bytes <= fields->sequence_id);
	ASSERT(fields->sequence_id <= STREAM_OFFSET_MAX);
	uint32_t before = 0;
	for (size_t i = 0; i < data->end_count; i++) {
		ASSERT(data->ends[i] > before && data->ends[i] <= data->data.len);
		before = data->ends[i];
	}
}

static void write_again(const struct chunk_fields *fields, const struct chunk_data *data,
			struct arena *arena)
{
	struct buf out, unpacked;
	struct chunk_frame frame;
	struct chunk_data read;
	const char *why;
	buf_init(&out, UNPACKED_MAX_BYTES);
	buf_init(&unpacked, UNPACKED_MAX_BYTES);
	bool fits = data->data.len && data->data.len <= CHUNK_DATA_MAX_BYTES;
	if (fits && !chunk_frame_put(fields, data, 1, &out)) {
		struct slice rest = buf_slice(&out);
		ASSERT(chunk_frame_next(&rest, &frame, &why) == CHUNK_FOUND && !rest.len);
		ASSERT(!chunk_frame_unpack(&frame, &unpacked, arena, &read));
		ASSERT(slice_equal(read.data, data->data) && read.end_count == data->end_count);
		ASSERT(stream_names_equal(&frame.fields.names, &fields->names));
		ASSERT(frame.fields.incarnation == fields->incarnation);
		ASSERT(frame.fields.sequence_id == fields->sequence_id);
		ASSERT(frame.fields.clock_ms == fields->clock_ms);
		ASSERT(slice_equal(frame.fields.tags, fields->tags));
	}
	buf_release(&unpacked);
	buf_release(&out);
}

static void read_frames(struct slice bytes, struct arena *arena)
{
	struct buf unpacked;
	struct chunk_frame frame;
	struct chunk_data read;
	const char *why = NULL;
	buf_init(&unpacked, UNPACKED_MAX_BYTES);
	for (int damaged = 0; damaged < DAMAGED_MAX;) {
		size_t before = bytes.len;
		enum chunk_found found = chunk_frame_next(&bytes, &frame, &why);
		if (found == CHUNK_NONE)
			break;
		ASSERT(bytes.len < before);
		damaged += found == CHUNK_DAMAGED;
		ASSERT(found == CHUNK_FOUND || why);
		arena_reset(arena);
		if (found == CHUNK_DAMAGED || chunk_frame_unpack(&frame, &unpacked, arena, &read))
			continue;
		check_data(&frame.fields, &read);
		write_again(&frame.fields, &read, arena);
	}
	buf_release(&unpacked);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena arena;
	struct cursor c = cursor_of(data, size);
	struct chunk_fields fields;
	struct chunk_data read;
	struct errbuf e = {""};
	arena_init(&arena, ARENA_MAX_BYTES);
	read_frames((struct slice){size ? (const char *)data : "", size}, &arena);
	arena_reset(&arena);
	int err = chunk_v1_read(&c, &arena, &fields, &read, &e);
	ASSERT(!err || e.text[0]);
	if (!err) {
		check_data(&fields, &read);
		write_again(&fields, &read, &arena);
	}
	arena_release(&arena);
	return 0;
}
