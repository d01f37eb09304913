/* Which host rolls up which partitions, as a file says: host names and lists of partitions,
 *
 *     {"h1": "0-31", "h2": "32-63"}       or       h1: 0-31
 *                                                  h2: [32-40, 41-63]
 *
 * One thread; no state. */
#ifndef LEASE_OWNERS_H
#define LEASE_OWNERS_H

#include "conf/conf.h"
#include "conf/tree.h"
#include "lease/partition.h"

/* *own: the partitions of `host`, none if it is not in the file. *all: those of all hosts.
 * ERR_INVALID with file and line: lists that overlap, or something that is not a list. */
int owners_read(const struct conf_node *root, uint32_t partitions, struct slice host,
		struct partitions *own, struct partitions *all, struct errbuf *e) MUST_CHECK;

/* What rollup.own and rollup.own_by_host say of this host. *share: all are its own, together with
 * others that share. Partitions that no host has are named in the log. ERR_INVALID with a sentence
 * that names the option, or the file's line. */
int owners_configured(const struct conf *conf, struct files *files, struct slice host,
		      struct partitions *own, bool *share, struct errbuf *e) MUST_CHECK;

#endif
