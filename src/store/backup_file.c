#include "store/backup_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "wire/number.h"

enum {
	BACKUP_SUM_LINE_BYTES = 9,
	BACKUP_FACTS_MAX_BYTES = 1024, /* all lines of a manifest but those of checksums */
};

/* ---- Checksums ------------------------------------------------------------------------------- */

void backup_sums_init(struct backup_sums *sums)
{
	*sums = (struct backup_sums){.bytes = 0};
	buf_init(&sums->list, BACKUP_MANIFEST_MAX_BYTES);
}

void backup_sums_release(struct backup_sums *sums)
{
	buf_release(&sums->list);
}

void backup_sums_add(struct backup_sums *sums, struct slice piece)
{
	while (piece.len) {
		size_t at = (size_t)(sums->bytes % BACKUP_CHUNK_BYTES);
		size_t room = BACKUP_CHUNK_BYTES - at, len = piece.len < room ? piece.len : room;
		if (at == 0 && sums->bytes) {
			buf_append(&sums->list, &sums->crc, sizeof(sums->crc));
			sums->crc = 0;
		}
		sums->crc = crc32c(sums->crc, piece.data, len);
		sums->bytes += len;
		piece = (struct slice){piece.data + len, piece.len - len};
	}
}

static uint32_t backup_sums_of(const struct backup_sums *sums, size_t chunk)
{
	uint32_t crc = sums->crc;
	if ((chunk + 1) * sizeof(crc) <= sums->list.len)
		memcpy(&crc, sums->list.data + chunk * sizeof(crc), sizeof(crc));
	return crc;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* A line of its own has no line within it. */
static void backup_put_sentence(struct buf *out, const char *sentence)
{
	size_t len = strnlen(sentence, BACKUP_FAILED_MAX_BYTES);
	buf_append_text(out, "failed ");
	for (size_t i = 0; i < len; i++)
		buf_append_char(out, (unsigned char)sentence[i] < ' ' ? ' ' : sentence[i]);
	buf_append_char(out, '\n');
}

void backup_manifest_put(const struct backup_sums *sums, int64_t time_ms, const char *failed,
			 struct buf *out)
{
	size_t begin = out->len;
	buf_printf(out, "granary backup\nformat %d\nprogram %.*s\ntime %" PRId64 "\n",
		   BACKUP_FORMAT, BACKUP_PROGRAM_MAX_BYTES, GRANARY_VERSION, time_ms);
	if (failed)
		backup_put_sentence(out, failed);
	buf_printf(out, "bytes %" PRIu64 "\nchunk %d\n", sums->bytes, BACKUP_CHUNK_BYTES);
	for (size_t i = 0; i < backup_chunks(sums->bytes); i++)
		buf_printf(out, "%08" PRIx32 "\n", backup_sums_of(sums, i));
	size_t len = out->len - begin;
	buf_printf(out, "end %08zx %08" PRIx32 "\n", len, crc32c(0, out->data + begin, len));
}

/* ---- Reading the manifest -------------------------------------------------------------------- */

static bool backup_read_hex(struct slice text, uint32_t *value)
{
	*value = 0;
	for (size_t i = 0; i < text.len; i++) {
		int digit = number_hex_digit(text.data[i]);
		if (digit < 0 || ascii_lower(text.data[i]) != text.data[i])
			return false;
		*value = *value << 4 | (uint32_t)digit;
	}
	return true;
}

/* `end LENGTH CRC`, eight hexadecimal digits each. */
static bool backup_read_end(struct slice last, uint32_t *len, uint32_t *crc)
{
	if (last.len < BACKUP_END_BYTES)
		return false;
	const char *at = last.data + last.len - BACKUP_END_BYTES;
	return memcmp(at, "end ", 4) == 0 && at[12] == ' ' && at[21] == '\n' &&
	       backup_read_hex((struct slice){at + 4, 8}, len) &&
	       backup_read_hex((struct slice){at + 13, 8}, crc);
}

static int backup_has_no_manifest(struct errbuf *e)
{
	return errbuf_set(e, ERR_INVALID,
			  "there is no manifest at its end: it was cut short, or something was "
			  "appended to it, or it is no backup");
}

int backup_look_at_end(struct slice last, struct errbuf *e)
{
	uint32_t len, crc;
	return backup_read_end(last, &len, &crc) ? 0 : backup_has_no_manifest(e);
}

/* The next line, which begins with `key` and a blank; what follows is `value`. */
static bool backup_read_line(struct slice *rest, const char *key, struct slice *value)
{
	struct slice behind = *rest, line;
	size_t key_len = strlen(key);
	if (!slice_take_line(&behind, &line) || line.len <= key_len ||
	    !slice_starts_with(line, slice_of(key)) || line.data[key_len] != ' ')
		return false;
	*value = (struct slice){line.data + key_len + 1, line.len - key_len - 1};
	*rest = behind;
	return true;
}

static bool backup_read_number(struct slice *rest, const char *key, uint64_t *number)
{
	struct slice value;
	return backup_read_line(rest, key, &value) &&
	       number_parse_u64(value.data, value.data + value.len, number) == 0;
}

/* Up to the checksums. */
static int backup_read_facts(struct slice *rest, struct backup_manifest *manifest, struct errbuf *e)
{
	struct slice program, failed;
	uint64_t format, time_ms, chunk;
	struct slice first;
	bool sound = backup_read_line(rest, "granary", &first) &&
		     slice_equal(first, SLICE("backup")) &&
		     backup_read_number(rest, "format", &format);
	if (sound && format > BACKUP_FORMAT)
		return errbuf_set(e, ERR_VERSION,
				  "it is a backup of format %" PRIu64
				  "; this program reads up to %d: use the newer program",
				  format, BACKUP_FORMAT);
	sound = sound && backup_read_line(rest, "program", &program) &&
		program.len <= BACKUP_PROGRAM_MAX_BYTES &&
		backup_read_number(rest, "time", &time_ms) && time_ms <= INT64_MAX;
	if (sound && backup_read_line(rest, "failed", &failed))
		return errbuf_set(e, ERR_CANCELLED,
				  "the server ended the backup before its end: %.*s",
				  (int)failed.len, failed.data);
	sound = sound && backup_read_number(rest, "bytes", &manifest->bytes) &&
		backup_read_number(rest, "chunk", &chunk) && chunk == BACKUP_CHUNK_BYTES;
	if (!sound)
		return errbuf_set(e, ERR_DAMAGED, "its manifest cannot be read");
	manifest->time_ms = (int64_t)time_ms;
	snprintf(manifest->program, sizeof(manifest->program), "%.*s", (int)program.len,
		 program.data);
	return 0;
}

static int backup_compare_sums(const struct backup_sums *sums, struct slice rest, struct errbuf *e)
{
	size_t count = backup_chunks(sums->bytes), damaged = 0, first = 0;
	if (rest.len != count * BACKUP_SUM_LINE_BYTES)
		return errbuf_set(e, ERR_DAMAGED, "its manifest cannot be read");
	for (size_t i = count; i-- > 0;) {
		uint32_t crc;
		struct slice digits = {rest.data + i * BACKUP_SUM_LINE_BYTES,
				       BACKUP_SUM_LINE_BYTES - 1};
		if (backup_read_hex(digits, &crc) && crc == backup_sums_of(sums, i))
			continue;
		damaged++;
		first = i;
	}
	if (!damaged)
		return 0;
	uint64_t begin = (uint64_t)first * BACKUP_CHUNK_BYTES, end = begin + BACKUP_CHUNK_BYTES;
	return errbuf_set(e, ERR_DAMAGED,
			  "it is damaged: the checksum of the bytes %" PRIu64 " to %" PRIu64
			  " is another (%zu of %zu such parts are damaged)",
			  begin, (end < sums->bytes ? end : sums->bytes) - 1, damaged, count);
}

/* ---- Reading the whole ----------------------------------------------------------------------- */

void backup_reader_init(struct backup_reader *reader)
{
	backup_sums_init(&reader->sums);
	buf_init(&reader->tail, BACKUP_MANIFEST_MAX_BYTES);
}

void backup_reader_release(struct backup_reader *reader)
{
	backup_sums_release(&reader->sums);
	buf_release(&reader->tail);
}

/* The longest manifest of so many bytes, or of fewer. */
static size_t backup_manifest_most(uint64_t bytes)
{
	return BACKUP_FACTS_MAX_BYTES + BACKUP_SUM_LINE_BYTES * backup_chunks(bytes);
}

static int backup_hand_on(struct backup_reader *reader, struct slice piece, struct errbuf *e)
{
	backup_sums_add(&reader->sums, piece);
	return reader->data && piece.len ? reader->data(reader->owner, piece, e) : 0;
}

/* Hands on all bytes but the last ones, which may be the manifest: these are held back for the next
 * call. Nothing is copied that is handed on at once. */
int backup_reader_take(struct backup_reader *reader, struct slice piece, struct errbuf *e)
{
	struct buf *tail = &reader->tail;
	size_t have = tail->len + piece.len;
	size_t keep = backup_manifest_most(reader->sums.bytes + have);
	size_t give = have > keep ? have - keep : 0;
	size_t of_tail = give < tail->len ? give : tail->len;
	struct slice rest = {piece.data + (give - of_tail), piece.len - (give - of_tail)};
	int err = backup_hand_on(reader, (struct slice){tail->data, of_tail}, e);
	buf_consume(tail, of_tail);
	if (!err)
		err = backup_hand_on(reader, (struct slice){piece.data, give - of_tail}, e);
	if (!err && buf_append(tail, rest.data, rest.len))
		err = errbuf_set(e, ERR_LIMIT, "it is longer than a backup can be");
	return err;
}

int backup_reader_end(struct backup_reader *reader, struct errbuf *e)
{
	struct slice tail = buf_slice(&reader->tail);
	uint32_t len, crc;
	if (!backup_read_end(tail, &len, &crc))
		return backup_has_no_manifest(e);
	if (len > tail.len - BACKUP_END_BYTES)
		return errbuf_set(e, ERR_DAMAGED, "its manifest cannot be read");
	struct slice text = {tail.data + tail.len - BACKUP_END_BYTES - len, len};
	if (crc32c(0, text.data, text.len) != crc)
		return errbuf_set(e, ERR_DAMAGED,
				  "its manifest is damaged: its checksum is another");
	int err = backup_read_facts(&text, &reader->manifest, e);
	if (err)
		return err;
	struct backup_sums *sums = &reader->sums;
	uint64_t bytes = sums->bytes + tail.len - BACKUP_END_BYTES - len;
	if (bytes != reader->manifest.bytes)
		return errbuf_set(e, ERR_DAMAGED,
				  "it has %" PRIu64 " bytes of the store, and its manifest says "
				  "%" PRIu64,
				  bytes, reader->manifest.bytes);
	err = backup_hand_on(reader, (struct slice){tail.data, (size_t)(bytes - sums->bytes)}, e);
	return err ? err : backup_compare_sums(sums, text, e);
}
