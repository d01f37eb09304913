/* Persisters: what becomes of the polls of a queue (E: the persister classes of espersistd). One
 * contract, a row each in `persisters`; a worker has one of its queue's kind.
 *
 * A worker hands over a batch: polls in the order of their queue. The persister puts what they say
 * into the batch's write, as far as it comes (`filled`), and says so; the worker adds that these
 * polls are done and submits. What is written is written once more after any crash before that,
 * and is the same.
 *
 * Threads: everything of a persister belongs to its worker's thread. */
#ifndef PERSIST_PERSISTER_H
#define PERSIST_PERSISTER_H

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/mem.h"
#include "catalog/catalog.h"
#include "inventory/inventory.h"
#include "model/poll.h"
#include "store/store.h"

struct claims;
struct persister;

/* What all persisters of a worker stand on. */
struct persist_base {
	struct store *store;
	struct catalog *catalog;
	struct clock *clock;
	struct executor *executor; /* the worker's */
	/* Of raw data where the OIDSet does not say; 0: for ever. It may change at any time. */
	const _Atomic int64_t *retention_ms;
	int64_t future_max_ms;   /* how far ahead of the clock a time may lie */
	int64_t derive_every_ms; /* how often bins are made of a device's raw data */
	size_t counters_max;     /* whose last values are remembered, of one worker */
	struct claims *claims;   /* of all workers */
	const void *worker;      /* in whose name it takes claims; set by the worker */
};

/* Values of other times are refused. */
static inline bool persist_is_time(int64_t ts_ms, int64_t now_ms, int64_t future_max_ms)
{
	return ts_ms > 0 && ts_ms - future_max_ms <= now_ms;
}

struct persist_item {
	struct poll poll;
	const struct oidset *oidset;
	/* Result: why it is not what a poll of this OIDSet can be; then nothing of it is in the
	 * write. In the batch's arena, or constant. NULL: it is well. */
	const char *aside;
};

struct persist_batch;
/* On the executor, or from within store(). `err` 0: items[0 .. filled) are in the write, filled >=
 * 1; ERR_LIMIT: there is no room for so many, and the write, which may hold parts of them, is
 * reset; or a reason to try the same again later: ERR_BUSY, or the store's error. */
typedef void persist_filled(struct persist_batch *batch, int err);

struct persist_batch {
	struct persist_item *items;
	size_t count;
	struct store_write *write; /* empty at first */
	struct arena arena;        /* for what is decoded; reset by the worker */
	persist_filled *done;
	void *owner;

	size_t filled; /* result */
};

struct persister_ops {
	struct persister *(*make)(const struct persist_base *base);
	void (*store)(struct persister *persister, struct persist_batch *batch);
	/* After `done` with err 0, when the write is durable (0) or has failed. After a failure the
	 * same items come again. */
	void (*stored)(struct persister *persister, struct persist_batch *batch, int err);
	/* Every second while no batch is at work: what is due. */
	void (*tick)(struct persister *persister);
	/* Nothing of its own is at work. */
	bool (*idle)(const struct persister *persister);
	/* Begins nothing new. */
	void (*stop)(struct persister *persister);
	/* Once it is idle. */
	void (*free)(struct persister *persister);
};

struct persister {
	const struct persister_ops *ops;
	struct persist_base base;
};

extern const struct persister_ops persister_of_counters, persister_of_rows;
extern const struct persister_ops *const persisters[OIDSET_KINDS]; /* by kind of OIDSet */

#endif
