/* Records of the spool with their note (spool.h), as they lie in a file:
 *
 *     granary spool note 1 DEVICE INODE BORN AT NOTE_BYTES CRC32C
 *
 * and a newline; behind it the note, and the records as they are in the stream's file from AT on.
 * The checksum is that of both.
 *
 * Pure. */
#ifndef AGENT_SPOOL_NOTED_H
#define AGENT_SPOOL_NOTED_H

#include "agent/spool.h"

enum {
	SPOOL_NOTED_HEAD_MAX_BYTES = 192,
	SPOOL_NOTED_MAX_BYTES =
		SPOOL_NOTED_HEAD_MAX_BYTES + SPOOL_NOTE_MAX_BYTES + SPOOL_ROOM_BYTES,
};

struct spool_noted {
	struct file_id file; /* the stream's, which the records are added to */
	uint64_t at;
	struct slice note, records;
};

/* At most SPOOL_NOTED_MAX_BYTES. */
void spool_noted_encode(const struct spool_noted *noted, struct buf *out);
/* The slices are those of `text`. False: it is damaged. */
bool spool_noted_decode(struct slice text, struct spool_noted *noted) MUST_CHECK;

#endif
