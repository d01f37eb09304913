/* What streams cost: from lines to frames, from frames to chunks that are durable, from chunks to
 * blocks, and from blocks to bytes again.
 *
 *   stream_bench [--megabytes 500] [--streams 1] [--chunk 524288] [--level 3] --data DIR
 *
 * The lines are like those of a system's log, of about 200 bytes. Each step is done with all of
 * them before the next begins. Prints one JSON object: bytes of lines per CPU second of the whole
 * process, in MB, by step; and how many bytes of them one byte on disk holds. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/random.h"
#include "bench/cpu_time.h"
#include "ingest/chunks.h"
#include "store/lmdb/lmdb.h"
#include "stream/chunk_reader.h"
#include "stream/seal.h"

enum { POST_MAX_BYTES = 2 << 20, ENDS_MAX_BYTES = 1 << 20, LINE_MAX = 400 };

static struct {
	size_t megabytes, streams, chunk_bytes, level;
	const char *data;
	struct random random;
	struct buf lines;
	struct buf *posts;
	size_t post_count;
	struct task_queue queue;
	struct stream_site site;
	struct collector *collector;
	bool done;
	uint64_t stored_bytes;
} bench = {.megabytes = 500, .streams = 1, .chunk_bytes = 512 << 10, .level = 3};

static uint64_t pick(uint64_t bound)
{
	return random_below(&bench.random, bound);
}

static const char text_of_login[] =
	"Failed password for invalid user %s from 10.%d.%d.7 port %d ssh2; connection %08llx was "
	"closed by the peer before the end of the exchange of keys";
static const char text_of_session[] =
	"Started session %d of user %s after %d ms; unit session-%d.scope has begun its start up, "
	"request %08llx of the manager, result done, no dependency has failed";
static const char text_of_mail[] =
	"connect from mail-%d.example.org[192.168.%d.%d]: disconnected after %d commands, session "
	"%08llx, user %s, nothing was delivered and nothing is to be tried again";

/* ---- Lines ----------------------------------------------------------------------------------- */

static int make_line(char *to, size_t number)
{
	static const char *const programs[] = {"sshd",          "kernel", "systemd", "nginx",
					       "postfix/smtpd", "CRON",   "dhclient"};
	static const char *const users[] = {"root", "admin", "oracle", "test", "guest", "anna"};
	int a = (int)pick(250), b = (int)pick(250), c = (int)pick(60000);
	const char *user = users[pick(ARRAY_LEN(users))];
	unsigned long long id = random_next(&bench.random) >> 32;
	int at = snprintf(to, LINE_MAX, "2026-11-%02dT%02d:%02d:%02d.%03d+00:00 web%02d %s[%d]: ",
			  (int)(1 + number / 4000000 % 28), (int)(number / 180000 % 24),
			  (int)(number / 3000 % 60), (int)(number / 50 % 60), (int)pick(1000),
			  (int)pick(4), programs[pick(ARRAY_LEN(programs))], 1000 + (int)pick(300));
	switch (pick(3)) {
	case 0:
		at += snprintf(to + at, LINE_MAX, text_of_login, user, a, b, c, id);
		break;
	case 1:
		at += snprintf(to + at, LINE_MAX, text_of_session, c, user, a, c, id);
		break;
	default:
		at += snprintf(to + at, LINE_MAX, text_of_mail, a, b, a, b, id, user);
		break;
	}
	to[at++] = '\n';
	return at;
}

static void make_lines(void)
{
	char line[2 * LINE_MAX];
	buf_init(&bench.lines, (bench.megabytes + 1) << 20);
	for (size_t number = 0; bench.lines.len < bench.megabytes * 1000000; number++)
		buf_append(&bench.lines, line, (size_t)make_line(line, number));
}

/* ---- Frames ---------------------------------------------------------------------------------- */

static struct stream_id id_of(char name[32], size_t stream)
{
	snprintf(name, 32, "/var/log/%zu", stream);
	return (struct stream_id){
		.tenant = SLICE("default"),
		.names = {SLICE("web01"), SLICE("demo"), SLICE("syslog"), slice_of(name)},
		.incarnation = 1};
}

/* Streams take turns; each gets lines one behind the other. */
static void make_frames(void)
{
	uint64_t *at = mem_alloc_array(bench.streams, sizeof(*at));
	size_t from = 0, turn = 0, room = bench.lines.len / bench.chunk_bytes + bench.streams + 2;
	struct buf *post = NULL;
	memset(at, 0, bench.streams * sizeof(*at));
	bench.posts = mem_alloc_array(room, sizeof(*bench.posts));
	while (from < bench.lines.len) {
		size_t len = bench.lines.len - from;
		char name[32];
		if (len > bench.chunk_bytes) {
			const char *end = memrchr(bench.lines.data + from, '\n', bench.chunk_bytes);
			len = (size_t)(end + 1 - (bench.lines.data + from));
		}
		const struct stream_id id = id_of(name, turn);
		const struct chunk_data data = {.data = {bench.lines.data + from, len}};
		at[turn] += len;
		const struct chunk_fields fields = {.names = id.names,
						    .incarnation = 1,
						    .sequence_id = at[turn],
						    .lines = true};
		if (!post || post->len > POST_MAX_BYTES / 8) {
			post = &bench.posts[bench.post_count++];
			buf_init(post, 2 * POST_MAX_BYTES);
		}
		int err = chunk_frame_put(&fields, &data, CHUNK_LEVEL_PRESET, post);
		ASSERT(!err);
		from += len;
		turn = (turn + 1) % bench.streams;
	}
	mem_free(at);
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

static void on_done(struct stream_submission *submission)
{
	for (size_t i = 0; i < submission->count; i++)
		ASSERT(submission->chunks[i].outcome == STREAM_TAKEN);
	bench.done = true;
}

static void collect(void)
{
	for (size_t i = 0; i < bench.post_count; i++) {
		struct chunks_batch batch;
		struct errbuf e;
		chunks_batch_init(&batch);
		int err =
			chunks_batch_read(&batch, buf_slice(&bench.posts[i]), SLICE("default"), &e);
		ASSERT(!err);
		struct stream_submission submission = {
			.chunks = batch.chunks, .count = batch.chunk_count, .done = on_done};
		bench.done = false;
		err = collector_submit(bench.collector, &submission);
		ASSERT(!err);
		while (!bench.done)
			task_queue_wait(&bench.queue);
		chunks_batch_release(&batch);
	}
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void seal(void)
{
	const struct stream_seal_rules rules = {
		.level = (int)bench.level, .all = true, .until_ms = INT64_MAX};
	for (size_t i = 0; i < bench.streams; i++) {
		char name[32];
		struct stream_seal_result sealed;
		struct errbuf e = {""};
		const struct stream_id id = id_of(name, i);
		int err = stream_seal(&bench.site, &bench.queue, &id, &rules, &sealed, &e);
		ASSERT(!err && !sealed.left_data_bytes);
		bench.stored_bytes += sealed.stored_bytes;
	}
}

static void read_all(void)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < bench.streams; i++) {
		char name[32];
		struct stream_known known = {.made = false};
		struct chunk_reader reader;
		struct stream_piece piece;
		struct errbuf e;
		const struct stream_id id = id_of(name, i);
		int err = stream_known_read(&known, &bench.site, &bench.queue, &id, 0, &e);
		ASSERT(!err);
		chunk_reader_init(&reader, &bench.site, &bench.queue, &id, &known.sealed,
				  &known.held, 0, UINT64_MAX, &e);
		do {
			err = chunk_reader_next(&reader, &piece);
			ASSERT(!err);
			bytes += piece.data.len;
		} while (piece.data.len);
		chunk_reader_release(&reader);
		stream_known_release(&known);
	}
	ASSERT(bytes == bench.lines.len);
}

/* ---- The program ----------------------------------------------------------------------------- */

static double megabytes_per_cpu_s(void (*step)(void))
{
	double begun_s = cpu_s();
	step();
	return (double)bench.lines.len / 1e6 / (cpu_s() - begun_s);
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{"megabytes", required_argument, NULL, 'm'},
		{"streams", required_argument, NULL, 's'},
		{"chunk", required_argument, NULL, 'c'},
		{"level", required_argument, NULL, 'l'},
		{"data", required_argument, NULL, 'd'},
		{NULL, 0, NULL, 0},
	};
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		size_t number = optarg ? strtoul(optarg, NULL, 10) : 0;
		if (option == 'm')
			bench.megabytes = number;
		else if (option == 's')
			bench.streams = number;
		else if (option == 'c')
			bench.chunk_bytes = number;
		else if (option == 'l')
			bench.level = number;
		else if (option == 'd')
			bench.data = optarg;
	}
	if (!bench.data || !bench.megabytes || !bench.streams ||
	    bench.chunk_bytes > CHUNK_DATA_MAX_BYTES || bench.chunk_bytes < LINE_MAX) {
		fprintf(stderr, "usage: stream_bench [--megabytes N] [--streams N] [--chunk BYTES] "
				"[--level N] --data DIR\n");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct store *store;
	struct errbuf e;
	parse(argc, argv);
	random_init(&bench.random, 1);
	const struct lmdb_options options = {.path = bench.data};
	if (lmdb_open(&options, &store, &e)) {
		fprintf(stderr, "stream_bench: %s\n", e.text);
		return 1;
	}
	task_queue_init(&bench.queue);
	bench.site = (struct stream_site){.store = store,
					  .clock = clock_real(),
					  .limits = {.streams_max = 1000000,
						     .new_a_minute = 1000000000,
						     .tail_max_bytes = UINT64_MAX,
						     .holes_max = 1}};
	const struct collector_options collector = {
		.site = &bench.site, .executor = &bench.queue.executor, .seed = 1};
	bench.collector = collector_new(&collector);
	make_lines();
	double pack = megabytes_per_cpu_s(make_frames), take = megabytes_per_cpu_s(collect);
	double sealed = megabytes_per_cpu_s(seal), read = megabytes_per_cpu_s(read_all);
	printf("{\"megabytes\":%zu,\"packed\":%.1f,\"taken\":%.1f,\"sealed\":%.1f,\"read\":%.1f,"
	       "\"ratio\":%.2f}\n",
	       bench.megabytes, pack, take, sealed, read,
	       (double)bench.lines.len / (double)bench.stored_bytes);
	collector_free(bench.collector);
	store_close(store);
	return 0;
}
