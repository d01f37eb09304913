/* What a connection of syslog sends, cut in two ways: the same messages come out of it, each within
 * its maximum. The first byte says how. */
#include "base/buf.h"
#include "base/mem.h"
#include "wire/syslog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX_BYTES = 64 << 20 };

static void take_by(struct slice sent, size_t step, struct syslog_framing *framing, struct buf *out)
{
	struct slice left = {sent.data, 0}, message;
	for (size_t at = 0; at <= sent.len; at += step) {
		size_t more = sent.len - at < step ? sent.len - at : step;
		left.len += more;
		while (syslog_take(framing, &left, at + more == sent.len, &message)) {
			unsigned facility, severity;
			ASSERT(message.len <= framing->max_bytes);
			ASSERT(message.data >= sent.data);
			ASSERT(message.data + message.len <= sent.data + at + more);
			(void)syslog_priority(message, &facility, &severity);
			ASSERT(facility < SYSLOG_FACILITIES && severity < 8);
			buf_append(out, &message.len, sizeof(message.len));
			buf_append(out, message.data, message.len);
		}
		ASSERT(left.len < framing->max_bytes + SYSLOG_COUNT_DIGITS_MAX + 2);
		if (at + more == sent.len)
			break;
	}
	ASSERT(!left.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct syslog_framing whole = {.max_bytes = 1 + data[0] / 2, .lines = data[0] & 1};
	struct syslog_framing bytes = whole;
	char *copy = mem_alloc(size - 1); /* of just that size, so that a byte too far is seen */
	memcpy(copy, data + 1, size - 1);
	const struct slice sent = {copy, size - 1};
	struct buf first, second;
	buf_init(&first, OUT_MAX_BYTES);
	buf_init(&second, OUT_MAX_BYTES);
	take_by(sent, 1, &bytes, &first);
	take_by(sent, sent.len, &whole, &second);
	ASSERT(slice_equal(buf_slice(&first), buf_slice(&second)));
	ASSERT(whole.cut_bytes == bytes.cut_bytes);
	buf_release(&first);
	buf_release(&second);
	mem_free(copy);
	return 0;
}
