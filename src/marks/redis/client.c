#include "marks/redis/client.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "loop/job.h"

enum {
	SLICE_MS = 50, /* between two looks at the time, while nothing comes */
	LOOK_MS = 1000,
	RETRY_FIRST_MS = 100,
	RETRY_MAX_MS = 5000,
	LINES_A_MINUTE = 3,
	SENT_AT_ONCE = 64,             /* requests: whoever comes later waits for their answers */
	ANSWERS_MAX_BYTES = 256 << 20, /* to these */
	ELEMENTS_MAX = 1 << 24,        /* of an array */
};

#define UNASKED  "it answers what nobody has asked"
#define TOO_LONG "its answer is too long"

struct redis_client {
	struct redis_client_options options;
	struct job *job;
	struct task_queue ended; /* where the job says that it is over */
	struct task_answer over;

	/* The thread's. */
	redisContext *context;               /* NULL: not connected */
	redisReplyObjectFunctions functions; /* its reader's */
	bool broken;                         /* the connection is of no use any more */
	int64_t next_ms;                     /* of the next try, or look; monotonic */
	int64_t retry_ms;
	struct random random;
	struct log_rate lines;
	struct redis_request login;
	const char **words; /* of the command that is being sent */
	size_t *lengths;
	size_t word_room;

	atomic_bool up;
	pthread_mutex_t lock; /* guards the rest, and that `up` becomes true or false */
	pthread_cond_t changed;
	struct redis_request *first, **last; /* have come, are not sent */
	bool woken, tried;
	char why[REDIS_WHY_BYTES];
};

static int64_t redis_client_now_ms(void)
{
	return clock_mono_ms(clock_real());
}

/* ---- What others see ------------------------------------------------------------------------- */

bool redis_client_is_up(const struct redis_client *client)
{
	return atomic_load(&client->up);
}

void redis_client_why(struct redis_client *client, char why[REDIS_WHY_BYTES])
{
	pthread_mutex_lock(&client->lock);
	memcpy(why, client->why, REDIS_WHY_BYTES);
	pthread_mutex_unlock(&client->lock);
}

static void redis_client_set_why(struct redis_client *client, const char *why)
{
	pthread_mutex_lock(&client->lock);
	snprintf(client->why, sizeof(client->why), "%s", why);
	pthread_mutex_unlock(&client->lock);
}

static void redis_client_set_up(struct redis_client *client, bool up)
{
	pthread_mutex_lock(&client->lock);
	atomic_store(&client->up, up);
	pthread_mutex_unlock(&client->lock);
}

static void redis_client_set_flag(struct redis_client *client, bool *flag)
{
	pthread_mutex_lock(&client->lock);
	*flag = true;
	pthread_cond_broadcast(&client->changed);
	pthread_mutex_unlock(&client->lock);
}

void redis_client_wake(struct redis_client *client)
{
	redis_client_set_flag(client, &client->woken);
}

void redis_client_wait_first(struct redis_client *client)
{
	pthread_mutex_lock(&client->lock);
	if (!client->tried)
		cond_wait_ms(&client->changed, &client->lock, (int)client->options.timeout_ms);
	pthread_mutex_unlock(&client->lock);
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void redis_client_say_over(struct task *task)
{
	struct redis_request *request = CONTAINER_OF(task, struct redis_request, over);
	request->done(request, request->err);
}

static void redis_client_end_request(struct redis_request *request, int err)
{
	request->err = err;
	request->over.run = redis_client_say_over;
	request->executor->post(request->executor, &request->over);
}

static void redis_client_set_deadline(struct redis_request *request)
{
	request->deadline_ms = redis_client_now_ms() + request->client->options.timeout_ms;
}

void redis_ask(struct redis_request *request)
{
	struct redis_client *client = request->client;
	request->next = NULL;
	redis_client_set_deadline(request);
	pthread_mutex_lock(&client->lock);
	bool sent = atomic_load(&client->up) && request->count && !request->text.failed;
	if (sent) {
		*client->last = request;
		client->last = &request->next;
		pthread_cond_broadcast(&client->changed);
	}
	pthread_mutex_unlock(&client->lock);
	if (!sent)
		redis_client_end_request(request, request->count ? ERR_RETRY : 0);
}

/* Those that have come, in their order, up to `max`. */
static struct redis_request *redis_client_take(struct redis_client *client, size_t max)
{
	struct redis_request *taken = client->first, **end = &client->first;
	for (size_t n = 0; *end && n < max; n++)
		end = &(*end)->next;
	client->first = *end;
	if (!client->first)
		client->last = &client->first;
	if (end != &client->first)
		*end = NULL;
	return taken;
}

/* ---- Ends ------------------------------------------------------------------------------------ */

/* The first cause is the one that counts. */
static int redis_client_fail(struct redis_client *client, const char *why)
{
	if (client->broken)
		return ERR_RETRY;
	client->broken = true;
	redis_client_set_up(client, false);
	redis_client_set_why(client, why);
	log_rated(&client->lines, redis_client_now_ms(), LOG_WARN,
		  "roll-ups: Redis at %s:%d: %s; the server connects again",
		  client->options.url.host, client->options.url.port, why);
	return ERR_RETRY;
}

/* The next try comes later than the last did, and not when those of others come. */
static void redis_client_rest(struct redis_client *client)
{
	double part = 0.5 + random_unit(&client->random) / 2;
	redisFree(client->context); /* NULL is allowed */
	client->context = NULL;
	client->broken = false;
	client->next_ms = redis_client_now_ms() + (int64_t)((double)client->retry_ms * part);
	client->retry_ms =
		client->retry_ms * 2 < RETRY_MAX_MS ? client->retry_ms * 2 : RETRY_MAX_MS;
	pthread_mutex_lock(&client->lock);
	struct redis_request *left = redis_client_take(client, SIZE_MAX);
	pthread_mutex_unlock(&client->lock);
	while (left) {
		struct redis_request *request = left;
		left = request->next;
		redis_client_end_request(request, ERR_RETRY);
	}
	redis_client_set_flag(client, &client->tried);
}

/* ---- A round trip ---------------------------------------------------------------------------- */

static void redis_client_put_command(struct redis_client *client,
				     const struct redis_request *request, size_t command)
{
	size_t first = request->commands[command];
	size_t end =
		command + 1 < request->count ? request->commands[command + 1] : request->word_count;
	size_t count = end - first, at = first ? request->ends[first - 1] : 0;
	if (client->word_room < count) {
		client->word_room = count * 2;
		client->words =
			mem_resize_array(client->words, client->word_room, sizeof(*client->words));
		client->lengths = mem_resize_array(client->lengths, client->word_room,
						   sizeof(*client->lengths));
	}
	for (size_t i = 0; i < count; i++) {
		client->words[i] = request->text.data + at;
		client->lengths[i] = request->ends[first + i] - at;
		at = request->ends[first + i];
	}
	if (redisAppendCommandArgv(client->context, (int)count, client->words, client->lengths) !=
	    REDIS_OK)
		redis_client_fail(client, client->context->errstr);
}

/* Reading and writing look at the time every SLICE_MS, see redis_client_connect. */
static bool redis_client_may_wait(struct redis_client *client, int64_t deadline_ms)
{
	if (job_is_stopping(client->job))
		client->broken = true;
	else if (redis_client_now_ms() >= deadline_ms)
		redis_client_fail(client, "it does not answer");
	return !client->broken;
}

static void redis_client_send(struct redis_client *client, int64_t deadline_ms)
{
	int all = 0;
	while (!all && redis_client_may_wait(client, deadline_ms)) {
		if (redisBufferWrite(client->context, &all) != REDIS_OK)
			redis_client_fail(client, client->context->errstr);
	}
}

/* NULL: the connection is broken. *bytes have been read since they were sent. */
static redisReply *redis_client_read(struct redis_client *client, int64_t deadline_ms,
				     size_t *bytes)
{
	redisContext *context = client->context;
	void *reply = NULL;
	while (!client->broken) {
		if (redisReaderGetReply(context->reader, &reply) != REDIS_OK)
			redis_client_fail(client, context->reader->err == REDIS_ERR_OOM
							  ? TOO_LONG
							  : context->reader->errstr);
		if (reply || !redis_client_may_wait(client, deadline_ms))
			return reply;
		size_t before = context->reader->len;
		if (redisBufferRead(context) != REDIS_OK)
			redis_client_fail(client, context->errstr);
		*bytes += context->reader->len - before;
		if (*bytes > ANSWERS_MAX_BYTES)
			redis_client_fail(client, TOO_LONG);
	}
	return NULL;
}

static void redis_client_take_answer(struct redis_request *request, const redisReply *reply)
{
	bool error = reply->type == REDIS_REPLY_ERROR && !request->takes_errors;
	/* The first one is why the others are. */
	if (error && !request->err)
		redis_client_set_why(request->client, reply->str);
	if (error)
		request->err = ERR_RETRY;
	else if (request->answer)
		request->answer(request, request->answered, reply);
}

/* ERR_RETRY: the connection is broken, or one of the answers is an error. */
static int redis_client_read_answers(struct redis_request *request, size_t *bytes)
{
	struct redis_client *client = request->client;
	request->err = 0;
	for (request->answered = 0; request->answered < request->count; request->answered++) {
		redisReply *reply = redis_client_read(client, request->deadline_ms, bytes);
		if (!reply)
			return ERR_RETRY;
		redis_client_take_answer(request, reply);
		freeReplyObject(reply);
	}
	return request->err;
}

/* The answers go to the requests in their order. A request that waited too long for its turn is as
 * good as one that is not answered: its marks go to the store in time. Of requests with an executor
 * `done` follows. */
static void redis_client_exchange(struct redis_client *client, struct redis_request *first)
{
	const redisReader *reader = client->context->reader;
	size_t bytes = 0;
	for (struct redis_request *r = first; r && !client->broken; r = r->next) {
		for (size_t i = 0; i < r->count; i++)
			redis_client_put_command(client, r, i);
	}
	redis_client_send(client, first->deadline_ms);
	while (first) {
		struct redis_request *request = first;
		first = request->next;
		request->err = redis_client_read_answers(request, &bytes);
		if (request->executor)
			redis_client_end_request(request, request->err);
	}
	if (!client->broken && reader->pos < reader->len)
		redis_client_fail(client, UNASKED);
}

int redis_ask_now(struct redis_request *request)
{
	request->next = NULL;
	redis_client_set_deadline(request);
	if (!request->client->context || request->client->broken)
		return ERR_RETRY;
	redis_client_exchange(request->client, request);
	return request->err;
}

/* ---- Connecting ------------------------------------------------------------------------------ */

void redis_client_ready(struct redis_client *client)
{
	if (client->broken)
		return;
	client->retry_ms = RETRY_FIRST_MS;
	client->next_ms = redis_client_now_ms() + LOOK_MS;
	redis_client_set_why(client, "");
	redis_client_set_up(client, true);
	redis_client_set_flag(client, &client->tried);
}

void redis_client_refuse(struct redis_client *client, const char *why)
{
	(void)redis_client_fail(client, why);
}

void redis_client_greet_again(struct redis_client *client)
{
	redis_client_set_up(client, false);
}

/* AUTH with one word is of the default user, for servers before version 6. */
static void redis_client_log_in(struct redis_client *client)
{
	const struct redis_url *url = &client->options.url;
	struct redis_request *login = &client->login;
	char why[REDIS_WHY_BYTES];
	redis_request_clear(login);
	if (url->password[0]) {
		redis_command(login, SLICE("AUTH"));
		if (url->user[0])
			redis_word(login, slice_of(url->user));
		redis_word(login, slice_of(url->password));
	}
	redis_command(login, SLICE("SELECT"));
	redis_number(login, (uint64_t)url->database);
	if (redis_ask_now(login)) {
		redis_client_why(client, why);
		(void)redis_client_fail(client, why);
	}
}

/* hiredis takes room for as many elements as the server says, before any of them has come. */
static void *redis_client_make_array(const redisReadTask *task, int elements)
{
	const redisReplyObjectFunctions *hiredis = task->privdata;
	return elements <= ELEMENTS_MAX ? hiredis->createArray(task, elements) : NULL;
}

static void redis_client_connect(struct redis_client *client)
{
	const struct redis_url *url = &client->options.url;
	int64_t timeout_ms = client->options.timeout_ms;
	struct timeval timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	struct timeval slice = {0, SLICE_MS * 1000};
	redisContext *context = redisConnectWithTimeout(url->host, url->port, timeout);
	ASSERT(context); /* NULL is no memory */
	client->context = context;
	if (!context->err && redisSetTimeout(context, slice) == REDIS_OK) {
		context->flags &= ~REDIS_BLOCK; /* that nothing came within the slice is no error */
		client->functions = *context->reader->fn;
		client->functions.createArray = redis_client_make_array;
		context->reader->privdata = context->reader->fn;
		context->reader->fn = &client->functions;
		redis_client_log_in(client);
	} else {
		(void)redis_client_fail(client, context->errstr);
	}
}

/* While it is idle nothing may come: it would be taken for an answer. */
static void redis_client_look_for_more(struct redis_client *client)
{
	char byte;
	ssize_t there = recv(client->context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
	if (there >= 0)
		(void)redis_client_fail(client, there ? UNASKED : "it has ended the connection");
}

/* ---- The thread ------------------------------------------------------------------------------ */

/* Waits until there is something to be done, and gives the requests that have come. */
static struct redis_request *redis_client_wait(struct redis_client *client, bool *woken)
{
	pthread_mutex_lock(&client->lock);
	int64_t left_ms = client->next_ms - redis_client_now_ms();
	while (!client->first && !client->woken && left_ms > 0 && !job_is_stopping(client->job)) {
		cond_wait_ms(&client->changed, &client->lock, (int)left_ms);
		left_ms = client->next_ms - redis_client_now_ms();
	}
	*woken = client->woken;
	client->woken = false;
	struct redis_request *taken = redis_client_take(client, SENT_AT_ONCE);
	pthread_mutex_unlock(&client->lock);
	return taken;
}

static void redis_client_run(struct job *job, void *owner)
{
	struct redis_client *client = owner;
	const struct redis_client_options *options = &client->options;
	sigset_t broken_pipe; /* hiredis writes to connections that have gone */
	sigemptyset(&broken_pipe);
	sigaddset(&broken_pipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL);
	while (!job_is_stopping(job)) {
		bool woken;
		struct redis_request *asked = redis_client_wait(client, &woken);
		bool due = redis_client_now_ms() >= client->next_ms;
		if (client->context)
			redis_client_look_for_more(client);
		if (asked)
			redis_client_exchange(client, asked);
		if (woken)
			options->woken(options->owner);
		if (due && !client->context) {
			redis_client_connect(client);
		} else if (due && !client->broken) {
			client->next_ms = redis_client_now_ms() + LOOK_MS;
			options->look(options->owner);
		}
		if (client->context && !client->broken && !redis_client_is_up(client))
			options->greet(options->owner);
		if (client->broken)
			redis_client_rest(client);
	}
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void redis_client_end(void *owner)
{
	struct redis_client *client = owner;
	client->over.there = true;
}

struct redis_client *redis_client_new(const struct redis_client_options *options)
{
	struct redis_client *client = mem_zalloc(sizeof(*client));
	client->options = *options;
	client->last = &client->first;
	client->retry_ms = RETRY_FIRST_MS;
	client->lines = (struct log_rate){.lines_max = LINES_A_MINUTE};
	random_init(&client->random, random_system_seed());
	pthread_mutex_init(&client->lock, NULL);
	pthread_cond_init(&client->changed, NULL);
	task_queue_init(&client->ended);
	redis_request_init(&client->login, client);
	redis_client_set_why(client, "it is not connected yet");
	return client;
}

int redis_client_start(struct redis_client *client)
{
	return job_start("redis", redis_client_run, redis_client_end, client,
			 &client->ended.executor, &client->job);
}

void redis_client_free(struct redis_client *client)
{
	if (client->job) {
		job_stop(client->job);
		redis_client_wake(client);
		(void)task_queue_wait_for(&client->ended, &client->over);
		job_free(client->job);
	}
	ASSERT(!client->first);
	redisFree(client->context); /* NULL is allowed */
	redis_request_release(&client->login);
	mem_free(client->words);
	mem_free(client->lengths);
	task_queue_release(&client->ended);
	pthread_cond_destroy(&client->changed);
	pthread_mutex_destroy(&client->lock);
	mem_free(client);
}

struct task_queue *redis_client_queue(struct redis_client *client)
{
	return job_queue(client->job);
}
