/* Adaptors of the section that are inlets (inlet.h). */
#include "agent/adaptors.h"
#include "conf/tree.h"
#include "loop/loop.h"
#include "model/series.h"
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
			       int64_t every_ms, struct adaptor *adaptor)
{
	const struct conf_node *every = conf_node_member(node, "every");
	const struct conf_node *timeout = conf_node_member(node, "timeout");
	int err = 0;
	adaptor->every_ms = every_ms;
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
	err = err ? err : adaptors_read_times(r, node, ADAPTOR_EVERY_MS, adaptor);
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
		return conf_node_refuse(
			member, r->e,
			"is not the name of a syslog facility; such names are kern, "
			"mail and local0");
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

/* ---- Servers --------------------------------------------------------------------------------- */

int adaptors_take_url(struct adaptors *adaptors, struct slice text, struct slice *url,
		      struct errbuf *e)
{
	size_t scheme = slice_starts_with(text, SLICE("http://"))    ? 7
			: slice_starts_with(text, SLICE("https://")) ? 8
								     : 0;
	if (!scheme || text.len == scheme)
		return errbuf_set(e, ERR_INVALID, "'" SHOWN "' is no http://HOST or https://HOST",
				  SHOWN_OF(text));
	if (text.len > ADAPTOR_URL_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "the URL has %zu bytes, and at most %d may be",
				  text.len, ADAPTOR_URL_MAX_BYTES);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] <= ' ' || text.data[i] > '~' || text.data[i] == '#')
			return errbuf_set(e, ERR_INVALID,
					  "'" SHOWN "' has a character that no URL has; write %%XX "
					  "for it",
					  SHOWN_OF(text));
	*url = arena_copy(&adaptors->arena, text);
	if (!url->data)
		return adaptors_full(e);
	size_t host_len = strcspn(url->data + scheme, "/?");
	if (!host_len)
		return errbuf_set(e, ERR_INVALID, "'" SHOWN "' names no host", SHOWN_OF(text));
	if (memchr(url->data + scheme, '@', host_len))
		return errbuf_set(e, ERR_INVALID,
				  "the URL has a user's name in front of its host, which would be "
				  "shown to all who see the adaptor");
	return 0;
}

static int adaptors_read_url(struct adaptors_reader *r, const struct conf_node *node,
			     const struct conf_node *place, struct adaptor *adaptor)
{
	struct errbuf why = {""};
	struct slice text;
	int err = conf_node_text(place, 1, ADAPTOR_COMMAND_MAX_BYTES, &text, r->e);
	if (err)
		return err;
	if (adaptors_take_url(r->made, text, &adaptor->path, &why))
		return conf_node_refuse(place, r->e, "%s", why.text);
	err = adaptors_read_times(r, node, ADAPTOR_EVERY_MS, adaptor);
	return err ? err : adaptors_read_datatype(r, node, adaptor);
}

/* ---- Heartbeats ------------------------------------------------------------------------------ */

bool adaptors_take_component(struct slice *components, struct slice *component)
{
	if (!components->len)
		return false;
	const char *blank = memchr(components->data, ' ', components->len);
	size_t len = blank ? (size_t)(blank - components->data) : components->len;
	*component = (struct slice){components->data, len};
	len += blank != NULL;
	*components = (struct slice){components->data + len, components->len - len};
	return true;
}

int adaptors_add_component(struct adaptors *adaptors, struct slice component,
			   struct adaptor *adaptor, struct errbuf *e)
{
	struct slice left = adaptor->path, there, url = component;
	size_t count = 0;
	while (adaptors_take_component(&left, &there)) {
		if (slice_equal(there, component))
			return errbuf_set(e, ERR_INVALID, "'" SHOWN "' is there twice",
					  SHOWN_OF(component));
		count++;
	}
	if (count >= ADAPTOR_COMPONENTS_MAX)
		return errbuf_set(e, ERR_INVALID, "a heartbeat has at most %d components",
				  ADAPTOR_COMPONENTS_MAX);
	int err = slice_equal(component, SLICE(ADAPTOR_COMPONENT_AGENT))
			  ? 0
			  : adaptors_take_url(adaptors, component, &url, e);
	if (err)
		return err;
	const char *text = arena_printf(&adaptors->arena, "%.*s%s%.*s", (int)adaptor->path.len,
					adaptor->path.len ? adaptor->path.data : "",
					count ? " " : "", (int)url.len, url.data);
	if (!text)
		return adaptors_full(e);
	adaptor->path = slice_of(text);
	return 0;
}

static int adaptors_read_component(struct adaptors_reader *r, const struct conf_node *node,
				   struct adaptor *adaptor)
{
	struct errbuf why = {""};
	struct slice text;
	int err = conf_node_text(node, 1, ADAPTOR_COMMAND_MAX_BYTES, &text, r->e);
	if (err)
		return err;
	return adaptors_add_component(r->made, text, adaptor, &why)
		       ? conf_node_refuse(node, r->e, "%s", why.text)
		       : 0;
}

static int adaptors_read_heartbeat(struct adaptors_reader *r, const struct conf_node *node,
				   const struct conf_node *place, struct adaptor *adaptor)
{
	bool list = place->type == CONF_NODE_LIST;
	int err = list ? 0 : adaptors_read_component(r, place, adaptor);
	for (const struct conf_node *n = list ? place->first : NULL; n && !err; n = n->next)
		err = adaptors_read_component(r, n, adaptor);
	if (!err && !adaptor->path.len)
		return conf_node_refuse(place, r->e, "needs a component: a URL, or agent");
	err = err ? err : adaptors_read_times(r, node, ADAPTOR_EVERY_MS, adaptor);
	return err ? err : adaptors_read_datatype(r, node, adaptor);
}

/* ---- This machine ---------------------------------------------------------------------------- */

static int adaptors_read_system(struct adaptors_reader *r, const struct conf_node *node,
				const struct conf_node *place, struct adaptor *adaptor)
{
	int err = conf_node_text(place, 1, ADAPTOR_COMMAND_MAX_BYTES, &adaptor->path, r->e);
	if (err)
		return err;
	if (!tenant_valid(adaptor->path))
		return conf_node_refuse(place, r->e, "'" SHOWN "' cannot be the name of a tenant",
					SHOWN_OF(adaptor->path));
	err = adaptors_read_times(r, node, ADAPTOR_SYSTEM_EVERY_MS, adaptor);
	if (!err && conf_node_member(node, "datatype"))
		return adaptors_read_datatype(r, node, adaptor);
	adaptor->datatype = SLICE(ADAPTOR_SYSTEM_DATATYPE);
	return err;
}

/* ---- Journals -------------------------------------------------------------------------------- */

static int adaptors_read_journal(struct adaptors_reader *r, const struct conf_node *node,
				 const struct conf_node *place, struct adaptor *adaptor)
{
	static const char *const words[] = {"begin", "end", NULL};
	const struct conf_node *from = conf_node_member(node, "from");
	struct errbuf why = {""};
	size_t index = 0;
	int err = conf_node_text(place, 1, STREAM_NAME_MAX_BYTES, &adaptor->path, r->e);
	if (!err && from)
		err = conf_node_choice(from, "a place where reading begins", words, &index, r->e);
	if (err)
		return err;
	adaptor->rule.from_end = index != 0;
	if (!slice_equal(adaptor->path, SLICE(ADAPTOR_JOURNAL_LOCAL)) &&
	    adaptors_take_path(r->made, adaptor->path, &adaptor->path, &why))
		return conf_node_refuse(place, r->e,
					"is neither " ADAPTOR_JOURNAL_LOCAL " nor a path: %s",
					why.text);
	return adaptors_read_datatype(r, node, adaptor);
}

int adaptors_read_inlet(struct adaptors_reader *r, const struct conf_node *node,
			const struct conf_node *place, struct adaptor *adaptor)
{
	switch (adaptor->kind) {
	case ADAPTOR_EXEC:
		return adaptors_read_command(r, node, place, adaptor);
	case ADAPTOR_HTTP:
		return adaptors_read_url(r, node, place, adaptor);
	case ADAPTOR_SYSTEM:
		return adaptors_read_system(r, node, place, adaptor);
	case ADAPTOR_HEARTBEAT:
		return adaptors_read_heartbeat(r, node, place, adaptor);
	case ADAPTOR_JOURNAL:
		return adaptors_read_journal(r, node, place, adaptor);
	default:
		return adaptors_read_address(r, node, place, adaptor);
	}
}
