/* The handlers of fault reports (document O, OOPS Repository; doc/faults.md), for the table of
 * routes.
 *
 * A day is written 2026-11-24, 20261124, today or yesterday, in UTC. Durations are ms, with a
 * fraction where there is one; dates are ms since the epoch. */
#ifndef API_FAULT_FAULTS_H
#define API_FAULT_FAULTS_H

#include "api/params.h"

/* POST /oops: one report, or an array of reports in JSON; PUT /oops/ID: one, under this id. When it
 * answers with success they are durable; the submission is carried through though its client goes.
 *
 * One: 201 {"id":"OOPS-7f3c","date":1298505600123,"result":"taken"}, or 200 and "repeated" where it
 * was there already; with "refused":["timeline: ..."] where parts were not understood. 409 where
 * another report has this id, which stays: {"error":{...},"id":...,"date":...}. 400 it is none; 413
 * too large; 503 not known yet, or too much at once: sending it again is harmless; 507 no room. The
 * header X-Oops-Id has the id.
 *
 * An array: {"results":[{"id":...,"date":...,"result":"taken"}, {"result":"failed","error":"..."},
 * ...],"taken":1,"repeated":0,"failed":1} in its order, and "error" where not all were taken: 200;
 * 400, or 409 where all others are conflicts; 503 and 507 where the store had a part in it. */
extern const struct http_handler faults_post, faults_put;
extern const struct param faults_take_params[];

/* POST /api/NUMBER/envelope and POST /api/NUMBER/store, also with a slash behind them: what
 * Sentry's clients send to a project. 200 {"id":"<32 digits>"}: its event is durable, or it has
 * none. Errors are {"detail":"...","causes":[]}: 400 no envelope, 403 no such project or key, 409
 * another event has this id, 413, 429 with Retry-After and X-Sentry-Rate-Limits, before the body is
 * read; 503 and 507 as above. */
extern const struct http_handler sentry_envelope, sentry_store;
extern const struct param sentry_params[];

/* GET /oops/projects: {"projects":[{"number":1,"tenant":"default","keys":["..."],
 * "dsn":["http://KEY@HOST:PORT/1"]}, ...]}; of the addresses the host is that of the request. POST
 * /oops/projects?name=NAME: 201 and the project; 409 the tenant has one. POST
 * /oops/projects/NUMBER/keys: 201 and the project, with one more key, its last. DELETE
 * /oops/projects/NUMBER/keys/KEY: the project without it. */
extern const struct http_handler projects_list, projects_add, projects_key_add, projects_key_remove;
extern const struct param projects_add_params[];

/* GET /oops/ID: {"id":...,"date":...,"date_iso":...,"conflicts":1,"group":...,"title":...,
 * attributes ...}. As people write ids: in large or small letters, with `OOPS-` and without. With
 * "attachments":[{"name":...,"type":...,"bytes":...,"kept":true}] where files came with it; GET
 * /oops/ID/attachments/N is the content of one, as bytes.
 *
 * GET /oops/ID/why: by what rule the report is in its group, and the words that made it (group.h):
 * {"id":...,"group":...,"title":...,"version":1,"rule":"frames","hashes":{"application":...,
 * "all":...},"words":[{"kind":"frame","text":...,"application":true},...]}; with "own_group" where
 * the report's own group is merged into that one. */
extern const struct http_handler faults_show;
extern const struct param faults_show_params[];

/* POST /oops/ID/bug?tracker=TRACKER&bug=BUG: says which bug of a tracker the report is, or with an
 * empty `bug` that it is none, and answers the report, whose "bug.TRACKER" it is from then on,
 * whatever the report has had under this name. 404 there is no such report; 400 bugs of too many
 * trackers. */
extern const struct http_handler faults_bug;
extern const struct param faults_bug_params[];

/* GET /oops/messages: {"messages":[{"id":"<32 digits>","date":...,"kind":"new","group":...,
 * "title":...,"report":...,"environment":...,"level":...,"release":...,"reports":1}, ...],
 * "more":false}, newest first, without what a message does not have. Of a group that is regressed
 * or unmuted "said" is when it was resolved or muted; of a day that is over there are "day" and
 * "reports"; of an hour with more messages than are told "hour" and "messages", how many were held
 * back. */
extern const struct http_handler faults_messages;
extern const struct param faults_messages_params[];

/* GET /oops/messages/live: server-sent events, each `message` with such an object; `id` is its date
 * in microseconds, behind which the client goes on by Last-Event-ID or `token`. `ready`
 * comes once, when all that there were have been told. */
extern const struct http_handler faults_messages_live;
extern const struct param faults_messages_live_params[];

/* GET /oops: {"reports":[{"id":...,"date":...,"context":...,"exception":...,"duration":...,
 * "statements":...,"level":...,"release":...,"environment":...,"host":...,"user":...}, ...],
 * "token":"..."}, newest first, without what a report does not have. `token` is there if there are
 * more: the same question with it goes on. `reached` is there if the time was over before all were
 * looked at: those that were received after it were. `q` searches (words/query.h). */
extern const struct http_handler faults_list;
extern const struct param faults_list_params[];

/* GET /oops/live: a stream of server-sent events, without end: `ready` when it has begun, `report`
 * with the object of the list above for each report as it comes to count, its id a token, and
 * `missed` with {"reports":N}, or {} where nobody knows how many, for those that the client is not
 * told of. The header Last-Event-ID begins behind that event: up to 1,000 reports that were
 * received since come first. */
extern const struct http_handler faults_live;
extern const struct param faults_live_params[];

/* GET /oops/groups: {"groups":[{"group":...,"title":...,"status":"open","count":...,"first":ms,
 * "first_id":...,"last":ms,"last_id":...,"users":...,"release":...}, ...],"total":N}: what reports
 * of the days asked add up to; `again` where reports have opened it again. GET /oops/groups/GROUP:
 * one, of all days, with "said", "bugs", "facts":{"release":{"distinct":N,"values":[{"value":...,
 * "count":...,"first":ms,"last":ms}, ...],"rest":N}, ...},"days":[["20261124",count], ...] and
 * "hours"; in "tags" a value has its "key", too. PUT /oops/groups/GROUP?status=resolved...: says
 * something of it, and answers the same.
 */
extern const struct http_handler faults_groups, faults_group, faults_say;
extern const struct param faults_groups_params[], faults_group_params[], faults_say_params[];

/* POST /oops/groups/GROUP/merge?into=OTHER, POST /oops/groups/GROUP/split: {"dry_run":false,
 * "moves":{"group":GROUP,"title":...,"count":...,"first":ms,...,"users":...,"days":N},"becomes":{
 * "group":OTHER,...}}: what the group has, and what the other one is with it, or without it. 404
 * there is no such group; 409 it is merged already, or is not; 422 too many are. A group that is
 * merged is answered by the one that stands for it: with "asked" as the name that was asked for,
 * and "merged", all that it stands for. */
extern const struct http_handler faults_merge;
extern const struct param faults_merge_params[];

/* GET /oops/days/DAY: the summary of document O: {"day":"20261124","closed":false,"total":3,
 * "hours":[24 counts],"duration":[[ms,id],...],"statement count":[[count,id],...],
 * "volume":{"context:exception":count,...},"rest":0}. GET /oops/days/DAY/oops: `day_oops` of it:
 * {"day":"20261124","oops":[[TimeUUID,id],...],"token":"..."}, newest first. GET
 * /oops/days/DAY/report: the daily report (fault/daily.h), with format=text or html as text, or as
 * a page: {"day":"20261124","tenant":...,"closed":false,"total":N,"before":N,"groups":N,"rest":N,
 * "first":ms,"last":ms,"sections":[{"section":"new","title":...,"groups":[...],"total":N,
 * "reports":N,"rest":N}, ...]}. */
extern const struct http_handler faults_day;
extern const struct param faults_day_params[];
/* POST /oops/gc: {"dry_run":false,"reports":N,"bytes":N,"runs":N,"all_reports":N,"all_bytes":N}:
 * reports that go, by its parameters or by the options; `bytes` is about. They go within some
 * minutes of the answer. 409: an earlier collection is not done yet. */
extern const struct http_handler faults_gc;
extern const struct param faults_gc_params[];
/* POST /oops/delete: {"dry_run":false,"reports":N,"days":N,"more":false}: reports of a user, which
 * no answer has any more, nor their name; `more`: there are others, so ask again. 409: those of
 * another user are being removed; 503: ask again. */
extern const struct http_handler faults_erase;
extern const struct param faults_erase_params[];
/* POST /oops/days/DAY/recount: the same of the day, counted anew. */
extern const struct http_handler faults_recount;
extern const struct param faults_recount_params[];

#endif
