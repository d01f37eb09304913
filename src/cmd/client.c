#include "cmd/client.h"

#include <strings.h>
#include <unistd.h>

#include "cmd/client_http.h"
#include "cmd/client_private.h"
#include "model/series.h"

enum { ERROR_TEXT_BYTES = 1024, COMPLAINT_MAX_BYTES = 8192 };

#define SERVER_DEFAULT "http://127.0.0.1:8470"

/* ---- Command line --------------------------------------------------------------------------- */

static const struct {
	const char *name;
	uint64_t bit;
	size_t offset; /* of its text in struct client_args */
	bool is_flag;  /* it takes no value */
} options[] = {
	{"--server", OPTION_SERVER, offsetof(struct client_args, server)},
	{"--tenant", OPTION_TENANT, offsetof(struct client_args, tenant)},
	{"--output", OPTION_OUTPUT, offsetof(struct client_args, output_name)},
	{"-o", OPTION_OUTPUT, offsetof(struct client_args, output_name)},
	{"--data", OPTION_DATA, offsetof(struct client_args, data)},
	{"--start", OPTION_START, offsetof(struct client_args, start)},
	{"--end", OPTION_END, offsetof(struct client_args, end)},
	{"--fn", OPTION_FN, offsetof(struct client_args, fn)},
	{"--window", OPTION_WINDOW, offsetof(struct client_args, window)},
	{"--points", OPTION_GRANULARITIES, offsetof(struct client_args, points)},
	{"--fill", OPTION_GRANULARITIES, offsetof(struct client_args, fill)},
	{"--aggregator", OPTION_GRANULARITIES, offsetof(struct client_args, aggregator)},
	{"--granularity", OPTION_GRANULARITIES, offsetof(struct client_args, granularity)},
	{"--time", OPTION_TIME, offsetof(struct client_args, time)},
	{"--agg", OPTION_AGG, offsetof(struct client_args, agg)},
	{"--by", OPTION_BY, offsetof(struct client_args, by)},
	{"--credentials", OPTION_CREDENTIALS, offsetof(struct client_args, credentials)},
	{"--address", OPTION_ADDRESS, offsetof(struct client_args, address)},
	{"--poller", OPTION_POLLER, offsetof(struct client_args, poller)},
	{"--active", OPTION_ACTIVE, offsetof(struct client_args, active)},
	{"--begin", OPTION_LIFE, offsetof(struct client_args, begin)},
	{"--end", OPTION_LIFE, offsetof(struct client_args, end)},
	{"--with-data", OPTION_WITH_DATA, offsetof(struct client_args, with_data), true},
	{"--device", OPTION_RECOMPUTE, offsetof(struct client_args, device)},
	{"--oidset", OPTION_RECOMPUTE, offsetof(struct client_args, oidset)},
	{"--tenant", OPTION_REBUILD | OPTION_METRICS, offsetof(struct client_args, only_tenant)},
	{"--metric", OPTION_REBUILD | OPTION_METRICS, offsetof(struct client_args, metric)},
	{"--from", OPTION_RECOMPUTE | OPTION_REBUILD, offsetof(struct client_args, from)},
	{"--to", OPTION_RECOMPUTE | OPTION_REBUILD | OPTION_TO, offsetof(struct client_args, to)},
	{"--dry-run", OPTION_RECOMPUTE | OPTION_REBUILD | OPTION_DRY_RUN,
	 offsetof(struct client_args, dry_run), true},
	{"--all-metrics", OPTION_DELETE, offsetof(struct client_args, all_metrics), true},
	{"--yes", OPTION_DELETE, offsetof(struct client_args, yes), true},
	{"--limit", OPTION_LIMIT, offsetof(struct client_args, limit)},
	{"--explain", OPTION_EXPLAIN, offsetof(struct client_args, explain), true},
	{"--all", OPTION_ALL, offsetof(struct client_args, all), true},
	{"--once", OPTION_ONCE, offsetof(struct client_args, once), true},
	{"--aside", OPTION_ASIDE, offsetof(struct client_args, aside)},
	{"--retry", OPTION_RETRY, offsetof(struct client_args, retry), true},
	{"--zone", OPTION_DAYS, offsetof(struct client_args, zone)},
	{"--span", OPTION_DAYS, offsetof(struct client_args, span)},
	{"--month", OPTION_DAYS, offsetof(struct client_args, month)},
	{"--percentile", OPTION_DAYS, offsetof(struct client_args, percentile)},
	{"--missing", OPTION_DAYS, offsetof(struct client_args, missing)},
	{"--endpoint", OPTION_ENDPOINT, offsetof(struct client_args, endpoint)},
	{"--cf", OPTION_ENDPOINT, offsetof(struct client_args, cf)},
	{"--kind", OPTION_SAYINGS, offsetof(struct client_args, kind)},
	{"--unit", OPTION_SAYINGS, offsetof(struct client_args, unit)},
	{"--description", OPTION_SAYINGS, offsetof(struct client_args, description)},
};

void client_complain(const struct client_args *args, const char *fmt, ...)
{
	char sentence[COMPLAINT_MAX_BYTES];
	va_list arguments;

	va_start(arguments, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, arguments);
	va_end(arguments);
	visible_complain("granary %s: %s", args->command->name, sentence);
}

int client_usage(const struct client_args *args, const char *fmt, ...)
{
	const char *name = args->command->name;
	char sentence[COMPLAINT_MAX_BYTES];
	va_list arguments;

	va_start(arguments, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, arguments);
	va_end(arguments);
	visible_complain("granary %s: %s; `granary help %s` shows how it is used", name, sentence,
			 name);
	return ERR_INVALID;
}

/* Takes `--name value`, `--name=value` or `-o value` at argv[*at]; moves *at to its last word. */
static int parse_option(struct client_args *args, int argc, char *const *argv, int *at)
{
	const char *word = argv[*at], *equals = strchr(word, '=');
	size_t name_len = equals ? (size_t)(equals - word) : strlen(word);

	for (size_t i = 0; i < ARRAY_LEN(options); i++) {
		if (strlen(options[i].name) != name_len ||
		    memcmp(options[i].name, word, name_len) != 0 ||
		    !(args->command->options & options[i].bit))
			continue;
		if (options[i].is_flag && equals)
			return client_usage(args, "%s takes no value", options[i].name);
		if (!options[i].is_flag && !equals && *at + 1 >= argc)
			return client_usage(args, "%s needs a value", word);
		const char *value = equals ? equals + 1 : options[i].is_flag ? word : argv[++*at];
		memcpy((char *)args + options[i].offset, &value, sizeof(value));
		return 0;
	}
	return client_usage(args, "there is no option %.*s", (int)name_len, word);
}

static int parse_output(struct client_args *args)
{
	static const char *const names[] = {"table", "csv", "json"};

	args->output = isatty(STDOUT_FILENO) ? OUTPUT_TABLE : OUTPUT_CSV;
	if (!args->output_name)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(names[i], args->output_name) == 0) {
			args->output = (enum client_output)i;
			return 0;
		}
	}
	return client_usage(args, "-o is table, csv or json, not %s", args->output_name);
}

static int parse_words(struct client_args *args, int argc, char *const *argv)
{
	bool only_words = false; /* after `--` */

	for (int at = 0; at < argc; at++) {
		const char *word = argv[at];
		/* A negative number is a value to put, a single dash is standard input. */
		bool option = word[0] == '-' && word[1] && !strchr("0123456789.", word[1]);
		if (!only_words && strcmp(word, "--") == 0) {
			only_words = true;
		} else if (!only_words && option) {
			if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
				fputs(args->command->help, stdout);
				return ERR_CANCELLED;
			}
			int err = parse_option(args, argc, argv, &at);
			if (err)
				return err;
		} else if (args->word_count == args->command->words_max) {
			return client_usage(args, "%s is one word too many", word);
		} else {
			args->words[args->word_count++] = word;
		}
	}
	if (args->word_count < args->command->words_min)
		return client_usage(args, "something is missing");
	return 0;
}

int client_parse(const struct client_command *command, int argc, char *const *argv,
		 struct client_args *args)
{
	ASSERT(command->words_max <= CLIENT_WORDS_MAX);
	*args = (struct client_args){
		.command = command, .server = SERVER_DEFAULT, .tenant = "default"};
	int err = parse_words(args, argc, argv);
	if (!err && !tenant_valid(slice_of(args->tenant)))
		err = client_usage(args, "%s is not the name of a tenant", args->tenant);
	return err ? err : parse_output(args);
}

int client_check_tags(const struct client_args *args, size_t first)
{
	for (size_t i = first; i < args->word_count; i++) {
		const char *equals = strchr(args->words[i], '=');
		if (!equals || equals == args->words[i])
			return client_usage(args, "%s is no TAG=VALUE", args->words[i]);
	}
	return 0;
}

int client_parse_series(const struct client_command *command, int argc, char *const *argv,
			struct client_args *args)
{
	int err = client_parse(command, argc, argv, args);
	return err ? err : client_check_tags(args, 1);
}

int client_run_verb(const char *noun, const char *help, const struct client_verb *verbs,
		    size_t count, int argc, char *const *argv)
{
	if (argc && (strcmp(argv[0], "--help") == 0 || strcmp(argv[0], "-h") == 0)) {
		fputs(help, stdout);
		return CLIENT_OK;
	}
	for (size_t i = 0; i < count && argc; i++) {
		struct client_args args;
		if (strcmp(argv[0], verbs[i].name) != 0)
			continue;
		int err = client_parse(&verbs[i].command, argc - 1, argv + 1, &args);
		return err ? client_parse_exit(err) : verbs[i].run(&args);
	}
	struct buf names;
	buf_init(&names, COMPLAINT_MAX_BYTES);
	for (size_t i = 0; i < count; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", verbs[i].name);
	visible_complain(
		"granary %s: %s%.*s%s one of %.*s; `granary help %s` shows how it is used", noun,
		argc ? "there is no command \"" : "a command is missing:", SLICE_SHOWN_MAX_BYTES,
		argc ? argv[0] : "", argc ? "\": it is" : "", (int)names.len, names.data, noun);
	buf_release(&names);
	return CLIENT_USAGE;
}

/* ---- Requests ------------------------------------------------------------------------------- */

static void put_escaped(struct buf *path, const char *text)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";

	for (const char *c = text; *c; c++) {
		if (strchr(plain, *c))
			buf_append_char(path, *c);
		else
			buf_printf(path, "%%%02X", (unsigned char)*c);
	}
}

void client_param(struct buf *path, const char *name, const char *value)
{
	bool first = !path->data || !memchr(path->data, '?', path->len);

	buf_printf(path, "%c%s=", first ? '?' : '&', name);
	put_escaped(path, value);
}

void client_params(struct buf *path, const struct client_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (values[i].value)
			client_param(path, values[i].name, values[i].value);
	}
}

void client_path(struct buf *path, const char *route, const char *name)
{
	buf_append_text(path, route);
	put_escaped(path, name);
}

void client_series_params(struct buf *path, const struct client_args *args)
{
	client_param(path, "tenant", args->tenant);
	for (size_t i = 0; i < args->word_count; i++)
		client_param(path, i ? "tag" : "metricName", args->words[i]);
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

static bool take_body(void *owner, long status, struct slice piece)
{
	struct client_answer *answer = owner;

	if (answer->to_stdout && status == 200)
		return visible_print(&answer->printed, piece, false);
	return buf_append(&answer->body, piece.data, piece.len) == 0;
}

void client_print_body(const struct client_answer *answer)
{
	struct visible_lines lines = {0};

	(void)visible_print(&lines, buf_slice(&answer->body), false);
	(void)visible_print(&lines, SLICE("\n"), true);
}

static void complain(const struct client_args *args, struct client_answer *answer,
		     const char *sentence)
{
	if (answer->quiet)
		errbuf_set(&answer->error, ERR_INVALID, "%s", sentence);
	else
		client_complain(args, "%s", sentence);
}

static int complain_of_status(const struct client_args *args, struct client_answer *answer)
{
	char sentence[ERROR_TEXT_BYTES + 1];

	client_http_sentence(buf_slice(&answer->body), sentence, sizeof(sentence));
	complain(args, answer, sentence);
	return ERR_INVALID;
}

int client_request(const struct client_args *args, const char *path, const char *content_type,
		   struct slice body, struct client_answer *answer)
{
	const struct client_http_options how = {.server = args->server, .compressed = true};
	struct client_http *http = client_http_new(&how);
	char tenant[256], type[256];
	struct errbuf e;

	snprintf(tenant, sizeof(tenant), "X-Tenant: %s", args->tenant);
	snprintf(type, sizeof(type), "Content-Type: %s", content_type ? content_type : "");
	struct client_call call = {
		.path = path,
		.method = args->method,
		.headers = {tenant, body.data ? type : NULL},
		.body = body,
		.take = take_body,
		.owner = answer,
	};
	int err = client_http_call(http, &call, &e);
	client_http_free(http);
	answer->status = call.status;
	answer->cut = call.cut;
	memcpy(answer->granularities, call.granularities, sizeof(answer->granularities));
	memcpy(answer->note, call.note, sizeof(answer->note));
	if (err) {
		complain(args, answer, e.text);
		return ERR_INVALID;
	}
	return answer->status >= 400 ? complain_of_status(args, answer) : 0;
}

int client_get_json(const struct client_args *args, const char *path, struct arena *arena,
		    struct client_answer *answer, struct json **root)
{
	struct errbuf e;
	int err = client_request(args, path, NULL, (struct slice){NULL, 0}, answer);

	if (err)
		return err;
	err = json_parse(buf_slice(&answer->body), arena, root, &e);
	if (err)
		client_complain(args, "%s gave an answer that cannot be read: %s", args->server,
				e.text);
	return err ? ERR_INVALID : 0;
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

static int show_as_it_comes(const struct client_args *args, const char *path,
			    struct client_answer *answer)
{
	answer->to_stdout = true;
	int err = client_request(args, path, NULL, (struct slice){NULL, 0}, answer);
	if (!err)
		(void)visible_print(&answer->printed,
				    args->output == OUTPUT_JSON ? SLICE("\n") : SLICE(""), true);
	return err;
}

static int show_parsed(const struct client_args *args, const char *path,
		       struct client_answer *answer, client_print *print)
{
	struct arena arena;
	struct json *root;

	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = client_get_json(args, path, &arena, answer, &root);
	if (!err)
		print(args, root, &arena);
	arena_release(&arena);
	return err;
}

int client_show(const struct client_args *args, const char *path, bool as_it_comes,
		client_print *print)
{
	struct client_answer answer;

	client_answer_init(&answer);
	int err = as_it_comes ? show_as_it_comes(args, path, &answer)
			      : show_parsed(args, path, &answer, print);
	/* For people only: what programs read is data and nothing else. */
	if (!err && !as_it_comes && answer.granularities[0]) {
		visible_complain("answered by: %s", answer.granularities);
	}
	if (!err && answer.cut)
		client_complain(args, "the result was cut at the server's limit; ask for less");
	if (!err && answer.note[0])
		client_complain(args, "%s", answer.note);
	bool unknown = strncmp(answer.note, "unknown-metric", strlen("unknown-metric")) == 0;
	client_answer_release(&answer);
	return err || unknown ? CLIENT_FAILED : CLIENT_OK;
}

int client_show_route(const struct client_args *args, const char *route,
		      const struct client_value *values, size_t count, client_print *print)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	buf_append_text(&path, route);
	client_params(&path, values, count);
	buf_append_char(&path, 0);
	int status = client_show(args, path.data, args->output == OUTPUT_JSON, print);
	buf_release(&path);
	return status;
}
