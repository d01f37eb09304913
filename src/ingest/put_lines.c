#include "ingest/put_lines.h"

#include "base/stats.h"
#include "base/visible.h"
#include "ingest/private.h"
#include "wire/put_line.h"

enum { SHOWN_MAX_BYTES = 64 };

static const enum ingest_reason reasons[] = {
	[PUT_LINE_SYNTAX] = INGEST_SYNTAX,         [PUT_LINE_TIME] = INGEST_TIME,
	[PUT_LINE_NOT_NUMBER] = INGEST_NOT_NUMBER, [PUT_LINE_NOT_FINITE] = INGEST_NOT_FINITE,
	[PUT_LINE_TOO_MANY] = INGEST_LIMIT,
};

/* ---- Lines ---------------------------------------------------------------------------------- */

/* With its end. */
static struct slice put_lines_first_line(struct slice bytes)
{
	const char *newline = memchr(bytes.data, '\n', bytes.len);
	ASSERT(newline);
	return (struct slice){bytes.data, (size_t)(newline - bytes.data) + 1};
}

static struct slice put_lines_without_end(struct slice line)
{
	line.len--;
	if (line.len && line.data[line.len - 1] == '\r')
		line.len--;
	return line;
}

/* Takes the command off the front. */
static bool put_lines_is_put(struct slice *line)
{
	struct slice rest = *line;
	if (!slice_equal(put_line_word(&rest), SLICE("put")))
		return false;
	*line = rest;
	return true;
}

static bool put_lines_is_blank(struct slice line)
{
	return !put_line_word(&line).len;
}

bool put_lines_command(struct slice bytes, struct slice *command)
{
	*command = put_lines_without_end(put_lines_first_line(bytes));
	struct slice line = *command;
	return !put_lines_is_blank(line) && !put_lines_is_put(&line);
}

/* ---- Put ------------------------------------------------------------------------------------ */

static uint32_t put_lines_column_of(const char *at, const char *begin)
{
	return (uint32_t)(at - begin) + 1;
}

/* The tag that names the tenant, after ingest_tenant has refused it: the one it has taken out, or,
 * where that is a tenant, another one. */
static const char *put_lines_tenant_place(const struct listener_lines *lines,
					  const struct put_line *line, struct slice tenant)
{
	struct slice key = lines->r->ingest->options.tenant_tag;
	size_t i = 0;
	if (!tenant_valid(tenant))
		return tenant.data - 1 - key.len;
	while (!slice_equal(line->tags[i].key, key))
		i++;
	return line->tags[i].key.data;
}

static void put_lines_accept_put(struct listener_lines *lines, const char *begin,
				 struct slice words)
{
	struct put_line line;
	struct slice tenant;
	struct errbuf e;
	const char *at = words.data;
	enum put_line_fault fault = put_line_parse(words, &line, &at, &e);
	struct ingest_place place = {lines->line, fault ? put_lines_column_of(at, begin) : 1};
	if (fault) {
		ingest_refuse(lines->r, place, reasons[fault], (struct slice){0}, "%s", e.text);
		return;
	}
	if (ingest_tenant(lines->r->ingest, lines->tenant, line.tags, &line.tag_count, &tenant,
			  &e)) {
		place.column =
			put_lines_column_of(put_lines_tenant_place(lines, &line, tenant), begin);
		ingest_refuse(lines->r, place, INGEST_NAME, (struct slice){0}, "%s", e.text);
		return;
	}
	ingest_points(lines->r, &(struct ingest_points){.tenant = tenant,
							.tags = line.tags,
							.tag_count = line.tag_count,
							.metrics = &line.metric,
							.values = &line.value,
							.count = 1,
							.ts_ms = line.ts_ms,
							.place = place,
							.line = begin});
}

void put_lines_feed(struct listener_lines *lines)
{
	struct slice rest = lines->bytes;
	ingest_piece_begin(lines->r);
	while (rest.len && !lines->r->err) {
		struct slice line = put_lines_first_line(rest), words = put_lines_without_end(line);
		if (line.len > lines->line_max_bytes)
			ingest_refuse(lines->r, (struct ingest_place){lines->line, 1},
				      INGEST_TOO_LONG, (struct slice){0},
				      "the line is longer than %zu bytes", lines->line_max_bytes);
		else if (put_lines_is_put(&words))
			put_lines_accept_put(lines, line.data, words);
		else if (!put_lines_is_blank(words))
			break;
		lines->line++;
		rest = (struct slice){rest.data + line.len, rest.len - line.len};
	}
	ingest_piece_end(lines->r);
	lines->taken = lines->bytes.len - rest.len;
	lines->open = 0;
}

/* ---- Answers -------------------------------------------------------------------------------- */

void put_lines_refusals(const struct ingest_request *r, struct buf *out)
{
	for (size_t i = 0; i < r->error_count; i++) {
		const struct ingest_error *error = &r->errors[i];
		buf_printf(out, "put: illegal argument: line %llu, column %u: ",
			   (unsigned long long)error->place.index, error->place.column);
		/* It may quote what came in; an answer is shown on terminals. */
		visible_append(out, slice_of(error->sentence));
		buf_append_char(out, '\n');
	}
	if (r->refused > r->error_count)
		buf_printf(out, "put: illegal argument: and %llu more\n",
			   (unsigned long long)(r->refused - r->error_count));
}

/* Our counters as OpenTSDB shows its own: name, time, value, tags. */
static void put_lines_put_stats(int64_t now_s, struct buf *out)
{
	for (size_t i = 0; i < STAT_COUNT; i++) {
		const struct stat_def *stat = &stat_defs[i];
		char text[STAT_TEXT_BYTES];
		buf_printf(out, "%s %lld %s", stat->name, (long long)now_s,
			   stat_text((enum stat_id)i, text));
		if (*stat->label)
			buf_append_char(out, ' ');
		for (const char *c = stat->label; *c; c++) {
			if (*c != '"')
				buf_append_char(out, *c);
		}
		buf_append_char(out, '\n');
	}
}

void put_lines_answer(struct slice command, int64_t now_s, struct buf *out, bool *over)
{
	struct slice word = put_line_word(&command);
	*over = slice_equal(word, SLICE("exit"));
	if (*over)
		return;
	if (slice_equal(word, SLICE("version"))) {
		buf_append_text(out, "granary " GRANARY_VERSION ", speaking OpenTSDB's put\n");
	} else if (slice_equal(word, SLICE("help"))) {
		buf_append_text(out, "available commands: put stats version help exit\n");
	} else if (slice_equal(word, SLICE("stats"))) {
		put_lines_put_stats(now_s, out);
	} else {
		bool cut = word.len > SHOWN_MAX_BYTES;
		stat_add(STAT_ingest_refused_syntax, 1);
		word.len = cut ? SHOWN_MAX_BYTES : word.len;
		buf_append_text(out, "unknown command: ");
		visible_append(out, word);
		if (cut)
			buf_append_text(out, "...");
		buf_append_text(out, ".  Try `help'.\n");
	}
}
