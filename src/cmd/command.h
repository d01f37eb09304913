/* The commands of the program: a row for each, and in it a row for each of its options and words.
 * Command lines are parsed by these rows (command_line.c), and errors, help and the manual page are
 * made of them (command_help.c), and what a shell offers (command_complete.c). The list of the
 * commands is in command.c.
 *
 * The arguments of a command are a struct of its own that begins with struct command_args. It is
 * filled before the command runs and released after that. */
#ifndef CMD_COMMAND_H
#define CMD_COMMAND_H

#include "base/base.h"
#include "base/mem.h"

struct buf;
struct command;
struct command_args;
struct command_option;

/* Exit statuses: of <sysexits.h> where it has one that a supervisor may know. */
enum command_exit {
	EXIT_OK = 0,
	EXIT_FAILED = 1,    /* it could not be done; standard error says why */
	EXIT_WRONG_USE = 2, /* the command line or the configuration is wrong */
	EXIT_IO = 74,       /* a commit failed: what the disk holds is known after a restart */
};

enum client_output { OUTPUT_TABLE, OUTPUT_CSV, OUTPUT_JSON };

enum { COMMAND_WORDS_MAX = 256 };

/* ---- Rows ------------------------------------------------------------------------------------ */

/* What the text of a value may be, and what it becomes. */
struct command_type {
	const char *is;      /* of a value that is none: `"x" is not ...` */
	const char *choices; /* words that are all values of this type; NULL: the row's, or any */
	/* Sets the field from the text; false: the text is no value of this type. */
	bool (*set)(const struct command_option *option, const char *text, void *field);
	void (*preset)(void *field); /* what holds unless given; NULL: zeros, or the row's preset */
	const char *note;            /* about all values of this type, once in each help; or NULL */
};

extern const struct command_type command_text;   /* const char *, as it was given */
extern const struct command_type command_flag;   /* bool: whether it was given */
extern const struct command_type command_choice; /* const char *, one of the row's choices */
extern const struct command_type command_number; /* int64_t, within the row's min and max */
extern const struct command_type command_tag;    /* const char *, TAG=VALUE */
extern const struct command_type command_time;   /* const char *: the server reads it */
extern const struct command_type command_conf;   /* no field: the configuration's to judge */

/* An option, or a word: an argument that its place names. */
struct command_option {
	const struct command_type *type;
	size_t offset;         /* of its field in the struct of the command's arguments */
	const char *name;      /* `--start`, or `-v`; NULL: a word */
	const char *value;     /* what help calls its value; NULL: a flag */
	const char *help;      /* a sentence without its stop; NULL: the name says it */
	const char *letter;    /* a short name besides, such as `-o` */
	const char *preset;    /* as one would write it; is set */
	const char *otherwise; /* what holds without it and a preset, for help only */
	const char *choices;   /* words with blanks between them */
	const char *param; /* of the server's route, where that takes it as it is: client_route() */
	int64_t min, max;
	bool required;
	size_t words_max; /* of words only. 0: it is one; else so many, in a struct command_words */
};

struct command_words {
	const char *const *items;
	size_t count;
};

struct command {
	const char *name;    /* `query`; of one of several verbs `device add` */
	const char *summary; /* a line of a list */
	/* Paragraphs, a line each; of a line with a tab the part before it is a term. May be NULL.
	 */
	const char *about;
	const char *examples;                 /* lines; may be NULL */
	const struct command_option *options; /* words first, in their order */
	size_t option_count;
	size_t args_bytes;                           /* of the struct of its arguments */
	int (*run)(const struct command_args *args); /* the exit status */
	/* Instead of `run` and options: what can follow the name. */
	const struct command *verbs;
	size_t verb_count;
	bool first_is_preset; /* without a verb it is the first one */
	bool takes_conf;      /* options of the configuration go to conf_argv */
	bool lists_conf;      /* help lists them */
	bool letters; /* the value may follow a letter at once, as to net-snmp's tools: -v2c */
};

/* An option of type `type` for this field of a struct `args`; then its name, value, help and more.
 */
#define COMMAND_ROW(type, args, field, ...)                                                        \
	{                                                                                          \
		&(type), offsetof(struct args, field), __VA_ARGS__                                 \
	}
#define COMMAND_TAKES(rows, args)                                                                  \
	.options = (rows), .option_count = ARRAY_LEN(rows), .args_bytes = sizeof(struct args)
#define COMMAND_VERBS(rows) .verbs = (rows), .verb_count = ARRAY_LEN(rows)

/* ---- Arguments ------------------------------------------------------------------------------- */

/* What each command's own struct begins with. */
struct command_args {
	const struct command *command;
	const char *server, *tenant; /* of the commands that talk to a server; NULL: not given */
	bool server_found; /* `server` is a socket in the directory of --data, which was found */
	const char *token_file, *ca_file; /* likewise; NULL: none is given */
	enum client_output output;
	char **conf_argv; /* arguments of the configuration */
	int conf_argc;
	struct arena memory; /* lists of words */
};

/* Fills `args`, which is `command->args_bytes` of zeros; of a verb's command the first word is the
 * verb. ERR_INVALID after a complaint. Texts point into argv. */
int command_parse(const struct command *command, int argc, char *const *argv,
		  struct command_args *args) MUST_CHECK;
void command_args_release(struct command_args *args);

/* The verb that the first word names. NULL: there is none; command_verb has complained of that. */
const struct command *command_find_verb(const struct command *noun, int argc, char *const *argv);
const struct command *command_verb(const struct command *noun, int argc, char *const *argv);

/* `granary NAME: ` and the sentence to standard error. command_usage says where help is, too, and
 * gives ERR_INVALID. */
void command_complain(const struct command_args *args, const char *fmt, ...) PRINTF_LIKE(2, 3);
int command_usage(const struct command_args *args, const char *fmt, ...) PRINTF_LIKE(2, 3);

/* ---- Help ------------------------------------------------------------------------------------ */

void command_help(const struct command *command, struct buf *out);
/* The same as a section of the manual page. */
void command_manual(const struct command *command, struct buf *out);

/* ---- Completion ------------------------------------------------------------------------------ */

/* How a line may go on whose last word, as far as it is typed, is `last`, behind the word `before`
 * (NULL: the command's name). Of a command with verbs only its name, or that of a verb. */
void command_complete(const struct command *command, const char *before, const char *last,
		      struct buf *out);
void command_complete_name(const struct command *command, const char *last, struct buf *out);

/* ---- The program ----------------------------------------------------------------------------- */

extern const struct command command_serve, command_poll;

/* What calls this program again from any directory, as a shell reads it: its name as it was typed
 * where the path of commands gave it, else the whole path of the executable. Static. */
const char *command_program(void);
/* A path as a shell reads it; `to` stays as it is where that is longer. */
void command_quote(const char *path, char *to, size_t size);

/* What main() is. */
int command_main(int argc, char *const *argv);

#endif
