/* What zstd needs to pack and to unpack, by thread: a thread packs again and again, and making it
 * anew each time takes longer than to pack a few KB. It is freed when the thread ends. */
#ifndef WIRE_ZSTD_THREAD_H
#define WIRE_ZSTD_THREAD_H

#include <zstd.h>

/* A row for each set of parameters, which whoever packs with them sets once. */
enum zstd_packing { ZSTD_ONE_REPORT, ZSTD_MANY_REPORTS, ZSTD_CHUNKS, ZSTD_PACKINGS };

struct zstd_thread {
	ZSTD_CCtx *packing[ZSTD_PACKINGS]; /* NULL: it was not needed yet */
	ZSTD_DCtx *unpacking;
};

/* That of the calling thread. */
struct zstd_thread *zstd_of_thread(void);

#endif
