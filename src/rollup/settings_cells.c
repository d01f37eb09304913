#include "rollup/settings_cells.h"

#include "store/wait.h"
#include "wire/number.h"

enum { SETTINGS_READ_MAX_BYTES = 1 << 20, SETTINGS_WRITE_MAX_BYTES = 1 << 20 };

const struct store_parts settings_rows[SETTINGS_ROWS] = {
	[ROW_RETENTION_RAW] = {{SLICE("retention-raw")}},
	[ROW_ROLLUP_SINCE] = {{SLICE("rollup-since")}},
	[ROW_SHARED] = {{SLICE("settings")}},
};
const struct slice settings_rebuilt_note = SLICE(" rebuilt"),
		   settings_recount_name = SLICE("recount");

/* ---- Cells ----------------------------------------------------------------------------------- */

void settings_begin(struct settings_cells *c, struct store *store, struct task_queue *queue)
{
	*c = (struct settings_cells){.queue = queue};
	c->read = store_read_new(store, SETTINGS_READ_MAX_BYTES);
	c->write = store_write_new(store, SETTINGS_WRITE_MAX_BYTES);
}

void settings_end(struct settings_cells *c)
{
	store_read_free(c->read);
	store_write_free(c->write);
	for (size_t i = 0; i < SETTINGS_ROWS; i++)
		mem_free(c->rows[i].list);
	mem_free(c->outcomes);
}

static struct store_request *settings_ask(struct settings_cells *c, int64_t now_ms)
{
	store_read_reset(c->read);
	c->read->now_ms = now_ms;
	struct store_request *list = store_read_add(c->read, STORE_SERIES_LIST);
	ASSERT(list); /* the first of an empty arena */
	list->series_list.limit = 1;
	for (size_t i = 0; i < SETTINGS_ROWS; i++) {
		struct store_request *request = store_read_add(c->read, STORE_CELL_SCAN);
		ASSERT(request);
		request->cell_scan.table = TABLE_LEASES;
		request->cell_scan.key = settings_rows[i];
		c->rows[i].request = request;
		c->rows[i].count = 0;
	}
	return list;
}

/* What the last slice has given. True: there is more. */
static bool settings_take_slice(struct settings_row_cells *row)
{
	const struct store_cell_scan *scan = &row->request->cell_scan;
	row->list = mem_resize_array(row->list, row->count + scan->count + 1, sizeof(*row->list));
	if (scan->count)
		memcpy(row->list + row->count, scan->cells, scan->count * sizeof(*row->list));
	row->count += scan->count;
	return row->request->more;
}

int settings_read(struct settings_cells *c, int64_t now_ms)
{
	const struct store_request *list = settings_ask(c, now_ms);
	bool asked[SETTINGS_ROWS], more = true;
	memset(asked, true, sizeof(asked));
	c->empty = true;
	while (more) {
		int err = store_read_wait(c->read, c->queue);
		if (err)
			return err;
		c->empty &= list->series_list.count == 0;
		more = c->empty && list->more;
		for (size_t i = 0; i < SETTINGS_ROWS; i++) {
			asked[i] = asked[i] && settings_take_slice(&c->rows[i]);
			more |= asked[i];
		}
	}
	return 0;
}

const struct store_cell *settings_find(const struct settings_cells *c, enum settings_row row,
				       struct slice name)
{
	const struct settings_row_cells *cells = &c->rows[row];
	for (size_t i = 0; i < cells->count; i++) {
		if (slice_equal(cells->list[i].column.part[0], name))
			return &cells->list[i];
	}
	return NULL;
}

/* Where the outcome of one more condition is to come. */
static struct store_write_cond **settings_outcome(struct settings_cells *c)
{
	c->outcomes = mem_resize_array(c->outcomes, c->outcome_count + 1, sizeof(*c->outcomes));
	c->outcomes[c->outcome_count] = NULL;
	return &c->outcomes[c->outcome_count++];
}

int settings_replace(struct settings_cells *c, enum settings_row row, struct slice name,
		     const struct store_cell *before, struct slice value)
{
	struct store_parts column = {{name}};
	return store_cell_put_if(c->write, TABLE_LEASES, &settings_rows[row], &column,
				 before ? before->version : 0, value, 0, settings_outcome(c));
}

int settings_put(struct settings_cells *c, enum settings_row row, struct slice name,
		 const struct store_cell *before, struct slice value)
{
	if (before && slice_equal(before->value, value))
		return 0;
	return settings_replace(c, row, name, before, value);
}

int settings_put_ms(struct settings_cells *c, struct slice name, const struct store_cell *before,
		    int64_t ms)
{
	char number[NUMBER_PRINT_MAX_BYTES];
	struct slice value = {number, number_print_u64(number, (uint64_t)ms)};
	return settings_put(c, ROW_ROLLUP_SINCE, name, before, value);
}

int settings_remove(struct settings_cells *c, const struct store_cell *cell)
{
	return store_cell_delete_if(c->write, TABLE_LEASES, &settings_rows[ROW_ROLLUP_SINCE],
				    &cell->column, cell->version, settings_outcome(c));
}

int settings_write(struct settings_cells *c)
{
	int err = c->write->cells ? store_write_wait(c->write, c->queue) : 0;
	for (size_t i = 0; i < c->outcome_count && !err; i++) {
		if (!c->outcomes[i] || !c->outcomes[i]->applied)
			err = ERR_RETRY;
	}
	return err;
}

bool settings_are_to_be_read_again(const struct settings_cells *c, int err)
{
	return err == ERR_RETRY || (err == ERR_UNKNOWN && store_is_shared(c->write->store));
}

/* ---- Values ---------------------------------------------------------------------------------- */

int64_t settings_ms(struct slice text)
{
	uint64_t number = 0;
	const char *end = number_scan_digits(text.data, text.data + text.len, &number);
	return end == text.data + text.len && number <= INT64_MAX ? (int64_t)number : INT64_MAX;
}

int64_t settings_since_ms(struct slice text)
{
	if (slice_ends_with(text, settings_rebuilt_note))
		text.len -= settings_rebuilt_note.len;
	return settings_ms(text);
}

struct slice settings_width_name(const struct granularity *granularity,
				 char to[GRANULARITY_WIDTH_MAX_BYTES])
{
	return (struct slice){to, granularity_width_print(to, granularity->width_ms)};
}

void settings_lines_add(struct buf *to, struct slice line)
{
	buf_append(to, line.data, line.len);
	buf_append_char(to, '\n');
}

static bool settings_lines_have(struct slice lines, struct slice wanted)
{
	struct slice line;
	while (slice_take_line(&lines, &line)) {
		if (slice_equal(line, wanted))
			return true;
	}
	return false;
}

void settings_lines_add_missing(struct buf *to, struct slice from, struct slice other)
{
	struct slice line;
	while (slice_take_line(&from, &line)) {
		if (!settings_lines_have(other, line) && !settings_lines_have(buf_slice(to), line))
			settings_lines_add(to, line);
	}
}
