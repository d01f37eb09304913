/* Private: what one option's value looks like as text. */
#ifndef CONF_OPTION_H
#define CONF_OPTION_H

#include "conf/conf.h"

const char *conf_type_name(enum conf_type type);

/* The current value as one would write it, into `out`. */
void conf_print_value(const struct conf *conf, enum conf_id id, struct buf *out);
/* A bound (min, max) likewise. */
void conf_print_number(enum conf_type type, int64_t number, struct buf *out);

/* The first option of the section `name` (`store` has `store.map_size`), or NULL: it is none. */
const char *conf_in_section(struct slice name);

/* "did you mean" for a name that does not exist, or NULL. */
const char *conf_nearest(struct slice name);

#endif
