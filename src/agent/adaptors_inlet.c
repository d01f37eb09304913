/* Adaptors of the section that are inlets (inlet.h). */
#include "agent/adaptors.h"
#include "conf/tree.h"
#include "loop/loop.h"
#include "wire/number.h"
#include "wire/syslog.h"

/* ---- Commands -------------------------------------------------------------------------------- */

/* What a run prints is lines, or one record. */
static int adaptors_read_exec_records(struct adaptors_reader *r, const struct conf_node *node,
				      struct adaptor *adaptor)
{
	static const char *const words[] = {"lines", "escaped", NULL};
	const struct conf_node *member = conf_node_member(node, "records");
	size_t index = 0;
	int err = member ? conf_node_choice(member, "a kind of records", words, &index, r->e) : 0;
	adaptor->rule.records.kind = index ? RECORDS_ESCAPED : RECORDS_LINES;
	return err;
}

static int adaptors_read_times(struct adaptors_reader *r, const struct conf_node *node,
			       struct adaptor *adaptor)
{
	const struct conf_node *every = conf_node_member(node, "every");
	const struct conf_node *timeout = conf_node_member(node, "timeout");
	int err = 0;
	adaptor->every_ms = ADAPTOR_EVERY_MS;
	adaptor->timeout_ms = ADAPTOR_TIMEOUT_MS;
	if (every)
		err = conf_node_duration(every, ADAPTOR_EVERY_MIN_MS, ADAPTOR_EVERY_MAX_MS,
					 &adaptor->every_ms, r->e);
	if (!err && timeout)
		err = conf_node_duration(timeout, ADAPTOR_TIMEOUT_MIN_MS, ADAPTOR_EVERY_MAX_MS,
					 &adaptor->timeout_ms, r->e);
	return err;
}

static int adaptors_read_command(struct adaptors_reader *r, const struct conf_node *node,
				 const struct conf_node *place, struct adaptor *adaptor)
{
	int err = conf_node_text(place, 1, ADAPTOR_COMMAND_MAX_BYTES, &adaptor->path, r->e);
	err = err ? err : adaptors_read_exec_records(r, node, adaptor);
	err = err ? err : adaptors_read_times(r, node, adaptor);
	return err ? err : adaptors_read_datatype(r, node, adaptor);
}

/* ---- The network ----------------------------------------------------------------------------- */

int adaptors_take_address(struct adaptors *adaptors, struct slice text, struct slice *place,
			  struct errbuf *e)
{
	struct loop_address address = {.bytes = {127, 0, 0, 1}};
	char canonical[LOOP_ADDRESS_TEXT_BYTES];
	uint64_t port;
	int err = 0;
	if (number_parse_u64(text.data, text.data + text.len, &port) == 0 && port <= UINT16_MAX)
		address.port = (uint16_t)port;
	else
		err = loop_address_parse(text, &address, e);
	if (err)
		return err;
	if (!address.port)
		return errbuf_set(e, ERR_INVALID, "'" SHOWN "' has no port", SHOWN_OF(text));
	if (!loop_address_is_loopback(&address))
		return errbuf_set(
			e, ERR_INVALID,
			"'" SHOWN "' is no loopback address, as 127.0.0.1 and [::1] are; "
			"at others nothing is taken, since senders do not say who they are",
			SHOWN_OF(text));
	*place = arena_copy(&adaptors->arena, slice_of(loop_address_text(&address, canonical)));
	return place->data ? 0 : adaptors_full(e);
}

static int adaptors_read_transport(struct adaptors_reader *r, const struct conf_node *node,
				   struct adaptor *adaptor)
{
	static const char *const words[] = {"both", "udp", "tcp", NULL};
	const struct conf_node *member = conf_node_member(node, "transport");
	size_t index = 0;
	int err = member ? conf_node_choice(member, "a transport", words, &index, r->e) : 0;
	adaptor->datagrams = index != 2;
	adaptor->connections = index != 1;
	return err;
}

static int adaptors_read_facility(struct adaptors_reader *r, const struct conf_node *member,
				  struct adaptor *adaptor, struct slice *datatypes)
{
	struct adaptor checked = *adaptor;
	struct errbuf why = {""};
	unsigned facility;
	int err = conf_node_text(member, 1, STREAM_DATATYPE_MAX_BYTES, &checked.datatype, r->e);
	if (err)
		return err;
	if (!syslog_facility_find(member->key, &facility))
		return conf_node_refuse(member, r->e,
					"is no facility of syslog, such as kern, mail or local0");
	if (adaptors_check_names(&checked, &why))
		return conf_node_refuse(member, r->e, "%s", why.text);
	datatypes[facility] = checked.datatype;
	return 0;
}

static int adaptors_read_datatypes(struct adaptors_reader *r, const struct conf_node *node,
				   struct adaptor *adaptor)
{
	const struct conf_node *map = conf_node_member(node, "datatypes");
	int err = 0;
	if (!map)
		return 0;
	if (map->type != CONF_NODE_MAP)
		return conf_node_refuse(map, r->e, "takes a mapping of datatypes by facility");
	struct slice *datatypes =
		arena_zalloc(&r->made->arena, SYSLOG_FACILITIES * sizeof(*datatypes));
	if (!datatypes)
		return adaptors_full(r->e);
	for (const struct conf_node *n = map->first; n && !err; n = n->next)
		err = adaptors_read_facility(r, n, adaptor, datatypes);
	adaptor->datatypes = datatypes;
	return err;
}

static int adaptors_read_address(struct adaptors_reader *r, const struct conf_node *node,
				 const struct conf_node *place, struct adaptor *adaptor)
{
	struct errbuf why = {""};
	struct slice text;
	int err = conf_node_text(place, 1, ADAPTOR_COMMAND_MAX_BYTES, &text, r->e);
	if (err)
		return err;
	if (adaptors_take_address(r->made, text, &adaptor->path, &why))
		return conf_node_refuse(place, r->e, "%s", why.text);
	adaptor->datagrams = adaptor->kind == ADAPTOR_UDP;
	adaptor->connections = adaptor->kind == ADAPTOR_TCP;
	if (adaptor->kind == ADAPTOR_SYSLOG)
		err = adaptors_read_transport(r, node, adaptor);
	err = err ? err : adaptors_read_datatype(r, node, adaptor);
	return err ? err : adaptors_read_datatypes(r, node, adaptor);
}

int adaptors_read_inlet(struct adaptors_reader *r, const struct conf_node *node,
			const struct conf_node *place, struct adaptor *adaptor)
{
	return adaptor->kind == ADAPTOR_EXEC ? adaptors_read_command(r, node, place, adaptor)
					     : adaptors_read_address(r, node, place, adaptor);
}
