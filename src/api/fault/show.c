/* One report, whole; why it is in its group; the files that came with it; and which bug it is, as
 * people say later. */
#include "api/fault/faults.h"

#include "api/call.h"
#include "api/fault/notation.h"
#include "fault/fault.h"
#include "fault/group.h"
#include "fault/said.h"
#include "wire/number.h"
#include "wire/timetext.h"

enum {
	SHOW_ARENA_MAX_BYTES = (16 << 20) + 2 * FAULT_MERGES_MEMORY_BYTES,
	SHOW_ANSWER_MAX_BYTES = 2 * FAULT_BODY_MAX_BYTES,
	/* A body as a tree. Twice what one may take when it comes (OOPS_TREE_MAX_BYTES), so that
	 * each report that was taken can be shown. */
	SHOW_GROUP_MAX_BYTES = 512 << 20,
};

enum show_what { SHOW_REPORT, SHOW_WHY, SHOW_FILE };

struct show_call {
	struct api_call call;
	struct slice tenant, id; /* in the call's arena */
	enum show_what what;
	uint64_t number; /* of a file */
	/* What is said of it first: in the call's arena; without a tracker nothing is. */
	struct fault_bug said;
	struct fault_found found;
	struct fault_merges merges; /* in the call's arena */
};

static const struct api_call_kind show_kind;

static struct show_call *show_call_of(struct api_call *call)
{
	ASSERT(call->kind == &show_kind);
	return CONTAINER_OF(call, struct show_call, call);
}

static void show_release(struct api_call *call)
{
	buf_release(&show_call_of(call)->found.body);
}

/* ---- On the job's thread --------------------------------------------------------------------- */

/* What stands in front of the attributes, and what one is called that has such a name. */
static const struct {
	const char *name, *attribute;
} show_own[] = {
	{"id", "reported.id"},
	{"date", "reported.date"},
	{"date_iso", "reported.date_iso"},
	{"conflicts", "reported.conflicts"},
	{"group", "reported.group"},
	{"title", "reported.title"},
	{"attachments", "reported.attachments"},
};

static struct slice show_name(struct slice name)
{
	for (size_t i = 0; i < ARRAY_LEN(show_own); i++) {
		if (slice_equal(name, slice_of(show_own[i].name)))
			return slice_of(show_own[i].attribute);
	}
	return name;
}

/* Whether it is a bug of which people have said something else. */
static bool show_is_overruled(const struct fault_found *found, struct slice name)
{
	const struct slice prefix = SLICE(FAULT_BUG_PREFIX);
	if (!slice_starts_with(name, prefix))
		return false;
	struct slice tracker = {name.data + prefix.len, name.len - prefix.len};
	for (size_t i = 0; i < found->bug_count; i++) {
		if (slice_equal(found->bugs[i].tracker, tracker))
			return true;
	}
	return false;
}

static void show_put_bugs(struct show_call *call)
{
	struct json_writer *json = &call->call.json;
	for (size_t i = 0; i < call->found.bug_count; i++) {
		const struct fault_oops_bug *bug = &call->found.bugs[i];
		char name[sizeof(FAULT_BUG_PREFIX) + STORE_COLUMN_MAX_BYTES];
		if (!bug->bug.len)
			continue;
		snprintf(name, sizeof(name), FAULT_BUG_PREFIX "%.*s", (int)bug->tracker.len,
			 bug->tracker.data);
		json_put_string(json, name, bug->bug);
	}
}

static void show_put_attributes(struct show_call *call)
{
	struct json_writer *json = &call->call.json;
	struct json_reader reader;
	json_reader_init(&reader, buf_slice(&call->found.body), &call->call.arena);
	if (json_next(&reader) != JSON_OBJECT_BEGIN) {
		call->call.err = ERR_DAMAGED;
		return;
	}
	while (json_next(&reader) == JSON_KEY) {
		bool overruled = show_is_overruled(&call->found, reader.text);
		if (!overruled)
			json_write_key_slice(json, show_name(reader.text));
		enum json_event event = json_next(&reader);
		size_t offset = reader.offset;
		bool whole = json_skip(&reader, event);
		if (!overruled && whole)
			json_write_raw(json, json_text_from(&reader, offset));
		else if (!overruled)
			json_write_null(json);
		if (!whole)
			break;
	}
	if (reader.reason)
		call->call.err = reader.arena_full ? ERR_LIMIT : ERR_DAMAGED;
}

/* The group whose name was stored with the report: rules of a later version may give another one.
 */
static struct slice show_own_group(const struct show_call *call, const struct fault_group *group)
{
	struct slice stored = call->found.facts.texts[FAULT_GROUP];
	return stored.len ? stored : group->name;
}

static void show_put_group(struct show_call *call, const struct fault_group *group)
{
	struct slice own = show_own_group(call, group);
	json_put_string(&call->call.json, "group", fault_merges_root(&call->merges, own));
	json_put_string(&call->call.json, "title", group->title);
}

static void show_put_why(struct show_call *call, const struct fault_group *group)
{
	struct json_writer *json = &call->call.json;
	json_write_object_begin(json);
	json_put_string(json, "id", call->found.id);
	show_put_group(call, group);
	struct slice own = show_own_group(call, group);
	if (fault_merges_find(&call->merges, own) || !slice_equal(own, group->name))
		json_put_string(json, "own_group", own);
	json_put_i64(json, "version", FAULT_GROUP_VERSION);
	json_put_text(json, "rule", fault_group_rule_name(group->rule));
	json_write_key(json, "hashes");
	json_write_object_begin(json);
	json_put_string(json, "application", group->name);
	json_put_string(json, "all", group->all);
	json_write_object_end(json);
	json_write_key(json, "words");
	json_write_array_begin(json);
	for (size_t i = 0; i < group->count; i++) {
		const struct fault_word *word = &group->words[i];
		json_write_object_begin(json);
		json_put_text(json, "kind", fault_word_kind_name(word->kind));
		json_put_string(json, "text", word->text);
		json_put_bool(json, "application", word->application);
		json_write_object_end(json);
	}
	json_write_array_end(json);
	json_write_object_end(json);
}

static void show_put_attachments(struct show_call *call)
{
	struct json_writer *json = &call->call.json;
	if (!call->found.attachment_count)
		return;
	json_write_key(json, "attachments");
	json_write_array_begin(json);
	for (size_t i = 0; i < call->found.attachment_count; i++) {
		const struct fault_attachment *attachment = &call->found.attachments[i];
		json_write_object_begin(json);
		json_put_string(json, "name", attachment->name);
		if (attachment->type.len)
			json_put_string(json, "type", attachment->type);
		json_put_u64(json, "bytes", attachment->bytes);
		json_put_bool(json, "kept", attachment->kept);
		json_write_object_end(json);
	}
	json_write_array_end(json);
}

static void show_put(struct show_call *call, const struct fault_group *group)
{
	const struct fault_found *found = &call->found;
	struct json_writer *json = &call->call.json;
	int64_t date_ms = notation_ms(found->order.date_us);
	char iso[TIME_PRINT_MAX_BYTES];
	json_write_object_begin(json);
	json_put_string(json, "id", found->id);
	json_put_i64(json, "date", date_ms);
	json_put_string(json, "date_iso", (struct slice){iso, time_print(iso, date_ms)});
	if (found->conflict_count)
		json_put_u64(json, "conflicts", found->conflict_count);
	show_put_group(call, group);
	show_put_attachments(call);
	show_put_bugs(call);
	show_put_attributes(call);
	json_write_object_end(json);
}

static void show_put_found(struct show_call *call)
{
	struct arena arena;
	struct json *body;
	struct fault_group group;
	arena_init(&arena, SHOW_GROUP_MAX_BYTES);
	int err = json_parse(buf_slice(&call->found.body), &arena, &body, NULL);
	err = err == ERR_INVALID ? ERR_DAMAGED : err;
	call->call.err = err ? err : fault_group_make(body, &arena, &group);
	if (!call->call.err && call->what == SHOW_WHY)
		show_put_why(call, &group);
	else if (!call->call.err)
		show_put(call, &group);
	arena_release(&arena);
}

static int show_read(struct show_call *call)
{
	struct api_call *base = &call->call;
	if (call->said.tracker.len)
		return fault_say_bug(base->api->fault, job_queue(base->job), call->tenant, call->id,
				     &call->said, &base->arena, &call->found, &base->error);
	return fault_read_report(base->api->fault, job_queue(base->job), call->tenant, call->id,
				 &base->arena, &call->found, &base->error);
}

static void show_run(struct api_call *base)
{
	struct show_call *call = show_call_of(base);
	call->call.err = show_read(call);
	if (!call->call.err && call->what == SHOW_FILE)
		call->call.err = fault_read_attachment(base->api->fault, job_queue(base->job),
						       call->tenant, &call->found, call->number,
						       &base->out, &call->call.error);
	if (!call->call.err && call->what != SHOW_FILE)
		call->call.err = fault_merges_read(fault_site_of(base->api->fault),
						   job_queue(base->job), call->tenant, &base->arena,
						   &call->merges, &call->call.error);
	if (call->call.err || call->what == SHOW_FILE)
		return;
	show_put_found(call);
	if (call->call.err)
		errbuf_set(&call->call.error, call->call.err, "report " SHOWN " cannot be read: %s",
			   SHOWN_OF(call->found.id), err_text(call->call.err));
}

/* ---- The call -------------------------------------------------------------------------------- */

static void show_over(struct api_call *base)
{
	struct show_call *call = show_call_of(base);
	if (!base->request)
		return;
	if (call->call.err) {
		api_call_fail_with(base, call->call.err, call->call.error.text);
		return;
	}
	/* Whatever its sender calls it: no browser shows it as a page of ours. */
	if (call->what == SHOW_FILE)
		http_reply_header(base->request, "Content-Disposition", "attachment");
	api_call_end(base);
}

static const struct api_call_kind show_kind = {.arena_max_bytes = SHOW_ARENA_MAX_BYTES,
					       .out_max_bytes = SHOW_ANSWER_MAX_BYTES,
					       .release = show_release,
					       .job_name = "report",
					       .run = show_run,
					       .over = show_over};

/* ---- What is asked --------------------------------------------------------------------------- */

struct show_question {
	struct slice tenant, tracker, bug;
};

#define SHOW_FIELD(field_) offsetof(struct show_question, field_)

const struct param faults_show_params[] = {
	{"tenant", PARAM_TENANT, SHOW_FIELD(tenant), .help = "Whose report it is."}, {NULL}};

const struct param faults_bug_params[] = {
	{"tenant", PARAM_TENANT, SHOW_FIELD(tenant), .help = "Whose report it is."},
	{"tracker", PARAM_TEXT, SHOW_FIELD(tracker), .help = "Which tracker has the bug."},
	{"bug", PARAM_TEXT, SHOW_FIELD(bug), .help = "Which bug it is; empty: none."},
	{NULL}};

/* /oops/ID, /oops/ID/why or /oops/ID/attachments/NUMBER. */
static enum show_what show_read_path(const struct http_request *request, struct slice *id,
				     uint64_t *number)
{
	const struct slice *segments = request->segments;
	enum show_what what = SHOW_REPORT;
	*number = 0;
	if (request->segment_count == 3 && slice_equal(segments[2], SLICE("why")))
		what = SHOW_WHY;
	else if (request->segment_count == 4 && slice_equal(segments[2], SLICE("attachments")) &&
		 !number_parse_u64(segments[3].data, segments[3].data + segments[3].len, number))
		what = SHOW_FILE;
	*id = what == SHOW_REPORT ? notation_id(request) : segments[1];
	return what;
}

static struct show_call *show_new(struct http_request *request, struct slice id,
				  struct slice tenant)
{
	struct show_call *call = mem_zalloc(sizeof(*call));
	api_call_init(&call->call, request, &show_kind);
	call->tenant = arena_copy(&call->call.arena, tenant);
	call->id = arena_copy(&call->call.arena, id);
	ASSERT(call->tenant.data && call->id.data); /* parts of a head */
	return call;
}

/* 404, as of any id without a report: who asks does not know the rules of ids. */
static bool show_is_id(struct http_request *request, struct slice id)
{
	bool valid = fault_id_valid(id);
	if (!valid)
		http_reply_error(request, 404, "there is no report " SHOWN, SHOWN_OF(id));
	return valid;
}

static void show_end(struct http_request *request)
{
	struct show_question q;
	struct slice id;
	uint64_t number;
	enum show_what what = show_read_path(request, &id, &number);
	struct errbuf e = {""};
	if (params_read_route(request, 0, &q, &e)) {
		http_reply_error(request, 400, "%s", e.text);
		return;
	}
	if (!show_is_id(request, id))
		return;
	struct show_call *call = show_new(request, id, q.tenant);
	call->what = what;
	call->number = number;
	if (what == SHOW_FILE)
		call->call.content_type = "application/octet-stream";
	api_call_start_job(&call->call);
}

const struct http_handler faults_show = API_CALL_HANDLER(show_end);

/* ---- What is said ---------------------------------------------------------------------------- */

static int show_keep_text(struct show_call *call, struct slice *text, const char *name,
			  size_t max_bytes, struct errbuf *e)
{
	int err = params_keep(&call->call.arena, text, name, max_bytes, e);
	return err ? err : notation_check_said(*text, name, e);
}

static int show_keep_said(struct show_call *call, const struct show_question *q, struct errbuf *e)
{
	call->said = (struct fault_bug){q->tracker, q->bug};
	if (!q->tracker.len || !q->bug.data)
		return errbuf_set(e, ERR_INVALID,
				  "tracker and bug go together, and tracker is not empty: they say "
				  "which bug report " SHOWN " is",
				  SHOWN_OF(call->id));
	int err = show_keep_text(call, &call->said.tracker, "tracker", FAULT_BUG_TRACKER_MAX_BYTES,
				 e);
	return err ? err
		   : show_keep_text(call, &call->said.bug, "bug", FAULT_SAID_TEXT_MAX_BYTES, e);
}

/* /oops/ID/bug. */
static void show_say_end(struct http_request *request)
{
	struct show_question q = {.tracker = {NULL, 0}, .bug = {NULL, 0}};
	const struct slice *segments = request->segments;
	struct errbuf e = {""};
	if (request->segment_count != 3 || !slice_equal(segments[2], SLICE("bug"))) {
		http_reply_error(request, 404, "there is nothing at %.*s",
				 slice_shown_len(request->path), request->path.data);
		return;
	}
	if (params_read_route(request, 0, &q, &e)) {
		http_reply_error(request, 400, "%s", e.text);
		return;
	}
	if (!show_is_id(request, segments[1]))
		return;
	struct show_call *call = show_new(request, segments[1], q.tenant);
	api_call_set_deadline(&call->call);
	call->call.carried_through = true;
	if (show_keep_said(call, &q, &e))
		api_call_fail(&call->call, 400, "%s", e.text);
	else
		api_call_start_job(&call->call);
}

const struct http_handler faults_bug = API_CALL_HANDLER(show_say_end);
