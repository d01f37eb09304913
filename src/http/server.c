/* The server: listeners, connections on the loop, and the clock that cuts them.
 *
 * One timer looks at the deadlines of all connections; with a thousand of them and a few looks a
 * second that is cheaper than moving a timer with every read. It rests while there are none. */
#include "http/conn.h"

#include "base/log.h"
#include "base/stats.h"

enum {
	LISTENERS_MAX = 8,
	REFUSED_MAX = 64, /* told 503 at once, beyond the connections; the rest is just closed */
	TICKS_PER_DEADLINE = 8,
	TICK_MIN_MS = 5,
	TICK_MAX_MS = 500,
};

struct server_conn {
	struct http_conn http;
	struct http_server *server;
	struct loop_conn *loop;
	struct task step;
	bool step_posted, closed;
	bool refused;
	struct server_conn *next, **link; /* of server->conns */
};

struct http_server {
	struct loop *loop;
	struct http_core core;
	struct loop_listener *listeners[LISTENERS_MAX];
	size_t listener_count;
	struct server_conn *conns;
	unsigned conn_count, refused_count;
	struct log_rate refused_lines;
	struct loop_timer *tick, *grace;
	uint64_t tick_ms;
	bool ticking;
	void (*stopped)(void *owner);
	void *stopped_owner;
	struct task stopped_task;
};

/* ---- Transport ------------------------------------------------------------------------------- */

static struct server_conn *conn_of(struct http_conn *http)
{
	return CONTAINER_OF(http, struct server_conn, http);
}

static void transport_read(struct http_conn *http, size_t max_bytes)
{
	loop_conn_read(conn_of(http)->loop, max_bytes);
}

static void transport_write(struct http_conn *http, const struct slice *pieces, size_t count)
{
	loop_conn_write(conn_of(http)->loop, pieces, count);
}

static size_t transport_unsent(struct http_conn *http)
{
	return loop_conn_unsent(conn_of(http)->loop);
}

static void transport_shutdown(struct http_conn *http)
{
	loop_conn_shutdown(conn_of(http)->loop);
}

static void transport_defer(struct http_conn *http)
{
	struct server_conn *conn = conn_of(http);
	struct executor *executor = loop_executor(conn->server->loop);
	conn->step_posted = true;
	executor->post(executor, &conn->step);
}

static void transport_close(struct http_conn *http)
{
	loop_conn_close(conn_of(http)->loop);
}

static const struct http_transport transport = {transport_read,   transport_write,
						transport_unsent, transport_shutdown,
						transport_defer,  transport_close};

/* ---- Connections ----------------------------------------------------------------------------- */

static void run_stopped(struct task *task)
{
	struct http_server *server = CONTAINER_OF(task, struct http_server, stopped_task);
	server->stopped(server->stopped_owner);
}

/* The owner is told by a task, so that it may free the server. */
static void consider_stopped(struct http_server *server)
{
	if (!server->core.stopping || server->conns || server->stopped_task.run)
		return;
	loop_timer_close(server->grace);
	server->grace = NULL;
	server->stopped_task.run = run_stopped;
	loop_executor(server->loop)->post(loop_executor(server->loop), &server->stopped_task);
}

static void add_conn(struct http_server *server, struct server_conn *conn)
{
	conn->next = server->conns;
	conn->link = &server->conns;
	if (conn->next)
		conn->next->link = &conn->next;
	server->conns = conn;
	if (conn->refused)
		server->refused_count++;
	else
		stat_set(STAT_http_connections, ++server->conn_count);
	if (!server->ticking)
		loop_timer_start(server->tick, server->tick_ms, server->tick_ms);
	server->ticking = true;
}

static void remove_conn(struct http_server *server, struct server_conn *conn)
{
	*conn->link = conn->next;
	if (conn->next)
		conn->next->link = conn->link;
	if (conn->refused)
		server->refused_count--;
	else
		stat_set(STAT_http_connections, --server->conn_count);
}

/* The socket is gone; a step may still be on its way. */
static void consider_free(struct server_conn *conn)
{
	struct http_server *server = conn->server;
	if (!conn->closed || conn->step_posted)
		return;
	remove_conn(server, conn);
	http_conn_release(&conn->http);
	mem_free(conn);
	consider_stopped(server);
}

static void run_step(struct task *task)
{
	struct server_conn *conn = CONTAINER_OF(task, struct server_conn, step);
	conn->step_posted = false;
	if (conn->closed)
		consider_free(conn);
	else
		http_conn_step(&conn->http);
}

static void on_read(void *owner, struct slice bytes)
{
	http_conn_input(&((struct server_conn *)owner)->http, bytes);
}

static void on_eof(void *owner)
{
	http_conn_eof(&((struct server_conn *)owner)->http);
}

static void on_broken(void *owner, int err)
{
	(void)err; /* clients come and go */
	http_conn_broken(&((struct server_conn *)owner)->http);
}

static void on_sent(void *owner)
{
	http_conn_sent(&((struct server_conn *)owner)->http);
}

static void on_closed(void *owner)
{
	struct server_conn *conn = owner;
	conn->closed = true;
	consider_free(conn);
}

static const struct loop_conn_events events = {on_read, on_eof, on_broken, on_sent, on_closed};

static void tell_refused(struct http_server *server)
{
	uint64_t left_out;
	if (log_rate_take(&server->refused_lines, loop_now_ms(server->loop), &left_out))
		log_warn("a connection is refused: there are http.connections_max (%u); %llu were "
			 "since this was last said",
			 server->core.limits.connections_max, (unsigned long long)left_out);
}

static void on_accept(void *owner, struct loop_conn *loop)
{
	struct http_server *server = owner;
	bool refused = server->conn_count >= server->core.limits.connections_max;
	stat_add(refused ? STAT_http_refused : STAT_http_accepted, 1);
	if (refused)
		tell_refused(server);
	if (refused && server->refused_count >= REFUSED_MAX) {
		loop_conn_close(loop);
		return;
	}
	struct server_conn *conn = mem_zalloc(sizeof(*conn));
	conn->server = server;
	conn->loop = loop;
	conn->step.run = run_step;
	conn->refused = refused;
	http_conn_init(&conn->http, &server->core, &transport);
	add_conn(server, conn);
	loop_conn_start(loop, &events, conn);
	if (refused)
		http_conn_refuse_busy(&conn->http);
}

static void on_tick(void *owner)
{
	struct http_server *server = owner;
	/* Closing takes a connection off the list only later, in its closed event. */
	for (struct server_conn *conn = server->conns; conn; conn = conn->next)
		http_conn_tick(&conn->http);
	server->ticking = server->conns;
	if (!server->conns)
		loop_timer_stop(server->tick);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static uint64_t tick_for(const struct http_limits *limits)
{
	int64_t shortest = limits->header_timeout_ms;
	if (limits->idle_timeout_ms < shortest)
		shortest = limits->idle_timeout_ms;
	if (limits->body_timeout_ms < shortest)
		shortest = limits->body_timeout_ms;
	if (limits->write_timeout_ms < shortest)
		shortest = limits->write_timeout_ms;
	int64_t tick = shortest / TICKS_PER_DEADLINE;
	return (uint64_t)(tick < TICK_MIN_MS   ? TICK_MIN_MS
			  : tick > TICK_MAX_MS ? TICK_MAX_MS
					       : tick);
}

struct http_server *http_server_new(struct loop *loop, struct clock *clock,
				    const struct http_limits *limits,
				    const struct http_route *routes, size_t route_count,
				    void *context)
{
	struct http_server *server = mem_zalloc(sizeof(*server));
	server->loop = loop;
	server->refused_lines.lines_max = 1;
	http_core_init(&server->core, clock, limits, routes, route_count, context);
	server->tick = loop_timer_new(loop, on_tick, server);
	server->tick_ms = tick_for(limits);
	return server;
}

int http_server_listen(struct http_server *server, const struct loop_address *address,
		       struct errbuf *e)
{
	if (server->listener_count == LISTENERS_MAX)
		return errbuf_set(e, ERR_LIMIT, "there are %d addresses already", LISTENERS_MAX);
	int err = loop_listen(server->loop, address, on_accept, server,
			      &server->listeners[server->listener_count], e);
	if (!err)
		server->listener_count++;
	return err;
}

struct loop_address http_server_address(const struct http_server *server)
{
	ASSERT(server->listener_count);
	return loop_listener_address(server->listeners[server->listener_count - 1]);
}

static void close_listeners(struct http_server *server)
{
	while (server->listener_count)
		loop_listener_close(server->listeners[--server->listener_count]);
}

static void grace_over(void *owner)
{
	struct http_server *server = owner;
	for (struct server_conn *conn = server->conns; conn; conn = conn->next)
		http_conn_close(&conn->http);
}

void http_server_stop(struct http_server *server, int64_t grace_ms, void (*done)(void *owner),
		      void *owner)
{
	ASSERT(!server->core.stopping);
	server->core.stopping = true;
	server->stopped = done;
	server->stopped_owner = owner;
	close_listeners(server);
	for (struct server_conn *conn = server->conns; conn; conn = conn->next)
		http_conn_stop(&conn->http);
	server->grace = loop_timer_new(server->loop, grace_over, server);
	loop_timer_start(server->grace, (uint64_t)grace_ms, 0);
	consider_stopped(server);
}

void http_server_free(struct http_server *server)
{
	ASSERT(!server->conns);
	close_listeners(server);
	loop_timer_close(server->tick);
	loop_timer_close(server->grace);
	http_core_release(&server->core);
	mem_free(server);
}
