/* The handlers of streams (document K, Chukwa; doc/streams.md), for the table of routes. */
#ifndef API_STREAM_STREAMS_H
#define API_STREAM_STREAMS_H

#include "api/params.h"

/* POST /chukwa: chunks of version 1 or 2 (doc/format-chunks.md). When it answers they are durable.
 *
 * The answer is text, in the order of the chunks. Of each that is stored, now or before:
 *
 *     ok: 100 bytes ending at offset 199
 *     held: 0 to 200 of 00c1d2e3f4a5b6c7
 *
 * the first line as Chukwa's collector has it, the second: from where to where its stream is whole
 * around it, and in which incarnation. Of each that is not: `other: ...`, the incarnation has other
 * bytes at these offsets; `refused: ...`, it cannot be stored; `later: ...`, the same may be stored
 * if it is sent again; `damaged: ...`, bytes that were passed over. Each with a sentence.
 *
 * 200 all are stored; 409 there is an `other`; 400 there is a `refused` or a `damaged`; 503 there
 * is a `later`; 507 there is no room. What is said to be stored is, whatever the status. */
extern const struct http_handler streams_take;
extern const struct param streams_take_params[];

/* POST /loki/api/v1/push: lines, as clients of Grafana Loki push them in JSON; the collector gives
 * them their offsets. 204 when all that can be stored is durable, and nothing is wrong. Else a text
 * says what is: 400 some of it cannot be stored, or none (it names what, and where), the rest is;
 * 413 it is too much; 415 it is protobuf; 429 a limit of the tenant, 503 all others: it may be sent
 * again, and what was stored of it is known then. */
extern const struct http_handler streams_push;
extern const struct param streams_push_params[];

/* GET /api/streams:
 * {"streams":[{"stream":"host1/web/syslog//var/log/messages@00c1...","source":...,
 * "cluster":...,"datatype":...,"name":...,"incarnation":"00c1...","made":ms,"held":[[0,200],...],
 * "sealed":[[0,100],...],"held_to":200,"kept_from":N,"waiting":{"bytes":N,"stored":N,"oldest":ms}},
 * ...],"token":"..."}, in the order of names; `token` is there if there are more. Where a stream
 * has more than 100 ranges the first ones are there, and `"more_ranges":true`; nothing is held from
 * `held_to` on. */
extern const struct http_handler streams_list;
extern const struct param streams_list_params[];

/* GET /api/streams/search: lines of all streams of a tenant in the order of their times, newest
 * first unless `order` says otherwise (stream/line_search.h):
 * {"lines":[{"time":ms,"stream":ADDRESS,"offset":N,"bytes":N,"severity":"error","text":"..."},...],
 * "looked_at":{"streams":N,"blocks":N,"excluded_blocks":N,"bytes":N},"token":"..."}. `bytes` are
 * those of the line as it was sent; a text is cut after 64 KiB, and then has `"cut":true`. What is
 * no UTF-8 is U+FFFD in it. `token` is there if there may be more; `damaged`, if so many blocks or
 * ranges cannot be read; `without_rule`, if so many streams are of a datatype of which no rule
 * knows a field that is asked for, with `unknown_field`, {"field":...,"datatype":...} of the first
 * of them. 422 the search takes too long, or asks for too much. */
extern const struct http_handler streams_search;
extern const struct param streams_search_params[];

/* GET /api/streams/counts: how many lines there are, by time, and by source, datatype or severity
 * where `by` says so: {"since":ms,"step":ms,"steps":N,"series":[{"source":...,"datatype":...,
 * "severity":"error","counts":[N,...]},...],"looked_at":{...}}. The first step begins at `since`,
 * which is a multiple of the step. */
extern const struct http_handler streams_counts;
extern const struct param streams_counts_params[];

/* GET /api/streams/lines?stream=ADDRESS&offset=N: the line that has this byte, and lines before and
 * behind it: {"lines":[as of a search],"held":true,"looked_at":{...}}; `held` false: there is no
 * such byte, and the lines are the ones next to it. 404 there is no such stream. */
extern const struct http_handler streams_lines;
extern const struct param streams_lines_params[];

/* GET /api/streams/tail: lines as they come, once they are durable (stream/tail.h), as server-sent
 * events: `line`, whose data is that of a line of a search; and `missed`, {"bytes":N}: so many
 * bytes of the streams that are asked for came before the next line and are not told, whatever
 * their lines have; and `without_rule`, {"streams":N,"unknown_field":{...}}: so many more streams
 * have come of whose datatype no rule knows a field that is asked for. 503: there are as many
 * streams without end as may be. */
extern const struct http_handler streams_tail_handler;
extern const struct param streams_tail_params[];

/* GET /api/streams/demux: what is read of the lines of streams whose datatypes have rules
 * (stream/demux_state.h): {"streams":[{"source":...,"cluster":...,"datatype":...,"name":...,
 * "named":false,"lines":N,"passed":N,"unread":N,"late":N,"rest":N,"series":N,"bins_waiting":N,
 * "last":ms,"example":"a line that was not read"},...],"token":"..."}, in the order of names. */
extern const struct http_handler streams_demux_list;
extern const struct param streams_demux_params[];

/* POST /api/streams/demux?stream=ADDRESS: all samples of a stream are made again, from the
 * beginning of what is held: {"stream":ADDRESS,"again":true}. 404 there is no such stream, or its
 * datatype has no rule. */
extern const struct http_handler streams_demux_again;
extern const struct param streams_demux_again_params[];

/* GET /api/streams/export?stream=ADDRESS&from=N&to=N: bytes of a stream as they were sent, from the
 * first one that is held at `from` or behind it to the next hole, or to `limit`. The header
 * X-Granary-Offset is the offset of the first one. 404 there is no such stream. An answer without
 * bytes: nothing is held from there on. */
extern const struct http_handler streams_export;
extern const struct param streams_export_params[];

/* DELETE /api/streams?stream=ADDRESS: all that is held of a stream now is to go:
 * {"stream":ADDRESS,"bytes":N,"dry_run":false}. It is not shown any more, and leaves the disk soon.
 * 404 there is no such stream. */
extern const struct http_handler streams_delete;
extern const struct param streams_delete_params[];

#endif
