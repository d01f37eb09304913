/* What Apache Chukwa's agent reads and writes as text: which adaptors it runs. A line adds one
 * (initial_adaptors, a checkpoint, the control socket):
 *
 *     add [NAME =] CLASS DATATYPE [PARAMS...] OFFSET
 *
 *     add filetailer.LWFTAdaptor syslog /var/log/my file 0
 *     ADD adaptor_7 = DirTailingAdaptor raw /var/log *.log filetailer.LWFTAdaptor 1234567890123
 *
 * Words are separated by blanks and tabs. The offset is the last word; the parameters are all that
 * stands between it and the datatype, with the blanks in them. A line of a checkpoint differs in
 * nothing. Empty lines and lines that begin with # say nothing.
 *
 * Different from Chukwa: a line has to be UTF-8 without control characters, since names of streams
 * are made of it; an adaptor that is told to begin in front of its file is refused here, where
 * Chukwa's fails later; a directory may hold blanks.
 *
 * Pure, any thread. */
#ifndef WIRE_CHUKWA_AGENT_H
#define WIRE_CHUKWA_AGENT_H

#include "base/mem.h"

enum {
	CHUKWA_LINE_MAX_BYTES = 8192,
	CHUKWA_ID_MAX_BYTES = 255, /* of an adaptor, with its prefix */
};

/* What the names of all classes begin with at Chukwa; it may be left out. */
#define CHUKWA_PACKAGE "org.apache.hadoop.chukwa.datacollection.adaptor."
/* What ids begin with. */
#define CHUKWA_ID_PREFIX "adaptor_"

/* What offsets are at most: they are signed numbers of 64 bits at Chukwa. */
#define CHUKWA_OFFSET_MAX ((uint64_t)INT64_MAX)

struct chukwa_add {
	struct slice id; /* with the prefix adaptor_, in the arena */
	struct slice class, datatype, params;
	uint64_t offset;
};

/* Reads one line. Where it has no name, the id is adaptor_ and the MD5 of class, datatype and
 * parameters, so that one adaptor under two spellings of its class has two ids, as at Chukwa.
 * ERR_NOT_FOUND: the line is empty, or a comment. ERR_INVALID with a sentence. ERR_LIMIT: the arena
 * is full. Whether class and datatype are any is not looked at. */
int chukwa_add_parse(struct slice line, struct arena *arena, struct chukwa_add *add,
		     struct errbuf *e) MUST_CHECK;

/* ---- Classes of adaptors --------------------------------------------------------------------- */

enum chukwa_kind {
	CHUKWA_TAIL,         /* follows a file: [first] path */
	CHUKWA_FILE,         /* sends a file when it is complete: [first] path [delete] */
	CHUKWA_DIRECTORY,    /* starts an adaptor for each file: directory [pattern] class */
	CHUKWA_EXEC,         /* runs a command again and again: [seconds] command */
	CHUKWA_UDP,          /* takes datagrams: port */
	CHUKWA_SYSLOG,       /* the same of syslog */
	CHUKWA_REST,         /* asks a server again and again: uri seconds */
	CHUKWA_HEARTBEAT,    /* asks who runs: (checker, ...) seconds */
	CHUKWA_HOST_METRICS, /* metrics of its machine: [seconds] */
	CHUKWA_BUFFERED,     /* keeps for sending again what another adaptor says */
	CHUKWA_TEST,         /* makes data of its own */
	CHUKWA_NEEDS_JAVA,   /* what it reads is objects or interfaces of Java */
};

/* Where the records of a chunk end. */
enum chukwa_records {
	CHUKWA_RAW,         /* at the end of the chunk, which is anywhere */
	CHUKWA_WHOLE_LINES, /* at the end of the chunk, which is behind a newline */
	CHUKWA_LINES,       /* behind each newline */
	CHUKWA_ESCAPED,     /* behind each newline that is not preceded by Ctrl-D, 0x04 */
};

struct chukwa_class {
	struct slice name; /* without the package that all of them are in */
	enum chukwa_kind kind;
	enum chukwa_records records; /* of a tail and a file */
	bool regex;                  /* of a directory: its pattern is a regular expression */
	bool rotated;                /* of a tail: its parameters may begin with d:MTIME */
};

/* By its name as given, or with the package org.apache.hadoop.chukwa.datacollection.adaptor before
 * it. NULL: it is none of Chukwa's. */
const struct chukwa_class *chukwa_class_find(struct slice name);

/* What a line says. Lines of the kinds from buffered on have the class alone. Texts lie in the
 * line. Paths may be relative, and hold blanks. */
struct chukwa_adaptor {
	const struct chukwa_class *class;
	uint64_t first;    /* of a tail and a file: the offset of the file's first byte */
	bool delete;       /* of a file: when it was sent */
	struct slice path; /* of the file or directory */
	/* What a directory has, whose offset is the time of the last look at it in ms. */
	struct slice pattern; /* of the files' names; len 0: all of them */
	struct slice child_name;
	const struct chukwa_class *child; /* a tail or a file */
	uint32_t seconds; /* of exec, rest, heartbeat and host metrics: between two runs */
	struct slice command;
	struct slice uri;
	struct slice checkers; /* of a heartbeat: those left (chukwa_take_checker) */
	struct slice port;     /* of udp and syslog: a number, 1 to 65535 */
};

/* ERR_INVALID with a sentence: there is no such class, or its parameters are wrong. What RCheck's
 * parameters say of the time of a file (d:MTIME) is passed over. */
int chukwa_adaptor_read(const struct chukwa_add *add, struct chukwa_adaptor *adaptor,
			struct errbuf *e) MUST_CHECK;

/* Takes the next checker of a heartbeat: `ChukwaStatusChecker`, which is the agent itself, or
 * `HttpStatusChecker NAME URI`. *uri len 0: the agent. ERR_NOT_FOUND: there is none left.
 * ERR_INVALID with a sentence. */
int chukwa_take_checker(struct slice *checkers, struct slice *uri, struct errbuf *e) MUST_CHECK;

#endif
