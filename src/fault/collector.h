/* The job that plans collections (collect.h) from time to time, for all tenants that this process
 * owns. The thread of the executor. */
#ifndef FAULT_COLLECTOR_H
#define FAULT_COLLECTOR_H

#include "fault/collect.h"

struct fault;
struct fault_collector;

/* every_ms: between plans. */
struct fault_collector *
fault_collector_new(struct fault *fault, const struct fault_collect_rules *rules, int64_t every_ms);
/* Its job is over. */
void fault_collector_free(struct fault_collector *collector);
/* Also where no rule lets anything go: what is erased (erase.h) goes with it. */
void fault_collector_start(struct fault_collector *collector, struct executor *executor);
void fault_collector_stop(struct fault_collector *collector);
bool fault_collector_is_over(const struct fault_collector *collector);

#endif
