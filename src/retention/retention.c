#include "retention/retention.h"

#include "base/hash.h"
#include "base/mem.h"
#include "conf/conf.h"
#include "model/series.h"
#include "retention/pattern.h"
#include "wire/timetext.h"

enum { MEMO_ENTRIES = 1 << 12, MATCH_MAX_BYTES = 16 << 10 };

const struct retention_rules retention_for_ever;

/* ---- Patterns -------------------------------------------------------------------------------- */

/* If a star has taken too little, the last star takes a byte more. */
bool retention_matches(struct slice pattern, struct slice text)
{
	size_t p = 0, t = 0, star = SIZE_MAX, behind = 0;
	while (t < text.len) {
		if (p < pattern.len && pattern.data[p] == '*') {
			star = p++;
			behind = t;
		} else if (p < pattern.len && pattern.data[p] == text.data[t]) {
			p++;
			t++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			t = ++behind;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.data[p] == '*')
		p++;
	return p == pattern.len;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static size_t retention_last_index(struct slice text, char byte)
{
	const char *at = text.len ? memrchr(text.data, byte, text.len) : NULL;
	return at ? (size_t)(at - text.data) : SIZE_MAX;
}

static int retention_refuse_form(struct errbuf *e)
{
	return errbuf_set(e, ERR_INVALID,
			  "it is not TENANT/METRIC/GRANULARITY:DURATION, such as acme/*/raw:7d");
}

/* Names of metrics may hold a `/` and a `:`, the other parts may not. */
static int retention_split(struct slice text, struct slice *tenant, struct slice *metric,
			   struct slice *granularity, struct slice *duration, struct errbuf *e)
{
	size_t colon = retention_last_index(text, ':');
	if (colon == SIZE_MAX)
		return retention_refuse_form(e);
	*duration = (struct slice){text.data + colon + 1, text.len - colon - 1};
	size_t last = retention_last_index((struct slice){text.data, colon}, '/');
	const char *first = memchr(text.data, '/', colon);
	if (!first || first == text.data + last)
		return retention_refuse_form(e);
	*tenant = (struct slice){text.data, (size_t)(first - text.data)};
	*metric = (struct slice){first + 1, (size_t)(text.data + last - first - 1)};
	*granularity = (struct slice){text.data + last + 1, colon - last - 1};
	return 0;
}

int retention_check_tenant(struct slice pattern, struct errbuf *e)
{
	char name[TENANT_MAX_BYTES];
	if (pattern.len && pattern.len <= sizeof(name)) {
		for (size_t i = 0; i < pattern.len; i++)
			name[i] = pattern.data[i] == '*' ? 'x' : pattern.data[i];
		if (tenant_valid((struct slice){name, pattern.len}))
			return 0;
	}
	return errbuf_set(e, ERR_INVALID,
			  "the tenant \"" SHOWN "\" is not 1 to %d of A-Z a-z 0-9 _ . - and *",
			  SHOWN_OF(pattern), TENANT_MAX_BYTES);
}

static void retention_list_granularities(const struct granularities *granularities, char *to,
					 size_t room)
{
	size_t len = (size_t)snprintf(to, room, "raw");
	for (size_t i = 0; i < granularities->count; i++) {
		char width[GRANULARITY_WIDTH_MAX_BYTES];
		int width_len =
			(int)granularity_width_print(width, granularities->list[i].width_ms);
		len += (size_t)snprintf(to + len, room - len, ", %.*s", width_len, width);
	}
}

static int retention_read_granularity(struct slice text, const struct granularities *granularities,
				      int *granularity, struct errbuf *e)
{
	char names[(GRANULARITIES_MAX + 1) * (GRANULARITY_WIDTH_MAX_BYTES + 2)];
	int64_t width_ms;
	struct errbuf why;
	*granularity = slice_equal(text, SLICE("*")) ? RETENTION_ALL : RETENTION_RAW;
	if (*granularity == RETENTION_ALL || slice_equal(text, SLICE("raw")))
		return 0;
	const struct granularity *found = NULL;
	if (granularity_width_parse(text, &width_ms, &why) == 0)
		found = granularity_find(granularities, width_ms);
	if (found) {
		*granularity = (int)(found - granularities->list);
		return 0;
	}
	retention_list_granularities(granularities, names, sizeof(names));
	return errbuf_set(e, ERR_INVALID,
			  "there is no granularity \"" SHOWN "\": it is one of %s, or * for all",
			  SHOWN_OF(text), names);
}

int retention_read_duration(struct slice text, int64_t *keep_ms, struct errbuf *e)
{
	*keep_ms = 0;
	if (slice_equal(text, SLICE("0")))
		return 0;
	int err = duration_parse(text, keep_ms, e);
	if (err)
		return err;
	if (*keep_ms == 0)
		return errbuf_set(e, ERR_INVALID, "\"" SHOWN "\" is no time; for ever is 0",
				  SHOWN_OF(text));
	if (*keep_ms > RETENTION_MAX_MS)
		return errbuf_set(e, ERR_INVALID,
				  "\"" SHOWN "\" is above the maximum of 36500d; for ever is 0",
				  SHOWN_OF(text));
	return 0;
}

static int retention_read_rule(struct slice text, const struct granularities *granularities,
			       struct retention_rule *rule, struct errbuf *e)
{
	struct slice granularity = {0}, duration = {0};
	*rule = (struct retention_rule){.text = text};
	int err = retention_split(text, &rule->tenant, &rule->metric, &granularity, &duration, e);
	err = err ? err : retention_check_tenant(rule->tenant, e);
	err = err ? err : metric_check(rule->metric, e);
	err = err ? err
		  : retention_read_granularity(granularity, granularities, &rule->granularity, e);
	return err ? err : retention_read_duration(duration, &rule->keep_ms, e);
}

/* ---- Checking -------------------------------------------------------------------------------- */

static bool retention_is_about(const struct retention_rule *rule, int granularity)
{
	return rule->granularity == granularity || rule->granularity == RETENTION_ALL;
}

static int retention_check_raw(int64_t keep_ms, int64_t least_ms, struct errbuf *e)
{
	char least[DURATION_PRINT_MAX_BYTES];
	if (!keep_ms || keep_ms >= least_ms)
		return 0;
	return errbuf_set(e, ERR_INVALID,
			  "raw samples have to be kept for %s at least: a slot and twice the "
			  "quiet time, or they are gone before they are rolled up",
			  duration_print(least, least_ms));
}

static int retention_check_length(const struct retention_rule *rule,
				  const struct granularities *granularities, int64_t raw_least_ms,
				  struct errbuf *e)
{
	char slot[GRANULARITY_WIDTH_MAX_BYTES];
	int err = retention_is_about(rule, RETENTION_RAW)
			  ? retention_check_raw(rule->keep_ms, raw_least_ms, e)
			  : 0;
	if (err || !rule->keep_ms)
		return err;
	if (rule->granularity == RETENTION_RAW || !granularities->count ||
	    rule->keep_ms >= granularities->slot_ms)
		return 0;
	return errbuf_set(e, ERR_INVALID, "nothing is kept for less than a slot of %.*s",
			  (int)granularity_width_print(slot, granularities->slot_ms), slot);
}

/* The first rule that takes all of this granularity before the last rule can: a pattern that
 * matches another one matches whatever that one does, since a star of it is a byte that only a star
 * can take. */
static const struct retention_rule *retention_taken_by(const struct retention_rules *rules,
						       int granularity)
{
	const struct retention_rule *last = &rules->list[rules->count - 1];
	for (const struct retention_rule *rule = rules->list; rule < last; rule++) {
		if (retention_is_about(rule, granularity) &&
		    retention_matches(rule->tenant, last->tenant) &&
		    retention_matches(rule->metric, last->metric))
			return rule;
	}
	return NULL;
}

static int retention_check_reached(const struct retention_rules *rules,
				   const struct granularities *granularities, struct errbuf *e)
{
	const struct retention_rule *taker = NULL, *last = &rules->list[rules->count - 1];
	for (int granularity = RETENTION_RAW; granularity < (int)granularities->count;
	     granularity++) {
		if (!retention_is_about(last, granularity))
			continue;
		taker = retention_taken_by(rules, granularity);
		if (!taker)
			return 0;
	}
	return errbuf_set(e, ERR_INVALID,
			  "it is never reached: \"" SHOWN "\" before it takes all that it is about",
			  SHOWN_OF(taker->text));
}

static int retention_set_level(struct retention_rules *rules, struct retention_rule *rule,
			       struct errbuf *e)
{
	if (!retention_is_about(rule, RETENTION_RAW))
		return 0;
	for (uint8_t level = 1; level <= rules->last_level; level++) {
		if (rules->levels_ms[level] == rule->keep_ms) {
			rule->level = level;
			return 0;
		}
	}
	if (rules->last_level == RETENTION_LEVELS_MAX - 1)
		return errbuf_set(e, ERR_INVALID,
				  "there are more than %d different retentions of raw samples",
				  RETENTION_LEVELS_MAX - 1);
	rule->level = ++rules->last_level;
	rules->levels_ms[rule->level] = rule->keep_ms;
	return 0;
}

static int retention_add_rule(struct retention_rules *rules, struct slice text,
			      const struct granularities *granularities, int64_t raw_least_ms,
			      struct errbuf *e)
{
	struct retention_rule *rule = &rules->list[rules->count];
	int err = retention_read_rule(text, granularities, rule, e);
	err = err ? err : retention_check_length(rule, granularities, raw_least_ms, e);
	if (err)
		return err;
	rules->count++;
	err = retention_check_reached(rules, granularities, e);
	return err ? err : retention_set_level(rules, rule, e);
}

int retention_parse(const char *const *items, size_t count,
		    const struct granularities *granularities, int64_t raw_least_ms,
		    struct retention_rules *rules, struct errbuf *e)
{
	*rules = retention_for_ever;
	if (count > RETENTION_RULES_MAX)
		return errbuf_set(e, ERR_INVALID, "%zu rules are more than %d", count,
				  RETENTION_RULES_MAX);
	for (size_t i = 0; i < count; i++) {
		struct slice text = slice_of(items[i]);
		int err = retention_add_rule(rules, text, granularities, raw_least_ms, e);
		rules->count = err ? i : i + 1;
		if (err)
			return errbuf_prefix(e, err, "\"" SHOWN "\"", SHOWN_OF(text));
	}
	return 0;
}

int retention_read(const struct conf *conf, const struct granularities *granularities,
		   struct retention_rules *rules, struct errbuf *e)
{
	const struct conf_list *items = &conf->retention_rules;
	int64_t raw_least_ms =
		granularities->count ? conf->rollup_slot_ms + 2 * conf->rollup_quiet_ms : 0;
	if (retention_parse(items->items, items->count, granularities, raw_least_ms, rules, e))
		return conf_refuse_item(conf, CONF_ID_retention_rules, rules->count, e);
	rules->levels_ms[0] = conf->retention_raw_ms;
	return retention_check_raw(conf->retention_raw_ms, raw_least_ms, e)
		       ? conf_refuse(conf, CONF_ID_retention_raw_ms, e)
		       : 0;
}

/* ---- Copying --------------------------------------------------------------------------------- */

static struct slice retention_moved(struct slice part, const char *from, const char *to)
{
	return (struct slice){to + (part.data - from), part.len};
}

struct retention_rules *retention_copy(const struct retention_rules *rules)
{
	size_t bytes = sizeof(*rules);
	for (size_t i = 0; i < rules->count; i++)
		bytes += rules->list[i].text.len;
	struct retention_rules *copy = mem_alloc(bytes);
	char *texts = (char *)(copy + 1);
	*copy = *rules;
	for (size_t i = 0; i < rules->count; i++) {
		struct retention_rule *rule = &copy->list[i];
		const char *from = rule->text.data;
		memcpy(texts, from, rule->text.len);
		rule->text = retention_moved(rule->text, from, texts);
		rule->tenant = retention_moved(rule->tenant, from, texts);
		rule->metric = retention_moved(rule->metric, from, texts);
		texts += rule->text.len;
	}
	return copy;
}

/* ---- Matching -------------------------------------------------------------------------------- */

static void retention_take(uint8_t *fit, size_t rule)
{
	if (!*fit)
		*fit = (uint8_t)(rule + 1);
}

struct retention_fit retention_match(const struct retention_rules *rules, struct slice tenant,
				     struct slice metric)
{
	struct retention_fit fit = {0};
	for (size_t i = 0; i < rules->count; i++) {
		const struct retention_rule *rule = &rules->list[i];
		if (!retention_matches(rule->tenant, tenant) ||
		    !retention_matches(rule->metric, metric))
			continue;
		if (retention_is_about(rule, RETENTION_RAW))
			retention_take(&fit.raw, i);
		for (int g = 0; g < GRANULARITIES_MAX; g++) {
			if (retention_is_about(rule, g))
				retention_take(&fit.granularities[g], i);
		}
	}
	return fit;
}

int64_t retention_longest_raw_ms(const struct retention_rules *rules)
{
	int64_t ms = rules->levels_ms[0];
	for (size_t level = 1; level <= rules->last_level; level++)
		ms = retention_longer(ms, rules->levels_ms[level]);
	return ms;
}

int64_t retention_shortest_raw_ms(const struct retention_rules *rules)
{
	int64_t ms = rules->levels_ms[0];
	for (size_t level = 1; level <= rules->last_level; level++)
		ms = retention_shorter(ms, rules->levels_ms[level]);
	return ms;
}

/* Samples that were there when the retention was lengthened still leave as before. */
int64_t retention_whole_ms(const struct retention_rules *rules, uint8_t level, int64_t now_ms)
{
	const struct retention_lengthened *raise = &rules->raise;
	int64_t keep_ms = rules->levels_ms[level], since_ms = now_ms - raise->until_ms;
	if (!raise->until_ms || !(raise->levels >> level & 1))
		return keep_ms;
	return retention_shorter(keep_ms, since_ms > raise->kept_ms ? since_ms : raise->kept_ms);
}

int64_t retention_longest_whole_ms(const struct retention_rules *rules, int64_t now_ms)
{
	int64_t ms = retention_whole_ms(rules, 0, now_ms);
	for (uint8_t level = 1; level <= rules->last_level; level++)
		ms = retention_longer(ms, retention_whole_ms(rules, level, now_ms));
	return ms;
}

int64_t retention_shortest_whole_ms(const struct retention_rules *rules, int64_t now_ms)
{
	int64_t ms = retention_whole_ms(rules, 0, now_ms);
	for (uint8_t level = 1; level <= rules->last_level; level++)
		ms = retention_shorter(ms, retention_whole_ms(rules, level, now_ms));
	return ms;
}

int64_t retention_longest_ms(const struct retention_rules *rules,
			     const struct granularities *granularities)
{
	int64_t ms = granularities->count ? granularities->list[0].retention_ms : 0;
	for (size_t g = 1; g < granularities->count; g++)
		ms = retention_longer(ms, granularities->list[g].retention_ms);
	for (size_t i = 0; i < rules->count; i++) {
		if (rules->list[i].granularity != RETENTION_RAW)
			ms = retention_longer(ms, rules->list[i].keep_ms);
	}
	return ms;
}

int64_t retention_longest_of_ms(const struct retention_rules *rules,
				const struct retention_fit *fit,
				const struct granularities *granularities)
{
	int64_t ms = 1; /* less than anything is kept */
	for (size_t g = 0; g < granularities->count; g++)
		ms = retention_longer(ms, retention_keep_ms(rules, fit->granularities[g],
							    granularities->list[g].retention_ms));
	return ms;
}

/* ---- Remembering ----------------------------------------------------------------------------- */

/* By a hash of 128 bits of tenant and metric, or of tenant and the metric as a series-set has it;
 * another one takes its place. */
struct retention_known {
	struct hash128 key;
	struct retention_fit fit;
	bool used;
};

void retention_memo_release(struct retention_memo *memo)
{
	mem_free(memo->known);
	memo->known = NULL;
}

/* The place of the key; *known: its fit is there. What other rules said is forgotten. */
static struct retention_known *retention_look_up(const struct retention_rules *rules,
						 struct retention_memo *memo, struct slice tenant,
						 struct slice metric, bool encoded, bool *known)
{
	if (memo->rules != rules)
		retention_memo_release(memo);
	memo->rules = rules;
	if (!memo->known)
		memo->known = mem_zalloc(MEMO_ENTRIES * sizeof(*memo->known));
	struct hash128 of_tenant = hash128(tenant.data, tenant.len, encoded);
	struct hash128 key = hash128(metric.data, metric.len, of_tenant.low);
	struct retention_known *place = &memo->known[key.low % MEMO_ENTRIES];
	*known = place->used && place->key.low == key.low && place->key.high == key.high;
	place->key = key;
	place->used = true;
	return place;
}

struct retention_fit retention_find(const struct retention_rules *rules,
				    struct retention_memo *memo, struct slice tenant,
				    struct slice metric)
{
	bool known;
	if (!rules->count)
		return (struct retention_fit){0};
	struct retention_known *place =
		retention_look_up(rules, memo, tenant, metric, false, &known);
	if (!known)
		place->fit = retention_match(rules, tenant, metric);
	return place->fit;
}

static struct retention_fit retention_match_encoded(const struct retention_rules *rules,
						    struct slice tenant, struct slice encoded)
{
	struct retention_fit fit = {0};
	struct arena arena;
	struct slice metric;
	struct tags tags;
	arena_init(&arena, MATCH_MAX_BYTES);
	if (series_set_decode((struct series_set){encoded, {0}}, &arena, &metric, &tags) == 0)
		fit = retention_match(rules, tenant, metric);
	arena_release(&arena);
	return fit;
}

struct retention_fit retention_find_encoded(const struct retention_rules *rules,
					    struct retention_memo *memo, struct slice tenant,
					    struct slice metric)
{
	bool known;
	if (!rules->count)
		return (struct retention_fit){0};
	struct retention_known *place =
		retention_look_up(rules, memo, tenant, metric, true, &known);
	if (!known)
		place->fit = retention_match_encoded(rules, tenant, metric);
	return place->fit;
}
