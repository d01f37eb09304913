/* A small store to be damaged, and what is read from it then.
 *
 *   damage_store make --data DIR --stage 1|2 [--bands N]    2 goes on where 1 ended
 *   damage_store check --data DIR [--bands N] [--repaired]
 *
 * Every value is a function of its series and time, every cell of its column, and each is written
 * once: so a wrong one is recognised whatever has happened to the file. Some samples are deleted
 * again, out of extents and out of the journal: in a store that was repaired none of them may come
 * back. The check reads everything in every way, prints what is missing (`gone BAND FROM TO`, times
 * in ms), writes, settles and reads again. It ends with
 *
 *   0  everything is there
 *   1  the store was refused when it was opened, with a sentence
 *   3  a wrong number, or something that nobody wrote
 *   4  something is missing, and nothing says so
 *   5  something may be missing, and reads or verify say so
 *  74  the process ended with a sentence: a page cannot be read
 */
#include <getopt.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/lmdb/lmdb.h"

enum {
	BANDS = 8, /* unless told otherwise */
	BANDS_MAX = 400,
	SERIES = 3,
	ROWS = 600, /* at the end of stage 2 */
	ROWS_STAGE_1 = 300,
	ROWS_SETTLED = 500,
	CELLS = 24,
	LONG_CELL = 7,
	CELL_LONG_BYTES = 9000,
	STEP_MS = 600000, /* some days */
	FOUND_ALL = 0,
	FOUND_REFUSED = 1,
	FOUND_WRONG = 3,
	FOUND_MISSING = 4,
	FOUND_NAMED = 5,
};

#define BASE_MS INT64_C(1704067200000) /* 2024-01-01T00:00:00Z */
#define FAR_MS  INT64_C(4102444800000) /* 2100-01-01T00:00:00Z */

struct look {
	struct store *store;
	struct task_queue queue;
	uint64_t handles[BANDS_MAX][SERIES];
	size_t missing, named;
	bool repaired, prints_gone,
		rewritten; /* rewritten: go_on has written some rows once more */
};

static unsigned bands = BANDS;

static void wrong(const char *what)
{
	fprintf(stderr, "damage_store: wrong: %s\n", what);
	_exit(FOUND_WRONG);
}

static void named(struct look *look, const char *what, int err)
{
	look->named++;
	fprintf(stderr, "damage_store: %s: %s\n", what, err_text(err));
}

static void missing(struct look *look, const char *what, size_t count)
{
	if (count)
		fprintf(stderr, "damage_store: missing: %zu %s\n", count, what);
	look->missing += count;
}

static int64_t time_of(unsigned row)
{
	return BASE_MS + (int64_t)row * STEP_MS;
}

static uint64_t value_of(unsigned band, unsigned series, int64_t ts_ms)
{
	int64_t name[] = {band, series, ts_ms};
	return hash64(name, sizeof(name), 0) >> 12; /* a sum of many is exact as a double */
}

static struct slice metric_of(unsigned series)
{
	static const char *const names[SERIES] = {"damage_a", "damage_b", "damage_c"};
	return slice_of(names[series]);
}

/* Rows that were written and deleted: of every third band settled ones, of the others some that are
 * in the journal. */
enum { DELETED_FROM = 100, DELETED_TO = 150, DELETED_LATE_FROM = 520, DELETED_LATE_TO = 530 };

static bool is_deleted(const struct look *look, unsigned band, unsigned row)
{
	if (look->rewritten && row >= ROWS_SETTLED - 50)
		return false;
	return band % 3 == 0 ? row >= DELETED_FROM && row < DELETED_TO
			     : row >= DELETED_LATE_FROM && row < DELETED_LATE_TO;
}

static unsigned rows_kept(const struct look *look, unsigned band)
{
	unsigned count = 0;
	for (unsigned row = 0; row < ROWS; row++)
		count += !is_deleted(look, band, row);
	return count;
}

/* ---- Calls that wait ------------------------------------------------------------------------- */

struct wait {
	bool done;
	int err;
};

static void read_done(struct store_read *read, int err)
{
	*(struct wait *)read->owner = (struct wait){true, err};
}

static void write_done(struct store_write *write, int err)
{
	*(struct wait *)write->owner = (struct wait){true, err};
}

static struct store_read *read_new(struct look *look, enum store_op op, struct store_request **r)
{
	struct store_read *read = store_read_new(look->store, 64 << 20);
	read->executor = &look->queue.executor;
	read->done = read_done;
	read->now_ms = clock_wall_ms(clock_real());
	*r = store_read_add(read, op);
	ASSERT(*r);
	return read;
}

static int read_wait(struct look *look, struct store_read *read)
{
	struct wait wait = {false, 0};
	read->owner = &wait;
	int err = store_read_submit(read);
	while (!err && !wait.done)
		task_queue_wait(&look->queue);
	return err ? err : wait.err;
}

static int write_wait(struct look *look, struct store_write *write)
{
	struct wait wait = {false, 0};
	write->owner = &wait;
	int err = store_write_submit(write);
	while (!err && !wait.done)
		task_queue_wait(&look->queue);
	return err ? err : wait.err;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static int look_open(struct look *look, const char *path)
{
	struct lmdb_options options = {
		.path = path, .read_threads = 1, .settle_delay_ms = 10, .map_bytes = 64 << 20};
	struct errbuf e = {""};
	task_queue_init(&look->queue);
	int err = lmdb_open(&options, &look->store, &e);
	if (err)
		fprintf(stderr, "damage_store: %s\n", e.text);
	if (err && !e.text[0])
		wrong("a refusal without a sentence");
	return err;
}

static int open_band(struct look *look, unsigned band, bool find_only)
{
	struct store_request *r;
	struct store_read *read = read_new(look, STORE_SERIES_OPEN, &r);
	char name[16];
	struct tag tag = {SLICE("band"), {name, (size_t)snprintf(name, sizeof(name), "%u", band)}};
	struct slice metrics[SERIES];
	for (unsigned s = 0; s < SERIES; s++)
		metrics[s] = metric_of(s);
	r->series_open = (struct store_series_open){.tenant = SLICE("default"),
						    .tags = {&tag, 1},
						    .metrics = metrics,
						    .count = SERIES,
						    .find_only = find_only};
	int err = read_wait(look, read);
	if (!err)
		memcpy(look->handles[band], r->series_open.handles, sizeof(look->handles[band]));
	store_read_free(read);
	return err;
}

static struct store_write *write_new(struct look *look)
{
	struct store_write *write = store_write_new(look->store, 4 << 20);
	write->executor = &look->queue.executor;
	write->done = write_done;
	return write;
}

static int put_rows(struct look *look, unsigned from, unsigned to)
{
	struct store_write *write = write_new(look);
	int err = 0;
	for (unsigned b = 0; b < bands; b++) {
		for (unsigned row = from; row < to && !err; row++) {
			struct value values[SERIES];
			for (unsigned s = 0; s < SERIES; s++)
				values[s] = value_u64(value_of(b, s, time_of(row)));
			err = store_append(write,
					   &(struct store_target){TABLE_DATA_RAW, RETENTION_EVER},
					   time_of(row), look->handles[b], SERIES, values);
		}
	}
	if (!err)
		err = write_wait(look, write);
	store_write_free(write);
	return err;
}

/* From the bands whose number modulo 3 is 0, or from the others. */
static int delete_rows(struct look *look, bool thirds, unsigned from, unsigned to)
{
	struct store_write *write = write_new(look);
	int err = 0;
	for (unsigned b = 0; b < bands && !err; b++) {
		if ((b % 3 == 0) == thirds)
			err = store_delete_range(
				write, &(struct store_target){.table = TABLE_DATA_RAW},
				look->handles[b], SERIES, time_of(from), time_of(to));
	}
	if (!err)
		err = write_wait(look, write);
	store_write_free(write);
	return err;
}

struct cell_name {
	struct store_parts key, column;
	char text[16];
};

static void cell_name(struct cell_name *name, unsigned cell)
{
	snprintf(name->text, sizeof(name->text), "%u", cell);
	name->key = (struct store_parts){{SLICE("damage")}};
	name->column = (struct store_parts){{SLICE("c"), slice_of(name->text)}};
}

static struct slice cell_value(unsigned cell, uint8_t to[CELL_LONG_BYTES])
{
	size_t len = cell == LONG_CELL ? CELL_LONG_BYTES : 300;
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(cell * 31 + i * 7 + i / 256);
	return (struct slice){(const char *)to, len};
}

static int put_cells(struct look *look, unsigned from, unsigned to)
{
	struct store_write *write = write_new(look);
	int err = 0;
	for (unsigned c = from; c < to && !err; c++) {
		uint8_t bytes[CELL_LONG_BYTES];
		struct cell_name name;
		cell_name(&name, c);
		err = store_cell_put(write, TABLE_METRIC_INFO, &name.key, &name.column,
				     cell_value(c, bytes), 1, 0);
	}
	if (!err)
		err = write_wait(look, write);
	store_write_free(write);
	return err;
}

static const struct store_parts deleted_row = {{{"deleted", 7}}};

/* Put with a stamp that the deletion does not cover. */
static bool stays_in_deleted_row(unsigned cell)
{
	return cell == LONG_CELL || cell % 5 == 0;
}

/* A row that is deleted as a whole, while some of its cells are later ones. All expire some time.
 * The others may be in the file still, since the store is closed at once. */
static int put_deleted_row(struct look *look)
{
	struct store_write *write = write_new(look);
	int err = 0;
	for (unsigned c = 0; c < CELLS && !err; c++) {
		uint8_t bytes[CELL_LONG_BYTES];
		struct cell_name name;
		cell_name(&name, c);
		err = store_cell_put(write, TABLE_METRIC_INFO, &deleted_row, &name.column,
				     cell_value(c, bytes), stays_in_deleted_row(c) ? 3 : 1 + c % 2,
				     FAR_MS + c * INT64_C(100000));
	}
	if (!err)
		err = store_row_delete(write, TABLE_METRIC_INFO, &deleted_row, 2);
	if (!err)
		err = write_wait(look, write);
	store_write_free(write);
	return err;
}

static int make(struct look *look, const char *path, int stage)
{
	int err = look_open(look, path);
	for (unsigned b = 0; b < bands && !err; b++)
		err = open_band(look, b, false);
	if (!err && stage == 1)
		err = put_rows(look, 0, ROWS_STAGE_1);
	if (!err && stage == 2)
		err = put_rows(look, ROWS_STAGE_1, ROWS_SETTLED);
	if (!err && stage == 2)
		err = delete_rows(look, true, DELETED_FROM, DELETED_TO);
	if (!err)
		err = put_cells(look, stage == 1 ? 0 : CELLS / 2, stage == 1 ? CELLS / 2 : CELLS);
	if (!err)
		err = lmdb_settle(look->store);
	if (!err && stage == 2)
		err = put_rows(look, ROWS_SETTLED, ROWS); /* which stay in the journal */
	if (!err && stage == 2)
		err = delete_rows(look, false, DELETED_LATE_FROM, DELETED_LATE_TO);
	if (!err && stage == 2)
		err = put_deleted_row(look);
	if (err)
		return err;
	store_close(look->store);
	return 0;
}

/* ---- Looking --------------------------------------------------------------------------------- */

static void deleted_is_back(const struct look *look, const char *what)
{
	if (!look->repaired)
		return;
	fprintf(stderr, "damage_store: %s\n", what);
	wrong("what was deleted is there again");
}

/* The runs of rows that are not there, of one series. */
static void print_gone(const struct look *look, unsigned band, const bool there[ROWS])
{
	for (unsigned row = 0, first; row < ROWS; row++) {
		first = row;
		while (row < ROWS && !there[row] && !is_deleted(look, band, row))
			row++;
		if (row > first)
			printf("gone %u %lld %lld\n", band, (long long)time_of(first),
			       (long long)time_of(row - 1));
	}
}

static void look_at_points(const struct look *look, const struct store_points *points,
			   unsigned band, unsigned series, size_t *count)
{
	bool there[ROWS] = {false};
	for (size_t i = 0; i < points->count; i++) {
		int64_t ts_ms = points->ts_ms[i];
		int64_t row = floor_div(ts_ms - BASE_MS, STEP_MS);
		if (row < 0 || row >= ROWS || ts_ms != time_of((unsigned)row))
			wrong("a time that nobody wrote");
		if (points->types[0][i] != VALUE_U64 ||
		    points->bits[0][i] != value_of(band, series, ts_ms))
			wrong("a value that nobody wrote");
		if (i && ts_ms <= points->ts_ms[i - 1])
			wrong("times that do not ascend");
		there[row] = true;
		if (is_deleted(look, band, (unsigned)row))
			deleted_is_back(look, "a sample");
		else
			++*count;
	}
	if (look->prints_gone)
		print_gone(look, band, there);
}

static void look_at_range(struct look *look, unsigned band)
{
	struct store_request *r;
	struct store_read *read = read_new(look, STORE_RANGE, &r);
	size_t count = 0;
	r->range = (struct store_range){.table = TABLE_DATA_RAW,
					.handles = look->handles[band],
					.handle_count = SERIES,
					.start_ms = STORE_TS_MIN,
					.end_ms = STORE_TS_MAX};
	int err = read_wait(look, read);
	if (err)
		named(look, "range", err);
	look->prints_gone = !look->rewritten;
	for (unsigned s = 0; s < SERIES && !err; s++)
		look_at_points(look, &r->range.points[s], band, s, &count);
	look->prints_gone = false;
	if (!err)
		missing(look, "samples", (size_t)SERIES * rows_kept(look, band) - count);
	store_read_free(read);
}

static void look_at_last(struct look *look, unsigned band)
{
	struct store_request *r;
	struct store_read *read = read_new(look, STORE_LAST_BEFORE, &r);
	size_t count = 0;
	r->last_before = (struct store_last_before){.table = TABLE_DATA_RAW,
						    .handles = look->handles[band],
						    .handle_count = SERIES,
						    .before_ms = STORE_TS_MAX};
	int err = read_wait(look, read);
	if (err)
		named(look, "last", err);
	for (unsigned s = 0; s < SERIES && !err; s++)
		look_at_points(look, &r->last_before.points[s], band, s, &count);
	if (!err)
		missing(look, "last samples", SERIES - count);
	store_read_free(read);
}

/* Of one window with all the samples: whole, or of fewer and then within these. */
static void look_at_summary(struct look *look, const struct store_summary *summary, unsigned band,
			    unsigned series)
{
	uint64_t sum = 0, least = UINT64_MAX, most = 0, kept = rows_kept(look, band);
	for (unsigned row = 0; row < ROWS; row++) {
		uint64_t value = value_of(band, series, time_of(row));
		sum += is_deleted(look, band, row) ? 0 : value;
		/* Of an earlier time deleted ones may be there. */
		if (is_deleted(look, band, row) && look->repaired)
			continue;
		least = value < least ? value : least;
		most = value > most ? value : most;
	}
	if (summary->count > ROWS)
		wrong("a count of more than there are");
	if (summary->count > kept) { /* whole pages of an earlier time */
		deleted_is_back(look, "a sample");
		return;
	}
	missing(look, "samples of a sum", kept - summary->count);
	if (summary->count == 0)
		return;
	if (summary->min.bits < least || summary->max.bits > most ||
	    summary->min.bits > summary->max.bits)
		wrong("a minimum or maximum that nobody wrote");
	if (summary->count == kept && summary->sum != (double)sum)
		wrong("a sum");
	if (summary->count == kept && look->repaired &&
	    (summary->min.bits != least || summary->max.bits != most))
		wrong("a least or greatest value");
	if (summary->first.bits != value_of(band, series, summary->first_ts_ms) ||
	    summary->last.bits != value_of(band, series, summary->last_ts_ms))
		wrong("a first or last value that nobody wrote");
}

static void look_at_aggregate(struct look *look, unsigned band)
{
	struct store_request *r;
	struct store_read *read = read_new(look, STORE_AGGREGATE, &r);
	r->aggregate = (struct store_aggregate){.table = TABLE_DATA_RAW,
						.handles = look->handles[band],
						.handle_count = SERIES,
						.start_ms = time_of(0),
						.end_ms = time_of(ROWS),
						.window_ms = time_of(ROWS) - time_of(0)};
	int err = read_wait(look, read);
	if (err)
		named(look, "aggregate", err);
	for (unsigned s = 0; s < SERIES && !err; s++) {
		struct store_summary summary;
		store_windows_spread(&r->aggregate.windows[s], 1, &summary);
		look_at_summary(look, &summary, band, s);
	}
	store_read_free(read);
}

/* The handles are those of the names. */
static void look_at_names(struct look *look, unsigned band)
{
	struct store_request *r;
	struct store_read *read = read_new(look, STORE_SERIES_DESCRIBE, &r);
	char tags[32];
	snprintf(tags, sizeof(tags), "band=%u", band);
	r->series_describe = (struct store_series_describe){look->handles[band], SERIES, NULL};
	int err = read_wait(look, read);
	if (err)
		named(look, "describe", err);
	for (unsigned s = 0; s < SERIES && !err; s++) {
		const struct store_series *series = &r->series_describe.series[s];
		if (!series->handle)
			missing(look, "descriptions", 1);
		else if (!slice_equal(series->metric, metric_of(s)) ||
			 !slice_equal(series->tags_text, slice_of(tags)))
			wrong("the name of a series");
	}
	store_read_free(read);
}

static void look_at_cells(struct look *look)
{
	for (unsigned c = 0; c < CELLS; c++) {
		struct store_request *r;
		struct store_read *read = read_new(look, STORE_CELL_GET, &r);
		uint8_t bytes[CELL_LONG_BYTES];
		struct cell_name name;
		cell_name(&name, c);
		r->cell_get = (struct store_cell_get){
			.table = TABLE_METRIC_INFO, .key = name.key, .column = name.column};
		int err = read_wait(look, read);
		if (err)
			named(look, "cell", err);
		else if (!r->cell_get.found)
			missing(look, "cells", 1);
		else if (!slice_equal(r->cell_get.cell.value, cell_value(c, bytes)))
			wrong("a cell that nobody wrote");
		store_read_free(read);
	}
}

/* `expected`: how many of its cells are there; of all that were put. */
static void look_at_row(struct look *look, struct store_parts key, size_t expected)
{
	struct store_request *r;
	struct store_read *read = read_new(look, STORE_CELL_SCAN, &r);
	size_t count = 0;
	r->cell_scan = (struct store_cell_scan){.table = TABLE_METRIC_INFO, .key = key};
	int err = read_wait(look, read);
	if (err)
		named(look, "scan", err);
	for (size_t i = 0; i < r->cell_scan.count && !err; i++) {
		uint8_t bytes[CELL_LONG_BYTES];
		struct slice column = r->cell_scan.cells[i].column.part[1];
		char text[8] = "";
		memcpy(text, column.data, column.len < 7 ? column.len : 7);
		unsigned cell = (unsigned)strtoul(text, NULL, 10);
		if (cell >= CELLS ||
		    !slice_equal(r->cell_scan.cells[i].value, cell_value(cell, bytes)))
			wrong("a cell of a row that nobody wrote");
		if (expected == CELLS || stays_in_deleted_row(cell))
			count++;
		else
			deleted_is_back(look, "a cell of a deleted row");
	}
	if (!err)
		missing(look, "cells of a row", expected - count);
	store_read_free(read);
}

/* All slices of a read that goes over everything; only that it ends and says its errors. */
static void look_over(struct look *look, enum store_op op, const char *what, size_t expected)
{
	struct store_request *r, kept = {0};
	size_t count = 0, problems = 0;
	bool more = true;
	int err = 0;
	for (int slices = 0; more && !err; slices++) {
		struct store_read *read = read_new(look, op, &r);
		struct store_request *next = r->next;
		if (slices)
			*r = kept;
		r->next = next;
		r->err = 0;
		r->more = r->ran = r->resumed = false;
		if (!slices && op == STORE_ENUMERATE)
			r->enumerate.table = TABLE_DATA_RAW;
		err = read_wait(look, read);
		if (!err && op == STORE_VERIFY) {
			for (size_t i = 0; i < r->verify.sentence_count; i++)
				fprintf(stderr, "verify: %s\n", r->verify.sentences[i]);
			problems = (size_t)r->verify.problems;
		}
		count += op == STORE_ENUMERATE     ? r->enumerate.count
			 : op == STORE_SERIES_LIST ? r->series_list.count
						   : 0;
		more = r->more;
		kept = *r;
		store_read_free(read);
		if (slices > 10000)
			wrong("a read that never ends");
	}
	if (err)
		named(look, what, err);
	look->named += problems;
	if (!err && count < expected)
		missing(look, what, expected - count);
}

static void look_at_all(struct look *look)
{
	for (unsigned b = 0; b < bands; b++) {
		int err = open_band(look, b, true);
		if (err) {
			named(look, "open", err);
			continue;
		}
		look_at_range(look, b);
		look_at_last(look, b);
		look_at_aggregate(look, b);
		look_at_names(look, b);
	}
	size_t stays = 0;
	for (unsigned c = 0; c < CELLS; c++)
		stays += stays_in_deleted_row(c);
	look_at_cells(look);
	look_at_row(look, (struct store_parts){{SLICE("damage")}}, CELLS);
	look_at_row(look, deleted_row, stays);
	look_over(look, STORE_SERIES_LIST, "list", (size_t)bands * SERIES);
	look_over(look, STORE_ENUMERATE, "enumerate", (size_t)bands * SERIES);
	look_over(look, STORE_STATS, "stats", 0);
	look_over(look, STORE_VERIFY, "verify", 0);
}

/* The same values again, and upkeep: whatever it makes of the damage, numbers stay right. */
static void go_on(struct look *look)
{
	for (unsigned b = 0; b < bands; b++)
		(void)open_band(look, b, false);
	if (put_rows(look, ROWS_SETTLED - 50, ROWS) || put_cells(look, 0, 3))
		fprintf(stderr, "damage_store: writes are refused\n");
	if (lmdb_settle(look->store))
		fprintf(stderr, "damage_store: settling fails\n");
}

static int check(struct look *look, const char *path)
{
	if (look_open(look, path))
		return FOUND_REFUSED;
	look_at_all(look);
	fflush(stdout);
	size_t was_missing = look->missing, was_named = look->named;
	go_on(look);
	look->rewritten = true;
	look_at_all(look);
	store_close(look->store);
	if (was_missing && !was_named)
		return FOUND_MISSING;
	return was_missing || was_named ? FOUND_NAMED : FOUND_ALL;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"data", required_argument, NULL, 'd'},
		{"stage", required_argument, NULL, 's'},
		{"bands", required_argument, NULL, 'b'},
		{"repaired", no_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	static struct look look;
	const char *data = NULL;
	int option, stage = 0;
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'd')
			data = optarg;
		else if (option == 's')
			stage = (int)strtol(optarg, NULL, 10);
		else if (option == 'b')
			bands = (unsigned)strtoul(optarg, NULL, 10);
		else if (option == 'r')
			look.repaired = true;
		else
			return 2;
	}
	if (bands > BANDS_MAX || !data || optind + 1 != argc)
		return 2;
	if (strcmp(argv[optind], "check") == 0)
		return check(&look, data);
	return make(&look, data, stage) ? 2 : 0;
}
