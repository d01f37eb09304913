/* board: charts, widgets and dashboards of a server (api/hicc/boards.h). */
#include <stdio.h>

#include "base/file.h"
#include "board/document.h"
#include "cmd/client.h"
#include "cmd/client_private.h"

enum {
	CLIENT_BOARD_MAX_BYTES = BOARD_IMPORT_MAX_BYTES,
	CLIENT_BOARD_ARENA_MAX_BYTES = 512 << 20,
};

struct client_board_args {
	struct command_args line;
	const char *kind, *id, *prefix, *file;
	bool overwrite;
};

static const struct client_board_args *client_board_args_of(const struct command_args *args)
{
	return CONTAINER_OF(args, const struct client_board_args, line);
}

/* /hicc/v1/KIND/word/ID?tenant=... */
static void client_board_path(struct buf *path, const struct command_args *args, const char *kind,
			      const char *word, const char *id)
{
	char route[64];
	buf_init(path, CLIENT_PATH_MAX_BYTES);
	snprintf(route, sizeof(route), "/hicc/v1/%s/%s%s", kind, word, id ? "/" : "");
	client_path(path, route, id ? id : "");
	if (args->tenant)
		client_param(path, "tenant", args->tenant);
}

/* ---- What is printed ------------------------------------------------------------------------- */

/* A member or item a line, so that whoever keeps boards under version control sees what changed. */
static void client_board_write(const struct json *tree, int depth, struct buf *out)
{
	bool is_object = tree->type == JSON_T_OBJECT;
	struct json_writer json;
	if (!tree->first) {
		json_writer_init(&json, out);
		json_write_literally(&json, tree);
		return;
	}
	buf_append_char(out, is_object ? '{' : '[');
	for (const struct json *one = tree->first; one; one = one->next) {
		buf_printf(out, "%s\n%*s", one == tree->first ? "" : ",", 2 * (depth + 1), "");
		if (is_object) {
			json_append_string(out, one->key);
			buf_append_text(out, ": ");
		}
		client_board_write(one, depth + 1, out);
	}
	buf_printf(out, "\n%*s%c", 2 * depth, "", is_object ? '}' : ']');
}

static void client_board_print(UNUSED const struct command_args *args, const struct json *root,
			       UNUSED struct arena *arena)
{
	struct buf out;
	buf_init(&out, CLIENT_ANSWER_MAX_BYTES);
	client_board_write(root, 0, &out);
	printf("%.*s\n", (int)out.len, out.data);
	buf_release(&out);
}

static void client_board_print_list(const struct command_args *args, const struct json *root,
				    UNUSED struct arena *arena)
{
	static const char *const members[] = {"id", "title", "type", "bytes", "shipped"};
	text_table_print_list(root->first, members, ARRAY_LEN(members), args->output);
}

static void client_board_print_nothing(UNUSED const struct command_args *args,
				       UNUSED const struct json *root, UNUSED struct arena *arena)
{
}

/* ---- What is asked --------------------------------------------------------------------------- */

static int client_board_list(const struct command_args *args)
{
	const struct client_board_args *a = client_board_args_of(args);
	struct buf path;
	client_board_path(&path, args, a->kind, a->prefix ? "search" : "list", a->prefix);
	client_param(&path, "brief", "true");
	client_param(&path, "limit", "10000");
	int status = client_show(args, NULL, path.data, args->output == OUTPUT_JSON,
				 client_board_print_list);
	buf_release(&path);
	return status;
}

static int client_board_ask(const struct command_args *args, const char *method, const char *kind,
			    const char *word, client_print *print)
{
	struct buf path;
	client_board_path(&path, args, kind, word, client_board_args_of(args)->id);
	int status = client_show(args, method, path.data, false, print);
	buf_release(&path);
	return status;
}

static int client_board_show(const struct command_args *args)
{
	return client_board_ask(args, NULL, client_board_args_of(args)->kind, "view",
				client_board_print);
}

static int client_board_export(const struct command_args *args)
{
	return client_board_ask(args, NULL, "dashboard", "export", client_board_print);
}

static int client_board_delete(const struct command_args *args)
{
	return client_board_ask(args, "DELETE", client_board_args_of(args)->kind, "delete",
				client_board_print_nothing);
}

static int client_board_import(const struct command_args *args)
{
	const struct client_board_args *a = client_board_args_of(args);
	struct files *files = files_real();
	struct client_answer answer;
	struct buf text, path;
	buf_init(&text, CLIENT_BOARD_MAX_BYTES);
	int err = files->read(files, a->file, CLIENT_BOARD_MAX_BYTES, &text);
	if (err) {
		command_complain(args, "%s: %s", a->file,
				 err == ERR_LIMIT ? "longer than 32 MB" : err_text(err));
		buf_release(&text);
		return EXIT_FAILED;
	}
	client_board_path(&path, args, "dashboard", "import", NULL);
	if (a->overwrite)
		client_param(&path, "overwrite", "true");
	client_answer_init(&answer);
	answer.quiet = true;
	err = client_request(args, NULL, path.data, "application/json",
			     text.len ? buf_slice(&text) : SLICE(""), &answer);
	if (!err)
		client_print_body(&answer);
	else
		command_complain(args, "%s: %s", a->file, answer.error.text);
	client_answer_release(&answer);
	buf_release(&path);
	buf_release(&text);
	return err ? EXIT_FAILED : EXIT_OK;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

#define ROW(type, field, ...) COMMAND_ROW(type, client_board_args, field, __VA_ARGS__)
#define KIND                                                                                       \
	ROW(command_choice, kind, NULL, "KIND", "what it is", .choices = "chart widget dashboard", \
	    .required = true)
#define ID(help) ROW(command_text, id, NULL, "ID", help, .required = true)
#define SERVER                                                                                     \
	ROW(client_tenant_type, line.tenant, "--tenant", "NAME", "whose boards",                   \
	    .otherwise = "the server's hicc.tenant"),                                              \
		CLIENT_SERVER

static const struct command_option client_board_list_options[] = {
	KIND,
	ROW(command_text, prefix, "--prefix", "TEXT", "only those whose id begins so"),
	SERVER,
	ROW(client_output_type, line.output, "--output", "FORMAT", "table, csv or json",
	    .letter = "-o", .otherwise = "a table on a terminal, else csv"),
};

static const struct command_option client_board_show_options[] = {
	KIND,
	ID("its id; of a widget its title"),
	SERVER,
};

static const struct command_option client_board_export_options[] = {
	ID("the dashboard"),
	SERVER,
};

static const struct command_option client_board_import_options[] = {
	ROW(command_text, file, NULL, "FILE", "what `board export` has printed", .required = true),
	ROW(command_flag, overwrite, "--overwrite", NULL,
	    "what is there and is another one is replaced; else nothing is imported"),
	SERVER,
};

static const struct command client_board_verbs[] = {
	{.name = "board list",
	 .summary = "list charts, widgets or dashboards",
	 .about = "Prints a line for each of a kind, those that are part of the program, too.\n",
	 .examples = "granary board list dashboard\ngranary board list widget --prefix CPU\n",
	 COMMAND_TAKES(client_board_list_options, client_board_args),
	 .run = client_board_list},
	{.name = "board show",
	 .summary = "print one of them, in JSON",
	 .examples = "granary board show chart 1\n",
	 COMMAND_TAKES(client_board_show_options, client_board_args),
	 .run = client_board_show},
	{.name = "board export",
	 .summary = "print a dashboard with all that it names, in JSON",
	 .about = "Prints a dashboard with the widgets and charts that it names, a member a line, "
		  "for another tenant or server, or to be kept under version control.\n",
	 .examples = "granary board export host > host.json\n",
	 COMMAND_TAKES(client_board_export_options, client_board_args),
	 .run = client_board_export},
	{.name = "board import",
	 .summary = "save all of what was exported, or nothing",
	 .about = "Saves a dashboard with its widgets and charts. If one of them is there and is "
		  "another one, nothing is saved unless --overwrite is given.\n",
	 .examples = "granary board import host.json --tenant web\n",
	 COMMAND_TAKES(client_board_import_options, client_board_args),
	 .run = client_board_import},
	{.name = "board delete",
	 .summary = "delete a chart, widget or dashboard",
	 .about = "Deletes one of a kind. What is part of the program stays. If one was saved "
		  "under the id of such a one, the saved one is deleted, and the other is "
		  "seen again.\n",
	 .examples = "granary board delete chart 1\n",
	 COMMAND_TAKES(client_board_show_options, client_board_args),
	 .run = client_board_delete},
};

const struct command client_board = {
	.name = "board",
	.summary = "list, print, export, import and delete charts, widgets and dashboards",
	COMMAND_VERBS(client_board_verbs),
};
