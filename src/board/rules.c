#include "board/rules.h"

#include <math.h>

#include "base/buf.h"
#include "base/visible.h"
#include "wire/number.h"
#include "wire/timetext.h"

enum { BOARD_DESCRIPTION_MAX_BYTES = 256 };

static bool board_text_is_name(struct slice text)
{
	struct buf shown;
	buf_init(&shown, VISIBLE_MAX_BYTES * (text.len + 1));
	visible_append(&shown, text);
	bool same = slice_equal(buf_slice(&shown), text);
	buf_release(&shown);
	return same;
}

static bool board_text_is_variable(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		char c = ascii_lower(text.data[i]);
		if (!(c >= 'a' && c <= 'z') && c != '_' && !(i && number_is_digit(c)))
			return false;
	}
	return true;
}

static bool board_text_fits(const struct board_rule *rule, struct slice text)
{
	int64_t ms;
	struct errbuf e;
	switch (rule->type) {
	case BOARD_WORD:
		for (const char *const *word = rule->words; *word; word++) {
			if (slice_equal(text, slice_of(*word)))
				return true;
		}
		return false;
	case BOARD_TIME:
		return time_parse(text, 0, &ms, &e) == 0;
	case BOARD_DURATION:
		return duration_parse(text, &ms, &e) == 0 && (double)ms >= rule->least &&
		       (double)ms <= rule->most;
	default:
		return (double)text.len >= rule->least && (double)text.len <= rule->most &&
		       (rule->type != BOARD_NAME || board_text_is_name(text)) &&
		       (rule->type != BOARD_VARIABLE || board_text_is_variable(text));
	}
}

static bool board_number_fits(const struct board_rule *rule, struct value value)
{
	double number = value_as_f64(value);
	return number >= rule->least && number <= rule->most &&
	       (rule->type != BOARD_WHOLE || number == floor(number));
}

static bool board_list_has_only(const struct json *list, enum json_type type)
{
	for (const struct json *item = list->first; item; item = item->next) {
		if (item->type != type)
			return false;
	}
	return true;
}

static bool board_query_fits(const struct json *query)
{
	for (const struct json *one = query->first; one; one = one->next) {
		if (one->type != JSON_T_STRING && one->type != JSON_T_NUMBER &&
		    !(one->type == JSON_T_ARRAY && board_list_has_only(one, JSON_T_STRING)))
			return false;
	}
	return true;
}

static bool board_value_fits(const struct board_rule *rule, const struct json *value)
{
	switch (rule->type) {
	case BOARD_FLAG:
		return value->type == JSON_T_BOOL;
	case BOARD_NUMBER:
	case BOARD_WHOLE:
		return value->type == JSON_T_NUMBER && board_number_fits(rule, value->number);
	case BOARD_OBJECT:
		return value->type == JSON_T_OBJECT;
	case BOARD_QUERY:
		return value->type == JSON_T_OBJECT && board_query_fits(value);
	case BOARD_LIST:
	case BOARD_TEXTS:
	case BOARD_OBJECTS:
		return value->type == JSON_T_ARRAY && (double)value->count <= rule->most &&
		       (rule->type != BOARD_TEXTS || board_list_has_only(value, JSON_T_STRING)) &&
		       (rule->type != BOARD_OBJECTS || board_list_has_only(value, JSON_T_OBJECT));
	default:
		return value->type == JSON_T_STRING && board_text_fits(rule, value->text);
	}
}

static void board_rule_put_words(const struct board_rule *rule, struct buf *out)
{
	for (const char *const *word = rule->words; *word; word++)
		buf_printf(out, "%s\"%s\"", word == rule->words ? "one of " : ", ", *word);
}

static void board_rule_describe(const struct board_rule *rule, struct buf *out)
{
	char from[DURATION_PRINT_MAX_BYTES], to[DURATION_PRINT_MAX_BYTES];
	double least = rule->least, most = rule->most;
	switch (rule->type) {
	case BOARD_NAME:
		buf_printf(out, "a text of %.0f to %.0f bytes without control characters", least,
			   most);
		break;
	case BOARD_TEXT:
		buf_printf(out, "a text of %.0f to %.0f bytes", least, most);
		break;
	case BOARD_WORD:
		board_rule_put_words(rule, out);
		break;
	case BOARD_VARIABLE:
		buf_printf(out, "%.0f to %.0f letters, digits and _ without a digit in front",
			   least, most);
		break;
	case BOARD_FLAG:
		buf_append_text(out, "true or false");
		break;
	case BOARD_NUMBER:
	case BOARD_WHOLE:
		buf_printf(out, "a %snumber from %g to %g",
			   rule->type == BOARD_WHOLE ? "whole " : "", least, most);
		break;
	case BOARD_TIME:
		buf_append_text(out, "a time such as \"2020-08-24T16:34:05Z\" or \"1h-ago\"");
		break;
	case BOARD_DURATION:
		buf_printf(out, "a duration from \"%s\" to \"%s\"",
			   duration_print(from, (int64_t)least), duration_print(to, (int64_t)most));
		break;
	case BOARD_LIST:
	case BOARD_TEXTS:
	case BOARD_OBJECTS:
		buf_printf(out, "a list of at most %.0f %s", most,
			   rule->type == BOARD_LIST    ? "values"
			   : rule->type == BOARD_TEXTS ? "texts"
						       : "objects");
		break;
	case BOARD_OBJECT:
		buf_append_text(out, "an object");
		break;
	case BOARD_QUERY:
		buf_append_text(out, "an object of texts, numbers and lists of texts");
		break;
	}
}

static int board_rule_refuse(const struct board_rule *rule, bool is_missing, struct errbuf *e)
{
	struct buf description;
	buf_init(&description, BOARD_DESCRIPTION_MAX_BYTES);
	board_rule_describe(rule, &description);
	int err =
		errbuf_set(e, ERR_INVALID, "%s is %s %.*s", rule->name,
			   is_missing ? "missing:" : "not", (int)description.len, description.data);
	buf_release(&description);
	return err;
}

static int board_rule_check_within(const struct board_rule *rule, const struct json *value,
				   struct errbuf *e)
{
	size_t place = 0;
	if (!rule->within)
		return 0;
	if (rule->type != BOARD_OBJECTS) {
		int err = board_rules_check(rule->within, value, e);
		return err ? errbuf_prefix(e, err, "%s", rule->name) : 0;
	}
	for (const struct json *item = value->first; item; item = item->next, place++) {
		if (board_rules_check(rule->within, item, e))
			return errbuf_prefix(e, ERR_INVALID, "%s[%zu]", rule->name, place);
	}
	return 0;
}

int board_rules_check(const struct board_rule *rules, const struct json *object, struct errbuf *e)
{
	int err = 0;
	for (const struct board_rule *rule = rules; rule->name && !err; rule++) {
		const struct json *value = json_member(object, rule->name);
		if (value && board_value_fits(rule, value))
			err = board_rule_check_within(rule, value, e);
		else if (value || rule->is_needed)
			err = board_rule_refuse(rule, !value, e);
	}
	return err;
}
