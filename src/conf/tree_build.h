/* Private: a tree from libyaml's events, for a whole file and for a section of one. */
#ifndef CONF_TREE_BUILD_H
#define CONF_TREE_BUILD_H

#define BASE_MAY_MALLOC /* <yaml.h> */
#include <yaml.h>

#include "conf/tree.h"

struct tree_builder {
	struct arena *arena;
	const char *file; /* lives as long as the arena */
	struct errbuf *e;
	struct conf_node *root;
	/* The mappings and lists that are open, with the last child of each. */
	struct conf_node *open[CONF_TREE_DEPTH_MAX], *last[CONF_TREE_DEPTH_MAX];
	size_t depth;
	struct slice key; /* read, its value comes next; NULL data: none */
	size_t key_line;
};

/* One event of the value that the tree is to be. */
int tree_builder_feed(struct tree_builder *b, const yaml_event_t *event) MUST_CHECK;
/* The value is whole. */
static inline bool tree_builder_done(const struct tree_builder *b)
{
	return b->root && b->depth == 0;
}

#endif
