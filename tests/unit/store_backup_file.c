/* The file of a backup. Checksums are those of RFC 3720 ("123456789" has e3069283), of 64 MiB of
 * zeros and of the manifest, by a program of a few lines in Python that makes them bit by bit. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/hash.h"
#include "store/backup_file.h"

#define DATA "123456789"
#define MANIFEST                                                                                   \
	"granary backup\nformat 1\nprogram 0.1.0\ntime 1600000000000\nbytes 9\nchunk 67108864\n"   \
	"e3069283\n"
#define END "end 00000059 984e2898\n"

struct taken {
	struct buf bytes;
	uint64_t total;
	int err;
};

static int take(void *owner, struct slice piece, struct errbuf *e)
{
	struct taken *taken = owner;
	taken->total += piece.len;
	if (taken->bytes.max)
		buf_append(&taken->bytes, piece.data, piece.len);
	return taken->err ? errbuf_set(e, taken->err, "not taken") : 0;
}

/* Reads `text` in pieces of that many bytes. */
static int read_in_pieces(struct slice text, size_t piece_bytes, struct taken *taken,
			  struct backup_manifest *manifest, struct errbuf *e)
{
	struct backup_reader reader = {.data = take, .owner = taken};
	int err = 0;
	e->text[0] = 0;
	backup_reader_init(&reader);
	for (size_t at = 0; at < text.len && !err; at += piece_bytes) {
		size_t len = text.len - at < piece_bytes ? text.len - at : piece_bytes;
		err = backup_reader_take(&reader, (struct slice){text.data + at, len}, e);
	}
	if (!err)
		err = backup_reader_end(&reader, e);
	*manifest = reader.manifest;
	backup_reader_release(&reader);
	assert_true(!err || e->text[0]);
	return err;
}

static int read_text(struct slice text, struct errbuf *e)
{
	struct taken taken = {.total = 0};
	struct backup_manifest manifest;
	return read_in_pieces(text, 7, &taken, &manifest, e);
}

static void a_backup_worked_out_by_hand_is_read(UNUSED void **state)
{
	struct backup_manifest manifest;
	struct errbuf e;
	for (size_t piece = 1; piece < 130; piece++) {
		struct taken taken = {.total = 0};
		buf_init(&taken.bytes, 1000);
		assert_int_equal(
			read_in_pieces(SLICE(DATA MANIFEST END), piece, &taken, &manifest, &e), 0);
		assert_int_equal(taken.bytes.len, 9);
		assert_memory_equal(taken.bytes.data, DATA, 9);
		buf_release(&taken.bytes);
	}
	assert_int_equal(manifest.time_ms, 1600000000000);
	assert_int_equal(manifest.bytes, 9);
	assert_string_equal(manifest.program, "0.1.0");
}

static void a_manifest_is_written_as_it_is_read(UNUSED void **state)
{
	struct backup_sums sums;
	struct buf out;
	struct errbuf e;
	backup_sums_init(&sums);
	buf_init(&out, 1 << 20);
	buf_append_text(&out, DATA);
	backup_sums_add(&sums, SLICE("1234"));
	backup_sums_add(&sums, SLICE("56789"));
	backup_manifest_put(&sums, 1600000000000, NULL, &out);
	const char *wanted = DATA "granary backup\nformat 1\nprogram " GRANARY_VERSION
				  "\ntime 1600000000000\nbytes 9\nchunk 67108864\ne3069283\nend ";
	assert_memory_equal(out.data, wanted, strlen(wanted));
	assert_int_equal(out.len, strlen(wanted) + BACKUP_END_BYTES - 4);
	assert_int_equal(read_text(buf_slice(&out), &e), 0);
	buf_release(&out);
	backup_sums_release(&sums);
}

static void cut_short_anywhere_it_is_refused(UNUSED void **state)
{
	struct slice whole = SLICE(DATA MANIFEST END);
	struct errbuf e;
	for (size_t len = 0; len < whole.len; len++) {
		assert_int_equal(read_text((struct slice){whole.data, len}, &e), ERR_INVALID);
		assert_non_null(strstr(e.text, "cut short"));
		struct slice last = {whole.data + (len > 22 ? len - 22 : 0), len > 22 ? 22 : len};
		assert_int_equal(backup_look_at_end(last, &e), ERR_INVALID);
	}
	assert_int_equal(backup_look_at_end(whole, &e), 0);
}

static void whatever_byte_changes_it_is_refused(UNUSED void **state)
{
	char text[] = DATA MANIFEST END;
	struct errbuf e;
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		for (unsigned bit = 0; bit < 8; bit++) {
			text[i] ^= (char)(1 << bit);
			assert_int_not_equal(read_text((struct slice){text, sizeof(text) - 1}, &e),
					     0);
			text[i] ^= (char)(1 << bit);
		}
	}
	assert_int_equal(read_text((struct slice){text, sizeof(text) - 1}, &e), 0);
}

static void what_stands_before_or_behind_is_refused(UNUSED void **state)
{
	struct errbuf e;
	assert_int_equal(read_text(SLICE(DATA MANIFEST END "\n"), &e), ERR_INVALID);
	assert_int_equal(read_text(SLICE("0" DATA MANIFEST END), &e), ERR_DAMAGED);
	assert_non_null(strstr(e.text, "it has 10 bytes of the store, and its manifest says 9"));
	assert_int_equal(read_text(SLICE("23456789" MANIFEST END), &e), ERR_DAMAGED);
	/* Its manifest would begin before it. */
	assert_int_equal(read_text(SLICE("end 00000059 984e2898\n"), &e), ERR_DAMAGED);
	assert_int_equal(read_text(SLICE(""), &e), ERR_INVALID);
}

/* With an end that fits, whatever its text is. */
static int read_manifest(const char *data, const char *text, struct errbuf *e)
{
	struct buf all;
	buf_init(&all, 4096);
	buf_printf(&all, "%s%send %08zx %08x\n", data, text, strlen(text),
		   crc32c(0, text, strlen(text)));
	int err = read_text(buf_slice(&all), e);
	buf_release(&all);
	return err;
}

static void a_newer_format_is_named(UNUSED void **state)
{
	struct errbuf e;
	assert_int_equal(read_manifest(DATA, MANIFEST, &e), 0);
	assert_int_equal(read_manifest(DATA, "granary backup\nformat 2\nanything else\n", &e),
			 ERR_VERSION);
	assert_non_null(strstr(e.text, "format 2; this program reads up to 1"));
}

static void why_the_server_ended_it_is_said(UNUSED void **state)
{
	struct backup_sums sums;
	struct buf out;
	struct errbuf e;
	backup_sums_init(&sums);
	buf_init(&out, 1 << 20);
	buf_append_text(&out, DATA);
	backup_sums_add(&sums, SLICE(DATA));
	backup_manifest_put(&sums, 1, "the disk\nis full", &out);
	assert_int_equal(read_text(buf_slice(&out), &e), ERR_CANCELLED);
	assert_non_null(strstr(e.text, "ended the backup before its end: the disk is full"));
	buf_release(&out);
	backup_sums_release(&sums);
}

static void a_manifest_of_other_lines_is_refused(UNUSED void **state)
{
	static const char *const texts[] = {
		"",
		"granary backup",
		"granary backup\n",
		"granary restore\nformat 1\n",
		"granary backup\nformat one\n",
		"granary backup\nformat 1\nprogram x\ntime -1\nbytes 9\nchunk 67108864\ne3069283\n",
		"granary backup\nformat 1\nprogram x\ntime 1\nbytes 9\nchunk 4096\ne3069283\n",
		"granary backup\nformat 1\nprogram x\ntime 1\nbytes 9\nchunk 67108864\n",
		"granary backup\nformat 1\nprogram x\ntime 1\nbytes 9\nchunk 67108864\nE3069283\n",
		"granary backup\nformat 1\nprogram x\ntime 1\nbytes 9\nchunk 67108864\ne3069283\n"
		"e3069283\n",
		"granary backup\nformat 1\nprogram 12345678901234567890123456789012345678901\n"
		"time 1\nbytes 9\nchunk 67108864\ne3069283\n",
	};
	struct errbuf e;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(read_manifest(DATA, texts[i], &e), ERR_DAMAGED);
}

/* ---- More than one part ---------------------------------------------------------------------- */

/* 64 MiB of zeros, then nine digits. */
static struct buf two_parts(void)
{
	struct backup_sums sums;
	struct buf all;
	buf_init(&all, (size_t)1 << 30);
	backup_sums_init(&sums);
	char *to = buf_reserve(&all, BACKUP_CHUNK_BYTES);
	memset(to, 0, BACKUP_CHUNK_BYTES);
	all.len += BACKUP_CHUNK_BYTES;
	buf_append_text(&all, DATA);
	backup_sums_add(&sums, buf_slice(&all));
	backup_manifest_put(&sums, 1, NULL, &all);
	backup_sums_release(&sums);
	return all;
}

static int read_parts(struct buf *all, struct taken *taken, struct errbuf *e)
{
	struct backup_manifest manifest;
	*taken = (struct taken){.err = taken->err};
	return read_in_pieces(buf_slice(all), 1000003, taken, &manifest, e);
}

static void each_part_has_its_checksum(UNUSED void **state)
{
	struct buf all = two_parts();
	struct taken taken = {.total = 0};
	struct errbuf e;
	const char *sums = "chunk 67108864\n32456b5d\ne3069283\nend ";
	assert_non_null(memmem(all.data + BACKUP_CHUNK_BYTES, all.len - BACKUP_CHUNK_BYTES, sums,
			       strlen(sums)));
	assert_int_equal(read_parts(&all, &taken, &e), 0);
	assert_int_equal(taken.total, BACKUP_CHUNK_BYTES + 9);
	all.data[5] ^= 1;
	assert_int_equal(read_parts(&all, &taken, &e), ERR_DAMAGED);
	assert_non_null(strstr(e.text, "bytes 0 to 67108863 is another (1 of 2 "));
	all.data[BACKUP_CHUNK_BYTES + 8] ^= 1;
	assert_int_equal(read_parts(&all, &taken, &e), ERR_DAMAGED);
	assert_non_null(strstr(e.text, "bytes 0 to 67108863 is another (2 of 2 "));
	all.data[5] ^= 1;
	assert_int_equal(read_parts(&all, &taken, &e), ERR_DAMAGED);
	assert_non_null(strstr(e.text, "bytes 67108864 to 67108872 is another (1 of 2 "));
	buf_release(&all);
}

static void who_cannot_take_it_ends_it(UNUSED void **state)
{
	struct buf all = two_parts();
	struct taken taken = {.err = -ENOSPC};
	struct errbuf e;
	assert_int_equal(read_parts(&all, &taken, &e), -ENOSPC);
	assert_string_equal(e.text, "not taken");
	assert_true(taken.total < BACKUP_CHUNK_BYTES);
	buf_release(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_backup_worked_out_by_hand_is_read),
		cmocka_unit_test(a_manifest_is_written_as_it_is_read),
		cmocka_unit_test(cut_short_anywhere_it_is_refused),
		cmocka_unit_test(whatever_byte_changes_it_is_refused),
		cmocka_unit_test(what_stands_before_or_behind_is_refused),
		cmocka_unit_test(a_newer_format_is_named),
		cmocka_unit_test(why_the_server_ended_it_is_said),
		cmocka_unit_test(a_manifest_of_other_lines_is_refused),
		cmocka_unit_test(each_part_has_its_checksum),
		cmocka_unit_test(who_cannot_take_it_ends_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
