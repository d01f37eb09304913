/* What an event of Sentry's clients says in the words of a report. An event is kept as it came, but
 * that its `exception`, a list or an object, is called `exceptions`; beside it stand attributes of
 * attributes.c, so that lists, summaries and filters know it:
 *
 *  - those for which the table has a place in the event. The last exception of a list is the one
 *    that counts: it is the outermost;
 *  - `timeline`: of breadcrumbs, or of the spans of a transaction, rows [start, stop, category,
 *    detail] in ms since the first breadcrumb, or since the transaction began;
 *  - `duration` of a transaction, in ms.
 *
 * Shapes: what the specification has as an object may be a list (`exception`, `breadcrumbs`,
 * `tags`), and the reverse; names of the old Raven clients (`sentry.interfaces.Exception`) are
 * known. What has none of these shapes gives no attribute, and is named (fault_sentry_misshape).
 *
 * Pure; memory from the caller's arena. */
#ifndef FAULT_SENTRY_H
#define FAULT_SENTRY_H

#include "base/mem.h"
#include "wire/json.h"

/* An object of attributes, none twice; its texts and the nodes below its members may be the
 * event's. NULL: the arena is full. */
struct json *fault_sentry_attributes(const struct json *event, struct arena *arena);

/* Of a member that has a time: a number or a text of seconds since the epoch, or ISO 8601, which
 * may be without a zone: then it is UTC. NaN: it is none. */
double fault_sentry_time_ms(const struct json *value);

/* How long a transaction took; NaN: that is not known. */
double fault_sentry_duration_ms(const struct json *event);

/* What an event has in a shape from which nothing can be read: a sentence, which is constant, of
 * the next one. *at begins with 0. NULL: there is none left. */
const char *fault_sentry_misshape(const struct json *event, size_t *at);

/* The name that the event's own member has in the report. */
struct slice fault_sentry_name(struct slice name);

/* The exception of a transaction that was slow, as oops-tools calls it. */
#define FAULT_SENTRY_SLOW "SoftRequestTimeout"

#endif
