#include "fault/pack.h"

#include <pthread.h>
#include <zstd.h>

#include "base/mem.h"

/* As by zstd's level 3, but with tables that stay in a core's cache: with those of the level a
 * report takes a tenth more CPU in all. Blocks of many reports are packed so, too: a slower way
 * (greedy, eight places to search) made them 6 % smaller for three times the CPU. */
static const struct {
	ZSTD_cParameter parameter;
	int value;
} pack_parameters[] = {
	{ZSTD_c_strategy, ZSTD_dfast}, {ZSTD_c_minMatch, 5}, {ZSTD_c_searchLog, 1},
	{ZSTD_c_windowLog, 20},        {ZSTD_c_hashLog, 14}, {ZSTD_c_chainLog, 13},
};

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
static ZSTD_DDict *dictionary_unpacking; /* all threads read it */

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
	dictionary_unpacking = ZSTD_createDDict(fault_dictionary_1, fault_dictionary_1_bytes);
	ASSERT(!err && dictionary_unpacking);
}

static ZSTD_CCtx *packing_new(void)
{
	ZSTD_CCtx *packing = ZSTD_createCCtx();
	ASSERT(packing);
	size_t err =
		ZSTD_CCtx_loadDictionary(packing, fault_dictionary_1, fault_dictionary_1_bytes);
	for (size_t i = 0; i < ARRAY_LEN(pack_parameters) && !ZSTD_isError(err); i++)
		err = ZSTD_CCtx_setParameter(packing, pack_parameters[i].parameter,
					     pack_parameters[i].value);
	ASSERT(!ZSTD_isError(err));
	return packing;
}

static struct packer *packer_of_thread(void)
{
	pthread_once(&packers_once, packers_init);
	struct packer *packer = pthread_getspecific(packers);
	if (packer)
		return packer;
	packer = mem_alloc(sizeof(*packer));
	*packer = (struct packer){packing_new(), ZSTD_createDCtx()};
	ASSERT(packer->unpacking && !pthread_setspecific(packers, packer));
	return packer;
}

uint64_t fault_pack(struct slice bytes, struct buf *packed)
{
	size_t bound = ZSTD_compressBound(bytes.len);
	char *to = buf_reserve(packed, bound);
	if (!to)
		return FAULT_DICTIONARY_SHIPPED;
	size_t len = ZSTD_compress2(packer_of_thread()->packing, to, bound, bytes.data, bytes.len);
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
