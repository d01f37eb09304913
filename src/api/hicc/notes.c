/* /hicc/v1/metrics/notes/METRIC/SOURCE: notes at a metric and a source are listed, added and
 * deleted. */
#include "api/hicc/asked.h"
#include "api/hicc/hicc.h"

enum {
	NOTES_ARENA_MAX_BYTES = 256 << 10,
	NOTES_ANSWER_MAX_BYTES = 16 << 20,
	NOTES_LIST_MAX = 1000,
	NOTES_ENOUGH = 1, /* stops the walk, without an error */
};

struct hicc_notes_call {
	struct api_call call;
	struct hicc_asked asked;
	struct row row;
	enum { NOTES_LIST, NOTES_ADD, NOTES_DELETE } doing;
	size_t count;         /* NOTES_LIST */
	struct row_cell note; /* NOTES_ADD */
	struct slice id;      /* NOTES_DELETE */
};

static const struct api_call_kind hicc_notes_kind;

static struct hicc_notes_call *hicc_notes_call_of(struct api_call *call)
{
	ASSERT(call->kind == &hicc_notes_kind);
	return CONTAINER_OF(call, struct hicc_notes_call, call);
}

/* ---- The work -------------------------------------------------------------------------------- */

static int hicc_notes_see(const struct row_cell *note, void *owner)
{
	struct hicc_notes_call *call = owner;
	if (call->count++ == NOTES_LIST_MAX) {
		call->call.cut = "limit";
		return NOTES_ENOUGH;
	}
	hicc_put_note(&call->call.json, call->row.metric, note);
	return 0;
}

static int hicc_notes_run_list(struct hicc_notes_call *call)
{
	struct api_call *base = &call->call;
	json_write_object_begin(&base->json);
	json_write_key(&base->json, "notes");
	json_write_array_begin(&base->json);
	const struct row_span span = {call->asked.start_ms, call->asked.end_ms, hicc_may_go_on};
	int err = row_each(base->api->rows, job_queue(base->job), &call->row, ROW_NOTES, &span,
			   hicc_notes_see, call, &base->error);
	json_write_array_end(&base->json);
	json_write_object_end(&base->json);
	return err == NOTES_ENOUGH ? 0 : err;
}

static int hicc_notes_run_add(struct hicc_notes_call *call)
{
	struct api_call *base = &call->call;
	int err = row_note_add(base->api->rows, job_queue(base->job), &call->row, call->note.ts_ms,
			       call->note.text, ROW_NOTES_MAX, &call->note.id, &base->error);
	base->status = 201;
	if (!err)
		hicc_put_note(&base->json, call->row.metric, &call->note);
	return err;
}

static int hicc_notes_run_delete(struct hicc_notes_call *call)
{
	struct api_call *base = &call->call;
	int err = row_note_delete(base->api->rows, job_queue(base->job), &call->row, call->id,
				  &base->error);
	json_write_object_begin(&base->json);
	json_put_string(&base->json, "id", call->id);
	json_write_object_end(&base->json);
	return err;
}

static void hicc_notes_run(struct api_call *base)
{
	struct hicc_notes_call *call = hicc_notes_call_of(base);
	base->err = call->doing == NOTES_LIST  ? hicc_notes_run_list(call)
		    : call->doing == NOTES_ADD ? hicc_notes_run_add(call)
					       : hicc_notes_run_delete(call);
}

static const struct api_call_kind hicc_notes_kind = {.arena_max_bytes = NOTES_ARENA_MAX_BYTES,
						     .out_max_bytes = NOTES_ANSWER_MAX_BYTES,
						     .job_name = "notes",
						     .run = hicc_notes_run};

/* ---- What is asked --------------------------------------------------------------------------- */

const struct param hicc_notes_params[] = {HICC_TENANT, HICC_START, HICC_END, {NULL}};
const struct param hicc_notes_add_params[] = {HICC_TENANT, {NULL}};
const struct param hicc_notes_delete_params[] = {HICC_TENANT, {NULL}};

static int hicc_notes_read_time(const struct json *root, int64_t now_ms, int64_t *ms,
				struct errbuf *e)
{
	const struct json *time = json_member(root, "time");
	*ms = now_ms;
	if (!time)
		return 0;
	if (time->type != JSON_T_STRING)
		return json_get_i64(root, "time", ms, e);
	int err = hicc_time_parse(time->text, now_ms, ms, e);
	return err ? errbuf_prefix(e, err, "time") : 0;
}

static int hicc_notes_read_body(struct hicc_notes_call *call, struct errbuf *e)
{
	static const char *const members[] = {"text", "time", NULL};
	struct api_call *base = &call->call;
	struct json *root;
	int err = json_parse(buf_slice(&base->body), &base->arena, &root, e);
	err = err ? err : json_check_members(root, members, e);
	err = err ? err : json_get_text(root, "text", &call->note.text, e);
	if (!err)
		err = hicc_notes_read_time(root, clock_wall_ms(base->api->clock), &call->note.ts_ms,
					   e);
	return err ? errbuf_prefix(e, ERR_INVALID, "the note") : 0;
}

static int hicc_notes_read(const struct http_request *request, struct hicc_notes_call *call,
			   struct errbuf *e)
{
	size_t parts = call->doing == NOTES_DELETE ? 3 : 2;
	int err = hicc_read(request, &call->call, &call->asked, e);
	err = err ? err : hicc_read_row(request, &call->call, &call->asked, parts, &call->row, e);
	call->id = hicc_path_part(request, &call->call, 2);
	if (!err && call->doing == NOTES_ADD)
		err = hicc_notes_read_body(call, e);
	return err;
}

static void hicc_notes_begin(struct http_request *request, int doing)
{
	struct hicc_notes_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &hicc_notes_kind);
	call->doing = doing;
	api_call_set_deadline(&call->call);
	call->call.carried_through = doing != NOTES_LIST;
	int err = hicc_notes_read(request, call, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

static void hicc_notes_list_end(struct http_request *request)
{
	hicc_notes_begin(request, NOTES_LIST);
}

static void hicc_notes_add_end(struct http_request *request)
{
	hicc_notes_begin(request, NOTES_ADD);
}

static void hicc_notes_delete_end(struct http_request *request)
{
	hicc_notes_begin(request, NOTES_DELETE);
}

const struct http_handler hicc_notes = API_CALL_HANDLER(hicc_notes_list_end);
const struct http_handler hicc_notes_add = API_CALL_HANDLER(hicc_notes_add_end);
const struct http_handler hicc_notes_delete = API_CALL_HANDLER(hicc_notes_delete_end);
