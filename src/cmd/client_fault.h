/* What the files of the command `fault` share: its options, and what its verbs run. Each run
 * prints, and returns the exit status. */
#ifndef CMD_CLIENT_FAULT_H
#define CMD_CLIENT_FAULT_H

#include "cmd/client_private.h"

struct client_fault_args {
	struct command_args line;
	const char *id, *day, *format;
	const char *context, *exception, *host, *release, *environment, *level, *user, *group;
	const char *since, *until, *from, *to, *limit, *token, *search;
	const char *into;
	const char *status, *sort, *in, *reports, *within, *assignee, *tracker, *bug;
	bool next;
	const char *datedir, *state;
	const char *before, *bytes, *newest;
	bool dry_run;
	const char *kind;
	bool held_back;
	struct command_words files;
	struct command_words project;
};

static inline const struct client_fault_args *client_fault_args_of(const struct command_args *args)
{
	return CONTAINER_OF(args, const struct client_fault_args, line);
}

/* client_fault_day.c */
int client_fault_day(const struct command_args *args);
int client_fault_recount(const struct command_args *args);
int client_fault_gc(const struct command_args *args);
int client_fault_delete(const struct command_args *args);
int client_fault_report(const struct command_args *args);

#endif
