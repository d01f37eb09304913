/* Private: reading the configuration's part of the inventory. */
#ifndef INVENTORY_PRIVATE_H
#define INVENTORY_PRIVATE_H

#include "conf/tree.h"
#include "inventory/inventory.h"

enum {
	INVENTORY_CONF_MAX_BYTES = 64 << 20,
	OIDS_MAX = 10000,
	OIDSETS_MAX = 1000,
	QUEUES_MAX = 64,
	WORKERS_MAX = 64,
	CREDENTIALS_MAX = 10000,
	SOURCES_MAX = 80, /* files of OIDSets: more than the option takes */
	OIDSET_FILE_MAX_BYTES = 1 << 20,
	SECRETS_MAX_BYTES = 4 << 20,
};

/* The text of oidsets.yml, put into the program when it is built. */
extern const char inventory_shipped[];
extern const size_t inventory_shipped_bytes;

/* Where something is defined. */
struct source {
	const struct conf_node *oids, *oidsets; /* mappings; NULL: none */
	bool shipped;
};

/* What is being read. Lists grow by mem_resize_array and are put into the arena at the end. */
struct conf_reader {
	struct inventory_conf *made;
	struct errbuf *e;
	struct source sources[SOURCES_MAX];
	size_t source_count;
	struct def_list {
		/* `def` is an oid_def, an oidset ... whose first member is its name. */
		struct def {
			void *def;
			const struct conf_node *node;
			bool shipped;
		} * list;
		size_t count, max;
	} oids, oidsets, queues, credentials;
};

/* A zeroed definition of that name: a new one, or in the place of a shipped one. ERR_INVALID: given
 * twice, or a bad name. */
int def_add(struct conf_reader *r, struct def_list *list, const struct conf_node *node,
	    bool shipped, size_t bytes, void **def) MUST_CHECK;
void *def_find(const struct def_list *list, struct slice name);
/* Ascending by name, in the arena. ERR_LIMIT. */
int def_finish(struct conf_reader *r, struct def_list *list, const void *const **out,
	       size_t *count) MUST_CHECK;
int conf_reader_full(struct conf_reader *r);

int oids_read(struct conf_reader *r, const struct source *source) MUST_CHECK;
int oidsets_read(struct conf_reader *r, const struct source *source) MUST_CHECK;
/* When all are there: what they name of each other. */
int oidsets_link(struct conf_reader *r) MUST_CHECK;
/* `section` NULL: a queue for each kind. After the OIDSets. */
int queues_read(struct conf_reader *r, const struct conf_node *section) MUST_CHECK;
int credentials_read(struct conf_reader *r, const struct conf_node *root) MUST_CHECK;

/* Words for conf_node_choice. */
extern const char *const oidset_kind_words[];

#endif
