/* What the client commands share: options, requests, and tables. */
#ifndef CMD_CLIENT_PRIVATE_H
#define CMD_CLIENT_PRIVATE_H

#include "auth/token.h"
#include "base/base.h"
#include "base/buf.h"
#include "base/mem.h"
#include "http/client.h"
#include "loop/loop.h"
#include "cmd/command.h"
#include "cmd/terminal_escape.h"
#include "wire/json.h"

enum {
	CLIENT_TAGS_MAX = COMMAND_WORDS_MAX - 1,
	CLIENT_PATH_MAX_BYTES = 1 << 20,
	CLIENT_ANSWER_MAX_BYTES = 512 << 20,
};

/* ---- Options that several commands take -------------------------------------------------------
 */

extern const struct command_type client_output_type, client_tenant_type;

/* Where the server is, unless one says it. */
#define CLIENT_DATA "./var"
#define CLIENT_URL  "http://127.0.0.1:8470"
#define CLIENT_TOKEN_FILE                                                                          \
	COMMAND_ROW(command_text, command_args, token_file, "--token-file", "FILE",                \
		    "the file with the token to show there", .otherwise = "$GRANARY_TOKEN_FILE")
#define CLIENT_CA_FILE                                                                             \
	COMMAND_ROW(command_text, command_args, ca_file, "--ca", "FILE",                           \
		    "certificates in PEM, by one of which the server's is signed, or its own",     \
		    .otherwise = "$GRANARY_CA_FILE, else those that the system trusts")
#define CLIENT_SERVER                                                                              \
	COMMAND_ROW(command_text, command_args, server, "--server", "URL",                         \
		    "where the server is: http://, https:// or unix:PATH",                         \
		    .otherwise = "$GRANARY_SERVER, else unix:" CLIENT_DATA                         \
				 "/granary.sock or the same in /var/lib/granary if a server is "   \
				 "there, else " CLIENT_URL),                                       \
		CLIENT_TOKEN_FILE, CLIENT_CA_FILE
#define CLIENT_OUTPUT                                                                              \
	COMMAND_ROW(client_output_type, command_args, output, "--output", "FORMAT",                \
		    "table, csv or json", .letter = "-o",                                          \
		    .otherwise = "a table on a terminal, else csv")
#define CLIENT_TENANT(help)                                                                        \
	COMMAND_ROW(client_tenant_type, command_args, tenant, "--tenant", "NAME", help,            \
		    .otherwise = "default, or the first of the token's", .param = "tenant")

/* ---- Requests ------------------------------------------------------------------------------- */

/* A path and query that grows, and ends with a zero behind its length: client_route begins one with
 * the parameters that rows name, client_path adds a route and, escaped, a part behind it,
 * client_param `name=value`. */
void client_route(struct buf *path, const struct command_args *args, const char *route);
void client_path(struct buf *path, const char *route, const char *name);
void client_param(struct buf *path, const char *name, const char *value);

struct text_table;

struct client_answer {
	long status;
	struct buf body;
	bool to_stdout; /* in: a body of status 200 goes there instead */
	struct terminal_lines printed;
	char cut[16]; /* why there is more than the server gave: X-Granary-Cut; empty: this is all
		       */
	char granularities[CLIENT_GRANULARITIES_MAX_BYTES +
			   1];                /* which data answered a query; empty: none did */
	char note[CLIENT_NOTE_MAX_BYTES + 1]; /* why it has less than one may think */
	int64_t offset; /* of the first byte, where the answer is of a stream */
	int64_t lost;   /* bytes in front of it that cannot be read */
	bool quiet;     /* in: complaints go to `error` instead */
	struct errbuf error;
};

void client_answer_init(struct client_answer *answer);
void client_answer_release(struct client_answer *answer);

/* The body, and the end of its line, to standard output. */
void client_print_body(const struct client_answer *answer);

enum { CLIENT_SOCKET_BYTES = LOOP_PATH_MAX_BYTES + 5 }; /* with its scheme */
/* The socket of the server that has this data directory open, as http_client_options have it.
 * False: no server is there that lets us in. */
bool client_find_socket(const char *data, char url[CLIENT_SOCKET_BYTES]) MUST_CHECK;
/* Where the server is: as --server says, or the environment; else the socket of the preset data
 * directory or of the package's, if a server has it open; else the preset address. */
const char *client_server(const struct command_args *args);
/* The file that --ca or the environment names; NULL: none is named. */
const char *client_ca_file(const struct command_args *args);
/* The token that --token-file or the environment names; empty: none is named. With a sentence. */
int client_read_token(const struct command_args *args, char text[TOKEN_TEXT_BYTES + 1],
		      struct errbuf *e) MUST_CHECK;

/* What requests go through, with the token that the command is given. NULL after a complaint. */
struct http_client *client_connect(const struct command_args *args,
				   struct http_client_options *options) MUST_CHECK;

/* `method` NULL: GET, or POST with a body (data not NULL). ERR_INVALID, after a complaint with the
 * server's own sentence, for no answer and for a status of 400 and above. */
int client_request(const struct command_args *args, const char *method, const char *path,
		   const char *content_type, struct slice body,
		   struct client_answer *answer) MUST_CHECK;

/* Asks without a body, and parses. */
int client_ask_json(const struct command_args *args, const char *method, const char *path,
		    struct arena *arena, struct client_answer *answer,
		    struct json **root) MUST_CHECK;

/* A member of a body; none where there is no text. */
void client_put_text(struct json_writer *json, const char *name, const char *text);

/* A number of an answer; 0 where there is none. */
int64_t client_i64(const struct json *object, const char *key);
double client_f64(const struct json *object, const char *key);

/* Asks; prints the answer as it comes, or parses it and has it printed. The exit status. */
typedef void client_print(const struct command_args *args, const struct json *root,
			  struct arena *arena);
int client_show(const struct command_args *args, const char *method, const char *path,
		bool as_it_comes, client_print *print);
/* The same of a route, with the parameters that rows name; JSON is printed as it comes. */
int client_show_route(const struct command_args *args, const char *method, const char *route,
		      client_print *print);

/* Asks for page after page, as long as an answer has a `token`, and prints JSON as it comes, or has
 * each page printed. Tokens are added to the path. The exit status. */
typedef void client_print_page(const struct command_args *args, const struct json *root,
			       bool first);
int client_show_pages(const struct command_args *args, struct buf *path, client_print_page *print);

/* A cell with the time of a member, which is in ms; empty where there is none. */
void client_fault_add_time(struct text_table *table, const struct json *object, const char *key);

/* `fault groups`; `fault group`, which says something of it if its options do. The exit status. */
int client_fault_groups(const struct command_args *args);
int client_fault_group(const struct command_args *args, const char *group, bool says);
/* `what`: "/merge" or "/split" */
int client_fault_merge(const struct command_args *args, const char *group, const char *what);

/* `fault regroup`. The exit status. */
int client_fault_regroup(const struct command_args *args, bool dry_run);

/* `fault tail`: until the server refuses it, or what is printed cannot be written. The exit status.
 */
int client_fault_tail(const struct command_args *args);

/* `fault import` of a datedir; state: NULL, or the file that says how far it came. The exit
 * status. */
int client_fault_import(const struct command_args *args, const char *root, const char *state);

/* `fault project`, with the words behind it. The exit status. */
int client_fault_project(const struct command_args *args, const struct command_words *words);

/* ---- Tables --------------------------------------------------------------------------------- */

/* Rows of texts, printed with aligned columns or as CSV. Cells are copied; a full table drops rows
 * and says so when it is printed. */
struct text_table {
	struct arena arena;
	size_t columns;
	const char **titles;
	struct text_row *first, *last;
	struct text_row *row; /* being filled */
	size_t cell;
	size_t rows;
	bool full;
	bool untitled; /* in: rows only, of a table that was begun before */
};

void text_table_init(struct text_table *table, size_t columns, const char *const *titles);
void text_table_release(struct text_table *table);
/* Left to right, row after row. */
void text_table_add(struct text_table *table, struct slice text);
PRINTF_LIKE(2, 3) void text_table_addf(struct text_table *table, const char *fmt, ...);
/* A text, number or boolean, or the names of a list or of its objects, with blanks between them;
 * empty where there is none. */
void text_table_add_member(struct text_table *table, const struct json *object, const char *key);
/* Once. */
void text_table_print(struct text_table *table, enum client_output output);

/* A whole table: a row for each object from `first` on, a column for each of these members. */
void text_table_print_list(const struct json *first, const char *const *members, size_t count,
			   enum client_output output);

/* ---- Lines of streams ------------------------------------------------------------------------ */

/* Zeroed at the beginning, but for `output`: a line for people where that is a table, else rows of
 * CSV whose titles stand above the first. */
struct client_lines {
	enum client_output output;
	bool titled;
	struct terminal_lines printed;
};
/* Lines as /api/streams/search has them, from `first` on; NULL: none. */
void client_lines_print(struct client_lines *lines, const struct json *first);
/* The sentence on so many streams of which no rule knows a field, which `unknown_field` of an
 * answer names. */
void client_lines_unknown(int64_t streams, const struct json *answer, struct errbuf *sentence);
/* After the last. */
void client_lines_end(struct client_lines *lines);

/* `stream tail`, with its route and query: until the server refuses it, or what is printed cannot
 * be written. The exit status. */
int client_stream_tail(const struct command_args *args, const char *path);

#endif
