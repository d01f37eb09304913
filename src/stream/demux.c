#include "stream/demux.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "lease/lease.h"
#include "loop/job.h"
#include "store/wait.h"

enum {
	DEMUX_PARTITIONS = 64, /* of streams, among processes: on disk, so it stays */
	DEMUX_LOOK_MS = 60000, /* for streams that other processes take */
	DEMUX_SOON_BYTES = 1 << 20,
	DEMUX_REST_MS = 5000, /* from when a little has come, or something was wrong */
	DEMUX_UNITS_MAX = 1 << 18,
	DEMUX_LOADED_MAX = 4096,
	DEMUX_STREAM_BINS_BYTES = 8 << 20,
	DEMUX_ALL_BINS_BYTES = 64 << 20,
	DEMUX_TRIM_UNITS = 64,
	DEMUX_BREATH_MS = 10, /* where there is more to do at once */
	DEMUX_LINES_A_MINUTE = 3,
};

/* A stream: all incarnations of its names. */
struct demux_unit {
	struct demux_stream stream;
	char *texts;
	uint32_t partition;
	/* With the lock. */
	uint64_t bytes; /* that came since its last pass */
	int64_t due_ms; /* monotonic: when it is to have a pass; INT64_MAX: when something comes */
	bool again;     /* from its beginning */
	/* The job's. */
	int64_t passed_ms; /* monotonic: when it had its last pass */
};

struct demux_slot {
	struct hash128 hash;
	struct demux_unit *unit;
};

struct demux {
	struct demux_options options;
	pthread_mutex_t lock; /* guards the datatypes, the table, and of units what is said there */
	struct datatypes *datatypes, *next; /* NULL: they stay */
	struct hash_table units;

	struct job *job; /* NULL: it is over, or has not begun */
	/* The job's. */
	struct demux_work work;
	struct leases *leases;
	struct partitions all, taken;
	struct partitions held;             /* of these, whose streams may have passes */
	int64_t taken_ms[DEMUX_PARTITIONS]; /* monotonic */
	struct log_rate lines;
	int64_t look_ms;
	bool looked;
};

/* ---- Streams --------------------------------------------------------------------------------- */

static struct hash128 demux_hash(struct slice tenant, const struct stream_names *names,
				 uint64_t seed)
{
	const struct slice texts[] = {tenant, names->source, names->cluster, names->datatype,
				      names->name};
	struct hash128 hash = {seed, seed};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		hash = hash128(texts[i].data, texts[i].len, hash.low ^ (hash.high << 1));
	return hash;
}

static struct demux_unit *demux_make_unit(const struct stream_id *id, const struct datatype *rule)
{
	struct demux_unit *unit = mem_zalloc(sizeof(*unit));
	struct slice *texts[] = {&unit->stream.tenant, &unit->stream.names.source,
				 &unit->stream.names.cluster, &unit->stream.names.datatype,
				 &unit->stream.names.name};
	size_t bytes = 1;
	unit->stream =
		(struct demux_stream){.tenant = id->tenant, .names = id->names, .rule = rule};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		bytes += texts[i]->len;
	char *at = unit->texts = mem_alloc(bytes);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		if (texts[i]->len)
			memcpy(at, texts[i]->data, texts[i]->len);
		texts[i]->data = at;
		at += texts[i]->len;
	}
	/* Streams of a source and datatype have one owner, who says which of them needs no name. */
	struct stream_names group = id->names;
	group.name = SLICE("");
	unit->partition = consistent_hash(demux_hash(id->tenant, &group, 0).low, DEMUX_PARTITIONS);
	unit->due_ms = INT64_MAX;
	return unit;
}

static void demux_free_unit(struct demux_unit *unit)
{
	demux_stream_forget(&unit->stream);
	mem_free(unit->texts);
	mem_free(unit);
}

static void demux_free_units(struct demux *demux)
{
	for (size_t at = 0; at < demux->units.slot_count; at++) {
		struct demux_slot *slot = hash_table_at(&demux->units, at);
		if (slot)
			demux_free_unit(slot->unit);
	}
	hash_table_release(&demux->units);
}

/* With the lock. NULL: there are too many. */
static struct demux_unit *demux_find_unit(struct demux *demux, const struct stream_id *id,
					  const struct datatype *rule)
{
	bool added;
	struct hash128 hash = demux_hash(id->tenant, &id->names, demux->options.seed);
	struct demux_slot *slot = hash_table_find(&demux->units, hash);
	if (!slot && demux->units.count < DEMUX_UNITS_MAX) {
		slot = hash_table_add(&demux->units, hash, sizeof(*slot), &added);
		slot->unit = demux_make_unit(id, rule);
	}
	if (slot && !slot->unit->stream.rule) /* the job does not look at it */
		slot->unit->stream.rule = rule;
	return slot ? slot->unit : NULL;
}

static int64_t demux_now_ms(const struct demux *demux)
{
	return clock_mono_ms(demux->options.site->clock);
}

/* With the lock. */
static void demux_set_due(struct demux_unit *unit, int64_t due_ms)
{
	unit->due_ms = smaller_of(unit->due_ms, due_ms);
}

void demux_note(struct demux *demux, const struct stream_id *id, uint64_t bytes)
{
	int64_t now_ms = demux_now_ms(demux);
	pthread_mutex_lock(&demux->lock);
	const struct datatype *rule = datatypes_find(demux->datatypes, id->names.datatype);
	struct demux_unit *unit = rule ? demux_find_unit(demux, id, rule) : NULL;
	if (unit) {
		unit->bytes += bytes;
		demux_set_due(unit,
			      unit->bytes >= DEMUX_SOON_BYTES ? now_ms : now_ms + DEMUX_REST_MS);
	} else if (rule) {
		demux->looked = false; /* it is found by looking */
	}
	pthread_mutex_unlock(&demux->lock);
}

int demux_again(struct demux *demux, const struct stream_id *id)
{
	pthread_mutex_lock(&demux->lock);
	const struct datatype *rule = datatypes_find(demux->datatypes, id->names.datatype);
	struct demux_unit *unit = rule ? demux_find_unit(demux, id, rule) : NULL;
	if (unit) {
		unit->again = true;
		demux_set_due(unit, demux_now_ms(demux));
	}
	pthread_mutex_unlock(&demux->lock);
	return !rule ? ERR_NOT_FOUND : unit ? 0 : ERR_BUSY;
}

/* ---- Looking --------------------------------------------------------------------------------- */

static int demux_see_stream(const struct stream_made *made, void *owner)
{
	struct demux *demux = owner;
	demux_note(demux, &made->id, DEMUX_SOON_BYTES);
	return 0;
}

struct demux_look {
	struct demux *demux;
	bool failed; /* for a tenant; the others are looked at all the same */
};

/* `whose`: the streams that cannot be listed. */
static void demux_say(struct demux *demux, const char *whose, struct slice tenant, int err,
		      const struct errbuf *e)
{
	if (err != ERR_CANCELLED)
		log_rated(&demux->lines, demux_now_ms(demux), LOG_WARN,
			  "the streams of %s" SHOWN " cannot be listed, so their lines are not "
			  "made into samples: %s; the server tries again",
			  whose, SHOWN_OF(tenant), e->text[0] ? e->text : err_text(err));
}

static int demux_look_at_tenant(const struct store_row *row, void *owner)
{
	struct demux_look *look = owner;
	struct demux *demux = look->demux;
	struct errbuf e = {""};
	struct slice tenant = mem_copy_slice(row->key.part[0]);
	int err = stream_each(demux->options.site, demux->work.queue, tenant, NULL,
			      demux_see_stream, demux, &e);
	if (err)
		demux_say(demux, "tenant ", tenant, err, &e);
	look->failed = look->failed || err;
	mem_free_slice(tenant);
	return err == ERR_CANCELLED ? err : 0;
}

/* All streams that are there may have bytes that are not read. */
static void demux_look(struct demux *demux)
{
	const struct stream_site *site = demux->options.site;
	struct demux_look look = {.demux = demux};
	struct errbuf e = {""};
	int64_t now_ms = demux_now_ms(demux);
	pthread_mutex_lock(&demux->lock);
	bool due = (!demux->looked || store_is_shared(site->store)) && now_ms >= demux->look_ms;
	demux->looked = demux->looked || due;
	pthread_mutex_unlock(&demux->lock);
	if (!due)
		return;
	demux->look_ms = now_ms + DEMUX_LOOK_MS;
	int err = store_rows_wait(site->store, demux->work.queue, clock_wall_ms(site->clock),
				  TABLE_STREAMS, demux_look_at_tenant, &look, &e);
	if (err)
		demux_say(demux, "all tenants", SLICE(""), err, &e);
	pthread_mutex_lock(&demux->lock);
	demux->looked = demux->looked && !err && !look.failed;
	pthread_mutex_unlock(&demux->lock);
}

/* The owner before may have given a partition back, and may have written with stamps that are ahead
 * of this process' clock, by as much as clocks may differ: samples with lower ones would be lost.
 * So a partition that is new rests for so long, and what was known of its streams is forgotten. */
static void demux_note_taken(struct demux *demux, const struct partitions *taken)
{
	int64_t now_ms = demux_now_ms(demux);
	int64_t rest_ms = lease_session_options_of(demux->options.session)->skew_max_ms;
	struct partitions held = {.count = 0};
	for (uint32_t i = 0; i < DEMUX_PARTITIONS; i++) {
		if (!partitions_has(&demux->taken, i))
			demux->taken_ms[i] = now_ms;
		if (partitions_has(taken, i) && now_ms - demux->taken_ms[i] > rest_ms)
			partitions_add(&held, i);
		if (partitions_has(&held, i) && !partitions_has(&demux->held, i))
			demux->look_ms = 0;
	}
	demux->taken = *taken;
	demux->held = held;
}

/* Partitions whose lease has ended meanwhile are new: others may have had them since. */
static int demux_take_leases(struct demux *demux)
{
	const struct stream_site *site = demux->options.site;
	struct partitions taken;
	if (!store_is_shared(site->store)) {
		demux->held = demux->all;
		demux->work.until_ms = INT64_MAX;
		return 0;
	}
	if (clock_wall_ms(site->clock) >= demux->work.until_ms)
		demux->taken = (struct partitions){.count = 0};
	int err = leases_take(demux->leases, demux->work.queue, &demux->all, &taken,
			      &demux->work.until_ms);
	demux_note_taken(demux, &taken);
	return err;
}

/* ---- Passes ---------------------------------------------------------------------------------- */

static bool demux_may_pass(const struct demux *demux, const struct demux_unit *unit)
{
	return unit->stream.rule && partitions_has(&demux->held, unit->partition);
}

/* What is known of streams that are not held is another process's by now. */
static void demux_forget_others(struct demux *demux)
{
	pthread_mutex_lock(&demux->lock);
	for (size_t at = 0; at < demux->units.slot_count; at++) {
		const struct demux_slot *slot = hash_table_at(&demux->units, at);
		if (!slot || demux_may_pass(demux, slot->unit))
			continue;
		slot->unit->due_ms = INT64_MAX;
		slot->unit->again = false;
		demux_stream_forget(&slot->unit->stream);
	}
	pthread_mutex_unlock(&demux->lock);
}

/* The first that is held and due from *at on, which moves behind it. With the lock. */
static struct demux_unit *demux_next_due(struct demux *demux, int64_t now_ms, size_t *at)
{
	while (*at < demux->units.slot_count) {
		const struct demux_slot *slot = hash_table_at(&demux->units, (*at)++);
		if (slot && slot->unit->due_ms <= now_ms && demux_may_pass(demux, slot->unit))
			return slot->unit;
	}
	return NULL;
}

/* The job has them without the lock, since it alone frees any. */
static struct demux_unit **demux_list_due(struct demux *demux, size_t *count)
{
	struct demux_unit **list = NULL, *unit;
	size_t room = 0, at = 0;
	int64_t now_ms = demux_now_ms(demux);
	*count = 0;
	pthread_mutex_lock(&demux->lock);
	while ((unit = demux_next_due(demux, now_ms, &at)) != NULL) {
		GROW(list, room, *count + 1);
		list[(*count)++] = unit;
	}
	pthread_mutex_unlock(&demux->lock);
	return list;
}

/* What comes from here on makes it due again. */
static bool demux_begin_pass(struct demux *demux, struct demux_unit *unit)
{
	pthread_mutex_lock(&demux->lock);
	bool again = unit->again;
	unit->again = false;
	unit->bytes = 0;
	unit->due_ms = INT64_MAX;
	pthread_mutex_unlock(&demux->lock);
	return again;
}

static void demux_end_pass(struct demux *demux, struct demux_unit *unit, int err, bool again,
			   const struct demux_passed *passed)
{
	int64_t now_ms = demux_now_ms(demux);
	unit->passed_ms = now_ms;
	pthread_mutex_lock(&demux->lock);
	unit->again = unit->again || (err && again);
	if (err)
		demux_set_due(unit, now_ms + DEMUX_REST_MS);
	else if (passed->more)
		demux_set_due(unit, now_ms);
	else if (passed->waits)
		demux_set_due(unit, larger_of(now_ms, unit->stream.late_at_ms));
	pthread_mutex_unlock(&demux->lock);
}

static void demux_pass_unit(struct demux *demux, struct demux_unit *unit)
{
	struct errbuf e = {""};
	struct demux_passed passed = {.bytes = 0};
	bool again = demux_begin_pass(demux, unit);
	int err = again ? demux_begin_again(&demux->work, &unit->stream, &e) : 0;
	again = again && err;
	err = err ? err : demux_pass(&demux->work, &unit->stream, &passed, &e);
	demux_end_pass(demux, unit, err, again, &passed);
	if (passed.damaged)
		log_rated(&demux->lines, demux_now_ms(demux), LOG_WARN,
			  "streams: %llu blocks of `" SHOWN "` of " SHOWN
			  " cannot be read; late events of their times are not counted",
			  (unsigned long long)passed.damaged, SHOWN_OF(unit->stream.names.name),
			  SHOWN_OF(unit->stream.names.source));
	if (passed.lost)
		log_rated(&demux->lines, demux_now_ms(demux), LOG_WARN,
			  "streams: %llu bytes in blocks of `" SHOWN "` of " SHOWN
			  " cannot be read and are passed over; granary verify says which",
			  (unsigned long long)passed.lost, SHOWN_OF(unit->stream.names.name),
			  SHOWN_OF(unit->stream.names.source));
	if (err && err != ERR_CANCELLED)
		log_rated(&demux->lines, demux_now_ms(demux), LOG_WARN,
			  "streams: lines of `" SHOWN "` of " SHOWN
			  " are not made into samples: %s; the server tries again",
			  SHOWN_OF(unit->stream.names.name), SHOWN_OF(unit->stream.names.source),
			  e.text[0] ? e.text : err_text(err));
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static int demux_compare_passed(const void *a, const void *b)
{
	const struct demux_unit *x = *(struct demux_unit *const *)a;
	const struct demux_unit *y = *(struct demux_unit *const *)b;
	return (x->passed_ms > y->passed_ms) - (x->passed_ms < y->passed_ms);
}

/* Of which nothing waits, and of which nothing is in memory. With the lock. */
static bool demux_is_idle(const struct demux_unit *unit)
{
	return !unit->stream.loaded && unit->due_ms == INT64_MAX && !unit->again;
}

/* They are found again when something comes of them. */
static void demux_remove_idle(struct demux *demux)
{
	struct demux_unit **list = NULL;
	size_t room = 0, count = 0;
	pthread_mutex_lock(&demux->lock);
	for (size_t at = 0; at < demux->units.slot_count; at++) {
		const struct demux_slot *slot = hash_table_at(&demux->units, at);
		if (!slot || !demux_is_idle(slot->unit))
			continue;
		GROW(list, room, count + 1);
		list[count++] = slot->unit;
	}
	for (size_t i = 0; i < count; i++) {
		const struct demux_stream *stream = &list[i]->stream;
		hash_table_remove(&demux->units,
				  demux_hash(stream->tenant, &stream->names, demux->options.seed));
		demux_free_unit(list[i]);
	}
	pthread_mutex_unlock(&demux->lock);
	mem_free(list);
}

static size_t demux_unit_bytes(const struct demux_unit *unit)
{
	const struct hash_table *series = &unit->stream.state.series.table;
	return unit->stream.bins.used_bytes + series->slot_count * series->slot_bytes;
}

static struct demux_unit **demux_list_loaded(struct demux *demux, size_t *count, size_t *bytes)
{
	struct demux_unit **list = NULL;
	size_t room = 0;
	*count = *bytes = 0;
	pthread_mutex_lock(&demux->lock);
	for (size_t at = 0; at < demux->units.slot_count; at++) {
		const struct demux_slot *slot = hash_table_at(&demux->units, at);
		if (!slot || !slot->unit->stream.loaded)
			continue;
		GROW(list, room, *count + 1);
		list[(*count)++] = slot->unit;
		*bytes += demux_unit_bytes(slot->unit);
	}
	pthread_mutex_unlock(&demux->lock);
	return list;
}

/* Streams that had no pass for the longest time are read from their cells at the next one. */
static void demux_trim(struct demux *demux)
{
	size_t count, bytes;
	struct demux_unit **list = demux_list_loaded(demux, &count, &bytes);
	if (bytes > DEMUX_ALL_BINS_BYTES || count > DEMUX_LOADED_MAX)
		qsort(list, count, sizeof(struct demux_unit *), demux_compare_passed);
	for (size_t i = 0;
	     i < count && (bytes > DEMUX_ALL_BINS_BYTES || count - i > DEMUX_LOADED_MAX); i++) {
		bytes -= demux_unit_bytes(list[i]);
		demux_stream_forget(&list[i]->stream);
	}
	mem_free(list);
}

/* ---- Rules ----------------------------------------------------------------------------------- */

/* Streams whose rule is the same go on; the others are looked for anew. With the lock. */
static void demux_change_rules(struct demux *demux)
{
	for (size_t at = 0; at < demux->units.slot_count; at++) {
		const struct demux_slot *slot = hash_table_at(&demux->units, at);
		struct demux_stream *stream = slot ? &slot->unit->stream : NULL;
		if (!stream)
			continue;
		const struct datatype *rule = datatypes_find(demux->next, stream->names.datatype);
		if (!rule || !stream->rule || rule->hash != stream->rule->hash)
			demux_stream_forget(stream);
		stream->rule = rule;
	}
}

static void demux_take_next(struct demux *demux)
{
	pthread_mutex_lock(&demux->lock);
	if (demux->next) {
		demux_change_rules(demux);
		datatypes_free(demux->datatypes);
		demux->datatypes = demux->next;
		demux->next = NULL;
		demux->looked = false;
		demux->look_ms = 0;
	}
	pthread_mutex_unlock(&demux->lock);
}

void demux_reload(struct demux *demux, struct datatypes **datatypes)
{
	pthread_mutex_lock(&demux->lock);
	datatypes_free(demux->next);
	demux->next = *datatypes;
	*datatypes = NULL;
	pthread_mutex_unlock(&demux->lock);
}

/* ---- The job --------------------------------------------------------------------------------- */

static void demux_turn(struct demux *demux, struct job *job)
{
	size_t count = 0;
	demux_take_next(demux);
	if (demux_take_leases(demux))
		return; /* it is said by whoever renews them */
	demux_look(demux);
	demux_forget_others(demux);
	struct demux_unit **list = demux_list_due(demux, &count);
	for (size_t i = 0; i < count && !job_is_stopping(job); i++) {
		demux_pass_unit(demux, list[i]);
		if (i % DEMUX_TRIM_UNITS == DEMUX_TRIM_UNITS - 1)
			demux_trim(demux);
	}
	mem_free(list);
	demux_trim(demux);
	if (demux->units.count > DEMUX_UNITS_MAX / 2)
		demux_remove_idle(demux);
}

static bool demux_has_due(struct demux *demux)
{
	size_t at = 0;
	int64_t now_ms = demux_now_ms(demux);
	pthread_mutex_lock(&demux->lock);
	bool due = demux_next_due(demux, now_ms, &at) != NULL;
	pthread_mutex_unlock(&demux->lock);
	return due;
}

static void demux_run(struct job *job, void *owner)
{
	struct demux *demux = owner;
	demux->work.queue = job_queue(job);
	demux->work.job = job;
	do
		demux_turn(demux, job);
	while (!job_sleep(job, demux_has_due(demux) ? DEMUX_BREATH_MS : demux->options.every_ms));
}

static void demux_over(void *owner)
{
	struct demux *demux = owner;
	job_free(demux->job);
	demux->job = NULL;
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct demux *demux_open(const struct demux_options *options, struct datatypes **datatypes)
{
	struct demux *demux = mem_zalloc(sizeof(*demux));
	demux->options = *options;
	demux->datatypes = *datatypes;
	*datatypes = NULL;
	pthread_mutex_init(&demux->lock, NULL);
	demux->lines.lines_max = DEMUX_LINES_A_MINUTE;
	demux->work = (struct demux_work){.site = options->site,
					  .sink = options->sink,
					  .write_max_ms = options->write_max_ms,
					  .late_max_ms = options->late_max_ms,
					  .bins_max_bytes = DEMUX_STREAM_BINS_BYTES};
	demux_work_init(&demux->work);
	const struct leases_options leases = {.session = options->session,
					      .kind = "demux",
					      .share = true,
					      .sharing = SESSION_OWNS_STREAMS};
	demux->leases = leases_new(&leases);
	for (uint32_t i = 0; i < DEMUX_PARTITIONS; i++)
		partitions_add(&demux->all, i);
	return demux;
}

void demux_start(struct demux *demux)
{
	int err = job_start("demux", demux_run, demux_over, demux, demux->options.executor,
			    &demux->job);
	ASSERT(!err); /* one of the first */
}

void demux_stop(struct demux *demux)
{
	if (demux->job)
		job_stop(demux->job);
}

bool demux_is_over(const struct demux *demux)
{
	return !demux->job;
}

void demux_close(struct demux *demux)
{
	ASSERT(demux_is_over(demux));
	demux_free_units(demux);
	datatypes_free(demux->datatypes);
	datatypes_free(demux->next);
	leases_free(demux->leases);
	demux_work_release(&demux->work);
	pthread_mutex_destroy(&demux->lock);
	mem_free(demux);
}
