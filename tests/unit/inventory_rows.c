#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/cursor.h"
#include "inventory/inventory.h"
#include "inventory/private.h"
#include "model/poll.h"
#include "naive.h"

#define T0_MS     INT64_C(1600000000000)
#define MINUTE_MS 60000

static struct clock_virtual clock_;
static struct task_queue queue;
static struct store *store;
static struct arena arena;
static struct errbuf e;

static int setup(void **state)
{
	(void)state;
	clock_virtual_init(&clock_, T0_MS * 1000);
	task_queue_init(&queue);
	arena_init(&arena, 64 << 20);
	store = naive_open(&clock_.clock);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	store_close(store);
	arena_release(&arena);
	task_queue_release(&queue);
	return 0;
}

static void pump(void)
{
	while (task_queue_run(&queue))
		;
}

/* ---- The pure part --------------------------------------------------------------------------- */

enum { ROWS_MAX = 16 };

/* `name=attributes@begin`, with blanks between. */
static size_t rows_of(const char *text, struct inventory_row *rows)
{
	size_t count = 0;
	while (*text) {
		size_t name = strcspn(text, "="), len = strcspn(text, " ");
		const char *at = memchr(text, '@', len);
		rows[count++] = (struct inventory_row){
			.name = {text, name},
			.attributes = {text + name + 1, (size_t)(at - text) - name - 1},
			.begin_ms = at[1] - '0',
			.end_ms = INVENTORY_FOREVER_MS,
		};
		text += len + (text[len] == ' ');
	}
	return count;
}

static void check_diff(const char *open, const char *polled, bool complete, int64_t ts_ms,
		       const char *wanted)
{
	struct inventory_row o[ROWS_MAX], p[ROWS_MAX];
	struct inventory_row_change changes[2 * ROWS_MAX];
	size_t oc = rows_of(open, o), pc = rows_of(polled, p), n = 0;
	char is[500] = "";
	size_t count = inventory_rows_diff(o, oc, p, pc, complete, ts_ms, changes);
	for (size_t i = 0; i < count; i++) {
		const struct inventory_row *c = changes[i].closes, *b = changes[i].opens;
		n += (size_t)snprintf(is + n, sizeof(is) - n, "%s", i ? " " : "");
		if (c)
			n += (size_t)snprintf(is + n, sizeof(is) - n, "-%.*s=%.*s",
					      (int)c->name.len, c->name.data,
					      (int)c->attributes.len, c->attributes.data);
		if (b)
			n += (size_t)snprintf(is + n, sizeof(is) - n, "+%.*s=%.*s",
					      (int)b->name.len, b->name.data,
					      (int)b->attributes.len, b->attributes.data);
	}
	assert_string_equal(is, wanted);
}

static void what_a_poll_changes(void **state)
{
	(void)state;
	/* Nothing was, everything opens. */
	check_diff("", "a=1@5 b=1@5", true, 5, "+a=1 +b=1");
	check_diff("a=1@1 b=1@1", "a=1@5 b=1@5", true, 5, "");
	/* Any attribute: the row is closed and the next one begins. */
	check_diff("a=1@1 b=1@1", "a=1@5 b=2@5", true, 5, "-b=1+b=2");
	/* Gone, and new between others. */
	check_diff("a=1@1 b=1@1 d=1@1", "b=1@5 c=1@5 d=1@5", true, 5, "-a=1 +c=1");
	check_diff("a=1@1 b=1@1", "a=1@5", true, 5, "-b=1");
	/* A walk that did not come to its end closes nothing, but opens and changes. */
	check_diff("a=1@1 b=1@1 c=1@1", "a=2@5 d=1@5", false, 5, "-a=1+a=2 +d=1");
	check_diff("a=1@1", "", false, 5, "");
	/* Nor does one that saw nothing, though it says that it is whole. */
	check_diff("a=1@1", "", true, 5, "");
	check_diff("", "", true, 5, "");
	/* Older than what is known. */
	check_diff("a=2@7 b=1@1", "a=1@5 c=1@5", true, 5, "-b=1 +c=1");
	check_diff("a=2@7 b=1@7", "c=1@5", true, 5, "+c=1");
	/* Names that begin alike. */
	check_diff("a=1@1 aa=1@1", "a=1@5 ab=1@5", true, 5, "-aa=1 +ab=1");
}

/* ---- From polls ------------------------------------------------------------------------------ */

static struct poll_builder builder;
static struct buf message;

static void poll_start(const char *oidset, const char *columns)
{
	poll_builder_init(&builder);
	buf_init(&message, POLL_BYTES_MAX);
	assert_int_equal(poll_begin(&builder, SLICE("rtr_a"), slice_of(oidset), T0_MS, &e), 0);
	while (*columns) {
		size_t len = strcspn(columns, " ");
		assert_int_equal(poll_add_column(&builder, (struct slice){columns, len}, &e), 0);
		columns += len + (columns[len] == ' ');
	}
}

static size_t poll_row_of(const char *index, const char *words)
{
	struct slice parts[] = {slice_of(index), slice_of(words)};
	assert_int_equal(poll_add_row(&builder, parts, *words ? 2 : 1, T0_MS, &e), 0);
	return builder.row_count - 1;
}

static void set_text(size_t row, size_t column, const char *text)
{
	assert_int_equal(poll_set_text(&builder, row, column, slice_of(text), false, &e), 0);
}

static int poll_rows_or_not(enum oidset_kind kind, struct inventory_row **rows, size_t *count)
{
	struct poll poll;
	struct poll_names names;
	struct poll_values values;
	assert_int_equal(poll_encode(&builder, 0, true, &message, &e), 0);
	struct slice copy = arena_copy(&arena, buf_slice(&message));
	assert_int_equal(poll_open(copy, &poll, &e), 0);
	assert_int_equal(poll_decode_names(&poll, &arena, &names, &e), 0);
	assert_int_equal(poll_decode_values(&poll, &arena, &values, &e), 0);
	int err = inventory_rows_from_poll(kind, &poll, &names, &values, &arena, rows, count);
	poll_builder_release(&builder);
	buf_release(&message);
	return err;
}

static size_t poll_rows(enum oidset_kind kind, struct inventory_row **rows)
{
	size_t count;
	assert_int_equal(poll_rows_or_not(kind, rows, &count), 0);
	return count;
}

static void assert_row(const struct inventory_row *row, const char *name, const char *attributes)
{
	assert_int_equal(row->name.len, strlen(name));
	assert_memory_equal(row->name.data, name, strlen(name));
	assert_string_equal(row->attributes.data, attributes);
	assert_int_equal(row->begin_ms, T0_MS);
	assert_int_equal(row->end_ms, INVENTORY_FOREVER_MS);
}

static void interfaces_are_rows_with_the_documents_columns(void **state)
{
	(void)state;
	struct inventory_row *rows;
	poll_start("IfRefPoll", "ifDescr ifName ifAlias ifSpeed ifHighSpeed ipAdEntIfIndex ifMtu "
				"ifType ifPhysAddress ifOperStatus ifAdminStatus");
	poll_set(&builder, poll_row_of("10.0.0.9", ""), 5, value_i64(7));
	poll_set(&builder, poll_row_of("10.0.0.1", ""), 5, value_i64(7));
	size_t row = poll_row_of("7", "");
	set_text(row, 0, "xe0 of \"a\"");
	set_text(row, 1, "xe-0/2/0");
	set_text(row, 2, "");
	poll_set(&builder, row, 3, value_u64(4294967295));
	poll_set(&builder, row, 4, value_u64(10000));
	poll_set(&builder, row, 6, value_i64(9000));
	poll_set(&builder, row, 7, value_i64(6));
	set_text(row, 8, "00:1b:21:00:00:01");
	poll_set(&builder, row, 9, value_i64(1));
	poll_set(&builder, row, 10, value_i64(1));
	row = poll_row_of("1", "");
	set_text(row, 1, "lo");
	set_text(row, 8, "");
	assert_int_equal(poll_rows(OIDSET_INTERFACES, &rows), 2);
	assert_row(&rows[0], "lo",
		   "{\"ifIndex\":1,\"ifDescr\":null,\"ifName\":\"lo\",\"ifAlias\":null,\"ipAddr\":"
		   "null,\"ifSpeed\":null,\"ifHighSpeed\":null,\"ifMtu\":null,\"ifType\":null,"
		   "\"ifOperStatus\":null,\"ifAdminStatus\":null,\"ifPhysAddress\":null}");
	assert_row(&rows[1], "xe-0/2/0",
		   "{\"ifIndex\":7,\"ifDescr\":\"xe0 of \\\"a\\\"\",\"ifName\":\"xe-0/2/0\","
		   "\"ifAlias\":\"\",\"ipAddr\":\"10.0.0.1\",\"ifSpeed\":4294967295,"
		   "\"ifHighSpeed\":10000,\"ifMtu\":9000,\"ifType\":6,\"ifOperStatus\":1,"
		   "\"ifAdminStatus\":1,\"ifPhysAddress\":\"00:1b:21:00:00:01\"}");
}

static void interfaces_of_one_name_are_told_apart(void **state)
{
	(void)state;
	struct inventory_row *rows;
	poll_start("IfRefPoll", "ifName ifDescr");
	set_text(poll_row_of("3", ""), 0, "a");
	set_text(poll_row_of("1", ""), 0, "a");
	set_text(poll_row_of("2", ""), 1, "b");
	set_text(poll_row_of("4", ""), 1, "");
	assert_int_equal(poll_rows(OIDSET_INTERFACES, &rows), 4);
	static const char *const names[] = {"#4", "a#1", "a#3", "b"};
	for (size_t i = 0; i < 4; i++)
		assert_true(slice_equal(rows[i].name, slice_of(names[i])));
}

/* As granary's own poller writes them, and told apart still. */
static void names_that_are_not_utf8_are_written_out(void **state)
{
	(void)state;
	struct inventory_row *rows;
	poll_start("IfRefPoll", "ifName");
	set_text(poll_row_of("1", ""), 0, "caf\xe9");
	set_text(poll_row_of("2", ""), 0, "caf\xea");
	set_text(poll_row_of("3", ""), 0, "caf\xc3\xa9");
	assert_int_equal(poll_rows(OIDSET_INTERFACES, &rows), 3);
	static const char *const names[] = {"caf\\xe9", "caf\\xea", "caf\xc3\xa9"};
	for (size_t i = 0; i < 3; i++)
		assert_true(slice_equal(rows[i].name, slice_of(names[i])));
}

/* 20 columns of 50,000 bytes are beyond what a cell takes. */
static void a_row_that_is_too_long_is_invalid(void **state)
{
	(void)state;
	static char text[50001];
	struct inventory_row *rows;
	size_t count;
	memset(text, 'x', sizeof(text) - 1);
	for (size_t columns = 10; columns <= 20; columns += 10) {
		poll_start("Sap", columns == 10 ? "a b c d e f g h i j"
						: "a b c d e f g h i j k l m n o p q r s t");
		size_t row = poll_row_of("1.2.3", "");
		for (size_t c = 0; c < columns; c++)
			set_text(row, c, text);
		assert_int_equal(poll_rows_or_not(OIDSET_SAPS, &rows, &count),
				 columns == 10 ? 0 : ERR_INVALID);
	}
}

/* Where the description is on devices that have no ifAlias. */
static void descriptions_of_other_vendors(void **state)
{
	(void)state;
	struct inventory_row *rows;
	poll_start("ALUIfRefPoll", "ifDescr ifName");
	size_t row = poll_row_of("35684352", "");
	set_text(row, 0, "1/1/1, 10-Gig Ethernet, \"to the lab\"");
	set_text(row, 1, "1/1/1");
	assert_int_equal(poll_rows(OIDSET_INTERFACES, &rows), 1);
	assert_non_null(strstr(rows[0].attributes.data, "\"ifAlias\":\"to the lab\""));
	poll_start("InfIfRefPoll", "ifDescr ifName gigeClientCtpPmRealCktId");
	row = poll_row_of("5", "");
	set_text(row, 1, "GIGECLIENTCTP=1-A-3-T1");
	set_text(row, 2, "circuit 9");
	assert_int_equal(poll_rows(OIDSET_INTERFACES, &rows), 1);
	assert_true(slice_equal(rows[0].name, SLICE("1-A-3-T1")));
	assert_non_null(strstr(rows[0].attributes.data, "\"ifAlias\":\"circuit 9\""));
}

static void other_kinds_keep_all_columns(void **state)
{
	(void)state;
	struct inventory_row *rows;
	poll_start("ALUSAPRefPoll", "sapDescription sapIngressQosPolicyId");
	size_t row = poll_row_of("1.270565376.100", "1-8/1/1-100");
	set_text(row, 0, "customer");
	poll_set(&builder, row, 1, value_u64(2));
	assert_int_equal(poll_rows(OIDSET_SAPS, &rows), 1);
	assert_row(&rows[0], "1-8/1/1-100",
		   "{\"index\":\"1.270565376.100\",\"sapDescription\":\"customer\","
		   "\"sapIngressQosPolicyId\":2}");
	poll_start("SentryOutletRefPoll", "outletControlState outletID");
	row = poll_row_of("1.1.2", "");
	poll_set(&builder, row, 0, value_i64(5));
	set_text(row, 1, "AA2");
	assert_int_equal(poll_rows(OIDSET_OUTLETS, &rows), 1);
	assert_row(&rows[0], "AA2",
		   "{\"index\":\"1.1.2\",\"outletControlState\":5,\"outletID\":\"AA2\"}");
	poll_start("LSPOpStatus", "mplsLspInfoState");
	poll_row_of("97.98", "ab");
	assert_int_equal(poll_rows(OIDSET_LSPS, &rows), 0); /* a row without a value is none */
}

/* As it is named where it is polled (snmp_correlate.c); esmond's own test has this SAP. */
static void rows_of_messages_are_named_like_polled_ones(void **state)
{
	(void)state;
	static const struct {
		enum oidset_kind kind;
		const char *index, *name;
	} cases[] = {
		{OIDSET_SAPS, "1.270565376.100", "1-8/1/1-100"},
		{OIDSET_SAPS, "9.1342177285.0", "9-lag-5-0"}, /* 0x50000005 */
		{OIDSET_SAPS, "4294967295.503316480.4294967295",
		 "4294967295-invalid-portid-4294967295"},
		/* No index of a SAP. */
		{OIDSET_SAPS, "1.270565376", "1.270565376"},
		{OIDSET_SAPS, "1.270565376.100.", "1.270565376.100."},
		{OIDSET_SAPS, "1.4294967296.100", "1.4294967296.100"},
		{OIDSET_SAPS, "1..100", "1..100"},
		{OIDSET_SAPS, ".1.2.3", ".1.2.3"},
		{OIDSET_SAPS, "a.b.c", "a.b.c"},
		/* A string with and without its length; in words, as esmond's SNMP library has it.
		 */
		{OIDSET_LSPS, "97.98", "ab"},
		{OIDSET_LSPS, "2.97.98", "ab"},
		{OIDSET_LSPS, "'lsp-to-b'", "lsp-to-b"},
		{OIDSET_LSPS, "\"lsp.7\"", "lsp.7"},
		{OIDSET_LSPS, "'", "'"},
		{OIDSET_LSPS, "''", "''"},
		{OIDSET_LSPS, "300.1", "300.1"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct inventory_row *rows;
		poll_start("Any", "column");
		poll_set(&builder, poll_row_of(cases[i].index, ""), 0, value_u64(2));
		assert_int_equal(poll_rows(cases[i].kind, &rows), 1);
		assert_int_equal(rows[0].name.len, strlen(cases[i].name));
		assert_memory_equal(rows[0].name.data, cases[i].name, rows[0].name.len);
	}
}

/* ---- In the store ---------------------------------------------------------------------------- */

static bool is_done;
static int done_err;

static void updated(struct inventory_rows_update *update, int err)
{
	(void)update;
	is_done = true;
	done_err = err;
}

static void written(struct store_write *write, int err)
{
	(void)write;
	done_err = err;
	is_done = true;
}

/* One poll of rtr_a at this minute. */
static void poll_at(int64_t minute, const char *text, bool complete, size_t opened, size_t closed)
{
	struct inventory_row rows[ROWS_MAX];
	struct inventory_rows_update update = {.store = store,
					       .executor = &queue.executor,
					       .clock = &clock_.clock,
					       .kind = OIDSET_INTERFACES,
					       .device = SLICE("rtr_a"),
					       .rows = rows,
					       .complete = complete,
					       .ts_ms = T0_MS + minute * MINUTE_MS,
					       .done = updated};
	update.count = rows_of(text, rows);
	for (size_t i = 0; i < update.count; i++)
		rows[i].begin_ms = update.ts_ms;
	update.write = store_write_new(store, 1 << 20);
	update.write->executor = &queue.executor;
	update.write->done = written;
	is_done = false;
	assert_int_equal(inventory_rows_update_start(&update), 0);
	assert_false(is_done);
	pump();
	assert_true(is_done);
	assert_int_equal(done_err, 0);
	assert_int_equal(update.opened, opened);
	assert_int_equal(update.closed, closed);
	assert_int_equal(store_write_submit(update.write), 0);
	pump();
	assert_int_equal(done_err, 0);
	store_write_free(update.write);
}

static void read_done(struct inventory_rows_read *read, int err)
{
	(void)read;
	is_done = true;
	done_err = err;
}

/* `name=attributes:begin-end`, in minutes; a * where it is open. */
static void check_rows(int64_t begin, int64_t end, size_t limit, const char *wanted)
{
	struct inventory_rows_read read = {.store = store,
					   .executor = &queue.executor,
					   .clock = &clock_.clock,
					   .arena = &arena,
					   .kind = OIDSET_INTERFACES,
					   .device = SLICE("rtr_a"),
					   .begin_ms = T0_MS + begin * MINUTE_MS,
					   .end_ms = T0_MS + end * MINUTE_MS,
					   .limit = limit,
					   .done = read_done};
	static char is[8000];
	size_t n = 0;
	is[0] = 0;
	is_done = false;
	assert_int_equal(inventory_rows_read_start(&read), 0);
	pump();
	assert_true(is_done);
	assert_int_equal(done_err, 0);
	for (size_t i = 0; i < read.count; i++) {
		const struct inventory_row *row = &read.rows[i];
		n += (size_t)snprintf(is + n, sizeof(is) - n, "%s%.*s=%.*s:%d-", i ? " " : "",
				      (int)row->name.len, row->name.data, (int)row->attributes.len,
				      row->attributes.data,
				      (int)((row->begin_ms - T0_MS) / MINUTE_MS));
		if (row->end_ms == INVENTORY_FOREVER_MS)
			n += (size_t)snprintf(is + n, sizeof(is) - n, "*");
		else
			n += (size_t)snprintf(is + n, sizeof(is) - n, "%d",
					      (int)((row->end_ms - T0_MS) / MINUTE_MS));
	}
	assert_string_equal(is, wanted);
	assert_int_equal(read.more, limit && read.count == limit);
}

/* E's test: a change of the alias makes two rows, the first one closed; but an empty poll after it
 * closes nothing here. */
static void versions_lie_behind_each_other(void **state)
{
	(void)state;
	poll_at(1, "xe0=one@0 xe1=up@0", true, 2, 0);
	check_rows(0, 9, 0, "xe0=one:1-* xe1=up:1-*");
	poll_at(2, "xe0=two@0 xe1=up@0", true, 1, 1);
	poll_at(3, "", true, 0, 0);
	check_rows(0, 9, 0, "xe0=one:1-2 xe0=two:2-* xe1=up:1-*");
	poll_at(4, "xe0=two@0", false, 0, 0);
	poll_at(5, "xe0=two@0", true, 0, 1);
	check_rows(0, 9, 0, "xe0=one:1-2 xe1=up:1-5 xe0=two:2-*");
	poll_at(6, "xe0=two@0 xe1=up@0", true, 1, 0);
	check_rows(0, 9, 0, "xe0=one:1-2 xe1=up:1-5 xe0=two:2-* xe1=up:6-*");
	/* Only what lived then. */
	check_rows(3, 4, 0, "xe1=up:1-5 xe0=two:2-*");
	check_rows(1, 1, 0, "xe0=one:1-2 xe1=up:1-5");
	check_rows(6, 9, 0, "xe0=two:2-* xe1=up:6-*");
	check_rows(0, 0, 0, "");
	check_rows(0, 9, 2, "xe0=one:1-2 xe1=up:1-5");
}

static void the_same_poll_twice_changes_nothing(void **state)
{
	(void)state;
	poll_at(1, "xe0=one@0", true, 1, 0);
	poll_at(1, "xe0=one@0", true, 0, 0);
	poll_at(2, "xe0=two@0", true, 1, 1);
	poll_at(2, "xe0=two@0", true, 0, 0);
	/* One that comes late does not undo what came after it. */
	poll_at(1, "xe0=one@0", true, 0, 0);
	check_rows(0, 9, 0, "xe0=one:1-2 xe0=two:2-*");
	/* Two states of one moment: the later one holds, the other has not lived. */
	poll_at(2, "xe0=three@0", true, 1, 1);
	check_rows(0, 9, 0, "xe0=one:1-2 xe0=three:2-*");
}

/* Names beyond what a column of the store takes: rows of them stopped everything that came behind
 * them in a poll, and the half before was written. They begin alike for longer than is kept of
 * them. */
static void a_long_name_stopped_the_rows_behind_it(void **state)
{
	(void)state;
	char m[501], text[2000], wanted[4000];
	memset(m, 'm', sizeof(m) - 1);
	m[sizeof(m) - 1] = 0;
	poll_at(1, "aaa=one@0 mmm=one@0 zzz=one@0", true, 3, 0);
	snprintf(text, sizeof(text), "aaa=two@0 %s=one@0 zzz=two@0", m);
	poll_at(2, text, true, 3, 3);
	snprintf(wanted, sizeof(wanted),
		 "aaa=one:1-2 mmm=one:1-2 zzz=one:1-2 aaa=two:2-* %s=one:2-* zzz=two:2-*", m);
	check_rows(0, 9, 0, wanted);
	poll_at(3, text, true, 0, 0);
	snprintf(text, sizeof(text), "aaa=two@0 %s=two@0 zzz=three@0", m);
	poll_at(4, text, true, 2, 2);
	poll_at(5, "aaa=two@0 zzz=three@0", true, 0, 1);
	snprintf(wanted, sizeof(wanted),
		 "%s=one:2-4 zzz=two:2-4 %s=two:4-5 aaa=two:2-* zzz=three:4-*", m, m);
	check_rows(4, 9, 0, wanted);
}

/* As an older version put it, past store.c. */
static void put_of_before(struct slice name, struct slice attributes)
{
	struct row_column column;
	struct store_parts key = row_key(OIDSET_INTERFACES, SLICE("rtr_a"));
	struct inventory_row row = {.name = name, .attributes = attributes};
	struct buf scratch, key_bytes, column_bytes;
	struct slice value;
	buf_init(&scratch, 4 << 20);
	buf_init(&key_bytes, 4000);
	buf_init(&column_bytes, 4000);
	if (!row_column_of_before(name, T0_MS + MINUTE_MS, INVENTORY_FOREVER_MS, &column))
		row_column(name, T0_MS + MINUTE_MS, INVENTORY_FOREVER_MS, &column);
	assert_int_equal(row_cell_value(&column, &row, &scratch, &value), 0);
	assert_int_equal(store_parts_encode(&key, 2, &key_bytes), 0);
	assert_int_equal(store_parts_encode(&column.parts, 3, &column_bytes), 0);
	struct store_write *write = store_write_new(store, 8 << 20);
	write->executor = &queue.executor;
	write->done = written;
	assert_int_equal(
		store->engine->add_cell(
			write, &(struct store_cell_write){.action = CELL_PUT,
							  .table = TABLE_VERSIONED_ROWS,
							  .key = buf_slice(&key_bytes),
							  .column = buf_slice(&column_bytes),
							  .value = value,
							  .stamp_us = 1}),
		0);
	write->stage_count = 1;
	assert_int_equal(store_write_submit(write), 0);
	pump();
	assert_int_equal(done_err, 0);
	store_write_free(write);
	buf_release(&scratch);
	buf_release(&key_bytes);
	buf_release(&column_bytes);
}

/* A name that is no UTF-8; one that was cut within its 64th character; and attributes of 1.5 MiB,
 * which are left out. */
static void rows_of_before_are_closed(void **state)
{
	(void)state;
	static char much[3 << 19];
	char m[2 * 200 + 2] = "m", wanted[1000];
	for (size_t i = 0; i < 200; i++)
		memcpy(m + 1 + 2 * i, "\xc3\xbc", 2);
	memset(much, 'x', sizeof(much));
	put_of_before(SLICE("caf\xe9"), SLICE("one"));
	put_of_before(slice_of(m), SLICE("two"));
	put_of_before(SLICE("zzz"), (struct slice){much, sizeof(much)});
	poll_at(2, "xe0=one@0", true, 1, 3);
	snprintf(wanted, sizeof(wanted), "caf\\xe9=one:1-2 %s=two:1-2 zzz={}:1-2 xe0=one:2-*", m);
	check_rows(0, 9, 0, wanted);
	poll_at(3, "xe0=one@0", true, 0, 0);
}

/* More of them than one order of hashes is likely to be that of the names by chance. */
static void long_names_that_begin_alike_are_told_apart(void **state)
{
	(void)state;
	enum { NAMES = 6, LEN = 420 };
	char text[NAMES * (LEN + 20)] = "", wanted[NAMES * (LEN + 20)] = "";
	char m[LEN + 1];
	memset(m, 'm', LEN);
	m[LEN] = 0;
	for (int i = 0; i < NAMES; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%d=%d@0",
			 i ? " " : "", m, i, i);
	poll_at(1, text, true, NAMES, 0);
	poll_at(2, text, true, 0, 0);
	snprintf(text, sizeof(text), "%s3=3@0", m);
	poll_at(3, text, true, 0, NAMES - 1);
	snprintf(wanted, sizeof(wanted), "%s3=3:1-*", m);
	check_rows(9, 9, 0, wanted);
}

static void a_read_can_be_dropped(void **state)
{
	(void)state;
	struct inventory_rows_read read = {.store = store,
					   .executor = &queue.executor,
					   .clock = &clock_.clock,
					   .arena = &arena,
					   .kind = OIDSET_INTERFACES,
					   .device = SLICE("rtr_a"),
					   .end_ms = T0_MS,
					   .done = read_done};
	is_done = false;
	assert_int_equal(inventory_rows_read_start(&read), 0);
	inventory_rows_read_cancel(&read);
	pump();
	assert_false(is_done);
}

/* Overwrites what a call left there. */
static __attribute__((noinline)) void use_the_stack(void)
{
	volatile char bytes[1 << 14];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 'x';
}

/* An engine reads it when the caller's stack is another, and its names may be gone. */
static void what_a_read_asks_for_is_its_own(void **state)
{
	(void)state;
	char device[] = "rtr_a";
	struct inventory_rows_read read = {.store = store,
					   .executor = &queue.executor,
					   .clock = &clock_.clock,
					   .arena = &arena,
					   .kind = OIDSET_INTERFACES,
					   .device = slice_of(device),
					   .begin_ms = T0_MS,
					   .end_ms = T0_MS,
					   .done = read_done};
	assert_int_equal(inventory_rows_read_start(&read), 0);
	memset(device, 'x', strlen(device));
	const struct store_cell_scan *scan = &read.read->requests->cell_scan;
	uint64_t from = be64_get((const uint8_t *)scan->from.part[0].data);
	use_the_stack();
	bool kept = be64_get((const uint8_t *)scan->from.part[0].data) == from &&
		    slice_equal(scan->key.part[1], SLICE("rtr_a"));
	pump();
	assert_true(kept);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_a_poll_changes),
		TEST(interfaces_are_rows_with_the_documents_columns),
		TEST(interfaces_of_one_name_are_told_apart),
		TEST(names_that_are_not_utf8_are_written_out),
		TEST(a_row_that_is_too_long_is_invalid),
		TEST(descriptions_of_other_vendors),
		TEST(other_kinds_keep_all_columns),
		TEST(rows_of_messages_are_named_like_polled_ones),
		TEST(versions_lie_behind_each_other),
		TEST(the_same_poll_twice_changes_nothing),
		TEST(a_long_name_stopped_the_rows_behind_it),
		TEST(rows_of_before_are_closed),
		TEST(long_names_that_begin_alike_are_told_apart),
		TEST(a_read_can_be_dropped),
		TEST(what_a_read_asks_for_is_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
