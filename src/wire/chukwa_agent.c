#include "wire/chukwa_agent.h"

#include <strings.h>

#include "base/utf8.h"
#include "wire/md5.h"
#include "wire/number.h"
#include "wire/put_line.h"

enum { CHUKWA_EVERY_SECONDS = 5, CHUKWA_EVERY_SECONDS_MAX = 604800 };

/* ---- Words ----------------------------------------------------------------------------------- */

static bool chukwa_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static struct slice chukwa_trim(struct slice text)
{
	while (text.len && chukwa_is_blank(*text.data))
		text = (struct slice){text.data + 1, text.len - 1};
	while (text.len && chukwa_is_blank(text.data[text.len - 1]))
		text.len--;
	return text;
}

/* Takes the last word off the end of a text that was trimmed, and the blanks before it. */
static struct slice chukwa_take_last(struct slice *text)
{
	size_t from = text->len;
	while (from && !chukwa_is_blank(text->data[from - 1]))
		from--;
	struct slice word = {text->data + from, text->len - from};
	*text = chukwa_trim((struct slice){text->data, from});
	return word;
}

static bool chukwa_is_digits(struct slice word)
{
	for (size_t i = 0; i < word.len; i++)
		if (!number_is_digit(word.data[i]))
			return false;
	return word.len > 0;
}

/* Reads an offset from a word of digits. */
static int chukwa_offset(struct slice word, const char *what, uint64_t *offset, struct errbuf *e)
{
	if (number_parse_u64(word.data, word.data + word.len, offset) ||
	    *offset > CHUKWA_OFFSET_MAX)
		return errbuf_set(e, ERR_INVALID, "its %s " SHOWN " is above %lld", what,
				  SHOWN_OF(word), (long long)CHUKWA_OFFSET_MAX);
	return 0;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static int chukwa_check_line(struct slice line, struct errbuf *e)
{
	const uint8_t *p = (const uint8_t *)line.data;
	if (line.len > CHUKWA_LINE_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "it has %zu bytes, and %d are allowed", line.len,
				  CHUKWA_LINE_MAX_BYTES);
	for (size_t at = 0, n; at < line.len; at += n) {
		n = utf8_length(p + at, line.len - at);
		if (!n)
			return errbuf_set(e, ERR_INVALID, "its byte %zu is not UTF-8", at + 1);
		if ((p[at] < ' ' && p[at] != '\t') || p[at] == 0x7f)
			return errbuf_set(e, ERR_INVALID,
					  "its byte %zu is a control character, 0x%02x", at + 1,
					  p[at]);
	}
	return 0;
}

/* `NAME =` in front of the class, if it is there. */
static int chukwa_take_name(struct slice *rest, struct slice *name, struct errbuf *e)
{
	struct slice text = chukwa_trim(*rest);
	size_t len = 0;
	while (len < text.len && text.data[len] != '=' && !chukwa_is_blank(text.data[len]))
		len++;
	size_t equals = len;
	while (equals < text.len && chukwa_is_blank(text.data[equals]))
		equals++;
	*name = (struct slice){text.data, 0};
	if (equals == text.len || text.data[equals] != '=')
		return 0;
	if (!len)
		return errbuf_set(e, ERR_INVALID, "it has no name before its =");
	name->len = len;
	*rest = (struct slice){text.data + equals + 1, text.len - equals - 1};
	return 0;
}

static const struct slice chukwa_id_prefix = SLICE(CHUKWA_ID_PREFIX);

static int chukwa_make_id(struct slice name, struct arena *arena, struct chukwa_add *add,
			  struct errbuf *e)
{
	const struct slice pieces[] = {add->class, add->datatype, add->params};
	char hex[MD5_HEX_BYTES];
	struct slice prefix = chukwa_id_prefix;
	if (name.len && slice_starts_with(name, prefix))
		prefix.len = 0;
	if (!name.len) {
		name = (struct slice){hex, sizeof(hex)};
		if (md5_hex(pieces, ARRAY_LEN(pieces), hex))
			return errbuf_set(e, ERR_INVALID,
					  "it has no name, and none can be made: libcrypto has no "
					  "MD5 here; write add NAME = ...");
	}
	add->id.len = prefix.len + name.len;
	if (add->id.len > CHUKWA_ID_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "its name has %zu bytes, and %zu are allowed",
				  name.len, CHUKWA_ID_MAX_BYTES - prefix.len);
	char *id = arena_alloc(arena, add->id.len);
	if (!id)
		return errbuf_set(e, ERR_LIMIT, "names of adaptors take too much memory");
	memcpy(id, prefix.data, prefix.len);
	memcpy(id + prefix.len, name.data, name.len);
	add->id.data = id;
	return 0;
}

/* All behind the name. */
static int chukwa_parse_words(struct slice rest, struct chukwa_add *add, struct errbuf *e)
{
	add->class = put_line_word(&rest);
	add->datatype = put_line_word(&rest);
	add->params = chukwa_trim(rest);
	struct slice offset = chukwa_take_last(&add->params);
	if (!add->class.len)
		return errbuf_set(e, ERR_INVALID, "it has no class");
	if (memchr(add->class.data, '=', add->class.len))
		return errbuf_set(e, ERR_INVALID,
				  "its class " SHOWN " has a =", SHOWN_OF(add->class));
	if (!add->datatype.len)
		return errbuf_set(e, ERR_INVALID, "it has no datatype behind its class " SHOWN,
				  SHOWN_OF(add->class));
	if (!offset.len)
		return errbuf_set(e, ERR_INVALID, "it has no offset behind its datatype " SHOWN,
				  SHOWN_OF(add->datatype));
	if (!chukwa_is_digits(offset))
		return errbuf_set(e, ERR_INVALID,
				  "its last word has to be the offset, a number, and is " SHOWN,
				  SHOWN_OF(offset));
	return chukwa_offset(offset, "offset", &add->offset, e);
}

int chukwa_add_parse(struct slice line, struct arena *arena, struct chukwa_add *add,
		     struct errbuf *e)
{
	struct slice rest = chukwa_trim(line), name;
	*add = (struct chukwa_add){.offset = 0};
	if (!rest.len || *rest.data == '#')
		return ERR_NOT_FOUND;
	int err = chukwa_check_line(line, e);
	if (err)
		return err;
	struct slice command = put_line_word(&rest);
	if (command.len != 3 || strncasecmp(command.data, "add", 3) != 0)
		return errbuf_set(e, ERR_INVALID, "it begins with " SHOWN ", not with add",
				  SHOWN_OF(command));
	err = chukwa_take_name(&rest, &name, e);
	if (!err)
		err = chukwa_parse_words(rest, add, e);
	return err ? err : chukwa_make_id(name, arena, add, e);
}

/* ---- Classes --------------------------------------------------------------------------------- */

static const struct slice chukwa_package = SLICE(CHUKWA_PACKAGE);

#define TAILER(name) SLICE("filetailer." name)
static const struct chukwa_class chukwa_classes[] = {
	{TAILER("LWFTAdaptor"), CHUKWA_TAIL, CHUKWA_RAW},
	{TAILER("FileTailingAdaptor"), CHUKWA_TAIL, CHUKWA_RAW},
	{TAILER("CharFileTailingAdaptorUTF8"), CHUKWA_TAIL, CHUKWA_LINES},
	{TAILER("CharFileTailingAdaptorUTF8NewLineEscaped"), CHUKWA_TAIL, CHUKWA_ESCAPED},
	{TAILER("FileTailingAdaptorPreserveLines"), CHUKWA_TAIL, CHUKWA_WHOLE_LINES},
	{TAILER("RCheckFTAdaptor"), CHUKWA_TAIL, CHUKWA_RAW, .rotated = true},
	{SLICE("FileAdaptor"), CHUKWA_FILE, CHUKWA_RAW},
	{SLICE("DirTailingAdaptor"), CHUKWA_DIRECTORY},
	{SLICE("RegExDirTailingAdaptor"), CHUKWA_DIRECTORY, .regex = true},
	{SLICE("ExecAdaptor"), CHUKWA_EXEC},
	{SLICE("UDPAdaptor"), CHUKWA_UDP},
	{SLICE("SyslogAdaptor"), CHUKWA_SYSLOG},
	{SLICE("SocketAdaptor"), CHUKWA_NEEDS_JAVA}, /* serialised events of log4j */
	{SLICE("JMXAdaptor"), CHUKWA_NEEDS_JAVA},
	{SLICE("OozieAdaptor"), CHUKWA_NEEDS_JAVA},
	{SLICE("jms.JMSAdaptor"), CHUKWA_NEEDS_JAVA},
	{SLICE("RestAdaptor"), CHUKWA_REST},
	{SLICE("HeartbeatAdaptor"), CHUKWA_HEARTBEAT},
	{SLICE("sigar.SystemMetrics"), CHUKWA_HOST_METRICS},
	{SLICE("MemBuffered"), CHUKWA_BUFFERED},
	{SLICE("WriteaheadBuffered"), CHUKWA_BUFFERED},
	{SLICE("ConstRateAdaptor"), CHUKWA_TEST},
	{SLICE("MaxRateSender"), CHUKWA_TEST},
};
#undef TAILER

const struct chukwa_class *chukwa_class_find(struct slice name)
{
	if (slice_starts_with(name, chukwa_package))
		name = (struct slice){name.data + chukwa_package.len,
				      name.len - chukwa_package.len};
	for (size_t i = 0; i < ARRAY_LEN(chukwa_classes); i++)
		if (slice_equal(name, chukwa_classes[i].name))
			return &chukwa_classes[i];
	return NULL;
}

/* A class that is written without its package is what people try first. */
static int chukwa_no_class(struct slice name, struct errbuf *e)
{
	for (size_t i = 0; i < ARRAY_LEN(chukwa_classes); i++) {
		struct slice known = chukwa_classes[i].name;
		if (name.len && known.len > name.len && slice_ends_with(known, name) &&
		    known.data[known.len - name.len - 1] == '.')
			return errbuf_set(e, ERR_INVALID,
					  "there is no class " SHOWN ", but there is %s",
					  SHOWN_OF(name), known.data);
	}
	return errbuf_set(e, ERR_INVALID, "there is no class " SHOWN, SHOWN_OF(name));
}

/* ---- Parameters ------------------------------------------------------------------------------ */

/* Takes the word in front where something stands behind it; empty else. */
static struct slice chukwa_front(struct slice params, struct slice *behind)
{
	*behind = params;
	struct slice word = put_line_word(behind);
	*behind = chukwa_trim(*behind);
	return behind->len ? word : (struct slice){params.data, 0};
}

/* [first] path. A number alone is a path. */
static int chukwa_read_path(struct slice params, struct chukwa_adaptor *adaptor, struct errbuf *e)
{
	struct slice behind, word = chukwa_front(params, &behind);
	adaptor->path = params;
	if (!params.len)
		return errbuf_set(e, ERR_INVALID, "it has no path");
	if (!chukwa_is_digits(word))
		return 0;
	adaptor->path = behind;
	return chukwa_offset(word, "offset of the first byte", &adaptor->first, e);
}

static int chukwa_read_tail(const struct chukwa_add *add, struct chukwa_adaptor *adaptor,
			    struct errbuf *e)
{
	struct slice params = add->params, behind, word = chukwa_front(params, &behind);
	bool mtime = adaptor->class->rotated && slice_starts_with(word, SLICE("d:")) &&
		     chukwa_is_digits((struct slice){word.data + 2, word.len - 2});
	int err = chukwa_read_path(mtime ? behind : params, adaptor, e);
	if (!err && adaptor->first > add->offset)
		return errbuf_set(e, ERR_INVALID,
				  "its offset %llu is in front of the first byte of the file, "
				  "which is at %llu",
				  (unsigned long long)add->offset,
				  (unsigned long long)adaptor->first);
	return err;
}

/* [first] path [delete]. A path that is `delete` alone is a path. */
static int chukwa_read_file(const struct chukwa_add *add, struct chukwa_adaptor *adaptor,
			    struct errbuf *e)
{
	struct slice path = add->params, word = chukwa_take_last(&path);
	adaptor->delete = path.len && slice_equal(word, SLICE("delete"));
	return chukwa_read_path(adaptor->delete ? path : add->params, adaptor, e);
}

/* directory [pattern] class. If there are three words, the second is the pattern, as at Chukwa. If
 * there are more, the directory has blanks in it. So one with blanks needs a pattern, be it `*`. */
static int chukwa_read_directory(const struct chukwa_add *add, struct chukwa_adaptor *adaptor,
				 struct errbuf *e)
{
	adaptor->path = add->params;
	adaptor->child_name = chukwa_take_last(&adaptor->path);
	struct slice front = adaptor->path, pattern = chukwa_take_last(&front);
	if (!adaptor->path.len)
		return errbuf_set(e, ERR_INVALID,
				  "it needs a directory, and the class of its files' adaptors");
	if (front.len) {
		adaptor->path = front;
		adaptor->pattern = pattern;
	} else if (adaptor->class->regex) {
		return errbuf_set(e, ERR_INVALID,
				  "it needs a regular expression behind its directory " SHOWN,
				  SHOWN_OF(adaptor->path));
	}
	adaptor->child = chukwa_class_find(adaptor->child_name);
	if (!adaptor->child)
		return errbuf_prefix(e, chukwa_no_class(adaptor->child_name, e), "its files");
	if (adaptor->child->kind != CHUKWA_TAIL && adaptor->child->kind != CHUKWA_FILE)
		return errbuf_set(e, ERR_INVALID, "its files: " SHOWN " reads no file",
				  SHOWN_OF(adaptor->child_name));
	return 0;
}

static int chukwa_read_seconds(struct slice word, struct chukwa_adaptor *adaptor, struct errbuf *e)
{
	uint64_t seconds;
	if (!chukwa_is_digits(word) ||
	    number_parse_u64(word.data, word.data + word.len, &seconds) || !seconds ||
	    seconds > CHUKWA_EVERY_SECONDS_MAX)
		return errbuf_set(e, ERR_INVALID,
				  "it is to be run each " SHOWN " seconds, which is not 1 to %d",
				  SHOWN_OF(word), CHUKWA_EVERY_SECONDS_MAX);
	adaptor->seconds = (uint32_t)seconds;
	return 0;
}

/* [seconds] command. A number alone is a command. */
static int chukwa_read_exec(const struct chukwa_add *add, struct chukwa_adaptor *adaptor,
			    struct errbuf *e)
{
	struct slice behind, word = chukwa_front(add->params, &behind);
	bool said = chukwa_is_digits(word);
	adaptor->command = said ? behind : add->params;
	adaptor->seconds = CHUKWA_EVERY_SECONDS;
	if (!add->params.len)
		return errbuf_set(e, ERR_INVALID, "it has no command");
	return said ? chukwa_read_seconds(word, adaptor, e) : 0;
}

static int chukwa_read_rest(const struct chukwa_add *add, struct chukwa_adaptor *adaptor,
			    struct errbuf *e)
{
	struct slice uri = add->params, word = chukwa_take_last(&uri);
	if (!uri.len)
		return errbuf_set(e, ERR_INVALID, "it needs a URI, and how often it is asked for");
	adaptor->uri = uri;
	return chukwa_read_seconds(word, adaptor, e);
}

static int chukwa_read_host_metrics(const struct chukwa_add *add, struct chukwa_adaptor *adaptor,
				    struct errbuf *e)
{
	adaptor->seconds = CHUKWA_EVERY_SECONDS;
	return add->params.len ? chukwa_read_seconds(add->params, adaptor, e) : 0;
}

static int chukwa_read_heartbeat(const struct chukwa_add *add, struct chukwa_adaptor *adaptor,
				 struct errbuf *e)
{
	struct slice checkers = add->params, word = chukwa_take_last(&checkers);
	if (checkers.len < 3 || checkers.data[0] != '(' || checkers.data[checkers.len - 1] != ')')
		return errbuf_set(e, ERR_INVALID,
				  "it needs checkers in brackets, and how often they are asked");
	adaptor->checkers = (struct slice){checkers.data + 1, checkers.len - 2};
	return chukwa_read_seconds(word, adaptor, e);
}

int chukwa_take_checker(struct slice *checkers, struct slice *uri, struct errbuf *e)
{
	if (!checkers->len)
		return ERR_NOT_FOUND;
	const char *comma = memchr(checkers->data, ',', checkers->len);
	size_t len = comma ? (size_t)(comma - checkers->data) : checkers->len;
	struct slice checker = chukwa_trim((struct slice){checkers->data, len}), class = checker;
	len += comma != NULL;
	*checkers = (struct slice){checkers->data + len, checkers->len - len};
	*uri = chukwa_take_last(&class);
	if (!class.len && slice_ends_with(*uri, SLICE("ChukwaStatusChecker"))) {
		uri->len = 0;
		return 0;
	}
	struct slice behind, word = chukwa_front(class, &behind);
	return slice_ends_with(word, SLICE("HttpStatusChecker"))
		       ? 0
		       : errbuf_set(e, ERR_INVALID,
				    "its checker '" SHOWN "' is neither ChukwaStatusChecker nor "
				    "HttpStatusChecker NAME URI",
				    SHOWN_OF(checker));
}

static int chukwa_read_port(const struct chukwa_add *add, struct chukwa_adaptor *adaptor,
			    struct errbuf *e)
{
	uint64_t port;
	adaptor->port = add->params;
	if (number_parse_u64(add->params.data, add->params.data + add->params.len, &port) ||
	    !port || port > UINT16_MAX)
		return errbuf_set(e, ERR_INVALID, "its port '" SHOWN "' is not 1 to %d",
				  SHOWN_OF(add->params), UINT16_MAX);
	return 0;
}

int chukwa_adaptor_read(const struct chukwa_add *add, struct chukwa_adaptor *adaptor,
			struct errbuf *e)
{
	*adaptor = (struct chukwa_adaptor){.class = chukwa_class_find(add->class)};
	if (!adaptor->class)
		return chukwa_no_class(add->class, e);
	switch (adaptor->class->kind) {
	case CHUKWA_TAIL:
		return chukwa_read_tail(add, adaptor, e);
	case CHUKWA_FILE:
		return chukwa_read_file(add, adaptor, e);
	case CHUKWA_DIRECTORY:
		return chukwa_read_directory(add, adaptor, e);
	case CHUKWA_EXEC:
		return chukwa_read_exec(add, adaptor, e);
	case CHUKWA_UDP:
	case CHUKWA_SYSLOG:
		return chukwa_read_port(add, adaptor, e);
	case CHUKWA_REST:
		return chukwa_read_rest(add, adaptor, e);
	case CHUKWA_HEARTBEAT:
		return chukwa_read_heartbeat(add, adaptor, e);
	case CHUKWA_HOST_METRICS:
		return chukwa_read_host_metrics(add, adaptor, e);
	case CHUKWA_BUFFERED:
	case CHUKWA_TEST:
	case CHUKWA_NEEDS_JAVA:
		break;
	}
	return 0;
}
