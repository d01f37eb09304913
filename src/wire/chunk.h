/* Chunks of streams (document K, Chukwa), as they travel and as they are kept. doc/format-chunks.md
 *
 * A chunk is a run of bytes of a stream. Its sequence id is the offset of the first byte behind it,
 * so that its first byte is at the sequence id less the length. Its bytes are records, whole or
 * cut.
 *
 * Version 1 is what Chukwa's agents send: the bytes as they are, without a checksum or a length of
 * the whole. Version 2 is a frame: length, checksum, fields, and the bytes packed by zstd, so that
 * whoever keeps it need not unpack it, and a damaged one can be passed over.
 *
 * Bytes in, struct out: no I/O. What packs or unpacks keeps what zstd needs for it by thread. */
#ifndef WIRE_CHUNK_H
#define WIRE_CHUNK_H

#include "base/buf.h"
#include "base/cursor.h"
#include "base/mem.h"
#include "model/stream.h"

enum {
	/* Of one chunk of version 2: the frame is a value of a table that is shared, also where its
	 * bytes cannot be packed. */
	CHUNK_DATA_MAX_BYTES = 960 << 10,
	CHUNK_FRAME_MAX_BYTES = (1 << 20) - 64,
	CHUNK_ENDS_MAX_BYTES = 32 << 10,
	CHUNK_TAGS_MAX_BYTES = 8 << 10, /* also of what it says for debugging */
	CHUNK_ZONE_MAX_BYTES = 64,
	CHUNK_TEXT_MAX_BYTES = 65535, /* of any other text, before it is checked */
	CHUNK_LEVEL_PRESET = 1,       /* zstd's */
};

/* What is said of the bytes of a chunk. */
struct chunk_fields {
	struct slice tenant; /* len 0: not said here */
	struct stream_names names;
	uint64_t incarnation; /* 0: not known */
	uint64_t sequence_id;
	uint32_t data_bytes;
	int64_t clock_ms;  /* of the sender, when the chunk was made; 0: not known */
	struct slice zone; /* of the sender, as TZ has it; len 0: not known */
	struct slice tags; /* others, as Chukwa writes them: NAME="value" with blanks between */
	struct slice debug;
	/* Each newline ends a record, and nothing else does. Otherwise the ends are listed. */
	bool lines;
	bool continues; /* the first record began in the chunk before */
	bool goes_on;   /* the last record ends in a later chunk */
};

/* The offset of the first byte of a chunk. */
static inline uint64_t chunk_begin(const struct chunk_fields *fields)
{
	return fields->sequence_id - fields->data_bytes;
}

/* The bytes of a chunk, and where its records end: offsets of the first byte behind each,
 * ascending, at most data.len. */
struct chunk_data {
	struct slice data;
	const uint32_t *ends; /* NULL where the fields say lines */
	size_t end_count;
};

/* ---- Tags ------------------------------------------------------------------------------------ */

/* The value of the first tag of that name, where it stands in the tags: what `\bNAME="([^"]*)"`
 * finds. NULL data: there is none. */
struct slice chunk_tag(struct slice tags, const char *name);
/* The value of the tag `cluster`; unknown_cluster where there is none, or nothing in it. */
struct slice chunk_tags_cluster(struct slice tags);

/* ---- Version 1 ------------------------------------------------------------------------------- */

/* Reads the next chunk. A tag `tenant`, `incarnation`, `clock` or `zone` is taken for the field of
 * that name, and `cluster` for the cluster, which is unknown_cluster where there is none. Texts lie
 * in the arena, the data in the bytes. ERR_INVALID with a sentence; where the bytes are bad then,
 * what follows cannot be read either. ERR_LIMIT: the arena is full. */
int chunk_v1_read(struct cursor *bytes, struct arena *arena, struct chunk_fields *fields,
		  struct chunk_data *data, struct errbuf *e) MUST_CHECK;

/* ---- Version 2 ------------------------------------------------------------------------------- */

/* A frame whose checksum is right, and whose fields keep to the limits; names are not checked yet.
 * All slices lie in the bytes it was read from. */
struct chunk_frame {
	struct chunk_fields fields;
	uint32_t ends_bytes;
	struct slice packed; /* of the data, and the ends of records behind it */
	uint32_t checksum;
	struct slice bytes; /* all of it */
};

/* Whether bytes begin with the magic number of a frame, as far as they go. */
bool chunk_is_frame(struct slice bytes);

enum chunk_found {
	CHUNK_FOUND,
	CHUNK_DAMAGED, /* bytes up to the next magic number were passed over */
	CHUNK_NONE,    /* there is nothing more */
};
/* Takes the next frame off the bytes. *why, of a damaged one: what is wrong with it. */
enum chunk_found chunk_frame_next(struct slice *bytes, struct chunk_frame *frame, const char **why);

/* Appends a chunk as a frame, packed at a level of zstd. The data has at most CHUNK_DATA_MAX_BYTES.
 * Where the ends take more than CHUNK_ENDS_MAX_BYTES, or texts too many, it is ERR_LIMIT. */
int chunk_frame_put(const struct chunk_fields *fields, const struct chunk_data *data, int level,
		    struct buf *out) MUST_CHECK;

/* A frame that is packed before its place is known: all of it is there but its sequence id, and
 * what follows from that. In front of what is packed there is room for the rest. */
struct chunk_unplaced {
	struct chunk_fields fields; /* the sequence id is 0 */
	uint32_t ends_bytes;
	char *room;
	size_t room_bytes;
	struct slice packed;
};
/* Packs it as chunk_frame_put does, into the arena. The texts of the fields stay the caller's.
 * ERR_LIMIT: also where the arena is full. */
int chunk_unplaced_make(const struct chunk_fields *fields, const struct chunk_data *data, int level,
			struct arena *arena, struct chunk_unplaced *made) MUST_CHECK;
/* The same as a frame whose fields have no place, to be unpacked. */
struct chunk_frame chunk_unplaced_frame(const struct chunk_unplaced *chunk);
/* The frame at its place, in the memory of the chunk. It costs a checksum, as looking at a frame
 * does. */
void chunk_unplaced_place(const struct chunk_unplaced *chunk, uint64_t sequence_id,
			  struct chunk_frame *frame);

/* The data of a frame, in `out`, which is cleared before, and its ends in the arena. ERR_DAMAGED:
 * it unpacks to something else than it says; ERR_LIMIT: the arena is full. */
int chunk_frame_unpack(const struct chunk_frame *frame, struct buf *out, struct arena *arena,
		       struct chunk_data *data) MUST_CHECK;

/* ---- Both ------------------------------------------------------------------------------------ */

/* Says by `lines` whether the records of the data are its lines: then its ends need not be listed.
 */
void chunk_note_lines(struct chunk_fields *fields, struct chunk_data *data);

#endif
