/* The row key of document E: which counter of which device, at which frequency, in which year:
 *
 *   snmp:router_a:FastPollHC:ifHCInOctets:xe-0/2/0:30000:2012
 *
 * A `:` or `\` inside a part has a `\` before it. One function for each direction, and nobody else
 * knows the form. */
#ifndef MODEL_COUNTER_KEY_H
#define MODEL_COUNTER_KEY_H

#include "base/base.h"

struct arena;
struct buf;

/* The namespace of everything that is polled, which is the tenant of its series. */
#define COUNTER_TENANT SLICE("snmp")

enum {
	COUNTER_KEY_PATH_MAX = 4,
	COUNTER_KEY_MAX_BYTES = 4000, /* of the text */
};

struct counter_key {
	struct slice ns, device, oidset, oid; /* none empty */
	struct slice path[COUNTER_KEY_PATH_MAX];
	size_t path_count; /* 0: a scalar, such as sysUpTime */
	int64_t freq_ms;   /* of the samples or bins; above 0 */
	bool has_year;
	int year; /* of the column's own time, in UTC; 0 to 9999 */
};

/* The year of a time, as row keys have it. */
int counter_key_year(int64_t ts_ms);
/* When it begins. */
int64_t counter_key_year_ms(int year);

/* Appends the text. ERR_INVALID: a part is missing or a number is outside its range. ERR_LIMIT: the
 * buffer's maximum. */
int counter_key_encode(const struct counter_key *key, struct buf *out) MUST_CHECK;

/* The inverse; parts point into `arena` or `text`. Whether a year ends the key must be known, since
 * a path may look like anything. ERR_INVALID with a sentence for text that no encoder wrote. */
int counter_key_decode(struct slice text, bool has_year, struct arena *arena,
		       struct counter_key *key, struct errbuf *e) MUST_CHECK;

/* Whether `asked` names the part `stored`: as it is, or with `_` for each `/` and blank, as the
 * document writes interfaces (`xe-0_2_0`) and E's first service wrote them (`Fan_Tray_1`). */
bool counter_key_part_matches(struct slice stored, struct slice asked);

#endif
