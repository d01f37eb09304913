/* `persist_queue`: which queue takes which OIDSets, and who empties it. */
#include "inventory/private.h"

static const char *const keys[] = {"persister", "workers", "oidsets", "driver", "server", NULL};
static const char *const drivers[] = {
	[QUEUE_LOCAL] = "local", [QUEUE_MEMCACHED] = "memcached", NULL};

static const struct slice server_preset = SLICE("127.0.0.1:11211");

/* In a list of OIDSets: all that no other queue names. */
static bool is_rest(const struct conf_node *node)
{
	return node->type == CONF_NODE_SCALAR && slice_equal(node->text, SLICE("*"));
}

/* OIDSets are shared between the reader and who looks at them only when it is done. */
static struct oidset *find_set(struct conf_reader *r, struct slice name)
{
	return def_find(&r->oidsets, name);
}

static int unknown_set(struct conf_reader *r, const struct conf_node *node)
{
	const char **words = mem_alloc_array(r->oidsets.count + 1, sizeof(*words));
	for (size_t i = 0; i < r->oidsets.count; i++)
		words[i] = ((const struct oidset *)r->oidsets.list[i].def)->name.data;
	words[r->oidsets.count] = NULL;
	const char *nearest = conf_nearest_word(node->text, words);
	int err = conf_node_refuse(node, r->e, "'" SHOWN "' is not an OIDSet%s%s%s",
				   SHOWN_OF(node->text), nearest ? "; did you mean " : "",
				   nearest ? nearest : "", nearest ? "?" : "");
	mem_free(words);
	return err;
}

static int take_set(struct conf_reader *r, const struct conf_node *node, struct queue_def *queue)
{
	if (node->type != CONF_NODE_SCALAR)
		return conf_node_refuse(node, r->e, "takes the name of an OIDSet");
	struct oidset *set = find_set(r, node->text);
	if (!set)
		return unknown_set(r, node);
	if (set->queue)
		return conf_node_refuse(node, r->e, "%s is in the queue %s already", set->name.data,
					set->queue->name.data);
	if (set->kind != queue->persister)
		return conf_node_refuse(node, r->e,
					"%s is an OIDSet of %s, the persister of this queue is %s",
					set->name.data, oidset_kind_text(set->kind),
					oidset_kind_text(queue->persister));
	set->queue = queue;
	return 0;
}

static int take_sets(struct conf_reader *r, const struct conf_node *list, struct queue_def *queue)
{
	int err = conf_node_check_list(list, r->e);
	for (const struct conf_node *n = err ? NULL : list->first; n && !err; n = n->next)
		err = is_rest(n) ? 0 : take_set(r, n, queue);
	return err;
}

static bool takes_rest(const struct conf_node *queue)
{
	const struct conf_node *list = conf_node_member(queue, "oidsets");
	for (const struct conf_node *n = list ? list->first : NULL; n; n = n->next) {
		if (is_rest(n))
			return true;
	}
	return false;
}

/* What is stored under another's name, and named by no queue, goes where that goes. */
static void follow_names(struct conf_reader *r)
{
	for (size_t i = 0; i < r->oidsets.count; i++) {
		struct oidset *set = r->oidsets.list[i].def;
		if (!set->queue)
			set->queue = set->stored_as->queue;
	}
}

static void take_rest(struct conf_reader *r, const struct queue_def *queue)
{
	for (size_t i = 0; i < r->oidsets.count; i++) {
		struct oidset *set = r->oidsets.list[i].def;
		if (!set->queue && set->kind == queue->persister)
			set->queue = queue;
	}
}

/* HOST:PORT. */
static int read_server(struct conf_reader *r, const struct conf_node *node, struct queue_def *queue)
{
	int err = conf_node_text(node, 3, INVENTORY_ADDRESS_MAX_BYTES, &queue->server, r->e);
	const char *colon = err ? NULL : memrchr(queue->server.data, ':', queue->server.len);
	bool port = colon && colon != queue->server.data && colon[1] &&
		    strspn(colon + 1, "0123456789") == strlen(colon + 1) && strlen(colon + 1) <= 5;
	return err || port ? err : conf_node_refuse(node, r->e, "takes HOST:PORT");
}

static int read_members(struct conf_reader *r, const struct conf_node *node,
			struct queue_def *queue)
{
	const struct conf_node *persister = conf_node_member(node, "persister");
	const struct conf_node *workers = conf_node_member(node, "workers");
	const struct conf_node *driver = conf_node_member(node, "driver");
	const struct conf_node *server = conf_node_member(node, "server");
	int64_t worker_count = 1;
	size_t index = OIDSET_COUNTERS;
	if (!persister || !conf_node_member(node, "oidsets"))
		return conf_node_refuse(node, r->e, "needs a persister and oidsets");
	int err = conf_node_choice(persister, "a persister", oidset_kind_words, &index, r->e);
	queue->persister = (enum oidset_kind)index;
	if (!err && workers)
		err = conf_node_int(workers, 1, WORKERS_MAX, &worker_count, r->e);
	queue->workers = (unsigned)worker_count;
	index = QUEUE_LOCAL;
	if (!err && driver)
		err = conf_node_choice(driver, "a driver of queues", drivers, &index, r->e);
	queue->driver = (enum queue_driver)index;
	queue->server = queue->driver == QUEUE_MEMCACHED ? server_preset : SLICE("");
	if (!err && server && queue->driver != QUEUE_MEMCACHED)
		return conf_node_refuse(server, r->e, "only the driver memcached has a server");
	return err || !server ? err : read_server(r, server, queue);
}

/* Its name is part of keys in memcached. */
static int inventory_queues_check_name(struct conf_reader *r, const struct conf_node *node)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789_.-";
	if (node->key.len <= 64 && strspn(node->key.data, plain) == node->key.len)
		return 0;
	return conf_node_refuse(node, r->e,
				"the name of a queue is 1 to 64 letters, digits, _, . or -");
}

static int inventory_queues_read_one(struct conf_reader *r, const struct conf_node *node)
{
	struct queue_def *queue;
	int err = def_add(r, &r->queues, node, false, sizeof(*queue), (void **)&queue);
	err = err ? err : inventory_queues_check_name(r, node);
	err = err ? err : conf_node_check_map(node, keys, r->e);
	err = err ? err : read_members(r, node, queue);
	return err ? err : take_sets(r, conf_node_member(node, "oidsets"), queue);
}

/* One queue for each kind, of its name. */
static int add_presets(struct conf_reader *r)
{
	for (int kind = 0; kind < OIDSET_KINDS; kind++) {
		struct conf_node *node = arena_zalloc(&r->made->arena, sizeof(*node));
		struct queue_def *queue;
		if (!node)
			return conf_reader_full(r);
		*node = (struct conf_node){.key = slice_of(oidset_kind_words[kind]),
					   .file = "default"};
		int err = def_add(r, &r->queues, node, true, sizeof(*queue), (void **)&queue);
		if (err)
			return err;
		queue->persister = (enum oidset_kind)kind;
		queue->workers = 1;
		take_rest(r, queue);
	}
	return 0;
}

static int collect(struct conf_reader *r, struct queue_def *queue)
{
	const struct oidset **sets =
		arena_alloc(&r->made->arena, (r->oidsets.count + 1) * sizeof(*sets));
	if (!sets)
		return conf_reader_full(r);
	for (size_t i = 0; i < r->oidsets.count; i++) {
		const struct oidset *set = r->oidsets.list[i].def;
		if (set->queue == queue)
			sets[queue->oidset_count++] = set;
	}
	queue->oidsets = sets;
	return 0;
}

static int check_all_have_one(struct conf_reader *r, const struct conf_node *section)
{
	for (size_t i = 0; i < r->oidsets.count; i++) {
		const struct oidset *set = r->oidsets.list[i].def;
		if (!set->queue)
			return conf_node_refuse(section, r->e,
						"no queue takes the OIDSet %s; name it, or give a "
						"queue of persister %s the OIDSets \"*\"",
						set->name.data, oidset_kind_text(set->kind));
	}
	return 0;
}

/* One worker makes the rates of what is stored under one name. */
static int check_names_share_one(struct conf_reader *r, const struct conf_node *section)
{
	for (size_t i = 0; i < r->oidsets.count; i++) {
		const struct oidset *set = r->oidsets.list[i].def;
		ASSERT(set->queue && set->stored_as->queue);
		if (set->queue != set->stored_as->queue)
			return conf_node_refuse(section, r->e,
						"%s is stored as %s, but the queue of one is %s "
						"and of the other %s: it must be the same",
						set->name.data, set->set_name.data,
						set->queue->name.data,
						set->stored_as->queue->name.data);
	}
	return 0;
}

/* After what is named, in the order of the file: the first of a kind that takes the rest has it. */
static int read_section(struct conf_reader *r, const struct conf_node *section)
{
	int err = 0;
	for (const struct conf_node *n = section->first; n && !err; n = n->next)
		err = inventory_queues_read_one(r, n);
	follow_names(r);
	for (size_t i = 0; i < r->queues.count && !err; i++) {
		if (takes_rest(r->queues.list[i].node))
			take_rest(r, r->queues.list[i].def);
	}
	err = err ? err : check_all_have_one(r, section);
	return err ? err : check_names_share_one(r, section);
}

int queues_read(struct conf_reader *r, const struct conf_node *section)
{
	int err = section ? read_section(r, section) : add_presets(r);
	size_t taken = 0;
	for (size_t i = 0; i < r->queues.count && !err; i++) {
		struct queue_def *queue = r->queues.list[i].def;
		err = collect(r, queue);
		taken += queue->oidset_count;
	}
	ASSERT(err || taken == r->oidsets.count); /* each in one queue */
	return err;
}
