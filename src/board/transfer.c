/* A dashboard with all that it names, as one document: export and import. */
#include "board/private.h"

enum { TRANSFER_NAMED_MAX = 2 * BOARD_GRID_MAX /* of one kind */ };

static const char *const transfer_lists[BOARD_KINDS] = {
	[BOARD_CHART] = "charts", [BOARD_WIDGET] = "widgets", [BOARD_DASHBOARD] = NULL};

/* ---- Export ---------------------------------------------------------------------------------- */

struct transfer_named {
	struct slice id;
	struct slice text; /* NULL data: it is not there */
};

struct transfer_export {
	struct boards *boards;
	struct task_queue *queue;
	struct slice tenant;
	struct arena *arena;
	struct transfer_named named[BOARD_KINDS][TRANSFER_NAMED_MAX]; /* each once */
	size_t count[BOARD_KINDS];
	const struct transfer_named *last; /* that was named */
};

static int transfer_parse(struct slice text, struct arena *arena, struct json **root,
			  struct errbuf *e)
{
	int err = json_parse(text, arena, root, e);
	return err == ERR_INVALID ? errbuf_prefix(e, ERR_DAMAGED, "what is stored cannot be read")
				  : err;
}

/* Reads what is named, if it is named for the first time. */
static int transfer_name(struct transfer_export *x, enum board_kind kind, struct slice id,
			 struct errbuf *e)
{
	struct board board;
	struct transfer_named *named = x->named[kind];
	x->last = NULL;
	for (size_t i = 0; i < x->count[kind]; i++) {
		if (slice_equal(named[i].id, id))
			return 0;
	}
	int err = boards_find(x->boards, x->queue, x->tenant, kind, id, x->arena, &board, e);
	if (err)
		return err;
	if (x->count[kind] == TRANSFER_NAMED_MAX)
		return errbuf_set(e, ERR_DAMAGED, "the dashboard names more than %d boards",
				  TRANSFER_NAMED_MAX);
	x->last = &named[x->count[kind]];
	named[x->count[kind]++] = (struct transfer_named){id, board.text};
	return 0;
}

static int transfer_name_chart(struct transfer_export *x, const struct json *widget,
			       struct errbuf *e)
{
	struct slice id = board_widget_chart(widget, x->arena);
	return id.data ? transfer_name(x, BOARD_CHART, id, e) : 0;
}

/* The widget of a grid is itself one, and names by its title the one that was made. */
static int transfer_name_widget(struct transfer_export *x, const struct json *widget,
				struct errbuf *e)
{
	struct json *made;
	const struct json *title = json_member(widget, "title");
	int err = transfer_name_chart(x, widget, e);
	if (err || !title)
		return err;
	err = transfer_name(x, BOARD_WIDGET, title->text, e);
	if (err || !x->last || !x->last->text.data)
		return err;
	err = transfer_parse(x->last->text, x->arena, &made, e);
	return err ? err : transfer_name_chart(x, made, e);
}

static void transfer_write_found(const struct transfer_export *x, enum board_kind kind,
				 struct json_writer *json)
{
	json_write_key(json, transfer_lists[kind]);
	json_write_array_begin(json);
	for (size_t i = 0; i < x->count[kind]; i++) {
		if (x->named[kind][i].text.data)
			json_write_raw(json, x->named[kind][i].text);
	}
	json_write_array_end(json);
}

/* A widget that nobody made is whole in its grid; a chart is nowhere else. */
static void transfer_write_missing(const struct transfer_export *x, struct json_writer *json)
{
	json_write_key(json, "missing");
	json_write_array_begin(json);
	for (size_t i = 0; i < x->count[BOARD_CHART]; i++) {
		if (!x->named[BOARD_CHART][i].text.data)
			json_write_string(json, x->named[BOARD_CHART][i].id);
	}
	json_write_array_end(json);
}

int boards_export(struct boards *boards, struct task_queue *queue, struct slice tenant,
		  struct slice id, struct arena *arena, struct json_writer *json, struct errbuf *e)
{
	struct board board;
	struct json *root;
	struct transfer_export *x = arena_zalloc(arena, sizeof(*x));
	if (!x)
		return errbuf_set(e, ERR_LIMIT, "the export takes more memory than is allowed for");
	*x = (struct transfer_export){boards, queue, tenant, arena, .count = {0}};
	int err = boards_get(boards, queue, tenant, BOARD_DASHBOARD, id, arena, &board, e);
	err = err ? err : transfer_parse(board.text, arena, &root, e);
	const struct json *grid = err ? NULL : json_member(root, "grid");
	for (const struct json *one = grid ? grid->first : NULL; one && !err; one = one->next)
		err = transfer_name_widget(x, one, e);
	if (err)
		return err;
	json_write_object_begin(json);
	json_write_key(json, "dashboard");
	json_write_raw(json, board.text);
	transfer_write_found(x, BOARD_WIDGET, json);
	transfer_write_found(x, BOARD_CHART, json);
	transfer_write_missing(x, json);
	json_write_object_end(json);
	return 0;
}

/* ---- Import ---------------------------------------------------------------------------------- */

struct transfer_item {
	struct board_document document;
	bool is_put;
};

struct transfer_import {
	struct boards *boards;
	struct task_queue *queue;
	struct boards_import *import;
	struct arena *arena;
	struct transfer_item *items; /* the dashboard is the last */
	size_t count;
	size_t put_bytes, stored[BOARD_KINDS]; /* how many more are stored then */
};

static int transfer_add(struct transfer_import *x, enum board_kind kind, const struct json *tree,
			struct errbuf *e)
{
	const struct board_kind_def *def = &board_kinds[kind];
	struct board_document *made = &x->items[x->count].document;
	int err = board_document_make(kind, tree, (struct slice){NULL, 0}, x->arena, made, e);
	if (!err && !json_member(tree, def->id_member))
		err = errbuf_set(e, ERR_INVALID, "%s is missing", def->id_member);
	for (size_t i = 0; !err && i < x->count; i++) {
		if (x->items[i].document.kind == kind &&
		    slice_equal(x->items[i].document.id, made->id))
			err = errbuf_set(e, ERR_INVALID, "%s \"" SHOWN "\" stands there twice",
					 def->id_member, SHOWN_OF(made->id));
	}
	x->count++;
	return err;
}

static int transfer_add_list(struct transfer_import *x, enum board_kind kind,
			     const struct json *list, struct errbuf *e)
{
	size_t place = 0;
	for (const struct json *one = list ? list->first : NULL; one; one = one->next, place++) {
		int err = transfer_add(x, kind, one, e);
		if (err)
			return errbuf_prefix(e, err, "%s[%zu]", transfer_lists[kind], place);
	}
	return 0;
}

static int transfer_read_list(const struct json *root, enum board_kind kind,
			      const struct json **list, struct errbuf *e)
{
	const char *name = transfer_lists[kind];
	*list = json_member(root, name);
	if (*list && ((*list)->type != JSON_T_ARRAY || (*list)->count > TRANSFER_NAMED_MAX))
		return errbuf_set(e, ERR_INVALID, "%s is not a list of at most %d objects", name,
				  TRANSFER_NAMED_MAX);
	return 0;
}

static int transfer_read(struct transfer_import *x, const struct json *root, struct errbuf *e)
{
	const struct json *charts, *widgets, *dashboard = json_member(root, "dashboard");
	if (!dashboard)
		return errbuf_set(e, ERR_INVALID,
				  "dashboard is missing: what dashboard/export gives is taken");
	int err = transfer_read_list(root, BOARD_CHART, &charts, e);
	err = err ? err : transfer_read_list(root, BOARD_WIDGET, &widgets, e);
	if (err)
		return err;
	size_t most = (charts ? charts->count : 0) + (widgets ? widgets->count : 0) + 1;
	x->items = arena_zalloc(x->arena, most * sizeof(*x->items));
	if (!x->items)
		return errbuf_set(e, ERR_LIMIT, "the import takes more memory than is allowed for");
	err = transfer_add_list(x, BOARD_CHART, charts, e);
	err = err ? err : transfer_add_list(x, BOARD_WIDGET, widgets, e);
	if (!err && (err = transfer_add(x, BOARD_DASHBOARD, dashboard, e)) != 0)
		errbuf_prefix(e, err, "dashboard");
	if (!err)
		x->import->id = x->items[x->count - 1].document.id;
	return err;
}

static int transfer_compare(struct transfer_import *x, struct transfer_item *item, struct errbuf *e)
{
	const struct board_document *document = &item->document;
	struct boards_import *import = x->import;
	struct board now;
	int err = boards_find(x->boards, x->queue, import->tenant, document->kind, document->id,
			      x->arena, &now, e);
	if (err)
		return err;
	if (now.text.data && slice_equal(now.text, document->text)) {
		import->unchanged++;
		return 0;
	}
	if (now.text.data && !import->overwrite)
		return errbuf_set(e, ERR_EXISTS,
				  "there is another %s \"" SHOWN
				  "\" already; with overwrite=true it is replaced",
				  board_kinds[document->kind].name, SHOWN_OF(document->id));
	if (now.text.data)
		import->replaced++;
	else
		import->created++;
	x->stored[document->kind] += !now.text.data || now.is_shipped;
	x->put_bytes += document->text.len + BOARD_CELL_MAX_BYTES;
	item->is_put = true;
	return 0;
}

static int transfer_write(struct transfer_import *x, struct errbuf *e)
{
	struct store_write *write = store_write_new(x->boards->store, x->put_bytes);
	int64_t stamp_us = store_stamp(x->boards->store);
	int err = 0;
	for (size_t i = 0; i < x->count && !err; i++) {
		if (x->items[i].is_put)
			err = boards_add_put(write, x->import->tenant, &x->items[i].document,
					     stamp_us);
	}
	return boards_write_wait(x->queue, write, err, e);
}

/* The conditions are about the dashboard. */
static int transfer_check_conditions(struct transfer_import *x, struct errbuf *e)
{
	struct boards_import *import = x->import;
	struct board_change change = {.kind = BOARD_DASHBOARD,
				      .if_match = import->if_match,
				      .if_none_match = import->if_none_match};
	struct board now;
	int err = boards_find(x->boards, x->queue, import->tenant, BOARD_DASHBOARD, import->id,
			      x->arena, &now, e);
	err = err ? err : boards_check_conditions(&change, &now, e);
	import->is_stale = change.is_stale;
	return err;
}

/* With the lock. */
static int transfer_change(struct transfer_import *x, struct errbuf *e)
{
	int err = transfer_check_conditions(x, e);
	for (size_t i = 0; i < x->count && !err; i++)
		err = transfer_compare(x, &x->items[i], e);
	for (enum board_kind kind = 0; kind < BOARD_KINDS && !err; kind++) {
		if (x->stored[kind])
			err = boards_check_room(x->boards, x->queue, x->import->tenant, kind,
						x->stored[kind], e);
	}
	return err || !x->put_bytes ? err : transfer_write(x, e);
}

int boards_import(struct boards *boards, struct task_queue *queue, struct boards_import *import,
		  const struct json *root, struct arena *arena, struct errbuf *e)
{
	struct transfer_import x = {boards, queue, import, arena, .items = NULL};
	int err = transfer_read(&x, root, e);
	if (err)
		return err;
	pthread_mutex_lock(boards_lock(boards, import->tenant));
	err = transfer_change(&x, e);
	pthread_mutex_unlock(boards_lock(boards, import->tenant));
	return err;
}
