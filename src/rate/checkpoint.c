#include "rate/checkpoint.h"

#include "rate/numbers.h"

enum { CHECKPOINT_VERSION = 2, COUNT_BYTES = 4 };

static void read_config(struct checkpoint *c)
{
	c->config.base_ms = (int64_t)cursor_varint(&c->from);
	uint64_t periods = cursor_varint(&c->from);
	if (periods > COUNTER_PERIODS_MAX) {
		c->from.bad = true;
		return;
	}
	c->config.period_count = (size_t)periods;
	for (size_t i = 0; i < c->config.period_count; i++)
		c->config.periods_ms[i] = (int64_t)cursor_varint(&c->from);
	if (!c->from.bad && counter_config_check(&c->config, NULL))
		c->from.bad = true;
}

static void read_columns(struct checkpoint *c)
{
	uint64_t count = cursor_varint(&c->from);
	if (count > RATE_COLUMNS_MAX)
		c->from.bad = true;
	for (c->column_count = 0; !c->from.bad && c->column_count < count; c->column_count++) {
		uint64_t len = cursor_varint(&c->from);
		const uint8_t *name =
			len <= METRIC_MAX_BYTES ? cursor_take(&c->from, (size_t)len) : NULL;
		c->columns[c->column_count] = (struct slice){(const char *)name, (size_t)len};
		c->from.bad |= !name;
	}
}

int checkpoint_open(struct slice bytes, struct checkpoint *c)
{
	*c = (struct checkpoint){.from = cursor_of(bytes.data, bytes.len)};
	uint8_t version = cursor_u8(&c->from);
	if (!c->from.bad && version > CHECKPOINT_VERSION)
		return ERR_VERSION;
	if (version != CHECKPOINT_VERSION)
		return ERR_DAMAGED;
	read_config(c);
	c->until_ms = zigzag_decode(cursor_varint(&c->from));
	if (c->until_ms != CHECKPOINT_NEVER &&
	    (c->until_ms < STORE_TS_MIN || c->until_ms > STORE_TS_MAX))
		c->from.bad = true;
	read_columns(c);
	c->rows_left = cursor_u32(&c->from);
	return c->from.bad ? ERR_DAMAGED : 0;
}

void checkpoint_match(const struct checkpoint *c, const struct rate_table *table,
		      size_t match[RATE_COLUMNS_MAX])
{
	for (size_t i = 0; i < c->column_count; i++) {
		match[i] = RATE_COLUMNS_MAX;
		for (size_t j = 0; j < table->column_count; j++)
			if (slice_equal(c->columns[i], table->columns[j].name))
				match[i] = j;
	}
}

int checkpoint_next(struct checkpoint *c, struct checkpoint_row *row)
{
	if (!c->rows_left)
		return cursor_left(&c->from) ? ERR_DAMAGED : ERR_NOT_FOUND;
	c->rows_left--;
	row->id = cursor_u64(&c->from);
	row->columns = cursor_varint(&c->from);
	c->states.len = cursor_u32(&c->from);
	c->states.data = (const char *)cursor_take(&c->from, c->states.len);
	if (c->from.bad || !row->columns ||
	    (c->column_count < RATE_COLUMNS_MAX && row->columns >> c->column_count != 0))
		return ERR_DAMAGED;
	return 0;
}

int checkpoint_states(const struct checkpoint *c, struct checkpoint_row *row,
		      struct counter *const *places)
{
	struct cursor from = cursor_of(c->states.data, c->states.len);
	struct counter *states[RATE_COLUMNS_MAX];
	uint64_t unused[RATE_COLUMNS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < c->column_count; i++)
		if (row->columns >> i & 1)
			states[count++] = places && places[i] ? places[i] : &row->states[i];
	numbers_take(&from, unused, count);
	int err = from.bad ? ERR_DAMAGED : counter_decode(&c->config, &from, states, count);
	return !err && cursor_left(&from) ? ERR_DAMAGED : err;
}

static void checkpoint_append_varint(struct buf *out, uint64_t value)
{
	uint8_t bytes[10];
	buf_append(out, bytes, varint_put(bytes, value));
}

static void checkpoint_append_numbers(struct buf *out, const uint64_t *numbers, size_t count)
{
	uint8_t *to = (uint8_t *)buf_reserve(out, numbers_room(count));
	if (to)
		out->len += (size_t)(numbers_put(to, numbers, count) - to);
	else
		out->failed = true;
}

void checkpoint_begin(struct checkpoint_writer *w, const struct counter_config *config,
		      int64_t until_ms, const struct slice *columns, size_t column_count)
{
	static const uint8_t no_rows[COUNT_BYTES];
	buf_clear(&w->bytes);
	w->config = config;
	w->rows = 0;
	buf_append_char(&w->bytes, CHECKPOINT_VERSION);
	checkpoint_append_varint(&w->bytes, (uint64_t)config->base_ms);
	checkpoint_append_varint(&w->bytes, config->period_count);
	for (size_t i = 0; i < config->period_count; i++)
		checkpoint_append_varint(&w->bytes, (uint64_t)config->periods_ms[i]);
	checkpoint_append_varint(&w->bytes, zigzag_encode(until_ms));
	checkpoint_append_varint(&w->bytes, column_count);
	for (size_t i = 0; i < column_count; i++) {
		checkpoint_append_varint(&w->bytes, columns[i].len);
		buf_append(&w->bytes, columns[i].data, columns[i].len);
	}
	w->count_at = w->bytes.len;
	buf_append(&w->bytes, no_rows, sizeof(no_rows));
}

void checkpoint_add(struct checkpoint_writer *w, uint64_t id, uint64_t columns,
		    const struct counter *states)
{
	static const uint64_t zeros[RATE_COLUMNS_MAX];
	const struct counter *known[RATE_COLUMNS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < RATE_COLUMNS_MAX && columns >> i; i++)
		if (columns >> i & 1)
			known[count++] = &states[i];
	buf_append(&w->bytes, &id, sizeof(id));
	checkpoint_append_varint(&w->bytes, columns);
	size_t len_at = w->bytes.len;
	uint32_t len = 0;
	buf_append(&w->bytes, &len, sizeof(len));
	checkpoint_append_numbers(&w->bytes, zeros, count);
	if (counter_encode(w->config, known, count, &w->bytes))
		w->bytes.failed = true;
	if (w->bytes.failed)
		return;
	len = (uint32_t)(w->bytes.len - len_at - sizeof(len));
	memcpy(w->bytes.data + len_at, &len, sizeof(len));
	w->rows++;
}

int checkpoint_end(struct checkpoint_writer *w, struct slice *bytes)
{
	if (w->bytes.failed)
		return ERR_LIMIT;
	memcpy(w->bytes.data + w->count_at, &w->rows, sizeof(w->rows));
	*bytes = buf_slice(&w->bytes);
	return 0;
}
