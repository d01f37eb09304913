/* The phases in which a server stops, in their order. */
#include "api/call.h"
#include "board/keys.h"
#include "catalog/catalog.h"
#include "cmd/serve_faults.h"
#include "cmd/serve_listeners.h"
#include "cmd/serve_polling.h"
#include "cmd/serve_private.h"
#include "conf/conf.h"
#include "http/http.h"
#include "ingest/host.h"
#include "ingest/ingest.h"
#include "ingest/minute_sums.h"
#include "inventory/inventory.h"
#include "rollup/deletions.h"
#include "rollup/follower.h"
#include "rollup/rollup.h"

static int64_t serve_grace_ms(const struct serve *s)
{
	return s->stopping.dead_err ? STOP_DEAD_MS : s->conf->stop_timeout_ms;
}

/* It delivers to this server, which still serves. */
static void serve_begin_agent(void *owner)
{
	struct serve *s = owner;
	serve_agent_stop(&s->agent, serve_grace_ms(s), stop_phases_end_phase, &s->stopping);
}

static void serve_begin_http(void *owner)
{
	struct serve *s = owner;
	s->api.ready = false;
	loop_timer_close(s->sweep_timer);
	http_server_stop(s->http, serve_grace_ms(s), stop_phases_end_phase, &s->stopping);
}

static void serve_begin_doors(void *owner)
{
	struct serve *s = owner;
	s->stopping.phase_over = s->doors == NULL;
	if (s->doors)
		serve_listeners_stop(s->doors, serve_grace_ms(s), stop_phases_end_phase,
				     &s->stopping);
}

/* What is left of a deletion is done after the next start. */
static void serve_begin_queries(void *owner)
{
	struct serve *s = owner;
	api_calls_stop(&s->api);
	if (s->deletions)
		rollup_deletions_stop(s->deletions);
}

/* Reads of queries whose clients are gone, and what such clients have sent, are still at work. */
static bool serve_queries_over(const void *owner)
{
	const struct serve *s = owner;
	return query_engine_idle(s->queries) && !s->api.calls &&
	       (!s->deletions || rollup_deletions_idle(s->deletions));
}

static void serve_begin_amqp(void *owner)
{
	serve_faults_stop_amqp(((struct serve *)owner)->faults);
}

static bool serve_is_amqp_over(const void *owner)
{
	return serve_faults_is_amqp_over(((const struct serve *)owner)->faults);
}

/* No request is at work any more, so that no report comes after the last that is counted. */
static void serve_begin_faults(void *owner)
{
	serve_faults_stop(((struct serve *)owner)->faults);
}

static bool serve_are_faults_over(const void *owner)
{
	return serve_faults_are_over(((const struct serve *)owner)->faults);
}

static void serve_begin_streams(void *owner)
{
	serve_streams_stop(&((struct serve *)owner)->streams);
}

static bool serve_are_streams_over(const void *owner)
{
	return serve_streams_are_over(&((const struct serve *)owner)->streams);
}

static void serve_begin_polling(void *owner)
{
	serve_polling_stop(((struct serve *)owner)->polling);
}

static bool serve_is_polling_over(const void *owner)
{
	return serve_polling_over(((const struct serve *)owner)->polling);
}

static void serve_begin_host(void *owner)
{
	struct serve *s = owner;
	s->stopping.phase_over = s->host == NULL;
	if (s->host)
		host_close(s->host, stop_phases_end_phase, &s->stopping);
	s->host = NULL;
}

/* Nobody notes names any more. */
static void serve_begin_keys(void *owner)
{
	struct serve *s = owner;
	if (s->keys)
		board_keys_stop(s->keys);
}

static bool serve_are_keys_over(const void *owner)
{
	const struct serve *s = owner;
	return !s->keys || board_keys_is_over(s->keys);
}

static void serve_begin_sums(void *owner)
{
	minute_sums_stop(((struct serve *)owner)->sums);
}

static bool serve_are_sums_over(const void *owner)
{
	return minute_sums_idle(((const struct serve *)owner)->sums);
}

static bool serve_writes_over(const void *owner)
{
	return ingest_idle(((const struct serve *)owner)->ingest);
}

static bool serve_inventory_over(const void *owner)
{
	const struct serve *s = owner;
	return !s->inventory || inventory_keeper_idle(s->inventory);
}

static void serve_begin_rollups(void *owner)
{
	struct serve *s = owner;
	rollup_follower_stop(s->follower);
	if (s->rollup)
		rollup_stop(s->rollup);
}

static bool serve_are_rollups_over(const void *owner)
{
	const struct serve *s = owner;
	return rollup_follower_is_over(s->follower) && (!s->rollup || rollup_is_over(s->rollup));
}

static void serve_begin_catalog(void *owner)
{
	struct serve *s = owner;
	loop_timer_close(s->ingest_timer);
	query_engine_free(s->queries);
	catalog_close(s->catalog, stop_phases_end_phase, &s->stopping);
}

const struct stop_phase serve_phases[] = {
	{"reload", serve_stop_reload, serve_is_reload_over},
	{"followed files", serve_begin_agent, NULL},
	{"requests that are being answered", serve_begin_http, NULL},
	{"lines over TCP and UDP", serve_begin_doors, NULL},
	{"queries", serve_begin_queries, serve_queries_over},
	{"fault reports by AMQP", serve_begin_amqp, serve_is_amqp_over},
	{"fault reports", serve_begin_faults, serve_are_faults_over},
	{"streams", serve_begin_streams, serve_are_streams_over},
	{"polling", serve_begin_polling, serve_is_polling_over},
	{"host metrics", serve_begin_host, NULL},
	{"names of metrics", serve_begin_keys, serve_are_keys_over},
	{"sums of minutes", serve_begin_sums, serve_are_sums_over},
	{"writes", NULL, serve_writes_over},
	{"inventory", NULL, serve_inventory_over},
	{"roll-ups", serve_begin_rollups, serve_are_rollups_over},
	{"catalog", serve_begin_catalog, NULL},
};
const size_t serve_phase_count = ARRAY_LEN(serve_phases);
