/* The file of a backup (doc/format-backup.md): the bytes that the engine gives (store_backup_read),
 * and behind them a manifest that says how many they are and which checksum each 64 MiB of them
 * has. What is cut short anywhere has no manifest at its end.
 *
 * Pure: no I/O. One thread. */
#ifndef STORE_BACKUP_FILE_H
#define STORE_BACKUP_FILE_H

#include "base/base.h"
#include "base/buf.h"

enum {
	BACKUP_FORMAT = 1,
	BACKUP_CHUNK_BYTES = 64 << 20,
	BACKUP_PROGRAM_MAX_BYTES = 40,
	BACKUP_FAILED_MAX_BYTES = 500,
	/* Of 64 TiB, the largest that a store may be, the manifest has 9.4 MB. */
	BACKUP_MANIFEST_MAX_BYTES = 12 << 20,
	BACKUP_END_BYTES = 22, /* the last line of the manifest, and of the file */
};

/* The checksums of chunks, made as their bytes come. */
struct backup_sums {
	uint64_t bytes;
	uint32_t crc;    /* of the last chunk, which may grow */
	struct buf list; /* of the chunks before it, uint32_t each */
};

void backup_sums_init(struct backup_sums *sums);
void backup_sums_release(struct backup_sums *sums);
void backup_sums_add(struct backup_sums *sums, struct slice piece);
static inline size_t backup_chunks(uint64_t bytes)
{
	return (size_t)((bytes + BACKUP_CHUNK_BYTES - 1) / BACKUP_CHUNK_BYTES);
}

/* Appends the manifest of what the sums have seen. `failed`: why that is not all; NULL: it is. */
void backup_manifest_put(const struct backup_sums *sums, int64_t time_ms, const char *failed,
			 struct buf *out);

/* What a manifest says. */
struct backup_manifest {
	int64_t time_ms; /* of the snapshot, about */
	char program[BACKUP_PROGRAM_MAX_BYTES + 1];
	uint64_t bytes; /* without the manifest */
};

/* Reads a backup as it comes. As many bytes are held back as the manifest of what has come may
 * have; all before is handed on. */
struct backup_reader {
	/* Takes what the engine gave. NULL: nobody wants it. */
	int (*data)(void *owner, struct slice piece, struct errbuf *e);
	void *owner;
	struct backup_manifest manifest; /* when backup_reader_end has returned 0 */

	/* private */
	struct backup_sums sums;
	struct buf tail;
};

void backup_reader_init(struct backup_reader *reader);
void backup_reader_release(struct backup_reader *reader);
/* The error of `data`. */
int backup_reader_take(struct backup_reader *reader, struct slice piece,
		       struct errbuf *e) MUST_CHECK;
/* All has come. 0: it is whole. With a sentence: ERR_INVALID, it has no manifest; ERR_CANCELLED,
 * one that says why the server ended the backup; ERR_VERSION, it is of a newer format; ERR_DAMAGED,
 * a checksum or a length is another; or the error of `data`. */
int backup_reader_end(struct backup_reader *reader, struct errbuf *e) MUST_CHECK;

/* Whether these can be the last bytes of a backup: a look before the whole is read. ERR_INVALID
 * with a sentence. */
int backup_look_at_end(struct slice last, struct errbuf *e) MUST_CHECK;

#endif
