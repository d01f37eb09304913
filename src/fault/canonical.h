/* One form of a tree: members of objects by name in byte order, of doubled names the last. The text
 * of two trees in that form is the same if JSON has no word for a difference between them. */
#ifndef FAULT_CANONICAL_H
#define FAULT_CANONICAL_H

#include "base/mem.h"
#include "wire/json.h"

/* Brings all objects of a tree into order, in place; memory to do so comes from the arena.
 * ERR_LIMIT: the arena is full; ERR_INVALID: more than `levels_max` objects and arrays lie within
 * each other. */
int canonical_sort(struct json *tree, unsigned levels_max, struct arena *arena) MUST_CHECK;

#endif
