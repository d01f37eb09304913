/* Numbers of payment cards (ISO/IEC 7812) in a text; mask_text.h says what is taken for one. */
#ifndef FAULT_MASK_CARD_H
#define FAULT_MASK_CARD_H

#include "base/base.h"

/* Whether one begins at *at, which is a digit; then it is [*begin, *end). Else *at becomes the last
 * byte of what cannot begin one. */
bool mask_card_at(struct slice text, size_t *at, size_t *begin, size_t *end) MUST_CHECK;

#endif
