/* A double as exports write it, number_print_f64 and Go's %g among them: NaN and infinities have
 * words. Pure. */
#ifndef WIRE_SAMPLE_VALUE_H
#define WIRE_SAMPLE_VALUE_H

#include <math.h>

#include "wire/number.h"

/* False: it is none. */
static inline bool sample_value(struct slice text, double *number)
{
	static const struct {
		const char *word;
		double number;
	} words[] = {{"NaN", NAN},
		     {"+Inf", INFINITY},
		     {"-Inf", -INFINITY},
		     {"Infinity", INFINITY},
		     {"-Infinity", -INFINITY}};
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (slice_equal(text, slice_of(words[i].word))) {
			*number = words[i].number;
			return true;
		}
	}
	return number_parse_f64(text.data, text.data + text.len, number) == 0;
}

#endif
