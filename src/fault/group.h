/* The group of a report: reports of one fault have one group, whatever else of them differs.
 *
 *     fingerprint   what the sender says (Sentry), with `{{ default }}` for the words below it
 *     frames        types of the exceptions, and the frames of their traces, without line numbers
 *     message       type and normalised message, where no frame is known
 *     context       what the request was for, where nothing of these is known
 *
 * A time-out has the normalised statement among its words, if one is known: that of its message; or
 * the longest of the timeline, where it has no frames.
 *
 * A group is made of words. It has two hashes of them: of the application's frames only, and of all
 * frames. Where no frame is the application's the two are one.
 *
 * What varies between reports of one fault is left out of words: lines, addresses, ids, hashes,
 * versions, numbers that a compiler gives, how deep a recursion was.
 *
 * Pure; memory from the caller's arena. Work is linear in the report's size. */
#ifndef FAULT_GROUP_H
#define FAULT_GROUP_H

#include "base/mem.h"
#include "wire/json.h"

enum {
	FAULT_GROUP_VERSION = 1,     /* of these rules */
	FAULT_GROUP_NAME_BYTES = 22, /* version, `-` and 20 hexadecimal digits */
	FAULT_GROUP_WORDS_MAX = 400, /* later ones are left out */
	FAULT_GROUP_WORD_MAX_BYTES = 400,
	FAULT_GROUP_TITLE_MAX_BYTES = 200,
};

enum fault_group_rule {
	FAULT_GROUPED_BY_FINGERPRINT,
	FAULT_GROUPED_BY_FRAMES,
	FAULT_GROUPED_BY_MESSAGE,
	FAULT_GROUPED_BY_CONTEXT,
	FAULT_GROUP_RULES
};

enum fault_word_kind {
	FAULT_WORD_FINGERPRINT,
	FAULT_WORD_TYPE,
	FAULT_WORD_FRAME,
	FAULT_WORD_STATEMENT,
	FAULT_WORD_MESSAGE,
	FAULT_WORD_CONTEXT,
	FAULT_WORD_KINDS
};

struct fault_word {
	enum fault_word_kind kind;
	bool application; /* it is in both hashes; else in that of all frames only */
	struct slice text;
};

struct fault_group {
	enum fault_group_rule rule;
	struct slice name; /* of the application's frames */
	struct slice all;  /* of all frames; the same where that hash is */
	struct slice title;
	struct fault_word *words;
	size_t count;
};

/* `report`: an object of attributes, as a report's body is. ERR_LIMIT: the arena is full. */
int fault_group_make(const struct json *report, struct arena *arena,
		     struct fault_group *group) MUST_CHECK;

/* Whether an exception is a time-out, by its type or its message. */
bool fault_group_is_timeout(struct slice type, struct slice message);

/* What a rule and a kind of word are called in answers. */
const char *fault_group_rule_name(enum fault_group_rule rule);
const char *fault_word_kind_name(enum fault_word_kind kind);

#endif
