#include "cmd/serve_streams.h"

#include "base/log.h"
#include "base/random.h"
#include "conf/conf.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "stream/streams.h"

enum {
	READERS = 2,
	EVERY_MS = 1000,
	/* Of bodies; connections are fewer, unless they are configured to be very many. */
	BODIES_WAITING_MAX = 4096,
};

static int serve_streams_read_rules(const struct conf *conf, struct keep_rules *rules,
				    struct errbuf *e)
{
	const struct conf_list *items = &conf->stream_keep_rules;
	rules->preset_ms = conf->stream_keep_ms;
	return keep_rules_parse(items->items, items->count, "DATATYPE", rules, e);
}

int serve_streams_read(const struct conf *conf, struct datatypes **datatypes, struct errbuf *e)
{
	struct keep_rules rules;
	int err = serve_streams_read_rules(conf, &rules, e);
	if (err)
		return conf_refuse_item(conf, CONF_ID_stream_keep_rules, rules.count, e);
	return datatypes_read(conf->sections[CONF_SECTION_DATATYPES], datatypes, e);
}

void serve_streams_open(struct serve_streams *streams, const struct serve_streams_options *options)
{
	const struct conf *conf = options->conf;
	struct errbuf e;
	int err = serve_streams_read_rules(conf, &streams->keep, &e);
	ASSERT(!err); /* serve_streams_read */
	const struct streams_options stream = {
		.store = options->store,
		.clock = options->clock,
		.executor = loop_executor(options->loop),
		.session = options->session,
		.limits = {.streams_max = (uint64_t)conf->stream_streams_max,
			   .new_a_minute = (uint64_t)conf->stream_new_per_minute,
			   .rate_bytes = (uint64_t)conf->stream_rate_bytes,
			   .tail_max_bytes = (uint64_t)conf->stream_waiting_max_bytes,
			   .holes_max = (uint64_t)conf->stream_holes_max},
		.level = (int)conf->stream_level,
		.every_ms = EVERY_MS,
		.seal_after_ms = conf->stream_seal_after_ms,
		/* What is acknowledged, is acknowledged by then. */
		.write_max_ms = conf->query_timeout_ms,
		.keep = &streams->keep,
		.retain_every_ms = conf->stream_retain_every_ms,
		.late_max_ms = conf->stream_late_max_ms,
		.owns_none = !conf->stream_own,
		.seed = random_system_seed(),
	};
	chunks_door_init(&streams->door, options->clock,
			 (size_t)conf->ingest_in_flight_max_bytes / 4, conf->ingest_wait_max_ms);
	streams->options = stream;
	streams->streams = streams_open(&stream);
	streams->pool = pool_new(READERS, BODIES_WAITING_MAX, "chunks1");
	streams_start(streams->streams);
}

void serve_streams_start_demux(struct serve_streams *streams, struct datatypes **datatypes,
			       struct ingest *ingest, struct board_keys *keys,
			       const struct row_site *rows)
{
	const struct streams_options *options = &streams->options;
	demux_samples_init(&streams->samples, ingest, options->store, options->clock,
			   options->executor, keys, rows);
	streams_start_demux(streams->streams, datatypes, &streams->samples.sink);
}

void serve_streams_tick(struct serve_streams *streams)
{
	if (!streams->streams)
		return;
	chunks_door_tick(&streams->door);
	streams_tick(streams->streams);
}

void serve_streams_stop(struct serve_streams *streams)
{
	if (streams->streams)
		streams_stop(streams->streams);
}

bool serve_streams_are_over(const struct serve_streams *streams)
{
	return !streams->streams || streams_is_over(streams->streams);
}

void serve_streams_close(struct serve_streams *streams)
{
	if (!streams->streams)
		return;
	pool_close(streams->pool);
	streams_close(streams->streams);
	demux_samples_release(&streams->samples);
	streams->streams = NULL;
}
