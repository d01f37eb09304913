/* Whether the full counts are asked for: `./test --long`. */
#ifndef TESTS_TOOLS_LONG_RUN_H
#define TESTS_TOOLS_LONG_RUN_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool long_run(void)
{
	const char *asked = getenv("GRANARY_LONG");
	return asked && *asked && strcmp(asked, "0") != 0;
}

#endif
