/* What the owner of streams does with what has expired, or was deleted, and what the collector
 * knows of it then. The owner's job takes a turn when a test says so. */
#include "contract/engines.h"

#include "loop/job.h"
#include "stream/retain.h"
#include "stream/streams.h"

static struct contract_engine engine;

/* ---- The job --------------------------------------------------------------------------------- */

struct job {
	struct task_queue *queue;
	void (*run)(struct job *job, void *owner);
	void (*done)(void *owner);
	void *owner;
};

static struct job job; /* there is one at a time */

int job_start(UNUSED const char *name, void (*run)(struct job *job, void *owner),
	      void (*done)(void *owner), void *owner, UNUSED struct executor *executor,
	      struct job **started)
{
	job.run = run;
	job.done = done;
	job.owner = owner;
	*started = &job;
	return 0;
}

void job_free(UNUSED struct job *of)
{
}

void job_stop(struct job *of)
{
	of->done(of->owner);
}

void jobs_run_all(UNUSED const char *name,
		  UNUSED void (*run)(struct task_queue *queue, void *owner),
		  UNUSED void *const *owners, UNUSED size_t count)
{
	ASSERT(false); /* the job has no parts */
}

bool job_is_stopping(UNUSED const struct job *of)
{
	return false;
}

struct task_queue *job_queue(struct job *of)
{
	return of->queue;
}

int job_sleep(UNUSED struct job *of, UNUSED int64_t ms)
{
	return ERR_CANCELLED; /* the turn is over */
}

void job_call(UNUSED struct job *of, UNUSED struct executor *executor, void (*fn)(void *argument),
	      void *argument)
{
	fn(argument);
}

/* ---- A server's streams ---------------------------------------------------------------------- */

struct owner {
	struct rig rig;
	struct lease_session *session;
	struct keep_rules keep;
	struct streams *streams;
};

static void owner_open(struct owner *owner, uint64_t streams_max, int64_t keep_ms)
{
	rig_open(&owner->rig, &engine);
	job.queue = &owner->rig.queue;
	owner->keep = (struct keep_rules){.preset_ms = keep_ms};
	owner->session =
		lease_session_new(&(struct lease_session_options){.store = owner->rig.store,
								  .clock = &owner->rig.clock.clock,
								  .holder = SLICE("p-1"),
								  .name = SLICE("p"),
								  .lease_ms = 30 * SECOND_MS});
	const struct streams_options options = {.store = owner->rig.store,
						.clock = &owner->rig.clock.clock,
						.executor = &owner->rig.queue.executor,
						.session = owner->session,
						.limits = {.streams_max = streams_max,
							   .new_a_minute = 1000000,
							   .tail_max_bytes = UINT64_MAX,
							   .holes_max = 10},
						.level = 1,
						.every_ms = SECOND_MS,
						.seal_after_ms = 10 * SECOND_MS,
						.write_max_ms = SECOND_MS,
						.keep = &owner->keep,
						.retain_every_ms = SECOND_MS,
						.seed = 1};
	owner->streams = streams_open(&options);
	streams_start(owner->streams);
}

static void owner_close(struct owner *owner)
{
	streams_stop(owner->streams);
	streams_close(owner->streams);
	lease_session_free(owner->session);
	rig_close(&owner->rig);
}

/* So much later the owner has a turn. */
static void turn(struct owner *owner, int64_t later_ms)
{
	rig_advance_ms(&owner->rig, later_ms);
	job.run(&job, job.owner);
}

static struct stream_id id_of(uint64_t incarnation)
{
	return (struct stream_id){
		SLICE("t"), {SLICE("h"), SLICE("c"), SLICE("d"), SLICE("/a")}, incarnation};
}

static void on_done(struct stream_submission *submission)
{
	*(bool *)submission->owner = true;
}

/* A chunk of so many bytes. */
static enum stream_outcome put_bytes(struct owner *owner, uint64_t incarnation, uint64_t begin,
				     size_t len)
{
	char *text = mem_alloc(len);
	struct stream_chunk chunk = {.id = id_of(incarnation)};
	const struct chunk_fields fields = {.tenant = chunk.id.tenant,
					    .names = chunk.id.names,
					    .incarnation = incarnation,
					    .sequence_id = begin + len,
					    .lines = true};
	const struct chunk_data data = {.data = {text, len}};
	struct buf bytes;
	const char *why;
	bool done = false;
	memset(text, 'x', len);
	text[len - 1] = '\n';
	buf_init(&bytes, 4096 + len);
	assert_int_equal(chunk_frame_put(&fields, &data, 1, &bytes), 0);
	struct slice rest = buf_slice(&bytes);
	assert_int_equal(chunk_frame_next(&rest, &chunk.frame, &why), CHUNK_FOUND);
	struct stream_submission submission = {
		.chunks = &chunk, .count = 1, .done = on_done, .owner = &done};
	assert_int_equal(collector_submit(streams_collector(owner->streams), &submission), 0);
	while (!done)
		task_queue_wait(&owner->rig.queue);
	buf_release(&bytes);
	mem_free(text);
	return chunk.outcome;
}

static enum stream_outcome put(struct owner *owner, uint64_t incarnation, uint64_t begin)
{
	return put_bytes(owner, incarnation, begin, 100);
}

static void delete (struct owner *owner, uint64_t incarnation)
{
	const struct stream_id id = id_of(incarnation);
	struct errbuf e = {""};
	uint64_t bytes;
	assert_int_equal(stream_delete(streams_site(owner->streams), &owner->rig.queue, &id, false,
				       &bytes, &e),
			 0);
	streams_note_deleted(owner->streams, &id);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void a_stream_that_is_forgotten_gives_its_place_to_another(void **state)
{
	(void)state;
	static struct owner owner;
	owner_open(&owner, 2, 0);
	assert_int_equal(put(&owner, 1, 0), STREAM_TAKEN);
	assert_int_equal(put(&owner, 2, 0), STREAM_TAKEN);
	assert_int_equal(put(&owner, 3, 0), STREAM_MANY);
	delete (&owner, 1);
	turn(&owner, SECOND_MS); /* it is empty from now on */
	turn(&owner, SECOND_MS); /* its chunk goes */
	turn(&owner, DAY_MS - 3 * SECOND_MS);
	assert_int_equal(put(&owner, 1, 0), STREAM_HELD);
	assert_int_equal(put(&owner, 3, 0), STREAM_MANY);
	turn(&owner, 3 * SECOND_MS);
	/* They are counted once a minute. */
	rig_advance_ms(&owner.rig, 57 * SECOND_MS - 1);
	assert_int_equal(put(&owner, 3, 0), STREAM_MANY);
	rig_advance_ms(&owner.rig, 1);
	assert_int_equal(put(&owner, 3, 0), STREAM_TAKEN);
	/* Nothing is known of the first one any more: it is new. */
	assert_int_equal(put(&owner, 1, 0), STREAM_MANY);
	assert_int_equal(put(&owner, 1, 100), STREAM_MANY);
	assert_int_equal(put(&owner, 2, 0), STREAM_HELD);
	rig_advance_ms(&owner.rig, 60 * SECOND_MS);
	assert_int_equal(put(&owner, 4, 0), STREAM_MANY);
	owner_close(&owner);
}

static void expect_held(struct owner *owner, uint64_t kept_from, uint64_t begin, uint64_t end)
{
	const struct stream_id id = id_of(1);
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	assert_int_equal(stream_known_read(&known, streams_site(owner->streams), &owner->rig.queue,
					   &id, 0, &e),
			 0);
	assert_int_equal(known.kept_from, kept_from);
	assert_int_equal(known.held.count, begin < end);
	if (begin < end) {
		assert_int_equal(known.held.list[0].begin, begin);
		assert_int_equal(known.held.list[0].end, end);
	}
	stream_known_release(&known);
}

/* Kept for 25 s. What fills the hole is put into a block 10 s after it has come. */
static void what_fills_a_hole_between_old_blocks_is_kept(void **state)
{
	(void)state;
	static struct owner owner;
	owner_open(&owner, 10, 25 * SECOND_MS);
	assert_int_equal(put(&owner, 1, 0), STREAM_TAKEN);
	assert_int_equal(put(&owner, 1, 200), STREAM_TAKEN);
	turn(&owner, SECOND_MS);
	turn(&owner, 11 * SECOND_MS); /* both are in blocks */
	turn(&owner, 10 * SECOND_MS);
	assert_int_equal(put(&owner, 1, 100), STREAM_TAKEN); /* at 22 s */
	turn(&owner, 4 * SECOND_MS);                         /* at 26 s */
	expect_held(&owner, 100, 100, 300);
	turn(&owner, 11 * SECOND_MS); /* at 37 s it is in a block */
	expect_held(&owner, 100, 100, 300);
	turn(&owner, 10 * SECOND_MS); /* at 47 s: 25 s after it came it is not yet old */
	expect_held(&owner, 100, 100, 300);
	turn(&owner, SECOND_MS);
	expect_held(&owner, 300, 0, 0);
	owner_close(&owner);
}

static void retain_elsewhere(struct owner *owner)
{
	const struct stream_retain_rules rules = {rig_now_ms(&owner->rig) - SECOND_MS, INT64_MAX,
						  SECOND_MS};
	const struct stream_id id = id_of(1);
	struct stream_retained retained;
	struct errbuf e = {""};
	assert_int_equal(stream_retain(streams_site(owner->streams), &owner->rig.queue, &id, &rules,
				       &retained, &e),
			 0);
}

/* The owner is another process, and the collector does not hear of it. */
static void a_stream_that_another_process_has_forgotten_is_made_again(void **state)
{
	(void)state;
	static struct owner owner;
	owner_open(&owner, 10, 0);
	assert_int_equal(put(&owner, 1, 0), STREAM_TAKEN);
	turn(&owner, SECOND_MS);
	turn(&owner, 11 * SECOND_MS); /* it is in a block */
	retain_elsewhere(&owner);
	retain_elsewhere(&owner);
	rig_advance_ms(&owner.rig, DAY_MS);
	retain_elsewhere(&owner);
	expect_held(&owner, 0, 0, 0);
	assert_int_equal(put(&owner, 1, 100), STREAM_TAKEN);
	expect_held(&owner, 0, 100, 200);
	const struct stream_id id = id_of(1);
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	assert_int_equal(stream_known_read(&known, streams_site(owner.streams), &owner.rig.queue,
					   &id, 0, &e),
			 0);
	assert_true(known.made);
	stream_known_release(&known);
	owner_close(&owner);
}

static uint64_t bytes_in_blocks(struct owner *owner)
{
	const struct stream_id id = id_of(1);
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	uint64_t bytes = 0;
	assert_int_equal(stream_known_read(&known, streams_site(owner->streams), &owner->rig.queue,
					   &id, 0, &e),
			 0);
	for (size_t i = 0; i < known.sealed.count; i++)
		bytes += known.sealed.list[i].end - known.sealed.list[i].begin;
	stream_known_release(&known);
	return bytes;
}

/* A block has 960 KiB. */
static void what_was_too_little_for_a_block_is_sealed_when_there_is_enough(UNUSED void **state)
{
	enum { MOST = 900 << 10, REST = 100 << 10 };
	static struct owner owner;
	owner_open(&owner, 2, INT64_C(1000) * DAY_MS);
	assert_int_equal(put_bytes(&owner, 1, 0, MOST), STREAM_TAKEN);
	turn(&owner, SECOND_MS);
	assert_int_equal(bytes_in_blocks(&owner), 0);
	assert_int_equal(put_bytes(&owner, 1, MOST, REST), STREAM_TAKEN);
	turn(&owner, SECOND_MS);
	assert_int_equal(bytes_in_blocks(&owner), MOST); /* a block ends where a chunk does */
	owner_close(&owner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_too_little_for_a_block_is_sealed_when_there_is_enough),
		cmocka_unit_test(a_stream_that_is_forgotten_gives_its_place_to_another),
		cmocka_unit_test(what_fills_a_hole_between_old_blocks_is_kept),
		cmocka_unit_test(a_stream_that_another_process_has_forgotten_is_made_again),
	};
	engine = engine_lmdb("stream-owner", 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
