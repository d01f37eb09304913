#include <limits.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "cmd/client.h"
#include "cmd/command.h"
#include "cmd/terminal_escape.h"
#include "conf/conf.h"
#include "inventory/inventory.h"

enum { HELP_MAX_BYTES = 1 << 20 };

static int command_manual(int argc, char *const *argv);
static int command_version(int argc, char *const *argv);
static int command_help(int argc, char *const *argv);

static const char serve_help[] =
	"usage: granary serve [--OPTION VALUE | --OPTION=VALUE]...\n"
	"\n"
	"Serves until SIGINT or SIGTERM, then stops cleanly: requests at hand are answered, what "
	"was\n"
	"accepted is on disk. When it is ready it prints a line with its address. SIGHUP reads "
	"the\n"
	"configuration again; options that reload take effect.\n"
	"\n"
	"Exit status: 0 stopped, 1 could not start, 2 wrong configuration, 74 a commit failed.\n"
	"\n"
	"Options, each also a line of the file that --config names:\n";

static const char config_help[] =
	"usage: granary config [--OPTION VALUE | --OPTION=VALUE]...\n"
	"\n"
	"Prints the configuration that `granary serve` would have with these arguments, each "
	"value\n"
	"with where it comes from. The output is itself a file for --config.\n";

static const char manual_help[] = "usage: granary manual\n"
				  "\n"
				  "Prints the manual page: granary manual | man -l -\n";

static const char version_help[] = "usage: granary version\n"
				   "\n"
				   "Prints the version.\n";

static const char help_help[] = "usage: granary help [COMMAND]\n"
				"\n"
				"Prints the commands, or what one of them does.\n";

static const struct command commands[] = {
	{"serve", "run the server", command_serve, serve_help, true},
	{"poll", "poll devices near them, for a server elsewhere", command_poll, poll_help, false},
	{"query", "print samples", client_query, client_query_help, false},
	{"series", "print what there is: metrics and series", client_series, client_series_help,
	 false},
	{"metric", "print what is known of a metric; say its kind, unit and description",
	 client_metric, client_metric_help, false},
	{"put", "store samples", client_put, client_put_help, false},
	{"delete", "take samples and their roll-ups out of the store", client_delete,
	 client_delete_help, false},
	{"device", "say what is polled: add, change, list, rename, remove, poll, import",
	 client_device, client_device_help, false},
	{"oidset", "print the sets of OIDs that can be polled", client_oidset, client_oidset_help,
	 false},
	{"interface", "print interfaces, their rates, percentiles and volumes", client_interface,
	 client_interface_help, false},
	{"recompute", "make a device's rates once more from its raw data", client_recompute,
	 client_recompute_help, false},
	{"poller", "print who polls devices from elsewhere", client_poller, client_poller_help,
	 false},
	{"stats", "print how much is stored", client_stats, client_stats_help, false},
	{"verify", "read everything that is stored and check it", client_verify, client_verify_help,
	 false},
	{"compact", "rewrite a data directory to take the least room", client_compact,
	 client_compact_help, false},
	{"repair", "copy what is whole in a damaged data directory to a new one", client_repair,
	 client_repair_help, false},
	{"snmp", "ask a device by SNMP", client_snmp, client_snmp_help, false},
	{"rollup", "print what waits to be rolled up; mark it anew", client_rollup,
	 client_rollup_help, false},
	{"retention", "print how long what is kept, and how much of it there is", client_retention,
	 client_retention_help, false},
	{"clock", "print whether the clock is believed, by which data expires; accept it",
	 client_clock, client_clock_help, false},
	{"queue", "print what waits to be persisted", client_queue, client_queue_help, false},
	{"config", "print the configuration", command_config, config_help, false},
	{"manual", "print the manual page", command_manual, manual_help, false},
	{"version", "print the version", command_version, version_help, false},
	{"help", "print this, or what a command does", command_help, help_help, false},
};

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

/* Prints the whole text; a closed pipe or a full disk is a failure. */
static int print(struct buf *text)
{
	ASSERT(!text->failed);
	size_t written = fwrite(text->data, 1, text->len, stdout);
	bool whole = written == text->len && fflush(stdout) == 0;
	buf_release(text);
	return whole ? EXIT_OK : EXIT_FAILED;
}

static void list_commands(struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		buf_printf(out, "  %-9s  %s\n", commands[i].name, commands[i].summary);
}

static int print_overview(void)
{
	struct buf out;
	buf_init(&out, HELP_MAX_BYTES);
	buf_append_text(&out, "usage: granary COMMAND [ARGUMENT...]\n\n"
			      "Keeps what machines report, and answers questions about it.\n\n");
	list_commands(&out);
	buf_append_text(&out, "\n`granary help COMMAND` says more.\n");
	return print(&out);
}

static int print_help(const struct command *command)
{
	struct buf out;
	buf_init(&out, HELP_MAX_BYTES);
	buf_append_text(&out, command->help);
	if (command->options)
		conf_help(&out);
	return print(&out);
}

static int unknown(const char *name)
{
	terminal_complain("granary: there is no command %.100s; `granary help` lists them", name);
	return EXIT_WRONG_USE;
}

static int command_help(int argc, char *const *argv)
{
	if (argc == 0)
		return print_overview();
	const struct command *command = find(argv[0]);
	return command ? print_help(command) : unknown(argv[0]);
}

static int command_version(UNUSED int argc, UNUSED char *const *argv)
{
	struct buf out;
	buf_init(&out, HELP_MAX_BYTES);
	buf_append_text(&out, "granary " GRANARY_VERSION "\n");
	return print(&out);
}

static int command_manual(UNUSED int argc, UNUSED char *const *argv)
{
	struct buf out;
	buf_init(&out, HELP_MAX_BYTES);
	buf_append_text(&out,
			".TH GRANARY 1 \"\" \"granary " GRANARY_VERSION "\" \"\"\n"
			".SH NAME\ngranary \\- keep what machines report\n"
			".SH SYNOPSIS\n\\fBgranary\\fR \\fICOMMAND\\fR [\\fIARGUMENT\\fR...]\n"
			".SH COMMANDS\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		buf_printf(&out, ".TP\n\\fB%s\\fR\n%s\n", commands[i].name, commands[i].summary);
	buf_append_text(&out, ".SH OPTIONS OF SERVE\n");
	conf_manual(&out);
	return print(&out);
}

int command_config(int argc, char *const *argv)
{
	struct errbuf e = {""};
	struct conf *conf = conf_new();
	struct inventory_conf *inventory = NULL;
	struct buf out;
	buf_init(&out, HELP_MAX_BYTES);
	int status = EXIT_WRONG_USE;
	if (conf_read(conf, files_real(), argc, argv, &e) ||
	    inventory_conf_read(conf, files_real(), &inventory, &e)) {
		terminal_complain("granary config: %s", e.text);
		buf_release(&out);
	} else {
		conf_dump(conf, &out);
		status = print(&out);
	}
	inventory_conf_release(inventory);
	conf_free(conf);
	return status;
}

/* ---- The program itself ---------------------------------------------------------------------- */

static char program[2 * PATH_MAX] = "granary";

const char *command_program(void)
{
	return program;
}

static bool is_plain(const char *path)
{
	return path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				 "/._-+:@%")] == 0;
}

/* In single quotes, which take all but themselves. */
static void quote(const char *path, char *to, size_t size)
{
	struct buf out;
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

static void find_program(const char *typed)
{
	char path[PATH_MAX];
	if (!strchr(typed, '/'))
		snprintf(path, sizeof(path), "%s", *typed ? typed : "granary");
	else if (!realpath("/proc/self/exe", path) && !realpath(typed, path))
		return;
	if (is_plain(path))
		snprintf(program, sizeof(program), "%s", path);
	else
		quote(path, program, sizeof(program));
}

static bool asks_for_help(const char *argument)
{
	return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

/* Wherever it stands, as ./run puts options before it; behind `--` are words. */
static bool any_asks_for_help(int argc, char *const *argv)
{
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
		if (asks_for_help(argv[i]))
			return true;
	}
	return false;
}

int command_main(int argc, char *const *argv)
{
	mem_give_back();
	if (argc > 0)
		find_program(argv[0]);
	if (argc < 2) {
		print_overview();
		return EXIT_WRONG_USE;
	}
	if (asks_for_help(argv[1]))
		return print_overview();
	if (strcmp(argv[1], "--version") == 0)
		return command_version(0, NULL);
	const struct command *command = find(argv[1]);
	if (!command)
		return unknown(argv[1]);
	if (any_asks_for_help(argc - 2, argv + 2))
		return print_help(command);
	return command->run(argc - 2, argv + 2);
}
