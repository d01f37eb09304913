/* Charts, widgets and dashboards: one table of what can be done, for the three of them. A job does
 * it, since it waits for the store. */
#include "api/hicc/boards.h"

#include "api/hicc/asked.h"
#include "base/stats.h"
#include "board/boards.h"

enum {
	BOARDS_ARENA_MAX_BYTES = 256 << 20,
	BOARDS_ANSWER_MAX_BYTES = 64 << 20,
	BOARDS_LIST_PRESET = 1000,
	BOARDS_LIST_MAX = 10000,
	BOARDS_OFFSET_MAX = 1000000,
	BOARDS_ENOUGH = 1, /* stops a list, without an error */
};

/* Where a path has the kind, the word of what is to be done, and the id. */
enum { BOARDS_PATH_KIND = 2, BOARDS_PATH_WORD = 3, BOARDS_PATH_ID = 4 };

struct boards_question {
	struct slice tenant;
	size_t limit, offset;
	bool brief, overwrite;
};

struct boards_call {
	struct api_call call;
	const struct boards_act *act;
	struct boards_question asked;
	struct board_change change; /* texts in the call's arena */
	char tag[BOARD_TAG_BYTES];  /* of what is answered; empty: it has none */
	struct arena scratch;       /* of one of a list */
	size_t saved, listed;
};

struct boards_act {
	enum http_verb verb;
	const char *word;
	bool has_id;
	bool is_of_dashboards;
	int (*run)(struct boards_call *call, struct errbuf *e);
};

static const struct api_call_kind boards_call_kind;

static struct boards_call *boards_call_of(struct api_call *call)
{
	ASSERT(call->kind == &boards_call_kind);
	return CONTAINER_OF(call, struct boards_call, call);
}

static struct task_queue *boards_queue(const struct boards_call *call)
{
	return job_queue(call->call.job);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* One that is stored and cannot be read is listed without what it says. */
static void boards_write_brief(struct boards_call *call, const struct board *board)
{
	static const char *const shown[] = {"title", "type"};
	struct json_writer *json = &call->call.json;
	struct json *root = NULL;
	struct errbuf e;
	char tag[BOARD_TAG_BYTES];
	arena_reset(&call->scratch);
	if (json_parse(board->text, &call->scratch, &root, &e))
		root = NULL;
	json_write_object_begin(json);
	json_put_string(json, "id", board->id);
	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		const struct json *member = json_member(root, shown[i]);
		if (member)
			json_put_string(json, shown[i], member->text);
	}
	json_put_u64(json, "bytes", board->text.len);
	json_put_bool(json, "shipped", board->is_shipped);
	board_tag(board->text, tag);
	json_put_text(json, "etag", tag);
	json_write_object_end(json);
}

static int boards_write_one(const struct board *board, void *owner)
{
	struct boards_call *call = owner;
	if (call->listed++ == call->asked.limit) {
		call->call.cut = "limit";
		return BOARDS_ENOUGH;
	}
	if (call->asked.brief)
		boards_write_brief(call, board);
	else
		json_write_raw(&call->call.json, board->text);
	return call->call.out.failed ? ERR_LIMIT : 0;
}

static int boards_run_list(struct boards_call *call, struct errbuf *e)
{
	const struct boards_listing listing = {.tenant = call->change.tenant,
					       .kind = call->change.kind,
					       .prefix = call->change.id.data ? call->change.id
									      : SLICE(""),
					       .offset = call->asked.offset,
					       .limit = call->asked.limit + 1};
	json_write_array_begin(&call->call.json);
	int err = boards_list(call->call.api->boards, boards_queue(call), &listing,
			      boards_write_one, call, e);
	if (err && call->call.out.failed)
		return errbuf_set(e, ERR_LIMIT,
				  "the list has more than %d MB: ask for a smaller limit",
				  BOARDS_ANSWER_MAX_BYTES >> 20);
	json_write_array_end(&call->call.json);
	return err == BOARDS_ENOUGH ? 0 : err;
}

static int boards_run_get(struct boards_call *call, struct errbuf *e)
{
	struct board board;
	int err = boards_get(call->call.api->boards, boards_queue(call), call->change.tenant,
			     call->change.kind, call->change.id, &call->call.arena, &board, e);
	if (err)
		return err;
	board_tag(board.text, call->tag);
	json_write_raw(&call->call.json, board.text);
	return 0;
}

static int boards_run_export(struct boards_call *call, struct errbuf *e)
{
	int err = boards_export(call->call.api->boards, boards_queue(call), call->change.tenant,
				call->change.id, &call->call.arena, &call->call.json, e);
	if (!err && (call->call.out.failed || call->call.out.len > BOARD_EXPORT_MAX_BYTES))
		return errbuf_set(e, ERR_LIMIT,
				  "the dashboard and all that it names have more than %d MB, which "
				  "no import takes",
				  BOARD_EXPORT_MAX_BYTES >> 20);
	return err;
}

/* ---- Changing -------------------------------------------------------------------------------- */

static int boards_put_body(struct boards_call *call, struct board_document *document,
			   struct errbuf *e)
{
	struct board_change *change = &call->change;
	int err = board_document_parse(change->kind, buf_slice(&call->call.body), change->id,
				       &call->call.arena, document, e);
	err = err ? err
		  : boards_put(call->call.api->boards, boards_queue(call), change, document, e);
	if (err)
		return err;
	call->saved = 1;
	board_tag(document->text, call->tag);
	return 0;
}

static int boards_run_put(struct boards_call *call, struct errbuf *e)
{
	struct board_document document;
	int err = boards_put_body(call, &document, e);
	if (err)
		return err;
	call->call.status = call->change.is_new ? 201 : 200;
	json_write_raw(&call->call.json, document.text);
	return 0;
}

static int boards_run_create(struct boards_call *call, struct errbuf *e)
{
	int err = boards_run_put(call, e);
	return err == ERR_EXISTS && !call->change.is_stale ? ERR_INVALID : err; /* as Chukwa */
}

/* Chukwa's answer is the id alone. */
static int boards_run_save(struct boards_call *call, struct errbuf *e)
{
	struct board_document document;
	int err = boards_put_body(call, &document, e);
	if (err)
		return err == ERR_EXISTS && !call->change.is_stale ? ERR_INVALID : err;
	call->call.content_type = "text/plain; charset=utf-8";
	buf_append(&call->call.out, document.id.data, document.id.len);
	return 0;
}

static int boards_run_delete(struct boards_call *call, struct errbuf *e)
{
	struct json_writer *json = &call->call.json;
	int err = boards_delete(call->call.api->boards, boards_queue(call), &call->change, e);
	if (err)
		return err;
	json_write_object_begin(json);
	json_put_string(json, "deleted", call->change.id);
	json_put_bool(json, "shippedIsBack", call->change.is_back);
	json_write_object_end(json);
	return 0;
}

static int boards_run_import(struct boards_call *call, struct errbuf *e)
{
	struct boards_import import = {.tenant = call->change.tenant,
				       .overwrite = call->asked.overwrite,
				       .if_match = call->change.if_match,
				       .if_none_match = call->change.if_none_match};
	struct json_writer *json = &call->call.json;
	struct json *root;
	int err = json_parse(buf_slice(&call->call.body), &call->call.arena, &root, e);
	err = err ? err
		  : boards_import(call->call.api->boards, boards_queue(call), &import, root,
				  &call->call.arena, e);
	call->change.is_stale = import.is_stale;
	if (err)
		return err;
	call->saved = import.created + import.replaced;
	json_write_object_begin(json);
	json_put_string(json, "id", import.id);
	json_put_u64(json, "created", import.created);
	json_put_u64(json, "replaced", import.replaced);
	json_put_u64(json, "unchanged", import.unchanged);
	json_write_object_end(json);
	return 0;
}

/* The second words are those of Chukwa where it has other ones. */
static const struct boards_act boards_acts[] = {
	{VERB_GET, "list", false, false, boards_run_list},
	{VERB_GET, "search", true, false, boards_run_list},
	{VERB_GET, "view", true, false, boards_run_get},
	{VERB_GET, "describe", true, false, boards_run_get},
	{VERB_GET, "load", true, false, boards_run_get},
	{VERB_GET, "export", true, true, boards_run_export},
	{VERB_POST, "create", false, false, boards_run_create},
	{VERB_POST, "save", false, false, boards_run_save},
	{VERB_POST, "import", false, true, boards_run_import},
	{VERB_PUT, "update", true, false, boards_run_put},
	{VERB_PUT, "save", true, false, boards_run_put},
	{VERB_DELETE, "delete", true, false, boards_run_delete},
};

/* ---- Requests -------------------------------------------------------------------------------- */

static void boards_call_run(struct api_call *base)
{
	struct boards_call *call = boards_call_of(base);
	base->err = call->act->run(call, &base->error);
}

static void boards_call_count(const struct boards_call *call)
{
	if (call->act->verb == VERB_GET)
		return;
	if (call->call.err)
		stat_add(call->change.is_stale ? STAT_boards_stale : STAT_boards_refused, 1);
	else if (call->act->verb == VERB_DELETE)
		stat_add(STAT_boards_deleted, 1);
	else
		stat_add(STAT_boards_saved, (int64_t)call->saved);
}

static void boards_call_over(struct api_call *base)
{
	struct boards_call *call = boards_call_of(base);
	boards_call_count(call);
	if (!base->request)
		return;
	if (base->err && call->change.is_stale) {
		api_call_fail(base, 412, "%s", base->error.text);
		return;
	}
	if (base->err) {
		api_call_fail_with(base, base->err, base->error.text);
		return;
	}
	if (call->tag[0])
		http_reply_header(base->request, "ETag", call->tag);
	if (call->act->verb == VERB_GET && call->tag[0] &&
	    http_tag_is_listed(call->change.if_none_match, slice_of(call->tag))) {
		buf_clear(&base->out);
		base->content_type = NULL;
		base->status = 304;
	}
	api_call_end(base);
}

static void boards_call_release(struct api_call *base)
{
	arena_release(&boards_call_of(base)->scratch);
}

static const struct api_call_kind boards_call_kind = {.arena_max_bytes = BOARDS_ARENA_MAX_BYTES,
						      .out_max_bytes = BOARDS_ANSWER_MAX_BYTES,
						      .release = boards_call_release,
						      .job_name = "boards",
						      .run = boards_call_run,
						      .over = boards_call_over};

#define BOARDS_FIELD(field_) offsetof(struct boards_question, field_)
#define BOARDS_TENANT                                                                              \
	{                                                                                          \
		"tenant", PARAM_TENANT, BOARDS_FIELD(tenant), .help = "Whose boards."              \
	}

const struct param boards_get_params[] = {
	BOARDS_TENANT,
	{"limit", PARAM_NUMBER, BOARDS_FIELD(limit), 1, BOARDS_LIST_MAX,
	 .help = "A list has at most so many; 1000 where it is left out."},
	{"offset", PARAM_NUMBER, BOARDS_FIELD(offset), 0, BOARDS_OFFSET_MAX,
	 .help = "So many are left out at the beginning."},
	{"brief", PARAM_FLAG, BOARDS_FIELD(brief),
	 .help = "A list has the id, title and size of each."},
	{NULL}};
const struct param boards_change_params[] = {BOARDS_TENANT, {NULL}};
const struct param boards_import_params[] = {
	BOARDS_TENANT,
	{"overwrite", PARAM_FLAG, BOARDS_FIELD(overwrite),
	 .help = "What is there and is another one is replaced; else nothing is imported."},
	{NULL}};

static const struct boards_act *boards_find_act(const struct http_request *request,
						enum board_kind kind)
{
	size_t parts = request->segment_count;
	if (parts && !request->segments[parts - 1].len)
		parts--; /* a slash at the end */
	for (size_t i = 0; i < ARRAY_LEN(boards_acts); i++) {
		const struct boards_act *act = &boards_acts[i];
		if (act->verb == request->route->verb && parts > BOARDS_PATH_WORD &&
		    slice_equal(request->segments[BOARDS_PATH_WORD], slice_of(act->word)) &&
		    parts == (act->has_id ? BOARDS_PATH_ID + 1 : BOARDS_PATH_WORD + 1) &&
		    (!act->is_of_dashboards || kind == BOARD_DASHBOARD))
			return act;
	}
	return NULL;
}

/* The route's path names it. */
static enum board_kind boards_find_kind(const struct http_request *request)
{
	enum board_kind kind = 0;
	while (kind < BOARD_KINDS &&
	       !slice_equal(request->segments[BOARDS_PATH_KIND], slice_of(board_kinds[kind].name)))
		kind++;
	ASSERT(kind < BOARD_KINDS);
	return kind;
}

static void boards_refuse_path(struct http_request *request, enum board_kind kind)
{
	struct buf words;
	buf_init(&words, HTTP_MESSAGE_MAX_BYTES);
	for (size_t i = 0; i < ARRAY_LEN(boards_acts); i++) {
		const struct boards_act *act = &boards_acts[i];
		if (act->verb == request->route->verb &&
		    (!act->is_of_dashboards || kind == BOARD_DASHBOARD))
			buf_printf(&words, "%s%s%s", words.len ? ", " : "", act->word,
				   act->has_id ? "/ID" : "");
	}
	http_reply_error(request, 404,
			 "behind /hicc/v1/%s/ stands one of %.*s; a slash in an id is %%2F",
			 board_kinds[kind].name, (int)words.len, words.data);
	buf_release(&words);
}

static struct slice boards_keep(struct boards_call *call, struct slice text)
{
	struct slice kept = text.data ? arena_copy(&call->call.arena, text) : text;
	ASSERT(!text.data || kept.data); /* parts of a head */
	return kept;
}

static void boards_end(struct http_request *request)
{
	struct boards_question asked = {.limit = BOARDS_LIST_PRESET};
	enum board_kind kind = boards_find_kind(request);
	const struct boards_act *act = boards_find_act(request, kind);
	struct errbuf e = {""};
	if (!act) {
		boards_refuse_path(request, kind);
		return;
	}
	if (params_read_route(request, 0, &asked, &e)) {
		http_reply_error(request, 400, "%s", e.text);
		return;
	}
	hicc_presume_tenant(request, &asked.tenant);
	struct boards_call *call = mem_zalloc(sizeof(*call));
	api_call_init(&call->call, request, &boards_call_kind);
	arena_init(&call->scratch, BOARDS_ARENA_MAX_BYTES);
	call->call.carried_through = act->verb != VERB_GET;
	call->act = act;
	call->asked = asked;
	call->change.kind = kind;
	call->change.tenant = boards_keep(call, asked.tenant);
	if (act->has_id)
		call->change.id = boards_keep(call, request->segments[BOARDS_PATH_ID]);
	call->change.if_match = boards_keep(call, http_header(request, "If-Match"));
	call->change.if_none_match = boards_keep(call, http_header(request, "If-None-Match"));
	api_call_start_job(&call->call);
}

const struct http_handler boards_handler = API_CALL_HANDLER(boards_end);
