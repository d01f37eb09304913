/* Property test of the agent: a log whose every line says which one it is, written, renamed, copied
 * and emptied, packed, removed, while an agent follows it; clock, files, network and collectors are
 * simulated. A seed decides who does what next, between any two operations of the agent on files
 * and in the middle of its requests; what fails; when the agent dies and is started again.
 *
 * In the end each line is with the collectors once, in the order in which it was written; but for
 * lines of a file that was emptied or removed with no copy left, which may be missing.
 *
 * GRANARY_SEED repeats a seed, and tells what happens. */
#include <inttypes.h>
#include <stdarg.h>

#include <zstd.h>

#include "agent/agent_private.h"
#include "agent_files.h"
#include "base/log.h"
#include "base/random.h"
#include "http/coding.h"
#include "tools/long_run.h"
#include "wire/number.h"

enum {
	LINES_MAX = 60000,
	LINE_DIGITS = 7,
	LINE_APART = 4, /* by so many digits lines differ: 16^4 is more than LINES_MAX */
	COLLECTORS = 2,
	INCARNATIONS_MAX = 64,
	STREAM_MAX_BYTES = 16 << 20,
	STEPS = 600,
	CALM_TURNS = 4000,
	ROTATED_MAX = 24,
	ROTATIONS_MAX = 500, /* of a world */
#ifdef __SANITIZE_ADDRESS__
	SEEDS = 40,
	SEEDS_LONG = 2500,
#else
	SEEDS = 300,
	SEEDS_LONG = 100000,
#endif
};

#define DIRECTORY "/log"
#define LOG       DIRECTORY "/app.log"
#define STATE     "/state"

struct incarnation {
	uint64_t id;
	size_t order;           /* when it came first */
	struct buf bytes, have; /* one byte of `have` for each: it is there */
};

struct collector_of_sim {
	struct incarnation list[INCARNATIONS_MAX];
	size_t count;
};

/* What a world may have. */
struct kinds {
	bool copies;  /* logs are copied and emptied, not renamed */
	bool empties; /* emptied without a copy, removed */
	bool packs;   /* rotated ones are packed */
	bool dates;   /* rotated ones have a date in their names */
	bool heads;   /* files begin alike */
	bool late;    /* two write, and one of them goes on in a renamed file for a while */
	bool kills, cuts, forgets, damages, fulls;
	bool clock_jumps;
	unsigned keep;
};

struct world {
	struct random random;
	struct clock_virtual clock;
	struct sim_files files;
	struct kinds kinds;
	struct agent *agent;
	struct agent_net net;
	struct collector_of_sim collectors[COLLECTORS];
	struct sim_file *out[2];  /* open for writing, by two writers */
	struct sim_file *copy;    /* of a copy that is being made; the log is emptied after it */
	char packing[64];         /* the file that is being packed; empty: none */
	size_t lines, half_bytes; /* of the line that is written in part */
	struct sim_file *half_in;
	uint8_t excused[LINES_MAX], seen[LINES_MAX];
	size_t destroyed;  /* how often contents were */
	size_t begun_anew; /* how often the log was, behind files that are none of its stream */
	bool busy, calm, killed, trace, forgotten;
	bool ambiguous; /* a checkpoint was lost: lines may come again */
	unsigned cut_percent, odd_percent, later_percent;
	size_t incarnations;
	size_t step, turns, rotations, kills, repeated, others, posts;
	unsigned dates;
	char failure[300];
};

static uint64_t pick(struct world *w, uint64_t below)
{
	return random_below(&w->random, below);
}

static bool chance(struct world *w, unsigned percent)
{
	return pick(w, 100) < percent;
}

static void fail(struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void fail(struct world *w, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	if (!w->failure[0])
		vsnprintf(w->failure, sizeof(w->failure), fmt, args);
	va_end(args);
}

static void tell(const struct world *w, const char *fmt, ...) PRINTF_LIKE(2, 3);
static void tell(const struct world *w, const char *fmt, ...)
{
	va_list args;
	if (!w->trace)
		return;
	va_start(args, fmt);
	printf("%6zu ", w->step);
	vprintf(fmt, args);
	printf("\n");
	va_end(args);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* `3f10000.....`: the number of the line, its lowest digit first, and dots, as many as the number
 * decides. So files do not begin alike, but for their headings: a file that is gone cannot be told
 * from another one by bytes that both have. */
static size_t line_dots(size_t line)
{
	size_t spread = line % 97 == 0 ? 3000 : line % 11 == 0 ? 200 : 20;
	return (line * 2654435761u >> 7) % spread;
}

static size_t line_of(size_t line, char *to)
{
	size_t dots = line_dots(line);
	for (size_t i = 0; i < LINE_DIGITS; i++)
		to[i] = "0123456789abcdef"[line >> 4 * i & 15];
	memset(to + LINE_DIGITS, '.', dots);
	to[LINE_DIGITS + dots] = '\n';
	return LINE_DIGITS + dots + 1;
}

/* False: these are no digits. */
static bool line_read(const char *digits, size_t *number)
{
	*number = 0;
	for (size_t i = LINE_DIGITS; i-- > 0;) {
		const int digit = number_hex_digit(digits[i]);
		if (digit < 0)
			return false;
		*number = *number << 4 | (size_t)digit;
	}
	return true;
}

/* What a file begins with. */
static void file_put_head(struct world *w, struct sim_file *file)
{
	char head[900];
	if (!w->kinds.heads)
		return;
	memset(head, '#', sizeof(head));
	head[sizeof(head) - 1] = '\n';
	size_t len = chance(w, 50) ? sizeof(head) : 8;
	sim_append(&w->files, file, head + sizeof(head) - len, len);
}

/* Says of the lines of a content whether they may be missing. */
static void file_set_excused(struct world *w, const struct sim_file *file, bool excused)
{
	const char *at = file->bytes.data, *end = at + file->bytes.len;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t number;
		if (end - at >= LINE_DIGITS && line_read(at, &number) && number < LINES_MAX)
			w->excused[number] = excused;
		at = newline ? newline + 1 : end;
	}
}

/* The lines of a content that goes, and is nowhere else. */
static void file_excuse(struct world *w, const struct sim_file *file)
{
	file_set_excused(w, file, true);
	w->destroyed++;
}

/* ---- Writers --------------------------------------------------------------------------------- */

static struct sim_file *log_file(struct world *w)
{
	return sim_find(&w->files, LOG);
}

static void writer_let_go(struct world *w, unsigned which)
{
	struct sim_file *file = w->out[which];
	w->out[which] = NULL;
	if (file) {
		file->handles--;
		sim_release(&w->files, file);
	}
}

/* Opens the log by its name; it is made where it is not there. */
static void writer_open(struct world *w, unsigned which)
{
	struct sim_file *file = log_file(w);
	writer_let_go(w, which);
	if (!file)
		file = sim_make(&w->files, LOG);
	if (!file->bytes.len)
		file_put_head(w, file);
	file->handles++;
	w->out[which] = file;
}

static void writer_finish_half(struct world *w)
{
	char text[4000];
	if (!w->half_bytes)
		return;
	size_t len = line_of(w->lines - 1, text);
	/* The file may have been removed meanwhile, when the line could not be read off it. */
	w->excused[w->lines - 1] |= !w->half_in->name;
	sim_append(&w->files, w->half_in, text + w->half_bytes, len - w->half_bytes);
	w->half_bytes = 0;
}

static void writer_write(struct world *w, unsigned which)
{
	char text[4000];
	size_t count = chance(w, 5) ? 1 + pick(w, 300) : 1 + pick(w, 10);
	if (!w->out[which])
		writer_open(w, which);
	writer_finish_half(w);
	for (size_t i = 0; i < count && w->lines < LINES_MAX; i++) {
		/* A file that has no name is found by nobody who has not opened it before. */
		w->excused[w->lines] = !w->out[which]->name;
		size_t len = line_of(w->lines++, text);
		/* Nobody writes half a line to a file that another one has left. */
		bool half = i + 1 == count && chance(w, 30) && !w->kinds.late && !w->kinds.forgets;
		if (half) {
			w->half_bytes = len = LINE_APART + pick(w, len - LINE_APART);
			w->half_in = w->out[which];
		}
		sim_append(&w->files, w->out[which], text, len);
	}
}

/* Who has the log open notices that it was renamed. In the first one's own time; the second one, in
 * a world where there is one, only later. */
static void writer_reopen(struct world *w)
{
	writer_finish_half(w);
	writer_open(w, 0);
	if (!w->kinds.late || chance(w, 20))
		writer_let_go(w, 1);
}

/* ---- Rotation -------------------------------------------------------------------------------- */

static const char *const endings[] = {"", ".gz", ".zst"};

static void rotated_name(char name[64], unsigned number, const char *ending)
{
	snprintf(name, 64, LOG ".%u%s", number, ending);
}

static void remove_file(struct world *w, const char *name)
{
	struct sim_file *file = sim_find(&w->files, name);
	if (!file)
		return;
	tell(w, "removes %s", name);
	if (strchr(name + sizeof(LOG) - 1, 'z')) { /* packed: what is in it is not known here */
		struct buf plain;
		struct sim_file known = {.used = false};
		struct body_decoder *decoder = body_decoder_new();
		struct slice in = buf_slice(&file->bytes), piece;
		const char *why;
		buf_init(&plain, SIM_FILE_MAX_BYTES);
		body_decoder_begin(
			decoder, coding_find(strstr(name, ".gz") ? SLICE("gzip") : SLICE("zstd")));
		while (body_decoder_next(decoder, &in, true, &piece, &why) == BODY_PIECE)
			buf_append(&plain, piece.data, piece.len);
		body_decoder_free(decoder);
		known.bytes = plain;
		file_excuse(w, &known);
		buf_release(&plain);
	} else {
		file_excuse(w, file);
	}
	sim_unlink(&w->files, name);
}

/* What is packed by now is renamed with its ending. */
static void rotate_names(struct world *w)
{
	char from[64], to[64];
	for (unsigned number = ROTATED_MAX; number > 0; number--)
		for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
			rotated_name(from, number, endings[i]);
			rotated_name(to, number + 1, endings[i]);
			if (!sim_find(&w->files, from))
				continue;
			if (number >= w->kinds.keep)
				remove_file(w, from);
			else
				sim_rename(&w->files, from, to);
		}
}

static void dated_name(struct world *w, char name[64])
{
	snprintf(name, 64, DIRECTORY "/app.log-2026%04u", ++w->dates);
}

static void rotate(struct world *w)
{
	char name[64];
	if (!log_file(w) || w->copy || w->packing[0] || w->rotations == ROTATIONS_MAX)
		return;
	w->rotations++;
	if (w->kinds.dates) {
		dated_name(w, name);
	} else {
		rotate_names(w);
		rotated_name(name, 1, "");
	}
	tell(w, "renames the log of %zu bytes to %s", log_file(w)->bytes.len, name);
	sim_rename(&w->files, LOG, name);
	if (chance(w, 50)) /* `create` */
		sim_make(&w->files, LOG);
	if (chance(w, 70))
		writer_reopen(w);
}

/* A copy, made in two steps, and the log is emptied in a third one. What is written between is lost
 * to all. */
static void copy_step(struct world *w)
{
	struct sim_file *file = log_file(w);
	char name[64];
	if (!w->copy) {
		if (!file || w->packing[0] || !file->bytes.len || w->rotations == ROTATIONS_MAX)
			return;
		writer_finish_half(w);
		w->rotations++;
		if (w->kinds.dates) {
			dated_name(w, name);
		} else {
			rotate_names(w);
			rotated_name(name, 1, "");
		}
		w->copy = sim_make(&w->files, name);
		sim_append(&w->files, w->copy, file->bytes.data, file->bytes.len / 2);
		tell(w, "begins to copy to %s (%" PRIu64 ")", name, w->copy->id.inode);
		return;
	}
	writer_finish_half(w);
	size_t had = w->copy->bytes.len;
	sim_append(&w->files, w->copy, file->bytes.data + had, file->bytes.len - had);
	size_t copied = file->bytes.len;
	if (chance(w, 20))
		writer_write(w, 0);
	writer_finish_half(w);
	file = log_file(w);
	if (file->bytes.len > copied) {
		struct sim_file rest = {.used = false};
		rest.bytes = (struct buf){.data = file->bytes.data + copied,
					  .len = file->bytes.len - copied};
		file_excuse(w, &rest);
	}
	sim_truncate(&w->files, file);
	file_put_head(w, file);
	tell(w, "has copied %zu bytes, and emptied the log", copied);
	w->copy = NULL;
}

/* ---- Packing --------------------------------------------------------------------------------- */

static void pack_gzip(struct sim_file *from, struct buf *out)
{
	struct gzip *gzip = gzip_new();
	int err = gzip_write(gzip, buf_slice(&from->bytes), true, out);
	ASSERT(!err);
	gzip_free(gzip);
}

static void pack_zstd(struct sim_file *from, struct buf *out)
{
	char *to = buf_reserve(out, ZSTD_compressBound(from->bytes.len));
	ASSERT(to);
	out->len += ZSTD_compress(to, ZSTD_compressBound(from->bytes.len), from->bytes.data,
				  from->bytes.len, 1);
}

/* Begins: half of the packed file is there. Ends: all of it is, and the other one is gone. */
static void pack_step(struct world *w)
{
	char name[100];
	struct buf packed;
	if (!w->packing[0]) {
		struct sim_file *found = NULL;
		for (size_t i = 0; i < SIM_FILES_MAX && !found; i++) {
			struct sim_file *file = &w->files.list[i];
			if (file->used && file->name && file != w->copy && !file->handles &&
			    strncmp(file->name, LOG, sizeof(LOG) - 1) == 0 &&
			    file->name[sizeof(LOG) - 1] && !strchr(file->name + sizeof(LOG), 'z') &&
			    chance(w, 50))
				found = file;
		}
		/* Nobody packs what is being written to. */
		if (!found || w->copy || found == w->out[0] || found == w->out[1])
			return;
		snprintf(w->packing, sizeof(w->packing), "%s", found->name);
		tell(w, "begins to pack %s", w->packing);
	}
	struct sim_file *from = sim_find(&w->files, w->packing);
	snprintf(name, sizeof(name), "%s%s", w->packing, w->step % 2 ? ".gz" : ".zst");
	buf_init(&packed, SIM_FILE_MAX_BYTES);
	if (w->step % 2)
		pack_gzip(from, &packed);
	else
		pack_zstd(from, &packed);
	struct sim_file *to = sim_make(&w->files, name);
	bool all = chance(w, 50);
	sim_append(&w->files, to, packed.data, all ? packed.len : packed.len / 2);
	for (size_t i = 1; i < ARRAY_LEN(endings); i++) { /* what an earlier step has made */
		snprintf(name, sizeof(name), "%s%s", w->packing, endings[i]);
		if (sim_find(&w->files, name) != to)
			sim_unlink(&w->files, name);
	}
	if (all) {
		to->changed_ns = from->changed_ns; /* as gzip and zstd do it */
		tell(w, "has packed %s", w->packing);
		sim_unlink(&w->files, w->packing);
		w->packing[0] = 0;
	}
	buf_release(&packed);
}

static void destroy(struct world *w)
{
	struct sim_file *file = log_file(w);
	if (!file || w->copy || w->half_bytes)
		return;
	if (chance(w, 50)) {
		tell(w, "empties the log of %zu bytes", file->bytes.len);
		file_excuse(w, file);
		sim_truncate(&w->files, file);
		return;
	}
	remove_file(w, LOG);
	if (chance(w, 50))
		writer_open(w, 0);
}

/* ---- Meanwhile ------------------------------------------------------------------------------- */

static void act(struct world *w)
{
	unsigned what = (unsigned)pick(w, 100);
	if (what < 60)
		writer_write(w, 0);
	else if (what < 70 && w->kinds.late && w->out[1])
		writer_write(w, 1);
	else if (what < 80)
		w->kinds.copies ? copy_step(w) : rotate(w);
	else if (what < 88)
		writer_reopen(w);
	else if (what < 95 && w->kinds.packs)
		pack_step(w);
	else if (what < 97 && w->kinds.empties)
		destroy(w);
	else if (w->kinds.late && !w->out[1])
		writer_open(w, 1);
}

static void meanwhile(void *owner)
{
	struct world *w = owner;
	if (w->busy || w->calm || pick(w, 100))
		return;
	w->busy = true;
	clock_virtual_advance(&w->clock, 1 + (int64_t)pick(w, 20000));
	act(w);
	clock_virtual_advance(&w->clock, 1 + (int64_t)pick(w, 20000));
	if (w->kinds.kills && !pick(w, 200) && w->agent)
		w->killed = w->files.down = true;
	w->busy = false;
}

/* ---- Collectors ------------------------------------------------------------------------------ */

static struct incarnation *incarnation_of(struct world *w, struct collector_of_sim *c, uint64_t id)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->list[i].id == id)
			return &c->list[i];
	if (c->count == INCARNATIONS_MAX) {
		fail(w, "there are too many incarnations");
		return &c->list[0];
	}
	struct incarnation *added = &c->list[c->count++];
	added->id = id;
	added->order = w->incarnations++;
	buf_init(&added->bytes, STREAM_MAX_BYTES);
	buf_init(&added->have, STREAM_MAX_BYTES);
	return added;
}

static bool incarnation_take(struct world *w, struct incarnation *in, uint64_t begin,
			     struct slice data)
{
	size_t end = (size_t)begin + data.len;
	if (end > in->bytes.len) {
		size_t more = end - in->bytes.len;
		char *bytes = buf_reserve(&in->bytes, more), *have = buf_reserve(&in->have, more);
		if (!bytes || !have) {
			fail(w, "a stream of %zu bytes", end);
			return false;
		}
		memset(bytes, 0, more);
		memset(have, 0, more);
		in->bytes.len = in->have.len = end;
	}
	for (size_t i = 0; i < data.len; i++)
		if (in->have.data[begin + i] && in->bytes.data[begin + i] != data.data[i])
			return false;
	for (size_t i = 0; i < data.len; i++)
		w->repeated += in->have.data[begin + i] != 0;
	memcpy(in->bytes.data + begin, data.data, data.len);
	memset(in->have.data + begin, 1, data.len);
	return true;
}

static void collector_answer_chunk(struct world *w, struct collector_of_sim *c,
				   const struct chunk_frame *frame, struct buf *answer)
{
	struct buf data;
	struct arena arena;
	struct chunk_data chunk;
	const struct chunk_fields *fields = &frame->fields;
	bool later = chance(w, w->later_percent);
	buf_init(&data, CHUNK_DATA_MAX_BYTES + CHUNK_ENDS_MAX_BYTES);
	arena_init(&arena, 8 << 20);
	int err = chunk_frame_unpack(frame, &data, &arena, &chunk);
	if (err || !slice_equal(fields->names.name, SLICE(LOG)) ||
	    !slice_equal(fields->names.source, SLICE("host1")))
		fail(w, "a chunk that is none: %s", err_text(err));
	struct incarnation *in = incarnation_of(w, c, fields->incarnation);
	const char *line = chunk.data.data, *behind = line + chunk.data.len;
	while (line + LINE_DIGITS < behind && *line == '#')
		line = (const char *)memchr(line, '\n', (size_t)(behind - line)) + 1;
	tell(w, "%s: %" PRIu64 " to %" PRIu64 " of %016" PRIx64 ": %.*s", later ? "later" : "takes",
	     chunk_begin(fields), fields->sequence_id, fields->incarnation,
	     behind - line < LINE_DIGITS ? 0 : LINE_DIGITS, line);
	bool taken = !later && incarnation_take(w, in, chunk_begin(fields), chunk.data);
	w->others += !later && !taken;
	buf_printf(answer, "%s: %u bytes ending at offset %" PRIu64 "%s\n",
		   later   ? "later"
		   : taken ? "ok"
			   : "other",
		   fields->data_bytes, fields->sequence_id - 1, taken ? "" : ": why");
	if (taken) {
		size_t begin = (size_t)chunk_begin(fields), end = (size_t)fields->sequence_id;
		const char *have = in->have.data, *before = memrchr(have, 0, begin),
			   *behind_all = memchr(have + end, 0, in->have.len - end);
		buf_printf(answer, "held: %zu to %zu of %016" PRIx64 "\n",
			   before ? (size_t)(before + 1 - have) : 0,
			   behind_all ? (size_t)(behind_all - have) : in->have.len, in->id);
	}
	buf_release(&data);
	arena_release(&arena);
}

static void collector_post(struct world *w, struct collector_of_sim *c, struct slice body,
			   struct buf *answer)
{
	struct chunk_frame frame;
	const char *why;
	enum chunk_found found;
	w->posts++;
	if (w->forgotten)
		memset(w->excused, 1, w->lines);
	w->forgotten = false;
	while ((found = chunk_frame_next(&body, &frame, &why)) != CHUNK_NONE) {
		if (found == CHUNK_DAMAGED)
			fail(w, "a frame is damaged: %s", why);
		else
			collector_answer_chunk(w, c, &frame, answer);
	}
}

static void collector_list(struct collector_of_sim *c, struct buf *answer)
{
	buf_append_text(answer, "{\"streams\":[");
	for (size_t i = 0; i < c->count; i++) {
		const struct incarnation *in = &c->list[i];
		buf_printf(answer,
			   "%s{\"datatype\":\"app\",\"name\":\"" LOG
			   "\",\"incarnation\":\"%016" PRIx64 "\",\"made\":%zu,\"held_to\":%zu}",
			   i ? "," : "", in->id, i + 1, in->bytes.len);
	}
	buf_append_text(answer, "]}");
}

/* What is held from an offset on, to the next hole. */
static void collector_export(struct collector_of_sim *c, const char *path, struct buf *answer,
			     int64_t *offset)
{
	const char *from = strstr(path, "from="), *to = strstr(path, "to="),
		   *id = strstr(path, "%40");
	ASSERT(from && to && id);
	size_t begin = strtoul(from + 5, NULL, 10), end = strtoul(to + 3, NULL, 10);
	uint64_t incarnation = strtoull(id + 3, NULL, 16);
	for (size_t i = 0; i < c->count; i++) {
		const struct incarnation *in = &c->list[i];
		if (in->id != incarnation)
			continue;
		while (begin < in->have.len && !in->have.data[begin])
			begin++;
		*offset = (int64_t)begin;
		for (; begin < end && begin < in->have.len && in->have.data[begin]; begin++)
			buf_append_char(answer, in->bytes.data[begin]);
	}
}

static void tell_plan(const struct world *w)
{
	const struct followed *f = w->agent->count ? w->agent->list[0] : NULL;
	char text[600];
	int len = 0;
	for (size_t i = 0; w->trace && f && i < f->plan_count && len < 400; i++) {
		const struct segment *segment = &f->plan[i];
		len += snprintf(text + len, sizeof(text) - (size_t)len,
				" [%" PRIu64 ": %" PRIu64 "/%" PRIu64 " end %" PRId64 "%s]",
				segment->id.inode, segment->at, segment->bytes,
				(int64_t)segment->end, segment->content ? "" : " closed");
	}
	if (len)
		tell(w, "       %" PRIu64 "%s%s%s", f->offset, text, f->look_again ? " again" : "",
		     f->version > w->agent->site.saved_version ? " not saved" : "");
}

static int net_call(struct agent_net *net, const char *collector, struct http_call *call,
		    struct errbuf *e)
{
	struct world *w = CONTAINER_OF(net, struct world, net);
	struct collector_of_sim *c = &w->collectors[strcmp(collector, "two") == 0];
	struct buf answer;
	tell_plan(w);
	bool cut = chance(w, w->cut_percent), arrives = !cut || chance(w, 50);
	if (!w->calm)
		clock_virtual_advance(&w->clock, (int64_t)pick(w, 200000));
	meanwhile(w);
	if (w->killed || (w->kinds.kills && !w->calm && chance(w, 1))) {
		w->killed = w->files.down = true;
		cut = true;
		arrives = chance(w, 50);
	}
	buf_init(&answer, 32 << 20);
	if (arrives && call->body.data)
		collector_post(w, c, call->body, &answer);
	else if (arrives && strncmp(call->path, "/api/streams/export", 19) == 0)
		collector_export(c, call->path, &answer, &call->offset);
	else if (arrives)
		collector_list(c, &answer);
	call->status = 200;
	if (chance(w, w->odd_percent)) {
		buf_clear(&answer);
		buf_append_text(&answer, "<html>ok: 3 bytes ending at offset 7\n</html>");
		call->status = 502;
	}
	int err = cut ? errbuf_set(e, ERR_TIMEOUT, "no answer") : 0;
	if (!err)
		call->take(call->owner, call->status, buf_slice(&answer));
	buf_release(&answer);
	meanwhile(w);
	return err;
}

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
	const struct sim_file *file = log_file(w);
	memset(w->excused, 1, w->lines);
	w->begun_anew += w->rotations > 0;
	for (size_t i = 0; i < log->plan_count && file; i++)
		if (file_id_equal(&file->id, &log->plan[i].id))
			file_set_excused(w, file, false);
}

static void turn(struct world *w)
{
	const struct followed *log = w->agent->list[0];
	bool knew = log->begun;
	int64_t wait_ms = agent_turn(w->agent);
	if (!knew && log->begun)
		excuse_what_came_before(w, log);
	tell_plan(w);
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
		act(w);
	if (what == 20 && w->kinds.fulls)
		w->files.full = !w->files.full;
	if (what == 21 && log_file(w))
		log_file(w)->unreadable = chance(w, 30);
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
	writer_finish_half(w);
	while (w->copy)
		copy_step(w);
	while (w->packing[0])
		pack_step(w);
	/* What came late to a renamed file is found when the log is renamed the next time. */
	if (w->kinds.late && !w->kinds.copies) {
		w->rotations = smaller_of((int64_t)w->rotations, ROTATIONS_MAX - 1);
		rotate(w);
		writer_reopen(w);
		writer_write(w, 0);
		writer_finish_half(w);
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

/* ---- What must be so ------------------------------------------------------------------------- */

struct check {
	struct world *w;
	ssize_t last; /* line */
	size_t garbage;
};

/* A file that is gone may be taken for another one that begins alike, or has its inode: its bytes
 * then come under its name, and a collector that has seen the first notices. */
static bool is_alike(const struct world *w)
{
	return w->destroyed && (w->kinds.heads || !w->files.has_births);
}

static void check_line(struct check *check, struct slice line)
{
	struct world *w = check->w;
	size_t dots = 0, number = 0;
	if (line.len && line.data[0] == '#')
		return;
	while (dots < line.len && line.data[line.len - 1 - dots] == '.')
		dots++;
	size_t before = line.len - dots;
	if (before < LINE_DIGITS || !line_read(line.data + before - LINE_DIGITS, &number) ||
	    number >= w->lines || line_dots(number) != dots) {
		check->garbage++;
		return;
	}
	check->garbage += before > LINE_DIGITS;
	bool once = !w->ambiguous && !is_alike(w);
	if (w->seen[number] && once)
		fail(w, "line %zu is there twice", number);
	bool ordered = !w->ambiguous && !w->kinds.late && !is_alike(w);
	if ((ssize_t)number < check->last && ordered)
		fail(w, "line %zu comes behind line %zd", number, check->last);
	w->seen[number] = 1;
	check->last = (ssize_t)number;
}

static void check_run(struct check *check, struct slice run)
{
	while (run.len) {
		const char *newline = memchr(run.data, '\n', run.len);
		size_t len = newline ? (size_t)(newline - run.data) : run.len;
		if (newline)
			check_line(check, (struct slice){run.data, len});
		else
			check->garbage++;
		len += newline != NULL;
		run = (struct slice){run.data + len, run.len - len};
	}
}

static void check_runs(struct check *check, const struct incarnation *in)
{
	for (size_t at = 0; at < in->have.len;) {
		size_t end = at;
		while (end < in->have.len && in->have.data[end])
			end++;
		check_run(check, (struct slice){in->bytes.data + at, end - at});
		at = end;
		while (at < in->have.len && !in->have.data[at])
			at++;
	}
}

/* What both collectors have of an incarnation, put together. Where a checkpoint was lost, they may
 * have different bytes at an offset, since they know nothing of each other: each has its lines. */
static void check_incarnation(struct check *check, struct incarnation *in,
			      const struct incarnation *other)
{
	bool same = true;
	for (size_t i = 0; other && i < other->have.len; i++) {
		struct slice byte = {other->bytes.data + i, 1};
		if (!other->have.data[i] || incarnation_take(check->w, in, i, byte))
			continue;
		same = false;
		if (!check->w->ambiguous)
			fail(check->w, "the collectors have different bytes at %zu", i);
	}
	check_runs(check, in);
	if (!same)
		check_runs(check, other);
}

static const char *file_of_line(struct world *w, size_t line)
{
	char text[4000];
	size_t len = line_of(line, text);
	for (size_t i = 0; i < SIM_FILES_MAX; i++) {
		const struct sim_file *file = &w->files.list[i];
		if (file->used && file->bytes.len &&
		    memmem(file->bytes.data, file->bytes.len, text, len)) {
			tell(w, "%s is %" PRIu64, file->name ? file->name : "it", file->id.inode);
			return file->name ? file->name : "a file without a name";
		}
	}
	return "no file, or a packed one";
}

static int check_order(const void *left, const void *right)
{
	const struct incarnation *a = left, *b = right;
	return (a->order > b->order) - (a->order < b->order);
}

/* Puts what the collectors have of each incarnation in the list of the first one, in order. */
static void check_gather(struct world *w)
{
	struct collector_of_sim *one = &w->collectors[0], *two = &w->collectors[1];
	for (size_t i = 0; i < two->count; i++) {
		struct incarnation *in = incarnation_of(w, one, two->list[i].id);
		in->order = (size_t)smaller_of((int64_t)in->order, (int64_t)two->list[i].order);
	}
	qsort(one->list, one->count, sizeof(*one->list), check_order);
}

static void check_all(struct world *w)
{
	struct check check = {.w = w, .last = -1};
	struct collector_of_sim *one = &w->collectors[0], *two = &w->collectors[1];
	if (w->forgotten) /* nothing was sent since, so the log was not begun before */
		memset(w->excused, 1, w->lines);
	check_gather(w);
	for (size_t i = 0; i < one->count; i++) {
		const struct incarnation *other = NULL;
		for (size_t j = 0; j < two->count; j++)
			if (two->list[j].id == one->list[i].id)
				other = &two->list[j];
		if (other && is_alike(w))
			return; /* nothing can be said */
		check_incarnation(&check, &one->list[i], other);
	}
	for (size_t i = 0; i < w->lines; i++)
		if (!w->seen[i] && !w->excused[i])
			return fail(w, "line %zu of %zu is missing; it is in %s", i, w->lines,
				    file_of_line(w, i));
	if (check.garbage > w->destroyed * 2 + w->begun_anew && !w->ambiguous)
		fail(w, "%zu lines are none, %zu contents were destroyed, %zu times it began anew",
		     check.garbage, w->destroyed, w->begun_anew);
	if (w->others && !w->ambiguous && !is_alike(w))
		fail(w, "%zu chunks had other bytes than were there", w->others);
}

/* ---- Runs ------------------------------------------------------------------------------------ */

static void world_open(struct world *w, uint64_t seed)
{
	random_init(&w->random, seed);
	clock_virtual_init(&w->clock, INT64_C(1700000000000000));
	sim_files_init(&w->files, &w->clock.clock);
	w->files.meanwhile = meanwhile;
	w->files.owner = w;
	w->files.has_births = chance(w, 50);
	w->files.tick_ns = chance(w, 50) ? 4000000 : 1000;
	w->net.call = net_call;
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
	writer_open(w, 0);
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
	writer_let_go(w, 0);
	writer_let_go(w, 1);
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
		check_all(w);
	world_close(w);
	if (w->failure[0])
		printf("GRANARY_SEED=%" PRIu64 ", step %zu: %s\n", seed, w->step, w->failure);
	return !w->failure[0];
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
