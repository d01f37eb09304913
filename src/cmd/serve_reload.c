/* Reload: the configuration is read and checked as a whole, as at the start (serve_conf.h); then
 * each part takes over what is its own. */
#include "agent/adaptors.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/supervisor.h"
#include "cmd/serve_private.h"
#include "conf/conf.h"
#include "inventory/inventory.h"

/* Names what has changed and waits for a start. */
static void serve_list_fixed(const struct serve *s, const struct serve_conf *next, struct buf *out)
{
	conf_fixed_changes(s->conf, next->conf, out);
	if (next->inventory->oidset_files_hash != s->inventory_conf->oidset_files_hash)
		buf_printf(out, "%sthe files of snmp.oidset_files", out->len ? ", " : "");
	if (next->adaptors->count && !s->agent.runner)
		buf_printf(out, "%sadaptors, where there were none", out->len ? ", " : "");
}

/* A change of all devices, of which nothing is stored. */
static void serve_credentials_changed(struct inventory_change *change, int err)
{
	ASSERT(!err);
	inventory_conf_release(change->conf);
	mem_free(change);
}

/* ERR_BUSY: nothing is changed. */
static int serve_take_credentials(struct serve *s, struct inventory_conf *next)
{
	const struct serve_conf *latest = s->latest.conf ? &s->latest : &s->first;
	if (next->secrets_hash == latest->inventory->secrets_hash)
		return 0;
	struct inventory_change *change = mem_zalloc(sizeof(*change));
	change->op = INVENTORY_RENEW;
	change->conf = inventory_conf_join(s->inventory_conf, next);
	change->done = serve_credentials_changed;
	int err = inventory_keeper_change(s->inventory, change);
	if (err)
		serve_credentials_changed(change, 0);
	return err;
}

/* All that reloads, or nothing; what waits for a start is named. */
static void serve_take_over(struct serve *s, struct serve_conf *next)
{
	struct buf fixed;
	if (serve_take_credentials(s, next->inventory)) {
		log_error("reload: nothing is changed: too many changes of devices wait");
		return;
	}
	buf_init(&fixed, 64 << 10);
	serve_list_fixed(s, next, &fixed);
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

void serve_on_reload_signal(void *owner, UNUSED int signum)
{
	struct serve *s = owner;
	struct serve_conf next;
	struct errbuf e = {""};
	bool changed = false;
	if (!s->api.ready)
		return; /* it stops */
	supervisor_tell_reload(clock_real());
	if (serve_conf_read(&next, s->args, &e) ||
	    serve_agent_add_local(s->conf, next.adaptors, &e)) {
		log_error("reload: nothing is changed: %s", e.text);
	} else {
		serve_take_over(s, &next);
		changed = !next.conf;
	}
	supervisor_tell_reloaded(changed);
	serve_conf_release(&next);
}
