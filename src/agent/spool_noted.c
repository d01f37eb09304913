#include "agent/spool_noted.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/hash.h"
#include "wire/number.h"

#define SPOOL_NOTED_TITLE "granary spool note 1 "

static uint32_t spool_noted_sum(const struct spool_noted *noted)
{
	uint32_t sum = crc32c(0, noted->note.data, noted->note.len);
	return crc32c(sum, noted->records.data, noted->records.len);
}

void spool_noted_encode(const struct spool_noted *noted, struct buf *out)
{
	buf_printf(out,
		   SPOOL_NOTED_TITLE "%" PRIu64 " %" PRIu64 " %" PRId64 " %" PRIu64 " %zu %" PRIu32
				     "\n",
		   noted->file.device, noted->file.inode, noted->file.born_ns, noted->at,
		   noted->note.len, spool_noted_sum(noted));
	buf_append(out, noted->note.data, noted->note.len);
	buf_append(out, noted->records.data, noted->records.len);
}

/* The numbers of the first line, in their order there. */
enum { NOTE_DEVICE, NOTE_INODE, NOTE_BORN, NOTE_AT, NOTE_BYTES, NOTE_SUM, NOTE_NUMBERS };

static bool spool_noted_numbers(struct slice line, uint64_t numbers[NOTE_NUMBERS])
{
	const char *at = line.data, *const end = line.data + line.len;
	for (size_t i = 0; i < NOTE_NUMBERS; i++) {
		const char *blank = memchr(at, ' ', (size_t)(end - at));
		const char *behind = i + 1 < NOTE_NUMBERS ? blank : end;
		if (!behind || number_parse_u64(at, behind, &numbers[i]))
			return false;
		at = behind + 1;
	}
	return true;
}

bool spool_noted_decode(struct slice text, struct spool_noted *noted)
{
	const struct slice title = SLICE(SPOOL_NOTED_TITLE);
	const char *newline = text.len ? memchr(text.data, '\n', text.len) : NULL;
	uint64_t numbers[NOTE_NUMBERS];
	if (!newline || !slice_starts_with(text, title))
		return false;
	const char *begin = text.data + title.len;
	if (!spool_noted_numbers((struct slice){begin, (size_t)(newline - begin)}, numbers))
		return false;
	size_t left = (size_t)(text.data + text.len - newline) - 1;
	if (numbers[NOTE_BYTES] > left || numbers[NOTE_BYTES] > SPOOL_NOTE_MAX_BYTES)
		return false;
	*noted = (struct spool_noted){
		.file = {numbers[NOTE_DEVICE], numbers[NOTE_INODE], (int64_t)numbers[NOTE_BORN]},
		.at = numbers[NOTE_AT],
		.note = {newline + 1, (size_t)numbers[NOTE_BYTES]},
		.records = {newline + 1 + numbers[NOTE_BYTES], left - (size_t)numbers[NOTE_BYTES]}};
	return spool_noted_sum(noted) == numbers[NOTE_SUM];
}
