/* The shape of an answer to POST /api/query. Pure: points in, text out.
 *
 *     [{"metric":"cpu_idle","tags":{"os":"linux"},"aggregateTags":["host"],
 *       "aggregatedTags":["host"],"dps":{"1598286845":477.0}}, ...]
 *
 * Of a group `tags` are those that all its series have with one value, `aggregateTags` the keys
 * that all have with several; what some lack is in neither. With `arrays` the points are
 * [[1598286845,477.0],...]. */
#ifndef API_OPENTSDB_ANSWER_H
#define API_OPENTSDB_ANSWER_H

#include "api/opentsdb_body.h"
#include "base/buf.h"

enum { OPENTSDB_POINT_MAX_BYTES = 64 };

struct opentsdb_answer {
	struct buf *out;
	bool ms, arrays, show_query; /* the caller's */

	/* private */
	bool in_points, after_group;
	struct arena group_arena, series_arena;
};

void opentsdb_answer_init(struct opentsdb_answer *answer, struct buf *out);
void opentsdb_answer_release(struct opentsdb_answer *answer);

/* A group, of which there are points. ERR_DAMAGED: its names cannot be read. */
int opentsdb_answer_group(struct opentsdb_answer *answer, const struct opentsdb_query *asked,
			  size_t index, const struct query *query, size_t group) MUST_CHECK;
void opentsdb_answer_points(struct opentsdb_answer *answer, const struct combine_point *points,
			    size_t count);
/* With `cut` it says that more would follow. */
void opentsdb_answer_group_end(struct opentsdb_answer *answer, bool cut);

#endif
