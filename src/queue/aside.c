#include "queue/aside.h"

#include "base/cursor.h"
#include "queue/wait.h"

/* Value: at i64 (ms) | whole length u64 | key length u16 | reason length u16 | key | reason |
 * bytes.
 */
enum { HEADER_BYTES = 8 + 8 + 2 + 2 };

static void put_column(uint8_t bytes[8], uint64_t sequence, struct store_parts *column)
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

/* Rows have no holes but where a write failed; those count as empty messages. */
static int count_one(const struct store_cell *cell, void *owner)
{
	struct queue_aside *aside = owner;
	uint64_t sequence = column_sequence(cell);
	if (aside->first == aside->next)
		aside->first = aside->next = sequence;
	while (aside->next < sequence)
		*size_at(aside, aside->next++) = 0;
	if (aside->next - aside->first >= ASIDE_MESSAGES_MAX)
		aside->first = aside->next - ASIDE_MESSAGES_MAX + 1;
	*size_at(aside, aside->next++) = (uint32_t)cell->value.len;
	aside->bytes += cell->value.len;
	return 0;
}

int queue_aside_open(struct queue_aside *aside, struct slice queue, struct store *store,
		     struct clock *clock, struct errbuf *e)
{
	const struct store_parts key = {{queue}};
	*aside = (struct queue_aside){.queue = queue, .first = 1, .next = 1};
	return queue_read_row(store, clock, TABLE_QUEUE_ASIDE, &key, count_one, aside, e);
}

static int remove_below(const struct queue_aside *aside, uint64_t sequence,
			struct store_write *write)
{
	const struct store_parts key = {{aside->queue}}, from = {{{0}}};
	struct store_parts to;
	uint8_t bytes[8];
	put_column(bytes, sequence, &to);
	return store_log_remove(write, TABLE_QUEUE_ASIDE, &key, &from, &to);
}

static int put_one(const struct queue_aside *aside, const struct queue_aside_message *message,
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
	put_column(column_bytes, aside->next, &column);
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
	int err = put_one(aside, message, write, &size);
	if (err)
		return err;
	bytes += size;
	while (first < aside->next &&
	       (aside->next - first >= ASIDE_MESSAGES_MAX || bytes > ASIDE_ALL_BYTES_MAX))
		bytes -= *size_at(aside, first++);
	err = first == aside->first ? 0 : remove_below(aside, first, write);
	if (err)
		return err;
	aside->first = first;
	aside->bytes = bytes;
	*size_at(aside, aside->next++) = size;
	return 0;
}

int queue_aside_clear(struct queue_aside *aside, struct store_write *write)
{
	int err = remove_below(aside, aside->next, write);
	if (err)
		return err;
	aside->first = aside->next;
	aside->bytes = 0;
	return 0;
}

void queue_aside_scan(struct slice queue, struct store_cell_scan *scan)
{
	*scan = (struct store_cell_scan){
		.table = TABLE_QUEUE_ASIDE,
		.key = {{queue}},
		.backward = true,
	};
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
