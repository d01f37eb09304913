/* Any bytes as the body of a report whose statements are read, and as every text of a daily report:
 * no line of its text is longer than 80 characters, and the page has no markup but its own. */
#include "base/mem.h"
#include "base/utf8.h"
#include "fault/daily.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MEMORY_MAX_BYTES = 16 << 20, TEXT_MAX_BYTES = 4096, OUT_MAX_BYTES = 4 << 20 };

static void check_lines(const struct buf *out)
{
	size_t columns = 0;
	for (size_t at = 0; at < out->len; at++) {
		if (out->data[at] == '\n')
			columns = 0;
		else if (((uint8_t)out->data[at] & 0xc0) != 0x80)
			columns++;
		ASSERT(columns <= FAULT_DAILY_COLUMNS);
	}
	ASSERT(utf8_is_valid(buf_slice(out)));
}

static size_t count_tags(const struct buf *out)
{
	size_t count = 0;
	for (size_t i = 0; i < out->len; i++)
		count += out->data[i] == '<' || out->data[i] == '"';
	return count;
}

/* How many tags the page has. */
static size_t make_page(struct slice text)
{
	struct fault_tally tally = {.count = 2, .title = text};
	struct fault_said said = {.assignee = text, .bugs = {{text, text}}, .bug_count = 1};
	struct fault_daily_group group = {.name = text, .tally = &tally, .said = &said};
	struct fault_daily_tops tops = {
		.list = {{1, text, text, {text, 2, 3}}}, .count = 1, .listed = 1, .looked_at = 1};
	struct fault_daily daily = {
		.tenant = SLICE("t"), .total = 1, .group_count = 1, .longest = tops, .most = tops};
	struct buf out;
	tally.first.id = tally.last.id = text;
	group.statement = (struct fault_statement){text, 1, 1};
	daily.groups[FAULT_DAILY_EXCEPTIONS] =
		(struct fault_daily_groups){.list = {&group}, .count = 1, .unique = 1};
	buf_init(&out, OUT_MAX_BYTES);
	fault_daily_put_text(&daily, &out);
	check_lines(&out);
	buf_clear(&out);
	fault_daily_put_html(&daily, &out);
	ASSERT(!out.failed && utf8_is_valid(buf_slice(&out)));
	size_t tags = count_tags(&out);
	buf_release(&out);
	return tags;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = {size ? (const char *)data : "", size};
	struct fault_statements statements;
	struct arena arena;
	arena_init(&arena, MEMORY_MAX_BYTES);
	if (!fault_statements_of(text, &arena, &statements)) {
		ASSERT(statements.repeated.count != 1);
		ASSERT(statements.expensive.text.len <= FAULT_STATEMENT_MAX_BYTES);
	}
	arena_release(&arena);
	text.len = text.len < TEXT_MAX_BYTES ? text.len : TEXT_MAX_BYTES;
	/* A text that is a link makes other tags. */
	if (text.len && text.data[0] != 'h')
		ASSERT(make_page(text) == make_page(SLICE("x")));
	return 0;
}
