#include "ingest/udp_listener.h"

#include "base/log.h"
#include "base/stats.h"
#include "ingest/line_feed.h"
#include "ingest/listener_stop.h"

enum {
	FLIGHTS_MAX = 16, /* requests whose samples are not durable yet */
	TICK_MS = 1000,   /* how often the kernel is asked what it has dropped */
};

/* The datagrams of one read. */
struct udp_listener_flight {
	struct datagrams *owner;
	struct ingest_request *r;
	size_t count;
	struct udp_listener_flight *next, **link;
};

struct datagrams {
	struct datagrams_options options;
	struct loop_udp *udp;
	struct loop_timer *tick;
	struct line_feed feed; /* of one datagram after the other */
	struct udp_listener_flight *flights;
	size_t flight_count;
	bool paused; /* by ingest: one of the flights is told to resume */
	struct stopping stopping;
	bool drained;
	size_t drained_bytes;
};

static bool udp_listener_may_read(const struct datagrams *d)
{
	return !d->paused && d->flight_count < FLIGHTS_MAX;
}

static void udp_listener_count_lost(struct datagrams *d)
{
	uint32_t lost = loop_udp_lost(d->udp);
	if (!lost)
		return;
	stat_add(STAT_udp_lost_kernel, lost);
	log_debug("line_udp: the kernel has dropped %u datagrams", lost);
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
	if (!d->drained || d->flights)
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

static void udp_listener_remove_flight(struct udp_listener_flight *flight)
{
	*flight->link = flight->next;
	if (flight->next)
		flight->next->link = flight->link;
	flight->owner->flight_count--;
	mem_free(flight);
}

static void udp_listener_on_done(struct ingest_request *r)
{
	struct udp_listener_flight *flight = ingest_owner(r);
	struct datagrams *d = flight->owner;
	if (r->err) {
		stat_add(STAT_udp_lost_store, (int64_t)flight->count);
		log_debug("line_udp: %zu datagrams are lost: %s", flight->count, r->error.text);
	} else if (r->refused) {
		log_debug("line_udp: %llu refused, line %llu, column %u: %s",
			  (unsigned long long)r->refused,
			  (unsigned long long)r->errors[0].place.index, r->errors[0].place.column,
			  r->errors[0].sentence);
	}
	udp_listener_remove_flight(flight);
	ingest_request_free(r);
	udp_listener_go_on(d);
}

static struct udp_listener_flight *udp_listener_add_flight(struct datagrams *d);

static void udp_listener_on_resume(struct ingest_request *r)
{
	struct udp_listener_flight *flight = ingest_owner(r);
	struct datagrams *d = flight->owner;
	d->paused = false;
	ingest_request_end(r);
	udp_listener_go_on(d);
}

static struct udp_listener_flight *udp_listener_add_flight(struct datagrams *d)
{
	struct udp_listener_flight *flight = mem_zalloc(sizeof(*flight));
	flight->owner = d;
	flight->r = ingest_request_new(d->options.ingest,
				       &(struct ingest_door){.done = udp_listener_on_done,
							     .resume = udp_listener_on_resume,
							     .owner = flight,
							     .patient = true});
	flight->next = d->flights;
	flight->link = &d->flights;
	if (flight->next)
		flight->next->link = &flight->next;
	d->flights = flight;
	d->flight_count++;
	return flight;
}

static void udp_listener_take(struct datagrams *d, const struct loop_datagram *datagram)
{
	struct slice bytes = datagram->bytes;
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
	struct udp_listener_flight *flight = udp_listener_add_flight(d);
	stat_add(STAT_udp_datagrams, (int64_t)count);
	flight->count = count;
	d->feed.r = flight->r;
	for (size_t i = 0; i < count; i++)
		udp_listener_take(d, &datagrams[i]);
	d->feed.r = NULL;
	d->paused = ingest_request_must_pause(flight->r);
	if (!d->paused)
		ingest_request_end(flight->r);
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
	const struct loop_udp_options udp = {.address = options->address,
					     .datagram_max_bytes = options->datagram_max_bytes,
					     .buffer_bytes = options->buffer_bytes,
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
	while (d->flights) {
		stat_add(STAT_udp_lost_store, (int64_t)d->flights->count);
		ingest_request_abandon(d->flights->r);
		udp_listener_remove_flight(d->flights);
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
	ASSERT(!d->flights);
	line_feed_release(&d->feed);
	loop_udp_close(d->udp);
	loop_timer_close(d->tick);
	stopping_release(&d->stopping);
	mem_free(d);
}
