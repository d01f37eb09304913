/* The doors besides HTTP, as the configuration wants them: line protocol over TCP and UDP, and
 * OpenTSDB's telnet commands. The loop's thread. */
#ifndef CMD_DOORS_H
#define CMD_DOORS_H

#include "base/base.h"

struct conf;
struct ingest;
struct loop;
struct doors;

/* `conf` outlives them. On an error nothing is open; `e` names the option. */
int doors_open(const struct conf *conf, struct loop *loop, struct ingest *ingest,
	       struct doors **doors, struct errbuf *e) MUST_CHECK;
/* Stores what has been received, within `grace_ms`; then calls `done`. */
void doors_stop(struct doors *doors, int64_t grace_ms, void (*done)(void *owner), void *owner);
void doors_free(struct doors *doors); /* NULL is allowed */

#endif
