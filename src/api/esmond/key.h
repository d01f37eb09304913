/* What /v2/timeseries and bulk requests call a path: namespace, device, OIDSet, OID, the parts of
 * its rows' path and a frequency in milliseconds; with a type that says which rows. Pure. */
#ifndef API_ESMOND_KEY_H
#define API_ESMOND_KEY_H

#include "api/esmond/data.h"

enum v2_type { TYPE_RAW_DATA, TYPE_BASE_RATE, TYPE_AGGS };

struct v2_key {
	enum v2_type type;
	struct v2_target target;
	int64_t freq_ms;
};

/* RawData, BaseRate, Aggs. ERR_INVALID with a sentence. */
int v2_key_type(struct slice text, enum v2_type *type, struct errbuf *e) MUST_CHECK;

/* All parts, the frequency last. What is meant by a device that the inventory does not have is what
 * is stored under that name. ERR_INVALID: there is no such OIDSet or OID, or its rows have
 * another depth. */
int v2_key_read(const struct inventory *inventory, const struct slice *parts, size_t count,
		struct arena *arena, struct v2_key *key, struct errbuf *e) MUST_CHECK;

/* The type and the key of a path /v2/timeseries/TYPE/NS/DEV/OIDSET/OID/PATH../FREQ_MS, which has at
 * least so many parts. */
enum { V2_KEY_PATH_PARTS_MIN = 7 };
int v2_key_of_path(struct v2_answer *answer, struct v2_key *key, struct errbuf *e) MUST_CHECK;

/* Puts the frequency and what follows from the type into `params`. */
int v2_key_plan(const struct v2_answer *answer, const struct v2_key *key,
		struct v2_data_params *params, struct v2_plan *plan, struct errbuf *e) MUST_CHECK;

#endif
