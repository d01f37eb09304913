/* LMDB's data file read without LMDB, which trusts every byte of it: for files that may be damaged.
 *
 * Nothing that a page says is used before it has been compared with a limit. A page is taken only
 * for what it can be: of its own number, of the kind that its level in the tree has, with entries
 * that fill it exactly, with keys that ascend and lie between those of the pages above it, and in
 * one place only. What is refused is told as a loss, with the keys that go with it. Reads by
 * pread: an error of the disk is a loss, too, and no signal.
 *
 * The layout (LMDB 0.9, 64 bits, little endian) is drawn in pages.c. Private to store/lmdb; one
 * thread. */
#ifndef STORE_LMDB_PAGES_H
#define STORE_LMDB_PAGES_H

#include "base/base.h"

enum {
	PAGES_DEPTH_MAX = 32, /* as LMDB's own */
	PAGES_KEY_MAX_BYTES = 511,
	PAGES_TREE_BYTES = 48,
	/* Owners of pages. Trees of a caller are numbered from PAGES_TREES on. */
	PAGES_NOBODY = 0,
	PAGES_FREE,
	PAGES_FREE_TREE,
	PAGES_MAIN_TREE,
	PAGES_TREES,
};

#define PAGES_NO_ROOT UINT64_MAX

/* Where the bytes come from. */
struct pages_source {
	/* All `len` bytes; else an error. */
	int (*read)(void *context, uint64_t offset, void *to, size_t len);
	void *context;
	uint64_t bytes; /* how long the file is */
};

struct pages_tree {
	uint16_t flags, depth;
	uint64_t branches, leaves, overflows, entries, root;
};

struct pages_meta {
	const char *fault; /* why it cannot be used; NULL: it can */
	uint64_t last_page, transaction;
	size_t page_bytes;
	struct pages_tree free, main;
};

struct pages {
	struct pages_source source;
	struct pages_meta metas[2];
	struct pages_meta meta; /* the one in use */
	uint8_t *owners;        /* by page */
	uint64_t newest_freed;  /* the highest transaction on the free list */
};

/* What cannot be had. `from` <= keys < `to`; empty: no bound. */
struct pages_loss {
	uint64_t page;
	const char *why;
	struct slice from, to;
	bool one; /* only the entry of the key `from` */
};

/* One way through a tree, in order of keys. The caller fills in all but `seen`. */
struct pages_walk {
	struct pages *pages;
	struct pages_tree tree;
	unsigned owner;        /* marks its pages; PAGES_NOBODY: a look-up, which marks nothing */
	bool has_trees;        /* its values are roots of trees (the main tree) */
	bool only_root;        /* no page below the root is read */
	bool again;            /* only pages that an earlier walk has marked with this owner */
	struct slice from, to; /* other keys may be passed over; empty: no bound */
	void *context;
	/* The slices are valid during the call. An error ends the walk. NULL: none is told. */
	int (*entry)(struct pages_walk *walk, struct slice key, struct slice value, uint64_t page);
	void (*lost)(struct pages_walk *walk, const struct pages_loss *loss);
	struct pages_tree seen; /* counts of what was walked */
	size_t losses;
};

/* Looks at both meta pages and takes the newer one that can be used. ERR_DAMAGED: there is none,
 * and e says so. pages_release in any case. */
int pages_open(struct pages *pages, const struct pages_source *source, struct errbuf *e) MUST_CHECK;
void pages_release(struct pages *pages);
/* Takes the older one, or that one, if it can be used; no page has an owner then. */
int pages_use_older_meta(struct pages *pages) MUST_CHECK;
int pages_use_meta(struct pages *pages, const struct pages_meta *meta) MUST_CHECK;

int pages_walk(struct pages_walk *walk) MUST_CHECK;

/* Marks the pages of the free list, and those that it takes itself. Losses are told with what is
 * the matter. */
int pages_walk_free(struct pages *pages, void *context,
		    void (*lost)(struct pages_walk *walk, const struct pages_loss *loss),
		    size_t *losses) MUST_CHECK;
/* Whether it is of the transaction of the meta page: each but the very first gives pages back. */
bool pages_free_is_newest(const struct pages *pages);
/* Takes all those marks back: who does not trust the list. */
void pages_forget_free(struct pages *pages);

/* A value of the main tree. ERR_DAMAGED. */
int pages_tree_parse(struct slice value, struct pages_tree *tree) MUST_CHECK;

/* Whether bytes of memory are a leaf of that number which leads nowhere out of itself. */
bool pages_leaf_is_sound(const uint8_t *page, size_t page_bytes, uint64_t number);

/* A leaf by itself, wherever it stands in its tree: calls walk->entry with each entry, whose pages
 * are then walk->owner's, as the leaf itself. ERR_DAMAGED: it is no leaf, or belongs to somebody.
 */
int pages_leaf(struct pages_walk *walk, uint64_t page) MUST_CHECK;

#endif
