/* Compressing what is kept of reports: by zstd, with a dictionary that has a number. Pure; any
 * thread. */
#ifndef FAULT_PACK_H
#define FAULT_PACK_H

#include "base/buf.h"

enum { FAULT_DICTIONARY_SHIPPED = 1 }; /* the one that is part of the program; 0: none */

/* Compresses bytes, and appends them. Returns the number of the dictionary. */
uint64_t fault_pack(struct slice bytes, struct buf *packed);
/* The same of many reports, one behind the other: slower, and into fewer bytes. */
uint64_t fault_pack_many(struct slice bytes, struct buf *packed);
/* Appends the bytes, of which it is known how many they are. ERR_DAMAGED, ERR_LIMIT;
 * ERR_VERSION: of a dictionary that is not known. */
int fault_unpack(uint64_t dictionary, struct slice packed, uint64_t bytes,
		 struct buf *out) MUST_CHECK;

#endif
