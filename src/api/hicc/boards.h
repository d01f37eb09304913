/* The handlers of charts, widgets and dashboards (document K; HICC of Chukwa; doc/boards.md), for
 * the table of routes. KIND is chart, widget or dashboard. Those that change something take
 * If-Match and If-None-Match: 412 if another has saved meanwhile. */
#ifndef API_HICC_BOARDS_H
#define API_HICC_BOARDS_H

#include "api/params.h"

/* GET /hicc/v1/KIND/: `list` and `search/PREFIX` give an array (with X-Granary-Cut: limit, where
 * there are more), with brief=true of
 * {"id":...,"title":...,"type":...,"bytes":N,"shipped":true,"etag":"\"...\""}; `view/ID`,
 * `describe/ID` and `load/ID` one, with its ETag; of dashboards `export/ID`
 * {"dashboard":{...},"widgets":[...],"charts":[...],"missing":["id",...]}.
 *
 * POST: `create` answers 201 with the one that was made, `save` 200 with its id as text; 400 if
 * there is one. Of dashboards `import` takes what `export` gives, and answers
 * {"id":...,"created":N,"replaced":N,"unchanged":N}.
 *
 * PUT: `update/ID` and `save/ID` answer 200, or 201 if there was none, with what is stored.
 *
 * DELETE: `delete/ID` answers {"deleted":id,"shippedIsBack":false}. */
extern const struct http_handler boards_handler;
extern const struct param boards_get_params[], boards_change_params[], boards_import_params[];

/* PUT /hicc/v1/chart/preview/series: a list of series, as charts have them, becomes the same list
 * with `data`, [[ms,v],...], in each, from `start` to `end`. Where a `query` gives several series,
 * each stands there, with its `tags`. What a chart may have is taken; 400 names what cannot be
 * answered. */
extern const struct http_handler hicc_preview;
extern const struct param hicc_preview_params[];

#endif
