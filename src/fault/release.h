/* The order of releases, as Sentry's clients name them: `package@1.4.2`, or `1.4.2`, by Semantic
 * Versioning 2.0 (section 11); a version of one, two or four numbers counts as well. Pure. */
#ifndef FAULT_RELEASE_H
#define FAULT_RELEASE_H

#include "base/base.h"

bool fault_release_is_version(struct slice release);
/* False: one of them is no version, or they are of different packages; a release that does not name
 * its package is compared with any. Else *order is below 0 where `a` comes before `b`, 0 where they
 * are the same but for what stands behind a `+`. */
bool fault_release_compare(struct slice a, struct slice b, int *order) MUST_CHECK;
/* An order of all texts: versions, of one version by their bytes; then those that are no versions,
 * by their bytes. */
int fault_release_order(struct slice a, struct slice b);

#endif
