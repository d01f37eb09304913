#include "cmd/serve_listeners.h"

#include "base/clock.h"
#include "base/log.h"
#include "conf/conf.h"
#include "ingest/udp_listener.h"
#include "ingest/tcp_listener.h"

struct serve_listeners {
	const struct conf *conf;
	struct loop *loop;
	struct ingest *ingest;
	struct stream *line_tcp, *opentsdb;
	struct datagrams *line_udp;
	size_t open_count; /* not yet stopped */
	void (*stopped)(void *owner);
	void *stopped_owner;
	struct task stopped_task;
};

/* ---- Options -------------------------------------------------------------------------------- */

static int serve_listeners_explain(const struct serve_listeners *doors, enum conf_id id, int err,
				   struct errbuf *e)
{
	char where[512];
	return errbuf_prefix(e, err, "%s", conf_where(doors->conf, id, where, sizeof(where)));
}

static int serve_listeners_parse_tenant(const char *text, struct slice *tenant, struct errbuf *e)
{
	*tenant = *text ? slice_of(text) : (struct slice){NULL, 0};
	if (!*text || tenant_valid(*tenant))
		return 0;
	return errbuf_set(e, ERR_INVALID, "\"%s\" is not 1 to %d of A-Z a-z 0-9 _ . and -", text,
			  TENANT_MAX_BYTES);
}

static void serve_listeners_say(const char *what, struct loop_address address)
{
	char text[LOOP_ADDRESS_TEXT_BYTES];
	log_info("%s at %s", what, loop_address_text(&address, text));
}

/* ---- Opening -------------------------------------------------------------------------------- */

/* What is the same for both streams. */
static int serve_listeners_open_stream(struct serve_listeners *doors, enum conf_id listen,
				       const char *address, enum conf_id tenant_id,
				       const char *tenant, struct stream_options *options,
				       struct stream **stream, struct errbuf *e)
{
	const struct conf *c = doors->conf;
	options->loop = doors->loop;
	options->ingest = doors->ingest;
	options->clock = clock_real();
	options->line_max_bytes = (size_t)c->streams_line_max_bytes;
	options->connections_max = (size_t)c->streams_connections_max;
	options->idle_timeout_ms = c->streams_idle_timeout_ms;
	int err = serve_listeners_parse_tenant(tenant, &options->tenant, e);
	if (err)
		return serve_listeners_explain(doors, tenant_id, err, e);
	err = loop_address_parse(slice_of(address), &options->address, e);
	err = err ? err : stream_open(options, stream, e);
	if (err)
		return serve_listeners_explain(doors, listen, err, e);
	doors->open_count++;
	return 0;
}

static int serve_listeners_open_line_tcp(struct serve_listeners *doors, struct errbuf *e)
{
	const struct conf *c = doors->conf;
	struct stream_options options = {.protocol = STREAM_LINES};
	if (!*c->line_tcp_listen)
		return 0;
	int err = line_precision_parse(slice_of(c->line_tcp_precision), &options.precision);
	ASSERT(!err); /* the option's words are the protocol's */
	err = serve_listeners_open_stream(doors, CONF_ID_line_tcp_listen, c->line_tcp_listen,
					  CONF_ID_line_tcp_tenant, c->line_tcp_tenant, &options,
					  &doors->line_tcp, e);
	if (!err)
		serve_listeners_say("line protocol over TCP", stream_address(doors->line_tcp));
	return err;
}

static int serve_listeners_open_opentsdb(struct serve_listeners *doors, struct errbuf *e)
{
	const struct conf *c = doors->conf;
	struct stream_options options = {.protocol = STREAM_PUTS};
	if (!*c->opentsdb_listen)
		return 0;
	int err = serve_listeners_open_stream(doors, CONF_ID_opentsdb_listen, c->opentsdb_listen,
					      CONF_ID_opentsdb_tenant, c->opentsdb_tenant, &options,
					      &doors->opentsdb, e);
	if (!err)
		serve_listeners_say("OpenTSDB's put", stream_address(doors->opentsdb));
	return err;
}

static int serve_listeners_open_line_udp(struct serve_listeners *doors, struct errbuf *e)
{
	const struct conf *c = doors->conf;
	struct datagrams_options options = {
		.loop = doors->loop,
		.ingest = doors->ingest,
		.datagram_max_bytes = (size_t)c->line_udp_datagram_max_bytes,
		.buffer_bytes = (size_t)c->line_udp_buffer_bytes,
	};
	if (!*c->line_udp_listen)
		return 0;
	int err = serve_listeners_parse_tenant(c->line_udp_tenant, &options.tenant, e);
	if (err)
		return serve_listeners_explain(doors, CONF_ID_line_udp_tenant, err, e);
	err = line_precision_parse(slice_of(c->line_udp_precision), &options.precision);
	ASSERT(!err);
	err = loop_address_parse(slice_of(c->line_udp_listen), &options.address, e);
	err = err ? err : datagrams_open(&options, &doors->line_udp, e);
	if (err)
		return serve_listeners_explain(doors, CONF_ID_line_udp_listen, err, e);
	doors->open_count++;
	serve_listeners_say("line protocol over UDP", datagrams_address(doors->line_udp));
	return 0;
}

int serve_listeners_open(const struct conf *conf, struct loop *loop, struct ingest *ingest,
			 struct serve_listeners **out, struct errbuf *e)
{
	struct serve_listeners *doors = mem_zalloc(sizeof(*doors));
	*doors = (struct serve_listeners){.conf = conf, .loop = loop, .ingest = ingest};
	int err = serve_listeners_open_line_tcp(doors, e);
	err = err ? err : serve_listeners_open_opentsdb(doors, e);
	err = err ? err : serve_listeners_open_line_udp(doors, e);
	if (err) {
		serve_listeners_free(doors);
		return err;
	}
	*out = doors;
	return 0;
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
	if (doors->line_tcp)
		stream_stop(doors->line_tcp, grace_ms, serve_listeners_on_stopped, doors);
	if (doors->opentsdb)
		stream_stop(doors->opentsdb, grace_ms, serve_listeners_on_stopped, doors);
	if (doors->line_udp)
		datagrams_stop(doors->line_udp, grace_ms, serve_listeners_on_stopped, doors);
	serve_listeners_on_stopped(doors);
}

void serve_listeners_free(struct serve_listeners *doors)
{
	if (!doors)
		return;
	if (doors->line_tcp)
		stream_free(doors->line_tcp);
	if (doors->opentsdb)
		stream_free(doors->opentsdb);
	if (doors->line_udp)
		datagrams_free(doors->line_udp);
	mem_free(doors);
}
