/* compact: of a directory that no server has open. */
#include <stdio.h>

#include "base/fault.h"
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "store/lmdb/lmdb.h"

const char client_compact_help[] =
	"usage: granary compact --data DIR [options]\n"
	"\n"
	"Rewrites the data file of a directory that no server has open, so that it takes the "
	"least\n"
	"room: closed segments are settled, free pages left out, pages filled. Needs room for a "
	"copy\n"
	"while it runs. Whenever it is broken off, the old file or the new one is there, whole.\n"
	"\n"
	"  --data DIR      the directory\n"
	"  --all           settle also segments that are still being written\n"
	"  -o FORMAT       table, csv or json; default: a table on a terminal, else csv\n"
	"\n"
	"Examples:\n"
	"  granary compact --data ./var\n";

static const struct client_command compact_command = {
	.name = "compact",
	.help = client_compact_help,
	.options = OPTION_DATA | OPTION_ALL | OPTION_OUTPUT,
};

static void print_found(const struct client_args *args, const struct lmdb_compaction *done)
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

int client_compact(int argc, char *const *argv)
{
	struct client_args args;
	struct lmdb_compaction done;
	struct errbuf e;
	int err = client_parse(&compact_command, argc, argv, &args);

	if (err)
		return client_parse_exit(err);
	if (!args.data) {
		(void)client_usage(&args, "--data is needed");
		return CLIENT_USAGE;
	}
	struct lmdb_options options = {.path = args.data};
	err = fault_arm_from_env(&e);
	if (!err)
		err = lmdb_compact(&options, args.all, &done, &e);
	if (err) {
		client_complain(&args, "%s", e.text);
		return CLIENT_FAILED;
	}
	print_found(&args, &done);
	return CLIENT_OK;
}
