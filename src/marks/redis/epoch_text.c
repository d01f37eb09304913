#include "marks/redis/epoch_text.h"

#include <stdio.h>

#include "wire/number.h"

enum { PARTS = 4 };

static bool epoch_text_split(struct slice text, struct slice parts[PARTS])
{
	for (size_t i = 0; i < PARTS; i++) {
		const char *blank = text.len ? memchr(text.data, ' ', text.len) : NULL;
		size_t len = blank ? (size_t)(blank - text.data) : text.len;
		if (!len || !blank != (i + 1 == PARTS))
			return false;
		parts[i] = (struct slice){text.data, len};
		text.data += len + 1;
		text.len -= blank ? len + 1 : len;
	}
	return true;
}

static bool epoch_text_read_id(struct slice text, uint64_t *id)
{
	return !number_parse_hex64(text.data, text.data + text.len, id);
}

bool epoch_text_read(struct slice text, struct epoch_text *epoch)
{
	struct slice parts[PARTS];
	uint64_t slot_s;
	if (text.len >= EPOCH_MAX_BYTES || !epoch_text_split(text, parts) ||
	    !epoch_text_read_id(parts[0], &epoch->store) ||
	    !epoch_text_read_id(parts[3], &epoch->lot) ||
	    number_parse_u64(parts[1].data, parts[1].data + parts[1].len, &slot_s) ||
	    slot_s > INT64_MAX || parts[2].len >= RUN_MAX_BYTES)
		return false;
	epoch->slot_s = (int64_t)slot_s;
	epoch->run = parts[2];
	return true;
}

void epoch_text_write(const struct epoch_text *epoch, char text[EPOCH_MAX_BYTES])
{
	snprintf(text, EPOCH_MAX_BYTES, "%016llx %lld %.*s %016llx",
		 (unsigned long long)epoch->store, (long long)epoch->slot_s, (int)epoch->run.len,
		 epoch->run.data, (unsigned long long)epoch->lot);
}
