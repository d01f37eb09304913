/* The doors besides HTTP (ingest/listener_protocol.h), as the configuration wants them. The loop's
 * thread. */
#ifndef CMD_SERVE_LISTENERS_H
#define CMD_SERVE_LISTENERS_H

#include "base/base.h"

struct conf;
struct ingest;
struct loop;
struct serve_listeners;

/* What is wrong with their options; `e` names the option. Nothing is opened. */
int serve_listeners_check(const struct conf *conf, struct errbuf *e) MUST_CHECK;
/* `conf` outlives them. On an error nothing is open; `e` names the option. */
int serve_listeners_open(const struct conf *conf, struct loop *loop, struct ingest *ingest,
			 struct serve_listeners **doors, struct errbuf *e) MUST_CHECK;
/* How many connections they may have together. */
size_t serve_listeners_connections_max(const struct conf *conf);
/* Stores what has been received, within `grace_ms`; then calls `done`. */
void serve_listeners_stop(struct serve_listeners *doors, int64_t grace_ms,
			  void (*done)(void *owner), void *owner);
void serve_listeners_free(struct serve_listeners *doors); /* NULL is allowed */

#endif
