/* What an import reads: a file, a pipe or standard input, unpacked where its first bytes say that
 * it is packed by gzip or zstd. In pieces, forward only. Blocking; one thread. */
#ifndef CMD_IMPORT_SOURCE_H
#define CMD_IMPORT_SOURCE_H

#include "base/buf.h"

struct body_decoder;

enum { IMPORT_RAW_BYTES = 256 << 10 };

struct import_source {
	const char *name; /* for sentences: the path, or `standard input` */
	int fd;
	uint64_t size_bytes; /* of the file as it is; 0: not known */
	uint64_t raw_bytes;  /* read of it so far */
	bool ended;
	/* private */
	struct body_decoder *decoder; /* NULL: it is not packed */
	struct slice in;              /* of `raw`, not taken yet */
	char raw[IMPORT_RAW_BYTES];
};

/* `-` is standard input. An error has its sentence. */
int import_source_open(struct import_source *source, const char *path, struct errbuf *e) MUST_CHECK;
/* Appends the next bytes, some 100 KB; sets `ended` behind the last. ERR_DAMAGED: it cannot be
 * unpacked, or is cut off; ERR_LIMIT: `out` is full; or why it cannot be read. With a sentence. */
int import_source_read(struct import_source *source, struct buf *out, struct errbuf *e) MUST_CHECK;
void import_source_close(struct import_source *source);

#endif
