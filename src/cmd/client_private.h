/* What the client commands share: their command line, requests, and tables. */
#ifndef CMD_CLIENT_PRIVATE_H
#define CMD_CLIENT_PRIVATE_H

#include "base/base.h"
#include "base/buf.h"
#include "base/mem.h"
#include "cmd/client_http.h"
#include "cmd/visible.h"
#include "wire/json.h"

enum client_exit { CLIENT_OK = 0, CLIENT_FAILED = 1, CLIENT_USAGE = 2 };

/* ---- Command line --------------------------------------------------------------------------- */

enum client_output { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON };

/* One row an option: what it may be given to is said by the bits. */
enum client_option_bit {
	OPTION_SERVER = 1 << 0,
	OPTION_TENANT = 1 << 1,
	OPTION_OUTPUT = 1 << 2,
	OPTION_DATA = 1 << 3,
	OPTION_START = 1 << 4,
	OPTION_END = 1 << 5,
	OPTION_FN = 1 << 6,
	OPTION_WINDOW = 1 << 7,
	OPTION_TIME = 1 << 8,
	OPTION_ALL = 1 << 9,
	OPTION_AGG = 1 << 10,
	OPTION_BY = 1 << 11,
	OPTION_EXPLAIN = 1 << 12,
	OPTION_ONCE = 1 << 13,
	OPTION_ASIDE = 1 << 14,
	OPTION_CREDENTIALS = 1 << 15,
	OPTION_ADDRESS = 1 << 16,
	OPTION_ACTIVE = 1 << 17,
	OPTION_LIFE = 1 << 18, /* --begin and --end */
	OPTION_WITH_DATA = 1 << 19,
	OPTION_RECOMPUTE = 1 << 20, /* --device, --oidset, --from, --to, --dry-run */
	OPTION_POLLER = 1 << 21,
	OPTION_RETRY = 1 << 22,
	OPTION_LIMIT = 1 << 23,
	OPTION_REBUILD = 1 << 24, /* --tenant, --metric, --from, --to, --dry-run */
	OPTION_DELETE = 1 << 25,  /* --all-metrics, --yes */
	OPTION_METRICS = 1 << 26, /* --tenant, --metric: only these */
	OPTION_DRY_RUN = 1 << 27,
	OPTION_GRANULARITIES = 1 << 28, /* --points, --fill, --aggregator, --granularity */
	OPTION_DAYS = 1 << 29,          /* --zone, --span, --month, --percentile, --missing */
	OPTION_ENDPOINT = 1 << 30,      /* --endpoint, --cf */
	OPTION_TO = 1u << 31,           /* alone: a directory */
	OPTION_SAYINGS = 1ull << 32,    /* --kind, --unit, --description */
};

enum {
	CLIENT_WORDS_MAX = 256,
	CLIENT_PATH_MAX_BYTES = 1 << 20,
	CLIENT_ANSWER_MAX_BYTES = 512 << 20,
};

struct client_command {
	const char *name;
	const char *help;
	uint64_t options; /* bits of those it takes */
	size_t words_min, words_max;
};

struct client_args {
	const struct client_command *command;
	const char *server, *tenant, *output_name, *data, *start, *end, *fn, *window, *time;
	const char *agg, *by, *points, *fill, *aggregator, *granularity;
	const char *aside; /* the queue */
	const char *device, *oidset, *from, *to;
	const char *only_tenant, *metric, *limit;
	const char *all, *explain, *once, *with_data, *dry_run, *retry; /* not NULL: given */
	const char *all_metrics, *yes;
	const char *kind, *unit, *description;
	const char *credentials, *address, *active, *begin, *poller;
	const char *zone, *span, *month, *percentile, *missing, *endpoint, *cf;
	const char *method; /* of requests; NULL: GET, or POST with a body */
	enum client_output output;
	const char *words[CLIENT_WORDS_MAX];
	size_t word_count;
};

/* 0: go on. ERR_CANCELLED: --help was given and printed. ERR_INVALID: complained, CLIENT_USAGE. */
int client_parse(const struct client_command *command, int argc, char *const *argv,
		 struct client_args *args) MUST_CHECK;

/* The exit status for what client_parse returned. */
static inline int client_parse_exit(int err)
{
	return err == ERR_CANCELLED ? CLIENT_OK : CLIENT_USAGE;
}

/* `granary NAME: ` and the sentence to standard error. client_usage adds where help is. */
void client_complain(const struct client_args *args, const char *fmt, ...) PRINTF_LIKE(2, 3);
int client_usage(const struct client_args *args, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* Words from `first` on are TAG=VALUE; ERR_INVALID after a complaint. */
int client_check_tags(const struct client_args *args, size_t first) MUST_CHECK;

/* client_parse for words that are METRIC [TAG=VALUE...]. */
int client_parse_series(const struct client_command *command, int argc, char *const *argv,
			struct client_args *args) MUST_CHECK;

/* What a noun such as `device` can be told to do. */
struct client_verb {
	const char *name;
	int (*run)(const struct client_args *args);
	struct client_command command;
};

/* Runs the row of `verbs` that argv[0] names; without one help, or a complaint. The exit status. */
int client_run_verb(const char *noun, const char *help, const struct client_verb *verbs,
		    size_t count, int argc, char *const *argv);

/* ---- Requests ------------------------------------------------------------------------------- */

/* A path and query that grows: client_path adds a route and, escaped, a part behind it,
 * client_param `name=value`. */
void client_path(struct buf *path, const char *route, const char *name);
void client_param(struct buf *path, const char *name, const char *value);

struct client_value {
	const char *name, *value;
};
/* Those that have a value; the others are NULL. */
void client_params(struct buf *path, const struct client_value *values, size_t count);
/* The tenant and the words METRIC [TAG=VALUE...]. */
void client_series_params(struct buf *path, const struct client_args *args);

struct client_answer {
	long status;
	struct buf body;
	bool to_stdout; /* in: a body of status 200 goes there instead */
	struct visible_lines printed;
	bool cut; /* the server says that there is more than it gave */
	char granularities[CLIENT_GRANULARITIES_MAX_BYTES +
			   1];                /* which data answered a query; empty: none did */
	char note[CLIENT_NOTE_MAX_BYTES + 1]; /* why it has less than one may think */
	bool quiet;                           /* in: complaints go to `error` instead */
	struct errbuf error;
};

void client_answer_init(struct client_answer *answer);
void client_answer_release(struct client_answer *answer);

/* The body, and the end of its line, to standard output. */
void client_print_body(const struct client_answer *answer);

/* GET, or POST with a body (data not NULL). ERR_INVALID, after a complaint with the server's own
 * sentence, for no answer and for a status of 400 and above. */
int client_request(const struct client_args *args, const char *path, const char *content_type,
		   struct slice body, struct client_answer *answer) MUST_CHECK;

/* GET and parse. */
int client_get_json(const struct client_args *args, const char *path, struct arena *arena,
		    struct client_answer *answer, struct json **root) MUST_CHECK;

/* A number of an answer; 0 where there is none. */
int64_t client_i64(const struct json *object, const char *key);
double client_f64(const struct json *object, const char *key);

/* GET; prints the answer as it comes, or parses it and has it printed. The exit status. */
typedef void client_print(const struct client_args *args, const struct json *root,
			  struct arena *arena);
int client_show(const struct client_args *args, const char *path, bool as_it_comes,
		client_print *print);
/* The same of a route and its parameters; JSON is printed as it comes. */
int client_show_route(const struct client_args *args, const char *route,
		      const struct client_value *values, size_t count, client_print *print);

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
};

void text_table_init(struct text_table *table, size_t columns, const char *const *titles);
void text_table_release(struct text_table *table);
/* Left to right, row after row. */
void text_table_add(struct text_table *table, struct slice text);
PRINTF_LIKE(2, 3) void text_table_addf(struct text_table *table, const char *fmt, ...);
/* A text, number or boolean; empty where there is none. */
void text_table_add_member(struct text_table *table, const struct json *object, const char *key);
/* Names of a list, or of its objects, with blanks between them. */
void text_table_add_names(struct text_table *table, const struct json *object, const char *key);
/* Once. */
void text_table_print(struct text_table *table, enum client_output output);

#endif
