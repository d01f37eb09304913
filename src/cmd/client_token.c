/* token: who may ask a server for what, by its API (api/admin/credentials.c), or in a directory
 * that no server has open: so the first credential can be made before the first start. Who has no
 * token any more makes one by the socket in the data directory. */
#include <stdio.h>

#include "auth/auth.h"
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "store/lmdb/lmdb.h"

struct client_token_args {
	struct command_args line;
	const char *data;
	const char *name, *roles, *tenants, *expires;
};

static const struct client_token_args *client_token_of(const struct command_args *args)
{
	return CONTAINER_OF(args, const struct client_token_args, line);
}

/* ---- What is printed ------------------------------------------------------------------------- */

static void client_token_print_list(const struct command_args *args, const struct json *root,
				    UNUSED struct arena *arena)
{
	static const char *const titles[] = {"name", "roles", "tenants", "made", "expires"};
	const struct json *list = json_member(root, "credentials");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
		text_table_add_member(&table, one, "name");
		text_table_add_member(&table, one, "roles");
		text_table_add_member(&table, one, "tenants");
		client_fault_add_time(&table, one, "made");
		client_fault_add_time(&table, one, "expires");
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

/* Alone on its line, so that it can be written to a file. */
static void client_token_print_token(UNUSED const struct command_args *args,
				     const struct json *root, UNUSED struct arena *arena)
{
	struct slice token;
	if (json_get_text(root, "token", &token, NULL) == 0)
		printf("%.*s\n", (int)token.len, token.data);
}

static void client_token_print_nothing(UNUSED const struct command_args *args,
				       UNUSED const struct json *root, UNUSED struct arena *arena)
{
}

/* ---- In a directory -------------------------------------------------------------------------- */

struct client_token_site {
	const struct client_token_args *args;
	struct auth *auth;
	struct task_queue queue;
	int64_t now_ms;
	struct json_writer *json; /* the answer, as a server's */
};

typedef int client_token_act(struct client_token_site *site, struct slice name,
			     const struct credential_wish *wish, struct errbuf *e);

static int client_token_create_here(struct client_token_site *site, struct slice name,
				    const struct credential_wish *wish, struct errbuf *e)
{
	char token[TOKEN_TEXT_BYTES + 1];
	struct credential *made;
	int err = auth_create(site->auth, &site->queue, name, wish, token, &made, e);
	if (!err)
		credential_write(site->json, made, site->now_ms, token);
	credential_unref(made);
	return err;
}

static int client_token_change_here(struct client_token_site *site, struct slice name,
				    const struct credential_wish *wish, struct errbuf *e)
{
	struct credential *made;
	int err = auth_change(site->auth, &site->queue, name, wish, &made, e);
	if (!err)
		credential_write(site->json, made, site->now_ms, NULL);
	credential_unref(made);
	return err;
}

static int client_token_revoke_here(struct client_token_site *site, struct slice name,
				    UNUSED const struct credential_wish *wish, struct errbuf *e)
{
	json_write_object_begin(site->json);
	json_write_object_end(site->json);
	return auth_revoke(site->auth, &site->queue, name, e);
}

static int client_token_list_here(struct client_token_site *site, UNUSED struct slice name,
				  UNUSED const struct credential_wish *wish,
				  UNUSED struct errbuf *e)
{
	size_t count;
	struct credential **list = auth_list(site->auth, &count);
	json_write_object_begin(site->json);
	json_write_key(site->json, "credentials");
	json_write_array_begin(site->json);
	for (size_t i = 0; i < count; i++)
		credential_write(site->json, list[i], site->now_ms, NULL);
	json_write_array_end(site->json);
	json_write_object_end(site->json);
	auth_list_free(list, count);
	return 0;
}

static struct slice client_token_text(const char *text)
{
	return text ? slice_of(text) : (struct slice){NULL, 0};
}

static int client_token_act_in(struct client_token_site *site, struct store *store,
			       client_token_act *act, struct errbuf *e)
{
	const struct client_token_args *token = site->args;
	struct credential_wish wish = {.roles = client_token_text(token->roles),
				       .tenants = client_token_text(token->tenants)};
	site->now_ms = clock_wall_ms(lmdb_clock(store));
	site->auth = auth_new(&(struct auth_options){.store = store, .clock = lmdb_clock(store)});
	task_queue_init(&site->queue);
	int err = credential_read_expiry(client_token_text(token->expires), site->now_ms, &wish, e);
	err = err ? err : auth_load(site->auth, &site->queue, e);
	err = err ? err : act(site, client_token_text(token->name), &wish, e);
	task_queue_release(&site->queue);
	auth_free(site->auth);
	return err;
}

static int client_token_print_answer(const struct command_args *args, struct slice answer,
				     client_print *print)
{
	struct arena arena;
	struct json *root;
	if (args->output == OUTPUT_JSON) {
		printf("%.*s\n", (int)answer.len, answer.data);
		return EXIT_OK;
	}
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = json_parse(answer, &arena, &root, NULL);
	ASSERT(!err); /* it was written here */
	print(args, root, &arena);
	arena_release(&arena);
	return EXIT_OK;
}

static int client_token_act_here(const struct command_args *args, client_token_act *act,
				 client_print *print)
{
	const struct client_token_args *token = client_token_of(args);
	struct lmdb_options options = {.path = token->data};
	struct client_token_site site = {.args = token};
	struct json_writer json;
	struct store *store;
	struct errbuf e = {""};
	struct buf answer;
	int status = EXIT_FAILED;
	if (lmdb_open(&options, &store, &e)) {
		command_complain(args, "%s", e.text);
		return EXIT_FAILED;
	}
	buf_init(&answer, CLIENT_ANSWER_MAX_BYTES);
	json_writer_init(&json, &answer);
	site.json = &json;
	if (client_token_act_in(&site, store, act, &e))
		command_complain(args, "%s", e.text);
	else
		status = client_token_print_answer(args, buf_slice(&answer), print);
	store_close(store);
	buf_release(&answer);
	return status;
}

/* ---- What is asked --------------------------------------------------------------------------- */

static void client_token_add(struct buf *path, const char *name, const char *value)
{
	if (value)
		client_param(path, name, value);
}

static int client_token_ask(const struct command_args *args, const char *method,
			    client_print *print)
{
	const struct client_token_args *token = client_token_of(args);
	bool makes = strcmp(method, "POST") == 0;
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, makes || !token->name ? "/api/credentials" : "/api/credentials/",
		    makes || !token->name ? "" : token->name);
	if (makes)
		client_param(&path, "name", token->name);
	client_token_add(&path, "roles", token->roles);
	client_token_add(&path, "tenants", token->tenants);
	client_token_add(&path, "expires", token->expires);
	int status = client_show(args, method, path.data, args->output == OUTPUT_JSON, print);
	buf_release(&path);
	return status;
}

static int client_token_do(const struct command_args *args, const char *method,
			   client_token_act *act, client_print *print)
{
	struct client_token_args there = *client_token_of(args);
	char url[CLIENT_SOCKET_BYTES];
	if (!there.data)
		return client_token_ask(args, method, print);
	if (!client_find_socket(there.data, url))
		return client_token_act_here(args, act, print);
	there.line.server = url;
	return client_token_ask(&there.line, method, print);
}

static int client_token_run_create(const struct command_args *args)
{
	return client_token_do(args, "POST", client_token_create_here, client_token_print_token);
}

static int client_token_run_list(const struct command_args *args)
{
	return client_token_do(args, "GET", client_token_list_here, client_token_print_list);
}

static int client_token_run_change(const struct command_args *args)
{
	return client_token_do(args, "PUT", client_token_change_here, client_token_print_nothing);
}

static int client_token_run_revoke(const struct command_args *args)
{
	return client_token_do(args, "DELETE", client_token_revoke_here,
			       client_token_print_nothing);
}

/* ---- The command ----------------------------------------------------------------------------- */

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_token_args, field, __VA_ARGS__)
#define CLIENT_TOKEN_NAME                                                                          \
	ROW(text, name, NULL, "NAME", "its name, by which people know it", .required = true)
#define CLIENT_TOKEN_ROLES(...)                                                                    \
	ROW(text, roles, "--roles", "ROLES",                                                       \
	    "what its holder may do, with commas between: read, write, poll, poll:NAME, or "       \
	    "admin, which is all of these",                                                        \
	    __VA_ARGS__)
#define CLIENT_TOKEN_TENANTS(...)                                                                  \
	ROW(text, tenants, "--tenants", "TENANTS",                                                 \
	    "whose data, with commas between; * is that of all tenants", __VA_ARGS__)
#define CLIENT_TOKEN_EXPIRES                                                                       \
	ROW(text, expires, "--expires", "TIME",                                                    \
	    "when it is valid no more: a time, or so long from now on, such as 90d; or never")
#define CLIENT_TOKEN_WHERE                                                                         \
	CLIENT_SERVER,                                                                             \
		ROW(text, data, "--data", "DIR",                                                   \
		    "a data directory: by its server if one has it open, else without"),           \
		CLIENT_OUTPUT

static const struct command_option client_token_create_options[] = {
	CLIENT_TOKEN_NAME, CLIENT_TOKEN_ROLES(.required = true),
	CLIENT_TOKEN_TENANTS(.required = true), CLIENT_TOKEN_EXPIRES, CLIENT_TOKEN_WHERE};
static const struct command_option client_token_list_options[] = {CLIENT_TOKEN_WHERE};
static const struct command_option client_token_change_options[] = {
	CLIENT_TOKEN_NAME, CLIENT_TOKEN_ROLES(.otherwise = "as it is"),
	CLIENT_TOKEN_TENANTS(.otherwise = "as it is"), CLIENT_TOKEN_EXPIRES, CLIENT_TOKEN_WHERE};
static const struct command_option client_token_revoke_options[] = {CLIENT_TOKEN_NAME,
								    CLIENT_TOKEN_WHERE};

#define VERB(name_, summary_, about_, examples_)                                                   \
	{                                                                                          \
		.name = "token " #name_, .summary = summary_, .about = about_,                     \
		.examples = examples_,                                                             \
		COMMAND_TAKES(client_token_##name_##_options, client_token_args),                  \
		.run = client_token_run_##name_,                                                   \
	}
static const struct command client_token_verbs[] = {
	VERB(list, "print the credentials of a server", NULL, "granary token list\n"),
	VERB(create, "make a credential, and print its token",
	     "Prints the token, which nobody can see again: the server keeps only what it is known "
	     "by. The first credential has the role admin and all tenants. From then on the server "
	     "answers nobody without a credential, but as auth.anonymous says.\n",
	     "granary token create me --roles admin --tenants '*' > ~/.granary-token\n"
	     "granary token create web1 --roles write --tenants acme --expires 365d\n"
	     "granary token create site_b --roles poll:site_b --tenants snmp\n"),
	VERB(change, "change what the holder of a token may do", "Its token stays the same.\n",
	     "granary token change web1 --tenants acme,acme-test\n"),
	VERB(revoke, "take a credential back", "Whoever shows its token is refused at once.\n",
	     "granary token revoke web1\n"),
};

const struct command client_token = {
	.name = "token",
	.summary = "make, list, change and revoke credentials",
	COMMAND_VERBS(client_token_verbs),
	.first_is_preset = true,
};
