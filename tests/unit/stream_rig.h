/* Streams on the rig of the contract's suite: chunks as the collector leaves them, and blocks. */
#ifndef TESTS_UNIT_STREAM_RIG_H
#define TESTS_UNIT_STREAM_RIG_H

#include "contract/contract.h"
#include "stream/seal.h"

static inline void stream_rig_put(struct rig *rig, const struct stream_id *id,
				  enum stream_property property, struct slice value,
				  int64_t stamp_us)
{
	struct stream_parts key, column;
	streams_key(&key, id->tenant);
	streams_column(&column, id, property);
	rig_cell_put(rig, TABLE_STREAMS, &key.parts, &column.parts, value, stamp_us, 0);
}

static inline void stream_rig_put_made(struct rig *rig, const struct stream_id *id, int64_t made_ms,
				       int64_t stamp_us)
{
	const struct stream_made made = {.id = *id, .made_ms = made_ms};
	struct buf value;
	buf_init(&value, 4096);
	stream_made_encode(&made, &value);
	stream_rig_put(rig, id, STREAM_MADE, buf_slice(&value), stamp_us);
	buf_release(&value);
}

/* Received now. */
static inline void stream_rig_put_chunk(struct rig *rig, const struct stream_id *id, uint64_t begin,
					struct slice data, bool continues)
{
	const struct chunk_fields fields = {.tenant = id->tenant,
					    .names = id->names,
					    .incarnation = id->incarnation,
					    .sequence_id = begin + data.len,
					    .data_bytes = (uint32_t)data.len,
					    .lines = true,
					    .continues = continues,
					    .goes_on = data.data[data.len - 1] != '\n'};
	const struct chunk_data chunk = {.data = data};
	struct stream_parts key, column;
	struct buf frame, value;
	const char *why;
	struct chunk_frame found;
	buf_init(&frame, 1 << 20);
	buf_init(&value, 1 << 20);
	assert_int_equal(chunk_frame_put(&fields, &chunk, 1, &frame), 0);
	struct slice bytes = buf_slice(&frame);
	assert_int_equal(chunk_frame_next(&bytes, &found, &why), CHUNK_FOUND);
	assert_int_equal(chunk_cell_encode(rig_now_ms(rig), found.bytes, &value), 0);
	const struct chunk_place place = chunk_place_of(&found);
	chunk_tail_key(&key, id);
	chunk_column(&column, &place);
	rig_log_put(rig, TABLE_CHUNK_TAIL, &key.parts, &column.parts, buf_slice(&value));
	buf_release(&value);
	buf_release(&frame);
}

/* What was received before then is put into blocks though the end of its record is not there. */
static inline void stream_rig_seal(struct rig *rig, const struct stream_id *id, bool all,
				   int64_t open_before_ms)
{
	const struct stream_site site = {.store = rig->store, .clock = &rig->clock.clock};
	const struct stream_seal_rules rules = {.level = 1,
						.all = all,
						.open_before_ms = open_before_ms,
						.until_ms = INT64_MAX,
						.write_max_ms = 1000};
	struct stream_seal_result result;
	struct errbuf e = {""};
	int err = stream_seal(&site, &rig->queue, id, &rules, &result, &e);
	assert_string_equal(e.text, "");
	assert_int_equal(err, 0);
}

#endif
