/* The door of the agent's control (control.h): lines over a socket of the machine that its owner
 * alone may open, and where that is asked for over TCP on 127.0.0.1.
 *
 * Commands are answered in their order; while a reply is not taken nothing more is read. What
 * begins with HTTP or another protocol is closed and nothing of it done, since browsers send what
 * pages of other sites want sent.
 *
 * Bounds: CONTROL_DOOR_CONNS_MAX connections by the socket and as many by the port, a line of
 * CHUKWA_LINE_MAX_BYTES, a minute without a line. Threads: the loop's, which is the control's. */
#ifndef AGENT_CONTROL_DOOR_H
#define AGENT_CONTROL_DOOR_H

#include "agent/control.h"
#include "loop/loop.h"

enum { CONTROL_DOOR_CONNS_MAX = 32, CONTROL_DOOR_IDLE_MS = 60000 };

struct control_door;

struct control_door_options {
	struct loop *loop;
	struct control *control;
	const char *path; /* of the socket, which nobody else serves; NULL: none */
	uint16_t port;    /* 0: none */
};

int control_door_open(const struct control_door_options *options, struct control_door **door,
		      struct errbuf *e) MUST_CHECK;
/* Closes what is open; `closed` follows, and the door is gone. */
void control_door_close(struct control_door *door, void (*closed)(void *owner), void *owner);

#endif
