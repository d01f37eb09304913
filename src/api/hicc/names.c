/* GET /hicc/v1/metrics/schema, /hicc/v1/metrics/source/GROUP: which groups, metrics and sources a
 * tenant has. */
#include "api/hicc/asked.h"
#include "api/hicc/hicc.h"
#include "board/keys.h"

enum {
	NAMES_LIST_MAX = 10000,
	NAMES_ARENA_MAX_BYTES = 64 << 10,
	NAMES_ANSWER_MAX_BYTES = 16 << 20,
	NAMES_ENOUGH = 1, /* stops the walk, without an error */
};

struct hicc_names_call {
	struct api_call call;
	struct hicc_asked asked;
	struct slice group; /* NULL data: the groups are asked for */
	enum board_key_type type;
	size_t count;
};

static const struct api_call_kind hicc_names_kind;

static struct hicc_names_call *hicc_names_call_of(struct api_call *call)
{
	ASSERT(call->kind == &hicc_names_kind);
	return CONTAINER_OF(call, struct hicc_names_call, call);
}

/* ---- The answer ------------------------------------------------------------------------------ */

static int hicc_names_count(struct hicc_names_call *call)
{
	if (call->count++ < NAMES_LIST_MAX)
		return 0;
	call->call.cut = "limit";
	return NAMES_ENOUGH;
}

static int hicc_names_see_group(struct slice group, void *owner)
{
	struct hicc_names_call *call = owner;
	int err = hicc_names_count(call);
	if (!err)
		json_write_string(&call->call.json, group);
	return err;
}

static int hicc_names_see(const struct board_key *key, struct slice sig, void *owner)
{
	struct hicc_names_call *call = owner;
	struct json_writer *json = &call->call.json;
	if (key->type != call->type)
		return 0;
	int err = hicc_names_count(call);
	if (err)
		return err;
	if (!call->asked.details) {
		json_write_string(json, key->name);
		return 0;
	}
	json_write_object_begin(json);
	json_put_string(json, "name", key->name);
	json_put_string(json, "sig", sig);
	if (key->unit.len)
		json_put_string(json, "unit", key->unit);
	if (key->kind.len)
		json_put_string(json, "kind", key->kind);
	json_write_object_end(json);
	return 0;
}

static void hicc_names_run(struct api_call *base)
{
	struct hicc_names_call *call = hicc_names_call_of(base);
	struct task_queue *queue = job_queue(base->job);
	int64_t now_ms = clock_wall_ms(base->api->clock);
	json_write_array_begin(&base->json);
	int err = call->group.data
			  ? board_keys_each(base->api->store, queue, now_ms, call->asked.tenant,
					    call->group, hicc_names_see, call, &base->error)
			  : board_groups_each(base->api->store, queue, now_ms, call->asked.tenant,
					      hicc_names_see_group, call, &base->error);
	json_write_array_end(&base->json);
	base->err = err == NAMES_ENOUGH ? 0 : err;
}

static const struct api_call_kind hicc_names_kind = {.arena_max_bytes = NAMES_ARENA_MAX_BYTES,
						     .out_max_bytes = NAMES_ANSWER_MAX_BYTES,
						     .job_name = "names",
						     .run = hicc_names_run};

/* ---- What is asked --------------------------------------------------------------------------- */

const struct param hicc_names_params[] = {
	HICC_TENANT,
	{"details", PARAM_FLAG, HICC_FIELD(details),
	 .help = "With the sig, unit and kind of each; of names in a group."},
	{NULL}};

static int hicc_names_read(const struct http_request *request, struct hicc_names_call *call,
			   struct errbuf *e)
{
	size_t parts = hicc_path_parts(request);
	int err = hicc_read(request, &call->call, &call->asked, e);
	call->group = hicc_path_part(request, &call->call, 0);
	if (!err &&
	    (parts > 1 || (parts && !call->group.len) || (call->type == BOARD_SOURCE && !parts)))
		err = hicc_nothing_there(request, e);
	return err;
}

static void hicc_names_begin(struct http_request *request, enum board_key_type type)
{
	struct hicc_names_call *call = mem_zalloc(sizeof(*call));
	struct errbuf e = {""};
	api_call_init(&call->call, request, &hicc_names_kind);
	call->type = type;
	int err = hicc_names_read(request, call, &e);
	if (err)
		api_call_fail(&call->call, http_status_of(err), "%s", e.text);
	else
		api_call_start_job(&call->call);
}

static void hicc_schema_end(struct http_request *request)
{
	hicc_names_begin(request, BOARD_METRIC);
}

static void hicc_sources_end(struct http_request *request)
{
	hicc_names_begin(request, BOARD_SOURCE);
}

const struct http_handler hicc_schema = API_CALL_HANDLER(hicc_schema_end);
const struct http_handler hicc_sources = API_CALL_HANDLER(hicc_sources_end);
