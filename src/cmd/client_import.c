/* import: samples from files and pipes, by the server's own door /write, so that its limits hold.
 *
 * One request is under way while the next body is made (import_text.h), so lines arrive in the
 * order of the file: of two samples of one time the later stays. What cannot be read, and what the
 * server refuses, goes to FILE.rejected with its reason above it, in the format of the file, so
 * that it can be imported when it is mended. FILE.state says how far the import came; it is
 * replaced when what was answered is on disk, and goes with the end. So the same command again goes
 * on, and what it sends twice are the same samples. */
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exec.h"
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "cmd/client_state.h"
#include "cmd/import_text.h"
#include "loop/job.h"
#include "wire/timetext.h"

enum {
	IMPORT_ASKED_BYTES = 256,
	IMPORT_TENANT_BYTES = 256,
	IMPORT_ANSWER_MAX_BYTES = 4 << 20,
	IMPORT_ERRORS_BYTES = 8 << 20, /* an answer's tree */
	IMPORT_ATTEMPTS = 60,          /* of a body that the server does not take now */
	IMPORT_PAUSE_MS = 1000,
	IMPORT_TOLD_TTY_MS = 500,
	IMPORT_TOLD_MS = 10000,
};

struct client_import_args {
	struct command_args line;
	const char *format, *precision;
	struct command_words files;
};

/* A body on its way: a job's, until that has ended. */
struct import_post {
	const struct importing *im;
	struct import_batch batch;
	struct job *job;
	struct http_client *http;
	struct buf answer;
	bool done;
	bool stored;      /* something of the body is */
	uint64_t refused; /* lines of the body that the server refused, some only in part */
	uint64_t texts;   /* fields of the body that the server left out, since they are texts */
	int err;
	struct errbuf error;
};

/* What was answered: of the lines before importing.line. Samples are those of other formats than
 * line protocol, of which a line may hold several, and counts as refused where one is. */
struct import_count {
	uint64_t sent; /* lines of bodies */
	uint64_t refused_lines, refused_samples;
	uint64_t nans;
	uint64_t texts; /* fields that are texts, and left out */
};

/* One file. */
struct importing {
	const struct command_args *args;
	const char *tenant;
	struct import_source *source;
	struct import_text text;
	char path[64]; /* of the door, with the precision */
	enum line_precision precision;
	char asked[IMPORT_ASKED_BYTES]; /* which file, and how */
	struct client_state state;
	char rejected_path[CLIENT_STATE_PATH_BYTES];
	int rejected_fd; /* -1: nothing was refused yet */
	uint64_t rejected_bytes;
	struct import_count count;
	uint64_t offset, line, hash; /* of the text: all before is answered */
	bool resumed;
	struct import_post posts[2];
	struct task_queue queue;
	struct clock *clock;
	int64_t begun_ms, told_ms;
	uint64_t begun_sent, begun_raw_bytes;
};

static int importing_complain(const struct importing *im, const char *path, int err)
{
	command_complain(im->args, "%s: %s", path, err_text(err));
	return err;
}

/* ---- Sending, on the job's thread -------------------------------------------------------------
 */

static bool import_take_answer(void *owner, UNUSED long status, struct slice piece)
{
	return buf_append(owner, piece.data, piece.len) == 0;
}

static bool import_may_come_later(const struct http_call *call, int err)
{
	if (err)
		return err == ERR_NOT_FOUND || err == ERR_TIMEOUT || err == ERR_INVALID;
	return call->status == 503 || call->status == 429;
}

/* A server that is away for a while, or busy, is asked again. */
static int import_post_body(struct import_post *post, struct slice body, struct http_call *call)
{
	char tenant[IMPORT_TENANT_BYTES + 16];
	snprintf(tenant, sizeof(tenant), "X-Tenant: %s", post->im->tenant);
	for (int i = 1;; i++) {
		*call = (struct http_call){.path = post->im->path,
					   .headers = {tenant, "Content-Type: text/plain"},
					   .body = body,
					   .take = import_take_answer,
					   .owner = &post->answer};
		buf_clear(&post->answer);
		int err = http_client_call(post->http, call, &post->error);
		if (i == IMPORT_ATTEMPTS || !import_may_come_later(call, err))
			return err;
		int64_t pause_ms = call->retry_after_ms ? call->retry_after_ms : IMPORT_PAUSE_MS;
		err = job_sleep(post->job, pause_ms);
		if (err)
			return err;
	}
}

/* Notes each fault of a body, and behind the faults of a line the line itself. */
static void import_note_refused(struct import_post *post, struct slice body, uint64_t first_line,
				const struct json *errors)
{
	struct import_lines lines;
	bool is_last = false;
	import_lines_init(&lines, body, first_line, post->im->precision);
	for (const struct json *error = errors->first; error; error = error->next) {
		struct slice message = SLICE("");
		uint64_t line = (uint64_t)larger_of(client_i64(error, "line"), 1) + first_line - 1;
		(void)!json_get_text(error, "message", &message, NULL);
		while (!is_last && lines.end_line <= line)
			is_last = !import_lines_next(&lines);
		import_batch_say(&post->batch, post->im->source->name, line,
				 (uint64_t)client_i64(error, "column"), message);
		const struct json *next = error->next;
		if (next && (uint64_t)client_i64(next, "line") + first_line - 1 < lines.end_line)
			continue;
		import_batch_refuse(&post->batch, line, lines.text);
		post->refused++;
	}
	import_lines_release(&lines);
}

static int import_post_send(struct import_post *post, struct slice body, uint64_t first_line);

/* The server names some faults only: where there were more, each half is sent again, which stores
 * nothing new, until all are named. `texts`: of what was sent before. */
static int import_post_halves(struct import_post *post, struct slice body, size_t half,
			      uint64_t first_line, uint64_t texts)
{
	post->texts = texts;
	const struct slice halves[] = {{body.data, half}, {body.data + half, body.len - half}};
	int err = import_post_send(post, halves[0], first_line);
	return err ? err
		   : import_post_send(post, halves[1], first_line + import_count_lines(halves[0]));
}

static int import_read_refusal(struct import_post *post, struct slice body, uint64_t first_line,
			       uint64_t texts)
{
	const struct json *errors;
	struct json *root;
	struct arena arena;
	arena_init(&arena, IMPORT_ERRORS_BYTES);
	int err = json_parse(buf_slice(&post->answer), &arena, &root, NULL);
	err = err ? err : json_get_array(root, "errors", &errors, NULL);
	bool all = !err && (uint64_t)client_i64(root, "dropped") <= errors->count;
	size_t half = err || all ? 0 : import_lines_half(body, post->im->precision);
	post->stored |= !err && client_i64(root, "stored") > 0;
	if (!err && !half)
		import_note_refused(post, body, first_line, errors);
	arena_release(&arena);
	return half ? import_post_halves(post, body, half, first_line, texts) : err;
}

static int import_post_send(struct import_post *post, struct slice body, uint64_t first_line)
{
	char sentence[1024];
	struct http_call call;
	uint64_t texts = post->texts;
	int err = import_post_body(post, body, &call);
	post->stored |= !err && call.status < 300;
	post->texts += err ? 0 : (uint64_t)call.left_out;
	if (err || call.status < 300)
		return err;
	/* A server may be told to take less at once. */
	size_t half = call.status == 413 ? import_lines_half(body, post->im->precision) : 0;
	if (half)
		return import_post_halves(post, body, half, first_line, texts);
	if (call.status == 400 && import_read_refusal(post, body, first_line, texts) == 0)
		return 0;
	if (post->error.text[0])
		return ERR_INVALID;
	http_client_sentence(buf_slice(&post->answer), sentence, sizeof(sentence));
	return errbuf_set(&post->error, ERR_INVALID, "%s", sentence);
}

static void import_post_run(UNUSED struct job *job, void *owner)
{
	struct import_post *post = owner;
	post->err = import_post_send(post, buf_slice(&post->batch.body), 1);
}

static void import_post_done(void *owner)
{
	struct import_post *post = owner;
	post->done = true;
}

static int import_post_start(struct importing *im, struct import_post *post)
{
	post->done = !post->batch.body.len;
	post->stored = false;
	post->refused = post->texts = 0;
	post->err = 0;
	post->error.text[0] = 0;
	if (post->done)
		return 0;
	int err = job_start("import", import_post_run, import_post_done, post, &im->queue.executor,
			    &post->job);
	post->done = err;
	return err;
}

static void import_post_wait(struct importing *im, struct import_post *post)
{
	while (!post->done)
		(void)task_queue_wait(&im->queue);
	job_free(post->job);
	post->job = NULL;
}

/* ---- State ------------------------------------------------------------------------------------
 */

static bool importing_keeps_state(const struct importing *im)
{
	return im->source->size_bytes > 0;
}

static int importing_save(struct importing *im)
{
	if (!importing_keeps_state(im))
		return 0;
	if (im->rejected_fd >= 0 && fdatasync(im->rejected_fd))
		return importing_complain(im, im->rejected_path, -errno);
	return client_state_save(&im->state);
}

/* A FILE.rejected that the user has removed is begun again; one that was cut is not gone on with,
 * since its lines would be lost. */
static int importing_check_rejected(struct importing *im)
{
	struct stat found;
	if (stat(im->rejected_path, &found)) {
		im->rejected_bytes = 0;
		return errno == ENOENT ? 0 : importing_complain(im, im->rejected_path, -errno);
	}
	if ((uint64_t)found.st_size >= im->rejected_bytes)
		return 0;
	command_complain(im->args,
			 "%s has %lld bytes, fewer than the %" PRIu64
			 " that %s says; the import goes on when the file has been moved away, and "
			 "begins another one",
			 im->rejected_path, (long long)found.st_size, im->rejected_bytes,
			 im->state.path);
	return ERR_INVALID;
}

static int importing_read_state(struct importing *im)
{
	struct errbuf e;
	if (!importing_keeps_state(im))
		return 0;
	int err = client_state_read(&im->state);
	if (err == ERR_NOT_FOUND)
		return 0;
	if (err == ERR_EXISTS)
		command_complain(
			im->args,
			"%s is of another file, tenant, format or precision than %s, %" PRIu64
			" bytes, %s; without it the import begins at the start",
			im->state.path, im->source->name, im->source->size_bytes,
			strchr(im->asked, ' ') + 1);
	if (!err && !im->line) {
		command_complain(im->args,
				 "%s is no state that import has written; without it the import "
				 "begins at the start",
				 im->state.path);
		err = ERR_INVALID;
	}
	err = err ? err : importing_check_rejected(im);
	if (err)
		return err;
	im->resumed = true;
	err = import_text_skip(&im->text, im->offset, im->line, im->hash, &e);
	if (err)
		command_complain(im->args,
				 "%s; %s says so, and without it the import begins at the start",
				 e.text, im->state.path);
	return err;
}

/* ---- What was refused -------------------------------------------------------------------------
 */

static int importing_append_rejected(struct importing *im, struct slice text)
{
	size_t done;
	int err = file_write_all(im->rejected_fd, text, &done);
	im->rejected_bytes += done;
	return err ? importing_complain(im, im->rejected_path, err) : 0;
}

/* The first one makes the file, which says what its lines are. */
static int importing_open_rejected(struct importing *im)
{
	off_t begin = (off_t)im->rejected_bytes;
	char title[64];
	struct errbuf e;
	int err = file_open_own(im->rejected_path, 0644, &im->rejected_fd, &e);
	if (err) {
		command_complain(im->args, "%s", e.text);
		return err;
	}
	if (ftruncate(im->rejected_fd, begin) || lseek(im->rejected_fd, begin, SEEK_SET) < 0)
		return importing_complain(im, im->rejected_path, -errno);
	if (begin)
		return 0;
	if (im->text.format == IMPORT_LINES)
		snprintf(title, sizeof(title), IMPORT_PRECISION_MARK "%s\n",
			 strchr(im->path, '=') + 1);
	else
		snprintf(title, sizeof(title), IMPORT_FORMAT_MARK "%s\n",
			 import_format_words[im->text.format]);
	return importing_append_rejected(im, slice_of(title));
}

static int importing_write_rejected(struct importing *im, const struct buf *refused)
{
	struct slice text = buf_slice(refused);
	if (refused->failed) {
		command_complain(im->args, "%s: what is refused at once does not fit into memory",
				 im->source->name);
		return ERR_LIMIT;
	}
	if (!text.len)
		return 0;
	int err = im->rejected_fd < 0 ? importing_open_rejected(im) : 0;
	return err ? err : importing_append_rejected(im, text);
}

/* ---- Progress ---------------------------------------------------------------------------------
 */

static void importing_print_time(char to[32], double seconds)
{
	snprintf(to, 32, "%d:%02d:%02d", (int)(seconds / 3600), (int)(seconds / 60) % 60,
		 (int)seconds % 60);
}

static void importing_print_counts(const struct importing *im)
{
	fprintf(stderr, "%s: %" PRIu64 " lines", im->source->name, im->line - 1);
	if (im->text.format != IMPORT_LINES)
		fprintf(stderr, ", %" PRIu64 " samples", im->count.sent);
}

static void importing_tell(struct importing *im, bool is_last)
{
	int64_t now_ms = clock_mono_ms(im->clock);
	bool tty = isatty(STDERR_FILENO);
	if (is_last || now_ms - im->told_ms < (tty ? IMPORT_TOLD_TTY_MS : IMPORT_TOLD_MS)) {
		if (is_last && tty)
			fprintf(stderr, "\r\033[K");
		return;
	}
	im->told_ms = now_ms;
	char left[32] = "?";
	const struct import_source *source = im->source;
	double seconds = (double)(now_ms - im->begun_ms) / 1000;
	double done = (double)(source->raw_bytes - im->begun_raw_bytes);
	double rest = (double)source->size_bytes - (double)source->raw_bytes;
	if (source->size_bytes && done > 0)
		importing_print_time(left, rest > 0 ? seconds * rest / done : 0);
	fprintf(stderr, tty ? "\r\033[K" : "");
	importing_print_counts(im);
	fprintf(stderr, ", %.0f a second", (double)(im->count.sent - im->begun_sent) / seconds);
	if (source->size_bytes)
		fprintf(stderr, ", %.0f %%, %s left",
			100 * (double)source->raw_bytes / (double)source->size_bytes, left);
	fprintf(stderr, tty ? "" : "\n");
}

/* ---- A file -----------------------------------------------------------------------------------
 */

/* A body was answered. */
static int importing_take_post(struct importing *im, struct import_post *post)
{
	const struct import_batch *batch = &post->batch;
	bool first = !im->count.sent;
	if (post->err) {
		command_complain(im->args, "%s: %s%s", im->source->name,
				 post->error.text[0] ? post->error.text : err_text(post->err),
				 importing_keeps_state(im)
					 ? "; the same command again goes on from here"
					 : "");
		return post->err;
	}
	/* What is refused and cannot be written down is refused, and told, again. */
	uint64_t rejected_bytes = im->rejected_bytes;
	bool whole = batch->format == IMPORT_LINES;
	int err = importing_write_rejected(im, &batch->refused);
	if (err) {
		im->rejected_bytes = rejected_bytes;
		return err;
	}
	im->count.sent += batch->lines;
	im->count.refused_lines += batch->refused_lines + (whole ? post->refused : 0);
	im->count.refused_samples += whole ? 0 : post->refused;
	im->count.nans += batch->nans;
	im->count.texts += post->texts;
	im->offset = batch->offset;
	im->line = batch->line;
	im->hash = batch->hash;
	if (first && batch->refused.len && !post->stored) {
		command_complain(im->args,
				 "%s: nothing up to line %" PRIu64
				 " could be stored as %s; %s says why",
				 im->source->name, im->line - 1,
				 import_format_names[im->text.format], im->rejected_path);
		im->offset = 0; /* there is nothing to go on with */
		return ERR_INVALID;
	}
	return 0;
}

/* The next body goes before what the last one did is saved: the server need not wait for the disk.
 */
static int importing_go_on(struct importing *im, struct import_post *answered,
			   struct import_post *next)
{
	int err = 0;
	if (answered) {
		import_post_wait(im, answered);
		err = importing_take_post(im, answered);
	}
	if (err)
		return err;
	err = import_post_start(im, next);
	if (!err && answered)
		err = importing_save(im);
	if (err)
		import_post_wait(im, next);
	return err;
}

/* One body is under way while the next is made. The last one is empty. */
static int importing_send_all(struct importing *im)
{
	struct import_post *under_way = NULL;
	struct errbuf e;
	bool more = true;
	int err = 0;
	for (size_t at = 0; !err && more; at = 1 - at) {
		struct import_post *post = &im->posts[at];
		int broken = import_text_batch(&im->text, &post->batch, &e);
		more = !broken && (post->batch.body.len || post->batch.refused.len);
		if (broken) {
			buf_clear(&post->batch.body);
			post->batch.offset = im->offset;
		}
		err = importing_go_on(im, under_way, post);
		under_way = post;
		importing_tell(im, !more);
		if (broken && !err) {
			command_complain(im->args, "%s", e.text);
			return broken;
		}
	}
	return err ? err : importing_take_post(im, under_way);
}

static int importing_set_paths(struct importing *im, const char *path, const char *precision)
{
	const char *base = strcmp(path, "-") == 0 ? "import" : path;
	bool fits = client_state_set_path(&im->state, base) &&
		    snprintf(im->rejected_path, sizeof(im->rejected_path), "%s.rejected", base) <
			    (int)sizeof(im->rejected_path);
	snprintf(im->path, sizeof(im->path), "/write?precision=%s", precision);
	snprintf(im->asked, sizeof(im->asked), "%" PRIu64 " %s %s %s", im->source->size_bytes,
		 im->tenant, import_format_words[im->text.format], precision);
	im->state.asked = slice_of(im->asked);
	if (!fits)
		command_complain(im->args, "%s: the name is too long", path);
	return fits ? line_precision_parse(slice_of(precision), &im->precision) : ERR_INVALID;
}

/* As --precision says it, else the file; NULL after a complaint. */
static const char *importing_precision(const struct importing *im, struct slice said, uint64_t line)
{
	static const char *const words[] = {[LINE_NS] = "ns", [LINE_US] = "us", [LINE_MS] = "ms",
					    [LINE_S] = "s",   [LINE_M] = "m",   [LINE_H] = "h"};
	const struct client_import_args *asked =
		CONTAINER_OF(im->args, const struct client_import_args, line);
	enum line_precision precision;
	if (im->text.format != IMPORT_LINES)
		return "ms";
	if (asked->precision)
		return asked->precision;
	if (line_precision_parse(said, &precision) == 0)
		return words[precision];
	command_complain(im->args,
			 "%s, line %" PRIu64 ": \"" SHOWN
			 "\" is no precision; ns, us, ms, s, m and h are",
			 im->source->name, line, SHOWN_OF(said));
	return NULL;
}

static int importing_guess(struct importing *im, const char *path)
{
	const struct client_import_args *asked =
		CONTAINER_OF(im->args, const struct client_import_args, line);
	struct slice said;
	struct errbuf e;
	uint64_t line = 1;
	int err = import_text_guess(&im->text, &said, &line, &e);
	for (int i = 0; asked->format && i < IMPORT_FORMATS; i++) {
		if (strcmp(asked->format, import_format_words[i]) == 0) {
			im->text.format = (enum import_format)i;
			err = err == ERR_INVALID ? 0 : err;
		}
	}
	if (err) {
		command_complain(im->args, "%s", e.text);
		return err;
	}
	const char *precision = importing_precision(im, said, line);
	return precision ? importing_set_paths(im, path, precision) : ERR_INVALID;
}

static void importing_sum_up(const struct importing *im, int err)
{
	const struct import_count *count = &im->count;
	importing_print_counts(im);
	if (im->resumed)
		fprintf(stderr, ", with those of the imports that this one went on with");
	if (count->nans)
		fprintf(stderr, "; %" PRIu64 " values that are NaN are left out", count->nans);
	if (count->texts)
		fprintf(stderr, "; %" PRIu64 " fields that are texts are left out", count->texts);
	if (count->refused_lines)
		fprintf(stderr, "; %" PRIu64 " lines were refused", count->refused_lines);
	if (count->refused_samples)
		fprintf(stderr, "; %" PRIu64 " samples were refused", count->refused_samples);
	if (count->refused_lines || count->refused_samples)
		fprintf(stderr, ", see %s", im->rejected_path);
	fprintf(stderr, err ? "; not finished\n" : "\n");
}

static int importing_run(struct importing *im, const char *path)
{
	int err = importing_guess(im, path);
	err = err ? err : importing_read_state(im);
	if (err)
		return err;
	im->begun_ms = im->told_ms = clock_mono_ms(im->clock);
	im->begun_sent = im->count.sent;
	im->begun_raw_bytes = im->source->raw_bytes;
	err = importing_send_all(im);
	if (err && im->offset)
		(void)!importing_save(im);
	if (!err && im->rejected_fd >= 0 && fdatasync(im->rejected_fd))
		err = importing_complain(im, im->rejected_path, -errno);
	if (!err && importing_keeps_state(im))
		err = client_state_remove(&im->state);
	importing_sum_up(im, err);
	return err;
}

static void importing_init_state(struct importing *im)
{
	uint64_t *const numbers[] = {&im->offset,
				     &im->line,
				     &im->rejected_bytes,
				     &im->count.sent,
				     &im->count.refused_lines,
				     &im->count.refused_samples,
				     &im->count.nans,
				     &im->count.texts,
				     &im->hash};
	im->line = 1;
	im->state = (struct client_state){.args = im->args};
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		im->state.numbers[i] = numbers[i];
}

static void importing_init_posts(struct importing *im, struct http_client *http)
{
	for (size_t i = 0; i < ARRAY_LEN(im->posts); i++) {
		struct import_post *post = &im->posts[i];
		post->im = im;
		post->http = http;
		import_batch_init(&post->batch);
		buf_init(&post->answer, IMPORT_ANSWER_MAX_BYTES);
	}
}

static void importing_release(struct importing *im)
{
	for (size_t i = 0; i < ARRAY_LEN(im->posts); i++) {
		import_batch_release(&im->posts[i].batch);
		buf_release(&im->posts[i].answer);
	}
	if (im->rejected_fd >= 0)
		close(im->rejected_fd);
	import_text_release(&im->text);
	task_queue_release(&im->queue);
}

static int importing_file(const struct command_args *args, const char *tenant,
			  struct http_client *http, const char *path, bool *any_refused)
{
	struct importing *im = mem_zalloc(sizeof(*im));
	struct import_source *source = mem_zalloc(sizeof(*source));
	struct errbuf e;
	im->args = args;
	im->tenant = tenant;
	im->source = source;
	im->rejected_fd = -1;
	im->clock = clock_real();
	task_queue_init(&im->queue);
	import_text_init(&im->text, source);
	importing_init_posts(im, http);
	importing_init_state(im);
	int err = import_source_open(source, path, &e);
	if (err)
		command_complain(args, "%s", e.text);
	else
		err = importing_run(im, path);
	*any_refused |= im->count.refused_lines || im->count.refused_samples;
	importing_release(im);
	import_source_close(source);
	mem_free(source);
	mem_free(im);
	return err;
}

/* ---- The command ------------------------------------------------------------------------------
 */

static bool import_has_word(const struct json *object, const char *key, const char *word)
{
	const struct json *list;
	if (json_get_array(object, key, &list, NULL))
		return false;
	const struct json *item = list->first;
	while (item && !(item->type == JSON_T_STRING && slice_equal(item->text, slice_of(word))))
		item = item->next;
	return item;
}

/* The tenant that --tenant says, or that the server takes where none is named. Each request names
 * it, so that a tag `tenant` of the file chooses none. */
static int import_choose_tenant(const struct command_args *args, const struct json *caller,
				char tenant[IMPORT_TENANT_BYTES])
{
	const struct json *list;
	if (json_get_array(caller, "tenants", &list, NULL) || !list->first ||
	    list->first->type != JSON_T_STRING) {
		command_complain(args, "what answers at %s is no Granary", client_server(args));
		return ERR_INVALID;
	}
	struct slice first = list->first->text;
	if (args->tenant)
		first = slice_of(args->tenant);
	else if (import_has_word(caller, "tenants", "*"))
		first = SLICE("default");
	snprintf(tenant, IMPORT_TENANT_BYTES, "%.*s", (int)first.len, first.data);
	return 0;
}

/* Asks the server who the caller is: the caller's tenant, and whether the caller may ask for
 * retention. */
static int import_ask_who(const struct command_args *args, char tenant[IMPORT_TENANT_BYTES],
			  bool *is_admin)
{
	struct client_answer answer;
	struct arena arena;
	struct json *root;
	client_answer_init(&answer);
	arena_init(&arena, IMPORT_ERRORS_BYTES);
	int err = client_ask_json(args, NULL, "/api/session", &arena, &answer, &root);
	err = err ? err : import_choose_tenant(args, root, tenant);
	*is_admin = !err && import_has_word(root, "roles", "admin") &&
		    import_has_word(root, "tenants", "*");
	arena_release(&arena);
	client_answer_release(&answer);
	return err;
}

/* Samples that are older than retention.raw are not stored as they are: the user is told before
 * anything is sent, where the user may ask.
 * Nobody has a tenant of this name, so the server looks at no series. */
static int import_say_retention(const struct command_args *args)
{
	struct client_answer answer;
	struct arena arena;
	struct json *root;
	char date[TIME_PRINT_MAX_BYTES];
	client_answer_init(&answer);
	arena_init(&arena, IMPORT_ERRORS_BYTES);
	int err = client_ask_json(args, NULL, "/api/retention?tenant=.", &arena, &answer, &root);
	int64_t raw_ms = err ? 0 : client_i64(root, "rawMs");
	const struct json *rules = err ? NULL : json_member(root, "rules");
	if (raw_ms) {
		size_t len = time_print(date, clock_wall_ms(clock_real()) - raw_ms);
		command_complain(args,
				 "samples before %.*s are refused, or kept only in roll-ups: "
				 "retention.raw of the server",
				 (int)len, date);
	}
	if (rules && rules->count)
		command_complain(
			args, "the server has rules of retention, by which samples of some metrics "
			      "may be refused: granary retention");
	arena_release(&arena);
	client_answer_release(&answer);
	return err;
}

static int client_import_run(const struct command_args *args)
{
	const struct client_import_args *asked =
		CONTAINER_OF(args, const struct client_import_args, line);
	struct http_client_options how = {.timeout_ms = 0};
	char tenant[IMPORT_TENANT_BYTES];
	bool any_refused = false, is_admin;
	int err = import_ask_who(args, tenant, &is_admin);
	if (!err && is_admin)
		err = import_say_retention(args);
	if (err)
		return EXIT_FAILED;
	struct http_client *http = client_connect(args, &how);
	if (!http)
		return EXIT_FAILED;
	for (size_t i = 0; i < asked->files.count && !err; i++)
		err = importing_file(args, tenant, http, asked->files.items[i], &any_refused);
	http_client_free(http);
	return err || any_refused ? EXIT_FAILED : EXIT_OK;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_import_args, field, __VA_ARGS__)
static const struct command_option client_import_options[] = {
	ROW(text, files, NULL, "FILE", "what is read; a dash: standard input",
	    .words_max = COMMAND_WORDS_MAX, .required = true),
	ROW(choice, format, "--format", "FORMAT", "lines, json, prometheus or csv",
	    .choices = "lines json prometheus csv", .otherwise = "the first lines say it"),
	ROW(choice, precision, "--precision", "UNIT", "of the times of line protocol",
	    .choices = "ns us ms s m h", .otherwise = "ns, or what a file of granary export says"),
	CLIENT_TENANT("whose data it becomes"),
	CLIENT_SERVER,
};

const struct command client_import = {
	.name = "import",
	.summary = "store the samples of files",
	.about = "Stores samples of Influx line protocol, of influx_inspect export, of "
		 "VictoriaMetrics' /api/v1/export, of promtool tsdb dump, and of granary export, "
		 "which "
		 "may be packed by gzip or zstd. What is refused goes to FILE.rejected, each line "
		 "with its reason. An import that was ended goes on when the same command is "
		 "given again: FILE.state says how far it came.\n"
		 "Exit status: 0 all is stored, 1 something is not, 2 wrong use.\n",
	.examples = "granary import all.lines.gz\n"
		    "promtool tsdb dump data/ | granary import -\n"
		    "influx_inspect export -datadir data -waldir wal -out all -compress && "
		    "granary import all\n",
	COMMAND_TAKES(client_import_options, client_import_args),
	.run = client_import_run,
};
