/* repair: of a directory that no server has open, to a new one. */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/client.h"
#include "cmd/client_private.h"
#include "store/lmdb/lmdb.h"
#include "stream/mend.h"
#include "wire/timetext.h"

struct client_repair_args {
	struct command_args line;
	const char *data, *to;
};

enum { NO_COPY = 3, REPAIR_WHY_BYTES = 100 };

struct client_repair_report {
	struct text_table table;
	struct buf json;
	struct json_writer writer;
};

struct client_repair_mend {
	struct client_repair_report *report;
	struct lmdb_repaired *done;
};

static void client_repair_add_time(struct json_writer *writer, struct text_table *table,
				   const char *key, int64_t ms)
{
	char text[TIME_PRINT_MAX_BYTES + 1];
	bool any = ms == INT64_MIN || ms == INT64_MAX;
	text[any ? 0 : time_print(text, ms)] = 0;
	text_table_add(table, any ? SLICE("any") : slice_of(text));
	json_put_i64_or_null(writer, key, !any, ms);
}

static void client_repair_add_text(struct json_writer *writer, struct text_table *table,
				   const char *key, const char *text)
{
	text_table_add(table, text ? slice_of(text) : SLICE("any"));
	if (text)
		json_put_text(writer, key, text);
	else
		json_put_null(writer, key);
}

static void client_repair_on_lost(void *context, const struct lmdb_lost *lost)
{
	struct client_repair_report *report = context;
	struct json_writer *writer = &report->writer;
	json_write_object_begin(writer);
	client_repair_add_text(writer, &report->table, "table", lost->table);
	client_repair_add_text(writer, &report->table, "series", lost->series);
	client_repair_add_time(writer, &report->table, "from", lost->from_ms);
	client_repair_add_time(writer, &report->table, "to", lost->to_ms);
	client_repair_add_text(writer, &report->table, "of", lost->what);
	json_put_u64(writer, "page", lost->page);
	text_table_addf(&report->table, "%llu", (unsigned long long)lost->page);
	client_repair_add_text(writer, &report->table, "why", lost->why);
	json_write_object_end(writer);
}

static void client_repair_begin(struct client_repair_report *report)
{
	static const char *const titles[] = {"table", "series", "from", "to", "of", "page", "why"};
	text_table_init(&report->table, ARRAY_LEN(titles), titles);
	buf_init(&report->json, CLIENT_ANSWER_MAX_BYTES);
	json_writer_init(&report->writer, &report->json);
	json_write_object_begin(&report->writer);
	json_write_key(&report->writer, "lost");
	json_write_array_begin(&report->writer);
}

static void client_repair_print(struct client_repair_report *report,
				const struct command_args *args, const char *to,
				const struct lmdb_repaired *done)
{
	json_write_array_end(&report->writer);
	json_put_u64(&report->writer, "copied", done->copied);
	json_write_object_end(&report->writer);
	fprintf(stderr, "%llu entries copied to %s; %s\n", (unsigned long long)done->copied, to,
		done->lost ? "what follows is not there, or may have been:" : "nothing is lost");
	if (args->output == OUTPUT_JSON && report->json.failed)
		command_complain(args, "the report is too long for JSON: -o csv has all of it");
	else if (args->output == OUTPUT_JSON)
		printf("%.*s\n", (int)report->json.len, report->json.data);
	else if (done->lost)
		text_table_print(&report->table, args->output);
}

static void client_repair_on_lost_bytes(void *context, const struct stream_id *id,
					const struct offset_range *lost)
{
	struct client_repair_mend *mend = context;
	struct buf address;
	char why[REPAIR_WHY_BYTES];
	buf_init(&address, STREAM_ADDRESS_MAX_BYTES + 1);
	stream_address_put(&id->names, id->incarnation, &address);
	buf_append_char(&address, 0);
	snprintf(why, sizeof(why), "the bytes %" PRIu64 " to %" PRIu64 " are a hole now",
		 lost->begin, lost->end);
	const struct lmdb_lost line = {.what = address.data,
				       .table = schema[TABLE_CHUNK_SINK].name,
				       .from_ms = INT64_MIN,
				       .to_ms = INT64_MAX,
				       .why = why};
	mend->done->lost++;
	client_repair_on_lost(mend->report, &line);
	buf_release(&address);
}

/* What tables say of each other is not known to the store: streams that have lost blocks. */
static int client_repair_mend_streams(struct client_repair_report *report, const char *to,
				      struct lmdb_repaired *done, struct errbuf *e)
{
	struct lmdb_options options = {.path = to, .must_exist = true};
	struct client_repair_mend mend = {report, done};
	struct stream_site site = {.clock = clock_real()};
	struct task_queue queue;
	int err = lmdb_open(&options, &site.store, e);
	if (err)
		return err;
	task_queue_init(&queue);
	err = stream_mend(&site, &queue, client_repair_on_lost_bytes, &mend, e);
	store_close(site.store);
	task_queue_release(&queue);
	return err;
}

static int client_repair_run(const struct command_args *args)
{
	const struct client_repair_args *repair =
		CONTAINER_OF(args, const struct client_repair_args, line);
	struct lmdb_options options = {.path = repair->data};
	struct lmdb_repaired done;
	struct client_repair_report report;
	struct errbuf e = {""};
	int mended = 0;

	client_repair_begin(&report);
	int err = lmdb_repair(&options, repair->to, client_repair_on_lost, &report, &done, &e);
	if (err) {
		command_complain(args, "%s", e.text);
	} else {
		mended = client_repair_mend_streams(&report, repair->to, &done, &e);
		if (mended)
			command_complain(args,
					 "%s: which bytes of streams are lost is not known: "
					 "%s",
					 repair->to, e.text);
		client_repair_print(&report, args, repair->to, &done);
	}
	text_table_release(&report.table);
	buf_release(&report.json);
	return err ? NO_COPY : done.lost || mended ? EXIT_FAILED : EXIT_OK;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_repair_args, field, __VA_ARGS__)
static const struct command_option client_repair_options[] = {
	ROW(text, data, "--data", "DIR", "the directory", .required = true),
	ROW(text, to, "--to", "NEWDIR", "where the copy goes", .required = true),
	CLIENT_OUTPUT,
};

const struct command client_repair = {
	.name = "repair",
	.summary = "copy what is whole in a damaged data directory to a new one",
	.about = "Copies what is whole in a damaged directory that no server has open to a new "
		 "one, and prints, by table, series and time, what is not in the copy or may have "
		 "been there. What cannot be verified is left out, so no number in the copy is "
		 "wrong. Bytes of streams whose blocks are lost are a hole in the copy. The first "
		 "directory is not changed. NEWDIR must not be there; it appears "
		 "when all of it is on disk.\n"
		 "Exit status: 0 everything was copied, 1 something is not in the copy, and a "
		 "line says what, 2 wrong command line, 3 there is no copy.\n",
	.examples = "granary repair --data ./var --to ./var.repaired\n",
	COMMAND_TAKES(client_repair_options, client_repair_args),
	.run = client_repair_run,
};
