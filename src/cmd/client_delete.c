/* delete: takes samples and their roll-ups out of the store, after saying how many
 * (api/admin/delete.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/client.h"
#include "cmd/client_private.h"
#include "wire/timetext.h"

enum { REPLY_MAX_BYTES = 16 };

const char client_delete_help[] =
	"usage: granary delete METRIC [TAG=VALUE...] --start TIME --end TIME [options]\n"
	"       granary delete METRIC [TAG=VALUE...] --all [options]\n"
	"       granary delete --all-metrics [TAG=VALUE...] --start TIME --end TIME | --all\n"
	"\n"
	"Deletes the samples that the series of a metric have from --start on and before --end, "
	"and\n"
	"what was rolled up of them. It first prints how many that are, and asks.\n"
	"\n"
	"  series           that match\n"
	"  raw samples      as they came\n"
	"  late samples     that came when their raw data had expired\n"
	"  roll-ups of 5m   rows of that granularity, of buckets that lie in the time as a whole\n"
	"  roll-ups of other granularities  that are configured no more\n"
	"  slots made anew  of all series together: rolled up once more from what is left\n"
	"  series gone      that leave the catalog\n"
	"\n"
	"A row whose bucket the time cuts is made anew from the raw data that is left, within "
	"some\n"
	"minutes. Where that has expired the row stays as it is, and is counted as kept.\n"
	"\n"
	"Every TAG=VALUE must match (stars and bars as in `granary query`); without one it is "
	"every\n"
	"series of the metric.\n"
	"\n"
	"  --tenant NAME   whose series (default `default`)\n"
	"  --start TIME    2020-08-24, 2020-08-24T16:34Z, seconds since 1970, 7d-ago\n"
	"  --end TIME      likewise, or now\n"
	"  --all           everything of these series, and the series themselves\n"
	"  --all-metrics   of every metric of the tenant\n"
	"  --dry-run       delete nothing, only count\n"
	"  --yes           do not ask\n"
	"  --server URL    where the server is (default http://127.0.0.1:8470)\n"
	"  -o FORMAT       table, csv or json; default: a table on a terminal, else csv\n"
	"\n"
	"Exit status: 0 done, 1 nothing or not all was deleted, 2 wrong use.\n"
	"\n"
	"Examples:\n"
	"  granary delete cpu_idle 'host=web-*' --start 2020-08-24 --end 2020-08-25 --dry-run\n"
	"  granary delete typo_metric --all --yes\n";

static const struct client_command command = {
	.name = "delete",
	.help = client_delete_help,
	.options = OPTION_SERVER | OPTION_TENANT | OPTION_OUTPUT | OPTION_START | OPTION_END |
		   OPTION_ALL | OPTION_DRY_RUN | OPTION_DELETE,
	.words_max = CLIENT_WORDS_MAX,
};

/* ---- What is asked --------------------------------------------------------------------------- */

static void add_words(struct buf *path, const struct client_args *args)
{
	for (size_t i = 0; i < args->word_count; i++)
		client_param(path, i || args->all_metrics ? "tag" : "metricName", args->words[i]);
	if (args->all_metrics)
		client_param(path, "allMetrics", "true");
}

/* A time that the server gave back, so that both requests mean the same. */
static void add_time(struct buf *path, const char *name, const char *given,
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
static void put_path(struct buf *path, const struct client_args *args, bool dry_run,
		     const struct json *counted)
{
	const char *user = getenv("USER");
	buf_append_text(path, "/api/delete");
	client_param(path, "tenant", args->tenant);
	add_words(path, args);
	add_time(path, "start", args->start, counted);
	add_time(path, "end", args->end, counted);
	if (args->all)
		client_param(path, "all", "true");
	if (dry_run)
		client_param(path, "dryRun", "true");
	if (user && user[0])
		client_param(path, "by", user);
	buf_append_char(path, 0);
}

/* ---- What is answered ------------------------------------------------------------------------ */

static void add_row(struct text_table *table, const struct json *root, const char *what,
		    const char *key)
{
	text_table_add(table, slice_of(what));
	text_table_addf(table, "%lld", (long long)client_i64(root, key));
	text_table_add(table, SLICE(""));
}

static int64_t add_rollups(struct text_table *table, const struct json *root)
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

static void complain_of_rest(const struct client_args *args, const struct json *root, int64_t kept)
{
	if (!client_i64(root, "series"))
		client_complain(args, "no series matches");
	if (kept)
		client_complain(args,
				"%lld rows of roll-ups stay as they are: the time cuts their "
				"buckets, and the raw data to make them anew has expired",
				(long long)kept);
	if (client_i64(root, "failed"))
		client_complain(args, "the data of %lld series is damaged: `granary verify`",
				(long long)client_i64(root, "failed"));
}

static void print_counts(const struct client_args *args, const struct json *root)
{
	static const char *const titles[] = {"what", "count", "kept"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	add_row(&table, root, "series", "series");
	add_row(&table, root, "raw samples", "samples");
	add_row(&table, root, "late samples", "late");
	int64_t kept = add_rollups(&table, root);
	add_row(&table, root, "slots made anew", "slots");
	add_row(&table, root, "series gone", "forgotten");
	text_table_print(&table, args->output);
	text_table_release(&table);
	complain_of_rest(args, root, kept);
}

/* ---- The command ----------------------------------------------------------------------------- */

/* One request, printed. Texts of the root lie in the answer, which the caller releases. */
static int ask(const struct client_args *args, bool dry_run, const struct json *counted,
	       struct arena *arena, struct client_answer *answer, struct json **root)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	put_path(&path, args, dry_run, counted);
	int err = client_get_json(args, path.data, arena, answer, root);
	if (!err && args->output == OUTPUT_JSON)
		client_print_body(answer);
	else if (!err)
		print_counts(args, *root);
	buf_release(&path);
	return err;
}

static bool is_wanted(const struct client_args *args)
{
	char reply[REPLY_MAX_BYTES] = "";
	if (!isatty(STDIN_FILENO)) {
		client_complain(args, "nothing is deleted yet; --yes deletes it");
		return false;
	}
	fflush(stdout);
	fprintf(stderr, "Delete this? (yes) ");
	if (fgets(reply, sizeof(reply), stdin) && strcmp(reply, "yes\n") == 0)
		return true;
	client_complain(args, "nothing was deleted");
	return false;
}

static int run(const struct client_args *args)
{
	struct json *counted = NULL, *deleted;
	struct client_answer count, deletion;
	struct arena arena;
	client_answer_init(&count);
	client_answer_init(&deletion);
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = args->yes && !args->dry_run ? 0 : ask(args, true, NULL, &arena, &count, &counted);
	if (!err && !args->dry_run) {
		if (!args->yes && !is_wanted(args))
			err = ERR_CANCELLED;
		err = err ? err : ask(args, false, counted, &arena, &deletion, &deleted);
		if (!err && client_i64(deleted, "failed"))
			err = ERR_DAMAGED;
	}
	client_answer_release(&count);
	client_answer_release(&deletion);
	arena_release(&arena);
	return err ? CLIENT_FAILED : CLIENT_OK;
}

static int check(const struct client_args *args)
{
	if (!args->all_metrics && !args->word_count)
		return client_usage(args, "a metric is missing; --all-metrics means every one");
	if (args->all && (args->start || args->end))
		return client_usage(args, "--all is given beside %s",
				    args->start ? "--start" : "--end");
	if (!args->all && (!args->start || !args->end))
		return client_usage(args, "%s is missing; --all means all there is",
				    args->start ? "--end" : "--start");
	return client_check_tags(args, args->all_metrics ? 0 : 1);
}

int client_delete(int argc, char *const *argv)
{
	struct client_args args;
	int err = client_parse(&command, argc, argv, &args);
	if (err)
		return client_parse_exit(err);
	args.method = "POST";
	return check(&args) ? CLIENT_USAGE : run(&args);
}
