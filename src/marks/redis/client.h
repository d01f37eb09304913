/* Private to marks/redis/: the connection with Redis, and what is asked over it.
 *
 * A thread of its own has the connection and alone knows hiredis' part of it. It is a plain loop:
 * wait until somebody asks, send all that was asked meanwhile together, take the answers. Whoever
 * wants something makes a request: some commands, which go out together, and whose answers come
 * together; so a request costs one round trip, and those of several callers share it.
 *
 * After a connection that failed passes more and more time until the next try, up to some seconds,
 * not the same in each process. A connection is up when its owner has greeted the server and has
 * called redis_client_ready. What is asked while it is not up fails at once; what is on its way
 * when the connection breaks fails then, and may have been done or not.
 *
 * The asynchronous interface of hiredis is not used: there one answer more than there were commands
 * ends the process, by an assertion in redisProcessCallbacks. Here it ends the connection. So does
 * whatever else is no proper answer, an answer that is too long, and one that is not whole within
 * the timeout. */
#ifndef MARKS_REDIS_CLIENT_H
#define MARKS_REDIS_CLIENT_H

#include "base/base.h"
#include "base/buf.h"
#include "base/exec.h"
#include "marks/redis/url.h"

struct redis_client;
struct redisReply;

enum { REDIS_WHY_BYTES = 200 };

/* ---- Requests -------------------------------------------------------------------------------- */

struct redis_request {
	struct executor *executor;
	/* On the client's thread, for each command in its order: takes what it needs of the answer.
	 * May be NULL. */
	void (*answer)(struct redis_request *request, size_t command,
		       const struct redisReply *reply);
	/* On the executor. ERR_RETRY: Redis could not be asked, or one of the answers is an error.
	 */
	void (*done)(struct redis_request *request, int err);
	void *owner;
	bool takes_errors; /* an error is an answer like any other */

	/* The client's. */
	struct redis_client *client;
	struct buf text;  /* the words */
	size_t *ends;     /* of each word in `text` */
	size_t *commands; /* the first word of each */
	size_t word_count, word_room, count, room;
	size_t answered;
	int64_t deadline_ms; /* monotonic: the timeout after it was asked */
	int err;
	struct task over;
	struct task_answer waited;
	struct redis_request *next;
};

/* Beginning with {0} and the caller's fields. */
void redis_request_init(struct redis_request *request, struct redis_client *client);
void redis_request_release(struct redis_request *request);
/* A new set of commands. */
void redis_request_clear(struct redis_request *request);
/* A command, whose words follow; `name` is the first. */
void redis_command(struct redis_request *request, struct slice name);
void redis_word(struct redis_request *request, struct slice word);
void redis_number(struct redis_request *request, uint64_t number);
/* On any thread; `done` follows, never from within. */
void redis_ask(struct redis_request *request);
/* Asks, and waits for what `done` would say; executor and `done` are set here. ERR_CANCELLED: the
 * queue was stopped before. */
int redis_ask_wait(struct redis_request *request, struct task_queue *queue) MUST_CHECK;
/* On the client's thread, also while it greets: asks, and gives what `done` would say. */
int redis_ask_now(struct redis_request *request);

/* ---- The connection -------------------------------------------------------------------------- */

/* All are called on the client's thread. */
struct redis_client_options {
	struct redis_url url;
	int64_t timeout_ms; /* for an answer, also to connecting */
	/* It is connected and logged in. The owner asks what it wants to know, and then calls
	 * redis_client_ready or redis_client_refuse. */
	void (*greet)(void *owner);
	/* About every second while it is up. */
	void (*look)(void *owner);
	/* After redis_client_wake. */
	void (*woken)(void *owner);
	void *owner;
};

struct redis_client *redis_client_new(const struct redis_client_options *options);
/* ERR_LIMIT: too many jobs run (loop/job.h). */
int redis_client_start(struct redis_client *client) MUST_CHECK;
/* Waits until its thread has ended: for as long as connecting takes, at most the timeout. No
 * request may be under way. */
void redis_client_free(struct redis_client *client);
/* From any thread. */
bool redis_client_is_up(const struct redis_client *client);
/* Why it is not, or was not the last time; from any thread. */
void redis_client_why(struct redis_client *client, char why[REDIS_WHY_BYTES]);
/* Waits until the first try has ended, or for the timeout: a name may take longer to be found. */
void redis_client_wait_first(struct redis_client *client);
/* From any thread. */
void redis_client_wake(struct redis_client *client);

/* On the client's thread, while it greets. */
void redis_client_ready(struct redis_client *client);
void redis_client_refuse(struct redis_client *client, const char *why);
/* On the client's thread: what the owner knows has to be asked again. */
void redis_client_greet_again(struct redis_client *client);
/* The client's thread waits for the store on it. */
struct task_queue *redis_client_queue(struct redis_client *client);

#endif
