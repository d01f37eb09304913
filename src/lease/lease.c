#include "lease/lease.h"

#include "store/wait.h"
#include "wire/number.h"

enum {
	WRITE_MAX_BYTES = 4 << 20,
	READ_MAX_BYTES = 8 << 20,
	NAME_MAX_BYTES = 24,
	LINES_A_MINUTE = 3,
	NOT_THERE = 0,
};

struct leases {
	struct leases_options options;
	struct slice holder; /* the session's */
	struct store_write *write;
	struct store_read *read;
	struct store_request *claims; /* of `read` */
	struct sessions sessions;
	uint64_t breaks; /* of the session, when it was renewed last */
	struct partitions wanted, held;
	struct partitions own;             /* claims in our name that are not held */
	struct partitions taken;           /* claims of others that are alive */
	struct partitions asked, given;    /* by the present write */
	uint64_t versions[PARTITIONS_MAX]; /* NOT_THERE, or what the cell was given */
	struct store_write_cond *outcomes[PARTITIONS_MAX]; /* of those asked for */
	struct store_write_cond *gives[PARTITIONS_MAX];    /* of those given back */
	struct log_rate lines;                             /* of claims that cannot be read */
};

struct leases *leases_new(const struct leases_options *options)
{
	struct leases *l = mem_zalloc(sizeof(*l));
	struct store *store = lease_session_options_of(options->session)->store;
	l->options = *options;
	if (!options->sharing)
		l->options.sharing = SESSION_SHARES;
	l->holder = lease_session_options_of(options->session)->holder;
	l->write = store_write_new(store, WRITE_MAX_BYTES);
	l->read = store_read_new(store, READ_MAX_BYTES);
	l->lines = (struct log_rate){.lines_max = LINES_A_MINUTE};
	return l;
}

void leases_free(struct leases *l)
{
	store_write_free(l->write);
	store_read_free(l->read);
	sessions_release(&l->sessions);
	mem_free(l);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static struct store_parts leases_key(const struct leases *l)
{
	return (struct store_parts){{slice_of(l->options.kind)}};
}

static struct store_parts leases_name_of(uint32_t partition, char to[NAME_MAX_BYTES])
{
	size_t len = number_print_u64(to, partition);
	return (struct store_parts){{{to, len}}};
}

static int leases_put_one(struct leases *l, uint32_t partition)
{
	char name[NAME_MAX_BYTES];
	struct store_parts key = leases_key(l), column = leases_name_of(partition, name);
	return store_cell_put_if(l->write, TABLE_LEASES, &key, &column, l->versions[partition],
				 l->holder, 0, &l->outcomes[partition]);
}

static int leases_give_one(struct leases *l, uint32_t partition)
{
	char name[NAME_MAX_BYTES];
	struct store_parts key = leases_key(l), column = leases_name_of(partition, name);
	return store_cell_delete_if(l->write, TABLE_LEASES, &key, &column, l->versions[partition],
				    &l->gives[partition]);
}

/* Asks for those in `asked`, and gives back those in `given`. What is given is not held any more,
 * whatever comes of it: if the outcome is lost, the claim may go at any later time, until it is
 * written anew. */
static int leases_write_once(struct leases *l, struct task_queue *queue)
{
	int err = 0;
	store_write_reset(l->write);
	memset(l->outcomes, 0, sizeof(l->outcomes));
	for (uint32_t p = 0; p < PARTITIONS_MAX && !err; p++) {
		if (partitions_has(&l->asked, p)) {
			err = leases_put_one(l, p);
		} else if (partitions_has(&l->given, p)) {
			err = leases_give_one(l, p);
			partitions_remove(&l->held, p);
		}
	}
	return err ? err : store_write_wait(l->write, queue);
}

/* Leaves in `asked` those that turn out to be free, or ours by another version: of a write whose
 * outcome was lost. */
static void leases_take_outcomes(struct leases *l)
{
	for (uint32_t p = 0; p < PARTITIONS_MAX; p++) {
		const struct store_write_cond *outcome = l->outcomes[p];
		if (!outcome)
			continue;
		l->versions[p] = outcome->version;
		if (outcome->applied)
			partitions_add(&l->held, p);
		if (outcome->applied ||
		    (outcome->version && !slice_equal(outcome->value, l->holder)))
			partitions_remove(&l->asked, p);
	}
}

static int leases_write_claims(struct leases *l, struct task_queue *queue)
{
	if (!l->asked.count && !l->given.count)
		return 0;
	int err = leases_write_once(l, queue);
	if (err)
		return err;
	leases_take_outcomes(l);
	/* What was not given after all is in our own name still, and the next look finds it. */
	l->given = (struct partitions){0};
	if (!l->asked.count)
		return 0;
	err = leases_write_once(l, queue);
	if (!err)
		leases_take_outcomes(l);
	return err;
}

/* ---- Looking --------------------------------------------------------------------------------- */

/* The claims first, then the sessions that they name (session.h). */
static int leases_look(struct leases *l, struct task_queue *queue)
{
	store_read_reset(l->read);
	l->claims = store_read_add(l->read, STORE_CELL_SCAN);
	ASSERT(l->claims); /* the first of an empty arena */
	l->claims->cell_scan =
		(struct store_cell_scan){.table = TABLE_LEASES, .key = leases_key(l)};
	l->read->now_ms = clock_wall_ms(lease_session_options_of(l->options.session)->clock);
	int err = store_read_wait(l->read, queue);
	if (!err && l->claims->more)
		err = ERR_LIMIT;
	return err ? err : sessions_look(&l->sessions, l->options.session, queue);
}

/* A claim of a later program, or a damaged one, is left to whoever may know it. */
static void leases_warn_unread(struct leases *l, const struct store_cell *cell)
{
	log_rated(&l->lines, clock_mono_ms(lease_session_options_of(l->options.session)->clock),
		  LOG_WARN,
		  "the claim \"" SHOWN "\" (table leases, kind %s) cannot be read: it is none of "
		  "a partition by a process; it is left as it is",
		  SHOWN_OF(cell->column.part[0]), l->options.kind);
}

/* False: there is no such partition, or it is not wanted. */
static bool leases_partition_of(struct leases *l, const struct store_cell *cell, uint64_t *p)
{
	struct slice name = cell->column.part[0];
	if (number_parse_u64(name.data, name.data + name.len, p)) {
		leases_warn_unread(l, cell);
		return false;
	}
	return *p < PARTITIONS_MAX && partitions_has(&l->wanted, (uint32_t)*p);
}

/* Whose claim it is. True: it belongs to a stranger, who does not share. */
static bool leases_note_claim(struct leases *l, const struct store_cell *cell, uint32_t p)
{
	const struct session_seen *seen = sessions_find(&l->sessions, cell->value);
	bool unread = !lease_session_is_holder(cell->value);
	l->versions[p] = cell->version;
	if (slice_equal(cell->value, l->holder)) {
		if (!partitions_has(&l->held, p))
			partitions_add(&l->own, p);
		return false;
	}
	if (unread)
		leases_warn_unread(l, cell);
	partitions_remove(&l->held, p);
	if (!unread && !(seen && seen->alive))
		return false;
	partitions_add(&l->taken, p);
	return unread || !(seen->cell.roles & l->options.sharing);
}

/* Who has what. Returns how many of the wanted partitions strangers have. */
static size_t leases_note_claims(struct leases *l)
{
	const struct store_cell_scan *scan = &l->claims->cell_scan;
	struct partitions there = {0};
	size_t strange = 0;
	l->own = l->taken = (struct partitions){0};
	for (size_t i = 0; i < scan->count; i++) {
		uint64_t p;
		if (!leases_partition_of(l, &scan->cells[i], &p))
			continue;
		partitions_add(&there, (uint32_t)p);
		strange += leases_note_claim(l, &scan->cells[i], (uint32_t)p);
	}
	for (uint32_t p = 0; p < PARTITIONS_MAX; p++) {
		if (partitions_has(&there, p))
			continue;
		l->versions[p] = NOT_THERE;
		partitions_remove(&l->held, p);
	}
	return strange;
}

/* ---- Sharing --------------------------------------------------------------------------------- */

/* How many sessions share, and which of them is ours; that is there, or there is none yet. */
static size_t leases_members(const struct leases *l, size_t *own_place)
{
	size_t members = 0;
	*own_place = 0;
	for (size_t i = 0; i < l->sessions.count; i++) {
		const struct session_seen *seen = &l->sessions.list[i];
		if (!seen->alive || !(seen->cell.roles & l->options.sharing))
			continue;
		if (slice_equal(seen->cell.holder, l->holder))
			*own_place = members;
		members++;
	}
	return members ? members : 1;
}

/* Free partitions are asked for from our own place on, so that not all ask for the same. */
static void leases_ask_for_more(struct leases *l, size_t first, size_t share)
{
	for (uint32_t i = 0; i < PARTITIONS_MAX; i++) {
		uint32_t p = ((uint32_t)first + i) % PARTITIONS_MAX;
		if (l->held.count + l->asked.count >= share)
			return;
		if (partitions_has(&l->wanted, p) && !partitions_has(&l->taken, p) &&
		    !partitions_has(&l->held, p))
			partitions_add(&l->asked, p);
	}
}

static void leases_give_what_is_beyond(struct leases *l, size_t share)
{
	for (uint32_t p = PARTITIONS_MAX; p-- > 0;) {
		if (l->held.count - l->given.count <= share)
			return;
		if (partitions_has(&l->held, p))
			partitions_add(&l->given, p);
	}
}

/* What is in our own name is asked for in any case: nobody else would take it. */
static void leases_choose(struct leases *l)
{
	size_t strange = leases_note_claims(l), place;
	size_t members = leases_members(l, &place);
	size_t share = l->options.share ? (l->wanted.count - strange + members - 1) / members
					: PARTITIONS_MAX;
	l->asked = l->own;
	l->given = (struct partitions){0};
	leases_ask_for_more(l, place * share, share);
	leases_give_what_is_beyond(l, share);
}

/* ---- Taking and giving ----------------------------------------------------------------------- */

/* After a break others may have what was held; what they have not is written anew, so that nobody
 * takes it who believed the session to be dead. */
static int leases_take_claims(struct leases *l, struct task_queue *queue, uint64_t breaks)
{
	if (breaks != l->breaks)
		l->held = (struct partitions){0};
	l->breaks = breaks;
	if (!l->options.share && l->held.count == l->wanted.count)
		return 0;
	int err = leases_look(l, queue);
	if (err)
		return err;
	leases_choose(l);
	return leases_write_claims(l, queue);
}

int leases_take(struct leases *l, struct task_queue *queue, const struct partitions *wanted,
		struct partitions *held, int64_t *until_ms)
{
	struct session_hold hold;
	l->wanted = *wanted;
	int err = lease_session_renew(l->options.session, queue, &hold);
	*until_ms = hold.until_ms;
	err = err ? err : leases_take_claims(l, queue, hold.breaks);
	*held = err ? (struct partitions){0} : l->held;
	return err;
}

/* Gives back those in `given`, and leaves there what turns out to be ours by another version. */
static int leases_give_once(struct leases *l, struct task_queue *queue)
{
	int err = 0;
	store_write_reset(l->write);
	for (uint32_t p = 0; p < PARTITIONS_MAX && !err; p++) {
		if (partitions_has(&l->given, p))
			err = leases_give_one(l, p);
	}
	err = err || !l->write->cells ? err : store_write_wait_known(l->write, queue);
	for (uint32_t p = 0; p < PARTITIONS_MAX && !err; p++) {
		if (!partitions_has(&l->given, p))
			continue;
		const struct store_write_cond *outcome = l->gives[p];
		l->versions[p] = outcome->version;
		if (outcome->applied || !outcome->version ||
		    !slice_equal(outcome->value, l->holder))
			partitions_remove(&l->given, p);
	}
	return err;
}

int leases_give(struct leases *l, struct task_queue *queue)
{
	l->given = l->held;
	l->held = (struct partitions){0};
	int err = leases_give_once(l, queue);
	err = err || !l->given.count ? err : leases_give_once(l, queue);
	return err || !l->given.count ? err : ERR_RETRY;
}
