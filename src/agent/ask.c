/* What an agent asks a collector about streams that are its own: where it goes on when its
 * checkpoint is gone. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_private.h"
#include "wire/json.h"
#include "wire/number.h"
#include "wire/percent.h"

enum { ASK_ARENA_MAX_BYTES = 64 << 20, ASK_PAGE = 1000, ASK_AGAIN_MS = 5000, ASK_PAGES_MAX = 1000 };

static void ask_param(struct buf *path, const char *name, struct slice value)
{
	buf_printf(path, "&%s=", name);
	percent_encode(value, path);
}

static void ask_tenant(struct slice tenant, struct buf *path)
{
	if (tenant.len)
		ask_param(path, "tenant", tenant);
}

/* ---- What is held ---------------------------------------------------------------------------- */

struct ask_stream {
	struct slice datatype, name;
	uint64_t incarnation, end;
	int64_t made_ms;
};

static bool ask_read_stream(const struct json *node, struct ask_stream *stream)
{
	const struct json *held_to = json_member(node, "held_to");
	struct slice incarnation;
	char digits[STREAM_INCARNATION_DIGITS + 1], *end;
	if (json_get_text(node, "datatype", &stream->datatype, NULL) ||
	    json_get_text(node, "name", &stream->name, NULL) ||
	    json_get_text(node, "incarnation", &incarnation, NULL) ||
	    json_get_i64(node, "made", &stream->made_ms, NULL) || !held_to ||
	    held_to->type != JSON_T_NUMBER ||
	    number_parse_u64(held_to->text.data, held_to->text.data + held_to->text.len,
			     &stream->end) ||
	    stream->end > STREAM_OFFSET_MAX || incarnation.len != STREAM_INCARNATION_DIGITS)
		return false;
	memcpy(digits, incarnation.data, STREAM_INCARNATION_DIGITS);
	digits[STREAM_INCARNATION_DIGITS] = 0;
	stream->incarnation = strtoull(digits, &end, 16);
	return !*end && stream->incarnation;
}

static void ask_see(struct agent *agent, struct slice tenant, const struct ask_stream *stream)
{
	struct followed *f = agent_find(agent, stream->datatype, stream->name);
	if (!f || !slice_equal(agent_tenant(agent, f), tenant))
		return;
	if (f->asks && stream->made_ms >= f->held_made_ms) {
		f->held_made_ms = stream->made_ms;
		f->held_incarnation = stream->incarnation;
		f->held_end = stream->end;
	}
}

/* *token: where the next page begins; len 0: there is none. */
static int ask_page(struct agent *agent, struct slice tenant, const char *path, struct arena *arena,
		    struct slice *token)
{
	struct http_call call;
	struct json *root;
	struct errbuf e = {""};
	const struct json *streams;
	*token = (struct slice){NULL, 0};
	int err = delivery_get(agent, path, &call);
	if (err)
		return err;
	err = json_parse(buf_slice(&agent->answer), arena, &root, &e);
	err = err ? err : json_get_array(root, "streams", &streams, &e);
	if (err) {
		log_rated(&agent->troubles, agent_now_ms(agent), LOG_WARN,
			  "%s: what it says of streams cannot be read: %s",
			  agent->options.collectors[agent->collector], e.text);
		return err;
	}
	for (const struct json *node = streams->first; node; node = node->next) {
		struct ask_stream stream;
		if (ask_read_stream(node, &stream))
			ask_see(agent, tenant, &stream);
	}
	if (json_get_text(root, "token", token, NULL))
		*token = (struct slice){NULL, 0};
	return 0;
}

/* All pages of the list of this agent's streams in a tenant. */
static int ask_streams(struct agent *agent, struct slice tenant)
{
	struct arena arena;
	struct buf path;
	struct slice token = {NULL, 0};
	int err = 0, pages = 0;
	arena_init(&arena, ASK_ARENA_MAX_BYTES);
	buf_init(&path, AGENT_PATH_MAX_BYTES);
	do {
		buf_clear(&path);
		buf_printf(&path, "/api/streams?limit=%d", ASK_PAGE);
		ask_tenant(tenant, &path);
		ask_param(&path, "source", agent->options.source);
		ask_param(&path, "cluster", agent->options.cluster);
		if (token.len)
			ask_param(&path, "token", token);
		if (buf_append_char(&path, 0))
			err = ERR_LIMIT;
		arena_reset(&arena);
		err = err ? err : ask_page(agent, tenant, path.data, &arena, &token);
	} while (!err && token.len && ++pages < ASK_PAGES_MAX);
	buf_release(&path);
	arena_release(&arena);
	return err;
}

/* ---- Where to go on -------------------------------------------------------------------------- */

/* The last bytes that are held, in agent->answer. ERR_NOT_FOUND: they cannot be had. */
static int ask_last_bytes(struct agent *agent, const struct followed *f)
{
	struct http_call call;
	struct buf path, address;
	uint64_t from =
		f->held_end > CONTENT_MARK_MAX_BYTES ? f->held_end - CONTENT_MARK_MAX_BYTES : 0;
	buf_init(&path, AGENT_PATH_MAX_BYTES);
	buf_init(&address, STREAM_ADDRESS_MAX_BYTES);
	stream_address_put(&f->names, f->held_incarnation, &address);
	buf_printf(&path, "/api/streams/export?from=%" PRIu64 "&to=%" PRIu64, from, f->held_end);
	ask_tenant(agent_tenant(agent, f), &path);
	ask_param(&path, "stream", buf_slice(&address));
	buf_append_char(&path, 0);
	int err = path.failed ? ERR_LIMIT : delivery_get(agent, path.data, &call);
	/* All of them, with no hole behind. */
	if (!err && (!agent->answer.len || agent->answer.len > CONTENT_MARK_MAX_BYTES ||
		     (uint64_t)call.offset + agent->answer.len != f->held_end))
		err = ERR_NOT_FOUND;
	buf_release(&path);
	buf_release(&address);
	return err;
}

static int ask_go_on(struct agent *agent, struct followed *f)
{
	int err = ERR_NOT_FOUND;
	if (f->held_incarnation && f->held_end) {
		err = ask_last_bytes(agent, f);
		err = err ? err
			  : followed_adopt(f, f->held_incarnation, f->held_end,
					   buf_slice(&agent->answer));
	}
	if (err && err != ERR_NOT_FOUND) {
		char text[300];
		snprintf(text, sizeof(text),
			 "it is not known yet where it goes on, since no checkpoint knows it: %s",
			 err_text(err));
		followed_set_problem(f, text);
		f->later_ms = agent_now_ms(agent) + ASK_AGAIN_MS;
		return err;
	}
	if (!err)
		log_info("%s: it goes on at offset %" PRIu64
			 " of what the collector holds, since no checkpoint knows it",
			 f->path, f->offset);
	f->asks = false;
	return 0;
}

void ask_collector(struct agent *agent)
{
	int64_t now_ms = agent_now_ms(agent);
	bool asked = false;
	if (now_ms < agent->asks_again_ms)
		return;
	for (size_t i = 0; i < agent->count && !delivery_rests(agent); i++) {
		struct followed *f = agent->list[i];
		if (!f->asks || !f->wanted || f->later_ms > now_ms)
			continue;
		const struct slice tenant = agent_tenant(agent, f);
		bool own = slice_equal(tenant, agent->options.tenant);
		if (!(own && asked) && ask_streams(agent, tenant)) {
			agent->asks_again_ms = now_ms + ASK_AGAIN_MS;
			return;
		}
		asked |= own;
		if (!ask_go_on(agent, f))
			agent_activate(agent, f, now_ms);
	}
}
