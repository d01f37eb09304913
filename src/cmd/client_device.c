/* device, oidset: what is polled, by a server's API (api/admin/inventory.h). */
#include <stdio.h>

#include "api/admin/inventory_json.h"
#include "base/file.h"
#include "base/utf8.h"
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "inventory/inventory.h"
#include "wire/timetext.h"

enum { IMPORT_MAX_BYTES = 16 << 20, IMPORT_ARENA_MAX_BYTES = 512 << 20 };

const char client_device_help[] =
	"usage: granary device add NAME ADDRESS [OIDSET...] --credentials NAME [options]\n"
	"       granary device change NAME [OIDSET...] [options]\n"
	"       granary device list [options]\n"
	"       granary device rename NAME NEW-NAME\n"
	"       granary device remove NAME [--with-data]\n"
	"       granary device poll NAME\n"
	"       granary device import FILE\n"
	"\n"
	"Says what is polled. Takes effect at once; nothing is restarted.\n"
	"\n"
	"add      without OIDSETs: IfXTable and IfRefPoll, which are all interfaces\n"
	"change   only what is given; OIDSETs take the place of those it had\n"
	"list     with state and reason: ok, waiting (not polled yet), failing, misconfigured,\n"
	"         inactive\n"
	"rename   with all that is stored of it\n"
	"remove   what is stored stays, too, unless --with-data is given\n"
	"poll     now, beside its slots; what it says is stored. (One that is new is polled at\n"
	"         once. `granary snmp poll-once` prints and stores nothing.)\n"
	"import   a list from a file, .csv (columns name, address, credentials, oidsets with "
	"blanks\n"
	"         between them, active, begin, end, poller) or YAML (`devices:` and a list of such "
	"mappings);\n"
	"         all are added, or none\n"
	"\n"
	"ADDRESS is a host name, an IPv4 or IPv6 address, with a port as HOST:PORT or "
	"[IPV6]:PORT.\n"
	"\n"
	"  --credentials NAME  an entry of the server's secrets file\n"
	"  --poller NAME       who polls it: a `granary poll` of that name, whose secrets file\n"
	"                      then has the credentials; empty: the server (default)\n"
	"  --address ADDRESS   change: another address\n"
	"  --active BOOL       whether it is polled: true or false\n"
	"  --begin TIME        from when on (default now)\n"
	"  --end TIME          until when (default for ever)\n"
	"  --with-data         remove: delete what is stored of it\n"
	"  --server URL        where the server is (default http://127.0.0.1:8470)\n"
	"  -o FORMAT           list: table, csv or json; default: a table on a terminal, else csv\n"
	"\n"
	"Examples:\n"
	"  granary device add rtr_a 192.0.2.1 --credentials lab\n"
	"  granary device add rtr_b rtr-b.example FastPollHC Errors IfRefPoll --credentials core\n"
	"  granary device import devices.csv\n";

const char client_oidset_help[] =
	"usage: granary oidset list [options]\n"
	"       granary oidset show NAME [options]\n"
	"\n"
	"Prints the OIDSets that a server knows, or the OIDs of one.\n"
	"\n"
	"  --server URL    where the server is (default http://127.0.0.1:8470)\n"
	"  -o FORMAT       table, csv or json; default: a table on a terminal, else csv\n";

/* ---- Verbs ------------------------------------------------------------------------------------
 */

/* ---- Talking to the server --------------------------------------------------------------------
 */

/* Sends and says nothing where it went well. */
static int send_json(const struct client_args *args, const char *route, const char *name,
		     struct slice body, struct client_answer *answer)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, route, name);
	if (args->with_data)
		buf_append_text(&path, "?withData=true");
	buf_append_char(&path, 0);
	int err = client_request(args, path.data, "application/json", body, answer);
	buf_release(&path);
	return err;
}

/* ---- What options say --------------------------------------------------------------------------
 */

static int take_time(const struct client_args *args, const char *option, const char *text,
		     int64_t *ms)
{
	struct errbuf e;
	if (text && time_parse_absolute(slice_of(text), ms, &e))
		return client_usage(args, "%s: %s", option, e.text);
	return 0;
}

static int take_bool(const struct client_args *args, bool *value)
{
	bool yes = args->active && strcmp(args->active, "true") == 0;
	if (args->active && !yes && strcmp(args->active, "false") != 0)
		return client_usage(args, "--active is true or false, not %s", args->active);
	*value = args->active ? yes : *value;
	return 0;
}

static void write_text(struct json_writer *w, const char *key, const char *text)
{
	if (!text)
		return;
	json_put_text(w, key, text);
}

static void write_oidsets(struct json_writer *w, const struct client_args *args, size_t first)
{
	if (args->word_count <= first)
		return;
	json_write_key(w, "oidsets");
	json_write_array_begin(w);
	for (size_t i = first; i < args->word_count; i++)
		json_write_text(w, args->words[i]);
	json_write_array_end(w);
}

/* The members that were given; `first` is the first word that is an OIDSet. */
static int write_device(const struct client_args *args, const char *name, const char *address,
			size_t first, struct buf *body)
{
	struct json_writer w;
	bool active = true;
	int64_t ms;
	if (take_time(args, "--begin", args->begin, &ms) ||
	    take_time(args, "--end", args->end, &ms) || take_bool(args, &active))
		return ERR_INVALID;
	json_writer_init(&w, body);
	json_write_object_begin(&w);
	write_text(&w, "name", name);
	write_text(&w, "address", address);
	write_text(&w, "credentials", args->credentials);
	write_text(&w, "poller", args->poller);
	write_text(&w, "begin", args->begin);
	write_text(&w, "end", args->end);
	if (args->active) {
		json_put_bool(&w, "active", active);
	}
	write_oidsets(&w, args, first);
	json_write_object_end(&w);
	return 0;
}

static bool is_utf8(const char *text)
{
	for (size_t left = text ? strlen(text) : 0, len = 0; left; left -= len, text += len) {
		len = utf8_length((const uint8_t *)text, left);
		if (!len)
			return false;
	}
	return true;
}

/* JSON cannot carry anything else, and would name another device. */
static int check_utf8(const struct client_args *args)
{
	bool well = is_utf8(args->credentials) && is_utf8(args->poller) && is_utf8(args->address);
	for (size_t i = 0; i < args->word_count; i++)
		well = well && is_utf8(args->words[i]);
	if (well)
		return 0;
	client_complain(args, "what is given is not UTF-8");
	return ERR_INVALID;
}

static int post_device(const struct client_args *args, const char *route, const char *to,
		       const char *name, const char *address, size_t first)
{
	struct client_answer answer;
	struct buf body;
	buf_init(&body, 1 << 20);
	client_answer_init(&answer);
	int status = CLIENT_USAGE;
	if (check_utf8(args) == 0 && write_device(args, name, address, first, &body) == 0)
		status = send_json(args, route, to, buf_slice(&body), &answer) ? CLIENT_FAILED
									       : CLIENT_OK;
	client_answer_release(&answer);
	buf_release(&body);
	return status;
}

/* ---- device -----------------------------------------------------------------------------------
 */

static int device_add(const struct client_args *args)
{
	if (!args->credentials) {
		client_usage(args, "--credentials is missing");
		return CLIENT_USAGE;
	}
	return post_device(args, "/api/devices", "", args->words[0], args->words[1], 2);
}

static int device_change(const struct client_args *args)
{
	return post_device(args, "/api/devices/", args->words[0], NULL, args->address, 1);
}

static int device_rename(const struct client_args *args)
{
	return post_device(args, "/api/devices/", args->words[0], args->words[1], NULL, 2);
}

static int device_remove(const struct client_args *args)
{
	struct client_args sent = *args;
	struct client_answer answer;
	sent.method = "DELETE";
	client_answer_init(&answer);
	int err =
		send_json(&sent, "/api/devices/", args->words[0], (struct slice){NULL, 0}, &answer);
	client_answer_release(&answer);
	return err ? CLIENT_FAILED : CLIENT_OK;
}

static int device_poll(const struct client_args *args)
{
	struct client_args sent = *args;
	struct client_answer answer;
	struct buf path;
	sent.method = "POST";
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	buf_append_text(&path, "/api/polls/now");
	client_param(&path, "device", args->words[0]);
	buf_append_char(&path, 0);
	client_answer_init(&answer);
	int err = client_request(&sent, path.data, NULL, (struct slice){NULL, 0}, &answer);
	client_answer_release(&answer);
	buf_release(&path);
	return err ? CLIENT_FAILED : CLIENT_OK;
}

static void print_devices(const struct client_args *args, const struct json *root,
			  UNUSED struct arena *arena)
{
	static const char *const titles[] = {"name",    "address", "port",  "credentials", "poller",
					     "oidsets", "state",   "since", "reason"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *device = root->first; device; device = device->next) {
		for (size_t i = 0; i < ARRAY_LEN(titles); i++) {
			if (strcmp(titles[i], "oidsets") == 0)
				text_table_add_names(&table, device, "oidsets");
			else
				text_table_add_member(&table, device, titles[i]);
		}
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static int device_list(const struct client_args *args)
{
	return client_show(args, "/api/devices", args->output == OUTPUT_JSON, print_devices);
}

/* ---- device import ------------------------------------------------------------------------------
 */

static void write_specs(const struct device_spec *specs, size_t count, struct buf *body)
{
	struct json_writer w;
	json_writer_init(&w, body);
	json_write_array_begin(&w);
	for (size_t i = 0; i < count; i++)
		device_spec_json(&specs[i], &w);
	json_write_array_end(&w);
}

/* Where in the file the device stands that the server refused. */
static const struct device_spec *refused_spec(const struct client_answer *answer,
					      const struct device_spec *specs, size_t count,
					      struct arena *arena)
{
	struct json *root;
	int64_t item = -1;
	if (json_parse(buf_slice(&answer->body), arena, &root, NULL) ||
	    json_get_i64(json_member(root, "error"), "item", &item, NULL) || item < 0 ||
	    (size_t)item >= count)
		return NULL;
	return &specs[item];
}

static int send_specs(const struct client_args *args, const struct device_spec *specs, size_t count,
		      struct arena *arena)
{
	struct client_answer answer;
	struct buf body;
	buf_init(&body, 32 << 20);
	client_answer_init(&answer);
	answer.quiet = true;
	write_specs(specs, count, &body);
	int err = body.failed ? ERR_LIMIT
			      : send_json(args, "/api/devices", "", buf_slice(&body), &answer);
	const struct device_spec *refused = err ? refused_spec(&answer, specs, count, arena) : NULL;
	if (body.failed)
		client_complain(args, "%s: too large", args->words[0]);
	else if (refused)
		client_complain(args, "%s:%zu: %s; nothing was imported", refused->file,
				refused->line, answer.error.text);
	else if (err)
		client_complain(args, "%s; nothing was imported", answer.error.text);
	else
		printf("%zu devices were added\n", count);
	client_answer_release(&answer);
	buf_release(&body);
	return err ? CLIENT_FAILED : CLIENT_OK;
}

static int read_list(const struct client_args *args, struct arena *arena,
		     struct device_spec **specs, size_t *count)
{
	struct files *files = files_real();
	struct errbuf e;
	struct buf text;
	buf_init(&text, IMPORT_MAX_BYTES);
	int err = files->read(files, args->words[0], IMPORT_MAX_BYTES, &text);
	struct slice copy =
		err ? SLICE("") : arena_copy(arena, text.len ? buf_slice(&text) : SLICE(""));
	buf_release(&text);
	if (err) {
		client_complain(args, "%s: %s", args->words[0],
				err == ERR_LIMIT ? "longer than 16 MB" : err_text(err));
		return err;
	}
	err = device_list_parse(args->words[0], copy, arena, specs, count, &e);
	if (err)
		client_complain(args, "%s; nothing was imported", e.text);
	return err;
}

static int device_import(const struct client_args *args)
{
	struct device_spec *specs;
	struct arena arena;
	size_t count;
	arena_init(&arena, IMPORT_ARENA_MAX_BYTES);
	int status = CLIENT_FAILED;
	if (read_list(args, &arena, &specs, &count) == 0)
		status = send_specs(args, specs, count, &arena);
	arena_release(&arena);
	return status;
}

static const struct client_verb device_verbs[] = {
	{"add",
	 device_add,
	 {"device add", client_device_help,
	  OPTION_SERVER | OPTION_CREDENTIALS | OPTION_POLLER | OPTION_ACTIVE | OPTION_LIFE, 2,
	  CLIENT_WORDS_MAX}},
	{"change",
	 device_change,
	 {"device change", client_device_help,
	  OPTION_SERVER | OPTION_CREDENTIALS | OPTION_POLLER | OPTION_ACTIVE | OPTION_LIFE |
		  OPTION_ADDRESS,
	  1, CLIENT_WORDS_MAX}},
	{"list",
	 device_list,
	 {"device list", client_device_help, OPTION_SERVER | OPTION_OUTPUT, 0, 0}},
	{"rename", device_rename, {"device rename", client_device_help, OPTION_SERVER, 2, 2}},
	{"remove",
	 device_remove,
	 {"device remove", client_device_help, OPTION_SERVER | OPTION_WITH_DATA, 1, 1}},
	{"poll", device_poll, {"device poll", client_device_help, OPTION_SERVER, 1, 1}},
	{"import", device_import, {"device import", client_device_help, OPTION_SERVER, 1, 1}},
};

int client_device(int argc, char *const *argv)
{
	return client_run_verb("device", client_device_help, device_verbs, ARRAY_LEN(device_verbs),
			       argc, argv);
}

/* ---- oidset -------------------------------------------------------------------------------------
 */

static void add_duration(struct text_table *table, const struct json *object, const char *key)
{
	int64_t ms = 0;
	if (json_get_i64(object, key, &ms, NULL))
		text_table_add(table, SLICE(""));
	else
		text_table_addf(table, "%gs", (double)ms / 1000);
}

static void print_oidsets(const struct client_args *args, const struct json *root,
			  UNUSED struct arena *arena)
{
	static const char *const titles[] = {"name",       "frequency", "kind",
					     "correlator", "queue",     "oids"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *set = root->first; set; set = set->next) {
		text_table_add_member(&table, set, "name");
		add_duration(&table, set, "frequencyMs");
		text_table_add_member(&table, set, "kind");
		text_table_add_member(&table, set, "correlator");
		text_table_add_member(&table, set, "queue");
		text_table_add_names(&table, set, "oids");
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static int oidset_list(const struct client_args *args)
{
	return client_show(args, "/api/oidsets", args->output == OUTPUT_JSON, print_oidsets);
}

static void print_oidset(const struct client_args *args, const struct json *root,
			 UNUSED struct arena *arena)
{
	static const char *const titles[] = {"name", "oid", "type", "aggregate", "alias"};
	const struct json *oids = json_member(root, "oids");
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (const struct json *oid = oids ? oids->first : NULL; oid; oid = oid->next) {
		for (size_t i = 0; i < ARRAY_LEN(titles); i++)
			text_table_add_member(&table, oid, titles[i]);
	}
	text_table_print(&table, args->output);
	text_table_release(&table);
}

static int oidset_show(const struct client_args *args)
{
	struct buf path;
	buf_init(&path, CLIENT_PATH_MAX_BYTES);
	client_path(&path, "/api/oidsets/", args->words[0]);
	buf_append_char(&path, 0);
	int status = client_show(args, path.data, args->output == OUTPUT_JSON, print_oidset);
	buf_release(&path);
	return status;
}

static const struct client_verb oidset_verbs[] = {
	{"list",
	 oidset_list,
	 {"oidset list", client_oidset_help, OPTION_SERVER | OPTION_OUTPUT, 0, 0}},
	{"show",
	 oidset_show,
	 {"oidset show", client_oidset_help, OPTION_SERVER | OPTION_OUTPUT, 1, 1}},
};

int client_oidset(int argc, char *const *argv)
{
	return client_run_verb("oidset", client_oidset_help, oidset_verbs, ARRAY_LEN(oidset_verbs),
			       argc, argv);
}
