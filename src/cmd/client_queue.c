/* queue: what waits between pollers and persisters, as esmond's espersistq prints it. */
#include "base/clock.h"
#include "base/exec.h"
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "wire/timetext.h"

enum { INTERVAL_MS = 5000, QUEUES_MAX = 1000 };

struct client_queue_args {
	struct command_args line;
	const char *queue, *aside;
	bool once, retry;
};

struct client_queue_counts {
	double added, done, pending, parked, aside, dropped, unparked;
};

static void client_queue_add_line(struct text_table *table, struct slice name,
				  const struct client_queue_counts *now,
				  const struct client_queue_counts *before)
{
	double new = now->added - before->added, done = now->done - before->done;
	text_table_add(table, name);
	text_table_addf(table, "%.0f", now->pending);
	text_table_addf(table, "%.0f", new);
	text_table_addf(table, "%.0f", done);
	text_table_addf(table, "%.0f", new - done);
	text_table_addf(table, "%.0f", now->added);
	text_table_addf(table, "%.0f", now->parked);
	text_table_addf(table, "%.0f", now->aside);
	text_table_addf(table, "%.0f", now->dropped);
}

static void client_queue_sum_up(struct client_queue_counts *all,
				const struct client_queue_counts *one)
{
	all->added += one->added;
	all->done += one->done;
	all->pending += one->pending;
	all->parked += one->parked;
	all->aside += one->aside;
	all->dropped += one->dropped;
}

static struct client_queue_counts client_queue_counts_of(const struct json *queue)
{
	return (struct client_queue_counts){
		.added = client_f64(queue, "added"),
		.done = client_f64(queue, "done"),
		.pending = client_f64(queue, "pending"),
		.parked = client_f64(queue, "parked"),
		.aside = client_f64(queue, "aside"),
		.dropped = client_f64(queue, "dropped"),
		.unparked = client_f64(queue, "unparked"),
	};
}

/* Where parking found no room since the last time; brings `before` up to date. */
static void client_queue_complain_of_full(const struct command_args *args,
					  const struct json *queues,
					  struct client_queue_counts *before)
{
	size_t i = 0;
	for (const struct json *q = queues ? queues->first : NULL; q && i < QUEUES_MAX;
	     q = q->next, i++) {
		const struct client_queue_counts now = client_queue_counts_of(q);
		const struct json *name = json_member(q, "name");
		if (name && now.unparked > before[i].unparked)
			command_complain(args,
					 "queue " SHOWN ": %.0f polls were set aside because as "
					 "many are parked as may be",
					 SHOWN_OF(name->text), now.unparked - before[i].unparked);
		before[i] = now;
	}
}

/* `before` has the counts of the last time, zeros at first, and is brought up to date. */
static void client_queue_print(const struct command_args *args, const struct json *root,
			       struct client_queue_counts *before)
{
	static const char *const titles[] = {"queue", "pending", "new",   "done",   "delta",
					     "max",   "parked",  "aside", "dropped"};
	const struct json *queues = json_member(root, "queues");
	struct client_queue_counts all = {0}, all_before = {0};
	struct text_table table;
	size_t i = 0;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *q = queues ? queues->first : NULL; q && i < QUEUES_MAX;
	     q = q->next, i++) {
		const struct client_queue_counts now = client_queue_counts_of(q);
		const struct json *name = json_member(q, "name");
		client_queue_add_line(&table, name ? name->text : SLICE("-"), &now, &before[i]);
		client_queue_sum_up(&all, &now);
		client_queue_sum_up(&all_before, &before[i]);
	}
	client_queue_add_line(&table, SLICE("TOTAL"), &all, &all_before);
	text_table_print(&table, args->output);
	text_table_release(&table);
	fflush(stdout);
	client_queue_complain_of_full(args, queues, before);
}

static int client_queue_ask(const struct command_args *args, struct client_queue_counts *before)
{
	struct client_answer answer;
	struct arena arena;
	struct json *root;
	client_answer_init(&answer);
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = client_ask_json(args, NULL, "/api/queues", &arena, &answer, &root);
	if (!err && args->output == OUTPUT_JSON)
		client_print_body(&answer);
	else if (!err)
		client_queue_print(args, root, before);
	client_answer_release(&answer);
	arena_release(&arena);
	return err;
}

static void client_queue_rest(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	pthread_mutex_lock(&lock);
	cond_wait_ms(&never, &lock, INTERVAL_MS);
	pthread_mutex_unlock(&lock);
}

static void client_queue_print_aside(const struct command_args *args, const struct json *root,
				     UNUSED struct arena *arena)
{
	static const char *const titles[] = {"at", "device", "bytes", "reason"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *m = root->first; m; m = m->next) {
		const struct json *device = json_member(m, "device");
		const struct json *reason = json_member(m, "reason");
		char at[TIME_PRINT_MAX_BYTES];
		size_t at_len = time_print(at, (int64_t)client_f64(m, "at"));
		text_table_add(&table, (struct slice){at, at_len});
		text_table_add(&table, device ? device->text : SLICE("-"));
		text_table_addf(&table, "%.0f", client_f64(m, "bytes"));
		text_table_add(&table, reason ? reason->text : SLICE("-"));
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

/* ---- Trying again ---------------------------------------------------------------------------- */

static void client_queue_add_retried(struct text_table *table, const struct json *answer)
{
	const struct json *name = json_member(answer, "queue");
	text_table_add(table, name ? name->text : SLICE("-"));
	text_table_addf(table, "%.0f", client_f64(answer, "given"));
	text_table_addf(table, "%.0f", client_f64(answer, "kept"));
}

static int client_queue_retry_one(const struct command_args *args, const char *queue,
				  struct text_table *table)
{
	struct client_answer answer;
	struct arena arena;
	struct json *root;
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	buf_append_text(&path, "/api/queues/retry");
	client_param(&path, "queue", queue);
	client_answer_init(&answer);
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = client_ask_json(args, "POST", path.data, &arena, &answer, &root);
	if (!err && args->output == OUTPUT_JSON)
		client_print_body(&answer);
	else if (!err)
		client_queue_add_retried(table, root);
	client_answer_release(&answer);
	arena_release(&arena);
	buf_release(&path);
	return err;
}

/* All in which something lies; goes on behind one that fails. */
static int client_queue_retry_each(const struct command_args *args, struct text_table *table)
{
	struct client_answer answer;
	struct arena arena;
	struct json *root;
	client_answer_init(&answer);
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = client_ask_json(args, NULL, "/api/queues", &arena, &answer, &root);
	const struct json *queues = err ? NULL : json_member(root, "queues");
	for (const struct json *q = queues ? queues->first : NULL; q; q = q->next) {
		const struct json *name = json_member(q, "name");
		const char *text =
			name ? arena_printf(&arena, "%.*s", (int)name->text.len, name->text.data)
			     : NULL;
		if (!text || client_f64(q, "aside") < 1)
			continue;
		int failed = client_queue_retry_one(args, text, table);
		err = err ? err : failed;
	}
	client_answer_release(&answer);
	arena_release(&arena);
	return err;
}

static int client_queue_retry(const struct command_args *args, const char *queue)
{
	static const char *const titles[] = {"queue", "given", "kept"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	int err = queue ? client_queue_retry_one(args, queue, &table)
			: client_queue_retry_each(args, &table);
	if (args->output != OUTPUT_JSON)
		text_table_print(&table, args->output);
	text_table_release(&table);
	return err ? EXIT_FAILED : EXIT_OK;
}

static int client_queue_run(const struct command_args *args)
{
	const struct client_queue_args *asked =
		CONTAINER_OF(args, const struct client_queue_args, line);
	if (asked->queue && !asked->retry) {
		(void)command_usage(args, "%s is one word too many", asked->queue);
		return EXIT_WRONG_USE;
	}
	if (asked->retry)
		return client_queue_retry(args, asked->queue);
	if (asked->aside)
		return client_show_route(args, NULL, "/api/queues/aside", client_queue_print_aside);
	struct client_queue_counts *before = mem_zalloc(QUEUES_MAX * sizeof(*before));
	int err = client_queue_ask(args, before);
	while (!err && !asked->once) {
		client_queue_rest();
		err = client_queue_ask(args, before);
	}
	mem_free(before);
	return err ? EXIT_FAILED : EXIT_OK;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_queue_args, field, __VA_ARGS__)
static const struct command_option client_queue_options[] = {
	ROW(text, queue, NULL, "QUEUE", "with --retry: only this one"),
	ROW(flag, once, "--once", NULL,
	    "print one table, counted from the server's start, and end"),
	ROW(text, aside, "--aside", "QUEUE",
	    "print what no persister of that queue could read, newest first, and why",
	    .param = "queue"),
	ROW(flag, retry, "--retry", NULL,
	    "give what lies aside back to the QUEUE, or to each, after a configuration was mended "
	    "or by a program that can read more. Prints how many messages were given back, and how "
	    "many stay because not all of their bytes were kept. Values that are older than what "
	    "was stored of their counter since are refused, and counted, as those of every late "
	    "poll"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

const struct command client_queue = {
	.name = "queue",
	.summary = "print what waits to be persisted",
	.about = "Prints every 5 seconds, for each queue and in all:\n"
		 "pending\tpolls that wait\n"
		 "new, done\tthat came and were persisted since the line before; delta is the "
		 "difference\n"
		 "max\tthat came since the server began\n"
		 "parked\tthat stay in the queue until the server starts with a configuration that "
		 "fits them: their OIDSet is not in this one, or for queues of another kind\n"
		 "aside\tmessages that no persister could read, or for which no parking was left\n"
		 "dropped\tmessages that lay aside and had to go since the server began, because "
		 "there were too many\n"
		 "amqp/QUEUE is a queue of RabbitMQ that fault reports come by: what came from "
		 "there, what is not acknowledged yet, and what could not be taken.\n",
	.examples = "granary queue --once\n"
		    "granary queue --aside counters\n"
		    "granary queue --retry counters\n",
	COMMAND_TAKES(client_queue_options, client_queue_args),
	.run = client_queue_run,
};
