/* Backup: LMDB's own copy of the data file, which a thread writes into a pipe, and whoever wants it
 * reads there.
 *
 * The copy is of the snapshot that LMDB opens for it between two commits; whatever was answered
 * before is in the environment, and so in the snapshot. For as long as it is open LMDB uses no page
 * again that was freed since: backup_look counts these.
 *
 * A page that the disk cannot give must not end the server. LMDB hands the map itself to write(),
 * so it is the kernel that touches the pages: it answers EFAULT where a program that touched them
 * would get SIGBUS. Which page it was is then found by reading it as a file.
 *
 * The map is not read ahead (MDB_NORDAHEAD), so a copy would fetch page by page what is not in
 * memory. The kernel is asked for what comes next, as far ahead as keeps a disk at work. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/lmdb/engine.h"
#include "store/lmdb/pages.h"

enum {
	BACKUP_PIPE_BYTES = 1 << 20,
	BACKUP_AHEAD_BYTES = 16 << 20, /* beyond what the pipe may hold */
	BACKUP_AHEAD_STEP_BYTES = 2 << 20,
	BACKUP_META_PAGES = 2,
};

struct lmdb_backup {
	struct store_backup backup;
	struct engine *engine;
	uint64_t growth_max_bytes;
	pthread_t copier;
	int to_fd, from_fd; /* of the pipe */
	int copied;         /* LMDB's answer, when the copier has ended */
	bool is_over;       /* the copier has ended and was joined */
	char *metas;        /* what comes first, read when it began */
	size_t metas_bytes;
	uint64_t transaction; /* of the snapshot */
	uint64_t bytes, given_bytes, asked_bytes;
};

static struct lmdb_backup *backup_of(struct store_backup *backup)
{
	return CONTAINER_OF(backup, struct lmdb_backup, backup);
}

static const char *backup_path(const struct lmdb_backup *b)
{
	return b->engine->options.path;
}

/* ---- The copier ------------------------------------------------------------------------------ */

/* The reader may close the pipe at any time, which is no reason to end the process. */
static void *backup_copier_main(void *owner)
{
	struct lmdb_backup *b = owner;
	sigset_t pipes;
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipes, NULL);
	b->copied = mdb_env_copyfd2(b->engine->env.mdb, b->to_fd, 0);
	close(b->to_fd);
	return NULL;
}

static void backup_join(struct lmdb_backup *b)
{
	if (!b->is_over)
		pthread_join(b->copier, NULL);
	b->is_over = true;
}

static int backup_start(struct lmdb_backup *b, struct errbuf *e)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return errbuf_set(e, -errno, "no pipe for a backup: %s", err_text(-errno));
	/* Where the user has too many pipes, this one is smaller, and the copy slower. */
	(void)!fcntl(ends[1], F_SETPIPE_SZ, BACKUP_PIPE_BYTES);
	b->from_fd = ends[0];
	b->to_fd = ends[1];
	int failed = pthread_create(&b->copier, NULL, backup_copier_main, b);
	ASSERT(!failed);
	pthread_setname_np(b->copier, "store-backup");
	return 0;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void backup_read_ahead(struct lmdb_backup *b)
{
	uint64_t end = b->given_bytes + BACKUP_PIPE_BYTES + BACKUP_AHEAD_BYTES;
	if (end > b->bytes)
		end = b->bytes;
	for (; b->asked_bytes < end; b->asked_bytes += BACKUP_AHEAD_STEP_BYTES)
		(void)!posix_fadvise(b->engine->env.sync_fd, (off_t)b->asked_bytes,
				     BACKUP_AHEAD_STEP_BYTES, POSIX_FADV_WILLNEED);
}

/* The first page after what was given that cannot be read as a file either. */
static int backup_say_page(const struct lmdb_backup *b, int err, struct errbuf *e)
{
	size_t page_bytes = b->engine->env.page_bytes;
	uint64_t end = b->given_bytes + 2 * BACKUP_PIPE_BYTES;
	char *page = mem_alloc(page_bytes);
	for (uint64_t at = b->given_bytes; at < end && at < b->bytes; at += page_bytes) {
		ssize_t got = pread(b->engine->env.sync_fd, page, page_bytes, (off_t)at);
		if (got == (ssize_t)page_bytes)
			continue;
		err = got < 0 ? -errno : ERR_DAMAGED;
		errbuf_set(e, err, "%s/" ENV_FILE " cannot be read at byte %llu: %s",
			   backup_path(b), (unsigned long long)at,
			   got < 0 ? err_text(err) : "it ends there");
		mem_free(page);
		return err;
	}
	mem_free(page);
	return errbuf_set(e, err, "%s/" ENV_FILE " cannot be copied: %s", backup_path(b),
			  err_text(err));
}

/* The pipe has ended: all is there, or the copy failed. LMDB copies no more than the file has: who
 * shortens it, which never happens by itself, is not to get less for a whole backup. */
static int backup_finish(struct lmdb_backup *b, struct errbuf *e)
{
	backup_join(b);
	int err = env_error(b->copied);
	if (!err && b->given_bytes < b->bytes)
		err = ERR_DAMAGED;
	return err ? backup_say_page(b, err, e) : 0;
}

static int backup_read_pipe(struct lmdb_backup *b, char *to, size_t max_bytes, size_t *bytes,
			    struct errbuf *e)
{
	ssize_t got = 1;
	*bytes = 0;
	while (*bytes < max_bytes && got) {
		backup_read_ahead(b);
		got = read(b->from_fd, to + *bytes, max_bytes - *bytes);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errbuf_set(e, -errno, "a backup cannot be read: %s",
					  err_text(-errno));
		*bytes += (size_t)got;
		b->given_bytes += (size_t)got;
	}
	return got ? 0 : backup_finish(b, e);
}

int backup_read(struct store_backup *backup, void *to, size_t max_bytes, size_t *bytes,
		struct errbuf *e)
{
	struct lmdb_backup *b = backup_of(backup);
	size_t first = b->metas_bytes < max_bytes ? b->metas_bytes : max_bytes;
	memcpy(to, b->metas, first);
	b->metas_bytes -= first;
	memmove(b->metas, b->metas + first, b->metas_bytes);
	int err = first < max_bytes
			  ? backup_read_pipe(b, (char *)to + first, max_bytes - first, bytes, e)
			  : 0;
	*bytes = first < max_bytes ? *bytes + first : first;
	return err;
}

/* ---- What it costs --------------------------------------------------------------------------- */

/* Whether the store could take writes if it were not for the backup. */
static bool backup_takes_the_room(struct lmdb_backup *b, const struct env_pages *pages)
{
	struct engine *engine = b->engine;
	struct files *files = engine->options.files;
	uint64_t free_bytes, reserve = room_reserved_pages(pages->map);
	uint64_t usable = pages->free - pages->freed_since;
	uint64_t end = pages->used + pages->free;
	if (usable >= reserve || pages->free < reserve)
		return false;
	if (pages->map < end + reserve)
		return true;
	return files->free_bytes(files, engine->options.path, &free_bytes) == 0 &&
	       free_bytes < engine->options.min_free_bytes;
}

int backup_look(struct store_backup *backup, struct store_backup_cost *cost, struct errbuf *e)
{
	struct lmdb_backup *b = backup_of(backup);
	struct env_pages pages;
	int err = env_count_pages(&b->engine->env, b->transaction, &pages);
	if (err)
		return errbuf_set(e, err, "the free pages of %s cannot be counted: %s",
				  backup_path(b), err_text(err));
	*cost = (struct store_backup_cost){.bytes = b->bytes,
					   .given_bytes = b->given_bytes - b->metas_bytes,
					   .held_bytes = pages.freed_since * pages.page_bytes};
	if (cost->held_bytes > b->growth_max_bytes)
		return errbuf_set(
			e, ERR_FULL,
			"pages of %llu MB were freed since it began and could not be used "
			"again, more than backup.growth_max",
			(unsigned long long)(cost->held_bytes / 1000000));
	if (backup_takes_the_room(b, &pages))
		return errbuf_set(e, ERR_FULL,
				  "there is no more room in %s, and the %llu MB of pages that were "
				  "freed since it began are needed",
				  backup_path(b), (unsigned long long)(cost->held_bytes / 1000000));
	return 0;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static int backup_metas_read(void *context, uint64_t offset, void *to, size_t len)
{
	const struct lmdb_backup *b = context;
	if (offset > b->metas_bytes || len > b->metas_bytes - offset)
		return ERR_DAMAGED;
	memcpy(to, b->metas + offset, len);
	return 0;
}

/* The meta pages come first, and the newer one is the snapshot's. When they are there, the snapshot
 * is taken. */
static int backup_read_metas(struct lmdb_backup *b, struct errbuf *e)
{
	struct stat st;
	struct pages pages;
	size_t page_bytes = b->engine->env.page_bytes;
	b->metas = mem_alloc(BACKUP_META_PAGES * page_bytes);
	int err = backup_read_pipe(b, b->metas, BACKUP_META_PAGES * page_bytes, &b->metas_bytes, e);
	if (!err && fstat(b->engine->env.sync_fd, &st))
		err = errbuf_set(e, -errno, "%s/" ENV_FILE ": %s", backup_path(b),
				 err_text(-errno));
	if (err)
		return err;
	struct pages_source source = {backup_metas_read, b, (uint64_t)st.st_size};
	err = pages_open(&pages, &source, e);
	if (err)
		return errbuf_prefix(e, err, "%s/" ENV_FILE " is damaged", backup_path(b));
	b->transaction = pages.meta.transaction;
	b->bytes = (pages.meta.last_page + 1) * page_bytes;
	if (b->bytes > (uint64_t)st.st_size)
		b->bytes = (uint64_t)st.st_size;
	pages_release(&pages);
	return 0;
}

int backup_begin(struct store *store, uint64_t growth_max_bytes, struct store_backup **backup,
		 struct errbuf *e)
{
	struct engine *engine = engine_of(store);
	if (atomic_exchange(&engine->backing_up, true))
		return errbuf_set(e, ERR_BUSY,
				  "another backup is at work, and there is one at a time");
	struct lmdb_backup *b = mem_zalloc(sizeof(*b));
	b->backup.store = store;
	b->engine = engine;
	b->growth_max_bytes = growth_max_bytes;
	int err = backup_start(b, e);
	if (err) {
		mem_free(b);
		engine->backing_up = false;
		return err;
	}
	err = backup_read_metas(b, e);
	if (err)
		backup_end(&b->backup);
	else
		*backup = &b->backup;
	return err;
}

void backup_end(struct store_backup *backup)
{
	struct lmdb_backup *b = backup_of(backup);
	close(b->from_fd);
	backup_join(b);
	b->engine->backing_up = false;
	mem_free(b->metas);
	mem_free(b);
}
