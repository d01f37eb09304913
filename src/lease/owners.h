/* Which host rolls up which partitions, as a file says: host names and lists of partitions,
 *
 *     {"h1": "0-31", "h2": "32-63"}       or       h1: 0-31
 *                                                  h2: [32-40, 41-63]
 *
 * Pure. */
#ifndef ROLLUP_OWNERS_H
#define ROLLUP_OWNERS_H

#include "conf/tree.h"
#include "lease/partition.h"

/* What `host` has: nothing if it is not in the file. *all: what any of them has. Lists that overlap
 * are refused, with file and line, as is what is no list. */
int rollup_owners_read(const struct conf_node *root, uint32_t partitions, struct slice host,
		       struct rollup_partitions *own, struct rollup_partitions *all,
		       struct errbuf *e) MUST_CHECK;

#endif
