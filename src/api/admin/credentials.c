#include "api/admin/credentials.h"

#include "api/call.h"
#include "api/json_reply.h"
#include "auth/auth.h"

enum {
	CREDENTIALS_ARENA_MAX_BYTES = 128 << 10,
	CREDENTIALS_ANSWER_MAX_BYTES = 256 << 20,
	CREDENTIALS_PATH_PARTS = 3, /* /api/credentials/NAME */
	CREDENTIALS_ALL = -1,       /* of both kinds */
};

enum credentials_act { CREDENTIALS_CREATE, CREDENTIALS_CHANGE, CREDENTIALS_REVOKE };

struct credentials_call {
	struct api_call call;
	enum credentials_act act;
	struct slice name; /* in the call's arena, as are the texts of the wish */
	struct credential_wish wish;
	struct credential *made;
	char token[TOKEN_TEXT_BYTES + 1];
};

static const struct api_call_kind credentials_kind;

static struct credentials_call *credentials_call_of(struct api_call *call)
{
	ASSERT(call->kind == &credentials_kind);
	return CONTAINER_OF(call, struct credentials_call, call);
}

/* ---- What is asked --------------------------------------------------------------------------- */

struct credentials_question {
	struct slice name, roles, tenants, expires;
	int kind; /* of credential_kinds */
};

#define CREDENTIALS_FIELD(field_) offsetof(struct credentials_question, field_)
#define CREDENTIALS_ROLES                                                                          \
	"roles", PARAM_TEXT, CREDENTIALS_FIELD(roles),                                             \
		.help = "What its holder may do, with commas between: read, write, poll, "         \
			"poll:NAME "                                                               \
			"or admin, which is all of these."
#define CREDENTIALS_TENANTS                                                                        \
	"tenants", PARAM_TEXT, CREDENTIALS_FIELD(tenants),                                         \
		.help = "Whose data, with commas between; * is that of all tenants."
#define CREDENTIALS_EXPIRES                                                                        \
	"expires", PARAM_TEXT, CREDENTIALS_FIELD(expires),                                         \
		.help = "When it is valid no more: a time, or so long from now on, such as 90d; "  \
			"never where it is left out, and with never."

#define CREDENTIALS_KIND(...)                                                                      \
	{                                                                                          \
		"kind", PARAM_WORD, CREDENTIALS_FIELD(kind), .words = credential_kinds,            \
							     __VA_ARGS__                           \
	}

const struct param credentials_list_params[] = {
	CREDENTIALS_KIND(.help = "Which of them; both where it is left out."), {NULL}};
const struct param credentials_create_params[] = {
	CREDENTIALS_KIND(.help = "By what its holder is known: a token that the answer has, or the "
				 "name and the password that the body has."),
	{"name", PARAM_TEXT, CREDENTIALS_FIELD(name), .missing = "",
	 .help = "1 to 64 of A-Za-z0-9_.@- by which people know it."},
	{CREDENTIALS_ROLES, .missing = ""},
	{CREDENTIALS_TENANTS, .missing = ""},
	{CREDENTIALS_EXPIRES},
	{NULL}};
const struct param credentials_change_params[] = {
	{CREDENTIALS_ROLES}, {CREDENTIALS_TENANTS}, {CREDENTIALS_EXPIRES}, {NULL}};

static void credentials_list_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct json_reply reply;
	size_t count;
	struct credentials_question q = {.kind = CREDENTIALS_ALL};
	struct errbuf e = {""};
	if (params_read_route(request, 0, &q, &e)) {
		http_reply_error(request, 400, "%s", e.text);
		return;
	}
	struct credential **list = auth_list(api->auth, &count);
	struct json_writer *json = json_reply_begin(&reply, CREDENTIALS_ANSWER_MAX_BYTES);
	json_write_object_begin(json);
	json_write_key(json, "credentials");
	json_write_array_begin(json);
	for (size_t i = 0; i < count; i++)
		if (q.kind == CREDENTIALS_ALL ||
		    list[i]->kind == (enum credential_kind)(CREDENTIAL_TOKEN + q.kind))
			credential_write(json, list[i], clock_wall_ms(api->clock), NULL);
	json_write_array_end(json);
	json_write_object_end(json);
	json_reply_send(&reply, request);
	auth_list_free(list, count);
}

/* ---- Changes --------------------------------------------------------------------------------- */

static void credentials_run(struct api_call *base)
{
	struct credentials_call *call = credentials_call_of(base);
	struct auth *auth = base->api->auth;
	struct task_queue *queue = job_queue(base->job);
	switch (call->act) {
	case CREDENTIALS_CREATE:
		base->err = auth_create(auth, queue, call->name, &call->wish, call->token,
					&call->made, &base->error);
		return;
	case CREDENTIALS_CHANGE:
		base->err = auth_change(auth, queue, call->name, &call->wish, &call->made,
					&base->error);
		return;
	case CREDENTIALS_REVOKE:
		base->err = auth_revoke(auth, queue, call->name, &base->error);
		return;
	}
}

static void credentials_over(struct api_call *base)
{
	struct credentials_call *call = credentials_call_of(base);
	if (!base->request)
		return;
	if (base->err) {
		api_call_fail_with(base, base->err, base->error.text);
		return;
	}
	if (call->act == CREDENTIALS_REVOKE) {
		json_write_object_begin(&base->json);
		json_put_string(&base->json, "name", call->name);
		json_write_object_end(&base->json);
	} else {
		bool made = call->act == CREDENTIALS_CREATE;
		base->status = made ? 201 : 200;
		credential_write(&base->json, call->made, clock_wall_ms(base->api->clock),
				 call->token[0] ? call->token : NULL);
	}
	api_call_end(base);
}

static void credentials_release(struct api_call *base)
{
	struct credentials_call *call = credentials_call_of(base);
	credential_unref(call->made);
	explicit_bzero(call->token, sizeof(call->token));
}

static const struct api_call_kind credentials_kind = {
	.arena_max_bytes = CREDENTIALS_ARENA_MAX_BYTES,
	.out_max_bytes = CREDENTIALS_ANSWER_MAX_BYTES,
	.release = credentials_release,
	.job_name = "credentials",
	.run = credentials_run,
	.over = credentials_over,
};

static struct slice credentials_keep(struct credentials_call *call, struct slice text)
{
	struct slice copy = text.data ? arena_copy(&call->call.arena, text) : text;
	ASSERT(!text.data || copy.data); /* parts of a head */
	return copy;
}

/* {"password":"..."}, as a part of the wish; or there is no body. */
static int credentials_read_body(struct credentials_call *call)
{
	static const char *const members[] = {"password", NULL};
	struct api_call *base = &call->call;
	struct json *root;
	if (!base->body.len)
		return 0;
	int err = json_parse(buf_slice(&base->body), &base->arena, &root, &base->error);
	err = err ? err : json_check_members(root, members, &base->error);
	return err ? err : json_get_text(root, "password", &call->wish.password, &base->error);
}

static void credentials_begin(struct http_request *request, enum credentials_act act)
{
	struct credentials_question q = {.name = {NULL, 0}};
	struct credential_wish wish = {.expires = false};
	struct errbuf e = {""};
	int64_t now_ms = clock_wall_ms(api_of(request)->clock);
	int err = params_read_route(request, now_ms, &q, &e);
	err = err ? err : credential_read_expiry(q.expires, now_ms, &wish, &e);
	if (err) {
		http_reply_error(request, http_status_of(err), "%s", e.text);
		return;
	}
	struct credentials_call *call = mem_zalloc(sizeof(*call));
	api_call_init(&call->call, request, &credentials_kind);
	call->call.carried_through = true;
	call->act = act;
	call->wish = wish;
	call->wish.kind = (enum credential_kind)(CREDENTIAL_TOKEN + q.kind);
	call->wish.roles = credentials_keep(call, q.roles);
	call->wish.tenants = credentials_keep(call, q.tenants);
	call->name = credentials_keep(call, act == CREDENTIALS_CREATE ? q.name
					    : request->segment_count == CREDENTIALS_PATH_PARTS
						    ? request->segments[CREDENTIALS_PATH_PARTS - 1]
						    : SLICE(""));
	err = credentials_read_body(call);
	if (err)
		api_call_fail_with(&call->call, err, call->call.error.text);
	else
		api_call_start_job(&call->call);
}

static void credentials_create_end(struct http_request *request)
{
	credentials_begin(request, CREDENTIALS_CREATE);
}

static void credentials_change_end(struct http_request *request)
{
	credentials_begin(request, CREDENTIALS_CHANGE);
}

static void credentials_revoke_end(struct http_request *request)
{
	credentials_begin(request, CREDENTIALS_REVOKE);
}

const struct http_handler credentials_list = {.end = credentials_list_end};
const struct http_handler credentials_create = API_CALL_HANDLER(credentials_create_end);
const struct http_handler credentials_change = API_CALL_HANDLER(credentials_change_end);
const struct http_handler credentials_revoke = API_CALL_HANDLER(credentials_revoke_end);
