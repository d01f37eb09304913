#include "api/admin/agents.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/admin/agent_book.h"
#include "api/admin/reporter.h"
#include "api/json_reply.h"
#include "api/routes.h"
#include "base/log.h"
#include "base/stats.h"
#include "model/stream.h"
#include "wire/number.h"

enum {
	AGENTS_REPORT_ARENA_MAX_BYTES = 64 << 20,
	AGENTS_BOOT_DIGITS = 16,
	AGENTS_WORD_MAX_BYTES = 64, /* a version, a kind */
	AGENTS_COLLECTOR_MAX_BYTES = 1024,
	AGENTS_PATH_MAX_BYTES = 4096,
	AGENTS_SENTENCE_MAX_BYTES = 512, /* a problem, an error */
	AGENTS_LIMIT = 1000,
	AGENTS_LIMIT_MAX = 1000,
	/* A list ends early rather than hold the loop up with very long texts. */
	AGENTS_ANSWER_ENOUGH_BYTES = 4 << 20,
	AGENTS_ANSWER_MAX_BYTES = 8 << 20,
	AGENTS_ANY_STATE = -1,
};

/* ---- What a report says ---------------------------------------------------------------------- */

static int agents_read_text(const struct json *object, const char *key, size_t max_bytes,
			    struct slice *text, struct errbuf *e)
{
	int err = json_get_text(object, key, text, e);
	if (err)
		return err;
	if (text->len > max_bytes)
		return errbuf_set(e, ERR_INVALID, "\"%s\" has %zu bytes; at most %zu are taken",
				  key, text->len, max_bytes);
	return 0;
}

static int agents_read_number(const struct json *object, const char *key, int64_t *number,
			      struct errbuf *e)
{
	int err = json_get_i64(object, key, number, e);
	if (err)
		return err;
	return *number >= 0 ? 0 : errbuf_set(e, ERR_INVALID, "\"%s\" is less than 0", key);
}

static int agents_check_name(struct slice name, struct errbuf *e)
{
	if (name.len && name.len <= STREAM_NAME_MAX_BYTES && reporter_is_one_line(name))
		return 0;
	return errbuf_set(e, ERR_INVALID,
			  "\"" SHOWN "\" is no name of an adaptor: those have 1 to %d bytes "
			  "without control characters",
			  SHOWN_OF(name), STREAM_NAME_MAX_BYTES);
}

static int agents_read_boot(const struct json *root, uint64_t *boot, struct errbuf *e)
{
	struct slice text;
	int err = json_get_text(root, "boot", &text, e);
	if (err)
		return err;
	err = number_parse_hex64(text.data, text.data + text.len, boot);
	return err ? errbuf_set(e, err, "\"boot\" is not 16 hexadecimal digits") : 0;
}

static int agents_read_state(const struct json *object, enum adaptor_state *state, struct errbuf *e)
{
	struct slice text;
	int err = json_get_text(object, "state", &text, e);
	if (err)
		return err;
	for (size_t i = 0; i < ADAPTOR_STATES; i++) {
		if (slice_equal(text, slice_of(adaptor_state_words[i]))) {
			*state = (enum adaptor_state)i;
			return 0;
		}
	}
	return errbuf_set(e, ERR_INVALID,
			  "\"state\" is \"" SHOWN "\", and not following, behind, waiting, "
			  "missing, stopped or done",
			  SHOWN_OF(text));
}

static int agents_read_adaptor(const struct json *said, struct adaptor_seen *a, struct errbuf *e)
{
	int err = json_get_text(said, "name", &a->name, e);
	err = err ? err : agents_check_name(a->name, e);
	if (err)
		return err;
	err = agents_read_text(said, "kind", AGENTS_WORD_MAX_BYTES, &a->kind, e);
	err = err ? err
		  : agents_read_text(said, "datatype", STREAM_DATATYPE_MAX_BYTES, &a->datatype, e);
	err = err ? err : agents_read_text(said, "path", AGENTS_PATH_MAX_BYTES, &a->path, e);
	err = err ? err : agents_read_state(said, &a->state, e);
	err = err ? err : agents_read_number(said, "offset", &a->offset_bytes, e);
	err = err ? err : agents_read_number(said, "behind", &a->behind_bytes, e);
	err = err ? err : agents_read_number(said, "lastLine", &a->last_line_ms, e);
	err = err ? err : agents_read_text(said, "error", AGENTS_SENTENCE_MAX_BYTES, &a->error, e);
	return err ? errbuf_prefix(e, err, "adaptor \"" SHOWN "\"", SHOWN_OF(a->name)) : 0;
}

static int agents_read_adaptors(const struct json *list, struct arena *arena,
				struct agent_said *said, struct errbuf *e)
{
	said->adaptors = arena_alloc(arena, list->count * sizeof(*said->adaptors));
	if (!said->adaptors)
		return errbuf_set(e, ERR_LIMIT, "the report is too long");
	for (const struct json *one = list->first; one; one = one->next) {
		int err = agents_read_adaptor(one, &said->adaptors[said->adaptor_count], e);
		if (err)
			return err;
		said->adaptor_count++;
	}
	return 0;
}

static int agents_read_gone(const struct json *list, struct arena *arena, struct agent_said *said,
			    struct errbuf *e)
{
	said->gone = arena_alloc(arena, list->count * sizeof(*said->gone));
	if (!said->gone)
		return errbuf_set(e, ERR_LIMIT, "the report is too long");
	for (const struct json *one = list->first; one; one = one->next) {
		if (one->type != JSON_T_STRING)
			return errbuf_set(e, ERR_INVALID, "\"gone\" is not an array of names");
		int err = agents_check_name(one->text, e);
		if (err)
			return errbuf_prefix(e, err, "\"gone\"");
		said->gone[said->gone_count++] = one->text;
	}
	return 0;
}

static int agents_read_report(const struct json *root, struct arena *arena, struct agent_said *said,
			      struct errbuf *e)
{
	const struct json *adaptors = NULL, *gone = NULL;
	if (root->type != JSON_T_OBJECT)
		return errbuf_set(e, ERR_INVALID, "a report is an object");
	int err = agents_read_boot(root, &said->boot, e);
	err = err ? err : json_get_bool(root, "all", &said->all, e);
	err = err ? err
		  : agents_read_text(root, "version", AGENTS_WORD_MAX_BYTES, &said->version, e);
	err = err ? err
		  : agents_read_text(root, "collector", AGENTS_COLLECTOR_MAX_BYTES,
				     &said->collector, e);
	err = err ? err
		  : agents_read_text(root, "problem", AGENTS_SENTENCE_MAX_BYTES, &said->problem, e);
	err = err ? err : json_get_array(root, "adaptors", &adaptors, e);
	err = err ? err : json_get_array(root, "gone", &gone, e);
	err = err ? err : agents_read_adaptors(adaptors, arena, said, e);
	return err ? err : agents_read_gone(gone, arena, said, e);
}

/* ---- POST /api/agents/NAME/report ------------------------------------------------------------ */

/* The name of an agent in the book. A caller that does not have all tenants reports about agents of
 * its tenant only, such as `acme/web1`: so no tenant's report takes the place of another's. */
static struct slice agents_name_of(const struct http_request *request, struct slice name,
				   struct arena *arena)
{
	struct slice tenant = request->tenant;
	if (!tenant.data)
		return name;
	char *text = arena_alloc(arena, tenant.len + 1 + name.len);
	ASSERT(text); /* the first of its arena */
	memcpy(text, tenant.data, tenant.len);
	text[tenant.len] = '/';
	memcpy(text + tenant.len + 1, name.data, name.len);
	return (struct slice){text, tenant.len + 1 + name.len};
}

/* 0, or the status to answer with. */
static int agents_take(struct http_request *request, struct slice name, struct arena *arena,
		       struct errbuf *e)
{
	struct api *api = api_of(request);
	struct agent_said said = {.boot = 0, .of_tenant = request->tenant.len};
	struct json *root;
	int err = json_parse(buf_slice(&request->body), arena, &root, e);
	err = err ? err : agents_read_report(root, arena, &said, e);
	if (err)
		return err == ERR_LIMIT ? http_status_of(err) : 400;
	const int64_t now_ms = clock_wall_ms(api->clock);
	err = agent_book_take(api->agents, name, &said, arena, now_ms, e);
	if (agent_book_tells_shared(api->agents, name, now_ms))
		log_warn("several agents report under the name \"" SHOWN
			 "\", and each report of one replaces that of another one: give each an "
			 "agent.name of its own",
			 SHOWN_OF(name));
	return !err ? 0 : err == ERR_RETRY ? 409 : http_status_of(err);
}

static void agents_report_end(struct http_request *request)
{
	struct errbuf e = {""};
	struct arena arena;
	struct slice name;
	if (!reporter_read_path(request, "report", &name) || !params_none(request))
		return;
	arena_init(&arena, AGENTS_REPORT_ARENA_MAX_BYTES);
	int status = agents_take(request, agents_name_of(request, name, &arena), &arena, &e);
	stat_add(!status         ? STAT_agents_reports_taken
		 : status == 409 ? STAT_agents_reports_unknown
		 : status == 507 ? STAT_agents_reports_no_room
				 : STAT_agents_reports_refused,
		 1);
	if (status)
		http_reply_error(request, status, "%s", e.text);
	else
		http_reply(request, 204, NULL, (struct slice){NULL, 0});
	arena_release(&arena);
}

const struct http_handler agents_report = {.end = agents_report_end};

/* ---- What is told of them -------------------------------------------------------------------- */

struct agents_question {
	struct slice token;
	size_t limit;
	int state;
};

#define AGENTS_FIELD(field_) offsetof(struct agents_question, field_)
#define AGENTS_LIMIT_ROW                                                                           \
	{                                                                                          \
		"limit", PARAM_NUMBER, AGENTS_FIELD(limit), 1, AGENTS_LIMIT_MAX,                   \
			.help = "At most so many; 1000."                                           \
	}
#define AGENTS_TOKEN_ROW                                                                           \
	{                                                                                          \
		"token", PARAM_TEXT, AGENTS_FIELD(token),                                          \
			.help = "Goes on where the last answer ended."                             \
	}

const struct param agents_list_params[] = {AGENTS_LIMIT_ROW, AGENTS_TOKEN_ROW, {NULL}};

const struct param agents_show_params[] = {{"state", PARAM_WORD, AGENTS_FIELD(state),
					    .words = adaptor_state_words,
					    .help = "Only adaptors in this state."},
					   AGENTS_LIMIT_ROW,
					   AGENTS_TOKEN_ROW,
					   {NULL}};

/* False: 400 was said. */
static bool agents_read_question(struct http_request *request, struct agents_question *asked)
{
	struct errbuf e = {""};
	*asked = (struct agents_question){.limit = AGENTS_LIMIT, .state = AGENTS_ANY_STATE};
	if (!params_read_route(request, 0, asked, &e))
		return true;
	http_reply_error(request, 400, "%s", e.text);
	return false;
}

static void agents_put_states(struct json_writer *json, const struct agent_seen *agent)
{
	json_write_key(json, "states");
	json_write_object_begin(json);
	for (size_t i = 0; i < ADAPTOR_STATES; i++)
		json_put_u64(json, adaptor_state_words[i], agent->states[i]);
	json_write_object_end(json);
}

static void agents_put_own(struct json_writer *json, const struct agent_seen *agent, int64_t now_ms)
{
	json_put_string(json, "name", agent->name);
	json_put_string(json, "version", agent->version);
	json_put_string(json, "collector", agent->collector);
	json_put_i64(json, "heard", agent->heard_ms);
	json_put_bool(json, "silent", reporter_is_silent(agent->heard_ms, now_ms));
	json_put_bool(json, "shared", !reporter_is_silent(agent->shared_ms, now_ms));
	json_put_string(json, "problem", agent->problem);
	json_put_i64(json, "behind", agent->behind_bytes);
	agents_put_states(json, agent);
}

static void agents_list_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	const struct agent_book *book = api->agents;
	struct agents_question asked;
	struct json_reply reply;
	if (!agents_read_question(request, &asked))
		return;
	size_t at = asked.token.data ? agent_book_behind(book, asked.token) : 0, count = 0;
	struct json_writer *json = json_reply_begin(&reply, AGENTS_ANSWER_MAX_BYTES);
	json_write_object_begin(json);
	json_write_key(json, "agents");
	json_write_array_begin(json);
	for (;
	     at < book->count && count < asked.limit && reply.body.len < AGENTS_ANSWER_ENOUGH_BYTES;
	     at++, count++) {
		json_write_object_begin(json);
		agents_put_own(json, book->agents[at], clock_wall_ms(api->clock));
		json_put_u64(json, "adaptors", book->agents[at]->count);
		json_write_object_end(json);
	}
	json_write_array_end(json);
	if (at < book->count)
		json_put_string(json, "token", book->agents[at - 1]->name);
	json_write_object_end(json);
	json_reply_send(&reply, request);
}

const struct http_handler agents_list = {.end = agents_list_end};

static void agents_put_adaptor(struct json_writer *json, const struct adaptor_seen *a)
{
	json_write_object_begin(json);
	json_put_string(json, "name", a->name);
	json_put_string(json, "kind", a->kind);
	json_put_string(json, "datatype", a->datatype);
	json_put_string(json, "path", a->path);
	json_put_text(json, "state", adaptor_state_words[a->state]);
	json_put_i64(json, "offset", a->offset_bytes);
	json_put_i64(json, "behind", a->behind_bytes);
	json_put_i64(json, "lastLine", a->last_line_ms);
	json_put_string(json, "error", a->error);
	json_write_object_end(json);
}

static void agents_put_adaptors(struct json_reply *reply, const struct agent_seen *agent,
				const struct agents_question *asked)
{
	struct json_writer *json = &reply->json;
	const struct adaptor_seen *last = NULL;
	bool more = false;
	size_t count = 0;
	json_write_key(json, "adaptors");
	json_write_array_begin(json);
	for (size_t i = asked->token.data ? agent_seen_behind(agent, asked->token) : 0;
	     i < agent->count; i++) {
		const struct adaptor_seen *a = agent->adaptors[i];
		if (asked->state != AGENTS_ANY_STATE && (int)a->state != asked->state)
			continue;
		more = count == asked->limit || reply->body.len >= AGENTS_ANSWER_ENOUGH_BYTES;
		if (more)
			break;
		agents_put_adaptor(json, a);
		last = a;
		count++;
	}
	json_write_array_end(json);
	if (more)
		json_put_string(json, "token", last->name);
}

static void agents_say_none(struct http_request *request, struct slice name)
{
	http_reply_error(request, 404,
			 "no agent \"" SHOWN "\" has reported since the server's start",
			 SHOWN_OF(name));
}

static void agents_show_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct agents_question asked;
	struct json_reply reply;
	struct slice name;
	char boot[AGENTS_BOOT_DIGITS + 1];
	if (!reporter_read_path(request, NULL, &name) || !agents_read_question(request, &asked))
		return;
	const struct agent_seen *agent = agent_book_find(api->agents, name);
	if (!agent) {
		agents_say_none(request, name);
		return;
	}
	snprintf(boot, sizeof(boot), "%016" PRIx64, agent->boot);
	struct json_writer *json = json_reply_begin(&reply, AGENTS_ANSWER_MAX_BYTES);
	json_write_object_begin(json);
	agents_put_own(json, agent, clock_wall_ms(api->clock));
	json_put_text(json, "boot", boot);
	agents_put_adaptors(&reply, agent, &asked);
	json_write_object_end(json);
	json_reply_send(&reply, request);
}

const struct http_handler agents_show = {.end = agents_show_end};

/* ---- DELETE /api/agents/NAME ----------------------------------------------------------------- */

static void agents_delete_end(struct http_request *request)
{
	struct slice name;
	if (!reporter_read_path(request, NULL, &name) || !params_none(request))
		return;
	if (agent_book_forget(api_of(request)->agents, name))
		http_reply(request, 204, NULL, (struct slice){NULL, 0});
	else
		agents_say_none(request, name);
}

const struct http_handler agents_delete = {.end = agents_delete_end};
