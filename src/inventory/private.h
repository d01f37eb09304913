/* Private: reading the configuration's part of the inventory. */
#ifndef INVENTORY_PRIVATE_H
#define INVENTORY_PRIVATE_H

#include "conf/conf.h"
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
struct inventory_source {
	const struct conf_node *oids, *oidsets; /* mappings; NULL: none */
	bool shipped;
};

/* What is being read. Lists grow by mem_resize_array and are put into the arena at the end. */
struct conf_reader {
	struct inventory_conf *made;
	struct errbuf *e;
	const struct conf_node *sections[CONF_SECTIONS];
	struct inventory_source sources[SOURCES_MAX];
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

int oids_read(struct conf_reader *r, const struct inventory_source *source) MUST_CHECK;
int oidsets_read(struct conf_reader *r, const struct inventory_source *source) MUST_CHECK;
/* When all are there: what they name of each other. */
int oidsets_link(struct conf_reader *r) MUST_CHECK;
/* `section` NULL: a queue for each kind. After the OIDSets. */
int queues_read(struct conf_reader *r, const struct conf_node *section) MUST_CHECK;
int credentials_read(struct conf_reader *r, const struct conf_node *root, bool shipped) MUST_CHECK;

/* From definitions that stand elsewhere than in the configuration: of that the secrets file alone
 * counts. Copies what the nodes hold. As inventory_conf_read. */
int inventory_conf_of(const struct conf_node *oids, const struct conf_node *oidsets,
		      const struct conf *conf, struct files *files, struct inventory_conf **made,
		      struct errbuf *e) MUST_CHECK;

/* ---- Devices -------------------------------------------------------------------------------- */

enum { DEVICE_MAX_BYTES = 128 << 10, DEVICE_PROBLEM_MAX_BYTES = 400 };

/* `state` NULL: a new one. What `spec` names and the configuration does not have becomes the
 * device's problem. NULL: it does not fit into DEVICE_MAX_BYTES. One reference. */
struct device *device_new(const struct device_spec *spec, struct slice host, uint16_t port,
			  struct inventory_conf *conf, struct device_state *state);
void device_take(const struct device *device);
void device_release(const struct device *device);

/* Everything of it is well-formed, and (unless `known` is NULL) known. ERR_INVALID with a sentence
 * that names device and place. */
int device_spec_check(const struct device_spec *spec, const struct inventory_conf *known,
		      struct slice *host, uint16_t *port, struct errbuf *e) MUST_CHECK;
/* Of a name that no device had: that it can be asked for. ERR_INVALID likewise. Those that are
 * stored stay as they are. */
int device_name_check_new(const struct device_spec *spec, struct errbuf *e) MUST_CHECK;
/* `FILE:LINE: device NAME: ` before the sentence; returns `err`. */
int device_refuse(const struct device_spec *spec, struct errbuf *e, int err, const char *fmt, ...)
	PRINTF_LIKE(4, 5);

/* The list of a device_list_parse, as a node. */
int device_list_read(const struct conf_node *list, struct arena *arena, struct device_spec **specs,
		     size_t *count, struct errbuf *e) MUST_CHECK;

/* As it is stored. ERR_INVALID: nobody wrote that. */
void device_encode(const struct device *device, struct buf *out);
int device_decode(struct slice name, struct slice text, struct arena *arena,
		  struct device_spec *spec) MUST_CHECK;

struct device_state *device_state_new(void);
void device_state_take(struct device_state *state);
void device_state_release(struct device_state *state);

/* `devices` is copied, with a reference to each. */
struct inventory *inventory_new(struct inventory_conf *conf, const struct device *const *devices,
				size_t count, uint64_t number);

/* ---- Versioned rows ------------------------------------------------------------------------- */

enum { ROW_NAME_KEPT_BYTES = 128, ROW_NAME_CUT_BYTES = ROW_NAME_KEPT_BYTES + 1 + 32 };

/* How a row lies in the table: column end, name, begin. */
struct row_column {
	struct store_parts parts;
	uint8_t end[8], begin[8];
	bool is_cut; /* the name is longer than a column takes: the value has it */
	char cut[ROW_NAME_CUT_BYTES + 1];
};
struct store_parts row_key(enum oidset_kind kind, struct slice device);
/* Of the cell that says when the newest walk was that is in the rows (i64, ms). */
struct store_parts walk_key(enum oidset_kind kind, struct slice device);
struct store_parts walk_column(void);
void row_column(struct slice name, int64_t begin_ms, int64_t end_ms, struct row_column *column);
/* A name that is not UTF-8 is written out, as one that granary polls itself is: it becomes part of
 * a column. ERR_LIMIT: the arena is full. */
int row_name_clean(struct slice *name, struct arena *arena) MUST_CHECK;
/* False: it is the same. True: an older version put the row there, cut within a character. */
bool row_column_of_before(struct slice name, int64_t begin_ms, int64_t end_ms,
			  struct row_column *column);
/* What the cell of such a column holds of `row`; `scratch` has it where the name is cut. ERR_LIMIT:
 * it has no room. */
int row_cell_value(const struct row_column *column, const struct inventory_row *row,
		   struct buf *scratch, struct slice *value) MUST_CHECK;
/* False: no row has such a column. */
bool row_of_cell(const struct store_cell *cell, struct inventory_row *row);

/* Words for conf_node_choice. */
extern const char *const oidset_kind_words[];

#endif
