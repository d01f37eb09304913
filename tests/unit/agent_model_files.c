/* Files of the model of the agent: the lines of a log, the programs that write it, rotate, copy,
 * empty and pack it, and how these come between any two operations of the agent. */
#include "agent_model.h"

#include <inttypes.h>

#include <zstd.h>

#include "http/coding.h"
#include "wire/number.h"

enum {
	LINE_APART = 4, /* lines differ by so many digits: 16^4 is more than LINES_MAX */
};

/* ---- Lines ----------------------------------------------------------------------------------- */

size_t model_line_dots(size_t line)
{
	size_t spread = line % 97 == 0 ? 3000 : line % 11 == 0 ? 200 : 20;
	return (line * 2654435761u >> 7) % spread;
}

size_t model_line_of(size_t line, char *to)
{
	size_t dots = model_line_dots(line);
	for (size_t i = 0; i < LINE_DIGITS; i++)
		to[i] = "0123456789abcdef"[line >> 4 * i & 15];
	memset(to + LINE_DIGITS, '.', dots);
	to[LINE_DIGITS + dots] = '\n';
	return LINE_DIGITS + dots + 1;
}

bool model_line_read(const char *digits, size_t *number)
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

/* Files begin alike in some worlds, by few bytes or by many. */
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

void model_set_excused(struct world *w, const struct sim_file *file, bool excused)
{
	const char *at = file->bytes.data, *end = at + file->bytes.len;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t number;
		if (end - at >= LINE_DIGITS && model_line_read(at, &number) && number < LINES_MAX)
			w->excused[number] = excused;
		at = newline ? newline + 1 : end;
	}
}

/* The content goes, and is nowhere else: its lines may be missing. */
static void file_excuse(struct world *w, const struct sim_file *file)
{
	model_set_excused(w, file, true);
	w->destroyed++;
}

/* ---- Writers --------------------------------------------------------------------------------- */

struct sim_file *model_log_file(struct world *w)
{
	return sim_find(&w->files, LOG);
}

void model_writer_let_go(struct world *w, unsigned which)
{
	struct sim_file *file = w->out[which];
	w->out[which] = NULL;
	if (file) {
		file->handles--;
		sim_release(&w->files, file);
	}
}

void model_writer_open(struct world *w, unsigned which)
{
	struct sim_file *file = model_log_file(w);
	model_writer_let_go(w, which);
	if (!file)
		file = sim_make(&w->files, LOG);
	if (!file->bytes.len)
		file_put_head(w, file);
	file->handles++;
	w->out[which] = file;
}

void model_writer_finish_half(struct world *w)
{
	char text[LINE_MAX_BYTES];
	if (!w->half_bytes)
		return;
	size_t len = model_line_of(w->lines - 1, text);
	/* The file may have been removed meanwhile, when the line could not be read off it. */
	w->excused[w->lines - 1] |= !w->half_in->name;
	sim_append(&w->files, w->half_in, text + w->half_bytes, len - w->half_bytes);
	w->half_bytes = 0;
}

void model_writer_write(struct world *w, unsigned which)
{
	char text[LINE_MAX_BYTES];
	size_t count = chance(w, 5) ? 1 + pick(w, 300) : 1 + pick(w, 10);
	if (!w->out[which])
		model_writer_open(w, which);
	model_writer_finish_half(w);
	for (size_t i = 0; i < count && w->lines < LINES_MAX; i++) {
		/* A file that has no name is found by nobody who has not opened it before. */
		w->excused[w->lines] = !w->out[which]->name;
		size_t len = model_line_of(w->lines++, text);
		/* Nobody writes half a line to a file that another one has left. */
		bool half = i + 1 == count && chance(w, 30) && !w->kinds.late && !w->kinds.forgets;
		if (half) {
			w->half_bytes = len = LINE_APART + pick(w, len - LINE_APART);
			w->half_in = w->out[which];
		}
		sim_append(&w->files, w->out[which], text, len);
	}
}

void model_writer_reopen(struct world *w)
{
	model_writer_finish_half(w);
	model_writer_open(w, 0);
	if (!w->kinds.late || chance(w, 20))
		model_writer_let_go(w, 1);
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

/* A file that is packed by now is renamed with its ending. */
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

void model_rotate(struct world *w)
{
	char name[64];
	if (!model_log_file(w) || w->copy || w->packing[0] || w->rotations == ROTATIONS_MAX)
		return;
	w->rotations++;
	if (w->kinds.dates) {
		dated_name(w, name);
	} else {
		rotate_names(w);
		rotated_name(name, 1, "");
	}
	tell(w, "renames the log of %zu bytes to %s", model_log_file(w)->bytes.len, name);
	sim_rename(&w->files, LOG, name);
	if (chance(w, 50)) /* `create` */
		sim_make(&w->files, LOG);
	if (chance(w, 70))
		model_writer_reopen(w);
}

void model_copy_step(struct world *w)
{
	struct sim_file *file = model_log_file(w);
	char name[64];
	if (!w->copy) {
		if (!file || w->packing[0] || !file->bytes.len || w->rotations == ROTATIONS_MAX)
			return;
		model_writer_finish_half(w);
		w->rotations++;
		if (w->kinds.dates) {
			dated_name(w, name);
		} else {
			rotate_names(w);
			rotated_name(name, 1, "");
		}
		w->copy = sim_make(&w->files, name);
		if (chance(w, 50)) /* it is empty until then */
			sim_append(&w->files, w->copy, file->bytes.data, file->bytes.len / 2);
		tell(w, "begins to copy to %s (%" PRIu64 ")", name, w->copy->id.inode);
		return;
	}
	model_writer_finish_half(w);
	size_t had = w->copy->bytes.len;
	sim_append(&w->files, w->copy, file->bytes.data + had, file->bytes.len - had);
	size_t copied = file->bytes.len;
	if (chance(w, 20))
		model_writer_write(w, 0);
	model_writer_finish_half(w);
	file = model_log_file(w);
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

void model_pack_step(struct world *w)
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
	for (size_t i = 1; i < ARRAY_LEN(endings); i++) { /* an earlier step has made it */
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
	struct sim_file *file = model_log_file(w);
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
		model_writer_open(w, 0);
}

/* ---- Meanwhile ------------------------------------------------------------------------------- */

void model_act(struct world *w)
{
	unsigned what = (unsigned)pick(w, 100);
	if (what < 60)
		model_writer_write(w, 0);
	else if (what < 70 && w->kinds.late && w->out[1])
		model_writer_write(w, 1);
	else if (what < 80)
		w->kinds.copies ? model_copy_step(w) : model_rotate(w);
	else if (what < 88)
		model_writer_reopen(w);
	else if (what < 95 && w->kinds.packs)
		model_pack_step(w);
	else if (what < 97 && w->kinds.empties)
		destroy(w);
	else if (w->kinds.late && !w->out[1])
		model_writer_open(w, 1);
}

void model_meanwhile(void *owner)
{
	struct world *w = owner;
	if (w->busy || w->calm || pick(w, 100))
		return;
	w->busy = true;
	clock_virtual_advance(&w->clock, 1 + (int64_t)pick(w, 20000));
	model_act(w);
	clock_virtual_advance(&w->clock, 1 + (int64_t)pick(w, 20000));
	if (w->kinds.kills && !pick(w, 200) && w->agent)
		w->killed = w->files.down = true;
	w->busy = false;
}
