/* The message of esmond's persist queue, a JSON object, to and from model/poll.h.
 *
 *	{"oidset_name": "FastPollHC", "device_name": "rtr_a", "oid_name": "ifHCInOctets",
 *	 "timestamp": 1343955624.289914, "data": [[["ifHCInOctets", "xe-0/2/0"], 11731145], ...],
 *	 "metadata": {...}}
 *
 * Correlated, as above: the values of one OID, a path beside each. The OID's name stands in the
 * path, where its correlator put it: before the others ([oid], [oid, interface]), in the middle
 * (JnxCOS: [interface, oid, queue]) or not at all (JnxFirewall: three parts). A poll's rows have
 * the path without it.
 * Uncorrelated: "data" is an object of lists by OID, "oid_name" is empty:
 *	{"ifAlias": [["ifAlias.17", "to the north"], ...], ...}
 * A row's path is then the index after the OID's name, "17".
 *
 * Times: esmond floors to whole seconds before it computes, so a poll that was read has such. One
 * message has one time; those of the rows are lost on the way out. Numbers: integers up to 64 bits
 * stay integers, decimals become doubles, null is no value; what else JSON has stays as it came.
 *
 * No I/O, no state; memory from the arena and the builder. */
#ifndef WIRE_ESMOND_MESSAGE_H
#define WIRE_ESMOND_MESSAGE_H

#include "model/poll.h"

/* Fills the builder, to be encoded. ERR_INVALID with a sentence for what is malformed; ERR_LIMIT
 * for what is too large for a poll or the arena. */
int esmond_message_read(struct slice json, struct arena *arena, struct poll_builder *builder,
			struct errbuf *e) MUST_CHECK;

/* Appends the message of one column; 0 or ERR_LIMIT beyond the buffer's maximum. */
int esmond_message_write(const struct poll *poll, const struct poll_names *names,
			 const struct poll_values *values, size_t column,
			 struct buf *out) MUST_CHECK;
/* Likewise all columns as one uncorrelated message. */
int esmond_message_write_uncorrelated(const struct poll *poll, const struct poll_names *names,
				      const struct poll_values *values, struct buf *out) MUST_CHECK;

#endif
