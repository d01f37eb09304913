/* From a command line and the rows of a command to the struct of its arguments. */
#include <stdlib.h>

#include "base/buf.h"
#include "cmd/command.h"
#include "cmd/terminal_escape.h"

enum { COMPLAINT_MAX_BYTES = 8192, OPTIONS_MAX = 64, MEMORY_MAX_BYTES = 16 << 20 };

/* ---- Types ----------------------------------------------------------------------------------- */

static bool command_set_text(UNUSED const struct command_option *option, const char *text,
			     void *field)
{
	*(const char **)field = text;
	return true;
}

static bool command_set_flag(UNUSED const struct command_option *option, UNUSED const char *text,
			     void *field)
{
	*(bool *)field = true;
	return true;
}

static bool command_set_choice(const struct command_option *option, const char *text, void *field)
{
	size_t len = strlen(text);
	for (const char *at = option->choices; *at; at += strcspn(at, " "), at += *at == ' ') {
		if (strcspn(at, " ") == len && memcmp(at, text, len) == 0)
			return command_set_text(option, text, field);
	}
	return false;
}

static bool command_set_number(const struct command_option *option, const char *text, void *field)
{
	char *end;
	long long number = strtoll(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || number < option->min || number > option->max)
		return false;
	*(int64_t *)field = number;
	return true;
}

static bool command_set_tag(const struct command_option *option, const char *text, void *field)
{
	const char *equals = strchr(text, '=');
	return equals && equals != text && command_set_text(option, text, field);
}

const struct command_type command_text = {.set = command_set_text};
const struct command_type command_flag = {.set = command_set_flag};
const struct command_type command_choice = {.set = command_set_choice};
const struct command_type command_number = {.is = "a number", .set = command_set_number};
const struct command_type command_tag = {.is = "TAG=VALUE", .set = command_set_tag};
const struct command_type command_time = {
	.set = command_set_text,
	.note = "TIME is ISO 8601 (2020-08-24, 2020-08-24T16:34:05Z), seconds or milliseconds "
		"since 1970, now, or a time ago: 90s-ago, 5m-ago, 1h-ago, 7d-ago."};
const struct command_type command_conf = {.set = command_set_text};

/* ---- Complaints ------------------------------------------------------------------------------ */

void command_complain(const struct command_args *args, const char *fmt, ...)
{
	char sentence[COMPLAINT_MAX_BYTES];
	va_list arguments;
	va_start(arguments, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, arguments);
	va_end(arguments);
	terminal_complain("granary %s: %s", args->command->name, sentence);
}

int command_usage(const struct command_args *args, const char *fmt, ...)
{
	char sentence[COMPLAINT_MAX_BYTES];
	va_list arguments;
	va_start(arguments, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, arguments);
	va_end(arguments);
	command_complain(args, "%s; `granary help %s` shows how it is used", sentence,
			 args->command->name);
	return ERR_INVALID;
}

static const char *command_name_of(const struct command_option *option)
{
	return option->name ? option->name : option->value;
}

/* Names the option, what was given and what is allowed. */
static int command_refuse(const struct command_args *args, const struct command_option *option,
			  const char *text)
{
	const char *is = option->type->is;
	char name[COMPLAINT_MAX_BYTES] = "", allowed[COMPLAINT_MAX_BYTES];
	if (option->name)
		snprintf(name, sizeof(name), "%s: ", option->name);
	if (option->choices)
		snprintf(allowed, sizeof(allowed), "%s%s",
			 strchr(option->choices, ' ') ? "one of: " : "", option->choices);
	else if (option->max)
		snprintf(allowed, sizeof(allowed), "%s from %lld to %lld", is,
			 (long long)option->min, (long long)option->max);
	else
		snprintf(allowed, sizeof(allowed), "%s", is);
	return command_usage(args, "%s\"%s\" is not %s", name, text, allowed);
}

/* ---- Options --------------------------------------------------------------------------------- */

/* A command line on its way into `args`. */
struct command_line {
	struct command_args *args;
	int argc;
	char *const *argv;
	int at;
	const char **words;
	size_t word_count;
	bool only_words; /* after `--` */
	uint64_t given;  /* a bit for each row */
};

/* Whether what is no option of its own is for the configuration to judge. */
static bool command_is_all_conf(const struct command *command)
{
	return command->takes_conf && !(command->option_count && !command->options[0].name);
}

/* A negative number is a value, such as one to put, and a single dash is standard input. */
static bool command_looks_like_option(const struct command *command, const char *text)
{
	bool ends_options = strcmp(text, "--") == 0 && !command_is_all_conf(command);
	return text[0] == '-' && text[1] && !strchr("0123456789.", text[1]) && !ends_options;
}

/* Whether `text` is this name; *value: what it holds besides, or NULL. */
static bool command_is_name(const char *name, bool joined, const char *text, const char **value)
{
	size_t len = name ? strlen(name) : 0;
	if (!len || strncmp(text, name, len) != 0)
		return false;
	*value = text[len] == 0 ? NULL : joined ? text + len : text + len + 1;
	return text[len] == 0 || text[len] == '=' || joined;
}

/* The row of an option, or NULL. */
static const struct command_option *command_find_option(const struct command *command,
							const char *text, const char **value)
{
	for (size_t i = 0; i < command->option_count; i++) {
		const struct command_option *option = &command->options[i];
		if (command_is_name(option->name, command->letters, text, value) ||
		    command_is_name(option->letter, command->letters, text, value))
			return option;
	}
	return NULL;
}

static int command_set(struct command_line *line, const struct command_option *option,
		       const char *text)
{
	line->given |= UINT64_C(1) << (option - line->args->command->options);
	if (option->type->set(option, text, (char *)line->args + option->offset))
		return 0;
	return command_refuse(line->args, option, text);
}

static void command_give_conf(struct command_line *line, char *text)
{
	line->args->conf_argv[line->args->conf_argc++] = text;
}

/* An option that is the configuration's, with its value; conf_read knows whether it is one. */
static void command_take_conf(struct command_line *line)
{
	char *text = line->argv[line->at];
	bool has_value = strncmp(text, "--", 2) != 0 || strchr(text, '=');
	command_give_conf(line, text);
	if (!has_value && line->at + 1 < line->argc)
		command_give_conf(line, line->argv[++line->at]);
}

static int command_take_option(struct command_line *line)
{
	const struct command *command = line->args->command;
	const char *text = line->argv[line->at], *value = NULL;
	const char *next = line->at + 1 < line->argc ? line->argv[line->at + 1] : NULL;
	const struct command_option *option = command_find_option(command, text, &value);
	if (!option && command->letters && strlen(text) == 2 && next) {
		/* net-snmp's tools take `-C r10` for -Cr10. */
		const char *both = arena_printf(&line->args->memory, "%s%s", text, next);
		option = both ? command_find_option(command, both, &value) : NULL;
		line->at += option != NULL;
		next = line->at + 1 < line->argc ? line->argv[line->at + 1] : NULL;
	}
	bool is_conf = option ? option->type == &command_conf
			      : command->takes_conf && (!command->letters || text[1] == '-');
	if (is_conf) {
		command_take_conf(line);
		return 0;
	}
	if (!option)
		return command_usage(line->args, "there is no option %.*s", (int)strcspn(text, "="),
				     text);
	if (!option->value)
		return value ? command_usage(line->args, "%s takes no value",
					     command_name_of(option))
			     : command_set(line, option, text);
	if (!value && !next)
		return command_usage(line->args, "%s needs a value: %s", text, option->value);
	line->at += !value;
	return command_set(line, option, value ? value : next);
}

/* ---- Words ----------------------------------------------------------------------------------- */

static int command_take_words(struct command_line *line, const struct command_option *option,
			      size_t *at)
{
	struct command_words *field = (void *)((char *)line->args + option->offset);
	const char *checked;
	*field = (struct command_words){.items = line->words + *at};
	for (; *at < line->word_count && field->count < option->words_max; (*at)++) {
		const char *word = line->words[*at];
		if (!option->type->set(option, word, &checked))
			return command_refuse(line->args, option, word);
		field->count++;
	}
	line->given |= (uint64_t)(field->count > 0) << (option - line->args->command->options);
	return 0;
}

static int command_place_words(struct command_line *line)
{
	const struct command *command = line->args->command;
	size_t at = strchr(command->name, ' ') && line->word_count ? 1 : 0; /* behind the verb */
	int err = 0;
	for (size_t i = 0; i < command->option_count && !err; i++) {
		const struct command_option *option = &command->options[i];
		if (!option->name && option->words_max)
			err = command_take_words(line, option, &at);
		else if (!option->name && at < line->word_count)
			err = command_set(line, option, line->words[at++]);
	}
	if (!err && at < line->word_count)
		return command_usage(line->args, "%s is one word too many", line->words[at]);
	return err;
}

/* ---- The whole line -------------------------------------------------------------------------- */

static void command_preset(struct command_args *args)
{
	for (size_t i = 0; i < args->command->option_count; i++) {
		const struct command_option *option = &args->command->options[i];
		void *field = (char *)args + option->offset;
		if (option->preset) {
			bool is_value = option->type->set(option, option->preset, field);
			ASSERT(is_value);
		} else if (option->type->preset) {
			option->type->preset(field);
		}
	}
}

/* `run` of `granary agent run`, which no option of the configuration is. */
static bool command_is_verb_word(const struct command_line *line, const char *text)
{
	const char *space = strchr(line->args->command->name, ' ');
	return space && !line->word_count && strcmp(space + 1, text) == 0;
}

static int command_take_all(struct command_line *line)
{
	const struct command *command = line->args->command;
	for (; line->at < line->argc; line->at++) {
		const char *text = line->argv[line->at];
		int err = 0;
		if (!line->only_words && command_looks_like_option(command, text))
			err = command_take_option(line);
		else if (!line->only_words && strcmp(text, "--") == 0)
			line->only_words = true;
		else if (command_is_all_conf(command) && !command_is_verb_word(line, text))
			command_give_conf(line, line->argv[line->at]);
		else
			line->words[line->word_count++] = text;
		if (err)
			return err;
	}
	return command_place_words(line);
}

int command_parse(const struct command *command, int argc, char *const *argv,
		  struct command_args *args)
{
	struct command_line line = {.args = args, .argc = argc, .argv = argv};
	size_t bytes = ((size_t)argc + 1) * sizeof(char *);
	ASSERT(command->option_count <= OPTIONS_MAX);
	args->command = command;
	arena_init(&args->memory, MEMORY_MAX_BYTES);
	line.words = arena_alloc(&args->memory, bytes);
	args->conf_argv = arena_alloc(&args->memory, bytes);
	if (!line.words || !args->conf_argv)
		return command_usage(args, "there are too many words");
	command_preset(args);
	int err = command_take_all(&line);
	for (size_t i = 0; i < command->option_count && !err; i++) {
		const struct command_option *option = &command->options[i];
		/* A command with a configuration asks for its options when that has been read, so
		 * that a name which nobody knows is said first. */
		bool asked_later = command->takes_conf && option->name;
		if (option->required && !asked_later && !(line.given & UINT64_C(1) << i))
			err = command_usage(args, "%s is missing", command_name_of(option));
	}
	return err;
}

void command_args_release(struct command_args *args)
{
	arena_release(&args->memory);
}

/* Options may stand before the verb, as net-snmp's users write them. */
static int command_first_word(const struct command *command, int argc, char *const *argv)
{
	int at = 0;
	while (at < argc && command_looks_like_option(command, argv[at])) {
		const char *value;
		const struct command_option *option =
			command_find_option(command, argv[at], &value);
		bool is_conf = !option && command->takes_conf && strncmp(argv[at], "--", 2) == 0;
		if (!option && !is_conf)
			break;
		bool has_value = is_conf ? strchr(argv[at], '=') != NULL : value != NULL;
		at += (is_conf || option->value) && !has_value ? 2 : 1;
	}
	return at;
}

const struct command *command_find_verb(const struct command *noun, int argc, char *const *argv)
{
	int at = noun->verbs ? command_first_word(&noun->verbs[0], argc, argv) : argc;
	for (size_t i = 0; i < noun->verb_count && at < argc; i++) {
		if (strcmp(strchr(noun->verbs[i].name, ' ') + 1, argv[at]) == 0)
			return &noun->verbs[i];
	}
	return NULL;
}

const struct command *command_verb(const struct command *noun, int argc, char *const *argv)
{
	const struct command *verb = command_find_verb(noun, argc, argv);
	struct buf names;
	if (verb)
		return verb;
	int at = command_first_word(&noun->verbs[0], argc, argv);
	const char *word = at < argc ? argv[at] : NULL;
	if (!word && noun->first_is_preset)
		return &noun->verbs[0];
	buf_init(&names, COMPLAINT_MAX_BYTES);
	for (size_t i = 0; i < noun->verb_count; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", strchr(noun->verbs[i].name, ' ') + 1);
	terminal_complain(
		"granary %s: %s%.*s%s one of %.*s; `granary help %s` shows how it is used",
		noun->name,
		word ? "there is no command \"" : "a command is missing:", SLICE_SHOWN_MAX_BYTES,
		word ? word : "", word ? "\": it is" : "", (int)names.len, names.data, noun->name);
	buf_release(&names);
	return NULL;
}
