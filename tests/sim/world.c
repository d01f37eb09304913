#include "world.h"

#include <ftw.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/stats.h"
#include "store/lmdb/lmdb.h"

#define BEGIN_MS INT64_C(1704067200000) /* 2024-01-01T00:00:00Z */
#define HOUR_MS  INT64_C(3600000)
#define DAY_MS   INT64_C(86400000)

/* Far more than clocks are set by without being doubted, also over a stop. */
#define WRONG_MS (30 * DAY_MS)

enum { WAIT_STEP_US = 20000, WAIT_STEPS_MAX = 20000 };

/* ---- Words ----------------------------------------------------------------------------------- */

bool violate(struct world *world, const char *fmt, ...)
{
	va_list args;
	if (world->failed)
		return false;
	world->failed = true;
	va_start(args, fmt);
	vsnprintf(world->failure, sizeof(world->failure), fmt, args);
	va_end(args);
	return false;
}

void say(struct world *world, const char *fmt, ...)
{
	char text[512];
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	world->hash =
		hash64(text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1, world->hash);
	if (world->trace)
		printf("%5zu %12lld  %s\n", world->step,
		       (long long)(machine_wall_us() - BEGIN_MS * 1000), text);
}

/* ---- The loop -------------------------------------------------------------------------------- */

static void post(struct executor *executor, struct task *task)
{
	struct world *world = CONTAINER_OF(executor, struct world, executor);
	task->next = NULL;
	if (disk_dead()) {
		*world->late_last = task;
		world->late_last = &task->next;
	} else {
		*world->tasks_last = task;
		world->tasks_last = &task->next;
	}
}

static struct task *take_task(struct task **list, struct task ***last)
{
	struct task *task = *list;
	*list = task->next;
	if (!*list)
		*last = list;
	return task;
}

size_t pump(struct world *world, size_t most)
{
	size_t ran = 0;
	for (; ran < most; ran++) {
		struct task *task;
		if (world->tasks)
			task = take_task(&world->tasks, &world->tasks_last);
		else if (world->ghost && world->late)
			task = take_task(&world->late, &world->late_last);
		else
			break;
		world->tick++;
		task->run(task);
	}
	return ran;
}

bool pump_until(struct world *world, const bool *done, const char *what)
{
	for (int i = 0; !*done; i++) {
		if (pump(world, SIZE_MAX))
			continue;
		if (disk_dead() && !world->ghost)
			return false; /* the crash has come first */
		if (i > WAIT_STEPS_MAX)
			return violate(world, "%s does not come to an end", what);
		machine_sleep(WAIT_STEP_US);
	}
	return true;
}

/* The same for a condition. */
static bool pump_while(struct world *world, bool (*busy)(const struct world *world),
		       const char *what)
{
	for (int i = 0; busy(world); i++) {
		if (pump(world, SIZE_MAX))
			continue;
		if (disk_dead() && !world->ghost)
			return false;
		if (i > WAIT_STEPS_MAX)
			return violate(world, "%s does not come to an end", what);
		machine_sleep(WAIT_STEP_US);
	}
	return true;
}

/* ---- What may be seen ------------------------------------------------------------------------ */

/* Whether the clock is so far ahead of the time that has passed that nothing may expire by it, and
 * has stood there for less than a day. So what the run has set is told from what has passed, and a
 * store that believes whatever the clock shows is found out when it is set right again. */
static bool is_clock_wrong(const struct world *world)
{
	return world->wrong_ms > WRONG_MS && machine_mono_us() - world->wrong_at_us < DAY_MS * 1000;
}

static int64_t expired_by_ms(const struct world *world)
{
	bool later = now_ms() > world->wall_most_ms && !is_clock_wrong(world);
	return later ? now_ms() : world->wall_most_ms;
}

static void note_time(struct world *world)
{
	world->wall_most_ms = expired_by_ms(world);
	if (world->wrong_ms && machine_mono_us() - world->wrong_at_us >= DAY_MS * 1000)
		world->wrong_ms = 0;
}

bool in_sight(const struct world *world, const struct row *row, int64_t ts_ms, int64_t at_ms,
	      bool *must)
{
	int64_t lifetime_ms = retention_class_ms(row->retention);
	*must = lifetime_ms == 0 || ts_ms >= expired_by_ms(world) - lifetime_ms;
	return lifetime_ms == 0 || ts_ms >= at_ms - lifetime_ms;
}

struct batch *new_batch(struct world *world, bool ordered)
{
	struct batch *batch = arena_zalloc(&world->batches, sizeof(*batch));
	ASSERT(batch);
	batch->number = ordered ? ++world->next_batch : 0;
	return batch;
}

/* ---- A life ---------------------------------------------------------------------------------- */

static int free_bytes(struct files *files, UNUSED const char *path, uint64_t *bytes)
{
	struct world *world = CONTAINER_OF(files, struct world, files);
	*bytes = world->disk_low ? 0 : UINT64_C(1) << 30;
	return 0;
}

static void on_dead(void *context, int err)
{
	struct world *world = context;
	world->dead = true;
	if (!disk_dead() && disk_counts.failed == 0)
		violate(world, "the store died of nothing: %s", err_text(err));
}

static bool open_store(struct world *world)
{
	struct lmdb_options options = {
		.path = world->path,
		.map_bytes = world->map_bytes,
		.journal_max_bytes = world->journal_max_bytes,
		.journal_max_age_ms = world->journal_max_age_ms,
		.head_max_bytes = world->head_max_bytes,
		.queue_max_bytes = world->queue_max_bytes,
		.min_free_bytes = 1 << 20,
		.settle_delay_ms = world->settle_delay_ms,
		.read_threads = world->read_threads,
		.files = &world->files,
		.on_dead = on_dead,
		.context = world,
	};
	struct errbuf e = {""};
	world->dead = false;
	int err = lmdb_open(&options, &world->store, &e);
	if (err)
		return violate(world, "the store does not open: %s (%s)", err_text(err), e.text);
	return true;
}

static bool open_life(struct world *world)
{
	say(world, "open");
	if (!open_store(world))
		return false;
	struct catalog_options limits = catalog_options_default();
	struct clock *clock = lmdb_clock(world->store);
	world->catalog = catalog_new(world->store, clock, &world->executor, &limits);
	struct ingest_options ingest = {
		.store = world->store,
		.catalog = world->catalog,
		.clock = clock,
		.executor = &world->executor,
		.retention = {.rules = &world->retention},
		.in_flight_max_bytes = world->in_flight_max_bytes,
		.write_bytes = world->write_bytes,
		.cache_max_bytes = 1 << 20,
	};
	world->ingest = ingest_new(&ingest);
	struct query_options query = {
		.store = world->store,
		.catalog = world->catalog,
		.clock = clock,
		.executor = &world->executor,
		.slice_points = world->slice_points,
	};
	world->queries = query_engine_new(&query);
	world->samples_before = stat_get(STAT_ingest_samples);
	world->door_samples = 0;
	return true;
}

static void catalog_is_closed(void *owner)
{
	((struct world *)owner)->catalog_closed = true;
}

static bool ingest_or_query_busy(const struct world *world)
{
	return !ingest_idle(world->ingest) || !query_engine_idle(world->queries) ||
	       !direct_idle(world);
}

/* Everything goes, in the order in which the server does it. */
static void take_down(struct world *world)
{
	doors_abandon(world);
	pump_while(world, ingest_or_query_busy, "what is under way");
	ingest_free(world->ingest);
	query_engine_free(world->queries);
	world->catalog_closed = false;
	catalog_close(world->catalog, catalog_is_closed, world);
	pump_until(world, &world->catalog_closed, "the catalog");
	store_close(world->store);
	pump(world, SIZE_MAX);
	world->store = NULL;
}

/* What the model says must be there, and nothing else is. */
static bool recover(struct world *world)
{
	disk_revive();
	world->disk_low = false;
	world->ghost = false;
	doors_after_crash(world);
	if (!open_life(world) || !direct_open_series(world) || !direct_read_all(world, true))
		return false;
	world->was_full = world->map_bytes < 2 << 20;
	return direct_verify(world);
}

static bool crash(struct world *world, enum disk_end how)
{
	size_t heard = pick(world, 8);
	if (!disk_dead())
		disk_die(how);
	note_time(world);
	world->counts.crashes++;
	say(world, "crash; %zu answers are still heard", heard);
	pump(world, heard);
	if (world->failed)
		return false;
	world->ghost = true;
	take_down(world);
	return !world->failed && recover(world);
}

/* The store is taken down as the server does it, and nothing may be missing. */
static bool restart(struct world *world)
{
	say(world, "stop");
	disk_die_at(DISK_KILL, 0);
	disk_fail_write(0);
	disk_fail_sync(0);
	disk_fill(false);
	take_down(world);
	note_time(world);
	if (world->failed)
		return false;
	if (disk_dead()) {
		world->ghost = true;
		pump(world, SIZE_MAX);
		return recover(world);
	}
	world->counts.closes++;
	int64_t counted = stat_get(STAT_ingest_samples) - world->samples_before;
	if (counted < world->door_samples)
		return violate(world, "ingest counted %lld samples and answered for %lld",
			       (long long)counted, (long long)world->door_samples);
	/* Power may fail once the process has gone: nothing is left to be written. */
	disk_die(chance(world, 50) ? DISK_POWER : DISK_KILL);
	return recover(world);
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void pass_time(struct world *world)
{
	int64_t ms;
	unsigned kind = (unsigned)pick(world, 40);
	if (kind < 24)
		ms = (int64_t)pick(world, 400);
	else if (kind < 35)
		ms = (int64_t)pick(world, 90000);
	else if (kind < 38 || direct_is_late(world))
		ms = (int64_t)pick(world, 7 * HOUR_MS);
	else
		ms = (int64_t)pick(world, (kind == 38 ? 2 : 9) * DAY_MS);
	say(world, "%lld ms pass", (long long)ms);
	machine_pass(ms * 1000);
	note_time(world);
}

static void set_clock(struct world *world, int64_t ms)
{
	note_time(world);
	say(world, "the clock is set by %lld ms", (long long)ms);
	machine_jump(ms * 1000);
	world->wrong_ms += ms;
	world->wrong_at_us = machine_mono_us();
	note_time(world);
}

/* By an hour or two, by years, or back to where it was. */
static void jump_clock(struct world *world)
{
	int64_t ms = (int64_t)pick(world, 4 * HOUR_MS) - 2 * HOUR_MS;
	int64_t years_ms = (int64_t)pick(world, 5) * 365 * DAY_MS + 100 * DAY_MS;
	bool far = world->wrong_ms > WRONG_MS || world->wrong_ms < -WRONG_MS;
	if (far && chance(world, 60))
		ms = -world->wrong_ms;
	else if (chance(world, 40))
		ms = chance(world, 70) ? years_ms : -years_ms;
	set_clock(world, ms);
}

static void accept_clock(struct world *world)
{
	say(world, "the clock is accepted");
	world->wrong_ms = 0;
	note_time(world);
	clock_accept(lmdb_clock(world->store));
}

static void settle(struct world *world)
{
	say(world, "settle");
	int err = lmdb_settle(world->store);
	world->counts.settles += err == 0;
	say(world, "settled: %s", err_text(err));
	if (err && err != ERR_FULL && !world->dead && !disk_dead())
		violate(world, "settling fails: %s", err_text(err));
}

/* The disk is about to do what disks do. */
static void break_disk(struct world *world)
{
	unsigned calls = 1 + (unsigned)pick(world, chance(world, 50) ? 6 : 40);
	enum disk_end how = chance(world, 70) ? DISK_POWER : DISK_KILL;
	switch (pick(world, 10)) {
	case 0:
		say(world, "write %u will fail", calls);
		disk_fail_write(calls);
		break;
	case 1:
		say(world, "sync %u will fail", calls / 4 + 1);
		disk_fail_sync(calls / 4 + 1);
		break;
	case 2:
	case 3:
		world->disk_low = chance(world, 50);
		disk_fill(chance(world, 50));
		world->counts.full++;
		world->was_full = true;
		say(world, "the disk fills");
		break;
	default:
		say(world, "call %u to the disk will be the last", calls);
		disk_die_at(how, calls);
	}
}

static void mend_disk(struct world *world)
{
	world->disk_low = false;
	disk_fill(false);
	say(world, "there is room on the disk");
}

static bool do_step(struct world *world)
{
	unsigned kind = (unsigned)pick(world, 1000);
	if (disk_dead() || world->dead) {
		world->counts.deaths += world->dead && !disk_dead();
		return crash(world, chance(world, 50) ? DISK_POWER : DISK_KILL);
	}
	if (kind < 260)
		direct_write_step(world);
	else if (kind < 420)
		direct_read_step(world);
	else if (kind < 600)
		door_step(world);
	else if (kind < 650)
		query_step(world);
	else if (kind < 770)
		pump(world, 1 + pick(world, 12));
	else if (kind < 880)
		machine_idle(1 + (unsigned)pick(world, 40));
	else if (kind < 949)
		pass_time(world);
	else if (kind < 960)
		jump_clock(world);
	else if (kind < 961)
		accept_clock(world);
	else if (kind < 967)
		settle(world);
	else if (kind < 980)
		break_disk(world);
	else if (kind < 988)
		mend_disk(world);
	else if (kind < 994)
		return crash(world, chance(world, 70) ? DISK_POWER : DISK_KILL);
	else if (kind < 997)
		return restart(world);
	else
		(void)direct_read_all(world, false);
	return !world->failed;
}

/* ---- A run ----------------------------------------------------------------------------------- */

static uint64_t one_of(struct world *world, const uint64_t *list, size_t count)
{
	return list[pick(world, count)];
}

#define ONE_OF(world, ...)                                                                         \
	one_of(world, (uint64_t[]){__VA_ARGS__}, ARRAY_LEN(((uint64_t[]){__VA_ARGS__})))

/* Limits so small that what happens once a day happens in every run. */
static void choose_limits(struct world *world)
{
	world->journal_max_bytes = ONE_OF(world, 4096, 16384, 65536, 1 << 20);
	world->head_max_bytes = ONE_OF(world, 4096, 32768, 131072, 1 << 20);
	world->map_bytes = ONE_OF(world, 16 << 20, 16 << 20, 16 << 20, 16 << 20, 1 << 20);
	world->queue_max_bytes = ONE_OF(world, 2000, 60000, 4 << 20);
	world->journal_max_age_ms = (int64_t)ONE_OF(world, 500, 30000, 2 * HOUR_MS);
	world->settle_delay_ms = (int64_t)ONE_OF(world, 1, 2000, 60000);
	world->retention.levels_ms[0] = (int64_t)ONE_OF(world, 0, 2 * DAY_MS, 7 * DAY_MS);
	world->read_threads = 1 + (unsigned)pick(world, 3);
	world->in_flight_max_bytes = ONE_OF(world, 20000, 200000, 4 << 20);
	world->write_bytes = ONE_OF(world, 8192, 65536, 1 << 20);
	world->slice_points = ONE_OF(world, 7, 100, 65536);
}

static void name_series(struct world *world)
{
	static const char *const one[] = {"m"};
	static const char *const some[] = {"in", "out", "err"};
	static const char *const many[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
	static const struct {
		const char *const *metrics;
		size_t metric_count, hosts;
	} kinds[GROUPS] = {{one, 1, 8}, {some, 3, 3}, {many, 10, 1}, {one, 1, 1}};
	size_t at = 0;
	for (size_t g = 0; g < GROUPS; g++) {
		enum retention_class class = (enum retention_class)pick(world, RETENTION_CLASSES);
		world->groups[g] = (struct group){.metrics = kinds[g].metrics,
						  .first = at,
						  .count = kinds[g].metric_count * kinds[g].hosts,
						  .next_ms = BEGIN_MS};
		for (size_t h = 0; h < kinds[g].hosts; h++) {
			for (size_t m = 0; m < kinds[g].metric_count; m++, at++) {
				struct series_name *name = &world->names[at];
				name->tenant = g == 3 ? "u" : "t";
				name->metric = kinds[g].metrics[m];
				snprintf(name->tags, sizeof(name->tags), "g=%zu,host=h%zu", g, h);
				*direct_row(world, (unsigned)at, false) =
					(struct row){.table = TABLE_DATA_RAW,
						     .retention = class,
						     .series = (unsigned)at};
				*direct_row(world, (unsigned)at, true) =
					(struct row){.table = TABLE_BASE_RATES,
						     .period_ms = 30000,
						     .retention = class,
						     .series = (unsigned)at};
			}
		}
	}
	ASSERT(at == DIRECT_SERIES);
}

static void begin(struct world *world, uint64_t seed, bool trace)
{
	*world = (struct world){.seed = seed, .trace = trace, .hash = seed};
	random_init(&world->random, seed);
	world->executor.post = post;
	world->tasks_last = &world->tasks;
	world->late_last = &world->late;
	world->files = *files_real();
	world->files.free_bytes = free_bytes;
	arena_init(&world->batches, 256 << 20);
	choose_limits(world);
	name_series(world);
	for (size_t i = 0; i < CELLS; i++)
		register_init(&world->cells[i], REG_STAMPED, 0);
	for (size_t i = 0; i < LEASES; i++)
		register_init(&world->leases[i].reg, REG_CONDITIONAL, 0);
	doors_init(world);
	const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(world->path, sizeof(world->path), "%s/granary-sim-XXXXXX", parent);
	ASSERT(mkdtemp(world->path));
	disk_counts = (struct disk_counts){0};
	disk_begin(seed, trace);
	machine_begin(seed, BEGIN_MS * 1000, 3 + (unsigned)pick(world, 40));
	world->wall_most_ms = now_ms();
}

static int remove_one(const char *path, UNUSED const struct stat *st, UNUSED int type,
		      UNUSED struct FTW *ftw)
{
	return remove(path);
}

static void end(struct world *world)
{
	machine_end();
	disk_end();
	doors_release(world);
	for (size_t i = 0; i < ROWS; i++)
		model_row_release(&world->rows[i]);
	for (size_t i = 0; i < CELLS; i++)
		register_release(&world->cells[i]);
	for (size_t i = 0; i < LEASES; i++)
		register_release(&world->leases[i].reg);
	arena_release(&world->batches);
	nftw(world->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The last life is closed without looking at what it says. */
static void give_up(struct world *world)
{
	if (!world->store)
		return;
	if (!disk_dead())
		disk_die(DISK_KILL);
	world->ghost = true;
	take_down(world);
}

bool world_run(struct world *world, uint64_t seed, size_t steps, bool trace)
{
	begin(world, seed, trace);
	world->was_full = world->map_bytes < 2 << 20;
	bool good = open_life(world) && direct_open_series(world);
	for (; good && world->step < steps; world->step++) {
		world->tick++;
		good = do_step(world);
		say(world, "= %llu writes %llu syncs, %lld us",
		    (unsigned long long)disk_counts.writes, (unsigned long long)disk_counts.syncs,
		    (long long)machine_wall_us());
	}
	if (good && (disk_dead() || world->dead))
		good = crash(world, DISK_POWER);
	good = good && restart(world) && direct_read_all(world, false);
	give_up(world);
	end(world);
	return !world->failed;
}
