/* fault import: sends what a datedir holds, as python-oops' oops-datedir-repo writes it: a folder
 * for each day, a file for each report.
 *
 * How far it came stands in a file, so that it goes on from there. A day whose folder has not
 * changed since is not read again. Of one that has changed all is sent again, which is harmless:
 * the server has these reports already. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exec.h"
#include "base/file.h"
#include "base/grow.h"
#include "cmd/client_private.h"

enum {
	IMPORT_FILE_MAX_BYTES = 32 << 20,
	IMPORT_STATE_MAX_BYTES = 16 << 20,
	IMPORT_PATH_BYTES = 4096,
	IMPORT_NAME_BYTES = 256,
	IMPORT_SAVE_FILES = 200, /* then what was done is noted */
	IMPORT_TRIES = 20,       /* of a report that the server does not take now */
	IMPORT_WAIT_MS = 1000,   /* between them, unless it says otherwise */
	IMPORT_WAIT_MAX_MS = 60000,
	IMPORT_SETTLED_NS = 2000000000, /* a folder that changed later may change unseen */
	DAY_TEXT_BYTES = 10,
};
/* Where python-oops notes what it knows of a datedir, too. */
#define IMPORT_STATE_DIR "/metadata"
#define IMPORT_STATE     IMPORT_STATE_DIR "/granary-import"

/* What was done of a day: all up to a file, in the order of names, with the time of change that its
 * folder had. */
struct import_day {
	char day[DAY_TEXT_BYTES + 1];
	int64_t changed_ns;
	char last[IMPORT_NAME_BYTES];
};

struct import_names {
	char **list;
	size_t count, room;
};

struct fault_import {
	const struct command_args *args;
	const char *root, *state;
	struct http_client *http;
	struct import_day *days; /* in the order in which they were first done */
	size_t day_count, day_room;
	struct buf body, answer;
	struct task_queue queue; /* to wait on */
	struct text_table table; /* or, for JSON: */
	struct buf json;
	struct json_writer writer;
	/* How many files of the present day: */
	uint64_t files, taken, repeated, failed;
	bool any_failed;
};

/* ---- Folders --------------------------------------------------------------------------------- */

static int import_compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void import_free_names(struct import_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		mem_free(names->list[i]);
	mem_free(names->list);
}

static bool import_is_day(const char *name)
{
	for (size_t i = 0; i < DAY_TEXT_BYTES; i++) {
		bool dash = i == 4 || i == 7;
		if (dash ? name[i] != '-' : name[i] < '0' || name[i] > '9')
			return false;
	}
	return !name[DAY_TEXT_BYTES];
}

/* What is being written has a name with .tmp at its end. */
static bool import_is_report(const char *name)
{
	size_t len = strlen(name);
	return name[0] != '.' && !(len > 4 && strcmp(name + len - 4, ".tmp") == 0);
}

/* The names in a folder, in order. */
static int import_list(struct fault_import *im, const char *path, bool (*wanted)(const char *name),
		       struct import_names *names)
{
	DIR *dir = opendir(path);
	*names = (struct import_names){NULL, 0, 0};
	if (!dir) {
		command_complain(im->args, "%s: %s", path, err_text(-errno));
		return ERR_INVALID;
	}
	for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
		if (!wanted(entry->d_name))
			continue;
		GROW(names->list, names->room, names->count + 1);
		names->list[names->count++] = mem_copy_text(slice_of(entry->d_name));
	}
	closedir(dir);
	if (names->count)
		qsort(names->list, names->count, sizeof(*names->list), import_compare_names);
	return 0;
}

/* When a folder last changed, for import_day. */
static int import_changed_ns(struct fault_import *im, const char *path, int64_t *changed_ns)
{
	struct stat found;
	if (stat(path, &found)) {
		command_complain(im->args, "%s: %s", path, err_text(-errno));
		return ERR_INVALID;
	}
	*changed_ns = found.st_mtim.tv_sec * INT64_C(1000000000) + found.st_mtim.tv_nsec;
	return 0;
}

/* ---- What was done --------------------------------------------------------------------------- */

static struct import_day *import_day_of(struct fault_import *im, const char *day)
{
	for (size_t i = im->day_count; i--;)
		if (strcmp(im->days[i].day, day) == 0)
			return &im->days[i];
	GROW(im->days, im->day_room, im->day_count + 1);
	struct import_day *added = &im->days[im->day_count++];
	*added = (struct import_day){.changed_ns = 0};
	memcpy(added->day, day, DAY_TEXT_BYTES);
	return added;
}

/* `2026-11-24 1795518941061000000 OOPS-7f3c`. */
static bool import_read_line(struct fault_import *im, struct slice line)
{
	char day[DAY_TEXT_BYTES + 1] = "";
	int64_t changed_ns = 0;
	size_t at = DAY_TEXT_BYTES + 1;
	if (line.len < at || line.data[at - 1] != ' ')
		return false;
	memcpy(day, line.data, DAY_TEXT_BYTES);
	for (; at < line.len && line.data[at] >= '0' && line.data[at] <= '9'; at++) {
		if (changed_ns > INT64_MAX / 10 - 1)
			return false;
		changed_ns = changed_ns * 10 + (line.data[at] - '0');
	}
	if (!import_is_day(day) || at + 1 >= line.len || line.data[at] != ' ' ||
	    line.len - at - 1 >= IMPORT_NAME_BYTES)
		return false;
	struct import_day *done = import_day_of(im, day);
	done->changed_ns = changed_ns;
	memcpy(done->last, line.data + at + 1, line.len - at - 1);
	return true;
}

static int import_read_state(struct fault_import *im)
{
	struct buf bytes;
	buf_init(&bytes, IMPORT_STATE_MAX_BYTES);
	int err = files_real()->read(files_real(), im->state, IMPORT_STATE_MAX_BYTES, &bytes);
	struct slice rest = buf_slice(&bytes);
	if (err && err != ERR_NOT_FOUND)
		command_complain(im->args, "%s: %s", im->state, err_text(err));
	err = err == ERR_NOT_FOUND ? 0 : err;
	for (size_t number = 1; rest.len && !err; number++) {
		const char *end = memchr(rest.data, '\n', rest.len);
		size_t len = end ? (size_t)(end - rest.data) : rest.len;
		if (!end || !import_read_line(im, (struct slice){rest.data, len})) {
			command_complain(im->args,
					 "%s, line %zu: not a day, a time and a name, which fault "
					 "import wrote; without this file it begins at the start",
					 im->state, number);
			err = ERR_INVALID;
		}
		rest = (struct slice){rest.data + len + 1, rest.len - len - !!end};
	}
	buf_release(&bytes);
	return err;
}

static int import_make_state_dir(struct fault_import *im)
{
	char path[IMPORT_PATH_BYTES];
	snprintf(path, sizeof(path), "%s" IMPORT_STATE_DIR, im->root);
	/* What is wrong with the datedir itself is said when it is read. */
	int err = access(im->root, R_OK | X_OK) ? 0
						: files_real()->make_dir(files_real(), path, 0755);
	if (err)
		command_complain(im->args, "%s: %s; name another file by --state", path,
				 err_text(err));
	return err;
}

static int import_save(struct fault_import *im)
{
	struct buf bytes;
	buf_init(&bytes, IMPORT_STATE_MAX_BYTES);
	for (size_t i = 0; i < im->day_count; i++)
		if (im->days[i].last[0])
			buf_printf(&bytes, "%s %lld %s\n", im->days[i].day,
				   (long long)im->days[i].changed_ns, im->days[i].last);
	int err = files_real()->replace(files_real(), im->state, buf_slice(&bytes), 0644);
	if (err)
		command_complain(im->args,
				 "%s: %s; how far the import came is noted there: name another "
				 "file by --state",
				 im->state, err_text(err));
	buf_release(&bytes);
	return err;
}

/* ---- Sending --------------------------------------------------------------------------------- */

static bool import_take_body(void *owner, UNUSED long status, struct slice piece)
{
	return buf_append(owner, piece.data, piece.len) == 0;
}

static void import_complain(struct fault_import *im, const char *path, const char *sentence)
{
	command_complain(im->args, "%s: %s", path, sentence);
	im->failed++;
	im->any_failed = true;
}

/* One that has no room or no time now is asked again. */
static int import_call(struct fault_import *im, struct http_call *call, struct errbuf *e)
{
	for (int i = 1;; i++) {
		buf_clear(&im->answer);
		int err = http_client_call(im->http, call, e);
		bool later = !err && (call->status == 429 || call->status == 503);
		if (!later)
			return err;
		int64_t wait_ms = call->retry_after_ms ? call->retry_after_ms : IMPORT_WAIT_MS;
		if (i == IMPORT_TRIES || wait_ms > IMPORT_WAIT_MAX_MS)
			return 0;
		err = task_queue_sleep(&im->queue, wait_ms);
		ASSERT(!err); /* nobody stops it */
	}
}

/* An error: the server takes no more. */
static int import_send(struct fault_import *im, const char *path)
{
	char tenant[256], sentence[512];
	struct errbuf e;
	snprintf(tenant, sizeof(tenant), "X-Tenant: %s", im->args->tenant ? im->args->tenant : "");
	struct http_call call = {
		.path = "/oops",
		.headers = {"Content-Type: application/octet-stream",
			    im->args->tenant ? tenant : NULL},
		.body = buf_slice(&im->body),
		.take = import_take_body,
		.owner = &im->answer,
	};
	int err = import_call(im, &call, &e);
	if (err) {
		command_complain(im->args, "%s: %s", path, e.text);
		return err;
	}
	im->taken += call.status == 201;
	im->repeated += call.status == 200;
	if (call.status < 300)
		return 0;
	http_client_sentence(buf_slice(&im->answer), sentence, sizeof(sentence));
	if (call.status == 400 || call.status == 409 || call.status == 410 || call.status == 413) {
		import_complain(im, path, sentence);
		return 0;
	}
	command_complain(im->args, "%s: %s; the import ends here, and goes on from here", path,
			 sentence);
	return ERR_BUSY;
}

static int import_file(struct fault_import *im, const char *path)
{
	buf_clear(&im->body);
	im->files++;
	int err = files_real()->read(files_real(), path, IMPORT_FILE_MAX_BYTES, &im->body);
	if (err)
		import_complain(im, path, err_text(err));
	else if (!im->body.len)
		import_complain(im, path, "the file is empty");
	else
		return import_send(im, path);
	return 0;
}

/* ---- Days ------------------------------------------------------------------------------------ */

static int import_files(struct fault_import *im, const char *folder, struct import_day *done,
			const struct import_names *names)
{
	char path[IMPORT_PATH_BYTES];
	int err = 0;
	for (size_t i = 0; i < names->count && !err; i++) {
		const char *name = names->list[i];
		if (strcmp(name, done->last) <= 0)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path) ||
		    strchr(name, '\n')) {
			import_complain(im, folder, "a name that is too long, or has a line break");
			continue;
		}
		err = import_file(im, path);
		if (err)
			break;
		snprintf(done->last, sizeof(done->last), "%s", name);
		if (im->files % IMPORT_SAVE_FILES == 0)
			err = import_save(im);
	}
	int saved = import_save(im);
	return err ? err : saved;
}

static const char *const import_titles[] = {"day", "files", "taken", "repeated", "failed"};

static void import_add_row(struct fault_import *im, const char *day)
{
	const uint64_t counts[] = {im->files, im->taken, im->repeated, im->failed};
	json_write_object_begin(&im->writer);
	json_put_text(&im->writer, import_titles[0], day);
	text_table_add(&im->table, slice_of(day));
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		json_put_u64(&im->writer, import_titles[i + 1], counts[i]);
		text_table_addf(&im->table, "%llu", (unsigned long long)counts[i]);
	}
	json_write_object_end(&im->writer);
}

/* A folder that has just changed may change once more within the same tick of its clock: it is
 * noted with a time that it never has. */
static void import_begin_day(struct import_day *done, int64_t changed_ns)
{
	int64_t now_ns = clock_wall_ms(clock_real()) * 1000000;
	if (done->changed_ns != changed_ns)
		done->last[0] = 0;
	done->changed_ns = changed_ns > now_ns - IMPORT_SETTLED_NS ? 0 : changed_ns;
}

static int import_day(struct fault_import *im, const char *day)
{
	char folder[IMPORT_PATH_BYTES];
	struct import_names names;
	int64_t changed_ns;
	if (snprintf(folder, sizeof(folder), "%s/%s", im->root, day) >= (int)sizeof(folder)) {
		command_complain(im->args, "%s: the name is too long", im->root);
		return ERR_INVALID;
	}
	im->files = im->taken = im->repeated = im->failed = 0;
	int err = import_changed_ns(im, folder, &changed_ns);
	err = err ? err : import_list(im, folder, import_is_report, &names);
	if (err)
		return err;
	struct import_day *done = import_day_of(im, day);
	import_begin_day(done, changed_ns);
	err = import_files(im, folder, done, &names);
	if (im->files)
		import_add_row(im, day);
	import_free_names(&names);
	return err;
}

static int import_all(struct fault_import *im)
{
	struct import_names days;
	int err = import_list(im, im->root, import_is_day, &days);
	if (err)
		return err;
	err = import_read_state(im);
	err = err ? err : import_save(im); /* whether it can be */
	for (size_t i = 0; i < days.count && !err; i++)
		err = import_day(im, days.list[i]);
	import_free_names(&days);
	return err;
}

int client_fault_import(const struct command_args *args, const char *root, const char *state)
{
	struct http_client_options how = {.timeout_ms = 0};
	char preset[IMPORT_PATH_BYTES];
	struct fault_import im = {.args = args, .root = root, .state = state ? state : preset};
	if (snprintf(preset, sizeof(preset), "%s" IMPORT_STATE, root) >= (int)sizeof(preset)) {
		command_complain(args, "%s: the name is too long", root);
		return EXIT_FAILED;
	}
	im.http = client_connect(args, &how);
	if (!im.http)
		return EXIT_FAILED;
	buf_init(&im.body, IMPORT_FILE_MAX_BYTES);
	buf_init(&im.answer, CLIENT_ANSWER_MAX_BYTES);
	task_queue_init(&im.queue);
	text_table_init(&im.table, ARRAY_LEN(import_titles), import_titles);
	buf_init(&im.json, IMPORT_STATE_MAX_BYTES);
	json_writer_init(&im.writer, &im.json);
	json_write_object_begin(&im.writer);
	json_write_key(&im.writer, "days");
	json_write_array_begin(&im.writer);
	int err = state ? 0 : import_make_state_dir(&im);
	err = err ? err : import_all(&im);
	json_write_array_end(&im.writer);
	json_write_object_end(&im.writer);
	if (args->output == OUTPUT_JSON)
		printf("%.*s\n", (int)im.json.len, im.json.data);
	else
		text_table_print(&im.table, args->output);
	text_table_release(&im.table);
	buf_release(&im.json);
	task_queue_release(&im.queue);
	buf_release(&im.body);
	buf_release(&im.answer);
	http_client_free(im.http);
	mem_free(im.days);
	return err || im.any_failed ? EXIT_FAILED : EXIT_OK;
}
