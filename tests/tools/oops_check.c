/* Reads fault reports and writes them again: for comparison with python-oops.
 *
 * oops_check FILE     many documents in any form, each as a line with its length in bytes, that
 *                     many bytes and a line end; answers one line each, `ok <dialect> <tree>` or
 *                     `bad <reason>`
 * oops_check -w FILE  the same, but the answer to one that is good is `ok <dialect> <text>`, with
 *                     the report in the form of rfc822 as a string of JSON
 */
#include <stdio.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "wire/number.h"
#include "wire/oops_document.h"
#include "wire/oops_rfc822.h"

enum { FILE_MAX_BYTES = 256 << 20, ARENA_MAX_BYTES = 64 << 20, UNPACKED_MAX_BYTES = 16 << 20 };

static void answer(const struct json *root, enum oops_dialect dialect, bool write, struct buf *out)
{
	struct json_writer writer;
	struct buf text;
	buf_printf(out, "ok %s ", oops_dialect_name(dialect));
	json_writer_init(&writer, out);
	buf_init(&text, FILE_MAX_BYTES);
	if (write) {
		oops_rfc822_write(root, &text);
		json_write_string(&writer, buf_slice(&text));
	} else {
		json_write_tree(&writer, root);
	}
	buf_release(&text);
}

static void check(struct slice bytes, bool write)
{
	struct arena arena;
	struct buf out, unpacked;
	struct errbuf e;
	struct json *root;
	enum oops_dialect dialect;
	arena_init(&arena, ARENA_MAX_BYTES);
	buf_init(&unpacked, UNPACKED_MAX_BYTES);
	buf_init(&out, FILE_MAX_BYTES);
	if (oops_document_parse(bytes, UNPACKED_MAX_BYTES, &unpacked, &arena, &root, &dialect, &e))
		buf_printf(&out, "bad %s", e.text);
	else
		answer(root, dialect, write, &out);
	ASSERT(!out.failed);
	printf("%.*s\n", (int)out.len, out.data);
	buf_release(&out);
	buf_release(&unpacked);
	arena_release(&arena);
}

static int check_all(struct slice all, bool write)
{
	const char *p = all.data, *end = all.data + all.len;
	while (p < end) {
		uint64_t len;
		p = number_scan_digits(p, end, &len);
		if (p == end || *p != '\n' || len + 2 > (uint64_t)(end - p))
			return 2;
		check((struct slice){p + 1, len}, write);
		p += len + 2;
	}
	return 0;
}

int main(int argc, char **argv)
{
	bool write = argc == 3 && slice_equal(slice_of(argv[1]), SLICE("-w"));
	if (argc != 2 && !write) {
		fprintf(stderr, "usage: oops_check [-w] FILE\n");
		return 2;
	}
	struct buf file;
	buf_init(&file, FILE_MAX_BYTES);
	int err = files_real()->read(files_real(), argv[argc - 1], FILE_MAX_BYTES, &file);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[argc - 1], err_text(err));
		return 2;
	}
	int status = check_all(buf_slice(&file), write);
	buf_release(&file);
	return status;
}
