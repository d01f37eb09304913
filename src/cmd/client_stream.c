/* The command `stream`: streams of logs, by a server's API (api/stream/). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/client.h"
#include "cmd/client_private.h"
#include "wire/number.h"

struct client_stream_args {
	struct command_args line;
	const char *stream, *source, *cluster, *datatype, *name;
	int64_t from, to;
	bool dry_run;
};

static const struct client_stream_args *client_stream_args_of(const struct command_args *args)
{
	return CONTAINER_OF(args, const struct client_stream_args, line);
}

/* ---- list ------------------------------------------------------------------------------------ */

/* `0-200 300-400` */
static void client_stream_add_ranges(struct text_table *table, const struct json *stream,
				     const char *key)
{
	const struct json *list = json_member(stream, key);
	struct buf text;
	buf_init(&text, CLIENT_PATH_MAX_BYTES);
	for (const struct json *range = list ? list->first : NULL; range; range = range->next) {
		struct slice from = range->first ? range->first->text : SLICE("");
		struct slice to =
			range->first && range->first->next ? range->first->next->text : SLICE("");
		buf_printf(&text, "%s%.*s-%.*s", text.len ? " " : "", (int)from.len, from.data,
			   (int)to.len, to.data);
	}
	text_table_add(table, buf_slice(&text));
	buf_release(&text);
}

static void client_stream_print(const struct command_args *args, const struct json *root,
				struct text_table *table)
{
	const struct json *list = json_member(root, "streams");
	for (const struct json *one = list ? list->first : NULL; one; one = one->next) {
		const struct json *waiting = json_member(one, "waiting");
		text_table_add_member(table, one, "stream");
		client_stream_add_ranges(table, one, "held");
		text_table_addf(table, "%" PRId64, waiting ? client_i64(waiting, "bytes") : 0);
		client_fault_add_time(table, one, "made");
	}
	text_table_print(table, args->output);
}

static void client_stream_print_page(const struct command_args *args, const struct json *root,
				     bool first)
{
	static const char *const titles[] = {"stream", "held", "waiting", "made"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	table.untitled = !first;
	client_stream_print(args, root, &table);
	text_table_release(&table);
}

static int client_stream_list_run(const struct command_args *args)
{
	struct buf path;
	client_route(&path, args, "/api/streams");
	int status = client_show_pages(args, &path, client_stream_print_page);
	buf_release(&path);
	return status;
}

/* ---- export ---------------------------------------------------------------------------------- */

/* One answer to standard output. *at moves behind it; *begin: where it began. */
static int client_stream_export_some(const struct command_args *args, int64_t *at, int64_t *begin,
				     bool *any)
{
	const struct client_stream_args *a = client_stream_args_of(args);
	struct client_answer answer;
	struct buf path;
	char number[24];
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_answer_init(&answer);
	client_route(&path, args, "/api/streams/export");
	snprintf(number, sizeof(number), "%" PRId64, *at);
	client_param(&path, "from", number);
	snprintf(number, sizeof(number), "%" PRId64, a->to);
	client_param(&path, "to", number);
	int err = client_request(args, NULL, path.data, NULL, (struct slice){NULL, 0}, &answer);
	*any = !err && answer.body.len;
	*begin = answer.offset;
	if (*any) {
		size_t written = fwrite(answer.body.data, 1, answer.body.len, stdout);
		*at = *begin + (int64_t)answer.body.len;
		if (written != answer.body.len) {
			command_complain(args, "standard output cannot be written");
			err = ERR_INVALID;
		}
	}
	client_answer_release(&answer);
	buf_release(&path);
	return err;
}

static int client_stream_export_run(const struct command_args *args)
{
	int64_t at = client_stream_args_of(args)->from, begin;
	bool any = true, first = true;
	int err = 0;
	while (!err && any) {
		int64_t expected = at;
		err = client_stream_export_some(args, &at, &begin, &any);
		if (!err && any && !first && begin != expected)
			command_complain(args,
					 "the bytes from offset %" PRId64 " to %" PRId64
					 " are not there",
					 expected, begin);
		first = false;
	}
	return err || fflush(stdout) ? EXIT_FAILED : EXIT_OK;
}

/* ---- delete ---------------------------------------------------------------------------------- */

static void client_stream_print_deleted(const struct command_args *args, const struct json *root,
					UNUSED struct arena *arena)
{
	static const char *const members[] = {"stream", "bytes", "dry_run"};
	text_table_print_list(root, members, ARRAY_LEN(members), args->output);
}

static int client_stream_delete_run(const struct command_args *args)
{
	return client_show_route(args, "DELETE", "/api/streams", client_stream_print_deleted);
}

/* ---- Options --------------------------------------------------------------------------------- */

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_stream_args, field, __VA_ARGS__)
#define SERVER_ROW                                                                                 \
	COMMAND_ROW(command_text, client_stream_args, line.server, "--server", "URL",              \
		    "where the server is", .preset = "http://127.0.0.1:8470")
#define TENANT_ROW                                                                                 \
	COMMAND_ROW(client_tenant_type, client_stream_args, line.tenant, "--tenant", "NAME",       \
		    "whose streams", .preset = "default", .param = "tenant")

static const struct command_option client_stream_list_options[] = {
	ROW(text, source, "--source", "HOST", "only those of this host", .param = "source"),
	ROW(text, cluster, "--cluster", "NAME", "only those of this cluster", .param = "cluster"),
	ROW(text, datatype, "--datatype", "NAME", "only those of this datatype",
	    .param = "datatype"),
	ROW(text, name, "--name", "NAME", "only those of this name", .param = "name"),
	TENANT_ROW,
	SERVER_ROW,
	COMMAND_ROW(client_output_type, client_stream_args, line.output, "--output", "FORMAT",
		    "table, csv or json", .letter = "-o",
		    .otherwise = "a table on a terminal, else csv"),
};

static const struct command_option client_stream_export_options[] = {
	ROW(text, stream, NULL, "STREAM", "its address, as `stream list` prints it",
	    .param = "stream", .required = true),
	ROW(number, from, "--from", "OFFSET", "the first offset", .preset = "0", .min = 0,
	    .max = INT64_MAX),
	ROW(number, to, "--to", "OFFSET", "the offset behind the last",
	    .preset = "9223372036854775807", .min = 0, .max = INT64_MAX),
	TENANT_ROW,
	SERVER_ROW,
};

static const struct command_option client_stream_delete_options[] = {
	ROW(text, stream, NULL, "STREAM", "its address, as `stream list` prints it",
	    .param = "stream", .required = true),
	ROW(flag, dry_run, "--dry-run", NULL, "only say how many bytes would go",
	    .param = "dryRun"),
	TENANT_ROW,
	SERVER_ROW,
	COMMAND_ROW(client_output_type, client_stream_args, line.output, "--output", "FORMAT",
		    "table, csv or json", .letter = "-o",
		    .otherwise = "a table on a terminal, else csv"),
};

static const struct command client_stream_verbs[] = {
	{.name = "stream list",
	 .summary = "list streams, and which of their bytes are held",
	 .about = "Prints the streams of a tenant: their address, the offsets that are held, how "
		  "many "
		  "bytes wait to be put into blocks, and when the first chunk came.\n",
	 .examples = "granary stream list --source web1\n",
	 COMMAND_TAKES(client_stream_list_options, client_stream_args),
	 .run = client_stream_list_run},
	{.name = "stream export",
	 .summary = "print the bytes of a stream",
	 .about = "Prints the bytes of a stream as they were sent. Of a hole nothing is printed "
		  "but a "
		  "sentence to standard error.\n",
	 .examples = "granary stream export "
		     "host1/web/syslog//var/log/messages@00c1d2e3f4a5b6c7 > messages\n",
	 COMMAND_TAKES(client_stream_export_options, client_stream_args),
	 .run = client_stream_export_run},
	{.name = "stream delete",
	 .summary = "delete all that is held of a stream",
	 .about = "Deletes all that is held of a stream now. It is not shown any more at once, and "
		  "leaves the disk soon. What comes later is kept.\n",
	 .examples =
		 "granary stream delete host1/web/debug//tmp/trace@00c1d2e3f4a5b6c7 --dry-run\n",
	 COMMAND_TAKES(client_stream_delete_options, client_stream_args),
	 .run = client_stream_delete_run},
};

const struct command client_stream = {
	.name = "stream",
	.summary = "list, print and delete streams of logs",
	COMMAND_VERBS(client_stream_verbs),
};
