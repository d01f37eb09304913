/* The handlers of rows as Chukwa's HICC has them, /hicc/v1/metrics (document K; doc/rows.md), for
 * the table of routes. A slash within a name is written %2F. */
#ifndef API_HICC_HICC_H
#define API_HICC_HICC_H

#include "api/params.h"

/* GET /hicc/v1/metrics/schema: the groups of metrics, ["SystemMetrics",...]; .../schema/GROUP: the
 * names of its metrics. GET /hicc/v1/metrics/source/GROUP: those of its sources. With details=true
 * [{"name":...,"sig":"f4768a0d6fe0","unit":"%","kind":"gauge"},...]. Where there are more, the
 * header X-Granary-Cut is `limit`. */
extern const struct http_handler hicc_schema, hicc_sources;
extern const struct param hicc_names_params[];

/* GET /hicc/v1/metrics/series/METRIC/SOURCE: {"name":"METRIC:SOURCE","data":[[ms,v],...]}, numbers
 * as averages of steps that the length of the time chooses, texts as they are; with
 * "notes":[{"id":...,"time":ms,"metric":...,"text":...},...] where there are any, of the metric and
 * of its group, which is the metric's name up to the first dot. The header (or trailer)
 * X-Granary-Cut says what is not all: points, samples, time, texts, notes. */
extern const struct http_handler hicc_series;
extern const struct param hicc_series_params[];

/* GET /hicc/v1/metrics/notes/METRIC/SOURCE: {"notes":[as above]}. POST there
 * {"text":"...","time":ms or a text}: 201 and the note, once it is durable. DELETE
 * .../notes/METRIC/SOURCE/ID: {"id":...}. 404 there is none; 422 the row is full. */
extern const struct http_handler hicc_notes, hicc_notes_add, hicc_notes_delete;
extern const struct param hicc_notes_params[], hicc_notes_add_params[], hicc_notes_delete_params[];

#endif
