/* What Chukwa's agent has in its directory of configuration, for an agent that takes its place:
 * chukwa-agent-conf.xml, initial_adaptors, and the checkpoint, wherever the first says that it is.
 * These files are read only.
 *
 * Chukwa's agent must not run any more: what it sends from then on is not known here. */
#ifndef AGENT_CHUKWA_IMPORT_H
#define AGENT_CHUKWA_IMPORT_H

#include "agent/adaptors.h"
#include "base/file.h"
#include "wire/hadoop_conf.h"

enum {
	CHUKWA_IMPORT_FILE_MAX_BYTES = 16 << 20, /* of initial_adaptors, and of a checkpoint */
	CHUKWA_IMPORT_MAX_BYTES = 16 << 20,      /* of memory, of chukwa-agent-conf.xml */
};

struct chukwa_import {
	struct arena arena;
	/* What chukwa-agent-conf.xml says; NULL: nothing. */
	struct slice cluster;
	const char *checkpoint_directory;
	const char *checkpoint_name; /* what the names of checkpoints begin with */
	const char *initial_adaptors;
	struct hadoop_conf conf; /* all of it */
	/* What the import came to. */
	const char *checkpoint; /* the file that was read; NULL: none is there */
	size_t added, skipped;  /* adaptors; lines that are none here */
};

void chukwa_import_init(struct chukwa_import *import);
void chukwa_import_release(struct chukwa_import *import);

/* Reads the text of a chukwa-agent-conf.xml. Properties of Chukwa that are not known here are named
 * in one line of the log. ERR_INVALID, or ERR_LIMIT where it is too large, with a sentence. */
int chukwa_import_conf(struct chukwa_import *import, const char *file_name, struct slice text,
		       struct errbuf *e) MUST_CHECK;

/* Adds what the files of a directory say. If two lines have one id, that of the checkpoint counts.
 * `import` was initialised, and holds what was found. With a sentence: ERR_NOT_FOUND, there is none
 * of these files, or one that the configuration names is not there; ERR_INVALID, ERR_LIMIT, or why
 * a file cannot be read. Some adaptors may be added then. */
int chukwa_import(struct files *files, const char *directory, struct adaptors *adaptors,
		  struct chukwa_import *import, struct errbuf *e) MUST_CHECK;

#endif
