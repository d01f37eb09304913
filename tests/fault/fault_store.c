/* A short life of a store, for the fault hook (hook.c) to break at every call, and the check of
 * what is there afterwards.
 *
 *   fault_store work --data DIR --log FILE [--recovers]
 *   fault_store check --data DIR --log FILE
 *
 * There are some groups: each is three series whose samples share their times, a cell, and a row of
 * cells of its own. An operation gives a group its next version: all its samples, its cell, and its
 * row anew, which is deleted with what it had, all in one batch; versions of one kind delete the
 * samples. So a group is always at one version as a whole. The log says which
 * operation went out (S) and how it was answered (A): with 0 the group is at that version; refused
 * it is where it was; with an unknown outcome, or without an answer, at either. Group EXPIRED has
 * samples that are older than their retention: nobody may ever see them.
 *
 * Ends: 0 the script is over (some operations may have been refused); 1 the store could not be
 * opened, and it said why; 74 it died, as declared; 3 it did what it must not. --recovers: what was
 * refused for lack of room must be taken in the end. */
#include <getopt.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/hash.h"
#include "base/mapped.h"
#include "base/mem.h"
#include "store/lmdb/lmdb.h"

enum {
	GROUPS = 5,
	EXPIRED = 4,
	LONG_CELL = 1,
	SERIES = 3,
	POSITIONS = 20,
	STEP_MS = 7000,
	CELL_LONG_BYTES = 9000, /* more than one page of the store */
	VERSIONS_MAX = 64,
	ENDS_BROKEN = 3,
	CLOCK_SPEED = 50, /* intervals pass so much faster than they do */
	RECOVERY_TRIES = 200,
};

#define BASE_MS INT64_C(1704067200000) /* 2024-01-01T00:00:00Z */
#define FAR_MS  INT64_C(4102444800000) /* 2100-01-01T00:00:00Z */

struct group {
	uint64_t handles[SERIES];
	unsigned version; /* of the latest operation that went out */
	uint64_t may_be;  /* a bit for each version that it may be at */
	uint64_t before;  /* the same before the operation that is out */
	bool out;
};

struct life {
	struct store *store;
	struct task_queue queue;
	struct clock clock;
	const char *data;
	int log;
	struct group groups[GROUPS];
	bool has_handles, dead, was_full;
	uint64_t lease_version;
};

NORETURN PRINTF_LIKE(1, 2) static void broken(const char *fmt, ...)
{
	va_list arguments;
	va_start(arguments, fmt);
	vfprintf(stderr, fmt, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	_exit(ENDS_BROKEN);
}

static bool version_deletes(unsigned version)
{
	return version % 4 == 3;
}

static struct value value_of(unsigned group, unsigned series, unsigned position, unsigned version)
{
	unsigned name[] = {group, series, position, version};
	uint64_t bits = hash64(name, sizeof(name), 0);
	return series == 0   ? value_i64((int64_t)(bits % 1000))
	       : series == 1 ? value_f64((double)(bits % 100000) / 100)
			     : value_u64(bits);
}

static int64_t time_of(unsigned position)
{
	return BASE_MS + (int64_t)position * STEP_MS;
}

/* ---- The log --------------------------------------------------------------------------------- */

static void went_out(struct group *group, unsigned version)
{
	group->version = version;
	group->before = group->may_be;
	group->may_be |= UINT64_C(1) << version;
	group->out = true;
}

static void came_back(struct group *group, int err)
{
	uint64_t bit = UINT64_C(1) << group->version;
	group->out = false;
	if (!err)
		group->may_be = bit;
	else if (err != ERR_UNKNOWN)
		group->may_be = group->before;
}

static void read_log(struct life *life, const char *path)
{
	FILE *file = fopen(path, "r");
	char line[100], *at;
	while (file && fgets(line, sizeof(line), file)) {
		if (line[0] != 'S' && line[0] != 'A')
			continue; /* the hook's */
		struct group *group = &life->groups[strtoul(line + 1, &at, 10)];
		unsigned version = (unsigned)strtoul(at, &at, 10);
		if (line[0] == 'S')
			went_out(group, version);
		else
			came_back(group, (int)strtol(at, &at, 10));
	}
	if (file)
		fclose(file);
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

static struct store_read *read_new(struct life *life, struct wait *wait)
{
	struct store_read *read = store_read_new(life->store, 8 << 20);
	read->executor = &life->queue.executor;
	read->done = read_done;
	read->owner = wait;
	read->now_ms = clock_wall_ms(clock_real());
	return read;
}

static int read_wait(struct life *life, struct store_read *read, struct wait *wait)
{
	*wait = (struct wait){false, 0};
	int err = store_read_submit(read);
	while (!err && !wait->done)
		task_queue_wait(&life->queue);
	return err ? err : wait->err;
}

static struct store_write *write_new(struct life *life, struct wait *wait)
{
	struct store_write *write = store_write_new(life->store, 1 << 20);
	write->executor = &life->queue.executor;
	write->done = write_done;
	write->owner = wait;
	*wait = (struct wait){false, 0};
	return write;
}

static int write_wait(struct life *life, struct store_write *write, struct wait *wait)
{
	int err = store_write_submit(write);
	while (!err && !wait->done)
		task_queue_wait(&life->queue);
	return err ? err : wait->err;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static int64_t wall_us(UNUSED struct clock *clock)
{
	return clock_real()->wall_us(clock_real());
}

static int64_t mono_us(UNUSED struct clock *clock)
{
	return clock_real()->mono_us(clock_real()) * CLOCK_SPEED;
}

static void on_dead(void *context, UNUSED int err)
{
	((struct life *)context)->dead = true;
}

static void life_open(struct life *life)
{
	struct lmdb_options options = {.path = life->data,
				       .clock = &life->clock,
				       .map_bytes = 64 << 20,
				       .read_threads = 1,
				       .on_dead = on_dead,
				       .context = life};
	struct errbuf e = {""};
	life->clock = (struct clock){wall_us, mono_us};
	life->has_handles = false;
	task_queue_init(&life->queue);
	if (lmdb_open(&options, &life->store, &e) == 0)
		return;
	if (!e.text[0])
		broken("the store cannot be opened, and does not say why");
	fprintf(stderr, "fault_store: %s\n", e.text);
	_exit(1);
}

static void life_close(struct life *life)
{
	store_close(life->store);
	task_queue_release(&life->queue);
}

static int open_series(struct life *life, bool find_only)
{
	static const struct slice metrics[SERIES] = {{"a", 1}, {"b", 1}, {"c", 1}};
	struct wait wait;
	struct store_read *read = read_new(life, &wait);
	for (unsigned i = 0; i < GROUPS; i++) {
		struct store_request *request = store_read_add(read, STORE_SERIES_OPEN);
		struct tag *tag = arena_zalloc(&read->arena, sizeof(*tag));
		char *name = arena_printf(&read->arena, "%u", i);
		ASSERT(request && tag && name);
		*tag = (struct tag){SLICE("group"), slice_of(name)};
		request->series_open = (struct store_series_open){.tenant = SLICE("default"),
								  .tags = {tag, 1},
								  .metrics = metrics,
								  .count = SERIES,
								  .find_only = find_only};
	}
	int err = read_wait(life, read, &wait);
	unsigned i = 0;
	for (struct store_request *r = read->requests; r && !err; r = r->next, i++)
		memcpy(life->groups[i].handles, r->series_open.handles,
		       sizeof(life->groups[i].handles));
	store_read_free(read);
	life->has_handles = !err;
	return err;
}

/* ---- Operations ------------------------------------------------------------------------------ */

struct cell_name {
	struct store_parts key, column;
	char text[16];
};

static void cell_name(struct cell_name *name, unsigned group)
{
	snprintf(name->text, sizeof(name->text), "%u", group);
	name->key = (struct store_parts){{SLICE("fault")}};
	name->column = (struct store_parts){{SLICE("g"), slice_of(name->text)}};
}

static size_t cell_value(unsigned group, unsigned version, uint8_t to[CELL_LONG_BYTES])
{
	size_t len = group == LONG_CELL ? CELL_LONG_BYTES : 20;
	memset(to, (int)version, len);
	return len;
}

static int add_samples(const struct group *group, unsigned id, struct store_write *write)
{
	if (version_deletes(group->version))
		return store_delete_range(write, &(struct store_target){.table = TABLE_DATA_RAW},
					  group->handles, SERIES, time_of(0), time_of(POSITIONS));
	int err = 0;
	for (unsigned p = 0; p < POSITIONS && !err; p++) {
		struct value values[SERIES];
		for (unsigned s = 0; s < SERIES; s++)
			values[s] = value_of(id, s, p, group->version);
		err = store_append(write,
				   &(struct store_target){TABLE_DATA_RAW, id == EXPIRED
										  ? RETENTION_2_DAYS
										  : RETENTION_EVER},
				   time_of(p), group->handles, SERIES, values);
	}
	return err;
}

static int add_cell(unsigned id, unsigned version, struct store_write *write)
{
	uint8_t bytes[CELL_LONG_BYTES];
	struct cell_name name;
	cell_name(&name, id);
	struct slice value = {(const char *)bytes, cell_value(id, version, bytes)};
	return store_cell_put(write, TABLE_METRIC_INFO, &name.key, &name.column, value, version, 0);
}

static struct store_parts row_key(unsigned id, char text[16])
{
	snprintf(text, 16, "row %u", id);
	return (struct store_parts){{slice_of(text)}};
}

/* The row is deleted, and then has one cell, which expires some time. */
static int renew_row(unsigned id, unsigned version, struct store_write *write)
{
	char key_text[16], column_text[16];
	struct store_parts key = row_key(id, key_text);
	snprintf(column_text, sizeof(column_text), "%u", version % 3);
	struct store_parts column = {{SLICE("r"), slice_of(column_text)}};
	uint8_t byte = (uint8_t)version;
	int err = store_row_delete(write, TABLE_METRIC_INFO, &key, 2 * version);
	return err ? err
		   : store_cell_put(write, TABLE_METRIC_INFO, &key, &column,
				    (struct slice){(const char *)&byte, 1}, 2 * version + 1,
				    FAR_MS + version * INT64_C(100000));
}

/* The store is dead: nothing is taken any more, nothing hangs, and it can be closed. */
NORETURN static void end_dead(struct life *life)
{
	struct wait wait;
	struct store_write *write = write_new(life, &wait);
	if (!life->dead)
		broken("an unknown outcome, and the store goes on");
	int err = add_cell(0, 0, write);
	if (!err && write_wait(life, write, &wait) == 0)
		broken("a dead store takes a write");
	store_write_free(write);
	life_close(life);
	_exit(MAPPED_EXIT_STATUS);
}

static int next_version(struct life *life, unsigned id)
{
	struct group *group = &life->groups[id];
	struct wait wait;
	ASSERT(group->version + 1 < VERSIONS_MAX);
	if (!life->has_handles && open_series(life, false))
		return 0; /* refused, and nothing has begun */
	struct store_write *write = write_new(life, &wait);
	went_out(group, group->version + 1);
	int err = add_samples(group, id, write);
	if (!err)
		err = add_cell(id, group->version, write);
	if (!err)
		err = renew_row(id, group->version, write);
	dprintf(life->log, "S %u %u\n", id, group->version);
	if (!err)
		err = write_wait(life, write, &wait);
	dprintf(life->log, "A %u %u %d\n", id, group->version, err);
	came_back(group, err);
	store_write_free(write);
	life->was_full = life->was_full || err == ERR_FULL;
	if (err == ERR_UNKNOWN || err == ERR_READ_ONLY)
		end_dead(life);
	if (err == ERR_NOT_FOUND)
		life->has_handles = false; /* a registration that did not come to be */
	return err;
}

/* Conditional cells, and a series that comes and goes: only that they break nothing. */
static void other_writes(struct life *life)
{
	struct wait wait;
	struct store_write *write = write_new(life, &wait);
	struct store_write_cond *outcome;
	struct store_parts key = {{SLICE("fault")}}, column = {{SLICE("owner")}};
	int err = store_cell_put_if(write, TABLE_LEASES, &key, &column, life->lease_version,
				    SLICE("me"), 0, &outcome);
	if (!err && life->has_handles)
		err = store_series_forget(write, life->groups[0].handles, SERIES);
	if (!err)
		err = write_wait(life, write, &wait);
	if (!err)
		life->lease_version = outcome->version;
	store_write_free(write);
	if (err == ERR_UNKNOWN || err == ERR_READ_ONLY)
		end_dead(life);
}

static void settle(struct life *life)
{
	int err = lmdb_settle(life->store);
	life->was_full = life->was_full || err == ERR_FULL;
	if (life->dead)
		end_dead(life);
}

/* ---- What is there --------------------------------------------------------------------------- */

/* Which version the cell says; 0: none. */
static int read_cell(struct life *life, unsigned id, unsigned *version)
{
	struct wait wait;
	struct store_read *read = read_new(life, &wait);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	uint8_t expected[CELL_LONG_BYTES];
	struct cell_name name;
	ASSERT(request);
	cell_name(&name, id);
	request->cell_get = (struct store_cell_get){
		.table = TABLE_METRIC_INFO, .key = name.key, .column = name.column};
	int err = read_wait(life, read, &wait);
	struct slice value = request->cell_get.cell.value;
	*version = 0;
	if (!err && request->cell_get.found) {
		*version = (uint8_t)value.data[0];
		struct slice want = {(const char *)expected, cell_value(id, *version, expected)};
		if (!slice_equal(value, want))
			broken("group %u: a cell that nobody wrote", id);
	}
	store_read_free(read);
	return err;
}

/* Just what was put with the version. */
static int check_row(struct life *life, unsigned id, unsigned version)
{
	struct wait wait;
	struct store_read *read = read_new(life, &wait);
	struct store_request *request = store_read_add(read, STORE_CELL_SCAN);
	char text[16];
	ASSERT(request);
	request->cell_scan =
		(struct store_cell_scan){.table = TABLE_METRIC_INFO, .key = row_key(id, text)};
	int err = read_wait(life, read, &wait);
	const struct store_cell_scan *scan = &request->cell_scan;
	if (!err && scan->count != (version > 0))
		broken("group %u at version %u: its row has %zu cells", id, version, scan->count);
	if (!err && version && (uint8_t)scan->cells[0].value.data[0] != version)
		broken("group %u at version %u: its row has a cell of another", id, version);
	store_read_free(read);
	return err;
}

static void compare(unsigned id, unsigned version, unsigned series,
		    const struct store_points *points)
{
	bool none = version == 0 || version_deletes(version) || id == EXPIRED;
	size_t count = none ? 0 : POSITIONS;
	if (points->count != count)
		broken("group %u at version %u: series %u has %zu samples, not %zu", id, version,
		       series, points->count, count);
	for (unsigned p = 0; p < count; p++) {
		struct value have = {points->bits[0][p], (enum value_type)points->types[0][p]};
		if (points->ts_ms[p] != time_of(p) ||
		    !value_identical(have, value_of(id, series, p, version)))
			broken("group %u at version %u: series %u has a wrong sample at %u", id,
			       version, series, p);
	}
}

/* An error, or what the answers said. */
static int check_group(struct life *life, unsigned id)
{
	struct group *group = &life->groups[id];
	struct wait wait;
	unsigned version;
	int err = read_cell(life, id, &version);
	if (err)
		return err;
	if (version >= VERSIONS_MAX || !(group->may_be >> version & 1))
		broken("group %u is at version %u, which was not answered (may be %llx)", id,
		       version, (unsigned long long)group->may_be);
	err = check_row(life, id, version);
	if (err)
		return err;
	struct store_read *read = read_new(life, &wait);
	struct store_request *request = store_read_add(read, STORE_RANGE);
	ASSERT(request);
	request->range = (struct store_range){.table = TABLE_DATA_RAW,
					      .handles = group->handles,
					      .handle_count = SERIES,
					      .start_ms = STORE_TS_MIN,
					      .end_ms = STORE_TS_MAX};
	err = read_wait(life, read, &wait);
	for (unsigned s = 0; s < SERIES && !err; s++)
		compare(id, version, s, &request->range.points[s]);
	store_read_free(read);
	return err;
}

static int check_groups(struct life *life)
{
	int err = 0;
	for (unsigned i = 0; i < GROUPS && !err && life->has_handles; i++)
		err = check_group(life, i);
	return err;
}

static int verify(struct life *life)
{
	struct store_token token = {.len = 0};
	struct store_verify found = {0};
	bool more = true;
	int err = 0;
	while (more && !err) {
		struct wait wait;
		struct store_read *read = read_new(life, &wait);
		struct store_request *request = store_read_add(read, STORE_VERIFY);
		ASSERT(request);
		request->token = token;
		request->verify = found;
		err = read_wait(life, read, &wait);
		if (!err && request->verify.sentence_count)
			broken("verify: %s", request->verify.sentences[0]);
		found = request->verify;
		token = request->token;
		more = request->more;
		store_read_free(read);
	}
	return err;
}

/* ---- The script ------------------------------------------------------------------------------ */

static void versions(struct life *life)
{
	for (unsigned i = 0; i < GROUPS; i++)
		(void)next_version(life, i);
}

/* Room came back: sooner or later writes are taken again. */
static void must_recover(struct life *life)
{
	for (int i = 0; i < RECOVERY_TRIES; i++) {
		unsigned version = life->groups[0].version;
		if (version + 2 >= VERSIONS_MAX)
			version = life->groups[0].version = 1;
		if (next_version(life, 0) == 0)
			return;
		life->groups[0].version = version;
		usleep(5000);
	}
	broken("there is room again, and the store does not take writes");
}

static int work(struct life *life, bool recovers)
{
	life_open(life);
	versions(life);
	settle(life);
	(void)check_groups(life);
	versions(life);
	other_writes(life);
	versions(life); /* which delete */
	settle(life);
	versions(life);
	(void)check_groups(life);
	life_close(life);
	life_open(life);
	versions(life);
	settle(life);
	(void)check_groups(life);
	(void)verify(life);
	other_writes(life);
	versions(life);
	if (recovers && life->was_full)
		must_recover(life);
	life_close(life);
	return 0;
}

static int check(struct life *life)
{
	life_open(life);
	int err = open_series(life, true);
	if (!err)
		err = check_groups(life);
	if (!err)
		err = verify(life);
	/* And it goes on. */
	life->has_handles = false;
	for (unsigned i = 0; i < GROUPS && !err; i++)
		err = next_version(life, i);
	if (!err)
		err = lmdb_settle(life->store);
	if (!err)
		err = check_groups(life);
	if (err)
		broken("after it, without faults: %s", err_text(err));
	life_close(life);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option names[] = {
		{"data", required_argument, NULL, 'd'},
		{"log", required_argument, NULL, 'l'},
		{"recovers", no_argument, NULL, 'r'},
		{NULL, 0, NULL, 0},
	};
	static struct life life;
	const char *log = NULL;
	bool recovers = false;
	int option;
	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'd')
			life.data = optarg;
		else if (option == 'l')
			log = optarg;
		else if (option == 'r')
			recovers = true;
		else
			return 2;
	}
	bool checks = optind + 1 == argc && strcmp(argv[optind], "check") == 0;
	if (!life.data || !log || optind + 1 != argc || (!checks && strcmp(argv[optind], "work")))
		return 2;
	for (unsigned i = 0; i < GROUPS; i++)
		life.groups[i].may_be = 1; /* version 0: nothing */
	if (checks)
		read_log(&life, log);
	/* By libc's own calls: the hook leaves them alone. */
	FILE *file = fopen(checks ? "/dev/null" : log, "ae");
	if (!file)
		return 2;
	life.log = fileno(file);
	return checks ? check(&life) : work(&life, recovers);
}
