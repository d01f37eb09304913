/* What is made from the table of options: help, manual page, effective configuration. */
#include "conf/option.h"

#include "base/buf.h"
#include "conf/tree.h"

enum { HELP_WIDTH = 92, HELP_INDENT = 8 };

/* Words of `text` in lines of HELP_WIDTH, each behind `indent` blanks. */
static void print_wrapped(const char *text, int indent, struct buf *out)
{
	int column = 0;
	while (*text) {
		int word = (int)strcspn(text, " ");
		if (column && column + 1 + word > HELP_WIDTH) {
			buf_append_char(out, '\n');
			column = 0;
		}
		int blanks = column ? 1 : indent;
		buf_printf(out, "%*s%.*s", blanks, "", word, text);
		column += blanks + word;
		text += word;
		text += strspn(text, " ");
	}
	buf_append_char(out, '\n');
}

/* `size, default 64G, 1M to 64T` */
static void print_facts(const struct conf_option *option, struct buf *out)
{
	if (option->choices[0])
		buf_printf(out, "one of %s", option->choices);
	else
		buf_append_text(out, conf_type_name(option->type));
	buf_printf(out, ", default %s", option->preset[0] ? option->preset : "empty");
	if (option->type == CONF_INT || option->type == CONF_SIZE ||
	    option->type == CONF_DURATION) {
		buf_append_text(out, ", ");
		conf_print_number(option->type, option->min, out);
		buf_append_text(out, " to ");
		conf_print_number(option->type, option->max, out);
	}
	if (option->reloads)
		buf_append_text(out, ", reloads");
}

void conf_help(struct buf *out)
{
	buf_append_text(out, "  --config FILE\n");
	print_wrapped("Read options from this YAML file, where a dot of a name is a level; options "
		      "given here win over it.",
		      HELP_INDENT, out);
	for (int id = 0; id < CONF_OPTIONS; id++) {
		const struct conf_option *option = &conf_options[id];
		buf_printf(out, "  --%s (", option->name);
		print_facts(option, out);
		buf_append_text(out, ")\n");
		print_wrapped(option->help, HELP_INDENT, out);
	}
	buf_append_text(out, "\nSections of the file, which have no option:\n");
	for (int id = 0; id < CONF_SECTIONS; id++) {
		const struct conf_section_def *section = &conf_section_defs[id];
		buf_printf(out, "  %s:\n", section->name);
		print_wrapped(section->help, HELP_INDENT, out);
		buf_printf(out, "%*sAs in %s: %s\n", HELP_INDENT, "", section->name,
			   section->example);
	}
}

/* Roff takes a leading dot or quote for a request, and a backslash for an escape. */
static void print_roff(const char *text, struct buf *out)
{
	if (*text == '.' || *text == '\'')
		buf_append_text(out, "\\&");
	for (; *text; text++) {
		if (*text == '\\')
			buf_append_text(out, "\\e");
		else if (*text == '-')
			buf_append_text(out, "\\-");
		else
			buf_append_char(out, *text);
	}
}

void conf_manual(struct buf *out)
{
	buf_append_text(out, ".TP\n\\fB\\-\\-config\\fR \\fIFILE\\fR\n"
			     "Read options from this YAML file.\n");
	for (int id = 0; id < CONF_OPTIONS; id++) {
		const struct conf_option *option = &conf_options[id];
		struct buf facts;
		buf_init(&facts, 1024);
		print_facts(option, &facts);
		buf_append_char(&facts, 0);
		buf_append_text(out, ".TP\n\\fB\\-\\-");
		print_roff(option->name, out);
		buf_append_text(out, "\\fR (");
		print_roff(facts.failed ? "" : facts.data, out);
		buf_append_text(out, ")\n");
		print_roff(option->help, out);
		buf_append_char(out, '\n');
		buf_release(&facts);
	}
	for (int id = 0; id < CONF_SECTIONS; id++) {
		const struct conf_section_def *section = &conf_section_defs[id];
		buf_printf(out, ".TP\n\\fB%s\\fR (section of the file)\n", section->name);
		print_roff(section->help, out);
		buf_printf(out, "\n.br\n%s: ", section->name);
		print_roff(section->example, out);
		buf_append_char(out, '\n');
	}
}

void conf_print_scalar(struct slice text, bool quoted, struct buf *out)
{
	static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				   "_./";
	bool plain = text.len > 0 && !quoted;
	for (size_t i = 0; i < text.len; i++)
		plain = plain && memchr(safe, text.data[i], sizeof(safe) - 1);
	if (plain) {
		buf_append(out, text.data, text.len);
		return;
	}
	buf_append_char(out, '"');
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '"' || text.data[i] == '\\')
			buf_append_char(out, '\\');
		buf_append_char(out, text.data[i]);
	}
	buf_append_char(out, '"');
}

/* `store:` when the group of this option is not that of the one before; rows of one group stand
 * together in the table. */
static const char *print_group(int id, struct buf *out)
{
	const char *name = conf_options[id].name, *dot = strchr(name, '.');
	if (!dot)
		return name;
	size_t group = (size_t)(dot - name) + 1;
	if (id == 0 || strncmp(conf_options[id - 1].name, name, group) != 0)
		buf_printf(out, "%.*s:\n", (int)group - 1, name);
	buf_append_text(out, "  ");
	return dot + 1;
}

void conf_dump(const struct conf *conf, struct buf *out)
{
	struct buf value;
	buf_init(&value, CONF_FILE_MAX_BYTES);
	for (int id = 0; id < CONF_OPTIONS; id++) {
		const struct conf_origin *origin = &conf->origins[id];
		const char *leaf = print_group(id, out);
		buf_clear(&value);
		conf_print_value(conf, id, &value);
		buf_printf(out, "%s: ", leaf);
		conf_print_scalar(buf_slice(&value), false, out);
		if (origin->line)
			buf_printf(out, "  # %s:%zu\n", origin->file, origin->line);
		else
			buf_printf(out, "  # %s\n", origin->file ? origin->file : "default");
	}
	for (int id = 0; id < CONF_SECTIONS; id++) {
		const struct conf_node *section = conf->sections[id];
		if (!section)
			continue;
		buf_printf(out, "# %s:%zu\n", section->file, section->line);
		conf_node_dump(section, 0, out);
	}
	buf_release(&value);
}
