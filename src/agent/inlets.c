#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "agent/adaptors.h"
#include "agent/inlet.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/stats.h"
#include "loop/thread.h"
#include "wire/syslog.h"

enum {
	INLET_AGAIN_MS = 5000, /* one that could not be opened is tried again */
	INLET_LINES_A_MINUTE = 6,
	INLET_TEXTS_MAX_BYTES = 256 << 10,
	INLETS_ENDING_MAX = 16, /* that nobody waits for */
};

static const struct inlet_kind *const inlet_kinds[ADAPTOR_KINDS] = {
	[ADAPTOR_EXEC] = &inlet_exec,
	[ADAPTOR_UDP] = &inlet_net,
	[ADAPTOR_TCP] = &inlet_net,
	[ADAPTOR_SYSLOG] = &inlet_net,
	[ADAPTOR_HTTP] = &inlet_http,
	[ADAPTOR_SYSTEM] = &inlet_system,
	[ADAPTOR_HEARTBEAT] = &inlet_heartbeat,
	[ADAPTOR_JOURNAL] = &inlet_journal,
};

struct inlet {
	const struct inlet_kind *kind;
	struct inlets *inlets;
	struct arena arena; /* of the adaptor's texts */
	struct adaptor adaptor;
	void *state;
	bool wanted; /* the agent's */

	/* The thread's of the loop. */
	struct job *job; /* freed when it has ended */
	struct loop_timer *again;
	bool is_open;

	/* Guarded by the lock of all. */
	bool ended, stopped;
	int append_err; /* of its last records; 0: they were taken */
	char problem[INLET_PROBLEM_MAX_BYTES];
	struct log_rate troubles;
	int64_t last_ms;
};

struct inlets {
	struct inlets_options options;
	struct loop_thread *thread; /* NULL: there was no inlet yet */
	struct job *sync;
	struct inlet **list;
	size_t count, capacity;
	struct inlet **ending; /* with threads of their own, which were asked to end */
	size_t ending_count, ending_capacity;
	pthread_mutex_t lock; /* guards what inlets say of themselves, and `ended` of all */
	pthread_cond_t changed;
	bool sync_ended;
};

/* ---- For inlets ------------------------------------------------------------------------------ */

const struct adaptor *inlet_adaptor(const struct inlet *inlet)
{
	return &inlet->adaptor;
}

void *inlet_state(struct inlet *inlet)
{
	return inlet->state;
}

struct spool *inlet_spool(struct inlet *inlet)
{
	return inlet->inlets->options.spool;
}

struct clock *inlet_clock(struct inlet *inlet)
{
	return inlet->inlets->options.clock;
}

struct loop *inlet_loop(struct inlet *inlet)
{
	return loop_thread_loop(inlet->inlets->thread);
}

void inlet_set_problem(struct inlet *inlet, const char *fmt, ...)
{
	struct inlets *inlets = inlet->inlets;
	char text[INLET_PROBLEM_MAX_BYTES] = "";
	va_list args;
	if (fmt) {
		va_start(args, fmt);
		vsnprintf(text, sizeof(text), fmt, args);
		va_end(args);
	}
	pthread_mutex_lock(&inlets->lock);
	if (text[0] && strcmp(text, inlet->problem) != 0)
		log_rated(&inlet->troubles, clock_mono_ms(inlets->options.clock), LOG_WARN,
			  "adaptor %s: %s", inlet->adaptor.name.data, text);
	memcpy(inlet->problem, text, sizeof(text));
	pthread_mutex_unlock(&inlets->lock);
}

static void inlet_note_append(struct inlet *inlet, size_t count, int err)
{
	struct inlets *inlets = inlet->inlets;
	pthread_mutex_lock(&inlets->lock);
	if (err && !inlet->append_err)
		log_rated(&inlet->troubles, clock_mono_ms(inlets->options.clock), LOG_WARN,
			  "adaptor %s: its records cannot be kept at present: %s",
			  inlet->adaptor.name.data, err_text(err));
	inlet->append_err = err;
	if (!err && count)
		inlet->last_ms = clock_wall_ms(inlets->options.clock);
	pthread_mutex_unlock(&inlets->lock);
	if (!err)
		stat_add(STAT_inlet_records, (int64_t)count);
}

int inlet_append(struct inlet *inlet, struct spool_stream *stream, const struct slice *records,
		 size_t count)
{
	int err = spool_append(stream, records, count);
	inlet_note_append(inlet, count, err);
	return err;
}

int inlet_append_noted(struct inlet *inlet, struct spool_stream *stream,
		       const struct slice *records, size_t count, struct slice note)
{
	int err = spool_append_noted(stream, records, count, note);
	inlet_note_append(inlet, count, err);
	return err;
}

int inlet_append_patiently(struct inlet *inlet, struct job *job, struct spool_stream *stream,
			   const struct slice *records, size_t count)
{
	int err;
	while ((err = inlet_append(inlet, stream, records, count)) && err != ERR_LIMIT)
		if (job_sleep(job, INLET_ROOM_MS)) {
			stat_add(STAT_inlet_dropped_ended, (int64_t)count);
			return ERR_CANCELLED;
		}
	return err;
}

void inlet_keep(struct inlet *inlet, struct job *job, struct spool_stream *stream,
		const struct slice *records, size_t count)
{
	int err = inlet_append_patiently(inlet, job, stream, records, count);
	ASSERT(!err || err == ERR_CANCELLED); /* who has records that are too long cuts them */
}

int inlet_own_stream(struct inlet *inlet, struct spool_stream **stream)
{
	char name[INLET_STREAM_NAME_MAX_BYTES];
	struct errbuf e = {""};
	int err = spool_stream(inlet_spool(inlet), inlet->adaptor.datatype,
			       inlet_stream_name(&inlet->adaptor, name), stream, &e);
	if (err)
		inlet_set_problem(inlet, "%s", e.text);
	return err;
}

const struct host_rules *inlet_host_rules(const struct inlet *inlet)
{
	return &inlet->inlets->options.host;
}

void inlet_repeat(struct inlet *inlet, struct job *job, void (*once)(void *owner), void *owner)
{
	int64_t due_ms = clock_mono_ms(inlet_clock(inlet)), now_ms;
	do {
		once(owner);
		now_ms = clock_mono_ms(inlet_clock(inlet));
		due_ms = larger_of(due_ms + inlet->adaptor.every_ms, now_ms);
	} while (!job_sleep(job, due_ms - now_ms));
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* What tells the streams of a kind apart. */
static const char *inlet_own_name(const struct adaptor *adaptor)
{
	switch (adaptor->kind) {
	case ADAPTOR_UDP:
	case ADAPTOR_TCP:
	case ADAPTOR_SYSLOG:
		return strrchr(adaptor->path.data, ':') + 1;
	case ADAPTOR_SYSTEM:
		return adaptor->path.data;
	default:
		return adaptor->name.data;
	}
}

struct slice inlet_stream_name(const struct adaptor *adaptor,
			       char name[INLET_STREAM_NAME_MAX_BYTES])
{
	snprintf(name, INLET_STREAM_NAME_MAX_BYTES, "%s:%s", adaptor_kind_words[adaptor->kind],
		 inlet_own_name(adaptor));
	return slice_of(name);
}

struct slice inlet_stream_tenant(struct slice name)
{
	const struct slice prefix = SLICE("system:");
	return slice_starts_with(name, prefix)
		       ? (struct slice){name.data + prefix.len, name.len - prefix.len}
		       : (struct slice){NULL, 0};
}

/* ---- Beginning and ending -------------------------------------------------------------------- */

static void inlet_note_ended(struct inlet *inlet)
{
	pthread_mutex_lock(&inlet->inlets->lock);
	inlet->ended = true;
	pthread_cond_broadcast(&inlet->inlets->changed);
	pthread_mutex_unlock(&inlet->inlets->lock);
}

static void inlet_job_done(void *owner)
{
	inlet_note_ended(owner);
}

void inlet_closed(struct inlet *inlet)
{
	inlet_note_ended(inlet);
}

static void inlet_set_stopped(struct inlet *inlet, bool stopped)
{
	pthread_mutex_lock(&inlet->inlets->lock);
	inlet->stopped = stopped;
	pthread_mutex_unlock(&inlet->inlets->lock);
}

static void inlet_job_run(struct job *job, void *owner)
{
	struct inlet *inlet = owner;
	inlet_set_stopped(inlet, false);
	inlet_set_problem(inlet, NULL);
	inlet->kind->run(inlet, job);
}

static int inlet_open(struct inlet *inlet, struct errbuf *e)
{
	if (!inlet->kind->run)
		return inlet->kind->open(inlet, e);
	int err = job_start("inlet", inlet_job_run, inlet_job_done, inlet,
			    loop_executor(inlet_loop(inlet)), &inlet->job);
	return err ? errbuf_set(e, err, "there are too many threads; it is not followed yet") : 0;
}

static void inlet_try(void *owner)
{
	struct inlet *inlet = owner;
	struct errbuf e = {""};
	inlet->is_open = inlet_open(inlet, &e) == 0;
	if (inlet->is_open && inlet->kind->run)
		return; /* its thread says how it does */
	inlet_set_stopped(inlet, !inlet->is_open);
	inlet_set_problem(inlet, inlet->is_open ? NULL : "%s", e.text);
	if (!inlet->is_open)
		loop_timer_start(inlet->again, INLET_AGAIN_MS, 0);
}

static void inlet_begin_on_loop(struct inlet *inlet)
{
	inlet->again = loop_timer_new(inlet_loop(inlet), inlet_try, inlet);
	inlet_try(inlet);
}

static void inlet_end_on_loop(struct inlet *inlet)
{
	loop_timer_close(inlet->again);
	if (!inlet->is_open)
		inlet_closed(inlet);
	else if (inlet->kind->run)
		job_stop(inlet->job);
	else
		inlet->kind->close(inlet);
}

struct inlet_call {
	struct task task;
	void (*fn)(struct inlet *inlet);
	struct inlet *inlet;
	bool done;
};

static void inlet_called(struct task *task)
{
	struct inlet_call *call = CONTAINER_OF(task, struct inlet_call, task);
	struct inlets *inlets = call->inlet->inlets;
	call->fn(call->inlet);
	pthread_mutex_lock(&inlets->lock);
	call->done = true;
	pthread_cond_broadcast(&inlets->changed);
	pthread_mutex_unlock(&inlets->lock);
}

/* On the loop's thread; returns when it has returned. */
static void inlet_call_on_loop(struct inlet *inlet, void (*fn)(struct inlet *inlet))
{
	struct inlets *inlets = inlet->inlets;
	struct inlet_call call = {.task.run = inlet_called, .fn = fn, .inlet = inlet};
	struct executor *executor = loop_executor(loop_thread_loop(inlets->thread));
	executor->post(executor, &call.task);
	pthread_mutex_lock(&inlets->lock);
	while (!call.done)
		pthread_cond_wait(&inlets->changed, &inlets->lock);
	pthread_mutex_unlock(&inlets->lock);
}

static void inlets_wait(struct inlets *inlets, const bool *ended)
{
	pthread_mutex_lock(&inlets->lock);
	while (!*ended)
		pthread_cond_wait(&inlets->changed, &inlets->lock);
	pthread_mutex_unlock(&inlets->lock);
}

/* It has ended. */
static void inlet_free(struct inlet *inlet)
{
	inlets_wait(inlet->inlets, &inlet->ended);
	job_free(inlet->job);
	arena_release(&inlet->arena);
	mem_free(inlet->state);
	mem_free(inlet);
}

/* ---- Configuration --------------------------------------------------------------------------- */

static struct slice inlet_copy_text(struct inlet *inlet, struct slice text)
{
	struct slice copy = arena_copy(&inlet->arena, text);
	ASSERT(copy.data); /* texts of adaptors are bounded */
	return copy;
}

static void inlet_copy_datatypes(struct inlet *inlet, const struct slice *datatypes)
{
	struct slice *copy =
		arena_alloc(&inlet->arena, SYSLOG_FACILITIES * sizeof(*inlet->adaptor.datatypes));
	ASSERT(copy);
	for (size_t i = 0; i < SYSLOG_FACILITIES; i++)
		copy[i] = inlet_copy_text(inlet, datatypes[i]);
	inlet->adaptor.datatypes = copy;
}

static struct inlet *inlet_new(struct inlets *inlets, const struct adaptor *adaptor)
{
	struct inlet *inlet = mem_zalloc(sizeof(*inlet));
	inlet->inlets = inlets;
	inlet->kind = inlet_kinds[adaptor->kind];
	inlet->troubles.lines_max = INLET_LINES_A_MINUTE;
	arena_init(&inlet->arena, INLET_TEXTS_MAX_BYTES);
	inlet->adaptor = *adaptor;
	inlet->adaptor.name = inlet_copy_text(inlet, adaptor->name);
	inlet->adaptor.datatype = inlet_copy_text(inlet, adaptor->datatype);
	inlet->adaptor.path = inlet_copy_text(inlet, adaptor->path);
	if (adaptor->datatypes)
		inlet_copy_datatypes(inlet, adaptor->datatypes);
	inlet->state = inlet->kind->bytes ? mem_zalloc(inlet->kind->bytes) : NULL;
	return inlet;
}

static bool inlet_has_datatypes(const struct adaptor *a, const struct adaptor *b)
{
	if (!a->datatypes || !b->datatypes)
		return a->datatypes == b->datatypes;
	for (size_t i = 0; i < SYSLOG_FACILITIES; i++)
		if (!slice_equal(a->datatypes[i], b->datatypes[i]))
			return false;
	return true;
}

static bool inlet_is_same(const struct adaptor *a, const struct adaptor *b)
{
	return a->kind == b->kind && slice_equal(a->name, b->name) &&
	       slice_equal(a->datatype, b->datatype) && slice_equal(a->path, b->path) &&
	       a->rule.records.kind == b->rule.records.kind &&
	       a->rule.from_end == b->rule.from_end && a->every_ms == b->every_ms &&
	       a->timeout_ms == b->timeout_ms && a->datagrams == b->datagrams &&
	       a->connections == b->connections && inlet_has_datatypes(a, b);
}

static struct inlet *inlets_find(const struct inlets *inlets, const struct adaptor *adaptor)
{
	for (size_t i = 0; i < inlets->count; i++)
		if (inlet_is_same(&inlets->list[i]->adaptor, adaptor))
			return inlets->list[i];
	return NULL;
}

static void inlets_sync_run(struct job *job, void *owner)
{
	const struct inlets *inlets = owner;
	/* What cannot be synced is said in the log, and tried again. */
	while (!job_sleep(job, SPOOL_SYNC_MS))
		(void)!spool_sync(inlets->options.spool);
	(void)!spool_sync(inlets->options.spool);
}

static void inlets_sync_done(void *owner)
{
	struct inlets *inlets = owner;
	pthread_mutex_lock(&inlets->lock);
	inlets->sync_ended = true;
	pthread_cond_broadcast(&inlets->changed);
	pthread_mutex_unlock(&inlets->lock);
}

/* Most agents have no inlets, and need no thread for them. */
static void inlets_begin(struct inlets *inlets)
{
	if (inlets->thread)
		return;
	inlets->thread = loop_thread_new("inlets");
	if (job_start("spool", inlets_sync_run, inlets_sync_done, inlets,
		      loop_executor(loop_thread_loop(inlets->thread)), &inlets->sync)) {
		log_warn("there are too many threads: what inlets take in is synced with each "
			 "checkpoint only");
		inlets->sync_ended = true;
	}
}

static bool inlet_has_ended(struct inlet *inlet)
{
	pthread_mutex_lock(&inlet->inlets->lock);
	bool ended = inlet->ended;
	pthread_mutex_unlock(&inlet->inlets->lock);
	return ended;
}

/* Frees those that have ended; with more than so many others, it waits for the oldest ones. */
static void inlets_free_ended(struct inlets *inlets, size_t others_max)
{
	size_t kept = 0;
	for (size_t i = 0; i < inlets->ending_count; i++) {
		struct inlet *inlet = inlets->ending[i];
		if (kept + inlets->ending_count - i > others_max || inlet_has_ended(inlet))
			inlet_free(inlet);
		else
			inlets->ending[kept++] = inlet;
	}
	inlets->ending_count = kept;
}

/* All are asked to end before any of them is waited for. A command may need seconds to end, and the
 * agent delivers meanwhile. What has a port is waited for, since another one may want it, and what
 * goes on from a note, since another one would go on from the same. */
static void inlets_end_unwanted(struct inlets *inlets)
{
	size_t kept = 0;
	for (size_t i = 0; i < inlets->count; i++)
		if (!inlets->list[i]->wanted)
			inlet_call_on_loop(inlets->list[i], inlet_end_on_loop);
	for (size_t i = 0; i < inlets->count; i++) {
		struct inlet *inlet = inlets->list[i];
		if (inlet->wanted) {
			inlets->list[kept++] = inlet;
		} else if (inlet->kind->run && !inlet->kind->goes_on) {
			GROW(inlets->ending, inlets->ending_capacity, inlets->ending_count + 1);
			inlets->ending[inlets->ending_count++] = inlet;
		} else {
			inlet_free(inlet);
		}
	}
	inlets->count = kept;
	inlets_free_ended(inlets, INLETS_ENDING_MAX);
}

static void inlets_want(struct inlets *inlets, const struct adaptor *adaptor)
{
	inlets_begin(inlets);
	struct inlet *inlet = inlet_new(inlets, adaptor);
	inlet->wanted = true;
	GROW(inlets->list, inlets->capacity, inlets->count + 1);
	inlets->list[inlets->count++] = inlet;
	inlet_call_on_loop(inlet, inlet_begin_on_loop);
}

void inlets_configure(struct inlets *inlets, const struct adaptors *adaptors)
{
	for (size_t i = 0; i < inlets->count; i++)
		inlets->list[i]->wanted = false;
	for (size_t i = 0; i < adaptors->count; i++) {
		struct inlet *same = inlets_find(inlets, &adaptors->list[i]);
		if (same)
			same->wanted = true;
	}
	inlets_end_unwanted(inlets);
	for (size_t i = 0; i < adaptors->count; i++)
		if (adaptor_is_inlet(adaptors->list[i].kind) &&
		    !inlets_find(inlets, &adaptors->list[i]))
			inlets_want(inlets, &adaptors->list[i]);
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct inlets *inlets_new(const struct inlets_options *options)
{
	struct inlets *inlets = mem_zalloc(sizeof(*inlets));
	inlets->options = *options;
	pthread_mutex_init(&inlets->lock, NULL);
	pthread_cond_init(&inlets->changed, NULL);
	return inlets;
}

void inlets_free(struct inlets *inlets)
{
	const struct adaptors none = {.count = 0};
	if (!inlets)
		return;
	inlets_configure(inlets, &none);
	inlets_free_ended(inlets, 0);
	if (inlets->sync) {
		job_stop(inlets->sync);
		inlets_wait(inlets, &inlets->sync_ended);
		job_free(inlets->sync);
	}
	if (inlets->thread)
		loop_thread_free(inlets->thread);
	mem_free(inlets->list);
	mem_free(inlets->ending);
	pthread_cond_destroy(&inlets->changed);
	pthread_mutex_destroy(&inlets->lock);
	mem_free(inlets);
}

bool inlets_said(struct inlets *inlets, size_t place, struct inlet_said *said)
{
	if (place >= inlets->count)
		return false;
	const struct inlet *inlet = inlets->list[place];
	*said = (struct inlet_said){
		.name = inlet->adaptor.name,
		.datatype = inlet->adaptor.datatype,
		.place = inlet->adaptor.path,
		.kind = inlet->adaptor.kind,
	};
	pthread_mutex_lock(&inlets->lock);
	bool stopped = inlet->stopped;
	int append_err = inlet->append_err;
	said->last_ms = inlet->last_ms;
	memcpy(said->problem, inlet->problem, sizeof(said->problem));
	pthread_mutex_unlock(&inlets->lock);
	/* One that loses what the spool does not take tries nothing again when there is room. */
	bool waits =
		append_err && !(append_err == ERR_FULL && spool_has_room(inlets->options.spool));
	said->state = stopped ? "stopped" : waits ? "waiting" : "following";
	return true;
}
