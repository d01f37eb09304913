/* What is made from the table of options: help, manual page, effective configuration. */
#include "conf/option.h"

#include "base/buf.h"
#include "conf/print.h"
#include "conf/tree.h"

enum { HELP_WIDTH = 92, HELP_INDENT = 8 };

void conf_print_wrapped(struct slice text, int column, int indent, struct buf *out)
{
	bool begins = true;
	ASSERT(indent >= 0 && indent < HELP_WIDTH && column >= 0);
	for (size_t at = 0; at < text.len;) {
		const char *word = text.data + at;
		const char *blank = memchr(word, ' ', text.len - at);
		int len = (int)(blank ? (size_t)(blank - word) : text.len - at);
		if (!begins && column + 1 + len > HELP_WIDTH) {
			buf_append_char(out, '\n');
			column = 0;
			begins = true;
		}
		int blanks = !begins ? 1 : indent > column ? indent - column : 0;
		buf_printf(out, "%*s%.*s", blanks, "", len, word);
		column += blanks + len;
		begins = false;
		at += (size_t)len;
		while (at < text.len && text.data[at] == ' ')
			at++;
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
	conf_print_wrapped(SLICE("Read options from this YAML file, where a dot of a name is a "
				 "level; options given here win over it."),
			   0, HELP_INDENT, out);
	for (int id = 0; id < CONF_OPTIONS; id++) {
		const struct conf_option *option = &conf_options[id];
		buf_printf(out, "  --%s (", option->name);
		print_facts(option, out);
		buf_append_text(out, ")\n");
		conf_print_wrapped(slice_of(option->help), 0, HELP_INDENT, out);
	}
	buf_append_text(out, "\nSections of the file, which have no option:\n");
	for (int id = 0; id < CONF_SECTIONS; id++) {
		const struct conf_section_def *section = &conf_section_defs[id];
		buf_printf(out, "  %s:\n", section->name);
		conf_print_wrapped(slice_of(section->help), 0, HELP_INDENT, out);
		buf_printf(out, "%*sAs in %s: %s\n", HELP_INDENT, "", section->name,
			   section->example);
	}
}

void conf_print_roff(struct slice text, struct buf *out)
{
	if (text.len && (text.data[0] == '.' || text.data[0] == '\''))
		buf_append_text(out, "\\&");
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '\\')
			buf_append_text(out, "\\e");
		else if (text.data[i] == '-')
			buf_append_text(out, "\\-");
		else
			buf_append_char(out, text.data[i]);
	}
}

void conf_manual(struct buf *out)
{
	for (int id = 0; id < CONF_OPTIONS; id++) {
		const struct conf_option *option = &conf_options[id];
		struct buf facts;
		buf_init(&facts, 1024);
		print_facts(option, &facts);
		buf_append_text(out, ".TP\n\\fB");
		conf_print_roff(slice_of(option->name), out);
		buf_append_text(out, "\\fR (");
		conf_print_roff(facts.failed ? SLICE("") : buf_slice(&facts), out);
		buf_append_text(out, ")\n");
		conf_print_roff(slice_of(option->help), out);
		buf_append_char(out, '\n');
		buf_release(&facts);
	}
	for (int id = 0; id < CONF_SECTIONS; id++) {
		const struct conf_section_def *section = &conf_section_defs[id];
		buf_printf(out, ".TP\n\\fB%s\\fR (section of the file)\n", section->name);
		conf_print_roff(slice_of(section->help), out);
		buf_printf(out, "\n.br\n%s: ", section->name);
		conf_print_roff(slice_of(section->example), out);
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
