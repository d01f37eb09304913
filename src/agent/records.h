/* Where the records of a file end: what is sent of it are whole records wherever that is possible.
 *
 * The bytes stay as they are in the file; what is a record is said beside them. A record that is
 * longer than a chunk, or whose end does not come, is cut, and the chunk says so.
 *
 * Pure; any thread. */
#ifndef AGENT_RECORDS_H
#define AGENT_RECORDS_H

#include "base/base.h"
#include "wire/regex.h"

enum records_kind {
	RECORDS_RAW,       /* whatever is there is a record */
	RECORDS_LINES,     /* lines */
	RECORDS_ESCAPED,   /* lines; one whose newline stands behind a byte 4 goes on */
	RECORDS_BEGINNING, /* a record begins with a line that has a pattern */
	RECORDS_DOCKER,    /* lines of Docker's json-file; a partial one goes on */
	RECORDS_CRI,       /* lines of Kubernetes' runtimes (CRI); a partial one goes on */
	RECORDS_KINDS
};

/* As they are written in a configuration; ended by NULL. */
extern const char *const records_words[RECORDS_KINDS + 1];

struct records_rule {
	enum records_kind kind;
	struct regex begins; /* of RECORDS_BEGINNING */
};

enum { RECORDS_ENDS_MAX = 12000 }; /* of one chunk: they take 3 bytes at most */

struct records_found {
	/* Bytes up to the end of the last whole record; 0: none is whole. */
	size_t whole_bytes;
	/* Offsets behind the records; RECORDS_LINES lists none. */
	uint32_t ends[RECORDS_ENDS_MAX];
	size_t end_count;
};

/* Finds the whole records at the beginning of `data`. *work: as regex_search has it. */
void records_find(const struct records_rule *rule, struct slice data, struct records_found *found,
		  uint64_t *work);

#endif
