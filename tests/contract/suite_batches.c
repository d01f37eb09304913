/* Batches as such: every limit at it and one past it, arguments outside the contract, stages, ends
 * before their time, stamps, figures, and what a killed process leaves. */
#include "contract.h"

#define I(x) value_i64(x)

static struct slice filled(struct rig *rig, size_t len)
{
	char *bytes = arena_alloc(&rig->keep, len + 1);
	memset(bytes, 'x', len);
	return (struct slice){bytes, len};
}

static int try_append(struct store_write *write, enum table table, int64_t period_ms, int retention,
		      int64_t ts_ms, uint64_t handle)
{
	struct value values[TABLE_FIELDS_MAX] = {I(1)};
	return store_append(
		write, &(struct store_target){table, (enum retention_class)retention, period_ms},
		ts_ms, &handle, 1, values);
}

/* What appending to this handle comes to, at the call or at the completion. */
static int append_to(struct rig *rig, uint64_t handle)
{
	struct store_write *write = rig_write_new(rig);
	int err = try_append(write, TABLE_DATA_RAW, 0, RETENTION_EVER, T0, handle);
	if (!err)
		err = rig_write(rig, write);
	store_write_free(write);
	return err;
}

/* A handle says nothing to its holder, so one that was made up may look like any other: each bit of
 * real ones turned over, and what lies beside them. */
static void handles_that_were_never_given(struct rig *rig)
{
	static const char *const metrics[] = {"a", "b", "c"};
	uint64_t real[4] = {rig_series(rig, "cpu", "host=1")};
	rig_group(rig, "t", metrics, 3, "host=1", false, real + 1, NULL);
	for (size_t i = 0; i < ARRAY_LEN(real); i++) {
		for (unsigned bit = 0; bit < 64 + 2; bit++) {
			uint64_t made_up = bit < 64    ? real[i] ^ UINT64_C(1) << bit
					   : bit == 64 ? real[i] + 1
						       : real[i] - 1;
			bool is_real = false;
			for (size_t j = 0; j < ARRAY_LEN(real); j++)
				is_real = is_real || made_up == real[j];
			if (is_real)
				continue;
			assert_int_equal(append_to(rig, made_up), ERR_NOT_FOUND);
			expect_all(rig, RAW, made_up, NO_POINTS);
		}
	}
	assert_int_equal(append_to(rig, 0), ERR_NOT_FOUND);
	assert_int_equal(append_to(rig, UINT64_MAX), ERR_NOT_FOUND);
	for (size_t i = 0; i < ARRAY_LEN(real); i++)
		expect_all(rig, RAW, real[i], NO_POINTS);
	assert_int_equal(append_to(rig, real[0]), 0);
	assert_true(rig_verify(rig) > 0);
	rig_reopen(rig);
	uint64_t again = rig_series(rig, "cpu", "host=1");
	assert_int_equal(append_to(rig, again ^ 1 << 20), ERR_NOT_FOUND);
	assert_int_equal(append_to(rig, again), 0);
}

static void appends_outside_the_contract(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(try_append(write, TABLE_DEVICES, 0, 4, T0, h), ERR_INVALID);
	assert_int_equal(try_append(write, (enum table) - 1, 0, 4, T0, h), ERR_INVALID);
	assert_int_equal(try_append(write, TABLE_COUNT, 0, 4, T0, h), ERR_INVALID);
	assert_int_equal(try_append(write, TABLE_DATA_RAW, 1000, 4, T0, h), ERR_INVALID);
	assert_int_equal(try_append(write, TABLE_RAW_DATA, 0, 4, T0, h), ERR_INVALID);
	assert_int_equal(try_append(write, TABLE_RAW_DATA, -1, 4, T0, h), ERR_INVALID);
	assert_int_equal(try_append(write, TABLE_DATA_RAW, 0, -1, T0, h), ERR_INVALID);
	assert_int_equal(try_append(write, TABLE_DATA_RAW, 0, 5, T0, h), ERR_INVALID);
	assert_int_equal(try_append(write, TABLE_DATA_RAW, 0, 4, INT64_MIN, h), ERR_INVALID);
	assert_int_equal(try_append(write, TABLE_DATA_RAW, 0, 4, INT64_MAX, h), ERR_INVALID);
	struct value odd = {0, (enum value_type)4};
	assert_int_equal(store_append(write, &RAW, T0, &h, 1, &odd), ERR_INVALID);
	assert_true(strlen(write->error.text) > 0);
	assert_int_equal(store_append(write, &RAW, T0, &h, 0, NULL), ERR_INVALID);
	static uint64_t handles[STORE_GROUP_MAX + 1];
	static struct value values[STORE_GROUP_MAX + 1];
	for (size_t i = 0; i <= STORE_GROUP_MAX; i++)
		handles[i] = h;
	assert_int_equal(store_append(write, &RAW, T0, handles, STORE_GROUP_MAX + 1, values),
			 ERR_LIMIT);
	assert_int_equal(store_append(write, &RAW, T0, handles, STORE_GROUP_MAX, values), 0);
	assert_int_equal(store_delete_range(write, &RAW, &h, 1, 2, 1), ERR_INVALID);
	assert_int_equal(
		store_delete_range(write,
				   &(struct store_target){.table = TABLE_DATA_RAW, .period_ms = 7},
				   &h, 1, 1, 2),
		ERR_INVALID);
	assert_int_equal(store_delete_range(write, &(struct store_target){.table = TABLE_DEVICES},
					    &h, 1, 1, 2),
			 ERR_INVALID);
	assert_int_equal(store_delete_range(write, &RAW, handles, STORE_GROUP_MAX + 1, 1, 2),
			 ERR_LIMIT);
	assert_int_equal(store_series_forget(write, handles, 0), ERR_INVALID);
	assert_int_equal(store_series_forget(write, handles, STORE_GROUP_MAX + 1), ERR_LIMIT);
	/* What was refused has left no trace. */
	assert_int_equal(try_append(write, TABLE_DATA_RAW, 0, 4, T0, h), 0);
	assert_int_equal(write->samples, 1);
	rig_commit(rig, write);
	expect_all(rig, RAW, h, POINTS({T0, {I(1)}}));
}

static int try_put(struct rig *rig, struct store_write *write, size_t key, size_t column,
		   size_t value)
{
	return store_cell_put(write, TABLE_DEVICES, PARTS(filled(rig, key)),
			      PARTS(filled(rig, column)), filled(rig, value), 1, 0);
}

static void sizes_of_cells_at_their_limits(struct rig *rig)
{
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(try_put(rig, write, STORE_KEY_MAX_BYTES, STORE_COLUMN_MAX_BYTES, 1), 0);
	assert_int_equal(try_put(rig, write, STORE_KEY_MAX_BYTES + 1, 1, 1), ERR_LIMIT);
	assert_int_equal(try_put(rig, write, 1, STORE_COLUMN_MAX_BYTES + 1, 1), ERR_LIMIT);
	assert_int_equal(try_put(rig, write, 1, 1, 1048576), 0);
	assert_int_equal(try_put(rig, write, 1, 1, 1048577), ERR_LIMIT);
	assert_string_equal(write->error.text,
			    "a value of 1048577 bytes in devices; at most 1048576");
	/* In a table of the node's own. */
	assert_int_equal(store_log_put(write, TABLE_QUEUE, PARTS(TEXT("q"), TEXT("12345678")),
				       PARTS(TEXT("12345678")), filled(rig, 16777216)),
			 0);
	assert_int_equal(store_log_put(write, TABLE_QUEUE, PARTS(TEXT("q"), TEXT("12345678")),
				       PARTS(TEXT("12345678")), filled(rig, 16777217)),
			 ERR_LIMIT);
	/* A log that is shared. */
	assert_int_equal(store_log_put(write, TABLE_MARKS,
				       PARTS(TEXT("12345678"), TEXT("12345678")),
				       PARTS(TEXT("12345678"), TEXT("w")), filled(rig, 1048577)),
			 ERR_LIMIT);
	/* Two parts, of which the inner one takes two bytes to close and one more for each 00. */
	struct slice inner = filled(rig, STORE_COLUMN_MAX_BYTES - 2);
	const struct store_parts *key = PARTS(TEXT("t"), TEXT("k"));
	assert_int_equal(
		store_cell_put(write, TABLE_CHUKWA, key, PARTS(inner, TEXT("")), TEXT("v"), 1, 0),
		0);
	assert_int_equal(
		store_cell_put(write, TABLE_CHUKWA, key, PARTS(inner, TEXT("y")), TEXT("v"), 1, 0),
		ERR_LIMIT);
	((char *)(uintptr_t)inner.data)[5] = 0;
	assert_int_equal(
		store_cell_put(write, TABLE_CHUKWA, key, PARTS(inner, TEXT("")), TEXT("v"), 1, 0),
		ERR_LIMIT);
	assert_int_equal(write->cells, 4);
	rig_commit(rig, write);
	assert_int_equal(rig_enumerate(rig, TABLE_DEVICES, 0, 0).count, 2);
}

static void cells_outside_the_contract(struct rig *rig)
{
	const struct store_parts *a = PARTS(TEXT("a"));
	struct store_write_cond *outcome;
	struct store_write *write = rig_write_new(rig);
	/* Each kind only where it is declared. */
	assert_int_equal(store_cell_put(write, TABLE_DATA_RAW, a, a, TEXT("v"), 1, 0), ERR_INVALID);
	assert_int_equal(store_cell_put(write, TABLE_LEASES, a, a, TEXT("v"), 1, 0), ERR_INVALID);
	assert_int_equal(store_cell_put(write, TABLE_METRIC_NAMES, a, a, TEXT("v"), 1, 0),
			 ERR_INVALID);
	assert_int_equal(store_cell_put(write, TABLE_SERIES_SETS, PARTS(TEXT("t"), TEXT("m")),
					PARTS(TEXT("k"), TEXT("v"), TEXT("m,k=v")), TEXT(""), 1, 0),
			 ERR_INVALID);
	assert_int_equal(store_cell_put(write, TABLE_COUNT, a, a, TEXT("v"), 1, 0), ERR_INVALID);
	assert_int_equal(store_cell_delete(write, TABLE_LEASES, a, a, 1), ERR_INVALID);
	assert_int_equal(store_set_add(write, TABLE_DEVICES, a, a, TEXT("v")), ERR_INVALID);
	assert_int_equal(store_cell_put_if(write, TABLE_DEVICES, a, a, 0, TEXT("v"), 0, &outcome),
			 ERR_INVALID);
	assert_int_equal(store_cell_delete_if(write, TABLE_DEVICES, a, a, 1, &outcome),
			 ERR_INVALID);
	assert_int_equal(store_cell_delete_if(write, TABLE_LEASES, a, a, 0, &outcome), ERR_INVALID);
	/* Parts that are missing, empty or of the wrong length. */
	assert_int_equal(store_cell_put(write, TABLE_DEVICES, PARTS({NULL, 0}), a, TEXT("v"), 1, 0),
			 ERR_INVALID);
	assert_int_equal(store_cell_put(write, TABLE_DEVICES, PARTS(TEXT("")), a, TEXT("v"), 1, 0),
			 ERR_INVALID);
	assert_int_equal(store_cell_put(write, TABLE_METRIC_INFO, a, a, TEXT("v"), 1, 0),
			 ERR_INVALID);
	assert_int_equal(store_cell_put(write, TABLE_REPORT_ARRIVALS,
					PARTS(TEXT("s"), TEXT("1234567"), TEXT("12345678")),
					PARTS(TEXT("12345678")), TEXT("v"), 1, 0),
			 ERR_INVALID);
	assert_int_equal(store_cell_put(write, TABLE_REPORT_ARRIVALS,
					PARTS(TEXT("s"), TEXT("12345678"), TEXT("12345678")),
					PARTS(TEXT("123456789")), TEXT("v"), 1, 0),
			 ERR_INVALID);
	assert_int_equal(store_cell_put(write, TABLE_DEVICES, a, a, TEXT("v"), 1, -1), ERR_INVALID);
	assert_int_equal(store_set_add(write, TABLE_METRIC_NAMES, a, a, TEXT("")), ERR_INVALID);
	assert_int_equal(store_set_add(write, TABLE_METRIC_NAMES, a, a,
				       filled(rig, STORE_SET_ELEMENT_MAX_BYTES + 1)),
			 ERR_LIMIT);
	assert_int_equal(store_set_add(write, TABLE_METRIC_NAMES, a, a,
				       filled(rig, STORE_SET_ELEMENT_MAX_BYTES)),
			 0);
	rig_commit(rig, write);
	assert_int_equal(rig_enumerate(rig, TABLE_DEVICES, 0, 0).count, 0);
	assert_int_equal(rig_enumerate(rig, TABLE_LEASES, 0, 0).count, 0);
	assert_int_equal(rig_enumerate(rig, TABLE_METRIC_NAMES, 0, 0).count, 1);
}

/* Submits a read with one request that lies outside the contract: refused at once. */
static void expect_refused(struct rig *rig, const struct store_request *request, int err)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *first = store_read_add(read, STORE_SERIES_LIST);
	struct store_request *added = store_read_add(read, request->op);
	*added = *request;
	assert_int_equal(rig_read(rig, read), err);
	assert_int_equal(added->err, err);
	assert_int_equal(first->err, 0);
	store_read_free(read);
}

/* What needs a capability is served where it was declared, and refused with a sentence elsewhere.
 */
static void what_was_not_declared_is_refused(struct rig *rig)
{
	static const struct {
		enum store_op op;
		unsigned needs;
	} reads[] = {{STORE_STATS, STORE_COUNTS},
		     {STORE_VERIFY, STORE_VERIFIES},
		     {STORE_SHARES, STORE_HAS_SHARES},
		     {STORE_SERIES_NEWS, STORE_NEWS}};
	uint64_t h = rig_series(rig, "cpu", "");
	unsigned can = rig->store->engine->can;
	for (size_t i = 0; i < ARRAY_LEN(reads); i++) {
		struct store_read *read = rig_read_new(rig);
		struct store_request *request = store_read_add(read, reads[i].op);
		if (reads[i].op == STORE_SHARES)
			request->shares = (struct store_shares){
				.table = TABLE_DATA_RAW, .handles = &h, .handle_count = 1};
		if (reads[i].op == STORE_SERIES_NEWS)
			request->series_news = (struct store_series_news){.tenant = TEXT("t"),
									  .metric = TEXT("cpu")};
		bool offered = can & reads[i].needs;
		assert_int_equal(rig_read(rig, read), offered ? 0 : ERR_INVALID);
		assert_true(offered || read->error.text[0]);
		store_read_free(read);
	}
	struct store_write *write = rig_write_new(rig);
	bool rekeys = can & STORE_REKEYS;
	assert_int_equal(store_rekey(write, &(struct store_rekeying){RAW, STORE_REKEY_COPY, &h, 1,
								     T0, T0 + 1}),
			 rekeys ? 0 : ERR_INVALID);
	assert_true(rekeys || write->error.text[0]);
	store_write_free(write);
	struct store_backup *backup = NULL;
	struct errbuf e = {""};
	bool backs_up = can & STORE_BACKS_UP;
	assert_int_equal(store_backup_begin(rig->store, 1 << 20, &backup, &e),
			 backs_up ? 0 : ERR_INVALID);
	assert_true(backs_up || e.text[0]);
	store_backup_end(backup);
}

static void reads_outside_the_contract(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	struct slice metric = TEXT("m");
	struct slice long_key = filled(rig, STORE_KEY_MAX_BYTES + 1);
	const struct {
		struct store_request request;
		int err;
	} wrong[] = {
		{{.op = (enum store_op)99}, ERR_INVALID},
		{{.op = STORE_RANGE, .range = {.table = TABLE_DEVICES}}, ERR_INVALID},
		{{.op = STORE_RANGE, .range = {.table = TABLE_RAW_DATA}}, ERR_INVALID},
		{{.op = STORE_RANGE, .range = {.table = TABLE_DATA_RAW, .period_ms = 1}},
		 ERR_INVALID},
		{{.op = STORE_RANGE, .range = {.table = TABLE_DATA_RAW, .start_ms = 1}},
		 ERR_INVALID},
		{{.op = STORE_RANGE, .range = {.table = TABLE_DATA_RAW, .fields = 2}}, ERR_INVALID},
		{{.op = STORE_RANGE,
		  .range = {.table = TABLE_DATA_RAW, .handle_count = STORE_HANDLES_MAX + 1}},
		 ERR_LIMIT},
		{{.op = STORE_RANGE,
		  .range = {.table = TABLE_DATA_RAW},
		  .token = {.len = STORE_TOKEN_MAX_BYTES + 1}},
		 ERR_INVALID},
		{{.op = STORE_LAST_BEFORE,
		  .last_before = {.table = TABLE_DATA_RAW, .look_back_ms = -1}},
		 ERR_INVALID},
		{{.op = STORE_AGGREGATE, .aggregate = {.table = TABLE_DATA_RAW, .end_ms = 1}},
		 ERR_INVALID},
		{{.op = STORE_AGGREGATE,
		  .aggregate = {.table = TABLE_DATA_RAW, .field = 1, .window_ms = 1}},
		 ERR_INVALID},
		{{.op = STORE_AGGREGATE,
		  .aggregate = {.table = TABLE_DATA_RAW,
				.handles = &h,
				.handle_count = 1,
				.end_ms = STORE_WINDOWS_MAX + 1,
				.window_ms = 1}},
		 ERR_LIMIT},
		{{.op = STORE_AGGREGATE,
		  .aggregate = {.table = TABLE_DATA_RAW,
				.handles = (uint64_t[]){h, h},
				.handle_count = 2,
				.end_ms = STORE_WINDOWS_MAX / 2 + 1,
				.window_ms = 1}},
		 ERR_LIMIT},
		{{.op = STORE_AGGREGATE,
		  .aggregate = {.table = TABLE_DATA_RAW,
				.handles = &h,
				.handle_count = 1,
				.start_ms = INT64_MIN,
				.end_ms = INT64_MAX,
				.window_ms = 1}},
		 ERR_LIMIT},
		{{.op = STORE_LAST_BEFORE, .last_before = {.table = TABLE_DEVICES}}, ERR_INVALID},
		{{.op = STORE_AGGREGATE, .aggregate = {.table = TABLE_DEVICES, .window_ms = 1}},
		 ERR_INVALID},
		{{.op = STORE_CELL_GET, .cell_get = {.table = TABLE_DEVICES}}, ERR_INVALID},
		{{.op = STORE_CELL_GET,
		  .cell_get = {.table = TABLE_DATA_RAW, .key = {{metric}}, .column = {{metric}}}},
		 ERR_INVALID},
		{{.op = STORE_CELL_GET,
		  .cell_get = {.table = TABLE_DEVICES, .key = {{long_key}}, .column = {{metric}}}},
		 ERR_LIMIT},
		{{.op = STORE_CELL_SCAN, .cell_scan = {.table = TABLE_DATA_RAW}}, ERR_INVALID},
		{{.op = STORE_CELL_SCAN,
		  .cell_scan = {.table = TABLE_DEVICES, .key = {{metric}}, .from = {{long_key}}}},
		 ERR_LIMIT},
		{{.op = STORE_ENUMERATE, .enumerate = {.table = TABLE_COUNT}}, ERR_INVALID},
		{{.op = STORE_PERIODS, .periods = {.table = TABLE_DEVICES}}, ERR_INVALID},
		{{.op = STORE_SERIES_OPEN,
		  .series_open = {.tenant = TEXT("t"), .metrics = &metric}},
		 ERR_INVALID},
		{{.op = STORE_SERIES_OPEN,
		  .series_open = {.tenant = TEXT("a b"), .metrics = &metric, .count = 1}},
		 ERR_INVALID},
		{{.op = STORE_SERIES_OPEN,
		  .series_open = {.tenant = TEXT(""), .metrics = &metric, .count = 1}},
		 ERR_INVALID},
		{{.op = STORE_SERIES_OPEN,
		  .series_open = {.tenant = TEXT("t"), .metrics = &long_key, .count = 1}},
		 ERR_INVALID},
	};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		expect_refused(rig, &wrong[i].request, wrong[i].err);
	/* Just within. */
	size_t windows;
	struct store_aggregate widest = {.table = TABLE_DATA_RAW,
					 .handles = &h,
					 .handle_count = 1,
					 .end_ms = 100000,
					 .window_ms = 1};
	rig_aggregate(rig, &widest, 0, &windows);
	assert_int_equal(windows, 100000);
}

static void tags_outside_the_contract(struct rig *rig)
{
	struct slice metric = TEXT("m");
	struct slice long_key = filled(rig, TAG_KEY_MAX_BYTES + 1);
	struct slice long_value = filled(rig, TAG_VALUE_MAX_BYTES + 1);
	struct slice full = filled(rig, TAG_VALUE_MAX_BYTES);
	struct tag many[TAGS_MAX + 1];
	char names[TAGS_MAX + 1][8];
	for (size_t i = 0; i <= TAGS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "k%03zu", i);
		many[i] = (struct tag){slice_of(names[i]), TEXT("v")};
	}
	const struct {
		struct tags tags;
		int err;
	} wrong[] = {
		{{(struct tag[]){{TEXT("b"), TEXT("v")}, {TEXT("a"), TEXT("v")}}, 2}, ERR_INVALID},
		{{(struct tag[]){{TEXT("a"), TEXT("v")}, {TEXT("a"), TEXT("w")}}, 2}, ERR_INVALID},
		{{(struct tag[]){{TEXT(""), TEXT("v")}}, 1}, ERR_INVALID},
		{{(struct tag[]){{TEXT("a"), TEXT("")}}, 1}, ERR_INVALID},
		{{(struct tag[]){{long_key, TEXT("v")}}, 1}, ERR_INVALID},
		{{(struct tag[]){{TEXT("a"), long_value}}, 1}, ERR_INVALID},
		{{many, TAGS_MAX + 1}, ERR_LIMIT},
		{{(struct tag[]){{TEXT("a"), full}, {TEXT("b"), full}, {TEXT("c"), full}}, 3},
		 ERR_LIMIT},
	};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct store_request request = {
			.op = STORE_SERIES_OPEN,
			.series_open = {.tenant = TEXT("t"),
					.tags = wrong[i].tags,
					.metrics = &metric,
					.count = 1},
		};
		expect_refused(rig, &request, wrong[i].err);
	}
	assert_int_equal(rig_list(rig, "", "", 0, 0).count, 0);
}

/* Full is an ordinary error: what was added before is submitted and kept. */
static void full_batch_is_still_good(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	struct store_write *write = store_write_new(rig->store, 4096);
	struct store_write *model = rig_write_new(rig);
	write->executor = model->executor;
	write->done = model->done;
	store_write_free(model);
	int64_t total = 0;
	for (int round = 0; round < 3; round++) {
		int64_t added = 0;
		int err;
		for (;;) {
			struct value v = I(total);
			err = store_append(write, &RAW, T0 + total, &h, 1, &v);
			if (err)
				break;
			added++;
			total++;
			assert_true(added < 100000);
		}
		assert_int_equal(err, ERR_LIMIT);
		assert_true(added > 5);
		assert_int_equal(write->samples, added);
		assert_int_equal(rig_write(rig, write), 0);
		store_write_reset(write);
	}
	store_write_free(write);
	struct point *expected = arena_zalloc(&rig->keep, (size_t)total * sizeof(*expected));
	for (int64_t i = 0; i < total; i++)
		expected[i] = (struct point){T0 + i, {I(i)}};
	expect_all(rig, RAW, h, (struct points){expected, (size_t)total});
}

static void empty_batches_succeed(struct rig *rig)
{
	struct store_write *write = rig_write_new(rig);
	store_write_next_stage(write);
	assert_int_equal(rig_write(rig, write), 0);
	assert_int_equal(write->stages_kept, 0);
	store_write_free(write);
	struct store_read *read = rig_read_new(rig);
	assert_int_equal(rig_read(rig, read), 0);
	store_read_free(read);
}

static void stages_are_kept_one_after_another(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	struct store_cell cell;
	struct store_write *write = rig_write_new(rig);
	store_write_next_stage(write); /* of nothing: no stage */
	assert_int_equal(try_append(write, TABLE_DATA_RAW, 0, 4, T0, h), 0);
	store_write_next_stage(write);
	store_write_next_stage(write);
	assert_int_equal(store_cell_put(write, TABLE_DEVICES, PARTS(TEXT("a")), PARTS(TEXT("b")),
					TEXT("checkpoint"), 1, 0),
			 0);
	assert_int_equal(try_append(write, TABLE_DATA_RAW, 0, 4, T0 + 1, h), 0);
	store_write_next_stage(write);
	assert_int_equal(store_delete_range(write, &RAW, &h, 1, T0, T0 + 1), 0);
	store_write_next_stage(write);
	assert_int_equal(rig_write(rig, write), 0);
	assert_int_equal(write->stages_kept, 3);
	store_write_free(write);
	expect_all(rig, RAW, h, POINTS({T0 + 1, {I(1)}}));
	assert_true(rig_cell_get(rig, TABLE_DEVICES, PARTS(TEXT("a")), PARTS(TEXT("b")), &cell));
}

/* A stage that fails keeps those before it and stops those behind it. */
static void failed_stage_stops_the_next(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", ""), dead = rig_series(rig, "dead", "");
	struct store_cell cell;
	struct store_write *write = rig_write_new(rig);
	assert_int_equal(store_series_forget(write, &dead, 1), 0);
	rig_commit(rig, write);
	write = rig_write_new(rig);
	assert_int_equal(try_append(write, TABLE_DATA_RAW, 0, 4, T0, h), 0);
	store_write_next_stage(write);
	int err = try_append(write, TABLE_DATA_RAW, 0, 4, T0, dead);
	if (err) { /* known at once: nothing was added, and the batch goes on */
		assert_int_equal(err, ERR_NOT_FOUND);
		assert_int_equal(rig_write(rig, write), 0);
		store_write_free(write);
		expect_all(rig, RAW, h, POINTS({T0, {I(1)}}));
		return;
	}
	store_write_next_stage(write);
	assert_int_equal(store_cell_put(write, TABLE_DEVICES, PARTS(TEXT("a")), PARTS(TEXT("b")),
					TEXT("checkpoint"), 1, 0),
			 0);
	assert_int_equal(rig_write(rig, write), ERR_NOT_FOUND);
	assert_int_equal(write->stages_kept, 1);
	store_write_free(write);
	expect_all(rig, RAW, h, POINTS({T0, {I(1)}}));
	assert_false(rig_cell_get(rig, TABLE_DEVICES, PARTS(TEXT("a")), PARTS(TEXT("b")), &cell));
}

/* A reader never finds a part of a stage. */
static void a_stage_is_atomic(struct rig *rig)
{
	enum { SERIES = 8 };
	uint64_t h[SERIES];
	for (size_t i = 0; i < SERIES; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "i=%zu", i);
		h[i] = rig_series(rig, "cpu", tags);
	}
	for (int64_t round = 1; round <= 100; round++) {
		int result = 1;
		struct store_write *write = rig_write_new(rig);
		for (size_t i = 0; i < SERIES; i++) {
			struct value v = I(round);
			assert_int_equal(store_append(write, &RAW, T0, &h[i], 1, &v), 0);
		}
		write->owner = &result;
		assert_int_equal(store_write_submit(write), 0);
		struct store_range range = {
			.table = TABLE_DATA_RAW,
			.handles = h,
			.handle_count = SERIES,
			.start_ms = T0,
			.end_ms = T0 + 1,
		};
		struct points points[SERIES];
		assert_int_equal(rig_range(rig, &range, 0, points), 0);
		for (size_t i = 0; i < SERIES; i++) {
			assert_int_equal(points[i].count, points[0].count);
			if (points[0].count)
				assert_value(points[i].list[0].values[0],
					     points[0].list[0].values[0]);
		}
		while (result == 1)
			task_queue_wait(&rig->queue);
		assert_int_equal(result, 0);
		store_write_free(write);
	}
}

/* Several requests of several kinds in one batch, each with its own result and its own bound. */
static void requests_of_one_read_are_apart(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "host=a");
	for (int64_t i = 0; i < 20; i++)
		rig_put(rig, RAW, h, T0 + i, I(i));
	rig_cell_put(rig, TABLE_DEVICES, PARTS(TEXT("a")), PARTS(TEXT("b")), TEXT("v"), 1, 0);
	struct store_read *read = rig_read_new(rig);
	struct store_request *range = store_read_add(read, STORE_RANGE);
	struct store_request *last = store_read_add(read, STORE_LAST_BEFORE);
	struct store_request *get = store_read_add(read, STORE_CELL_GET);
	struct store_request *list = store_read_add(read, STORE_SERIES_LIST);
	range->range = (struct store_range){.table = TABLE_DATA_RAW,
					    .handles = &h,
					    .handle_count = 1,
					    .start_ms = T0,
					    .end_ms = T0 + 20};
	last->last_before = (struct store_last_before){
		.table = TABLE_DATA_RAW, .handles = &h, .handle_count = 1, .before_ms = T0 + 10};
	get->cell_get = (struct store_cell_get){
		.table = TABLE_DEVICES, .key = {{TEXT("a")}}, .column = {{TEXT("b")}}};
	read->points_max = 6;
	size_t points = 0, lasts = 0, series = 0;
	for (int slice = 0; slice == 0 || range->more || last->more || get->more || list->more;
	     slice++) {
		bool range_ran = slice == 0 || range->more, last_ran = slice == 0 || last->more;
		bool list_ran = slice == 0 || list->more;
		size_t given = 0;
		assert_int_equal(rig_read(rig, read), 0);
		if (range_ran)
			given += range->range.points->count;
		points += given;
		if (last_ran && last->last_before.points) {
			lasts += last->last_before.points->count;
			given += last->last_before.points->count;
		}
		if (list_ran) {
			series += list->series_list.count;
			given += list->series_list.count;
		}
		assert_true(given <= 6);
		assert_true(slice < 100);
	}
	assert_int_equal(points, 20);
	assert_int_equal(lasts, 1);
	assert_int_equal(series, 1);
	assert_true(get->cell_get.found);
	store_read_free(read);
}

/* A request that comes when the read has given all its points says more, whatever kind it is. */
static void request_behind_the_last_point_says_more(struct rig *rig)
{
	static const enum table tables[] = {TABLE_DATA_RAW, TABLE_DEVICES, TABLE_SERIES_SETS};
	uint64_t h = rig_series(rig, "cpu", "host=a");
	rig_put(rig, RAW, h, T0, I(1));
	rig_cell_put(rig, TABLE_DEVICES, PARTS(TEXT("a")), PARTS(TEXT("b")), TEXT("v"), 1, 0);
	struct store_read *read = rig_read_new(rig);
	struct store_request *requests[7];
	for (size_t i = 0; i < 3; i++) {
		requests[i] = store_read_add(read, STORE_ENUMERATE);
		requests[i]->enumerate.table = tables[i];
	}
	requests[3] = store_read_add(read, STORE_SERIES_LIST);
	requests[4] = store_read_add(read, STORE_CELL_SCAN);
	requests[4]->cell_scan =
		(struct store_cell_scan){.table = TABLE_DEVICES, .key = {{TEXT("a")}}};
	requests[5] = store_read_add(read, STORE_RANGE);
	requests[5]->range = (struct store_range){
		.table = TABLE_DATA_RAW, .handles = &h, .handle_count = 1, .end_ms = INT64_MAX};
	requests[6] = store_read_add(read, STORE_LAST_BEFORE);
	requests[6]->last_before = (struct store_last_before){
		.table = TABLE_DATA_RAW, .handles = &h, .handle_count = 1, .before_ms = INT64_MAX};
	read->points_max = 1;
	for (size_t slice = 0, more = 1; more; slice++) {
		assert_int_equal(rig_read(rig, read), 0);
		more = 0;
		for (size_t i = 0; i < 7; i++)
			more += requests[i]->more;
		assert_true(slice < 20);
	}
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(requests[i]->err, 0);
	store_read_free(read);
}

static void deadline_ends_a_read(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	rig_put(rig, RAW, h, T0, I(1));
	rig_advance_ms(rig, 1000);
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	request->range = (struct store_range){.table = TABLE_DATA_RAW,
					      .handles = &h,
					      .handle_count = 1,
					      .start_ms = T0,
					      .end_ms = T0 + 1};
	read->deadline_us = 999999; /* of the monotonic clock, which stands at 1 s */
	assert_int_equal(rig_read(rig, read), ERR_TIMEOUT);
	assert_int_equal(request->err, ERR_TIMEOUT);
	assert_true(request->more);
	/* Given more time, it goes on. */
	read->deadline_us = 2000000;
	assert_int_equal(rig_read(rig, read), 0);
	assert_int_equal(request->range.points->count, 1);
	assert_false(request->more);
	store_read_free(read);
}

static void cancelled_read_ends(struct rig *rig)
{
	struct store_read *read = rig_read_new(rig);
	struct store_request *request = store_read_add(read, STORE_ENUMERATE);
	request->enumerate.table = TABLE_DATA_RAW;
	store_read_cancel(read);
	assert_int_equal(rig_read(rig, read), ERR_CANCELLED);
	store_read_reset(read);
	request = store_read_add(read, STORE_ENUMERATE);
	request->enumerate.table = TABLE_DATA_RAW;
	assert_int_equal(rig_read(rig, read), 0);
	store_read_free(read);
}

static void keep_result(struct store_read *read, int err)
{
	*(int *)read->owner = err;
}

/* Memory that is given back with other bytes in it: whoever reads it later reads these. */
static void scribble(void *memory, size_t bytes)
{
	memset(memory, 0xa5, bytes);
	mem_free(memory);
}

/* Whoever asked may go away at once: its names, handles and columns are gone when the engine
 * reads. */
static void what_a_read_points_to_is_its_own(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "a=b");
	rig_put(rig, RAW, h, T0, I(7));
	rig_cell_put(rig, TABLE_DEVICES, PARTS(TEXT("key")), PARTS(TEXT("col")), TEXT("v"), 1, 0);
	struct store_read *read = rig_read_new(rig);
	uint64_t *handles = mem_alloc_array(1, sizeof(*handles));
	char *text = mem_copy_text(TEXT("tcpuabkeycol"));
	struct slice tenant = {text, 1}, key = {text + 6, 3}, column = {text + 9, 3};
	struct slice *metrics = mem_alloc_array(1, sizeof(*metrics));
	struct tag *tags = mem_alloc_array(1, sizeof(*tags));
	struct store_request *r[10];
	const enum store_op ops[] = {STORE_RANGE,       STORE_LAST_BEFORE,     STORE_AGGREGATE,
				     STORE_CELL_GET,    STORE_CELL_SCAN,       STORE_SERIES_OPEN,
				     STORE_SERIES_LIST, STORE_SERIES_DESCRIBE, STORE_SHARES};
	bool shares = rig->store->engine->can & STORE_HAS_SHARES;
	int result = 1;
	for (size_t i = 0; i < ARRAY_LEN(ops) - !shares; i++)
		r[i] = store_read_add(read, ops[i]);
	handles[0] = h;
	metrics[0] = (struct slice){text + 1, 3};
	tags[0] = (struct tag){{text + 4, 1}, {text + 5, 1}};
	r[0]->range = (struct store_range){.table = TABLE_DATA_RAW,
					   .handles = handles,
					   .handle_count = 1,
					   .start_ms = T0,
					   .end_ms = T0 + 1};
	r[1]->last_before = (struct store_last_before){.table = TABLE_DATA_RAW,
						       .handles = handles,
						       .handle_count = 1,
						       .before_ms = T0 + 1};
	r[2]->aggregate = (struct store_aggregate){.table = TABLE_DATA_RAW,
						   .handles = handles,
						   .handle_count = 1,
						   .start_ms = T0,
						   .end_ms = T0 + 10,
						   .window_ms = 10};
	r[3]->cell_get = (struct store_cell_get){
		.table = TABLE_DEVICES, .key = {{key}}, .column = {{column}}};
	r[4]->cell_scan = (struct store_cell_scan){
		.table = TABLE_DEVICES, .key = {{key}}, .from = {{column}}};
	r[5]->series_open = (struct store_series_open){
		.tenant = tenant, .tags = {tags, 1}, .metrics = metrics, .count = 1};
	r[6]->series_list = (struct store_series_list){.tenant = tenant, .metric = metrics[0]};
	r[7]->series_describe = (struct store_series_describe){.handles = handles, .count = 1};
	if (shares)
		r[8]->shares = (struct store_shares){
			.table = TABLE_DATA_RAW, .handles = handles, .handle_count = 1};
	read->owner = &result;
	read->done = keep_result;
	assert_int_equal(store_read_submit(read), 0);
	scribble(handles, sizeof(*handles));
	scribble(text, 12);
	scribble(metrics, sizeof(*metrics));
	scribble(tags, sizeof(*tags));
	while (result == 1)
		task_queue_wait(&rig->queue);
	assert_int_equal(result, 0);
	assert_int_equal(r[0]->range.points[0].count, 1);
	assert_int_equal(r[0]->range.handles[0], h);
	assert_int_equal(r[1]->last_before.points[0].count, 1);
	assert_int_equal(r[2]->aggregate.windows[0].list[0].count, 1);
	if (shares)
		assert_int_equal(r[8]->shares.list[RETENTION_EVER].samples, 1);
	assert_true(r[3]->cell_get.found);
	assert_int_equal(r[4]->cell_scan.count, 1);
	assert_slice(r[4]->cell_scan.cells[0].column.part[0], TEXT("col"));
	assert_int_equal(r[5]->series_open.handles[0], h);
	assert_int_equal(r[6]->series_list.count, 1);
	assert_slice(r[6]->series_list.series[0].metric, TEXT("cpu"));
	assert_int_equal(r[7]->series_describe.series[0].handle, h);
	store_read_free(read);
}

static void never_done_read(struct store_read *read, int err)
{
	(void)read;
	fail_msg("a read that was freed is done, with %d", err);
}

static void never_done_write(struct store_write *write, int err)
{
	(void)write;
	fail_msg("a write that was freed is done, with %d", err);
}

/* Submitted and freed at once: the write is carried out, neither is heard of again. What comes of
 * their memory the address sanitizer says. */
static void batches_may_be_freed_in_flight(struct rig *rig)
{
	uint64_t h = rig_series(rig, "cpu", "");
	for (int64_t i = 0; i < 20; i++) {
		struct value value = I(i);
		struct store_write *write = rig_write_new(rig);
		write->done = never_done_write;
		assert_int_equal(store_append(write, &RAW, T0 + i, &h, 1, &value), 0);
		assert_int_equal(store_write_submit(write), 0);
		store_write_free(write);
		struct store_read *read = rig_read_new(rig);
		read->done = never_done_read;
		if (i % 2) /* else it is empty */
			store_read_add(read, STORE_ENUMERATE)->enumerate.table = TABLE_DATA_RAW;
		assert_int_equal(store_read_submit(read), 0);
		store_read_free(read);
	}
	rig_reopen(rig); /* what was accepted is finished */
	h = rig_find(rig, "t", "cpu", "");
	struct point point;
	assert_true(rig_last_before(rig, RAW, h, T0 + 20, 0, &point));
	assert_int_equal(point.ts_ms, T0 + 19);
}

/* In a process, and from one to the next of its name. */
static void stamps_rise(struct rig *rig)
{
	int64_t last = store_stamp(rig->store);
	assert_true(last >= T0 * 1000);
	for (int i = 0; i < 1000; i++) {
		int64_t stamp = store_stamp(rig->store);
		assert_true(stamp > last);
		last = stamp;
	}
	rig_advance_ms(rig, 5000);
	assert_true(store_stamp(rig->store) >= (T0 + 5000) * 1000);
	rig_advance_ms(rig, -3600000); /* the wall clock was set back */
	last = store_stamp(rig->store);
	assert_true(last > (T0 + 5000) * 1000);
	rig_cell_put(rig, TABLE_DEVICES, PARTS(TEXT("a")), PARTS(TEXT("b")), TEXT("v"), last, 0);
	rig_reopen(rig);
	assert_true(store_stamp(rig->store) > last);
}

static void figures_add_up(struct rig *rig)
{
	struct store_target rates = {TABLE_BASE_RATES, RETENTION_EVER, 30000};
	for (int i = 0; i < 3; i++) {
		char tags[16];
		snprintf(tags, sizeof(tags), "i=%d", i);
		uint64_t h = rig_series(rig, "cpu", tags);
		for (int64_t t = 0; t < 200; t++)
			rig_put(rig, RAW, h, T0 + 10000 * t, I(t));
		if (i == 0)
			rig_put_fields(rig, rates, h, T0,
				       (struct value[]){I(1), I(2), {0, VALUE_NONE}, I(4), I(5)});
	}
	rig_cell_put(rig, TABLE_DEVICES, PARTS(TEXT("a")), PARTS(TEXT("b")), TEXT("v"), 1, 0);
	rig_cell_put(rig, TABLE_DEVICES, PARTS(TEXT("a")), PARTS(TEXT("c")), TEXT("v"), 1, 0);
	rig_settle(rig);
	for (int pass = 0; pass < 2; pass++) {
		struct store_stats stats = rig_stats(rig);
		assert_int_equal(stats.series, 3);
		assert_int_equal(stats.tables[TABLE_DATA_RAW].rows, 3);
		assert_int_equal(stats.tables[TABLE_DATA_RAW].samples, 600);
		assert_int_equal(stats.tables[TABLE_BASE_RATES].rows, 1);
		assert_int_equal(stats.tables[TABLE_BASE_RATES].samples, 4);
		assert_int_equal(stats.tables[TABLE_DATA_LATE].samples, 0);
		assert_int_equal(stats.tables[TABLE_DEVICES].rows, 1);
		assert_int_equal(stats.tables[TABLE_DEVICES].samples, 2);
		assert_true(rig_verify(rig) > 0);
		rig_reopen(rig);
	}
}

/* Many batches on their way at once: all complete, in whatever order, and all are there. */
static void many_batches_at_once(struct rig *rig)
{
	enum { BATCHES = 200 };
	static int results[BATCHES];
	static struct store_write *writes[BATCHES];
	uint64_t h = rig_series(rig, "cpu", "");
	struct point *expected = arena_zalloc(&rig->keep, BATCHES * sizeof(*expected));
	for (int i = 0; i < BATCHES; i++) {
		writes[i] = rig_write_new(rig);
		expected[i] = (struct point){T0 + i, {I(i)}};
		assert_int_equal(store_append(writes[i], &RAW, T0 + i, &h, 1, expected[i].values),
				 0);
		results[i] = 1;
		writes[i]->owner = &results[i];
		assert_int_equal(store_write_submit(writes[i]), 0);
	}
	for (int i = 0; i < BATCHES; i++) {
		while (results[i] == 1)
			task_queue_wait(&rig->queue);
		assert_int_equal(results[i], 0);
		store_write_free(writes[i]);
	}
	expect_all(rig, RAW, h, (struct points){expected, BATCHES});
}

/* ---- A killed process ---------------------------------------------------------------------- */

/* In the process to be killed: a rig without an engine of its own. */
static void write_and_die(struct store *store, struct clock *clock)
{
	struct rig rig = {.store = store};
	clock_virtual_init(&rig.clock, clock->wall_us(clock));
	task_queue_init(&rig.queue);
	arena_init(&rig.keep, 1 << 20);
	uint64_t h = rig_find(&rig, "t", "cpu", "host=old");
	uint64_t fresh = rig_series(&rig, "cpu", "host=new");
	rig_put(&rig, RAW, h, T0 + 1, I(2));
	rig_put(&rig, RAW, fresh, T0, I(3));
	rig_delete(&rig, RAW, h, T0, T0 + 1);
	rig_cell_put(&rig, TABLE_DEVICES, PARTS(TEXT("a")), PARTS(TEXT("b")), TEXT("v"), 1, 0);
}

/* What was answered with success is there; what was deleted is not. */
static void killed_process_leaves_what_it_answered(struct rig *rig)
{
	struct store_cell cell;
	rig_put(rig, RAW, rig_series(rig, "cpu", "host=old"), T0, I(1));
	for (int round = 0; round < 3; round++) {
		rig->store = rig->engine->kill_in(rig->engine->context, rig->store,
						  &rig->clock.clock, write_and_die);
		assert_non_null(rig->store);
		expect_all(rig, RAW, rig_find(rig, "t", "cpu", "host=old"),
			   POINTS({T0 + 1, {I(2)}}));
		expect_all(rig, RAW, rig_find(rig, "t", "cpu", "host=new"), POINTS({T0, {I(3)}}));
		assert_true(rig_cell_get(rig, TABLE_DEVICES, PARTS(TEXT("a")), PARTS(TEXT("b")),
					 &cell));
		rig_verify(rig);
		if (round == 1)
			rig_settle(rig);
	}
}

const struct contract_case cases_batches[] = {
	CASE(handles_that_were_never_given),
	CASE(appends_outside_the_contract),
	CASE(sizes_of_cells_at_their_limits),
	CASE(cells_outside_the_contract),
	CASE(what_was_not_declared_is_refused),
	CASE(reads_outside_the_contract),
	CASE(tags_outside_the_contract),
	CASE(full_batch_is_still_good),
	CASE(empty_batches_succeed),
	CASE(stages_are_kept_one_after_another),
	CASE_NEEDS(failed_stage_stops_the_next, STORE_EXACT_FORGETTING),
	CASE_NEEDS(a_stage_is_atomic, STORE_ATOMIC_STAGES | STORE_SNAPSHOTS),
	CASE(requests_of_one_read_are_apart),
	CASE(request_behind_the_last_point_says_more),
	CASE(deadline_ends_a_read),
	CASE(cancelled_read_ends),
	CASE(what_a_read_points_to_is_its_own),
	CASE(batches_may_be_freed_in_flight),
	CASE(stamps_rise),
	CASE_NEEDS(figures_add_up, STORE_COUNTS),
	CASE(many_batches_at_once),
	CASE_NEEDS(killed_process_leaves_what_it_answered, STORE_SURVIVES_KILL),
	{0},
};
