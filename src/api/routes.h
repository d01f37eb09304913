/* The one table of what the server answers (routes.c), and what its handlers share.
 *
 * A new route is one row in routes.c, one handler, declared in the header of its folder, and one
 * table of its parameters (params.h). From the rows are made: dispatch, 404 and 405, and the page
 * at `/`. What is not answered at once is a call (call.h).
 *
 * Threads: handlers run on the loop's thread and so does everything that touches struct api. */
#ifndef API_ROUTES_H
#define API_ROUTES_H

#include "base/log.h"
#include "http/http.h"

struct agent_book;
struct api_call;
struct auth;
struct boards;
struct catalog;
struct chunks_door;
struct conf;
struct fault;
struct ingest;
struct inventory_conf;
struct inventory_keeper;
struct minute_sums;
struct persist;
struct poller;
struct pollers;
struct pool;
struct query_engine;
struct rollup;
struct rollup_deletions;
struct rollup_site;
struct row_site;
struct queue;
struct store;
struct streams;
struct zones;

enum { API_SLOW_LINES_MAX = 60 };

/* What request->context points to. Filled in by whoever starts the server; what a test leaves NULL,
 * the routes it calls must not need. */
struct api {
	struct ingest *ingest; /* first, as struct ingest_context wants it */
	struct loop *loop;
	struct clock *clock;
	struct store *store;
	struct auth *auth;          /* who may ask */
	struct log_rate slow_lines; /* lines_max: API_SLOW_LINES_MAX */
	struct catalog *catalog;
	struct query_engine *queries;
	struct inventory_keeper *inventory;
	const struct inventory_conf *inventory_conf;
	struct pollers *pollers;     /* elsewhere, that have been heard of */
	struct agent_book *agents;   /* elsewhere, and what they have said */
	struct queue *const *queues; /* by place in inventory_conf->queues */
	struct persist *persist;
	struct poller *poller;          /* of this process */
	const struct rollup_site *site; /* of roll-ups, and of retention */
	struct rollup *rollup;          /* NULL: this process rolls nothing up */
	struct rollup_deletions *deletions;
	struct fault *fault;      /* reports of faults */
	struct pool *fault_pool;  /* reads their bodies */
	struct oops_amqp *amqp;   /* NULL: none come by AMQP */
	struct minute_sums *sums; /* of what comes with them */
	struct streams *streams;
	struct pool *stream_pool; /* reads their chunks */
	struct chunks_door *chunks_door;
	const struct row_site *rows; /* of texts and notes */
	struct boards *boards;       /* charts, widgets, dashboards */
	struct zones *zones;         /* of reports about interfaces */
	struct api_call *calls;      /* in flight: none may be when queues, catalog and store end */
	const struct conf *conf;
	const char *program; /* calls this one again, as a shell reads it; NULL: granary */
	int64_t started_ms;  /* wall clock */
	bool ready;          /* the store is open and replayed: what /-/ready says */
};

extern const struct http_route api_routes[];
extern const size_t api_route_count;

static inline struct api *api_of(const struct http_request *request)
{
	return request->context;
}

#endif
