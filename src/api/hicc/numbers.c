#include "api/hicc/numbers.h"

enum { NUMBERS_TAGS_MAX_BYTES = 256 << 10 };
#define NUMBERS_MINUTE_MS INT64_C(60000)

void hicc_numbers_init(struct hicc_numbers *numbers)
{
	*numbers = (struct hicc_numbers){.split = 0};
	arena_init(&numbers->tags, NUMBERS_TAGS_MAX_BYTES);
}

int hicc_numbers_begin(struct hicc_numbers *numbers, struct slice metric, struct slice source,
		       struct errbuf *e)
{
	numbers->source = source;
	numbers->split = 0;
	numbers->split_count = row_name_split(metric, numbers->splits);
	if (!numbers->split_count)
		return errbuf_set(e, ERR_INVALID, "no metric has a name as long as \"" SHOWN "\"",
				  SHOWN_OF(metric));
	numbers->pattern = (struct catalog_pattern){&numbers->source, 1};
	numbers->selector = (struct catalog_selector){SLICE("host"), &numbers->pattern, 1};
	return 0;
}

void hicc_numbers_release(struct hicc_numbers *numbers)
{
	arena_release(&numbers->tags);
}

static bool hicc_numbers_keep(void *owner, struct slice tags_text)
{
	struct hicc_numbers *numbers = owner;
	struct tags tags;
	arena_reset(&numbers->tags);
	return tags_decode(tags_text, &numbers->tags, &tags) == 0 &&
	       row_name_rest_is(numbers->splits[numbers->split].rest, tags);
}

/* Widths that roll-ups serve, as many as a chart needs. A range up to now has some milliseconds
 * more than was meant. */
static int64_t hicc_numbers_step_ms(int64_t range_ms)
{
	static const struct {
		int64_t minutes, step_ms;
	} steps[] = {{60, 5000}, {24 * 60, 300000}, {30 * 24 * 60, 7200000}};
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (range_ms - range_ms % 1000 <= steps[i].minutes * NUMBERS_MINUTE_MS)
			return steps[i].step_ms;
	return 86400000;
}

struct query_spec hicc_numbers_spec(struct hicc_numbers *numbers, struct slice tenant,
				    int64_t start_ms, int64_t end_ms)
{
	return (struct query_spec){
		.tenant = tenant,
		.metric = numbers->splits[numbers->split].metric,
		.selectors = &numbers->selector,
		.selector_count = 1,
		.filter = hicc_numbers_keep,
		.filter_owner = numbers,
		.start_ms = start_ms,
		.end_ms = end_ms,
		.fn = FN_AVG,
		.window_ms = hicc_numbers_step_ms(end_ms - start_ms),
		.agg = AGG_AVG,
	};
}

bool hicc_numbers_go_on(struct hicc_numbers *numbers, const struct query *query)
{
	if (query->series_read || numbers->split + 1 >= numbers->split_count)
		return false;
	numbers->split++;
	return true;
}

void hicc_numbers_put(struct json_writer *json, const struct query_chunk *chunk, size_t i,
		      int64_t start_ms)
{
	json_write_array_begin(json);
	json_write_i64(json, larger_of(chunk->ts_ms[i], start_ms));
	json_write_number(json, (struct value){.type = (enum value_type)chunk->types[i],
					       .bits = chunk->bits[i]});
	json_write_array_end(json);
}
