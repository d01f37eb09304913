/* What a case needs and this machine has not. Include it after <cmocka.h>. */
#ifndef TESTS_TOOLS_MISSING_H
#define TESTS_TOOLS_MISSING_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* As in tools/missing.py. */
static inline bool all_has_to_be_here(void)
{
	const char *ci = getenv("CI");
	return ci && *ci && strcmp(ci, "0") != 0 && strcmp(ci, "false") != 0;
}

/* Ends the case; `what` is a sentence that says what is missing and, if it can be installed, the
 * package it is in. The only caller of skip(), which would be silent where all has to be here. */
static inline void missing(const char *what)
{
	if (all_has_to_be_here())
		fail_msg("%s", what);
	print_message("%s\n", what);
	skip();
}

#endif
