#include "http/head.h"

#include <http_parser.h>

/* What a byte may be: of a header name (tchar, RFC 9110 5.6.2), of a header value (visible,
 * obs-text, blank, tab), of a request target (visible ASCII). */
enum { TOKEN = 1, VALUE = 2, TARGET = 4 };

#define T6 (TOKEN | VALUE | TARGET)
#define V6 (VALUE | TARGET)
static const uint8_t byte_class[256] = {
	['\t'] = VALUE,     [' '] = VALUE,
	['!'] = T6,         ['"'] = V6,
	['#'] = T6,         ['$'] = T6,
	['%'] = T6,         ['&'] = T6,
	['\''] = T6,        ['('] = V6,
	[')'] = V6,         ['*'] = T6,
	['+'] = T6,         [','] = V6,
	['-'] = T6,         ['.'] = T6,
	['/'] = V6,         ['0' ... '9'] = T6,
	[':'] = V6,         [';'] = V6,
	['<'] = V6,         ['='] = V6,
	['>'] = V6,         ['?'] = V6,
	['@'] = V6,         ['A' ... 'Z'] = T6,
	['['] = V6,         ['\\'] = V6,
	[']'] = V6,         ['^'] = T6,
	['_'] = T6,         ['`'] = T6,
	['a' ... 'z'] = T6, ['{'] = V6,
	['|'] = T6,         ['}'] = V6,
	['~'] = T6,         [0x80 ... 0xff] = VALUE,
};
#undef T6
#undef V6

static bool all_of(struct slice text, uint8_t class)
{
	uint8_t common = class;
	for (size_t i = 0; i < text.len; i++)
		common &= byte_class[(uint8_t)text.data[i]];
	return common == class;
}

bool http_header_name_valid(struct slice name)
{
	return name.len && all_of(name, TOKEN);
}

bool head_name_is(struct slice a, const char *b)
{
	return slice_equal_lower(a, slice_of(b));
}

static bool http_head_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct slice http_head_trim(struct slice text)
{
	while (text.len && http_head_is_blank(text.data[0]))
		text = (struct slice){text.data + 1, text.len - 1};
	while (text.len && http_head_is_blank(text.data[text.len - 1]))
		text.len--;
	return text;
}

/* Takes off the part before `separator`, or all. */
static struct slice http_head_split_off(struct slice *text, char separator)
{
	const char *end = text->len ? memchr(text->data, separator, text->len) : NULL;
	struct slice part = {text->data, end ? (size_t)(end - text->data) : text->len};
	size_t skip = part.len + (end != NULL);
	*text = (struct slice){text->data + skip, text->len - skip};
	return part;
}

/* `;q=0`, `;q=0.0` to `;q=0.000`: not acceptable (RFC 9110 12.4.2). */
static bool weight_is_zero(struct slice parameters)
{
	while (parameters.len) {
		struct slice one = http_head_trim(http_head_split_off(&parameters, ';'));
		if (one.len < 3 || ascii_lower(one.data[0]) != 'q' || one.data[1] != '=')
			continue;
		for (size_t i = 2; i < one.len; i++) {
			if (one.data[i] != '0' && one.data[i] != '.')
				return false;
		}
		return true;
	}
	return false;
}

bool head_list_accepts(struct slice list, const char *token)
{
	while (list.len) {
		struct slice parameters = http_head_split_off(&list, ',');
		struct slice name = http_head_trim(http_head_split_off(&parameters, ';'));
		if (head_name_is(name, token))
			return !weight_is_zero(parameters);
	}
	return false;
}

/* ---- Finding the end ------------------------------------------------------------------------- */

enum head_result head_find(struct slice bytes, size_t *seen, size_t *len, const char **reason)
{
	/* A method, or the one empty line. Anything else (TLS, say) need not be waited for. */
	if (bytes.len && bytes.data[0] != '\r' && !(byte_class[(uint8_t)bytes.data[0]] & TOKEN)) {
		*reason = "this is not HTTP";
		return HEAD_BAD;
	}
	while (*seen < bytes.len) {
		const char *lf = memchr(bytes.data + *seen, '\n', bytes.len - *seen);
		if (!lf)
			break;
		size_t at = (size_t)(lf - bytes.data);
		*seen = at + 1;
		if (at == 0 || bytes.data[at - 1] != '\r') {
			*reason = "a line ends in LF without CR";
			return HEAD_BAD;
		}
		/* CR LF CR LF, but not the empty line before a request line. */
		if (at >= 3 && bytes.data[at - 2] == '\n') {
			*len = at + 1;
			return HEAD_DONE;
		}
	}
	*seen = bytes.len;
	return HEAD_MORE;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static int http_head_bad(struct http_head *head, int status, const char *reason)
{
	head->status = status;
	head->reason = reason;
	return ERR_INVALID;
}

enum http_verb head_verb(struct slice method)
{
	enum http_verb verb = 0;
	while (verb < VERB_OTHER && !slice_equal(method, slice_of(http_verb_text(verb))))
		verb++;
	return verb;
}

static int parse_version(struct slice version, struct http_head *head)
{
	if (version.len != 8 || memcmp(version.data, "HTTP/", 5) != 0 || version.data[6] != '.')
		return http_head_bad(head, 400, "the request line does not end in an HTTP version");
	if (version.data[5] != '1' || (version.data[7] != '0' && version.data[7] != '1'))
		return http_head_bad(head, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
	head->minor_1 = version.data[7] == '1';
	return 0;
}

/* method SP target SP version: exactly two blanks (RFC 9112 3). */
static int parse_request_line(struct slice line, struct http_head *head)
{
	struct slice method = http_head_split_off(&line, ' ');
	struct slice target = http_head_split_off(&line, ' ');
	if (!method.len || !all_of(method, TOKEN))
		return http_head_bad(head, 400, "the method is no token");
	if (!target.len || !all_of(target, TARGET))
		return http_head_bad(head, 400,
				     "the request target is empty or has a byte that must be "
				     "percent-encoded");
	if (slice_equal(method, SLICE("CONNECT")))
		return http_head_bad(head, 400, "this is no proxy");
	head->verb = head_verb(method);
	head->target = target;
	return parse_version(line, head);
}

static int parse_length(struct slice value, struct http_head *head)
{
	if (head->has_length)
		return http_head_bad(head, 400, "Content-Length is given twice");
	if (!value.len || value.len > 18)
		return http_head_bad(head, 400, "Content-Length is no number");
	for (size_t i = 0; i < value.len; i++) {
		if (value.data[i] < '0' || value.data[i] > '9')
			return http_head_bad(head, 400, "Content-Length is no number");
		head->length = head->length * 10 + (uint64_t)(value.data[i] - '0');
	}
	head->has_length = true;
	return 0;
}

static int parse_coding(struct slice value, struct http_head *head)
{
	if (head->chunked)
		return http_head_bad(head, 400, "Transfer-Encoding is given twice");
	if (!head->minor_1)
		return http_head_bad(head, 400, "Transfer-Encoding does not exist in HTTP/1.0");
	if (!head_name_is(value, "chunked"))
		return http_head_bad(head, 400,
				     "a Transfer-Encoding other than 'chunked' is not understood");
	head->chunked = true;
	return 0;
}

/* A name or an address and perhaps a port, which http/site.h compares; a list or a path in it would
 * be read differently by a proxy. */
static int check_host(struct slice value, struct http_head *head, bool *has_host)
{
	if (*has_host)
		return http_head_bad(head, 400, "Host is given twice");
	*has_host = true;
	for (size_t i = 0; i < value.len; i++) {
		char c = value.data[i];
		if (!(byte_class[(uint8_t)c] & TARGET) || strchr("\"#%,/<>?@\\^`{|}", c))
			return http_head_bad(head, 400, "Host is no host name");
	}
	return 0;
}

static int parse_expect(struct slice value, struct http_head *head)
{
	if (!head_name_is(value, "100-continue"))
		return http_head_bad(head, 417, "only '100-continue' can be expected");
	head->expects_continue = head->minor_1;
	return 0;
}

/* Two that differ show two callers: who stands between may have looked at the other one. */
static int check_authorization(const struct http_header *header, struct http_head *head)
{
	for (size_t i = 0; i < head->header_count; i++) {
		const struct http_header *earlier = &head->headers[i];
		if (head_name_is(earlier->name, "authorization") &&
		    !slice_equal(earlier->value, header->value))
			return http_head_bad(head, 400,
					     "Authorization is given twice, with two values");
	}
	return 0;
}

/* What the framing of the message depends on, and who asks. */
static int interpret(const struct http_header *header, struct http_head *head, bool *has_host)
{
	if (head_name_is(header->name, "content-length"))
		return parse_length(header->value, head);
	if (head_name_is(header->name, "transfer-encoding"))
		return parse_coding(header->value, head);
	if (head_name_is(header->name, "host"))
		return check_host(header->value, head, has_host);
	if (head_name_is(header->name, "expect"))
		return parse_expect(header->value, head);
	if (head_name_is(header->name, "authorization"))
		return check_authorization(header, head);
	return 0;
}

static int parse_header(struct slice line, struct http_header *header, struct http_head *head)
{
	if (http_head_is_blank(line.data[0]))
		return http_head_bad(head, 400, "a header is folded over two lines");
	const char *colon = memchr(line.data, ':', line.len);
	if (!colon)
		return http_head_bad(head, 400, "a header has no colon");
	header->name = (struct slice){line.data, (size_t)(colon - line.data)};
	if (!header->name.len || !all_of(header->name, TOKEN))
		return http_head_bad(head, 400,
				     "a header name is empty or has a blank or another byte that "
				     "names cannot have");
	header->value = (struct slice){colon + 1, line.len - header->name.len - 1};
	if (!all_of(header->value, VALUE))
		return http_head_bad(head, 400, "a header value has a control byte");
	header->value = http_head_trim(header->value);
	return 0;
}

/* The next line without its CR LF. */
static struct slice http_head_next_line(struct slice *rest)
{
	struct slice line = http_head_split_off(rest, '\n');
	line.len--;
	return line;
}

static size_t http_head_count_lines(struct slice bytes)
{
	size_t lines = 0;
	while (bytes.len) {
		http_head_split_off(&bytes, '\n');
		lines++;
	}
	return lines;
}

static int parse_headers(struct slice rest, struct arena *arena, unsigned headers_max,
			 struct http_head *head)
{
	bool has_host = false;
	size_t count = http_head_count_lines(rest) - 1; /* the last line is empty */
	if (count > headers_max)
		return http_head_bad(head, 431, "there are too many headers");
	head->headers = arena_alloc(arena, (count + 1) * sizeof(*head->headers));
	if (!head->headers)
		return http_head_bad(head, 431, "there are too many headers");
	for (; head->header_count < count; head->header_count++) {
		struct http_header *header = &head->headers[head->header_count];
		int err = parse_header(http_head_next_line(&rest), header, head);
		if (!err)
			err = interpret(header, head, &has_host);
		if (err)
			return err;
	}
	if (head->minor_1 && !has_host)
		return http_head_bad(head, 400, "Host is missing");
	if (head->chunked && head->has_length)
		return http_head_bad(head, 400, "Content-Length stands beside Transfer-Encoding");
	return 0;
}

/* ---- The second judge ------------------------------------------------------------------------ */

struct opinion {
	bool complete, chunked, keep_alive;
	uint64_t length;
};

static int on_headers_complete(http_parser *parser)
{
	struct opinion *opinion = parser->data;
	opinion->complete = true;
	opinion->chunked = parser->flags & F_CHUNKED;
	opinion->keep_alive = http_should_keep_alive(parser);
	opinion->length = parser->flags & F_CONTENTLENGTH ? parser->content_length : 0;
	return 1; /* the body is read by body.c */
}

void head_use_our_limit(void)
{
	http_parser_set_max_header_size(UINT32_MAX);
}

static int ask_parser(struct slice bytes, struct http_head *head)
{
	static const http_parser_settings settings = {.on_headers_complete = on_headers_complete};
	struct opinion opinion = {false};
	http_parser parser;
	http_parser_init(&parser, HTTP_REQUEST);
	parser.data = &opinion;
	size_t read = http_parser_execute(&parser, &settings, bytes.data, bytes.len);
	if (HTTP_PARSER_ERRNO(&parser) != HPE_OK)
		return http_head_bad(head, 400, http_errno_description(HTTP_PARSER_ERRNO(&parser)));
	if (read != bytes.len || !opinion.complete || opinion.chunked != head->chunked ||
	    opinion.length != head->length)
		return http_head_bad(head, 400, "the head can be understood in two ways");
	head->keep_alive = opinion.keep_alive;
	return 0;
}

int head_parse(struct slice bytes, struct arena *arena, unsigned headers_max,
	       struct http_head *head)
{
	*head = (struct http_head){.verb = VERB_OTHER};
	struct slice rest = bytes;
	if (rest.data[0] == '\r' && rest.data[1] == '\n')
		http_head_next_line(&rest);
	int err = parse_request_line(http_head_next_line(&rest), head);
	if (!err)
		err = parse_headers(rest, arena, headers_max, head);
	if (!err)
		err = ask_parser(bytes, head);
	return err;
}

/* ---- In front of other doors ----------------------------------------------------------------- */

/* `METHOD target HTTP/1.1` (RFC 9112 3). No line of a door looks so: the last word is no tag
 * and no number, and a text that goes on in the next line has begun with a quote, which targets
 * do not have. A line without its end is too long for one: its begin decides. */
static bool head_is_request_line(struct slice line, bool whole)
{
	size_t method = 0;
	while (method < line.len && line.data[method] >= 'A' && line.data[method] <= 'Z')
		method++;
	if (!method || method + 1 >= line.len || line.data[method] != ' ')
		return false;
	struct slice rest = {line.data + method + 1, line.len - method - 1};
	if (!whole)
		return rest.data[0] == '/';
	const char *blank = memchr(rest.data, ' ', rest.len);
	size_t target = blank ? (size_t)(blank - rest.data) : 0;
	return target && !memchr(rest.data, '"', target) && rest.len - target > 5 &&
	       memcmp(blank, " HTTP/", 6) == 0;
}

bool http_begins(struct slice bytes, size_t line_max_bytes)
{
	const char *newline = bytes.len ? memchr(bytes.data, '\n', bytes.len) : NULL;
	if (!bytes.len)
		return false;
	if ((uint8_t)bytes.data[0] < ' ' && !memchr("\t\r\n", bytes.data[0], 3))
		return true;
	if (newline)
		bytes.len = (size_t)(newline - bytes.data);
	return (newline || bytes.len > line_max_bytes) && head_is_request_line(bytes, newline);
}
