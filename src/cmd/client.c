#include "cmd/client.h"

#include <stdlib.h>
#include <unistd.h>

#include "auth/token.h"
#include "http/client.h"
#include "cmd/client_private.h"
#include "cmd/serve_addresses.h"
#include "model/series.h"
#include "wire/percent.h"

enum { ERROR_TEXT_BYTES = 1024 };

/* ---- Options --------------------------------------------------------------------------------- */

static bool client_set_output(UNUSED const struct command_option *option, const char *text,
			      void *field)
{
	static const char *const names[] = {"table", "csv", "json"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(names[i], text) == 0) {
			*(enum client_output *)field = (enum client_output)i;
			return true;
		}
	}
	return false;
}

static void client_preset_output(void *field)
{
	*(enum client_output *)field = isatty(STDOUT_FILENO) ? OUTPUT_TABLE : OUTPUT_CSV;
}

static bool client_set_tenant(UNUSED const struct command_option *option, const char *text,
			      void *field)
{
	*(const char **)field = text;
	return tenant_valid(slice_of(text));
}

const struct command_type client_output_type = {.is = "table, csv or json",
						.choices = "table csv json",
						.set = client_set_output,
						.preset = client_preset_output};
const struct command_type client_tenant_type = {.is = "the name of a tenant",
						.set = client_set_tenant};

/* ---- Requests ------------------------------------------------------------------------------- */

static void client_put_escaped(struct buf *path, const char *text)
{
	percent_encode(slice_of(text), path);
	/* One that is too long ends early; it is longer than any request that a server takes. */
	if (buf_append_char(path, 0) == 0)
		path->len--;
	else
		path->data[path->len - 1] = 0;
}

void client_param(struct buf *path, const char *name, const char *value)
{
	bool first = !path->data || !memchr(path->data, '?', path->len);

	buf_printf(path, "%c%s=", first ? '?' : '&', name);
	client_put_escaped(path, value);
}

void client_path(struct buf *path, const char *route, const char *name)
{
	buf_append_text(path, route);
	client_put_escaped(path, name);
}

static void client_send(struct buf *path, const struct command_option *option, const void *field)
{
	if (option->type == &command_flag) {
		if (*(const bool *)field)
			client_param(path, option->param, "true");
		return;
	}
	ASSERT(option->type != &command_number); /* the server reads numbers as they are given */
	struct command_words one = {field, *(const char *const *)field != NULL};
	const struct command_words *words = option->words_max ? field : &one;
	for (size_t i = 0; i < words->count; i++)
		client_param(path, option->param, words->items[i]);
}

void client_route(struct buf *path, const struct command_args *args, const char *route)
{
	buf_init(path, CLIENT_PATH_MAX_BYTES);
	client_path(path, route, "");
	for (size_t i = 0; i < args->command->option_count; i++) {
		const struct command_option *option = &args->command->options[i];
		if (option->param)
			client_send(path, option, (const char *)args + option->offset);
	}
}

void client_answer_init(struct client_answer *answer)
{
	*answer = (struct client_answer){0};
	buf_init(&answer->body, CLIENT_ANSWER_MAX_BYTES);
}

void client_answer_release(struct client_answer *answer)
{
	buf_release(&answer->body);
}

static bool client_take_body(void *owner, long status, struct slice piece)
{
	struct client_answer *answer = owner;

	if (answer->to_stdout && status == 200)
		return terminal_print(&answer->printed, piece, false);
	return buf_append(&answer->body, piece.data, piece.len) == 0;
}

void client_print_body(const struct client_answer *answer)
{
	struct terminal_lines lines = {0};

	(void)terminal_print(&lines, buf_slice(&answer->body), false);
	(void)terminal_print(&lines, SLICE("\n"), true);
}

static int client_refuse(const struct command_args *args, struct client_answer *answer,
			 const char *sentence)
{
	if (answer->quiet)
		errbuf_set(&answer->error, ERR_INVALID, "%s", sentence);
	else
		command_complain(args, "%s", sentence);
	return ERR_INVALID;
}

int client_read_token(const struct command_args *args, char text[TOKEN_TEXT_BYTES + 1],
		      struct errbuf *e)
{
	const char *named = getenv("GRANARY_TOKEN_FILE");
	const char *file = args->token_file ? args->token_file : named;
	text[0] = 0;
	return file && file[0] ? token_read_file(file, text, e) : 0;
}

/* The data directory of the package's server. */
#define CLIENT_DATA_OF_PACKAGE "/var/lib/granary"

bool client_find_socket(const char *data, char url[CLIENT_SOCKET_BYTES])
{
	size_t scheme = strlen(HTTP_CLIENT_UNIX);
	int len = snprintf(url, CLIENT_SOCKET_BYTES, HTTP_CLIENT_UNIX SERVE_SOCKET_OF_DATA, data);
	return len < CLIENT_SOCKET_BYTES && loop_path_is_served(url + scheme);
}

const char *client_server(const struct command_args *args)
{
	static char url[CLIENT_SOCKET_BYTES];
	const char *named = getenv("GRANARY_SERVER");
	if (args->server)
		return args->server;
	if (named && named[0])
		return named;
	/* Looked for once: all requests of a command go to one server. */
	if (!url[0] && !client_find_socket(CLIENT_DATA, url) &&
	    !client_find_socket(CLIENT_DATA_OF_PACKAGE, url))
		snprintf(url, sizeof(url), "%s", CLIENT_URL);
	return url;
}

/* A socket that no option has named may be somebody else's, who made ./var here. */
static bool client_found_server(const struct command_args *args)
{
	const char *named = getenv("GRANARY_SERVER");
	return args->server_found || (!args->server && !(named && named[0]));
}

const char *client_ca_file(const struct command_args *args)
{
	const char *named = getenv("GRANARY_CA_FILE");
	const char *file = args->ca_file ? args->ca_file : named;
	return file && file[0] ? file : NULL;
}

struct http_client *client_connect(const struct command_args *args,
				   struct http_client_options *options)
{
	char token[TOKEN_TEXT_BYTES + 1];
	struct errbuf e;
	if (client_read_token(args, token, &e)) {
		command_complain(args, "%s", e.text);
		return NULL;
	}
	options->server = client_server(args);
	options->ca = client_ca_file(args);
	options->token = token[0] ? token : NULL;
	options->own_socket = client_found_server(args);
	struct http_client *http = http_client_new(options);
	options->token = NULL; /* it has its copy */
	return http;
}

int client_request(const struct command_args *args, const char *method, const char *path,
		   const char *content_type, struct slice body, struct client_answer *answer)
{
	struct http_client_options how = {.compressed = true};
	struct http_client *http = client_connect(args, &how);
	char tenant[256], type[256], sentence[ERROR_TEXT_BYTES + 1];
	const char *of_tenant = args->tenant ? tenant : NULL, *of_body = body.data ? type : NULL;
	struct errbuf e;

	if (!http)
		return ERR_INVALID;
	snprintf(tenant, sizeof(tenant), "X-Tenant: %s", args->tenant ? args->tenant : "");
	snprintf(type, sizeof(type), "Content-Type: %s", content_type ? content_type : "");
	struct http_call call = {
		.path = path,
		.method = method,
		.headers = {of_tenant ? of_tenant : of_body, of_tenant ? of_body : NULL},
		.body = body,
		.take = client_take_body,
		.owner = answer,
	};
	int err = http_client_call(http, &call, &e);
	http_client_free(http);
	answer->status = call.status;
	snprintf(answer->cut, sizeof(answer->cut), "%s", call.cut);
	memcpy(answer->granularities, call.granularities, sizeof(answer->granularities));
	memcpy(answer->note, call.note, sizeof(answer->note));
	answer->offset = call.offset;
	answer->lost = call.lost;
	if (err)
		return client_refuse(args, answer, e.text);
	if (answer->status < 400)
		return 0;
	http_client_sentence(buf_slice(&answer->body), sentence, sizeof(sentence));
	if (answer->status == 401 && !answer->quiet)
		command_complain(args, "--token-file, or GRANARY_TOKEN_FILE, names the file of a "
				       "token");
	return client_refuse(args, answer, sentence);
}

int client_ask_json(const struct command_args *args, const char *method, const char *path,
		    struct arena *arena, struct client_answer *answer, struct json **root)
{
	struct errbuf e;
	int err = client_request(args, method, path, NULL, (struct slice){NULL, 0}, answer);

	if (err)
		return err;
	err = json_parse(buf_slice(&answer->body), arena, root, &e);
	if (err)
		command_complain(args, "%s gave an answer that cannot be read: %s",
				 client_server(args), e.text);
	return err ? ERR_INVALID : 0;
}

void client_put_text(struct json_writer *json, const char *name, const char *text)
{
	if (text)
		json_put_text(json, name, text);
}

int64_t client_i64(const struct json *object, const char *key)
{
	int64_t number = 0;
	return json_get_i64(object, key, &number, NULL) ? 0 : number;
}

double client_f64(const struct json *object, const char *key)
{
	double number = 0;
	return json_get_f64(object, key, &number, NULL) ? 0 : number;
}

static int client_show_as_it_comes(const struct command_args *args, const char *method,
				   const char *path, struct client_answer *answer)
{
	answer->to_stdout = true;
	int err = client_request(args, method, path, NULL, (struct slice){NULL, 0}, answer);
	if (!err)
		(void)terminal_print(&answer->printed,
				     args->output == OUTPUT_JSON ? SLICE("\n") : SLICE(""), true);
	return err;
}

static int client_show_parsed(const struct command_args *args, const char *method, const char *path,
			      struct client_answer *answer, client_print *print)
{
	struct arena arena;
	struct json *root;

	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = client_ask_json(args, method, path, &arena, answer, &root);
	if (!err)
		print(args, root, &arena);
	arena_release(&arena);
	return err;
}

int client_show(const struct command_args *args, const char *method, const char *path,
		bool as_it_comes, client_print *print)
{
	struct client_answer answer;

	client_answer_init(&answer);
	int err = as_it_comes ? client_show_as_it_comes(args, method, path, &answer)
			      : client_show_parsed(args, method, path, &answer, print);
	/* For people only: what programs read is data and nothing else. */
	if (!err && !as_it_comes && answer.granularities[0])
		terminal_complain("answered by: %s", answer.granularities);
	if (!err && strcmp(answer.cut, "time") == 0)
		command_complain(args, "the server did not come to the end within its time "
				       "(query.timeout)");
	else if (!err && answer.cut[0])
		command_complain(
			args,
			"the answer is cut at a limit, the server's or the one that was asked for");
	if (!err && answer.note[0])
		command_complain(args, "%s", answer.note);
	bool unknown = strncmp(answer.note, "unknown-metric", strlen("unknown-metric")) == 0;
	client_answer_release(&answer);
	return err || unknown ? EXIT_FAILED : EXIT_OK;
}

int client_show_route(const struct command_args *args, const char *method, const char *route,
		      client_print *print)
{
	struct buf path;
	client_route(&path, args, route);
	int status = client_show(args, method, path.data, args->output == OUTPUT_JSON, print);
	buf_release(&path);
	return status;
}

/* *token: where the next page begins; empty when there is none. */
static int client_show_page(const struct command_args *args, const char *path, bool first,
			    client_print_page *print, struct buf *token)
{
	struct client_answer answer;
	struct arena arena;
	struct json *root;
	client_answer_init(&answer);
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = client_ask_json(args, NULL, path, &arena, &answer, &root);
	buf_clear(token);
	if (!err && args->output == OUTPUT_JSON)
		client_print_body(&answer);
	else if (!err)
		print(args, root, first);
	const struct json *next = err ? NULL : json_member(root, "token");
	if (next)
		buf_printf(token, "%.*s", (int)next->text.len, next->text.data);
	arena_release(&arena);
	client_answer_release(&answer);
	return err;
}

int client_show_pages(const struct command_args *args, struct buf *path, client_print_page *print)
{
	size_t asked_bytes = path->len;
	struct buf token;
	buf_init(&token, CLIENT_PATH_MAX_BYTES);
	int err = client_show_page(args, path->data, true, print, &token);
	while (!err && token.len) {
		path->len = asked_bytes;
		client_param(path, "token", token.data);
		err = client_show_page(args, path->data, false, print, &token);
	}
	buf_release(&token);
	return err ? EXIT_FAILED : EXIT_OK;
}
