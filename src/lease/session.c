#include "lease/session.h"

#include <pthread.h>

#include "base/grow.h"
#include "store/wait.h"

enum {
	SESSION_WRITE_MAX_BYTES = 64 << 10,
	SESSIONS_READ_MAX_BYTES = 8 << 20,
	SESSION_VALUE_MAX_BYTES = 4096,
	SESSION_LINES_A_MINUTE = 3,
	/* A cell stays for so long after the session's end. The store removes it by the store's
	 * clock, and that may be ahead of the clocks of those who judge the session by its end. */
	SESSION_KEPT_MS = 86400000,
};

static const struct store_parts session_row = {{SLICE("session")}};

struct lease_session {
	struct lease_session_options options;

	pthread_mutex_t lock; /* guards the rest; held while a renewal is written */
	struct store_write *write;
	struct session_hold hold;
	uint64_t version; /* that the cell was given; 0: none */
};

bool lease_session_is_holder(struct slice text)
{
	bool good = text.len && text.len <= SESSION_HOLDER_MAX_BYTES;
	for (size_t i = 0; i < text.len && good; i++)
		good = (unsigned char)text.data[i] >= ' ';
	return good;
}

struct lease_session *lease_session_new(const struct lease_session_options *options)
{
	struct lease_session *s = mem_zalloc(sizeof(*s));
	ASSERT(options->holder.len && options->holder.len <= SESSION_HOLDER_MAX_BYTES);
	s->options = *options;
	pthread_mutex_init(&s->lock, NULL);
	s->write = store_write_new(options->store, SESSION_WRITE_MAX_BYTES);
	return s;
}

void lease_session_free(struct lease_session *s)
{
	pthread_mutex_destroy(&s->lock);
	store_write_free(s->write);
	mem_free(s);
}

const struct lease_session_options *lease_session_options_of(const struct lease_session *s)
{
	return &s->options;
}

/* ---- Renewing -------------------------------------------------------------------------------- */

static int session_put(struct lease_session *s, struct task_queue *queue, int64_t until_ms,
		       struct store_write_cond **outcome)
{
	const struct store_parts column = {{s->options.holder}};
	const struct session_cell cell = {.holder = s->options.holder,
					  .name = s->options.name,
					  .address = s->options.address,
					  .roles = s->options.roles,
					  .at_ms = until_ms - s->options.lease_ms,
					  .until_ms = until_ms};
	struct buf value;
	buf_init(&value, SESSION_VALUE_MAX_BYTES);
	session_cell_put(&cell, &value);
	store_write_reset(s->write);
	int err = value.failed ? ERR_LIMIT
			       : store_cell_put_if(s->write, TABLE_LEASES, &session_row, &column,
						   s->version, buf_slice(&value),
						   until_ms + SESSION_KEPT_MS, outcome);
	buf_release(&value);
	return err ? err : store_write_wait(s->write, queue);
}

/* Whether this process wrote it: by a renewal whose outcome was lost, or before a restart. */
static bool session_is_own(struct lease_session *s, const struct store_write_cond *outcome)
{
	struct errbuf e = {""};
	struct session_cell cell;
	int err = session_cell_read(outcome->value, &s->write->arena, &cell, &e);
	if (!err && !slice_equal(cell.holder, s->options.holder))
		err = errbuf_set(&e, ERR_INVALID, "it names another holder");
	if (err)
		log_warn("the session of this process, \"" SHOWN
			 "\" (table leases, kind session), cannot be read: %s; it begins anew",
			 SHOWN_OF(s->options.holder), e.text);
	return !err;
}

/* If the cell is not what it was, once more by what is there. *lost: it was not ours meanwhile. */
static int session_put_until(struct lease_session *s, struct task_queue *queue, int64_t until_ms,
			     bool *lost)
{
	struct store_write_cond *outcome = NULL;
	int err = session_put(s, queue, until_ms, &outcome);
	if (!err && !outcome->applied) {
		*lost = !outcome->version || !session_is_own(s, outcome);
		s->version = outcome->version;
		err = session_put(s, queue, until_ms, &outcome);
	}
	if (err)
		return err;
	if (!outcome->applied)
		return ERR_RETRY;
	s->version = outcome->version;
	return 0;
}

static int session_renew_locked(struct lease_session *s, struct task_queue *queue)
{
	int64_t until_ms = clock_wall_ms(s->options.clock) + s->options.lease_ms;
	bool lost = false;
	int err = session_put_until(s, queue, until_ms, &lost);
	if (err)
		return err;
	/* What counts is when this is known, not when it was asked for: nobody took it for dead
	 * before its end. */
	if (lost || clock_wall_ms(s->options.clock) >= s->hold.until_ms)
		s->hold.breaks++;
	s->hold.until_ms = until_ms;
	return 0;
}

int lease_session_renew(struct lease_session *s, struct task_queue *queue,
			struct session_hold *hold)
{
	pthread_mutex_lock(&s->lock);
	int err = session_renew_locked(s, queue);
	*hold = s->hold;
	pthread_mutex_unlock(&s->lock);
	return err;
}

static int session_delete(struct lease_session *s, struct task_queue *queue, uint64_t version,
			  struct store_write_cond **outcome)
{
	const struct store_parts column = {{s->options.holder}};
	store_write_reset(s->write);
	int err = store_cell_delete_if(s->write, TABLE_LEASES, &session_row, &column, version,
				       outcome);
	return err ? err : store_write_wait_known(s->write, queue);
}

/* A renewal whose outcome was lost may have given the cell another version. */
static int session_end_locked(struct lease_session *s, struct task_queue *queue)
{
	struct store_write_cond *outcome;
	int err = session_delete(s, queue, s->version, &outcome);
	if (!err && !outcome->applied && outcome->version && session_is_own(s, outcome))
		err = session_delete(s, queue, outcome->version, &outcome);
	return err || outcome->applied || !outcome->version ? err : ERR_RETRY;
}

int lease_session_end(struct lease_session *s, struct task_queue *queue)
{
	pthread_mutex_lock(&s->lock);
	int err = s->version ? session_end_locked(s, queue) : 0;
	s->version = 0;
	s->hold.until_ms = 0;
	pthread_mutex_unlock(&s->lock);
	return err;
}

/* ---- The others ------------------------------------------------------------------------------ */

struct sessions_looking {
	struct sessions *all;
	const struct lease_session *session;
};

/* By our clock after the read: the session may have been renewed while the read was under way.
 * Whose clock is behind cannot be told from whoever renews late; but he finds that ours is ahead.
 */
static void session_compare_clock(const struct sessions_looking *looking,
				  const struct session_cell *cell)
{
	const struct lease_session_options *own = &looking->session->options;
	int64_t ahead_ms = cell->at_ms - clock_wall_ms(own->clock);
	if (ahead_ms <= own->skew_max_ms)
		return;
	log_rated(
		&looking->all->lines, clock_mono_ms(own->clock), LOG_ERROR,
		"the clock of \"" SHOWN "\" is %lld ms ahead of this process' clock, more than "
		"rollup.clock_difference (%lld ms): roll-ups may be wrong until the clocks are set",
		SHOWN_OF(cell->holder), (long long)ahead_ms, (long long)own->skew_max_ms);
}

/* Alive as our clock said before it was read. */
static int sessions_take(const struct store_cell *cell, void *owner)
{
	const struct sessions_looking *looking = owner;
	struct sessions *all = looking->all;
	const struct lease_session_options *own = &looking->session->options;
	struct slice holder = arena_copy(&all->arena, cell->column.part[0]);
	struct slice value = arena_copy(&all->arena, cell->value);
	struct errbuf e = {""};
	if (!holder.data || !value.data)
		return ERR_LIMIT;
	GROW(all->list, all->room, all->count + 1);
	struct session_seen *seen = &all->list[all->count++];
	int err = session_cell_read(value, &all->arena, &seen->cell, &e);
	if (!err && !slice_equal(seen->cell.holder, holder))
		err = errbuf_set(&e, ERR_INVALID, "it names another holder");
	seen->alive = err || all->now_ms < seen->cell.until_ms + own->skew_max_ms;
	if (!err) {
		session_compare_clock(looking, &seen->cell);
		return 0;
	}
	seen->cell = (struct session_cell){.holder = holder};
	log_rated(&all->lines, clock_mono_ms(own->clock), LOG_WARN,
		  "the session \"" SHOWN "\" (table leases, kind session) cannot be read: %s; it "
		  "counts as alive as long as the cell is there, and what it has claimed is left "
		  "to it",
		  SHOWN_OF(holder), e.text);
	return 0;
}

int sessions_look(struct sessions *all, const struct lease_session *s, struct task_queue *queue)
{
	struct sessions_looking looking = {all, s};
	struct errbuf why;
	if (!all->arena.max_bytes) {
		arena_init(&all->arena, SESSIONS_READ_MAX_BYTES);
		all->lines = (struct log_rate){.lines_max = SESSION_LINES_A_MINUTE};
	}
	arena_reset(&all->arena);
	all->count = 0;
	all->now_ms = clock_wall_ms(s->options.clock);
	return store_row_wait(s->options.store, queue, all->now_ms, TABLE_LEASES, &session_row,
			      sessions_take, &looking, &why);
}

struct sessions_voiding {
	struct store *store;
	struct task_queue *queue;
};

static int session_void(const struct store_cell *cell, void *owner)
{
	const struct sessions_voiding *voiding = owner;
	return store_put_if_wait(voiding->store, voiding->queue, TABLE_LEASES, &session_row,
				 &cell->column, cell->version, (struct slice){NULL, 0});
}

int lease_sessions_void(struct store *store, struct clock *clock, struct task_queue *queue,
			struct errbuf *e)
{
	struct sessions_voiding voiding = {store, queue};
	return store_row_wait(store, queue, clock_wall_ms(clock), TABLE_LEASES, &session_row,
			      session_void, &voiding, e);
}

void sessions_release(struct sessions *all)
{
	arena_release(&all->arena);
	mem_free(all->list);
	*all = (struct sessions){0};
}

const struct session_seen *sessions_find(const struct sessions *all, struct slice holder)
{
	for (size_t i = 0; i < all->count; i++) {
		if (slice_equal(all->list[i].cell.holder, holder))
			return &all->list[i];
	}
	return NULL;
}

/* ---- The start ------------------------------------------------------------------------------- */

int lease_session_open(struct lease_session *s, struct task_queue *queue, struct errbuf *e)
{
	struct session_hold hold;
	struct sessions all = {0};
	if (!store_is_shared(s->options.store))
		return 0;
	int err = lease_session_renew(s, queue, &hold);
	err = err ? err : sessions_look(&all, s, queue); /* whose clocks are off */
	sessions_release(&all);
	return err ? errbuf_set(e, err, "the session of this process cannot begin: %s",
				err_text(err))
		   : 0;
}
