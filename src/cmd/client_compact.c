/* compact: of a directory that no server has open. */
#include <stdio.h>

#include "base/fault.h"
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "store/lmdb/lmdb.h"

struct client_compact_args {
	struct command_args line;
	const char *data;
	bool all;
};

static void client_compact_print(const struct command_args *args,
				 const struct lmdb_compaction *done)
{
	static const char *const titles[] = {"bytes before", "bytes after"};
	unsigned long long before = done->before_bytes, after = done->after_bytes;
	struct text_table table;

	if (args->output == OUTPUT_JSON) {
		printf("{\"bytesBefore\":%llu,\"bytesAfter\":%llu}\n", before, after);
		return;
	}
	text_table_init(&table, ARRAY_LEN(titles), titles);
	text_table_addf(&table, "%llu", before);
	text_table_addf(&table, "%llu", after);
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static int client_compact_run(const struct command_args *args)
{
	const struct client_compact_args *compact =
		CONTAINER_OF(args, const struct client_compact_args, line);
	struct lmdb_options options = {.path = compact->data};
	struct lmdb_compaction done;
	struct errbuf e;
	int err = fault_arm_from_env(&e);

	if (!err)
		err = lmdb_compact(&options, compact->all, &done, &e);
	if (err) {
		command_complain(args, "%s", e.text);
		return EXIT_FAILED;
	}
	client_compact_print(args, &done);
	return EXIT_OK;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_compact_args, field, __VA_ARGS__)
static const struct command_option client_compact_options[] = {
	ROW(text, data, "--data", "DIR", "the directory", .required = true),
	ROW(flag, all, "--all", NULL, "settle also segments that are still being written"),
	CLIENT_OUTPUT,
};

const struct command client_compact = {
	.name = "compact",
	.summary = "rewrite a data directory to take the least room",
	.about = "Rewrites the data file of a directory that no server has open, so that it takes "
		 "the least room: closed segments are settled, free pages left out, pages filled. "
		 "Needs room for a copy while it runs. Whenever it is broken off, the old file or "
		 "the new one is there, whole.\n",
	.examples = "granary compact --data ./var\n",
	COMMAND_TAKES(client_compact_options, client_compact_args),
	.run = client_compact_run,
};
