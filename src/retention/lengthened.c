#include "retention/lengthened.h"

#include "base/hash.h"

/* ---- What was raised ------------------------------------------------------------------------- */

static bool lengthened_is_raw(const struct retention_rule *rule)
{
	return rule->granularity == RETENTION_RAW || rule->granularity == RETENTION_ALL;
}

static struct lengthened_cell lengthened_kept_of(const struct retention_rules *rules)
{
	struct lengthened_cell kept = {.preset_ms = rules->levels_ms[0]};
	for (size_t i = 0; i < rules->count; i++) {
		const struct retention_rule *rule = &rules->list[i];
		if (!lengthened_is_raw(rule))
			continue;
		uint64_t tenant = hash64(rule->tenant.data, rule->tenant.len, 0);
		kept.list[kept.count].hash = hash64(rule->metric.data, rule->metric.len, tenant);
		kept.list[kept.count++].ms = rule->keep_ms;
	}
	return kept;
}

/* For how long samples of before a raise count as kept by now. */
static int64_t lengthened_left_ms(const struct lengthened_cell *kept, int64_t now_ms)
{
	int64_t since_ms = now_ms - kept->until_ms;
	return since_ms > kept->kept_ms ? since_ms : kept->kept_ms;
}

/* Of the preset, of a rule or of several rules: what was configured, and for how long samples were
 * there, of which an earlier raise may have less. */
struct lengthened_before {
	int64_t ms, held_ms;
};

static struct lengthened_before lengthened_before_of(const struct lengthened_cell *kept, int64_t ms,
						     bool raised, int64_t now_ms)
{
	bool less = raised && kept->until_ms;
	return (struct lengthened_before){
		ms, less ? retention_shorter(ms, lengthened_left_ms(kept, now_ms)) : ms};
}

static struct lengthened_before lengthened_rule_before(const struct lengthened_cell *kept, size_t i,
						       int64_t now_ms)
{
	return lengthened_before_of(kept, kept->list[i].ms, kept->rules >> i & 1, now_ms);
}

/* It is not known which rule held for a series from `same` on: the shortest is taken for all. */
static struct lengthened_before lengthened_least_before(const struct lengthened_cell *kept,
							size_t same, int64_t now_ms)
{
	struct lengthened_before least =
		lengthened_before_of(kept, kept->preset_ms, kept->preset, now_ms);
	for (size_t i = same; i < kept->count; i++) {
		struct lengthened_before rule = lengthened_rule_before(kept, i, now_ms);
		least.ms = retention_shorter(least.ms, rule.ms);
		least.held_ms = retention_shorter(least.held_ms, rule.held_ms);
	}
	return least;
}

/* Whether what is kept for `ms` now was kept for less. */
static bool lengthened_add_raised(struct lengthened_cell *now, int64_t ms,
				  struct lengthened_before before)
{
	if (!retention_is_longer(ms, before.ms))
		return false;
	now->kept_ms = retention_shorter(now->kept_ms, before.held_ms);
	return true;
}

/* Rules that stand in both in the same places, before any other. */
static size_t lengthened_same_rules(const struct lengthened_cell *a,
				    const struct lengthened_cell *b)
{
	size_t i = 0;
	while (i < a->count && i < b->count && a->list[i].hash == b->list[i].hash)
		i++;
	return i == a->count && i == b->count ? RETENTION_RULES_MAX : i;
}

static void lengthened_find_raised(const struct lengthened_cell *before,
				   struct lengthened_cell *now, int64_t now_ms, int64_t ahead_ms)
{
	size_t same = lengthened_same_rules(before, now);
	struct lengthened_before least = lengthened_least_before(before, same, now_ms);
	for (size_t i = 0; i < now->count; i++) {
		struct lengthened_before rule =
			i < same ? lengthened_rule_before(before, i, now_ms) : least;
		now->rules |= (uint64_t)lengthened_add_raised(now, now->list[i].ms, rule) << i;
	}
	now->preset = lengthened_add_raised(now, now->preset_ms, least);
	if (now->preset || now->rules)
		now->until_ms = now_ms + ahead_ms;
}

/* Whether there is anything that the raise before says otherwise than the configuration. */
static bool lengthened_goes_on(const struct lengthened_cell *before,
			       const struct lengthened_cell *now, int64_t now_ms)
{
	int64_t since_ms = now_ms - before->until_ms;
	bool on = since_ms < before->kept_ms || retention_is_longer(now->preset_ms, since_ms);
	for (size_t i = 0; i < now->count; i++)
		on |= retention_is_longer(now->list[i].ms, since_ms);
	return before->until_ms && on;
}

/* An earlier lengthening goes on, by itself or as part of this one. It is taken to concern all
 * rules that are others now. */
static void lengthened_go_on(const struct lengthened_cell *before, struct lengthened_cell *now,
			     int64_t now_ms)
{
	size_t same = lengthened_same_rules(before, now);
	bool others = same < RETENTION_RULES_MAX;
	now->kept_ms = now->until_ms
			       ? retention_shorter(now->kept_ms, lengthened_left_ms(before, now_ms))
			       : before->kept_ms;
	now->until_ms = now->until_ms ? now->until_ms : before->until_ms;
	now->preset |= before->preset || others;
	now->rules |= before->rules | (others ? UINT64_MAX << same : 0);
}

static void lengthened_set_raise(const struct lengthened_cell *now, struct retention_rules *rules)
{
	size_t raw = 0;
	rules->raise = (struct retention_lengthened){now->until_ms, now->kept_ms, now->preset};
	for (size_t i = 0; i < rules->count; i++) {
		if (lengthened_is_raw(&rules->list[i]) && now->rules >> raw++ & 1)
			rules->raise.levels |= 1u << rules->list[i].level;
	}
}

int retention_lengthened_settle(struct slice *value, struct retention_rules *rules, int64_t now_ms,
				int64_t ahead_ms, char text[LENGTHENED_CELL_MAX_BYTES])
{
	struct lengthened_cell now = lengthened_kept_of(rules), before = now;
	int err = value->len ? lengthened_cell_decode(*value, &before) : 0;
	if (err)
		return err;
	lengthened_find_raised(&before, &now, now_ms, ahead_ms);
	if (lengthened_goes_on(&before, &now, now_ms))
		lengthened_go_on(&before, &now, now_ms);
	lengthened_set_raise(&now, rules);
	*value = lengthened_cell_encode(&now, text);
	return 0;
}
