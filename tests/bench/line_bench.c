/* What line protocol costs on one core, without a socket and without a store:
 *
 *   tsbs_gen --hosts 1000 --points 10 | line_bench [rounds [rules of retention]]
 *
 * Reads lines from standard input, then goes over them again and again in pieces of 256 KB:
 *   parse    line_next and line_fields, names known
 *   plain    the same with the plain search
 *   known    into an ingest_request whose keys are all in the cache; the store's append does
 *   nothing unknown  with an empty cache each round, so that every key goes through the catalog of
 *            a naive store; the first round registers
 * Samples per CPU second, of this thread. */
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "catalog/catalog.h"
#include "ingest/line_feed.h"
#include "ingest/private.h"
#include "naive.h"
#include "wire/line.h"

enum { INPUT_MAX_BYTES = 1 << 30, PIECE_BYTES = 256 << 10, NAMES_MAX_WORDS = 4096 };

struct bench {
	struct buf input;
	size_t rounds;
	struct task_queue queue;
	struct store *store;
	struct catalog *catalog;
	struct ingest *ingest;
	struct store_engine engine; /* the naive one, append taken out */
	struct retention_rules rules;
	size_t done;
};

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void read_input(struct buf *input)
{
	buf_init(input, INPUT_MAX_BYTES);
	for (;;) {
		char *room = buf_reserve(input, 1 << 20);
		ASSERT(room);
		ssize_t n = read(STDIN_FILENO, room, 1 << 20);
		if (n <= 0)
			return;
		input->len += (size_t)n;
	}
}

static void tell(const struct bench *b, const char *name, uint64_t samples, double seconds)
{
	double bytes = (double)b->input.len * (double)b->rounds;
	printf("%-8s %8.2f M samples/s  %6.1f ns/sample  %5.2f GB/s\n", name,
	       (double)samples / seconds / 1e6, seconds * 1e9 / (double)samples,
	       bytes / seconds / 1e9);
}

/* ---- Parsing alone -------------------------------------------------------------------------- */

static uint64_t parse_once(const struct bench *b, const struct line_names *names,
			   struct line_fields *fields)
{
	struct line_reader reader;
	struct slice key;
	uint64_t samples = 0;
	line_reader_init(&reader, b->input.data, b->input.len, 1, LINE_NS);
	while (line_next(&reader, &key) == LINE_OK) {
		if (line_fields(&reader, names, fields) != LINE_OK)
			break;
		samples += fields->count;
	}
	return samples;
}

/* The names of the first line. */
static struct line_names first_names(const struct bench *b, struct line_fields *fields)
{
	static uint64_t words[NAMES_MAX_WORDS];
	static uint16_t lengths[LINE_FIELDS_MAX];
	struct line_reader reader;
	struct slice key;
	size_t at = 0;
	line_reader_init(&reader, b->input.data, b->input.len, 1, LINE_NS);
	if (line_next(&reader, &key) != LINE_OK || line_fields(&reader, NULL, fields) != LINE_OK)
		return (struct line_names){0};
	for (size_t i = 0; i < fields->count; i++) {
		struct slice name = fields->names[i];
		ASSERT(at + name.len / 8 + 1 <= NAMES_MAX_WORDS);
		memcpy(words + at, name.data, name.len);
		((char *)(words + at))[name.len] = '=';
		lengths[i] = (uint16_t)(name.len + 1);
		at += (lengths[i] + 7u) / 8;
	}
	return (struct line_names){fields->count, words, lengths};
}

static void bench_parse(struct bench *b, const char *name, bool avx2)
{
	static struct line_fields fields;
	struct line_names names = first_names(b, &fields);
	line_use_avx2(avx2);
	double begin = cpu_seconds();
	uint64_t samples = 0;
	for (size_t i = 0; i < b->rounds; i++)
		samples += parse_once(b, &names, &fields);
	tell(b, name, samples, cpu_seconds() - begin);
	line_use_avx2(true);
}

/* ---- Through ingest ------------------------------------------------------------------------- */

static int append_nothing(struct store_write *write, const struct store_target *target,
			  int64_t ts_ms, unsigned fields, const uint64_t *handles, size_t n,
			  const struct value *values)
{
	(void)fields;
	(void)write;
	(void)target;
	(void)ts_ms;
	(void)handles;
	(void)n;
	(void)values;
	return 0;
}

static void on_done(struct ingest_request *r)
{
	struct bench *b = ingest_owner(r);
	if (r->err || r->refused)
		fprintf(stderr, "refused %llu: %s\n", (unsigned long long)r->refused,
			r->err ? r->error.text : r->errors[0].sentence);
	b->done += r->accepted;
	ingest_request_free(r);
}

static void write_once(struct bench *b)
{
	struct line_feed feed;
	struct ingest_request *r =
		ingest_request_new(b->ingest, &(struct ingest_door){.done = on_done, .owner = b});
	line_feed_init(&feed, r, (struct slice){0}, LINE_NS);
	for (size_t at = 0; at < b->input.len; at += PIECE_BYTES) {
		size_t n = b->input.len - at < PIECE_BYTES ? b->input.len - at : PIECE_BYTES;
		line_feed_piece(&feed, (struct slice){b->input.data + at, n});
		while (task_queue_run(&b->queue))
			;
	}
	line_feed_end(&feed);
	line_feed_release(&feed);
	ingest_request_end(r);
	while (task_queue_run(&b->queue))
		;
}

static void open_server(struct bench *b)
{
	struct catalog_options catalog = catalog_options_default();
	catalog.new_series_per_minute_max = 0;
	task_queue_init(&b->queue);
	b->store = naive_open(clock_real());
	b->engine = *b->store->engine;
	b->engine.append = append_nothing;
	b->store->engine = &b->engine;
	b->catalog = catalog_new(b->store, clock_real(), &b->queue.executor, &catalog);
	b->ingest = ingest_new(&(struct ingest_options){.store = b->store,
							.catalog = b->catalog,
							.retention = {.rules = &b->rules},
							.clock = clock_real(),
							.executor = &b->queue.executor});
}

static void bench_ingest(struct bench *b)
{
	open_server(b);
	write_once(b);
	struct cache_usage usage = cache_usage(b->ingest->cache);
	printf("cache    %8zu keys  %6.1f bytes a key\n", usage.entries,
	       (double)usage.bytes / (double)usage.entries);
	b->done = 0;
	double begin = cpu_seconds();
	for (size_t i = 0; i < b->rounds; i++)
		write_once(b);
	tell(b, "known", b->done, cpu_seconds() - begin);
	b->done = 0;
	begin = cpu_seconds();
	for (size_t i = 0; i < b->rounds; i++) {
		cache_clear(b->ingest->cache);
		write_once(b);
	}
	tell(b, "unknown", b->done, cpu_seconds() - begin);
}

int main(int argc, char **argv)
{
	struct bench b = {.rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 20};
	struct granularities none = {0};
	struct errbuf e;
	if (retention_parse((const char *const *)argv + 2, argc > 2 ? (size_t)argc - 2 : 0, &none,
			    0, &b.rules, &e)) {
		fprintf(stderr, "line_bench: %s\n", e.text);
		return 1;
	}
	read_input(&b.input);
	char *padding = buf_reserve(&b.input, LINE_PADDING_BYTES);
	if (!padding || !b.input.len || b.input.data[b.input.len - 1] != '\n') {
		fprintf(stderr, "line_bench: standard input must be whole lines\n");
		return 1;
	}
	memset(padding, 0, LINE_PADDING_BYTES);
	bench_parse(&b, "parse", true);
	bench_parse(&b, "plain", false);
	bench_ingest(&b);
	buf_release(&b.input);
	return 0;
}
