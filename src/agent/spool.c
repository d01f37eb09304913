#include "agent/spool_noted.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>

#include "base/grow.h"
#include "base/hash_table.h"
#include "base/log.h"
#include "base/stats.h"
#include "model/stream.h"
#include "wire/number.h"
#include "wire/percent.h"

#define SPOOL_NOTE_ENDING ".note"

enum {
	SPOOL_ESCAPE = 4, /* Ctrl-D: the record goes on behind the newline that follows */
	SPOOL_PARTS = 16, /* a file is long when it has such a part of all the room, */
	SPOOL_FILE_MAX_BYTES = 64 << 20, /* or so many bytes */
	SPOOL_OPEN_MAX = 128,
	SPOOL_MODE = 0600,
	SPOOL_DIRECTORY_MODE = 0700,
	SPOOL_ROTATED_DIGITS = 10, /* more than a number has that counts backwards (siblings.c) */
	SPOOL_LINES_A_MINUTE = 6,
	SPOOL_IDLE_MS = 60000,          /* a file to which nothing came for so long need not stay */
	SPOOL_KEPT_MAX_BYTES = 8 << 20, /* written and not synced: more is synced at once */
	/* The disk keeps such a part of all the room free, at most so many bytes. */
	SPOOL_FREE_PARTS = 8,
	SPOOL_FREE_MAX_BYTES = 64 << 20,
};

struct spool_stream {
	struct spool *spool;
	struct slice datatype, name;
	char *path;
	int handle;      /* -1: the file is not open */
	uint64_t bytes;  /* of the file at the path, with what is in `rest` */
	struct buf rest; /* of records of which a part could be written */
	/* What was written since the file was last synced. It may be lost when syncing fails, also
	 * if a second attempt says that all is well: so it is written again before. */
	struct buf kept;
	bool again; /* `kept` is to be written again */
	bool syncing;
	int64_t used_ms; /* when it had its last record */
	struct buf note;
	bool noted;
	uint32_t *rotated; /* their numbers, the oldest first */
	size_t rotated_count, rotated_capacity;
};

struct spool_slot {
	struct hash128 hash;
	struct spool_stream *stream;
};

struct spool {
	struct spool_options options;
	char *directory;
	uint64_t file_bytes; /* a file that has so many is renamed */
	uint64_t free_bytes; /* so many stay free on the disk */

	pthread_mutex_t lock; /* guards all that follows */
	pthread_cond_t synced;
	struct spool_stream **list;
	size_t count, capacity;
	struct hash_table by_names; /* struct spool_slot */
	uint64_t bytes;             /* of all files */
	uint32_t number;            /* the greatest that a renamed file has got */
	size_t open_count, evict_at;
	uint64_t kept_bytes; /* of all streams */
	bool names_unsynced, names_syncing;
	struct buf out;
	struct log_rate troubles;
};

static void spool_count(struct spool *spool, int64_t bytes)
{
	spool->bytes += (uint64_t)bytes;
	stat_set(STAT_agent_spool_bytes, (int64_t)spool->bytes);
}

static int spool_trouble(struct spool *spool, const char *path, const char *what, int err)
{
	log_rated(&spool->troubles, clock_mono_ms(spool->options.clock), LOG_ERROR, "%s %s: %s",
		  path, what, err_text(err));
	return err;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* Nothing that rotation puts in front of a number is left as it is. */
static void spool_put_name(struct slice name, struct buf *out)
{
	for (size_t i = 0; i < name.len; i++) {
		const char c = name.data[i];
		if (isalnum((unsigned char)c) && (unsigned char)c < 0x80)
			buf_append_char(out, c);
		else
			buf_printf(out, "%%%02X", (unsigned)(unsigned char)c);
	}
}

static void spool_put_file(struct slice datatype, struct slice name, struct buf *out)
{
	spool_put_name(datatype, out);
	buf_append_char(out, ':');
	spool_put_name(name, out);
}

void spool_path(const char *directory, struct slice datatype, struct slice name, struct buf *path)
{
	buf_printf(path, "%s/", directory);
	spool_put_file(datatype, name, path);
}

int spool_check_names(struct slice datatype, struct slice name, struct errbuf *e)
{
	/* Source and cluster are options of their own. */
	const struct stream_names names = {SLICE("source"), SLICE("cluster"), datatype, name};
	struct buf file;
	int err = stream_names_check(&names, e);
	if (err)
		return err;
	if (!name.len || name.data[0] == '/')
		return errbuf_set(e, ERR_INVALID,
				  "'" SHOWN "' is no name of a stream that is no file",
				  SHOWN_OF(name));
	buf_init(&file, PATH_MAX);
	spool_put_file(datatype, name, &file);
	if (file.failed || file.len > SPOOL_NAME_MAX_BYTES)
		err = errbuf_set(e, ERR_INVALID,
				 "the datatype '" SHOWN "' and the name '" SHOWN
				 "' have together more than %d bytes, each that is no letter or "
				 "digit counted three times",
				 SHOWN_OF(datatype), SHOWN_OF(name), SPOOL_NAME_MAX_BYTES);
	buf_release(&file);
	return err;
}

/* Where a renamed file is. */
static void spool_rotated_path(const struct spool_stream *s, uint32_t number, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s.%0*u", s->path, SPOOL_ROTATED_DIGITS, (unsigned)number);
}

/* Whether a file would get this name, without its number, if it were of the stream. */
static bool spool_is_name(struct slice file, struct slice datatype, struct slice name)
{
	struct errbuf e;
	struct buf made;
	if (spool_check_names(datatype, name, &e))
		return false;
	buf_init(&made, PATH_MAX);
	spool_put_file(datatype, name, &made);
	bool same = slice_equal(buf_slice(&made), file);
	buf_release(&made);
	return same;
}

/* Takes a file's name apart; the names of its stream are in the arena. False: it is none of the
 * spool. */
static bool spool_read_name(struct slice file, struct arena *arena, struct slice *datatype,
			    struct slice *name, uint32_t *number)
{
	const char *dot = memchr(file.data, '.', file.len), *end = file.data + file.len;
	uint64_t value = 0;
	if (dot && (end - dot != SPOOL_ROTATED_DIGITS + 1 ||
		    number_parse_u64(dot + 1, end, &value) || !value || value > UINT32_MAX))
		return false;
	*number = (uint32_t)value;
	file.len = (size_t)((dot ? dot : end) - file.data);
	const char *colon = memchr(file.data, ':', file.len);
	if (!colon)
		return false;
	const size_t front = (size_t)(colon - file.data);
	return !percent_decode((struct slice){file.data, front}, false, arena, datatype) &&
	       !percent_decode((struct slice){colon + 1, file.len - front - 1}, false, arena,
			       name) &&
	       spool_is_name(file, *datatype, *name);
}

/* ---- Streams --------------------------------------------------------------------------------- */

static struct hash128 spool_hash(struct slice datatype, struct slice name)
{
	return hash128(name.data, name.len, hash64(datatype.data, datatype.len, 0));
}

static struct spool_stream *spool_find(const struct spool *spool, struct slice datatype,
				       struct slice name)
{
	const struct spool_slot *slot =
		hash_table_find(&spool->by_names, spool_hash(datatype, name));
	return slot ? slot->stream : NULL;
}

static struct spool_stream *spool_make(struct spool *spool, struct slice datatype,
				       struct slice name)
{
	struct spool_stream *s = mem_zalloc(sizeof(*s));
	struct buf path;
	bool added;
	s->spool = spool;
	s->datatype = mem_copy_slice(datatype);
	s->name = mem_copy_slice(name);
	s->handle = -1;
	s->used_ms = clock_mono_ms(spool->options.clock);
	buf_init(&path, PATH_MAX);
	spool_path(spool->directory, datatype, name, &path);
	s->path = mem_copy_text(buf_slice(&path));
	buf_release(&path);
	buf_init(&s->rest, SPOOL_ROOM_BYTES);
	buf_init(&s->kept, spool->options.max_bytes + SPOOL_ROOM_BYTES);
	buf_init(&s->note, SPOOL_NOTE_MAX_BYTES);
	struct spool_slot *slot =
		hash_table_add(&spool->by_names, spool_hash(datatype, name), sizeof(*slot), &added);
	slot->stream = s;
	GROW(spool->list, spool->capacity, spool->count + 1);
	spool->list[spool->count++] = s;
	return s;
}

static int spool_find_or_make(struct spool *spool, struct slice datatype, struct slice name,
			      struct spool_stream **stream, struct errbuf *e)
{
	*stream = spool_find(spool, datatype, name);
	if (*stream)
		return 0;
	int err = spool_check_names(datatype, name, e);
	if (!err && spool->count == SPOOL_STREAMS_MAX)
		err = errbuf_set(e, ERR_LIMIT, "the spool has %d streams already",
				 SPOOL_STREAMS_MAX);
	if (!err)
		*stream = spool_make(spool, datatype, name);
	return err;
}

int spool_stream(struct spool *spool, struct slice datatype, struct slice name,
		 struct spool_stream **stream, struct errbuf *e)
{
	pthread_mutex_lock(&spool->lock);
	int err = spool_find_or_make(spool, datatype, name, stream, e);
	pthread_mutex_unlock(&spool->lock);
	return err;
}

size_t spool_stream_count(struct spool *spool)
{
	pthread_mutex_lock(&spool->lock);
	size_t count = spool->count;
	pthread_mutex_unlock(&spool->lock);
	return count;
}

struct spool_stream *spool_stream_at(struct spool *spool, size_t place)
{
	pthread_mutex_lock(&spool->lock);
	struct spool_stream *s = place < spool->count ? spool->list[place] : NULL;
	pthread_mutex_unlock(&spool->lock);
	return s;
}

struct slice spool_stream_datatype(const struct spool_stream *stream)
{
	return stream->datatype;
}

struct slice spool_stream_name(const struct spool_stream *stream)
{
	return stream->name;
}

/* ---- Open files ------------------------------------------------------------------------------ */

static void spool_keep(struct spool *spool, struct spool_stream *s, struct slice written)
{
	buf_append(&s->kept, written.data, written.len);
	ASSERT(!s->kept.failed); /* it is no more than the spool has */
	spool->kept_bytes += written.len;
}

static void spool_keep_no_more(struct spool *spool, struct spool_stream *s, size_t bytes)
{
	spool->kept_bytes -= bytes;
	buf_consume(&s->kept, bytes);
	if (s->kept.len)
		return;
	buf_release(&s->kept);
	buf_init(&s->kept, spool->options.max_bytes + SPOOL_ROOM_BYTES);
}

/* It may be closed then, if nothing came meanwhile. */
static int spool_sync_stream(struct spool *spool, struct spool_stream *s)
{
	struct files *files = spool->options.files;
	while (s->syncing)
		pthread_cond_wait(&spool->synced, &spool->lock);
	const size_t bytes = s->kept.len;
	if (!bytes)
		return 0;
	int err = s->again ? files->write_over(files, s->handle, s->bytes - s->rest.len - bytes,
					       buf_slice(&s->kept))
			   : 0;
	if (err)
		return spool_trouble(spool, s->path, "cannot be written", err);
	s->syncing = true;
	pthread_mutex_unlock(&spool->lock);
	err = files->sync(files, s->handle);
	pthread_mutex_lock(&spool->lock);
	s->syncing = false;
	s->again = err != 0;
	if (!err)
		spool_keep_no_more(spool, s, bytes);
	pthread_cond_broadcast(&spool->synced);
	return err ? spool_trouble(spool, s->path, "cannot be synced", err) : 0;
}

static void spool_close_file(struct spool *spool, struct spool_stream *s)
{
	if (s->handle < 0)
		return;
	spool->options.files->close(spool->options.files, s->handle);
	s->handle = -1;
	s->again = false;
	spool_keep_no_more(spool, s, s->kept.len);
	spool->open_count--;
}

/* One after the other gives its place to others. */
static int spool_evict(struct spool *spool)
{
	for (size_t i = 0; i < spool->count; i++) {
		struct spool_stream *s = spool->list[spool->evict_at++ % spool->count];
		if (s->handle < 0 || s->syncing)
			continue;
		int err = spool_sync_stream(spool, s);
		if (!err && !s->kept.len && !s->syncing)
			spool_close_file(spool, s);
		return err;
	}
	return 0;
}

static int spool_open_file(struct spool *spool, struct spool_stream *s)
{
	struct files *files = spool->options.files;
	if (s->handle >= 0)
		return 0;
	int err = spool->open_count >= SPOOL_OPEN_MAX ? spool_evict(spool) : 0;
	if (err || s->handle >= 0) /* somebody else opened it meanwhile */
		return err;
	err = files->open_end(files, s->path, SPOOL_MODE, &s->handle);
	if (err)
		return spool_trouble(spool, s->path, "cannot be opened", err);
	spool->open_count++;
	spool->names_unsynced |= s->bytes == 0;
	return 0;
}

/* ---- Writing --------------------------------------------------------------------------------- */

static void spool_put_record(struct slice record, struct buf *out)
{
	const char *at = record.data, *end = record.data + record.len, *newline;
	while (at < end && (newline = memchr(at, '\n', (size_t)(end - at)))) {
		buf_append(out, at, (size_t)(newline - at));
		buf_append(out, "\4\n", 2);
		at = newline + 1;
	}
	buf_append(out, at, (size_t)(end - at));
	if (record.len && end[-1] == SPOOL_ESCAPE)
		buf_append_char(out, '\n');
	buf_append_char(out, '\n');
}

/* The rest of records of which a part could be written. */
static int spool_write_rest(struct spool *spool, struct spool_stream *s)
{
	struct files *files = spool->options.files;
	size_t done = 0;
	if (!s->rest.len)
		return 0;
	int err = spool_open_file(spool, s);
	if (err)
		return err;
	err = files->append(files, s->handle, buf_slice(&s->rest), &done);
	spool_keep(spool, s, (struct slice){s->rest.data, done});
	buf_consume(&s->rest, done);
	if (err)
		return spool_trouble(spool, s->path, "cannot be written", err);
	buf_release(&s->rest);
	buf_init(&s->rest, SPOOL_ROOM_BYTES);
	return 0;
}

static int spool_sync_names(struct spool *spool)
{
	struct files *files = spool->options.files;
	while (spool->names_syncing)
		pthread_cond_wait(&spool->synced, &spool->lock);
	if (!spool->names_unsynced)
		return 0;
	spool->names_syncing = true;
	spool->names_unsynced = false;
	pthread_mutex_unlock(&spool->lock);
	int err = files->sync_dir(files, spool->directory);
	pthread_mutex_lock(&spool->lock);
	spool->names_syncing = false;
	spool->names_unsynced |= err != 0;
	pthread_cond_broadcast(&spool->synced);
	return err ? spool_trouble(spool, spool->directory, "cannot be synced", err) : 0;
}

static int spool_sync_files(struct spool *spool)
{
	int err = 0;
	for (size_t i = 0; i < spool->count; i++) {
		int why = spool_write_rest(spool, spool->list[i]);
		why = why ? why : spool_sync_stream(spool, spool->list[i]);
		err = err ? err : why;
	}
	return err;
}

int spool_sync(struct spool *spool)
{
	pthread_mutex_lock(&spool->lock);
	int err = spool_sync_files(spool);
	int why = spool_sync_names(spool);
	pthread_mutex_unlock(&spool->lock);
	return err ? err : why;
}

/* The file becomes one that is only read. If that cannot be, it grows on. Renaming waits for the
 * disk: meanwhile the other streams go on, and who adds to this one waits for its turn above. */
static void spool_rotate(struct spool *spool, struct spool_stream *s)
{
	struct files *files = spool->options.files;
	char to[PATH_MAX];
	struct file_look look;
	int err = spool_sync_stream(spool, s);
	if (err || s->syncing || s->kept.len || s->bytes < spool->file_bytes)
		return;
	uint32_t number = ++spool->number; /* no other file gets it, whatever happens */
	spool_rotated_path(s, number, to);
	s->syncing = true;
	pthread_mutex_unlock(&spool->lock);
	err = files->rename(files, s->path, to);
	bool moved = !err || !files->look_at(files, to, &look);
	pthread_mutex_lock(&spool->lock);
	s->syncing = false;
	pthread_cond_broadcast(&spool->synced);
	if (err) {
		(void)spool_trouble(spool, s->path, "cannot be renamed", err);
		if (!moved)
			return;
		spool->names_unsynced = true; /* it was, and only syncing failed */
	}
	spool_close_file(spool, s);
	GROW(s->rotated, s->rotated_capacity, s->rotated_count + 1);
	s->rotated[s->rotated_count++] = number;
	s->bytes = 0;
}

static int spool_write(struct spool *spool, struct spool_stream *s, bool noted)
{
	struct files *files = spool->options.files;
	struct slice data = buf_slice(&spool->out);
	size_t done = 0;
	int err = data.len ? files->append(files, s->handle, data, &done) : 0;
	if (err)
		(void)spool_trouble(spool, s->path, "cannot be written", err);
	if (err && !done && !noted)
		return err;
	/* A part is there, and cannot be taken back: the agent may have read it. */
	buf_append(&s->rest, data.data + done, data.len - done);
	spool_keep(spool, s, (struct slice){data.data, done});
	s->bytes += data.len;
	s->used_ms = clock_mono_ms(spool->options.clock);
	spool_count(spool, (int64_t)data.len);
	return 0;
}

/* The disk keeps room free for the checkpoint: without that nothing of the spool could be removed,
 * and the disk would stay full. */
static bool spool_fits(struct spool *spool, uint64_t bytes, bool noted)
{
	struct files *files = spool->options.files;
	uint64_t free_bytes, max_bytes = spool->options.max_bytes;
	/* Records that can be asked again leave room for others. More may be there than the bound
	 * allows, if it has become smaller since the last start. */
	if (spool->bytes + bytes > (noted ? max_bytes / 2 : max_bytes))
		return false;
	if (files->free_bytes(files, spool->directory, &free_bytes) ||
	    free_bytes >= spool->free_bytes + bytes)
		return true;
	(void)spool_trouble(spool, spool->directory,
			    "takes no more, so that its disk keeps room for the checkpoint",
			    ERR_FULL);
	return false;
}

static void spool_note_path(const struct spool_stream *s, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s" SPOOL_NOTE_ENDING, s->path);
}

/* The records in `out` are to follow the file's end, with a note. After success both survive
 * whatever comes. Replacing the note waits for the disk: meanwhile the other streams go on, and the
 * records count already. */
static int spool_put_note(struct spool *spool, struct spool_stream *s, struct slice note)
{
	struct files *files = spool->options.files;
	struct spool_noted noted = {
		.at = s->bytes, .note = note, .records = buf_slice(&spool->out)};
	const int64_t bytes = (int64_t)noted.records.len;
	char path[PATH_MAX];
	struct file_look look;
	struct buf text;
	int err = files->look(files, s->handle, &look);
	if (err)
		return spool_trouble(spool, s->path, "cannot be looked at", err);
	noted.file = look.id;
	buf_init(&text, SPOOL_NOTED_MAX_BYTES);
	spool_noted_encode(&noted, &text);
	ASSERT(!text.failed);
	spool_note_path(s, path);
	s->syncing = true;
	spool_count(spool, bytes);
	pthread_mutex_unlock(&spool->lock);
	err = files->replace(files, path, buf_slice(&text), SPOOL_MODE);
	pthread_mutex_lock(&spool->lock);
	s->syncing = false;
	spool_count(spool, -bytes);
	pthread_cond_broadcast(&spool->synced);
	buf_clear(&spool->out); /* others have used it */
	buf_append(&spool->out, text.data + text.len - bytes, (size_t)bytes);
	buf_release(&text);
	if (err)
		return spool_trouble(spool, path, "cannot be written", err);
	buf_clear(&s->note);
	buf_append(&s->note, note.data, note.len);
	s->noted = true;
	return 0;
}

/* `note` may be NULL. */
static int spool_append_locked(struct spool *spool, struct spool_stream *s,
			       const struct slice *records, size_t count, const struct slice *note)
{
	int err = spool->kept_bytes >= SPOOL_KEPT_MAX_BYTES ? spool_sync_files(spool) : 0;
	err = err ? err : spool_write_rest(spool, s);
	/* The records of the note before are not in the next one any more. */
	if (!err && note)
		err = spool_sync_stream(spool, s);
	if (err)
		return err;
	if (s->bytes >= spool->file_bytes)
		spool_rotate(spool, s);
	err = spool_open_file(spool, s);
	if (err)
		return err;
	if (s->rest.len) /* another thread's, while the lock was given up */
		return ERR_BUSY;
	buf_clear(&spool->out);
	for (size_t i = 0; i < count; i++)
		spool_put_record(records[i], &spool->out);
	ASSERT(!spool->out.failed);
	if (!spool_fits(spool, spool->out.len, note != NULL))
		return ERR_FULL;
	err = note ? spool_put_note(spool, s, *note) : 0;
	return err ? err : spool_write(spool, s, note != NULL);
}

static int spool_append_with(struct spool_stream *stream, const struct slice *records, size_t count,
			     const struct slice *note)
{
	struct spool *spool = stream->spool;
	size_t bytes = 0;
	for (size_t i = 0; i < count; i++) {
		bytes += records[i].len + 2;
		if (bytes > SPOOL_RECORDS_MAX_BYTES)
			return ERR_LIMIT;
	}
	pthread_mutex_lock(&spool->lock);
	int err = spool_append_locked(spool, stream, records, count, note);
	pthread_mutex_unlock(&spool->lock);
	return err;
}

int spool_append(struct spool_stream *stream, const struct slice *records, size_t count)
{
	return spool_append_with(stream, records, count, NULL);
}

int spool_append_noted(struct spool_stream *stream, const struct slice *records, size_t count,
		       struct slice note)
{
	ASSERT(note.len <= SPOOL_NOTE_MAX_BYTES);
	return spool_append_with(stream, records, count, &note);
}

bool spool_note(struct spool_stream *stream, struct buf *note)
{
	struct spool *spool = stream->spool;
	pthread_mutex_lock(&spool->lock);
	bool noted = stream->noted;
	if (noted)
		buf_append(note, stream->note.data, stream->note.len);
	pthread_mutex_unlock(&spool->lock);
	return noted;
}

bool spool_has_room(struct spool *spool)
{
	pthread_mutex_lock(&spool->lock);
	bool fits = spool_fits(spool, SPOOL_ROOM_BYTES, false);
	pthread_mutex_unlock(&spool->lock);
	return fits;
}

uint64_t spool_bytes(struct spool *spool)
{
	pthread_mutex_lock(&spool->lock);
	uint64_t bytes = spool->bytes;
	pthread_mutex_unlock(&spool->lock);
	return bytes;
}

/* ---- Removing -------------------------------------------------------------------------------- */

struct spool_removal {
	bool (*is_delivered)(void *owner, const struct file_look *look);
	void (*removed)(void *owner, const struct file_look *look);
	void *owner;
};

static bool spool_remove(struct spool *spool, const char *path, const struct spool_removal *removal)
{
	struct files *files = spool->options.files;
	struct file_look look;
	if (files->look_at(files, path, &look) || !removal->is_delivered(removal->owner, &look))
		return false;
	int err = files->remove(files, path);
	if (err) {
		(void)spool_trouble(spool, path, "cannot be removed", err);
		return false;
	}
	/* It does not come back after a checkpoint that does not know it any more. */
	spool->names_unsynced = true;
	spool_count(spool, -(int64_t)look.bytes);
	removal->removed(removal->owner, &look);
	return true;
}

static void spool_remove_rotated(struct spool *spool, struct spool_stream *s,
				 const struct spool_removal *removal)
{
	char path[PATH_MAX];
	size_t kept = 0;
	for (size_t i = 0; i < s->rotated_count; i++) {
		spool_rotated_path(s, s->rotated[i], path);
		if (!spool_remove(spool, path, removal))
			s->rotated[kept++] = s->rotated[i];
	}
	s->rotated_count = kept;
}

void spool_remove_delivered(struct spool_stream *s,
			    bool (*is_delivered)(void *owner, const struct file_look *look),
			    void (*removed)(void *owner, const struct file_look *look), void *owner)
{
	struct spool *spool = s->spool;
	const struct spool_removal removal = {is_delivered, removed, owner};
	pthread_mutex_lock(&spool->lock);
	spool_remove_rotated(spool, s, &removal);
	bool idle = clock_mono_ms(spool->options.clock) - s->used_ms >= SPOOL_IDLE_MS;
	bool due = s->bytes && !s->rest.len && !s->syncing &&
		   (idle || s->bytes >= spool->file_bytes ||
		    spool->bytes > spool->options.max_bytes / 2);
	if (due && spool_remove(spool, s->path, &removal)) {
		spool_close_file(spool, s);
		s->bytes = 0;
	}
	pthread_mutex_unlock(&spool->lock);
}

/* ---- Starting -------------------------------------------------------------------------------- */

/* The rest of the records that have the note. They are whole where another file is at the path: it
 * was renamed or removed behind them. */
static void spool_complete(struct spool *spool, struct spool_stream *s,
			   const struct spool_noted *noted)
{
	const struct slice records = noted->records;
	struct files *files = spool->options.files;
	struct file_look look;
	if (files->look_at(files, s->path, &look) || !file_id_equal(&look.id, &noted->file) ||
	    look.bytes < noted->at || look.bytes >= noted->at + records.len)
		return;
	const size_t there = (size_t)(look.bytes - noted->at);
	buf_append(&s->rest, records.data + there, records.len - there);
	s->bytes += records.len - there;
	spool_count(spool, (int64_t)(records.len - there));
	(void)spool_write_rest(spool, s); /* else when there is room */
}

static int spool_find_note(struct spool *spool, struct spool_stream *s)
{
	struct files *files = spool->options.files;
	struct spool_noted noted;
	char path[PATH_MAX];
	struct buf text;
	spool_note_path(s, path);
	buf_init(&text, SPOOL_NOTED_MAX_BYTES);
	int err = files->read(files, path, SPOOL_NOTED_MAX_BYTES, &text);
	if (!err && spool_noted_decode(buf_slice(&text), &noted)) {
		buf_append(&s->note, noted.note.data, noted.note.len);
		s->noted = true;
		spool_complete(spool, s, &noted);
	} else if (!err || err == ERR_LIMIT) {
		log_error("%s is damaged: what the stream is made of is read from where its "
			  "adaptor says, as if it were new, and may be sent twice",
			  path);
	}
	buf_release(&text);
	return err == ERR_NOT_FOUND || err == ERR_LIMIT ? 0 : err;
}

/* A file that ends within a record. And nobody knows whether it was synced before. */
static int spool_mend(struct spool *spool, struct spool_stream *s)
{
	struct files *files = spool->options.files;
	char last[2] = "";
	int handle;
	size_t got, front = s->bytes < 2 ? (size_t)s->bytes : 2, done;
	if (s->rest.len)
		return 0;
	int err = front ? files->open(files, s->path, &handle) : ERR_NOT_FOUND;
	if (err)
		return err == ERR_NOT_FOUND ? 0 : err;
	err = files->read_at(files, handle, s->bytes - front, last + 2 - front, front, &got);
	err = err ? err : files->sync(files, handle);
	files->close(files, handle);
	if (err || (last[1] == '\n' && last[0] != SPOOL_ESCAPE))
		return err;
	err = spool_open_file(spool, s);
	if (err)
		return err;
	struct slice end = last[1] == SPOOL_ESCAPE ? SLICE("\n\n") : SLICE("\n");
	log_warn("%s ends within a record: the rest of it was not written when the agent ended",
		 s->path);
	err = files->append(files, s->handle, end, &done);
	if (err) /* the disk may be full; what is there is delivered all the same */
		(void)spool_trouble(spool, s->path, "cannot be written", err);
	buf_append(&s->rest, end.data + done, end.len - done);
	spool_keep(spool, s, (struct slice){end.data, done});
	s->bytes += end.len;
	spool_count(spool, (int64_t)end.len);
	return 0;
}

struct spool_found {
	struct spool *spool;
	struct arena arena;
	int err;
	struct errbuf *e;
};

static int spool_take_file(struct spool_found *found, struct slice file)
{
	struct spool *spool = found->spool;
	struct files *files = spool->options.files;
	struct slice datatype, name;
	struct spool_stream *s;
	struct file_look look;
	uint32_t number;
	char path[PATH_MAX];
	bool is_note = slice_ends_with(file, SLICE(SPOOL_NOTE_ENDING));
	if (slice_ends_with(file, SLICE(SPOOL_NOTE_ENDING ".tmp")))
		return 0; /* a note that was never finished */
	if (is_note)
		file.len -= strlen(SPOOL_NOTE_ENDING);
	if (!spool_read_name(file, &found->arena, &datatype, &name, &number) ||
	    (is_note && number)) {
		log_warn("%s/%s is none of the spool's files, and left alone", spool->directory,
			 file.data);
		return 0;
	}
	int err = spool_find_or_make(spool, datatype, name, &s, found->e);
	if (err || is_note)
		return err;
	if (number)
		spool_rotated_path(s, number, path);
	else
		snprintf(path, sizeof(path), "%s", s->path);
	err = files->look_at(files, path, &look);
	if (err)
		return errbuf_set(found->e, err, "%s: %s", path, err_text(err));
	spool_count(spool, (int64_t)look.bytes);
	if (!number) {
		s->bytes = look.bytes;
		return 0;
	}
	GROW(s->rotated, s->rotated_capacity, s->rotated_count + 1);
	s->rotated[s->rotated_count++] = number;
	spool->number = number > spool->number ? number : spool->number;
	return 0;
}

static void spool_see(void *owner, const char *file)
{
	struct spool_found *found = owner;
	arena_reset(&found->arena);
	if (!found->err)
		found->err = spool_take_file(found, slice_of(file));
}

static int spool_find_files(struct spool *spool, struct errbuf *e)
{
	struct files *files = spool->options.files;
	struct spool_found found = {.spool = spool, .e = e};
	int err = files->make_dir(files, spool->directory, SPOOL_DIRECTORY_MODE);
	if (err)
		return errbuf_set(e, err, "%s cannot be made: %s", spool->directory, err_text(err));
	arena_init(&found.arena, PATH_MAX);
	err = files->list(files, spool->directory, spool_see, &found);
	arena_release(&found.arena);
	if (found.err)
		return found.err;
	for (size_t i = 0; i < spool->count && !err; i++) {
		err = spool_find_note(spool, spool->list[i]);
		err = err ? err : spool_mend(spool, spool->list[i]);
	}
	return err ? errbuf_set(e, err, "%s cannot be read: %s", spool->directory, err_text(err))
		   : 0;
}

/* ---- Life ------------------------------------------------------------------------------------ */

int spool_open(const struct spool_options *options, struct spool **out, struct errbuf *e)
{
	struct spool *spool = mem_zalloc(sizeof(*spool));
	ASSERT(options->max_bytes >= 2 * SPOOL_ROOM_BYTES);
	spool->options = *options;
	spool->directory = mem_copy_text(slice_of(options->directory));
	spool->file_bytes = options->max_bytes / SPOOL_PARTS;
	if (spool->file_bytes > SPOOL_FILE_MAX_BYTES)
		spool->file_bytes = SPOOL_FILE_MAX_BYTES;
	spool->free_bytes = options->max_bytes / SPOOL_FREE_PARTS;
	if (spool->free_bytes > SPOOL_FREE_MAX_BYTES)
		spool->free_bytes = SPOOL_FREE_MAX_BYTES;
	spool->troubles.lines_max = SPOOL_LINES_A_MINUTE;
	pthread_mutex_init(&spool->lock, NULL);
	pthread_cond_init(&spool->synced, NULL);
	buf_init(&spool->out, SPOOL_ROOM_BYTES);
	int err = spool_find_files(spool, e);
	if (err)
		spool_close(spool);
	*out = err ? NULL : spool;
	return err;
}

void spool_close(struct spool *spool)
{
	if (!spool)
		return;
	for (size_t i = 0; i < spool->count; i++) {
		struct spool_stream *s = spool->list[i];
		(void)spool_write_rest(spool, s);
		spool_close_file(spool, s);
		buf_release(&s->rest);
		buf_release(&s->kept);
		buf_release(&s->note);
		mem_free_slice(s->datatype);
		mem_free_slice(s->name);
		mem_free(s->path);
		mem_free(s->rotated);
		mem_free(s);
	}
	mem_free(spool->list);
	mem_free(spool->directory);
	hash_table_release(&spool->by_names);
	buf_release(&spool->out);
	pthread_cond_destroy(&spool->synced);
	pthread_mutex_destroy(&spool->lock);
	mem_free(spool);
}
