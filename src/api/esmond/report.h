/* What the reports of /v2 share: which interfaces they are about, and reading the counters of one
 * after the other.
 *
 * A report is embedded in its owner. It finds the interfaces that the parameters select (`device`,
 * `interface`, look-ups), then reads for each of them each span of time, and in it each endpoint;
 * what is made of it is the kind's. At most query.series_max interfaces. */
#ifndef API_ESMOND_REPORT_H
#define API_ESMOND_REPORT_H

#include "api/esmond/fetch.h"
#include "api/esmond/path.h"
#include "api/esmond/polled.h"
#include "api/esmond/rows.h"
#include "api/esmond/sums.h"
#include "api/esmond/zone.h"
#include "wire/zones.h"

enum { REPORT_ENDPOINTS_MAX = 2 };

struct v2_selected {
	const struct device *device;
	struct slice name, alias;
};

struct v2_report;

struct v2_report_kind {
	/* The interfaces are known: report->list. May be NULL. */
	void (*begin)(struct v2_report *report);
	/* A span of an interface begins; may be NULL. */
	void (*span)(struct v2_report *report);
	/* An endpoint's series in a span is about to be read: sets fetch.period_ms, from_ms and
	 * to_ms. False: there is nothing to read of it. */
	bool (*open)(struct v2_report *report);
	/* A piece of it is there: fetch.rows. */
	void (*rows)(struct v2_report *report);
	/* All endpoints of an interface in a span have been read. */
	void (*close)(struct v2_report *report);
	void (*end)(struct v2_report *report);
};

/* How the interfaces are found; report_select.c's. */
struct v2_select {
	void (*done)(struct v2_report *report);
	bool too_many;
	const struct device **bare; /* of these no rows are of the report's time */
	size_t bare_count, bare_at;
	/* Of the one at work: its rows of all times, what they hide, its counters. */
	struct v2_rows ever;
	struct slice *hidden;
	size_t hidden_count, hidden_room;
	struct arena arena;
	struct v2_polled polled;
};

struct v2_report {
	struct v2_answer answer;
	const struct v2_report_kind *kind;
	struct v2_rows rows;
	struct v2_fetch fetch;
	struct slice endpoints[REPORT_ENDPOINTS_MAX];
	size_t endpoint_count, span_count;

	struct v2_selected *list;
	size_t count;
	size_t at, span, endpoint; /* what is being read */

	/* private */
	size_t room;
	struct slice device, interface; /* as asked, where each is one by name */
	struct v2_select select;
	bool fetching;
	bool found[REPORT_ENDPOINTS_MAX]; /* of the selected: there is such a counter */
	struct buf refused;               /* JSON, comma separated */
};

/* Reads the look-ups and what the route's table has, with offsets into the report's owner, whose
 * first member the report is. ERR_INVALID with a sentence. */
int v2_report_read(struct v2_report *report, struct errbuf *e) MUST_CHECK;
#define V2_PARAM_INTERFACE                                                                         \
	"interface", PARAM_TEXT, offsetof(struct v2_report, interface),                            \
		.help = "One by its name; others by look-ups as ifAlias__contains, device."
#define V2_PARAM_ENDPOINT                                                                          \
	"endpoint", PARAM_TEXT, offsetof(struct v2_report, endpoints[0]),                          \
		.missing = "in, out, error/in ...", .help = "What is looked at of each interface."
/* The interfaces that lived at some time of it are selected. */
void v2_report_set_range(struct v2_report *report, const struct v2_range *range);
void v2_report_start(struct v2_report *report);
/* For v2_answer_init. */
void v2_report_release(struct v2_answer *answer);

/* Private: fills report->list and calls select.done, or fails the answer. */
void v2_report_select(struct v2_report *report);
void v2_report_select_release(struct v2_report *report);

static inline const struct v2_selected *v2_report_selected(const struct v2_report *report)
{
	ASSERT(report->at < report->count);
	return &report->list[report->at];
}

/* "device", "interface", "ifAlias" of the selected, into the object that is open. */
void v2_report_put_selected(struct v2_report *report);

/* For reports of one endpoint: what cannot be said of the selected, and why. */
void v2_report_refuse(struct v2_report *report, const char *sentence);
/* Refuses it if its device has no such endpoint. */
void v2_report_refuse_unknown(struct v2_report *report);
/* "errors": the refused, into the object that is open. */
void v2_report_put_refused(struct v2_report *report);

/* Puts the rows that were read into their windows. */
void v2_report_sum_rows(const struct v2_report *report, struct v2_sums *sums);
/* Whether a span of the selected was measured, `covered` saying by endpoint how much of it, in
 * whatever unit: some of it by each of the counters that there are, and there is one. */
bool v2_report_is_measured(const struct v2_report *report, const int64_t *covered);

/* ---- Days and months --------------------------------------------------------------------------
 */

struct v2_calendar {
	struct slice zone_name, month; /* as asked */
	enum v2_span span;
	size_t count;
	int64_t *edges_s, *days;
	int csv; /* 0 or 1: in v2_format_words */
};

extern const char *const v2_span_words[], *const v2_format_words[];

#define V2_PARAM_ZONE(call_)                                                                       \
	"zone", PARAM_TEXT, offsetof(struct call_, calendar.zone_name),                            \
		.help = "Whose days and months: Europe/Berlin; UTC where it is left out."
#define V2_PARAM_SPAN(call_)                                                                       \
	"span", PARAM_WORD, offsetof(struct call_, calendar.span), .words = v2_span_words,         \
								   .help = "What a row is of."
#define V2_PARAM_MONTH(call_)                                                                      \
	"month", PARAM_TEXT, offsetof(struct call_, calendar.month),                               \
		.help = "2026-10, instead of begin and end; this month where all are left out."
#define V2_PARAM_FORMAT(call_)                                                                     \
	"format", PARAM_WORD, offsetof(struct call_, calendar.csv),                                \
		.words = v2_format_words,                                                          \
		.help = "The shape of the answer; json where it is left out."

/* Makes the days or months of what has been read by these rows, with begin and end, in the answer's
 * arena. ERR_INVALID with a sentence. */
int v2_calendar_read(struct v2_answer *answer, struct v2_calendar *calendar,
		     struct errbuf *e) MUST_CHECK;
/* The interfaces that lived at some time of these days are selected. */
void v2_report_set_days(struct v2_report *report, const struct v2_calendar *calendar);

/* A column: a member of a row, from which both JSON and CSV are made. */
struct v2_column {
	const char *name; /* in CSV, and in JSON where it has no group */
	const char *unit; /* NULL: a count */
	enum value_type type;
	size_t offset;
	const char *group,
		*member; /* in JSON: {"in":{"total":...}}; those of a group are together */
};

/* The columns of a report end with a NULL name. CSV: the line of their names, behind those of the
 * interface and of the day. */
void v2_report_begin_csv(struct v2_report *report, const struct v2_column *columns);
/* The rows of the selected interface stand between both; of CSV nothing. */
void v2_report_begin_rows(struct v2_report *report, const struct v2_calendar *calendar);
void v2_report_end_rows(struct v2_report *report, const struct v2_calendar *calendar);
/* A row of the selected interface, on day or in month `i`: in JSON an object, with "month":
 * "2026-10", "begin", "end", and "complete": whether it is over and was measured. */
void v2_report_put_row(struct v2_report *report, const struct v2_calendar *calendar, size_t i,
		       bool is_measured, const struct v2_column *columns, const void *row);

/* The end of either: in JSON of the list within the object that the answer is. */
void v2_report_end(struct v2_report *report, const struct v2_calendar *calendar);

#endif
