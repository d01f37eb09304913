/* Rates of what is polled no more: a device that fell silent before the server ended has raw data
 * of which no rates were made, and no poll would bring its turn. So once after the start, when
 * whatever is still polled has had its turn, the checkpoints are gone through, and what the workers
 * have not heard of is brought up to date as recomputing does it first.
 *
 *   keys of checkpoints -> of each: does its worker know the source? -> no: derive -> the next
 */
#include "persist/silent.h"

#include "base/log.h"
#include "base/stats.h"
#include "persist/derive_request.h"
#include "persist/private.h"
#include "persist/recompute.h"

enum {
	KEYS_MAX_BYTES = 256 << 20,
	SLICE_MAX_BYTES = 16 << 20,
	SLICE_ROWS_MAX = 10000,
	TURNS = 2, /* of derive_every_ms, until everything that is polled is known */
};

struct key {
	struct slice device, oidset;
};

/* What a worker is asked; left to it if it hangs. */
struct probe {
	struct silent *silent; /* NULL: nobody waits for the answer */
	struct post *post;
	struct derive_request request;
	struct rate_table table; /* its names lie here */
	char device[INVENTORY_NAME_MAX_BYTES], oidset[INVENTORY_NAME_MAX_BYTES];
};

struct silent {
	struct persist *persist;
	struct loop_timer *timer;
	bool busy;
	void (*stopped)(void *owner);
	void *owner;

	struct arena arena; /* of the keys */
	struct buf keys;    /* struct key each */
	size_t next;
	struct store_read *read;
	struct store_request *request;
	const struct oidset *oidset; /* at hand */
	struct probe *probe;         /* under way */
	struct recompute *recompute;
};

static void end(struct silent *s)
{
	s->busy = false;
	arena_reset(&s->arena);
	buf_clear(&s->keys);
	if (s->stopped)
		s->stopped(s->owner);
}

static const struct key *key_at_hand(const struct silent *s)
{
	return (const struct key *)(const void *)s->keys.data + s->next;
}

static void go_on(struct silent *s);

static void derived(struct recompute *recompute, int err)
{
	struct silent *s = recompute_owner(recompute);
	if (err && err != ERR_NOT_FOUND && err != ERR_CANCELLED) {
		log_warn("rates of " SHOWN ", OIDSet " SHOWN ": %s",
			 SHOWN_OF(key_at_hand(s)->device), SHOWN_OF(s->oidset->name),
			 recompute_error(recompute));
		stat_add(STAT_persist_rates_failed, 1);
	}
	stat_add(STAT_persist_rates_made, !err);
	recompute_free(recompute);
	s->recompute = NULL;
	s->next++;
	go_on(s);
}

/* Begins with the source at hand, or passes it over. */
static void take_answer(struct silent *s, int err)
{
	struct errbuf e;
	const struct recompute_options options = {
		.device = key_at_hand(s)->device,
		.oidset = s->oidset,
		.only_derive = true,
		.done = derived,
		.owner = s,
	};
	s->probe = NULL;
	if (!err && !s->stopped && recompute_start(s->persist, &options, &s->recompute, &e) == 0)
		return;
	s->next++;
	go_on(s);
}

static void run_probed(struct task *task)
{
	struct probe *probe = CONTAINER_OF(task, struct probe, request.done);
	struct silent *s = probe->silent;
	int err = probe->request.err;
	mem_free(probe);
	if (s)
		take_answer(s, err);
}

void silent_abandon(struct silent *silent, const struct post *post)
{
	if (!silent->probe || silent->probe->post != post)
		return;
	silent->probe->silent = NULL;
	take_answer(silent, ERR_TIMEOUT);
}

/* In memory of the probe's own; false: no device has such a name. */
static bool copy_name(struct slice name, char *to, struct slice *copy)
{
	if (name.len > INVENTORY_NAME_MAX_BYTES)
		return false;
	memcpy(to, name.data, name.len);
	*copy = (struct slice){to, name.len};
	return true;
}

/* Whether there is one whose worker is now being asked. */
static bool ask(struct silent *s)
{
	const struct key *key = key_at_hand(s);
	s->oidset = inventory_conf_oidset_stored(s->persist->options.conf, key->oidset);
	if (!s->oidset || s->oidset->kind != OIDSET_COUNTERS)
		return false;
	s->oidset = s->oidset->stored_as;
	struct probe *probe = mem_zalloc(sizeof(*probe));
	if (!copy_name(key->device, probe->device, &probe->table.device) ||
	    !copy_name(key->oidset, probe->oidset, &probe->table.oidset)) {
		mem_free(probe);
		return false;
	}
	probe->silent = s;
	probe->post = persist_post(s->persist, s->oidset->queue, key->device);
	probe->request.table = &probe->table;
	probe->request.only_probe = true;
	probe->request.executor = loop_executor(s->persist->options.loop);
	probe->request.done.run = run_probed;
	s->probe = probe;
	worker_derive(probe->post->worker, &probe->request);
	return true;
}

static void go_on(struct silent *s)
{
	size_t count = s->keys.len / sizeof(struct key);
	while (s->next < count && !s->stopped) {
		if (ask(s))
			return;
		s->next++;
	}
	end(s);
}

/* ---- The keys -------------------------------------------------------------------------------- */

static int note_keys(struct silent *s)
{
	const struct store_enumerate *rows = &s->request->enumerate;
	int err = 0;
	for (size_t i = 0; i < rows->count && !err; i++) {
		const struct slice *part = rows->rows[i].key.part;
		struct key key = {arena_copy(&s->arena, part[0]), arena_copy(&s->arena, part[1])};
		err = key.device.data && key.oidset.data ? buf_append(&s->keys, &key, sizeof(key))
							 : ERR_LIMIT;
	}
	return err;
}

static void keys_read(struct store_read *read, int err)
{
	struct silent *s = read->owner;
	err = err ? err : note_keys(s);
	if (!err && s->request->more && !s->stopped)
		err = store_read_submit(read);
	else if (!err)
		go_on(s);
	if (err) {
		log_warn("what is polled no more was not looked through: %s",
			 store_read_sentence(read, err));
		end(s);
	}
}

static void on_timer(void *owner)
{
	struct silent *s = owner;
	s->busy = true;
	store_read_reset(s->read);
	s->read->now_ms = clock_age_ms(s->persist->options.clock);
	s->request = store_read_add(s->read, STORE_ENUMERATE);
	ASSERT(s->request); /* the first of an empty read */
	s->request->enumerate.table = TABLE_RATE_CHECKPOINTS;
	s->request->enumerate.limit = SLICE_ROWS_MAX;
	int err = store_read_submit(s->read);
	if (!err)
		return;
	s->busy = false;
	loop_timer_start(s->timer, s->persist->options.derive_every_ms, 0);
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct silent *silent_new(struct persist *persist)
{
	struct silent *s = mem_zalloc(sizeof(*s));
	s->persist = persist;
	arena_init(&s->arena, KEYS_MAX_BYTES);
	buf_init(&s->keys, KEYS_MAX_BYTES);
	s->read = store_read_new(persist->options.store, SLICE_MAX_BYTES);
	s->read->executor = loop_executor(persist->options.loop);
	s->read->done = keys_read;
	s->read->owner = s;
	s->timer = loop_timer_new(persist->options.loop, on_timer, s);
	loop_timer_start(s->timer, TURNS * persist->options.derive_every_ms, 0);
	return s;
}

void silent_stop(struct silent *silent, void (*stopped)(void *owner), void *owner)
{
	loop_timer_close(silent->timer);
	silent->stopped = stopped;
	silent->owner = owner;
	if (silent->recompute)
		recompute_cancel(silent->recompute);
	if (!silent->busy)
		stopped(owner);
}

void silent_free(struct silent *silent)
{
	store_read_free(silent->read);
	arena_release(&silent->arena);
	buf_release(&silent->keys);
	mem_free(silent);
}
