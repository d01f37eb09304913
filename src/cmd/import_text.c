#include "cmd/import_text.h"

#include <math.h>

#include "base/grow.h"
#include "base/hash.h"
#include "wire/number.h"
#include "wire/prom_dump.h"
#include "wire/sample_csv.h"

enum {
	IMPORT_HEAD_BYTES = 64 << 10, /* looked at for the format */
	IMPORT_ARENA_BYTES = 64 << 20,
	IMPORT_KEY_MAX_BYTES = 64 << 10,
	/* A batch ends when so much was refused and nothing else was found. */
	IMPORT_REFUSED_BYTES = 2 * IMPORT_LINE_MAX_BYTES,
	IMPORT_REFUSED_MAX_BYTES = 512 << 20, /* with what the server refuses of the body */
	IMPORT_SAMPLE_BYTES = 80,             /* of a sample's line, without its key */
};
#define IMPORT_DDL "CREATE DATABASE "

const char *const import_format_names[IMPORT_FORMATS + 1] = {
	[IMPORT_LINES] = "lines of Influx line protocol",
	[IMPORT_JSON] = "lines of VictoriaMetrics' /api/v1/export",
	[IMPORT_PROMETHEUS] = "lines of promtool tsdb dump",
	[IMPORT_CSV] = "CSV of granary export"};
const char *const import_format_words[IMPORT_FORMATS] = {[IMPORT_LINES] = "lines",
							 [IMPORT_JSON] = "json",
							 [IMPORT_PROMETHEUS] = "prometheus",
							 [IMPORT_CSV] = "csv"};

void import_text_init(struct import_text *text, struct import_source *source)
{
	*text = (struct import_text){.source = source, .line = 1};
	buf_init(&text->text, IMPORT_LINE_MAX_BYTES + IMPORT_BODY_BYTES);
	buf_init(&text->key, IMPORT_KEY_MAX_BYTES);
	arena_init(&text->arena, IMPORT_ARENA_BYTES);
}

void import_text_release(struct import_text *text)
{
	buf_release(&text->text);
	buf_release(&text->key);
	arena_release(&text->arena);
}

void import_batch_init(struct import_batch *batch)
{
	*batch = (struct import_batch){.lines = 0};
	/* One sample more than is wanted, and the padding of who looks for the ends of lines. */
	buf_init(&batch->body, 2 * IMPORT_BODY_BYTES);
	buf_init(&batch->refused, IMPORT_REFUSED_MAX_BYTES);
	buf_init(&batch->source, 2 * IMPORT_LINE_MAX_BYTES);
}

void import_batch_release(struct import_batch *batch)
{
	buf_release(&batch->body);
	buf_release(&batch->refused);
	buf_release(&batch->source);
	mem_free(batch->places);
}

static void import_batch_begin(struct import_batch *batch, enum import_format format)
{
	buf_clear(&batch->body);
	buf_clear(&batch->refused);
	buf_clear(&batch->source);
	batch->format = format;
	batch->place_count = 0;
	batch->lines = batch->refused_lines = batch->nans = 0;
}

static bool import_batch_full(const struct import_batch *batch)
{
	return batch->body.len >= IMPORT_BODY_BYTES || batch->source.len >= IMPORT_BODY_BYTES ||
	       batch->refused.len >= IMPORT_REFUSED_BYTES;
}

/* For who reads its lines. */
static void import_batch_pad(struct import_batch *batch)
{
	char *padding = buf_reserve(&batch->body, LINE_PADDING_BYTES);
	ASSERT(padding);
	memset(padding, 0, LINE_PADDING_BYTES);
}

/* From now on lines of the body are of that line of the text. */
static void import_batch_add_place(struct import_batch *batch, uint64_t body_line, uint64_t line,
				   struct slice source)
{
	GROW(batch->places, batch->place_room, batch->place_count + 1);
	batch->places[batch->place_count++] =
		(struct import_place){body_line, line, batch->source.len, source.len};
	int err = buf_append(&batch->source, source.data, source.len);
	ASSERT(!err); /* a batch that is full gets no further line */
}

/* ---- What is refused ------------------------------------------------------------------------- */

static const struct import_place *import_batch_place(const struct import_batch *batch,
						     uint64_t body_line)
{
	size_t low = 0, high = batch->place_count;
	while (low + 1 < high) {
		size_t middle = (low + high) / 2;
		if (batch->places[middle].body_line <= body_line)
			low = middle;
		else
			high = middle;
	}
	const struct import_place *place = &batch->places[low];
	ASSERT(batch->place_count && place->body_line <= body_line);
	return place;
}

/* A comment is one line, whatever the file is called and the server says. */
static void import_put_reason(struct buf *out, const char *name, uint64_t line, uint64_t column,
			      struct slice reason)
{
	size_t begin = out->len;
	buf_printf(out, "# %s, line %llu", name, (unsigned long long)line);
	if (column)
		buf_printf(out, ", column %llu", (unsigned long long)column);
	buf_printf(out, ": %.*s", (int)reason.len, reason.data);
	for (size_t i = begin; i < out->len; i++)
		if (out->data[i] == '\n')
			out->data[i] = ' ';
	buf_append_char(out, '\n');
}

void import_batch_say(struct import_batch *batch, const char *name, uint64_t body_line,
		      uint64_t column, struct slice reason)
{
	const struct import_place *place = import_batch_place(batch, body_line);
	bool as_sent = batch->format == IMPORT_LINES;
	import_put_reason(&batch->refused, name,
			  place->line + (as_sent ? body_line - place->body_line : 0),
			  as_sent ? column : 0, reason);
}

/* A sample as JSON, of its names as they stood and its line of the body. */
static void import_put_json(struct buf *out, struct slice names, struct slice line)
{
	line.len--;
	const char *end = line.data + line.len, *blank = memrchr(line.data, ' ', line.len);
	const char *equals = memrchr(line.data, '=', (size_t)(blank - line.data));
	/* JSON has no number that is infinite. */
	const char *quote = number_is_digit(blank[-1]) ? "" : "\"";
	buf_append_text(out, "{\"metric\":");
	buf_append(out, names.data, names.len);
	buf_printf(out, ",\"values\":[%s%.*s%s],\"timestamps\":[%.*s]}\n", quote,
		   (int)(blank - equals - 1), equals + 1, quote, (int)(end - blank - 1), blank + 1);
}

void import_batch_refuse(struct import_batch *batch, uint64_t body_line, struct slice line)
{
	const struct import_place *place = import_batch_place(batch, body_line);
	struct slice source = {batch->source.data + place->source, place->source_len};
	if (batch->format == IMPORT_LINES) {
		buf_append(&batch->refused, line.data, line.len);
	} else if (batch->format == IMPORT_JSON) {
		import_put_json(&batch->refused, source, line);
	} else {
		buf_append(&batch->refused, source.data, source.len);
		buf_append_char(&batch->refused, '\n');
	}
}

/* ---- Bytes of the text ----------------------------------------------------------------------- */

static int import_text_more(struct import_text *text, size_t bytes, struct errbuf *e)
{
	int err = 0;
	while (!err && text->text.len < bytes && !text->source->ended)
		err = import_source_read(text->source, &text->text, e);
	return err;
}

/* The next `bytes` of the text lie before its offset now. */
static void import_text_pass(struct import_text *text, const char *data, size_t bytes)
{
	struct import_hash *h = &text->hash;
	text->offset += bytes;
	while (bytes) {
		size_t part =
			(size_t)smaller_of((int64_t)bytes, (int64_t)(IMPORT_HASHED_BYTES - h->len));
		memcpy(h->block + h->len, data, part);
		h->len += part;
		data += part;
		bytes -= part;
		if (h->len == IMPORT_HASHED_BYTES) {
			h->before = hash64(h->block, h->len, h->before);
			h->len = 0;
		}
	}
}

static uint64_t import_text_hash(const struct import_text *text)
{
	return hash64(text->hash.block, text->hash.len, text->hash.before);
}

static void import_text_consume(struct import_text *text, size_t bytes)
{
	import_text_pass(text, text->text.data, bytes);
	buf_consume(&text->text, bytes);
}

int import_text_skip(struct import_text *text, uint64_t offset, uint64_t line, uint64_t hash,
		     struct errbuf *e)
{
	int err = 0;
	while (!err && text->offset < offset) {
		err = import_text_more(text, 1, e);
		if (!err && !text->text.len)
			return errbuf_set(e, ERR_INVALID,
					  "%s is shorter than what was imported of it",
					  text->source->name);
		import_text_consume(text, (size_t)smaller_of((int64_t)text->text.len,
							     (int64_t)(offset - text->offset)));
	}
	if (!err && import_text_hash(text) != hash)
		return errbuf_set(e, ERR_INVALID,
				  "%s begins with other bytes than the file that was imported",
				  text->source->name);
	text->line = line;
	return err;
}

/* ---- Formats --------------------------------------------------------------------------------- */

/* Whether the line is one of line protocol. */
static bool import_is_line(struct slice line)
{
	char bytes[LINE_MAX_BYTES + 1 + LINE_PADDING_BYTES] = {0};
	struct line_fields *fields = mem_alloc(sizeof(*fields));
	struct line_reader reader;
	struct slice key;
	bool is = line.len < LINE_MAX_BYTES;
	if (is) {
		memcpy(bytes, line.data, line.len);
		bytes[line.len] = '\n';
		line_reader_init(&reader, bytes, line.len + 1, 1, LINE_NS);
		is = line_next(&reader, &key) == LINE_OK &&
		     line_fields(&reader, NULL, fields) != LINE_BAD;
	}
	mem_free(fields);
	return is;
}

static bool import_guess_line(struct slice line, enum import_format *format)
{
	struct slice names;
	int64_t ts_ms;
	struct value value;
	const char *reason;
	if (slice_equal(line, SLICE(SAMPLE_CSV_TITLE)))
		*format = IMPORT_CSV;
	else if (slice_starts_with(line, SLICE("{\"")))
		*format = IMPORT_JSON;
	else if (prom_dump_split(line, &names, &ts_ms, &value, &reason) == 0)
		*format = IMPORT_PROMETHEUS;
	else if (import_is_line(line))
		*format = IMPORT_LINES;
	else
		return false;
	return true;
}

/* A name may begin with a # in CSV. */
static bool import_is_comment(enum import_format format, struct slice line)
{
	struct slice names;
	int64_t ts_ms;
	struct value value;
	const char *reason;
	if (!line.len || line.data[0] != '#')
		return false;
	return format != IMPORT_CSV ||
	       ((line.len == 1 || line.data[1] == ' ') &&
		sample_csv_split(line, &names, &ts_ms, &value, &reason) != 0);
}

static bool import_format_said(struct slice word, enum import_format *format)
{
	for (int i = 0; i < IMPORT_FORMATS; i++) {
		if (slice_equal(word, slice_of(import_format_words[i]))) {
			*format = (enum import_format)i;
			return true;
		}
	}
	return false;
}

/* What the comment says behind a mark, which is in front of it. */
static bool import_said(struct slice comment, struct slice mark, struct slice *said)
{
	if (!slice_starts_with(comment, mark))
		return false;
	*said = (struct slice){comment.data + mark.len, comment.len - mark.len};
	return true;
}

int import_text_guess(struct import_text *text, struct slice *precision, uint64_t *precision_line,
		      struct errbuf *e)
{
	int err = import_text_more(text, IMPORT_HEAD_BYTES, e);
	struct slice rest = buf_slice(&text->text), line = rest, word;
	bool said = false;
	*precision = SLICE("");
	if (err)
		return err;
	text->format = IMPORT_LINES;
	for (uint64_t number = 1; slice_take_text_line(&rest, &line); number++) {
		if (import_said(line, SLICE(IMPORT_PRECISION_MARK), precision)) {
			said = import_format_said(SLICE("lines"), &text->format);
			*precision_line = number;
		} else if (import_said(line, SLICE(IMPORT_FORMAT_MARK), &word)) {
			said = import_format_said(word, &text->format);
		}
		if (!line.len || import_is_comment(text->format, line) ||
		    slice_starts_with(line, SLICE(IMPORT_DDL)))
			continue;
		if (said || import_guess_line(line, &text->format))
			return 0;
		return errbuf_set(e, ERR_INVALID,
				  "%s, line %llu: \"" SHOWN "\" is in no format that import reads; "
				  "--format says which one it is",
				  text->source->name, (unsigned long long)number, SHOWN_OF(line));
	}
	return errbuf_set(e, ERR_INVALID, "%s has no samples", text->source->name);
}

/* ---- What cannot be read --------------------------------------------------------------------- */

static void import_refuse(struct import_text *text, struct import_batch *batch, const char *reason,
			  struct slice line)
{
	import_put_reason(&batch->refused, text->source->name, text->line, 0, slice_of(reason));
	buf_append(&batch->refused, line.data, line.len);
	buf_append_char(&batch->refused, '\n');
	batch->refused_lines++;
}

/* The line that begins the text has no end within what memory is for it. Its beginning is shown, as
 * a comment. */
static int import_skip_long(struct import_text *text, struct import_batch *batch, struct errbuf *e)
{
	struct slice rest, line = {text->text.data, IMPORT_SHOWN_BYTES};
	bool ended = false;
	int err = 0;
	import_put_reason(&batch->refused, text->source->name, text->line, 0,
			  SLICE("the line is longer than any that is imported"));
	buf_printf(&batch->refused, "# %.*s...\n", (int)line.len, line.data);
	batch->refused_lines++;
	while (!err && !ended) {
		import_text_consume(text, text->text.len);
		err = import_text_more(text, 1, e);
		rest = buf_slice(&text->text);
		ended = err || !rest.len || slice_take_line(&rest, &line);
	}
	if (!err && text->text.len)
		import_text_consume(text, text->text.len - rest.len);
	text->line++;
	return err;
}

/* ---- Line protocol --------------------------------------------------------------------------- */

/* Where the last whole line ends. A text within quotes may have line ends of its own. */
static size_t import_lines_end(const struct buf *block)
{
	struct line_fields *fields = mem_alloc(sizeof(*fields));
	struct line_reader reader;
	struct slice key;
	enum line_result result = LINE_OK;
	line_reader_init(&reader, block->data, block->len, 1, LINE_NS);
	while (result != LINE_DONE && result != LINE_CUT) {
		result = line_next(&reader, &key);
		if (result == LINE_OK)
			result = line_fields(&reader, NULL, fields);
	}
	mem_free(fields);
	return result == LINE_CUT && reader.start > block->data
		       ? (size_t)(reader.start - block->data)
		       : block->len;
}

uint64_t import_count_lines(struct slice text)
{
	struct slice line;
	uint64_t count = 0;
	while (slice_take_line(&text, &line))
		count++;
	return count;
}

void import_lines_init(struct import_lines *lines, struct slice body, uint64_t line,
		       enum line_precision precision)
{
	*lines = (struct import_lines){.first_line = line, .end_line = line};
	lines->fields = mem_alloc(sizeof(*lines->fields));
	line_reader_init(&lines->reader, body.data, body.len, line, precision);
}

void import_lines_release(struct import_lines *lines)
{
	mem_free(lines->fields);
}

bool import_lines_next(struct import_lines *lines)
{
	struct line_reader *reader = &lines->reader;
	struct slice key;
	enum line_result result = line_next(reader, &key);
	if (result == LINE_DONE)
		return false;
	if (result == LINE_OK && line_fields(reader, NULL, lines->fields) == LINE_CUT)
		line_skip(reader);
	lines->text = (struct slice){reader->start, (size_t)(reader->at - reader->start)};
	lines->first_line = reader->line;
	lines->end_line = reader->line + import_count_lines(lines->text);
	return true;
}

size_t import_lines_half(struct slice body, enum line_precision precision)
{
	struct import_lines lines;
	size_t begin = 0, end = 0;
	import_lines_init(&lines, body, 1, precision);
	while (end < body.len / 2 && import_lines_next(&lines)) {
		begin = (size_t)(lines.text.data - body.data);
		end = begin + lines.text.len;
	}
	import_lines_release(&lines);
	return end < body.len ? end : begin;
}

/* influx_inspect writes CREATE DATABASE between the samples: these lines become comments. */
static void import_pass_over_ddl(struct buf *body)
{
	const struct slice ddl = SLICE("\n" IMPORT_DDL);
	char *at = body->data, *end = body->data + body->len;
	if (slice_starts_with(buf_slice(body), SLICE(IMPORT_DDL)))
		*at = '#';
	while ((at = memmem(at, (size_t)(end - at), ddl.data, ddl.len)))
		at[1] = '#';
}

static int import_lines_batch(struct import_text *text, struct import_batch *batch,
			      struct errbuf *e)
{
	struct buf *body = &batch->body;
	int err = import_text_more(text, IMPORT_BODY_BYTES, e);
	if (err || !text->text.len)
		return err;
	size_t len = (size_t)smaller_of((int64_t)text->text.len, IMPORT_BODY_BYTES);
	const char *last = memrchr(text->text.data, '\n', len);
	bool is_last = text->source->ended && len == text->text.len;
	if (!last && !is_last)
		return import_skip_long(text, batch, e);
	if (last && !is_last)
		len = (size_t)(last + 1 - text->text.data);
	buf_append(body, text->text.data, len);
	if (body->data[len - 1] != '\n')
		buf_append_char(body, '\n');
	import_batch_pad(batch);
	if (!is_last && memchr(body->data, '"', body->len))
		body->len = len = import_lines_end(body);
	import_pass_over_ddl(body);
	import_batch_add_place(batch, 1, text->line, SLICE(""));
	batch->lines = import_count_lines(buf_slice(body));
	text->line += batch->lines;
	import_text_consume(text, len);
	return 0;
}

/* ---- Other formats --------------------------------------------------------------------------- */

/* NULL, or why lines cannot have these names. */
static const char *import_set_key(struct import_text *text, struct slice metric, struct tags tags)
{
	const char *fault = line_key_fault(metric, tags);
	buf_clear(&text->key);
	if (!fault &&
	    (line_append_key(metric, tags, &text->key) || buf_append_text(&text->key, " value=")))
		fault = "the names make a line longer than any that is stored";
	return fault;
}

static void import_put_sample(struct import_text *text, struct import_batch *batch, int64_t ts_ms,
			      struct value value)
{
	struct slice key = buf_slice(&text->key);
	if (value.type == VALUE_F64 && isnan(value_as_f64(value))) {
		batch->nans++;
		return;
	}
	char *start = buf_reserve(&batch->body, key.len + IMPORT_SAMPLE_BYTES), *to = start;
	ASSERT(start);
	memcpy(to, key.data, key.len);
	to += key.len;
	to += line_print_value(to, value);
	*to++ = ' ';
	to += number_print_i64(to, ts_ms);
	*to++ = '\n';
	batch->body.len += (size_t)(to - start);
	batch->lines++;
}

/* The names of a sample, unless they are those of the line before. NULL, or why they cannot be. */
static const char *import_take_names(struct import_text *text, struct slice names)
{
	struct slice metric;
	struct tags tags;
	const char *reason = NULL;
	if (slice_equal(names, text->names))
		return NULL;
	arena_reset(&text->arena);
	text->names = (struct slice){NULL, 0};
	int err = text->format == IMPORT_CSV
			  ? sample_csv_names(names, &text->arena, &metric, &tags, &reason)
			  : prom_dump_names(names, &text->arena, &metric, &tags, &reason);
	if (err)
		return reason;
	reason = import_set_key(text, metric, tags);
	if (reason)
		return reason;
	text->names = arena_copy(&text->arena, names);
	return NULL;
}

static const char *import_take_sample(struct import_text *text, struct import_batch *batch,
				      struct slice line)
{
	struct slice names;
	struct value value;
	int64_t ts_ms;
	const char *reason = NULL;
	int err = text->format == IMPORT_CSV
			  ? sample_csv_split(line, &names, &ts_ms, &value, &reason)
			  : prom_dump_split(line, &names, &ts_ms, &value, &reason);
	reason = err ? reason : import_take_names(text, names);
	if (!reason)
		import_put_sample(text, batch, ts_ms, value);
	return reason;
}

/* Some samples of the line of JSON that is open. */
static const char *import_take_json(struct import_text *text, struct import_batch *batch)
{
	struct value value;
	int64_t ts_ms;
	int err = 0;
	while (!err && !import_batch_full(batch)) {
		err = vm_line_next(&text->vm, &ts_ms, &value);
		if (!err)
			import_put_sample(text, batch, ts_ms, value);
	}
	text->open = !err;
	return err == ERR_INVALID ? text->vm.reason : NULL;
}

static const char *import_begin_json(struct import_text *text, struct slice line)
{
	arena_reset(&text->arena);
	if (vm_line_read(&text->vm, line, &text->arena))
		return text->vm.reason;
	text->open = true;
	return import_set_key(text, text->vm.metric, text->vm.tags);
}

static void import_take_one(struct import_text *text, struct import_batch *batch, struct slice line)
{
	const char *reason = NULL;
	bool title = slice_equal(line, SLICE(SAMPLE_CSV_TITLE));
	uint64_t before = batch->lines;
	if (!text->open && (!line.len || import_is_comment(text->format, line) || title))
		return;
	if (text->format != IMPORT_JSON)
		reason = import_take_sample(text, batch, line);
	else if (!text->open)
		reason = import_begin_json(text, line);
	if (text->open && !reason)
		reason = import_take_json(text, batch);
	if (batch->lines > before)
		import_batch_add_place(batch, before + 1, text->line,
				       text->format == IMPORT_JSON ? text->vm.names : line);
	if (!reason)
		return;
	text->open = false;
	import_refuse(text, batch, reason, line);
}

/* The length of the line that begins at `at` of the text, with its end; 0: it is not all there. */
static size_t import_line_length(const struct import_text *text, size_t at)
{
	struct slice rest = {text->text.data + at, text->text.len - at}, line;
	if (slice_take_line(&rest, &line))
		return line.len + 1;
	return text->source->ended ? rest.len : 0;
}

static int import_samples_batch(struct import_text *text, struct import_batch *batch,
				struct errbuf *e)
{
	int err = 0;
	if (!text->open) {
		buf_consume(&text->text, text->taken);
		text->taken = 0;
		err = import_text_more(text, IMPORT_BODY_BYTES, e);
	}
	size_t at = text->taken;
	while (!err && !import_batch_full(batch)) {
		size_t len = import_line_length(text, at);
		if (!len && at)
			break;
		if (!len && text->text.len >= IMPORT_LINE_MAX_BYTES)
			return import_skip_long(text, batch, e);
		if (!len && text->source->ended)
			break;
		if (!len) {
			err = import_text_more(text, text->text.len + 1, e);
			continue;
		}
		struct slice rest = {text->text.data + at, len}, line;
		(void)slice_take_text_line(&rest, &line);
		import_take_one(text, batch, line);
		if (text->open)
			break;
		at += len;
		text->line++;
	}
	import_text_pass(text, text->text.data + text->taken, at - text->taken);
	text->taken = at;
	return err;
}

int import_text_batch(struct import_text *text, struct import_batch *batch, struct errbuf *e)
{
	int err = 0;
	import_batch_begin(batch, text->format);
	bool left = true;
	while (!err && left && !batch->body.len && !import_batch_full(batch)) {
		err = text->format == IMPORT_LINES ? import_lines_batch(text, batch, e)
						   : import_samples_batch(text, batch, e);
		left = text->text.len > text->taken || !text->source->ended;
	}
	import_batch_pad(batch);
	batch->offset = text->offset;
	batch->line = text->line;
	batch->hash = import_text_hash(text);
	return err;
}
