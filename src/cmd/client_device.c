/* device, oidset: what is polled, by a server's API (api/admin/inventory.c). */
#include <stdio.h>

#include "api/admin/inventory_json.h"
#include "base/file.h"
#include "base/utf8.h"
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "inventory/inventory.h"
#include "wire/timetext.h"

enum { IMPORT_MAX_BYTES = 16 << 20, IMPORT_ARENA_MAX_BYTES = 512 << 20 };

struct client_device_args {
	struct command_args line;
	const char *name;
	const char *address; /* of add a word, of change an option */
	struct command_words oidsets;
	const char *credentials, *poller, *active, *begin, *end;
	const char *new_name, *file;
	bool with_data;
};

struct client_oidset_args {
	struct command_args line;
	const char *name;
};

/* ---- Talking to the server ------------------------------------------------------------------- */

/* Sends and says nothing where it went well. */
static int client_device_send(const struct command_args *args, const char *route, const char *name,
			      struct slice body, struct client_answer *answer)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, route, name);
	int err = client_request(args, NULL, path.data, "application/json", body, answer);
	buf_release(&path);
	return err;
}

/* ---- What options say --------------------------------------------------------------------------
 */

static bool client_device_set_time(UNUSED const struct command_option *option, const char *text,
				   void *field)
{
	int64_t ms;
	*(const char **)field = text;
	return time_parse_absolute(slice_of(text), &ms, NULL) == 0;
}

static const struct command_type client_device_time = {
	.is = "a time such as 2020-08-24T16:34Z, or seconds since 1970",
	.set = client_device_set_time,
	.note = "TIME is ISO 8601 (2020-08-24, 2020-08-24T16:34:05Z), or seconds or milliseconds "
		"since 1970."};

static void client_device_write_oidsets(struct json_writer *w, struct command_words oidsets)
{
	if (!oidsets.count)
		return;
	json_write_key(w, "oidsets");
	json_write_array_begin(w);
	for (size_t i = 0; i < oidsets.count; i++)
		json_write_text(w, oidsets.items[i]);
	json_write_array_end(w);
}

/* The members that were given. */
static void client_device_write(const struct client_device_args *args, const char *name,
				struct buf *body)
{
	struct json_writer w;
	json_writer_init(&w, body);
	json_write_object_begin(&w);
	client_put_text(&w, "name", name);
	client_put_text(&w, "address", args->address);
	client_put_text(&w, "credentials", args->credentials);
	client_put_text(&w, "poller", args->poller);
	client_put_text(&w, "begin", args->begin);
	client_put_text(&w, "end", args->end);
	if (args->active)
		json_put_bool(&w, "active", strcmp(args->active, "true") == 0);
	client_device_write_oidsets(&w, args->oidsets);
	json_write_object_end(&w);
}

static bool client_device_is_utf8(const char *text)
{
	for (size_t left = text ? strlen(text) : 0, len = 0; left; left -= len, text += len) {
		len = utf8_length((const uint8_t *)text, left);
		if (!len)
			return false;
	}
	return true;
}

/* JSON cannot carry anything else, and would name another device. */
static int client_device_check_utf8(const struct client_device_args *args)
{
	const char *const texts[] = {args->name, args->new_name, args->address, args->credentials,
				     args->poller};
	bool well = true;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		well = well && client_device_is_utf8(texts[i]);
	for (size_t i = 0; i < args->oidsets.count; i++)
		well = well && client_device_is_utf8(args->oidsets.items[i]);
	if (well)
		return 0;
	command_complain(&args->line, "what is given is not UTF-8");
	return ERR_INVALID;
}

/* `to`: of which device, empty for a new one; `name`: what it is called from now on, or NULL. */
static int client_device_post(const struct command_args *args, const char *route, const char *to,
			      const char *name)
{
	const struct client_device_args *device =
		CONTAINER_OF(args, const struct client_device_args, line);
	struct client_answer answer;
	struct buf body;
	if (client_device_check_utf8(device))
		return EXIT_WRONG_USE;
	buf_init(&body, 1 << 20);
	client_answer_init(&answer);
	client_device_write(device, name, &body);
	int err = client_device_send(args, route, to, buf_slice(&body), &answer);
	client_answer_release(&answer);
	buf_release(&body);
	return err ? EXIT_FAILED : EXIT_OK;
}

/* ---- device ---------------------------------------------------------------------------------- */

static int client_device_add(const struct command_args *args)
{
	const char *name = CONTAINER_OF(args, const struct client_device_args, line)->name;
	return client_device_post(args, "/api/devices", "", name);
}

static int client_device_change(const struct command_args *args)
{
	const char *name = CONTAINER_OF(args, const struct client_device_args, line)->name;
	return client_device_post(args, "/api/devices/", name, NULL);
}

static int client_device_rename(const struct command_args *args)
{
	const struct client_device_args *device =
		CONTAINER_OF(args, const struct client_device_args, line);
	return client_device_post(args, "/api/devices/", device->name, device->new_name);
}

/* Asks without a body, and prints nothing. */
static int client_device_tell(const struct command_args *args, const char *method, struct buf *path)
{
	struct client_answer answer;
	client_answer_init(&answer);
	int err = client_request(args, method, path->data, NULL, (struct slice){NULL, 0}, &answer);
	client_answer_release(&answer);
	buf_release(path);
	return err ? EXIT_FAILED : EXIT_OK;
}

static int client_device_remove(const struct command_args *args)
{
	const struct client_device_args *device =
		CONTAINER_OF(args, const struct client_device_args, line);
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, "/api/devices/", device->name);
	if (device->with_data)
		client_param(&path, "withData", "true");
	return client_device_tell(args, "DELETE", &path);
}

static int client_device_poll(const struct command_args *args)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	buf_append_text(&path, "/api/polls/now");
	client_param(&path, "device",
		     CONTAINER_OF(args, const struct client_device_args, line)->name);
	return client_device_tell(args, "POST", &path);
}

static void client_device_print(const struct command_args *args, const struct json *root,
				UNUSED struct arena *arena)
{
	static const char *const titles[] = {"name",    "address", "port",  "credentials", "poller",
					     "oidsets", "state",   "since", "reason"};
	text_table_print_list(root->first, titles, ARRAY_LEN(titles), args->output);
}

static int client_device_list(const struct command_args *args)
{
	return client_show_route(args, NULL, "/api/devices", client_device_print);
}

/* ---- device import --------------------------------------------------------------------------- */

static void client_device_write_specs(const struct device_spec *specs, size_t count,
				      struct buf *body)
{
	struct json_writer w;
	json_writer_init(&w, body);
	json_write_array_begin(&w);
	for (size_t i = 0; i < count; i++)
		device_spec_json(&specs[i], &w);
	json_write_array_end(&w);
}

/* Where in the file the device stands that the server refused. */
static const struct device_spec *client_device_refused_spec(const struct client_answer *answer,
							    const struct device_spec *specs,
							    size_t count, struct arena *arena)
{
	struct json *root;
	int64_t item = -1;
	if (json_parse(buf_slice(&answer->body), arena, &root, NULL) ||
	    json_get_i64(json_member(root, "error"), "item", &item, NULL) || item < 0 ||
	    (size_t)item >= count)
		return NULL;
	return &specs[item];
}

static int client_device_send_specs(const struct command_args *args, const char *file,
				    const struct device_spec *specs, size_t count,
				    struct arena *arena)
{
	struct client_answer answer;
	struct buf body;
	buf_init(&body, 32 << 20);
	client_answer_init(&answer);
	answer.quiet = true;
	client_device_write_specs(specs, count, &body);
	int err = body.failed
			  ? ERR_LIMIT
			  : client_device_send(args, "/api/devices", "", buf_slice(&body), &answer);
	const struct device_spec *refused =
		err ? client_device_refused_spec(&answer, specs, count, arena) : NULL;
	if (body.failed)
		command_complain(args, "%s: too large", file);
	else if (refused)
		command_complain(args, "%s:%zu: %s; nothing was imported", refused->file,
				 refused->line, answer.error.text);
	else if (err)
		command_complain(args, "%s; nothing was imported", answer.error.text);
	else
		printf("%zu devices were added\n", count);
	client_answer_release(&answer);
	buf_release(&body);
	return err ? EXIT_FAILED : EXIT_OK;
}

static int client_device_read_list(const struct command_args *args, const char *file,
				   struct arena *arena, struct device_spec **specs, size_t *count)
{
	struct files *files = files_real();
	struct errbuf e;
	struct buf text;
	buf_init(&text, IMPORT_MAX_BYTES);
	int err = files->read(files, file, IMPORT_MAX_BYTES, &text);
	struct slice copy =
		err ? SLICE("") : arena_copy(arena, text.len ? buf_slice(&text) : SLICE(""));
	buf_release(&text);
	if (err) {
		command_complain(args, "%s: %s", file,
				 err == ERR_LIMIT ? "longer than 16 MB" : err_text(err));
		return err;
	}
	err = device_list_parse(file, copy, arena, specs, count, &e);
	if (err)
		command_complain(args, "%s; nothing was imported", e.text);
	return err;
}

static int client_device_import(const struct command_args *args)
{
	const char *file = CONTAINER_OF(args, const struct client_device_args, line)->file;
	struct device_spec *specs;
	struct arena arena;
	size_t count;
	arena_init(&arena, IMPORT_ARENA_MAX_BYTES);
	int status = EXIT_FAILED;
	if (client_device_read_list(args, file, &arena, &specs, &count) == 0)
		status = client_device_send_specs(args, file, specs, count, &arena);
	arena_release(&arena);
	return status;
}

#define ROW(type, field, ...) COMMAND_ROW(command_##type, client_device_args, field, __VA_ARGS__)
#define DEVICE_NAME           ROW(text, name, NULL, "NAME", .required = true)
#define DEVICE_OIDSETS        ROW(text, oidsets, NULL, "OIDSET", .words_max = COMMAND_WORDS_MAX - 2)
#define DEVICE_SAYINGS                                                                             \
	ROW(text, poller, "--poller", "NAME",                                                      \
	    "who polls it: a `granary poll` of that name, whose secrets file then has the "        \
	    "credentials; empty: the server",                                                      \
	    .otherwise = "empty"),                                                                 \
		ROW(choice, active, "--active", "BOOL", "whether it is polled",                    \
		    .choices = "true false"),                                                      \
		COMMAND_ROW(client_device_time, client_device_args, begin, "--begin", "TIME",      \
			    "from when on", .otherwise = "now"),                                   \
		COMMAND_ROW(client_device_time, client_device_args, end, "--end", "TIME",          \
			    "until when", .otherwise = "for ever")

static const struct command_option client_device_add_options[] = {
	DEVICE_NAME,
	ROW(text, address, NULL, "ADDRESS",
	    "a host name, an IPv4 or IPv6 address, with a port as HOST:PORT or [IPV6]:PORT",
	    .required = true),
	DEVICE_OIDSETS,
	ROW(text, credentials, "--credentials", "NAME", "an entry of the server's secrets file",
	    .required = true),
	DEVICE_SAYINGS,
	CLIENT_SERVER,
};

static const struct command_option client_device_change_options[] = {
	DEVICE_NAME,
	DEVICE_OIDSETS,
	ROW(text, credentials, "--credentials", "NAME", "an entry of the server's secrets file"),
	ROW(text, address, "--address", "ADDRESS", "another address"),
	DEVICE_SAYINGS,
	CLIENT_SERVER,
};

static const struct command_option client_device_list_options[] = {CLIENT_SERVER, CLIENT_OUTPUT};

static const struct command_option client_device_rename_options[] = {
	DEVICE_NAME,
	ROW(text, new_name, NULL, "NEW-NAME", .required = true),
	CLIENT_SERVER,
};

static const struct command_option client_device_remove_options[] = {
	DEVICE_NAME,
	ROW(flag, with_data, "--with-data", NULL, "delete what is stored of it"),
	CLIENT_SERVER,
};

static const struct command_option client_device_poll_options[] = {DEVICE_NAME, CLIENT_SERVER};

static const struct command_option client_device_import_options[] = {
	ROW(text, file, NULL, "FILE",
	    ".csv (columns name, address, credentials, oidsets with blanks between them, active, "
	    "begin, end, poller) or YAML (`devices:` and a list of such mappings)",
	    .required = true),
	CLIENT_SERVER,
};

static const struct command client_device_verbs[] = {
	{.name = "device add",
	 .summary = "without OIDSETs: IfXTable and IfRefPoll, which are all interfaces",
	 COMMAND_TAKES(client_device_add_options, client_device_args),
	 .run = client_device_add},
	{.name = "device change",
	 .summary = "only what is given; OIDSETs take the place of those it had",
	 COMMAND_TAKES(client_device_change_options, client_device_args),
	 .run = client_device_change},
	{.name = "device list",
	 .summary = "with state and reason: ok, waiting (not polled yet), failing, misconfigured, "
		    "inactive",
	 COMMAND_TAKES(client_device_list_options, client_device_args),
	 .run = client_device_list},
	{.name = "device rename",
	 .summary = "with all that is stored of it",
	 COMMAND_TAKES(client_device_rename_options, client_device_args),
	 .run = client_device_rename},
	{.name = "device remove",
	 .summary = "what is stored stays, too, unless --with-data is given",
	 COMMAND_TAKES(client_device_remove_options, client_device_args),
	 .run = client_device_remove},
	{.name = "device poll",
	 .summary = "now, beside its slots; what it says is stored. (One that is new is polled at "
		    "once. `granary snmp poll-once` prints and stores nothing.)",
	 COMMAND_TAKES(client_device_poll_options, client_device_args),
	 .run = client_device_poll},
	{.name = "device import",
	 .summary = "a list from a file; all are added, or none",
	 COMMAND_TAKES(client_device_import_options, client_device_args),
	 .run = client_device_import},
};

const struct command client_device = {
	.name = "device",
	.summary = "say what is polled: add, change, list, rename, remove, poll, import",
	.about = "Says what is polled. Takes effect at once; nothing is restarted.\n",
	.examples = "granary device add rtr_a 192.0.2.1 --credentials lab\n"
		    "granary device add rtr_b rtr-b.example FastPollHC Errors IfRefPoll "
		    "--credentials core\n"
		    "granary device import devices.csv\n",
	COMMAND_VERBS(client_device_verbs),
};

/* ---- oidset ---------------------------------------------------------------------------------- */

static void client_oidset_add_duration(struct text_table *table, const struct json *object,
				       const char *key)
{
	int64_t ms = 0;
	if (json_get_i64(object, key, &ms, NULL))
		text_table_add(table, SLICE(""));
	else
		text_table_addf(table, "%gs", (double)ms / 1000);
}

static void client_oidset_print_list(const struct command_args *args, const struct json *root,
				     UNUSED struct arena *arena)
{
	static const char *const titles[] = {"name",       "frequency", "kind",
					     "correlator", "queue",     "oids"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *set = root->first; set; set = set->next) {
		text_table_add_member(&table, set, "name");
		client_oidset_add_duration(&table, set, "frequencyMs");
		text_table_add_member(&table, set, "kind");
		text_table_add_member(&table, set, "correlator");
		text_table_add_member(&table, set, "queue");
		text_table_add_member(&table, set, "oids");
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static int client_oidset_list(const struct command_args *args)
{
	return client_show_route(args, NULL, "/api/oidsets", client_oidset_print_list);
}

static void client_oidset_print(const struct command_args *args, const struct json *root,
				UNUSED struct arena *arena)
{
	static const char *const titles[] = {"name", "oid", "type", "aggregate", "alias"};
	const struct json *oids = json_member(root, "oids");
	text_table_print_list(oids ? oids->first : NULL, titles, ARRAY_LEN(titles), args->output);
}

static int client_oidset_show(const struct command_args *args)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, "/api/oidsets/",
		    CONTAINER_OF(args, const struct client_oidset_args, line)->name);
	int status = client_show(args, NULL, path.data, args->output == OUTPUT_JSON,
				 client_oidset_print);
	buf_release(&path);
	return status;
}

static const struct command_option client_oidset_list_options[] = {CLIENT_SERVER, CLIENT_OUTPUT};

static const struct command_option client_oidset_show_options[] = {
	COMMAND_ROW(command_text, client_oidset_args, name, NULL, "NAME", .required = true),
	CLIENT_SERVER,
	CLIENT_OUTPUT,
};

static const struct command client_oidset_verbs[] = {
	{.name = "oidset list",
	 .summary = "the OIDSets that a server knows",
	 COMMAND_TAKES(client_oidset_list_options, client_oidset_args),
	 .run = client_oidset_list},
	{.name = "oidset show",
	 .summary = "the OIDs of one",
	 COMMAND_TAKES(client_oidset_show_options, client_oidset_args),
	 .run = client_oidset_show},
};

const struct command client_oidset = {
	.name = "oidset",
	.summary = "print the sets of OIDs that can be polled",
	COMMAND_VERBS(client_oidset_verbs),
};
