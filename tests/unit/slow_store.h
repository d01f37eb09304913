/* A store that is far away: each process has one of these, and what it submits is done later, when
 * the test says so. Writes are done in the order in which all processes handed them over, as a
 * store's one writer does; reads at any time, and some are split: what was written between their
 * requests only the later ones see. A process may be told to have died: what it handed over last is
 * lost, and what it still tries comes to nothing. */
#ifndef TESTS_UNIT_SLOW_STORE_H
#define TESTS_UNIT_SLOW_STORE_H

#include "base/random.h"
#include "store/store.h"

enum { SLOW_MAX = 4096 };

/* What all processes share. */
struct slow {
	struct store *store; /* the real one */
	struct random *random;
	unsigned fails, refuses; /* of a thousand submissions */
	struct store_write *writes[SLOW_MAX];
	struct store_read *reads[SLOW_MAX];
	size_t write_count, read_count;
};

struct slow_store {
	struct store store; /* what the process has */
	struct slow *slow;
	bool dead;
};

static inline struct slow_store *slow_of(struct store *store)
{
	return CONTAINER_OF(store, struct slow_store, store);
}

static inline bool slow_chance(struct slow *slow, unsigned of_thousand)
{
	return random_below(slow->random, 1000) < of_thousand;
}

/* ---- Ends of submissions --------------------------------------------------------------------- */

static inline void slow_run_write(struct task *task)
{
	struct store_write *write = CONTAINER_OF(task, struct store_write, task);
	store_write_end(write);
}

static inline void slow_end_write(struct store_write *write, int err)
{
	write->err = err;
	write->task.run = slow_run_write;
	write->executor->post(write->executor, &write->task);
}

static inline void slow_run_read(struct task *task)
{
	struct store_read *read = CONTAINER_OF(task, struct store_read, task);
	store_read_end(read);
}

static inline void slow_end_read(struct store_read *read, int err)
{
	for (struct store_request *r = read->requests; r; r = r->next)
		r->err = err;
	read->err = err;
	read->task.run = slow_run_read;
	read->executor->post(read->executor, &read->task);
}

/* ---- The engine ------------------------------------------------------------------------------ */

static inline const struct store_engine *slow_inner(struct store_write *write)
{
	return slow_of(write->store)->slow->store->engine;
}

static inline int slow_append(struct store_write *write, const struct store_target *target,
			      int64_t ts_ms, unsigned fields, const uint64_t *handles, size_t n,
			      const struct value *values)
{
	return slow_inner(write)->append(write, target, ts_ms, fields, handles, n, values);
}

static inline int slow_delete_range(struct store_write *write, const struct store_target *target,
				    const uint64_t *handles, size_t n, int64_t start_ms,
				    int64_t end_ms)
{
	return slow_inner(write)->add_delete_range(write, target, handles, n, start_ms, end_ms);
}

static inline int slow_add_cell(struct store_write *write, const struct store_cell_write *cell)
{
	return slow_inner(write)->add_cell(write, cell);
}

static inline int slow_forget(struct store_write *write, const uint64_t *handles, size_t n)
{
	return slow_inner(write)->add_forget(write, handles, n);
}

static inline void slow_next_stage(struct store_write *write)
{
	slow_inner(write)->next_stage(write);
}

static inline int slow_write_submit(struct store_write *write)
{
	struct slow_store *store = slow_of(write->store);
	struct slow *slow = store->slow;
	if (store->dead) {
		slow_end_write(write, ERR_CANCELLED);
		return 0;
	}
	if (slow->write_count == SLOW_MAX || slow_chance(slow, slow->refuses))
		return ERR_BUSY;
	slow->writes[slow->write_count++] = write;
	return 0;
}

static inline int slow_read_submit(struct store_read *read)
{
	struct slow_store *store = slow_of(read->store);
	struct slow *slow = store->slow;
	if (store->dead) {
		slow_end_read(read, ERR_CANCELLED);
		return 0;
	}
	if (slow->read_count == SLOW_MAX || slow_chance(slow, slow->refuses))
		return ERR_BUSY;
	slow->reads[slow->read_count++] = read;
	return 0;
}

static inline int64_t slow_stamp(struct store *store)
{
	return store_stamp(slow_of(store)->slow->store);
}

static inline uint64_t slow_generation(struct store *store)
{
	return store_series_generation(slow_of(store)->slow->store);
}

static inline void slow_close(struct store *store)
{
	(void)store;
}

/* `atomic`: a batch's stages are one. */
static inline void slow_open(struct slow_store *store, struct slow *slow, bool atomic)
{
	static const struct store_engine engines[2] = {
#define SLOW_ENGINE(is_atomic)                                                                     \
	{                                                                                          \
		.name = "slow",                                                                    \
		.can = STORE_SERIAL_WRITES | ((is_atomic) ? STORE_ATOMIC_STAGES : 0),              \
		.append = slow_append,                                                             \
		.add_delete_range = slow_delete_range,                                             \
		.add_cell = slow_add_cell,                                                         \
		.add_forget = slow_forget,                                                         \
		.next_stage = slow_next_stage,                                                     \
		.write_submit = slow_write_submit,                                                 \
		.read_submit = slow_read_submit,                                                   \
		.stamp = slow_stamp,                                                               \
		.series_generation = slow_generation,                                              \
		.close = slow_close,                                                               \
	}
		SLOW_ENGINE(false),
		SLOW_ENGINE(true),
#undef SLOW_ENGINE
	};
	*store = (struct slow_store){.store = {&engines[atomic]}, .slow = slow};
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Does the write that has waited longest. One that fails is done, or it is not. */
static inline void slow_write(struct slow *slow)
{
	if (!slow->write_count)
		return;
	struct store_write *write = slow->writes[0];
	struct store *from = write->store;
	memmove(slow->writes, slow->writes + 1, --slow->write_count * sizeof(*slow->writes));
	bool fails = slow_chance(slow, slow->fails);
	if (fails && slow_chance(slow, 500)) {
		slow_end_write(write, ERR_UNKNOWN);
		return;
	}
	write->store = slow->store;
	write->stamp_us = 0; /* it goes by the order of acceptance */
	int err = slow->store->engine->write_submit(write);
	write->store = from;
	ASSERT(!err);
	if (fails)
		write->err = ERR_UNKNOWN;
}

static inline void slow_post_nowhere(struct executor *executor, struct task *task)
{
	(void)executor;
	(void)task;
}

/* Some of the first requests of a read; what is written then only the others see. */
static inline void slow_begin_read(struct slow *slow, struct store_read *read)
{
	struct executor nowhere = {slow_post_nowhere}, *executor = read->executor;
	struct store_request *first = read->requests, *last = first;
	while (last->next && slow_chance(slow, 500))
		last = last->next;
	struct store_request *rest = last->next;
	if (!rest)
		return;
	last->next = NULL;
	read->executor = &nowhere;
	int err = slow->store->engine->read_submit(read);
	ASSERT(!err);
	for (uint64_t n = random_below(slow->random, slow->write_count + 1); n > 0; n--)
		slow_write(slow);
	read->executor = executor;
	last->next = rest;
	read->requests = rest;
}

static inline void slow_read(struct slow *slow, size_t i)
{
	if (i >= slow->read_count)
		return;
	struct store_read *read = slow->reads[i];
	struct store *from = read->store;
	memmove(slow->reads + i, slow->reads + i + 1,
		(--slow->read_count - i) * sizeof(*slow->reads));
	if (slow_chance(slow, slow->fails)) {
		slow_end_read(read, ERR_UNKNOWN);
		return;
	}
	struct store_request *first = read->requests;
	read->store = slow->store;
	if (slow->write_count && slow_chance(slow, 500))
		slow_begin_read(slow, read);
	int err = slow->store->engine->read_submit(read);
	read->store = from;
	read->requests = first;
	ASSERT(!err);
}

/* The process is dead: of what it handed over some is done, the rest is not. Its callbacks still
 * run, so that its memory can be given back; nothing that they do has any effect. */
static inline void slow_kill(struct slow_store *store)
{
	struct slow *slow = store->slow;
	size_t kept = 0;
	for (size_t i = slow->write_count; i > 0; i--) {
		if (slow->writes[i - 1]->store == &store->store && slow_chance(slow, 500)) {
			while (i--)
				slow_write(slow);
			break;
		}
	}
	for (size_t i = 0; i < slow->write_count; i++) {
		if (slow->writes[i]->store == &store->store)
			slow_end_write(slow->writes[i], ERR_CANCELLED);
		else
			slow->writes[kept++] = slow->writes[i];
	}
	slow->write_count = kept;
	kept = 0;
	for (size_t i = 0; i < slow->read_count; i++) {
		if (slow->reads[i]->store == &store->store)
			slow_end_read(slow->reads[i], ERR_CANCELLED);
		else
			slow->reads[kept++] = slow->reads[i];
	}
	slow->read_count = kept;
	store->dead = true;
}

#endif
