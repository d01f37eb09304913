/* delete: takes samples and their roll-ups out of the store, after saying how many
 * (api/admin/delete.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/client.h"
#include "cmd/client_private.h"
#include "wire/timetext.h"

enum { REPLY_MAX_BYTES = 16 };

struct client_delete_args {
	struct command_args line;
	const char *metric; /* with all_metrics a tag, too */
	struct command_words tags;
	const char *start, *end;
	bool all, all_metrics, dry_run, yes;
};

/* ---- What is asked --------------------------------------------------------------------------- */

/* A time that the server gave back, so that both requests mean the same. */
static void client_delete_add_time(struct buf *path, const char *name, const char *given,
				   const struct json *counted)
{
	char text[TIME_PRINT_MAX_BYTES + 1];
	int64_t ms;
	if (counted && json_get_i64(counted, name, &ms, NULL) == 0) {
		text[time_print(text, ms)] = 0;
		given = text;
	}
	if (given)
		client_param(path, name, given);
}

/* `counted`: the answer of the count before, or NULL. */
static void client_delete_path(struct buf *path, const struct client_delete_args *args,
			       bool dry_run, const struct json *counted)
{
	const char *user = getenv("USER");
	client_route(path, &args->line, "/api/delete");
	if (args->metric)
		client_param(path, args->all_metrics ? "tag" : "metricName", args->metric);
	client_delete_add_time(path, "start", args->start, counted);
	client_delete_add_time(path, "end", args->end, counted);
	if (dry_run)
		client_param(path, "dryRun", "true");
	if (user && user[0])
		client_param(path, "by", user);
}

/* ---- What is answered ------------------------------------------------------------------------ */

static void client_delete_add_row(struct text_table *table, const struct json *root,
				  const char *what, const char *key)
{
	text_table_add(table, slice_of(what));
	text_table_addf(table, "%lld", (long long)client_i64(root, key));
	text_table_add(table, SLICE(""));
}

static int64_t client_delete_add_rollups(struct text_table *table, const struct json *root)
{
	const struct json *list = json_member(root, "rollups");
	int64_t kept = 0;
	for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
		const struct json *width = json_member(one, "granularity");
		struct slice name = width ? width->text : SLICE("");
		if (!name.len)
			name = SLICE("other granularities");
		text_table_addf(table, "roll-ups of %.*s", (int)name.len, name.data);
		text_table_addf(table, "%lld", (long long)client_i64(one, "rows"));
		text_table_addf(table, "%lld", (long long)client_i64(one, "kept"));
		kept += client_i64(one, "kept");
	}
	return kept;
}

static void client_delete_complain_of_rest(const struct command_args *args, const struct json *root,
					   int64_t kept)
{
	if (!client_i64(root, "series"))
		command_complain(args, "no series matches");
	if (kept)
		command_complain(
			args,
			"%lld rows of roll-ups stay as they are: the time cuts their "
			"buckets: their raw samples have expired, so they cannot be made again",
			(long long)kept);
	if (client_i64(root, "failed"))
		command_complain(args, "the data of %lld series is damaged: `granary verify`",
				 (long long)client_i64(root, "failed"));
}

static void client_delete_print_counts(const struct command_args *args, const struct json *root)
{
	static const char *const titles[] = {"what", "count", "kept"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	client_delete_add_row(&table, root, "series", "series");
	client_delete_add_row(&table, root, "raw samples", "samples");
	client_delete_add_row(&table, root, "late samples", "late");
	int64_t kept = client_delete_add_rollups(&table, root);
	client_delete_add_row(&table, root, "slots made again", "slots");
	client_delete_add_row(&table, root, "series gone", "forgotten");
	text_table_print(&table, args->output);
	text_table_release(&table);
	client_delete_complain_of_rest(args, root, kept);
}

/* ---- The command ----------------------------------------------------------------------------- */

/* One request, printed. Texts of the root lie in the answer, which the caller releases. */
static int client_delete_ask(const struct client_delete_args *args, bool dry_run,
			     const struct json *counted, struct arena *arena,
			     struct client_answer *answer, struct json **root)
{
	struct buf path;
	client_delete_path(&path, args, dry_run, counted);
	int err = client_ask_json(&args->line, "POST", path.data, arena, answer, root);
	if (!err && args->line.output == OUTPUT_JSON)
		client_print_body(answer);
	else if (!err)
		client_delete_print_counts(&args->line, *root);
	buf_release(&path);
	return err;
}

static bool client_delete_is_wanted(const struct command_args *args)
{
	char reply[REPLY_MAX_BYTES] = "";
	if (!isatty(STDIN_FILENO)) {
		command_complain(args, "nothing is deleted yet; --yes deletes it");
		return false;
	}
	fflush(stdout);
	fprintf(stderr, "Delete this? (yes) ");
	if (fgets(reply, sizeof(reply), stdin) && strcmp(reply, "yes\n") == 0)
		return true;
	command_complain(args, "nothing was deleted");
	return false;
}

static int client_delete_carry_out(const struct client_delete_args *args)
{
	struct json *counted = NULL, *deleted;
	struct client_answer count, deletion;
	struct arena arena;
	client_answer_init(&count);
	client_answer_init(&deletion);
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = args->yes && !args->dry_run
			  ? 0
			  : client_delete_ask(args, true, NULL, &arena, &count, &counted);
	if (!err && !args->dry_run) {
		if (!args->yes && !client_delete_is_wanted(&args->line))
			err = ERR_CANCELLED;
		err = err ? err
			  : client_delete_ask(args, false, counted, &arena, &deletion, &deleted);
		if (!err && client_i64(deleted, "failed"))
			err = ERR_DAMAGED;
	}
	client_answer_release(&count);
	client_answer_release(&deletion);
	arena_release(&arena);
	return err ? EXIT_FAILED : EXIT_OK;
}

static int client_delete_check(const struct client_delete_args *args)
{
	if (!args->all_metrics && !args->metric)
		return command_usage(&args->line,
				     "a metric is missing; --all-metrics means every one");
	if (args->all_metrics && args->metric && !strchr(args->metric + 1, '='))
		return command_usage(&args->line, "\"%s\" is not TAG=VALUE", args->metric);
	if (args->all && (args->start || args->end))
		return command_usage(&args->line, "--all is given beside %s",
				     args->start ? "--start" : "--end");
	if (!args->all && (!args->start || !args->end))
		return command_usage(&args->line, "%s is missing; --all means all there is",
				     args->start ? "--end" : "--start");
	return 0;
}

static int client_delete_run(const struct command_args *args)
{
	const struct client_delete_args *delete =
		CONTAINER_OF(args, const struct client_delete_args, line);
	return client_delete_check(delete) ? EXIT_WRONG_USE : client_delete_carry_out(delete);
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_delete_args, field, __VA_ARGS__)
static const struct command_option client_delete_options[] = {
	ROW(text, metric, NULL, "METRIC", "whose samples; none with --all-metrics"),
	ROW(tag, tags, NULL, "TAG=VALUE",
	    "must match, each (stars and bars as in `granary query`); without one it is every "
	    "series of the metric",
	    .words_max = CLIENT_TAGS_MAX, .param = "tag"),
	CLIENT_TENANT("whose series"),
	ROW(time, start, "--start", "TIME", "the first time that is deleted"),
	ROW(time, end, "--end", "TIME", "the first time that is kept again"),
	ROW(flag, all, "--all", NULL,
	    "everything of these series, and the series themselves, instead of --start and --end",
	    .param = "all"),
	ROW(flag, all_metrics, "--all-metrics", NULL, "of every metric of the tenant",
	    .param = "allMetrics"),
	ROW(flag, dry_run, "--dry-run", NULL, "delete nothing, only count"),
	ROW(flag, yes, "--yes", NULL, "do not ask"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

const struct command client_delete = {
	.name = "delete",
	.summary = "take samples and their roll-ups out of the store",
	.about = "Deletes the samples that the series of a metric have from --start on and before "
		 "--end, and what was rolled up of them. It first prints how many that are, and "
		 "asks.\n"
		 "series\tthat match\n"
		 "raw samples\tas they came\n"
		 "late samples\tthat came when their raw data had expired\n"
		 "roll-ups of 5m\trows of that granularity, of buckets that lie in the time as a "
		 "whole\n"
		 "roll-ups of other granularities\tthat are no longer configured\n"
		 "slots made again\tof all series together: rolled up once more from what is left\n"
		 "series gone\tthat leave the catalog\n"
		 "A row whose bucket the time cuts is made again from the raw data that is left, "
		 "within some minutes. Where that has expired the row stays as it is, and is "
		 "counted as kept.\n"
		 "Exit status: 0 done, 1 nothing or not all was deleted, 2 wrong use.\n",
	.examples = "granary delete cpu_idle 'host=web-*' --start 2020-08-24 --end 2020-08-25 "
		    "--dry-run\n"
		    "granary delete typo_metric --all --yes\n",
	COMMAND_TAKES(client_delete_options, client_delete_args),
	.run = client_delete_run,
};
