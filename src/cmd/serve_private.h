/* The parts of a server (serve.c), for what stops them (serve_phases.c) and what has them take over
 * another configuration (serve_reload.c). The loop's thread. */
#ifndef CMD_SERVE_PRIVATE_H
#define CMD_SERVE_PRIVATE_H

#include "api/routes.h"
#include "auth/auth.h"
#include "board/rows.h"
#include "cmd/serve_agent.h"
#include "cmd/serve_conf.h"
#include "cmd/serve_streams.h"
#include "cmd/stop_phases.h"
#include "ingest/ingest.h"
#include "query/query.h"
#include "rollup/site.h"

struct serve {
	struct conf *conf;                     /* the first one's; what reloads is the latest's */
	struct inventory_conf *inventory_conf; /* OIDSets and queues */
	struct serve_conf first, latest;       /* as they were read */
	const struct command_args *args;       /* to read the configuration again */
	struct store *store;
	struct auth *auth;
	char own_token[TOKEN_TEXT_BYTES + 1]; /* for what in this process asks by HTTP */
	struct loop *loop;
	struct pool *pool, *filter_pool;
	struct catalog *catalog;
	struct ingest *ingest;
	struct minute_sums *sums;
	struct query_engine *queries;
	struct inventory_keeper *inventory;
	struct zones *zones;
	struct pollers *pollers;
	struct agent_book *agents;
	struct host *host;
	struct http_server *http;
	unsigned connections_max; /* that the process has descriptors for */
	struct serve_listeners *doors;
	struct serve_polling *polling;
	struct rollup_site site;
	struct rollup *rollup; /* NULL: this process rolls nothing up */
	struct rollup_follower *follower;
	struct rollup_deletions *deletions;
	struct serve_faults *faults;
	struct serve_streams streams;
	struct board_keys *keys;
	struct row_site rows;
	struct boards *boards;
	struct serve_agent agent;
	struct http_route *routes;
	struct api api;
	struct loop_timer *sweep_timer, *ingest_timer;
	struct serve_reload *reload; /* that is at work */
	struct stop_phases stopping;
	struct watched watched[2];
	int status;
};

/* What parts are told, as the configuration has it now. */
struct query_options serve_query_options(struct serve *s);
struct ingest_retention serve_ingest_retention(const struct serve *s);
int64_t serve_longest_ms(const struct serve *s); /* that any samples are kept; 0: for ever */
void serve_set_http_limits(struct serve *s);

extern const struct stop_phase serve_phases[];
extern const size_t serve_phase_count;

void serve_on_reload_signal(void *owner, int signum); /* a loop_signal_fn */
void serve_stop_reload(void *owner);                  /* owner: struct serve */
bool serve_is_reload_over(const void *owner);

#endif
