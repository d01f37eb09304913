#include "api/admin/pollers.h"

#include "api/admin/reporter.h"
#include "api/json_reply.h"
#include "api/routes.h"
#include "inventory/inventory.h"
#include "wire/json.h"
#include "wire/timetext.h"

enum {
	POLLERS_MAX = 1000, /* who was not heard of for longest goes first */
	REPORT_ARENA_MAX_BYTES = 256 << 20,
	LIST_MAX_BYTES = 4 << 20,
	TAG_BYTES = 64,
};

struct poller_seen {
	char name[INVENTORY_NAME_MAX_BYTES + 1];
	int64_t heard_ms; /* 0: never, devices name it */
	char problem[DEVICE_ERROR_MAX_BYTES + 1];
	int64_t pending, pending_bytes, aside, dropped;
	size_t devices; /* while a list is made */
};

struct pollers {
	struct poller_seen *seen;
	size_t count;
};

struct pollers *pollers_new(void)
{
	return mem_zalloc(sizeof(struct pollers));
}

void pollers_free(struct pollers *pollers)
{
	if (pollers)
		mem_free(pollers->seen);
	mem_free(pollers);
}

static struct poller_seen *pollers_find(const struct pollers *pollers, struct slice name)
{
	for (size_t i = 0; pollers && i < pollers->count; i++) {
		if (slice_equal(slice_of(pollers->seen[i].name), name))
			return &pollers->seen[i];
	}
	return NULL;
}

int64_t pollers_heard_ms(const struct pollers *pollers, struct slice name)
{
	const struct poller_seen *seen = name.len ? pollers_find(pollers, name) : NULL;
	return seen ? seen->heard_ms : 0;
}

static struct poller_seen *pollers_oldest(const struct pollers *pollers)
{
	struct poller_seen *seen = pollers->seen;
	for (size_t i = 1; i < pollers->count; i++) {
		if (pollers->seen[i].heard_ms < seen->heard_ms)
			seen = &pollers->seen[i];
	}
	return seen;
}

/* The one of that name, made if it is not there. */
static struct poller_seen *get(struct pollers *pollers, struct slice name)
{
	ASSERT(name.len && name.len <= INVENTORY_NAME_MAX_BYTES);
	struct poller_seen *seen = pollers_find(pollers, name);
	if (seen)
		return seen;
	if (pollers->count == POLLERS_MAX) {
		seen = pollers_oldest(pollers);
	} else {
		pollers->seen = mem_resize_array(pollers->seen, pollers->count + 1, sizeof(*seen));
		seen = &pollers->seen[pollers->count++];
	}
	*seen = (struct poller_seen){0};
	snprintf(seen->name, sizeof(seen->name), "%.*s", (int)name.len, name.data);
	ASSERT(pollers->count <= POLLERS_MAX);
	return seen;
}

/* ---- What is polled there -------------------------------------------------------------------- */

static void pollers_inventory_end(struct http_request *request)
{
	struct api *api = api_of(request);
	char tag[TAG_BYTES];
	struct slice name;
	struct buf body;
	if (!reporter_read_path(request, "inventory", &name))
		return;
	const struct inventory *inventory = inventory_keeper_take(api->inventory);
	snprintf(tag, sizeof(tag), "\"%llx-%llx\"", (unsigned long long)api->started_ms,
		 (unsigned long long)inventory->number);
	http_reply_header(request, "ETag", tag);
	if (http_tag_is_listed(http_header(request, "If-None-Match"), slice_of(tag))) {
		inventory_release(inventory);
		http_reply(request, 304, NULL, (struct slice){NULL, 0});
		return;
	}
	buf_init(&body, INVENTORY_DOCUMENT_MAX_BYTES);
	inventory_document_write(inventory, name, &body);
	inventory_release(inventory);
	if (body.failed)
		http_reply_error(
			request, 422,
			"the inventory is longer than %d MB, which is what a poller takes: "
			"divide its devices among several pollers",
			INVENTORY_DOCUMENT_MAX_BYTES >> 20);
	else
		http_reply(request, 200, "application/json", buf_slice(&body));
	buf_release(&body);
}

const struct http_handler poller_inventory = {.end = pollers_inventory_end};

/* ---- How it goes there ------------------------------------------------------------------------
 */

static int pollers_take_device(const struct inventory *inventory, struct slice poller,
			       const struct json *report, struct errbuf *e)
{
	struct device_status status = {0};
	struct slice name, reason;
	int err = json_get_text(report, "name", &name, e);
	err = err ? err : json_get_i64(report, "lastSuccess", &status.last_success_ms, e);
	err = err ? err : json_get_i64(report, "failingSince", &status.failing_since_ms, e);
	err = err ? err : json_get_bool(report, "resolved", &status.resolved, e);
	err = err ? err : json_get_text(report, "reason", &reason, e);
	if (err)
		return err;
	const struct device *device = inventory_device(inventory, name);
	if (!device || !slice_equal(device->poller, poller))
		return 0;
	snprintf(status.error, sizeof(status.error), "%.*s", (int)reason.len, reason.data);
	device_state_set(device->state, &status);
	return 0;
}

static int pollers_take_report(struct api *api, struct slice name, const struct json *root,
			       struct errbuf *e)
{
	struct poller_seen said = {0};
	const struct json *devices = NULL;
	struct slice problem;
	int err = json_get_text(root, "problem", &problem, e);
	err = err ? err : json_get_i64(root, "pending", &said.pending, e);
	err = err ? err : json_get_i64(root, "pendingBytes", &said.pending_bytes, e);
	err = err ? err : json_get_i64(root, "aside", &said.aside, e);
	err = err ? err : json_get_i64(root, "dropped", &said.dropped, e);
	err = err ? err : json_get_array(root, "devices", &devices, e);
	if (err)
		return err;
	const struct inventory *inventory = inventory_keeper_take(api->inventory);
	for (const struct json *d = devices->first; d && !err; d = d->next)
		err = pollers_take_device(inventory, name, d, e);
	inventory_release(inventory);
	if (err)
		return err;
	struct poller_seen *seen = get(api->pollers, name);
	memcpy(said.name, seen->name, sizeof(said.name));
	snprintf(said.problem, sizeof(said.problem), "%.*s", (int)problem.len, problem.data);
	said.heard_ms = clock_wall_ms(api->clock);
	*seen = said;
	return 0;
}

static void report_end(struct http_request *request)
{
	struct errbuf e = {""};
	struct arena arena;
	struct json *root;
	struct slice name;
	if (!reporter_read_path(request, "report", &name))
		return;
	arena_init(&arena, REPORT_ARENA_MAX_BYTES);
	int err = json_parse(buf_slice(&request->body), &arena, &root, &e);
	err = err ? err : pollers_take_report(api_of(request), name, root, &e);
	if (err)
		http_reply_error(request, 400, "%s", e.text);
	else
		http_reply(request, 204, NULL, (struct slice){NULL, 0});
	arena_release(&arena);
}

const struct http_handler poller_report = {.end = report_end};

/* ---- Who there is -----------------------------------------------------------------------------
 */

/* The list with those that only devices name, its memory the caller's. */
static struct pollers list_all(const struct api *api)
{
	struct pollers all = {mem_alloc_array(api->pollers->count + 1, sizeof(struct poller_seen)),
			      api->pollers->count};
	const struct inventory *inventory = inventory_keeper_take(api->inventory);
	for (size_t i = 0; i < all.count; i++)
		all.seen[i] = api->pollers->seen[i];
	for (size_t i = 0; i < inventory->device_count; i++) {
		if (inventory->devices[i]->poller.len)
			get(&all, inventory->devices[i]->poller)->devices++;
	}
	inventory_release(inventory);
	return all;
}

static void write_seen(const struct poller_seen *seen, int64_t now_ms, struct json_writer *w)
{
	char text[TIME_PRINT_MAX_BYTES];
	bool silent = reporter_is_silent(seen->heard_ms, now_ms);
	const struct {
		const char *key;
		int64_t number;
	} numbers[] = {
		{"devices", (int64_t)seen->devices},
		{"pending", seen->pending},
		{"pendingBytes", seen->pending_bytes},
		{"aside", seen->aside},
		{"dropped", seen->dropped},
	};
	json_write_object_begin(w);
	json_put_text(w, "name", seen->name);
	json_put_text(w, "state", silent ? "silent" : seen->problem[0] ? "failing" : "ok");
	json_put_text(w, "reason", seen->problem);
	json_write_key(w, "lastHeard");
	if (seen->heard_ms)
		json_write_string(w, (struct slice){text, time_print(text, seen->heard_ms)});
	else
		json_write_null(w);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_put_i64(w, numbers[i].key, numbers[i].number);
	json_write_object_end(w);
}

static void list_end(struct http_request *request)
{
	const struct api *api = api_of(request);
	struct pollers all = list_all(api);
	struct json_reply reply;
	struct json_writer *json = json_reply_begin(&reply, LIST_MAX_BYTES);
	json_write_array_begin(json);
	for (size_t i = 0; i < all.count; i++)
		write_seen(&all.seen[i], clock_wall_ms(api->clock), json);
	json_write_array_end(json);
	json_reply_send(&reply, request);
	mem_free(all.seen);
}

const struct http_handler pollers_list = {.end = list_end};
