#include "agent/control_door.h"

#include "base/stats.h"
#include "http/http.h"

enum {
	CONTROL_DOOR_IN_MAX_BYTES = CHUKWA_LINE_MAX_BYTES + LOOP_READ_BYTES,
	CONTROL_DOOR_TICK_MS = 1000,
	CONTROL_DOOR_MODE = 0600, /* of its socket: only its owner's commands are taken */
	CONTROL_DOOR_LOGS_A_MINUTE = 6,
	CONTROL_DOOR_UNSENT_MAX_BYTES = 16 << 20, /* of all connections, before a reply */
};

struct control_conn {
	struct control_door *door;
	struct loop_conn *loop;
	struct buf in;
	int64_t active_ms; /* when a line came last */
	bool by_port;      /* not by the socket that is the agent's user's */
	bool known;        /* its first line has been looked at */
	bool ended;        /* nothing more comes */
	bool closing;      /* nothing more is done; it is closed when what it was told has gone */
	bool closed;
	struct control_conn *next, **link;
};

struct control_door {
	struct control_door_options options;
	struct loop_listener *listeners[2];
	size_t listener_count;
	struct loop_timer *tick;
	struct control_conn *conns;
	size_t conn_counts[2]; /* by the socket, by the port: nobody takes those of the other */
	struct log_rate refusals;
	void (*done)(void *owner); /* NULL: it is open */
	void *owner;
};

/* ---- The end --------------------------------------------------------------------------------- */

static void control_door_consider_closed(struct control_door *door)
{
	if (!door->done || door->conns)
		return;
	void (*done)(void *owner) = door->done;
	void *owner = door->owner;
	loop_timer_close(door->tick);
	mem_free(door);
	done(owner);
}

static void control_conn_close(struct control_conn *conn)
{
	if (!conn->closed)
		loop_conn_close(conn->loop);
	conn->closed = true;
}

static void control_conn_on_closed(void *owner)
{
	struct control_conn *conn = owner;
	struct control_door *door = conn->door;
	*conn->link = conn->next;
	if (conn->next)
		conn->next->link = conn->link;
	door->conn_counts[conn->by_port]--;
	buf_release(&conn->in);
	mem_free(conn);
	control_door_consider_closed(door);
}

static void control_door_tell(struct control_door *door, const char *why)
{
	log_rated(&door->refusals, loop_now_ms(door->options.loop), LOG_WARN,
		  "a connection for the agent's control is closed: %s", why);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static void control_conn_say(struct control_conn *conn, struct slice text)
{
	loop_conn_write(conn->loop, &text, 1);
}

/* True: so many replies wait for those who asked for them that nothing more is done. */
static bool control_conn_is_too_much(struct control_conn *conn)
{
	size_t unsent = 0;
	for (const struct control_conn *c = conn->door->conns; c; c = c->next)
		unsent += c->closed ? 0 : loop_conn_unsent(c->loop);
	if (unsent < CONTROL_DOOR_UNSENT_MAX_BYTES)
		return false;
	stat_add(STAT_agent_control_unsent, 1);
	control_door_tell(conn->door, "replies to others have not been taken yet");
	control_conn_say(conn, SLICE("FAIL: replies to others have not been taken yet\n"));
	conn->closing = true;
	return true;
}

static void control_conn_answer(struct control_conn *conn, struct slice line)
{
	struct buf out;
	if (control_conn_is_too_much(conn))
		return;
	buf_init(&out, CONTROL_REPLY_MAX_BYTES);
	conn->active_ms = loop_now_ms(conn->door->options.loop);
	conn->door->options.control->by_port = conn->by_port;
	conn->closing = !control_answer(conn->door->options.control, line, &out);
	if (out.failed)
		control_conn_say(conn, SLICE("FAIL: the reply is too long\n"));
	else
		control_conn_say(conn, buf_slice(&out));
	buf_release(&out);
}

/* True: it begins with another protocol, and is closed. */
static bool control_conn_is_stranger(struct control_conn *conn)
{
	if (conn->known || !http_begins(buf_slice(&conn->in), CHUKWA_LINE_MAX_BYTES))
		return false;
	stat_add(STAT_agent_control_strangers, 1);
	control_door_tell(conn->door, "it begins with HTTP or another protocol, as those of "
				      "browsers and scanners do");
	control_conn_close(conn);
	return true;
}

static void control_conn_refuse_line(struct control_conn *conn)
{
	stat_add(STAT_agent_control_long, 1);
	control_door_tell(conn->door, "a line of it is too long");
	control_conn_say(conn, SLICE("FAIL: a line has more than 8192 bytes\n"));
	conn->closing = true;
}

/* Answers lines for as long as replies are taken. */
static void control_conn_step(struct control_conn *conn)
{
	struct slice text = buf_slice(&conn->in), line;
	if (conn->closed || control_conn_is_stranger(conn))
		return;
	while (!conn->closing && !loop_conn_unsent(conn->loop)) {
		size_t before = text.len;
		if (!before || !memchr(text.data, '\n', before) ||
		    !slice_take_text_line(&text, &line))
			break;
		conn->known = true;
		if (line.len > CHUKWA_LINE_MAX_BYTES)
			control_conn_refuse_line(conn);
		else
			control_conn_answer(conn, line);
		buf_consume(&conn->in, before - text.len);
		text = buf_slice(&conn->in);
	}
	if (!conn->closing && conn->in.len > CHUKWA_LINE_MAX_BYTES &&
	    !memchr(conn->in.data, '\n', conn->in.len))
		control_conn_refuse_line(conn);
	bool unsent = loop_conn_unsent(conn->loop);
	/* What has no end when the connection has one may be half a command: it is not done. */
	if ((conn->closing || conn->ended) && !unsent)
		control_conn_close(conn);
	else
		loop_conn_read(conn->loop, unsent || conn->closing ? 0 : LOOP_READ_BYTES);
}

/* ---- Events ---------------------------------------------------------------------------------- */

static void control_conn_on_read(void *owner, struct slice bytes)
{
	struct control_conn *conn = owner;
	int err = buf_append(&conn->in, bytes.data, bytes.len);
	ASSERT(!err); /* nothing is read while more than a line waits */
	control_conn_step(conn);
}

static void control_conn_on_eof(void *owner)
{
	struct control_conn *conn = owner;
	conn->ended = true;
	control_conn_step(conn);
}

static void control_conn_on_broken(void *owner, UNUSED int err)
{
	control_conn_close(owner);
}

static void control_conn_on_sent(void *owner)
{
	control_conn_step(owner);
}

static const struct loop_conn_events control_conn_events = {
	control_conn_on_read, control_conn_on_eof, control_conn_on_broken, control_conn_on_sent,
	control_conn_on_closed};

static void control_door_accept(struct control_door *door, struct loop_conn *loop, bool by_port)
{
	if (door->conn_counts[by_port] >= CONTROL_DOOR_CONNS_MAX) {
		stat_add(STAT_agent_control_full, 1);
		control_door_tell(door, "as many are open as may be");
		loop_conn_close(loop);
		return;
	}
	struct control_conn *conn = mem_zalloc(sizeof(*conn));
	conn->door = door;
	conn->loop = loop;
	conn->by_port = by_port;
	conn->active_ms = loop_now_ms(door->options.loop);
	buf_init(&conn->in, CONTROL_DOOR_IN_MAX_BYTES);
	conn->next = door->conns;
	conn->link = &door->conns;
	if (conn->next)
		conn->next->link = &conn->next;
	door->conns = conn;
	door->conn_counts[by_port]++;
	loop_conn_start(loop, &control_conn_events, conn);
}

static void control_door_on_socket(void *owner, struct loop_conn *loop)
{
	control_door_accept(owner, loop, false);
}

static void control_door_on_port(void *owner, struct loop_conn *loop)
{
	control_door_accept(owner, loop, true);
}

static void control_door_on_tick(void *owner)
{
	struct control_door *door = owner;
	int64_t now_ms = loop_now_ms(door->options.loop);
	for (struct control_conn *conn = door->conns; conn; conn = conn->next) {
		if (conn->closed || now_ms - conn->active_ms < CONTROL_DOOR_IDLE_MS)
			continue;
		stat_add(STAT_agent_control_idle, 1);
		control_conn_close(conn);
	}
}

/* ---- Life ------------------------------------------------------------------------------------ */

static int control_door_listen(struct control_door *door, struct errbuf *e)
{
	const struct control_door_options *options = &door->options;
	const struct loop_address address = {.bytes = {127, 0, 0, 1}, .port = options->port};
	if (options->path) {
		int err = loop_listen_path(options->loop, options->path, CONTROL_DOOR_MODE,
					   control_door_on_socket, door, &door->listeners[0], e);
		if (err)
			return err;
		door->listener_count++;
	}
	if (!options->port)
		return 0;
	int err = loop_listen(options->loop, &address, control_door_on_port, door,
			      &door->listeners[door->listener_count], e);
	door->listener_count += !err;
	return err ? errbuf_prefix(e, err, "agent.control_port") : 0;
}

static void control_door_shut(struct control_door *door)
{
	for (size_t i = 0; i < door->listener_count; i++)
		loop_listener_close(door->listeners[i]);
	door->listener_count = 0;
}

int control_door_open(const struct control_door_options *options, struct control_door **out,
		      struct errbuf *e)
{
	struct control_door *door = mem_zalloc(sizeof(*door));
	door->options = *options;
	door->refusals.lines_max = CONTROL_DOOR_LOGS_A_MINUTE;
	int err = control_door_listen(door, e);
	if (err) {
		control_door_shut(door);
		mem_free(door);
		return err;
	}
	door->tick = loop_timer_new(options->loop, control_door_on_tick, door);
	loop_timer_start(door->tick, CONTROL_DOOR_TICK_MS, CONTROL_DOOR_TICK_MS);
	*out = door;
	return 0;
}

void control_door_close(struct control_door *door, void (*closed)(void *owner), void *owner)
{
	door->done = closed;
	door->owner = owner;
	control_door_shut(door);
	for (struct control_conn *conn = door->conns; conn; conn = conn->next)
		control_conn_close(conn);
	control_door_consider_closed(door);
}
