/* Adaptors: what an agent follows, as its configuration says it (doc/agent.md). */
#ifndef AGENT_ADAPTOR_H
#define AGENT_ADAPTOR_H

#include <stdatomic.h>

#include "agent/followed.h"

enum adaptor_kind {
	ADAPTOR_TAIL,      /* what is written to a file */
	ADAPTOR_DIRECTORY, /* what is written to files whose paths have a pattern */
	ADAPTOR_FILE,      /* a file, once, when it is written no more */
	/* Inlets (inlet.h), which are no files: */
	ADAPTOR_EXEC,      /* what a command prints, run again and again */
	ADAPTOR_UDP,       /* datagrams, each a record */
	ADAPTOR_TCP,       /* lines of connections */
	ADAPTOR_SYSLOG,    /* messages, by both */
	ADAPTOR_HTTP,      /* what is behind a URL, asked for again and again */
	ADAPTOR_SYSTEM,    /* this machine's metrics */
	ADAPTOR_HEARTBEAT, /* who runs */
	ADAPTOR_JOURNAL,   /* entries of systemd's journal */
	ADAPTOR_KINDS
};

static inline bool adaptor_is_inlet(enum adaptor_kind kind)
{
	return kind >= ADAPTOR_EXEC;
}

/* Whether it is an inlet that needs a thread of its own. */
static inline bool adaptor_runs(enum adaptor_kind kind)
{
	return kind == ADAPTOR_EXEC || kind >= ADAPTOR_HTTP;
}

enum adaptor_pattern {
	ADAPTOR_GLOB,       /* of the whole path: `/var/log/app/?.log`; `*` goes over no `/` */
	ADAPTOR_NAMES,      /* of the file's name, in the directory and those below it */
	ADAPTOR_REGEX,      /* of the path from the directory on, likewise */
	ADAPTOR_NAME_REGEX, /* of the file's whole name, likewise */
};

struct adaptor {
	enum adaptor_kind kind;
	struct slice name, datatype;
	/* Zero-terminated. Of files absolute, of ADAPTOR_DIRECTORY where to begin; of an inlet what
	 * it is: a command, an address and a port, a URL, a tenant (of ADAPTOR_SYSTEM), components
	 * with a blank between, a path or ADAPTOR_JOURNAL_LOCAL. */
	struct slice path;
	enum adaptor_pattern pattern;
	const char *glob; /* of the regular expressions their texts */
	struct regex regex;
	struct followed_rule rule;    /* of inlets, the kind of records and from_end alone */
	int64_t every_ms, timeout_ms; /* of inlets that ask again and again */
	bool datagrams, connections;  /* how what comes over the network is taken */
	/* A syslog adaptor's datatypes, by facility (wire/syslog.h). An empty one: messages of the
	 * facility have the adaptor's datatype. NULL: all messages have. */
	const struct slice *datatypes;
};

/* A configuration, which owns its texts, but for those of another one that it was made of. */
struct adaptors {
	struct arena arena;
	struct adaptors *base; /* NULL: none */
	atomic_uint users;
	struct adaptor *list; /* in the arena */
	size_t count, capacity;
};

#endif
