/* A router's recorded hours as raw data and as what is read of them; and a checkpoint as it is
 * stored. */
#ifndef TESTS_UNIT_RATE_STORE_HARNESS_H
#define TESTS_UNIT_RATE_STORE_HARNESS_H

#include "rate_alu.h"
#include "rate_harness.h"

#define NEW_YEAR INT64_C(1356998400000) /* 2013-01-01T00:00:00Z */

static inline void feed_alu(struct rig *rig)
{
	struct store_write *write = rig_new_write(rig);

	for (size_t i = 0; i < ARRAY_LEN(alu_polls); i++)
		rig_put(rig, write, rig->handles[0][0], alu_polls[i].s * 1000, alu_polls[i].value);
	rig_submit(rig, write);
}

static inline void assert_alu(struct rig *rig)
{
	uint64_t sum = 0, count = 0;
	double max = 0;
	struct rate_series s;

	assert_int_equal(rig_read_table(rig, &rig->table, 0, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	for (size_t i = 0; i < s.count; i++)
		sum += s.rows[i].val;
	assert_int_equal(sum, 8656);
	assert_int_equal(rate_read_series(rig->read, 0, 1).count, 0);
	sum = 0;
	assert_int_equal(rig_read_table(rig, &rig->table, 1, 0, NEW_YEAR), 0);
	s = rate_read_series(rig->read, 0, 0);
	for (size_t i = 0; i < s.count; i++) {
		sum += s.rows[i].val;
		count += s.rows[i].count;
		if (s.rows[i].max > max)
			max = s.rows[i].max;
		assert_true(s.rows[i].min == 0);
	}
	assert_int_equal(sum, 8656);
	assert_int_equal(count, 117);
	assert_true(max == 736 * 1000.0 / 31000);
}

static inline struct slice read_cell(struct rig *rig, struct buf *copy)
{
	struct store_read *read = rig_new_read(rig);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	static const uint8_t zero[8];

	request->cell_get.table = TABLE_RATE_CHECKPOINTS;
	request->cell_get.key = (struct store_parts){{rig->table.device, rig->table.oidset}};
	request->cell_get.column = (struct store_parts){{{(const char *)zero, 8}}};
	assert_int_equal(store_read_submit(read), 0);
	rig_wait(rig);
	buf_clear(copy);
	if (request->cell_get.found)
		buf_append(copy, request->cell_get.cell.value.data,
			   request->cell_get.cell.value.len);
	store_read_free(read);
	return buf_slice(copy);
}

static inline void write_cell(struct rig *rig, struct slice bytes)
{
	struct store_write *write = rig_new_write(rig);
	static const uint8_t zero[8];
	struct store_parts key = {{rig->table.device, rig->table.oidset}};
	struct store_parts column = {{{(const char *)zero, 8}}};

	assert_int_equal(store_cell_put(write, TABLE_RATE_CHECKPOINTS, &key, &column, bytes,
					store_stamp(rig->store), 0),
			 0);
	rig_submit(rig, write);
}

#endif
