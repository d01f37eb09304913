/* Selectors of tags: read from text, matched against values. Pure. */
#ifndef CATALOG_SELECTOR_H
#define CATALOG_SELECTOR_H

#include "catalog/catalog.h"

bool pattern_match(const struct catalog_pattern *pattern, struct slice value);
bool selector_match(const struct catalog_selector *selector, struct slice value);
/* No value has a star: each is looked up instead of searched for. */
bool selector_exact(const struct catalog_selector *selector);

#endif
