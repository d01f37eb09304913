#include "ingest/udp_listener.h"

#include "base/log.h"
#include "base/stats.h"
#include "ingest/line_feed.h"
#include "ingest/listener_stop.h"

enum {
	REQUESTS_MAX = 16, /* requests whose samples are not durable yet */
	TICK_MS = 1000,    /* how often the kernel is asked what it has dropped */
};

/* The datagrams of one read. */
struct udp_listener_request {
	struct datagrams *owner;
	struct ingest_request *r;
	size_t count;
	struct udp_listener_request *next, **link;
};

struct datagrams {
	struct datagrams_options options;
	struct loop_udp *udp;
	struct loop_timer *tick;
	struct line_feed feed; /* of one datagram after the other */
	struct udp_listener_request *requests;
	size_t request_count;
	bool paused; /* by ingest: one of the requests is told to resume */
	struct stopping stopping;
	bool drained;
	size_t drained_bytes;
	struct log_rate outsider_lines;
};

static bool udp_listener_may_read(const struct datagrams *d)
{
	return !d->paused && d->request_count < REQUESTS_MAX;
}

static void udp_listener_count_lost(struct datagrams *d)
{
	uint32_t lost = loop_udp_lost(d->udp);
	if (!lost)
		return;
	stat_add(STAT_udp_lost_kernel, lost);
	log_debug("%s: the kernel has dropped %u datagrams", d->options.protocol->name, lost);
}

/* ---- Stopping ------------------------------------------------------------------------------- */

/* Datagrams that had come when the stop began are in the kernel's buffer: no more than fits there
 * is read. */
static void udp_listener_drain(struct datagrams *d)
{
	while (!d->drained && udp_listener_may_read(d)) {
		if (!loop_udp_read_now(d->udp) || d->drained_bytes > d->options.buffer_bytes)
			d->drained = true;
	}
	if (!d->drained || d->requests)
		return;
	udp_listener_count_lost(d);
	stopping_end(&d->stopping);
}

static void udp_listener_go_on(struct datagrams *d)
{
	if (d->stopping.begun)
		udp_listener_drain(d);
	else
		loop_udp_read(d->udp, udp_listener_may_read(d));
}

/* ---- Flights -------------------------------------------------------------------------------- */

static void udp_listener_remove_request(struct udp_listener_request *request)
{
	*request->link = request->next;
	if (request->next)
		request->next->link = request->link;
	request->owner->request_count--;
	mem_free(request);
}

static void udp_listener_on_done(struct ingest_request *r)
{
	struct udp_listener_request *request = ingest_owner(r);
	struct datagrams *d = request->owner;
	if (r->err) {
		stat_add(STAT_udp_lost_store, (int64_t)request->count);
		log_debug("%s: %zu datagrams are lost: %s", d->options.protocol->name,
			  request->count, r->error.text);
	} else if (r->refused) {
		listener_protocol_log_refusals(d->options.protocol, r);
	}
	udp_listener_remove_request(request);
	ingest_request_free(r);
	udp_listener_go_on(d);
}

static struct udp_listener_request *udp_listener_add_request(struct datagrams *d);

static void udp_listener_on_resume(struct ingest_request *r)
{
	struct udp_listener_request *request = ingest_owner(r);
	struct datagrams *d = request->owner;
	d->paused = false;
	ingest_request_end(r);
	udp_listener_go_on(d);
}

static struct udp_listener_request *udp_listener_add_request(struct datagrams *d)
{
	struct udp_listener_request *request = mem_zalloc(sizeof(*request));
	request->owner = d;
	request->r = ingest_request_new(d->options.ingest,
					&(struct ingest_door){.done = udp_listener_on_done,
							      .resume = udp_listener_on_resume,
							      .owner = request,
							      .patient = true});
	request->next = d->requests;
	request->link = &d->requests;
	if (request->next)
		request->next->link = &request->next;
	d->requests = request;
	d->request_count++;
	return request;
}

static void udp_listener_receive(struct datagrams *d, const struct loop_datagram *datagram)
{
	struct slice bytes = datagram->bytes;
	if (!listener_protocol_lets_in(d->options.protocol, &d->options.networks, &datagram->from,
				       &d->outsider_lines, loop_now_ms(d->options.loop)))
		return;
	stat_add(STAT_udp_received_bytes, (int64_t)bytes.len);
	d->drained_bytes += bytes.len;
	d->feed.line = 1;
	if (datagram->cut) {
		ingest_refuse(d->feed.r, (struct ingest_place){1, 1}, INGEST_TOO_LONG,
			      (struct slice){0}, "the datagram is longer than %zu bytes",
			      d->options.datagram_max_bytes);
		return;
	}
	/* A browser sends datagrams of WebRTC and QUIC to where a page wants them, and some of
	 * their bytes are the page's choice. */
	if (bytes.len && memchr(bytes.data, 0, bytes.len)) {
		ingest_refuse(d->feed.r, (struct ingest_place){1, 1}, INGEST_SYNTAX,
			      (struct slice){0}, "the datagram holds a NUL: it is not text");
		return;
	}
	line_feed_piece(&d->feed, bytes);
	line_feed_end(&d->feed);
	d->feed.skipping = false;
	buf_clear(&d->feed.carry);
	d->feed.cut = 0;
}

static void udp_listener_on_received(void *owner, const struct loop_datagram *datagrams,
				     size_t count)
{
	struct datagrams *d = owner;
	struct udp_listener_request *request = udp_listener_add_request(d);
	stat_add(STAT_udp_datagrams, (int64_t)count);
	request->count = count;
	d->feed.r = request->r;
	for (size_t i = 0; i < count; i++)
		udp_listener_receive(d, &datagrams[i]);
	d->feed.r = NULL;
	d->paused = ingest_request_must_pause(request->r);
	if (!d->paused)
		ingest_request_end(request->r);
	if (!d->stopping.begun)
		loop_udp_read(d->udp, udp_listener_may_read(d));
}

static void udp_listener_on_tick(void *owner)
{
	udp_listener_count_lost(owner);
}

/* ---- Life ----------------------------------------------------------------------------------- */

int datagrams_open(const struct datagrams_options *options, struct datagrams **out,
		   struct errbuf *e)
{
	struct datagrams *d = mem_zalloc(sizeof(*d));
	d->options = *options;
	d->outsider_lines.lines_max = 1;
	const struct loop_udp_options udp = {.address = options->address,
					     .datagram_max_bytes = options->datagram_max_bytes,
					     .buffer_bytes = options->buffer_bytes,
					     .senders = options->networks.count > 0,
					     .received = udp_listener_on_received,
					     .owner = d};
	int err = loop_udp_open(options->loop, &udp, &d->udp, e);
	if (err) {
		mem_free(d);
		return err;
	}
	struct ingest_request *r =
		ingest_request_new(options->ingest, &(struct ingest_door){.owner = d});
	line_feed_init(&d->feed, r, options->tenant, options->precision);
	d->feed.r = NULL;
	ingest_request_abandon(r);
	d->tick = loop_timer_new(options->loop, udp_listener_on_tick, d);
	loop_timer_start(d->tick, TICK_MS, TICK_MS);
	*out = d;
	return 0;
}

struct loop_address datagrams_address(const struct datagrams *d)
{
	return loop_udp_address(d->udp);
}

/* Samples that are not durable by now are not waited for. */
static void udp_listener_on_grace_over(void *owner)
{
	struct datagrams *d = owner;
	d->drained = true;
	while (d->requests) {
		stat_add(STAT_udp_lost_store, (int64_t)d->requests->count);
		ingest_request_abandon(d->requests->r);
		udp_listener_remove_request(d->requests);
	}
	udp_listener_drain(d);
}

void datagrams_stop(struct datagrams *d, int64_t grace_ms, void (*done)(void *owner), void *owner)
{
	stopping_begin(&d->stopping, d->options.loop, grace_ms, udp_listener_on_grace_over, d, done,
		       owner);
	d->drained_bytes = 0;
	loop_udp_read(d->udp, false);
	udp_listener_drain(d);
}

void datagrams_free(struct datagrams *d)
{
	ASSERT(!d->requests);
	line_feed_release(&d->feed);
	loop_udp_close(d->udp);
	loop_timer_close(d->tick);
	stopping_release(&d->stopping);
	mem_free(d);
}
