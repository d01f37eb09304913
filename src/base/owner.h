/* What travels through callbacks as void * says what it is: a struct that has a `magic`, set when
 * it is made and cleared when it ends, is looked at where it comes back. Another struct, or one
 * that has ended, stops the process there and not later. */
#ifndef BASE_OWNER_H
#define BASE_OWNER_H

#include "base/base.h"

/* The magic number of struct `name`: made of its name and its size, never 0. */
#define MAGIC_OF(name)                                                                             \
	((uint32_t) #name[0] << 24 ^ (uint32_t) #name[sizeof(#name) / 3] << 17 ^                   \
	 (uint32_t) #name[sizeof(#name) / 2] << 10 ^ (uint32_t) #name[sizeof(#name) - 2] << 3 ^    \
	 (uint32_t)(sizeof(#name) + sizeof(struct name)) * 0x9e3779b1u)

#define ASSERT_IS(name, ptr) ASSERT((ptr)->magic == MAGIC_OF(name))

/* The struct `name` that was given away as `owner`. */
#define FROM_OWNER(name, owner)                                                                    \
	({                                                                                         \
		struct name *from_owner_ = (owner);                                                \
		ASSERT_IS(name, from_owner_);                                                      \
		from_owner_;                                                                       \
	})

#endif
