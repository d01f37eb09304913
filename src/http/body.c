#include "http/body.h"

#include "wire/number.h"

/* ---- Chunks ---------------------------------------------------------------------------------
 *
 *   size [;extension] CR LF  data CR LF  ...  0 [;extension] CR LF  [trailer CR LF]...  CR LF
 */

enum chunk_state {
	CHUNK_SIZE, /* zero: a chunk begins */
	CHUNK_EXTENSION,
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER_FIRST,
	CHUNK_TRAILER,
	CHUNK_TRAILER_LF,
	CHUNK_END_LF,
	CHUNK_DONE,
};

enum { CHUNK_DIGITS_MAX = 15, CHUNK_EXTENSION_MAX_BYTES = 256, CHUNK_TRAILERS_MAX_BYTES = 4096 };

/* Each of these takes one byte and gives NULL or the reason why it cannot stand there. */

static const char *take_size(struct chunked *chunked, uint8_t c)
{
	int digit = number_hex_digit((char)c);
	if (digit >= 0) {
		if (++chunked->digits > CHUNK_DIGITS_MAX)
			return "a chunk size is too long";
		chunked->left = chunked->left * 16 + (unsigned)digit;
		return NULL;
	}
	if (!chunked->digits || (c != '\r' && c != ';'))
		return "a chunk size is no hexadecimal number";
	chunked->state = c == ';' ? CHUNK_EXTENSION : CHUNK_SIZE_LF;
	chunked->line_bytes = 0;
	return NULL;
}

static const char *take_extension(struct chunked *chunked, uint8_t c)
{
	if (c == '\r') {
		chunked->state = CHUNK_SIZE_LF;
		return NULL;
	}
	if ((c < ' ' && c != '\t') || c == 0x7f)
		return "a chunk extension has a control byte";
	return ++chunked->line_bytes > CHUNK_EXTENSION_MAX_BYTES ? "a chunk extension is too long"
								 : NULL;
}

static const char *take_line_end(struct chunked *chunked, uint8_t c, char want, uint8_t next)
{
	chunked->state = next;
	return c == (uint8_t)want ? NULL : "a chunk does not end in CR LF";
}

static const char *take_trailer(struct chunked *chunked, uint8_t c)
{
	bool first = chunked->state == CHUNK_TRAILER_FIRST;
	if (c == '\r') {
		chunked->state = first ? CHUNK_END_LF : CHUNK_TRAILER_LF;
		return NULL;
	}
	if ((c < ' ' && c != '\t') || c == 0x7f || (first && (c == ' ' || c == '\t')))
		return "a trailer is malformed";
	chunked->state = CHUNK_TRAILER;
	return ++chunked->trailer_bytes > CHUNK_TRAILERS_MAX_BYTES ? "the trailers are too long"
								   : NULL;
}

static const char *take_byte(struct chunked *chunked, uint8_t c)
{
	switch ((enum chunk_state)chunked->state) {
	case CHUNK_SIZE:
		return take_size(chunked, c);
	case CHUNK_EXTENSION:
		return take_extension(chunked, c);
	case CHUNK_SIZE_LF:
		return take_line_end(chunked, c, '\n',
				     chunked->left ? CHUNK_DATA : CHUNK_TRAILER_FIRST);
	case CHUNK_DATA_CR:
		return take_line_end(chunked, c, '\r', CHUNK_DATA_LF);
	case CHUNK_DATA_LF:
		chunked->digits = 0;
		return take_line_end(chunked, c, '\n', CHUNK_SIZE);
	case CHUNK_TRAILER_FIRST:
	case CHUNK_TRAILER:
		return take_trailer(chunked, c);
	case CHUNK_TRAILER_LF:
		return take_line_end(chunked, c, '\n', CHUNK_TRAILER_FIRST);
	case CHUNK_END_LF:
		return take_line_end(chunked, c, '\n', CHUNK_DONE);
	case CHUNK_DATA:
	case CHUNK_DONE:
		break;
	}
	return "a chunk is malformed";
}

static struct slice take_data(struct chunked *chunked, struct slice *in)
{
	size_t len = chunked->left < in->len ? (size_t)chunked->left : in->len;
	struct slice piece = {in->data, len};
	*in = (struct slice){in->data + len, in->len - len};
	chunked->left -= len;
	if (!chunked->left)
		chunked->state = CHUNK_DATA_CR;
	return piece;
}

enum body_result chunked_next(struct chunked *chunked, struct slice *in, struct slice *piece,
			      const char **reason)
{
	while (in->len && chunked->state != CHUNK_DONE) {
		if (chunked->state == CHUNK_DATA) {
			*piece = take_data(chunked, in);
			return BODY_PIECE;
		}
		*reason = take_byte(chunked, (uint8_t)in->data[0]);
		if (*reason)
			return BODY_BAD;
		*in = (struct slice){in->data + 1, in->len - 1};
	}
	return chunked->state == CHUNK_DONE ? BODY_END : BODY_MORE;
}
