/* token and user: who may ask a server for what, by its API (api/admin/credentials.c), or in a
 * directory that no server has open: so the first credential can be made before the first start.
 * Who has none any more makes one by the socket in the data directory. session: the end of all
 * sessions.
 */
#include <stdio.h>

#include "auth/auth.h"
#include "cmd/client.h"
#include "cmd/client_password.h"
#include "cmd/client_private.h"
#include "store/lmdb/lmdb.h"

struct client_token_args {
	struct command_args line;
	const char *data;
	const char *name, *roles, *tenants, *expires;
	const char *password_file;
};

static const struct client_token_args *client_token_of(const struct command_args *args)
{
	return CONTAINER_OF(args, const struct client_token_args, line);
}

/* By the command. */
static enum credential_kind client_token_kind(const struct command_args *args)
{
	return strncmp(args->command->name, "user", strlen("user")) == 0 ? CREDENTIAL_USER
									 : CREDENTIAL_TOKEN;
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
	struct terminal_lines lines = {0};
	struct slice token;
	if (json_get_text(root, "token", &token, NULL))
		return;
	(void)terminal_print(&lines, token, false);
	(void)terminal_print(&lines, SLICE("\n"), true);
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
	const char *password;     /* NULL: none is given */
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
		credential_write(site->json, made, site->now_ms, token[0] ? token : NULL);
	explicit_bzero(token, sizeof(token));
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
		if (list[i]->kind == client_token_kind(&site->args->line))
			credential_write(site->json, list[i], site->now_ms, NULL);
	json_write_array_end(site->json);
	json_write_object_end(site->json);
	auth_list_free(list, count);
	return 0;
}

static int client_token_reset_here(struct client_token_site *site, UNUSED struct slice name,
				   UNUSED const struct credential_wish *wish, struct errbuf *e)
{
	json_write_object_begin(site->json);
	json_write_object_end(site->json);
	return auth_reset_sessions(site->auth, &site->queue, e);
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
				       .tenants = client_token_text(token->tenants),
				       .kind = client_token_kind(&token->line),
				       .password = client_token_text(site->password)};
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
				 const char *password, client_print *print)
{
	const struct client_token_args *token = client_token_of(args);
	/* Only the first credential makes a directory. */
	struct lmdb_options options = {.path = token->data,
				       .must_exist = act != client_token_create_here};
	struct client_token_site site = {.args = token, .password = password};
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

static void client_token_put_path(const struct command_args *args, const char *method,
				  struct buf *path)
{
	const struct client_token_args *token = client_token_of(args);
	bool makes = strcmp(method, "POST") == 0;
	client_path(path, makes || !token->name ? "/api/credentials" : "/api/credentials/",
		    makes || !token->name ? "" : token->name);
	if (makes)
		client_param(path, "name", token->name);
	if (makes || !token->name)
		client_param(path, "kind",
			     credential_kinds[client_token_kind(args) - CREDENTIAL_TOKEN]);
	client_token_add(path, "roles", token->roles);
	client_token_add(path, "tenants", token->tenants);
	client_token_add(path, "expires", token->expires);
}

/* {"password":"..."}; nothing is printed but JSON. */
static int client_token_send(const struct command_args *args, const char *method, const char *path,
			     const char *password)
{
	struct client_answer answer;
	struct json_writer json;
	struct buf body;
	buf_init(&body, CLIENT_PATH_MAX_BYTES);
	json_writer_init(&json, &body);
	json_write_object_begin(&json);
	json_put_text(&json, "password", password);
	json_write_object_end(&json);
	client_answer_init(&answer);
	int err = client_request(args, method, path, "application/json", buf_slice(&body), &answer);
	if (!err && args->output == OUTPUT_JSON)
		client_print_body(&answer);
	client_answer_release(&answer);
	explicit_bzero(body.data, body.len);
	buf_release(&body);
	return err ? EXIT_FAILED : EXIT_OK;
}

static int client_token_ask(const struct command_args *args, const char *method,
			    const char *password, client_print *print)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_token_put_path(args, method, &path);
	int status =
		password ? client_token_send(args, method, path.data, password)
			 : client_show(args, method, path.data, args->output == OUTPUT_JSON, print);
	buf_release(&path);
	return status;
}

/* Whether --data names a directory that no server has open; else *there has the server. */
static bool client_token_is_here(const struct command_args *args, struct client_token_args *there,
				 char url[CLIENT_SOCKET_BYTES])
{
	*there = *client_token_of(args);
	if (!there->data)
		return false;
	if (!client_find_socket(there->data, url))
		return true;
	there->line.server = url;
	there->line.server_found = true;
	return false;
}

static int client_token_do(const struct command_args *args, const char *method,
			   client_token_act *act, const char *password, client_print *print)
{
	struct client_token_args there;
	char url[CLIENT_SOCKET_BYTES];
	return client_token_is_here(args, &there, url)
		       ? client_token_act_here(args, act, password, print)
		       : client_token_ask(&there.line, method, password, print);
}

/* With a password. */
static int client_user_do(const struct command_args *args, const char *method,
			  client_token_act *act)
{
	const struct client_token_args *user = client_token_of(args);
	char password[CLIENT_PASSWORD_BYTES];
	struct errbuf e;
	int status = EXIT_FAILED;
	if (client_password_read(user->password_file, password, &e))
		command_complain(args, "%s", e.text);
	else
		status = client_token_do(args, method, act, password, client_token_print_nothing);
	explicit_bzero(password, sizeof(password));
	return status;
}

static int client_token_run_create(const struct command_args *args)
{
	return client_token_do(args, "POST", client_token_create_here, NULL,
			       client_token_print_token);
}

static int client_user_run_create(const struct command_args *args)
{
	return client_user_do(args, "POST", client_token_create_here);
}

static int client_user_run_password(const struct command_args *args)
{
	return client_user_do(args, "PUT", client_token_change_here);
}

static int client_token_run_list(const struct command_args *args)
{
	return client_token_do(args, "GET", client_token_list_here, NULL, client_token_print_list);
}

static int client_token_run_change(const struct command_args *args)
{
	return client_token_do(args, "PUT", client_token_change_here, NULL,
			       client_token_print_nothing);
}

static int client_token_run_revoke(const struct command_args *args)
{
	return client_token_do(args, "DELETE", client_token_revoke_here, NULL,
			       client_token_print_nothing);
}

static int client_session_run_reset(const struct command_args *args)
{
	struct client_token_args there;
	char url[CLIENT_SOCKET_BYTES];
	if (client_token_is_here(args, &there, url))
		return client_token_act_here(args, client_token_reset_here, NULL,
					     client_token_print_nothing);
	return client_show(&there.line, "DELETE", "/api/sessions", args->output == OUTPUT_JSON,
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
#define CLIENT_TOKEN_PASSWORD                                                                      \
	ROW(text, password_file, "--password-file", "FILE",                                        \
	    "the file whose first line is the password; - is standard input",                      \
	    .otherwise = "it is typed twice")
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

static const struct command_option client_user_create_options[] = {
	CLIENT_TOKEN_NAME,
	CLIENT_TOKEN_ROLES(.required = true),
	CLIENT_TOKEN_TENANTS(.required = true),
	CLIENT_TOKEN_EXPIRES,
	CLIENT_TOKEN_PASSWORD,
	CLIENT_TOKEN_WHERE};
static const struct command_option client_user_password_options[] = {
	CLIENT_TOKEN_NAME, CLIENT_TOKEN_PASSWORD, CLIENT_TOKEN_WHERE};

/* A verb, with the options of that name and the function of another. */
#define VERB(name_, options_, run_, summary_, about_, examples_)                                   \
	{                                                                                          \
		.name = name_, .summary = summary_, .about = about_, .examples = examples_,        \
		COMMAND_TAKES(client_##options_##_options, client_token_args),                     \
		.run = client_##run_,                                                              \
	}
static const struct command client_token_verbs[] = {
	VERB("token list", token_list, token_run_list, "print the tokens of a server, by name",
	     NULL, "granary token list\n"),
	VERB("token create", token_create, token_run_create,
	     "make a credential, and print its token",
	     "Prints the token, which nobody can see again: the server keeps only what it is known "
	     "by. The first credential has the role admin and all tenants. From then on the server "
	     "answers nobody without a credential, but as auth.anonymous says.\n",
	     "(umask 077 && granary token create me --roles admin --tenants '*' > "
	     "~/.granary-token)\n"
	     "granary token create web1 --roles write --tenants acme --expires 365d\n"
	     "granary token create site_b --roles poll:site_b --tenants snmp\n"),
	VERB("token change", token_change, token_run_change,
	     "change what the holder of a token may do",
	     "Its token stays the same; its sessions end.\n",
	     "granary token change web1 --tenants acme,acme-test\n"),
	VERB("token revoke", token_revoke, token_run_revoke, "take a credential back",
	     "Whoever shows its token is refused at once.\n", "granary token revoke web1\n"),
};
static const struct command client_user_verbs[] = {
	VERB("user list", token_list, token_run_list, "print the users of a server", NULL,
	     "granary user list\n"),
	VERB("user create", user_create, user_run_create,
	     "make a user, who shows a name and a password",
	     "The password is typed twice, and not shown; or it is the first line of a file. It "
	     "has "
	     "8 to 512 bytes.\n",
	     "granary user create ann --roles read --tenants '*'\n"
	     "granary user create web --roles write --tenants acme --password-file web.password\n"),
	VERB("user change", token_change, token_run_change, "change what a user may do",
	     "The password stays the same; the sessions of the user end.\n",
	     "granary user change ann --roles read,write\n"),
	VERB("user password", user_password, user_run_password, "give a user another password",
	     "The sessions of the user end.\n", "granary user password ann\n"),
	VERB("user revoke", token_revoke, token_run_revoke, "take a user's credential back",
	     "The user is refused at once, in sessions too.\n", "granary user revoke ann\n"),
};
static const struct command client_session_verbs[] = {
	VERB("session reset", token_list, session_run_reset, "end the sessions of all browsers",
	     "Everybody has to log in again. Tokens and passwords stay.\n",
	     "granary session reset\n"),
};

const struct command client_token = {
	.name = "token",
	.summary = "make, list, change and revoke credentials",
	COMMAND_VERBS(client_token_verbs),
	.first_is_preset = true,
};

const struct command client_user = {
	.name = "user",
	.summary = "make, list, change and revoke users with passwords",
	COMMAND_VERBS(client_user_verbs),
	.first_is_preset = true,
};

const struct command client_session = {
	.name = "session",
	.summary = "end the sessions of browsers",
	COMMAND_VERBS(client_session_verbs),
};
