#include "base/visible.h"

#include <stdio.h>

#include "base/utf8.h"

static size_t visible_put_byte(char to[VISIBLE_MAX_BYTES], uint8_t byte)
{
	static const char names[] = "\tt\nn\rr";
	const char *name = byte && byte < 0x20 ? strchr(names, byte) : NULL;
	if (name)
		return (size_t)snprintf(to, VISIBLE_MAX_BYTES, "\\%c", name[1]);
	if (byte < 0x20 || byte >= 0x7f)
		return (size_t)snprintf(to, VISIBLE_MAX_BYTES, "\\x%02x", byte);
	to[0] = (char)byte;
	return 1;
}

size_t visible_put(char to[VISIBLE_MAX_BYTES], struct slice text, size_t *taken)
{
	const uint8_t *p = (const uint8_t *)text.data;
	size_t len = utf8_length(p, text.len);
	*taken = len ? len : 1;
	if (len < 2)
		return visible_put_byte(to, p[0]);
	uint32_t code = utf8_code(p, len);
	if (visible_is_command(code))
		return (size_t)snprintf(to, VISIBLE_MAX_BYTES, "\\u%04x", (unsigned)code & 0xffff);
	memcpy(to, p, len);
	return len;
}

void visible_append(struct buf *out, struct slice text)
{
	char shown[VISIBLE_MAX_BYTES];
	size_t taken;
	for (; text.len; text.data += taken, text.len -= taken)
		buf_append(out, shown, visible_put(shown, text, &taken));
}
