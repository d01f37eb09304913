/* Help and manual page, of the rows of a command. Both are the same page, with other marks. */
#include "base/buf.h"
#include "cmd/command.h"
#include "conf/conf.h"
#include "conf/print.h"

enum { TERM_COLUMNS = 19, HELP_TEXT_MAX_BYTES = 16 << 10 };

struct help_page {
	struct buf *out;
	bool is_manual;
};

/* ---- Parts of a page ------------------------------------------------------------------------- */

static void help_paragraph(const struct help_page *page, struct slice text)
{
	buf_append_text(page->out, page->is_manual ? ".PP\n" : "\n");
	if (page->is_manual) {
		conf_print_roff(text, page->out);
		buf_append_char(page->out, '\n');
	} else {
		conf_print_wrapped(text, 0, 0, page->out);
	}
}

/* A term beside its text. */
static void help_term(const struct help_page *page, struct slice term, struct slice text)
{
	if (page->is_manual) {
		buf_append_text(page->out, ".TP\n\\fB");
		conf_print_roff(term, page->out);
		buf_append_text(page->out, "\\fR\n");
		conf_print_roff(text, page->out);
		buf_append_char(page->out, '\n');
		return;
	}
	bool fits = term.len <= TERM_COLUMNS;
	buf_printf(page->out, "  %.*s%s", (int)term.len, term.data, fits ? "" : "\n");
	conf_print_wrapped(text, fits ? 2 + (int)term.len : 0, 4 + TERM_COLUMNS, page->out);
}

static struct slice help_take_line(const char **text)
{
	struct slice line = {*text, strcspn(*text, "\n")};
	*text += line.len + ((*text)[line.len] == '\n');
	return line;
}

/* Lines that are terms stand together, behind a blank line. */
static void help_about(const struct help_page *page, const char *about)
{
	bool in_terms = false;
	while (about && *about) {
		struct slice line = help_take_line(&about);
		const char *tab = memchr(line.data, '\t', line.len);
		if (tab && !in_terms && !page->is_manual)
			buf_append_char(page->out, '\n');
		in_terms = tab != NULL;
		size_t len = tab ? (size_t)(tab - line.data) : 0;
		if (tab)
			help_term(page, (struct slice){line.data, len},
				  (struct slice){tab + 1, line.len - len - 1});
		else
			help_paragraph(page, line);
	}
}

/* ---- Usage ----------------------------------------------------------------------------------- */

static void help_usage_part(const struct command_option *option, struct buf *out)
{
	bool optional = !option->required;
	buf_printf(out, " %s%s%s%s%s%s", optional ? "[" : "", option->name ? option->name : "",
		   option->name && option->value ? " " : "", option->value ? option->value : "",
		   option->words_max ? "..." : "", optional ? "]" : "");
}

/* Words and what is required; all else is `[options]`. */
static void help_usage(const struct command *command, struct buf *out)
{
	bool more = false;
	buf_printf(out, "granary %s", command->name);
	for (size_t i = 0; i < command->option_count; i++) {
		const struct command_option *option = &command->options[i];
		if (option->required || !option->name)
			help_usage_part(option, out);
		else
			more = true;
	}
	if (more)
		buf_append_text(out, " [options]");
	if (command->takes_conf)
		buf_append_text(out, " [--OPTION VALUE | --OPTION=VALUE]...");
}

static void help_usages(const struct help_page *page, const struct command *list, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct buf usage;
		buf_init(&usage, HELP_TEXT_MAX_BYTES);
		help_usage(&list[i], &usage);
		if (page->is_manual) {
			buf_append_text(page->out, i ? ".br\n\\fB" : ".PP\n\\fB");
			conf_print_roff(buf_slice(&usage), page->out);
			buf_append_text(page->out, "\\fR\n");
		} else {
			buf_printf(page->out, "%s%.*s\n", i ? "       " : "usage: ", (int)usage.len,
				   usage.data);
		}
		buf_release(&usage);
	}
}

/* ---- Options --------------------------------------------------------------------------------- */

static bool help_is_same(const struct command_option *a, const struct command_option *b)
{
	const char *const texts[][2] = {{a->name, b->name},           {a->letter, b->letter},
					{a->value, b->value},         {a->preset, b->preset},
					{a->otherwise, b->otherwise}, {a->help, b->help}};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		const char *one = texts[i][0], *other = texts[i][1];
		if (!one != !other || (one && strcmp(one, other) != 0))
			return false;
	}
	return true;
}

static bool help_has(const struct command *command, const struct command_option *option)
{
	for (size_t i = 0; i < command->option_count; i++) {
		if (help_is_same(&command->options[i], option))
			return true;
	}
	return false;
}

/* `add, change: ` where not all of the verbs take it. */
static void help_takers(const struct command *list, size_t count,
			const struct command_option *option, struct buf *out)
{
	size_t takers = 0, printed = 0;
	for (size_t i = 0; i < count; i++)
		takers += help_has(&list[i], option);
	for (size_t i = 0; i < count && takers < count; i++) {
		if (help_has(&list[i], option))
			buf_printf(out, "%s%s", printed++ ? ", " : "",
				   strchr(list[i].name, ' ') + 1);
	}
	if (printed)
		buf_append_text(out, ": ");
}

/* `text` in the brackets that the first fact opens. */
static void help_fact(struct buf *out, bool *open, const char *before, const char *text)
{
	buf_printf(out, "%s%s%s", *open ? ", " : " (", before, text);
	*open = true;
}

/* What the configuration's own row says, where the option is one of it. */
static void help_conf_facts(const struct command_option *option, struct buf *out, bool *open)
{
	int id = conf_find(slice_of(option->name + strlen("--")));
	if (id < 0)
		return;
	if (conf_options[id].choices[0])
		help_fact(out, open, "one of ", conf_options[id].choices);
	if (!option->otherwise && conf_options[id].preset[0])
		help_fact(out, open, "default ", conf_options[id].preset);
}

static void help_facts(const struct command_option *option, struct buf *out)
{
	const char *preset = option->preset ? option->preset : option->otherwise;
	char range[64];
	bool open = false;
	if (option->type == &command_conf && !option->required)
		help_conf_facts(option, out, &open);
	if (option->choices && strchr(option->choices, ' '))
		help_fact(out, &open, "one of ", option->choices);
	snprintf(range, sizeof(range), "%lld to %lld", (long long)option->min,
		 (long long)option->max);
	if (option->max)
		help_fact(out, &open, "", range);
	if (preset)
		help_fact(out, &open, "default ", preset);
	if (open)
		buf_append_char(out, ')');
}

static void help_name(const struct command_option *option, struct buf *out)
{
	const char *const names[] = {option->letter, option->name, option->value};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (names[i])
			buf_printf(out, "%s%s", !out->len ? "" : i == 1 ? ", " : " ", names[i]);
	}
}

static void help_option(const struct help_page *page, const struct command *list, size_t count,
			const struct command_option *option)
{
	struct buf name, text;
	buf_init(&name, HELP_TEXT_MAX_BYTES);
	buf_init(&text, HELP_TEXT_MAX_BYTES);
	help_name(option, &name);
	help_takers(list, count, option, &text);
	buf_append_text(&text, option->help);
	help_facts(option, &text);
	help_term(page, buf_slice(&name), buf_slice(&text));
	buf_release(&name);
	buf_release(&text);
}

/* The rows of all of `list`, each once; those without help are plain from the usage. */
static bool help_is_shown(const struct command *list, size_t at, size_t row)
{
	for (size_t i = 0; i < at; i++) {
		if (help_has(&list[i], &list[at].options[row]))
			return false;
	}
	return list[at].options[row].help != NULL;
}

static void help_options(const struct help_page *page, const struct command *list, size_t count)
{
	bool any = false;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < list[i].option_count; k++) {
			if (!help_is_shown(list, i, k))
				continue;
			if (!any && !page->is_manual)
				buf_append_char(page->out, '\n');
			any = true;
			help_option(page, list, count, &list[i].options[k]);
		}
	}
}

/* What holds of all values of a type. */
static void help_notes(const struct help_page *page, const struct command *list, size_t count)
{
	const char *last = NULL;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < list[i].option_count; k++) {
			const char *note = list[i].options[k].type->note;
			if (note && note != last)
				help_paragraph(page, slice_of(note));
			last = note ? note : last;
		}
	}
}

/* ---- The page -------------------------------------------------------------------------------- */

static void help_verbs(const struct help_page *page, const struct command *noun)
{
	if (!page->is_manual)
		buf_append_char(page->out, '\n');
	for (size_t i = 0; i < noun->verb_count; i++) {
		const struct command *verb = &noun->verbs[i];
		help_term(page, slice_of(strchr(verb->name, ' ') + 1), slice_of(verb->summary));
	}
	for (size_t i = 0; i < noun->verb_count; i++) {
		struct buf about;
		buf_init(&about, HELP_TEXT_MAX_BYTES);
		buf_printf(&about, "%s: %s", strchr(noun->verbs[i].name, ' ') + 1,
			   noun->verbs[i].about ? noun->verbs[i].about : "");
		buf_append_char(&about, 0);
		help_about(page, noun->verbs[i].about ? about.data : NULL);
		buf_release(&about);
	}
}

static void help_examples(const struct help_page *page, const char *examples)
{
	if (!examples)
		return;
	buf_append_text(page->out, page->is_manual ? ".PP\nExamples:\n.nf\n" : "\nExamples:\n");
	while (*examples) {
		struct slice line = help_take_line(&examples);
		if (page->is_manual)
			conf_print_roff(line, page->out);
		else
			buf_printf(page->out, "  %.*s", (int)line.len, line.data);
		buf_append_char(page->out, '\n');
	}
	if (page->is_manual)
		buf_append_text(page->out, ".fi\n");
}

static void help_whole(const struct help_page *page, const struct command *command)
{
	const struct command *list = command->verbs ? command->verbs : command;
	size_t count = command->verbs ? command->verb_count : 1;
	help_usages(page, list, count);
	help_about(page, command->about);
	if (command->verbs)
		help_verbs(page, command);
	help_options(page, list, count);
	help_notes(page, list, count);
	help_examples(page, command->examples);
	if (command->verbs && !page->is_manual)
		buf_printf(page->out,
			   "\n`granary help %s COMMAND` prints the help of one of them.\n",
			   command->name);
}

void command_help(const struct command *command, struct buf *out)
{
	help_whole(&(struct help_page){.out = out}, command);
	if (command->lists_conf) {
		buf_append_text(out,
				"\nOptions, each also a line of the file that --config names:\n");
		conf_help(out);
	}
}

void command_manual(const struct command *command, struct buf *out)
{
	buf_printf(out, ".SS %s\n", command->name);
	conf_print_roff(slice_of(command->summary), out);
	buf_append_text(out, ".\n");
	help_whole(&(struct help_page){.out = out, .is_manual = true}, command);
}
