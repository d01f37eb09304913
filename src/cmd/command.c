#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "cmd/client.h"
#include "cmd/command.h"
#include "cmd/terminal_escape.h"
#include "cmd/serve_conf.h"
#include "conf/conf.h"

enum { HELP_MAX_BYTES = 1 << 20 };

static const struct command command_config, command_manual_page, command_version, command_help_on,
	command_complete_line;

static const struct command *const commands[] = {
	&command_serve,    &command_poll,        &client_query,          &client_series,
	&client_metric,    &client_put,          &client_delete,         &client_device,
	&client_oidset,    &client_interface,    &client_fault,          &client_stream,
	&client_board,     &client_recompute,    &client_poller,         &client_agent,
	&client_stats,     &client_verify,       &client_compact,        &client_backup,
	&client_restore,   &client_repair,       &client_snmp,           &client_rollup,
	&client_retention, &client_clock,        &client_queue,          &client_export,
	&client_import,    &client_token,        &client_user,           &client_session,
	&command_config,   &command_manual_page, &command_complete_line, &command_version,
	&command_help_on,
};

static const struct command *command_find_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	}
	return NULL;
}

static const struct command *command_find(const char *name)
{
	const struct command *command = command_find_name(name);
	if (!command)
		terminal_complain("granary: there is no command %.100s; `granary help` lists them",
				  name);
	return command;
}

/* Prints the whole text; a closed pipe or a full disk is a failure. */
static int command_print(struct buf *text)
{
	ASSERT(!text->failed);
	size_t written = fwrite(text->data, 1, text->len, stdout);
	bool whole = written == text->len && fflush(stdout) == 0;
	buf_release(text);
	return whole ? EXIT_OK : EXIT_FAILED;
}

static int command_print_overview(void)
{
	struct buf out;
	buf_init(&out, HELP_MAX_BYTES);
	buf_append_text(&out, "usage: granary COMMAND [ARGUMENT...]\n\n"
			      "A time-series database and SNMP poller: the server, and commands "
			      "that ask it.\n\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		buf_printf(&out, "  %-9s  %s\n", commands[i]->name, commands[i]->summary);
	buf_append_text(&out, "\n`granary help COMMAND` says more.\n");
	return command_print(&out);
}

static int command_print_help(const struct command *command)
{
	struct buf out;
	buf_init(&out, HELP_MAX_BYTES);
	command_help(command, &out);
	return command_print(&out);
}

/* ---- help, version, manual, config ----------------------------------------------------------- */

struct command_help_args {
	struct command_args line;
	struct command_words names; /* of a command, perhaps with its verb */
};

static int command_help_run(const struct command_args *args)
{
	const struct command_help_args *asked =
		CONTAINER_OF(args, const struct command_help_args, line);
	if (!asked->names.count)
		return command_print_overview();
	const struct command *command = command_find(asked->names.items[0]);
	if (command && command->verbs && asked->names.count > 1)
		command = command_verb(command, 1, (char *const *)&asked->names.items[1]);
	return command ? command_print_help(command) : EXIT_WRONG_USE;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, command_help_args, field, __VA_ARGS__)
static const struct command_option command_help_options[] = {
	ROW(text, names, NULL, "COMMAND", .words_max = COMMAND_WORDS_MAX),
};
#undef ROW

static const struct command command_help_on = {
	.name = "help",
	.summary = "print this, or what a command does",
	.about = "Prints the commands, or what one of them does.\n",
	COMMAND_TAKES(command_help_options, command_help_args),
	.run = command_help_run,
};

static int command_version_run(UNUSED const struct command_args *args)
{
	struct buf out;
	buf_init(&out, HELP_MAX_BYTES);
	buf_append_text(&out, "granary " GRANARY_VERSION "\n");
	return command_print(&out);
}

static const struct command command_version = {
	.name = "version",
	.summary = "print the version",
	.about = "Prints the version.\n",
	.args_bytes = sizeof(struct command_args),
	.run = command_version_run,
};

static void command_manual_commands(struct buf *out)
{
	buf_append_text(out, ".TH GRANARY 1 \"\" \"granary " GRANARY_VERSION "\" \"\"\n"
			     ".SH NAME\ngranary \\- time-series database and SNMP poller\n"
			     ".SH SYNOPSIS\n\\fBgranary\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR...]\n"
			     ".SH COMMANDS\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		command_manual(commands[i], out);
	buf_append_text(out, ".SH SEE ALSO\n\\fBgranary.yml\\fR(5) has the options of serve.\n");
}

static void command_manual_conf(struct buf *out)
{
	buf_append_text(
		out,
		".TH GRANARY.YML 5 \"\" \"granary " GRANARY_VERSION "\" \"\"\n"
		".SH NAME\ngranary.yml \\- configuration of Granary\n"
		".SH SYNOPSIS\n\\fBgranary serve \\-\\-config\\fR \\fIFILE\\fR "
		"[\\fB\\-\\-\\fIOPTION\\fR \\fIVALUE\\fR]...\n"
		".SH DESCRIPTION\nThe file is YAML. A dot in the name of an option is a level of "
		"it, so that \\fBlog.level\\fR stands as\n.PP\n.nf\nlog:\n  level: debug\n.fi\n"
		".PP\nEach option is also an argument, \\fB\\-\\-log.level debug\\fR, which wins "
		"over the file. \\fBgranary config\\fR with the same arguments starts nothing, and "
		"prints what holds and where that comes from. What is marked \"reloads\" takes "
		"effect at a SIGHUP.\n"
		".SH OPTIONS\n");
	conf_manual(out);
	buf_append_text(out, ".SH SEE ALSO\n\\fBgranary\\fR(1)\n");
}

struct command_manual_args {
	struct command_args line;
	const char *section;
};

static int command_manual_run(const struct command_args *args)
{
	struct buf out;
	buf_init(&out, HELP_MAX_BYTES);
	if (CONTAINER_OF(args, const struct command_manual_args, line)->section[0] == '5')
		command_manual_conf(&out);
	else
		command_manual_commands(&out);
	return command_print(&out);
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, command_manual_args, field, __VA_ARGS__)
static const struct command_option command_manual_options[] = {
	ROW(choice, section, NULL, "SECTION", "1 the commands, 5 the configuration",
	    .choices = "1 5", .preset = "1"),
};
#undef ROW

static const struct command command_manual_page = {
	.name = "manual",
	.summary = "print a manual page",
	.about = "Prints a manual page: granary manual | man -l -\n",
	COMMAND_TAKES(command_manual_options, command_manual_args),
	.run = command_manual_run,
};

struct command_complete_args {
	struct command_args line;
	struct command_words words; /* of the line, without the program's name */
};

/* Commands, or the verbs of one. */
static void command_complete_names(const struct command *noun, const char *last, struct buf *out)
{
	for (size_t i = 0; !noun && i < ARRAY_LEN(commands); i++)
		command_complete_name(commands[i], last, out);
	for (size_t i = 0; noun && i < noun->verb_count; i++)
		command_complete_name(&noun->verbs[i], last, out);
}

/* `line` begins with the command, and `last` follows its words. */
static void command_complete_behind(const struct command *command, int words, char *const *line,
				    const char *last, struct buf *out)
{
	const struct command *verb = command_find_verb(command, words - 1, line + 1);
	const char *before = words > 1 ? line[words - 1] : NULL;
	if (command == &command_help_on && words == 1)
		command_complete_names(NULL, last, out);
	else if (command == &command_help_on && words == 2 && command_find_name(line[1]))
		command_complete_names(command_find_name(line[1]), last, out);
	else if (verb || !command->verbs)
		command_complete(verb ? verb : command, before, last, out);
	else
		command_complete_names(command, last, out);
}

static int command_complete_run(const struct command_args *args)
{
	const struct command_words *words =
		&CONTAINER_OF(args, const struct command_complete_args, line)->words;
	char *const *line = (char *const *)words->items;
	int before = (int)words->count - 1;
	const char *last = before < 0 ? "" : line[before];
	const struct command *command = before > 0 ? command_find_name(line[0]) : NULL;
	struct buf out;
	buf_init(&out, HELP_MAX_BYTES);
	if (before < 1)
		command_complete_names(NULL, last, &out);
	else if (command)
		command_complete_behind(command, before, line, last, &out);
	return command_print(&out);
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, command_complete_args, field, __VA_ARGS__)
static const struct command_option command_complete_options[] = {
	ROW(text, words, NULL, "WORD", .words_max = COMMAND_WORDS_MAX),
};
#undef ROW

static const struct command command_complete_line = {
	.name = "complete",
	.summary = "print how a command line may go on",
	.about =
		"Prints how the line `granary WORD...` may go on: what its last word, which may be "
		"empty, could become, each on a line with a tab and what it is. Shells ask so "
		"(bash, zsh, fish). Behind `--` all words are of that line.\n",
	COMMAND_TAKES(command_complete_options, command_complete_args),
	.run = command_complete_run,
};

struct config_args {
	struct command_args line;
	bool check;
};

static const struct command_option command_config_options[] = {
	COMMAND_ROW(command_flag, config_args, check, "--check", NULL,
		    "prints nothing but whether the configuration is good"),
};

static int command_config_run(const struct command_args *args)
{
	struct errbuf e = {""};
	struct serve_conf read;
	struct buf out;
	buf_init(&out, HELP_MAX_BYTES);
	int status = EXIT_WRONG_USE;
	if (serve_conf_read(&read, args, &e)) {
		command_complain(args, "%s", e.text);
		buf_release(&out);
	} else {
		if (CONTAINER_OF(args, const struct config_args, line)->check)
			buf_append_text(&out, "the configuration is good\n");
		else
			conf_dump(read.conf, &out);
		status = command_print(&out);
	}
	serve_conf_release(&read);
	return status;
}

static const struct command command_config = {
	.name = "config",
	.summary = "print the configuration",
	.about =
		"Prints the configuration that `granary serve` would have with these arguments, "
		"each value with where it comes from. The output is itself a file for --config. "
		"The configuration and the files that it names are read and checked as by a "
		"server. "
		"The store, its credentials, and whether the addresses are free are not looked at: "
		"so a server may refuse to start all the same, such as beyond loopback without a "
		"credential.\n"
		"Exit status: 0 it is good, 2 it is not.\n",
	COMMAND_TAKES(command_config_options, config_args),
	.run = command_config_run,
	.takes_conf = true,
};

/* ---- The program itself ---------------------------------------------------------------------- */

static char program[2 * PATH_MAX] = "granary";

const char *command_program(void)
{
	return program;
}

static bool command_is_plain(const char *path)
{
	return path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "/._-+:@%")] == 0;
}

/* In single quotes, which take all but themselves. */
void command_quote(const char *path, char *to, size_t size)
{
	struct buf out;
	if (command_is_plain(path)) {
		snprintf(to, size, "%s", path);
		return;
	}
	buf_init(&out, size - 1);
	buf_append_char(&out, '\'');
	for (; *path; path++) {
		if (*path == '\'')
			buf_append_text(&out, "'\\''");
		else
			buf_append_char(&out, *path);
	}
	buf_append_char(&out, '\'');
	if (!out.failed)
		snprintf(to, size, "%.*s", (int)out.len, out.data);
	buf_release(&out);
}

static void command_find_program(const char *typed)
{
	char path[PATH_MAX];
	if (!strchr(typed, '/'))
		snprintf(path, sizeof(path), "%s", *typed ? typed : "granary");
	else if (!realpath("/proc/self/exe", path) && !realpath(typed, path))
		return;
	command_quote(path, program, sizeof(program));
}

static bool command_asks_for_help(const char *argument)
{
	return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* Wherever it stands, as ./run puts options before it; behind `--` are words. */
static bool command_any_asks_for_help(int argc, char *const *argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (command_asks_for_help(argv[i]))
			return true;
	}
	return false;
}

/* What was printed goes out at the latest now. */
static int command_end_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "granary: what was to be printed could not be written: %s\n",
		strerror(errno));
	return EXIT_FAILED;
}

static int command_run(const struct command *command, int argc, char *const *argv)
{
	if (command->verbs)
		command = command_verb(command, argc, argv);
	if (!command)
		return EXIT_WRONG_USE;
	struct command_args *args = mem_zalloc(command->args_bytes);
	int status = command_parse(command, argc, argv, args) ? EXIT_WRONG_USE : command->run(args);
	command_args_release(args);
	mem_free(args);
	return command_end_output(status);
}

/* Where one of these is closed, the next file that is opened, as of data, would have its number,
 * and what is printed would go there. */
static void command_open_outputs(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			abort(); /* nobody could be told */
}

int command_main(int argc, char *const *argv)
{
	command_open_outputs();
	mem_keep_little();
	if (argc > 0)
		command_find_program(argv[0]);
	if (argc < 2) {
		command_print_overview();
		return EXIT_WRONG_USE;
	}
	if (command_asks_for_help(argv[1]))
		return command_print_overview();
	if (strcmp(argv[1], "--version") == 0)
		return command_version_run(NULL);
	const struct command *command = command_find(argv[1]);
	if (!command)
		return EXIT_WRONG_USE;
	if (command_any_asks_for_help(argc - 2, argv + 2)) {
		const struct command *verb = command_find_verb(command, argc - 2, argv + 2);
		return command_print_help(verb ? verb : command);
	}
	return command_run(command, argc - 2, argv + 2);
}
