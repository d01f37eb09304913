/* Sends messages to webhooks, to brokers of AMQP and by mail, from a job. The process that counts
 * the reports of a tenant sends its messages: to each webhook in their order, one at a time, each
 * until it is taken, at least once under its id. What is not taken after some tries, in about half
 * an hour, is given up, and the log names it; it stays in the list of messages. How far each
 * webhook is lies in the table `fault_notes`, so that a restart, or another owner, goes on there. A
 * webhook that is new begins behind the messages that there are then.
 *
 * Mail has a job of its own, since libcurl waits for a server of mail. So only mail waits for that,
 * or while a daily report is made.
 *
 * Threads: the functions here belong to the thread of the executor. */
#ifndef NOTIFY_NOTIFY_H
#define NOTIFY_NOTIFY_H

#include "fault/fault.h"
#include "notify/webhook.h"

enum {
	NOTIFY_WEBHOOKS_MAX = 100,
	NOTIFY_BROKERS_MAX = 16, /* of them; each has a job and a connection of its own */
};

struct notify_options {
	struct fault *fault;
	struct executor *executor;
	const struct webhook *webhooks;      /* the caller's, until it is over */
	size_t count;                        /* at least 1 */
	bool mails;                          /* those that mail; else all others */
	bool internal;                       /* they may be at internal addresses */
	struct slice secret;                 /* the caller's; len 0: nothing is signed */
	const char *mail_server, *mail_from; /* post.h; the caller's */
};

struct notify;

struct notify *notify_start(const struct notify_options *options);
void notify_stop(struct notify *notify);
bool notify_is_over(const struct notify *notify);
/* When it is over. NULL is allowed. */
void notify_free(struct notify *notify);

#endif
