#include "stream/streams.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/hash_table.h"
#include "base/log.h"
#include "base/random.h"
#include "lease/lease.h"
#include "loop/job.h"
#include "store/wait.h"
#include "stream/retain.h"
#include "stream/seal.h"

enum {
	PARTITIONS = 64,         /* of streams, among processes: on disk, so it stays */
	LOOK_MS = 60000,         /* for streams that others have written to */
	OPEN_MAX_MS = 86400000,  /* so long the end of a record is awaited */
	OPEN_CROWDED_MS = 60000, /* the same where too much waits */
	LINES_A_MINUTE = 3,
	DUE_MAX = 1 << 18, /* streams with chunks that wait; others are found by looking */
	ADDRESS_ARENA_BYTES = 2 * STREAM_ADDRESS_MAX_BYTES,
	RETAIN_ARENA_MAX_BYTES = 256 << 20, /* of the names of a tenant's streams */
};

/* A stream of which chunks wait. */
struct streams_due {
	struct stream_id id; /* its texts are in `texts` */
	char *texts;
	uint32_t partition;
	bool looked; /* it was found in the store, or has been sealed: what follows is all of it */
	uint64_t data_bytes, stored_bytes;
	uint64_t tried_bytes; /* of which a pass could make no block, as where there are holes */
	int64_t since_ms; /* monotonic: when the first of them came, as far as is known; 0: none */
};

struct streams_slot {
	struct hash128 hash;
	struct streams_due *due;
};

struct streams {
	struct streams_options options;
	struct stream_site site;
	struct collector *collector;
	struct stream_tail *tail;
	struct demux *demux; /* NULL: no samples are made yet */
	struct datatypes *datatypes;
	uint64_t seed;
	/* Guards the table and its streams, but not their `id` and `partition`, which stay. */
	pthread_mutex_t lock;
	struct hash_table due;

	struct job *job; /* NULL: it is over, or has not begun */
	/* The job's. */
	struct leases *leases;
	struct partitions all, held;
	int64_t until_ms;
	struct log_rate lines;
	int64_t look_ms; /* monotonic: when all rows are to be looked at */
	bool looked;
	int64_t retain_ms;          /* monotonic: when retention is due */
	_Atomic bool retains_again; /* something was deleted */
};

struct collector *streams_collector(struct streams *streams)
{
	return streams->collector;
}

struct stream_tail *streams_tail(struct streams *streams)
{
	return streams->tail;
}

const struct stream_site *streams_site(const struct streams *streams)
{
	return &streams->site;
}

struct demux *streams_demux(struct streams *streams)
{
	return streams->demux;
}

struct datatypes *streams_datatypes(const struct streams *streams)
{
	return datatypes_share(streams->datatypes);
}

/* A store that is not shared has no other owners. */
static bool streams_owns_none(const struct streams *streams)
{
	return streams->options.owns_none && store_is_shared(streams->site.store);
}

/* ---- Streams that are due ---------------------------------------------------------------------
 */

static struct hash128 streams_hash(struct slice tenant, struct slice address, uint64_t seed)
{
	struct hash128 hash = hash128(tenant.data, tenant.len, seed);
	return hash128(address.data, address.len, hash.low ^ hash.high);
}

static struct streams_due *streams_make_due(const struct stream_id *id, struct slice address)
{
	struct streams_due *due = mem_zalloc(sizeof(*due));
	/* Escaped names are in the address, and longer. */
	due->texts = mem_alloc(id->tenant.len + address.len);
	char *at = due->texts;
	struct slice *texts[] = {&due->id.tenant, &due->id.names.source, &due->id.names.cluster,
				 &due->id.names.datatype, &due->id.names.name};
	due->id = *id;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (texts[i]->len)
			memcpy(at, texts[i]->data, texts[i]->len);
		texts[i]->data = at;
		at += texts[i]->len;
	}
	due->partition = consistent_hash(streams_hash(id->tenant, address, 0).low, PARTITIONS);
	return due;
}

/* With the lock. NULL: there are too many. */
static struct streams_due *streams_find_due(struct streams *streams, const struct stream_id *id)
{
	struct buf address;
	bool added;
	buf_init(&address, STREAM_ADDRESS_MAX_BYTES);
	stream_address_put(&id->names, id->incarnation, &address);
	struct hash128 hash = streams_hash(id->tenant, buf_slice(&address), streams->seed);
	struct streams_slot *slot = hash_table_find(&streams->due, hash);
	if (!slot && streams->due.count < DUE_MAX) {
		slot = hash_table_add(&streams->due, hash, sizeof(*slot), &added);
		slot->due = streams_make_due(id, buf_slice(&address));
	}
	buf_release(&address);
	return slot ? slot->due : NULL;
}

static void streams_free_due(struct streams_due *due)
{
	mem_free(due->texts);
	mem_free(due);
}

static void streams_on_written(void *owner, const struct stream_id *id,
			       const struct chunk_frame *frame, int64_t received_ms)
{
	struct streams *streams = owner;
	pthread_mutex_lock(&streams->lock);
	struct streams_due *due = streams_owns_none(streams) ? NULL : streams_find_due(streams, id);
	if (!due)
		collector_adjust_tail(streams->collector, -(int64_t)frame->bytes.len);
	if (due) {
		due->data_bytes += frame->fields.data_bytes;
		due->stored_bytes += frame->bytes.len;
		if (!due->since_ms)
			due->since_ms = clock_mono_ms(streams->site.clock);
	}
	pthread_mutex_unlock(&streams->lock);
	stream_tail_written(streams->tail, id, frame, received_ms);
	if (streams->demux)
		demux_note(streams->demux, id, frame->fields.data_bytes);
}

/* ---- The owner ------------------------------------------------------------------------------- */

static bool streams_owns(const struct streams *streams, const struct stream_id *id)
{
	struct buf address;
	buf_init(&address, STREAM_ADDRESS_MAX_BYTES);
	stream_address_put(&id->names, id->incarnation, &address);
	uint32_t partition =
		consistent_hash(streams_hash(id->tenant, buf_slice(&address), 0).low, PARTITIONS);
	buf_release(&address);
	return partitions_has(&streams->held, partition);
}

static int streams_see_row(const struct store_row *row, void *owner)
{
	struct streams *streams = owner;
	struct stream_id id = {.tenant = row->key.part[0]};
	struct arena arena;
	struct errbuf e = {""};
	arena_init(&arena, ADDRESS_ARENA_BYTES);
	int err = stream_address_parse(row->key.part[1], &arena, &id.names, &id.incarnation, &e);
	if (err) {
		log_rated(&streams->lines, clock_mono_ms(streams->site.clock), LOG_WARN,
			  "streams: a row of chunk_tail is not read: %s", e.text);
	} else if (streams_owns(streams, &id)) {
		pthread_mutex_lock(&streams->lock);
		struct streams_due *due = streams_find_due(streams, &id);
		if (due && !due->since_ms) {
			due->since_ms = clock_mono_ms(streams->site.clock);
			due->looked = false;
		}
		pthread_mutex_unlock(&streams->lock);
	}
	arena_release(&arena);
	return 0;
}

static int streams_take_leases(struct streams *streams, struct job *job)
{
	if (!store_is_shared(streams->site.store)) {
		streams->held = streams->all;
		streams->until_ms = INT64_MAX;
		return 0;
	}
	return leases_take(streams->leases, job_queue(job), &streams->all, &streams->held,
			   &streams->until_ms);
}

static bool streams_is_crowded(const struct streams *streams)
{
	return collector_tail_bytes(streams->collector) > streams->site.limits.tail_max_bytes / 2;
}

struct streams_doubt {
	struct streams *streams;
	const struct stream_id *id;
};

/* On the executor's thread. */
static void streams_doubt(void *argument)
{
	const struct streams_doubt *doubt = argument;
	collector_doubt(doubt->streams->collector, doubt->id);
}

static void streams_say_unreadable(struct streams *streams, const struct streams_due *due,
				   const struct stream_seal_result *sealed)
{
	const struct chunk_place *place = &sealed->last_unreadable;
	log_rated(&streams->lines, clock_mono_ms(streams->site.clock), LOG_WARN,
		  "streams: of `" SHOWN "` of " SHOWN " %llu chunks are dropped, since they do not "
		  "unpack to what they say of themselves; the last one had the bytes %llu to %llu; "
		  "they leave holes",
		  SHOWN_OF(due->id.names.name), SHOWN_OF(due->id.names.source),
		  (unsigned long long)sealed->unreadable,
		  (unsigned long long)(place->sequence_id - place->length),
		  (unsigned long long)place->sequence_id);
}

/* How long the end of a record is awaited: not longer than its bytes are kept. */
static int64_t streams_open_max_ms(const struct streams *streams, const struct stream_id *id)
{
	int64_t keep_ms = keep_rules_ms(streams->options.keep, id->tenant, id->names.datatype);
	int64_t open_ms = streams_is_crowded(streams) ? OPEN_CROWDED_MS : OPEN_MAX_MS;
	return keep_ms ? smaller_of(open_ms, keep_ms) : open_ms;
}

/* Seals what is due of a stream. True: nothing of it waits. */
static bool streams_pass(struct streams *streams, struct job *job, struct streams_due *due,
			 bool all)
{
	const struct stream_seal_rules rules = {.level = streams->options.level,
						.all = all,
						.open_before_ms =
							clock_wall_ms(streams->site.clock) -
							streams_open_max_ms(streams, &due->id),
						.until_ms = streams->until_ms,
						.write_max_ms = streams->options.write_max_ms};
	struct stream_seal_result sealed;
	struct errbuf e = {""};
	pthread_mutex_lock(&streams->lock);
	uint64_t data_before = due->data_bytes, stored_before = due->stored_bytes;
	pthread_mutex_unlock(&streams->lock);
	int err = stream_seal(&streams->site, job_queue(job), &due->id, &rules, &sealed, &e);
	int64_t now_ms = clock_mono_ms(streams->site.clock);
	struct streams_doubt doubt = {streams, &due->id};
	if (sealed.unreadable) {
		streams_say_unreadable(streams, due, &sealed);
		job_call(job, streams->options.executor, streams_doubt, &doubt);
	}
	if (err && err != ERR_CANCELLED)
		log_rated(&streams->lines, now_ms, LOG_WARN,
			  "streams: the chunks of `" SHOWN "` of " SHOWN " are not put into "
			  "blocks: %s; the server tries again",
			  SHOWN_OF(due->id.names.name), SHOWN_OF(due->id.names.source),
			  e.text[0] ? e.text : err_text(err));
	if (err)
		return false;
	pthread_mutex_lock(&streams->lock);
	/* What came meanwhile may be counted twice until the next pass. */
	uint64_t stored = sealed.left_stored_bytes + due->stored_bytes - stored_before;
	collector_adjust_tail(streams->collector, (int64_t)stored - (int64_t)due->stored_bytes);
	due->data_bytes = sealed.left_data_bytes + due->data_bytes - data_before;
	due->stored_bytes = stored;
	due->looked = true;
	/* Less than a block was not tried in vain, unless all was to be sealed. */
	bool in_vain = !sealed.blocks && (all || sealed.left_data_bytes >= CHUNK_DATA_MAX_BYTES);
	due->tried_bytes = in_vain ? sealed.left_data_bytes : 0;
	if (sealed.blocks || all) /* what is left is a record whose end has not come */
		due->since_ms = now_ms;
	bool done = !due->data_bytes;
	pthread_mutex_unlock(&streams->lock);
	return done;
}

/* With the lock. Where too much waits all are due. */
static bool streams_is_due(const struct streams *streams, const struct streams_due *due)
{
	int64_t now_ms = clock_mono_ms(streams->site.clock);
	return !due->looked || due->data_bytes >= due->tried_bytes + CHUNK_DATA_MAX_BYTES ||
	       now_ms - due->since_ms >= streams->options.seal_after_ms ||
	       (streams_is_crowded(streams) && due->data_bytes > due->tried_bytes);
}

static int streams_compare_due(const void *a, const void *b)
{
	const struct streams_due *x = *(struct streams_due *const *)a;
	const struct streams_due *y = *(struct streams_due *const *)b;
	return (x->stored_bytes < y->stored_bytes) - (x->stored_bytes > y->stored_bytes);
}

/* With the lock. Others own those that are not held; what waits of them is theirs to count. Slots
 * move when one is removed: each place is looked at until its stream stays. */
static void streams_let_go(struct streams *streams)
{
	for (size_t at = 0; at < streams->due.slot_count;) {
		struct streams_slot *slot = hash_table_at(&streams->due, at);
		struct streams_due *due = slot ? slot->due : NULL;
		if (!due || partitions_has(&streams->held, due->partition)) {
			at++;
			continue;
		}
		collector_adjust_tail(streams->collector, -(int64_t)due->stored_bytes);
		hash_table_remove(&streams->due, slot->hash);
		streams_free_due(due);
	}
}

/* Those that are due at this moment, the largest first. The job has them without the lock, since it
 * alone frees any. */
static struct streams_due **streams_list_due(struct streams *streams, size_t *count)
{
	size_t room = 0;
	struct streams_due **list = NULL;
	*count = 0;
	pthread_mutex_lock(&streams->lock);
	streams_let_go(streams);
	for (size_t at = 0; at < streams->due.slot_count; at++) {
		const struct streams_slot *slot = hash_table_at(&streams->due, at);
		struct streams_due *due = slot ? slot->due : NULL;
		if (due && streams_is_due(streams, due)) {
			GROW(list, room, *count + 1);
			list[(*count)++] = due;
		}
	}
	if (*count)
		qsort(list, *count, sizeof(struct streams_due *), streams_compare_due);
	pthread_mutex_unlock(&streams->lock);
	return list;
}

/* What is to be done with a stream may be another thing when it has its turn. *all: it is to be
 * emptied. */
static bool streams_look_again(struct streams *streams, const struct streams_due *due, bool *all)
{
	int64_t now_ms = clock_mono_ms(streams->site.clock);
	pthread_mutex_lock(&streams->lock);
	bool is_due = streams_is_due(streams, due);
	*all = streams_is_crowded(streams) ||
	       now_ms - due->since_ms >= streams->options.seal_after_ms;
	pthread_mutex_unlock(&streams->lock);
	return is_due;
}

static void streams_forget(struct streams *streams, struct streams_due *due)
{
	struct buf address;
	buf_init(&address, STREAM_ADDRESS_MAX_BYTES);
	stream_address_put(&due->id.names, due->id.incarnation, &address);
	pthread_mutex_lock(&streams->lock);
	if (!due->data_bytes) { /* nothing came since */
		hash_table_remove(&streams->due,
				  streams_hash(due->id.tenant, buf_slice(&address), streams->seed));
		streams_free_due(due);
	}
	pthread_mutex_unlock(&streams->lock);
	buf_release(&address);
}

static void streams_run_passes(struct streams *streams, struct job *job)
{
	size_t count;
	struct streams_due **list = streams_list_due(streams, &count);
	for (size_t i = 0; i < count && !job_is_stopping(job); i++) {
		bool all;
		if (streams_look_again(streams, list[i], &all) &&
		    streams_pass(streams, job, list[i], all))
			streams_forget(streams, list[i]);
	}
	mem_free(list);
}

static void streams_retain_all(struct streams *streams, struct job *job);

static void streams_turn(struct streams *streams, struct job *job)
{
	int64_t now_ms = clock_mono_ms(streams->site.clock);
	struct errbuf e = {""};
	const struct partitions before = streams->held;
	int err = streams_take_leases(streams, job);
	if (memcmp(&before, &streams->held, sizeof(before)) != 0)
		streams->looked = false; /* for what waits of streams that others owned */
	bool look = !streams->looked || now_ms >= streams->look_ms;
	if (!err && look)
		err = store_rows_wait(streams->site.store, job_queue(job),
				      clock_wall_ms(streams->site.clock), TABLE_CHUNK_TAIL,
				      streams_see_row, streams, &e);
	if (err && err != ERR_CANCELLED)
		log_rated(&streams->lines, now_ms, LOG_WARN,
			  "streams: chunks are not put into blocks: %s; the server tries again",
			  e.text[0] ? e.text : err_text(err));
	if (err)
		return;
	if (look)
		streams->look_ms = now_ms + LOOK_MS;
	streams->looked = true;
	streams_run_passes(streams, job);
	streams_retain_all(streams, job);
}

/* ---- Retention ------------------------------------------------------------------------------- */

/* The streams of a tenant, copied: a pass over one of them waits. */
struct streams_of_tenant {
	struct streams *streams;
	struct job *job;
	struct arena arena;
	struct stream_id *list;
	size_t count, room;
};

static int streams_keep_id(const struct stream_made *made, void *owner)
{
	struct streams_of_tenant *of = owner;
	struct stream_id id = made->id;
	if (stream_id_keep(&id, &of->arena))
		return ERR_LIMIT;
	GROW(of->list, of->room, of->count + 1);
	of->list[of->count++] = id;
	return 0;
}

/* Chunks below what is kept go when the stream is sealed the next time: soon. */
static void streams_make_due_soon(struct streams *streams, const struct stream_id *id)
{
	pthread_mutex_lock(&streams->lock);
	struct streams_due *due = streams_find_due(streams, id);
	if (due) {
		due->looked = false;
		due->since_ms = clock_mono_ms(streams->site.clock);
	}
	pthread_mutex_unlock(&streams->lock);
}

static int streams_retain(struct streams *streams, struct job *job, const struct stream_id *id,
			  struct errbuf *e)
{
	int64_t keep_ms = keep_rules_ms(streams->options.keep, id->tenant, id->names.datatype);
	/* What goes by a wrong clock does not come back. */
	bool expires = keep_ms && !clock_is_doubted(streams->site.clock);
	const struct stream_retain_rules rules = {
		.before_ms = expires ? clock_age_ms(streams->site.clock) - keep_ms : INT64_MIN,
		.until_ms = streams->until_ms,
		.write_max_ms = streams->options.write_max_ms};
	struct stream_retained retained;
	struct streams_doubt doubt = {streams, id};
	int err = stream_retain(&streams->site, job_queue(job), id, &rules, &retained, e);
	if (retained.raised || retained.forgotten)
		job_call(job, streams->options.executor, streams_doubt, &doubt);
	if (retained.waits)
		streams_make_due_soon(streams, id);
	return err;
}

/* `names`: NULL: the streams of the tenant cannot be listed. */
static void streams_say_not_removed(struct streams *streams, struct slice tenant,
				    const struct stream_names *names, int err,
				    const struct errbuf *e)
{
	const char *why = e->text[0] ? e->text : err_text(err);
	if (!err || err == ERR_CANCELLED)
		return;
	if (names)
		log_rated(&streams->lines, clock_mono_ms(streams->site.clock), LOG_WARN,
			  "streams: what is old of " SHOWN " of " SHOWN " (tenant " SHOWN
			  ") is not removed: %s; the server tries again",
			  SHOWN_OF(names->name), SHOWN_OF(names->source), SHOWN_OF(tenant), why);
	else
		log_rated(&streams->lines, clock_mono_ms(streams->site.clock), LOG_WARN,
			  "streams: the streams of tenant " SHOWN " cannot be listed, so what is "
			  "old of them is not removed: %s; the server tries again",
			  SHOWN_OF(tenant), why);
}

/* What is wrong with one stream does not keep the others. */
static int streams_retain_tenant(const struct store_row *row, void *owner)
{
	struct streams_of_tenant *of = owner;
	struct streams *streams = of->streams;
	struct errbuf e = {""};
	arena_reset(&of->arena);
	of->count = 0;
	struct slice tenant = arena_copy(&of->arena, row->key.part[0]);
	if (!tenant.data)
		return ERR_LIMIT;
	int err = stream_each(&streams->site, job_queue(of->job), tenant, NULL, streams_keep_id, of,
			      &e);
	streams_say_not_removed(streams, tenant, NULL, err, &e);
	for (size_t i = 0; i < of->count && err != ERR_CANCELLED; i++) {
		if (job_is_stopping(of->job))
			return ERR_CANCELLED;
		if (!streams_owns(streams, &of->list[i]))
			continue;
		e.text[0] = 0;
		err = streams_retain(streams, of->job, &of->list[i], &e);
		streams_say_not_removed(streams, tenant, &of->list[i].names, err, &e);
	}
	return err == ERR_CANCELLED ? err : 0;
}

static void streams_retain_all(struct streams *streams, struct job *job)
{
	struct streams_of_tenant of = {.streams = streams, .job = job};
	struct errbuf e = {""};
	int64_t now_ms = clock_mono_ms(streams->site.clock);
	if (!atomic_exchange(&streams->retains_again, false) && now_ms < streams->retain_ms)
		return;
	streams->retain_ms = now_ms + streams->options.retain_every_ms;
	arena_init(&of.arena, RETAIN_ARENA_MAX_BYTES);
	int err = store_rows_wait(streams->site.store, job_queue(job),
				  clock_wall_ms(streams->site.clock), TABLE_STREAMS,
				  streams_retain_tenant, &of, &e);
	if (err && err != ERR_CANCELLED)
		log_rated(&streams->lines, now_ms, LOG_WARN,
			  "streams: what is old is not removed: %s; the server tries again",
			  e.text[0] ? e.text : err_text(err));
	mem_free(of.list);
	arena_release(&of.arena);
}

void streams_note_deleted(struct streams *streams, const struct stream_id *id)
{
	collector_doubt(streams->collector, id);
	atomic_store(&streams->retains_again, true);
}

/* ---- The job --------------------------------------------------------------------------------- */

static void streams_run(struct job *job, void *owner)
{
	struct streams *streams = owner;
	do
		streams_turn(streams, job);
	while (!job_sleep(job, streams->options.every_ms));
}

static void streams_over(void *owner)
{
	struct streams *streams = owner;
	job_free(streams->job);
	streams->job = NULL;
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct streams *streams_open(const struct streams_options *options)
{
	struct streams *streams = mem_zalloc(sizeof(*streams));
	struct random random;
	streams->options = *options;
	streams->site = (struct stream_site){
		.store = options->store, .clock = options->clock, .limits = options->limits};
	random_init(&random, options->seed);
	streams->seed = random_next(&random);
	pthread_mutex_init(&streams->lock, NULL);
	streams->lines.lines_max = LINES_A_MINUTE;
	const struct collector_options collector = {.site = &streams->site,
						    .executor = options->executor,
						    .seed = random_next(&random),
						    .written = streams_on_written,
						    .owner = streams};
	streams->collector = collector_new(&collector);
	streams->tail = stream_tail_new(options->executor, random_next(&random));
	const struct leases_options leases = {.session = options->session,
					      .kind = "stream",
					      .share = true,
					      .sharing = SESSION_OWNS_STREAMS};
	streams->leases = leases_new(&leases);
	for (uint32_t i = 0; i < PARTITIONS; i++)
		partitions_add(&streams->all, i);
	return streams;
}

void streams_start(struct streams *streams)
{
	if (streams_owns_none(streams))
		return;
	int err = job_start("streams", streams_run, streams_over, streams,
			    streams->options.executor, &streams->job);
	ASSERT(!err); /* one of the first */
}

void streams_start_demux(struct streams *streams, struct datatypes **datatypes,
			 struct demux_sink *sink)
{
	const struct streams_options *options = &streams->options;
	datatypes_free(streams->datatypes);
	streams->datatypes = datatypes_share(*datatypes);
	if (streams_owns_none(streams))
		return;
	streams->demux = demux_open(&(struct demux_options){.site = &streams->site,
							    .executor = options->executor,
							    .session = options->session,
							    .sink = sink,
							    .every_ms = options->every_ms,
							    .write_max_ms = options->write_max_ms,
							    .late_max_ms = options->late_max_ms,
							    .seed = streams->seed},
				    datatypes);
	demux_start(streams->demux);
}

void streams_reload(struct streams *streams, struct datatypes **datatypes)
{
	datatypes_free(streams->datatypes);
	streams->datatypes = datatypes_share(*datatypes);
	if (streams->demux)
		demux_reload(streams->demux, datatypes);
	datatypes_free(*datatypes);
	*datatypes = NULL;
}

void streams_tick(struct streams *streams)
{
	stream_tail_tick(streams->tail);
}

void streams_stop(struct streams *streams)
{
	collector_stop(streams->collector);
	if (streams->demux)
		demux_stop(streams->demux);
	if (streams->job)
		job_stop(streams->job);
}

bool streams_is_over(const struct streams *streams)
{
	bool demuxes = streams->demux && !demux_is_over(streams->demux);
	return !streams->job && !demuxes && collector_is_idle(streams->collector) &&
	       stream_tail_is_over(streams->tail);
}

void streams_close(struct streams *streams)
{
	ASSERT(streams_is_over(streams));
	if (streams->demux)
		demux_close(streams->demux);
	datatypes_free(streams->datatypes);
	collector_free(streams->collector);
	stream_tail_free(streams->tail);
	leases_free(streams->leases);
	for (size_t at = 0; at < streams->due.slot_count; at++) {
		struct streams_slot *slot = hash_table_at(&streams->due, at);
		if (slot)
			streams_free_due(slot->due);
	}
	hash_table_release(&streams->due);
	pthread_mutex_destroy(&streams->lock);
	mem_free(streams);
}
