/* How a series is called in document K's rows: by a metric and a source.
 *
 * The source is the tag `host`. The metric is the series' own with the values of its other tags
 * behind it, by their keys, each after a dot: `SystemMetrics.cpu.user,core=0,host=h1` is
 * `SystemMetrics.cpu.user.0` at `h1`, as Chukwa has it. The tag `cluster` is left out, since a host
 * is of one cluster.
 *
 * Pure, any thread. */
#ifndef BOARD_ROW_NAME_H
#define BOARD_ROW_NAME_H

#include "base/buf.h"
#include "model/series.h"

enum { ROW_NAME_SPLITS_MAX = 16 };

/* Appends the metric. Tags are in the order of their keys. */
void row_name_put(struct slice metric, struct tags tags, struct buf *out);
/* NULL data: the series has none. */
struct slice row_name_source(struct tags tags);

/* A series whose metric in a row is `name` has, for one of the splits, the metric `metric`, and
 * other tags whose values are `rest`, each behind a dot. From the longest metric to the shortest;
 * at most ROW_NAME_SPLITS_MAX. Returns how many. */
struct row_name_split {
	struct slice metric, rest;
};
size_t row_name_split(struct slice name, struct row_name_split list[ROW_NAME_SPLITS_MAX]);
/* Whether these are the other tags of a split. */
bool row_name_rest_is(struct slice rest, struct tags tags);

#endif
