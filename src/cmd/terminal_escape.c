#include "cmd/terminal_escape.h"

#include <stdio.h>
#include <unistd.h>

#include "base/utf8.h"

enum {
	PIECE_OUT_MAX_BYTES = 512 << 20,
	PIECE_BYTES = 64 << 10,
	COMPLAINT_MAX_BYTES = 8192,
};

/* The character at p; how many bytes of it were taken. */
static size_t terminal_append_one(struct buf *out, const uint8_t *p, size_t left)
{
	char shown[VISIBLE_MAX_BYTES];
	size_t taken;
	buf_append(out, shown, visible_put(shown, (struct slice){(const char *)p, left}, &taken));
	return taken;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Whether more bytes could make a character of these. */
static bool terminal_is_begun(const uint8_t *p, size_t left)
{
	uint8_t whole[4] = {0x80, 0x80, 0x80, 0x80};
	if (p[0] == '\r')
		return left == 1;
	if (p[0] < 0xc2 || left > 3)
		return false;
	memcpy(whole, p, left);
	if (left == 1 && (p[0] == 0xe0 || p[0] == 0xf0))
		whole[1] = 0xa0 - (p[0] == 0xf0 ? 0x10 : 0);
	return utf8_length(whole, sizeof(whole)) > left;
}

static size_t terminal_append_of_lines(struct buf *out, const uint8_t *p, size_t left)
{
	bool crlf = left >= 2 && p[0] == '\r' && p[1] == '\n';
	if (!crlf && p[0] != '\n' && p[0] != '\t')
		return terminal_append_one(out, p, left);
	buf_append(out, p, crlf ? 2 : 1);
	return crlf ? 2 : 1;
}

static void terminal_append_all(struct terminal_lines *lines, struct buf *out, struct slice text,
				bool last)
{
	const uint8_t *p = (const uint8_t *)text.data;
	size_t i = 0;
	while (i < text.len && (last || utf8_length(p + i, text.len - i) > (p[i] == '\r') ||
				!terminal_is_begun(p + i, text.len - i)))
		i += terminal_append_of_lines(out, p + i, text.len - i);
	lines->held = text.len - i;
	ASSERT(lines->held <= sizeof(lines->rest));
	memcpy(lines->rest, p + i, lines->held);
}

static void terminal_append_piece(struct terminal_lines *lines, struct buf *out, struct slice piece,
				  bool last)
{
	struct buf whole;
	buf_init(&whole, PIECE_OUT_MAX_BYTES);
	buf_append(&whole, lines->rest, lines->held);
	buf_append(&whole, piece.data, piece.len);
	out->failed |= whole.failed;
	if (!whole.failed && whole.len)
		terminal_append_all(lines, out, buf_slice(&whole), last);
	buf_release(&whole);
}

void terminal_append_lines(struct terminal_lines *lines, struct buf *out, struct slice piece)
{
	terminal_append_piece(lines, out, piece, false);
}

void terminal_end_lines(struct terminal_lines *lines, struct buf *out)
{
	terminal_append_piece(lines, out, SLICE(""), true);
}

/* ---- Standard output ------------------------------------------------------------------------- */

bool terminal_is_output(void)
{
	return isatty(STDOUT_FILENO);
}

static bool terminal_print_some(struct terminal_lines *lines, struct slice piece, bool last)
{
	struct buf out;
	buf_init(&out, PIECE_OUT_MAX_BYTES);
	terminal_append_piece(lines, &out, piece, last);
	bool whole = !out.failed;
	if (out.len)
		whole = whole && fwrite(out.data, 1, out.len, stdout) == out.len;
	buf_release(&out);
	return whole;
}

bool terminal_print(struct terminal_lines *lines, struct slice piece, bool last)
{
	if (!terminal_is_output())
		return fwrite(piece.data, 1, piece.len, stdout) == piece.len;
	bool good = true;
	while (piece.len > PIECE_BYTES && good) {
		good = terminal_print_some(lines, (struct slice){piece.data, PIECE_BYTES}, false);
		piece = (struct slice){piece.data + PIECE_BYTES, piece.len - PIECE_BYTES};
	}
	return good && terminal_print_some(lines, piece, last);
}

/* ---- Standard error -------------------------------------------------------------------------- */

void terminal_complain(const char *fmt, ...)
{
	struct terminal_lines lines = {0};
	char sentence[COMPLAINT_MAX_BYTES];
	struct buf out;
	va_list arguments;

	fflush(stdout);
	va_start(arguments, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, arguments);
	va_end(arguments);
	buf_init(&out, VISIBLE_MAX_BYTES * COMPLAINT_MAX_BYTES);
	terminal_append_lines(&lines, &out, slice_of(sentence));
	terminal_end_lines(&lines, &out);
	fprintf(stderr, "%.*s\n", (int)out.len, out.data);
	buf_release(&out);
}
