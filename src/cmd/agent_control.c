#include "cmd/agent_control.h"

#include <limits.h>

#include "agent/adaptors.h"
#include "agent/control_door.h"
#include "agent/control_rest.h"
#include "api/admin/admin.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/thread.h"

enum { AGENT_CONTROL_REST_CONNS_MAX = 32 };

struct agent_control {
	struct agent_control_options options;
	struct control control;
	char file[PATH_MAX], socket[PATH_MAX];
	struct loop_thread *thread;
	/* The thread's. */
	struct control_door *door;
	struct http_server *http;
	struct http_route routes[CONTROL_REST_ROUTES + 1];
	int64_t started_ms;
	struct loop_timer *sample;
	/* The owner waits for a call of the thread. */
	struct task call, answered;
	struct task_queue queue;
	struct task_answer answer;
	int err;
	struct errbuf why;
};

/* ---- Calls ----------------------------------------------------------------------------------- */

static void agent_control_on_answered(struct task *task)
{
	struct agent_control *c = CONTAINER_OF(task, struct agent_control, answered);
	c->answer = (struct task_answer){.there = true, .err = c->err};
}

/* On the thread: what was called is done. */
static void agent_control_answer(void *owner)
{
	struct agent_control *c = owner;
	c->answered.run = agent_control_on_answered;
	c->queue.executor.post(&c->queue.executor, &c->answered);
}

static int agent_control_call(struct agent_control *c, void (*run)(struct task *task))
{
	struct executor *executor = loop_executor(loop_thread_loop(c->thread));
	c->answer.there = false;
	c->call.run = run;
	executor->post(executor, &c->call);
	return task_queue_wait_for(&c->queue, &c->answer);
}

/* ---- On the thread --------------------------------------------------------------------------- */

static void agent_control_on_sample(void *owner)
{
	struct agent_control *c = owner;
	control_tick(&c->control);
}

static void agent_control_on_metrics(struct http_request *request)
{
	struct control *control = request->context;
	self_metrics_reply(request,
			   CONTAINER_OF(control, struct agent_control, control)->started_ms);
}

static const struct http_handler agent_control_metrics = {.end = agent_control_on_metrics};

static int agent_control_open_rest(struct agent_control *c, struct loop *loop)
{
	struct http_limits limits = http_limits_default;
	const struct loop_address address = {.bytes = {127, 0, 0, 1},
					     .port = (uint16_t)c->options.conf->agent_rest_port};
	if (!address.port)
		return 0;
	memcpy(c->routes, control_rest_routes, sizeof(control_rest_routes));
	c->routes[CONTROL_REST_ROUTES] = (struct http_route){
		.verb = VERB_GET,
		.path = "/metrics",
		.role = ROLE_READ,
		.handler = &agent_control_metrics,
		.help = "Counters and gauges of this process, as Prometheus reads them.",
		.always = true,
	};
	limits.connections_max = AGENT_CONTROL_REST_CONNS_MAX;
	c->http = http_server_new(loop, clock_real(), &limits, c->routes, ARRAY_LEN(c->routes),
				  &c->control);
	int err = http_server_listen(c->http, &address, &c->why);
	return err ? errbuf_prefix(&c->why, err, "agent.rest_port") : 0;
}

static void agent_control_run_open(struct task *task)
{
	struct agent_control *c = CONTAINER_OF(task, struct agent_control, call);
	struct loop *loop = loop_thread_loop(c->thread);
	const struct control_door_options options = {
		.loop = loop,
		.control = &c->control,
		.path = c->socket[0] ? c->socket : NULL,
		.port = (uint16_t)c->options.conf->agent_control_port,
	};
	c->err = control_door_open(&options, &c->door, &c->why);
	c->err = c->err ? c->err : agent_control_open_rest(c, loop);
	c->sample = loop_timer_new(loop, agent_control_on_sample, c);
	loop_timer_start(c->sample, CONTROL_SAMPLE_MS, CONTROL_SAMPLE_MS);
	agent_control_answer(c);
}

static void agent_control_on_door_closed(void *owner)
{
	struct agent_control *c = owner;
	if (c->http)
		http_server_stop(c->http, 0, agent_control_answer, c);
	else
		agent_control_answer(c);
}

static void agent_control_run_close(struct task *task)
{
	struct agent_control *c = CONTAINER_OF(task, struct agent_control, call);
	loop_timer_close(c->sample);
	if (c->door)
		control_door_close(c->door, agent_control_on_door_closed, c);
	else
		agent_control_on_door_closed(c);
}

static void agent_control_run_free_http(struct task *task)
{
	struct agent_control *c = CONTAINER_OF(task, struct agent_control, call);
	http_server_free(c->http);
	agent_control_answer(c);
}

struct agent_control_reload {
	struct task task;
	struct agent_control *c;
	struct adaptors *base;
};

static void agent_control_run_reload(struct task *task)
{
	struct agent_control_reload *reload = CONTAINER_OF(task, struct agent_control_reload, task);
	control_set_base(&reload->c->control, &reload->base);
	mem_free(reload);
}

/* ---- Life ------------------------------------------------------------------------------------ */

bool agent_control_is_wanted(const struct conf *conf)
{
	struct files *files = files_real();
	char path[PATH_MAX];
	uint64_t bytes;
	snprintf(path, sizeof(path), "%s/agent/control.adaptors", conf->data);
	return conf->agent_control_port || conf->agent_rest_port ||
	       !files->length(files, path, &bytes);
}

static void agent_control_find_paths(struct agent_control *c)
{
	const char *directory = c->options.directory;
	snprintf(c->file, sizeof(c->file), "%s/control.adaptors", directory);
	int len = snprintf(c->socket, sizeof(c->socket), "%s/control", directory);
	if (len < LOOP_PATH_MAX_BYTES)
		return;
	log_warn("the agent takes no commands at %s: the system allows a socket's path %d bytes; "
		 "agent.control_port is another way",
		 c->socket, LOOP_PATH_MAX_BYTES - 1);
	c->socket[0] = 0;
}

int agent_control_open(const struct agent_control_options *options, struct adaptors **base,
		       struct agent_control **opened, struct errbuf *e)
{
	struct agent_control *c = mem_zalloc(sizeof(*c));
	c->options = *options;
	c->started_ms = clock_wall_ms(clock_real());
	task_queue_init(&c->queue);
	agent_control_find_paths(c);
	const struct control_options of = {
		.files = files_real(),
		.agent = options->agent,
		.path = c->file,
		.host = options->host,
		.rates = options->conf->agent_rest_port,
	};
	control_init(&c->control, &of);
	int err = control_load(&c->control, e);
	if (!err) {
		size_t configured = (*base)->count;
		control_set_base(&c->control, base);
		if (c->control.count > configured)
			log_info("%zu adaptor%s followed, with those that were added by commands",
				 control_count(&c->control),
				 plural_end(control_count(&c->control)));
		c->thread = loop_thread_new("agent-control");
		err = agent_control_call(c, agent_control_run_open);
		if (err)
			errbuf_set(e, err, "%s", c->why.text);
	}
	if (err)
		agent_control_close(c);
	else
		*opened = c;
	return err;
}

void agent_control_reload(struct agent_control *c, struct adaptors **base)
{
	struct agent_control_reload *reload = mem_zalloc(sizeof(*reload));
	struct executor *executor = loop_executor(loop_thread_loop(c->thread));
	*reload = (struct agent_control_reload){{.run = agent_control_run_reload}, c, *base};
	*base = NULL;
	executor->post(executor, &reload->task);
}

void agent_control_close(struct agent_control *c)
{
	if (!c)
		return;
	if (c->thread) {
		(void)agent_control_call(c, agent_control_run_close);
		if (c->http)
			(void)agent_control_call(c, agent_control_run_free_http);
		loop_thread_free(c->thread);
	}
	control_release(&c->control);
	task_queue_release(&c->queue);
	mem_free(c);
}
