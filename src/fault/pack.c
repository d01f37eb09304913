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
	ZSTD_CCtx *packing_many; /* NULL: it has not yet */
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
	ZSTD_freeCCtx(packer->packing_many);
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
	*packer = (struct packer){.packing = ZSTD_createCCtx(), .unpacking = ZSTD_createDCtx()};
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

/* Of reports that are alike few matches are shorter than six bytes, and one that is looked for in
 * eight places is longer: 5 % fewer bytes than by PACK_LEVEL. */
static ZSTD_CCtx *packer_for_many(struct packer *packer)
{
	static const struct {
		ZSTD_cParameter parameter;
		int value;
	} parameters[] = {{ZSTD_c_strategy, ZSTD_greedy}, {ZSTD_c_minMatch, 6},
			  {ZSTD_c_searchLog, 3},          {ZSTD_c_windowLog, 20},
			  {ZSTD_c_hashLog, 17},           {ZSTD_c_chainLog, 16}};
	if (packer->packing_many)
		return packer->packing_many;
	packer->packing_many = ZSTD_createCCtx();
	ASSERT(packer->packing_many);
	for (size_t i = 0; i < ARRAY_LEN(parameters); i++) {
		size_t err = ZSTD_CCtx_setParameter(packer->packing_many, parameters[i].parameter,
						    parameters[i].value);
		ASSERT(!ZSTD_isError(err));
	}
	size_t err = ZSTD_CCtx_loadDictionary(packer->packing_many, fault_dictionary_1,
					      fault_dictionary_1_bytes);
	ASSERT(!ZSTD_isError(err));
	return packer->packing_many;
}

uint64_t fault_pack_many(struct slice bytes, struct buf *packed)
{
	size_t bound = ZSTD_compressBound(bytes.len);
	char *to = buf_reserve(packed, bound);
	if (!to)
		return FAULT_DICTIONARY_SHIPPED;
	size_t len = ZSTD_compress2(packer_for_many(packer_of_thread()), to, bound, bytes.data,
				    bytes.len);
	ASSERT(!ZSTD_isError(len));
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
