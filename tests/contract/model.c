#include "model.h"

#include "naive.h"
#include "tools/long_run.h"

/* ---- The world ----------------------------------------------------------------------------- */

const struct model_group model_groups[MODEL_GROUPS] = {
	{"t", "host=a", 0, 1},  {"t", "host=b", 1, 3}, {"t", "dc=x,host=c", 4, 10},
	{"u", "host=a", 14, 5}, {"t", "", 19, 3},      {"u", "a\\,b=c\\=d,z=1", 22, 8},
};

const struct store_target model_places[MODEL_PLACES] = {
	{TABLE_DATA_RAW, 0, 0},
	{TABLE_BASE_RATES, 0, 30000},
	{TABLE_RAW_DATA, 0, 30000},
	{TABLE_RAW_DATA, 0, 60000},
	{TABLE_RATE_AGGREGATIONS, 0, 3600000},
	{TABLE_STAT_AGGREGATIONS, 0, 86400000},
	{TABLE_DATA_DOWNSAMPLED, 0, 60000},
	{TABLE_DATA_DOWNSAMPLED, 0, 86400000},
	{TABLE_DATA_LATE, 0, 0},
};

const enum table model_stamped[3] = {TABLE_DEVICES, TABLE_CHUKWA, TABLE_REPORT_ARRIVALS};

size_t model_pick_place(struct model *model)
{
	return chance(model, 60) ? pick(model, 2) : pick(model, MODEL_PLACES);
}

size_t model_group_of(size_t series)
{
	size_t g = 0;
	while (series >= model_groups[g].first + model_groups[g].count)
		g++;
	return g;
}

/* Some names stand in several groups. */
const char *model_metric(size_t series)
{
	static const char *const names[] = {"cpu_user", "cpu_system", "mem", "disk", "net",
					    "cpu_idle", "cpu_nice",   "a",   "b",    "c"};
	return names[series - model_groups[model_group_of(series)].first];
}

int64_t model_pick_ts(struct model *model, size_t place)
{
	int64_t now_ms = clock_wall_ms(&model->clock.clock);
	int64_t width = schema_segment_ms(model_places[place].table, model_places[place].period_ms);
	int64_t near = (int64_t)pick(model, 3) - 1;
	switch (pick(model, 20)) {
	case 0:
		return floor_to(now_ms, width) - (int64_t)pick(model, 3) * width + near;
	case 1:
		return now_ms - retention_class_ms((enum retention_class)pick(model, 4)) + near;
	case 2:
		return now_ms - (int64_t)pick(model, 40 * (uint64_t)DAY_MS);
	case 3:
		return now_ms - (int64_t)pick(model, 800) * DAY_MS;
	case 4:
		if (chance(model, 20))
			return chance(model, 50) ? STORE_TS_MIN + (int64_t)pick(model, 2)
						 : STORE_TS_MAX - (int64_t)pick(model, 2);
		return (int64_t)pick(model, 2000) - 1000;
	case 5:
		return now_ms + (int64_t)pick(model, DAY_MS);
	default:
		/* On a grid, so that many are written twice. */
		return floor_to(now_ms, 60000) - (int64_t)pick(model, 200) * 10000;
	}
}

/* Texts are UTF-8, bytes are not. Both are in the same order. */
struct store_parts model_key(enum table table, size_t index)
{
	static const struct slice bytes[MODEL_KEYS] = {
		{"a", 1}, {"a\0b", 3}, {"\xff\xff", 2}, {"a longer key than the others", 28}};
	static const struct slice texts[MODEL_KEYS] = {{"a", 1},
						       {"a\0b", 3},
						       {"\xf4\x8f\xbf\xbf\xc3\xbf", 6},
						       {"a longer key than the others", 28}};
	static const char numbers[MODEL_KEYS][8] = {{0}, {0, 1}, {0, 0, 0, 0, 0, 0, 0, 9}, {-1}};
	struct store_parts key = {0};
	for (size_t p = 0; p < schema[table].key_count; p++) {
		enum part_type type = schema[table].key[p].type;
		key.part[p] = type == PART_U64    ? (struct slice){numbers[index], 8}
			      : type == PART_TEXT ? texts[index]
						  : bytes[index];
	}
	return key;
}

struct store_parts model_column(enum table table, size_t index)
{
	static const struct slice bytes[MODEL_COLUMNS] = {{"", 0},  {"\0", 1},  {"\0\xff", 2},
							  {"a", 1}, {"a\0", 2}, {"ab", 2},
							  {"b", 1}, {"\xff", 1}};
	static const struct slice texts[MODEL_COLUMNS] = {
		{"", 0},   {"\0", 1}, {"\0\xef\xbf\xbf", 4},  {"a", 1}, {"a\0", 2},
		{"ab", 2}, {"b", 1},  {"\xf4\x8f\xbf\xbf", 4}};
	static const char numbers[MODEL_COLUMNS][8] = {{0},
						       {0, 0, 0, 0, 0, 0, 0, 1},
						       {0, 0, 0, 0, 0, 0, 0, 2},
						       {0, 0, 0, 0, 0, 0, 1},
						       {0, 1},
						       {1},
						       {127, -1},
						       {-1, -1, -1, -1, -1, -1, -1, -1}};
	struct store_parts column = {0};
	for (size_t p = 0; p < schema[table].column_count; p++) {
		size_t which = p ? index * 5 % MODEL_COLUMNS : index;
		enum part_type type = schema[table].column[p].type;
		column.part[p] = type == PART_U64    ? (struct slice){numbers[which], 8}
				 : type == PART_TEXT ? texts[which]
						     : bytes[which];
	}
	return column;
}

/* ---- Steps --------------------------------------------------------------------------------- */

bool model_differ(struct model *model, const char *fmt, ...)
{
	va_list args;
	if (model->failure[0])
		return false;
	va_start(args, fmt);
	vsnprintf(model->failure, sizeof(model->failure), fmt, args);
	va_end(args);
	return false;
}

void model_trace(struct model *model, const char *fmt, ...)
{
	va_list args;
	if (!model->trace)
		return;
	printf("  %5zu  ", model->step);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

static bool settle(struct model *model)
{
	model_trace(model, "settle");
	model->engine->settle(model->engine->context, model->subject.store);
	return true;
}

/* The naive engine is not settled: what has expired is kept there, so that it is known which series
 * have nothing and which have only expired data. */
static bool reopen(struct model *model)
{
	model_trace(model, "reopen");
	model->subject.store = model->engine->reopen(model->engine->context, model->subject.store,
						     &model->clock.clock);
	naive_reopen(model->reference.store);
	return model_reopened(model);
}

static bool pass_time(struct model *model)
{
	int64_t by_ms;
	unsigned kind = (unsigned)pick(model, 20);
	if (kind < 12)
		by_ms = (int64_t)pick(model, 60000);
	else if (kind < 17)
		by_ms = (int64_t)pick(model, 5 * HOUR_MS);
	else
		by_ms = (int64_t)pick(model, kind < 19 ? 4 : 40) * DAY_MS;
	model_trace(model, "%lld ms pass", (long long)by_ms);
	clock_virtual_advance(&model->clock, by_ms * 1000);
	return true;
}

static bool open_group(struct model *model)
{
	bool find_only = chance(model, 30);
	size_t group = pick(model, MODEL_GROUPS);
	return model_open_group(model, group, find_only);
}

static bool run_step(struct model *model)
{
	unsigned kind = (unsigned)pick(model, 200);
	if (kind < 95)
		return model_write_step(model);
	if (kind < 170)
		return model_read_step(model);
	if (kind < 182)
		return open_group(model);
	if (kind < 192)
		return pass_time(model);
	if (kind < 195)
		return settle(model);
	if (kind < 198)
		return reopen(model);
	return model_verify(model);
}

/* ---- Runs ---------------------------------------------------------------------------------- */

static void begin(struct model *model, const struct contract_engine *engine, uint64_t seed)
{
	*model = (struct model){.engine = engine, .seed = seed};
	random_init(&model->random, seed);
	clock_virtual_init(&model->clock, (T0 + (int64_t)pick(model, 400) * DAY_MS) * 1000);
	arena_init(&model->arena, 1 << 30);
	model->subject.name = engine->name;
	model->reference.name = "naive";
	task_queue_init(&model->subject.queue);
	task_queue_init(&model->reference.queue);
	model->subject.store = engine->open(engine->context, &model->clock.clock);
	model->reference.store = naive_open(&model->clock.clock);
	for (size_t p = 0; p < MODEL_PLACES; p++) {
		for (size_t parity = 0; parity < 2; parity++)
			model->retention[parity][p] =
				(enum retention_class)pick(model, RETENTION_CLASSES);
	}
}

static void end(struct model *model)
{
	model->engine->close(model->engine->context, model->subject.store);
	store_close(model->reference.store);
	task_queue_release(&model->subject.queue);
	task_queue_release(&model->reference.queue);
	arena_release(&model->arena);
}

bool model_run(const struct contract_engine *engine, uint64_t seed, size_t steps,
	       const bool *skipped, bool quiet, bool trace, size_t *failed_step)
{
	struct model *model = mem_alloc(sizeof(*model));
	begin(model, engine, seed);
	model->trace = trace;
	bool equal = true;
	for (model->step = 0; equal && model->step < steps; model->step++) {
		if (skipped && skipped[model->step])
			continue;
		random_init(&model->random, seed * 1000003 + model->step);
		equal = run_step(model);
		arena_reset(&model->arena);
	}
	if (!equal && failed_step)
		*failed_step = model->step - 1;
	if (!equal && !quiet)
		printf("DIFFERENCE: %s, seed %llu, step %zu: %s\n", engine->name,
		       (unsigned long long)seed, model->step - 1, model->failure);
	end(model);
	mem_free(model);
	return equal;
}

/* Leaves out ever smaller runs of steps while the last one still differs. */
static void shrink(const struct contract_engine *engine, uint64_t seed, size_t failed_step)
{
	size_t steps = failed_step + 1, left = steps;
	bool *skipped = mem_zalloc(steps * sizeof(*skipped));
	bool *attempt = mem_alloc(steps * sizeof(*attempt));
	for (size_t piece = steps / 2; piece; piece /= 2) {
		for (size_t at = 0; at < failed_step; at += piece) {
			size_t end_at = at + piece < failed_step ? at + piece : failed_step;
			memcpy(attempt, skipped, steps * sizeof(*attempt));
			memset(attempt + at, true, end_at - at);
			if (memcmp(attempt, skipped, steps * sizeof(*attempt)) != 0 &&
			    !model_run(engine, seed, steps, attempt, true, false, NULL))
				memcpy(skipped, attempt, steps * sizeof(*attempt));
		}
	}
	for (size_t i = 0; i < steps; i++)
		left -= skipped[i];
	printf("%zu of %zu steps are enough:\n", left, steps);
	model_run(engine, seed, steps, skipped, false, true, NULL);
	mem_free(skipped);
	mem_free(attempt);
}

struct arguments {
	uint64_t first_seed, last_seed;
	size_t steps;
	bool trace, shrink;
};

static bool parse(int argc, char **argv, struct arguments *a)
{
	for (int i = 1; i < argc; i++) {
		unsigned long long first, last;
		if (strcmp(argv[i], "--trace") == 0) {
			a->trace = true;
		} else if (strcmp(argv[i], "--shrink") == 0) {
			a->shrink = true;
		} else if (strcmp(argv[i], "--long") == 0) {
			a->last_seed = a->first_seed + 1999;
		} else if (i + 1 < argc && strcmp(argv[i], "--steps") == 0) {
			a->steps = strtoul(argv[++i], NULL, 10);
		} else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0 &&
			   sscanf(argv[i + 1], "%llu..%llu", &first, &last) >= 1) {
			a->first_seed = first;
			a->last_seed = strstr(argv[++i], "..") ? last : first;
		} else {
			fprintf(stderr,
				"usage: %s [--seeds A..B] [--steps N] [--long] [--trace] "
				"[--shrink]\n",
				argv[0]);
			return false;
		}
	}
	return true;
}

int model_main(const struct contract_engine *engine, int argc, char **argv)
{
	struct arguments a = {.first_seed = 1, .last_seed = 6, .steps = 600};
	if (long_run())
		a.last_seed = 2000;
	if (!parse(argc, argv, &a))
		return 2;
	printf("model: %s, seeds %llu..%llu, %zu steps each\n", engine->name,
	       (unsigned long long)a.first_seed, (unsigned long long)a.last_seed, a.steps);
	for (uint64_t seed = a.first_seed; seed <= a.last_seed; seed++) {
		size_t failed_step;
		fflush(stdout);
		if (model_run(engine, seed, a.steps, NULL, false, a.trace, &failed_step))
			continue;
		printf("again: %s --seeds %llu --steps %zu --trace (or --shrink)\n", argv[0],
		       (unsigned long long)seed, failed_step + 1);
		if (a.shrink)
			shrink(engine, seed, failed_step);
		return 1;
	}
	printf("model: no difference\n");
	return 0;
}
