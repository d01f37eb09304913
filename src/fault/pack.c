#include "fault/pack.h"

#include <pthread.h>

#include "wire/zstd_thread.h"

/* One report is packed as by zstd's level 3, but with tables that stay in a core's cache: with
 * those of the level a report takes a tenth more CPU in all. Many reports lie in blocks of those
 * that are alike: few matches are shorter than six bytes, and eight places to search give longer
 * ones. So blocks have 7 % fewer bytes than if they were packed as one report is, for 4 % of the
 * CPU that a report takes. */
enum pack_way { PACK_ONE = PACKING_ONE_REPORT, PACK_MANY = PACKING_MANY_REPORTS, PACK_WAYS };

static const struct pack_parameter {
	ZSTD_cParameter parameter;
	int of[PACK_WAYS];
} pack_parameters[] = {
	{ZSTD_c_strategy, {ZSTD_dfast, ZSTD_greedy}},
	{ZSTD_c_minMatch, {5, 6}},
	{ZSTD_c_searchLog, {1, 3}},
	{ZSTD_c_windowLog, {20, 20}},
	{ZSTD_c_hashLog, {14, 15}},
	{ZSTD_c_chainLog, {13, 15}},
};

/* The dictionary that is part of the program (tools/dictionary/make.py). */
extern const char fault_dictionary_1[];
extern const size_t fault_dictionary_1_bytes;

static pthread_once_t dictionary_once = PTHREAD_ONCE_INIT;
static ZSTD_DDict *dictionary_unpacking; /* all threads read it */

static void dictionary_init(void)
{
	dictionary_unpacking = ZSTD_createDDict(fault_dictionary_1, fault_dictionary_1_bytes);
	ASSERT(dictionary_unpacking);
}

static ZSTD_CCtx *packing_new(enum pack_way way)
{
	ZSTD_CCtx *packing = ZSTD_createCCtx();
	ASSERT(packing);
	size_t err =
		ZSTD_CCtx_loadDictionary(packing, fault_dictionary_1, fault_dictionary_1_bytes);
	for (size_t i = 0; i < ARRAY_LEN(pack_parameters) && !ZSTD_isError(err); i++)
		err = ZSTD_CCtx_setParameter(packing, pack_parameters[i].parameter,
					     pack_parameters[i].of[way]);
	ASSERT(!ZSTD_isError(err));
	return packing;
}

static uint64_t pack(enum pack_way way, struct slice bytes, struct buf *packed)
{
	size_t bound = ZSTD_compressBound(bytes.len);
	char *to = buf_reserve(packed, bound);
	if (!to)
		return FAULT_DICTIONARY_SHIPPED;
	ZSTD_CCtx **packing = &zstd_of_thread()->packing[way];
	if (!*packing)
		*packing = packing_new(way);
	size_t len = ZSTD_compress2(*packing, to, bound, bytes.data, bytes.len);
	ASSERT(!ZSTD_isError(len)); /* there is room for the worst */
	packed->len += len;
	return FAULT_DICTIONARY_SHIPPED;
}

uint64_t fault_pack(struct slice bytes, struct buf *packed)
{
	return pack(PACK_ONE, bytes, packed);
}

uint64_t fault_pack_many(struct slice bytes, struct buf *packed)
{
	return pack(PACK_MANY, bytes, packed);
}

int fault_unpack(uint64_t dictionary, struct slice packed, uint64_t bytes, struct buf *out)
{
	if (dictionary > FAULT_DICTIONARY_SHIPPED)
		return ERR_VERSION;
	char *to = buf_reserve(out, (size_t)bytes);
	if (!to)
		return ERR_LIMIT;
	pthread_once(&dictionary_once, dictionary_init);
	size_t len = ZSTD_decompress_usingDDict(zstd_of_thread()->unpacking, to, (size_t)bytes,
						packed.data, packed.len,
						dictionary ? dictionary_unpacking : NULL);
	if (ZSTD_isError(len) || len != bytes)
		return ERR_DAMAGED;
	out->len += len;
	return 0;
}
