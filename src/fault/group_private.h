/* The parts of grouping (group.h): of one report at a time. */
#ifndef FAULT_GROUP_PRIVATE_H
#define FAULT_GROUP_PRIVATE_H

#include "base/buf.h"
#include "fault/group.h"
#include "wire/number.h"

enum {
	GROUP_LOOK_MAX_BYTES = 1024, /* how far a scanner looks ahead for an end */
	GROUP_CYCLE_MAX = 4,         /* frames of a recursion that is folded */
	GROUP_EXCEPTIONS_MAX = 50,   /* of a chain */
	GROUP_TEXT_MAX_BYTES = 4096, /* of a message or a statement that is normalised */
};

/* A part of `text`; what lies beyond its end is asserted. */
static inline struct slice grouping_part(struct slice text, size_t from, size_t to)
{
	ASSERT(from <= to && to <= text.len);
	return (struct slice){text.data ? text.data + from : "", to - from};
}

static inline bool grouping_at(struct slice text, size_t at, struct slice what)
{
	return at <= text.len && what.len <= text.len - at &&
	       memcmp(text.data + at, what.data, what.len) == 0;
}

static inline bool grouping_begins(struct slice text, struct slice what)
{
	return grouping_at(text, 0, what);
}

/* Where `what` begins, from `at` on, within GROUP_LOOK_MAX_BYTES; text.len: nowhere. */
size_t grouping_find(struct slice text, size_t at, struct slice what);
/* The last byte that is `c`, among the last GROUP_LOOK_MAX_BYTES; text.len: nowhere. */
size_t grouping_find_last(struct slice text, char c);
/* Without blanks around it. */
struct slice grouping_trim(struct slice text);
bool grouping_is_letter(char c); /* of ASCII, or a byte of another character */

static inline bool grouping_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool grouping_is_word(char c)
{
	return grouping_is_letter(c) || number_is_digit(c) || c == '_';
}

/* ---- What varies is taken out of texts (group_text.c, group_statement.c, group_name.c) --------
 */

/* The first two lines that are not empty, with # for numbers, ids, addresses of all kinds, and
 * quoted values. */
void grouping_message(struct slice text, struct buf *to);
/* SQL with ? for values, lists of them folded, without comments, in small letters. */
void grouping_statement(struct slice text, struct buf *to);
/* A function, a module or the base name of a file: # for hashes, long numbers and addresses. */
void grouping_name(struct slice text, struct buf *to);

/* ---- Making (group.c) ------------------------------------------------------------------------ */

struct grouping_frame {
	struct slice module, file, function; /* as they are; len 0: not known */
	int application;                     /* 1 it is, 0 it is not, -1: not said */
};

struct grouping_making {
	struct arena *arena;
	struct fault_group *group;
	struct buf text; /* of the word that is made */
	size_t exceptions, frames, application_frames;
	size_t trace;             /* the word at which the frames of this trace begin */
	struct slice type, value; /* of the last exception */
	bool full;                /* the arena is */
};

/* A copy of the text. */
void grouping_add(struct grouping_making *making, enum fault_word_kind kind, bool application,
		  struct slice text);
static inline bool grouping_same_word(const struct fault_word *a, const struct fault_word *b)
{
	return a->kind == b->kind && a->application == b->application &&
	       slice_equal(a->text, b->text);
}

/* A trace begins: frames before it are of another one. */
void grouping_begin_trace(struct grouping_making *making);
/* Whether the frame lies in a framework, a library or the language. */
bool grouping_is_foreign(const struct grouping_frame *frame);
bool grouping_is_of_go(const struct grouping_frame *frame);
/* A frame without function and place adds nothing. Frames that repeat the last ones are folded. */
void grouping_add_frame(struct grouping_making *making, const struct grouping_frame *frame);
/* An exception of a chain, before or after its frames. */
void grouping_add_exception(struct grouping_making *making, struct slice type, struct slice value);

/* ---- Traces (group_trace.c, group_event.c) --------------------------------------------------- */

void grouping_add_trace(struct grouping_making *making, struct slice text);
/* Exceptions and traces as Sentry has them: `exceptions`, else `stacktrace`. */
void grouping_add_events(struct grouping_making *making, const struct json *report);
/* The statement that took too long, of a time-out; len 0: it is none, or no statement is known. */
struct slice grouping_statement_of(const struct json *report, struct slice type, struct slice value,
				   bool has_frames);

#endif
