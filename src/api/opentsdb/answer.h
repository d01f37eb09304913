/* The shape of an answer to POST /api/query. Pure: points in, text out.
 *
 *     [{"metric":"cpu_idle","dps":{"1598286845":477.0},"tags":{"os":"linux"},
 *       "aggregateTags":["host"],"aggregatedTags":["host"]}, ...]
 *
 * Of a group `tags` are those that all its series have with one value, `aggregateTags` the keys
 * that all have with several; what some lack is in neither. Series without a value in the time do
 * not count: which these are is known when all is read, so tags stand behind the points. With
 * `arrays` the points are
 * [[1598286845,477.0],...]. */
#ifndef API_OPENTSDB_ANSWER_H
#define API_OPENTSDB_ANSWER_H

#include "api/opentsdb/body.h"
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

/* A group, of which there are points. */
void opentsdb_answer_group(struct opentsdb_answer *answer, const struct opentsdb_query *asked,
			   size_t index);
void opentsdb_answer_points(struct opentsdb_answer *answer, const struct combine_point *points,
			    size_t count);
/* With `cut` it says that more would follow. ERR_DAMAGED: the names of its series cannot be read.
 */
int opentsdb_answer_group_end(struct opentsdb_answer *answer, const struct opentsdb_query *asked,
			      const struct query *query, size_t group, bool cut) MUST_CHECK;

#endif
