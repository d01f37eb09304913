/* recompute: bins and aggregates once more from raw data, by a server's API
 * (api/admin/recompute.c). */
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "wire/timetext.h"

struct client_recompute_args {
	struct command_args line;
	const char *device, *from, *to, *oidset;
	bool dry_run;
};

static void client_recompute_add_number(struct text_table *table, const struct json *object,
					const char *key)
{
	const struct json *member = object ? json_member(object, key) : NULL;
	text_table_add(table, member ? member->text : SLICE(""));
}

static void client_recompute_add_text(struct text_table *table, const struct json *object,
				      const char *key)
{
	const struct json *member = json_member(object, key);
	text_table_add(table, member ? member->text : SLICE("-"));
}

/* Tags of a path, as `xe-0/0/0` or `xe-0/0/0 3`. */
static void client_recompute_add_path(struct text_table *table, const struct json *difference)
{
	const struct json *tags = json_member(difference, "tags");
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	for (const struct json *tag = tags ? tags->first : NULL; tag; tag = tag->next) {
		if (slice_equal(tag->key, SLICE("device")) ||
		    slice_equal(tag->key, SLICE("oidset")))
			continue;
		buf_printf(&path, "%s%.*s", path.len ? " " : "", (int)tag->text.len,
			   tag->text.data);
	}
	text_table_add(table, path.len ? buf_slice(&path) : SLICE("-"));
	buf_release(&path);
}

static void client_recompute_add_difference(struct text_table *table, const struct json *oidset,
					    const struct json *difference)
{
	const struct json *stored = json_member(difference, "stored");
	const struct json *computed = json_member(difference, "computed");
	char start[TIME_PRINT_MAX_BYTES];
	int64_t start_ms = 0, period_ms = 0;
	if (json_get_i64(difference, "start", &start_ms, NULL) ||
	    json_get_i64(difference, "periodMs", &period_ms, NULL))
		return;
	size_t len = time_print(start, start_ms);
	client_recompute_add_text(table, oidset, "oidset");
	client_recompute_add_text(table, difference, "metric");
	client_recompute_add_path(table, difference);
	text_table_addf(table, "%g", (double)period_ms / 1000);
	text_table_add(table, (struct slice){start, len});
	client_recompute_add_number(table, stored, "val");
	client_recompute_add_number(table, stored, "isValid");
	client_recompute_add_number(table, computed, "val");
	client_recompute_add_number(table, computed, "isValid");
}

static void client_recompute_print_differences(const struct json *oidsets,
					       enum client_output output)
{
	static const char *const titles[] = {"oidset", "metric",     "path",     "seconds", "start",
					     "stored", "its deltas", "computed", "deltas"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *set = oidsets->first; set; set = set->next) {
		const struct json *list = json_member(set, "differences");
		for (const struct json *d = list ? list->first : NULL; d; d = d->next)
			client_recompute_add_difference(&table, set, d);
	}
	if (table.rows)
		text_table_print(&table, output);
	text_table_release(&table);
}

static void client_recompute_print(const struct command_args *args, const struct json *root,
				   UNUSED struct arena *arena)
{
	static const char *const titles[] = {"oidset", "compared", "differed", "missing", "extra"};
	const struct json *oidsets = json_member(root, "oidsets");
	struct text_table table;
	if (!oidsets)
		return;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *set = oidsets->first; set; set = set->next) {
		client_recompute_add_text(&table, set, "oidset");
		for (size_t i = 1; i < ARRAY_LEN(titles); i++)
			client_recompute_add_number(&table, set, titles[i]);
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
	client_recompute_print_differences(oidsets, args->output);
}

static int client_recompute_run(const struct command_args *args)
{
	return client_show_route(args, "POST", "/api/recompute", client_recompute_print);
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_recompute_args, field, __VA_ARGS__)

#define PARAM(type, field, ...) ROW(type, field, __VA_ARGS__, .param = #field)

static const struct command_option client_recompute_options[] = {
	PARAM(text, device, "--device", "NAME", "the device", .required = true),
	PARAM(time, from, "--from", "TIME", "bins and aggregates that begin at that time or later",
	      .required = true),
	PARAM(time, to, "--to", "TIME", "and before that one", .required = true),
	PARAM(text, oidset, "--oidset", "NAME", "only of this OIDSet",
	      .otherwise = "all that the device has counters of"),
	ROW(flag, dry_run, "--dry-run", NULL, "write nothing", .param = "dryRun"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

const struct command client_recompute = {
	.name = "recompute",
	.summary = "make a device's rates once more from its raw data",
	.about = "Makes the rates of a device once more from its raw data, writes what differs "
		 "from what is stored, and prints it: of each OIDSet how many bins and aggregates "
		 "were compared, how many differed, were missing, or should not have been there; "
		 "then the first hundred of them. Meanwhile the device goes on being polled. "
		 "Where raw data has expired nothing is changed.\n",
	.examples = "granary recompute --device rtr_a --from 7d-ago --to now --dry-run\n",
	COMMAND_TAKES(client_recompute_options, client_recompute_args),
	.run = client_recompute_run,
};
