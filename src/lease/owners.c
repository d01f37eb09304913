#include "lease/owners.h"

#include "base/buf.h"
#include "base/log.h"

enum { LIST_MAX_BYTES = 32 << 10, FILE_MAX_BYTES = 1 << 20, TREE_MAX_BYTES = 16 << 20 };

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

/* ---- Configuration --------------------------------------------------------------------------- */

static void owners_warn_of_nobodys(uint32_t partitions, const struct partitions *all,
				   const char *path)
{
	struct partitions nobodys = {0};
	struct buf list;
	for (uint32_t p = 0; p < partitions; p++) {
		if (!partitions_has(all, p))
			partitions_add(&nobodys, p);
	}
	if (!nobodys.count)
		return;
	buf_init(&list, LIST_MAX_BYTES);
	partitions_print(&nobodys, &list);
	log_warn("%s: no host has the partitions %.*s: their roll-ups are not made", path,
		 (int)list.len, list.data);
	buf_release(&list);
}

/* The sentence names the file's own line where there is one. */
static int owners_read_file(const struct conf *conf, struct files *files, struct slice host,
			    struct partitions *own, struct errbuf *e)
{
	const char *path = conf->rollup_own_by_host;
	uint32_t partitions = (uint32_t)conf->partitions;
	struct partitions all;
	const struct conf_node *root;
	struct arena arena;
	arena_init(&arena, TREE_MAX_BYTES);
	int err = conf_tree_read(files, path, FILE_MAX_BYTES, &arena, &root, e);
	if (err && err != ERR_INVALID)
		conf_refuse(conf, CONF_ID_rollup_own_by_host, e);
	err = err ? err : owners_read(root, partitions, host, own, &all, e);
	if (!err)
		owners_warn_of_nobodys(partitions, &all, path);
	arena_release(&arena);
	return err;
}

/* `any` without a file: all, shared with others. */
int owners_configured(const struct conf *conf, struct files *files, struct slice host,
		      struct partitions *own, bool *share, struct errbuf *e)
{
	struct slice text = slice_of(conf->rollup_own);
	uint32_t partitions = (uint32_t)conf->partitions;
	bool any = slice_equal(text, SLICE("any"));
	*share = any && !conf->rollup_own_by_host[0];
	if (any && !*share)
		return owners_read_file(conf, files, host, own, e);
	if (!any && partitions_parse(text, partitions, own, e))
		return conf_refuse(conf, CONF_ID_rollup_own, e);
	for (uint32_t p = 0; *share && p < partitions; p++)
		partitions_add(own, p);
	return 0;
}
