#include "api/routes.h"

#include "api/admin/admin.h"
#include "api/admin/agents.h"
#include "api/admin/credentials.h"
#include "api/admin/pollers.h"
#include "api/admin/session.h"
#include "api/esmond/esmond.h"
#include "api/fault/faults.h"
#include "api/hicc/boards.h"
#include "api/hicc/hicc.h"
#include "api/influx/influx.h"
#include "api/metrics/metrics.h"
#include "api/opentsdb/opentsdb.h"
#include "api/stream/streams.h"
#include "board/document.h"
#include "ingest/line.h"
#include "ingest/put.h"

/* A row: verb, path, whether all below it belongs to it too, role, limits of the body as sent and
 * as decoded, handler, help, example (a path, or a command line). Of a path and a prefix of it, the
 * path comes first. */
#define NO_BODY 0, 0
/* Read as they arrive, so that they take no memory. */
#define BODY_STREAMED 32 << 20, 256 << 20
#define BODY_GATHERED 32 << 20, 64 << 20
#define BODY_QUESTION 1 << 20, 2 << 20
/* Read as a whole, as trees; what is packed by gzip has no more than what is not. */
#define BODY_REPORTS 32 << 20, 0
#define BODY_CHUNKS  32 << 20, 0
/* Read and taken within a turn of the loop. */
#define BODY_STATES  4 << 20, 0
#define BODY_NOTE    64 << 10, 0
#define BODY_BOARD   1 << 20, 0
#define BODY_PREVIEW 256 << 10, 0
#define BODY_SECRET  16 << 10, 0
/* clang-format off */
/* What can be done with boards of a kind. */
#define BOARD_ROUTES(kind_, id_, body_) \
	{VERB_GET, "/hicc/v1/" kind_ "/", true, ROLE_READ, REACH_TENANT, NO_BODY, &boards_handler, \
	 "list, search/PREFIX or view/ID of " kind_ "s.", \
	 "/hicc/v1/" kind_ "/list?brief=true", .params = boards_get_params}, \
	{VERB_POST, "/hicc/v1/" kind_ "/", true, ROLE_WRITE, REACH_TENANT, \
	 BODY_BOARD, &boards_handler, \
	 "create: makes a " kind_ ".", \
	 "curl -H 'Content-Type: application/json' -d '" body_ "' " \
	 "http://127.0.0.1:8470/hicc/v1/" kind_ "/create", .params = boards_change_params}, \
	{VERB_PUT, "/hicc/v1/" kind_ "/", true, ROLE_WRITE, REACH_TENANT, \
	 BODY_BOARD, &boards_handler, \
	 "update/ID: replaces a " kind_ ", with If-Match only the one that was seen.", \
	 "curl -X PUT -H 'Content-Type: application/json' -d '" body_ "' " \
	 "http://127.0.0.1:8470/hicc/v1/" kind_ "/update/" id_, .params = boards_change_params}, \
	{VERB_DELETE, "/hicc/v1/" kind_ "/", true, ROLE_WRITE, REACH_TENANT, \
	 NO_BODY, &boards_handler, \
	 "delete/ID: deletes a " kind_ "; a shipped one of that id is back.", \
	 "curl -X DELETE http://127.0.0.1:8470/hicc/v1/" kind_ "/delete/" id_, \
	 .params = boards_change_params}
/* clang-format on */
const struct http_route api_routes[] = {
	{VERB_GET, "/", false, ROLE_READ, REACH_ALL, NO_BODY, &self_page,
	 "This page: what is collected, how the server is doing, and every route.", "/",
	 .page = true},
	{VERB_GET, "/style.css", false, ROLE_NONE, REACH_NOBODY, NO_BODY, &self_style,
	 "What this page looks like.", "/style.css"},
	{VERB_GET, "/metrics", false, ROLE_READ, REACH_ALL, NO_BODY, &self_metrics,
	 "Counters and gauges of this server, as Prometheus reads them.", "/metrics",
	 .always = true},
	{VERB_GET, "/-/healthy", false, ROLE_NONE, REACH_NOBODY, NO_BODY, &self_healthy,
	 "200 as long as the server answers at all.", "/-/healthy", .always = true},
	{VERB_GET, "/-/ready", false, ROLE_NONE, REACH_NOBODY, NO_BODY, &self_ready,
	 "200 once the store is open, 503 before. Stays 200 when it is full: writes say so (507); "
	 "and while Redis (rollup.tracking) is not reached or the clock is doubted, so that "
	 "nothing "
	 "expires: each of these is a line that begins with degraded.",
	 "/-/ready", .always = true},
	{VERB_GET, "/api/query", false, ROLE_READ, REACH_TENANT, NO_BODY, &query_handler,
	 "Points of a metric's series, as they are or by windows (fn, window); JSON or format=csv. "
	 "With m= as OpenTSDB has it.",
	 "/api/query?tenant=host&metricName=SystemMetrics.LoadAverage.1&start=5m-ago",
	 .params = query_params},
	{VERB_GET, "/api/export", false, ROLE_READ, REACH_TENANT, NO_BODY, &export_handler,
	 "Samples as they are stored, page by page, to be carried elsewhere: lines, JSON or CSV.",
	 "granary export", .params = export_params},
	{VERB_GET, "/api/metadata/tenants", false, ROLE_READ, REACH_TENANT, NO_BODY,
	 &metadata_tenants, "Names of all tenants.", "/api/metadata/tenants",
	 .params = metadata_tenants_params},
	{VERB_GET, "/api/metadata/metricNames", false, ROLE_READ, REACH_TENANT, NO_BODY,
	 &metadata_metric_names, "Names of a tenant's metrics.",
	 "/api/metadata/metricNames?tenant=host", .params = metadata_metric_names_params},
	{VERB_GET, "/api/metadata/tagKeys", false, ROLE_READ, REACH_TENANT, NO_BODY,
	 &metadata_tag_keys, "Keys of the tags of a metric.",
	 "/api/metadata/tagKeys?tenant=host&metricName=SystemMetrics.LoadAverage.1",
	 .params = metadata_tag_keys_params},
	{VERB_GET, "/api/metadata/tagValues", false, ROLE_READ, REACH_TENANT, NO_BODY,
	 &metadata_tag_values, "Values of one tag of a metric.",
	 "/api/metadata/tagValues?tenant=host&metricName=SystemMetrics.LoadAverage.1&tagKey=host",
	 .params = metadata_tag_values_params},
	{VERB_GET, "/api/metadata/series", false, ROLE_READ, REACH_TENANT, NO_BODY,
	 &metadata_series,
	 "What is known of a metric's series: kind, unit, aggregators, first and last seen.",
	 "/api/metadata/series?tenant=host&metricName=SystemMetrics.LoadAverage.1",
	 .params = metadata_series_params},
	{VERB_GET, "/api/metadata/metric", false, ROLE_READ, REACH_TENANT, NO_BODY,
	 &metadata_metric,
	 "What is known of one metric: kind, unit, description, aggregators of its roll-ups.",
	 "/api/metadata/metric?tenant=host&metricName=SystemMetrics.LoadAverage.1",
	 .params = metadata_metric_params},
	{VERB_PUT, "/api/metadata/metric", false, ROLE_WRITE, REACH_TENANT, 64 << 10, 0,
	 &metadata_metric_put,
	 "Sets what is given of kind, unit and description of a metric; null takes it back.",
	 "curl -X PUT -d '{\"description\":\"runnable tasks\"}' "
	 "'http://127.0.0.1:8470/api/metadata/metric?tenant=host&"
	 "metricName=SystemMetrics.LoadAverage.1'",
	 .params = metadata_metric_params},
	{VERB_POST, "/api/query", false, ROLE_READ, REACH_TENANT, BODY_QUESTION,
	 &opentsdb_query_handler,
	 "Points as OpenTSDB gives them: several queries, filters, downsample, aggregator, rate.",
	 "curl -d '{\"start\":\"5m-ago\",\"queries\":[{\"metric\":\"SystemMetrics.LoadAverage.1\","
	 "\"aggregator\":\"none\"}]}' 'http://127.0.0.1:8470/api/query?tenant=host'",
	 .params = opentsdb_query_params},
	{VERB_GET, "/api/query/last", false, ROLE_READ, REACH_TENANT, NO_BODY,
	 &opentsdb_last_handler, "The newest value of each series, as OpenTSDB gives it.",
	 "/api/query/last?timeseries=SystemMetrics.LoadAverage.1&tenant=host",
	 .params = opentsdb_last_params},
	{VERB_POST, "/api/query/last", false, ROLE_READ, REACH_TENANT, BODY_QUESTION,
	 &opentsdb_last_handler, "The same, of several metrics in a body.",
	 "curl -d '{\"queries\":[{\"metric\":\"SystemMetrics.LoadAverage.1\"}]}' "
	 "'http://127.0.0.1:8470/api/query/last?tenant=host'",
	 .params = opentsdb_last_post_params},
	{VERB_GET, "/api/version", false, ROLE_NONE, REACH_NOBODY, NO_BODY, &opentsdb_version,
	 "Which version of OpenTSDB's interface this is, for its clients.", "/api/version"},
	{VERB_POST, "/api/suggest", false, ROLE_READ, REACH_TENANT, BODY_QUESTION,
	 &opentsdb_suggest, "The same as GET, asked by a body.",
	 "curl -d '{\"type\":\"metrics\",\"q\":\"System\"}' "
	 "'http://127.0.0.1:8470/api/suggest?tenant=host'",
	 .params = opentsdb_suggest_post_params},
	{VERB_GET, "/api/suggest", false, ROLE_READ, REACH_TENANT, NO_BODY, &opentsdb_suggest,
	 "Names of metrics, tag keys or tag values that begin with q, as OpenTSDB gives them.",
	 "/api/suggest?type=metrics&q=System&tenant=host", .params = opentsdb_suggest_params},
	{VERB_GET, "/api/search/lookup", false, ROLE_READ, REACH_TENANT, NO_BODY, &opentsdb_lookup,
	 "Tags of a metric's series, as OpenTSDB gives them.",
	 "/api/search/lookup?tenant=host&m=SystemMetrics.LoadAverage.1",
	 .params = opentsdb_lookup_params},
	{VERB_GET, "/api/aggregators", false, ROLE_ANY, REACH_NOBODY, NO_BODY,
	 &opentsdb_aggregators, "How series can be put together by clients of OpenTSDB.",
	 "/api/aggregators"},
	{VERB_GET, "/api/config/filters", false, ROLE_ANY, REACH_NOBODY, NO_BODY, &opentsdb_filters,
	 "What clients of OpenTSDB can filter tags by.", "/api/config/filters"},
	{VERB_GET, "/api/stats", false, ROLE_READ, REACH_ALL, NO_BODY, &store_admin_stats,
	 "What is stored: series, samples, bytes per sample by table, sizes.", "/api/stats"},
	{VERB_GET, "/api/verify", false, ROLE_ADMIN, REACH_ALL, NO_BODY, &store_admin_verify,
	 "Reads everything that is stored and checks it; may take long.", "granary verify",
	 .params = verify_params},
	{VERB_GET, "/api/backup", false, ROLE_ADMIN, REACH_ALL, NO_BODY, &backup_handler,
	 "All that is stored at this moment, with a manifest behind it.", "granary backup FILE"},
	{VERB_GET, "/api/devices", false, ROLE_READ, REACH_SNMP, NO_BODY, &devices_handler,
	 "What is polled, and how that goes.", "/api/devices"},
	{VERB_POST, "/api/devices", false, ROLE_ADMIN, REACH_SNMP, 32 << 20, 0, &device_add_handler,
	 "Adds a device, or a list of them: all or none; name, address, credentials, oidsets.",
	 "granary device add rtr_a 192.0.2.1 --credentials public"},
	{VERB_GET, "/api/devices/", true, ROLE_READ, REACH_SNMP, NO_BODY, &device_handler,
	 "The same of one device.", "/api/devices/rtr_a"},
	{VERB_POST, "/api/devices/", true, ROLE_ADMIN, REACH_SNMP, 1 << 20, 0,
	 &device_change_handler, "Changes what is given of a device; its name alone renames it.",
	 "curl -H 'Content-Type: application/json' -d '{\"active\":false}' "
	 "http://127.0.0.1:8470/api/devices/rtr_a"},
	{VERB_DELETE, "/api/devices/", true, ROLE_ADMIN, REACH_SNMP, NO_BODY,
	 &device_remove_handler, "Removes a device, with withData=true what is stored of it too.",
	 "curl -X DELETE http://127.0.0.1:8470/api/devices/rtr_a", .params = device_remove_params},
	{VERB_GET, "/api/oidsets", false, ROLE_READ, REACH_SNMP, NO_BODY, &oidsets_handler,
	 "Sets of OIDs that can be polled.", "/api/oidsets"},
	{VERB_GET, "/api/oidsets/", true, ROLE_READ, REACH_SNMP, NO_BODY, &oidset_handler,
	 "One of them.", "/api/oidsets/IfXTable"},
	{VERB_GET, "/api/interfaces", false, ROLE_READ, REACH_SNMP, NO_BODY, &interfaces_handler,
	 "Interfaces of a device or of all; with begin and end their versions of that time; kind "
	 "may "
	 "be saps, lsps, outlets.",
	 "/api/interfaces", .params = interfaces_params},
	{VERB_POST, "/api/put", false, ROLE_WRITE, REACH_TENANT, BODY_GATHERED, &put_handler,
	 "Takes points as OpenTSDB writes them, one or an array; ?summary and ?details say more.",
	 "curl -d '{\"metric\":\"m\",\"timestamp\":1600000000,\"value\":1.5,"
	 "\"tags\":{\"host\":\"a\"}}' 'http://127.0.0.1:8470/api/put?details'"},
	{VERB_POST, "/write", false, ROLE_WRITE, REACH_TENANT, BODY_STREAMED, &line_write_handler,
	 "Takes Influx line protocol; the metric is measurement_field.",
	 "curl -d 'cpu,host=a usage=1.5' 'http://127.0.0.1:8470/write?precision=s'",
	 .user_params = true},
	{VERB_POST, "/api/v2/write", false, ROLE_WRITE, REACH_TENANT, BODY_STREAMED,
	 &line_v2_write_handler,
	 "The same for senders of the second version of that protocol; org and bucket are ignored.",
	 "curl -d 'cpu,host=a usage=1.5' 'http://127.0.0.1:8470/api/v2/write?org=o&bucket=b'"},
	{VERB_POST, "/chukwa", false, ROLE_WRITE, REACH_TENANT, BODY_CHUNKS, &streams_take,
	 "Takes chunks of streams, as Chukwa's agents send them, or of version 2.",
	 "granary stream list", .params = streams_take_params},
	{VERB_POST, "/loki/api/v1/push", false, ROLE_WRITE, REACH_TENANT, BODY_CHUNKS,
	 &streams_push, "Takes lines as clients of Grafana Loki push them, in JSON.",
	 "curl -d '{\"streams\":[{\"stream\":{\"host\":\"a\",\"job\":\"web\"},\"values\":"
	 "[[\"1700000000000000000\",\"a line\"]]}]}' http://127.0.0.1:8470/loki/api/v1/push",
	 .params = streams_push_params},
	{VERB_GET, "/api/streams", false, ROLE_READ, REACH_TENANT, NO_BODY, &streams_list,
	 "Which streams there are, and which of their bytes are held.", "/api/streams",
	 .params = streams_list_params},
	{VERB_DELETE, "/api/streams", false, ROLE_ADMIN, REACH_TENANT, NO_BODY, &streams_delete,
	 "Deletes all that is held of a stream.", "granary stream delete STREAM --dry-run",
	 .params = streams_delete_params},
	{VERB_GET, "/api/streams/search", false, ROLE_READ, REACH_TENANT, NO_BODY, &streams_search,
	 "Lines of logs with some words, in the order of their times.",
	 "/api/streams/search?q=error&since=1h-ago", .params = streams_search_params},
	{VERB_GET, "/api/streams/counts", false, ROLE_READ, REACH_TENANT, NO_BODY, &streams_counts,
	 "How many lines of logs there are, by time.",
	 "/api/streams/counts?since=1d-ago&by=severity", .params = streams_counts_params},
	{VERB_GET, "/api/streams/lines", false, ROLE_READ, REACH_TENANT, NO_BODY, &streams_lines,
	 "The lines around a place of a stream.", "granary stream lines",
	 .params = streams_lines_params},
	{VERB_GET, "/api/streams/tail", false, ROLE_READ, REACH_TENANT, NO_BODY,
	 &streams_tail_handler, "Lines of logs as they come, as server-sent events.",
	 "granary stream tail error --datatype syslog", .params = streams_tail_params},
	{VERB_GET, "/api/streams/demux", false, ROLE_READ, REACH_TENANT, NO_BODY,
	 &streams_demux_list, "How many lines of which streams were made into samples.",
	 "/api/streams/demux", .params = streams_demux_params},
	{VERB_POST, "/api/streams/demux", false, ROLE_ADMIN, REACH_TENANT, NO_BODY,
	 &streams_demux_again, "Makes all samples of a stream again.",
	 "granary stream demux STREAM", .params = streams_demux_again_params},
	{VERB_GET, "/api/streams/export", false, ROLE_READ, REACH_TENANT, NO_BODY, &streams_export,
	 "Bytes of a stream, as they were sent.", "granary stream list",
	 .params = streams_export_params},
	{VERB_GET, "/api/agents", false, ROLE_READ, REACH_ALL, NO_BODY, &agents_list,
	 "Agents that follow log files elsewhere: when they were heard of, how many adaptors are "
	 "in "
	 "which state, how many bytes they are behind.",
	 "/api/agents", .params = agents_list_params},
	{VERB_GET, "/api/agents/", true, ROLE_READ, REACH_ALL, NO_BODY, &agents_show,
	 "/api/agents/NAME: one of them, with its adaptors as they were reported.",
	 "granary agent list web1", .params = agents_show_params},
	{VERB_POST, "/api/agents/", true, ROLE_WRITE, REACH_TENANT, BODY_STATES, &agents_report,
	 "/api/agents/NAME/report: how the adaptors of an agent do.",
	 "curl -d '{\"boot\":\"00c1d2e3f4a5b6c7\",\"all\":true,\"version\":\"1\","
	 "\"collector\":\"http://collector\",\"problem\":\"\",\"adaptors\":[{"
	 "\"name\":\"messages\",\"kind\":\"tail\",\"datatype\":\"syslog\","
	 "\"path\":\"/var/log/messages\",\"state\":\"following\",\"offset\":100,"
	 "\"behind\":0,\"lastLine\":1600000000000,\"error\":\"\"}],\"gone\":[]}' "
	 "http://127.0.0.1:8470/api/agents/web1/report"},
	{VERB_DELETE, "/api/agents/", true, ROLE_ADMIN, REACH_ALL, NO_BODY, &agents_delete,
	 "Forgets an agent, until it reports again.",
	 "curl -X DELETE http://127.0.0.1:8470/api/agents/web1"},
	{VERB_GET, "/hicc/v1/metrics/schema", true, ROLE_READ, REACH_TENANT, NO_BODY, &hicc_schema,
	 "Groups of metrics, as Chukwa's HICC lists them; /hicc/v1/metrics/schema/GROUP: the "
	 "metrics of one.",
	 "/hicc/v1/metrics/schema/SystemMetrics", .params = hicc_names_params},
	{VERB_GET, "/hicc/v1/metrics/source/", true, ROLE_READ, REACH_TENANT, NO_BODY,
	 &hicc_sources, "/hicc/v1/metrics/source/GROUP: the sources of a group of metrics.",
	 "/hicc/v1/metrics/source/SystemMetrics", .params = hicc_names_params},
	{VERB_GET, "/hicc/v1/metrics/series/", true, ROLE_READ, REACH_TENANT, NO_BODY, &hicc_series,
	 "/hicc/v1/metrics/series/METRIC/SOURCE: a metric of a source, with texts and notes.",
	 "/hicc/v1/metrics/series/SystemMetrics.LoadAverage.1/host1", .params = hicc_series_params},
	{VERB_GET, "/hicc/v1/metrics/notes/", true, ROLE_READ, REACH_TENANT, NO_BODY, &hicc_notes,
	 "/hicc/v1/metrics/notes/METRIC/SOURCE: the notes at a metric of a source.",
	 "/hicc/v1/metrics/notes/SystemMetrics.LoadAverage.1/host1?start=1d-ago",
	 .params = hicc_notes_params},
	{VERB_POST, "/hicc/v1/metrics/notes/", true, ROLE_WRITE, REACH_TENANT, BODY_NOTE,
	 &hicc_notes_add, "Adds a note there, of now or of a time.",
	 "curl -H 'Content-Type: application/json' -d '{\"text\":\"a new disk\"}' "
	 "http://127.0.0.1:8470/hicc/v1/metrics/notes/SystemMetrics.LoadAverage.1/host1",
	 .params = hicc_notes_add_params},
	{VERB_DELETE, "/hicc/v1/metrics/notes/", true, ROLE_WRITE, REACH_TENANT, NO_BODY,
	 &hicc_notes_delete, "/hicc/v1/metrics/notes/METRIC/SOURCE/ID: deletes a note.",
	 "/hicc/v1/metrics/notes/SystemMetrics.LoadAverage.1/host1",
	 .params = hicc_notes_delete_params},
	{VERB_POST, "/hicc/v1/dashboard/import", false, ROLE_WRITE, REACH_TENANT,
	 BOARD_IMPORT_MAX_BYTES, 0, &boards_handler,
	 "Takes a dashboard with its widgets and charts, as export/ID of GET gives it: all or "
	 "nothing.",
	 "granary board import host.json", .params = boards_import_params},
	{VERB_PUT, "/hicc/v1/chart/preview/series", false, ROLE_READ, REACH_TENANT, BODY_PREVIEW,
	 &hicc_preview,
	 "Takes a list of series, as a chart has it, and gives it back with their data.",
	 "curl -X PUT -H 'Content-Type: application/json' -d '[{\"query\":{\"tenant\":\"host\","
	 "\"metricName\":\"SystemMetrics.LoadAverage.1\"}}]' "
	 "'http://127.0.0.1:8470/hicc/v1/chart/preview/series?start=5m-ago'",
	 .params = hicc_preview_params},
	BOARD_ROUTES("chart", "mine", "{\"id\":\"mine\",\"title\":\"Mine\"}"),
	BOARD_ROUTES("widget", "Mine", "{\"title\":\"Mine\",\"src\":\"/hicc/v1/chart/draw/mine\"}"),
	BOARD_ROUTES("dashboard", "mine",
		     "{\"id\":\"mine\",\"grid\":[{\"title\":\"Mine\","
		     "\"src\":\"/hicc/v1/chart/draw/mine\"}]}"),
	{VERB_GET, "/oops", false, ROLE_READ, REACH_TENANT, NO_BODY, &faults_list,
	 "Fault reports by the time of receipt, newest first; JSON or format=csv.",
	 "/oops/?since=1h-ago", .params = faults_list_params},
	{VERB_GET, "/oops/live", false, ROLE_READ, REACH_TENANT, NO_BODY, &faults_live,
	 "Fault reports as they come, as server-sent events.", "/oops/live?level=error",
	 .params = faults_live_params},
	{VERB_POST, "/oops", false, ROLE_WRITE, REACH_TENANT, BODY_REPORTS, &faults_post,
	 "Takes a fault report, or an array of them: JSON, BSON or rfc822, also packed by bzip2.",
	 "curl -d '{\"id\":\"OOPS-7f3c\",\"context\":\"/login\",\"exception\":\"KeyError\"}' "
	 "http://127.0.0.1:8470/oops",
	 .params = faults_take_params},
	{VERB_GET, "/oops/days/", true, ROLE_READ, REACH_TENANT, NO_BODY, &faults_day,
	 "/oops/days/DAY: the longest reports of a day, those with most statements, and how many "
	 "there were of each context and exception; /oops/days/DAY/oops: its reports; "
	 "/oops/days/DAY/report: the daily report, also as text and HTML.",
	 "/oops/days/today", .params = faults_day_params},
	{VERB_POST, "/oops/days/", true, ROLE_ADMIN, REACH_TENANT, NO_BODY, &faults_recount,
	 "/oops/days/DAY/recount: counts the reports of a day anew.", "granary fault recount today",
	 .params = faults_recount_params},
	{VERB_POST, "/oops/gc", false, ROLE_ADMIN, REACH_TENANT, NO_BODY, &faults_gc,
	 "Removes old fault reports, or those of the fullest groups; first says how many.",
	 "granary fault gc --before 90d-ago --dry-run", .params = faults_gc_params},
	{VERB_POST, "/oops/delete", false, ROLE_ADMIN, REACH_TENANT, NO_BODY, &faults_erase,
	 "Removes all reports of a user that have come so far; first says how many.",
	 "granary fault delete --user anna --dry-run", .params = faults_erase_params},
	{VERB_GET, "/oops/groups", false, ROLE_READ, REACH_TENANT, NO_BODY, &faults_groups,
	 "Groups of fault reports: how many reports each has, the first and the last, of how many "
	 "users, and whether it is open, resolved or muted.",
	 "/oops/groups?since=1d-ago&status=open", .params = faults_groups_params},
	{VERB_GET, "/oops/groups/", true, ROLE_READ, REACH_TENANT, NO_BODY, &faults_group,
	 "/oops/groups/GROUP: one group, with its releases, machines, users, tags and days.",
	 "granary fault groups", .params = faults_group_params},
	{VERB_PUT, "/oops/groups/", true, ROLE_WRITE, REACH_TENANT, NO_BODY, &faults_say,
	 "Says of a group that it is open, resolved or muted, whose it is, or which bug.",
	 "granary fault groups", .params = faults_say_params},
	{VERB_POST, "/oops/groups/", true, ROLE_WRITE, REACH_TENANT, NO_BODY, &faults_merge,
	 "/oops/groups/GROUP/merge: merges a group into another one; /oops/groups/GROUP/split: "
	 "splits it off again; dryRun=true only says what would become of them.",
	 "granary fault merge GROUP INTO --dry-run", .params = faults_merge_params},
	{VERB_GET, "/oops/messages", false, ROLE_READ, REACH_TENANT, NO_BODY, &faults_messages,
	 "What fault reports have brought about: new groups, regressions, days that are over.",
	 "/oops/messages?kind=new", .params = faults_messages_params},
	{VERB_GET, "/oops/messages/live", false, ROLE_READ, REACH_TENANT, NO_BODY,
	 &faults_messages_live, "These messages as they are made, as server-sent events.",
	 "/oops/messages/live?kind=new", .params = faults_messages_live_params},
	{VERB_GET, "/oops/projects", false, ROLE_ADMIN, REACH_ALL, NO_BODY, &projects_list,
	 "Projects: numbers of tenants and their keys, by which Sentry's clients send reports.",
	 "/oops/projects"},
	{VERB_POST, "/oops/projects", false, ROLE_ADMIN, REACH_ALL, NO_BODY, &projects_add,
	 "Makes a project of a tenant, with a key.", "granary fault project add shop",
	 .params = projects_add_params},
	{VERB_POST, "/oops/projects/#/keys", false, ROLE_ADMIN, REACH_ALL, NO_BODY,
	 &projects_key_add, "Adds a key to a project.", "granary fault project key add 1"},
	{VERB_DELETE, "/oops/projects/#/keys/", true, ROLE_ADMIN, REACH_ALL, NO_BODY,
	 &projects_key_remove, "Takes a key of a project back: whoever sends with it is refused.",
	 "granary fault project key remove 1 0123456789abcdef0123456789abcdef"},
	{VERB_POST, "/api/#/envelope", false, ROLE_NONE, REACH_NOBODY, BODY_REPORTS,
	 &sentry_envelope,
	 "Takes what Sentry's clients send to a project: events, slow transactions.",
	 "granary fault project list", .any_origin = true, .params = sentry_params},
	{VERB_POST, "/api/#/store", false, ROLE_NONE, REACH_NOBODY, BODY_REPORTS, &sentry_store,
	 "Takes one event of older clients of Sentry.", "granary fault project list",
	 .any_origin = true, .params = sentry_params},
	{VERB_GET, "/oops/", true, ROLE_READ, REACH_TENANT, NO_BODY, &faults_show,
	 "A fault report, whole; its id in large or small letters, with OOPS- and without. "
	 "/oops/ID/why: by what rule and which words it is in its group. "
	 "/oops/ID/attachments/N: a file that came with it, from 0 on.",
	 "/oops/OOPS-7f3c", .params = faults_show_params},
	{VERB_PUT, "/oops/", true, ROLE_WRITE, REACH_TENANT, BODY_REPORTS, &faults_put,
	 "Takes one fault report, under this id.",
	 "curl -X PUT -d '{\"context\":\"/login\",\"exception\":\"KeyError\"}' "
	 "http://127.0.0.1:8470/oops/OOPS-7f3c",
	 .params = faults_take_params},
	{VERB_POST, "/oops/", true, ROLE_WRITE, REACH_TENANT, NO_BODY, &faults_bug,
	 "/oops/ID/bug: says which bug of a tracker a fault report is.",
	 "granary fault bug OOPS-7f3c launchpad 1234", .params = faults_bug_params},
	{VERB_GET, "/api/credentials", false, ROLE_ADMIN, REACH_ALL, NO_BODY, &credentials_list,
	 "Credentials: their names, what their holders may do, and whose data that is.",
	 "granary token list", .params = credentials_list_params},
	{VERB_POST, "/api/credentials", false, ROLE_ADMIN, REACH_ALL, BODY_SECRET,
	 &credentials_create,
	 "Makes a credential, and says its token, which is said only once; a user's password is "
	 "the body, {\"password\":\"...\"}.",
	 "granary token create grafana --roles read --tenants '*'",
	 .params = credentials_create_params},
	{VERB_PUT, "/api/credentials/", true, ROLE_ADMIN, REACH_ALL, BODY_SECRET,
	 &credentials_change,
	 "/api/credentials/NAME: changes what is given of it; its token stays. With a body, as "
	 "above, the password of a user. Its sessions end.",
	 "granary token change grafana --tenants acme", .params = credentials_change_params},
	{VERB_DELETE, "/api/credentials/", true, ROLE_ADMIN, REACH_ALL, NO_BODY,
	 &credentials_revoke, "/api/credentials/NAME: whoever shows it is refused.",
	 "granary token revoke grafana"},
	{VERB_POST, "/api/session", false, ROLE_NONE, REACH_NOBODY, BODY_SECRET, &session_begin,
	 "Begins a session of a browser, as a cookie: the body has a name and a password, or a "
	 "token.",
	 "granary user create ann --roles read --tenants acme"},
	{VERB_GET, "/api/session", false, ROLE_ANY, REACH_NOBODY, NO_BODY, &session_show,
	 "Who asks: name, roles, tenants, and how that is known.", "/api/session"},
	{VERB_DELETE, "/api/session", false, ROLE_ANY, REACH_NOBODY, NO_BODY, &session_drop,
	 "Has the browser forget its session.", "granary session reset"},
	{VERB_DELETE, "/api/sessions", false, ROLE_ADMIN, REACH_ALL, NO_BODY, &session_reset,
	 "Ends the sessions of all, by a new key.", "granary session reset"},
	{VERB_POST, "/api/recompute", false, ROLE_ADMIN, REACH_SNMP, NO_BODY, &recompute_handler,
	 "Makes a device's bins and aggregates once more from its raw data; says what differed.",
	 "granary recompute --device rtr_a --from 7d-ago --to now --dry-run",
	 .params = recompute_params},
	{VERB_GET, "/api/rollups", false, ROLE_READ, REACH_ALL, NO_BODY, &rollups_handler,
	 "How roll-ups are made, how far they are behind, and what waits to be rolled up.",
	 "/api/rollups", .params = rollups_params},
	{VERB_POST, "/api/rollups/rebuild", false, ROLE_ADMIN, REACH_ALL, NO_BODY,
	 &rollups_rebuild_handler,
	 "Marks all that has raw data to be rolled up once more, when marks were lost.",
	 "granary rollup rebuild --from 1d-ago --dry-run", .params = rollups_rebuild_params},
	{VERB_GET, "/api/retention", false, ROLE_ADMIN, REACH_ALL, NO_BODY, &retention_handler,
	 "How long what is kept, by which rule, and how much of it is stored for how long.",
	 "/api/retention", .params = retention_params},
	{VERB_POST, "/api/retention/apply", false, ROLE_ADMIN, REACH_ALL, NO_BODY,
	 &retention_apply_handler,
	 "Moves what is stored for another time than it would be now, or counts it.",
	 "granary retention apply --dry-run", .params = retention_apply_params},
	{VERB_GET, "/api/clock", false, ROLE_READ, REACH_NOBODY, NO_BODY, &clock_handler,
	 "Whether the clock is believed. While it is not, nothing expires.", "/api/clock"},
	{VERB_POST, "/api/clock/accept", false, ROLE_ADMIN, REACH_ALL, NO_BODY,
	 &clock_accept_handler, "Says that the clock is right: what has expired by it is removed.",
	 "granary clock accept"},
	{VERB_POST, "/api/delete", false, ROLE_ADMIN, REACH_TENANT, NO_BODY, &delete_handler,
	 "Deletes samples of a tenant's series and their roll-ups, or with dryRun=true counts "
	 "them.",
	 "granary delete cpu_idle 'host=web-*' --start 2020-08-24 --end 2020-08-25 --dry-run",
	 .params = delete_params},
	{VERB_GET, "/api/queues", false, ROLE_READ, REACH_ALL, NO_BODY, &queues_list,
	 "How many polls wait in each queue, came and were persisted.", "/api/queues"},
	{VERB_GET, "/api/queues/aside", false, ROLE_READ, REACH_ALL, NO_BODY, &queues_aside,
	 "What no persister of a queue could read, with the reason, newest first.",
	 "/api/queues/aside?queue=counters"},
	{VERB_POST, "/api/queues/retry", false, ROLE_ADMIN, REACH_ALL, NO_BODY, &queues_retry,
	 "Gives what no persister of a queue could read back to it, to be tried again.",
	 "granary queue --retry counters"},
	{VERB_POST, "/api/polls", false, ROLE_POLL, REACH_SNMP, BODY_GATHERED, &polls_handler,
	 "Takes polls that others made into their queues: messages behind their lengths, or "
	 "esmond's "
	 "JSON.",
	 "curl -H 'Content-Type: application/json' -d '{\"oidset_name\":\"FastPollHC\","
	 "\"device_name\":\"rtr_a\",\"oid_name\":\"ifHCInOctets\",\"timestamp\":1600000000,"
	 "\"data\":[[[\"ifHCInOctets\",\"xe-0/2/0\"],1000]]}' "
	 "http://127.0.0.1:8470/api/polls"},
	{VERB_POST, "/api/polls/now", false, ROLE_ADMIN, REACH_SNMP, NO_BODY, &device_poll_handler,
	 "Has the server poll a device now, beside its slots; what it says is stored.",
	 "granary device poll rtr_a", .params = device_poll_params},
	{VERB_GET, "/api/pollers", false, ROLE_READ, REACH_ALL, NO_BODY, &pollers_list,
	 "Pollers elsewhere: when they were heard of, how many devices they have, what waits "
	 "there.",
	 "/api/pollers"},
	{VERB_GET, "/api/pollers/", true, ROLE_POLL, REACH_SNMP, NO_BODY, &poller_inventory,
	 "/api/pollers/NAME/inventory: what that poller polls; If-None-Match saves the answer.",
	 "/api/pollers/site_b/inventory", .poller_segment = 2},
	{VERB_POST, "/api/pollers/", true, ROLE_POLL, REACH_SNMP, 32 << 20, 0, &poller_report,
	 "/api/pollers/NAME/report: how it goes there.",
	 "granary poll --server http://127.0.0.1:8470 --name site_b --data ./spool",
	 .poller_segment = 2},
	{VERB_GET, "/query", false, ROLE_ANY, REACH_NOBODY, NO_BODY, &influx_query,
	 "Answers SHOW DATABASES and CREATE DATABASE, which InfluxDB's clients may ask for first.",
	 "/query?q=SHOW%20DATABASES", .user_params = true},
	{VERB_POST, "/query", false, ROLE_ANY, REACH_NOBODY, 64 << 10, 0, &influx_query,
	 "The same from a form.", "curl -d 'q=SHOW DATABASES' http://127.0.0.1:8470/query",
	 .user_params = true},
	{VERB_GET, "/ping", false, ROLE_NONE, REACH_NOBODY, NO_BODY, &influx_ping,
	 "204, or 200 with verbose=true, for senders that want to know whether somebody is here.",
	 "/ping?verbose=true"},
	{VERB_GET, "/health", false, ROLE_NONE, REACH_NOBODY, NO_BODY, &influx_health,
	 "The same as JSON: pass, or fail and 503 while writes are refused.", "/health"},
	{VERB_GET, "/api/v2/health", false, ROLE_NONE, REACH_NOBODY, NO_BODY, &influx_health,
	 "The same.", "/api/v2/health"},
	{VERB_GET, "/ready", false, ROLE_NONE, REACH_NOBODY, NO_BODY, &influx_ready,
	 "Since when the server has been ready, for clients of InfluxDB's second version.",
	 "/ready"},
	{VERB_GET, "/api/v2/ready", false, ROLE_NONE, REACH_NOBODY, NO_BODY, &influx_ready,
	 "The same.", "/api/v2/ready"},
	{VERB_GET, "/api/v2/buckets", false, ROLE_ANY, REACH_NOBODY, NO_BODY, &influx_buckets,
	 "Says that the bucket which a client names is there: any name will do.",
	 "/api/v2/buckets?name=b"},
	{VERB_GET, "/api/v2/orgs", false, ROLE_ANY, REACH_NOBODY, NO_BODY, &influx_orgs,
	 "The same of an organisation.", "/api/v2/orgs?org=o"},
	{VERB_GET, "/v2/device", true, ROLE_READ, REACH_SNMP, NO_BODY, &v2_device,
	 "Devices, their interfaces, and the rates of these: in, out, error/in, discard/out ...",
	 "/v2/device/", .params = v2_endpoint_params},
	{VERB_PUT, "/v2/device/", true, ROLE_ADMIN, REACH_SNMP, BODY_QUESTION, &v2_device_put,
	 "Replaces the OIDSets of a device, and whether it is active.",
	 "curl -X PUT -H 'Content-Type: application/json' -d '{\"oidsets\":[\"IfXTable\"]}' "
	 "http://127.0.0.1:8470/v2/device/rtr_a/"},
	{VERB_GET, "/v2/interface", true, ROLE_READ, REACH_SNMP, NO_BODY, &v2_interface,
	 "Interfaces of all devices by name or description (ifAlias__contains, device__name ...).",
	 "/v2/interface/?ifAlias__icontains=transit"},
	{VERB_GET, "/v2/oidsetmap", true, ROLE_READ, REACH_SNMP, NO_BODY, &v2_oidsetmap,
	 "What the endpoints of interfaces are in each OIDSet.", "/v2/oidsetmap/"},
	{VERB_GET, "/v2/oidset", true, ROLE_READ, REACH_SNMP, NO_BODY, &v2_oidset,
	 "Names of the OIDSets, which say what is polled.", "/v2/oidset/"},
	{VERB_GET, "/v2/timeseries/", true, ROLE_READ, REACH_SNMP, NO_BODY, &v2_timeseries,
	 "Data by row key, in milliseconds: RawData, BaseRate or Aggs.",
	 "/v2/timeseries/BaseRate/snmp/rtr_a/FastPollHC/ifHCInOctets/xe-0@2F0@2F0/30000",
	 .params = v2_timeseries_params},
	{VERB_POST, "/v2/timeseries/", true, ROLE_WRITE, REACH_SNMP, BODY_QUESTION,
	 &v2_timeseries_post,
	 "Takes samples of one counter, RawData, into the queue of its OIDSet.",
	 "curl -H 'Content-Type: application/json' -d '[{\"ts\":1600000000000,\"val\":1000}]' "
	 "http://127.0.0.1:8470/v2/timeseries/RawData/snmp/rtr_a/FastPollHC/ifHCInOctets/"
	 "xe-0@2F0@2F0/30000"},
	{VERB_POST, "/v2/bulk/interface", true, ROLE_READ, REACH_SNMP, BODY_QUESTION,
	 &v2_bulk_interface, "Endpoints of many interfaces in one answer.",
	 "curl -H 'Content-Type: application/json' -d '{\"interfaces\":[{\"device\":\"rtr_a\","
	 "\"iface\":\"xe-0/0/0\"}],\"endpoint\":[\"in\"]}' "
	 "http://127.0.0.1:8470/v2/bulk/interface/"},
	{VERB_POST, "/v2/bulk/timeseries", true, ROLE_READ, REACH_SNMP, BODY_QUESTION,
	 &v2_bulk_timeseries, "Many row keys in one answer.",
	 "curl -H 'Content-Type: application/json' -d '{\"type\":\"BaseRate\",\"paths\":[[\"snmp\","
	 "\"rtr_a\",\"FastPollHC\",\"ifHCInOctets\",\"xe-0/0/0\",30000]]}' "
	 "http://127.0.0.1:8470/v2/bulk/timeseries/"},
	{VERB_GET, "/v2/report/percentile", true, ROLE_READ, REACH_SNMP, NO_BODY,
	 &v2_report_percentile, "The 95th percentile by months of a time zone; JSON or format=csv.",
	 "/v2/report/percentile?device=rtr_a&interface=xe-0/0/0&zone=Europe/Berlin",
	 .params = v2_percentile_params},
	{VERB_GET, "/v2/report/volume", true, ROLE_READ, REACH_SNMP, NO_BODY, &v2_report_volume,
	 "Octets by days or months of a time zone, exactly; JSON or format=csv.",
	 "/v2/report/volume?device=rtr_a&interface=xe-0/0/0&zone=Europe/Berlin",
	 .params = v2_volume_params},
	{VERB_GET, "/v2/report/sum", true, ROLE_READ, REACH_SNMP, NO_BODY, &v2_report_sum,
	 "One endpoint of many interfaces as one.",
	 "/v2/report/sum?endpoint=in&ifAlias__icontains=transit", .params = v2_sum_params},
	{VERB_GET, "/v2/report/top", true, ROLE_READ, REACH_SNMP, NO_BODY, &v2_report_top,
	 "The interfaces with the largest average, maximum or volume.",
	 "/v2/report/top?endpoint=in&by=max&n=10", .params = v2_top_params},
	{VERB_GET, "/v2/inventory", true, ROLE_READ, REACH_SNMP, NO_BODY, &v2_inventory,
	 "Row keys of what is stored.", "/v2/inventory/?row_key__contains=ifHCInOctets"},
	{VERB_GET, "/v2/outlet", true, ROLE_READ, REACH_SNMP, NO_BODY, &v2_outlet,
	 "Outlets of power strips.", "/v2/outlet/"},
	{VERB_GET, "/v2/pdu", true, ROLE_READ, REACH_SNMP, NO_BODY, &v2_pdu,
	 "Power strips, their outlets, and what these draw.", "/v2/pdu/"},
};

const size_t api_route_count = ARRAY_LEN(api_routes);
