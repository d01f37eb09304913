/* Any bytes as how far the lines of a stream are read: what can be read is the same when it is
 * written and read again. */
#include "stream/demux_state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(struct slice value, struct buf *out)
{
	struct demux_state state = {.rule = 0};
	struct stream_names names;
	buf_init(out, DEMUX_STATE_MAX_BYTES);
	if (!demux_state_decode(value, &state, &names) && demux_state_encode(&state, &names, out))
		buf_clear(out); /* it is too large now */
	demux_state_release(&state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf first, second;
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	write_again((struct slice){bytes, size}, &first);
	write_again(buf_slice(&first), &second);
	ASSERT(slice_equal(buf_slice(&first), buf_slice(&second)));
	buf_release(&first);
	buf_release(&second);
	mem_free(bytes);
	return 0;
}
