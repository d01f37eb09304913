/* poller: who polls devices for a server from elsewhere (api/admin/pollers.h). */
#include "cmd/client.h"
#include "cmd/client_private.h"

const char client_poller_help[] =
	"usage: granary poller list [options]\n"
	"\n"
	"Prints the pollers that report to a server (`granary poll`) or that devices name: their\n"
	"state - ok, failing with the reason, silent for more than 30 s -, when they were heard\n"
	"of, how many devices they have, and what lies in their spools: polls that wait, that the\n"
	"server refused (aside), that had no room (dropped, since their start).\n"
	"\n"
	"  --server URL    where the server is (default http://127.0.0.1:8470)\n"
	"  -o FORMAT       table, csv or json; default: a table on a terminal, else csv\n";

static const struct client_command command = {
	.name = "poller",
	.help = client_poller_help,
	.options = OPTION_SERVER | OPTION_OUTPUT,
	.words_min = 1,
	.words_max = 1,
};

static void print_pollers(const struct client_args *args, const struct json *root,
			  UNUSED struct arena *arena)
{
	static const char *const titles[] = {"name",    "state",   "lastHeard",
					     "devices", "pending", "pendingBytes",
					     "aside",   "dropped", "reason"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *poller = root->first; poller; poller = poller->next) {
		for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
			const struct json *member = json_member(poller, titles[i]);
			bool said = member && member->type != JSON_T_NULL;
			text_table_add(&table, said ? member->text : SLICE(""));
		}
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

int client_poller(int argc, char *const *argv)
{
	struct client_args args;
	int err = client_parse(&command, argc, argv, &args);
	if (err)
		return client_parse_exit(err);
	if (strcmp(args.words[0], "list") != 0) {
		client_usage(&args, "there is no poller command of that name");
		return CLIENT_USAGE;
	}
	return client_show(&args, "/api/pollers", args.output == OUTPUT_JSON, print_pollers);
}
