/* The streams of the spool, which are followed as other logs are. */
#include <limits.h>

#include "agent/adaptors.h"
#include "agent/agent_private.h"
#include "base/log.h"

static const struct followed_rule spooled_rule = {
	.records.kind = RECORDS_ESCAPED,
	.rest_ms = ADAPTOR_WAIT_MS,
	.own = true,
};

static void spooled_want(struct agent *agent, const struct spool_stream *stream)
{
	const struct slice datatype = spool_stream_datatype(stream);
	const struct slice name = spool_stream_name(stream);
	struct followed *f = agent_find(agent, datatype, name);
	int err = f ? 0 : agent_add(agent, &spooled_rule, datatype, name, &f);
	if (err == ERR_LIMIT)
		log_rated(&agent->troubles, agent_now_ms(agent), LOG_ERROR,
			  "the stream `" SHOWN "` of the spool is not delivered: more files are "
			  "followed than may be",
			  SHOWN_OF(name));
	if (err) /* another one is said in the log */
		return;
	f->unwanted_ms = 0;
	if (f->wanted)
		return;
	f->rule = &spooled_rule;
	f->wanted = true;
	agent_activate(agent, f, agent_now_ms(agent));
}

void spooled_scan(struct agent *agent)
{
	char directory[PATH_MAX];
	struct spool *spool = agent->options.spool;
	const size_t count = spool ? spool_stream_count(spool) : 0;
	if (spool) { /* where streams begin */
		agent_spool_directory(agent, directory);
		agent_watch_directory(agent, directory);
	}
	for (size_t i = 0; i < count; i++)
		spooled_want(agent, spool_stream_at(spool, i));
}

static bool spooled_is_delivered(void *owner, const struct file_look *look)
{
	return followed_has_delivered(owner, look);
}

static void spooled_removed(void *owner, const struct file_look *look)
{
	followed_removed(owner, &look->id);
}

void spooled_remove(struct agent *agent)
{
	struct spool *spool = agent->options.spool;
	const size_t count = spool ? spool_stream_count(spool) : 0;
	for (size_t i = 0; i < count; i++) {
		struct spool_stream *stream = spool_stream_at(spool, i);
		struct followed *f =
			agent_find(agent, spool_stream_datatype(stream), spool_stream_name(stream));
		if (f && f->wanted && !f->pending_count && !f->asks)
			spool_remove_delivered(stream, spooled_is_delivered, spooled_removed, f);
	}
}
