/* agent: agents elsewhere that follow log files for a server (api/admin/agents.h). */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/agent_process.h"
#include "cmd/client.h"
#include "cmd/client_private.h"

struct client_agent_args {
	struct command_args line;
	const char *name, *state;
};

static const struct client_agent_args *client_agent_args_of(const struct command_args *args)
{
	return CONTAINER_OF(args, const struct client_agent_args, line);
}

/* `following 3, stopped 1` */
static void client_agent_add_states(struct text_table *table, const struct json *agent)
{
	const struct json *states = json_member(agent, "states");
	struct buf text;
	buf_init(&text, CLIENT_PATH_MAX_BYTES);
	for (const struct json *one = states ? states->first : NULL; one; one = one->next) {
		if (!slice_equal(one->text, SLICE("0")))
			buf_printf(&text, "%s%.*s %.*s", text.len ? ", " : "", (int)one->key.len,
				   one->key.data, (int)one->text.len, one->text.data);
	}
	text_table_add(table, buf_slice(&text));
	buf_release(&text);
}

static bool client_agent_is(const struct json *agent, const char *what)
{
	const struct json *node = json_member(agent, what);
	return node && node->boolean;
}

static void client_agent_add_problem(struct text_table *table, const struct json *agent)
{
	if (client_agent_is(agent, "shared"))
		text_table_add(table, SLICE("several agents report under this name"));
	else
		text_table_add_member(table, agent, "problem");
}

static void client_agent_print_agents(const struct command_args *args, const struct json *root,
				      bool first)
{
	static const char *const titles[] = {"name",   "heard",  "silent",  "adaptors",
					     "behind", "states", "problem", "version"};
	const struct json *list = json_member(root, "agents");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	table.untitled = !first;
	for (const struct json *agent = list ? list->first : NULL; agent; agent = agent->next) {
		text_table_add_member(&table, agent, "name");
		client_fault_add_time(&table, agent, "heard");
		text_table_add_member(&table, agent, "silent");
		text_table_add_member(&table, agent, "adaptors");
		text_table_add_member(&table, agent, "behind");
		client_agent_add_states(&table, agent);
		client_agent_add_problem(&table, agent);
		text_table_add_member(&table, agent, "version");
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static void client_agent_print_adaptors(const struct command_args *args, const struct json *root,
					bool first)
{
	static const char *const titles[] = {"name",     "state", "behind",
					     "lastLine", "path",  "error"};
	const struct json *list = json_member(root, "adaptors");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	table.untitled = !first;
	for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
		text_table_add_member(&table, one, "name");
		text_table_add_member(&table, one, "state");
		text_table_add_member(&table, one, "behind");
		if (client_i64(one, "lastLine"))
			client_fault_add_time(&table, one, "lastLine");
		else
			text_table_add(&table, SLICE(""));
		text_table_add_member(&table, one, "path");
		text_table_add_member(&table, one, "error");
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
	if (first && client_agent_is(root, "silent"))
		terminal_complain("the agent has been silent for more than 30 s: this is what it "
				  "said last");
	if (first && client_agent_is(root, "shared"))
		terminal_complain("several agents report under this name, and this is what one of "
				  "them said: give each an agent.name of its own");
}

static int client_agent_list(const struct command_args *args)
{
	const struct client_agent_args *a = client_agent_args_of(args);
	struct buf path;
	if (!a->name && a->state) {
		command_complain(args, "--state selects adaptors of one agent: name the agent");
		return EXIT_WRONG_USE;
	}
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, a->name ? "/api/agents/" : "/api/agents", a->name ? a->name : "");
	if (a->state)
		client_param(&path, "state", a->state);
	int status = client_show_pages(
		args, &path, a->name ? client_agent_print_adaptors : client_agent_print_agents);
	buf_release(&path);
	return status;
}

#define ROW(type, field, ...) COMMAND_ROW(type, client_agent_args, field, __VA_ARGS__)

static const struct command_option client_agent_options[] = {
	ROW(command_text, name, NULL, "NAME", "an agent, whose adaptors are listed"),
	ROW(command_text, state, "--state", "STATE", "only adaptors in this state"),
	CLIENT_SERVER,
	ROW(client_output_type, line.output, "--output", "FORMAT", "table, csv or json",
	    .letter = "-o", .otherwise = "a table on a terminal, else csv"),
};

static const struct command_option client_agent_run_options[] = {
	ROW(command_text, line.server, "--server", "URL", "where what is followed is sent",
	    .otherwise = "agent.collectors"),
	CLIENT_TOKEN_FILE,
	CLIENT_CA_FILE,
	ROW(command_conf, line, "--config", "FILE", "what is followed: a section `adaptors`"),
	ROW(command_conf, line, "--data", "DIR",
	    "where the checkpoint is kept, in a directory `agent`"),
	ROW(command_conf, line, "--agent.chukwa", "DIR",
	    "a directory with the files of Chukwa's agent"),
	ROW(command_conf, line, "--agent.source", "NAME", "the source of the streams",
	    .otherwise = "the host's name"),
	ROW(command_conf, line, "--agent.cluster", "NAME", "the group of machines they belong to"),
	ROW(command_conf, line, "--agent.tenant", "NAME", "whose they are"),
	ROW(command_conf, line, "--agent.name", "NAME", "the name under which the agent reports",
	    .otherwise = "its source"),
	ROW(command_conf, line, "--log.level", "LEVEL", "what is logged"),
	ROW(command_conf, line, "--log.format", "FORMAT",
	    "how a line looks: text, json or journal"),
};

static const struct command client_agent_verbs[] = {
	{.name = "agent run",
	 .summary = "follow log files and deliver what is written to them; also without `run`",
	 .about = "Follows the files that FILE names in its section `adaptors` and sends what is "
		  "written to them to a server, whole, in order and once: over renaming, copying "
		  "and emptying, over restarts of the agent and of the server. A file's position "
		  "is kept in DIR/agent when the server has said that it is durable. SIGHUP reads "
		  "FILE again; SIGINT and SIGTERM stop cleanly.\n"
		  "Exit status: 0 stopped, 1 could not start, 2 wrong use.\n",
	 .examples = "granary agent --config granary.yml --server http://127.0.0.1:8470\n",
	 COMMAND_TAKES(client_agent_run_options, client_agent_args),
	 .run = agent_process_run,
	 .takes_conf = true},
	{.name = "agent list",
	 .summary = "list the agents that report to a server, or the adaptors of one",
	 .about = "Prints one line for each agent: when the server heard of it, whether it has "
		  "been silent for more than 30 s, how many adaptors it has, how many bytes it is "
		  "behind, in which states its adaptors are, and its problem. With NAME prints the "
		  "adaptors of that agent. Each is in one of these states:\n"
		  "following\tall that is in the file is sent\n"
		  "behind\tthe agent is sending\n"
		  "waiting\tthe collector does not take it now\n"
		  "missing\tthere is no file\n"
		  "stopped\tthere was a refusal for good, or an error that somebody has to mend\n"
		  "done\ta whole file was sent\n",
	 .examples = "granary agent list\ngranary agent list web1 --state stopped\n",
	 COMMAND_TAKES(client_agent_options, client_agent_args),
	 .run = client_agent_list},
};

const struct command client_agent = {
	.name = "agent",
	.summary = "follow log files for a server; list agents that do, and how it goes",
	COMMAND_VERBS(client_agent_verbs),
	.first_is_preset = true,
};
