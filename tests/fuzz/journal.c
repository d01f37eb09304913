/* Any bytes as records of the journal: nothing is read outside, and what is found good can be read,
 * all at once and value by value. */
#include "store/lmdb/journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_row(const struct record *record)
{
	uint64_t bits[RECORD_VALUES_MAX];
	uint8_t types[RECORD_VALUES_MAX];
	int err = row_get(record->values, record->values_bytes, record->columns, bits, types);
	ASSERT(!err);
	for (unsigned i = 0; i < record->columns; i++) {
		struct value value =
			row_value(record->values, record->values_bytes, record->columns, i);
		ASSERT(value.type == types[i]);
		ASSERT(value.type == VALUE_NONE || value.bits == bits[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *record;
	size_t len;
	struct record parsed;
	while ((record = record_next(&data, &size, &len)) != NULL) {
		int err = record_parse(record, len, &parsed);
		ASSERT(err == 0 || err == ERR_DAMAGED);
		if (!err && parsed.kind == RECORD_ROW)
			read_row(&parsed);
	}
	return 0;
}
