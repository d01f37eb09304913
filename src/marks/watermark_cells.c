#include "marks/watermark_cells.h"

#include "base/buf.h"
#include "base/cursor.h"
#include "base/log.h"
#include "store/wait.h"

enum {
	VERSION = 1,
	ROLLED_HEAD_BYTES = 1 + 2 * 8,
	LATE_BYTES = 1 + WATERMARK_LOTS * 2 * 8,
	PARTITIONS_TEXT_MAX_BYTES = 32 << 10,
	WRITE_MAX_BYTES = 1 << 20,
	READ_MAX_BYTES = 8 << 20,
	ROLLED_HOLDS_MS = 86400000,
	/* Longer than any statement that it may have to be compared with. */
	LATE_HOLDS_MS = 2 * ROLLED_HOLDS_MS,
};

#define SLOT_MAX_S (INT64_MAX / 1000)

/* rolled: version u8 = 1 | asof_ms i64 | before_s i64 | partitions as text, "0,5-8"
 * late:   version u8 = 1 | fresh: slot_s i64, at_ms i64 | settling: slot_s i64, at_ms i64
 * Big endian. slot_s INT64_MAX: no touch. */
static const struct store_parts rolled_row = {{SLICE("rolled"), SLICE(""), SLICE("")}};
static const struct store_parts any_row = {{SLICE("any"), SLICE(""), SLICE("")}};

static struct store_parts watermark_late_row(struct slice tenant, struct slice metric)
{
	return (struct store_parts){{SLICE("late"), tenant, metric}};
}

/* ---- Late touches ---------------------------------------------------------------------------- */

struct watermark_late_put {
	struct store_write *write;
	struct slice writer;
};

static int watermark_put_late_cell(void *owner, struct slice tenant, struct slice metric,
				   const struct watermark_touched lots[WATERMARK_LOTS])
{
	const struct watermark_late_put *put = owner;
	struct store_parts row = tenant.len ? watermark_late_row(tenant, metric) : any_row;
	struct store_parts column = {{put->writer}};
	uint8_t bytes[LATE_BYTES] = {VERSION};
	int64_t last_ms = 0;
	for (size_t i = 0; i < WATERMARK_LOTS; i++) {
		be64_put(bytes + 1 + 16 * i, (uint64_t)lots[i].slot_s);
		be64_put(bytes + 9 + 16 * i, (uint64_t)lots[i].at_ms);
		last_ms = larger_of(last_ms, lots[i].at_ms);
	}
	return store_cell_put(put->write, TABLE_WATERMARKS, &row, &column,
			      (struct slice){(const char *)bytes, sizeof(bytes)},
			      store_stamp(put->write->store), last_ms + LATE_HOLDS_MS);
}

int watermark_cells_put_late(struct watermark *watermark, struct store_write *write,
			     struct slice writer, int64_t now_ms, const struct mark_touch *touches,
			     size_t count)
{
	struct watermark_late_put put = {write, writer};
	return watermark_touch_each(watermark, now_ms, touches, count, watermark_put_late_cell,
				    &put);
}

/* The oldest slot of the cell that counts; INT64_MAX: none does. */
static int64_t watermark_late_slot_s(struct watermark *watermark, const struct store_parts *row,
				     const struct store_cell *cell, int64_t asof_ms)
{
	int64_t oldest_s = INT64_MAX;
	const uint8_t *bytes = (const uint8_t *)cell->value.data;
	if (cell->value.len != LATE_BYTES || bytes[0] != VERSION) {
		watermark_warn_unread(watermark, row, cell->column.part[0],
				      "what it is of counts as not rolled up");
		return 0;
	}
	for (size_t i = 0; i < WATERMARK_LOTS; i++) {
		struct watermark_touched lot = {(int64_t)be64_get(bytes + 1 + 16 * i),
						(int64_t)be64_get(bytes + 9 + 16 * i)};
		if (!watermark_counts(watermark, &lot, asof_ms))
			continue;
		oldest_s = smaller_of(oldest_s, larger_of(lot.slot_s, 0));
	}
	return oldest_s;
}

/* ---- What passes tell ------------------------------------------------------------------------ */

static int watermark_put_rolled(struct store_write *write, const struct watermark_rolled *rolled)
{
	struct store_parts column = {{rolled->writer}};
	struct buf value;
	uint8_t head[ROLLED_HEAD_BYTES] = {VERSION};
	be64_put(head + 1, (uint64_t)rolled->asof_ms);
	be64_put(head + 9, (uint64_t)rolled->before_s);
	buf_init(&value, ROLLED_HEAD_BYTES + PARTITIONS_TEXT_MAX_BYTES);
	buf_append(&value, head, sizeof(head));
	partitions_print(rolled->partitions, &value);
	int err = value.failed ? ERR_LIMIT
			       : store_cell_put(write, TABLE_WATERMARKS, &rolled_row, &column,
						buf_slice(&value), store_stamp(write->store),
						rolled->asof_ms + ROLLED_HOLDS_MS);
	buf_release(&value);
	return err;
}

/* The last that was told of each partition. */
struct watermark_told {
	int64_t asof_ms[PARTITIONS_MAX], before_s[PARTITIONS_MAX];
};

static bool watermark_take_rolled(struct watermark_told *told, uint32_t partition_count,
				  const struct store_cell *cell)
{
	struct partitions partitions;
	struct errbuf e;
	const uint8_t *bytes = (const uint8_t *)cell->value.data;
	if (cell->value.len < ROLLED_HEAD_BYTES || bytes[0] != VERSION)
		return false;
	struct slice text = {cell->value.data + ROLLED_HEAD_BYTES,
			     cell->value.len - ROLLED_HEAD_BYTES};
	if (partitions_parse(text, PARTITIONS_MAX, &partitions, &e))
		return false;
	int64_t asof_ms = (int64_t)be64_get(bytes + 1), before_s = (int64_t)be64_get(bytes + 9);
	if (asof_ms < 0 || before_s < 0 || before_s > SLOT_MAX_S)
		return false;
	for (uint32_t p = 0; p < partition_count; p++) {
		if (!partitions_has(&partitions, p) || asof_ms < told->asof_ms[p])
			continue;
		if (asof_ms > told->asof_ms[p] || before_s < told->before_s[p])
			told->before_s[p] = before_s;
		told->asof_ms[p] = asof_ms;
	}
	return true;
}

/* The least of all partitions; 0: nothing is known of one. */
static void watermark_sum_up(struct watermark *watermark, const struct store_request *request,
			     uint32_t partition_count, int64_t *asof_ms, int64_t *before_s)
{
	const struct store_cell_scan *scan = &request->cell_scan;
	struct watermark_told *told = mem_zalloc(sizeof(*told));
	ASSERT(partition_count && partition_count <= PARTITIONS_MAX);
	for (size_t i = 0; i < scan->count; i++) {
		if (!watermark_take_rolled(told, partition_count, &scan->cells[i]))
			watermark_warn_unread(watermark, &rolled_row, scan->cells[i].column.part[0],
					      "the partitions of that process count as not rolled "
					      "up");
	}
	*asof_ms = *before_s = request->more ? 0 : INT64_MAX;
	for (uint32_t p = 0; p < partition_count; p++) {
		*asof_ms = smaller_of(*asof_ms, told->asof_ms[p]);
		*before_s = smaller_of(*before_s, told->before_s[p]);
	}
	mem_free(told);
}

static struct store_request *watermark_add_scan(struct store_read *read,
						const struct store_parts *key)
{
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	if (request)
		request->cell_scan =
			(struct store_cell_scan){.table = TABLE_WATERMARKS, .key = *key};
	return request;
}

static int watermark_tell(struct store *store, struct task_queue *queue,
			  const struct watermark_rolled *rolled)
{
	struct store_write *write = store_write_new(store, WRITE_MAX_BYTES);
	int err = watermark_put_rolled(write, rolled);
	err = err ? err : store_write_wait(write, queue);
	store_write_free(write);
	return err;
}

int watermark_cells_exchange(struct watermark *watermark, struct store *store,
			     struct task_queue *queue, const struct watermark_rolled *rolled,
			     uint32_t partition_count, int64_t now_ms)
{
	int err = rolled ? watermark_tell(store, queue, rolled) : 0;
	if (err)
		return err;
	struct store_read *read = store_read_new(store, READ_MAX_BYTES);
	struct store_request *request = watermark_add_scan(read, &rolled_row);
	ASSERT(request); /* the first of an empty arena */
	read->now_ms = now_ms;
	err = store_read_wait(read, queue);
	if (!err) {
		int64_t asof_ms, before_s;
		watermark_sum_up(watermark, request, partition_count, &asof_ms, &before_s);
		watermark_learn(watermark, now_ms, asof_ms, before_s);
	}
	store_read_free(read);
	return err;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

int watermark_cells_ask(struct store_read *read, struct slice tenant, struct slice metric,
			struct watermark_asked **to)
{
	const struct store_parts late_row = watermark_late_row(tenant, metric);
	struct watermark_asked *asked = arena_alloc(&read->arena, sizeof(*asked));
	if (!asked)
		return ERR_LIMIT;
	asked->rolled = watermark_add_scan(read, &rolled_row);
	asked->any = watermark_add_scan(read, &any_row);
	asked->late = watermark_add_scan(read, &late_row);
	*to = asked;
	return asked->rolled && asked->any && asked->late ? 0 : ERR_LIMIT;
}

int64_t watermark_cells_before_ms(struct watermark *watermark, const struct watermark_asked *asked,
				  uint32_t partition_count)
{
	const struct store_request *late[] = {asked->any, asked->late};
	int64_t asof_ms, before_s;
	watermark_sum_up(watermark, asked->rolled, partition_count, &asof_ms, &before_s);
	for (size_t r = 0; r < ARRAY_LEN(late); r++) {
		const struct store_cell_scan *scan = &late[r]->cell_scan;
		for (size_t i = 0; i < scan->count; i++)
			before_s = smaller_of(before_s,
					      watermark_late_slot_s(watermark, &scan->key,
								    &scan->cells[i], asof_ms));
		if (late[r]->more)
			before_s = 0;
	}
	return before_s * 1000;
}
