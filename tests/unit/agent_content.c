/* The content of plain and packed files, read at every offset, cut off at every byte. The packed
 * bytes are those of gzip 1.12, of zlib and of libzstd. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <zstd.h>

#include "agent/content.h"
#include "agent_files.h"
#include "base/random.h"
#include "http/coding.h"

enum { TEXT_BYTES = 300000 }; /* several pieces of a decoder's, and of the file's */

/* `printf 'one\ntwo\nthree\nfour\n' | gzip -n` */
static const uint8_t lines_gz[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03,
				   0xcb, 0xcf, 0x4b, 0xe5, 0x2a, 0x29, 0xcf, 0xe7, 0x2a, 0xc9,
				   0x28, 0x4a, 0x4d, 0xe5, 0x4a, 0xcb, 0x2f, 0x2d, 0xe2, 0x02,
				   0x00, 0x9e, 0x02, 0x62, 0xd7, 0x13, 0x00, 0x00, 0x00};
#define LINES "one\ntwo\nthree\nfour\n"

struct contents {
	struct sim_files sim;
	struct clock_virtual clock;
	char text[TEXT_BYTES];
};

static int make_contents(void **state)
{
	struct contents *all = mem_zalloc(sizeof(*all));
	struct random random;
	random_init(&random, 3);
	/* Half of it is packed well, the other half not at all. */
	for (size_t i = 0; i < TEXT_BYTES; i++)
		all->text[i] = i % 20000 < 10000 ? (char)('a' + i / 100 % 26)
						 : (char)random_below(&random, 256);
	clock_virtual_init(&all->clock, 1795953600000000);
	sim_files_init(&all->sim, &all->clock.clock);
	*state = all;
	return 0;
}

static int free_contents(void **state)
{
	struct contents *all = *state;
	assert_int_equal(all->sim.open_count, 0);
	sim_files_release(&all->sim);
	mem_free(all);
	return 0;
}

static void put(struct contents *all, const char *path, const void *bytes, size_t len)
{
	struct sim_file *file = sim_find(&all->sim, path);
	sim_append(&all->sim, file ? file : sim_make(&all->sim, path), bytes, len);
}

static void put_gzip(struct contents *all, const char *path, const char *text, size_t len)
{
	struct buf out;
	struct gzip *gzip = gzip_new();
	buf_init(&out, 4 << 20);
	assert_int_equal(gzip_write(gzip, (struct slice){text, len}, true, &out), 0);
	put(all, path, out.data, out.len);
	gzip_free(gzip);
	buf_release(&out);
}

static void put_zstd(struct contents *all, const char *path, const char *text, size_t len)
{
	char *out = mem_alloc(ZSTD_compressBound(len));
	size_t packed = ZSTD_compress(out, ZSTD_compressBound(len), text, len, 3);
	assert_false(ZSTD_isError(packed));
	put(all, path, out, packed);
	mem_free(out);
}

static struct content *open_content(struct contents *all, const char *path)
{
	struct content *content = NULL;
	struct file_look look;
	enum content_packing packing = content_packing_of(slice_of(path));
	assert_int_equal(content_open(&all->sim.files, path, packing, &content, &look), 0);
	assert_int_equal(content_is_packed(content), packing != CONTENT_PLAIN);
	assert_int_equal(look.bytes, sim_find(&all->sim, path)->bytes.len);
	return content;
}

static void expect_bytes(struct content *content, uint64_t offset, size_t max_bytes,
			 const char *text, size_t text_bytes)
{
	char *bytes = mem_alloc(max_bytes + 1);
	size_t got = 12345;
	size_t left = offset < text_bytes ? text_bytes - (size_t)offset : 0;
	bytes[max_bytes] = '#';
	assert_int_equal(content_read(content, offset, bytes, max_bytes, &got), 0);
	assert_int_equal(got, left < max_bytes ? left : max_bytes);
	assert_true(!got || memcmp(bytes, text + offset, got) == 0);
	assert_int_equal(bytes[max_bytes], '#');
	mem_free(bytes);
}

static void packing_is_said_by_the_name(UNUSED void **state)
{
	static const struct {
		const char *name;
		enum content_packing packing;
	} rows[] = {
		{"a.gz", CONTENT_GZIP},     {"a.zst", CONTENT_ZSTD},   {"a.zst.gz", CONTENT_GZIP},
		{"a.gz.zst", CONTENT_ZSTD}, {"a", CONTENT_PLAIN},      {"", CONTENT_PLAIN},
		{"agz", CONTENT_PLAIN},     {"a.GZ", CONTENT_PLAIN},   {"a.gz.1", CONTENT_PLAIN},
		{"a.gz/b", CONTENT_PLAIN},  {"a.gzip", CONTENT_PLAIN}, {"gz", CONTENT_PLAIN},
		{"a.bz2", CONTENT_PLAIN},   {"a.zstd", CONTENT_PLAIN}, {".gz", CONTENT_GZIP},
		{"a.gz ", CONTENT_PLAIN},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(content_packing_of(slice_of(rows[i].name)), rows[i].packing);
}

/* Each offset and length of a short text. */
static void a_short_text_is_read_at_every_offset(void **state)
{
	struct contents *all = *state;
	static const char *const paths[] = {"/d/p", "/d/1.gz", "/d/2.gz", "/d/1.zst", "/d/2.zst"};
	put(all, paths[0], LINES, 19);
	put(all, paths[1], lines_gz, sizeof(lines_gz));
	put_gzip(all, paths[2], LINES, 4); /* two members */
	put_gzip(all, paths[2], &LINES[4], 15);
	put_zstd(all, paths[3], LINES, 19);
	put_zstd(all, paths[4], LINES, 8); /* three frames, one of nothing */
	put_zstd(all, paths[4], "", 0);
	put_zstd(all, paths[4], &LINES[8], 11);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct content *content = open_content(all, paths[i]);
		for (uint64_t offset = 0; offset < 25; offset++)
			for (size_t len = 0; len < 25; len++)
				expect_bytes(content, offset, len, LINES, 19);
		for (uint64_t offset = 25; offset-- > 0;)
			expect_bytes(content, offset, 5, LINES, 19);
		expect_bytes(content, UINT32_MAX, 5, LINES, 19);
		expect_bytes(content, UINT64_MAX - 5, 5, LINES, 19);
		expect_bytes(content, 0, 5, LINES, 19);
		content_close(content);
	}
}

static void a_long_text_is_read_back_and_forth(void **state)
{
	struct contents *all = *state;
	static const char *const paths[] = {"/d/p", "/d/1.gz", "/d/2.gz", "/d/1.zst", "/d/2.zst"};
	struct random random;
	random_init(&random, 5);
	put(all, paths[0], all->text, TEXT_BYTES);
	put_gzip(all, paths[1], all->text, TEXT_BYTES);
	put_gzip(all, paths[2], all->text, 100000);
	put_gzip(all, paths[2], all->text + 100000, TEXT_BYTES - 100000);
	put_zstd(all, paths[3], all->text, TEXT_BYTES);
	put_zstd(all, paths[4], all->text, 131072);
	put_zstd(all, paths[4], all->text + 131072, TEXT_BYTES - 131072);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct content *content = open_content(all, paths[i]);
		expect_bytes(content, 0, TEXT_BYTES + 1, all->text, TEXT_BYTES);
		expect_bytes(content, TEXT_BYTES - 1, 10, all->text, TEXT_BYTES);
		expect_bytes(content, TEXT_BYTES, 10, all->text, TEXT_BYTES);
		for (uint64_t offset = 0; offset < TEXT_BYTES; offset += 4999)
			expect_bytes(content, offset, 4999, all->text, TEXT_BYTES);
		/* Around where the pieces, members and frames end. */
		for (uint64_t offset = 131072 + 2; offset > 131072 - 3; offset--)
			expect_bytes(content, offset, 3, all->text, TEXT_BYTES);
		for (int j = 0; j < 60; j++)
			expect_bytes(content, random_below(&random, TEXT_BYTES + 100),
				     random_below(&random, 70000), all->text, TEXT_BYTES);
		content_close(content);
	}
}

static void marks_do_not_depend_on_packing(void **state)
{
	struct contents *all = *state;
	static const uint64_t offsets[] = {TEXT_BYTES, 0, 1, 1023, 1024, 1025, 131072, 131073, 5};
	struct content_mark mark, plain;
	put(all, "/d/p", all->text, TEXT_BYTES);
	put_gzip(all, "/d/p.gz", all->text, TEXT_BYTES);
	put_zstd(all, "/d/p.zst", all->text, TEXT_BYTES);
	struct content *contents[] = {open_content(all, "/d/p"), open_content(all, "/d/p.gz"),
				      open_content(all, "/d/p.zst")};
	for (size_t i = 0; i < ARRAY_LEN(offsets); i++) {
		uint64_t at = offsets[i], len = at < 1024 ? at : 1024;
		plain = content_mark_of(all->text + at - len, len);
		for (size_t j = 0; j < 3; j++) {
			assert_int_equal(content_mark_at(contents[j], at, &mark), 0);
			assert_int_equal(mark.bytes, len);
			assert_int_equal(mark.hash, plain.hash);
			assert_int_equal(content_check(contents[j], at, mark), 0);
			mark.hash++;
			assert_int_equal(content_check(contents[j], at, mark), ERR_NOT_FOUND);
		}
	}
	for (size_t j = 0; j < 3; j++)
		content_close(contents[j]);
}

static void marks_of_other_contents(void **state)
{
	struct contents *all = *state;
	static const char *const paths[] = {"/d/p", "/d/p.gz", "/d/p.zst"};
	put(all, paths[0], all->text, 2000);
	put_gzip(all, paths[1], all->text, 2000);
	put_zstd(all, paths[2], all->text, 2000);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		struct content *content = open_content(all, paths[i]);
		struct content_mark mark = {7, 7}, few = {3, 0};
		assert_int_equal(content_mark_at(content, 2001, &mark), ERR_NOT_FOUND);
		assert_int_equal(content_mark_at(content, 4000, &mark), ERR_NOT_FOUND);
		assert_int_equal(content_mark_at(content, UINT64_MAX, &mark), ERR_NOT_FOUND);
		assert_int_equal(mark.bytes, 7); /* as it was */
		assert_int_equal(content_mark_at(content, 2000, &mark), 0);
		assert_int_equal(content_check(content, 2000, mark), 0);
		/* Elsewhere, behind the end, in front of the beginning. */
		assert_int_equal(content_check(content, 1999, mark), ERR_NOT_FOUND);
		assert_int_equal(content_check(content, 2001, mark), ERR_NOT_FOUND);
		assert_int_equal(content_check(content, UINT64_MAX, mark), ERR_NOT_FOUND);
		assert_int_equal(content_check(content, 1023, mark), ERR_NOT_FOUND);
		assert_int_equal(content_check(content, 2, few), ERR_NOT_FOUND);
		/* One that a checkpoint cannot have. */
		mark.bytes = 1025;
		assert_int_equal(content_check(content, 2000, mark), ERR_NOT_FOUND);
		mark.bytes = UINT32_MAX;
		assert_int_equal(content_check(content, UINT64_MAX, mark), ERR_NOT_FOUND);
		assert_int_equal(content_check_head(content, mark), ERR_NOT_FOUND);
		/* Nothing is in front of everything that is there. */
		assert_int_equal(content_check(content, 2000, content_mark_of(NULL, 0)), 0);
		content_close(content);
	}
}

static void a_head_that_grows(void **state)
{
	struct contents *all = *state;
	struct content_mark head = {0, 0}, before;
	put(all, "/d/p", "", 0);
	struct content *content = open_content(all, "/d/p");
	assert_int_equal(content_note_head(content, &head), 0);
	assert_int_equal(head.bytes, 0);
	put(all, "/d/p", "begin", 5);
	assert_int_equal(content_note_head(content, &head), 0);
	assert_int_equal(head.bytes, 5);
	assert_int_equal(head.hash, content_mark_of("begin", 5).hash);
	assert_int_equal(content_check_head(content, head), 0);
	put(all, "/d/p", all->text, 3000);
	assert_int_equal(content_check_head(content, head), 0);
	assert_int_equal(content_note_head(content, &head), 0);
	assert_int_equal(head.bytes, 1024);
	/* Its head is not longer than that, and what comes behind it does not matter. */
	before = head;
	put(all, "/d/p", "more", 4);
	assert_int_equal(content_note_head(content, &head), 0);
	assert_memory_equal(&head, &before, sizeof(head));
	content_close(content);
}

static void another_beginning_is_noticed(void **state)
{
	struct contents *all = *state;
	static const char *const others[] = {"", "b", "begi", "Begin", "begiN", "Begin and more"};
	put(all, "/d/p", "begin", 5);
	struct content *content = open_content(all, "/d/p");
	struct content_mark noted = {0, 0};
	assert_int_equal(content_note_head(content, &noted), 0);
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		struct content_mark head = noted;
		sim_truncate(&all->sim, sim_find(&all->sim, "/d/p"));
		put(all, "/d/p", others[i], strlen(others[i]));
		assert_int_equal(content_note_head(content, &head), ERR_NOT_FOUND);
		assert_int_equal(head.bytes, 5); /* as it was */
		assert_int_equal(head.hash, noted.hash);
		assert_int_equal(content_check_head(content, head), ERR_NOT_FOUND);
	}
	content_close(content);
}

static void a_plain_file_that_grows_is_read_on(void **state)
{
	struct contents *all = *state;
	put(all, "/d/p", all->text, 10);
	struct content *content = open_content(all, "/d/p");
	for (size_t len = 10; len < 3000; len += 497) {
		struct file_look look;
		expect_bytes(content, 0, 4000, all->text, len);
		expect_bytes(content, len, 4000, all->text, len);
		assert_int_equal(content_look(content, &look), 0);
		assert_int_equal(look.bytes, len);
		put(all, "/d/p", all->text + len, 497);
	}
	sim_unlink(&all->sim, "/d/p");
	expect_bytes(content, 0, 4000, all->text, 10 + 7 * 497);
	content_close(content);
}

/* As while it is written by who packs it: damaged until it is whole. */
static void a_packed_file_that_grows_is_damaged_until_it_is_whole(void **state)
{
	struct contents *all = *state;
	char bytes[64];
	size_t got;
	put(all, "/d/a.gz", lines_gz, 0);
	struct content *content = open_content(all, "/d/a.gz");
	for (size_t i = 0; i < sizeof(lines_gz); i++) {
		assert_int_equal(content_read(content, 0, bytes, 64, &got), ERR_DAMAGED);
		put(all, "/d/a.gz", lines_gz + i, 1);
	}
	expect_bytes(content, 0, 64, LINES, 19);
	expect_bytes(content, 4, 3, LINES, 19);
	content_close(content);
}

/* Cuts a file off at each place: what is given out is right, and the end is believed only where a
 * member or a frame ends. */
static void check_cut_off(struct contents *all, const char *path, size_t len, size_t step,
			  size_t border, size_t border_text)
{
	char *bytes = mem_alloc(len + 100);
	struct sim_file *whole = sim_find(&all->sim, path);
	struct slice packed = mem_copy_slice(buf_slice(&whole->bytes));
	for (size_t cut = 0; cut < packed.len; cut += cut < 300 ? 1 : step) {
		struct file_look look;
		struct content *content;
		size_t got = 0, expected = len + 100;
		sim_truncate(&all->sim, sim_find(&all->sim, path));
		put(all, path, packed.data, cut);
		assert_int_equal(content_open(&all->sim.files, path,
					      content_packing_of(slice_of(path)), &content, &look),
				 0);
		int err = content_read(content, 0, bytes, expected, &got);
		if (cut == border) {
			assert_int_equal(err, 0);
			assert_int_equal(got, border_text);
		} else {
			assert_int_equal(err, ERR_DAMAGED);
		}
		assert_true(got <= len);
		assert_memory_equal(bytes, all->text, got);
		/* It stays damaged, and the front may be read. */
		err = content_read(content, 0, bytes, 10, &got);
		assert_true(err == 0 || err == ERR_DAMAGED);
		assert_memory_equal(bytes, all->text, got);
		err = content_read(content, len - 1, bytes, 10, &got);
		assert_true(err == ERR_DAMAGED || (err == 0 && (got == 0 || got == 1)));
		assert_true(got == 0 || bytes[0] == all->text[len - 1]);
		content_close(content);
	}
	mem_free_slice(packed);
	mem_free(bytes);
}

static void a_packed_file_that_is_cut_off(void **state)
{
	struct contents *all = *state;
	put_gzip(all, "/d/a.gz", all->text, 150);
	check_cut_off(all, "/d/a.gz", 150, 1, SIZE_MAX, 0);
	put_zstd(all, "/d/a.zst", all->text, 150);
	check_cut_off(all, "/d/a.zst", 150, 1, SIZE_MAX, 0);
	put_gzip(all, "/d/b.gz", all->text, 100);
	size_t border = sim_find(&all->sim, "/d/b.gz")->bytes.len;
	put_gzip(all, "/d/b.gz", all->text + 100, 50);
	check_cut_off(all, "/d/b.gz", 150, 1, border, 100);
	put_zstd(all, "/d/b.zst", all->text, 100);
	border = sim_find(&all->sim, "/d/b.zst")->bytes.len;
	put_zstd(all, "/d/b.zst", all->text + 100, 50);
	check_cut_off(all, "/d/b.zst", 150, 1, border, 100);
	put_gzip(all, "/d/c.gz", all->text, TEXT_BYTES);
	check_cut_off(all, "/d/c.gz", TEXT_BYTES, 997, SIZE_MAX, 0);
	put_zstd(all, "/d/c.zst", all->text, TEXT_BYTES);
	check_cut_off(all, "/d/c.zst", TEXT_BYTES, 997, SIZE_MAX, 0);
}

/* One bit is another one: gzip has fields that mean nothing to the data (RFC 1952 2.3), so that
 * the content may be right all the same; it is never taken for whole and another one. */
static void a_packed_file_with_a_wrong_bit(void **state)
{
	struct contents *all = *state;
	for (size_t i = 0; i < sizeof(lines_gz) * 8; i++) {
		uint8_t broken[sizeof(lines_gz)];
		char bytes[64];
		size_t got;
		memcpy(broken, lines_gz, sizeof(broken));
		broken[i / 8] ^= (uint8_t)(1 << i % 8);
		sim_unlink(&all->sim, "/d/a.gz");
		put(all, "/d/a.gz", broken, sizeof(broken));
		struct content *content = open_content(all, "/d/a.gz");
		int err = content_read(content, 0, bytes, sizeof(bytes), &got);
		if (err == 0) {
			assert_true(slice_equal((struct slice){bytes, got}, SLICE(LINES)));
			/* flags, time, level, system; the bits behind the deflated data */
			assert_true((i / 8 >= 3 && i / 8 <= 9) || i / 8 == 30);
		} else {
			assert_int_equal(err, ERR_DAMAGED);
		}
		content_close(content);
	}
}

static void what_cannot_be_opened(void **state)
{
	struct contents *all = *state;
	struct content *content = NULL;
	struct file_look look;
	char bytes[10];
	size_t got;
	assert_int_equal(content_open(&all->sim.files, "/d/p", CONTENT_PLAIN, &content, &look),
			 ERR_NOT_FOUND);
	put(all, "/d/p", "x", 1);
	sim_find(&all->sim, "/d/p")->unreadable = true;
	assert_int_equal(content_open(&all->sim.files, "/d/p", CONTENT_PLAIN, &content, &look),
			 -EACCES);
	assert_int_equal(content_open(files_real(), "/tmp", CONTENT_PLAIN, &content, &look),
			 ERR_INVALID);
	assert_int_equal(content_open(files_real(), "/dev/null", CONTENT_GZIP, &content, &look),
			 ERR_INVALID);
	assert_null(content);
	content_close(NULL);
	/* Plain text under a packed one's name. */
	put(all, "/d/text.gz", LINES, 19);
	content = open_content(all, "/d/text.gz");
	assert_int_equal(content_read(content, 0, bytes, 10, &got), ERR_DAMAGED);
	assert_int_equal(content_note_head(content, &(struct content_mark){0, 0}), ERR_DAMAGED);
	assert_int_equal(content_check(content, 5, content_mark_of(LINES, 5)), ERR_DAMAGED);
	content_close(content);
}

#define WITH_FILES(f) cmocka_unit_test_setup_teardown(f, make_contents, free_contents)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packing_is_said_by_the_name),
		WITH_FILES(a_short_text_is_read_at_every_offset),
		WITH_FILES(a_long_text_is_read_back_and_forth),
		WITH_FILES(marks_do_not_depend_on_packing),
		WITH_FILES(marks_of_other_contents),
		WITH_FILES(a_head_that_grows),
		WITH_FILES(another_beginning_is_noticed),
		WITH_FILES(a_plain_file_that_grows_is_read_on),
		WITH_FILES(a_packed_file_that_grows_is_damaged_until_it_is_whole),
		WITH_FILES(a_packed_file_that_is_cut_off),
		WITH_FILES(a_packed_file_with_a_wrong_bit),
		WITH_FILES(what_cannot_be_opened),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
