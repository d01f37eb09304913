#include "agent/control_rest.h"

#include <inttypes.h>

#include "wire/json.h"

enum {
	CONTROL_REST_BODY_MAX_BYTES = 64 << 10,
	CONTROL_REST_ONE_MAX_BYTES = 400 << 10, /* escaped, and with the rates */
	CONTROL_REST_ID_SEGMENT = 3,            /* of /rest/v2/adaptor/ID */
};

static const unsigned control_rest_intervals_s[] = {60, 300, 600};

static void control_rest_fail(struct http_request *request, int status, const char *text)
{
	http_reply(request, status, "text/plain; charset=utf-8", slice_of(text));
}

/* ---- What is shown --------------------------------------------------------------------------- */

static void control_rest_put(struct json_writer *json, const struct control_item *item)
{
	struct buf class;
	buf_init(&class, CHUKWA_LINE_MAX_BYTES + sizeof(CHUKWA_PACKAGE));
	control_put_class(item, &class);
	json_write_object_begin(json);
	json_put_string(json, "id", item->add.id);
	json_put_string(json, "dataType", item->add.datatype);
	json_put_string(json, "adaptorClass", buf_slice(&class));
	json_put_string(json, "adaptorParams", item->add.params);
	json_put_u64(json, "offset", item->progress.offset);
	json_write_key(json, "adaptorRates");
	json_write_array_begin(json);
	for (size_t i = 0; i < ARRAY_LEN(control_rest_intervals_s); i++) {
		unsigned seconds = control_rest_intervals_s[i];
		json_write_object_begin(json);
		json_put_f64(json, "rate", control_rate(item, seconds));
		json_put_u64(json, "intervalInSeconds", seconds);
		json_write_object_end(json);
	}
	json_write_array_end(json);
	json_write_object_end(json);
	buf_release(&class);
}

static void control_rest_reply_one(struct http_request *request, const struct control_item *item)
{
	struct buf out;
	struct json_writer json;
	buf_init(&out, CONTROL_REST_ONE_MAX_BYTES);
	json_writer_init(&json, &out);
	control_rest_put(&json, item);
	if (out.failed)
		control_rest_fail(request, 500, "the answer is too long");
	else
		http_reply(request, 200, "application/json", buf_slice(&out));
	buf_release(&out);
}

/* How far a list has been written: it is no longer in memory than its client leaves it. */
struct control_rest_list {
	size_t at;
	bool any;
};

/* Writes adaptors from a place on. One that comes or goes meanwhile may move others past it. */
static void control_rest_write_list(struct http_request *request)
{
	const struct control *control = request->context;
	struct control_rest_list *list = request->owner;
	struct buf out;
	struct json_writer json;
	int err = 0;
	buf_init(&out, CONTROL_REST_ONE_MAX_BYTES);
	while (!err && list->at < control->count) {
		const struct control_item *item = control->list[list->at++];
		if (!item->runs)
			continue;
		buf_clear(&out);
		buf_append_text(&out, list->any ? "," : "");
		json_writer_init(&json, &out);
		control_rest_put(&json, item);
		list->any = true;
		err = out.failed ? ERR_LIMIT : http_stream_write(request, buf_slice(&out));
	}
	if (err && err != ERR_BUSY) {
		http_stream_break(request);
	} else if (!err) {
		buf_clear(&out);
		buf_printf(&out, "],\"adaptorCount\":%zu}", control_count(control));
		(void)!http_stream_write(request, buf_slice(&out)); /* it has room for that */
		http_stream_end(request);
	}
	buf_release(&out);
}

/* ---- Requests -------------------------------------------------------------------------------- */

/* Whether JSON may be answered; else it is refused. */
static bool control_rest_accepts(struct http_request *request)
{
	static const struct slice fits[] = {SLICE("application/json"), SLICE("application/*"),
					    SLICE("*/*")};
	struct slice accept = http_header(request, "accept");
	bool any = !accept.len;
	for (size_t i = 0; i < ARRAY_LEN(fits) && !any; i++)
		any = memmem(accept.data, accept.len, fits[i].data, fits[i].len);
	if (!any)
		control_rest_fail(request, 406, "the answer is application/json");
	return any;
}

static struct control_item *control_rest_find(struct http_request *request, int status)
{
	struct control *control = request->context;
	struct errbuf e = {""};
	struct slice id = {"", 0};
	if (request->segment_count == CONTROL_REST_ID_SEGMENT + 1)
		id = request->segments[CONTROL_REST_ID_SEGMENT];
	struct control_item *item = control_find(control, id);
	if (item && item->runs)
		return item;
	errbuf_set(&e, ERR_NOT_FOUND, "Invalid adaptorId: " SHOWN, SHOWN_OF(id));
	control_rest_fail(request, status, e.text);
	return NULL;
}

static void control_rest_on_list(struct http_request *request)
{
	if (!control_rest_accepts(request) || http_reply_head(request, "application/json"))
		return;
	control_look(request->context);
	request->owner = arena_zalloc(&request->arena, sizeof(struct control_rest_list));
	ASSERT(request->owner); /* nothing else is in the arena */
	http_stream_begin(request, 200, "application/json");
	(void)!http_stream_write(request, SLICE("{\"adaptorInfo\":["));
	control_rest_write_list(request);
}

static void control_rest_on_get(struct http_request *request)
{
	if (!control_rest_accepts(request))
		return;
	control_look(request->context);
	const struct control_item *item = control_rest_find(request, 404);
	if (item)
		control_rest_reply_one(request, item);
}

static void control_rest_on_delete(struct http_request *request)
{
	struct errbuf e = {""};
	struct control_item *item = control_rest_find(request, 400);
	if (!item)
		return;
	if (control_stop(request->context, &item, &e))
		control_rest_fail(request, 500, e.text);
	else
		http_reply(request, 200, "text/plain; charset=utf-8", (struct slice){"", 0});
}

/* With a blank it would be two words of the command, and behind a = the one in front is a name. */
static bool control_rest_is_word(struct slice text)
{
	return text.len && text.data[0] != '=' && !memchr(text.data, ' ', text.len) &&
	       !memchr(text.data, '\t', text.len);
}

/* The command that the body stands for. */
static int control_rest_line(struct http_request *request, struct buf *line, struct errbuf *e)
{
	static const char *const names[] = {"dataType", "adaptorClass", "adaptorParams", "offset",
					    NULL};
	const struct json *params;
	struct json *root;
	struct slice class, datatype, words = {"", 0};
	int64_t offset = 0;
	int err = json_parse(buf_slice(&request->body), &request->arena, &root, e);
	err = err ? err : json_check_members(root, names, e);
	err = err ? err : json_get_text(root, "adaptorClass", &class, e);
	err = err ? err : json_get_text(root, "dataType", &datatype, e);
	params = err ? NULL : json_member(root, "adaptorParams");
	if (params && params->type != JSON_T_NULL)
		err = json_get_text(root, "adaptorParams", &words, e);
	if (!err && json_member(root, "offset"))
		err = json_get_i64(root, "offset", &offset, e);
	if (!err && !(control_rest_is_word(class) && control_rest_is_word(datatype)))
		err = errbuf_set(e, ERR_INVALID,
				 "adaptorClass and dataType are a word each, with no blank in it "
				 "and no = in front");
	if (err)
		return err;
	const struct slice said[] = {SLICE("add "), class, SLICE(" "), datatype, SLICE(" "), words};
	for (size_t i = 0; i < ARRAY_LEN(said); i++)
		buf_append(line, said[i].data, said[i].len);
	buf_printf(line, " %" PRId64, offset);
	return line->failed ? errbuf_set(e, ERR_LIMIT, "the adaptor has too many bytes") : 0;
}

static int control_rest_add_line(struct control *control, struct slice line,
				 struct control_item **item, struct errbuf *e)
{
	control->by_port = true;
	return control_add(control, line, item, e);
}

static void control_rest_on_add(struct http_request *request)
{
	struct errbuf e = {""};
	struct control_item *item;
	struct buf line;
	if (!control_rest_accepts(request))
		return;
	buf_init(&line, CONTROL_REST_BODY_MAX_BYTES + CHUKWA_LINE_MAX_BYTES);
	if (control_rest_line(request, &line, &e)) {
		errbuf_prefix(&e, ERR_INVALID, "Bad adaptor config");
		control_rest_fail(request, 400, e.text);
	} else if (control_rest_add_line(request->context, buf_slice(&line), &item, &e)) {
		errbuf_prefix(&e, ERR_INVALID, "Could not add adaptor");
		control_rest_fail(request, 400, e.text);
	} else {
		control_rest_reply_one(request, item);
	}
	buf_release(&line);
}

/* ---- The table ------------------------------------------------------------------------------- */

static const struct http_handler control_rest_list = {.end = control_rest_on_list,
						      .drained = control_rest_write_list};
static const struct http_handler control_rest_get = {.end = control_rest_on_get};
static const struct http_handler control_rest_add = {.end = control_rest_on_add};
static const struct http_handler control_rest_delete = {.end = control_rest_on_delete};

const struct http_route control_rest_routes[CONTROL_REST_ROUTES] = {
	{.verb = VERB_GET,
	 .path = "/rest/v2/adaptor",
	 .role = ROLE_READ,
	 .handler = &control_rest_list,
	 .help = "The adaptors of this agent."},
	{.verb = VERB_POST,
	 .path = "/rest/v2/adaptor",
	 .role = ROLE_ADMIN,
	 .body_max_bytes = CONTROL_REST_BODY_MAX_BYTES,
	 .handler = &control_rest_add,
	 .help = "Adds an adaptor."},
	{.verb = VERB_GET,
	 .path = "/rest/v2/adaptor/",
	 .prefix = true,
	 .role = ROLE_READ,
	 .handler = &control_rest_get,
	 .help = "One adaptor."},
	{.verb = VERB_DELETE,
	 .path = "/rest/v2/adaptor/",
	 .prefix = true,
	 .role = ROLE_ADMIN,
	 .handler = &control_rest_delete,
	 .help = "Stops an adaptor."},
};
