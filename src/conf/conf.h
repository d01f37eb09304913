/* Configuration: one table of options (options.def) and what is made from it.
 *
 * An option is given in the file granary.yml, where a dot of its name is a level, or as `--name
 * value` or `--name=value` on the command line, which wins. What is unknown, out of range, given
 * twice or of the wrong kind is refused with file, line and reason; nothing is guessed.
 *
 * A section of the file, such as `oidsets`, is no option but a tree (tree.h); who knows its meaning
 * reads it from there.
 *
 * A struct conf is filled by one thread, then only read. Texts in it live as long as it does. A
 * reload makes a new one; then the first takes over what reloads, which only the loop's thread
 * reads. */
#ifndef CONF_CONF_H
#define CONF_CONF_H

#include "base/base.h"
#include "base/file.h"
#include "base/mem.h"

struct buf;
struct conf_node;

enum {
	CONF_FILE_MAX_BYTES = 1 << 20,
	CONF_LIST_MAX = 64,
	CONF_LEVELS_MAX = 8, /* of nesting in the file */
};

enum conf_section {
	CONF_SECTION_OIDS,
	CONF_SECTION_OIDSETS,
	CONF_SECTION_PERSIST_QUEUE,
	CONF_SECTION_ADAPTORS,
	CONF_SECTION_DATATYPES,
	CONF_SECTIONS,
};

enum conf_type {
	CONF_BOOL,     /* true, false, yes, no, on, off */
	CONF_INT,      /* decimal */
	CONF_SIZE,     /* bytes; K, M, G, T are powers of 1,024 */
	CONF_DURATION, /* ms, s, m, h, d, w; 0 needs no unit */
	CONF_TEXT,
	CONF_TAG,     /* the name of a tag; may be empty */
	CONF_CHOICE,  /* one of a few words */
	CONF_ADDRESS, /* host:port or [v6]:port; whether it may be bound is for loop/ to say */
	CONF_LIST,    /* texts; a,b,c or a sequence of the file */
};

struct conf_list {
	const char *const *items;
	size_t count;
	const size_t *lines; /* of each in the file; NULL: they stand in one */
};

/* What a row's field is in C. */
#define CONF_FIELD_BOOL     bool
#define CONF_FIELD_INT      int64_t
#define CONF_FIELD_SIZE     int64_t
#define CONF_FIELD_DURATION int64_t
#define CONF_FIELD_TEXT     const char *
#define CONF_FIELD_TAG      const char *
#define CONF_FIELD_CHOICE   const char *
#define CONF_FIELD_ADDRESS  const char *
#define CONF_FIELD_LIST     struct conf_list

enum conf_id {
#define OPTION(field, ...) CONF_ID_##field,
#include "conf/options.def"
#undef OPTION
	CONF_OPTIONS
};

struct conf_option {
	const char *name;
	enum conf_type type;
	const char *preset; /* the default, as one would write it */
	int64_t min, max;   /* in bytes, ms or items; of texts: their length */
	bool reloads;
	const char *choices; /* words, separated by blanks */
	const char *help;
	size_t offset; /* of its field in struct conf */
};

extern const struct conf_option conf_options[CONF_OPTIONS];

/* Where a value comes from: `file` NULL is the default, line 0 the command line. */
struct conf_origin {
	const char *file;
	size_t line;
};

struct conf {
#define OPTION(field, name, type, ...) CONF_FIELD_##type field;
#include "conf/options.def"
#undef OPTION
	struct conf_origin origins[CONF_OPTIONS];
	const struct conf_node *sections[CONF_SECTIONS]; /* a mapping; NULL: it is not given */
	struct arena arena;
};

/* With the defaults. */
struct conf *conf_new(void);
void conf_free(struct conf *conf);

/* `argv` holds arguments only (no program, no command). Reads the file named by --config first,
 * then the other arguments. ERR_INVALID (or the file's error) with a sentence. */
int conf_read(struct conf *conf, struct files *files, int argc, char *const *argv,
	      struct errbuf *e) MUST_CHECK;

/* The text of a file called `name`. */
int conf_read_yaml(struct conf *conf, const char *name, struct slice text,
		   struct errbuf *e) MUST_CHECK;

/* One value as written. */
int conf_set(struct conf *conf, enum conf_id id, struct slice value, struct conf_origin origin,
	     struct errbuf *e) MUST_CHECK;

/* The option of that name, or -1. */
int conf_find(struct slice name);

/* `granary.yml:3: store.map_size`, `--store.map_size`: for complaints about a value that only its
 * user can judge. */
const char *conf_where(const struct conf *conf, enum conf_id id, char *text, size_t text_bytes);
/* The same about an item of a list, by its place. */
const char *conf_where_item(const struct conf *conf, enum conf_id id, size_t item, char *text,
			    size_t text_bytes);
/* Puts that place in front of a sentence. ERR_INVALID. */
int conf_refuse(const struct conf *conf, enum conf_id id, struct errbuf *e);
int conf_refuse_item(const struct conf *conf, enum conf_id id, size_t item, struct errbuf *e);

/* Whether the option has another value in `after`. */
bool conf_differs(const struct conf *before, const struct conf *after, enum conf_id id);

/* Names of the options that differ and do not reload, separated by blanks; empty: `after` may take
 * the place of `before`. */
void conf_fixed_changes(const struct conf *before, const struct conf *after, struct buf *out);

/* Gives `conf` the values of `from` of all options that reload. Texts stay those of `from`. */
void conf_take_over(struct conf *conf, const struct conf *from);

/* What is made from the table. conf_dump can be read back as a file. */
void conf_help(struct buf *out);   /* for --help */
void conf_manual(struct buf *out); /* for the manual page of the file, roff */
void conf_dump(const struct conf *conf, struct buf *out);

#endif
