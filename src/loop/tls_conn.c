/* Connections that speak TLS, between the socket and the owner (loop/tls.h).
 *
 * From the socket: read event -> tls_conn_go_on() -> a step of the handshake, or pieces for the
 * owner. What is left of the bytes then is kept: because the owner rests, or because the handshake
 * waits for its turn. As long as bytes are kept nothing more is read, so that they are bounded by
 * one read. Whoever shall go on without the socket stands in one of two lines, which a task works
 * off: resuming ones all at once, those that shake hands so many a turn. */
#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/stats.h"
#include "loop/private.h"
#include "loop/tls_private.h"

enum {
	TLS_HELLO_READ_BYTES = 16 << 10,
	TLS_OUT_MAX_BYTES = 4 * TLS_FILE_MAX_BYTES, /* a handshake sends the chain at once */
	TLS_ANSWERS_MAX_BYTES = 16 << 10,
	TLS_LOGS_A_MINUTE = 6,
};

struct tls_line {
	struct tls_conn *first, *last;
};

struct tls_room {
	struct loop *loop;
	struct task task;
	bool posted;
	struct tls_line shaking, resuming;
	uint64_t turn;  /* of the loop, in which hands were last shaken, */
	unsigned steps; /* and how many steps that were */
	struct buf out; /* for the wire: empty between two calls */
	size_t record_len;
	char record[TLS_RECORD_BYTES]; /* small pieces that become one record */
	char plain[LOOP_READ_BYTES];   /* what an owner is given, until it returns */
	struct log_rate lines;
};

struct tls_conn {
	struct tls tls;
	struct loop_conn *conn;
	enum { TLS_SHAKING, TLS_OPEN, TLS_OVER } phase;
	int64_t handshake_ms;
	struct loop_timer *deadline; /* of the handshake */
	char *kept;                  /* where tls.in is; NULL: it is in the loop's read buffer */
	struct buf early;            /* of the owner, for after the handshake */
	bool ends_early;             /* so is its shutdown */
	bool heard;                  /* at least one byte */
	bool reading;                /* from the socket */
	bool going;                  /* in tls_conn_go_on: the owner calls from its events */
	bool called;                 /* its turn to shake hands has come */
	bool owes_sent;              /* something that the owner wrote could not go at once */
	size_t answers_bytes;        /* that the peer caused and has not taken */
	struct tls_line *line;       /* in which it stands; NULL: in none */
	struct tls_conn *before, *behind;
};

/* ---- Lines ----------------------------------------------------------------------------------- */

static void tls_line_leave(struct tls_conn *tc)
{
	struct tls_line *line = tc->line;
	if (!line)
		return;
	*(tc->before ? &tc->before->behind : &line->first) = tc->behind;
	*(tc->behind ? &tc->behind->before : &line->last) = tc->before;
	tc->line = NULL;
}

static void tls_room_post(struct tls_room *room)
{
	struct executor *executor = loop_executor(room->loop);
	if (!room->posted)
		executor->post(executor, &room->task);
	room->posted = true;
}

static void tls_line_join(struct tls_line *line, struct tls_conn *tc)
{
	if (tc->line)
		return;
	tc->line = line;
	tc->before = line->last;
	tc->behind = NULL;
	*(line->last ? &line->last->behind : &line->first) = tc;
	line->last = tc;
	tls_room_post(tc->conn->loop->tls);
}

static bool tls_room_has_step(struct tls_room *room)
{
	if (room->turn != room->loop->turns)
		room->steps = 0;
	room->turn = room->loop->turns;
	return room->steps < TLS_STEPS_A_TURN_MAX;
}

static void tls_conn_go_on(struct tls_conn *tc);

static void tls_room_run(struct task *task)
{
	struct tls_room *room = CONTAINER_OF(task, struct tls_room, task);
	struct tls_conn *tc, *last = room->resuming.last;
	room->posted = false;
	/* A connection that comes back to the end while this runs waits for the next task. */
	for (bool more = last; more && (tc = room->resuming.first);) {
		more = tc != last;
		tls_line_leave(tc);
		tls_conn_go_on(tc);
	}
	while ((tc = room->shaking.first) && tls_room_has_step(room)) {
		tls_line_leave(tc);
		tc->called = true;
		tls_conn_go_on(tc);
	}
	if (room->shaking.first || room->resuming.first)
		tls_room_post(room);
}

static struct tls_room *tls_room_of(struct loop *loop)
{
	if (loop->tls)
		return loop->tls;
	struct tls_room *room = mem_zalloc(sizeof(*room));
	room->loop = loop;
	room->task.run = tls_room_run;
	room->lines.lines_max = TLS_LOGS_A_MINUTE;
	buf_init(&room->out, TLS_OUT_MAX_BYTES);
	loop->tls = room;
	return room;
}

void tls_room_free(struct tls_room *room)
{
	if (!room)
		return;
	buf_release(&room->out);
	mem_free(room);
}

/* ---- The end --------------------------------------------------------------------------------- */

static const enum stat_id tls_fault_stats[TLS_FAULTS] = {
	[TLS_NOT_TLS] = STAT_tls_not_tls,   [TLS_PLAIN_HTTP] = STAT_tls_plain_http,
	[TLS_VERSION] = STAT_tls_version,   [TLS_CIPHER] = STAT_tls_cipher,
	[TLS_PROTOCOL] = STAT_tls_protocol, [TLS_CERTIFICATE] = STAT_tls_certificate,
	[TLS_REFUSED] = STAT_tls_refused,   [TLS_LEFT] = STAT_tls_left,
	[TLS_LATE] = STAT_tls_late,         [TLS_WRONG] = STAT_tls_wrong,
};

static void tls_conn_tell(const struct tls_conn *tc)
{
	const struct loop_conn *conn = tc->conn;
	char text[LOOP_ADDRESS_TEXT_BYTES];
	uid_t uid;
	bool is_shaking = tc->phase == TLS_SHAKING;
	/* Monitors look each second whether the port is open, and many clients go without a word.
	 */
	if (tc->tls.fault == TLS_LEFT && (!is_shaking || !tc->heard))
		return;
	log_rated(&conn->loop->tls->lines, loop_now_ms(conn->loop), LOG_WARN,
		  "%s with %s failed, and its connection is closed: %s",
		  is_shaking ? "a TLS handshake" : "TLS",
		  loop_conn_peer_uid(conn, &uid) ? loop_address_text(&conn->peer, text)
						 : "a process of this machine",
		  tc->tls.why);
}

/* Gives back what the connection holds, but for libssl's part, which may be at work. */
static void tls_conn_drop(struct tls_conn *tc)
{
	tls_line_leave(tc);
	loop_timer_close(tc->deadline);
	tc->deadline = NULL;
	mem_free(tc->kept);
	tc->kept = NULL;
	tc->tls.in.len = 0;
	buf_release(&tc->early);
	buf_init(&tc->early, UINT32_MAX);
	tc->phase = TLS_OVER;
}

static void tls_conn_flush(struct tls_conn *tc)
{
	struct buf *out = &tc->conn->loop->tls->out;
	loop_net_write(tc->conn, (struct slice[]){buf_slice(out)}, 1);
	buf_clear(out);
}

/* tls.fault and tls.why are set. */
static void tls_conn_fail(struct tls_conn *tc, int err)
{
	if (tc->phase == TLS_SHAKING)
		stat_add(tls_fault_stats[tc->tls.fault], 1);
	else
		stat_add(tc->tls.fault == TLS_LEFT ? STAT_tls_cut : STAT_tls_broken, 1);
	tls_conn_tell(tc);
	tls_conn_flush(tc); /* an alert */
	tls_conn_drop(tc);
	loop_net_fail(tc->conn, err);
}

void tls_conn_lost(struct loop_conn *conn, int err)
{
	if (conn->broken)
		return;
	tls_be_cut(&conn->tls->tls);
	tls_conn_fail(conn->tls, err);
}

static void tls_conn_on_deadline(void *owner)
{
	struct tls_conn *tc = owner;
	tls_be_late(&tc->tls);
	tls_conn_fail(tc, ERR_TIMEOUT);
}

void tls_conn_end(struct loop_conn *conn)
{
	if (conn->tls->phase == TLS_SHAKING && conn->events)
		stat_add(STAT_tls_given_up, 1);
	tls_conn_drop(conn->tls);
}

void tls_conn_free(struct tls_conn *tc)
{
	if (!tc)
		return;
	tls_release(&tc->tls);
	mem_free(tc);
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* A failure is told by the next step: here the owner is calling. */
static void tls_conn_put(struct tls_conn *tc, struct slice bytes)
{
	struct tls_room *room = tc->conn->loop->tls;
	if (tls_write(&tc->tls, bytes) != TLS_DONE)
		tls_line_join(&room->resuming, tc);
	if (room->out.len >= TLS_WRITE_MAX_BYTES)
		tls_conn_flush(tc);
}

/* Whole records from where they lie; what is smaller is gathered into one. */
static void tls_conn_put_piece(struct tls_conn *tc, struct slice piece)
{
	struct tls_room *room = tc->conn->loop->tls;
	while (piece.len) {
		size_t len = piece.len - piece.len % TLS_RECORD_BYTES;
		if (len > TLS_WRITE_MAX_BYTES)
			len = TLS_WRITE_MAX_BYTES;
		if (!len || room->record_len) {
			len = TLS_RECORD_BYTES - room->record_len;
			len = piece.len < len ? piece.len : len;
			memcpy(room->record + room->record_len, piece.data, len);
			room->record_len += len;
			if (room->record_len == TLS_RECORD_BYTES) {
				room->record_len = 0;
				tls_conn_put(tc, (struct slice){room->record, TLS_RECORD_BYTES});
			}
		} else {
			tls_conn_put(tc, (struct slice){piece.data, len});
		}
		piece = (struct slice){piece.data + len, piece.len - len};
	}
}

static void tls_conn_put_all(struct tls_conn *tc, const struct slice *pieces, size_t count)
{
	struct tls_room *room = tc->conn->loop->tls;
	for (size_t i = 0; i < count; i++)
		tls_conn_put_piece(tc, pieces[i]);
	if (room->record_len)
		tls_conn_put(tc, (struct slice){room->record, room->record_len});
	room->record_len = 0;
	tls_conn_flush(tc);
	if (loop_net_unsent(tc->conn))
		tc->owes_sent = true;
}

void tls_conn_write(struct loop_conn *conn, const struct slice *pieces, size_t count)
{
	struct tls_conn *tc = conn->tls;
	if (conn->broken || tc->phase == TLS_OVER)
		return;
	if (tc->phase == TLS_OPEN) {
		tls_conn_put_all(tc, pieces, count);
		return;
	}
	for (size_t i = 0; i < count; i++) {
		int err = buf_append(&tc->early, pieces[i].data, pieces[i].len);
		ASSERT(!err); /* whoever writes looks at what is unsent */
	}
}

size_t tls_conn_unsent(const struct loop_conn *conn)
{
	return conn->tls->early.len;
}

bool tls_conn_all_sent(struct loop_conn *conn)
{
	struct tls_conn *tc = conn->tls;
	bool owes_sent = tc->owes_sent;
	tc->owes_sent = false;
	tc->answers_bytes = 0;
	return owes_sent;
}

void tls_conn_shutdown(struct loop_conn *conn)
{
	struct tls_conn *tc = conn->tls;
	tc->ends_early = tc->phase == TLS_SHAKING;
	if (tc->ends_early)
		return;
	if (tc->phase == TLS_OPEN) {
		tls_end(&tc->tls);
		tls_conn_flush(tc);
	}
	loop_net_shutdown(conn);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void tls_conn_keep(struct tls_conn *tc)
{
	struct slice *in = &tc->tls.in;
	if (in->len && !tc->kept) {
		tc->kept = mem_alloc(in->len);
		memcpy(tc->kept, in->data, in->len);
		in->data = tc->kept;
	} else if (!in->len) {
		mem_free(tc->kept);
		tc->kept = NULL;
	}
}

static void tls_on_alloc(uv_handle_t *handle, UNUSED size_t suggested, uv_buf_t *buf)
{
	struct loop_conn *conn = CONTAINER_OF((uv_tcp_t *)handle, struct loop_conn, tcp);
	bool is_open = conn->tls->phase == TLS_OPEN;
	size_t max_bytes =
		loop_net_readable(conn, is_open ? conn->read_max_bytes : TLS_HELLO_READ_BYTES);
	*buf = uv_buf_init(max_bytes ? conn->loop->read_buffer : NULL, (unsigned)max_bytes);
}

static void tls_on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
	struct loop_conn *conn = CONTAINER_OF((uv_tcp_t *)stream, struct loop_conn, tcp);
	struct tls_conn *tc = conn->tls;
	if (len > 0) {
		ASSERT(!tc->tls.in.len); /* while bytes are kept, it rests or stands in a line */
		tc->heard = true;
		tc->tls.in = (struct slice){buf->base, (size_t)len};
		tls_conn_go_on(tc);
	} else if (len == UV_EOF) {
		tls_conn_lost(conn, -ECONNABORTED);
	} else if (len < 0 && len != UV_ENOBUFS) {
		tls_conn_lost(conn, (int)len);
	}
}

static void tls_conn_set_reading(struct tls_conn *tc)
{
	struct loop_conn *conn = tc->conn;
	bool wanted = !conn->at_end && !conn->broken && !tc->line &&
		      (tc->phase == TLS_SHAKING || (tc->phase == TLS_OPEN && conn->read_max_bytes));
	if (wanted == tc->reading || loop_net_is_closing(conn))
		return;
	tc->reading = wanted;
	if (wanted)
		uv_read_start((uv_stream_t *)&conn->tcp, tls_on_alloc, tls_on_read);
	else
		uv_read_stop((uv_stream_t *)&conn->tcp);
}

void tls_conn_read(struct loop_conn *conn)
{
	struct tls_conn *tc = conn->tls;
	if (tc->going)
		return; /* it looks when the owner has returned */
	if (tc->phase == TLS_OPEN && conn->read_max_bytes && !conn->at_end && !conn->broken &&
	    tls_conn_unread(conn))
		tls_line_join(&conn->loop->tls->resuming, tc);
	tls_conn_set_reading(tc);
}

size_t tls_conn_unread(const struct loop_conn *conn)
{
	return conn->tls->tls.in.len + tls_pending(&conn->tls->tls);
}

/* Sends the answers of TLS itself, as that it does not renegotiate. A peer that does not take them
 * gets no more. False: it is given up. */
static bool tls_conn_answer(struct tls_conn *tc)
{
	size_t len = tc->conn->loop->tls->out.len;
	if (!len)
		return true;
	tls_conn_flush(tc);
	tc->answers_bytes = loop_net_unsent(tc->conn) ? tc->answers_bytes + len : 0;
	if (tc->answers_bytes <= TLS_ANSWERS_MAX_BYTES)
		return true;
	tls_be_wrong(&tc->tls, "it asks for answers that it does not take");
	tls_conn_fail(tc, -EPROTO);
	return false;
}

/* Gives the owner one piece, or the end. False: there is nothing more for now. */
static bool tls_conn_give(struct tls_conn *tc)
{
	struct loop_conn *conn = tc->conn;
	char *plain = conn->loop->tls->plain;
	size_t len;
	if (tc->phase != TLS_OPEN || conn->at_end || conn->broken || !conn->read_max_bytes)
		return false;
	enum tls_result result = tls_read(&tc->tls, plain, conn->read_max_bytes, &len);
	if (result == TLS_FAILED)
		tls_conn_fail(tc, -EPROTO);
	else if (!tls_conn_answer(tc))
		return false;
	else if (result == TLS_DONE)
		conn->events->read(conn->owner, (struct slice){plain, len});
	else if (result == TLS_AT_END) {
		conn->at_end = true;
		tc->tls.in.len = 0;
		conn->events->eof(conn->owner);
	}
	return result == TLS_DONE;
}

/* ---- Shaking hands --------------------------------------------------------------------------- */

static void tls_conn_open(struct tls_conn *tc)
{
	struct loop_conn *conn = tc->conn;
	struct buf early = tc->early;
	stat_add(SSL_session_reused(tc->tls.ssl) ? STAT_tls_resumed : STAT_tls_full, 1);
	loop_timer_close(tc->deadline);
	tc->deadline = NULL;
	tc->phase = TLS_OPEN;
	buf_init(&tc->early, UINT32_MAX);
	if (early.len)
		tls_conn_put_all(tc, (struct slice[]){buf_slice(&early)}, 1);
	if (tc->ends_early)
		tls_conn_shutdown(conn);
	/* The early bytes were unsent: the owner is told also when all could go at once. */
	if (early.len && !loop_net_unsent(conn)) {
		tc->owes_sent = false;
		conn->events->sent(conn->owner);
	}
	buf_release(&early);
}

/* One step, if it may be made in this turn. Clients call whom they choose, and few: theirs are not
 * counted. */
static void tls_conn_shake(struct tls_conn *tc)
{
	struct tls_room *room = tc->conn->loop->tls;
	bool waits = tc->tls.context->is_server &&
		     (!tls_room_has_step(room) || (room->shaking.first && !tc->called));
	bool worked;
	tc->called = false;
	if (waits) {
		stat_add(STAT_tls_waits, 1);
		tls_line_join(&room->shaking, tc);
		return;
	}
	enum tls_result result = tls_shake_hands(&tc->tls, &worked);
	room->steps += worked;
	if (result == TLS_FAILED) {
		tls_conn_fail(tc, -EPROTO);
		return;
	}
	tls_conn_flush(tc);
	if (result == TLS_DONE)
		tls_conn_open(tc);
}

static void tls_conn_go_on(struct tls_conn *tc)
{
	tc->going = true;
	if (tc->phase == TLS_SHAKING)
		tls_conn_shake(tc);
	else if (tc->phase == TLS_OPEN && tc->tls.why[0])
		tls_conn_fail(tc, -EPROTO);
	while (tls_conn_give(tc))
		;
	tc->going = false;
	tls_conn_keep(tc);
	tls_conn_set_reading(tc);
}

/* ---- Life ------------------------------------------------------------------------------------ */

void loop_conn_speak_tls(struct loop_conn *conn, const struct loop_tls *options)
{
	ASSERT(!conn->events && !conn->tls);
	struct tls_conn *tc = mem_zalloc(sizeof(*tc));
	tc->conn = conn;
	tc->handshake_ms = options->handshake_ms;
	buf_init(&tc->early, UINT32_MAX);
	tls_init(&tc->tls, options, &tls_room_of(conn->loop)->out);
	conn->tls = tc;
}

bool loop_conn_speaks_tls(const struct loop_conn *conn)
{
	return conn->tls;
}

void tls_conn_start(struct loop_conn *conn)
{
	struct tls_conn *tc = conn->tls;
	tc->deadline = loop_timer_new(conn->loop, tls_conn_on_deadline, tc);
	loop_timer_start(tc->deadline, (uint64_t)tc->handshake_ms, 0);
	/* A client speaks first. */
	if (!tc->tls.context->is_server)
		tls_line_join(&conn->loop->tls->resuming, tc);
}
