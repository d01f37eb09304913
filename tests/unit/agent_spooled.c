/* The spool and the log that follows a stream of it, together, on simulated files: records come,
 * files are renamed and removed, the agent starts again. What is sent is what came, in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/followed.h"
#include "agent/spool.h"
#include "agent_files.h"
#include "base/log.h"
#include "base/random.h"

enum {
	MAX_BYTES = 8 << 20,
	STEPS = 4000,
	RECORD_MAX_BYTES = 200 << 10, /* a file is long when it has 512 KiB */
	LOOK_US = 200000,
};

struct world {
	struct sim_files sim;
	struct clock_virtual clock;
	struct spool *spool;
	struct spool_stream *stream;
	struct followed_site site;
	struct followed *followed;
	struct buf awaited; /* what came and is not sent yet */
	uint64_t sent_bytes;
	size_t removed;
	bool alike; /* all records are */
	struct random random;
};

static const struct followed_rule own_rule = {
	.records.kind = RECORDS_ESCAPED, .rest_ms = 1000, .own = true};

static void open_spool(struct world *world)
{
	struct errbuf e = {""};
	const struct spool_options options = {&world->sim.files, &world->clock.clock, "/spool",
					      MAX_BYTES};
	assert_int_equal(spool_open(&options, &world->spool, &e), 0);
	assert_int_equal(spool_stream(world->spool, SLICE("raw"), SLICE("net"), &world->stream, &e),
			 0);
}

static void begin(struct world *world, bool has_births, uint64_t seed)
{
	const struct stream_names names = {SLICE("host1"), SLICE("demo"), SLICE("raw"),
					   SLICE("net")};
	log_set_level(LOG_ERROR);
	*world = (struct world){.spool = NULL};
	clock_virtual_init(&world->clock, 1795953600000000);
	sim_files_init(&world->sim, &world->clock.clock);
	world->sim.has_births = has_births;
	random_init(&world->random, seed);
	open_spool(world);
	followed_site_init(&world->site, &world->sim.files, &world->clock.clock, 1);
	world->followed = followed_new(&world->site, &own_rule, &names, SLICE("/spool/raw:net"));
	buf_init(&world->awaited, 2 * MAX_BYTES);
}

static void end(struct world *world)
{
	followed_free(world->followed);
	followed_site_release(&world->site);
	spool_close(world->spool);
	assert_int_equal(world->sim.open_count, 0);
	sim_files_release(&world->sim);
	buf_release(&world->awaited);
}

/* Most records are alike, so that files are, too. False: there is no room. */
static bool append(struct world *world, size_t len)
{
	static char text[RECORD_MAX_BYTES];
	memset(text, world->alike || random_below(&world->random, 20) ? 'x' : 'y', len);
	const struct slice record = {text, len};
	clock_virtual_advance(&world->clock, 1000);
	int err = spool_append(world->stream, &record, 1);
	assert_true(!err || err == ERR_FULL);
	if (err)
		return false;
	buf_append(&world->awaited, text, len);
	buf_append_char(&world->awaited, '\n');
	return true;
}

static void look(struct world *world)
{
	clock_virtual_advance(&world->clock, LOOK_US);
	followed_look(world->followed);
	world->site.saved_version = world->site.version;
}

static void deliver(struct world *world, unsigned chunks)
{
	struct followed_chunk chunk;
	int64_t wait_ms;
	while (chunks-- && followed_read(world->followed, &chunk, &wait_ms)) {
		const struct slice data = chunk.data.data;
		assert_true(data.len <= world->awaited.len);
		assert_memory_equal(data.data, world->awaited.data, data.len);
		buf_consume(&world->awaited, data.len);
		followed_acknowledge(world->followed, &chunk.after);
		world->sent_bytes += data.len;
		assert_int_equal(chunk.fields.sequence_id, world->sent_bytes);
	}
	followed_read_again(world->followed);
}

static bool is_delivered(void *owner, const struct file_look *look)
{
	return followed_has_delivered(((struct world *)owner)->followed, look);
}

static void note_removed(void *owner, const struct file_look *look)
{
	struct world *world = owner;
	followed_removed(world->followed, &look->id);
	world->removed++;
}

static void step(struct world *world)
{
	switch (random_below(&world->random, 8)) {
	case 0:
	case 1:
	case 2:
		append(world, random_below(&world->random, RECORD_MAX_BYTES));
		break;
	case 3:
		append(world, 512 << 10 >> 2); /* four of these and their newlines are a file */
		break;
	case 4:
		look(world);
		break;
	case 5:
		look(world);
		deliver(world, (unsigned)random_below(&world->random, 6));
		break;
	case 6: /* as after a checkpoint */
		world->site.saved_version = world->site.version;
		spool_remove_delivered(world->stream, is_delivered, note_removed, world);
		break;
	case 7:
		if (random_below(&world->random, 10))
			break;
		followed_rest(world->followed);
		spool_close(world->spool);
		open_spool(world);
		break;
	}
}

static void run(bool has_births, uint64_t seed)
{
	struct world *world = mem_zalloc(sizeof(*world));
	begin(world, has_births, seed);
	for (int i = 0; i < STEPS; i++)
		step(world);
	for (int i = 0; i < 100; i++) {
		look(world);
		deliver(world, 100);
	}
	assert_int_equal(world->awaited.len, 0);
	assert_int_equal(world->followed->lost_bytes, 0);
	assert_true(world->sent_bytes > 4 * MAX_BYTES && world->removed > 20);
	end(world);
	mem_free(world);
}

static void what_is_sent_is_what_came(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 6; seed++)
		run(seed & 1, seed);
}

/* Of other logs, what rotation has made before they were followed is not sent. */
static void what_was_there_before_is_sent(void **state)
{
	(void)state;
	struct world *world = mem_zalloc(sizeof(*world));
	begin(world, true, 1);
	for (int i = 0; i < 40; i++)
		assert_true(append(world, RECORD_MAX_BYTES));
	assert_non_null(sim_find(&world->sim, "/spool/raw:net.0000000002"));
	for (int i = 0; i < 20; i++) {
		look(world);
		deliver(world, 100);
	}
	assert_int_equal(world->awaited.len, 0);
	end(world);
	mem_free(world);
}

/* Of other logs, what has the bytes of a file that is delivered is its copy. */
static void files_that_are_alike_are_all_sent(void **state)
{
	(void)state;
	struct world *world = mem_zalloc(sizeof(*world));
	begin(world, false, 1);
	world->alike = true;
	for (int i = 0; i < 24; i++) {
		assert_true(append(world, (128 << 10) - 1));
		for (int j = 0; j < 3 && i % 9 == 8; j++) {
			look(world);
			deliver(world, 100);
		}
	}
	for (int i = 0; i < 20; i++) {
		look(world);
		deliver(world, 100);
	}
	assert_int_equal(world->awaited.len, 0);
	assert_int_equal(world->sent_bytes, 24 << 17);
	end(world);
	mem_free(world);
}

/* A stream goes on in its incarnation when its only file was removed, also after a restart. */
static void a_stream_goes_on_behind_files_that_are_gone(void **state)
{
	(void)state;
	struct world *world = mem_zalloc(sizeof(*world));
	begin(world, true, 1);
	uint64_t incarnation = world->followed->incarnation;
	for (int i = 0; i < 3; i++)
		assert_true(append(world, RECORD_MAX_BYTES));
	look(world);
	deliver(world, 100);
	spool_remove_delivered(world->stream, is_delivered, note_removed, world);
	assert_int_equal(world->removed, 1);
	assert_null(sim_find(&world->sim, "/spool/raw:net"));
	assert_int_equal(world->followed->plan_count, 0);
	assert_int_equal(world->site.open_count, 0); /* its room is free */
	look(world);
	followed_rest(world->followed);
	assert_true(append(world, 5));
	look(world);
	deliver(world, 1);
	assert_int_equal(world->awaited.len, 0);
	assert_int_equal(world->followed->lost_bytes, 0);
	assert_true(world->followed->incarnation == incarnation);
	end(world);
	mem_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sent_is_what_came),
		cmocka_unit_test(what_was_there_before_is_sent),
		cmocka_unit_test(files_that_are_alike_are_all_sent),
		cmocka_unit_test(a_stream_goes_on_behind_files_that_are_gone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
