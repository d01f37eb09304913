/* Asks one device, with the option letters of net-snmp's tools. Talks to the device itself, not to
 * a server. */
#include <errno.h>
#include <netdb.h>

#include "cmd/client.h"
#include "cmd/client_private.h"
#include "cmd/snmp_request.h"
#include "cmd/snmp_text.h"
#include "snmp/client.h"

enum { LINE_MAX_BYTES = 1 << 20 };

struct client_snmp_request {
	const struct snmp_request *line;
	struct slice oids[SNMP_COLUMNS_MAX];
	size_t oid_count;
};

/* ---- What is asked --------------------------------------------------------------------------- */

static int client_snmp_parse_oids(struct client_snmp_request *r, const char *const *names,
				  size_t count)
{
	static uint8_t memory[SNMP_COLUMNS_MAX][OID_MAX_BYTES];
	struct errbuf e = {""};
	r->oid_count = 0;
	for (size_t i = 0; i < count; i++) {
		const char *word = names[i];
		/* What net-snmp's users write for everything. */
		if (strcmp(word, ".1") == 0 || strcmp(word, "1") == 0 || strcmp(word, ".") == 0)
			word = "1.3";
		if (snmp_text_parse_oid(slice_of(word), memory[r->oid_count],
					&r->oids[r->oid_count], &e))
			return command_usage(&r->line->line, "%s", e.text);
		r->oid_count++;
	}
	return 0;
}

/* ---- Where it is ----------------------------------------------------------------------------- */

static int client_snmp_resolve(const struct snmp_request *request, struct loop_address *address)
{
	char host[SNMP_HOST_MAX_BYTES], port[SNMP_PORT_MAX_BYTES];
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
	snmp_request_split(request->device, host, port);
	int err = getaddrinfo(host, port, &hints, &found);
	if (err) {
		command_complain(&request->line, "%.100s: %s", request->device, gai_strerror(err));
		return ERR_NOT_FOUND;
	}
	*address = loop_address_of(found->ai_addr);
	freeaddrinfo(found);
	return 0;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

struct client_snmp_asking {
	struct client_snmp_request *request;
	struct loop *loop;
	struct snmp_client *client;
	struct snmp_device *device;
	int err;
	struct buf line;

	struct client_snmp_interface *interfaces;
	size_t interface_count;
};

static void client_snmp_print_cell(struct client_snmp_asking *asking, const struct snmp_cell *cell)
{
	struct terminal_lines lines = {0};
	buf_clear(&asking->line);
	snmp_text_line(cell->oid, &cell->value, !asking->request->line->numeric, &asking->line);
	buf_append_char(&asking->line, '\n');
	(void)terminal_print(&lines, buf_slice(&asking->line), true);
}

static void client_snmp_on_reply(void *owner, const struct snmp_reply *reply)
{
	struct client_snmp_asking *asking = owner;
	for (size_t i = 0; i < reply->count; i++)
		client_snmp_print_cell(asking, &reply->cells[i]);
}

static void client_snmp_complain_of_columns(const struct client_snmp_asking *asking,
					    const struct snmp_result *result)
{
	struct buf name;
	buf_init(&name, 4096);
	for (size_t i = 0; i < result->count; i++) {
		buf_clear(&name);
		oid_print(asking->request->oids[i], &name);
		if (result->ends[i] == SNMP_COLUMN_REFUSED)
			command_complain(&asking->request->line->line, "%.*s: the device says %s",
					 (int)name.len, name.data,
					 snmp_error_text(result->errors[i]));
		else if (result->ends[i] == SNMP_COLUMN_LOOPED)
			command_complain(&asking->request->line->line,
					 "%.*s: the names that the device gives do not increase; "
					 "the walk ends there",
					 (int)name.len, name.data);
	}
	buf_release(&name);
}

static void client_snmp_on_done(void *owner, const struct snmp_result *result)
{
	struct client_snmp_asking *asking = owner;
	asking->err = result->err;
	if (result->err)
		command_complain(&asking->request->line->line, "%s: %s",
				 asking->request->line->device, result->sentence);
	client_snmp_complain_of_columns(asking, result);
	for (size_t i = 0; !asking->err && i < result->count; i++)
		if (result->ends[i] != SNMP_COLUMN_ENDED)
			asking->err = ERR_INVALID;
	loop_stop(asking->loop);
}

static const struct snmp_events client_snmp_events = {client_snmp_on_reply, client_snmp_on_done};

static int client_snmp_ask(struct client_snmp_asking *asking, bool walk,
			   const struct snmp_events *with)
{
	const struct client_snmp_request *r = asking->request;
	int err = walk ? snmp_walk(asking->device, r->oids, NULL, r->oid_count, with, asking, NULL)
		       : snmp_get(asking->device, r->oids, r->oid_count, with, asking, NULL);
	if (err)
		return err;
	loop_run(asking->loop);
	return asking->err;
}

/* ---- Discovery ------------------------------------------------------------------------------- */

enum { INTERFACES_MAX = 65536, INTERFACE_TEXTS = 5, TEXT_MAX_BYTES = 256 };

/* A walk gives columns beside each other; a row is complete at the end. */
struct client_snmp_interface {
	char index[OID_MAX_BYTES]; /* encoded */
	size_t index_len;
	char texts[INTERFACE_TEXTS][TEXT_MAX_BYTES];
};

static const char *const client_snmp_interface_columns[INTERFACE_TEXTS] = {
	"ifName", "ifDescr", "ifAlias", "ifHighSpeed", "ifOperStatus",
};

static struct client_snmp_interface *client_snmp_find_interface(struct client_snmp_asking *asking,
								struct slice index)
{
	for (size_t i = asking->interface_count; i-- > 0;) {
		struct client_snmp_interface *interface = &asking->interfaces[i];
		if (slice_equal(index, (struct slice){interface->index, interface->index_len}))
			return interface;
	}
	if (asking->interface_count == INTERFACES_MAX)
		return NULL;
	if ((asking->interface_count & (asking->interface_count - 1)) == 0)
		asking->interfaces =
			mem_resize_array(asking->interfaces, asking->interface_count * 2 + 1,
					 sizeof(*asking->interfaces));
	struct client_snmp_interface *interface = &asking->interfaces[asking->interface_count++];
	memset(interface, 0, sizeof(*interface));
	memcpy(interface->index, index.data, index.len);
	interface->index_len = index.len;
	return interface;
}

static void client_snmp_put_status(int64_t status, char *text)
{
	static const char *const statuses[] = {
		"", "up", "down", "testing", "unknown", "dormant", "notPresent", "lowerLayerDown"};
	bool known = status > 0 && (size_t)status < ARRAY_LEN(statuses);
	snprintf(text, TEXT_MAX_BYTES, "%s", known ? statuses[status] : "?");
}

static void client_snmp_on_interface(void *owner, const struct snmp_reply *reply)
{
	struct client_snmp_asking *asking = owner;
	for (size_t i = 0; i < reply->count; i++) {
		const struct snmp_cell *cell = &reply->cells[i];
		struct client_snmp_interface *interface =
			client_snmp_find_interface(asking, cell->index);
		if (!interface)
			continue;
		char *text = interface->texts[cell->column];
		if (cell->value.type == SNMP_OCTETS)
			snprintf(text, TEXT_MAX_BYTES, "%.*s", (int)cell->value.bytes.len,
				 cell->value.bytes.data);
		else if (cell->value.type == SNMP_INTEGER)
			client_snmp_put_status(cell->value.i64, text);
		else if (cell->value.type == SNMP_GAUGE32)
			snprintf(text, TEXT_MAX_BYTES, "%llu", (unsigned long long)cell->value.u64);
	}
}

static void client_snmp_print_interfaces(const struct client_snmp_asking *asking)
{
	static const char *const titles[] = {"ifIndex", "name", "description",
					     "alias",   "Mb/s", "status"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < asking->interface_count; i++) {
		const struct client_snmp_interface *interface = &asking->interfaces[i];
		struct slice rest = {interface->index, interface->index_len};
		uint32_t index = 0;
		if (!oid_next_arc(&rest, &index))
			continue;
		text_table_addf(&table, "%u", index);
		for (size_t j = 0; j < INTERFACE_TEXTS; j++)
			text_table_add(&table, slice_of(interface->texts[j]));
	}
	text_table_print(&table, OUTPUT_TABLE);
	text_table_release(&table);
}

static void client_snmp_on_probed(void *owner, UNUSED const struct snmp_result *result)
{
	struct client_snmp_asking *asking = owner;
	loop_stop(asking->loop);
}

/* Any engine tells its id to anybody. One that does not answer has none of version 3. */
static void client_snmp_print_engine(struct client_snmp_asking *asking,
				     const struct loop_address *address)
{
	static const struct snmp_credentials nobody = {.version = SNMP_V3};
	static const struct snmp_events probing = {client_snmp_on_reply, client_snmp_on_probed};
	struct snmp_device_options options = asking->request->line->options;
	struct snmp_device *device = asking->device;
	struct snmp_device_view view;
	struct snmp_login *login;
	if (asking->request->line->credentials.version != SNMP_V3) {
		options.retries = options.retries ? 1 : 0;
		ASSERT(snmp_login_new(&nobody, &login, NULL) == 0);
		asking->device = snmp_device_new(asking->client, address, login, &options);
		snmp_login_release(login);
		(void)client_snmp_ask(asking, false, &probing);
	}
	snmp_device_view(asking->device, &view);
	printf("engine id = ");
	for (size_t i = 0; i < view.engine_id.len; i++)
		printf("%02x", (unsigned char)view.engine_id.data[i]);
	printf(view.engine_id.len ? "\n" : "none: version 3 is not spoken\n");
	if (asking->device != device)
		snmp_device_free(asking->device);
	asking->device = device;
}

static int client_snmp_ask_all(struct client_snmp_asking *asking,
			       const struct loop_address *address)
{
	static const char *const system[] = {"sysDescr.0", "sysObjectID.0", "sysUpTime.0",
					     "sysName.0", "sysLocation.0"};
	static const struct snmp_events rows = {client_snmp_on_interface, client_snmp_on_done};
	ASSERT(client_snmp_parse_oids(asking->request, system, ARRAY_LEN(system)) == 0);
	int err = client_snmp_ask(asking, false, &client_snmp_events);
	if (err)
		return err;
	client_snmp_print_engine(asking, address);
	ASSERT(client_snmp_parse_oids(asking->request, client_snmp_interface_columns,
				      INTERFACE_TEXTS) == 0);
	err = client_snmp_ask(asking, true, &rows);
	client_snmp_print_interfaces(asking);
	mem_free(asking->interfaces);
	return err;
}

/* ---- The command ----------------------------------------------------------------------------- */

static bool client_snmp_is(const struct client_snmp_request *r, const char *command)
{
	return strcmp(r->line->line.command->name, command) == 0;
}

static int client_snmp_talk(struct client_snmp_request *r, const struct loop_address *address,
			    struct snmp_login *login)
{
	struct snmp_client_options options = {.in_flight_max = 0};
	struct client_snmp_asking asking = {.request = r, .loop = loop_new()};
	struct errbuf e;
	buf_init(&asking.line, LINE_MAX_BYTES);
	int err = snmp_client_open(asking.loop, clock_real(), &options, &asking.client, &e);
	if (err) {
		command_complain(&r->line->line, "%s", e.text);
	} else {
		asking.device = snmp_device_new(asking.client, address, login, &r->line->options);
		err = client_snmp_is(r, "snmp discover")
			      ? client_snmp_ask_all(&asking, address)
			      : client_snmp_ask(&asking, client_snmp_is(r, "snmp walk"),
						&client_snmp_events);
		snmp_device_free(asking.device);
		snmp_client_close(asking.client);
	}
	buf_release(&asking.line);
	loop_free(asking.loop);
	return err || fflush(stdout) ? EXIT_FAILED : EXIT_OK;
}

static int client_snmp_run(const struct command_args *args)
{
	static const char *const everything[] = {"1.3.6.1.2.1"};
	static struct client_snmp_request r;
	static struct snmp_request line;
	struct loop_address address;
	struct snmp_login *login;
	struct errbuf e = {""};
	line = *CONTAINER_OF(args, const struct snmp_request, line);
	r.line = &line;
	snmp_request_finish(&line);
	if (client_snmp_is(&r, "snmp walk") && !line.oids.count)
		line.oids = (struct command_words){everything, ARRAY_LEN(everything)};
	if (client_snmp_parse_oids(&r, line.oids.items, line.oids.count))
		return EXIT_WRONG_USE;
	if (snmp_login_new(&line.credentials, &login, &e)) {
		command_usage(args, "%s", e.text);
		return EXIT_WRONG_USE;
	}
	int status = client_snmp_resolve(&line, &address) ? EXIT_FAILED
							  : client_snmp_talk(&r, &address, login);
	snmp_login_release(login);
	return status;
}

#define ROW(type, field, ...) COMMAND_ROW(type, snmp_request, field, __VA_ARGS__)
#define SNMP_DEVICE                                                                                \
	ROW(command_text, device, NULL, "DEVICE",                                                  \
	    "a name or address, with or without :PORT (161)", .required = true)
#define SNMP_LETTERS                                                                               \
	ROW(snmp_request_version, credentials.version, "-v", "VERSION", "1, 2c or 3",              \
	    .preset = "2c"),                                                                       \
		ROW(snmp_request_text, credentials.community, "-c", "COMMUNITY",                   \
		    "community of versions 1 and 2c", .preset = "public"),                         \
		ROW(snmp_request_text, credentials.user, "-u", "USER", "user of version 3"),       \
		ROW(snmp_request_level, level, "-l", "LEVEL",                                      \
		    "noAuthNoPriv, authNoPriv, authPriv", .otherwise = "as passwords are given"),  \
		ROW(snmp_request_auth, credentials.auth, "-a", "PROTOCOL",                         \
		    "MD5, SHA, SHA-224, SHA-256, SHA-384, SHA-512", .preset = "SHA"),              \
		ROW(snmp_request_text, credentials.auth_password, "-A", "PASSWORD",                \
		    "its password, 8 characters or more"),                                         \
		ROW(snmp_request_priv, credentials.priv, "-x", "PROTOCOL",                         \
		    "DES, AES, AES-192, AES-256, AES-192-C, AES-256-C; -C: as Cisco",              \
		    .preset = "AES"),                                                              \
		ROW(snmp_request_text, credentials.priv_password, "-X", "PASSWORD",                \
		    "its password"),                                                               \
		ROW(snmp_request_text, credentials.context, "-n", "CONTEXT",                       \
		    "context of version 3"),                                                       \
		ROW(snmp_request_hex, engine_id, "-e", "ENGINE-ID",                                \
		    "the device's engine id in hexadecimal", .otherwise = "the device is asked"),  \
		ROW(snmp_request_seconds, timeout_ms, "-t", "SECONDS",                             \
		    "how long to wait for a reply; a fraction may be given", .preset = "1"),       \
		ROW(command_number, retries, "-r", "RETRIES", "how often to ask again",            \
		    .preset = "5", .max = SNMP_RETRIES_MAX),                                       \
		ROW(command_number, repetitions_max, "-Cr", "NUMBER", "rows of one GETBULK",       \
		    .otherwise = "as many as fit", .max = SNMP_REPLY_VARBINDS_MAX),                \
		ROW(command_flag, numeric, "-On", NULL, "no names, as net-snmp prints it")

static const struct command_option client_snmp_get_options[] = {
	SNMP_DEVICE,
	ROW(command_text, oids, NULL, "OID", "numbers or one of the names that the output shows",
	    .required = true, .words_max = SNMP_COLUMNS_MAX),
	SNMP_LETTERS,
};

static const struct command_option client_snmp_walk_options[] = {
	SNMP_DEVICE,
	ROW(command_text, oids, NULL, "OID", "numbers or one of the names that the output shows",
	    .words_max = SNMP_COLUMNS_MAX),
	SNMP_LETTERS,
};

static const struct command_option client_snmp_discover_options[] = {SNMP_DEVICE, SNMP_LETTERS};

static const struct command_option client_snmp_poll_options[] = {
	SNMP_DEVICE,
	ROW(command_text, oidset, NULL, "OIDSET", .required = true),
	SNMP_LETTERS,
};

static const struct command client_snmp_verbs[] = {
	{.name = "snmp get",
	 .summary = "asks for values",
	 COMMAND_TAKES(client_snmp_get_options, snmp_request),
	 .run = client_snmp_run,
	 .letters = true},
	{.name = "snmp walk",
	 .summary =
		 "asks for all below an OID, without one for 1.3.6.1.2.1; several OIDs are walked "
		 "side by side",
	 COMMAND_TAKES(client_snmp_walk_options, snmp_request),
	 .run = client_snmp_run,
	 .letters = true},
	{.name = "snmp discover",
	 .summary = "prints what the device is: its name, description, engine and interfaces",
	 COMMAND_TAKES(client_snmp_discover_options, snmp_request),
	 .run = client_snmp_run,
	 .letters = true},
	{.name = "snmp poll-once",
	 .summary = "prints what the poller would store of an OIDSet: path, OID, type, value and "
		    "time of each value; --config FILE and other options of `granary serve` say "
		    "which OIDSets there are besides the shipped ones",
	 COMMAND_TAKES(client_snmp_poll_options, snmp_request),
	 .run = client_snmp_poll_once,
	 .takes_conf = true,
	 .letters = true},
};

const struct command client_snmp = {
	.name = "snmp",
	.summary = "ask a device by SNMP",
	.about = "Asks a device by SNMP and prints what it says, a line a value. The options are "
		 "those of net-snmp's tools. Passwords on a command line are seen by other users "
		 "of the machine.\n"
		 "Exit status: 0, 1 the device did not answer or refused, 2 wrong usage.\n",
	.examples =
		"granary snmp get router-1 sysName.0 sysUpTime.0\n"
		"granary snmp walk router-1 ifName ifHCInOctets ifHCOutOctets\n"
		"granary snmp poll-once router-1 IfXTable -c public\n"
		"granary snmp discover router-1 -v 3 -u monitor -a SHA-256 -A maplesyrup -x AES "
		"-X maplesyrup\n",
	COMMAND_VERBS(client_snmp_verbs),
};
