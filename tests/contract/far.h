/* A store that is far away, that several processes share, and that is not serial: it promises what
 * Cassandra can promise, and what it does not promise it breaks as often as it can.
 *
 *  - Rows of one batch, of several and of different processes land in any order. A stage begins
 *    when all rows of the one before have landed; the rows of a stage are not one. What a stage
 *    puts into one row is one up to STORE_ROW_WHOLE_BYTES; what is longer lands in pieces, one
 *    after the other, in the order of the requests, or ends in between. Only what one
 *    process puts into one row of a log lands as it was put.
 *  - The write with the higher stamp wins a sample or a stamped cell, whichever lands first.
 *    Conditional cells are linearizable. Expiry is by the store's clock.
 *  - The outcome of some batches is not learned (ERR_UNKNOWN): each of their rows that has not
 *    landed lands later, some minutes maybe, or never.
 *  - The requests of a read are answered at different moments; some reads fail.
 *  - Each process has a clock of its own. What one that is frozen has handed over lands when it is
 *    woken; of one that was killed some rows land later.
 *  - A handle lives on when its series is forgotten; an append to it brings the series back. What
 *    one process forgets another does not hear of (store_series_generation).
 *
 * It keeps what has landed in a naive engine. Nothing happens but in far_step, which one seed
 * decides; so one thread at a time calls it. Everything else may be called on any thread. */
#ifndef TESTS_CONTRACT_FAR_H
#define TESTS_CONTRACT_FAR_H

#include "base/clock.h"
#include "store/store.h"

/* How often each fault happens, in a thousand times. */
struct far_faults {
	unsigned unknown; /* landings: the outcome of the batch is not learned */
	unsigned failed;  /* answers of a request: the read ends with ERR_UNKNOWN */
	unsigned refused; /* submissions: ERR_BUSY */
	unsigned cut;     /* reads: they give a few points at most, as if points_max were so low */
	unsigned full;    /* stages, before they begin: the batch ends with ERR_FULL */
};

/* Faults of a program, planted in its store: tests that run on it have to find them. */
enum far_bug {
	FAR_RIGHT,
	FAR_BUG_LATE_STAMPS, /* samples are stamped when they are handed over, whoever read what */
	FAR_BUG_SERIAL,      /* it says that its writes are serial */
	FAR_BUG_KNOWN,       /* an outcome that is not known is told as a success */
	FAR_BUG_NEWS,        /* of the series in an answer of news one is left out */
	FAR_BUG_NEWS_GONE,   /* who asks for news that have gone is given none, and not told so */
};

struct far;
/* `clock` is the store's. */
struct far *far_new(struct clock *clock, uint64_t seed, const struct far_faults *faults);
void far_set_faults(struct far *far, const struct far_faults *faults);
void far_plant(struct far *far, enum far_bug bug); /* before far_open */
/* One process alone has the store, and knows it; before far_open. */
void far_set_alone(struct far *far);
/* What has landed. */
struct store *far_landed(struct far *far);
/* All processes have closed it. */
void far_free(struct far *far);
/* Removes what has been expired for longer than the longest query. */
void far_settle(struct far *far);
/* One of the cells that were removed from a log is there again, as on a replica that was away. */
void far_bring_back(struct far *far, enum table table);
/* As if STORE_NEWS_MS had passed: the news that there are have gone. */
void far_forget_news(struct far *far);

/* One row lands, or one request is answered. False: there is none, but of those that are frozen. */
bool far_step(struct far *far);
/* Waits until something was handed over, or far_stop. False: stopped. */
bool far_await(struct far *far);
/* Does so until far_stop, as the function of a thread. `far` is a struct far. NULL. */
void *far_run(void *far);
void far_stop(struct far *far);

/* The store as one process has it. Its stamps are by `clock`, and above `after_us`: those of the
 * last process of its name were not. store_close waits until all that it handed over has ended. */
struct store *far_open(struct far *far, struct clock *clock, int64_t after_us);
/* What it hands over, or has handed over, waits. */
void far_freeze(struct store *store, bool frozen);
/* The process is dead. Batches and reads end with ERR_CANCELLED, so that their memory can be given
 * back; nothing that it does any more has an effect. */
void far_kill(struct store *store);
/* Whether some of what it handed over to be written has not ended. */
bool far_has_writes(const struct store *store);
/* The highest stamp that it took. */
int64_t far_last_stamp_us(const struct store *store);

#endif
