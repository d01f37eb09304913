/* `oids`: what a name is in SMI. */
#include "base/buf.h"
#include "inventory/private.h"
#include "model/series.h"
#include "wire/oid.h"

enum { OID_TEXT_MAX_BYTES = 2048 };

static const char *const keys[] = {"oid", "type", "scalar", "aggregate", "alias", NULL};

/* As MIBs call them; the enumerations of those are integers. */
static const char *const type_words[] = {
	"Counter32",  "Counter64",     "Gauge32",           "Unsigned32",
	"Integer32",  "INTEGER",       "IANAifType",        "TimeTicks",
	"TimeStamp",  "DisplayString", "OCTET STRING",      "PhysAddress",
	"MacAddress", "IpAddress",     "OBJECT IDENTIFIER", NULL,
};
static const enum oid_type types[] = {
	OID_COUNTER32, OID_COUNTER64,    OID_GAUGE32,      OID_GAUGE32,    OID_INTEGER,
	OID_INTEGER,   OID_INTEGER,      OID_TIMETICKS,    OID_TIMETICKS,  OID_TEXT,
	OID_OCTETS,    OID_PHYS_ADDRESS, OID_PHYS_ADDRESS, OID_IP_ADDRESS, OID_OBJECT_ID,
};

_Static_assert(ARRAY_LEN(type_words) == ARRAY_LEN(types) + 1, "a type for each word");

/* One text for each OID, without the dot in front that some write. */
static int print_oid(struct conf_reader *r, struct slice ber, struct slice *text)
{
	struct buf out;
	buf_init(&out, OID_TEXT_MAX_BYTES);
	oid_print(ber, &out);
	bool whole = !out.failed;
	if (whole)
		*text = arena_copy(&r->made->arena, (struct slice){out.data + 1, out.len - 1});
	buf_release(&out);
	return whole && text->data ? 0 : ERR_LIMIT;
}

static int read_oid(struct conf_reader *r, const struct conf_node *node, struct oid_def *def)
{
	uint8_t memory[OID_MAX_BYTES];
	struct slice ber;
	int err = conf_node_text(node, 1, OID_TEXT_MAX_BYTES, &def->oid, r->e);
	if (err)
		return err;
	if (oid_parse(def->oid, memory, &ber, NULL))
		return conf_node_refuse(node, r->e,
					"'" SHOWN "' is not an OID such as 1.3.6.1.2.1.2.2.1.10",
					SHOWN_OF(def->oid));
	if (print_oid(r, ber, &def->oid))
		return conf_reader_full(r);
	if (def->scalar && ber.data[ber.len - 1] == 0)
		return conf_node_refuse(node, r->e,
					"a scalar is named without the .0 of its instance");
	def->ber = arena_copy(&r->made->arena, ber);
	return def->ber.data ? 0 : conf_reader_full(r);
}

static int read_type(struct conf_reader *r, const struct conf_node *node, struct oid_def *def)
{
	size_t index;
	int err = conf_node_choice(node, "a type of SMI", type_words, &index, r->e);
	if (!err)
		def->type = types[index];
	return err;
}

static int read_alias(struct conf_reader *r, const struct conf_node *node, struct oid_def *def)
{
	return conf_node_text(node, 1, INVENTORY_NAME_MAX_BYTES, &def->endpoint_alias, r->e);
}

static int oids_check(struct conf_reader *r, const struct conf_node *node,
		      const struct oid_def *def)
{
	struct errbuf why;
	bool counts = def->type == OID_COUNTER32 || def->type == OID_COUNTER64;
	if (metric_check(def->name, &why))
		return conf_node_refuse(node, r->e, "%s", why.text);
	if (def->aggregate && !counts)
		return conf_node_refuse(node, r->e,
					"only a Counter32 or Counter64 can be aggregated, not a %s",
					oid_type_text(def->type));
	return 0;
}

static int oids_read_one(struct conf_reader *r, const struct conf_node *node, bool shipped)
{
	struct oid_def *def;
	int err = def_add(r, &r->oids, node, shipped, sizeof(*def), (void **)&def);
	err = err ? err : conf_node_check_map(node, keys, r->e);
	if (err)
		return err;
	const struct conf_node *oid = conf_node_member(node, "oid");
	const struct conf_node *type = conf_node_member(node, "type");
	const struct conf_node *scalar = conf_node_member(node, "scalar");
	const struct conf_node *aggregate = conf_node_member(node, "aggregate");
	const struct conf_node *alias = conf_node_member(node, "alias");
	if (!oid || !type)
		return conf_node_refuse(node, r->e, "needs an oid and a type");
	err = scalar ? conf_node_bool(scalar, &def->scalar, r->e) : 0;
	err = err || !aggregate ? err : conf_node_bool(aggregate, &def->aggregate, r->e);
	err = err || !alias ? err : read_alias(r, alias, def);
	err = err ? err : read_type(r, type, def);
	err = err ? err : read_oid(r, oid, def);
	return err ? err : oids_check(r, node, def);
}

int oids_read(struct conf_reader *r, const struct inventory_source *source)
{
	if (!source->oids || conf_node_is_null(source->oids))
		return 0;
	if (source->oids->type != CONF_NODE_MAP)
		return conf_node_refuse(source->oids, r->e,
					"takes a mapping: a name, and what it is");
	for (const struct conf_node *n = source->oids->first; n; n = n->next) {
		int err = oids_read_one(r, n, source->shipped);
		if (err)
			return err;
	}
	return 0;
}
