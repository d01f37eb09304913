/* The server: listeners, connections on the loop, and the clock that cuts them.
 *
 * One timer looks at the deadlines of all connections; with a thousand of them and a few looks a
 * second that is cheaper than moving a timer with every read. It rests while there are none. */
#include "http/conn.h"

#include "base/hash.h"
#include "base/log.h"
#include "base/random.h"
#include "base/stats.h"
#include "loop/tls.h"

enum {
	LISTENERS_MAX = SITE_ADDRESSES_MAX + 1, /* and the socket for commands */
	PATH_OWN_MODE = 0600,
	PATH_SHARED_MODE = 0660,
	SPARES_MAX = 16, /* beyond the connections: see http_conn_is_spare() */
	ADDRESS_SLOTS = 4096,
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
	bool has_place;  /* counted among the connections, or the spare ones */
	uint16_t slot;   /* of its address */
	int64_t seen_us; /* the request that it had when its place was last wanted */
	struct server_conn *older, *newer;
};

struct server_listener {
	struct http_server *server;
	struct loop_listener *loop;
	bool is_path, is_for_commands, speaks_tls;
};

struct http_server {
	struct loop *loop;
	struct http_core core;
	struct server_listener listeners[LISTENERS_MAX];
	size_t listener_count;
	/* By age, but one that had a request since its place was last wanted is as good as new. */
	struct server_conn *oldest, *newest;
	unsigned conn_count, spare_count;
	unsigned per_slot[ADDRESS_SLOTS]; /* connections by the hash of their address */
	uint64_t seed;
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

static void http_server_run_stopped(struct task *task)
{
	struct http_server *server = CONTAINER_OF(task, struct http_server, stopped_task);
	server->stopped(server->stopped_owner);
}

/* The owner is told by a task, so that it may free the server. */
static void http_server_consider_stopped(struct http_server *server)
{
	if (!server->core.stopping || server->oldest || server->stopped_task.run)
		return;
	loop_timer_close(server->grace);
	server->grace = NULL;
	server->stopped_task.run = http_server_run_stopped;
	loop_executor(server->loop)->post(loop_executor(server->loop), &server->stopped_task);
}

static void link_newest(struct http_server *server, struct server_conn *conn)
{
	conn->older = server->newest;
	conn->newer = NULL;
	if (conn->older)
		conn->older->newer = conn;
	else
		server->oldest = conn;
	server->newest = conn;
}

static void unlink_conn(struct http_server *server, struct server_conn *conn)
{
	if (conn->older)
		conn->older->newer = conn->newer;
	else
		server->oldest = conn->newer;
	if (conn->newer)
		conn->newer->older = conn->older;
	else
		server->newest = conn->older;
}

static void take_place(struct http_server *server, struct server_conn *conn)
{
	conn->has_place = true;
	if (conn->http.spare) {
		server->spare_count++;
		return;
	}
	server->per_slot[conn->slot]++;
	stat_set(STAT_http_connections, ++server->conn_count);
}

static void give_place(struct http_server *server, struct server_conn *conn)
{
	if (!conn->has_place)
		return;
	conn->has_place = false;
	if (conn->http.spare) {
		server->spare_count--;
		return;
	}
	server->per_slot[conn->slot]--;
	stat_set(STAT_http_connections, --server->conn_count);
}

static void add_conn(struct http_server *server, struct server_conn *conn)
{
	link_newest(server, conn);
	take_place(server, conn);
	if (!server->ticking)
		loop_timer_start(server->tick, server->tick_ms, server->tick_ms);
	server->ticking = true;
}

/* The socket is gone; a step may still be on its way. */
static void consider_free(struct server_conn *conn)
{
	struct http_server *server = conn->server;
	if (!conn->closed || conn->step_posted)
		return;
	unlink_conn(server, conn);
	give_place(server, conn);
	http_conn_release(&conn->http);
	mem_free(conn);
	http_server_consider_stopped(server);
}

static void http_server_run_step(struct task *task)
{
	struct server_conn *conn = CONTAINER_OF(task, struct server_conn, step);
	conn->step_posted = false;
	if (conn->closed)
		consider_free(conn);
	else
		http_conn_step(&conn->http);
}

static void http_server_on_read(void *owner, struct slice bytes)
{
	http_conn_input(&((struct server_conn *)owner)->http, bytes);
}

static void http_server_on_eof(void *owner)
{
	http_conn_eof(&((struct server_conn *)owner)->http);
}

static void http_server_on_broken(void *owner, int err)
{
	(void)err; /* clients come and go */
	http_conn_broken(&((struct server_conn *)owner)->http);
}

static void http_server_on_sent(void *owner)
{
	http_conn_sent(&((struct server_conn *)owner)->http);
}

static void http_server_on_closed(void *owner)
{
	struct server_conn *conn = owner;
	conn->closed = true;
	consider_free(conn);
}

static const struct loop_conn_events events = {http_server_on_read, http_server_on_eof,
					       http_server_on_broken, http_server_on_sent,
					       http_server_on_closed};

/* ---- Places ----------------------------------------------------------------------------------
 *
 * When all places are taken, of the server or of one address, a new connection has that of the one
 * that has waited longest for a request: so silent connections, however many, shut out nobody.
 * Where all are busy a few spare places are left, for the routes that tell how the server is. */

static void tell_full(struct http_server *server, const char *what)
{
	log_rated(
		&server->refused_lines, loop_now_ms(server->loop), LOG_WARN,
		"%s: there are as many connections as http.connections_max (%u), or of one address "
		"as many as http.connections_per_address (%u)",
		what, server->core.limits.connections_max, server->core.limits.per_address_max);
}

/* Addresses of one hash share their bound. Of IPv6 a client has a whole /64. */
static uint16_t http_server_slot_of(const struct http_server *server,
				    const struct loop_address *peer)
{
	size_t len = peer->v6 ? 8 : 4;
	return (uint16_t)(hash64(peer->bytes, len, server->seed) % ADDRESS_SLOTS);
}

/* Whether it is closed; one that was of use since the last time is spared once. */
static bool lets_go(struct http_server *server, struct server_conn *conn)
{
	/* One that has come a moment ago may have sent what is not read yet. */
	bool of_use =
		conn->http.phase == PHASE_HEAD &&
		(conn->http.request.begun_us != conn->seen_us || loop_conn_unread(conn->loop));
	conn->seen_us = conn->http.request.begun_us;
	if (of_use || !http_conn_may_go(&conn->http)) {
		unlink_conn(server, conn);
		link_newest(server, conn);
		return false;
	}
	stat_add(STAT_http_evicted, 1);
	give_place(server, conn);
	http_conn_close(&conn->http);
	return true;
}

/* Closes one of that kind, and of that slot unless it is -1. */
static bool http_server_make_room(struct http_server *server, bool spare, int slot)
{
	unsigned looks = 2 * (server->conn_count + server->spare_count);
	struct server_conn *conn = server->oldest;
	while (conn && looks--) {
		struct server_conn *newer = conn->newer;
		if (conn->has_place && conn->http.spare == spare &&
		    (slot < 0 || conn->slot == slot) && lets_go(server, conn)) {
			tell_full(server, "the connection that was idle longest is closed for a "
					  "new one");
			return true;
		}
		conn = newer ? newer : server->oldest;
	}
	return false;
}

/* Through a trusted proxy come many clients, for which the bound of one address is not meant. */
static bool http_server_has_room(struct http_server *server, uint16_t slot, bool trusted)
{
	const struct http_limits *limits = &server->core.limits;
	bool address_full = limits->per_address_max && !trusted &&
			    server->per_slot[slot] >= limits->per_address_max;
	if (address_full)
		return http_server_make_room(server, false, slot);
	return server->conn_count < limits->connections_max ||
	       http_server_make_room(server, false, -1);
}

static bool http_server_trusts(const struct server_listener *listener,
			       const struct loop_address *peer)
{
	const struct http_outside *outside = listener->server->core.limits.outside;
	if (!outside || listener->is_for_commands)
		return false;
	return listener->is_path ? outside->proxies_on_paths
				 : loop_networks_have(&outside->proxies, peer);
}

static const struct loop_address server_this_machine = {.bytes = {127, 0, 0, 1}, .of_path = true};

static void http_server_on_accept(void *owner, struct loop_conn *loop)
{
	const struct server_listener *listener = owner;
	struct http_server *server = listener->server;
	struct loop_address peer = listener->is_path ? server_this_machine : loop_conn_peer(loop);
	uint16_t slot = http_server_slot_of(server, &peer);
	bool trusted = http_server_trusts(listener, &peer);
	bool spare = !http_server_has_room(server, slot, trusted);
	if (spare) {
		stat_add(STAT_http_refused, 1);
		tell_full(server, "there is no place for a connection");
	}
	if (spare && server->spare_count >= SPARES_MAX &&
	    !http_server_make_room(server, true, -1)) {
		loop_conn_close(loop);
		return;
	}
	stat_add(STAT_http_accepted, 1);
	struct server_conn *conn = mem_zalloc(sizeof(*conn));
	conn->server = server;
	conn->loop = loop;
	conn->slot = slot;
	conn->step.run = http_server_run_step;
	http_conn_init(&conn->http, &server->core, &transport);
	conn->http.peer = peer;
	conn->http.secure = loop_conn_speaks_tls(loop);
	conn->http.trusted = trusted;
	conn->http.has_uid =
		listener->is_for_commands && !loop_conn_peer_uid(loop, &conn->http.peer_uid);
	if (spare)
		http_conn_is_spare(&conn->http);
	add_conn(server, conn);
	loop_conn_start(loop, &events, conn);
}

static void http_server_on_tick(void *owner)
{
	struct http_server *server = owner;
	/* Closing takes a connection off the list only later, in its closed event. */
	for (struct server_conn *conn = server->oldest; conn; conn = conn->newer)
		http_conn_tick(&conn->http);
	server->ticking = server->oldest;
	if (!server->oldest)
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
	server->seed = random_system_seed();
	http_core_init(&server->core, clock, limits, routes, route_count, context);
	server->tick = loop_timer_new(loop, http_server_on_tick, server);
	server->tick_ms = tick_for(limits);
	return server;
}

void http_server_set_guard(struct http_server *server, struct http_guard *guard)
{
	ASSERT(!server->listener_count);
	server->core.guard = guard;
}

/* NULL with a sentence: there is no room. It counts when it is open. */
static struct server_listener *server_next_listener(struct http_server *server, struct errbuf *e)
{
	struct server_listener *next = &server->listeners[server->listener_count];
	if (server->listener_count == LISTENERS_MAX) {
		errbuf_set(e, ERR_LIMIT, "there are %d addresses already", LISTENERS_MAX);
		return NULL;
	}
	*next = (struct server_listener){.server = server};
	return next;
}

int http_server_listen(struct http_server *server, const struct loop_address *address,
		       struct errbuf *e)
{
	struct server_listener *listener = server_next_listener(server, e);
	int err = !listener ? ERR_LIMIT
			    : loop_listen(server->loop, address, http_server_on_accept, listener,
					  &listener->loop, e);
	if (err)
		return err;
	struct loop_address bound = loop_listener_address(listener->loop);
	server->listener_count++;
	site_listens(&server->core.site, &bound);
	return 0;
}

int http_server_listen_tls(struct http_server *server, const struct loop_address *address,
			   const struct loop_tls *tls, struct errbuf *e)
{
	int err = http_server_listen(server, address, e);
	if (err)
		return err;
	struct server_listener *listener = &server->listeners[server->listener_count - 1];
	listener->speaks_tls = true;
	loop_listener_speak_tls(listener->loop, tls);
	return 0;
}

int http_server_listen_path(struct http_server *server, const char *path, enum http_path_use use,
			    struct errbuf *e)
{
	bool own = use == HTTP_FOR_COMMANDS;
	struct server_listener *listener = server_next_listener(server, e);
	int err = !listener ? ERR_LIMIT
			    : loop_listen_path(server->loop, path,
					       own ? PATH_OWN_MODE : PATH_SHARED_MODE,
					       http_server_on_accept, listener, &listener->loop, e);
	if (err)
		return err;
	listener->is_path = true;
	listener->is_for_commands = own;
	server->listener_count++;
	return 0;
}

void http_server_renew_tls(struct http_server *server, const struct loop_tls *tls)
{
	for (size_t i = 0; i < server->listener_count; i++) {
		if (server->listeners[i].speaks_tls)
			loop_listener_speak_tls(server->listeners[i].loop, tls);
	}
}

/* The other limits are those of buffers that are there. */
void http_server_set_limits(struct http_server *server, const struct http_limits *limits)
{
	struct http_limits *mine = &server->core.limits;
	mine->connections_max = limits->connections_max;
	mine->per_address_max = limits->per_address_max;
	mine->header_timeout_ms = limits->header_timeout_ms;
	mine->idle_timeout_ms = limits->idle_timeout_ms;
	mine->body_timeout_ms = limits->body_timeout_ms;
	mine->write_timeout_ms = limits->write_timeout_ms;
	server->tick_ms = tick_for(mine);
	if (server->ticking)
		loop_timer_start(server->tick, server->tick_ms, server->tick_ms);
}

struct loop_address http_server_address(const struct http_server *server)
{
	size_t last = server->listener_count;
	while (last && server->listeners[last - 1].is_path)
		last--;
	ASSERT(last);
	return loop_listener_address(server->listeners[last - 1].loop);
}

static void close_listeners(struct http_server *server)
{
	while (server->listener_count)
		loop_listener_close(server->listeners[--server->listener_count].loop);
}

static void grace_over(void *owner)
{
	struct http_server *server = owner;
	for (struct server_conn *conn = server->oldest; conn; conn = conn->newer)
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
	for (struct server_conn *conn = server->oldest; conn; conn = conn->newer)
		http_conn_stop(&conn->http);
	server->grace = loop_timer_new(server->loop, grace_over, server);
	loop_timer_start(server->grace, (uint64_t)grace_ms, 0);
	http_server_consider_stopped(server);
}

void http_server_free(struct http_server *server)
{
	ASSERT(!server->oldest);
	close_listeners(server);
	loop_timer_close(server->tick);
	loop_timer_close(server->grace);
	http_core_release(&server->core);
	mem_free(server);
}
