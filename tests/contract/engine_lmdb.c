#include <signal.h>
#include <sys/wait.h>

#include "engines.h"
#include "lmdb_dir.h"
#include "store/lmdb/lmdb.h"

struct lmdb_context {
	struct lmdb_dir dir;
	uint64_t journal_max_bytes, head_max_bytes;
};

static struct store *open_at(struct lmdb_context *context, struct clock *clock)
{
	struct lmdb_options options = {
		.path = context->dir.path,
		.map_bytes = UINT64_C(1) << 30,
		.journal_max_bytes = context->journal_max_bytes,
		.head_max_bytes = context->head_max_bytes,
		.not_durable = true, /* what a kill leaves is in the page cache */
		.clock = clock,
	};
	struct errbuf e = {""};
	struct store *store;
	int err = lmdb_open(&options, &store, &e);
	if (err)
		fail_msg("cannot open: %s (%s)", err_text(err), e.text);
	return store;
}

static struct store *open_lmdb(void *context, struct clock *clock)
{
	struct lmdb_context *lmdb = context;
	lmdb_dir_make(&lmdb->dir);
	return open_at(lmdb, clock);
}

static struct store *reopen_lmdb(void *context, struct store *store, struct clock *clock)
{
	store_close(store);
	return open_at(context, clock);
}

static void settle_lmdb(UNUSED void *context, struct store *store)
{
	assert_int_equal(lmdb_settle(store), 0);
}

static void close_lmdb(void *context, struct store *store)
{
	struct lmdb_context *lmdb = context;
	store_close(store);
	lmdb_dir_remove(&lmdb->dir);
}

/* The child opens, works, and kills itself. No thread of the engine lives across the fork. */
static struct store *kill_in_child(void *context, struct store *store, struct clock *clock,
				   void (*work)(struct store *store, struct clock *clock))
{
	int status;
	store_close(store);
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		work(open_at(context, clock), clock);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	return open_at(context, clock);
}

struct contract_engine engine_lmdb(const char *name, uint64_t journal_max_bytes,
				   uint64_t head_max_bytes)
{
	static struct lmdb_context context;
	context.journal_max_bytes = journal_max_bytes;
	context.head_max_bytes = head_max_bytes;
	return (struct contract_engine){
		.name = name,
		.context = &context,
		.open = open_lmdb,
		.reopen = reopen_lmdb,
		.settle = settle_lmdb,
		.close = close_lmdb,
		.kill_in = kill_in_child,
	};
}
