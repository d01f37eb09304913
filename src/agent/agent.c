#include "agent/agent.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/adaptors.h"
#include "agent/agent_private.h"
#include "base/grow.h"
#include "base/stats.h"

enum {
	AGENT_ANSWER_MAX_BYTES = 16 << 20,
	AGENT_BODY_MAX_BYTES = 16 << 20,
	AGENT_REPORT_GONE_MAX_BYTES = 2 << 20,
	AGENT_TROUBLES_A_MINUTE = 6,
	AGENT_TURN_MAX_MS = 1000, /* between two parts of a scan */
	AGENT_FULL_REST_MS = 200,
	AGENT_CHECKPOINT_REST_MIN_MS = 1000,
	AGENT_CHECKPOINT_REST_MAX_MS = 30000,
	/* A checkpoint is written less often the longer it is: once a second for each so many
	 * bytes. */
	AGENT_CHECKPOINT_BYTES_A_SECOND = 1 << 20,
};

struct agent_slot {
	struct hash128 hash;
	struct followed *f;
};

struct agent_directory_slot {
	struct hash128 hash;
	struct agent_directory *directory;
};

int64_t agent_now_ms(const struct agent *agent)
{
	return clock_mono_ms(agent->options.clock);
}

/* ---- Life ------------------------------------------------------------------------------------ */

struct agent *agent_new(const struct agent_options *options)
{
	struct agent *agent = mem_zalloc(sizeof(*agent));
	ASSERT(options->collector_count);
	agent->options = *options;
	agent->pending_end = &agent->pending;
	agent->troubles.lines_max = AGENT_TROUBLES_A_MINUTE;
	followed_site_init(&agent->site, options->files, options->clock, options->seed);
	buf_init(&agent->body, AGENT_BODY_MAX_BYTES);
	buf_init(&agent->answer, AGENT_ANSWER_MAX_BYTES);
	buf_init(&agent->checkpoint, AGENT_CHECKPOINT_MAX_BYTES);
	buf_init(&agent->report_gone, AGENT_REPORT_GONE_MAX_BYTES);
	agent->report_boot = random_next(&agent->site.random);
	agent->report_all = true;
	return agent;
}

static void agent_free_directory(struct agent_directory *directory)
{
	mem_free(directory->path);
	mem_free(directory->list);
	mem_free(directory);
}

void agent_free(struct agent *agent)
{
	if (!agent)
		return;
	for (size_t i = 0; i < agent->count; i++) {
		delivery_drop(agent, agent->list[i]);
		followed_free(agent->list[i]);
	}
	for (size_t i = 0; i < agent->directory_count; i++)
		agent_free_directory(agent->directories[i]);
	adaptors_free(agent->adaptors);
	followed_site_release(&agent->site);
	hash_table_release(&agent->by_names);
	hash_table_release(&agent->by_directory);
	hash_table_release(&agent->walked);
	mem_free(agent->directories);
	mem_free(agent->list);
	mem_free(agent->active);
	mem_free(agent->problem);
	buf_release(&agent->body);
	buf_release(&agent->answer);
	buf_release(&agent->checkpoint);
	buf_release(&agent->report_gone);
	mem_free(agent);
}

void agent_set_problem(struct agent *agent, const char *text)
{
	mem_free(agent->problem);
	agent->problem = text ? mem_copy_text(slice_of(text)) : NULL;
}

/* ---- Logs ------------------------------------------------------------------------------------ */

static struct hash128 agent_hash(struct slice datatype, struct slice name)
{
	return hash128(name.data, name.len, hash64(datatype.data, datatype.len, 0));
}

struct followed *agent_find(const struct agent *agent, struct slice datatype, struct slice name)
{
	const struct agent_slot *slot =
		hash_table_find(&agent->by_names, agent_hash(datatype, name));
	return slot ? slot->f : NULL;
}

static struct agent_directory *agent_directory(struct agent *agent, const char *path)
{
	const struct agent_directory_slot *slot =
		hash_table_find(&agent->by_directory, hash128(path, strlen(path), 0));
	return slot ? slot->directory : NULL;
}

struct agent_directory *agent_watch_directory(struct agent *agent, const char *path)
{
	bool added;
	struct agent_directory_slot *slot = hash_table_add(
		&agent->by_directory, hash128(path, strlen(path), 0), sizeof(*slot), &added);
	if (!added) {
		slot->directory->seen = true;
		return slot->directory;
	}
	slot->directory = mem_zalloc(sizeof(*slot->directory));
	slot->directory->path = mem_copy_text(slice_of(path));
	slot->directory->seen = true;
	GROW(agent->directories, agent->directory_capacity, agent->directory_count + 1);
	agent->directories[agent->directory_count++] = slot->directory;
	if (agent->options.watch)
		agent->options.watch->add(agent->options.watch, path);
	return slot->directory;
}

/* Those with nothing that is followed, and which no adaptor leads to (any more). */
static void agent_drop_directories(struct agent *agent)
{
	for (size_t i = 0; i < agent->directory_count; i++) {
		struct agent_directory *directory = agent->directories[i];
		if (directory->count || directory->seen)
			continue;
		if (agent->options.watch)
			agent->options.watch->remove(agent->options.watch, directory->path);
		hash_table_remove(&agent->by_directory,
				  hash128(directory->path, strlen(directory->path), 0));
		agent_free_directory(directory);
		agent->directories[i--] = agent->directories[--agent->directory_count];
	}
}

/* Who watches is told again and again, since a directory may come later than its name. */
static void agent_watch_all(struct agent *agent)
{
	if (!agent->options.watch)
		return;
	for (size_t i = 0; i < agent->directory_count; i++)
		agent->options.watch->add(agent->options.watch, agent->directories[i]->path);
}

static void agent_list_in_directory(struct agent *agent, struct followed *f)
{
	struct agent_directory *directory = agent_watch_directory(agent, f->directory);
	GROW(directory->list, directory->capacity, directory->count + 1);
	directory->list[directory->count++] = f;
}

bool agent_is_file(struct slice name)
{
	return name.len && name.data[0] == '/';
}

struct slice agent_tenant(const struct agent *agent, const struct followed *f)
{
	struct slice own = inlet_stream_tenant(f->names.name);
	return own.len ? own : agent->options.tenant;
}

void agent_spool_directory(const struct agent *agent, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/spool", agent->options.directory);
}

static struct followed *agent_new_followed(struct agent *agent, const struct followed_rule *rule,
					   const struct stream_names *names)
{
	char directory[PATH_MAX];
	struct buf path;
	if (agent_is_file(names->name))
		return followed_new(&agent->site, rule, names, names->name);
	agent_spool_directory(agent, directory);
	buf_init(&path, AGENT_PATH_MAX_BYTES);
	spool_path(directory, names->datatype, names->name, &path);
	struct followed *f = followed_new(&agent->site, rule, names, buf_slice(&path));
	buf_release(&path);
	return f;
}

int agent_add(struct agent *agent, const struct followed_rule *rule, struct slice datatype,
	      struct slice name, struct followed **f)
{
	struct stream_names names = {agent->options.source, agent->options.cluster, datatype, name};
	struct errbuf e = {""};
	bool added;
	if (agent->count >= AGENT_FOLLOWED_MAX)
		return ERR_LIMIT;
	int err = stream_names_check(&names, &e);
	if (!err && !agent_is_file(name))
		err = spool_check_names(datatype, name, &e);
	if (err) {
		log_rated(&agent->troubles, agent_now_ms(agent), LOG_WARN,
			  SHOWN " is not followed: %s", SHOWN_OF(name), e.text);
		return ERR_INVALID;
	}
	struct agent_slot *slot =
		hash_table_add(&agent->by_names, agent_hash(datatype, name), sizeof(*slot), &added);
	if (!added)
		return ERR_EXISTS;
	*f = slot->f = agent_new_followed(agent, rule, &names);
	GROW(agent->list, agent->capacity, agent->count + 1);
	agent->list[agent->count++] = *f;
	agent_list_in_directory(agent, *f);
	if (!agent->had_checkpoint)
		(*f)->asks = true;
	return 0;
}

static void agent_remove(struct agent *agent, size_t at)
{
	struct followed *f = agent->list[at];
	struct agent_directory *directory = agent_directory(agent, f->directory);
	directory->listed_by = NULL; /* what rotation made of it may be followed now */
	delivery_drop(agent, f);
	report_forget(agent, f);
	hash_table_remove(&agent->by_names, agent_hash(f->names.datatype, f->names.name));
	for (size_t i = 0; i < directory->count; i++)
		if (directory->list[i] == f)
			directory->list[i--] = directory->list[--directory->count];
	for (size_t i = 0; i < agent->active_count; i++)
		if (agent->active[i] == f)
			agent->active[i--] = agent->active[--agent->active_count];
	agent->list[at] = agent->list[--agent->count];
	followed_free(f);
	agent->site.version++;
}

void agent_activate(struct agent *agent, struct followed *f, int64_t due_ms)
{
	if (f->active) {
		f->due_ms = smaller_of(f->due_ms, due_ms);
		return;
	}
	GROW(agent->active, agent->active_capacity, agent->active_count + 1);
	agent->active[agent->active_count++] = f;
	f->active = true;
	f->due_ms = due_ms;
}

void agent_notice(struct agent *agent, const char *directory, const char *name)
{
	int64_t now_ms = agent_now_ms(agent);
	struct agent_directory *found = directory ? agent_directory(agent, directory) : NULL;
	bool known = !name;
	for (size_t i = 0; i < agent->count && !directory; i++)
		if (agent->list[i]->wanted)
			agent_activate(agent, agent->list[i], now_ms);
	if (!found)
		return;
	for (size_t i = 0; i < found->count; i++) {
		struct followed *f = found->list[i];
		if (f->wanted && (!name || slice_equal(f->base, slice_of(name)))) {
			agent_activate(agent, f, now_ms);
			known = true;
		}
	}
	uint32_t number;
	for (size_t i = 0; !known && i < found->count && i < AGENT_NAMES_IN_DIRECTORY_MAX; i++)
		if (found->list[i]->wanted &&
		    siblings_is_rotated(found->list[i]->base, slice_of(name), &number)) {
			agent_activate(agent, found->list[i], now_ms);
			known = true;
		}
	if (known)
		return;
	/* A new one, or none of ours: not more often than so. */
	found->listed_by = NULL;
	agent->directories_ms =
		smaller_of(agent->directories_ms, agent->directories_done_ms + AGENT_TURN_MAX_MS);
}

/* ---- Configuration --------------------------------------------------------------------------- */

static void agent_want(struct agent *agent, const struct adaptor *adaptor)
{
	struct followed *f = agent_find(agent, adaptor->datatype, adaptor->path);
	int err = f ? 0 : agent_add(agent, &adaptor->rule, adaptor->datatype, adaptor->path, &f);
	if (err) {
		log_error("adaptor %s is not followed: %s", adaptor->name.data, err_text(err));
		return;
	}
	f->rule = &adaptor->rule;
	f->wanted = true;
	f->unwanted_ms = 0;
	followed_rule_changed(f);
	agent_activate(agent, f, agent_now_ms(agent));
}

static void agent_unwant(struct agent *agent, struct followed *f)
{
	delivery_drop(agent, f);
	report_forget(agent, f);
	f->reported_hash = 0;
	followed_rest(f);
	f->rule = NULL;
	if (!f->unwanted_ms)
		f->unwanted_ms = clock_wall_ms(agent->options.clock);
}

void agent_configure(struct agent *agent, struct adaptors **adaptors)
{
	struct adaptors *before = agent->adaptors;
	agent->adaptors = *adaptors;
	*adaptors = NULL;
	for (size_t i = 0; i < agent->count; i++) {
		struct followed *f = agent->list[i];
		f->wanted = false;
		if (f->state == FOLLOWED_STOPPED) /* what was refused may be taken now */
			f->state = FOLLOWED_READING;
	}
	for (size_t i = 0; i < agent->adaptors->count; i++)
		if (agent->adaptors->list[i].kind != ADAPTOR_DIRECTORY &&
		    !adaptor_is_inlet(agent->adaptors->list[i].kind))
			agent_want(agent, &agent->adaptors->list[i]);
	for (size_t i = 0; i < agent->directory_count; i++)
		agent->directories[i]->listed_by = NULL;
	directory_scan(agent);
	spooled_scan(agent);
	for (size_t i = 0; i < agent->count; i++)
		if (!agent->list[i]->wanted && !directory_wants(agent, agent->list[i]))
			agent_unwant(agent, agent->list[i]);
	agent->had_checkpoint = true; /* what comes from now on is new */
	agent->site.version++;
	report_begin_anew(agent); /* inlets and directories may be gone */
	adaptors_free(before);
	agent_watch_all(agent);
}

int agent_start(struct agent *agent, struct errbuf *e)
{
	return checkpoint_load(agent, e);
}

/* ---- Turns ----------------------------------------------------------------------------------- */

/* A part of all logs is looked at each time, so that all are in AGENT_SCAN_MS. */
static void agent_scan(struct agent *agent, int64_t now_ms)
{
	if (now_ms < agent->scan_ms)
		return;
	size_t part = (agent->count * AGENT_TURN_MAX_MS + AGENT_SCAN_MS - 1) / AGENT_SCAN_MS;
	for (size_t i = 0; i < part; i++) {
		struct followed *f = agent->list[agent->scan_at++ % agent->count];
		if (f->wanted)
			agent_activate(agent, f, now_ms);
	}
	agent->scan_ms = now_ms + AGENT_TURN_MAX_MS;
}

/* A file of a directory that is gone, and all of it delivered, or one that no adaptor names any
 * more, is forgotten after a while. */
static void agent_forget(struct agent *agent)
{
	int64_t now_ms = clock_wall_ms(agent->options.clock);
	for (size_t i = 0; i < agent->count; i++) {
		struct followed *f = agent->list[i];
		bool gone = f->wanted && f->rule->passes && f->state == FOLLOWED_MISSING;
		if (!gone && f->wanted)
			f->unwanted_ms = 0;
		if (gone && !f->unwanted_ms)
			f->unwanted_ms = now_ms;
		if (f->unwanted_ms > now_ms)
			f->unwanted_ms = now_ms; /* the clock has jumped */
		if ((!gone && f->wanted) || now_ms - f->unwanted_ms <= AGENT_FORGET_MS)
			continue;
		/* While rotated files of it are there, they are to be known as its. */
		if (siblings_find(&agent->site.siblings, agent->options.files, f->directory,
				  f->base) == 0 &&
		    agent->site.siblings.count)
			f->unwanted_ms = now_ms;
		else
			agent_remove(agent, i--);
	}
}

static void agent_scan_directories(struct agent *agent, int64_t now_ms)
{
	if (now_ms < agent->directories_ms)
		return;
	directory_scan(agent);
	spooled_scan(agent);
	if (!agent->unsaved_bytes && agent->site.version == agent->site.saved_version)
		spooled_remove(agent);
	agent_forget(agent);
	agent_drop_directories(agent);
	agent_watch_all(agent);
	agent->directories_done_ms = now_ms;
	agent->directories_ms = now_ms + AGENT_SCAN_MS;
}

static bool agent_is_due(const struct followed *f, int64_t now_ms)
{
	return f->wanted && f->due_ms <= now_ms && !f->asks;
}

/* While as many files are open as may be, those that have nothing to send are closed again, and the
 * others have their turn later. True: somebody waits for a checkpoint. */
static bool agent_look(struct agent *agent, int64_t now_ms, bool *asks)
{
	bool waits = false;
	for (size_t i = 0; i < agent->active_count; i++) {
		struct followed *f = agent->active[i];
		f->looked =
			agent_is_due(f, now_ms) &&
			(agent->site.open_count < agent->options.open_max || followed_is_open(f));
		if (!f->looked && agent_is_due(f, now_ms))
			f->due_ms = now_ms + AGENT_FULL_REST_MS; /* as many are open as may */
		if (f->looked) {
			f->turn_count = 0;
			followed_look(f);
			bool behind = followed_behind_bytes(f);
			waits |= behind && !followed_is_saved(f);
			if (!behind && f->plan_count <= 1 &&
			    agent->site.open_count >= agent->options.open_max)
				followed_rest(f);
		}
		/* What is on its way brings it back. */
		if (f->looked && f->pending_count) {
			f->looked = false;
			f->due_ms = f->look_again ? now_ms + FOLLOWED_RETRY_MS : INT64_MAX;
		}
		*asks |= f->asks;
	}
	return waits;
}

static bool agent_checkpoint(struct agent *agent, struct errbuf *e)
{
	int64_t now_ms = agent_now_ms(agent);
	int err = checkpoint_save(agent, e);
	if (err) {
		agent->checkpoint_rest_ms = agent->checkpoint_rest_ms
						    ? smaller_of(2 * agent->checkpoint_rest_ms,
								 AGENT_CHECKPOINT_REST_MAX_MS)
						    : AGENT_CHECKPOINT_REST_MIN_MS;
		agent->checkpoint_ms = now_ms + agent->checkpoint_rest_ms;
		return false;
	}
	if (agent->checkpoint_rest_ms)
		log_info("the checkpoint can be written again");
	spooled_remove(agent);
	agent->checkpoint_rest_ms = 0;
	agent->checkpoint_ms =
		now_ms + AGENT_CHECKPOINT_MS +
		(int64_t)(agent->checkpoint.len * 1000 / AGENT_CHECKPOINT_BYTES_A_SECOND);
	return true;
}

/* `now`: somebody waits for it. */
static void agent_checkpoint_if_due(struct agent *agent, bool now)
{
	struct errbuf e = {""};
	int64_t now_ms = agent_now_ms(agent);
	bool resting = agent->checkpoint_rest_ms && now_ms < agent->checkpoint_ms;
	bool changed = agent->unsaved_bytes || agent->site.version != agent->site.saved_version;
	if (!changed || resting ||
	    !(now || agent->unsaved_bytes >= AGENT_UNSAVED_MAX_BYTES ||
	      now_ms >= agent->checkpoint_ms))
		return;
	if (!agent_checkpoint(agent, &e))
		log_rated(&agent->troubles, now_ms, LOG_ERROR, "%s", e.text);
}

/* When a log that has nothing to read now is to be looked at again. */
static int64_t agent_due_ms(const struct agent *agent, const struct followed *f, int64_t wait_ms,
			    int64_t now_ms)
{
	if (f->pending_count)
		return INT64_MAX;
	if (!followed_is_saved(f) && followed_behind_bytes(f))
		return agent->checkpoint_rest_ms ? agent->checkpoint_ms : now_ms;
	return wait_ms >= 0 ? now_ms + wait_ms : INT64_MAX;
}

/* Reads one chunk of a log. False: there is none now, or it has had its turn. */
static bool agent_read(struct agent *agent, struct followed *f, int64_t now_ms)
{
	struct followed_chunk chunk;
	int64_t wait_ms = 0;
	if (!followed_read(f, &chunk, &wait_ms)) {
		f->looked = false;
		f->due_ms = agent_due_ms(agent, f, wait_ms, now_ms);
		return false;
	}
	delivery_add(agent, f, &chunk);
	f->looked = ++f->turn_count < AGENT_CHUNK_TURNS && !followed_is_careful(f);
	return f->looked;
}

static bool agent_may_read(const struct agent *agent)
{
	return agent->unsaved_bytes < AGENT_UNSAVED_STOP_BYTES &&
	       agent->pending_bytes < AGENT_PENDING_RAW_MAX_BYTES;
}

static void agent_fill(struct agent *agent, int64_t now_ms)
{
	uint64_t before = agent->pending_bytes;
	bool any = true;
	while (any) {
		any = false;
		for (size_t i = 0; i < agent->active_count; i++) {
			struct followed *f = agent->active[i];
			if (!f->looked)
				continue;
			if (!agent_may_read(agent) ||
			    agent->pending_bytes - before >= AGENT_POST_RAW_MAX_BYTES)
				return;
			any |= agent_read(agent, f, now_ms);
		}
	}
}

/* Who has nothing to wait for is active no more. Gives how long nobody has. */
static int64_t agent_settle(struct agent *agent, int64_t now_ms)
{
	int64_t next_ms = INT64_MAX;
	size_t kept = 0;
	for (size_t i = 0; i < agent->active_count; i++) {
		struct followed *f = agent->active[i];
		if (f->asks)
			f->due_ms = larger_of(larger_of(f->later_ms, agent->asks_again_ms),
					      agent->rest_ms ? agent->rest_until_ms : now_ms);
		f->active = f->wanted && f->due_ms != INT64_MAX;
		if (!f->active)
			continue;
		agent->active[kept++] = f;
		if (agent_may_read(agent) || f->asks)
			next_ms = smaller_of(next_ms, f->due_ms);
	}
	agent->active_count = kept;
	return next_ms;
}

/* While as many are open as may, the first ones that are at rest give theirs back, so that half of
 * them are free: if it was one, each log that waits would need a turn and a checkpoint of its own.
 */
static void agent_close_files(struct agent *agent)
{
	bool full = agent->site.open_count >= agent->options.open_max;
	for (size_t i = 0;
	     full && i < agent->count && agent->site.open_count > agent->options.open_max / 2;
	     i++) {
		struct followed *f = agent->list[i];
		if (!f->pending_count && !f->active && f->plan_count <= 1 &&
		    (f->state != FOLLOWED_READING || !followed_behind_bytes(f)))
			followed_rest(f);
	}
}

static int64_t agent_wait_ms(const struct agent *agent, int64_t next_ms, int64_t now_ms)
{
	next_ms = smaller_of(next_ms, agent->scan_ms);
	next_ms = smaller_of(next_ms, agent->directories_ms);
	if (agent->options.name.len && !delivery_rests(agent))
		next_ms = smaller_of(next_ms, agent->report_ms);
	if (agent->unsaved_bytes || agent->site.version != agent->site.saved_version)
		next_ms = smaller_of(next_ms, agent->checkpoint_ms);
	for (const struct agent_chunk *c = agent->pending; c; c = c->next)
		if (!c->delivered)
			next_ms = smaller_of(next_ms,
					     larger_of(c->f->later_ms,
						       agent->rest_ms ? agent->rest_until_ms : 0));
	return larger_of(0, next_ms - now_ms);
}

int64_t agent_turn(struct agent *agent)
{
	int64_t now_ms = agent_now_ms(agent);
	bool asks = false;
	agent_scan_directories(agent, now_ms);
	agent_scan(agent, now_ms);
	bool waits = agent_look(agent, now_ms, &asks);
	if (asks && !delivery_rests(agent))
		ask_collector(agent);
	agent_checkpoint_if_due(agent, waits);
	agent_fill(agent, now_ms);
	int64_t next_ms = agent_settle(agent, now_ms);
	if (!delivery_rests(agent) && delivery_post(agent))
		next_ms = now_ms;
	agent_checkpoint_if_due(agent, false);
	report_if_due(agent);
	agent_close_files(agent);
	return agent_wait_ms(agent, next_ms, agent_now_ms(agent));
}

void agent_put_progress(const struct agent *agent, struct buf *out)
{
	size_t count = agent->adaptors ? agent->adaptors->count : 0;
	struct agent_progress *list = mem_alloc_array(count, sizeof(*list));
	for (size_t i = 0; i < count; i++) {
		struct slice name = agent->adaptors->list[i].name;
		list[i] = (struct agent_progress){.name_hash = hash64(name.data, name.len, 0)};
	}
	for (size_t i = 0; i < agent->count; i++) {
		const struct followed *f = agent->list[i];
		if (!f->wanted || !f->begun || f->rule->own) /* that rule is of no adaptor */
			continue;
		const struct adaptor *of = CONTAINER_OF(f->rule, struct adaptor, rule);
		struct agent_progress *progress = &list[of - agent->adaptors->list];
		progress->offset += f->offset;
		progress->end += f->offset + followed_behind_bytes(f);
		progress->known = true;
	}
	buf_append(out, list, count * sizeof(*list));
	mem_free(list);
}

void agent_try_again(struct agent *agent)
{
	agent->collector = 0;
	agent->rest_ms = agent->rest_until_ms = 0;
}

int agent_save(struct agent *agent, struct errbuf *e)
{
	if (!agent->unsaved_bytes && agent->site.version == agent->site.saved_version)
		return 0;
	return checkpoint_save(agent, e);
}
