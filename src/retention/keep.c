#include "retention/keep.h"

#include "retention/pattern.h"

static int keep_refuse_form(const char *what, struct errbuf *e)
{
	return errbuf_set(e, ERR_INVALID, "it is not TENANT/%s:DURATION, such as acme/*:7d", what);
}

/* Names may hold a `/` and a `:`. */
static int keep_rule_parse(struct slice text, const char *what, struct keep_rule *rule,
			   struct errbuf *e)
{
	const char *slash = text.len ? memchr(text.data, '/', text.len) : NULL;
	const char *colon = text.len ? memrchr(text.data, ':', text.len) : NULL;
	if (!slash || !colon || colon < slash + 2)
		return keep_refuse_form(what, e);
	rule->tenant = (struct slice){text.data, (size_t)(slash - text.data)};
	rule->name = (struct slice){slash + 1, (size_t)(colon - slash - 1)};
	const struct slice duration = {colon + 1, text.len - (size_t)(colon + 1 - text.data)};
	int err = retention_check_tenant(rule->tenant, e);
	return err ? err : retention_read_duration(duration, &rule->keep_ms, e);
}

/* As in retention.c: a pattern that matches another one matches whatever that one does. */
static bool keep_is_reached(const struct keep_rules *rules, const struct keep_rule *last)
{
	for (size_t i = 0; i < rules->count; i++)
		if (retention_matches(rules->list[i].tenant, last->tenant) &&
		    retention_matches(rules->list[i].name, last->name))
			return false;
	return true;
}

int keep_rules_parse(const char *const *items, size_t count, const char *what,
		     struct keep_rules *rules, struct errbuf *e)
{
	rules->count = 0;
	if (count > KEEP_RULES_MAX)
		return errbuf_set(e, ERR_INVALID, "%zu rules are more than %d", count,
				  KEEP_RULES_MAX);
	for (size_t i = 0; i < count; i++) {
		struct slice text = slice_of(items[i]);
		struct keep_rule *rule = &rules->list[i];
		int err = keep_rule_parse(text, what, rule, e);
		if (!err && !keep_is_reached(rules, rule))
			err = errbuf_set(e, ERR_INVALID,
					 "it is never reached: a rule before it takes all that it "
					 "is about");
		if (err)
			return errbuf_prefix(e, err, "\"" SHOWN "\"", SHOWN_OF(text));
		rules->count++;
	}
	return 0;
}

int64_t keep_rules_ms(const struct keep_rules *rules, struct slice tenant, struct slice name)
{
	for (size_t i = 0; i < rules->count; i++)
		if (retention_matches(rules->list[i].tenant, tenant) &&
		    retention_matches(rules->list[i].name, name))
			return rules->list[i].keep_ms;
	return rules->preset_ms;
}
