/* Reads JSON from a file and writes it again: for comparison with other readers.
 *
 * json_check FILE     exit 0 and the document; exit 1 and the reason on standard error json_check
 * -n FILE  many documents, each as a line with its length in bytes, that many bytes
 *                         and a line end; answers one line each: `ok <document>` or `bad <reason>`
 */
#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "wire/json.h"
#include "wire/number.h"

enum { FILE_MAX_BYTES = 256 << 20, ARENA_MAX_BYTES = 1 << 30 };

/* The events must tell the same story as the tree: as many values, the same fault. */
static void check_events(struct slice text, struct arena *arena, int tree_err)
{
	struct json_reader reader;
	enum json_event event;
	json_reader_init(&reader, text, arena);
	do
		event = json_next(&reader);
	while (event != JSON_BAD && event != JSON_END);
	ASSERT((event == JSON_END) == (tree_err == 0));
	ASSERT((reader.reason == NULL) == (tree_err == 0));
}

/* 0 and the document, or an error and the reason, in `out`. */
static int check(struct slice text, struct buf *out)
{
	struct arena arena;
	struct errbuf e;
	struct json *root;
	arena_init(&arena, ARENA_MAX_BYTES);
	int err = json_parse(text, &arena, &root, &e);
	check_events(text, &arena, err);
	if (err) {
		buf_append_text(out, e.text);
	} else {
		struct json_writer writer;
		json_writer_init(&writer, out);
		json_write_tree(&writer, root);
	}
	arena_release(&arena);
	return err;
}

static int check_many(struct slice all)
{
	const char *p = all.data, *end = all.data + all.len;
	struct buf out;
	buf_init(&out, FILE_MAX_BYTES);
	while (p < end) {
		uint64_t len;
		p = number_scan_digits(p, end, &len);
		if (p == end || *p != '\n' || len + 2 > (uint64_t)(end - p))
			return 2;
		buf_clear(&out);
		int err = check((struct slice){p + 1, len}, &out);
		printf("%s %.*s\n", err ? "bad" : "ok", (int)out.len, out.data);
		p += len + 2;
	}
	buf_release(&out);
	return 0;
}

static int check_one(struct slice text)
{
	struct buf out;
	buf_init(&out, FILE_MAX_BYTES);
	int err = check(text, &out);
	fprintf(err ? stderr : stdout, "%.*s\n", (int)out.len, out.data);
	buf_release(&out);
	return err ? 1 : 0;
}

int main(int argc, char **argv)
{
	bool many = argc == 3 && slice_equal(slice_of(argv[1]), SLICE("-n"));
	if (argc != 2 && !many) {
		fprintf(stderr, "usage: json_check [-n] FILE\n");
		return 2;
	}
	struct buf file;
	buf_init(&file, FILE_MAX_BYTES);
	int err = files_real()->read(files_real(), argv[argc - 1], FILE_MAX_BYTES, &file);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[argc - 1], err_text(err));
		return 2;
	}
	int status = many ? check_many(buf_slice(&file)) : check_one(buf_slice(&file));
	buf_release(&file);
	return status;
}
