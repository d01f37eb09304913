/* What an agent says of itself to the collector, so that people see there how its files are
 * followed (api/admin/agents.h). The first report has all of them, those after it what has changed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "agent/adaptors.h"
#include "agent/agent_private.h"
#include "base/hash.h"
#include "wire/json.h"
#include "wire/percent.h"

enum {
	REPORT_EVERY_MS = 5000,
	REPORT_REST_MS = 600000,    /* the collector takes no reports at all */
	REPORT_MAX_BYTES = 3 << 20, /* of one; what is left over goes with the next one */
	REPORT_INLETS_MAX_BYTES = 1 << 20,
	REPORT_ROOM_BYTES = 8 << 20,
	REPORT_NAME_MAX_BYTES = 1024,
	REPORT_GONE_MAX = 1000,
	REPORT_ANSWER_MAX_BYTES = 64 << 10,
	REPORT_UNKNOWN = 409, /* the collector wants to be told all */
	REPORT_NOT_TAKEN = 404,
};

static const char *report_state(const struct agent *agent, const struct followed *f)
{
	uint64_t behind = followed_behind_bytes(f);
	switch (f->state) {
	case FOLLOWED_STOPPED:
		return "stopped";
	case FOLLOWED_DONE:
		return "done";
	case FOLLOWED_MISSING:
		return f->rule->own ? "following" : "missing";
	case FOLLOWED_READING:
		break;
	}
	if (f->problem && !f->later_rest_ms)
		return "stopped"; /* it cannot be read */
	if (!behind)
		return "following";
	return f->later_rest_ms || agent->rest_ms ? "waiting" : "behind";
}

static const char *report_kind(const struct followed *f)
{
	return f->rule->whole    ? "file"
	       : f->rule->passes ? "directory"
	       : f->rule->own    ? "spool"
				 : "tail";
}

static int report_name(struct slice datatype, struct slice path,
		       char name[REPORT_NAME_MAX_BYTES + 1])
{
	int len = snprintf(name, REPORT_NAME_MAX_BYTES + 1, "%.*s:%.*s", (int)datatype.len,
			   datatype.data, (int)path.len, path.data);
	return len > REPORT_NAME_MAX_BYTES ? ERR_LIMIT : 0;
}

struct report_row {
	const char *name, *kind, *state, *error;
	struct slice datatype, path;
	uint64_t offset, behind;
	int64_t last_ms;
};

static void report_put_row(const struct report_row *row, struct buf *out)
{
	struct json_writer json;
	json_writer_init(&json, out);
	json_write_object_begin(&json);
	json_put_text(&json, "name", row->name);
	json_put_text(&json, "kind", row->kind);
	json_put_string(&json, "datatype", row->datatype);
	json_put_string(&json, "path", row->path);
	json_put_text(&json, "state", row->state);
	json_put_u64(&json, "offset", row->offset);
	json_put_u64(&json, "behind", row->behind);
	json_put_i64(&json, "lastLine", larger_of(0, row->last_ms));
	json_put_text(&json, "error", row->error);
	json_write_object_end(&json);
}

/* The row of a log, without its name. */
static struct report_row report_row_of(const struct agent *agent, const struct followed *f)
{
	return (struct report_row){
		.kind = report_kind(f),
		.state = report_state(agent, f),
		.error = f->problem ? f->problem : "",
		.datatype = f->names.datatype,
		.path = f->names.name,
		.offset = f->offset,
		.behind = followed_behind_bytes(f),
		.last_ms = f->last_line_ms,
	};
}

/* A hash of all that changes while a log is followed. */
static uint64_t report_hash(const struct report_row *row, uint64_t seed)
{
	const uint64_t numbers[] = {row->offset, row->behind, (uint64_t)row->last_ms,
				    (uint64_t)(uintptr_t)row->kind,
				    (uint64_t)(uintptr_t)row->state};
	return hash64(row->error, strlen(row->error), hash64(numbers, sizeof(numbers), seed));
}

/* All inlets, each time: they are few. */
static bool report_put_inlets(const struct agent *agent, struct buf *out)
{
	struct inlet_said said;
	bool any = false;
	for (size_t i = 0; agent->options.inlets && inlets_said(agent->options.inlets, i, &said) &&
			   out->len < REPORT_INLETS_MAX_BYTES;
	     i++) {
		const struct report_row row = {
			.name = said.name.data,
			.kind = adaptor_kind_words[said.kind],
			.state = said.state,
			.error = said.problem,
			.datatype = said.datatype,
			.path = said.place,
			.last_ms = said.last_ms,
		};
		if (any)
			buf_append_char(out, ',');
		report_put_row(&row, out);
		any = true;
	}
	return any;
}

/* So are directories; their files have rows of their own. */
static bool report_put_directories(const struct agent *agent, bool any, struct buf *out)
{
	for (size_t i = 0; agent->adaptors && i < agent->adaptors->count; i++) {
		const struct adaptor *adaptor = &agent->adaptors->list[i];
		char name[REPORT_NAME_MAX_BYTES + 1];
		if (adaptor->kind != ADAPTOR_DIRECTORY || out->len >= REPORT_INLETS_MAX_BYTES ||
		    report_name(adaptor->datatype, adaptor->path, name))
			continue;
		const char *problem = directory_problem(agent, adaptor);
		const struct report_row row = {
			.name = name,
			.kind = adaptor_kind_words[ADAPTOR_DIRECTORY],
			.state = problem ? "stopped" : "following",
			.error = problem ? problem : "",
			.datatype = adaptor->datatype,
			.path = adaptor->path,
		};
		if (any)
			buf_append_char(out, ',');
		report_put_row(&row, out);
		any = true;
	}
	return any;
}

/* Those that are other than when they were last told. False: some are left over. */
static bool report_put_changed(struct agent *agent, struct buf *out)
{
	struct buf one;
	bool first = !report_put_directories(agent, report_put_inlets(agent, out), out), all = true;
	buf_init(&one, REPORT_ROOM_BYTES);
	for (size_t i = 0; i < agent->count && all; i++) {
		struct followed *f = agent->list[i];
		char name[REPORT_NAME_MAX_BYTES + 1];
		if (!f->wanted)
			continue;
		struct report_row row = report_row_of(agent, f);
		uint64_t hash = report_hash(&row, agent->report_boot);
		if (hash == f->reported_hash || report_name(f->names.datatype, f->names.name, name))
			continue;
		row.name = name;
		buf_clear(&one);
		report_put_row(&row, &one);
		all = out->len + one.len < REPORT_MAX_BYTES;
		if (!all)
			break;
		f->reported_hash = hash;
		if (!first)
			buf_append_char(out, ',');
		buf_append(out, one.data, one.len);
		first = false;
	}
	buf_release(&one);
	return all;
}

void report_forget(struct agent *agent, const struct followed *f)
{
	char name[REPORT_NAME_MAX_BYTES + 1];
	if (!f->reported_hash || report_name(f->names.datatype, f->names.name, name))
		return;
	if (agent->report_gone_count++ >= REPORT_GONE_MAX) {
		agent->report_all = true;
		return;
	}
	if (agent->report_gone.len)
		buf_append_char(&agent->report_gone, ',');
	json_append_string(&agent->report_gone, slice_of(name));
}

void report_begin_anew(struct agent *agent)
{
	for (size_t i = 0; i < agent->count; i++)
		agent->list[i]->reported_hash = 0;
	agent->report_all = true;
}

static void report_make(struct agent *agent, struct buf *out)
{
	struct json_writer json;
	char boot[17], problem[513];
	snprintf(boot, sizeof(boot), "%016" PRIx64, agent->report_boot);
	snprintf(problem, sizeof(problem), "%.480s", agent->problem ? agent->problem : "");
	json_writer_init(&json, out);
	json_write_object_begin(&json);
	json_put_text(&json, "boot", boot);
	json_put_bool(&json, "all", agent->report_all);
	json_put_text(&json, "version", GRANARY_VERSION);
	json_put_text(&json, "collector", agent->options.collectors[agent->collector]);
	json_put_text(&json, "problem", problem);
	json_write_key(&json, "gone");
	json_write_array_begin(&json);
	if (agent->report_gone.len && !agent->report_all)
		json_write_raw(&json, buf_slice(&agent->report_gone));
	json_write_array_end(&json);
	json_write_key(&json, "adaptors");
	buf_append_char(out, '[');
	agent->report_left = !report_put_changed(agent, out);
	buf_append_text(out, "]}");
}

static bool report_take_answer(void *owner, UNUSED long status, struct slice piece)
{
	buf_append(owner, piece.data, piece.len); /* the beginning is enough */
	return true;
}

/* The collector's sentence says why. Two reasons are no fault, and told as such: another agent has
 * reported under this name meanwhile, or the collector was started anew. */
static void report_say_refused(struct agent *agent, const struct http_call *call,
			       struct slice answer)
{
	char sentence[256];
	http_client_sentence(answer, sentence, sizeof(sentence));
	log_rated(&agent->troubles, agent_now_ms(agent),
		  call->status == REPORT_UNKNOWN ? LOG_INFO : LOG_WARN,
		  "%s does not take a report: status %ld: %s",
		  agent->options.collectors[agent->collector], call->status, sentence);
}

/* Gives when there is to be another one. */
static int64_t report_send(struct agent *agent, struct slice body)
{
	struct errbuf e = {""};
	struct buf path, answer;
	struct http_call call = {
		.headers = {"Content-Type: application/json"},
		.body = body,
		.take = report_take_answer,
		.owner = &answer,
	};
	buf_init(&answer, REPORT_ANSWER_MAX_BYTES);
	buf_init(&path, AGENT_PATH_MAX_BYTES);
	buf_append_text(&path, "/api/agents/");
	percent_encode(agent->options.name, &path);
	buf_append_text(&path, "/report");
	buf_append_char(&path, 0);
	call.path = path.data;
	int err = agent->options.net->call(agent->options.net,
					   agent->options.collectors[agent->collector], &call, &e);
	if (!err && call.status == 204) {
		agent->report_all = false;
	} else {
		report_begin_anew(agent);
		if (err)
			log_rated(&agent->troubles, agent_now_ms(agent), LOG_WARN,
				  "a report has no answer: %s", e.text);
		else
			report_say_refused(agent, &call, buf_slice(&answer));
	}
	buf_clear(&agent->report_gone);
	agent->report_gone_count = 0;
	buf_release(&path);
	buf_release(&answer);
	if (!err && call.status == REPORT_NOT_TAKEN)
		return agent_now_ms(agent) + REPORT_REST_MS;
	bool more = agent->report_left && !agent->report_all;
	return agent_now_ms(agent) + (more ? 0 : REPORT_EVERY_MS);
}

void report_if_due(struct agent *agent)
{
	struct buf body;
	int64_t now_ms = agent_now_ms(agent);
	if (now_ms < agent->report_ms || !agent->options.name.len || delivery_rests(agent))
		return;
	buf_init(&body, REPORT_ROOM_BYTES);
	report_make(agent, &body);
	agent->report_ms = report_send(agent, buf_slice(&body));
	buf_release(&body);
}
