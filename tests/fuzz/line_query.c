/* A search, which is the first line, and lines: whatever a line has is seen when it is looked for
 * before lines are compared, and in the filter of its words. */
#include "base/utf8.h"
#include "stream/line_query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(struct line_query *query, struct slice line)
{
	struct words_set set;
	struct buf filter;
	if (!line_query_fits(query, line))
		return;
	ASSERT(!line.len || line_query_seek(query, line, 0) < line.len);
	buf_init(&filter, 1 << 20);
	words_set_init(&set, 0);
	words_set_add_lines(&set, line);
	words_filter_put_alone(&set, &filter);
	ASSERT(!filter.failed && line_query_may_fit(query, buf_slice(&filter)));
	words_set_release(&set);
	buf_release(&filter);
}

static struct slice line_at(const char *p, const char *end)
{
	const char *newline = p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
	return (struct slice){p, (size_t)((newline ? newline : end) - p)};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = size ? (const char *)data : "", *end = p + size;
	struct slice search = line_at(p, end);
	struct line_query query;
	struct errbuf e = {""};
	struct arena arena;
	if (!utf8_is_valid(search))
		return 0;
	arena_init(&arena, 1 << 20);
	int err = line_query_parse(search, &arena, &query, &e);
	ASSERT((err != 0) == (e.text[0] != 0));
	for (p += search.len + 1; !err && p < end;) {
		struct slice line = line_at(p, end);
		check_line(&query, line);
		p += line.len + 1;
	}
	line_query_release(&query);
	arena_release(&arena);
	return 0;
}
