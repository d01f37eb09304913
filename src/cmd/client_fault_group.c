/* fault groups, group, merge and split: groups of reports, by a server's API (api/fault/groups.c,
 * group.c, merge.c). */
#include "cmd/client_private.h"

/* ---- What is printed ------------------------------------------------------------------------- */

static void client_group_print_list(const struct command_args *args, const struct json *root,
				    UNUSED struct arena *arena)
{
	static const char *const titles[] = {"group", "status", "count",   "users",   "first",
					     "last",  "title",  "release", "assignee"};
	const struct json *list = json_member(root, "groups");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *group = list ? list->first : NULL; group; group = group->next) {
		text_table_add_member(&table, group, "group");
		text_table_add_member(&table, group, "status");
		text_table_add_member(&table, group, "count");
		text_table_add_member(&table, group, "users");
		client_fault_add_time(&table, group, "first");
		client_fault_add_time(&table, group, "last");
		text_table_add_member(&table, group, "title");
		text_table_add_member(&table, group, "release");
		text_table_add_member(&table, group, "assignee");
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
	if (client_i64(root, "total") > (list ? (int64_t)list->count : 0))
		terminal_complain(
			"there are %lld groups; --limit and --status choose which are shown",
			(long long)client_i64(root, "total"));
}

static void client_group_add_values(struct text_table *table, const struct json *fact)
{
	const struct json *values = json_member(fact, "values");
	for (const struct json *one = values ? values->first : NULL; one; one = one->next) {
		const struct json *key = json_member(one, "key");
		if (key) /* of a tag */
			text_table_addf(table, SHOWN "." SHOWN, SHOWN_OF(fact->key),
					SHOWN_OF(key->text));
		else
			text_table_add(table, fact->key);
		text_table_add_member(table, one, "value");
		text_table_add_member(table, one, "count");
		client_fault_add_time(table, one, "last");
	}
}

static void client_group_add_line(struct text_table *table, const char *what, struct slice value)
{
	text_table_add(table, slice_of(what));
	text_table_add(table, value);
	text_table_add(table, SLICE(""));
	text_table_add(table, SLICE(""));
}

static void client_group_print(const struct command_args *args, const struct json *root,
			       UNUSED struct arena *arena)
{
	static const char *const titles[] = {"what", "value", "count", "last"};
	static const char *const heads[] = {"group", "title", "status", "assignee", "users"};
	const struct json *bugs = json_member(root, "bugs"), *facts = json_member(root, "facts");
	const struct json *days = json_member(root, "days");
	const struct json *merged = json_member(root, "merged");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		const struct json *value = json_member(root, heads[i]);
		if (value)
			client_group_add_line(&table, heads[i], value->text);
	}
	for (const struct json *one = merged ? merged->first : NULL; one; one = one->next)
		client_group_add_line(&table, "merged", one->text);
	for (const struct json *bug = bugs ? bugs->first : NULL; bug; bug = bug->next) {
		text_table_addf(&table, "bug." SHOWN, SHOWN_OF(bug->key));
		text_table_add(&table, bug->text);
		text_table_add(&table, SLICE(""));
		text_table_add(&table, SLICE(""));
	}
	text_table_add(&table, SLICE("reports"));
	text_table_add_member(&table, root, "last_id");
	text_table_add_member(&table, root, "count");
	client_fault_add_time(&table, root, "last");
	for (const struct json *fact = facts ? facts->first : NULL; fact; fact = fact->next)
		client_group_add_values(&table, fact);
	for (const struct json *day = days ? days->first : NULL; day; day = day->next) {
		if (day->count != 2)
			continue;
		text_table_add(&table, SLICE("day"));
		text_table_add(&table, day->first->text);
		text_table_add(&table, day->first->next->text);
		text_table_add(&table, SLICE(""));
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static void client_group_print_change(const struct command_args *args, const struct json *root,
				      UNUSED struct arena *arena)
{
	static const char *const titles[] = {"what",  "group", "count", "days",
					     "users", "first", "last",  "title"};
	static const char *const rows[] = {"moves", "becomes"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct json *group = json_member(root, rows[i]);
		text_table_add(&table, slice_of(rows[i]));
		text_table_add_member(&table, group, "group");
		text_table_add_member(&table, group, "count");
		text_table_add_member(&table, group, "days");
		text_table_add_member(&table, group, "users");
		client_fault_add_time(&table, group, "first");
		client_fault_add_time(&table, group, "last");
		text_table_add_member(&table, group, "title");
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

/* ---- What is asked --------------------------------------------------------------------------- */

int client_fault_groups(const struct command_args *args)
{
	return client_show_route(args, NULL, "/oops/groups", client_group_print_list);
}

static int client_group_ask(const struct command_args *args, const char *method, const char *group,
			    const char *behind, client_print *print)
{
	struct buf route, path;
	buf_init(&route, CLIENT_PATH_MAX_BYTES);
	client_path(&route, "/oops/groups/", group);
	client_path(&route, behind, "");
	client_route(&path, args, route.data);
	int status = client_show(args, method, path.data, args->output == OUTPUT_JSON, print);
	buf_release(&route);
	buf_release(&path);
	return status;
}

int client_fault_group(const struct command_args *args, const char *group, bool says)
{
	return client_group_ask(args, says ? "PUT" : NULL, group, "", client_group_print);
}

int client_fault_merge(const struct command_args *args, const char *group, const char *what)
{
	return client_group_ask(args, "POST", group, what, client_group_print_change);
}
