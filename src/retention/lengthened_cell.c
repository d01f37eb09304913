#include "retention/lengthened_cell.h"

/* Numbers with a blank between two. Gives how many, or LENGTHENED_CELL_NUMBERS_MAX + 1: they are
 * none.
 */
static size_t lengthened_cell_scan(struct slice text, uint64_t numbers[LENGTHENED_CELL_NUMBERS_MAX])
{
	const char *at = text.data, *end = text.data + text.len;
	for (size_t n = 0; n < LENGTHENED_CELL_NUMBERS_MAX; at++) {
		const char *stop = memchr(at, ' ', (size_t)(end - at));
		if (number_parse_u64(at, stop ? stop : end, &numbers[n++]))
			break;
		if (!stop)
			return n;
		at = stop;
	}
	return LENGTHENED_CELL_NUMBERS_MAX + 1;
}

static bool lengthened_cell_is_time(uint64_t ms)
{
	return ms <= INT64_MAX / 4;
}

int lengthened_cell_decode(struct slice text, struct lengthened_cell *kept)
{
	uint64_t numbers[LENGTHENED_CELL_NUMBERS_MAX];
	size_t n = lengthened_cell_scan(text, numbers);
	if (n > LENGTHENED_CELL_NUMBERS_MAX || n < LENGTHENED_CELL_HEAD ||
	    (n - LENGTHENED_CELL_HEAD) % 2 || !lengthened_cell_is_time(numbers[0]) ||
	    !lengthened_cell_is_time(numbers[1]) || !lengthened_cell_is_time(numbers[2]))
		return ERR_DAMAGED;
	*kept = (struct lengthened_cell){.preset_ms = (int64_t)numbers[0],
					 .until_ms = (int64_t)numbers[1],
					 .kept_ms = (int64_t)numbers[2],
					 .preset = numbers[3] != 0,
					 .rules = numbers[4]};
	for (size_t i = LENGTHENED_CELL_HEAD; i < n; i += 2) {
		if (!lengthened_cell_is_time(numbers[i + 1]))
			return ERR_DAMAGED;
		kept->list[kept->count].hash = numbers[i];
		kept->list[kept->count++].ms = (int64_t)numbers[i + 1];
	}
	return 0;
}

struct slice lengthened_cell_encode(const struct lengthened_cell *kept,
				    char to[LENGTHENED_CELL_MAX_BYTES])
{
	uint64_t numbers[LENGTHENED_CELL_NUMBERS_MAX] = {
		(uint64_t)kept->preset_ms, (uint64_t)kept->until_ms, (uint64_t)kept->kept_ms,
		kept->preset, kept->rules};
	size_t n = LENGTHENED_CELL_HEAD, len = 0;
	for (size_t i = 0; i < kept->count; i++) {
		numbers[n++] = kept->list[i].hash;
		numbers[n++] = (uint64_t)kept->list[i].ms;
	}
	for (size_t i = 0; i < n; i++) {
		if (i)
			to[len++] = ' ';
		len += number_print_u64(to + len, numbers[i]);
	}
	return (struct slice){to, len};
}
