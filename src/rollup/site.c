#include "rollup/site.h"

#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random.h"
#include "base/utf8.h"
#include "conf/conf.h"
#include "lease/job_claim.h"
#include "lease/owners.h"
#include "marks/recent.h"
#include "marks/store.h"
#include "marks/watermark_cells.h"
#include "rollup/aggregate_row.h"
#include "rollup/backfill.h"
#include "wire/timetext.h"

/* A client's write is given up after some times the time that it may wait for its turn. */
enum { WRITE_WAITS = 5, LEASE_SKEWS = 4, QUIET_SKEWS = 5 };

/* ---- The configuration ----------------------------------------------------------------------- */

static int site_read_redis_password(struct rollup_site *site, const struct conf *conf,
				    struct files *files, struct errbuf *e)
{
	const char *path = conf->rollup_redis_password_file;
	int err = 0;
	if (*path)
		err = file_read_secret(files, path, site->redis.password,
				       sizeof(site->redis.password), e);
	else if (site->redis.user[0])
		err = errbuf_set(e, ERR_INVALID, "rollup.tracking has a user, who has a password");
	return err ? conf_refuse(conf, CONF_ID_rollup_redis_password_file, e) : 0;
}

/* Where the marks are. */
static int site_read_tracking(struct rollup_site *site, const struct conf *conf,
			      struct files *files, struct errbuf *e)
{
	struct slice text = slice_of(conf->rollup_tracking);
	if (slice_equal(text, SLICE("store")))
		return 0;
	int err = redis_url_is(text) ? redis_url_parse(text, &site->redis, e)
				     : errbuf_set(e, ERR_INVALID,
						  "it is store, or "
						  "redis://[user@]host[:port][/database]");
	return err ? conf_refuse(conf, CONF_ID_rollup_tracking, e)
		   : site_read_redis_password(site, conf, files, e);
}

/* The options do not fit together: the sentence names the first one that somebody has set. */
static int site_check_quiet(const struct conf *conf, struct errbuf *e)
{
	static const enum conf_id ids[] = {CONF_ID_rollup_quiet_ms, CONF_ID_ingest_wait_max_ms,
					   CONF_ID_rollup_skew_max_ms};
	size_t set = 0;
	if (!quiet_time_check(conf->rollup_quiet_ms, WRITE_WAITS * conf->ingest_wait_max_ms,
			      conf->rollup_skew_max_ms, e))
		return 0;
	while (set < ARRAY_LEN(ids) && !conf->origins[ids[set]].file)
		set++;
	return conf_refuse(conf, ids[set < ARRAY_LEN(ids) ? set : 0], e);
}

/* Who believes to have a lease has it still by the clock of the store, and of whoever waits for it.
 */
static int site_check_lease(const struct conf *conf, struct errbuf *e)
{
	char lease[DURATION_PRINT_MAX_BYTES], skew[DURATION_PRINT_MAX_BYTES];
	bool lease_set = conf->origins[CONF_ID_rollup_lease_ms].file;
	if (conf->rollup_lease_ms >= LEASE_SKEWS * conf->rollup_skew_max_ms)
		return 0;
	errbuf_set(
		e, ERR_INVALID,
		"a lease of %s is too short where clocks may differ by %s: four times that is the "
		"least",
		duration_print(lease, conf->rollup_lease_ms),
		duration_print(skew, conf->rollup_skew_max_ms));
	return conf_refuse(conf, lease_set ? CONF_ID_rollup_lease_ms : CONF_ID_rollup_skew_max_ms,
			   e);
}

/* Rows that somebody makes of more samples have to have the higher stamp, whichever clock it is of:
 * between the two readings lies the quiet time, less what a write may take
 * (recent_touches_write_max_ms). */
static void site_check_shared_quiet(const struct conf *conf, struct errbuf *e)
{
	char quiet[DURATION_PRINT_MAX_BYTES], skew[DURATION_PRINT_MAX_BYTES];
	if (conf->rollup_quiet_ms >= QUIET_SKEWS * conf->rollup_skew_max_ms)
		return;
	errbuf_set(e, ERR_INVALID,
		   "a quiet time of %s is too short where processes share a store and their clocks "
		   "may differ by %s: five times that is the least",
		   duration_print(quiet, conf->rollup_quiet_ms),
		   duration_print(skew, conf->rollup_skew_max_ms));
	(void)conf_refuse(conf, CONF_ID_rollup_quiet_ms, e);
}

static int site_read_name(struct rollup_site *site, const struct conf *conf, struct errbuf *e)
{
	snprintf(site->name, sizeof(site->name), "%s", conf->rollup_name);
	if (!site->name[0] && gethostname(site->name, sizeof(site->name) - 1))
		site->name[0] = 0;
	if (!site->name[0])
		snprintf(site->name, sizeof(site->name), "granary");
	site->name_given_len = strlen(site->name);
	if (utf8_is_valid(slice_of(site->name)))
		return 0;
	errbuf_set(e, ERR_INVALID, "the name of this process%s is not UTF-8",
		   conf->rollup_name[0] ? "" : ", which is the host's,");
	return conf_refuse(conf, CONF_ID_rollup_name, e);
}

/* What is kept late has to be kept longer than what was in time. */
static int site_read_late(struct retention_rules *rules, const struct conf *conf, struct errbuf *e)
{
	int64_t raw_ms = retention_shortest_raw_ms(rules);
	int64_t longest_ms = rules->late.kept_ms;
	char longest[DURATION_PRINT_MAX_BYTES], raw[DURATION_PRINT_MAX_BYTES];
	rules->keeps_late = raw_ms && strcmp(conf->rollup_late, "keep") == 0;
	if (!rules->keeps_late || !longest_ms || longest_ms > raw_ms)
		return 0;
	errbuf_set(e, ERR_INVALID,
		   "late samples would be kept for %s, as long as the longest granularity, and raw "
		   "samples are kept for %s",
		   duration_print(longest, longest_ms), duration_print(raw, raw_ms));
	return conf_refuse(conf, CONF_ID_rollup_late, e);
}

int rollup_site_read_rules(const struct rollup_site *site, const struct conf *conf,
			   struct retention_rules *rules, struct errbuf *e)
{
	int err = retention_read(conf, &site->granularities, rules, e);
	if (err)
		return err;
	rules->late.kept_ms = retention_longest_ms(rules, &site->granularities);
	return site->granularities.count ? site_read_late(rules, conf, e) : 0;
}

int rollup_site_read(struct rollup_site *site, const struct conf *conf, struct files *files,
		     struct errbuf *e)
{
	*site = (struct rollup_site){
		.partitions = (uint32_t)conf->partitions,
		.quiet_ms = conf->rollup_quiet_ms,
		.skew_max_ms = conf->rollup_skew_max_ms,
		.ahead_ms = conf->ingest_future_max_ms,
		.every_ms = conf->rollup_every_ms,
		.lease_ms = conf->rollup_lease_ms,
		.redis_separator = conf->rollup_redis_separator[0],
		.counter_suffixes = conf->rollup_counter_suffixes.items,
		.counter_suffix_count = conf->rollup_counter_suffixes.count,
		.address = conf->listen.count ? conf->listen.items[0] : "",
	};
	int err = granularities_read(conf, &site->granularities, e);
	err = err ? err : rollup_site_read_rules(site, conf, &site->retention, e);
	if (err)
		return err;
	site_check_shared_quiet(conf, &site->unshared);
	err = site_read_name(site, conf, e);
	err = err ? err : site_check_lease(conf, e);
	if (err || !site->granularities.count)
		return err;
	site->owns_streams = conf->stream_own;
	err = owners_configured(conf, files, slice_of(site->name), &site->own, &site->share, e);
	err = err ? err : site_read_tracking(site, conf, files, e);
	return err ? err : site_check_quiet(conf, e);
}

/* ---- Other rules ----------------------------------------------------------------------------- */

void rollup_site_change_rules(struct rollup_site *site, const struct retention_rules *rules)
{
	struct site_rules *changed = mem_zalloc(sizeof(*changed));
	ASSERT(rollup_site_changes_left(site));
	changed->rules = retention_copy(rules);
	changed->before = atomic_load(&site->changed);
	changed->number = changed->before ? changed->before->number + 1 : 1;
	if (site->redis.host[0])
		marks_redis_set_late_after(site->marks, rules->late.after_ms);
	atomic_store_explicit(&site->changed, changed, memory_order_release);
}

static void site_free_rules(struct rollup_site *site)
{
	struct site_rules *changed = atomic_load(&site->changed);
	while (changed) {
		struct site_rules *before = changed->before;
		mem_free(changed->rules);
		mem_free(changed);
		changed = before;
	}
	atomic_store(&site->changed, NULL);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static int site_open_marks(struct rollup_site *site, struct errbuf *e)
{
	int64_t late_ms = recent_touches_write_max_ms(site->quiet_ms, site->skew_max_ms);
	if (site->redis.host[0])
		return marks_redis_open(
			&(struct marks_redis_options){
				.store = site->store,
				.clock = site->clock,
				.url = site->redis,
				.separator = site->redis_separator,
				.writer = slice_of(site->name),
				.slot_ms = site->granularities.slot_ms,
				.quiet_ms = site->quiet_ms,
				.late_ms = late_ms,
				.late_after_ms = site->retention.late.after_ms,
			},
			&site->marks, e);
	site->marks = marks_store_open(&(struct marks_store_options){.store = site->store,
								     .writer = slice_of(site->name),
								     .clock = site->clock,
								     .late_ms = late_ms});
	return 0;
}

/* Processes of one name are two all the same. */
static int site_open_shared(struct rollup_site *site, struct errbuf *e)
{
	size_t len = site->name_given_len;
	snprintf(site->name + len, sizeof(site->name) - len, "-%016llx",
		 (unsigned long long)random_system_seed());
	return site->unshared.text[0] ? errbuf_set(e, ERR_INVALID, "%s", site->unshared.text) : 0;
}

static int site_open_session(struct rollup_site *site, struct errbuf *e)
{
	struct task_queue queue;
	site->session = lease_session_new(&(struct lease_session_options){
		.store = site->store,
		.clock = site->clock,
		.holder = slice_of(site->name),
		.name = {site->name, site->name_given_len},
		.address = slice_of(site->address),
		.roles = (site->own.count ? SESSION_ROLLS_UP : 0) |
			 (site->own.count && site->share ? SESSION_SHARES : 0) |
			 (site->owns_streams ? SESSION_OWNS_STREAMS : 0),
		.lease_ms = site->lease_ms,
		.skew_max_ms = site->skew_max_ms,
	});
	site->claims = job_claims_new(site->session);
	task_queue_init(&queue);
	int err = lease_session_open(site->session, &queue, e);
	task_queue_release(&queue);
	return err;
}

static void site_close_session(struct rollup_site *site)
{
	struct task_queue queue;
	task_queue_init(&queue);
	int err = lease_session_end(site->session, &queue);
	if (err)
		log_warn("the session of this process is not taken away, and ends by itself: %s",
			 err_text(err));
	task_queue_release(&queue);
	job_claims_free(site->claims);
	lease_session_free(site->session);
}

int rollup_site_open(struct rollup_site *site, struct store *store, struct clock *clock,
		     struct errbuf *e)
{
	site->store = store;
	site->clock = clock;
	if (store_is_shared(site->store) && site_open_shared(site, e))
		return ERR_INVALID;
	/* Where the store is shared, others have to see by now that this process is at work. */
	int err = site_open_session(site, e);
	err = err ? err : stored_settings_open(site, clock_sure_ms(clock), e);
	err = err ? err : site_open_marks(site, e);
	bool shared = store_is_shared(site->store);
	if (err || (!site->own.count && !shared))
		return err;
	/* Whoever makes marks of all may note it for those that roll up. */
	site->backfill = backfill_new(site);
	site->watermark = watermark_new(site->granularities.slot_ms, site->quiet_ms, shared);
	marks_tell(site->marks, site->watermark);
	return 0;
}

void rollup_site_close(struct rollup_site *site)
{
	if (site->marks)
		marks_close(site->marks);
	if (site->watermark)
		watermark_free(site->watermark);
	if (site->backfill)
		backfill_free(site->backfill);
	if (site->session)
		site_close_session(site);
	site_free_rules(site);
	stored_settings_release(&site->settings);
}

/* ---- For queries ----------------------------------------------------------------------------- */

int rollup_site_ask(void *owner, struct slice tenant, struct slice metric, struct store_read *read,
		    struct watermark_asked **asked)
{
	const struct rollup_site *site = owner;
	struct buf encoded;
	*asked = NULL;
	if (!store_is_shared(site->store) || !marks_in_writes(site->marks))
		return 0;
	buf_init(&encoded, 2 * METRIC_MAX_BYTES);
	int err = series_set_encode(metric, (struct tags){NULL, 0}, &encoded);
	err = err ? err : watermark_cells_ask(read, tenant, buf_slice(&encoded), asked);
	buf_release(&encoded);
	return err;
}

int64_t rollup_site_before_ms(void *owner, struct slice tenant, struct slice metric,
			      const struct watermark_asked *asked)
{
	const struct rollup_site *site = owner;
	struct buf encoded;
	if (!site->watermark || marks_state(site->marks).incomplete)
		return 0;
	if (store_is_shared(site->store))
		return asked ? watermark_cells_before_ms(site->watermark, asked, site->partitions)
			     : 0;
	buf_init(&encoded, 2 * METRIC_MAX_BYTES);
	int err = series_set_encode(metric, (struct tags){NULL, 0}, &encoded);
	int64_t before_ms =
		err ? 0 : watermark_before_ms(site->watermark, tenant, buf_slice(&encoded));
	buf_release(&encoded);
	return before_ms;
}

int64_t rollup_site_since_ms(void *owner, struct slice metric, size_t granularity)
{
	const struct rollup_site *site = owner;
	return stored_settings_since_ms(&site->settings, metric, granularity);
}

bool rollup_site_is_counter(void *owner, struct slice metric)
{
	const struct rollup_site *site = owner;
	return rollup_is_counter(site->counter_suffixes, site->counter_suffix_count, metric);
}
