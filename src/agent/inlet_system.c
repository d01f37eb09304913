/* This machine's metrics (host/host_metrics.h): each time a line of JSON for the machine, and one
 * for each core, interface, file system and disk, and for this process. The rule of their datatype
 * makes the metrics of them that a server has of its own machine (doc/demux.md). */
#include <unistd.h>

#include "agent/inlet.h"
#include "base/buf.h"

enum {
	/* Rates need two rounds: the second follows soon. */
	SYSTEM_SECOND_ROUND_MS = 1000,
	SYSTEM_LINES_MAX = 64, /* at once */
	SYSTEM_LINE_MAX_BYTES = 8 << 10,
};

struct system_inlet {
	struct inlet *inlet;
	struct job *job;
	struct spool_stream *stream;
	struct host_rules rules;
	struct host_snapshot snapshots[2];
	unsigned newest;
	struct buf lines[SYSTEM_LINES_MAX];
	size_t count;
};

static void system_flush(struct system_inlet *s)
{
	struct slice records[SYSTEM_LINES_MAX];
	for (size_t i = 0; i < s->count; i++)
		records[i] = buf_slice(&s->lines[i]);
	if (s->count)
		inlet_keep(s->inlet, s->job, s->stream, records, s->count);
	s->count = 0;
}

static void system_take_group(void *context, const struct host_group *group)
{
	struct system_inlet *s = context;
	struct buf *line = &s->lines[s->count++];
	buf_clear(line);
	host_group_put(group, s->snapshots[s->newest].wall_ms, line);
	if (s->count == SYSTEM_LINES_MAX)
		system_flush(s);
}

static void system_read(struct system_inlet *s)
{
	s->newest = 1 - s->newest;
	host_snapshot_read(&s->snapshots[s->newest], files_real(), inlet_clock(s->inlet));
}

static void system_once(void *owner)
{
	struct system_inlet *s = owner;
	const struct host_snapshot *before = &s->snapshots[s->newest];
	system_read(s);
	if (s->snapshots[s->newest].has_load)
		inlet_set_problem(s->inlet, NULL);
	else
		inlet_set_problem(s->inlet, "/proc/loadavg cannot be read: these metrics need "
					    "Linux's /proc");
	host_compare(before, &s->snapshots[s->newest], &s->rules, system_take_group, s);
	system_flush(s);
}

static void system_run(struct inlet *inlet, struct job *job)
{
	struct system_inlet *s = inlet_state(inlet);
	const int64_t every_ms = inlet_adaptor(inlet)->every_ms;
	s->inlet = inlet;
	s->job = job;
	s->rules = *inlet_host_rules(inlet);
	if (inlet_own_stream(inlet, &s->stream))
		return;
	for (size_t i = 0; i < ARRAY_LEN(s->snapshots); i++)
		host_snapshot_init(&s->snapshots[i]);
	for (size_t i = 0; i < SYSTEM_LINES_MAX; i++)
		buf_init(&s->lines[i], SYSTEM_LINE_MAX_BYTES);
	system_read(s);
	if (!job_sleep(job, smaller_of(every_ms, SYSTEM_SECOND_ROUND_MS)))
		inlet_repeat(inlet, job, system_once, s);
	for (size_t i = 0; i < SYSTEM_LINES_MAX; i++)
		buf_release(&s->lines[i]);
	for (size_t i = 0; i < ARRAY_LEN(s->snapshots); i++)
		host_snapshot_release(&s->snapshots[i]);
}

const struct inlet_kind inlet_system = {
	.run = system_run,
	.bytes = sizeof(struct system_inlet),
};
