/* A file of YAML as a tree whose nodes know where they stand, for what a flat option cannot say:
 * sections of granary.yml, files of OIDSets, secrets, lists of devices.
 *
 * A tree is no larger than its text: anchors, aliases, tags and second documents are refused, keys
 * are texts and no two of a mapping are alike, texts hold no control characters, nesting has a
 * bound, and all memory is the caller's arena. Who reads a tree refuses what it does not know, with
 * conf_node_refuse: `granary.yml:12: oidsets.Fast.correlator: 'IfNmae' is not a correlator; did you
 * mean IfName?`
 *
 * A tree is filled by one thread, then only read. It lives as long as its arena. */
#ifndef CONF_TREE_H
#define CONF_TREE_H

#include "base/base.h"
#include "base/file.h"
#include "base/mem.h"

struct buf;

enum { CONF_TREE_DEPTH_MAX = 12 };

enum conf_node_type { CONF_NODE_SCALAR, CONF_NODE_MAP, CONF_NODE_LIST };

struct conf_node {
	enum conf_node_type type;
	bool quoted;       /* a scalar in quotes: a text, whatever it looks like */
	struct slice key;  /* of a member of a mapping; zero-terminated */
	struct slice text; /* of a scalar; zero-terminated */
	const char *file;
	size_t line; /* of its key, or its own where it has none */
	const struct conf_node *parent, *first, *next;
	size_t count; /* of children */
	size_t index; /* among its parent's */
};

/* `name` is what sentences call the file. An empty text is an empty mapping. ERR_INVALID with file
 * and line; ERR_LIMIT when the arena is full. */
int conf_tree_parse(const char *name, struct slice text, struct arena *arena,
		    const struct conf_node **root, struct errbuf *e) MUST_CHECK;
/* The same of a file of at most `max_bytes`; the sentence names it. */
int conf_tree_read(struct files *files, const char *path, size_t max_bytes, struct arena *arena,
		   const struct conf_node **root, struct errbuf *e) MUST_CHECK;

/* ERR_INVALID with `FILE:LINE: PATH: ` before the sentence. */
int conf_node_refuse(const struct conf_node *node, struct errbuf *e, const char *fmt, ...)
	PRINTF_LIKE(3, 4);
/* `FILE:LINE`, for sentences about something else. */
const char *conf_node_where(const struct conf_node *node, char *text, size_t text_bytes);

/* NULL: there is none. */
const struct conf_node *conf_node_member(const struct conf_node *map, const char *key);
/* Nothing was written behind the key: `key:`, `~` or `null`. */
bool conf_node_is_null(const struct conf_node *node);

/* Refuses what is no mapping, and keys that are not among `keys` (ended by NULL). */
int conf_node_check_map(const struct conf_node *node, const char *const *keys,
			struct errbuf *e) MUST_CHECK;
int conf_node_check_list(const struct conf_node *node, struct errbuf *e) MUST_CHECK;

/* A scalar of min to max bytes, UTF-8. */
int conf_node_text(const struct conf_node *node, size_t min_bytes, size_t max_bytes,
		   struct slice *text, struct errbuf *e) MUST_CHECK;
int conf_node_bool(const struct conf_node *node, bool *out, struct errbuf *e) MUST_CHECK;
int conf_node_int(const struct conf_node *node, int64_t min, int64_t max, int64_t *out,
		  struct errbuf *e) MUST_CHECK;
/* `30s`, `5m`, `1h`, as options are written; in ms. */
int conf_node_duration(const struct conf_node *node, int64_t min_ms, int64_t max_ms,
		       int64_t *out_ms, struct errbuf *e) MUST_CHECK;

/* Finds the scalar among `words` (ended by NULL): `'X' is not WHAT; did you mean Y?`, or, where
 * nothing is near, a list of them all. WHAT has its article. */
int conf_node_choice(const struct conf_node *node, const char *what, const char *const *words,
		     size_t *index, struct errbuf *e) MUST_CHECK;

/* Of `words` (ended by NULL) the one that `text` was probably meant to be, or NULL. */
const char *conf_nearest_word(struct slice text, const char *const *words);

/* The same tree in another arena, for who outlives the first; the key of the root stays. NULL: the
 * arena is full. */
const struct conf_node *conf_node_copy(const struct conf_node *root,
				       struct arena *arena) MUST_CHECK;

/* Writes the node as YAML that gives the same tree, `indent` blanks deep. */
void conf_node_dump(const struct conf_node *node, int indent, struct buf *out);

#endif
