/* The command `stream`: streams of logs, by a server's API (api/stream/). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/client.h"
#include "cmd/client_private.h"
#include "cmd/terminal_escape.h"
#include "model/stream.h"
#include "stream/line_counts.h"
#include "stream/line_field.h"
#include "wire/number.h"
#include "wire/timetext.h"

enum { SEARCH_PAGE_LINES = 1000 };

struct client_stream_args {
	struct command_args line;
	const char *stream, *source, *cluster, *datatype, *name, *since, *until, *order;
	struct command_words words;
	const char *step, *by, *offset, *before, *behind;
	int64_t from, to, limit;
	bool dry_run;
};

static const struct client_stream_args *client_stream_args_of(const struct command_args *args)
{
	return CONTAINER_OF(args, const struct client_stream_args, line);
}

/* ---- list ------------------------------------------------------------------------------------ */

/* `0-200 300-400` */
static void client_stream_add_ranges(struct text_table *table, const struct json *stream,
				     const char *key)
{
	const struct json *list = json_member(stream, key);
	struct buf text;
	buf_init(&text, CLIENT_PATH_MAX_BYTES);
	for (const struct json *range = list ? list->first : NULL; range; range = range->next) {
		struct slice from = range->first ? range->first->text : SLICE("");
		struct slice to =
			range->first && range->first->next ? range->first->next->text : SLICE("");
		buf_printf(&text, "%s%.*s-%.*s", text.len ? " " : "", (int)from.len, from.data,
			   (int)to.len, to.data);
	}
	text_table_add(table, buf_slice(&text));
	buf_release(&text);
}

static void client_stream_print(const struct command_args *args, const struct json *root,
				struct text_table *table)
{
	const struct json *list = json_member(root, "streams");
	for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
		const struct json *waiting = json_member(one, "waiting");
		text_table_add_member(table, one, "stream");
		client_stream_add_ranges(table, one, "held");
		text_table_addf(table, "%" PRId64, waiting ? client_i64(waiting, "bytes") : 0);
		client_fault_add_time(table, one, "made");
	}
	text_table_print(table, args->output);
}

static void client_stream_print_page(const struct command_args *args, const struct json *root,
				     bool first)
{
	static const char *const titles[] = {"stream", "held", "waiting", "made"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	table.untitled = !first;
	client_stream_print(args, root, &table);
	text_table_release(&table);
}

static int client_stream_list_run(const struct command_args *args)
{
	struct buf path;
	client_route(&path, args, "/api/streams");
	int status = client_show_pages(args, &path, client_stream_print_page);
	buf_release(&path);
	return status;
}

/* ---- export ---------------------------------------------------------------------------------- */

/* What is printed of a stream. */
struct client_export {
	int64_t at;    /* what is below is printed, or was said not to be there */
	bool any;      /* the last answer had bytes */
	bool damaged;  /* some bytes cannot be read */
	uint64_t asks; /* answers that came */
};

/* What stands in front of the first byte that is held is no hole. */
static void client_export_say(const struct command_args *args, struct client_export *export,
			      const struct client_answer *answer)
{
	int64_t begin = answer->offset;
	if (answer->lost)
		command_complain(args,
				 "the bytes from offset %" PRId64 " to %" PRId64
				 " are left out: %" PRId64
				 " of them are damaged; `granary verify` says where",
				 export->at, begin, answer->lost);
	else if (export->any && export->asks && begin != export->at)
		command_complain(args,
				 "the bytes from offset %" PRId64 " to %" PRId64 " are not there",
				 export->at, begin);
	export->damaged |= answer->lost > 0;
}

/* One answer to standard output. */
static int client_export_some(const struct command_args *args, struct client_export *export)
{
	const struct client_stream_args *a = client_stream_args_of(args);
	struct client_answer answer;
	struct buf path;
	char number[24];
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_answer_init(&answer);
	client_route(&path, args, "/api/streams/export");
	snprintf(number, sizeof(number), "%" PRId64, export->at);
	client_param(&path, "from", number);
	snprintf(number, sizeof(number), "%" PRId64, a->to);
	client_param(&path, "to", number);
	int err = client_request(args, NULL, path.data, NULL, (struct slice){NULL, 0}, &answer);
	export->any = !err && answer.body.len;
	if (!err)
		client_export_say(args, export, &answer);
	if (export->any) {
		size_t written = fwrite(answer.body.data, 1, answer.body.len, stdout);
		export->at = answer.offset + (int64_t)answer.body.len;
		export->asks++;
		if (written != answer.body.len) {
			command_complain(args, "standard output cannot be written");
			err = ERR_INVALID;
		}
	}
	client_answer_release(&answer);
	buf_release(&path);
	return err;
}

static int client_stream_export_run(const struct command_args *args)
{
	struct client_export export = {.at = client_stream_args_of(args)->from, .any = true};
	int err = 0;
	while (!err && export.any)
		err = client_export_some(args, &export);
	return err || export.damaged || fflush(stdout) ? EXIT_FAILED : EXIT_OK;
}

/* ---- search --------------------------------------------------------------------------------- */

/* A search that is printed page by page. */
struct client_search {
	const struct command_args *args;
	int64_t left; /* lines that are still to be printed */
	struct buf token;
	struct client_lines printed;
	bool said_damaged, said_without_rule;
	bool not_held; /* the byte around which lines were asked for */
};

/* Says once what is left out of answers. */
static void client_search_say(struct client_search *search, const struct json *root)
{
	int64_t damaged = client_i64(root, "damaged"),
		without_rule = client_i64(root, "without_rule");
	struct errbuf sentence;
	if (damaged && !search->said_damaged)
		command_complain(search->args,
				 "%" PRId64
				 " block%s of the streams left out, which cannot be read",
				 damaged, plural_end((uint64_t)damaged));
	if (without_rule && !search->said_without_rule) {
		client_lines_unknown(without_rule, root, &sentence);
		command_complain(search->args, "%s", sentence.text);
	}
	search->said_damaged |= damaged > 0;
	search->said_without_rule |= without_rule > 0;
}

static int client_search_page(struct client_search *search, const char *path)
{
	const struct command_args *args = search->args;
	struct client_answer answer;
	struct arena arena;
	struct json *root;
	client_answer_init(&answer);
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = client_ask_json(args, NULL, path, &arena, &answer, &root);
	const struct json *lines = err ? NULL : json_member(root, "lines");
	const struct json *token = err ? NULL : json_member(root, "token");
	const struct json *held = err ? NULL : json_member(root, "held");
	search->not_held = held && !held->boolean;
	buf_clear(&search->token);
	for (const struct json *one = lines ? lines->first : NULL; one; one = one->next)
		search->left--;
	if (!err && args->output == OUTPUT_JSON)
		client_print_body(&answer);
	else if (!err)
		client_lines_print(&search->printed, lines ? lines->first : NULL);
	if (!err)
		client_search_say(search, root);
	if (token)
		buf_append(&search->token, token->text.data, token->text.len);
	arena_release(&arena);
	client_answer_release(&answer);
	return err;
}

/* A parameter of a text that does not end with a 0. One that is too long ends early; it is longer
 * than any that a server takes. */
static void client_search_param(struct buf *path, const char *name, struct buf *text)
{
	if (buf_append_char(text, 0))
		text->data[text->len - 1] = 0;
	client_param(path, name, text->data);
}

/* A page has as many lines as are still wanted, or as an answer may have. */
static int client_search_pages(struct client_search *search, struct buf *path)
{
	size_t asked_bytes = path->len;
	char number[24];
	int err = 0;
	do {
		path->len = asked_bytes;
		snprintf(number, sizeof(number), "%" PRId64,
			 search->left < SEARCH_PAGE_LINES ? search->left : SEARCH_PAGE_LINES);
		client_param(path, "limit", number);
		if (search->token.len)
			client_search_param(path, "token", &search->token);
		err = client_search_page(search, path->data);
	} while (!err && search->token.len && search->left > 0);
	return err;
}

/* Behind a field and its relation, where a word begins with these. */
static size_t client_search_behind_field(const char *word)
{
	struct slice rest = slice_of(word);
	struct line_field field;
	return line_field_take(&rest, &field) ? (size_t)(rest.data - word) : 0;
}

/* A word with blanks, which the shell has taken out of its quotation marks, is put into them: what
 * follows its `-`, its field, its `~` or its `*` (stream/line_query.h). */
static void client_search_add_word(struct buf *words, const char *word)
{
	size_t before = word[0] == '-';
	before += client_search_behind_field(word + before);
	bool is_regex = word[before] == '~';
	before += is_regex || word[before] == '*';
	buf_append_text(words, words->len ? " " : "");
	if (strchr(word, '"') || !strpbrk(word, " \t")) {
		buf_append_text(words, word);
		return;
	}
	buf_append(words, word, before);
	size_t len = strlen(word + before);
	bool star = !is_regex && len && word[before + len - 1] == '*';
	buf_append_char(words, '"');
	for (const char *c = word + before; c < word + before + len - star; c++) {
		if (*c == '\\')
			buf_append_char(words, '\\');
		buf_append_char(words, *c);
	}
	buf_append_text(words, star ? "\"*" : "\"");
}

/* The route, with what rows name, and the words as `q`. */
static void client_stream_route_words(struct buf *path, const struct command_args *args,
				      const char *route)
{
	const struct command_words *given = &client_stream_args_of(args)->words;
	struct buf words;
	buf_init(&words, CLIENT_PATH_MAX_BYTES);
	for (size_t i = 0; i < given->count; i++)
		client_search_add_word(&words, given->items[i]);
	client_route(path, args, route);
	if (words.len)
		client_search_param(path, "q", &words);
	buf_release(&words);
}

static void client_search_begin(struct client_search *search, const struct command_args *args,
				const char *route, struct buf *path)
{
	*search = (struct client_search){.args = args,
					 .left = client_stream_args_of(args)->limit,
					 .printed = {.output = args->output}};
	buf_init(&search->token, CLIENT_PATH_MAX_BYTES);
	client_stream_route_words(path, args, route);
}

static int client_search_end(struct client_search *search, struct buf *path, int err)
{
	client_lines_end(&search->printed);
	buf_release(path);
	buf_release(&search->token);
	return err ? EXIT_FAILED : EXIT_OK;
}

static int client_stream_search_run(const struct command_args *args)
{
	struct client_search search;
	struct buf path;
	client_search_begin(&search, args, "/api/streams/search", &path);
	int err = client_search_pages(&search, &path);
	if (!err && search.token.len)
		command_complain(args, "there may be more lines than the %" PRId64 " of --limit",
				 client_stream_args_of(args)->limit);
	return client_search_end(&search, &path, err);
}

/* ---- tail ------------------------------------------------------------------------------------ */

static int client_stream_tail_run(const struct command_args *args)
{
	struct buf path;
	client_stream_route_words(&path, args, "/api/streams/tail");
	int status = client_stream_tail(args, path.data);
	buf_release(&path);
	return status;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int client_stream_lines_run(const struct command_args *args)
{
	struct client_search search;
	struct buf path;
	client_search_begin(&search, args, "/api/streams/lines", &path);
	int err = client_search_page(&search, path.data);
	if (search.not_held)
		command_complain(
			args,
			"the byte at offset %s is not there: the lines are the ones next to it",
			client_stream_args_of(args)->offset);
	return client_search_end(&search, &path, err);
}

/* ---- count ----------------------------------------------------------------------------------- */

static void client_count_add_row(struct text_table *table, const struct json *series, int64_t ms,
				 struct slice lines)
{
	char time[TIME_PRINT_MAX_BYTES];
	text_table_add(table, (struct slice){time, time_print(time, ms)});
	text_table_add_member(table, series, "source");
	text_table_add_member(table, series, "datatype");
	text_table_add_member(table, series, "severity");
	text_table_add(table, lines);
}

/* A row for each step of each series that has lines, in the order of time. */
static void client_count_add_rows(struct text_table *table, const struct json *root)
{
	const struct json *list = json_member(root, "series"), *counts[LINE_COUNTS_SERIES_MAX];
	const struct json *one;
	int64_t ms = client_i64(root, "since"), steps = client_i64(root, "steps");
	size_t count = 0;
	for (one = list ? list->first : NULL; one && count < ARRAY_LEN(counts); one = one->next) {
		const struct json *of = json_member(one, "counts");
		counts[count++] = of ? of->first : NULL;
	}
	for (; steps > 0; steps--) {
		one = list ? list->first : NULL;
		for (size_t i = 0; i < count; i++, one = one->next) {
			if (counts[i] && !slice_equal(counts[i]->text, SLICE("0")))
				client_count_add_row(table, one, ms, counts[i]->text);
			counts[i] = counts[i] ? counts[i]->next : NULL;
		}
		ms += client_i64(root, "step");
	}
}

static void client_count_print(const struct command_args *args, const struct json *root,
			       UNUSED struct arena *arena)
{
	static const char *const titles[] = {"time", "source", "datatype", "severity", "lines"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	client_count_add_rows(&table, root);
	text_table_print(&table, args->output);
	text_table_release(&table);
	client_search_say(&(struct client_search){.args = args}, root);
}

static int client_stream_count_run(const struct command_args *args)
{
	struct client_search search;
	struct buf path;
	client_search_begin(&search, args, "/api/streams/counts", &path);
	int status =
		client_show(args, NULL, path.data, args->output == OUTPUT_JSON, client_count_print);
	(void)client_search_end(&search, &path, 0);
	return status;
}

/* ---- delete ---------------------------------------------------------------------------------- */

static void client_stream_print_deleted(const struct command_args *args, const struct json *root,
					UNUSED struct arena *arena)
{
	static const char *const members[] = {"stream", "bytes", "dry_run"};
	text_table_print_list(root, members, ARRAY_LEN(members), args->output);
}

static int client_stream_delete_run(const struct command_args *args)
{
	return client_show_route(args, "DELETE", "/api/streams", client_stream_print_deleted);
}

/* ---- demux ----------------------------------------------------------------------------------- */

static void client_stream_print_demux(const struct command_args *args, const struct json *root,
				      bool first)
{
	static const char *const members[] = {"source", "datatype", "name", "lines", "passed",
					      "unread", "late",     "rest", "last",  "example"};
	struct text_table table;
	const struct json *list = json_member(root, "streams");
	text_table_init(&table, ARRAY_LEN(members), members);
	table.untitled = !first;
	for (const struct json *one = list ? list->first : NULL; one; one = one->next)
		for (size_t i = 0; i < ARRAY_LEN(members); i++) {
			if (strcmp(members[i], "last") == 0)
				client_fault_add_time(&table, one, members[i]);
			else
				text_table_add_member(&table, one, members[i]);
		}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static void client_stream_print_again(const struct command_args *args, const struct json *root,
				      UNUSED struct arena *arena)
{
	static const char *const members[] = {"stream", "again"};
	text_table_print_list(root, members, ARRAY_LEN(members), args->output);
}

static int client_stream_demux_run(const struct command_args *args)
{
	struct buf path;
	if (client_stream_args_of(args)->stream)
		return client_show_route(args, "POST", "/api/streams/demux",
					 client_stream_print_again);
	client_route(&path, args, "/api/streams/demux");
	int status = client_show_pages(args, &path, client_stream_print_demux);
	buf_release(&path);
	return status;
}

/* ---- Options --------------------------------------------------------------------------------- */

#define NAMES_ROWS                                                                                 \
	ROW(text, source, "--source", "HOST", "only those of this host", .param = "source"),       \
		ROW(text, cluster, "--cluster", "NAME", "only those of this cluster",              \
		    .param = "cluster"),                                                           \
		ROW(text, datatype, "--datatype", "NAME", "only those of this datatype",           \
		    .param = "datatype"),                                                          \
		ROW(text, name, "--name", "NAME", "only those of this name", .param = "name")
#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_stream_args, field, __VA_ARGS__)

static const struct command_option client_stream_list_options[] = {
	NAMES_ROWS,
	CLIENT_TENANT("whose streams"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

#define LINES_ROWS(...)                                                                            \
	ROW(text, words, NULL, "WORD", "what its lines have; all words have to be there",          \
	    .words_max = COMMAND_WORDS_MAX),                                                       \
		ROW(text, since, "--since", "TIME", "lines of this time or later",                 \
		    .param = "since", __VA_ARGS__),                                                \
		ROW(text, until, "--until", "TIME", "lines of before this time",                   \
		    .param = "until"),                                                             \
		NAMES_ROWS,                                                                        \
		ROW(text, stream, "--stream", "STREAM",                                            \
		    "only those of the stream with this address", .param = "stream")
#define LINES_OUTPUT_ROW                                                                           \
	COMMAND_ROW(client_output_type, command_args, output, "--output", "FORMAT",                \
		    "table, csv or json", .letter = "-o",                                          \
		    .otherwise = "lines for people on a terminal, else csv")

static const struct command_option client_stream_search_options[] = {
	LINES_ROWS(.otherwise = NULL),
	ROW(text, order, "--order", "ORDER", "which come first: newest or oldest", .param = "order",
	    .otherwise = "newest"),
	ROW(number, limit, "--limit", "N", "print at most so many lines", .preset = "100", .min = 1,
	    .max = INT64_MAX),
	CLIENT_TENANT("whose streams"),
	CLIENT_SERVER,
	LINES_OUTPUT_ROW,
};

static const struct command_option client_stream_lines_options[] = {
	ROW(text, stream, NULL, "STREAM", "its address, as `stream search -o csv` prints it",
	    .param = "stream", .required = true),
	ROW(text, offset, NULL, "OFFSET", "of a byte of the line", .param = "offset",
	    .required = true),
	ROW(text, before, "--before", "N", "so many lines before it, up to 100", .param = "before",
	    .otherwise = "10"),
	ROW(text, behind, "--behind", "N", "so many lines behind it, up to 100", .param = "behind",
	    .otherwise = "10"),
	CLIENT_TENANT("whose streams"),
	CLIENT_SERVER,
	LINES_OUTPUT_ROW,
};

static const struct command_option client_stream_count_options[] = {
	LINES_ROWS(.otherwise = "1d-ago"),
	ROW(text, step, "--step", "DURATION", "count each of this long apart", .param = "step",
	    .otherwise = "a hundredth of the time"),
	ROW(text, by, "--by", "NAMES",
	    "count apart, of source, datatype and severity, with commas between", .param = "by"),
	CLIENT_TENANT("whose streams"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_stream_tail_options[] = {
	ROW(text, words, NULL, "WORD", "what its lines have; all words have to be there",
	    .words_max = COMMAND_WORDS_MAX),
	NAMES_ROWS,
	ROW(text, stream, "--stream", "STREAM", "only those of the stream with this address",
	    .param = "stream"),
	CLIENT_TENANT("whose streams"),
	CLIENT_SERVER,
	LINES_OUTPUT_ROW,
};

static const struct command_option client_stream_export_options[] = {
	ROW(text, stream, NULL, "STREAM", "its address, as `stream list` prints it",
	    .param = "stream", .required = true),
	ROW(number, from, "--from", "OFFSET", "the first offset", .preset = "0", .min = 0,
	    .max = INT64_MAX),
	ROW(number, to, "--to", "OFFSET", "the offset behind the last",
	    .preset = "9223372036854775807", .min = 0, .max = INT64_MAX),
	CLIENT_TENANT("whose streams"),
	CLIENT_SERVER,
};

static const struct command_option client_stream_demux_options[] = {
	ROW(text, stream, "--again", "STREAM",
	    "make all samples of the stream with this address again", .param = "stream"),
	NAMES_ROWS,
	CLIENT_TENANT("whose streams"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_stream_delete_options[] = {
	ROW(text, stream, NULL, "STREAM", "its address, as `stream list` prints it",
	    .param = "stream", .required = true),
	ROW(flag, dry_run, "--dry-run", NULL, "only say how many bytes would go",
	    .param = "dryRun"),
	CLIENT_TENANT("whose streams"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command client_stream_verbs[] = {
	{.name = "stream list",
	 .summary = "list streams, and which of their bytes are held",
	 .about = "Prints the streams of a tenant: their address, the offsets that are held, how "
		  "many "
		  "bytes wait to be put into blocks, and when the first chunk came.\n",
	 .examples = "granary stream list --source web1\n",
	 COMMAND_TAKES(client_stream_list_options, client_stream_args),
	 .run = client_stream_list_run},
	{.name = "stream search",
	 .summary = "print the lines that have some words",
	 .about = "Prints lines of all streams of a tenant in the order of their times. A line's "
		  "time is what it says; a line that says none has the time of the line before, "
		  "or when it came.\n"
		  "word\tlines with this word or text without blanks, in any case; no letter, "
		  "digit or _ stands beside it\n"
		  "\"some words\"\tthe same with blanks\n"
		  "*part*\tit may be a part of a word; also part* and *part\n"
		  "~regex\tlines that a regular expression fits, in which case counts\n"
		  "status>=500\tlines that have such a field, by the rule of their datatype: with "
		  "= != < <= > >=\n"
		  "path=*items*\tlikewise a text; also path=\"a b\" and path=~regex\n"
		  "-word\tlines that do not have it; so of all of these; a shell's command "
		  "line needs -- before it\n",
	 .examples = "granary stream search timeout --since 1h-ago\n"
		     "granary stream search 'lock wait' 10.1.2.3 --source db1 -o json\n"
		     "granary stream search --datatype nginx -- 500 -healthcheck\n"
		     "granary stream search 'status>=500' 'path=~^/api/' --datatype access\n",
	 COMMAND_TAKES(client_stream_search_options, client_stream_args),
	 .run = client_stream_search_run},
	{.name = "stream tail",
	 .summary = "print lines as they come",
	 .about = "Prints lines of all streams of a tenant as they become durable, until it is "
		  "interrupted. Words are those of `stream search`. A sentence to standard error "
		  "says how much is left out, where more comes than can be shown.\n",
	 .examples = "granary stream tail --source web1\n"
		     "granary stream tail error --datatype syslog -o json\n"
		     "granary stream tail --datatype nginx -- 500 -healthcheck\n",
	 COMMAND_TAKES(client_stream_tail_options, client_stream_args),
	 .run = client_stream_tail_run},
	{.name = "stream lines",
	 .summary = "print the lines around a line",
	 .about = "Prints the line of a stream that has the byte at an offset, and lines before "
		  "and behind it.\n",
	 .examples = "granary stream lines "
		     "host1/web/syslog//var/log/messages@00c1d2e3f4a5b6c7 104857 --before 50\n",
	 COMMAND_TAKES(client_stream_lines_options, client_stream_args),
	 .run = client_stream_lines_run},
	{.name = "stream count",
	 .summary = "count lines by time",
	 .about = "Counts the lines of all streams of a tenant by their time, those that `stream "
		  "search` would print. Steps without lines are left out.\n",
	 .examples = "granary stream count --since 1d-ago --step 1h --by severity\n"
		     "granary stream count timeout --by source\n",
	 COMMAND_TAKES(client_stream_count_options, client_stream_args),
	 .run = client_stream_count_run},
	{.name = "stream demux",
	 .summary = "list what is made of the lines of streams",
	 .about = "Prints the streams whose datatypes have rules (doc/demux.md), and counts of "
		  "their lines.\n"
		  "lines\tlines that were read\n"
		  "passed\tof these, lines of no sample: names of columns, or what a condition "
		  "leaves "
		  "out\n"
		  "unread\tof these, lines that the rule does not read; `example` is the last one\n"
		  "late\tof these, lines that came too late to be counted\n"
		  "rest\tof these, lines with labels of which there are too many\n",
	 .examples = "granary stream demux --datatype access\n"
		     "granary stream demux --again "
		     "host1/web/access//var/log/nginx/access.log@00c1d2e3f4a5b6c7\n",
	 COMMAND_TAKES(client_stream_demux_options, client_stream_args),
	 .run = client_stream_demux_run},
	{.name = "stream export",
	 .summary = "print the bytes of a stream",
	 .about = "Prints the bytes of a stream as they were sent. For a hole, and for bytes that "
		  "are damaged, a sentence to standard error says from where to where they are; "
		  "what is behind them is printed.\n"
		  "Exit status: 0 printed, 1 some bytes are damaged, or the server refused it, "
		  "2 wrong use.\n",
	 .examples = "granary stream export "
		     "host1/web/syslog//var/log/messages@00c1d2e3f4a5b6c7 > messages\n",
	 COMMAND_TAKES(client_stream_export_options, client_stream_args),
	 .run = client_stream_export_run},
	{.name = "stream delete",
	 .summary = "delete all that is held of a stream",
	 .about = "Deletes all that is held of a stream now. It is not shown any more at once, and "
		  "leaves the disk soon. What comes later is kept.\n",
	 .examples =
		 "granary stream delete host1/web/debug//tmp/trace@00c1d2e3f4a5b6c7 --dry-run\n",
	 COMMAND_TAKES(client_stream_delete_options, client_stream_args),
	 .run = client_stream_delete_run},
};

const struct command client_stream = {
	.name = "stream",
	.summary = "list, search, count, follow, print and delete streams of logs",
	COMMAND_VERBS(client_stream_verbs),
};
