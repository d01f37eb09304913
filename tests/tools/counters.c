/* Puts samples of counters into the store of a server that does not run, as a persister would:
 *
 *   counters DIR [--rates] < samples
 *
 * Each line is `DEVICE OIDSET OID ROW FREQUENCY_MS TS_MS VALUE`; ROW is an interface, or `-` for a
 * value of the device itself. Samples of one counter stand together and ascend. With --rates the
 * bins, hours and days of each counter are made durable, too, up to an hour before its last sample.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "rate/job.h"
#include "store/lmdb/lmdb.h"
#include "tools/store_wait.h"

enum { LINE_BYTES = 1000, BATCH_BYTES = 16 << 20, HOUR_MS = 3600000 };

static struct task_queue queue;
static struct store_waiter waiter;
static struct store *store;
static struct store_write *batch;
static bool finished;

static void die(const char *what, int err)
{
	fprintf(stderr, "counters: %s: %s\n", what, err_text(err));
	exit(1);
}

static void written(struct store_write *write, int err)
{
	if (err)
		die(write->error.text, err);
	finished = true;
}

static void rates_made(struct rate_job *job, int err)
{
	if (err)
		die(rate_job_error(job), err);
	finished = true;
}

static void wait_for_it(void)
{
	while (!finished)
		task_queue_wait(&queue);
	finished = false;
}

static void flush(void)
{
	int err = store_write_submit(batch);
	if (err)
		die("a batch", err);
	wait_for_it();
	store_write_reset(batch);
}

/* ---- One counter ----------------------------------------------------------------------------- */

struct counter_of {
	char device[256], oidset[256], oid[256], row[256];
	int64_t frequency_ms, last_ms;
	struct tag tags[3];
	size_t tag_count;
	uint64_t handle;
};

static void open_counter(struct counter_of *c)
{
	struct slice metric = slice_of(c->oid);
	struct store_read *read = store_wait_new(&waiter, 1 << 20);
	struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
	c->tag_count = 0;
	c->tags[c->tag_count++] = (struct tag){SLICE("device"), slice_of(c->device)};
	if (strcmp(c->row, "-") != 0)
		c->tags[c->tag_count++] = (struct tag){SLICE("interface"), slice_of(c->row)};
	c->tags[c->tag_count++] = (struct tag){SLICE("oidset"), slice_of(c->oidset)};
	request->series_open = (struct store_series_open){
		.tenant = SLICE("snmp"),
		.tags = {c->tags, c->tag_count},
		.metrics = &metric,
		.count = 1,
	};
	store_wait(&waiter, read);
	c->handle = request->series_open.handles[0];
	store_read_free(read);
}

static void make_rates(struct counter_of *c)
{
	struct rate_job *job = rate_job_new(store, &queue.executor);
	struct rate_column column = {.name = slice_of(c->oid), .width_bits = 64};
	struct rate_row row = {.handles = &c->handle};
	struct rate_table table = {
		.device = slice_of(c->device),
		.oidset = slice_of(c->oidset),
		.config = {c->frequency_ms, 2, {HOUR_MS, 24 * HOUR_MS}},
		.columns = &column,
		.column_count = 1,
		.rows = &row,
		.row_count = 1,
	};
	struct rate_job_options options = {
		.table = &table,
		.until_ms = c->last_ms - HOUR_MS,
		.now_ms = clock_wall_ms(waiter.clock),
		.done = rates_made,
	};
	struct buf text;
	buf_init(&text, TAGS_TEXT_MAX_BYTES);
	tags_encode((struct tags){c->tags, c->tag_count}, &text);
	row.id = rate_row_id(buf_slice(&text));
	buf_release(&text);
	for (size_t i = 0; i < ARRAY_LEN(options.retention); i++)
		options.retention[i] = RETENTION_EVER;
	int err = rate_job_start(job, &options);
	if (err)
		die(rate_job_error(job), err);
	wait_for_it();
	rate_job_free(job);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static bool is_same(const struct counter_of *a, const struct counter_of *b)
{
	return !strcmp(a->device, b->device) && !strcmp(a->oidset, b->oidset) &&
	       !strcmp(a->oid, b->oid) && !strcmp(a->row, b->row);
}

static void put_sample(struct counter_of *c, int64_t ts_ms, uint64_t number)
{
	struct value value = value_u64(number);
	for (int i = 0; i < 2; i++) {
		int err = store_append(
			batch,
			&(struct store_target){TABLE_RAW_DATA, RETENTION_EVER, c->frequency_ms},
			ts_ms, &c->handle, 1, &value);
		if (!err)
			break;
		if (err != ERR_LIMIT || i)
			die(batch->error.text, err);
		flush();
	}
	c->last_ms = ts_ms;
}

static void end_counter(struct counter_of *c, bool rates)
{
	flush();
	if (rates && c->handle)
		make_rates(c);
}

static void take_lines(bool rates)
{
	static struct counter_of now, next;
	char line[LINE_BYTES];
	while (fgets(line, sizeof(line), stdin)) {
		int64_t ts_ms;
		uint64_t number;
		if (sscanf(line, "%255s %255s %255s %255s %" SCNd64 " %" SCNd64 " %" SCNu64,
			   next.device, next.oidset, next.oid, next.row, &next.frequency_ms, &ts_ms,
			   &number) != 7)
			die(line, ERR_INVALID);
		if (!is_same(&now, &next)) {
			end_counter(&now, rates);
			now = next;
			open_counter(&now);
		}
		put_sample(&now, ts_ms, number);
	}
	end_counter(&now, rates);
}

int main(int argc, char **argv)
{
	struct errbuf e;
	if (argc < 2)
		die("which folder", ERR_INVALID);
	struct lmdb_options options = {.path = argv[1]};
	if (lmdb_open(&options, &store, &e))
		die(e.text, ERR_INVALID);
	task_queue_init(&queue);
	waiter = (struct store_waiter){store, &queue, clock_real(), die};
	batch = store_write_new(store, BATCH_BYTES);
	batch->executor = &queue.executor;
	batch->done = written;
	take_lines(argc > 2 && !strcmp(argv[2], "--rates"));
	store_write_free(batch);
	store_close(store);
	task_queue_release(&queue);
	return 0;
}
