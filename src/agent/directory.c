/* Directories whose files are followed: every file that has the pattern, but for what rotation made
 * of another one, which belongs to that one. */
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "agent/agent_private.h"
#include "base/grow.h"

enum {
	DIRECTORY_DEPTH_MAX = 16,
	DIRECTORY_NAMES_MAX = 200000, /* in all directories of an adaptor */
	DIRECTORY_ARENA_MAX_BYTES = 64 << 20,
};

struct directory_walk {
	struct agent *agent;
	const struct adaptor *adaptor;
	struct arena arena;  /* of names */
	struct slice *names; /* of the directory being read */
	size_t count, capacity;
	size_t seen;
	bool unread; /* a directory cannot be read */
	unsigned depth_max;
	const struct agent_walked *walked; /* NULL: never before */
	const char *problem;
	int err;
};

/* A directory that is being walked, and the one it was found in. */
struct directory_place {
	const struct directory_place *above; /* NULL: the adaptor's own */
	unsigned depth;
	struct file_id id;
};

static void directory_see(void *owner, const char *name)
{
	struct directory_walk *walk = owner;
	struct slice kept = arena_copy(&walk->arena, slice_of(name));
	if (!kept.data || walk->seen++ == DIRECTORY_NAMES_MAX)
		walk->err = ERR_LIMIT;
	if (walk->err)
		return;
	GROW(walk->names, walk->capacity, walk->count + 1);
	walk->names[walk->count++] = kept;
}

static bool directory_has_pattern(const struct adaptor *adaptor, const char *path,
				  struct slice name)
{
	uint64_t work = 0;
	switch (adaptor->pattern) {
	case ADAPTOR_GLOB:
		return fnmatch(adaptor->glob, path, FNM_PATHNAME | FNM_PERIOD) == 0;
	case ADAPTOR_NAMES:
		return fnmatch(adaptor->glob, name.data, FNM_PERIOD) == 0;
	case ADAPTOR_REGEX:
		return regex_search(&adaptor->regex, slice_of(path + adaptor->path.len), &work);
	case ADAPTOR_NAME_REGEX:
		return regex_search(&adaptor->regex, name, &work);
	}
	return false;
}

static int directory_compare(const void *left, const void *right)
{
	return slice_compare(*(const struct slice *)left, *(const struct slice *)right);
}

static bool directory_has_name(const struct directory_walk *walk, size_t first, struct slice name)
{
	return bsearch(&name, walk->names + first, walk->count - first, sizeof(name),
		       directory_compare);
}

/* What rotation made of another one that is there, or that is followed. */
static bool directory_is_rotated(const struct directory_walk *walk, size_t first,
				 const char *directory, struct slice name)
{
	char path[PATH_MAX];
	struct slice bases[SIBLINGS_BASES_MAX];
	char room[SIBLINGS_BASES_MAX * (SIBLINGS_NAME_MAX_BYTES + 1)];
	size_t count = siblings_bases_of(name, bases, room);
	for (size_t i = 0; i < count; i++) {
		int len = snprintf(path, sizeof(path), "%s/%.*s", directory, (int)bases[i].len,
				   bases[i].data);
		if (directory_has_name(walk, first, bases[i]) ||
		    (len < (int)sizeof(path) &&
		     agent_find(walk->agent, walk->adaptor->datatype, slice_of(path))))
			return true;
	}
	return false;
}

/* Whether no file that rotation may have made of a log is followed as a log of its own. */
static bool directory_is_new(struct agent *agent, const struct followed *f)
{
	const struct agent_directory *found = agent_watch_directory(agent, f->directory);
	bool new = true;
	uint32_t number;
	for (size_t i = 0; i < found->count && i < AGENT_NAMES_IN_DIRECTORY_MAX; i++)
		new &= !siblings_is_rotated(f->base, found->list[i]->base, &number);
	return new;
}

static void directory_follow(struct directory_walk *walk, const char *path)
{
	struct agent *agent = walk->agent;
	const struct adaptor *adaptor = walk->adaptor;
	struct followed *f = agent_find(agent, adaptor->datatype, slice_of(path));
	if (!f) {
		walk->err = agent_add(agent, &adaptor->rule, adaptor->datatype, slice_of(path), &f);
		if (walk->err == ERR_INVALID)
			walk->err = 0; /* said in the log */
		if (f && walk->walked) {
			f->came_later = walk->walked->all;
			f->since_ns =
				directory_is_new(agent, f) ? walk->walked->since_ms * 1000000 : 0;
		}
	}
	if (!f)
		return;
	f->unwanted_ms = 0;
	if (!f->wanted) {
		f->rule = &adaptor->rule;
		f->wanted = true;
		agent_activate(agent, f, agent_now_ms(agent));
	}
}

/* A link to the directory that it lies in, or to one above that up to the adaptor's own, leads
 * nowhere new. */
static bool directory_is_above(const struct directory_place *place, const struct file_id *id)
{
	for (; place; place = place->above)
		if (file_id_equal(&place->id, id))
			return true;
	return false;
}

static void directory_walk(struct directory_walk *walk, const char *directory,
			   const struct directory_place *above)
{
	struct files *files = walk->agent->options.files;
	struct directory_place here = {.above = above, .depth = above ? above->depth + 1 : 0};
	char path[PATH_MAX];
	size_t first = walk->count;
	if (walk->err)
		return;
	struct agent_directory *known = agent_watch_directory(walk->agent, directory);
	struct file_look self = {.changed_ns = 0};
	int err = files->look_at(files, directory, &self);
	bool is_other = !err && self.type != FILE_DIRECTORY;
	here.id = self.id;
	if (!err && known->listed_by == walk->adaptor && known->listed_ns == self.changed_ns)
		return; /* no name has come or gone */
	bool only_files = !err && !followed_is_young(&walk->agent->site, self.changed_ns);
	err = files->list(files, directory, directory_see, walk);
	if (err && !above) {
		walk->problem = is_other ? "it is no directory" : err_text(err);
		log_rated(&walk->agent->troubles, agent_now_ms(walk->agent), LOG_WARN,
			  "adaptor %s: %s cannot be read: %s", walk->adaptor->name.data, directory,
			  walk->problem);
	}
	if (err) {
		walk->unread |= err != ERR_NOT_FOUND;
		walk->count = first;
		return;
	}
	if (walk->count > first)
		qsort(walk->names + first, walk->count - first, sizeof(*walk->names),
		      directory_compare);
	for (size_t i = first; i < walk->count && !walk->err; i++) {
		struct slice name = walk->names[i];
		struct file_look look;
		int len = snprintf(path, sizeof(path), "%s/%s", directory[1] ? directory : "",
				   name.data);
		if (len >= (int)sizeof(path))
			continue;
		err = files->look_at(files, path, &look);
		only_files = only_files && !err && look.type != FILE_DIRECTORY;
		if (err)
			continue;
		if (look.type == FILE_DIRECTORY && here.depth < walk->depth_max &&
		    !directory_is_above(&here, &look.id)) {
			directory_walk(walk, path, &here);
		} else if (look.type == FILE_REGULAR && content_packing_of(name) == CONTENT_PLAIN &&
			   directory_has_pattern(walk->adaptor, path, name) &&
			   !directory_is_rotated(walk, first, directory, name)) {
			directory_follow(walk, path);
		}
	}
	walk->count = first;
	known->listed_by = only_files && !walk->err ? walk->adaptor : NULL;
	known->listed_ns = self.changed_ns;
}

/* A glob of the whole path goes as deep as it has slashes. */
static unsigned directory_depth(const struct adaptor *adaptor)
{
	unsigned depth = 0;
	if (adaptor->pattern != ADAPTOR_GLOB)
		return DIRECTORY_DEPTH_MAX;
	for (const char *c = adaptor->glob + adaptor->path.len + 1; *c; c++)
		depth += *c == '/';
	return depth;
}

bool directory_wants(struct agent *agent, struct followed *f)
{
	for (size_t i = 0; i < agent->adaptors->count; i++) {
		const struct adaptor *adaptor = &agent->adaptors->list[i];
		if (adaptor->kind != ADAPTOR_DIRECTORY ||
		    !slice_equal(adaptor->datatype, f->names.datatype) ||
		    !slice_starts_with(f->names.name, adaptor->path) ||
		    f->path[adaptor->path.len] != '/' ||
		    !directory_has_pattern(adaptor, f->path, f->base))
			continue;
		f->rule = &adaptor->rule;
		f->wanted = true;
		agent_activate(agent, f, agent_now_ms(agent));
		return true;
	}
	return false;
}

struct hash128 directory_hash(const struct adaptor *adaptor)
{
	struct hash128 hash = hash128(adaptor->datatype.data, adaptor->datatype.len, 0);
	hash = hash128(adaptor->path.data, adaptor->path.len, hash.low ^ hash.high);
	return hash128(adaptor->glob, strlen(adaptor->glob),
		       hash.low ^ hash.high ^ (uint64_t)adaptor->pattern);
}

const struct agent_walked *directory_walked(const struct agent *agent,
					    const struct adaptor *adaptor)
{
	const struct agent_walked *walked =
		adaptor->kind == ADAPTOR_DIRECTORY
			? hash_table_find(&agent->walked, directory_hash(adaptor))
			: NULL;
	return walked && walked->since_ms ? walked : NULL;
}

const char *directory_problem(const struct agent *agent, const struct adaptor *adaptor)
{
	const struct agent_walked *walked =
		hash_table_find(&agent->walked, directory_hash(adaptor));
	return walked ? walked->problem : NULL;
}

/* The checkpoint says so, too, and what was there and is not begun yet. */
static void directory_note(const struct directory_walk *walk, int64_t begun_ms)
{
	struct agent *agent = walk->agent;
	bool added;
	struct agent_walked *walked = hash_table_add(&agent->walked, directory_hash(walk->adaptor),
						     sizeof(*walked), &added);
	walked->problem = walk->problem;
	if (walk->err)
		return;
	agent->site.version += !walked->since_ms || (!walk->unread && !walked->all);
	walked->since_ms = walked->since_ms ? walked->since_ms : begun_ms;
	walked->all |= !walk->unread;
}

void directory_scan(struct agent *agent)
{
	for (size_t i = 0; i < agent->directory_count; i++)
		agent->directories[i]->seen = false;
	for (size_t i = 0; agent->adaptors && i < agent->adaptors->count; i++) {
		struct directory_walk walk = {.agent = agent, .adaptor = &agent->adaptors->list[i]};
		if (walk.adaptor->kind != ADAPTOR_DIRECTORY)
			continue;
		walk.depth_max = directory_depth(walk.adaptor);
		walk.walked = directory_walked(agent, walk.adaptor);
		int64_t begun_ms = clock_wall_ms(agent->options.clock);
		arena_init(&walk.arena, DIRECTORY_ARENA_MAX_BYTES);
		directory_walk(&walk, walk.adaptor->path.data, NULL);
		if (walk.err) {
			walk.problem = "there are too many files in it; some are not followed";
			log_rated(&agent->troubles, agent_now_ms(agent), LOG_WARN,
				  "adaptor %s: %s: %s", walk.adaptor->name.data,
				  walk.adaptor->path.data, walk.problem);
		}
		directory_note(&walk, begun_ms);
		mem_free(walk.names);
		arena_release(&walk.arena);
	}
}
