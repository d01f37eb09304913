/* The configuration of a server, read and checked as a whole: at its start, at each reload, and by
 * `granary config`. Nothing is opened but the files that it names. */
#ifndef CMD_SERVE_CONF_H
#define CMD_SERVE_CONF_H

#include "base/base.h"
#include "cmd/serve_addresses.h"

struct adaptors;
struct command_args;
struct datatypes;
struct inventory_conf;

struct serve_conf {
	struct conf *conf;
	struct inventory_conf *inventory; /* OIDSets, queues, credentials */
	struct adaptors *adaptors;
	struct datatypes *datatypes;
	struct serve_addresses addresses;
};

/* With a sentence that names option, file and line. To be released in any case. */
int serve_conf_read(struct serve_conf *read, const struct command_args *args,
		    struct errbuf *e) MUST_CHECK;
/* How the log is from now on. */
void serve_conf_set_log(const struct conf *conf);
/* Members that somebody has taken are NULL. */
void serve_conf_release(struct serve_conf *read);

#endif
