/* Any bytes as a data file: nothing is read outside, every walk ends, no page has two owners, and
 * what is told as an entry lies in a key's and a page's bounds. */
#include "base/cursor.h"
#include "base/mem.h"
#include "store/lmdb/pages.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
	const uint8_t *data;
	size_t size;
};

static int read_bytes(void *context, uint64_t offset, void *to, size_t len)
{
	const struct bytes *bytes = context;
	if (offset > bytes->size || len > bytes->size - offset)
		return ERR_DAMAGED;
	memcpy(to, bytes->data + offset, len);
	return 0;
}

static int see_entry(struct pages_walk *walk, struct slice key, struct slice value, uint64_t page)
{
	uint64_t *sum = walk->context;
	ASSERT(key.len <= PAGES_KEY_MAX_BYTES && page <= walk->pages->meta.last_page);
	for (size_t i = 0; i < key.len; i++)
		*sum += (uint8_t)key.data[i];
	for (size_t i = 0; i < value.len; i++)
		*sum += (uint8_t)value.data[i];
	return 0;
}

static int see_tree(struct pages_walk *walk, UNUSED struct slice key, struct slice value,
		    UNUSED uint64_t page)
{
	struct pages_walk inner = {.pages = walk->pages,
				   .owner = PAGES_TREES,
				   .context = walk->context,
				   .entry = see_entry};
	return pages_tree_parse(value, &inner.tree) ? 0 : pages_walk(&inner);
}

static void see_lost(struct pages_walk *walk, const struct pages_loss *loss)
{
	ASSERT(loss->why);
	(void)walk;
}

static void see_all(struct pages *pages, uint64_t *sum)
{
	size_t losses;
	struct pages_walk walk = {.pages = pages,
				  .tree = pages->meta.main,
				  .owner = PAGES_MAIN_TREE,
				  .has_trees = true,
				  .context = sum,
				  .entry = see_tree,
				  .lost = see_lost};
	struct pages_walk leaf = {
		.pages = pages, .owner = PAGES_TREES + 1, .context = sum, .entry = see_entry};
	int err = pages_walk_free(pages, NULL, see_lost, &losses);
	ASSERT(!err);
	err = pages_walk(&walk);
	ASSERT(!err);
	for (uint64_t page = 0; page <= pages->meta.last_page && page < 64; page++)
		(void)!pages_leaf(&leaf, page);
	pages_forget_free(pages);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes bytes = {data, size};
	struct pages_source source = {read_bytes, &bytes, size};
	struct pages pages;
	uint64_t sum = 0;
	if (pages_open(&pages, &source, NULL) == 0) {
		see_all(&pages, &sum);
		if (pages_use_older_meta(&pages) == 0)
			see_all(&pages, &sum);
	}
	pages_release(&pages);
	return 0;
}
