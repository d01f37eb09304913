/* retention: how long what is kept, how much is stored for how long, and what is stored for another
 * time than it would be now (api/admin/retention.c). */
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "retention/granularity.h"
#include "wire/timetext.h"

struct client_retention_args {
	struct command_args line;
	const char *tenant, *metric, *limit;
	bool dry_run;
};

/* ---- Texts ----------------------------------------------------------------------------------- */

static struct slice client_retention_text_of(const struct json *object, const char *key)
{
	const struct json *member = json_member(object, key);
	return member && member->text.len ? member->text : SLICE("-");
}

static void client_retention_add_kept(struct text_table *table, int64_t ms)
{
	char text[GRANULARITY_WIDTH_MAX_BYTES];
	if (ms == 0)
		text_table_add(table, SLICE("ever"));
	else if (ms < 1000)
		text_table_addf(table, "%lldms", (long long)ms);
	else
		text_table_add(table, (struct slice){text, granularity_width_print(text, ms)});
}

static void client_retention_add_amount(struct text_table *table, const struct json *amount)
{
	char text[TIME_PRINT_MAX_BYTES];
	text_table_addf(table, "%lld", (long long)client_i64(amount, "series"));
	text_table_addf(table, "%lld", (long long)client_i64(amount, "samples"));
	text_table_addf(table, "%lld", (long long)client_i64(amount, "bytes"));
	text_table_add(table, (struct slice){text, time_print(text, client_i64(amount, "oldest"))});
}

/* ---- show ------------------------------------------------------------------------------------ */

static void client_retention_add_line(struct text_table *table, const struct json *line)
{
	struct slice class = client_retention_text_of(line, "class");
	const struct json *stored = json_member(line, "stored");
	for (const struct json *s = stored ? stored->first : NULL; s; s = s->next) {
		struct slice there = client_retention_text_of(s, "class");
		text_table_add(table, client_retention_text_of(line, "tenant"));
		text_table_add(table, client_retention_text_of(line, "metric"));
		text_table_add(table, client_retention_text_of(line, "granularity"));
		client_retention_add_kept(table, client_i64(line, "retentionMs"));
		text_table_add(table, client_retention_text_of(line, "rule"));
		text_table_addf(table, "%.*s%s", (int)there.len, there.data,
				slice_equal(there, class) ? "" : "*");
		client_retention_add_amount(table, s);
	}
}

static void client_retention_print_kept(const struct command_args *args, const struct json *root,
					UNUSED struct arena *arena)
{
	static const char *const titles[] = {"tenant", "metric", "granularity", "kept",  "rule",
					     "class",  "series", "samples",     "bytes", "oldest"};
	const struct json *list = json_member(root, "kept");
	struct text_table table;
	bool cut = false;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *line = list ? list->first : NULL; line; line = line->next)
		client_retention_add_line(&table, line);
	text_table_print(&table, args->output);
	if (json_get_bool(root, "cut", &cut, NULL) == 0 && cut)
		command_complain(args, "there are more metrics; --limit gives up to 10000");
	text_table_release(&table);
}

static int client_retention_show(const struct command_args *args)
{
	return client_show_route(args, NULL, "/api/retention", client_retention_print_kept);
}

/* ---- apply ----------------------------------------------------------------------------------- */

static void client_retention_print_moves(const struct command_args *args, const struct json *root,
					 UNUSED struct arena *arena)
{
	static const char *const titles[] = {"granularity", "from",  "to",    "series",
					     "samples",     "bytes", "oldest"};
	const struct json *list = json_member(root, "moves");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *move = list ? list->first : NULL; move; move = move->next) {
		for (size_t i = 0; i < 3; i++)
			text_table_add(&table, client_retention_text_of(move, titles[i]));
		client_retention_add_amount(&table, move);
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
	if (client_i64(root, "failed"))
		command_complain(args,
				 "some of it is damaged and stays where it is: `granary verify`");
}

static int client_retention_apply(const struct command_args *args)
{
	return client_show_route(args, "POST", "/api/retention/apply",
				 client_retention_print_moves);
}

/* ---- The command ----------------------------------------------------------------------------- */

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_retention_args, field, __VA_ARGS__)

#define PARAM(type, field, ...) ROW(type, field, __VA_ARGS__, .param = #field)

#define RETENTION_WHICH                                                                            \
	PARAM(text, tenant, "--tenant", "NAME", "only metrics of this tenant",                     \
	      .otherwise = "all"),                                                                 \
		PARAM(text, metric, "--metric", "NAME", "only this metric", .otherwise = "all")

static const struct command_option client_retention_show_options[] = {
	RETENTION_WHICH,
	PARAM(text, limit, "--limit", "N", "at most so many metrics and granularities, up to 10000",
	      .otherwise = "1000"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_retention_apply_options[] = {
	RETENTION_WHICH,
	ROW(flag, dry_run, "--dry-run", NULL, "move nothing, only count", .param = "dryRun"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command client_retention_verbs[] = {
	{.name = "retention show",
	 .summary = "how long what is kept, and how much of it there is",
	 .about = "show prints of each metric that has something stored, by granularity (raw "
		  "samples, the widths of roll-ups, and late samples):\n"
		  "kept\tfor how long it is shown; ever: for ever\n"
		  "rule\tthe one of retention.rules that says so; -: retention.raw, or "
		  "rollup.granularities\n"
		  "class\tthe class of the store that it lies in, a row each: how long it stays "
		  "on disk; the one in which it is written now has no mark, others have a *\n"
		  "series\thow many series have something there\n"
		  "samples\thow many values that is, about, and bytes, which they take\n"
		  "oldest\tthe time of the oldest\n",
	 COMMAND_TAKES(client_retention_show_options, client_retention_args),
	 .run = client_retention_show},
	{.name = "retention apply",
	 .summary = "moves what is stored for another time than it would be now",
	 .about = "apply moves what lies in another class than it would be written to now, since "
		  "it was written when something else was configured, and prints what it was. "
		  "That goes on beside all else, a slice at a time; as long as it lasts nothing "
		  "that has expired is removed. It takes at least as long as a query may, and "
		  "30 s. What is older than its new class keeps it is deleted. If it ends early, "
		  "another run does the rest.\n",
	 COMMAND_TAKES(client_retention_apply_options, client_retention_args),
	 .run = client_retention_apply},
};

const struct command client_retention = {
	.name = "retention",
	.summary = "print how long what is kept, and how much of it there is",
	.examples = "granary retention show --tenant acme\n"
		    "granary retention apply --dry-run\n",
	COMMAND_VERBS(client_retention_verbs),
};
