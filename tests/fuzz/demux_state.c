/* Any bytes as how far the lines of a stream are read: what can be read is the same when it is
 * written and read again. */
#include "stream/demux_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read, once written whole, and once without the labels that have series: these are a set,
 * and have no order. */
struct read {
	struct buf whole, plain;
	struct hash_set series;
};

/* False: it cannot be read, or is too large now. */
static bool read_open(struct read *read, struct slice value)
{
	struct demux_state state = {.rule = 0};
	struct stream_names names;
	*read = (struct read){.series = {.table = {.count = 0}}};
	buf_init(&read->whole, DEMUX_STATE_MAX_BYTES);
	buf_init(&read->plain, DEMUX_STATE_MAX_BYTES);
	bool is = !demux_state_decode(value, &state, &names) &&
		  !demux_state_encode(&state, &names, &read->whole);
	read->series = state.series;
	state.series = (struct hash_set){.table = {.count = 0}};
	is = is && !demux_state_encode(&state, &names, &read->plain);
	demux_state_release(&state);
	return is;
}

static void read_release(struct read *read)
{
	hash_set_release(&read->series);
	buf_release(&read->whole);
	buf_release(&read->plain);
}

static void check_same(const struct read *one, const struct read *other)
{
	ASSERT(slice_equal(buf_slice(&one->plain), buf_slice(&other->plain)));
	ASSERT(one->series.table.count == other->series.table.count);
	for (size_t at = 0; at < one->series.table.slot_count; at++) {
		const struct hash128 *hash = hash_table_at(&one->series.table, at);
		ASSERT(!hash || hash_set_has(&other->series, *hash));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct read first, second;
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	if (read_open(&first, (struct slice){bytes, size})) {
		bool is = read_open(&second, buf_slice(&first.whole));
		ASSERT(is);
		check_same(&first, &second);
		read_release(&second);
	}
	read_release(&first);
	mem_free(bytes);
	return 0;
}
