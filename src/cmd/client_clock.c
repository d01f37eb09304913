/* clock: whether the server believes its clock, by which what is stored expires; and that it is
 * right (api/admin/clock.h). */
#include <string.h>

#include "cmd/client.h"
#include "cmd/client_private.h"
#include "wire/timetext.h"

const char client_clock_help[] =
	"usage: granary clock [accept] [options]\n"
	"\n"
	"Prints whether the server believes the clock of its machine. What expires by a wrong "
	"clock is\n"
	"gone for good. So after a jump, or a start at a time far from that of the last "
	"commit, nothing\n"
	"expires until the clock has stood for a day, or is back where it should be:\n"
	"\n"
	"  doubted   whether that is so\n"
	"  shows     what the clock shows\n"
	"  expected  what it should show by what is known: the time of the last commit, and "
	"what has\n"
	"            passed since the start\n"
	"  stood     for how many seconds it has stood where it is\n"
	"\n"
	"accept says that the clock is right, as after a month in which the machine was off. "
	"What has\n"
	"expired by it is removed then.\n"
	"\n"
	"  --server URL   where the server is (default http://127.0.0.1:8470)\n"
	"  -o FORMAT      table, csv or json; default: a table on a terminal, else csv\n"
	"\n"
	"Examples:\n"
	"  granary clock\n"
	"  granary clock accept\n";

static const struct client_command command = {"clock", client_clock_help,
					      OPTION_SERVER | OPTION_OUTPUT, 0, 1};

static void add_time(struct text_table *table, int64_t ms)
{
	char text[TIME_PRINT_MAX_BYTES];
	text_table_add(table, (struct slice){text, time_print(text, ms / 1000 * 1000)});
}

static void print_clock(const struct client_args *args, const struct json *root,
			UNUSED struct arena *arena)
{
	static const char *const titles[] = {"doubted", "shows", "expected", "stood"};
	struct text_table table;
	bool doubted = false;
	int err = json_get_bool(root, "doubted", &doubted, NULL);
	text_table_init(&table, ARRAY_LEN(titles), titles);
	text_table_add(&table, err ? SLICE("-") : doubted ? SLICE("yes") : SLICE("no"));
	add_time(&table, client_i64(root, "shows"));
	add_time(&table, client_i64(root, "expected"));
	text_table_addf(&table, "%lld", (long long)(client_i64(root, "stoodMs") / 1000));
	text_table_print(&table, args->output);
	text_table_release(&table);
}

int client_clock(int argc, char *const *argv)
{
	struct client_args args;
	const char *route = "/api/clock";
	int err = client_parse(&command, argc, argv, &args);
	if (err)
		return client_parse_exit(err);
	if (args.word_count && strcmp(args.words[0], "accept") != 0)
		return client_parse_exit(
			client_usage(&args, "\"%s\" is not accept", args.words[0]));
	if (args.word_count) {
		args.method = "POST";
		route = "/api/clock/accept";
	}
	return client_show_route(&args, route, NULL, 0, print_clock);
}
