#include "api/metrics/answered_by.h"

#include "retention/granularity.h"
#include "wire/timetext.h"

enum { HEADER_MAX_BYTES = 4096, GRAIN_MAX_BYTES = ROLLUP_WIDTH_MAX_BYTES };

/* ---- Asking ---------------------------------------------------------------------------------- */

static int no_such_width(const struct rollup_grains *grains, struct slice text, struct errbuf *e)
{
	char list[ROLLUP_GRAINS_MAX * (ROLLUP_WIDTH_MAX_BYTES + 2) + 1], *to = list;
	for (size_t i = 0; i < grains->count; i++) {
		if (i)
			to = (char *)memcpy(to, ", ", 2) + 2;
		to += rollup_width_print(to, grains->list[i].width_ms);
	}
	return errbuf_set(e, ERR_INVALID,
			  "granularity \"" SHOWN "\" is none of those that are stored: %.*s",
			  SHOWN_OF(text), (int)(to - list), list);
}

static int read_granularity(struct slice text, const struct rollup_grains *grains,
			    struct query_spec *spec, struct errbuf *e)
{
	if (!text.data)
		return 0;
	int err = rollup_width_parse(text, &spec->window_ms, e);
	if (err)
		return errbuf_prefix(e, err, "granularity");
	return rollup_grain_find(grains, spec->window_ms) ? 0 : no_such_width(grains, text, e);
}

/* Without a granularity one is chosen by the age of what is asked for. */
static int grain_read_stored(const struct http_request *request, const struct rollup_grains *grains,
			     struct slice aggregator, struct query_spec *spec, struct errbuf *e)
{
	struct slice granularity = http_param(request, "granularity");
	if (http_param(request, "fn").data || http_param(request, "window").data)
		return errbuf_set(e, ERR_INVALID,
				  "fn and window compute from whatever there is, aggregator and "
				  "granularity read what is stored: give one or the other");
	bool known = query_fn_parse(aggregator, &spec->fn) == 0 && spec->fn != FN_FIRST &&
		     spec->fn != FN_LAST && spec->fn != FN_RATE;
	if (!known)
		return errbuf_set(e, ERR_INVALID,
				  "aggregator \"" SHOWN
				  "\" is none of raw, min, max, sum, avg, count, increase",
				  SHOWN_OF(aggregator));
	if (!grains || !grains->count)
		return errbuf_set(e, ERR_LIMIT,
				  "no roll-ups are stored (rollup.granularities); fn=" SHOWN
				  " with a window computes from raw data",
				  SHOWN_OF(aggregator));
	spec->stored = true;
	if (granularity.data && spec->points_wanted)
		return errbuf_set(e, ERR_INVALID,
				  "points chooses a granularity: give one or the other");
	return read_granularity(granularity, grains, spec, e);
}

int grain_params(const struct http_request *request, const struct rollup_grains *grains,
		 struct query_spec *spec, struct errbuf *e)
{
	struct slice aggregator = http_param(request, "aggregator");
	if (aggregator.data && !slice_equal(aggregator, SLICE("raw")))
		return grain_read_stored(request, grains, aggregator, spec, e);
	if (http_param(request, "granularity").data)
		return errbuf_set(e, ERR_INVALID, "granularity needs an aggregator other than raw");
	return 0;
}

/* ---- Answering ------------------------------------------------------------------------------- */

static struct slice grain_text(const struct query_part *part, const struct rollup_grains *grains,
			       char to[GRAIN_MAX_BYTES])
{
	if (part->grain == QUERY_PART_NONE)
		return SLICE("none");
	if (part->grain == QUERY_PART_RAW)
		return SLICE("raw");
	return (struct slice){to, rollup_width_print(to, grains->list[part->grain].width_ms)};
}

static void grain_put_time(struct buf *out, int64_t ms)
{
	char text[TIME_PRINT_MAX_BYTES];
	buf_append(out, text, time_print(text, ms));
}

void grain_list(struct buf *out, const struct query *query, const struct rollup_grains *grains)
{
	size_t count;
	const struct query_part *parts = query_parts(query, &count);
	char text[GRAIN_MAX_BYTES];
	for (size_t i = 0; i < count; i++) {
		struct slice grain = grain_text(&parts[i], grains, text);
		buf_append(out, grain.data, grain.len);
		if (i + 1 == count)
			break;
		buf_append_text(out, " until ");
		grain_put_time(out, parts[i].to_ms);
		buf_append_text(out, ", ");
	}
}

static void put_note(struct buf *out, const struct query *query)
{
	static const char *const texts[] = {
		[NOTE_NONE] = "",
		[NOTE_NO_METRIC] = "unknown-metric: the tenant has no series of this metric",
		[NOTE_NOT_ROLLED_UP] = "not-rolled-up: roll-ups may still lack samples from ",
		[NOTE_COUNTER] = "not-kept: the metric is a counter, whose roll-ups have sum and "
				 "increase, but no min, max, avg and count",
		[NOTE_NO_COUNTER] = "not-kept: the metric is no counter, so its roll-ups have no "
				    "increase",
	};
	buf_append_text(out, texts[query->note]);
	if (query->note != NOTE_NOT_ROLLED_UP)
		return;
	grain_put_time(out, query->note_ms);
	buf_append_text(out, " on");
}

static void reply_note(struct http_request *request, const struct query *query)
{
	struct buf value;
	if (!query->note)
		return;
	buf_init(&value, HEADER_MAX_BYTES);
	put_note(&value, query);
	buf_append_char(&value, 0);
	http_reply_header(request, NOTE_HEADER, value.data);
	buf_release(&value);
}

void grain_reply_header(struct http_request *request, const struct query *query,
			const struct rollup_grains *grains)
{
	struct buf value;
	reply_note(request, query);
	buf_init(&value, HEADER_MAX_BYTES);
	grain_list(&value, query, grains);
	bool known = value.len > 0;
	buf_append_char(&value, 0);
	if (known && !value.failed)
		http_reply_header(request, GRAIN_HEADER, buf_slice(&value).data);
	buf_release(&value);
}

static void grain_put_window(struct buf *out, const struct query_spec *spec)
{
	char width[ROLLUP_WIDTH_MAX_BYTES];
	if (spec->fn != FN_NONE)
		buf_printf(out, "\"fn\":\"%s\",", query_fn_name(spec->fn));
	if (spec->window_ms)
		buf_printf(out, "\"window\":\"%.*s\",",
			   (int)rollup_width_print(width, spec->window_ms), width);
}

void grain_explain(struct buf *out, const struct query *query, const struct rollup_grains *grains)
{
	size_t count;
	const struct query_part *parts = query_parts(query, &count);
	char text[GRAIN_MAX_BYTES];
	buf_printf(out, "\"metricExists\":%s,", query->note == NOTE_NO_METRIC ? "false" : "true");
	if (query->note) {
		buf_append_text(out, "\"note\":\"");
		put_note(out, query);
		buf_append_text(out, "\",");
	}
	grain_put_window(out, &query->spec);
	buf_append_text(out, "\"grains\":[");
	for (size_t i = 0; i < count; i++) {
		struct slice grain = grain_text(&parts[i], grains, text);
		buf_append_text(out, i ? ",{\"start\":\"" : "{\"start\":\"");
		grain_put_time(out, parts[i].from_ms);
		buf_append_text(out, "\",\"end\":\"");
		grain_put_time(out, parts[i].to_ms);
		buf_append_text(out, "\",\"grain\":\"");
		buf_append(out, grain.data, grain.len);
		buf_append_text(out, "\"}");
	}
	buf_append_text(out, "],");
}
