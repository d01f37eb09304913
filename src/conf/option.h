/* Private: what one option's value looks like as text. */
#ifndef CONF_OPTION_H
#define CONF_OPTION_H

#include "conf/conf.h"

const char *conf_type_name(enum conf_type type);
/* What a value of it looks like, for "is not ...". */
const char *conf_type_syntax(enum conf_type type);

/* As the values of options are written. False: it is none, or does not fit 64 bits. */
bool conf_parse_bool(struct slice text, bool *value);
bool conf_parse_number(enum conf_type type, struct slice text, int64_t *number);

/* After a list was set from a file where each of its items has a line. */
int conf_keep_lines(struct conf *conf, enum conf_id id, const size_t *lines,
		    struct errbuf *e) MUST_CHECK;

/* Edit distance; SIZE_MAX where a text is too long for a slip. */
size_t conf_distance(struct slice a, struct slice b);

/* Plain where YAML cannot take it for anything else, else (and if `quoted`) in double quotes. */
void conf_print_scalar(struct slice text, bool quoted, struct buf *out);

/* The current value as one would write it, into `out`. */
void conf_print_value(const struct conf *conf, enum conf_id id, struct buf *out);
/* A bound (min, max) likewise. */
void conf_print_number(enum conf_type type, int64_t number, struct buf *out);

/* A name of the file's top that is no option but a tree. */
struct conf_section_def {
	const char *name, *help, *example;
	bool reloads; /* a change of it takes effect without a restart */
};
extern const struct conf_section_def conf_section_defs[CONF_SECTIONS];
/* The section of that name, or -1. */
int conf_section_find(struct slice name);

/* The first option of the section `name` (`store` has `store.map_size`), or NULL: it is none. */
const char *conf_in_section(struct slice name);

/* "did you mean" for a name that does not exist, or NULL. */
const char *conf_nearest(struct slice name);

#endif
