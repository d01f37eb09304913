/* A password that somebody gives to a command: typed, or the first line of a file. Never an
 * argument, which everybody on the machine can see. */
#ifndef CMD_CLIENT_PASSWORD_H
#define CMD_CLIENT_PASSWORD_H

#include "auth/password.h"

/* One byte more than a password may have, so that one that is too long is seen to be; and a zero.
 */
enum { CLIENT_PASSWORD_BYTES = PASSWORD_MAX_BYTES + 2 };

/* `file`: `-` is standard input; NULL: it is typed twice on the terminal, which does not show it.
 * ERR_INVALID, or a system error, with a sentence; what it gives may be a password. */
int client_password_read(const char *file, char text[CLIENT_PASSWORD_BYTES],
			 struct errbuf *e) MUST_CHECK;

#endif
