/* Property test of lines that become samples: whatever the order in which their chunks come, where
 * they are cut, what is in blocks, and where the process is killed, bins have what the lines say.
 *
 * Streams are made of events by lot; what their bins have is added up here, line by line.
 * GRANARY_SEED repeats a seed. */
#include "stream_demux_world.h"
#include "tools/long_run.h"

enum {
	SEEDS = 60,
	SEEDS_LONG = 2000,
	LINES_MAX = 400,
	INCARNATIONS = 2,
	CHUNKS_MAX = 60,
};

struct chunk {
	uint64_t incarnation, begin;
	size_t len;
	bool there;
};

struct lot {
	char *text[INCARNATIONS];
	size_t len[INCARNATIONS];
	struct chunk chunks[CHUNKS_MAX];
	size_t chunk_count;
	uint64_t lines, junk;
};

/* A bin of the events that were made, and what it has. */
struct lot_bin {
	int64_t ms;
	char method;
	uint64_t count;
	int64_t sum, least, greatest;
};

struct lot_bins {
	struct lot_bin list[2000];
	size_t count;
};

static void lot_add(struct lot_bins *bins, int64_t ms, char method, int64_t bytes)
{
	int64_t start = ms / 10000 * 10000;
	size_t i = 0;
	while (i < bins->count && (bins->list[i].ms != start || bins->list[i].method != method))
		i++;
	if (i == bins->count)
		bins->list[bins->count++] = (struct lot_bin){start, method, 0, 0, bytes, bytes};
	struct lot_bin *bin = &bins->list[i];
	bin->count++;
	bin->sum += bytes;
	bin->least = bytes < bin->least ? bytes : bin->least;
	bin->greatest = bytes > bin->greatest ? bytes : bin->greatest;
}

static void lot_make_lines(struct world *w, struct lot *lot, struct lot_bins *bins)
{
	int64_t ms = T0;
	size_t room = LINES_MAX * 64, count = 1 + random_below(&w->random, LINES_MAX);
	for (int i = 0; i < INCARNATIONS; i++)
		lot->text[i] = mem_zalloc(room);
	for (size_t i = 0; i < count; i++) {
		int which = random_below(&w->random, 4) == 0;
		char *at = lot->text[which] + lot->len[which];
		size_t left = room - lot->len[which];
		ms += (int64_t)random_below(&w->random, 4000);
		int64_t late = random_below(&w->random, 8) == 0
				       ? (int64_t)random_below(&w->random, 120000)
				       : 0;
		int64_t bytes = (int64_t)random_below(&w->random, 1000);
		char method = "GPD"[random_below(&w->random, 3)];
		lot->lines++;
		if (random_below(&w->random, 12) == 0) {
			lot->junk++;
			lot->len[which] += (size_t)snprintf(at, left, "nothing\n");
			continue;
		}
		lot_add(bins, ms - late, method, bytes);
		lot->len[which] += (size_t)snprintf(
			at, left, "%lld.%03lld %c %lld\n", (long long)((ms - late) / 1000),
			(long long)((ms - late) % 1000), method, (long long)bytes);
	}
}

static void lot_cut(struct world *w, struct lot *lot)
{
	for (int i = 0; i < INCARNATIONS; i++) {
		size_t at = 0;
		while (at < lot->len[i]) {
			bool last = lot->chunk_count >= CHUNKS_MAX - INCARNATIONS + (size_t)i;
			size_t len = 1 + random_below(&w->random, last ? 1 : 800);
			if (last || len > lot->len[i] - at)
				len = lot->len[i] - at;
			lot->chunks[lot->chunk_count++] =
				(struct chunk){(uint64_t)i + 1, at, len, false};
			at += len;
		}
	}
}

static void lot_deliver(struct world *w, struct lot *lot, struct chunk *chunk)
{
	const char *text = lot->text[chunk->incarnation - 1];
	if (chunk->there)
		return;
	chunk->there = true;
	world_put_chunk(w, chunk->incarnation, chunk->begin,
			(struct slice){text + chunk->begin, chunk->len},
			chunk->begin && text[chunk->begin - 1] != '\n');
}

/* Mostly in order, sometimes any. */
static void lot_deliver_some(struct world *w, struct lot *lot)
{
	if (random_below(&w->random, 5) == 0) {
		lot_deliver(w, lot, &lot->chunks[random_below(&w->random, lot->chunk_count)]);
		return;
	}
	for (size_t i = 0; i < lot->chunk_count; i++)
		if (!lot->chunks[i].there) {
			lot_deliver(w, lot, &lot->chunks[i]);
			return;
		}
}

/* Sometimes also records whose end, or beginning, is not there. */
static void lot_seal(struct world *w)
{
	const struct stream_id id = world_id(1 + random_below(&w->random, INCARNATIONS));
	stream_rig_seal(&w->rig, &id, random_below(&w->random, 2),
			random_below(&w->random, 3) ? INT64_MIN : INT64_MAX);
}

static void lot_step(struct world *w, struct lot *lot)
{
	switch (random_below(&w->random, 10)) {
	case 0:
		world_kill(w);
		break;
	case 1:
		lot_seal(w);
		break;
	case 2:
	case 3:
	case 4:
		(void)!world_pass(w);
		break;
	case 5:
		rig_advance_ms(&w->rig, (int64_t)random_below(&w->random, 15000));
		break;
	default:
		lot_deliver_some(w, lot);
	}
}

static void lot_expect(struct world *w, const struct lot_bin *bin, const char *what, double want)
{
	char key[200];
	snprintf(key, sizeof(key), "acc.%s{host=h1,cluster=c1,method=%c}%lld", what, bin->method,
		 (long long)(bin->ms - T0));
	double value = world_value(w, key);
	if (value != want)
		fail_msg("%s is %g and not %g", key, value, want);
}

static void lot_compare(struct world *w, const struct lot *lot, const struct lot_bins *bins)
{
	for (size_t i = 0; i < bins->count; i++) {
		const struct lot_bin *bin = &bins->list[i];
		lot_expect(w, bin, "count", (double)bin->count);
		lot_expect(w, bin, "bytes.sum", (double)bin->sum);
		lot_expect(w, bin, "bytes.min", (double)bin->least);
		lot_expect(w, bin, "bytes.max", (double)bin->greatest);
	}
	assert_int_equal(w->sink.count, 4 * bins->count);
	assert_int_equal(w->stream.state.counts.lines, lot->lines);
	assert_int_equal(w->stream.state.counts.unread, lot->junk);
	assert_int_equal(w->stream.state.counts.late, 0);
}

static void run_seed(const struct contract_engine *engine, uint64_t seed)
{
	struct world *w = mem_alloc(sizeof(*w));
	struct lot lot = {.chunk_count = 0};
	static struct lot_bins bins;
	bins.count = 0;
	world_open(w, engine, seed, events);
	w->sink.fails = random_below(&w->random, 2) ? 20 : 0;
	w->sink.cuts = random_below(&w->random, 2);
	/* In some worlds bins are often dropped from memory. */
	w->work.bins_max_bytes = random_below(&w->random, 2) ? 1 << 20 : 4000;
	lot_make_lines(w, &lot, &bins);
	lot_cut(w, &lot);
	rig_advance_ms(&w->rig, HOUR_MS);
	for (size_t i = 0; i < 4 * lot.chunk_count; i++)
		lot_step(w, &lot);
	for (size_t i = 0; i < lot.chunk_count; i++)
		lot_deliver(w, &lot, &lot.chunks[i]);
	world_finish(w);
	lot_compare(w, &lot, &bins);
	/* Read again from its beginning, it comes out the same. */
	struct errbuf e = {""};
	assert_int_equal(demux_begin_again(&w->work, &w->stream, &e), 0);
	w->sink.count = 0;
	world_finish(w);
	lot_compare(w, &lot, &bins);
	for (int i = 0; i < INCARNATIONS; i++)
		mem_free(lot.text[i]);
	world_close(w);
	mem_free(w);
}

static struct contract_engine engine;

static void bins_have_what_lines_say(void **state)
{
	(void)state;
	const char *one = getenv("GRANARY_SEED");
	uint64_t last = long_run() ? SEEDS_LONG : SEEDS;
	for (uint64_t seed = one ? strtoull(one, NULL, 10) : 1; seed <= (one ? seed : last);
	     seed++) {
		print_message("seed %llu\n", (unsigned long long)seed);
		run_seed(&engine, seed);
		if (one)
			break;
	}
}

int main(void)
{
	engine = engine_lmdb("demux", 0, 0);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bins_have_what_lines_say),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
