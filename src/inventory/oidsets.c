/* `oidsets`: what is polled together, how often, and under which names it is stored. */
#include <stdlib.h>

#include "base/buf.h"
#include "inventory/private.h"
#include "model/series.h"

#define SECOND_MS INT64_C(1000)
#define DAY_MS    (86400 * SECOND_MS)

enum { CORRELATORS_MAX = 32 };

static const char *const keys[] = {
	"frequency",  "kind", "correlator", "correlate_oid",    "tags", "oids",
	"aggregates", "ttl",  "set_name",   "skip_undescribed", NULL};

static int read_frequency(struct conf_reader *r, const struct conf_node *node, struct oidset *set)
{
	return conf_node_duration(node, SECOND_MS, DAY_MS, &set->frequency_ms, r->e);
}

static int read_kind(struct conf_reader *r, const struct conf_node *node, struct oidset *set)
{
	size_t index;
	int err = conf_node_choice(node, "a kind of OIDSet", oidset_kind_words, &index, r->e);
	if (!err)
		set->kind = (enum oidset_kind)index;
	return err;
}

/* IfNameCorrelator is E's name for IfName. */
static struct conf_node without_suffix(const struct conf_node *node)
{
	static const struct slice suffix = SLICE("Correlator");
	struct conf_node plain = *node;
	if (node->type == CONF_NODE_SCALAR && node->text.len > suffix.len &&
	    slice_ends_with(node->text, suffix))
		plain.text.len -= suffix.len;
	return plain;
}

static int read_correlator(struct conf_reader *r, const struct conf_node *node, struct oidset *set)
{
	const char *words[CORRELATORS_MAX];
	const struct conf_node plain = without_suffix(node);
	size_t index, count = 0;
	for (; correlators[count].name; count++)
		words[count] = correlators[count].name;
	ASSERT(count < CORRELATORS_MAX);
	words[count] = NULL;
	int err = conf_node_choice(&plain, "a correlator", words, &index, r->e);
	if (!err)
		set->correlator = &correlators[index];
	return err;
}

/* The OID that a scalar names. */
static int oidsets_find_oid(struct conf_reader *r, const struct conf_node *node,
			    const struct oid_def **oid)
{
	if (node->type != CONF_NODE_SCALAR)
		return conf_node_refuse(node, r->e, "takes the name of an OID");
	*oid = def_find(&r->oids, node->text);
	if (*oid)
		return 0;
	const char **words = mem_alloc_array(r->oids.count + 1, sizeof(*words));
	for (size_t i = 0; i < r->oids.count; i++)
		words[i] = ((const struct oid_def *)r->oids.list[i].def)->name.data;
	words[r->oids.count] = NULL;
	const char *nearest = conf_nearest_word(node->text, words);
	int err = conf_node_refuse(node, r->e,
				   "'" SHOWN "' is not an OID that is known by name%s%s%s",
				   SHOWN_OF(node->text), nearest ? "; did you mean " : "",
				   nearest ? nearest : "", nearest ? "?" : "; `oids` can name it");
	mem_free(words);
	return err;
}

static int check_once(struct conf_reader *r, const struct conf_node *node,
		      const struct oid_def *const *oids, size_t count)
{
	for (size_t i = 0; i + 1 < count; i++) {
		if (oids[i] == oids[count - 1])
			return conf_node_refuse(node, r->e, SHOWN " stands twice",
						SHOWN_OF(node->text));
	}
	return 0;
}

static int read_oids(struct conf_reader *r, const struct conf_node *node, struct oidset *set)
{
	size_t rated = 0;
	int err = conf_node_check_list(node, r->e);
	if (err)
		return err;
	if (node->count == 0 || node->count > OIDSET_OIDS_MAX)
		return conf_node_refuse(node, r->e, "takes 1 to %d names", OIDSET_OIDS_MAX);
	const struct oid_def **oids = arena_alloc(&r->made->arena, node->count * sizeof(*oids));
	if (!oids)
		return conf_reader_full(r);
	for (const struct conf_node *n = node->first; n; n = n->next) {
		err = oidsets_find_oid(r, n, &oids[set->oid_count]);
		err = err ? err : check_once(r, n, oids, ++set->oid_count);
		if (err)
			return err;
		rated += oids[set->oid_count - 1]->aggregate;
		if (rated > OIDSET_RATED_MAX)
			return conf_node_refuse(n, r->e,
						"is one more than the %d OIDs of an OIDSet that "
						"rates are made of",
						OIDSET_RATED_MAX);
	}
	ASSERT(set->oid_count == node->count);
	set->oids = oids;
	return 0;
}

static int by_number(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
	return (a > b) - (a < b);
}

static int read_aggregates(struct conf_reader *r, const struct conf_node *node, struct oidset *set)
{
	int err = conf_node_check_list(node, r->e);
	if (err)
		return err;
	if (node->count > OIDSET_AGGREGATES_MAX)
		return conf_node_refuse(node, r->e, "takes at most %d", OIDSET_AGGREGATES_MAX);
	for (const struct conf_node *n = node->first; n; n = n->next) {
		int64_t *period_ms = &set->aggregates_ms[set->aggregate_count];
		err = conf_node_duration(n, SECOND_MS, OIDSET_AGGREGATE_MAX_MS, period_ms, r->e);
		if (err)
			return err;
		if (*period_ms <= set->frequency_ms)
			return conf_node_refuse(n, r->e, "is not longer than the frequency");
		for (size_t i = 0; i < set->aggregate_count; i++) {
			if (set->aggregates_ms[i] == *period_ms)
				return conf_node_refuse(n, r->e, "stands twice");
		}
		set->aggregate_count++;
	}
	qsort(set->aggregates_ms, set->aggregate_count, sizeof(int64_t), by_number);
	return 0;
}

static int read_ttl(struct conf_reader *r, const struct conf_node *node, struct oidset *set)
{
	return conf_node_duration(node, 0, 36500 * DAY_MS, &set->ttl_ms, r->e);
}

static int read_set_name(struct conf_reader *r, const struct conf_node *node, struct oidset *set)
{
	return conf_node_text(node, 1, INVENTORY_NAME_MAX_BYTES, &set->set_name, r->e);
}

static int read_skip(struct conf_reader *r, const struct conf_node *node, struct oidset *set)
{
	return conf_node_bool(node, &set->skip_undescribed, r->e);
}

static int read_correlate_oid(struct conf_reader *r, const struct conf_node *node,
			      struct oidset *set)
{
	return oidsets_find_oid(r, node, &set->correlate_oid);
}

/* ---- What members say of each other -----------------------------------------------------------
 */

static int check_correlator(struct conf_reader *r, const struct conf_node *node,
			    const struct oidset *set)
{
	const struct conf_node *correlator = conf_node_member(node, "correlator");
	enum correlator_kind kind = set->correlator->kind;
	if (set->kind == OIDSET_COUNTERS && kind == CORRELATOR_NONE)
		return conf_node_refuse(
			correlator ? correlator : node, r->e,
			"an OIDSet of counters needs a correlator, which names its rows");
	if (set->kind != OIDSET_COUNTERS && kind != CORRELATOR_NONE)
		return conf_node_refuse(correlator, r->e, "an OIDSet of %s takes no correlator",
					oidset_kind_text(set->kind));
	if ((kind == CORRELATOR_GENERIC) != (set->correlate_oid != NULL))
		return conf_node_refuse(node, r->e,
					"correlator GenericOid and correlate_oid go together");
	return 0;
}

static int check_members(struct conf_reader *r, const struct conf_node *node,
			 const struct oidset *set)
{
	bool by_name = set->correlator->kind == CORRELATOR_IF_NAME ||
		       set->correlator->kind == CORRELATOR_INF_IF_NAME ||
		       set->correlator->kind == CORRELATOR_JNX_COS;
	if (set->skip_undescribed && !by_name)
		return conf_node_refuse(conf_node_member(node, "skip_undescribed"), r->e,
					"the rows of %s are not interfaces", set->correlator->name);
	if (set->kind != OIDSET_COUNTERS && set->aggregate_count)
		return conf_node_refuse(conf_node_member(node, "aggregates"), r->e,
					"an OIDSet of %s has nothing to aggregate",
					oidset_kind_text(set->kind));
	for (size_t i = 0; i < set->oid_count; i++) {
		if (set->correlator->kind == CORRELATOR_OID && !set->oids[i]->scalar)
			return conf_node_refuse(conf_node_member(node, "oids"), r->e,
						"%s is no scalar, and so has no place under "
						"correlator Oid",
						set->oids[i]->name.data);
	}
	return 0;
}

static bool has_oid(const struct oidset *set, const char *name)
{
	return oidset_oid(set, slice_of(name)) != NULL;
}

/* Rows must have something to be called by. */
static int check_rows(struct conf_reader *r, const struct conf_node *node, const struct oidset *set)
{
	if (set->kind != OIDSET_INTERFACES || has_oid(set, "ifName") || has_oid(set, "ifDescr"))
		return 0;
	return conf_node_refuse(conf_node_member(node, "oids"), r->e,
				"an OIDSet of interfaces needs ifName or ifDescr");
}

static int add_name_oid(struct conf_reader *r, const struct conf_node *node, struct oidset *set,
			const char *name)
{
	const struct oid_def *oid = def_find(&r->oids, slice_of(name));
	if (!oid)
		return conf_node_refuse(node, r->e, "correlator %s needs the OID %s",
					set->correlator->name, name);
	set->name_oids[set->name_oid_count++] = oid;
	return 0;
}

static int add_name_oids(struct conf_reader *r, const struct conf_node *node, struct oidset *set)
{
	int err = 0;
	for (size_t i = 0; i < OIDSET_NAME_OIDS_MAX && set->correlator->name_oids[i] && !err; i++)
		err = add_name_oid(r, node, set, set->correlator->name_oids[i]);
	if (!err && set->skip_undescribed)
		err = add_name_oid(r, node, set, "ifAlias");
	if (!err && set->correlate_oid)
		set->name_oids[set->name_oid_count++] = set->correlate_oid;
	ASSERT(set->name_oid_count <= ARRAY_LEN(set->name_oids));
	return err;
}

static int check_tag(struct conf_reader *r, const struct conf_node *node, struct slice name)
{
	struct errbuf why;
	struct tag tag = {name, SLICE("v")};
	if (tags_sort_and_check(&tag, 1, &why))
		return conf_node_refuse(node, r->e, "%s", why.text);
	if (slice_equal(name, SLICE("device")) || slice_equal(name, SLICE("oidset")))
		return conf_node_refuse(node, r->e, "every series has a tag %s already", name.data);
	return 0;
}

static int check_tag_once(struct conf_reader *r, const struct conf_node *node,
			  const struct oidset *set, struct slice name)
{
	for (size_t i = 0; i < set->path_tag_count; i++) {
		if (slice_equal(set->path_tags[i], name))
			return conf_node_refuse(node, r->e, "the tag " SHOWN " stands twice",
						SHOWN_OF(name));
	}
	return 0;
}

/* The tags of the path: those of the correlator, or as the OIDSet says. */
static int add_path_tags(struct conf_reader *r, const struct conf_node *tags, struct oidset *set)
{
	int err = tags ? conf_node_check_list(tags, r->e) : 0;
	const struct conf_node *given = tags && !err ? tags->first : NULL;
	for (; !err && set->path_tag_count < OIDSET_PATH_MAX; set->path_tag_count++) {
		const char *name = set->correlator->tags[set->path_tag_count];
		struct slice *tag = &set->path_tags[set->path_tag_count];
		if (!name)
			break;
		*tag = slice_of(name);
		if (given) {
			err = conf_node_text(given, 1, INVENTORY_NAME_MAX_BYTES, tag, r->e);
			err = err ? err : check_tag(r, given, *tag);
			err = err ? err : check_tag_once(r, given, set, *tag);
			given = given->next;
		}
	}
	if (!err && tags && tags->count != set->path_tag_count)
		return conf_node_refuse(tags, r->e, "correlator %s has paths of %zu parts",
					set->correlator->name, set->path_tag_count);
	return err;
}

static int oidsets_check(struct conf_reader *r, const struct conf_node *node, struct oidset *set)
{
	struct errbuf why;
	struct tag tag = {SLICE("oidset"), set->set_name};
	int err = check_correlator(r, node, set);
	err = err ? err : check_members(r, node, set);
	err = err ? err : check_rows(r, node, set);
	err = err ? err : add_name_oids(r, node, set);
	err = err ? err : add_path_tags(r, conf_node_member(node, "tags"), set);
	if (!err && tags_sort_and_check(&tag, 1, &why))
		return conf_node_refuse(node, r->e, "%s", why.text);
	return err;
}

/* ---- Reading ----------------------------------------------------------------------------------
 */

/* In this order, whatever that of the file: aggregates are compared with the frequency. */
static const struct oidsets_member {
	const char *key;
	int (*read)(struct conf_reader *r, const struct conf_node *node, struct oidset *set);
} members[] = {
	{"frequency", read_frequency},
	{"kind", read_kind},
	{"correlator", read_correlator},
	{"correlate_oid", read_correlate_oid},
	{"oids", read_oids},
	{"aggregates", read_aggregates},
	{"ttl", read_ttl},
	{"set_name", read_set_name},
	{"skip_undescribed", read_skip},
};

static int oidsets_read_one(struct conf_reader *r, const struct conf_node *node, bool shipped)
{
	struct oidset *set;
	int err = def_add(r, &r->oidsets, node, shipped, sizeof(*set), (void **)&set);
	err = err ? err : conf_node_check_map(node, keys, r->e);
	if (err)
		return err;
	if (!conf_node_member(node, "frequency") || !conf_node_member(node, "oids"))
		return conf_node_refuse(node, r->e, "needs a frequency and oids");
	set->shipped = shipped;
	set->set_name = set->name;
	set->correlator = &correlators[0];
	for (size_t i = 0; i < ARRAY_LEN(members) && !err; i++) {
		const struct conf_node *member = conf_node_member(node, members[i].key);
		if (member)
			err = members[i].read(r, member, set);
	}
	return err ? err : oidsets_check(r, node, set);
}

int oidsets_read(struct conf_reader *r, const struct inventory_source *source)
{
	if (!source->oidsets || conf_node_is_null(source->oidsets))
		return 0;
	if (source->oidsets->type != CONF_NODE_MAP)
		return conf_node_refuse(source->oidsets, r->e,
					"takes a mapping: a name, and what it is");
	for (const struct conf_node *n = source->oidsets->first; n; n = n->next) {
		int err = oidsets_read_one(r, n, source->shipped);
		if (err)
			return err;
	}
	return 0;
}

static bool same_aggregates(const struct oidset *a, const struct oidset *b)
{
	return a->aggregate_count == b->aggregate_count &&
	       memcmp(a->aggregates_ms, b->aggregates_ms,
		      a->aggregate_count * sizeof(a->aggregates_ms[0])) == 0;
}

static bool same_path_tags(const struct oidset *a, const struct oidset *b)
{
	bool same = a->path_tag_count == b->path_tag_count;
	for (size_t i = 0; i < a->path_tag_count && same; i++)
		same = slice_equal(a->path_tags[i], b->path_tags[i]);
	return same;
}

/* An OID that rates are made of, and not in the other one; NULL: there is none. */
static const struct oid_def *foreign_rate(const struct oidset *set, const struct oidset *other)
{
	for (size_t i = 0; i < set->oid_count; i++) {
		const struct oid_def *oid = set->oids[i];
		size_t at = 0;
		while (at < other->oid_count && other->oids[at] != oid)
			at++;
		if (oid->aggregate && at == other->oid_count)
			return oid;
	}
	return NULL;
}

/* What lies under one name is made into rates by one worker, in one way. */
static int check_stored_as(struct conf_reader *r, const struct oidset *set,
			   const struct conf_node *node)
{
	const struct oidset *as = set->stored_as;
	const struct oid_def *foreign = foreign_rate(set, as);
	const char *differs = set->kind != as->kind                   ? "its persister"
			      : set->frequency_ms != as->frequency_ms ? "the frequency"
			      : !same_aggregates(set, as)             ? "the aggregates"
			      : !same_path_tags(set, as)              ? "the tags of its paths"
								      : NULL;
	if (!slice_equal(as->name, as->set_name))
		return conf_node_refuse(node, r->e, "%s is itself stored as %s", as->name.data,
					as->set_name.data);
	if (differs)
		return conf_node_refuse(node, r->e, "%s differs from %s in %s", set->name.data,
					as->name.data, differs);
	if (foreign)
		return conf_node_refuse(node, r->e, "%s has no %s, of which %s makes rates",
					as->name.data, foreign->name.data, set->name.data);
	return 0;
}

/* A shipped one goes by its own name where the one that it would be stored as was replaced. */
int oidsets_link(struct conf_reader *r)
{
	int err = 0;
	for (size_t i = 0; i < r->oidsets.count && !err; i++) {
		struct oidset *set = r->oidsets.list[i].def;
		const struct conf_node *node =
			conf_node_member(r->oidsets.list[i].node, "set_name");
		set->stored_as = def_find(&r->oidsets, set->set_name);
		err = set->stored_as ? check_stored_as(r, set, node)
				     : conf_node_refuse(node, r->e, "'" SHOWN "' is not an OIDSet",
							SHOWN_OF(set->set_name));
		if (err && set->shipped && set->stored_as) {
			set->set_name = set->name;
			set->stored_as = set;
			r->e->text[0] = 0;
			err = 0;
		}
	}
	return err;
}
