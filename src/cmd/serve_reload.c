/* Reload: the configuration is read and checked as a whole, as at the start (serve_conf.h). What
 * the store has to remember of other rules of retention is noted by a job; then each part takes
 * over what is its own. One reload at a time: a signal that comes meanwhile is heard after it. */
#include "agent/adaptors.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/supervisor.h"
#include "board/keys.h"
#include "catalog/catalog.h"
#include "cmd/serve_polling.h"
#include "cmd/serve_private.h"
#include "conf/conf.h"
#include "inventory/inventory.h"
#include "loop/job.h"

enum { RELOAD_AGAIN_MS = 50 };

struct serve_reload {
	struct serve *serve;
	struct serve_conf next;
	bool has_rules; /* other ones: */
	struct retention_rules rules;
	bool rules_wait; /* there are other ones, for the next start */
	struct job *job; /* notes them */
	int err;         /* of the job */
	struct errbuf error;
	struct loop_timer *timer; /* devices take no change at the moment */
	bool again;               /* there was another signal */
	bool is_stopping;
};

/* ---- What changes ---------------------------------------------------------------------------- */

static bool reload_has_same_rules(const struct retention_rules *rules, const struct conf *conf)
{
	const struct conf_list *list = &conf->retention_rules;
	bool same = rules->levels_ms[0] == conf->retention_raw_ms && rules->count == list->count;
	for (size_t i = 0; same && i < list->count; i++)
		same = slice_equal(rules->list[i].text, slice_of(list->items[i]));
	return same;
}

/* Rules are read for roll-ups that wait for a start, or other processes have the same ones. */
static bool reload_do_rules_wait(const struct serve *s, const struct conf *next)
{
	static const enum conf_id ids[] = {CONF_ID_rollup_granularities, CONF_ID_rollup_slot_ms,
					   CONF_ID_rollup_quiet_ms, CONF_ID_rollup_late};
	bool wait = store_is_shared(s->store);
	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		wait |= conf_differs(s->conf, next, ids[i]);
	return wait;
}

static int reload_read_rules(struct serve_reload *reload, struct errbuf *e)
{
	const struct serve *s = reload->serve;
	const struct conf *next = reload->next.conf;
	if (reload_has_same_rules(rollup_site_rules(&s->site), next))
		return 0;
	reload->rules_wait = reload_do_rules_wait(s, next);
	if (reload->rules_wait)
		return 0;
	if (!rollup_site_changes_left(&s->site))
		return errbuf_set(e, ERR_LIMIT,
				  "rules of retention have changed %d times since the start, which "
				  "is the most: start the server anew",
				  SITE_RULES_MAX);
	reload->has_rules = true;
	return rollup_site_read_rules(&s->site, next, &reload->rules, e);
}

/* Names what has changed and waits for a start. */
static void reload_list_fixed(const struct serve_reload *reload, struct buf *out)
{
	const struct serve *s = reload->serve;
	const struct serve_conf *next = &reload->next;
	conf_fixed_changes(s->conf, next->conf, out);
	if (reload->rules_wait)
		buf_printf(out, "%sretention.raw retention.rules", out->len ? " " : "");
	if (next->inventory->oidset_files_hash != s->inventory_conf->oidset_files_hash)
		buf_printf(out, "%sthe files of snmp.oidset_files", out->len ? ", " : "");
	if (next->adaptors->count && !s->agent.runner)
		buf_printf(out, "%sadaptors, where there were none", out->len ? ", " : "");
}

/* ---- Taking over ----------------------------------------------------------------------------- */

/* A change of all devices, of which nothing is stored. */
static void reload_credentials_changed(struct inventory_change *change, int err)
{
	ASSERT(!err);
	inventory_conf_release(change->conf);
	mem_free(change);
}

/* ERR_BUSY: not now. */
static int reload_take_credentials(struct serve *s, struct inventory_conf *next)
{
	const struct serve_conf *latest = s->latest.conf ? &s->latest : &s->first;
	if (next->secrets_hash == latest->inventory->secrets_hash)
		return 0;
	struct inventory_change *change = mem_zalloc(sizeof(*change));
	change->op = INVENTORY_RENEW;
	change->conf = inventory_conf_join(s->inventory_conf, next);
	change->done = reload_credentials_changed;
	int err = inventory_keeper_change(s->inventory, change);
	if (err)
		reload_credentials_changed(change, 0);
	return err;
}

static void reload_take_rules(struct serve *s, const struct retention_rules *rules)
{
	rollup_site_change_rules(&s->site, rules);
	const struct retention_rules *now = rollup_site_rules(&s->site);
	struct ingest_retention retention = serve_ingest_retention(s);
	ingest_set_retention(s->ingest, &retention);
	catalog_set_longest_retention(s->catalog, retention_longest_raw_ms(now));
	atomic_store(&s->rows.retention, now);
	board_keys_set_keep(s->keys, serve_longest_ms(s));
	serve_polling_set_retention(s->polling, now->levels_ms[0]);
}

static void reload_take_over(struct serve_reload *reload)
{
	struct serve *s = reload->serve;
	struct serve_conf *next = &reload->next;
	struct buf fixed;
	buf_init(&fixed, 64 << 10);
	reload_list_fixed(reload, &fixed);
	if (fixed.len)
		log_warn("reload: these take effect at the next start only: %.*s", (int)fixed.len,
			 fixed.data);
	conf_take_over(s->conf, next->conf);
	serve_conf_set_log(s->conf);
	serve_addresses_renew(&next->addresses, s->http);
	serve_set_http_limits(s);
	struct query_options options = serve_query_options(s);
	query_engine_set_limits(s->queries, &options);
	if (s->agent.runner)
		agent_runner_reload(s->agent.runner, &next->adaptors);
	streams_reload(s->streams.streams, &next->datatypes);
	log_info("reload: done%s", fixed.len ? ", but for these" : "");
	buf_release(&fixed);
	serve_conf_release(&s->latest);
	s->latest = *next;
	*next = (struct serve_conf){.conf = NULL};
}

/* ---- One reload ------------------------------------------------------------------------------ */

static void reload_end(struct serve_reload *reload, bool changed)
{
	struct serve *s = reload->serve;
	bool again = reload->again;
	s->reload = NULL;
	loop_timer_close(reload->timer);
	job_free(reload->job);
	serve_conf_release(&reload->next);
	mem_free(reload);
	supervisor_tell_reloaded(changed);
	if (again)
		serve_on_reload_signal(s, 0);
}

static void reload_refuse(struct serve_reload *reload, const char *why)
{
	log_error("reload: nothing is changed: %s", why);
	reload_end(reload, false);
}

/* All that reloads, or nothing; what waits for a start is named. Rules that are noted hold from now
 * on, so what else there is waits for the devices as long as it has to. */
static void reload_finish(void *owner)
{
	struct serve_reload *reload = owner;
	struct serve *s = reload->serve;
	if (reload->has_rules)
		reload_take_rules(s, &reload->rules);
	reload->has_rules = false;
	if (!reload_take_credentials(s, reload->next.inventory)) {
		reload_take_over(reload);
		reload_end(reload, true);
		return;
	}
	if (!reload->timer)
		reload->timer = loop_timer_new(s->loop, reload_finish, reload);
	loop_timer_start(reload->timer, RELOAD_AGAIN_MS, 0);
}

static void reload_note(struct job *job, void *owner)
{
	struct serve_reload *reload = owner;
	reload->err = stored_settings_change(&reload->serve->site, &reload->rules, job_queue(job),
					     &reload->error);
}

static void reload_noted(void *owner)
{
	struct serve_reload *reload = owner;
	if (reload->is_stopping)
		reload_end(reload, false);
	else if (reload->err)
		reload_refuse(reload, reload->error.text);
	else
		reload_finish(reload);
}

static void reload_begin(struct serve_reload *reload)
{
	struct serve *s = reload->serve;
	struct errbuf e = {""};
	if (serve_conf_read(&reload->next, s->args, &e) ||
	    serve_agent_add_local(s->conf, reload->next.adaptors, &e) ||
	    reload_read_rules(reload, &e))
		reload_refuse(reload, e.text);
	else if (!reload->has_rules)
		reload_finish(reload);
	else if (job_start("reload", reload_note, reload_noted, reload, loop_executor(s->loop),
			   &reload->job))
		reload_refuse(reload, "48 background jobs run, which is the most");
}

void serve_on_reload_signal(void *owner, UNUSED int signum)
{
	struct serve *s = owner;
	if (s->reload)
		s->reload->again = true;
	if (!s->api.ready || s->stopping.begun_ms || s->reload)
		return; /* it stops, or is at it */
	supervisor_tell_reload(clock_real());
	s->reload = mem_zalloc(sizeof(*s->reload));
	s->reload->serve = s;
	reload_begin(s->reload);
}

void serve_stop_reload(void *owner)
{
	struct serve *s = owner;
	struct serve_reload *reload = s->reload;
	if (!reload)
		return;
	reload->is_stopping = true;
	reload->again = false;
	if (reload->job && reload->has_rules)
		job_stop(reload->job);
	else
		reload_end(reload, false);
}

bool serve_is_reload_over(const void *owner)
{
	return !((const struct serve *)owner)->reload;
}
