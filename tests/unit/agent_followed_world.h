/* The world of a log that is followed: simulated files, programs that write, rename, copy and pack
 * them, an agent whose turns the test makes, and what it has sent. */
#ifndef TESTS_UNIT_AGENT_FOLLOWED_WORLD_H
#define TESTS_UNIT_AGENT_FOLLOWED_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "agent/agent_private.h"
#include "agent_files.h"
#include "base/stats.h"
#include "http/coding.h"

#define LOG "/log/app.log"

enum { LOOKS_TO_REST = 40, LOOK_US = 200000, SENT_MAX_BYTES = 1 << 20 };

struct world {
	struct sim_files sim;
	struct clock_virtual clock;
	struct agent *agent; /* its checkpoints are real, and nobody calls its turns */
	struct followed *followed;
	char *sent; /* by offset; zeros are holes */
	size_t sent_bytes;
	unsigned renamed;
	unsigned steps_left; /* until somebody acts; 0: nobody does */
	void (*act)(struct world *world);
	const struct followed_rule *rule;
};

static const struct followed_rule rule = {.records.kind = RECORDS_LINES, .rest_ms = 1000};

static inline void begin_agent(struct world *world)
{
	static const char *const collectors[] = {"one"};
	struct errbuf e = {""};
	world->agent = agent_new(&(struct agent_options){
		.files = &world->sim.files,
		.clock = &world->clock.clock,
		.directory = "/state",
		.source = SLICE("host1"),
		.cluster = SLICE("demo"),
		.collectors = collectors,
		.collector_count = 1,
		.seed = 1,
	});
	assert_int_equal(agent_start(world->agent, &e), 0);
	if (!world->agent->had_checkpoint) {
		world->agent->had_checkpoint = true; /* nobody is asked */
		assert_int_equal(agent_add(world->agent, world->rule, SLICE("app"), SLICE(LOG),
					   &world->followed),
				 0);
	}
	world->followed = world->agent->list[0];
	world->followed->rule = world->rule;
}

static inline int make_world(void **state)
{
	struct world *world = mem_zalloc(sizeof(*world));
	log_set_level(LOG_ERROR);
	clock_virtual_init(&world->clock, 1795953600000000);
	sim_files_init(&world->sim, &world->clock.clock);
	world->sim.has_births = true;
	world->rule = &rule;
	begin_agent(world);
	world->sent = mem_zalloc(SENT_MAX_BYTES);
	*state = world;
	return 0;
}

static inline int free_world(void **state)
{
	struct world *world = *state;
	agent_free(world->agent);
	assert_int_equal(world->sim.open_count, 0);
	sim_files_release(&world->sim);
	mem_free(world->sent);
	mem_free(world);
	return 0;
}

/* ---- What writers do ------------------------------------------------------------------------- */

static inline void write_log(struct world *world, const char *text)
{
	struct sim_file *file = sim_find(&world->sim, LOG);
	clock_virtual_advance(&world->clock, 1000);
	sim_append(&world->sim, file ? file : sim_make(&world->sim, LOG), text, strlen(text));
}

static inline void empty_log(struct world *world)
{
	clock_virtual_advance(&world->clock, 1000);
	sim_truncate(&world->sim, sim_find(&world->sim, LOG));
}

static inline void copy_log(struct world *world, const char *to)
{
	const struct sim_file *file = sim_find(&world->sim, LOG);
	clock_virtual_advance(&world->clock, 1000);
	sim_append(&world->sim, sim_make(&world->sim, to), file->bytes.data, file->bytes.len);
	empty_log(world);
}

static inline void rename_log(struct world *world, const char *to)
{
	clock_virtual_advance(&world->clock, 1000);
	sim_rename(&world->sim, LOG, to);
}

/* The time of the last change stays, as it does by gzip. */
static inline void pack(struct world *world, const char *name, const char *to)
{
	struct gzip *gzip = gzip_new();
	struct buf packed;
	buf_init(&packed, 1 << 20);
	const struct sim_file *from = sim_find(&world->sim, name);
	struct sim_file *file = sim_make(&world->sim, to);
	assert_int_equal(gzip_write(gzip, buf_slice(&from->bytes), true, &packed), 0);
	sim_append(&world->sim, file, packed.data, packed.len);
	file->changed_ns = from->changed_ns;
	sim_unlink(&world->sim, name);
	gzip_free(gzip);
	buf_release(&packed);
}

/* ---- What the agent does --------------------------------------------------------------------- */

/* The collector does not answer: what is found stays in the plan. */
static inline void look(struct world *world)
{
	clock_virtual_advance(&world->clock, LOOK_US);
	followed_look(world->followed);
	struct errbuf e = {""};
	assert_int_equal(checkpoint_save(world->agent, &e), 0);
}

/* There is another name in the directory whenever it is read, so that nothing is known of it. */
static inline void rename_something(void *owner)
{
	struct world *world = owner;
	char from[64], to[64];
	snprintf(from, sizeof(from), LOG "-2026%05u", world->renamed);
	snprintf(to, sizeof(to), LOG "-2026%05u", ++world->renamed);
	sim_rename(&world->sim, from, to);
}

static inline void look_in_vain(struct world *world)
{
	char name[64];
	world->renamed = 90000;
	sim_make(&world->sim, LOG "-202690000");
	world->sim.owner = world;
	world->sim.meanwhile = rename_something;
	look(world);
	world->sim.meanwhile = NULL;
	snprintf(name, sizeof(name), LOG "-2026%05u", world->renamed);
	sim_unlink(&world->sim, name);
}

/* It is on its way, and will be there. */
static inline bool send_one(struct world *world, struct followed_place *after)
{
	struct followed_chunk chunk;
	int64_t wait_ms;
	if (!followed_read(world->followed, &chunk, &wait_ms))
		return false;
	size_t begin = (size_t)chunk_begin(&chunk.fields), end = (size_t)chunk.after.offset;
	assert_true(end <= SENT_MAX_BYTES);
	for (size_t i = begin; i < end; i++) {
		char byte = chunk.data.data.data[i - begin];
		assert_true(!world->sent[i] || world->sent[i] == byte);
		world->sent[i] = byte;
	}
	world->sent_bytes = end > world->sent_bytes ? end : world->sent_bytes;
	*after = chunk.after;
	return true;
}

static inline bool deliver_one(struct world *world)
{
	struct followed_place after;
	if (!send_one(world, &after))
		return false;
	followed_acknowledge(world->followed, &after);
	return true;
}

static inline void deliver(struct world *world)
{
	while (deliver_one(world))
		;
}

/* What it knows is what the checkpoint said. More may have been sent. */
static inline void restart(struct world *world)
{
	agent_free(world->agent);
	begin_agent(world);
}

/* All that is sent until nothing is left. */
static const char *all_sent(struct world *world)
{
	size_t kept = 0;
	for (int i = 0; i < LOOKS_TO_REST; i++) {
		look(world);
		deliver(world);
	}
	for (size_t i = 0; i < world->sent_bytes; i++)
		if (world->sent[i])
			world->sent[kept++] = world->sent[i];
	world->sent[kept] = 0;
	return world->sent;
}

static inline void assert_sent(struct world *world, const char *expected)
{
	assert_string_equal(all_sent(world), expected);
}

/* ---- Between the steps of a look ------------------------------------------------------------- */

static inline void world_step(void *owner)
{
	struct world *world = owner;
	if (world->steps_left && !--world->steps_left)
		world->act(world);
}

/* From now on somebody acts in front of the agent's operation `step` on files; 1 is the next. */
static inline void act_at(struct world *world, unsigned step, void (*act)(struct world *world))
{
	world->steps_left = step;
	world->act = act;
	world->sim.owner = world;
	world->sim.meanwhile = world_step;
}

/* Nobody acts any more. Whether somebody has: else there were fewer operations. */
static inline bool has_acted(struct world *world)
{
	world->sim.meanwhile = NULL;
	return !world->steps_left;
}

#endif
