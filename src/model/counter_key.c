#include "model/counter_key.h"

#include "base/buf.h"
#include "base/mem.h"

enum { FIXED_PARTS = 4, PARTS_MAX = FIXED_PARTS + COUNTER_KEY_PATH_MAX + 2 };

#define DAY_MS INT64_C(86400000)

/* The proleptic Gregorian calendar repeats every 400 years of 146,097 days. Years begin in March
 * here, so that the leap day is the last one. */
int counter_key_year(int64_t ts_ms)
{
	int64_t days = floor_div(ts_ms, DAY_MS) + 719468; /* from 0000-03-01 */
	int64_t era = floor_div(days, 146097), of_era = days - era * 146097;
	int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * year + year / 4 - year / 100);

	return (int)(year + era * 400 + (of_year >= 306)); /* January is ten months on */
}

int64_t counter_key_year_ms(int year)
{
	int64_t before = (int64_t)year - 1; /* whole years, from the year 1 */
	int64_t days = 365 * before + floor_div(before, 4) - floor_div(before, 100) +
		       floor_div(before, 400);
	int64_t ms;
	if (__builtin_mul_overflow(days - 719162, DAY_MS, &ms)) /* days before 1970 */
		return days < 719162 ? INT64_MIN : INT64_MAX;
	return ms;
}

static void append_part(struct buf *out, struct slice part)
{
	for (size_t i = 0; i < part.len; i++) {
		if (part.data[i] == ':' || part.data[i] == '\\')
			buf_append_char(out, '\\');
		buf_append_char(out, part.data[i]);
	}
	buf_append_char(out, ':');
}

static bool key_complete(const struct counter_key *key)
{
	if (!key->ns.len || !key->device.len || !key->oidset.len || !key->oid.len)
		return false;
	return key->path_count <= COUNTER_KEY_PATH_MAX && key->freq_ms > 0 &&
	       (!key->has_year || (key->year >= 0 && key->year <= 9999));
}

int counter_key_encode(const struct counter_key *key, struct buf *out)
{
	size_t before = out->len;

	if (!key_complete(key))
		return ERR_INVALID;
	append_part(out, key->ns);
	append_part(out, key->device);
	append_part(out, key->oidset);
	append_part(out, key->oid);
	for (size_t i = 0; i < key->path_count; i++)
		append_part(out, key->path[i]);
	buf_printf(out, "%lld", (long long)key->freq_ms);
	if (key->has_year)
		buf_printf(out, ":%d", key->year);
	if (!out->failed && out->len - before <= COUNTER_KEY_MAX_BYTES)
		return 0;
	out->len = before;
	return ERR_LIMIT;
}

/* The part up to the next `:` or the end, which `*at` is moved to. False: a `\` before nothing that
 * needs one. */
static bool counter_key_parse_part(struct slice text, size_t *at, struct arena *arena,
				   struct slice *part)
{
	char *to = arena_alloc(arena, text.len - *at + 1);
	size_t len = 0;

	if (!to)
		return false;
	for (; *at < text.len && text.data[*at] != ':'; ++*at) {
		if (text.data[*at] == '\\' &&
		    (++*at == text.len || (text.data[*at] != ':' && text.data[*at] != '\\')))
			return false;
		to[len++] = text.data[*at];
	}
	*part = (struct slice){to, len};
	return true;
}

/* Decimal digits as an encoder writes them; -1 for anything else. */
static int64_t counter_key_number_of(struct slice part)
{
	int64_t value = 0;

	if (!part.len || part.len > 18 || (part.len > 1 && part.data[0] == '0'))
		return -1;
	for (size_t i = 0; i < part.len; i++) {
		if (part.data[i] < '0' || part.data[i] > '9')
			return -1;
		value = value * 10 + (part.data[i] - '0');
	}
	return value;
}

static int fill_key(const struct slice *parts, size_t count, bool has_year, struct counter_key *key,
		    struct errbuf *e)
{
	size_t tail = has_year ? 2 : 1;

	if (count < FIXED_PARTS + tail || count > FIXED_PARTS + COUNTER_KEY_PATH_MAX + tail)
		return errbuf_set(e, ERR_INVALID, "a row key has no %zu parts", count);
	*key = (struct counter_key){.ns = parts[0],
				    .device = parts[1],
				    .oidset = parts[2],
				    .oid = parts[3],
				    .path_count = count - FIXED_PARTS - tail,
				    .freq_ms = counter_key_number_of(parts[count - tail]),
				    .has_year = has_year};
	for (size_t i = 0; i < key->path_count; i++)
		key->path[i] = parts[FIXED_PARTS + i];
	if (has_year) {
		int64_t year = counter_key_number_of(parts[count - 1]);
		key->year = year > 9999 ? -1 : (int)year;
	}
	if (!key_complete(key))
		return errbuf_set(e, ERR_INVALID,
				  "a row key needs a name in each of its first four parts, and "
				  "its frequency%s as a number at the end",
				  has_year ? " and year" : "");
	return 0;
}

int counter_key_decode(struct slice text, bool has_year, struct arena *arena,
		       struct counter_key *key, struct errbuf *e)
{
	struct slice parts[PARTS_MAX];
	size_t count = 0, at = 0;

	if (text.len > COUNTER_KEY_MAX_BYTES)
		return errbuf_set(e, ERR_INVALID, "a row key has at most %d bytes",
				  COUNTER_KEY_MAX_BYTES);
	for (;; at++) {
		if (count == PARTS_MAX)
			return errbuf_set(e, ERR_INVALID, "a row key has at most %d parts",
					  PARTS_MAX);
		if (!counter_key_parse_part(text, &at, arena, &parts[count++]))
			return errbuf_set(e, ERR_INVALID,
					  "the row key \"" SHOWN
					  "\" is not written as row keys are",
					  SHOWN_OF(text));
		if (at >= text.len)
			break;
	}
	return fill_key(parts, count, has_year, key, e);
}

bool counter_key_part_matches(struct slice stored, struct slice asked)
{
	if (stored.len != asked.len)
		return false;
	if (slice_equal(stored, asked))
		return true;
	for (size_t i = 0; i < stored.len; i++) {
		char c = stored.data[i];
		if (asked.data[i] != (c == '/' || c == ' ' ? '_' : c))
			return false;
	}
	return true;
}
