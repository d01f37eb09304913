/* How a command line may go on, of the rows of its command: a line for each word that could stand
 * last, with a tab and what it is. Nothing: the shell may offer files. */
#include "base/buf.h"
#include "cmd/command.h"
#include "conf/conf.h"

enum { COMPLETE_LINE_MAX_BYTES = 4096 };

struct completing {
	const struct command *command;
	const char *last; /* what is typed of the last word */
	struct buf *out;
};

/* `begin` and `word`, if what is typed may become that. Of the help its first sentence. */
static void complete_offer(const struct completing *c, const char *begin, struct slice word,
			   const char *help)
{
	size_t typed = strlen(c->last), begins = strlen(begin);
	const char *stop = help ? strpbrk(help, ".:;\n") : NULL;
	size_t shown = stop ? (size_t)(stop - help) : help ? strlen(help) : 0;
	struct buf line;
	buf_init(&line, COMPLETE_LINE_MAX_BYTES);
	buf_append(&line, begin, begins);
	buf_append(&line, word.data, word.len);
	if (!line.failed && line.len >= typed && memcmp(line.data, c->last, typed) == 0)
		buf_printf(c->out, "%.*s\t%.*s\n", (int)line.len, line.data, (int)shown,
			   help ? help : "");
	buf_release(&line);
}

void command_complete_name(const struct command *command, const char *last, struct buf *out)
{
	const char *verb = strchr(command->name, ' ');
	complete_offer(&(struct completing){.last = last, .out = out}, "",
		       slice_of(verb ? verb + 1 : command->name), command->summary);
}

/* Words with blanks between them. */
static void complete_choices(const struct completing *c, const char *begin, const char *choices)
{
	while (choices && *choices) {
		size_t len = strcspn(choices, " ");
		complete_offer(c, begin, (struct slice){choices, len}, "");
		choices += len + (choices[len] == ' ');
	}
}

/* Offers the values of an option of the configuration. `name` is without dashes. */
static void complete_conf_value(const struct completing *c, const char *begin, struct slice name)
{
	int id = conf_find(name);
	if (id >= 0)
		complete_choices(c, begin,
				 conf_options[id].type == CONF_BOOL ? "false true"
								    : conf_options[id].choices);
}

/* The row whose value comes next, or NULL: `text` is `--name`, `--name=...` or a letter. */
static const struct command_option *complete_find_option(const struct command *command,
							 struct slice text)
{
	for (size_t i = 0; i < command->option_count; i++) {
		const struct command_option *option = &command->options[i];
		if ((option->name && slice_equal(slice_of(option->name), text)) ||
		    (option->letter && slice_equal(slice_of(option->letter), text)))
			return option;
	}
	return NULL;
}

/* True: `option` takes a value, of which all that is known has been offered. */
static bool complete_value(const struct completing *c, struct slice option, const char *begin)
{
	const struct command_option *row = complete_find_option(c->command, option);
	bool is_conf = row ? row->type == &command_conf : c->command->takes_conf;
	if (row && !row->value)
		return false;
	if (is_conf && option.len > 2 && memcmp(option.data, "--", 2) == 0)
		complete_conf_value(c, begin, (struct slice){option.data + 2, option.len - 2});
	else if (row)
		complete_choices(c, begin, row->choices ? row->choices : row->type->choices);
	return row || is_conf;
}

static void complete_options(const struct completing *c)
{
	const struct command *command = c->command;
	for (size_t i = 0; i < command->option_count; i++) {
		if (command->options[i].name)
			complete_offer(c, "", slice_of(command->options[i].name),
				       command->options[i].help);
	}
	for (int id = 0; id < CONF_OPTIONS && command->lists_conf; id++)
		complete_offer(c, "--", slice_of(conf_options[id].name), conf_options[id].help);
	if (command->takes_conf && !complete_find_option(command, SLICE("--config")))
		complete_offer(c, "", SLICE("--config"), "a file with options");
	complete_offer(c, "", SLICE("--help"), "print what the command does");
}

/* Where a command takes no words, options are offered before a dash is typed. */
static bool complete_has_words(const struct command *command)
{
	return command->option_count && !command->options[0].name;
}

void command_complete(const struct command *command, const char *before, const char *last,
		      struct buf *out)
{
	const struct completing c = {command, last, out};
	size_t name = strcspn(last, "=");
	char begin[COMPLETE_LINE_MAX_BYTES];
	if (last[0] == '-' && last[name] == '=') {
		snprintf(begin, sizeof(begin), "%.*s=", (int)name, last);
		(void)complete_value(&c, (struct slice){last, name}, begin);
		return;
	}
	if (before && before[0] == '-' && !strchr(before, '=') &&
	    complete_value(&c, slice_of(before), ""))
		return;
	for (size_t i = 0; i < command->option_count && !command->options[i].name; i++)
		complete_choices(&c, "", command->options[i].choices);
	if (last[0] == '-' || !complete_has_words(command))
		complete_options(&c);
}
