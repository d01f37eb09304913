/* The spool: what an agent takes in that cannot be asked again, such as datagrams, lines of
 * connections and what commands print, until it is delivered.
 *
 *   inlet --records--> DATA/agent/spool/DATATYPE:NAME --followed--> chunks --> collector
 *
 * The spool is files that the agent follows as it follows all others, so that there is one way of
 * delivering: with a checkpoint, incarnations, and the question what is held. Each stream has a
 * file of its own; letters and digits of its names stand in the file's name, other bytes as %XX,
 * so none of them is taken for the rotated form of another one. A file that is long is renamed to
 * DATATYPE:NAME.0000000001 and so on, and removed when a checkpoint says that it is delivered; so
 * is the last one where it is long, nothing has come to it for a minute, or the spool is more than
 * half full.
 *
 * A record is a line. A newline within it is written behind a byte 4, as Chukwa's appenders do
 * (`records: escaped`); a record that ends with a byte 4 gets a newline more.
 *
 * What can be asked again has a *note* with its records, which says where the next ones begin. The
 * note of a stream lies in DATATYPE:NAME.note, with the records that were added last: it is
 * replaced before they are written, so that whatever ends the process, the next start finds both,
 * or neither (doc/format-checkpoint.md).
 *
 * Invariants:
 *  - Nothing is added that would make all files together, without the notes, longer than
 *    max_bytes, or leave less of the disk free than an eighth of that (at most 64 MiB), which the
 *    checkpoint may need.
 *  - When spool_append() has returned 0 the records are in their file, and survive the end of the
 *    process; but where the disk became full within them, their rest is in memory until there is
 *    room. They survive a power cut when spool_sync() has returned 0, and no checkpoint says that
 *    more is delivered.
 *  - What was not synced is in memory, too, at most 8 MiB in all before all files are synced. When
 *    syncing fails it is written again in its place before the next attempt, since the system takes
 *    it for written from then on. At a start all files are synced.
 *  - Records with a note survive a power cut at once, together with it.
 *  - What is in a file never changes. A file that ends within a record, since the process ended
 *    while it was written or the disk was full, gets the rest of it at the next start where the
 *    record has a note, else a newline.
 *
 * Threads: any; a lock inside. Each call may write to the disk. While spool_sync(), a note or the
 * renaming of a file waits for the disk, nobody waits for the lock. */
#ifndef AGENT_SPOOL_H
#define AGENT_SPOOL_H

#include "base/clock.h"
#include "base/file.h"

enum {
	SPOOL_STREAMS_MAX = 10000,
	SPOOL_RECORDS_MAX_BYTES = 2 << 20,              /* of one spool_append() */
	SPOOL_ROOM_BYTES = 2 * SPOOL_RECORDS_MAX_BYTES, /* they may be all newlines */
	SPOOL_NAME_MAX_BYTES = 240,                     /* of a file, without its number */
	SPOOL_NOTE_MAX_BYTES = 4096,
	SPOOL_SYNC_MS = 1000, /* inlets call spool_sync() so often */
};

struct spool;
struct spool_stream;

struct spool_options {
	struct files *files;
	struct clock *clock;
	const char *directory; /* it is made if it is absent */
	uint64_t max_bytes;    /* at least 4 * SPOOL_RECORDS_MAX_BYTES */
};

/* Finds what was left there. With a sentence. */
int spool_open(const struct spool_options *options, struct spool **spool,
	       struct errbuf *e) MUST_CHECK;
/* Nobody calls anything any more. NULL is allowed. */
void spool_close(struct spool *spool);

/* The stream of these names, which lives as long as the spool; its file is made when it has a
 * record. ERR_INVALID with a sentence: no stream has such names, or they are too long for a file's;
 * ERR_LIMIT with one: there are SPOOL_STREAMS_MAX. */
int spool_stream(struct spool *spool, struct slice datatype, struct slice name,
		 struct spool_stream **stream, struct errbuf *e) MUST_CHECK;
int spool_check_names(struct slice datatype, struct slice name, struct errbuf *e) MUST_CHECK;

/* Adds records, all of them or none. ERR_FULL: there is no room; the inlet waits for
 * spool_has_room(), or counts them as dropped. ERR_LIMIT: they have more than
 * SPOOL_RECORDS_MAX_BYTES; or why nothing can be written at present, which is said in the log. */
int spool_append(struct spool_stream *stream, const struct slice *records, size_t count) MUST_CHECK;
/* The same with a note, which takes the place of the one before; all records of the stream have one
 * then, and one inlet adds them. There may be no record. */
int spool_append_noted(struct spool_stream *stream, const struct slice *records, size_t count,
		       struct slice note) MUST_CHECK;
/* The note of the last records. False: there is none. */
bool spool_note(struct spool_stream *stream, struct buf *note);
/* Whether as much fits as one spool_append() may have. */
bool spool_has_room(struct spool *spool);
/* What was appended survives a power cut. */
int spool_sync(struct spool *spool) MUST_CHECK;
uint64_t spool_bytes(struct spool *spool);

/* ---- For the agent --------------------------------------------------------------------------- */

size_t spool_stream_count(struct spool *spool);
/* NULL: no such place. */
struct spool_stream *spool_stream_at(struct spool *spool, size_t place);
struct slice spool_stream_datatype(const struct spool_stream *stream);
struct slice spool_stream_name(const struct spool_stream *stream);
/* Where the file of a stream is, also of one that no spool has yet. */
void spool_path(const char *directory, struct slice datatype, struct slice name, struct buf *path);
/* Removes files of the stream that are delivered as they are, and gives each of them to `removed`.
 * Neither function calls anything of the spool. */
void spool_remove_delivered(struct spool_stream *stream,
			    bool (*is_delivered)(void *owner, const struct file_look *look),
			    void (*removed)(void *owner, const struct file_look *look),
			    void *owner);

#endif
