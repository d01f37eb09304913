/* A connection without a socket: what http/conn.c writes is kept, what happens is ordered by the
 * test, time stands still until it is moved. */
#ifndef TOOLS_HTTP_FAKE_H
#define TOOLS_HTTP_FAKE_H

#include "base/mem.h"
#include "http/conn.h"

struct fake {
	struct http_conn conn;
	struct buf out;  /* all that was written */
	size_t sent;     /* of it, taken by the client */
	bool blocked;    /* the client takes nothing until fake_take */
	size_t read_max; /* as the connection wants it */
	bool shut, closed, deferred;
};

static inline struct fake *fake_of(struct http_conn *conn)
{
	return CONTAINER_OF(conn, struct fake, conn);
}

static inline void fake_read(struct http_conn *conn, size_t max_bytes)
{
	fake_of(conn)->read_max = max_bytes;
}

static inline void fake_write(struct http_conn *conn, const struct slice *pieces, size_t count)
{
	struct fake *fake = fake_of(conn);
	ASSERT(!fake->closed && !fake->shut);
	for (size_t i = 0; i < count; i++)
		buf_append(&fake->out, pieces[i].data, pieces[i].len);
	ASSERT(!fake->out.failed);
	if (!fake->blocked)
		fake->sent = fake->out.len;
}

static inline size_t fake_unsent(struct http_conn *conn)
{
	return fake_of(conn)->out.len - fake_of(conn)->sent;
}

static inline void fake_shutdown(struct http_conn *conn)
{
	ASSERT(!fake_of(conn)->shut);
	fake_of(conn)->shut = true;
}

static inline void fake_defer(struct http_conn *conn)
{
	ASSERT(!fake_of(conn)->deferred);
	fake_of(conn)->deferred = true;
}

static inline void fake_close(struct http_conn *conn)
{
	ASSERT(!fake_of(conn)->closed);
	fake_of(conn)->closed = true;
}

static const struct http_transport fake_transport = {fake_read,     fake_write, fake_unsent,
						     fake_shutdown, fake_defer, fake_close};

static inline struct fake *fake_new(struct http_core *core)
{
	struct fake *fake = mem_zalloc(sizeof(*fake));
	buf_init(&fake->out, 1 << 28);
	fake->read_max = LOOP_READ_BYTES;
	http_conn_init(&fake->conn, core, &fake_transport);
	return fake;
}

/* Closes, if nobody has. */
static inline void fake_free(struct fake *fake)
{
	http_conn_close(&fake->conn);
	http_conn_release(&fake->conn);
	buf_release(&fake->out);
	mem_free(fake);
}

/* The step that was asked for, if any. */
static inline bool fake_step(struct fake *fake)
{
	bool asked = fake->deferred;
	fake->deferred = false;
	if (asked)
		http_conn_step(&fake->conn);
	return asked;
}

/* Bytes from the client, in pieces no larger than asked for; steps in between. Returns how many
 * were read before the connection wanted no more. */
static inline size_t fake_input(struct fake *fake, struct slice bytes, size_t piece_bytes)
{
	size_t at = 0;
	while (at < bytes.len && !fake->closed) {
		if (fake_step(fake))
			continue;
		size_t len = bytes.len - at < piece_bytes ? bytes.len - at : piece_bytes;
		if (len > fake->read_max)
			len = fake->read_max;
		if (!len)
			break;
		at += len;
		http_conn_input(&fake->conn, (struct slice){bytes.data + at - len, len});
	}
	while (!fake->closed && fake_step(fake))
		;
	return at;
}

/* The client takes all that was written. */
static inline void fake_take(struct fake *fake)
{
	bool was_unsent = fake->out.len > fake->sent;
	fake->sent = fake->out.len;
	if (was_unsent && !fake->closed)
		http_conn_sent(&fake->conn);
}

#endif
