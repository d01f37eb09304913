/* Any bytes as how far the lines of a stream are read: what can be read is the same when it is
 * written and read again. */
#include "stream/demux_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The labels that have series are given by themselves: they have no order. */
static void write_again(struct slice value, struct buf *out, struct hash_set *series)
{
	struct demux_state state = {.rule = 0};
	struct stream_names names;
	buf_init(out, DEMUX_STATE_MAX_BYTES);
	*series = (struct hash_set){.table = {.count = 0}};
	if (!demux_state_decode(value, &state, &names)) {
		if (demux_state_encode(&state, &names, out))
			buf_clear(out); /* it is too large now */
		*series = state.series;
		state.series = (struct hash_set){.table = {.count = 0}};
	}
	demux_state_release(&state);
}

static void without_series(struct slice value, struct buf *out)
{
	struct demux_state state = {.rule = 0};
	struct stream_names names;
	buf_init(out, DEMUX_STATE_MAX_BYTES);
	if (value.len) {
		ASSERT(!demux_state_decode(value, &state, &names));
		hash_set_release(&state.series);
		ASSERT(!demux_state_encode(&state, &names, out));
	}
	demux_state_release(&state);
}

static void check_series(const struct hash_set *some, const struct hash_set *others)
{
	ASSERT(some->table.count == others->table.count);
	for (size_t at = 0; at < some->table.slot_count; at++) {
		const struct hash128 *hash = hash_table_at(&some->table, at);
		ASSERT(!hash || hash_set_has(others, *hash));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf first, second, first_plain, second_plain;
	struct hash_set some, others;
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	write_again((struct slice){bytes, size}, &first, &some);
	write_again(buf_slice(&first), &second, &others);
	if (first.len) {
		check_series(&some, &others);
		without_series(buf_slice(&first), &first_plain);
		without_series(buf_slice(&second), &second_plain);
		ASSERT(slice_equal(buf_slice(&first_plain), buf_slice(&second_plain)));
		buf_release(&first_plain);
		buf_release(&second_plain);
	}
	hash_set_release(&some);
	hash_set_release(&others);
	buf_release(&first);
	buf_release(&second);
	mem_free(bytes);
	return 0;
}
