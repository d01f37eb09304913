/* Log cells: put in rising order, read, removed for good. */
#include "base/cursor.h"
#include "contract.h"

struct number {
	uint8_t bytes[8];
};

static struct number number(uint64_t n)
{
	struct number number;
	be64_put(number.bytes, n);
	return number;
}

static struct slice number_slice(const struct number *n)
{
	return (struct slice){(const char *)n->bytes, 8};
}

/* Lives as long as the block around it. */
#define U64(n) number_slice((struct number[]){number(n)})

/* Shard `s` of queue "q", and a column of it. */
#define ROW(s)  PARTS(TEXT("q"), U64(s))
#define COL(n)  PARTS(U64(n))
#define NOTHING (&(struct store_parts){{{0}}})

static void put(struct rig *rig, uint64_t shard, uint64_t n, const char *value)
{
	rig_log_put(rig, TABLE_QUEUE, ROW(shard), COL(n), slice_of(value));
}

/* `columns` in order, as many as given, 0 ends; each has as its value its number in decimal. */
static void expect_row(struct rig *rig, uint64_t shard, const uint64_t *columns)
{
	for (int backward = 0; backward < 2; backward++) {
		struct store_cell_scan scan = {
			.table = TABLE_QUEUE,
			.key = *ROW(shard),
			.backward = backward,
		};
		struct cells cells = rig_scan(rig, &scan, backward ? 1 : 0);
		size_t count = 0;
		while (columns[count])
			count++;
		assert_int_equal(cells.count, count);
		for (size_t i = 0; i < count; i++) {
			uint64_t n = columns[backward ? count - 1 - i : i];
			char text[32];
			snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
			struct number column = number(n);
			assert_slice(cells.list[i].column.part[0], number_slice(&column));
			assert_slice(cells.list[i].value, slice_of(text));
			assert_int_equal(cells.list[i].stamp_us, 0);
			assert_int_equal(cells.list[i].version, 0);
			assert_int_equal(cells.list[i].expires_ms, 0);
		}
	}
}

#define EXPECT(rig, shard, ...) expect_row(rig, shard, (const uint64_t[]){__VA_ARGS__, 0})
#define EXPECT_NONE(rig, shard) expect_row(rig, shard, (const uint64_t[]){0})

static void fill(struct rig *rig, uint64_t shard, uint64_t from, uint64_t to)
{
	for (uint64_t n = from; n <= to; n++) {
		char text[32];
		snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
		put(rig, shard, n, text);
	}
}

static void what_was_put_is_there_in_order(struct rig *rig)
{
	struct store_cell cell;
	fill(rig, 1, 254, 258);
	EXPECT(rig, 1, 254, 255, 256, 257, 258);
	EXPECT_NONE(rig, 0);
	EXPECT_NONE(rig, 2);
	assert_true(rig_cell_get(rig, TABLE_QUEUE, ROW(1), COL(256), &cell));
	assert_slice(cell.value, TEXT("256"));
	assert_false(rig_cell_get(rig, TABLE_QUEUE, ROW(1), COL(259), &cell));
	assert_false(rig_cell_get(rig, TABLE_QUEUE, PARTS(TEXT("p"), U64(1)), COL(256), &cell));
	rig_reopen(rig);
	rig_settle(rig);
	EXPECT(rig, 1, 254, 255, 256, 257, 258);
}

static void removal_takes_what_lies_below(struct rig *rig)
{
	fill(rig, 1, 1, 9);
	fill(rig, 2, 1, 3);
	rig_log_remove(rig, TABLE_QUEUE, ROW(1), NOTHING, COL(4));
	EXPECT(rig, 1, 4, 5, 6, 7, 8, 9);
	rig_log_remove(rig, TABLE_QUEUE, ROW(1), COL(6), COL(8));
	EXPECT(rig, 1, 4, 5, 8, 9);
	rig_log_remove(rig, TABLE_QUEUE, ROW(1), COL(6), COL(6)); /* nothing */
	rig_log_remove(rig, TABLE_QUEUE, ROW(1), COL(9), COL(4)); /* nor here */
	EXPECT(rig, 1, 4, 5, 8, 9);
	rig_log_remove(rig, TABLE_QUEUE, ROW(1), COL(9), NOTHING);
	EXPECT(rig, 1, 4, 5, 8);
	rig_reopen(rig);
	EXPECT(rig, 1, 4, 5, 8);
	rig_log_remove(rig, TABLE_QUEUE, ROW(1), NOTHING, NOTHING);
	EXPECT_NONE(rig, 1);
	EXPECT(rig, 2, 1, 2, 3);
	rig_log_remove(rig, TABLE_QUEUE, ROW(7), NOTHING, NOTHING); /* never was */
}

static void a_removed_column_may_come_again(struct rig *rig)
{
	put(rig, 1, 5, "old");
	rig_log_remove(rig, TABLE_QUEUE, ROW(1), NOTHING, COL(6));
	EXPECT_NONE(rig, 1);
	put(rig, 1, 5, "5");
	EXPECT(rig, 1, 5);
	rig_settle(rig);
	rig_reopen(rig);
	EXPECT(rig, 1, 5);
}

static void the_later_put_is_there(struct rig *rig)
{
	put(rig, 1, 5, "zzz");
	put(rig, 1, 5, "5");
	EXPECT(rig, 1, 5);
	put(rig, 1, 3, "3"); /* below: taken */
	EXPECT(rig, 1, 3, 5);
}

static void a_batch_is_applied_in_its_order(struct rig *rig)
{
	struct store_write *write = rig_write_new(rig);
	fill(rig, 1, 1, 2);
	assert_int_equal(store_log_put(write, TABLE_QUEUE, ROW(1), COL(3), TEXT("3")), 0);
	assert_int_equal(store_log_remove(write, TABLE_QUEUE, ROW(1), NOTHING, COL(4)), 0);
	assert_int_equal(store_log_put(write, TABLE_QUEUE, ROW(1), COL(4), TEXT("no")), 0);
	assert_int_equal(store_log_put(write, TABLE_QUEUE, ROW(1), COL(2), TEXT("2")), 0);
	assert_int_equal(store_log_put(write, TABLE_QUEUE, ROW(1), COL(4), TEXT("4")), 0);
	for (int i = 0; i < 2; i++) { /* sent twice, it is the same */
		assert_int_equal(rig_write(rig, write), 0);
		EXPECT(rig, 1, 2, 4);
	}
	store_write_free(write);
}

/* A message goes in the transaction that stores what it held. */
static void removal_and_samples_are_one_batch(struct rig *rig)
{
	uint64_t handle = rig_series(rig, "m", "host=a");
	struct value value = value_u64(7);
	fill(rig, 1, 1, 2);
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_append(write, &RAW, T0, &handle, 1, &value), 0);
	assert_int_equal(store_log_remove(write, TABLE_QUEUE, ROW(1), NOTHING, COL(2)), 0);
	rig_commit(rig, write);
	EXPECT(rig, 1, 2);
	expect_all(rig, RAW, handle, POINTS({T0, {value}}));
}

static void values_of_every_length(struct rig *rig)
{
	static const size_t lengths[] = {0,
					 1,
					 1900,
					 1901,
					 4050,
					 4051,
					 4052,
					 4075,
					 4076,
					 4080,
					 8200,
					 100000,
					 STORE_VALUE_MAX_BYTES};
	static char bytes[STORE_VALUE_MAX_BYTES];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7 + i / 251);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
			size_t len = lengths[round ? ARRAY_LEN(lengths) - 1 - i : i];
			rig_log_put(rig, TABLE_QUEUE, ROW(1), COL(i + 1),
				    (struct slice){bytes, len});
			struct store_cell cell;
			assert_true(rig_cell_get(rig, TABLE_QUEUE, ROW(1), COL(i + 1), &cell));
			assert_slice(cell.value, (struct slice){bytes, len});
		}
	}
	rig_reopen(rig);
	rig_log_remove(rig, TABLE_QUEUE, ROW(1), NOTHING, COL(5));
	struct store_cell_scan scan = {.table = TABLE_QUEUE, .key = *ROW(1)};
	struct cells cells = rig_scan(rig, &scan, 0);
	assert_int_equal(cells.count, ARRAY_LEN(lengths) - 4);
	assert_slice(cells.list[0].value, (struct slice){bytes, lengths[ARRAY_LEN(lengths) - 5]});
	rig_verify(rig);
	rig_log_remove(rig, TABLE_QUEUE, ROW(1), NOTHING, NOTHING);
	EXPECT_NONE(rig, 1);
	rig_verify(rig);
}

static void a_removed_row_is_gone_at_last(struct rig *rig)
{
	fill(rig, 1, 1, 2);
	fill(rig, 2, 1, 1);
	assert_int_equal(rig_enumerate(rig, TABLE_QUEUE, 0, 0).count, 2);
	rig_log_remove(rig, TABLE_QUEUE, ROW(1), NOTHING, NOTHING);
	rig_log_remove(rig, TABLE_QUEUE, ROW(2), NOTHING, COL(2));
	rig_expect_samples(rig, TABLE_QUEUE, 0);
	fill(rig, 2, 3, 3);
	EXPECT(rig, 2, 3);
	rig_verify(rig);
}

static void kinds_are_not_mixed(struct rig *rig)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_log_put(write, TABLE_RAW_TEXT, PARTS(TEXT("r")), COL(1), TEXT("x")),
			 ERR_INVALID);
	assert_int_equal(
		store_log_remove(write, TABLE_SUMMARIES, PARTS(TEXT("d")), NOTHING, NOTHING),
		ERR_INVALID);
	assert_int_equal(
		store_log_remove(write, TABLE_DATA_RAW, PARTS(TEXT("d")), NOTHING, NOTHING),
		ERR_INVALID);
	assert_int_equal(store_cell_put(write, TABLE_QUEUE, ROW(1), COL(1), TEXT("x"), 1, 0),
			 ERR_INVALID);
	assert_int_equal(store_cell_delete(write, TABLE_QUEUE, ROW(1), COL(1), 1), ERR_INVALID);
	assert_int_equal(store_log_put(write, TABLE_QUEUE, ROW(1), NOTHING, TEXT("x")),
			 ERR_INVALID);
	assert_int_equal(
		store_log_put(write, TABLE_QUEUE, ROW(1), PARTS(TEXT("no number")), TEXT("x")),
		ERR_INVALID);
	assert_int_equal(
		store_log_remove(write, TABLE_QUEUE, ROW(1), PARTS(TEXT("no number")), NOTHING),
		ERR_INVALID);
	assert_int_equal(
		store_log_remove(write, TABLE_QUEUE, ROW(1), NOTHING, PARTS(TEXT("no number"))),
		ERR_INVALID);
	assert_int_equal(write->cells, 0);
	rig_commit(rig, write);
	EXPECT_NONE(rig, 1);
}

static void work_then_die(struct store *store, struct clock *clock);

/* What was done is there after a kill: half of it removed. */
static void a_log_survives_a_kill(struct rig *rig)
{
	rig->store = rig->engine->kill_in(rig->engine->context, rig->store, &rig->clock.clock,
					  work_then_die);
	EXPECT(rig, 1, 3, 4);
}

static void note(struct store_write *write, int err)
{
	ASSERT(!err);
	*(bool *)write->owner = true;
}

static void work_then_die(struct store *store, UNUSED struct clock *clock)
{
	struct task_queue queue;
	bool done = false;
	task_queue_init(&queue);
	for (uint64_t n = 1; n <= 5; n++) {
		struct store_write *write = store_write_new(store, 1 << 20);
		write->executor = &queue.executor;
		write->done = note;
		write->owner = &done;
		done = false;
		const char text[] = {(char)('0' + n)};
		if (n < 5)
			ASSERT(!store_log_put(write, TABLE_QUEUE, ROW(1), COL(n),
					      (struct slice){text, 1}));
		else
			ASSERT(!store_log_remove(write, TABLE_QUEUE, ROW(1), NOTHING, COL(3)));
		ASSERT(!store_write_submit(write));
		while (!done)
			task_queue_wait(&queue);
		store_write_free(write);
	}
}

const struct contract_case cases_log[] = {
	CASE(what_was_put_is_there_in_order),
	CASE(removal_takes_what_lies_below),
	CASE(a_removed_column_may_come_again),
	CASE(the_later_put_is_there),
	CASE(a_batch_is_applied_in_its_order),
	CASE(removal_and_samples_are_one_batch),
	CASE(values_of_every_length),
	CASE(a_removed_row_is_gone_at_last),
	CASE(kinds_are_not_mixed),
	CASE_NEEDS(a_log_survives_a_kill, STORE_SURVIVES_KILL),
	{0},
};
