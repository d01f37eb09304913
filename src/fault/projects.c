#include "fault/projects_private.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/grow.h"
#include "base/log.h"
#include "base/random.h"
#include "base/put.h"
#include "fault/tables.h"
#include "store/wait.h"

enum {
	PROJECT_VERSION = 1,
	PROJECT_MEMORY_BYTES = 1 << 20,
	PROJECT_VALUE_MAX_BYTES = 4 << 10,
	PROJECT_TRIES = 20,
};

struct fault_projects *fault_projects_new(struct store *store, struct clock *clock,
					  const struct fault_quota_limits *limits)
{
	struct fault_projects *projects = mem_zalloc(sizeof(*projects));
	projects->store = store;
	projects->clock = clock;
	projects->limits = *limits;
	snprintf(projects->quota_column, sizeof(projects->quota_column), "%016" PRIx64,
		 random_system_seed());
	pthread_mutex_init(&projects->lock, NULL);
	return projects;
}

void fault_projects_free(struct fault_projects *projects)
{
	if (!projects)
		return;
	pthread_mutex_destroy(&projects->lock);
	mem_free(projects->list);
	mem_free(projects);
}

/* ---- Cells ----------------------------------------------------------------------------------- */

void fault_project_encode(const struct fault_project *project, struct buf *out)
{
	buf_append_char(out, PROJECT_VERSION);
	buf_put_text(out, slice_of(project->tenant));
	buf_put_varint(out, project->key_count);
	for (size_t i = 0; i < project->key_count; i++)
		buf_put_text(out, slice_of(project->keys[i]));
}

/* An ended copy. */
static void projects_take_text(struct cursor *c, char *to, size_t max_bytes)
{
	struct slice text = cursor_text(c, max_bytes);
	c->bad |= text.len && memchr(text.data, 0, text.len);
	if (!c->bad && text.len)
		memcpy(to, text.data, text.len);
	to[c->bad ? 0 : text.len] = 0;
}

int fault_project_decode(struct slice bytes, struct fault_project *project)
{
	struct cursor c = cursor_of(bytes.data, bytes.len);
	uint8_t version = cursor_u8(&c);
	if (!c.bad && version != PROJECT_VERSION)
		return ERR_VERSION;
	projects_take_text(&c, project->tenant, TENANT_MAX_BYTES);
	uint64_t count = cursor_varint(&c);
	c.bad |= count > FAULT_PROJECT_KEYS_MAX || !tenant_valid(slice_of(project->tenant));
	project->key_count = c.bad ? 0 : (size_t)count;
	for (size_t i = 0; i < project->key_count; i++) {
		projects_take_text(&c, project->keys[i], FAULT_PROJECT_KEY_BYTES);
		c.bad |= strlen(project->keys[i]) != FAULT_PROJECT_KEY_BYTES;
	}
	return c.bad || cursor_left(&c) ? ERR_DAMAGED : 0;
}

static const struct store_parts projects_row = {{SLICE("project")}};

static struct store_parts projects_column(uint64_t number, uint8_t bytes[8])
{
	be64_put(bytes, number);
	return (struct store_parts){{{(const char *)bytes, 8}}};
}

/* ---- In memory ------------------------------------------------------------------------------- */

size_t projects_place(const struct fault_projects *projects, uint64_t number)
{
	size_t low = 0, high = projects->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (projects->list[middle].project.number < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

struct projects_slot *projects_slot_of(const struct fault_projects *projects, uint64_t number)
{
	size_t at = projects_place(projects, number);
	return at < projects->count && projects->list[at].project.number == number
		       ? &projects->list[at]
		       : NULL;
}

/* With the lock. */
static void projects_take_number(struct fault_projects *projects, uint64_t number)
{
	if (number > projects->largest && number < UINT64_MAX)
		projects->largest = number;
}

/* With the lock. False: there are too many. */
static bool projects_keep(struct fault_projects *projects, const struct fault_project *project)
{
	struct projects_slot *slot = projects_slot_of(projects, project->number);
	projects_take_number(projects, project->number);
	if (slot) {
		slot->project = *project;
		return true;
	}
	if (projects->count >= FAULT_PROJECTS_MAX)
		return false;
	size_t at = projects_place(projects, project->number);
	GROW(projects->list, projects->room, projects->count + 1);
	memmove(projects->list + at + 1, projects->list + at,
		(projects->count - at) * sizeof(*projects->list));
	projects->list[at] = (struct projects_slot){.project = *project, .quota = {.asked = true}};
	projects->count++;
	return true;
}

bool fault_projects_find(struct fault_projects *projects, uint64_t number,
			 struct fault_project *found)
{
	pthread_mutex_lock(&projects->lock);
	const struct projects_slot *slot = projects_slot_of(projects, number);
	if (slot)
		*found = slot->project;
	pthread_mutex_unlock(&projects->lock);
	return slot;
}

struct fault_project *fault_projects_copy(struct fault_projects *projects, size_t *count)
{
	pthread_mutex_lock(&projects->lock);
	struct fault_project *copy = mem_alloc_array(projects->count + 1, sizeof(*copy));
	*count = projects->count;
	for (size_t i = 0; i < projects->count; i++)
		copy[i] = projects->list[i].project;
	pthread_mutex_unlock(&projects->lock);
	return copy;
}

bool fault_project_has_key(const struct fault_project *project, struct slice key)
{
	bool has = false;
	if (key.len != FAULT_PROJECT_KEY_BYTES)
		return false;
	for (size_t i = 0; i < project->key_count; i++) {
		unsigned differs = 0;
		for (size_t at = 0; at < FAULT_PROJECT_KEY_BYTES; at++)
			differs |= (unsigned char)(project->keys[i][at] ^ key.data[at]);
		has |= !differs;
	}
	return has;
}

/* ---- Reading --------------------------------------------------------------------------------- */

static int projects_see_cell(const struct store_cell *cell, void *owner)
{
	struct fault_projects *projects = owner;
	struct fault_project project = {.number = fault_part_number(cell->column.part[0])};
	int err = fault_project_decode(cell->value, &project);
	if (err || !project.number) {
		pthread_mutex_lock(&projects->lock);
		projects_take_number(projects, project.number);
		pthread_mutex_unlock(&projects->lock);
		log_warn("faults: project %" PRIu64
			 " (table fault_projects) cannot be read: %s; reports that are sent to "
			 "it are refused",
			 project.number, err_text(err ? err : ERR_DAMAGED));
		return 0;
	}
	pthread_mutex_lock(&projects->lock);
	bool kept = projects_keep(projects, &project);
	pthread_mutex_unlock(&projects->lock);
	if (!kept)
		log_warn("faults: there are more than %d projects; reports that are sent to "
			 "project %" PRIu64 " are refused",
			 FAULT_PROJECTS_MAX, project.number);
	return 0;
}

int fault_projects_load(struct fault_projects *projects, struct task_queue *queue, struct errbuf *e)
{
	return store_row_wait(projects->store, queue, clock_wall_ms(projects->clock),
			      TABLE_FAULT_PROJECTS, &projects_row, projects_see_cell, projects, e);
}

/* What is stored now; version 0: nothing. */
static int projects_read(struct fault_projects *projects, struct task_queue *queue,
			 struct fault_project *project, uint64_t *version)
{
	uint8_t bytes[8];
	struct store_read *read = store_read_new(projects->store, PROJECT_MEMORY_BYTES);
	struct store_request *request = store_read_add(read, STORE_CELL_GET);
	ASSERT(request); /* the first of an empty arena */
	request->cell_get =
		(struct store_cell_get){.table = TABLE_FAULT_PROJECTS,
					.key = projects_row,
					.column = projects_column(project->number, bytes)};
	read->now_ms = clock_wall_ms(projects->clock);
	int err = store_read_wait(read, queue);
	const struct store_cell_get *got = &request->cell_get;
	*version = !err && got->found ? got->cell.version : 0;
	if (!err && got->found)
		err = fault_project_decode(got->cell.value, project);
	store_read_free(read);
	return err;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Writes a project, as store_put_if_wait does, and then keeps it in memory. */
static int projects_write(struct fault_projects *projects, struct task_queue *queue,
			  const struct fault_project *project, uint64_t version)
{
	uint8_t bytes[8];
	struct buf value;
	const struct store_parts column = projects_column(project->number, bytes);
	buf_init(&value, PROJECT_VALUE_MAX_BYTES);
	fault_project_encode(project, &value);
	ASSERT(!value.failed);
	int err = store_put_if_wait(projects->store, queue, TABLE_FAULT_PROJECTS, &projects_row,
				    &column, version, buf_slice(&value));
	buf_release(&value);
	if (err)
		return err;
	pthread_mutex_lock(&projects->lock);
	bool kept = projects_keep(projects, project);
	pthread_mutex_unlock(&projects->lock);
	return kept ? 0 : ERR_LIMIT;
}

static void projects_make_key(struct fault_project *project)
{
	ASSERT(project->key_count < FAULT_PROJECT_KEYS_MAX);
	snprintf(project->keys[project->key_count++], FAULT_PROJECT_KEY_BYTES + 1,
		 "%016" PRIx64 "%016" PRIx64, random_system_seed(), random_system_seed());
}

static bool projects_find_tenant(struct fault_projects *projects, struct slice tenant,
				 struct fault_project *found, uint64_t *next)
{
	bool has = false;
	pthread_mutex_lock(&projects->lock);
	for (size_t i = 0; i < projects->count && !has; i++) {
		has = slice_equal(slice_of(projects->list[i].project.tenant), tenant);
		if (has)
			*found = projects->list[i].project;
	}
	*next = projects->largest + 1;
	pthread_mutex_unlock(&projects->lock);
	return has;
}

static int projects_add_once(struct fault_projects *projects, struct task_queue *queue,
			     struct slice tenant, struct fault_project *project, struct errbuf *e)
{
	uint64_t next;
	int err = fault_projects_load(projects, queue, e);
	if (err)
		return err;
	if (projects_find_tenant(projects, tenant, project, &next))
		return errbuf_set(e, ERR_EXISTS, "the tenant " SHOWN " has project %" PRIu64,
				  SHOWN_OF(tenant), project->number);
	if (next > FAULT_PROJECTS_MAX)
		return errbuf_set(e, ERR_LIMIT, "there are %d projects already",
				  FAULT_PROJECTS_MAX);
	*project = (struct fault_project){.number = next};
	memcpy(project->tenant, tenant.data, tenant.len);
	projects_make_key(project);
	err = projects_write(projects, queue, project, 0);
	return err == ERR_EXISTS || err == ERR_UNKNOWN ? ERR_RETRY : err;
}

int fault_projects_add(struct fault_projects *projects, struct task_queue *queue,
		       struct slice tenant, struct fault_project *project, struct errbuf *e)
{
	int err = ERR_RETRY;
	if (!tenant_valid(tenant))
		return errbuf_set(e, ERR_INVALID,
				  "name \"" SHOWN "\" is not 1 to %d of A-Za-z0-9_.-",
				  SHOWN_OF(tenant), TENANT_MAX_BYTES);
	for (int i = 0; i < PROJECT_TRIES && err == ERR_RETRY; i++)
		err = projects_add_once(projects, queue, tenant, project, e);
	if (err && e && !e->text[0])
		errbuf_set(e, err, "the project is not stored: %s", err_text(err));
	return err;
}

/* What is to be done to a project. An error has its sentence. */
typedef int projects_change(struct fault_project *project, struct slice key, struct errbuf *e);

static int projects_change_add(struct fault_project *project, UNUSED struct slice key,
			       struct errbuf *e)
{
	if (project->key_count == FAULT_PROJECT_KEYS_MAX)
		return errbuf_set(e, ERR_LIMIT, "project %" PRIu64 " has %d keys already",
				  project->number, FAULT_PROJECT_KEYS_MAX);
	projects_make_key(project);
	return 0;
}

static int projects_change_remove(struct fault_project *project, struct slice key, struct errbuf *e)
{
	size_t at = 0;
	while (at < project->key_count && !slice_equal(slice_of(project->keys[at]), key))
		at++;
	if (at == project->key_count)
		return errbuf_set(e, ERR_NOT_FOUND, "project %" PRIu64 " has no key " SHOWN,
				  project->number, SHOWN_OF(key));
	memmove(project->keys[at], project->keys[at + 1],
		(--project->key_count - at) * sizeof(project->keys[0]));
	return 0;
}

static int projects_change_once(struct fault_projects *projects, struct task_queue *queue,
				uint64_t number, projects_change *change, struct slice key,
				struct fault_project *project, struct errbuf *e)
{
	uint64_t version;
	*project = (struct fault_project){.number = number};
	int err = projects_read(projects, queue, project, &version);
	if (err)
		return err;
	if (!version)
		return errbuf_set(e, ERR_NOT_FOUND, "there is no project %" PRIu64, number);
	err = change(project, key, e);
	err = err ? err : projects_write(projects, queue, project, version);
	return err == ERR_EXISTS || err == ERR_UNKNOWN ? ERR_RETRY : err;
}

static int projects_change_of(struct fault_projects *projects, struct task_queue *queue,
			      uint64_t number, projects_change *change, struct slice key,
			      struct fault_project *project, struct errbuf *e)
{
	int err = ERR_RETRY;
	for (int i = 0; i < PROJECT_TRIES && err == ERR_RETRY; i++)
		err = projects_change_once(projects, queue, number, change, key, project, e);
	if (err && e && !e->text[0])
		errbuf_set(e, err, "project %" PRIu64 " is not changed: %s", number, err_text(err));
	return err;
}

int fault_projects_add_key(struct fault_projects *projects, struct task_queue *queue,
			   uint64_t number, struct fault_project *project, struct errbuf *e)
{
	return projects_change_of(projects, queue, number, projects_change_add,
				  (struct slice){NULL, 0}, project, e);
}

int fault_projects_remove_key(struct fault_projects *projects, struct task_queue *queue,
			      uint64_t number, struct slice key, struct fault_project *project,
			      struct errbuf *e)
{
	return projects_change_of(projects, queue, number, projects_change_remove, key, project, e);
}

int fault_projects_open(struct fault_projects *projects, struct task_queue *queue, struct errbuf *e)
{
	struct fault_project first = {.number = 1};
	int err = fault_projects_load(projects, queue, e);
	if (err || projects->count)
		return err;
	memcpy(first.tenant, "default", sizeof("default"));
	projects_make_key(&first);
	err = projects_write(projects, queue, &first, 0);
	if (err == ERR_EXISTS || err == ERR_UNKNOWN) /* another process made it, or this one did */
		return fault_projects_load(projects, queue, e);
	if (err)
		log_warn("faults: project 1 cannot be written: %s; until the next start reports of "
			 "Sentry's clients are refused",
			 err_text(err));
	return 0;
}
