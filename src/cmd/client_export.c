/* export: samples to a file or to standard output, page after page (api/metrics/export.c).
 *
 * Beside a file stands FILE.state: what was asked, how many bytes of the file are whole pages, and
 * the token of the next one. It is replaced when a page is synced, and goes with the last. So the
 * same command again goes on after whatever ended the first. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/exec.h"
#include "base/file.h"
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "cmd/client_state.h"

enum {
	EXPORT_TOKEN_MAX_BYTES = 64 << 10,
	EXPORT_PAGE_MAX_BYTES = 64 << 20,
	EXPORT_TRIES = 60, /* of a page that the server does not make now */
	EXPORT_WAIT_MS = 1000,
};

struct client_export_args {
	struct command_args line;
	const char *metric, *start, *end, *format, *page, *to;
	struct command_words tags;
};

struct exporting {
	const struct command_args *args;
	const char *file; /* NULL: standard output */
	struct client_state state;
	int fd;
	struct buf path; /* what is asked, without a token */
	struct buf token, page;
	uint64_t bytes;    /* written and whole */
	uint64_t left_out; /* series that the format has no form for */
	struct http_client *http;
	struct task_queue queue; /* to wait on */
};

static int exporting_complain(const struct exporting *ex, const char *path, int err)
{
	command_complain(ex->args, "%s: %s", path, err_text(err));
	return err;
}

/* ---- The file -------------------------------------------------------------------------------- */

/* What was begun goes on; ERR_NOT_FOUND: nothing was. */
static int exporting_read_state(struct exporting *ex)
{
	int err = client_state_read(&ex->state);
	if (err == ERR_EXISTS)
		command_complain(
			ex->args,
			"%s is of an export that asked for something else than %.*s; finish that "
			"one, or remove the file",
			ex->state.path, (int)ex->path.len, ex->path.data);
	return err;
}

/* A file that no export has begun is left alone. */
static int exporting_open(struct exporting *ex)
{
	struct errbuf e;
	int err = exporting_read_state(ex);
	bool begun = !err;
	if (err == ERR_NOT_FOUND && faccessat(AT_FDCWD, ex->file, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
		command_complain(ex->args,
				 "%s is there already, and %s, which says how far an export came, "
				 "is not",
				 ex->file, ex->state.path);
		err = ERR_EXISTS;
	} else if (err == ERR_NOT_FOUND) {
		err = client_state_save(&ex->state);
	}
	if (err)
		return err;
	if (ex->bytes && faccessat(AT_FDCWD, ex->file, F_OK, AT_SYMLINK_NOFOLLOW))
		return exporting_complain(ex, ex->file, -errno); /* it was there */
	err = file_open_own(ex->file, 0644, &ex->fd, &e);
	if (err) {
		command_complain(ex->args, "%s", e.text);
		return err;
	}
	off_t length = lseek(ex->fd, 0, SEEK_END);
	if (length >= 0 && begun && (uint64_t)length < ex->bytes) {
		command_complain(ex->args,
				 "%s has %lld bytes, fewer than the %" PRIu64 " that %s says",
				 ex->file, (long long)length, ex->bytes, ex->state.path);
		return ERR_INVALID;
	}
	if (length < 0 || ftruncate(ex->fd, (off_t)ex->bytes) ||
	    lseek(ex->fd, (off_t)ex->bytes, SEEK_SET) < 0)
		return exporting_complain(ex, ex->file, -errno);
	return 0;
}

static int exporting_write(struct exporting *ex)
{
	size_t done;
	int err = file_write_all(ex->fd, buf_slice(&ex->page), &done);
	ex->bytes += done;
	if (err)
		return exporting_complain(ex, ex->file ? ex->file : "standard output", err);
	if (!ex->file)
		return 0;
	return fdatasync(ex->fd) ? exporting_complain(ex, ex->file, -errno)
				 : client_state_save(&ex->state);
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static bool exporting_take(void *owner, UNUSED long status, struct slice piece)
{
	struct exporting *ex = owner;
	return buf_append(&ex->page, piece.data, piece.len) == 0;
}

static int exporting_ask(struct exporting *ex, const char *path, struct http_call *call,
			 struct errbuf *e)
{
	for (int i = 1;; i++) {
		*call = (struct http_call){
			.path = path, .take = exporting_take, .owner = ex, .next = &ex->token};
		buf_clear(&ex->page);
		int err = http_client_call(ex->http, call, e);
		if (err || call->status != 503 || i == EXPORT_TRIES)
			return err;
		err = task_queue_sleep(&ex->queue, EXPORT_WAIT_MS);
		ASSERT(!err); /* nobody stops it */
	}
}

/* The token becomes that of the page after this one; empty: there is none. */
static int exporting_page(struct exporting *ex)
{
	char sentence[1024];
	struct http_call call;
	struct errbuf e;
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	buf_append(&path, ex->path.data, ex->path.len + 1);
	path.len--;
	buf_append_char(&ex->token, 0);
	if (ex->token.len > 1)
		client_param(&path, "token", ex->token.data);
	int err = exporting_ask(ex, path.data, &call, &e);
	buf_release(&path);
	if (!err && call.status != 200) {
		http_client_sentence(buf_slice(&ex->page), sentence, sizeof(sentence));
		err = errbuf_set(&e, ERR_INVALID, "%s", sentence);
	}
	if (err) {
		command_complain(ex->args, "%s%s", e.text,
				 ex->file ? "; the same command again goes on from here" : "");
		return err;
	}
	ex->left_out += (uint64_t)call.left_out;
	return exporting_write(ex);
}

static int exporting_run(struct exporting *ex)
{
	int err = ex->file ? exporting_open(ex) : 0;
	bool more = true;
	while (!err && more) {
		err = exporting_page(ex);
		more = ex->token.len > 0;
	}
	if (!err && ex->file)
		err = client_state_remove(&ex->state);
	if (!err && ex->left_out)
		command_complain(ex->args,
				 "%" PRIu64
				 " series were left out, since this format has no form for "
				 "their names; --format csv has",
				 ex->left_out);
	return err;
}

static int client_export_run(const struct command_args *args)
{
	const struct client_export_args *asked =
		CONTAINER_OF(args, const struct client_export_args, line);
	struct http_client_options how = {.timeout_ms = 0};
	struct exporting ex = {.args = args, .file = asked->to, .fd = STDOUT_FILENO};
	ex.state = (struct client_state){
		.args = args, .numbers = {&ex.bytes, &ex.left_out}, .next = &ex.token};
	if (!client_state_set_path(&ex.state, asked->to ? asked->to : "")) {
		command_complain(args, "%s: the name is too long", asked->to);
		return EXIT_WRONG_USE;
	}
	ex.http = client_connect(args, &how);
	if (!ex.http)
		return EXIT_FAILED;
	client_route(&ex.path, args, "/api/export");
	ex.state.asked = buf_slice(&ex.path);
	buf_init(&ex.token, EXPORT_TOKEN_MAX_BYTES);
	buf_init(&ex.page, EXPORT_PAGE_MAX_BYTES);
	task_queue_init(&ex.queue);
	int err = exporting_run(&ex);
	http_client_free(ex.http);
	task_queue_release(&ex.queue);
	if (ex.file && ex.fd >= 0 && ex.fd != STDOUT_FILENO)
		close(ex.fd);
	buf_release(&ex.path);
	buf_release(&ex.token);
	buf_release(&ex.page);
	return err || ex.left_out ? EXIT_FAILED : EXIT_OK;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_export_args, field, __VA_ARGS__)
static const struct command_option client_export_options[] = {
	ROW(text, metric, NULL, "METRIC", "of which metric; else of all", .param = "metricName"),
	ROW(tag, tags, NULL, "TAG=VALUE",
	    "must match, each; VALUE may hold stars for any run of characters and alternatives "
	    "between bars",
	    .words_max = CLIENT_TAGS_MAX, .param = "tag"),
	ROW(time, start, "--start", "TIME", "first time that counts", .param = "start",
	    .otherwise = "the first that is stored"),
	ROW(time, end, "--end", "TIME", "first time that no longer counts", .param = "end",
	    .otherwise = "none"),
	ROW(choice, format, "--format", "FORMAT",
	    "lines (Influx line protocol), json (lines of VictoriaMetrics' /api/v1/export), or csv",
	    .choices = "lines json csv", .preset = "lines", .param = "format"),
	ROW(text, page, "--page", "N", "at most so many samples of one request", .param = "limit",
	    .otherwise = "1000000"),
	ROW(text, to, "--to", "FILE", "where the samples go", .otherwise = "standard output"),
	CLIENT_TENANT("whose data; this machine's own metrics: host"),
	CLIENT_SERVER,
};

const struct command client_export = {
	.name = "export",
	.summary = "write samples as they are stored to a file",
	.about = "Writes all samples of tagged metrics, or those that are asked for, by series, "
		 "then "
		 "by time. Only lines and csv keep the types of numbers. An export that was ended "
		 "goes "
		 "on when the same command is given again: beside FILE, FILE.state says how far it "
		 "came.\n"
		 "Exit status: 0 all is written, 1 something is not, 2 wrong use.\n",
	.examples =
		"granary export --to all.lines\n"
		"granary export cpu_idle 'host=web-*' --start 30d-ago --format csv | gzip > c.gz\n",
	COMMAND_TAKES(client_export_options, client_export_args),
	.run = client_export_run,
};
