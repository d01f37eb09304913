/* Asks one device, with the option letters of net-snmp's tools. Talks to the device itself, not to
 * a server. */
#include <errno.h>
#include <netdb.h>

#include "cmd/client.h"
#include "cmd/client_private.h"
#include "cmd/snmp_request.h"
#include "cmd/snmp_text.h"
#include "snmp/client.h"

const char client_snmp_help[] =
	"usage: granary snmp get DEVICE OID... [options]\n"
	"       granary snmp walk DEVICE [OID...] [options]\n"
	"       granary snmp discover DEVICE [options]\n"
	"       granary snmp poll-once DEVICE OIDSET [options] [--CONFIGURATION...]\n"
	"\n"
	"Asks a device by SNMP and prints what it says, a line a value. `walk` without an OID asks "
	"for\n"
	"1.3.6.1.2.1; several OIDs are walked side by side. `discover` prints what the device is: "
	"its\n"
	"name, description, engine and interfaces. `poll-once` prints what the poller would store "
	"of an\n"
	"OIDSet: path, OID, type, value and time of each value; --config FILE and other options "
	"of\n"
	"`granary serve` say which OIDSets there are besides the shipped ones. DEVICE is a name or "
	"address, with or without "
	":PORT\n"
	"(161); an OID is numbers or one of the names that the output shows.\n"
	"\n"
	"The options are those of net-snmp's tools:\n"
	"  -v 1|2c|3       version (default 2c)\n"
	"  -c COMMUNITY    community of versions 1 and 2c (default public)\n"
	"  -u USER         user of version 3\n"
	"  -l LEVEL        noAuthNoPriv, authNoPriv, authPriv (default: as passwords are given)\n"
	"  -a PROTOCOL     MD5, SHA, SHA-224, SHA-256, SHA-384, SHA-512 (default SHA)\n"
	"  -A PASSWORD     its password, 8 characters or more\n"
	"  -x PROTOCOL     DES, AES, AES-192, AES-256, AES-192-C, AES-256-C (default AES); -C: as "
	"Cisco\n"
	"  -X PASSWORD     its password\n"
	"  -n CONTEXT      context of version 3\n"
	"  -e ENGINE-ID    the device's engine id in hexadecimal (default: it is asked)\n"
	"  -t SECONDS      how long to wait for a reply (default 1; a fraction may be given)\n"
	"  -r RETRIES      how often to ask again, 0 to 7 (default 5)\n"
	"  -Cr NUMBER      rows of one GETBULK (default: as many as fit)\n"
	"  -On             no names, as net-snmp prints it\n"
	"\n"
	"Passwords on a command line are seen by other users of the machine. Exit status: 0, 1 the "
	"device\n"
	"did not answer or refused, 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  granary snmp get router-1 sysName.0 sysUpTime.0\n"
	"  granary snmp walk router-1 ifName ifHCInOctets ifHCOutOctets\n"
	"  granary snmp poll-once router-1 IfXTable -c public\n"
	"  granary snmp discover router-1 -v 3 -u monitor -a SHA-256 -A maplesyrup -x AES -X "
	"maplesyrup\n";

static const struct client_command command = {.name = "snmp", .help = client_snmp_help};
/* For sentences. */
static const struct client_args complaining = {.command = &command};

enum { LINE_MAX_BYTES = 1 << 20 };

struct request {
	struct snmp_request line;
	struct slice oids[SNMP_COLUMNS_MAX];
	size_t oid_count;
};

/* ---- What is asked --------------------------------------------------------------------------- */

static int parse_oids(struct request *r, size_t first, const char *standard)
{
	static uint8_t memory[SNMP_COLUMNS_MAX][OID_MAX_BYTES];
	struct errbuf e = {""};
	if (r->line.word_count == first && standard)
		r->line.words[r->line.word_count++] = standard;
	if (r->line.word_count == first) {
		client_usage(&complaining, "no OID is given");
		return ERR_INVALID;
	}
	for (size_t i = first; i < r->line.word_count && r->oid_count < SNMP_COLUMNS_MAX; i++) {
		const char *word = r->line.words[i];
		/* What net-snmp's users write for everything. */
		if (strcmp(word, ".1") == 0 || strcmp(word, "1") == 0 || strcmp(word, ".") == 0)
			word = "1.3";
		if (snmp_text_parse_oid(slice_of(word), memory[r->oid_count],
					&r->oids[r->oid_count], &e)) {
			client_usage(&complaining, "%s", e.text);
			return ERR_INVALID;
		}
		r->oid_count++;
	}
	return 0;
}

/* ---- Where it is ----------------------------------------------------------------------------- */

static int resolve(const char *device, struct loop_address *address)
{
	char host[SNMP_HOST_MAX_BYTES], port[SNMP_PORT_MAX_BYTES];
	struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
	snmp_request_split(device, host, port);
	int err = getaddrinfo(host, port, &hints, &found);
	if (err) {
		client_complain(&complaining, "%.100s: %s", device, gai_strerror(err));
		return ERR_NOT_FOUND;
	}
	*address = loop_address_of(found->ai_addr);
	freeaddrinfo(found);
	return 0;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

struct asking {
	struct request *request;
	struct loop *loop;
	struct snmp_client *client;
	struct snmp_device *device;
	int err;
	struct buf line;

	struct interface *interfaces;
	size_t interface_count;
};

static void print_cell(struct asking *asking, const struct snmp_cell *cell)
{
	struct terminal_lines lines = {0};
	buf_clear(&asking->line);
	snmp_text_line(cell->oid, &cell->value, !asking->request->line.numeric, &asking->line);
	buf_append_char(&asking->line, '\n');
	(void)terminal_print(&lines, buf_slice(&asking->line), true);
}

static void on_reply(void *owner, const struct snmp_reply *reply)
{
	struct asking *asking = owner;
	for (size_t i = 0; i < reply->count; i++)
		print_cell(asking, &reply->cells[i]);
}

static void complain_of_columns(const struct asking *asking, const struct snmp_result *result)
{
	struct buf name;
	buf_init(&name, 4096);
	for (size_t i = 0; i < result->count; i++) {
		buf_clear(&name);
		oid_print(asking->request->oids[i], &name);
		if (result->ends[i] == SNMP_COLUMN_REFUSED)
			client_complain(&complaining, "%.*s: the device says %s", (int)name.len,
					name.data, snmp_error_text(result->errors[i]));
		else if (result->ends[i] == SNMP_COLUMN_LOOPED)
			client_complain(&complaining,
					"%.*s: the names that the device gives do not increase; "
					"the walk ends there",
					(int)name.len, name.data);
	}
	buf_release(&name);
}

static void on_done(void *owner, const struct snmp_result *result)
{
	struct asking *asking = owner;
	asking->err = result->err;
	if (result->err)
		client_complain(&complaining, "%s: %s", asking->request->line.words[1],
				result->sentence);
	complain_of_columns(asking, result);
	for (size_t i = 0; !asking->err && i < result->count; i++)
		if (result->ends[i] != SNMP_COLUMN_ENDED)
			asking->err = ERR_INVALID;
	loop_stop(asking->loop);
}

static const struct snmp_events events = {on_reply, on_done};

static int ask(struct asking *asking, bool walk, const struct snmp_events *with)
{
	const struct request *r = asking->request;
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
struct interface {
	char index[OID_MAX_BYTES]; /* encoded */
	size_t index_len;
	char texts[INTERFACE_TEXTS][TEXT_MAX_BYTES];
};

static const char *const interface_columns[INTERFACE_TEXTS] = {
	"ifName", "ifDescr", "ifAlias", "ifHighSpeed", "ifOperStatus",
};

static struct interface *find_interface(struct asking *asking, struct slice index)
{
	for (size_t i = asking->interface_count; i-- > 0;) {
		struct interface *interface = &asking->interfaces[i];
		if (slice_equal(index, (struct slice){interface->index, interface->index_len}))
			return interface;
	}
	if (asking->interface_count == INTERFACES_MAX)
		return NULL;
	if ((asking->interface_count & (asking->interface_count - 1)) == 0)
		asking->interfaces =
			mem_resize_array(asking->interfaces, asking->interface_count * 2 + 1,
					 sizeof(*asking->interfaces));
	struct interface *interface = &asking->interfaces[asking->interface_count++];
	memset(interface, 0, sizeof(*interface));
	memcpy(interface->index, index.data, index.len);
	interface->index_len = index.len;
	return interface;
}

static void put_status(int64_t status, char *text)
{
	static const char *const statuses[] = {
		"", "up", "down", "testing", "unknown", "dormant", "notPresent", "lowerLayerDown"};
	bool known = status > 0 && (size_t)status < ARRAY_LEN(statuses);
	snprintf(text, TEXT_MAX_BYTES, "%s", known ? statuses[status] : "?");
}

static void on_interface(void *owner, const struct snmp_reply *reply)
{
	struct asking *asking = owner;
	for (size_t i = 0; i < reply->count; i++) {
		const struct snmp_cell *cell = &reply->cells[i];
		struct interface *interface = find_interface(asking, cell->index);
		if (!interface)
			continue;
		char *text = interface->texts[cell->column];
		if (cell->value.type == SNMP_OCTETS)
			snprintf(text, TEXT_MAX_BYTES, "%.*s", (int)cell->value.bytes.len,
				 cell->value.bytes.data);
		else if (cell->value.type == SNMP_INTEGER)
			put_status(cell->value.i64, text);
		else if (cell->value.type == SNMP_GAUGE32)
			snprintf(text, TEXT_MAX_BYTES, "%llu", (unsigned long long)cell->value.u64);
	}
}

static void print_interfaces(const struct asking *asking)
{
	static const char *const titles[] = {"ifIndex", "name", "description",
					     "alias",   "Mb/s", "status"};
	struct text_table table;
	text_table_init(&table, ARRAY_LEN(titles), titles);
	for (size_t i = 0; i < asking->interface_count; i++) {
		const struct interface *interface = &asking->interfaces[i];
		struct slice rest = {interface->index, interface->index_len};
		uint32_t index = 0;
		if (!oid_take_arc(&rest, &index))
			continue;
		text_table_addf(&table, "%u", index);
		for (size_t j = 0; j < INTERFACE_TEXTS; j++)
			text_table_add(&table, slice_of(interface->texts[j]));
	}
	text_table_print(&table, OUTPUT_TABLE);
	text_table_release(&table);
}

static void set_oids(struct request *r, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		r->line.words[2 + i] = names[i];
	r->line.word_count = 2 + count;
	r->oid_count = 0;
	ASSERT(parse_oids(r, 2, NULL) == 0);
}

static void on_probed(void *owner, UNUSED const struct snmp_result *result)
{
	struct asking *asking = owner;
	loop_stop(asking->loop);
}

/* Any engine tells its id to anybody. One that does not answer has none of version 3. */
static void print_engine(struct asking *asking, const struct loop_address *address)
{
	static const struct snmp_credentials nobody = {.version = SNMP_V3};
	static const struct snmp_events probing = {on_reply, on_probed};
	struct snmp_device_options options = asking->request->line.options;
	struct snmp_device *device = asking->device;
	struct snmp_device_view view;
	struct snmp_login *login;
	if (asking->request->line.credentials.version != SNMP_V3) {
		options.retries = options.retries ? 1 : 0;
		ASSERT(snmp_login_new(&nobody, &login, NULL) == 0);
		asking->device = snmp_device_new(asking->client, address, login, &options);
		snmp_login_release(login);
		(void)ask(asking, false, &probing);
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

static int discover(struct asking *asking, const struct loop_address *address)
{
	static const char *const system[] = {"sysDescr.0", "sysObjectID.0", "sysUpTime.0",
					     "sysName.0", "sysLocation.0"};
	static const struct snmp_events rows = {on_interface, on_done};
	set_oids(asking->request, system, ARRAY_LEN(system));
	int err = ask(asking, false, &events);
	if (err)
		return err;
	print_engine(asking, address);
	set_oids(asking->request, interface_columns, INTERFACE_TEXTS);
	err = ask(asking, true, &rows);
	print_interfaces(asking);
	mem_free(asking->interfaces);
	return err;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int run(struct request *r, const struct loop_address *address, struct snmp_login *login)
{
	struct snmp_client_options options = {.in_flight_max = 0};
	struct asking asking = {.request = r, .loop = loop_new()};
	struct errbuf e;
	buf_init(&asking.line, LINE_MAX_BYTES);
	int err = snmp_client_open(asking.loop, clock_real(), &options, &asking.client, &e);
	if (err) {
		client_complain(&complaining, "%s", e.text);
	} else {
		asking.device = snmp_device_new(asking.client, address, login, &r->line.options);
		if (strcmp(r->line.words[0], "discover") == 0)
			err = discover(&asking, address);
		else
			err = ask(&asking, strcmp(r->line.words[0], "walk") == 0, &events);
		snmp_device_free(asking.device);
		snmp_client_close(asking.client);
	}
	buf_release(&asking.line);
	loop_free(asking.loop);
	return err || fflush(stdout) ? CLIENT_FAILED : CLIENT_OK;
}

static int check_words(struct request *r)
{
	const char *what = r->line.word_count ? r->line.words[0] : "";
	bool discover_it = strcmp(what, "discover") == 0, walk = strcmp(what, "walk") == 0;
	if (!discover_it && !walk && strcmp(what, "get") != 0)
		return client_usage(&complaining, "say get, walk, discover or poll-once");
	if (r->line.word_count < 2)
		return client_usage(&complaining, "no device is given");
	if (discover_it && r->line.word_count > 2)
		return client_usage(&complaining, "discover takes a device only");
	return discover_it ? 0 : parse_oids(r, 2, walk ? "1.3.6.1.2.1" : NULL);
}

/* ---- The command ----------------------------------------------------------------------------- */

int client_snmp(int argc, char *const *argv)
{
	static struct request request;
	struct loop_address address;
	struct snmp_login *login;
	struct errbuf e = {""};
	if (argc && strcmp(argv[argc - 1], "--help") == 0) {
		printf("%s", client_snmp_help);
		return CLIENT_OK;
	}
	if (argc && strcmp(argv[0], "poll-once") == 0)
		return client_snmp_poll(argc - 1, argv + 1);
	if (snmp_request_parse(argc, argv, &request.line) || check_words(&request))
		return CLIENT_USAGE;
	if (snmp_login_new(&request.line.credentials, &login, &e)) {
		client_usage(&complaining, "%s", e.text);
		return CLIENT_USAGE;
	}
	int status = resolve(request.line.words[1], &address) ? CLIENT_FAILED
							      : run(&request, &address, login);
	snmp_login_release(login);
	return status;
}
