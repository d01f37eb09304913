/* Agents elsewhere that follow log files (`granary agent`): how each of their adaptors does, as
 * they report it (doc/streams.md). The lines themselves come by POST /chukwa. */
#ifndef API_ADMIN_AGENTS_H
#define API_ADMIN_AGENTS_H

#include "api/params.h"

/* POST /api/agents/NAME/report, 204:
 *
 *     {"boot":"00c1d2e3f4a5b6c7","all":true,"version":"0.1.0",
 *      "collector":"http://127.0.0.1:8470","problem":"",
 *      "adaptors":[{"name":"messages","kind":"tail","datatype":"syslog",
 *                   "path":"/var/log/messages","state":"following","offset":123456,
 *                   "behind":789,"lastLine":1600000000000,"error":""}],
 *      "gone":["old_one"]}
 *
 * boot: another one after each start of the agent. all: these are all adaptors of the agent; else
 * those that are not named stay as they are, but those in `gone` go. Every member is needed.
 * lastLine: in ms, 0: never. 400 with a sentence: something is wrong with it. 409: `all` is false,
 * and the server has had no report of all with this boot, as after its own start: the agent is to
 * report all. 413: the body is longer than the route takes; an agent may report some of its
 * adaptors with `all`, and the others in further reports. 422: too many adaptors. 507: the server
 * has no room for it. What is not answered 204 changes nothing. */
extern const struct http_handler agents_report;

/* GET /api/agents: in order of names,
 * {"agents":[{"name":"web1","version":"0.1.0","collector":"http://...","heard":ms,"silent":false,
 * "shared":false,"problem":"","adaptors":N,"behind":BYTES,"states":{"following":3,...}},...],
 * "token":"..."}; `token` is there if there are more. shared: other agents report under this name,
 * too, and each report of one takes the place of that of another one. */
extern const struct http_handler agents_list;
extern const struct param agents_list_params[];

/* GET /api/agents/NAME: the same of one agent, and its boot; `adaptors` are its adaptors as they
 * were reported, in order of names; `token` as above. 404 with a sentence: there is none. */
extern const struct http_handler agents_show;
extern const struct param agents_show_params[];

/* DELETE /api/agents/NAME, 204: forgets an agent, which is back when it reports. 404 as above. */
extern const struct http_handler agents_delete;

#endif
