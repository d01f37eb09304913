/* Time zones by name. A zone is read from the system's files the first time that it is asked for
 * and kept; ZONES_MAX of them, then the one used longest ago makes room. `UTC` needs no file.
 *
 * One thread at a time. */
#ifndef WIRE_ZONES_H
#define WIRE_ZONES_H

#include "base/base.h"
#include "wire/tzif.h"

struct files;

#define ZONES_FOLDER "/usr/share/zoneinfo"

enum { ZONES_MAX = 16, ZONE_NAME_MAX_BYTES = 64 };

struct zones;

/* `folder` is where the files are. */
struct zones *zones_new(struct files *files, const char *folder);
void zones_free(struct zones *zones); /* NULL is allowed */

/* Whether it may be the name of a zone: parts of letters, digits, `_`, `+` and `-` between single
 * slashes, so that no name leads out of the folder. */
bool zone_name_valid(struct slice name);

/* *zone stays until the next call. ERR_INVALID with a sentence: no such name, or its file is not
 * one. */
int zones_get(struct zones *zones, struct slice name, const struct zone **zone,
	      struct errbuf *e) MUST_CHECK;

#endif
