/* fault regroup: groups of reports that are stored, by the rules of today, by a server's API.
 * Groups of which reports have one hash of all frames are one by these rules (fault/hashes.h). */
#include "base/grow.h"
#include "base/hash_table.h"
#include "cmd/client_private.h"

enum { REGROUP_ARENA_MAX_BYTES = 1 << 30 };

struct regroup_group {
	struct slice name;
	uint64_t first;    /* the place of its first report among all, newest first */
	size_t parent;     /* a group that it is one with; of a root: itself */
	struct slice hash; /* by which it is */
	size_t oldest;     /* of a root: the group with the earliest report of all below it */
};

/* Slots of two tables: by name, and by hash of all frames. */
struct regroup_slot {
	struct hash128 hash;
	size_t group;
};

struct regroup {
	const struct command_args *args;
	struct arena arena; /* of names */
	struct regroup_group *groups;
	size_t count, room;
	struct hash_table names, hashes;
	uint64_t reports;
	int err;
};

/* ---- Which are one --------------------------------------------------------------------------- */

/* With a zero behind it. */
static struct slice regroup_keep(struct regroup *r, struct slice text)
{
	const char *copy = arena_printf(&r->arena, "%.*s", (int)text.len, text.data);
	if (!copy && !r->err) {
		terminal_complain("the names of so many groups take too much memory");
		r->err = ERR_LIMIT;
	}
	return slice_of(copy ? copy : "");
}

/* Halves the way there, so that a chain of many groups costs little. */
static size_t regroup_root(struct regroup *r, size_t group)
{
	struct regroup_group *groups = r->groups;
	while (groups[group].parent != group) {
		groups[group].parent = groups[groups[group].parent].parent;
		group = groups[group].parent;
	}
	return group;
}

static size_t regroup_group_of(struct regroup *r, struct slice name)
{
	bool added;
	struct regroup_slot *slot =
		hash_table_add(&r->names, hash128(name.data, name.len, 0), sizeof(*slot), &added);
	if (added) {
		slot->group = r->count;
		GROW(r->groups, r->room, r->count + 1);
		r->groups[r->count] = (struct regroup_group){
			.name = regroup_keep(r, name), .parent = r->count, .oldest = r->count};
		r->count++;
	}
	return slot->group;
}

static void regroup_join(struct regroup *r, size_t a, size_t b, struct slice hash)
{
	a = regroup_root(r, a);
	b = regroup_root(r, b);
	if (a == b)
		return;
	r->groups[a].parent = b;
	r->groups[a].hash = regroup_keep(r, hash);
}

/* In each set of joined groups the one with the earliest report stands for the set. */
static void regroup_choose(struct regroup *r)
{
	for (size_t i = 0; i < r->count; i++) {
		struct regroup_group *root = &r->groups[regroup_root(r, i)];
		if (r->groups[i].first > r->groups[root->oldest].first)
			root->oldest = i;
	}
}

static void regroup_take_report(struct regroup *r, const struct json *report)
{
	const struct json *group = json_member(report, "group");
	const struct json *all = json_member(report, "group_all");
	bool added;
	r->reports++;
	if (!group)
		return;
	struct slice hash = all ? all->text : group->text;
	size_t at = regroup_group_of(r, group->text);
	r->groups[at].first = r->reports;
	struct regroup_slot *slot =
		hash_table_add(&r->hashes, hash128(hash.data, hash.len, 0), sizeof(*slot), &added);
	if (added)
		slot->group = at;
	else
		regroup_join(r, at, slot->group, hash);
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* One page; *token: where the next begins, empty: there is none. */
static int regroup_read_page(struct regroup *r, struct buf *token)
{
	struct client_answer answer;
	struct buf path;
	struct arena arena;
	struct json *root;
	client_answer_init(&answer);
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	client_route(&path, r->args, "/oops");
	client_param(&path, "limit", "1000");
	if (token->len)
		client_param(&path, "token", token->data);
	int err = client_ask_json(r->args, NULL, path.data, &arena, &answer, &root);
	buf_clear(token);
	if (!err) {
		const struct json *list = json_member(root, "reports");
		const struct json *next = json_member(root, "token");
		for (const struct json *one = list ? list->first : NULL; one; one = one->next)
			regroup_take_report(r, one);
		if (next)
			buf_append(token, next->text.data, next->text.len);
		buf_append_char(token, '\0');
		token->len--;
	}
	arena_release(&arena);
	buf_release(&path);
	client_answer_release(&answer);
	return err ? err : r->err;
}

static int regroup_read(struct regroup *r)
{
	struct buf token;
	int err;
	buf_init(&token, CLIENT_PATH_MAX_BYTES);
	do
		err = regroup_read_page(r, &token);
	while (!err && token.len);
	buf_release(&token);
	return err;
}

/* ---- Merging --------------------------------------------------------------------------------- */

/* *status: what the server said; 0: it did not answer. */
static int regroup_merge(const struct regroup *r, struct slice group, struct slice into,
			 bool dry_run, long *status)
{
	struct client_answer answer;
	struct buf route, path;
	client_answer_init(&answer);
	buf_init(&route, CLIENT_PATH_MAX_BYTES);
	client_path(&route, "/oops/groups/", group.data);
	client_path(&route, "/merge", "");
	client_route(&path, r->args, route.data);
	client_param(&path, "into", into.data);
	if (dry_run)
		client_param(&path, "dryRun", "true");
	int err =
		client_request(r->args, "POST", path.data, NULL, (struct slice){NULL, 0}, &answer);
	*status = answer.status;
	buf_release(&route);
	buf_release(&path);
	client_answer_release(&answer);
	return err;
}

static void regroup_tell_one(struct text_table *table, struct json_writer *json, struct slice group,
			     struct slice into, struct slice hash)
{
	text_table_add(table, group);
	text_table_add(table, into);
	text_table_add(table, hash);
	json_write_object_begin(json);
	json_put_string(json, "group", group);
	json_put_string(json, "into", into);
	json_put_string(json, "hash", hash);
	json_write_object_end(json);
}

/* A group that is not counted (fault.groups_max) cannot be merged: the server's sentence names it,
 * and the others are merged all the same, unless it is the one that they would be merged into. Any
 * other error ends it. */
static int regroup_merge_all(struct regroup *r, bool dry_run, struct text_table *table,
			     struct json_writer *json)
{
	int err = 0;
	long status = 200;
	for (size_t i = 0; i < r->count && (status == 200 || status == 404); i++) {
		const struct regroup_group *root = &r->groups[regroup_root(r, i)];
		const struct regroup_group *group = &r->groups[i], *into = &r->groups[root->oldest];
		if (group == into)
			continue;
		int merge_err = regroup_merge(r, group->name, into->name, dry_run, &status);
		if (merge_err)
			err = merge_err;
		else
			regroup_tell_one(table, json, group->name, into->name,
					 group->hash.len ? group->hash : into->hash);
	}
	return err;
}

static int regroup_tell(struct regroup *r, bool dry_run)
{
	static const char *const titles[] = {"group", "into", "hash"};
	struct client_answer told;
	struct text_table table;
	struct json_writer json;
	client_answer_init(&told);
	json_writer_init(&json, &told.body);
	text_table_init(&table, ARRAY_LEN(titles), titles);
	json_write_object_begin(&json);
	json_put_u64(&json, "reports", r->reports);
	json_write_key(&json, "merges");
	json_write_array_begin(&json);
	int err = regroup_merge_all(r, dry_run, &table, &json);
	json_write_array_end(&json);
	json_write_object_end(&json);
	if (r->args->output == OUTPUT_JSON)
		client_print_body(&told);
	else
		text_table_print(&table, r->args->output);
	text_table_release(&table);
	client_answer_release(&told);
	return err;
}

int client_fault_regroup(const struct command_args *args, bool dry_run)
{
	struct regroup r = {.args = args};
	arena_init(&r.arena, REGROUP_ARENA_MAX_BYTES);
	int err = regroup_read(&r);
	if (!err) {
		regroup_choose(&r);
		err = regroup_tell(&r, dry_run);
	}
	hash_table_release(&r.names);
	hash_table_release(&r.hashes);
	mem_free(r.groups);
	arena_release(&r.arena);
	return err ? EXIT_FAILED : EXIT_OK;
}
