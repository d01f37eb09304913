#include "rate/rows.h"

#include "base/grow.h"
#include "base/mem.h"
#include "rate/feeder.h"

void row_list_add(struct row_list *list, const struct counter_row *row)
{
	GROW(list->rows, list->cap, list->count + 1);
	list->rows[list->count++] = *row;
}

struct counter_row row_usual(const struct counter_config *config, size_t level)
{
	return (struct counter_row){.level = (uint8_t)level,
				    .count = level ? 0 : 2,
				    .covered_ms = (uint32_t)counter_level_ms(config, level)};
}

static inline uint64_t row_number_of(const struct counter_row *row, size_t field)
{
	switch (field) {
	case 0:
		return row->val;
	case 1:
		return row->count;
	case 2:
		return row->covered_ms;
	case 3:
		return row->flags;
	default:
		return row->unplaced;
	}
}

/* Of all rows, as bits. */
static unsigned unusual_fields(const struct counter_row *const *rows, size_t count,
			       const struct counter_row *usual)
{
	uint64_t counts = 0, covered = 0, flags = 0, unplaced = 0;
	for (size_t i = 0; i < count; i++) {
		counts |= rows[i]->count ^ usual->count;
		covered |= rows[i]->covered_ms ^ usual->covered_ms;
		flags |= (unsigned)(rows[i]->flags ^ usual->flags);
		unplaced |= rows[i]->unplaced ^ usual->unplaced;
	}
	return (unsigned)(counts != 0) << 1 | (unsigned)(covered != 0) << 2 |
	       (unsigned)(flags != 0) << 3 | (unsigned)(unplaced != 0) << 4;
}

unsigned rows_fields(const struct counter_config *config, const struct counter_row *const *rows,
		     size_t count, bool whole, struct value *values)
{
	struct counter_row usual = row_usual(config, count ? rows[0]->level : 0);
	unsigned given = whole ? (1u << ROW_FIELDS) - 1 : 1 | unusual_fields(rows, count, &usual);
	size_t step = fields_count(given);
	for (size_t f = 0; f < ROW_FIELDS; f++) {
		if (!(given >> f & 1))
			continue;
		for (size_t i = 0; i < count; i++)
			values[i * step] = value_u64(row_number_of(rows[i], f));
		values++;
	}
	return given;
}

static uint64_t row_number_at(const struct store_points *p, size_t field, size_t i, uint64_t usual)
{
	uint64_t value;
	return p->bits[field] && feeder_value(p->types[field][i], p->bits[field][i], &value)
		       ? value
		       : usual;
}

struct counter_row row_of_points(const struct store_points *p, size_t i,
				 const struct counter_row *usual)
{
	return (struct counter_row){.start_ms = p->ts_ms[i],
				    .level = usual->level,
				    .val = row_number_at(p, 0, i, 0),
				    .count = (uint32_t)row_number_at(p, 1, i, usual->count),
				    .covered_ms =
					    (uint32_t)row_number_at(p, 2, i, usual->covered_ms),
				    .flags = (uint8_t)(row_number_at(p, 3, i, 0) & COUNTER_FLAGS),
				    .unplaced = row_number_at(p, 4, i, 0)};
}

void row_extremes_fields(const struct counter_row *row, struct value fields[ROW_EXTREMES_FIELDS])
{
	fields[0] = value_f64(row->min);
	fields[1] = value_f64(row->max);
	fields[2] = value_i64(row->min_ts_ms);
	fields[3] = value_i64(row->max_ts_ms);
}

void row_list_extremes(struct row_list *list, const struct store_points *p)
{
	size_t at = 0;
	for (size_t i = 0; i < p->count; i++) {
		struct value min = {p->bits[0][i], (enum value_type)p->types[0][i]};
		struct value max = {p->bits[1][i], (enum value_type)p->types[1][i]};
		while (at < list->count && list->rows[at].start_ms < p->ts_ms[i])
			at++;
		if (at == list->count || list->rows[at].start_ms != p->ts_ms[i])
			continue;
		list->rows[at].has_rate = true;
		list->rows[at].min = value_as_f64(min);
		list->rows[at].max = value_as_f64(max);
		list->rows[at].min_ts_ms = (int64_t)p->bits[2][i];
		list->rows[at].max_ts_ms = (int64_t)p->bits[3][i];
	}
}

int row_store(struct store_write *write, const struct counter_config *config,
	      enum retention_class retention, uint64_t handle, const struct counter_row *row,
	      bool none)
{
	struct store_target target = {rate_level_table(row->level), retention,
				      counter_level_ms(config, row->level)};
	int64_t at = row->start_ms;
	struct value values[ROW_FIELDS], extremes[ROW_EXTREMES_FIELDS];
	unsigned fields = rows_fields(config, &row, 1, true, values);
	row_extremes_fields(row, extremes);
	int err = none ? store_delete_range(write, &target, &handle, 1, at, at + 1)
		       : store_append_fields(write, &target, at, fields, &handle, 1, values);
	if (err || !row->level)
		return err;
	target.table = TABLE_STAT_AGGREGATIONS;
	if (none || !row->has_rate)
		return store_delete_range(write, &target, &handle, 1, at, at + 1);
	return store_append(write, &target, at, &handle, 1, extremes);
}

bool rows_equal(const struct counter_row *a, const struct counter_row *b)
{
	return a->start_ms == b->start_ms && a->val == b->val && a->unplaced == b->unplaced &&
	       a->covered_ms == b->covered_ms && a->count == b->count && a->flags == b->flags &&
	       a->has_rate == b->has_rate &&
	       (!a->has_rate || (a->min == b->min && a->max == b->max &&
				 a->min_ts_ms == b->min_ts_ms && a->max_ts_ms == b->max_ts_ms));
}
