#include "fault/release.h"

enum { NUMBERS_MAX = 4 };

/* A version in its parts. */
struct release_version {
	struct slice package;              /* len 0: not named */
	struct slice numbers[NUMBERS_MAX]; /* digits, without zeros in front; len 0: 0 */
	struct slice before; /* behind the `-`: what comes before the release; len 0: none */
};

static bool release_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The part up to `end`, which is taken off; all of it where that is not there. */
static struct slice release_take(struct slice *text, char end)
{
	const char *at = text->len ? memchr(text->data, end, text->len) : NULL;
	struct slice part = {text->data, at ? (size_t)(at - text->data) : text->len};
	size_t used = part.len + (at ? 1 : 0);
	*text = (struct slice){text->data + used, text->len - used};
	return part;
}

/* Takes the zeros in front of digits off. False: it is no number. */
static bool release_number(struct slice text, struct slice *number)
{
	for (size_t i = 0; i < text.len; i++)
		if (!release_is_digit(text.data[i]))
			return false;
	*number = text;
	while (number->len && number->data[0] == '0')
		*number = (struct slice){number->data + 1, number->len - 1};
	return text.len > 0;
}

/* A number may have any length. */
static int release_compare_numbers(struct slice a, struct slice b)
{
	if (a.len != b.len)
		return a.len < b.len ? -1 : 1;
	return slice_compare(a, b);
}

/* What stands before the last `@`, which is taken off. */
static struct slice release_package(struct slice *text)
{
	for (size_t i = text->len; i > 0; i--) {
		if (text->data[i - 1] != '@')
			continue;
		struct slice package = {text->data, i - 1};
		*text = (struct slice){text->data + i, text->len - i};
		return package;
	}
	return SLICE("");
}

/* False: it is no version. */
static bool release_parse(struct slice text, struct release_version *version)
{
	*version = (struct release_version){.package = release_package(&text)};
	version->before = release_take(&text, '+');
	struct slice numbers = release_take(&version->before, '-');
	if (numbers.len && numbers.data[0] == 'v')
		numbers = (struct slice){numbers.data + 1, numbers.len - 1};
	if (numbers.len && numbers.data[numbers.len - 1] == '.')
		return false;
	for (size_t i = 0; i < NUMBERS_MAX && (numbers.len || i == 0); i++)
		if (!release_number(release_take(&numbers, '.'), &version->numbers[i]))
			return false;
	return !numbers.len;
}

/* Identifiers between dots: numbers by their value, before texts; texts by their bytes. */
static int release_compare_identifiers(struct slice a, struct slice b)
{
	struct slice x, y;
	bool a_counts = release_number(a, &x), b_counts = release_number(b, &y);
	if (a_counts && b_counts)
		return release_compare_numbers(x, y);
	if (a_counts != b_counts)
		return a_counts ? -1 : 1;
	return slice_compare(a, b);
}

/* A version with a part behind `-` comes before the same version without. */
static int release_compare_before(struct slice a, struct slice b)
{
	if (!a.len || !b.len)
		return (a.len == 0) - (b.len == 0);
	while (a.len && b.len) {
		int order =
			release_compare_identifiers(release_take(&a, '.'), release_take(&b, '.'));
		if (order)
			return order;
	}
	return (a.len > 0) - (b.len > 0);
}

static int release_compare_versions(const struct release_version *a,
				    const struct release_version *b)
{
	int order = 0;
	for (size_t i = 0; i < NUMBERS_MAX && !order; i++)
		order = release_compare_numbers(a->numbers[i], b->numbers[i]);
	return order ? order : release_compare_before(a->before, b->before);
}

bool fault_release_is_version(struct slice release)
{
	struct release_version version;
	return release_parse(release, &version);
}

bool fault_release_compare(struct slice a, struct slice b, int *order)
{
	struct release_version x, y;
	*order = 0;
	if (!release_parse(a, &x) || !release_parse(b, &y) ||
	    (x.package.len && y.package.len && !slice_equal(x.package, y.package)))
		return false;
	*order = release_compare_versions(&x, &y);
	return true;
}

int fault_release_order(struct slice a, struct slice b)
{
	struct release_version x, y;
	bool a_is = release_parse(a, &x), b_is = release_parse(b, &y);
	int order = 0;
	if (a_is != b_is)
		return a_is ? -1 : 1;
	if (a_is)
		order = release_compare_versions(&x, &y);
	return order ? order : slice_compare(a, b);
}
