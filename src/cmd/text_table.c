#include "base/base.h"
#include "cmd/client_private.h"
#include "cmd/terminal_escape.h"

enum { TABLE_MAX_BYTES = 512 << 20, NAMES_MAX_BYTES = 1 << 20, NUMBER_TEXT_BYTES = 512 };

struct text_row {
	struct text_row *next;
	struct slice cells[];
};

void text_table_init(struct text_table *table, size_t columns, const char *const *titles)
{
	*table = (struct text_table){.columns = columns};
	arena_init(&table->arena, TABLE_MAX_BYTES);
	table->titles = arena_alloc(&table->arena, columns * sizeof(*table->titles));
	ASSERT(table->titles);
	for (size_t i = 0; i < columns; i++) {
		table->titles[i] = arena_copy(&table->arena, slice_of(titles[i])).data;
		ASSERT(table->titles[i]);
	}
}

void text_table_release(struct text_table *table)
{
	arena_release(&table->arena);
}

static void text_table_finish_row(struct text_table *table)
{
	if (table->last)
		table->last->next = table->row;
	else
		table->first = table->row;
	table->last = table->row;
	table->row = NULL;
	table->cell = 0;
	table->rows++;
}

void text_table_add(struct text_table *table, struct slice text)
{
	size_t row_bytes = sizeof(struct text_row) + table->columns * sizeof(struct slice);
	if (!table->row && !table->full)
		table->row = arena_zalloc(&table->arena, row_bytes);
	if (!table->row) {
		table->full = true;
		return;
	}
	struct slice copy = arena_copy(&table->arena, text);
	if (!copy.data) {
		table->full = true;
		table->row = NULL;
		return;
	}
	table->row->cells[table->cell++] = copy;
	if (table->cell == table->columns)
		text_table_finish_row(table);
}

void text_table_addf(struct text_table *table, const char *fmt, ...)
{
	char text[NUMBER_TEXT_BYTES];
	va_list arguments;

	va_start(arguments, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, arguments);
	va_end(arguments);
	ASSERT(n >= 0);
	text_table_add(table, (struct slice){text, strlen(text)});
}

/* Names of a list, or of its objects, with blanks between them. */
static void text_table_add_names(struct text_table *table, const struct json *list)
{
	struct buf names;
	buf_init(&names, NAMES_MAX_BYTES);
	for (const struct json *n = list->first; n; n = n->next) {
		const struct json *name = n->type == JSON_T_OBJECT ? json_member(n, "name") : n;
		if (name)
			buf_printf(&names, "%s%.*s", names.len ? " " : "", (int)name->text.len,
				   name->text.data);
	}
	text_table_add(table, names.len ? buf_slice(&names) : SLICE(""));
	buf_release(&names);
}

/* A cell for a terminal, in the arena; `?` where there is no room. */
static struct slice text_table_make_visible(struct text_table *table, struct slice text)
{
	struct slice made = {NULL, 0};
	struct buf out;
	buf_init(&out, TABLE_MAX_BYTES);
	visible_append(&out, text);
	if (!out.failed)
		made = arena_copy(&table->arena, out.len ? buf_slice(&out) : SLICE(""));
	buf_release(&out);
	return made.data ? made : SLICE("?");
}

static void text_table_make_all_visible(struct text_table *table)
{
	for (size_t i = 0; i < table->columns; i++)
		table->titles[i] = text_table_make_visible(table, slice_of(table->titles[i])).data;
	for (struct text_row *row = table->first; row; row = row->next) {
		for (size_t i = 0; i < table->columns; i++)
			row->cells[i] = text_table_make_visible(table, row->cells[i]);
	}
}

/* ---- CSV (RFC 4180) ------------------------------------------------------------------------- */

static void text_table_print_csv_field(struct slice text)
{
	if (!memchr(text.data, '"', text.len) && !memchr(text.data, ',', text.len) &&
	    !memchr(text.data, '\n', text.len) && !memchr(text.data, '\r', text.len)) {
		fwrite(text.data, 1, text.len, stdout);
		return;
	}
	putchar('"');
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] == '"')
			putchar('"');
		putchar(text.data[i]);
	}
	putchar('"');
}

static void text_table_print_csv(const struct text_table *table)
{
	for (size_t i = 0; i < table->columns && !table->untitled; i++) {
		fputs(i ? "," : "", stdout);
		text_table_print_csv_field(slice_of(table->titles[i]));
	}
	if (!table->untitled)
		fputs("\r\n", stdout);
	for (const struct text_row *row = table->first; row; row = row->next) {
		for (size_t i = 0; i < table->columns; i++) {
			fputs(i ? "," : "", stdout);
			text_table_print_csv_field(row->cells[i]);
		}
		fputs("\r\n", stdout);
	}
}

/* ---- Aligned -------------------------------------------------------------------------------- */

/* Characters, so that `ü` takes one column. */
static size_t text_table_width_of(struct slice text)
{
	size_t width = 0;

	for (size_t i = 0; i < text.len; i++)
		width += ((unsigned char)text.data[i] & 0xc0) != 0x80;
	return width;
}

static bool text_table_looks_like_number(struct slice text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (!strchr("0123456789.-+eE", text.data[i]))
			return false;
	}
	return true;
}

struct text_table_column {
	size_t width;
	bool number; /* then it is aligned to the right */
};

static void text_table_print_spaces(size_t count)
{
	while (count--)
		putchar(' ');
}

static void text_table_print_cell(const struct text_table_column *column, struct slice text,
				  bool last)
{
	size_t pad = column->width - text_table_width_of(text);

	if (column->number)
		text_table_print_spaces(pad);
	fwrite(text.data, 1, text.len, stdout);
	if (!column->number && !last)
		text_table_print_spaces(pad);
	fputs(last ? "\n" : "  ", stdout);
}

static void text_table_measure(const struct text_table *table, struct text_table_column *columns)
{
	for (size_t i = 0; i < table->columns; i++)
		columns[i] = (struct text_table_column){
			text_table_width_of(slice_of(table->titles[i])), table->rows > 0};
	for (const struct text_row *row = table->first; row; row = row->next) {
		for (size_t i = 0; i < table->columns; i++) {
			size_t width = text_table_width_of(row->cells[i]);
			if (width > columns[i].width)
				columns[i].width = width;
			columns[i].number =
				columns[i].number && text_table_looks_like_number(row->cells[i]);
		}
	}
}

static void text_table_print_aligned(const struct text_table *table)
{
	struct text_table_column *columns = mem_alloc_array(table->columns, sizeof(*columns));

	text_table_measure(table, columns);
	for (size_t i = 0; i < table->columns && !table->untitled; i++)
		text_table_print_cell(&columns[i], slice_of(table->titles[i]),
				      i + 1 == table->columns);
	for (const struct text_row *row = table->first; row; row = row->next) {
		for (size_t i = 0; i < table->columns; i++)
			text_table_print_cell(&columns[i], row->cells[i], i + 1 == table->columns);
	}
	mem_free(columns);
}

void text_table_add_member(struct text_table *table, const struct json *object, const char *key)
{
	const struct json *member = json_member(object, key);
	if (member && member->type == JSON_T_BOOL)
		text_table_add(table, member->boolean ? SLICE("true") : SLICE("false"));
	else if (member && member->type == JSON_T_ARRAY)
		text_table_add_names(table, member);
	else if (member && member->type != JSON_T_NULL)
		text_table_add(table, member->text);
	else
		text_table_add(table, SLICE(""));
}

/* A program that reads CSV gets what there is, byte for byte; people, on a terminal, see it. */
void text_table_print(struct text_table *table, enum client_output output)
{
	if (output != OUTPUT_CSV || terminal_is_output())
		text_table_make_all_visible(table);
	if (output == OUTPUT_CSV)
		text_table_print_csv(table);
	else
		text_table_print_aligned(table);
	if (table->full)
		fprintf(stderr, "granary: only the first %zu rows are shown\n", table->rows);
}

void text_table_print_list(const struct json *first, const char *const *members, size_t count,
			   enum client_output output)
{
	struct text_table table;
	text_table_init(&table, count, members);
	for (const struct json *object = first; object; object = object->next) {
		for (size_t i = 0; i < count; i++)
			text_table_add_member(&table, object, members[i]);
	}
	text_table_print(&table, output);
	text_table_release(&table);
}
