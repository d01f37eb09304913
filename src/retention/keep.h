/* How long what is kept that is no metric: rules of the same grammar, but without a granularity,
 * TENANT/NAME:DURATION, such as `acme/debug*:2d`. A `*` stands for any text, the duration 0 is for
 * ever, and the first rule that fits holds; if none fits, the preset does.
 *
 * Only read once they are made: any thread. */
#ifndef RETENTION_KEEP_H
#define RETENTION_KEEP_H

#include "base/base.h"

enum { KEEP_RULES_MAX = 64 };

struct keep_rules {
	int64_t preset_ms; /* the caller's to set; 0: for ever */
	size_t count;
	struct keep_rule {
		struct slice tenant, name; /* patterns; the caller's texts */
		int64_t keep_ms;
	} list[KEEP_RULES_MAX];
};

/* `what` the names are, for sentences. ERR_INVALID with a sentence that names the rule: it is none,
 * or is never reached. Then rules->count is its place. */
int keep_rules_parse(const char *const *items, size_t count, const char *what,
		     struct keep_rules *rules, struct errbuf *e) MUST_CHECK;

/* 0: for ever. */
int64_t keep_rules_ms(const struct keep_rules *rules, struct slice tenant, struct slice name);

#endif
