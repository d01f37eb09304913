#include "lease/owners.h"

#include "base/buf.h"

enum { LIST_MAX_BYTES = 32 << 10 };

/* The host that has the partition, of those that were read; NULL: none has. */
static const struct conf_node *owners_owner_of(const struct partitions *sets,
					       const struct conf_node *root, uint32_t partition)
{
	size_t i = 0;
	for (const struct conf_node *host = root->first; host; host = host->next, i++) {
		if (partitions_has(&sets[i], partition))
			return host;
	}
	return NULL;
}

/* A scalar, or a sequence of such, as one text. */
static int owners_join(const struct conf_node *node, struct buf *out, struct errbuf *e)
{
	if (node->type == CONF_NODE_SCALAR) {
		buf_printf(out, "%s%.*s", out->len ? "," : "", (int)node->text.len,
			   node->text.data);
		return 0;
	}
	int err = node->type == CONF_NODE_LIST
			  ? 0
			  : conf_node_refuse(node, e, "is no list of partitions such as 0,5-8,12");
	for (const struct conf_node *n = node->first; n && !err; n = n->next) {
		if (n->type == CONF_NODE_SCALAR)
			err = owners_join(n, out, e);
		else
			err = conf_node_refuse(n, e, "is no range of partitions such as 5-8");
	}
	return err;
}

static int owners_read_list(const struct conf_node *node, uint32_t partitions,
			    struct partitions *set, struct errbuf *e)
{
	struct errbuf why = {""};
	struct buf text;
	buf_init(&text, LIST_MAX_BYTES);
	int err = owners_join(node, &text, e);
	if (!err && text.failed)
		err = conf_node_refuse(node, e, "is too long");
	if (!err &&
	    partitions_parse(text.len ? buf_slice(&text) : SLICE(""), partitions, set, &why))
		err = conf_node_refuse(node, e, "%s", why.text);
	buf_release(&text);
	return err;
}

static int owners_add_host(const struct conf_node *host, const struct conf_node *root,
			   struct partitions *sets, struct partitions *all, uint32_t partitions,
			   struct errbuf *e)
{
	char where[300];
	struct partitions set;
	int err = owners_read_list(host, partitions, &set, e);
	for (uint32_t p = 0; p < partitions && !err; p++) {
		if (!partitions_has(&set, p))
			continue;
		const struct conf_node *other = owners_owner_of(sets, root, p);
		if (other)
			return conf_node_refuse(host, e, "%u belongs to " SHOWN " already, %s", p,
						SHOWN_OF(other->key),
						conf_node_where(other, where, sizeof(where)));
		partitions_add(all, p);
	}
	if (!err)
		sets[host->index] = set;
	return err;
}

int owners_read(const struct conf_node *root, uint32_t partitions, struct slice host,
		struct partitions *own, struct partitions *all, struct errbuf *e)
{
	*own = *all = (struct partitions){0};
	if (root->type != CONF_NODE_MAP)
		return conf_node_refuse(root, e, "expected host names and lists of partitions");
	struct partitions *sets = mem_zalloc((root->count + 1) * sizeof(*sets));
	int err = 0;
	for (const struct conf_node *node = root->first; node && !err; node = node->next) {
		err = owners_add_host(node, root, sets, all, partitions, e);
		if (!err && slice_equal(node->key, host))
			*own = sets[node->index];
	}
	mem_free(sets);
	return err;
}
