/* Calls that this project does not make: each has a bounded or checked twin in base/. A call is a
 * compile error; a mention, as in the headers of libraries, is not. tools/lint looks for the names
 * too, since a compiler may drop a call before it could complain. */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang takes the attribute on a first declaration only, so there the lint has to do. */
#ifndef __clang__
#define BANNED(instead) __attribute__((error("banned: use " instead)))

/* mem.c defines this, and files that include a library whose inline functions allocate. */
#ifndef BASE_MAY_MALLOC
extern void *malloc(size_t size) BANNED("mem_alloc");
extern void *calloc(size_t count, size_t size) BANNED("mem_zalloc");
extern void *realloc(void *ptr, size_t size) BANNED("mem_resize");
extern char *strdup(const char *text) BANNED("mem_copy_text");
#endif
extern char *strtok(char *text, const char *separators) BANNED("slices");
#endif

#endif
