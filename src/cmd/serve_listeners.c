#include "cmd/serve_listeners.h"

#include "base/clock.h"
#include "base/log.h"
#include "cmd/serve_addresses.h"
#include "conf/conf.h"
#include "ingest/tcp_listener.h"
#include "ingest/udp_listener.h"

/* One door, as its protocol has it; neither: it is not asked for. */
struct serve_listener {
	struct tcp_listener *listener;
	struct datagrams *datagrams;
};

/* What the options of a door say. */
struct serve_listener_plan {
	struct slice tenant;
	struct loop_networks networks;
	struct loop_address address;
};

struct serve_listeners {
	const struct conf *conf;
	struct loop *loop;
	struct ingest *ingest;
	struct serve_listener doors[LISTENER_PROTOCOLS];
	size_t open_count; /* not yet stopped */
	void (*stopped)(void *owner);
	void *stopped_owner;
	struct task stopped_task;
};

/* ---- Options -------------------------------------------------------------------------------- */

static const char *serve_listeners_text(const struct conf *c, enum conf_id id)
{
	const char *text;
	memcpy(&text, (const char *)c + conf_options[id].offset, sizeof(text));
	return text;
}

static bool serve_listeners_is_asked(const struct conf *c, const struct listener_protocol *protocol)
{
	return *serve_listeners_text(c, protocol->listen);
}

static int serve_listeners_parse_tenant(const char *text, struct slice *tenant, struct errbuf *e)
{
	*tenant = *text ? slice_of(text) : (struct slice){NULL, 0};
	if (!*text || tenant_valid(*tenant))
		return 0;
	return errbuf_set(e, ERR_INVALID, "\"%s\" is not 1 to %d of A-Z a-z 0-9 _ . and -", text,
			  TENANT_MAX_BYTES);
}

static enum line_precision serve_listeners_precision(const struct conf *c,
						     const struct listener_protocol *protocol)
{
	enum line_precision precision = (enum line_precision)0;
	if (protocol->precision == CONF_OPTIONS)
		return precision;
	int err = line_precision_parse(slice_of(serve_listeners_text(c, protocol->precision)),
				       &precision);
	ASSERT(!err); /* the option's words are the protocol's */
	return precision;
}

/* Lines show no credential: who sends them is known by where they come from, and may not say whose
 * they are. */
static int serve_listeners_check_reach(const struct listener_protocol *protocol,
				       const struct serve_listener_plan *plan, struct errbuf *e)
{
	char text[LOOP_ADDRESS_TEXT_BYTES];
	bool owned = plan->tenant.data;
	if (loop_address_is_loopback(&plan->address) || (owned && plan->networks.count))
		return 0;
	return errbuf_set(e, ERR_INVALID,
			  "%s is reached from other machines, and lines show no credential: "
			  "%s.%s has to say %s",
			  loop_address_text(&plan->address, text), protocol->name,
			  owned ? "networks" : "tenant", owned ? "who may send" : "whose they are");
}

static int serve_listeners_read(const struct conf *c, const struct listener_protocol *protocol,
				struct serve_listener_plan *plan, struct errbuf *e)
{
	int err = serve_listeners_parse_tenant(serve_listeners_text(c, protocol->tenant),
					       &plan->tenant, e);
	if (err)
		return conf_refuse(c, protocol->tenant, e);
	err = serve_networks_read(c, protocol->networks, &plan->networks, e);
	if (err)
		return err;
	err = loop_address_parse(slice_of(serve_listeners_text(c, protocol->listen)),
				 &plan->address, e);
	err = err ? err : serve_listeners_check_reach(protocol, plan, e);
	return err ? conf_refuse(c, protocol->listen, e) : 0;
}

int serve_listeners_check(const struct conf *conf, struct errbuf *e)
{
	struct serve_listener_plan plan;
	int err = 0;
	for (size_t i = 0; i < LISTENER_PROTOCOLS && !err; i++) {
		if (serve_listeners_is_asked(conf, &listener_protocols[i]))
			err = serve_listeners_read(conf, &listener_protocols[i], &plan, e);
	}
	return err;
}

/* ---- Opening -------------------------------------------------------------------------------- */

static int serve_listeners_open_stream(struct serve_listeners *doors,
				       const struct listener_protocol *protocol,
				       const struct serve_listener_plan *plan,
				       struct serve_listener *door, struct errbuf *e)
{
	const struct conf *c = doors->conf;
	const struct tcp_listener_options options = {
		.loop = doors->loop,
		.ingest = doors->ingest,
		.clock = clock_real(),
		.protocol = protocol,
		.address = plan->address,
		.tenant = plan->tenant,
		.networks = plan->networks,
		.precision = serve_listeners_precision(c, protocol),
		.line_max_bytes = (size_t)c->tcp_line_max_bytes,
		.connections_max = (size_t)c->tcp_connections_max,
		.idle_timeout_ms = c->tcp_idle_timeout_ms,
	};
	return tcp_listener_open(&options, &door->listener, e);
}

static int serve_listeners_open_datagrams(struct serve_listeners *doors,
					  const struct listener_protocol *protocol,
					  const struct serve_listener_plan *plan,
					  struct serve_listener *door, struct errbuf *e)
{
	const struct conf *c = doors->conf;
	const struct datagrams_options options = {
		.loop = doors->loop,
		.ingest = doors->ingest,
		.protocol = protocol,
		.address = plan->address,
		.tenant = plan->tenant,
		.networks = plan->networks,
		.precision = serve_listeners_precision(c, protocol),
		.datagram_max_bytes = (size_t)c->line_udp_datagram_max_bytes,
		.buffer_bytes = (size_t)c->line_udp_buffer_bytes,
	};
	return datagrams_open(&options, &door->datagrams, e);
}

static int serve_listeners_open_door(struct serve_listeners *doors,
				     const struct listener_protocol *protocol,
				     struct serve_listener *door, struct errbuf *e)
{
	struct serve_listener_plan plan;
	struct loop_address address;
	char text[LOOP_ADDRESS_TEXT_BYTES];
	int err = serve_listeners_read(doors->conf, protocol, &plan, e);
	if (err)
		return err;
	err = protocol->datagrams ? serve_listeners_open_datagrams(doors, protocol, &plan, door, e)
				  : serve_listeners_open_stream(doors, protocol, &plan, door, e);
	if (err)
		return conf_refuse(doors->conf, protocol->listen, e);
	doors->open_count++;
	address = protocol->datagrams ? datagrams_address(door->datagrams)
				      : tcp_listener_address(door->listener);
	log_info("%s at %s", protocol->what, loop_address_text(&address, text));
	return 0;
}

int serve_listeners_open(const struct conf *conf, struct loop *loop, struct ingest *ingest,
			 struct serve_listeners **out, struct errbuf *e)
{
	struct serve_listeners *doors = mem_zalloc(sizeof(*doors));
	*doors = (struct serve_listeners){.conf = conf, .loop = loop, .ingest = ingest};
	for (size_t i = 0; i < LISTENER_PROTOCOLS; i++) {
		const struct listener_protocol *protocol = &listener_protocols[i];
		int err = serve_listeners_is_asked(conf, protocol)
				  ? serve_listeners_open_door(doors, protocol, &doors->doors[i], e)
				  : 0;
		if (err) {
			serve_listeners_free(doors);
			return err;
		}
	}
	*out = doors;
	return 0;
}

size_t serve_listeners_connections_max(const struct conf *conf)
{
	size_t listeners = 0;
	for (size_t i = 0; i < LISTENER_PROTOCOLS; i++)
		listeners += !listener_protocols[i].datagrams &&
			     serve_listeners_is_asked(conf, &listener_protocols[i]);
	return listeners * (size_t)conf->tcp_connections_max;
}

/* ---- Stopping ------------------------------------------------------------------------------- */

static void serve_listeners_run_stopped(struct task *task)
{
	struct serve_listeners *doors = CONTAINER_OF(task, struct serve_listeners, stopped_task);
	doors->stopped(doors->stopped_owner);
}

static void serve_listeners_on_stopped(void *owner)
{
	struct serve_listeners *doors = owner;
	if (--doors->open_count)
		return;
	doors->stopped_task.run = serve_listeners_run_stopped;
	loop_executor(doors->loop)->post(loop_executor(doors->loop), &doors->stopped_task);
}

void serve_listeners_stop(struct serve_listeners *doors, int64_t grace_ms,
			  void (*done)(void *owner), void *owner)
{
	doors->stopped = done;
	doors->stopped_owner = owner;
	doors->open_count++; /* this call, so that `done` comes also when there are none */
	for (size_t i = 0; i < LISTENER_PROTOCOLS; i++) {
		struct serve_listener *door = &doors->doors[i];
		if (door->listener)
			tcp_listener_stop(door->listener, grace_ms, serve_listeners_on_stopped,
					  doors);
		if (door->datagrams)
			datagrams_stop(door->datagrams, grace_ms, serve_listeners_on_stopped,
				       doors);
	}
	serve_listeners_on_stopped(doors);
}

void serve_listeners_free(struct serve_listeners *doors)
{
	if (!doors)
		return;
	for (size_t i = 0; i < LISTENER_PROTOCOLS; i++) {
		if (doors->doors[i].listener)
			tcp_listener_free(doors->doors[i].listener);
		if (doors->doors[i].datagrams)
			datagrams_free(doors->doors[i].datagrams);
	}
	mem_free(doors);
}
