#include "lease/lease.h"

#include "store/wait.h"
#include "wire/number.h"

enum {
	WRITE_MAX_BYTES = 4 << 20,
	READ_MAX_BYTES = 8 << 20,
	NAME_MAX_BYTES = 24,
	NOT_HELD = 0,
};

struct leases {
	struct leases_options options;
	struct store_write *write;
	struct store_read *read;
	struct store_request *members, *leases;
	struct partitions wanted, held;
	struct partitions asked, given;    /* by the present write */
	uint64_t versions[PARTITIONS_MAX]; /* NOT_HELD, or what the cell was given */
	struct store_write_cond *outcomes[PARTITIONS_MAX]; /* of those asked for */
	uint64_t member_version;
	struct store_write_cond *member; /* NULL: not asked */
	int64_t until_ms;
};

struct leases *leases_new(const struct leases_options *options)
{
	struct leases *l = mem_zalloc(sizeof(*l));
	l->options = *options;
	l->write = store_write_new(options->store, WRITE_MAX_BYTES);
	l->read = store_read_new(options->store, READ_MAX_BYTES);
	return l;
}

void leases_free(struct leases *l)
{
	store_write_free(l->write);
	store_read_free(l->read);
	mem_free(l);
}

/* ---- Writing --------------------------------------------------------------------------------- */

static const struct store_parts lease_key = {{SLICE("rollup")}};
static const struct store_parts member_key = {{SLICE("rollup-member")}};

static struct store_parts leases_name_of(uint32_t partition, char to[NAME_MAX_BYTES])
{
	size_t len = number_print_u64(to, partition);
	return (struct store_parts){{{to, len}}};
}

static int leases_put_one(struct leases *l, uint32_t partition)
{
	char name[NAME_MAX_BYTES];
	struct store_parts column = leases_name_of(partition, name);
	return store_cell_put_if(l->write, TABLE_LEASES, &lease_key, &column,
				 l->versions[partition], l->options.holder, l->until_ms,
				 &l->outcomes[partition]);
}

static int leases_give_one(struct leases *l, uint32_t partition)
{
	char name[NAME_MAX_BYTES];
	struct store_parts column = leases_name_of(partition, name);
	struct store_write_cond *outcome;
	return store_cell_delete_if(l->write, TABLE_LEASES, &lease_key, &column,
				    l->versions[partition], &outcome);
}

/* Asks for those in `asked`, gives back those in `given`, and renews the membership if wanted. */
static int leases_write_once(struct leases *l, struct task_queue *queue, bool member)
{
	const struct store_parts member_column = {{l->options.holder}};
	int err = 0;
	store_write_reset(l->write);
	memset(l->outcomes, 0, sizeof(l->outcomes));
	l->member = NULL;
	if (member)
		err = store_cell_put_if(l->write, TABLE_LEASES, &member_key, &member_column,
					l->member_version, l->options.holder, l->until_ms,
					&l->member);
	for (uint32_t p = 0; p < PARTITIONS_MAX && !err; p++) {
		if (partitions_has(&l->asked, p))
			err = leases_put_one(l, p);
		else if (partitions_has(&l->given, p))
			err = leases_give_one(l, p);
	}
	return err ? err : store_write_wait(l->write, queue);
}

/* Takes what the cell has now: another one's, or our own from before a restart, of a renewal whose
 * outcome was lost, or one that has ended meanwhile. True: it is ours, but has to be asked for by
 * that version. */
static bool leases_take_outcome(const struct leases *l, const struct store_write_cond *outcome,
				uint64_t *version)
{
	bool ours = !outcome->applied &&
		    (!outcome->version || slice_equal(outcome->value, l->options.holder));
	*version = outcome->applied || ours ? outcome->version : NOT_HELD;
	return ours;
}

static bool leases_take_outcomes(struct leases *l)
{
	bool ours = l->member && leases_take_outcome(l, l->member, &l->member_version);
	for (uint32_t p = 0; p < PARTITIONS_MAX; p++) {
		const struct store_write_cond *outcome = l->outcomes[p];
		if (partitions_has(&l->given, p)) {
			l->versions[p] = NOT_HELD;
			partitions_remove(&l->held, p);
		}
		if (!outcome)
			continue;
		ours |= leases_take_outcome(l, outcome, &l->versions[p]);
		if (outcome->applied)
			partitions_add(&l->held, p);
		else
			partitions_remove(&l->held, p);
	}
	return ours;
}

/* Those that turn out to be ours are asked for once more, by their version. */
static int leases_write_leases(struct leases *l, struct task_queue *queue, bool member)
{
	int err = leases_write_once(l, queue, member);
	if (err || !leases_take_outcomes(l))
		return err;
	err = leases_write_once(l, queue, member);
	if (!err)
		(void)leases_take_outcomes(l);
	return err;
}

/* ---- Sharing --------------------------------------------------------------------------------- */

/* Who shares, and who has what. */
static int leases_look(struct leases *l, struct task_queue *queue)
{
	store_read_reset(l->read);
	l->members = store_read_add(l->read, STORE_CELL_SCAN);
	l->leases = store_read_add(l->read, STORE_CELL_SCAN);
	ASSERT(l->members && l->leases); /* the first of an empty arena */
	l->members->cell_scan = (struct store_cell_scan){.table = TABLE_LEASES, .key = member_key};
	l->leases->cell_scan = (struct store_cell_scan){.table = TABLE_LEASES, .key = lease_key};
	l->read->now_ms = clock_wall_ms(l->options.clock);
	int err = store_read_wait(l->read, queue);
	return !err && (l->members->more || l->leases->more) ? ERR_LIMIT : err;
}

/* The holder's place among the members, or how many there are. */
static size_t leases_place_of(const struct leases *l, struct slice holder)
{
	const struct store_cell_scan *scan = &l->members->cell_scan;
	size_t at = 0;
	while (at < scan->count && !slice_equal(scan->cells[at].column.part[0], holder))
		at++;
	return at;
}

/* Finds the wanted leases that others hold, and how many of these strangers hold, who do not share.
 */
static size_t leases_note_taken(struct leases *l, struct partitions *taken)
{
	const struct store_cell_scan *scan = &l->leases->cell_scan;
	size_t strange = 0;
	for (size_t i = 0; i < scan->count; i++) {
		struct slice name = scan->cells[i].column.part[0];
		uint64_t p;
		if (number_parse_u64(name.data, name.data + name.len, &p) || p >= PARTITIONS_MAX ||
		    !partitions_has(&l->wanted, (uint32_t)p))
			continue;
		if (slice_equal(scan->cells[i].value, l->options.holder)) {
			l->versions[p] = scan->cells[i].version;
			continue;
		}
		partitions_add(taken, (uint32_t)p);
		strange += leases_place_of(l, scan->cells[i].value) == l->members->cell_scan.count;
	}
	return strange;
}

/* Free leases are asked for from our own place on, so that not all ask for the same. */
static void leases_ask_for_more(struct leases *l, const struct partitions *taken, size_t share)
{
	uint32_t first = (uint32_t)(leases_place_of(l, l->options.holder) * share);
	for (uint32_t i = 0; i < PARTITIONS_MAX; i++) {
		uint32_t p = (first + i) % PARTITIONS_MAX;
		if (l->held.count + l->asked.count >= share)
			return;
		if (partitions_has(&l->wanted, p) && !partitions_has(taken, p) &&
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

static void leases_choose(struct leases *l)
{
	struct partitions taken = {0};
	size_t left = l->wanted.count - leases_note_taken(l, &taken);
	size_t members = l->members->cell_scan.count ? l->members->cell_scan.count : 1;
	size_t share = (left + members - 1) / members;
	l->asked = l->given = (struct partitions){0};
	leases_ask_for_more(l, &taken, share);
	leases_give_what_is_beyond(l, share);
}

/* ---- Taking and giving ----------------------------------------------------------------------- */

/* Renews what it has, and its membership; then it looks who else there is, and takes what is free
 * up to its share or gives back what is beyond it. */
static int leases_take_share(struct leases *l, struct task_queue *queue)
{
	l->asked = l->held;
	int err = leases_write_leases(l, queue, true);
	err = err ? err : leases_look(l, queue);
	if (err)
		return err;
	leases_choose(l);
	return leases_write_leases(l, queue, false);
}

int leases_take(struct leases *l, struct task_queue *queue, const struct partitions *wanted,
		struct partitions *held, int64_t *until_ms)
{
	l->wanted = l->asked = *wanted;
	l->given = (struct partitions){0};
	l->until_ms = *until_ms = clock_wall_ms(l->options.clock) + l->options.lease_ms;
	int err = l->options.share ? leases_take_share(l, queue)
				   : leases_write_leases(l, queue, false);
	*held = err ? (struct partitions){0} : l->held;
	return err;
}

static int leases_give_member(struct leases *l)
{
	struct store_parts column = {{l->options.holder}};
	struct store_write_cond *outcome;
	uint64_t version = l->member_version;
	l->member_version = 0;
	return version ? store_cell_delete_if(l->write, TABLE_LEASES, &member_key, &column, version,
					      &outcome)
		       : 0;
}

int leases_give(struct leases *l, struct task_queue *queue)
{
	store_write_reset(l->write);
	int err = leases_give_member(l);
	for (uint32_t p = 0; p < PARTITIONS_MAX && !err; p++) {
		if (l->versions[p] != NOT_HELD)
			err = leases_give_one(l, p);
		l->versions[p] = NOT_HELD;
	}
	l->held = (struct partitions){0};
	return err || !l->write->cells ? err : store_write_wait(l->write, queue);
}
