/* Statements of databases without what varies in them. */
#include "fault/group_private.h"

/* Lists of values are one, and so are lists of lists: in (?, ?) and values (?), (?). */
static void grouping_statement_put_placeholder(struct buf *to)
{
	size_t end = to->len;
	while (end && to->data[end - 1] == ' ')
		end--;
	if (end && to->data[end - 1] == ',') {
		size_t before = end - 1;
		while (before && to->data[before - 1] == ' ')
			before--;
		if (before && to->data[before - 1] == '?') {
			to->len = before;
			return;
		}
	}
	buf_append_char(to, '?');
}

/* `(?)` that follows `(?),` goes. */
static void grouping_statement_fold_row(struct buf *to)
{
	static const struct slice folds[] = {{"(?), (?)", 8}, {"(?),(?)", 7}};
	for (size_t i = 0; i < ARRAY_LEN(folds); i++)
		if (to->len >= folds[i].len &&
		    memcmp(to->data + to->len - folds[i].len, folds[i].data, folds[i].len) == 0)
			to->len -= folds[i].len - 3;
}

/* Behind a text of SQL, in which a doubled quote is no end. */
static size_t grouping_statement_sql_text_end(struct slice sql, size_t at)
{
	for (size_t i = at + 1; i < sql.len; i++) {
		if (sql.data[i] == '\\')
			i++;
		else if (sql.data[i] == '\'' && (i + 1 >= sql.len || sql.data[i + 1] != '\''))
			return i + 1;
		else if (sql.data[i] == '\'')
			i++;
	}
	return sql.len;
}

/* Behind a comment; `at`: there is none. */
static size_t grouping_statement_comment_end(struct slice sql, size_t at)
{
	bool line = grouping_at(sql, at, SLICE("--"));
	if (!line && !grouping_at(sql, at, SLICE("/*")))
		return at;
	for (size_t i = at + 2; i < sql.len; i++)
		if (line ? sql.data[i] == '\n' : sql.data[i - 1] == '*' && sql.data[i] == '/')
			return i + 1;
	return sql.len;
}

static size_t grouping_statement_name_end(struct slice sql, size_t at)
{
	while (at < sql.len && (grouping_is_word(sql.data[at]) || sql.data[at] == '.'))
		at++;
	return at;
}

/* Behind a parameter: %s, %(name)s, $1, :name, @p1; `at`: there is none. */
static size_t grouping_statement_parameter_end(struct slice sql, size_t at)
{
	char c = sql.data[at], next = at + 1 < sql.len ? sql.data[at + 1] : 0;
	bool before = at && (grouping_is_word(sql.data[at - 1]) || sql.data[at - 1] == ':');
	if (c == '?')
		return at + 1;
	if (c == '%' && next == 's')
		return at + 2;
	if (c == '%' && next == '(') {
		size_t end = grouping_find(sql, at, SLICE(")s"));
		return end < sql.len ? end + 2 : at;
	}
	if ((c == '$' || c == '@' || c == ':') && !before && grouping_is_word(next))
		return grouping_statement_name_end(sql, at + 1);
	return at;
}

static void grouping_statement_put_sql_name(struct slice name, struct buf *to)
{
	if (number_is_digit(name.data[0])) {
		grouping_statement_put_placeholder(to);
		return;
	}
	size_t from = to->len;
	grouping_name(name, to);
	for (size_t i = from; i < to->len; i++)
		if (to->data[i] >= 'A' && to->data[i] <= 'Z')
			to->data[i] |= 0x20;
}

static void grouping_statement_put_sql_byte(char c, struct buf *to)
{
	if (!grouping_is_blank(c))
		buf_append_char(to, c);
	else if (to->len && to->data[to->len - 1] != ' ')
		buf_append_char(to, ' ');
	if (c == ')')
		grouping_statement_fold_row(to);
}

/* A minus that belongs to a number, and not to a difference. */
static bool grouping_statement_is_sign(struct slice sql, size_t at, const struct buf *to)
{
	size_t end = to->len;
	while (end && to->data[end - 1] == ' ')
		end--;
	return sql.data[at] == '-' && at + 1 < sql.len && number_is_digit(sql.data[at + 1]) &&
	       end && memchr("(,=<>", to->data[end - 1], 5);
}

void grouping_statement(struct slice sql, struct buf *to)
{
	if (sql.len > GROUP_TEXT_MAX_BYTES)
		sql.len = GROUP_TEXT_MAX_BYTES;
	for (size_t at = 0, end; at < sql.len; at = end) {
		char c = sql.data[at];
		end = grouping_statement_comment_end(sql, at);
		if (end > at || grouping_statement_is_sign(sql, at, to)) {
			end = end > at ? end : at + 1;
			continue;
		}
		end = c == '\'' ? grouping_statement_sql_text_end(sql, at)
				: grouping_statement_parameter_end(sql, at);
		if (end > at) {
			grouping_statement_put_placeholder(to);
			continue;
		}
		end = grouping_is_word(c) ? grouping_statement_name_end(sql, at) : at + 1;
		if (grouping_is_word(c))
			grouping_statement_put_sql_name(grouping_part(sql, at, end), to);
		else
			grouping_statement_put_sql_byte(c, to);
	}
	while (to->len && (to->data[to->len - 1] == ' ' || to->data[to->len - 1] == ';'))
		to->len--;
}
