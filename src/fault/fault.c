#include "fault/fault.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/grow.h"
#include "base/hash_table.h"
#include "base/log.h"
#include "base/random.h"
#include "fault/collector.h"
#include "fault/tables.h"
#include "lease/lease.h"
#include "loop/job.h"
#include "store/wait.h"

enum {
	PARTITIONS = 64, /* of tenants, among processes: on disk, so it stays */
	KEY_BYTES = 16,
	KEY_TRIES = 20,
	KEY_MEMORY_BYTES = 1 << 20,
	LINES_A_MINUTE = 3,
	OWNER_TRIES = 20,
	OWNER_WAIT_MS = 200,
	LOOK_MS = 60000, /* for tenants that others have written to, and for days that are past */
};

/* A slot of the table of books. */
struct fault_slot {
	struct hash128 hash;
	struct fault_book *book;
};

struct fault {
	struct fault_options options;
	struct fault_site site;
	struct fault_intake *intake;
	struct fault_projects *projects;
	struct fault_live *live;
	struct fault_collector *collector;
	_Atomic uint64_t messages_made;
	uint64_t seed;        /* of hashes of tenants */
	pthread_mutex_t lock; /* guards the next */
	struct hash_table books;

	struct job *quota_job;       /* NULL: it has not begun, is over, or nothing has a quota */
	struct log_rate quota_lines; /* its own */
	struct job *job;             /* NULL: it is over, or has not begun */
	/* The job's. */
	struct leases *leases;
	struct partitions all, held;
	int64_t until_ms;
	struct sessions sessions;
	struct log_rate lines;
	int64_t look_ms; /* monotonic: when all tenants are to be looked at */
	struct fault_owned *owned;
	size_t owned_count, owned_room;
};

/* A book that the job looks at. */
struct fault_owned {
	struct fault_book *book;
	uint32_t partition;
	bool held;
};

const struct fault_site *fault_site_of(const struct fault *fault)
{
	return &fault->site;
}

struct fault_intake *fault_intake_of(struct fault *fault)
{
	return fault->intake;
}

struct fault_projects *fault_projects_of(struct fault *fault)
{
	return fault->projects;
}

struct fault_live *fault_live_of(struct fault *fault)
{
	return fault->live;
}

struct executor *fault_executor_of(const struct fault *fault)
{
	return fault->options.executor;
}

uint64_t fault_messages_made(const struct fault *fault)
{
	return atomic_load(&fault->messages_made);
}

const struct fault_collect_rules *fault_collect_rules_of(const struct fault *fault)
{
	return &fault->options.collect;
}

/* ---- Books ----------------------------------------------------------------------------------- */

/* With the lock. NULL: there is none, and, with `add`, no room for one more. */
static struct fault_book *fault_find_book(struct fault *fault, struct slice tenant, bool add)
{
	bool added = false;
	struct hash128 hash = hash128(tenant.data, tenant.len, fault->seed);
	struct fault_slot *slot = hash_table_find(&fault->books, hash);
	if (!slot && add && fault->books.count < FAULT_TENANTS_MAX) {
		slot = hash_table_add(&fault->books, hash, sizeof(*slot), &added);
		slot->book = fault_book_new(&fault->site, tenant);
	}
	return slot ? slot->book : NULL;
}

static struct fault_book *fault_book_of(struct fault *fault, struct slice tenant)
{
	pthread_mutex_lock(&fault->lock);
	struct fault_book *book = fault_find_book(fault, tenant, true);
	pthread_mutex_unlock(&fault->lock);
	return book;
}

struct fault_book *fault_book_borrow(struct fault *fault, struct slice tenant)
{
	pthread_mutex_lock(&fault->lock);
	struct fault_book *book = fault_find_book(fault, tenant, false);
	pthread_mutex_unlock(&fault->lock);
	return book ? book : fault_book_new(&fault->site, tenant);
}

void fault_book_return(struct fault *fault, struct fault_book *book)
{
	pthread_mutex_lock(&fault->lock);
	bool stays = fault_find_book(fault, fault_book_tenant(book), false) == book;
	pthread_mutex_unlock(&fault->lock);
	if (!stays)
		fault_book_free(book);
}

struct fault_book **fault_copy_books(struct fault *fault, size_t *count)
{
	pthread_mutex_lock(&fault->lock);
	struct fault_book **list = mem_alloc_array(fault->books.count, sizeof(struct fault_book *));
	*count = 0;
	for (size_t at = 0; at < fault->books.slot_count; at++) {
		const struct fault_slot *slot = hash_table_at(&fault->books, at);
		if (slot)
			list[(*count)++] = slot->book;
	}
	pthread_mutex_unlock(&fault->lock);
	return list;
}

int fault_wait_for_owner(struct fault_book *book, struct job *job, struct errbuf *e)
{
	for (int i = 0; !fault_book_is_owned(book); i++) {
		if (i == OWNER_TRIES)
			return errbuf_set(e, ERR_RETRY,
					  "no reports of tenant " SHOWN
					  " have come, or another process counts them; ask again",
					  SHOWN_OF(fault_book_tenant(book)));
		if (job_sleep(job, OWNER_WAIT_MS))
			return ERR_CANCELLED;
	}
	return 0;
}

static void fault_on_written(void *owner, struct slice tenant)
{
	struct fault *fault = owner;
	struct fault_book *book = fault_book_of(fault, tenant);
	if (book)
		fault_book_touch(book);
	fault_live_wake(fault->live);
}

/* ---- The owner ------------------------------------------------------------------------------- */

static int fault_see_row(const struct store_row *row, void *owner)
{
	struct fault *fault = owner;
	if (!fault_book_of(fault, row->key.part[0]))
		log_rated(&fault->lines, clock_mono_ms(fault->site.clock), LOG_WARN,
			  "faults: the reports of tenant " SHOWN
			  " are counted by nobody in advance, but for each question anew: there "
			  "are reports of %d tenants already",
			  SHOWN_OF(row->key.part[0]), FAULT_TENANTS_MAX);
	return 0;
}

/* Tenants that anybody has written to; and what other processes have changed. */
static int fault_look(struct fault *fault, struct job *job, struct errbuf *e)
{
	int err =
		store_rows_wait(fault->site.store, job_queue(job), clock_wall_ms(fault->site.clock),
				TABLE_REPORT_WRITERS, fault_see_row, fault, e);
	if (!err && store_is_shared(fault->site.store))
		err = sessions_look(&fault->sessions, fault->options.session, job_queue(job));
	if (!err && store_is_shared(fault->site.store))
		err = fault_projects_load(fault->projects, job_queue(job), e);
	return err;
}

static int fault_take_leases(struct fault *fault, struct job *job)
{
	if (!store_is_shared(fault->site.store)) {
		fault->held = fault->all;
		fault->until_ms = INT64_MAX;
		return 0;
	}
	return leases_take(fault->leases, job_queue(job), &fault->all, &fault->held,
			   &fault->until_ms);
}

static bool fault_is_dead(void *owner, struct slice holder)
{
	const struct fault *fault = owner;
	const struct session_seen *seen = sessions_find(&fault->sessions, holder);
	return !seen || !seen->alive;
}

static struct fault_owned *fault_owned_of(struct fault *fault, struct fault_book *book)
{
	for (size_t i = 0; i < fault->owned_count; i++)
		if (fault->owned[i].book == book)
			return &fault->owned[i];
	struct slice tenant = fault_book_tenant(book);
	uint32_t partition = consistent_hash(hash64(tenant.data, tenant.len, 0), PARTITIONS);
	GROW(fault->owned, fault->owned_room, fault->owned_count + 1);
	fault->owned[fault->owned_count] = (struct fault_owned){book, partition, false};
	return &fault->owned[fault->owned_count++];
}

/* The list of books at this moment: the job looks at them without the lock, since none goes. */
static void fault_list_books(struct fault *fault)
{
	size_t count;
	struct fault_book **books = fault_copy_books(fault, &count);
	for (size_t i = 0; i < count && fault->owned_count < count; i++)
		fault_owned_of(fault, books[i]);
	mem_free(books);
}

static void fault_say_of(struct fault *fault, const struct fault_owned *owned, int err,
			 const char *what, const struct errbuf *e)
{
	struct slice tenant = fault_book_tenant(owned->book);
	if (!err || err == ERR_RETRY || err == ERR_CANCELLED)
		return;
	log_rated(&fault->lines, clock_mono_ms(fault->site.clock), LOG_WARN,
		  "faults: the reports of tenant " SHOWN " are not %s: %s; the server tries again",
		  SHOWN_OF(tenant), what, e->text);
}

static void fault_pass_of(struct fault *fault, struct job *job, struct fault_owned *owned)
{
	const struct fault_owner_view view = {
		.until_ms = fault->until_ms, .is_dead = fault_is_dead, .owner = fault};
	struct errbuf e = {""};
	size_t made;
	int err = fault_book_pass(owned->book, job_queue(job), &view, &e);
	fault_say_of(fault, owned, err, "counted", &e);
	if (err)
		return;
	err = fault_book_seal(owned->book, job_queue(job), fault->until_ms, &e);
	fault_say_of(fault, owned, err, "packed close", &e);
	err = fault_book_tell(owned->book, job_queue(job), fault->until_ms, &made, &e);
	fault_say_of(fault, owned, err, "told of", &e);
	if (!made)
		return;
	atomic_fetch_add(&fault->messages_made, made);
	fault_live_wake(fault->live);
}

/* What is not held now may be another's before it is held again. */
static void fault_see_held(struct fault *fault)
{
	fault_list_books(fault);
	for (size_t i = 0; i < fault->owned_count; i++) {
		struct fault_owned *owned = &fault->owned[i];
		bool held = partitions_has(&fault->held, owned->partition);
		if (owned->held && !held)
			fault_book_disown(owned->book);
		owned->held = held;
	}
}

/* All that are held, or only those for which there is something to do. */
static void fault_run_passes(struct fault *fault, struct job *job, bool all)
{
	fault_see_held(fault); /* also of tenants that were found just now */
	for (size_t i = 0; i < fault->owned_count; i++) {
		struct fault_owned *owned = &fault->owned[i];
		if (owned->held && (all || fault_book_is_touched(owned->book)))
			fault_pass_of(fault, job, owned);
	}
}

static void fault_turn(struct fault *fault, struct job *job)
{
	int64_t now_ms = clock_mono_ms(fault->site.clock);
	struct errbuf e = {""};
	bool all = now_ms >= fault->look_ms;
	int err = fault_take_leases(fault, job);
	fault_see_held(fault);
	if (!err && all)
		err = fault_look(fault, job, &e);
	if (err && err != ERR_CANCELLED)
		log_rated(&fault->lines, now_ms, LOG_WARN,
			  "faults: reports are not counted: %s; the server tries again",
			  e.text[0] ? e.text : err_text(err));
	if (err)
		return;
	if (all)
		fault->look_ms = now_ms + LOOK_MS;
	fault_run_passes(fault, job, all);
}

static void fault_run(struct job *job, void *owner)
{
	struct fault *fault = owner;
	do
		fault_turn(fault, job);
	while (!job_sleep(job, fault->options.every_ms));
}

static void fault_over(void *owner)
{
	struct fault *fault = owner;
	job_free(fault->job);
	fault->job = NULL;
}

/* ---- Quotas ---------------------------------------------------------------------------------- */

static void fault_exchange_quotas(struct fault *fault, struct task_queue *queue)
{
	struct errbuf e = {""};
	int err = fault_projects_exchange_quotas(fault->projects, queue, &e);
	if (err && err != ERR_CANCELLED)
		log_rated(&fault->quota_lines, clock_mono_ms(fault->site.clock), LOG_WARN,
			  "faults: what tenants have sent is not exchanged with the store: %s; "
			  "quotas (fault.quota) are judged by what this process knows; the server "
			  "tries again",
			  e.text);
}

static void fault_run_quotas(struct job *job, void *owner)
{
	struct fault *fault = owner;
	struct task_queue last; /* that of the job takes nothing more when it is stopped */
	while (!job_sleep(job, fault->options.every_ms))
		fault_exchange_quotas(fault, job_queue(job));
	task_queue_init(&last);
	fault_exchange_quotas(fault, &last);
	task_queue_release(&last);
}

static void fault_quotas_over(void *owner)
{
	struct fault *fault = owner;
	job_free(fault->quota_job);
	fault->quota_job = NULL;
}

/* ---- The jobs -------------------------------------------------------------------------------- */

void fault_start(struct fault *fault)
{
	int err = job_start("faults", fault_run, fault_over, fault, fault->options.executor,
			    &fault->job);
	if (!err && fault_projects_have_quotas(fault->projects))
		err = job_start("quotas", fault_run_quotas, fault_quotas_over, fault,
				fault->options.executor, &fault->quota_job);
	ASSERT(!err); /* some of the first */
	fault_live_start(fault->live, fault->options.executor);
	fault_collector_start(fault->collector, fault->options.executor);
}

void fault_stop(struct fault *fault)
{
	fault_live_stop(fault->live);
	fault_collector_stop(fault->collector);
	if (fault->quota_job)
		job_stop(fault->quota_job);
	if (fault->job)
		job_stop(fault->job);
}

bool fault_is_over(const struct fault *fault)
{
	return !fault->job && !fault->quota_job && fault_live_is_over(fault->live) &&
	       fault_collector_is_over(fault->collector) && fault_intake_is_idle(fault->intake);
}

void fault_tick(struct fault *fault)
{
	fault_intake_tick(fault->intake);
	fault_live_tick(fault->live);
}

/* ---- Life ------------------------------------------------------------------------------------ */

static const struct store_parts fault_key_row = {{SLICE("fault")}};
static const struct store_parts fault_key_column = {{SLICE("digest key")}};

/* The key that is stored. ERR_NOT_FOUND: there is none. */
static int fault_find_key(struct fault *fault, struct task_queue *queue, struct slice value)
{
	struct store_read *read = store_read_new(fault->site.store, KEY_MEMORY_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request); /* the first of an empty arena */
	request->cell_get = (struct store_cell_get){
		.table = TABLE_LEASES, .key = fault_key_row, .column = fault_key_column};
	read->now_ms = clock_wall_ms(fault->site.clock);
	int err = store_read_wait(read, queue);
	if (!err && !request->cell_get.found)
		err = ERR_NOT_FOUND;
	if (!err && request->cell_get.cell.value.len != value.len)
		err = ERR_DAMAGED;
	if (!err)
		memcpy((char *)(uintptr_t)value.data, request->cell_get.cell.value.data, value.len);
	store_read_free(read);
	return err;
}

/* Of several processes that begin a store at once one writes it, and all have it. */
static int fault_make_key(struct fault *fault, struct task_queue *queue, struct slice value)
{
	struct store_write *write = store_write_new(fault->site.store, KEY_MEMORY_BYTES);
	struct store_write_cond *outcome = NULL;
	int err = ERR_UNKNOWN;
	for (int i = 0; i < KEY_TRIES && err == ERR_UNKNOWN; i++) {
		store_write_reset(write);
		err = store_cell_put_if(write, TABLE_LEASES, &fault_key_row, &fault_key_column, 0,
					value, 0, &outcome);
		err = err ? err : store_write_wait(write, queue);
	}
	store_write_free(write);
	return err ? err : fault_find_key(fault, queue, value);
}

/* A store that takes no writes takes no reports, so the server goes on without a stored key. */
static int fault_read_key(struct fault *fault, struct task_queue *queue, struct errbuf *e)
{
	uint64_t key[KEY_BYTES / 8] = {random_system_seed(), random_system_seed()};
	struct slice value = {(const char *)key, KEY_BYTES};
	int err = fault_find_key(fault, queue, value);
	bool made = err == ERR_NOT_FOUND;
	if (made)
		err = fault_make_key(fault, queue, value);
	if (made && err && err != ERR_DAMAGED) {
		log_warn("faults: the key of fault reports cannot be written: %s; until the next "
			 "start a report that is sent again may be taken for another one",
			 err_text(err));
		err = 0;
	}
	memcpy(&fault->site.digest_key, key, sizeof(fault->site.digest_key));
	return err ? errbuf_set(
			     e, err,
			     "the key of fault reports (leases, row fault, digest key) cannot be "
			     "read: %s",
			     err_text(err))
		   : 0;
}

int fault_open(const struct fault_options *options, struct fault **to, struct errbuf *e)
{
	struct fault *fault = mem_zalloc(sizeof(*fault));
	struct task_queue queue;
	fault->options = *options;
	fault->site = (struct fault_site){
		.store = options->store,
		.clock = options->clock,
		.holder = lease_session_options_of(options->session)->holder,
		.started_us = store_stamp(options->store),
		.masks = options->masks,
		.limits = options->limits,
		.skew_max_ms = options->skew_max_ms,
		.write_max_ms = options->write_max_ms,
		.messages_max = options->messages_max,
		.messages_keep_ms = options->messages_keep_ms,
	};
	fault->seed = random_system_seed();
	fault->lines = fault->quota_lines = (struct log_rate){.lines_max = LINES_A_MINUTE};
	pthread_mutex_init(&fault->lock, NULL);
	for (uint32_t p = 0; p < PARTITIONS; p++)
		partitions_add(&fault->all, p);
	fault->leases = leases_new(&(struct leases_options){
		.session = options->session, .kind = "fault", .share = true});
	fault->intake = fault_intake_new(&(struct fault_intake_options){
		.site = &fault->site,
		.executor = options->executor,
		.seed = options->seed,
		.written = fault_on_written,
		.owner = fault,
	});
	fault->live = fault_live_new(fault);
	fault->collector = fault_collector_new(fault, &options->collect, options->collect_every_ms);
	fault->projects = fault_projects_new(options->store, options->clock, &options->quotas);
	task_queue_init(&queue);
	int err = fault_read_key(fault, &queue, e);
	err = err ? err : fault_projects_open(fault->projects, &queue, e);
	if (!err) /* what was taken before this start */
		fault_exchange_quotas(fault, &queue);
	task_queue_release(&queue);
	*to = fault;
	if (err) {
		fault_close(fault);
		*to = NULL;
	}
	return err;
}

void fault_close(struct fault *fault)
{
	if (!fault)
		return;
	ASSERT(fault_is_over(fault));
	fault_live_free(fault->live);
	fault_collector_free(fault->collector);
	for (size_t at = 0; at < fault->books.slot_count; at++) {
		const struct fault_slot *slot = hash_table_at(&fault->books, at);
		if (slot)
			fault_book_free(slot->book);
	}
	hash_table_release(&fault->books);
	fault_intake_free(fault->intake);
	fault_projects_free(fault->projects);
	leases_free(fault->leases);
	sessions_release(&fault->sessions);
	mem_free(fault->owned);
	pthread_mutex_destroy(&fault->lock);
	mem_free(fault);
}
