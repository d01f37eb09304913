/* Heartbeats: who is asked whether he runs, again and again, each time a record as Chukwa's
 * HeartbeatAdaptor writes it:
 *
 *     {"time":"2026-11-29T10:00:00Z","components":[
 *       {"component":"agent","status":"running","version":"1.0","spool":0},
 *       {"component":"http://127.0.0.1:8470/-/healthy","status":"stopped","error":"..."}]}
 *
 * Who stops is no error of the adaptor. */
#include "agent/adaptors.h"
#include "agent/inlet.h"
#include "agent/pull.h"
#include "base/stats.h"
#include "wire/json.h"
#include "wire/timetext.h"

enum { HEARTBEAT_LINE_MAX_BYTES = 256 << 10 };

struct heartbeat {
	struct inlet *inlet;
	struct job *job;
	struct spool_stream *stream;
	struct slice components[ADAPTOR_COMPONENTS_MAX];
	struct pull *pulls[ADAPTOR_COMPONENTS_MAX]; /* NULL: this agent */
	size_t count;
	struct buf line;
};

static void heartbeat_put(struct heartbeat *h, size_t i, struct json_writer *json)
{
	struct errbuf e = {""};
	struct slice body;
	int err = h->pulls[i] ? pull_get(h->pulls[i], &body, &e) : 0;
	json_write_object_begin(json);
	json_put_string(json, "component", h->components[i]);
	json_put_text(json, "status", err ? "stopped" : "running");
	if (err) {
		json_put_text(json, "error", e.text);
	} else if (!h->pulls[i]) {
		json_put_text(json, "version", GRANARY_VERSION);
		json_put_u64(json, "spool", spool_bytes(inlet_spool(h->inlet)));
	}
	json_write_object_end(json);
	if (!job_is_stopping(h->job))
		stat_add(err ? STAT_heartbeat_stopped : STAT_heartbeat_running, 1);
}

static void heartbeat_once(void *owner)
{
	struct heartbeat *h = owner;
	struct json_writer json;
	char time[TIME_PRINT_MAX_BYTES];
	struct slice text = {time, time_print(time, clock_wall_ms(inlet_clock(h->inlet)))};
	buf_clear(&h->line);
	json_writer_init(&json, &h->line);
	json_write_object_begin(&json);
	json_put_string(&json, "time", text);
	json_write_key(&json, "components");
	json_write_array_begin(&json);
	for (size_t i = 0; i < h->count; i++)
		heartbeat_put(h, i, &json);
	json_write_array_end(&json);
	json_write_object_end(&json);
	if (job_is_stopping(h->job)) /* who did not answer for that has not stopped */
		return;
	const struct slice record = buf_slice(&h->line);
	inlet_keep(h->inlet, h->job, h->stream, &record, 1);
}

static void heartbeat_open(struct heartbeat *h)
{
	const struct adaptor *adaptor = inlet_adaptor(h->inlet);
	struct slice left = adaptor->path, component;
	while (adaptors_take_component(&left, &component)) {
		h->components[h->count] = component;
		if (!slice_equal(component, SLICE(ADAPTOR_COMPONENT_AGENT)))
			h->pulls[h->count] = pull_new(component, adaptor->timeout_ms,
						      &job_queue(h->job)->stopped);
		h->count++;
	}
}

static void heartbeat_run(struct inlet *inlet, struct job *job)
{
	struct heartbeat *h = inlet_state(inlet);
	h->inlet = inlet;
	h->job = job;
	if (inlet_own_stream(inlet, &h->stream))
		return;
	buf_init(&h->line, HEARTBEAT_LINE_MAX_BYTES);
	heartbeat_open(h);
	inlet_repeat(inlet, job, heartbeat_once, h);
	for (size_t i = 0; i < h->count; i++)
		if (h->pulls[i])
			pull_free(h->pulls[i]);
	buf_release(&h->line);
}

const struct inlet_kind inlet_heartbeat = {
	.run = heartbeat_run,
	.bytes = sizeof(struct heartbeat),
};
