#include "rollup/rebuild.h"

#include "rollup/backfill.h"
#include "wire/timetext.h"

/* Earlier slots have lost raw data, or will have before they are rolled up. */
static int64_t rebuild_first_slot_ms(const struct rollup_site *site)
{
	int64_t first_ms = rollup_site_open_from_ms(site, rollup_site_longest_ms(site));
	const struct late_samples *late = &rollup_site_rules(site)->late;
	int64_t first_late_ms = rollup_site_open_from_ms(site, late->kept_ms);
	return late->after_ms && first_late_ms < first_ms ? first_late_ms : first_ms;
}

int rollup_rebuild_check(const struct rollup_site *site, struct rollup_rebuild *rebuild,
			 struct errbuf *e)
{
	int64_t slot_ms = site->granularities.slot_ms, now_ms = clock_wall_ms(site->clock);
	int64_t first_ms = rebuild_first_slot_ms(site);
	int64_t last_ms = (now_ms + site->ahead_ms) / slot_ms * slot_ms + slot_ms;
	int64_t from_ms = rebuild->from_ms, to_ms = rebuild->to_ms;
	if (from_ms >= to_ms)
		return errbuf_set(e, ERR_INVALID, "from is not before to");
	rebuild->everything = !rebuild->tenant.len && !rebuild->metric.len &&
			      from_ms == INT64_MIN && to_ms == INT64_MAX;
	rebuild->from_ms = from_ms > first_ms ? from_ms / slot_ms * slot_ms : first_ms;
	rebuild->to_ms = to_ms < last_ms ? (to_ms + slot_ms - 1) / slot_ms * slot_ms : last_ms;
	if (rebuild->from_ms < rebuild->to_ms)
		return 0;
	char text[TIME_PRINT_MAX_BYTES];
	int len = (int)time_print(text, first_ms);
	return errbuf_set(e, ERR_INVALID,
			  "no slot in that time has all of its raw data: the first that has begins "
			  "at %.*s",
			  len, text);
}

/* Samples that were on their way when marks were lost are there by now (remark_after_loss.h). */
static bool rebuild_makes_good(const struct rollup_site *site, const struct rollup_rebuild *rebuild,
			       const struct marks_state *state)
{
	return rebuild->everything && !rebuild->only_count && state->incomplete &&
	       !state->degraded && clock_wall_ms(site->clock) >= state->lost_ms + site->quiet_ms;
}

int rollup_rebuild_run(const struct rollup_site *site, struct task_queue *queue,
		       const struct rollup_rebuild *rebuild, struct remark_result *result)
{
	struct marks_state state = marks_state(site->marks);
	bool makes_good = rebuild_makes_good(site, rebuild, &state);
	bool is_all = site->backfill && !rebuild->only_count && !rebuild->tenant.len &&
		      !rebuild->metric.len &&
		      backfill_is_all(site->backfill, rebuild->from_ms, rebuild->to_ms);
	int err = remark(
		&(struct remark_options){.site = site,
					 .queue = queue,
					 .tenant = rebuild->tenant,
					 .metric = rebuild->metric,
					 .from_ms = rebuild->from_ms,
					 .to_ms = rebuild->to_ms,
					 .with_late = rollup_site_rules(site)->late.after_ms != 0,
					 .only_count = rebuild->only_count},
		result);
	if (!err && makes_good)
		marks_restored(site->marks, state.losses);
	if (!err && is_all && !result->failed)
		backfill_rebuilt(site->backfill, queue);
	return err;
}
