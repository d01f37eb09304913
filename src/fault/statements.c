#include "fault/statements.h"

#include "base/hash_table.h"
#include "base/utf8.h"
#include "fault/group_private.h"
#include "fault/timeline.h"

#define LENGTH_MAX_MS (366 * 86400e3) /* what is beyond is no length */

/* A slot of a hash table. */
struct statements_sum {
	struct hash128 hash; /* of the statement without what varies */
	struct slice detail; /* of the first */
	size_t place;        /* its, in the timeline */
	uint64_t count, total_us;
};

static void statements_add(struct hash_table *sums, const struct fault_step *step, size_t place,
			   struct buf *text)
{
	bool added;
	buf_clear(text);
	grouping_statement(step->detail, text);
	if (!text->len)
		return;
	struct statements_sum *sum =
		hash_table_add(sums, hash128(text->data, text->len, 0), sizeof(*sum), &added);
	if (added) {
		sum->detail = step->detail;
		sum->place = place;
	}
	sum->count++;
	if (step->length_ms > 0 && step->length_ms <= LENGTH_MAX_MS)
		sum->total_us += (uint64_t)(step->length_ms * 1000 + 0.5);
}

static bool statements_is_before(uint64_t value, const struct statements_sum *sum, uint64_t best,
				 const struct statements_sum *of)
{
	return value > best || (of && value == best && sum->place < of->place);
}

static int statements_take(const struct statements_sum *sum, struct arena *arena, struct buf *text,
			   struct fault_statement *to)
{
	if (!sum)
		return 0;
	buf_clear(text);
	grouping_statement(sum->detail, text);
	struct slice shown = buf_slice(text);
	shown.len = utf8_cut(shown, FAULT_STATEMENT_MAX_BYTES);
	*to = (struct fault_statement){arena_copy(arena, shown), sum->count, sum->total_us};
	return to->text.data ? 0 : ERR_LIMIT;
}

static int statements_choose(const struct hash_table *sums, struct arena *arena, struct buf *text,
			     struct fault_statements *to)
{
	const struct statements_sum *repeated = NULL, *expensive = NULL;
	uint64_t most = 1, longest_us = 0;
	for (size_t at = 0; at < sums->slot_count; at++) {
		const struct statements_sum *sum = hash_table_at(sums, at);
		if (sum && statements_is_before(sum->count, sum, most, repeated)) {
			most = sum->count;
			repeated = sum;
		}
		if (sum && statements_is_before(sum->total_us, sum, longest_us, expensive)) {
			longest_us = sum->total_us;
			expensive = sum;
		}
	}
	int err = statements_take(repeated, arena, text, &to->repeated);
	return err ? err : statements_take(expensive, arena, text, &to->expensive);
}

int fault_statements_read(const struct json *timeline, struct arena *arena,
			  struct fault_statements *to)
{
	struct hash_table sums = {0};
	struct buf text;
	size_t place = 0;
	*to = (struct fault_statements){.repeated.text = SLICE(""), .expensive.text = SLICE("")};
	if (!timeline || timeline->type != JSON_T_ARRAY)
		return 0;
	buf_init(&text, 2 * GROUP_TEXT_MAX_BYTES);
	for (const struct json *item = timeline->first; item; item = item->next) {
		struct fault_step step;
		if (fault_step_read(item, &step) && step.database)
			statements_add(&sums, &step, place++, &text);
	}
	int err = statements_choose(&sums, arena, &text, to);
	hash_table_release(&sums);
	buf_release(&text);
	return err;
}

/* Where the timeline stands in a body; an empty text: nowhere. */
static struct slice statements_find(struct slice body, struct arena *arena)
{
	struct json_reader reader;
	struct slice timeline = SLICE("");
	json_reader_init(&reader, body, arena);
	if (json_next(&reader) != JSON_OBJECT_BEGIN)
		return timeline;
	while (json_next(&reader) == JSON_KEY) {
		bool is_timeline = slice_equal(reader.text, SLICE("timeline"));
		enum json_event event = json_next(&reader);
		size_t offset = reader.offset;
		if (!json_skip(&reader, event))
			break;
		if (is_timeline)
			timeline = json_text_from(&reader, offset);
	}
	return timeline;
}

int fault_statements_of(struct slice body, struct arena *arena, struct fault_statements *to)
{
	struct json *timeline = NULL;
	struct slice text = statements_find(body, arena);
	int err = text.len ? json_parse(text, arena, &timeline, NULL) : 0;
	return err == ERR_LIMIT ? err : fault_statements_read(err ? NULL : timeline, arena, to);
}
