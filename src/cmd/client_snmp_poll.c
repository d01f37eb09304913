/* `granary snmp poll-once`: what the poller would store of one OIDSet of one device, a line a
 * value. The OIDSets are those of the configuration, which is given as for `granary serve`. */
#include <unistd.h>

#include "base/file.h"
#include "cmd/client.h"
#include "cmd/client_private.h"
#include "cmd/snmp_request.h"
#include "conf/conf.h"
#include "model/poll.h"
#include "snmp/poller_once.h"
#include "wire/number.h"
#include "wire/timetext.h"

static const struct client_command command = {.name = "snmp poll-once", .help = client_snmp_help};
static const struct client_args complaining = {.command = &command};

enum { ARGS_MAX = 1024 };

/* ---- Printing -------------------------------------------------------------------------------- */

struct printing {
	struct text_table table;
	const struct inventory_conf *conf;
	struct buf text;
};

/* The parts one behind the other, as row keys have them: a `:` or `\` inside has a `\` before. */
static struct slice path_text(struct printing *printing, const struct poll_row *row)
{
	struct buf *text = &printing->text;
	buf_clear(text);
	for (size_t i = 0; i < row->part_count; i++) {
		if (i)
			buf_append_char(text, ':');
		for (size_t b = 0; b < row->parts[i].len; b++) {
			char c = row->parts[i].data[b];
			if (c == ':' || c == '\\')
				buf_append_char(text, '\\');
			buf_append_char(text, c);
		}
	}
	return buf_slice(text);
}

static const char *type_text(const struct printing *printing, struct slice oid)
{
	const struct oid_def *def = inventory_conf_oid(printing->conf, oid);
	return def ? oid_type_text(def->type) : "";
}

static struct slice value_text(struct printing *printing, struct value value)
{
	struct buf *text = &printing->text;
	buf_clear(text);
	if (value.type == VALUE_U64)
		buf_printf(text, "%llu", (unsigned long long)value.bits);
	else if (value.type == VALUE_I64)
		buf_printf(text, "%lld", (long long)value.bits);
	else
		buf_printf(text, "%.17g", value_as_f64(value));
	return buf_slice(text);
}

static void print_line(struct printing *printing, const struct poll_row *row, struct slice oid,
		       const struct value *value, const struct poll_text *words, int64_t ts_ms)
{
	char time[TIME_PRINT_MAX_BYTES];
	struct text_table *table = &printing->table;
	text_table_add(table, path_text(printing, row));
	text_table_add(table, oid);
	text_table_add(table, slice_of(type_text(printing, oid)));
	text_table_add(table, words ? words->text : value_text(printing, *value));
	text_table_add(table, (struct slice){time, time_print(time, ts_ms)});
}

static void print_row(struct printing *printing, const struct poll *poll,
		      const struct poll_names *names, const struct poll_values *values, size_t row)
{
	for (size_t c = 0; c < poll->column_count; c++) {
		const struct value *value = &values->values[row * poll->column_count + c];
		const struct poll_text *words = NULL;
		for (size_t t = 0; t < values->text_count && !words; t++)
			if (values->texts[t].row == row && values->texts[t].column == c)
				words = &values->texts[t];
		if (words || value->type != VALUE_NONE)
			print_line(printing, &names->rows[row], names->columns[c], value, words,
				   values->row_ts_ms[row]);
	}
}

static void print_message(void *owner, struct slice message)
{
	struct printing *printing = owner;
	struct poll poll;
	struct poll_names names;
	struct poll_values values;
	struct arena arena;
	struct errbuf e;
	arena_init(&arena, POLL_ARENA_MAX_BYTES);
	int err = poll_open(message, &poll, &e);
	err = err ? err : poll_decode_names(&poll, &arena, &names, &e);
	err = err ? err : poll_decode_values(&poll, &arena, &values, &e);
	ASSERT(!err); /* we have just encoded it */
	for (size_t row = 0; row < poll.row_count; row++)
		print_row(printing, &poll, &names, &values, row);
	arena_release(&arena);
}

/* ---- The command ----------------------------------------------------------------------------- */

/* Options with two dashes are the configuration's, the others the request's. */
struct arguments {
	char *conf[ARGS_MAX], *letters[ARGS_MAX];
	int conf_count, letter_count;
};

static int divide(int argc, char *const *argv, struct arguments *a)
{
	if (argc > ARGS_MAX) {
		client_usage(&complaining, "more than %d words", ARGS_MAX);
		return ERR_INVALID;
	}
	for (int i = 0; i < argc; i++) {
		bool is_conf = strncmp(argv[i], "--", 2) == 0;
		if (!is_conf) {
			a->letters[a->letter_count++] = argv[i];
			continue;
		}
		a->conf[a->conf_count++] = argv[i];
		if (!strchr(argv[i], '=') && i + 1 < argc)
			a->conf[a->conf_count++] = argv[++i];
	}
	return 0;
}

static struct credentials credentials_of(const struct snmp_credentials *c)
{
	static const enum credentials_level levels[] = {
		[SNMP_NO_AUTH_NO_PRIV] = LEVEL_NO_AUTH_NO_PRIV,
		[SNMP_AUTH_NO_PRIV] = LEVEL_AUTH_NO_PRIV,
		[SNMP_AUTH_PRIV] = LEVEL_AUTH_PRIV,
	};
	return (struct credentials){
		.name = SLICE("the command line"),
		.version = c->version,
		.community = c->community,
		.user = c->user,
		.context = c->context,
		.level = levels[c->level],
		.auth = c->auth,
		.auth_password = c->auth_password,
		.priv = c->priv,
		.priv_password = c->priv_password,
	};
}

static int poll_and_print(const struct snmp_request *request, const struct inventory_conf *conf,
			  const struct oidset *oidset)
{
	static const char *const titles[] = {"path", "oid", "type", "value", "time"};
	struct credentials credentials = credentials_of(&request->credentials);
	struct printing printing = {.conf = conf};
	char host[SNMP_HOST_MAX_BYTES];
	struct errbuf e = {""};
	struct poller_once once = {
		.clock = clock_real(),
		.credentials = &credentials,
		.oidset = oidset,
		.tries = request->options.retries + 1,
		.timeout_max_ms = request->options.timeout_max_ms,
		.message = print_message,
		.owner = &printing,
	};
	if (snmp_request_device(request->words[0], host, &once.port))
		return CLIENT_USAGE;
	once.host = slice_of(host);
	buf_init(&printing.text, POLL_PARTS_MAX * (2 * POLL_PART_MAX_BYTES + 1));
	text_table_init(&printing.table, ARRAY_LEN(titles), titles);
	int err = poller_once(&once, &e);
	if (err)
		client_complain(&complaining, "%s: %s", request->words[0], e.text);
	else
		text_table_print(&printing.table,
				 isatty(STDOUT_FILENO) ? OUTPUT_TABLE : OUTPUT_CSV);
	text_table_release(&printing.table);
	buf_release(&printing.text);
	return err || fflush(stdout) ? CLIENT_FAILED : CLIENT_OK;
}

static int poll_oidset(const struct snmp_request *request, const struct inventory_conf *conf)
{
	const struct oidset *oidset = inventory_conf_oidset(conf, slice_of(request->words[1]));
	if (oidset)
		return poll_and_print(request, conf, oidset);
	client_usage(&complaining, "there is no OIDSet called %.100s", request->words[1]);
	return CLIENT_USAGE;
}

int client_snmp_poll(int argc, char *const *argv)
{
	static struct arguments a;
	struct snmp_request request;
	struct inventory_conf *inventory;
	struct errbuf e = {""};
	if (divide(argc, argv, &a) || snmp_request_parse(a.letter_count, a.letters, &request))
		return CLIENT_USAGE;
	if (request.word_count != 2) {
		client_usage(&complaining, "say DEVICE and OIDSET");
		return CLIENT_USAGE;
	}
	struct conf *conf = conf_new();
	int err = conf_read(conf, files_real(), a.conf_count, a.conf, &e);
	err = err ? err : inventory_conf_read(conf, files_real(), &inventory, &e);
	int status = CLIENT_USAGE;
	if (err) {
		client_usage(&complaining, "%s", e.text);
	} else {
		status = poll_oidset(&request, inventory);
		inventory_conf_release(inventory);
	}
	conf_free(conf);
	return status;
}
