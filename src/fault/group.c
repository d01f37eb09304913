#include "fault/group_private.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/hash.h"
#include "base/utf8.h"

enum {
	GROUP_FINGERPRINT_MAX = 50, /* parts that are heeded */
	GROUP_CUT_DIGITS = 17,      /* ~ and 16 digits */
};

static const char *const grouping_rules[] = {"fingerprint", "frames", "message", "context"};
static const char *const grouping_kinds[] = {"fingerprint", "type",    "frame",
					     "statement",   "message", "context"};
_Static_assert(ARRAY_LEN(grouping_rules) == FAULT_GROUP_RULES, "each has a name");
_Static_assert(ARRAY_LEN(grouping_kinds) == FAULT_WORD_KINDS, "each has a name");

const char *fault_group_rule_name(enum fault_group_rule rule)
{
	ASSERT(rule < FAULT_GROUP_RULES);
	return grouping_rules[rule];
}

const char *fault_word_kind_name(enum fault_word_kind kind)
{
	ASSERT(kind < FAULT_WORD_KINDS);
	return grouping_kinds[kind];
}

/* ---- Words ----------------------------------------------------------------------------------- */

/* A long one is cut and closed by a hash, so that it stays another one than its likes. */
static struct slice grouping_copy(struct grouping_making *making, struct slice text)
{
	struct slice copy;
	if (text.len <= FAULT_GROUP_WORD_MAX_BYTES) {
		copy = arena_copy(making->arena, text);
	} else {
		size_t kept = utf8_cut(text, FAULT_GROUP_WORD_MAX_BYTES - GROUP_CUT_DIGITS);
		char *cut = arena_printf(making->arena, "%.*s~%016" PRIx64, (int)kept, text.data,
					 hash64(text.data, text.len, 0));
		copy = cut ? slice_of(cut) : (struct slice){NULL, 0};
	}
	making->full |= !copy.data;
	return copy;
}

void grouping_add(struct grouping_making *making, enum fault_word_kind kind, bool application,
		  struct slice text)
{
	struct fault_group *group = making->group;
	if (group->count == FAULT_GROUP_WORDS_MAX || making->full)
		return;
	struct slice copy = grouping_copy(making, text);
	if (copy.data)
		group->words[group->count++] = (struct fault_word){kind, application, copy};
}

void grouping_begin_trace(struct grouping_making *making)
{
	making->trace = making->group->count;
}

void grouping_add_exception(struct grouping_making *making, struct slice type, struct slice value)
{
	making->type = grouping_trim(type);
	making->value = value;
	making->exceptions++;
	if (!making->type.len)
		return;
	buf_clear(&making->text);
	grouping_name(making->type, &making->text);
	grouping_add(making, FAULT_WORD_TYPE, true, buf_slice(&making->text));
}

/* ---- Hashes ---------------------------------------------------------------------------------- */

static void grouping_put_hashed(struct buf *to, const struct fault_word *word)
{
	uint8_t head[9] = {(uint8_t)word->kind};
	for (size_t i = 0; i < 8; i++)
		head[1 + i] = (uint8_t)(word->text.len >> 8 * i);
	buf_append(to, head, sizeof(head));
	buf_append(to, word->text.data, word->text.len);
}

/* Frames that were not neighbours may be so now: what repeats is folded in each hash. */
static struct slice grouping_hash(struct grouping_making *making, bool all)
{
	const struct fault_group *group = making->group;
	const struct fault_word *last = NULL;
	struct buf *to = &making->text;
	buf_clear(to);
	for (size_t i = 0; i < group->count; i++) {
		const struct fault_word *word = &group->words[i];
		if (!all && !word->application)
			continue;
		/* A frame that follows one with the same text adds nothing, whichever of the two is
		 * the application's. */
		if (!last || word->kind != FAULT_WORD_FRAME || last->kind != FAULT_WORD_FRAME ||
		    !slice_equal(word->text, last->text))
			grouping_put_hashed(to, word);
		last = word;
	}
	ASSERT(!to->failed);
	struct hash128 hash = hash128(to->data, to->len, FAULT_GROUP_VERSION);
	char *name = arena_printf(making->arena, "%d-%016" PRIx64 "%04" PRIx64, FAULT_GROUP_VERSION,
				  hash.high, hash.low >> 48);
	making->full |= !name;
	return name ? slice_of(name) : SLICE("");
}

/* ---- Parts of a report ----------------------------------------------------------------------- */

static struct slice grouping_text_of(const struct json *report, const char *name)
{
	const struct json *value = json_member(report, name);
	return value && value->type == JSON_T_STRING ? value->text : SLICE("");
}

static struct slice grouping_message_of(const struct json *report)
{
	const struct json *entry = json_member(report, "logentry");
	const struct slice texts[] = {
		grouping_text_of(report, "value"), grouping_text_of(entry, "message"),
		grouping_text_of(entry, "formatted"), grouping_text_of(report, "message")};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (grouping_trim(texts[i]).len)
			return texts[i];
	return SLICE("");
}

static void grouping_add_normal(struct grouping_making *making, enum fault_word_kind kind,
				struct slice text)
{
	buf_clear(&making->text);
	if (kind == FAULT_WORD_STATEMENT)
		grouping_statement(text, &making->text);
	else
		grouping_message(text, &making->text);
	if (making->text.len)
		grouping_add(making, kind, true, buf_slice(&making->text));
}

/* Types, frames, a statement: where the report has them. */
static void grouping_add_traces(struct grouping_making *making, const struct json *report)
{
	grouping_add_events(making, report);
	if (!making->frames) {
		making->group->count = 0;
		making->exceptions = 0;
		grouping_add_trace(making, grouping_text_of(report, "tb_text"));
	}
	/* A trace that could not be read, or has no type of its own. */
	struct slice type = grouping_text_of(report, "exception");
	if (!making->exceptions && grouping_trim(type).len)
		grouping_add_exception(making, type, SLICE(""));
	if (!grouping_trim(making->value).len)
		making->value = grouping_message_of(report);
	struct slice statement =
		grouping_statement_of(report, making->type, making->value, making->frames > 0);
	if (statement.len)
		grouping_add_normal(making, FAULT_WORD_STATEMENT, statement);
}

static bool grouping_has_statement(const struct fault_group *group)
{
	return group->count && group->words[group->count - 1].kind == FAULT_WORD_STATEMENT;
}

/* A report's value counts only where no frame does. */
static void grouping_make_default(struct grouping_making *making, const struct json *report)
{
	struct fault_group *group = making->group;
	grouping_add_traces(making, report);
	group->rule = FAULT_GROUPED_BY_FRAMES;
	if (making->frames)
		return;
	group->rule = FAULT_GROUPED_BY_MESSAGE;
	if (!grouping_has_statement(group))
		grouping_add_normal(making, FAULT_WORD_MESSAGE, making->value);
	if (group->count)
		return;
	group->rule = FAULT_GROUPED_BY_CONTEXT;
	grouping_add_normal(making, FAULT_WORD_CONTEXT, grouping_text_of(report, "context"));
}

static bool grouping_is_default(struct slice part)
{
	return slice_equal(part, SLICE("{{ default }}")) || slice_equal(part, SLICE("{{default}}"));
}

/* Whether the sender says more than that it is the default. */
static bool grouping_is_fingerprinted(const struct json *fingerprint)
{
	if (!fingerprint || fingerprint->type != JSON_T_ARRAY)
		return false;
	for (const struct json *part = fingerprint->first; part; part = part->next)
		if (part->text.len && !grouping_is_default(part->text))
			return true;
	return false;
}

static void grouping_add_fingerprint(struct grouping_making *making, const struct json *fingerprint,
				     const struct fault_word *words, size_t count)
{
	bool given = false;
	size_t parts = 0;
	for (const struct json *part = fingerprint->first; part && parts < GROUP_FINGERPRINT_MAX;
	     part = part->next, parts++) {
		if (!grouping_is_default(part->text)) {
			grouping_add(making, FAULT_WORD_FINGERPRINT, true,
				     part->text.data ? part->text : SLICE(""));
			continue;
		}
		for (size_t i = 0; i < count && !given; i++)
			grouping_add(making, words[i].kind, words[i].application, words[i].text);
		given = true;
	}
}

/* The words that were found stand where the sender has `{{ default }}`. */
static void grouping_take_fingerprint(struct grouping_making *making, const struct json *report)
{
	const struct json *fingerprint = json_member(report, "fingerprint");
	struct fault_group *group = making->group;
	if (!grouping_is_fingerprinted(fingerprint))
		return;
	const struct fault_word *words = group->words;
	size_t count = group->count;
	group->words = arena_alloc(making->arena, FAULT_GROUP_WORDS_MAX * sizeof(*group->words));
	making->full |= !group->words;
	group->count = 0;
	group->rule = FAULT_GROUPED_BY_FINGERPRINT;
	grouping_add_fingerprint(making, fingerprint, words, count);
}

/* ---- The title ------------------------------------------------------------------------------- */

/* For people: the type and the first line of the message, as they are. */
static void grouping_make_title(struct grouping_making *making, const struct json *report)
{
	struct buf *to = &making->text;
	struct slice line = grouping_trim(making->value);
	const char *end = line.len ? memchr(line.data, '\n', line.len) : NULL;
	if (end)
		line = grouping_trim(grouping_part(line, 0, (size_t)(end - line.data)));
	line.len = utf8_cut(line, FAULT_GROUP_TITLE_MAX_BYTES);
	struct slice type = making->type;
	type.len = utf8_cut(type, FAULT_GROUP_TITLE_MAX_BYTES);
	buf_clear(to);
	buf_append(to, type.data, type.len);
	if (type.len && line.len)
		buf_append_text(to, ": ");
	buf_append(to, line.data, line.len);
	struct slice title =
		to->len ? buf_slice(to) : grouping_trim(grouping_text_of(report, "context"));
	title.len = utf8_cut(title, FAULT_GROUP_TITLE_MAX_BYTES);
	making->group->title = arena_copy(making->arena, title);
	making->full |= !making->group->title.data;
}

int fault_group_make(const struct json *report, struct arena *arena, struct fault_group *group)
{
	struct grouping_making making = {
		.arena = arena, .group = group, .type = SLICE(""), .value = SLICE("")};
	*group = (struct fault_group){.name = SLICE(""), .all = SLICE(""), .title = SLICE("")};
	group->words = arena_alloc(arena, FAULT_GROUP_WORDS_MAX * sizeof(*group->words));
	if (!group->words)
		return ERR_LIMIT;
	buf_init(&making.text, FAULT_GROUP_WORDS_MAX * (FAULT_GROUP_WORD_MAX_BYTES + 16));
	grouping_make_default(&making, report);
	grouping_take_fingerprint(&making, report);
	if (group->words && !making.application_frames)
		for (size_t i = 0; i < group->count; i++)
			group->words[i].application = true;
	if (!making.full) {
		group->name = grouping_hash(&making, false);
		group->all = grouping_hash(&making, true);
		grouping_make_title(&making, report);
	}
	buf_release(&making.text);
	return making.full ? ERR_LIMIT : 0;
}
