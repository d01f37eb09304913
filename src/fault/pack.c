#include "fault/pack.h"

#include <pthread.h>
#include <zstd.h>

#include "base/mem.h"

enum { PACK_LEVEL = 3 };

/* The dictionary that is part of the program (tools/dictionary/make.py). */
extern const char fault_dictionary_1[];
extern const size_t fault_dictionary_1_bytes;

/* A thread packs again and again: what zstd needs for it is kept until the thread ends. */
struct packer {
	ZSTD_CCtx *packing;
	ZSTD_DCtx *unpacking;
};
static pthread_key_t packers;
static pthread_once_t packers_once = PTHREAD_ONCE_INIT;
static ZSTD_CDict *dictionary_packing; /* all threads read these two */
static ZSTD_DDict *dictionary_unpacking;

static void packer_free(void *owner)
{
	struct packer *packer = owner;
	ZSTD_freeCCtx(packer->packing);
	ZSTD_freeDCtx(packer->unpacking);
	mem_free(packer);
}

static void packers_init(void)
{
	int err = pthread_key_create(&packers, packer_free);
	dictionary_packing =
		ZSTD_createCDict(fault_dictionary_1, fault_dictionary_1_bytes, PACK_LEVEL);
	dictionary_unpacking = ZSTD_createDDict(fault_dictionary_1, fault_dictionary_1_bytes);
	ASSERT(!err && dictionary_packing && dictionary_unpacking);
}

static struct packer *packer_of_thread(void)
{
	pthread_once(&packers_once, packers_init);
	struct packer *packer = pthread_getspecific(packers);
	if (packer)
		return packer;
	packer = mem_alloc(sizeof(*packer));
	*packer = (struct packer){ZSTD_createCCtx(), ZSTD_createDCtx()};
	ASSERT(packer->packing && packer->unpacking && !pthread_setspecific(packers, packer));
	return packer;
}

uint64_t fault_pack(struct slice bytes, struct buf *packed)
{
	size_t bound = ZSTD_compressBound(bytes.len);
	char *to = buf_reserve(packed, bound);
	if (!to)
		return FAULT_DICTIONARY_SHIPPED;
	struct packer *packer = packer_of_thread();
	size_t len = ZSTD_compress_usingCDict(packer->packing, to, bound, bytes.data, bytes.len,
					      dictionary_packing);
	ASSERT(!ZSTD_isError(len)); /* there is room for the worst */
	packed->len += len;
	return FAULT_DICTIONARY_SHIPPED;
}

int fault_unpack(uint64_t dictionary, struct slice packed, uint64_t bytes, struct buf *out)
{
	if (dictionary > FAULT_DICTIONARY_SHIPPED)
		return ERR_VERSION;
	char *to = buf_reserve(out, (size_t)bytes);
	if (!to)
		return ERR_LIMIT;
	struct packer *packer = packer_of_thread();
	size_t len =
		ZSTD_decompress_usingDDict(packer->unpacking, to, (size_t)bytes, packed.data,
					   packed.len, dictionary ? dictionary_unpacking : NULL);
	if (ZSTD_isError(len) || len != bytes)
		return ERR_DAMAGED;
	out->len += len;
	return 0;
}
