#include "api/esmond/name.h"

#include "base/buf.h"
#include "base/mem.h"
#include "wire/number.h"

static bool is_safe(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z' && c != 'Y') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

void v2_name_encode(struct slice name, struct buf *out)
{
	static const char hex[] = "0123456789ABCDEF";
	for (size_t i = 0; i < name.len; i++) {
		unsigned char c = (unsigned char)name.data[i];
		char coded[3] = {'@', hex[c >> 4], hex[c & 15]};
		if (is_safe(c))
			buf_append_char(out, (char)c);
		else
			buf_append(out, coded, sizeof(coded));
	}
}

int v2_name_decode(struct slice text, struct arena *arena, struct slice *name)
{
	char *to = arena_alloc(arena, text.len + 1);
	if (!to)
		return ERR_LIMIT;
	*name = (struct slice){to, 0};
	for (size_t i = 0; i < text.len; i++) {
		int high = text.data[i] == '@' && i + 2 < text.len
				   ? number_hex_digit(text.data[i + 1])
				   : -1;
		int low = high < 0 ? -1 : number_hex_digit(text.data[i + 2]);
		/* A zero byte is in no name, and ends none. */
		bool coded = low >= 0 && high + low > 0;
		*to++ = coded ? (char)(high * 16 + low) : text.data[i];
		i += coded ? 2 : 0;
	}
	name->len = (size_t)(to - name->data);
	return 0;
}
