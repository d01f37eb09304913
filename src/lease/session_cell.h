/* Private to lease/: what a session's cell says, as JSON.
 *
 *   {"version": 1, "holder": "h1-00c0ffee00c0ffee", "name": "h1", "address": "10.0.0.1:8470",
 *    "roles": ["rollup", "share"], "at": 1599999880000, "until": 1600000000000}
 *
 * `holder`: the name of the cell, too; `address` empty: none is known; `at`: when it was renewed,
 * by the holder's clock, in ms, as `until`. Roles that this program does not know are skipped. */
#ifndef LEASE_SESSION_CELL_H
#define LEASE_SESSION_CELL_H

#include "base/buf.h"
#include "base/mem.h"

enum session_role {
	SESSION_ROLLS_UP = 1 << 0,
	SESSION_SHARES = 1 << 1, /* and takes no more partitions than others that share */
	SESSION_OWNS_STREAMS = 1 << 2,
};

struct session_cell {
	struct slice holder, name, address;
	unsigned roles; /* enum session_role */
	int64_t at_ms, until_ms;
};

void session_cell_put(const struct session_cell *cell, struct buf *out);
/* The texts are in `text` or in the arena. ERR_INVALID: it is none; ERR_VERSION: it is of a later
 * program; each with a sentence. */
int session_cell_read(struct slice text, struct arena *arena, struct session_cell *cell,
		      struct errbuf *e) MUST_CHECK;

#endif
