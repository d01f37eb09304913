/* The daily report as a page of HTML: one file, without scripts, for a phone as well. */
#include "fault/daily.h"
#include "wire/html.h"
#include "wire/timetext.h"

static const char daily_html_style[] =
	":root { color-scheme: light dark; --line: #8884; --link: #1a5fb4; --new: #c01c28 }\n"
	"@media (prefers-color-scheme: dark) { :root { --link: #8ab4f8; --new: #ff7b72 } }\n"
	"body { font: 16px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 60rem;\n"
	"  padding: 1rem; overflow-wrap: anywhere }\n"
	"h1 { font-size: 1.5rem; line-height: 1.2; margin: 0 0 .5rem }\n"
	"h2 { font-size: 1.2rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line) }\n"
	"h3 { font-size: 1rem; margin: 0 }\n"
	"a { color: var(--link) }\n"
	"ul { margin: 0; padding-left: 1.2rem }\n"
	"p { margin: .1rem 0 }\n"
	"code { font: .875em/1.4 ui-monospace, monospace }\n"
	"b.new { color: var(--new) }\n"
	".group { display: grid; grid-template-columns: minmax(3.5rem, max-content) 1fr;\n"
	"  gap: 0 .75rem; padding: .6rem 0; border-bottom: 1px solid var(--line) }\n"
	".group > div { min-width: 0 }\n"
	".count, td.number { text-align: right; font-variant-numeric: tabular-nums }\n"
	".count { font-weight: bold }\n"
	"table { border-collapse: collapse; width: 100% }\n"
	"th, td { text-align: left; vertical-align: top; padding: .3rem .75rem .3rem 0;\n"
	"  border-bottom: 1px solid var(--line) }\n"
	"th.number { text-align: right }\n";

/* ---- Text and links -------------------------------------------------------------------------- */

/* Whatever the direction of its letters is, it turns nothing that stands beside it. */
static void daily_html_put(struct buf *out, struct slice text)
{
	buf_append_text(out, "<bdi>");
	html_put_text(out, text);
	buf_append_text(out, "</bdi>");
}

static void daily_html_put_link(const struct fault_daily *daily, struct buf *out, const char *path,
				struct slice name)
{
	buf_printf(out, "<a href=\"%s", path);
	html_put_in_url(out, name);
	buf_append_text(out, "?tenant=");
	html_put_in_url(out, daily->tenant);
	buf_append_text(out, "\"><code>");
	daily_html_put(out, name);
	buf_append_text(out, "</code></a>");
}

static void daily_html_put_id(const struct fault_daily *daily, struct buf *out, struct slice id)
{
	daily_html_put_link(daily, out, "/oops/", id);
}

static void daily_html_put_context(struct buf *out, struct slice context)
{
	if (context.len)
		daily_html_put(out, context);
	else
		buf_append_text(out, "<i>no context</i>");
}

static void daily_html_begin(struct buf *out, enum fault_daily_section section, bool all,
			     size_t shown)
{
	buf_printf(out, "<section id=\"%s\">\n<h2>", fault_daily_name(section));
	if (all)
		buf_append_text(out, "All ");
	else
		buf_printf(out, "Top %zu ", shown);
	buf_append_text(out, fault_daily_title(section));
}

/* ---- Head ------------------------------------------------------------------------------------ */

static void daily_html_put_title(const struct fault_daily *daily, struct buf *out)
{
	char date[TIME_PRINT_MAX_BYTES];
	size_t len = time_print(date, daily->day * (FAULT_DAY_US / 1000));
	const char *end = memchr(date, 'T', len);
	buf_append_text(out, "Fault reports of ");
	html_put_text(out, daily->tenant);
	buf_printf(out, " on %.*s%s", (int)(end - date), date, daily->closed ? "" : ", so far");
}

static void daily_html_put_time(struct buf *out, int64_t date_us)
{
	char text[TIME_PRINT_MAX_BYTES];
	size_t len = time_print(text, floor_div(date_us, 1000));
	buf_printf(out, "<time>%.*s</time>", (int)len, text);
}

/* `reports` 0: it does not count them. */
static void daily_html_put_anchor(struct buf *out, enum fault_daily_section section,
				  uint64_t reports)
{
	buf_printf(out, "<li><a href=\"#%s\">", fault_daily_name(section));
	if (reports)
		buf_printf(out, "%llu ", (unsigned long long)reports);
	buf_printf(out, "%s</a></li>\n", fault_daily_title(section));
}

static void daily_html_statistics(const struct fault_daily *daily, struct buf *out)
{
	buf_printf(out, "<ul>\n<li>%llu reports; the day before %llu</li>\n",
		   (unsigned long long)daily->total, (unsigned long long)daily->before);
	if (daily->group_count) {
		buf_append_text(out, "<li>received from ");
		daily_html_put_time(out, daily->first_us);
		buf_append_text(out, " to ");
		daily_html_put_time(out, daily->last_us);
		buf_printf(out, "</li>\n<li>%zu groups, %zu of them new</li>\n", daily->group_count,
			   daily->groups[FAULT_DAILY_NEW].unique);
	}
	if (daily->groups[FAULT_DAILY_NEW].unique)
		daily_html_put_anchor(out, FAULT_DAILY_NEW, 0);
	if (daily->longest.listed)
		daily_html_put_anchor(out, FAULT_DAILY_DURATIONS, 0);
	if (daily->most.listed)
		daily_html_put_anchor(out, FAULT_DAILY_STATEMENTS, 0);
	if (daily->timeouts.unique)
		daily_html_put_anchor(out, FAULT_DAILY_TIMEOUT_PAGES, 0);
	for (size_t s = FAULT_DAILY_EXCEPTIONS; s < FAULT_DAILY_SECTIONS; s++)
		if (daily->groups[s].reports)
			daily_html_put_anchor(out, (enum fault_daily_section)s,
					      daily->groups[s].reports);
	if (daily->rest)
		buf_printf(out, "<li>%llu reports that are in no group which is counted</li>\n",
			   (unsigned long long)daily->rest);
	buf_append_text(out, "</ul>\n");
}

static void daily_html_head(const struct fault_daily *daily, struct buf *out)
{
	buf_append_text(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">"
			     "\n<meta name=\"viewport\" content=\"width=device-width, "
			     "initial-scale=1\">\n<title>");
	daily_html_put_title(daily, out);
	buf_append_text(out, "</title>\n<style>\n");
	buf_append_text(out, daily_html_style);
	buf_append_text(out, "</style>\n</head>\n<body>\n<h1>");
	daily_html_put_title(daily, out);
	buf_append_text(out, "</h1>\n");
	if (daily->total || daily->before)
		daily_html_statistics(daily, out);
	if (!daily->total)
		buf_append_text(out, "<p>No fault reports were received.</p>\n");
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static void daily_html_put_statement(struct buf *out, const char *what,
				     const struct fault_statement *statement)
{
	if (!statement->count)
		return;
	buf_printf(out, "<p>%s %llu times, %.2f s: <code>", what,
		   (unsigned long long)statement->count, (double)statement->total_us / 1e6);
	daily_html_put(out, statement->text);
	buf_append_text(out, "</code></p>\n");
}

static void daily_html_top(const struct fault_daily *daily, struct buf *out,
			   enum fault_daily_section section, const struct fault_daily_top *top)
{
	buf_append_text(out, "<tr><td class=\"number\">");
	if (section == FAULT_DAILY_DURATIONS)
		buf_printf(out, "%.2f", (double)top->value / 1e6);
	else
		buf_printf(out, "%llu", (unsigned long long)top->value);
	buf_append_text(out, "</td><td>");
	daily_html_put_context(out, top->context);
	buf_append_text(out, "<br>");
	daily_html_put_id(daily, out, top->id);
	if (section == FAULT_DAILY_STATEMENTS)
		daily_html_put_statement(out, "repeated", &top->repeated);
	buf_append_text(out, "</td></tr>\n");
}

static void daily_html_tops(const struct fault_daily *daily, struct buf *out,
			    enum fault_daily_section section, const struct fault_daily_tops *tops)
{
	if (!tops->listed)
		return;
	daily_html_begin(out, section, false, tops->count);
	buf_printf(out, "</h2>\n<table>\n<tr><th class=\"number\">%s</th><th>page</th></tr>\n",
		   section == FAULT_DAILY_DURATIONS ? "seconds" : "statements");
	for (size_t i = 0; i < tops->count; i++)
		daily_html_top(daily, out, section, &tops->list[i]);
	buf_append_text(out, "</table>\n");
	if (tops->looked_at < tops->listed)
		buf_printf(out, "<p>Of the %zu reports of this list %zu were looked at.</p>\n",
			   tops->listed, tops->looked_at);
	if (tops->unread)
		buf_printf(out, "<p>%zu reports can be read no more.</p>\n", tops->unread);
	buf_append_text(out, "</section>\n");
}

static void daily_html_put_timeouts(struct buf *out, uint64_t hard, uint64_t soft)
{
	buf_printf(out, "<tr><td class=\"number\">%llu</td><td class=\"number\">%llu</td><td>",
		   (unsigned long long)hard, (unsigned long long)soft);
}

static void daily_html_timeout_pages(struct buf *out,
				     const struct fault_daily_timeout_pages *timeouts)
{
	if (!timeouts->unique)
		return;
	bool all = timeouts->count == timeouts->unique;
	daily_html_begin(out, FAULT_DAILY_TIMEOUT_PAGES, all, timeouts->count);
	if (!all)
		buf_printf(out, " (total of %zu unique items)", timeouts->unique);
	buf_append_text(out, "</h2>\n<table>\n<tr><th class=\"number\">hard</th>"
			     "<th class=\"number\">soft</th><th>page</th></tr>\n");
	for (size_t i = 0; i < timeouts->count; i++) {
		daily_html_put_timeouts(out, timeouts->list[i].hard, timeouts->list[i].soft);
		daily_html_put_context(out, timeouts->list[i].context);
		buf_append_text(out, "</td></tr>\n");
	}
	if (timeouts->hard_rest || timeouts->soft_rest) {
		daily_html_put_timeouts(out, timeouts->hard_rest, timeouts->soft_rest);
		buf_append_text(out, "<i>other pages</i></td></tr>\n");
	}
	buf_append_text(out, "</table>\n</section>\n");
}

/* ---- Groups ---------------------------------------------------------------------------------- */

static void daily_html_put_bug(struct buf *out, const struct fault_bug *bug)
{
	bool is_link = slice_starts_with(bug->bug, SLICE("https://")) ||
		       slice_starts_with(bug->bug, SLICE("http://"));
	buf_append_text(out, "<p>bug ");
	daily_html_put(out, bug->tracker);
	buf_append_text(out, ": ");
	if (is_link) {
		buf_append_text(out, "<a rel=\"noreferrer\" href=\"");
		html_put_text(out, bug->bug);
		buf_append_text(out, "\">");
	}
	daily_html_put(out, bug->bug);
	buf_append_text(out, is_link ? "</a></p>\n" : "</p>\n");
}

static void daily_html_put_said(const struct fault_daily *daily, struct buf *out,
				const struct fault_daily_group *group)
{
	const struct fault_said *said = group->said;
	buf_append_text(out, "<p>");
	daily_html_put_link(daily, out, "/oops/groups/", group->name);
	buf_printf(out, ", %s%s", fault_statuses[group->status], group->again ? " again" : "");
	if (said && said->assignee.len) {
		buf_append_text(out, ", of ");
		daily_html_put(out, said->assignee);
	}
	if (group->is_new)
		buf_append_text(out, ", <b class=\"new\">new</b></p>\n");
	else
		buf_printf(out, ", the day before %llu</p>\n", (unsigned long long)group->before);
	for (size_t i = 0; said && i < said->bug_count; i++)
		daily_html_put_bug(out, &said->bugs[i]);
}

static void daily_html_put_contexts(struct buf *out, const struct fault_daily_group *group)
{
	struct fault_daily_contexts contexts;
	fault_daily_contexts(group, FAULT_DAILY_CONTEXTS_MAX, &contexts);
	buf_append_text(out, "<ul>\n");
	for (size_t i = 0; i < contexts.count; i++) {
		buf_printf(out, "<li>%llu: ", (unsigned long long)contexts.list[i].count);
		daily_html_put_context(out, contexts.list[i].context);
		buf_append_text(out, "</li>\n");
	}
	if (contexts.rest)
		buf_printf(out, "<li>%llu: <i>other contexts</i></li>\n",
			   (unsigned long long)contexts.rest);
	buf_append_text(out, "</ul>\n");
}

static void daily_html_group(const struct fault_daily *daily, struct buf *out,
			     const struct fault_daily_group *group)
{
	const struct fault_tally *tally = group->tally;
	buf_printf(out, "<div class=\"group\"><div class=\"count\">%llu</div><div>\n<h3>",
		   (unsigned long long)tally->count);
	daily_html_put(out, tally->title.len ? tally->title : SLICE("(no title)"));
	buf_append_text(out, "</h3>\n");
	daily_html_put_said(daily, out, group);
	daily_html_put_statement(out, "statement", &group->statement);
	daily_html_put_contexts(out, group);
	buf_append_text(out, "<p>");
	daily_html_put_id(daily, out, tally->first.id);
	if (tally->count > 1) {
		buf_append_text(out, " ... ");
		daily_html_put_id(daily, out, tally->last.id);
	}
	buf_append_text(out, "</p>\n</div></div>\n");
}

static void daily_html_groups(const struct fault_daily *daily, struct buf *out,
			      enum fault_daily_section section)
{
	const struct fault_daily_groups *groups = &daily->groups[section];
	if (!groups->unique)
		return;
	bool all = groups->count == groups->unique;
	daily_html_begin(out, section, all, groups->count);
	if (!all)
		buf_printf(out, " (total of %zu unique items)", groups->unique);
	buf_append_text(out, "</h2>\n");
	for (size_t i = 0; i < groups->count; i++)
		daily_html_group(daily, out, groups->list[i]);
	if (!all)
		buf_printf(out, "<p>%zu other groups have %llu reports.</p>\n",
			   groups->unique - groups->count,
			   (unsigned long long)(groups->reports - groups->shown));
	buf_append_text(out, "</section>\n");
}

void fault_daily_put_html(const struct fault_daily *daily, struct buf *out)
{
	daily_html_head(daily, out);
	daily_html_groups(daily, out, FAULT_DAILY_NEW);
	daily_html_tops(daily, out, FAULT_DAILY_DURATIONS, &daily->longest);
	daily_html_tops(daily, out, FAULT_DAILY_STATEMENTS, &daily->most);
	daily_html_timeout_pages(out, &daily->timeouts);
	for (size_t s = FAULT_DAILY_EXCEPTIONS; s < FAULT_DAILY_SECTIONS; s++)
		daily_html_groups(daily, out, (enum fault_daily_section)s);
	buf_append_text(out, "</body>\n</html>\n");
}
