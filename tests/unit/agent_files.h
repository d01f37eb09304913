/* Simulated files for the agent: a few directories in memory, with inodes that are used again,
 * links that may be open while they have no name, and writers that go on between any two looks at
 * them.
 *
 * What the bytes of a log are is a matter of the test: files_append() and the others here are its
 * writers, programs that rotate, and the machine. */
#ifndef TESTS_UNIT_AGENT_FILES_H
#define TESTS_UNIT_AGENT_FILES_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/mem.h"

enum { SIM_FILES_MAX = 800, SIM_FILE_MAX_BYTES = 64 << 20 };

struct sim_file {
	char *name; /* with its directory; NULL: it has none any more */
	uint64_t name_hash;
	struct buf bytes;
	struct file_id id;
	int64_t changed_ns;
	unsigned handles;
	bool used, unreadable;
	/* A power cut leaves so many bytes; the next sync writes those from dirty_from to dirty_to.
	 */
	size_t durable, dirty_from, dirty_to;
};

struct sim_files {
	struct files files;
	struct clock *clock;
	struct sim_file list[SIM_FILES_MAX];
	size_t list_end;                /* no file was ever behind it */
	uint64_t inodes[SIM_FILES_MAX]; /* that are free */
	size_t inode_count;
	uint64_t next_inode;
	bool has_births; /* the file system says when a file was made */
	int64_t names_changed_ns;
	int64_t tick_ns;     /* times of files are multiples of this */
	bool full, down;     /* nothing can be replaced; the process is dead, and nothing works */
	uint64_t room_bytes; /* what can be appended before the disk is full */
	uint64_t free_bytes; /* what the disk says of that */
	unsigned sync_count;
	bool sync_fails;
	size_t open_count;
	/* Between any two operations. */
	void (*meanwhile)(void *owner);
	void *owner;
};

static inline int64_t sim_now_ns(const struct sim_files *sim)
{
	return floor_to(sim->clock->wall_us(sim->clock) * 1000, sim->tick_ns);
}

static inline struct sim_file *sim_find(struct sim_files *sim, const char *name)
{
	uint64_t hash = hash64(name, strlen(name), 0);
	for (size_t i = 0; i < sim->list_end; i++)
		if (sim->list[i].name_hash == hash && sim->list[i].name)
			return &sim->list[i];
	return NULL;
}

static inline void sim_set_name(struct sim_file *file, const char *name)
{
	file->name = mem_copy_text(slice_of(name));
	file->name_hash = hash64(name, strlen(name), 0);
}

static inline void sim_release(struct sim_files *sim, struct sim_file *file)
{
	if (file->name || file->handles)
		return;
	sim->inodes[sim->inode_count++] = file->id.inode;
	buf_release(&file->bytes);
	*file = (struct sim_file){.used = false};
}

static inline void sim_unlink(struct sim_files *sim, const char *name)
{
	struct sim_file *file = sim_find(sim, name);
	if (!file)
		return;
	sim->names_changed_ns = sim_now_ns(sim);
	mem_free(file->name);
	file->name = NULL;
	sim_release(sim, file);
}

static inline struct sim_file *sim_make(struct sim_files *sim, const char *name)
{
	struct sim_file *file = sim->list;
	sim_unlink(sim, name);
	while (file->used)
		file++;
	ASSERT(file < sim->list + SIM_FILES_MAX);
	if (file == sim->list + sim->list_end)
		sim->list_end++;
	*file = (struct sim_file){.used = true};
	sim_set_name(file, name);
	buf_init(&file->bytes, SIM_FILE_MAX_BYTES);
	file->id.device = 1;
	file->id.inode = sim->inode_count ? sim->inodes[--sim->inode_count] : ++sim->next_inode;
	file->changed_ns = sim->names_changed_ns = sim_now_ns(sim);
	/* Two births in a tick differ all the same: file systems take a finer clock for them. */
	if (sim->has_births)
		file->id.born_ns = sim->clock->wall_us(sim->clock) * 1000 +
				   (int64_t)(++sim->next_inode % 1000);
	return file;
}

static inline void sim_rename(struct sim_files *sim, const char *from, const char *to)
{
	struct sim_file *file = sim_find(sim, from);
	if (!file)
		return;
	sim_unlink(sim, to);
	sim->names_changed_ns = sim_now_ns(sim);
	mem_free(file->name);
	sim_set_name(file, to);
}

static inline void sim_append(struct sim_files *sim, struct sim_file *file, const void *bytes,
			      size_t len)
{
	if (file->dirty_from == file->dirty_to)
		file->dirty_from = file->bytes.len;
	buf_append(&file->bytes, bytes, len);
	ASSERT(!file->bytes.failed);
	file->dirty_to = file->bytes.len;
	file->changed_ns = sim_now_ns(sim);
}

static inline void sim_truncate(struct sim_files *sim, struct sim_file *file)
{
	buf_clear(&file->bytes);
	file->durable = file->dirty_from = file->dirty_to = 0;
	file->changed_ns = sim_now_ns(sim);
}

/* Names survive. */
static inline void sim_power_cut(struct sim_files *sim)
{
	for (struct sim_file *file = sim->list; file < sim->list + sim->list_end; file++) {
		if (file->bytes.len > file->durable)
			file->bytes.len = file->durable;
		file->dirty_from = file->dirty_to = file->bytes.len;
	}
}

/* ---- As the agent sees them ------------------------------------------------------------------ */

static inline struct sim_files *sim_of(struct files *files)
{
	struct sim_files *sim = CONTAINER_OF(files, struct sim_files, files);
	if (sim->meanwhile && !sim->down)
		sim->meanwhile(sim->owner);
	return sim;
}

static inline int sim_read(struct files *files, const char *path, size_t max_bytes, struct buf *out)
{
	struct sim_file *file = sim_find(sim_of(files), path);
	if (!file)
		return ERR_NOT_FOUND;
	return file->bytes.len > max_bytes ? ERR_LIMIT
					   : buf_append(out, file->bytes.data, file->bytes.len);
}

static inline int sim_replace(struct files *files, const char *path, struct slice content,
			      UNUSED unsigned mode)
{
	struct sim_files *sim = sim_of(files);
	if (sim->down || sim->full)
		return -ENOSPC;
	struct sim_file *file = sim_find(sim, path);
	file = file ? file : sim_make(sim, path);
	sim_truncate(sim, file);
	sim_append(sim, file, content.data, content.len);
	file->durable = file->dirty_from = file->dirty_to;
	return 0;
}

static inline int sim_open(struct files *files, const char *path, int *handle)
{
	struct sim_files *sim = sim_of(files);
	struct sim_file *file = sim_find(sim, path);
	if (!file)
		return ERR_NOT_FOUND;
	if (file->unreadable)
		return -EACCES;
	file->handles++;
	sim->open_count++;
	*handle = (int)(file - sim->list);
	return 0;
}

static inline void sim_look_of(const struct sim_file *file, struct file_look *look)
{
	*look = (struct file_look){.id = file->id,
				   .bytes = file->bytes.len,
				   .changed_ns = file->changed_ns,
				   .type = FILE_REGULAR};
}

static inline int sim_read_at(struct files *files, int handle, uint64_t offset, void *to,
			      size_t max_bytes, size_t *bytes)
{
	const struct sim_file *file = &sim_of(files)->list[handle];
	size_t left = offset < file->bytes.len ? file->bytes.len - (size_t)offset : 0;
	ASSERT(file->handles);
	*bytes = left < max_bytes ? left : max_bytes;
	if (*bytes)
		memcpy(to, file->bytes.data + offset, *bytes);
	return 0;
}

static inline int sim_look(struct files *files, int handle, struct file_look *look)
{
	const struct sim_file *file = &sim_of(files)->list[handle];
	ASSERT(file->handles);
	sim_look_of(file, look);
	return 0;
}

static inline void sim_close(struct files *files, int handle)
{
	struct sim_files *sim = CONTAINER_OF(files, struct sim_files, files);
	struct sim_file *file = &sim->list[handle];
	ASSERT(file->handles);
	file->handles--;
	sim->open_count--;
	sim_release(sim, file);
}

/* All directories are one. */
static inline int sim_look_at(struct files *files, const char *path, struct file_look *look)
{
	struct sim_files *sim = sim_of(files);
	const struct sim_file *file = sim_find(sim, path);
	*look = (struct file_look){.type = FILE_DIRECTORY, .changed_ns = sim->names_changed_ns};
	if (!strchr(path + 1, '/'))
		return 0;
	if (!file)
		return ERR_NOT_FOUND;
	sim_look_of(file, look);
	return 0;
}

/* The files change while their names are read. */
static inline int sim_list(struct files *files, const char *path, file_name_fn *each, void *owner)
{
	struct sim_files *sim = sim_of(files);
	size_t len = strlen(path);
	for (size_t i = 0; i < sim->list_end; i++) {
		const struct sim_file *file = &sim->list[i];
		if (i % 16 == 0)
			sim_of(files);
		if (file->used && file->name && strncmp(file->name, path, len) == 0 &&
		    file->name[len] == '/' && !strchr(file->name + len + 1, '/'))
			each(owner, file->name + len + 1);
	}
	return 0;
}

/* ---- What only those use that write ---------------------------------------------------------- */

static inline int sim_open_end(struct files *files, const char *path, UNUSED unsigned mode,
			       int *handle)
{
	struct sim_files *sim = sim_of(files);
	if (!sim_find(sim, path))
		sim_make(sim, path);
	return sim_open(files, path, handle);
}

static inline int sim_append_at_end(struct files *files, int handle, struct slice data,
				    size_t *bytes)
{
	struct sim_files *sim = sim_of(files);
	*bytes = data.len < sim->room_bytes ? data.len : (size_t)sim->room_bytes;
	sim->room_bytes -= *bytes;
	if (*bytes)
		sim_append(sim, &sim->list[handle], data.data, *bytes);
	return *bytes < data.len ? -ENOSPC : 0;
}

static inline int sim_write_over(struct files *files, int handle, uint64_t offset,
				 struct slice data)
{
	struct sim_file *file = &sim_of(files)->list[handle];
	ASSERT(file->handles && offset + data.len <= file->bytes.len);
	memcpy(file->bytes.data + offset, data.data, data.len);
	if (file->dirty_from == file->dirty_to || offset < file->dirty_from)
		file->dirty_from = (size_t)offset;
	if (offset + data.len > file->dirty_to)
		file->dirty_to = (size_t)offset + data.len;
	return 0;
}

/* As Linux does: what could not be written is not tried again by the next sync. */
static inline int sim_sync(struct files *files, int handle)
{
	struct sim_files *sim = sim_of(files);
	struct sim_file *file = &sim->list[handle];
	sim->sync_count++;
	if (!sim->sync_fails && file->dirty_from <= file->durable && file->dirty_to > file->durable)
		file->durable = file->dirty_to;
	file->dirty_from = file->dirty_to;
	return sim->sync_fails ? -EIO : 0;
}

static inline int sim_sync_dir(UNUSED struct files *files, UNUSED const char *path)
{
	return 0;
}

static inline int sim_free_bytes(struct files *files, UNUSED const char *path, uint64_t *bytes)
{
	*bytes = sim_of(files)->free_bytes;
	return 0;
}

static inline int sim_make_dir(UNUSED struct files *files, UNUSED const char *path,
			       UNUSED unsigned mode)
{
	return 0;
}

static inline int sim_remove(struct files *files, const char *path)
{
	struct sim_files *sim = sim_of(files);
	if (!sim_find(sim, path))
		return ERR_NOT_FOUND;
	sim_unlink(sim, path);
	return 0;
}

static inline int sim_rename_over(struct files *files, const char *from, const char *to)
{
	sim_rename(sim_of(files), from, to);
	return 0;
}

static inline void sim_files_init(struct sim_files *sim, struct clock *clock)
{
	*sim = (struct sim_files){
		.files = {.read = sim_read,
			  .replace = sim_replace,
			  .open = sim_open,
			  .read_at = sim_read_at,
			  .look = sim_look,
			  .close = sim_close,
			  .look_at = sim_look_at,
			  .list = sim_list,
			  .open_end = sim_open_end,
			  .append = sim_append_at_end,
			  .write_over = sim_write_over,
			  .sync = sim_sync,
			  .sync_dir = sim_sync_dir,
			  .free_bytes = sim_free_bytes,
			  .make_dir = sim_make_dir,
			  .remove = sim_remove,
			  .rename = sim_rename_over},
		.room_bytes = UINT64_MAX,
		.free_bytes = UINT64_MAX,
		.clock = clock,
		.tick_ns = 1,
	};
}

static inline void sim_files_release(struct sim_files *sim)
{
	for (size_t i = 0; i < SIM_FILES_MAX; i++) {
		if (sim->list[i].used) {
			mem_free(sim->list[i].name);
			buf_release(&sim->list[i].bytes);
		}
	}
}

#endif
