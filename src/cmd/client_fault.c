/* fault: reports of faults, by a server's API (api/fault/faults.h). */
#include <stdio.h>

#include "base/file.h"
#include "cmd/client.h"
#include "cmd/client_fault.h"
#include "wire/timetext.h"

enum {
	CLIENT_FAULT_FILE_MAX_BYTES = 32 << 20,
	CLIENT_FAULT_ARENA_MAX_BYTES = 256 << 20,
	CLIENT_FAULT_CELL_MAX_BYTES = 16 << 20,
};

/* ---- show ------------------------------------------------------------------------------------ */

/* A text or number as it is, anything else as JSON. */
static void client_fault_add_value(struct text_table *table, const struct json *value)
{
	struct json_writer writer;
	struct buf text;
	if (value->type == JSON_T_STRING || value->type == JSON_T_NUMBER) {
		text_table_add(table, value->text);
		return;
	}
	buf_init(&text, CLIENT_FAULT_CELL_MAX_BYTES);
	json_writer_init(&writer, &text);
	json_write_literally(&writer, value); /* with the digits of numbers */
	text_table_add(table, buf_slice(&text));
	buf_release(&text);
}

static void client_fault_print_report(const struct command_args *args, const struct json *root,
				      UNUSED struct arena *arena)
{
	static const char *const titles[] = {"attribute", "value"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *member = root->first; member; member = member->next) {
		text_table_add(&table, member->key);
		client_fault_add_value(&table, member);
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

/* `behind`: "", or what is asked about the report. */
static int client_fault_ask_report(const struct command_args *args, const char *behind,
				   client_print *print)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, "/oops/", client_fault_args_of(args)->id);
	client_path(&path, behind, "");
	int status = client_show(args, NULL, path.data, args->output == OUTPUT_JSON, print);
	buf_release(&path);
	return status;
}

static int client_fault_show(const struct command_args *args)
{
	return client_fault_ask_report(args, "", client_fault_print_report);
}

/* ---- bug ------------------------------------------------------------------------------------- */

static int client_fault_say_bug(const struct command_args *args)
{
	struct buf route, path;
	buf_init(&route, CLIENT_PATH_MAX_BYTES);
	client_path(&route, "/oops/", client_fault_args_of(args)->id);
	client_path(&route, "/bug", "");
	client_route(&path, args, route.data);
	int status = client_show(args, "POST", path.data, args->output == OUTPUT_JSON,
				 client_fault_print_report);
	buf_release(&route);
	buf_release(&path);
	return status;
}

/* ---- list ------------------------------------------------------------------------------------ */

void client_fault_add_time(struct text_table *table, const struct json *object, const char *key)
{
	char text[TIME_PRINT_MAX_BYTES];
	int64_t ms;
	if (json_get_i64(object, key, &ms, NULL))
		text_table_add(table, SLICE(""));
	else
		text_table_add(table, (struct slice){text, time_print(text, ms)});
}

static void client_fault_print_list(const struct command_args *args, const struct json *root,
				    UNUSED struct arena *arena)
{
	static const char *const titles[] = {"date",     "id",         "context", "title",
					     "duration", "statements", "release", "host"};
	const struct json *list = json_member(root, "reports");
	const struct json *token = json_member(root, "token");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *report = list ? list->first : NULL; report; report = report->next) {
		client_fault_add_time(&table, report, "date");
		for (size_t i = 1; i < ARRAY_LEN(titles); i++)
			text_table_add_member(&table, report, titles[i]);
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
	if (json_member(root, "reached"))
		terminal_complain("the time was over before all were looked at");
	if (token)
		terminal_complain("there are more: --token %.*s goes on", (int)token->text.len,
				  token->text.data);
}

static int client_fault_list(const struct command_args *args)
{
	return client_show_route(args, NULL, "/oops", client_fault_print_list);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* What a message is about: its group, or its day or hour; and how many reports or messages. */
static void client_fault_add_message(struct text_table *table, const struct json *message)
{
	static const char *const counts[] = {"reports", "messages"};
	const struct json *about = json_member(message, "group");
	about = about ? about : json_member(message, "day");
	client_fault_add_time(table, message, "date");
	text_table_add_member(table, message, "kind");
	if (about || !json_member(message, "hour"))
		text_table_add(table, about ? about->text : SLICE(""));
	else
		client_fault_add_time(table, message, "hour");
	text_table_add_member(table, message, counts[!json_member(message, counts[0])]);
	text_table_add_member(table, message, "report");
	text_table_add_member(table, message, "title");
}

static void client_fault_print_messages(const struct command_args *args, const struct json *root,
					UNUSED struct arena *arena)
{
	static const char *const titles[] = {"date", "kind", "of", "count", "report", "title"};
	const struct json *list = json_member(root, "messages");
	const struct json *more = json_member(root, "more");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *one = list ? list->first : NULL; one; one = one->next)
		client_fault_add_message(&table, one);
	text_table_print(&table, args->output);
	text_table_release(&table);
	if (more && more->boolean)
		terminal_complain("there are more: --until or --limit shows others");
}

static int client_fault_messages(const struct command_args *args)
{
	return client_show_route(args, NULL, "/oops/messages", client_fault_print_messages);
}

/* ---- why ------------------------------------------------------------------------------------- */

static void client_fault_print_why(const struct command_args *args, const struct json *root,
				   UNUSED struct arena *arena)
{
	static const char *const titles[] = {"what", "text", "application"};
	static const char *const heads[] = {"group", "own_group", "title", "rule"};
	const struct json *words = json_member(root, "words");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		if (!json_member(root, heads[i]))
			continue;
		text_table_add(&table, slice_of(heads[i]));
		text_table_add_member(&table, root, heads[i]);
		text_table_add(&table, SLICE(""));
	}
	for (const struct json *word = words ? words->first : NULL; word; word = word->next) {
		const struct json *application = json_member(word, "application");
		text_table_add_member(&table, word, "kind");
		text_table_add_member(&table, word, "text");
		text_table_add(&table,
			       application && application->boolean ? SLICE("yes") : SLICE("no"));
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static int client_fault_why(const struct command_args *args)
{
	return client_fault_ask_report(args, "/why", client_fault_print_why);
}

/* ---- put ------------------------------------------------------------------------------------- */

static const struct json *client_fault_error_of(const struct json *result)
{
	const struct json *error = json_member(result, "error");
	return error && error->type == JSON_T_OBJECT ? json_member(error, "message") : error;
}

static int client_fault_add_result(struct text_table *table, const char *file,
				   const struct json *result)
{
	const struct json *error = client_fault_error_of(result);
	text_table_add(table, slice_of(file));
	text_table_add_member(table, result, "id");
	client_fault_add_time(table, result, "date");
	if (json_member(result, "result"))
		text_table_add_member(table, result, "result");
	else
		text_table_add(table, SLICE("failed"));
	text_table_add(table, error ? error->text : SLICE(""));
	return error ? ERR_INVALID : 0;
}

/* Of an array a row for each of its reports; of what cannot be read none. */
static int client_fault_add_results(const struct command_args *args, struct text_table *table,
				    const char *file, const struct client_answer *answer)
{
	struct arena arena;
	struct json *root;
	int err = 0;
	arena_init(&arena, CLIENT_FAULT_ARENA_MAX_BYTES);
	if (json_parse(buf_slice(&answer->body), &arena, &root, NULL)) {
		command_complain(args, "%s: %s", file, answer->error.text);
		arena_release(&arena);
		return ERR_INVALID;
	}
	const struct json *list = json_member(root, "results");
	if (!list)
		err = client_fault_add_result(table, file, root);
	for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
		if (client_fault_add_result(table, file, one))
			err = ERR_INVALID;
	}
	arena_release(&arena);
	return err;
}

static int client_fault_send(const struct command_args *args, struct text_table *table,
			     const char *file)
{
	struct client_answer answer;
	struct buf body;
	buf_init(&body, CLIENT_FAULT_FILE_MAX_BYTES);
	client_answer_init(&answer);
	answer.quiet = true;
	int err = files_real()->read(files_real(), file, CLIENT_FAULT_FILE_MAX_BYTES, &body);
	if (err) {
		command_complain(args, "%s: %s", file, err_text(err));
	} else {
		struct slice bytes = body.len ? buf_slice(&body) : SLICE("");
		err = client_request(args, NULL, "/oops", "application/octet-stream", bytes,
				     &answer);
		int refused = client_fault_add_results(args, table, file, &answer);
		err = err ? err : refused;
	}
	if (args->output == OUTPUT_JSON && answer.body.len)
		client_print_body(&answer);
	client_answer_release(&answer);
	buf_release(&body);
	return err;
}

static int client_fault_put(const struct command_args *args)
{
	static const char *const titles[] = {"file", "id", "date", "result", "error"};
	const struct client_fault_args *fault = client_fault_args_of(args);
	struct text_table table;
	bool failed = false;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < fault->files.count; i++)
		failed = client_fault_send(args, &table, fault->files.items[i]) || failed;
	if (args->output != OUTPUT_JSON)
		text_table_print(&table, args->output);
	text_table_release(&table);
	return failed ? EXIT_FAILED : EXIT_OK;
}

static int client_fault_run_import(const struct command_args *args)
{
	const struct client_fault_args *fault = client_fault_args_of(args);
	return client_fault_import(args, fault->datedir, fault->state);
}

static int client_fault_run_project(const struct command_args *args)
{
	return client_fault_project(args, &client_fault_args_of(args)->project);
}

static int client_fault_run_group(const struct command_args *args)
{
	const struct client_fault_args *fault = client_fault_args_of(args);
	bool says = fault->status || fault->in || fault->next || fault->reports || fault->within ||
		    fault->assignee || fault->tracker || fault->bug;
	return client_fault_group(args, fault->group, says);
}

static int client_fault_run_merge(const struct command_args *args)
{
	return client_fault_merge(args, client_fault_args_of(args)->group, "/merge");
}

static int client_fault_run_split(const struct command_args *args)
{
	return client_fault_merge(args, client_fault_args_of(args)->group, "/split");
}

static int client_fault_run_regroup(const struct command_args *args)
{
	return client_fault_regroup(args, client_fault_args_of(args)->dry_run);
}

/* ---- The commands ---------------------------------------------------------------------------- */

#define ROW(type, field, ...)   COMMAND_ROW(command_##type, client_fault_args, field, __VA_ARGS__)
#define PARAM(type, field, ...) ROW(type, field, __VA_ARGS__, .param = #field)

#define CLIENT_FAULT_ID                                                                            \
	ROW(text, id, NULL, "ID",                                                                  \
	    "its id, in large or small letters, with OOPS- in front of it or without",             \
	    .required = true)

static const struct command_option client_fault_show_options[] = {
	CLIENT_FAULT_ID,
	CLIENT_TENANT("whose report"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_bug_options[] = {
	CLIENT_FAULT_ID,
	PARAM(text, tracker, NULL, "TRACKER", "the tracker that has the bug", .required = true),
	PARAM(text, bug, NULL, "BUG", "which bug it is; empty: none", .required = true),
	CLIENT_TENANT("whose report"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

/* Facts of reports, by which lists choose. */
#define CLIENT_FAULT_FACTS(only)                                                                   \
	PARAM(text, context, "--context", "TEXT", only " this context"),                           \
		PARAM(text, exception, "--exception", "TEXT", only " this exception"),             \
		PARAM(text, host, "--host", "NAME", only " this machine"),                         \
		PARAM(text, release, "--release", "TEXT", only " this release"),                   \
		PARAM(text, environment, "--environment", "TEXT", only " this environment"),       \
		PARAM(text, level, "--level", "TEXT", only " this level"),                         \
		PARAM(text, user, "--user", "TEXT", only " this user")

static const struct command_option client_fault_list_options[] = {
	CLIENT_FAULT_FACTS("only of"),
	PARAM(text, group, "--group", "NAME", "only of this group"),
	ROW(text, search, "--search", "WORDS",
	    "only with these: word \"some words\" -word host:db1 -host:db1", .param = "q"),
	PARAM(time, since, "--since", "TIME", "received then or later"),
	PARAM(time, until, "--until", "TIME", "received before then", .otherwise = "now"),
	PARAM(text, limit, "--limit", "N", "at most so many, up to 1000", .otherwise = "100"),
	PARAM(text, token, "--token", "TOKEN", "go on behind the list that gave it"),
	CLIENT_TENANT("whose reports"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_tail_options[] = {
	CLIENT_FAULT_FACTS("only of"),
	PARAM(text, group, "--group", "NAME", "only of this group"),
	PARAM(text, token, "--token", "TOKEN", "begin behind the report whose place it is"),
	CLIENT_TENANT("whose reports"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_groups_options[] = {
	PARAM(time, since, "--since", "TIME", "days from this time's on", .otherwise = "13d-ago"),
	PARAM(time, until, "--until", "TIME", "days up to this time's", .otherwise = "now"),
	PARAM(text, status, "--status", "STATUS", "only open, resolved or muted ones"),
	CLIENT_FAULT_FACTS("only with reports of"),
	PARAM(text, sort, "--sort", "BY", "what stands first: last, first, count or users",
	      .otherwise = "last"),
	PARAM(text, limit, "--limit", "N", "at most so many, up to 1000", .otherwise = "100"),
	CLIENT_TENANT("whose groups"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_group_options[] = {
	ROW(text, group, NULL, "GROUP", "its name", .required = true),
	PARAM(text, status, "--status", "STATUS", "it is open, resolved or muted from now on"),
	PARAM(text, in, "--in", "RELEASE", "resolved in this release"),
	PARAM(flag, next, "--next", NULL, "resolved in a release after the latest that it has"),
	ROW(text, reports, "--until", "N", "muted until so many further reports", .param = "until"),
	PARAM(text, within, "--within", "HOURS", "that is, within so many whole hours, as 24h"),
	PARAM(text, assignee, "--assignee", "NAME", "whose it is; empty: nobody's"),
	PARAM(text, tracker, "--tracker", "NAME", "the tracker that has the bug"),
	PARAM(text, bug, "--bug", "BUG", "which bug it is; empty: none"),
	CLIENT_TENANT("whose group"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

#define CLIENT_FAULT_DRY_RUN                                                                       \
	ROW(flag, dry_run, "--dry-run", NULL, "change nothing", .param = "dryRun")

static const struct command_option client_fault_merge_options[] = {
	ROW(text, group, NULL, "GROUP", "its name", .required = true),
	PARAM(text, into, NULL, "INTO", "the group that stands for both", .required = true),
	CLIENT_FAULT_DRY_RUN,
	CLIENT_TENANT("whose groups"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_split_options[] = {
	ROW(text, group, NULL, "GROUP", "its name", .required = true),
	CLIENT_FAULT_DRY_RUN,
	CLIENT_TENANT("whose groups"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_regroup_options[] = {
	ROW(flag, dry_run, "--dry-run", NULL, "change nothing"),
	CLIENT_TENANT("whose groups"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_messages_options[] = {
	PARAM(text, kind, "--kind", "KIND", "only new, regressed, unmuted, risen, day, held_back"),
	ROW(flag, held_back, "--held-back", NULL, "also those that were held back",
	    .param = "heldBack"),
	PARAM(time, since, "--since", "TIME", "made then or later"),
	PARAM(time, until, "--until", "TIME", "made before then", .otherwise = "now"),
	PARAM(text, limit, "--limit", "N", "at most so many, up to 1000", .otherwise = "100"),
	CLIENT_TENANT("whose messages"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

#define CLIENT_FAULT_DAY                                                                           \
	ROW(text, day, NULL, "DAY", "2026-11-24, 20261124, today or yesterday, in UTC",            \
	    .otherwise = "today")
#define CLIENT_FAULT_VOLUMES                                                                       \
	ROW(text, limit, "--limit", "N", "at most so many volumes", .otherwise = "1000")

static const struct command_option client_fault_day_options[] = {
	CLIENT_FAULT_DAY,
	ROW(text, from, "--from", "HH:MM", "only what was received from this minute on"),
	ROW(text, to, "--to", "HH:MM", "and before this one"),
	CLIENT_FAULT_VOLUMES,
	CLIENT_TENANT("whose reports"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_report_options[] = {
	CLIENT_FAULT_DAY,
	ROW(choice, format, "--output", "FORMAT", "what it is printed as", .letter = "-o",
	    .preset = "text", .choices = "text html json", .param = "format"),
	CLIENT_TENANT("whose reports"),
	CLIENT_SERVER,
};

static const struct command_option client_fault_recount_options[] = {
	CLIENT_FAULT_DAY, CLIENT_FAULT_VOLUMES, CLIENT_TENANT("whose reports"),
	CLIENT_SERVER,    CLIENT_OUTPUT,
};

static const struct command_option client_fault_gc_options[] = {
	ROW(flag, dry_run, "--dry-run", NULL, "only say how many would go", .param = "dryRun"),
	PARAM(time, before, "--before", "TIME", "those that were received before",
	      .otherwise = "by fault.keep"),
	PARAM(text, bytes, "--bytes", "N",
	      "those of the fullest groups, until all take no more bytes",
	      .otherwise = "by fault.keep_bytes"),
	PARAM(text, newest, "--newest", "N", "so many of each group stay",
	      .otherwise = "by fault.keep_newest"),
	CLIENT_TENANT("whose reports"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_delete_options[] = {
	PARAM(text, user, "--user", "NAME", "whose reports go, as lists show the name",
	      .required = true),
	ROW(flag, dry_run, "--dry-run", NULL, "only say how many would go", .param = "dryRun"),
	CLIENT_TENANT("whose reports"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_put_options[] = {
	ROW(text, files, NULL, "FILE", "one report, or JSON with an array of them",
	    .required = true, .words_max = COMMAND_WORDS_MAX),
	CLIENT_TENANT("whose reports they are"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_import_options[] = {
	ROW(text, datedir, NULL, "DATEDIR", "a folder with one for each day, as 2026-11-24",
	    .required = true),
	ROW(text, state, "--state", "FILE", "where it notes how far it came",
	    .otherwise = "DATEDIR/metadata/granary-import"),
	CLIENT_TENANT("whose reports they are"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_fault_project_options[] = {
	ROW(text, project, NULL, "WHAT", "list, add NAME, key add NUMBER or key remove NUMBER KEY",
	    .required = true, .words_max = 4),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

#define CLIENT_FAULT_DAY_COLUMNS                                                                   \
	"total\treports that were received on that day\n"                                          \
	"duration\tthe longest, a row each: ms and id\n"                                           \
	"statement count\tthose with most statements of a database, a row each: count and id\n"    \
	"volume\thow many there were of each context and exception, the most first\n"              \
	"rest\treports of contexts and exceptions beyond fault.names_max\n"

static const struct command client_fault_verbs[] = {
	{.name = "fault show",
	 .summary = "prints one report",
	 .about = "Prints all attributes of a report.\n",
	 COMMAND_TAKES(client_fault_show_options, client_fault_args),
	 .run = client_fault_show},
	{.name = "fault bug",
	 .summary = "says which bug a report is",
	 .about =
		 "Says which bug of a tracker a report is, and prints the report: it has the bug "
		 "as bug.TRACKER from then on, instead of what it came with. An empty BUG takes it "
		 "away. fault gc keeps reports that have a bug.\n",
	 COMMAND_TAKES(client_fault_bug_options, client_fault_args),
	 .run = client_fault_say_bug},
	{.name = "fault list",
	 .summary = "lists reports, newest first",
	 .about = "Lists reports by the time of receipt, newest first: duration is in ms, "
		  "statements "
		  "are those of a database in the timeline.\n",
	 COMMAND_TAKES(client_fault_list_options, client_fault_args),
	 .run = client_fault_list},
	{.name = "fault tail",
	 .summary = "prints reports as they come",
	 .about = "Prints each report when it has come, with JSON one a line, until it is ended. "
		  "If the server goes away, it goes on behind the last report when the server is "
		  "back.\n",
	 COMMAND_TAKES(client_fault_tail_options, client_fault_args),
	 .run = client_fault_tail},
	{.name = "fault why",
	 .summary = "says why a report is in its group",
	 .about =
		 "Prints the group of a report, the rule by which it was made and the words that "
		 "made it: types, frames, a message. A word that is not the application's counts "
		 "in the hash of all frames only. If the report's own group is merged into another "
		 "one, own_group is its name.\n",
	 COMMAND_TAKES(client_fault_show_options, client_fault_args),
	 .run = client_fault_why},
	{.name = "fault groups",
	 .summary = "lists groups of reports",
	 .about = "Lists groups with reports of these days: how many reports and users each has, "
		  "when the first and the last were received, and whether it is open.\n",
	 COMMAND_TAKES(client_fault_groups_options, client_fault_args),
	 .run = client_fault_groups},
	{.name = "fault group",
	 .summary = "prints one group, or says something of it",
	 .about = "Prints a group: its newest report, its releases, machines, users and days. With "
		  "--status, --assignee, or --tracker and --bug it says something of it first:\n"
		  "open\tit is to be looked at\n"
		  "resolved\tthe next report opens it again; with --in or --next only the "
		  "first of a release that has the mend\n"
		  "muted\treports do not open it again; with --until so many reports do\n",
	 COMMAND_TAKES(client_fault_group_options, client_fault_args),
	 .run = client_fault_run_group},
	{.name = "fault merge",
	 .summary = "merges a group into another one",
	 .about = "Merges a group into another one, which stands for both from then on. Prints "
		  "what "
		  "the group has, and what the other one is with it:\n"
		  "moves\tthe group that is merged, with those that are merged into it\n"
		  "becomes\tthe group that stands for both\n"
		  "What was said of the other group counts. Nothing that is stored changes, so "
		  "fault "
		  "split takes all of it back.\n",
	 COMMAND_TAKES(client_fault_merge_options, client_fault_args),
	 .run = client_fault_run_merge},
	{.name = "fault split",
	 .summary = "splits a group off that was merged into another one",
	 .about = "Makes a group that was merged a group of its own again, with the groups that "
		  "are merged into it, and with what was said of it before. Prints what it has, "
		  "and what the other one is without it:\n"
		  "moves\tthe group that is split off\n"
		  "becomes\tthe group that stood for it\n",
	 COMMAND_TAKES(client_fault_split_options, client_fault_args),
	 .run = client_fault_run_split},
	{.name = "fault regroup",
	 .summary = "merges groups that are one fault by the rules of today",
	 .about =
		 "Looks through the reports that are stored, and merges groups of which reports "
		 "have one hash of all frames, into the one with the earliest report. Reports that "
		 "come later find their group by such a hash themselves. Earlier reports, and "
		 "reports that two servers took at one moment, may have several groups for one "
		 "fault. Prints what was merged, or with --dry-run what would be:\n"
		 "group\tthe group that is merged\n"
		 "into\tthe group that stands for both; fault split takes it back\n"
		 "hash\tthe hash of all frames that reports of both have\n",
	 COMMAND_TAKES(client_fault_regroup_options, client_fault_args),
	 .run = client_fault_run_regroup},
	{.name = "fault messages",
	 .summary = "lists what reports have brought about",
	 .about = "Lists messages, newest first. Each is of one cause and has an id of its own:\n"
		  "new\tthe first report of a group\n"
		  "regressed\ta report of a group that was resolved\n"
		  "unmuted\ta muted group has as many reports as were to be waited for\n"
		  "risen\ta group has more reports today than it usually has by this time\n"
		  "day\ta day that had reports is over\n"
		  "held_back\thow many messages of an hour were more than fault.messages_max\n",
	 COMMAND_TAKES(client_fault_messages_options, client_fault_args),
	 .run = client_fault_messages},
	{.name = "fault day",
	 .summary = "prints the summary of a day",
	 .about = "Prints what a day's reports add up to:\n" CLIENT_FAULT_DAY_COLUMNS
		  "With --from or --to the reports of that time are counted for the answer.\n",
	 COMMAND_TAKES(client_fault_day_options, client_fault_args),
	 .run = client_fault_day},
	{.name = "fault report",
	 .summary = "prints the daily report",
	 .about = "Prints what happened on a day: new groups; the pages that took longest, and had "
		  "most statements; time-outs by page; and the groups of each class, those with "
		  "most reports first. Of a day that is not over it is the report so far.\n",
	 COMMAND_TAKES(client_fault_report_options, client_fault_args),
	 .run = client_fault_report},
	{.name = "fault recount",
	 .summary = "counts the reports of a day anew",
	 .about = "Counts the reports of a day anew from what is stored, and prints the "
		  "summary:\n" CLIENT_FAULT_DAY_COLUMNS,
	 COMMAND_TAKES(client_fault_recount_options, client_fault_args),
	 .run = client_fault_recount},
	{.name = "fault gc",
	 .summary = "removes old reports, or those of the fullest groups",
	 .about =
		 "Removes reports and prints how many, and how many there are, with about how many "
		 "bytes on disk. The first and the newest of each group stay, and what a bug or a "
		 "list of a day refers to; so do reports that are not packed close yet, and those "
		 "of days that are not over. What days and groups add up to stays as it is. "
		 "Without --before and --bytes the options fault.keep and fault.keep_bytes say "
		 "what goes, as the server does by itself every fault.collect_every.\n",
	 COMMAND_TAKES(client_fault_gc_options, client_fault_args),
	 .run = client_fault_gc},
	{.name = "fault delete",
	 .summary = "removes all reports of a user",
	 .about =
		 "Removes all reports of a user that have come so far, and prints how many, of how "
		 "many days. When it ends no answer has them: summaries of days and groups are "
		 "recounted without them, and have the name no more. Their bytes go when the "
		 "reports around them were packed close, and collection has come to them: within "
		 "two days.\n",
	 COMMAND_TAKES(client_fault_delete_options, client_fault_args),
	 .run = client_fault_delete},
	{.name = "fault put",
	 .summary = "sends reports to the server",
	 .about =
		 "Sends files with reports: JSON, BSON and rfc822 as python-oops writes them, also "
		 "packed by bzip2; of each report it prints what became of it:\n"
		 "taken\tit is on disk\n"
		 "repeated\tit was there already\n"
		 "conflict\tanother report has its id, which stays\n"
		 "failed\tit was not stored\n"
		 "Exit status: 0 all are taken or repeated, 1 not all, 2 wrong use.\n",
	 COMMAND_TAKES(client_fault_put_options, client_fault_args),
	 .run = client_fault_put},
	{.name = "fault import",
	 .summary = "sends a whole datedir to the server",
	 .about = "Sends each report of a datedir, as oops-datedir-repo of python-oops writes it, "
		  "and "
		  "prints a row for each day:\n"
		  "day\tits folder\n"
		  "files\thow many were read\n"
		  "taken\tof these, reports that are on disk now\n"
		  "repeated\tthose that the server had already\n"
		  "failed\tthose that were not stored; each is named, with the reason\n"
		  "Nothing is removed. Begun again, it goes on where it ended; a day is read again "
		  "if its folder has changed. The time of receipt is that of the import; that of "
		  "the report stays as reported.date.\n"
		  "Exit status: 0 all are taken or repeated, 1 not all, 2 wrong use.\n",
	 COMMAND_TAKES(client_fault_import_options, client_fault_args),
	 .run = client_fault_run_import},
	{.name = "fault project",
	 .summary = "lists and makes projects, to which Sentry's clients send",
	 .about = "A project is a tenant with a number and keys. Sentry's clients are given its "
		  "address, the DSN, as http://KEY@127.0.0.1:8470/1:\n"
		  "list\tall projects, a row for each key\n"
		  "add NAME\tmakes a project of the tenant NAME, and prints its DSN\n"
		  "key add NUMBER\tgives it one more key, and prints the DSN with it\n"
		  "key remove NUMBER KEY\tfrom then on whoever sends with this key is refused\n",
	 COMMAND_TAKES(client_fault_project_options, client_fault_args),
	 .run = client_fault_run_project},
};

const struct command client_fault = {
	.name = "fault",
	.summary = "take in, list and count reports of faults",
	.examples = "granary fault put OOPS-7f3c.json\n"
		    "granary fault import /var/lib/oops\n"
		    "granary fault list --context /login --since 1h-ago\n"
		    "granary fault tail --level error -o json\n"
		    "granary fault messages --since 1d-ago\n"
		    "granary fault day yesterday -o table\n"
		    "granary fault report yesterday | mail -s faults team@example.org\n"
		    "granary fault groups --status open --sort count -o table\n"
		    "granary fault group 1-541d1cfa6743c1f07c79 --status resolved --in 1.4.3\n"
		    "granary fault merge 1-541d1cfa6743c1f07c79 1-ba165fb1bd0d18b7c6f1 --dry-run\n"
		    "granary fault show OOPS-7f3c\n"
		    "granary fault bug OOPS-7f3c launchpad 1234\n"
		    "granary fault gc --before 90d-ago --dry-run\n"
		    "granary fault project add shop\n",
	COMMAND_VERBS(client_fault_verbs),
};
