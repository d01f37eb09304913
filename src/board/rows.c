#include "board/rows.h"

#include <stdio.h>

#include "base/stats.h"
#include "board/row_name.h"
#include "store/wait.h"
#include "wire/chukwa_key.h"
#include "wire/md5.h"
#include "wire/number.h"

enum {
	ROWS_DIGITS = 16, /* of a note's hash */
	ROWS_HASH_BYTES = ROWS_DIGITS / 2,
	ROWS_WRITE_MAX_BYTES = 64 << 10,
	ROWS_READ_MAX_BYTES = 64 << 10,
};
#define ROWS_DAY_MS INT64_C(86400000)

static const char *const row_families[] = {[ROW_TEXTS] = "t", [ROW_NOTES] = "a"};

/* ---- Keys and columns ------------------------------------------------------------------------ */

/* The key of a day's row, and a column, with their memory. */
struct rows_place {
	struct store_parts key, column;
	char key_bytes[CHUKWA_KEY_BYTES];
	char qualifier[sizeof(uint64_t) + ROWS_HASH_BYTES];
};

static void rows_put_ms(char to[sizeof(uint64_t)], int64_t ms)
{
	uint64_t big = __builtin_bswap64((uint64_t)ms);
	memcpy(to, &big, sizeof(big));
}

static int rows_set_key(struct rows_place *place, const struct row *row, int64_t day,
			struct errbuf *e)
{
	int err =
		chukwa_key_make(CHUKWA_DAYS_EPOCH, day, row->metric, row->source, place->key_bytes);
	if (err)
		return errbuf_set(e, err, "libcrypto has no MD5, which keys of rows are made of");
	place->key = (struct store_parts){{row->tenant, {place->key_bytes, CHUKWA_KEY_BYTES}}};
	return 0;
}

/* `hash_bytes` of the qualifier are there already. */
static void rows_set_column(struct rows_place *place, enum row_family family, int64_t ms,
			    size_t hash_bytes)
{
	rows_put_ms(place->qualifier, ms);
	place->column = (struct store_parts){{slice_of(row_families[family]),
					      {place->qualifier, sizeof(uint64_t) + hash_bytes}}};
}

/* Two hexadecimal digits a byte. */
static bool rows_read_hash(const char *digits, char to[ROWS_HASH_BYTES])
{
	for (size_t i = 0; i < ROWS_HASH_BYTES; i++) {
		int high = number_hex_digit(digits[2 * i]),
		    low = number_hex_digit(digits[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		to[i] = (char)(high << 4 | low);
	}
	return true;
}

static int rows_set_note(struct rows_place *place, int64_t ms, struct slice text, struct errbuf *e)
{
	char digits[MD5_HEX_BYTES];
	int err = md5_hex(&text, 1, digits);
	if (err)
		return errbuf_set(e, err, "libcrypto has no MD5, which ids of notes are made of");
	bool good = rows_read_hash(digits, place->qualifier + sizeof(uint64_t));
	ASSERT(good);
	rows_set_column(place, ROW_NOTES, ms, ROWS_HASH_BYTES);
	return 0;
}

static void rows_print_id(const char qualifier[sizeof(uint64_t) + ROWS_HASH_BYTES], int64_t ms,
			  struct row_note_id *id)
{
	int len = snprintf(id->text, sizeof(id->text), "%lld-", (long long)ms);
	for (size_t i = 0; i < ROWS_HASH_BYTES; i++)
		len += snprintf(id->text + len, sizeof(id->text) - (size_t)len, "%02x",
				(uint8_t)qualifier[sizeof(uint64_t) + i]);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static int rows_check(const struct row *row, int64_t ms, struct slice text, struct errbuf *e)
{
	if (ms < 0 || floor_div(ms, ROWS_DAY_MS) > CHUKWA_DAY_MAX)
		return errbuf_set(e, ERR_INVALID,
				  "the time %lld ms is none of 1970-01-01 to 2149-06-06",
				  (long long)ms);
	if (text.len > ROW_TEXT_MAX_BYTES)
		return errbuf_set(e, ERR_LIMIT, "the text has %zu bytes; at most %d are taken",
				  text.len, ROW_TEXT_MAX_BYTES);
	if (!row->metric.len || !row->source.len)
		return errbuf_set(e, ERR_INVALID, "the metric or the source is empty");
	return 0;
}

/* How long samples of a metric are kept; 0: for ever. */
static int64_t rows_metric_keep_ms(const struct row_site *site, struct slice tenant,
				   struct slice metric, enum row_family family)
{
	const struct retention_rules *rules = atomic_load(&site->retention);
	const struct retention_fit fit = retention_match(rules, tenant, metric);
	int64_t keep_ms = retention_keep_ms(rules, fit.raw, rules->levels_ms[0]);
	return family == ROW_TEXTS
		       ? keep_ms
		       : retention_longer(keep_ms, retention_longest_of_ms(rules, &fit,
									   site->granularities));
}

/* Behind the metric of a series there may be values of its tags. */
static int64_t rows_keep_ms(const struct row_site *site, const struct row *row,
			    enum row_family family)
{
	struct row_name_split splits[ROW_NAME_SPLITS_MAX];
	size_t count = row_name_split(row->metric, splits);
	int64_t keep_ms = rows_metric_keep_ms(site, row->tenant, row->metric, family);
	for (size_t i = 0; i < count; i++)
		keep_ms = retention_longer(
			keep_ms, rows_metric_keep_ms(site, row->tenant, splits[i].metric, family));
	return keep_ms;
}

/* When it leaves; 0: never. */
static int rows_expiry(const struct row_site *site, const struct row *row, enum row_family family,
		       int64_t ms, int64_t *expires_ms, struct errbuf *e)
{
	int64_t keep_ms = rows_keep_ms(site, row, family);
	*expires_ms = keep_ms ? ms + keep_ms : 0;
	if (!keep_ms || *expires_ms > clock_wall_ms(site->clock))
		return 0;
	return errbuf_set(e, ERR_INVALID, "it is too old: what has its time is not kept any more");
}

int row_text_put(const struct row_site *site, struct store_write *write, const struct row *row,
		 int64_t ts_ms, struct slice text, int64_t stamp_us, struct errbuf *e)
{
	struct rows_place place;
	int64_t expires_ms;
	int err = rows_check(row, ts_ms, text, e);
	err = err ? err : rows_expiry(site, row, ROW_TEXTS, ts_ms, &expires_ms, e);
	err = err ? err : rows_set_key(&place, row, floor_div(ts_ms, ROWS_DAY_MS), e);
	if (err)
		return err;
	rows_set_column(&place, ROW_TEXTS, ts_ms, 0);
	err = store_cell_put(write, TABLE_CHUKWA, &place.key, &place.column, text, stamp_us,
			     expires_ms);
	if (err)
		return errbuf_set(e, err, "%s", write->error.text);
	stat_add(STAT_row_texts, 1);
	return 0;
}

struct rows_count {
	struct slice qualifier;
	size_t count;
	bool found;
};

static int rows_count_cell(const struct store_cell *cell, void *owner)
{
	struct rows_count *count = owner;
	count->count++;
	count->found = count->found || slice_equal(cell->column.part[1], count->qualifier);
	return 0;
}

/* How many notes the day's row has, and whether this is one of them. */
static int rows_count_notes(const struct row_site *site, struct task_queue *queue,
			    const struct rows_place *place, struct rows_count *count,
			    struct errbuf *e)
{
	const struct store_cell_scan scan = {
		.table = TABLE_CHUKWA,
		.key = place->key,
		.from = {{slice_of(row_families[ROW_NOTES])}},
		.to = {{SLICE("a\0")}},
	};
	*count = (struct rows_count){.qualifier = place->column.part[1]};
	return store_cells_wait(site->store, queue, clock_wall_ms(site->clock), &scan,
				rows_count_cell, count, e);
}

static int rows_submit(struct store_write *write, struct task_queue *queue, struct errbuf *e)
{
	int err = store_write_wait_known(write, queue);
	return err ? errbuf_set(e, err, "it is not known whether this is stored: %s", err_text(err))
		   : 0;
}

static int rows_add(const struct row_site *site, struct task_queue *queue,
		    const struct rows_place *place, struct slice text, size_t most,
		    int64_t stamp_us, int64_t expires_ms, struct errbuf *e)
{
	struct rows_count count;
	int err = rows_count_notes(site, queue, place, &count, e);
	if (err || count.found)
		return err;
	if (count.count >= most) {
		stat_add(STAT_row_notes_refused, 1);
		return errbuf_set(e, ERR_LIMIT,
				  "the metric and the source have %zu notes on that day, which is "
				  "the most",
				  most);
	}
	struct store_write *write = store_write_new(site->store, ROWS_WRITE_MAX_BYTES);
	err = store_cell_put(write, TABLE_CHUKWA, &place->key, &place->column, text, stamp_us,
			     expires_ms);
	ASSERT(!err); /* some KB */
	err = rows_submit(write, queue, e);
	store_write_free(write);
	if (!err)
		stat_add(STAT_row_notes_added, 1);
	return err;
}

int row_note_add(const struct row_site *site, struct task_queue *queue, const struct row *row,
		 int64_t ts_ms, struct slice text, size_t most, struct row_note_id *id,
		 struct errbuf *e)
{
	struct rows_place place;
	int64_t expires_ms, stamp_us = store_stamp(site->store);
	int err = rows_check(row, ts_ms, text, e);
	if (!err && !text.len)
		err = errbuf_set(e, ERR_INVALID, "the text is empty");
	err = err ? err : rows_expiry(site, row, ROW_NOTES, ts_ms, &expires_ms, e);
	err = err ? err : rows_set_key(&place, row, floor_div(ts_ms, ROWS_DAY_MS), e);
	err = err ? err : rows_set_note(&place, ts_ms, text, e);
	if (err)
		return err;
	rows_print_id(place.qualifier, ts_ms, id);
	return rows_add(site, queue, &place, text, most, stamp_us, expires_ms, e);
}

/* ---- Deleting -------------------------------------------------------------------------------- */

static bool rows_read_id(struct slice id, struct rows_place *place, int64_t *ms)
{
	const char *dash = memchr(id.data, '-', id.len);
	uint64_t number;
	if (!dash || id.data + id.len - dash != 1 + ROWS_DIGITS ||
	    number_parse_u64(id.data, dash, &number) ||
	    number / (uint64_t)ROWS_DAY_MS > CHUKWA_DAY_MAX ||
	    !rows_read_hash(dash + 1, place->qualifier + sizeof(uint64_t)))
		return false;
	*ms = (int64_t)number;
	rows_set_column(place, ROW_NOTES, *ms, ROWS_HASH_BYTES);
	return true;
}

static int rows_delete(const struct row_site *site, struct task_queue *queue,
		       const struct rows_place *place, int64_t stamp_us, struct errbuf *e)
{
	struct store_write *write = store_write_new(site->store, ROWS_WRITE_MAX_BYTES);
	int err = store_cell_delete(write, TABLE_CHUKWA, &place->key, &place->column, stamp_us);
	ASSERT(!err); /* some bytes */
	err = rows_submit(write, queue, e);
	store_write_free(write);
	if (!err)
		stat_add(STAT_row_notes_deleted, 1);
	return err;
}

int row_note_delete(const struct row_site *site, struct task_queue *queue, const struct row *row,
		    struct slice id, struct errbuf *e)
{
	int64_t ms, stamp_us = store_stamp(site->store);
	struct rows_place place;
	struct rows_count count = {.found = false};
	int err = 0;
	if (rows_read_id(id, &place, &ms)) {
		err = rows_set_key(&place, row, floor_div(ms, ROWS_DAY_MS), e);
		err = err ? err : rows_count_notes(site, queue, &place, &count, e);
	}
	if (!err && !count.found)
		err = errbuf_set(e, ERR_NOT_FOUND,
				 "the metric and the source have no note \"" SHOWN "\"",
				 SHOWN_OF(id));
	return err ? err : rows_delete(site, queue, &place, stamp_us, e);
}

/* ---- Reading --------------------------------------------------------------------------------- */

struct rows_reading {
	enum row_family family;
	int (*each)(const struct row_cell *cell, void *owner);
	void *owner;
};

static int rows_see(const struct store_cell *stored, void *owner)
{
	const struct rows_reading *reading = owner;
	struct slice qualifier = stored->column.part[1];
	bool note = reading->family == ROW_NOTES;
	struct row_cell cell = {.text = stored->value};
	uint64_t big;
	if (qualifier.len != sizeof(big) + (note ? ROWS_HASH_BYTES : 0)) {
		stat_add(STAT_row_cells_unread, 1); /* of another program's form */
		return 0;
	}
	memcpy(&big, qualifier.data, sizeof(big));
	cell.ts_ms = (int64_t)__builtin_bswap64(big);
	if (note)
		rows_print_id(qualifier.data, cell.ts_ms, &cell.id);
	return reading->each(&cell, reading->owner);
}

static int rows_read_day(const struct row_site *site, struct task_queue *queue,
			 const struct row *row, int64_t day, struct store_cell_scan *scan,
			 struct rows_reading *reading, struct errbuf *e)
{
	struct rows_place place;
	int err = rows_set_key(&place, row, day, e);
	if (err)
		return err;
	scan->key = place.key;
	return store_cells_wait(site->store, queue, clock_wall_ms(site->clock), scan, rows_see,
				reading, e);
}

int row_each(const struct row_site *site, struct task_queue *queue, const struct row *row,
	     enum row_family family, const struct row_span *span,
	     int (*each)(const struct row_cell *cell, void *owner), void *owner, struct errbuf *e)
{
	struct rows_reading reading = {.family = family, .each = each, .owner = owner};
	struct rows_place start, end;
	int64_t start_ms = larger_of(span->start_ms, 0),
		end_ms = smaller_of(span->end_ms, (CHUKWA_DAY_MAX + 1) * ROWS_DAY_MS);
	int err = 0;
	rows_set_column(&start, family, start_ms, 0);
	rows_set_column(&end, family, end_ms, 0);
	struct store_cell_scan scan = {
		.table = TABLE_CHUKWA, .from = start.column, .to = end.column};
	for (int64_t day = start_ms / ROWS_DAY_MS; day * ROWS_DAY_MS < end_ms && !err; day++) {
		err = span->may_go_on ? span->may_go_on(owner, e) : 0;
		err = err ? err : rows_read_day(site, queue, row, day, &scan, &reading, e);
	}
	return err;
}
