/* A connection:
 *
 *     GATHER --whole lines--> WAIT --ingest has room--> WRITE --durable--> GATHER
 *       |                      ^                          |
 *       |                      +------- REST <------------+ the store is busy
 *       +--end, all is stored--> CLOSED
 *
 * After a REST it looks again at what it has, as in GATHER. It reads in GATHER only. What it
 * gathers in `in` stays there until it is durable. */
#include "ingest/tcp_listener.h"

#include "base/log.h"
#include "base/stats.h"
#include "http/http.h"
#include "ingest/listener_stop.h"

enum {
	/* A line that is still open when it is as long as it may be, with a text of many lines
	 * before it, and what one read adds. */
	IN_MAX_BYTES = 2 * LINE_MAX_BYTES + LOOP_READ_BYTES,
	IN_KEPT_BYTES = 16 << 10, /* a buffer that is empty and larger is given back */
	ANSWERS_MAX_BYTES = 64 << 10,
	TICK_MS = 100,
	REST_MIN_MS = 100,
	REST_MAX_MS = 5000,
	ANSWERS_PER_TICK_MAX_BYTES = 64 << 10,
};

enum tcp_listener_phase { TCP_GATHER, TCP_WAIT, TCP_WRITE, TCP_REST, TCP_CLOSED };

/* How the bytes at the front of `in` are taken. */
enum tcp_listener_batch {
	BATCH_LINES,    /* the whole lines are taken */
	BATCH_LAST,     /* the same, and a text that is still open then is bad */
	BATCH_TOO_LONG, /* a line without an end is refused, with what will follow of it */
	BATCH_UNENDED,  /* the same, and nothing will follow */
};

struct tcp_listener_conn {
	struct tcp_listener *listener;
	struct loop_conn *loop;
	enum tcp_listener_phase phase;
	struct buf in;
	size_t whole;      /* bytes of `in` up to the last newline */
	size_t tried;      /* of these, found to end in an open text */
	bool skipping;     /* up to the next newline */
	bool ended;        /* nothing more comes */
	bool known;        /* its first line has been looked at */
	uint64_t line;     /* number of the first line in `in` */
	int64_t active_ms; /* when bytes came last */
	int64_t rest_ms, rest_until_ms;
	/* The present batch. */
	enum tcp_listener_batch batch;
	struct ingest_request *r;
	size_t taken; /* bytes of `in` that go when it is durable */
	size_t tail;  /* whole lines after these, which end in an open text */
	uint64_t next_line;
	struct tcp_listener_conn *next, **link;
};

struct tcp_listener {
	struct tcp_listener_options options;
	struct loop_listener *socket;
	struct loop_timer *tick;
	struct tcp_listener_conn *conns;
	size_t conn_count;
	struct log_rate refused_lines, stranger_lines, outsider_lines;
	struct stopping stopping;
};

static void tcp_listener_step(struct tcp_listener_conn *conn);

static int64_t tcp_listener_now_ms(const struct tcp_listener *listener)
{
	return loop_now_ms(listener->options.loop);
}

/* ---- The end of connections ----------------------------------------------------------------- */

static void tcp_listener_consider_stopped(struct tcp_listener *listener)
{
	if (listener->stopping.begun && !listener->conns)
		stopping_end(&listener->stopping);
}

static void tcp_listener_close_conn(struct tcp_listener_conn *conn)
{
	if (conn->phase == TCP_CLOSED)
		return;
	conn->phase = TCP_CLOSED;
	if (conn->r)
		ingest_request_abandon(conn->r);
	conn->r = NULL;
	stat_add(STAT_tcp_lost_bytes, (int64_t)conn->in.len);
	loop_conn_close(conn->loop);
}

static void tcp_listener_on_closed(void *owner)
{
	struct tcp_listener_conn *conn = owner;
	struct tcp_listener *listener = conn->listener;
	*conn->link = conn->next;
	if (conn->next)
		conn->next->link = conn->link;
	listener->conn_count--;
	stat_add(STAT_tcp_connections, -1);
	stat_add(STAT_tcp_memory_bytes, -(int64_t)conn->in.len);
	buf_release(&conn->in);
	mem_free(conn);
	tcp_listener_consider_stopped(listener);
}

/* ---- Answers -------------------------------------------------------------------------------- */

/* Gives how long it was. */
static size_t tcp_listener_answer(struct tcp_listener_conn *conn, struct buf *out)
{
	struct slice piece = buf_slice(out);
	if (piece.len && loop_conn_unsent(conn->loop) + piece.len <= ANSWERS_MAX_BYTES)
		loop_conn_write(conn->loop, &piece, 1);
	else if (piece.len)
		stat_add(STAT_tcp_answers_dropped, 1);
	buf_release(out);
	return piece.len;
}

static void tcp_listener_answer_refusals(struct tcp_listener_conn *conn,
					 const struct ingest_request *r)
{
	const struct listener_protocol *protocol = conn->listener->options.protocol;
	struct buf out;
	if (!r->refused)
		return;
	if (!protocol->tell_refusals) {
		listener_protocol_log_refusals(protocol, r);
		return;
	}
	buf_init(&out, ANSWERS_MAX_BYTES);
	protocol->tell_refusals(r, &out);
	tcp_listener_answer(conn, &out);
}

/* ---- What is gathered ----------------------------------------------------------------------- */

static void tcp_listener_consume(struct tcp_listener_conn *conn, size_t bytes)
{
	buf_consume(&conn->in, bytes);
	stat_add(STAT_tcp_memory_bytes, -(int64_t)bytes);
	conn->whole = conn->whole > bytes ? conn->whole - bytes : 0;
	if (conn->in.len || conn->in.cap <= IN_KEPT_BYTES)
		return;
	buf_release(&conn->in);
	buf_init(&conn->in, IN_MAX_BYTES);
}

static void tcp_listener_gather(struct tcp_listener_conn *conn, struct slice bytes)
{
	int err = buf_append(&conn->in, bytes.data, bytes.len);
	ASSERT(!err); /* `in` holds at most an open line before a read */
	stat_add(STAT_tcp_memory_bytes, (int64_t)bytes.len);
	const char *newline = memrchr(bytes.data, '\n', bytes.len);
	if (newline)
		conn->whole = conn->in.len - (size_t)(bytes.data + bytes.len - (newline + 1));
}

/* The rest of a line that was too long. */
static void tcp_listener_skip(struct tcp_listener_conn *conn, struct slice *bytes)
{
	const char *newline = memchr(bytes->data, '\n', bytes->len);
	size_t n = newline ? (size_t)(newline - bytes->data) + 1 : bytes->len;
	*bytes = (struct slice){bytes->data + n, bytes->len - n};
	if (!newline)
		return;
	conn->skipping = false;
	conn->line++;
}

static void tcp_listener_on_read(void *owner, struct slice bytes)
{
	struct tcp_listener_conn *conn = owner;
	conn->active_ms = tcp_listener_now_ms(conn->listener);
	stat_add(STAT_tcp_received_bytes, (int64_t)bytes.len);
	if (conn->skipping)
		tcp_listener_skip(conn, &bytes);
	if (bytes.len)
		tcp_listener_gather(conn, bytes);
	tcp_listener_step(conn);
}

/* ---- Batches -------------------------------------------------------------------------------- */

static void tcp_listener_feed(struct tcp_listener_conn *conn)
{
	const struct tcp_listener_options *options = &conn->listener->options;
	struct listener_lines lines = {.r = conn->r,
				       .tenant = options->tenant,
				       .precision = options->precision,
				       .line_max_bytes = options->line_max_bytes,
				       .bytes = {conn->in.data, conn->whole},
				       .last = conn->batch == BATCH_LAST,
				       .line = conn->line};
	options->protocol->feed(&lines);
	conn->taken = lines.taken;
	conn->tail = lines.open;
	conn->next_line = lines.line;
}

static void tcp_listener_refuse_rest(struct tcp_listener_conn *conn)
{
	bool unended = conn->batch == BATCH_UNENDED;
	struct ingest_place place = {conn->line, 1};
	if (unended)
		ingest_refuse(conn->r, place, INGEST_SYNTAX, (struct slice){0},
			      "the line does not end before the connection does");
	else
		ingest_refuse(conn->r, place, INGEST_TOO_LONG, (struct slice){0},
			      "the line is longer than %zu bytes",
			      conn->listener->options.line_max_bytes);
	conn->taken = conn->in.len;
	conn->tail = 0;
	conn->next_line = conn->line;
	conn->skipping = !unended;
}

static void tcp_listener_run_batch(struct tcp_listener_conn *conn)
{
	conn->phase = TCP_WRITE;
	if (conn->batch == BATCH_TOO_LONG || conn->batch == BATCH_UNENDED)
		tcp_listener_refuse_rest(conn);
	else
		tcp_listener_feed(conn);
	ingest_request_end(conn->r);
}

/* Until the next tick, or a later one. */
static void tcp_listener_rest_until(struct tcp_listener_conn *conn, int64_t until_ms)
{
	loop_conn_read(conn->loop, 0);
	conn->phase = TCP_REST;
	conn->rest_until_ms = until_ms;
}

static void tcp_listener_rest(struct tcp_listener_conn *conn)
{
	stat_add(STAT_tcp_retries, 1);
	conn->rest_ms = conn->rest_ms ? 2 * conn->rest_ms : REST_MIN_MS;
	if (conn->rest_ms > REST_MAX_MS)
		conn->rest_ms = REST_MAX_MS;
	tcp_listener_rest_until(conn, tcp_listener_now_ms(conn->listener) + conn->rest_ms);
}

static void tcp_listener_stored(struct tcp_listener_conn *conn)
{
	tcp_listener_consume(conn, conn->taken);
	conn->line = conn->next_line;
	conn->tried = conn->tail;
	conn->rest_ms = 0;
	conn->active_ms = tcp_listener_now_ms(conn->listener);
	conn->phase = TCP_GATHER;
	tcp_listener_step(conn);
}

static void tcp_listener_on_done(struct ingest_request *r)
{
	struct tcp_listener_conn *conn = ingest_owner(r);
	int status = ingest_status(r);
	conn->r = NULL;
	if (status == 503 || status == 507) {
		tcp_listener_rest(conn);
	} else if (r->err) {
		log_error("closing a connection for lines: they cannot be stored: %s",
			  r->error.text);
		tcp_listener_close_conn(conn);
	} else {
		tcp_listener_answer_refusals(conn, r);
		tcp_listener_stored(conn);
	}
	ingest_request_free(r);
}

static void tcp_listener_on_resume(struct ingest_request *r)
{
	struct tcp_listener_conn *conn = ingest_owner(r);
	if (conn->phase == TCP_WAIT)
		tcp_listener_run_batch(conn);
}

static void tcp_listener_begin(struct tcp_listener_conn *conn, enum tcp_listener_batch batch)
{
	const struct ingest_door door = {.done = tcp_listener_on_done,
					 .resume = tcp_listener_on_resume,
					 .owner = conn,
					 .patient = true};
	loop_conn_read(conn->loop, 0);
	conn->batch = batch;
	conn->r = ingest_request_new(conn->listener->options.ingest, &door);
	conn->phase = TCP_WAIT;
	if (!ingest_request_must_pause(conn->r))
		tcp_listener_run_batch(conn);
}

/* ---- The first line ------------------------------------------------------------------------- */

static void tcp_listener_refuse_stranger(struct tcp_listener_conn *conn)
{
	struct tcp_listener *listener = conn->listener;
	stat_add(STAT_tcp_strangers, 1);
	log_rated(&listener->stranger_lines, tcp_listener_now_ms(listener), LOG_WARN,
		  "a connection of %s is closed: it begins with HTTP or another protocol, as "
		  "browsers and scanners do",
		  listener->options.protocol->name);
	tcp_listener_consume(conn, conn->in.len);
	tcp_listener_close_conn(conn);
}

/* ---- Steps ---------------------------------------------------------------------------------- */

/* One command; gives what its answer cost. */
static size_t tcp_listener_answer_command(struct tcp_listener_conn *conn, struct slice command)
{
	const struct tcp_listener_options *options = &conn->listener->options;
	struct buf out;
	bool over = false;
	buf_init(&out, ANSWERS_MAX_BYTES);
	/* Nobody waits for an answer when the server stops. */
	if (!conn->listener->stopping.begun)
		options->protocol->answer(command, clock_wall_ms(options->clock) / 1000, &out,
					  &over);
	conn->ended = conn->ended || over;
	conn->line++;
	return tcp_listener_answer(conn, &out);
}

/* Commands at the front are answered at once, since all before them is durable; but only some at a
 * time, since an answer costs more than its question. False: there are more. */
static bool tcp_listener_answer_commands(struct tcp_listener_conn *conn)
{
	const struct listener_protocol *protocol = conn->listener->options.protocol;
	struct slice rest = {conn->in.data, conn->whole}, command;
	size_t cost = 0;
	bool all = true, exits = false;
	while (rest.len && all && !exits && protocol->find_command(rest, &command)) {
		const char *end = memchr(command.data, '\n', rest.len);
		bool ended = conn->ended;
		cost += tcp_listener_answer_command(conn, command);
		exits = conn->ended && !ended;
		rest.len -= (size_t)(end + 1 - rest.data);
		rest.data = end + 1;
		all = cost <= ANSWERS_PER_TICK_MAX_BYTES;
	}
	tcp_listener_consume(conn, exits ? conn->in.len : conn->whole - rest.len);
	return all;
}

static void tcp_listener_step(struct tcp_listener_conn *conn)
{
	const struct tcp_listener_options *options = &conn->listener->options;
	if (conn->phase != TCP_GATHER)
		return;
	if (!conn->known && http_begins(buf_slice(&conn->in), options->line_max_bytes)) {
		tcp_listener_refuse_stranger(conn);
		return;
	}
	conn->known = conn->known || conn->whole || conn->in.len > options->line_max_bytes;
	if (options->protocol->find_command && !tcp_listener_answer_commands(conn)) {
		tcp_listener_rest_until(conn, 0);
		return;
	}
	bool over =
		conn->ended || (conn->listener->stopping.begun && !loop_conn_unread(conn->loop));
	bool full = conn->in.len > options->line_max_bytes;
	if (conn->whole > conn->tried)
		tcp_listener_begin(conn, BATCH_LINES);
	else if (conn->whole && (over || full))
		tcp_listener_begin(conn, BATCH_LAST);
	else if (conn->in.len && over)
		tcp_listener_begin(conn, BATCH_UNENDED);
	else if (full)
		tcp_listener_begin(conn, BATCH_TOO_LONG);
	else if (over)
		tcp_listener_close_conn(conn);
	else
		loop_conn_read(conn->loop, LOOP_READ_BYTES);
}

static void tcp_listener_on_eof(void *owner)
{
	struct tcp_listener_conn *conn = owner;
	conn->ended = true;
	tcp_listener_step(conn);
}

static void tcp_listener_on_broken(void *owner, int err)
{
	(void)err; /* what came before is stored all the same */
	tcp_listener_on_eof(owner);
}

static void tcp_listener_on_sent(void *owner)
{
	(void)owner;
}

static const struct loop_conn_events events = {tcp_listener_on_read, tcp_listener_on_eof,
					       tcp_listener_on_broken, tcp_listener_on_sent,
					       tcp_listener_on_closed};

static void tcp_listener_tick_conn(struct tcp_listener_conn *conn)
{
	const struct tcp_listener *listener = conn->listener;
	int64_t now = tcp_listener_now_ms(listener);
	if (conn->phase == TCP_REST && now >= conn->rest_until_ms) {
		conn->phase = TCP_GATHER;
		tcp_listener_step(conn);
	} else if (conn->phase == TCP_GATHER) {
		if (now - conn->active_ms >= listener->options.idle_timeout_ms) {
			stat_add(STAT_tcp_timeouts, 1);
			conn->ended = true;
		}
		if (conn->ended || listener->stopping.begun)
			tcp_listener_step(conn);
	}
}

static void tcp_listener_on_tick(void *owner)
{
	struct tcp_listener *listener = owner;
	/* Closing takes a connection off the list only later, in its closed event. */
	for (struct tcp_listener_conn *conn = listener->conns; conn; conn = conn->next)
		tcp_listener_tick_conn(conn);
	if (!listener->conns)
		loop_timer_stop(listener->tick);
}

static void tcp_listener_tell_refused(struct tcp_listener *listener)
{
	uint64_t left_out;
	if (log_rate_take(&listener->refused_lines, tcp_listener_now_ms(listener), &left_out))
		log_warn("closing a new connection of %s: tcp.connections_max (%zu) are open; "
			 "%llu more were closed since this was last logged",
			 listener->options.protocol->name, listener->options.connections_max,
			 (unsigned long long)left_out);
}

static void tcp_listener_on_accept(void *owner, struct loop_conn *loop)
{
	struct tcp_listener *listener = owner;
	struct loop_address peer = loop_conn_peer(loop);
	if (!listener_protocol_lets_in(listener->options.protocol, &listener->options.networks,
				       &peer, &listener->outsider_lines,
				       tcp_listener_now_ms(listener))) {
		loop_conn_close(loop);
		return;
	}
	if (listener->conn_count >= listener->options.connections_max) {
		stat_add(STAT_tcp_refused, 1);
		tcp_listener_tell_refused(listener);
		loop_conn_close(loop);
		return;
	}
	struct tcp_listener_conn *conn = mem_zalloc(sizeof(*conn));
	conn->listener = listener;
	conn->loop = loop;
	conn->line = 1;
	conn->active_ms = tcp_listener_now_ms(listener);
	buf_init(&conn->in, IN_MAX_BYTES);
	conn->next = listener->conns;
	conn->link = &listener->conns;
	if (conn->next)
		conn->next->link = &conn->next;
	else
		loop_timer_start(listener->tick, TICK_MS, TICK_MS);
	listener->conns = conn;
	listener->conn_count++;
	stat_add(STAT_tcp_accepted, 1);
	stat_add(STAT_tcp_connections, 1);
	loop_conn_start(loop, &events, conn);
}

/* ---- Life ----------------------------------------------------------------------------------- */

int tcp_listener_open(const struct tcp_listener_options *options, struct tcp_listener **out,
		      struct errbuf *e)
{
	ASSERT(options->line_max_bytes && options->line_max_bytes <= LINE_MAX_BYTES);
	struct tcp_listener *listener = mem_zalloc(sizeof(*listener));
	listener->options = *options;
	listener->refused_lines.lines_max = listener->stranger_lines.lines_max = 1;
	listener->outsider_lines.lines_max = 1;
	int err = loop_listen(options->loop, &options->address, tcp_listener_on_accept, listener,
			      &listener->socket, e);
	if (err) {
		mem_free(listener);
		return err;
	}
	listener->tick = loop_timer_new(options->loop, tcp_listener_on_tick, listener);
	*out = listener;
	return 0;
}

struct loop_address tcp_listener_address(const struct tcp_listener *listener)
{
	return loop_listener_address(listener->socket);
}

static void tcp_listener_on_grace_over(void *owner)
{
	struct tcp_listener *listener = owner;
	for (struct tcp_listener_conn *conn = listener->conns; conn; conn = conn->next)
		tcp_listener_close_conn(conn);
}

void tcp_listener_stop(struct tcp_listener *listener, int64_t grace_ms, void (*done)(void *owner),
		       void *owner)
{
	stopping_begin(&listener->stopping, listener->options.loop, grace_ms,
		       tcp_listener_on_grace_over, listener, done, owner);
	loop_listener_close(listener->socket);
	listener->socket = NULL;
	for (struct tcp_listener_conn *conn = listener->conns; conn; conn = conn->next)
		tcp_listener_step(conn);
	tcp_listener_consider_stopped(listener);
}

void tcp_listener_free(struct tcp_listener *listener)
{
	ASSERT(!listener->conns);
	loop_listener_close(listener->socket);
	loop_timer_close(listener->tick);
	stopping_release(&listener->stopping);
	mem_free(listener);
}
