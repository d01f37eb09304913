/* The process is killed at each commit of the store, before it and behind it, while streams are put
 * into blocks, made into samples, retained and deleted. Whatever is there then fits together, and
 * has all that was acknowledged; what goes on from there ends with the same bytes and samples,
 * which are worked out by hand. */
#include "contract/engines.h"

#include <stdio.h>
#include <sys/mman.h>

#include "base/fault.h"
#include "conf/conf.h"
#include "loop/job.h"
#include "store/wait.h"
#include "stream/chunk_reader.h"
#include "stream/demux_pass.h"
#include "stream/retain.h"
#include "stream/verify.h"
#include "stream_rig.h"

enum { CHUNKS = 7, ACTIONS_MAX = 32, COMMITS_MIN = 30, COMMITS_MAX = 400 };

static const struct stream_id streams[] = {
	{SLICE("t"), {SLICE("h1"), SLICE("c1"), SLICE("acc"), SLICE("/a")}, 1},
	{SLICE("t"), {SLICE("h1"), SLICE("c1"), SLICE("log"), SLICE("/b")}, 2}};

static const struct {
	unsigned stream;
	uint64_t begin;
	struct slice data;
	bool continues;
} chunks[CHUNKS] = {
	{0, 0, SLICE("1700000000 G 1\n"), false},
	{0, 15, SLICE("1700000001 P 2\n"), false},
	{0, 30, SLICE("1700000040 G 3\n1700000041 G"), false},
	{0, 57, SLICE(" 40\n1700000002 G 5\n"), true},
	{0, 76, SLICE("1700000003 P 6\n"), false},
	{0, 91, SLICE("1700000100 G 7\n"), false},
	{1, 0, SLICE("some text\n"), false},
};

/* What of it is written: the sink's cells, as metric, method and ms behind T0. */
static const struct {
	const char *metric, *method;
	int64_t ms;
	const char *value;
} samples[] = {
	{"acc.count", "G", 0, "2"},          {"acc.bytes.sum", "G", 0, "6"},
	{"acc.bytes.min", "G", 0, "1"},      {"acc.bytes.max", "G", 0, "5"},
	{"acc.count", "P", 0, "2"},          {"acc.bytes.sum", "P", 0, "8"},
	{"acc.bytes.min", "P", 0, "2"},      {"acc.bytes.max", "P", 0, "6"},
	{"acc.count", "G", 40000, "2"},      {"acc.bytes.sum", "G", 40000, "43"},
	{"acc.bytes.min", "G", 40000, "3"},  {"acc.bytes.max", "G", 40000, "40"},
	{"acc.count", "G", 100000, "1"},     {"acc.bytes.sum", "G", 100000, "7"},
	{"acc.bytes.min", "G", 100000, "7"}, {"acc.bytes.max", "G", 100000, "7"},
};

static struct contract_engine engine;

/* What is known outside of the process that is killed. */
static struct {
	size_t done; /* actions that have ended */
	bool acked[CHUNKS];
	bool deletes, over;
	int64_t now_ms;
} * outside;

/* ---- Samples, durable ------------------------------------------------------------------------ */

struct kills {
	struct rig rig;
	struct stream_site site;
	struct datatypes *datatypes;
	struct demux_sink sink;
	struct demux_work work;
	struct demux_stream stream;
};
static struct kills *kills;

static int kills_write(UNUSED struct demux_sink *sink, UNUSED struct job *job,
		       UNUSED struct slice tenant, UNUSED const struct datatype *rule,
		       const struct demux_point *points, size_t count, int64_t stamp_us,
		       UNUSED struct errbuf *e)
{
	struct store_write *write = store_write_new(kills->rig.store, 1 << 20);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < points[i].count; j++) {
			char value[40];
			uint8_t ms[8];
			be64_put(ms, (uint64_t)points[i].ms);
			snprintf(value, sizeof(value), "%g", value_as_f64(points[i].values[j]));
			char row[200];
			const struct slice method = points[i].tags[points[i].tag_count - 1].value;
			snprintf(row, sizeof(row), "%.*s %.*s", (int)points[i].metrics[j].len,
				 points[i].metrics[j].data, (int)method.len, method.data);
			assert_int_equal(store_cell_put(write, TABLE_RAW_TEXT, PARTS(slice_of(row)),
							PARTS({(char *)ms, 8}), slice_of(value),
							stamp_us++, 0),
					 0);
		}
	int err = store_write_wait(write, &kills->rig.queue);
	store_write_free(write);
	return err;
}

static void kills_expect_samples(void)
{
	size_t count = 0;
	for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
		char row[200];
		uint8_t ms[8];
		struct store_cell cell;
		be64_put(ms, (uint64_t)(T0 + samples[i].ms));
		snprintf(row, sizeof(row), "%s %s", samples[i].metric, samples[i].method);
		if (!rig_cell_get(&kills->rig, TABLE_RAW_TEXT, PARTS(slice_of(row)),
				  PARTS({(char *)ms, 8}), &cell))
			fail_msg("%s at %lld is not there", row, (long long)samples[i].ms);
		assert_slice(cell.value, slice_of(samples[i].value));
	}
	struct rows rows = rig_enumerate(&kills->rig, TABLE_RAW_TEXT, 0, 0);
	for (size_t i = 0; i < rows.count; i++) {
		const struct store_cell_scan scan = {.table = TABLE_RAW_TEXT,
						     .key = rows.list[i].key};
		count += rig_scan(&kills->rig, &scan, 0).count;
	}
	assert_int_equal(count, ARRAY_LEN(samples));
}

/* ---- What happens ---------------------------------------------------------------------------- */

/* Whoever sends it sends it again until it is acknowledged. */
static void act_put(size_t first, size_t last)
{
	for (size_t i = first; i <= last; i++) {
		const struct stream_id *id = &streams[chunks[i].stream];
		if (outside->acked[i])
			continue;
		stream_rig_put_made(&kills->rig, id, T0, store_stamp(kills->rig.store));
		stream_rig_put_chunk(&kills->rig, id, chunks[i].begin, chunks[i].data,
				     chunks[i].continues);
		outside->acked[i] = true;
	}
}

static void act_seal(size_t stream)
{
	stream_rig_seal(&kills->rig, &streams[stream], true, INT64_MIN);
}

static void act_pass(void)
{
	struct demux_passed passed;
	struct errbuf e = {""};
	do {
		int err = demux_pass(&kills->work, &kills->stream, &passed, &e);
		assert_string_equal(e.text, "");
		assert_int_equal(err, 0);
		rig_advance_ms(&kills->rig, passed.waits ? 20000 : 0);
	} while (passed.more || passed.waits);
}

/* The owner lists those that are there. */
static bool act_is_there(size_t stream)
{
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	int err = stream_known_read_blocks(&known, &kills->site, &kills->rig.queue,
					   &streams[stream], &e);
	bool made = known.made;
	stream_known_release(&known);
	assert_int_equal(err, 0);
	return made;
}

static void act_retain(size_t stream, int64_t before_ms)
{
	const struct stream_retain_rules rules = {before_ms, INT64_MAX, 1000};
	struct stream_retained retained;
	struct errbuf e = {""};
	if (!act_is_there(stream))
		return;
	int err = stream_retain(&kills->site, &kills->rig.queue, &streams[stream], &rules,
				&retained, &e);
	assert_string_equal(e.text, "");
	assert_int_equal(err, 0);
}

static void act_delete(void)
{
	uint64_t bytes;
	struct errbuf e = {""};
	outside->deletes = true;
	assert_int_equal(
		stream_delete(&kills->site, &kills->rig.queue, &streams[1], false, &bytes, &e), 0);
}

/* False: there are no more. The first block is received at T0, all others an hour later and after
 * it. */
static bool act(size_t action)
{
	if (action > 3 && rig_now_ms(&kills->rig) < T0 + HOUR_MS)
		rig_advance_ms(&kills->rig, HOUR_MS);
	switch (action) {
	case 0:
		act_put(0, 1);
		break;
	case 1:
	case 7:
	case 12:
		act_seal(0);
		break;
	case 2:
	case 6:
	case 10:
	case 13:
		act_pass();
		break;
	case 3:
		act_put(6, 6);
		break;
	case 4:
		act_put(2, 2);
		act_pass();
		break;
	case 5:
		act_put(3, 3);
		break;
	case 8: /* bins that are open go out of memory */
		demux_stream_forget(&kills->stream);
		break;
	case 9:
		act_put(4, 4);
		break;
	case 11:
		act_retain(0, T0 + HOUR_MS / 2);
		act_put(5, 5);
		break;
	case 14:
		act_retain(0, T0 + HOUR_MS / 2);
		act_seal(1);
		break;
	case 15:
		act_delete();
		break;
	case 16:
	case 17:
		act_retain(1, INT64_MIN);
		break;
	case 18:
		act_seal(1);
		rig_advance_ms(&kills->rig, DAY_MS + 1);
		act_retain(1, INT64_MIN);
		break;
	default:
		return false;
	}
	outside->done = action + 1;
	outside->now_ms = rig_now_ms(&kills->rig);
	return true;
}

static void act_all(void)
{
	while (act(outside->done))
		;
}

/* ---- The process ----------------------------------------------------------------------------- */

static const char *kill_point;
static unsigned kill_number;

static void kills_start(struct store *store)
{
	kills->rig.store = kills->site.store = store;
	kills->site.clock = &kills->rig.clock.clock;
	kills->sink.write = kills_write;
	kills->work = (struct demux_work){.site = &kills->site,
					  .queue = &kills->rig.queue,
					  .sink = &kills->sink,
					  .until_ms = INT64_MAX,
					  .write_max_ms = 1000,
					  .late_max_ms = DAY_MS,
					  .bins_max_bytes = 1 << 20};
	demux_work_init(&kills->work);
	kills->stream =
		(struct demux_stream){.tenant = streams[0].tenant,
				      .names = streams[0].names,
				      .rule = datatypes_find(kills->datatypes, SLICE("acc"))};
	assert_non_null(kills->stream.rule);
}

static void kills_work(struct store *store, UNUSED struct clock *clock)
{
	kills_start(store);
	fault_arm(kill_point, FAULT_KILL, kill_number, 1);
	act_all();
	outside->over = true;
}

/* ---- What is right --------------------------------------------------------------------------- */

static void kills_tell(UNUSED void *owner, const char *sentence)
{
	fail_msg("%s=kill@%u, in action %zu: %s", kill_point, kill_number, outside->done, sentence);
}

static uint64_t kills_verify(void)
{
	struct tables_verify verify = {.store = kills->rig.store,
				       .clock = &kills->rig.clock.clock,
				       .queue = &kills->rig.queue,
				       .all_words = true,
				       .tell = kills_tell};
	assert_int_equal(stream_verify(&verify), 0);
	return verify.orphans;
}

/* What was acknowledged is there, once and in order; what is below what is kept is not. */
static void kills_expect_bytes(size_t stream)
{
	const struct stream_id *id = &streams[stream];
	struct stream_known known = {.made = false};
	struct chunk_reader reader;
	struct stream_piece piece;
	struct errbuf e = {""};
	char text[200];
	assert_int_equal(stream_known_read(&known, &kills->site, &kills->rig.queue, id, 0, &e), 0);
	for (size_t i = 0; i < CHUNKS; i++) {
		uint64_t at = chunks[i].begin, end = at + chunks[i].data.len;
		if (chunks[i].stream != stream)
			continue;
		memcpy(text + at, chunks[i].data.data, chunks[i].data.len);
		if (outside->acked[i] && end > known.kept_from)
			assert_true(offsets_cover(&known.held, at, end));
	}
	uint64_t at = known.held.count ? known.held.list[0].begin : 0;
	chunk_reader_init(&reader, &kills->site, &kills->rig.queue, id, &known.sealed, &known.held,
			  0, UINT64_MAX, &e);
	do {
		assert_int_equal(chunk_reader_next(&reader, &piece), 0);
		if (piece.data.len) {
			assert_int_equal(piece.begin, at);
			assert_memory_equal(piece.data.data, text + at, piece.data.len);
		}
		at += piece.data.len;
	} while (piece.data.len);
	chunk_reader_release(&reader);
	if (known.held.count)
		assert_int_equal(at, known.held.list[known.held.count - 1].end);
	stream_known_release(&known);
}

/* The first block has gone, and the second stream as well; nothing is left over. */
static void kills_expect_end(void)
{
	struct stream_known known = {.made = false};
	struct errbuf e = {""};
	assert_int_equal(kills_verify(), 0);
	kills_expect_bytes(0);
	kills_expect_samples();
	assert_int_equal(
		stream_known_read(&known, &kills->site, &kills->rig.queue, &streams[0], 0, &e), 0);
	assert_int_equal(known.held.count, 1);
	assert_int_equal(known.held.list[0].begin, 30);
	assert_int_equal(known.held.list[0].end, 106);
	assert_int_equal(known.sealed.count, 1);
	assert_int_equal(known.sealed.list[0].end, 106);
	assert_int_equal(
		stream_known_read(&known, &kills->site, &kills->rig.queue, &streams[1], 0, &e), 0);
	assert_false(known.made);
	stream_known_release(&known);
	assert_int_equal(rig_enumerate(&kills->rig, TABLE_CHUNK_TAIL, 0, 0).count, 0);
}

/* False: the process was not killed, and has done all. */
static bool kill_once(void)
{
	*outside = (typeof(*outside)){.now_ms = T0};
	rig_open(&kills->rig, &engine);
	struct store *store = engine.kill_in(engine.context, kills->rig.store,
					     &kills->rig.clock.clock, kills_work);
	bool killed = !outside->over;
	rig_advance_ms(&kills->rig, outside->now_ms - T0);
	kills_start(store);
	(void)kills_verify();
	kills_expect_bytes(0);
	if (!outside->deletes)
		kills_expect_bytes(1);
	act_all();
	kills_expect_end();
	demux_stream_forget(&kills->stream);
	demux_work_release(&kills->work);
	rig_close(&kills->rig);
	return killed;
}

static void it_is_killed_at_each_commit(void **state)
{
	(void)state;
	static const char *const points[] = {"store.commit", "store.committed"};
	for (size_t i = 0; i < ARRAY_LEN(points); i++) {
		kill_point = points[i];
		for (kill_number = 1; kill_once(); kill_number++)
			assert_true(kill_number < COMMITS_MAX);
		print_message("%s: %u kills\n", kill_point, kill_number - 1);
		assert_true(kill_number > COMMITS_MIN);
	}
}

static void kills_read_datatypes(void)
{
	struct errbuf e = {""};
	struct conf *conf = conf_new();
	assert_int_equal(
		conf_read_yaml(conf, "g.yml",
			       SLICE("datatypes: {acc: {pattern: '<_> <method> <bytes>', events: "
				     "{tags: [method], values: [bytes]}}}\n"),
			       &e),
		0);
	assert_int_equal(
		datatypes_read(conf->sections[CONF_SECTION_DATATYPES], &kills->datatypes, &e), 0);
	conf_free(conf);
}

int main(void)
{
	static struct kills all;
	const struct CMUnitTest tests[] = {cmocka_unit_test(it_is_killed_at_each_commit)};
	kills = &all;
	outside = mmap(NULL, sizeof(*outside), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	ASSERT(outside != MAP_FAILED);
	engine = engine_lmdb("stream-kills", 0, 0);
	kills_read_datatypes();
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	datatypes_free(kills->datatypes);
	return failed;
}
