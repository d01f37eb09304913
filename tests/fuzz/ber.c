/* BER: items lie within what holds them, one behind the other; integers come back as written. */
#include "base/mem.h"
#include "wire/ber.h"
#include "wire/oid.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_integer(const struct ber_item *item)
{
	uint8_t memory[16];
	int64_t value, again;
	uint64_t number;
	if (ber_to_i64(item, &value)) {
		struct ber_writer w = ber_writer_of(memory, sizeof(memory));
		ber_put_integer(&w, BER_INTEGER, value);
		struct ber b = {w.at, memory + sizeof(memory), NULL};
		again = ber_integer(&b, INT64_MIN, INT64_MAX);
		ASSERT(!b.bad && again == value);
	}
	if (ber_to_unsigned(item, 32, &number))
		ASSERT(number <= UINT32_MAX);
}

static void check_oid(const struct ber_item *item)
{
	uint8_t memory[OID_MAX_BYTES];
	struct slice oid = {(const char *)item->bytes, item->len}, again;
	struct buf out;
	if (!oid_valid(oid))
		return;
	buf_init(&out, 8 * OID_MAX_BYTES);
	oid_print(oid, &out);
	/* The first number may be beyond 2.(2^32 - 81), which text has not. */
	if (oid_parse(buf_slice(&out), memory, &again, NULL) == 0)
		ASSERT(slice_equal(oid, again) && oid_compare(oid, again) == 0);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	struct ber b = ber_of((struct slice){bytes, size});
	while (!ber_at_end(&b)) {
		const uint8_t *before = b.at;
		struct ber_item item = ber_item(&b);
		if (b.bad)
			break;
		ASSERT(item.bytes > before && item.bytes + item.len == b.at && b.at <= b.end);
		check_integer(&item);
		if (item.tag == BER_OID)
			check_oid(&item);
		if (item.tag & 0x20) /* what may hold others is looked into */
			b.at = item.bytes;
	}
	mem_free(bytes);
	return 0;
}
