/* Facts of a report: what lists, summaries and filters need of it, small enough to be kept beside
 * each report and read by the million. Texts are cut to their limits, between characters. */
#ifndef FAULT_FACTS_H
#define FAULT_FACTS_H

#include "base/base.h"
#include "base/mem.h"

enum {
	FAULT_ID_MAX_BYTES = 200,
	FAULT_CONTEXT_MAX_BYTES = 512,
	FAULT_EXCEPTION_MAX_BYTES = 512,
	FAULT_LABEL_MAX_BYTES = 200, /* level, release, environment, host, user, title */
	/* At most so many tags of a report are counted (tags.h). Sentry has the same limits for
	 * their names and values. */
	FAULT_REPORT_TAGS_MAX = 20,
	FAULT_TAG_NAME_MAX_BYTES = 32,
	FAULT_TAG_VALUE_MAX_BYTES = 200,
	FAULT_TAG_MAX_BYTES = FAULT_TAG_NAME_MAX_BYTES + 1 + FAULT_TAG_VALUE_MAX_BYTES,
	FAULT_TAGS_MAX_BYTES = FAULT_REPORT_TAGS_MAX * (FAULT_TAG_MAX_BYTES + 1),
};

/* The place of a text in struct fault_facts. The numbers are on disk: never renumber, only append.
 */
enum fault_text {
	FAULT_CONTEXT = 0,
	FAULT_EXCEPTION = 1,
	FAULT_LEVEL = 2,
	FAULT_RELEASE = 3,
	FAULT_ENVIRONMENT = 4,
	FAULT_HOST = 5,
	FAULT_USER = 6,
	FAULT_GROUP = 7,     /* its name (group.h) */
	FAULT_GROUP_ALL = 8, /* that of all frames, where it is another one */
	FAULT_TITLE = 9,     /* of its group */
	FAULT_TEXTS_LISTED,  /* those before it are in lists, and searches and filters know them */
	FAULT_TAGS = FAULT_TEXTS_LISTED, /* all of its tags in one (tags.h) */
	FAULT_TEXTS
};
/* What it is called in answers and questions. */
const char *fault_text_name(enum fault_text text);
/* How long a text may be that was stored under a number, which may be one that is not known. */
size_t fault_text_max_bytes(uint64_t number);
/* Copies as much of a text as has room, between characters, with U+FFFD for a NUL and for what is
 * no UTF-8; returns how many bytes stand at `to` then. */
size_t fault_text_cut(char *to, struct slice text, size_t max_bytes);
/* The same of a text that becomes this fact, or that facts are compared with. One that has no room
 * is closed by a hash of all of it, so that two users are never one. What is a fact stays so. */
size_t fault_fact_cut(char to[FAULT_CONTEXT_MAX_BYTES], enum fault_text fact, struct slice text);

struct fault_facts {
	struct slice texts[FAULT_TEXTS]; /* len 0: the report has none */
	int64_t duration_us;             /* -1: none is known */
	int64_t statements;              /* of a database, in the timeline; -1: it has none */
	int64_t attachments;             /* files that came with it (attachment.h); 0: none */
};
/* The texts become copies in the arena. ERR_LIMIT. */
int fault_facts_keep(struct fault_facts *facts, struct arena *arena) MUST_CHECK;

#endif
