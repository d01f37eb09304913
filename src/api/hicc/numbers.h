/* Private to api/hicc: which query gives the numbers of a row.
 *
 * Which series has the metric's name in a row follows from the name only up to where its dots are
 * (board/row_name.h), so one split after the other is a query, until one has found a series.
 * Several series that a split stands for are one, of which averages are made together. */
#ifndef API_HICC_NUMBERS_H
#define API_HICC_NUMBERS_H

#include "board/row_name.h"
#include "query/query.h"
#include "wire/json.h"

struct hicc_numbers {
	struct slice source;
	struct row_name_split splits[ROW_NAME_SPLITS_MAX];
	size_t split_count, split; /* split: that is asked for */
	struct catalog_selector selector;
	struct catalog_pattern pattern;
	struct arena tags; /* of one series */
};

/* The names are the caller's, and the numbers stay where they are until they are released. Before
 * the release they may be begun again. ERR_INVALID with a sentence: no metric can have this name.
 */
void hicc_numbers_init(struct hicc_numbers *numbers);
int hicc_numbers_begin(struct hicc_numbers *numbers, struct slice metric, struct slice source,
		       struct errbuf *e) MUST_CHECK;
void hicc_numbers_release(struct hicc_numbers *numbers);

/* What to ask for, by the present split: averages of steps that the length of the time chooses. */
struct query_spec hicc_numbers_spec(struct hicc_numbers *numbers, struct slice tenant,
				    int64_t start_ms, int64_t end_ms);
/* The query has ended; true: it has found no series, and the next split is to be asked for. */
bool hicc_numbers_go_on(struct hicc_numbers *numbers, const struct query *query) MUST_CHECK;

/* [ms, number]. The first step may begin before the time does. */
void hicc_numbers_put(struct json_writer *json, const struct query_chunk *chunk, size_t i,
		      int64_t start_ms);

#endif
