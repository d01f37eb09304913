/* Private to api/hicc: what is common to what its routes are asked. */
#ifndef API_HICC_ASKED_H
#define API_HICC_ASKED_H

#include "api/call.h"
#include "api/params.h"
#include "board/rows.h"

enum {
	HICC_RANGE_DAYS_MAX = 3660,
	HICC_PART_MAX_BYTES = ROW_METRIC_MAX_BYTES, /* of a path: no name is longer */
};

struct hicc_asked {
	struct slice tenant, start, end;
	int64_t start_ms, end_ms; /* start <= time < end */
	bool details;
};

#define HICC_FIELD(field_) offsetof(struct hicc_asked, field_)
#define HICC_TENANT                                                                                \
	{                                                                                          \
		"tenant", PARAM_TENANT, HICC_FIELD(tenant),                                        \
			.help = "Whose; where it is left out, as hicc.tenant says."                \
	}
#define HICC_START                                                                                 \
	{                                                                                          \
		"start", PARAM_TEXT, HICC_FIELD(start),                                            \
			.help = "From then on, yyyyMMddHHmmss in UTC, or as /api/query has it; "   \
				"an hour before `end` where it is left out."                       \
	}
#define HICC_END                                                                                   \
	{                                                                                          \
		"end", PARAM_TEXT, HICC_FIELD(end),                                                \
			.help = "Up to then; up to now where it is left out."                      \
	}

/* A time as Chukwa writes it, 14 digits, in UTC; or as time_parse has it. */
int hicc_time_parse(struct slice text, int64_t now_ms, int64_t *ms, struct errbuf *e) MUST_CHECK;

/* Where a request names no tenant, it is that of hicc.tenant. */
void hicc_presume_tenant(const struct http_request *request, struct slice *tenant);
/* Reads the route's parameters; the tenant is in the call's arena. ERR_INVALID with a sentence. */
int hicc_read(const struct http_request *request, struct api_call *call, struct hicc_asked *asked,
	      struct errbuf *e) MUST_CHECK;

/* The part of the path that is `at` behind /hicc/v1/metrics/WORD, in the call's arena; NULL data:
 * there is none, or it is longer than any name. */
struct slice hicc_path_part(const struct http_request *request, struct api_call *call, size_t at);
/* How many there are. */
size_t hicc_path_parts(const struct http_request *request);
/* ERR_NOT_FOUND with its sentence. */
int hicc_nothing_there(const struct http_request *request, struct errbuf *e);
/* The metric and the source, which are the first two parts of a path with so many. ERR_NOT_FOUND
 * with a sentence. */
int hicc_read_row(const struct http_request *request, struct api_call *call,
		  const struct hicc_asked *asked, size_t parts, struct row *row,
		  struct errbuf *e) MUST_CHECK;

/* For struct row_span, where the owner is the call: whether query.timeout has not passed. */
int hicc_may_go_on(void *owner, struct errbuf *e) MUST_CHECK;

/* {"id":...,"time":ms,"metric":...,"text":...} */
void hicc_put_note(struct json_writer *json, struct slice metric, const struct row_cell *note);

#endif
