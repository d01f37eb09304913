/* poller: who polls devices for a server from elsewhere (api/admin/pollers.h). */
#include "cmd/client.h"
#include "cmd/client_private.h"

static void client_poller_print(const struct command_args *args, const struct json *root,
				UNUSED struct arena *arena)
{
	static const char *const titles[] = {"name",    "state",   "lastHeard",
					     "devices", "pending", "pendingBytes",
					     "aside",   "dropped", "reason"};
	text_table_print_list(root->first, titles, ARRAY_LEN(titles), args->output);
}

static int client_poller_list(const struct command_args *args)
{
	return client_show_route(args, NULL, "/api/pollers", client_poller_print);
}

static const struct command_option client_poller_options[] = {CLIENT_SERVER, CLIENT_OUTPUT};

static const struct command client_poller_verbs[] = {
	{.name = "poller list",
	 .summary = "the pollers that report to a server (`granary poll`) or that devices name: "
		    "their state - ok, failing with the reason, silent for more than 30 s -, when "
		    "they were heard of, how many devices they have, and what lies in their "
		    "spools: polls that wait, that the server refused (aside), that had no room "
		    "(dropped, since their start)",
	 COMMAND_TAKES(client_poller_options, command_args),
	 .run = client_poller_list},
};

const struct command client_poller = {
	.name = "poller",
	.summary = "print who polls devices from elsewhere",
	COMMAND_VERBS(client_poller_verbs),
};
