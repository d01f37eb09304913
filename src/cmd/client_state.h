/* How far an export or import of FILE came, beside it in FILE.state, so that the same command goes
 * on after whatever ended it:
 *
 *     granary export 1
 *     3000 0
 *     http://127.0.0.1:8470
 *     /api/export?tenant=default
 *     1598284275001 cpu_idle,host=h-1;
 *
 * The name of the command, numbers, the server, what was asked, and, of an export, where it goes
 * on. The file is replaced whole. One that is cut, or is not of this form, is refused, and nothing
 * is changed.
 *
 * Blocking; one thread. */
#ifndef CMD_CLIENT_STATE_H
#define CMD_CLIENT_STATE_H

#include "base/buf.h"

struct command_args;

enum { CLIENT_STATE_NUMBERS_MAX = 10, CLIENT_STATE_PATH_BYTES = 4096 };

/* Its server is that of the command, and a state of another one is refused. */
struct client_state {
	const struct command_args *args; /* who complains; its command names the state */
	char path[CLIENT_STATE_PATH_BYTES];
	struct slice asked;                          /* one line */
	uint64_t *numbers[CLIENT_STATE_NUMBERS_MAX]; /* the caller's, up to NULL */
	struct buf *next;                            /* the caller's, one line; NULL: none */
};

/* False: the name is too long. */
bool client_state_set_path(struct client_state *state, const char *file) MUST_CHECK;
/* An error has been complained of. */
int client_state_save(const struct client_state *state) MUST_CHECK;
/* Sets the numbers, and `next`; after an error they are as they were. ERR_NOT_FOUND: there is none.
 * ERR_EXISTS: something else was asked of this server. Other errors have been complained of. */
int client_state_read(const struct client_state *state) MUST_CHECK;
/* One that is not there is removed, too. */
int client_state_remove(const struct client_state *state) MUST_CHECK;

#endif
