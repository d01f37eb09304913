/* Command lines, and the help and manual page that are made of the same rows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

#include "base/buf.h"
#include "cmd/client.h"
#include "cmd/client_private.h"

struct ask_args {
	struct command_args line;
	const char *metric, *start, *fill, *to;
	struct command_words tags;
	int64_t rows;
	bool explain;
};

#define ROW(type, field, ...) COMMAND_ROW(command_##type, ask_args, field, __VA_ARGS__)
static const struct command_option ask_options[] = {
	ROW(text, metric, NULL, "METRIC", "whose samples", .required = true, .param = "metricName"),
	ROW(tag, tags, NULL, "TAG=VALUE", "must match", .words_max = 2, .param = "tag"),
	ROW(time, start, "--start", "TIME", "first time", .preset = "1h-ago", .param = "start"),
	ROW(choice, fill, "--fill", "NAME", "what is put in", .choices = "none zero",
	    .param = "fill"),
	ROW(text, to, "--to", "DIR", "where it goes", .required = true),
	ROW(number, rows, "--rows", "N", "how many", .letter = "-r", .min = 1, .max = 7),
	ROW(flag, explain, "--explain", NULL, "say how", .param = "explain"),
	CLIENT_TENANT("whose data"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command ask = {
	.name = "ask",
	.summary = "ask something",
	.about = "Asks.\nterm\twhat it means\n",
	.examples = "granary ask cpu\n",
	COMMAND_TAKES(ask_options, ask_args),
};

/* Letters as net-snmp's, and options of the configuration. */
static const struct command_option tell_options[] = {
	ROW(text, metric, NULL, "DEVICE", "which", .required = true),
	ROW(text, start, "-c", "COMMUNITY", "its name", .preset = "public"),
	ROW(number, rows, "-Cr", "NUMBER", "rows", .max = 50),
	ROW(flag, explain, "-On", NULL, "numbers only"),
};

static const struct command tell_verbs[] = {
	{.name = "tell all", COMMAND_TAKES(tell_options, ask_args), .letters = true},
	{.name = "tell one",
	 COMMAND_TAKES(tell_options, ask_args),
	 .letters = true,
	 .takes_conf = true},
};
static const struct command tell = {.name = "tell", COMMAND_VERBS(tell_verbs)};

/* ---- Parsing --------------------------------------------------------------------------------- */

static char complaint[1000];

static int parse(const struct command *command, struct ask_args *args, int argc, char *const *argv)
{
	FILE *captured = tmpfile();
	int saved = dup(STDERR_FILENO);
	assert_non_null(captured);
	assert_true(dup2(fileno(captured), STDERR_FILENO) >= 0);
	memset(args, 0, sizeof(*args));
	int err = command_parse(command, argc, argv, &args->line);
	fflush(stderr);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	rewind(captured);
	complaint[fread(complaint, 1, sizeof(complaint) - 1, captured)] = 0;
	fclose(captured);
	return err;
}

#define PARSE_OF(command, args, ...)                                                               \
	parse(command, args, (int)ARRAY_LEN(((char *const[]){__VA_ARGS__})),                       \
	      (char *const[]){__VA_ARGS__})
#define PARSE(args, ...) PARSE_OF(&ask, args, "--to", "d", __VA_ARGS__)

#define REFUSED(sentence, ...)                                                                     \
	do {                                                                                       \
		struct ask_args refused;                                                           \
		assert_int_equal(PARSE(&refused, __VA_ARGS__), ERR_INVALID);                       \
		assert_string_equal(complaint, "granary ask: " sentence                            \
					       "; `granary help ask` shows how it is used\n");     \
		command_args_release(&refused.line);                                               \
	} while (0)

static void options_and_words_mix(UNUSED void **state)
{
	struct ask_args args;
	assert_int_equal(PARSE(&args, "m", "--start", "2h-ago", "a=b", "-o", "json",
			       "--server=http://x:1/", "-r", "7", "--explain"),
			 0);
	assert_string_equal(args.metric, "m");
	assert_int_equal(args.tags.count, 1);
	assert_string_equal(args.tags.items[0], "a=b");
	assert_string_equal(args.start, "2h-ago");
	assert_string_equal(args.line.server, "http://x:1/");
	assert_null(args.line.tenant);
	assert_int_equal(args.line.output, OUTPUT_JSON);
	assert_int_equal(args.rows, 7);
	assert_true(args.explain);
	command_args_release(&args.line);
}

static void what_is_not_given_has_its_preset(UNUSED void **state)
{
	struct ask_args args;
	assert_int_equal(PARSE(&args, "m"), 0);
	assert_string_equal(args.start, "1h-ago");
	assert_null(args.line.server);
	assert_null(args.fill);
	assert_false(args.explain);
	assert_int_equal(args.tags.count, 0);
	command_args_release(&args.line);
}

static void negative_numbers_and_dashes_are_words(UNUSED void **state)
{
	struct ask_args args;
	assert_int_equal(PARSE(&args, "-1.5", "-.5=x"), 0);
	assert_string_equal(args.metric, "-1.5");
	assert_int_equal(args.tags.count, 1);
	command_args_release(&args.line);
	assert_int_equal(PARSE(&args, "-"), 0);
	assert_string_equal(args.metric, "-");
	command_args_release(&args.line);
	assert_int_equal(PARSE(&args, "--", "--start", "-o=1"), 0);
	assert_string_equal(args.metric, "--start");
	assert_int_equal(args.tags.count, 1);
	assert_string_equal(args.start, "1h-ago");
	command_args_release(&args.line);
}

static void a_wrong_line_is_refused_by_name(UNUSED void **state)
{
	REFUSED("c=d is one word too many", "m", "a=b", "b=c", "c=d");
	REFUSED("METRIC is missing", "-o", "json");
	REFUSED("--start needs a value: TIME", "m", "--start");
	REFUSED("--output: \"xml\" is not table, csv or json", "m", "-o", "xml");
	REFUSED("there is no option --nosuch", "m", "--nosuch", "1");
	REFUSED("there is no option --starts", "m", "--starts=1");
	REFUSED("there is no option --data", "m", "--data", "d"); /* another command's */
	REFUSED("--explain takes no value", "m", "--explain=1");
	REFUSED("--tenant: \"a b\" is not the name of a tenant", "m", "--tenant", "a b");
	REFUSED("--tenant: \"a\r\nX: y\" is not the name of a tenant", "m", "--tenant",
		"a\r\nX: y");
	REFUSED("--rows: \"8\" is not a number from 1 to 7", "m", "--rows", "8");
	REFUSED("--rows: \"0\" is not a number from 1 to 7", "m", "-r", "0");
	REFUSED("--rows: \"1x\" is not a number from 1 to 7", "m", "-r", "1x");
	REFUSED("--rows: \"99999999999999999999\" is not a number from 1 to 7", "m",
		"--rows=99999999999999999999");
	REFUSED("--fill: \"zer\" is not one of: none zero", "m", "--fill", "zer");
	REFUSED("--fill: \"none zero\" is not one of: none zero", "m", "--fill", "none zero");
	struct ask_args args;
	assert_int_equal(PARSE_OF(&ask, &args, "m"), ERR_INVALID);
	assert_non_null(strstr(complaint, "--to is missing"));
	command_args_release(&args.line);
}

static void tags_have_a_name(UNUSED void **state)
{
	struct ask_args args;
	assert_int_equal(PARSE(&args, "m", "a=b", "c="), 0);
	assert_int_equal(args.tags.count, 2);
	command_args_release(&args.line);
	REFUSED("\"ab\" is not TAG=VALUE", "m", "ab");
	REFUSED("\"=b\" is not TAG=VALUE", "m", "=b");
}

static void letters_take_their_value_at_once_or_next(UNUSED void **state)
{
	static char *const lines[][5] = {
		{"one", "-cpriv=1", "-Cr10", "-On", "router"},
		{"-c", "priv=1", "one", "-Cr10", "router"},
		{"one", "router", "-C", "r10", "-cpriv=1"},
		{"one", "router", "-cpriv=1", "-Cr", "10"},
	};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct ask_args args;
		const struct command *verb = command_verb(&tell, 5, lines[i]);
		assert_ptr_equal(verb, &tell_verbs[1]);
		assert_int_equal(parse(verb, &args, 5, lines[i]), 0);
		assert_string_equal(args.metric, "router");
		assert_string_equal(args.start, "priv=1");
		assert_int_equal(args.rows, 10);
		command_args_release(&args.line);
	}
}

static void options_of_the_configuration_are_passed_on(UNUSED void **state)
{
	struct ask_args args;
	assert_int_equal(PARSE_OF(&tell_verbs[1], &args, "one", "--config", "f.yml", "router",
				  "--log.level=warn", "-c", "x"),
			 0);
	assert_int_equal(args.line.conf_argc, 3);
	assert_string_equal(args.line.conf_argv[0], "--config");
	assert_string_equal(args.line.conf_argv[1], "f.yml");
	assert_string_equal(args.line.conf_argv[2], "--log.level=warn");
	assert_string_equal(args.metric, "router");
	command_args_release(&args.line);
	assert_int_equal(PARSE_OF(&tell_verbs[0], &args, "all", "router", "--config", "f.yml"),
			 ERR_INVALID);
	assert_non_null(strstr(complaint, "granary tell all: there is no option --config;"));
	command_args_release(&args.line);
}

/* ---- What is sent -----------------------------------------------------------------------------
 */

static void a_route_has_the_parameters_that_rows_name(UNUSED void **state)
{
	struct ask_args args;
	struct buf path;
	assert_int_equal(PARSE(&args, "m", "a=b", "c=", "--explain", "-r", "2"), 0);
	client_route(&path, &args.line, "/api/ask");
	assert_string_equal(path.data, "/api/ask?metricName=m&tag=a%3Db&tag=c%3D&start=1h-ago"
				       "&explain=true");
	client_param(&path, "x", "y");
	assert_string_equal(path.data + path.len - 4, "&x=y");
	buf_release(&path);
	command_args_release(&args.line);
	assert_int_equal(PARSE(&args, "m", "--start=now", "--fill", "zero"), 0);
	client_route(&path, &args.line, "/api/ask");
	assert_string_equal(path.data, "/api/ask?metricName=m&start=now&fill=zero");
	buf_release(&path);
	command_args_release(&args.line);
}

/* ---- Help ------------------------------------------------------------------------------------ */

static void help_is_made_of_the_rows(UNUSED void **state)
{
	struct buf out;
	buf_init(&out, 10000);
	command_help(&ask, &out);
	buf_append_char(&out, 0);
	assert_string_equal(
		out.data,
		"usage: granary ask METRIC [TAG=VALUE...] --to DIR [options]\n"
		"\n"
		"Asks.\n"
		"\n"
		"  term                 what it means\n"
		"\n"
		"  METRIC               whose samples\n"
		"  TAG=VALUE            must match\n"
		"  --start TIME         first time (default 1h-ago)\n"
		"  --fill NAME          what is put in (one of none zero)\n"
		"  --to DIR             where it goes\n"
		"  -r, --rows N         how many (1 to 7)\n"
		"  --explain            say how\n"
		"  --tenant NAME        whose data (default default, or the first of the token's)\n"
		"  --server URL         where the server is: http://, https:// or unix:PATH "
		"(default\n"
		"                       $GRANARY_SERVER, else unix:./var/granary.sock or the same "
		"in\n"
		"                       /var/lib/granary if a server is there, else "
		"http://127.0.0.1:8470)\n"
		"  --token-file FILE    the file with the token to show there (default "
		"$GRANARY_TOKEN_FILE)\n"
		"  --ca FILE            certificates in PEM, by one of which the server's is "
		"signed, or its\n"
		"                       own (default $GRANARY_CA_FILE, else those that the system "
		"trusts)\n"
		"  -o, --output FORMAT  table, csv or json (default a table on a terminal, else "
		"csv)\n"
		"\n"
		"TIME is ISO 8601 (2020-08-24, 2020-08-24T16:34:05Z), seconds or milliseconds "
		"since "
		"1970,\n"
		"now, or a time ago: 90s-ago, 5m-ago, 1h-ago, 7d-ago.\n"
		"\n"
		"Examples:\n"
		"  granary ask cpu\n");
	buf_release(&out);
}

/* In the order of the rows, each after the one before. */
static void the_manual_has_every_option(UNUSED void **state)
{
	static const char *const parts[] = {
		".SS ask\n",
		"\\fBgranary ask METRIC [TAG=VALUE...] \\-\\-to DIR [options]\\fR\n",
		"\\fBterm\\fR\nwhat it means\n",
		"\\fB\\-\\-start TIME\\fR\nfirst time (default 1h\\-ago)\n",
		"\\fB\\-r, \\-\\-rows N\\fR\nhow many (1 to 7)\n",
		"\\fB\\-\\-explain\\fR\nsay how\n",
		"Examples:\n.nf\ngranary ask cpu\n.fi\n"};
	struct buf out;
	buf_init(&out, 10000);
	command_manual(&ask, &out);
	buf_append_char(&out, 0);
	const char *at = out.data;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		at = strstr(at, parts[i]);
		assert_non_null(at);
	}
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_and_words_mix),
		cmocka_unit_test(what_is_not_given_has_its_preset),
		cmocka_unit_test(negative_numbers_and_dashes_are_words),
		cmocka_unit_test(a_wrong_line_is_refused_by_name),
		cmocka_unit_test(tags_have_a_name),
		cmocka_unit_test(letters_take_their_value_at_once_or_next),
		cmocka_unit_test(options_of_the_configuration_are_passed_on),
		cmocka_unit_test(a_route_has_the_parameters_that_rows_name),
		cmocka_unit_test(help_is_made_of_the_rows),
		cmocka_unit_test(the_manual_has_every_option),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
