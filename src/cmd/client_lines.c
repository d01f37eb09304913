/* Lines of streams, as commands print them. */
#include <inttypes.h>

#include "cmd/client_private.h"
#include "model/stream.h"
#include "wire/timetext.h"

/* `2026-11-29T14:49:30.123Z host1 app: text` */
static void client_lines_print_one(struct client_lines *lines, const struct json *line)
{
	char time[TIME_PRINT_MAX_BYTES];
	struct stream_names names;
	struct arena arena;
	struct buf out;
	uint64_t incarnation;
	const struct json *address = json_member(line, "stream"), *text = json_member(line, "text");
	struct errbuf e;
	arena_init(&arena, 2 * STREAM_ADDRESS_MAX_BYTES);
	buf_init(&out, CLIENT_ANSWER_MAX_BYTES);
	if (address && text &&
	    !stream_address_parse(address->text, &arena, &names, &incarnation, &e)) {
		buf_append(&out, time, time_print(time, client_i64(line, "time")));
		buf_printf(&out, " %.*s %.*s: ", (int)names.source.len, names.source.data,
			   (int)names.datatype.len, names.datatype.data);
		buf_append(&out, text->text.data, text->text.len);
		buf_append_char(&out, '\n');
		(void)terminal_print(&lines->printed, buf_slice(&out), false);
	}
	buf_release(&out);
	arena_release(&arena);
}

static void client_lines_add_row(struct text_table *table, const struct json *line)
{
	client_fault_add_time(table, line, "time");
	text_table_add_member(table, line, "stream");
	text_table_add_member(table, line, "offset");
	text_table_add_member(table, line, "text");
}

void client_lines_print(struct client_lines *lines, const struct json *first)
{
	static const char *const titles[] = {"time", "stream", "offset", "text"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	table.untitled = lines->titled;
	lines->titled = true;
	for (const struct json *line = first; line; line = line->next) {
		if (lines->output == OUTPUT_TABLE)
			client_lines_print_one(lines, line);
		else
			client_lines_add_row(&table, line);
	}
	if (lines->output == OUTPUT_CSV)
		text_table_print(&table, lines->output);
	text_table_release(&table);
}

void client_lines_unknown(int64_t streams, const struct json *answer, struct errbuf *sentence)
{
	const struct json *first = json_member(answer, "unknown_field");
	const struct json *field = first ? json_member(first, "field") : NULL,
			  *datatype = first ? json_member(first, "datatype") : NULL;
	const struct slice none = SLICE("");
	errbuf_set(
		sentence, 0,
		"no rule knows the field `" SHOWN "` of %" PRId64
		" stream%s, the first of the datatype `" SHOWN
		"`: no relation holds for their lines, and each negated one does; a text stands in "
		"quotation marks",
		SHOWN_OF(field ? field->text : none), streams, plural_end((uint64_t)streams),
		SHOWN_OF(datatype ? datatype->text : none));
}

void client_lines_end(struct client_lines *lines)
{
	(void)terminal_print(&lines->printed, SLICE(""), true);
}
