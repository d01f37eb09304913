/* Keeps a poller's inventory as a server has it, and tells the server how polling goes.
 *
 * Every FOLLOW_EVERY_MS it asks GET /api/pollers/NAME/inventory, which costs nothing while nothing
 * has changed, and sends to /api/pollers/NAME/report what has changed of the devices. The last
 * inventory lies in a file, from which a poller starts while the server is away. An inventory that
 * cannot be read changes nothing; why, the server is told.
 *
 * Threads: one of its own, which blocks in requests; the functions here are the owner's. */
#ifndef CMD_REMOTE_FOLLOW_H
#define CMD_REMOTE_FOLLOW_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/exec.h"
#include "base/file.h"

struct conf;
struct remote_follow;
struct remote_handover;
struct poller;
struct queue;

enum {
	FOLLOW_EVERY_MS = 2000,
	FOLLOW_TIMEOUT_MS = 30000, /* of one request */
};

/* What it points to outlives it. */
struct remote_follow_options {
	const char *server, *name; /* of the poller */
	const char *token;         /* NULL: it shows none */
	const char *ca;            /* as http_client_options have it */
	const char *file;          /* where the last inventory lies */
	const struct conf *conf;   /* names the secrets file */
	struct files *files;
	struct clock *clock;
	struct poller *poller;
	struct remote_handover *handover;
	struct queue *spool;
	const atomic_bool *cancelled; /* set before remote_follow_stop */
	struct executor *executor;    /* where `stopped` runs */
};

/* Reads the file, so that polling begins at once; one that is not there, or not of this poller, is
 * no error. */
struct remote_follow *remote_follow_new(const struct remote_follow_options *options);
/* Reads the secrets file again with the next inventory, which is asked for at once. */
void remote_follow_refresh(struct remote_follow *follow);
void remote_follow_stop(struct remote_follow *follow, void (*stopped)(void *owner), void *owner);

#endif
