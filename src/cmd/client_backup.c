/* backup: what the server stores, to a file or to standard output. The file is written under
 * another name, checked as it comes, synced, and named when all is there. */
#include "cmd/client_backup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/file.h"
#include "cmd/client.h"
#include "wire/timetext.h"

enum {
	BACKUP_PATH_BYTES = 4096,
	BACKUP_TOLD_US = 500000,
	/* Beyond how long a busy disk lets a reader wait. */
	BACKUP_SILENT_MAX_S = 120,
	BACKUP_FLUSH_BYTES = 16 << 20,
	BACKUP_READ_BYTES = 1 << 20,
	BACKUP_PIECE_BYTES = 64 << 10, /* smaller ones are gathered */
	BACKUP_ANSWER_MAX_BYTES = 64 << 10,
};

/* ---- Progress -------------------------------------------------------------------------------- */

void backup_progress_tell(struct backup_progress *p, const char *what, uint64_t bytes)
{
	struct clock *clock = clock_real();
	int64_t now_us = clock->mono_us(clock);
	if (!p->begun_us)
		p->begun_us = p->told_us = now_us;
	if (now_us < p->told_us + BACKUP_TOLD_US || !isatty(STDERR_FILENO))
		return;
	p->told_us = now_us;
	fprintf(stderr, "\r\033[K%s: %.1f MB, %.0f MB/s", what, (double)bytes / 1e6,
		(double)bytes / (double)(now_us - p->begun_us));
}

void backup_progress_end(const struct backup_progress *p)
{
	if (p->told_us != p->begun_us)
		fprintf(stderr, "\r\033[K");
}

void backup_print_facts(FILE *to, const char *file, const struct backup_manifest *manifest)
{
	char time[TIME_PRINT_MAX_BYTES + 1];
	time[time_print(time, manifest->time_ms)] = 0;
	fprintf(to, "%s: a whole backup of %s, %.1f MB, by granary %s\n",
		strcmp(file, "-") == 0 ? "standard input" : file, time,
		(double)manifest->bytes / 1e6, manifest->program);
}

/* ---- Reading one ----------------------------------------------------------------------------- */

static int backup_look_at_file(int fd, struct errbuf *e)
{
	char last[BACKUP_END_BYTES];
	off_t length = lseek(fd, 0, SEEK_END);
	if (length < 0) /* a pipe */
		return 0;
	off_t at = length < BACKUP_END_BYTES ? 0 : length - BACKUP_END_BYTES;
	ssize_t got = pread(fd, last, sizeof(last), at);
	if (got < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return errbuf_set(e, -errno, "%s", err_text(-errno));
	return backup_look_at_end((struct slice){last, (size_t)got}, e);
}

static int backup_read_all(int fd, struct backup_reader *reader, const char *what, struct errbuf *e)
{
	char *bytes = mem_alloc(BACKUP_READ_BYTES);
	struct backup_progress progress = {0};
	uint64_t total = 0;
	ssize_t got = 1;
	int err = 0;
	while (!err && got) {
		got = read(fd, bytes, BACKUP_READ_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			err = errbuf_set(e, -errno, "%s", err_text(-errno));
			break;
		}
		total += (uint64_t)got;
		backup_progress_tell(&progress, what, total);
		err = backup_reader_take(reader, (struct slice){bytes, (size_t)got}, e);
	}
	if (!err)
		err = backup_reader_end(reader, e);
	backup_progress_end(&progress);
	mem_free(bytes);
	return err;
}

int backup_read_file(const char *file, struct backup_reader *reader, const char *what,
		     struct errbuf *e)
{
	bool is_stdin = strcmp(file, "-") == 0;
	int fd = is_stdin ? STDIN_FILENO : open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errbuf_set(e, -errno, "%s: %s", file, err_text(-errno));
	(void)!posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	int err = is_stdin ? 0 : backup_look_at_file(fd, e);
	if (!err)
		err = backup_read_all(fd, reader, what, e);
	if (!is_stdin)
		close(fd);
	return err ? errbuf_prefix(e, err, "%s", is_stdin ? "standard input" : file) : 0;
}

/* ---- Taking one ------------------------------------------------------------------------------ */

struct client_backup_args {
	struct command_args line;
	const char *file;
	bool replace;
};

struct backup_taking {
	const char *file; /* NULL: standard output */
	char part[BACKUP_PATH_BYTES];
	int fd;
	uint64_t bytes; /* written */
	struct backup_reader reader;
	struct backup_progress progress;
	struct buf gathered; /* small pieces that have come */
	struct buf refusal;  /* the body of an answer of another status */
	const struct http_call *call;
	bool has_told; /* what the server says beforehand */
	int err;
	struct errbuf *e;
};

static int backup_taking_fail(struct backup_taking *t, int err)
{
	return errbuf_set(t->e, err, "cannot write %s: %s",
			  t->file ? t->part : "to standard output", err_text(err));
}

/* A .part that an interrupted backup has left is overwritten, unless a backup still writes it. */
static int backup_taking_open(struct backup_taking *t, bool replaces)
{
	if (!t->file)
		return 0;
	int err = file_open_own(t->part, 0600, &t->fd, t->e);
	if (err)
		return err;
	/* Another backup may have got this name until .part was ours. */
	if (!replaces && faccessat(AT_FDCWD, t->file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return errbuf_set(t->e, ERR_EXISTS,
				  "%s is there already; --replace puts the backup in its place",
				  t->file);
	return ftruncate(t->fd, 0) ? backup_taking_fail(t, -errno) : 0;
}

static int backup_taking_write(struct backup_taking *t, struct slice piece)
{
	size_t done = 0;
	int err = fault("backup.write");
	err = err ? err : file_write_all(t->fd, piece, &done);
	t->bytes += done;
	if (err)
		return backup_taking_fail(t, err);
	/* So that the sync at the end is short. */
	if (t->file && t->bytes % BACKUP_FLUSH_BYTES < done)
		(void)!sync_file_range(t->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
	return 0;
}

static int backup_taking_store(struct backup_taking *t, struct slice piece)
{
	int err = backup_taking_write(t, piece);
	if (!err)
		err = backup_reader_take(&t->reader, piece, t->e);
	backup_progress_tell(&t->progress, "backup", t->bytes);
	return err;
}

/* Writes and checks what is gathered. */
static int backup_taking_flush(struct backup_taking *t)
{
	int err = backup_taking_store(t, buf_slice(&t->gathered));
	buf_clear(&t->gathered);
	return err;
}

static bool backup_taking_take(void *owner, long status, struct slice piece)
{
	struct backup_taking *t = owner;
	if (status != 200)
		return buf_append(&t->refusal, piece.data, piece.len) == 0;
	if (!t->has_told && t->call->note[0])
		terminal_complain("%s", t->call->note);
	t->has_told = true;
	if (!t->gathered.len && piece.len >= BACKUP_PIECE_BYTES) {
		t->err = backup_taking_store(t, piece);
		return t->err == 0;
	}
	t->err = buf_append(&t->gathered, piece.data, piece.len);
	if (!t->err && t->gathered.len >= BACKUP_READ_BYTES)
		t->err = backup_taking_flush(t);
	return t->err == 0;
}

/* What came is looked at even if it broke off: then it may say why. */
static int backup_taking_ask(struct backup_taking *t, struct http_client *http)
{
	char sentence[1024];
	struct errbuf why, whole = {""};
	struct http_call call = {.path = "/api/backup", .take = backup_taking_take, .owner = t};
	t->call = &call;
	int err = http_client_call(http, &call, &why);
	if (!t->err)
		t->err = backup_taking_flush(t);
	backup_progress_end(&t->progress);
	if (t->err)
		return t->err;
	if (!err && call.status != 200) {
		http_client_sentence(buf_slice(&t->refusal), sentence, sizeof(sentence));
		return errbuf_set(t->e, ERR_INVALID, "%s", sentence);
	}
	int end = !err || t->bytes ? backup_reader_end(&t->reader, &whole) : 0;
	if (end && (!err || end == ERR_CANCELLED))
		return errbuf_set(t->e, end, "%s", whole.text);
	return err ? errbuf_set(t->e, err, "%s", why.text) : 0;
}

static int backup_taking_sync(struct backup_taking *t)
{
	if (!t->file)
		return 0;
	int err = fsync(t->fd) ? -errno : fault("backup.synced");
	if (!err)
		err = files_real()->rename(files_real(), t->part, t->file);
	return err ? backup_taking_fail(t, err) : 0;
}

/* A part that is no use to anybody goes. */
static void backup_taking_close(struct backup_taking *t, int err)
{
	if (!t->file || t->fd < 0)
		return;
	if (err)
		(void)unlink(t->part);
	close(t->fd);
}

static int backup_taking_run(struct backup_taking *t, struct http_client *http, bool replaces)
{
	int err = fault_arm_from_env(t->e);
	if (!err)
		err = backup_taking_open(t, replaces);
	if (!err)
		err = backup_taking_ask(t, http);
	if (!err)
		err = backup_taking_sync(t);
	backup_taking_close(t, err);
	return err;
}

static int client_backup_run(const struct command_args *args)
{
	const struct client_backup_args *asked =
		CONTAINER_OF(args, const struct client_backup_args, line);
	struct http_client_options how = {.silent_max_s = BACKUP_SILENT_MAX_S};
	struct errbuf e = {""};
	bool is_stdout = strcmp(asked->file, "-") == 0;
	struct backup_taking t = {.file = is_stdout ? NULL : asked->file,
				  .fd = is_stdout ? STDOUT_FILENO : -1,
				  .e = &e};
	if (t.file && snprintf(t.part, sizeof(t.part), "%s.part", t.file) >= (int)sizeof(t.part)) {
		command_complain(args, "%.100s...: the name is too long", t.file);
		return EXIT_WRONG_USE;
	}
	if (!t.file && isatty(STDOUT_FILENO)) {
		command_complain(args,
				 "a backup does not go to a terminal: name a file, or a pipe");
		return EXIT_WRONG_USE;
	}
	struct http_client *http = client_connect(args, &how);
	if (!http)
		return EXIT_FAILED;
	backup_reader_init(&t.reader);
	buf_init(&t.gathered, 2 * BACKUP_READ_BYTES);
	buf_init(&t.refusal, BACKUP_ANSWER_MAX_BYTES);
	int err = backup_taking_run(&t, http, asked->replace);
	if (err)
		command_complain(args, "%s", e.text);
	else
		backup_print_facts(stderr, t.file ? t.file : "standard output", &t.reader.manifest);
	backup_reader_release(&t.reader);
	buf_release(&t.gathered);
	buf_release(&t.refusal);
	http_client_free(http);
	return err ? EXIT_FAILED : EXIT_OK;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_backup_args, field, __VA_ARGS__)
static const struct command_option client_backup_options[] = {
	ROW(text, file, NULL, "FILE", "where the backup goes; - is standard output",
	    .required = true),
	ROW(flag, replace, "--replace", NULL, "FILE may be there: the backup takes its place"),
	CLIENT_SERVER,
};

const struct command client_backup = {
	.name = "backup",
	.summary = "take a backup of all that the server stores",
	.about =
		"Takes a backup of all that the server stores at this moment; the server goes on "
		"taking writes meanwhile. It first says how large that is and what it may cost. "
		"The backup is written to FILE.part, checked as it comes, and named FILE when all "
		"of it is on disk. `granary restore` makes a store of it, `granary verify` checks "
		"it. FILE has all that is stored, and is readable for its owner only.\n"
		"Exit status: 0 the backup is whole, 1 there is none, and a line says why, 2 wrong "
		"use.\n",
	.examples = "granary backup /backup/granary-monday\n"
		    "granary backup - | zstd | ssh other 'cat > granary.zst'\n",
	COMMAND_TAKES(client_backup_options, client_backup_args),
	.run = client_backup_run,
};
