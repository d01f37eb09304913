/* Datagrams, and connections with lines or messages of syslog. A datagram that the spool does not
 * take is lost and counted; a connection is not read on until the spool takes what was read.
 *
 *     datagrams --------------------------> records --> spool
 *     connection --> `in` --syslog_take()--^
 *
 * All of an inlet's records go to one stream; those of syslog go to one for each sender and
 * datatype, which the facility says, up to a maximum; beyond it to one called `other`. */
#include <stdio.h>

#include "agent/inlet.h"
#include "base/hash_table.h"
#include "base/log.h"
#include "base/stats.h"
#include "http/http.h"
#include "wire/syslog.h"

enum {
	NET_STREAMS_MAX = 1000,
	NET_ESCAPE = 0x1b,
	NET_CONNS_MAX = 500,
	NET_RECORDS_MAX = 256, /* of one call of the spool; so many datagrams do not come at once */
	NET_READ_BYTES = 64 << 10,
	NET_IN_MAX_BYTES = INLET_RECORD_MAX_BYTES + SYSLOG_COUNT_DIGITS_MAX + 2 + NET_READ_BYTES,
	NET_IN_KEPT_BYTES = 16 << 10,  /* a buffer that is empty and larger is given back */
	NET_DATAGRAMS_BYTES = 4 << 20, /* of the kernel */
	NET_IDLE_MS = 600000, /* a connection that was silent for so long gives its place away */
	NET_LAST_MS = 1000,   /* at the end, what has come is read for so long at most; */
	NET_DRY_MS = 20,      /* it is all when nothing came in two such times */
	NET_DRY_TIMES = 2,    /* between which the loop has looked at each socket */
	NET_LINES_A_MINUTE = 6,
};

struct net_conn {
	struct net_inlet *net;
	struct loop_conn *loop;
	struct loop_address from;
	struct buf in;
	struct syslog_framing framing;
	bool ended; /* no more bytes come */
	bool known; /* its first line is none of HTTP */
	bool waiting, closed;
	int64_t active_ms; /* when bytes came last */
	struct net_conn *next, **link;
};

struct net_slot {
	struct hash128 hash;
	struct spool_stream *stream;
};

struct net_inlet {
	struct inlet *inlet;
	bool is_syslog;
	struct loop_udp *udp;
	struct loop_listener *listener;
	struct loop_timer *tick;
	struct net_conn *conns;
	size_t conn_count;
	struct hash_table streams; /* struct net_slot, by datatype and name */
	bool closing;
	int64_t last_ms;                 /* reading ends then; 0: it goes on */
	unsigned dry_times;              /* since something came */
	uint64_t lost_full, lost_kernel; /* datagrams */
	struct log_rate strangers;
	/* For the next call of the spool, all of one stream. */
	struct slice records[NET_RECORDS_MAX];
	size_t count;
	struct spool_stream *stream;
};

/* ---- Streams --------------------------------------------------------------------------------- */

static struct spool_stream *net_find_stream(struct net_inlet *net, struct slice datatype,
					    struct slice name)
{
	struct hash128 hash = hash128(name.data, name.len, hash64(datatype.data, datatype.len, 0));
	struct net_slot *slot = hash_table_find(&net->streams, hash);
	struct spool_stream *stream;
	struct errbuf e = {""};
	bool added;
	if (slot)
		return slot->stream;
	if (net->streams.count >= NET_STREAMS_MAX && !slice_equal(name, SLICE("other")))
		return NULL;
	if (spool_stream(inlet_spool(net->inlet), datatype, name, &stream, &e)) {
		inlet_set_problem(net->inlet, "%s", e.text);
		return NULL;
	}
	slot = hash_table_add(&net->streams, hash, sizeof(*slot), &added);
	slot->stream = stream;
	return stream;
}

/* The address without its port. */
static struct slice net_sender(const struct loop_address *from, char text[LOOP_ADDRESS_TEXT_BYTES])
{
	struct slice name = slice_of(loop_address_text(from, text));
	while (name.len && name.data[name.len - 1] != ':')
		name.len--;
	name.len -= name.len > 0;
	if (from->v6 && name.len > 2)
		name = (struct slice){name.data + 1, name.len - 2};
	return name;
}

/* NULL: there are too many. */
static struct spool_stream *net_stream(struct net_inlet *net, const struct loop_address *from,
				       struct slice message)
{
	const struct adaptor *adaptor = inlet_adaptor(net->inlet);
	char name[INLET_STREAM_NAME_MAX_BYTES], text[LOOP_ADDRESS_TEXT_BYTES];
	struct slice datatype = adaptor->datatype;
	unsigned facility, severity;
	if (!net->is_syslog)
		return net_find_stream(net, datatype, inlet_stream_name(adaptor, name));
	(void)syslog_priority(message, &facility, &severity);
	if (adaptor->datatypes && adaptor->datatypes[facility].len)
		datatype = adaptor->datatypes[facility];
	struct spool_stream *stream = net_find_stream(net, datatype, net_sender(from, text));
	if (stream)
		return stream;
	stat_add(STAT_inlet_other, 1);
	return net_find_stream(net, datatype, SLICE("other"));
}

/* ---- Datagrams ------------------------------------------------------------------------------- */

static void net_say_lost(struct net_inlet *net)
{
	inlet_set_problem(net->inlet,
			  "%llu datagrams are lost since the spool took none, and %llu since the "
			  "kernel had no room for them",
			  (unsigned long long)net->lost_full, (unsigned long long)net->lost_kernel);
}

static void net_flush_datagrams(struct net_inlet *net)
{
	if (net->count &&
	    (!net->stream || inlet_append(net->inlet, net->stream, net->records, net->count))) {
		stat_add(STAT_inlet_dropped_full, (int64_t)net->count);
		net->lost_full += net->count;
		net_say_lost(net);
	}
	net->count = 0;
}

static void net_ask_kernel(struct net_inlet *net)
{
	uint32_t lost = net->udp ? loop_udp_lost(net->udp) : 0;
	if (!lost)
		return;
	stat_add(STAT_inlet_dropped_kernel, lost);
	net->lost_kernel += lost;
	net_say_lost(net);
}

static void net_received(void *owner, const struct loop_datagram *datagrams, size_t count)
{
	struct net_inlet *net = owner;
	net->dry_times = 0;
	for (size_t i = 0; i < count; i++) {
		struct slice record = datagrams[i].bytes;
		struct spool_stream *stream = net_stream(net, &datagrams[i].from, record);
		if (stream != net->stream || net->count == NET_RECORDS_MAX)
			net_flush_datagrams(net);
		net->stream = stream;
		record.len -= record.len && record.data[record.len - 1] == '\n';
		net->records[net->count++] = record;
	}
	net_flush_datagrams(net);
}

/* ---- Connections ----------------------------------------------------------------------------- */

static void net_consider_closed(struct net_inlet *net)
{
	if (!net->closing || net->conns)
		return;
	hash_table_release(&net->streams);
	inlet_closed(net->inlet);
}

static void net_conn_closed(void *owner)
{
	struct net_conn *conn = owner;
	struct net_inlet *net = conn->net;
	*conn->link = conn->next;
	if (conn->next)
		conn->next->link = conn->link;
	if (net->conn_count-- == NET_CONNS_MAX)
		inlet_set_problem(net->inlet, NULL);
	stat_add(STAT_inlet_connections, -1);
	buf_release(&conn->in);
	mem_free(conn);
	net_consider_closed(net);
}

static void net_close_conn(struct net_conn *conn)
{
	if (conn->closed)
		return;
	conn->closed = true;
	loop_conn_close(conn->loop);
}

/* Whole messages of one stream from what was read. *left is what is behind them. */
static void net_gather(struct net_conn *conn, struct syslog_framing *framing, struct slice *left)
{
	struct net_inlet *net = conn->net;
	size_t bytes = 0;
	net->count = 0;
	while (net->count < NET_RECORDS_MAX && bytes < SPOOL_RECORDS_MAX_BYTES / 2) {
		struct syslog_framing after = *framing;
		struct slice behind = *left, message;
		if (!syslog_take(&after, &behind, conn->ended, &message)) {
			*framing = after;
			*left = behind;
			return;
		}
		struct spool_stream *stream = net_stream(net, &conn->from, message);
		if (net->count && stream != net->stream)
			return;
		net->stream = stream;
		net->records[net->count++] = message;
		bytes += message.len;
		*framing = after;
		*left = behind;
	}
}

static void net_consume(struct net_conn *conn, size_t bytes)
{
	buf_consume(&conn->in, bytes);
	if (conn->in.len || conn->in.cap <= NET_IN_KEPT_BYTES)
		return;
	buf_release(&conn->in);
	buf_init(&conn->in, NET_IN_MAX_BYTES);
}

/* What a page of another site has sent by a browser is no message. */
static bool net_is_stranger(struct net_conn *conn)
{
	struct slice in = buf_slice(&conn->in);
	if (conn->known || !in.len)
		return false;
	conn->known =
		conn->ended || in.len > INLET_RECORD_MAX_BYTES || memchr(in.data, '\n', in.len);
	/* Lines may begin with the colours of a terminal. */
	return in.data[0] != NET_ESCAPE && http_begins(in, INLET_RECORD_MAX_BYTES);
}

static void net_refuse_stranger(struct net_conn *conn)
{
	stat_add(STAT_inlet_refused, 1);
	log_rated(&conn->net->strangers, clock_mono_ms(inlet_clock(conn->net->inlet)), LOG_WARN,
		  "adaptor %s: a connection is closed: it begins with HTTP or TLS, as those of "
		  "browsers do",
		  inlet_adaptor(conn->net->inlet)->name.data);
	buf_clear(&conn->in);
	net_close_conn(conn);
}

/* Puts what was read into the spool. What it does not take now stays in `in`, and nothing more is
 * read. */
static void net_conn_step(struct net_conn *conn)
{
	struct net_inlet *net = conn->net;
	conn->waiting = false;
	if (net_is_stranger(conn)) {
		net_refuse_stranger(conn);
		return;
	}
	for (;;) {
		struct syslog_framing framing = conn->framing;
		struct slice left = buf_slice(&conn->in);
		net_gather(conn, &framing, &left);
		if (net->count && net->stream)
			conn->waiting = inlet_append(net->inlet, net->stream, net->records,
						     net->count) != 0;
		else
			stat_add(STAT_inlet_dropped_full, (int64_t)net->count);
		if (conn->waiting)
			break;
		stat_add(STAT_inlet_cut_bytes,
			 (int64_t)(framing.cut_bytes - conn->framing.cut_bytes));
		conn->framing = framing;
		conn->known |= net->count > 0;
		net_consume(conn, conn->in.len - left.len);
		if (!net->count)
			break;
	}
	if (conn->ended && !conn->waiting)
		net_close_conn(conn);
	else if (!conn->ended)
		loop_conn_read(conn->loop, conn->waiting ? 0 : NET_READ_BYTES);
}

static void net_conn_read(void *owner, struct slice bytes)
{
	struct net_conn *conn = owner;
	conn->net->dry_times = 0;
	conn->active_ms = clock_mono_ms(inlet_clock(conn->net->inlet));
	int err = buf_append(&conn->in, bytes.data, bytes.len);
	ASSERT(!err); /* `in` has less than a message before a read */
	net_conn_step(conn);
}

static void net_conn_eof(void *owner)
{
	struct net_conn *conn = owner;
	conn->ended = true;
	net_conn_step(conn);
}

static void net_conn_broken(void *owner, UNUSED int err)
{
	net_conn_eof(owner);
}

/* Puts what is there of it into the spool; a record without its end is one, too. */
static void net_end_conn(struct net_conn *conn)
{
	struct slice left;
	if (conn->closed)
		return;
	conn->ended = true;
	net_conn_step(conn);
	left = buf_slice(&conn->in);
	while (conn->waiting) {
		net_gather(conn, &conn->framing, &left);
		stat_add(STAT_inlet_dropped_ended, (int64_t)conn->net->count);
		conn->waiting = conn->net->count > 0;
	}
	net_close_conn(conn);
}

/* The one that was silent for the longest time gives its place to a new one. Others are not closed
 * for their silence: whoever sends would learn of it by the loss of its next record. */
static bool net_make_place(struct net_inlet *net)
{
	struct net_conn *oldest = NULL;
	for (struct net_conn *conn = net->conns; conn; conn = conn->next)
		if (!conn->closed && !conn->waiting &&
		    (!oldest || conn->active_ms < oldest->active_ms))
			oldest = conn;
	if (!oldest || clock_mono_ms(inlet_clock(net->inlet)) - oldest->active_ms < NET_IDLE_MS)
		return false;
	stat_add(STAT_inlet_idle, 1);
	net_end_conn(oldest);
	return true;
}

static void net_accept(void *owner, struct loop_conn *loop)
{
	static const struct loop_conn_events events = {.read = net_conn_read,
						       .eof = net_conn_eof,
						       .broken = net_conn_broken,
						       .closed = net_conn_closed};
	struct net_inlet *net = owner;
	net->dry_times = 0;
	if (net->conn_count >= NET_CONNS_MAX && !net_make_place(net)) {
		stat_add(STAT_inlet_refused, 1);
		inlet_set_problem(net->inlet, "a connection is refused, since there are %d already",
				  NET_CONNS_MAX);
		loop_conn_close(loop);
		return;
	}
	struct net_conn *conn = mem_zalloc(sizeof(*conn));
	conn->net = net;
	conn->loop = loop;
	conn->from = loop_conn_peer(loop);
	conn->active_ms = clock_mono_ms(inlet_clock(net->inlet));
	conn->framing.max_bytes = INLET_RECORD_MAX_BYTES;
	conn->framing.lines = !net->is_syslog;
	buf_init(&conn->in, NET_IN_MAX_BYTES);
	conn->next = net->conns;
	conn->link = &net->conns;
	if (conn->next)
		conn->next->link = &conn->next;
	net->conns = conn;
	net->conn_count++;
	stat_add(STAT_inlet_connections, 1);
	loop_conn_start(loop, &events, conn);
	loop_conn_read(loop, NET_READ_BYTES);
}

/* ---- Life ------------------------------------------------------------------------------------ */

/* Bytes that nobody reads any more are lost. */
static void net_shut(struct net_inlet *net)
{
	uint64_t unread = 0;
	net->closing = true;
	loop_udp_close(net->udp);
	loop_listener_close(net->listener);
	loop_timer_close(net->tick);
	for (struct net_conn *conn = net->conns, *next; conn; conn = next) {
		next = conn->next;
		unread += conn->closed ? 0 : loop_conn_unread(conn->loop);
		net_end_conn(conn);
	}
	stat_add(STAT_inlet_unread_bytes, (int64_t)unread);
	if (unread)
		log_warn("adaptor %s: %llu bytes of its connections are lost: they had come and "
			 "were not read when it ended",
			 inlet_adaptor(net->inlet)->name.data, (unsigned long long)unread);
	net_consider_closed(net);
}

static void net_tick(void *owner)
{
	struct net_inlet *net = owner;
	net_ask_kernel(net);
	bool room = spool_has_room(inlet_spool(net->inlet));
	for (struct net_conn *conn = net->conns, *next; conn && room; conn = next) {
		next = conn->next;
		if (!conn->waiting)
			continue;
		net_conn_step(conn);
		if (!conn->waiting)
			net->dry_times = 0; /* it is read on */
	}
	if (net->last_ms && (++net->dry_times > NET_DRY_TIMES ||
			     clock_mono_ms(inlet_clock(net->inlet)) >= net->last_ms))
		net_shut(net);
}

static int net_open_sockets(struct net_inlet *net, struct errbuf *e)
{
	const struct adaptor *adaptor = inlet_adaptor(net->inlet);
	struct loop *loop = inlet_loop(net->inlet);
	struct loop_address address;
	int err = loop_address_parse(adaptor->path, &address, e);
	if (!err && adaptor->datagrams)
		err = loop_udp_open(
			loop,
			&(struct loop_udp_options){.address = address,
						   .senders = true,
						   .datagram_max_bytes = LOOP_DATAGRAM_MAX_BYTES,
						   .buffer_bytes = NET_DATAGRAMS_BYTES,
						   .received = net_received,
						   .owner = net},
			&net->udp, e);
	if (!err && adaptor->connections)
		err = loop_listen(loop, &address, net_accept, net, &net->listener, e);
	return err;
}

static int net_open(struct inlet *inlet, struct errbuf *e)
{
	struct net_inlet *net = inlet_state(inlet);
	net->inlet = inlet;
	net->strangers.lines_max = NET_LINES_A_MINUTE;
	net->is_syslog = inlet_adaptor(inlet)->kind == ADAPTOR_SYSLOG;
	int err = net_open_sockets(net, e);
	if (err) {
		loop_udp_close(net->udp);
		loop_listener_close(net->listener);
		net->udp = NULL;
		net->listener = NULL;
		return err;
	}
	net->tick = loop_timer_new(inlet_loop(inlet), net_tick, net);
	loop_timer_start(net->tick, INLET_ROOM_MS, INLET_ROOM_MS);
	return 0;
}

/* What has come by now is taken. */
static void net_close(struct inlet *inlet)
{
	struct net_inlet *net = inlet_state(inlet);
	net->dry_times = 0;
	net->last_ms = clock_mono_ms(inlet_clock(inlet)) + NET_LAST_MS;
	loop_timer_start(net->tick, NET_DRY_MS, NET_DRY_MS);
}

const struct inlet_kind inlet_net = {
	.open = net_open,
	.close = net_close,
	.bytes = sizeof(struct net_inlet),
};
