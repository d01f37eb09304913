/* Secrets in reports: found by the name of what holds them, at any depth, and by their shape; and
 * replaced by `<hidden>` before anything is stored or indexed.
 *
 * By name: a member whose name has one of the words (password, authorization, cookie, token ...) in
 * it (mask_name.h says how), with all that is below it; the value of a pair [name, value] in a list
 * and of an object {"name": ..., "value": ...}; in texts a parameter of a query string or of a
 * form, a line `name=value` or `Name: value`, a literal that a statement of SQL compares or sets a
 * column of such a name to. By shape: numbers of payment cards, private keys (PEM), credentials in
 * addresses (user:password@) and after Bearer or Basic (mask_text.h).
 *
 * true, false, null and empty texts hide nothing and stay.
 *
 * Pure; any thread. */
#ifndef FAULT_MASK_H
#define FAULT_MASK_H

#include "base/mem.h"
#include "wire/json.h"

enum { FAULT_MASK_WORDS_MAX = 200 };

struct fault_masks {
	/* Small letters and digits, without - and _; after a `=`: the whole name and no part of
	 * one. */
	const char *const *words;
	size_t word_count; /* up to FAULT_MASK_WORDS_MAX: whoever configures them checks it */
};

/* password, passwd, secret, authorization, cookie, token, apikey ... */
extern const struct fault_masks fault_masks_preset;

/* Masks a tree in place, keys of objects included; new texts come from the arena. Returns how many
 * values were masked, or parts of them. A full arena masks more rather than less: the value becomes
 * `<hidden>` as a whole; so does what is nested deeper than JSON_WRITE_DEPTH_MAX. */
size_t fault_mask_tree(const struct fault_masks *masks, struct json *tree, struct arena *arena);

#endif
