#include "cmd/visible.h"

#include <stdio.h>
#include <unistd.h>

#include "base/utf8.h"

enum { PIECE_OUT_MAX_BYTES = 512 << 20, PIECE_BYTES = 64 << 10 };

/* Of a sequence of two or more bytes. */
static uint32_t code_of(const uint8_t *p, size_t len)
{
	uint32_t code = p[0] & (0x7fU >> len);
	for (size_t i = 1; i < len; i++)
		code = code << 6 | (p[i] & 0x3fU);
	return code;
}

static bool is_between(uint32_t code, uint32_t first, uint32_t last)
{
	return first <= code && code <= last;
}

/* C1; ends of lines; marks, embeddings, overrides and isolates of direction. */
static bool is_command(uint32_t code)
{
	return is_between(code, 0x80, 0x9f) || code == 0x61c || is_between(code, 0x200e, 0x200f) ||
	       is_between(code, 0x2028, 0x202e) || is_between(code, 0x2066, 0x2069);
}

static void append_byte(struct buf *out, uint8_t byte)
{
	static const char names[] = "\tt\nn\rr";
	const char *name = byte ? strchr(names, byte) : NULL;
	if (name && byte < 0x20)
		buf_printf(out, "\\%c", name[1]);
	else if (byte < 0x20 || byte >= 0x7f)
		buf_printf(out, "\\x%02x", byte);
	else
		buf_append_char(out, (char)byte);
}

/* The character at p, of `len` bytes (0: it is none); how many bytes of it were taken. */
static size_t append_one(struct buf *out, const uint8_t *p, size_t len)
{
	if (len < 2) {
		append_byte(out, p[0]);
		return 1;
	}
	uint32_t code = code_of(p, len);
	if (is_command(code))
		buf_printf(out, "\\u%04x", (unsigned)code);
	else
		buf_append(out, p, len);
	return len;
}

void visible_append(struct buf *out, struct slice text)
{
	const uint8_t *p = (const uint8_t *)text.data;
	for (size_t i = 0; i < text.len;)
		i += append_one(out, p + i, utf8_length(p + i, text.len - i));
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Whether more bytes could make a character of these. */
static bool is_begun(const uint8_t *p, size_t left)
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

static size_t append_of_lines(struct buf *out, const uint8_t *p, size_t left)
{
	bool crlf = left >= 2 && p[0] == '\r' && p[1] == '\n';
	if (!crlf && p[0] != '\n' && p[0] != '\t')
		return append_one(out, p, utf8_length(p, left));
	buf_append(out, p, crlf ? 2 : 1);
	return crlf ? 2 : 1;
}

static void append_lines(struct visible_lines *lines, struct buf *out, struct slice text, bool last)
{
	const uint8_t *p = (const uint8_t *)text.data;
	size_t i = 0;
	while (i < text.len && (last || utf8_length(p + i, text.len - i) > (p[i] == '\r') ||
				!is_begun(p + i, text.len - i)))
		i += append_of_lines(out, p + i, text.len - i);
	lines->held = text.len - i;
	ASSERT(lines->held <= sizeof(lines->rest));
	memcpy(lines->rest, p + i, lines->held);
}

static void append_piece(struct visible_lines *lines, struct buf *out, struct slice piece,
			 bool last)
{
	struct buf whole;
	buf_init(&whole, PIECE_OUT_MAX_BYTES);
	buf_append(&whole, lines->rest, lines->held);
	buf_append(&whole, piece.data, piece.len);
	out->failed |= whole.failed;
	if (!whole.failed && whole.len)
		append_lines(lines, out, buf_slice(&whole), last);
	buf_release(&whole);
}

void visible_append_lines(struct visible_lines *lines, struct buf *out, struct slice piece)
{
	append_piece(lines, out, piece, false);
}

void visible_end_lines(struct visible_lines *lines, struct buf *out)
{
	append_piece(lines, out, SLICE(""), true);
}

/* ---- Standard output ------------------------------------------------------------------------- */

bool visible_is_needed(void)
{
	return isatty(STDOUT_FILENO);
}

static bool print_some(struct visible_lines *lines, struct slice piece, bool last)
{
	struct buf out;
	buf_init(&out, PIECE_OUT_MAX_BYTES);
	append_piece(lines, &out, piece, last);
	bool whole = !out.failed;
	if (out.len)
		whole = whole && fwrite(out.data, 1, out.len, stdout) == out.len;
	buf_release(&out);
	return whole;
}

bool visible_print(struct visible_lines *lines, struct slice piece, bool last)
{
	if (!visible_is_needed())
		return fwrite(piece.data, 1, piece.len, stdout) == piece.len;
	bool good = true;
	while (piece.len > PIECE_BYTES && good) {
		good = print_some(lines, (struct slice){piece.data, PIECE_BYTES}, false);
		piece = (struct slice){piece.data + PIECE_BYTES, piece.len - PIECE_BYTES};
	}
	return good && print_some(lines, piece, last);
}
