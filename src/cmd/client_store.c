/* stats and verify: of a server by its API, or of a directory that no server has open; verify also
 * of a backup. All ways
 * give the same JSON (api/admin/store_json.h), from which the tables are made. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/admin/store_json.h"
#include "api/admin/store_verify.h"
#include "base/clock.h"
#include "base/exec.h"
#include "cmd/client.h"
#include "cmd/client_backup.h"
#include "store/lmdb/lmdb.h"
#include "store/wait.h"

enum { SLICE_MAX_BYTES = 64 << 20, SENTENCES_MAX = 1000 };

struct client_store_args {
	struct command_args line;
	const char *data;   /* NULL: of a server */
	const char *backup; /* verify: of this file, instead */
	bool words;
};

/* ---- A directory ---------------------------------------------------------------------------- */

/* An opened directory and what its slices have found so far. */
struct client_store_local {
	struct store *store;
	struct task_queue queue;
	struct store_read *read;
	struct store_stats stats;
	uint64_t checked, problems, orphans;
	bool is_silent;                       /* its child, which was ended for that */
	int found_fd;                         /* of a child: to which it writes what it finds */
	const char *sentences[SENTENCES_MAX]; /* in `arena` */
	size_t sentence_count;
	struct arena arena;
};

static int client_store_open(const struct client_store_args *args, struct client_store_local *local)
{
	struct lmdb_options options = {.path = args->data, .inspect = true};
	struct errbuf e;
	int err = lmdb_open(&options, &local->store, &e);

	if (err) {
		command_complain(&args->line, "%s", e.text);
		return err;
	}
	task_queue_init(&local->queue);
	arena_init(&local->arena, SLICE_MAX_BYTES);
	local->read = store_read_new(local->store, SLICE_MAX_BYTES);
	return 0;
}

static void client_store_close(struct client_store_local *local)
{
	store_read_free(local->read);
	store_close(local->store);
	task_queue_release(&local->queue);
	arena_release(&local->arena);
}

static void client_store_keep_sentence(struct client_store_local *local, const char *sentence)
{
	if (local->sentence_count == SENTENCES_MAX)
		return;
	struct slice copy = arena_copy(&local->arena, slice_of(sentence));
	if (copy.data)
		local->sentences[local->sentence_count++] = copy.data;
}

/* One slice from *token on; *more says whether there is another. */
static int client_store_read_slice(struct client_store_local *local, enum store_op op,
				   struct store_token *token, bool *more)
{
	store_read_reset(local->read);
	struct store_request *request = store_read_add(local->read, op);
	ASSERT(request);
	request->token = *token;
	if (op == STORE_STATS)
		*request->stats = local->stats;
	else
		request->verify = (struct store_verify){.checked = local->checked,
							.problems = local->problems};
	local->read->now_ms = clock_wall_ms(clock_real());
	int err = store_read_wait(local->read, &local->queue);
	if (op == STORE_STATS) {
		local->stats = *request->stats;
	} else {
		local->checked = request->verify.checked;
		local->problems = request->verify.problems;
		for (size_t i = 0; i < request->verify.sentence_count; i++)
			client_store_keep_sentence(local, request->verify.sentences[i]);
	}
	*token = request->token;
	*more = request->more;
	return err;
}

/* ---- In a process of its own -----------------------------------------------------------------
 * LMDB trusts the pages that it reads: a damaged one may lead it anywhere. So it reads in a child,
 * whose end by a signal is one more sentence. What it finds it writes to a pipe as it goes, so that
 * the sentences before such an end are kept. A child of which nothing comes for long goes round in
 * a circle, and is ended. */

/* A sentence has its end, a zero, with it; an empty one only says that the child goes on. What has
 * been found otherwise comes last. */
enum {
	FOUND_MARK = 1,
	SILENT_MAX_MS = 600000,
	SILENT_DAMAGED_MAX_MS = 10000, /* where a damaged page has been found already */
};

static void client_store_write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;
	while (len) {
		ssize_t n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(EXIT_FAILED);
		at += n;
		len -= (size_t)n;
	}
}

static void client_store_write_sentence(void *owner, const char *sentence)
{
	const struct client_store_local *local = owner;
	client_store_write_all(local->found_fd, sentence, strlen(sentence) + 1);
}

static void client_store_write_going_on(void *owner)
{
	client_store_write_sentence(owner, "");
}

static int client_store_verify_tables(const struct client_store_args *args,
				      struct client_store_local *local)
{
	struct tables_verify tables = {.store = local->store,
				       .clock = clock_real(),
				       .queue = &local->queue,
				       .all_words = args->words,
				       .tell = client_store_write_sentence,
				       .goes_on = client_store_write_going_on,
				       .owner = local};
	int err = store_verify_tables(&tables);
	local->checked += tables.checked;
	local->problems += tables.problems;
	local->orphans = tables.orphans;
	return err;
}

static NORETURN void client_store_child_main(const struct client_store_args *args,
					     struct client_store_local *local, enum store_op op,
					     int fd)
{
	struct store_token token = {.len = 0};
	bool more = true;
	char mark = FOUND_MARK;
	int err = client_store_open(args, local);
	if (err)
		_exit(EXIT_FAILED);
	local->found_fd = fd;
	while (more && !err) {
		size_t before = local->sentence_count;
		client_store_write_going_on(local);
		err = client_store_read_slice(local, op, &token, &more);
		for (size_t i = before; i < local->sentence_count; i++)
			client_store_write_sentence(local, local->sentences[i]);
	}
	if (!err && op == STORE_VERIFY)
		err = client_store_verify_tables(args, local);
	if (err) {
		command_complain(&args->line, "%s: %s", args->data, err_text(err));
		_exit(EXIT_FAILED);
	}
	client_store_write_all(fd, &mark, 1);
	client_store_write_all(fd, &local->stats, sizeof(local->stats));
	client_store_write_all(fd, &local->checked, sizeof(local->checked));
	client_store_write_all(fd, &local->problems, sizeof(local->problems));
	client_store_write_all(fd, &local->orphans, sizeof(local->orphans));
	client_store_close(local);
	_exit(EXIT_OK);
}

/* Up to its end. False: nothing came for silent_ms. */
static bool client_store_read_all(int fd, int silent_ms, struct buf *out)
{
	char *to;
	while ((to = buf_reserve(out, PIPE_BUF)) != NULL) {
		struct pollfd wanted = {.fd = fd, .events = POLLIN};
		int ready = poll(&wanted, 1, silent_ms);
		ssize_t n = ready > 0 ? read(fd, to, PIPE_BUF) : ready;
		if (n < 0 && errno == EINTR)
			continue;
		if (ready == 0)
			return false;
		if (n <= 0)
			break;
		out->len += (size_t)n;
	}
	return true;
}

/* Adds what the child has found to `local`. */
static void client_store_take_found(struct client_store_local *local, struct slice bytes)
{
	uint64_t pages = local->checked, checked = 0, problems = 0;
	while (bytes.len && bytes.data[0] != FOUND_MARK) {
		const char *end = memchr(bytes.data, 0, bytes.len);
		if (!end)
			return; /* cut by its end */
		if (end > bytes.data) {
			local->problems++;
			client_store_keep_sentence(local, bytes.data);
			problems++;
		}
		bytes.len -= (size_t)(end + 1 - bytes.data);
		bytes.data = end + 1;
	}
	if (bytes.len != 1 + sizeof(local->stats) + 3 * sizeof(checked))
		return;
	memcpy(&local->stats, bytes.data + 1, sizeof(local->stats));
	memcpy(&checked, bytes.data + 1 + sizeof(local->stats), sizeof(checked));
	local->checked = pages + checked;
	memcpy(&checked, bytes.data + 1 + sizeof(local->stats) + sizeof(checked), sizeof(checked));
	local->problems += checked > problems ? checked - problems : 0;
	memcpy(&local->orphans, bytes.data + 1 + sizeof(local->stats) + 2 * sizeof(checked),
	       sizeof(local->orphans));
}

/* An end that nothing else has explained. */
static void client_store_name_end(struct client_store_local *local, int status)
{
	char sentence[256];
	if (local->is_silent)
		snprintf(sentence, sizeof(sentence),
			 "reading the store was ended: a damaged page led round in a circle");
	else if (WIFSIGNALED(status))
		snprintf(sentence, sizeof(sentence),
			 "reading the store ended by signal %d (%s): a damaged page led there",
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(sentence, sizeof(sentence),
			 "the store cannot be read: the process that read it ended with status %d",
			 WEXITSTATUS(status));
	local->problems++;
	client_store_keep_sentence(local, sentence);
}

static int client_store_read_in_child(const struct client_store_args *args,
				      struct client_store_local *local, enum store_op op,
				      int *status)
{
	int ends[2];
	struct buf found;
	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		struct client_store_local *own = mem_zalloc(sizeof(*own));
		close(ends[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		client_store_child_main(args, own, op, ends[1]);
	}
	close(ends[1]);
	buf_init(&found, SLICE_MAX_BYTES);
	int silent_ms = local->problems ? SILENT_DAMAGED_MAX_MS : SILENT_MAX_MS;
	local->is_silent = child > 0 && !client_store_read_all(ends[0], silent_ms, &found);
	if (local->is_silent)
		kill(child, SIGKILL);
	close(ends[0]);
	while (child > 0 && waitpid(child, status, 0) < 0 && errno == EINTR)
		;
	client_store_take_found(local, buf_slice(&found));
	buf_release(&found);
	return child < 0 ? -EAGAIN : 0;
}

/* ---- A directory, read ----------------------------------------------------------------------- */

static void client_store_page_problem(void *context, const struct lmdb_lost *lost)
{
	char text[LMDB_LOST_TEXT_BYTES];
	struct client_store_local *local = context;
	lmdb_lost_text(lost, text);
	local->problems++;
	client_store_keep_sentence(local, text);
}

static int client_store_look_at_pages(const struct client_store_args *args,
				      struct client_store_local *local)
{
	struct lmdb_options options = {.path = args->data};
	struct errbuf e;
	int err =
		lmdb_verify_pages(&options, client_store_page_problem, local, &local->checked, &e);
	if (err)
		command_complain(&args->line, "%s", e.text);
	return err;
}

/* The JSON that a server would answer. */
static int client_store_local_json(const struct client_store_args *args, enum store_op op,
				   struct buf *out)
{
	struct client_store_local *local = mem_zalloc(sizeof(*local));
	struct json_writer writer;
	int status = 0;
	arena_init(&local->arena, SLICE_MAX_BYTES);
	int err = op == STORE_VERIFY ? client_store_look_at_pages(args, local) : 0;
	if (!err) {
		err = client_store_read_in_child(args, local, op, &status);
		if (err)
			command_complain(&args->line, "no process to read %s: %s", args->data,
					 err_text(err));
	}
	if (!err && op == STORE_STATS && status) {
		if (WIFSIGNALED(status))
			command_complain(&args->line,
					 "%s: reading ended by signal %d (%s): a damaged page; "
					 "granary verify --data %s says which",
					 args->data, WTERMSIG(status), strsignal(WTERMSIG(status)),
					 args->data);
		err = ERR_DAMAGED;
	} else if (!err && status) {
		client_store_name_end(local, status);
	}
	if (!err) {
		json_writer_init(&writer, out);
		if (op == STORE_STATS)
			store_stats_json(&local->stats, NULL, &writer);
		else
			store_verify_json(&(struct store_verified){local->checked, local->problems,
								   local->orphans, local->sentences,
								   local->sentence_count},
					  &writer);
	}
	arena_release(&local->arena);
	mem_free(local);
	return err;
}

/* ---- Either --------------------------------------------------------------------------------- */

static int client_store_get_json(const struct client_store_args *args, enum store_op op,
				 struct client_answer *answer, struct arena *arena,
				 struct json **root)
{
	const char *path = op == STORE_STATS ? "/api/stats"
			   : args->words     ? "/api/verify?words=true"
					     : "/api/verify";
	int err;

	if (!args->data)
		return client_ask_json(&args->line, NULL, path, arena, answer, root);
	err = client_store_local_json(args, op, &answer->body);
	if (err)
		return err;
	return json_parse(buf_slice(&answer->body), arena, root, NULL);
}

static void client_store_add_number(struct text_table *table, const struct json *object,
				    const char *key)
{
	const struct json *member = json_member(object, key);
	text_table_add(table, member && member->type == JSON_T_NUMBER ? member->text : SLICE("-"));
}

/* Tables that hold nothing are left out on a terminal. */
static void client_store_print_tables(const struct json *root, enum client_output output)
{
	static const char *const titles[] = {"table",   "kind",         "rows",    "samples",
					     "sealed",  "bytes/sample", "waiting", "extents",
					     "payload", "headers",      "keys",    "pages"};
	const struct json *tables = json_member(root, "tables");
	struct text_table table;

	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *t = tables ? tables->first : NULL; t; t = t->next) {
		double samples = client_f64(t, "samples"), waiting = client_f64(t, "headSamples");
		const struct json *name = json_member(t, "table"), *kind = json_member(t, "kind");
		double per_sample = client_f64(t, "bytesPerSample");
		if (!name || !kind || (output == OUTPUT_TABLE && samples == 0))
			continue;
		text_table_add(&table, name->text);
		text_table_add(&table, kind->text);
		client_store_add_number(&table, t, "rows");
		client_store_add_number(&table, t, "samples");
		text_table_addf(&table, "%.0f", samples - waiting);
		if (per_sample > 0)
			text_table_addf(&table, "%.3f", per_sample);
		else
			text_table_add(&table, SLICE("-"));
		client_store_add_number(&table, t, "headSamples");
		client_store_add_number(&table, t, "extents");
		client_store_add_number(&table, t, "payloadBytes");
		client_store_add_number(&table, t, "headerBytes");
		client_store_add_number(&table, t, "keyBytes");
		client_store_add_number(&table, t, "pageBytes");
	}
	text_table_print(&table, output);
	text_table_release(&table);
}

static double client_store_tables_bytes(const struct json *root)
{
	const struct json *tables = json_member(root, "tables");
	double bytes = 0;

	for (const struct json *t = tables ? tables->first : NULL; t; t = t->next)
		bytes += client_f64(t, "payloadBytes") + client_f64(t, "headerBytes") +
			 client_f64(t, "keyBytes") + client_f64(t, "pageBytes");
	return bytes;
}

/* Of a server only: a directory that no server has open is in nobody's memory. */
static void client_store_print_memory(const struct json *memory, double series)
{
	static const struct {
		const char *key, *name;
	} parts[] = {{"heads", "heads"},
		     {"keyCache", "key cache"},
		     {"tagIndexes", "tag indexes"},
		     {"registry", "registry"},
		     {"journalList", "list of the journal"},
		     {"groupLists", "lists of groups"},
		     {"samplesInFlight", "samples in flight"},
		     {"counters", "polled counters"},
		     {"requests", "requests"},
		     {"kept", "freed and kept"}};
	if (!memory)
		return;
	printf("memory of %.1f MB, %.0f bytes a series; of that",
	       client_f64(memory, "anonymous") / 1e6, client_f64(memory, "perSeries"));
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		double bytes = client_f64(memory, parts[i].key);
		printf("%s %.1f MB %s (%.0f a series)", i ? "," : "", bytes / 1e6, parts[i].name,
		       series > 0 ? bytes / series : 0);
	}
	printf("\n");
}

static void client_store_print_stats(const struct json *root, enum client_output output)
{
	client_store_print_tables(root, output);
	if (output != OUTPUT_TABLE)
		return;
	printf("\n%.0f series in %.1f MB of registry; journal of %.0f records, %.1f MB\n",
	       client_f64(root, "series"), client_f64(root, "registryBytes") / 1e6,
	       client_f64(root, "journalRecords"), client_f64(root, "journalBytes") / 1e6);
	printf("file of %.1f MB, of which %.1f MB are in use: %.1f MB tables, %.1f MB registry, "
	       "%.1f MB journal, %.1f MB long cells, %.1f MB the database's own\n",
	       client_f64(root, "fileBytes") / 1e6, client_f64(root, "usedBytes") / 1e6,
	       client_store_tables_bytes(root) / 1e6, client_f64(root, "registryBytes") / 1e6,
	       client_f64(root, "journalPageBytes") / 1e6, client_f64(root, "blobBytes") / 1e6,
	       client_f64(root, "otherBytes") / 1e6);
	client_store_print_memory(json_member(root, "memory"), client_f64(root, "series"));
}

static void client_store_print_verify(const struct json *root, enum client_output output)
{
	static const char *const titles[] = {"problem"};
	const struct json *sentences = json_member(root, "sentences");
	struct text_table table;
	int64_t checked = client_i64(root, "checked"), problems = client_i64(root, "problems"),
		orphans = client_i64(root, "orphans");

	/* For people, also where the list of problems goes to a program. */
	fprintf(output == OUTPUT_TABLE ? stdout : stderr,
		"%" PRId64 " stored value%s checked, %" PRId64 " problem%s%s\n", checked,
		plural_end((uint64_t)checked), problems, plural_end((uint64_t)problems),
		problems == 0 ? ": nothing is wrong" : "");
	if (output == OUTPUT_TABLE && orphans > 0)
		printf("%" PRId64 " cell%s of streams left over: that harms nobody\n", orphans,
		       plural_end((uint64_t)orphans));
	if (output == OUTPUT_TABLE && problems == 0)
		return;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *s = sentences ? sentences->first : NULL; s; s = s->next)
		text_table_add(&table, s->text);
	text_table_print(&table, output);
	text_table_release(&table);
}

/* What helps, for people. */
static void client_store_say_help(const struct client_store_args *args)
{
	const char *data = args->data ? args->data : "DIR";
	if (args->backup)
		return;
	fprintf(stderr,
		"What helps: a copy of %s from before the damage, or, with the server stopped,\n"
		"granary repair --data %s --to NEWDIR, which copies what is whole and says what is "
		"not.\n"
		"A problem that the copy still has is of one stream, row or board. The server "
		"passes "
		"over it;\nwhen that stream, row or board is deleted, the problem goes with it.\n",
		data, data);
}

static int client_store_show(const struct command_args *line, enum store_op op)
{
	const struct client_store_args *args =
		CONTAINER_OF(line, const struct client_store_args, line);
	struct client_answer answer;
	struct arena arena;
	struct json *root;

	client_answer_init(&answer);
	arena_init(&arena, CLIENT_ANSWER_MAX_BYTES);
	int err = client_store_get_json(args, op, &answer, &arena, &root);
	if (!err && line->output == OUTPUT_JSON)
		client_print_body(&answer);
	else if (!err && op == STORE_STATS)
		client_store_print_stats(root, line->output);
	else if (!err)
		client_store_print_verify(root, line->output);
	if (!err && op == STORE_VERIFY && client_f64(root, "problems") > 0) {
		client_store_say_help(args);
		err = ERR_DAMAGED;
	}
	arena_release(&arena);
	client_answer_release(&answer);
	return err ? EXIT_FAILED : EXIT_OK;
}

static int client_stats_run(const struct command_args *args)
{
	return client_store_show(args, STORE_STATS);
}

/* ---- A backup -------------------------------------------------------------------------------- */

enum { BACKUP_DIR_BYTES = 512 };

static int client_backup_check(const struct client_store_args *args)
{
	struct backup_reader reader = {.data = NULL};
	struct errbuf e;
	backup_reader_init(&reader);
	int err = backup_read_file(args->backup, &reader, "verify", &e);
	if (err)
		command_complain(&args->line, "%s", e.text);
	else
		backup_print_facts(stderr, args->backup, &reader.manifest);
	backup_reader_release(&reader);
	return err;
}

/* The store begins with the file, so it is read there: from a directory of its own, in which the
 * file has the name of a data file. */
static int client_backup_look_into(const struct client_store_args *args)
{
	struct client_store_args within = *args;
	struct errbuf e;
	char dir[BACKUP_DIR_BYTES];
	const char *place = getenv("TMPDIR");
	snprintf(dir, sizeof(dir), "%.400s/granary-verify-XXXXXX", place ? place : "/tmp");
	if (!mkdtemp(dir)) {
		command_complain(&args->line, "no directory to read it from, %s: %s", dir,
				 err_text(-errno));
		return EXIT_FAILED;
	}
	within.data = dir;
	int err = lmdb_backup_link(args->backup, dir, &e);
	int status = err ? EXIT_FAILED : client_store_show(&within.line, STORE_VERIFY);
	if (err)
		command_complain(&args->line, "%s", e.text);
	lmdb_backup_unlink(dir);
	return status;
}

static int client_verify_run(const struct command_args *line)
{
	const struct client_store_args *args =
		CONTAINER_OF(line, const struct client_store_args, line);
	if (args->backup && args->data)
		return command_usage(line, "a backup or --data, not both") ? EXIT_WRONG_USE
									   : EXIT_OK;
	if (!args->backup)
		return client_store_show(line, STORE_VERIFY);
	if (client_backup_check(args))
		return EXIT_FAILED;
	if (strcmp(args->backup, "-") != 0)
		return client_backup_look_into(args);
	command_complain(line, "standard input: its manifest, length and checksums are right; the "
			       "store in it was not looked at, since that can be done in a file "
			       "only");
	return EXIT_OK;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_store_args, field, __VA_ARGS__)
static const struct command_option client_store_options[] = {
	ROW(text, data, "--data", "DIR", "look into a directory that no server has open"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command_option client_verify_options[] = {
	ROW(text, backup, NULL, "BACKUP",
	    "a file of `granary backup`: it is checked, and the store in it; - is standard input, "
	    "of "
	    "which the store is not looked at"),
	ROW(text, data, "--data", "DIR", "look into a directory that no server has open"),
	ROW(flag, words, "--words", NULL,
	    "look for all words of each block of streams in its filter, not of one in 16"),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

const struct command client_stats = {
	.name = "stats",
	.summary = "print how much is stored",
	.about = "Prints what is stored: by table the series or rows, samples, bytes per sample, "
		 "what waits to be packed, and where the bytes are: values, headers of blocks, "
		 "keys, and what pages have besides; then what the rest of the file is.\n",
	.examples = "granary stats\n"
		    "granary stats --data ./var -o json\n",
	COMMAND_TAKES(client_store_options, client_store_args),
	.run = client_stats_run,
};

const struct command client_verify = {
	.name = "verify",
	.summary = "read everything that is stored and check it",
	.about = "Reads everything that is stored and checks each checksum, the order of keys and "
		 "what refers to what; in a directory first every page of the data file: each is "
		 "part of one tree, or free, once. It says which page is damaged and what of the "
		 "stored data that concerns. It also checks streams: whether the bytes that are "
		 "said "
		 "to be held are there, unpack, and have the lines and words that are noted "
		 "of them; and rows and boards: whether keys, sigs and documents are right. "
		 "Of a backup it first checks that the file is whole; of one from standard input "
		 "it checks nothing else. "
		 "`granary repair` then copies what is whole; a copy "
		 "of the directory from before it was damaged has all that was stored by then.\n"
		 "Exit status: 0 all is whole, 1 something is not, and a line says what, or it "
		 "could not be looked at, 2 wrong command line.\n",
	.examples = "granary verify\n"
		    "granary verify --data ./var\n"
		    "granary verify /backup/granary-monday\n"
		    "zstd -dc granary.zst | granary verify -\n",
	COMMAND_TAKES(client_verify_options, client_store_args),
	.run = client_verify_run,
};
