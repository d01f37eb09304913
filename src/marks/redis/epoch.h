/* Private to marks/redis/: whether Redis still has the marks that were put there.
 *
 * A key of ours bears a text, the epoch: whose marks these are, how wide their slots are, which run
 * of Redis that is (its own run_id) and a number drawn by lot. It is read at each connection, about
 * every second, and with all that is marked. If it is not there, Redis was emptied; if it is of
 * another run, Redis was restarted, and may have what it once had; if the slots are others, the
 * marks are of no use. Then a new epoch begins, and whatever was marked before counts as lost.
 *
 * The store has a cell (table `leases`, kind "rollup-track", name "redis") with the epoch up to
 * which all lost marks have been made again. So neither a crash nor a start of this process forgets
 * that there is something to be made. An epoch of another store is left alone, and with it that
 * Redis: two must not take one's marks for the other's.
 *
 * All is done on the client's thread, and may wait there for Redis and for the store. */
#ifndef MARKS_REDIS_EPOCH_H
#define MARKS_REDIS_EPOCH_H

#include "base/random.h"
#include "marks/redis/client.h"
#include "marks/redis/epoch_text.h"
#include "store/store.h"

struct redis_epoch_options {
	struct redis_client *client;
	struct store *store;
	const char *key;
	int64_t slot_ms;
	/* Marks that were made are lost, or may be. */
	void (*lost)(void *owner, const char *why);
	/* They have been made again, and the store knows it. */
	void (*restored)(void *owner);
	void *owner;
};

struct redis_epoch {
	struct redis_epoch_options options;
	struct random random;
	char present[EPOCH_MAX_BYTES]; /* empty: none is known yet */
	char stored[EPOCH_MAX_BYTES];  /* in the store; empty: there is none */
	uint64_t version;
	char found[EPOCH_MAX_BYTES], run[RUN_MAX_BYTES]; /* what a greeting has told */
	struct redis_request request;
};

/* Reads what the store has, on the thread that opens; blocks. */
int redis_epoch_read(struct redis_epoch *epoch, struct store *store) MUST_CHECK;
/* Before the client starts. */
void redis_epoch_init(struct redis_epoch *epoch, const struct redis_epoch_options *options);
/* When the client's thread has ended. */
void redis_epoch_release(struct redis_epoch *epoch);

/* The client is connected. */
void redis_epoch_greet(struct redis_epoch *epoch);
/* It has been for a while. */
void redis_epoch_look(struct redis_epoch *epoch);
/* What GET of the key has answered. False: it is not what it was before. */
bool redis_epoch_seen(struct redis_epoch *epoch, const struct redisReply *reply);
/* Lost marks have been made again. */
void redis_epoch_restored(struct redis_epoch *epoch);

#endif
