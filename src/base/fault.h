/* Fault points: named places where a test may order an error, a pause or the end of the process.
 * In a release build they cost one load of a global that is zero. Armed from GRANARY_FAULTS
 * ("name=error@3,name=kill@1,name=error*": at the third pass, at the first, at every one) or by
 * fault_arm(). */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include "base/base.h"

extern _Atomic int fault_armed;

/* 0, or ERR_FAULT when this pass is to fail. A point armed with `kill` does not return. */
int fault_pass(const char *name);

static inline int fault(const char *name)
{
	return UNLIKELY(fault_armed) ? fault_pass(name) : 0;
}

enum fault_action { FAULT_ERROR, FAULT_KILL };

/* From pass number `first` (counted from 1) for `times` passes; times 0 = for ever. */
void fault_arm(const char *name, enum fault_action action, unsigned first, unsigned times);
/* Is called at every fault point, whatever is armed; NULL: nothing is. A thread that does not come
 * back from it for a while is one that the machine has not run. */
void fault_set_pause(void (*pause)(const char *name));
void fault_disarm_all(void);
/* Reads GRANARY_FAULTS; ERR_INVALID with a sentence for what it cannot read. */
int fault_arm_from_env(struct errbuf *e) MUST_CHECK;

#endif
