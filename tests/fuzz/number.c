/* Any bytes as a number: what is taken is what the C library makes of it, and reads back after
 * printing. */
#include <math.h>
#include <stdlib.h>

#include "wire/number.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t bits_of(double d)
{
	uint64_t bits;
	memcpy(&bits, &d, sizeof(bits));
	return bits;
}

static void check_f64(const char *text, size_t len)
{
	double number, again;
	char printed[NUMBER_PRINT_MAX_BYTES];
	int err = number_parse_f64(text, text + len, &number);
	if (err == ERR_INVALID)
		return;
	ASSERT(bits_of(number) == bits_of(strtod(text, NULL)));
	if (err)
		return;
	size_t n = number_print_f64(printed, number);
	ASSERT(n <= NUMBER_PRINT_MAX_BYTES);
	ASSERT(number_parse_f64(printed, printed + n, &again) == 0);
	ASSERT(bits_of(again) == bits_of(number));
}

static void check_json(struct slice text)
{
	struct value number, again;
	char printed[NUMBER_PRINT_MAX_BYTES];
	if (number_parse_json(text, &number) != 0)
		return;
	size_t n = number_print(printed, number);
	ASSERT(number_parse_json((struct slice){printed, n}, &again) == 0);
	ASSERT(value_identical(number, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[NUMBER_TEXT_MAX_BYTES + 1];
	int64_t i;
	uint64_t u;
	if (size > NUMBER_TEXT_MAX_BYTES)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = 0;
	check_f64(text, size);
	check_json((struct slice){text, size});
	if (number_parse_i64(text, text + size, &i) == 0)
		ASSERT(i == strtoll(text, NULL, 10));
	if (number_parse_u64(text, text + size, &u) == 0)
		ASSERT(u == strtoull(text, NULL, 10));
	return 0;
}
