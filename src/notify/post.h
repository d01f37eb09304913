/* POSTs of JSON to other servers, mail, and messages that are published by AMQP, several at once,
 * for one thread that may wait. The only file that knows libcurl's side of it; a broker has a
 * thread of its own (publisher.h).
 *
 * Where internal addresses are refused (address.h), the one that is connected to is looked at, not
 * its name, which may mean another one by then. Nothing is redirected, no proxy is asked, TLS is
 * verified, and what is answered is thrown away. */
#ifndef NOTIFY_POST_H
#define NOTIFY_POST_H

#include <pthread.h>

#include "base/buf.h"
#include "broker/broker.h"
#include "loop/job.h"

enum { POST_REASON_BYTES = 300 };

struct posts;

enum { POST_SOCKETS_MAX = 64 };

/* Connections with servers of mail, for whose answers libcurl waits, also to say goodbye: another
 * thread may end that. */
struct post_sockets {
	pthread_mutex_t lock; /* guards the rest */
	int list[POST_SOCKETS_MAX];
	size_t count;
	bool shut;
};
void post_sockets_init(struct post_sockets *sockets);
void post_sockets_release(struct post_sockets *sockets);
/* Those that are open, and all that are opened from now on. Any thread. */
void post_sockets_shut(struct post_sockets *sockets);

/* The job is the one whose thread this is; the sockets outlive it. */
struct posts *posts_new(struct job *job, struct post_sockets *sockets, bool internal);
/* Those that are under way are broken off. */
void posts_free(struct posts *posts);

struct post_message {
	const char *url;
	const char *id;      /* X-Granary-Id */
	struct slice body;   /* JSON; it is copied */
	struct slice secret; /* len 0: it is not signed */
	int64_t wall_s;      /* the time that is signed with it */
};
/* It is taken when the head of the answer says 2xx, whatever follows that.
 * X-Granary-Signature: t=TIME,v1=HEX, the HMAC-SHA256 (RFC 2104) of `TIME.BODY` by the secret. */
void posts_start(struct posts *posts, const struct post_message *message, void *owner);

struct post_mail {
	const char *server; /* smtp://HOST:PORT or smtps://HOST:PORT; it may be internal */
	const char *from, *to;
	const char *id;       /* Message-ID is of it */
	struct slice subject; /* UTF-8, without line breaks */
	int64_t wall_s;       /* Date */
	struct slice text;    /* UTF-8; it is copied */
};
void posts_start_mail(struct posts *posts, const struct post_mail *mail, void *owner);

/* Messages to the same `broker` share a thread, and are published one after the other. The address
 * is the caller's until the end, as are the texts of the message but for `id`; the body is copied.
 * It may be internal. ERR_LIMIT with a sentence: there is no thread for it. */
int posts_start_publishing(struct posts *posts, const struct amqp_address *broker,
			   const struct broker_publication *message, void *owner,
			   struct errbuf *e) MUST_CHECK;

/* Waits until something has happened, at most so long. */
void posts_wait(struct posts *posts, int ms);

struct post_result {
	void *owner;
	bool taken; /* the server answered 2xx, took the mail, or confirmed the message */
	char reason[POST_REASON_BYTES];
};
/* One that has come to an end. False: none has. */
bool posts_take(struct posts *posts, struct post_result *result) MUST_CHECK;

#endif
