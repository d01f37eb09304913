/* retention: how long what is kept, how much is stored for how long, and what is stored for another
 * time than it would be now (api/admin/retention.h). */
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "retention/granularity.h"
#include "wire/timetext.h"

const char client_retention_help[] =
	"usage: granary retention show [--tenant NAME] [--metric NAME] [--limit N] [options]\n"
	"       granary retention apply [--dry-run] [--tenant NAME] [--metric NAME] [options]\n"
	"\n"
	"show prints of each metric that has something stored, by granularity (raw samples, "
	"the\n"
	"widths of roll-ups, and late samples):\n"
	"\n"
	"  kept     for how long it is shown; ever: for ever\n"
	"  rule     the one of retention.rules that says so; -: retention.raw, or "
	"rollup.granularities\n"
	"  class    the class of the store that it lies in, a row each: how long it stays on "
	"disk; the\n"
	"           one in which it is written now has no mark, others have a *\n"
	"  series   how many series have something there\n"
	"  samples  how many values that is, about, and bytes, which they take\n"
	"  oldest   the time of the oldest\n"
	"\n"
	"apply moves what lies in another class than it would be written to now, since it was "
	"written\n"
	"when something else was configured, and prints what it was. That goes on beside all "
	"else, a\n"
	"slice at a time; as long as it lasts nothing that has expired is removed. It takes at "
	"least as\n"
	"long as a query may, and 30 s. What is older than its new class keeps it is deleted. "
	"If it ends\n"
	"early, another run does the rest. With --dry-run it changes nothing.\n"
	"\n"
	"  --tenant NAME  only metrics of this tenant; default all\n"
	"  --metric NAME  only this metric; default all\n"
	"  --limit N      at most so many metrics and granularities, up to 10000; default 1000\n"
	"  --dry-run      move nothing, only count\n"
	"  --server URL   where the server is (default http://127.0.0.1:8470)\n"
	"  -o FORMAT      table, csv or json; default: a table on a terminal, else csv\n"
	"\n"
	"Examples:\n"
	"  granary retention show --tenant acme\n"
	"  granary retention apply --dry-run\n";

/* ---- Texts ----------------------------------------------------------------------------------- */

static struct slice text_of(const struct json *object, const char *key)
{
	const struct json *member = json_member(object, key);
	return member && member->text.len ? member->text : SLICE("-");
}

static void add_kept(struct text_table *table, int64_t ms)
{
	char text[GRANULARITY_WIDTH_MAX_BYTES];
	if (ms == 0)
		text_table_add(table, SLICE("ever"));
	else if (ms < 1000)
		text_table_addf(table, "%lldms", (long long)ms);
	else
		text_table_add(table, (struct slice){text, granularity_width_print(text, ms)});
}

static void add_amount(struct text_table *table, const struct json *amount)
{
	char text[TIME_PRINT_MAX_BYTES];
	text_table_addf(table, "%lld", (long long)client_i64(amount, "series"));
	text_table_addf(table, "%lld", (long long)client_i64(amount, "samples"));
	text_table_addf(table, "%lld", (long long)client_i64(amount, "bytes"));
	text_table_add(table, (struct slice){text, time_print(text, client_i64(amount, "oldest"))});
}

/* ---- show ------------------------------------------------------------------------------------ */

static void add_line(struct text_table *table, const struct json *line)
{
	struct slice class = text_of(line, "class");
	const struct json *stored = json_member(line, "stored");
	for (const struct json *s = stored ? stored->first : NULL; s; s = s->next) {
		struct slice there = text_of(s, "class");
		text_table_add(table, text_of(line, "tenant"));
		text_table_add(table, text_of(line, "metric"));
		text_table_add(table, text_of(line, "granularity"));
		add_kept(table, client_i64(line, "retentionMs"));
		text_table_add(table, text_of(line, "rule"));
		text_table_addf(table, "%.*s%s", (int)there.len, there.data,
				slice_equal(there, class) ? "" : "*");
		add_amount(table, s);
	}
}

static void print_kept(const struct client_args *args, const struct json *root,
		       UNUSED struct arena *arena)
{
	static const char *const titles[] = {"tenant", "metric", "granularity", "kept",  "rule",
					     "class",  "series", "samples",     "bytes", "oldest"};
	const struct json *list = json_member(root, "kept");
	struct text_table table;
	bool cut = false;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *line = list ? list->first : NULL; line; line = line->next)
		add_line(&table, line);
	text_table_print(&table, args->output);
	if (json_get_bool(root, "cut", &cut, NULL) == 0 && cut)
		client_complain(args, "there are more metrics; --limit gives up to 10000");
	text_table_release(&table);
}

static int ask(const struct client_args *args, const char *route, client_print *print)
{
	const struct client_value values[] = {{"tenant", args->only_tenant},
					      {"metric", args->metric},
					      {"limit", args->limit},
					      {"dryRun", args->dry_run ? "true" : NULL}};
	return client_show_route(args, route, values, ARRAY_LEN(values), print);
}

static int show(const struct client_args *args)
{
	return ask(args, "/api/retention", print_kept);
}

/* ---- apply ----------------------------------------------------------------------------------- */

static void print_moves(const struct client_args *args, const struct json *root,
			UNUSED struct arena *arena)
{
	static const char *const titles[] = {"granularity", "from",  "to",    "series",
					     "samples",     "bytes", "oldest"};
	const struct json *list = json_member(root, "moves");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *move = list ? list->first : NULL; move; move = move->next) {
		for (size_t i = 0; i < 3; i++)
			text_table_add(&table, text_of(move, titles[i]));
		add_amount(&table, move);
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
	if (client_i64(root, "failed"))
		client_complain(args,
				"some of it is damaged and stays where it is: `granary verify`");
}

static int apply(const struct client_args *args)
{
	struct client_args sent = *args;
	sent.method = "POST";
	return ask(&sent, "/api/retention/apply", print_moves);
}

/* ---- The command ----------------------------------------------------------------------------- */

static const struct client_verb verbs[] = {
	{"show",
	 show,
	 {"retention show", client_retention_help,
	  OPTION_SERVER | OPTION_OUTPUT | OPTION_LIMIT | OPTION_METRICS, 0, 0}},
	{"apply",
	 apply,
	 {"retention apply", client_retention_help,
	  OPTION_SERVER | OPTION_OUTPUT | OPTION_METRICS | OPTION_DRY_RUN, 0, 0}},
};

int client_retention(int argc, char *const *argv)
{
	return client_run_verb("retention", client_retention_help, verbs, ARRAY_LEN(verbs), argc,
			       argv);
}
