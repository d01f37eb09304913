/* What the routes that look at lines of logs have in common: which lines are asked for, and how
 * they are told. */
#ifndef API_STREAM_LINES_H
#define API_STREAM_LINES_H

#include "api/call.h"
#include "api/params.h"
#include "stream/line_scan.h"

struct lines_question {
	struct slice tenant, stream, q;
	struct stream_names names; /* NULL data: any */
	int64_t since_ms, until_ms;
};

#define LINES_PARAM(question_, field_)                                                             \
	offsetof(question_, lines) + offsetof(struct lines_question, field_)

/* Rows of a route's table whose question has a `lines`. */
#define LINES_PARAMS_OF_STREAMS(question_)                                                         \
	{"tenant", PARAM_TENANT, LINES_PARAM(question_, tenant), .help = "Whose lines."},          \
		{"source", PARAM_TEXT, LINES_PARAM(question_, names.source),                       \
		 .help = "Only those of this host."},                                              \
		{"cluster", PARAM_TEXT, LINES_PARAM(question_, names.cluster),                     \
		 .help = "Only those of this cluster."},                                           \
		{"datatype", PARAM_TEXT, LINES_PARAM(question_, names.datatype),                   \
		 .help = "Only those of this datatype."},                                          \
		{"name", PARAM_TEXT, LINES_PARAM(question_, names.name),                           \
		 .help = "Only those of this name."},                                              \
		{"stream", PARAM_TEXT, LINES_PARAM(question_, stream),                             \
		 .help = "Only those of the stream with this address."},                           \
	{                                                                                          \
		"q", PARAM_TEXT, LINES_PARAM(question_, q),                                        \
			.help = "Only lines with these words: word \"some words\" *part* ~regex "  \
				"-word, and these fields: status>=500 method=GET path=~^/a."       \
	}
#define LINES_PARAMS_OF_TIME(question_)                                                            \
	{"since", PARAM_TIME, LINES_PARAM(question_, since_ms), .help = "Of this time or later."}, \
	{                                                                                          \
		"until", PARAM_TIME, LINES_PARAM(question_, until_ms),                             \
			.help = "Of before this time."                                             \
	}

enum { LINES_TEXT_MAX_BYTES = 2 * STREAM_ADDRESS_MAX_BYTES };

/* Copies texts into the arena, so that they stay when the request is gone, and takes an address for
 * its names and its incarnation (0: any). ERR_INVALID, with a sentence. */
int lines_keep(struct arena *arena, struct lines_question *question, uint64_t *incarnation,
	       struct errbuf *e) MUST_CHECK;

/* Fills in what is to be looked at. Texts go into the call's arena, since a job reads them when the
 * request may be gone; the call's time is looked at. ERR_INVALID, with a sentence. */
int lines_read(struct api_call *call, struct lines_question *question, struct line_query *query,
	       struct line_scan_rules *rules, struct errbuf *e) MUST_CHECK;

/* Writes `{"time":ms,"stream":ADDRESS,"offset":N,"bytes":N,"severity":"error","text":"..."}`; there
 * is no severity where the line names none, and `"cut":true` where the text is cut. */
void lines_put(struct json_writer *json, const struct line_found *found);
/* Writes `"unknown_field":{"field":"took","datatype":"app"}`. */
void lines_put_unknown(struct json_writer *json, const struct line_without *without);
/* Writes `looked_at`; and `damaged`, and `without_rule` with `unknown_field`, where something is.
 */
void lines_put_work(struct json_writer *json, const struct line_scan_work *work);

#endif
