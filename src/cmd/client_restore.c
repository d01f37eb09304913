/* restore: a data directory of a backup. */
#include "auth/auth.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/fault.h"
#include "cmd/client.h"
#include "cmd/client_backup.h"
#include "lease/session.h"
#include "marks/redis/redis.h"
#include "store/lmdb/lmdb.h"

struct client_restore_args {
	struct command_args line;
	const char *file, *dir;
};

static int client_restore_take(void *owner, struct slice piece, struct errbuf *e)
{
	return lmdb_restore_write(owner, piece, e);
}

/* The backup holds the key that signs sessions, so whoever has the backup could forge a session:
 * the restored store gets another key. */
static int client_restore_end_sessions(struct store *store, struct task_queue *queue,
				       struct errbuf *e)
{
	struct auth *auth = auth_new(&(struct auth_options){.store = store, .clock = clock_real()});
	int err = auth_load(auth, queue, e);
	if (!err && !auth_is_open(auth))
		err = auth_reset_sessions(auth, queue, e);
	auth_free(auth);
	return err;
}

/* What is restored is another store than the one that the backup is of, which may still be in use:
 * nobody has a claim on it, no Redis its marks, and no browser a session. */
static int client_restore_become_another(struct lmdb_restore *restore, struct errbuf *e)
{
	const struct lmdb_options options = lmdb_restore_options(restore);
	struct store *store;
	struct task_queue queue;
	int err = lmdb_open(&options, &store, e);
	if (err)
		return err;
	task_queue_init(&queue);
	err = lease_sessions_void(store, clock_real(), &queue, e);
	if (!err)
		err = marks_redis_void(store, &queue, e);
	if (!err)
		err = client_restore_end_sessions(store, &queue, e);
	store_close(store);
	task_queue_release(&queue);
	return err;
}

static int client_restore_make(const struct client_restore_args *asked,
			       struct backup_reader *reader, struct errbuf *e)
{
	struct lmdb_restore *restore = NULL;
	int err = lmdb_restore_begin(asked->dir, &restore, e);
	if (err)
		return err;
	reader->data = client_restore_take;
	reader->owner = restore;
	err = backup_read_file(asked->file, reader, "restore", e);
	if (!err)
		err = lmdb_restore_written(restore, e);
	if (!err)
		err = client_restore_become_another(restore, e);
	if (!err)
		err = lmdb_restore_end(restore, e);
	lmdb_restore_free(restore);
	return err;
}

static int client_restore_run(const struct command_args *args)
{
	const struct client_restore_args *asked =
		CONTAINER_OF(args, const struct client_restore_args, line);
	struct backup_reader reader = {.data = NULL};
	struct errbuf e = {""};
	backup_reader_init(&reader);
	int err = fault_arm_from_env(&e);
	if (!err)
		err = client_restore_make(asked, &reader, &e);
	if (err) {
		command_complain(args, "%s", e.text);
	} else {
		backup_print_facts(stderr, asked->file, &reader.manifest);
		fprintf(stderr, "%s is a data directory now: granary serve --data %s\n", asked->dir,
			asked->dir);
	}
	backup_reader_release(&reader);
	return err ? EXIT_FAILED : EXIT_OK;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_restore_args, field, __VA_ARGS__)
static const struct command_option client_restore_options[] = {
	ROW(text, file, NULL, "FILE", "the backup; - is standard input", .required = true),
	ROW(text, dir, NULL, "DIR", "the data directory; it must not be there", .required = true),
};

const struct command client_restore = {
	.name = "restore",
	.summary = "make a data directory of a backup",
	.about = "Makes a data directory of a backup that `granary backup` took, and needs no "
		 "server. The store is written to DIR.restoring while the backup is checked, and "
		 "named DIR when all of it is right and on disk; else there is no DIR. The store "
		 "is another one than that of which the backup is: claims of processes are void, "
		 "sessions of browsers have ended, and where marks of roll-ups were in Redis, they "
		 "are made again from raw data.\n"
		 "Exit status: 0 DIR is there and whole, 1 it is not, and a line says why, 2 wrong "
		 "use.\n",
	.examples = "granary restore /backup/granary-monday /srv/granary\n"
		    "ssh other cat granary.zst | zstd -d | granary restore - /srv/granary\n",
	COMMAND_TAKES(client_restore_options, client_restore_args),
	.run = client_restore_run,
};
