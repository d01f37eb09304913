/* Which shapes each tenant has, in memory: a list of one tenant's series passes over no other's,
 * and that a tenant has none costs no look into the store. Private to store/lmdb.
 *
 * Tenants are told apart by their hash: who reads a shape compares the name. Shapes stay for as
 * long as the store is open, as their numbers do. Not for several threads at once: under the
 * registry's lock. Zeroed: empty. */
#ifndef STORE_LMDB_TENANT_SHAPES_H
#define STORE_LMDB_TENANT_SHAPES_H

#include "base/hash_table.h"

struct shapes_of_tenant {
	struct hash128 hash;
	uint32_t *ids; /* ascending */
	uint32_t count, cap;
};

struct tenant_shapes {
	struct hash_table tenants; /* of struct shapes_of_tenant */
	size_t id_bytes;
};

/* `id` is above all that were added before. */
void tenant_shapes_add(struct tenant_shapes *shapes, struct slice tenant, uint32_t id);
/* The tenant's first shape from `from` on; 0: there is none. */
uint32_t tenant_shapes_next(const struct tenant_shapes *shapes, struct slice tenant, uint32_t from);
size_t tenant_shapes_bytes(const struct tenant_shapes *shapes);
void tenant_shapes_release(struct tenant_shapes *shapes);

#endif
