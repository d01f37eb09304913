#include "api/fault/notation.h"

#include <inttypes.h>
#include <stdio.h>

#include "api/params.h"
#include "fault/day.h"
#include "wire/number.h"

enum { TOKEN_DIGITS = 16, TOKEN_PARTS = 3, DAY_DASHED_BYTES = 10, FACT_MAX_BYTES = 8 << 10 };

struct slice notation_id(const struct http_request *request)
{
	size_t count = request->segment_count;
	size_t skip = strlen(request->route->path);
	if (count == 2 || (count == 3 && !request->segments[2].len))
		return request->segments[1];
	ASSERT(request->path.len >= skip);
	return (struct slice){request->path.data + skip, request->path.len - skip};
}

/* ---- Days ------------------------------------------------------------------------------------ */

static struct slice notation_undashed(struct slice text, char to[FAULT_DAY_TEXT_BYTES])
{
	if (text.len != DAY_DASHED_BYTES || text.data[4] != '-' || text.data[7] != '-')
		return text;
	memcpy(to, text.data, 4);
	memcpy(to + 4, text.data + 5, 2);
	memcpy(to + 6, text.data + 8, 2);
	return (struct slice){to, FAULT_DAY_TEXT_BYTES};
}

int notation_day(struct slice text, int64_t now_ms, int64_t *day, struct errbuf *e)
{
	char digits[FAULT_DAY_TEXT_BYTES];
	int64_t today = fault_day_of(notation_us(now_ms));
	bool is_today = slice_equal(text, SLICE("today"));
	if (is_today || slice_equal(text, SLICE("yesterday"))) {
		*day = is_today ? today : today - 1;
		return 0;
	}
	if (!fault_day_parse(notation_undashed(text, digits), day))
		return 0;
	return errbuf_set(e, ERR_INVALID,
			  "\"" SHOWN "\" is no day: 2026-11-24, 20261124, today or yesterday",
			  SHOWN_OF(text));
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

void notation_put_token(const struct fault_order *order, char to[NOTATION_TOKEN_BYTES])
{
	snprintf(to, NOTATION_TOKEN_BYTES, "%016" PRIx64 "-%016" PRIx64 "-%016" PRIx64,
		 (uint64_t)order->date_us, order->place.writer, order->place.sequence);
}

int notation_token(struct slice text, struct fault_order *order, struct errbuf *e)
{
	uint64_t parts[TOKEN_PARTS];
	bool good = text.len == NOTATION_TOKEN_BYTES - 1;
	for (size_t i = 0; good && i < TOKEN_PARTS; i++) {
		const char *part = text.data + i * (TOKEN_DIGITS + 1);
		good = !number_parse_hex64(part, part + TOKEN_DIGITS, &parts[i]) &&
		       (i == 0 || part[-1] == '-');
	}
	if (!good)
		return errbuf_set(e, ERR_INVALID,
				  "token \"" SHOWN "\" is none that an answer has given",
				  SHOWN_OF(text));
	*order = (struct fault_order){(int64_t)parts[0], {parts[1], parts[2]}};
	return 0;
}

int notation_check_said(struct slice text, const char *name, struct errbuf *e)
{
	for (size_t i = 0; i < text.len; i++)
		if ((uint8_t)text.data[i] < ' ' || text.data[i] == 0x7f)
			return errbuf_set(e, ERR_INVALID, "%s has a control character", name);
	return 0;
}

/* ---- Times ----------------------------------------------------------------------------------- */

int64_t notation_us(int64_t ms)
{
	int64_t us;
	if (!__builtin_mul_overflow(ms, (int64_t)1000, &us))
		return us;
	return ms < 0 ? INT64_MIN : INT64_MAX;
}

int64_t notation_ms(int64_t us)
{
	return floor_div(us, 1000);
}

size_t notation_print_ms(char to[NOTATION_MS_BYTES], int64_t us)
{
	int64_t ms = floor_div(us, 1000);
	int rest = (int)(us - ms * 1000);
	int len = rest ? snprintf(to, NOTATION_MS_BYTES, "%" PRId64 ".%03d", ms, rest)
		       : snprintf(to, NOTATION_MS_BYTES, "%" PRId64, ms);
	return (size_t)len;
}

void notation_write_ms(struct json_writer *json, int64_t us)
{
	char text[NOTATION_MS_BYTES];
	json_write_raw(json, (struct slice){text, notation_print_ms(text, us)});
}

int notation_keep_fact(struct arena *arena, enum fault_text fact, struct slice *text,
		       struct errbuf *e)
{
	char cut[FAULT_CONTEXT_MAX_BYTES];
	int err = params_keep(arena, text, fault_text_name(fact), FACT_MAX_BYTES, e);
	if (err || !text->data)
		return err;
	struct slice kept = {cut, fault_fact_cut(cut, fact, *text)};
	*text = arena_copy(arena, kept);
	return text->data ? 0 : errbuf_set(e, ERR_INVALID, "the parameters are too long");
}
