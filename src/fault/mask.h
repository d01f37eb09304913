/* Secrets in reports: found by the name of what holds them, at any depth, and by their shape; and
 * replaced by `<hidden>` before anything is stored or indexed.
 *
 * By name: a member whose name contains one of the words (password, authorization, cookie, token
 * ...), compared without case, `-` and `_`; an item of a pair [name, value]; a parameter of a query
 * string or of a form; a line `name=value`. By shape: numbers of payment cards (13 to 19 digits
 * that pass the Luhn check), private keys (PEM), credentials in addresses (user:password@). In the
 * statements of a timeline the literals of whoever asks a column with such a name.
 *
 * Pure; any thread. */
#ifndef FAULT_MASK_H
#define FAULT_MASK_H

#include "base/mem.h"
#include "wire/json.h"

struct fault_masks {
	const char *const *words; /* in small letters, without - and _ */
	size_t word_count;
};

/* password, passwd, secret, authorization, cookie, token, apikey ... */
extern const struct fault_masks fault_masks_preset;

/* Masks a tree in place; new texts come from the arena. Returns how many values were masked. A full
 * arena masks more rather than less: the value becomes `<hidden>` as a whole. */
size_t fault_mask_tree(const struct fault_masks *masks, struct json *tree, struct arena *arena);

#endif
