/* Traces that are texts, line by line: of Python, JavaScript (V8, and @ as Firefox and Safari have
 * it), Java, and of C by gdb, glibc and the sanitizers.
 *
 * A frame is known by its line alone. An exception is the line behind the frames (Python), or the
 * first before them that reads as a type (JavaScript, Java). */
#include "fault/group_private.h"

enum trace_kind {
	TRACE_OTHER, /* no frame */
	TRACE_PYTHON,
	TRACE_AT, /* JavaScript, Java */
	TRACE_MOZILLA,
	TRACE_C,
};

struct trace_reading {
	struct grouping_making *making;
	struct slice head; /* the line before frames that reads as a type; len 0: none */
	enum trace_kind last;
	bool suppressed; /* what Java has under Suppressed: it varies with what was closed */
};

/* ---- Frames ---------------------------------------------------------------------------------- */

static size_t grouping_trace_digits_end(struct slice text, size_t at)
{
	while (at < text.len && number_is_digit(text.data[at]))
		at++;
	return at;
}

/* Without :LINE:COLUMN at the end. */
static struct slice grouping_trace_without_line(struct slice text)
{
	for (int i = 0; i < 2; i++) {
		size_t end = text.len;
		while (end && number_is_digit(text.data[end - 1]))
			end--;
		if (end == text.len || !end || text.data[end - 1] != ':')
			break;
		text = grouping_part(text, 0, end - 1);
	}
	return text;
}

/*   File "PATH", line 12, in FUNCTION */
static bool grouping_trace_read_python(struct slice line, struct grouping_frame *frame)
{
	static const struct slice begin = SLICE("File \""), middle = SLICE("\", line "),
				  in = SLICE(", in ");
	if (!grouping_begins(line, begin))
		return false;
	size_t end = grouping_find(line, begin.len, middle);
	if (end == line.len)
		return false;
	frame->file = grouping_part(line, begin.len, end);
	size_t at = grouping_trace_digits_end(line, end + middle.len);
	if (grouping_at(line, at, in))
		frame->function = grouping_trim(grouping_part(line, at + in.len, line.len));
	return true;
}

/* `pkg.Class.method(File.java:12)`; `app//` or `java.base@17/` may stand before it. */
static bool grouping_trace_read_java(struct slice text, size_t open, struct grouping_frame *frame)
{
	struct slice place = grouping_part(text, open + 1, text.len - 1);
	struct slice name = grouping_part(text, 0, open);
	if (!open || grouping_find(name, 0, SLICE(" ")) < name.len ||
	    grouping_find(place, 0, SLICE("/")) < place.len)
		return false;
	size_t method = grouping_find_last(name, '.');
	if (method == name.len)
		return false;
	frame->function = grouping_part(name, method + 1, name.len);
	frame->module = grouping_part(name, 0, method);
	/* A slash stands in hidden classes, too: Foo$$Lambda/0x1. */
	size_t slash = grouping_find(frame->module, 0, SLICE("/"));
	size_t dollar = grouping_find(frame->module, 0, SLICE("$"));
	while (slash < frame->module.len && slash < dollar) {
		frame->module = grouping_part(frame->module, slash + 1, frame->module.len);
		dollar = grouping_find(frame->module, 0, SLICE("$"));
		slash = grouping_find(frame->module, 0, SLICE("/"));
	}
	return true;
}

/* `Object.f`, `async f`, `new F`, `f [as g]`: the function is f. */
static struct slice grouping_trace_script_function(struct slice name)
{
	static const struct slice before[] = {SLICE("async "),   SLICE("new "),
					      SLICE("Object."),  SLICE("Module."),
					      SLICE("exports."), SLICE("global.")};
	size_t as = grouping_find(name, 0, SLICE(" [as "));
	name = grouping_part(name, 0, as);
	for (size_t i = 0; i < ARRAY_LEN(before); i++)
		if (grouping_begins(name, before[i]))
			name = grouping_part(name, before[i].len, name.len);
	return grouping_trim(name);
}

/* at NAME (PLACE) or at PLACE */
static bool grouping_trace_read_at(struct slice line, struct grouping_frame *frame)
{
	static const struct slice begin = SLICE("at ");
	if (!grouping_begins(line, begin))
		return false;
	struct slice text = grouping_trim(grouping_part(line, begin.len, line.len));
	if (text.len > 2 && text.data[text.len - 1] == '{')
		text = grouping_trim(grouping_part(text, 0, text.len - 1));
	/* Logback names the archive behind the frame. */
	size_t archive = grouping_find(text, 0, SLICE(") ["));
	if (archive == text.len)
		archive = grouping_find(text, 0, SLICE(") ~["));
	if (archive < text.len)
		text = grouping_part(text, 0, archive + 1);
	if (!text.len || text.data[text.len - 1] != ')') {
		if (grouping_begins(text, SLICE("async ")))
			text = grouping_part(text, strlen("async "), text.len);
		frame->file = grouping_trace_without_line(text);
		return frame->file.len < text.len || slice_equal(text, SLICE("<anonymous>"));
	}
	size_t open = grouping_find(text, 0, SLICE(" ("));
	if (open == text.len) {
		open = grouping_find(text, 0, SLICE("("));
		return open < text.len && grouping_trace_read_java(text, open, frame);
	}
	frame->function = grouping_trace_script_function(grouping_part(text, 0, open));
	struct slice place = grouping_part(text, open + 2, text.len - 1);
	frame->file = grouping_begins(place, SLICE("eval at "))
			      ? SLICE("eval")
			      : grouping_trace_without_line(place);
	return true;
}

/* FUNCTION@PLACE:12:3 */
static bool grouping_trace_read_mozilla(struct slice line, struct grouping_frame *frame)
{
	struct slice without = grouping_trace_without_line(line);
	size_t at = grouping_find(line, 0, SLICE("@"));
	if (without.len == line.len || at >= without.len ||
	    grouping_find(grouping_part(line, 0, at), 0, SLICE(" ")) < at)
		return false;
	frame->function = grouping_part(line, 0, at);
	frame->file = grouping_part(without, at + 1, without.len);
	return true;
}

/* The name of a function of C or C++, without its arguments: what stands in (anonymous namespace)
 * and operator() is no argument. */
static struct slice grouping_trace_c_function(struct slice text)
{
	static const struct slice whole[] = {SLICE("(anonymous namespace)"), SLICE("operator()"),
					     SLICE("{lambda(")};
	size_t at = 0;
	while (at < text.len) {
		size_t step = 0;
		for (size_t i = 0; i < ARRAY_LEN(whole); i++)
			if (grouping_at(text, at, whole[i]))
				step = whole[i].len;
		if (!step && text.data[at] == '(')
			break;
		at += step ? step : 1;
	}
	ASSERT(at <= text.len);
	return grouping_trim(grouping_part(text, 0, at));
}

/* The place is `at FILE:12` or `from LIBRARY` (gdb), FILE:12:3 or (LIBRARY+0x1) (sanitizers). */
static struct slice grouping_trace_c_place(struct slice text)
{
	static const struct slice before[] = {SLICE(" at "), SLICE(" from ")};
	for (size_t i = 0; i < ARRAY_LEN(before); i++) {
		const char *last = NULL;
		for (size_t at = 0; at < text.len; at++)
			if (grouping_at(text, at, before[i]))
				last = text.data + at;
		if (last)
			return grouping_trace_without_line(grouping_trim(grouping_part(
				text, (size_t)(last - text.data) + before[i].len, text.len)));
	}
	size_t space = grouping_find_last(text, ' ');
	if (space == text.len)
		return SLICE("");
	struct slice place = grouping_part(text, space + 1, text.len);
	if (place.len && place.data[0] == '(') {
		size_t plus = grouping_find(place, 0, SLICE("+0x"));
		return plus < place.len ? grouping_part(place, 1, plus) : SLICE("");
	}
	struct slice file = grouping_trace_without_line(place);
	return file.len < place.len ? file : SLICE("");
}

/* #3  0x000055 in FUNCTION (arguments) PLACE */
static bool grouping_trace_read_gdb(struct slice line, struct grouping_frame *frame)
{
	if (!line.len || line.data[0] != '#')
		return false;
	size_t at = grouping_trace_digits_end(line, 1);
	if (at == 1 || at >= line.len || line.data[at] != ' ')
		return false;
	struct slice text = grouping_trim(grouping_part(line, at, line.len));
	if (grouping_begins(text, SLICE("0x"))) {
		size_t in = grouping_find(text, 0, SLICE(" in "));
		if (in == text.len)
			return true; /* an address that nothing is known of */
		text = grouping_trim(grouping_part(text, in + strlen(" in "), text.len));
	}
	if (grouping_begins(text, SLICE("<signal handler")))
		return true;
	frame->file = grouping_trace_c_place(text);
	frame->function = grouping_trace_c_function(text);
	/* Sanitizers write the place right after the function, without arguments. */
	if (frame->file.len && frame->file.data >= text.data) {
		size_t place = (size_t)(frame->file.data - text.data);
		if (frame->function.len > place)
			frame->function = grouping_trim(grouping_part(text, 0, place));
	}
	return true;
}

/* LIBRARY(FUNCTION+0x12) [0x7f00] */
static bool grouping_trace_read_glibc(struct slice line, struct grouping_frame *frame)
{
	static const struct slice end = SLICE(") [0x");
	size_t open = grouping_find(line, 0, SLICE("(")), close = grouping_find(line, 0, end);
	if (!open || close == line.len || open >= close || line.data[line.len - 1] != ']')
		return false;
	struct slice name = grouping_part(line, open + 1, close);
	frame->file = grouping_part(line, 0, open);
	size_t plus = grouping_find(name, 0, SLICE("+0x"));
	/* Without a name the place in the file is one: it is the same wherever it was loaded. */
	frame->function =
		plus ? grouping_trace_c_function(grouping_part(name, 0, plus)) : SLICE("??");
	return true;
}

static enum trace_kind grouping_trace_read_frame(struct slice line, struct grouping_frame *frame)
{
	*frame = (struct grouping_frame){SLICE(""), SLICE(""), SLICE(""), -1};
	if (grouping_trace_read_python(line, frame))
		return TRACE_PYTHON;
	if (grouping_trace_read_at(line, frame))
		return TRACE_AT;
	if (grouping_trace_read_gdb(line, frame) || grouping_trace_read_glibc(line, frame))
		return TRACE_C;
	return grouping_trace_read_mozilla(line, frame) ? TRACE_MOZILLA : TRACE_OTHER;
}

/* ---- Exceptions ------------------------------------------------------------------------------ */

static struct slice grouping_trace_without_begin(struct slice line)
{
	static const struct slice begins[] = {SLICE("Caused by: "), SLICE("Uncaught "),
					      SLICE("[cause]: ")};
	if (grouping_begins(line, SLICE("Exception in thread \""))) {
		size_t end = grouping_find(line, strlen("Exception in thread \""), SLICE("\" "));
		line = grouping_part(line, end < line.len ? end + 2 : 0, line.len);
	}
	for (size_t i = 0; i < ARRAY_LEN(begins); i++)
		if (grouping_begins(line, begins[i]))
			line = grouping_part(line, begins[i].len, line.len);
	return line;
}

/* `pkg.Type: value` or `pkg.Type`. False: the line does not read so. *capital: the last part of the
 * type begins with a capital letter. */
static bool grouping_trace_read_type(struct slice line, struct slice *type, struct slice *value,
				     bool *capital)
{
	size_t at = 0, part = 0;
	while (at < line.len && at < GROUP_LOOK_MAX_BYTES &&
	       (grouping_is_letter(line.data[at]) || number_is_digit(line.data[at]) ||
		line.data[at] == '_' || line.data[at] == '.' || line.data[at] == '$')) {
		if (line.data[at] == '.' || line.data[at] == '$')
			part = at + 1;
		at++;
	}
	bool ends = at == line.len || grouping_at(line, at, SLICE(": ")) ||
		    (at + 1 == line.len && line.data[at] == ':');
	if (!at || !grouping_is_letter(line.data[0]) || !ends)
		return false;
	*type = grouping_part(line, 0, at);
	*value = at < line.len ? grouping_trim(grouping_part(line, at + 1, line.len)) : SLICE("");
	*capital = part < at && line.data[part] >= 'A' && line.data[part] <= 'Z';
	return true;
}

static void grouping_trace_add_head(struct trace_reading *r)
{
	struct slice type, value;
	bool capital;
	if (r->head.len && grouping_trace_read_type(r->head, &type, &value, &capital))
		grouping_add_exception(r->making, type, value);
	r->head = SLICE("");
}

/* What stands between frames. */
static void grouping_trace_take_other(struct trace_reading *r, struct slice whole,
				      struct slice line)
{
	struct slice type, value;
	bool capital, first = whole.data[0] != ' ' && whole.data[0] != '\t';
	if (grouping_begins(line, SLICE("Suppressed: ")))
		r->suppressed = true;
	else if (first)
		r->suppressed = false;
	if (r->last == TRACE_PYTHON) {
		if (!first || !grouping_trace_read_type(line, &type, &value, &capital))
			return;
		grouping_add_exception(r->making, type, value);
		r->last = TRACE_OTHER;
		return;
	}
	struct slice head = grouping_trace_without_begin(line);
	if (grouping_trace_read_type(head, &type, &value, &capital) && capital &&
	    (!r->head.len || head.data != line.data))
		r->head = head;
}

static void grouping_trace_take_frame(struct trace_reading *r, enum trace_kind kind,
				      const struct grouping_frame *frame)
{
	if (r->suppressed)
		return;
	if (kind != r->last || r->head.len) {
		if (kind != TRACE_PYTHON)
			grouping_trace_add_head(r);
		r->head = SLICE("");
		grouping_begin_trace(r->making);
	}
	r->last = kind;
	grouping_add_frame(r->making, frame);
}

/* Python draws groups of exceptions with bars before their lines. */
static struct slice grouping_trace_without_bars(struct slice line)
{
	size_t at = 0;
	while (at < line.len && (line.data[at] == ' ' || line.data[at] == '|'))
		at++;
	bool bar = at && memchr(line.data, '|', at);
	return bar ? grouping_part(line, at, line.len) : line;
}

void grouping_add_trace(struct grouping_making *making, struct slice text)
{
	struct trace_reading r = {.making = making, .head = SLICE("")};
	for (size_t at = 0; at < text.len;) {
		struct grouping_frame frame;
		const char *found = memchr(text.data + at, '\n', text.len - at);
		size_t end = found ? (size_t)(found - text.data) : text.len;
		struct slice whole = grouping_trace_without_bars(grouping_part(text, at, end));
		struct slice line = grouping_trim(whole);
		at = end + 1;
		if (!line.len)
			continue;
		enum trace_kind kind = grouping_trace_read_frame(line, &frame);
		if (kind == TRACE_OTHER)
			grouping_trace_take_other(&r, whole, line);
		else
			grouping_trace_take_frame(&r, kind, &frame);
	}
}
