/* Messages of versions 1 and 2c: slices lie within the datagram; what was read can be written, and
 * is then read the same. */
#include "base/mem.h"
#include "wire/snmp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VARBINDS_MAX = 4096 };

static bool has_bytes(const struct snmp_value *value)
{
	switch (value->type) {
	case SNMP_UNREADABLE:
	case SNMP_OCTETS:
	case SNMP_OID:
	case SNMP_IPADDRESS:
	case SNMP_OPAQUE:
		return true;
	default:
		return false;
	}
}

static void check_same(const struct snmp_varbind *a, const struct snmp_varbind *b)
{
	ASSERT(slice_equal(a->oid, b->oid));
	if (a->value.type == SNMP_UNREADABLE)
		return;
	ASSERT(a->value.type == b->value.type);
	if (has_bytes(&a->value))
		ASSERT(slice_equal(a->value.bytes, b->value.bytes));
	else if (a->value.type == SNMP_INTEGER || a->value.type == SNMP_COUNTER64)
		ASSERT(a->value.u64 == b->value.u64);
}

/* What is read with the right name expected is what is read without. */
static void check_number(struct ber before, const struct ber *after,
			 const struct snmp_varbind *read, size_t root_len)
{
	struct slice oid = read->oid;
	struct snmp_varbind number;
	struct slice root = {oid.data, root_len};
	if (!oid_valid(root) ||
	    !snmp_next_number(&before, root,
			      (struct slice){oid.data + root_len, oid.len - root_len}, &number.oid,
			      &number.value))
		return;
	ASSERT(before.at == after->at && number.oid.data == oid.data && number.oid.len == oid.len);
	ASSERT(number.value.type == read->value.type && number.value.u64 == read->value.u64);
}

static size_t read_all(struct snmp_pdu *pdu, struct snmp_varbind *varbinds)
{
	size_t count = 0;
	for (;;) {
		struct ber before = pdu->varbinds;
		if (count == VARBINDS_MAX || !snmp_next(&pdu->varbinds, &varbinds[count]))
			return count;
		ASSERT(oid_valid(varbinds[count].oid));
		check_number(before, &pdu->varbinds, &varbinds[count],
			     count % (varbinds[count].oid.len + 1));
		count++;
	}
}

static void write_again(const struct snmp_message *message, const struct snmp_varbind *varbinds,
			size_t count, size_t size)
{
	static struct snmp_varbind again[VARBINDS_MAX];
	struct snmp_message other;
	const char *why;
	uint8_t *memory = mem_alloc(2 * size + 256);
	struct ber_writer w = ber_writer_of(memory, 2 * size + 256);
	const uint8_t *end = w.at;
	for (size_t i = count; i-- > 0;)
		snmp_put_varbind(&w, &varbinds[i]);
	snmp_put_pdu(&w, &message->pdu, end);
	snmp_put_message(&w, message->version, message->community, end);
	ASSERT(!w.full);
	ASSERT(snmp_decode((struct slice){(char *)w.at, (size_t)(end - w.at)}, &other, &why) == 0);
	ASSERT(other.pdu.request_id == message->pdu.request_id);
	ASSERT(read_all(&other.pdu, again) == count);
	for (size_t i = 0; i < count; i++)
		check_same(&varbinds[i], &again[i]);
	mem_free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct snmp_varbind varbinds[VARBINDS_MAX];
	char *bytes = mem_alloc(size); /* of just that size, so that a byte too far is seen */
	memcpy(bytes, data, size);
	struct snmp_message message;
	const char *why = NULL;
	if (snmp_decode((struct slice){bytes, size}, &message, &why)) {
		ASSERT(why);
	} else {
		size_t count = read_all(&message.pdu, varbinds);
		if (!message.pdu.varbinds.bad)
			write_again(&message, varbinds, count, size);
	}
	mem_free(bytes);
	return 0;
}
