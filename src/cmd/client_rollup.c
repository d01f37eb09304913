/* rollup: how roll-ups are made, what waits for them, and marks made again (api/admin/rollups.c).
 */
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "retention/granularity.h"
#include "wire/timetext.h"

enum { SPAN_MAX_BYTES = GRANULARITY_WIDTH_MAX_BYTES, TEXT_MAX_BYTES = 64 << 10 };

struct client_rollup_args {
	struct command_args line;
	const char *tenant, *metric, *from, *to, *limit;
	bool dry_run;
};

/* ---- Texts ----------------------------------------------------------------------------------- */

static struct slice client_rollup_text_of(const struct json *object, const char *key)
{
	const struct json *member = object ? json_member(object, key) : NULL;
	return member ? member->text : SLICE("");
}

/* A time is NULL in JSON where there is none. */
static bool client_rollup_is_time(const struct json *object, const char *key, int64_t *ms)
{
	return object && json_get_i64(object, key, ms, NULL) == 0;
}

static void client_rollup_put_time(struct buf *out, const struct json *object, const char *key)
{
	char text[TIME_PRINT_MAX_BYTES];
	int64_t ms;
	if (client_rollup_is_time(object, key, &ms))
		buf_append(out, text, time_print(text, ms));
	else
		buf_append_char(out, '-');
}

/* `1h2m`, whole seconds; below a second `0s`. */
static void client_rollup_put_span(struct buf *out, int64_t ms)
{
	char text[SPAN_MAX_BYTES];
	if (ms < 1000)
		buf_append_text(out, "0s");
	else
		buf_append(out, text, granularity_width_print(text, ms / 1000 * 1000));
}

static void client_rollup_add_time(struct text_table *table, const struct json *object,
				   const char *key)
{
	struct buf text;
	buf_init(&text, TEXT_MAX_BYTES);
	client_rollup_put_time(&text, object, key);
	text_table_add(table, buf_slice(&text));
	buf_release(&text);
}

static void client_rollup_add_span(struct text_table *table, int64_t ms)
{
	struct buf text;
	buf_init(&text, TEXT_MAX_BYTES);
	client_rollup_put_span(&text, ms);
	text_table_add(table, buf_slice(&text));
	buf_release(&text);
}

static void client_rollup_add_number(struct text_table *table, const struct json *object,
				     const char *key)
{
	text_table_addf(table, "%lld", (long long)client_i64(object, key));
}

/* ---- status ---------------------------------------------------------------------------------- */

static void client_rollup_put_kept(struct buf *out, int64_t retention_ms)
{
	if (retention_ms)
		client_rollup_put_span(out, retention_ms);
	else
		buf_append_text(out, "ever");
}

static void client_rollup_put_granularities(struct buf *out, const struct json *root)
{
	const struct json *list = json_member(root, "granularities");
	for (const struct json *g = list ? list->first : NULL; g; g = g->next) {
		struct slice width = client_rollup_text_of(g, "width");
		int64_t retention_ms = client_i64(g, "retentionMs");
		buf_printf(out, "%s%.*s for ", g == list->first ? "" : ", ", (int)width.len,
			   width.data);
		client_rollup_put_kept(out, retention_ms);
	}
	if (!out->len)
		buf_append_text(out, "none: nothing is rolled up");
}

static void client_rollup_put_slots(struct buf *out, const struct json *root)
{
	client_rollup_put_span(out, client_i64(root, "slotMs"));
	buf_append_text(out, ", rolled up after ");
	client_rollup_put_span(out, client_i64(root, "quietMs"));
	buf_append_text(out, " without a sample");
}

static void client_rollup_put_late(struct buf *out, const struct json *root)
{
	struct slice late = client_rollup_text_of(root, "late");
	if (slice_equal(late, SLICE("keep"))) {
		buf_append_text(out, "kept for ");
		client_rollup_put_kept(out, client_i64(root, "lateRetentionMs"));
	} else if (slice_equal(late, SLICE("refuse"))) {
		buf_append_text(out, "refused");
	} else {
		buf_append_text(out, "none: raw samples are kept for ever");
	}
}

static void client_rollup_put_suffixes(struct buf *out, const struct json *root)
{
	const struct json *list = json_member(root, "counterSuffixes");
	for (const struct json *s = list ? list->first : NULL; s; s = s->next)
		buf_printf(out, "%s*%.*s", s == list->first ? "" : ", ", (int)s->text.len,
			   s->text.data);
	if (!out->len)
		buf_append_char(out, '-');
}

static bool client_rollup_is_true(const struct json *object, const char *key)
{
	bool yes = false;
	return object && json_get_bool(object, key, &yes, NULL) == 0 && yes;
}

static void client_rollup_put_tracking(struct buf *out, const struct json *root)
{
	const struct json *tracking = json_member(root, "tracking");
	struct slice in = client_rollup_text_of(tracking, "in"),
		     why = client_rollup_text_of(tracking, "degraded");
	buf_printf(out, "in %s", slice_equal(in, SLICE("redis")) ? "Redis" : "the store");
	if (why.len)
		buf_printf(out, "; it cannot be used, the store has them for now: %.*s",
			   (int)why.len, why.data);
	if (client_rollup_is_true(tracking, "incomplete"))
		buf_append_text(out, "; some were lost and are not all made again yet");
}

static void client_rollup_put_partitions(struct buf *out, const struct json *root)
{
	struct slice own = client_rollup_text_of(root, "own"),
		     held = client_rollup_text_of(root, "held");
	struct slice name = client_rollup_text_of(root, "name");
	if (!own.len)
		own = SLICE("none");
	if (!held.len)
		held = SLICE("none");
	buf_printf(out, "%lld, numbered from 0; %.*s may roll up: %.*s; rolls up now: %.*s",
		   (long long)client_i64(root, "partitions"), (int)name.len, name.data,
		   (int)own.len, own.data, (int)held.len, held.data);
}

static void client_rollup_put_pass(struct buf *out, const struct json *root)
{
	const struct json *pass = json_member(root, "lastPass");
	if (!pass || pass->type != JSON_T_OBJECT) {
		buf_append_text(out, "none yet");
		return;
	}
	long long unread = client_i64(pass, "unread");
	client_rollup_put_time(out, pass, "at");
	buf_printf(out, ": %lld series rolled up, %lld rows, %lld series waiting, %lld failed",
		   (long long)client_i64(pass, "rolledUp"), (long long)client_i64(pass, "rows"),
		   (long long)client_i64(pass, "waiting"), (long long)client_i64(pass, "failed"));
	if (unread)
		buf_printf(out, "; %lld marks cannot be read, the log names them", unread);
}

static void client_rollup_put_next(struct buf *out, const struct json *root)
{
	client_rollup_put_time(out, json_member(root, "lastPass"), "nextReadyAt");
}

static void client_rollup_put_behind(struct buf *out, const struct json *root)
{
	int64_t ms;
	if (!client_rollup_is_time(root, "oldestSlot", &ms)) {
		buf_append_text(out, "nothing waits");
		return;
	}
	client_rollup_put_span(out, client_i64(root, "behindMs"));
	buf_append_text(out, "; the oldest slot that waits is ");
	client_rollup_put_time(out, root, "oldestSlot");
}

static void client_rollup_put_error(struct buf *out, const struct json *root)
{
	struct slice leases = client_rollup_text_of(root, "error");
	struct slice pass = client_rollup_text_of(json_member(root, "lastPass"), "error");
	struct slice error = leases.len ? leases : pass;
	buf_append(out, error.len ? error.data : "-", error.len ? error.len : 1);
}

static void client_rollup_print_status(const struct command_args *args, const struct json *root,
				       UNUSED struct arena *arena)
{
	static const char *const titles[] = {"what", "is"};
	static const struct {
		const char *what;
		void (*put)(struct buf *out, const struct json *root);
	} rows[] = {
		{"granularities", client_rollup_put_granularities},
		{"slots", client_rollup_put_slots},
		{"late", client_rollup_put_late},
		{"counters", client_rollup_put_suffixes},
		{"partitions", client_rollup_put_partitions},
		{"marks", client_rollup_put_tracking},
		{"last pass", client_rollup_put_pass},
		{"next ready", client_rollup_put_next},
		{"behind", client_rollup_put_behind},
		{"error", client_rollup_put_error},
	};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf text;
		buf_init(&text, TEXT_MAX_BYTES);
		rows[i].put(&text, root);
		text_table_add(&table, slice_of(rows[i].what));
		text_table_add(&table, buf_slice(&text));
		buf_release(&text);
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static int client_rollup_status(const struct command_args *args)
{
	return client_show_route(args, NULL, "/api/rollups", client_rollup_print_status);
}

/* ---- pending --------------------------------------------------------------------------------- */

/* Of a slot whose marks were not all looked at it is that many at least, or nobody knows. */
static void client_rollup_add_count(struct text_table *table, const struct json *slot,
				    const char *key)
{
	bool counted = client_rollup_is_true(slot, "counted");
	if (counted)
		client_rollup_add_number(table, slot, key);
	else if (client_i64(slot, "series"))
		text_table_addf(table, ">=%lld", (long long)client_i64(slot, key));
	else
		text_table_add(table, SLICE("not counted"));
}

static void client_rollup_add_slot(struct text_table *table, const struct json *slot,
				   int64_t now_ms)
{
	int64_t since_ms;
	client_rollup_add_time(table, slot, "slot");
	client_rollup_add_span(table, client_rollup_is_time(slot, "readySince", &since_ms)
					      ? now_ms - since_ms
					      : 0);
	client_rollup_add_number(table, slot, "partitions");
	client_rollup_add_count(table, slot, "series");
	client_rollup_add_count(table, slot, "ready");
	client_rollup_add_time(table, slot, "readyAt");
}

static void client_rollup_print_pending(const struct command_args *args, const struct json *root,
					UNUSED struct arena *arena)
{
	static const char *const titles[] = {"slot",   "behind", "partitions",
					     "series", "ready",  "ready at"};
	const struct json *list = json_member(root, "pending");
	/* The server's: what is behind is its to say. */
	int64_t now_ms = client_i64(root, "now");
	size_t uncounted = 0;
	long long unread = 0;
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *slot = list ? list->first : NULL; slot; slot = slot->next) {
		client_rollup_add_slot(&table, slot, now_ms);
		uncounted += !client_rollup_is_true(slot, "counted");
		unread += client_i64(slot, "unread");
	}
	text_table_print(&table, args->output);
	if (uncounted)
		command_complain(args,
				 "there are more marks than are looked at at once: of the last "
				 "%zu of these slots, series were not counted",
				 uncounted);
	if (unread)
		command_complain(args,
				 "of these slots %lld marks cannot be read and are left as they "
				 "are; the log of the server names them",
				 unread);
	if (client_rollup_is_true(root, "cut"))
		command_complain(args, "there are later slots; --limit gives up to 1000");
	text_table_release(&table);
}

static int client_rollup_pending(const struct command_args *args)
{
	return client_show_route(args, NULL, "/api/rollups", client_rollup_print_pending);
}

/* ---- rebuild --------------------------------------------------------------------------------- */

static void client_rollup_print_rebuilt(const struct command_args *args, const struct json *root,
					UNUSED struct arena *arena)
{
	static const char *const titles[] = {"from",  "to",    "series", "marked",
					     "slots", "marks", "failed"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < 2; i++)
		client_rollup_add_time(&table, root, titles[i]);
	for (size_t i = 2; i < ARRAY_LEN(titles); i++)
		client_rollup_add_number(&table, root, titles[i]);
	text_table_print(&table, args->output);
	text_table_release(&table);
	if (client_i64(root, "failed"))
		command_complain(args, "of %lld series the raw data is damaged: `granary verify`",
				 (long long)client_i64(root, "failed"));
}

static int client_rollup_rebuild(const struct command_args *args)
{
	return client_show_route(args, "POST", "/api/rollups/rebuild", client_rollup_print_rebuilt);
}

/* ---- The command ----------------------------------------------------------------------------- */

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_rollup_args, field, __VA_ARGS__)

#define PARAM(type, field, ...) ROW(type, field, __VA_ARGS__, .param = #field)

static const struct command_option client_rollup_status_options[] = {CLIENT_SERVER, CLIENT_OUTPUT};

static const struct command_option client_rollup_pending_options[] = {
	PARAM(text, limit, "--limit", "N", "at most so many slots, up to 1000", .otherwise = "100"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_rollup_rebuild_options[] = {
	PARAM(text, tenant, "--tenant", "NAME", "only series of this tenant", .otherwise = "all"),
	PARAM(text, metric, "--metric", "NAME", "only series of this metric", .otherwise = "all"),
	PARAM(time, from, "--from", "TIME", "slots from the one of that time on",
	      .otherwise = "all that has raw data"),
	PARAM(time, to, "--to", "TIME", "and those that begin before that one"),
	ROW(flag, dry_run, "--dry-run", NULL, "mark nothing, only count", .param = "dryRun"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command client_rollup_verbs[] = {
	{.name = "rollup status",
	 .summary = "how roll-ups are made, which partitions this server has, what the last pass "
		    "over the marks did, and how far the roll-ups are behind",
	 COMMAND_TAKES(client_rollup_status_options, client_rollup_args),
	 .run = client_rollup_status},
	{.name = "rollup pending",
	 .summary = "the slots that have something marked, oldest first",
	 .about = "pending prints of each slot:\n"
		  "slot\twhen it begins; it is marked until it is rolled up\n"
		  "behind\thow long the first of its series has been ready\n"
		  "partitions\thow many of them have something marked in it\n"
		  "series\thow many series are marked in it, and how many of them are ready\n"
		  "ready at\twhen all of them are, if nothing more comes\n",
	 COMMAND_TAKES(client_rollup_pending_options, client_rollup_args),
	 .run = client_rollup_pending},
	{.name = "rollup rebuild",
	 .summary = "marks whatever has raw data to be rolled up once more",
	 .about = "rebuild is for when marks were lost; where nothing was lost it changes nothing. "
		  "A slot some of whose raw data has expired is left alone. It prints how many "
		  "series it looked at, how many of them it marked, in how many slots, how many "
		  "marks that made, and how many series could not be read.\n",
	 COMMAND_TAKES(client_rollup_rebuild_options, client_rollup_args),
	 .run = client_rollup_rebuild},
};

const struct command client_rollup = {
	.name = "rollup",
	.summary = "print what waits to be rolled up; mark it again",
	.examples = "granary rollup pending --limit 10\n"
		    "granary rollup rebuild --from 1d-ago --dry-run\n",
	COMMAND_VERBS(client_rollup_verbs),
};
