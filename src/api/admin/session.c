#include "api/admin/session.h"

#include "api/call.h"
#include "api/json_reply.h"
#include "api/params.h"
#include "auth/login.h"

enum {
	SESSION_ARENA_MAX_BYTES = 256 << 10,
	SESSION_ANSWER_MAX_BYTES = 64 << 10,
};

/* ---- Who asks -------------------------------------------------------------------------------- */

static void session_write_caller(struct json_writer *json, const struct caller *caller,
				 const char *how)
{
	json_write_object_begin(json);
	json_put_text(json, "name", caller->name);
	json_put_text(json, "how", how);
	credential_write_caller(json, caller);
	json_write_object_end(json);
}

static void session_show_end(struct http_request *request)
{
	struct json_reply reply;
	if (!params_none(request))
		return;
	http_reply_header(request, "Cache-Control", "no-store");
	session_write_caller(json_reply_begin(&reply, SESSION_ANSWER_MAX_BYTES), request->caller,
			     request->known_by ? request->known_by : "nothing");
	json_reply_send(&reply, request);
}

static void session_drop_end(struct http_request *request)
{
	if (!params_none(request))
		return;
	auth_drop_session(request);
	http_reply(request, 204, NULL, (struct slice){NULL, 0});
}

/* ---- A new one ------------------------------------------------------------------------------- */

struct session_call {
	struct api_call call;
	struct login login;
	struct slice name; /* that is shown; in the call's arena */
};

static const struct api_call_kind session_begin_kind;

static void session_answer(struct session_call *session)
{
	struct api_call *call = &session->call;
	struct credential *credential;
	struct errbuf why = {""};
	int status = auth_take_login(call->api->auth, call->request, session->name, &session->login,
				     &credential, &why);
	if (status) {
		if (status == 401) /* browsers ask for no name of their own because of this one */
			http_reply_header(call->request, "WWW-Authenticate",
					  "Bearer realm=\"granary\"");
		api_call_fail(call, status, "%s", why.text);
		return;
	}
	http_reply_header(call->request, "Cache-Control", "no-store");
	auth_begin_session(call->api->auth, call->request, credential);
	session_write_caller(&call->json, &credential->caller, "session");
	credential_unref(credential);
	api_call_end(call);
}

static void session_compared(struct login *login)
{
	session_answer(CONTAINER_OF(login, struct session_call, login));
}

/* Also when it was answered. */
static void session_ended(struct api_call *call)
{
	ASSERT(call->kind == &session_begin_kind);
	login_end(&CONTAINER_OF(call, struct session_call, call)->login);
}

static const struct api_call_kind session_begin_kind = {
	.arena_max_bytes = SESSION_ARENA_MAX_BYTES,
	.out_max_bytes = SESSION_ANSWER_MAX_BYTES,
	.ended = session_ended,
};

/* A token, or a name and a password. */
static int session_read_body(struct api_call *call, struct slice *name, struct slice *secret)
{
	static const char *const of_token[] = {"token", NULL}, *const of_user[] = {
								       "name", "password", NULL};
	struct json *root;
	int err = json_parse(buf_slice(&call->body), &call->arena, &root, &call->error);
	if (err)
		return err;
	if (json_member(root, "token")) {
		err = json_check_members(root, of_token, &call->error);
		return err ? err : json_get_text(root, "token", secret, &call->error);
	}
	err = json_check_members(root, of_user, &call->error);
	err = err ? err : json_get_text(root, "name", name, &call->error);
	return err ? err : json_get_text(root, "password", secret, &call->error);
}

static void session_begin_end(struct http_request *request)
{
	struct slice secret = SLICE("");
	if (!params_none(request))
		return;
	struct session_call *session = mem_zalloc(sizeof(*session));
	struct api_call *call = &session->call;
	api_call_init(call, request, &session_begin_kind);
	session->login.done = session_compared;
	if (session_read_body(call, &session->name, &secret)) {
		api_call_fail(call, 400, "%s", call->error.text);
		return;
	}
	auth_log_in(call->api->auth, session->name, secret, request->peer, &session->login);
	if (session->login.outcome != LOGIN_WAITS)
		session_answer(session);
}

/* ---- The end of all -------------------------------------------------------------------------- */

static void session_reset_run(struct api_call *call)
{
	call->err = auth_reset_sessions(call->api->auth, job_queue(call->job), &call->error);
}

static void session_reset_over(struct api_call *call)
{
	if (!call->request)
		return;
	if (call->err) {
		api_call_fail_with(call, call->err, call->error.text);
		return;
	}
	json_write_object_begin(&call->json);
	json_write_object_end(&call->json);
	api_call_end(call);
}

static const struct api_call_kind session_reset_kind = {
	.arena_max_bytes = SESSION_ARENA_MAX_BYTES,
	.out_max_bytes = SESSION_ANSWER_MAX_BYTES,
	.job_name = "sessions",
	.run = session_reset_run,
	.over = session_reset_over,
};

static void session_reset_end(struct http_request *request)
{
	if (!params_none(request))
		return;
	struct api_call *call = mem_zalloc(sizeof(*call));
	api_call_init(call, request, &session_reset_kind);
	call->carried_through = true;
	api_call_start_job(call);
}

const struct http_handler session_begin = API_CALL_HANDLER(session_begin_end);
const struct http_handler session_show = {.end = session_show_end};
const struct http_handler session_drop = {.end = session_drop_end};
const struct http_handler session_reset = API_CALL_HANDLER(session_reset_end);
