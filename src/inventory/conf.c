/* The configuration's part of the inventory, put together.
 *
 * Sources are read one after the other, the shipped file first: of all of them the OIDs, then the
 * OIDSets, which name OIDs, then the queues, which name OIDSets. So an OID may stand in another
 * file than the OIDSet that names it, and one that takes the place of a shipped one does so in the
 * shipped OIDSets too. */
#include <stdlib.h>

#include "base/hash.h"
#include "conf/conf.h"
#include "inventory/private.h"

/* ---- Lists of definitions ------------------------------------------------------------------- */

int conf_reader_full(struct conf_reader *r)
{
	return errbuf_set(r->e, ERR_LIMIT, "the configuration is too large");
}

static struct slice name_of(const void *def)
{
	struct slice name;
	memcpy(&name, def, sizeof(name));
	return name;
}

static struct def *find(const struct def_list *list, struct slice name)
{
	for (size_t i = 0; i < list->count; i++) {
		if (slice_equal(name_of(list->list[i].def), name))
			return &list->list[i];
	}
	return NULL;
}

void *def_find(const struct def_list *list, struct slice name)
{
	const struct def *def = find(list, name);
	return def ? def->def : NULL;
}

static bool name_good(struct slice name)
{
	return name.len && name.len <= INVENTORY_NAME_MAX_BYTES && name.data[0] != ' ' &&
	       name.data[name.len - 1] != ' ';
}

static int check_place(struct conf_reader *r, const struct def *before,
		       const struct conf_node *node)
{
	char where[300];
	if (!before || before->shipped)
		return 0;
	return conf_node_refuse(node, r->e, "is given twice, first in %s",
				conf_node_where(before->node, where, sizeof(where)));
}

int def_add(struct conf_reader *r, struct def_list *list, const struct conf_node *node,
	    bool shipped, size_t bytes, void **def)
{
	ASSERT(bytes >= sizeof(struct slice) && list->count <= list->max);
	struct def *place = find(list, node->key);
	if (!name_good(node->key))
		return conf_node_refuse(node, r->e,
					"a name has 1 to %d bytes, and no blank at its ends",
					INVENTORY_NAME_MAX_BYTES);
	int err = check_place(r, place, node);
	if (err)
		return err;
	if (!place && list->count == list->max)
		return conf_node_refuse(node, r->e, "is one more than %zu", list->max);
	*def = arena_zalloc(&r->made->arena, bytes);
	if (!*def)
		return conf_reader_full(r);
	memcpy(*def, &node->key, sizeof(node->key));
	if (!place) {
		list->list = mem_resize_array(list->list, list->count + 1, sizeof(*list->list));
		place = &list->list[list->count++];
	}
	*place = (struct def){*def, node, shipped};
	return 0;
}

static int inventory_conf_by_name(const void *left, const void *right)
{
	return slice_compare(name_of(((const struct def *)left)->def),
			     name_of(((const struct def *)right)->def));
}

int def_finish(struct conf_reader *r, struct def_list *list, const void *const **out, size_t *count)
{
	const void **defs = arena_alloc(&r->made->arena, (list->count + 1) * sizeof(*defs));
	if (!defs)
		return conf_reader_full(r);
	if (list->count)
		qsort(list->list, list->count, sizeof(*list->list), inventory_conf_by_name);
	for (size_t i = 0; i < list->count; i++)
		defs[i] = list->list[i].def;
	*out = defs;
	*count = list->count;
	return 0;
}

/* ---- Sources -------------------------------------------------------------------------------- */

_Static_assert(SOURCES_MAX >= CONF_LIST_MAX + 2, "files, what is shipped and the sections");

static int add_shipped(struct conf_reader *r)
{
	const struct conf_node *root;
	struct slice text = {inventory_shipped, inventory_shipped_bytes};
	int err = conf_tree_parse("shipped oidsets.yml", text, &r->made->arena, &root, r->e);
	if (err)
		return err;
	r->sources[r->source_count++] = (struct inventory_source){
		conf_node_member(root, "oids"), conf_node_member(root, "oidsets"), true};
	return 0;
}

/* Adds the content of a file to the hash. */
static void hash_tree(uint64_t *hash, const struct conf_node *root)
{
	struct buf text;
	buf_init(&text, INVENTORY_CONF_MAX_BYTES);
	conf_node_dump(root, 0, &text);
	*hash = hash64(text.data, text.len, *hash);
	buf_release(&text);
}

static int add_file(struct conf_reader *r, struct files *files, const char *path)
{
	static const char *const keys[] = {"oids", "oidsets", NULL};
	const struct conf_node *root;
	int err = conf_tree_read(files, path, OIDSET_FILE_MAX_BYTES, &r->made->arena, &root, r->e);
	err = err ? err : conf_node_check_map(root, keys, r->e);
	if (err)
		return err;
	hash_tree(&r->made->oidset_files_hash, root);
	r->sources[r->source_count++] = (struct inventory_source){
		conf_node_member(root, "oids"), conf_node_member(root, "oidsets"), false};
	return 0;
}

/* Names of what is made point into trees, and those of sections live only as long as `conf`. */
static int copy_sections(struct conf_reader *r, const struct conf *conf)
{
	for (int i = 0; i < CONF_SECTIONS; i++) {
		if (!conf->sections[i])
			continue;
		r->sections[i] = conf_node_copy(conf->sections[i], &r->made->arena);
		if (!r->sections[i])
			return conf_reader_full(r);
	}
	return 0;
}

static int add_sources(struct conf_reader *r, const struct conf *conf, struct files *files)
{
	char where[512];
	int err = copy_sections(r, conf);
	err = err ? err : add_shipped(r);
	for (size_t i = 0; i < conf->snmp_oidset_files.count && !err; i++) {
		err = add_file(r, files, conf->snmp_oidset_files.items[i]);
		/* Of a file that cannot be read: who asked for it. */
		if (err && err != ERR_INVALID)
			errbuf_prefix(
				r->e, err, "%s",
				conf_where(conf, CONF_ID_snmp_oidset_files, where, sizeof(where)));
	}
	r->sources[r->source_count++] = (struct inventory_source){
		r->sections[CONF_SECTION_OIDS], r->sections[CONF_SECTION_OIDSETS], false};
	return err;
}

static int read_sets(struct conf_reader *r)
{
	int err = 0;
	for (size_t i = 0; i < r->source_count && !err; i++)
		err = oids_read(r, &r->sources[i]);
	for (size_t i = 0; i < r->source_count && !err; i++)
		err = oidsets_read(r, &r->sources[i]);
	return err ? err : oidsets_link(r);
}

/* ---- Secrets -------------------------------------------------------------------------------- */

static int read_secrets(struct conf_reader *r, const struct conf *conf, struct files *files)
{
	const char *path = conf->snmp_secrets_file;
	const struct conf_node *root;
	char where[512];
	if (!*path)
		return 0;
	int err = file_check_secret(files, path, r->e);
	bool readable = !err;
	err = err ? err
		  : conf_tree_read(files, path, SECRETS_MAX_BYTES, &r->made->arena, &root, r->e);
	if (err && !(readable && err == ERR_INVALID))
		return errbuf_prefix(
			r->e, err, "%s",
			conf_where(conf, CONF_ID_snmp_secrets_file, where, sizeof(where)));
	if (err)
		return err;
	hash_tree(&r->made->secrets_hash, root);
	return credentials_read(r, root, false);
}

/* What most devices answer to before anybody has thought about it, and is no secret. */
static int add_public(struct conf_reader *r)
{
	const struct conf_node *root;
	int err = conf_tree_parse("shipped credentials",
				  SLICE("public: {version: 2c, community: public}"),
				  &r->made->arena, &root, r->e);
	return err ? err : credentials_read(r, root, true);
}

/* ---- The whole ------------------------------------------------------------------------------ */

static int finish_queues(struct conf_reader *r)
{
	struct inventory_conf *made = r->made;
	int err =
		def_finish(r, &r->queues, (const void *const **)&made->queues, &made->queue_count);
	for (size_t i = 0; i < made->queue_count && !err; i++)
		((struct queue_def *)made->queues[i])->place = i;
	return err;
}

/* Of what the sources hold. */
static int read_all(struct conf_reader *r, const struct conf *conf, struct files *files)
{
	struct inventory_conf *made = r->made;
	int err = read_sets(r);
	err = err ? err : queues_read(r, r->sections[CONF_SECTION_PERSIST_QUEUE]);
	err = err ? err : add_public(r);
	err = err ? err : read_secrets(r, conf, files);
	err = err ? err
		  : def_finish(r, &r->oids, (const void *const **)&made->oids, &made->oid_count);
	err = err ? err
		  : def_finish(r, &r->oidsets, (const void *const **)&made->oidsets,
			       &made->oidset_count);
	err = err ? err : finish_queues(r);
	return err ? err
		   : def_finish(r, &r->credentials, (const void *const **)&made->credentials,
				&made->credentials_count);
}

static struct conf_reader reader_begin(struct errbuf *e)
{
	struct conf_reader r = {.e = e,
				.oids.max = OIDS_MAX,
				.oidsets.max = OIDSETS_MAX,
				.queues.max = QUEUES_MAX,
				.credentials.max = CREDENTIALS_MAX};
	r.made = mem_zalloc(sizeof(*r.made));
	r.made->references = 1;
	arena_init(&r.made->arena, INVENTORY_CONF_MAX_BYTES);
	return r;
}

static int reader_end(struct conf_reader *r, int err, struct inventory_conf **made)
{
	ASSERT(r->made->references == 1 && r->source_count <= SOURCES_MAX);
	mem_free(r->oids.list);
	mem_free(r->oidsets.list);
	mem_free(r->queues.list);
	mem_free(r->credentials.list);
	*made = err ? NULL : r->made;
	if (err)
		inventory_conf_release(r->made);
	return err;
}

int inventory_conf_read(const struct conf *conf, struct files *files, struct inventory_conf **made,
			struct errbuf *e)
{
	struct conf_reader r = reader_begin(e);
	int err = add_sources(&r, conf, files);
	return reader_end(&r, err ? err : read_all(&r, conf, files), made);
}

int inventory_conf_of(const struct conf_node *oids, const struct conf_node *oidsets,
		      const struct conf *conf, struct files *files, struct inventory_conf **made,
		      struct errbuf *e)
{
	struct conf_reader r = reader_begin(e);
	const struct inventory_source source = {conf_node_copy(oids, &r.made->arena),
						conf_node_copy(oidsets, &r.made->arena), false};
	r.sources[r.source_count++] = source;
	int err = source.oids && source.oidsets ? 0 : conf_reader_full(&r);
	return reader_end(&r, err ? err : read_all(&r, conf, files), made);
}

struct inventory_conf *inventory_conf_join(struct inventory_conf *sets,
					   struct inventory_conf *secrets)
{
	struct inventory_conf *made = mem_zalloc(sizeof(*made));
	*made = (struct inventory_conf){.oids = sets->oids,
					.oid_count = sets->oid_count,
					.oidsets = sets->oidsets,
					.oidset_count = sets->oidset_count,
					.queues = sets->queues,
					.queue_count = sets->queue_count,
					.oidset_files_hash = sets->oidset_files_hash,
					.credentials = secrets->credentials,
					.credentials_count = secrets->credentials_count,
					.secrets_hash = secrets->secrets_hash,
					.references = 1,
					.sets = sets,
					.secrets = secrets};
	inventory_conf_take(sets);
	inventory_conf_take(secrets);
	return made;
}

void inventory_conf_take(struct inventory_conf *conf)
{
	ASSERT(conf->references > 0);
	conf->references++;
}

void inventory_conf_release(struct inventory_conf *conf)
{
	ASSERT(!conf || conf->references > 0);
	if (!conf || --conf->references > 0)
		return;
	inventory_conf_release(conf->sets);
	inventory_conf_release(conf->secrets);
	arena_release(&conf->arena);
	mem_free(conf);
}

/* In a list ascending by name, whose members begin with it. */
static const void *search(const void *const *list, size_t count, struct slice name)
{
	size_t low = 0, high = count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = slice_compare(name_of(list[middle]), name);
		if (order == 0)
			return list[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct oid_def *inventory_conf_oid(const struct inventory_conf *conf, struct slice name)
{
	return search((const void *const *)conf->oids, conf->oid_count, name);
}

const struct oidset *inventory_conf_oidset(const struct inventory_conf *conf, struct slice name)
{
	return search((const void *const *)conf->oidsets, conf->oidset_count, name);
}

const struct oidset *inventory_conf_oidset_stored(const struct inventory_conf *conf,
						  struct slice set_name)
{
	for (size_t i = 0; i < conf->oidset_count; i++) {
		if (slice_equal(conf->oidsets[i]->set_name, set_name))
			return conf->oidsets[i];
	}
	return NULL;
}

const struct oid_def *oidset_oid(const struct oidset *oidset, struct slice name)
{
	for (size_t i = 0; i < oidset->oid_count; i++) {
		if (slice_equal(oidset->oids[i]->name, name))
			return oidset->oids[i];
	}
	return NULL;
}

const struct queue_def *inventory_conf_queue(const struct inventory_conf *conf, struct slice name)
{
	return search((const void *const *)conf->queues, conf->queue_count, name);
}

const struct credentials *inventory_conf_credentials(const struct inventory_conf *conf,
						     struct slice name)
{
	return search((const void *const *)conf->credentials, conf->credentials_count, name);
}
