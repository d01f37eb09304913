#include "queue/aside.h"

#include "base/cursor.h"
#include "base/stats.h"
#include "store/wait.h"

/* Value: at i64 (ms) | whole length u64 | key length u16 | reason length u16 | key | reason |
 * bytes.
 */
enum { HEADER_BYTES = 8 + 8 + 2 + 2 };

static void aside_put_column(uint8_t bytes[8], uint64_t sequence, struct store_parts *column)
{
	be64_put(bytes, sequence);
	*column = (struct store_parts){{{(const char *)bytes, 8}}};
}

static uint64_t column_sequence(const struct store_cell *cell)
{
	return be64_get((const uint8_t *)cell->column.part[0].data);
}

static uint32_t *size_at(struct queue_aside *aside, uint64_t sequence)
{
	return &aside->sizes[sequence % ASIDE_MESSAGES_MAX];
}

static void aside_append(struct queue_aside *aside, uint32_t size)
{
	*size_at(aside, aside->next++) = size;
	aside->count += size != 0;
	aside->bytes += size;
}

/* Leaves a hole where one was, and no holes in front. */
static void aside_remove(struct queue_aside *aside, uint64_t sequence)
{
	uint32_t *size = size_at(aside, sequence);
	aside->count -= *size != 0;
	aside->bytes -= *size;
	*size = 0;
	while (aside->first < aside->next && !*size_at(aside, aside->first))
		aside->first++;
}

/* There are holes where a write failed, and where messages were given back. */
static int count_one(const struct store_cell *cell, void *owner)
{
	struct queue_aside *aside = owner;
	uint64_t sequence = column_sequence(cell);
	if (aside->first == aside->next)
		aside->first = aside->next = sequence;
	while (sequence - aside->first >= ASIDE_MESSAGES_MAX && aside->first < aside->next)
		aside_remove(aside, aside->first);
	if (aside->first == aside->next)
		aside->first = aside->next = sequence;
	while (aside->next < sequence)
		aside_append(aside, 0);
	aside_append(aside, (uint32_t)cell->value.len);
	return 0;
}

int queue_aside_open(struct queue_aside *aside, struct slice queue, struct store *store,
		     struct clock *clock, struct errbuf *e)
{
	const struct store_parts key = {{queue}};
	*aside = (struct queue_aside){.queue = queue, .first = 1, .next = 1};
	struct task_queue tasks;
	task_queue_init(&tasks);
	int err = store_row_wait(store, &tasks, clock_wall_ms(clock), TABLE_QUEUE_ASIDE, &key,
				 count_one, aside, e);
	task_queue_release(&tasks);
	return err;
}

static int remove_below(const struct queue_aside *aside, uint64_t sequence,
			struct store_write *write)
{
	const struct store_parts key = {{aside->queue}}, from = {{{0}}};
	struct store_parts to;
	uint8_t bytes[8];
	aside_put_column(bytes, sequence, &to);
	return store_log_remove(write, TABLE_QUEUE_ASIDE, &key, &from, &to);
}

static int aside_put_one(const struct queue_aside *aside, const struct queue_aside_message *message,
			 struct store_write *write, uint32_t *size)
{
	struct slice reason = message->reason, bytes = message->bytes;
	struct store_parts column;
	const struct store_parts key = {{aside->queue}};
	uint8_t column_bytes[8];
	struct buf value;
	if (reason.len > ASIDE_REASON_MAX_BYTES)
		reason.len = ASIDE_REASON_MAX_BYTES;
	if (bytes.len > ASIDE_BYTES_MAX)
		bytes.len = ASIDE_BYTES_MAX;
	uint16_t key_len = (uint16_t)message->key.len, reason_len = (uint16_t)reason.len;
	buf_init(&value, HEADER_BYTES + UINT16_MAX + ASIDE_REASON_MAX_BYTES + ASIDE_BYTES_MAX);
	buf_append(&value, &message->at_ms, 8);
	buf_append(&value, &message->whole_bytes, 8);
	buf_append(&value, &key_len, 2);
	buf_append(&value, &reason_len, 2);
	buf_append(&value, message->key.data, key_len);
	buf_append(&value, reason.data, reason.len);
	buf_append(&value, bytes.data, bytes.len);
	aside_put_column(column_bytes, aside->next, &column);
	int err = store_log_put(write, TABLE_QUEUE_ASIDE, &key, &column, buf_slice(&value));
	*size = (uint32_t)value.len;
	buf_release(&value);
	return err;
}

int queue_aside_add(struct queue_aside *aside, const struct queue_aside_message *message,
		    struct store_write *write)
{
	uint32_t size = 0;
	uint64_t first = aside->first, bytes = aside->bytes;
	int err = aside_put_one(aside, message, write, &size);
	if (err)
		return err;
	bytes += size;
	while (first < aside->next &&
	       (aside->next - first >= ASIDE_MESSAGES_MAX || bytes > ASIDE_ALL_BYTES_MAX))
		bytes -= *size_at(aside, first++);
	err = first == aside->first ? 0 : remove_below(aside, first, write);
	if (err)
		return err;
	uint64_t before = aside->count;
	while (aside->first < first)
		aside_remove(aside, aside->first);
	aside->dropped += before - aside->count;
	stat_add(STAT_queue_aside_dropped, (int64_t)(before - aside->count));
	aside_append(aside, size);
	return 0;
}

void queue_aside_take_back(struct queue_aside *aside, uint64_t sequence)
{
	aside_remove(aside, sequence);
	if (sequence + 1 == aside->next)
		aside->next--;
	if (aside->first > aside->next)
		aside->first = aside->next;
}

int queue_aside_remove(const struct queue_aside *aside, uint64_t sequence,
		       struct store_write *write)
{
	const struct store_parts key = {{aside->queue}};
	struct store_parts from, to;
	uint8_t from_bytes[8], to_bytes[8];
	aside_put_column(from_bytes, sequence, &from);
	aside_put_column(to_bytes, sequence + 1, &to);
	return store_log_remove(write, TABLE_QUEUE_ASIDE, &key, &from, &to);
}

void queue_aside_removed(struct queue_aside *aside, uint64_t sequence)
{
	if (sequence >= aside->first) /* or it had to go meanwhile */
		aside_remove(aside, sequence);
}

void queue_aside_scan(struct slice queue, struct store_cell_scan *scan)
{
	*scan = (struct store_cell_scan){
		.table = TABLE_QUEUE_ASIDE,
		.key = {{queue}},
		.backward = true,
	};
}

int queue_aside_scan_from(const struct queue_aside *aside, uint64_t from, uint64_t to,
			  struct arena *arena, struct store_cell_scan *scan)
{
	uint8_t *bytes = arena_alloc(arena, 16);
	if (!bytes)
		return ERR_LIMIT;
	*scan = (struct store_cell_scan){.table = TABLE_QUEUE_ASIDE, .key = {{aside->queue}}};
	aside_put_column(bytes, from, &scan->from);
	aside_put_column(bytes + 8, to, &scan->to);
	return 0;
}

int queue_aside_decode(const struct store_cell *cell, struct queue_aside_message *message)
{
	struct cursor c = cursor_of(cell->value.data, cell->value.len);
	*message = (struct queue_aside_message){.sequence = column_sequence(cell)};
	message->at_ms = (int64_t)cursor_u64(&c);
	message->whole_bytes = cursor_u64(&c);
	message->key.len = cursor_u16(&c);
	message->reason.len = cursor_u16(&c);
	message->key.data = (const char *)cursor_take(&c, message->key.len);
	message->reason.data = (const char *)cursor_take(&c, message->reason.len);
	message->bytes = (struct slice){(const char *)c.at, cursor_left(&c)};
	return c.bad ? ERR_DAMAGED : 0;
}
