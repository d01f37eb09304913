/* rollup: how roll-ups are made, what waits for them, and marks made anew (api/admin/rollups.h). */
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "retention/granularity.h"
#include "wire/timetext.h"

enum { SPAN_MAX_BYTES = GRANULARITY_WIDTH_MAX_BYTES, TEXT_MAX_BYTES = 64 << 10 };

const char client_rollup_help[] =
	"usage: granary rollup status [options]\n"
	"       granary rollup pending [--limit N] [options]\n"
	"       granary rollup rebuild [--tenant NAME] [--metric NAME] [--from TIME] [--to TIME]\n"
	"                              [--dry-run] [options]\n"
	"\n"
	"status prints how roll-ups are made, which partitions this server has, what the last "
	"pass\n"
	"over the marks did, and how far the roll-ups are behind.\n"
	"\n"
	"pending prints the slots that have something marked, oldest first:\n"
	"\n"
	"  slot        when it begins; it is marked until it is rolled up\n"
	"  behind      how long the first of its series has been ready\n"
	"  partitions  how many of them have something marked in it\n"
	"  series      how many series are marked in it, and how many of them are ready\n"
	"  ready at    when all of them are, if nothing more comes\n"
	"\n"
	"rebuild marks whatever has raw data to be rolled up once more, for when marks were lost;\n"
	"where nothing was lost that changes nothing. A slot some of whose raw data has expired "
	"is\n"
	"left alone. It prints how many series it looked at, how many of them it marked, in how "
	"many\n"
	"slots, how many marks that made, and how many series could not be read.\n"
	"\n"
	"  --limit N      at most so many slots, up to 1000; default 100\n"
	"  --tenant NAME  only series of this tenant; default all\n"
	"  --metric NAME  only series of this metric; default all\n"
	"  --from TIME    slots from the one of that time on: 2020-08-24, 2020-08-24T16:34Z, "
	"seconds\n"
	"                 since 1970, 7d-ago; default all that has raw data\n"
	"  --to TIME      and those that begin before that one\n"
	"  --dry-run      mark nothing, only count\n"
	"  --server URL   where the server is (default http://127.0.0.1:8470)\n"
	"  -o FORMAT      table, csv or json; default: a table on a terminal, else csv\n"
	"\n"
	"Examples:\n"
	"  granary rollup pending --limit 10\n"
	"  granary rollup rebuild --from 1d-ago --dry-run\n";

/* ---- Texts ----------------------------------------------------------------------------------- */

static struct slice text_of(const struct json *object, const char *key)
{
	const struct json *member = object ? json_member(object, key) : NULL;
	return member ? member->text : SLICE("");
}

/* A time is NULL in JSON where there is none. */
static bool is_time(const struct json *object, const char *key, int64_t *ms)
{
	return object && json_get_i64(object, key, ms, NULL) == 0;
}

static void put_time(struct buf *out, const struct json *object, const char *key)
{
	char text[TIME_PRINT_MAX_BYTES];
	int64_t ms;
	if (is_time(object, key, &ms))
		buf_append(out, text, time_print(text, ms));
	else
		buf_append_char(out, '-');
}

/* `1h2m`, whole seconds; below a second `0s`. */
static void put_span(struct buf *out, int64_t ms)
{
	char text[SPAN_MAX_BYTES];
	if (ms < 1000)
		buf_append_text(out, "0s");
	else
		buf_append(out, text, granularity_width_print(text, ms / 1000 * 1000));
}

static void add_time(struct text_table *table, const struct json *object, const char *key)
{
	struct buf text;
	buf_init(&text, TEXT_MAX_BYTES);
	put_time(&text, object, key);
	text_table_add(table, buf_slice(&text));
	buf_release(&text);
}

static void add_span(struct text_table *table, int64_t ms)
{
	struct buf text;
	buf_init(&text, TEXT_MAX_BYTES);
	put_span(&text, ms);
	text_table_add(table, buf_slice(&text));
	buf_release(&text);
}

static void add_number(struct text_table *table, const struct json *object, const char *key)
{
	text_table_addf(table, "%lld", (long long)client_i64(object, key));
}

/* ---- status ---------------------------------------------------------------------------------- */

static void put_kept(struct buf *out, int64_t retention_ms)
{
	if (retention_ms)
		put_span(out, retention_ms);
	else
		buf_append_text(out, "ever");
}

static void put_granularities(struct buf *out, const struct json *root)
{
	const struct json *list = json_member(root, "granularities");
	for (const struct json *g = list ? list->first : NULL; g; g = g->next) {
		struct slice width = text_of(g, "width");
		int64_t retention_ms = client_i64(g, "retentionMs");
		buf_printf(out, "%s%.*s for ", g == list->first ? "" : ", ", (int)width.len,
			   width.data);
		put_kept(out, retention_ms);
	}
	if (!out->len)
		buf_append_text(out, "none: nothing is rolled up");
}

static void put_slots(struct buf *out, const struct json *root)
{
	put_span(out, client_i64(root, "slotMs"));
	buf_append_text(out, ", rolled up after ");
	put_span(out, client_i64(root, "quietMs"));
	buf_append_text(out, " without a sample");
}

static void put_late(struct buf *out, const struct json *root)
{
	struct slice late = text_of(root, "late");
	if (slice_equal(late, SLICE("keep"))) {
		buf_append_text(out, "kept for ");
		put_kept(out, client_i64(root, "lateRetentionMs"));
	} else if (slice_equal(late, SLICE("refuse"))) {
		buf_append_text(out, "refused");
	} else {
		buf_append_text(out, "none: raw samples are kept for ever");
	}
}

static void put_suffixes(struct buf *out, const struct json *root)
{
	const struct json *list = json_member(root, "counterSuffixes");
	for (const struct json *s = list ? list->first : NULL; s; s = s->next)
		buf_printf(out, "%s*%.*s", s == list->first ? "" : ", ", (int)s->text.len,
			   s->text.data);
	if (!out->len)
		buf_append_char(out, '-');
}

static bool is_true(const struct json *object, const char *key)
{
	bool yes = false;
	return object && json_get_bool(object, key, &yes, NULL) == 0 && yes;
}

static void put_tracking(struct buf *out, const struct json *root)
{
	const struct json *tracking = json_member(root, "tracking");
	struct slice in = text_of(tracking, "in"), why = text_of(tracking, "degraded");
	buf_printf(out, "in %s", slice_equal(in, SLICE("redis")) ? "Redis" : "the store");
	if (why.len)
		buf_printf(out, "; it cannot be used, the store has them for now: %.*s",
			   (int)why.len, why.data);
	if (is_true(tracking, "incomplete"))
		buf_append_text(out, "; some were lost and are not all made anew yet");
}

static void put_partitions(struct buf *out, const struct json *root)
{
	struct slice own = text_of(root, "own"), held = text_of(root, "held");
	struct slice name = text_of(root, "name");
	if (!own.len)
		own = SLICE("none");
	if (!held.len)
		held = SLICE("none");
	buf_printf(out, "%lld, numbered from 0; %.*s may roll up: %.*s; rolls up now: %.*s",
		   (long long)client_i64(root, "partitions"), (int)name.len, name.data,
		   (int)own.len, own.data, (int)held.len, held.data);
}

static void put_pass(struct buf *out, const struct json *root)
{
	const struct json *pass = json_member(root, "lastPass");
	if (!pass || pass->type != JSON_T_OBJECT) {
		buf_append_text(out, "none yet");
		return;
	}
	long long unread = client_i64(pass, "unread");
	put_time(out, pass, "at");
	buf_printf(out, ": %lld series rolled up, %lld rows, %lld series waiting, %lld failed",
		   (long long)client_i64(pass, "rolledUp"), (long long)client_i64(pass, "rows"),
		   (long long)client_i64(pass, "waiting"), (long long)client_i64(pass, "failed"));
	if (unread)
		buf_printf(out, "; %lld marks cannot be read, the log names them", unread);
}

static void put_next(struct buf *out, const struct json *root)
{
	put_time(out, json_member(root, "lastPass"), "nextReadyAt");
}

static void put_behind(struct buf *out, const struct json *root)
{
	int64_t ms;
	if (!is_time(root, "oldestSlot", &ms)) {
		buf_append_text(out, "nothing waits");
		return;
	}
	put_span(out, client_i64(root, "behindMs"));
	buf_append_text(out, "; the oldest slot that waits is ");
	put_time(out, root, "oldestSlot");
}

static void put_error(struct buf *out, const struct json *root)
{
	struct slice leases = text_of(root, "error");
	struct slice pass = text_of(json_member(root, "lastPass"), "error");
	struct slice error = leases.len ? leases : pass;
	buf_append(out, error.len ? error.data : "-", error.len ? error.len : 1);
}

static void print_status(const struct client_args *args, const struct json *root,
			 UNUSED struct arena *arena)
{
	static const char *const titles[] = {"what", "is"};
	static const struct {
		const char *what;
		void (*put)(struct buf *out, const struct json *root);
	} rows[] = {
		{"granularities", put_granularities},
		{"slots", put_slots},
		{"late", put_late},
		{"counters", put_suffixes},
		{"partitions", put_partitions},
		{"marks", put_tracking},
		{"last pass", put_pass},
		{"next ready", put_next},
		{"behind", put_behind},
		{"error", put_error},
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

static int status(const struct client_args *args)
{
	return client_show(args, "/api/rollups", args->output == OUTPUT_JSON, print_status);
}

/* ---- pending --------------------------------------------------------------------------------- */

/* Of a slot whose marks were not all looked at it is that many at least, or nobody knows. */
static void add_count(struct text_table *table, const struct json *slot, const char *key)
{
	bool counted = is_true(slot, "counted");
	if (counted)
		add_number(table, slot, key);
	else if (client_i64(slot, "series"))
		text_table_addf(table, ">=%lld", (long long)client_i64(slot, key));
	else
		text_table_add(table, SLICE("not counted"));
}

static void add_slot(struct text_table *table, const struct json *slot, int64_t now_ms)
{
	int64_t since_ms;
	add_time(table, slot, "slot");
	add_span(table, is_time(slot, "readySince", &since_ms) ? now_ms - since_ms : 0);
	add_number(table, slot, "partitions");
	add_count(table, slot, "series");
	add_count(table, slot, "ready");
	add_time(table, slot, "readyAt");
}

static void print_pending(const struct client_args *args, const struct json *root,
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
		add_slot(&table, slot, now_ms);
		uncounted += !is_true(slot, "counted");
		unread += client_i64(slot, "unread");
	}
	text_table_print(&table, args->output);
	if (uncounted)
		client_complain(args,
				"there are more marks than are looked at at once: of the last "
				"%zu of these slots, series were not counted",
				uncounted);
	if (unread)
		client_complain(args,
				"of these slots %lld marks cannot be read and are left as they "
				"are; the log of the server names them",
				unread);
	if (is_true(root, "cut"))
		client_complain(args, "there are later slots; --limit gives up to 1000");
	text_table_release(&table);
}

static int pending(const struct client_args *args)
{
	const struct client_value limit = {"limit", args->limit};
	return client_show_route(args, "/api/rollups", &limit, 1, print_pending);
}

/* ---- rebuild --------------------------------------------------------------------------------- */

static void print_rebuilt(const struct client_args *args, const struct json *root,
			  UNUSED struct arena *arena)
{
	static const char *const titles[] = {"from",  "to",    "series", "marked",
					     "slots", "marks", "failed"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < 2; i++)
		add_time(&table, root, titles[i]);
	for (size_t i = 2; i < ARRAY_LEN(titles); i++)
		add_number(&table, root, titles[i]);
	text_table_print(&table, args->output);
	text_table_release(&table);
	if (client_i64(root, "failed"))
		client_complain(args, "of %lld series the raw data is damaged: `granary verify`",
				(long long)client_i64(root, "failed"));
}

static int rebuild(const struct client_args *args)
{
	struct client_args sent = *args;
	const struct client_value values[] = {{"tenant", args->only_tenant},
					      {"metric", args->metric},
					      {"from", args->from},
					      {"to", args->to},
					      {"dryRun", args->dry_run ? "true" : NULL}};
	sent.method = "POST";
	return client_show_route(&sent, "/api/rollups/rebuild", values, ARRAY_LEN(values),
				 print_rebuilt);
}

/* ---- The command ----------------------------------------------------------------------------- */

static const struct client_verb verbs[] = {
	{"status",
	 status,
	 {"rollup status", client_rollup_help, OPTION_SERVER | OPTION_OUTPUT, 0, 0}},
	{"pending",
	 pending,
	 {"rollup pending", client_rollup_help, OPTION_SERVER | OPTION_OUTPUT | OPTION_LIMIT, 0,
	  0}},
	{"rebuild",
	 rebuild,
	 {"rollup rebuild", client_rollup_help, OPTION_SERVER | OPTION_OUTPUT | OPTION_REBUILD, 0,
	  0}},
};

int client_rollup(int argc, char *const *argv)
{
	return client_run_verb("rollup", client_rollup_help, verbs, ARRAY_LEN(verbs), argc, argv);
}
