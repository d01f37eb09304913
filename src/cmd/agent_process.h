/* `granary agent`: follows log files and delivers what is written to them (doc/agent.md). */
#ifndef CMD_AGENT_PROCESS_H
#define CMD_AGENT_PROCESS_H

struct command_args;

/* Until it is stopped; gives the exit status. */
int agent_process_run(const struct command_args *args);

#endif
