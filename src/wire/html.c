#include "wire/html.h"

#include "base/visible.h"

static void html_put_char(struct buf *out, char c)
{
	if (c == '&')
		buf_append_text(out, "&amp;");
	else if (c == '<')
		buf_append_text(out, "&lt;");
	else if (c == '>')
		buf_append_text(out, "&gt;");
	else if (c == '"')
		buf_append_text(out, "&quot;");
	else if (c == '\'')
		buf_append_text(out, "&#39;");
	else
		buf_append_char(out, c);
}

void html_put_text(struct buf *out, struct slice text)
{
	char shown[VISIBLE_MAX_BYTES];
	size_t taken;
	for (; text.len; text.data += taken, text.len -= taken) {
		size_t len = visible_put(shown, text, &taken);
		for (size_t i = 0; i < len; i++)
			html_put_char(out, shown[i]);
	}
}

static bool html_is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

void html_put_in_url(struct buf *out, struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (html_is_unreserved(text.data[i]))
			buf_append_char(out, text.data[i]);
		else
			buf_printf(out, "%%%02X", (uint8_t)text.data[i]);
	}
}
