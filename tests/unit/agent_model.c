/* Property test of the agent: a log whose every line says which one it is, written, renamed, copied
 * and emptied, packed, removed, while an agent follows it; clock, files, network and collectors are
 * simulated. A seed decides who does what next, between any two operations of the agent on files
 * and in the middle of its requests; what fails; when the agent dies and is started again.
 *
 * In the end each line is with the collectors once, in the order in which it was written; but for
 * lines of a file that was emptied or removed with no copy left, which may be missing.
 *
 * GRANARY_SEED repeats a seed, and tells what happens. */
#include "agent_model.h"

#include <inttypes.h>

#include "agent/agent_private.h"
#include "base/log.h"
#include "tools/long_run.h"

enum {
	STEPS = 600,
	CALM_TURNS = 4000,
#ifdef __SANITIZE_ADDRESS__
	SEEDS = 40,
	SEEDS_LONG = 2500,
#else
	SEEDS = 300,
	SEEDS_LONG = 100000,
#endif
};

/* ---- The agent ------------------------------------------------------------------------------- */

static struct adaptors *make_adaptors(void)
{
	struct adaptors *adaptors = mem_zalloc(sizeof(*adaptors));
	arena_init(&adaptors->arena, 1 << 20);
	adaptors->list = arena_zalloc(&adaptors->arena, sizeof(*adaptors->list));
	ASSERT(adaptors->list);
	adaptors->count = 1;
	*adaptors->list = (struct adaptor){
		.kind = ADAPTOR_TAIL,
		.name = SLICE("app"),
		.datatype = SLICE("app"),
		.path = SLICE(LOG),
		.rule = {.records.kind = RECORDS_LINES, .rest_ms = 1000},
	};
	return adaptors;
}

static void agent_begin(struct world *w)
{
	static const char *const collectors[] = {"one", "two"};
	struct errbuf e = {""};
	struct adaptors *adaptors = make_adaptors();
	w->files.down = w->killed = false;
	w->agent = agent_new(&(struct agent_options){
		.files = &w->files.files,
		.clock = &w->clock.clock,
		.net = &w->net,
		.directory = STATE,
		.source = SLICE("host1"),
		.cluster = SLICE("demo"),
		.collectors = collectors,
		.collector_count = w->kinds.cuts ? 2 : 1,
		.open_max = 20,
		.level = 1,
		.seed = random_next(&w->random),
	});
	if (agent_start(w->agent, &e))
		fail(w, "it does not start: %s", e.text);
	agent_configure(w->agent, &adaptors);
	tell(w, "an agent begins");
}

static void agent_die(struct world *w)
{
	w->files.down = true;
	agent_free(w->agent);
	w->agent = NULL;
	w->kills++;
	tell(w, "the agent is gone");
	if (w->files.open_count)
		fail(w, "%zu files stay open", w->files.open_count);
}

/* Once a checkpoint is gone the last bytes that a collector has may be in no file, or in several:
 * then lines come again, and what was renamed before does not. */
static void harm_checkpoints(struct world *w)
{
	if (w->kinds.forgets && chance(w, 30)) {
		sim_unlink(&w->files, STATE "/checkpoint.0");
		sim_unlink(&w->files, STATE "/checkpoint.1");
		w->ambiguous = true;
		w->forgotten = true;
		tell(w, "the checkpoints are gone");
	}
	struct sim_file *file =
		sim_find(&w->files, chance(w, 50) ? STATE "/checkpoint.0" : STATE "/checkpoint.1");
	if (w->kinds.damages && file && file->bytes.len && chance(w, 30)) {
		file->bytes.data[pick(w, file->bytes.len)] ^= 1;
		w->ambiguous = w->forgotten = true; /* perhaps none is left */
		tell(w, "%s is damaged", file->name);
	}
}

/* An agent may be killed before its first checkpoint that names the log could be written. The next
 * agent begins the log anew: files that were renamed by then are none of its stream, since nothing
 * on the disk or with a collector says that somebody had followed them. The one that it has found
 * at the path is demanded; its first line may have begun in one of those. */
static void excuse_what_came_before(struct world *w, const struct followed *log)
{
	const struct sim_file *file = model_log_file(w);
	memset(w->excused, 1, w->lines);
	w->begun_anew += w->rotations > 0;
	for (size_t i = 0; i < log->plan_count && file; i++)
		if (file_id_equal(&file->id, &log->plan[i].id))
			model_set_excused(w, file, false);
}

static void turn(struct world *w)
{
	const struct followed *log = w->agent->list[0];
	bool knew = log->begun;
	int64_t wait_ms = agent_turn(w->agent);
	if (!knew && log->begun)
		excuse_what_came_before(w, log);
	model_tell_plan(w);
	w->turns++;
	if (w->killed) {
		agent_die(w);
		return;
	}
	clock_virtual_advance(&w->clock, smaller_of(wait_ms, 1 + (int64_t)pick(w, 3000)) * 1000);
}

static void step(struct world *w)
{
	unsigned what = (unsigned)pick(w, 100);
	w->busy = true;
	if (what < 20)
		model_act(w);
	if (what == 20 && w->kinds.fulls)
		w->files.full = !w->files.full;
	if (what == 21 && model_log_file(w))
		model_log_file(w)->unreadable = chance(w, 30);
	if (what == 22 && w->kinds.cuts) {
		w->cut_percent = chance(w, 30) ? (unsigned)pick(w, 100) : 5;
		w->odd_percent = (unsigned)pick(w, 10);
		w->later_percent = chance(w, 30) ? (unsigned)pick(w, 60) : 0;
	}
	if (what == 23 && w->kinds.clock_jumps)
		w->clock.wall_us += ((int64_t)pick(w, 3) - 1) * INT64_C(31536000000000);
	if (what == 24)
		clock_virtual_advance(&w->clock, (int64_t)pick(w, 90) * 1000000);
	w->busy = false;
	if (!w->agent) {
		if (chance(w, 20)) {
			harm_checkpoints(w);
			agent_begin(w);
		}
		return;
	}
	if (what < 40)
		agent_notice(w->agent, DIRECTORY, chance(w, 20) ? NULL : "app.log");
	if (what == 41 && w->kinds.kills) {
		struct errbuf e;
		if (chance(w, 50))
			(void)!agent_save(w->agent, &e);
		agent_die(w);
		return;
	}
	turn(w);
}

/* Everybody is well, and nobody writes. */
static void come_to_rest(struct world *w)
{
	w->busy = true;
	model_writer_finish_half(w);
	while (w->copy)
		model_copy_step(w);
	while (w->packing[0])
		model_pack_step(w);
	/* Lines that came late to a renamed file are found when the log is renamed again. */
	if (w->kinds.late && !w->kinds.copies) {
		w->rotations = smaller_of((int64_t)w->rotations, ROTATIONS_MAX - 1);
		model_rotate(w);
		model_writer_reopen(w);
		model_writer_write(w, 0);
		model_writer_finish_half(w);
	}
	w->busy = false;
	w->calm = true;
	w->files.full = false;
	w->cut_percent = w->odd_percent = w->later_percent = 0;
	for (size_t i = 0; i < SIM_FILES_MAX; i++)
		w->files.list[i].unreadable = false;
	if (!w->agent)
		agent_begin(w);
	int64_t quiet_us = w->clock.mono_us;
	for (size_t i = 0, posts = w->posts; i < CALM_TURNS; i++) {
		turn(w);
		if (posts != w->posts)
			quiet_us = w->clock.mono_us;
		posts = w->posts;
		if (w->clock.mono_us - quiet_us > INT64_C(200000000))
			return;
	}
	fail(w, "it does not come to rest");
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static void world_open(struct world *w, uint64_t seed)
{
	random_init(&w->random, seed);
	clock_virtual_init(&w->clock, INT64_C(1700000000000000));
	sim_files_init(&w->files, &w->clock.clock);
	w->files.meanwhile = model_meanwhile;
	w->files.owner = w;
	w->files.has_births = chance(w, 50);
	w->files.tick_ns = chance(w, 50) ? 4000000 : 1000;
	w->net.call = model_net_call;
	w->kinds = (struct kinds){
		.copies = chance(w, 30),
		.empties = chance(w, 30),
		.packs = chance(w, 40),
		.dates = chance(w, 30),
		.heads = chance(w, 30),
		.late = chance(w, 15),
		.kills = chance(w, 70),
		.cuts = chance(w, 60),
		.forgets = chance(w, 7),
		.damages = chance(w, 7),
		.fulls = chance(w, 30),
		.clock_jumps = chance(w, 10),
		.keep = chance(w, 30) ? 2 + (unsigned)pick(w, 4) : ROTATED_MAX,
	};
	if (w->kinds.copies)
		w->kinds.late = false;
	/* Nobody packs what is still written to. */
	if (w->kinds.late)
		w->kinds.packs = false;
	/* Without times of birth files that begin alike cannot always be told from copies. */
	w->kinds.heads &= !w->kinds.clock_jumps;
	w->files.has_births = !w->kinds.clock_jumps && (w->files.has_births || w->kinds.heads);
	const struct kinds *k = &w->kinds;
	tell(w, "%s%s%s%s%s%s%s%s%s%s%s%s", k->copies ? "copies " : "",
	     k->empties ? "empties " : "", k->packs ? "packs " : "", k->dates ? "dates " : "",
	     k->heads ? "heads " : "", k->late ? "late " : "", k->kills ? "kills " : "",
	     k->cuts ? "cuts " : "", k->forgets ? "forgets " : "", k->damages ? "damages " : "",
	     k->clock_jumps ? "jumps " : "", w->files.has_births ? "births" : "");
	model_writer_open(w, 0);
	w->calm = true;
	agent_begin(w);
	turn(w);
	turn(w);
	w->calm = false;
	w->cut_percent = w->kinds.cuts ? 5 : 0;
}

static void world_close(struct world *w)
{
	agent_free(w->agent);
	model_writer_let_go(w, 0);
	model_writer_let_go(w, 1);
	for (size_t i = 0; i < COLLECTORS; i++)
		for (size_t j = 0; j < w->collectors[i].count; j++) {
			buf_release(&w->collectors[i].list[j].bytes);
			buf_release(&w->collectors[i].list[j].have);
		}
	sim_files_release(&w->files);
}

static bool run_seed(uint64_t seed, bool tells, struct world *w)
{
	*w = (struct world){.trace = tells};
	world_open(w, seed);
	for (w->step = 0; w->step < STEPS && !w->failure[0]; w->step++)
		step(w);
	if (!w->failure[0])
		come_to_rest(w);
	if (!w->failure[0])
		model_check_all(w);
	world_close(w);
	if (w->failure[0])
		printf("GRANARY_SEED=%" PRIu64 ", step %zu: %s\n", seed, w->step, w->failure);
	return !w->failure[0];
}

/* Faults that were mended, and that the first seeds do not find: a copy was finished while the
 * first line of its log was on its way. */
static const uint64_t rare_seeds[] = {9612};

static size_t run_rare_seeds(struct world *w)
{
	size_t wrong = 0;
	for (size_t i = 0; i < ARRAY_LEN(rare_seeds); i++)
		wrong += !run_seed(rare_seeds[i], false, w);
	return wrong;
}

int main(int argc, char **argv)
{
	unsigned long long first = 1, last = long_run() ? SEEDS_LONG : SEEDS, wrong = 0;
	size_t lines = 0, excused = 0, rotations = 0, kills = 0, turns = 0;
	const char *seed = getenv("GRANARY_SEED");
	static struct world world;
	log_set_level(seed ? LOG_DEBUG : LOG_ERROR);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (seed)
		first = last = strtoull(seed, NULL, 10);
	if (argc == 3 && strcmp(argv[1], "--seeds") == 0 &&
	    sscanf(argv[2], "%llu..%llu", &first, &last) == 1)
		last = first;
	if (first == 1)
		wrong = run_rare_seeds(&world);
	for (unsigned long long at = first; at <= last && wrong < 5; at++) {
		wrong += !run_seed(at, seed != NULL, &world);
		lines += world.lines;
		rotations += world.rotations;
		kills += world.kills;
		turns += world.turns;
		for (size_t i = 0; i < world.lines; i++)
			excused += world.excused[i] && !world.seen[i];
	}
	printf("agent: seeds %llu..%llu, %zu lines (%zu were destroyed before they were sent), %zu "
	       "rotations, %zu kills, %zu turns: %llu seeds are wrong\n",
	       first, last, lines, excused, rotations, kills, turns, wrong);
	return wrong != 0;
}
