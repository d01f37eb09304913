/* queue: what waits between pollers and persisters, as esmond's espersistq prints it. */
#include "base/clock.h"
#include "base/exec.h"
#include "cmd/client.h"
#include "cmd/client_private.h"

enum { INTERVAL_MS = 5000, QUEUES_MAX = 1000 };

const char client_queue_help[] =
	"usage: granary queue [options]\n"
	"\n"
	"Prints every 5 seconds, for each queue and in all: the polls that wait (pending), that "
	"came\n"
	"and were persisted since the line before (new, done), the difference (delta), and how "
	"many\n"
	"came since the server began (max).\n"
	"\n"
	"  --once          print one table, counted from the server's start, and end\n"
	"  --aside QUEUE   print what no persister of that queue could read, newest first, and "
	"why\n"
	"  --server URL    where the server is (default http://127.0.0.1:8470)\n"
	"  -o FORMAT       table, csv or json; default: a table on a terminal, else csv\n"
	"\n"
	"Examples:\n"
	"  granary queue --once\n"
	"  granary queue --aside counters\n";

static const struct client_command command = {
	.name = "queue",
	.help = client_queue_help,
	.options = OPTION_SERVER | OPTION_OUTPUT | OPTION_ONCE | OPTION_ASIDE,
};

struct counts {
	double added, done, pending;
};

static double number_of(const struct json *object, const char *key)
{
	double number = 0;
	return json_get_f64(object, key, &number, NULL) ? 0 : number;
}

static void add_line(struct text_table *table, struct slice name, const struct counts *now,
		     const struct counts *before)
{
	double new = now->added - before->added, done = now->done - before->done;
	text_table_add(table, name);
	text_table_addf(table, "%.0f", now->pending);
	text_table_addf(table, "%.0f", new);
	text_table_addf(table, "%.0f", done);
	text_table_addf(table, "%.0f", new - done);
	text_table_addf(table, "%.0f", now->added);
}

/* `before` has the counts of the last time, zeros at first, and is brought up to date. */
static void print_queues(const struct json *root, enum client_output output, struct counts *before)
{
	static const char *const titles[] = {"queue", "pending", "new", "done", "delta", "max"};
	const struct json *queues = json_member(root, "queues");
	struct counts all = {0}, all_before = {0};
	struct text_table table;
	size_t i = 0;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *q = queues ? queues->first : NULL; q && i < QUEUES_MAX;
	     q = q->next, i++) {
		const struct counts now = {number_of(q, "added"), number_of(q, "done"),
					   number_of(q, "pending")};
		const struct json *name = json_member(q, "name");
		add_line(&table, name ? name->text : SLICE("-"), &now, &before[i]);
		all = (struct counts){all.added + now.added, all.done + now.done,
				      all.pending + now.pending};
		all_before.added += before[i].added;
		all_before.done += before[i].done;
		before[i] = now;
	}
	add_line(&table, SLICE("TOTAL"), &all, &all_before);
	text_table_print(&table, output);
	text_table_release(&table);
	fflush(stdout);
}

static int ask(const struct client_args *args, struct counts *before)
{
	struct client_answer answer;
	struct arena arena;
	struct json *root;
	client_answer_init(&answer);
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = client_get_json(args, "/api/queues", &arena, &answer, &root);
	if (!err && args->output == OUTPUT_JSON)
		printf("%.*s\n", (int)answer.body.len, answer.body.data);
	else if (!err)
		print_queues(root, args->output, before);
	client_answer_release(&answer);
	arena_release(&arena);
	return err;
}

static void rest(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	pthread_mutex_lock(&lock);
	cond_wait_ms(&never, &lock, INTERVAL_MS);
	pthread_mutex_unlock(&lock);
}

static void print_aside(const struct client_args *args, const struct json *root,
			UNUSED struct arena *arena)
{
	static const char *const titles[] = {"at", "device", "bytes", "reason"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *m = root->first; m; m = m->next) {
		const struct json *device = json_member(m, "device");
		const struct json *reason = json_member(m, "reason");
		text_table_addf(&table, "%.3f", number_of(m, "at") / 1000);
		text_table_add(&table, device ? device->text : SLICE("-"));
		text_table_addf(&table, "%.0f", number_of(m, "bytes"));
		text_table_add(&table, reason ? reason->text : SLICE("-"));
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static int show_aside(const struct client_args *args)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	buf_append_text(&path, "/api/queues/aside");
	client_param(&path, "queue", args->aside);
	buf_append_char(&path, 0);
	int status = client_show(args, path.data, args->output == OUTPUT_JSON, print_aside);
	buf_release(&path);
	return status;
}

int client_queue(int argc, char *const *argv)
{
	struct client_args args;
	int err = client_parse(&command, argc, argv, &args);
	if (err)
		return client_parse_exit(err);
	if (args.aside)
		return show_aside(&args);
	struct counts *before = mem_zalloc(QUEUES_MAX * sizeof(*before));
	err = ask(&args, before);
	while (!err && !args.once) {
		rest();
		err = ask(&args, before);
	}
	mem_free(before);
	return err ? CLIENT_FAILED : CLIENT_OK;
}
