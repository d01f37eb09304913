/* The commands of the program: one table row each (command.c), from which help is made. */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#include "base/base.h"

/* Exit statuses: of sysexits.h where it has one that a supervisor may know. */
enum command_exit {
	EXIT_OK = 0,
	EXIT_FAILED = 1,    /* it could not be done; standard error says why */
	EXIT_WRONG_USE = 2, /* the command line or the configuration is wrong */
	EXIT_IO = 74,       /* a commit failed: what the disk holds is known after a restart */
};

struct command {
	const char *name;
	const char *summary;                     /* a line in the list */
	int (*run)(int argc, char *const *argv); /* the arguments after the name; the exit status */
	const char *help;                        /* usage, options, examples */
	bool options; /* takes those of the configuration: help lists them */
};

int command_serve(int argc, char *const *argv);
int command_poll(int argc, char *const *argv);
int command_config(int argc, char *const *argv);

extern const char poll_help[];

/* What calls this program again from any directory, as a shell reads it: its name as it was typed
 * where the path of commands gave it, else the whole path of the executable. Static. */
const char *command_program(void);

/* What main() is. */
int command_main(int argc, char *const *argv);

#endif
