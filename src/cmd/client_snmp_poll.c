/* `granary snmp poll-once`: what the poller would store of one OIDSet of one device, a line a
 * value. The OIDSets are those of the configuration, which is given as for `granary serve`. */
#include <stdlib.h>
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

/* ---- Printing -------------------------------------------------------------------------------- */

struct client_snmp_poll_printing {
	struct text_table table;
	const struct inventory_conf *conf;
	struct buf text;
};

/* The parts one behind the other, as row keys have them: a `:` or `\` inside has a `\` before. */
static struct slice client_snmp_poll_path_text(struct client_snmp_poll_printing *printing,
					       const struct poll_row *row)
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

static struct slice client_snmp_poll_value_text(struct client_snmp_poll_printing *printing,
						struct value value)
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

static void client_snmp_poll_print_line(struct client_snmp_poll_printing *printing,
					const struct poll_row *row, struct slice oid,
					const struct value *value, const struct poll_text *words,
					int64_t ts_ms)
{
	char time[TIME_PRINT_MAX_BYTES];
	struct text_table *table = &printing->table;
	const struct oid_def *def = inventory_conf_oid(printing->conf, oid);
	text_table_add(table, client_snmp_poll_path_text(printing, row));
	text_table_add(table, oid);
	text_table_add(table, def ? slice_of(oid_type_text(def->type)) : SLICE(""));
	text_table_add(table, words ? words->text : client_snmp_poll_value_text(printing, *value));
	text_table_add(table, (struct slice){time, time_print(time, ts_ms)});
}

static void client_snmp_poll_print_row(struct client_snmp_poll_printing *printing,
				       const struct poll *poll, const struct poll_names *names,
				       const struct poll_values *values, size_t row)
{
	for (size_t c = 0; c < poll->column_count; c++) {
		const struct value *value = &values->values[row * poll->column_count + c];
		const struct poll_text *words = NULL;
		for (size_t t = 0; t < values->text_count && !words; t++)
			if (values->texts[t].row == row && values->texts[t].column == c)
				words = &values->texts[t];
		if (words || value->type != VALUE_NONE)
			client_snmp_poll_print_line(printing, &names->rows[row], names->columns[c],
						    value, words, values->row_ts_ms[row]);
	}
}

static void client_snmp_poll_print_message(void *owner, struct slice message)
{
	struct client_snmp_poll_printing *printing = owner;
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
		client_snmp_poll_print_row(printing, &poll, &names, &values, row);
	arena_release(&arena);
}

/* ---- The command ----------------------------------------------------------------------------- */

static struct credentials client_snmp_poll_credentials_of(const struct snmp_credentials *c)
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

/* The host, and the port where it is a number; ERR_INVALID after a complaint. */
static int client_snmp_poll_read_device(const struct snmp_request *request,
					char host[SNMP_HOST_MAX_BYTES], uint16_t *port)
{
	char text[SNMP_PORT_MAX_BYTES], *end;
	snmp_request_split(request->device, host, text);
	unsigned long number = strtoul(text, &end, 10);
	*port = (uint16_t)number;
	if (text[0] >= '0' && text[0] <= '9' && !*end && number && number <= UINT16_MAX && host[0])
		return 0;
	return command_usage(&request->line, "%.100s is no HOST or HOST:PORT", request->device);
}

static int client_snmp_poll_and_print(const struct snmp_request *request,
				      const struct inventory_conf *conf,
				      const struct oidset *oidset)
{
	static const char *const titles[] = {"path", "oid", "type", "value", "time"};
	struct credentials credentials = client_snmp_poll_credentials_of(&request->credentials);
	struct client_snmp_poll_printing printing = {.conf = conf};
	char host[SNMP_HOST_MAX_BYTES];
	struct errbuf e = {""};
	struct poller_once once = {
		.clock = clock_real(),
		.credentials = &credentials,
		.oidset = oidset,
		.tries = request->options.retries + 1,
		.timeout_max_ms = request->options.timeout_max_ms,
		.message = client_snmp_poll_print_message,
		.owner = &printing,
	};
	if (client_snmp_poll_read_device(request, host, &once.port))
		return EXIT_WRONG_USE;
	once.host = slice_of(host);
	buf_init(&printing.text, POLL_PARTS_MAX * (2 * POLL_PART_MAX_BYTES + 1));
	text_table_init(&printing.table, ARRAY_LEN(titles), titles);
	int err = poller_once(&once, &e);
	if (err)
		command_complain(&request->line, "%s: %s", request->device, e.text);
	else
		text_table_print(&printing.table,
				 isatty(STDOUT_FILENO) ? OUTPUT_TABLE : OUTPUT_CSV);
	text_table_release(&printing.table);
	buf_release(&printing.text);
	return err || fflush(stdout) ? EXIT_FAILED : EXIT_OK;
}

static int client_snmp_poll_oidset(const struct snmp_request *request,
				   const struct inventory_conf *conf)
{
	const struct oidset *oidset = inventory_conf_oidset(conf, slice_of(request->oidset));
	if (oidset)
		return client_snmp_poll_and_print(request, conf, oidset);
	command_usage(&request->line, "there is no OIDSet called %.100s", request->oidset);
	return EXIT_WRONG_USE;
}

int client_snmp_poll_once(const struct command_args *args)
{
	struct snmp_request request = *CONTAINER_OF(args, const struct snmp_request, line);
	struct inventory_conf *inventory;
	struct errbuf e = {""};
	snmp_request_finish(&request);
	struct conf *conf = conf_new();
	int err = conf_read(conf, files_real(), args->conf_argc, args->conf_argv, &e);
	err = err ? err : inventory_conf_read(conf, files_real(), &inventory, &e);
	int status = EXIT_WRONG_USE;
	if (err) {
		command_usage(args, "%s", e.text);
	} else {
		status = client_snmp_poll_oidset(&request, inventory);
		inventory_conf_release(inventory);
	}
	conf_free(conf);
	return status;
}
