#include "wire/percent.h"

#include "wire/number.h"

/* The byte of `%XX` at text[at], or -1. */
static int percent_decode_byte(struct slice text, size_t at)
{
	if (text.len - at < 3)
		return -1;
	int high = number_hex_digit(text.data[at + 1]);
	int low = number_hex_digit(text.data[at + 2]);
	int byte = high * 16 + low;
	return high < 0 || low < 0 || byte == 0 ? -1 : byte;
}

static bool percent_is_needed(struct slice text, bool plus)
{
	return text.len &&
	       (memchr(text.data, '%', text.len) || (plus && memchr(text.data, '+', text.len)));
}

int percent_decode(struct slice text, bool plus, struct arena *arena, struct slice *out)
{
	*out = text;
	if (!percent_is_needed(text, plus))
		return 0;
	char *to = arena_alloc(arena, text.len);
	if (!to)
		return ERR_LIMIT;
	size_t len = 0;
	for (size_t i = 0; i < text.len; i++) {
		int byte = text.data[i];
		if (byte == '%') {
			byte = percent_decode_byte(text, i);
			if (byte < 0)
				return ERR_INVALID;
			i += 2;
		} else if (plus && byte == '+') {
			byte = ' ';
		}
		to[len++] = (char)byte;
	}
	*out = (struct slice){to, len};
	return 0;
}

void percent_encode(struct slice text, struct buf *out)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";
	for (size_t i = 0; i < text.len; i++) {
		if (memchr(plain, text.data[i], sizeof(plain) - 1))
			buf_append_char(out, text.data[i]);
		else
			buf_printf(out, "%%%02X", (unsigned char)text.data[i]);
	}
}
