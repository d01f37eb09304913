/* repair: of a directory that no server has open, to a new one. */
#include <stdio.h>

#include "cmd/client.h"
#include "cmd/client_private.h"
#include "store/lmdb/lmdb.h"
#include "wire/timetext.h"

struct client_repair_args {
	struct command_args line;
	const char *data, *to;
};

enum { NO_COPY = 3 };

struct client_repair_report {
	struct text_table table;
	struct buf json;
	struct json_writer writer;
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

static int client_repair_run(const struct command_args *args)
{
	const struct client_repair_args *repair =
		CONTAINER_OF(args, const struct client_repair_args, line);
	struct lmdb_options options = {.path = repair->data};
	struct lmdb_repaired done;
	struct client_repair_report report;
	struct errbuf e;

	client_repair_begin(&report);
	int err = lmdb_repair(&options, repair->to, client_repair_on_lost, &report, &done, &e);
	if (err)
		command_complain(args, "%s", e.text);
	else
		client_repair_print(&report, args, repair->to, &done);
	text_table_release(&report.table);
	buf_release(&report.json);
	return err ? NO_COPY : done.lost ? EXIT_FAILED : EXIT_OK;
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
		 "wrong. The first directory is not changed. NEWDIR must not be there; it appears "
		 "when all of it is on disk.\n"
		 "Exit status: 0 everything was copied, 1 something is not in the copy, and a "
		 "line says what, 2 wrong command line, 3 there is no copy.\n",
	.examples = "granary repair --data ./var --to ./var.repaired\n",
	COMMAND_TAKES(client_repair_options, client_repair_args),
	.run = client_repair_run,
};
