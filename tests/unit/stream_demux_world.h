/* The world of lines that become samples: one stream on the rig of the contract's suite, chunks as
 * the collector leaves them, passes that the test runs, and a sink that keeps the last value of
 * each sample, and fails when it is told to. */
#ifndef TESTS_UNIT_STREAM_DEMUX_WORLD_H
#define TESTS_UNIT_STREAM_DEMUX_WORLD_H

#include "contract/engines.h"

#include <stdio.h>

#include "base/random.h"
#include "conf/conf.h"
#include "loop/job.h"
#include "stream/demux_pass.h"
#include "stream_rig.h"

enum { POINTS_MAX = 20000, PASSES_MAX = 400 };

static const struct stream_names names = {SLICE("h1"), SLICE("c1"), SLICE("acc"),
					  SLICE("/var/log/a")};

static const char events[] = "datatypes:\n"
			     "  acc:\n"
			     "    pattern: '<_> <method> <bytes>'\n"
			     "    events: {tags: [method], values: [bytes]}\n";

/* ---- The sink: the last value of each metric, tags and time ---------------------------------- */

struct written {
	char key[200]; /* metric{tags} and ms */
	double value;
};

struct sink {
	struct demux_sink sink;
	struct demux_work *work;
	struct random *random;
	unsigned fails; /* percent */
	bool cuts;      /* now and then the lease ends when samples are written */
	struct written *list;
	size_t count;
	uint64_t writes;
	int64_t next_us; /* the stamp of the next value of the pass */
};

static inline struct written *sink_find(struct sink *sink, const char *key)
{
	for (size_t i = 0; i < sink->count; i++)
		if (strcmp(sink->list[i].key, key) == 0)
			return &sink->list[i];
	return NULL;
}

static inline void sink_put(struct sink *sink, const char *key, double value)
{
	struct written *there = sink_find(sink, key);
	if (!there) {
		assert_true(sink->count < POINTS_MAX);
		there = &sink->list[sink->count++];
		snprintf(there->key, sizeof(there->key), "%s", key);
	}
	there->value = value;
}

static inline int sink_write(struct demux_sink *base, UNUSED struct job *job, struct slice tenant,
			     UNUSED const struct datatype *rule, const struct demux_point *points,
			     size_t count, int64_t stamp_us, struct errbuf *e)
{
	struct sink *sink = CONTAINER_OF(base, struct sink, sink);
	assert_slice(tenant, SLICE("t"));
	assert_int_equal(stamp_us, sink->next_us);
	sink->writes++;
	bool fails = sink->fails && random_below(sink->random, 100) < sink->fails;
	for (size_t i = 0; i < count; i++) {
		sink->next_us += (int64_t)points[i].count;
		for (size_t j = 0; j < points[i].count; j++) {
			char key[200];
			int at = snprintf(key, sizeof(key), "%.*s{", (int)points[i].metrics[j].len,
					  points[i].metrics[j].data);
			for (size_t t = 0; t < points[i].tag_count; t++)
				at += snprintf(key + at, sizeof(key) - (size_t)at, "%s%.*s=%.*s",
					       t ? "," : "", (int)points[i].tags[t].key.len,
					       points[i].tags[t].key.data,
					       (int)points[i].tags[t].value.len,
					       points[i].tags[t].value.data);
			snprintf(key + at, sizeof(key) - (size_t)at, "}%lld",
				 (long long)(points[i].ms - T0));
			if (!fails || random_below(sink->random, 2)) /* some of it may be there */
				sink_put(sink, key, value_as_f64(points[i].values[j]));
		}
	}
	if (sink->cuts && random_below(sink->random, 3) == 0)
		sink->work->until_ms = 0;
	return fails ? errbuf_set(e, ERR_BUSY, "no room") : 0;
}

/* ---- A world --------------------------------------------------------------------------------- */

struct world {
	struct rig rig;
	struct random random;
	struct stream_site site;
	struct datatypes *datatypes;
	struct demux_work work;
	struct demux_stream stream;
	struct sink sink;
	struct demux_passed passed;
	uint64_t made; /* cells that say so; the first has the greatest stamp */
};

static inline void world_open(struct world *w, const struct contract_engine *engine, uint64_t seed,
			      const char *yaml)
{
	struct errbuf e = {""};
	struct conf *conf = conf_new();
	memset(w, 0, sizeof(*w));
	rig_open(&w->rig, engine);
	random_init(&w->random, seed);
	assert_int_equal(conf_read_yaml(conf, "g.yml", slice_of(yaml), &e), 0);
	assert_int_equal(datatypes_read(conf->sections[CONF_SECTION_DATATYPES], &w->datatypes, &e),
			 0);
	conf_free(conf);
	w->site = (struct stream_site){.store = w->rig.store, .clock = &w->rig.clock.clock};
	w->sink = (struct sink){.sink = {sink_write},
				.work = &w->work,
				.random = &w->random,
				.list = mem_zalloc(POINTS_MAX * sizeof(struct written))};
	w->work = (struct demux_work){.site = &w->site,
				      .queue = &w->rig.queue,
				      .sink = &w->sink.sink,
				      .until_ms = INT64_MAX,
				      .write_max_ms = 1000,
				      .late_max_ms = DAY_MS,
				      .bins_max_bytes = 1 << 20};
	demux_work_init(&w->work);
	w->stream = (struct demux_stream){.tenant = SLICE("t"),
					  .names = names,
					  .rule = datatypes_find(w->datatypes, SLICE("acc"))};
	assert_non_null(w->stream.rule);
}

static inline void world_close(struct world *w)
{
	demux_stream_forget(&w->stream);
	demux_work_release(&w->work);
	datatypes_free(w->datatypes);
	mem_free(w->sink.list);
	rig_close(&w->rig);
}

static inline struct stream_id world_id(uint64_t incarnation)
{
	return (struct stream_id){SLICE("t"), names, incarnation};
}

/* The first time counts. */
static inline void world_put_made(struct world *w, uint64_t incarnation, int64_t made_ms)
{
	const struct stream_id id = world_id(incarnation);
	stream_rig_put_made(&w->rig, &id, made_ms, INT64_MAX / 2 - (int64_t)++w->made);
}

/* As the collector has it, of a chunk that it has taken. */
static inline void world_put_chunk(struct world *w, uint64_t incarnation, uint64_t begin,
				   struct slice data, bool continues)
{
	const struct stream_id id = world_id(incarnation);
	stream_rig_put_chunk(&w->rig, &id, begin, data, continues);
	world_put_made(w, incarnation, T0);
}

static inline void world_put(struct world *w, uint64_t incarnation, uint64_t begin,
			     const char *text)
{
	world_put_chunk(w, incarnation, begin, slice_of(text), false);
}

static inline void world_seal(struct world *w, uint64_t incarnation, bool all)
{
	const struct stream_id id = world_id(incarnation);
	stream_rig_seal(&w->rig, &id, all, INT64_MIN);
}

static inline int world_pass(struct world *w)
{
	struct errbuf e = {""};
	w->work.until_ms = INT64_MAX;
	/* The clock stands: the pass takes the next stamp before it reads anything. */
	w->sink.next_us = store_stamp(w->rig.store) + 1;
	return demux_pass(&w->work, &w->stream, &w->passed, &e);
}

static inline void world_kill(struct world *w)
{
	demux_stream_forget(&w->stream);
}

/* Until nothing is left to be done. */
static inline void world_finish(struct world *w)
{
	w->sink.fails = 0;
	w->sink.cuts = false;
	for (int i = 0; i < PASSES_MAX; i++) {
		assert_int_equal(world_pass(w), 0);
		if (!w->passed.more && !w->passed.waits)
			return;
		rig_advance_ms(&w->rig, 20000);
	}
	fail_msg("the passes do not end");
}

static inline double world_value(struct world *w, const char *key)
{
	const struct written *there = sink_find(&w->sink, key);
	if (!there)
		fail_msg("%s was not written", key);
	return there->value;
}

#endif
