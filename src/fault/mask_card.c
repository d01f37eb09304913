#include "fault/mask_card.h"

#include "wire/number.h"

enum { MASK_CARD_MIN = 13, MASK_CARD_MAX = 19, MASK_CARD_FIRST = 4, MASK_CARD_GROUPS_MAX = 5 };

/* A run of digits, or several with one separator between them. */
struct mask_card_run {
	size_t begin[MASK_CARD_GROUPS_MAX], len[MASK_CARD_GROUPS_MAX];
	size_t count;
	char separator; /* 0: one group */
};

/* ---- The number ----------------------------------------------------------------------------- */

/* What issuers give: the leading digits, from and to, and how many digits there are. */
static const struct mask_card_issuer {
	uint32_t first, last; /* six digits */
	uint8_t min, max;
} mask_card_issuers[] = {
	{222100, 272099, 16, 16}, {300000, 305999, 14, 14}, {309500, 309599, 14, 14},
	{340000, 349999, 15, 15}, {352800, 358999, 16, 19}, {360000, 369999, 14, 19},
	{370000, 379999, 15, 15}, {380000, 399999, 14, 14}, {400000, 499999, 13, 13},
	{400000, 499999, 16, 16}, {400000, 499999, 19, 19}, {501800, 501899, 13, 19},
	{502000, 502099, 13, 19}, {503800, 503899, 13, 19}, {510000, 559999, 16, 16},
	{589300, 589399, 13, 19}, {601100, 601199, 16, 19}, {620000, 629999, 16, 19},
	{630400, 630499, 13, 19}, {644000, 659999, 16, 19}, {675900, 676399, 13, 19},
};

static bool mask_card_is_issued(const uint8_t *digits, size_t count)
{
	uint32_t head = 0;
	for (size_t i = 0; i < 6; i++)
		head = head * 10 + digits[i];
	for (size_t i = 0; i < ARRAY_LEN(mask_card_issuers); i++) {
		const struct mask_card_issuer *issuer = &mask_card_issuers[i];
		if (head >= issuer->first && head <= issuer->last && count >= issuer->min &&
		    count <= issuer->max)
			return true;
	}
	return false;
}

/* ISO/IEC 7812-1, annex B: from the right, every second digit is doubled and its digits added. */
static bool mask_card_passes(const uint8_t *digits, size_t count)
{
	unsigned sum = 0;
	for (size_t i = 0; i < count; i++) {
		unsigned digit = digits[count - 1 - i];
		digit <<= i & 1;
		sum += digit > 9 ? digit - 9 : digit;
	}
	return sum % 10 == 0;
}

/* %20, as addresses and forms have it. */
static bool mask_card_is_escape(struct slice text, size_t at)
{
	return at + 2 < text.len && text.data[at] == '%' &&
	       number_hex_digit(text.data[at + 1]) >= 0 && number_hex_digit(text.data[at + 2]) >= 0;
}

static bool mask_card_is_number(struct slice text)
{
	uint8_t digits[MASK_CARD_MAX];
	size_t count = 0;
	for (size_t i = 0; i < text.len; i++) {
		if (mask_card_is_escape(text, i)) {
			i += 2;
			continue;
		}
		if (!number_is_digit(text.data[i]))
			continue;
		if (count == MASK_CARD_MAX)
			return false;
		digits[count++] = (uint8_t)(text.data[i] - '0');
	}
	return count >= MASK_CARD_MIN && mask_card_is_issued(digits, count) &&
	       mask_card_passes(digits, count);
}

/* ---- Its place ------------------------------------------------------------------------------ */

static bool mask_card_in_word(char c)
{
	char small = (char)(c | 0x20);
	return (small >= 'a' && small <= 'z') || number_is_digit(c) || c == '_' || (c & 0x80);
}

/* How many digits stand from `at` on. */
static size_t mask_card_digits(struct slice text, size_t at)
{
	size_t len = 0;
	while (at + len < text.len && number_is_digit(text.data[at + len]))
		len++;
	return len;
}

/* How long what stands between two groups is, and what it is; 0: they do not go on. */
static size_t mask_card_parted(struct slice text, size_t at, char *separator)
{
	size_t len = mask_card_is_escape(text, at) ? 3 : 1;
	if (at + len >= text.len || !number_is_digit(text.data[at + len]))
		return 0;
	*separator = text.data[at];
	if (len == 3)
		*separator = (char)(number_hex_digit(text.data[at + 1]) << 4 |
				    number_hex_digit(text.data[at + 2]));
	return *separator == ' ' || *separator == '-' || *separator == '+' ? len : 0;
}

static void mask_card_groups(struct slice text, size_t at, struct mask_card_run *run)
{
	*run = (struct mask_card_run){.count = 0};
	for (;;) {
		size_t len = mask_card_digits(text, at), end = at + len;
		char separator;
		run->begin[run->count] = at;
		run->len[run->count++] = len;
		if (run->count == MASK_CARD_GROUPS_MAX || len > 6)
			return;
		size_t parted = mask_card_parted(text, end, &separator);
		if (!parted || (run->separator && separator != run->separator))
			return;
		run->separator = separator;
		at = end + parted;
	}
}

/* What stands before and after is no part of the number: no letter, no digit, no decimals. */
static bool mask_card_stands_alone(struct slice text, size_t begin, size_t end)
{
	bool escaped = begin > 2 && mask_card_is_escape(text, begin - 3);
	if (begin && !escaped && mask_card_in_word(text.data[begin - 1]))
		return false;
	if (begin > 1 && text.data[begin - 1] == '.' && number_is_digit(text.data[begin - 2]))
		return false;
	if (end < text.len && mask_card_in_word(text.data[end]))
		return false;
	return end + 1 >= text.len || text.data[end] != '.' || !number_is_digit(text.data[end + 1]);
}

static bool mask_card_is_four(struct slice text, size_t begin, size_t end)
{
	for (size_t i = begin; i < end; i++) {
		if (!number_is_digit(text.data[i]))
			return false;
	}
	return (begin == 0 || !number_is_digit(text.data[begin - 1])) &&
	       (end == text.len || !number_is_digit(text.data[end]));
}

/* Groups are no card where more of the same kind stand beside them: of four digits after blanks,
 * of anything after hyphens (a UUID, a date). */
static bool mask_card_goes_on(struct slice text, size_t begin, size_t end, char separator)
{
	bool before = begin > 1 && text.data[begin - 1] == separator;
	bool after = end + 1 < text.len && text.data[end] == separator;
	if (separator == '-')
		return (before && mask_card_in_word(text.data[begin - 2])) ||
		       (after && mask_card_in_word(text.data[end + 1]));
	return (before && begin > 4 && mask_card_is_four(text, begin - 5, begin - 1)) ||
	       (after && end + 5 <= text.len && mask_card_is_four(text, end + 1, end + 5));
}

/* As they stand on cards: MASK_CARD_FIRST digits first. */
static size_t mask_card_layout(const struct mask_card_run *run)
{
	static const uint8_t layouts[][MASK_CARD_GROUPS_MAX] = {
		{4, 4, 4, 4, 3}, {4, 4, 4, 4}, {4, 6, 5}, {4, 6, 4}};
	for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
		size_t n = 0;
		while (n < MASK_CARD_GROUPS_MAX && layouts[i][n] && n < run->count &&
		       run->len[n] == layouts[i][n])
			n++;
		if (n == MASK_CARD_GROUPS_MAX || !layouts[i][n])
			return n;
	}
	return 0;
}

static bool mask_card_fits(struct slice text, size_t begin, size_t end)
{
	return mask_card_stands_alone(text, begin, end) &&
	       mask_card_is_number((struct slice){text.data + begin, end - begin});
}

bool mask_card_at(struct slice text, size_t *at, size_t *begin, size_t *end)
{
	struct mask_card_run run;
	if (*at && mask_card_is_escape(text, *at - 1)) {
		++*at;
		return false;
	}
	size_t len = mask_card_digits(text, *at);
	*begin = *at;
	*end = *at + len;
	*at = *end - 1;
	if (len >= MASK_CARD_MIN)
		return len <= MASK_CARD_MAX && mask_card_fits(text, *begin, *end);
	if (len != MASK_CARD_FIRST)
		return false;
	mask_card_groups(text, *begin, &run);
	size_t last = mask_card_layout(&run);
	if (!last)
		return false;
	*end = run.begin[last - 1] + run.len[last - 1];
	/* The fifth group of three may be no part of it: the code of a card. */
	if (last == MASK_CARD_GROUPS_MAX &&
	    !mask_card_is_number((struct slice){text.data + *begin, *end - *begin}))
		*end = run.begin[3] + run.len[3];
	return mask_card_fits(text, *begin, *end) &&
	       !mask_card_goes_on(text, *begin, *end, run.separator);
}
