/* Rows that are stored already: those beside which late ones are to stand, and those that are to go
 * since their samples were deleted. */
#include "rollup/batch/private.h"

#include "retention/late.h"

/* ---- Rows beside late ones ------------------------------------------------------------------- */

static uint8_t batch_row_says(const struct store_points *rows, size_t i)
{
	if (!late_row_is(rows->ts_ms[i]))
		return ROW_THERE;
	return rows->types[ROLLUP_FIRST][i] == VALUE_NONE ? LATE_ROW_THERE
							  : LATE_ROW_THERE | LATE_ROW_WHOLE;
}

static void batch_take_rows(struct rollup_batch *b, size_t granularity,
			    const struct store_range *answer)
{
	size_t first = batch_first_row(b, granularity);
	for (size_t h = 0; h < answer->handle_count; h++) {
		const struct store_points *rows = &answer->points[h];
		for (size_t i = 0; i < rows->count; i++) {
			int64_t since_ms = rows->ts_ms[i] - answer->start_ms;
			size_t row = first + (size_t)(since_ms / answer->period_ms);
			b->there[batch_place(b, row, b->places[0][h])] |= batch_row_says(rows, i);
		}
	}
}

/* In one granularity, of so many handles. */
static int batch_look_for_rows_of(struct rollup_batch *b, size_t granularity, size_t count)
{
	int64_t start_ms = b->slot_s * 1000;
	struct store_token token = {0};
	for (bool more = true; more;) {
		store_read_reset(b->read);
		struct store_request *request = store_read_add(b->read, STORE_RANGE);
		if (!request)
			return ERR_LIMIT;
		request->token = token;
		request->range = (struct store_range){
			.table = TABLE_DATA_DOWNSAMPLED,
			.period_ms = b->site->granularities.list[granularity].width_ms,
			.handles = b->handles[0],
			.handle_count = count,
			.fields = 1u << ROLLUP_SUM | 1u << ROLLUP_FIRST,
			.start_ms = start_ms,
			.end_ms = start_ms + b->site->granularities.slot_ms};
		int err = batch_read(b);
		if (err)
			return err;
		batch_take_rows(b, granularity, &request->range);
		more = request->more;
		token = request->token;
	}
	return 0;
}

int batch_read_rows(struct rollup_batch *b)
{
	size_t n = 0;
	int err = 0;
	for (size_t i = b->from; i < b->to; i++) {
		if (!batch_reads(b, &b->members[i]))
			continue;
		b->handles[0][n] = b->members[i].handle;
		b->places[0][n++] = (uint16_t)i;
	}
	for (size_t g = 0; g < b->site->granularities.count && n && !err; g++)
		err = batch_look_for_rows_of(b, g, n);
	return err;
}

/* Whether a row of the bucket that is not of late points is there when all this is written. */
static bool batch_has_other_row(struct rollup_batch *b, const struct row_place *place,
				size_t member)
{
	const struct member *m = &b->members[member];
	bool goes = m->mark->deleted && m->has_raw;
	return batch_has_row(b, place->row, member) ||
	       (!goes && b->there[batch_place(b, place->row, member)] & ROW_THERE);
}

/* A row of late samples knows the first and last value only if the bucket has no other row. */
static void batch_settle_late(struct rollup_batch *b, const struct row_place *place, size_t member)
{
	struct value *late = batch_row_in(b, b->late, place->row, member);
	if (batch_has_other_row(b, place, member))
		late[ROLLUP_FIRST] = late[ROLLUP_LAST] = late[ROLLUP_INCREASE] = (struct value){0};
}

/* Rows that were handed to such a store and have not come yet, maybe by somebody who is dead, are
 * not seen: what may be there goes. */
static bool batch_may_have_unseen(const struct rollup_batch *b)
{
	return !(b->site->store->engine->can & STORE_SERIAL_WRITES);
}

/* One that said more than what takes its place, or that nothing speaks for any more. */
static int batch_drop_late(struct rollup_batch *b, const struct row_place *place, size_t member)
{
	const struct value *late = batch_row_in(b, b->late, place->row, member);
	uint8_t there = b->there[batch_place(b, place->row, member)];
	if (batch_may_have_unseen(b))
		there = LATE_ROW_THERE | LATE_ROW_WHOLE;
	bool made = late[ROLLUP_SUM].type != VALUE_NONE;
	bool less = there & LATE_ROW_WHOLE && late[ROLLUP_FIRST].type == VALUE_NONE;
	if (!(there & LATE_ROW_THERE) || (made && !less))
		return 0;
	b->removals++;
	struct store_target target = {
		.table = TABLE_DATA_DOWNSAMPLED,
		.period_ms = b->site->granularities.list[place->granularity].width_ms};
	return store_delete_range(b->write, &target, &b->members[member].handle, 1, place->ts_ms,
				  place->ts_ms + 1);
}

/* Nothing is known of a damaged series, and expired rows are not made again. */
int batch_settle_member(struct rollup_batch *b, const struct row_place *place, size_t member)
{
	const struct member *m = &b->members[member];
	int64_t end_ms = place->ts_ms + b->site->granularities.list[place->granularity].width_ms;
	int64_t keep_ms = m->keep_ms[place->granularity];
	if (m->damaged || (keep_ms && end_ms <= clock_age_ms(b->site->clock) - keep_ms)) {
		memset(batch_row_in(b, b->late, place->row, member), 0,
		       ROLLUP_FIELDS * sizeof(*b->late));
		return 0;
	}
	batch_settle_late(b, place, member);
	return batch_drop_late(b, place, member);
}

/* ---- Rows that are to go --------------------------------------------------------------------- */

static bool batch_lacks_rows(struct rollup_batch *b, size_t granularity, size_t member)
{
	size_t first = batch_first_row(b, granularity);
	for (size_t w = 0; w < batch_windows(&b->site->granularities, granularity); w++) {
		if (!batch_has_row(b, first + w, member))
			return true;
	}
	return false;
}

/* Those of which rows of the granularity may have to go. */
static size_t batch_list_lacking(struct rollup_batch *b, size_t granularity)
{
	size_t n = 0;
	for (size_t i = 0; i < b->count; i++) {
		const struct member *m = &b->members[i];
		/* Raw samples may have begun to expire since: rows may be of more than was read. */
		if (!m->mark->deleted || !m->handle || m->damaged || !m->has_raw ||
		    !batch_has_raw(b, m) || !batch_lacks_rows(b, granularity, i))
			continue;
		b->handles[0][n] = m->handle;
		b->places[0][n++] = (uint16_t)i;
	}
	return n;
}

/* Windows from..to of a member; those between that are to stay are put behind it. */
static int batch_add_removal(struct rollup_batch *b, size_t granularity, size_t member, size_t from,
			     size_t to)
{
	int64_t width_ms = b->site->granularities.list[granularity].width_ms;
	struct store_target target = {.table = TABLE_DATA_DOWNSAMPLED, .period_ms = width_ms};
	if (from >= to)
		return 0;
	b->removals++;
	return store_delete_range(b->write, &target, &b->members[member].handle, 1,
				  b->slot_s * 1000 + (int64_t)from * width_ms,
				  b->slot_s * 1000 + (int64_t)to * width_ms);
}

/* From the first of the stored rows that is to go to the last. */
static int batch_remove_rows_of(struct rollup_batch *b, size_t granularity, size_t member,
				const struct store_windows *stored)
{
	size_t row = batch_first_row(b, granularity),
	       from = batch_windows(&b->site->granularities, granularity), to = 0;
	for (size_t i = 0; i < stored->count; i++) {
		size_t w = stored->numbers[i];
		if (batch_has_row(b, row + w, member))
			continue;
		from = w < from ? w : from;
		to = w + 1;
	}
	return batch_add_removal(b, granularity, member, from, to);
}

/* The same of rows that may be stored. */
static int batch_remove_unseen_of(struct rollup_batch *b, size_t granularity, size_t count)
{
	size_t row = batch_first_row(b, granularity),
	       windows = batch_windows(&b->site->granularities, granularity);
	int err = 0;
	for (size_t i = 0; i < count && !err; i++) {
		size_t member = b->places[0][i], from = 0, to = windows;
		while (batch_has_row(b, row + from, member))
			from++;
		while (batch_has_row(b, row + to - 1, member))
			to--;
		err = batch_add_removal(b, granularity, member, from, to);
	}
	return err;
}

/* Looks which rows of a granularity there are of the first `count` handles; *looked: of these,
 * those of which it is known. */
static int batch_look_for_rows(struct rollup_batch *b, size_t granularity, size_t count,
			       size_t *looked)
{
	int64_t width_ms = b->site->granularities.list[granularity].width_ms,
		start_ms = b->slot_s * 1000;
	struct store_token token = {0};
	for (bool more = true; more;) {
		store_read_reset(b->read);
		struct store_request *request = store_read_add(b->read, STORE_AGGREGATE);
		if (!request)
			return ERR_LIMIT;
		request->token = token;
		request->aggregate = (struct store_aggregate){
			.table = TABLE_DATA_DOWNSAMPLED,
			.period_ms = width_ms,
			.handles = b->handles[0],
			.handle_count = count,
			.field = ROLLUP_FIRST,
			.start_ms = start_ms,
			.end_ms = start_ms + b->site->granularities.slot_ms,
			.window_ms = width_ms};
		int err = batch_read(b);
		for (; !err && *looked < request->aggregate.next_handle; ++*looked)
			err = batch_remove_rows_of(b, granularity, b->places[0][*looked],
						   &request->aggregate.windows[*looked]);
		if (err)
			return err;
		more = request->more;
		token = request->token;
	}
	return 0;
}

/* Which of them is damaged is not looked for: all that were not looked at stay marked, and have the
 * rows that were made. */
int batch_remove_rows(struct rollup_batch *b)
{
	for (size_t granularity = 0; granularity < b->site->granularities.count; granularity++) {
		size_t count = batch_list_lacking(b, granularity), looked = 0;
		int err = 0;
		if (batch_may_have_unseen(b))
			err = batch_remove_unseen_of(b, granularity, count);
		else if (count)
			err = batch_look_for_rows(b, granularity, count, &looked);
		if (err && err != ERR_DAMAGED)
			return err;
		for (; err && looked < count; looked++)
			batch_give_up_series(b, &b->members[b->places[0][looked]]);
	}
	return 0;
}
