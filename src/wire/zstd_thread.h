/* What zstd needs to pack and to unpack, by thread: a thread packs again and again, and making it
 * anew each time takes longer than to pack a few KB. It is freed when the thread ends. */
#ifndef WIRE_ZSTD_THREAD_H
#define WIRE_ZSTD_THREAD_H

#include <zstd.h>

/* What is packed: each with parameters of its own, set by whoever packs it. */
enum zstd_packing { PACKING_ONE_REPORT, PACKING_MANY_REPORTS, PACKING_CHUNKS, PACKINGS };

struct zstd_thread {
	ZSTD_CCtx *packing[PACKINGS]; /* NULL: it was not needed yet */
	ZSTD_DCtx *unpacking;
};

/* That of the calling thread. */
struct zstd_thread *zstd_of_thread(void);

#endif
