/* fault project: projects of Sentry's clients, by a server's API (api/fault/projects.c). */
#include <stdio.h>

#include "cmd/client_private.h"
#include "wire/number.h"

/* ---- What is printed ------------------------------------------------------------------------- */

/* A row for each key, so that each address stands whole. */
static void client_project_add_rows(struct text_table *table, const struct json *project)
{
	const struct json *keys = json_member(project, "keys"), *dsn = json_member(project, "dsn");
	const struct json *key = keys ? keys->first : NULL;
	const struct json *address = dsn ? dsn->first : NULL;
	do {
		text_table_add_member(table, project, "number");
		text_table_add_member(table, project, "tenant");
		text_table_add(table, key ? key->text : SLICE(""));
		text_table_add(table, address ? address->text : SLICE(""));
		key = key ? key->next : NULL;
		address = address ? address->next : NULL;
	} while (key);
}

static void client_project_print_list(const struct command_args *args, const struct json *root,
				      UNUSED struct arena *arena)
{
	static const char *const titles[] = {"number", "tenant", "key", "dsn"};
	const struct json *list = json_member(root, "projects");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *one = list ? list->first : NULL; one; one = one->next)
		client_project_add_rows(&table, one);
	text_table_print(&table, args->output);
	text_table_release(&table);
}

/* The address that was made: that of the last key. */
static void client_project_print_dsn(UNUSED const struct command_args *args,
				     const struct json *root, UNUSED struct arena *arena)
{
	const struct json *dsn = json_member(root, "dsn"), *last = NULL;
	for (const struct json *one = dsn ? dsn->first : NULL; one; one = one->next)
		last = one;
	if (last)
		printf("%.*s\n", (int)last->text.len, last->text.data);
}

static void client_project_print_nothing(UNUSED const struct command_args *args,
					 UNUSED const struct json *root, UNUSED struct arena *arena)
{
}

/* ---- What is asked --------------------------------------------------------------------------- */

static int client_project_ask(const struct command_args *args, const char *method, const char *path,
			      client_print *print)
{
	return client_show(args, method, path, args->output == OUTPUT_JSON, print);
}

static int client_project_add(const struct command_args *args, const char *name)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, "/oops/projects", "");
	client_param(&path, "name", name);
	int status = client_project_ask(args, "POST", path.data, client_project_print_dsn);
	buf_release(&path);
	return status;
}

/* `key` NULL: one is added. */
static int client_project_key(const struct command_args *args, const char *number, const char *key)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, "/oops/projects/", number);
	client_path(&path, key ? "/keys/" : "/keys", key ? key : "");
	int status =
		client_project_ask(args, key ? "DELETE" : "POST", path.data,
				   key ? client_project_print_nothing : client_project_print_dsn);
	buf_release(&path);
	return status;
}

static bool client_project_is_number(const char *text)
{
	uint64_t number;
	return number_parse_u64(text, text + strlen(text), &number) == 0;
}

int client_fault_project(const struct command_args *args, const struct command_words *words)
{
	const char *const *w = words->items;
	size_t count = words->count;
	bool is_key = count > 1 && strcmp(w[0], "key") == 0;
	if (count == 1 && strcmp(w[0], "list") == 0)
		return client_project_ask(args, NULL, "/oops/projects", client_project_print_list);
	if (count == 2 && strcmp(w[0], "add") == 0)
		return client_project_add(args, w[1]);
	if (is_key && count > 2 && !client_project_is_number(w[2])) {
		(void)command_usage(args, "\"%s\" is not the number of a project", w[2]);
		return EXIT_WRONG_USE;
	}
	if (is_key && count == 3 && strcmp(w[1], "add") == 0)
		return client_project_key(args, w[2], NULL);
	if (is_key && count == 4 && strcmp(w[1], "remove") == 0)
		return client_project_key(args, w[2], w[3]);
	(void)command_usage(args, "list, add NAME, key add NUMBER or key remove NUMBER KEY is to "
				  "follow");
	return EXIT_WRONG_USE;
}
