#include "marks/redis/client.h"

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "loop/loop.h"
#include "loop/thread.h"

enum {
	TICK_MS = 50,
	LOOK_MS = 1000,
	RETRY_FIRST_MS = 100,
	RETRY_MAX_MS = 5000,
	LINES_A_MINUTE = 3,
};

enum redis_client_state { DOWN, CONNECTS, GREETS, UP };

struct redis_client {
	struct redis_client_options options;
	struct loop_thread *thread;
	struct loop *loop;
	struct loop_timer *ticks;
	struct loop_watch *watch;
	unsigned watched; /* events */
	redisAsyncContext *context;
	enum redis_client_state state;
	int64_t deadline_ms; /* of connecting and greeting */
	int64_t next_ms, retry_ms, look_ms;
	struct random random;
	struct redis_request login;
	struct redis_request *first, **last; /* sent, not over */
	struct task begin, stop, drop;
	bool drop_posted;
	struct log_rate lines;
	atomic_bool up;
	pthread_mutex_t lock; /* guards the next */
	pthread_cond_t changed;
	char why[REDIS_WHY_BYTES];
	bool tried, over;
};

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

static void redis_client_set_flag(struct redis_client *client, bool *flag)
{
	pthread_mutex_lock(&client->lock);
	*flag = true;
	pthread_cond_broadcast(&client->changed);
	pthread_mutex_unlock(&client->lock);
}

static void redis_client_wait_flag(struct redis_client *client, const bool *flag)
{
	pthread_mutex_lock(&client->lock);
	while (!*flag)
		pthread_cond_wait(&client->changed, &client->lock);
	pthread_mutex_unlock(&client->lock);
}

void redis_client_wait_first(struct redis_client *client)
{
	pthread_mutex_lock(&client->lock);
	if (!client->tried)
		cond_wait_ms(&client->changed, &client->lock, (int)client->options.timeout_ms);
	pthread_mutex_unlock(&client->lock);
}

struct executor *redis_client_executor(struct redis_client *client)
{
	return loop_executor(client->loop);
}

/* ---- Ends ------------------------------------------------------------------------------------ */

static void redis_client_say_down(struct redis_client *client, const char *why)
{
	redis_client_set_why(client, why);
	log_rated(&client->lines, loop_now_ms(client->loop), LOG_WARN,
		  "roll-ups: Redis at %s:%d: %s; the server connects again",
		  client->options.url.host, client->options.url.port, why);
}

/* The next try comes later than the last did, and not when those of others come. */
static void redis_client_rest(struct redis_client *client)
{
	double part = 0.5 + random_unit(&client->random) / 2;
	client->state = DOWN;
	atomic_store(&client->up, false);
	client->context = NULL;
	client->next_ms = loop_now_ms(client->loop) + (int64_t)((double)client->retry_ms * part);
	client->retry_ms =
		client->retry_ms * 2 < RETRY_MAX_MS ? client->retry_ms * 2 : RETRY_MAX_MS;
	redis_client_set_flag(client, &client->tried);
}

/* Not from within an answer: hiredis still needs its context there. */
static void redis_client_drop_now(struct redis_client *client)
{
	redisAsyncContext *context = client->context;
	if (!context)
		return;
	redis_client_rest(client);
	redisAsyncFree(context);
}

static void redis_client_run_drop(struct task *task)
{
	struct redis_client *client = CONTAINER_OF(task, struct redis_client, drop);
	client->drop_posted = false;
	redis_client_drop_now(client);
}

static void redis_client_drop(struct redis_client *client, const char *why)
{
	struct executor *executor = loop_executor(client->loop);
	redis_client_say_down(client, why);
	atomic_store(&client->up, false);
	if (!client->drop_posted)
		executor->post(executor, &client->drop);
	client->drop_posted = true;
}

/* ---- Requests -------------------------------------------------------------------------------- */

static void redis_client_run_over(struct task *task)
{
	struct redis_request *request = CONTAINER_OF(task, struct redis_request, over);
	request->done(request, request->err);
}

static void redis_client_end_request(struct redis_request *request)
{
	request->over.run = redis_client_run_over;
	request->executor->post(request->executor, &request->over);
}

static void redis_client_take_answer(struct redis_request *request, const redisReply *reply)
{
	bool error = reply && reply->type == REDIS_REPLY_ERROR;
	/* The first one is why the others are. */
	if (error && !request->takes_errors && !request->err)
		redis_client_set_why(request->client, reply->str);
	if (!reply || (error && !request->takes_errors))
		request->err = ERR_RETRY;
	else if (request->answer)
		request->answer(request, request->answered, reply);
	request->answered++;
}

static void redis_client_unlink_request(struct redis_request *request)
{
	struct redis_client *client = request->client;
	struct redis_request **at = &client->first;
	while (*at != request)
		at = &(*at)->next;
	*at = request->next;
	if (client->last == &request->next)
		client->last = at;
}

static void redis_client_on_reply(UNUSED redisAsyncContext *context, void *reply, void *owner)
{
	struct redis_request *request = owner;
	redis_client_take_answer(request, reply);
	if (request->answered < request->count)
		return;
	redis_client_unlink_request(request);
	redis_client_end_request(request);
}

static bool redis_client_may_send(const struct redis_request *request)
{
	enum redis_client_state state = request->client->state;
	return request->client->context && !request->client->drop_posted && !request->text.failed &&
	       (state == UP || (state == GREETS && request->greets));
}

static void redis_client_send_command(struct redis_request *request, size_t i)
{
	size_t start = request->starts[i];
	size_t end = i + 1 < request->count ? request->starts[i + 1] : request->text.len;
	if (redisAsyncFormattedCommand(request->client->context, redis_client_on_reply, request,
				       request->text.data + start, end - start) == REDIS_OK)
		return;
	redis_client_take_answer(request, NULL);
}

/* A context that is about to end takes no more commands, and none of this request then. */
static void redis_client_run_send(struct task *task)
{
	struct redis_request *request = CONTAINER_OF(task, struct redis_request, send);
	struct redis_client *client = request->client;
	request->answered = 0;
	request->err = request->count ? ERR_RETRY : 0;
	if (!request->count || !redis_client_may_send(request)) {
		redis_client_end_request(request);
		return;
	}
	request->err = 0;
	request->deadline_ms = loop_now_ms(client->loop) + client->options.timeout_ms;
	request->next = NULL;
	*client->last = request;
	client->last = &request->next;
	for (size_t i = 0; i < request->count; i++)
		redis_client_send_command(request, i);
	if (request->answered == request->count) {
		redis_client_unlink_request(request);
		redis_client_end_request(request);
	}
}

void redis_ask(struct redis_request *request)
{
	struct executor *executor = loop_executor(request->client->loop);
	/* hiredis looks at what stands behind a command. */
	if (!buf_append_char(&request->text, 0))
		request->text.len--;
	request->send.run = redis_client_run_send;
	executor->post(executor, &request->send);
}

/* ---- hiredis' events ------------------------------------------------------------------------- */

static void redis_client_on_events(void *owner, unsigned events)
{
	struct redis_client *client = owner;
	if (events & LOOP_READABLE && client->context)
		redisAsyncHandleRead(client->context);
	if (events & LOOP_WRITABLE && client->context && client->watched & LOOP_WRITABLE)
		redisAsyncHandleWrite(client->context);
}

static void redis_client_watch(struct redis_client *client, unsigned add, unsigned leave)
{
	client->watched = (client->watched | add) & ~leave;
	if (client->watch)
		loop_watch_set(client->watch, client->watched);
}

static void redis_client_add_read(void *owner)
{
	redis_client_watch(owner, LOOP_READABLE, 0);
}

static void redis_client_del_read(void *owner)
{
	redis_client_watch(owner, 0, LOOP_READABLE);
}

static void redis_client_add_write(void *owner)
{
	redis_client_watch(owner, LOOP_WRITABLE, 0);
}

static void redis_client_del_write(void *owner)
{
	redis_client_watch(owner, 0, LOOP_WRITABLE);
}

static void redis_client_clean_up(void *owner)
{
	struct redis_client *client = owner;
	loop_watch_close(client->watch);
	client->watch = NULL;
	client->watched = 0;
}

/* ---- Connecting ------------------------------------------------------------------------------ */

static void redis_client_greet(struct redis_client *client)
{
	client->state = GREETS;
	client->deadline_ms = loop_now_ms(client->loop) + client->options.timeout_ms;
	client->options.connected(client->options.owner);
}

void redis_client_greet_again(struct redis_client *client)
{
	if (client->state != UP)
		return;
	atomic_store(&client->up, false);
	redis_client_greet(client);
}

void redis_client_ready(struct redis_client *client)
{
	if (client->state != GREETS || client->drop_posted)
		return;
	client->state = UP;
	client->retry_ms = RETRY_FIRST_MS;
	client->look_ms = loop_now_ms(client->loop) + LOOK_MS;
	redis_client_set_why(client, "");
	atomic_store(&client->up, true);
	redis_client_set_flag(client, &client->tried);
}

void redis_client_refuse(struct redis_client *client, const char *why)
{
	if (client->context)
		redis_client_drop(client, why);
}

static void redis_client_on_login(struct redis_request *request, int err)
{
	struct redis_client *client = request->client;
	char why[REDIS_WHY_BYTES];
	if (client->state != GREETS)
		return;
	if (!err) {
		redis_client_greet(client);
		return;
	}
	redis_client_why(client, why);
	redis_client_refuse(client, why);
}

/* AUTH with one word is of the default user, for servers before version 6. */
static void redis_client_log_in(struct redis_client *client)
{
	const struct redis_url *url = &client->options.url;
	struct redis_request *login = &client->login;
	redis_request_clear(login);
	if (url->password[0]) {
		redis_command(login, url->user[0] ? 3 : 2);
		redis_word(login, SLICE("AUTH"));
		if (url->user[0])
			redis_word(login, slice_of(url->user));
		redis_word(login, slice_of(url->password));
	}
	redis_command(login, 2);
	redis_word(login, SLICE("SELECT"));
	redis_number(login, url->database);
	redis_ask(login);
}

/* hiredis frees the context itself where connecting failed. */
static void redis_client_on_connect(const redisAsyncContext *context, int status)
{
	struct redis_client *client = context->data;
	if (client->context != context)
		return;
	if (status != REDIS_OK) {
		redis_client_say_down(client, context->errstr);
		redis_client_rest(client);
		return;
	}
	client->state = GREETS;
	redis_client_log_in(client);
}

static void redis_client_on_disconnect(const redisAsyncContext *context, UNUSED int status)
{
	struct redis_client *client = context->data;
	if (client->context != context)
		return;
	redis_client_say_down(client,
			      context->errstr[0] ? context->errstr : "it has ended the connection");
	redis_client_rest(client);
}

static void redis_client_connect_now(struct redis_client *client)
{
	const struct redis_url *url = &client->options.url;
	redisAsyncContext *context = redisAsyncConnect(url->host, url->port);
	ASSERT(context); /* NULL is no memory */
	client->context = context;
	client->state = CONNECTS;
	client->deadline_ms = loop_now_ms(client->loop) + client->options.timeout_ms;
	if (context->err) {
		redis_client_say_down(client, context->errstr);
		redis_client_drop_now(client);
		return;
	}
	context->data = client;
	context->ev.data = client;
	context->ev.addRead = redis_client_add_read;
	context->ev.delRead = redis_client_del_read;
	context->ev.addWrite = redis_client_add_write;
	context->ev.delWrite = redis_client_del_write;
	context->ev.cleanup = redis_client_clean_up;
	client->watch = loop_watch_new(client->loop, context->c.fd, redis_client_on_events, client);
	redisAsyncSetDisconnectCallback(context, redis_client_on_disconnect);
	redisAsyncSetConnectCallback(context, redis_client_on_connect);
}

/* ---- Time ------------------------------------------------------------------------------------ */

static bool redis_client_is_overdue(const struct redis_client *client, int64_t now_ms)
{
	bool beginning = client->state == CONNECTS || client->state == GREETS;
	return (beginning && now_ms >= client->deadline_ms) ||
	       (client->first && now_ms >= client->first->deadline_ms);
}

static void redis_client_on_tick(void *owner)
{
	struct redis_client *client = owner;
	int64_t now_ms = loop_now_ms(client->loop);
	if (client->state == DOWN) {
		if (now_ms >= client->next_ms)
			redis_client_connect_now(client);
	} else if (redis_client_is_overdue(client, now_ms)) {
		redis_client_say_down(client, "it does not answer");
		redis_client_drop_now(client);
	} else if (client->state == UP && now_ms >= client->look_ms) {
		client->look_ms = now_ms + LOOK_MS;
		client->options.look(client->options.owner);
	}
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void redis_client_run_begin(struct task *task)
{
	struct redis_client *client = CONTAINER_OF(task, struct redis_client, begin);
	client->ticks = loop_timer_new(client->loop, redis_client_on_tick, client);
	loop_timer_start(client->ticks, 0, TICK_MS);
}

struct redis_client *redis_client_new(const struct redis_client_options *options)
{
	struct redis_client *client = mem_zalloc(sizeof(*client));
	client->options = *options;
	client->last = &client->first;
	client->retry_ms = RETRY_FIRST_MS;
	client->lines = (struct log_rate){.lines_max = LINES_A_MINUTE};
	client->begin.run = redis_client_run_begin;
	client->drop.run = redis_client_run_drop;
	random_init(&client->random, random_system_seed());
	pthread_mutex_init(&client->lock, NULL);
	pthread_cond_init(&client->changed, NULL);
	redis_client_set_why(client, "it is not connected yet");
	client->thread = loop_thread_new("redis");
	client->loop = loop_thread_loop(client->thread);
	client->login = (struct redis_request){.executor = loop_executor(client->loop),
					       .done = redis_client_on_login,
					       .greets = true};
	redis_request_init(&client->login, client);
	return client;
}

void redis_client_start(struct redis_client *client)
{
	loop_executor(client->loop)->post(loop_executor(client->loop), &client->begin);
}

static void redis_client_run_stop(struct task *task)
{
	struct redis_client *client = CONTAINER_OF(task, struct redis_client, stop);
	loop_timer_close(client->ticks);
	redis_client_drop_now(client);
	redis_client_set_flag(client, &client->over);
}

void redis_client_free(struct redis_client *client)
{
	client->stop.run = redis_client_run_stop;
	loop_executor(client->loop)->post(loop_executor(client->loop), &client->stop);
	redis_client_wait_flag(client, &client->over);
	loop_thread_free(client->thread);
	redis_request_release(&client->login);
	pthread_cond_destroy(&client->changed);
	pthread_mutex_destroy(&client->lock);
	mem_free(client);
}
