/* fault day, recount, report, gc and delete: days of reports, and what goes, by a server's API
 * (api/fault/days.c, gc.c, erase.c). */
#include "cmd/client_fault.h"

/* ---- day, recount ---------------------------------------------------------------------------- */

static void client_fault_add_top(struct text_table *table, const struct json *day, const char *what)
{
	const struct json *list = json_member(day, what);
	for (const struct json *top = list ? list->first : NULL; top; top = top->next) {
		if (top->count != 2)
			continue;
		text_table_add(table, slice_of(what));
		text_table_add(table, top->first->text);
		text_table_add(table, top->first->next->text);
	}
}

static void client_fault_add_volumes(struct text_table *table, const struct json *day)
{
	const struct json *volumes = json_member(day, "volume");
	for (const struct json *one = volumes ? volumes->first : NULL; one; one = one->next) {
		text_table_add(table, SLICE("volume"));
		text_table_add(table, one->text);
		text_table_add(table, one->key);
	}
}

static void client_fault_add_count(struct text_table *table, const struct json *day,
				   const char *what)
{
	text_table_add(table, slice_of(what));
	text_table_addf(table, "%lld", (long long)client_i64(day, what));
	text_table_add(table, SLICE(""));
}

static void client_fault_print_day(const struct command_args *args, const struct json *root,
				   UNUSED struct arena *arena)
{
	static const char *const titles[] = {"what", "count", "of"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	client_fault_add_count(&table, root, "total");
	client_fault_add_top(&table, root, "duration");
	client_fault_add_top(&table, root, "statement count");
	client_fault_add_volumes(&table, root);
	client_fault_add_count(&table, root, "rest");
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static void client_fault_param(struct buf *path, const char *name, const char *value)
{
	if (value)
		client_param(path, name, value);
}

static int client_fault_ask_day(const struct command_args *args, const char *method,
				const char *behind)
{
	const struct client_fault_args *fault = client_fault_args_of(args);
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, "/oops/days/", fault->day ? fault->day : "today");
	client_path(&path, behind, "");
	client_fault_param(&path, "from", fault->from);
	client_fault_param(&path, "to", fault->to);
	client_fault_param(&path, "limit", fault->limit);
	int status = client_show(args, method, path.data, args->output == OUTPUT_JSON,
				 client_fault_print_day);
	buf_release(&path);
	return status;
}

int client_fault_day(const struct command_args *args)
{
	return client_fault_ask_day(args, NULL, "");
}

int client_fault_recount(const struct command_args *args)
{
	return client_fault_ask_day(args, "POST", "/recount");
}

/* ---- gc -------------------------------------------------------------------------------------- */

static void client_fault_print_gc(const struct command_args *args, const struct json *root,
				  UNUSED struct arena *arena)
{
	static const char *const titles[] = {"what", "reports", "bytes"};
	static const char *const rows[][3] = {{"goes", "reports", "bytes"},
					      {"all", "all_reports", "all_bytes"}};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		text_table_add(&table, slice_of(rows[i][0]));
		text_table_add_member(&table, root, rows[i][1]);
		text_table_add_member(&table, root, rows[i][2]);
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
	if (!client_fault_args_of(args)->dry_run && client_i64(root, "reports"))
		terminal_complain("they go within some minutes");
}

int client_fault_gc(const struct command_args *args)
{
	return client_show_route(args, "POST", "/oops/gc", client_fault_print_gc);
}

/* ---- delete ---------------------------------------------------------------------------------- */

static void client_fault_print_delete(const struct command_args *args, const struct json *root,
				      UNUSED struct arena *arena)
{
	static const char *const titles[] = {"what", "reports", "days"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	text_table_add(&table, SLICE("goes"));
	text_table_add_member(&table, root, "reports");
	text_table_add_member(&table, root, "days");
	text_table_print(&table, args->output);
	text_table_release(&table);
	const struct json *more = json_member(root, "more");
	if (more && more->boolean)
		terminal_complain("there are more: give the command again");
}

int client_fault_delete(const struct command_args *args)
{
	return client_show_route(args, "POST", "/oops/delete", client_fault_print_delete);
}

/* ---- report ---------------------------------------------------------------------------------- */

/* As the server makes it. */
int client_fault_report(const struct command_args *args)
{
	const struct client_fault_args *fault = client_fault_args_of(args);
	struct client_fault_args shown = *fault;
	struct buf route, path;
	shown.line.output = strcmp(fault->format, "json") == 0 ? OUTPUT_JSON : OUTPUT_TABLE;
	buf_init(&route, CLIENT_PATH_MAX_BYTES);
	client_path(&route, "/oops/days/", fault->day ? fault->day : "today");
	client_path(&route, "/report", "");
	client_route(&path, args, route.data);
	int status = client_show(&shown.line, NULL, path.data, true, NULL);
	buf_release(&route);
	buf_release(&path);
	return status;
}
