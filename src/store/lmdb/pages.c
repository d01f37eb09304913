#include "store/lmdb/pages.h"

#include "base/cursor.h"
#include "base/mem.h"

/* A page:
 *
 *     number u64, pad u16, flags u16, lower u16, upper u16
 *     offsets, u16 each, up to `lower`
 *     free room, up to `upper`
 *     nodes, each at an even offset, without gaps, up to the end
 *
 * An overflow page has its count of pages, u32, in the place of lower and upper; then bytes.
 *
 * A node of a branch. The first one's key stands for the least key, whatever it is:
 *
 *     child's number, low 32 bits u32; high 16 bits u16
 *     key's length u16, key
 *
 * A node of a leaf. With the flag BIG the value's place has the number, u64, of the first of the
 * overflow pages that it lies in:
 *
 *     value's length u32, flags u16, key's length u16, key, value
 *
 * A meta page, after the header of 16 bytes:
 *
 *     mark u32, version u32, address u64, size of the map u64
 *     tree of free pages, main tree
 *     last page u64, transaction u64
 *
 * A tree:
 *
 *     u32 (of the free one: bytes of a page), flags u16, depth u16
 *     pages u64 each: branch, leaf, overflow
 *     entries u64, root u64 (all ones: none)
 *
 * The free tree has under the number of a transaction, u64 as the machine has it, a count u64 and
 * as many numbers of pages u64, descending; room may follow. The main tree has trees by name. */
enum {
	HEADER_BYTES = 16,
	AT_FLAGS = 10,
	AT_LOWER = 12,
	AT_UPPER = 14,
	AT_COUNT = 12,
	NODE_BYTES = 8,
	PAGE_BRANCH = 0x01,
	PAGE_LEAF = 0x02,
	PAGE_OVERFLOW = 0x04,
	PAGE_META = 0x08,
	NODE_BIG = 0x01,
	NODE_TREE = 0x02,
	TREE_BY_NUMBER = 0x08,
	META_BYTES = 136,
	META_VERSION = 1,
	META_PAGES = 2,
	PAGE_MIN_BYTES = 512,
	PAGE_MAX_BYTES = 65536,
	/* Pages at the end that were taken and given back in one transaction are never written. */
	UNWRITTEN_PAGES_MAX = 1 << 20,
};

#define META_MARK UINT32_C(0xbeefc0de)

struct pages_node {
	unsigned flags;
	uint64_t child; /* of a branch */
	uint64_t value_bytes;
	struct slice key;
	const uint8_t *data; /* of a leaf */
	size_t bytes;        /* that it takes in its page */
};

static uint16_t u16_at(const uint8_t *at)
{
	uint16_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

static uint32_t u32_at(const uint8_t *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

static uint64_t u64_at(const uint8_t *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof(value));
	return value;
}

/* ---- Meta pages ------------------------------------------------------------------------------ */

static void read_tree(struct cursor *c, uint32_t *first, struct pages_tree *tree)
{
	*first = cursor_u32(c);
	tree->flags = cursor_u16(c);
	tree->depth = cursor_u16(c);
	tree->branches = cursor_u64(c);
	tree->leaves = cursor_u64(c);
	tree->overflows = cursor_u64(c);
	tree->entries = cursor_u64(c);
	tree->root = cursor_u64(c);
}

static bool tree_is_sound(const struct pages_tree *tree)
{
	bool empty = tree->root == PAGES_NO_ROOT;
	return tree->depth <= PAGES_DEPTH_MAX && empty == (tree->depth == 0) &&
	       empty == (tree->entries == 0);
}

int pages_tree_parse(struct slice value, struct pages_tree *tree)
{
	struct cursor c = cursor_of(value.data, value.len);
	uint32_t first;
	read_tree(&c, &first, tree);
	return c.bad || cursor_left(&c) || tree->flags || !tree_is_sound(tree) ? ERR_DAMAGED : 0;
}

static const char *meta_fault(const struct pages *pages, const struct pages_meta *meta,
			      const uint8_t *page, uint64_t number)
{
	uint64_t pages_written = pages->source.bytes / meta->page_bytes;
	if (u64_at(page) != number || u16_at(page + AT_FLAGS) != PAGE_META)
		return "it is not the meta page that belongs there";
	if (meta->last_page < META_PAGES - 1 ||
	    meta->last_page >= pages_written + UNWRITTEN_PAGES_MAX)
		return "its last page lies far from the end of the file";
	if (!(meta->free.flags & TREE_BY_NUMBER) || meta->main.flags)
		return "its trees are not of the kinds that they should be";
	if (!tree_is_sound(&meta->free) || !tree_is_sound(&meta->main))
		return "its trees contradict themselves";
	if (meta->transaction && (meta->transaction & 1) != number)
		return "its transaction is not one of its place";
	return NULL;
}

static void pages_read_meta(struct pages *pages, uint64_t number, size_t page_bytes)
{
	struct pages_meta *meta = &pages->metas[number];
	uint8_t page[HEADER_BYTES + META_BYTES];
	*meta = (struct pages_meta){.fault = "it cannot be read"};
	if (pages->source.read(pages->source.context, number * page_bytes, page, sizeof(page)))
		return;
	struct cursor c = cursor_of(page + HEADER_BYTES, META_BYTES);
	uint32_t mark = cursor_u32(&c), version = cursor_u32(&c), first;
	meta->fault = "it is not one of a data file";
	if (mark != META_MARK || version != META_VERSION)
		return;
	cursor_take(&c, 16);
	read_tree(&c, &first, &meta->free);
	meta->page_bytes = first;
	read_tree(&c, &first, &meta->main);
	meta->last_page = cursor_u64(&c);
	meta->transaction = cursor_u64(&c);
	bool power_of_two = (meta->page_bytes & (meta->page_bytes - 1)) == 0;
	if (meta->page_bytes >= PAGE_MIN_BYTES && meta->page_bytes <= PAGE_MAX_BYTES &&
	    power_of_two && (!page_bytes || page_bytes == meta->page_bytes))
		meta->fault = meta_fault(pages, meta, page, number);
}

/* Where the second meta page lies says the first; if that is damaged, every size is tried. */
static void read_metas(struct pages *pages)
{
	pages_read_meta(pages, 0, 0);
	if (!pages->metas[0].fault) {
		pages_read_meta(pages, 1, pages->metas[0].page_bytes);
		return;
	}
	for (size_t bytes = PAGE_MIN_BYTES; bytes <= PAGE_MAX_BYTES; bytes *= 2) {
		pages_read_meta(pages, 1, bytes);
		if (!pages->metas[1].fault)
			return;
	}
}

int pages_use_meta(struct pages *pages, const struct pages_meta *meta)
{
	if (meta->fault)
		return ERR_DAMAGED;
	pages->meta = *meta;
	mem_free(pages->owners);
	pages->owners = mem_zalloc(meta->last_page + 1);
	return 0;
}

static const struct pages_meta *newer_meta(const struct pages *pages)
{
	const struct pages_meta *a = &pages->metas[0], *b = &pages->metas[1];
	if (a->fault || b->fault)
		return a->fault ? b : a;
	/* The first of equal ones, as in LMDB: a commit that failed as the very first leaves its
	 * trees in the second, with the transaction 0. */
	return b->transaction > a->transaction ? b : a;
}

int pages_open(struct pages *pages, const struct pages_source *source, struct errbuf *e)
{
	*pages = (struct pages){.source = *source};
	read_metas(pages);
	if (pages_use_meta(pages, newer_meta(pages)) == 0)
		return 0;
	return errbuf_set(e, ERR_DAMAGED, "both meta pages are damaged: page 0: %s; page 1: %s",
			  pages->metas[0].fault, pages->metas[1].fault);
}

int pages_use_older_meta(struct pages *pages)
{
	return pages_use_meta(pages, &pages->metas[newer_meta(pages) == &pages->metas[0]]);
}

void pages_release(struct pages *pages)
{
	mem_free(pages->owners);
	pages->owners = NULL;
}

/* ---- One page -------------------------------------------------------------------------------- */

static bool parse_node(const uint8_t *page, size_t page_bytes, unsigned i, struct pages_node *node)
{
	bool branch = u16_at(page + AT_FLAGS) == PAGE_BRANCH;
	size_t at = u16_at(page + HEADER_BYTES + 2 * (size_t)i);
	if (at & 1 || at < u16_at(page + AT_UPPER) || at > page_bytes - NODE_BYTES)
		return false;
	size_t room = page_bytes - at - NODE_BYTES, key_bytes = u16_at(page + at + 6);
	uint32_t low = u32_at(page + at);
	node->flags = u16_at(page + at + 4);
	node->key = (struct slice){(const char *)page + at + NODE_BYTES, key_bytes};
	node->data = page + at + NODE_BYTES + key_bytes;
	node->child = low | (uint64_t)node->flags << 32;
	node->value_bytes = branch ? 0 : low;
	size_t data = branch ? 0 : node->flags & NODE_BIG ? sizeof(uint64_t) : low;
	if (key_bytes > PAGES_KEY_MAX_BYTES || key_bytes > room || data > room - key_bytes)
		return false;
	node->bytes = NODE_BYTES + ((key_bytes + data + 1) & ~(size_t)1);
	return true;
}

static unsigned node_count(const uint8_t *page)
{
	return (unsigned)(u16_at(page + AT_LOWER) - HEADER_BYTES) / 2;
}

static int compare_keys(bool by_number, struct slice a, struct slice b)
{
	if (!by_number)
		return slice_compare(a, b);
	uint64_t x = u64_at((const uint8_t *)a.data), y = u64_at((const uint8_t *)b.data);
	return (x > y) - (x < y);
}

/* Nodes one by one; their keys are compared by the caller. */
static const char *nodes_fault(const struct pages_walk *walk, const uint8_t *page, unsigned kind)
{
	size_t page_bytes = walk->pages->meta.page_bytes, filled = 0;
	unsigned known = walk->has_trees ? NODE_TREE : NODE_BIG;
	struct pages_node node;
	for (unsigned i = 0; i < node_count(page); i++) {
		if (!parse_node(page, page_bytes, i, &node))
			return "an entry leads out of it";
		if (kind == PAGE_LEAF && (node.flags & ~known || (walk->has_trees && !node.flags)))
			return "an entry is of a kind that does not belong there";
		if (walk->tree.flags & TREE_BY_NUMBER && node.key.len != sizeof(uint64_t) &&
		    (kind == PAGE_LEAF || i))
			return "a key has a length that cannot be";
		filled += node.bytes;
	}
	return filled == page_bytes - u16_at(page + AT_UPPER) ? NULL : "its entries do not fill it";
}

static const char *page_fault(const struct pages_walk *walk, const uint8_t *page, uint64_t number,
			      unsigned kind)
{
	size_t page_bytes = walk->pages->meta.page_bytes;
	size_t lower = u16_at(page + AT_LOWER), upper = u16_at(page + AT_UPPER);
	bool is_free_tree = walk->tree.flags & TREE_BY_NUMBER;
	if (u64_at(page) != number)
		return "it is not the page that belongs there";
	if (u16_at(page + AT_FLAGS) != kind)
		return kind == PAGE_LEAF ? "it is no leaf" : "it is no branch";
	if (lower & 1 || lower < HEADER_BYTES || lower > upper || upper > page_bytes)
		return "its header is damaged";
	/* LMDB stops at a branch of one, but in the free tree. */
	if (node_count(page) < (kind == PAGE_LEAF || is_free_tree ? 1U : 2U))
		return "it has too few entries";
	return nodes_fault(walk, page, kind);
}

bool pages_leaf_is_sound(const uint8_t *page, size_t page_bytes, uint64_t number)
{
	struct pages pages = {.meta.page_bytes = page_bytes};
	struct pages_walk walk = {.pages = &pages};
	return !page_fault(&walk, page, number, PAGE_LEAF);
}

static int read_page(const struct pages *pages, uint64_t page, uint64_t count, uint8_t *to)
{
	size_t page_bytes = pages->meta.page_bytes;
	return pages->source.read(pages->source.context, page * page_bytes, to, count * page_bytes);
}

static bool is_a_page(const struct pages *pages, uint64_t page)
{
	return page >= META_PAGES && page <= pages->meta.last_page;
}

static const char *owner_fault(const struct pages_walk *walk, uint64_t page)
{
	if (!is_a_page(walk->pages, page))
		return "there is no such page";
	unsigned owner = walk->owner ? walk->pages->owners[page] : PAGES_NOBODY;
	if (walk->again)
		return owner == walk->owner ? NULL : "it belongs somewhere else, too";
	if (owner == PAGES_FREE)
		return "it is on the free list, too";
	return owner ? "it belongs somewhere else, too" : NULL;
}

/* ---- A value --------------------------------------------------------------------------------- */

static const char *overflow_fault(const struct pages_walk *walk, const struct pages_node *node,
				  uint64_t page, uint64_t *count)
{
	const struct pages *pages = walk->pages;
	size_t page_bytes = pages->meta.page_bytes;
	uint8_t header[HEADER_BYTES];
	const char *fault = owner_fault(walk, page);
	if (fault)
		return fault;
	if (pages->source.read(pages->source.context, page * page_bytes, header, sizeof(header)))
		return "it cannot be read";
	*count = u32_at(header + AT_COUNT);
	if (u64_at(header) != page || u16_at(header + AT_FLAGS) != PAGE_OVERFLOW)
		return "it is not the page of the value that belongs there";
	if (*count < (HEADER_BYTES + node->value_bytes + page_bytes - 1) / page_bytes ||
	    *count > pages->meta.last_page - page + 1)
		return "it says a count of pages that cannot be";
	for (uint64_t i = 1; i < *count && !fault; i++)
		fault = owner_fault(walk, page + i);
	return fault;
}

static void pages_lose(struct pages_walk *walk, const struct pages_loss *loss)
{
	walk->losses++;
	if (walk->lost)
		walk->lost(walk, loss);
}

static int tell_entry(struct pages_walk *walk, struct slice key, const void *value, uint64_t len,
		      uint64_t page)
{
	walk->seen.entries++;
	return walk->entry ? walk->entry(walk, key, (struct slice){value, len}, page) : 0;
}

static int walk_big(struct pages_walk *walk, const struct pages_node *node)
{
	uint64_t page = u64_at(node->data), count = 0;
	const char *fault = overflow_fault(walk, node, page, &count);
	uint64_t needed = HEADER_BYTES + node->value_bytes;
	uint8_t *bytes = NULL;
	int err = 0;
	if (!fault && needed > walk->pages->source.bytes)
		fault = "it is longer than the file";
	if (!fault) {
		bytes = mem_alloc(needed);
		if (walk->pages->source.read(walk->pages->source.context,
					     page * walk->pages->meta.page_bytes, bytes, needed))
			fault = "it cannot be read";
	}
	if (fault) {
		struct pages_loss loss = {page, fault, node->key, node->key, true};
		pages_lose(walk, &loss);
	} else {
		if (walk->owner)
			memset(walk->pages->owners + page, (int)walk->owner, count);
		walk->seen.overflows += count;
		err = tell_entry(walk, node->key, bytes + HEADER_BYTES, node->value_bytes, page);
	}
	mem_free(bytes);
	return err;
}

static int walk_entries(struct pages_walk *walk, const uint8_t *page, uint64_t number)
{
	struct pages_node node;
	int err = 0;
	for (unsigned i = 0; i < node_count(page) && !err; i++) {
		bool parsed = parse_node(page, walk->pages->meta.page_bytes, i, &node);
		ASSERT(parsed);
		if (node.flags & NODE_BIG)
			err = walk_big(walk, &node);
		else
			err = tell_entry(walk, node.key, node.data, node.value_bytes, number);
	}
	return err;
}

/* ---- A tree ---------------------------------------------------------------------------------- */

/* Within the page, and between the bounds that the pages above give it. */
static const char *keys_fault(const struct pages_walk *walk, const uint8_t *page, struct slice from,
			      struct slice to)
{
	bool by_number = walk->tree.flags & TREE_BY_NUMBER;
	bool branch = u16_at(page + AT_FLAGS) == PAGE_BRANCH;
	struct slice before = from;
	struct pages_node node;
	for (unsigned i = branch; i < node_count(page); i++) {
		bool parsed = parse_node(page, walk->pages->meta.page_bytes, i, &node);
		ASSERT(parsed);
		int order = before.len ? compare_keys(by_number, before, node.key) : -1;
		if (order > 0 || (order == 0 && i > 0))
			return i > branch ? "its keys do not ascend"
					  : "its keys are not those that belong there";
		before = node.key;
	}
	return to.len && before.len && compare_keys(by_number, before, to) >= 0
		       ? "its keys are not those that belong there"
		       : NULL;
}

static bool passes_over(const struct pages_walk *walk, struct slice from, struct slice to)
{
	return (walk->to.len && from.len && slice_compare(from, walk->to) >= 0) ||
	       (walk->from.len && to.len && slice_compare(to, walk->from) <= 0);
}

static int walk_page(struct pages_walk *walk, uint64_t number, unsigned level, struct slice from,
		     struct slice to);

static int walk_children(struct pages_walk *walk, const uint8_t *page, unsigned level,
			 struct slice from, struct slice to)
{
	size_t page_bytes = walk->pages->meta.page_bytes;
	unsigned count = node_count(page);
	struct pages_node node, next;
	int err = 0;
	bool parsed = parse_node(page, page_bytes, 0, &node);
	for (unsigned i = 0; i < count && !err; i++, node = next) {
		ASSERT(parsed);
		if (i + 1 < count)
			parsed = parse_node(page, page_bytes, i + 1, &next);
		struct slice begin = i ? node.key : from, end = i + 1 < count ? next.key : to;
		if (!passes_over(walk, begin, end))
			err = walk_page(walk, node.child, level + 1, begin, end);
	}
	return err;
}

static int walk_page(struct pages_walk *walk, uint64_t number, unsigned level, struct slice from,
		     struct slice to)
{
	unsigned kind = level == walk->tree.depth ? PAGE_LEAF : PAGE_BRANCH;
	const char *fault = owner_fault(walk, number);
	uint8_t *page = mem_alloc(walk->pages->meta.page_bytes);
	if (!fault && read_page(walk->pages, number, 1, page))
		fault = "it cannot be read";
	if (!fault)
		fault = page_fault(walk, page, number, kind);
	if (!fault)
		fault = keys_fault(walk, page, from, to);
	int err = 0;
	if (fault) {
		struct pages_loss loss = {number, fault, from, to, false};
		pages_lose(walk, &loss);
	} else {
		if (walk->owner)
			walk->pages->owners[number] = (uint8_t)walk->owner;
		*(kind == PAGE_LEAF ? &walk->seen.leaves : &walk->seen.branches) += 1;
		if (!walk->only_root)
			err = kind == PAGE_LEAF ? walk_entries(walk, page, number)
						: walk_children(walk, page, level, from, to);
	}
	mem_free(page);
	return err;
}

int pages_walk(struct pages_walk *walk)
{
	walk->seen = (struct pages_tree){0};
	walk->losses = 0;
	if (walk->tree.root == PAGES_NO_ROOT)
		return 0;
	return walk_page(walk, walk->tree.root, 1, (struct slice){NULL, 0},
			 (struct slice){NULL, 0});
}

int pages_leaf(struct pages_walk *walk, uint64_t number)
{
	uint8_t *page = mem_alloc(walk->pages->meta.page_bytes);
	struct slice none = {NULL, 0};
	int err = owner_fault(walk, number) || read_page(walk->pages, number, 1, page) ||
				  page_fault(walk, page, number, PAGE_LEAF) ||
				  keys_fault(walk, page, none, none)
			  ? ERR_DAMAGED
			  : 0;
	if (!err) {
		if (walk->owner)
			walk->pages->owners[number] = (uint8_t)walk->owner;
		err = walk_entries(walk, page, number);
	}
	mem_free(page);
	return err;
}

/* ---- The free list --------------------------------------------------------------------------- */

static const char *mark_free(struct pages *pages, const uint8_t *value, uint64_t len)
{
	uint64_t count = len < 8 ? 0 : u64_at(value), before = UINT64_MAX;
	if (len < 8 || count > len / 8 - 1)
		return "it lists more pages than it has room for";
	for (uint64_t i = 1; i <= count; i++) {
		uint64_t page = u64_at(value + 8 * i);
		if (page >= before)
			return "its pages do not descend";
		if (!is_a_page(pages, page))
			return "it lists a page that there is not";
		if (pages->owners[page])
			return "it lists a page that is not free, or twice";
		pages->owners[page] = PAGES_FREE;
		before = page;
	}
	return NULL;
}

static int free_entry(struct pages_walk *walk, struct slice key, struct slice value, uint64_t page)
{
	struct pages *pages = walk->pages;
	const char *fault = mark_free(pages, (const uint8_t *)value.data, value.len);
	uint64_t transaction = u64_at((const uint8_t *)key.data);
	if (!fault && transaction > pages->meta.transaction)
		fault = "it is of a transaction that is yet to come";
	if (fault) {
		struct pages_loss loss = {page, fault, key, key, true};
		pages_lose(walk, &loss);
	}
	pages->newest_freed = transaction;
	return 0;
}

int pages_walk_free(struct pages *pages, void *context,
		    void (*lost)(struct pages_walk *walk, const struct pages_loss *loss),
		    size_t *losses)
{
	struct pages_walk walk = {.pages = pages,
				  .tree = pages->meta.free,
				  .owner = PAGES_FREE_TREE,
				  .context = context,
				  .entry = free_entry,
				  .lost = lost};
	int err = pages_walk(&walk);
	*losses = walk.losses;
	return err;
}

bool pages_free_is_newest(const struct pages *pages)
{
	return pages->newest_freed == pages->meta.transaction || pages->meta.transaction <= 2;
}

void pages_forget_free(struct pages *pages)
{
	for (uint64_t page = 0; page <= pages->meta.last_page; page++) {
		if (pages->owners[page] == PAGES_FREE || pages->owners[page] == PAGES_FREE_TREE)
			pages->owners[page] = PAGES_NOBODY;
	}
}
