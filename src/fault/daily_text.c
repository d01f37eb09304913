/* The daily report as plain text, as people mail it around. */
#include "base/utf8.h"
#include "base/visible.h"
#include "fault/daily.h"
#include "wire/timetext.h"

enum {
	CONTEXTS_MAX = 3, /* of a group */
	COUNT_COLUMNS = 8,
	INDENT = COUNT_COLUMNS + 2,
	FIELD_MAX_BYTES = VISIBLE_MAX_BYTES * 1024,
};

/* ---- Lines of so many columns ---------------------------------------------------------------- */

/* How many bytes of a text have so many characters, or all that there are. */
static size_t daily_text_bytes(struct slice text, size_t characters)
{
	size_t at = 0;
	for (; at < text.len && characters; characters--)
		at += utf8_length((const uint8_t *)text.data + at, text.len - at);
	return at;
}

/* Where the first line of a text ends that is too long for one line: at a blank in the second half
 * of the line, if there is one. */
static size_t daily_text_break(struct slice text, size_t columns)
{
	size_t end = daily_text_bytes(text, columns);
	for (size_t at = end; at > end / 2; at--)
		if (text.data[at] == ' ')
			return at;
	return end;
}

/* The rest of a line, from column `indent` on; what is too long for it goes on in further lines, in
 * the same column. */
static void daily_text_put(struct buf *out, size_t indent, struct slice text)
{
	struct buf field;
	size_t columns = FAULT_DAILY_COLUMNS - indent;
	buf_init(&field, FIELD_MAX_BYTES);
	visible_append(&field, text);
	struct slice rest = buf_slice(&field);
	while (daily_text_bytes(rest, columns) < rest.len) {
		size_t end = daily_text_break(rest, columns);
		buf_append(out, rest.data, end);
		end += rest.data[end] == ' ';
		rest = (struct slice){rest.data + end, rest.len - end};
		buf_printf(out, "\n%*s", (int)indent, "");
	}
	if (rest.len)
		buf_append(out, rest.data, rest.len);
	buf_append_char(out, '\n');
	buf_release(&field);
}

/* A field that is made, on lines of its own. */
static void daily_text_line(struct buf *out, size_t indent, const struct buf *field)
{
	buf_printf(out, "%*s", (int)indent, "");
	daily_text_put(out, indent, buf_slice(field));
}

static struct slice daily_text_context(struct slice context)
{
	return context.len ? context : SLICE("(no context)");
}

static void daily_text_title(struct buf *out, enum fault_daily_section section, size_t shown,
			     size_t unique)
{
	const char *title = fault_daily_title(section);
	if (shown < unique)
		buf_printf(out, "\n=== Top %zu %s (total of %zu unique items) ===\n\n", shown,
			   title, unique);
	else
		buf_printf(out, "\n=== All %s ===\n\n", title);
}

/* ---- Head ------------------------------------------------------------------------------------ */

static void daily_text_put_time(struct buf *out, int64_t date_us)
{
	char text[TIME_PRINT_MAX_BYTES];
	buf_append(out, text, time_print(text, floor_div(date_us, 1000)));
}

static void daily_text_statistics(const struct fault_daily *daily, struct buf *out)
{
	const struct fault_daily_groups *fresh = &daily->groups[FAULT_DAILY_NEW];
	buf_append_text(out, "=== Statistics ===\n\n");
	buf_printf(out, " * %llu reports; the day before %llu\n", (unsigned long long)daily->total,
		   (unsigned long long)daily->before);
	if (daily->group_count) {
		buf_append_text(out, " * received from ");
		daily_text_put_time(out, daily->first_us);
		buf_append_text(out, " to ");
		daily_text_put_time(out, daily->last_us);
		buf_printf(out, "\n * %zu groups, %zu of them new\n", daily->group_count,
			   fresh->unique);
	}
	for (size_t s = FAULT_DAILY_EXCEPTIONS; s < FAULT_DAILY_SECTIONS; s++)
		if (daily->groups[s].reports)
			buf_printf(out, " * %llu %s\n",
				   (unsigned long long)daily->groups[s].reports,
				   fault_daily_title((enum fault_daily_section)s));
	if (daily->rest)
		buf_printf(out, " * %llu reports that are in no group which is counted\n",
			   (unsigned long long)daily->rest);
}

static void daily_text_head(const struct fault_daily *daily, struct buf *out)
{
	char date[TIME_PRINT_MAX_BYTES];
	struct buf title;
	buf_init(&title, FIELD_MAX_BYTES);
	size_t len = time_print(date, daily->day * (FAULT_DAY_US / 1000));
	const char *end = memchr(date, 'T', len);
	buf_printf(&title, "Fault reports of " SHOWN " on %.*s%s", SHOWN_OF(daily->tenant),
		   (int)(end - date), date, daily->closed ? "" : ", so far");
	daily_text_put(out, 0, buf_slice(&title));
	buf_append_char(out, '\n');
	if (daily->total || daily->before)
		daily_text_statistics(daily, out);
	if (!daily->total)
		buf_append_text(out, "No fault reports were received.\n");
	buf_release(&title);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static void daily_text_put_statement(struct buf *out, struct buf *field, const char *what,
				     const struct fault_statement *statement)
{
	if (!statement->count)
		return;
	buf_clear(field);
	buf_printf(field, "%s %llu times, %.2f s: ", what, (unsigned long long)statement->count,
		   (double)statement->total_us / 1e6);
	buf_append(field, statement->text.data, statement->text.len);
	daily_text_line(out, INDENT, field);
}

static void daily_text_tops(struct buf *out, struct buf *field, enum fault_daily_section section,
			    const struct fault_daily_tops *tops)
{
	if (!tops->listed)
		return;
	buf_printf(out, "\n=== Top %zu %s ===\n\n", tops->count, fault_daily_title(section));
	for (size_t i = 0; i < tops->count; i++) {
		const struct fault_daily_top *top = &tops->list[i];
		if (section == FAULT_DAILY_DURATIONS)
			buf_printf(out, "%*.2f  ", COUNT_COLUMNS, (double)top->value / 1e6);
		else
			buf_printf(out, "%*llu  ", COUNT_COLUMNS, (unsigned long long)top->value);
		daily_text_put(out, INDENT, top->id);
		buf_printf(out, "%*s", INDENT, "");
		daily_text_put(out, INDENT, daily_text_context(top->context));
		if (section == FAULT_DAILY_STATEMENTS)
			daily_text_put_statement(out, field, "repeated", &top->repeated);
	}
	if (tops->looked_at < tops->listed)
		buf_printf(out, "[of the %zu reports of this list %zu were looked at]\n",
			   tops->listed, tops->looked_at);
	if (tops->unread)
		buf_printf(out, "[%zu reports can be read no more]\n", tops->unread);
}

static void daily_text_timeout_pages(struct buf *out,
				     const struct fault_daily_timeout_pages *timeouts)
{
	if (!timeouts->unique)
		return;
	daily_text_title(out, FAULT_DAILY_TIMEOUT_PAGES, timeouts->count, timeouts->unique);
	buf_append_text(out, "    Hard /     Soft  Page\n");
	for (size_t i = 0; i < timeouts->count; i++) {
		const struct fault_daily_timeout_page *page = &timeouts->list[i];
		buf_printf(out, "%*llu / %*llu  ", COUNT_COLUMNS, (unsigned long long)page->hard,
			   COUNT_COLUMNS, (unsigned long long)page->soft);
		daily_text_put(out, 2 * COUNT_COLUMNS + 5, daily_text_context(page->context));
	}
	if (timeouts->hard_rest || timeouts->soft_rest)
		buf_printf(out, "%*llu / %*llu  [other pages]\n", COUNT_COLUMNS,
			   (unsigned long long)timeouts->hard_rest, COUNT_COLUMNS,
			   (unsigned long long)timeouts->soft_rest);
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static void daily_text_put_said(struct buf *out, struct buf *field,
				const struct fault_daily_group *group)
{
	const struct fault_said *said = group->said;
	buf_clear(field);
	buf_append(field, group->name.data, group->name.len);
	buf_printf(field, ", %s%s", fault_statuses[group->status], group->again ? " again" : "");
	if (said && said->assignee.len) {
		buf_append_text(field, ", of ");
		buf_append(field, said->assignee.data, said->assignee.len);
	}
	if (group->is_new)
		buf_append_text(field, ", new");
	else
		buf_printf(field, ", the day before %llu", (unsigned long long)group->before);
	daily_text_line(out, INDENT, field);
	for (size_t i = 0; said && i < said->bug_count; i++) {
		buf_clear(field);
		buf_append_text(field, "bug ");
		buf_append(field, said->bugs[i].tracker.data, said->bugs[i].tracker.len);
		buf_append_text(field, ": ");
		buf_append(field, said->bugs[i].bug.data, said->bugs[i].bug.len);
		daily_text_line(out, INDENT, field);
	}
}

static void daily_text_put_contexts(struct buf *out, struct buf *field,
				    const struct fault_daily_group *group)
{
	struct fault_daily_contexts contexts;
	fault_daily_contexts(group, CONTEXTS_MAX, &contexts);
	for (size_t i = 0; i < contexts.count; i++) {
		struct slice context = daily_text_context(contexts.list[i].context);
		buf_clear(field);
		buf_printf(field, "%llu: ", (unsigned long long)contexts.list[i].count);
		buf_append(field, context.data, context.len);
		daily_text_line(out, INDENT, field);
	}
	if (contexts.rest)
		buf_printf(out, "%*s%llu: [other contexts]\n", INDENT, "",
			   (unsigned long long)contexts.rest);
}

static void daily_text_group(struct buf *out, struct buf *field,
			     const struct fault_daily_group *group)
{
	const struct fault_tally *tally = group->tally;
	buf_printf(out, "%*llu  ", COUNT_COLUMNS, (unsigned long long)tally->count);
	daily_text_put(out, INDENT, tally->title.len ? tally->title : SLICE("(no title)"));
	daily_text_put_said(out, field, group);
	daily_text_put_statement(out, field, "statement", &group->statement);
	daily_text_put_contexts(out, field, group);
	buf_printf(out, "%*s", INDENT, "");
	daily_text_put(out, INDENT, tally->first.id);
	if (tally->count > 1) {
		buf_printf(out, "%*s", INDENT, "");
		daily_text_put(out, INDENT, tally->last.id);
	}
}

static void daily_text_groups(struct buf *out, struct buf *field, enum fault_daily_section section,
			      const struct fault_daily_groups *groups)
{
	if (!groups->unique)
		return;
	daily_text_title(out, section, groups->count, groups->unique);
	for (size_t i = 0; i < groups->count; i++) {
		if (i)
			buf_append_char(out, '\n');
		daily_text_group(out, field, groups->list[i]);
	}
	if (groups->count < groups->unique)
		buf_printf(out, "\n%*llu  [%zu other groups]\n", COUNT_COLUMNS,
			   (unsigned long long)(groups->reports - groups->shown),
			   groups->unique - groups->count);
}

void fault_daily_put_text(const struct fault_daily *daily, struct buf *out)
{
	struct buf field;
	buf_init(&field, FIELD_MAX_BYTES);
	daily_text_head(daily, out);
	daily_text_groups(out, &field, FAULT_DAILY_NEW, &daily->groups[FAULT_DAILY_NEW]);
	daily_text_tops(out, &field, FAULT_DAILY_DURATIONS, &daily->longest);
	daily_text_tops(out, &field, FAULT_DAILY_STATEMENTS, &daily->most);
	daily_text_timeout_pages(out, &daily->timeouts);
	for (size_t s = FAULT_DAILY_EXCEPTIONS; s < FAULT_DAILY_SECTIONS; s++)
		daily_text_groups(out, &field, (enum fault_daily_section)s, &daily->groups[s]);
	buf_release(&field);
}
